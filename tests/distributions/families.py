"""The distributions under test: how to create each from parameters, and values to evaluate.

A family is created from float64 leaves by a function of a library (torch or gradwire) and these leaves, so that both
libraries create the same distribution with gradients for the same parameters.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class Family(NamedTuple):
    """A distribution: how its parameters and some values of its support are drawn, and how it is made."""

    parameters: Callable[[np.random.Generator], list[Any]]
    make: Callable[..., Any]
    values: Callable[[np.random.Generator, list[Any]], Any]


FAMILIES: dict[str, Family] = {}


def _positive(*shape: int, low: float = 0.3, high: float = 3.0) -> Callable[[np.random.Generator], Any]:
    return lambda rng: rng.uniform(low, high, shape)


def _real(*shape: int) -> Callable[[np.random.Generator], Any]:
    return lambda rng: rng.normal(size=shape)


def _simplex(*shape: int) -> Callable[[np.random.Generator], Any]:
    return lambda rng: rng.dirichlet(np.ones(shape[-1]) * 2, shape[:-1])


def _add(name: str, parameters: list[Any], make: Any, values: Any) -> None:
    FAMILIES[name] = Family(lambda rng: [p(rng) for p in parameters], make, values)


BATCH = (2, 3)
REAL = lambda rng, _: rng.normal(size=(4, *BATCH))
POSITIVE = lambda rng, _: rng.uniform(0.2, 4, (4, *BATCH))
UNIT = lambda rng, _: rng.uniform(0.05, 0.95, (4, *BATCH))
COUNTS = lambda rng, _: rng.integers(0, 6, (4, *BATCH)).astype(float)
BITS = lambda rng, _: rng.integers(0, 2, (4, *BATCH)).astype(float)


def _location_and_scale(name: str) -> None:
    _add(name, [_real(*BATCH), _positive(3)], lambda D, a, b: getattr(D, name)(a, b), REAL)


for _name in ("Normal", "Laplace", "Cauchy", "Gumbel"):
    _location_and_scale(_name)
_add("LogNormal", [_real(*BATCH), _positive(3)], lambda D, a, b: D.LogNormal(a, b), POSITIVE)
for _name in ("Gamma", "InverseGamma", "Weibull", "FisherSnedecor"):
    _add(_name, [_positive(*BATCH), _positive(3)], lambda D, a, b, name=_name: getattr(D, name)(a, b), POSITIVE)
for _name in ("Beta", "Kumaraswamy"):
    _add(_name, [_positive(*BATCH), _positive(3)], lambda D, a, b, name=_name: getattr(D, name)(a, b), UNIT)
for _name in ("Exponential", "Chi2", "HalfNormal", "HalfCauchy"):
    _add(_name, [_positive(*BATCH)], lambda D, a, name=_name: getattr(D, name)(a), POSITIVE)
_add("Uniform", [_real(*BATCH), _positive(3)], lambda D, a, b: D.Uniform(a, a + b),
     lambda rng, p: p[0] + p[1] * rng.uniform(0.05, 0.95, (4, *BATCH)))  # fmt: skip
_add("Pareto", [_positive(*BATCH), _positive(3, high=5)], lambda D, a, b: D.Pareto(a, b),
     lambda rng, p: p[0] * (1 + rng.uniform(0.1, 3, (4, *BATCH))))  # fmt: skip
_add("GeneralizedPareto", [_real(*BATCH), _positive(3), lambda rng: np.array([-0.4, 0.2, 0.7])],
     lambda D, a, b, c: D.GeneralizedPareto(a, b, c),
     lambda rng, p: p[0] + p[1] * rng.uniform(0.1, 2, (4, *BATCH)))  # fmt: skip
_add("GeneralizedPareto of concentration 0", [_real(3), _positive(3)],
     lambda D, a, b: D.GeneralizedPareto(a, b, a.detach() * 0),
     lambda rng, p: p[0] + p[1] * rng.uniform(0.1, 2, (4, 3)))  # fmt: skip
_add("StudentT", [_positive(*BATCH, high=6), _real(3), _positive(3)], lambda D, a, b, c: D.StudentT(a, b, c), REAL)
_add("VonMises", [_real(*BATCH), _positive(3, high=20)], lambda D, a, b: D.VonMises(a, b), REAL)
_add("Poisson", [_positive(*BATCH, high=6)], lambda D, a: D.Poisson(a), COUNTS)
for _name in ("Bernoulli", "Geometric", "ContinuousBernoulli"):
    _values = {"Bernoulli": BITS, "Geometric": COUNTS, "ContinuousBernoulli": UNIT}[_name]
    _add(_name, [_positive(*BATCH, low=0.1, high=0.9)], lambda D, a, name=_name: getattr(D, name)(a), _values)
    _add(f"{_name} by logits", [_real(*BATCH)], lambda D, a, name=_name: getattr(D, name)(logits=a), _values)
_add("ContinuousBernoulli near one half", [lambda rng: np.array([0.4995, 0.5, 0.5003])],
     lambda D, a: D.ContinuousBernoulli(a), lambda rng, _: rng.uniform(0.05, 0.95, (4, 3)))  # fmt: skip
_add("Binomial", [_positive(*BATCH, low=0.1, high=0.9)], lambda D, a: D.Binomial(6, a), COUNTS)
_add("Binomial by logits", [_real(*BATCH)], lambda D, a: D.Binomial(a.detach() * 0 + 7, logits=a), COUNTS)
_add("NegativeBinomial", [_positive(*BATCH, low=0.1, high=0.9), _positive(3)],
     lambda D, a, b: D.NegativeBinomial(b, a), COUNTS)  # fmt: skip
_add("NegativeBinomial by logits", [_real(*BATCH)], lambda D, a: D.NegativeBinomial(3, logits=a), COUNTS)
_index = lambda rng, _: rng.integers(0, 4, (5, *BATCH))
_rows = lambda rng, _: np.eye(4)[rng.integers(0, 4, (5, *BATCH))]
_counts = lambda rng, _: rng.multinomial(5, np.ones(4) / 4, (5, *BATCH)).astype(float)
for _name, _values in (("Categorical", _index), ("OneHotCategorical", _rows)):
    _add(_name, [_positive(*BATCH, 4)], lambda D, a, name=_name: getattr(D, name)(a), _values)
    _add(f"{_name} by logits", [_real(*BATCH, 4)], lambda D, a, name=_name: getattr(D, name)(logits=a), _values)
_add("OneHotCategoricalStraightThrough", [_positive(*BATCH, 4)],
     lambda D, a: D.OneHotCategoricalStraightThrough(a), _rows)  # fmt: skip
_add("Multinomial", [_positive(*BATCH, 4)], lambda D, a: D.Multinomial(5, a), _counts)
_add("Multinomial by logits", [_real(*BATCH, 4)], lambda D, a: D.Multinomial(5, logits=a), _counts)
_add("Dirichlet", [_positive(*BATCH, 4)], lambda D, a: D.Dirichlet(a),
     lambda rng, _: rng.dirichlet(np.ones(4), (5, *BATCH)))  # fmt: skip
_add("Dirichlet of corners", [_positive(*BATCH, 4, low=0.2, high=0.9)], lambda D, a: D.Dirichlet(a),
     lambda rng, _: rng.dirichlet(np.ones(4), (5, *BATCH)))  # fmt: skip
_add("LogisticNormal", [_real(*BATCH), _positive(3)], lambda D, a, b: D.LogisticNormal(a, b),
     lambda rng, _: rng.dirichlet(np.ones(4), (5, 2)))  # fmt: skip
_add("RelaxedBernoulli", [_positive(*BATCH, low=0.1, high=0.9), _positive()],
     lambda D, a, t: D.RelaxedBernoulli(t, a), UNIT)  # fmt: skip
_add("RelaxedOneHotCategorical", [_positive(*BATCH, 4), _positive()],
     lambda D, a, t: D.RelaxedOneHotCategorical(t, a),
     lambda rng, _: rng.dirichlet(np.ones(4), (5, *BATCH)))  # fmt: skip


def _square(*shape: int) -> Callable[[np.random.Generator], Any]:
    def draw(rng: np.random.Generator) -> Any:
        return rng.normal(size=shape) + 2 * np.eye(shape[-1])

    return draw


def _definite(a: Any) -> Any:
    n = a.shape[-1]
    return a @ a.transpose(-2, -1) / n


_vectors = lambda rng, _: rng.normal(size=(5, 2, 3))
_add("MultivariateNormal", [_real(2, 3), _square(3, 3)],
     lambda D, a, b: D.MultivariateNormal(a, _definite(b)), _vectors)  # fmt: skip
_add("MultivariateNormal by precisions", [_real(3), _square(2, 3, 3)],
     lambda D, a, b: D.MultivariateNormal(a, precision_matrix=_definite(b)), _vectors)  # fmt: skip
_add("MultivariateNormal by factors", [_real(2, 3), _square(2, 3, 3)],
     lambda D, a, b: D.MultivariateNormal(a, scale_tril=b.tril(-1) + b.diagonal(0, -2, -1).exp().diag_embed()),
     _vectors)  # fmt: skip
_add("LowRankMultivariateNormal", [_real(2, 3), _real(3, 2), _positive(2, 3)],
     lambda D, a, b, c: D.LowRankMultivariateNormal(a, b, c), _vectors)  # fmt: skip


def _matrices(rng: np.random.Generator, _: Any) -> Any:
    a = rng.normal(size=(5, 2, 3, 6))
    return a @ a.swapaxes(-2, -1)


_add("Wishart", [_positive(2, low=3.5, high=8), _square(3, 3)], lambda D, a, b: D.Wishart(a, _definite(b)), _matrices)
_add("Wishart by precisions", [_positive(2, low=3.5, high=8), _square(2, 3, 3)],
     lambda D, a, b: D.Wishart(a, precision_matrix=_definite(b)), _matrices)  # fmt: skip
_add("LKJCholesky", [_positive(2)], lambda D, a: D.LKJCholesky(3, a),
     lambda rng, _: np.linalg.cholesky([[[1, 0.3, -0.2], [0.3, 1, 0.5], [-0.2, 0.5, 1]]]))  # fmt: skip
_add("MixtureSameFamily", [_positive(2, 4), _real(2, 4), _positive(4)],
     lambda D, w, a, b: D.MixtureSameFamily(D.Categorical(w), D.Normal(a, b)),
     lambda rng, _: rng.normal(size=(5, 2)))  # fmt: skip
_add("MixtureSameFamily of vectors", [_positive(4), _real(2, 4, 3), _positive(3)],
     lambda D, w, a, b: D.MixtureSameFamily(D.Categorical(w), D.Independent(D.Normal(a, b), 1)),
     lambda rng, _: rng.normal(size=(5, 2, 3)))  # fmt: skip
_add("Independent", [_real(*BATCH), _positive(3)], lambda D, a, b: D.Independent(D.Normal(a, b), 1), REAL)
_add("TransformedDistribution", [_real(*BATCH), _positive(3)],
     lambda D, a, b: D.TransformedDistribution(
         D.Normal(a, b), [D.transforms.TanhTransform(), D.transforms.AffineTransform(1.0, -2.0)]),
     lambda rng, _: rng.uniform(-0.9, 2.9, (4, *BATCH)))  # fmt: skip
