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
from collections.abc import Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from .. import tuning

if TYPE_CHECKING:
    from gradwire_protocol.frames import Reply

    from ..durable.spec import JournalPolicy
    from ..hosts import InlineHost
    from ..metrics import Applied
    from .wire import Ask, Buffers, Open, Setup, Submit, Take, Wire

METHODS: Final = frozenset({"join", "expected", "describe", "tensors", "memory", "graph", "export", "close"})
"""What of a host can be asked for by name."""

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
    from .wire import Wire

    gone = asyncio.Event()
    bench = Bench()
    wire = Wire(bench.take, gone.set)
    bench.wire = wire
    await asyncio.get_running_loop().create_unix_connection(lambda: wire, sock=end)
    await gone.wait()


class Counts:
    """Stands for the server's metrics: what a host counts is kept for the message that answers the frame."""

    def __init__(self) -> None:
        self.known = False
        self._told: Applied | None = None

    def knows(self, key: bytes) -> bool:
        """Whether the server knows the families of this structure's ops: it said so with the frame."""
        return self.known

    def applied(self, key: bytes, whole: bool, reply: Reply, told: Applied) -> None:
        """Keep what a frame did; its answer is the next thing that the host does."""
        self._told = told

    def take(self) -> Applied | None:
        """What the frame did that is being answered."""
        told, self._told = self._told, None
        return told


class Bench:
    """The sessions of this worker, and what to do with each message."""

    wire: Wire

    def __init__(self) -> None:
        from . import wire

        self._hosts: dict[str, InlineHost] = {}
        self._counts = Counts()
        self._policy: JournalPolicy | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._actions: dict[type, Any] = {
            wire.Submit: self._submit,
            wire.Take: self._take_chunk,
            wire.Ask: self._ask,
            wire.Open: self._open,
            wire.Ping: lambda message, _: self.wire.send(wire.Pong(message.number)),
            wire.Setup: self._set_up,
        }

    def take(self, message: Any, buffers: Buffers) -> None:
        """Do what a message says."""
        self._actions[type(message)](message, buffers)

    def _set_up(self, message: Setup, _: Buffers) -> None:
        from ..logging import configure
        from .wire import Pong

        configure(message)
        self._policy = message.policy
        if message.max_bytes:
            cap_memory(message.max_bytes)
        self.wire.send(Pong(0))

    # Sessions

    def _open(self, message: Open, buffers: Buffers) -> None:
        self._start(message.call, self._opened(message, buffers))

    async def _opened(self, message: Open, buffers: Buffers) -> None:
        from ..hosts import InlineHost

        host = InlineHost(message.session, self._counts, self._policy)
        folder = Path(message.folder) if message.folder else None
        self._hosts[message.session] = host  # from now on it can be closed
        try:
            await host.open(message.spec, folder, message.how, buffers[0] if buffers else b"")
        except BaseException:
            if self._hosts.get(message.session) is host:
                del self._hosts[message.session]
            raise

    def _host(self, session: str) -> InlineHost:
        from gradwire_protocol.errors import SessionGone

        found = self._hosts.get(session)
        if found is None:
            raise SessionGone(f"session {session} is not on this worker")
        return found

    def _submit(self, message: Submit, buffers: Buffers) -> None:
        from gradwire_protocol.errors import GradwireError
        from gradwire_protocol.frames import Reply

        from .wire import Replied, problem_of, submitted

        call, wire = message.call, self.wire

        def answer(reply: Reply, out: Buffers) -> None:
            wire.send(Replied(call, reply, counts.take()), out)

        counts = self._counts
        counts.known = message.known
        try:
            self._host(message.session).submit(submitted(message), buffers, message.human, answer)
        except GradwireError as error:
            answer(Reply(seq=message.frame.seq, refused=problem_of(error)), [])

    def _take_chunk(self, message: Take, buffers: Buffers) -> None:
        from gradwire_protocol.errors import GradwireError

        from .wire import Result, problem_of

        call, wire = message.call, self.wire

        def answer(failure: BaseException | None) -> None:
            wire.send(Result(call, None, None if failure is None else problem_of(_explained(failure))))

        try:
            self._host(message.session).add_chunk(message.client, message.chunk, buffers[0], answer)
        except GradwireError as error:
            answer(error)

    def _ask(self, message: Ask, _: Buffers) -> None:
        self._start(message.call, self._asked(message))

    async def _asked(self, message: Ask) -> Any:
        assert message.method in METHODS, message.method
        host = self._host(message.session)
        result = await getattr(host, message.method)(*message.arguments)
        if message.method == "close" and result:
            self._hosts.pop(message.session, None)
        return result

    def _start(self, call: int, work: Coroutine[Any, Any, Any]) -> None:
        task = asyncio.get_running_loop().create_task(self._answered(call, work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answered(self, call: int, work: Coroutine[Any, Any, Any]) -> None:
        from .wire import Result, problem_of

        try:
            value = await work
        except Exception as error:
            self.wire.send(Result(call, None, problem_of(_explained(error))))
            return
        if isinstance(value, bytes):
            self.wire.send(Result(call), [memoryview(value)])
        else:
            self.wire.send(Result(call, value))


def _explained(failure: BaseException) -> Any:
    """The failure as an error that travels; what is none of ours is logged here."""
    import structlog

    from gradwire_protocol.errors import GradwireError, InternalError, OutOfMemory

    if isinstance(failure, GradwireError):
        return failure
    if isinstance(failure, MemoryError):
        return OutOfMemory(f"the worker has no memory left: {failure}")
    structlog.get_logger("gradwire.worker").error("a session's host failed", exc_info=failure)
    return InternalError(f"the session's worker failed: {type(failure).__name__}; the server's log has the details")
