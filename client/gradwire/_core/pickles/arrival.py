"""Uploads the tensors of a file to the session. Tensors that shared memory share it again."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping
from math import prod
from typing import Any

import numpy as np

from gradwire_protocol.errors import ArgumentTypeError
from gradwire_protocol.meta import is_contiguous

from ..context.modes import no_grad
from ..context.numpy_dtypes import NUMPY_DTYPES
from ..context.size import device as Device
from ..dispatch.dispatch import call
from ..modules.parameter import Parameter
from ..surface.creation import upload
from .allowed import Storage, StorageType, StoredTensor
from .machine import Callee, RefusedPickle, Stateful


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
    lying: dict[int, StoredTensor] = {}
    try:
        _gather(tree, lying, set())
    except RecursionError:
        raise RefusedPickle("the file's containers lie too deep inside each other") from None
    uses = Counter(id(one.storage) for one in lying.values())
    shared: dict[int, Any] = {}
    made: dict[int, Any] = {}
    for number, one in lying.items():
        # Transposed and channels-last tensors keep their strides, so they must be views of the whole storage.
        alone = uses[id(one.storage)] == 1 and (not prod(one.size) or is_contiguous(one.size, one.stride))
        made[number] = _dressed(_sent(one, where) if alone else _shared(one, shared, where), one)
    return _with(tree, made, {})


def _gather(value: Any, found: dict[int, StoredTensor], seen: set[int]) -> None:
    if isinstance(value, StoredTensor):
        found[id(value)] = value
    elif isinstance(value, (dict, list, tuple, set, frozenset)) and id(value) not in seen:
        seen.add(id(value))
        for item in value.values() if isinstance(value, dict) else value:
            _gather(item, found, seen)


def _with(value: Any, made: dict[int, Any], done: dict[int, Any]) -> Any:
    """Replace tensors in place in mutable containers, so that shared objects stay shared."""
    if isinstance(value, StoredTensor):
        return made[id(value)]
    if isinstance(value, (Storage, StorageType, Callee, Stateful)):
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
    values = (
        np.lib.stride_tricks.as_strided(flat[one.offset :], one.size, steps)
        if prod(one.size)
        else np.empty(one.size, flat.dtype)
    )
    return upload(np.ascontiguousarray(values).reshape(one.size), one.dtype, where(one.storage.location))


def _shared(one: StoredTensor, shared: dict[int, Any], where: Callable[[str], Any]) -> Any:
    flat = _array(one.storage, one)
    base = shared.get(id(one.storage))
    if base is None:
        base = shared[id(one.storage)] = upload(flat, one.dtype, where(one.storage.location))
    if base.dtype is not one.dtype:
        return _sent(one, where)
    with no_grad():
        return call("as_strided", base, one.size, one.stride, one.offset).data


def _dressed(made: Any, one: StoredTensor) -> Any:
    if one.parameter:
        return Parameter(made, requires_grad=one.requires_grad)
    return made.requires_grad_() if one.requires_grad else made
