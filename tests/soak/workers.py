"""Workers killed and stopped at random moments of a training run: the same bits, and an undisturbed neighbour.

The server runs durable sessions in worker processes. The worker of the training run is killed -9 while it starts,
recovers, applies, journals and answers, or is stopped as if it hung. The program does not notice. Another key's
session is used throughout; its worker stays the same.
"""

from __future__ import annotations

import os
import random
import signal
import tempfile
import threading
import time
from typing import Any

import httpx

import gradwire
from gradwire._core.session import current_session, opened
from tests.live_server import LiveServer, live_server
from tests.training_run import End, train

from . import Figures, enough, progress

SECONDS = 600.0
KILLS = 100
STEPS = 200
PATIENCE_S = 5.0
"""After which a worker counts as hung: far more than a busy machine makes it wait."""

WHILE_IT_RECOVERS = 0.2
"""How likely a worker is killed that has not recovered the session yet; one that never may is given up."""

STOPPED = 0.1
"""How many of the workers are stopped rather than killed."""


class Killer(threading.Thread):
    """Kills or stops the worker of a session at random moments."""

    def __init__(self, server: LiveServer, session: str, seed: int) -> None:
        super().__init__(name="killer", daemon=True)
        self.registry = server.app.state.server.registry
        self.session = session
        self.done = threading.Event()
        self.killed: list[int] = []
        self._chance = random.Random(seed)

    def run(self) -> None:
        while not self.done.wait(self._chance.uniform(0.2, 1.5)):
            keeper = self.registry._sessions[self.session].host
            if any(entry.submitted and entry.deaths for entry in list(keeper._entries.values())):
                continue  # the same frame is not to run at two deaths: then it would be refused, as is promised
            if keeper._host is None and self._chance.random() > WHILE_IT_RECOVERS:
                continue
            for worker in list(self.registry.pool._workers):
                if self.session in worker.hosts and worker.pid not in self.killed:
                    stopped = self._chance.random() < STOPPED
                    os.kill(worker.pid, signal.SIGSTOP if stopped else signal.SIGKILL)
                    self.killed.append(worker.pid)


class Neighbour(threading.Thread):
    """Uses a session of another key, and counts what does not succeed."""

    def __init__(self, server: LiveServer) -> None:
        super().__init__(name="neighbour", daemon=True)
        self.http = server.http(server.other_key)
        self.session = self.http.post("/v1/sessions").headers["location"]
        self.done = threading.Event()
        self.asked = 0
        self.failures: list[str] = []

    def run(self) -> None:
        body = {"structure": {"ops": [["ones", [[4]]]], "reads": [0]}}
        while not self.done.wait(0.02):
            try:
                response = self.http.post(f"{self.session}/frames", json=body)
                if response.status_code != 200:
                    self.failures.append(response.text)
            except httpx.HTTPError as error:
                self.failures.append(repr(error))
            self.asked += 1


def worker_of(server: LiveServer, session: str) -> int:
    """The process id of a session's worker."""
    return next(w.pid for w in list(server.app.state.server.registry.pool._workers) if session in w.hosts)


def trained(server: LiveServer, seed: int | None) -> tuple[End, int]:
    """The end of a run, and how many workers it has cost; no ``seed``: it is not disturbed."""
    before: Any = current_session._current
    session = gradwire.connect(server.url, server.api_key, seed=5)
    killer = None if seed is None else Killer(server, session.id, seed)
    try:
        if killer is not None:
            killer.start()
        with session.lock:  # frames are cut by the program alone, never because it was quiet for a moment
            end = train(STEPS, read_every=3)
        if killer is not None:
            killer.done.set()
            killer.join(60)
        applied = session.describe()["contents"]["frames_applied"]
        assert applied == session.frames, f"{session.frames} frames were sent, {applied} are applied"
        assert session.stats()["reconnects"] == 0, "a stream was closed"
        return end, 0 if killer is None else len(killer.killed)
    finally:
        if killer is not None:
            killer.done.set()
        current_session._current = before
        session.close()
        opened.OPENED.remove(session)


def run(most_seconds: float) -> Figures:
    began, kills, runs = time.monotonic(), 0, 0
    with (
        tempfile.TemporaryDirectory(prefix="gradwire-workers-") as folder,
        live_server(session_host="process", data_dir=folder, worker_patience_s=PATIENCE_S) as server,
    ):
        expected, _ = trained(server, None)
        neighbour = Neighbour(server)
        its_worker = worker_of(server, neighbour.session.rsplit("/", 1)[-1])
        neighbour.start()
        while kills < KILLS and time.monotonic() - began < most_seconds * 0.9:
            end, more = trained(server, runs)
            assert end == expected, f"run {runs} ended otherwise after {more} deaths"
            kills, runs = kills + more, runs + 1
            progress(f"{kills} of {KILLS} deaths in {runs} runs")
        neighbour.done.set()
        neighbour.join(60)
        assert not neighbour.failures, neighbour.failures[:3]
        assert worker_of(server, neighbour.session.rsplit("/", 1)[-1]) == its_worker
    enough(kills, KILLS, "deaths")
    return {"workers killed or stopped": kills, "runs": runs, "requests of the neighbour": neighbour.asked}
