"""Restores a session from an image."""

from __future__ import annotations

from typing import Any
from weakref import ref

import msgspec
import numpy as np

from gradwire_protocol import dtypes
from gradwire_protocol.errors import VersionMismatch
from gradwire_protocol.frames import Problem, Reply, Structure
from gradwire_protocol.meta import meta

from ..autograd.client_callbacks import ClientNode
from ..autograd.engine import Engine
from ..autograd.failures import Poison
from ..autograd.inplace import CopySlices
from ..autograd.regions import RecomputedRegion
from ..autograd.registry import row
from ..autograd.tape import AccumulateGrad, Node, SavedTensor
from ..autograd.tensor import Storage, Tensor
from ..ops.callbacks import let_name
from ..runtime.arrays import Array
from ..runtime.backends import Backend, Backends
from ..runtime.groups import Counts, Group, GroupSpec, Member
from ..runtime.memory import Limits
from ..session.clients import Client
from ..session.liveness import last_uses
from ..session.session import Session
from ..session.structures import Known, bytes_of_lines, decoded_bytes
from . import facts
from .facts import Image
from .values import decode


def restore(image: Image, limits: Limits | None = None, backends: Backends | None = None) -> Session:
    """A session that continues exactly like the original one.

    The image is trusted, because it is this server's own. Its arrays are copied. ``limits`` apply to later frames, not
    to the content of the image.

    Raises:
        VersionMismatch: for an image of another format.
        DeviceError: when this machine lacks a device.
        UnknownOp: when this version lacks an op of the graph.
    """
    if image.facts.get("format") != facts.FORMAT:
        raise VersionMismatch(f"the image has format {image.facts.get('format')!r}, not {facts.FORMAT}")
    state = msgspec.convert(image.facts, facts.State)
    session = Session(limits, state.device, state.default_dtype, backends=backends)
    _Restorer(session, state, image.arrays).run()
    return session


class _Restorer:
    """Creates all objects first and then connects them, so that their order does not matter."""

    def __init__(self, session: Session, state: facts.State, arrays: dict[str, np.ndarray[Any, Any]]) -> None:
        self.session = session
        self.engine: Engine = session.engine
        self.state = state
        self.arrays = arrays
        self.tables: dict[str, list[Any]] = {}

    def run(self) -> None:
        state, tables, engine = self.state, self.tables, self.engine
        tables["metas"] = [meta(m.shape, dtypes.BY_NAME[m.dtype], m.device, m.stride) for m in state.metas]
        tables["problems"] = [
            Problem(p.code, p.detail, p.op, p.seq, p.index, p.retryable, decode(p.extra, tables))
            for p in state.problems
        ]
        tables["storages"] = self._storages()
        tables["tensors"] = self._tensors()
        tables["kept"] = [self._kept(row) for row in state.kept]
        tables["saved"] = [{name: decode(entry, tables) for name, entry in saved} for saved in state.saved]
        tables["nodes"] = [self._node(row) for row in state.nodes]
        for node, node_row in zip(tables["nodes"], state.nodes, strict=True):
            self._connect(node, node_row)
        for tensor, tensor_row in zip(tables["tensors"], state.tensors, strict=True):
            self._relate(tensor, tensor_row)
        self._regions()
        self._session()
        engine.generator.set_state(state.generator)
        engine._seq, engine.position = state.seq, state.position
        engine.compiled = state.compiled
        engine.coarse_products = state.coarse_products
        engine.account.peak = max(state.peak, engine.account.live)

    def _storages(self) -> list[Storage]:
        engine, memories, storages = self.engine, [], []
        for i, device in enumerate(self.state.memories):
            memories.append(own_memory(engine.backends[device], self.arrays[f"m{i}"]))
        for storage_row in self.state.storages:
            memory = memories[storage_row.memory]
            storage = blank(Storage)
            storage.array, storage._memory, storage.account = memory, memory, engine.account
            storage.nbytes = 0 if storage_row.alias else int(memory.nbytes)
            storage.born = engine.account.frame
            storage.version = storage_row.version
            storage.poison = None if storage_row.poison is None else self.tables["problems"][storage_row.poison]
            engine.account.add(storage.nbytes)
            storages.append(storage)
        return storages

    def _tensors(self) -> list[Tensor]:
        engine, metas, storages = self.engine, self.tables["metas"], self.tables["storages"]
        tensors = []
        for tensor_row in self.state.tensors:
            shown, storage = metas[tensor_row.meta], storages[tensor_row.storage]
            backend = engine.backends[shown.device]
            steps = shown.stride if tensor_row.steps is None else tensor_row.steps
            array = backend.view(storage._memory, shown.shape, steps, tensor_row.offset, shown.dtype)
            tensors.append(Tensor(engine, array, shown, storage, tensor_row.offset))
        return tensors

    def _kept(self, kept: facts.SavedRow) -> SavedTensor:
        saved = blank(SavedTensor)
        saved.tensor, saved.version = self.tables["tensors"][kept.tensor], kept.version
        saved.slot, saved.is_result = kept.slot, kept.is_result
        return saved

    # The graph

    def _node(self, known: facts.AnyNodeRow) -> Any:
        tables, account = self.tables, self.engine.account
        if isinstance(known, facts.LeafRow):
            return AccumulateGrad(tables["tensors"][known.leaf])
        if isinstance(known, facts.SlicesRow):
            copied = blank(CopySlices)
            copied.base, copied.view = tables["metas"][known.base], tables["metas"][known.view]
            copied.offset, copied.seq, copied.account = known.offset, known.seq, account
            account.nodes += 1
            return copied
        outs = tuple([tables["metas"][i] for i in known.outs])
        if isinstance(known, facts.ClientNodeRow):
            return ClientNode(known.name, (), outs, known.seq, account, known.position)
        values = [decode(value, tables) for value in known.values]
        node = Node(known.name, row(known.op), values, (), outs, known.seq, account, known.position)
        node.saved = None if known.saved is None else tables["saved"][known.saved]
        return node

    def _connect(self, node: Any, known: facts.AnyNodeRow) -> None:
        if isinstance(known, facts.LeafRow):
            return
        nodes, tensors = self.tables["nodes"], self.tables["tensors"]
        if isinstance(known, facts.SlicesRow):
            node.inner = nodes[known.inner]
        node.edges = tuple([None if edge is None else (nodes[edge[0]], edge[1]) for edge in known.edges])
        node.watchers = None if known.watchers is None else {slot: ref(tensors[at]) for slot, at in known.watchers}

    def _relate(self, tensor: Tensor, known: facts.TensorRow) -> None:
        tensors, nodes = self.tables["tensors"], self.tables["nodes"]
        tensor.requires_grad_flag = bool(known.flags & facts.REQUIRES_GRAD)
        tensor.retains_grad = bool(known.flags & facts.RETAINS_GRAD)
        tensor.inference = bool(known.flags & facts.INFERENCE)
        tensor.seen_version, tensor.slot, tensor.creation = known.seen_version, known.slot, known.creation
        tensor._grad_fn = None if known.node is None else nodes[known.node]
        tensor.base = None if known.base is None else tensors[known.base]
        tensor.grad = None if known.grad is None else tensors[known.grad]
        tensor.grad_dtype = None if known.grad_dtype is None else dtypes.BY_NAME[known.grad_dtype]
        tensor.path = decode(known.path, self.tables)
        tensor.accumulator = None if known.accumulator is None else ref(nodes[known.accumulator])

    def _regions(self) -> None:
        """Create the regions in the order of their sources: a region follows the one that it recomputes."""
        known, nodes = self.state.regions, self.tables["nodes"]
        made: dict[int, RecomputedRegion] = {}
        for start in range(len(known)):
            line = []
            at: int | None = start
            while at is not None and at not in made:
                line.append(at)
                at = known[at].source
            for i in reversed(line):
                source = known[i].source
                entries = [None if n is None else nodes[n] for n in known[i].nodes]
                made[i] = RecomputedRegion.resumed(None if source is None else made[source], entries)
        for tensor, region in self.state.handles:
            let_name(self.engine, self.tables["tensors"][tensor], made[region])

    # The session

    def _session(self) -> None:
        session, state, tensors = self.session, self.state, self.tables["tensors"]
        for tensor_id, kind, at in state.ids:
            if kind == "tensor":
                session.ids[tensor_id] = tensors[at]
            else:
                session.ids[tensor_id] = Poison(self.tables["problems"][at]) if kind == "poison" else None
        self.engine.names.update((name, tensors[at]) for name, at in state.names)
        for kept in state.groups:
            members = tuple([Member(*member) for member in kept.members])
            spec = GroupSpec(kept.name, kept.rank, kept.world_size, kept.token, kept.timeout_s, members)
            counts = Counts(kept.completed, kept.collectives, tuple(kept.sent), tuple(kept.received))
            self.engine.groups[kept.name] = Group(spec, counts, keeps=True, meets=kept.meets)
        session.frames_applied, session.ops_run = state.frames_applied, state.ops_run
        replies = _Pieces(self.arrays["replies"])
        session.clients = {known.number: self._client(known, replies) for known in state.clients}
        for i, upload in enumerate(state.uploads):
            whole, arrived = np.empty(upload.total, np.uint8), self.arrays[f"u{i}"]
            whole[: len(arrived)] = arrived
            session.uploads[upload.client, upload.transfer] = whole.data, len(arrived)
        pieces = _Pieces(self.arrays["structures"])
        for known in state.structures:
            encoded = pieces.next(known.nbytes)
            structure = (msgspec.json if known.human else msgspec.msgpack).decode(encoded, type=Structure)
            session.structures[bytes.fromhex(known.hash)] = Known(
                structure, last_uses(structure), encoded, known.human,
                decoded_bytes(encoded, known.human) + bytes_of_lines(known.lines), tuple(known.lines),
            )  # fmt: skip

    def _client(self, known: facts.ClientRow, pieces: _Pieces) -> Client:
        problems, storages = self.tables["problems"], self.tables["storages"]
        client = Client(known.number, known.expected, known.counter, known.instance, known.epoch)
        client.failed_backward = None if known.failed_backward is None else problems[known.failed_backward]
        client.failed_writes = [storages[i] for i in known.failed_writes]
        for _, (size, *buffers) in known.replies:
            reply = msgspec.msgpack.decode(pieces.next(size), type=Reply)
            client.keep(reply, [memoryview(bytearray(pieces.next(n))) for n in buffers])
        return client


class _Pieces:
    """Splits concatenated byte strings."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self._left = memoryview(array)  # type: ignore[arg-type]

    def next(self, size: int) -> bytes:
        found, self._left = bytes(self._left[:size]), self._left[size:]
        return found


def own_memory(backend: Backend, array: np.ndarray[Any, Any]) -> Array:
    """A private copy of the bytes in the backend's memory."""
    return backend.from_host(array.copy())


def blank(kind: Any) -> Any:
    """An object without attributes, which the caller sets."""
    return object.__new__(kind)
