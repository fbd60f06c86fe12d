"""Layers at sizes where kernels work in blocks, and their side effects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as nnf

from gradwire_engine.autograd.engine import Engine
from gradwire_engine.autograd.functional import F
from gradwire_engine.autograd.tensor import Tensor
from gradwire_engine.runtime.memory import Limits
from gradwire_protocol.errors import KernelError, LimitExceeded

Operation = Callable[..., Any]


def draw(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def classes(*shape: int) -> Any:
    return np.random.default_rng(0).integers(0, 7, shape)


LARGE: list[tuple[str, Operation, Operation, list[Any]]] = [
    (
        "convolution in several portions of images",
        lambda x, w, b: F.conv2d(x, w, b, 1, 1),
        lambda x, w, b: nnf.conv2d(x, w, b, 1, 1),
        [draw(5, 16, 40, 40), draw(8, 16, 3, 3), draw(8)],
    ),
    (
        "convolution whose one image exceeds the budget",
        lambda x, w: F.conv2d(x, w, None, 2, 3),
        lambda x, w: nnf.conv2d(x, w, None, 2, 3),
        [draw(2, 8, 96, 96), draw(40, 8, 7, 7)],
    ),
    (
        "depthwise convolution in portions of channels",
        lambda x, w: F.conv2d(x, w, None, 1, 1, 1, 12),
        lambda x, w: nnf.conv2d(x, w, None, 1, 1, 1, 12),
        [draw(2, 12, 150, 150), draw(12, 1, 3, 3)],
    ),
    (
        "depthwise convolution with a multiplier",
        lambda x, w: F.conv2d(x, w, None, 2, 1, 1, 12),
        lambda x, w: nnf.conv2d(x, w, None, 2, 1, 1, 12),
        [draw(2, 12, 60, 60), draw(24, 1, 3, 3)],
    ),
    (
        "maxima in portions of planes",
        lambda x: F.max_pool2d(x, 2),
        lambda x: nnf.max_pool2d(x, 2),
        [draw(4, 16, 64, 64)],
    ),
    (
        "overlapping maxima in portions of planes",
        lambda x: F.max_pool2d(x, 3, 2, 1),
        lambda x: nnf.max_pool2d(x, 3, 2, 1),
        [draw(4, 16, 64, 64)],
    ),
    (
        "layer norm in blocks of rows",
        lambda x, w, b: F.layer_norm(x, (300,), w, b),
        lambda x, w, b: nnf.layer_norm(x, (300,), w, b),
        [draw(700, 300), draw(300), draw(300)],
    ),
    (
        "root mean square norm in blocks of rows",
        lambda x, w: F.rms_norm(x, (300,), w),
        lambda x, w: nnf.rms_norm(x, (300,), w),
        [draw(700, 300), draw(300)],
    ),
    (
        "batch norm in tiles of channels",
        lambda x, w, b: F.batch_norm(x, None, None, w, b, True),
        lambda x, w, b: nnf.batch_norm(x, None, None, w, b, True),
        [draw(2, 12, 100, 100), draw(12), draw(12)],
    ),
    (
        "batch norm in tiles of samples",
        lambda x, w, b: F.batch_norm(x, None, None, w, b, True),
        lambda x, w, b: nnf.batch_norm(x, None, None, w, b, True),
        [draw(3000, 40), draw(40), draw(40)],
    ),
    (
        "group norm in blocks",
        lambda x, w, b: F.group_norm(x, 4, w, b),
        lambda x, w, b: nnf.group_norm(x, 4, w, b),
        [draw(4, 12, 100, 100), draw(12), draw(12)],
    ),
    (
        "cross entropy in blocks of rows",
        lambda x, y: F.cross_entropy(x, y),
        lambda x, y: nnf.cross_entropy(x, y),
        [draw(700, 300), classes(700)],
    ),
    (
        "attention in portions of heads",
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
        lambda q, k, v: nnf.scaled_dot_product_attention(q, k, v, is_causal=True),
        [draw(2, 4, 200, 16), draw(2, 4, 200, 16), draw(2, 4, 200, 16)],
    ),
]


@pytest.mark.parametrize(("ours", "theirs", "operands"), [case[1:] for case in LARGE], ids=[case[0] for case in LARGE])
def test_portions_do_not_show(ours: Operation, theirs: Operation, operands: list[Any]) -> None:
    engine = Engine()
    here = [engine.from_numpy(a, requires_grad=a.dtype.kind == "f") for a in operands]
    there = [torch.tensor(a).requires_grad_(a.dtype.kind == "f") for a in operands]
    result, expected = ours(*here), theirs(*there)
    np.testing.assert_allclose(engine.to_numpy(result), expected.detach().numpy(), rtol=2e-4, atol=2e-4)
    gradient = np.asarray(draw(*expected.shape) if expected.ndim else np.float32(1))
    expected.backward(torch.tensor(gradient))
    engine.call("backward", [result], [engine.from_numpy(gradient)])
    for mine, wanted in zip(here, there, strict=True):
        if wanted.grad is not None:
            assert mine.grad is not None
            scale = max(1.0, float(wanted.grad.abs().max()))
            np.testing.assert_allclose(engine.to_numpy(mine.grad), wanted.grad.numpy(), rtol=1e-3, atol=1e-4 * scale)


def running(engine: Engine, channels: int) -> tuple[Tensor, Tensor]:
    return engine.from_numpy(np.zeros(channels, np.float32)), engine.from_numpy(np.ones(channels, np.float32))


@pytest.mark.parametrize("name", ["batch_norm", "instance_norm"])
@pytest.mark.parametrize("momentum", [0.1, 0.5, 1.0])
def test_training_moves_running_statistics(name: str, momentum: float) -> None:
    engine = Engine()
    x = draw(4, 3, 5)
    mean, var = running(engine, 3)
    their_mean, their_var = torch.zeros(3), torch.ones(3)
    engine.call(name, engine.from_numpy(x), mean, var, None, None, True, momentum)
    getattr(nnf, name)(torch.tensor(x), their_mean, their_var, None, None, True, momentum)
    np.testing.assert_allclose(engine.to_numpy(mean), their_mean.numpy(), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(engine.to_numpy(var), their_var.numpy(), rtol=1e-5)


@pytest.mark.parametrize("name", ["batch_norm", "instance_norm"])
def test_evaluation_leaves_running_statistics(name: str) -> None:
    engine = Engine()
    mean, var = running(engine, 3)
    engine.call(name, engine.from_numpy(draw(4, 3, 5)), mean, var, None, None, False)
    assert not engine.to_numpy(mean).any()
    assert (engine.to_numpy(var) == 1).all()


def test_a_graph_recorded_in_evaluation_survives_a_training_step() -> None:
    engine = Engine()
    mean, var = running(engine, 3)
    x = engine.from_numpy(draw(4, 3), requires_grad=True)
    evaluated = engine.call("sum", engine.call("batch_norm", x, mean, var))
    engine.call("batch_norm", x, mean, var, None, None, True)
    engine.call("backward", [evaluated], [None])
    assert x.grad is not None


def test_the_gradient_of_a_singular_determinant_is_its_cofactors() -> None:
    engine = Engine()
    x = engine.from_numpy(np.array([[1.0, 2.0], [2.0, 4.0]]), requires_grad=True)
    engine.call("backward", [engine.call("det", x)], [None])
    assert x.grad is not None
    np.testing.assert_allclose(engine.to_numpy(x.grad), [[4, -2], [-2, 1]], atol=1e-12)


def test_a_singular_matrix_has_no_inverse() -> None:
    engine = Engine()
    with pytest.raises(KernelError, match=r"inverse.*[Ss]ingular"):
        engine.call("inverse", engine.from_numpy(np.zeros((2, 2))))


def test_einsum_is_refused_before_a_large_intermediate_is_made() -> None:
    engine = Engine(Limits(max_tensor_bytes=1 << 20))
    edge = engine.from_numpy(draw(80, 80))
    # In whatever order, a product of three dimensions comes up, though the result is a number.
    with pytest.raises(LimitExceeded, match="working memory of einsum"):
        engine.call("einsum", "ab,bc,ca,ad,bd,cd->", [edge] * 6)


def test_einsum_multiplies_the_cheapest_pair_first() -> None:
    engine = Engine(Limits(max_tensor_bytes=1 << 20))
    operands = [draw(2, 300), draw(300, 300), draw(300, 2)]
    result = engine.call("einsum", "ij,jk,kl->il", [engine.from_numpy(a) for a in operands])
    expected = operands[0] @ operands[1] @ operands[2]
    np.testing.assert_allclose(engine.to_numpy(result), expected, rtol=1e-3, atol=1e-3)


def test_a_convolution_with_a_huge_dilation_is_refused_before_padding() -> None:
    engine = Engine(Limits(max_tensor_bytes=1 << 24))
    x, w = engine.from_numpy(draw(1, 1, 4, 4)), engine.from_numpy(draw(1, 1, 2, 2))
    with pytest.raises(LimitExceeded):
        engine.call("convolution", x, w, (4, 4), (1, 1), (1 << 19, 1 << 19), (1 << 20, 1 << 20), 1)


def test_attention_keeps_its_weights_only_while_they_are_needed() -> None:
    engine = Engine()
    q = engine.from_numpy(draw(1, 1, 64, 8), requires_grad=True)
    before = engine.account.live
    engine.grad_enabled = False
    result = engine.call("scaled_dot_product_attention", q, q, q)
    assert engine.account.live - before == result.meta.nbytes
    engine.grad_enabled = True
    recorded = engine.call("scaled_dot_product_attention", q, q, q)
    assert engine.account.live - before == 2 * recorded.meta.nbytes + 64 * 64 * 4
