"""Segments on a real GPU: graphs give the same bits as single launches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from gradwire_engine.runtime.backends import Backends, DevicePool
from gradwire_engine.runtime.cuda.graphs import Graphs
from gradwire_engine.runtime.random import Generator

LIMIT = 1 << 30


def _mlp(fused: Any, xp: Any) -> Callable[[Any], list[Any]]:
    """A hidden layer, the loss, and backward to both weights, by the engine's kernels."""

    def run(given: Any) -> list[Any]:
        x, w1, b1, w2, target = given
        call = {name: fused[name].run for name in fused}
        hidden = call["linear"](xp, x, w1, b1, coarse=False)
        active = call["gelu"](xp, hidden, "none")
        scores = call["matmul"](xp, active, w2, coarse=False)
        loss, logs = call["cross_entropy"](xp, scores, target, None, -100, "mean", 0.0)
        one = xp.ones((), np.float32)
        g = call["cross_entropy_backward"](xp, one, logs, target, None, -100, True, 0.0)
        g_w2 = call["matmul"](xp, active.T, g, coarse=False)
        through = call["gelu_backward"](xp, call["matmul"](xp, g, w2.T, coarse=False), hidden, "none")
        g_w1 = call["matmul"](xp, through.T, x, coarse=False)
        return [loss, g_w1, g_w2]

    return run


def checks(device: str) -> Iterator[tuple[str, Callable[[], None]]]:
    """(label, check) of all segments."""
    yield "graphs: an MLP's forward and backward", lambda: _same_bits(device)
    yield "graphs: dropout draws on", lambda: _dropout(device)


def _backend(device: str) -> Any:
    return Backends(pool=DevicePool(LIMIT))[device]


def _same_bits(device: str) -> None:
    backend = _backend(device)
    xp, random = backend.xp, np.random.default_rng(0)
    shapes = ((64, 48), (96, 48), (96,), (96, 10))
    graphs, function = Graphs(xp, LIMIT), _mlp(backend.fused, xp)
    fixed = [xp.asarray(random.standard_normal(s).astype(np.float32)) for s in shapes[1:]]
    for turn in range(6):
        batch = xp.asarray(random.standard_normal(shapes[0]).astype(np.float32))
        target = xp.asarray(random.integers(0, 10, 64))
        inputs = [batch, *fixed, target]
        expected = [xp.asnumpy(a) for a in function(inputs)]
        found = [xp.asnumpy(a) for a in graphs.run("mlp", function, inputs)]
        for mine, wanted in zip(found, expected, strict=True):
            assert mine.tobytes() == wanted.tobytes(), f"turn {turn}: {mine} instead of {wanted}"
        fixed[0] -= 0.01  # in place, as an optimizer would
    assert graphs.outcomes["graph"] >= 3, f"no graph was launched: {dict(graphs.outcomes)}"


def _dropout(device: str) -> None:
    backend = _backend(device)
    xp = backend.xp
    plain, random, graphs = Generator(3), Generator(3), Graphs(xp, LIMIT)
    x = xp.ones((1000,), np.float32)
    drop = backend.fused["dropout"].run
    for _ in range(5):
        expected = [xp.asnumpy(a) for a in drop(xp, plain, x, 0.3, True)]
        found = graphs.run("dropout", lambda given: list(drop(xp, random, given[0], 0.3, True)), [x], random=random)
        for mine, wanted in zip([xp.asnumpy(a) for a in found], expected, strict=True):
            np.testing.assert_array_equal(mine, wanted)
        del found
    assert plain.get_state() == random.get_state()
    assert graphs.outcomes["graph"] >= 2, f"no graph was launched: {dict(graphs.outcomes)}"
