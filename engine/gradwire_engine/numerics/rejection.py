"""Random variates by rejection, for many parameters at once: each round draws anew for what the last one rejected.

Arrays are flat, of float64, and their values are in range: callers see to that. The rounds draw from a branch of the
session's generator, so that its position does not depend on what was rejected.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

from gradwire_protocol import dtypes
from gradwire_protocol.errors import KernelError

from ..runtime import deadline
from ..runtime.arrays import Array, Namespace
from ..runtime.random import Generator
from .scientific import scipy_of

MOST_ROUNDS: Final = 1_000
"""Every proposal is accepted with a probability of more than a half; what is not after so many rounds never will be."""

Attempt = Callable[..., tuple[Any, Any]]
"""``f(*parameters, draw)`` proposes a variate for each element: the proposals, and which of them are accepted.
``draw("normal")`` and ``draw("uniform")`` give an array of fresh numbers."""


def _until_accepted(xp: Namespace, random: Generator, attempt: Attempt, *parameters: Array) -> Array:
    found, accepted = _attempted(xp, random, attempt, parameters)
    rest = xp.nonzero(~accepted)[0]
    for _ in range(MOST_ROUNDS):
        if not rest.size:
            return found
        deadline.check("random variates")
        again, accepted = _attempted(xp, random, attempt, [p[rest] for p in parameters])
        found[rest[accepted]] = again[accepted]
        rest = rest[~accepted]
    raise KernelError(
        f"random variates: {rest.size} were rejected {MOST_ROUNDS} times; their parameters exceed float64"
    )


def _attempted(xp: Namespace, random: Generator, attempt: Attempt, parameters: Sequence[Array]) -> tuple[Array, Array]:
    shape = parameters[0].shape
    return attempt(xp, lambda kind: getattr(random, kind)(xp, shape, dtypes.float64), *parameters)


def log_gamma(xp: Namespace, random: Generator, a: Array) -> Array:
    """Logarithms of gamma variates of concentrations ``a``: small concentrations make variates below any float.

    Marsaglia and Tsang, "A simple method for generating gamma variables", 2000.
    """
    branch = random.branch()
    raised = xp.where(a < 1, a + 1, a)
    found = _until_accepted(xp, branch, _gamma_attempt, raised)
    lift = xp.log1p(-branch.uniform(xp, a.shape, dtypes.float64)) / a
    return found + xp.where(a < 1, lift, 0.0)


def _gamma_attempt(xp: Namespace, draw: Callable[..., Array], a: Array) -> tuple[Array, Array]:
    x, u = draw("normal"), draw("uniform")
    d = a - 1 / 3
    root = 1 + x / xp.sqrt(9 * d)
    log_v, v = 3 * xp.log(xp.maximum(root, 1e-300)), root**3
    return xp.log(d) + log_v, (v > 0) & (xp.log1p(-u) < x * x / 2 + d * (1 - v + log_v))


FEW = 10.0
"""Up to this mean, integers are counted one after the other; beyond it they are proposed and rejected."""


def poisson(xp: Namespace, random: Generator, rate: Array) -> Array:
    """Poisson variates: by counting up the distribution function, from ten on by transformed rejection.

    Hörmann, "The transformed rejection method for generating Poisson random variables", 1993.
    """
    branch = random.branch()
    many = rate >= FEW
    few_rate = xp.where(many, 1.0, rate)
    found = _count_up(xp, branch, xp.exp(-few_rate), lambda k: few_rate / (k + 1))
    chosen = xp.nonzero(many)[0]
    if chosen.size:
        found[chosen] = _until_accepted(xp, branch, _poisson_attempt, rate[chosen])
    return found


def _count_up(xp: Namespace, random: Generator, none: Array, ratio: Callable[[int], Array]) -> Array:
    """Integers by inversion, from the probability of 0 and the ratio of that of k + 1 to that of k."""
    level = random.uniform(xp, none.shape, dtypes.float64)
    found, chance, reached = xp.zeros(none.shape), none, none
    for k in range(120):  # beyond 10 by more than the resolution of the uniform numbers
        beyond = level >= reached
        if not bool(xp.any(beyond)):
            break
        found += beyond
        chance = chance * ratio(k)
        reached = reached + chance
    return found


def _poisson_attempt(xp: Namespace, draw: Callable[..., Array], rate: Array) -> tuple[Array, Array]:
    gammaln = scipy_of(xp, "special").gammaln
    u, v = draw("uniform") - 0.5, 1 - draw("uniform")
    b = 0.931 + 2.53 * xp.sqrt(rate)
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    rim = 0.5 - xp.abs(u)
    k = xp.floor((2 * a / rim + b) * u + rate + 0.43)
    inside = (rim >= 0.07) & (v <= 0.9277 - 3.6224 / (b - 2))
    possible = (k >= 0) & ((rim >= 0.013) | (v <= rim))
    height = xp.log(v * inverse_alpha / (a / (rim * rim) + b))
    below = height <= k * xp.log(rate) - rate - gammaln(xp.maximum(k, 0) + 1)
    return k, inside | (possible & below)


def binomial(xp: Namespace, random: Generator, count: Array, p: Array) -> Array:
    """Binomial variates of whole counts: by counting up, from a mean of ten on by transformed rejection.

    Hörmann, "The generation of binomial random variates", 1993.
    """
    branch = random.branch()
    rare = xp.minimum(p, 1 - p)  # of the rarer outcome
    many = count * rare >= FEW
    few = xp.where(many, 0.0, count)
    odds = rare / (1 - rare)
    found = _count_up(xp, branch, xp.exp(few * xp.log1p(-rare)), lambda k: odds * xp.maximum(few - k, 0) / (k + 1))
    found = xp.minimum(found, few)
    chosen = xp.nonzero(many)[0]
    if chosen.size:
        found[chosen] = _until_accepted(xp, branch, _binomial_attempt, count[chosen], rare[chosen])
    return xp.where(p > 0.5, count - found, found)


def _binomial_attempt(xp: Namespace, draw: Callable[..., Array], n: Array, p: Array) -> tuple[Array, Array]:
    gammaln = scipy_of(xp, "special").gammaln
    u, v = draw("uniform") - 0.5, 1 - draw("uniform")
    spread = xp.sqrt(n * p * (1 - p))
    b = 1.15 + 2.53 * spread
    a = -0.0873 + 0.0248 * b + 0.01 * p
    rim = 0.5 - xp.abs(u)
    k = xp.floor((2 * a / rim + b) * u + n * p + 0.5)
    inside = (rim >= 0.07) & (v <= 0.92 - 4.2 / b)
    possible = (k >= 0) & (k <= n)
    held = xp.clip(k, 0, n)
    mode = xp.floor((n + 1) * p)
    height = xp.log(v * (2.83 + 5.1 / b) * spread / (a / (rim * rim) + b))
    limit = (
        gammaln(mode + 1) + gammaln(n - mode + 1) - gammaln(held + 1) - gammaln(n - held + 1)
        + (held - mode) * xp.log(p / (1 - p))
    )  # fmt: skip
    return k, inside & possible | (possible & (height <= limit))


def von_mises(xp: Namespace, random: Generator, k: Array) -> Array:
    """Angles around 0 of concentrations ``k``, from a wrapped Cauchy distribution.

    Best and Fisher, "Efficient simulation of the von Mises distribution", 1979.
    """
    branch = random.branch()
    found = _until_accepted(xp, branch, _von_mises_attempt, k)
    right = branch.uniform(xp, k.shape, dtypes.float64) < 0.5
    return xp.where(right, found, -found)


def _von_mises_attempt(xp: Namespace, draw: Callable[..., Array], k: Array) -> tuple[Array, Array]:
    z, u = xp.cos(math.pi * draw("uniform")), 1 - draw("uniform")
    tau = 1 + xp.sqrt(1 + 4 * k * k)
    rho = (tau - xp.sqrt(2 * tau)) / (2 * k)
    r = xp.where(k < 1e-4, 1 / k + k, (1 + rho * rho) / (2 * rho))  # the limit, where the difference cancels
    cosine = xp.clip((1 + r * z) / (r + z), -1, 1)
    c = k * (r - cosine)
    return xp.arccos(cosine), (c * (2 - c) > u) | (xp.log(c / u) + 1 >= c)
