"""Samples of the gamma function's family."""

from __future__ import annotations

import torch

from tests.samples import INTS, REALS, Make, Sample, samples

from .pointwise import Samplings, one, special, two

REAL_ALL = ("bool", *INTS, *REALS)
LOOSE = (1e-4, 1e-4)


@samples("lgamma", "digamma", dtypes=REAL_ALL, tol=LOOSE)
def logarithm(make: Make) -> Samplings:
    for x in one(make, 0.2, 9):
        yield Sample(x)
    if make.is_float:
        yield Sample(make(9, low=-3.9, high=-3.1))
        yield Sample(special(make).detach())


@samples("polygamma", dtypes=REAL_ALL, ref=lambda x, n: torch.polygamma(n, x), tol=LOOSE)
def polygamma(make: Make) -> Samplings:
    for n in (0, 1, 2, 3, 4):
        for x in one(make, 0.6, 9):
            yield Sample(x, n)
    yield Sample(make(2, low=1, high=3), -1).fails()


@samples("mvlgamma", dtypes=("uint8", *INTS[1:], *REALS), tol=LOOSE)
def mvlgamma(make: Make) -> Samplings:
    for p in (1, 3, 5):
        for x in one(make, 3, 9):
            yield Sample(x, p)
    yield Sample(make(2, low=3, high=5), 0).fails()


@samples("igamma", "igammac", dtypes=REALS, grad=("other",), gradgrad=False, tol=LOOSE)
def incomplete(make: Make) -> Samplings:
    for x, y in two(make, 0.3, 5):
        yield Sample(x.detach(), y)
    edges = torch.tensor([[0.0, 1.0, -1.0, 2.0], [0.0, 0.0, 1.0, -1.0]], dtype=make.dtype)
    yield Sample(edges[0], edges[1])


@samples("special_zeta", dtypes=REAL_ALL[1:], ref=torch.special.zeta, grad=("other",), gradgrad=False, tol=LOOSE)
def zeta(make: Make) -> Samplings:
    for x, y in two(make, 1.5, 5):
        yield Sample(x.detach(), y)
    yield Sample(2.5, make(3, low=1, high=4))
    yield Sample(make(3, low=1, high=4).detach(), 2)
    if make.is_float:
        at = torch.tensor([0.0, -1.0, -1.5, float("inf"), float("nan")], dtype=make.dtype)
        yield Sample(torch.full((5,), 2.0, dtype=make.dtype), at)
