"""What a frame finds: the objects that its external tensors lead to, and all of them that a computation can depend on.

The walk is deterministic, so an object of a later frame has the number that its like had when the plan was made. The
key is equal for two frames when the tape would run the same instructions for both, numbers of the frame aside.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Final, NamedTuple

from gradwire_protocol.meta import Meta

from ..autograd.inplace import CopySlices
from ..autograd.tape import AccumulateGrad, GraphNode, Node, SavedTensor
from ..autograd.tensor import Tensor

MOST_OBJECTS: Final = 20_000
"""Tensors and nodes behind the externals of a frame that a plan may know of."""


FACTS: Final = (
    "meta", "strides", "memory", "shared", "offset", "requires_grad", "retains_grad", "inference", "slot",
    "grad_dtype", "grad", "grad_fn", "base",
)  # fmt: skip
"""Of a tensor, as the key has them. Memory is numbered, as objects are; what is not there has -1 or ``None``."""


OUTDATED: Final = "what backward needs was written to"


class Unplannable(Exception):
    """There is no plan for this frame; the message is the reason, as it is counted."""


class Found(NamedTuple):
    """The objects in the order of the walk, and the key."""

    objects: list[Any]
    key: tuple[Any, ...]


def look(tensors: list[Tensor], deep: bool) -> Found:
    """Walk from the external tensors of a frame; ``deep`` goes through the graph behind them, too.

    Raises:
        Unplannable: for what no plan deals with.
    """
    objects: list[Any] = []
    at: dict[int, int] = {}
    memories: dict[int, int] = {}
    key: list[Any] = []
    nodes: list[Any] = []
    outs: dict[int, Hashable] = {}

    def number(thing: object) -> int:
        found = at.get(id(thing))
        if found is None:
            found = at[id(thing)] = len(objects)
            objects.append(thing)
        return found

    key.append(tuple([number(tensor) for tensor in tensors]))
    for thing in objects:  # which grows
        kind = type(thing)
        if kind is Tensor:
            if thing.tangents is not None:
                raise Unplannable("a tensor has tangents")
            shown, storage, base, history = thing.meta, thing.storage, thing.base, thing.history
            if storage.poison is not None:
                raise Unplannable("a tensor is poisoned")
            memory = memories.setdefault(id(storage), len(memories))
            shared = memories.setdefault(id(storage.array), len(memories))
            grad, node = thing.grad, thing._grad_fn if type(history) is tuple else history
            key.append((
                shown if shown.numel > 1 else described(shown), thing.array.strides, memory, shared,
                thing.offset if storage.nbytes == shown.nbytes else None,  # see is_part
                thing.requires_grad_flag, thing.retains_grad, thing.inference, thing.slot, thing.grad_dtype,
                -1 if grad is None else number(grad),
                -1 if node is None else number(node),
                None if base is None else (
                    number(base), thing.creation, thing.path, thing.seen_version == storage.version
                ),
            ))  # fmt: skip
        elif not deep:
            if thing.watchers:
                raise Unplannable("the gradient of a node is retained")
            key.append(kind)
        elif kind is AccumulateGrad:
            key.append((kind, number(thing.leaf)))
        elif kind is Node:
            nodes.append(thing)
            row, made = thing.row, thing.outs
            data = passed_on(thing) if row.passed_on else ()
            facts: list[Any] = [thing.name]
            for edge in thing.edges:
                facts += (None,) if edge is None else (number(edge[0]), edge[1])
            shown = outs.get(id(made))  # a plan's nodes share them
            if shown is None:
                shown = outs[id(made)] = tuple([described(out) for out in made])
            facts += (shown, *[constant(value) for value in thing.values])
            for i in data:
                facts[i - len(thing.values)] = type(thing.values[i])
            facts.append(thing.saved is None)
            for name, entry in (thing.saved or {}).items():
                if type(entry) is SavedTensor:
                    if entry.tensor.storage.version != entry.version:
                        raise Unplannable(OUTDATED)
                    facts += (name, number(entry.tensor), entry.slot, entry.is_result)
                else:
                    is_data = data and row.op.positions.get(name) in data
                    facts += (name, type(entry) if is_data else _kept(entry, number))
            facts.append(_watched(thing, number) if thing.watchers else None)
            key.append((row, tuple(facts)))  # of another length than what is known of a tensor
        elif kind is CopySlices:
            nodes.append(thing)
            key.append((
                kind, number(thing.inner), described(thing.base), described(thing.view), thing.offset,
                tuple([None if e is None else (number(e[0]), e[1]) for e in thing.edges]), _watched(thing, number),
            ))  # fmt: skip
        else:
            raise Unplannable(f"the graph has a {kind.__name__}")
        if len(objects) > MOST_OBJECTS:
            raise Unplannable(f"more than {MOST_OBJECTS:,} tensors and nodes are behind the frame")
    if nodes:  # backward goes by the order in which they were made
        key.append(tuple(sorted(range(len(nodes)), key=lambda i: nodes[i].seq)))
    return Found(objects, tuple(key))


def is_part(tensor: Tensor) -> bool:
    """Whether a tensor shows a part of its memory. Where it begins is no part of the key then: a loop over parts of a
    batch shall find its plan. A plan asks for it when it uses it."""
    return tensor.storage.nbytes != tensor.meta.nbytes


def described(shown: Meta) -> Hashable:
    """Metas are interned, but for those of one element or none, whose strides may be any."""
    return shown if shown.numel > 1 else (shown.shape, shown.stride, shown.dtype, shown.device)


def constant(value: Any) -> Hashable:
    """What a node keeps beside tensors, so that 1, 1.0 and True, 0.0 and -0.0 differ."""
    kind = type(value)
    if kind is Meta:
        return described(value)
    if kind is float or kind is complex:
        return kind, repr(value)
    if kind is tuple or kind is list:
        return kind, tuple([constant(v) for v in value])
    return kind, value


def passed_on(node: Node) -> list[int]:
    """The positions of a node's numbers that are data for a plan, as the numbers of the frame are: its derivative only
    gives them to other ops. So an episode's graph is one graph, whichever actions were taken."""
    found = []
    for name in node.row.passed_on:
        at = node.row.op.positions[name]
        value = node.values[at]
        if type(value) is int or type(value) is float:
            kept = value if node.saved is None else node.saved.get(name, value)
            if type(kept) is type(value) and kept == value:
                found.append(at)
    return found


def _kept(entry: Any, number: Callable[[object], int]) -> Hashable:
    kind = type(entry)
    if kind is SavedTensor:
        if entry.tensor.storage.version != entry.version:
            raise Unplannable(OUTDATED)
        return number(entry.tensor), entry.slot, entry.is_result
    if kind is list:
        return tuple([_kept(e, number) for e in entry])
    return constant(entry)


def _watched(node: GraphNode, number: Callable[[object], int]) -> Hashable:
    if not node.watchers:
        return None
    seen = [(slot, reference()) for slot, reference in node.watchers.items()]
    return tuple([(slot, -1 if tensor is None else number(tensor)) for slot, tensor in seen])
