"""Safetensors files: tensors under their paths, and everything else as JSON in the file's metadata.

The tensors of a nested object are stored under their paths (``model.0.weight``), so any safetensors reader sees a
module's state dict as expected.
"""

from __future__ import annotations

import json
import math
import os
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from typing import IO, Any, Final

import numpy as np
import safetensors
import safetensors.numpy

from gradwire_protocol import dtypes
from gradwire_protocol.dtypes import DType
from gradwire_protocol.errors import ArgumentTypeError, ArgumentValueError, Unsupported
from gradwire_protocol.meta import Meta
from gradwire_protocol.shapes import is_dense

from ..context.modes import no_grad
from ..context.numpy_dtypes import NUMPY_DTYPES
from ..context.size import Size, device
from ..dispatch.dispatch import call
from ..modules.module import Module
from ..modules.parameter import Parameter
from ..surface.creation import upload
from ..tensor.tensor import Tensor

METADATA: Final = "gradwire"
_BY_TAG: Final = {d.safetensors: d for d in dtypes.ALL if d.safetensors is not None}


def write(obj: object, f: str | os.PathLike[str] | IO[bytes]) -> None:
    """Write an object to a path or a file. One round trip.

    Raises:
        ArgumentTypeError: for what is neither tensors, containers, numbers nor strings.
    """
    packer = _Packer()
    tree = packer.pack(obj, "")
    metadata = {"format": "pt", METADATA: json.dumps({"version": 1, "tree": tree})}
    data = safetensors.numpy.save(packer.arrays(), metadata=metadata)
    if isinstance(f, (str, os.PathLike)):
        with open(f, "wb") as file:  # with the permissions that the user's umask leaves
            file.write(data)
    else:
        f.write(data)


def read(f: Any, place: Any) -> Any:
    """The object of a file: what :func:`write` wrote, or the tensors of any other safetensors file by name.

    Raises:
        ArgumentValueError: when the file is none.
    """
    metadata, arrays = _read(f)
    if METADATA not in metadata:
        return {name: upload(array, dtype, place) for name, (array, dtype) in arrays.items()}
    try:
        described = json.loads(metadata[METADATA])
        version, tree = described["version"], described["tree"]
        if version == 1:
            return _Unpacker(arrays, place).unpack(tree)
    except (KeyError, TypeError, AttributeError, json.JSONDecodeError, RecursionError) as error:
        raise ArgumentValueError(f"the description inside the safetensors file is damaged: {error!r:.100}") from None
    raise Unsupported(f"the file was written by a later gradwire: version {version!r:.20} of its form")


def _read(f: Any) -> tuple[dict[str, str], dict[str, tuple[np.ndarray[Any, Any], DType]]]:
    """The metadata and the arrays of a safetensors file."""
    try:
        if isinstance(f, (str, os.PathLike)):
            with safetensors.safe_open(f, framework="np") as opened:
                metadata = opened.metadata() or {}
                return metadata, {name: _entry(f, opened, name) for name in opened.keys()}  # noqa: SIM118
        data = f.read()
        parts = safetensors.deserialize(data)  # type: ignore[no-untyped-call]
    except safetensors.SafetensorError as error:
        raise ArgumentValueError(f"this is not a safetensors file: {error}") from None
    length = int.from_bytes(data[:8], "little")
    metadata = json.loads(data[8 : 8 + length]).get("__metadata__", {})
    arrays = {}
    for name, part in parts:
        dtype = _dtype_of_tag(name, part["dtype"])
        arrays[name] = np.frombuffer(part["data"], NUMPY_DTYPES[dtype]).reshape(part["shape"]), dtype
    return metadata, arrays


def _entry(path: str | os.PathLike[str], opened: Any, name: str) -> tuple[np.ndarray[Any, Any], DType]:
    """A tensor of an open file. The floats of 8 bits, which the library does not make arrays of, are read here."""
    part = opened.get_slice(name)
    dtype = _dtype_of_tag(name, part.get_dtype())
    if not (dtype.for_storage and dtype.is_floating_point):
        return opened.get_tensor(name), dtype
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        begin, _ = json.loads(file.read(length))[name]["data_offsets"]
        shape = part.get_shape()
        return np.fromfile(file, NUMPY_DTYPES[dtype], math.prod(shape), offset=begin).reshape(shape), dtype


def _dtype_of_tag(name: str, tag: str) -> DType:
    if tag not in _BY_TAG:
        raise Unsupported(f"{name} is of the safetensors type {tag}, which gradwire has no dtype for")
    return _BY_TAG[tag]


class _Packer:
    """Converts an object to JSON, and collects its tensors by path."""

    def __init__(self) -> None:
        self._tensors: dict[str, Tensor] = {}
        self._plain: dict[str, np.ndarray[Any, Any]] = {}

    def pack(self, value: Any, path: str) -> Any:
        """The JSON of ``value``. An object with a single key that begins with $ encodes what JSON lacks."""
        if value is None or isinstance(value, (bool, str)):
            return value
        if isinstance(value, Tensor):
            return self._tensor(value, path)
        if isinstance(value, np.ndarray):
            return {"$array": self._put(self._plain, path, value)}
        if isinstance(value, np.generic):
            return self.pack(value.item(), path)
        if isinstance(value, int):
            return int(value)
        if isinstance(value, float):
            return float(value) if np.isfinite(value) else {"$float": repr(float(value))}
        if isinstance(value, complex):
            return {"$complex": [self.pack(value.real, path), self.pack(value.imag, path)]}
        if isinstance(value, DType):
            return {"$dtype": value.name}
        if isinstance(value, device):
            return {"$device": str(value)}
        if isinstance(value, Size):
            return {"$size": list(value)}
        if isinstance(value, (list, tuple)):
            items = [self.pack(item, _join(path, i)) for i, item in enumerate(value)]
            return items if isinstance(value, list) else {"$tuple": items}
        if isinstance(value, Mapping):
            return self._mapping(value, path)
        where = f" at {path}" if path else ""
        hint = "gradwire saves tensors, containers, numbers and strings"
        if isinstance(value, Module):
            hint = "save its state_dict()"
        raise ArgumentTypeError(f"{type(value).__name__}{where} cannot be saved: {hint}")

    def _mapping(self, value: Mapping[Any, Any], path: str) -> Any:
        for key in value:
            if not isinstance(key, (str, int, float, bool, tuple)) and key is not None:
                raise ArgumentTypeError(f"a key of type {type(key).__name__} at {path or 'the top'} cannot be saved")
        ordered = isinstance(value, OrderedDict)
        if not ordered and all(isinstance(key, str) and not key.startswith("$") for key in value):
            return {key: self.pack(item, _join(path, key)) for key, item in value.items()}
        pairs = [[self.pack(key, path), self.pack(item, _join(path, key))] for key, item in value.items()]
        return {"$ordered" if ordered else "$dict": pairs}

    def _tensor(self, value: Tensor, path: str) -> Any:
        entry: dict[str, Any] = {"$tensor": self._put(self._tensors, path, value)}
        if value.dtype is dtypes.complex128:
            entry["complex"] = True  # safetensors has no such type: it lies there as pairs of float64
        order = _order(value._known_meta())
        if order is not None:
            entry["order"] = order  # the file has the values in row-major order
        if isinstance(value, Parameter):
            entry["parameter"] = value.requires_grad
        return entry

    def _put(self, table: dict[str, Any], path: str, value: Any) -> str:
        name, number = path or "tensor", 1
        while name in self._tensors or name in self._plain:
            number += 1
            name = f"{path or 'tensor'}#{number}"
        table[name] = value
        return name

    def arrays(self) -> dict[str, np.ndarray[Any, Any]]:
        """The values of all tensors, in one round trip per session."""
        found = {name: np.ascontiguousarray(array).reshape(array.shape) for name, array in self._plain.items()}
        by_session: dict[Any, list[str]] = {}
        for name, tensor in self._tensors.items():
            by_session.setdefault(tensor._session, []).append(name)
        for session, names in by_session.items():
            values = session.read([self._tensors[name] for name in names])
            for name, value in zip(names, values, strict=True):
                found[name] = value.view(np.float64).reshape(*value.shape, 2) if value.dtype == np.complex128 else value
        return found


def _order(described: Meta) -> list[int] | None:
    """The dimensions in the order of memory, the outermost first; ``None`` where that is row-major, or not dense."""
    if described.contiguous or not is_dense(described.shape, described.stride):
        return None
    return sorted(range(described.ndim), key=lambda dim: -described.stride[dim])


def _join(path: str, key: Any) -> str:
    return f"{path}.{key}" if path else str(key)


class _Unpacker:
    """Converts JSON back to the object."""

    def __init__(self, arrays: Mapping[str, tuple[np.ndarray[Any, Any], DType]], where: Any) -> None:
        self._arrays = arrays
        self._where = where

    def unpack(self, tree: Any) -> Any:
        """The object that ``tree`` encodes."""
        if isinstance(tree, list):
            return [self.unpack(item) for item in tree]
        if not isinstance(tree, dict):
            return tree
        kind = next(iter(tree), "")
        if not kind.startswith("$"):
            return {key: self.unpack(item) for key, item in tree.items()}
        content = tree[kind]
        if kind == "$tensor":
            return self._tensor(content, tree)
        if kind == "$array":
            return self._array(content)[0]
        if kind == "$tuple":
            return tuple(self._items(content))
        if kind in ("$dict", "$ordered"):
            pairs = [(self.unpack(key), self.unpack(item)) for key, item in content]
            return OrderedDict(pairs) if kind == "$ordered" else dict(pairs)
        if kind == "$complex":
            return complex(*self._items(content))
        known: dict[str, Callable[[Any], Any]] = {
            "$float": float, "$dtype": dtypes.BY_NAME.__getitem__, "$device": device, "$size": Size,
        }  # fmt: skip
        made = known.get(kind)
        if made is None:
            raise ArgumentValueError(f"the file describes something unknown: {kind!r:.40}")
        return made(content)

    def _items(self, content: Iterable[Any]) -> list[Any]:
        return [self.unpack(item) for item in content]

    def _array(self, name: str) -> tuple[np.ndarray[Any, Any], DType]:
        if name not in self._arrays:
            raise ArgumentValueError(f"the file lacks the tensor {name!r} that its description names")
        return self._arrays[name]

    def _tensor(self, name: str, entry: Mapping[str, Any]) -> Any:
        array, dtype = self._array(name)
        if entry.get("complex"):
            array, dtype = array.copy().view(np.complex128)[..., 0], dtypes.complex128
        if "order" in entry:
            order = tuple(int(dim) for dim in entry["order"])
            if sorted(order) != list(range(array.ndim)):
                raise ArgumentValueError(f"the tensor {name!r} has no dimensions in the order {list(order)}")
            with no_grad():
                there = upload(np.ascontiguousarray(array.transpose(order)), dtype, self._where)
                shown = call("permute", there, tuple(order.index(dim) for dim in range(array.ndim)))
                made = call("clone", shown)
        else:
            made = upload(array, dtype, self._where)
        return Parameter(made, requires_grad=bool(entry["parameter"])) if "parameter" in entry else made
