"""Uploads the tensors of a file to the session. Tensors that shared memory share it again."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping
from math import prod
from typing import Any, Final

import numpy as np

from gradwire_protocol.dtypes import uint8
from gradwire_protocol.errors import ArgumentTypeError
from gradwire_protocol.meta import is_contiguous

from ..context.modes import no_grad
from ..context.numpy_dtypes import NUMPY_DTYPES
from ..context.size import device as Device
from ..dispatch.dispatch import call
from ..modules.module import Module
from ..modules.parameter import Parameter, alias_as
from ..surface.creation import empty, upload
from ..surface.storages import UntypedStorage
from ..surface.typed_storages import TypedStorage
from ..tensor.tensor import Tensor
from .allowed import Storage, StorageType, StoredTensor
from .layers import as_ours
from .machine import Callee, Instance, Known, RefusedPickle, Stateful


class Where:
    """The target device of a tensor, by ``map_location`` and its original device.

    Raises:
        ArgumentTypeError: for anything but None, a device, a dictionary of them, or a function.
    """

    def __init__(self, map_location: Any) -> None:
        if map_location is not None and not isinstance(map_location, (str, Device, Mapping)):
            if isinstance(map_location, int) and not isinstance(map_location, bool):
                map_location = Device(map_location)
            elif not callable(map_location):
                raise ArgumentTypeError(
                    "map_location is None, a device, a dictionary of devices or a function, not "
                    f"{type(map_location).__name__}"
                )
        self._chosen: Any = map_location

    def __call__(self, location: str) -> Any:
        """The target device for storages from ``location``."""
        chosen = self._chosen
        if chosen is None:
            return location
        if isinstance(chosen, Mapping):
            return chosen.get(location, location)
        if isinstance(chosen, (str, Device)):
            return chosen
        moved = chosen(Placed("cpu"), location)
        if moved is None:
            return location
        if not isinstance(moved, Placed):
            raise ArgumentTypeError(f"map_location returned a {type(moved).__name__}, not a storage or None")
        return moved.device


class Placed:
    """The argument of a ``map_location`` function instead of a storage; it can only be sent to a device."""

    def __init__(self, where: Any) -> None:
        self.device = where if isinstance(where, Device) else Device(where)

    def cpu(self) -> Placed:
        """On the CPU."""
        return Placed("cpu")

    def cuda(self, device: Any = None, non_blocking: bool = False) -> Placed:
        """On a GPU."""
        return Placed(Device("cuda") if device is None else Device(device))

    def to(self, device: Any) -> Placed:
        """On a device."""
        return Placed(device)


def arrive(tree: Any, where: Callable[[str], Any]) -> Any:
    """The same object with tensors of the session.

    Raises:
        RefusedPickle: if a tensor exceeds its storage.
        DeviceError: if the server lacks the device of a tensor; set ``map_location``.
    """
    lying: dict[int, Any] = {}
    try:
        _gather(tree, lying, set())
    except RecursionError:
        raise RefusedPickle(_TOO_DEEP) from None
    tensors = {number: one for number, one in lying.items() if isinstance(one, StoredTensor)}
    uses = Counter(id(one.storage) for one in tensors.values())
    uses.update(number for number, one in lying.items() if isinstance(one, Storage))
    shared: dict[int, Any] = {}
    made: dict[int, Any] = {}
    for number, one in tensors.items():
        if one.storage.location == "meta":
            made[number] = _dressed(_without_memory(one), one)
            continue
        # Transposed and channels-last tensors keep their strides, so they must be views of the whole storage.
        alone = uses[id(one.storage)] == 1 and (not prod(one.size) or is_contiguous(one.size, one.stride))
        made[number] = _dressed(_sent(one, where) if alone else _shared(one, shared, where), one)
    for number, one in lying.items():
        if isinstance(one, Storage):
            made[number] = _storage(one, shared, where)
    try:
        return _with(tree, made, {})
    except RecursionError:
        raise RefusedPickle(_TOO_DEEP) from None


_TOO_DEEP: Final = "the file's containers lie too deep inside each other"


def _gather(value: Any, found: dict[int, Any], seen: set[int]) -> None:
    if isinstance(value, Storage):
        found[id(value)] = value
        return
    if isinstance(value, StoredTensor):
        found[id(value)] = value
        inside: Any = (value.state,)
    elif isinstance(value, Instance):
        inside = (value.arguments, value.state)
    elif isinstance(value, dict):
        inside = value.values()
    elif isinstance(value, (list, tuple, set, frozenset)):
        inside = value
    else:
        return
    if id(value) not in seen:
        seen.add(id(value))
        for item in inside:
            _gather(item, found, seen)


def _with(value: Any, made: dict[int, Any], done: dict[int, Any]) -> Any:
    """Replace tensors in place in mutable containers, so that shared objects stay shared."""
    if isinstance(value, StoredTensor):
        return _attributed(value, made, done)
    if isinstance(value, Storage):
        return made[id(value)]
    if isinstance(value, Instance):
        return done[id(value)] if id(value) in done else _made(value, made, done)
    if isinstance(value, Known):
        return value.value
    if isinstance(value, (StorageType, Callee, Stateful)):
        raise RefusedPickle(f"the file holds a {type(value).__name__.lower()} on its own: only tensors are read")
    if not isinstance(value, (dict, list, tuple)) or id(value) in done:
        return done.get(id(value), value)
    if isinstance(value, tuple):
        items = [_with(item, made, done) for item in value]
        done[id(value)] = type(value)(items)
        return done[id(value)]
    done[id(value)] = value
    for key, item in list(value.items() if isinstance(value, dict) else enumerate(value)):
        value[key] = _with(item, made, done)
    kept = vars(value).get("_metadata") if isinstance(value, OrderedDict) else None
    if kept is not None:
        vars(value)["_metadata"] = _with(kept, made, done)
    return value


def _attributed(stored: StoredTensor, made: dict[int, Any], done: dict[int, Any]) -> Any:
    found = made[id(stored)]
    if id(stored) in done:
        return found
    done[id(stored)] = found
    if stored.state is not None:
        _give(found, _with(stored.state, made, done))
    return found


def _made(instance: Instance, made: dict[int, Any], done: dict[int, Any]) -> Any:
    """The object of a known class, with its attributes; or what a known function makes."""
    kind = instance.known.value
    arguments = _with(instance.arguments, made, done)
    found = done[id(instance)] = kind(*arguments) if instance.called else kind.__new__(kind, *arguments)
    if instance.has_state:
        state = _with(instance.state, made, done)
        if isinstance(found, Module):
            if not isinstance(state, dict) or not all(isinstance(name, str) for name in state):
                raise RefusedPickle(f"the file gives a {instance.known.name} other things than attributes")
            state = as_ours(type(found), state)
        _give(found, state)
    return found


def _give(found: Any, state: Any) -> None:
    if hasattr(found, "__setstate__"):
        found.__setstate__(state)
        return
    attributes, slots = state if isinstance(state, tuple) and len(state) == 2 else (state, None)
    for part in (attributes, slots):
        if part is None:
            continue
        if not isinstance(part, dict) or not all(isinstance(name, str) for name in part):
            raise RefusedPickle(f"the file gives a {type(found).__name__} other things than attributes")
        if isinstance(found, Tensor) and (taken := part.keys() & Tensor.__annotations__.keys()):
            raise RefusedPickle(f"the file gives a tensor the attribute {min(taken)}, which is its own")
        for name, value in part.items():
            setattr(found, name, value)


def _without_memory(one: StoredTensor) -> Any:
    memory = empty(span_of(one.size, one.stride), dtype=one.dtype, device="meta")
    return call("as_strided", memory, one.size, one.stride, 0).data


def span_of(size: tuple[int, ...], stride: tuple[int, ...]) -> int:
    """How many elements a strided tensor lies over."""
    return 1 + sum((n - 1) * s for n, s in zip(size, stride, strict=True)) if prod(size) else 0


def _storage(storage: Storage, shared: dict[int, Any], where: Callable[[str], Any]) -> UntypedStorage | TypedStorage:
    base = shared.get(id(storage))
    if base is None:
        dtype = storage.dtype or uint8
        base = shared[id(storage)] = upload(
            np.frombuffer(storage.data, NUMPY_DTYPES[dtype]), dtype, where(storage.location)
        )
    untyped = UntypedStorage._of(base)
    return untyped if storage.dtype is None else TypedStorage(wrap_storage=untyped, dtype=storage.dtype)


def _array(storage: Storage, one: StoredTensor) -> np.ndarray[Any, Any]:
    native = NUMPY_DTYPES[one.dtype]
    usable = len(storage.data) // native.itemsize * native.itemsize
    flat = np.frombuffer(memoryview(storage.data)[:usable], native)
    last = one.offset + sum((n - 1) * s for n, s in zip(one.size, one.stride)) if prod(one.size) else -1
    if last >= flat.size:
        raise RefusedPickle(
            f"a tensor of size {list(one.size)} and strides {list(one.stride)} at {one.offset} reaches beyond the "
            f"{flat.size} elements of its storage"
        )
    return flat


def _sent(one: StoredTensor, where: Callable[[str], Any]) -> Any:
    flat = _array(one.storage, one)
    steps = tuple(s * flat.itemsize for s in one.stride)
    if prod(one.size):
        bits = flat[one.offset :].view(f"V{flat.itemsize}")  # NumPy lays no strides over ml_dtypes' own types
        values = np.ascontiguousarray(np.lib.stride_tricks.as_strided(bits, one.size, steps)).view(flat.dtype)
    else:
        values = np.empty(one.size, flat.dtype)
    return upload(np.ascontiguousarray(values).reshape(one.size), one.dtype, where(one.storage.location))


def _shared(one: StoredTensor, shared: dict[int, Any], where: Callable[[str], Any]) -> Any:
    flat = _array(one.storage, one)
    base = shared.get(id(one.storage))
    if base is None:
        base = shared[id(one.storage)] = upload(flat, one.dtype, where(one.storage.location))
    if base.dtype is not one.dtype:
        return _sent(one, where)
    with no_grad():
        made = call("as_strided", base, one.size, one.stride, one.offset).data
    made._offset = one.offset
    return made


def _dressed(made: Any, one: StoredTensor) -> Any:
    if one.parameter:
        return Parameter(made, requires_grad=one.requires_grad)
    if one.kind is not None:
        made = alias_as(one.kind.value, made)
    return made.requires_grad_() if one.requires_grad else made
