"""``torch.ao.quantization``: observers, configurations and conversions are refused; the stubs are real."""

from ..._core.surface.quantization_names import fill as _fill
from ..._core.surface.unsupported import explaining as _explaining
from .qconfig import QConfig as QConfig
from .stubs import DeQuantStub as DeQuantStub
from .stubs import QuantStub as QuantStub
from .stubs import QuantWrapper as QuantWrapper

__all__ = _fill(__name__)
__getattr__ = _explaining(__name__)
