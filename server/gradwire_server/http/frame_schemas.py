"""Schemas of frames in JSON, of their replies, and of the record of every op, for the OpenAPI document."""

from __future__ import annotations

import inspect
import re
from typing import Any, Final

import msgspec

from gradwire_protocol import ops as _ops  # noqa: F401  (fills the table)
from gradwire_protocol import record_schemas
from gradwire_protocol.frames import MAX_ID, Frame, Payload, Reply, Structure
from gradwire_protocol.natural_records import AS, OP
from gradwire_protocol.record_schemas import NAME, Schema
from gradwire_protocol.table import TABLE

REF: Final = "#/components/schemas/"
_NULL: Final = {"type": "null"}


def ref(name: str) -> dict[str, str]:
    """A reference to a schema of the document."""
    return {"$ref": REF + name}


_POSITIONAL: Final = (
    {"type": "string", "description": "The op."},
    {"type": "array", "items": ref("Argument"),
     "description": "Its arguments by position; trailing defaults may be omitted."},
    {"description": "The name of the result or the names of the results; in compact form their number, if the op "
     "leaves it open.",
     "anyOf": [{"type": "integer", "minimum": 0}, NAME, {"type": "array", "items": {"anyOf": [NAME, _NULL]}}]},
)  # fmt: skip
_PARTS: Final[dict[str, Schema]] = {
    "Argument": {
        "description": "A name of a tensor, a number, text, a list or null; in compact form also a reference or the "
        "kind of a number in scalars.",
        "anyOf": [
            {"type": "integer"}, {"type": "number"}, {"type": "boolean"}, {"type": "string"}, _NULL,
            {"type": "array", "items": {}},
        ],
    },
    "OpRecord": {
        "description": "One op: an object with its arguments by name, or [op, arguments] or [op, arguments, results] "
        "with arguments by position.",
        # Two tuples of a fixed length, because generators ignore minItems below the length.
        "anyOf": [ref("NamedRecord")] + [
            {"type": "array", "prefixItems": [*_POSITIONAL[:length]], "minItems": length, "maxItems": length}
            for length in (2, 3)
        ],
    },
    "Reference": {
        "description": "A tensor by name; in compact form n for result n of the frame, -1 - k for entry k of external.",
        "anyOf": [{"type": "integer", "minimum": -MAX_ID, "maximum": MAX_ID}, NAME],
    },
    "TensorId": {
        "description": "A tensor by its id or its name.",
        "anyOf": [{"type": "integer", "minimum": -MAX_ID, "maximum": MAX_ID}, NAME],
    },
}  # fmt: skip

_UNTYPED: Final[Schema] = {
    "description": "One op with its arguments by name. `GET /v1/ops` has the schema of the arguments of each op.",
    "type": "object",
    "properties": {
        OP: {"type": "string", "description": "The op."},
        AS: {
            "description": "The name of the result, or the names of the results.",
            "anyOf": [NAME, {"type": "array", "items": NAME}],
        },
    },
    "required": [OP],
    "additionalProperties": True,
}


def frame_schemas() -> dict[str, Schema]:
    """The schemas of frames and replies, by name."""
    _, found = msgspec.json.schema_components([_json_frame(), Reply, Structure, Payload], ref_template=REF + "{name}")
    schemas: dict[str, Schema] = dict(found)
    for schema in schemas.values():
        _describe(schema)
    schemas |= _PARTS
    _natural(schemas["Frame"]["properties"], schemas["Structure"]["properties"])
    schemas["Reply"]["properties"]["type"] = {"const": "reply"}
    schemas["Payload"]["properties"]["values"] = schemas["Value"]["properties"]["values"] = ref("Nested")
    schemas["Structure"]["properties"]["ops"]["items"] = ref("OpRecord")
    schemas["Structure"]["description"] += " In a frame in natural form its members are at the top level."
    return schemas


def _json_frame() -> type:
    """The frame as JSON, with its structure as an object instead of encoded bytes, or at the top level."""
    fields: list[tuple[str, Any] | tuple[str, Any, Any]] = []
    for field in msgspec.structs.fields(Frame):
        if field.name == "buffers":
            continue
        made = field.default_factory is not msgspec.NODEFAULT
        default = msgspec.field(default_factory=field.default_factory) if made else field.default
        if field.name == "structure":
            fields.append(("structure", Structure | msgspec.UnsetType, msgspec.UNSET))
        else:
            fields.append((field.name, field.type, default))
    return msgspec.defstruct("Frame", fields, namespace={"__doc__": Frame.__doc__})


def _natural(frame: dict[str, Any], structure: dict[str, Any]) -> None:
    """What a frame has in natural form."""
    frame["type"] = {"const": "frame", "default": "frame"}
    for name in ("seq", "first"):
        frame[name] |= {"minimum": 0, "maximum": MAX_ID}
    frame["structure"]["description"] = "The structure, if its members are not at the top level."
    frame["scalars"]["items"] = ref("Nested")
    for name, items in (("ops", "OpRecord"), ("reads", "Reference"), ("drops", "Reference")):
        frame[name] = structure[name] | {"items": ref(items)}
    frame["stacked"] |= {"items": ref("Reference")}
    frame["releases"] |= {"items": ref("TensorId")}
    frame["keeps"] = structure["keeps"] | {"additionalProperties": {"anyOf": [ref("Reference"), _NULL]}}
    frame["heard"] = structure["heard"]
    ids = frame["external"]
    frame["external"] = {
        "description": "Ids of tensors: a list in order of first mention, or by the names that the frame gives them.",
        "anyOf": [
            {"type": "array", "items": ids["items"], "maxItems": ids["maxItems"]},
            {"type": "object", "additionalProperties": ids["items"]},
        ],
    }


_ROLE: Final = re.compile(r":\w+:`([^`]*)`")
_ATTRIBUTE: Final = re.compile(r"^    (\w+(?:, \w+)*): (.*(?:\n {8}.*)*)", re.MULTILINE)


def _describe(schema: Schema) -> None:
    """Move what a struct's docstring says about its attributes to the properties."""
    text = _ROLE.sub(r"`\1`", inspect.cleandoc(schema["description"]))
    schema["description"], _, attributes = text.partition("\n\nAttributes:\n")
    for names, about in _ATTRIBUTE.findall(attributes):
        for name in names.split(", "):
            if name in schema["properties"]:  # a frame in JSON has no buffers
                sentence = " ".join(about.split())
                schema["properties"][name]["description"] = sentence[0].upper() + sentence[1:]


def op_schemas(typed: bool) -> dict[str, Schema]:
    """The schemas of op records with named arguments: one for each op and their union if ``typed``, else one for all,
    which leaves the arguments open."""
    if not typed:
        return {"NamedRecord": _UNTYPED, "Nested": record_schemas.DEFINITIONS["Nested"]}
    exposed = [TABLE[name] for name in sorted(TABLE) if not TABLE[name].internal]
    components = {op.name: record_schemas.component(op.name) for op in exposed}
    union = {
        "description": "One op with its arguments by name.",
        "anyOf": [ref(name) for name in components.values()],
        "discriminator": {
            "propertyName": OP, "mapping": {name: REF + component for name, component in components.items()}
        },
    }  # fmt: skip
    records = {components[op.name]: record_schemas.record(op, ref) for op in exposed}
    return {**record_schemas.DEFINITIONS, **records, "NamedRecord": union}
