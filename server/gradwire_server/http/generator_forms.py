"""Forms of a schema that code generators read well. Each replaces a form that means the same, or less.

=================================== ================================================================================
``format: int64``                   on integers that may exceed 32 bits; Go and Java would take 32 otherwise
``format: double``                  on numbers; Go and Java would take 32 bits otherwise
no null in parameters               a query or header cannot be null, it is absent
path parameters in its order         generated functions take them by position
no titles of members                FastAPI's repeat the member's name; generators make names of types of them
``maxItems`` instead of             as ``prefixItems`` of fixed length; ``items: false`` is no schema to some
``items: false``
no ``default`` of a union            it is in the description; Go would assign a number to a struct
``type`` beside ``const``, ``enum`` a language without literal types needs it
bounds as integers                  pydantic writes those of integers as floats
=================================== ================================================================================
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

_INT32: Final = (1 << 31) - 1
_INT64: Final = (1 << 63) - 1
_BOUNDS: Final = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
_VERBATIM: Final = frozenset({"example", "examples", "default", "const", "enum", "required"})
"""Keywords whose values are data, not schemas."""
_JSON_TYPES: Final[dict[type, str]] = {str: "string", bool: "boolean", int: "integer", float: "number"}


def rewrite(document: dict[str, Any]) -> None:
    """Rewrite the schemas of an OpenAPI document in place."""
    for path, item in document["paths"].items():
        for operation in item.values():
            if "parameters" in operation:
                operation["parameters"].sort(key=lambda each: _place(path, each))
            for parameter in operation.get("parameters", ()):
                parameter["schema"] = _without_null(parameter["schema"])
                parameter["schema"].pop("title", None)
    _walk(document["paths"])
    for schema in document["components"]["schemas"].values():
        rewrite_schema(schema)


def _place(path: str, parameter: dict[str, Any]) -> int:
    """Where a parameter stands: those in the path in its order, then the others as they are."""
    return path.index(f"{{{parameter['name']}}}") if parameter["in"] == "path" else len(path)


def rewrite_schema(schema: dict[str, Any]) -> None:
    """Rewrite a schema and those inside it in place."""
    _walk(schema)


def _walk(node: Any) -> None:
    if isinstance(node, list):
        for each in node:
            _walk(each)
    elif isinstance(node, dict):
        for change in _CHANGES:
            change(node)
        for keyword, value in node.items():
            if keyword == "properties":
                for member in value.values():
                    if isinstance(member, dict):
                        member.pop("title", None)
                        _walk(member)
            elif keyword not in _VERBATIM:
                _walk(value)


def _number(node: dict[str, Any]) -> None:
    kind = node.get("type")
    if kind == "number":
        node.setdefault("format", "double")
    if kind != "integer":
        return
    for bound in _BOUNDS:
        if bound in node:
            node[bound] = int(node[bound])
    if not -_INT32 <= node.get("minimum", 0) <= node.get("maximum", _INT64) <= _INT32:
        node["format"] = "int64"
    if node.get("minimum") == -_INT64 - 1:  # as the format says
        del node["minimum"]
    if node.get("maximum") == _INT64:
        del node["maximum"]


def _tuple(node: dict[str, Any]) -> None:
    if "prefixItems" in node and node.get("items") is False:
        del node["items"]
        node["minItems"] = node["maxItems"] = len(node["prefixItems"])


def _default(node: dict[str, Any]) -> None:
    if node.get("default") is not None and ("$ref" in node or "anyOf" in node):
        told = f"Default: `{json.dumps(node.pop('default'))}`."
        node["description"] = f"{node['description']} {told}" if "description" in node else told


def _literal(node: dict[str, Any]) -> None:
    if "type" in node:
        return
    values = [node["const"]] if "const" in node else node.get("enum")
    if isinstance(values, list) and values:
        kinds = list(dict.fromkeys("null" if value is None else _JSON_TYPES.get(type(value)) for value in values))
        if len(kinds) == 1 and kinds[0] is not None:
            node["type"] = kinds[0]


_CHANGES: Final[tuple[Callable[[dict[str, Any]], None], ...]] = (_number, _tuple, _default, _literal)


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    options = schema.get("anyOf", ())
    kept = [option for option in options if option != {"type": "null"}]
    if len(kept) == 1 and len(kept) < len(options):
        option: dict[str, Any] = kept[0]
        return option | {keyword: value for keyword, value in schema.items() if keyword != "anyOf"}
    return schema
