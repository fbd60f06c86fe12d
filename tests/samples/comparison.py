"""Samples of comparisons, number predicates, logic, bit operations."""

from __future__ import annotations

import torch

from tests.samples import ALL, INTS, REALS, Make, Sample, samples

from .pointwise import Samplings, one, special, two


@samples("eq", "ne")
def equality(make: Make) -> Samplings:
    for x, y in two(make):
        yield Sample(x, y)
    yield Sample(make(9), 2)
    yield Sample(make(3), 2.5)
    yield Sample(make(2, 3), make(4)).fails()
    if make.is_float:
        yield Sample(special(make), special(make))


@samples("lt", "le", "gt", "ge")
def order(make: Make) -> Samplings:
    for x, y in two(make):
        yield Sample(x, y)
    yield Sample(make(9), 2)
    yield Sample(make(3), 1.5)
    if make.is_float:
        yield Sample(special(make), 0.0)


@samples("eq", "ne", dtypes=("float16", "bfloat16"))
def equality_of_halves(make: Make) -> Samplings:
    yield Sample(torch.tensor([0.1, 0.2], dtype=make.dtype), 0.1)
    yield Sample(torch.tensor([0.1, 0.2], dtype=make.dtype), torch.tensor(0.1, dtype=torch.float64))


@samples("isclose")
def isclose(make: Make) -> Samplings:
    x = make(2, 3)
    yield Sample(x, x)
    yield Sample(make(2, 3), make(3))
    yield Sample(make(9), make(9), rtol=0.5, atol=0.25)
    yield Sample(make(9), make(9), rtol=0.0, atol=0.0)
    if make.is_float:
        yield Sample(special(make), special(make))
        yield Sample(special(make), special(make), equal_nan=True)
        yield Sample(make(2), make(2, dtype="int64")).fails()


@samples("isnan", "isinf", "isfinite", "isposinf", "isneginf", "isreal", "signbit")
def tests_of_a_number(make: Make) -> Samplings:
    for x in one(make):
        yield Sample(x)
    if make.is_float:
        yield Sample(special(make))
    if make.is_complex:
        nan, inf = float("nan"), float("inf")
        yield Sample(torch.tensor([complex(nan, 0), complex(0, inf), 1j, 2], dtype=make.dtype))


@samples("logical_and", "logical_or", "logical_xor")
def logic(make: Make) -> Samplings:
    for x, y in two(make, 0, 2 if make.is_int else None):
        yield Sample(x, y)


@samples("logical_not")
def logical_not(make: Make) -> Samplings:
    for x in one(make, 0, 2 if make.is_int else None):
        yield Sample(x)


@samples("bitwise_not", dtypes=ALL)
def bitwise_not(make: Make) -> Samplings:
    for x in one(make):
        yield Sample(x)


@samples("bitwise_and", "bitwise_or", "bitwise_xor", dtypes=("bool", *INTS, "float32"))
def bits(make: Make) -> Samplings:
    for x, y in two(make):
        if not y.dtype.is_floating_point or make.is_float:
            yield Sample(x, y)
    yield Sample(make(4), 3)
    yield Sample(make(4), True)
    yield Sample(3, make(4))


@samples("bitwise_left_shift", "bitwise_right_shift", dtypes=("bool", *INTS, *REALS[:1]))
def shifts(make: Make) -> Samplings:
    for x, y in two(make, 0, 7):
        if not y.dtype.is_floating_point or make.is_float:
            yield Sample(x, y)
    yield Sample(make(6), 2)
    yield Sample(3, make(4, low=0, high=4))
    yield Sample(make(6), 70)
    if make.is_int and make.dtype is not torch.uint8:
        yield Sample(make(6), make(6, low=-3, high=0))
