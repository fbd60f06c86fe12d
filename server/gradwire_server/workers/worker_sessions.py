"""The sessions of one worker, and the handlers of the server's messages."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Final

import structlog

from gradwire_engine.kernels.cpu import toolchain
from gradwire_protocol.errors import GradwireError, InternalError, OutOfMemory, SessionGone
from gradwire_protocol.frames import Reply

from ..errors.error_mapping import to_problem
from ..hosting.inline_host import InlineHost
from ..hosting.threads import SHARED as THREADS
from ..observability.logging import configure
from ..observability.metrics import Applied
from ..settings.session_spec import JournalPolicy
from .wire import (
    AddChunk,
    Buffers,
    ComputeShare,
    HostCall,
    Open,
    Ping,
    Pong,
    Replied,
    Result,
    Setup,
    Submit,
    Wire,
    problem_of,
    submitted,
)

METHODS: Final = frozenset({
    "join", "expected", "describe", "tensors", "names", "memory", "graph", "export", "cancel", "close", "prepare_group",
    "open_group", "attach_group", "group_moved", "group_lost", "close_group", "groups",
    "needed", "image", "profile", "travel", "search", "recorded",
})  # fmt: skip
"""The host's methods that can be called by name."""

EXPECTED_WORKERS: Final = 2
"""The assumed number of workers that compute at the same time, for sessions that need a fixed number of threads."""

log = structlog.get_logger("gradwire.worker")


class Counts:
    """The worker's stand-in for the metrics: it keeps a frame's statistics for the message with the reply."""

    counts_first = True

    def __init__(self) -> None:
        self.known = False
        self._stats: Applied | None = None

    def knows(self, key: bytes) -> bool:
        """Whether the server knows the op families of this structure, as the frame's message says."""
        return self.known

    def applied(self, key: bytes, whole: bool, reply: Reply, stats: Applied) -> None:
        """Keep a frame's statistics. The host sends the reply next."""
        self._stats = stats

    def pop(self) -> Applied | None:
        """The statistics of the frame that is being answered."""
        stats, self._stats = self._stats, None
        return stats


class WorkerSessions:
    """The sessions of this worker.

    Args:
        cap_memory: limits the memory of the process to its current memory plus this many bytes.
    """

    wire: Wire

    def __init__(self, cap_memory: Callable[[int], None]) -> None:
        self._cap_memory = cap_memory
        self._hosts: dict[str, InlineHost] = {}
        self._counts = Counts()
        self._policy: JournalPolicy | None = None
        self._spin_s = 0.0
        self._tasks: set[asyncio.Task[None]] = set()
        self._actions: dict[type, Any] = {
            Submit: self._submit, AddChunk: self._take_chunk, HostCall: self._call, Open: self._open, Ping: self._pong,
            Setup: self._set_up, ComputeShare: self._share,
        }  # fmt: skip

    def on_message(self, message: Any, buffers: Buffers) -> None:
        """Handle a message. An error concerns only its session and becomes the response."""
        try:
            self._actions[type(message)](message, buffers)
        except Exception as error:
            self._send_error(message, error)

    def _send_error(self, message: Any, error: Exception) -> None:
        stats = _to_gradwire_error(error)
        if isinstance(message, Submit):
            self.wire.send(Replied(message.call, Reply(seq=message.frame.seq, refused=to_problem(stats))))
        else:
            self.wire.send(Result(message.call, None, problem_of(stats)))

    def _set_up(self, message: Setup, _: Buffers) -> None:
        configure(message)
        self._policy, self._spin_s = message.policy, message.spin_s
        if message.max_bytes:
            kernels = toolchain.FOOTPRINT_BYTES if message.compiled_kernels != "off" else 0
            self._cap_memory(message.max_bytes + kernels)
        toolchain.configure(message.compiled_kernels, message.cache_dir)
        THREADS.configure(message.compute_threads, among=EXPECTED_WORKERS)
        self.wire.send(Pong(0))

    def _share(self, message: ComputeShare, _: Buffers) -> None:
        THREADS.set_processes(message.workers)

    def _pong(self, message: Ping, _: Buffers) -> None:
        self.wire.send(Pong(message.number))

    # Sessions

    def _open(self, message: Open, buffers: Buffers) -> None:
        self._start(message, self._open_host(message, buffers))

    async def _open_host(self, message: Open, buffers: Buffers) -> None:
        host = InlineHost(message.session, self._counts, self._policy, spin_s=self._spin_s)
        folder = Path(message.folder) if message.folder else None
        self._hosts[message.session] = host  # before open(), so that it can be closed meanwhile
        try:
            await host.open(message.spec, folder, message.how, buffers[0] if buffers else b"")
        except BaseException:
            if self._hosts.get(message.session) is host:
                del self._hosts[message.session]
            raise

    def _host(self, session: str) -> InlineHost:
        found = self._hosts.get(session)
        if found is None:
            raise SessionGone(f"session {session} is not on this worker")
        return found

    def _submit(self, message: Submit, buffers: Buffers) -> None:
        # The closure must not reference the message, whose buffers would live as long as the reply.
        call, wire, counts = message.call, self.wire, self._counts

        def answer(reply: Reply, out: Buffers) -> None:
            wire.send(Replied(call, reply, counts.pop()), out)

        counts.known = message.known
        self._host(message.session).submit(submitted(message), buffers, message.human, answer, message.cancelled)

    def _take_chunk(self, message: AddChunk, buffers: Buffers) -> None:
        call, wire = message.call, self.wire

        def answer(failure: BaseException | None) -> None:
            wire.send(Result(call, None, None if failure is None else problem_of(_to_gradwire_error(failure))))

        self._host(message.session).add_chunk(message.client, message.chunk, buffers[0], answer)

    def _call(self, message: HostCall, _: Buffers) -> None:
        self._start(message, self._run_call(message))

    async def _run_call(self, message: HostCall) -> Any:
        if message.method not in METHODS:
            raise InternalError(f"unknown host method {message.method!r}")
        host = self._host(message.session)
        result = await getattr(host, message.method)(*message.arguments)
        if message.method == "close" and result:
            self._hosts.pop(message.session, None)
        return result

    def _start(self, message: Open | HostCall, work: Coroutine[Any, Any, Any]) -> None:
        task = asyncio.get_running_loop().create_task(self._respond(message, work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _respond(self, message: Open | HostCall, work: Coroutine[Any, Any, Any]) -> None:
        try:
            value = await work
            if isinstance(value, bytes):
                self.wire.send(Result(message.call), [memoryview(value)])
            else:
                self.wire.send(Result(message.call, value))
        except Exception as error:
            self._send_error(message, error)


def _to_gradwire_error(failure: BaseException) -> GradwireError:
    """The error to send. Logs an unexpected one."""
    if isinstance(failure, GradwireError):
        return failure
    if isinstance(failure, MemoryError):
        return OutOfMemory(f"the worker process is out of memory: {failure}")
    log.error("a session's host failed", exc_info=failure)
    return InternalError(f"the session's worker failed: {type(failure).__name__}; the server's log has details")
