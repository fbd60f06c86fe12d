"""Client programs as the messages they send, and a session's answers, recorded without a server.

``python -m tests.engine.recordings FILE`` applies a recording in its own process and prints a digest of the answers.
"""

from __future__ import annotations

import gc
import hashlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from gradwire_engine.session.session import Session
from gradwire_engine.snapshot import Image, NotImageable, restore, take
from gradwire_protocol import envelope
from gradwire_protocol.frames import PROTOCOL_VERSION, Chunk, Frame, Hello, Problem, Welcome

SEED = 3


def new_session() -> Session:
    return Session(seed=SEED)


@dataclass
class Recording:
    """What arrived at a session, message by message: a hello, chunks and frames, encoded."""

    messages: list[bytes] = field(default_factory=list)
    client: int = 0

    def apply_to(self, session: Session, message: bytes, failures: dict[int, Problem] | None = None) -> bytes:
        """Hand a message to a session; the answer as it travels."""
        found, buffers = envelope.decode(message)
        if isinstance(found, Hello):
            number, expected, epoch = session.join(found.client, found.instance, found.epoch)
            welcome = Welcome(PROTOCOL_VERSION, number, expected, epoch=epoch)
            return envelope.join(envelope.encode(welcome))
        if isinstance(found, Chunk):
            session.add_chunk(self.client, found.transfer, found.offset, found.total, buffers[0])
            return b""
        assert isinstance(found, Frame)
        found.timed = False  # times are of the moment
        reply, out = session.apply(found.spelled_out(), buffers, failures=failures)
        return envelope.join(envelope.encode(reply, out))

    def take_in(self, session: Session, message: bytes) -> bytes:
        self.messages.append(message)
        answer = self.apply_to(session, message)
        found = envelope.decode(answer)[0] if answer else None
        if isinstance(found, Welcome):
            self.client = found.client
        return answer

    def replayed(self, session: Session) -> list[bytes]:
        return [self.apply_to(session, message) for message in self.messages]


class _Line:
    """Stands in for the client's connection: what is sent is applied at once."""

    def __init__(self, session: Session, recording: Recording, hello: Hello) -> None:
        self.session, self.recording = session, recording
        self.heartbeat = self.redirect = None
        self.direct = False
        self.sent_bytes = self.received_bytes = 0
        self.arrived: list[Any] = []
        self.send(envelope.join(envelope.encode(hello)))
        (self.welcome, _), *_ = self.receive(None)

    def send(self, data: bytes, wait: Any = None) -> None:
        answer = self.recording.take_in(self.session, bytes(data))
        if answer:
            self.arrived.append(envelope.decode(answer))

    def receive(self, timeout: float | None, most_missed: int = 0, awake: bool = False, wait: Any = None) -> list[Any]:
        arrived, self.arrived = self.arrived, []
        return arrived

    def close(self) -> None:
        self.arrived.clear()

    drop = close


@contextmanager
def recording() -> Iterator[tuple[Recording, Session]]:
    """While it is open, the client computes in a new session of this process, and every message is kept."""
    from gradwire._core.session.session import Session as Client

    made, engine = Recording(), new_session()

    def connect(
        url: str, session: str, key: str | None, hello: Hello, heartbeat: float, spin: float, **direct: Any
    ) -> _Line:
        return _Line(engine, made, hello)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gradwire._core.wire.dialer.Connection", connect)
        patch.setattr("gradwire.Session._send_quietly", lambda self: None)  # frames end where the program says,
        patch.setattr("gradwire._core.session.pieces.FIRST", sys.maxsize)  # also those that it sends for the first time
        client = Client("http://127.0.0.1:9", "recorded", None)
        patch.setattr("gradwire._core.session.current_session._current", client)
        yield made, engine
        client.synchronize()
        client.leave()


def record(program: Callable[[], Any]) -> Recording:
    """Run a program of the client and keep what it sent."""
    with recording() as (made, _):
        program()
    return made


def travelled(image: Image) -> Image:
    """The image after it was written and read: facts as JSON, arrays copied."""
    facts = msgspec.json.decode(msgspec.json.encode(image.facts))
    return Image(facts, {name: array.copy() for name, array in image.arrays.items()})


@contextmanager
def little_to_collect() -> Iterator[None]:
    """While it is open, garbage collections look at what was made inside only, and so are quick."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def looks(session: Session) -> dict[str, Any]:
    """All that can be seen of a session from outside and some that cannot."""
    gc.collect()  # what the program dropped in cycles is in no image
    engine = session.engine
    seen = session.describe()
    seen["memory"] = {name: n for name, n in seen["memory"].items() if name not in ("peak_bytes", "pooled_bytes")}
    return seen | {
        "tensors": session.tensors(peek=True), "seq": engine._seq, "random": engine.generator.get_state(),
        "clients": {n: (c.expected, c.counter, c.instance, c.epoch, c.reply_bytes) for n, c in session.clients.items()},
        "structures": list(session.structures), "uploads": {key: n for key, (_, n) in session.uploads.items()},
    }  # fmt: skip


def cut_everywhere(recorded: Recording) -> tuple[int, int]:
    """Apply a recording to one session from beginning to end, and to one that is taken and restored before every
    message: each answer is the same, and so is all that can be seen. Returns how often it was cut, and how often
    something transient forbade it."""
    whole, cut = new_session(), new_session()
    cuts = refused = 0
    for i, message in enumerate(recorded.messages):
        try:
            image = travelled(take(cut))
            cut = restore(image)
            taken = take(cut)
            assert msgspec.json.encode(taken.facts) == msgspec.json.encode(image.facts)
            assert all(np.array_equal(taken.arrays[name], array) for name, array in image.arrays.items())
            cuts += 1
        except NotImageable:
            refused += 1
        assert looks(cut) == looks(whole), f"before message {i}"
        expected, actual = recorded.apply_to(whole, message), recorded.apply_to(cut, message)
        assert actual == expected, f"message {i}: {envelope.decode(message)[0]!r:.2000}"
    return cuts, refused


def digest(answers: list[bytes]) -> str:
    return hashlib.blake2b(b"".join(answers), digest_size=16).hexdigest()


def main() -> None:
    messages, client = msgspec.msgpack.decode(Path(sys.argv[1]).read_bytes(), type=tuple[list[bytes], int])
    print(digest(Recording(messages, client).replayed(new_session())))


if __name__ == "__main__":
    main()
