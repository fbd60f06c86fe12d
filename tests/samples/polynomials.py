"""Samples of orthogonal polynomials."""

from __future__ import annotations

import torch

from tests.samples import FLOATS, INTS, Make, Sample, samples

from .pointwise import Samplings


def _register(name: str) -> None:
    @samples(f"special_{name}", dtypes=("bool", *INTS, *FLOATS), ref=getattr(torch.special, name), tol=(1e-4, 1e-4))
    def degrees(make: Make) -> Samplings:
        for n in range(-1, 12):
            yield Sample(make(2, 3, low=-1.5, high=1.5), n)
        yield Sample(make(2, 3, low=-1, high=1), make.index(3, low=-2, high=9))
        yield Sample(make(3, 2, transposed=True), make(3, 2, low=0, high=5))
        yield Sample(2, make(4, low=0, high=6))
        yield Sample(make(), make(3, low=0, high=6))
        yield Sample(make(0), 3)


for _name in (
    "chebyshev_polynomial_t", "chebyshev_polynomial_u", "chebyshev_polynomial_v", "chebyshev_polynomial_w",
    "shifted_chebyshev_polynomial_t", "shifted_chebyshev_polynomial_u", "shifted_chebyshev_polynomial_v",
    "shifted_chebyshev_polynomial_w", "hermite_polynomial_h", "hermite_polynomial_he", "laguerre_polynomial_l",
    "legendre_polynomial_p",
):  # fmt: skip
    _register(_name)
