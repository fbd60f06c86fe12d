"""Recurrent layers of the CUDA kernels on a CPU, against the NumPy kernels: results, saved values and gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gradwire_engine import ops as _ops  # noqa: F401  (fills the registry)
from gradwire_engine.autograd.registry import row
from gradwire_engine.kernels.cuda import load
from gradwire_engine.runtime import deadline
from gradwire_engine.runtime.backends import NumpyBackend
from gradwire_protocol.errors import Cancelled
from tests import strict_backend
from tests.cuda_emulation import AVAILABLE, EmulatedBackend, Kernel
from tests.strict_backend import StrictArray

pytestmark = pytest.mark.skipif(not AVAILABLE, reason="needs g++")

TOLERANCES = {"float32": (1e-4, 2e-5), "float64": (1e-8, 1e-9)}
GATES = {"lstm": 4, "gru": 3, "rnn": 1}

SIZES: dict[str, tuple[Any, ...]] = {
    # steps, sequences, inputs, hidden, sizes of a packed sequence, reverse, biases
    "small": (5, 3, 4, 6, None, False, True),
    "no biases": (4, 11, 4, 17, None, False, False),
    "reverse": (4, 11, 4, 17, None, True, True),
    "packed": (4, 11, 3, 20, (11, 9, 8, 1), False, True),
    "packed, reverse": (4, 9, 3, 5, (9, 8, 3, 1), True, True),
    "packed evenly": (3, 2, 3, 8, (2, 2, 2), True, False),
    "more than a block": (3, 5, 8, 150, None, False, True),
    "one of all": (1, 1, 1, 1, None, False, True),
}


class Layer:
    """A layer with random numbers, and what a run of it makes."""

    def __init__(self, kind: str, size: str, dtype: str = "float32", relu: bool = False) -> None:
        self.kind, self.random, self.dtype = kind, np.random.default_rng(9), dtype
        self.steps, batch, inputs, hidden, sizes, reverse, biases = SIZES[size]
        gates = GATES[kind] * hidden
        x = self.draw(self.steps, batch, inputs) if sizes is None else self.draw(sum(sizes), inputs)
        states = [self.draw(batch, hidden) for _ in range(2 if kind == "lstm" else 1)]
        both = [self.draw(gates), self.draw(gates)] if biases else [None, None]
        extra: list[Any] = [None] if kind == "lstm" else [relu] if kind == "rnn" else []
        self.operands = [x, *states, self.draw(gates, inputs), self.draw(gates, hidden)]
        self.arguments = [*self.operands, *both, *extra, reverse, sizes]

    def draw(self, *shape: int) -> Any:
        return (self.random.standard_normal(shape) * 0.5).astype(self.dtype)

    def backward(self, results: Any, given: str, inputs: bool) -> list[Any]:
        """The arguments of its backward; ``given`` names the results that have a gradient."""

        def like(result: Any, name: str) -> Any:
            return self.draw(*result.shape) if name in given else None

        out, h, *kept = results
        tail = [*self.arguments[-2:], inputs]
        if self.kind == "lstm":
            c, gates, cells = kept
            grads = [like(out, "o"), like(h, "h"), like(c, "c"), like(cells, "k")]
            return [*grads, *self.operands, None, out, gates, cells, *tail]
        extra = [self.arguments[-3]] if self.kind == "rnn" else []
        return [like(out, "o"), like(h, "h"), *self.operands, out, *kept, *extra, *tail]


def plain(name: str, arguments: list[Any]) -> Any:
    return row(name).kernel(NumpyBackend().xp, *arguments)


def emulated(name: str, arguments: list[Any]) -> Any:
    given = [StrictArray(a) if isinstance(a, np.ndarray) else a for a in arguments]
    copies = [None if a is None else np.copy(a) if isinstance(a, np.ndarray) else a for a in arguments]
    found = load()[name].run(EmulatedBackend().xp, *given, coarse=False)
    for before, after in zip(copies, arguments, strict=True):
        assert not isinstance(after, np.ndarray) or np.array_equal(before, after), "an operand was written to"
    return found if found is NotImplemented else [a._array for a in found]


def close(found: Any, wanted: Any) -> None:
    assert len(found) == len(wanted)
    for i, (a, b) in enumerate(zip(found, wanted, strict=True)):
        rtol, atol = TOLERANCES[b.dtype.name]
        assert (a.dtype, a.shape) == (b.dtype, b.shape), i
        np.testing.assert_allclose(a, b, rtol=rtol, atol=atol, err_msg=f"result {i}")


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("kind", "relu"), [("lstm", False), ("gru", False), ("rnn", False), ("rnn", True)])
def test_layers_and_their_gradients_agree_with_numpy(kind: str, relu: bool, size: str, dtype: str) -> None:
    layer = Layer(kind, size, dtype, relu)
    results = plain(f"{kind}_layer", layer.arguments)
    before = Kernel.launches
    close(emulated(f"{kind}_layer", layer.arguments), results)
    assert Kernel.launches - before == layer.steps  # beside the products
    for given, inputs in (("o", True), ("h", False), ("ohck", True)):
        backward = layer.backward(results, given, inputs)
        name = f"{kind}_layer_backward"
        before = Kernel.launches
        close(emulated(name, backward), plain(name, backward))
        assert Kernel.launches - before == layer.steps + 2 * (2 if kind == "gru" else 1)


@pytest.mark.parametrize("size", ["small", "packed, reverse"])
@pytest.mark.parametrize("kind", GATES)
def test_a_graph_holds_a_layer(kind: str, size: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was launched while a stream captured, launched again, follows the operands."""
    layer = Layer(kind, size)
    backward = layer.backward(plain(f"{kind}_layer", layer.arguments), "ohc", True)
    for name, arguments in ((f"{kind}_layer", layer.arguments), (f"{kind}_layer_backward", backward)):
        launches: list[Any] = []
        monkeypatch.setattr(strict_backend, "LAUNCHES", launches)
        found = emulated(name, arguments)
        monkeypatch.setattr(strict_backend, "LAUNCHES", None)
        for array in arguments:
            if isinstance(array, np.ndarray):
                array *= 0.75
        for launch in launches:
            launch()
        close(found, plain(name, arguments))


@pytest.mark.parametrize("kind", GATES)
def test_operands_may_lie_otherwise(kind: str) -> None:
    """Sequences first, weights by columns, states and gradients that are expanded."""
    layer = Layer(kind, "no biases")
    states = len(layer.operands) - 3
    for i, a in enumerate(layer.operands):
        if i == 0:
            layer.operands[i] = np.ascontiguousarray(a.swapaxes(0, 1)).swapaxes(0, 1)
        elif i <= states:
            layer.operands[i] = np.broadcast_to(a[:1], a.shape)
        else:
            layer.operands[i] = np.asfortranarray(a)
    layer.arguments[: len(layer.operands)] = layer.operands
    results = plain(f"{kind}_layer", layer.arguments)
    close(emulated(f"{kind}_layer", layer.arguments), results)
    backward = layer.backward(results, "o", True)
    backward[0] = np.broadcast_to(backward[0][:, :1, :1], backward[0].shape)
    close(emulated(f"{kind}_layer_backward", backward), plain(f"{kind}_layer_backward", backward))


@pytest.mark.parametrize("kind", GATES)
def test_what_is_not_covered_is_left_to_the_general_way(kind: str) -> None:
    layer = Layer(kind, "small")
    for unlike in (layer.operands[-1].astype("float64"), layer.operands[-1].astype("float16")):
        arguments = list(layer.arguments)
        arguments[len(layer.operands) - 1] = unlike
        assert emulated(f"{kind}_layer", arguments) is NotImplemented
    nothing = [a[:, :0] if i == 0 else a for i, a in enumerate(layer.arguments)]
    assert emulated(f"{kind}_layer", nothing) is NotImplemented
    if kind == "lstm":
        projected = list(layer.arguments)
        projected[7] = layer.draw(2, 6)
        assert emulated("lstm_layer", projected) is NotImplemented


@pytest.mark.parametrize("kind", GATES)
def test_a_layer_stops_when_its_frame_is_cancelled(kind: str) -> None:
    layer = Layer(kind, "small")
    deadline.begin(0).cancel()
    try:
        with pytest.raises(Cancelled):
            emulated(f"{kind}_layer", layer.arguments)
    finally:
        deadline.end()
