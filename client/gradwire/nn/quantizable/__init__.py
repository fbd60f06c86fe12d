"""``torch.nn.quantizable``: the older name of ``torch.ao.nn.quantizable``."""

from ..._core.surface.unsupported import explaining as _explaining
from ...ao.nn.quantizable import *  # noqa: F403

__getattr__ = _explaining(__name__)
