"""Recurrent layers, and one step of each."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

from gradwire_protocol.dtypes import DType
from gradwire_protocol.errors import ArgumentError, ArgumentTypeError, ArgumentValueError

from .._core.composed import recurrent
from .._core.composed.recurrent import all_layers
from .._core.context.argument_types import Device
from .._core.context.call_sites import user_depth
from .._core.context.late_signatures import called_as
from .._core.dispatch.autocasting import is_autocast_enabled
from .._core.dispatch.dispatch import call
from .._core.modules.module import Module
from .._core.modules.parameter import Parameter
from .._core.surface.creation import empty, zeros
from .._core.tensor.tensor import Tensor
from . import init
from .utils.rnn import PackedSequence, like, sizes_of

_GATES = {"RNN_TANH": 1, "RNN_RELU": 1, "LSTM": 4, "GRU": 3}


class RNNBase(Module):
    """What recurrent layers have in common.

    Layer ``k`` has the parameters ``weight_ih_l{k}`` ``(gates * hidden_size, inputs)``, ``weight_hh_l{k}``
    ``(gates * hidden_size, outputs)``, ``bias_ih_l{k}`` and ``bias_hh_l{k}``, for the other direction with
    ``_reverse`` at the end of the name. They start uniform between plus and minus ``1 / sqrt(hidden_size)``.

    Args:
        input_size: features of each step of the input.
        hidden_size: features of the state.
        num_layers: how many layers, each of which reads the one before.
        bias: whether layers have biases.
        batch_first: inputs and outputs are ``(batch, time, features)`` rather than ``(time, batch, features)``.
        dropout: which share of each layer's outputs but the last's is dropped in training.
        bidirectional: a second direction reads each sequence from its end; outputs are joined.
        proj_size: an LSTM's outputs are projected to this size, where it is not 0.
    """

    def __init__(
        self, mode: str, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True,
        batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False, proj_size: int = 0,
        device: Device = None, dtype: DType | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        _check_type("input_size", input_size, int)
        _check_type("hidden_size", hidden_size, int)
        _check_type("bias", bias, bool)
        _check_type("batch_first", batch_first, bool)
        if isinstance(dropout, bool) or not isinstance(dropout, (int, float)) or not 0 <= dropout <= 1:
            raise ArgumentValueError(f"dropout is a share from 0 to 1, not {dropout!r}")
        for name, value in (("input_size", input_size), ("hidden_size", hidden_size), ("num_layers", num_layers)):
            if value <= 0:
                raise ArgumentValueError(f"{name} must be positive, not {value}")
        if not 0 <= proj_size < hidden_size:
            raise ArgumentValueError(
                f"proj_size must be from 0 up to, but less than hidden_size, {hidden_size}; it is {proj_size}"
            )
        if mode not in _GATES:
            raise ArgumentValueError(f"mode is one of {', '.join(_GATES)}, not {mode!r}")
        if dropout > 0 and num_layers == 1:
            warnings.warn(
                f"dropout={dropout} does nothing with one layer: it comes between layers",
                UserWarning,
                stacklevel=user_depth(),
            )
        self.mode: str = mode
        self.input_size: int = input_size
        self.hidden_size: int = hidden_size
        self.num_layers: int = num_layers
        self.bias: bool = bias
        self.batch_first: bool = batch_first
        self.dropout: float = float(dropout)
        self.bidirectional: bool = bidirectional
        self.proj_size: int = proj_size
        self._all_weights: list[list[str]] = []
        directions = 2 if bidirectional else 1
        outputs = proj_size or hidden_size
        gates = _GATES[mode] * hidden_size
        for layer in range(num_layers):
            for direction in range(directions):
                inputs = input_size if layer == 0 else outputs * directions
                shapes: dict[str, tuple[int, ...]] = {"weight_ih": (gates, inputs), "weight_hh": (gates, outputs)}
                if bias:
                    shapes |= {"bias_ih": (gates,), "bias_hh": (gates,)}
                if proj_size:
                    shapes["weight_hr"] = (proj_size, hidden_size)
                suffix = f"_l{layer}" + ("_reverse" if direction else "")
                for name, shape in shapes.items():
                    self.register_parameter(name + suffix, Parameter(empty(shape, device=device, dtype=dtype)))
                self._all_weights.append([name + suffix for name in shapes])
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new initial values."""
        bound = 1 / math.sqrt(self.hidden_size)
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def flatten_parameters(self) -> None:
        """Does nothing: where weights lie in memory is the server's business."""

    @property
    def all_weights(self) -> list[list[Parameter]]:
        """The parameters of each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    @property
    def _flat_weights_names(self) -> list[str]:
        return [name for names in self._all_weights for name in names]

    @property
    def _flat_weights(self) -> list[Parameter]:
        return [weight for weights in self.all_weights for weight in weights]

    # Checks

    def check_input(self, input: Tensor, batch_sizes: Tensor | Sequence[int] | None = None) -> None:
        """Check what the layer is given.

        Raises:
            ArgumentValueError: for another dtype than the weights'.
            ArgumentError: for another number of dimensions or features.
        """
        dtype = getattr(self, self._all_weights[0][0]).dtype
        if input.dtype is not dtype and not _casts(input):
            raise ArgumentValueError(
                f"the input is {input.dtype}, the weights are {dtype}: convert one of them with .to()"
            )
        wanted = 2 if batch_sizes is not None else 3
        if input.ndim != wanted:
            raise ArgumentError(f"the input has {input.ndim} dimensions, it must have {wanted}")
        if input.shape[-1] != self.input_size:
            raise ArgumentError(f"each step has {input.shape[-1]} features, input_size is {self.input_size}")

    def get_expected_hidden_size(
        self, input: Tensor, batch_sizes: Tensor | Sequence[int] | None = None
    ) -> tuple[int, int, int]:
        """The shape of the states that belong to an input."""
        return self._expected(self._batch(input, batch_sizes), self.proj_size or self.hidden_size)

    def _batch(self, input: Tensor, batch_sizes: Tensor | Sequence[int] | None) -> int:
        if batch_sizes is not None:
            return int(batch_sizes[0])
        batch: int = input.shape[0 if self.batch_first else 1]
        return batch

    def _expected(self, batch: int, width: int) -> tuple[int, int, int]:
        return self.num_layers * (2 if self.bidirectional else 1), batch, width

    def check_hidden_size(self, hx: Tensor, expected_hidden_size: tuple[int, int, int], msg: str = "") -> None:
        """Check the shape of a state.

        Raises:
            ArgumentError: naming both shapes; ``msg`` may say it otherwise, with places for them.
        """
        if tuple(hx.shape) != tuple(expected_hidden_size):
            text = msg or "the initial state must have shape {}, it has {}"
            raise ArgumentError(text.format(tuple(expected_hidden_size), list(hx.shape)))

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Any) -> None:
        """Check input and state of a call."""
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden, self.get_expected_hidden_size(input, batch_sizes))

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        """The state with its sequences in another order."""
        return hx if permutation is None else call("index_select", hx, 1, permutation)

    # The call

    def _check_state_dims(self, hx: Any, dims: int) -> None:
        if hx.ndim != dims:
            kind = "a batch" if dims == 3 else "one sequence"
            raise ArgumentError(f"for {kind} the initial state has {dims} dimensions, it has {hx.ndim}")

    def _checked_states(self, input: Tensor, hx: Any, sizes: Any) -> list[Tensor] | None:
        self.check_input(input, sizes)
        if hx is None:
            return None
        self.check_forward_args(input, hx, sizes)
        return [hx]

    def forward(
        self, input: Tensor | PackedSequence, hx: Tensor | tuple[Tensor, Tensor] | None = None
    ) -> tuple[Any, Any]:
        """(outputs of every step, the last states of all layers and directions).

        Args:
            input: ``(time, batch, input_size)``, with ``batch_first`` ``(batch, time, input_size)``; one sequence
                ``(time, input_size)``; or a packed sequence. The outputs have the same form, with ``hidden_size``
                features, or ``proj_size``, of each direction.
            hx: the first states, ``(layers * directions, batch, hidden_size)``; zeros without. For an LSTM a pair of
                such, of which the second are the cells.
        """
        if isinstance(input, PackedSequence):
            sizes = sizes_of(input)
            hx = None if hx is None else self.permute_hidden(hx, input.sorted_indices)
            output, last = self._run(input.data, hx, sizes)
            return like(input, output), self.permute_hidden(last, input.unsorted_indices)
        if input.ndim not in (2, 3):
            raise ArgumentValueError(f"{self._get_name()} takes 2 or 3 dimensions, not {input.ndim}")
        if input.ndim == 3:
            if hx is not None:
                self._check_state_dims(hx, 3)
            return self._run(input, hx, None)
        if hx is not None:
            self._check_state_dims(hx, 2)
            hx = self._each(hx, "unsqueeze")
        at = 0 if self.batch_first else 1
        output, last = self._run(call("unsqueeze", input, at), hx, None)
        return call("squeeze", output, at), self._each(last, "squeeze")

    def _each(self, hx: Any, op: str) -> Any:
        return call(op, hx, 1)

    def _run(self, x: Tensor, hx: Any, sizes: tuple[int, ...] | None) -> tuple[Any, Any]:
        states = self._checked_states(x, hx, sizes)
        turned = self.batch_first and sizes is None
        if turned:
            x = call("transpose", x, 0, 1)
        output, *last = all_layers(
            self.mode, x, states, self.all_weights, layers=self.num_layers, dropout=self.dropout,
            train=self.training, bidirectional=self.bidirectional, batch_sizes=sizes,
        )  # fmt: skip
        if turned:
            output = call("transpose", output, 0, 1)
        return output, last[0] if len(last) == 1 else tuple(last)

    def extra_repr(self) -> str:
        parts = [str(self.input_size), str(self.hidden_size)]
        usual = {"proj_size": 0, "num_layers": 1, "bias": True, "batch_first": False, "dropout": 0}
        usual["bidirectional"] = False
        parts += [f"{name}={getattr(self, name)}" for name, value in usual.items() if getattr(self, name) != value]
        return ", ".join(parts)


def _casts(input: Tensor) -> bool:
    return is_autocast_enabled(input.device.type)


def _check_type(name: str, value: Any, wanted: type) -> None:
    if not isinstance(value, wanted):
        raise ArgumentTypeError(f"{name} is of type {wanted.__name__}, not {type(value).__name__}: {value!r}")


def _rnn_form(
    self: Any, input_size: int, hidden_size: int, num_layers: int = 1, nonlinearity: str = "tanh", bias: bool = True,
    batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False, *, device: Device = None,
    dtype: DType | None = None,
) -> None:  # fmt: skip
    raise NotImplementedError


def _lstm_form(
    self: Any, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True, batch_first: bool = False,
    dropout: float = 0.0, bidirectional: bool = False, proj_size: int = 0, device: Device = None,
    dtype: DType | None = None,
) -> None:  # fmt: skip
    raise NotImplementedError


def _gru_form(
    self: Any, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True, batch_first: bool = False,
    dropout: float = 0.0, bidirectional: bool = False, *, device: Device = None, dtype: DType | None = None,
) -> None:  # fmt: skip
    raise NotImplementedError


class RNN(RNNBase):
    """Elman's recurrence: ``h = tanh(W_ih x + b_ih + W_hh h + b_hh)``, with ``nonlinearity="relu"`` ReLU instead.

    The arguments are those of :class:`RNNBase`; ``nonlinearity`` follows ``num_layers``.
    """

    @called_as(_rnn_form)
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if "proj_size" in kwargs:
            raise ArgumentValueError("only an LSTM takes proj_size")
        if len(args) > 3:
            kwargs["nonlinearity"] = args[3]
            args = (*args[:3], *args[4:])
        nonlinearity = kwargs.pop("nonlinearity", "tanh")
        if nonlinearity not in ("tanh", "relu"):
            raise ArgumentValueError(f"nonlinearity is 'tanh' or 'relu', not {nonlinearity!r}")
        self.nonlinearity: str
        object.__setattr__(self, "nonlinearity", nonlinearity)
        super().__init__(f"RNN_{nonlinearity.upper()}", *args, **kwargs)


class LSTM(RNNBase):
    """Long short-term memory with forget gates: Hochreiter and Schmidhuber (1997), Gers et al. (2000).

    ``i, f, o = sigmoid(...)``, ``g = tanh(...)``, ``c = f * c + i * g``, ``h = o * tanh(c)``, each gate of the input
    and of the last output. The rows of the weights are those of ``i``, ``f``, ``g`` and ``o``. The arguments are those
    of :class:`RNNBase`; the state is a pair ``(h, c)``.
    """

    @called_as(_lstm_form)
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("LSTM", *args, **kwargs)

    def get_expected_cell_size(
        self, input: Tensor, batch_sizes: Tensor | Sequence[int] | None = None
    ) -> tuple[int, int, int]:
        """The shape of the cells that belong to an input."""
        return self._expected(self._batch(input, batch_sizes), self.hidden_size)

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Any) -> None:
        """Check input and states of a call."""
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden[0], self.get_expected_hidden_size(input, batch_sizes))
        told = "the initial cell must have shape {}, it has {}"
        self.check_hidden_size(hidden[1], self.get_expected_cell_size(input, batch_sizes), told)

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        """The states with their sequences in another order."""
        return tuple(super(LSTM, self).permute_hidden(state, permutation) for state in hx)

    def _check_state_dims(self, hx: Any, dims: int) -> None:
        for state in hx:
            super()._check_state_dims(state, dims)

    def _checked_states(self, input: Tensor, hx: Any, sizes: Any) -> list[Tensor] | None:
        if hx is not None:
            self.check_forward_args(input, hx, sizes)
            return list(hx)
        self.check_input(input, sizes)
        return None

    def _each(self, hx: Any, op: str) -> Any:
        return tuple(call(op, state, 1) for state in hx)


class GRU(RNNBase):
    """Gated recurrent units, Cho et al. (2014), with the reset gate after the product.

    ``r, z = sigmoid(...)``, ``n = tanh(W_in x + b_in + r * (W_hn h + b_hn))``, ``h = (1 - z) * n + z * h``. The rows
    of the weights are those of ``r``, ``z`` and ``n``. The arguments are those of :class:`RNNBase`.
    """

    @called_as(_gru_form)
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if "proj_size" in kwargs:
            raise ArgumentValueError("only an LSTM takes proj_size")
        super().__init__("GRU", *args, **kwargs)


class RNNCellBase(Module):
    """What the cells have in common: ``weight_ih`` ``(gates * hidden_size, input_size)``, ``weight_hh``
    ``(gates * hidden_size, hidden_size)``, and ``bias_ih`` and ``bias_hh`` unless ``bias`` is False.

    They start uniform between plus and minus ``1 / sqrt(hidden_size)``.
    """

    bias_ih: Any
    bias_hh: Any

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool,
        num_chunks: int,
        device: Device = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        self.input_size: int = input_size
        self.hidden_size: int = hidden_size
        self.bias: bool = bias
        rows = num_chunks * hidden_size
        self.weight_ih: Parameter = Parameter(empty((rows, input_size), device=device, dtype=dtype))
        self.weight_hh: Parameter = Parameter(empty((rows, hidden_size), device=device, dtype=dtype))
        for name in ("bias_ih", "bias_hh"):
            self.register_parameter(name, Parameter(empty(rows, device=device, dtype=dtype)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new initial values."""
        bound = 1 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def extra_repr(self) -> str:
        parts = [str(self.input_size), str(self.hidden_size)]
        if not self.bias:
            parts.append(f"bias={self.bias}")
        if getattr(self, "nonlinearity", "tanh") != "tanh":
            parts.append(f"nonlinearity={self.nonlinearity}")
        return ", ".join(parts)

    def _weights(self) -> tuple[Any, ...]:
        return self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh

    def _prepared(self, input: Tensor, states: Any, count: int) -> tuple[Tensor, list[Tensor]]:
        """Input and states as batches; zeros for states that are not given.

        Raises:
            ArgumentValueError: for another number of dimensions than 1 or 2.
            ArgumentError: for extents that do not fit.
        """
        if input.ndim not in (1, 2):
            raise ArgumentValueError(f"{self._get_name()}: the input has 1 or 2 dimensions, not {input.ndim}")
        for state in states or ():
            if state.ndim not in (1, 2):
                raise ArgumentValueError(f"{self._get_name()}: a state has 1 or 2 dimensions, not {state.ndim}")
        if input.ndim == 1:
            input = call("unsqueeze", input, 0)
            states = None if states is None else [call("unsqueeze", state, 0) for state in states]
        if states is None:
            first = zeros(input.shape[0], self.hidden_size, dtype=input.dtype, device=input.device)
            states = [first] * count
        if input.shape[-1] != self.input_size:
            raise ArgumentError(f"the input has {input.shape[-1]} features, input_size is {self.input_size}")
        for state in states:
            if tuple(state.shape) != (input.shape[0], self.hidden_size):
                raise ArgumentError(
                    f"a state for an input of shape {list(input.shape)} has shape "
                    f"{[input.shape[0], self.hidden_size]}, not {list(state.shape)}"
                )
        return input, list(states)

    def _next(self, function: Any, input: Tensor, hx: Tensor | None) -> Any:
        x, (state,) = self._prepared(input, None if hx is None else [hx], 1)
        found = function(x, state, *self._weights())
        return call("squeeze", found, 0) if input.ndim == 1 else found


class RNNCell(RNNCellBase):
    """``h = tanh(W_ih x + b_ih + W_hh h + b_hh)``, with ``nonlinearity="relu"`` ReLU instead."""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh", device: Device = None,
        dtype: DType | None = None,
    ) -> None:  # fmt: skip
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity: str = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """``(batch, input_size)`` and a state ``(batch, hidden_size)``, or both without batch: the next state."""
        if self.nonlinearity not in ("tanh", "relu"):
            raise ArgumentError(f"nonlinearity is 'tanh' or 'relu', not {self.nonlinearity!r}")
        return self._next(getattr(recurrent, f"rnn_{self.nonlinearity}_cell"), input, hx)


class LSTMCell(RNNCellBase):
    """One step of :class:`~gradwire.nn.LSTM`."""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Device = None, dtype: DType | None = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        """``(batch, input_size)`` and (output, cell), each ``(batch, hidden_size)``, or all without batch: the next
        pair."""
        x, states = self._prepared(input, hx, 2)
        found = recurrent.lstm_cell(x, states, *self._weights())
        return tuple(call("squeeze", state, 0) for state in found) if input.ndim == 1 else found


class GRUCell(RNNCellBase):
    """One step of :class:`~gradwire.nn.GRU`."""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Device = None, dtype: DType | None = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """``(batch, input_size)`` and a state ``(batch, hidden_size)``, or both without batch: the next state."""
        return self._next(recurrent.gru_cell, input, hx)
