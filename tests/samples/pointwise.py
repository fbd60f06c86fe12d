"""Samples of elementwise arithmetic."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from tests.samples import COMPLEXES, FLOATS, HALVES, INTS, REALS, Make, Sample, samples

INF, NAN = float("inf"), float("nan")
Samplings = Iterator[Sample]


def one(make: Make, low: float | None = None, high: float | None = None) -> Iterator[torch.Tensor]:
    """Tensors that try a rule of one operand: dimensioned, 0-dim, empty, column-major, with gaps, expanded."""
    yield make(2, 3, low=low, high=high)
    yield make(low=low, high=high)
    yield make(0, 3, low=low, high=high)
    yield make(3, 2, low=low, high=high, transposed=True)
    yield make(4, 6, low=low, high=high)[::2, 1::2]
    yield make(3, 1, low=low, high=high).expand(3, 2)


def two(make: Make, low: float | None = None, high: float | None = None) -> Iterator[tuple[Any, Any]]:
    """Pairs that try a rule of two operands: equal shapes, broadcast either way, ranks, memory orders, dtypes."""

    def given(*shape: int, **kwargs: Any) -> torch.Tensor:
        return make(*shape, low=low, high=high, **kwargs)

    yield given(2, 3), given(2, 3)
    yield given(2, 3), given(3)
    yield given(2, 1), given(1, 3)
    yield given(), given(2)
    yield given(2), given()
    yield given(0), given(1)
    yield given(3, 2, transposed=True), given(3, 2)
    yield given(3, 2, transposed=True), given(3, 2, transposed=True)
    yield given(4, 3)[::2], given(3)
    yield given(2, 3), given(dtype="float64")
    yield given(2, 3), given(3, dtype="int32")
    x = given(3)
    yield x, x


def mixed(make: Make) -> Iterator[tuple[Any, Any]]:
    """Pairs of which the second is a number."""
    yield make(2, 3), 2
    yield make(2, 3, transposed=True), -1.5 if not make.is_int else 3
    yield make(), 2
    yield make(2), 2.5
    yield make(2), True


def special(make: Make) -> torch.Tensor:
    """NaN, infinities, zeros of both signs, ordinary numbers."""
    return torch.tensor([NAN, INF, -INF, 0.0, -0.0, 1.0, -1.0, 2.5], dtype=make.dtype, requires_grad=True)


@samples("add", "sub", "rsub")
def sums(make: Make) -> Samplings:
    for x, y in two(make):
        yield Sample(x, y)
    for x, y in mixed(make):
        yield Sample(x, y)
    yield Sample(make(2, 3), make(3), alpha=2)
    yield Sample(make(2), 3, alpha=1.5)
    yield Sample(make(2), make(2), alpha=True)
    yield Sample(make(2, 3), make(4)).fails()
    if make.is_complex:
        yield Sample(make(2), make(2), alpha=1 - 2j)


@samples("mul")
def mul(make: Make) -> Samplings:
    for x, y in two(make):
        yield Sample(x, y)
    for x, y in mixed(make):
        yield Sample(x, y)
    yield Sample(make(2), 1 + 2j)
    yield Sample(make(2, 3), make(4)).fails()


@samples("div")
def div(make: Make) -> Samplings:
    for x, y in two(make, 1, 4):
        yield Sample(x, y)
    for x, y in mixed(make):
        yield Sample(x, y)
    yield Sample(make(3), make(3), rounding_mode="up").fails()
    if not make.is_complex and not make.is_bool:
        for mode in ("floor", "trunc"):
            for x, y in two(make, 1, 4):
                # torch divides halves by a float64 number before it is rounded: equal ones may fall either way.
                if make.name not in HALVES or y.dtype is not torch.float64:
                    yield Sample(x, y, rounding_mode=mode)
            yield Sample(make(8), 3, rounding_mode=mode)
            yield Sample(make(8), -2 if make.dtype is not torch.uint8 else 2, rounding_mode=mode)
            yield Sample(make(4), 0.75, rounding_mode=mode)
            zero = Sample(make(3), 0, rounding_mode=mode)
            yield zero.fails() if make.is_int else zero
            yield Sample(make(3), torch.zeros(3, dtype=make.dtype), rounding_mode=mode).expecting(make.is_int)
            if make.is_float:
                yield Sample(special(make), 2.5, rounding_mode=mode)


@samples("floor_divide", grad_fn=False, grad=False)
def floor_divide(make: Make) -> Samplings:
    for x, y in two(make, 1, 4):
        yield Sample(x, y)
    for x, y in mixed(make):
        yield Sample(x, y)
    yield Sample(make(3), 0).expecting(make.is_int)


@samples("remainder", "fmod", dtypes=HALVES, grad=False)  # a rounded quotient may be another whole number
@samples("remainder", "fmod", dtypes=(*INTS, *FLOATS))
def remainder(make: Make) -> Samplings:
    for x, y in two(make, 1, 4):
        if (
            make.name not in HALVES or y.dtype is not torch.float64
        ):  # PyTorch rounds a double before or after, as it likes
            yield Sample(x, y)
    yield Sample(make(8), 3)
    yield Sample(make(8), -2 if make.dtype is not torch.uint8 else 2)
    yield Sample(make(4), 0.75)
    yield Sample(make(3), 0).expecting(make.is_int)
    yield Sample(make(8), make(8, low=-3, high=0) if make.is_float else make(8, low=1))


@samples("remainder", dtypes=("int64", "float32"), grad_fn=False, gradgrad=False, grad=False)
def remainder_of_a_number(make: Make) -> Samplings:
    yield Sample(7, make(4, low=1))
    yield Sample(7.5, make(4, low=1))


@samples("floor_divide", "remainder", "fmod", dtypes=("int64", *FLOATS), grad_fn=False, gradgrad=False, grad=False)
def quotients_of_numbers_that_float32_rounds(make: Make) -> Samplings:
    whole = torch.tensor([1, 2, 7, -1, -30]).to(make.dtype)
    for number in (0.1, 0.001, 0.7, -0.1, 1e300):
        yield Sample(whole, number)


@samples("pow", tol=(2e-5, 1e-5))
def pow_(make: Make) -> Samplings:
    low = 0.2 if make.is_float else 0
    for x, y in two(make, low, 3):
        yield Sample(x, y)
    for exponent in (0, 1, 2, 3, 5, 12):
        yield Sample(make(2, 3, low=None if make.is_float else -2, high=None if make.is_float else 2), exponent)
    yield Sample(make(3, 2, low=low, transposed=True), 2.5)
    if make.dtype is not torch.uint8:  # where -3 is 253
        yield Sample(make(4, low=0.5, high=2), -3).expecting(make.is_int)
    yield Sample(make(4, low=0.5, high=2), 0.5)
    yield Sample(2, make(4, low=0, high=4))
    yield Sample(2.5, make(4, low=0, high=4))
    if make.is_int and make.dtype is not torch.uint8:
        yield Sample(make(9), make(9))
        yield Sample(torch.tensor([1, -1, 2, 0], dtype=make.dtype), torch.tensor(-3, dtype=make.dtype))
    if make.is_float:
        for exponent in (0.5, -0.5, -1, -2, 0.0, 2.0, 1.7, 40, INF):
            # The root of -inf and of -0.0 is another in PyTorch's halves than in its floats.
            yield Sample(special(make) if make.name in FLOATS else make(4, low=0.5), exponent)
        yield Sample(-1.5, make(3))
    if make.is_complex:
        yield Sample(make(3), 1.5 + 0.5j)
        yield Sample(1.5 + 0.5j, make(3))


@samples("pow", dtypes=REALS, gradgrad=False)
def pow_at_its_kinks(make: Make) -> Samplings:
    base = torch.tensor([0.0, 0.0, 0.0, 2.0, -2.0, -2.0, 3.0], dtype=make.dtype, requires_grad=True)
    exponent = torch.tensor([0.0, 1.0, -1.0, 0.0, 2.0, 3.0, 0.5], dtype=make.dtype, requires_grad=True)
    yield Sample(base, exponent)
    yield Sample(0, torch.tensor([0.0, 1.0, -1.0], dtype=make.dtype, requires_grad=True))


@samples("square", "neg", "sgn", "sign")
def of_one(make: Make) -> Samplings:
    for x in one(make):
        yield Sample(x)
    if make.is_float:
        yield Sample(special(make))
    if make.is_complex:
        yield Sample(torch.tensor([0j, 3 + 4j, -2j], dtype=make.dtype, requires_grad=True))


def _abs_in_place(x: torch.Tensor) -> torch.Tensor:
    if x.is_complex():
        raise NotImplementedError("PyTorch refuses what loses the dtype")
    return x.abs_()


@samples("abs", inplace_ref=_abs_in_place)
def abs_(make: Make) -> Samplings:
    yield from of_one(make)


@samples("conj_physical", dtypes=COMPLEXES)
def conj_physical(make: Make) -> Samplings:
    yield from of_one(make)


@samples("conj_physical", dtypes=("float32", "int64", "bool"), grad=False, grad_fn=False)
def conj_physical_of_real(make: Make) -> Samplings:
    yield Sample(make(2, 3).detach())


@samples("positive", grad_fn=False)
def positive(make: Make) -> Samplings:
    for x in one(make):
        yield Sample(x)


@samples("maximum", "minimum", "fmax", "fmin")
def extremes(make: Make) -> Samplings:
    for x, y in two(make):
        yield Sample(x, y)
    if make.is_float:
        yield Sample(special(make), torch.tensor([1.0] * 4 + [NAN] * 4, dtype=make.dtype, requires_grad=True))
        yield Sample(special(make), special(make))


@samples("clamp", dtypes=(*INTS, *HALVES, *FLOATS, *COMPLEXES))
def clamp(make: Make) -> Samplings:
    for x in one(make):
        yield Sample(x, 1, 2)
    yield Sample(make(4), min=1)
    yield Sample(make(4), max=2)
    yield Sample(make(4), max=1.5)
    yield Sample(make(4), 3, 1)
    yield Sample(make(2, 3), make(3), make(2, 1))
    yield Sample(make(2, 3), make(2, 3))
    yield Sample(make(2, 3), None, make())
    yield Sample(make(2)).fails()
    if make.is_float:
        yield Sample(special(make), -1.0, 1)
        yield Sample(special(make), torch.full((8,), -1.0, dtype=make.dtype, requires_grad=True), make(8))


@samples("clamp_min", "clamp_max")
def clamp_one_side(make: Make) -> Samplings:
    for x, y in two(make):
        yield Sample(x, y)
    yield Sample(make(2, 3), 1)
    if make.is_float:
        yield Sample(special(make), 1.0)


@samples("where")
def where(make: Make) -> Samplings:
    for x, y in two(make):
        if make.is_complex and not y.is_complex():
            y = y.detach()  # PyTorch fails to differentiate by the real one of two
        yield Sample(make.mask(*torch.broadcast_shapes(x.shape, y.shape)), x, y)
    yield Sample(make.mask(2, 1), make(3), make(2, 3))
    yield Sample(make.mask(3), make(3), 2)
    yield Sample(make.mask(3), 2.5, make(3))
    yield Sample(make.mask(3), 1, 0)
    yield Sample(make.mask(3), 1.5, 0)
    yield Sample(make.index(3, high=2).to(torch.uint8), make(3), make(3))
    yield Sample(make.index(3, high=2), make(3), make(3)).fails()
    if make.is_float:
        yield Sample(make.mask(8), special(make).sqrt(), special(make))


@samples("masked_fill")
def masked_fill(make: Make) -> Samplings:
    for x in one(make):
        yield Sample(x, make.mask(*x.shape), 2)
    yield Sample(make(2, 3), make.mask(3), 1.5)
    yield Sample(make(3), make.mask(2, 3), make())
    yield Sample(make(3, 2, transposed=True), make.mask(3, 1), torch.tensor(2))
    yield Sample(make(3), make.mask(3), make(1)).fails()
    yield Sample(make(3), make.index(3, high=2), 1).fails()
    yield Sample(make(3), make.mask(3), 1j).expecting(not make.is_complex and not make.is_bool)


@samples("lerp", dtypes=(*REALS, *COMPLEXES))
def lerp(make: Make) -> Samplings:
    for x in one(make):
        yield Sample(x, make(*x.shape), 0.25)
    yield Sample(make(2, 3), make(3), 0.75)
    yield Sample(make(2, 3), make(3), make(2, 1))
    yield Sample(make(2), make(2), make(dtype="float64", low=0, high=1, requires_grad=False))
    yield Sample(make(2), make(2, dtype="int64"), 0.5).fails()


@samples("addcmul", dtypes=(*INTS, *REALS, *COMPLEXES))
def addcmul(make: Make) -> Samplings:
    for x in one(make):
        yield Sample(x, make(*x.shape), make(*x.shape))
    yield Sample(make(2, 3), make(3), make(2, 1), value=2)
    yield Sample(make(3), make(3), make(3), value=0.5 if not make.is_int else 2)


@samples("addcdiv", dtypes=(*INTS, *REALS, *COMPLEXES))
def addcdiv(make: Make) -> Samplings:
    for x in one(make):
        yield Sample(x, make(*x.shape), make(*x.shape, low=1))
    yield Sample(make(2, 3), make(3), make(2, 1, low=1), value=2)


@samples("atan2", "hypot", dtypes=(*INTS, *REALS))
def of_points(make: Make) -> Samplings:
    for x, y in two(make):
        yield Sample(x, y)
    if make.is_float:
        zero = torch.zeros(2, dtype=make.dtype, requires_grad=True)
        yield Sample(zero, torch.tensor([0.0, 1.0], dtype=make.dtype, requires_grad=True))
        yield Sample(special(make), make(8))


@samples("logaddexp", "logaddexp2", dtypes=REALS)
def logaddexp(make: Make) -> Samplings:
    for x, y in two(make):
        if y.dtype.is_floating_point:
            yield Sample(x, y)
    yield Sample(make(3, low=80, high=90), make(3, low=-90, high=-80))


@samples("logaddexp", dtypes=COMPLEXES)
def logaddexp_of_complex_numbers(make: Make) -> Samplings:
    for x, y in two(make):
        if y.dtype is make.dtype:
            yield Sample(x, y)
    yield Sample(make(3, low=80, high=90), make(3, low=-90, high=-80))


@samples("copysign", dtypes=(*INTS, *REALS))
def copysign(make: Make) -> Samplings:
    for x, y in two(make):
        yield Sample(x, y)
    yield Sample(make(3), -1)
    if make.is_float:
        yield Sample(special(make), -0.0)


@samples("real")
def real(make: Make) -> Samplings:
    for x in one(make):
        # PyTorch hands back the very tensor where it is real already, without a node.
        yield Sample(x) if make.is_complex else Sample(x.detach())


@samples("imag", dtypes=(*COMPLEXES, "float32"))
def imag(make: Make) -> Samplings:
    for x in one(make):
        yield Sample(x) if make.is_complex else Sample(x).fails()


@samples("view_as_real", dtypes=(*COMPLEXES, "float32"))
def view_as_real(make: Make) -> Samplings:
    for x in one(make):
        yield Sample(x) if make.is_complex else Sample(x).fails()


@samples("view_as_complex", dtypes=(*FLOATS, "int32"))
def view_as_complex(make: Make) -> Samplings:
    yield Sample(make(3, 2)).expecting(make.is_int)
    yield Sample(make(2, 4, 2).transpose(0, 1)).expecting(make.is_int)
    yield Sample(make(2)).expecting(make.is_int)
    yield Sample(make(3, 3)).fails()
    yield Sample(make(2, 3).t()).fails()
    yield Sample(make()).fails()


@samples("conj", dtypes=COMPLEXES, strides=False)
def conj(make: Make) -> Samplings:
    for x in one(make):
        yield Sample(x)


@samples("conj", dtypes=("float32", "int64", "bool"), grad=False, grad_fn=False)
def conj_of_real(make: Make) -> Samplings:
    yield Sample(make(2, 3).detach())


@samples("angle")
def angle(make: Make) -> Samplings:
    for x in one(make):
        yield Sample(x)
    if make.is_float:
        yield Sample(special(make))
    if make.is_complex:
        yield Sample(torch.tensor([0j, 3 + 4j, -2j], dtype=make.dtype, requires_grad=True))


@samples("complex", "polar", dtypes=FLOATS)
def complex_(make: Make) -> Samplings:
    for x in one(make):
        yield Sample(x, make(*x.shape))
    yield Sample(make(2, 3), make(3))
    yield Sample(make(2), make(2, dtype="int64")).fails()
