"""``torch.nn.intrinsic``: the older name of ``torch.ao.nn.intrinsic``."""

from ..._core.surface.unsupported import explaining as _explaining
from ...ao.nn.intrinsic import *  # noqa: F403

__getattr__ = _explaining(__name__)
