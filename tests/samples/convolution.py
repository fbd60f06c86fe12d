"""Samples of convolutions."""

from __future__ import annotations

import torch
import torch.nn.functional as nnf

from tests.samples import COMPLEXES, FLOATS, HALVES, Sample, samples

REALS = ("int64", *HALVES, *FLOATS)
SUMS = (5e-5, 5e-5)
"""Sums of a hundred products, in another order than PyTorch's."""


@samples("conv1d", dtypes=REALS, ref=nnf.conv1d, tol=SUMS)
def conv1d(make):
    yield Sample(make(2, 3, 8), make(4, 3, 3), make(4))
    yield Sample(make(2, 3, 8), make(4, 3, 3), stride=2, padding=1)
    yield Sample(make(2, 3, 8, transposed=True), make(4, 3, 2), make(4), 1, (2,), 2)
    yield Sample(make(3, 8), make(4, 3, 3), make(4))
    yield Sample(make(2, 3, 8), make(4, 3, 4), padding="same")
    yield Sample(make(2, 4, 8), make(6, 2, 3), groups=2)
    yield Sample(make(2, 3, 8), make(4, 3, 3).detach().transpose(1, 2).contiguous().transpose(1, 2))


@samples("conv2d", dtypes=(*REALS, *COMPLEXES), ref=nnf.conv2d, tol=SUMS)
def conv2d(make):
    yield Sample(make(2, 3, 6, 5), make(4, 3, 3, 3), make(4))
    yield Sample(make(2, 3, 6, 6), make(4, 3, 3, 2), None, (2, 1), (1, 2), (1, 2))
    yield Sample(make(2, 3, 7, 6), make(1, 3, 3, 3), stride=2)
    yield Sample(make(2, 1, 5, 5), make(5, 1, 3, 3), make(5), padding=1)
    yield Sample(make(2, 3, 4, 4), make(4, 3, 1, 1), make(4))
    yield Sample(make(2, 3, 4, 4), make(4, 3, 1, 1), make(4), stride=2, padding=1)
    yield Sample(make(3, 6, 6), make(4, 3, 3, 3), make(4))
    yield Sample(make(0, 3, 6, 6), make(4, 3, 3, 3), make(4))


@samples("conv2d", dtypes=FLOATS, ref=nnf.conv2d, tol=SUMS)
def conv2d_layouts(make):
    yield Sample(make(2, 3, 6, 6), make(4, 3, 3, 3), padding="same")
    yield Sample(make(2, 3, 6, 6), make(4, 3, 3, 3), padding="valid")
    yield Sample(make(2, 3, 6, 6), make(4, 3, 3, 3), padding="same", dilation=2)
    yield Sample(make(2, 4, 6, 6), make(6, 2, 3, 3), make(6), groups=2)
    yield Sample(make(2, 4, 6, 6), make(4, 1, 3, 3), make(4), groups=4, padding=1)
    yield Sample(make(2, 4, 6, 6), make(8, 1, 3, 3), groups=4, stride=2)
    yield Sample(make(2, 3, 6, 6, transposed=True), make(4, 3, 3, 3, transposed=True))
    yield Sample(last(make(2, 3, 6, 6)), make(4, 3, 3, 3), make(4))
    yield Sample(make(2, 3, 6, 6), last(make(4, 3, 3, 3)))
    yield Sample(make(3, 6, 6), last(make(4, 3, 3, 3)))


@samples("conv2d", dtypes=FLOATS, ref=nnf.conv2d, grad_fn=False, tol=SUMS)
def conv2d_uneven_padding(make):
    yield Sample(make(2, 3, 6, 6), make(4, 3, 4, 2), make(4), padding="same")


def last(x):
    with torch.no_grad():
        return x.to(memory_format=torch.channels_last).requires_grad_(x.requires_grad)


@samples("conv2d", dtypes=("float32",), ref=nnf.conv2d, tol=SUMS)
def conv2d_refusals(make):
    x, w = make(1, 3, 5, 5), make(4, 3, 3, 3)
    yield Sample(x, w, make(5)).fails()
    yield Sample(x, w, stride=0).fails()
    yield Sample(x, w, padding=-1).fails()
    yield Sample(x, w, dilation=0).fails()
    yield Sample(x, w, stride=(1, 1, 1)).fails()
    yield Sample(x, w, padding="full").fails()
    yield Sample(x, w, padding="same", stride=2).fails()
    yield Sample(x, w, groups=0).fails()
    yield Sample(x, make(4, 2, 3, 3)).fails()
    yield Sample(x, make(4, 3, 6, 3)).fails()
    yield Sample(make(1, 1, 3, 5, 5), w).fails()
    yield Sample(make(1, 4, 5, 5), make(3, 2, 3, 3), groups=2).fails()
    yield Sample(x, make(4, 3, 3, 3, dtype="float64")).fails()


@samples("conv3d", dtypes=FLOATS, ref=nnf.conv3d, tol=SUMS)
def conv3d(make):
    yield Sample(make(2, 3, 4, 5, 4), make(4, 3, 3, 2, 3), make(4))
    yield Sample(make(2, 2, 4, 4, 4), make(4, 1, 2, 2, 2), None, 2, 1, 1, 2)
    yield Sample(make(3, 4, 4, 4), make(4, 3, 3, 3, 3))


@samples("conv_transpose1d", dtypes=REALS, ref=nnf.conv_transpose1d, tol=SUMS)
def conv_transpose1d(make):
    yield Sample(make(2, 3, 5), make(3, 4, 3), make(4))
    yield Sample(make(2, 3, 5), make(3, 4, 3), None, 2, 1, 1)
    yield Sample(make(3, 5), make(3, 4, 3), make(4))


@samples("conv_transpose2d", dtypes=(*REALS, *COMPLEXES), ref=nnf.conv_transpose2d, tol=SUMS)
def conv_transpose2d(make):
    yield Sample(make(2, 3, 5, 4), make(3, 4, 3, 3), make(4))
    yield Sample(make(2, 3, 4, 4), make(3, 4, 3, 2), None, (2, 3), (1, 0), (1, 2))
    yield Sample(make(2, 4, 4, 4), make(4, 3, 3, 3), make(6), 2, 1, 1, 2)
    yield Sample(make(2, 3, 4, 4), make(3, 4, 2, 2), dilation=2)
    yield Sample(make(2, 3, 4, 4), make(3, 4, 1, 1))
    yield Sample(make(2, 3, 4, 4), make(3, 4, 3, 3), stride=2, output_padding=2).fails()
    yield Sample(make(2, 3, 4, 4), make(2, 4, 3, 3)).fails()


@samples("conv_transpose3d", dtypes=FLOATS, ref=nnf.conv_transpose3d, tol=SUMS)
def conv_transpose3d(make):
    yield Sample(make(2, 3, 3, 2, 3), make(3, 4, 3, 2, 2), make(4), 2, 1, 1)


GEOMETRY = ((2, 1), (1, 0), (1, 2), 2)
"""Stride, padding, dilation and groups of the samples below."""


def _convolution(x, weight, extents, stride, padding, dilation, groups):
    return nnf.conv2d(x, weight, None, stride, padding, dilation, groups)


@samples("convolution", dtypes=FLOATS, ref=_convolution)
def convolution(make):
    yield Sample(make(2, 4, 6, 6), make(4, 2, 3, 2), (3, 4), *GEOMETRY)


def _gradients(grad, x, weight, stride, padding, dilation, groups, which):
    """PyTorch's own gradient, in a form that can be differentiated again."""
    with torch.enable_grad():
        result = nnf.conv2d(x, weight, None, stride, padding, dilation, groups)
        (found,) = torch.autograd.grad(result, (x, weight)[which], grad, create_graph=True)
    return found


def _convolution_input(grad, weight, extents, stride, padding, dilation, groups):
    x = torch.zeros(grad.shape[0], weight.shape[1] * groups, *extents, dtype=grad.dtype, requires_grad=True)
    return _gradients(grad, x, weight, stride, padding, dilation, groups, 0)


@samples("convolution_input", dtypes=FLOATS, ref=_convolution_input, grad_fn=False)
def convolution_input(make):
    yield Sample(make(2, 4, 3, 4), make(4, 2, 3, 2), (6, 6), *GEOMETRY)


def _convolution_weight(grad, x, extents, stride, padding, dilation, groups):
    weight = torch.zeros(grad.shape[1], x.shape[1] // groups, *extents, dtype=grad.dtype, requires_grad=True)
    return _gradients(grad, x, weight, stride, padding, dilation, groups, 1)


@samples("convolution_weight", dtypes=FLOATS, ref=_convolution_weight, grad_fn=False)
def convolution_weight(make):
    yield Sample(make(2, 4, 3, 4), make(2, 4, 6, 6), (3, 2), (2, 1), (1, 0), (1, 2), 1)
    yield Sample(make(2, 4, 3, 4), make(2, 4, 6, 6), (3, 2), *GEOMETRY)
