"""Cancelled frames stop, deleted sessions stop computing, and until then they count against their tenant."""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from gradwire_engine.autograd.registry import row
from gradwire_protocol.frames import Cancel
from tests.live_server import LiveServer, live_server

from .exchange import binary, frame, post, problem, stream
from .test_workers import ONE_LONG_OP, kill, new_session, until, worker_of

LONG: list[Any] = [["matmul", [-1, -1]]] * 2000
"""Of a matrix of 800 by 800: a minute, a few ms at a time."""

PROMPT_S = 10.0


@pytest.fixture(scope="module", params=["inline", "process"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    folder = tmp_path_factory.mktemp("data")
    with live_server(session_host=request.param, data_dir=folder, max_op_work=0, cancel_patience_s=1) as found:
        yield found


@pytest.fixture(scope="module")
def http(server: LiveServer) -> Iterator[httpx.Client]:
    with server.http() as client:
        client.timeout = httpx.Timeout(60)
        yield client


def computing(http: httpx.Client, session: str, ops: list[Any], size: int, **facts: Any) -> tuple[Any, list[Any]]:
    """A thread that posts a frame of these ops on a matrix of this size, and what is answered."""
    made = post(http, session, frame([["full", [[size, size], "float"]]], [], scalars=[1e-4]))
    answers: list[Any] = []
    body = frame(ops, [], external=[made["first"]], **facts)
    thread = threading.Thread(target=lambda: answers.append(http.post(f"{session}/frames", json=body)))
    thread.start()
    time.sleep(0.5)
    return thread, answers


def seconds_of(pid: int) -> float:
    """The processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_a_frame_over_rest_is_cancelled_by_its_number(http: httpx.Client) -> None:
    session = new_session(http)
    thread, answers = computing(http, session, LONG, 800)
    assert http.delete(f"{session}/frames/2").json() == {"frames": 1}
    thread.join(PROMPT_S)
    reply = answers[0].json()
    assert [error["code"] for error in reply["errors"]] == ["cancelled"]
    read = http.post(f"{session}/frames", json=frame([], [-1], external=[reply["first"]])).json()
    assert read["errors"][0]["code"] == "cancelled"
    assert post(http, session, frame([["ones", [[2]]]], [0]))["values"][0]["values"] == [1, 1]
    problem(http.get(f"{session}/tensors/{reply['first']}"), 409, "cancelled")


def test_what_neither_waits_nor_runs_is_not_found(http: httpx.Client) -> None:
    session = new_session(http)
    problem(http.delete(f"{session}/frames/1"), 404, "not_found")
    assert http.delete(f"{session}/frames").json() == {"frames": 0}


def test_a_stranger_cancels_nothing(server: LiveServer, http: httpx.Client) -> None:
    session = new_session(http)
    thread, answers = computing(http, session, LONG[:300], 800)
    with server.http(server.other_key) as stranger:
        for path in ("frames/2", "frames"):
            problem(stranger.delete(f"{session}/{path}"), 404, "not_found")
    assert not answers
    http.delete(f"{session}/frames")
    thread.join(PROMPT_S)
    assert answers[0].json()["errors"][0]["code"] == "cancelled"


def test_a_stream_cancels_what_runs_and_what_waits(server: LiveServer, http: httpx.Client) -> None:
    session = new_session(http)
    with stream(server, session) as peer:
        matrix = peer.welcome.client << 32 | 1
        peer.apply(1, [["full", [[800, 800], "float"]]], scalars=[1e-4])
        for seq in range(2, 42):  # more than are given to the host at once
            peer.send(binary(seq, LONG, external=[matrix]))
        peer.send(binary(42, [["sum", [-1]]], [0], external=[matrix]))
        time.sleep(0.3)
        began = time.monotonic()
        peer.send(Cancel(first=2, last=41))
        for seq in range(2, 42):
            reply, _ = peer.receive(PROMPT_S)
            assert (reply.seq, reply.refused) == (seq, None)
            assert [error.code for error in reply.errors] == ["cancelled"]
        last, _ = peer.receive(PROMPT_S)
        assert (last.seq, last.errors) == (42, [])
        assert time.monotonic() - began < PROMPT_S
        again, _ = peer.apply(43, [["sum", [-1]]], [0], external=[matrix])
        assert not again.errors  # a cancellation is of frames before it


def test_a_person_cancels_in_json(server: LiveServer, http: httpx.Client) -> None:
    import json

    session = new_session(http)
    with stream(server, session, greet=False) as peer:
        say, hear = peer.socket.send, lambda: json.loads(peer.socket.recv(timeout=60))
        say(json.dumps({"type": "hello", "version": 1}))
        client = hear()["client"]
        made = {"type": "frame", "seq": 1, "structure": {"ops": [["full", [[800, 800], "float"]]]}, "scalars": [1e-4],
                "first": client << 32 | 1}  # fmt: skip
        say(json.dumps(made))
        hear()
        say(json.dumps({"type": "frame", "seq": 2, "structure": {"ops": LONG}, "external": [client << 32 | 1],
                        "first": client << 32 | 2}))  # fmt: skip
        time.sleep(0.3)
        say(json.dumps({"type": "cancel", "first": 2, "last": 2}))
        assert [error["code"] for error in hear()["errors"]] == ["cancelled"]


def test_a_cancelled_frame_that_is_sent_again_is_answered_the_same(server: LiveServer, http: httpx.Client) -> None:
    session = new_session(http)
    with stream(server, session) as peer:
        matrix = peer.welcome.client << 32 | 1
        peer.apply(1, [["full", [[800, 800], "float"]]], scalars=[1e-4])
        peer.send(binary(2, LONG, external=[matrix]))
        time.sleep(0.3)
        peer.send(Cancel(first=1, last=2))
        first, _ = peer.receive(PROMPT_S)
        again, _ = peer.apply(2, LONG, external=[matrix])
        assert [e.code for e in again.errors] == [e.code for e in first.errors] == ["cancelled"]


def test_one_op_that_nothing_stops_is_ended_with_its_worker_and_the_session_is_as_before(
    server: LiveServer, http: httpx.Client
) -> None:
    if server.app.state.server.registry.pool is None:
        pytest.skip("nothing ends an op in the server's own process")
    session = new_session(http)
    with stream(server, session) as peer:
        matrix = peer.welcome.client << 32 | 1
        peer.apply(1, [["ones", [[4000, 4000]]]])
        pid = worker_of(server, session)
        peer.send(binary(2, [["add_", [-1, "int"]], *ONE_LONG_OP], external=[matrix], scalars=[1]))
        before = seconds_of(pid)
        peer.send(binary(3, ONE_LONG_OP, external=[matrix]))
        until(lambda: seconds_of(pid) > before + 2, "the op under way")  # the worker imports what computes it first
        peer.send(Cancel(first=2, last=3))
        for seq in (2, 3):
            reply, _ = peer.receive(60)
            assert (reply.seq, reply.refused) == (seq, None)
            assert [error.code for error in reply.errors] == ["cancelled"]
        assert worker_of(server, session) not in (0, pid)
        reply, buffers = peer.apply(4, [["amax", [-1]]], [0], external=[matrix])
        assert (reply.errors, bytes(buffers[0])) == ([], b"\0\0\x80?")
    metrics = http.get("/metrics", headers={"Authorization": f"Bearer {server.admin_key}"}).text
    assert 'gradwire_worker_restarts_total{reason="cancelled"}' in metrics


def test_a_durable_session_that_cancelled_comes_back_the_same(server: LiveServer, http: httpx.Client) -> None:
    if server.app.state.server.registry.pool is None:
        pytest.skip("a worker is killed")
    session = new_session(http)
    with stream(server, session) as peer:
        base = peer.welcome.client << 32
        peer.apply(1, [["full", [[800, 800], "float"]], ["requires_grad_", [0]]], scalars=[1e-4])
        for seq in (2, 3, 4):
            ops = [["exp", [-1]], ["sum", [0]], ["backward", [[1], [None]]], *LONG]
            peer.send(binary(seq, ops, external=[base | 1]))
            time.sleep(0.4)
            peer.send(Cancel(first=seq, last=seq))
            reply, _ = peer.receive(60)
            assert [error.code for error in reply.errors] == ["cancelled"]
    before = http.get(f"{session}/tensors").json()
    kill(server, session)
    assert http.get(f"{session}/tensors").json() == before
    assert [row["has_grad"] for row in before["tensors"]] == [False]


@pytest.mark.parametrize("seed", [1, 2])
def test_frames_cancelled_at_random_moments_are_applied_as_a_whole_or_not_at_all_also_after_a_kill(
    server: LiveServer, http: httpx.Client, seed: int
) -> None:
    choose = random.Random(seed)
    session, applied = new_session(http), 0
    with stream(server, session) as peer:
        base = peer.welcome.client << 32
        made = [["full", [[2], "float"]], ["full", [[2], "float"]], ["full", [[300, 300], "float"]]]
        peer.apply(1, made, scalars=[0.0, 0.0, 1e-4])
        for seq in range(2, 22):
            ops = [["add_", [-1, "float"]], *[["matmul", [-3, -3]]] * choose.randrange(60), ["add_", [-2, "float"]],
                   ["add_", [-1, "float"]]]  # fmt: skip
            peer.send(binary(seq, ops, external=[base | 1, base | 2, base | 3], scalars=[1.0, 2.0, 1.0]))
            time.sleep(choose.uniform(0, 0.08))
            peer.send(Cancel(first=seq, last=seq))
            reply, _ = peer.receive(60)
            assert [error.code for error in reply.errors] in ([], ["cancelled"])
            applied += not reply.errors
        found, buffers = peer.apply(22, [], [-1, -2], external=[base | 1, base | 2])
        assert [np.frombuffer(buffers[i], np.float32).tolist() for i in (0, 1)] == [[2.0 * applied] * 2] * 2
        assert found.errors == []
    if server.app.state.server.registry.pool is not None:
        kill(server, session)
        http.get(f"{session}/tensors")  # on the next worker: unlike a frame without a number, a question is asked again
    for tensor in (base | 1, base | 2):
        assert http.get(f"{session}/tensors/{tensor}").json()["values"] == [2.0 * applied] * 2


# Deleted sessions


def test_a_deleted_session_stops_computing(server: LiveServer, http: httpx.Client) -> None:
    session = new_session(http)
    thread, answers = computing(http, session, LONG, 800)
    assert http.delete(session).status_code == 204
    thread.join(PROMPT_S)
    assert answers
    registry = server.app.state.server.registry
    until(lambda: not registry._ending, "the end of what it computed")


@pytest.mark.parametrize("host", ["inline", "process"])
def test_a_deleted_session_counts_until_what_it_computes_has_ended(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    over = threading.Event()
    if host == "inline":  # one call that lasts until it is told to end; in a worker, which ends, one that just lasts
        monkeypatch.setattr(row("erfinv"), "kernel", lambda xp, x: over.wait(60) and x)
    settings = {"session_host": host, "max_op_work": 0, "max_key_sessions": 2, "cancel_patience_s": 5}
    with live_server(**settings) as server, server.http() as http:
        http.timeout = httpx.Timeout(60)
        sessions = [new_session(http) for _ in range(2)]
        one_op = [["erfinv", [-1]]] if host == "inline" else ONE_LONG_OP
        thread, _ = computing(http, sessions[0], one_op, 2500)
        assert http.delete(sessions[0]).status_code == 204
        refused = problem(http.post("/v1/sessions", json={}), 429, "too_many_requests")
        assert "1 of them deleted or expired and still computing" in refused["detail"]
        assert refused["extra"]["ending"] == 1
        assert len(http.get("/v1/sessions").json()["sessions"]) == 1
        problem(http.get(sessions[0]), 404, "session_gone")
        assert http.delete(sessions[1]).status_code == 204
        over.set()
        thread.join(60)
        until(lambda: not server.app.state.server.registry._ending, "the end of what it computed")
        new_session(http)


def test_the_worker_of_a_deleted_session_ends_with_what_it_computes() -> None:
    with (
        live_server(session_host="process", max_op_work=0, cancel_patience_s=1, max_frame_seconds=0) as server,
        server.http() as http,
    ):
        session = new_session(http)
        pid = worker_of(server, session)
        computing(http, session, ONE_LONG_OP, 4000)
        assert http.delete(session).status_code == 204
        until(lambda: not server.app.state.server.registry._ending, "the end of its worker")
        again = new_session(http)
        assert worker_of(server, again) not in (0, pid)


def test_a_neighbour_that_would_be_lost_keeps_its_worker() -> None:
    with live_server(session_host="process", max_op_work=0, cancel_patience_s=0.5) as server, server.http() as http:
        neighbour, session = new_session(http), new_session(http)
        value = post(http, neighbour, frame([["ones", [[2]]]], [0]))
        thread, _ = computing(http, session, ONE_LONG_OP, 1500)
        assert http.delete(session).status_code == 204
        thread.join(60)
        until(lambda: not server.app.state.server.registry._ending, "the end of what it computed")
        read = post(http, neighbour, frame([], [-1], external=[value["first"]]))
        assert read["values"][0]["values"] == [1, 1]
