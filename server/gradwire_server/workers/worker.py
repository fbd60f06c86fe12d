"""A worker: a process that runs sessions on hosts of its own and is told what to do over a socket.

It holds no key and answers nobody but its server; it ends when the server does.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import signal
import socket
import sys
from pathlib import Path
from typing import Final

from .. import tuning

_PR_SET_PDEATHSIG: Final = 1
OOM_SCORE: Final = 500
"""Of -1000 to 1000: when memory runs out, the kernel ends a worker before the server."""


def main() -> int:
    """Run a worker on the socket ``sys.argv[1]`` for the server with the process id ``sys.argv[2]``."""
    descriptor, server = int(sys.argv[1]), int(sys.argv[2])
    end_with(server)
    first_when_memory_ends()
    tuning.before_numpy()
    from ..hosts import warm_up

    warm_up()
    tuning.after_start()
    try:
        import uvloop

        runner = asyncio.Runner(loop_factory=uvloop.new_event_loop)
    except ImportError:
        runner = asyncio.Runner()
    with runner:
        runner.run(serve(socket.socket(fileno=descriptor)))
    # Threads that still run an op are nobody's any more, and numeric libraries might wait for them.
    os._exit(0)


def end_with(server: int) -> None:
    """End when the server ends, even while all threads are in an op: then nobody reads the closed socket."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != server:  # it ended before
        os._exit(0)


def first_when_memory_ends() -> None:
    """Let the kernel, out of memory, choose this process rather than the server."""
    with contextlib.suppress(OSError):  # other systems have no such file
        Path("/proc/self/oom_score_adj").write_text(str(OOM_SCORE))


def cap_memory(beyond: int) -> None:
    """Let allocations fail that would take more than so many bytes beyond what the process has now.

    What counts is writable memory of its own: a GPU's driver reserves far more addresses than that.
    """
    try:
        import resource

        pages = int(Path("/proc/self/statm").read_text().split()[5])
    except (ImportError, OSError):
        return
    most = pages * resource.getpagesize() + beyond
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))


async def serve(end: socket.socket) -> None:
    """Do what the server says, until it is gone."""
    from .bench import Bench
    from .wire import Wire

    gone = asyncio.Event()
    bench = Bench(cap_memory)
    wire = Wire(bench.take, gone.set)
    bench.wire = wire
    await asyncio.get_running_loop().create_unix_connection(lambda: wire, sock=end)
    await gone.wait()
