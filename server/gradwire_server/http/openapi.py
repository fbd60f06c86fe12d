"""The OpenAPI document: FastAPI's, plus the schemas of frames, problems and security schemes."""

from __future__ import annotations

import copy
from typing import Any, Final

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from gradwire_protocol import dtypes
from gradwire_protocol.errors import BY_CODE

from ..auth.scopes import OPEN_PATHS, SCOPES
from ..errors.problems import PROBLEM_JSON
from ..settings.version import VERSION
from . import examples, generator_forms
from .frame_schemas import REF, frame_schemas, op_schemas, ref
from .models import NamedView, TensorView
from .tensor_formats import DTYPE_HEADER, JSON, RAW, SAFETENSORS, SHAPE_HEADER, TAR

_BYTES: Final = {"type": "string", "format": "binary"}


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
RECORDING_RESPONSE: Final[dict[int | str, dict[str, Any]]] = {
    200: {"description": "The recorded history", "content": {TAR: {"schema": _BYTES}}}
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


def _value_response(view: str) -> dict[int | str, dict[str, Any]]:
    """The response with a tensor's values; ``view`` is the schema of its JSON form."""
    content = {JSON: {"schema": ref(view)}, RAW: {"schema": _BYTES}, SAFETENSORS: {"schema": _BYTES}}
    headers = {each["name"]: {"schema": {"type": "string"}} for each in _TENSOR_HEADERS}
    return {200: {"description": "The tensor", "content": content, "headers": headers}}


TENSOR_RESPONSE: Final = _value_response("TensorView")
NAMED_RESPONSE: Final = _value_response("NamedView")

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


def document(app: FastAPI, typed_ops: bool = True) -> dict[str, Any]:
    """The OpenAPI document of an application, with a schema for each op or a shorter one with one for all."""
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
    schemas |= frame_schemas()
    schemas["TensorView"] = TensorView.model_json_schema(ref_template=REF + "{model}")
    schemas["NamedView"] = NamedView.model_json_schema(ref_template=REF + "{model}")
    for view in ("ValueView", "TensorView", "NamedView"):
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
    schemas |= op_schemas(typed_ops)
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
