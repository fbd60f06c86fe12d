"""Samples of random variates with parameters: gradients at the same samples, and range."""

from __future__ import annotations

from typing import Any

import torch

from tests.samples import FLOATS, REALS, Make, Sample, samples

from .pointwise import Samplings


def _within(low: float, high: float, whole: bool = False) -> Any:
    def check(results: list[torch.Tensor], *args: Any, **kwargs: Any) -> None:
        value = results[0].double()
        assert ((value >= low) & (value <= high)).all()
        assert not whole or (value == value.floor()).all()

    return check


@samples("standard_gamma", ref=None, dtypes=REALS, check=_within(1e-308, 100))
def standard_gamma(make: Make) -> Samplings:
    yield Sample(make(3, 4, low=0.1, high=5))
    yield Sample(make(3, 2, low=0.1, high=5, transposed=True))
    yield Sample(make(0, 3))
    yield Sample(torch.tensor(0.01, dtype=make.dtype))
    yield Sample(make(3, low=-2, high=-1)).fails()
    yield Sample(make(3, dtype="int64", low=1)).fails()


@samples("sample_dirichlet", ref=None, dtypes=REALS, check=_within(0, 1))
def sample_dirichlet(make: Make) -> Samplings:
    yield Sample(make(3, 4, low=0.1, high=5))
    yield Sample(make(2, 3, low=0.001, high=0.01))
    yield Sample(make(4, 1, low=0.1, high=5))
    yield Sample(make(0, 3))
    yield Sample(make(2, 3, low=-2, high=-1)).fails()
    yield Sample(torch.tensor(1.0, dtype=make.dtype)).fails()


@samples("sample_von_mises", ref=None, dtypes=FLOATS, check=_within(-3.15, 3.15))
def sample_von_mises(make: Make) -> Samplings:
    yield Sample(make(3, 4, low=0.1, high=5, requires_grad=False))
    yield Sample(torch.tensor([1e-8, 1e-3, 1e3, 1e8], dtype=make.dtype))
    yield Sample(make(3, low=-2, high=-1)).fails()


@samples("poisson", ref=None, dtypes=REALS, check=_within(0, 200, whole=True))
def poisson(make: Make) -> Samplings:
    yield Sample(make(3, 4, low=0.1, high=5))
    yield Sample(make(3, 4, low=0, high=60, transposed=True))
    yield Sample(torch.zeros(3, dtype=make.dtype))
    yield Sample(make(0, 3))
    yield Sample(make(3, low=-2, high=-1)).fails()
    yield Sample(make(3, dtype="int64", low=1)).fails()


@samples("binomial", ref=None, dtypes=REALS, check=_within(0, 100, whole=True))
def binomial(make: Make) -> Samplings:
    yield Sample(torch.tensor([0.0, 3.0, 100.0], dtype=make.dtype), make(2, 3, low=0, high=1))
    yield Sample(torch.tensor(20.0, dtype=make.dtype), torch.tensor([0.0, 0.5, 1.0], dtype=make.dtype))
    yield Sample(torch.tensor([-1.0], dtype=make.dtype), make(3, low=0, high=1)).fails()
    yield Sample(torch.tensor([2.0], dtype=make.dtype), make(3, low=1.5, high=2)).fails()
    yield Sample(torch.tensor([2]), make(3, low=0, high=1)).fails()


def _gamma_shift(a: torch.Tensor, sample: torch.Tensor) -> torch.Tensor:
    return torch._standard_gamma_grad(*torch.broadcast_tensors(a, sample))


def _dirichlet_shift(x: torch.Tensor, alpha: torch.Tensor, total: torch.Tensor) -> torch.Tensor:
    return torch._dirichlet_grad(x, alpha, total)


# torch's own are approximations to some 1e-3; tests/engine/test_quantiles.py has the numbers behind these.


@samples("standard_gamma_grad", ref=_gamma_shift, dtypes=FLOATS, grad=False, tol=(5e-3, 1e-4))
def standard_gamma_grad(make: Make) -> Samplings:
    yield Sample(make(30, low=0.1, high=5, requires_grad=False), make(30, low=0.1, high=5, requires_grad=False))
    yield Sample(make(30, low=10, high=50, requires_grad=False), make(30, low=10, high=50, requires_grad=False))
    yield Sample(make(0, requires_grad=False), make(0, requires_grad=False))


@samples("dirichlet_grad", ref=_dirichlet_shift, dtypes=FLOATS, grad=False, tol=(5e-3, 1e-4))
def dirichlet_grad(make: Make) -> Samplings:
    plain = make.plain()
    alpha = plain(20, low=0.1, high=5)
    yield Sample(plain(20, low=0.02, high=0.98), alpha, alpha + plain(20, low=0.1, high=5))
    yield Sample(plain(0), plain(0), plain(0))
