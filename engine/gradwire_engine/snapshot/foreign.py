"""Sessions as files for exchange: images without a graph, and their validation."""

from __future__ import annotations

from math import prod
from typing import Any, Final

import msgspec
import numpy as np

from gradwire_protocol import dtypes
from gradwire_protocol.dtypes import DType
from gradwire_protocol.errors import DeviceError, LimitExceeded, MalformedFrame
from gradwire_protocol.frames import ID_BITS, MAX_ID
from gradwire_protocol.meta import Meta, meta

from ..autograd.tensor import Storage, Tensor
from ..runtime.backends import Backends
from ..runtime.memory import Limits
from ..session.clients import Client
from ..session.session import CLIENTS_KEPT, Session
from . import facts
from .facts import Image
from .restoring import own_memory

MOST_DIMENSIONS: Final = 64
"""NumPy's limit."""

_COUNTER: Final = (1 << ID_BITS) - 1
_WORD: Final = 1 << 64


def detached(session: Session) -> Image:
    """An image for export: tensors as leaves and constants with their gradients, names and random state.

    It has no graph, no clients and no unfinished state. Failed results and tensors inside a vmap are omitted. Views
    still share memory.
    """
    engine = session.engine
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    memories: dict[int, int] = {}
    sizes: list[int] = []
    numbers: dict[int, int] = {}
    tensors: list[Tensor] = []

    def number(tensor: Tensor) -> int:
        at = numbers.setdefault(id(tensor), len(tensors))
        if at == len(tensors):
            tensors.append(tensor)
        return at

    ids = [(tensor_id, number(held)) for tensor_id, held in session.ids.items() if type(held) is Tensor]
    names = [(name, number(tensor)) for name, tensor in engine.names.items() if type(tensor) is Tensor]
    rows = []
    for tensor in tensors:  # grows by gradients during the loop
        storage, shown = tensor.storage, tensor.meta
        at = memories.setdefault(id(storage.array), len(sizes))
        if at == len(sizes):
            backend = engine.backends[shown.device]
            arrays[f"m{at}"] = backend.to_host(storage.memory(backend))
            sizes.append(int(storage.array.nbytes))
        grad = tensor.grad if type(tensor.grad) is Tensor else None
        rows.append(
            facts.ConstantRow(
                at, list(shown.shape), list(shown.stride), tensor.offset, shown.dtype.name, shown.device,
                tensor.requires_grad_flag and tensor._grad_fn is None, None if grad is None else number(grad),
            )
        )  # fmt: skip
    state = facts.Detached(
        format=facts.FORMAT, device=session.device, default_dtype=engine.default_dtype.name,
        generator=engine.generator.get_state(), memories=sizes, tensors=rows, ids=ids, names=names,
    )  # fmt: skip
    return Image(msgspec.to_builtins(state), arrays)


def restore_foreign(
    image: Image, limits: Limits | None = None, device: str | None = None, backends: Backends | None = None
) -> Session:
    """A session from an untrusted image of :func:`detached`.

    Everything is validated before anything is allocated: types, counts and sizes against the limits, and every view
    against its memory. ``device`` overrides the devices in the image.

    Raises:
        MalformedFrame: for invalid content, including an unknown device.
        LimitExceeded: names the limit and its setting.
    """
    limits = limits or Limits()
    try:
        state = msgspec.convert(image.facts, facts.Detached)
    except (msgspec.ValidationError, RecursionError) as error:
        raise MalformedFrame(f"invalid image: {error}") from None
    check = _Check(state, image.arrays, limits)
    check.counts()
    check.memories()
    metas = [check.tensor(i, row, device) for i, row in enumerate(state.tensors)]
    check.ids()
    check.names()
    try:
        session = Session(limits, device or state.device, state.default_dtype, backends=backends)
        opened = {shown.device: session.engine.backends[shown.device] for shown in metas}
    except DeviceError as error:
        raise MalformedFrame(f"the image does not fit this machine: {error.message}") from None
    _fill(session, state, image.arrays, metas, opened)
    return session


class _Check:
    """Validates an image."""

    def __init__(self, state: facts.Detached, arrays: dict[str, np.ndarray[Any, Any]], limits: Limits) -> None:
        self.state = state
        self.arrays = arrays
        self.limits = limits
        self.devices: dict[int, str] = {}

    def counts(self) -> None:
        state, most = self.state, self.limits.max_tensors
        if state.format != facts.FORMAT:
            raise MalformedFrame(f"the image has format {state.format}; this server reads format {facts.FORMAT}")
        for what, count in (("tensors", len(state.tensors)), ("ids", len(state.ids)), ("names", len(state.names))):
            if count > most:
                raise LimitExceeded(
                    f"the image has {count:,} {what}; the limit is {most:,} (GRADWIRE_MAX_TENSORS)",
                    setting="GRADWIRE_MAX_TENSORS", limit=most, value=count,
                )  # fmt: skip
        if len(state.memories) > len(state.tensors):
            raise MalformedFrame(f"{len(state.memories):,} memory blocks exceed the number of tensors that use them")
        default = dtypes.BY_NAME.get(state.default_dtype)
        if default is None or not default.is_floating_point:
            raise MalformedFrame(f"invalid default dtype {state.default_dtype!r:.80}")
        if not all(0 <= word < _WORD for word in state.generator):
            raise MalformedFrame("the random state must be two 64-bit integers")

    def memories(self) -> None:
        total, limits = 0, self.limits
        for i, size in enumerate(self.state.memories):
            array = self.arrays.get(f"m{i}")
            if not isinstance(array, np.ndarray) or array.dtype != np.uint8 or array.ndim != 1 or len(array) != size:
                raise MalformedFrame(f"the image has no array m{i} of {size} bytes (uint8, one dimension)")
            total += size
            if size > limits.max_tensor_bytes:
                raise LimitExceeded(
                    f"array m{i} has {size:,} bytes; the limit is {limits.max_tensor_bytes:,} "
                    "(GRADWIRE_MAX_TENSOR_BYTES)",
                    setting="GRADWIRE_MAX_TENSOR_BYTES", limit=limits.max_tensor_bytes, value=size,
                )  # fmt: skip
        if total > limits.max_session_bytes:
            raise LimitExceeded(
                f"the image has {total:,} bytes; the limit is {limits.max_session_bytes:,} "
                "(GRADWIRE_MAX_SESSION_BYTES)",
                setting="GRADWIRE_MAX_SESSION_BYTES", limit=limits.max_session_bytes, value=total,
            )  # fmt: skip

    def tensor(self, i: int, row: facts.ConstantRow, device: str | None) -> Meta:
        dtype = dtypes.BY_NAME.get(row.dtype)
        if dtype is None:
            raise MalformedFrame(f"tensor {i} has the unknown dtype {row.dtype!r:.80}")
        if not 0 <= row.memory < len(self.state.memories):
            raise MalformedFrame(f"tensor {i} uses memory {row.memory}, but there are only {len(self.state.memories)}")
        if row.device != self.devices.setdefault(row.memory, row.device):
            raise MalformedFrame(f"tensor {i} is on {row.device!r:.80}, but its memory is not")
        self._shape(i, row, dtype)
        if row.requires_grad and dtype.category < dtypes.FLOATING:
            raise MalformedFrame(f"tensor {i} is {dtype.name} and cannot require a gradient")
        if row.grad is not None:
            self._gradient(i, row, row.grad)
        if dtype is dtypes.bool_ and len(array := self.arrays[f"m{row.memory}"]) and int(array.max()) > 1:
            raise MalformedFrame(f"tensor {i} is bool, but its memory has bytes other than 0 and 1")
        return meta(tuple(row.shape), dtype, device or row.device, tuple(row.stride))

    def _shape(self, i: int, row: facts.ConstantRow, dtype: DType) -> None:
        shape, stride, size = row.shape, row.stride, self.state.memories[row.memory]
        if len(shape) != len(stride) or len(shape) > MOST_DIMENSIONS:
            raise MalformedFrame(f"tensor {i} has {len(shape)} extents and {len(stride)} strides")
        if any(not 0 <= n <= MAX_ID for n in (*shape, *stride, row.offset)):
            raise MalformedFrame(f"tensor {i} has a negative or too large size, stride or offset")
        if prod(n for n in shape if n) * dtype.itemsize >= 1 << 63:
            raise MalformedFrame(f"tensor {i} has too many elements for 64 bits")
        reach = 0 if 0 in shape else 1 + sum((n - 1) * s for n, s in zip(shape, stride, strict=True))
        if (row.offset + reach) * dtype.itemsize > size:
            raise MalformedFrame(
                f"tensor {i} shows {dtype.name} elements {row.offset} to {row.offset + reach} of memory that has "
                f"{size // dtype.itemsize}"
            )

    def _gradient(self, i: int, row: facts.ConstantRow, at: int) -> None:
        if not 0 <= at < len(self.state.tensors):
            raise MalformedFrame(f"tensor {i} has the nonexistent tensor {at} as its gradient")
        grad = self.state.tensors[at]
        if grad.shape != row.shape or grad.dtype != row.dtype or grad.device != row.device:
            raise MalformedFrame(
                f"tensor {i}, {row.dtype:.20}{row.shape!r:.80}, has a gradient of another shape or dtype: "
                f"{grad.dtype:.20}{grad.shape!r:.80}"
            )

    def ids(self) -> None:
        seen = set()
        for tensor_id, at in self.state.ids:
            if not 0 < tensor_id <= MAX_ID or tensor_id in seen:
                raise MalformedFrame(f"{tensor_id} is an invalid or duplicate tensor id")
            if not 0 <= at < len(self.state.tensors):
                raise MalformedFrame(
                    f"id {tensor_id} refers to tensor {at}, but there are only {len(self.state.tensors)}"
                )
            seen.add(tensor_id)
        clients = {tensor_id >> ID_BITS for tensor_id in seen}
        if len(clients) >= CLIENTS_KEPT or max(clients, default=0) >= (MAX_ID >> ID_BITS) - CLIENTS_KEPT:
            raise MalformedFrame(
                f"the ids belong to {len(clients):,} clients, up to number {max(clients, default=0):,}"
            )

    def names(self) -> None:
        seen = set()
        for name, at in self.state.names:
            if not 0 < len(name) <= 200 or name in seen:
                raise MalformedFrame(f"{name!r:.80} is an invalid name (1 to 200 characters) or a duplicate")
            if not 0 <= at < len(self.state.tensors):
                raise MalformedFrame(f"the name {name!r:.80} refers to the nonexistent tensor {at}")
            seen.add(name)


def _fill(
    session: Session,
    state: facts.Detached,
    arrays: dict[str, np.ndarray[Any, Any]],
    metas: list[Meta],
    opened: dict[str, Any],
) -> None:
    engine = session.engine
    storages: dict[tuple[int, str], Storage] = {}
    tensors = []
    for row, shown in zip(state.tensors, metas, strict=True):
        backend, key = opened[shown.device], (row.memory, shown.device)
        storage = storages.get(key)
        if storage is None:
            storage = storages[key] = Storage(own_memory(backend, arrays[f"m{row.memory}"]), engine.account)
        array = backend.view(storage.memory(backend), shown.shape, shown.stride, row.offset, shown.dtype)
        tensor = Tensor(engine, array, shown, storage, row.offset)
        tensor.requires_grad_flag = row.requires_grad
        tensors.append(tensor)
    for tensor, row in zip(tensors, state.tensors, strict=True):
        if row.grad is not None:
            tensor.grad = tensors[row.grad]
    session.ids.update((tensor_id, tensors[at]) for tensor_id, at in state.ids)
    engine.names.update((name, tensors[at]) for name, at in state.names)
    engine.generator.set_state(state.generator)
    for tensor_id in session.ids:
        # New clients get numbers above these, so their ids do not collide.
        client = session.clients.setdefault(tensor_id >> ID_BITS, Client(tensor_id >> ID_BITS))
        client.counter = max(client.counter, tensor_id & _COUNTER)
