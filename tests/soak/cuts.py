"""A connection cut at every byte of a training run, in both directions: the same bits, every frame applied once.

The run uses the server's random numbers, uploads inside frames and in chunks, dropout, Adam, frames sent whole and by
hash, reads, and a download in chunks. It is recorded once without a cut. Then it is repeated for each byte of the
connection, which is closed or reset (alternately) at that byte.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal
from unittest.mock import patch
from urllib.parse import urlsplit

import gradwire
from gradwire._core.session import current_session, opened
from gradwire._core.wire.rest import RestClient
from tests.cutting_relay import Cut, CuttingRelay, cutting_relay
from tests.live_server import LiveServer, live_server
from tests.training_run import End, train

from . import Figures, progress

SECONDS = 3600.0
STEPS = 4
CHUNK_BYTES = 512
"""Of uploads; half of it for downloads. The inputs go up in two pieces, the weights come down in three."""


@dataclass(frozen=True)
class Outcome:
    """What a run ends with, and what it took."""

    end: End
    sent: int
    applied: int
    reconnects: int


class Cutter:
    """A server behind a relay, and the training run that is cut."""

    def __init__(self, server: LiveServer, relay: CuttingRelay) -> None:
        self.key = server.api_key
        self.relay = relay
        self.rest = RestClient(server.url, server.api_key)  # past the relay: only the stream is cut
        self.url = f"http://127.0.0.1:{relay.port}"

    def run(self, cuts: list[Cut | None], patience: float = 60.0, heartbeat: float = 15.0) -> Outcome:
        """Train in a new session, over connections that are cut like this."""
        self.relay.plan(cuts)
        made = self.rest.post("/v1/sessions", {"seed": 11})["id"]
        before = current_session._current
        session = gradwire.connect(self.url, self.key, session=made, patience=patience, heartbeat=heartbeat)
        try:
            with session.lock:  # frames are cut by the program alone, never because it was quiet for a moment
                end = train(STEPS)
                applied = self.rest.get(f"/v1/sessions/{made}")["contents"]["frames_applied"]
                return Outcome(end, session.frames, applied, session.stats()["reconnects"])
        finally:
            current_session._current = before
            session.link.close()
            session.close()
            opened.OPENED.remove(session)
            self.rest.delete(f"/v1/sessions/{made}")


@contextmanager
def cutter(session_host: Literal["inline", "process"] = "inline") -> Iterator[Cutter]:
    """A server in this process, with chunks so small that a small run has some; its sessions here or in a worker."""
    with (
        patch("gradwire._core.wire.frame_encoder.CHUNK_BYTES", CHUNK_BYTES),
        patch("gradwire._core.wire.retry.FIRST_PAUSE_S", 0.002),
        patch("gradwire_server.websocket.sender.CHUNK_BYTES", CHUNK_BYTES // 2),
        patch("gradwire_server.websocket.sender.INLINE_BYTES", CHUNK_BYTES // 2),
        live_server(max_sessions=100_000, session_host=session_host) as server,
    ):
        port = urlsplit(server.url).port
        assert port is not None
        with cutting_relay(port) as relay:
            yield Cutter(server, relay)


def places(up: int, down: int) -> list[Cut]:
    """A cut at every byte of a connection over which so many bytes went."""
    ways: tuple[tuple[Literal["up", "down"], int], ...] = (("up", up), ("down", down))
    return [Cut(at, way, "rst" if at % 2 else "fin") for way, count in ways for at in range(count + 1)]


def check(uncut: Outcome, found: Outcome, cut: Cut) -> None:
    """The claim, for one cut."""
    assert found.end.weights == uncut.end.weights, f"other weights after {cut}"
    assert found.end.losses == uncut.end.losses, f"other losses after {cut}"
    assert found.applied == found.sent == uncut.sent, f"{found.sent} frames sent, {found.applied} applied, {cut}"


def run(most_seconds: float) -> Figures:
    with cutter() as ground:
        uncut = ground.run([])
        passed = ground.relay.passed[0]
        assert uncut.reconnects == 0
        assert uncut.applied == uncut.sent
        cuts = places(passed.up, passed.down)
        began, reconnected, done = time.monotonic(), 0, 0
        for cut in cuts:
            found = ground.run([cut])
            check(uncut, found, cut)
            reconnected += found.reconnects
            done += 1
            if done % 50 == 0:
                progress(f"{done:,} of {len(cuts):,} cuts")
                assert time.monotonic() - began < most_seconds, f"only {done} of {len(cuts)} cuts in the time given"
        seconds = time.monotonic() - began
    return {
        "bytes up": passed.up,
        "bytes down": passed.down,
        "frames of the run": uncut.sent,
        "cuts": done,
        "resumed": reconnected,
        "ms a cut": round(seconds / done * 1e3, 1),
    }
