"""Sends a server invalid input in every message format, and inspects its answers."""

from __future__ import annotations

import time
from collections import Counter
from contextlib import suppress
from typing import Any, Final

import httpx
import msgspec
from websockets.exceptions import ConnectionClosed, WebSocketException
from websockets.sync.client import ClientConnection, connect

from gradwire_protocol import envelope
from gradwire_protocol.frames import PROTOCOL_VERSION
from tests.hostile_messages import Fields, as_json, as_msgpack
from tests.live_server import LiveServer

MARK: Final = 10**9
"""The number of a frame that is never due: its refusal says that everything before it was answered."""
PATIENCE_S: Final = 60.0
BUSY: Final = (503, 507)
"""What a server may answer although nothing is wrong with it."""
HELLO: Final = {"type": "hello", "version": PROTOCOL_VERSION}
MARKING: Final = {"type": "frame", "seq": MARK, "structure": {"ops": []}}


class Hostile:
    """Whoever sends it, in a session of theirs.

    Attributes:
        counts: what was answered, by kind.
        faults: answers that say that the server is at fault.
    """

    def __init__(self, server: LiveServer, http: httpx.Client, path: str) -> None:
        self.server = server
        self.http = http
        self.path = path
        self.counts: Counter[str] = Counter()
        self.faults: list[str] = []
        self._open: dict[bool, ClientConnection] = {}

    def send(self, fields: Fields, what: str, forms: tuple[str, ...] = ("stream", "text", "json", "msgpack")) -> None:
        """Send a message in these forms."""
        packed, text = as_msgpack(fields), as_json(fields)
        for form in forms:
            data = text if form in ("text", "json") else packed
            if data is None:
                continue
            self.counts[f"over {form}"] += 1
            if form in ("stream", "text"):
                self.stream(data, what, greet=fields.get("type") != "hello")
            else:
                kind = "application/json" if form == "json" else "application/msgpack"
                content = data.encode(errors="surrogatepass") if isinstance(data, str) else data
                self.post(content, kind, what)

    def post(self, content: bytes, kind: str, what: str) -> None:
        """Post something as a frame."""
        response = self.http.post(f"{self.path}/frames", content=content, headers={"Content-Type": kind})
        self.counts[f"status {response.status_code}"] += 1
        if response.status_code >= 500 and response.status_code not in BUSY:
            self._fault(what, response.text)
        elif response.status_code == 200:
            form = msgspec.json.decode if kind.endswith("json") else _reply
            self._judge(form(response.content), what)

    # Streams

    def stream(self, data: bytes | str, what: str, greet: bool = True) -> None:
        """Say something on a stream, and hear what comes of it."""
        human = isinstance(data, str)
        if not greet and human in self._open:
            self._close(human)
        try:
            socket = self._open.get(human) or self._connect(human, greet)
            socket.send(data)
            if greet:
                mark = msgspec.json.encode(MARKING).decode() if human else as_msgpack(MARKING)
                assert mark is not None
                socket.send(mark)
            while self._hear(socket, what, greet):
                pass
            if not greet:
                self._close(human)
        except ConnectionClosed as closed:
            code = closed.rcvd.code if closed.rcvd is not None else 0
            self.counts[f"closed with {code}"] += 1
            if code in (1011, 1006, 0):
                self._fault(what, f"the stream ended with {code}")
            self._open.pop(human, None)
        except TimeoutError:
            self._fault(what, f"no answer in {PATIENCE_S:.0f} s")
            self._close(human)

    def _hear(self, socket: ClientConnection, what: str, greeted: bool) -> bool:
        """Take one answer; whether there is another."""
        heard = socket.recv(timeout=PATIENCE_S)
        answer = msgspec.json.decode(heard) if isinstance(heard, str) else _reply(heard)
        if answer.get("seq") == MARK:
            return False
        self._judge(answer, what)
        return greeted or answer.get("type") == "refusal"

    def _connect(self, human: bool, greet: bool) -> ClientConnection:
        url = self.server.stream_url + self.path.rsplit("/", 1)[-1] + "/stream"
        made = connect(url, additional_headers=self.server.headers, compression=None, max_size=None, ping_interval=None)
        socket = made.__enter__()  # newer versions of the library warn of a connection that nobody entered
        self._open[human] = socket
        if greet:
            hello = msgspec.json.encode(HELLO).decode() if human else as_msgpack(HELLO)
            assert hello is not None
            socket.send(hello)
            socket.recv(timeout=PATIENCE_S)
        return socket

    def _close(self, human: bool) -> None:
        socket = self._open.pop(human, None)
        if socket is not None:
            with suppress(WebSocketException, OSError):
                socket.close()

    def close(self) -> None:
        """Leave."""
        for human in (False, True):
            self._close(human)

    # Judging

    def _judge(self, answer: dict[str, Any], what: str) -> None:
        for problem in (*answer.get("errors", ()), answer.get("refused") or answer.get("problem") or {}):
            if problem:
                self.counts[f"code {problem['code']}"] += 1
                if problem["code"] == "internal" or "failed inside the engine" in problem["detail"]:
                    self._fault(what, problem["detail"])

    def _fault(self, what: str, text: str) -> None:
        self.faults.append(f"{time.strftime('%X')} {text[:400]} <- {what[:400]}")


def _reply(data: bytes) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins(envelope.decode(data)[0])
    return found
