"""The OpenAPI document: FastAPI's, plus the schemas of frames, problems and security schemes."""

from __future__ import annotations

import copy
import inspect
import re
from typing import Any, Final

import msgspec
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from gradwire_protocol import dtypes, record_schemas
from gradwire_protocol import ops as _ops  # noqa: F401  (fills the table)
from gradwire_protocol.errors import BY_CODE
from gradwire_protocol.frames import MAX_ID, Frame, Payload, Reply, Structure
from gradwire_protocol.table import TABLE

from ..auth.scopes import OPEN_PATHS, SCOPES
from ..errors.problems import PROBLEM_JSON
from ..settings.version import VERSION
from . import examples, generator_forms
from .models import TensorView
from .tensor_formats import DTYPE_HEADER, JSON, RAW, SAFETENSORS, SHAPE_HEADER

_REF: Final = "#/components/schemas/"
_BYTES: Final = {"type": "string", "format": "binary"}


def ref(name: str) -> dict[str, str]:
    """A reference to a schema of the document."""
    return {"$ref": _REF + name}


def _problem(text: str) -> dict[str, Any]:
    return {"description": text, "content": {PROBLEM_JSON: {"schema": ref("ProblemDocument")}}}


PROBLEMS: Final[dict[int | str, dict[str, Any]]] = {
    "4XX": _problem("The server refused the request; `code` names the reason"),
    "5XX": _problem("The server failed; `retryable` shows whether a retry can help"),
}

FRAME_REQUEST: Final[dict[str, Any]] = {
    "requestBody": {
        "required": True,
        "content": {JSON: {"schema": ref("Frame")}, "application/msgpack": {"schema": _BYTES}},
    }
}
FRAME_RESPONSE: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "description": "The reply, in the media type of the request",
        "content": {JSON: {"schema": ref("Reply")}, "application/msgpack": {"schema": _BYTES}},
    }
}

EXPORT_RESPONSE: Final[dict[int | str, dict[str, Any]]] = {
    200: {"description": "The exported session", "content": {SAFETENSORS: {"schema": _BYTES}}}
}
IMPORT_REQUEST: Final[dict[str, Any]] = {
    "requestBody": {"required": True, "content": {SAFETENSORS: {"schema": _BYTES}}}
}

_TENSOR_HEADERS: Final = [
    {
        "name": DTYPE_HEADER, "in": "header", "required": False, "schema": {"type": "string", "example": "float32"},
        "description": f"With {RAW}: the dtype.",
    },
    {
        "name": SHAPE_HEADER, "in": "header", "required": False, "schema": {"type": "string", "example": "2,3"},
        "description": f"With {RAW}: the shape.",
    },
]  # fmt: skip
TENSOR_REQUEST: Final[dict[str, Any]] = {
    "requestBody": {
        "required": True,
        "content": {JSON: {"schema": ref("TensorBody")}, RAW: {"schema": _BYTES}, SAFETENSORS: {"schema": _BYTES}},
    },
    "parameters": _TENSOR_HEADERS,
}
TENSOR_RESPONSE: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "description": "The tensor",
        "content": {JSON: {"schema": ref("TensorView")}, RAW: {"schema": _BYTES}, SAFETENSORS: {"schema": _BYTES}},
        "headers": {each["name"]: {"schema": {"type": "string"}} for each in _TENSOR_HEADERS},
    }
}

_PROBLEM_DOCUMENT: Final[dict[str, Any]] = {
    "title": "ProblemDocument",
    "description": "An error as an RFC 9457 problem document.",
    "type": "object",
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "instance": {"type": "string"},
        "code": {"enum": sorted(BY_CODE)},
        "request_id": {"type": "string"},
        "retryable": {"type": "boolean", "description": "Whether the same request may succeed later."},
        "op": {"type": "string", "description": "The failed op."},
        "seq": {"type": "integer", "description": "The number of its frame."},
        "index": {"type": "integer", "description": "The position of the op in the frame."},
        "extra": {
            "type": "object",
            "description": "Further details, such as the setting of a limit.",
            "additionalProperties": True,
        },
    },
    "required": ["type", "title", "status", "detail", "instance", "code", "request_id", "retryable", "extra"],
    "additionalProperties": False,
}

_NESTED: Final[dict[str, Any]] = {
    "title": "Nested",
    "description": "A number or nested lists of numbers. NaN and infinities are strings, complex numbers are pairs.",
    "anyOf": [{"type": "number"}, {"type": "boolean"}, {"type": "string"}, {"type": "array", "items": {}}],
}
"""The items are nested, too. Some generators refuse a schema that refers to itself."""

_ARGUMENT: Final[dict[str, Any]] = {
    "title": "Argument",
    "description": "An argument of an op record: a reference, the kind of a number, a literal, a list, or null.",
    "anyOf": [
        {"type": "integer"}, {"type": "number"}, {"type": "boolean"}, {"type": "string"}, {"type": "null"},
        {"type": "array", "items": {}},
    ],
}  # fmt: skip

_RECORD_ITEMS: Final = (
    {"type": "string", "description": "Name of the op."},
    {"type": "array", "description": "Its arguments by position; trailing defaults may be omitted.",
     "items": ref("Argument")},
    {"type": "integer", "minimum": 0, "description": "The number of results, if the op leaves it open."},
)  # fmt: skip
_RECORD: Final[dict[str, Any]] = {
    "title": "OpRecord",
    "description": "One op: its name, its arguments, and the number of results if the op leaves it open.",
    "anyOf": [
        {"type": "array", "prefixItems": [*_RECORD_ITEMS[:length]], "minItems": length, "maxItems": length}
        for length in (2, 3)
    ],
}
"""Two tuples of a fixed length, because generators ignore ``minItems`` below the length."""


def _json_frame() -> type:
    """The frame as JSON, with its structure as an object instead of encoded bytes."""
    fields: list[tuple[str, Any] | tuple[str, Any, Any]] = [("structure", Structure)]
    for field in msgspec.structs.fields(Frame):
        if field.name in ("structure", "buffers"):
            continue
        made = field.default_factory is not msgspec.NODEFAULT
        default = msgspec.field(default_factory=field.default_factory) if made else field.default
        fields.append((field.name, field.type, default))
    return msgspec.defstruct("Frame", fields, namespace={"__doc__": Frame.__doc__})


_ROLE: Final = re.compile(r":\w+:`([^`]*)`")
_ATTRIBUTE: Final = re.compile(r"^    (\w+(?:, \w+)*): (.*(?:\n {8}.*)*)", re.MULTILINE)


def _describe(schema: dict[str, Any]) -> None:
    """Move what a struct's docstring says about its attributes to the properties."""
    text = _ROLE.sub(r"`\1`", inspect.cleandoc(schema["description"]))
    summary, _, attributes = text.partition("\n\nAttributes:\n")
    schema["description"] = summary
    for names, about in _ATTRIBUTE.findall(attributes):
        for name in names.split(", "):
            if name in schema["properties"]:  # a JSON frame has no buffers
                sentence = " ".join(about.split())
                schema["properties"][name]["description"] = sentence[0].upper() + sentence[1:]


def _frame_schemas() -> dict[str, Any]:
    """The JSON schemas of the protocol's structs."""
    _, found = msgspec.json.schema_components([_json_frame(), Reply, Structure, Payload], ref_template=_REF + "{name}")
    schemas: dict[str, Any] = dict(found)
    for schema in schemas.values():
        _describe(schema)
    frame = schemas["Frame"]["properties"]
    frame["type"] = {"const": "frame", "default": "frame"}
    schemas["Reply"]["properties"]["type"] = {"const": "reply"}
    for name in ("seq", "first"):
        frame[name] |= {"minimum": 0, "maximum": MAX_ID}
    frame["scalars"]["items"] = ref("Nested")
    schemas["Payload"]["properties"]["values"] = schemas["Value"]["properties"]["values"] = ref("Nested")
    schemas["Structure"]["properties"]["ops"]["items"] = ref("OpRecord")
    return schemas


def op_schemas() -> dict[str, Any]:
    """A schema for the record of each op, with named arguments, and what they refer to."""
    exposed = [TABLE[name] for name in sorted(TABLE) if not TABLE[name].internal]
    return {
        **record_schemas.DEFINITIONS,
        **{record_schemas.component(op.name): record_schemas.record(op, ref) for op in exposed},
    }


def document(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document of an application."""
    found = get_openapi(
        title="gradwire",
        version=VERSION,
        summary="Autograd as a service",
        description=(
            "Sessions hold tensors and their autograd graphs. Frames carry all operations; the other calls are "
            "shortcuts that build a frame. Errors are problem documents with a stable `code`."
        ),
        routes=app.routes,
        servers=[{"url": prefix}] if (prefix := app.state.server.settings.root_path) else None,
    )
    components = found.setdefault("components", {})
    schemas = components.setdefault("schemas", {})
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    schemas["ProblemDocument"] = _PROBLEM_DOCUMENT
    schemas["Nested"] = _NESTED
    schemas |= _frame_schemas()
    schemas["Argument"] = _ARGUMENT
    schemas["OpRecord"] = _RECORD
    schemas["TensorView"] = TensorView.model_json_schema(ref_template=_REF + "{model}")
    for view in ("ValueView", "TensorView"):
        schemas[view]["properties"]["values"] = ref("Nested")
    schemas["ParamView"]["properties"]["default"] = ref("Argument")
    schemas["TensorBody"] = {
        "title": "TensorBody",
        "type": "object",
        "properties": {"values": ref("Nested"), "dtype": {"anyOf": [{"enum": [*dtypes.BY_NAME]}, {"type": "null"}]}},
        "required": ["values"],
        "additionalProperties": False,
    }
    components["securitySchemes"] = {
        "Bearer": {"type": "http", "scheme": "bearer"},
        "Key": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
    }
    schemas |= op_schemas()
    for path, operations in found["paths"].items():
        for method, operation in operations.items():
            scope = SCOPES.get((method.upper(), path))
            operation["security"] = [] if path in OPEN_PATHS else [{"Bearer": []}, {"Key": []}]
            if scope:
                operation["x-scope"] = scope
    found = copy.deepcopy(found)  # of what is shared with the next document
    examples.add(found)
    generator_forms.rewrite(found)
    return found


def install(app: FastAPI) -> None:
    """Replace FastAPI's document of the application."""

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = document(app)
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]
