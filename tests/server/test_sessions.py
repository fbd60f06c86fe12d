"""Lifetime and ownership of sessions."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime
from typing import Any

import httpx
import pytest

from gradwire_server.sessions.session_supervisor import SessionSupervisor
from tests.live_server import LiveServer, live_server

from .exchange import post, problem, stream, upload


class Clock:
    """The time of sessions, which can be put forward: no test waits for it, or is too slow for it."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def monotonic(self) -> float:
        return time.monotonic() + self.ahead

    def time(self) -> float:
        return time.time() + self.ahead


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr("gradwire_server.sessions.session.time", found)
    monkeypatch.setattr("gradwire_server.sessions.sessions.time", found)
    return found


def test_a_session_is_created_listed_looked_at_and_deleted(http: httpx.Client) -> None:
    made = http.post("/v1/sessions", json={"default_dtype": "float64", "seed": 3})
    assert made.status_code == 201
    facts = made.json()
    path = f"/v1/sessions/{facts['id']}"
    assert made.headers["location"] == path
    assert facts["default_dtype"] == "float64"
    assert facts["id"] in [each["id"] for each in http.get("/v1/sessions").json()["sessions"]]
    assert http.get(path).json()["contents"]["tensors"] == 0
    gone = http.delete(path)
    assert (gone.status_code, gone.content) == (204, b"")
    problem(http.get(path), 404, "session_gone")
    assert facts["id"] not in [each["id"] for each in http.get("/v1/sessions").json()["sessions"]]


def test_a_session_needs_no_body(http: httpx.Client) -> None:
    made = http.post("/v1/sessions")
    assert made.status_code == 201
    http.delete(made.headers["location"])


def test_defaults_reach_the_engine(http: httpx.Client, new_session: Callable[..., str]) -> None:
    session = new_session(default_dtype="float64")
    made = http.put(f"{session}/tensors/1", json={"values": [1.5]})
    assert made.json()["dtype"] == "float64"


@pytest.mark.parametrize(
    "wanted",
    [
        {"device": "tpu"},
        {"default_dtype": "int64"},
        {"ttl_s": 0},
        {"ttl_s": -1},
        {"ttl_s": 1e8},
        {"ttl_s": "soon"},
        {"limits": {"max_tensors": 0}},
        {"limits": {"max_tensors": 10**15}},
        {"limits": {"max_fun": 1}},
        {"surprise": 1},
        {"seed": -1},
        [],
        "text",
    ],
)
def test_what_a_session_cannot_be_is_refused(http: httpx.Client, wanted: object) -> None:
    found = problem(http.post("/v1/sessions", json=wanted), 422, "invalid_request")
    assert not found["retryable"]


def test_a_limit_above_the_servers_names_the_setting(http: httpx.Client) -> None:
    found = problem(http.post("/v1/sessions", json={"limits": {"max_tensors": 10**9}}), 422, "invalid_request")
    assert found["extra"]["setting"] == "GRADWIRE_MAX_TENSORS"
    assert "GRADWIRE_MAX_TENSORS" in found["detail"]


def test_a_device_that_is_not_there_is_named(http: httpx.Client) -> None:
    found = problem(http.post("/v1/sessions", json={"device": "cuda:99"}), 422, "device_mismatch")
    assert "cuda:99" in found["detail"]


def test_a_stranger_cannot_tell_a_session_from_none(server: LiveServer, stranger: httpx.Client, session: str) -> None:
    nobodys = "/v1/sessions/s_" + "x" * (len(session) - len("/v1/sessions/s_"))
    calls = [
        ("GET", "", None),
        ("DELETE", "", None),
        ("GET", "/tensors", None),
        ("GET", "/tensors/1", None),
        ("PUT", "/tensors/1", {"values": 1.0}),
        ("DELETE", "/tensors/1", None),
        ("GET", "/graph", None),
        ("POST", "/frames", {"structure": {"ops": []}}),
        ("POST", "/backward", {"tensors": [1]}),
        ("POST", "/grad", {"outputs": [1], "inputs": [1]}),
    ]
    for method, rest, body in calls:
        theirs = problem(stranger.request(method, session + rest, json=body), 404, "not_found")
        none = problem(stranger.request(method, nobodys + rest, json=body), 404, "not_found")
        for path, found in ((session, theirs), (nobodys, none)):
            found["detail"] = found["detail"].replace(path.rsplit("/", 1)[-1], "ID")
            del found["request_id"], found["instance"]
        assert theirs == none, (method, rest)
    assert stranger.get("/v1/sessions").json() == {"sessions": []}


def test_a_stranger_does_not_learn_that_a_session_ended(http: httpx.Client, stranger: httpx.Client) -> None:
    path = http.post("/v1/sessions").headers["location"]
    http.delete(path)
    problem(stranger.get(path), 404, "not_found")
    problem(http.get(path), 404, "session_gone")


def test_the_number_of_sessions_is_limited() -> None:
    with live_server(max_sessions=2) as server, server.http() as http:
        first = http.post("/v1/sessions").headers["location"]
        http.post("/v1/sessions")
        refused = http.post("/v1/sessions")
        found = problem(refused, 429, "too_many_requests")
        assert found["retryable"]
        assert found["extra"]["setting"] == "GRADWIRE_MAX_SESSIONS"
        assert refused.headers["retry-after"]
        http.delete(first)
        assert http.post("/v1/sessions").status_code == 201


def test_a_session_that_takes_longer_to_make_than_it_lives_unused_is_there(
    monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    opening = SessionSupervisor.open

    async def slowly(*given: Any) -> None:
        await opening(*given)
        clock.ahead += 1000

    monkeypatch.setattr(SessionSupervisor, "open", slowly)
    with live_server() as server, server.http() as http:
        made = http.post("/v1/sessions", json={"ttl_s": 100})
        assert made.status_code == 201
        assert http.get(made.headers["location"]).status_code == 200


def test_an_idle_session_expires_when_it_said_it_would(
    http: httpx.Client, new_session: Callable[..., str], clock: Clock
) -> None:
    session = new_session(ttl_s=1000)
    promised = datetime.fromisoformat(http.get(session).json()["expires_at"]).timestamp()
    assert 0 < promised - clock.time() <= 1000
    clock.ahead += 1001
    found = problem(http.get(session), 404, "session_gone")
    assert "expired" in found["detail"]


def test_use_puts_expiry_off(http: httpx.Client, new_session: Callable[..., str], clock: Clock) -> None:
    session = new_session(ttl_s=1000)
    for _ in range(4):
        clock.ahead += 400
        post(http, session, upload(1.0, "float32", []))
    assert http.get(session).status_code == 200


def until_culled(server: LiveServer, session: str) -> None:
    registry = server.app.state.server.registry
    deadline = time.monotonic() + 120
    while session.rsplit("/", 1)[-1] in registry._sessions:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def until_left(server: LiveServer, session: str) -> None:
    """Wait until the server knows that the streams are closed, without a request: that would be use."""
    open_streams = server.app.state.server.registry._sessions[session.rsplit("/", 1)[-1]].streams
    deadline = time.monotonic() + 120
    while open_streams:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_an_open_stream_is_use(
    server: LiveServer, http: httpx.Client, new_session: Callable[..., str], clock: Clock
) -> None:
    session, idle = new_session(ttl_s=1000), new_session(ttl_s=1000)
    with stream(server, session):
        clock.ahead += 1001
        until_culled(server, idle)
        assert http.get(session).json()["streams"] == 1
    until_left(server, session)
    clock.ahead += 1001
    problem(http.get(session), 404, "session_gone")


def test_culling_needs_no_visitor(server: LiveServer, new_session: Callable[..., str], clock: Clock) -> None:
    session = new_session(ttl_s=1000)
    clock.ahead += 1001
    until_culled(server, session)
