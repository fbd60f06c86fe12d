"""``torch.ao.nn.intrinsic``: layers in a row, real in floating point."""

from ...._core.surface.quantization_names import fill as _fill
from ...._core.surface.unsupported import explaining as _explaining
from .modules.fused import *  # noqa: F403

__all__ = _fill(__name__)
__getattr__ = _explaining(__name__)
