"""Samples follow the formulas, and their gradients are those of the quantiles or of the means."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import pytest
from scipy import stats

import gradwire
from gradwire import distributions as D

from .families import FAMILIES

MANY = 8_000
CONTINUOUS = ("Normal", "Laplace", "Cauchy", "Gumbel", "LogNormal", "Weibull", "Kumaraswamy", "Exponential",
              "HalfNormal", "HalfCauchy", "Uniform", "Pareto", "GeneralizedPareto", "ContinuousBernoulli",
              "TransformedDistribution")  # fmt: skip
HEAVY = ("Cauchy", "HalfCauchy", "Pareto", "GeneralizedPareto", "StudentT", "FisherSnedecor", "InverseGamma", "Weibull",
         "LogNormal")  # fmt: skip
"""Whose variance is infinite or not a number for some parameters, or makes means of samples settle slowly."""


def made(name: str, requires_grad: bool = False) -> tuple[Any, list[Any]]:
    """A distribution of a family, and its parameters."""
    rng = np.random.default_rng(zlib.crc32(name.encode()) + 1)
    leaves = [gradwire.tensor(p, requires_grad=requires_grad) for p in FAMILIES[name].parameters(rng)]
    return FAMILIES[name].make(D, *leaves), leaves


@pytest.fixture(autouse=True)
def _seeded(session: Any) -> None:
    gradwire.manual_seed(2024)


@pytest.mark.parametrize("name", [*CONTINUOUS, "Gamma", "Chi2"])
def test_samples_follow_the_distribution_function(name: str) -> None:
    distribution, _ = made(name)
    levels = distribution.cdf(distribution.sample((MANY,))).numpy().reshape(MANY, -1)
    for column in levels.T:
        assert stats.kstest(column, "uniform").pvalue > 1e-6


@pytest.mark.parametrize("name", [name for name in FAMILIES if name not in HEAVY])
def test_samples_have_the_mean_and_variance_of_their_distribution(name: str) -> None:
    distribution, _ = made(name)
    drawn = distribution.sample((MANY,))
    assert not drawn.requires_grad
    values = drawn.numpy().astype(float)
    try:
        mean, variance = distribution.mean.detach().numpy(), distribution.variance.detach().numpy()
    except NotImplementedError:
        return
    if np.isnan(mean).any():  # indices of outcomes
        return
    if name == "VonMises":  # its variance is that on the circle
        along = np.exp(1j * values).mean(0)
        np.testing.assert_allclose(1 - np.abs(along), variance, atol=0.05)
        np.testing.assert_allclose(np.exp(1j * mean), along / np.abs(along), atol=0.1)
        return
    slack = 6 * np.sqrt(variance / MANY) + 1e-6
    assert (np.abs(values.mean(0) - mean) < slack).all()
    np.testing.assert_allclose(values.var(0), variance, rtol=0.25, atol=1e-3)


@pytest.mark.parametrize("name", ["Categorical", "Categorical by logits"])
def test_indices_come_as_often_as_their_probabilities_say(name: str) -> None:
    distribution, _ = made(name)
    drawn = distribution.sample((MANY,)).numpy()
    shares = np.stack([(drawn == i).mean(0) for i in range(4)], -1)
    np.testing.assert_allclose(shares, distribution.probs.numpy(), atol=6 * 0.5 / MANY**0.5)


@pytest.mark.parametrize("name", [name for name in FAMILIES if made(name)[0].has_rsample])
def test_samples_with_gradients_lie_in_the_support_and_reach_every_parameter(name: str) -> None:
    distribution, leaves = made(name, requires_grad=True)
    drawn = distribution.rsample((50,))
    assert drawn.requires_grad
    if distribution.support.event_dim == 0 or "Dirichlet" in name:
        assert bool(distribution.support.check(drawn).all())
    assert bool(gradwire.isfinite(distribution.log_prob(drawn.detach())).all())
    gradients = gradwire.autograd.grad(drawn.square().sum(), leaves, allow_unused=True)
    for leaf, gradient in zip(leaves, gradients, strict=True):
        if gradient is None:
            assert name in ("Wishart", "GeneralizedPareto of concentration 0"), leaf.shape
            continue
        assert bool(gradwire.isfinite(gradient).all())
        if name != "ContinuousBernoulli near one half":  # there samples are uniform
            assert bool((gradient != 0).any())


@pytest.mark.parametrize("name", CONTINUOUS)
def test_a_sample_moves_as_its_quantile_does(name: str) -> None:
    # At a fixed level F(x; p) of the distribution function, dx/dp is -dF/dp over the density.
    distribution, leaves = made(name, requires_grad=True)
    x = distribution.rsample((20,))
    moved = gradwire.autograd.grad(x.sum(), leaves, retain_graph=True)
    at = x.detach()
    sign = -1 / distribution.log_prob(at).detach().exp()
    wanted = gradwire.autograd.grad(distribution.cdf(at), leaves, sign)
    for found, expected in zip(moved, wanted, strict=True):
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", ["Gamma", "Chi2", "Beta", "Dirichlet", "Dirichlet of corners", "StudentT",
                                  "FisherSnedecor", "InverseGamma"])  # fmt: skip
def test_the_mean_of_gradients_is_the_gradient_of_the_mean(name: str) -> None:
    # Of the logarithm of the samples, which has a variance for all parameters.
    distribution, leaves = made(name, requires_grad=True)
    wide = distribution.expand((MANY, *distribution.batch_shape))
    x = wide.rsample()
    value = x.abs().add(1).log()
    found = [g.numpy() for g in gradwire.autograd.grad(value.mean(0).sum(), leaves, retain_graph=True)]
    # The score function's estimate of the same, from other samples.
    score: list[list[Any]] = []
    for seed in range(8):
        gradwire.manual_seed(seed)
        y = wide.sample()
        weight = y.abs().add(1).log()
        if len(distribution.event_shape):
            weight = weight.sum(-1)
        surrogate = (wide.log_prob(y) * (weight - weight.mean(0))).mean(0).sum()
        score.append([g.numpy() for g in gradwire.autograd.grad(surrogate, leaves, retain_graph=True)])
    for i, gradient in enumerate(found):
        estimates = np.array([s[i] for s in score])
        spread = estimates.std(0) / 8**0.5
        assert (np.abs(gradient - estimates.mean(0)) < 8 * spread + 0.01).all()


def test_a_seed_repeats_samples_and_a_straight_through_sample_is_one_hot() -> None:
    for name in ("Gamma", "Poisson", "Binomial", "VonMises", "LKJCholesky", "MixtureSameFamily"):
        distribution, _ = made(name)
        gradwire.manual_seed(5)
        first = distribution.sample((3,)).numpy()
        distribution.sample((3,))
        gradwire.manual_seed(5)
        np.testing.assert_array_equal(distribution.sample((3,)).numpy(), first)
    through, (weights,) = made("OneHotCategoricalStraightThrough", requires_grad=True)
    drawn = through.rsample((4,))
    np.testing.assert_allclose(drawn.detach().numpy().max(-1), 1)
    seed = gradwire.rand(*drawn.shape, dtype=gradwire.float64)
    (found,) = gradwire.autograd.grad(drawn, weights, seed, retain_graph=True)
    (wanted,) = gradwire.autograd.grad(through.probs, weights, seed.sum(0))
    assert gradwire.allclose(found, wanted)


def test_factors_of_correlations_are_factors_of_correlations() -> None:
    drawn = D.LKJCholesky(4, gradwire.tensor([0.5, 1.0, 9.0])).sample((4000,))
    correlation = (drawn @ drawn.transpose(-2, -1)).numpy()
    np.testing.assert_allclose(np.diagonal(correlation, 0, -2, -1), 1, atol=1e-5)
    # Each entry is 2 x - 1 for a Beta variate x with c - 1 + d / 2 on both sides, so its square has this mean. (In
    # torch 2.13 that holds for the first entry only.)
    for row, column in ((1, 0), (2, 0), (3, 2)):
        found = (correlation[..., row, column] ** 2).mean(0)
        np.testing.assert_allclose(found, 1 / (2 * np.array([0.5, 1.0, 9.0]) + 3), rtol=0.1)


def test_samples_of_an_empty_shape_are_empty() -> None:
    for name in ("Normal", "Categorical", "Dirichlet", "Gamma", "Multinomial"):
        distribution, _ = made(name)
        assert distribution.sample((0, 2)).numel() == 0


def test_samples_keep_the_dtype_of_the_parameters() -> None:
    half = gradwire.tensor([0.5, 2.0], dtype=gradwire.float32)
    for kind in (D.Poisson, D.Exponential, D.Chi2, D.HalfNormal):
        assert kind(half).sample().dtype is gradwire.float32
    assert D.Normal(0, 1).sample().dtype is gradwire.float32
