"""100,000 hostile frames, endless requests and bombs against one server: no 500, bounded memory, neighbours unharmed.

The frames are those of a real training step with parts exchanged, cut off, repeated or enlarged, and random bytes;
separate processes send them over streams and as JSON over REST. Other requests have endless heads and bodies,
compressed bodies and deep JSON, or request much and never read. Meanwhile another session trains, and its weights
equal to the bit those of a run that had the server to itself.
"""

from __future__ import annotations

import itertools
import multiprocessing
import random
import socket
import statistics
import struct
import threading
import time
import zlib
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import suppress
from typing import Any

import httpx
import msgspec
from websockets.exceptions import ConnectionClosed, WebSocketException
from websockets.sync.client import ClientConnection, connect

from gradwire_protocol import envelope
from gradwire_protocol.frames import PROTOCOL_VERSION, Hello
from gradwire_protocol.table import TABLE
from gradwire_server.workers.pool import LINGER_S
from tests.live_server import API_KEY, OTHER_KEY, LiveServer, server_process
from tests.server.exchange import binary, frame

from . import Figures, enough, progress, yield_processor
from .crowd import one_run
from .probes import resident, resident_alone

SECONDS = 360.0
FRAMES = 100_000
SLICE = 1000
"""Frames of one seed. Slices go to the senders one after the other, and each begins with a session of its own."""
REST_EVERY = 20
"""Every so many slices one goes over REST."""
SENDERS = 2
STREAMS = 4
"""Streams of a sender. Each has a frame under way, so that neither side waits for the other."""
MOST_DAMAGED = 0.02
"""The share of frames on streams that are bytes rather than frames: most of those end their stream."""
NEIGHBOUR_EVERY_S = 2.0
OTHERS_EVERY_S = 4.0
SAMPLE_S = 0.2
ANSWER_PATIENCE_S = 60.0

MOST_GROWTH = 500 << 20
"""Bytes by which the server may grow: what its limits allow these sessions, and no more."""
MOST_LEFT = 100 << 20
"""What may be left when the sessions are gone: caches of rules and shapes, and pieces between what was freed. A worker
keeps more of what it had, and is ended when its key has had no session for a while: from then on this holds for the
server together with the workers that are left."""
AFTERWARDS_S = 3.0
WORKERS_S = LINGER_S + 5.0
"""The same where sessions run in worker processes."""
MOST_SLOPE = 1.15
"""The usual memory of the last quarter against that of the second."""
SESSION_LIMITS = {
    "max_tensor_bytes": 8 << 20, "max_session_bytes": 32 << 20, "max_read_bytes": 16 << 20, "max_tensors": 10_000,
    "max_graph_nodes": 10_000, "max_op_work": 100_000_000, "max_frame_seconds": 5,
}  # fmt: skip
NAMES = sorted(TABLE)
HUGE = (1 << 62, 1 << 63, (1 << 64) - 1, -(1 << 63), 1 << 40, -1, 0, 1e308, -0.0, float("nan"))

OPS: list[list[Any]] = [
    ["upload", ["payload", "float32", [4, 4]]], ["requires_grad_", [0]], ["randn", [[4, 4]]], ["matmul", [0, 1]],
    ["relu", [2]], ["softmax", [3, -1]], ["mul", [4, "float"]], ["sum", [5]], ["backward", [[6], [None]]],
    ["grad_of", [0]], ["mul_", [1, "float"]], ["cat", [[1, 2], 0]], ["expand", [6, [3, 3]]], ["slice", [2, 0, 0, 2, 1]],
    ["conv1d", [9, 9]], ["set_name", [0, "weights"]], ["by_name", ["weights"]],
]  # fmt: skip


def anything(rng: random.Random, depth: int = 0) -> Any:
    """A value as an argument might be, or might not."""
    kind = rng.randrange(9 if depth < 3 else 6)
    if kind == 0:
        return rng.randint(-8, 20)
    if kind == 1:
        return rng.choice(HUGE)
    if kind == 2:
        return rng.choice(("float", "int", "bool", "payload", "float32", "cpu", "cuda", "sum", "", "é" * 40))
    if kind == 3:
        return rng.choice((None, True, False))
    if kind == 4:
        return rng.random() * 10 - 5
    if kind == 5:
        return rng.choice(NAMES)
    if kind == 6:
        return {"a": anything(rng, depth + 1)}
    return [anything(rng, depth + 1) for _ in range(rng.randrange(5))]


def mutated(rng: random.Random, value: Any) -> Any:
    """The value with one part of it exchanged, removed, repeated or moved."""
    if not isinstance(value, list) or not value or rng.random() < 0.15:
        return anything(rng)
    made = list(value)
    at = rng.randrange(len(made))
    how = rng.randrange(6)
    if how == 0:
        del made[at]
    elif how == 1:
        made.insert(at, anything(rng))
    elif how == 2:
        made.append(made[at])
    elif how == 3:
        other = rng.randrange(len(made))
        made[at], made[other] = made[other], made[at]
    else:
        made[at] = mutated(rng, made[at])
    return made


def hostile_frame(rng: random.Random) -> dict[str, Any]:
    """The parts of a frame, few of which make sense together."""
    ops: Any = [list(op) for op in OPS[: rng.randrange(1, len(OPS) + 1)]]
    for _ in range(rng.randrange(4)):
        at = rng.randrange(len(ops))
        ops[at] = mutated(rng, ops[at]) if rng.random() < 0.7 else [rng.choice(NAMES), mutated(rng, ops[at][-1])]
        if not (isinstance(ops[at], list) and ops[at]):
            ops[at] = ["neg", [0]]
    parts: dict[str, Any] = {"ops": ops, "reads": [rng.randrange(-3, 14) for _ in range(rng.randrange(3))]}
    parts["scalars"] = [rng.choice((0.5, 2, *HUGE[:6])) for _ in range(rng.randrange(4))]
    parts["external"] = [rng.choice((1, 2, 1 << 32, (1 << 53) - 1, 0, -1)) for _ in range(rng.randrange(3))]
    parts["releases"] = [rng.randrange(1, 1 << 33) for _ in range(rng.randrange(3))]
    return parts


class Attack:
    """Counts what came of it. Any answer that says the server is at fault is kept."""

    def __init__(self, server: LiveServer) -> None:
        self.server = server
        self.counts: Counter[str] = Counter()
        self.faults: list[str] = []
        self.done = threading.Event()
        self._lock = threading.Lock()

    def count(self, what: str, number: int = 1) -> None:
        with self._lock:
            self.counts[what] += number

    def fault(self, text: str) -> None:
        with self._lock:
            self.faults.append(text[:600])

    def session(self, http: httpx.Client) -> str:
        response = http.post("/v1/sessions", json={"limits": SESSION_LIMITS})
        assert response.status_code == 201, response.text
        return str(response.headers["location"])

    def judge(self, answer: Any, sent: Any) -> None:
        """An error that is called internal is one."""
        problems = [*answer.get("errors", ()), answer.get("refused") or answer.get("problem") or {}]
        for problem in problems:
            self.count(f"code {problem.get('code', '')}" if problem else "frames that were applied")
            if problem.get("code") == "internal":
                self.fault(f"{problem.get('detail')} <- {sent!r}")

    def over_rest(self, rng: random.Random, frames: int, end: float) -> None:
        with self.server.http() as http:
            path = self.session(http)
            for _ in range(frames):
                if time.time() > end:
                    break
                parts = hostile_frame(rng)
                body = frame(parts.pop("ops"), parts.pop("reads"), payloads=[{"values": [[1.0] * 4] * 4}], **parts)
                content = msgspec.json.encode(body)
                if rng.random() < 0.3:
                    content = damaged(rng, content)
                response = http.post(f"{path}/frames", content=content, headers={"Content-Type": "application/json"})
                self.count("frames over REST")
                if response.status_code >= 500 and response.status_code not in (503, 507):
                    self.fault(f"{response.status_code} {response.text} <- {content!r}")
                elif response.status_code == 200:
                    self.judge(response.json(), body)
            http.delete(path)

    def over_streams(self, rng: random.Random, frames: int, end: float) -> None:
        """Frames on some streams in turn; one that the server has had enough of is opened again."""
        with self.server.http() as http:
            path = self.session(http)
            url = self.server.stream_url + path.rsplit("/", 1)[-1] + "/stream"
            speakers: list[_Speaker | None] = [None] * STREAMS
            while self.counts["frames over streams"] < frames and time.time() < end:
                for i, speaker in enumerate(speakers):
                    if speaker is None:
                        speaker = speakers[i] = _Speaker(
                            connect(url, additional_headers=self.server.headers, max_size=1 << 26, compression=None)
                        )
                    speaker.say(rng)
                    self.count("frames over streams")
                for i, speaker in enumerate(speakers):
                    if speaker is not None and not self.hear(speaker):
                        speaker.close()
                        speakers[i] = None
            for speaker in speakers:
                if speaker is not None:
                    speaker.close()
            http.delete(path)

    def hear(self, peer: _Speaker) -> bool:
        """Take the answer to what was said last; whether the stream goes on."""
        try:
            data = peer.socket.recv(timeout=ANSWER_PATIENCE_S)
        except ConnectionClosed as closed:
            code = closed.rcvd.code if closed.rcvd is not None else 0
            self.count(f"streams closed with {code}")
            if code == 1011:
                self.fault(f"a stream ended with 1011 <- {peer.last!r}")
            return False
        except TimeoutError:
            self.fault(f"no answer in {ANSWER_PATIENCE_S:.0f} s <- {peer.last!r}")
            return False
        answer, _ = envelope.decode(_bytes(data))
        told = msgspec.to_builtins(answer)
        self.judge(told, peer.last)
        if told.get("type") != "reply":
            self.count("streams closed with a refusal")
            return False
        peer.seq += told.get("refused") is None
        return True

    # Connections

    def raw(self) -> socket.socket:
        host, port = self.server.url.removeprefix("http://").split(":")
        return socket.create_connection((host, int(port)), 10)

    def slow_heads(self, rng: random.Random) -> None:
        """Slow-loris: many connections, a header now and then."""
        held = [self.raw() for _ in range(20)]
        for _ in range(3):
            for each in held:
                with suppress(OSError):
                    each.sendall(
                        b"GET /livez HTTP/1.1\r\n" if rng.random() < 0.3 else b"X-%d: y\r\n" % rng.randrange(99)
                    )
            time.sleep(0.2)
        for each in held:
            each.close()
        self.count("connections with slow heads", len(held))

    def endless_body(self, rng: random.Random) -> None:
        path = rng.choice(("/v1/sessions", "/v1/sessions/s_none/frames"))
        with self.raw() as each, suppress(OSError):
            key = next(iter(self.server.headers.values()))
            each.sendall(
                f"POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: {key}\r\nContent-Type: application/json\r\n"
                "Transfer-Encoding: chunked\r\n\r\n".encode()
            )
            for _ in range(600):  # 60 MB, if it were let
                each.sendall(b"186a0\r\n" + b" " * 100_000 + b"\r\n")
        self.count("bodies without end")

    def bombs(self, rng: random.Random) -> None:
        deep = rng.choice((b"[", b'{"a":', b'{"structure":{"ops":[')) * 200_000
        many = struct.pack("<Q", rng.choice((1 << 62, 100, (1 << 64) - 1))) + b"{" * 100
        shape = {"Gradwire-Dtype": "float64", "Gradwire-Shape": "9999999999,99999999"}
        bodies = [
            (zlib.compress(bytes(1 << 24), 9), {"Content-Encoding": "deflate", "Content-Type": "application/json"}),
            (deep, {"Content-Type": "application/json"}),
            (many, {"Content-Type": "application/safetensors"}),
            (b"", {"Content-Type": "application/octet-stream", **shape}),
        ]
        with self.server.http() as http:
            path = self.session(http)
            for body, headers in bodies:
                for method, route in (
                    ("POST", "/v1/sessions"),
                    ("POST", f"{path}/frames"),
                    ("PUT", f"{path}/tensors/1"),
                ):
                    response = http.request(method, route, content=body, headers=headers)
                    if response.status_code >= 500:
                        self.fault(f"{response.status_code} {response.text} <- {headers}")
                    self.count("bombs")
                    if response.status_code == 201:  # a session needs no body
                        http.delete(response.headers["location"])
            http.delete(path)

    def deaf_stream(self, rng: random.Random) -> None:
        """Asks for 8 MB again and again, and never reads."""
        with self.server.http() as http:
            path = self.session(http)
            url = self.server.stream_url + path.rsplit("/", 1)[-1] + "/stream"
            with suppress(WebSocketException, OSError), connect(url, additional_headers=self.server.headers) as peer:
                peer.send(envelope.join(envelope.encode(Hello(version=PROTOCOL_VERSION), [])))
                peer.recv(timeout=20)
                peer.socket.settimeout(0.5)
                for seq in range(1, 60):
                    data = envelope.join(
                        envelope.encode(binary(seq, [["ones", [[1 << 20]]]], [0], first=(2 << 32) + seq), [])
                    )
                    peer.socket.sendall(_masked(data))
                    self.count("large values that nobody read")
                time.sleep(1)
                peer.socket.shutdown(socket.SHUT_RDWR)
            http.delete(path)

    def keep_on(self, what: Callable[[random.Random], None], seed: int) -> None:
        rng = random.Random(seed)
        while not self.done.is_set():
            try:
                what(rng)
            except httpx.TransportError:
                self.count("requests cut off by the server")
            self.done.wait(OTHERS_EVERY_S)


def _bytes(data: str | bytes) -> bytes:
    """What was received, which is never text where no text was sent."""
    assert isinstance(data, bytes), data
    return data


class _Speaker:
    """A stream to say hostile frames on. ``last`` is what was said."""

    def __init__(self, socket_: ClientConnection) -> None:
        self.socket = socket_
        socket_.send(envelope.join(envelope.encode(Hello(version=PROTOCOL_VERSION), [])))
        welcome, _ = envelope.decode(_bytes(socket_.recv(timeout=20)))
        self.client, self.seq = welcome.client, welcome.expected
        self.last = b""

    def say(self, rng: random.Random) -> None:
        parts = hostile_frame(rng)
        first = (self.client << 32) + self.seq * 10_000
        parts["releases"] += range(first - 10_000, first - 10_000 + len(OPS))  # else the session is full before long
        message = binary(self.seq, parts.pop("ops"), parts.pop("reads"), first=first, **parts)
        data = envelope.join(envelope.encode(message, [bytes(64)]))
        if rng.random() < MOST_DAMAGED:
            data = damaged(rng, data) if rng.random() < 0.8 else rng.randbytes(rng.randrange(1, 300))
        self.last = data
        with suppress(ConnectionClosed):  # it is noticed when the answer is waited for
            self.socket.send(data)

    def close(self) -> None:
        with suppress(WebSocketException, OSError):
            self.socket.close()


def _masked(data: bytes) -> bytes:
    """A WebSocket message of a client, under the mask 0."""
    size = struct.pack("!BBH", 0x82, 0xFE, len(data)) if len(data) > 125 else bytes([0x82, 0x80 | len(data)])
    return size + bytes(4) + data


def damaged(rng: random.Random, data: bytes) -> bytes:
    """The bytes with a few changed, cut off or put in."""
    made = bytearray(data)
    for _ in range(rng.randrange(1, 4)):
        at = rng.randrange(len(made) + 1)
        how = rng.randrange(3)
        if how == 0 and at < len(made):
            made[at] = rng.randrange(256)
        elif how == 1:
            del made[at : at + rng.randrange(1, 20)]
        else:
            made[at:at] = rng.randbytes(rng.randrange(1, 12))
    return bytes(made)


def send(url: str, number: int, frames: int, end: float) -> tuple[Counter[str], list[str]]:
    """One slice of the frames, in a process of its own: what came of it, and the server's faults."""
    attack, rng = Attack(LiveServer(url, API_KEY, OTHER_KEY)), random.Random(number)
    (attack.over_rest if number % REST_EVERY == 0 else attack.over_streams)(rng, frames, end)
    return attack.counts, attack.faults


class Neighbour:
    """Trains again and again in a session of its own."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.alone = one_run(url)
        self.ends: list[str] = []
        self.failure = ""

    def keep_on(self, done: threading.Event) -> None:
        yield_processor()
        while not done.wait(NEIGHBOUR_EVERY_S):
            try:
                self.ends.append(one_run(self.url))
            except Exception as error:  # whatever it is, the claim does not hold
                self.failure = f"{type(error).__name__}: {error}"
                return


def quarters(samples: list[int]) -> list[list[int]]:
    """The samples in four parts of the same length."""
    at = [len(samples) * i // 4 for i in range(5)]
    return [samples[a:b] for a, b in itertools.pairwise(at)]


def run(most_seconds: float = SECONDS, frames: int = FRAMES) -> Figures:
    """Attack until as many frames were sent. It does not hold when they were not sent in time."""
    settings = {
        "head_patience_s": 1.0,
        "min_body_rate": 100_000,
        "max_json_bytes": 4 << 20,
        "max_sessions": 200,
        "log_level": "error",
    }
    spawning = multiprocessing.get_context("spawn")
    with server_process(**settings) as server, ProcessPoolExecutor(SENDERS, spawning) as pool:
        pid = server.pid
        neighbour, attack = Neighbour(server.url), Attack(server)
        before, before_alone = resident(pid), resident_alone(pid)
        has_workers = before > before_alone
        memory: list[int] = []
        others = [attack.slow_heads, attack.endless_body, attack.bombs, attack.deaf_stream]
        beside = [threading.Thread(target=attack.keep_on, args=(each, i)) for i, each in enumerate(others)]
        beside.append(threading.Thread(target=neighbour.keep_on, args=(attack.done,)))
        began, end = time.monotonic(), time.time() + most_seconds
        sizes = [min(SLICE, frames - at) for at in range(0, frames, SLICE)]
        slices: list[Future[tuple[Counter[str], list[str]]]] = [
            pool.submit(send, server.url, number, size, end) for number, size in enumerate(sizes, 1)
        ]
        for thread in beside:
            thread.start()
        try:
            while not all(each.done() for each in slices):
                memory.append(resident(pid))
                progress(f"{sum(each.done() for each in slices) * SLICE:,} frames, {memory[-1] >> 20} MB")
                time.sleep(SAMPLE_S)
            took = time.monotonic() - began
        finally:
            attack.done.set()
            pool.shutdown(cancel_futures=True)
            for thread in beside:
                thread.join(60)
        for each in slices:
            counts, faults = each.result()
            attack.counts += counts
            attack.faults += faults
        with server.http() as http:
            assert http.get("/readyz").status_code == 200
            for each in http.get("/v1/sessions").json()["sessions"]:  # of what was cut off
                http.delete(f"/v1/sessions/{each['id']}")
        time.sleep(WORKERS_S if has_workers else AFTERWARDS_S)
        after, after_alone = resident(pid), resident_alone(pid)
        sent = sum(n for what, n in attack.counts.items() if what.startswith("frames over"))
        parts = quarters(memory)
        usual = [int(statistics.median(part)) for part in parts]
        assert not attack.faults, f"{len(attack.faults)} faults, the first: {attack.faults[0]}"
        assert server.alive, "the server died"
        assert not neighbour.failure, f"the neighbour failed: {neighbour.failure}"
        assert set(neighbour.ends) == {neighbour.alone}, "the neighbour's weights are not those of a run alone"
        grown = max(memory) - before
        told = f"before {before >> 20} MB, in quarters usually {[n >> 20 for n in usual]} MB"
        assert grown < MOST_GROWTH, f"the server grew by {grown:,} bytes: {told}"
        left = max(after - before, after_alone - before_alone)
        assert left < MOST_LEFT, f"{left:,} bytes are left without a session: {told}"
        assert usual[3] < MOST_SLOPE * usual[1], f"the server grows on and on: {told}"
        enough(sent, frames, "frames")
    return {
        **dict(sorted(attack.counts.items())),
        "kinds of errors": sum(what.startswith("code ") for what in attack.counts),
        "frames a second": round(sent / took),
        "training runs of the neighbour": len(neighbour.ends),
        "memory before (MB)": before >> 20, "without a session, after (MB)": after >> 20,
        "the server itself, before (MB)": before_alone >> 20, "without a session (MB)": after_alone >> 20,
        "memory in quarters, usual (MB)": " ".join(str(n >> 20) for n in usual),
        "memory in quarters, at most (MB)": " ".join(str(max(part) >> 20) for part in parts),
    }  # fmt: skip
