"""``torch.masked``: reductions and normalisations over unmasked elements.

An element is unmasked where the mask is True; without a mask, all are. A reduction of no elements has its empty value.
A normalisation's result at masked positions is undefined, as in torch.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from gradwire_protocol import dtypes
from gradwire_protocol.dtypes import DType

from ._core.dispatch.dispatch import call
from ._core.surface.methods import FUNCTIONS
from ._core.tensor.tensor import Tensor

__all__ = [
    "amax", "amin", "argmax", "argmin", "cumprod", "cumsum", "log_softmax", "logaddexp", "logsumexp", "mean", "median",
    "norm", "normalize", "prod", "softmax", "softmin", "std", "sum", "var",
]  # fmt: skip


def _filled(input: Tensor, mask: Tensor | None, value: Any) -> Tensor:
    """``input`` with a neutral value for masked elements."""
    if mask is None:
        return input
    found: Tensor = call("where", mask.to(dtypes.bool_), input, call("full_like", input, value))
    return found


def _accumulated(input: Tensor, dtype: DType | None) -> Tensor:
    """Cast to the dtype of a sum: by default int64 for integers."""
    if dtype is None and input.dtype.category < dtypes.FLOATING:
        dtype = dtypes.int64
    return input if dtype is None else input.to(dtype)


def _dims(input: Tensor, dim: Any) -> tuple[int, ...]:
    if dim is None or dim == ():
        return tuple(range(input.ndim))
    return (dim,) if isinstance(dim, int) else tuple(dim)


def _lowest(dtype: DType) -> Any:
    return -math.inf if dtype.category >= dtypes.FLOATING else _limits(dtype)[0]


def _highest(dtype: DType) -> Any:
    return math.inf if dtype.category >= dtypes.FLOATING else _limits(dtype)[1]


def _limits(dtype: DType) -> tuple[int, int]:
    if dtype is dtypes.bool_:
        return 0, 1
    bits = 8 * dtype.itemsize
    return (0, 2**bits - 1) if not dtype.is_signed else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def _count(input: Tensor, dims: tuple[int, ...], keepdim: bool, mask: Tensor | None) -> Any:
    """The number of unmasked elements per reduction."""
    ones = call("ones_like", input, dtype=dtypes.int64) if mask is None else mask.to(dtypes.bool_).to(dtypes.int64)
    ones = call("expand", ones, tuple(input.shape))
    return call("sum", ones, dims, keepdim)


def sum(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    *,
    keepdim: bool = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The sum of the unmasked elements; 0 without any."""
    x = _accumulated(input, dtype)
    return call("sum", _filled(x, mask, 0), _dims(x, dim), keepdim)


def prod(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    *,
    keepdim: bool = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The product of the unmasked elements; 1 without any."""
    x = _filled(_accumulated(input, dtype), mask, 1)
    for at in sorted((d % max(x.ndim, 1) for d in _dims(x, dim)), reverse=True):
        x = FUNCTIONS["prod"](x, at, True)
    return x if keepdim else call("squeeze", x, tuple(d % max(x.ndim, 1) for d in _dims(x, dim)))


def _scan(name: str, x: Tensor, mask: Tensor | None, neutral: int, dim: int) -> Any:
    return call(name, _filled(x, mask, neutral), dim, x.dtype)


def cumsum(input: Tensor, dim: int, *, dtype: DType | None = None, mask: Tensor | None = None) -> Tensor:
    """Running sums of the unmasked elements."""
    return _scan("cumsum", _cast(input, dtype), mask, 0, dim)


def cumprod(input: Tensor, dim: int, *, dtype: DType | None = None, mask: Tensor | None = None) -> Tensor:
    """Running products of the unmasked elements."""
    return _scan("cumprod", _cast(input, dtype), mask, 1, dim)


def _cast(input: Tensor, dtype: DType | None) -> Tensor:
    return input if dtype is None else input.to(dtype)


def amax(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    *,
    keepdim: bool = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The greatest unmasked element; the dtype's lowest value without any."""
    x = _cast(input, dtype)
    return call("amax", _filled(x, mask, _lowest(x.dtype)), _dims(x, dim), keepdim)


def amin(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    *,
    keepdim: bool = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The least unmasked element; the dtype's highest value without any."""
    x = _cast(input, dtype)
    return call("amin", _filled(x, mask, _highest(x.dtype)), _dims(x, dim), keepdim)


def argmax(
    input: Tensor, dim: int | None = None, *, keepdim: bool = False, dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The index of the greatest unmasked element; in the dtype of ``input``, as in torch."""
    x = _cast(input, dtype)
    return call("argmax", _filled(x, mask, _lowest(x.dtype)), dim, bool(keepdim)).to(x.dtype)


def argmin(
    input: Tensor, dim: int | None = None, *, keepdim: bool = False, dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The index of the least unmasked element; in the dtype of ``input``, as in torch."""
    x = _cast(input, dtype)
    return call("argmin", _filled(x, mask, _highest(x.dtype)), dim, bool(keepdim)).to(x.dtype)


def mean(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    *,
    keepdim: bool = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The mean of the unmasked elements; NaN without any."""
    x = _accumulated(input, dtype)
    dims = _dims(x, dim)
    total = call("sum", _filled(x, mask, 0), dims, keepdim)
    return call("div", total, _count(x, dims, keepdim, mask))


def median(
    input: Tensor, dim: int = -1, *, keepdim: bool = False, dtype: DType | None = None, mask: Tensor | None = None
) -> Tensor:
    """The lower median of the unmasked elements; NaN without any. Floating point only."""
    x = _cast(input, dtype)
    return FUNCTIONS["nanmedian"](_filled(x, mask, math.nan), dim, bool(keepdim))[0]


def norm(
    input: Tensor, ord: float | None = 2.0, dim: int | Sequence[int] | None = None, *, keepdim: bool = False,
    dtype: DType | None = None, mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The vector norm of the unmasked elements."""
    x = _cast(input, dtype)
    order = 2.0 if ord is None else float(ord)
    neutral = math.inf if order < 0 else 0
    return call("norm", _filled(x, mask, neutral), order, _dims(x, dim), keepdim)


def _deviations(
    input: Tensor, dim: Any, unbiased: Any, correction: Any, keepdim: bool, dtype: DType | None, mask: Any
) -> Any:
    """The variance of the unmasked elements."""
    x = _accumulated(input, dtype)
    if x.dtype.category < dtypes.FLOATING:
        x = x.to(dtypes.float32)
    dims = _dims(x, dim)
    count = _count(x, dims, True, mask)
    centre = call("div", call("sum", _filled(x, mask, 0), dims, True), count)
    away = call("sub", x, centre)
    squares = call("mul", away, away.conj()).real if x.is_complex() else call("mul", away, away)
    total = call("sum", _filled(squares, mask, 0), dims, keepdim)
    if not keepdim:
        count = call("squeeze", count, dims)
    if correction is None:
        correction = 1 if unbiased is None or unbiased else 0
    if correction:
        count = call("clamp_min", call("sub", count.to(x.dtype.to_real()), correction), 0)
    return call("div", total, count).to(x.dtype)


def var(
    input: Tensor, dim: int | Sequence[int] | None = None, unbiased: bool | None = None, *,
    correction: float | None = None, keepdim: bool = False, dtype: DType | None = None, mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The variance of the unmasked elements, by default unbiased."""
    return _deviations(input, dim, unbiased, correction, keepdim, dtype, mask)


def std(
    input: Tensor, dim: int | Sequence[int] | None = None, unbiased: bool | None = None, *,
    correction: float | None = None, keepdim: bool = False, dtype: DType | None = None, mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The standard deviation of the unmasked elements, by default unbiased."""
    return call("sqrt", _deviations(input, dim, unbiased, correction, keepdim, dtype, mask))


def softmax(input: Tensor, dim: int, *, dtype: DType | None = None, mask: Tensor | None = None) -> Tensor:
    """Softmax over the unmasked elements."""
    x = _cast(input, dtype)
    return call("softmax", _filled(x, mask, -math.inf), dim)


def log_softmax(input: Tensor, dim: int, *, dtype: DType | None = None, mask: Tensor | None = None) -> Tensor:
    """The logarithm of :func:`softmax`."""
    x = _cast(input, dtype)
    return call("log_softmax", _filled(x, mask, -math.inf), dim)


def softmin(input: Tensor, dim: int, *, dtype: DType | None = None, mask: Tensor | None = None) -> Tensor:
    """:func:`softmax` of the negative."""
    x = _cast(input, dtype)
    return call("softmax", call("neg", _filled(x, mask, math.inf)), dim)


def normalize(
    input: Tensor, ord: float, dim: int, *, eps: float = 1e-12, dtype: DType | None = None, mask: Tensor | None = None
) -> Tensor:
    """The unmasked elements divided by their norm, which is at least ``eps``."""
    x = _cast(input, dtype)
    length = norm(x, ord, dim, keepdim=True, mask=mask)
    least = call("clamp_min", length, eps)
    return call("div", _filled(x, mask, 0), least)


def logaddexp(
    input: Tensor, other: Tensor, *, dtype: DType | None = None, input_mask: Tensor | None = None,
    other_mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """``log(exp(input) + exp(other))`` over the unmasked elements of both."""
    x, y = _cast(input, dtype), _cast(other, dtype)
    return call("logaddexp", _filled(x, input_mask, -math.inf), _filled(y, other_mask, -math.inf))


def logsumexp(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    *,
    keepdim: bool = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The logarithm of the sum of exponentials of the unmasked elements; minus infinity without any."""
    x = _cast(input, dtype)
    found = call("logsumexp", _filled(x, mask, _lowest(x.dtype)), _dims(x, dim), keepdim)
    return found.to(x.dtype)
