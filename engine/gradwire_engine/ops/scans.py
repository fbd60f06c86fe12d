"""Kernels and derivatives of scans."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan, pi
from typing import Any

import numpy as np

from gradwire_protocol.dtypes import DType

from ..autograd.functional import F, conj
from ..autograd.registry import derivative, joint_derivative, kernel
from ..autograd.tape import Saved
from ..autograd.tensor import Tensor
from ..numerics import special
from ..numerics.axes import along, at_least_1d, flipped, recurrence, running, undefined
from ..runtime import deadline
from ..runtime.arrays import Array, Namespace


def _scan(name: str) -> Callable[..., Any]:
    def scan(xp: Namespace, x: Array, dim: int, dtype: DType | None) -> Array:
        return getattr(xp, name)(at_least_1d(x), axis=dim, dtype=xp.int64 if x.dtype.kind in "biu" else None)

    return scan


kernel("cumsum")(_scan("cumsum"))
kernel("cumprod")(_scan("cumprod"))


def from_the_end(g: Tensor, dim: int) -> Tensor:
    """Running sums that begin at the last element."""
    return F.flip(F.cumsum(F.flip(g, (dim,)), dim), (dim,))


derivative("cumsum", self=lambda s, g: from_the_end(g, s.dim) if g.ndim else g)


def _cumprod_gradient(s: Saved, g: Tensor) -> Tensor:
    if g.ndim == 0:
        return g
    later = F.linear_recurrence(conj(F.shift(s.self, s.dim, -1)), g, s.dim, True)
    return conj(F.shift(s.result, s.dim, 1, 1)) * later


derivative("cumprod", self=("self result", _cumprod_gradient))


@kernel("logcumsumexp")
def logcumsumexp(xp: Namespace, x: Array, dim: int) -> Array:
    x = at_least_1d(x)
    if x.dtype.kind == "c":
        return xp.moveaxis(_complex_logcumsumexp(xp, xp.moveaxis(x, dim, -1)), -1, dim)
    return running(xp, "logaddexp", x, dim)


def _complex_logcumsumexp(xp: Namespace, x: Array) -> Array:
    """Along the last axis. The angle is not reduced to one turn: each step turns it from that of the larger of the sum
    so far and the next term, as PyTorch's one after the other."""
    if xp is np and not np.isfinite(x).all():
        return _step_by_step(x)
    out = x.copy()
    distance = 1
    while distance < x.shape[-1]:
        out[..., distance:] = special.logaddexp(xp, out[..., distance:], out[..., :-distance])
        distance *= 2
    if x.shape[-1] < 2:
        return out
    turns = 2 * pi
    angle, begins = out.imag, xp.ones(x.shape, bool)
    begins[..., 1:] = out.real[..., :-1] < x.real[..., 1:]
    change = xp.where(begins, angle - x.imag, 0)
    change[..., 1:] += xp.where(begins[..., 1:], 0, angle[..., 1:] - angle[..., :-1])
    change = change - turns * xp.rint(change / turns)
    along_runs = xp.cumsum(change, axis=-1)
    last = running(xp, "maximum", xp.where(begins, xp.arange(x.shape[-1]), 0), -1)
    origin = xp.where(begins, x.imag + change - along_runs, 0)
    out.imag = xp.take_along_axis(origin, last, -1) + along_runs
    return out


def _step_by_step(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Along the last axis, where sums are not associative: with NaN, or an infinite term. A sum with NaN is NaN in both
    parts. Minus infinity stands for nothing and has no angle; infinity has the angle of the whole sum."""
    out = x.copy()
    out[np.isneginf(x.real) & ~np.isnan(x)] = -inf
    out[np.isnan(x)] = complex(nan, nan)
    for i in range(1, x.shape[-1]):
        if not i & 0xFFF:
            deadline.check("logcumsumexp")
        before, term = out[..., i - 1], x[..., i]
        larger = before.real >= term.real
        big, small = np.where(larger, before, term), np.where(larger, term, before)
        alike = np.isinf(big.real) & (big.real == small.real)
        found = big + np.log1p(np.exp(small - big))
        found = np.where(np.isneginf(small.real) | (np.isposinf(big.real) & ~alike), big, found)
        found = np.where(alike, np.where(big.real < 0, before, np.log(np.exp(before) + np.exp(term))), found)
        out[..., i] = np.where(np.isnan(before) | np.isnan(term), complex(nan, nan), found)
    return out


def _logcumsumexp_gradient(s: Saved, g: Tensor) -> Tensor:
    x, y = s.self, s.result
    if g.ndim == 0:
        return g
    decay = conj(F.exp(y - F.shift(y, s.dim, -1, inf)))
    return conj(F.exp(x - y)) * F.linear_recurrence(decay, g, s.dim, True)


derivative("logcumsumexp", self=("self result", _logcumsumexp_gradient))

for _name, _combine in (("cummax", "maximum"), ("cummin", "minimum")):

    @kernel(_name)
    def _(xp: Namespace, x: Array, dim: int, combine: str = _combine) -> tuple[Array, Array]:
        x = at_least_1d(x)
        values = running(xp, combine, x, dim)
        n = x.shape[dim]
        place = xp.arange(n).reshape([n if i == dim % x.ndim else 1 for i in range(x.ndim)])
        reached = (x == values) | undefined(xp, x)
        return values, running(xp, "maximum", xp.where(reached, place, 0), dim)

    derivative(
        _name, self=("result1", lambda s, g, _: F.gather_backward(g, s.meta("self").shape, s.dim, s.result1, False))
    )


# Primitives


@kernel("shift", half=True)
def shift(xp: Namespace, x: Array, dim: int, by: int, fill: float) -> Array:
    moved = xp.full_like(x, fill)
    if abs(by) < x.shape[dim]:
        if by < 0:
            moved[along(x, dim, None, by)] = x[along(x, dim, -by)]
        else:
            moved[along(x, dim, by)] = x[along(x, dim, None, -by or None)]
    return moved


derivative("shift", self=lambda s, g: F.shift(g, s.dim, -s.by))


@kernel("linear_recurrence")
def linear_recurrence(xp: Namespace, factor: Array, term: Array, dim: int, reverse: bool) -> Array:
    if reverse:
        return flipped(recurrence(xp, flipped(factor, dim), flipped(term, dim), dim), dim)
    return recurrence(xp, factor, term, dim)


@joint_derivative("linear_recurrence", saves="factor result")
def _(s: Saved, g: Tensor) -> tuple[Tensor | None, Tensor | None]:
    step = 1 if s.reverse else -1
    by_term = F.linear_recurrence(conj(F.shift(s.factor, s.dim, step)), g, s.dim, not s.reverse)
    by_factor = by_term * conj(F.shift(s.result, s.dim, -step)) if s.needs("factor") else None
    return by_factor, by_term
