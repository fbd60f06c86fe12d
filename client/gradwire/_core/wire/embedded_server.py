"""The embedded server: the ``gradwire-server`` program as a child process on loopback, stopped at exit."""

from __future__ import annotations

import atexit
import json
import math
import os
import secrets
import select
import subprocess
import sys
from importlib.util import find_spec
from typing import IO, Final

from gradwire_protocol.errors import Unavailable

from ..context.waiting import Facts, Wait

NOT_INHERITED: Final = (
    "API_KEYS_FILE", "ADMIN_KEYS", "ADMIN_KEYS_FILE", "DATA_DIR", "DURABILITY", "AUDIT_LOG", "TLS_CERT", "TLS_KEY",
    "ROOT_PATH", "TRUSTED_PROXIES", "ALLOWED_ORIGINS", "DRAIN_GRACE_S", "DRAIN_TIMEOUT_S", "MAX_OPS_PER_SECOND",
    "MAX_BYTES_PER_SECOND", "MAX_REQUESTS_PER_SECOND", "MAX_KEY_SESSIONS", "MAX_KEY_BYTES",
    "MAX_KEY_GPUS", "MAX_KEY_CPUS", "MAX_KEY_MEMORY", "DIRECT",
)  # fmt: skip
"""Settings of a shared server, which an embedded server ignores. It serves one program, on loopback, with its own key,
and ends with the program. A data directory could not be shared by two programs: it belongs to one server at a time."""

PROGRAM: Final = ("-m", "gradwire_server")
"""Arguments of Python; tests replace them to wrap the server in a program of their own."""


class EmbeddedServer:
    """A child process that serves on a free port of 127.0.0.1.

    It ends when its parent does, however the parent ends: its standard input is a pipe that closes.

    Raises:
        Unavailable: when the server's packages are missing or it does not start.
    """

    def __init__(self) -> None:
        if find_spec("gradwire_server") is None or find_spec("fastapi") is None:
            raise Unavailable(
                "no server is configured and the embedded one is not installed: set GRADWIRE_URL, or "
                "pip install 'gradwire[server]'"
            )
        self.api_key = secrets.token_urlsafe(24)
        environment = os.environ | {"GRADWIRE_API_KEYS": self.api_key, "GRADWIRE_LOG_LEVEL": "warning"}
        for name in NOT_INHERITED:
            environment.pop(f"GRADWIRE_{name}", None)
        command = [
            sys.executable, *PROGRAM, "--host", "127.0.0.1", "--port", "0", "--announce",
            "--exit-with-parent",
        ]  # fmt: skip
        # A separate process group: Ctrl-C at a terminal goes to the program only, which may still need the server.
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True,
            process_group=0 if os.name == "posix" else None,
        )  # fmt: skip
        self.ours = True
        assert self._process.stdout is not None
        self._await_line(self._process.stdout)
        line = self._process.stdout.readline()
        if not line:
            raise Unavailable(f"the embedded server did not start (exit code {self._process.wait()})")
        self.url: str = json.loads(line)["url"]
        atexit.register(self.stop)

    @staticmethod
    def _await_line(output: IO[str]) -> None:
        """Wait until it has announced itself, or ended; so that a long start is told."""
        if os.name != "posix":  # pipes cannot be polled there
            return
        wait = Wait(lambda: Facts("server"))
        try:
            poll = select.poll()
            poll.register(output, select.POLLIN)
            while not poll.poll(_milliseconds(wait.pause(None))):
                wait.look()
        finally:
            wait.end()

    def lend(self) -> None:
        """In a forked child: the server still belongs to the parent, which stops it."""
        self.ours = False
        atexit.unregister(self.stop)

    def runs(self) -> bool:
        """Whether it can be used."""
        return not self.ours or self._process.poll() is None

    def stop(self) -> None:
        """Stop it after it has drained."""
        if self._process.poll() is None:
            assert self._process.stdin is not None
            self._process.stdin.close()
            self._process.terminate()
            try:
                self._process.wait(5)
            except subprocess.TimeoutExpired:
                self._process.kill()
        atexit.unregister(self.stop)


def _milliseconds(seconds: float | None) -> int | None:
    return None if seconds is None else math.ceil(seconds * 1000)


_running: EmbeddedServer | None = None


def embedded_server() -> EmbeddedServer:
    """The one embedded server of this process, started at first use."""
    global _running
    if _running is None or not _running.runs():
        _running = EmbeddedServer()
    return _running


def own(url: str) -> bool:
    """Whether the server at this URL was started by this process, for itself alone."""
    return _running is not None and _running.ours and _running.url == url


def _lend() -> None:
    if _running is not None:
        _running.lend()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_lend)
