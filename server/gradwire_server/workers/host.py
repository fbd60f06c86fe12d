"""The host of a session in a worker process. Calls go over the wire and fail when the worker dies."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import structlog

from gradwire_protocol.errors import SessionGone, Unavailable
from gradwire_protocol.frames import MAX_ID, Chunk, Frame, Reply

from ..errors.error_mapping import to_problem
from ..hosting.hosts import Counting
from ..hosting.jobs import Answer, Buffers
from ..hosting.runner import How
from ..settings.session_spec import SessionSpec
from .pool import Death, Worker, WorkerPool
from .wire import AddChunk, HostCall, Message, Open, Replied, Result, error_of, submission

OVERTIME: Final = 2.0
"""The engine stops a frame at its time limit between two ops. A frame that runs this many times longer hangs in an op.
"""

OVERTIME_S: Final = 1.0
CLOSE_PATIENCE_S: Final = 10.0

log = structlog.get_logger("gradwire.workers")


class ProcessHost:
    """The host of one session while its worker lives. When the worker dies, all calls raise :class:`Death`.

    Unanswered frames and chunks stay unanswered; the supervisor resubmits them to the next host.

    Args:
        key: the key of the worker.
        died: called when the worker has died, after pending calls have raised.
    """

    def __init__(
        self, name: str, pool: WorkerPool, key: str, metrics: Counting, died: Callable[[ProcessHost, Death], None]
    ) -> None:
        self.name = name
        self.metrics = metrics
        self._pool = pool
        self._key = key
        self._on_death = died
        self._worker: Worker | None = None
        self._death: Death | None = None
        self._closed = False
        self._released = False
        self._frames: dict[int, tuple[Frame, Answer]] = {}
        self._cancelled: dict[int, float] = {}
        """Cancelled frames and the time of their cancellation."""
        self._closing_since = 0.0
        self.survives = False
        self._waiting: set[asyncio.Future[Any]] = set()
        self._first_since = 0.0
        self._most_s = 0.0
        self._idle = asyncio.Event()
        self._idle.set()

    async def open(
        self, spec: SessionSpec, folder: Path | None = None, how: How = "new", image: bytes | memoryview = b""
    ) -> None:
        """Open the session on its key's worker.

        Raises:
            Unavailable: when no worker can be started.
            Death: when the worker died meanwhile.
        """
        most = spec.limits.get("max_frame_seconds", 0)
        self._most_s = most * OVERTIME + OVERTIME_S if most else 0.0
        self.survives = folder is not None
        worker = self._worker = await self._pool.worker(self._key)
        if worker.dead.done():
            raise worker.dead.result()
        worker.hosts[self.name] = self
        folder_name = str(folder) if folder is not None else ""
        file = [memoryview(image)] if len(image) else []
        try:
            await self._request(lambda call: Open(call, self.name, spec, folder_name, how), file)
        except asyncio.CancelledError:
            worker.call(lambda call: HostCall(call, self.name, "close", [True]), lambda message, buffers: None)
            worker.hosts.pop(self.name, None)
            raise
        except BaseException:
            worker.hosts.pop(self.name, None)
            raise

    @property
    def pending(self) -> int:
        return len(self._frames)

    def _live_worker(self) -> Worker:
        if self._closed:
            raise SessionGone("the session was deleted")
        if self._death is not None:
            raise self._death
        assert self._worker is not None
        return self._worker

    def submit(self, frame: Frame, buffers: Buffers, human: bool, answer: Answer, cancelled: bool = False) -> None:
        worker, metrics, name = self._live_worker(), self.metrics, self.name
        key, whole = frame.hash, bool(frame.structure)
        known = metrics.knows(key)

        def answered(message: Replied, out: Buffers) -> None:
            if self._frames.pop(number, None) is None:
                return  # the session was deleted meanwhile, and the call was refused
            self._first_since = time.monotonic()
            self._cancelled.pop(number, None)
            if not self._frames:
                self._idle.set()
            if message.stats is not None:
                metrics.applied(key, whole, message.reply, message.stats)
            answer(message.reply, out)

        number = worker.call(lambda call: submission(call, name, frame, human, known, cancelled), answered, buffers)
        if not self._frames:
            self._first_since = time.monotonic()
            self._idle.clear()
        self._frames[number] = frame, answer
        if cancelled:
            self._cancelled[number] = time.monotonic()

    async def cancel(self, client: int | None, first: int, last: int) -> int:
        """Cancel frames. If one does not stop in time, its worker is killed, see :meth:`is_stuck`."""
        everything = first <= 0 and last >= MAX_ID
        for number, (frame, _) in self._frames.items():
            if client in (None, frame.client) and (first <= frame.seq <= last if frame.seq else everything):
                self._cancelled.setdefault(number, time.monotonic())
        found: int = await self._call("cancel", client, first, last)
        return found

    async def apply(self, frame: Frame, buffers: Buffers, human: bool = False) -> tuple[Reply, Buffers]:
        future: asyncio.Future[tuple[Reply, Buffers]] = asyncio.get_running_loop().create_future()

        def answer(reply: Reply, out: Buffers) -> None:
            if not future.done():
                future.set_result((reply, out))

        self.submit(frame, buffers, human, answer)
        found: tuple[Reply, Buffers] = await self._wait(future)
        return found

    def add_chunk(self, client: int, chunk: Chunk, data: memoryview, answer: Callable[[Any], None]) -> None:
        def answered(message: Result, _: Buffers) -> None:
            answer(None if message.problem is None else error_of(message.problem))

        self._live_worker().call(lambda call: AddChunk(call, self.name, client, chunk), answered, [data])

    # Calls

    async def _request(self, make: Callable[[int], Message], buffers: Buffers | None = None) -> Any:
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        def answered(message: Result, out: Buffers) -> None:
            if future.done():
                return
            if message.problem is not None:
                future.set_exception(error_of(message.problem))
            else:
                future.set_result(out[0] if out else message.value)

        self._live_worker().call(make, answered, buffers)
        return await self._wait(future)

    async def _wait(self, future: asyncio.Future[Any]) -> Any:
        self._waiting.add(future)
        try:
            return await future
        finally:
            self._waiting.discard(future)

    async def _call(self, method: str, *arguments: Any) -> Any:
        return await self._request(lambda call: HostCall(call, self.name, method, list(arguments)))

    async def join(self, client: int, instance: str = "", epoch: int = 0) -> tuple[int, int, int]:
        number, expected, granted = await self._call("join", client, instance, epoch)
        return number, expected, granted

    async def expected(self, client: int) -> int:
        """The number of the next frame of a client."""
        found: int = await self._call("expected", client)
        return found

    async def describe(self) -> dict[str, Any]:
        found: dict[str, Any] = await self._call("describe")
        return found

    async def tensors(
        self, after: int = 0, most: int | None = None, among: list[int] | None = None
    ) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = await self._call("tensors", after, most, among)
        return found

    async def names(
        self, after: str = "", most: int | None = None, among: list[str] | None = None
    ) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = await self._call("names", after, most, among)
        return found

    async def memory(self, reset_peak: bool = False) -> dict[str, Any]:
        found: dict[str, Any] = await self._call("memory", reset_peak)
        return found

    async def graph(self, ids: list[int] | None, most: int | None = None) -> dict[str, Any]:
        found: dict[str, Any] = await self._call("graph", ids, most)
        return found

    async def profile(self, seconds: float) -> dict[str, Any]:
        found: dict[str, Any] = await self._call("profile", seconds)
        return found

    async def export(self) -> bytes | memoryview:
        found: memoryview = await self._call("export")
        return found

    async def image(self) -> bytes | memoryview:
        found: memoryview = await self._call("image")
        return found

    async def travel(self, what: str, arguments: dict[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = await self._call("travel", what, arguments)
        return found

    async def search(self, wanted: str, name: str) -> dict[str, Any] | None:
        found: dict[str, Any] | None = await self._call("search", wanted, name)
        return found

    async def recorded(self) -> bytes | memoryview:
        found: memoryview = await self._call("recorded")
        return found

    # Groups

    async def prepare_group(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = await self._call("prepare_group", name)
        return found

    async def open_group(self, opening: dict[str, Any]) -> None:
        if self._most_s:
            self._most_s += opening["timeout_s"]  # a frame may also wait for other ranks
        await self._call("open_group", opening)

    async def attach_group(self, name: str, secret: str, addresses: Sequence[tuple[str, int]]) -> bool:
        return bool(await self._call("attach_group", name, secret, addresses))

    async def group_moved(self, name: str, rank: int, address: tuple[str, int]) -> None:
        await self._call("group_moved", name, rank, address)

    async def group_lost(self, name: str, rank: int, reason: str) -> None:
        await self._call("group_lost", name, rank, reason)

    async def close_group(self, name: str) -> None:
        await self._call("close_group", name)

    async def groups(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = await self._call("groups")
        return found

    async def needed(self) -> bool:
        return bool(await self._call("needed"))

    # Close

    def is_stuck(self) -> bool:
        """Whether a cancelled frame or a deleted session has not stopped in time, because it hangs in a library call.
        Only the first frame can be running."""
        grace = self._pool.settings.cancel_patience_s
        if self._closing_since:
            return time.monotonic() - self._closing_since > grace
        first = next(iter(self._frames), None)
        since = None if first is None else self._cancelled.get(first)
        return since is not None and time.monotonic() - max(since, self._first_since) > grace

    @property
    def closing(self) -> bool:
        """Whether the session was deleted but is not closed yet."""
        return bool(self._closing_since)

    @property
    def hopeless(self) -> bool:
        """Whether a deleted session still computes after the time limit of a frame."""
        return self.closing and bool(self._most_s) and time.monotonic() - self._closing_since > self._most_s

    def running(self) -> Frame | None:
        """The running frame."""
        return next(iter(self._frames.values()))[0] if self._frames else None

    def overdue(self) -> Frame | None:
        """The running frame, if it far exceeds its time limit."""
        if not self._frames or not self._most_s or time.monotonic() - self._first_since < self._most_s:
            return None
        return next(iter(self._frames.values()))[0]

    def died(self, death: Death) -> None:
        """Handle the death of the worker."""
        self._death = death
        self._frames.clear()
        self._cancelled.clear()
        self._idle.set()
        for future in list(self._waiting):
            if not future.done():
                future.set_exception(death)
        self._on_death(self, death)

    def drain(self) -> None:
        """Do nothing: the supervisor refuses new frames."""

    async def idle(self) -> None:
        await self._idle.wait()

    async def close(self, keep: bool = False) -> bool:
        worker = self._worker
        if worker is None or self._released or self._death is not None:
            self._closed = True
            return True
        if not keep:
            self._closing_since = self._closing_since or time.monotonic()
        try:
            self._released = bool(await asyncio.wait_for(self._request_close(worker, keep), CLOSE_PATIENCE_S))
        except Death:
            self._released = True  # nothing is left to close
        except TimeoutError:
            log.warning("timeout while a worker closes a session", session=self.name, pid=worker.pid)
        if self._released or not keep:
            self._closed = True
            self._refuse(keep)
        if self._released:
            worker.hosts.pop(self.name, None)
        return self._released

    async def _request_close(self, worker: Worker, keep: bool) -> Any:
        """Like :meth:`_call`, but allowed on a closed session."""
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        def answered(message: Result, _: Buffers) -> None:
            if not future.done():
                # An error means that the session is closed already.
                future.set_result(message.problem is not None or message.value)

        worker.call(lambda call: HostCall(call, self.name, "close", [keep]), answered)
        return await self._wait(future)

    def _refuse(self, keep: bool) -> None:
        for frame, answer in list(self._frames.values()):
            text = "the session is being unloaded to disk; try again" if keep else "the session was deleted"
            error = Unavailable(text) if keep else SessionGone(text)
            answer(Reply(seq=frame.seq, refused=to_problem(error)), [])
        self._frames.clear()
        self._idle.set()
