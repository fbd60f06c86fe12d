"""Recurrent layers: one product and one kernel a step, there and back.

The products with the inputs are single ones for all steps, and so are those that give the weights' gradients. A step
takes its numbers from arrays of all steps, by row, so no step needs a view but those of its product. Nothing here
waits for the device or copies from the host: a graph holds a whole layer.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from ...numerics.sequences import Walk
from ...runtime.arrays import Array, Namespace
from ...runtime.cuda.launching import STRIDED_GRID, kernel
from ...runtime.cuda.registry import fused
from .channels import sum_of_columns
from .problem import aligned
from .products import multiply

Ints = tuple[int, ...] | None

ELEMENTS: Final = frozenset({"float32", "float64"})
"""Layers compute in these; half precision is converted before."""

UNITS: Final = 128
"""Threads of a block at most: a step is small, and many blocks share its latency."""


def _covers(*arrays: Array | None) -> bool:
    """Whether all are of one type that the kernels take, and none is empty."""
    given = [a for a in arrays if a is not None]
    first = given[0].dtype
    return first.name in ELEMENTS and all(a.dtype == first and a.size for a in given)


def _dense(xp: Namespace, x: Any) -> Any:
    """In row-major order, at an address that products take without a copy."""
    return x if x is None else aligned(xp.ascontiguousarray(x))


def _started(xp: Namespace, grad: Any, like: Any) -> Any:
    return xp.zeros(like.shape, like.dtype) if grad is None else grad.copy()


class _Steps:
    """How the kernels of a layer's steps are launched: the arguments that all have, and those of each."""

    def __init__(self, xp: Namespace, name: str, element: str, hidden: int, *common: Any) -> None:
        self._run = kernel(xp, name, "recurrent", element)
        self._common = common
        self._hidden = np.int64(hidden)
        threads = min(UNITS, -(-hidden // 32) * 32)
        self._block = (threads,)
        self._across = -(-hidden // threads)

    def run(self, b: int, *places: int) -> None:
        """One step of ``b`` sequences, whose rows are at these places."""
        numbers = [np.int64(place) for place in places]
        grid = (self._across, min(b, STRIDED_GRID))
        self._run(grid, self._block, (*self._common, *numbers, np.int64(b), self._hidden))


def _back(walk: Walk) -> Iterator[tuple[slice, int, int, int]]:
    """The rows of each step on the way back and how many they are; the first row of the step before it, and how many
    of its sequences have one there."""
    sizes = walk.sizes
    for t, (rows, b) in zip(walk.times_back, walk.back(), strict=True):
        if walk.reverse:
            yield rows, b, rows.stop, sizes[t + 1] if t + 1 < len(sizes) else 0
        elif t:
            yield rows, b, rows.start - sizes[t - 1], b
        else:
            yield rows, b, 0, 0


def _there(xp: Namespace, steps: _Steps, walk: Walk, state: Any, w_hh: Any, product: Any, coarse: bool) -> bool:
    """Take all steps; whether there were products for them."""
    weight = _dense(xp, w_hh).T
    for rows, b in walk.there():
        if multiply(xp, state[:b], weight, coarse, out=product[:b]) is NotImplemented:
            return False
        steps.run(b, rows.start)
    return True


def _gradients(
    xp: Namespace, steps: _Steps, walk: Walk, d_inputs: Any, d_gates: Any, x: Any, before: Any, w_ih: Any, w_hh: Any,
    d_state: Any, inputs: bool, coarse: bool,
) -> list[Any] | None:  # fmt: skip
    """Go back through all steps, each of which writes the gradient of the state before it to ``d_state``. The gradients
    for w_ih and w_hh, and those for the input in a list that may be empty; ``None`` where there are no products."""
    weight = _dense(xp, w_hh)
    for rows, b, origin, going in _back(walk):
        steps.run(b, rows.start, origin, going)
        if multiply(xp, d_gates[rows], weight, coarse, out=d_state[:b]) is NotImplemented:
            return None
    flat = x.reshape(len(before), x.shape[-1])
    pairs = [(d_inputs.T, flat), (d_gates.T, before), *([(d_inputs, w_ih)] if inputs else [])]
    found = []
    for a, b in pairs:
        made = multiply(xp, a, b, coarse)
        if made is NotImplemented:
            return None
        found.append(made)
    return [found[0], found[1], [made.reshape(x.shape) for made in found[2:]]]


# Long short-term memory


@fused("lstm_layer", "lstm_layer_training", products=True)
def lstm_layer(
    xp: Namespace, x: Array, hx: Array, cx: Array, w_ih: Array, w_hh: Array, b_ih: Array | None, b_hh: Array | None,
    w_hr: Array | None, reverse: bool, batch_sizes: Ints, *, coarse: bool,
) -> Any:  # fmt: skip
    if w_hr is not None or not _covers(x, hx, cx, w_ih, w_hh, b_ih, b_hh):
        return NotImplemented
    walk, hidden, dtype = Walk(x.shape, batch_sizes, reverse), hx.shape[1], x.dtype
    gates = multiply(xp, x.reshape(walk.rows, x.shape[-1]), w_ih.T, coarse)
    if gates is NotImplemented:
        return NotImplemented
    states, cells = xp.empty((walk.rows, hidden), dtype), xp.empty((walk.rows, hidden), dtype)
    now, cell, product = hx.copy(), cx.copy(), xp.empty((walk.batch, 4 * hidden), dtype)
    biases = _dense(xp, b_ih), _dense(xp, b_hh)
    steps = _Steps(xp, "lstm_step", dtype.name, hidden, gates, product, *biases, now, cell, states, cells)
    if not _there(xp, steps, walk, now, w_hh, product, coarse):
        return NotImplemented
    return states.reshape(*x.shape[:-1], hidden), now, cell, gates, cells


@fused("lstm_layer_backward", products=True)
def lstm_layer_backward(
    xp: Namespace, g: Array | None, g_state: Array | None, g_cell: Array | None, g_cells: Array | None, x: Array,
    hx: Array, cx: Array, w_ih: Array, w_hh: Array, w_hr: Array | None, output: Array, gates: Array, cells: Array,
    reverse: bool, batch_sizes: Ints, inputs: bool, *, coarse: bool,
) -> Any:  # fmt: skip
    if w_hr is not None or not _covers(g, g_state, g_cell, g_cells, x, hx, cx, w_ih, w_hh, output, gates, cells):
        return NotImplemented
    walk, hidden, dtype = Walk(x.shape, batch_sizes, reverse), hx.shape[1], gates.dtype
    d_gates, before = xp.empty((walk.rows, 4 * hidden), dtype), xp.empty((walk.rows, hidden), dtype)
    d_now, d_cell = _started(xp, g_state, hx), _started(xp, g_cell, cx)
    given = [_dense(xp, a) for a in (g, g_cells, gates, output, cells, hx, cx)]
    steps = _Steps(xp, "lstm_step_backward", dtype.name, hidden, *given, d_now, d_cell, d_gates, before)
    found = _gradients(xp, steps, walk, d_gates, d_gates, x, before, w_ih, w_hh, d_now, inputs, coarse)
    if found is None:
        return NotImplemented
    of_w_ih, of_w_hh, of_input = found
    return (d_now, d_cell, of_w_ih, of_w_hh, sum_of_columns(xp, d_gates), *of_input)


# Gated recurrent units


@fused("gru_layer", "gru_layer_training", products=True)
def gru_layer(
    xp: Namespace, x: Array, hx: Array, w_ih: Array, w_hh: Array, b_ih: Array | None, b_hh: Array | None,
    reverse: bool, batch_sizes: Ints, *, coarse: bool,
) -> Any:  # fmt: skip
    if not _covers(x, hx, w_ih, w_hh, b_ih, b_hh):
        return NotImplemented
    walk, hidden, dtype = Walk(x.shape, batch_sizes, reverse), hx.shape[1], x.dtype
    gates = multiply(xp, x.reshape(walk.rows, x.shape[-1]), w_ih.T, coarse)
    if gates is NotImplemented:
        return NotImplemented
    states, candidates = xp.empty((walk.rows, hidden), dtype), xp.empty((walk.rows, hidden), dtype)
    now, product = hx.copy(), xp.empty((walk.batch, 3 * hidden), dtype)
    biases = _dense(xp, b_ih), _dense(xp, b_hh)
    steps = _Steps(xp, "gru_step", dtype.name, hidden, gates, product, *biases, now, states, candidates)
    if not _there(xp, steps, walk, now, w_hh, product, coarse):
        return NotImplemented
    return states.reshape(*x.shape[:-1], hidden), now, gates, candidates


@fused("gru_layer_backward", products=True)
def gru_layer_backward(
    xp: Namespace, g: Array | None, g_state: Array | None, x: Array, hx: Array, w_ih: Array, w_hh: Array, output: Array,
    gates: Array, product: Array, reverse: bool, batch_sizes: Ints, inputs: bool, *, coarse: bool,
) -> Any:  # fmt: skip
    if not _covers(g, g_state, x, hx, w_ih, w_hh, output, gates, product):
        return NotImplemented
    walk, hidden, dtype = Walk(x.shape, batch_sizes, reverse), hx.shape[1], gates.dtype
    d_gates, d_inputs = xp.empty((walk.rows, 3 * hidden), dtype), xp.empty((walk.rows, 3 * hidden), dtype)
    before = xp.empty((walk.rows, hidden), dtype)
    past, beside = xp.zeros(hx.shape, dtype), _started(xp, g_state, hx)
    given = [_dense(xp, a) for a in (g, gates, output, product, hx)]
    steps = _Steps(
        xp, "gru_step_backward", dtype.name, hidden, *given, past, beside, d_gates, d_inputs, before
    )  # fmt: skip
    found = _gradients(xp, steps, walk, d_inputs, d_gates, x, before, w_ih, w_hh, past, inputs, coarse)
    if found is None:
        return NotImplemented
    of_w_ih, of_w_hh, of_input = found
    past += beside
    return (past, of_w_ih, of_w_hh, sum_of_columns(xp, d_inputs), sum_of_columns(xp, d_gates), *of_input)


# Elman's recurrence


@fused("rnn_layer", products=True)
def rnn_layer(
    xp: Namespace, x: Array, hx: Array, w_ih: Array, w_hh: Array, b_ih: Array | None, b_hh: Array | None, relu: bool,
    reverse: bool, batch_sizes: Ints, *, coarse: bool,
) -> Any:  # fmt: skip
    if not _covers(x, hx, w_ih, w_hh, b_ih, b_hh):
        return NotImplemented
    walk, hidden, dtype = Walk(x.shape, batch_sizes, reverse), hx.shape[1], x.dtype
    states = multiply(xp, x.reshape(walk.rows, x.shape[-1]), w_ih.T, coarse)
    if states is NotImplemented:
        return NotImplemented
    now, product = hx.copy(), xp.empty(hx.shape, dtype)
    biases = _dense(xp, b_ih), _dense(xp, b_hh)
    steps = _Steps(xp, "rnn_step", dtype.name, hidden, states, product, *biases, now, np.int32(relu))
    if not _there(xp, steps, walk, now, w_hh, product, coarse):
        return NotImplemented
    return states.reshape(*x.shape[:-1], hidden), now


@fused("rnn_layer_backward", products=True)
def rnn_layer_backward(
    xp: Namespace, g: Array | None, g_state: Array | None, x: Array, hx: Array, w_ih: Array, w_hh: Array, output: Array,
    relu: bool, reverse: bool, batch_sizes: Ints, inputs: bool, *, coarse: bool,
) -> Any:  # fmt: skip
    if not _covers(g, g_state, x, hx, w_ih, w_hh, output):
        return NotImplemented
    walk, hidden, dtype = Walk(x.shape, batch_sizes, reverse), hx.shape[1], output.dtype
    d_gates, before = xp.empty((walk.rows, hidden), dtype), xp.empty((walk.rows, hidden), dtype)
    d_now = _started(xp, g_state, hx)
    given = [_dense(xp, a) for a in (g, output, hx)]
    steps = _Steps(xp, "rnn_step_backward", dtype.name, hidden, *given, d_now, d_gates, before, np.int32(relu))
    found = _gradients(xp, steps, walk, d_gates, d_gates, x, before, w_ih, w_hh, d_now, inputs, coarse)
    if found is None:
        return NotImplemented
    of_w_ih, of_w_hh, of_input = found
    return (d_now, of_w_ih, of_w_hh, sum_of_columns(xp, d_gates), *of_input)
