"""Samples of einsum and related contractions."""

from __future__ import annotations

import torch

from tests.samples import COMPLEXES, FLOATS, HALVES, INTS, Sample, samples

NUMBERS = (*INTS, *HALVES, *FLOATS, *COMPLEXES)

PAIRS = [
    ("ij,jk->ik", (2, 3), (3, 4)),
    ("ij,jk->ki", (2, 3), (3, 4)),
    ("ij,jk", (2, 3), (3, 4)),
    (" i j , k j -> i k ", (2, 3), (4, 3)),
    ("bij,bjk->bik", (5, 2, 3), (5, 3, 4)),
    ("bij,bjk->ikb", (5, 2, 3), (5, 3, 4)),
    ("bhqd,bhkd->bhqk", (2, 3, 4, 5), (2, 3, 6, 5)),
    ("abc,cd->adb", (2, 3, 4), (4, 5)),
    ("abc,bd->adc", (2, 3, 4), (3, 5)),
    ("...ij,...jk->...ik", (5, 2, 3), (3, 4)),
    ("...ij,...jk->...ik", (5, 1, 2, 3), (6, 3, 4)),
    ("i...,i...", (2, 3), (2, 3)),
    ("i,i", (3,), (3,)),
    ("ij,ij->i", (2, 3), (2, 3)),
    ("Ab,bA", (2, 3), (3, 2)),
    ("iij,jk->ik", (3, 3, 2), (2, 4)),
    ("ab,bc->c", (2, 0), (0, 3)),
]
PRODUCTS = [
    ("i,j->ij", (3,), (4,)),
    ("ij,ij->ij", (2, 3), (2, 3)),
    ("ij,ij->ji", (2, 3), (2, 3)),
    ("ij,j->ij", (2, 3), (3,)),
    ("...,...", (2, 3), (3,)),
    (",", (), ()),
    ("ij,ij->ij", (2, 3), (2, 1)),
    ("ij,jk", (2, 1), (3, 2)),
    ("ij,k->k", (2, 3), (4,)),
    ("ijk,k->", (2, 3, 4), (4,)),
]
SINGLES = [("ij->ji", (2, 3)), ("ji", (2, 3)), ("...ij->...ji", (4, 2, 3)), ("ij", (2, 3)), ("->", ())]


@samples("einsum", dtypes=NUMBERS)
def einsum_pairs(make):
    for equation, a, b in PAIRS:
        yield Sample(equation, [make(*a), make(*b)])
    yield Sample("ij,jk->ik", [make(2, 3, transposed=True), make(3, 4, transposed=True)])


@samples("einsum", dtypes=("int64", *FLOATS, *COMPLEXES))
def einsum_products(make):
    for equation, a, b in PRODUCTS:
        yield Sample(equation, [make(*a), make(*b)])
    yield Sample("i,j->ij", [make(2), make(3, dtype="float64")])


@samples("einsum", dtypes=("bool", "int64", *FLOATS, *COMPLEXES))
def einsum_of_one(make):
    for equation, a in SINGLES:
        yield Sample(equation, [make(*a)])


@samples("einsum", dtypes=("bool", "int32", "float64", "complex128"), strides=False)
def einsum_of_one_diagonals_and_sums(make):
    for equation, a in (
        ("ii->i", (3, 3)), ("ii", (3, 3)), ("ij->", (2, 3)), ("ij->j", (2, 3)), ("...i->i", (2, 3)),
        ("iji->ij", (2, 3, 2)), ("ij->i...", (2, 3)),
    ):  # fmt: skip
        yield Sample(equation, [make(*a)])


@samples("einsum", dtypes=FLOATS, strides=False, grad_fn=False)
def einsum_of_many(make):
    yield Sample("ij,jk,kl->il", [make(2, 3), make(3, 4), make(4, 5)])
    yield Sample("i,j,k->", [make(2), make(3), make(4)])
    yield Sample("bn,anm,bm->ba", [make(2, 5), make(3, 5, 4), make(2, 4)])
    yield Sample("ij,kl,ik->jl", [make(2, 3), make(4, 5), make(2, 4)])
    yield Sample("ij,,jk", [make(2, 3), make(), make(3, 2)])
    yield Sample("a,ab,abc,abcd->d", [make(2), make(2, 3), make(2, 3, 4), make(2, 3, 4, 2)])


@samples("einsum", dtypes=("float32",))
def einsum_refusals(make):
    for equation, *shapes in (
        ("ij,jk", (2, 3), (2, 3)),
        ("ij,jk->il", (2, 3), (3, 3)),
        ("ij->ii", (2, 3)),
        ("i1j", (2, 3)),
        ("ij,jk", (2, 3)),
        ("ijk", (2, 3)),
        ("ij..j", (2, 3)),
        ("...i...", (2, 3)),
        ("ii", (2, 3)),
        ("i->i->i", (2,)),
        ("", (2, 3)),
        ("i...,i...", (2, 3), (2, 4)),
    ):
        yield Sample(equation, [make(*shape) for shape in shapes]).fails()
    yield Sample("ij,jk->ik", [make(2, 3), make(3, 2, dtype="float64")]).fails()


def _contract(operands, labels, output):
    if len(set(output)) == len(output):
        flat = [part for pair in zip(operands, map(list, labels), strict=True) for part in pair]
        return torch.einsum(*flat, list(output))
    return torch.diag_embed(operands[0])


@samples("contract", dtypes=FLOATS, ref=_contract, strides=False, grad_fn=False)
def contract(make):
    yield Sample([make(2, 3), make(3, 4)], ((0, 1), (1, 2)), (2, 0))
    yield Sample([make(2, 3)], ((7, 5),), (5, 7))
    yield Sample([make(3)], ((4,),), (4, 4))
    yield Sample([make(2, 3)], ((0, 1),), (0, 1, 1))
    yield Sample([make(2, 3)], ((0, 1),), (1,))


@samples("tensordot", dtypes=NUMBERS)
def tensordot(make):
    yield Sample(make(2, 3, 4), make(3, 4, 5))
    yield Sample(make(2, 3), make(4, 5), 0)
    yield Sample(make(2, 3), make(3, 4), 1)
    yield Sample(make(2, 3, 4), make(4, 3, 5), ((2, 1), (0, 1)))
    yield Sample(make(4, 3, 2), make(5, 4, 3), ((0, 1), (1, 2)))
    yield Sample(make(2, 3), make(2, 3), 2)
    yield Sample(make(2, 1), make(4, 3, 5), ((1,), (1,)))
    yield Sample(make(2, 3, 4), make(4, 3, 5), ((2, 1), (0, 0))).fails()
    yield Sample(make(2, 3, 4), make(4, 3, 5), ((2, 1), (0,))).fails()
    yield Sample(make(2, 3), make(4, 3, 5), 3).fails()
    yield Sample(make(2, 3), make(4, 3, 5), ((5,), (1,))).fails()
