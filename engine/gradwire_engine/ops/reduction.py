"""Kernels and derivatives of reductions."""

from __future__ import annotations

from math import copysign, inf, isinf
from typing import Any

import numpy as np

from gradwire_protocol.dtypes import DType
from gradwire_protocol.meta import Meta
from gradwire_protocol.shapes import canonical_dims, reduced_shape

from ..autograd.functional import F, conj
from ..autograd.registry import derivative, flat_at_zero, joint_derivative, kernel
from ..autograd.tape import Saved
from ..autograd.tensor import Tensor
from ..numerics.axes import at_least_1d, axes_of, count, extreme, total, total_of_products
from ..runtime.arrays import Array, Namespace, Native

# How gradients get back to the shape from before a reduction


def restored(g: Tensor, self: Meta, dim: int | tuple[int, ...] | None, keepdim: bool) -> Tensor:
    """A reduced tensor with its lost dimensions as extents of 1, so that it broadcasts against the operand."""
    if keepdim or dim is None or dim == () or g.ndim == self.ndim:
        return g
    return F.reshape(g, reduced_shape(self.shape, canonical_dims(dim, self.ndim), True))


def spread(g: Tensor, self: Meta, dim: int | tuple[int, ...] | None, keepdim: bool) -> Tensor:
    """A reduced tensor expanded to the shape of the operand."""
    return F.spread(g, self.shape, dim, keepdim)


def elements(self: Meta, dim: int | tuple[int, ...] | None) -> int:
    """How many elements of the operand go into one of the result."""
    n = 1
    for d in canonical_dims(dim, self.ndim) if self.ndim else ():
        n *= self.shape[d]
    return n


# Sums and moments


@kernel("sum")
def sum(xp: Namespace, x: Array, dim: int | tuple[int, ...] | None, keepdim: bool, dtype: DType | None) -> Array:
    if x.dtype.kind in "biu":
        return x.sum(axis=axes_of(x, dim), dtype=xp.int64)
    return total(xp, x, axes_of(x, dim))


derivative("sum", self=lambda s, g: spread(g, s.meta("self"), s.dim, s.keepdim))


@kernel("nansum")
def nansum(xp: Namespace, x: Array, dim: int | tuple[int, ...] | None, keepdim: bool, dtype: DType | None) -> Array:
    if x.dtype.kind == "f":
        x = xp.where(xp.isnan(x), x.dtype.type(0), x)
    return sum(xp, x, dim, keepdim, dtype)


derivative("nansum", self=("self", lambda s, g: spread(g, s.self.meta, s.dim, s.keepdim) * ~F.isnan(s.self)))


@kernel("mean")
def mean(xp: Namespace, x: Array, dim: int | tuple[int, ...] | None, keepdim: bool, dtype: DType | None) -> Array:
    axes = axes_of(x, dim)
    return xp.divide(total(xp, x, axes), x.dtype.type(count(x, axes)))


def _mean_gradient(s: Saved, g: Tensor) -> Tensor:
    self = s.meta("self")
    return spread(g / (elements(self, s.dim) or 1), self, s.dim, s.keepdim)


derivative("mean", self=_mean_gradient)


@kernel("nanmean")
def nanmean(xp: Namespace, x: Array, dim: int | tuple[int, ...] | None, keepdim: bool, dtype: DType | None) -> Array:
    axes, present = axes_of(x, dim), ~xp.isnan(x)
    summed = total(xp, xp.where(present, x, x.dtype.type(0)), axes)
    return xp.divide(summed, xp.sum(present, axis=axes).astype(x.dtype))


def _nanmean_gradient(s: Saved, g: Tensor) -> Tensor:
    present = ~F.isnan(s.self)
    return restored(g, s.self.meta, s.dim, s.keepdim) / F.sum(present, s.dim, True) * present


derivative("nanmean", self=("self", _nanmean_gradient))


def _moments(xp: Namespace, x: Array, dim: int | tuple[int, ...] | None, correction: float) -> tuple[Array, Array]:
    """(variance, mean), with the reduced axes kept."""
    axes = axes_of(x, dim)
    n = count(x, axes)
    centre = xp.divide(total(xp, x, axes, True), x.dtype.type(n))
    distance = x - centre
    if x.dtype.kind == "c":
        squares = total(xp, distance.real * distance.real + distance.imag * distance.imag, axes, True)
    else:
        squares = total_of_products(xp, distance, distance, axes, True)
    left = n - correction
    return xp.divide(squares, squares.dtype.type(left if left > 0 else 0)), centre


@kernel("var")
def var(xp: Namespace, x: Array, dim: int | tuple[int, ...] | None, correction: float, keepdim: bool) -> Array:
    return _moments(xp, x, dim, correction)[0]


@kernel("std")
def std(xp: Namespace, x: Array, dim: int | tuple[int, ...] | None, correction: float, keepdim: bool) -> Array:
    return xp.sqrt(_moments(xp, x, dim, correction)[0])


@kernel("var_mean")
def var_mean(
    xp: Namespace, x: Array, dim: int | tuple[int, ...] | None, correction: float, keepdim: bool
) -> tuple[Array, Array]:
    return _moments(xp, x, dim, correction)


@kernel("std_mean")
def std_mean(
    xp: Namespace, x: Array, dim: int | tuple[int, ...] | None, correction: float, keepdim: bool
) -> tuple[Array, Array]:
    spread_, centre = _moments(xp, x, dim, correction)
    return xp.sqrt(spread_), centre


def _var_gradient(s: Saved, g: Tensor) -> Tensor:
    x = s.self
    left = elements(x.meta, s.dim) - s.correction
    distance = x - F.mean(x, s.dim, True)
    g = restored(g, x.meta, s.dim, s.keepdim)
    return g * (2 / left) * distance if left > 0 else g * (inf * distance)


def _std_gradient(s: Saved, g: Tensor, result: Tensor) -> Tensor:
    return _var_gradient(s, F.masked_fill(g / (result * 2), result == 0, 0))


derivative("var", self=("self", _var_gradient))
derivative("std", self=("self result", lambda s, g: _std_gradient(s, g, s.result)))


@joint_derivative("var_mean", saves="self", undefined=True)
def _(s: Saved, spread_: Tensor | None, centre: Tensor | None) -> Any:
    first = None if spread_ is None else _var_gradient(s, spread_)
    second = None if centre is None else _mean_gradient(s, centre)
    return second if first is None else first if second is None else first + second


@joint_derivative("std_mean", saves="self result0", undefined=True)
def _(s: Saved, spread_: Tensor | None, centre: Tensor | None) -> Any:
    first = None if spread_ is None else _std_gradient(s, spread_, s.result0)
    second = None if centre is None else _mean_gradient(s, centre)
    return second if first is None else first if second is None else first + second


flat_at_zero("std", "std_mean")


@kernel("prod")
def prod(xp: Namespace, x: Array, dim: int | None, keepdim: bool, dtype: DType | None) -> Array:
    return xp.prod(x, axis=axes_of(x, dim), dtype=xp.int64 if x.dtype.kind in "biu" else None)


def product_of_others(x: Tensor, dim: int) -> Tensor:
    """For each element the product of all others along ``dim``, without dividing by it."""
    before = F.shift(F.cumprod(x, dim), dim, 1, 1)
    after = F.flip(F.shift(F.cumprod(F.flip(x, (dim,)), dim), dim, 1, 1), (dim,))
    return before * after


def _prod_gradient(s: Saved, g: Tensor) -> Tensor:
    x = s.self
    if x.ndim == 0:
        return g
    if s.dim is None:
        others: Tensor = F.reshape(product_of_others(F.reshape(x, (-1,)), 0), x.shape) if x.numel else x
    else:
        others = product_of_others(x, s.dim)
    return restored(g, x.meta, s.dim, s.keepdim) * conj(others)


derivative("prod", self=("self", _prod_gradient))


def order_in(p: float, dtype: Native) -> float:
    """The order of a norm as the dtype in which it is computed holds it: a large one is infinite."""
    with np.errstate(over="ignore"):  # not finfo, which does not know bfloat16
        return copysign(inf, p) if np.isinf(np.float64(p).astype(dtype)) else p


@kernel("norm")
def norm(
    xp: Namespace, x: Array, p: float, dim: int | tuple[int, ...] | None, keepdim: bool, dtype: DType | None
) -> Array:
    axes = axes_of(x, dim)
    if p == 2:
        if x.dtype.kind == "c":
            return xp.sqrt(total(xp, x.real * x.real + x.imag * x.imag, axes))
        return xp.sqrt(total_of_products(xp, x, x, axes))
    if p == 0:
        return (x != 0).sum(axis=axes).astype(x.real.dtype)
    size = xp.abs(x)
    if p == 1:
        return total(xp, size, axes)
    if isinf(p):
        return extreme(xp, size, axes, largest=p > 0)
    return total(xp, size**p, axes) ** (1 / order_in(p, size.dtype))


def _norm_gradient(s: Saved, g: Tensor) -> Tensor:
    x = s.self
    g, result = restored(g, x.meta, s.dim, s.keepdim), restored(s.result, x.meta, s.dim, s.keepdim)
    return gradient_of_norm(x, result, g, s.p, s.dim)


def gradient_of_norm(x: Tensor, result: Tensor, g: Tensor, p: float, dim: int | tuple[int, ...] | None) -> Tensor:
    """The gradient by ``x`` of its norm of order ``p``; norm and gradient have kept the dimensions that are gone."""
    if p == 0:
        return F.zeros_like(x)
    if p == 1:
        return F.sgn(x) * g
    none = result == 0
    if p == 2:
        return x * F.masked_fill(g / F.masked_fill(result, none, 1), none, 0)
    if isinf(p):
        size = F.abs(x)
        equal = (size == result) | (F.isnan(x) & F.isnan(result))
        return F.sgn(x) * F.masked_fill(g / F.sum(equal, dim, True), ~equal, 0)
    if p < 1:
        return F.sgn(x) * F.masked_fill(F.abs(x) ** (p - 1), x == 0, 0) * g * result ** (1 - p)
    scale = F.masked_fill(g / F.masked_fill(result, none, 1) ** (p - 1), none, 0)
    if p < 2:
        return F.sgn(x) * F.abs(x) ** (p - 1) * scale
    return x * F.abs(x) ** (p - 2) * scale


derivative("norm", self=("self result", _norm_gradient))


@kernel("count_nonzero")
def count_nonzero(xp: Namespace, x: Array, dim: int | tuple[int, ...] | None) -> Array:
    return (x != 0).sum(axis=axes_of(x, dim))


# Truths

for _name in ("all", "any"):

    @kernel(_name)
    def _(xp: Namespace, x: Array, dim: int | tuple[int, ...] | None, keepdim: bool, find: str = _name) -> Any:
        return getattr(xp, find)(x, axis=() if dim == () else axes_of(x, dim))


# Sums of exponentials


@kernel("logsumexp")
def logsumexp(xp: Namespace, x: Array, dim: int | tuple[int, ...] | None, keepdim: bool) -> Array:
    axes = axes_of(x, dim)
    if count(x, axes) == 0:
        return xp.log(xp.sum(x, axis=axes))
    top = extreme(xp, x.real if x.dtype.kind == "c" else x, axes, True)
    top = xp.where(xp.isinf(top), top.dtype.type(0), top)
    return xp.log(total(xp, xp.exp(x - top), axes, True)) + top


derivative(
    "logsumexp",
    self=(
        "self result",
        lambda s, g: (
            restored(g, s.self.meta, s.dim, s.keepdim)
            * conj(F.exp(s.self - restored(s.result, s.self.meta, s.dim, s.keepdim)))
        ),
    ),
)


@kernel("softmax")
def softmax(xp: Namespace, x: Array, dim: int, dtype: DType | None) -> Array:
    x = at_least_1d(x)
    if x.size == 0:
        return x.copy()
    axes = axes_of(x, dim)
    weight = x - extreme(xp, x, axes, True)
    xp.exp(weight, out=weight)
    weight /= total(xp, weight, axes, True)
    return weight


@kernel("log_softmax")
def log_softmax(xp: Namespace, x: Array, dim: int, dtype: DType | None) -> Array:
    x = at_least_1d(x)
    if x.size == 0:
        return x.copy()
    axes = axes_of(x, dim)
    shifted = x - extreme(xp, x, axes, True)
    shifted -= xp.log(total(xp, xp.exp(shifted), axes, True))
    return shifted


derivative("softmax", self=("result", lambda s, g: F.softmax_backward(g, s.result, s.dim)))
derivative("log_softmax", self=("result", lambda s, g: F.log_softmax_backward(g, s.result, s.dim)))


@kernel("softmax_backward")
def softmax_backward(xp: Namespace, g: Array, output: Array, dim: int) -> Array:
    g, output = at_least_1d(g), at_least_1d(output)
    shared = g - total_of_products(xp, g, output, axes_of(g, dim), True)
    shared *= output
    return shared


@kernel("log_softmax_backward")
def log_softmax_backward(xp: Namespace, g: Array, output: Array, dim: int) -> Array:
    g, output = at_least_1d(g), at_least_1d(output)
    weight = xp.exp(output)
    weight *= total(xp, g, axes_of(g, dim), True)
    return xp.subtract(g, weight, out=weight)


derivative(
    "softmax_backward",
    grad=("output", lambda s, h: F.softmax_backward(h, s.output, s.dim)),
    output=(
        "grad output",
        lambda s, h: h * (s.grad - F.sum(s.grad * s.output, s.dim, True)) - s.grad * F.sum(h * s.output, s.dim, True),
    ),
)
derivative(
    "log_softmax_backward",
    grad=("output", lambda s, h: h - F.sum(h * F.exp(s.output), s.dim, True)),
    output=("grad output", lambda s, h: -(h * F.exp(s.output) * F.sum(s.grad, s.dim, True))),
)
