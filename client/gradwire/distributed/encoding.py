"""Python objects as bytes, for collectives over objects: plain data and tensors, and nothing that would be executed.

MessagePack carries numbers, texts and bytes as they are. Everything else is a list whose first entry tells its kind.
"""

from __future__ import annotations

from argparse import Namespace
from collections import OrderedDict
from typing import Any, Final

import msgspec
import numpy as np

from gradwire_protocol import dtypes
from gradwire_protocol.dtypes import DType
from gradwire_protocol.errors import ArgumentTypeError, ArgumentValueError
from gradwire_protocol.meta import meta

from .._core.context.numpy_dtypes import NUMPY_DTYPES
from .._core.context.size import Size, device
from .._core.session.current_session import current_session
from .._core.tensor.tensor import Tensor

DEEPEST: Final = 200
"""How deep objects may be nested."""

_SEQUENCES: Final[dict[Any, str]] = {list: "list", tuple: "tuple", set: "set", frozenset: "frozenset", Size: "size"}
_MAPPINGS: Final[dict[Any, str]] = {dict: "dict", OrderedDict: "ordered", Namespace: "namespace"}
_MADE: Final[dict[str, Any]] = {
    name: made for made, name in (_SEQUENCES | {dict: "dict", OrderedDict: "ordered"}).items()
}
_KINDS: Final = (
    "None, bool, int, float, complex, str, bytes, list, tuple, set, dict, argparse.Namespace, NumPy arrays and "
    "numbers, tensors, dtypes, devices and sizes"
)


def encode(value: Any) -> bytes:
    """The bytes of an object.

    Raises:
        ArgumentTypeError: for an object, or a part of one, that is no plain data.
    """
    return msgspec.msgpack.encode(_plain(value, 0))


def decode(data: bytes) -> Any:
    """The object that :func:`encode` was given.

    Raises:
        ArgumentValueError: for bytes that it has not made.
    """
    try:
        return _object(msgspec.msgpack.decode(data))
    except (msgspec.MsgspecError, KeyError, IndexError, TypeError, ValueError) as error:
        raise ArgumentValueError(f"what another rank has sent is no object of a collective: {error}") from None


def _plain(value: Any, depth: int) -> Any:
    if depth > DEEPEST:
        raise ArgumentValueError(f"objects of collectives are nested up to {DEEPEST} deep")
    kind = type(value)
    if value is None or kind in (bool, float, str, bytes):
        return value
    if kind is int:
        return value if -(1 << 63) <= value < 1 << 63 else ["int", str(value)]
    if kind is complex:
        return ["complex", value.real, value.imag]
    if kind in _SEQUENCES:
        return [_SEQUENCES[kind], [_plain(each, depth + 1) for each in value]]
    if kind in _MAPPINGS:
        pairs = (vars(value) if kind is Namespace else value).items()
        return [_MAPPINGS[kind], [[_plain(k, depth + 1), _plain(v, depth + 1)] for k, v in pairs]]
    if isinstance(value, Tensor):
        dense = value.detach().contiguous()
        return ["tensor", *_array(_values_of(dense)), dense.dtype.name, bool(value.requires_grad)]
    if isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in "biufc":
        return ["array" if isinstance(value, np.ndarray) else "number", *_array(np.asarray(value))]
    if isinstance(value, DType):
        return ["dtype", value.name]
    if isinstance(value, device):
        return ["device", str(value)]
    raise ArgumentTypeError(
        f"a collective over objects sends plain data, not {kind.__module__}.{kind.__qualname__}: {_KINDS}"
    )


def _values_of(tensor: Tensor) -> np.ndarray[Any, Any]:
    found = tensor._session.read([tensor])[0]
    assert found is not None
    return found


def _array(values: np.ndarray[Any, Any]) -> list[Any]:
    return [values.dtype.str if values.dtype.kind != "V" else "", list(values.shape), values.tobytes()]


def _object(value: Any) -> Any:
    if type(value) is not list:
        return value
    kind = value[0]
    if kind in _MADE and kind not in ("dict", "ordered"):
        return _MADE[kind]([_object(each) for each in value[1]])
    if kind in ("dict", "ordered"):
        return _MADE[kind]([(_object(k), _object(v)) for k, v in value[1]])
    if kind == "namespace":
        return Namespace(**{_object(k): _object(v) for k, v in value[1]})
    if kind == "int":
        return int(value[1])
    if kind == "complex":
        return complex(value[1], value[2])
    if kind in ("array", "number"):
        array = np.frombuffer(value[3], np.dtype(value[1])).reshape(value[2]).copy()
        return array if kind == "array" else array[()]
    if kind == "tensor":
        return _tensor(value)
    if kind == "dtype":
        return dtypes.BY_NAME[value[1]]
    if kind == "device":
        return device(value[1])
    raise ArgumentValueError(f"{kind!r:.40} is no kind of object")


def _tensor(value: list[Any]) -> Tensor:
    dtype = dtypes.BY_NAME[value[4]]
    array = np.frombuffer(value[3], NUMPY_DTYPES[dtype]).reshape(value[2]).copy()
    session = current_session()
    number = session.upload(array, dtype, "cpu")
    made: Tensor = Tensor._make(session, number, meta(tuple(array.shape), dtype, "cpu"))
    return made.requires_grad_() if value[5] else made
