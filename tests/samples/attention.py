"""Samples of attention."""

from __future__ import annotations

import math
from math import sqrt

import numpy as np
import torch
import torch.nn.functional as nnf

from tests.samples import FLOATS, HALVES, Sample, samples

REALS = (*HALVES, *FLOATS)


def _qkv(make, lead=(2, 3), rows=4, cols=5, width=8, out=8):
    return make(*lead, rows, width), make(*lead, cols, width), make(*lead, cols, out)


def _swapped(make, heads, rows, width):
    return make(2, rows, heads, width).transpose(1, 2).detach().requires_grad_()


@samples("scaled_dot_product_attention", dtypes=REALS, gradgrad=False, grad_tol=(1e-4, 1e-4))
def scaled_dot_product_attention(make):
    yield Sample(*_qkv(make))
    yield Sample(*_qkv(make), is_causal=True)
    yield Sample(*_qkv(make, cols=3), is_causal=True)
    yield Sample(*_qkv(make), scale=0.3)
    yield Sample(*_qkv(make, out=6))
    yield Sample(*_qkv(make, lead=(3,)))
    yield Sample(*_qkv(make, lead=()))
    yield Sample(*_qkv(make), torch.tensor([[True, False, True, True, False]] * 4))
    yield Sample(*_qkv(make), make(2, 3, 4, 5, requires_grad=False))
    yield Sample(make(2, 3, 4, 8), make(1, 3, 5, 8), make(1, 3, 5, 8))
    yield Sample(make(2, 4, 4, 8), make(2, 2, 5, 8), make(2, 2, 5, 8), enable_gqa=True)
    yield Sample(_swapped(make, 3, 4, 8), _swapped(make, 3, 5, 8), _swapped(make, 3, 5, 8))


@samples("scaled_dot_product_attention", dtypes=FLOATS, grad_fn=False, gradgrad=False)
def scaled_dot_product_attention_with_a_learned_mask(make):
    yield Sample(*_qkv(make), make(4, 5))
    yield Sample(*_qkv(make), make(2, 1, 4, 5))


@samples("scaled_dot_product_attention", dtypes=("float32",))
def scaled_dot_product_attention_refusals(make):
    q, k, v = _qkv(make)
    yield Sample(q, k, v, make(4, 5), is_causal=True).fails()
    yield Sample(q, k, v, make(4, 6)).fails()
    yield Sample(q, k, v, make(4, 5, dtype="int64")).fails()
    yield Sample(q, k, v, dropout_p=2.0).fails()
    yield Sample(q, make(2, 3, 5, 7), v).fails()
    yield Sample(q, make(4, 3, 5, 8), make(4, 3, 5, 8)).fails()
    yield Sample(q, make(2, 3, 5, 8, dtype="float64"), v).fails()
    yield Sample(make(8), make(8), make(8)).fails()
    yield Sample(make(2, 5, 4, 8), make(2, 2, 5, 8), make(2, 2, 5, 8), enable_gqa=True).fails()
    yield Sample(*(make(2, 3, 4, 8, dtype="int64") for _ in range(3))).fails()


def _is_a_mixture_of_values(results, q, k, v, *_, **__):
    # Weights are dropped or doubled, so with values of 1 rows sum to what is left: anything from 0 to 2.
    assert ((results[0] >= 0) & (results[0] <= 2 + 1e-5)).all()


@samples("scaled_dot_product_attention", dtypes=("float32",), ref=None, check=_is_a_mixture_of_values)
def scaled_dot_product_attention_with_dropout(make):
    q, k, _ = _qkv(make)
    yield Sample(q, k, torch.ones(2, 3, 5, 8), dropout_p=0.5)
    yield Sample(q, k, torch.ones(2, 3, 5, 8), None, 0.5, True)
    yield Sample(q, k, torch.ones(2, 3, 5, 8), torch.ones(4, 5).bool(), 0.5)
    yield Sample(q, k, torch.ones(2, 3, 5, 8), make(4, 5), 0.5)


def _attention(q, k, v, mask, is_causal, scale):
    scores = q @ k.mT * scale
    if is_causal:
        mask = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf) if mask.dtype is torch.bool else scores + mask
    return torch.softmax(scores, -1) @ v


@samples("attention", dtypes=FLOATS, ref=_attention, grad_fn=False, tol=(1e-4, 1e-4))
def attention(make):
    yield Sample(*_qkv(make), None, False, 0.3)
    yield Sample(*_qkv(make), None, True, 1 / sqrt(8))
    yield Sample(*_qkv(make), make(4, 5), False, 0.3)
    yield Sample(*_qkv(make, lead=(2,)), make.mask(2, 4, 5) | torch.eye(4, 5).bool(), False, 0.3)
    yield Sample(*_qkv(make, lead=()), None, False, 0.3)
    yield Sample(make(2, 3, 4, 8), make(1, 3, 5, 8), make(3, 5, 8), None, False, 0.3)


def _attention_training(q, k, v, mask, is_causal, scale):
    weights = _attention(
        q, k, torch.eye(k.shape[-2], dtype=q.dtype).expand(*k.shape[:-2], -1, -1), mask, is_causal, scale
    )
    return weights @ v, weights


@samples("attention_training", dtypes=FLOATS, ref=_attention_training, grad=False, strides=False, tol=(1e-4, 1e-4))
def attention_training(make):
    make = make.plain()
    yield Sample(*_qkv(make), None, False, 0.3)
    yield Sample(*_qkv(make, out=6), None, True, 0.3)
    yield Sample(*_qkv(make), make(4, 5), False, 0.3)


@samples(
    "attention", dtypes=FLOATS, ref=lambda *a: nnf.scaled_dot_product_attention(*a[:4]), grad_fn=False, gradgrad=False
)
def attention_of_queries_that_see_nothing(make):
    mask = torch.eye(4).bool() & torch.tensor([True, False, True, False])
    yield Sample(*_qkv(make, cols=4), mask, False, 1 / sqrt(8))


def _attention_backward(grad, q, k, v, weights, scale):
    operands = [x.detach().requires_grad_() for x in (q, k, v)]
    with torch.enable_grad():
        return torch.autograd.grad(_attention(*operands, None, False, scale), operands, grad)


@samples("attention_backward", dtypes=FLOATS, ref=_attention_backward, grad=False, strides=False, tol=(1e-4, 1e-4))
def attention_backward(make):
    for lead in ((2, 3), ()):
        q, k, v = (x.detach() for x in _qkv(make, lead, out=6))
        yield Sample(make(*lead, 4, 6, requires_grad=False), q, k, v, torch.softmax(q @ k.mT * 0.3, -1), 0.3)


def _kept(state, shape, p):
    """What dropout keeps, from NumPy's own generator: each row begins with a new block of four words."""
    blocks = -(-shape[-1] // 8)
    rows = math.prod(shape[:-1])
    seed, first = (int(n) for n in state)
    bits = np.random.Philox(counter=[first - 1, 0, 0, 0], key=[seed, 0])
    halves = bits.random_raw(rows * blocks * 4).view(np.uint32).reshape(rows, blocks * 8)
    return torch.from_numpy((halves[:, : shape[-1]] < round((1 - p) * 2**32)).reshape(shape))


def _flash_attention(q, k, v, mask, state, is_causal, scale, p):
    scores = q @ k.mT * scale
    if is_causal:
        mask = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf) if mask.dtype is torch.bool else scores + mask
    weights = torch.softmax(scores, -1)
    return (weights if state is None else weights * _kept(state, weights.shape, p) / (1 - p)) @ v


def _state():
    return torch.tensor([7, 12])


@samples("flash_attention", dtypes=FLOATS, ref=_flash_attention, grad_fn=False, tol=(1e-4, 1e-4))
def flash_attention(make):
    allowed = make.mask(2, 1, 4, 5) | torch.eye(4, 5).bool()
    yield Sample(*_qkv(make), None, None, False, 0.3, 0.0)
    yield Sample(*_qkv(make, out=6), None, None, True, 0.3, 0.0)
    yield Sample(*_qkv(make), make(4, 5, requires_grad=False), None, False, 0.3, 0.0)
    yield Sample(*_qkv(make), allowed, None, False, 0.3, 0.0)
    yield Sample(make(2, 3, 4, 8), make(1, 3, 5, 8), make(3, 5, 8), None, None, False, 0.3, 0.0)
    yield Sample(*_qkv(make, cols=11), None, _state(), False, 0.3, 0.4)
    yield Sample(*_qkv(make, lead=(3,)), None, _state(), True, 0.3, 0.4)
    yield Sample(*_qkv(make, lead=()), torch.ones(4, 5).bool().tril(), _state(), False, 0.3, 0.4)


def _levels(q, k, scale, mask=None):
    """The largest score of each row, and 1 over the sum of what the others' exponentials are of its own."""
    scores = q @ k.mT * scale + (0 if mask is None else mask)
    top = scores.amax(-1, keepdim=True)
    return torch.cat([top, 1 / (scores - top).exp().sum(-1, keepdim=True)], -1)


def _flash_attention_training(q, k, v, mask, state, is_causal, scale, p):
    return _flash_attention(q, k, v, mask, state, is_causal, scale, p), _levels(q, k, scale, mask)


@samples(
    "flash_attention_training", dtypes=FLOATS, ref=_flash_attention_training, grad=False, strides=False,
    tol=(1e-4, 1e-4),
)  # fmt: skip
def flash_attention_training(make):
    make = make.plain()
    yield Sample(*_qkv(make, out=6), None, None, False, 0.3, 0.0)
    yield Sample(*_qkv(make, out=6), make(4, 5), None, False, 0.3, 0.0)
    yield Sample(*_qkv(make, cols=11), None, _state(), False, 0.3, 0.4)


def _flash_attention_backward(grad, q, k, v, mask, state, levels, is_causal, scale, p):
    operands = [x.detach().requires_grad_() for x in (q, k, v)]
    with torch.enable_grad():
        return torch.autograd.grad(_flash_attention(*operands, mask, state, is_causal, scale, p), operands, grad)


@samples(
    "flash_attention_backward", dtypes=FLOATS, ref=_flash_attention_backward, grad=False, strides=False,
    tol=(1e-4, 1e-4),
)  # fmt: skip
def flash_attention_backward(make):
    added = make(4, 5, requires_grad=False)
    for lead, mask, state in (((2, 3), None, None), ((), None, None), ((2,), None, _state()), ((2, 3), added, None)):
        q, k, v = (x.detach() for x in _qkv(make, lead, out=6))
        levels = _levels(q, k, 0.3, mask)
        g = make(*lead, 4, 6, requires_grad=False)
        yield Sample(g, q, k, v, mask, state, levels, False, 0.3, 0.0 if state is None else 0.4)


@samples("attention_kept", dtypes=("int64",), ref=lambda state, shape, p: _kept(state, shape, p))
def attention_kept(make):
    yield Sample(_state(), (2, 3, 17), 0.3)
    yield Sample(_state(), (4, 8), 0.0)
    yield Sample(_state(), (4, 8), 1.0)


def _has_seed_and_block(results, *_, **__):
    assert results[0].shape == (2,)
    assert results[0][1] >= 0


@samples("attention_random_state", dtypes=("float32",), ref=None, check=_has_seed_and_block)
def attention_random_state(make):
    yield Sample(make(2, 3, 4, 8), make(2, 3, 5, 8), make(3, 5, 8))
