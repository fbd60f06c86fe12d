"""KL divergences between distributions of one family."""

from __future__ import annotations

from math import inf
from typing import Any

from .bernoulli import Bernoulli
from .beta import Beta
from .binomial import Binomial
from .categorical import Categorical
from .cauchy import Cauchy
from .continuous_bernoulli import ContinuousBernoulli
from .covariance import half_log_det, squared_length, trace_of_ratio
from .dirichlet import Dirichlet
from .exp_family import ExponentialFamily
from .exponential import Exponential
from .gamma import Gamma
from .geometric import Geometric
from .gumbel import Gumbel
from .half_normal import HalfNormal
from .independent import Independent
from .kl import kl_divergence, register_kl
from .laplace import Laplace
from .library import gw
from .lowrank_multivariate_normal import LowRankMultivariateNormal
from .multivariate_normal import MultivariateNormal
from .normal import Normal
from .one_hot_categorical import OneHotCategorical
from .parameters import euler_constant, log1p_exp, sum_rightmost
from .pareto import Pareto
from .poisson import Poisson
from .transformed_distribution import TransformedDistribution
from .uniform import Uniform


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
def _transformed(p: Any, q: Any) -> Any:
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
