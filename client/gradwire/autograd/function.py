"""``torch.autograd.function``: operations whose forward and derivative are the program's own."""

from .._core.backward.function import Function, FunctionCtx, InplaceFunction, once_differentiable

_SingleLevelFunction, _ContextMethodMixin, _HookMixin = Function, FunctionCtx, FunctionCtx
FunctionMeta, BackwardCFunction = type(Function), FunctionCtx

__all__ = ["Function", "FunctionCtx", "InplaceFunction", "once_differentiable"]
