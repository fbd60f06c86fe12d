"""The form of an image: tables whose rows name each other by number. It is plain data, for MessagePack and JSON alike.

Nothing is nested by the shape of the graph, so a chain of 100,000 ops is 100,000 rows and no recursion.
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
    """Something transient is alive in the session, which no image can hold: the message says what."""


@dataclass(frozen=True)
class Image:
    """A session at a frame boundary.

    Attributes:
        facts: a :class:`State` or :class:`Detached` as built-in types: dicts with text keys, lists, text, numbers that
            fit into 64 bits, booleans, ``None``.
        arrays: flat uint8 arrays in host memory by name: each piece of memory of the session once, whoever shares it,
            and the bytes of kept replies, of unfinished uploads and of known structures. They may share memory with
            the session: encode them before it goes on.
    """

    facts: dict[str, Any]
    arrays: dict[str, np.ndarray[Any, Any]]

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays together."""
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
        memory: which memory it shows: the array ``m<memory>``.
        alias: whether it is a ``Tensor.data``'s, which is not counted.
        poison: a problem, while the client does not know that a write failed.
    """

    memory: int
    alias: bool
    version: int
    poison: int | None


class TensorRow(msgspec.Struct, array_like=True, omit_defaults=True):
    """A tensor: its attributes, other rows by number. ``flags`` are the bits below. ``steps`` are the strides of its
    array, in elements, where they are not those of the meta: extents of 1 leave them open, and the array library may
    choose its way by them.
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
    """Where a gradient arrives at a leaf: the tensor."""

    leaf: int


class SlicesRow(msgspec.Struct, array_like=True, tag="slices"):
    """The history of a base after a view of it was written to."""

    inner: int
    base: int
    view: int
    offset: int
    edges: list[EdgeRow]
    seq: int
    watchers: list[tuple[int, int]] | None


class ClientNodeRow(msgspec.Struct, array_like=True, tag="client"):
    """A custom Function's node: its derivative is the client's."""

    name: str
    edges: list[EdgeRow]
    outs: list[int]
    seq: int
    position: int
    watchers: list[tuple[int, int]] | None


AnyNodeRow = NodeRow | LeafRow | SlicesRow | ClientNodeRow


class SavedRow(msgspec.Struct, array_like=True):
    """A tensor kept for backward."""

    tensor: int
    version: int
    slot: int
    is_result: bool


class RegionRow(msgspec.Struct, array_like=True):
    """A region: the one it computes again, and its nodes; ``None`` for one that is gone."""

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
    """A client. ``replies`` are the kept ones, oldest first: the frame, and how many bytes of the array ``replies`` are
    the reply in MessagePack and each of its buffers. They lie there one after another, client after client."""

    number: int
    expected: int
    counter: int
    instance: str
    epoch: int
    failed_backward: int | None
    failed_writes: list[int]
    replies: list[tuple[int, list[int]]]


class UploadRow(msgspec.Struct, array_like=True):
    """An unfinished upload. What has arrived of it is the array ``u<row>``."""

    client: int
    transfer: int
    total: int


class StructureRow(msgspec.Struct, array_like=True):
    """A known structure: its hash in hexadecimal, and how many of the bytes of the array ``structures`` are its own."""

    hash: str
    nbytes: int
    human: bool


class State(msgspec.Struct):
    """All of a session.

    Attributes:
        memories: the device of each; the bytes are the arrays ``m0``, ``m1``, ...
        saved: what a node keeps, by name; more than one node may have the same.
        ids: (id, "tensor" | "poison" | "none", row) in the order in which the session has them.
        names: (name, tensor).
        handles: (tensor, region).
        structures: the one that would be forgotten first comes first.
        generator: seed and offset.
        seq: the number of the newest node of the graph.
        compiled: whether compiled kernels ran.
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


class ConstantRow(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """A tensor without history: a leaf, or a constant.

    Attributes:
        memory: the array ``m<memory>``; tensors of the same memory share it.
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
        memories: bytes of each piece of memory.
    """

    format: int
    device: str
    default_dtype: str
    generator: tuple[int, int]
    memories: list[int]
    tensors: list[ConstantRow]
    ids: list[tuple[int, int]]
    names: list[tuple[str, int]]
