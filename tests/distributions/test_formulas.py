"""Densities, distribution functions, entropies, moments and supports equal torch's, and so do their gradients."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import pytest
import torch

import gradwire

from .families import FAMILIES

ATTRIBUTES = ("mean", "mode", "variance", "stddev", "entropy", "perplexity", "log_prob", "cdf", "icdf",
              "enumerate_support")  # fmt: skip
DISTRIBUTIONS: Any = {torch: torch.distributions, gradwire: gradwire.distributions}


def dtype_of(name: str) -> str:
    """float64 where torch computes in it; of this one it mixes dtypes."""
    return "float32" if name.startswith("GeneralizedPareto") else "float64"


def fresh(name: str) -> tuple[list[Any], Any, Any]:
    """Parameters, values and probabilities of a family, the same in every run."""
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    parameters = FAMILIES[name].parameters(rng)
    values = FAMILIES[name].values(rng, parameters)
    return parameters, values, rng.uniform(0.05, 0.95, np.shape(values))


def ask(name: str, attribute: str, lib: Any) -> Any:
    """The attribute's values and its gradients for the parameters and the values, or the exception's class."""
    parameters, values, chances = fresh(name)
    dtype = getattr(lib, dtype_of(name))
    leaves = [lib.tensor(p, dtype=dtype, requires_grad=True) for p in parameters]
    at = lib.tensor(chances if attribute == "icdf" else values)
    if at.is_floating_point():
        at = at.to(dtype)
        at.requires_grad_()
    try:
        found = getattr(FAMILIES[name].make(DISTRIBUTIONS[lib], *leaves), attribute)
        if attribute in ("log_prob", "cdf", "icdf"):
            found = found(at)
        elif callable(found):
            found = found()
        result = [found.detach().numpy()]
        if found.requires_grad:
            seed = lib.tensor(np.random.default_rng(5).normal(size=tuple(found.shape)), dtype=dtype)
            clean = lib.where(lib.isfinite(found), found, lib.zeros_like(found))
            gradients = lib.autograd.grad(
                clean, [*leaves, *([at] if at.requires_grad else [])], seed, allow_unused=True
            )
            result += [None if g is None else g.numpy() for g in gradients]
        return result
    except NotImplementedError:
        return NotImplementedError


@pytest.mark.parametrize("attribute", ATTRIBUTES)
@pytest.mark.parametrize("name", FAMILIES)
def test_values_and_gradients_are_those_of_torch(name: str, attribute: str) -> None:
    if (name, attribute) == ("Kumaraswamy", "mode"):
        pytest.skip("torch's is NaN; test_the_mode_of_kumaraswamy_is_where_its_density_is_largest")
    expected, actual = ask(name, attribute, torch), ask(name, attribute, gradwire)
    if expected is NotImplementedError:
        assert actual is NotImplementedError
        return
    assert actual is not NotImplementedError
    # torch computes in float32 or, for the Bessel functions of von Mises, from approximations to some 1e-7.
    exact = dtype_of(name) == "float64" and name != "VonMises"
    close = {"rtol": 1e-6, "atol": 1e-7} if exact else {"rtol": 1e-4, "atol": 1e-5}
    np.testing.assert_allclose(actual[0], expected[0], **close)
    for wanted, found in zip(expected[1:], actual[1:], strict=True):
        if wanted is None or found is None:
            assert all(v is None or not np.nan_to_num(v).any() for v in (wanted, found))
            continue
        assert found.dtype == wanted.dtype
        # Where a value is not defined, its gradient is 0 here, often NaN there.
        np.testing.assert_allclose(found, np.where(np.isnan(wanted), found, wanted), **close)


@pytest.mark.parametrize("name", FAMILIES)
def test_shapes_supports_and_expanded_batches_are_those_of_torch(name: str) -> None:
    found, densities = {}, {}
    for lib, D in DISTRIBUTIONS.items():
        parameters, values, _ = fresh(name)
        dtype = getattr(lib, dtype_of(name))
        made = FAMILIES[name].make(D, *[lib.tensor(p, dtype=dtype) for p in parameters])
        values = lib.tensor(values)
        values = values.to(dtype) if values.is_floating_point() else values
        wide = made.expand((4, *made.batch_shape))
        support = made.support
        found[lib] = {
            "batch": list(made.batch_shape), "event": list(made.event_shape), "rsample": bool(made.has_rsample),
            "enumerates": bool(made.has_enumerate_support), "wide": list(wide.batch_shape),
            "support": (type(support).__name__, support.event_dim, support.is_discrete),
            "inside": np.asarray(support.check(values).tolist()).tolist(),
            "sample": list(wide.sample((7,)).shape), "dtype": str(wide.sample().dtype),
            "same": type(wide) is type(made), "repr": "" if "Mixture" in name else str(made),
        }  # fmt: skip
        densities[lib] = wide.log_prob(values.unsqueeze(1)).numpy()
    assert found[gradwire] == found[torch]
    np.testing.assert_allclose(densities[gradwire], densities[torch], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["RelaxedBernoulli", "RelaxedOneHotCategorical"])
def test_a_temperature_that_is_a_number_counts_in_full_precision(name: str) -> None:
    kind = getattr(gradwire.distributions, name)
    logits, value = gradwire.randn(3, dtype=gradwire.float64), gradwire.full((3,), 1 / 3, dtype=gradwire.float64)
    temperature = gradwire.tensor(0.7, dtype=gradwire.float64)
    by_number, by_tensor = (kind(t, logits=logits).log_prob(value) for t in (0.7, temperature))
    assert gradwire.allclose(by_number, by_tensor, rtol=1e-13)


def test_the_mode_of_kumaraswamy_is_where_its_density_is_largest() -> None:
    a, b = gradwire.tensor([1.5, 2.0, 3.0]), gradwire.tensor([1.2, 2.0, 5.0])
    made = gradwire.distributions.Kumaraswamy(a, b)
    grid = gradwire.linspace(0.001, 0.999, 999).unsqueeze(-1)
    best = grid[made.log_prob(grid).argmax(0), 0]
    assert gradwire.allclose(made.mode, best, atol=2e-3)
