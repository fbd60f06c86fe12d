"""A server killed -9 at random points of a training run, and restarted: the same bits, nothing acknowledged is lost.

The server has a data directory. It is killed while the program records, while frames travel, while it applies,
journals and answers, and while it recovers from the previous kill. The program does not notice. Both kinds of
durability are tested; ``applied`` guarantees to survive the end of the process, and so does ``durable``.
"""

from __future__ import annotations

import json
import os
import random
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any
from unittest.mock import patch

import gradwire
from gradwire._core.session import current_session, opened
from tests.live_server import API_KEY, ROOT, SOURCES
from tests.training_run import End, train

from . import Figures, progress

SECONDS = 2400.0
KILLS = 200
KILLS_A_RUN = 20
STEPS = 200
JOURNAL_BYTES = 1 << 20
"""Small, so that the journal is compacted several times in a run."""


class MortalServer:
    """A server process with a data directory, which is killed and started again on the same port."""

    def __init__(self, data: Path, **settings: Any) -> None:
        with socket.create_server(("127.0.0.1", 0)) as found:
            self.port = found.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        settings = {"api_keys": API_KEY, "log_level": "error", "data_dir": data, **settings}
        self._environment = {
            **os.environ, **{f"GRADWIRE_{name.upper()}": str(value) for name, value in settings.items()},
            "PYTHONPATH": SOURCES,
        }  # fmt: skip
        self._process: subprocess.Popen[str] | None = None
        self.start()

    def start(self) -> None:
        command = [sys.executable, "-m", "gradwire_server", "--port", str(self.port), "--announce"]
        self._process = subprocess.Popen(
            command, env=self._environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, cwd=ROOT
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, f"the server did not start: exit code {self._process.wait(10)}"
        assert json.loads(line)["url"] == self.url

    def kill(self) -> None:
        """At once, and without a chance to write anything."""
        process = self._process
        if process is not None:
            process.kill()
            process.wait(30)
            assert process.stdout is not None
            process.stdout.close()
        self._process = None


class Killer(threading.Thread):
    """Kills the server when the program has sent so many frames, and starts it again; some starts are killed, too."""

    def __init__(
        self, server: MortalServer, session: gradwire.Session, frames: list[int], seed: int, again: float
    ) -> None:
        super().__init__(name="killer", daemon=True)
        self.server = server
        self.session = session
        self.frames = frames
        self.again = again
        self.kills = 0
        self.failure: BaseException | None = None
        self.done = threading.Event()
        self._chance = random.Random(seed)

    def run(self) -> None:
        try:
            for at in self.frames:
                while self.session.frames < at and not self.done.is_set():
                    time.sleep(0.0005)
                if self.done.is_set():
                    return
                time.sleep(self._chance.uniform(0, 0.01))
                self.server.kill()
                self.kills += 1
                self.server.start()
                while self._chance.random() < self.again:  # while it recovers
                    time.sleep(self._chance.uniform(0, 0.1))
                    self.server.kill()
                    self.kills += 1
                    self.server.start()
        except BaseException as error:
            self.failure = error


def undisturbed(server: MortalServer, steps: int) -> tuple[End, int]:
    """The end of a run that nobody disturbs, and the frames it takes."""
    end, session = _train(server, "none", steps, None)
    return end, session.frames


def disturbed(
    server: MortalServer, durability: str, steps: int, frames: list[int], seed: int, again: float = 0.2
) -> tuple[End, Figures]:
    """A run during which the server is killed when so many frames were sent: its end, and what happened.

    ``again`` is how likely it is killed a second time while it recovers.
    """
    killers: list[Killer] = []

    def threaten(session: gradwire.Session) -> Killer:
        killers.append(Killer(server, session, frames, seed, again))
        return killers[0]

    end, session = _train(server, durability, steps, threaten)
    stats = session.stats()
    return end, {"kills": killers[0].kills, "resumed": stats["reconnects"], "frames sent again": stats["resent"]}


def _train(server: MortalServer, durability: str, steps: int, threaten: Any) -> tuple[End, gradwire.Session]:
    before = current_session._current
    session = gradwire.connect(server.url, API_KEY, seed=5, durability=durability, patience=120)
    killer = None if threaten is None else threaten(session)
    try:
        assert session.durability == durability
        if killer is not None:
            killer.start()
        with session.lock:  # frames are cut by the program alone, never because it was quiet for a moment
            end = train(steps, read_every=3)
        if killer is not None:
            killer.done.set()
            killer.join(60)
            assert killer.failure is None, f"the server could not be restarted: {killer.failure}"
        with session.lock:
            session.synchronize()
            applied = session.describe()["contents"]["frames_applied"]
            assert applied == session.frames, f"{session.frames} frames were sent, {applied} are applied"
        return end, session
    finally:
        if killer is not None:
            killer.done.set()
            killer.join(60)
        current_session._current = before
        session.close()
        opened.OPENED.remove(session)


def run(most_seconds: float) -> Figures:
    began, chance = time.monotonic(), random.Random(2026)
    totals: dict[str, dict[str, int]] = {}
    with (
        tempfile.TemporaryDirectory(prefix="gradwire-kills-") as folder,
        patch("gradwire._core.wire.retry.LONGEST_PAUSE_S", 0.2),
    ):
        server = MortalServer(Path(folder) / "data", journal_bytes=JOURNAL_BYTES)
        try:
            expected, sent = undisturbed(server, STEPS)
            for durability in ("durable", "applied"):
                total = totals[durability] = {"kills": 0, "runs": 0}
                while total["kills"] < KILLS:
                    frames = sorted(chance.sample(range(1, sent), KILLS_A_RUN))
                    end, figures = disturbed(server, durability, STEPS, frames, total["runs"])
                    assert end == expected, f"{durability}: the run ended otherwise after kills at frames {frames}"
                    for name, value in figures.items():
                        total[name] = total.get(name, 0) + value
                    total["runs"] += 1
                    progress(f"{durability}: {total['kills']} of {KILLS} kills")
                    left = most_seconds - (time.monotonic() - began)
                    assert left > 0, f"{totals} in the {most_seconds:g} s given"
        finally:
            server.kill()
    return {f"{name}, {durability}": n for durability, total in totals.items() for name, n in total.items()} | {
        "frames of a run": sent
    }
