"""Compiled recurrent layers against the NumPy kernels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from gradwire_engine.runtime import deadline
from gradwire_protocol.errors import TimeExceeded
from tests.engine.compiled_kernels import close, compiled, declines, kernels, plain, same_bits_for_any_threads

__all__ = ["kernels"]

pytestmark = pytest.mark.timeout(900)  # where nothing is in the cache, the first test waits for all kernels

GENERATOR = np.random.default_rng(9)

SIZES: dict[str, tuple[Any, ...]] = {
    # steps, sequences, inputs, hidden, sizes of a packed sequence, reverse, biases
    "small": (5, 3, 4, 6, None, False, True),
    "no biases": (4, 11, 4, 17, None, False, False),
    "reverse": (4, 11, 4, 17, None, True, True),
    "packed": (4, 11, 3, 20, (11, 9, 8, 1), False, True),
    "packed, reverse": (4, 9, 3, 5, (9, 8, 3, 1), True, True),
    "wider than a panel": (3, 20, 8, 70, None, False, True),
    "one sequence": (6, 1, 8, 33, None, False, True),
}
LAYERS = {"rnn": 1, "gru": 3, "lstm": 4}


def _numbers(*shape: int) -> Any:
    return (GENERATOR.standard_normal(shape) * 0.3).astype("float32")


def _layer(kind: str, size: tuple[Any, ...], relu: bool = False) -> tuple[Any, ...]:
    """The arguments of a layer."""
    steps, batch, inputs, hidden, sizes, reverse, biases = size
    gates = LAYERS[kind] * hidden
    x = _numbers(steps, batch, inputs) if sizes is None else _numbers(sum(sizes), inputs)
    states = [_numbers(batch, hidden) for _ in range(2 if kind == "lstm" else 1)]
    both = [_numbers(gates), _numbers(gates)] if biases else [None, None]
    extra: list[Any] = [None] if kind == "lstm" else [relu] if kind == "rnn" else []
    return (x, *states, _numbers(gates, inputs), _numbers(gates, hidden), *both, *extra, reverse, sizes)


def _backward(kind: str, arguments: tuple[Any, ...], results: Any, given: str) -> tuple[Any, ...]:
    """The arguments of its backward; ``given`` names the results that received a gradient."""

    def like(result: Any, name: str) -> Any:
        return _numbers(*result.shape) if name in given else None

    *_, reverse, sizes = arguments
    tail = (reverse, sizes, True)
    if kind == "lstm":
        x, hx, cx, w_ih, w_hh, *_ = arguments
        out, h, c, gates, cells = results
        grads = like(out, "o"), like(h, "h"), like(c, "c"), like(cells, "k")
        return *grads, x, hx, cx, w_ih, w_hh, None, out, gates, cells, *tail
    x, hx, w_ih, w_hh, *_ = arguments
    out, h, *kept = results
    both = like(out, "o"), like(h, "h")
    return *both, x, hx, w_ih, w_hh, out, *kept, *([arguments[-3]] if kind == "rnn" else []), *tail


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("kind", "relu"), [("rnn", False), ("rnn", True), ("gru", False), ("lstm", False)])
def test_layers_and_their_gradients_agree_with_numpy(kind: str, relu: bool, size: str) -> None:
    arguments = _layer(kind, SIZES[size], relu)
    results = plain(f"{kind}_layer", *arguments)
    close(compiled(f"{kind}_layer", *arguments), results, 3)
    for given in ("o", "h", "ohck"):
        backward = _backward(kind, arguments, results, given)
        name = f"{kind}_layer_backward"
        close(compiled(name, *backward), plain(name, *backward), 3)


@pytest.mark.parametrize("kind", LAYERS)
def test_threads_change_no_bit(kind: str) -> None:
    arguments = _layer(kind, (12, 37, 40, 64, None, False, True))
    same_bits_for_any_threads(lambda: compiled(f"{kind}_layer", *arguments))
    backward = _backward(kind, arguments, plain(f"{kind}_layer", *arguments), "oh")
    same_bits_for_any_threads(lambda: compiled(f"{kind}_layer_backward", *backward))


@pytest.mark.parametrize("kind", LAYERS)
def test_a_sequence_in_a_larger_batch_gets_the_same_bits(kind: str) -> None:
    x, *rest = _layer(kind, (5, 12, 7, 19, None, False, True))
    states = 2 if kind == "lstm" else 1
    one = compiled(f"{kind}_layer", x[:, 3:4], *(h[3:4] for h in rest[:states]), *rest[states:])[1]
    close(one, compiled(f"{kind}_layer", x, *rest)[1][3:4])


@pytest.fixture
def short_calls(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Calls of a kernel that take one step each."""
    monkeypatch.setattr("gradwire_engine.kernels.cpu.recurrence.CALL_PRODUCTS", 1)
    yield
    deadline.end()


@pytest.mark.parametrize("kind", LAYERS)
def test_calls_may_end_after_any_step(kind: str, short_calls: None) -> None:
    arguments = _layer(kind, SIZES["packed"])
    close(compiled(f"{kind}_layer", *arguments), plain(f"{kind}_layer", *arguments), 3)


def test_a_layer_ends_when_the_frame_has_no_time_left(short_calls: None, monkeypatch: pytest.MonkeyPatch) -> None:
    deadline.begin(1)
    now = deadline.monotonic()
    monkeypatch.setattr(deadline, "monotonic", lambda: now + 2)
    with pytest.raises(TimeExceeded, match="recurrent layer"):
        compiled("lstm_layer", *_layer("lstm", SIZES["small"]))


def test_what_they_are_not_for_is_left_to_numpy() -> None:
    arguments = list(_layer("lstm", SIZES["small"]))
    assert declines("lstm_layer", *(a.astype("float64") if hasattr(a, "astype") else a for a in arguments))
    arguments[7] = _numbers(2, 6)
    assert declines("lstm_layer", *arguments)  # with a projection
