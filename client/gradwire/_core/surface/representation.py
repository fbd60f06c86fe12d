"""The text of a tensor: what ``repr`` and ``print`` show."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

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
    return written(self, elements(self, printing.summary_index(described.shape))[0])


def elements(self: Tensor, index: printing.SummaryIndex | None, *parts: Tensor) -> list[np.ndarray[Any, Any] | None]:
    """The elements at an index, ``None`` for all, and the values of further tensors, in one round trip. A tensor on the
    meta device has ``None`` for elements, and one without elements costs no round trip, if nothing else is read."""
    described = self._known_meta()
    if self.is_meta:
        return [None]
    if described.numel == 0 and not parts:
        return [np.empty(described.shape)]
    with no_grad():
        shown = self if index is None else _edges_of(self, index)
    return read_and_name(self, [shown, *parts])


def written(self: Tensor, values: np.ndarray[Any, Any] | None, options: printing.PrintOptions | None = None) -> str:
    """The text of a tensor, from the elements that :func:`elements` has read."""
    described = self._known_meta()
    default = self._session.default_dtype
    return printing.format_tensor(
        values,
        shape=described.shape,
        dtype=described.dtype.name,
        device=described.device,
        requires_grad=self.requires_grad,
        grad_fn_name=node_label(self),
        default_dtype=default.name,
        default_complex=default.to_complex().name,
        extra=_tangent_entry(self),
        options=options,
    )


def node_label(self: Tensor) -> str | None:
    """The name of the node that made a tensor; ``None`` for one without history."""
    try:
        node = self._grad_node()
    except GraphError:  # a view that cannot take part in history is printed all the same
        return "Invalid"
    return None if node is None else node.label


def _tangent_entry(self: Tensor) -> tuple[str, ...]:
    """What the text of a dual tensor says besides: its innermost tangent."""
    levels = duals_of(self) if OPEN else {}
    innermost = next((level for level in reversed(STACK.levels) if level in levels), None)
    return () if innermost is None else (f"tangent={tangent_of(self, innermost)}",)


def _edges_of(self: Tensor, index: printing.SummaryIndex) -> Tensor:
    part = self
    for dim, positions in enumerate(index):
        if len(positions) < self._form.shape[dim]:
            part = call("index_select", part, dim, tensor(list(positions), device=part.device))
    return part


def read_and_name(self: Tensor, parts: list[Tensor]) -> list[np.ndarray[Any, Any] | None]:
    """The values of tensors. The same round trip brings the name of a node of this one that the server made."""
    node = self._node
    if node is None or not node.told:
        return self._session.read(parts)
    *values, letters = self._session.read([*parts, call("grad_fn_of", self)])
    name = letters.tobytes().decode() if letters is not None else ""
    if name:
        node.signature = NodeSignature(name, node.outs, op=node.signature.op)
    else:
        self._node = None
    return values


def _repr_mimebundle_(self: Tensor, include: Any = None, exclude: Any = None) -> dict[str, str]:
    """What a notebook shows, as HTML and as text. Both come from one round trip."""
    from . import html_representation

    return html_representation.bundle(self, include, exclude)


def _repr_html_(self: Tensor) -> str | None:
    """What a notebook shows. It costs a round trip; ``None`` where the summary cannot be computed."""
    from . import html_representation

    return html_representation.bundle(self, ("text/html",)).get("text/html")


FORMS: Final[dict[Callable[..., str], Callable[[str], str]]] = {__repr__: str}
"""What ``__repr__`` methods make of the text of a tensor. A class with another one is shown as that says, by text."""

Tensor.__repr__ = __repr__  # type: ignore[assignment, method-assign]
Tensor._repr_mimebundle_ = _repr_mimebundle_  # type: ignore[assignment, method-assign]
Tensor._repr_html_ = _repr_html_  # type: ignore[assignment, method-assign]
