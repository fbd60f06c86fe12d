"""JSON schemas of op records with named arguments, derived from the ops' parameters."""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import Enum
from types import NoneType, UnionType
from typing import Any, Final, Union, get_args, get_origin

from . import dtypes
from .choices import choices
from .dtypes import DType
from .frames import MAX_NAME_CHARS
from .natural_records import AS, OP
from .params import FLOAT, REAL
from .table import Kind, Op, Param

Schema = dict[str, Any]

DEVICE: Final = r"^(cpu|cuda(:\d{1,3})?)$"

_INT: Final[Schema] = {"type": "integer", "format": "int64"}
_FLOAT: Final[Schema] = {"type": "number", "format": "double"}
_NULL: Final[Schema] = {"type": "null"}
_SPELLED: Final[Schema] = {"type": "string", "pattern": r"^(NaN|-?Infinity|-?\d{1,20})$"}
_COMPLEX: Final[Schema] = {"type": "array", "items": _FLOAT, "minItems": 2, "maxItems": 2}
_INTS: Final[Schema] = {"type": "array", "items": _INT}

NAME: Final[Schema] = {"type": "string", "minLength": 1, "maxLength": MAX_NAME_CHARS}
_NAME_OR_NULL: Final[Schema] = {"anyOf": [NAME, _NULL]}
DEFINITIONS: Final[dict[str, Schema]] = {
    "TensorName": NAME | {"description": "The name of a tensor."},
    "Nested": {
        "description": "A number or nested lists of numbers. NaN and infinities are strings, as are integers beyond "
        "2**53; complex numbers are pairs.",
        # The items are nested, too. Some generators refuse a schema that refers to itself.
        "anyOf": [_FLOAT, {"type": "boolean"}, {"type": "string"}, {"type": "array", "items": {}}],
    },
    "Real": {
        "description": "A real number; NaN, infinities and integers beyond 2**53 are strings.",
        "anyOf": [_FLOAT, _SPELLED],
    },
    "Number": {
        "description": "A number, or a complex one as its real and imaginary part.",
        "anyOf": [_FLOAT, {"type": "boolean"}, _SPELLED, _COMPLEX],
    },
    "TensorOrNumber": {
        "description": "The name of a tensor, or a number, or a complex one as its real and imaginary part.",
        "anyOf": [NAME, _FLOAT, {"type": "boolean"}, _COMPLEX],
    },
    "Dtype": {"description": "A dtype by name.", "type": "string", "enum": [*dtypes.BY_NAME]},
    "IntOrInts": {"description": "An integer or a list of integers.", "anyOf": [_INT, _INTS]},
}
"""What the schemas of arguments refer to, by name."""


def inlined(name: str) -> Schema:
    """A definition itself, for schemas that refer to nothing."""
    return DEFINITIONS[name]


def arguments(op: Op, ref: Callable[[str], Schema] = inlined) -> Schema:
    """The schema of an op's arguments by name. ``ref`` gives a reference to one of the ``DEFINITIONS``."""
    return {
        "type": "object",
        "properties": {param.name: _parameter(op, param, ref) for param in op.params},
        "required": [param.name for param in op.params if param.required and not _is_filled_in(op, param)],
        "additionalProperties": False,
    }


def record(op: Op, ref: Callable[[str], Schema] = inlined) -> Schema:
    """The schema of an op's record with named arguments."""
    schema = arguments(op, ref)
    schema["title"] = component(op.name)
    schema["description"] = op.doc
    schema["properties"] = {OP: {"type": "string", "const": op.name}, **schema["properties"]}
    schema["required"] = [OP, *schema["required"]]
    if op.results == 1:
        schema["properties"][AS] = NAME | {"description": "The name of the result."}
    elif op.results != 0:
        counted = {} if op.results is None else {"minItems": op.results, "maxItems": op.results}
        schema["properties"][AS] = {"type": "array", "items": _NAME_OR_NULL, **counted} | {
            "description": "The names of the results; null for one that is not wanted."
        }
        if op.results is None:
            schema["required"].append(AS)
    return schema


def _is_filled_in(op: Op, param: Param) -> bool:
    """Whether a required parameter may be left out, because it follows from others: the dtype and size of literal
    data, and optional tensors, which are null."""
    kinds = {each.kind for each in op.params}
    if Kind.PAYLOAD in kinds:
        return param.name in ("dtype", "size")
    return param.kind is Kind.OPTIONAL_TENSORS and Kind.TENSORS in kinds


def component(name: str) -> str:
    """The name of an op's schema among others: ``OpLinalgQr``, ``OpAddInPlace``."""
    words = [word for word in name.split("_") if word]
    return "Op" + "".join(word[0].upper() + word[1:] for word in words) + ("InPlace" if name.endswith("_") else "")


def _parameter(op: Op, param: Param, ref: Callable[[str], Schema]) -> Schema:
    schema = _TYPES.get(param.kind, _attribute)(op, param, ref)
    if param.optional:
        schema = {"anyOf": [*schema.get("anyOf", [schema]), _NULL]}
    if not param.required and (param.default is not None or param.optional):
        schema = schema | {"default": plain(param.default)}
    return schema


def _number(op: Op, param: Param, ref: Callable[[str], Schema]) -> Schema:
    return ref("Real" if param.numbers in (FLOAT, REAL) else "Number")


def _operand(op: Op, param: Param, ref: Callable[[str], Schema]) -> Schema:
    return ref("TensorOrNumber")


def _attribute(op: Op, param: Param, ref: Callable[[str], Schema]) -> Schema:
    allowed = [member for member in param.check if member is not NoneType]
    if set(allowed) == {bool, int, float, complex}:
        return ref("Number")
    if len(allowed) == 2 and int in allowed and tuple[int, ...] in allowed:
        return ref("IntOrInts")
    options = [_literal(op, param, member, ref) for member in allowed]
    return options[0] if len(options) == 1 else {"anyOf": [_plain_items(option) for option in options]}


def _plain_items(option: Schema) -> Schema:
    """A list among other types: items of several types or lists are left open, because Go has no name for it."""
    if ("items" in option and "type" not in option["items"]) or option.get("items", {}).get("type") == "array":
        return option | {"items": {}}
    return option


def _literal(op: Op, param: Param, member: Any, ref: Callable[[str], Schema]) -> Schema:
    if get_origin(member) is tuple:
        if member == tuple[int, ...]:
            return _INTS
        inner = get_args(member)[0]
        members = get_args(inner) if get_origin(inner) in (UnionType, Union) else (inner,)
        options = [_literal(op, param, each, ref) for each in members]
        return {"type": "array", "items": options[0] if len(options) == 1 else {"anyOf": options}}
    if member is str:
        return _text(op, param)
    return {DType: ref("Dtype"), bool: {"type": "boolean"}, int: _INT, float: ref("Real"), NoneType: _NULL}[member]


def _text(op: Op, param: Param) -> Schema:
    texts = choices(op, param)
    if texts is not None:
        return {"type": "string", "enum": [*texts]}
    return {"type": "string", "pattern": DEVICE} if param.name == "device" else {"type": "string"}


def _list_of(item: Callable[[Callable[[str], Schema]], Schema]) -> Callable[..., Schema]:
    return lambda op, param, ref: {"type": "array", "items": item(ref)}


_TYPES: Final[dict[Kind, Callable[[Op, Param, Callable[[str], Schema]], Schema]]] = {
    Kind.TENSOR: lambda op, param, ref: ref("TensorName"),
    Kind.TENSORS: _list_of(lambda ref: ref("TensorName")),
    Kind.OPTIONAL_TENSORS: _list_of(lambda ref: {"anyOf": [ref("TensorName"), _NULL]}),
    Kind.OPERAND: _operand,
    Kind.SCALAR: _number,
    Kind.POSITION: lambda op, param, ref: _INT,
    Kind.PAYLOAD: lambda op, param, ref: ref("Nested"),
}


def plain(default: Any) -> Any:
    """A default value as JSON; special numbers take the same form as in tensor values."""
    if isinstance(default, DType):
        return default.name
    if isinstance(default, Enum):
        return plain(default.value)
    if isinstance(default, float) and not math.isfinite(default):
        return "NaN" if math.isnan(default) else "Infinity" if default > 0 else "-Infinity"
    if isinstance(default, complex):
        return [default.real, default.imag]
    if isinstance(default, tuple | list):
        return [plain(each) for each in default]
    return default
