"""How long a program waits for a server that has not started, or restarts during the connect."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from tests.live_server import live_server, server_process

import gradwire
from gradwire._core.session import current_session
from gradwire._core.wire import retry
from gradwire._core.wire.rest import TRIES
from gradwire_protocol.errors import Unavailable


def _answer(status: str, kind: str = "text/html", body: bytes = b"<p/>") -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    return head.encode() + body


ANSWERS = {
    "502": _answer("502 Bad Gateway"),
    "503": _answer("503 Service Unavailable"),
    "problem": _answer("503 Service Unavailable", "application/problem+json", b'{"code": "unavailable"}'),
    "404": _answer("404 Not Found"),
    "reset": b"",
}


class Front:
    """Stands before a server: each connection meets the next of these answers, and the server when there are none."""

    def __init__(self, behind: str, answers: list[str]) -> None:
        self.answers = answers
        self.met = 0
        host, port = behind.removeprefix("http://").split(":")
        self._behind = host, int(port)
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._socket.accept()
                self.met += 1
                answer = self.answers.pop(0) if self.answers else None
                threading.Thread(target=self._meet, args=(near, answer), daemon=True).start()

    def _meet(self, near: socket.socket, answer: str | None) -> None:
        with suppress(OSError), near:
            if answer is None:
                far = socket.create_connection(self._behind)
                threading.Thread(target=_copy, args=(far, near), daemon=True).start()
                _copy(near, far)
            elif answer == "reset":
                near.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            else:
                near.recv(1 << 16)
                near.sendall(ANSWERS[answer])

    def close(self) -> None:
        self._socket.close()


def _copy(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(1 << 16):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)


@contextmanager
def connected(*arguments: Any, **more: Any) -> Iterator[Any]:
    before = current_session._current
    session = gradwire.connect(*arguments, **more)
    try:
        yield session
    finally:
        session.close()
        current_session._current = before


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "LONGEST_PAUSE_S", 0.05)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("answer", ["502", "503", "problem", "reset"])
def test_a_patient_program_waits_while_the_server_or_its_proxy_says_that_it_is_not_ready(answer: str) -> None:
    with live_server() as server:
        front = Front(server.url, [answer] * (TRIES + 5))
        with connected(front.url, server.api_key, patience=60):
            assert (gradwire.ones(2) + 1).tolist() == [2.0, 2.0]
        assert front.met > TRIES + 5
        session = gradwire.open_session(server.url, server.api_key, keep=True)
        front.answers = [answer] * (TRIES + 5)
        with connected(front.url, server.api_key, session=session.id, patience=60) as joined:
            assert joined.id == session.id
        front.close()
        session.close()


@pytest.mark.usefixtures("quick")
def test_what_is_no_server_is_told_at_once_however_patient_the_program_is() -> None:
    front = Front("http://127.0.0.1:1", ["404"] * 20)
    with pytest.raises(Unavailable, match="HTTP 404"):
        gradwire.open_session(front.url, "key", patience=60)
    assert front.met == 1
    front.close()


def test_patience_ends(quick: None) -> None:
    front = Front("http://127.0.0.1:1", ["503"] * 1000)
    began = time.monotonic()
    with pytest.raises(Unavailable):
        gradwire.open_session(front.url, "key", patience=1)
    assert 0.9 < time.monotonic() - began < 20
    assert front.met > TRIES
    front.close()


def test_a_server_that_starts_after_the_program_is_waited_for() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    found: list[Any] = []
    url = f"http://127.0.0.1:{port}"

    def program() -> None:
        session = gradwire.open_session(url, "key-of-the-tests", patience=120)
        found.append(session.link.unanswered)
        session.close()

    waiting = threading.Thread(target=program)
    waiting.start()
    time.sleep(8)  # longer than a few tries take
    with server_process("--port", str(port), api_keys='["key-of-the-tests"]'):
        waiting.join(120)
    assert found == [0]


@pytest.mark.usefixtures("quick")
def test_a_question_beside_the_stream_waits_for_a_server_that_restarts() -> None:
    with live_server() as server:
        front = Front(server.url, [])
        with connected(front.url, server.api_key, patience=60) as session:
            x = gradwire.ones(3)
            x.set_name("x")
            session.synchronize()
            session.rest.close()
            session.rest = type(session.rest)(front.url, server.api_key, patience=60)
            front.answers = ["503"] * (TRIES + 5)
            assert session.tensor("x").tolist() == [1.0, 1.0, 1.0]
        front.close()
