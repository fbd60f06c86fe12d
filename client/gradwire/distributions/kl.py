"""Kullback-Leibler divergences: the registry, and the pairs that have a formula."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from math import inf, log, pi, sqrt
from typing import Any

from .._core.tensor.tensor import Tensor
from .composed import TransformedDistribution
from .counts import Binomial, Poisson
from .distribution import Distribution, ExponentialFamily, Independent
from .library import gw
from .multivariate import LowRankMultivariateNormal, MultivariateNormal, half_log_det, squared_length, trace_of_ratio
from .outcomes import Bernoulli, Categorical, ContinuousBernoulli, Geometric, OneHotCategorical
from .parameters import Values, euler_constant, log1p_exp, sum_rightmost
from .positive import Exponential, Gamma, HalfNormal, Pareto
from .real_line import Cauchy, Gumbel, Laplace, Normal, Uniform
from .unit_interval import Beta, Dirichlet

__all__ = ["kl_divergence", "register_kl"]


Divergence = Callable[[Any, Any], Any]
_KL_REGISTRY: dict[tuple[type, type], Divergence] = {}
_found: dict[tuple[type, type], Divergence] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[Divergence], Divergence]:
    """Register ``f(p, q)`` as the divergence of two classes of distributions, and of their subclasses that have none
    of their own.

    Raises:
        TypeError: for what is no class.
    """
    for given in (type_p, type_q):
        if not isinstance(given, type):  # any class: libraries register base classes of their own distributions
            raise TypeError(f"a class of distributions is needed, not {given!r:.80}")

    def register(function: Divergence) -> Divergence:
        _KL_REGISTRY[type_p, type_q] = function
        _found.clear()
        return function

    return register


def _closest(type_p: type, type_q: type) -> Divergence:
    """The divergence registered for the closest superclasses; the first distribution counts for more in a tie."""

    def distance(pair: tuple[type, type], first: int) -> tuple[int, int]:
        steps = (type_p.__mro__.index(pair[0]), type_q.__mro__.index(pair[1]))
        return steps[first], steps[1 - first]

    matches = [pair for pair in _KL_REGISTRY if issubclass(type_p, pair[0]) and issubclass(type_q, pair[1])]
    if not matches:
        raise NotImplementedError(f"no KL divergence of {type_p.__name__} from {type_q.__name__} is registered")
    by_p, by_q = (min(matches, key=lambda pair, first=first: distance(pair, first)) for first in (0, 1))  # type: ignore[misc]
    if _KL_REGISTRY[by_p] is not _KL_REGISTRY[by_q]:
        names = [f"({a.__name__}, {b.__name__})" for a, b in (by_p, by_q)]
        warnings.warn(
            f"the KL divergence of {type_p.__name__} from {type_q.__name__} is ambiguous: {names[0]} is taken, "
            f"{names[1]} fits as well",
            RuntimeWarning,
            stacklevel=3,
        )
    return _KL_REGISTRY[by_p]


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """The Kullback-Leibler divergence of p from q, the mean over p of ``log p(x) - log q(x)``, for each of a batch.

    Raises:
        NotImplementedError: where no formula is registered for the two classes.
    """
    key = type(p), type(q)
    found = _found.get(key)
    if found is None:
        found = _found[key] = _closest(*key)
    return found(p, q)


def _dispatch_kl(type_p: type, type_q: type) -> Divergence:
    """The divergence that is registered for two classes, or their nearest bases."""
    return _closest(type_p, type_q)


def _times_log(x: Tensor) -> Any:
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


def _mean_exp(p: Any, scale: Values) -> Any:
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


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p: Any, q: Any) -> Any:
    one = p.probs * (log1p_exp(-q.logits) - log1p_exp(-p.logits))
    none = (1 - p.probs) * (log1p_exp(q.logits) - log1p_exp(p.logits))
    one = gw.where(q.probs == 0, inf, one)
    none = gw.where(q.probs == 1, inf, none)
    return gw.where(p.probs == 0, 0.0, one) + gw.where(p.probs == 1, 0.0, none)


@register_kl(Beta, Beta)
def _beta(p: Any, q: Any) -> Any:
    return _dirichlet(p._dirichlet, q._dirichlet)


@register_kl(Binomial, Binomial)
def _binomial(p: Any, q: Any) -> Any:
    # With more trials than q allows, p can give what q cannot. With fewer there is no closed form.
    _same_counts(p, q)
    found = p.total_count * (p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p())
    return gw.where(p.total_count > q.total_count, inf, found)


def _same_counts(p: Any, q: Any) -> None:
    known_p, known_q = p._known_count, q._known_count
    fewer = known_p < known_q if None not in (known_p, known_q) else bool((p.total_count < q.total_count).any())
    if fewer:
        raise NotImplementedError("the KL divergence of binomial distributions is not defined for fewer trials")


@register_kl(Categorical, Categorical)
def _categorical(p: Any, q: Any) -> Any:
    terms = p.probs * (p.logits - q.logits)
    terms = gw.where((q.probs == 0).expand(terms.shape), inf, terms)
    return gw.where((p.probs == 0).expand(terms.shape), 0.0, terms).sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot(p: Any, q: Any) -> Any:
    return _categorical(p._categorical, q._categorical)


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _continuous_bernoulli(p: Any, q: Any) -> Any:
    constant = p._log_norm() + (-p.probs).log1p() - q._log_norm() - (-q.probs).log1p()
    return p.mean * (p.logits - q.logits) + constant


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p: Any, q: Any) -> Any:
    a, b = p.concentration, q.concentration
    total = a.sum(-1)
    means = gw.digamma(a) - gw.digamma(total).unsqueeze(-1)  # of the logarithms under p
    norms = gw.lgamma(total) - gw.lgamma(b.sum(-1)) - (gw.lgamma(a) - gw.lgamma(b)).sum(-1)
    return norms + ((a - b) * means).sum(-1)


@register_kl(Exponential, Exponential)
def _exponential(p: Any, q: Any) -> Any:
    ratio = q.rate / p.rate
    return ratio - ratio.log() - 1


@register_kl(ExponentialFamily, ExponentialFamily)
def _exponential_family(p: Any, q: Any) -> Any:
    """The Bregman divergence of the log normaliser between the natural parameters."""
    if type(p) is not type(q):
        raise NotImplementedError(
            f"{type(p).__name__} and {type(q).__name__} are different exponential families: their KL divergence has "
            "no formula here"
        )
    params_p, norm_p, slopes = p._tangent()
    params_q = q._natural_params
    result = q._log_normalizer(*params_q) - norm_p
    batch = result.ndim
    for a, b, slope in zip(params_p, params_q, slopes, strict=True):
        term = (b - a) * slope
        result = result - sum_rightmost(term, max(term.ndim - batch, 0))
    return result


@register_kl(Gamma, Gamma)
def _gamma(p: Any, q: Any) -> Any:
    a, b = p.concentration, q.concentration
    ratio = q.rate / p.rate
    return (a - b) * gw.digamma(a) - gw.lgamma(a) + gw.lgamma(b) - b * ratio.log() + a * (ratio - 1)


@register_kl(Gumbel, Gumbel)
def _gumbel(p: Any, q: Any) -> Any:
    ratio = p.scale / q.scale
    away = (p.loc - q.loc) / q.scale
    return ratio * euler_constant - ratio.log() + away + (gw.lgamma(1 + ratio) - away).exp() - (1 + euler_constant)


@register_kl(Geometric, Geometric)
def _geometric(p: Any, q: Any) -> Any:
    return -p.entropy() - (-q.probs).log1p() / p.probs - q.logits


@register_kl(HalfNormal, HalfNormal)
def _half_normal(p: Any, q: Any) -> Any:
    return _normal(p.base_dist, q.base_dist)


@register_kl(Laplace, Laplace)
def _laplace(p: Any, q: Any) -> Any:
    ratio = p.scale / q.scale
    away = (p.loc - q.loc).abs()
    return -ratio.log() + away / q.scale + ratio * (-away / p.scale).exp() - 1


def _check_events(p: Any, q: Any) -> None:
    if tuple(p.event_shape) != tuple(q.event_shape):
        raise ValueError(f"normal vectors of {p.event_shape[0]} and {q.event_shape[0]} elements have no KL divergence")


def _squares_over_low_rank(q: Any, factor: Any) -> Any:
    """``trace(Q^-1 F F')`` for the covariance Q of low rank and a diagonal."""
    diagonal = q._unbroadcasted_cov_diag
    plain = (factor.square() / diagonal.unsqueeze(-1)).sum((-2, -1))
    return plain - trace_of_ratio(q._capacitance_tril, q._weighted_factor() @ factor)


@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _low_rank(p: Any, q: Any) -> Any:
    _check_events(p, q)
    root = p._unbroadcasted_cov_diag.sqrt().diag_embed()
    trace = _squares_over_low_rank(q, p._unbroadcasted_cov_factor) + _squares_over_low_rank(q, root)
    length = q._squared_length(q.loc - p.loc)
    return 0.5 * (q._log_det() - p._log_det() + length + trace - p.event_shape[0])


@register_kl(MultivariateNormal, LowRankMultivariateNormal)
def _full_from_low_rank(p: Any, q: Any) -> Any:
    _check_events(p, q)
    log_det = q._log_det() - 2 * half_log_det(p._unbroadcasted_scale_tril)
    trace = _squares_over_low_rank(q, p._unbroadcasted_scale_tril)
    return 0.5 * (log_det + q._squared_length(q.loc - p.loc) + trace - p.event_shape[0])


@register_kl(LowRankMultivariateNormal, MultivariateNormal)
def _low_rank_from_full(p: Any, q: Any) -> Any:
    _check_events(p, q)
    factor = q._unbroadcasted_scale_tril
    log_det = 2 * half_log_det(factor) - p._log_det()
    root = p._unbroadcasted_cov_diag.sqrt().diag_embed()
    trace = trace_of_ratio(factor, p._unbroadcasted_cov_factor) + trace_of_ratio(factor, root)
    return 0.5 * (log_det + squared_length(factor, q.loc - p.loc) + trace - p.event_shape[0])


@register_kl(MultivariateNormal, MultivariateNormal)
def _multivariate_normal(p: Any, q: Any) -> Any:
    _check_events(p, q)
    factor, own = q._unbroadcasted_scale_tril, p._unbroadcasted_scale_tril
    log_det = half_log_det(factor) - half_log_det(own)
    return log_det + 0.5 * (trace_of_ratio(factor, own) + squared_length(factor, q.loc - p.loc) - p.event_shape[0])


@register_kl(Normal, Normal)
def _normal(p: Any, q: Any) -> Any:
    ratio = (p.scale / q.scale).pow(2)
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale).pow(2) - 1 - ratio.log())


@register_kl(Pareto, Pareto)
def _pareto(p: Any, q: Any) -> Any:
    scale, alpha = p.scale / q.scale, q.alpha / p.alpha
    found = q.alpha * scale.log() - alpha.log() + alpha - 1
    return gw.where(p.scale < q.scale, inf, found)


@register_kl(Poisson, Poisson)
def _poisson(p: Any, q: Any) -> Any:
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p: Any, q: Any) -> Tensor:
    if p.transforms != q.transforms or tuple(p.event_shape) != tuple(q.event_shape):
        raise NotImplementedError("distributions transformed in different ways have no KL divergence here")
    base = kl_divergence(p.base_dist, q.base_dist)
    return sum_rightmost(base, len(p.event_shape) - len(p.base_dist.event_shape))


@register_kl(Uniform, Uniform)
def _uniform(p: Any, q: Any) -> Any:
    found = ((q.high - q.low) / (p.high - p.low)).log()
    return gw.where((q.low > p.low) | (q.high < p.high), inf, found)


@register_kl(Independent, Independent)
def _independent(p: Any, q: Any) -> Any:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError("Independent distributions with different numbers of dimensions")
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


@register_kl(Cauchy, Cauchy)
def _cauchy(p: Any, q: Any) -> Any:
    # Chyzak and Nielsen, "A closed-form formula for the Kullback-Leibler divergence between Cauchy distributions", 2019
    apart = (p.scale + q.scale).pow(2) + (p.loc - q.loc).pow(2)
    return (apart / (4 * p.scale * q.scale)).log()


# The mean of log(x) under p.
