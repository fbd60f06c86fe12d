"""Forward mode as the client knows it: which levels are open, and which proxies are dual at them.

The server computes the tangents. The client remembers of a dual proxy only the levels, and where a gradient for each
tangent would go, so that it can say without a round trip whether there is a tangent and whether it requires grad.
"""

from __future__ import annotations

import threading
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from gradwire_protocol.meta import Meta
from gradwire_protocol.table import TABLE

from .mirror import Edge, Node, edge_of
from .modes import MODES, is_grad_enabled

if TYPE_CHECKING:
    from .dispatch import Entry
    from .session import Session

OPEN: Final[list[Level]] = []
"""The levels that are open in any thread, looked at on the path of every op. Empty unless forward mode is used."""

ABSENT: Final = object()
"""Marks a view that is not dual at a level though its base is."""

_number = count(1).__next__


class _Stack(threading.local):
    def __init__(self) -> None:
        self.levels: list[Level] = []


STACK: Final = _Stack()
"""The levels of this thread, the innermost last."""


class Level:
    """One level of forward mode, open for the extent of a ``with``. A session hears of it when it is first used."""

    __slots__ = ("_numbers", "mapped")

    def __init__(self) -> None:
        self._numbers: dict[Session, int] = {}
        self.mapped: set[int] = set()

    def number(self, session: Session) -> int:
        """The level's number in a session: above those of the levels around it."""
        for level in STACK.levels:
            if session not in level._numbers:
                number = level._numbers[session] = session._base + _number()
                session.record(TABLE["enter_dual_level"], [number], 0)
            if level is self:
                break
        return self._numbers[session]

    def __enter__(self) -> Level:
        STACK.levels.append(self)
        OPEN.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        STACK.levels.remove(self)
        OPEN.remove(self)
        for session, number in self._numbers.items():
            if not session.closed:
                session.record(TABLE["exit_dual_level"], [number], 0)


def duals_of(tensor: Any) -> dict[Level, Edge | None]:
    """The open levels at which a tensor is dual, each with where a gradient for the tangent goes."""
    own, base = tensor._duals, tensor._base_tensor
    shared = base._duals if base is not None else None
    if not own and not shared:
        return {}
    found = dict(shared or ())
    found.update(own or ())
    return {level: edge for level, edge in found.items() if edge is not ABSENT and level in OPEN}


def propagate(entry: Entry, values: list[Any], results: list[Any], recording: bool) -> None:
    """Mark the results of an op (for an in-place one what it wrote to, and that tensor's base) as dual."""
    if not entry.op.grad_fn or MODES.flags & 2:
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
    operands = [t for t in operands if hasattr(t, "_duals") and t._meta.dtype.category >= 2]
    found: dict[Level, list[Edge | None]] = {}
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


def mark(tensors: list[Any], level: Level, edges: list[Edge | None]) -> None:
    """Make tensors dual at a level. Their tangents have a history if any of the edges leads somewhere."""
    node = None
    if any(e is not None for e in edges):
        node = Node("AddBackward0", tuple(edges), tuple(_meta_of(t) for t in tensors))
    for slot, tensor in enumerate(tensors):
        if tensor._meta.dtype.category >= 2:
            tensor._duals = {**(tensor._duals or {}), level: None if node is None else (node, slot)}


def _meta_of(tensor: Any) -> Meta:
    found: Meta = tensor._meta
    return found


def make_dual(primal: Any, tangent: Any, level: Level) -> Any:
    """A view of ``primal`` with a tangent at a level."""
    from .dispatch import call

    dual = call("make_dual", primal, tangent, level.number(primal._session))
    dual._levels = primal._levels  # where only the tangent is mapped, the values are the same for all samples
    level.mapped.update(tangent._levels)
    _as_view(dual, primal)
    edge = edge_of(tangent) if is_grad_enabled() else None
    dual._duals = {**duals_of(primal), level: edge}
    return dual


def _as_view(alias: Any, source: Any) -> None:
    recording = is_grad_enabled()
    if recording and source.requires_grad:
        alias._node = Node("ViewBackward0", (edge_of(source),), (source._meta,))
    alias._view_of(source, True, False, recording)


def primal_of(tensor: Any, level: Level) -> Any:
    """A view of a dual tensor without its tangent at a level."""
    from .dispatch import call

    alias = call("primal_of", tensor, level.number(tensor._session))
    _as_view(alias, tensor)
    alias._duals = {**duals_of(tensor), level: ABSENT}
    return alias


def tangent_of(tensor: Any, level: Level) -> Any:
    """The tangent of a dual tensor, itself dual at the levels outside; None for a tensor that is not dual."""
    from .dispatch import call

    duals = duals_of(tensor)
    if level not in duals:
        return None
    found = call("tangent_of", tensor, level.number(tensor._session))
    found._levels = tuple(sorted({*tensor._levels, *level.mapped}))
    edge = duals[level]
    if edge is not None and is_grad_enabled():
        found._node = Node("AliasBackward0", (edge,), (tensor._meta,))
    outside = STACK.levels[: STACK.levels.index(level)]
    found._duals = {n: e for n, e in duals.items() if n in outside}
    return found


def inherit(results: list[Any], sources: list[Any]) -> None:
    """Mark gradients as dual where what they were computed from is."""
    for source in sources:
        for level, edge in duals_of(source).items():
            for result in results:
                if result is not None and level not in (result._duals or {}):
                    mark([result], level, [edge, edge_of(result)] if result._node is not None else [])
