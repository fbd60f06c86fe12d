"""What a frame leaves behind, as templates: the objects that it made and that outlive it, and the changes of those
that were there before.

At the end of a captured frame the objects that its results and its externals lead to are compared with what was there
before. So it does not matter which code made them: what is left is described, or there is no plan.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final
from weakref import ref

from gradwire_protocol.meta import Meta

from ..autograd.engine_context import EngineContext
from ..autograd.failures import GONE
from ..autograd.inplace import CopySlices
from ..autograd.registry import Row
from ..autograd.tape import AccumulateGrad, Edge, Node, SavedTensor
from ..autograd.tensor import Storage, Tensor
from .inputs import Found, Unplannable
from .program import KernelCall, New, Number, Offset, OptimizerStep, Thing, Write
from .tracing import Tracer

_PLAIN: Final = ("requires_grad_flag", "retains_grad", "inference", "slot", "creation", "path", "grad_dtype")
_REFERRING: Final = ("grad", "_grad_fn", "base")


@dataclass(frozen=True, slots=True)
class Version:
    """A version counter: a number, or how far beyond the one that the storage of a thing had before the frame."""

    thing: int | None
    count: int


@dataclass(slots=True)
class StorageTemplate:
    """A storage: the value that is its memory, or the thing whose memory it shows under a version of its own."""

    value: int
    alias: bool
    version: int


@dataclass(slots=True)
class TensorTemplate:
    meta: Meta
    value: int
    storage: Thing | New
    offset: int | Offset
    seen: Version
    plain: dict[str, Any] = field(default_factory=dict)
    referring: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class SavedTemplate:
    tensor: Thing | New
    version: Version
    slot: int
    is_result: bool


@dataclass(slots=True)
class NodeTemplate:
    name: str
    row: Row
    values: list[Any]
    edges: list[tuple[Thing | New, int] | None]
    outs: tuple[Meta, ...]
    saved: dict[str, Any] | None
    seq: int
    index: int | None
    watchers: dict[int, Any] | None


@dataclass(slots=True)
class LeafTemplate:
    leaf: Any


@dataclass(slots=True)
class SlicesTemplate:
    inner: Any
    base: Meta
    view: Meta
    offset: int
    edges: list[tuple[Thing | New, int] | None]
    seq: int
    watchers: dict[int, Any] | None


@dataclass
class Effects:
    """What a frame leaves behind.

    Attributes:
        made: by result, a reference; ``None`` for an undefined gradient, ``GONE`` for what nobody can ask for.
        storages, templates: what is made anew, by number.
        changes: (thing, attribute, new value).
        versions: by how much the storage of a thing was written to.
        seq, peak: by how much the count of nodes rose, and memory at the highest.
        early: templates of gradients that an optimizer needs, by number in ``tracer.grads``.
    """

    made: list[Any] = field(default_factory=list)
    storages: list[StorageTemplate] = field(default_factory=list)
    templates: list[Any] = field(default_factory=list)
    changes: list[tuple[int, str, Any]] = field(default_factory=list)
    versions: dict[int, int] = field(default_factory=dict)
    seq: int = 0
    peak: int = 0
    early: dict[int, int] = field(default_factory=dict)


class FrameState:
    """What was there before a frame, of which nothing is kept alive."""

    def __init__(self, found: Found, engine: EngineContext) -> None:
        self.refs = [ref(thing) for thing in found.objects]
        at = {id(thing): i for i, thing in enumerate(found.objects)}
        self.states = [_state(thing, at) for thing in found.objects]
        self.versions = [thing.storage.version if type(thing) is Tensor else 0 for thing in found.objects]
        self.seq = engine._seq


def _state(thing: Any, at: dict[int, int]) -> dict[str, Any]:
    if type(thing) is Tensor:
        state = {name: getattr(thing, name) for name in _PLAIN}
        state |= {name: _number(getattr(thing, name), at) for name in _REFERRING}
        return state | {
            "meta": thing.meta, "offset": thing.offset, "array": id(thing.array), "storage": id(thing.storage),
            "seen": thing.seen_version,
        }  # fmt: skip
    watchers = getattr(thing, "watchers", None)
    return {
        "saved": id(thing.saved) if type(thing) is Node and thing.saved is not None else None,
        "watchers": None if not watchers else {s: _number(r(), at) for s, r in watchers.items()},
    }


def _number(thing: object, at: dict[int, int]) -> int | None:
    return None if thing is None else at.get(id(thing), -1)


class Harvest:
    """Looks at a frame that just ran.

    Args:
        made: the frame's results, before what is dropped goes.
        begin: the position of its first record.
    """

    def __init__(self, tracer: Tracer, before: FrameState, made: list[Any], begin: int) -> None:
        self.tracer = tracer
        self.before = before
        self.begin = begin
        self.effects = Effects()
        self._at: dict[int, int] = {}
        self._met: list[Any] = []
        self._storage_at: dict[int, int] = {}
        self._storages: list[Any] = []
        self._old: dict[int, int] = {}
        self._old_storages: dict[int, int] = {}
        for i, reference in enumerate(before.refs):
            thing = reference()
            if thing is not None:
                self._old[id(thing)] = i
                self._met.append(thing)  # alive from here on
                if type(thing) is Tensor:
                    self._old_storages.setdefault(id(thing.storage), i)
        self._waiting: list[Any] = []
        self._made = made

    def run(self, engine: EngineContext) -> Effects:
        """The effects.

        Raises:
            Unplannable: for what cannot be described.
        """
        effects, before = self.effects, self.before
        effects.made = [GONE if held is GONE else self._ref(held) for held in self._made]
        written = self.written()
        for i, reference in enumerate(before.refs):
            thing = reference()
            if thing is None:
                if "saved" in before.states[i] or i in written:
                    raise Unplannable("what the frame changed is gone at its end")
            elif type(thing) is Tensor:
                self._tensor_changes(i, thing)
            else:
                self._node_changes(i, thing)
        for reference, at, shown, value, memory in self.tracer.grads:
            effects.early[at] = self._early(reference(), shown, value, memory)
        while self._waiting:
            place, thing = self._waiting.pop()
            effects.templates[place] = self._template(thing)
        effects.seq = engine._seq - before.seq
        return effects

    def written(self) -> set[int]:
        """Things whose memory some instruction writes to."""
        program = self.tracer.program
        owners: set[int] = set()
        things: set[int] = set()
        for instruction in program.code:
            if type(instruction) is Write:
                owners.add(program.memory[instruction.target])
            elif type(instruction) is KernelCall and instruction.writes is not None:
                owners.add(program.memory[instruction.writes])
            elif type(instruction) is OptimizerStep:
                things.update(instruction.written)
        for number, found in program.inputs.items():
            if program.memory[number] in owners:
                things.add(found.thing)
        return things

    # References

    def _ref(self, thing: object) -> Any:
        if thing is None:
            return None
        old = self._old.get(id(thing))
        if old is not None:
            return Thing(old)
        at = self._at.get(id(thing))
        if at is None:
            at = self._at[id(thing)] = len(self.effects.templates)
            self._met.append(thing)
            self.effects.templates.append(None)
            self._waiting.append((at, thing))
        return New(at)

    def _edges(self, edges: tuple[Edge | None, ...]) -> list[Any]:
        return [None if edge is None else (self._ref(edge[0]), edge[1]) for edge in edges]

    def _watchers(self, node: Node | CopySlices) -> dict[int, Any] | None:
        if node.watchers is None:
            return None
        seen = {slot: reference() for slot, reference in node.watchers.items()}
        return {slot: self._ref(tensor) for slot, tensor in seen.items() if tensor is not None}

    def _storage(self, storage: Storage) -> Thing | New:
        old = self._old_storages.get(id(storage))
        if old is not None:
            return Thing(old)
        at = self._storage_at.get(id(storage))
        if at is None:
            at = self._storage_at[id(storage)] = len(self._storages)
            self._storages.append(storage)
            alias = storage.nbytes == 0 and storage.array.nbytes > 0
            value = self.tracer.memory(storage)
            if storage.poison is not None or (value in self.tracer.program.inputs and not alias):
                raise Unplannable("memory of before the frame is held otherwise")
            self.effects.storages.append(StorageTemplate(value, alias, storage.version))
        return New(at)

    def _version(self, storage: Storage, version: int) -> Version:
        old = self._old_storages.get(id(storage))
        if old is None or version < 0:
            return Version(None, version)
        return Version(old, version - self.before.versions[old])

    # What was there before

    def _tensor_changes(self, i: int, tensor: Tensor) -> None:
        state, changes = self.before.states[i], self.effects.changes
        same = tensor.meta is state["meta"] and tensor.offset == state["offset"]
        if not same or id(tensor.array) != state["array"] or id(tensor.storage) != state["storage"]:
            raise Unplannable("a tensor was given other data")
        if tensor.tangents is not None or tensor.storage.poison is not None:
            raise Unplannable("a tensor has tangents or is poisoned")
        changes.extend((i, name, getattr(tensor, name)) for name in _PLAIN if getattr(tensor, name) != state[name])
        for name in _REFERRING:
            thing = getattr(tensor, name)
            found = self._ref(thing)
            was = None if state[name] is None else Thing(state[name])
            if found != was:
                changes.append((i, name, found))
        count = tensor.storage.version - self.before.versions[i]
        first = self._old_storages[id(tensor.storage)]
        if count and first == i:
            self.effects.versions[i] = count
        if tensor.base is not None and tensor.seen_version != state["seen"]:
            changes.append((i, "seen_version", self._version(tensor.storage, tensor.seen_version)))

    def _node_changes(self, i: int, node: Node | CopySlices) -> None:
        state, changes = self.before.states[i], self.effects.changes
        if type(node) is Node:
            saved = None if node.saved is None else id(node.saved)
            if saved is None and state["saved"] is not None:
                changes.append((i, "saved", None))
            elif saved != state["saved"]:
                raise Unplannable("a node was given other values")
        watchers = self._watchers(node) if getattr(node, "watchers", None) else None
        was = (
            None if state["watchers"] is None else {s: Thing(n) for s, n in state["watchers"].items() if n is not None}
        )
        if (watchers or None) != (was or None):
            changes.append((i, "watchers", watchers))

    # What is new

    def _early(self, grad: Tensor | None, shown: Meta, value: int, memory: int) -> int:
        """The template of a gradient that an optimizer used, whether or not it is still there."""
        if grad is not None:
            found = self._ref(grad)
            if type(found) is New:
                return found.number
        raise Unplannable("a gradient is gone after the optimizer's step")

    def _template(self, thing: Any) -> Any:
        kind = type(thing)
        if kind is Tensor:
            return self._tensor(thing)
        if kind is Node:
            return self._node(thing)
        if kind is AccumulateGrad:
            return LeafTemplate(self._ref(thing.leaf))
        if kind is CopySlices:
            return SlicesTemplate(
                self._ref(thing.inner), thing.base, thing.view, thing.offset, self._edges(thing.edges),
                thing.seq - self.before.seq, self._watchers(thing),
            )  # fmt: skip
        raise Unplannable(f"a {kind.__name__} is left")

    def _tensor(self, tensor: Tensor) -> TensorTemplate:
        if tensor.tangents is not None:
            raise Unplannable("a tensor has tangents")
        storage = self._storage(tensor.storage)
        value = self.tracer.value(tensor.array)
        return TensorTemplate(
            tensor.meta, value, storage, self.tracer.program.offsets.get(value, tensor.offset),
            Version(None, 0) if tensor.base is None else self._version(tensor.storage, tensor.seen_version),
            {name: getattr(tensor, name) for name in _PLAIN},
            {name: self._ref(getattr(tensor, name)) for name in _REFERRING},
        )  # fmt: skip

    def _node(self, node: Node) -> NodeTemplate:
        numbers = self.tracer.numbers_of(node)
        values = [Number(numbers[i]) if i in numbers else value for i, value in enumerate(node.values)]
        saved = None
        if node.saved is not None:
            positions = node.row.op.positions
            saved = {}
            for name, entry in node.saved.items():
                at = positions.get(name)
                saved[name] = Number(numbers[at]) if at in numbers else self._kept(entry)
        index = node.position - self.begin
        if node.position == 0:
            index = -1
        elif index < 0:
            raise Unplannable("a node of another frame")
        return NodeTemplate(
            node.name, node.row, values, self._edges(node.edges), node.outs, saved, node.seq - self.before.seq,
            None if index < 0 else index, self._watchers(node),
        )  # fmt: skip

    def _kept(self, entry: Any) -> Any:
        if type(entry) is SavedTensor:
            version = self._version(entry.tensor.storage, entry.version)
            return SavedTemplate(self._ref(entry.tensor), version, entry.slot, entry.is_result)
        if type(entry) is list:
            return [self._kept(e) for e in entry]
        if isinstance(entry, (Tensor, Node)):
            raise Unplannable("a node keeps a tensor in another way")
        return entry
