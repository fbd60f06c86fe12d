"""A worker process: runs sessions for its server, which controls it over a socket.

It holds no keys, serves only its server, and ends with it.
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

from ..settings import tuning

_PR_SET_PDEATHSIG: Final = 1
OOM_SCORE: Final = 500
"""In the range -1000 to 1000: when memory runs out, the kernel kills a worker before the server."""


def main() -> int:
    """Run a worker on the socket ``sys.argv[1]`` for the server with the process id ``sys.argv[2]``."""
    descriptor, server = int(sys.argv[1]), int(sys.argv[2])
    end_with(server)
    prefer_oom_kill()
    tuning.before_numpy()
    from ..hosting.hosts import warm_up

    warm_up()
    tuning.after_start()
    try:
        import uvloop

        runner = asyncio.Runner(loop_factory=uvloop.new_event_loop)
    except ImportError:
        runner = asyncio.Runner()
    with runner:
        runner.run(serve(socket.socket(fileno=descriptor)))
    # Do not wait for threads that still run an op; numeric libraries might join them.
    os._exit(0)


def end_with(server: int) -> None:
    """End with the server, even while all threads run an op and none notices the closed socket."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != server:  # the server has ended already
        os._exit(0)


def prefer_oom_kill() -> None:
    """Make the kernel's OOM killer prefer this process to the server."""
    with contextlib.suppress(OSError):  # other systems have no such file
        Path("/proc/self/oom_score_adj").write_text(str(OOM_SCORE))


def cap_memory(beyond: int) -> None:
    """Limit the process's memory to its current memory plus this many bytes.

    Only private writable memory counts, because a GPU driver reserves far more address space.
    """
    try:
        import resource

        pages = int(Path("/proc/self/statm").read_text().split()[5])
    except (ImportError, OSError):
        return
    most = pages * resource.getpagesize() + beyond
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))


async def serve(end: socket.socket) -> None:
    """Handle the server's messages until it closes the connection."""
    from .wire import Wire
    from .worker_sessions import WorkerSessions

    closed = asyncio.Event()
    sessions = WorkerSessions(cap_memory)
    wire = Wire(sessions.on_message, closed.set)
    sessions.wire = wire
    await asyncio.get_running_loop().create_unix_connection(lambda: wire, sock=end)
    await closed.wait()
