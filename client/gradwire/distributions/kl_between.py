"""KL divergences between distributions of different families.

``KL(p, q)`` is the mean of ``-log q`` under p less the entropy of p. What ``log q`` needs of p are a few means: of x,
its square, its logarithm, an exponential of it. Each p knows some of them, each q takes some of them.
"""

from __future__ import annotations

from math import inf, log, pi, sqrt
from typing import Any

from .bernoulli import Bernoulli
from .beta import Beta
from .binomial import Binomial
from .continuous_bernoulli import ContinuousBernoulli
from .exponential import Exponential
from .gamma import Gamma
from .gumbel import Gumbel
from .kl import register_kl
from .laplace import Laplace
from .library import gw
from .normal import Normal
from .parameters import euler_constant
from .pareto import Pareto
from .poisson import Poisson
from .uniform import Uniform

# The mean of log(x) under p.


def _times_log(x: Any) -> Any:
    return gw.xlogy(x, x)


def _mean_log(p: Any) -> Any:
    if isinstance(p, Beta):
        return gw.digamma(p.concentration1) - gw.digamma(p.concentration1 + p.concentration0)
    if isinstance(p, Gamma):
        return gw.digamma(p.concentration) - p.rate.log()
    if isinstance(p, Exponential):
        return -p.rate.log() - euler_constant
    if isinstance(p, Pareto):
        return p.scale.log() + 1 / p.alpha
    return (_times_log(p.high) - _times_log(p.low)) / (p.high - p.low) - 1  # uniform


def _mean_log_of_rest(p: Any) -> Any:
    """The mean of ``log(1 - x)`` under a uniform p."""
    return (_times_log(1 - p.low) - _times_log(1 - p.high)) / (p.high - p.low) - 1


def _mean_exp(p: Any, scale: Any) -> Any:
    """The mean of ``exp(-x / scale)`` under p."""
    if isinstance(p, Gamma):
        return (1 + 1 / (p.rate * scale)).pow(-p.concentration)
    if isinstance(p, Exponential):
        return p.rate / (p.rate + 1 / scale)
    if isinstance(p, Normal):
        return (0.5 * (p.scale / scale).pow(2) - p.loc / scale).exp()
    return ((-p.low / scale).exp() - (-p.high / scale).exp()) * scale / (p.high - p.low)  # uniform


# The mean of -log q under p, for each q.


def _of_exponential(p: Any, q: Any) -> Any:
    return q.rate * p.mean - q.rate.log()


def _of_gamma(p: Any, q: Any) -> Any:
    a = q.concentration
    return gw.lgamma(a) - a * q.rate.log() - (a - 1) * _mean_log(p) + q.rate * p.mean


def _of_normal(p: Any, q: Any) -> Any:
    away = p.variance + (p.mean - q.loc).pow(2)
    return q.scale.log() + log(2 * pi) / 2 + away / (2 * q.scale.pow(2))


def _of_beta(p: Any, q: Any) -> Any:
    a, b = q.concentration1, q.concentration0
    norm = gw.lgamma(a) + gw.lgamma(b) - gw.lgamma(a + b)
    return norm - (a - 1) * _mean_log(p) - (b - 1) * _mean_log_of_rest(p)


def _of_continuous_bernoulli(p: Any, q: Any) -> Any:
    return -p.mean * q.logits - (-q.probs).log1p() - q._log_norm()


def _of_gumbel(p: Any, q: Any) -> Any:
    return q.scale.log() + (p.mean - q.loc) / q.scale + (q.loc / q.scale).exp() * _mean_exp(p, q.scale)


def _of_pareto(p: Any, q: Any) -> Any:
    return (q.alpha + 1) * _mean_log(p) - q.alpha.log() - q.alpha * q.scale.log()


def _of_uniform(p: Any, q: Any) -> Any:
    return (q.high - q.low).log()


def _of_laplace(p: Any, q: Any) -> Any:
    """Of a normal p, whose mean distance from a point is known."""
    apart = (p.loc - q.loc) / (p.scale * sqrt(2))
    distance = p.scale * sqrt(2) * (apart * gw.erf(apart) + (-apart.pow(2)).exp() / sqrt(pi))
    return (2 * q.scale).log() + distance / q.scale


def _of_poisson(p: Any, q: Any) -> Any:
    """Of a p that is 0 or 1."""
    return q.rate - p.mean * q.rate.log()


# Where p gives what q cannot.


def _outside_unit(p: Any, q: Any) -> Any:
    return (p.low < 0) | (p.high > 1)


def _negative(p: Any, q: Any) -> Any:
    return p.low < 0


def _below_scale(p: Any, q: Any) -> Any:
    return p.low < q.scale


def _unit_not_covered(p: Any, q: Any) -> Any:
    return (q.low > 0) | (q.high < 1)


_FINITE: Any = (
    (Bernoulli, Poisson, _of_poisson, None),
    (Beta, ContinuousBernoulli, _of_continuous_bernoulli, None),
    (Beta, Exponential, _of_exponential, None),
    (Beta, Gamma, _of_gamma, None),
    (Beta, Normal, _of_normal, None),
    (Beta, Uniform, _of_uniform, _unit_not_covered),
    (ContinuousBernoulli, Exponential, _of_exponential, None),
    (ContinuousBernoulli, Normal, _of_normal, None),
    (ContinuousBernoulli, Uniform, _of_uniform, _unit_not_covered),
    (Exponential, Gamma, _of_gamma, None),
    (Exponential, Gumbel, _of_gumbel, None),
    (Exponential, Normal, _of_normal, None),
    (Gamma, Exponential, _of_exponential, None),
    (Gamma, Gumbel, _of_gumbel, None),
    (Gamma, Normal, _of_normal, None),
    (Gumbel, Normal, _of_normal, None),
    (Laplace, Normal, _of_normal, None),
    (Normal, Gumbel, _of_gumbel, None),
    (Normal, Laplace, _of_laplace, None),
    (Pareto, Exponential, _of_exponential, None),
    (Pareto, Gamma, _of_gamma, None),
    (Pareto, Normal, _of_normal, None),
    (Uniform, Beta, _of_beta, _outside_unit),
    (Uniform, ContinuousBernoulli, _of_continuous_bernoulli, _outside_unit),
    (Uniform, Exponential, _of_exponential, _negative),
    (Uniform, Gamma, _of_gamma, _negative),
    (Uniform, Gumbel, _of_gumbel, None),
    (Uniform, Normal, _of_normal, None),
    (Uniform, Pareto, _of_pareto, _below_scale),
)

_INFINITE: Any = {
    Beta: (Pareto,),
    ContinuousBernoulli: (Pareto,),
    Exponential: (Uniform, Pareto, ContinuousBernoulli, Beta),
    Gamma: (Uniform, Pareto, ContinuousBernoulli, Beta),
    Gumbel: (Uniform, Pareto, Gamma, Exponential, ContinuousBernoulli, Beta),
    Laplace: (Uniform, Pareto, Gamma, Exponential, ContinuousBernoulli, Beta),
    Normal: (Uniform, Pareto, Gamma, Exponential, ContinuousBernoulli, Beta),
    Pareto: (Uniform, ContinuousBernoulli, Beta),
    Poisson: (Binomial, Bernoulli),
}
"""The supports of these p reach where these q have no density, whatever the parameters."""


def _register_finite(kind_p: Any, kind_q: Any, cross_entropy: Any, outside: Any) -> None:
    def divergence(p: Any, q: Any) -> Any:
        found = cross_entropy(p, q) - p.entropy()
        return found if outside is None else gw.where(outside(p, q), inf, found)

    register_kl(kind_p, kind_q)(divergence)


for _row in _FINITE:
    _register_finite(*_row)


def _infinite(p: Any, q: Any) -> Any:
    like = next(getattr(p, name) for name in p.arg_constraints)
    return gw.full(tuple(p.batch_shape), inf, dtype=like.dtype, device=like.device)


for _kind, _others in _INFINITE.items():
    for _other in _others:
        register_kl(_kind, _other)(_infinite)
