"""Samples of reductions that select an element."""

import torch

from tests.samples import BOOL, FLOATS, HALVES, INTS, Sample, samples
from tests.samples.reduction import NAN, layouts, with_nan

ORDERED = (*INTS, *HALVES, *FLOATS)
WITH_BOOL = (*BOOL, *ORDERED)


FULL = ("max", "min")


@samples(*FULL, dtypes=WITH_BOOL)
def extremes(make):
    for x in layouts(make):
        yield Sample(x).fails() if x.numel() == 0 else Sample(x)
    if not make.is_bool:
        yield Sample(make.distinct(2, 3))


@samples(*FULL, "amax", "amin", dtypes=("float64",))
def extremes_with_ties(make):
    tied = torch.tensor([[1.0, 3.0, 3.0], [-2.0, 3.0, -2.0]], dtype=make.dtype, requires_grad=True)
    yield Sample(tied)


@samples(*FULL, dtypes=("float64",))
def extremes_of_nan(make):
    yield Sample(torch.tensor([1.0, NAN, NAN, 2.0], dtype=make.dtype, requires_grad=True))


@samples(*FULL, "amax", "amin", "aminmax", "argmax", "argmin", dtypes=("complex64",))
def extremes_of_complex(make):
    yield Sample(make(3)).fails()


@samples("max_dim", dtypes=WITH_BOOL, ref=torch.max)
@samples("min_dim", dtypes=WITH_BOOL, ref=torch.min)
def extremes_along(make):
    yield Sample(make(3, 4), 0)
    yield Sample(make(3, 4), 1)
    yield Sample(make(2, 3, 4), 1, True)
    yield Sample(make(4, 3, transposed=True), -1)
    yield Sample(make(), 0)
    yield Sample(make(3, 0), 0)
    yield Sample(make(0, 3), 0).fails()
    if make.is_float:
        yield Sample(torch.tensor([[1.0, NAN, NAN], [2.0, 2.0, 1.0]], dtype=make.dtype, requires_grad=True), 1)


@samples("amax", "amin", dtypes=WITH_BOOL)
def extremes_over(make):
    yield Sample(make(3, 4))
    yield Sample(make(3, 4), 1)
    yield Sample(make(2, 3, 4), (0, 2), True)
    yield Sample(make(2, 3, 4), (1, 2))
    yield Sample(make(4, 3, transposed=True), -1)
    yield Sample(make(), 0)
    yield Sample(make(3, 4), ())
    yield Sample(make(0, 3), 0).fails()
    yield Sample(make(0, 3)).fails()
    yield Sample(make(0, 3), 1)
    if make.is_float:
        yield Sample(torch.tensor([[1.0, NAN], [2.0, 2.0]], dtype=make.dtype), 1)


@samples("aminmax", dtypes=WITH_BOOL, ref=lambda x, dim=None, keepdim=False: torch.aminmax(x, dim=dim, keepdim=keepdim))
def aminmax(make):
    yield Sample(make(3, 4))
    yield Sample(make(3, 4), 0)
    yield Sample(make(3, 4), 1, True)
    yield Sample(make(), 0)


@samples("argmax", "argmin", dtypes=ORDERED)
def positions_of_extremes(make):
    for x in layouts(make):
        yield Sample(x).fails() if x.numel() == 0 else Sample(x)
    yield Sample(make(3, 4), 0)
    yield Sample(make(3, 4), 1, True)
    yield Sample(make(3, 4), None, True)
    yield Sample(make(), 0)
    yield Sample(make(0, 3), 0).fails()
    yield Sample(make(0, 3), 1)


@samples("argmax", "argmin", dtypes=("bool", "complex64"))
def no_order(make):
    yield Sample(make(3)).fails()


@samples("median", "nanmedian", dtypes=ORDERED)
def medians(make):
    yield Sample(make(3, 5))
    yield Sample(make(2, 5))
    yield Sample(make())
    yield Sample(make(4, 3, transposed=True))
    if make.is_float:
        yield Sample(torch.tensor([2.0, 1.0, 2.0, 3.0, 2.0], dtype=make.dtype, requires_grad=True))
        yield Sample(with_nan(make, 3, 3))
        yield Sample(torch.full((3,), NAN, dtype=make.dtype))
    yield Sample(make(0))


@samples("median_dim", dtypes=ORDERED, ref=torch.median)
@samples("nanmedian_dim", dtypes=ORDERED, ref=torch.nanmedian)
def medians_along(make):
    yield Sample(make.distinct(3, 5), 1)
    yield Sample(make.distinct(4, 5), 0, True)
    yield Sample(make.distinct(4, 3).t(), -1)
    yield Sample(make(), 0)
    yield Sample(make(0, 3), 0).fails()
    if make.is_float:
        x = make.distinct(3, 5, requires_grad=False)
        x[0, 2] = x[1, 1] = x[1, 4] = NAN
        yield Sample(x.requires_grad_(), 1)


@samples("median", dtypes=("bool", "complex64"))
def no_middle(make):
    yield Sample(make(3)).fails()


@samples("mode", dtypes=WITH_BOOL)
def mode(make):
    yield Sample(make(3, 9))
    yield Sample(make(9, 3), 0, True)
    yield Sample(make(), 0)
    yield Sample(make(4, 9, low=0, high=3, dtype="int64").to(make.dtype).requires_grad_(make.is_float))


@samples("kthvalue", dtypes=ORDERED)
def kthvalue(make):
    yield Sample(make.distinct(3, 5), 2)
    yield Sample(make.distinct(5, 3), 1, 0, True)
    yield Sample(make(), 1, 0)
    yield Sample(make(3, 4), 5).fails()
    yield Sample(make(3, 4), 0).fails()


@samples("quantile", "nanquantile", dtypes=FLOATS)
def quantile(make):
    vector = torch.tensor([0.0, 0.3, 0.5, 1.0], dtype=make.dtype)
    yield Sample(make.distinct(3, 5), 0.4)
    yield Sample(make.distinct(3, 5), 0.4, 0)
    yield Sample(make.distinct(3, 5), vector, 1)
    yield Sample(make.distinct(2, 3, 4), vector, 1, True)
    yield Sample(make.distinct(2, 3, 4), vector)
    yield Sample(make.distinct(2, 3), torch.tensor(0.7, dtype=make.dtype), None, True)
    for how in ("lower", "higher", "midpoint", "nearest"):
        yield Sample(make.distinct(3, 6), vector, 1, interpolation=how)
    x = make.distinct(3, 4, requires_grad=False)
    x[0, 1] = NAN
    yield Sample(x.requires_grad_(), vector, 1)
    yield Sample(x, 0.5)
    yield Sample(make(3), 1.5).fails()
    yield Sample(make(0), 0.5).fails()
