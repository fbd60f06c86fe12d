"""Samples of unpooling and fractional pooling."""

from __future__ import annotations

import torch
import torch.nn.functional as nnf

from tests.samples import FLOATS, HALVES, Sample, samples


def _max_unpool(x, indices, output_size):
    if len(output_size) == 2:
        return torch._C._nn.max_unpool2d(x, indices, output_size)
    count = len(output_size)
    return torch._C._nn.max_unpool3d(x, indices, output_size, (1,) * count, (0,) * count)


def _places(make, planes, inputs, outputs):
    """Distinct places in each plane."""
    drawn = [make.permutation(outputs)[:inputs] for _ in range(planes)]
    return torch.stack(drawn)


@samples("max_unpool", dtypes=("int64", *HALVES, *FLOATS), ref=_max_unpool, grad=("self",))
def max_unpool(make):
    yield Sample(make(2, 3, 2, 2), _places(make, 6, 4, 20).reshape(2, 3, 2, 2), (4, 5))
    yield Sample(make(3, 2, 2), _places(make, 3, 4, 16).reshape(3, 2, 2), (4, 4))
    yield Sample(make(2, 3, 1, 2, 2), _places(make, 6, 4, 24).reshape(2, 3, 1, 2, 2), (2, 3, 4))
    yield Sample(make(2, 3, 2, 2, transposed=True), _places(make, 6, 4, 20).reshape(2, 3, 2, 2), (4, 5))


@samples("max_unpool", dtypes=("float32",), ref=_max_unpool)
def max_unpool_refusals(make):
    indices = _places(make, 6, 4, 20).reshape(2, 3, 2, 2)
    yield Sample(make(2, 3, 2, 2), indices.int(), (4, 5)).fails()
    yield Sample(make(2, 3, 2, 3), indices, (4, 5)).fails()
    yield Sample(make(2, 3, 2, 2), indices + 20, (4, 5)).fails()


def _fractional(x, drawn, kernel_size, output_size):
    pool = nnf.fractional_max_pool2d if len(output_size) == 2 else nnf.fractional_max_pool3d
    return pool(x, kernel_size, output_size, return_indices=True, _random_samples=drawn)


@samples("fractional_max_pool", dtypes=FLOATS, ref=_fractional, grad=("self",))
def fractional_max_pool(make):
    def drawn(*shape):
        return make(*shape, low=0, high=1, requires_grad=False)

    yield Sample(make(2, 3, 7, 8), drawn(2, 3, 2), (2, 3), (4, 3))
    yield Sample(make(3, 7, 8), drawn(1, 3, 2), (2, 2), (3, 1))
    yield Sample(make(2, 3, 5, 6, 7), drawn(2, 3, 3), (2, 1, 3), (3, 4, 2))
    yield Sample(make(2, 3, 7, 8), drawn(2, 3, 2), (5, 3), (4, 3)).fails()
    yield Sample(make(2, 3, 7, 8), drawn(2, 3, 3), (2, 3), (4, 3)).fails()
