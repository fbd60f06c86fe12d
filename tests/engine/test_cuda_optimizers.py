"""Optimizer steps on emulated kernels: parameters, states and versions after several steps, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.cuda_emulation import AVAILABLE, Kernel
from tests.engine.test_cuda_kernels import FINE, Pair, draw

pytestmark = pytest.mark.skipif(not AVAILABLE, reason="needs g++")

SHAPES = [(3, 4), (5,), (), (2, 1, 3), (1,), (40, 7), (6,), (2, 2), (9,), (3,)]


def steps(pair: Pair, dtype: str, kept: int, take: Any, shapes: Any = tuple(SHAPES)) -> int:
    """Three steps on both engines, compared; how many kernels the emulated engine launched."""
    results = []
    for engine in (pair.plain, pair.device):
        params = [engine.from_numpy(draw(shape, dtype, i), requires_grad=True) for i, shape in enumerate(shapes)]
        states = [[engine.from_numpy(np.zeros_like(draw(shape, dtype))) for shape in shapes] for _ in range(kept)]
        before = Kernel.launches
        for turn in range(3):
            for i, param in enumerate(params):
                if i != 4:  # one parameter takes no part
                    param.grad = engine.from_numpy(draw(param.shape, dtype, 10 * turn + i))
            take(engine, params, states, turn)
        launched = Kernel.launches - before
        everything = [*params, *(s for state in states for s in state)]
        results.append([(engine.to_numpy(t), t.storage.version) for t in everything])
    for (a, version), (b, other) in zip(*results, strict=True):
        np.testing.assert_allclose(
            b.astype(np.float64), a.astype(np.float64), rtol=4 * FINE[dtype], atol=4 * FINE[dtype]
        )
        assert version == other
    return launched


@pytest.fixture(scope="module")
def pair() -> Pair:
    return Pair()


@pytest.mark.parametrize("dtype", FINE)
@pytest.mark.parametrize("options", [
    {"momentum": 0.0}, {"momentum": 0.9}, {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1},
    {"momentum": 0.5, "dampening": 0.3, "maximize": True},
], ids=str)  # fmt: skip
def test_sgd(pair: Pair, options: dict[str, Any], dtype: str) -> None:
    def take(engine: Any, params: Any, states: Any, turn: int) -> None:
        buffers = states[0] if options["momentum"] else [None] * len(params)
        full = {"dampening": 0.0, "weight_decay": 0.0, "nesterov": False, "maximize": False} | options
        engine.call("sgd_step", params, buffers, lr=0.1, first=tuple([turn == 0] * len(params)), **full)

    assert steps(pair, dtype, 1, take) == 3 * 2  # nine parameters, eight at a time


@pytest.mark.parametrize("dtype", FINE)
@pytest.mark.parametrize("options", [
    {}, {"weight_decay": 0.1}, {"weight_decay": 0.1, "decoupled_weight_decay": True}, {"amsgrad": True},
    {"maximize": True},
], ids=str)  # fmt: skip
def test_adam(pair: Pair, options: dict[str, Any], dtype: str) -> None:
    full = {"weight_decay": 0.0, "amsgrad": False, "maximize": False, "decoupled_weight_decay": False} | options

    def take(engine: Any, params: Any, states: Any, turn: int) -> None:
        largest = states[2] if full["amsgrad"] else [None] * len(params)
        engine.call(
            "adam_step", params, states[0], states[1], largest, lr=0.01, beta1=0.9, beta2=0.99, eps=1e-6,
            step=float(turn + 1), **full,
        )  # fmt: skip

    assert steps(pair, dtype, 3, take) == 3 * 2


def test_complex_parameters_take_the_general_way(pair: Pair) -> None:
    engine = pair.device
    param = engine.from_numpy(np.array([1 + 2j, 3j], np.complex64), requires_grad=True)
    param.grad = engine.from_numpy(np.array([1, 1j], np.complex64))
    before = Kernel.launches
    engine.call(
        "sgd_step", [param], [None], lr=1.0, momentum=0.0, dampening=0.0, weight_decay=0.0, nesterov=False,
        maximize=False, first=(),
    )  # fmt: skip
    assert Kernel.launches == before
    assert engine.to_numpy(param).tolist() == [2j, 2j]
