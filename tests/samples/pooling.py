"""Samples of pooling."""

from __future__ import annotations

import torch
import torch.nn.functional as nnf

from tests.samples import FLOATS, HALVES, Sample, samples

REALS = ("uint8", "int32", "int64", *HALVES, *FLOATS)


def last(x):
    with torch.no_grad():
        return x.to(memory_format=torch.channels_last).requires_grad_(x.requires_grad)


def _max_samples(make):
    yield Sample(make(2, 3, 8), 2)
    yield Sample(make(3, 8), (3,), 2, 1, 2)
    yield Sample(make(2, 3, 8), 3, 2, 1, ceil_mode=True)
    yield Sample(make(2, 3, 8, transposed=True), 2, ())
    yield Sample(make(2, 3, 2), 3).fails()


@samples("max_pool1d", dtypes=(*HALVES, *FLOATS), ref=nnf.max_pool1d)
def max_pool1d(make):
    yield from _max_samples(make)


@samples("max_pool1d_with_indices", dtypes=FLOATS)
def max_pool1d_with_indices(make):
    yield from _max_samples(make)


def _max_2d(make):
    yield Sample(make(2, 3, 6, 6), 2)
    yield Sample(make(2, 3, 7, 6), 2)
    yield Sample(make(2, 3, 7, 6), 3, 1)
    yield Sample(make(2, 3, 7, 6), (3, 2), (2, 1), (1, 0), (1, 2))
    yield Sample(make(2, 3, 7, 7), 3, 2, 1, 1, True)
    yield Sample(make(2, 3, 7, 7), 2, 3)
    yield Sample(make(2, 3, 4, 4, low=0, high=2), 2)
    yield Sample(make(3, 6, 6), 2)
    yield Sample(make(0, 3, 6, 6), 2)
    yield Sample(make(2, 3, 4, 4), 1)
    yield Sample(make(2, 3, 6, 6, transposed=True), 2)
    yield Sample(last(make(2, 3, 6, 6)), 2)


@samples("max_pool2d", dtypes=REALS, ref=nnf.max_pool2d)
def max_pool2d(make):
    yield from _max_2d(make)
    x = make(2, 3, 6, 6)
    yield Sample(x, 2, padding=2).fails()
    yield Sample(x, 0).fails()
    yield Sample(x, 2, 0).fails()
    yield Sample(x, 2, dilation=0).fails()
    yield Sample(x, 7).fails()
    yield Sample(x, (2, 2, 2)).fails()
    yield Sample(make(3, 2), 2).fails()
    yield Sample(make(2, 0, 4, 4), 2).fails()


@samples("max_pool2d", dtypes=("bool", "complex64"), ref=nnf.max_pool2d)
def max_pool2d_refusals(make):
    yield Sample(make(2, 3, 6, 6), 2).fails()


def _ties_and_holes(make):
    with torch.no_grad():
        x = make(1, 1, 4, 4)
        x[0, 0, 0, 1] = x[0, 0, 1, 0] = torch.nan
        y = torch.full((1, 1, 4, 4), -torch.inf, dtype=make.dtype)
    yield Sample(x.requires_grad_(), 2).values_only()
    yield Sample(torch.zeros(1, 1, 4, 4, dtype=make.dtype, requires_grad=True), 3, 1, 1)
    yield Sample(y.requires_grad_(), 3, 1, 1)


@samples("max_pool2d", dtypes=FLOATS, ref=nnf.max_pool2d)
def max_pool2d_ties_and_holes(make):
    yield from _ties_and_holes(make)


@samples("max_pool2d_with_indices", dtypes=FLOATS, ref=nnf.max_pool2d_with_indices)
def max_pool2d_with_indices_of_ties_and_holes(make):
    yield from _ties_and_holes(make)


@samples("max_pool2d_with_indices", dtypes=REALS, ref=nnf.max_pool2d_with_indices)
def max_pool2d_with_indices(make):
    yield from _max_2d(make)


@samples("max_pool3d", dtypes=FLOATS, ref=nnf.max_pool3d)
def max_pool3d(make):
    yield Sample(make(2, 2, 4, 4, 5), 2)
    yield Sample(make(2, 4, 4, 5), (2, 3, 2), 1, 1)


@samples("max_pool3d_with_indices", dtypes=FLOATS, ref=nnf.max_pool3d_with_indices)
def max_pool3d_with_indices(make):
    yield Sample(make(2, 2, 4, 4, 5), 2)
    yield Sample(make(2, 4, 4, 5), (2, 3, 2), 1, 1)


def _places(x, kernel, stride, padding, dilation):
    return nnf.max_pool2d_with_indices(x, kernel, stride, padding, dilation)[1].flatten(-2)


def _max_pool_backward(grad, x, result, kernel, stride, padding, dilation):
    flat = torch.zeros(*x.shape[:-2], x.shape[-1] * x.shape[-2], dtype=x.dtype)
    places = _places(x, kernel, stride, padding, dilation)
    return flat.scatter_add(-1, places, grad.flatten(-2)).reshape(x.shape)


def _max_pool_pick(tangent, x, result, kernel, stride, padding, dilation):
    places = _places(x, kernel, stride, padding, dilation)
    return tangent.flatten(-2).gather(-1, places).reshape(result.shape)


@samples("max_pool_backward", dtypes=FLOATS, ref=_max_pool_backward, grad=("grad",), grad_fn=False)
def max_pool_backward(make):
    for geometry in (((2, 2), (2, 2), (0, 0), (1, 1)), ((3, 2), (1, 2), (1, 0), (1, 2))):
        x = make(2, 3, 6, 6, requires_grad=False)
        result = nnf.max_pool2d(x, *geometry)
        yield Sample(make(*result.shape), x, result, *geometry)


@samples("max_pool_pick", dtypes=FLOATS, ref=_max_pool_pick, grad=("tangent",), grad_fn=False)
def max_pool_pick(make):
    for geometry in (((2, 2), (2, 2), (0, 0), (1, 1)), ((3, 2), (1, 2), (1, 0), (1, 2))):
        x = make(2, 3, 6, 6, requires_grad=False)
        yield Sample(make(2, 3, 6, 6), x, nnf.max_pool2d(x, *geometry), *geometry)


@samples("avg_pool1d", dtypes=(*HALVES, *FLOATS), ref=nnf.avg_pool1d)
def avg_pool1d(make):
    yield Sample(make(2, 3, 8), 2)
    yield Sample(make(3, 8), (3,), 2, 1)
    yield Sample(make(2, 3, 8), 3, 2, 1, True, False)
    yield Sample(make(2, 8, 3).detach().transpose(1, 2), 2)


@samples("avg_pool2d", dtypes=("int64", *HALVES, *FLOATS), ref=nnf.avg_pool2d)
def avg_pool2d(make):
    yield Sample(make(2, 3, 6, 6), 2)
    yield Sample(make(2, 3, 7, 6), 3, 2, 1)
    yield Sample(make(2, 3, 7, 6), (3, 2), (1, 2), (1, 0), count_include_pad=False)
    yield Sample(make(2, 3, 7, 7), 3, 2, 1, True)
    yield Sample(make(2, 3, 7, 7), 3, 2, 1, True, False)
    yield Sample(make(2, 3, 7, 7), 3, 2, 1, divisor_override=5)
    yield Sample(make(3, 6, 6), 2)
    yield Sample(make(0, 3, 6, 6), 2)
    yield Sample(last(make(2, 3, 6, 6)), 2)
    yield Sample(make(2, 3, 6, 6), 2, divisor_override=0).fails()
    yield Sample(make(2, 3, 6, 6), 2, padding=2).fails()


@samples("avg_pool3d", dtypes=FLOATS, ref=nnf.avg_pool3d)
def avg_pool3d(make):
    yield Sample(make(2, 2, 4, 4, 5), 2)
    yield Sample(make(2, 2, 4, 4, 5), 3, 2, 1, True, False, 7)
    yield Sample(make(2, 4, 4, 5), (2, 3, 2), 1, 1)


def _avg_pool_backward(grad, extents, kernel, stride, padding, include=True, divisor=None):
    x = torch.zeros(*grad.shape[:-2], *extents, dtype=grad.dtype, requires_grad=True)
    with torch.enable_grad():
        ceil_mode = nnf.avg_pool2d(x, kernel, stride, padding).shape != grad.shape
        y = nnf.avg_pool2d(x, kernel, stride, padding, ceil_mode, include, divisor)
        return torch.autograd.grad(y, x, grad, create_graph=True)[0]


@samples("avg_pool_backward", dtypes=FLOATS, ref=_avg_pool_backward, grad_fn=False)
def avg_pool_backward(make):
    yield Sample(make(2, 3, 3, 3), (6, 6), (2, 2), (2, 2), (0, 0))
    yield Sample(make(2, 3, 4, 4), (6, 6), (3, 3), (2, 2), (1, 1), False)
    yield Sample(make(2, 3, 3, 3), (6, 6), (3, 3), (2, 2), (1, 1), True, 3)


SIZES_2D = (3, 1, (None, 3), (2, 5), (7, 6))


@samples("adaptive_avg_pool1d", dtypes=(*HALVES, *FLOATS), ref=nnf.adaptive_avg_pool1d)
def adaptive_avg_pool1d(make):
    for size in (3, 1, (5,)):
        yield Sample(make(2, 3, 8), size)
    yield Sample(make(3, 8), 4)
    yield Sample(make(2, 3, 4, 5, 6), 4).fails()


@samples("adaptive_avg_pool2d", dtypes=(*HALVES, *FLOATS), ref=nnf.adaptive_avg_pool2d)
def adaptive_avg_pool2d(make):
    for size in SIZES_2D:
        yield Sample(make(2, 3, 7, 6), size)
    yield Sample(make(3, 7, 6), 4)
    yield Sample(make(0, 3, 7, 6), 4)
    yield Sample(last(make(2, 3, 7, 6)), 3)
    yield Sample(make(2, 3, 7, 6), -1).fails()


@samples("adaptive_avg_pool2d", dtypes=("int64", "bool"), ref=nnf.adaptive_avg_pool2d)
def adaptive_avg_pool2d_refusals(make):
    yield Sample(make(2, 3, 7, 6), 3).fails()


@samples("adaptive_avg_pool3d", dtypes=FLOATS, ref=nnf.adaptive_avg_pool3d)
def adaptive_avg_pool3d(make):
    yield Sample(make(2, 3, 4, 5, 6), (2, 3, 4))
    yield Sample(make(3, 4, 5, 6), 2)


def _adaptive_avg_pool_backward(grad, extents):
    x = torch.zeros(*grad.shape[:-2], *extents, dtype=grad.dtype, requires_grad=True)
    with torch.enable_grad():
        y = nnf.adaptive_avg_pool2d(x, tuple(grad.shape[-2:]))
        return torch.autograd.grad(y, x, grad, create_graph=True)[0]


@samples("adaptive_avg_pool_backward", dtypes=FLOATS, ref=_adaptive_avg_pool_backward, grad_fn=False, strides=False)
def adaptive_avg_pool_backward(make):
    yield Sample(make(2, 3, 3, 2), (7, 6))
    yield Sample(make(2, 3, 1, 1), (7, 6))


def _pairs(count):
    pool = getattr(nnf, f"adaptive_max_pool{count}d")
    return lambda x, size: pool(x, size, return_indices=True)


@samples("adaptive_max_pool1d", dtypes=FLOATS, ref=_pairs(1))
def adaptive_max_pool1d(make):
    for size in (3, 1, (5,)):
        yield Sample(make(2, 3, 8), size)
    yield Sample(make(3, 8), 4)


@samples("adaptive_max_pool2d", dtypes=(*HALVES, *FLOATS), ref=_pairs(2))
def adaptive_max_pool2d(make):
    for size in SIZES_2D:
        yield Sample(make(2, 3, 7, 6), size)
    yield Sample(make(3, 7, 6), 4)
    yield Sample(make(0, 3, 7, 6), 4)


@samples("adaptive_max_pool3d", dtypes=FLOATS, ref=_pairs(3))
def adaptive_max_pool3d(make):
    yield Sample(make(2, 3, 4, 5, 6), (2, 3, 4))
    yield Sample(make(3, 4, 5, 6), 2)
