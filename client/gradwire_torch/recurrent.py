"""Cells of recurrent networks."""

from __future__ import annotations

from typing import Any

import gradwire as gw

from .dispatch import computes


def _biased(gates: Any, bias: Any) -> Any:
    return gates if bias is None else gates + bias


@computes("_thnn_fused_lstm_cell")
def lstm_cell(input_gates: Any, hidden_gates: Any, cx: Any, input_bias: Any = None, hidden_bias: Any = None) -> Any:
    """(hidden state, cell state, the gates)."""
    i, f, g, o = gw.chunk(_biased(input_gates, input_bias) + _biased(hidden_gates, hidden_bias), 4, -1)
    i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
    cy = f * cx + i * g
    return o * cy.tanh(), cy, gw.cat([i, f, g, o], -1)


@computes("_thnn_fused_lstm_cell_backward_impl")
def lstm_cell_backward(grad_hy: Any, grad_cy: Any, cx: Any, cy: Any, workspace: Any, has_bias: bool) -> Any:
    """(of the gates, of the cell state, of a bias)."""
    i, f, g, o = gw.chunk(workspace, 4, -1)
    tanh = cy.tanh()
    to_cell = gw.zeros_like(cx) if grad_cy is None else grad_cy
    to_output = gw.zeros_like(o)
    if grad_hy is not None:
        to_output = grad_hy * tanh * o * (1 - o)
        to_cell = to_cell + grad_hy * o * (1 - tanh * tanh)
    parts = [to_cell * g * i * (1 - i), to_cell * cx * f * (1 - f), to_cell * i * (1 - g * g), to_output]
    gates = gw.cat(parts, -1)
    return gates, to_cell * f, gates.sum(0) if has_bias else None


@computes("_thnn_fused_gru_cell")
def gru_cell(input_gates: Any, hidden_gates: Any, hx: Any, input_bias: Any = None, hidden_bias: Any = None) -> Any:
    """(hidden state, what the derivative needs)."""
    ir, iz, own = gw.chunk(_biased(input_gates, input_bias), 3, -1)
    hr, hz, hn = gw.chunk(_biased(hidden_gates, hidden_bias), 3, -1)
    r, z = (ir + hr).sigmoid(), (iz + hz).sigmoid()
    n = (own + r * hn).tanh()
    return n + z * (hx - n), gw.cat([r, z, n, hx, hn], -1)


@computes("_thnn_fused_gru_cell_backward")
def gru_cell_backward(grad_hy: Any, workspace: Any, has_bias: bool) -> Any:
    """(of the input's gates, of the state's, of the state, of the biases)."""
    r, z, n, hx, hn = gw.chunk(workspace, 5, -1)
    to_n = grad_hy * (1 - z) * (1 - n * n)
    to_z = grad_hy * (hx - n) * z * (1 - z)
    to_r = to_n * hn * r * (1 - r)
    inputs, hidden = gw.cat([to_r, to_z, to_n], -1), gw.cat([to_r, to_z, to_n * r], -1)
    biases = (inputs.sum(0), hidden.sum(0)) if has_bias else (None, None)
    return inputs, hidden, grad_hy * z, *biases
