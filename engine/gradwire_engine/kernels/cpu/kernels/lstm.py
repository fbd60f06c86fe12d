"""Long short-term memory layers: all steps of some sequences in one call, with everything between two products."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....autograd.registry import compiled
from ....numerics.sequences import Walk
from ....numerics.windows import Ints
from ....ops.recurrent import products_of
from ....runtime.arrays import Array, Namespace
from ..elementary import tanh
from ..emitter import VECTOR
from ..native import Count, Element, Flag, In1, In2, Int1, Out2, dense, inline, native
from ..recurrence import (
    UNIT,
    Steps,
    matrix_product,
    multiply_states,
    pack_states,
    padded_width,
    panels_of,
    places_of,
    units,
)
from ..threads import split

F = np.float32


@inline
def _sigmoid(x: Element) -> Element:
    return F(0.5) + F(0.5) * tanh(F(0.5) * x)


# Loops begin at 0, over slices: then the compiler sees that no index is negative, and makes vectors of them.
# Those that copy and add are spelled out, like the walks of :mod:`.gru`: modules of kernels do not import each other.


@inline
def _bend(gate: Array, product: Array, bias: Array, sigmoid: bool) -> None:
    if sigmoid:
        for j in range(gate.size):
            gate[j] = _sigmoid(gate[j] + product[j] + bias[j])
    else:
        for j in range(gate.size):
            gate[j] = tanh(gate[j] + product[j] + bias[j])


@native()
def steps_there(
    times: Int1, starts: Int1, sizes: Int1, bias: In1, panels: In1, gates: Out2, now: Out2, cell: Out2, outputs: Out2,
    cells: Out2, start: Count, stop: Count,
) -> None:  # fmt: skip
    """``gates`` come with the inputs' part and leave as what the gates are; units of sequences from ``start`` on."""
    hidden, batch = now.shape[1], now.shape[0]
    width = padded_width(4 * hidden, VECTOR // 4)
    places = places_of(hidden, 4 * hidden, VECTOR // 4)
    packed, made = np.empty(UNIT * hidden, np.float32), np.empty((UNIT, width), np.float32)
    states = now.reshape(-1)
    for unit in range(start, stop):
        first = unit * UNIT
        for t in times:
            count = min(batch, sizes[t], first + UNIT) - first
            if count <= 0:
                continue
            pack_states(states, first * hidden, hidden, count, hidden, packed)
            multiply_states(count, packed, hidden, panels, 4 * hidden, places, made.reshape(-1), width)
            for b in range(count):
                row = starts[t] + first + b
                gate, product, c, h = gates[row], made[b], cell[first + b], now[first + b]
                _bend(gate[: 2 * hidden], product[: 2 * hidden], bias[: 2 * hidden], True)
                _bend(gate[2 * hidden : 3 * hidden], product[2 * hidden :], bias[2 * hidden :], False)
                _bend(gate[3 * hidden :], product[3 * hidden :], bias[3 * hidden :], True)
                enters, stays, candidate = gate[:hidden], gate[hidden : 2 * hidden], gate[2 * hidden : 3 * hidden]
                shows, kept, shown = gate[3 * hidden :], cells[row], outputs[row]
                for j in range(c.size):
                    c[j] = c[j] * stays[j] + enters[j] * candidate[j]
                for j in range(c.size):
                    kept[j] = c[j]
                for j in range(h.size):
                    h[j] = tanh(c[j]) * shows[j]
                for j in range(h.size):
                    shown[j] = h[j]


@inline
def _slope(out: Array, gate: Array, factor: Array, given: Array) -> None:
    for j in range(out.size):
        out[j] = gate[j] * (F(1) - gate[j]) * factor[j] * given[j]


@native()
def steps_back(
    times: Int1, starts: Int1, sizes: Int1, before: Int1, panels: In1, gates: In2, cells: In2, cx: In2, g: In2,
    g_cells: In2, has_g: Flag, has_g_cells: Flag, d_now: Out2, d_cell: Out2, d_gates: Out2, start: Count, stop: Count,
) -> None:  # fmt: skip
    """The gradients by what goes into the gates, and by the states at first."""
    hidden, batch = cx.shape[1], cx.shape[0]
    width = padded_width(hidden, VECTOR // 4)
    places = places_of(4 * hidden, hidden, VECTOR // 4)
    packed, made = np.empty(UNIT * 4 * hidden, np.float32), np.empty((UNIT, width), np.float32)
    bent, flat_gates = np.empty(hidden, np.float32), d_gates.reshape(-1)
    for unit in range(start, stop):
        first = unit * UNIT
        for t in times:
            count = min(batch, sizes[t], first + UNIT) - first
            if count <= 0:
                continue
            for b in range(count):
                row, s = starts[t] + first + b, before[t]
                gate, of_gate, dh, dc, c = gates[row], d_gates[row], d_now[first + b], d_cell[first + b], cells[row]
                came = cells[starts[s] + first + b] if s >= 0 and first + b < sizes[s] else cx[first + b]
                if has_g:
                    given = g[row]
                    for j in range(dh.size):
                        dh[j] += given[j]
                if has_g_cells:
                    given = g_cells[row]
                    for j in range(dc.size):
                        dc[j] += given[j]
                for j in range(bent.size):
                    bent[j] = tanh(c[j])
                enters, stays, candidate = gate[:hidden], gate[hidden : 2 * hidden], gate[2 * hidden : 3 * hidden]
                shows = gate[3 * hidden :]
                for j in range(dc.size):
                    dc[j] += shows[j] * (F(1) - bent[j] * bent[j]) * dh[j]
                _slope(of_gate[3 * hidden :], shows, bent, dh)
                _slope(of_gate[:hidden], enters, candidate, dc)
                _slope(of_gate[hidden : 2 * hidden], stays, came, dc)
                of_candidate = of_gate[2 * hidden : 3 * hidden]
                for j in range(of_candidate.size):
                    of_candidate[j] = (F(1) - candidate[j] * candidate[j]) * enters[j] * dc[j]
                for j in range(dc.size):
                    dc[j] *= stays[j]
            at = (starts[t] + first) * 4 * hidden
            pack_states(flat_gates, at, 4 * hidden, count, 4 * hidden, packed)
            multiply_states(count, packed, 4 * hidden, panels, hidden, places, made.reshape(-1), width)
            for b in range(count):
                dh, product = d_now[first + b], made[b]
                for j in range(dh.size):
                    dh[j] = product[j]


@compiled("lstm_layer", "lstm_layer_training")
def lstm_layer(
    xp: Namespace, x: Array, hx: Array, cx: Array, w_ih: Array, w_hh: Array, b_ih: Any, b_hh: Array, w_hr: Any,
    reverse: bool, batch_sizes: Ints | None,
) -> tuple[Array, Array, Array, Array, Array]:  # fmt: skip
    if x.dtype.char != "f" or w_hr is not None or not x.size or not hx.size:
        return NotImplemented
    walk, hidden = Walk(x.shape, batch_sizes, reverse), hx.shape[1]
    steps = Steps(walk)
    gates = matrix_product(x.reshape(walk.rows, x.shape[-1]), w_ih.T)
    bias = np.zeros(4 * hidden, x.dtype) if b_ih is None else b_ih + b_hh
    panels = panels_of(w_hh, True)
    now, cell = np.array(hx, order="C"), np.array(cx, order="C")
    outputs, cells = np.empty((walk.rows, hidden), x.dtype), np.empty((walk.rows, hidden), x.dtype)
    work = UNIT * 4 * hidden * hidden
    for times in steps.there(units(walk.batch) * work):
        split(
            steps_there, units(walk.batch), len(times) * work // 16, times, steps.starts, steps.sizes, bias, panels,
            gates, now, cell, outputs, cells,
        )  # fmt: skip
    return outputs.reshape(*x.shape[:-1], hidden), now, cell, gates, cells


@compiled("lstm_layer_backward")
def lstm_layer_backward(
    xp: Namespace, g: Any, g_state: Any, g_cell: Any, g_cells: Any, x: Array, hx: Array, cx: Array, w_ih: Array,
    w_hh: Array, w_hr: Any, output: Array, gates: Array, cells: Array, reverse: bool, batch_sizes: Ints | None,
    inputs: bool,
) -> tuple[Array, ...]:  # fmt: skip
    if gates.dtype.char != "f" or w_hr is not None or not x.size or not hx.size:
        return NotImplemented
    walk, hidden = Walk(x.shape, batch_sizes, reverse), hx.shape[1]
    steps = Steps(walk)
    panels = panels_of(w_hh, False)
    d_now = np.zeros(hx.shape, hx.dtype) if g_state is None else np.array(g_state, order="C")
    d_cell = np.zeros(cx.shape, cx.dtype) if g_cell is None else np.array(g_cell, order="C")
    d_gates = np.empty((walk.rows, 4 * hidden), gates.dtype)
    nothing = np.empty((0, 0), gates.dtype)
    given = nothing if g is None else dense(g).reshape(walk.rows, hidden)
    given_cells = nothing if g_cells is None else dense(g_cells)
    work = UNIT * 4 * hidden * hidden
    for times in steps.back(units(walk.batch) * work):
        split(
            steps_back, units(walk.batch), len(times) * work // 16, times, steps.starts, steps.sizes, steps.before,
            panels, dense(gates), dense(cells), dense(cx), given, given_cells, g is not None, g_cells is not None,
            d_now, d_cell, d_gates,
        )  # fmt: skip
    states = walk.before(np, output.reshape(walk.rows, hidden), hx)
    of_w_ih, of_w_hh, of_bias, _, of_input = products_of(matrix_product, d_gates, d_gates, x, states, w_ih, inputs)
    return (d_now, d_cell, of_w_ih, of_w_hh, of_bias, *of_input)
