"""One step of a recurrent layer."""

from __future__ import annotations

import math
from typing import Any

from gradwire_protocol.errors import ArgumentError, ArgumentValueError

from ..composed import recurrent
from ..creation import empty, zeros
from ..dispatch import call
from ..tensor import Tensor
from . import init
from .module import Module
from .parameter import Parameter


class RNNCellBase(Module):
    """What the cells have in common: ``weight_ih`` ``(gates * hidden_size, input_size)``, ``weight_hh``
    ``(gates * hidden_size, hidden_size)``, and ``bias_ih`` and ``bias_hh`` unless ``bias`` is False.

    They start uniform between plus and minus ``1 / sqrt(hidden_size)``.
    """

    bias_ih: Any
    bias_hh: Any

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool, num_chunks: int, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        rows = num_chunks * hidden_size
        self.weight_ih = Parameter(empty((rows, input_size), device=device, dtype=dtype))
        self.weight_hh = Parameter(empty((rows, hidden_size), device=device, dtype=dtype))
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
        self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh", device: Any = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Any, hx: Any = None) -> Any:
        """``(batch, input_size)`` and a state ``(batch, hidden_size)``, or both without batch: the next state."""
        if self.nonlinearity not in ("tanh", "relu"):
            raise ArgumentError(f"nonlinearity is 'tanh' or 'relu', not {self.nonlinearity!r}")
        return self._next(getattr(recurrent, f"rnn_{self.nonlinearity}_cell"), input, hx)


class LSTMCell(RNNCellBase):
    """One step of :class:`~gradwire.nn.LSTM`."""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input: Any, hx: Any = None) -> Any:
        """``(batch, input_size)`` and (output, cell), each ``(batch, hidden_size)``, or all without batch: the next
        pair."""
        x, states = self._prepared(input, hx, 2)
        found = recurrent.lstm_cell(x, states, *self._weights())
        return tuple(call("squeeze", state, 0) for state in found) if input.ndim == 1 else found


class GRUCell(RNNCellBase):
    """One step of :class:`~gradwire.nn.GRU`."""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Any, hx: Any = None) -> Any:
        """``(batch, input_size)`` and a state ``(batch, hidden_size)``, or both without batch: the next state."""
        return self._next(recurrent.gru_cell, input, hx)
