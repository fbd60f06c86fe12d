"""``torch.utils.model_zoo``: the older path of :func:`torch.hub.load_state_dict_from_url`."""

from ..hub import load_state_dict_from_url as load_url
from ..hub import tqdm as tqdm

__all__ = ["load_url"]
