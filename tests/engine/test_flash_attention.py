"""Attention that recomputes its weights in backward is PyTorch's, whatever the mask, and keeps no weights."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as nnf

from gradwire_engine.autograd.engine import Engine
from gradwire_engine.autograd.tensor import Tensor
from gradwire_engine.ops import attention
from gradwire_protocol.ops.attention import portion

Array = np.ndarray[Any, Any]
NAME = "scaled_dot_product_attention"
MASKS = ("none", "causal", "bool", "bool for each head", "bool that forbids a row all", "added", "added for each key")
TOLERANCE = {"float32": 2e-5, "float64": 1e-12}


@pytest.fixture
def recomputed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights of any size are recomputed."""
    monkeypatch.setattr(attention, "RECOMPUTED", 0)
    monkeypatch.setattr(attention, "RECOMPUTED_IF_CAUSAL", 0)


def draw(*shape: int, dtype: str = "float64", seed: int = 0) -> Array:
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(dtype)


def mask_for(kind: str, lead: tuple[int, ...], rows: int, cols: int, dtype: str) -> Array | None:
    random = np.random.default_rng(3)
    if kind in ("none", "causal"):
        return None
    if kind.startswith("added"):
        return draw(*((1, cols) if "key" in kind else (rows, cols)), dtype=dtype, seed=4)
    allowed = random.random((*lead, rows, cols) if "head" in kind else (rows, cols)) < 0.6
    allowed[..., 0] = True
    if "forbids" in kind:
        allowed[rows // 2] = False
    return allowed


def dropped(engine: Engine, shape: tuple[int, ...], p: float) -> Array | None:
    """What the next dropout of weights of this shape keeps, from NumPy's own generator: a block of words serves eight
    weights of a row."""
    if not p:
        return None
    first = engine.generator.offset
    before = [(first - 1) % 2**64, *[2**64 - 1 if first == 0 else 0] * 3]
    bits = np.random.Philox(counter=before, key=[engine.generator.seed, 0])
    rows, blocks = int(np.prod(shape[:-1])), -(-shape[-1] // 8)
    halves = bits.random_raw(rows * blocks * 4).view(np.uint32).reshape(rows, blocks * 8)[:, : shape[-1]]
    return (halves < round((1 - p) * 2**32)).reshape(shape) / (1 - p if p < 1 else 1)


def expected(q: Any, k: Any, v: Any, mask: Any, causal: bool, kept: Any) -> Any:
    """Attention with dropout in PyTorch's functions."""
    scores = q @ k.mT / q.shape[-1] ** 0.5
    if causal:
        mask = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf) if mask.dtype is torch.bool else scores + mask
    weights = torch.softmax(scores, -1)
    return (weights if kept is None else weights * torch.from_numpy(kept).to(weights.dtype)) @ v


def call(engine: Engine, operands: list[Tensor], mask: Array | None, p: float, causal: bool) -> Tensor:
    given = None if mask is None else engine.from_numpy(mask)
    made: Tensor = engine.call(NAME, *operands, given, p, causal)
    assert made.grad_fn is not None
    assert made.grad_fn.row.op.name == "flash_attention"
    return made


def check(lead: tuple[int, ...], rows: int, cols: int, kind: str, dtype: str, size: int = 8, wide: int = 6) -> None:
    arrays = [
        draw(*lead, n, m, dtype=dtype, seed=s) for s, (n, m) in enumerate(((rows, size), (cols, size), (cols, wide)))
    ]
    mask = mask_for(kind, lead, rows, cols, dtype)
    engine = Engine()
    ours = [engine.from_numpy(a, requires_grad=True) for a in arrays]
    theirs = [torch.tensor(a, requires_grad=True) for a in arrays]
    out = call(engine, ours, mask, 0.0, kind == "causal")
    wanted = nnf.scaled_dot_product_attention(
        *theirs, None if mask is None else torch.tensor(mask), 0.0, kind == "causal"
    )
    tol = TOLERANCE[dtype]
    np.testing.assert_allclose(engine.to_numpy(out), wanted.detach().numpy(), rtol=tol, atol=tol)
    gradient = draw(*out.shape, dtype=dtype, seed=9)
    engine.call("backward", [out], [engine.from_numpy(gradient)])
    wanted.backward(torch.tensor(gradient))
    for mine, other in zip(ours, theirs, strict=True):
        assert mine.grad is not None
        assert other.grad is not None
        np.testing.assert_allclose(engine.to_numpy(mine.grad), other.grad.numpy(), rtol=tol * 10, atol=tol * 10)


@pytest.mark.usefixtures("recomputed")
@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("kind", MASKS)
@pytest.mark.parametrize("rows, cols", [(1, 1), (4, 7), (7, 4), (90, 70), (600, 530)])
def test_values_and_gradients(kind: str, rows: int, cols: int, dtype: str) -> None:
    check((2, 3), rows, cols, kind, dtype)


@pytest.mark.usefixtures("recomputed")
@pytest.mark.parametrize("lead", [(), (4,), (2, 1, 3)])
@pytest.mark.parametrize("kind", ["causal", "bool for each head"])
def test_any_number_of_leading_dimensions(kind: str, lead: tuple[int, ...]) -> None:
    check(lead, 9, 11, kind, "float64")


@pytest.mark.usefixtures("recomputed")
@pytest.mark.parametrize("rows, cols, size, wide", [(0, 3, 4, 5), (3, 0, 4, 5), (3, 4, 0, 5), (3, 4, 5, 0)])
def test_empty_dimensions(rows: int, cols: int, size: int, wide: int) -> None:
    engine = Engine()
    shapes = ((2, rows, size), (2, cols, size), (2, cols, wide))
    ours = [engine.from_numpy(draw(*s), requires_grad=True) for s in shapes]
    theirs = [torch.tensor(draw(*s), requires_grad=True) for s in shapes]
    out = engine.call(NAME, *ours, None, 0.0, False, 0.5)
    wanted = nnf.scaled_dot_product_attention(*theirs, scale=0.5)
    np.testing.assert_allclose(engine.to_numpy(out), wanted.detach().numpy())
    engine.call("backward", [engine.call("sum", out)], [None])
    wanted.sum().backward()
    for mine, other in zip(ours, theirs, strict=True):
        assert mine.grad is not None
        assert other.grad is not None
        np.testing.assert_allclose(engine.to_numpy(mine.grad), other.grad.numpy(), atol=1e-12)


@pytest.mark.usefixtures("recomputed")
def test_keys_that_several_queries_share() -> None:
    engine = Engine()
    shapes = ((2, 4, 5, 8), (2, 2, 6, 8), (2, 2, 6, 8))
    ours = [engine.from_numpy(draw(*s), requires_grad=True) for s in shapes]
    theirs = [torch.tensor(draw(*s), requires_grad=True) for s in shapes]
    out = engine.call(NAME, *ours, None, 0.0, False, None, True)
    wanted = nnf.scaled_dot_product_attention(*theirs, enable_gqa=True)
    engine.call("backward", [engine.call("sum", out * out)], [None])
    (wanted * wanted).sum().backward()
    for mine, other in zip(ours, theirs, strict=True):
        assert mine.grad is not None
        assert other.grad is not None
        np.testing.assert_allclose(engine.to_numpy(mine.grad), other.grad.numpy(), rtol=1e-9, atol=1e-12)


@pytest.mark.usefixtures("recomputed")
def test_rows_hidden_by_a_large_number_keep_their_uniform_weights() -> None:
    """-1e9 plus the logarithm of a sum is -1e9 in float32: one number would lose that the weights add up to 1."""
    arrays = [draw(1, 1, 6, 4, dtype="float32", seed=s) for s in range(3)]
    mask = np.zeros((6, 6), np.float32)
    mask[3] = -1e9
    engine = Engine()
    ours = [engine.from_numpy(a, requires_grad=True) for a in arrays]
    theirs = [torch.tensor(a, requires_grad=True) for a in arrays]
    out = call(engine, ours, mask, 0.0, False)
    wanted = expected(*theirs, torch.tensor(mask), False, None)
    engine.call("backward", [engine.call("sum", out)], [None])
    wanted.sum().backward()
    assert ours[2].grad is not None
    assert theirs[2].grad is not None
    np.testing.assert_allclose(engine.to_numpy(ours[2].grad), theirs[2].grad.numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("p", [0.3, 0.5, 1.0])
@pytest.mark.parametrize("kind", ["none", "causal", "bool", "added"])
def test_dropout_and_second_derivatives(kind: str, p: float) -> None:
    arrays = [draw(2, 3, n, m, seed=s) for s, (n, m) in enumerate(((9, 8), (11, 8), (11, 6)))]
    mask, engine = mask_for(kind, (2, 3), 9, 11, "float64"), Engine(seed=5)
    kept = dropped(engine, (2, 3, 9, 11), p)
    ours = [engine.from_numpy(a, requires_grad=True) for a in arrays]
    theirs = [torch.tensor(a, requires_grad=True) for a in arrays]
    out = call(engine, ours, mask, p, kind == "causal")
    wanted = expected(*theirs, None if mask is None else torch.tensor(mask), kind == "causal", kept)
    np.testing.assert_allclose(engine.to_numpy(out), wanted.detach().numpy(), atol=1e-12)
    seed = draw(*out.shape, seed=9)
    g, their_g = engine.from_numpy(seed, requires_grad=True), torch.tensor(seed, requires_grad=True)
    plain = engine.call("grad", [out], ours, [engine.from_numpy(seed)], True)
    first = engine.call("grad", [out], ours, [g], True, True)
    their_first = torch.autograd.grad(wanted, theirs, their_g, create_graph=True)
    for a, b, c in zip(plain, first, their_first, strict=True):
        np.testing.assert_allclose(engine.to_numpy(a), c.detach().numpy(), atol=1e-11)
        np.testing.assert_allclose(engine.to_numpy(b), c.detach().numpy(), atol=1e-11)
    seeds = [draw(*x.shape, seed=7) for x in first]
    second = engine.call("grad", list(first), [*ours, g], [engine.from_numpy(x) for x in seeds])
    their_second = torch.autograd.grad(their_first, [*theirs, their_g], [torch.tensor(x) for x in seeds])
    for a, b in zip(second, their_second, strict=True):
        np.testing.assert_allclose(engine.to_numpy(a), b.numpy(), atol=1e-10)


@pytest.mark.usefixtures("recomputed")
def test_second_derivatives_where_a_row_sees_nothing() -> None:
    engine = Engine()
    x = engine.from_numpy(draw(3, 4), requires_grad=True)
    mask = np.array([[True, True, False], [False, False, False], [True, True, True]])
    out = call(engine, [x, x, x], mask, 0.0, False)
    (first,) = engine.call("grad", [engine.call("sum", out * out)], [x], [None], True, True)
    (second,) = engine.call("grad", [engine.call("sum", first * first)], [x], [None])
    assert np.isfinite(engine.to_numpy(second)).all()


def test_dropout_drops_as_many_weights_as_it_says() -> None:
    engine = Engine(seed=1)
    q = engine.from_numpy(np.zeros((4, 64, 8), np.float32), requires_grad=True)
    k = engine.from_numpy(np.zeros((4, 500, 8), np.float32))
    out = engine.to_numpy(engine.call(NAME, q, k, engine.from_numpy(np.ones((4, 500, 1), np.float32)), None, 0.25))
    assert abs(out.mean() - 1) < 0.01
    assert abs(out.std() - (0.25 / 0.75 / 500) ** 0.5) < 0.003
    assert len(np.unique(out)) > 50


def test_a_mask_that_needs_a_gradient_gets_one() -> None:
    engine = Engine()
    q = engine.from_numpy(draw(3, 5, 4))
    mask = engine.from_numpy(draw(5, 5, seed=2), requires_grad=True)
    out = engine.call(NAME, q, q, q, mask, 0.2)
    engine.call("backward", [engine.call("sum", out * out)], [None])
    assert mask.grad is not None
    assert engine.to_numpy(mask.grad).any()


@pytest.mark.usefixtures("recomputed")
@pytest.mark.parametrize("dropout_p", [0.0, 0.5])
def test_a_node_keeps_numbers_per_row_and_no_weights(dropout_p: float) -> None:
    engine = Engine()
    q = engine.from_numpy(draw(1, 1, 64, 8, dtype="float32"), requires_grad=True)
    before = engine.account.live
    made = call(engine, [q, q, q], None, dropout_p, False)
    assert engine.account.live - before == made.meta.nbytes + 64 * 2 * 4 + (16 if dropout_p else 0)


def test_small_weights_are_kept_and_large_ones_are_not() -> None:
    engine = Engine()
    for rows, causal, name in ((64, True, "attention"), (724, False, "attention"), (725, True, "flash_attention")):
        q = engine.from_numpy(np.ones((rows, 2), np.float32), requires_grad=True)
        node = engine.call(NAME, q, q, q, None, 0.0, causal).grad_fn
        assert node is not None
        assert node.row.op.name == name


@pytest.mark.usefixtures("recomputed")
@pytest.mark.parametrize("kind", ["none", "causal", "added for each key"])
def test_memory_grows_with_rows_and_not_with_weights(kind: str) -> None:
    engine, rows = Engine(), 3000
    mask = mask_for(kind, (), rows, rows, "float32")
    q = engine.from_numpy(draw(1, 2, rows, 16, dtype="float32"), requires_grad=True)
    tracemalloc.start()
    try:
        out = call(engine, [q, q, q], mask, 0.1, kind == "causal")
        engine.call("backward", [engine.call("sum", out)], [None])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    matrices, high = portion(rows, rows, "cpu")
    assert peak < 12 * q.meta.nbytes + 8 * 4 * matrices * high * rows
    assert peak < 2 * rows * rows * 4 / 4
