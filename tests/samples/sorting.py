"""Samples of sorting, selecting and searching."""

import torch

from tests.samples import BOOL, FLOATS, HALVES, INTS, Sample, samples

ORDERED = (*INTS, *HALVES, *FLOATS)


def lines(make):
    """Tensors with ties, without, with NaN, of every layout."""
    yield make(3, 7)
    yield make.distinct(3, 40)
    yield make(40, 3).t()
    yield make(3, 1).expand(3, 4)
    yield make(3, 0)
    if make.is_float:
        x = make(2, 30, requires_grad=False)
        x[0, 3] = x[0, 7] = x[1, 0] = float("nan")
        yield x.requires_grad_()


def _argsort(x, dim=-1, descending=False, stable=False):
    return torch.argsort(x, dim=dim, descending=descending, stable=True)


def _sort(x, dim=-1, descending=False, **stable):
    return torch.sort(x, dim=dim, descending=descending, **stable)


@samples("sort", dtypes=(*BOOL, *ORDERED), ref=_sort)
def sort(make):
    for x in lines(make):
        yield Sample(x, stable=True)
        yield Sample(x, 1, True, stable=True)
    yield Sample(make.distinct(7, 3), 0)
    yield Sample(make(7, 3), 0, descending=True, stable=True)
    yield Sample(make(4, 3, transposed=True), 0, stable=True)
    yield Sample(make(), 0)
    yield Sample(make(3), 1).fails()


@samples("argsort", dtypes=(*BOOL, *ORDERED), ref=_argsort)
def argsort(make):
    for x in lines(make):
        yield Sample(x)
    yield Sample(make(7, 3), 0, True)
    yield Sample(make())


@samples("sort", "argsort", "topk", "unique", dtypes=("complex64",), ref=lambda x, *rest, **kw: torch.sort(x))
def no_order(make):
    yield Sample(make(3), 1).fails()


@samples("msort", dtypes=ORDERED)
def msort(make):
    yield Sample(make(5, 3))
    yield Sample(make(4, 3, transposed=True))
    yield Sample(make(3))


@samples("topk", dtypes=ORDERED)
def topk(make):
    for largest in (True, False):
        yield Sample(make.distinct(3, 5), 2, -1, largest)
        yield Sample(make.distinct(3, 40), 3, 1, largest)
        yield Sample(make.distinct(40, 3), 4, 0, largest)
        yield Sample(make.distinct(3, 5), 5, 1, largest)
    yield Sample(make.distinct(3, 5), 0)
    yield Sample(make.distinct(4, 3).t(), 2, 0)
    yield Sample(make(), 1)
    yield Sample(make(3), 4).fails()
    yield Sample(make(3), -1).fails()
    if make.is_float:
        x = make.distinct(2, 30, requires_grad=False)
        x[0, 3] = float("nan")
        yield Sample(x.requires_grad_(), 2)
        yield Sample(x, 2, -1, False)


def _unique(x, sorted=True, return_inverse=False, return_counts=False, dim=None):
    return torch.unique(x, sorted, return_inverse, return_counts, dim)


@samples("unique", dtypes=(*BOOL, *ORDERED), ref=_unique, strides=False)
def unique(make):
    free = {"requires_grad": False}
    yield Sample(make(3, 5, **free))
    yield Sample(make(3, 5, dtype="int64").to(make.dtype), True, True, True)
    yield Sample(make(4, 3, transposed=True, **free), return_counts=True)
    yield Sample(make(5, 2, low=0, high=2, dtype="int64").to(make.dtype), True, True, True, 0)
    yield Sample(make(2, 5, low=0, high=2, dtype="int64").to(make.dtype), True, True, True, 1)
    yield Sample(make(3, 1, 2, **free), True, True, True, 1)
    yield Sample(make(0, 2, **free), True, True, True, 0)
    yield Sample(make(**free), True, True, True)
    yield Sample(make(0, **free), True, True, True)
    if make.is_float:
        yield Sample(torch.tensor([1.0, float("nan"), float("nan"), 1.0], dtype=make.dtype), True, False, True)


def _unique_consecutive(x, return_inverse=False, return_counts=False, dim=None):
    return torch.unique_consecutive(x, return_inverse, return_counts, dim)


@samples("unique_consecutive", dtypes=(*BOOL, *ORDERED), ref=_unique_consecutive, strides=False)
def unique_consecutive(make):
    x = make(9, low=0, high=2, dtype="int64").to(make.dtype)
    yield Sample(x)
    yield Sample(x.reshape(3, 3), True, True)
    yield Sample(make(5, 2, low=0, high=2, dtype="int64").to(make.dtype), True, True, 0)
    yield Sample(make(0, requires_grad=False), True, True)


def _searchsorted(sequence, values, out_int32=False, right=False):
    return torch.searchsorted(sequence, values, out_int32=out_int32, right=right)


@samples("searchsorted", dtypes=ORDERED, ref=_searchsorted, grad=False)
def searchsorted(make):
    free = {"requires_grad": False}
    line = make(9, **free).sort().values
    many = make(3, 9, **free).sort().values
    for right in (False, True):
        yield Sample(line, make(2, 5, **free), False, right)
        yield Sample(line, line, True, right)
        yield Sample(many, make(3, 5, **free), False, right)
        yield Sample(many, many, False, right)
    yield Sample(line, 1)
    yield Sample(make(0, **free), make(3, **free))
    yield Sample(make(3, 0, **free), make(3, 2, **free))
    yield Sample(many, make(2, 5, **free)).fails()


def _bucketize(x, boundaries, out_int32=False, right=False):
    return torch.bucketize(x, boundaries, out_int32=out_int32, right=right)


@samples("bucketize", dtypes=ORDERED, ref=_bucketize, grad=False)
def bucketize(make):
    free = {"requires_grad": False}
    boundaries = make(5, **free).sort().values
    yield Sample(make(2, 5, **free), boundaries)
    yield Sample(boundaries, boundaries, True, True)
    yield Sample(2, boundaries)
    yield Sample(make(3, **free), make(2, 2, **free)).fails()
