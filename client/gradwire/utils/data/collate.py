"""Batches out of entries. What is on the client becomes one array per tensor first, so that it is uploaded once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence
from copy import copy
from typing import Any

import numpy as np

from gradwire_protocol.errors import ArgumentError, ArgumentTypeError

from ..._core.context.numpy_dtypes import DTYPES
from ..._core.dispatch.dispatch import call
from ..._core.surface.creation import tensor
from ..._core.tensor.tensor import Tensor

Collate = Callable[..., Any]


class CollatedArray:
    """An array that a worker collated and that is not uploaded yet."""

    __slots__ = ("array",)

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array: np.ndarray[Any, Any] = array

    def send(self) -> Tensor:
        """The tensor of it."""
        return tensor(self.array)


def _array_of(batch: Sequence[Any]) -> np.ndarray[Any, Any]:
    first = batch[0]
    if first.dtype not in DTYPES:
        raise ArgumentTypeError(f"a batch of arrays is made of numbers, not of {first.dtype}")
    _check_shapes([a.shape for a in batch])
    return np.stack(batch)


def _check_shapes(shapes: list[tuple[int, ...]]) -> None:
    for i, shape in enumerate(shapes):
        if shape != shapes[0]:
            raise ArgumentError(
                f"the entries of a batch have equal shapes: entry 0 has {list(shapes[0])}, entry {i} {list(shape)}"
            )


def collate_tensor_fn(batch: Sequence[Tensor], *, collate_fn_map: Mapping[Any, Collate] | None = None) -> Tensor:
    """Tensors, stacked."""
    _check_shapes([tuple(t.shape) for t in batch])
    return call("stack", list(batch), 0)


def _leaf(batch: Sequence[Any]) -> Any:
    """A batch of entries that are not containers: a tensor, a held array, the entries themselves, or None."""
    first = batch[0]
    if isinstance(first, Tensor):
        return collate_tensor_fn(batch)
    if isinstance(first, np.ndarray):
        return CollatedArray(_array_of(batch))
    if isinstance(first, (np.bool_, np.number)):
        return CollatedArray(np.asarray(batch))
    if isinstance(first, bool):
        return CollatedArray(np.asarray(batch, np.bool_))
    if isinstance(first, float):
        return CollatedArray(np.asarray(batch, np.float64))
    if isinstance(first, int):
        return CollatedArray(np.asarray(batch, np.int64))
    if isinstance(first, (str, bytes)):
        return batch
    return None


def _like(first: Any, parts: list[Any]) -> Any:
    """A sequence of the entry's type, if possible."""
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*parts)
    if isinstance(first, tuple):
        return parts
    try:
        if isinstance(first, MutableSequence):
            made = copy(first)
            for i, part in enumerate(parts):
                made[i] = part
            return made
        return type(first)(parts)
    except TypeError:
        return parts


def gather(batch: Sequence[Any], collate_fn_map: Mapping[Any, Collate] | None = None) -> Any:
    """Like :func:`collate`, but arrays stay on the client."""
    first = batch[0]
    for kind, own in (collate_fn_map or {}).items():
        if isinstance(first, kind):
            return own(batch, collate_fn_map=collate_fn_map)
    found = _leaf(batch)
    if found is not None:
        return found
    if isinstance(first, Mapping):
        columns = {key: gather([entry[key] for entry in batch], collate_fn_map) for key in first}
        try:
            if isinstance(first, MutableMapping):
                made = copy(first)
                made.update(columns)
                return made
            return type(first)(columns)  # type: ignore[call-arg]
        except TypeError:
            return columns
    if isinstance(first, Sequence):
        if any(len(entry) != len(first) for entry in batch):
            raise ArgumentError("the entries of a batch have equally many parts, these do not")
        parts = [gather(column, collate_fn_map) for column in zip(*batch, strict=True)]
        return _like(first, parts)
    raise ArgumentTypeError(
        f"a batch is made of tensors, arrays, numbers, strings and containers of them, not of {type(first).__name__}: "
        "pass a collate_fn"
    )


def sent(value: Any) -> Any:
    """A gathered batch with its arrays uploaded."""
    if isinstance(value, CollatedArray):
        return value.send()
    if not _holds(value):
        return value
    if isinstance(value, Mapping):
        columns = {key: sent(part) for key, part in value.items()}
        if isinstance(value, MutableMapping):
            value.update(columns)
            return value
        return type(value)(columns)  # type: ignore[call-arg]
    parts = [sent(part) for part in value]
    return type(value)(parts) if type(value) is list else _like(value, parts)


def _holds(value: Any) -> bool:
    """Whether a gathered batch has an array to upload."""
    if isinstance(value, CollatedArray):
        return True
    if isinstance(value, Mapping):
        return any(map(_holds, value.values()))
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes)) and any(map(_holds, value))


def collate(batch: Sequence[Any], *, collate_fn_map: Mapping[Any, Collate] | None = None) -> Any:
    """Entries as a batch, with functions of the caller's own for some kinds of entries."""
    return sent(gather(batch, collate_fn_map))


def default_collate(batch: Sequence[Any]) -> Any:
    """Entries as a batch: tensors and arrays stacked, numbers as a tensor, containers by parts, strings as they are.

    Raises:
        ArgumentError: for entries of unequal shape or length.
        ArgumentTypeError: for entries of which no batch can be made.
    """
    return sent(gather(batch))


def default_convert(data: Any) -> Any:
    """One entry: arrays become tensors, containers are gone through, everything else stays."""
    if isinstance(data, (np.ndarray, np.generic)):
        return tensor(np.asarray(data)) if np.asarray(data).dtype in DTYPES else data
    if isinstance(data, (Tensor, str, bytes)):
        return data
    if isinstance(data, Mapping):
        try:
            return type(data)({k: default_convert(v) for k, v in data.items()})  # type: ignore[call-arg]
        except TypeError:
            return {k: default_convert(v) for k, v in data.items()}
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(default_convert(v) for v in data))
    if isinstance(data, tuple):
        return [default_convert(v) for v in data]
    if isinstance(data, Sequence):
        try:
            return type(data)([default_convert(v) for v in data])  # type: ignore[call-arg]
        except TypeError:
            return [default_convert(v) for v in data]
    return data


default_collate_fn_map: dict[Any, Collate] = {Tensor: collate_tensor_fn}
"""Where programs add functions for kinds of entries of their own; :func:`collate` takes such a map."""
