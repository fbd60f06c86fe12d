"""Samples of elementwise functions of one number."""

from __future__ import annotations

import math

import torch

from tests.samples import ALL, COMPLEXES, FLOATS, INTS, REALS, Make, Sample, samples

from .pointwise import Samplings, one, special

REAL_ALL = ("bool", *INTS, *REALS)


@samples(
    "exp", "exp2", "expm1", "sin", "cos", "sinh", "cosh", "tanh", "atan", "asinh", "sigmoid", "reciprocal",
    "sinc", tol=(1e-4, 1e-5),
)  # fmt: skip
def everywhere(make: Make) -> Samplings:
    for x in one(make):
        yield Sample(x)
    if make.is_float:
        yield Sample(special(make))


@samples("log", "log2", "log10", "log1p", "sqrt", "rsqrt", tol=(1e-4, 1e-5))
def positive(make: Make) -> Samplings:
    for x in one(make, None if make.is_complex else 0.1):
        yield Sample(x)
    if make.is_float:
        yield Sample(special(make))


@samples("tan", tol=(1e-4, 1e-4))
def tan(make: Make) -> Samplings:
    for x in one(make, -1.2, 1.2):
        yield Sample(x)


@samples("asin", "acos", "atanh", tol=(1e-4, 1e-4))
def inside(make: Make) -> Samplings:
    for x in one(make, -0.9, 0.9):
        yield Sample(x)
    if make.is_float:
        yield Sample(special(make).detach())


@samples("acosh", tol=(1e-4, 1e-4))
def acosh(make: Make) -> Samplings:
    for x in one(make, 1.2, 3):
        yield Sample(x)


@samples("logit", dtypes=REAL_ALL, tol=(1e-4, 1e-5))
def logit(make: Make) -> Samplings:
    for x in one(make, 0.1, 0.9):
        yield Sample(x)
    yield Sample(make(6, low=-0.2, high=1.2), eps=0.1)
    if make.is_float:
        for eps in (None, 0.0, 0.2, 0.7, 1.0, 1.2):
            special = [-math.inf, -0.5, 0.0, 0.125, 0.5, 0.75, 1.0, 1.5, math.inf]
            yield Sample(torch.tensor(special, dtype=make.dtype, requires_grad=True), eps=eps)
        # With eps, torch's gradient at a NaN depends on the strides of what arrives.
        yield Sample(torch.tensor([math.nan], dtype=make.dtype, requires_grad=True))


@samples("erf", "erfc", dtypes=REAL_ALL)
def erf(make: Make) -> Samplings:
    for x in one(make):
        yield Sample(x)
    yield Sample(make(40, low=-7, high=7))
    if make.is_float:
        yield Sample(special(make))


@samples("erfinv", dtypes=REAL_ALL, tol=(1e-4, 1e-5))
def erfinv(make: Make) -> Samplings:
    for x in one(make, -0.9, 0.9):
        yield Sample(x)
    if make.is_float:
        yield Sample(torch.tensor([-1.5, -1.0, 0.0, 1.0, 2.0], dtype=make.dtype))


@samples("deg2rad", "rad2deg", dtypes=REAL_ALL)
def angles(make: Make) -> Samplings:
    for x in one(make):
        yield Sample(x)


@samples("floor", "ceil", "trunc", dtypes=(*INTS, *REALS, *COMPLEXES))
def rounding(make: Make) -> Samplings:
    for x in one(make):
        yield Sample(x)
    if make.is_float:
        yield Sample(special(make))


@samples("round", dtypes=(*INTS, *REALS))
def round_(make: Make) -> Samplings:
    for x in one(make):
        yield Sample(x)
    if make.is_float:
        yield Sample(torch.tensor([0.5, 1.5, 2.5, -0.5, -1.5], dtype=make.dtype, requires_grad=True))
        yield Sample(make(4), decimals=1)
        yield Sample(make(4, low=-400, high=400), decimals=-2)


@samples("frac", dtypes=REALS)
def frac(make: Make) -> Samplings:
    for x in one(make):
        yield Sample(x)


@samples("nan_to_num", dtypes=ALL)
def nan_to_num(make: Make) -> Samplings:
    for x in one(make):
        yield Sample(x.detach() if make.is_complex else x)
    if make.is_float:
        yield Sample(special(make))
        yield Sample(special(make), nan=1.5, posinf=100.0, neginf=-50)
    if make.is_complex:
        real, imag = special(Make(FLOATS[0], 0)).detach(), special(Make(FLOATS[0], 0)).detach().flip(0)
        yield Sample(torch.complex(real, imag).to(make.dtype), nan=2.0)
