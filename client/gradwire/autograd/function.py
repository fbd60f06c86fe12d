"""``torch.autograd.function``: operations whose forward and derivative are the program's own."""

from .._core.backward.function import Function, FunctionCtx, InplaceFunction, once_differentiable

__all__ = ["Function", "FunctionCtx", "InplaceFunction", "once_differentiable"]
