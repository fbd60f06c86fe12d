"""``torch.nn.parameter``: parameters and buffers of modules."""

from .._core.modules.parameter import Buffer, Parameter
from .lazy import UninitializedBuffer, UninitializedParameter, is_lazy

__all__ = ["Buffer", "Parameter", "UninitializedBuffer", "UninitializedParameter", "is_lazy"]
