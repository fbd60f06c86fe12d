"""Creates an image of a session without changing it: the histories of views are not updated."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec
import numpy as np

from gradwire_protocol.frames import Problem
from gradwire_protocol.meta import Meta

from ..autograd.client_callbacks import ClientNode
from ..autograd.failures import Poison
from ..autograd.inplace import CopySlices
from ..autograd.regions import RecomputedRegion
from ..autograd.tape import AccumulateGrad, Node, SavedTensor
from ..autograd.tensor import Storage, Tensor
from ..session.session import Session
from . import facts
from .facts import Image, NotImageable
from .values import encode


def take(session: Session) -> Image:
    """An image of the whole session between two frames.

    It contains everything that later frames can depend on: ids, poisoned and undefined ones included, memory with its
    sharing and versions, gradients, names, random state, default dtype, the live graph with its saved values,
    checkpoint regions, the clients with their kept replies, incomplete uploads, known structures and counters. It omits
    cycles that only a garbage collection would free.

    Raises:
        NotImageable: while a backward waits for its client, a level of forward mode is open, or tensors are inside a
            vmap (or a custom Function's graph from inside a vmap is alive). All three end with the program's call.
    """
    engine = session.engine
    if engine.dual_levels or engine.duals:
        raise NotImageable("a level of forward mode is open")
    if engine.batched:
        raise NotImageable(f"{engine.batched} tensors are inside a vmap")
    for group in engine.groups.values():
        if group.needed:
            raise NotImageable(f"ranks of group {group.spec.name!r} have not committed what this one sent to them")
    return _Taker(session).image()


def _groups(session: Session) -> list[facts.GroupRow]:
    rows = []
    for group in session.engine.groups.values():
        if not group.failed:
            spec, counts = group.spec, group.counts()
            members = [(member.session, member.worker) for member in spec.members]
            rows.append(facts.GroupRow(
                spec.name, spec.rank, spec.world_size, spec.token, spec.timeout_s, members, counts.completed,
                counts.collectives, list(counts.sent), list(counts.received), group.meets,
            ))  # fmt: skip
    return rows


class _Numbered:
    """Numbers objects in the order of discovery, and collects the rows of the processed ones."""

    def __init__(self) -> None:
        self.at: dict[int, int] = {}
        self.met: list[Any] = []  # also keeps the objects alive
        self.rows: list[Any] = []

    def number(self, thing: Any) -> int:
        found = self.at.get(id(thing))
        if found is None:
            found = self.at[id(thing)] = len(self.met)
            self.met.append(thing)
        return found


def _number_of_meta(table: _Numbered, alike: dict[tuple[Any, ...], Meta], meta: Meta) -> int:
    return table.number(alike.setdefault((meta.shape, meta.stride, meta.dtype, meta.device), meta))


class _Taker:
    def __init__(self, session: Session) -> None:
        self.session = session
        self.arrays: dict[str, np.ndarray[Any, Any]] = {}
        self.devices: list[str] = []
        self.pieces: list[Any] = []
        names = ("memories", "storages", "tensors", "nodes", "saved", "kept", "regions", "problems", "metas")
        self.tables = {name: _Numbered() for name in names}
        # Avoid a cycle through this object, which would keep all discovered objects alive until a garbage collection.
        self.number: dict[str, Callable[[Any], int]] = {name: table.number for name, table in self.tables.items()}
        self.number["metas"] = partial(_number_of_meta, self.tables["metas"], {})

    def image(self) -> Image:
        session, engine, number = self.session, self.session.engine, self.number
        ids = [self._id(tensor_id, held) for tensor_id, held in session.ids.items()]
        names = [(name, number["tensors"](tensor)) for name, tensor in engine.names.items()]
        clients = [self._client(client) for client in session.clients.values()]
        handles = self._follow_all()
        self._settle_weak_references()
        uploads = []
        for i, ((client, transfer), (data, filled)) in enumerate(session.uploads.items()):
            uploads.append(
                facts.UploadRow(client, transfer, len(data))
            )  # without the missing bytes, which may be gigabytes
            self.arrays[f"u{i}"] = np.frombuffer(data, np.uint8, filled)
        rows = {name: self.tables[name].rows for name in ("metas", "storages", "tensors", "nodes", "saved", "kept")}
        state = facts.State(
            format=facts.FORMAT, device=session.device, default_dtype=engine.default_dtype.name,
            generator=engine.generator.get_state(), seq=engine._seq, position=engine.position, peak=engine.account.peak,
            frames_applied=session.frames_applied, ops_run=session.ops_run, memories=self.devices, ids=ids, names=names,
            handles=handles, clients=clients, uploads=uploads, structures=self._structures(),
            regions=self.tables["regions"].rows, problems=self.tables["problems"].rows,
            compiled=engine.compiled, coarse_products=engine.coarse_products, groups=_groups(session), **rows,
        )  # fmt: skip
        self.arrays["replies"] = _joined(self.pieces)
        return Image(msgspec.to_builtins(state), self.arrays)

    # Discovery of all reachable objects

    def _follow_all(self) -> list[tuple[int, int]]:
        look: dict[str, Callable[[Any], Any]] = {
            "tensors": self._tensor, "nodes": self._node, "saved": self._saved, "kept": self._kept,
            "regions": self._region, "storages": self._storage, "problems": self._problem, "metas": self._meta,
            "memories": lambda _: None,
        }  # fmt: skip
        handles: list[tuple[int, int]] = []
        waiting = list(self.session.engine.handles.values())
        while True:
            moved = False
            for name, see in look.items():
                table = self.tables[name]
                for i in range(len(table.rows), len(table.met)):
                    moved = True
                    table.rows.append(see(table.met[i]))
            if moved:
                continue
            # A handle is held weakly: it counts only if its tensor was discovered.
            met, still = self.tables["tensors"].at, []
            for reference, named in waiting:
                at = met.get(id(reference()))
                if at is None:
                    still.append((reference, named))
                elif type(named) is RecomputedRegion:
                    handles.append((at, self.number["regions"](named)))
                else:
                    raise NotImageable("a backward waits for its client, between two of its callbacks")
            if len(still) == len(waiting):
                return handles
            waiting = still

    def _refer(self, value: Any) -> dict[str, Any] | None:
        if type(value) is Meta:
            return {"metas": self.number["metas"](value)}
        if type(value) is SavedTensor:
            return {"kept": self.number["kept"](value)}
        if isinstance(value, Tensor):
            return {"tensors": self.number["tensors"](value)}
        return None

    # One row

    def _id(self, tensor_id: int, held: Tensor | Poison | None) -> tuple[int, str, int]:
        if held is None:
            return tensor_id, "none", 0
        if isinstance(held, Poison):
            return tensor_id, "poison", self.number["problems"](held.problem)
        return tensor_id, "tensor", self.number["tensors"](held)

    def _tensor(self, tensor: Tensor) -> facts.TensorRow:
        if type(tensor) is not Tensor:
            raise NotImageable("a tensor is inside a vmap")
        number, meta = self.number, tensor.meta
        row = facts.TensorRow(number["storages"](tensor.storage), number["metas"](meta), tensor.offset)
        row.flags = (
            tensor.requires_grad_flag * facts.REQUIRES_GRAD
            | tensor.retains_grad * facts.RETAINS_GRAD
            | tensor.inference * facts.INFERENCE
        )
        row.seen_version = 0 if tensor.base is None else tensor.seen_version  # meaningless without a base
        row.slot, row.creation = tensor.slot, tensor.creation
        row.node = None if tensor._grad_fn is None else number["nodes"](tensor._grad_fn)
        row.base = None if tensor.base is None else number["tensors"](tensor.base)
        row.grad = None if tensor.grad is None else number["tensors"](tensor.grad)
        row.grad_dtype = None if tensor.grad_dtype is None else tensor.grad_dtype.name
        row.path = encode(tensor.path, self._refer)
        size = meta.dtype.itemsize
        steps = tuple([step // size for step in tensor.array.strides])
        if meta.numel and steps != meta.stride:
            row.steps = steps
        return row

    def _storage(self, storage: Storage) -> facts.StorageRow:
        memories = self.tables["memories"]
        memory = memories.number(storage.array)
        if memory == len(self.devices):
            backend = self.session.engine.backends.holding(storage.array)
            self.devices.append(backend.device)
            self.arrays[f"m{memory}"] = backend.to_host(storage.memory(backend))
        poison = None if storage.poison is None else self.number["problems"](storage.poison)
        alias = storage.nbytes == 0 and storage.array.nbytes > 0
        return facts.StorageRow(memory, alias, storage.version, poison)

    def _meta(self, meta: Meta) -> facts.MetaRow:
        return facts.MetaRow(meta.shape, meta.stride, meta.dtype.name, meta.device)

    def _node(self, node: Any) -> facts.AnyNodeRow:
        number = self.number
        if type(node) is AccumulateGrad:
            return facts.LeafRow(number["tensors"](node.leaf))
        edges = [None if edge is None else (number["nodes"](edge[0]), edge[1]) for edge in node.edges]
        if type(node) is CopySlices:
            inner, base, view = number["nodes"](node.inner), number["metas"](node.base), number["metas"](node.view)
            return facts.SlicesRow(inner, base, view, node.offset, edges, node.seq, None)
        outs = [number["metas"](out) for out in node.outs]
        if type(node) is ClientNode:
            if node.maps is not None:
                raise NotImageable(f"the graph has {node.name}, a Function that was applied inside a vmap")
            return facts.ClientNodeRow(node.name, edges, outs, node.seq, node.position, None)
        if type(node) is not Node:
            raise NotImageable(f"the graph has a node of the kind {type(node).__name__}")
        values = [encode(value, self._refer) for value in node.values]
        saved = None if node.saved is None else number["saved"](node.saved)
        return facts.NodeRow(node.name, node.row.op.name, values, edges, outs, saved, node.seq, node.position, None)

    def _saved(self, saved: dict[str, Any]) -> list[tuple[str, Any]]:
        return [(name, encode(entry, self._refer)) for name, entry in saved.items()]

    def _kept(self, kept: SavedTensor) -> facts.SavedRow:
        return facts.SavedRow(self.number["tensors"](kept.tensor), kept.version, kept.slot, kept.is_result)

    def _region(self, region: RecomputedRegion) -> facts.RegionRow:
        if region.source is not None:
            for node in region.nodes():
                self.number["nodes"](node)
        return facts.RegionRow(None if region.source is None else self.number["regions"](region.source), [])

    def _problem(self, problem: Problem) -> facts.ProblemRow:
        extra = encode(problem.extra, self._refer)
        return facts.ProblemRow(
            problem.code, problem.detail, problem.op, problem.seq, problem.index, problem.retryable, extra
        )

    # Weak references to discovered objects

    def _settle_weak_references(self) -> None:
        tensors, nodes, regions = (self.tables[name] for name in ("tensors", "nodes", "regions"))
        for tensor, row in zip(tensors.met, tensors.rows, strict=True):
            if tensor.accumulator is not None:
                row.accumulator = nodes.at.get(id(tensor.accumulator()))
        for node, row in zip(nodes.met, nodes.rows, strict=True):
            if node.watchers:
                watching = [(slot, tensors.at.get(id(reference()))) for slot, reference in node.watchers.items()]
                row.watchers = [(slot, at) for slot, at in watching if at is not None] or None
        for region, row in zip(regions.met, regions.rows, strict=True):
            row.nodes = [nodes.at.get(id(node)) for node in region.entries()]

    # Clients and structures

    def _client(self, client: Any) -> facts.ClientRow:
        failed = client.failed_backward
        replies = []
        for seq, (reply, buffers) in client.replies.items():
            message = msgspec.msgpack.encode(reply)
            self.pieces.extend((message, *buffers))
            replies.append((seq, [len(message), *(b.nbytes for b in buffers)]))
        return facts.ClientRow(
            client.number, client.expected, client.counter, client.instance, client.epoch,
            None if failed is None else self.number["problems"](failed),
            [self.number["storages"](storage) for storage in client.failed_writes], replies,
        )  # fmt: skip

    def _structures(self) -> list[facts.StructureRow]:
        known = self.session.structures
        self.arrays["structures"] = _joined([entry.encoded for entry in known.values()])
        return [
            facts.StructureRow(h.hex(), len(entry.encoded), entry.human, list(entry.lines))
            for h, entry in known.items()
        ]


def _joined(pieces: list[Any]) -> np.ndarray[Any, Any]:
    return np.frombuffer(bytearray().join(pieces), np.uint8)
