"""A worker of a fleet serves the callers of its gateways' passes, and nobody else; a gateway places streams."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from gradwire_protocol.errors import Unavailable
from gradwire_protocol.frames import PROTOCOL_VERSION, REDIRECT, Hello, Redirect, Refusal, Welcome
from gradwire_server.auth.keys import Key
from gradwire_server.auth.passes import PASS_HEADER
from tests.small_fleet import WORKER, SmallFleet, small_fleet

from .exchange import Peer, problem

PAGE = "https://app.example.com"


@pytest.fixture(scope="module")
def fleet() -> Iterator[SmallFleet]:
    pages = {"allowed_origins": (PAGE,)}
    with small_fleet(gateway=pages, worker=pages | {"max_sessions": 100}) as found:
        yield found


@pytest.fixture
def session(fleet: SmallFleet) -> Iterator[str]:
    fleet.point(fleet.worker.url)
    made = fleet.create()
    yield made
    fleet.delete(made)


def knock(fleet: SmallFleet, session: str, ticket: str, origin: str | None = None) -> tuple[int, str]:
    """What a client meets at the worker: 101 and the kind of the first message, or a status and the problem's code."""
    url = f"{fleet.worker.stream_url}{session}/stream?ticket={ticket}"
    try:
        with connect(url, origin=origin, compression=None) as socket:  # type: ignore[arg-type]
            return 101, type(Peer(socket).hello()).__name__
    except InvalidStatus as refused:
        return refused.response.status_code, str(json.loads(refused.response.body)["code"])


@pytest.mark.parametrize("path", ["/livez", "/readyz"])
def test_health_needs_no_pass(fleet: SmallFleet, path: str) -> None:
    assert httpx.get(fleet.worker.url + path).status_code == 200


@pytest.mark.parametrize(
    "path", ["/docs", "/openapi.json", "/metrics", "/v1/version", "/v1/sessions", "/v1/keys", "/nothing"]
)
def test_nothing_else_is_open_not_even_from_this_machine(fleet: SmallFleet, path: str) -> None:
    assert fleet.worker.url.startswith("http://127.0.0.1:")
    problem(httpx.get(fleet.worker.url + path), 401, "unauthorized")


@pytest.mark.parametrize("who", ["api_key", "admin_key"])
def test_a_worker_takes_no_keys(fleet: SmallFleet, session: str, who: str) -> None:
    key = getattr(fleet.gateway, who)
    for headers in ({"Authorization": f"Bearer {key}"}, {"X-API-Key": key}):
        problem(httpx.get(f"{fleet.worker.url}/v1/sessions/{session}", headers=headers), 401, "unauthorized")
        with pytest.raises(InvalidStatus) as refused:
            connect(f"{fleet.worker.stream_url}{session}/stream", additional_headers=headers)
        assert refused.value.response.status_code == 401


def test_an_ordinary_server_takes_no_passes(fleet: SmallFleet, session: str) -> None:
    headers = {PASS_HEADER: fleet.mint.request(fleet.key, session, WORKER)}
    problem(httpx.get(f"{fleet.gateway.url}/v1/version", headers=headers), 401, "unauthorized")


def test_a_pass_is_for_one_session(fleet: SmallFleet, session: str) -> None:
    assert fleet.ask("GET", f"/v1/sessions/{session}", session).status_code == 200
    other = fleet.create()
    found = problem(fleet.ask("GET", f"/v1/sessions/{other}", session), 401, "unauthorized")
    assert found["extra"]["reason"] == "session"
    fleet.delete(other)


def test_a_pass_has_the_keys_scopes_and_tenant(fleet: SmallFleet, session: str) -> None:
    def asked(method: str, **facts: Any) -> httpx.Response:
        own = fleet.key
        key = Key(**{"id": own.id, "digest": "", "name": "", "tenant": own.tenant, "scopes": ["read"]} | facts)
        headers = {PASS_HEADER: fleet.mint.request(key, session, WORKER)}
        return httpx.request(method, f"{fleet.worker.url}/v1/sessions/{session}", headers=headers)

    assert asked("GET").status_code == 200
    assert problem(asked("DELETE"), 403, "forbidden")["extra"]["scope"] == "session"
    problem(asked("GET", tenant="t_stranger"), 404, "not_found")


def test_the_gateway_counts_requests_and_the_worker_ops(fleet: SmallFleet, session: str) -> None:
    own = fleet.key
    key = Key(
        id="k_slow", digest="", name="", tenant=own.tenant, scopes=own.scopes,
        quotas={"max_requests_per_second": 1, "max_ops_per_second": 10},
    )  # fmt: skip
    headers = {PASS_HEADER: fleet.mint.request(key, session, WORKER)}
    body = {"structure": {"ops": [["zeros", [[1]]]] * 100}}
    url = f"{fleet.worker.url}/v1/sessions/{session}"
    assert [httpx.get(url, headers=headers).status_code for _ in range(5)] == [200] * 5
    assert httpx.post(f"{url}/frames", headers=headers, json=body).status_code == 200
    found = problem(httpx.post(f"{url}/frames", headers=headers, json=body), 429, "too_many_requests")
    assert found["extra"]["setting"] == "GRADWIRE_MAX_OPS_PER_SECOND"


def test_a_stream_pass_opens_one_stream(fleet: SmallFleet, session: str) -> None:
    ticket = fleet.mint.stream(fleet.key, session, WORKER)
    assert knock(fleet, session, ticket) == (101, "Welcome")
    assert knock(fleet, session, ticket) == (401, "unauthorized")
    assert knock(fleet, session, fleet.mint.request(fleet.key, session, WORKER)) == (401, "unauthorized")
    assert knock(fleet, session, "") == (401, "unauthorized")


def test_wrong_passes_block_nobody(fleet: SmallFleet, session: str) -> None:
    """All callers may have the gateway's address."""
    for _ in range(40):
        assert knock(fleet, session, "wrong") == (401, "unauthorized")
    assert knock(fleet, session, fleet.mint.stream(fleet.key, session, WORKER)) == (101, "Welcome")


def test_pages_of_other_origins_open_no_streams_of_a_worker(fleet: SmallFleet, session: str) -> None:
    assert knock(fleet, session, fleet.mint.stream(fleet.key, session, WORKER), PAGE) == (101, "Welcome")
    evil = "https://evil.example"
    assert knock(fleet, session, fleet.mint.stream(fleet.key, session, WORKER), evil) == (403, "forbidden")


# The gateway


def at_gateway(fleet: SmallFleet, session: str, hello: Hello) -> tuple[Any, int]:
    """The gateway's answer to a hello, and its close code; 0 for a stream that stays open."""
    headers = {"Authorization": f"Bearer {fleet.gateway.api_key}"}
    url = f"{fleet.gateway.stream_url}{session}/stream"
    with connect(url, additional_headers=headers, compression=None) as socket:
        peer = Peer(socket)
        peer.send(hello)
        answer, _ = peer.receive()
        if isinstance(answer, Welcome):
            return answer, 0
        with pytest.raises(ConnectionClosed):
            peer.receive()
        return answer, socket.close_code or 0


def test_a_gateway_redirects_who_asks_and_relays_who_does_not(fleet: SmallFleet, session: str) -> None:
    answer, code = at_gateway(fleet, session, Hello(version=1, capabilities=["later", REDIRECT]))
    assert isinstance(answer, Redirect)
    assert (answer.url, code) == (fleet.worker.url, 1000)
    assert knock(fleet, session, answer.ticket) == (101, "Welcome")
    for capabilities in ([], ["later"]):
        answer, _ = at_gateway(fleet, session, Hello(version=1, capabilities=capabilities))
        assert isinstance(answer, Welcome)
        assert answer.session == session
    assert fleet.director.relayed == 2


def test_a_gateway_answers_people_in_json(fleet: SmallFleet, session: str) -> None:
    headers = {"Authorization": f"Bearer {fleet.gateway.api_key}"}
    with connect(f"{fleet.gateway.stream_url}{session}/stream", additional_headers=headers) as socket:
        socket.send(json.dumps({"type": "hello", "version": 1}))
        assert json.loads(socket.recv())["type"] == "welcome"
    with connect(f"{fleet.gateway.stream_url}{session}/stream", additional_headers=headers) as socket:
        socket.send(json.dumps({"type": "hello", "version": 1, "capabilities": [REDIRECT]}))
        answer = json.loads(socket.recv())
        assert (answer["type"], answer["url"]) == ("redirect", fleet.worker.url)


def test_a_gateway_refuses_what_a_server_refuses(fleet: SmallFleet, session: str) -> None:
    refusal, code = at_gateway(fleet, session, Hello(version=PROTOCOL_VERSION + 1, capabilities=[REDIRECT]))
    assert isinstance(refusal, Refusal)
    assert (refusal.problem.code, code) == ("version_mismatch", 4426)
    headers = {"Authorization": f"Bearer {fleet.gateway.other_key}"}
    with pytest.raises(InvalidStatus) as refused:
        connect(f"{fleet.gateway.stream_url}{session}/stream", additional_headers=headers)
    assert refused.value.response.status_code == 404
    headers = {"Authorization": f"Bearer {fleet.gateway.api_key}"}
    with connect(f"{fleet.gateway.stream_url}{session}/stream", additional_headers=headers) as socket:
        socket.send(b"\xff" * 40)
        answer, _ = Peer(socket).receive()
        assert answer.problem.code == "malformed_frame"


def test_what_the_fleet_cannot_place_now_is_refused_for_now(
    fleet: SmallFleet, session: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def nowhere(*_: object) -> None:
        raise Unavailable("no worker is free")

    monkeypatch.setattr(fleet.director, "redirect", nowhere)
    refusal, code = at_gateway(fleet, session, Hello(version=1, capabilities=[REDIRECT]))
    assert (refusal.problem.code, refusal.problem.retryable, code) == ("unavailable", True, 1012)


def test_the_redirector_learns_the_caller(fleet: SmallFleet, session: str) -> None:
    at_gateway(fleet, session, Hello(version=1, agent="a test", capabilities=[REDIRECT]))
    assert fleet.director.callers[0].key.id == fleet.key.id
    assert fleet.director.hellos[0].agent == "a test"
