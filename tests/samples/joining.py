"""Samples of joining tensors."""

import torch

from tests.samples import Sample, samples

SOME = ("bool", "int64", "bfloat16", "float32", "float64", "complex128")


def other(make):
    """A dtype that is not the one under test."""
    return "float64" if make.name != "float64" else "float32"


@samples("cat", dtypes=SOME)
def cat(make):
    yield Sample([make(2, 3), make(1, 3)])
    yield Sample([make(2, 3), make(2, 4), make(2, 0)], 1)
    yield Sample([make(2, 3)], -1)
    yield Sample([make(4, 3, transposed=True), make(2, 3)], 0)
    yield Sample([make(0), make(2, 3)], 0)
    yield Sample([make(0), make(0)])
    yield Sample([make(0), make(0)], 1)
    yield Sample([make(0)], -3)
    yield Sample([make(2), make(0)], 1).fails()
    yield Sample([make(2, dtype="int64"), make(3)])
    yield Sample([make(2), make(3, dtype=other(make))])
    images = make(2, 3, 4, 5, requires_grad=False).to(memory_format=torch.channels_last)
    yield Sample([images, images], 1)
    yield Sample([images.contiguous(), images], 0)
    yield Sample([images[:, :1], images[:, 1:]], 1)
    yield Sample([make(2, 3), make(3)]).fails()
    yield Sample([make(2, 3), make(2, 4)]).fails()
    yield Sample([make(2, 3), make(2, 3)], 2).fails()
    yield Sample([make(2), make()]).fails()


@samples("stack", dtypes=SOME)
def stack(make):
    for dim in (0, 1, 2, -1):
        yield Sample([make(2, 3), make(2, 3)], dim)
    yield Sample([make(), make()])
    yield Sample([make(4, 3, transposed=True)] * 2)
    yield Sample([make(2), make(2, dtype=other(make))])
    images = make(2, 3, 4, 5, requires_grad=False).to(memory_format=torch.channels_last)
    yield Sample([images, images])
    yield Sample([images[:, :2], images[:, 1:]], 2)
    yield Sample([make(2), make(3)]).fails()
    yield Sample([make(2), make(2)], 2).fails()


@samples("cat", "stack", dtypes=("float32",))
def of_nothing(make):
    yield Sample([]).fails()


@samples("repeat_interleave", dtypes=SOME)
def repeat_interleave(make):
    yield Sample(make(2, 3), 2)
    yield Sample(make(2, 3), 3, 0)
    yield Sample(make(2, 3), 2, -1)
    yield Sample(make(4, 3, transposed=True), 2, 0)
    yield Sample(make(2, 3), 0, 1)
    yield Sample(make(), 3)
    yield Sample(make(2, 3), -1).fails()


@samples("repeated_positions", dtypes=("int32", "int64"), ref=torch.repeat_interleave)
def repeated_positions(make):
    yield Sample(make(5, low=0, high=4))
    yield Sample(make(0))
    yield Sample(torch.tensor([1, -1])).fails()
