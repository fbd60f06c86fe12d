"""Samples of histograms."""

from __future__ import annotations

from typing import Any

import torch

from tests.samples import FLOATS, HALVES, Make, Sample, samples

from .pointwise import Samplings


@samples("histc", dtypes=(*FLOATS, *HALVES))
def histc(make: Make) -> Samplings:
    x = make(40).detach()
    yield Sample(x)
    yield Sample(x, 7)
    yield Sample(x, 7, -1, 1.5)
    yield Sample(make(5, 6).detach(), 4, 2, 2)
    yield Sample(torch.full((3,), 2, dtype=make.dtype), 4)
    yield Sample(torch.zeros(0, dtype=make.dtype), 4)
    yield Sample(x, 0).fails()
    yield Sample(x, 4, 2, 1).fails()
    yield Sample(torch.tensor([1.0, float("nan")]).to(make.dtype), 4).fails()


def _dd(x: Any, bins: Any, range: Any = None, weight: Any = None, density: bool = False) -> tuple[Any, ...]:
    hist, edges = torch.histogramdd(x, list(bins), range=range, weight=weight, density=density)
    return (hist, *edges)


def _between(x: Any, edges: Any, weight: Any = None, density: bool = False) -> Any:
    return torch.histogramdd(x, edges, weight=weight, density=density)[0]


@samples("histogramdd", dtypes=FLOATS, ref=_dd, grad=False, grad_fn=False)
def histogramdd(make: Make) -> Samplings:
    x = make(30, 2).detach()
    for density in (False, True):
        yield Sample(x, (3, 4), density=density)
        yield Sample(x, (3, 4), range=(-1.0, 2.0, 0.0, 1.0), density=density)
        yield Sample(x, (2, 1), weight=make(30, low=0.5, high=2).detach(), density=density)
    yield Sample(make(2, 3, 1).detach(), (5,))
    yield Sample(torch.full((3, 1), 2, dtype=make.dtype), (4,))
    yield Sample(torch.zeros(5, 0, dtype=make.dtype), (), density=True)
    yield Sample(torch.zeros(2, 5, 0, dtype=make.dtype), ())
    yield Sample(x, (3,)).fails()
    yield Sample(x, (3, 0)).fails()
    yield Sample(x, (3, 4), range=(0.0, 1.0)).fails()
    yield Sample(x, (3, 4), range=(0.0, -1.0, 0.0, 1.0)).fails()
    yield Sample(x, (3, 4), weight=make(29)).fails()
    yield Sample(x * float("nan"), (3, 4)).fails()


@samples("histogramdd_edges", dtypes=FLOATS, ref=_between, grad=False, grad_fn=False)
def histogramdd_edges(make: Make) -> Samplings:
    x = make(30, 2).detach()
    one = torch.tensor([-3.0, -1.0, 0.5, 2.0], dtype=make.dtype)
    two = torch.tensor([-2.0, 1.0], dtype=make.dtype)
    for density in (False, True):
        yield Sample(x, [one, two], density=density)
        yield Sample(x, [two, one], make(30, low=0.5, high=2).detach(), density)
    yield Sample(one[:, None], [one])
    yield Sample(x, [one]).fails()
    yield Sample(x, [one, two[:1]]).fails()
    yield Sample(x, [one, two[None]]).fails()
