"""Samples of margin losses."""

from __future__ import annotations

import torch
import torch.nn.functional as nnf

from tests.samples import FLOATS, INTS, Sample, samples
from tests.samples.losses import REALS, REDUCTIONS, named

SOFT_MARGIN = named(nnf.soft_margin_loss, "reduction")
HINGE = named(nnf.hinge_embedding_loss, "margin", "reduction")
MULTI_MARGIN = named(nnf.multi_margin_loss, "p", "margin", "weight", "reduction")
MULTILABEL_MARGIN = named(nnf.multilabel_margin_loss, "reduction")
MULTILABEL_SOFT_MARGIN = named(nnf.multilabel_soft_margin_loss, "weight", "reduction")


def _of_three(function, *names):
    """PyTorch's function of three tensors, called by the table's names."""
    return lambda *args, **kwargs: function(*args[:3], **dict(zip(names, args[3:], strict=False)), **kwargs)


MARGIN_RANKING = _of_three(nnf.margin_ranking_loss, "margin", "reduction")
COSINE = _of_three(nnf.cosine_embedding_loss, "margin", "reduction")
TRIPLET = _of_three(nnf.triplet_margin_loss, "margin", "p", "eps", "swap", "reduction")


def _signs(make, *shape):
    return make(*shape, requires_grad=False).sign()


@samples("soft_margin_loss", dtypes=("bfloat16", *FLOATS), ref=SOFT_MARGIN, tol=(1e-4, 1e-4))
def soft_margin_loss(make):
    for reduction in REDUCTIONS:
        yield Sample(make(2, 3), _signs(make, 2, 3), reduction)
    yield Sample(make(2, 3, transposed=True), _signs(make, 3), "none")
    yield Sample(make(3), _signs(make, 2, 3)).fails()
    yield Sample(make(2, 3), _signs(make, 2)).fails()
    yield Sample(make(2, 3), _signs(make, 2, 3), "median").fails()


@samples("hinge_embedding_loss", dtypes=REALS, ref=HINGE, tol=(1e-4, 1e-4))
def hinge_embedding_loss(make):
    for reduction in REDUCTIONS:
        yield Sample(make(2, 3), _signs(make, 2, 3), 1.0, reduction)
        yield Sample(make(2, 3), _signs(make, 3), 0.5, reduction)
    yield Sample(make(2, 3), torch.zeros(2, 3), 1.0, "none")
    yield Sample(make(2, 3, transposed=True), _signs(make, 2, 3), 1.0, "none")
    yield Sample(make(2, 3, transposed=True), _signs(make, 3), 1.0, "none")
    yield Sample(make(2, 3), _signs(make, 2)).fails()


@samples("hinge_embedding_loss", dtypes=("int64",), ref=HINGE)
def hinge_embedding_loss_of_integers(make):
    yield Sample(make(2, 3), _signs(make, 2, 3), 1.0, "mean").expecting(True)


@samples("margin_ranking_loss", dtypes=(*INTS, *REALS), ref=MARGIN_RANKING)
def margin_ranking_loss(make):
    for reduction in REDUCTIONS:
        yield Sample(make(2, 3), make(2, 3), _signs(make, 2, 3), 0.0, reduction)
        yield Sample(make(2, 3), make(1, 3), _signs(make, 2, 1), 0.5, reduction)
    yield Sample(make(2, 3), make(2, 3), _signs(make, 2, 3), 1)
    yield Sample(make(2, 3, transposed=True), make(2, 3), _signs(make, 2, 3), 0.5, "none")
    yield Sample(make(2, 3, transposed=True), make(2, 3), _signs(make, 1, 3), 0.5, "none")
    yield Sample(make(2, 3), make(3), _signs(make, 3)).fails()


@samples("cosine_embedding_loss", dtypes=("bool", *INTS, *FLOATS), ref=COSINE)
def cosine_embedding_loss(make):
    for reduction in REDUCTIONS:
        yield Sample(make(4, 3), make(4, 3), torch.tensor([1, -1, 1, -1]), 0.0, reduction)
        yield Sample(make(4, 3), make(1, 3), torch.tensor([1, -1, 0, -1]), -0.5, reduction)
        yield Sample(make(3), make(3), torch.tensor(1), 0.0, reduction)
    yield Sample(make(4, 3), make(4, 3), torch.tensor(1)).fails()
    yield Sample(make(4, 3), make(4, 3), torch.tensor([[1]])).fails()
    yield Sample(make(4, 3), make(3), torch.tensor([1])).fails()


@samples("triplet_margin_loss", dtypes=("int64", "bfloat16", *FLOATS, "complex128"), ref=TRIPLET, tol=(1e-4, 1e-4))
def triplet_margin_loss(make):
    for reduction in REDUCTIONS:
        yield Sample(make(4, 3), make(4, 3), make(4, 3), 1.0, 2.0, 1e-6, False, reduction)
        yield Sample(make(4, 3), make(1, 3), make(4, 3), 0.5, 3.0, 1e-6, True, reduction)
    yield Sample(make(3), make(3), make(3))
    yield Sample(make(4, 3), make(4, 3), make(4, 3), -1.0).fails()
    yield Sample(make(4, 3), make(3), make(4, 3)).fails()
    yield Sample(make(4, 3), make(4, 2), make(4, 3)).fails()


@samples("multi_margin_loss", dtypes=FLOATS, ref=MULTI_MARGIN, gradgrad=False)  # PyTorch has no second derivative
def multi_margin_loss(make):
    weight = make(3, low=0.1, requires_grad=False)
    for reduction in REDUCTIONS:
        for p in (1, 2):
            yield Sample(make(4, 3), make.index(4, high=3), p, 1.0, None, reduction)
            yield Sample(make(4, 3), make.index(4, high=3), p, 0.5, weight, reduction)
        yield Sample(make(3), torch.tensor(2), 1, 1.0, weight, reduction)
        yield Sample(make(3), torch.tensor([1]), 1, 1.0, None, reduction)
        yield Sample(make(), torch.tensor(0), 1, 1.0, None, reduction)


@samples("multi_margin_loss", dtypes=("float32", "float16"), ref=MULTI_MARGIN)
def multi_margin_loss_refusals(make):
    x, target = make(4, 3), make.index(4, high=3)
    yield Sample(x, torch.tensor([0, 1, 2, 3])).fails()
    yield Sample(x, target, 3).fails()
    yield Sample(x, target, 1, 1.0, make(4, requires_grad=False)).fails()
    yield Sample(x, target, 1, 1.0, make(1, 3, requires_grad=False)).fails()
    yield Sample(x, target[:3]).fails()
    yield Sample(x, target.int()).fails()
    yield Sample(make(2, 3, 4), make.index(2, high=3)).fails()
    yield Sample(make(4, 0), target).fails()


def _label_lists():
    return torch.tensor([[0, 2, -1, 1], [3, -1, 0, 0], [-1, 0, 0, 0], [1, 2, 3, 0]])


@samples("multilabel_margin_loss", dtypes=FLOATS, ref=MULTILABEL_MARGIN, gradgrad=False)
def multilabel_margin_loss(make):
    for reduction in REDUCTIONS:
        yield Sample(make(4, 4), _label_lists(), reduction)
        yield Sample(make(4), _label_lists()[0], reduction)
        yield Sample(make(), torch.tensor(0), reduction)
    yield Sample(make(4, 4, transposed=True), torch.tensor([[1, 1, -1, 0]] * 4))


@samples("multilabel_margin_loss", dtypes=("float32", "float16"), ref=MULTILABEL_MARGIN)
def multilabel_margin_loss_refusals(make):
    yield Sample(make(4, 4), _label_lists()[:2]).fails()
    yield Sample(make(4, 4), _label_lists().int()).fails()
    yield Sample(make(4, 4), _label_lists() + 1).fails()
    yield Sample(make(4, 4), _label_lists() - 2).fails()


def _slopes(x, target):
    x = x.detach().requires_grad_()
    with torch.enable_grad():
        return torch.autograd.grad(nnf.multilabel_margin_loss(x, target, reduction="sum"), x)[0]


@samples("multilabel_margin_slopes", dtypes=FLOATS, ref=_slopes, grad=False)
def multilabel_margin_slopes(make):
    yield Sample(make(4, 4), _label_lists())


@samples("multilabel_soft_margin_loss", dtypes=REALS, ref=MULTILABEL_SOFT_MARGIN, tol=(1e-4, 1e-4))
def multilabel_soft_margin_loss(make):
    fixed = dict(requires_grad=False, low=0, high=1)
    for reduction in REDUCTIONS:
        yield Sample(make(4, 3), make(4, 3, **fixed), None, reduction)
        yield Sample(make(2, 4, 3), make(2, 4, 3, **fixed), make(3, **fixed), reduction)
    yield Sample(make(4, 3), make(4, 2, **fixed)).fails()
