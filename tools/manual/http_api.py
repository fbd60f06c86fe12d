"""The HTTP reference: every route and schema of the OpenAPI document, as a page."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from gradwire_server.app import create_app
from gradwire_server.http.openapi import document
from gradwire_server.settings.settings import Settings
from tools.derive import prose

SCHEMA = "#/components/schemas/"


def _type(schema: dict[str, Any]) -> str:
    """A schema in a few words, with links to the schemas of the page."""
    if "$ref" in schema:
        name = schema["$ref"].removeprefix(SCHEMA)
        return f"[{name}](#{name.lower()})"
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return " or ".join(dict.fromkeys(_type(each) for each in schema[several]))
    if "enum" in schema:
        values = schema["enum"]
        return " or ".join(f"`{value}`" for value in values[:8]) + (" or ..." if len(values) > 8 else "")
    if "const" in schema:
        return f"`{json.dumps(schema['const'])}`"
    kind = schema.get("type", "any")
    if kind == "array":
        return f"list of {_type(schema['items'])}" if schema.get("items") else "list"
    if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"object of {_type(schema['additionalProperties'])}"
    return " or ".join(kind) if isinstance(kind, list) else str(kind)


def _bounds(schema: dict[str, Any]) -> str:
    words = {
        "minimum": "at least", "maximum": "at most", "exclusiveMinimum": "above", "exclusiveMaximum": "below",
        "minLength": "characters, at least", "maxLength": "characters, at most",
    }  # fmt: skip
    found = [f"{text} {schema[name]}" for name, text in words.items() if name in schema]
    if schema.get("default") is not None:
        found.append(f"default `{json.dumps(schema['default'])}`")
    return "; ".join(found)


def _cell(text: str) -> str:
    return prose(text).replace("\n\n", " ").replace("|", "\\|")


def _rows(name: str, schema: dict[str, Any], required: bool, text: str) -> str:
    about = "; ".join(part for part in (_cell(text), _bounds(schema)) if part)
    return f"| `{name}`{'' if required else ' (optional)'} | {_type(schema).replace('|', chr(92) + '|')} | {about} |"


def _operation(method: str, path: str, told: dict[str, Any]) -> Iterator[str]:
    yield f"\n### {method.upper()} {path}\n"
    yield f"**{told.get('summary', '')}.** Scope: {'`' + told['x-scope'] + '`' if told.get('x-scope') else 'none'}.\n"
    yield prose(told.get("description", "")) + "\n"
    if told.get("parameters"):
        yield "| parameter | type | meaning |\n|---|---|---|"
        for each in told["parameters"]:
            yield _rows(
                f"{each['name']}` in `{each['in']}", each["schema"], each["required"], each.get("description", "")
            )
        yield ""
    for media, body in told.get("requestBody", {}).get("content", {}).items():
        yield f"* Body, `{media}`: {_type(body.get('schema', {}))}"
    for status, answer in told["responses"].items():
        if status in ("4XX", "5XX"):
            continue
        kinds = [f"`{media}`: {_type(body.get('schema', {}))}" for media, body in answer.get("content", {}).items()]
        yield f"* Answer {status}: {'; '.join(kinds) or 'no content'}"


def page() -> str:
    """The routes by resource, then the schemas."""
    told = document(create_app(Settings(api_keys=("unused",))), typed_ops=False)
    lines = [
        "# HTTP API\n",
        "Every route, from the OpenAPI document that a running server has at `/openapi.json` and shows at `/docs`, "
        "where you can also try requests. [gradwire over HTTP](http.md) teaches it step by step. Requests carry a key, "
        "`Authorization: Bearer <key>` or `X-API-Key: <key>`. Errors are problem documents "
        "([ProblemDocument](#problemdocument)) with a [code](errors.md).\n",
        "## Routes",
    ]
    for path, operations in told["paths"].items():
        for method, operation in operations.items():
            lines += _operation(method, path, operation)
    lines.append("\n## Schemas")
    for name, schema in sorted(told["components"]["schemas"].items()):
        lines += [f"\n({name.lower()})=\n### {name}\n", prose(schema.get("description", ""))]
        if schema.get("properties"):
            lines.append("\n| field | type | meaning |\n|---|---|---|")
            for field, inner in schema["properties"].items():
                lines.append(_rows(field, inner, field in schema.get("required", ()), inner.get("description", "")))
        else:
            lines.append(f"\nA value: {_type(schema)}.")
    return "\n".join(lines) + "\n"
