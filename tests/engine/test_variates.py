"""Gamma, Dirichlet, Poisson, binomial and von Mises variates: correctly distributed, the same on every backend."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from gradwire_engine.autograd.engine import Engine
from gradwire_engine.runtime.backends import Backends
from gradwire_protocol.errors import ArgumentError, ArgumentValueError, Unsupported
from tests.strict_backend import StrictBackend

MANY = 40_000


def draw(engine: Engine, op: str, *parameters: Any) -> Any:
    """One number for each parameter, as a NumPy array."""
    return engine.to_numpy(engine.call(op, *[engine.from_numpy(np.asarray(p, float)) for p in parameters]))


@pytest.mark.parametrize("a", [0.02, 0.5, 1.0, 7.5, 1e4])
def test_gamma_variates(a: float) -> None:
    assert stats.kstest(draw(Engine(seed=1), "standard_gamma", np.full(MANY, a)), "gamma", (a,)).pvalue > 1e-5


@pytest.mark.parametrize("k", [1e-6, 0.3, 2.0, 50.0, 1e6])
def test_von_mises_variates(k: float) -> None:
    drawn = draw(Engine(seed=2), "sample_von_mises", np.full(MANY, k))
    assert stats.kstest(drawn, stats.vonmises(k).cdf if k < 1e4 else stats.norm(0, k**-0.5).cdf).pvalue > 1e-5


def _deviation(drawn: Any, law: Any) -> float:
    """How far the shares of values differ from their probabilities, in standard errors, at the most."""
    values = np.unique(drawn)
    share = np.searchsorted(np.sort(drawn), values, side="right") / drawn.size
    wanted = law.cdf(values)
    return float(np.max(np.abs(share - wanted) / np.sqrt(wanted * (1 - wanted) / drawn.size + 1 / drawn.size**2)))


@pytest.mark.parametrize("rate", [0.01, 0.7, 5.0, 9.99, 10.0, 35.0, 5e3])
def test_poisson_variates(rate: float) -> None:
    assert _deviation(draw(Engine(seed=3), "poisson", np.full(MANY, rate)), stats.poisson(rate)) < 6


@pytest.mark.parametrize(
    ("n", "p"), [(1, 0.3), (12, 0.5), (30, 0.97), (30, 0.5), (100, 0.11), (400, 0.8), (10**6, 1e-6), (10**6, 0.4)]
)
def test_binomial_variates(n: int, p: float) -> None:
    drawn = draw(Engine(seed=4), "binomial", np.full(MANY, n), np.full(MANY, p))
    assert _deviation(drawn, stats.binom(n, p)) < 6


def test_dirichlet_variates_have_beta_marginals_and_sum_to_one() -> None:
    drawn = draw(Engine(seed=5), "sample_dirichlet", np.tile([0.02, 0.7, 2.5], (MANY, 1)))
    np.testing.assert_allclose(drawn.sum(-1), 1)
    for i, a in enumerate((0.02, 0.7, 2.5)):
        assert stats.kstest(drawn[:, i], "beta", (a, 3.22 - a)).pvalue > 1e-5


def test_concentrations_so_small_that_every_gamma_variate_is_zero_still_give_points_of_the_simplex() -> None:
    drawn = draw(Engine(seed=6), "sample_dirichlet", np.full((500, 3), 1e-4))
    np.testing.assert_allclose(drawn.sum(-1), 1)
    assert abs((drawn[:, 0] > 0.5).mean() - 1 / 3) < 0.12


CASES: dict[str, list[Any]] = {
    "standard_gamma": [[0.1, 2.0, 30.0] * 50], "sample_dirichlet": [[[0.1, 2.0, 30.0]] * 50],
    "poisson": [[0.1, 2.0, 300.0] * 50], "binomial": [[3.0, 40.0, 500.0] * 50, [0.9, 0.6, 0.3] * 50],
    "sample_von_mises": [[0.1, 2.0, 30.0] * 50],
}  # fmt: skip


@pytest.mark.parametrize("op", CASES)
def test_another_array_library_draws_the_same(op: str) -> None:
    plain, strict = Engine(seed=7), Engine(seed=7, backends=Backends(StrictBackend()))
    np.testing.assert_allclose(draw(plain, op, *CASES[op]), draw(strict, op, *CASES[op]), rtol=1e-12)


@pytest.mark.parametrize("op", CASES)
def test_what_is_rejected_does_not_move_the_generator_any_further(op: str) -> None:
    engine = Engine(seed=8)
    draw(engine, op, *CASES[op])
    assert engine.generator.offset == 1


def test_parameters_out_of_range_are_refused_by_value(engine: Engine) -> None:
    for op, bad in (("standard_gamma", [[-1.5]]), ("poisson", [[-1.5]]), ("binomial", [[-2.0], [0.5]])):
        with pytest.raises(ArgumentError, match=r"the least is -(1\.5|2)"):
            draw(engine, op, *bad)
    with pytest.raises(ArgumentError, match="outside 0 to 1"):
        draw(engine, "binomial", [3], [1.5])


def test_unknown_parameters_give_unknown_samples(engine: Engine) -> None:
    nan = float("nan")
    assert np.isnan(draw(engine, "standard_gamma", [nan, 1.0])).tolist() == [True, False]
    assert np.isnan(draw(engine, "poisson", [nan, 1.0])).tolist() == [True, False]


def test_the_gradient_of_a_sample_is_refused_a_second_time(engine: Engine) -> None:
    a = engine.from_numpy(np.array([2.0, 3.0]), requires_grad=True)
    one = engine.from_numpy(np.ones(2))
    (first,) = engine.call("grad", [engine.call("standard_gamma", a)], [a], [one], create_graph=True)
    with pytest.raises(Unsupported, match="second derivative"):
        engine.call("grad", [first], [a], [one])


def test_a_condition_that_fails_says_how_much_and_what_first(engine: Engine) -> None:
    values = engine.from_numpy(np.array([1.0, -2.5, -3.0]))
    engine.call("check_all", engine.call("gt", values, -5.0), "all is well", values)
    with pytest.raises(ArgumentValueError, match=r"must be positive \(2 of 3 refused, the first is -2\.5\)"):
        engine.call("check_all", engine.call("gt", values, 0.0), "they must be positive", values)


def test_a_long_message_is_cut(engine: Engine) -> None:
    with pytest.raises(ArgumentValueError) as caught:
        engine.call("check_all", engine.from_numpy(np.zeros(1, bool)), "x" * 10_000)
    assert len(str(caught.value)) < 3_000
