"""Sessions that outlive their server: restarts, expiry, dormancy, damage, and the directory's lock."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from typer.testing import CliRunner

import gradwire
from gradwire._core.session import current_session as sessions
from gradwire.cli.main import app
from gradwire_server.hosting.runner import Runner
from tests.live_server import API_KEY, ROOT, SOURCES, LiveServer, live_server, server_process
from tests.training_run import train

from .exchange import post, problem, stream, upload

WAIT_S = 240.0


def until(true: Callable[[], Any], what: str) -> Any:
    """Wait until it is so."""
    deadline = time.monotonic() + WAIT_S
    while time.monotonic() < deadline:
        if found := true():
            return found
        time.sleep(0.02)
    raise AssertionError(f"waited {WAIT_S} s in vain: {what}")


def new_session(http: httpx.Client, **wanted: Any) -> str:
    response = http.post("/v1/sessions", json=wanted)
    assert response.status_code == 201, response.text
    return str(response.headers["location"])


def state(http: httpx.Client, session: str) -> str:
    """What the list tells of a session, which does not wake it."""
    rows = {row["id"]: row["state"] for row in http.get("/v1/sessions").json()["sessions"]}
    return str(rows.get(session.rsplit("/", 1)[-1], "gone"))


def folder(data: Path, session: str) -> Path:
    return data / "sessions" / session.rsplit("/", 1)[-1]


def values(http: httpx.Client, session: str, tensor: int = 1) -> Any:
    return http.get(f"{session}/tensors/{tensor}").json()["values"]


# Restarts


@contextmanager
def current_session(url: str) -> Iterator[Any]:
    before = sessions._current
    session = gradwire.connect(url, API_KEY, seed=3)
    try:
        yield session
    finally:
        session.close()
        sessions._current = before


@pytest.mark.parametrize(("kind", "sig"), [("inline", signal.SIGTERM), ("process", signal.SIGKILL)])
def test_the_same_client_goes_on_after_the_server_was_restarted(kind: str, sig: int, tmp_path: Path) -> None:
    steps = 40  # a frame each
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    settings = {"data_dir": tmp_path, "session_host": kind, "log_level": "error"}
    with ExitStack() as servers:
        first = servers.enter_context(server_process("--port", port, **settings))
        with current_session(first.url):
            undisturbed = train(steps)
        with current_session(first.url) as session:

            def restart() -> None:
                while session.frames < 20:
                    time.sleep(0.001)
                assert first.process is not None
                first.process.send_signal(sig)
                assert first.process.wait(WAIT_S) == (0 if sig == signal.SIGTERM else -sig)
                servers.enter_context(server_process("--port", port, **settings))

            with ThreadPoolExecutor(1) as aside:
                restarted = aside.submit(restart)
                assert train(steps) == undisturbed
                restarted.result(WAIT_S)
            assert session.link.reconnects >= 1


def test_what_was_there_is_there_when_the_server_starts_again(tmp_path: Path) -> None:
    with live_server(data_dir=tmp_path) as server, server.http() as http:
        session = new_session(http, ttl_s=500, device="cpu", default_dtype="float64")
        post(http, session, upload([1, 2.5], "float64", [2]))
        before = http.get(session).json()
        temporary = new_session(http, durability="none")
    with live_server(data_dir=tmp_path) as server, server.http() as http, server.http(server.other_key) as other:
        assert [row["state"] for row in http.get("/v1/sessions").json()["sessions"]] == ["dormant"]
        assert other.get("/v1/sessions").json()["sessions"] == []
        problem(other.get(session), 404, "not_found")
        assert state(http, session) == "dormant"
        assert values(http, session) == [1, 2.5]
        after = http.get(session).json()
        assert after["state"] == "running"
        same = ("id", "device", "default_dtype", "ttl_s", "durability", "created_at", "limits")
        assert {name: after[name] for name in same} == {name: before[name] for name in same}
        problem(http.get(temporary), 404, "not_found")


def test_a_dormant_session_wakes_by_a_stream_too(tmp_path: Path) -> None:
    with live_server(data_dir=tmp_path) as server, server.http() as http:
        session = new_session(http)
        with stream(server, session) as peer:
            peer.apply(1, [["ones", [[2]]]])
            client = peer.welcome.client
    with live_server(data_dir=tmp_path) as server, stream(server, session, greet=False) as peer:
        welcome = peer.hello(client)
        assert (welcome.client, welcome.expected, welcome.durability) == (client, 2, "applied")
        reply, buffers = peer.apply(2, [["add", [-1, -1]]], [0], external=[client << 32 | 1])
        assert (reply.refused, reply.errors) == (None, [])
        assert np.frombuffer(buffers[0], np.float32).tolist() == [2, 2]


def test_many_who_use_a_dormant_session_at_once_wake_it_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with live_server(data_dir=tmp_path) as server, server.http() as http:
        session = new_session(http)
        post(http, session, upload([1, 2], "float32", [2]))
    recovered: list[Path] = []
    recover = Runner.recover.__func__  # type: ignore[attr-defined]

    def counted(cls: type[Runner], folder: Path, *more: Any, **others: Any) -> Runner:
        recovered.append(folder)
        time.sleep(0.3)
        found: Runner = recover(cls, folder, *more, **others)
        return found

    monkeypatch.setattr(Runner, "recover", classmethod(counted))
    with live_server(data_dir=tmp_path, session_host="inline") as server, server.http() as http:
        with ThreadPoolExecutor(8) as users:
            asked = [users.submit(values, http, session) for _ in range(8)]
            assert http.get("/livez").status_code == 200
            assert [each.result() for each in asked] == [[1, 2]] * 8
        assert len(recovered) == 1


def test_a_session_of_before_runs_frames_as_the_server_is_told_today(tmp_path: Path) -> None:
    def planned(http: httpx.Client) -> Any:
        return http.get(session).json()["contents"]["plans"]["on"]

    with live_server(data_dir=tmp_path, plans="on") as server, server.http() as http:
        session = new_session(http)
        assert planned(http)
    with live_server(data_dir=tmp_path, plans="off") as server, server.http() as http:
        assert not planned(http)


# Time


def age(folder: Path, seconds: float) -> None:
    """Let the files of a session be older than they are."""
    for file in folder.iterdir():
        used = file.stat().st_mtime - seconds
        os.utime(file, (used, used))


def test_a_session_expires_while_the_server_is_away(tmp_path: Path) -> None:
    with live_server(data_dir=tmp_path) as server, server.http() as http:
        brief, lasting = new_session(http, ttl_s=1000), new_session(http, ttl_s=100_000)
        assert folder(tmp_path, brief).exists()
    age(folder(tmp_path, brief), 2000)
    with live_server(data_dir=tmp_path) as server, server.http() as http:
        problem(http.get(brief), 404, "session_gone")
        assert [row["id"] for row in http.get("/v1/sessions").json()["sessions"]] == [lasting.rsplit("/", 1)[-1]]
        until(lambda: not folder(tmp_path, brief).exists(), "the files' end")
        assert http.get(lasting).status_code == 200


def test_the_last_use_is_known_after_a_restart(tmp_path: Path) -> None:
    with live_server(data_dir=tmp_path) as server, server.http() as http:
        session = new_session(http, ttl_s=10_000)
    age(folder(tmp_path, session), 6000)
    with live_server(data_dir=tmp_path) as server:
        registry = server.app.state.server.registry
        assert 3000 < registry._sessions[session.rsplit("/", 1)[-1]].remaining < 4001


def test_a_session_that_nobody_uses_is_put_away_and_comes_back(tmp_path: Path) -> None:
    with live_server(data_dir=tmp_path, park_after_s=2) as server, server.http() as http:
        session, unkept = new_session(http), new_session(http, durability="none")
        post(http, session, upload([1, 2], "float32", [2]))
        until(lambda: state(http, session) == "dormant", "it sleeps")
        assert values(http, session) == [1, 2]
        assert state(http, session) == "running"
        with stream(server, session) as peer:
            time.sleep(3.5)
            assert state(http, session) == "running"
            peer.apply(1, [["ones", [[2]]]])
        assert state(http, unkept) == "running"


def test_only_sessions_that_are_awake_count(tmp_path: Path) -> None:
    with live_server(data_dir=tmp_path) as server, server.http() as http:
        sleeping = [new_session(http) for _ in range(2)]
    with live_server(data_dir=tmp_path, max_sessions=1) as server, server.http() as http:
        assert http.get(sleeping[0]).status_code == 200
        found = problem(http.get(sleeping[1]), 429, "too_many_requests")
        assert found["extra"]["setting"] == "GRADWIRE_MAX_SESSIONS"
        problem(http.post("/v1/sessions"), 429, "too_many_requests")
        http.delete(sleeping[0])
        assert http.get(sleeping[1]).status_code == 200


# Ends


def test_deleting_removes_the_files_awake_or_asleep(tmp_path: Path) -> None:
    with live_server(data_dir=tmp_path) as server, server.http() as http:
        awake, asleep = new_session(http), new_session(http)
        assert http.delete(awake).status_code == 204
        assert not folder(tmp_path, awake).exists()
    with live_server(data_dir=tmp_path) as server, server.http() as http:
        assert http.delete(asleep).status_code == 204
        assert not folder(tmp_path, asleep).exists()
        problem(http.get(asleep), 404, "session_gone")


def test_a_damaged_session_is_told_and_hides_no_other(tmp_path: Path) -> None:
    with live_server(data_dir=tmp_path) as server, server.http() as http:
        sound, damaged = new_session(http), new_session(http)
        for session in (sound, damaged):
            for _ in range(3):
                post(http, session, upload([1, 2], "float32", [2]))
    for file in folder(tmp_path, damaged).iterdir():
        if file.suffix in (".log", ".safetensors"):
            bytes_ = bytearray(file.read_bytes())
            for at in range(len(bytes_) // 3, len(bytes_) // 3 + 8):
                bytes_[at] ^= 0xFF
            file.write_bytes(bytes_)
    with live_server(data_dir=tmp_path, log_level="error") as server, server.http() as http:
        assert len(http.get("/v1/sessions").json()["sessions"]) == 2
        found = problem(http.get(damaged), 500, "journal_damaged")
        assert found["extra"]["offset"] >= 0
        assert not found["retryable"]
        with stream(server, damaged, greet=False) as peer:
            assert peer.hello().problem.code == "journal_damaged"
        assert values(http, sound) == [1, 2]
        assert http.delete(damaged).status_code == 204


def test_a_server_without_a_directory_promises_nothing() -> None:
    with live_server() as server, server.http() as http:
        for wanted in ("applied", "durable"):
            found = problem(http.post("/v1/sessions", json={"durability": wanted}), 422, "invalid_request")
            assert found["extra"]["setting"] == "GRADWIRE_DATA_DIR"
        assert http.post("/v1/sessions", json={"durability": "none"}).json()["durability"] == "none"


def test_a_directory_has_one_server(tmp_path: Path) -> None:
    with live_server(data_dir=tmp_path):
        variables = {k: v for k, v in os.environ.items() if not k.startswith("GRADWIRE_")}
        variables |= {"PYTHONPATH": SOURCES, "GRADWIRE_API_KEYS": "key", "GRADWIRE_DATA_DIR": str(tmp_path)}
        second = subprocess.run(
            [sys.executable, "-m", "gradwire_server", "--port", "0"],
            env=variables, cwd=ROOT, capture_output=True, text=True, timeout=WAIT_S,
        )  # fmt: skip
    assert second.returncode == 1
    assert "in use by another server" in second.stderr
    assert "GRADWIRE_DATA_DIR" in second.stderr
    assert "Traceback" not in second.stderr


# Files


@pytest.mark.parametrize("kind", ["inline", "process"])
def test_a_session_moves_to_another_server_as_a_file(kind: str, tmp_path: Path) -> None:
    with live_server(session_host=kind) as server, server.http() as http:
        session = new_session(http)
        post(http, session, upload([1, 2.5], "float32", [2]))
        exported = http.get(f"{session}/export")
        assert exported.headers["content-type"] == "application/safetensors"
        assert session.rsplit("/", 1)[-1] in exported.headers["content-disposition"]
    with live_server(session_host=kind, data_dir=tmp_path) as server, server.http() as http:
        headers = {"Content-Type": "application/safetensors"}
        response = http.post("/v1/sessions/import?ttl_s=100", content=exported.content, headers=headers)
        assert response.status_code == 201, response.text
        assert (response.json()["ttl_s"], response.json()["durability"]) == (100, "applied")
        assert values(http, response.headers["location"]) == [1, 2.5]
        broken = http.post("/v1/sessions/import", content=exported.content[:50], headers=headers)
        assert broken.status_code in (400, 422), broken.text
        problem(http.post("/v1/sessions/import", json={}), 415, "unsupported_media_type")
        assert len(http.get("/v1/sessions").json()["sessions"]) == 1
        assert len(list((tmp_path / "sessions").iterdir())) == 1


@pytest.mark.parametrize("text", ["[" * 10_000, "\\u005b" * 4_000, "1," * 10_000, "{" * 3_000])
@pytest.mark.parametrize("where", ["facts", "entry"])
def test_the_header_of_a_session_s_file_is_bounded_before_it_is_decoded(text: str, where: str) -> None:
    quoted = f'"{text}"'
    body = {"facts": f'{{"__metadata__":{{"facts":{quoted}}}}}', "entry": f'{{"m0":{{"shape":{quoted}}}}}'}[where]
    with live_server(max_decoded_bytes=500_000) as server, server.http() as http:
        session = new_session(http)
        post(http, session, upload([1, 2.5], "float32", [2]))
        headers = {"Content-Type": "application/safetensors"}
        exported = http.get(f"{session}/export").content
        assert http.post("/v1/sessions/import", content=exported, headers=headers).status_code == 201
        content = len(body).to_bytes(8, "little") + body.encode()
        found = problem(http.post("/v1/sessions/import", content=content, headers=headers), 413, "limit_exceeded")
        assert found["extra"]["setting"] == "GRADWIRE_MAX_DECODED_BYTES"
        assert found["extra"]["value"] > found["extra"]["limit"] == 500_000


def gradwire_command(server: LiveServer, *arguments: str) -> tuple[int, str]:
    """Run ``gradwire`` against a server; its exit status and what it printed."""
    found = CliRunner().invoke(app, [*arguments, "--url", server.url, "--api-key", server.api_key])
    return found.exit_code, found.output


def test_the_command_line_moves_a_session_between_servers(tmp_path: Path) -> None:
    file = tmp_path / "session.safetensors"
    with live_server() as server, server.http() as http:
        session = new_session(http)
        post(http, session, upload([1, 2.5], "float32", [2]))
        name = session.rsplit("/", 1)[-1]
        code, text = gradwire_command(server, "sessions", "export", name, str(file))
        assert (code, file.exists()) == (0, True), text
        code, text = gradwire_command(server, "sessions", "export", name, str(file))
        assert code == 2
        assert "--force" in text
        code, text = gradwire_command(server, "sessions", "export", "s_nothing", str(tmp_path / "no.safetensors"))
        assert code == 1
        assert text.startswith("not_found: ")
        assert not list(tmp_path.glob("no*"))
    with live_server() as server, server.http() as http:
        code, text = gradwire_command(server, "sessions", "import", str(file), "--ttl", "50")
        assert code == 0, text
        assert values(http, f"/v1/sessions/{text.split()[-1]}") == [1, 2.5]
        assert text.split()[-1][:8] in gradwire_command(server, "sessions", "ls")[1]
        code, text = gradwire_command(server, "sessions", "import", str(file), "--durability", "durable")
        assert code == 1
        assert "GRADWIRE_DATA_DIR" in text
