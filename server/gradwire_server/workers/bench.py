"""The sessions of one worker, and what it does with each message of its server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Final

import structlog

from gradwire_engine.compiled import toolchain
from gradwire_protocol.errors import GradwireError, InternalError, OutOfMemory, SessionGone
from gradwire_protocol.frames import Reply

from ..durable.spec import JournalPolicy
from ..inline_host import InlineHost
from ..logging import configure
from ..metrics import Applied
from ..refusals import to_problem
from ..threads import SHARED as THREADS
from .wire import (
    Ask,
    Buffers,
    Open,
    Ping,
    Pong,
    Replied,
    Result,
    Setup,
    Share,
    Submit,
    Take,
    Wire,
    problem_of,
    submitted,
)

METHODS: Final = frozenset({"join", "expected", "describe", "tensors", "memory", "graph", "export", "cancel", "close"})
"""What of a host can be asked for by name."""

NEIGHBOURS: Final = 2
"""How many workers are taken to compute at once where that must be known beforehand."""

log = structlog.get_logger("gradwire.worker")


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
    """The sessions of this worker.

    Args:
        cap_memory: called with the bytes that the worker may take beyond what it has.
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
            Submit: self._submit, Take: self._take_chunk, Ask: self._ask, Open: self._open, Ping: self._pong,
            Setup: self._set_up, Share: self._share,
        }  # fmt: skip

    def take(self, message: Any, buffers: Buffers) -> None:
        """Do what a message says. Whatever goes wrong concerns its session, and is its answer."""
        try:
            self._actions[type(message)](message, buffers)
        except Exception as error:
            self._failed(message, error)

    def _failed(self, message: Any, error: Exception) -> None:
        told = _explained(error)
        if isinstance(message, Submit):
            self.wire.send(Replied(message.call, Reply(seq=message.frame.seq, refused=to_problem(told))))
        else:
            self.wire.send(Result(message.call, None, problem_of(told)))

    def _set_up(self, message: Setup, _: Buffers) -> None:
        configure(message)
        self._policy, self._spin_s = message.policy, message.spin_s
        if message.max_bytes:
            kernels = toolchain.FOOTPRINT_BYTES if message.compiled_kernels != "off" else 0
            self._cap_memory(message.max_bytes + kernels)
        toolchain.configure(message.compiled_kernels, message.cache_dir)
        THREADS.configure(message.compute_threads, among=NEIGHBOURS)
        self.wire.send(Pong(0))

    def _share(self, message: Share, _: Buffers) -> None:
        THREADS.beside(message.workers)

    def _pong(self, message: Ping, _: Buffers) -> None:
        self.wire.send(Pong(message.number))

    # Sessions

    def _open(self, message: Open, buffers: Buffers) -> None:
        self._start(message, self._opened(message, buffers))

    async def _opened(self, message: Open, buffers: Buffers) -> None:
        host = InlineHost(message.session, self._counts, self._policy, spin_s=self._spin_s)
        folder = Path(message.folder) if message.folder else None
        self._hosts[message.session] = host  # from now on it can be closed
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
        # Neither may know the message: its buffers would live as long as the reply.
        call, wire, counts = message.call, self.wire, self._counts

        def answer(reply: Reply, out: Buffers) -> None:
            wire.send(Replied(call, reply, counts.take()), out)

        counts.known = message.known
        self._host(message.session).submit(submitted(message), buffers, message.human, answer, message.cancelled)

    def _take_chunk(self, message: Take, buffers: Buffers) -> None:
        call, wire = message.call, self.wire

        def answer(failure: BaseException | None) -> None:
            wire.send(Result(call, None, None if failure is None else problem_of(_explained(failure))))

        self._host(message.session).add_chunk(message.client, message.chunk, buffers[0], answer)

    def _ask(self, message: Ask, _: Buffers) -> None:
        self._start(message, self._asked(message))

    async def _asked(self, message: Ask) -> Any:
        if message.method not in METHODS:
            raise InternalError(f"a host is not asked to {message.method}")
        host = self._host(message.session)
        result = await getattr(host, message.method)(*message.arguments)
        if message.method == "close" and result:
            self._hosts.pop(message.session, None)
        return result

    def _start(self, message: Open | Ask, work: Coroutine[Any, Any, Any]) -> None:
        task = asyncio.get_running_loop().create_task(self._answered(message, work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answered(self, message: Open | Ask, work: Coroutine[Any, Any, Any]) -> None:
        try:
            value = await work
            if isinstance(value, bytes):
                self.wire.send(Result(message.call), [memoryview(value)])
            else:
                self.wire.send(Result(message.call, value))
        except Exception as error:
            self._failed(message, error)


def _explained(failure: BaseException) -> GradwireError:
    """The failure as an error that travels; what is none of ours is logged here."""
    if isinstance(failure, GradwireError):
        return failure
    if isinstance(failure, MemoryError):
        return OutOfMemory(f"the worker has no memory left: {failure}")
    log.error("a session's host failed", exc_info=failure)
    return InternalError(f"the session's worker failed: {type(failure).__name__}; the server's log has the details")
