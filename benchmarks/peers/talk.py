"""Shared by the peers' scripts: data, a server process, a relay, and the measuring protocol.

A script runs in its peer's environment, so this file needs only the standard library and NumPy. The script starts its
server, reports on standard output that it is ready, and answers lines of ``FORM STEPS`` with the milliseconds per step.
It ends when its standard input closes.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

SIZE = 64
LINKS = 10
PATIENCE_S = 60.0

# Libraries may print to standard output, so the driver reads from a duplicate of the original descriptor.
_answers = os.fdopen(os.dup(1), "w", buffering=1)
os.dup2(2, 1)


def data() -> tuple[Any, Any]:
    """The two matrices of ``benchmarks.chain``: 64x64, float32."""
    random = np.random.default_rng(0)
    x = random.standard_normal((SIZE, SIZE)).astype(np.float32)
    return x, (random.standard_normal((SIZE, SIZE)) / 6).astype(np.float32)


def arguments() -> argparse.Namespace:
    """``serve PORT``, or ``measure [--relay COMMAND]``, where the command takes an address and prints another."""
    parser = argparse.ArgumentParser()
    parser.add_argument("role", choices=("serve", "measure"))
    parser.add_argument("port", type=int, nargs="?", default=0)
    parser.add_argument("--relay", default="")
    return parser.parse_args()


def free_port() -> int:
    """A free port of loopback."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


class Beside:
    """Child processes that end with the script."""

    def __init__(self) -> None:
        self._started: list[subprocess.Popen[str]] = []

    def serve(self, environment: dict[str, str] | None = None) -> int:
        """Start this script again as a server. Returns its port once it listens."""
        port = free_port()
        command = [sys.executable, sys.argv[0], "serve", str(port)]
        server = subprocess.Popen(command, env=os.environ | (environment or {}), stdin=subprocess.DEVNULL, text=True)
        self._started.append(server)
        until = time.monotonic() + PATIENCE_S
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                return port
            except OSError:
                if server.poll() is not None or time.monotonic() > until:
                    raise RuntimeError(f"the server did not start (exit code {server.poll()})") from None
                time.sleep(0.1)

    def relay(self, command: str, port: int) -> int:
        """Start a relay to that port, if there is a command for it. Returns the port to use."""
        if not command:
            return port
        relay = subprocess.Popen(
            [*shlex.split(command), f"127.0.0.1:{port}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._started.append(relay)
        assert relay.stdout is not None
        url: str = json.loads(relay.stdout.readline())["url"]
        return int(url.rpartition(":")[2])

    def end(self) -> None:
        for process in self._started:
            process.kill()
            process.wait()


def answer(version: str, forms: dict[str, Callable[[], Any]], note: str = "") -> None:
    """Report readiness, then measure on request.

    Args:
        forms: by name, a step that returns the gradient as an array.
    """
    sums = [float(np.abs(step()).sum()) for step in forms.values()]
    tell = {"version": version, "forms": list(forms), "sums": sums, "note": note}
    print(json.dumps(tell), file=_answers)
    steps = list(forms.values())
    for line in sys.stdin:
        form, count = map(int, line.split())
        step = steps[form]
        step()
        began = time.perf_counter()
        for _ in range(count):
            step()
        print(json.dumps({"ms": (time.perf_counter() - began) / count * 1e3}), file=_answers)
