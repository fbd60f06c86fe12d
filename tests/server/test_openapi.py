"""The OpenAPI document is accurate: schemathesis calls the server by it."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

from gradwire_protocol.table import TABLE
from gradwire_server.app import create_app
from gradwire_server.http.frame_schemas import op_schemas
from gradwire_server.http.openapi import document
from gradwire_server.settings.settings import Settings
from tests.live_server import LiveServer

APP = create_app(Settings(api_keys=("unused",)))
DOCUMENT = APP.openapi()
SHORT_DOCUMENT = document(APP, typed_ops=False)
for binary in ("application/safetensors", "application/msgpack"):
    schemathesis.serializer.alias(binary, "application/octet-stream")
# Hypothesis takes minutes to resolve hundreds of schemas of ops; tests/protocol/test_record_schemas.py is about these.
# The stream of activity does not end, see test_activity.py.
schema = schemathesis.openapi.from_dict(SHORT_DOCUMENT).exclude(path="/v1/activity/stream")
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    negative_data_rejection,
    unsupported_method,
]


@pytest.fixture(scope="module")
def place(server: LiveServer) -> Any:
    """A session with a tensor in it, for the calls that need one."""
    with server.http() as http:
        path = http.post("/v1/sessions").headers["location"]
        http.put(f"{path}/tensors/1?requires_grad=true", json={"values": 1.5})
        yield path.rsplit("/", 1)[-1]


@schema.parametrize()
@settings(max_examples=10, suppress_health_check=list(HealthCheck))
def test_calls_by_the_document(case: schemathesis.Case, server: LiveServer, place: str) -> None:
    if case.method == "DELETE" and case.path == "/v1/sessions/{session_id}":
        place = "s_of_nobody"
    if case.path_parameters and "session_id" in case.path_parameters:
        case.path_parameters["session_id"] = place
    if case.path.endswith("/groups") and isinstance(case.body, dict):
        wait = case.body.get("timeout_s", 300.0)
        if isinstance(wait, int | float) and not isinstance(wait, bool) and 0.1 < wait <= 86_400:
            case.body["timeout_s"] = 0.1  # the other ranks never come
    if case.path.endswith("/profile") and isinstance(case.body, dict):
        seconds = case.body.get("seconds", 5.0)
        if type(seconds) in (int, float) and 0.1 <= seconds <= 60:
            case.body["seconds"] = 0.1
    checks = [*CHECKS]
    if case.method == "POST" and case.path.endswith("/groups") and isinstance(case.body, dict):
        given = case.body.get("timeout_s", 300.0)
        if type(given) in (int, float) and 0 < given <= 86_400:
            case.body["timeout_s"] = 0.05  # nobody else comes
    if case.path.endswith("/frames"):
        # A record that makes no sense fails its op, in a reply that is a success.
        checks.remove(negative_data_rejection)
    scopes = {operation.get("x-scope") for operation in DOCUMENT["paths"][case.path].values()}
    headers = {"X-API-Key": server.admin_key} if "admin" in scopes else server.headers
    case.call_and_validate(base_url=server.url, headers=headers, checks=checks)


def test_every_operation_but_the_open_ones_needs_a_key() -> None:
    open_ = {path for path, item in DOCUMENT["paths"].items() for each in item.values() if not each["security"]}
    assert open_ == {"/livez", "/readyz"}


def test_every_operation_is_documented() -> None:
    for path, item in DOCUMENT["paths"].items():
        for method, operation in item.items():
            assert operation.get("description"), (method, path)
            assert {"4XX", "5XX"} <= set(operation["responses"]), (method, path)
            assert "422" not in operation["responses"], "FastAPI's own form of error"


def test_references_lead_somewhere(http: httpx.Client) -> None:
    schemas = DOCUMENT["components"]["schemas"]

    def walk(node: Any) -> None:
        if isinstance(node, dict):
            for target in (node.get("$ref"), *node.get("discriminator", {}).get("mapping", {}).values()):
                if target is not None:
                    assert target.removeprefix("#/components/schemas/") in schemas
            for each in node.values():
                walk(each)
        elif isinstance(node, list):
            for each in node:
                walk(each)

    walk(DOCUMENT)
    assert http.get("/openapi.json").json() == DOCUMENT


def test_every_op_has_a_schema_whose_name_nothing_else_has() -> None:
    schemas = DOCUMENT["components"]["schemas"]
    records = op_schemas(typed=True)
    mapping = records["NamedRecord"]["discriminator"]["mapping"]
    assert set(mapping) == {op.name for op in TABLE.values() if not op.internal}
    assert len(set(mapping.values())) == len(mapping)
    for name, target in mapping.items():
        assert schemas[target.rpartition("/")[2]]["properties"]["op"]["const"] == name
    assert set(records) & set(SHORT_DOCUMENT["components"]["schemas"]) == {"NamedRecord", "Nested"}
