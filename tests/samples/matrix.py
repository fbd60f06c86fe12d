"""Samples of the matrix products."""

from __future__ import annotations

import torch.nn.functional as nnf

from tests.samples import ALL, COMPLEXES, FLOATS, HALVES, INTS, Sample, samples

NUMBERS = (*INTS, *HALVES, *FLOATS, *COMPLEXES)


@samples("matmul", dtypes=NUMBERS)
def matmul(make):
    yield Sample(make(3), make(3))
    yield Sample(make(2, 3), make(3))
    yield Sample(make(3), make(3, 4))
    yield Sample(make(2, 3), make(3, 4))
    yield Sample(make(2, 3, transposed=True), make(3, 4, transposed=True))
    yield Sample(make(5, 2, 3), make(3))
    yield Sample(make(3), make(5, 3, 4))
    yield Sample(make(5, 2, 3), make(3, 4))
    yield Sample(make(5, 2, 3, transposed=True), make(3, 4))
    yield Sample(make(5, 2, 3), make(5, 3, 4))
    yield Sample(make(5, 2, 3), make(1, 3, 4))
    yield Sample(make(6, 1, 2, 3), make(5, 3, 4))
    yield Sample(make(2, 1, 2, 3), make(3))
    yield Sample(make(2, 0), make(0, 3))
    yield Sample(make(0, 3), make(3, 2))
    yield Sample(make(2, 0, 3), make(3, 4))


@samples("matmul", dtypes=FLOATS)
def matmul_one_matrix_by_a_batch(make):
    yield Sample(make(2, 3), make(5, 3, 4))
    yield Sample(make(1, 2, 3), make(5, 3, 4))
    yield Sample(make(2, 3), make(6, 5, 3, 4))


@samples("matmul", dtypes=("float32", "bool", "int64"))
def matmul_refusals(make):
    yield Sample(make(2, 3), make(2, 3)).fails()
    yield Sample(make(2), make(3)).fails()
    yield Sample(make(), make(3)).fails()
    yield Sample(make(4, 2, 3), make(2, 3, 2)).fails()
    yield Sample(make(2, 3), make(3, 2, dtype="float64")).fails()


@samples("mm", dtypes=NUMBERS)
def mm(make):
    yield Sample(make(2, 3), make(3, 4))
    yield Sample(make(2, 3, transposed=True), make(3, 4, transposed=True))
    yield Sample(make(0, 3), make(3, 4))
    yield Sample(make(2, 0), make(0, 4))
    yield Sample(make(2, 3), make(2, 3)).fails()
    yield Sample(make(1, 2, 3), make(3, 3)).fails()


@samples("bmm", dtypes=NUMBERS)
def bmm(make):
    yield Sample(make(5, 2, 3), make(5, 3, 4))
    yield Sample(make(5, 2, 3, transposed=True), make(5, 3, 4))
    yield Sample(make(0, 2, 3), make(0, 3, 4))
    yield Sample(make(2, 3), make(3, 4)).fails()
    yield Sample(make(5, 2, 3), make(4, 3, 4)).fails()


@samples("mv", dtypes=NUMBERS)
def mv(make):
    yield Sample(make(2, 3), make(3))
    yield Sample(make(2, 3, transposed=True), make(3))
    yield Sample(make(2, 0), make(0))
    yield Sample(make(2, 3), make(2)).fails()


@samples("dot", "vdot", dtypes=NUMBERS)
def dot(make):
    yield Sample(make(5), make(5))
    yield Sample(make(0), make(0))
    yield Sample(make(5), make(4)).fails()
    yield Sample(make(5, 1), make(5)).fails()


@samples("inner", dtypes=NUMBERS)
def inner(make):
    yield Sample(make(3), make(3))
    yield Sample(make(2, 3), make(3))
    yield Sample(make(3), make(2, 3))
    yield Sample(make(2, 3), make(4, 3, transposed=True))
    yield Sample(make(2, 2, 3), make(4, 5, 3))
    yield Sample(make(), make(4, 3))
    yield Sample(make(2), make())
    yield Sample(make(2), make(3)).fails()


@samples("outer", dtypes=ALL)
def outer(make):
    yield Sample(make(2), make(3))
    yield Sample(make(2), make(0))
    yield Sample(make(2), make(3, dtype="float64"))
    yield Sample(make(2), make(3, dtype="complex64"))
    yield Sample(make(2, 2), make(3)).fails()


def _scaled(make):
    factors = dict(beta=2, alpha=3) if make.is_int else dict(beta=0.5, alpha=-1.5)
    return (dict(), factors, dict(beta=0), dict(alpha=2))


@samples("addmm", dtypes=NUMBERS)
def addmm(make):
    for factors in _scaled(make):
        yield Sample(make(2, 4), make(2, 3), make(3, 4), **factors)
    yield Sample(make(4), make(2, 3), make(3, 4))
    yield Sample(make(2, 1), make(2, 3), make(3, 4))
    yield Sample(make(), make(2, 3), make(3, 4))
    yield Sample(make(2, 4, transposed=True), make(2, 3, transposed=True), make(3, 4))
    yield Sample(make(2, 4), make(2, 0), make(0, 4))
    yield Sample(make(3), make(2, 3), make(3, 4)).fails()
    yield Sample(make(1, 2, 4), make(2, 3), make(3, 4)).fails()


@samples("addmv", dtypes=NUMBERS)
def addmv(make):
    for factors in _scaled(make):
        yield Sample(make(2), make(2, 3), make(3), **factors)
    yield Sample(make(1), make(2, 3, transposed=True), make(3))
    yield Sample(make(3), make(2, 3), make(3)).fails()


@samples("addbmm", dtypes=(*INTS, *FLOATS, *COMPLEXES))  # PyTorch rounds halves after every product
def addbmm(make):
    for factors in _scaled(make):
        yield Sample(make(2, 4), make(5, 2, 3), make(5, 3, 4), **factors)
    yield Sample(make(2, 4), make(5, 2, 3), make(4, 3, 4)).fails()


@samples("addbmm", dtypes=FLOATS, grad=False)  # PyTorch's in-place form enlarges its tensor
def addbmm_expanding(make):
    yield Sample(make(4), make(5, 2, 3), make(5, 3, 4))


@samples("baddbmm", dtypes=NUMBERS)
def baddbmm(make):
    for factors in _scaled(make):
        yield Sample(make(5, 2, 4), make(5, 2, 3), make(5, 3, 4), **factors)
    yield Sample(make(4), make(5, 2, 3), make(5, 3, 4))
    yield Sample(make(2, 4), make(0, 2, 3), make(0, 3, 4))
    yield Sample(make(3, 2, 4), make(5, 2, 3), make(5, 3, 4)).fails()


@samples("addr", dtypes=ALL)
def addr(make):
    if not make.is_bool:
        for factors in _scaled(make):
            yield Sample(make(2, 3), make(2), make(3), **factors)
    yield Sample(make(3), make(2), make(3))
    yield Sample(make(2, 3), make(2), make(3), beta=0)
    yield Sample(make(2, 3, dtype="float64"), make(2), make(3)).values_only()
    yield Sample(make(4), make(2), make(3)).fails()


@samples("kron", dtypes=ALL)
def kron(make):
    yield Sample(make(2, 3), make(4, 5))
    yield Sample(make(2), make(4, 5))
    yield Sample(make(2, 1, 2), make(3))
    yield Sample(make(), make(2, 2))
    yield Sample(make(2, 3, transposed=True), make(2, 2, transposed=True))
    yield Sample(make(2, 0), make(4, 5))
    yield Sample(make(2), make(2, dtype="float64"))


@samples("trace", dtypes=(*INTS, *FLOATS, *COMPLEXES))
def trace(make):
    yield Sample(make(3, 3))
    yield Sample(make(2, 4))
    yield Sample(make(4, 2, transposed=True))
    yield Sample(make(0, 2))
    yield Sample(make(3)).fails()


@samples("cross", dtypes=(*INTS, *FLOATS, *COMPLEXES))  # PyTorch rounds halves after every product
def cross(make):
    yield Sample(make(3), make(3))
    yield Sample(make(2, 3), make(2, 3), dim=-1)
    yield Sample(make(3, 2), make(3, 2), dim=0)
    yield Sample(make(3, 2), make(3, 2))
    yield Sample(make(2, 3), make(1, 3))
    yield Sample(make(2, 3, transposed=True), make(2, 3, transposed=True), dim=1)
    yield Sample(make(2, 4), make(2, 4), dim=1).fails()
    yield Sample(make(2, 3), make(2, 3), dim=2).fails()
    yield Sample(make(2, 2), make(2, 2)).fails()


@samples("linear", dtypes=NUMBERS, ref=nnf.linear)
def linear(make):
    yield Sample(make(2, 3), make(4, 3), make(4))
    yield Sample(make(2, 3), make(4, 3))
    yield Sample(make(2, 3, transposed=True), make(4, 3, transposed=True), make(4))
    yield Sample(make(3), make(4, 3), make(4))
    yield Sample(make(3), make(4, 3))
    yield Sample(make(5, 2, 3), make(4, 3), make(4))
    yield Sample(make(5, 2, 3), make(4, 3))
    yield Sample(make(5, 2, 3, transposed=True), make(4, 3), make(4))
    yield Sample(make(2, 5, 2, 3), make(4, 3), make(4))
    yield Sample(make(0, 3), make(4, 3), make(4))
    yield Sample(make(2, 3), make(4, 3), make(1))
    yield Sample(make(5, 3), make(3))
    yield Sample(make(3), make(3))
    yield Sample(make(2, 5, 3), make(3))
    yield Sample(make(2, 3), make(4, 2), make(4)).fails()
    yield Sample(make(2, 3), make(4, 3), make(3)).fails()
    yield Sample(make(), make(4, 3), make(4)).fails()


@samples("bilinear", dtypes=FLOATS, ref=nnf.bilinear)
def bilinear(make):
    yield Sample(make(2, 3), make(2, 4), make(5, 3, 4))
    yield Sample(make(2, 3), make(2, 4), make(5, 3, 4), make(5))
    yield Sample(make(3), make(4), make(5, 3, 4), make(5))
    yield Sample(make(2, 6, 3), make(2, 6, 4, transposed=True), make(5, 3, 4))
    yield Sample(make(2, 3), make(3, 4), make(5, 3, 4)).fails()
