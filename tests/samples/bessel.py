"""Samples of Bessel and Airy functions."""

from __future__ import annotations

import torch

from tests.samples import FLOATS, INTS, Make, Sample, samples

from .pointwise import Samplings, one, special


def _register(name: str) -> None:
    @samples(f"special_{name}", dtypes=("bool", *INTS, *FLOATS), ref=getattr(torch.special, name), tol=(1e-4, 1e-4))
    def whole_line(make: Make) -> Samplings:
        for x in one(make):
            yield Sample(x)
        yield Sample(make(30, low=0, high=20))
        if make.is_float:
            yield Sample(special(make).detach())
            yield Sample(make(10, low=100, high=200, requires_grad=False))  # where exponentials leave float32


for _name in (
    "airy_ai", "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "modified_bessel_i0", "modified_bessel_i1",
    "modified_bessel_k0", "modified_bessel_k1", "scaled_modified_bessel_k0", "scaled_modified_bessel_k1",
    "spherical_bessel_j0",
):  # fmt: skip
    _register(_name)
