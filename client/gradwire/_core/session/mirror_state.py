"""What a program knows of a session's tensors and graph at a moment: taken for a checkpoint, put back by a rewind, and
carried over to a fork.

The proxies of a session are found through the garbage collector, which knows them all, so that recording an op costs
nothing more. A tensor that the program lets go of is let go of; what tensors hold (gradients, bases, the graph) stays.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable
from typing import Any, Final
from weakref import ref

from gradwire_protocol.errors import UnknownTensor

from ..context.hook_handles import HookTable
from ..graph.graph_mirror import AccumulateGrad, Node, became_leaf
from ..graph.node_hooks import NodeHooks
from ..tensor.own_attributes import everything
from ..tensor.tensor import Moved, Tensor
from .kept_objects import copied

_TENSOR: Final = ("_base_tensor", "_id", "_form", "_node", "_slot", "_versions")
_NODE: Final = ("edges", "inner", "line", "numbers", "retained", "saved", "seq")
_TABLES: Final = ("accumulated", "after", "before")
_FACTS: Final = ("custom", "packed", "place", "region", "way")
_MISSING: Final = object()
_FORGOTTEN: Final = frozenset({"_last_read"})
"""Values that were read: they are asked for again."""


class LostSession:
    """The session of tensors that are no more. Whatever is asked of it is refused with the reason.

    Raises:
        UnknownTensor: by every attribute.
    """

    __slots__ = ("_reason", "dropped")

    def __init__(self, reason: str) -> None:
        self._reason = reason
        self.dropped = _Nowhere()

    def __getattr__(self, name: str) -> Any:
        raise UnknownTensor(self._reason)


class _Nowhere(list[int]):
    """Takes ids that need not be released."""

    __slots__ = ()

    def append(self, number: int) -> None:
        """Nothing to release."""


def live_objects() -> list[Any]:
    """All objects that the garbage collector knows."""
    return gc.get_objects()


def tensors_of(session: Any, objects: Iterable[Any]) -> list[Tensor]:
    """The proxies of a session's tensors."""
    kinds: dict[type, bool] = {Moved: False}
    found = []
    for thing in objects:
        kind = type(thing)
        known = kinds.get(kind)
        if known is None:
            known = kinds[kind] = issubclass(kind, Tensor)
        if known and getattr(thing, "_session", None) is session and getattr(thing, "_id", -1) >= 0:
            found.append(thing)
    return found


def _own(tensor: Any) -> dict[str, Any]:
    return {
        name: value for name, value in everything(tensor).items()
        if name in Tensor.__annotations__ and name not in _FORGOTTEN
    }  # fmt: skip


class _PartState:
    """The hooks and facts of a node that the program takes part in."""

    def __init__(self, part: NodeHooks) -> None:
        self.part = part
        self.facts = {name: getattr(part, name) for name in _FACTS}
        self.tables = {name: dict(getattr(part, name)) for name in _TABLES}
        self.arriving = {slot: (table, dict(table)) for slot, table in part.arriving.items()}

    def put_back(self) -> None:
        """Give the part what it had."""
        for name, value in self.facts.items():
            setattr(self.part, name, value)
        for name, hooks in self.tables.items():
            _refill(getattr(self.part, name), hooks)
        self.part.arriving.clear()
        for slot, (table, hooks) in self.arriving.items():
            _refill(table, hooks)
            self.part.arriving[slot] = table


def _refill(table: HookTable, hooks: dict[int, Any]) -> None:
    table.clear()
    table.update(hooks)


class MirrorState:
    """The proxies of a session and the graph behind them, as they are now.

    Args:
        objects: all objects of the program.
    """

    def __init__(self, session: Any, objects: Iterable[Any]) -> None:
        self._session = session
        self._cells: dict[int, tuple[list[Any], list[Any]]] = {}
        self._parts: dict[int, _PartState] = {}
        self._nodes: dict[int, tuple[Node, dict[str, Any], Any, dict[str, Any]]] = {}
        self._tensors: list[tuple[ref[Tensor], tuple[Any, ...], dict[str, Any]]] = []
        waiting: list[Any] = []
        for tensor in tensors_of(session, objects):
            own = _own(tensor)
            for cell in (tensor._versions, own.get("_memory")):
                self._note_cell(cell)
            self._note_part(own.get("_part"))
            if (renewed := own.get("_renewed")) is not None:
                own["_renewed"] = renewed[0], list(renewed[1])
            waiting.append(tensor._node)
            if (leaf := own.get("_accumulator")) is not None:
                waiting.append(leaf())
            waiting.append(own.get("_grad_history"))
            self._tensors.append((ref(tensor), tuple([getattr(tensor, name) for name in _TENSOR]), own))
        self._follow(waiting)

    def _note_cell(self, cell: Any) -> None:
        if isinstance(cell, list) and id(cell) not in self._cells:
            self._cells[id(cell)] = cell, list(cell)

    def _note_part(self, part: Any) -> None:
        if isinstance(part, NodeHooks) and id(part) not in self._parts:
            self._parts[id(part)] = _PartState(part)

    def _follow(self, waiting: list[Any]) -> None:
        """Note all nodes from which these can be reached."""
        while waiting:
            node = waiting.pop()
            if not isinstance(node, Node) or id(node) in self._nodes:
                continue
            edges = node.edges  # one of a replay becomes a plain node first
            state = {name: getattr(node, name, _MISSING) for name in _NODE}
            state["retained"] = copied(node.retained)
            self._nodes[id(node)] = node, state, node.part, dict(vars(node))
            self._note_part(node.part)
            for kept in node.saved or ():
                if type(kept) is tuple and kept:
                    self._note_cell(kept[0])
            waiting += [edge[0] for edge in edges if edge is not None]
            waiting.append(node.inner)

    @property
    def ids(self) -> set[int]:
        """The ids of the tensors."""
        return {slots[1] for _, slots, _ in self._tensors}

    def put_back(self, reason: str, objects: Iterable[Any]) -> None:
        """Give the proxies and the graph what they had. Proxies that were made since refuse every use with ``reason``,
        and what they stand for is released."""
        known = {id(tensor): tensor for reference, _, _ in self._tensors if (tensor := reference()) is not None}
        kept = self.ids
        lost = LostSession(reason)
        for tensor in tensors_of(self._session, objects):
            if id(tensor) not in known:
                if tensor._id not in kept:
                    self._session.dropped.append(tensor._id)
                tensor._session = lost
        for cell, values in self._cells.values():
            cell[:] = values
        for part in self._parts.values():
            part.put_back()
        for node, state, part, attributes in self._nodes.values():
            for name, value in state.items():
                if value is not _MISSING and name != "signature":
                    setattr(node, name, copied(value) if name == "retained" else value)
            node.part = part
            vars(node).clear()
            vars(node).update(attributes)
        for reference, slots, own in self._tensors:
            found = reference()
            if found is None:
                continue
            attributes = everything(found)
            for name in [name for name in attributes if name in Tensor.__annotations__]:
                del attributes[name]
            attributes.update(own)
            for name, value in zip(_TENSOR, slots, strict=True):
                setattr(found, name, value)

    def carried_over(self, session: Any) -> CarriedOver:
        """The same for a session that has the same tensors under the same ids."""
        return CarriedOver(self, session)


class CarriedOver:
    """The proxies and the graph of a fork: copies of those of the session that it was forked from."""

    def __init__(self, state: MirrorState, session: Any) -> None:
        self._session = session
        self._cells: dict[int, list[Any]] = {}
        self._cell_values = {key: values for key, (_, values) in state._cells.items()}
        self._parts: dict[int, NodeHooks] = {}
        self._nodes: dict[int, Node] = {}
        self._made: dict[int, Tensor] = {}
        self._pairs: list[tuple[ref[Tensor], Tensor]] = []
        held = [(t, slots, own) for reference, slots, own in state._tensors if (t := reference()) is not None]
        for tensor, slots, _ in held:
            made = object.__new__(type(tensor))
            made._id, made._form, made._slot = slots[1], slots[2], slots[4]
            made._node = made._versions = made._base_tensor = None
            made._session = session
            self._made[id(tensor)] = made
            self._pairs.append((ref(tensor), made))
        for node, _, _, _ in state._nodes.values():
            self._nodes[id(node)] = object.__new__(type(node))
        for node, attributes, part, extra in state._nodes.values():
            self._fill(self._nodes[id(node)], node, attributes, part, extra)
        for tensor, slots, own in held:
            made = self._made[id(tensor)]
            made._base_tensor, made._node, made._versions = (self.moved(slots[i]) for i in (0, 3, 5))
            everything(made).update({name: self.moved(value) for name, value in own.items()})
            for name, value in everything(tensor).items():
                if name not in Tensor.__annotations__:
                    everything(made)[name] = value
            if made._requires:
                became_leaf(made)

    def _fill(self, made: Node, node: Node, state: dict[str, Any], part: Any, extra: dict[str, Any]) -> None:
        for name, value in state.items():
            if value is not _MISSING:
                setattr(made, name, self.moved(value))
        made.part = self.moved(part)
        if isinstance(node, AccumulateGrad):
            made.variable, made._leaf_meta = self.moved(node.variable), node._leaf_meta  # type: ignore[attr-defined]
        else:
            made.signature = node.signature
        vars(made).update({name: self.moved(value) for name, value in extra.items()})

    def moved(self, value: Any) -> Any:
        """A value of the other session, as this one has it."""
        if isinstance(value, Tensor):
            return self._made.get(id(value), value)
        if isinstance(value, Node):
            return self._nodes.get(id(value), value)
        if isinstance(value, NodeHooks):
            return self._part(value)
        if isinstance(value, ref):
            target = value()
            return value if target is None else ref(self.moved(target))
        if type(value) is tuple:
            return tuple([self.moved(each) for each in value])
        if isinstance(value, list):
            found = self._cells.get(id(value))
            if found is None:
                values = self._cell_values.get(id(value), value)
                found = self._cells[id(value)] = type(value)([self.moved(each) for each in values])
            return found
        if type(value) is dict:
            return {key: self.moved(each) for key, each in value.items()}
        return value

    def _part(self, part: NodeHooks) -> NodeHooks:
        found = self._parts.get(id(part))
        if found is None:
            found = self._parts[id(part)] = NodeHooks()
            for name in _TABLES:
                getattr(found, name).update(getattr(part, name))
            for slot, table in part.arriving.items():
                found.arriving[slot] = HookTable(table)
            for name in _FACTS:
                setattr(found, name, self.moved(getattr(part, name)))
        return found

    def memo(self) -> dict[int, Any]:
        """What ``copy.deepcopy`` takes for the copies of the session's tensors."""
        return {id(tensor): made for reference, made in self._pairs if (tensor := reference()) is not None}
