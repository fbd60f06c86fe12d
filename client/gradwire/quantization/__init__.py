"""``torch.quantization``: the older name of ``torch.ao.quantization``."""

from .._core.surface.unsupported import explaining as _explaining
from ..ao.quantization import *  # noqa: F403

__getattr__ = _explaining(__name__)
