"""Forward mode as the client knows it: which levels are open, and which proxies are dual at them.

The server computes the tangents. The client remembers of a dual proxy only the levels, and where a gradient for each
tangent would go, so that it can say without a round trip whether there is a tangent and whether it requires grad.
"""

from __future__ import annotations

import threading
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from gradwire_protocol.meta import Meta
from gradwire_protocol.ops.control import INFERENCE_MODE
from gradwire_protocol.table import TABLE

from ..context.handles import Handle
from ..context.modes import MODES
from .graph_mirror import Edge, Node, edge_of
from .node_signature import NodeSignature

if TYPE_CHECKING:
    from .recorded_call import OpBinding

OPEN: Final[list[ForwardLevel]] = []
"""The levels that are open in any thread, looked at on the path of every op. Empty unless forward mode is used."""

ABSENT: Final = object()
"""Marks a view that is not dual at a level though its base is."""

_number = count(1).__next__


class _Stack(threading.local):
    def __init__(self) -> None:
        self.levels: list[ForwardLevel] = []


STACK: Final = _Stack()
"""The levels of this thread, the innermost last."""


class ForwardLevel:
    """One level of forward mode, open for the extent of a ``with``. A session hears of it when it is first used."""

    __slots__ = ("_numbers", "mapped")

    def __init__(self) -> None:
        self._numbers: dict[Any, int] = {}
        self.mapped: set[int] = set()

    def number(self, session: Any) -> int:
        """The level's number in a session: above those of the levels around it."""
        for level in STACK.levels:
            if session not in level._numbers:
                number = level._numbers[session] = session.builder.base + _number()
                session.record(TABLE["enter_dual_level"], [number], 0)
            if level is self:
                break
        return self._numbers[session]

    def __enter__(self) -> ForwardLevel:
        STACK.levels.append(self)
        OPEN.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        STACK.levels.remove(self)
        OPEN.remove(self)
        for session, number in self._numbers.items():
            if not session.closed:
                session.record(TABLE["exit_dual_level"], [number], 0)


def duals_of(tensor: Handle) -> dict[ForwardLevel, Edge | None]:
    """The open levels at which a tensor is dual, each with where a gradient for the tangent goes."""
    own, base = tensor._duals, tensor._base_tensor
    shared = base._duals if base is not None else None
    if not own and not shared:
        return {}
    found = dict(shared or ())
    found.update(own or ())
    return {level: edge for level, edge in found.items() if edge is not ABSENT and level in OPEN}


def propagate(entry: OpBinding, values: list[Any], results: list[Handle], recording: bool) -> None:
    """Mark the results of an op (for an in-place one what it wrote to, and that tensor's base) as dual."""
    if not entry.op.grad_fn or MODES.flags & INFERENCE_MODE:
        return
    absent = [n for n, e in (getattr(values[0], "_duals", None) or {}).items() if e is ABSENT] if values else []
    if absent:
        for result in results:
            if result._base_tensor is not None:
                result._duals = {**(result._duals or {}), **dict.fromkeys(absent, ABSENT)}
    operands: list[Any] = []
    for i in entry.differentiable:
        value = values[i]
        operands.extend(value if type(value) in (list, tuple) else [value])
    operands = [t for t in operands if hasattr(t, "_duals") and t._form.dtype.carries_gradient]
    found: dict[ForwardLevel, list[Edge | None]] = {}
    for tensor in operands:
        for level, edge in duals_of(tensor).items():
            found.setdefault(level, []).append(edge)
    if not found:
        return
    primal_edges = [edge_of(t) for t in operands] if recording else []
    for level, edges in found.items():
        mark(results, level, [*edges, *primal_edges] if recording else [])
        if entry.op.mutates is not None and results[0]._base_tensor is not None:
            mark([results[0]._base_tensor], level, [*edges, *primal_edges] if recording else [])


def mark(tensors: list[Handle], level: ForwardLevel, edges: list[Edge | None]) -> None:
    """Make tensors dual at a level. Their tangents have a history if any of the edges leads somewhere."""
    node = None
    if any(e is not None for e in edges):
        node = Node(NodeSignature("AddBackward0", tuple(_meta_of(t) for t in tensors)), tuple(edges))
    for slot, tensor in enumerate(tensors):
        if tensor._form.dtype.carries_gradient:
            tensor._duals = {**(tensor._duals or {}), level: None if node is None else (node, slot)}


def _meta_of(tensor: Handle) -> Meta:
    found: Meta = tensor._form
    return found


def inherit(results: list[Any], sources: list[Any]) -> None:
    """Mark gradients as dual where what they were computed from is."""
    for source in sources:
        for level, edge in duals_of(source).items():
            for result in results:
                if result is not None and level not in (result._duals or {}):
                    mark([result], level, [edge, edge_of(result)] if result._node is not None else [])
