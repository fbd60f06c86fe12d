"""``torch.autograd.Variable``: what a tensor that requires grad was called before PyTorch 0.4."""

from __future__ import annotations

from typing import Any

from gradwire_protocol.errors import ArgumentTypeError

from ..tensor import Tensor


class _VariableType(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor)

    def __call__(cls, data: Any = None, requires_grad: bool = False, volatile: Any = None) -> Any:
        if not isinstance(data, Tensor):
            raise ArgumentTypeError(f"a Variable is made from a tensor, not from {type(data).__name__}")
        made = data.data
        return made.requires_grad_() if requires_grad else made


class Variable(metaclass=_VariableType):
    """``Variable(x, requires_grad=True)`` is a leaf with the memory of ``x``; every tensor is an instance."""
