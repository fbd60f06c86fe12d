"""``make_tensor``: random tensors of any dtype for tests."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

from gradwire_protocol import dtypes
from gradwire_protocol.dtypes import DType
from gradwire_protocol.errors import ArgumentTypeError, ArgumentValueError

from .._core.context.argument_types import Device
from .._core.context.layouts import memory_format
from .._core.context.modes import no_grad
from .._core.dispatch.dispatch import call
from .._core.surface.creation import empty, randint
from .._core.surface.number_limits import finfo, iinfo
from .._core.tensor.tensor import Tensor


def _range_of(dtype: DType) -> tuple[float, float, float, float]:
    """The lower and upper bound, and their defaults."""
    if dtype is dtypes.bool_:
        return 0, 2, 0, 2
    if dtype.category < dtypes.FLOATING:
        info = iinfo(dtype)
        return info.min, info.max + (dtype is not dtypes.int64), -9, 10
    limits = finfo(dtype.to_real())
    return limits.min, limits.max, -9, 9


def _bounds(dtype: DType, low: float | None, high: float | None) -> tuple[Any, Any]:
    lowest, highest, low_default, high_default = _range_of(dtype)
    low = low_default if low is None else low
    high = high_default if high is None else high
    if math.isnan(low) or math.isnan(high):
        raise ArgumentValueError(f"low and high are numbers, not {low} and {high}")
    if low == high and dtype.category >= dtypes.FLOATING:
        warnings.warn("low == high gives one value everywhere: use full()", FutureWarning, stacklevel=4)
    elif low >= high:
        raise ArgumentValueError(f"low must be below high, not {low} and {high}")
    elif high < lowest or low >= highest:
        raise ArgumentValueError(f"no {dtype.name} lies from {low} up to {high}: it goes from {lowest} to {highest}")
    low, high = (min(max(v, lowest), highest) for v in (low, high))
    return (low, high) if dtype.category >= dtypes.FLOATING else (math.ceil(low), math.ceil(high))


def make_tensor(
    *shape: Any,
    dtype: DType,
    device: Device,
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format: memory_format | None = None,
) -> Tensor:
    """A tensor of random values from ``low`` up to, not including, ``high``. It does not wait for the server.

    By default they are from -9 to 9 (9 included for integers), 0 to 9 for uint8, and both bools.

    Args:
        shape: extents, as ints or as one sequence.
        noncontiguous: every other element of a tensor twice as wide.
        exclude_zero: 1 in place of 0 for integers and bools, the smallest normal number for others.

    Raises:
        ArgumentValueError: for bounds that leave no value, for integers that require grad, and for both
            ``noncontiguous`` and ``memory_format``.
    """
    if len(shape) == 1 and isinstance(shape[0], Sequence):
        shape = tuple(shape[0])
    if noncontiguous and memory_format is not None:
        raise ArgumentValueError("noncontiguous and memory_format exclude each other")
    if not isinstance(dtype, DType):
        raise ArgumentTypeError(f"dtype is one of gradwire's, not {dtype!r:.40}")
    exact = dtype.category < dtypes.FLOATING
    if requires_grad and exact:
        raise ArgumentValueError(f"a {dtype.name} tensor cannot require a gradient")
    spread = noncontiguous and math.prod(shape) > 1
    size = (*shape[:-1], 2 * shape[-1]) if spread else shape
    low, high = _bounds(dtype, low, high)
    with no_grad():
        if exact:
            made = randint(int(low), int(high), size, dtype=dtype, device=device)
        else:
            made = empty(size, dtype=dtype, device=device)
            _fill(call("view_as_real", made) if dtype.is_complex else made, low, high)
        if spread:
            made = made[..., 1::2]
        elif memory_format is not None:
            made = made.clone(memory_format=memory_format)
        if exclude_zero:
            tiny = 1 if exact else finfo(dtype.to_real()).tiny
            fill = complex(tiny, tiny) if dtype.is_complex else tiny
            call("masked_fill_", made, call("eq", made, 0), fill)
    return made.requires_grad_() if requires_grad else made


def _fill(made: Any, low: float, high: float) -> None:
    if math.isinf(float(high) - float(low)) or high - low > finfo(made.dtype).max:
        call("uniform_", made, low / 2, high / 2)
        call("mul_", made, 2)
    else:
        call("uniform_", made, low, high)
