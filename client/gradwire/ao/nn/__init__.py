"""``torch.ao.nn``: layers that are, or can be, quantized."""

from ..._core.surface.unsupported import explaining as _explaining
from . import intrinsic, qat, quantizable, quantized

__all__ = ["intrinsic", "qat", "quantizable", "quantized"]
__getattr__ = _explaining(__name__)
