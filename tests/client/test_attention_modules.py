"""``torch.nn.attention``: stored hints, causal biases, and flex_attention beside PyTorch's."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch.nn.attention import bias as their_bias
from torch.nn.attention import flex_attention as theirs

import gradwire as gw
from gradwire.nn import attention
from gradwire.nn.attention import bias
from gradwire.nn.attention import flex_attention as ours

RNG = np.random.default_rng(3)
Q, K, V = (RNG.standard_normal(shape).astype("float32") for shape in ((2, 4, 6, 8), (2, 2, 9, 8), (2, 2, 9, 5)))


def causal(b, h, q, kv):
    return q >= kv


def window(b, h, q, kv):
    return (q - kv).abs() <= 2 + h


def nothing_for_the_first(b, h, q, kv):
    return (q > 0) & (kv >= 0)


def relative(score, b, h, q, kv):
    return score + (q - kv) * 0.1 * (h + 1)


def capped(score, b, h, q, kv):
    return 2 * (score / 2).tanh()


def dense(lib, flex, score_mod, mask_mod, dtype):
    """What attention comes to, with all of it written out: torch computes flex_attention by its own compiler."""
    q, k, v = (lib.tensor(x, dtype=dtype).requires_grad_() for x in (Q, K, V))
    place = [lib.arange(n).reshape([n if i == at else 1 for i in range(4)]) for at, n in enumerate((2, 4, 6, 9))]
    keys, values = k.repeat_interleave(2, 1), v.repeat_interleave(2, 1)
    scores = q @ keys.transpose(-2, -1) / math.sqrt(8)
    scores = scores if score_mod is None else score_mod(scores, *place)
    if mask_mod is not None:
        scores = scores.masked_fill(~mask_mod(*place), -math.inf)
    out = torch.nan_to_num(scores.softmax(-1), 0.0) @ values
    out.square().sum().backward()
    return [out, q.grad, k.grad, v.grad, scores.logsumexp(-1), scores.amax(-1)]


@pytest.mark.parametrize(
    ("score_mod", "mask_mod"),
    [(None, None), (relative, None), (None, causal), (capped, window), (None, nothing_for_the_first)],
)
def test_flex_attention_and_its_gradients(session, score_mod, mask_mod) -> None:
    wanted = dense(torch, theirs, score_mod, mask_mod, torch.float64)
    q, k, v = (gw.tensor(x, dtype=gw.float64).requires_grad_() for x in (Q, K, V))
    block = None if mask_mod is None else ours.create_block_mask(mask_mod, 2, 4, 6, 9, BLOCK_SIZE=4)
    aux = ours.AuxRequest(lse=True, max_scores=True)
    out, more = ours.flex_attention(q, k, v, score_mod, block, enable_gqa=True, return_aux=aux)
    out.square().sum().backward()
    for found, expected in zip([out, q.grad, k.grad, v.grad, *more], wanted, strict=True):
        if mask_mod is nothing_for_the_first and found is not out and found.ndim == 4:
            assert not found.isnan().any()
            continue
        np.testing.assert_allclose(found.detach().numpy(), expected.detach().numpy(), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("separate", [True, False])
@pytest.mark.parametrize("mask_mod", [causal, window])
def test_block_masks_are_pytorchs(session, mask_mod, separate) -> None:
    args = (mask_mod, 1, 3, 10, 13)
    mine = ours.create_block_mask(*args, device="cpu", BLOCK_SIZE=(4, 2), separate_full_blocks=separate)
    other = theirs.create_block_mask(*args, device="cpu", BLOCK_SIZE=(4, 2), separate_full_blocks=separate)
    assert ours.create_mask(*args).tolist() == theirs.create_mask(*args, device="cpu").tolist()
    for a, b in ((mine, other), (mine[0, 1:2], other[0, 1:2]), (mine._adjust(8, 6), other._adjust(8, 6))):
        assert a.shape == tuple(b.shape)
        assert a.numel() == b.numel()
        assert math.isclose(a.sparsity(), b.sparsity())
        assert a.to_dense().tolist() == b.to_dense().tolist()
        for name in ours.BlockMask._TENSOR_ATTRS:
            x, y = getattr(a, name), getattr(b, name)
            assert (x is None) == (y is None)
            if x is not None:
                assert x.dtype is gw.int32
                assert x.tolist() == y.tolist(), name
    assert mine.to_string() == other.to_string()
    assert repr(mine) == repr(other)
    with pytest.raises(RuntimeError, match="mask_mod"):
        ours.flex_attention(gw.ones(1, 3, 10, 2), gw.ones(1, 3, 13, 2), gw.ones(1, 3, 13, 2), block_mask=mine[0])
    assert len(gw.utils._pytree.tree_leaves(mine)) == len(ours.BlockMask._TENSOR_ATTRS)


def test_masks_are_put_together(session) -> None:
    for combine in ("and_masks", "or_masks"):
        mine = ours.create_mask(getattr(ours, combine)(causal, window), 1, 2, 5, 5)
        other = theirs.create_mask(getattr(theirs, combine)(causal, window), 1, 2, 5, 5, device="cpu")
        assert mine.tolist() == other.tolist()
        with pytest.raises(RuntimeError, match="function"):
            getattr(ours, combine)(3)
    scored = ours.create_mask(lambda s, b, h, q, k: s.where(q >= k, -math.inf), 1, 1, 3, 3)
    assert scored.tolist() == ours.create_mask(causal, 1, 1, 3, 3).tolist()


@pytest.mark.parametrize(
    "call",
    [
        lambda lib, f, x: f.flex_attention(x(1, 4, 3, 2), x(1, 2, 3, 2), x(1, 2, 3, 2)),
        lambda lib, f, x: f.flex_attention(x(1, 3, 3, 2), x(1, 2, 3, 2), x(1, 2, 3, 2), enable_gqa=True),
        lambda lib, f, x: f.flex_attention(x(2, 2, 3, 2), x(1, 2, 3, 2), x(1, 2, 3, 2)),
        lambda lib, f, x: f.flex_attention(x(1, 2, 3, 2), x(1, 2, 3, 3), x(1, 2, 3, 2)),
        lambda lib, f, x: f.flex_attention(x(2, 3, 2), x(2, 3, 2), x(2, 3, 2)),
        lambda lib, f, x: f.flex_attention(
            *[x(1, 2, 3, 2)] * 3, block_mask=f.create_block_mask(causal, 1, 1, 4, 4, device="cpu")
        ),
        lambda lib, f, x: f.create_block_mask(relative, 1, 1, 4, 4, device="cpu"),
        lambda lib, f, x: f.create_mask(lambda a: a, 1, 1, 4, 4, device="cpu"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_as_by_pytorch(session, call) -> None:
    with pytest.raises((ValueError, AssertionError, NotImplementedError)) as expected:
        call(torch, theirs, torch.ones)
    with pytest.raises(expected.type):
        call(gw, ours, gw.ones)


@pytest.mark.parametrize("make", ["causal_upper_left", "causal_lower_right"])
def test_causal_biases(session, make) -> None:
    mine, other = getattr(bias, make)(6, 9), getattr(their_bias, make)(6, 9)
    assert mine._materialize().tolist() == other._materialize().tolist()
    k, v = np.repeat(K, 2, 1), np.repeat(V, 2, 1)
    found = gw.nn.functional.scaled_dot_product_attention(*(gw.tensor(x) for x in (Q, k, v)), attn_mask=mine)
    expected = torch.nn.functional.scaled_dot_product_attention(*map(torch.tensor, (Q, k, v)), attn_mask=other)
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError):
        gw.nn.functional.scaled_dot_product_attention(*(gw.tensor(x) for x in (Q, k, v)), mine, is_causal=True)


def test_choices_of_kernels_are_stored() -> None:
    for lib in (torch, gw):
        kinds, backend = lib.backends.cuda, lib.nn.attention.SDPBackend
        before = lib.nn.attention._cur_sdpa_kernel_backends()
        with lib.nn.attention.sdpa_kernel([backend.MATH, backend.CUDNN_ATTENTION]):
            assert (kinds.math_sdp_enabled(), kinds.flash_sdp_enabled(), kinds.cudnn_sdp_enabled()) == (1, 0, 1)
            assert {int(b) for b in lib.nn.attention._cur_sdpa_kernel_backends()} == {0, 3}
        assert lib.nn.attention._cur_sdpa_kernel_backends() == before
        kinds.enable_flash_sdp(False)
        assert not kinds.flash_sdp_enabled()
        kinds.enable_flash_sdp(True)
        with pytest.raises(AssertionError):
            lib.nn.attention.sdpa_kernel("math").__enter__()
    assert {b.name: int(b) for b in attention.SDPBackend} == {
        name: int(value) for name, value in torch.nn.attention.SDPBackend.__members__.items()
    }
