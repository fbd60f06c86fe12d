"""The OpenAPI document: FastAPI's, plus the schemas of frames, problems and security schemes."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from gradwire_protocol import dtypes
from gradwire_protocol.errors import BY_CODE
from gradwire_protocol.frames import MAX_ID, Frame, Payload, Reply, Structure

from ..auth.scopes import OPEN_PATHS, SCOPES
from ..errors.problems import PROBLEM_JSON
from ..settings.version import VERSION
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
        "extra": {"type": "object", "description": "Further details, such as the setting of a limit."},
    },
    "required": ["type", "title", "status", "detail", "instance", "code", "request_id", "retryable", "extra"],
    "additionalProperties": False,
}

_NESTED: Final[dict[str, Any]] = {
    "title": "Nested",
    "description": "A number or nested lists of numbers. NaN and infinities are strings, complex numbers are pairs.",
    "anyOf": [{"type": "number"}, {"type": "boolean"}, {"type": "string"}, {"type": "array", "items": ref("Nested")}],
}


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


def _frame_schemas() -> dict[str, Any]:
    """The JSON schemas of the protocol's structs."""
    _, found = msgspec.json.schema_components([_json_frame(), Reply, Structure, Payload], ref_template=_REF + "{name}")
    schemas: dict[str, Any] = dict(found)
    for schema in schemas.values():
        # The docstring's list of attributes documents what JSON schema cannot express.
        schema["description"] = "\n".join(line.strip() for line in schema["description"].splitlines())
    frame = schemas["Frame"]["properties"]
    frame["type"] = {"const": "frame", "default": "frame"}
    schemas["Reply"]["properties"]["type"] = {"const": "reply"}
    ident = {"type": "integer", "minimum": 0, "maximum": MAX_ID}
    for name in ("seq", "client", "first"):
        frame[name] |= ident
    schemas["Structure"]["properties"]["ops"]["items"] = {
        "type": "array",
        "prefixItems": [
            {"type": "string", "description": "Name of the op"},
            {"type": "array", "description": "Arguments, see docs/protocol.md", "items": {}},
            {"type": "integer", "minimum": 0, "description": "Number of results, if the op does not fix it"},
        ],
        "minItems": 2,
        "maxItems": 3,
    }
    return schemas


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
    schemas["TensorView"] = TensorView.model_json_schema(ref_template=_REF + "{model}")
    schemas["TensorBody"] = {
        "title": "TensorBody",
        "type": "object",
        "properties": {"values": ref("Nested"), "dtype": {"enum": [*dtypes.BY_NAME, None]}},
        "required": ["values"],
        "additionalProperties": False,
    }
    components["securitySchemes"] = {
        "Bearer": {"type": "http", "scheme": "bearer"},
        "Key": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
    }
    for path, operations in found["paths"].items():
        for method, operation in operations.items():
            scope = SCOPES.get((method.upper(), path))
            operation["security"] = [] if path in OPEN_PATHS else [{"Bearer": []}, {"Key": []}]
            if scope:
                operation["x-scope"] = scope
    return found


def install(app: FastAPI) -> None:
    """Replace FastAPI's document of the application."""

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = document(app)
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]
