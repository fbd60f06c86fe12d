"""Sessions as files that people exchange: what a session holds beside its graph, and the check of what was sent."""

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

from ..backends import Backends
from ..clients import Client
from ..memory import Limits
from ..session import CLIENTS_KEPT, Session
from ..tensor import Storage, Tensor
from . import facts
from .facts import Image
from .restoring import own_memory

MOST_DIMENSIONS: Final = 64
"""What NumPy can show."""

_COUNTER: Final = (1 << ID_BITS) - 1
_WORD: Final = 1 << 64


def detached(session: Session) -> Image:
    """An image for somebody else: tensors as leaves and constants with their gradients, names, random state.

    It has no graph, no clients and nothing that is unfinished: ids of results that failed are left out, and so are
    tensors inside a vmap. Views that share memory still do.
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
    for tensor in tensors:  # which grows, by gradients
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
    """A session of an image that :func:`detached` made, of which nothing is believed.

    All is checked before anything is allocated: forms, counts and sizes against the limits, every view against the
    memory that it shows. ``device`` is where the tensors go; without one, where the image has them.

    Raises:
        MalformedFrame: naming what does not fit, a device that is not here included.
        LimitExceeded: naming the limit and its setting.
    """
    limits = limits or Limits()
    try:
        state = msgspec.convert(image.facts, facts.Detached)
    except (msgspec.ValidationError, RecursionError) as error:
        raise MalformedFrame(f"the image cannot be read: {error}") from None
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
    """What an image must be like."""

    def __init__(self, state: facts.Detached, arrays: dict[str, np.ndarray[Any, Any]], limits: Limits) -> None:
        self.state = state
        self.arrays = arrays
        self.limits = limits
        self.devices: dict[int, str] = {}

    def counts(self) -> None:
        state, most = self.state, self.limits.max_tensors
        if state.format != facts.FORMAT:
            raise MalformedFrame(f"the image has the form {state.format}, this server reads {facts.FORMAT}")
        for what, count in (("tensors", len(state.tensors)), ("ids", len(state.ids)), ("names", len(state.names))):
            if count > most:
                raise LimitExceeded(
                    f"the image has {count:,} {what}, {most:,} are allowed (GRADWIRE_MAX_TENSORS)",
                    setting="GRADWIRE_MAX_TENSORS", limit=most, value=count,
                )  # fmt: skip
        if len(state.memories) > len(state.tensors):
            raise MalformedFrame(f"{len(state.memories):,} pieces of memory are more than the tensors that show them")
        default = dtypes.BY_NAME.get(state.default_dtype)
        if default is None or not default.is_floating_point:
            raise MalformedFrame(f"the default dtype cannot be {state.default_dtype!r:.80}")
        if not all(0 <= word < _WORD for word in state.generator):
            raise MalformedFrame("the random state is not two words of 64 bits")

    def memories(self) -> None:
        total, limits = 0, self.limits
        for i, size in enumerate(self.state.memories):
            array = self.arrays.get(f"m{i}")
            if not isinstance(array, np.ndarray) or array.dtype != np.uint8 or array.ndim != 1 or len(array) != size:
                raise MalformedFrame(f"the image has no array m{i} of {size} bytes (uint8, one dimension)")
            total += size
            if size > limits.max_tensor_bytes:
                raise LimitExceeded(
                    f"array m{i} has {size:,} bytes, {limits.max_tensor_bytes:,} are allowed "
                    "(GRADWIRE_MAX_TENSOR_BYTES)",
                    setting="GRADWIRE_MAX_TENSOR_BYTES", limit=limits.max_tensor_bytes, value=size,
                )  # fmt: skip
        if total > limits.max_session_bytes:
            raise LimitExceeded(
                f"the image has {total:,} bytes, {limits.max_session_bytes:,} are allowed (GRADWIRE_MAX_SESSION_BYTES)",
                setting="GRADWIRE_MAX_SESSION_BYTES", limit=limits.max_session_bytes, value=total,
            )  # fmt: skip

    def tensor(self, i: int, row: facts.ConstantRow, device: str | None) -> Meta:
        dtype = dtypes.BY_NAME.get(row.dtype)
        if dtype is None:
            raise MalformedFrame(f"tensor {i} has the dtype {row.dtype!r:.80}, which does not exist")
        if not 0 <= row.memory < len(self.state.memories):
            raise MalformedFrame(f"tensor {i} shows memory {row.memory}, of which there are {len(self.state.memories)}")
        if row.device != self.devices.setdefault(row.memory, row.device):
            raise MalformedFrame(f"tensor {i} is on {row.device!r:.80}, and its memory is not")
        self._shape(i, row, dtype)
        if row.requires_grad and dtype.category < dtypes.FLOATING:
            raise MalformedFrame(f"tensor {i} is {dtype.name} and cannot require a gradient")
        if row.grad is not None:
            self._gradient(i, row, row.grad)
        if dtype is dtypes.bool_ and len(array := self.arrays[f"m{row.memory}"]) and int(array.max()) > 1:
            raise MalformedFrame(f"tensor {i} is bool and shows memory with bytes that are neither 0 nor 1")
        return meta(tuple(row.shape), dtype, device or row.device, tuple(row.stride))

    def _shape(self, i: int, row: facts.ConstantRow, dtype: DType) -> None:
        shape, stride, size = row.shape, row.stride, self.state.memories[row.memory]
        if len(shape) != len(stride) or len(shape) > MOST_DIMENSIONS:
            raise MalformedFrame(f"tensor {i} has {len(shape)} extents and {len(stride)} strides")
        if any(not 0 <= n <= MAX_ID for n in (*shape, *stride, row.offset)):
            raise MalformedFrame(f"tensor {i} has an extent, a stride or an offset that is negative or too large")
        if prod(n for n in shape if n) * dtype.itemsize >= 1 << 63:
            raise MalformedFrame(f"tensor {i} has more elements than 64 bits can count")
        reach = 0 if 0 in shape else 1 + sum((n - 1) * s for n, s in zip(shape, stride, strict=True))
        if (row.offset + reach) * dtype.itemsize > size:
            raise MalformedFrame(
                f"tensor {i} shows {dtype.name} elements {row.offset} to {row.offset + reach} of memory that has "
                f"{size // dtype.itemsize}"
            )

    def _gradient(self, i: int, row: facts.ConstantRow, at: int) -> None:
        if not 0 <= at < len(self.state.tensors):
            raise MalformedFrame(f"tensor {i} has tensor {at} for its gradient, of which there are fewer")
        grad = self.state.tensors[at]
        if grad.shape != row.shape or grad.dtype != row.dtype or grad.device != row.device:
            raise MalformedFrame(
                f"tensor {i}, {row.dtype:.20}{row.shape!r:.80}, has a gradient of another form: "
                f"{grad.dtype:.20}{grad.shape!r:.80}"
            )

    def ids(self) -> None:
        seen = set()
        for tensor_id, at in self.state.ids:
            if not 0 < tensor_id <= MAX_ID or tensor_id in seen:
                raise MalformedFrame(f"{tensor_id} is no id of a tensor, or is there twice")
            if not 0 <= at < len(self.state.tensors):
                raise MalformedFrame(f"id {tensor_id} names tensor {at}, of which there are {len(self.state.tensors)}")
            seen.add(tensor_id)
        clients = {tensor_id >> ID_BITS for tensor_id in seen}
        if len(clients) >= CLIENTS_KEPT or max(clients, default=0) >= (MAX_ID >> ID_BITS) - CLIENTS_KEPT:
            raise MalformedFrame(f"the ids are of {len(clients):,} clients, up to number {max(clients, default=0):,}")

    def names(self) -> None:
        seen = set()
        for name, at in self.state.names:
            if not 0 < len(name) <= 200 or name in seen:
                raise MalformedFrame(f"{name!r:.80} is no name (1 to 200 characters), or is there twice")
            if not 0 <= at < len(self.state.tensors):
                raise MalformedFrame(f"the name {name!r:.80} is of tensor {at}, of which there are fewer")
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
        # Those who come to the session make ids of their own.
        client = session.clients.setdefault(tensor_id >> ID_BITS, Client(tensor_id >> ID_BITS))
        client.counter = max(client.counter, tensor_id & _COUNTER)
