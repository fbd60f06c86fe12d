"""Recurrent layers: one op for a layer and direction over a whole sequence.

A sequence is ``(time, batch, features)``, or packed: ``(steps, features)`` with ``batch_sizes``, which says how many
rows each time step has. Those come in order, the longest sequence first, so their number never rises. What a layer's
derivative needs beside its results are further results, which no caller sees.
"""

from __future__ import annotations

from ..autocast import GPU_LOWER, LOWER
from ..costs import Cost, OpCall, last, numel
from ..dtypes import DType, float32
from ..errors import ArgumentError, DTypeError, ShapeError, Unsupported
from ..meta import Inference, Meta, meta
from ..shapes import common_device
from ..table import Ints, Tensor, gradients, op
from .matrix import fits
from .packing import check_sizes


class _Layer:
    """The checked extents of a layer's call."""

    __slots__ = ("batch", "compute", "device", "dtype", "hidden", "lead", "outputs", "rows")

    def __init__(
        self, name: str, gates: int, self_: Meta, hx: Meta, w_ih: Meta, w_hh: Meta, biases: tuple[Meta | None, ...],
        batch_sizes: Ints | None, w_hr: Meta | None = None,
    ) -> None:  # fmt: skip
        given = [m for m in (self_, hx, w_ih, w_hh, *biases, w_hr) if m is not None]
        if any(m.dtype is not self_.dtype for m in given):
            raise DTypeError(f"{name}: all tensors have one dtype, they are {', '.join(m.dtype.name for m in given)}")
        if not self_.dtype.is_floating_point:
            raise Unsupported(f"{name} is not defined on {self_.dtype.name}")
        self.device = common_device(*given)
        self.dtype = self_.dtype
        self.compute: DType = float32 if self.dtype.is_low_precision else self.dtype
        self.lead = self_.shape[:-1]
        self.batch, self.rows = _extents(name, self_, hx, batch_sizes)
        for what, weight in (("w_ih", w_ih), ("w_hh", w_hh)):
            if weight.ndim != 2 or weight.shape[0] % gates:
                raise ShapeError(f"{name}: {what} has {gates} blocks of rows; its shape is {list(weight.shape)}")
        if w_hr is not None and w_hr.ndim != 2:
            raise ShapeError(f"{name}: w_hr is a matrix; its shape is {list(w_hr.shape)}")
        self.hidden = w_hh.shape[0] // gates
        self.outputs = self.hidden if w_hr is None else w_hr.shape[0]
        wanted: dict[str, tuple[Meta, tuple[int, ...]]] = {
            "w_ih": (w_ih, (gates * self.hidden, self_.shape[-1])), "w_hh": (w_hh, (gates * self.hidden, self.outputs)),
            "hx": (hx, (self.batch, self.outputs)),
        }  # fmt: skip
        if w_hr is not None:
            wanted["w_hr"] = w_hr, (self.outputs, self.hidden)
        wanted |= {f"bias {i}": (b, (gates * self.hidden,)) for i, b in enumerate(biases) if b is not None}
        for what, (found, shape) in wanted.items():
            require(name, what, found, shape)
        if (biases[0] is None) is not (biases[1] is None):
            raise ArgumentError(f"{name} takes both biases or none")

    def output(self) -> Meta:
        return meta((*self.lead, self.outputs), self.dtype, self.device)

    def state(self, width: int) -> Meta:
        return meta((self.batch, width), self.dtype, self.device)

    def kept(self, width: int) -> Meta:
        """Something for backward that has a row for each step of each sequence."""
        return meta((self.rows, width), self.compute, self.device)


def require(name: str, what: str, found: Meta, shape: tuple[int, ...]) -> None:
    """Check an operand's shape.

    Raises:
        ShapeError: naming both.
    """
    if found.ndim != len(shape) or not all(fits(a, b) for a, b in zip(found.shape, shape, strict=True)):
        raise ShapeError(f"{name}: {what} must have shape {list(shape)}, it has {list(found.shape)}")


def _extents(name: str, self: Meta, hx: Meta, batch_sizes: Ints | None) -> tuple[int, int]:
    """How many sequences there are, and how many rows in all steps together."""
    if not self.known or not hx.known:
        raise ShapeError(f"{name} needs known extents, not {list(self.shape)} and {list(hx.shape)}")
    if batch_sizes is None:
        if self.ndim != 3 or not self.shape[0]:
            raise ShapeError(f"{name}: a sequence has shape (time, batch, features), time > 0, not {list(self.shape)}")
        return self.shape[1], self.shape[0] * self.shape[1]
    if self.ndim != 2:
        raise ShapeError(f"{name}: a packed sequence has shape (steps, features), not {list(self.shape)}")
    check_sizes(name, batch_sizes)
    if sum(batch_sizes) != self.shape[0]:
        raise ShapeError(f"{name}: batch_sizes add up to {sum(batch_sizes)}, there are {self.shape[0]} rows")
    return batch_sizes[0], self.shape[0]


def _all_weights(c: OpCall) -> int:
    """Steps: at each time all of the weights, for each member of the batch."""
    rows = numel(c.self) // max(last(c.self), 1)
    return rows * (numel(c.w_ih) + numel(c.w_hh))


@op(grad_fn="RnnLayerBackward0", results=2, exposed=(), cost=Cost(_all_weights), autocast=LOWER)
@gradients(
    self="reshape(grad, grad1, w_hh, w_ih) if b_hh is None else reshape(grad, grad1, result, w_hh, w_ih)",
    hx=(
        "(matmul(grad, grad1, w_hh) if b_hh is None else matmul(grad, grad1, result, w_hh))"
        " if batch_sizes is None or not reverse else cat(grad, grad1, w_hh) if b_hh is None"
        " else cat(grad, grad1, result, w_hh)"
    ),
    w_ih="matmul(grad, grad1, self, w_hh) if b_hh is None else matmul(grad, grad1, result, self, w_hh)",
    w_hh="matmul(grad, grad1, hx, result, w_hh)",
    b_ih="(s := sum_dim(grad, grad1, result, w_hh))",
    b_hh="s",
    saves="self hx w_ih w_hh result0",
)
def rnn_layer(
    self: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None,
    relu: bool = False, reverse: bool = False, batch_sizes: Ints | None = None,
) -> Inference:  # fmt: skip
    """(the states after every step, the last state) of Elman's recurrence ``h = tanh(w_ih @ x + b_ih + w_hh @ h +
    b_hh)``.

    ``self`` is ``(time, batch, features)``, or ``(steps, features)`` with ``batch_sizes``, the number of rows of each
    time step; ``hx`` ``(batch, hidden)`` is the first state. With ``relu`` that takes tanh's place; ``reverse`` goes
    from the last step to the first.
    """
    layer = _Layer("rnn_layer", 1, self, hx, w_ih, w_hh, (b_ih, b_hh), batch_sizes)
    return Inference((layer.output(), layer.state(layer.hidden)), layer.compute)


@op(grad_fn="LstmLayerBackward0", results=3, exposed=(), cost=Cost(_all_weights), autocast=LOWER)
@gradients(
    self=(
        "reshape((all := ((b_hh, b_ih) if b_hh is not None else (), cx, grad, grad1, grad2, grad4, hx, result,"
        " result4, self, w_hh, w_hr if w_hr is not None else (), w_ih)))"
    ),
    hx="matmul(all) if batch_sizes is None or not reverse else cat(all)",
    cx="mul(all) if batch_sizes is None or not reverse else cat(all)",
    w_ih="matmul(all)",
    w_hh="matmul(all)",
    b_ih="sum_dim(all)",
    b_hh="sum_dim(all)",
    w_hr="matmul(all)",
    saves="self hx cx w_ih w_hh b_ih b_hh w_hr result0 result3 result4",
)
def lstm_layer(
    self: Tensor, hx: Tensor, cx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None,
    b_hh: Tensor | None = None, w_hr: Tensor | None = None, reverse: bool = False, batch_sizes: Ints | None = None,
) -> Inference:  # fmt: skip
    """(the outputs of every step, the last output, the last cell) of a layer of long short-term memory, Hochreiter and
    Schmidhuber (1997), with forget gates.

    The rows of the weights are the input gate's, the forget gate's, the candidate's and the output gate's. ``w_hr``
    ``(outputs, hidden)`` projects what a cell gives out. ``self``, ``reverse`` and ``batch_sizes`` are as in
    :func:`rnn_layer`; ``hx`` ``(batch, outputs)`` is the first output, ``cx`` ``(batch, hidden)`` the first cell.
    """
    return _lstm("lstm_layer", self, hx, cx, w_ih, w_hh, b_ih, b_hh, w_hr, batch_sizes)


def _lstm(
    name: str, self: Meta, hx: Meta, cx: Meta, w_ih: Meta, w_hh: Meta, b_ih: Meta | None, b_hh: Meta | None,
    w_hr: Meta | None, batch_sizes: Ints | None,
) -> Inference:  # fmt: skip
    layer = _Layer(name, 4, self, hx, w_ih, w_hh, (b_ih, b_hh), batch_sizes, w_hr)
    _need_cells(name, layer, cx)
    states = layer.state(layer.outputs), layer.state(layer.hidden)
    return Inference((layer.output(), *states, layer.kept(4 * layer.hidden), layer.kept(layer.hidden)), layer.compute)


def _need_cells(name: str, layer: _Layer, cx: Meta) -> None:
    """Check a layer's first cells."""
    require(name, "cx", cx, (layer.batch, layer.hidden))
    if cx.dtype is not layer.dtype:
        raise DTypeError(f"{name}: all tensors have one dtype, {layer.dtype.name}, but cx has {cx.dtype.name}")
    layer.device = common_device(cx, meta((1,), layer.dtype, layer.device))


@op(grad_fn="GruLayerBackward0", results=2, exposed=(), cost=Cost(_all_weights), autocast=GPU_LOWER)
@gradients(
    self="reshape((all := ((b_hh, b_ih) if b_hh is not None else (), grad, grad1, hx, result, self, w_hh, w_ih)))",
    hx="add(all) if batch_sizes is None or not reverse else cat(all)",
    w_ih="matmul(all)",
    w_hh="matmul(all)",
    b_ih="sum_dim(all)",
    b_hh="sum_dim(all)",
    saves="self hx w_ih w_hh b_ih b_hh result0 result2 result3",
)
def gru_layer(
    self: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None,
    reverse: bool = False, batch_sizes: Ints | None = None,
) -> Inference:  # fmt: skip
    """(the states after every step, the last state) of a layer of gated recurrent units, Cho et al. (2014), the reset
    gate applied after the product.

    The rows of the weights are the reset gate's, the update gate's and the candidate's. ``self``, ``hx``, ``reverse``
    and ``batch_sizes`` are as in :func:`rnn_layer`.
    """
    return _gru("gru_layer", self, hx, w_ih, w_hh, b_ih, b_hh, batch_sizes)


def _gru(
    name: str, self: Meta, hx: Meta, w_ih: Meta, w_hh: Meta, b_ih: Meta | None, b_hh: Meta | None,
    batch_sizes: Ints | None,
) -> Inference:  # fmt: skip
    layer = _Layer(name, 3, self, hx, w_ih, w_hh, (b_ih, b_hh), batch_sizes)
    kept = layer.kept(3 * layer.hidden), layer.kept(layer.hidden)
    return Inference((layer.output(), layer.state(layer.hidden), *kept), layer.compute)


# Backward through time, and layers that show what it takes. Clients offer none of it by name.


@op(
    results=5, exposed=(), cost=Cost(_all_weights),
    underived=("self", "hx", "cx", "w_ih", "w_hh", "b_ih", "b_hh", "w_hr"),
)  # fmt: skip
def lstm_layer_training(
    self: Tensor, hx: Tensor, cx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None,
    b_hh: Tensor | None = None, w_hr: Tensor | None = None, reverse: bool = False, batch_sizes: Ints | None = None,
) -> Inference:  # fmt: skip
    """:func:`lstm_layer` and what :func:`lstm_layer_backward` takes: the gates and the cells of every step, a row for
    each sequence, in the dtype that is computed in."""
    return _lstm("lstm_layer_training", self, hx, cx, w_ih, w_hh, b_ih, b_hh, w_hr, batch_sizes)


@op(results=4, exposed=(), cost=Cost(_all_weights), underived=("self", "hx", "w_ih", "w_hh", "b_ih", "b_hh"))
def gru_layer_training(
    self: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None,
    reverse: bool = False, batch_sizes: Ints | None = None,
) -> Inference:  # fmt: skip
    """:func:`gru_layer` and what :func:`gru_layer_backward` takes: the gates of every step, and the state's part of the
    candidates before it is reset, a row for each sequence, in the dtype that is computed in."""
    return _gru("gru_layer_training", self, hx, w_ih, w_hh, b_ih, b_hh, batch_sizes)


def _gradients(layer: _Layer, *operands: Meta | None) -> Inference:
    """Results like the operands, in their dtypes."""
    found = tuple(meta(m.shape, m.dtype, layer.device) for m in operands if m is not None)
    return Inference(found, layer.compute)


def _need_kept(name: str, layer: _Layer, wanted: dict[str, tuple[Meta | None, tuple[int, ...]]]) -> None:
    """Check gradients and what a layer keeps: their shapes, and that they are real floats on the layer's device."""
    for what, (found, shape) in wanted.items():
        if found is None:
            continue
        require(name, what, found, shape)
        if not found.dtype.is_floating_point:
            raise Unsupported(f"{name} is not defined on {found.dtype.name}, the dtype of {what}")
        common_device(found, meta((1,), layer.dtype, layer.device))


@op(
    results=None, exposed=(), cost=Cost(lambda c: 3 * _all_weights(c)),
    underived=("grad", "grad_state", "self", "hx", "w_ih", "w_hh", "output"),
)  # fmt: skip
def rnn_layer_backward(
    grad: Tensor | None, grad_state: Tensor | None, self: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor,
    output: Tensor, relu: bool, reverse: bool, batch_sizes: Ints | None, inputs: bool,
) -> Inference:  # fmt: skip
    """The gradients of :func:`rnn_layer` for hx, w_ih, w_hh and a bias, then with ``inputs`` for its input."""
    name = "rnn_layer_backward"
    layer = _Layer(name, 1, self, hx, w_ih, w_hh, (None, None), batch_sizes)
    lead, state = (*layer.lead, layer.outputs), (layer.batch, layer.outputs)
    _need_kept(name, layer, {"grad": (grad, lead), "grad_state": (grad_state, state), "output": (output, lead)})
    bias = meta(w_ih.shape[:1], w_ih.dtype, layer.device)
    return _gradients(layer, hx, w_ih, w_hh, bias, self if inputs else None)


@op(
    results=None, exposed=(), cost=Cost(lambda c: 3 * _all_weights(c)),
    underived=(
        "grad", "grad_state", "grad_cell", "grad_cells", "self", "hx", "cx", "w_ih", "w_hh", "w_hr", "output", "gates",
        "cells",
    ),
)  # fmt: skip
def lstm_layer_backward(
    grad: Tensor | None, grad_state: Tensor | None, grad_cell: Tensor | None, grad_cells: Tensor | None, self: Tensor,
    hx: Tensor, cx: Tensor, w_ih: Tensor, w_hh: Tensor, w_hr: Tensor | None, output: Tensor, gates: Tensor,
    cells: Tensor, reverse: bool, batch_sizes: Ints | None, inputs: bool,
) -> Inference:  # fmt: skip
    """The gradients of :func:`lstm_layer` for hx, cx, w_ih, w_hh and a bias, then for w_hr where there is one, then
    with ``inputs`` for its input."""
    name = "lstm_layer_backward"
    layer = _Layer(name, 4, self, hx, w_ih, w_hh, (None, None), batch_sizes, w_hr)
    _need_cells(name, layer, cx)
    lead, state, rows = (*layer.lead, layer.outputs), (layer.batch, layer.outputs), (layer.rows, layer.hidden)
    _need_kept(
        name, layer,
        {
            "grad": (grad, lead), "grad_state": (grad_state, state), "grad_cell": (grad_cell, cx.shape),
            "grad_cells": (grad_cells, rows), "output": (output, lead), "cells": (cells, rows),
            "gates": (gates, (layer.rows, 4 * layer.hidden)),
        },
    )  # fmt: skip
    bias = meta(w_ih.shape[:1], w_ih.dtype, layer.device)
    return _gradients(layer, hx, cx, w_ih, w_hh, bias, w_hr, self if inputs else None)


@op(
    results=None, exposed=(), cost=Cost(lambda c: 3 * _all_weights(c)),
    underived=("grad", "grad_state", "self", "hx", "w_ih", "w_hh", "output", "gates", "product"),
)  # fmt: skip
def gru_layer_backward(
    grad: Tensor | None, grad_state: Tensor | None, self: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor,
    output: Tensor, gates: Tensor, product: Tensor, reverse: bool, batch_sizes: Ints | None, inputs: bool,
) -> Inference:  # fmt: skip
    """The gradients of :func:`gru_layer` for hx, w_ih, w_hh, b_ih and b_hh, then with ``inputs`` for its input."""
    name = "gru_layer_backward"
    layer = _Layer(name, 3, self, hx, w_ih, w_hh, (None, None), batch_sizes)
    lead, state, rows = (*layer.lead, layer.outputs), (layer.batch, layer.outputs), (layer.rows, layer.hidden)
    _need_kept(
        name, layer,
        {
            "grad": (grad, lead), "grad_state": (grad_state, state), "output": (output, lead),
            "gates": (gates, (layer.rows, 3 * layer.hidden)), "product": (product, rows),
        },
    )  # fmt: skip
    bias = meta(w_ih.shape[:1], w_ih.dtype, layer.device)
    return _gradients(layer, hx, w_ih, w_hh, bias, bias, self if inputs else None)
