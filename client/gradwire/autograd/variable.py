"""``torch.autograd.Variable``: what a tensor that requires grad was called before PyTorch 0.4."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradwire_protocol.errors import ArgumentTypeError

from .._core.backward.client_backward import current_backward
from .._core.tensor.tensor import Tensor


class _VariableType(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor)

    def __call__(cls, data: Any = None, requires_grad: bool = False, volatile: Any = None) -> Any:
        if not isinstance(data, Tensor):
            raise ArgumentTypeError(f"a Variable is made from a tensor, not from {type(data).__name__}")
        made = data.data
        return made.requires_grad_() if requires_grad else made


class _ExecutionEngine:
    """What programs ask of the backward that runs."""

    @staticmethod
    def queue_callback(callback: Callable[[], Any]) -> None:
        """Call ``callback`` when the backward whose hook or Function is running has computed every gradient.

        Raises:
            GraphError: outside of a backward.
        """
        current_backward().when_finished(callback)


class Variable(metaclass=_VariableType):
    """``Variable(x, requires_grad=True)`` is a leaf with the memory of ``x``; every tensor is an instance."""

    _execution_engine = _ExecutionEngine()
