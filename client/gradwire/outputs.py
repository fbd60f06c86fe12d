"""``out=``: results written into tensors that the caller brings, and ``resize_``."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import wraps
from math import prod
from typing import Any

from gradwire_protocol.errors import ArgumentTypeError, DeviceError, DTypeError, GraphError
from gradwire_protocol.promotion import can_cast

from .dispatch import call
from .modes import is_grad_enabled, no_grad
from .tensor import Tensor

_EXACT = frozenset({"multinomial"})
"""Functions whose ``out`` must have the result's dtype, not only one that holds it."""


def into(name: str, result: Any, out: Any) -> Any:
    """Write a result into ``out``, which takes its shape, and return ``out``.

    Several results go into a sequence of as many tensors.

    Raises:
        ArgumentTypeError: when ``out`` is no tensor, or not as many of them as there are results.
        GraphError: when a gradient would have to flow through the write.
        DTypeError: when the result cannot be cast to the dtype of ``out``.
        DeviceError: when ``out`` is on another device.
    """
    if isinstance(result, (tuple, list)):
        if not isinstance(out, (tuple, list)) or len(out) != len(result):
            raise ArgumentTypeError(f"{name}: out must be {len(result)} tensors, as many as there are results")
        written = [into(name, r, o) for r, o in zip(result, out)]
        return type(result)(*written) if hasattr(result, "_fields") else type(result)(written)
    if not isinstance(out, Tensor):
        raise ArgumentTypeError(f"{name}: out must be a tensor, not {type(out).__name__}")
    if is_grad_enabled() and (result.requires_grad or out.requires_grad):
        raise GraphError(f"{name}: out= does not record history; call it under no_grad(), or assign the result")
    if not can_cast(result.dtype, out.dtype) or (name in _EXACT and out.dtype is not result.dtype):
        raise DTypeError(f"{name}: a {result.dtype.name} result cannot be written into out of {out.dtype.name}")
    if result._meta.device != out._meta.device:
        raise DeviceError(f"{name}: the result is on {result.device}, out on {out.device}")
    if tuple(out.shape) != tuple(result.shape):
        if out.numel():
            warnings.warn(
                f"{name}: out of shape {list(out.shape)} takes the shape {list(result.shape)} of the result; "
                "bring an empty tensor to say that this is meant",
                stacklevel=3,
            )
        resize_(out, tuple(result.shape))
    with no_grad():
        out.copy_(result)
    return out


def accepts_out(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let a function that makes new tensors take ``out=``."""

    @wraps(function)
    def taking(*args: Any, **kwargs: Any) -> Any:
        out = kwargs.pop("out", None) if kwargs else None
        result = function(*args, **kwargs)
        return result if out is None else into(function.__name__, result, out)

    return taking


def resize_(self: Tensor, *sizes: Any, memory_format: Any = None) -> Any:
    """Give the tensor another shape in place; elements are kept in order, new ones are uninitialised.

    Raises:
        GraphError: for a tensor that requires grad.
    """
    if self.requires_grad:
        raise GraphError("resize_: a tensor that requires grad cannot be resized; resize its detach()")
    size = tuple(sizes[0]) if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)) else sizes
    if any(type(n) is not int or n < 0 for n in size):
        raise ArgumentTypeError(f"resize_: a size is a sequence of ints from 0 on, got {list(size)!r:.80}")
    wanted = prod(size)
    with no_grad():
        flat = call("reshape", self.detach(), (-1,))
        if wanted > self.numel():
            new = call("empty", (wanted - self.numel(),), dtype=self.dtype, device=self._meta.device)
            flat = call("cat", [flat, new], 0)
        self.data = call("reshape", flat[:wanted], size)
    return self


def resize_as_(self: Tensor, the_template: Tensor, *, memory_format: Any = None) -> Any:
    """:func:`resize_` to the shape of another tensor."""
    return resize_(self, tuple(the_template.shape))
