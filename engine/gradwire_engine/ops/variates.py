"""Random numbers of the gamma, Dirichlet, Poisson and binomial distributions, and how the first two move with their
parameters.

Parameters out of range are refused on a GPU too: rejection waits for it anyway, once per round.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradwire_protocol.dtypes import DType
from gradwire_protocol.errors import ArgumentError, Unsupported
from gradwire_protocol.meta import Meta

from ..autograd.functional import F
from ..autograd.registry import derivative, kernel
from ..numerics import rejection
from ..numerics.quantiles import dirichlet_shift, gamma_shift
from ..runtime.arrays import Array, Namespace
from ..runtime.random import Generator


def _concentrations(xp: Namespace, name: str, given: Array) -> Array:
    """As float64 in one dimension."""
    a = given.astype("d").reshape(-1)
    if not bool(xp.all((a > 0) | xp.isnan(a))):
        raise ArgumentError(f"{name}: some concentrations are not positive, the least is {float(a.min()):g}")
    return a


def _log_gamma(xp: Namespace, random: Generator, a: Array) -> Array:
    usable = (a > 0) & (a < xp.inf)
    return xp.where(usable, rejection.log_gamma(xp, random, xp.where(usable, a, 1.0)), xp.nan)


def _least(dtype: DType) -> float:
    """The smallest normal number: what is below it, gradients of logarithms cannot bear."""
    return float(np.finfo(np.float16).tiny) if dtype.name == "float16" else float(
        np.finfo(np.float32 if dtype.itemsize <= 4 else np.float64).tiny
    )  # fmt: skip


@kernel("standard_gamma", announced=True)
def standard_gamma(xp: Namespace, random: Generator, out: Meta, x: Array) -> Array:
    drawn = xp.exp(_log_gamma(xp, random, _concentrations(xp, "standard_gamma", x)))
    return xp.maximum(drawn, _least(out.dtype)).reshape(x.shape)


@kernel("sample_dirichlet", announced=True)
def sample_dirichlet(xp: Namespace, random: Generator, out: Meta, x: Array) -> Array:
    logs = _log_gamma(xp, random, _concentrations(xp, "sample_dirichlet", x)).reshape(x.shape)
    if not x.size:
        return logs
    weights = xp.exp(logs - logs.max(axis=-1, keepdims=True))
    return xp.maximum(weights / weights.sum(axis=-1, keepdims=True), _least(out.dtype))


@kernel("poisson")
def poisson(xp: Namespace, random: Generator, rate: Array) -> Array:
    flat = rate.astype("d").reshape(-1)
    if bool(xp.any(flat < 0)):
        raise ArgumentError(f"poisson: some rates are negative, the least is {float(flat.min()):g}")
    usable = (flat >= 0) & (flat < xp.inf)
    return xp.where(usable, rejection.poisson(xp, random, xp.where(usable, flat, 1.0)), xp.nan).reshape(rate.shape)


@kernel("binomial", announced=True)
def binomial(xp: Namespace, random: Generator, out: Meta, count: Array, p: Array) -> Array:
    n = xp.floor(xp.broadcast_to(count, out.shape).astype("d").reshape(-1))
    p = xp.broadcast_to(p, out.shape).astype("d").reshape(-1)
    if bool(xp.any(n < 0)):
        raise ArgumentError(f"binomial: some counts are negative, the least is {float(n.min()):g}")
    if bool(xp.any((p < 0) | (p > 1))):
        raise ArgumentError("binomial: some probabilities are outside 0 to 1")
    usable = (n >= 0) & (n < xp.inf) & (p >= 0) & (p <= 1)
    drawn = rejection.binomial(xp, random, xp.where(usable, n, 0.0), xp.where(usable, p, 0.5))
    return xp.where(usable, drawn, xp.nan).reshape(out.shape)


@kernel("sample_von_mises")
def sample_von_mises(xp: Namespace, random: Generator, concentration: Array) -> Array:
    k = _concentrations(xp, "sample_von_mises", concentration)
    usable = (k > 0) & (k < xp.inf)
    drawn = rejection.von_mises(xp, random, xp.where(usable, k, 1.0))
    return xp.where(usable, drawn, xp.nan).reshape(concentration.shape)


@kernel("standard_gamma_grad")
def standard_gamma_grad(xp: Namespace, a: Array, sample: Array) -> Array:
    return gamma_shift(xp, a.astype("d").reshape(-1), sample.astype("d").reshape(-1)).reshape(sample.shape)


@kernel("dirichlet_grad")
def dirichlet_grad(xp: Namespace, x: Array, alpha: Array, total: Array) -> Array:
    flat = [xp.broadcast_to(v, x.shape).astype("d").reshape(-1) for v in (x, alpha, total)]
    return dirichlet_shift(xp, *flat).reshape(x.shape)


def _once(name: str) -> Callable[..., Any]:
    def refuse(saved: Any, gradient: Any) -> Any:
        raise Unsupported(f"{name}: the derivative of a sample by its parameters has no second derivative")

    return refuse


def _dirichlet_gradient(saved: Any, g: Any) -> Any:
    x, alpha = saved.result, saved.self
    moved = F.dirichlet_grad(x, alpha, F.expand(F.sum(alpha, -1, True), alpha.shape))
    return moved * (g - F.sum(x * g, -1, True))


derivative("standard_gamma", self=("self result", lambda s, g: g * F.standard_gamma_grad(s.self, s.result)))
derivative("sample_dirichlet", self=("self result", _dirichlet_gradient))
derivative("poisson", self=lambda s, g: F.zeros_like(g))
derivative("binomial", prob=lambda s, g: F.zeros_like(g))
derivative("standard_gamma_grad", self=_once("standard_gamma"), sample=_once("standard_gamma"))
derivative(
    "dirichlet_grad", x=_once("sample_dirichlet"), alpha=_once("sample_dirichlet"), total=_once("sample_dirichlet")
)
