"""Recurrent layers: the products with the input for all steps at once, then a loop over time.

A derivative goes back through time in one kernel, too. All that is elementwise in it is linear in the gradient of a
step's state, so the factors are computed for all steps at once; then gradients with the weights are single products.
Where a derivative is differentiated in turn it is the same computation in differentiable ops, step by step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradwire_protocol.dtypes import float32

from ..autograd.functional import F
from ..autograd.registry import joint_derivative, kernel
from ..autograd.tape import Saved
from ..autograd.tensor import Tensor
from ..numerics.sequences import Walk
from ..runtime.arrays import Array, Namespace, Native
from .matrix import transposed

Ints = tuple[int, ...] | None


def _inputs(xp: Namespace, walk: Walk, x: Array, weight: Array, *biases: Array | None) -> Array:
    """The part of all gates, of all steps, that does not depend on states."""
    made = xp.matmul(x.reshape(walk.rows, x.shape[-1]), weight.T)
    for bias in biases:
        if bias is not None:
            made += bias
    return made


def _halved(xp: Namespace, hidden: int, sigmoids: tuple[bool, ...], dtype: Native) -> tuple[Array, Array]:
    """Factors and terms with which every gate is ``term + factor * tanh(factor * x)``.

    A sigmoid is ``1/2 + tanh(x/2) / 2``, so that one call computes all gates.
    """
    half, term = [0.5 if s else 1.0 for s in sigmoids], [0.5 if s else 0.0 for s in sigmoids]
    return xp.repeat(xp.asarray(half, dtype), hidden), xp.repeat(xp.asarray(term, dtype), hidden)


def products_of(
    matmul: Callable[[Array, Array], Array], d_gates: Array, d_state_gates: Array, x: Array, before: Array,
    w_ih: Array, inputs: bool,
) -> tuple[Array | list[Array], ...]:  # fmt: skip
    """The gradients for w_ih, w_hh and the biases, and those for the input in a list that may be empty."""
    flat = x.reshape(len(before), x.shape[-1])
    of_bias = d_gates.sum(0)
    of_state_bias = of_bias if d_state_gates is d_gates else d_state_gates.sum(0)
    of_input = [matmul(d_gates, w_ih).reshape(x.shape)] if inputs else []
    return (matmul(d_gates.T, flat), matmul(d_state_gates.T, before), of_bias, of_state_bias, of_input)


def _started(xp: Namespace, grad: Array | None, like: Array) -> Array:
    return xp.zeros_like(like) if grad is None else grad.copy()


# Elman's recurrence


@kernel("rnn_layer")
def rnn_layer(
    xp: Namespace, x: Array, hx: Array, w_ih: Array, w_hh: Array, b_ih: Array | None, b_hh: Array | None, relu: bool,
    reverse: bool, batch_sizes: Ints,
) -> tuple[Array, Array]:  # fmt: skip
    walk = Walk(x.shape, batch_sizes, reverse)
    states = _inputs(xp, walk, x, w_ih, b_ih, b_hh)
    now, product, weight = hx.copy(), xp.empty_like(hx), w_hh.T
    for rows, b in walk.there():
        state = states[rows]
        state += xp.matmul(now[:b], weight, out=product[:b])
        if relu:
            xp.maximum(state, 0, out=state)
        else:
            xp.tanh(state, out=state)
        now[:b] = state
    return states.reshape(*x.shape[:-1], now.shape[1]), now


@kernel("rnn_layer_backward")
def rnn_layer_backward(
    xp: Namespace, g: Array | None, g_state: Array | None, x: Array, hx: Array, w_ih: Array, w_hh: Array, output: Array,
    relu: bool, reverse: bool, batch_sizes: Ints, inputs: bool,
) -> tuple[Array, ...]:  # fmt: skip
    walk = Walk(x.shape, batch_sizes, reverse)
    states = output.reshape(walk.rows, hx.shape[1])
    g = None if g is None else g.reshape(states.shape)
    d_gates = (states > 0).astype(states.dtype) if relu else 1 - states * states
    d_state = _started(xp, g_state, hx)
    for rows, b in walk.back():
        d_now, d_gate = d_state[:b], d_gates[rows]
        if g is not None:
            d_now += g[rows]
        d_gate *= d_now
        xp.matmul(d_gate, w_hh, out=d_now)
    before = walk.before(xp, states, hx)
    of_w_ih, of_w_hh, of_bias, _, of_input = products_of(xp.matmul, d_gates, d_gates, x, before, w_ih, inputs)
    return (d_state, of_w_ih, of_w_hh, of_bias, *of_input)


# Long short-term memory


@kernel("lstm_layer", "lstm_layer_training")
def lstm_layer(
    xp: Namespace, x: Array, hx: Array, cx: Array, w_ih: Array, w_hh: Array, b_ih: Array | None, b_hh: Array | None,
    w_hr: Array | None, reverse: bool, batch_sizes: Ints,
) -> tuple[Array, ...]:  # fmt: skip
    walk = Walk(x.shape, batch_sizes, reverse)
    hidden, dtype = cx.shape[1], x.dtype
    factor, term = _halved(xp, hidden, (True, True, False, True), dtype)
    gates = _inputs(xp, walk, x, w_ih, b_ih, b_hh)
    gates *= factor
    weight = (w_hh * factor[:, None]).T
    outputs, cells = xp.empty((walk.rows, hx.shape[1]), dtype), xp.empty((walk.rows, hidden), dtype)
    now, cell = hx.copy(), cx.copy()
    product, shown = xp.empty((walk.batch, 4 * hidden), dtype), xp.empty_like(cx)
    for rows, b in walk.there():
        gate, c, part = gates[rows], cell[:b], shown[:b]
        gate += xp.matmul(now[:b], weight, out=product[:b])
        xp.tanh(gate, out=gate)
        gate *= factor
        gate += term
        c *= gate[:, hidden : 2 * hidden]
        c += xp.multiply(gate[:, :hidden], gate[:, 2 * hidden : 3 * hidden], out=part)
        cells[rows] = c
        xp.tanh(c, out=part)
        part *= gate[:, 3 * hidden :]
        now[:b] = part if w_hr is None else xp.matmul(part, w_hr.T)
        outputs[rows] = now[:b]
    return outputs.reshape(*x.shape[:-1], now.shape[1]), now, cell, gates, cells


@kernel("lstm_layer_backward")
def lstm_layer_backward(
    xp: Namespace, g: Array | None, g_state: Array | None, g_cell: Array | None, g_cells: Array | None, x: Array,
    hx: Array, cx: Array, w_ih: Array, w_hh: Array, w_hr: Array | None, output: Array, gates: Array, cells: Array,
    reverse: bool, batch_sizes: Ints, inputs: bool,
) -> tuple[Array, ...]:  # fmt: skip
    walk = Walk(x.shape, batch_sizes, reverse)
    hidden, rows_ = cx.shape[1], walk.rows
    states = output.reshape(rows_, hx.shape[1])
    g = None if g is None else g.reshape(states.shape)
    enters, stays, candidate, shows = (gates[:, k * hidden : (k + 1) * hidden] for k in range(4))
    bent = xp.tanh(cells)
    # Of each gate, what its input's gradient is for one of the cell (of the output, for the output gate).
    d_gates = xp.empty((rows_, 4, hidden), gates.dtype)
    for k, (gate, other) in enumerate(((enters, candidate), (stays, walk.before(xp, cells, cx)), (None, enters))):
        if gate is None:
            xp.multiply(1 - candidate * candidate, other, out=d_gates[:, k])
        else:
            xp.multiply(gate * (1 - gate), other, out=d_gates[:, k])
    xp.multiply(shows * (1 - shows), bent, out=d_gates[:, 3])
    by_output = shows * (1 - bent * bent)
    flat = d_gates.reshape(rows_, 4 * hidden)
    d_now, d_cell = _started(xp, g_state, hx), _started(xp, g_cell, cx)
    d_shown = None if w_hr is None else xp.empty_like(states)
    for rows, b in walk.back():
        d_state, d_c, d_gate = d_now[:b], d_cell[:b], d_gates[rows]
        if g is not None:
            d_state += g[rows]
        d_out = d_state
        if d_shown is not None:
            d_shown[rows] = d_state
            d_out = xp.matmul(d_state, w_hr)
        d_gate[:, 3] *= d_out
        d_c += by_output[rows] * d_out
        if g_cells is not None:
            d_c += g_cells[rows]
        d_gate[:, :3] *= d_c[:, None]
        d_c *= stays[rows]
        xp.matmul(flat[rows], w_hh, out=d_state)
    before = walk.before(xp, states, hx)
    of_w_ih, of_w_hh, of_bias, _, of_input = products_of(xp.matmul, flat, flat, x, before, w_ih, inputs)
    of_w_hr = [] if d_shown is None else [xp.matmul(d_shown.T, shows * bent)]
    return (d_now, d_cell, of_w_ih, of_w_hh, of_bias, *of_w_hr, *of_input)


# Gated recurrent units


@kernel("gru_layer", "gru_layer_training")
def gru_layer(
    xp: Namespace, x: Array, hx: Array, w_ih: Array, w_hh: Array, b_ih: Array | None, b_hh: Array | None, reverse: bool,
    batch_sizes: Ints,
) -> tuple[Array, Array, Array, Array]:  # fmt: skip
    walk = Walk(x.shape, batch_sizes, reverse)
    hidden, dtype = hx.shape[1], x.dtype
    two = 2 * hidden
    gates = _inputs(xp, walk, x, w_ih, b_ih)
    if b_hh is not None:
        gates[:, :two] += b_hh[:two]
    gates[:, :two] *= 0.5
    halves = _halved(xp, hidden, (True, True, False), dtype)[0]
    weight = (w_hh * halves[:, None]).T
    candidates = xp.empty((walk.rows, hidden), dtype)
    outputs = xp.empty((walk.rows, hidden), dtype)
    now, product, scratch = hx.copy(), xp.empty((walk.batch, 3 * hidden), dtype), xp.empty_like(hx)
    for rows, b in walk.there():
        gate, h, made, part = gates[rows], now[:b], product[:b], scratch[:b]
        xp.matmul(h, weight, out=made)
        both, new, of_state = gate[:, :two], gate[:, two:], made[:, two:]
        both += made[:, :two]
        xp.tanh(both, out=both)
        both *= 0.5
        both += 0.5
        if b_hh is not None:
            of_state += b_hh[two:]
        candidates[rows] = of_state
        new += xp.multiply(gate[:, :hidden], of_state, out=part)
        xp.tanh(new, out=new)
        h -= new
        h *= gate[:, hidden:two]
        h += new
        outputs[rows] = h
    return outputs.reshape(*x.shape[:-1], now.shape[1]), now, gates, candidates


@kernel("gru_layer_backward")
def gru_layer_backward(
    xp: Namespace, g: Array | None, g_state: Array | None, x: Array, hx: Array, w_ih: Array, w_hh: Array, output: Array,
    gates: Array, product: Array, reverse: bool, batch_sizes: Ints, inputs: bool,
) -> tuple[Array, ...]:  # fmt: skip
    walk = Walk(x.shape, batch_sizes, reverse)
    hidden, rows_ = hx.shape[1], walk.rows
    states = output.reshape(rows_, hx.shape[1])
    g = None if g is None else g.reshape(states.shape)
    reset, update, new = (gates[:, k * hidden : (k + 1) * hidden] for k in range(3))
    before = walk.before(xp, states, hx)
    # Of each gate, what its input's gradient is for one of the state; of the candidate, the state's part.
    by_new = (1 - update) * (1 - new * new)
    d_gates = xp.empty((rows_, 3, hidden), gates.dtype)
    xp.multiply(by_new * product, reset * (1 - reset), out=d_gates[:, 0])
    xp.multiply(before - new, update * (1 - update), out=d_gates[:, 1])
    xp.multiply(by_new, reset, out=d_gates[:, 2])
    flat = d_gates.reshape(rows_, 3 * hidden)
    d_now, through = _started(xp, g_state, hx), xp.empty_like(hx)
    for rows, b in walk.back():
        d_state, d_gate = d_now[:b], d_gates[rows]
        if g is not None:
            d_state += g[rows]
        d_gate *= d_state[:, None]
        by_new[rows] *= d_state
        d_state *= update[rows]
        d_state += xp.matmul(flat[rows], w_hh, out=through[:b])
    of_inputs = flat.copy()
    of_inputs[:, 2 * hidden :] = by_new
    of_w_ih, of_w_hh, of_b_ih, of_b_hh, of_input = products_of(xp.matmul, of_inputs, flat, x, before, w_ih, inputs)
    return (d_now, of_w_ih, of_w_hh, of_b_ih, of_b_hh, *of_input)


# Derivatives


class _Unrolled:
    """A layer's derivative in differentiable ops: what all steps have in common.

    Everything is in the dtype that the layer computes in.
    """

    def __init__(self, s: Saved, states: Tensor) -> None:
        given = s.outs[0].dtype
        self.dtype = float32 if given.is_low_precision else given
        self.walk = Walk(s.self.shape, s.batch_sizes, s.reverse)
        self.states = self.rows(states)
        self.x = self.rows(s.self)
        self.hx = self.cast(s.hx)
        self.w_ih, self.w_hh = self.cast(s.w_ih), self.cast(s.w_hh)
        self.before = self.preceding(self.states, self.hx)

    def cast(self, x: Tensor) -> Tensor:
        return F.to(x, dtype=self.dtype)

    def rows(self, x: Tensor) -> Tensor:
        return F.reshape(self.cast(x), (self.walk.rows, x.shape[-1]))

    def preceding(self, states: Tensor, first: Tensor) -> Tensor:
        origins = states.engine.from_numpy(np.array(self.walk.origins(), np.int64), device=states.device)
        return F.index_select(F.cat([first, states], 0), 0, origins)

    def by_time(self, x: Tensor) -> tuple[Tensor, ...]:
        return F.split(x, self.walk.sizes, 0)

    def gates(self, x: Tensor, weight: Tensor, bias: Tensor | None, count: int) -> tuple[Tensor, ...]:
        """The inputs of all gates, one after the other, that the rows ``x`` give."""
        made = x @ transposed(weight)
        made = made if bias is None else made + self.cast(bias)
        return F.split(made, (weight.shape[0] // count,) * count, 1)

    def back(self, g: Tensor | None, g_state: Tensor | None, step: Callable[[int, Tensor], Tensor]) -> Tensor:
        """Go back through time: ``step(t, gradient)`` gives the gradient of the state before the step at ``t``."""
        d_now = F.zeros_like(self.hx) if g_state is None else self.cast(g_state)
        given = None if g is None else self.by_time(self.rows(g))
        for t in self.walk.times_back:
            d_state, others = first_of(d_now, self.walk.sizes[t])
            d_state = d_state if given is None else d_state + given[t]
            d_now = joined(step(t, d_state), others)
        return d_now

    def products(self, d_gates: Tensor, d_state_gates: Tensor) -> tuple[Tensor, ...]:
        """The gradients for input, w_ih, w_hh and both biases."""
        return (
            d_gates @ self.w_ih, transposed(d_gates) @ self.x, transposed(d_state_gates) @ self.before,
            F.sum(d_gates, (0,)), F.sum(d_state_gates, (0,)),
        )  # fmt: skip


def first_of(x: Tensor, count: int) -> tuple[Tensor, Tensor | None]:
    """The first rows, and the others if there are any."""
    if count == x.shape[0]:
        return x, None
    return F.narrow(x, 0, 0, count), F.narrow(x, 0, count, x.shape[0] - count)


def joined(x: Tensor, others: Tensor | None) -> Tensor:
    return x if others is None else F.cat([x, others], 0)


def _shaped(s: Saved, d_x: Tensor) -> Tensor:
    return F.reshape(d_x, s.meta("self").shape)


@joint_derivative("rnn_layer", saves="self hx w_ih w_hh result0", undefined=True)
def rnn_layer_gradient(s: Saved, g: Tensor | None, g_state: Tensor | None) -> tuple[Any, ...]:
    if not s.hx.engine.differentiates:
        kept = s.self, s.hx, s.w_ih, s.w_hh, s.result0
        found = F.rnn_layer_backward(g, g_state, *kept, s.relu, s.reverse, s.batch_sizes, s.needs("self"))
        of_hx, of_w_ih, of_w_hh, of_bias = found[:4]
        return found[4] if s.needs("self") else None, of_hx, of_w_ih, of_w_hh, of_bias, of_bias
    layer = _Unrolled(s, s.result0)
    slopes = F.to(layer.states > 0, dtype=layer.dtype) if s.relu else 1 - layer.states * layer.states
    by_time, pieces = layer.by_time(slopes), {}

    def step(t: int, d_state: Tensor) -> Tensor:
        pieces[t] = d_state * by_time[t]
        return pieces[t] @ layer.w_hh

    d_hx = layer.back(g, g_state, step)
    d_gates = F.cat([pieces[t] for t in sorted(pieces)], 0)
    d_x, *others = layer.products(d_gates, d_gates)
    return _shaped(s, d_x), d_hx, *others


@joint_derivative("lstm_layer", saves="self hx cx w_ih w_hh b_ih b_hh w_hr result0 result3 result4", undefined=True)
def lstm_layer_gradient(
    s: Saved, g: Tensor | None, g_state: Tensor | None, g_cell: Tensor | None, _: Tensor | None, g_cells: Tensor | None
) -> tuple[Tensor | None, ...]:
    if not s.hx.engine.differentiates:
        kept = s.self, s.hx, s.cx, s.w_ih, s.w_hh, s.w_hr, s.result0, s.result3, s.result4
        given = g, g_state, g_cell, g_cells
        found = F.lstm_layer_backward(*given, *kept, s.reverse, s.batch_sizes, s.needs("self"))
        of_hx, of_cx, of_w_ih, of_w_hh, of_bias, *others = found
        of_x = others.pop() if s.needs("self") else None
        return of_x, of_hx, of_cx, of_w_ih, of_w_hh, of_bias, of_bias, *(others or [None])
    layer = _Unrolled(s, s.result0)
    cx, cells, w_hr = layer.cast(s.cx), s.result4, None if s.w_hr is None else layer.cast(s.w_hr)
    of_inputs = layer.gates(layer.x, layer.w_ih, s.b_ih, 4)
    of_states = layer.gates(layer.before, layer.w_hh, s.b_hh, 4)
    enters, stays, candidate, shows = (a + b for a, b in zip(of_inputs, of_states, strict=True))
    enters, stays, candidate, shows = F.sigmoid(enters), F.sigmoid(stays), F.tanh(candidate), F.sigmoid(shows)
    bent = F.tanh(cells)
    slopes = layer.by_time(F.cat([
        candidate * enters * (1 - enters), layer.preceding(cells, cx) * stays * (1 - stays),
        enters * (1 - candidate * candidate), bent * shows * (1 - shows),
    ], 1))  # fmt: skip
    by_output, stay_by_time = layer.by_time(shows * (1 - bent * bent)), layer.by_time(stays)
    given_cells = None if g_cells is None else layer.by_time(layer.cast(g_cells))
    d_cell = F.zeros_like(cx) if g_cell is None else layer.cast(g_cell)
    pieces, shown = {}, {}

    def step(t: int, d_state: Tensor) -> Tensor:
        nonlocal d_cell
        shown[t] = d_state
        d_out = d_state if w_hr is None else d_state @ w_hr
        d_c, others = first_of(d_cell, d_out.shape[0])
        d_c = d_c + by_output[t] * d_out
        d_c = d_c if given_cells is None else d_c + given_cells[t]
        pieces[t] = slopes[t] * F.cat([d_c, d_c, d_c, d_out], 1)
        d_cell = joined(d_c * stay_by_time[t], others)
        return pieces[t] @ layer.w_hh

    d_hx = layer.back(g, g_state, step)
    times = sorted(pieces)
    d_gates = F.cat([pieces[t] for t in times], 0)
    d_x, *others = layer.products(d_gates, d_gates)
    of_w_hr = None if w_hr is None else transposed(F.cat([shown[t] for t in times], 0)) @ (shows * bent)
    return _shaped(s, d_x), d_hx, d_cell, *others, of_w_hr


@joint_derivative("gru_layer", saves="self hx w_ih w_hh b_ih b_hh result0 result2 result3", undefined=True)
def gru_layer_gradient(s: Saved, g: Tensor | None, g_state: Tensor | None, *_: Tensor | None) -> tuple[Tensor, ...]:
    if not s.hx.engine.differentiates:
        kept = s.self, s.hx, s.w_ih, s.w_hh, s.result0, s.result2, s.result3
        found = F.gru_layer_backward(g, g_state, *kept, s.reverse, s.batch_sizes, s.needs("self"))
        return found[5] if s.needs("self") else None, *found[:5]
    layer = _Unrolled(s, s.result0)
    of_inputs = layer.gates(layer.x, layer.w_ih, s.b_ih, 3)
    of_states = layer.gates(layer.before, layer.w_hh, s.b_hh, 3)
    reset, update = (F.sigmoid(a + b) for a, b in zip(of_inputs[:2], of_states[:2], strict=True))
    new = F.tanh(of_inputs[2] + reset * of_states[2])
    by_new = (1 - update) * (1 - new * new)
    slopes = layer.by_time(F.cat([
        by_new * of_states[2] * reset * (1 - reset), (layer.before - new) * update * (1 - update), by_new * reset,
    ], 1))  # fmt: skip
    update_by_time = layer.by_time(update)
    pieces, arrived = {}, {}

    def step(t: int, d_state: Tensor) -> Tensor:
        arrived[t] = d_state
        pieces[t] = slopes[t] * F.cat([d_state, d_state, d_state], 1)
        return d_state * update_by_time[t] + pieces[t] @ layer.w_hh

    d_hx = layer.back(g, g_state, step)
    times = sorted(pieces)
    d_state_gates = F.cat([pieces[t] for t in times], 0)
    d_new = by_new * F.cat([arrived[t] for t in times], 0)
    d_gates = F.cat([F.narrow(d_state_gates, 1, 0, 2 * new.shape[1]), d_new], 1)
    d_x, *others = layer.products(d_gates, d_state_gates)
    return _shaped(s, d_x), d_hx, *others
