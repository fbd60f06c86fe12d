"""Samples of views and of rearrangements that copy."""

import torch

from tests.samples import FLOATS, Sample, samples

SOME = ("bool", "int64", "bfloat16", "float32", "float64", "complex128")
"""Kernels that only move elements see them as bytes: a few dtypes stand for all."""


@samples("view", dtypes=SOME, ref=torch.Tensor.view)
def view(make):
    yield Sample(make(3, 4), (12,))
    yield Sample(make(3, 4), (2, -1, 2))
    yield Sample(make(3, 4), (3, 1, 4))
    yield Sample(make(), (1, 1))
    yield Sample(make(1), ())
    yield Sample(make(0, 3), (3, 0, 5))
    yield Sample(make(4, 3, transposed=True), (2, 2, 3))
    yield Sample(make(2, 3, 8)[:, :, ::2], (6, 4))
    yield Sample(make(4, 3, transposed=True), (12,)).fails()
    yield Sample(make(3, 4), (5,)).fails()
    yield Sample(make(3, 4), (-1, -1)).fails()
    yield Sample(make(3, 4), (-1, 5)).fails()
    yield Sample(make(3, 4), (-2, 6)).fails()


@samples("reshape", dtypes=SOME)
def reshape(make):
    yield Sample(make(3, 4), (4, 3))
    yield Sample(make(3, 4), (3, 4))
    yield Sample(make(4, 3, transposed=True), (12,))
    yield Sample(make(4, 3, transposed=True), (-1, 6))
    yield Sample(make(4, 3, transposed=True), (4, 3, 1))
    yield Sample(make(2, 3, 8)[:, :, ::2], (3, 8))
    yield Sample(make(3, 1).expand(3, 4), (12,))
    yield Sample(make(), (1,))
    yield Sample(make(0, 3), (0, 7))
    yield Sample(make(3, 4), (7,)).fails()


@samples("flatten", dtypes=SOME)
def flatten(make):
    yield Sample(make(2, 3, 4))
    yield Sample(make(2, 3, 4), 1)
    yield Sample(make(2, 3, 4), 0, 1)
    yield Sample(make(2, 3, 4, transposed=True), 1)
    yield Sample(make())
    yield Sample(make(2, 3), 1, 0).fails()
    yield Sample(make(2, 3), 2).fails()


@samples("unflatten", dtypes=SOME)
def unflatten(make):
    yield Sample(make(6, 4), 0, (2, 3))
    yield Sample(make(6, 4), -1, (2, -1))
    yield Sample(make(4, 6, transposed=True), 1, (3, 2))
    yield Sample(make(3, 4), 0, (2, 2)).fails()


@samples("transpose", dtypes=SOME)
def transpose(make):
    yield Sample(make(2, 3, 4), 0, 2)
    yield Sample(make(2, 3, 4), -1, 1)
    yield Sample(make(2, 3), 0, 0)
    yield Sample(make(), 0, -1)
    yield Sample(make(2, 3), 0, 2).fails()


@samples("t", dtypes=SOME)
def t(make):
    yield Sample(make(2, 3))
    yield Sample(make(3))
    yield Sample(make())
    yield Sample(make(2, 3, 4)).fails()


@samples("permute", dtypes=SOME)
def permute(make):
    yield Sample(make(2, 3, 4), (2, 0, 1))
    yield Sample(make(2, 3, 4), (-1, 1, 0))
    yield Sample(make(), ())
    yield Sample(make(2, 3), (0,)).fails()
    yield Sample(make(2, 3), (0, 0)).fails()
    yield Sample(make(2, 3), (0, 2)).fails()


@samples("movedim", dtypes=SOME)
def movedim(make):
    yield Sample(make(2, 3, 4), 0, 2)
    yield Sample(make(2, 3, 4), (0, 1), (2, 0))
    yield Sample(make(2, 3, 4, 5), (-1, 0), (0, 2))
    yield Sample(make(2, 3), (0, 1), (0, 0)).fails()
    yield Sample(make(2, 3), (0, 1), (0,)).fails()


@samples("squeeze", dtypes=SOME)
def squeeze(make):
    yield Sample(make(1, 3, 1))
    yield Sample(make(1, 3, 1), 0)
    yield Sample(make(1, 3, 1), 1)
    yield Sample(make(1, 3, 1), (0, 2))
    yield Sample(make(1, 3, 1), ())
    yield Sample(make())
    yield Sample(make(), 0)
    yield Sample(make(1, 3), 2).fails()


@samples("unsqueeze", dtypes=SOME)
def unsqueeze(make):
    for dim in (0, 1, 2, -1, -3):
        yield Sample(make(2, 3), dim)
    yield Sample(make(4, 3, transposed=True), 1)
    yield Sample(make(), 0)
    yield Sample(make(2, 3), 3).fails()


@samples("expand", dtypes=SOME, ref=torch.Tensor.expand)
def expand(make):
    yield Sample(make(3, 1), (3, 4))
    yield Sample(make(3, 1), (-1, 4))
    yield Sample(make(3), (2, 1, 3))
    yield Sample(make(), (2, 3))
    yield Sample(make(), ())
    yield Sample(make(1, 3), (0, 3))
    yield Sample(make(3, 4), (1, 3, 4))
    yield Sample(make(3, 4), (3,)).fails()
    yield Sample(make(3, 4), (3, 5)).fails()
    yield Sample(make(3, 4), (-1, 3, 4)).fails()


@samples("broadcast_to", dtypes=FLOATS)
def broadcast_to(make):
    yield Sample(make(3, 1), (2, 3, 4))
    yield Sample(make(3, 4), (3, 5)).fails()


@samples("repeat", dtypes=SOME, ref=torch.Tensor.repeat)
def repeat(make):
    yield Sample(make(2, 3), (2, 1))
    yield Sample(make(2, 3), (4, 2, 3))
    yield Sample(make(2, 3), (0, 2))
    yield Sample(make(3, 2, transposed=True), (1, 2))
    yield Sample(make(), (3,))
    yield Sample(make(2, 3), (2,)).fails()
    yield Sample(make(2, 3), (2, -1)).fails()


@samples("tile", dtypes=FLOATS)
def tile(make):
    yield Sample(make(2, 3), (2,))
    yield Sample(make(2, 3), (2, 1, 2))
    yield Sample(make(2, 3), ())


@samples("select", dtypes=SOME)
def select(make):
    yield Sample(make(2, 3), 0, 1)
    yield Sample(make(2, 3), -1, -1)
    yield Sample(make(4, 3, transposed=True), 0, 2)
    yield Sample(make(3), 0, 0)
    yield Sample(make(2, 3), 0, 2).fails()
    yield Sample(make(2, 3), 0, -3).fails()
    yield Sample(make(), 0, 0).fails()


@samples("slice", dtypes=SOME, ref=torch.ops.aten.slice.Tensor)
def slices(make):
    yield Sample(make(5, 3), 0, 1, 3)
    yield Sample(make(5, 3), 0)
    yield Sample(make(5, 3), 1, None, -1)
    yield Sample(make(5, 3), 0, -3, None)
    yield Sample(make(5, 3), 0, 4, 1)
    yield Sample(make(5, 3), 0, 0, 100, 2)
    yield Sample(make(5, 3), 0, 1, 5, 3)
    yield Sample(make(5, 3), 0, 7, 9)
    yield Sample(make(0, 3), 0, 0, 2)
    yield Sample(make(5, 3, transposed=True), 0, 1, None, 2)


@samples("slice", dtypes=("float32",), ref=lambda x, dim, start, end, step: x[start:end:step])
def slices_by_python(make):
    yield Sample(make(5), 0, None, None, 2)
    yield Sample(make(5), 0, None, None, 0).fails()
    yield Sample(make(5), 0, None, None, -1).fails()


@samples("narrow", dtypes=SOME)
def narrow(make):
    yield Sample(make(5, 3), 0, 1, 3)
    yield Sample(make(5, 3), -1, -2, 2)
    yield Sample(make(5, 3), 0, 5, 0)
    yield Sample(make(5, 3), 0, 3, 3).fails()
    yield Sample(make(5, 3), 0, 6, 0).fails()
    yield Sample(make(5, 3), 0, 0, -1).fails()


@samples("diagonal", dtypes=SOME)
def diagonal(make):
    for offset in (-5, -1, 0, 2, 5):
        yield Sample(make(3, 4), offset)
    yield Sample(make(2, 3, 4), 1, 1, 2)
    yield Sample(make(2, 3, 4), 0, -1, 0)
    yield Sample(make(4, 3, transposed=True), 0)
    yield Sample(make(3, 4), 0, 1, 1).fails()
    yield Sample(make(3), 0).fails()


@samples("unfold", dtypes=SOME, ref=torch.Tensor.unfold)
def unfold(make):
    yield Sample(make(7), 0, 3, 2)
    yield Sample(make(2, 7), 1, 3, 1)
    yield Sample(make(7, 2), 0, 2, 3)
    yield Sample(make(7, 2, transposed=True), 0, 7, 1)
    yield Sample(make(), 0, 1, 1)
    yield Sample(make(3), 0, 4, 1).fails()
    yield Sample(make(3), 0, 2, 0).fails()


@samples("as_strided", dtypes=SOME)
def as_strided(make):
    yield Sample(make(12), (3, 4), (4, 1))
    yield Sample(make(12), (3, 3), (2, 1), 1)
    yield Sample(make(3, 4), (2, 2), (1, 4), 2)
    yield Sample(make(3, 4), (5,), (0,), 3)
    yield Sample(make(4, 3, transposed=True), (2, 2), (1, 3))
    yield Sample(make(3, 4), (), ())
    yield Sample(make(3), (4,), (1,)).fails()
    yield Sample(make(3), (2,), (-1,)).fails()
    yield Sample(make(3), (2, 1), (1,)).fails()


@samples("as_strided", dtypes=("float64",), gradgrad=False)
def as_strided_of_expanded(make):
    yield Sample(make(3).expand(2, 3), (3,), (1,))


# PyTorch 2.13 sends the gradient of what was overwritten to self, and drops that of the rest.
@samples("as_strided_scatter", dtypes=("float32", "float64", "int64"), grad=("src",))
def as_strided_scatter(make):
    yield Sample(make(3, 4), make(2, 2), (2, 2), (4, 2), 1)
    yield Sample(make(12), make(3), (3,), (4,))
    yield Sample(make(12), make(4), (3,), (4,)).fails()


@samples("alias", dtypes=("float64",), ref=torch.ops.aten.alias)
def alias(make):
    yield Sample(make(4, 3, transposed=True))


@samples("detach", dtypes=("float64", "int64"))
def detach(make):
    yield Sample(make(4, 3, transposed=True))


def _unsafe_split(x, sizes, dim=0):
    return (torch.unsafe_split if isinstance(sizes, int) else torch.unsafe_split_with_sizes)(x, sizes, dim)


@samples("unsafe_split", dtypes=SOME, ref=_unsafe_split)
def unsafe_split(make):
    yield Sample(make(5, 2), 2)
    yield Sample(make(2, 5), 3, -1)
    yield Sample(make(5, 2), (1, 0, 4))
    yield Sample(make(0, 2), 3)
    yield Sample(make(5, 2), 0).fails()


@samples("split", dtypes=SOME)
def split(make):
    yield Sample(make(5, 2), 2)
    yield Sample(make(2, 5), 5, 1)
    yield Sample(make(2, 5), 7, -1)
    yield Sample(make(5, 2), (1, 0, 4))
    yield Sample(make(0, 2), 3)
    yield Sample(make(0, 2), 0)
    yield Sample(make(5, 2), 0).fails()
    yield Sample(make(5, 2), -1).fails()
    yield Sample(make(5, 2), (1, 1)).fails()


@samples("chunk", dtypes=SOME)
def chunk(make):
    yield Sample(make(5, 2), 3)
    yield Sample(make(2, 7), 2, 1)
    yield Sample(make(2, 3), 5)
    yield Sample(make(0, 2), 3)
    yield Sample(make(2, 3), 0).fails()


@samples("unbind", dtypes=SOME)
def unbind(make):
    yield Sample(make(3, 2))
    yield Sample(make(3, 2), -1)
    yield Sample(make(4, 3, transposed=True), 1)
    yield Sample(make(3))


@samples("flip", dtypes=SOME)
def flip(make):
    yield Sample(make(2, 3), (0,))
    yield Sample(make(2, 3), (0, -1))
    yield Sample(make(4, 3, transposed=True), (1,))
    yield Sample(make(2, 3), ())
    yield Sample(make(0, 3), (0,))
    yield Sample(make(2, 3), (0, 0)).fails()
    yield Sample(make(2, 3), (2,)).fails()


@samples("roll", dtypes=SOME)
def roll(make):
    yield Sample(make(3, 4), 1)
    yield Sample(make(3, 4), -6)
    yield Sample(make(3, 4), 2, 1)
    yield Sample(make(3, 4), (1, -1), (0, 1))
    yield Sample(make(3, 4), (1, 1), (0, 0))
    yield Sample(make(4, 3, transposed=True), 5, 0)
    yield Sample(make(0, 3), 1, 0)
    yield Sample(make(3, 4), (1, 2), 0).fails()


@samples("rot90", dtypes=SOME)
def rot90(make):
    for k in (-1, 0, 1, 2, 3, 5):
        yield Sample(make(2, 3), k)
    yield Sample(make(2, 3, 4), 1, (2, 1))
    yield Sample(make(4, 3, transposed=True), 1)
    yield Sample(make(2, 3), 1, (0, 0)).fails()


@samples("tril", "triu", dtypes=SOME)
def triangles(make):
    for diagonal in (-1, 0, 2, 9):
        yield Sample(make(3, 4), diagonal)
    yield Sample(make(2, 3, 3))
    yield Sample(make(4, 3, transposed=True))
    yield Sample(make(0, 3))
    yield Sample(make(3)).fails()


@samples("diag", dtypes=SOME)
def diag(make):
    for diagonal in (-1, 0, 2):
        yield Sample(make(3), diagonal)
        yield Sample(make(3, 4), diagonal)
    yield Sample(make(4, 3, transposed=True))
    yield Sample(make(2, 3, 4)).fails()


@samples("diag_embed", dtypes=SOME)
def diag_embed(make):
    yield Sample(make(3))
    yield Sample(make(2, 3), 1)
    yield Sample(make(2, 3), -1, 0, 2)
    yield Sample(make(2, 3), 0, 1, 0)
    yield Sample(make(3), 0, 1, 1).fails()


@samples("sum_to_size", dtypes=("float16", *FLOATS, "complex64"), ref=torch.Tensor.sum_to_size)
def sum_to_size(make):
    yield Sample(make(3, 4), (1, 4))
    yield Sample(make(2, 3, 4), (4,))
    yield Sample(make(2, 3, 4), (3, 1))
    yield Sample(make(2, 3, 4), ())
    yield Sample(make(), ())
    yield Sample(make(3, 4), (3, 5)).fails()
