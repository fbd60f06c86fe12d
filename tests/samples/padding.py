"""Samples of padding."""

from __future__ import annotations

import torch
import torch.nn.functional as nnf

from tests.samples import ALL, COMPLEXES, FLOATS, HALVES, Sample, samples


@samples("pad", dtypes=ALL)
def pad_with_a_constant(make):
    yield Sample(make(2, 3), (1, 2))
    yield Sample(make(2, 3), (1, 1, 2, 0), value=3)
    yield Sample(make(2, 3), (-1, 1))
    yield Sample(make(2, 3), (2, -2, -1, 0), "constant", 1)
    yield Sample(make(2, 3, transposed=True), (1, 1))
    yield Sample(make(2, 0), (1, 1))
    yield Sample(make(2, 3), ())
    yield Sample(make(), ())
    yield Sample(make(2, 3, 2, 2), (1, 0, 0, 1, 1, 1))
    with torch.no_grad():
        last = make(2, 3, 2, 2).to(memory_format=torch.channels_last)
    yield Sample(last, (1, 0, 0, 1))
    yield Sample(make(2, 3), (1,)).fails()
    yield Sample(make(2, 3), (1, 1, 1, 1, 1, 1)).fails()
    yield Sample(make(2, 3), (-2, -2)).fails()


def _borders(make, mode):
    yield Sample(make(2, 3, 4), (1, 2), mode)
    yield Sample(make(3, 4), (2, 0), mode)
    yield Sample(make(2, 3, 4), (-1, 1), mode)
    yield Sample(make(2, 3, 4, 4), (1, 2, 3, 0), mode)
    yield Sample(make(3, 4, 4, transposed=True), (1, 2, 3, 0), mode)
    yield Sample(make(2, 2, 3, 4, 4), (1, 0, 2, 1, 0, 2), mode)
    yield Sample(make(4), (1, 1), mode).fails()
    yield Sample(make(2, 3, 4), (1, 1), mode, 1.0).fails()


@samples("pad", dtypes=("int64", *HALVES, *FLOATS, *COMPLEXES))
def pad_with_a_border(make):
    yield from _borders(make, "reflect")
    yield from _borders(make, "replicate")
    yield Sample(make(2, 3, 2), (4, 5), "replicate")
    yield Sample(make(2, 3, 4), (4, 1), "reflect").fails()


@samples("pad", dtypes=FLOATS, grad_fn=False)
def pad_with_the_other_side(make):
    yield from _borders(make, "circular")
    yield Sample(make(2, 3, 4), (4, 1), "circular")
    yield Sample(make(2, 3, 4), (5, 1), "circular").fails()
    yield Sample(make(2, 3, 4), (1, 1), "spiral").fails()


def _pad_backward(grad, pad, mode):
    extents = [n - a - b for n, (a, b) in zip(grad.shape[-2:], ((pad[2], pad[3]), (pad[0], pad[1])), strict=True)]
    x = torch.zeros(*grad.shape[:-2], *extents, dtype=grad.dtype, requires_grad=True)
    with torch.enable_grad():
        return torch.autograd.grad(nnf.pad(x, pad, mode), x, grad, create_graph=True)[0]


@samples("pad_backward", dtypes=FLOATS, ref=_pad_backward, grad_fn=False)
def pad_backward(make):
    for mode in ("reflect", "replicate", "circular"):
        yield Sample(make(2, 6, 7), (1, 2, 2, 0), mode)
