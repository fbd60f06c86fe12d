"""The text of a tensor: what ``repr`` and ``print`` show."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradwire_protocol.errors import GraphError

from ..context.modes import no_grad
from ..dispatch import mapped_tensors
from ..dispatch.dispatch import call
from ..dispatch.dual_tensors import tangent_of
from ..graph.forward_levels import OPEN, STACK, duals_of
from ..graph.node_signature import NodeSignature
from ..tensor import printing
from ..tensor.tensor import Tensor
from .creation import tensor


def __repr__(self: Tensor) -> str:
    """``repr(tensor)``. It costs a round trip, for the elements that are shown."""
    if self._levels:
        return mapped_tensors.describe(self)
    described = self._known_meta()
    index = printing.summary_index(described.shape)
    if self.is_meta:
        values = None
    elif described.numel == 0:
        values = np.empty(described.shape)
    elif index is None:
        values = _read_and_name(self, self)
    else:
        values = _edges_of(self, index)
    try:
        node = self._grad_node()
        label = None if node is None else node.label
    except GraphError:  # a view that cannot take part in history is printed all the same
        label = "Invalid"
    default = self._session.default_dtype
    return printing.format_tensor(
        values,
        shape=described.shape,
        dtype=described.dtype.name,
        device=described.device,
        requires_grad=self.requires_grad,
        grad_fn_name=label,
        default_dtype=default.name,
        default_complex=default.to_complex().name,
        extra=_tangent_entry(self),
    )


def _tangent_entry(self: Tensor) -> tuple[str, ...]:
    """What the text of a dual tensor says besides: its innermost tangent."""
    levels = duals_of(self) if OPEN else {}
    innermost = next((level for level in reversed(STACK.levels) if level in levels), None)
    return () if innermost is None else (f"tangent={tangent_of(self, innermost)}",)


def _edges_of(self: Tensor, index: Any) -> np.ndarray[Any, Any]:
    with no_grad():
        part = self
        for dim, positions in enumerate(index):
            if len(positions) < self._form.shape[dim]:
                part = call("index_select", part, dim, tensor(list(positions), device=part.device))
        found: np.ndarray[Any, Any] | None = _read_and_name(self, part)
    assert found is not None
    return found


def _read_and_name(self: Tensor, part: Any) -> np.ndarray[Any, Any] | None:
    """The values of a part of it. The same round trip brings the name of a node that the server made."""
    node = self._node
    values: np.ndarray[Any, Any] | None
    if node is None or not node.told:
        values = self._session.read([part])[0]
        return values
    values, letters = self._session.read([part, call("grad_fn_of", self)])
    name = letters.tobytes().decode() if letters is not None else ""
    if name:
        node.signature = NodeSignature(name, node.outs, op=node.signature.op)
    else:
        self._node = None
    return values


Tensor.__repr__ = __repr__  # type: ignore[assignment, method-assign]
