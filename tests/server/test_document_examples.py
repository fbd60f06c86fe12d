"""Operations have ids and summaries of their own, and the examples of their bodies work when they are pasted."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from fastapi.routing import APIRoute

from gradwire_server.app import create_app
from gradwire_server.routes import ROUTERS
from gradwire_server.settings.settings import Settings
from tests.live_server import LiveServer, live_server

DOCUMENT = create_app(Settings(api_keys=("unused",))).openapi()
ROUTES = [
    route for router in ROUTERS for route in router.routes if isinstance(route, APIRoute) and route.include_in_schema
]
OPERATIONS = {
    operation["operationId"]: (method.upper(), path, operation)
    for path, item in DOCUMENT["paths"].items()
    for method, operation in item.items()
}
ORDER = (
    "createSession", "putTensor", "putNamedTensor", "submitFrame", "grad", "backward", "createCheckpoint",
    "rewindSession", "forkSession", "openPast", "movePast", "openGroup", "createKey", "createTicket", "profileSession",
)  # fmt: skip
"""That in which the examples build on each other."""


def test_every_route_has_an_id_and_a_summary_of_its_own() -> None:
    ids = [route.operation_id for route in ROUTES]
    assert None not in ids and len(set(ids)) == len(ids) == len(OPERATIONS)
    assert all(re.fullmatch(r"[a-z]+([A-Z][a-z]+)*", name or "") for name in ids), ids
    summaries = [route.summary or "" for route in ROUTES]
    assert len(set(summaries)) == len(summaries)
    assert all(re.fullmatch(r"[A-Z][a-z ]{5,50}", summary) for summary in summaries), summaries


def test_every_operation_with_a_body_in_json_has_an_example() -> None:
    found = set()
    for name, (_, _, operation) in OPERATIONS.items():
        content = operation.get("requestBody", {}).get("content", {})
        if "application/json" in content:
            assert content["application/json"]["examples"], name
            found.add(name)
        elif content:
            assert name == "importSession", "a file has no example"
    assert found == set(ORDER)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """A server whose sessions have journals, which some operations need."""
    with live_server(data_dir=tmp_path_factory.mktemp("data"), durability="applied") as found:
        yield found


@pytest.fixture(scope="module")
def place(server: LiveServer) -> str:
    """The id of the session that the examples work in."""
    with server.http() as http:
        made = _paste(http, "createSession", "session", {})
    return str(made["id"])


def _paste(http: httpx.Client, operation: str, example: str, known: dict[str, Any]) -> Any:
    """Send an example as it is, but for ids that only the server knows."""
    method, path, declared = OPERATIONS[operation]
    for parameter in declared.get("parameters", ()):
        if parameter["in"] == "path":
            name = parameter["name"]
            path = path.replace(f"{{{name}}}", str(known.get(name, parameter["example"])))
    body = declared["requestBody"]["content"]["application/json"]["examples"][example]["value"]
    if "session" in body:
        body = {**body, "session": known["session_id"]}
    reply = http.request(method, path, json=body)
    assert reply.is_success, reply.text
    return reply.json()


def test_examples_work(server: LiveServer, place: str) -> None:
    known: dict[str, Any] = {"session_id": place}
    with server.http() as user, server.http(server.admin_key) as admin:
        replies = {}
        for operation in ORDER[1:]:
            http = admin if OPERATIONS[operation][2]["x-scope"] == "admin" else user
            for example in OPERATIONS[operation][2]["requestBody"]["content"]["application/json"]["examples"]:
                past = {"session_id": replies["openPast", "past"]["id"]} if operation == "movePast" else known
                replies[operation, example] = _paste(http, operation, example, past)
    natural, compact = replies["submitFrame", "natural"], replies["submitFrame", "compact"]
    assert "errors" not in natural and "errors" not in compact
    assert [value["values"] for value in natural["values"]] == [7.5, [[0.5, 1.0], [1.5, 2.0]]]
    assert compact["values"][0]["values"] == 7.5 and compact["first"] == 2
    assert replies["grad", "gradient"]["gradients"][0]["values"] == [[0.5, 1.0], [1.5, 2.0]]
    assert replies["backward", "backward"]["grads"][0]["values"] == [[0.5, 1.0], [1.5, 2.0]]


def test_a_frame_may_be_pasted_again(server: LiveServer) -> None:
    with server.http() as http:
        place = str(_paste(http, "createSession", "session", {})["id"])
        for operation in ("putTensor", "putNamedTensor"):
            for example in OPERATIONS[operation][2]["requestBody"]["content"]["application/json"]["examples"]:
                _paste(http, operation, example, {"session_id": place})
        for example in ("natural", "compact", "natural", "compact"):
            reply = _paste(http, "submitFrame", example, {"session_id": place})
            assert "errors" not in reply
