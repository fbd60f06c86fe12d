"""``torch.nn.intrinsic.quantized``: the older name of ``torch.ao.nn.intrinsic.quantized``."""

from ...._core.surface.unsupported import explaining as _explaining
from ....ao.nn.intrinsic.quantized import *  # noqa: F403

__getattr__ = _explaining(__name__)
