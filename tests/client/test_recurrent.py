"""Recurrent layers and cells against PyTorch, beyond the module database."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from tests.side_by_side import raises
from torch import nn as tnn

import gradwire as gw
from gradwire import nn as gnn

CLOSE = dict(rtol=1e-4, atol=1e-5)
KINDS = ("RNN", "LSTM", "GRU")


def both(kind, *args, **kwargs):
    theirs, ours = getattr(tnn, kind)(*args, **kwargs), getattr(gnn, kind)(*args, **kwargs)
    ours.load_state_dict({name: gw.from_numpy(value.numpy()) for name, value in theirs.state_dict().items()})
    return theirs, ours


def flat(value):
    if isinstance(value, (tuple, list)):
        return [t for part in value for t in flat(part)]
    return [] if value is None else [value]


def agree(theirs, ours, what="results"):
    theirs, ours = flat(theirs), flat(ours)
    assert len(theirs) == len(ours)
    for expected, found in zip(theirs, ours, strict=True):
        np.testing.assert_allclose(found.detach().numpy(), expected.detach().numpy(), err_msg=what, **CLOSE)


def backward_agrees(theirs, ours, results, found):
    seeds = [torch.randn_like(r) for r in flat(results) if r.requires_grad]
    torch.autograd.backward([r for r in flat(results) if r.requires_grad], seeds)
    ours_results = [r for r in flat(found) if r.requires_grad]
    gw.autograd.backward(ours_results, [gw.tensor(s.numpy()) for s in seeds])
    for (name, p), q in zip(theirs.named_parameters(), ours.parameters(), strict=True):
        agree(p.grad, q.grad, name)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_a_batch_with_states_agrees(kind, batch_first, bidirectional):
    theirs, ours = both(kind, 3, 4, 2, batch_first=batch_first, bidirectional=bidirectional)
    x = torch.randn(5, 2, 3)
    states = [torch.randn(4 if bidirectional else 2, 5 if batch_first else 2, 4) for _ in range(2)]
    hx = tuple(states) if kind == "LSTM" else states[0]
    given = tuple(gw.tensor(s.numpy()) for s in states)
    results, found = theirs(x, hx), ours(gw.tensor(x.numpy()), given if kind == "LSTM" else given[0])
    agree(results, found)
    backward_agrees(theirs, ours, results, found)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("options", [{}, {"num_layers": 2, "bidirectional": True, "batch_first": True}])
def test_packed_sequences_in_any_order_agree(kind, options):
    theirs, ours = both(kind, 3, 4, **options)
    first = options.get("batch_first", False)
    x, lengths = torch.randn(4, 5, 3) if first else torch.randn(5, 4, 3), [2, 5, 1, 5]
    outcomes = []
    for lib, module, given in ((torch, theirs, x), (gw, ours, gw.tensor(x.numpy()))):
        rnn = lib.nn.utils.rnn
        packed = rnn.pack_padded_sequence(given, lengths, batch_first=first, enforce_sorted=False)
        output, last = module(packed)
        padded, found = rnn.pad_packed_sequence(output, batch_first=first, padding_value=-1.0, total_length=6)
        assert found.tolist() == lengths
        outcomes.append((padded, last))
    agree(*outcomes)
    backward_agrees(theirs, ours, *outcomes)


def test_projections_of_packed_sequences_agree():
    theirs, ours = both("LSTM", 3, 6, 2, proj_size=2, bidirectional=True)
    sequences = [torch.randn(n, 3) for n in (4, 2, 1)]
    results = theirs(tnn.utils.rnn.pack_sequence(sequences))
    found = ours(gnn.utils.rnn.pack_sequence([gw.tensor(s.numpy()) for s in sequences]))
    agree(list(results[0])[:1] + [results[1]], list(found[0])[:1] + [found[1]])


def test_a_layer_is_one_node_however_long_the_sequence():
    output, _ = gnn.LSTM(3, 4)(gw.randn(100, 2, 3))
    nodes, node = [], output.grad_fn
    while node is not None:
        nodes.append(node.name())
        node = next((n for n, _ in node.next_functions if n is not None and n.next_functions), None)
    assert nodes == ["LstmLayerBackward0"]


@pytest.mark.parametrize("kind", KINDS)
def test_second_derivatives_agree(kind):
    theirs, ours = both(kind, 2, 3, bidirectional=True)
    theirs.double()
    ours.double()
    x = torch.randn(4, 2, 2, dtype=torch.float64, requires_grad=True)
    given = gw.tensor(x.detach().numpy(), requires_grad=True)

    def penalty(lib, module, x):
        (g,) = lib.autograd.grad(module(x)[0].sin().sum(), x, create_graph=True)
        (g * g).sum().backward()

    penalty(torch, theirs, x)
    penalty(gw, ours, given)
    agree(x.grad, given.grad)
    for p, q in zip(theirs.parameters(), ours.parameters(), strict=True):
        agree(p.grad, q.grad)


@pytest.mark.parametrize("kind", KINDS)
def test_a_layer_maps_and_has_tangents(kind):
    theirs, ours = both(kind, 2, 3)
    x, t = torch.randn(3, 4, 1, 2), torch.randn(3, 4, 1, 2)
    mapped = gw.func.vmap(lambda s: ours(s)[0])(gw.tensor(x.numpy()))
    agree(torch.stack([theirs(s)[0] for s in x]), mapped)
    _, tangent = gw.func.jvp(lambda s: ours(s)[0], (gw.tensor(x[0].numpy()),), (gw.tensor(t[0].numpy()),))
    _, expected = torch.autograd.functional.jvp(lambda s: theirs(s)[0], x[0], t[0])
    agree(expected, tangent)


@pytest.mark.parametrize("kind", ["RNNCell", "LSTMCell", "GRUCell"])
@pytest.mark.parametrize("bias", [False, True])
def test_cells_agree(kind, bias):
    theirs, ours = both(kind, 3, 4, bias=bias)
    x = torch.randn(5, 3)
    results, found = theirs(x), ours(gw.tensor(x.numpy()))
    for _ in range(2):
        results, found = theirs(x, results), ours(gw.tensor(x.numpy()), found)
    agree(results, found)
    backward_agrees(theirs, ours, results, found)


FUNCTIONS = {"rnn_tanh": 1, "rnn_relu": 1, "gru": 3, "lstm": 4}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("batch_first", [False, True])
def test_the_functions_agree(name, batch_first):
    gates = FUNCTIONS[name]
    x = torch.randn(4, 2, 3)
    batch = x.shape[0 if batch_first else 1]
    states = [torch.randn(2, batch, 5) for _ in range(2 if name == "lstm" else 1)]
    shapes = [(gates * 5, 3), (gates * 5, 5), (gates * 5,), (gates * 5,)] * 2
    params = [torch.randn(shape) for shape in shapes]

    def run(lib, move):
        hx = [move(s) for s in states]
        hx = hx if name == "lstm" else hx[0]
        weights = [move(p) for p in params]
        plain = getattr(lib, name)(move(x), hx, weights, True, 1, 0.0, False, True, batch_first)
        data, sizes = move(x.reshape(-1, 3)[:5]), lib.tensor([2, 2, 1])
        few = [s[:, :2] for s in hx] if name == "lstm" else hx[:, :2]
        return plain, getattr(lib, name)(data, sizes, few, weights, True, 1, 0.0, False, True)

    agree(run(torch, lambda t: t), run(gw, lambda t: gw.tensor(t.numpy())))


def test_dropout_comes_between_layers_in_training_only():
    lstm, x = gnn.LSTM(3, 64, 2, dropout=0.5), gw.randn(4, 2, 3)
    assert not gw.equal(lstm(x)[0], lstm(x)[0])
    lstm.eval()
    assert gw.equal(lstm(x)[0], lstm(x)[0])


REFUSALS = {
    "an input of too few dimensions": lambda lib: lib.nn.LSTM(3, 4)(lib.zeros(3)),
    "an input of other features": lambda lib: lib.nn.GRU(3, 4)(lib.zeros(5, 2, 2)),
    "a state of another batch": lambda lib: lib.nn.RNN(3, 4)(lib.zeros(5, 2, 3), lib.zeros(1, 3, 4)),
    "a state without batch": lambda lib: lib.nn.RNN(3, 4)(lib.zeros(5, 2, 3), lib.zeros(1, 4)),
    "a state with batch": lambda lib: lib.nn.RNN(3, 4)(lib.zeros(5, 3), lib.zeros(1, 1, 4)),
    "cells of another size": lambda lib: lib.nn.LSTM(3, 4)(
        lib.zeros(5, 2, 3), (lib.zeros(1, 2, 4), lib.zeros(1, 2, 3))
    ),
    "another nonlinearity": lambda lib: lib.nn.RNN(3, 4, nonlinearity="sigmoid"),
    "another nonlinearity of a cell": lambda lib: lib.nn.RNNCell(3, 4, nonlinearity="sigmoid")(lib.zeros(2, 3)),
    "projections of a GRU": lambda lib: lib.nn.GRU(3, 4, proj_size=2),
    "a projection that is too large": lambda lib: lib.nn.LSTM(3, 4, proj_size=4),
    "a dropout above 1": lambda lib: lib.nn.LSTM(3, 4, 2, dropout=1.5),
    "an empty sequence": lambda lib: lib.nn.LSTM(3, 4)(lib.zeros(0, 2, 3)),
    "lengths that rise": lambda lib: lib.nn.utils.rnn.pack_padded_sequence(lib.zeros(4, 2, 3), [2, 4]),
    "a length of zero": lambda lib: lib.nn.utils.rnn.pack_padded_sequence(lib.zeros(4, 2, 3), [2, 0]),
    "too few lengths": lambda lib: lib.nn.utils.rnn.pack_padded_sequence(lib.zeros(4, 2, 3), [2]),
    "a total length that is too short": lambda lib: lib.nn.utils.rnn.pad_packed_sequence(
        lib.nn.utils.rnn.pack_padded_sequence(lib.zeros(4, 2, 3), [3, 2]), total_length=2
    ),
    "no sequences": lambda lib: lib.nn.utils.rnn.pad_sequence([]),
    "another padding side": lambda lib: lib.nn.utils.rnn.pad_sequence([lib.zeros(2)], padding_side="up"),
}


@pytest.mark.parametrize("what", REFUSALS)
def test_what_is_refused_is_refused_as_by_pytorch(what):
    expected = raises(lambda: REFUSALS[what](torch))
    assert expected is not None
    assert raises(lambda: REFUSALS[what](gw)) == expected


@pytest.mark.parametrize("batch_first, side", list(itertools.product([False, True], ["left", "right"])))
def test_padding_and_back(batch_first, side):
    sequences = [torch.randn(n, 2) for n in (2, 4, 1)]
    given = [gw.tensor(s.numpy()) for s in sequences]
    rnn, their_rnn = gnn.utils.rnn, tnn.utils.rnn
    padded = rnn.pad_sequence(given, batch_first, 7.0, side)
    agree(their_rnn.pad_sequence(sequences, batch_first, 7.0, side), padded)
    if side == "right":
        agree(sequences, rnn.unpad_sequence(padded, gw.tensor([2, 4, 1]), batch_first))


def test_packing_and_back():
    sequences = [torch.randn(n, 2) for n in (2, 4, 1)]
    packed = gnn.utils.rnn.pack_sequence([gw.tensor(s.numpy()) for s in sequences], enforce_sorted=False)
    theirs = tnn.utils.rnn.pack_sequence(sequences, enforce_sorted=False)
    assert packed.batch_sizes.tolist() == theirs.batch_sizes.tolist()
    assert packed.sorted_indices.tolist() == theirs.sorted_indices.tolist()
    assert packed.unsorted_indices.tolist() == theirs.unsorted_indices.tolist()
    agree(sequences, gnn.utils.rnn.unpack_sequence(packed))
    halves = packed.half()
    assert halves.data.dtype is gw.float16
    assert halves.batch_sizes.dtype is gw.int64
    assert packed.to(gw.float32) is packed


def test_weights_can_be_looked_at():
    theirs, ours = both("LSTM", 3, 4, 2, bidirectional=True, proj_size=2)
    assert [[tuple(w.shape) for w in ws] for ws in ours.all_weights] == [
        [tuple(w.shape) for w in ws] for ws in theirs.all_weights
    ]
    assert ours._flat_weights_names == theirs._flat_weights_names
    assert ours.flatten_parameters() is None


def test_a_step_with_packed_sequences_waits_for_nothing(round_trips):
    lstm = gnn.LSTM(3, 4, 2, bidirectional=True)
    optimizer = gw.optim.Adam(lstm.parameters())
    round_trips()
    for lengths in ([4, 2, 1], [2, 4, 3]):
        optimizer.zero_grad()
        packed = gnn.utils.rnn.pack_padded_sequence(gw.randn(4, 3, 3), lengths, enforce_sorted=False)
        output, (h, _) = lstm(packed)
        padded, _ = gnn.utils.rnn.pad_packed_sequence(output)
        (padded.sum() + h.sum()).backward()
        optimizer.step()
    assert round_trips() == 0
    assert padded.shape == (4, 3, 8)
