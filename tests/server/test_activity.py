"""What the server does: one reading, the stream, who sees what, and that looking changes nothing."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from gradwire_protocol.frames import Problem, Reply
from gradwire_server.http.activity import SHARED_S
from gradwire_server.observability.metrics import Applied, Metrics
from gradwire_server.observability.session_activity import FRAMES_KEPT, SessionActivity
from gradwire_server.observability.session_log import LINES_KEPT, SessionLog
from tests.live_server import LiveServer, live_server

from .exchange import problem

STEP = {"ops": [["randn", [[8, 8]], "x"], ["matmul", ["x", "x"], "y"], ["sum", ["y"], "s"]], "reads": ["s"]}
FAILING = {"ops": [["matmul", ["x", "absent"], "z"]], "reads": ["z"]}


@pytest.fixture(params=["inline", "process"])
def own(request: pytest.FixtureRequest) -> Iterator[LiveServer]:
    with live_server(session_host=request.param, max_ops_per_second=100_000) as server:
        yield server


def row(http: httpx.Client, session: str) -> dict:
    """The session's row in a reading that is newer than this call."""
    time.sleep(SHARED_S + 0.05)
    rows = http.get("/v1/activity").json()["sessions"]
    return next(each for each in rows if each["id"] == session)


def test_a_reading_counts_what_a_session_did(own: LiveServer) -> None:
    with own.http() as http:
        session = http.post("/v1/sessions", json={"name": "mine"}).json()["id"]
        for _ in range(3):
            http.post(f"/v1/sessions/{session}/frames", json=STEP).raise_for_status()
        http.post(f"/v1/sessions/{session}/frames", json=FAILING)
        found = row(http, session)
        assert (found["name"], found["frames"], found["errors"], found["device"]) == ("mine", 4, 1, "cpu")
        assert found["memory"]["live_bytes"] >= 2 * 8 * 8 * 4
        assert found["last_error"]["code"] and "absent" in found["last_error"]["detail"]
        time.sleep(1.1)
        found = row(http, session)
        assert found["frames_per_second"] > 0 and found["ops_per_second"] > found["frames_per_second"]
        assert found["state"] == "idle" and found["idle_s"] >= 1
        whole = http.get("/v1/activity", params={"session": session}).json()
    assert [each["what"] for each in whole["detail"]["frames"]][-1] == "randn, matmul, sum"
    assert [(each["seq"], bool(each["error"])) for each in whole["detail"]["frames"]] == [
        (0, True), (3, False), (2, False), (1, False)
    ]  # fmt: skip
    assert all(each["took_s"] > 0 for each in whole["detail"]["frames"][1:])
    assert whole["totals"]["sessions"] == 1 and whole["queue"]["pending_frames"] == 0
    assert whole["devices"][0]["name"] == "cpu"
    assert bool(whole["workers"]) == (own.app.state.server.settings.session_host == "process")
    assert {each["quota"]: each["limit"] for each in whole["quotas"]} == {"max_ops_per_second": 100_000}


def test_a_profile_shows_the_ops_and_changes_no_value(own: LiveServer) -> None:
    frame = {"ops": [["manual_seed", [0]], *STEP["ops"]], "reads": ["s"]}
    with own.http() as http:
        session = http.post("/v1/sessions").json()["id"]
        frames = f"/v1/sessions/{session}/frames"
        before = http.post(frames, json=frame).json()["values"]
        flames: list[dict] = []

        def record() -> None:
            with own.http() as other:
                flames.append(other.post(f"/v1/sessions/{session}/profile", json={"seconds": 1.0}).json()["flame"])

        recording = threading.Thread(target=record)
        recording.start()
        replies = []
        while recording.is_alive():
            replies.append(http.post(frames, json=frame).json())
        recording.join()
    assert all(reply["values"] == before for reply in replies)
    assert not any("timing" in reply for reply in replies), "the program did not ask for times"
    (flame,) = flames
    assert 0 < flame["count"] <= len(replies)
    (kind,) = flame["below"]
    assert {each["name"] for each in kind["below"]} == {"manual_seed", "randn", "matmul", "sum"}
    assert 0 < sum(each["ns"] for each in kind["below"]) <= kind["ns"] == flame["ns"]


def test_a_second_profile_of_a_session_has_to_wait(own: LiveServer) -> None:
    with own.http() as http:
        session = http.post("/v1/sessions").json()["id"]
        first = threading.Thread(
            target=lambda: httpx.post(
                f"{own.url}/v1/sessions/{session}/profile", json={"seconds": 1.0}, headers=own.headers, timeout=60
            )
        )
        first.start()
        time.sleep(0.4)
        problem(http.post(f"/v1/sessions/{session}/profile", json={"seconds": 0.1}), 429, "too_many_requests")
        first.join()
        assert http.post(f"/v1/sessions/{session}/profile", json={"seconds": 0.1}).json()["flame"]["count"] == 0
        problem(http.post(f"/v1/sessions/{session}/profile", json={"seconds": 1e9}), 422, "invalid_request")


def test_a_tenant_sees_its_own_sessions_and_an_administrator_all(server: LiveServer) -> None:
    with server.http() as one, server.http(server.other_key) as two, server.http(server.admin_key) as admin:
        mine = one.post("/v1/sessions", json={"name": "secret"}).json()["id"]
        theirs = two.post("/v1/sessions").json()["id"]
        try:
            one.post(f"/v1/sessions/{mine}/frames", json=FAILING)
            assert row(one, mine)["last_error"]["detail"]
            seen = {each["id"]: each for each in one.get("/v1/activity").json()["sessions"]}
            assert mine in seen and theirs not in seen
            every = {each["id"]: each for each in admin.get("/v1/activity").json()["sessions"]}
            assert {mine, theirs} <= set(every)
            assert every[mine]["name"] == "" and "detail" not in every[mine]["last_error"]
            problem(two.get("/v1/activity", params={"session": mine}), 404, "not_found")
            problem(admin.get("/v1/activity", params={"session": mine}), 404, "not_found")
            problem(two.get("/v1/activity/stream", params={"session": mine}), 404, "not_found")
        finally:
            one.delete(f"/v1/sessions/{mine}")
            two.delete(f"/v1/sessions/{theirs}")


def test_looking_is_no_use_of_a_session_and_wakes_none(tmp_path: Path) -> None:
    with live_server(data_dir=tmp_path, park_after_s=1) as server, server.http() as http:
        session = http.post("/v1/sessions", json={"ttl_s": 600}).json()["id"]
        http.post(f"/v1/sessions/{session}/frames", json=STEP).raise_for_status()
        until = time.monotonic() + 20
        while row(http, session)["state"] != "dormant":
            assert time.monotonic() < until, "looking kept the session awake"
        before = row(http, session)
        for _ in range(3):
            found = row(http, session)
        assert found["state"] == "dormant" and found["expires_in_s"] < before["expires_in_s"]
        assert http.get("/v1/activity", params={"session": session}).json()["detail"]["frames"]
        assert row(http, session)["state"] == "dormant"


def events(response: httpx.Response, most: int) -> Iterator[tuple[str, str]]:
    """The events of a stream: name and data."""
    name = "message"
    for line in response.iter_lines():
        field, _, value = line.partition(": ")
        if field == "event":
            name = value
        elif field == "data":
            yield name, value
            name, most = "message", most - 1
            if not most:
                return


def test_the_stream_repeats_the_document(server: LiveServer, http: httpx.Client) -> None:
    with http.stream("GET", "/v1/activity/stream") as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        assert response.headers["cache-control"] == "no-store"
        found = [json.loads(data) for _, data in events(response, 3)]
    assert found[0]["at"] < found[1]["at"] < found[2]["at"]
    assert set(found[0]) == set(http.get("/v1/activity").json())


def test_the_stream_ends_with_its_key(server: LiveServer) -> None:
    with server.http(server.admin_key) as admin:
        made = admin.post("/v1/keys", json={"name": "short", "scopes": ["read"]}).json()
        with server.http(made["key"]) as http, http.stream("GET", "/v1/activity/stream") as response:
            seen = events(response, 10)
            assert next(seen)[0] == "message"
            admin.delete(f"/v1/keys/{made['id']}").raise_for_status()
            last = list(seen)[-1]
    assert last[0] == "end" and made["id"] in last[1]


def test_the_stream_of_a_session_ends_with_it(server: LiveServer, http: httpx.Client) -> None:
    session = http.post("/v1/sessions").json()["id"]
    with http.stream("GET", "/v1/activity/stream", params={"session": session}) as response:
        seen = events(response, 10)
        assert json.loads(next(seen)[1])["detail"]["id"] == session
        http.delete(f"/v1/sessions/{session}").raise_for_status()
        last = list(seen)[-1]
    assert last[0] == "end" and session in last[1]


def test_a_drawing_is_the_graph_as_svg(http: httpx.Client, session: str) -> None:
    structure = {"ops": [["randn", [[4]]], ["requires_grad_", [0]], ["mul", [0, "float"]], ["sum", [1]]], "reads": []}
    http.post(f"{session}/frames", json={"structure": structure, "scalars": [2.0]}).raise_for_status()
    drawn = http.get(f"{session}/graph", params={"format": "svg", "theme": "dark"})
    assert drawn.headers["content-type"].startswith("image/svg+xml")
    assert "default-src 'none'" in drawn.headers["content-security-policy"]
    assert "MulBackward0" in drawn.text and "SumBackward0" in drawn.text and "<script" not in drawn.text
    assert http.get(f"{session}/graph", headers={"Accept": "image/svg+xml"}).text.startswith("<svg")


# The counts themselves


def test_the_last_frames_are_bounded_and_the_latest_comes_first() -> None:
    activity = SessionActivity(Metrics())
    for seq in range(1, 2 * FRAMES_KEPT):
        activity.applied(b"", True, Reply(seq=seq), Applied(ops={"basic": 2}, took=0.5, what="ones"))
    recent = activity.recent()
    assert len(recent) == FRAMES_KEPT and recent[0].seq == 2 * FRAMES_KEPT - 1
    assert (activity.frames, activity.ops) == (2 * FRAMES_KEPT - 1, 2 * (2 * FRAMES_KEPT - 1))


def test_a_structure_that_the_client_sends_again_is_no_error() -> None:
    activity = SessionActivity(Metrics())
    activity.applied(b"k" * 16, False, Reply(seq=1, refused=Problem("unknown_structure", "send it")), Applied())
    assert (activity.frames, activity.errors, activity.last_error) == (0, 0, None)
    activity.applied(b"k" * 16, False, Reply(seq=1, refused=Problem("limit_exceeded", "too much")), Applied())
    assert activity.errors == 1
    told = activity.describe_error()
    assert told is not None and told["code"] == "limit_exceeded" and told["detail"] == "too much"


def test_a_sessions_log_is_bounded_and_has_plain_facts_only() -> None:
    kept = SessionLog()
    for i in range(2 * LINES_KEPT):
        event = {
            "event": f"line {i}",
            "session": "s_1",
            "tenant": "t",
            "exc_info": True,
            "ms": i,
            "what": ["a", "list"],
        }
        assert kept(None, "info", event) is event
    kept(None, "info", {"event": "of nobody"})
    lines = kept.of("s_1")
    assert len(lines) == LINES_KEPT and lines[0]["event"] == f"line {2 * LINES_KEPT - 1}"
    assert lines[0]["facts"] == {"ms": 2 * LINES_KEPT - 1}
    assert kept.of("s_2") == []
