"""The server as a process: its command line, its start, and how it stops."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.exceptions import ConnectionClosed

from gradwire_server.cli import main
from gradwire_server.settings.settings import Settings, variable
from tests.live_server import ROOT, SOURCES, LiveServer, server_process

from .exchange import binary, frame, problem, stream

LONG: list[Any] = [["ones", [[4_000_000]]]] + [["erf_", [0]]] * 60
"""Some seconds of work on one core, in little memory."""


def stop(server: LiveServer, sig: int = signal.SIGTERM) -> None:
    assert server.process is not None
    server.process.send_signal(sig)


def until_busy(http: httpx.Client, session: str) -> None:
    """Wait until a long frame of the session runs."""
    deadline = time.monotonic() + 120
    while not http.get(session).json()["contents"].get("busy"):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def until_draining(http: httpx.Client) -> None:
    """Wait until the server knows that it is to stop."""
    deadline = time.monotonic() + 120
    while (response := http.get("/readyz")).status_code == 200:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    problem(response, 503, "unavailable")


def exit_code(server: LiveServer, timeout: float = 120) -> int:
    assert server.process is not None
    return server.process.wait(timeout)


def test_a_stopping_server_finishes_frames_and_says_when_it_is_gone() -> None:
    with server_process(drain_timeout_s=3600) as server, server.http() as http, server.http(server.admin_key) as admin:
        session = http.post("/v1/sessions").headers["location"]
        with stream(server, session) as peer, stream(server, session) as idle:
            peer.send(binary(1, LONG, [0]))
            while not admin.get("/metrics").text.count("gradwire_streams 2.0"):
                time.sleep(0.02)
            until_busy(http, session)
            stop(server)
            until_draining(http)
            assert http.get("/livez").status_code == 200
            refused = problem(http.post("/v1/sessions"), 503, "unavailable")
            assert refused["retryable"]
            reply, buffers = peer.reply()
            assert (reply.seq, reply.refused, reply.errors) == (1, None, [])
            assert buffers
            for each in (peer, idle):
                with pytest.raises(ConnectionClosed) as closed:
                    each.socket.recv(240)
                assert closed.value.rcvd is not None
                assert closed.value.rcvd.code == 1012
        assert exit_code(server) == 0


def test_a_frame_over_rest_is_finished_too_and_the_next_one_refused() -> None:
    with server_process(drain_timeout_s=3600) as server, server.http() as http:
        session = http.post("/v1/sessions").headers["location"]
        answers: list[httpx.Response] = []

        def work() -> None:
            with server.http() as other:
                answers.append(other.post(f"{session}/frames", json=frame(LONG)))

        worker = threading.Thread(target=work)
        worker.start()
        until_busy(http, session)
        stop(server)
        until_draining(http)
        problem(http.post(f"{session}/frames", json=frame([])), 503, "unavailable")
        worker.join(240)
        assert answers[0].status_code == 200
        assert exit_code(server) == 0


def test_an_idle_server_stops_at_once() -> None:
    with server_process(drain_timeout_s=3600, drain_grace_s=0) as server:
        stop(server, signal.SIGINT)
        assert exit_code(server) == 0


def test_a_second_signal_does_not_wait() -> None:
    with server_process(drain_timeout_s=3600) as server, server.http() as http:
        session = http.post("/v1/sessions").headers["location"]
        with stream(server, session) as peer:
            peer.send(binary(1, LONG * 200, []))  # minutes, on any machine
            until_busy(http, session)
            stop(server)
            until_draining(http)
            assert server.process is not None
            assert server.process.poll() is None
            stop(server)
            assert exit_code(server) == 0


def test_the_grace_is_kept() -> None:
    with server_process(drain_grace_s=1) as server, server.http() as http:
        stop(server)
        until_draining(http)
        assert exit_code(server) == 0


def test_an_embedded_server_ends_with_its_parent() -> None:
    with server_process("--exit-with-parent") as server:
        assert httpx.get(f"{server.url}/livez").status_code == 200
        assert server.process is not None
        assert server.process.stdin is not None
        server.process.stdin.close()
        assert exit_code(server) == 0


def run(*arguments: str, **variables: str) -> subprocess.Popen[str]:
    """The command, with stdout and stderr to read from."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("GRADWIRE_")}
    return subprocess.Popen(
        [sys.executable, "-m", "gradwire_server", *arguments],
        env={**environment, "PYTHONPATH": SOURCES, **variables},
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True,
    )  # fmt: skip


def test_a_key_is_made_and_shown_once_if_none_is_configured(tmp_path: Path) -> None:
    ready = tmp_path / "ready.json"
    process = run("--port", "0", "--ready-file", str(ready), GRADWIRE_LOG_FORMAT="json")
    try:
        deadline = time.monotonic() + 120
        while not ready.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        url = json.loads(ready.read_text())["url"]
        assert json.loads(ready.read_text())["pid"] == process.pid
        assert process.stderr is not None
        line = process.stderr.readline()
        key = line.rsplit(" ", 1)[-1].strip()
        assert key.startswith("gw_")
        assert httpx.get(f"{url}/v1/version", headers={"X-API-Key": key}).status_code == 200
        process.send_signal(signal.SIGTERM)
        out, rest = process.communicate(timeout=120)
        assert process.returncode == 0
        assert key not in out + rest
        assert not ready.exists()
        requests = [json.loads(each) for each in rest.splitlines() if each.startswith("{")]
        assert {"request", "stopping; finishing running frames"} <= {each["event"] for each in requests}
    finally:
        process.kill()
        process.communicate()


def test_a_port_that_is_taken_is_told(server: LiveServer) -> None:
    process = run("--port", server.url.rsplit(":", 1)[-1], GRADWIRE_API_KEYS="some-key")
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 1
    assert "in use" in errors
    assert "Traceback" not in errors


def test_settings_that_cannot_be_used_are_named(capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> None:
    monkeypatch.setenv("GRADWIRE_MAX_TENSORS", "-4")
    assert main(["--port", "0"]) == 2
    assert "GRADWIRE_MAX_TENSORS" in capsys.readouterr().err


def test_all_settings_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--settings"]) == 0
    text = capsys.readouterr().out
    assert all(variable(name) in text for name in Settings.model_fields)


def test_all_settings_are_listed_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--settings", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["settings"]
    assert [row["variable"] for row in rows] == [variable(name) for name in Settings.model_fields]
    assert {row["variable"]: row["default"] for row in rows}["GRADWIRE_PORT"] == 8000
