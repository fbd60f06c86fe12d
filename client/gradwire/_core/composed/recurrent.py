"""Recurrent networks as functions: layers and directions, each of which is one op over the whole sequence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradwire_protocol.errors import ArgumentError

from ..context.late_signatures import called_as
from ..dispatch.dispatch import call
from ..surface.creation import zeros
from ..surface.methods import offer
from ..tensor.tensor import Tensor

LAYERS = {"RNN_TANH": "rnn_layer", "RNN_RELU": "rnn_layer", "GRU": "gru_layer", "LSTM": "lstm_layer"}


def one_layer(mode: str, x: Tensor, states: Sequence[Tensor], weights: Sequence[Any], **told: Any) -> tuple[Any, ...]:
    """The outputs of every step, and the last of each state.

    Args:
        mode: ``"RNN_TANH"``, ``"RNN_RELU"``, ``"LSTM"`` or ``"GRU"``.
        x: ``(time, batch, features)``, or packed with ``batch_sizes``.
        states: one ``(batch, hidden)``, for an LSTM two.
        weights: w_ih and w_hh, perhaps b_ih and b_hh, and w_hr of an LSTM with projections.
        told: ``reverse``, ``batch_sizes``.
    """
    given = list(weights)
    if mode == "LSTM" and len(given) in (3, 5):
        told["w_hr"] = given.pop()
    if mode == "RNN_RELU":
        told["relu"] = True
    found: tuple[Any, ...] = call(LAYERS[mode], x, *states, *given, **told)
    return found


def all_layers(
    mode: str, x: Tensor, states: Sequence[Tensor] | None, weights: Sequence[Sequence[Tensor]], *, layers: int,
    dropout: float = 0.0, train: bool = False, bidirectional: bool = False, batch_sizes: tuple[int, ...] | None = None,
) -> tuple[Any, ...]:  # fmt: skip
    """The outputs of the last layer, and the last states of all layers and directions, ``(layers * directions, batch,
    hidden)`` each.

    Args:
        states: what the layers and directions begin with, each of the shape of the last; zeros without.
        weights: for each layer and direction.
        dropout: which share of each layer's outputs but the last's is dropped where ``train`` is set.
    """
    directions = 2 if bidirectional else 1
    if len(weights) != layers * directions:
        raise ArgumentError(f"{layers * directions} layers and directions need as many weights, not {len(weights)}")
    each = _first_states(mode, x, states, weights[0], len(weights), batch_sizes)
    last: list[tuple[Any, ...]] = []
    for layer in range(layers):
        sides = []
        for direction in range(directions):
            at = layer * directions + direction
            told = {"reverse": direction == 1, "batch_sizes": batch_sizes}
            output, *final = one_layer(mode, x, [s[at] for s in each], weights[at], **told)
            sides.append(output)
            last.append(tuple(final))
        x = sides[0] if directions == 1 else call("cat", sides, -1)
        if dropout and train and layer < layers - 1:
            x = call("dropout", x, float(dropout), True)[0]
    return (x, *(call("stack", [entry[k] for entry in last]) for k in range(len(last[0]))))


def _first_states(
    mode: str, x: Tensor, states: Sequence[Tensor] | None, weights: Sequence[Tensor], count: int,
    batch_sizes: tuple[int, ...] | None,
) -> list[Sequence[Tensor]]:  # fmt: skip
    """For each state what each layer and direction begins with."""
    if states is not None:
        for state in states:
            if state.ndim != 3 or state.shape[0] != count:
                raise ArgumentError(
                    f"states for {count} layers and directions have shape ({count}, batch, hidden), not "
                    f"{list(state.shape)}"
                )
        return [call("unbind", state, 0) for state in states]
    batch = x.shape[1] if batch_sizes is None else batch_sizes[0]
    gates = {"LSTM": 4, "GRU": 3}.get(mode, 1)
    widths = [weights[1].shape[1]] + ([weights[1].shape[0] // gates] if mode == "LSTM" else [])
    made = {width: zeros(batch, width, dtype=x.dtype, device=x.device) for width in widths}
    return [[made[width]] * count for width in widths]


def _network_form(
    input: Tensor, hx: Tensor, params: Sequence[Tensor], has_biases: bool, num_layers: int, dropout: float,
    train: bool, bidirectional: bool, batch_first: bool, *, data: Tensor | None = None,
    batch_sizes: Tensor | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    raise NotImplementedError


def _lstm_form(
    input: Tensor, hx: Sequence[Tensor], params: Sequence[Tensor], has_biases: bool, num_layers: int, dropout: float,
    train: bool, bidirectional: bool, batch_first: bool, *, data: Tensor | None = None,
    batch_sizes: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    raise NotImplementedError


def _network(mode: str, name: str) -> None:
    @called_as(_lstm_form if mode == "LSTM" else _network_form)
    def function(*args: Any, **kwargs: Any) -> tuple[Any, ...]:
        packed = len(args) > 1 and isinstance(args[1], Tensor) and "hx" not in kwargs and len(args) > 3
        packed = (packed and isinstance(args[3], (list, tuple))) or "batch_sizes" in kwargs
        names = ["data", "batch_sizes"] if packed else ["input"]
        names += ["hx", "params", "has_biases", "num_layers", "dropout", "train", "bidirectional"]
        names += [] if packed else ["batch_first"]
        given = _bound(name, names, args, kwargs)
        hx = given["hx"]
        states = list(hx) if isinstance(hx, (list, tuple)) else [hx]
        wanted = 2 if mode == "LSTM" else 1
        if len(states) != wanted:
            raise ArgumentError(f"{name} takes {wanted} initial states, not {len(states)}")
        layers = int(given["num_layers"])
        entries = layers * (2 if given["bidirectional"] else 1)
        params = list(given["params"])
        if not entries or len(params) % entries:
            raise ArgumentError(f"{name}: {len(params)} parameters cannot be those of {entries} layers and directions")
        per = len(params) // entries
        options: dict[str, Any] = {
            "layers": layers, "dropout": float(given["dropout"]), "train": bool(given["train"]),
            "bidirectional": bool(given["bidirectional"]),
        }  # fmt: skip
        weights = [params[k * per : (k + 1) * per] for k in range(entries)]
        if packed:
            sizes = tuple(given["batch_sizes"].tolist())
            return all_layers(mode, given["data"], states, weights, batch_sizes=sizes, **options)
        x = given["input"]
        if not given["batch_first"]:
            return all_layers(mode, x, states, weights, **options)
        output, *last = all_layers(mode, call("transpose", x, 0, 1), states, weights, **options)
        return (call("transpose", output, 0, 1), *last)

    function.__name__ = name
    function.__doc__ = (
        f"All layers of a {mode} network over ``input`` or, packed, ``data`` with ``batch_sizes``: the outputs of "
        "every step and the last states. ``params`` are the weights of all layers and directions, one after the other."
    )
    offer(function, method=False)


def _bound(name: str, names: list[str], args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    given = dict(zip(names, args, strict=False)) | kwargs
    if len(args) > len(names) or set(given) != set(names):
        raise TypeError(f"{name} takes {', '.join(names)}")
    return given


for _mode, _name in (("RNN_TANH", "rnn_tanh"), ("RNN_RELU", "rnn_relu"), ("LSTM", "lstm"), ("GRU", "gru")):
    _network(_mode, _name)


def _cell(mode: str, x: Tensor, states: Sequence[Tensor], weights: Sequence[Any]) -> tuple[Any, ...]:
    """One step: a packed sequence of one time step."""
    found = one_layer(mode, x, states, [w for w in weights if w is not None], batch_sizes=(x.shape[0],))
    return found[1:]


def rnn_tanh_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
) -> Tensor:
    """One step of Elman's recurrence: ``(batch, features)`` and a state ``(batch, hidden)`` give the next state."""
    return _cell("RNN_TANH", input, [hx], (w_ih, w_hh, b_ih, b_hh))[0]


def rnn_relu_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
) -> Tensor:
    """:func:`rnn_tanh_cell` with ReLU in the place of tanh."""
    return _cell("RNN_RELU", input, [hx], (w_ih, w_hh, b_ih, b_hh))[0]


def gru_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
) -> Tensor:
    """One step of a gated recurrent unit: the next state."""
    return _cell("GRU", input, [hx], (w_ih, w_hh, b_ih, b_hh))[0]


def lstm_cell(
    input: Tensor, hx: Sequence[Tensor], w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """One step of long short-term memory: from (output, cell) to the next."""
    return _cell("LSTM", input, list(hx), (w_ih, w_hh, b_ih, b_hh))


for _function in (rnn_tanh_cell, rnn_relu_cell, gru_cell, lstm_cell):
    offer(_function, method=False)
