"""Web pages: tickets instead of keys, allowed origins only, and CORS for requests."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from gradwire_protocol import envelope
from gradwire_protocol.errors import TooManyRequests, Unauthorized
from gradwire_server.auth.keys import Key
from gradwire_server.auth.tickets import TICKETS_PER_TENANT, Tickets
from gradwire_server.settings.settings import Settings
from tests.live_server import LiveServer, live_server

from .exchange import Peer, binary, problem

PAGE = "https://app.example.com"
EVIL = "https://app.example.com.evil.example"
NO_PAGE = None


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with live_server(allowed_origins=(PAGE, "http://localhost:5173"), max_sessions=100) as found:
        yield found


@pytest.fixture(scope="module")
def http(server: LiveServer) -> Iterator[httpx.Client]:
    with server.http() as client:
        yield client


@pytest.fixture
def session(http: httpx.Client) -> Iterator[str]:
    path = http.post("/v1/sessions").headers["location"]
    yield path.rsplit("/", 1)[-1]
    http.delete(path)


def issue(http: httpx.Client, session: str) -> str:
    response = http.post("/v1/tickets", json={"session": session})
    assert response.status_code == 201, response.text
    found: dict[str, Any] = response.json()
    assert found["session"] == session
    assert found["expires_at"].endswith("Z")
    return str(found["ticket"])


def status(server: LiveServer, session: str, query: str, origin: str | None, **headers: str) -> tuple[int, str]:
    """What a browser meets that opens a stream: 101 and the kind of the first message, or a status and a code."""
    url = f"{server.stream_url}{session}/stream{query}"
    try:
        with connect(url, origin=origin, additional_headers=headers, compression=None) as socket:  # type: ignore[arg-type]
            return 101, type(Peer(socket).hello()).__name__
    except InvalidStatus as refused:
        return refused.response.status_code, str(json.loads(refused.response.body)["code"])


def test_a_ticket_opens_a_stream_once(server: LiveServer, http: httpx.Client, session: str) -> None:
    ticket = issue(http, session)
    assert status(server, session, f"?ticket={ticket}", PAGE) == (101, "Welcome")
    assert status(server, session, f"?ticket={ticket}", PAGE) == (401, "unauthorized")


def test_a_ticket_needs_no_origin_outside_of_browsers(server: LiveServer, http: httpx.Client, session: str) -> None:
    """The WebSocket of Node, Deno and Bun sends no Origin, and no headers of the program either."""
    assert status(server, session, f"?ticket={issue(http, session)}", NO_PAGE) == (101, "Welcome")


@pytest.mark.parametrize("origin", [EVIL, "https://app.example.com:8443", "http://app.example.com", "null"])
def test_a_ticket_is_for_pages_of_allowed_origins(
    server: LiveServer, http: httpx.Client, session: str, origin: str | None
) -> None:
    ticket = issue(http, session)
    assert status(server, session, f"?ticket={ticket}", origin) == (403, "forbidden")
    assert status(server, session, f"?ticket={ticket}", PAGE) == (401, "unauthorized"), "it was shown, so it is used up"


def test_a_ticket_is_for_its_session_only(server: LiveServer, http: httpx.Client, session: str) -> None:
    other = http.post("/v1/sessions").headers["location"].rsplit("/", 1)[-1]
    ticket = issue(http, session)
    assert status(server, other, f"?ticket={ticket}", PAGE) == (401, "unauthorized")
    assert status(server, session, f"?ticket={ticket}", PAGE) == (401, "unauthorized")


def test_there_is_no_ticket_for_somebody_elses_session(server: LiveServer, session: str) -> None:
    with server.http(server.other_key) as stranger:
        foreign = problem(stranger.post("/v1/tickets", json={"session": session}), 404, "not_found")
        unknown = problem(stranger.post("/v1/tickets", json={"session": "s_of_nobody"}), 404, "not_found")
        assert foreign["detail"].replace(session, "") == unknown["detail"].replace("s_of_nobody", "")


def test_a_ticket_opens_no_other_route(server: LiveServer, http: httpx.Client, session: str) -> None:
    ticket = issue(http, session)
    answer = httpx.get(f"{server.url}/v1/sessions/{session}", params={"ticket": ticket}, headers={"Origin": PAGE})
    problem(answer, 401, "unauthorized")


def test_a_ticket_ends_with_its_key(server: LiveServer) -> None:
    with server.http(server.admin_key) as admin:
        made = admin.post("/v1/keys", json={"name": "short"}).json()
        with server.http(made["key"]) as http:
            session = http.post("/v1/sessions").headers["location"].rsplit("/", 1)[-1]
            ticket = issue(http, session)
        admin.delete(f"/v1/keys/{made['id']}")
    assert status(server, session, f"?ticket={ticket}", PAGE) == (401, "unauthorized")


@pytest.mark.parametrize("name", ["key", "api_key", "token", "access_token", "authorization", "x-api-key"])
def test_a_key_in_the_url_of_a_stream_is_none(server: LiveServer, session: str, name: str) -> None:
    assert status(server, session, f"?{name}={server.api_key}", PAGE) == (401, "unauthorized")
    assert status(server, session, f"?ticket={server.api_key}", PAGE) == (401, "unauthorized")


@pytest.mark.parametrize("query", ["?ticket=", "?ticket", "?ticket=%ff%00", "?" + "a=b&" * 100 + "ticket=x", "?%"])
def test_a_strange_query_is_no_ticket(server: LiveServer, session: str, query: str) -> None:
    assert status(server, session, query, PAGE) == (401, "unauthorized")


def test_a_page_of_another_site_cannot_use_a_key_it_came_by(server: LiveServer, session: str) -> None:
    """Programs send no Origin; a browser always does, and cannot be made to lie."""
    key = {"X-API-Key": server.api_key}
    assert status(server, session, "", EVIL, **key) == (403, "forbidden")
    assert status(server, session, "", PAGE, **key) == (101, "Welcome")
    assert status(server, session, "", NO_PAGE, **key) == (101, "Welcome")


def test_without_allowed_origins_no_page_opens_a_stream() -> None:
    with live_server() as server, server.http() as http:
        session = http.post("/v1/sessions").headers["location"].rsplit("/", 1)[-1]
        ticket = issue(http, session)
        assert status(server, session, f"?ticket={ticket}", PAGE) == (403, "forbidden")


# The store of tickets


def key(tenant: str = "t") -> Key:
    return Key(id="k", digest=tenant, name="", tenant=tenant, scopes=["session"])


def test_a_ticket_lasts_for_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("gradwire_server.auth.tickets.time.monotonic", lambda: now[0])
    tickets = Tickets(Settings(api_keys=("x",), ticket_ttl_s=30))
    one, other = tickets.issue(key(), "s")[0], tickets.issue(key(), "s")[0]
    now[0] = 129.9
    assert tickets.redeem(one, "s").tenant == "t"
    now[0] = 130.0
    with pytest.raises(Unauthorized):
        tickets.redeem(other, "s")


def test_tickets_that_nobody_uses_are_bounded_and_crowd_out_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("gradwire_server.auth.tickets.time.monotonic", lambda: now[0])
    tickets = Tickets(Settings(api_keys=("x",), ticket_ttl_s=30))
    theirs = tickets.issue(key("other"), "s")[0]
    for _ in range(TICKETS_PER_TENANT):
        tickets.issue(key(), "s")
    now[0] = 110.0
    with pytest.raises(TooManyRequests) as refused:
        tickets.issue(key(), "s")
    assert refused.value.details["retry_after_s"] == pytest.approx(20)
    assert tickets.redeem(theirs, "s").tenant == "other"
    now[0] = 130.0
    tickets.issue(key(), "s")


def test_tickets_are_kept_as_hashes() -> None:
    tickets = Tickets(Settings(api_keys=("x",)))
    text, _ = tickets.issue(key(), "s")
    assert text not in repr(vars(tickets))


# Requests of pages


def test_a_page_may_ask_before_it_asks(server: LiveServer) -> None:
    asked = {
        "Origin": PAGE,
        "Access-Control-Request-Method": "PUT",
        "Access-Control-Request-Headers": "authorization,content-type,gradwire-dtype,gradwire-shape",
    }
    answer = httpx.options(f"{server.url}/v1/sessions/s_1/tensors/1", headers=asked)
    assert answer.status_code == 200
    assert answer.headers["access-control-allow-origin"] == PAGE
    assert "access-control-allow-credentials" not in answer.headers


def test_a_page_may_use_every_route(server: LiveServer) -> None:
    """Whatever methods and headers the routes have, the answer to the preflight request allows them."""
    spec = httpx.get(f"{server.url}/openapi.json").json()
    sent = ["authorization", "x-api-key", "content-type", "accept", "x-request-id", "traceparent"]
    asked = 0
    for path, operations in spec["paths"].items():
        for method, operation in operations.items():
            named = [p["name"].lower() for p in operation.get("parameters", []) if p["in"] == "header"]
            asking = {
                "Origin": PAGE,
                "Access-Control-Request-Method": method.upper(),
                "Access-Control-Request-Headers": ",".join(sorted({*sent, *named})),
            }
            answer = httpx.options(server.url + path, headers=asking)
            assert answer.status_code == 200, (method, path, answer.text)
            assert method.upper() in answer.headers["access-control-allow-methods"]
            asked += 1
    assert asked > 20


def test_a_page_posts_frames_and_sees_when_to_retry(server: LiveServer, http: httpx.Client, session: str) -> None:
    page = {"Origin": PAGE}
    sent = envelope.join(envelope.encode(binary(0, [["zeros", [[2]]]], [0]), []))
    content = {"Content-Type": "application/msgpack"}
    answer = http.post(f"/v1/sessions/{session}/frames", content=sent, headers=page | content)
    assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (200, PAGE)
    shown = answer.headers["access-control-expose-headers"].lower().split(", ")
    wanted = ["retry-after", "x-request-id", "location", "etag", "gradwire-dtype", "gradwire-shape"]
    assert set(wanted) <= set(shown)
    assert http.delete(f"/v1/sessions/{session}/frames", headers=page).headers["access-control-allow-origin"] == PAGE


def test_a_page_of_another_site_may_not(server: LiveServer) -> None:
    asked = {"Origin": EVIL, "Access-Control-Request-Method": "GET"}
    answer = httpx.options(f"{server.url}/v1/sessions", headers=asked)
    assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")
    assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize("path", ["/v1/sessions", "/v1/nothing", "/v1/sessions/s_of_nobody"])
def test_a_page_can_read_answers_and_errors(server: LiveServer, path: str) -> None:
    for given in (server.headers, {}):
        answer = httpx.get(server.url + path, headers={**given, "Origin": PAGE})
        assert answer.headers["access-control-allow-origin"] == PAGE
        assert "X-Request-ID" in answer.headers["access-control-expose-headers"]
        assert "Origin" in answer.headers["vary"]


def test_a_page_can_read_what_went_wrong_inside(server: LiveServer, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(type(server.app.state.server.registry), "of", broken)
    answer = httpx.get(f"{server.url}/v1/sessions", headers={**server.headers, "Origin": PAGE})
    problem(answer, 500, "internal")
    assert answer.headers["access-control-allow-origin"] == PAGE


def test_other_pages_get_no_leave_to_read(server: LiveServer) -> None:
    answer = httpx.get(f"{server.url}/v1/sessions", headers={**server.headers, "Origin": EVIL})
    assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize("given", ["*", "app.example.com", "https://app.example.com/", "https://a.b/c", "ftp://a.b"])
def test_what_is_no_origin_is_refused_at_the_start(given: str) -> None:
    with pytest.raises(ValueError, match="allowed_origins"):
        Settings(allowed_origins=given)


def test_origins_come_as_a_list() -> None:
    assert Settings(allowed_origins="https://a.example, HTTPS://B.example:8443").allowed_origins == (
        "https://a.example",
        "https://b.example:8443",
    )
