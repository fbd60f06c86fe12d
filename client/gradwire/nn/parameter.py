"""``torch.nn.parameter``: parameters and buffers of modules."""

from .._core.modules.parameter import Buffer, Parameter
from .lazy import UninitializedBuffer, UninitializedParameter, is_lazy
from .lazy import _Shapeless as UninitializedTensorMixin

__all__ = [
    "Buffer", "Parameter", "UninitializedBuffer", "UninitializedParameter", "UninitializedTensorMixin", "is_lazy",
]  # fmt: skip

_ParameterMeta, _BufferMeta = type(Parameter), type(Buffer)
