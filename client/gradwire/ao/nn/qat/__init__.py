"""``torch.ao.nn.qat``: layers for training with quantization are refused."""

from ...._core.surface.quantization_names import fill as _fill
from ...._core.surface.unsupported import explaining as _explaining

__all__ = _fill(__name__)
__getattr__ = _explaining(__name__)
