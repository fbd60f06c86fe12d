"""Samples of recurrent layers. The oracle is PyTorch's layer, called through its functional form."""

from __future__ import annotations

import torch

from tests.samples import FLOATS, Sample, samples

HALF = dict(tol=(1e-2, 1e-2), grad_tol=(5e-2, 5e-2))
"""PyTorch rounds states to half precision after every operation of a step."""


def _through(function, count, x, states, weights, reverse, batch_sizes, sign=None):
    """PyTorch's layer of one direction; reversed by reversing each sequence."""
    lengths = None
    if batch_sizes is None:
        lengths = [x.shape[0]] * x.shape[1]
        padded = x
    else:
        lengths = [sum(b > k for b in batch_sizes) for k in range(batch_sizes[0])]
        packed = torch.nn.utils.rnn.PackedSequence(x, torch.tensor(batch_sizes))
        padded = torch.nn.utils.rnn.pad_packed_sequence(packed)[0]
    if reverse:
        padded = _reversed(padded, lengths)
    packed = torch.nn.utils.rnn.pack_padded_sequence(padded, torch.tensor(lengths))
    given = tuple(s.unsqueeze(0) for s in states)
    arguments = [w for w in weights if w is not None]
    has_biases = weights[2] is not None
    found = function(
        packed.data, packed.batch_sizes, given if count == 2 else given[0], arguments, has_biases, 1, 0.0, False, False
    )
    out, last = found[0], [h.squeeze(0) for h in found[1:]]
    out = torch.nn.utils.rnn.PackedSequence(out, packed.batch_sizes)
    out = torch.nn.utils.rnn.pad_packed_sequence(out)[0]
    if reverse:
        out = _reversed(out, lengths)
    if batch_sizes is not None:
        out = torch.nn.utils.rnn.pack_padded_sequence(out, torch.tensor(lengths)).data
    return out, *last


def _reversed(x, lengths):
    turned = [torch.cat([x[:n, k].flip(0), x[n:, k]]) for k, n in enumerate(lengths)]
    return torch.stack(turned, 1)


def _rnn(x, hx, w_ih, w_hh, b_ih=None, b_hh=None, relu=False, reverse=False, batch_sizes=None):
    function = torch.rnn_relu if relu else torch.rnn_tanh
    return _through(function, 1, x, (hx,), (w_ih, w_hh, b_ih, b_hh), reverse, batch_sizes)


def _lstm(x, hx, cx, w_ih, w_hh, b_ih=None, b_hh=None, w_hr=None, reverse=False, batch_sizes=None):
    return _through(torch.lstm, 2, x, (hx, cx), (w_ih, w_hh, b_ih, b_hh, w_hr), reverse, batch_sizes)


def _gru(x, hx, w_ih, w_hh, b_ih=None, b_hh=None, reverse=False, batch_sizes=None):
    return _through(torch.gru, 1, x, (hx,), (w_ih, w_hh, b_ih, b_hh), reverse, batch_sizes)


def _sequences(make):
    """Inputs of three features, with the number of sequences and what the layer is told beside."""
    yield make(4, 2, 3), 2, {}
    yield make(1, 3, 3), 3, {"reverse": True}
    yield make(5, 1, 3), 1, {"reverse": True}
    yield make(7, 3), 3, {"batch_sizes": (3, 2, 1, 1)}
    yield make(7, 3), 3, {"batch_sizes": (3, 2, 1, 1), "reverse": True}
    yield make(6, 3), 2, {"batch_sizes": (2, 2, 2)}


def _weights(make, gates, hidden=4, outputs=4, bias=True):
    near = {"low": -1, "high": 1}
    found = [make(gates * hidden, 3, **near), make(gates * hidden, outputs, **near)]
    return found + ([make(gates * hidden, **near), make(gates * hidden, **near)] if bias else [])


@samples("rnn_layer", dtypes=("float16",), ref=_rnn, grad_fn=False, strides=False, **HALF)
@samples("rnn_layer", dtypes=FLOATS, ref=_rnn, grad_fn=False, strides=False)
def rnn_layer(make):
    for x, batch, told in _sequences(make):
        yield Sample(x, make(batch, 4), *_weights(make, 1), **told)
        yield Sample(x, make(batch, 4), *_weights(make, 1, bias=False), relu=True, **told)


@samples("lstm_layer", dtypes=("float16",), ref=_lstm, grad_fn=False, strides=False, **HALF)
@samples("lstm_layer", dtypes=FLOATS, ref=_lstm, grad_fn=False, strides=False)
def lstm_layer(make):
    for x, batch, told in _sequences(make):
        yield Sample(x, make(batch, 4), make(batch, 4), *_weights(make, 4), **told)
        yield Sample(x, make(batch, 4), make(batch, 4), *_weights(make, 4, bias=False), **told)
        projected = make(2, 4, low=-1, high=1)
        yield Sample(x, make(batch, 2), make(batch, 4), *_weights(make, 4, outputs=2), w_hr=projected, **told)


@samples("gru_layer", dtypes=("float16",), ref=_gru, grad_fn=False, strides=False, **HALF)
@samples("gru_layer", dtypes=FLOATS, ref=_gru, grad_fn=False, strides=False)
def gru_layer(make):
    for x, batch, told in _sequences(make):
        yield Sample(x, make(batch, 4), *_weights(make, 3), **told)
        yield Sample(x, make(batch, 4), *_weights(make, 3, bias=False), **told)


# Backward through time: the oracle is the gradient of the layer


def _backward(layer, count, given, grads, reverse, batch_sizes, inputs, **told):
    """PyTorch's gradients by the operands, the first of which is the input, in the order that the ops give them."""
    leaves = [None if x is None else x.detach().requires_grad_() for x in given]
    results = layer(*leaves, reverse=reverse, batch_sizes=batch_sizes, **told)
    pairs = [(r, g) for r, g in zip(results, grads, strict=True) if g is not None]
    wanted = [x for x in leaves if x is not None]
    found = torch.autograd.grad([r for r, _ in pairs], wanted, [g for _, g in pairs], allow_unused=True)
    found = [torch.zeros_like(x) if f is None else f for x, f in zip(wanted, found, strict=True)]
    return (*found[1:], found[0]) if inputs else tuple(found[1:])


def _rnn_backward(g, g_state, x, hx, w_ih, w_hh, output, relu, reverse, batch_sizes, inputs):
    bias = torch.zeros(w_ih.shape[0], dtype=x.dtype)
    found = _backward(_rnn_without_bias(bias), 1, (x, hx, w_ih, w_hh, bias), (g, g_state), reverse, batch_sizes, inputs,
                      relu=relu)  # fmt: skip
    return found


def _rnn_without_bias(other):
    def layer(x, hx, w_ih, w_hh, bias, **told):
        return _rnn(x, hx, w_ih, w_hh, bias, other, **told)

    return layer


def _gru_backward(g, g_state, x, hx, w_ih, w_hh, output, gates, product, reverse, batch_sizes, inputs):
    biases = [torch.zeros(w_ih.shape[0], dtype=x.dtype) for _ in range(2)]
    return _backward(_gru, 1, (x, hx, w_ih, w_hh, *biases), (g, g_state), reverse, batch_sizes, inputs)


def _lstm_backward(
    g, g_state, g_cell, g_cells, x, hx, cx, w_ih, w_hh, w_hr, output, gates, cells, reverse, batch_sizes, inputs
):
    bias = torch.zeros(w_ih.shape[0], dtype=x.dtype)

    def layer(x, hx, cx, w_ih, w_hh, b, w_hr, **told):
        made = _lstm(x, hx, cx, w_ih, w_hh, b, bias, w_hr, **told)
        return made if g_cells is None else (*made, _cells_by_steps(x, hx, cx, w_ih, w_hh, b, w_hr))

    given, grads = (x, hx, cx, w_ih, w_hh, bias, w_hr), (g, g_state, g_cell)
    return _backward(layer, 2, given, grads if g_cells is None else (*grads, g_cells), reverse, batch_sizes, inputs)


def _cells_by_steps(x, hx, cx, w_ih, w_hh, bias, w_hr):
    """The cells after each step of a layer that goes forward, with which PyTorch's layer does not part."""
    state, cell, cells = hx, cx, []
    for step in x:
        i, f, g, o = (step @ w_ih.T + state @ w_hh.T + bias).chunk(4, 1)
        cell = torch.sigmoid(f) * cell + torch.sigmoid(i) * torch.tanh(g)
        state = torch.sigmoid(o) * torch.tanh(cell)
        state = state if w_hr is None else state @ w_hr.T
        cells.append(cell)
    return torch.cat(cells)


def _plain(*tensors):
    return [t.detach() for t in tensors]


BACKWARD = dict(dtypes=FLOATS, grad=False, strides=False, grad_fn=False)


@samples("rnn_layer_backward", ref=_rnn_backward, **BACKWARD)
def rnn_layer_backward(make):
    for x, batch, told in _sequences(make):
        for relu in (False, True):
            hx, w_ih, w_hh = _plain(make(batch, 4), *_weights(make, 1, bias=False))
            output = _rnn(x.detach(), hx, w_ih, w_hh, relu=relu, **told)[0]
            where = relu, told.get("reverse", False), told.get("batch_sizes")
            g, g_state = _plain(make(*output.shape), make(batch, 4))
            yield Sample(g, g_state, x.detach(), hx, w_ih, w_hh, output, *where, True)
            yield Sample(g, None, x.detach(), hx, w_ih, w_hh, output, *where, False)


@samples("gru_layer_backward", ref=_gru_backward, **BACKWARD)
def gru_layer_backward(make):
    for x, batch, told in _sequences(make):
        hx, w_ih, w_hh = _plain(make(batch, 4), *_weights(make, 3, bias=False))
        kept = _gru_kept(x.detach(), hx, w_ih, w_hh, **told)
        where = told.get("reverse", False), told.get("batch_sizes")
        g, g_state = _plain(make(*kept[0].shape), make(batch, 4))
        yield Sample(g, g_state, x.detach(), hx, w_ih, w_hh, *kept, *where, True)
        yield Sample(None, g_state, x.detach(), hx, w_ih, w_hh, *kept, *where, False)


def _before(output, first, told):
    """The state before each step, by rows."""
    sizes = told.get("batch_sizes") or (output.shape[1],) * output.shape[0]
    rows, now = output.reshape(-1, output.shape[-1]), first.clone()
    found, start = torch.empty_like(rows), [sum(sizes[:t]) for t in range(len(sizes))]
    times = range(len(sizes))
    for t in reversed(times) if told.get("reverse") else times:
        at = slice(start[t], start[t] + sizes[t])
        found[at] = now[: sizes[t]]
        now[: sizes[t]] = rows[at]
    return found


def _gru_kept(x, hx, w_ih, w_hh, b_ih=None, b_hh=None, **told):
    output = _gru(x, hx, w_ih, w_hh, b_ih, b_hh, **told)[0]
    of_input, of_state = x.reshape(-1, 3) @ w_ih.T, _before(output, hx, told) @ w_hh.T
    a = (of_input if b_ih is None else of_input + b_ih).chunk(3, 1)
    b = (of_state if b_hh is None else of_state + b_hh).chunk(3, 1)
    reset, update = torch.sigmoid(a[0] + b[0]), torch.sigmoid(a[1] + b[1])
    return output, torch.cat([reset, update, torch.tanh(a[2] + reset * b[2])], 1), b[2]


def _gru_training(x, hx, w_ih, w_hh, b_ih=None, b_hh=None, **told):
    """PyTorch's layer and what it would keep."""
    output, gates, product = _gru_kept(x, hx, w_ih, w_hh, b_ih, b_hh, **told)
    return output, _gru(x, hx, w_ih, w_hh, b_ih, b_hh, **told)[1], gates, product


@samples("gru_layer_training", ref=_gru_training, **BACKWARD)
def gru_layer_training(make):
    make = make.plain()
    for x, batch, told in _sequences(make):
        yield Sample(x, make(batch, 4), *_weights(make, 3), **told)
        yield Sample(x, make(batch, 4), *_weights(make, 3, bias=False), **told)


def _lstm_training(x, hx, cx, w_ih, w_hh, b_ih=None, b_hh=None, w_hr=None, **told):
    output, *last = _lstm(x, hx, cx, w_ih, w_hh, b_ih, b_hh, w_hr, **told)
    return output, *last, *_lstm_kept(x, hx, cx, w_ih, w_hh, w_hr, told, b_ih, b_hh)[1:]


@samples("lstm_layer_training", ref=_lstm_training, **BACKWARD)
def lstm_layer_training(make):
    make = make.plain()
    for x, batch, told in _sequences(make):
        yield Sample(x, make(batch, 4), make(batch, 4), *_weights(make, 4), **told)
        projected = make(2, 4, low=-1, high=1)
        yield Sample(x, make(batch, 2), make(batch, 4), *_weights(make, 4, 4, 2, bias=False), w_hr=projected, **told)


@samples("lstm_layer_backward", ref=_lstm_backward, **BACKWARD)
def lstm_layer_backward(make):
    for x, batch, told in _sequences(make):
        for projected in (False, True):
            outputs = 2 if projected else 4
            hx, cx = _plain(make(batch, outputs), make(batch, 4))
            w_ih, w_hh = _plain(*_weights(make, 4, outputs=outputs, bias=False))
            w_hr = make(2, 4, low=-1, high=1).detach() if projected else None
            kept = _lstm_kept(x.detach(), hx, cx, w_ih, w_hh, w_hr, told)
            where = told.get("reverse", False), told.get("batch_sizes")
            grads = _plain(make(*kept[0].shape), make(batch, outputs), make(batch, 4))
            yield Sample(*grads, None, x.detach(), hx, cx, w_ih, w_hh, w_hr, *kept, *where, True)
            yield Sample(grads[0], None, None, None, x.detach(), hx, cx, w_ih, w_hh, w_hr, *kept, *where, False)
            if not told:
                g_cells = make(*kept[2].shape).detach()
                yield Sample(*grads, g_cells, x.detach(), hx, cx, w_ih, w_hh, w_hr, *kept, *where, True)


def _lstm_kept(x, hx, cx, w_ih, w_hh, w_hr, told, b_ih=None, b_hh=None):
    output = _lstm(x, hx, cx, w_ih, w_hh, b_ih, b_hh, w_hr, **told)[0]
    bias = 0 if b_ih is None else b_ih + b_hh
    given = x.reshape(-1, 3) @ w_ih.T + _before(output, hx, told) @ w_hh.T + bias
    i, f, g, o = given.chunk(4, 1)
    gates = torch.cat([torch.sigmoid(i), torch.sigmoid(f), torch.tanh(g), torch.sigmoid(o)], 1)
    i, f, g, o = gates.chunk(4, 1)
    sizes = told.get("batch_sizes") or (x.shape[1],) * x.shape[0]
    cells, now = torch.empty_like(i), cx.clone()
    times = range(len(sizes))
    for t in reversed(times) if told.get("reverse") else times:
        at, b = slice(sum(sizes[:t]), sum(sizes[: t + 1])), sizes[t]
        now[:b] = cells[at] = f[at] * now[:b] + i[at] * g[at]
    return output, gates, cells
