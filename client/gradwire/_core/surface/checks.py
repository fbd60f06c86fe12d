"""``torch._assert``, ``torch._check`` and its kin: conditions that a program states."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

from ..context.modes import MODES
from ..dispatch.dispatch import call
from ..dispatch.overrides import asked, handler_of
from ..tensor.tensor import Tensor

Message = Callable[[], object] | str | None


def _assert(condition: Any, message: str = "") -> None:
    """Check a condition. One that is a tensor is read, which waits for the server.

    A condition of a class that functions are left to (a proxy of ``torch.fx``) is left to it.

    Raises:
        AssertionError: when it is false.
    """
    if not MODES.without_classes and handler_of(type(condition)) is not None:
        asked(_assert, [condition], (condition, message), {})
        return
    if not condition:
        raise AssertionError(message)


def _assert_async(condition: Tensor, message: str = "the condition is false") -> None:
    """Check a tensor of one element. It is read, so that the error comes on this line.

    Raises:
        RuntimeError: when it is zero.
    """
    if not condition:
        raise RuntimeError(message)


def _text(message: Message) -> str:
    return "the condition is false" if message is None else str(message() if callable(message) else message)


def _check_with(error_type: type[Exception], cond: Any, message: Message) -> None:
    """Check a condition that is true or false.

    Raises:
        TypeError: for a condition that is a tensor.
        error_type: when it is false.
    """
    if not isinstance(cond, builtins.bool):
        raise TypeError(f"the condition is a bool, not {type(cond).__name__}")
    if not cond:
        raise error_type(_text(message))


def _check(cond: Any, message: Message = None) -> None:
    """Check a condition; a false one is a RuntimeError."""
    _check_with(RuntimeError, cond, message)


def _check_index(cond: Any, message: Message = None) -> None:
    """Check a condition; a false one is an IndexError."""
    _check_with(IndexError, cond, message)


def _check_value(cond: Any, message: Message = None) -> None:
    """Check a condition; a false one is a ValueError."""
    _check_with(ValueError, cond, message)


def _check_type(cond: Any, message: Message = None) -> None:
    """Check a condition; a false one is a TypeError."""
    _check_with(TypeError, cond, message)


def _check_not_implemented(cond: Any, message: Message = None) -> None:
    """Check a condition; a false one is a NotImplementedError."""
    _check_with(NotImplementedError, cond, message)


def _check_is_size(i: int, message: Message = None, *, max: int | None = None) -> None:
    """Check that a number is an extent."""
    _check(i >= 0 and (max is None or i <= max), message)


def _check_tensor_all_with(error_type: type[Exception], cond: Tensor, message: Message = None) -> None:
    """Check that all elements are true, which waits for the server.

    Raises:
        TypeError: for something else than a tensor of bool.
        error_type: when one is false.
    """
    if not isinstance(cond, Tensor):
        raise TypeError(f"the condition is a tensor, not {type(cond).__name__}")
    _check_with(error_type, builtins.bool(cond.all().item()), message)


def _check_tensor_all(cond: Tensor, message: Message = None) -> None:
    """Check that all elements are true; otherwise it is a RuntimeError."""
    _check_tensor_all_with(RuntimeError, cond, message)


def _shape_as_tensor(self: Tensor) -> Any:
    """The shape as a tensor."""
    from .creation import tensor

    return tensor(list(self.shape))


def _softmax_backward_data(grad_output: Tensor, output: Tensor, dim: int, input_dtype: Any) -> Any:
    """The gradient of softmax, from its result."""
    product = grad_output * output
    return (product - output * call("sum", product, dim, keepdim=True)).to(input_dtype)
