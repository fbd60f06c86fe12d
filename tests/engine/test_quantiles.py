"""Derivatives of gamma and Beta variates by their concentrations, against differences of SciPy's quantile functions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special, stats

from gradwire_engine.numerics.quantiles import dirichlet_shift, gamma_shift

LEVELS = np.array([1e-6, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 1 - 1e-6])


@pytest.mark.parametrize("a", [0.05, 0.3, 1.0, 1.5, 4.0, 30.0, 700.0])
def test_a_gamma_variate_moves_as_the_quantile_does(a: float) -> None:
    z = special.gammaincinv(a, LEVELS)
    seen = z > 1e-250
    step = 1e-5 * a
    ahead, behind = (special.gammaincinv(a + d, LEVELS) for d in (step, -step))
    wanted = (ahead - behind) / (2 * step)
    found = gamma_shift(np, np.full(z.shape, a), z)
    np.testing.assert_allclose(found[seen], wanted[seen], rtol=2e-5)


@pytest.mark.parametrize("a", [1e5, 1e8])
def test_a_large_concentration_moves_its_variates_by_its_square_root(a: float) -> None:
    # Wilson and Hilferty: z is a (1 - 1/(9 a) + w / (3 sqrt(a)))**3 for a normal w.
    w = np.array([-3.0, -1.0, 0.0, 2.0])
    root = 1 - 1 / (9 * a) + w / (3 * a**0.5)
    found = gamma_shift(np, np.full(w.shape, a), a * root**3)
    wanted = root**3 + 3 * a * root**2 * (1 / (9 * a**2) - w / (6 * a**1.5))
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_a_tiny_gamma_variate_moves_in_proportion_to_itself() -> None:
    # For z near 0 the distribution function is z**a / gamma(a + 1).
    a, z = np.array([0.01, 0.5, 2.0]), np.array([1e-200, 1e-30, 1e-12])
    np.testing.assert_allclose(gamma_shift(np, a, z), z / a * (special.digamma(a + 1) - np.log(z)), rtol=1e-9)


@pytest.mark.parametrize("a", [0.1, 0.8, 1.0, 3.0, 50.0, 2000.0])
@pytest.mark.parametrize("b", [0.1, 0.8, 1.0, 3.0, 50.0, 2000.0])
def test_a_beta_variate_moves_as_the_quantile_does(a: float, b: float) -> None:
    x = special.betaincinv(a, b, LEVELS)
    seen = (x > 1e-100) & (x < 1 - 1e-6)
    step = 1e-4 * a
    ahead, behind = (special.betaincinv(a + d, b, LEVELS) for d in (step, -step))
    wanted = (ahead - behind) / (2 * step) / np.maximum(1 - x, 1e-9)
    found = dirichlet_shift(np, x, np.full(x.shape, a), np.full(x.shape, a + b))
    np.testing.assert_allclose(found[seen], wanted[seen], rtol=1e-4)


def test_at_the_ends_of_the_interval_nothing_breaks() -> None:
    found = dirichlet_shift(np, np.array([0.0, 1.0, 1.0, 0.3]), np.full(4, 0.5), np.array([1.5, 1.5, 0.5, 0.5]))
    assert np.isfinite(found).all()
    assert found[2] == found[3] == 0  # a single component is 1


def test_the_mean_of_the_moves_is_the_move_of_the_mean() -> None:
    rng = np.random.default_rng(1)
    a = np.full(200_000, 0.7)
    moves = gamma_shift(np, a, rng.gamma(a))
    assert abs(moves.mean() - 1) < 5 * moves.std() / len(a) ** 0.5
    x = rng.beta(a, 2 * a)
    moves = dirichlet_shift(np, x, a, 3 * a) * (1 - x)
    wanted = 2 / (9 * 0.7)  # of a / (a + b) for a: b / (a + b)**2
    assert abs(moves.mean() - wanted) < 5 * moves.std() / len(a) ** 0.5
    assert stats.kstest(x, "beta", (0.7, 1.4)).pvalue > 1e-6
