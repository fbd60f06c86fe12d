"""``torch.nn.quantized``: the older name of ``torch.ao.nn.quantized``."""

from ..._core.surface.unsupported import explaining as _explaining
from ...ao.nn.quantized import *  # noqa: F403

__getattr__ = _explaining(__name__)
