"""The parameters of an op: the annotations of a declaration, and what they say about arguments."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Final, Union, get_args, get_origin

from .dtypes import DType
from .meta import Meta
from .promotion import ScalarKind, fits

Tensor = Meta
FLOAT, REAL, COMMON, ELEMENT = "float", "real", "common", "element"
if TYPE_CHECKING:
    Scalar = Any  # a rule sees the kind, a default is a number
    Float = Any
    Real = Any
    Factor = Any
    Element = Any
else:
    Scalar = ScalarKind
    Float = Annotated[ScalarKind, FLOAT]
    """A number that is never complex: a complex one has the wrong type (``TypeError``)."""
    Real = Annotated[ScalarKind, REAL]
    """A number that is never complex: a complex one cannot be converted (``RuntimeError``)."""
    Factor = Annotated[ScalarKind, COMMON]
    """A number that may be complex only if a tensor operand is; otherwise it cannot be converted (``RuntimeError``)."""
    Element = Annotated[ScalarKind, ELEMENT]
    """A number that becomes an element of the result; the rule decides about complex ones. Like ``Real`` and
    ``Factor``, it is refused if the result's integer dtype cannot hold it."""
Position = Annotated[int, "data"]
"""An int whose value the rule needs although it is data: a position in a tensor (``x[i]``)."""
FreePosition = Annotated[int, "free"]
"""A position that the rule does not look at: the result has the same shape wherever it is."""
Number = bool | int | float | complex
"""A Python number that is part of the structure, because the result's shape depends on it (``arange``)."""
Ints = tuple[int, ...]
Strings = tuple[str, ...]


class Payload:
    """Marks the parameter that takes a payload of the frame."""


class Kind(Enum):
    """How an argument is encoded."""

    TENSOR = "tensor"
    TENSORS = "list of tensors"
    OPTIONAL_TENSORS = "list of tensors or null"
    OPERAND = "tensor or number"
    SCALAR = "number"
    POSITION = "position"
    ATTRIBUTE = "attribute"
    PAYLOAD = "payload"


class Param:
    """One parameter of an op."""

    __slots__ = ("annotation", "check", "default", "free", "kind", "name", "numbers", "optional", "required")

    kind: Kind
    optional: bool
    check: tuple[Any, ...]

    def __init__(self, name: str, annotation: Any, default: Any) -> None:
        self.name: str = name
        self.annotation: Any = annotation
        self.required: bool = default is inspect.Parameter.empty
        self.default: Any | None = None if self.required else default
        self.numbers: str | None = _numbers(annotation)
        self.free: bool = FreePosition in _members(annotation)
        self.kind, self.optional, self.check = _classify(annotation)

    def describe(self) -> str:
        text = _describe(self.annotation)
        return f"{self.name}: {text}" + ("" if self.required else f" = {self.default!r}")


def _members(annotation: Any) -> tuple[Any, ...]:
    if get_origin(annotation) in (UnionType, Union):
        return tuple(m for part in get_args(annotation) for m in _members(part))
    return (annotation,)


def _numbers(annotation: Any) -> str | None:
    """Which numbers a parameter accepts: ``FLOAT``, ``REAL``, ``COMMON`` or ``ELEMENT``; ``None`` for any."""
    for member in _members(annotation):
        if get_origin(member) is Annotated and get_args(member)[0] is ScalarKind:
            return str(get_args(member)[1])
    return None


def _unmarked(member: Any) -> Any:
    return ScalarKind if get_origin(member) is Annotated and get_args(member)[0] is ScalarKind else member


def _classify(annotation: Any) -> tuple[Kind, bool, tuple[Any, ...]]:
    members = tuple(_unmarked(member) for member in _members(annotation))
    optional = NoneType in members
    real = tuple(m for m in members if m is not NoneType)
    if Meta in real:
        return (Kind.OPERAND if ScalarKind in real else Kind.TENSOR), optional, real
    if real == (ScalarKind,):
        return Kind.SCALAR, optional, real
    if real in ((Position,), (FreePosition,)):
        return Kind.POSITION, optional, real
    if real == (Payload,):
        return Kind.PAYLOAD, optional, real
    if len(real) == 1 and get_origin(real[0]) is list:
        inner = _members(get_args(real[0])[0])
        return (Kind.OPTIONAL_TENSORS if NoneType in inner else Kind.TENSORS), optional, real
    return Kind.ATTRIBUTE, optional, real


_NUMBERS: Final = {FLOAT: "float", REAL: "Real", COMMON: "Scalar", ELEMENT: "Scalar"}


def _describe(annotation: Any) -> str:
    names = {Meta: "Tensor", ScalarKind: "Scalar", NoneType: "None", DType: "dtype"}
    parts = []
    for member in _members(annotation):
        if get_origin(member) in (list, tuple):
            inner = [a for a in get_args(member) if a is not Ellipsis]
            parts.append(f"{get_origin(member).__name__}[{', '.join(_describe(a) for a in inner)}]")
        elif get_origin(member) is Annotated:
            parts.append(_NUMBERS.get(get_args(member)[1], "int"))
        else:
            parts.append(names.get(member, getattr(member, "__name__", str(member))))
    return " | ".join(dict.fromkeys(parts))


def attribute_matches(value: Any, allowed: Sequence[Any]) -> bool:
    """Whether an attribute's value has one of the declared types. Here a bool is a float, like any number, but not an
    int."""
    for member in allowed:
        if member is DType:
            if type(value) is DType:
                return True
        elif member is float:
            if type(value) is float or type(value) is bool or (type(value) is int and fits(value)):
                return True
        elif type(value) is member:
            return member is not int or -(1 << 63) <= value < 1 << 63
        elif type(member) is not type and isinstance(value, tuple) and (inner := _items(member)) is not None:
            for item in value:
                if not attribute_matches(item, inner):
                    break
            else:
                return True
    return False


@cache
def _items(member: Any) -> tuple[Any, ...] | None:
    """The types that a tuple's items may have; ``None`` for a type that is not one of tuples."""
    return _members(get_args(member)[0]) if get_origin(member) is tuple else None
