"""Normalisations under the names that PyTorch's own implementation has for them, with their statistics; padding."""

from __future__ import annotations

from typing import Any

from gradwire_protocol.dtypes import float32
from gradwire_protocol.errors import DTypeError

from ..creation import empty
from ..dispatch import call
from ..methods import offer
from ..modes import no_grad
from ..tensor import Tensor


def _statistics(input: Tensor, dims: tuple[int, ...], keepdim: bool, eps: float) -> tuple[Any, Any]:
    """Mean and reciprocal deviation."""
    wide = call("to", input, _wide(input))
    variance, mean = call("var_mean", wide, dims, 0, keepdim)
    deviation = call("rsqrt", call("add", variance, eps))
    return call("to", mean, input.dtype), call("to", deviation, input.dtype)


def _wide(input: Tensor) -> Any:
    return float32 if input.dtype.is_low_precision else input.dtype


def native_layer_norm(
    input: Tensor, normalized_shape: Any, weight: Tensor | None, bias: Tensor | None, eps: float
) -> Any:
    """:func:`gradwire.nn.functional.layer_norm`, and the mean and the reciprocal deviation that it divided by."""
    shape = tuple(normalized_shape)
    result = call("layer_norm", input, shape, weight, bias, eps)
    with no_grad():
        statistics = _statistics(input, tuple(range(input.ndim - len(shape), input.ndim)), True, eps)
    return (result, *statistics)


def native_group_norm(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, N: int, C: int, HxW: int, group: int, eps: float
) -> Any:
    """:func:`gradwire.nn.functional.group_norm`, and the mean and the reciprocal deviation of each group."""
    result = call("group_norm", input, group, weight, bias, eps)
    groups = call("reshape", input, (N, group, C // group * HxW))
    return (result, *_statistics(groups, (2,), False, eps))


def native_batch_norm(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None, running_var: Tensor | None,
    training: bool, momentum: float, eps: float,
) -> Any:  # fmt: skip
    """:func:`gradwire.nn.functional.batch_norm`, and in training the mean and the reciprocal deviation of each
    channel."""
    result = call("batch_norm", input, running_mean, running_var, weight, bias, training, momentum, eps)
    if not training:
        return result, empty(0, dtype=input.dtype), empty(0, dtype=input.dtype)
    with no_grad():
        dims = (0, *range(2, input.ndim))
        return (result, *_statistics(input, dims, False, eps))


def constant_pad_nd(input: Tensor, pad: Any, value: Any = 0) -> Any:
    """Surround with a border of ``value``: ``pad`` holds (before, after) for the last dimension, the one before, ..."""
    if isinstance(value, complex):
        if input.is_complex():
            parts = ((input.real, value.real), (input.imag, value.imag))
            return call("complex", *[call("pad", part, tuple(pad), "constant", fill) for part, fill in parts])
        if value.imag:
            raise DTypeError(f"constant_pad_nd: {value} does not fit into a {input.dtype.name} tensor")
        value = value.real
    return call("pad", input, tuple(pad), "constant", value)


for _function in (native_layer_norm, native_group_norm, native_batch_norm, constant_pad_nd):
    offer(_function, method=False)
