"""A training program on server processes that share a storage, while one after another is stopped past its lease."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import threading
import time
from contextlib import ExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import gradwire as torch
from tests.cutting_relay import CuttingRelay
from tests.live_server import API_KEY, LiveServer, server_process

LEASE_S = 2.0
STEPS = 80
END_PATIENCE_S = 60


@dataclass(frozen=True)
class Zombie:
    """What happened to one server that was stopped past its lease and then continued.

    Attributes:
        right: the program ended with the bits of one that nobody disturbed.
        frames: how many frames the program had sent when its server was stopped.
        wait_s: the program's longest wait for one step: detection, takeover and the rest.
        ended: the zombie's process ended by itself, with the status that has it started again.
    """

    right: bool
    frames: int
    wait_s: float
    ended: bool


class Servers:
    """Two server processes at a time on one storage: the successor of one zombie is the next one."""

    def __init__(self, store: str) -> None:
        self._store = store
        self._stack = ExitStack()
        self._first = self._start()
        self._relay = CuttingRelay(_port(self._first))
        self._expected = self._train(lambda session: None)[0]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: Any, trace: TracebackType | None) -> None:
        self._stack.close()

    def _start(self) -> LiveServer:
        started = server_process(
            store=self._store, lease_s=LEASE_S, compiled_kernels="off", max_sessions=1000, log_level="error"
        )
        return self._stack.enter_context(started)

    def _train(self, disturb: Any) -> tuple[bytes, float]:
        """Train a little model. Returns its weights' bits and the longest step."""
        with torch.connect(f"http://127.0.0.1:{self._relay.port}", api_key=API_KEY) as session:
            torch.manual_seed(3)
            x, y = torch.randn(16, 8), torch.randn(16, 4)
            model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Dropout(0.2), torch.nn.Linear(16, 4))
            optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
            disturb(session)
            slowest = 0.0
            for _ in range(STEPS):
                began = time.monotonic()
                optimizer.zero_grad()
                loss = ((model(x) - y) ** 2).mean()
                loss.backward()
                optimizer.step()
                loss.item()
                slowest = max(slowest, time.monotonic() - began)
            return b"".join(each.detach().numpy().tobytes() for each in model.parameters()), slowest

    def make_zombie(self, seed: int) -> Zombie:
        """Stop the program's server past its lease at a random moment, and continue it when the other one has the
        session. The stopped server has received a frame that it has not seen."""
        chance = random.Random(seed)
        one, other = self._first, self._start()
        at = chance.randrange(4, STEPS)
        self._relay.target = _port(one)
        threads: list[threading.Thread] = []

        def disturb(session: Any) -> None:
            def stop() -> None:
                while session.frames < at:
                    time.sleep(0.0003)
                time.sleep(chance.uniform(0, 0.004))
                os.kill(one.pid, signal.SIGSTOP)
                self._relay.target = _port(other)
                time.sleep(chance.uniform(0, 0.2))
                self._relay.block()  # connections that follow lead to the other server
                time.sleep(0.06)
                self._relay.unblock()
                # The successor takes over after 1.1 leases and a margin of 1 s: the zombie comes back about then.
                time.sleep(LEASE_S * 1.1 + chance.uniform(0.7, 2.0))
                os.kill(one.pid, signal.SIGCONT)

            threads.append(threading.Thread(target=stop, daemon=True))
            threads[0].start()

        found, slowest = self._train(disturb)
        threads[0].join(END_PATIENCE_S)
        assert one.process is not None
        try:
            code: int | None = one.process.wait(END_PATIENCE_S)
        except subprocess.TimeoutExpired:
            code = None
        self._first = other
        return Zombie(found == self._expected, at, slowest, code == 1)


def _port(server: LiveServer) -> int:
    return int(server.url.rpartition(":")[2])
