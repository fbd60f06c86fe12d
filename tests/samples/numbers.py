"""Samples of operations on the parts of numbers."""

from __future__ import annotations

import torch

from tests.samples import ALL, BOOL, COMPLEXES, HALVES, INTS, REALS, Make, Sample, samples

from .pointwise import Samplings, one, special, two


@samples("gcd", "lcm", dtypes=INTS)
def divisors(make: Make) -> Samplings:
    for x, y in two(make):
        if not y.is_floating_point():
            yield Sample(x, y)
    yield Sample(torch.tensor([0, 0, 6], dtype=make.dtype), torch.tensor([0, 5, 4], dtype=make.dtype))


@samples("gcd", "lcm", dtypes=("float32", "complex64", "bool"))
def no_divisors(make: Make) -> Samplings:
    yield Sample(make(2), make(2)).fails()


@samples("heaviside", dtypes=(*BOOL, *INTS, *REALS), grad=False, grad_fn=False)
def heaviside(make: Make) -> Samplings:
    yield Sample(make(2, 3), make(3))
    yield Sample(make(3, 2, transposed=True), make())
    yield Sample(make(3), make(3, dtype="float64")).expecting(make.name != "float64")
    if make.is_float:
        yield Sample(special(make), make(8))


@samples("heaviside", dtypes=COMPLEXES)
def heaviside_of_complex_numbers(make: Make) -> Samplings:
    yield Sample(make(2), make(2)).fails()


@samples("nextafter", dtypes=REALS, gradgrad=False)
def nextafter(make: Make) -> Samplings:
    for x, y in two(make):
        if y.is_floating_point() and (make.name not in HALVES or y.dtype is make.dtype):
            yield Sample(x, y)
    for other in (0.0, 1.0, -1.0, 2.5, float("inf"), -float("inf"), float("nan")):
        yield Sample(special(make).detach(), torch.tensor(other, dtype=make.dtype))


@samples("frexp", dtypes=REALS)
def frexp(make: Make) -> Samplings:
    for x in one(make, 0.1, 9):
        yield Sample(x)
    if make.is_float:
        yield Sample(torch.tensor([0.0, -0.0, 1.0, -8.0, 1e-7], dtype=make.dtype))


@samples("frexp", dtypes=("int64", "complex64"))
def frexp_of_others(make: Make) -> Samplings:
    yield Sample(make(2)).fails()


@samples("ldexp", dtypes=ALL)
def ldexp(make: Make) -> Samplings:
    for x, y in two(make):
        if y.dtype is make.dtype:
            yield Sample(x, y)
    # torch's derivative takes 2 ** -1 of an integer exponent for 0.
    yield Sample(make(2, 3), make(3, dtype="int32", low=0, high=4))
