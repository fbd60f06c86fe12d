"""Sessions in worker processes: the consequences of a worker's death, and for whom."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import numpy as np
import pytest

import gradwire
from gradwire._core.session import current_session
from gradwire_protocol.frames import Frame, Reply, Structure
from gradwire_server.workers import pool as pools
from gradwire_server.workers.wire import Ping, Replied, Submit, Wire, parts, submission, submitted
from gradwire_server.workers.worker_sessions import WorkerSessions
from tests.live_server import LiveServer, live_server, server_process
from tests.training_run import train

from .exchange import binary, frame, post, problem, stream

WAIT_S = 240.0
LONG: list[Any] = [["ones", [[2_000_000]]]] + [["erf_", [0]]] * 150
"""Some seconds of work in little memory, which can be stopped between its ops."""

ONE_LONG_OP: list[Any] = [["linalg_svd", [-1]]]
"""Of a large matrix: half a minute inside one routine of LAPACK, which nothing stops."""


def until(true: Callable[[], Any], what: str) -> Any:
    """Wait until it is so."""
    deadline = time.monotonic() + WAIT_S
    while time.monotonic() < deadline:
        if found := true():
            return found
        time.sleep(0.01)
    raise AssertionError(f"waited {WAIT_S} s in vain: {what}")


def worker_of(server: LiveServer, session: str) -> int:
    """The process id of the worker that runs a session; 0 while there is none."""
    name = session.rsplit("/", 1)[-1]
    for worker in list(server.app.state.server.registry.pool._workers):
        if name in worker.hosts:
            return int(worker.pid)
    return 0


def kill(server: LiveServer, session: str, sig: int = signal.SIGKILL) -> int:
    """End the worker of a session, once there is one; returns its process id."""
    pid = until(lambda: worker_of(server, session), "a worker")
    os.kill(pid, sig)
    return int(pid)


def until_given(server: LiveServer, session: str, deaths: int = 0) -> None:
    """Wait until a worker has a frame of the session that so many workers have died of."""
    host = server.app.state.server.registry._sessions[session.rsplit("/", 1)[-1]].host
    entries = host._entries
    until(lambda: any(each.submitted and each.deaths == deaths for each in list(entries.values())), "a frame that runs")


def new_session(http: httpx.Client, **wanted: Any) -> str:
    response = http.post("/v1/sessions", json=wanted)
    assert response.status_code == 201, response.text
    return str(response.headers["location"])


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """Sessions in worker processes, kept on disk."""
    with live_server(session_host="process", data_dir=tmp_path_factory.mktemp("data")) as found:
        yield found


@pytest.fixture(scope="module")
def http(server: LiveServer) -> Iterator[httpx.Client]:
    with server.http() as client:
        client.timeout = httpx.Timeout(WAIT_S)
        yield client


@contextmanager
def training_session(server: LiveServer) -> Iterator[Any]:
    """A session of the client's library, which is the current one meanwhile."""
    before = current_session._current
    session = gradwire.connect(server.url, server.api_key, seed=3)
    try:
        yield session
    finally:
        session.close()
        current_session._current = before


# Dying


def test_a_training_run_whose_worker_is_killed_ends_with_the_same_bits_and_its_neighbour_notices_nothing(
    server: LiveServer,
) -> None:
    steps = 90  # a frame each
    with training_session(server):
        undisturbed = train(steps)
    with server.http(server.other_key) as other:
        neighbour = new_session(other)
        its_worker = until(lambda: worker_of(server, neighbour), "the neighbour's worker")
        with training_session(server) as session:
            over = threading.Event()
            kills: list[int] = []

            def killer() -> None:
                for frames in (25, 70):
                    while session.frames < frames and not over.is_set():
                        time.sleep(0.001)
                    kill(server, session.id)
                    kills.append(session.frames)

            thread = threading.Thread(target=killer, daemon=True)
            thread.start()
            disturbed = train(steps)
            over.set()
            thread.join(WAIT_S)
            assert session.link.reconnects == 0
            assert max(kills) < session.frames
        assert disturbed == undisturbed
        assert worker_of(server, neighbour) == its_worker
        post(other, neighbour, frame([["ones", [[2]]]], [0]))


def test_a_frame_that_was_running_is_run_again_and_applied_once(server: LiveServer, http: httpx.Client) -> None:
    session = new_session(http)
    with stream(server, session) as peer:
        peer.apply(1, [["zeros", [[2]]]])
        counter = peer.welcome.client << 32 | 1
        peer.send(binary(2, [*LONG, ["add_", [-1, "int"]]], [-1], external=[counter], scalars=[1]))
        until_given(server, session)
        kill(server, session)
        for seq in (3, 4):
            peer.send(binary(seq, [["add_", [-1, "int"]]], [-1], external=[counter], scalars=[1]))
        for seq, value in ((2, 1), (3, 2), (4, 3)):
            message, buffers = peer.receive(WAIT_S)
            assert (message.seq, message.refused, message.errors) == (seq, None, [])
            assert np.frombuffer(buffers[0], np.float32).tolist() == [value, value]
    http.delete(session)


def test_a_frame_that_runs_at_two_deaths_is_refused_and_its_client_goes_on(
    server: LiveServer, http: httpx.Client
) -> None:
    session = new_session(http)
    with stream(server, session) as peer:
        peer.send(binary(1, LONG))
        until_given(server, session)
        first = kill(server, session)
        until(lambda: worker_of(server, session) not in (0, first), "the next worker")
        until_given(server, session, deaths=1)
        kill(server, session)
        refused, _ = peer.receive(WAIT_S)
        assert (refused.seq, refused.refused.code) == (1, "worker_died")
        assert "SIGKILL" in refused.refused.detail
        reply, buffers = peer.apply(1, [["ones", [[2]]]], [0])
        assert (reply.refused, len(buffers[0])) == (None, 8)
    http.delete(session)


def test_a_frame_without_a_number_is_answered_with_what_is_known(server: LiveServer, http: httpx.Client) -> None:
    session = new_session(http)
    with server.http() as other:
        other.timeout = httpx.Timeout(WAIT_S)
        answers: list[httpx.Response] = []
        asking = threading.Thread(target=lambda: answers.append(other.post(f"{session}/frames", json=frame(LONG))))
        asking.start()
        until_given(server, session)
        kill(server, session)
        asking.join(WAIT_S)
    found = problem(answers[0], 500, "worker_died")
    assert "it is unknown whether it was applied" in found["detail"]
    post(http, session, frame([["ones", [[2]]]], [0]))
    http.delete(session)


def test_questions_are_asked_again(server: LiveServer, http: httpx.Client) -> None:
    session = new_session(http)
    post(http, session, frame([["ones", [[2]]]]))
    kill(server, session)
    assert [row["shape"] for row in http.get(f"{session}/tensors").json()["tensors"]] == [[2]]
    http.delete(session)


def test_a_session_without_a_folder_ends_with_its_worker(server: LiveServer, http: httpx.Client) -> None:
    session = new_session(http, durability="none")
    with stream(server, session) as peer:
        peer.apply(1, [["ones", [[2]]]])
        kill(server, session)
        refusal, _ = peer.receive(WAIT_S)
        assert refusal.problem.code == "session_gone"
        assert "was lost" in refusal.problem.detail
    found = problem(http.get(session), 404, "session_gone")
    assert "was lost" in found["detail"]


# Silence and time


def test_a_hung_worker_is_replaced(tmp_path: Path) -> None:
    with live_server(session_host="process", data_dir=tmp_path, worker_patience_s=2) as server, server.http() as http:
        session = new_session(http)
        with stream(server, session) as peer:
            peer.apply(1, [["ones", [[2]]]])
            hung = kill(server, session, signal.SIGSTOP)
            reply, buffers = peer.apply(2, [["add", [-1, -1]]], [0], external=[peer.welcome.client << 32 | 1])
            assert (reply.refused, reply.errors) == (None, [])
            assert np.frombuffer(buffers[0], np.float32).tolist() == [2, 2]
        assert worker_of(server, session) != hung
        assert (
            'gradwire_worker_restarts_total{reason="hung"}'
            in http.get("/metrics", headers={"Authorization": f"Bearer {server.admin_key}"}).text
        )


def test_an_op_that_nothing_stops_is_ended_with_its_worker(tmp_path: Path) -> None:
    with live_server(session_host="process", data_dir=tmp_path, max_op_work=0) as server, server.http() as http:
        session = new_session(http, limits={"max_frame_seconds": 3})
        with stream(server, session) as peer:
            matrix = peer.welcome.client << 32 | 1
            made, _ = peer.apply(1, [["ones", [[4000, 4000]]]])
            assert made.refused is None
            peer.send(binary(2, ONE_LONG_OP, external=[matrix]))
            refused, _ = peer.receive(WAIT_S)
            assert (refused.seq, refused.refused.code) == (2, "time_exceeded")
            assert refused.refused.extra["setting"] == "GRADWIRE_MAX_FRAME_SECONDS"
            reply, _ = peer.apply(2, [["sum", [-1]]], [0], external=[matrix])
            assert (reply.refused, reply.errors) == (None, [])


# Memory


def test_memory_beyond_the_cap_is_an_error_of_the_op_and_the_session_lives_on(tmp_path: Path) -> None:
    with live_server(session_host="process", max_worker_bytes=256 << 20) as server, server.http() as http:
        session = new_session(http)
        pid = worker_of(server, session)
        reply = http.post(f"{session}/frames", json=frame([["ones", [[200_000_000]]]])).json()
        assert reply["errors"][0]["code"] == "out_of_memory"
        assert post(http, session, frame([["ones", [[2]]]], [0]))["values"][0]["values"] == [1, 1]
        assert worker_of(server, session) == pid


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="read from /proc")
def test_the_kernel_would_rather_end_a_worker_than_the_server(server: LiveServer, http: httpx.Client) -> None:
    session = new_session(http)
    score = int(Path(f"/proc/{worker_of(server, session)}/oom_score_adj").read_text())
    assert score > int(Path("/proc/self/oom_score_adj").read_text())
    http.delete(session)


# Processes


def test_a_worker_is_given_no_setting_of_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADWIRE_API_KEYS", "a-secret-key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "another-secret")
    with live_server(session_host="process") as server, server.http() as http:
        session = new_session(http)
        variables = Path(f"/proc/{worker_of(server, session)}/environ").read_bytes()
        assert b"secret" not in variables
        assert b"GRADWIRE_" not in variables
        assert b"PATH=" in variables


def test_workers_end_with_a_server_that_is_killed() -> None:
    with server_process(session_host="process") as server, server.http() as http:
        session = new_session(http)
        assert server.process is not None
        children = [
            int(p) for p in Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children").read_text().split()
        ]
        assert children
        with stream(server, session) as peer:
            peer.send(binary(1, LONG * 20))  # in an op, nobody reads that the socket was closed
            time.sleep(0.3)
            server.process.kill()
            server.process.wait(120)
    until(lambda: not any(_runs(pid) for pid in children), "the workers' end")


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_workers_that_die_at_start_are_not_started_forever(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[object] = []
    popen = pools.subprocess.Popen

    def failing(command: list[str], **options: Any) -> Any:
        started.append(command)
        return popen(["/bin/false"], **options)

    monkeypatch.setattr(pools.subprocess, "Popen", failing)
    with live_server(session_host="process") as server, server.http() as http:
        found = problem(http.post("/v1/sessions"), 503, "unavailable")
        assert found["retryable"]
        assert len(started) <= len(pools.PAUSES_S) + 1


def test_a_session_of_its_own_worker_dies_alone(tmp_path: Path) -> None:
    with live_server(session_host="process", worker_per="session") as server, server.http() as http:
        first, second = new_session(http), new_session(http)
        assert worker_of(server, first) != worker_of(server, second)
        kill(server, first)
        post(http, second, frame([["ones", [[2]]]], [0]))
        until(lambda: http.get(first).status_code == 404, "the end of the first")


# Neighbours


@pytest.mark.parametrize("kind", ["inline", "process"])
def test_a_giant_op_delays_nobody_for_long(kind: str) -> None:
    """The same key's other session, looks at the busy one, and the server's health answer while it runs."""
    with live_server(session_host=kind, max_op_work=0) as server, server.http() as http:
        busy, other = new_session(http), new_session(http)
        with stream(server, busy) as peer:
            peer.send(binary(1, [["ones", [[2500, 2500]]], *[["matmul", [i, 0]] for i in range(40)]]))
            time.sleep(0.2)
            for _ in range(5):
                post(http, other, frame([["ones", [[2]]]], [0]))
                assert http.get("/livez").status_code == 200
            assert http.get(busy).json()["contents"]["busy"]
            with pytest.raises(TimeoutError):
                peer.receive(0)
            http.delete(busy)
        http.delete(other)


# The wire


class _Ears:
    """Collects what a wire delivers."""

    def __init__(self) -> None:
        self.heard: list[tuple[Any, list[bytes]]] = []
        self.wire = Wire(lambda message, buffers: self.heard.append((message, [bytes(b) for b in buffers])), list)

    def listen(self, data: bytes, sizes: Iterator[int]) -> None:
        at = 0
        while at < len(data):
            room = self.wire.get_buffer(-1)
            assert len(room)
            piece = data[at : at + min(next(sizes), len(room))]
            room[: len(piece)] = piece
            self.wire.buffer_updated(len(piece))
            at += len(piece)


@pytest.mark.parametrize("most", [1, 7, 1000, 300_000])
def test_messages_arrive_whole_however_they_are_cut(most: int) -> None:
    random = np.random.default_rng(most)
    sizes = [0, 1, 63, 64, 65, 5_000] if most < 8 else [0, 1, 64, 262_100, 262_144, 1_000_000, 3]
    sent = []
    data = b""
    for number, size in enumerate(sizes):
        raw = random.bytes(size)
        message = Replied(number, Reply(seq=number))
        data += b"".join(parts(message, [memoryview(raw)])) + b"".join(parts(Ping(number)))
        sent += [(Replied, [raw]), (Ping, [])]
    ears = _Ears()
    ears.listen(data, iter(lambda: int(random.integers(1, most + 1)), 0))
    assert [(type(message), buffers) for message, buffers in ears.heard] == sent


def test_a_frame_of_a_person_arrives_as_it_was() -> None:
    import msgspec

    numbers: list[Any] = [1, 10**30, -(10**30), 0.5, "NaN", [1, 2]]
    text = msgspec.json.encode(Structure([["full", [[2], "float"]]], [0]))
    told = Frame(seq=3, client=2, structure=msgspec.Raw(text), scalars=numbers, hash=b"12")
    ears = _Ears()
    ears.listen(b"".join(parts(submission(7, "s", told, True, False))), iter(lambda: 10**6, 0))
    message, _ = ears.heard[0]
    assert isinstance(message, Submit)
    found = submitted(message)
    assert (found.seq, found.client, found.scalars, bytes(found.structure)) == (3, 2, numbers, text)


def test_a_frame_for_which_a_worker_has_no_memory_may_be_sent_again() -> None:
    class Full:
        def submit(self, *_: Any) -> None:
            raise MemoryError

    told: list[Any] = []
    bench = WorkerSessions(lambda nbytes: None)
    bench.wire = SimpleNamespace(send=told.append)  # type: ignore[assignment]
    bench._hosts["s"] = Full()  # type: ignore[assignment]
    bench.on_message(Submit(1, "s", Frame(seq=3)), [])
    refused = told[0].reply.refused
    assert (told[0].call, refused.code, refused.retryable) == (1, "out_of_memory", True)


def test_large_messages_travel_both_ways(server: LiveServer, http: httpx.Client) -> None:
    session = new_session(http)
    values = np.arange(3_000_000, dtype=np.float32)
    headers = {"Content-Type": "application/octet-stream", "Gradwire-Dtype": "float32", "Gradwire-Shape": "3000000"}
    assert http.put(f"{session}/tensors/5", content=values.tobytes(), headers=headers).status_code in (200, 201)
    response = http.get(f"{session}/tensors/5", headers={"Accept": "application/octet-stream"})
    assert response.content == values.tobytes()
    http.delete(session)
