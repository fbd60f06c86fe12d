"""``torch.ao``: architecture optimization. What needs quantized dtypes is refused at the call."""

from .._core.surface.unsupported import explaining as _explaining
from . import nn, pruning, quantization

__all__ = ["nn", "pruning", "quantization"]
__getattr__ = _explaining(__name__)
