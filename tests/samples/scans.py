"""Samples of scans."""

import torch

from tests.samples import BOOL, COMPLEXES, FLOATS, HALVES, INTS, Sample, samples

INEXACT = (*HALVES, *FLOATS, *COMPLEXES)
WITH_BOOL = (*BOOL, *INTS, *HALVES, *FLOATS)
NAN = float("nan")


@samples("cumsum", "cumprod", dtypes=(*INTS, *INEXACT))
def running(make):
    # In the half types PyTorch rounds every product: values near 1 keep that within bounds.
    near = {"low": 0.5, "high": 1.5} if make.name in HALVES else {}
    yield Sample(make(3, 4, **near), 0)
    yield Sample(make(3, 4, **near), 1)
    yield Sample(make(4, 3, transposed=True, **near), 0)
    yield Sample(make(**near), 0)
    yield Sample(make(0, 3, **near), 0)
    yield Sample(make(2, 3, 4, **near), -2)
    yield Sample(make(3, **near), 1).fails()


# In place, PyTorch insists on the tensor's own dtype, and has nothing for bools.
@samples("cumsum", "cumprod", dtypes=("int32", "float32", "bool"), grad=False)
def running_dtype(make):
    yield Sample(make(3, 4), 0, dtype=torch.float64)
    yield Sample(make(3, 4), 1)


@samples("logcumsumexp", dtypes=(*HALVES, *FLOATS))
def logcumsumexp(make):
    yield Sample(make(3, 4), 0)
    yield Sample(make(3, 4), 1)
    yield Sample(make(), 0)
    yield Sample(make(0, 3), 0)
    if make.dtype in (torch.float32, torch.float64):
        yield Sample(torch.tensor([100.0, -100.0, 300.0], dtype=make.dtype, requires_grad=True), 0)


@samples("cummax", "cummin", dtypes=WITH_BOOL)
def running_extremes(make):
    yield Sample(make(3, 9), 1)
    yield Sample(make(9, 3), 0)
    yield Sample(make(4, 3, transposed=True), 0)
    yield Sample(make(), 0)
    yield Sample(make(0, 3), 0)
    if make.is_float:
        yield Sample(torch.tensor([1.0, 1.0, NAN, 5.0, NAN, 2.0], dtype=make.dtype, requires_grad=True), 0)


# Primitives: the oracle is what they are defined to be


def _shift(x, dim, by, fill=0):
    moved = x.roll(by, dim)
    n = x.shape[dim]
    place = torch.arange(n).reshape([n if i == dim % x.ndim else 1 for i in range(x.ndim)])
    gone = place < by if by > 0 else place >= n + by
    return torch.where(gone, torch.tensor(fill, dtype=x.dtype), moved)


@samples("shift", dtypes=("float64", "int64", "bfloat16"), ref=_shift, grad_fn=False)
def shift(make):
    yield Sample(make(3, 4), 0, 1)
    yield Sample(make(3, 4), 1, -1)
    yield Sample(make(3, 4), 1, 2, 7)
    yield Sample(make(3, 4), 0, 5)


def _recurrence(factor, term, dim, reverse=False):
    factors, terms = factor.unbind(dim), term.unbind(dim)
    order = range(len(terms))
    found = [None] * len(terms)
    last = torch.zeros_like(terms[0])
    for i in reversed(order) if reverse else order:
        last = found[i] = terms[i] + factors[i] * last
    return torch.stack(found, dim)


@samples("linear_recurrence", dtypes=("float64", "complex128"), ref=_recurrence, grad_fn=False)
def linear_recurrence(make):
    for reverse in (False, True):
        yield Sample(make(5, 2), make(5, 2), 0, reverse)
        yield Sample(make(2, 8), make(2, 8), -1, reverse)
        yield Sample(make(1), make(1), 0, reverse)
