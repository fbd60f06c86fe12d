"""KL divergences: torch's pairs, with its values and gradients."""

from __future__ import annotations

import itertools
import zlib
from typing import Any

import numpy as np
import pytest
import torch
from torch.distributions import kl as of_torch

import gradwire
from gradwire.distributions import kl as of_gradwire

from .families import FAMILIES

PAIRS = [(p.__name__, q.__name__) for p, q in of_torch._KL_REGISTRY]
REFUSED_THERE = ("LowRankMultivariateNormal", "MultivariateNormal")  # a batch from one matrix: an error of torch's
EXACT = [pair for pair in PAIRS if set(pair) <= FAMILIES.keys() and pair != REFUSED_THERE]
SUBCLASSES = [("Chi2", "Gamma"), ("Beta", "Beta"), ("LogNormal", "LogNormal"),
              ("OneHotCategoricalStraightThrough", "OneHotCategorical"), ("HalfCauchy", "HalfCauchy"),
              ("MultivariateNormal by factors", "MultivariateNormal by precisions"),
              ("MultivariateNormal by precisions", "LowRankMultivariateNormal")]  # fmt: skip


def diverge(p: str, q: str, lib: Any, within: bool = False) -> Any:
    """The divergence of fresh distributions of two families, and its gradients for their parameters."""
    rng = np.random.default_rng(zlib.crc32(f"{p} {q}".encode()))
    given = [FAMILIES[name].parameters(rng) for name in (p, q)]
    if within:  # a Uniform p inside the unit interval, a Pareto q below it, and the other way round
        given[0] = [np.full((2, 3), 0.2), np.array([0.3, 0.6, 0.7])] if p == "Uniform" else given[0]
        given[1] = {
            "Uniform": [np.full((2, 3), -0.5), np.array([2.0, 1.9, 1.4])],
            "Pareto": [np.full((2, 3), 0.1), np.array([2.0, 1.5, 3.0])],
        }.get(q, given[1])
    leaves = [[lib.tensor(v, requires_grad=True) for v in values] for values in given]
    D = lib.distributions
    made = [FAMILIES[name].make(D, *values) for name, values in zip((p, q), leaves, strict=True)]
    try:
        found = D.kl_divergence(*made)
    except NotImplementedError:
        return NotImplementedError
    flat = [leaf for values in leaves for leaf in values]
    gradients: Any = []
    if found.requires_grad and bool(lib.isfinite(found).all()):
        seed = lib.tensor(np.random.default_rng(3).normal(size=tuple(found.shape)))
        gradients = lib.autograd.grad(found, flat, seed, allow_unused=True)
    return found.detach().numpy(), [np.zeros(1) if g is None else g.numpy() for g in gradients]


def test_the_same_pairs_are_registered() -> None:
    assert {(p.__name__, q.__name__) for p, q in of_gradwire._KL_REGISTRY} == set(PAIRS)


@pytest.mark.parametrize("within", [False, True], ids=["anywhere", "within"])
@pytest.mark.parametrize(("p", "q"), EXACT + SUBCLASSES)
def test_values_and_gradients_are_those_of_torch(p: str, q: str, within: bool) -> None:
    expected, actual = diverge(p, q, torch, within), diverge(p, q, gradwire, within)
    if expected is NotImplementedError:
        assert actual is NotImplementedError
        return
    np.testing.assert_allclose(actual[0], expected[0], rtol=1e-6, atol=1e-8)
    if not expected[1]:
        return
    for wanted, found in zip(expected[1], actual[1], strict=True):
        wanted, found = np.broadcast_arrays(wanted, found)
        np.testing.assert_allclose(found, np.where(np.isnan(wanted), found, wanted), rtol=1e-6, atol=1e-8)


def test_independent_and_transformed_distributions_diverge_as_their_bases_do() -> None:
    D = gradwire.distributions
    p, q = D.Normal(gradwire.zeros(2, 3), 1.0), D.Normal(gradwire.ones(3), 2.0)
    plain = D.kl_divergence(p, q)
    joined = D.kl_divergence(D.Independent(p, 1), D.Independent(q.expand((2, 3)), 1))
    assert gradwire.allclose(joined, plain.sum(-1))
    through = [D.TanhTransform()]
    assert gradwire.allclose(
        D.kl_divergence(D.TransformedDistribution(p, through), D.TransformedDistribution(q, through)), plain
    )
    with pytest.raises(NotImplementedError):
        D.kl_divergence(D.TransformedDistribution(p, through), D.LogNormal(0.0, 1.0))


def test_a_covariance_of_low_rank_diverges_from_a_full_one_as_the_same_covariance_in_full_does() -> None:
    D, rng = gradwire.distributions, np.random.default_rng(1)
    loc, factor, diagonal = (gradwire.tensor(rng.normal(size=s)) for s in ((2, 3), (3, 2), (2, 3)))
    p = D.LowRankMultivariateNormal(loc, factor, diagonal.exp())
    q = D.MultivariateNormal(loc[0], scale_tril=gradwire.tensor(np.tril(rng.uniform(1, 2, (3, 3)))))
    full = D.MultivariateNormal(loc, p.covariance_matrix)
    assert gradwire.allclose(D.kl_divergence(p, q), D.kl_divergence(full, q))


def test_a_batch_of_wishart_distributions_diverges_one_by_one() -> None:
    # torch adds up the batch here.
    rng = np.random.default_rng(2)
    df, other, matrix = rng.uniform(4, 8, 2), rng.uniform(4, 8, 2), rng.normal(size=(3, 5))
    covariance = matrix @ matrix.T

    def diverge(lib: Any, a: Any, b: Any) -> Any:
        one, two = (lib.tensor(covariance * k) for k in (1.0, 2.0))
        return (
            lib.distributions.kl_divergence(
                lib.distributions.Wishart(lib.tensor(a), one), lib.distributions.Wishart(lib.tensor(b), two)
            )
            .detach()
            .numpy()
        )

    wanted = [diverge(torch, a, b) for a, b in zip(df, other, strict=True)]
    np.testing.assert_allclose(diverge(gradwire, df, other), wanted, rtol=1e-8)


def test_what_is_not_registered_is_refused_by_name() -> None:
    D = gradwire.distributions
    with pytest.raises(NotImplementedError, match="Cauchy from Normal"):
        D.kl_divergence(D.Cauchy(0.0, 1.0), D.Normal(0.0, 1.0))


def test_a_program_registers_a_divergence_of_its_own() -> None:
    D = gradwire.distributions

    class Mine(D.Normal):  # type: ignore[misc, name-defined]
        pass

    assert float(D.kl_divergence(Mine(0.0, 1.0), Mine(0.0, 1.0))) == 0

    @D.register_kl(Mine, Mine)
    def _mine(p: Any, q: Any) -> Any:
        return gradwire.tensor(7.0)

    try:
        assert float(D.kl_divergence(Mine(0.0, 1.0), Mine(0.0, 1.0))) == 7
        assert float(D.kl_divergence(Mine(0.0, 1.0), D.Normal(0.0, 1.0))) == 0
    finally:
        del of_gradwire._KL_REGISTRY[Mine, Mine]
        of_gradwire._found.clear()


def test_a_divergence_is_registered_for_a_class_that_distributions_inherit_beside_theirs() -> None:
    D = gradwire.distributions

    class Own:
        pass

    class Mine(D.Cauchy, Own):  # type: ignore[misc, name-defined]
        pass

    with pytest.raises(TypeError, match="a class of distributions is needed, not 3"):
        D.register_kl(Own, 3)

    @D.register_kl(D.StudentT, Own)
    def _mine(p: Any, q: Any) -> Any:
        return gradwire.tensor(7.0)

    try:
        assert float(D.kl_divergence(D.StudentT(3.0), Mine(0.0, 1.0))) == 7
    finally:
        del of_gradwire._KL_REGISTRY[D.StudentT, Own]
        of_gradwire._found.clear()


def test_every_pair_of_families_agrees_on_whether_there_is_a_divergence() -> None:
    names = ["Normal", "Beta", "Gamma", "Poisson", "Bernoulli", "Cauchy", "Uniform", "StudentT", "Dirichlet"]
    for p, q in itertools.product(names, names):
        expected, actual = diverge(p, q, torch), diverge(p, q, gradwire)
        assert (expected is NotImplementedError) == (actual is NotImplementedError), (p, q)
