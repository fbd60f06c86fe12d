"""Gated recurrent units, and Elman's recurrence: as :mod:`.lstm`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ....autograd.registry import compiled
from ....numerics.sequences import Walk
from ....numerics.windows import Ints
from ....ops.recurrent import products_of
from ....runtime.arrays import Array, Namespace
from ..elementary import tanh
from ..emitter import VECTOR
from ..native import Count, Flag, In1, In2, Int1, Out2, dense, inline, native
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
def _sum_bent(gate: Array, product: Array, sigmoid: bool) -> None:
    if sigmoid:
        for j in range(gate.size):
            gate[j] = F(0.5) + F(0.5) * tanh(F(0.5) * (gate[j] + product[j]))
    else:
        for j in range(gate.size):
            gate[j] = tanh(gate[j] + product[j])


@inline
def _copied(source: Array, target: Array) -> None:
    for j in range(target.size):
        target[j] = source[j]


@inline
def _added(more: Array, target: Array) -> None:
    for j in range(target.size):
        target[j] += more[j]


# The kernels spell out their walks over units and times: what they do in a step has no arguments in common.


def _run(kernel: Callable[..., None], walk: Walk, back: bool, products: int, *arguments: Any) -> None:
    """Call a kernel for all steps of a walk, in which each sequence takes so many products."""
    steps, count, work = Steps(walk), units(walk.batch), UNIT * products
    for times in (steps.back if back else steps.there)(count * work):
        split(kernel, count, len(times) * work // 16, times, steps.starts, steps.sizes, *arguments)


# Gated recurrent units


@native()
def gru_there(
    times: Int1, starts: Int1, sizes: Int1, bias: In1, panels: In1, gates: Out2, now: Out2, outputs: Out2,
    candidates: Out2, start: Count, stop: Count,
) -> None:  # fmt: skip
    """``gates`` come with the inputs' part and leave as what the gates are; ``bias`` is that of the states' part."""
    hidden, batch = now.shape[1], now.shape[0]
    width = padded_width(3 * hidden, VECTOR // 4)
    places = places_of(hidden, 3 * hidden, VECTOR // 4)
    packed, made = np.empty(UNIT * hidden, np.float32), np.empty((UNIT, width), np.float32)
    states = now.reshape(-1)
    for unit in range(start, stop):
        first = unit * UNIT
        for t in times:
            count = min(batch, sizes[t], first + UNIT) - first
            if count <= 0:
                continue
            pack_states(states, first * hidden, hidden, count, hidden, packed)
            multiply_states(count, packed, hidden, panels, 3 * hidden, places, made.reshape(-1), width)
            for b in range(count):
                row = starts[t] + first + b
                gate, product, h, kept = gates[row], made[b], now[first + b], candidates[row]
                _added(bias, product[: bias.size])
                _sum_bent(gate[: 2 * hidden], product[: 2 * hidden], True)
                of_state, reset, update = product[2 * hidden :], gate[:hidden], gate[hidden : 2 * hidden]
                new = gate[2 * hidden :]
                _copied(of_state, kept)
                for j in range(kept.size):
                    of_state[j] = kept[j] * reset[j]
                _sum_bent(new, of_state, False)
                for j in range(h.size):
                    h[j] = (h[j] - new[j]) * update[j] + new[j]
                _copied(h, outputs[row])


@native()
def gru_back(
    times: Int1, starts: Int1, sizes: Int1, panels: In1, gates: In2, products: In2, before: In2, g: In2, has_g: Flag,
    d_now: Out2, d_inputs: Out2, d_gates: Out2, start: Count, stop: Count,
) -> None:  # fmt: skip
    """The gradients by what goes into the gates, from inputs and from states, and by the states at first."""
    hidden, batch = d_now.shape[1], d_now.shape[0]
    width = padded_width(hidden, VECTOR // 4)
    places = places_of(3 * hidden, hidden, VECTOR // 4)
    packed, made = np.empty(UNIT * 3 * hidden, np.float32), np.empty((UNIT, width), np.float32)
    flat_gates = d_gates.reshape(-1)
    for unit in range(start, stop):
        first = unit * UNIT
        for t in times:
            count = min(batch, sizes[t], first + UNIT) - first
            if count <= 0:
                continue
            for b in range(count):
                row = starts[t] + first + b
                gate, of_gate, of_input, dh = gates[row], d_gates[row], d_inputs[row], d_now[first + b]
                reset, update, new = gate[:hidden], gate[hidden : 2 * hidden], gate[2 * hidden :]
                of_new, product, came = of_input[2 * hidden :], products[row], before[row]
                if has_g:
                    _added(g[row], dh)
                for j in range(of_new.size):
                    of_new[j] = (F(1) - update[j]) * (F(1) - new[j] * new[j]) * dh[j]
                of_reset, of_update, of_state = of_gate[:hidden], of_gate[hidden : 2 * hidden], of_gate[2 * hidden :]
                for j in range(of_reset.size):
                    of_reset[j] = of_new[j] * product[j] * reset[j] * (F(1) - reset[j])
                for j in range(of_update.size):
                    of_update[j] = (came[j] - new[j]) * update[j] * (F(1) - update[j]) * dh[j]
                for j in range(of_state.size):
                    of_state[j] = of_new[j] * reset[j]
                _copied(of_gate[: 2 * hidden], of_input[: 2 * hidden])
                for j in range(dh.size):
                    dh[j] *= update[j]
            at = (starts[t] + first) * 3 * hidden
            pack_states(flat_gates, at, 3 * hidden, count, 3 * hidden, packed)
            multiply_states(count, packed, 3 * hidden, panels, hidden, places, made.reshape(-1), width)
            for b in range(count):
                _added(made[b], d_now[first + b])


@compiled("gru_layer", "gru_layer_training")
def gru_layer(
    xp: Namespace, x: Array, hx: Array, w_ih: Array, w_hh: Array, b_ih: Any, b_hh: Any, reverse: bool,
    batch_sizes: Ints | None,
) -> tuple[Array, Array, Array, Array]:  # fmt: skip
    if x.dtype.char != "f" or not x.size or not hx.size:
        return NotImplemented
    walk, hidden = Walk(x.shape, batch_sizes, reverse), hx.shape[1]
    gates = matrix_product(x.reshape(walk.rows, x.shape[-1]), w_ih.T)
    if b_ih is not None:
        gates += b_ih
    bias = np.zeros(3 * hidden, x.dtype) if b_hh is None else dense(b_hh)
    panels, now = panels_of(w_hh, True), np.array(hx, order="C")
    outputs, candidates = np.empty((walk.rows, hidden), x.dtype), np.empty((walk.rows, hidden), x.dtype)
    _run(gru_there, walk, False, 3 * hidden * hidden, bias, panels, gates, now, outputs, candidates)
    return outputs.reshape(*x.shape[:-1], hidden), now, gates, candidates


@compiled("gru_layer_backward")
def gru_layer_backward(
    xp: Namespace, g: Any, g_state: Any, x: Array, hx: Array, w_ih: Array, w_hh: Array, output: Array, gates: Array,
    product: Array, reverse: bool, batch_sizes: Ints | None, inputs: bool,
) -> tuple[Array, ...]:  # fmt: skip
    if gates.dtype.char != "f" or not x.size or not hx.size:
        return NotImplemented
    walk, hidden = Walk(x.shape, batch_sizes, reverse), hx.shape[1]
    panels = panels_of(w_hh, False)
    before = walk.before(np, output.reshape(walk.rows, hidden), hx)
    d_now = np.zeros(hx.shape, hx.dtype) if g_state is None else np.array(g_state, order="C")
    d_inputs, d_gates = np.empty(gates.shape, gates.dtype), np.empty(gates.shape, gates.dtype)
    given = np.empty((0, 0), gates.dtype) if g is None else dense(g).reshape(walk.rows, hidden)
    _run(
        gru_back, walk, True, 3 * hidden * hidden, panels, dense(gates), dense(product), before, given, g is not None,
        d_now, d_inputs, d_gates,
    )  # fmt: skip
    of_w_ih, of_w_hh, of_b_ih, of_b_hh, of_input = products_of(
        matrix_product, d_inputs, d_gates, x, before, w_ih, inputs
    )
    return (d_now, of_w_ih, of_w_hh, of_b_ih, of_b_hh, *of_input)


# Elman's recurrence


@native()
def rnn_there(
    times: Int1, starts: Int1, sizes: Int1, relu: Flag, panels: In1, states: Out2, now: Out2, start: Count, stop: Count
) -> None:
    """``states`` come with the inputs' part."""
    hidden, batch = now.shape[1], now.shape[0]
    width = padded_width(hidden, VECTOR // 4)
    places = places_of(hidden, hidden, VECTOR // 4)
    packed, made = np.empty(UNIT * hidden, np.float32), np.empty((UNIT, width), np.float32)
    flat_now = now.reshape(-1)
    for unit in range(start, stop):
        first = unit * UNIT
        for t in times:
            count = min(batch, sizes[t], first + UNIT) - first
            if count <= 0:
                continue
            pack_states(flat_now, first * hidden, hidden, count, hidden, packed)
            multiply_states(count, packed, hidden, panels, hidden, places, made.reshape(-1), width)
            for b in range(count):
                state, product = states[starts[t] + first + b], made[b]
                if relu:
                    for j in range(state.size):
                        made_here = state[j] + product[j]
                        state[j] = F(0) if made_here <= F(0) else made_here
                else:
                    _sum_bent(state, product, False)
                _copied(state, now[first + b])


@native()
def rnn_back(
    times: Int1, starts: Int1, sizes: Int1, relu: Flag, panels: In1, states: In2, g: In2, has_g: Flag, d_now: Out2,
    d_gates: Out2, start: Count, stop: Count,
) -> None:  # fmt: skip
    hidden, batch = d_now.shape[1], d_now.shape[0]
    width = padded_width(hidden, VECTOR // 4)
    places = places_of(hidden, hidden, VECTOR // 4)
    packed, made = np.empty(UNIT * hidden, np.float32), np.empty((UNIT, width), np.float32)
    flat_gates = d_gates.reshape(-1)
    for unit in range(start, stop):
        first = unit * UNIT
        for t in times:
            count = min(batch, sizes[t], first + UNIT) - first
            if count <= 0:
                continue
            for b in range(count):
                row = starts[t] + first + b
                state, of_gate, dh = states[row], d_gates[row], d_now[first + b]
                if has_g:
                    _added(g[row], dh)
                if relu:
                    for j in range(dh.size):
                        of_gate[j] = dh[j] * (F(1) if state[j] > F(0) else F(0))
                else:
                    for j in range(dh.size):
                        of_gate[j] = (F(1) - state[j] * state[j]) * dh[j]
            pack_states(flat_gates, (starts[t] + first) * hidden, hidden, count, hidden, packed)
            multiply_states(count, packed, hidden, panels, hidden, places, made.reshape(-1), width)
            for b in range(count):
                _copied(made[b], d_now[first + b])


@compiled("rnn_layer")
def rnn_layer(
    xp: Namespace, x: Array, hx: Array, w_ih: Array, w_hh: Array, b_ih: Any, b_hh: Array, relu: bool, reverse: bool,
    batch_sizes: Ints | None,
) -> tuple[Array, Array]:  # fmt: skip
    if x.dtype.char != "f" or not x.size or not hx.size:
        return NotImplemented
    walk, hidden = Walk(x.shape, batch_sizes, reverse), hx.shape[1]
    panels, now = panels_of(w_hh, True), np.array(hx, order="C")
    states = matrix_product(x.reshape(walk.rows, x.shape[-1]), w_ih.T)
    if b_ih is not None:
        states += b_ih + b_hh
    _run(rnn_there, walk, False, hidden * hidden, relu, panels, states, now)
    return states.reshape(*x.shape[:-1], hidden), now


@compiled("rnn_layer_backward")
def rnn_layer_backward(
    xp: Namespace, g: Any, g_state: Any, x: Array, hx: Array, w_ih: Array, w_hh: Array, output: Array, relu: bool,
    reverse: bool, batch_sizes: Ints | None, inputs: bool,
) -> tuple[Array, ...]:  # fmt: skip
    if output.dtype.char != "f" or not x.size or not hx.size:
        return NotImplemented
    walk, hidden = Walk(x.shape, batch_sizes, reverse), hx.shape[1]
    panels = panels_of(w_hh, False)
    states = dense(output).reshape(walk.rows, hidden)
    d_now = np.zeros(hx.shape, hx.dtype) if g_state is None else np.array(g_state, order="C")
    d_gates = np.empty(states.shape, states.dtype)
    given = np.empty((0, 0), states.dtype) if g is None else dense(g).reshape(walk.rows, hidden)
    _run(rnn_back, walk, True, hidden * hidden, relu, panels, states, given, g is not None, d_now, d_gates)
    before = walk.before(np, states, hx)
    of_w_ih, of_w_hh, of_bias, _, of_input = products_of(matrix_product, d_gates, d_gates, x, before, w_ih, inputs)
    return (d_now, of_w_ih, of_w_hh, of_bias, *of_input)
