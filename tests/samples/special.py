"""Samples of special functions with a derivative."""

from __future__ import annotations

import torch

from tests.samples import FLOATS, INTS, REALS, Make, Sample, samples

from .pointwise import NAN, Samplings, mixed, one, special, two

REAL_ALL = ("bool", *INTS, *REALS)
LOOSE = (1e-4, 1e-4)


@samples("special_entr", dtypes=REAL_ALL, ref=torch.special.entr)
def entr(make: Make) -> Samplings:
    for x in one(make, 0.1, 4):
        yield Sample(x)
    if make.is_float:
        yield Sample(special(make))


def _everywhere(name: str, like: str) -> None:
    differentiable = REAL_ALL if like not in ("i1", "i1e") else ("bool", *INTS, *FLOATS)

    @samples(name, dtypes=differentiable, ref=getattr(torch.special, like), tol=LOOSE, grad_fn=like != "ndtr")
    def everywhere(make: Make) -> Samplings:
        for x in one(make):
            yield Sample(x)
        if make.is_float:
            yield Sample(special(make).detach())
            yield Sample(make(20, low=-8, high=8))
            if "0" in like or "1" in like:
                yield Sample(make(10, low=100, high=200, requires_grad=False))  # where exponentials leave float32
            yield Sample(torch.zeros(2, dtype=make.dtype, requires_grad=like not in ("i1", "i1e")))


for _name in ("erfcx", "ndtr", "log_ndtr", "i0e", "i1", "i1e"):
    _everywhere(f"special_{_name}", _name)
_everywhere("i0", "i0")


@samples("special_ndtri", dtypes=REAL_ALL, ref=torch.special.ndtri, tol=LOOSE)
def ndtri(make: Make) -> Samplings:
    for x in one(make, 0.05, 0.95):
        yield Sample(x)
    if make.is_float:
        yield Sample(torch.tensor([-0.5, 0.0, 1.0, 1.5], dtype=make.dtype))


@samples("special_xlog1py", dtypes=REAL_ALL, ref=torch.special.xlog1py)
def xlog1py(make: Make) -> Samplings:
    for x, y in two(make, 0.1, 4):
        yield Sample(x, y)
    for x, y in mixed(make):
        yield Sample(x, abs(y))
        yield Sample(abs(y), make(3, low=0, high=4))
    if make.is_float:
        yield Sample(torch.zeros(8, dtype=make.dtype), special(make).detach())


@samples("xlogy", dtypes=(*INTS, *REALS))
def xlogy(make: Make) -> Samplings:
    for x, y in two(make, 1, 4):
        yield Sample(x, y)
    yield Sample(make(3), 2)
    yield Sample(make(3), 0)
    yield Sample(2, make(3, low=1))
    if make.is_float:
        factor = torch.tensor([0.0, 0.0, 0.0, 1.0, 2.0], dtype=make.dtype, requires_grad=True)
        yield Sample(factor, torch.tensor([0.0, NAN, -1.0, 0.0, -1.0], dtype=make.dtype, requires_grad=True))
        yield Sample(special(make), 0.0)
