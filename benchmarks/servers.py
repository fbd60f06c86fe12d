"""Servers and relays as child processes on loopback with a fixed number of threads, and their memory."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from gradwire._core.session.session import Session

THREAD_VARIABLES: Final = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
STOP_PATIENCE_S: Final = 10.0

AS_MEASURED: Final = {"GRADWIRE_PLANS": "on", "GRADWIRE_COMPILED_KERNELS": "wait"}
"""Settings of every server here, unless the environment has others: repeated frames run as plans, and sessions wait
until compiled kernels are ready."""


def as_measured() -> dict[str, str]:
    """The effective values of :data:`AS_MEASURED` in this environment."""
    return {name: os.environ.get(name, value) for name, value in AS_MEASURED.items()}


class Child:
    """A child process that announces itself with one line of JSON, and ends when its standard input closes.

    Raises:
        RuntimeError: if it ends without announcing itself.
    """

    def __init__(self, command: list[str], environment: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=os.environ | environment, text=True
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{' '.join(command[1:3])} did not start (exit code {self._process.wait()})")
        self.url: str = json.loads(line)["url"]

    @property
    def pid(self) -> int:
        return self._process.pid

    def stop(self) -> None:
        """End it and wait."""
        if self._process.poll() is None:
            assert self._process.stdin is not None
            self._process.stdin.close()
            self._process.terminate()
            try:
                self._process.wait(STOP_PATIENCE_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()

    def kill(self) -> None:
        """End it as a crash would."""
        self._process.kill()
        self._process.wait()

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    # Memory, if the system reports it (Linux)

    def rss(self) -> int:
        """Its current memory in bytes."""
        return self._status("VmRSS")

    def peak(self) -> int:
        """Its peak memory in bytes since the start, or since :meth:`forget_peak`."""
        return self._status("VmHWM")

    def forget_peak(self) -> None:
        """Reset the peak."""
        Path(f"/proc/{self.pid}/clear_refs").write_text("5")

    def _status(self, field: str) -> int:
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            name, _, value = line.partition(":")
            if name == field:
                return int(value.split()[0]) << 10
        raise LookupError(f"the system does not tell {field} of a process")


class Server(Child):
    """A gradwire server on a loopback port (a free one by default), with one key and this many compute threads.

    Args:
        threads: None leaves their number to the server.
        module: the module to run, and its first arguments.
        settings: additional settings, by name.
    """

    def __init__(
        self, threads: int | None = 1, port: int = 0, module: tuple[str, ...] = ("gradwire_server",), **settings: object
    ) -> None:
        self.key = secrets.token_urlsafe(24)
        command = [sys.executable, "-m", *module, "--host", "127.0.0.1", "--port", str(port), "--announce"]
        command.append("--exit-with-parent")
        environment = {} if threads is None else dict.fromkeys(THREAD_VARIABLES, str(threads))
        environment |= {"GRADWIRE_API_KEYS": self.key, "GRADWIRE_LOG_LEVEL": "warning"}
        environment |= as_measured() | {f"GRADWIRE_{name.upper()}": str(value) for name, value in settings.items()}
        super().__init__(command, environment)


class DelayedRoute(Child):
    """A relay in front of a server, in its own process, that adds ``rtt_ms`` of latency."""

    def __init__(self, server: Server, rtt_ms: float) -> None:
        self.key = server.key
        self.rtt_ms = rtt_ms
        super().__init__([sys.executable, "-m", "benchmarks.delay", server.url, "--rtt-ms", str(rtt_ms)], {})


@contextmanager
def session(route: Server | DelayedRoute) -> Iterator[Session]:
    """A session there, which is the current one until the end of the ``with``."""
    import gradwire

    with gradwire.connect(route.url, route.key) as opened:
        yield opened


@contextmanager
def inside(opened: Session) -> Iterator[None]:
    """Make this session the current one until the end of the ``with``, for benchmarks with several."""
    from gradwire._core.session import current_session

    before, current_session._current = current_session._current, opened
    try:
        yield
    finally:
        current_session._current = before
