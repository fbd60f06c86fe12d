"""Fast host implementations against the plain ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from gradwire_engine.autograd.engine import Engine
from gradwire_engine.numerics import division, special
from gradwire_engine.numerics.select import SMALLEST, select

GENERATOR = np.random.default_rng()
INF, NAN = float("inf"), float("nan")


@pytest.fixture(autouse=True)
def _quiet() -> Any:
    with np.errstate(all="ignore"):
        yield


def relative_error(ours: Any, theirs: Any) -> float:
    seen = theirs != 0
    return float(np.max(np.abs(ours[seen] / theirs[seen] - 1)))


# Special functions


@pytest.mark.parametrize("name", ["erf", "erfc", "erfinv"])
def test_special_functions_are_as_exact_as_float64_allows(name: str) -> None:
    x = np.linspace(-0.999, 0.999, 20_001) if name == "erfinv" else np.linspace(-26, 26, 20_001)
    ours = getattr(special, name)(np, x)
    theirs = getattr(torch, name)(torch.from_numpy(x)).numpy()
    assert relative_error(ours, theirs) < 3e-15


def test_erf_in_float32_is_within_a_few_units_of_the_last_place_and_reaches_one() -> None:
    x = np.linspace(-6, 6, 100_001).astype(np.float32)
    ours = special.erf(np, x)
    theirs = torch.erf(torch.from_numpy(x).double()).numpy()
    assert ours.dtype == np.float32
    assert np.max(np.abs(ours - theirs)) < 2.5e-7
    assert ours[-1] == 1
    assert ours[0] == -1


def test_special_functions_at_the_ends_of_the_number_line() -> None:
    for dtype in (np.float32, np.float64):
        ends = np.array([INF, -INF, NAN, -0.0], dtype)
        np.testing.assert_array_equal(special.erf(np, ends), [1, -1, NAN, 0])
        np.testing.assert_array_equal(special.erfc(np, ends), [0, 2, NAN, 1])
        np.testing.assert_array_equal(special.erfinv(np, np.array([1, -1, NAN, 2], dtype)), [INF, -INF, NAN, NAN])


def test_blocks_change_nothing() -> None:
    x = GENERATOR.standard_normal((3, 7001)).astype(np.float32)
    np.testing.assert_array_equal(special.erf(np, x)[1], special.erf(np, x[1]))
    np.testing.assert_array_equal(special.erf(np, x.T), special.erf(np, x).T)


# Choices


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i2", "i4", "i8", "i1", "F", "D", "?"])
def test_choosing_by_bits_is_choosing(dtype: str) -> None:
    shape = (3, SMALLEST)
    mask = GENERATOR.random(shape) < 0.5
    x, y = ((GENERATOR.standard_normal(shape) * 10).astype(dtype) for _ in range(2))
    row = mask[0]
    for chosen in (mask, row, mask[:, :1]):
        np.testing.assert_array_equal(select(np, chosen, x, y), np.where(chosen, x, y))
        np.testing.assert_array_equal(select(np, chosen, x[:1], y), np.where(chosen, x[:1], y))
        np.testing.assert_array_equal(select(np, chosen, x, 0), np.where(chosen, x, np.zeros_like(x)))
        np.testing.assert_array_equal(select(np, chosen, 0, y), np.where(chosen, np.zeros_like(y), y))
        np.testing.assert_array_equal(select(np, chosen, 1, y), np.where(chosen, np.ones_like(y), y))
    for one, other in ((x[0], 1), (1, x[0]), (x[0], y[1]), (x[0], y[:, :1])):  # smaller than what is chosen
        for chosen in (mask, mask[:, :1]):
            got, wanted = select(np, chosen, one, other), np.where(chosen, one, other)
            np.testing.assert_array_equal(got, wanted.astype(dtype))
    np.testing.assert_array_equal(select(np, mask.T, x.T, y.T), np.where(mask.T, x.T, y.T))
    np.testing.assert_array_equal(select(np, mask[:, ::2], x[:, ::2], 0), np.where(mask[:, ::2], x[:, ::2], 0))


def test_what_is_not_chosen_leaves_no_trace() -> None:
    mask = GENERATOR.random(SMALLEST) < 0.5
    for bad in (NAN, INF, -INF):
        np.testing.assert_array_equal(select(np, mask, np.full(SMALLEST, bad, "f4"), 0)[~mask], 0)
        np.testing.assert_array_equal(select(np, mask, 0, np.full(SMALLEST, bad, "f4"))[mask], 0)
    negative = select(np, mask, np.ones(SMALLEST, "f4"), -0.0)
    assert np.signbit(negative[~mask]).all()


# Quotients


EDGES = np.array([0.0, -0.0, 1.0, -1.0, 3.5, -3.5, 0.1, 1e-30, 1e30, -7e20, INF, -INF, NAN])


def check_division(x: Any, y: Any) -> None:
    """PyTorch's float32 quotients and remainders are themselves off where the quotient is large: it divides doubles."""
    tx, ty = torch.from_numpy(x).double(), torch.from_numpy(y).double()
    for name, wanted in (
        ("floored", torch.div(tx, ty, rounding_mode="floor")),
        ("remainder", torch.remainder(tx, ty)),
        ("fmod", torch.fmod(tx, ty)),
    ):
        np.testing.assert_array_equal(getattr(division, name)(np, x, y), wanted.numpy().astype(x.dtype), name)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_quotients_and_remainders_are_right_at_the_edges(dtype: Any) -> None:
    x, y = (v.reshape(-1).astype(dtype) for v in np.meshgrid(EDGES, EDGES))
    check_division(x, y)


@pytest.mark.parametrize("scale", [1, 1e3, 1e7])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_quotients_and_remainders_are_exact(dtype: Any, scale: float) -> None:
    x = (GENERATOR.standard_normal(50_000) * scale).astype(dtype)
    y = GENERATOR.standard_normal(50_000).astype(dtype)
    y[:10_000] = 0.1
    x[:5_000] = np.round(x[:5_000]) * dtype(0.1)  # quotients that are nearly whole
    check_division(x, y)


# Powers


@pytest.mark.parametrize(
    "exponent", [0, 1, 2, 3, 7, 32, 33, 64, -1, -2, -5, -33, 0.25, 1.5, 2.5, -2.5, 33.0, 1e9, INF, NAN]
)
def test_powers_are_pytorchs_at_the_edges(exponent: float) -> None:
    x = np.array([0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.01, -1.01, INF, -INF, NAN])
    engine = Engine()
    ours = engine.to_numpy(engine.call("pow", engine.from_numpy(x), exponent))
    np.testing.assert_allclose(ours, torch.pow(torch.from_numpy(x), exponent).numpy(), rtol=1e-13)


@pytest.mark.parametrize(
    "op", ["relu", "gelu", "silu", "sigmoid", "mish", "hardswish", "elu", "leaky_relu", "softplus"]
)
def test_activations_of_many_elements_are_those_of_few(op: str) -> None:
    x = GENERATOR.standard_normal((5, 9_000)).astype(np.float32) * 4
    engine = Engine()
    whole = engine.to_numpy(engine.call(op, engine.from_numpy(x)))
    part = engine.to_numpy(engine.call(op, engine.from_numpy(x[3, :100])))
    np.testing.assert_allclose(whole[3, :100], part, rtol=1e-6, atol=1e-7)
