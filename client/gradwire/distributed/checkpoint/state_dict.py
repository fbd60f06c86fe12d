"""``torch.distributed.checkpoint.state_dict``: names that are refused where they are called."""

from ..refused import fill

fill(__name__)
