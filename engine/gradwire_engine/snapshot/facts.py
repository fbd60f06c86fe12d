"""The format of an image: tables whose rows refer to each other by index, as plain data for MessagePack and JSON.

The tables are flat, so a chain of 100,000 ops is 100,000 rows without recursion.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import msgspec
import numpy as np

from gradwire_protocol.errors import GradwireError

FORMAT: Final = 1

Shape = tuple[int, ...]


class NotImageable(GradwireError, RuntimeError):
    """The session has transient state that an image cannot represent; the message names it."""


@dataclass(frozen=True)
class Image:
    """A session at a frame boundary.

    Attributes:
        facts: a :class:`State` or :class:`Detached` as built-in types: dicts with string keys, lists, strings, 64-bit
            numbers, booleans, ``None``.
        arrays: flat uint8 arrays in host memory by name: each memory block of the session once, and the bytes of kept
            replies, incomplete uploads and known structures. They may share memory with the session, so encode them
            before it continues.
    """

    facts: dict[str, Any]
    arrays: dict[str, np.ndarray[Any, Any]]

    @property
    def nbytes(self) -> int:
        """The total size of the arrays."""
        return sum(array.nbytes for array in self.arrays.values())


class MetaRow(msgspec.Struct, array_like=True):
    """Shape, strides in elements, dtype and device."""

    shape: Shape
    stride: Shape
    dtype: str
    device: str


class StorageRow(msgspec.Struct, array_like=True):
    """A storage.

    Attributes:
        memory: its memory: the array ``m<memory>``.
        alias: whether it belongs to a ``Tensor.data``, whose memory is not counted.
        poison: the problem of a failed write that the client does not know yet.
    """

    memory: int
    alias: bool
    version: int
    poison: int | None


class TensorRow(msgspec.Struct, array_like=True, omit_defaults=True):
    """A tensor. ``flags`` are the bits below. ``steps`` are the strides of its array in elements, if they differ from
    the meta's: dimensions of size 1 leave them open, and the array library's algorithms may depend on them.
    """

    storage: int
    meta: int
    offset: int
    flags: int = 0
    seen_version: int = 0
    slot: int = 0
    node: int | None = None
    base: int | None = None
    creation: int = 0
    grad: int | None = None
    grad_dtype: str | None = None
    accumulator: int | None = None
    path: Any = None
    steps: Shape | None = None


REQUIRES_GRAD: Final = 1
RETAINS_GRAD: Final = 2
INFERENCE: Final = 4

EdgeRow = tuple[int, int] | None


class NodeRow(msgspec.Struct, array_like=True, tag="node"):
    """One recorded operation. ``values`` are in the form of :mod:`.values`; ``saved`` is a row of that table."""

    name: str
    op: str
    values: list[Any]
    edges: list[EdgeRow]
    outs: list[int]
    saved: int | None
    seq: int
    position: int
    watchers: list[tuple[int, int]] | None


class LeafRow(msgspec.Struct, array_like=True, tag="leaf"):
    """The gradient accumulator of a leaf."""

    leaf: int


class SlicesRow(msgspec.Struct, array_like=True, tag="slices"):
    """The history of a base after an in-place write to a view of it."""

    inner: int
    base: int
    view: int
    offset: int
    edges: list[EdgeRow]
    seq: int
    watchers: list[tuple[int, int]] | None


class ClientNodeRow(msgspec.Struct, array_like=True, tag="client"):
    """The node of a custom Function, whose derivative runs in the client."""

    name: str
    edges: list[EdgeRow]
    outs: list[int]
    seq: int
    position: int
    watchers: list[tuple[int, int]] | None


AnyNodeRow = NodeRow | LeafRow | SlicesRow | ClientNodeRow


class SavedRow(msgspec.Struct, array_like=True):
    """A tensor saved for backward."""

    tensor: int
    version: int
    slot: int
    is_result: bool


class RegionRow(msgspec.Struct, array_like=True):
    """A checkpoint region: the region that it recomputes, and its nodes; ``None`` for a released node."""

    source: int | None
    nodes: list[int | None]


class ProblemRow(msgspec.Struct, array_like=True):
    """A problem; ``extra`` in the form of :mod:`.values`."""

    code: str
    detail: str
    op: str
    seq: int
    index: int
    retryable: bool
    extra: Any


class ClientRow(msgspec.Struct, array_like=True):
    """A client. ``replies`` are its kept replies, oldest first: the frame number, and the sizes of the reply in
    MessagePack and of its buffers. Their bytes follow each other in the array ``replies``, client after client."""

    number: int
    expected: int
    counter: int
    instance: str
    epoch: int
    failed_backward: int | None
    failed_writes: list[int]
    replies: list[tuple[int, list[int]]]


class UploadRow(msgspec.Struct, array_like=True):
    """An incomplete upload. The received bytes are the array ``u<row>``."""

    client: int
    transfer: int
    total: int


class StructureRow(msgspec.Struct, array_like=True):
    """A known structure: its hash in hexadecimal, its size in the array ``structures``, and its records' lines."""

    hash: str
    nbytes: int
    human: bool
    lines: list[str] = []


class GroupRow(msgspec.Struct, array_like=True):
    """An open group of sessions: what it was opened with, and how far its collectives have come.

    Attributes:
        members: (session, worker) of each rank.
        meets: see :attr:`.runtime.groups.Group.meets`.
    """

    name: str
    rank: int
    world_size: int
    token: str
    timeout_s: float
    members: list[tuple[str, str]]
    completed: int
    collectives: int
    sent: list[int]
    received: list[int]
    meets: bool = False


class State(msgspec.Struct):
    """The whole state of a session.

    Attributes:
        memories: the device of each memory block; the bytes are the arrays ``m0``, ``m1``, ...
        saved: the saved values of nodes by name; several nodes may share an entry.
        ids: (id, "tensor" | "poison" | "none", row) in the session's order.
        names: (name, tensor).
        handles: (tensor, region).
        structures: known structures, least recently used first.
        generator: seed and offset of the random number generator.
        seq: the number of the newest graph node.
        compiled: whether compiled kernels are in use.
        coarse_products: whether a GPU may round float32 to TF32 in products.
    """

    format: int
    device: str
    default_dtype: str
    generator: tuple[int, int]
    seq: int
    position: int
    peak: int
    frames_applied: int
    ops_run: int
    metas: list[MetaRow]
    memories: list[str]
    storages: list[StorageRow]
    tensors: list[TensorRow]
    nodes: list[AnyNodeRow]
    saved: list[list[tuple[str, Any]]]
    kept: list[SavedRow]
    regions: list[RegionRow]
    problems: list[ProblemRow]
    ids: list[tuple[int, str, int]]
    names: list[tuple[str, int]]
    handles: list[tuple[int, int]]
    clients: list[ClientRow]
    uploads: list[UploadRow]
    structures: list[StructureRow]
    compiled: bool = False
    coarse_products: bool = False
    groups: list[GroupRow] = []


# msgspec builds what it knows of a class at the first use, and two threads that do so at the same time crash: sessions
# that are recovered in a new process. So the first use is here.
msgspec.json.Decoder(State)


class ConstantRow(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """A tensor without history: a leaf, or a constant.

    Attributes:
        memory: its memory, the array ``m<memory>``, which tensors may share.
        stride, offset: in elements of its dtype.
        grad: the row of its gradient.
    """

    memory: int
    shape: list[int]
    stride: list[int]
    offset: int
    dtype: str
    device: str
    requires_grad: bool
    grad: int | None


class Detached(msgspec.Struct, forbid_unknown_fields=True):
    """Values, names and random state of a session, without a graph.

    Attributes:
        ids: (id, row of ``tensors``).
        names: (name, row of ``tensors``).
        memories: the size of each memory block in bytes.
    """

    format: int
    device: str
    default_dtype: str
    generator: tuple[int, int]
    memories: list[int]
    tensors: list[ConstantRow]
    ids: list[tuple[int, int]]
    names: list[tuple[str, int]]


msgspec.json.Decoder(Detached)
