"""Runs the scripts of vectors: HTTP requests, and messages on streams."""

from __future__ import annotations

import json
import re
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

import httpx
import msgspec
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from gradwire_protocol import envelope

from ..._core.wire import tls
from .matching import differences
from .values import to_values

PATIENCE_S: Final = 60.0
SLOWDOWNS: Final = 5
LONGEST_PAUSE_S: Final = 10
SHOWN: Final = 300
_VARIABLE = re.compile(r"\$\{(\w+)(?:\+(\d+))?\}")


class Mismatch(Exception):
    """The server answered something else. ``lines`` say what."""

    def __init__(self, step: str, lines: list[str]) -> None:
        super().__init__("; ".join(lines))
        self.step = step
        self.lines = lines


@dataclass
class Target:
    """The server under test and what opens it.

    Attributes:
        url: such as ``http://127.0.0.1:8000``.
        keys: API keys by role: ``default``, ``other`` (another tenant's) and ``admin``; those that exist.
        origin: an allowed origin of web pages; empty if there is none.
    """

    url: str
    keys: dict[str, str] = field(default_factory=dict)
    origin: str = ""

    def __post_init__(self) -> None:
        self.url = self.url.rstrip("/")
        verify = tls.context(self.url) if self.url.startswith("https:") else False
        self.http = httpx.Client(base_url=self.url, timeout=PATIENCE_S, verify=verify)

    def __enter__(self) -> Target:
        return self

    def __exit__(self, *_: object) -> None:
        self.http.close()

    def authorization(self, role: str = "default") -> dict[str, str]:
        """The header of a key; none for the role ``none``."""
        return {"Authorization": f"Bearer {self.keys[role]}"} if role != "none" and self.keys.get(role) else {}

    def missing(self, needs: list[str]) -> list[str]:
        """Which of a vector's needs this target cannot meet."""
        met = {*(f"{role}_key" for role in self.keys), *(["origin"] if self.origin else [])}
        return [need for need in needs if not (self.is_plain if need == "plain_key" else need in met)]

    @cached_property
    def is_plain(self) -> bool:
        """Whether the default key lacks the scope ``admin``."""
        return self.request("GET", "/v1/keys", headers=self.authorization()).status_code == 403

    def new_session(self, body: dict[str, Any]) -> str:
        """Start a session and return its id.

        Raises:
            Mismatch: if the server refuses.
        """
        answer = self.request("POST", "/v1/sessions", json=body, headers=self.authorization())
        if answer.status_code != 201:
            raise Mismatch("POST /v1/sessions", [f"the status is {answer.status_code}: {answer.text:.300}"])
        return str(answer.json()["id"])

    def request(self, method: str, path: str, limited: bool = False, **body: Any) -> httpx.Response:
        """Make a request, again where the server asks a key to slow down, unless the limit is what is tested."""
        for _ in range(SLOWDOWNS):
            answer = self.http.request(method, path, **body)
            pause = answer.headers.get("retry-after", "")
            if limited or answer.status_code != 429 or not pause.isdecimal():
                break
            time.sleep(min(int(pause), LONGEST_PAUSE_S))
        return answer

    def end_session(self, session: str) -> None:
        """Delete a session; one that is gone is no error."""
        self.request("DELETE", f"/v1/sessions/{session}", headers=self.authorization())


class Script:
    """One run of a script: its variables and open streams."""

    def __init__(self, target: Target, variables: dict[str, Any]) -> None:
        self.target = target
        self.variables = variables
        self.streams: dict[str, ClientConnection] = {}
        self._opened = ExitStack()
        self.downloads: dict[str, dict[int, bytearray]] = {}

    def run(self, steps: list[dict[str, Any]]) -> None:
        """Take the steps in order, then close the streams.

        Raises:
            Mismatch: naming the step.
        """
        try:
            for number, step in enumerate(steps):
                self.step(step, f"step {number}, {step['do']}")
        finally:
            self.close()

    def step(self, step: dict[str, Any], label: str) -> None:
        """Take one step; streams stay open.

        Raises:
            Mismatch: with the label.
        """
        try:
            lines = getattr(self, f"_{step['do']}")(self.filled(step))
        except (httpx.HTTPError, ConnectionClosed, OSError, ValueError, LookupError, TypeError) as error:
            lines = [f"{type(error).__name__}: {error}"]
        if lines:
            raise Mismatch(label, lines)

    def close(self) -> None:
        """Close the streams."""
        with suppress(ConnectionClosed, OSError):
            self._opened.close()
        self.streams.clear()

    def filled(self, value: Any) -> Any:
        """The value with ``${name}`` and ``${name+number}`` replaced; a text that is nothing else gets the variable's
        type."""
        if isinstance(value, dict):
            return {name: self.filled(each) for name, each in value.items()}
        if isinstance(value, list):
            return [self.filled(each) for each in value]
        if not isinstance(value, str) or "${" not in value:
            return value
        whole = _VARIABLE.fullmatch(value)
        return self._variable(whole) if whole else _VARIABLE.sub(lambda found: str(self._variable(found)), value)

    def _variable(self, found: re.Match[str]) -> Any:
        value = self.variables[found[1]]
        return value + int(found[2]) if found[2] else value

    def _capture(self, step: dict[str, Any], answer: Any) -> None:
        for name, pointer in step.get("capture", {}).items():
            value = answer
            for part in pointer.strip("/").split("/"):
                value = value[int(part)] if isinstance(value, list) else value[part]
            self.variables[name] = value

    # HTTP

    def _request(self, step: dict[str, Any]) -> list[str]:
        headers = self.target.authorization(step.get("key", "default")) | step.get("headers", {})
        content: bytes | None = None
        if "json" in step:
            content = json.dumps(step["json"]).encode()
            headers = {"Content-Type": "application/json"} | headers
        elif "hex" in step:
            content = bytes.fromhex(step["hex"])
        elif "text" in step:
            content = step["text"].encode()
        limited = step["expect"]["status"] == 429
        answer = self.target.request(step["method"], step["path"], limited, content=content, headers=headers)
        return self._answer(step, answer.status_code, dict(answer.headers), answer.content)

    def _answer(self, step: dict[str, Any], status: int, headers: dict[str, str], body: bytes) -> list[str]:
        expected = step["expect"]
        if status != expected["status"]:
            return [f"the status is {status}, expected {expected['status']}: {body[:300].decode(errors='replace')}"]
        named = {name.lower(): value for name, value in headers.items()}
        lines = differences({name.lower(): v for name, v in expected.get("headers", {}).items()}, named, "headers")
        if "hex" in expected and body.hex() != expected["hex"]:
            lines.append(f"the body is {body.hex():.300}, expected {expected['hex']:.300}")
        if "json" in expected or "capture" in step:
            found = json.loads(body)
            lines += differences(expected.get("json", {}), found)
            if not lines:
                self._capture(step, found)
        if "message" in expected:
            message, buffers = opened(body)
            lines += differences(expected["message"], _with_values(message, buffers, {}))
        return lines

    # Streams

    def _connect(self, step: dict[str, Any]) -> list[str]:
        headers = self.target.authorization(step.get("key", "default")) | step.get("headers", {})
        origin = headers.pop("Origin", None)
        secure = self.target.url.startswith("https:")
        status, answer = 101, None
        try:
            opening = connect(
                self.target.url.replace("http", "ws", 1) + step["path"], additional_headers=headers, origin=origin,
                compression=None, max_size=None, ping_interval=None, open_timeout=PATIENCE_S, close_timeout=PATIENCE_S,
                ssl=tls.context(self.target.url) if secure else None,
            )  # fmt: skip
            self.streams[step["stream"]] = self._opened.enter_context(opening)
        except InvalidStatus as refused:
            status, answer = refused.response.status_code, refused.response
        if answer is None or status == 101:
            return [] if step["expect"]["status"] == 101 else ["the stream opened"]
        return self._answer(step, status, dict(answer.headers.raw_items()), bytes(answer.body or b""))

    def _send(self, step: dict[str, Any]) -> list[str]:
        socket = self.streams[step["stream"]]
        if "hex" in step:
            socket.send(bytes.fromhex(step["hex"]))
        elif "text" in step:
            text = step["text"]
            socket.send(text if isinstance(text, str) else json.dumps(text))
        else:
            socket.send(packed(step["message"], [bytes.fromhex(each) for each in step.get("buffers", [])]))
        return []

    def _receive(self, step: dict[str, Any]) -> list[str]:
        socket = self.streams[step["stream"]]
        expected = step["message"]
        downloads = self.downloads.setdefault(step["stream"], {})
        while True:
            data = socket.recv(PATIENCE_S)
            message, buffers = (json.loads(data), []) if isinstance(data, str) else opened(data)
            if not isinstance(message, dict):
                return [f"the message is no object: {data[:SHOWN]!r}"]
            if message.get("type") == "chunk":
                whole = downloads.setdefault(message["transfer"], bytearray(message["total"]))
                at = message["offset"]
                whole[at : at + len(buffers[0])] = buffers[0]
            if message.get("type") != "chunk" or expected.get("type") == "chunk":
                break
        message = _with_values(message, buffers, downloads)
        lines = differences(expected, message)
        if not lines:
            self._capture(step, message)
        return lines

    def _closed(self, step: dict[str, Any]) -> list[str]:
        socket = self.streams[step["stream"]]
        try:
            data = socket.recv(PATIENCE_S)
        except ConnectionClosed as closed:
            code = closed.rcvd.code if closed.rcvd is not None else 1006
            return [] if code == step["code"] else [f"the stream closed with {code}, expected {step['code']}"]
        shown = data if isinstance(data, str) else json.dumps(opened(data)[0])
        return [f"a message came instead of the close with {step['code']}: {shown:.300}"]

    def _close(self, step: dict[str, Any]) -> list[str]:
        self.streams.pop(step["stream"]).close()
        return []


def packed(message: dict[str, Any], buffers: list[bytes]) -> bytes:
    """The bytes of a message in the form that vectors have: ``hash`` is hexadecimal."""
    header = dict(message)
    if "hash" in header:
        header["hash"] = bytes.fromhex(header["hash"])
    if buffers:
        header["buffers"] = [len(each) for each in buffers]
    encoded = msgspec.msgpack.encode(header)
    whole = len(encoded).to_bytes(4, "little") + encoded
    for each in buffers:
        whole += bytes(-len(whole) % envelope.ALIGNMENT) + each
    return whole


def opened(data: bytes) -> tuple[dict[str, Any], list[bytes]]:
    """The header and the buffers of a message.

    Raises:
        MalformedFrame: which is a ``ValueError``: for bytes that are not one.
    """
    _, buffers = envelope.decode(data)
    header: dict[str, Any] = msgspec.msgpack.decode(envelope.header_of(data))
    return header, [bytes(each) for each in buffers]


def _with_values(message: dict[str, Any], buffers: list[bytes], downloads: dict[int, bytearray]) -> dict[str, Any]:
    """The message with values as nested lists, wherever they were."""
    for value in message.get("values", []):
        data = None
        if "buffer" in value:
            data = buffers[value["buffer"]]
        elif "download" in value:
            data = bytes(downloads[value["download"]])
        if data is not None:
            value["values"] = to_values(data, value["dtype"], value.get("shape", []))
    return message
