"""One table of scopes decides what a key may do; other tenants' resources return the same 404 as unknown ones."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest
from websockets.exceptions import InvalidStatus

from gradwire_server.app import create_app
from gradwire_server.auth import Key
from gradwire_server.auth.scopes import ADMIN, ANY, OPEN, READ, SCOPES, SESSION, STREAM, Rules, walk
from gradwire_server.routes import ROUTERS
from gradwire_server.settings.settings import Settings
from tests.live_server import LiveServer, live_server

from .exchange import problem, stream

APP = create_app(Settings(api_keys=("unused",)))
ROUTES = sorted(walk(APP.routes))
GUARDED = [(method, path) for method, path in ROUTES if SCOPES.get((method, path), ADMIN) != OPEN]
REST = [(method, path) for method, path in GUARDED if method != STREAM]
CHECKED = {part for _, path in ROUTES for part in path.split("/") if part.startswith("{")} - {"{session_id}"}
SCOPED = [(method, path) for method, path in REST if SCOPES.get((method, path)) != ANY]
OF_A_SESSION = [(method, path) for method, path in REST if "{session_id}" in path]


def test_every_route_has_a_scope() -> None:
    assert set(ROUTES) == set(SCOPES)


def test_no_checked_parameter_of_another_route_matches_a_path() -> None:
    """The other route's methods would answer 422 instead of 405. Any text may be a session's id, and gets 404."""
    paths = {path: path.strip("/").split("/") for _, path in ROUTES}
    for path, parts in paths.items():
        for other, pattern in paths.items():
            if other != path and len(parts) == len(pattern):
                matched = all(a == b or b in CHECKED for a, b in zip(parts, pattern))
                assert not matched, f"{path} also matches {other}: give it another name"


def test_the_walk_sees_every_route() -> None:
    declared = {route.path for router in ROUTERS for route in router.routes}
    assert declared <= {path for _, path in ROUTES}
    assert (STREAM, "/v1/sessions/{session_id}/stream") in ROUTES


def test_what_changes_something_is_not_for_readers() -> None:
    assert all(scope != READ for (method, _), scope in SCOPES.items() if method != "GET")


def test_a_route_without_a_row_is_for_administrators() -> None:
    app = create_app(Settings(api_keys=("unused",)))

    @app.get("/v1/new")
    async def new() -> None:
        """Nobody gave it a scope."""

    assert Rules(app.routes).find("GET", "/v1/new") == (ADMIN, None)


@pytest.mark.parametrize(
    ("scopes", "covered"),
    [(["read"], {READ}), (["session"], {READ, SESSION}), (["admin"], {ADMIN}), (["admin", "read"], {ADMIN, READ})],
)
def test_who_may_use_may_look(scopes: list[str], covered: set[str]) -> None:
    key = Key(id="k_1", digest="", name="", tenant="t", scopes=scopes)
    assert {scope for scope in (READ, SESSION, ADMIN) if key.may(scope)} == covered


class Doors:
    """A server, a session of one tenant, and a client for each scope of that tenant; a stranger has every scope."""

    def __init__(self, server: LiveServer) -> None:
        self.server = server
        self.admin = server.http(server.admin_key)
        made = self.admin.post("/v1/keys", json={"name": "owner", "scopes": ["session"]}).json()
        self.tenant = made["tenant"]
        self.keys = {SESSION: made["key"]}
        for scope in (READ, ADMIN):
            wanted = {"name": scope, "scopes": [scope], "tenant": self.tenant}
            self.keys[scope] = self.admin.post("/v1/keys", json=wanted).json()["key"]
        self.by_scope = {scope: server.http(key) for scope, key in self.keys.items()}
        self.session = self.by_scope[SESSION].post("/v1/sessions").headers["location"]
        self.by_scope[SESSION].put(f"{self.session}/tensors/1", json={"values": [1.0, 2.0]})

    def path(self, template: str, session: str | None = None) -> str:
        name = session or self.session.rsplit("/", 1)[-1]
        return template.format(session_id=name, tensor_id=1, name="none", key_id="k_none", seq=1, group="none")


@pytest.fixture(scope="module")
def doors() -> Iterator[Doors]:
    with live_server(max_sessions=50) as server:
        found = Doors(server)
        yield found
        for client in (found.admin, *found.by_scope.values()):
            client.close()


@pytest.mark.parametrize(("method", "path"), SCOPED, ids=lambda v: v)
def test_a_key_without_the_scope_is_told_which_it_needs(doors: Doors, method: str, path: str) -> None:
    needed = SCOPES[method, path]
    for scope, client in doors.by_scope.items():
        if scope == needed or (needed == READ and scope == SESSION):
            continue
        response = client.request(method, doors.path(path), content=b"{not json")
        found = problem(response, 403, "forbidden")
        assert found["extra"]["scope"] == needed, (scope, found)
        assert not found["retryable"]


@pytest.mark.parametrize(("method", "path"), [each for each in REST if SCOPES.get(each) == ANY], ids=lambda v: v)
def test_any_key_will_do_but_none_will_not(doors: Doors, method: str, path: str) -> None:
    for client in doors.by_scope.values():
        with client.stream(method, doors.path(path)) as response:
            assert response.status_code < 400, response.read()
    problem(httpx.request(method, doors.server.url + doors.path(path)), 401, "unauthorized")


@pytest.mark.parametrize(("method", "path"), SCOPED, ids=lambda v: v)
def test_a_key_with_the_scope_is_never_forbidden(doors: Doors, method: str, path: str) -> None:
    if (method, path) == ("DELETE", "/v1/sessions/{session_id}"):
        client = doors.by_scope[SESSION]
        assert client.delete(client.post("/v1/sessions").headers["location"]).status_code == 204
        return
    response = doors.by_scope[SCOPES[method, path]].request(method, doors.path(path))
    assert response.status_code not in (401, 403), response.text
    assert response.status_code < 500


@pytest.mark.parametrize(("method", "path"), OF_A_SESSION, ids=lambda v: v)
def test_a_strangers_session_is_not_found_whatever_the_scopes(doors: Doors, method: str, path: str) -> None:
    """With the scope or without it, a session of another tenant is told apart from no session at all by nothing."""
    for scopes in (["read"], ["session"], ["admin"], ["read", "session", "admin"]):
        made = doors.admin.post("/v1/keys", json={"name": "stranger", "scopes": scopes}).json()
        with doors.server.http(made["key"]) as stranger:
            answers = []
            for name in (doors.session.rsplit("/", 1)[-1], "s_of_nobody_at_all"):
                response = stranger.request(method, doors.path(path, name), content=b"{not json")
                problem(response, 404, "not_found")
                body = response.text.replace(response.headers["x-request-id"], "").replace(name, "")
                answers.append((response.status_code, body))
            assert answers[0] == answers[1]
            assert answers[0][0] == 404, answers[0]
        doors.admin.delete(f"/v1/keys/{made['id']}")


def test_a_reader_can_look_at_everything_and_touch_nothing(doors: Doors) -> None:
    reader = doors.by_scope[READ]
    doors.by_scope[SESSION].put(f"{doors.session}/tensors/1", json={"values": [1.0, 2.0]})
    assert reader.get(f"{doors.session}/tensors/1").json()["values"] == [1.0, 2.0]
    assert [each["id"] for each in reader.get("/v1/sessions").json()["sessions"]]
    for method, path, body in (
        ("POST", f"{doors.session}/frames", {"structure": {"ops": [], "reads": []}}),
        ("PUT", f"{doors.session}/tensors/1", {"values": [3.0, 4.0]}),
        ("DELETE", f"{doors.session}/tensors/1", None),
        ("DELETE", doors.session, None),
        ("POST", "/v1/sessions", {}),
    ):
        problem(reader.request(method, path, json=body), 403, "forbidden")
    assert reader.get(f"{doors.session}/tensors/1").json()["values"] == [1.0, 2.0]


def test_a_reader_cannot_open_a_stream(doors: Doors) -> None:
    with pytest.raises(InvalidStatus) as refused, stream(doors.server, doors.session, key=doors.keys[READ]):
        pass
    assert refused.value.response.status_code == 403
    assert b'"forbidden"' in refused.value.response.body


def test_a_readers_stream_of_a_strangers_session_is_not_found(doors: Doors) -> None:
    made = doors.admin.post("/v1/keys", json={"name": "reader elsewhere", "scopes": ["read"]}).json()
    with pytest.raises(InvalidStatus) as refused, stream(doors.server, doors.session, key=made["key"]):
        pass
    assert refused.value.response.status_code == 404


def test_metrics_are_for_administrators(doors: Doors, server: LiveServer) -> None:
    assert doors.by_scope[ADMIN].get("/metrics").status_code == 200
    with httpx.Client(base_url=doors.server.url, headers=doors.server.headers) as ordinary:
        assert problem(ordinary.get("/metrics"), 403, "forbidden")["extra"]["scope"] == ADMIN


def test_routes_that_are_not_there_are_not_found_for_everybody(doors: Doors) -> None:
    for client in doors.by_scope.values():
        problem(client.get("/v1/nothing"), 404, "not_found")
        problem(client.patch("/v1/sessions"), 405, "method_not_allowed")


def test_the_document_says_which_scope_a_route_needs() -> None:
    for path, operations in APP.openapi()["paths"].items():
        for method, operation in operations.items():
            assert operation.get("x-scope", OPEN) == SCOPES[method.upper(), path]
