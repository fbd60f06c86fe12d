"""The worker processes of a server: start, supervision, replacement and stop."""

from __future__ import annotations

import asyncio
import contextvars
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import structlog

from gradwire_protocol.errors import Unavailable
from gradwire_protocol.frames import Frame

from ..observability.metrics import Metrics
from ..settings.settings import Settings, variable
from .wire import Buffers, ComputeShare, Message, Ping, Pong, Replied, Result, Setup, Wire

if TYPE_CHECKING:
    from .host import ProcessHost

Answer = Callable[[Any, Buffers], None]

INHERITED: Final = re.compile(
    r"(PATH|HOME|USER|LANG|LANGUAGE|TZ|TMPDIR|VIRTUAL_ENV|LD_LIBRARY_PATH|LD_PRELOAD|XDG_CACHE_HOME"
    r"|(LC|PYTHON|OMP|OPENBLAS|MKL|BLIS|VECLIB|NUMBA|CUDA|CUPY|NVIDIA|GLIBC|MALLOC)_?[A-Z0-9_]*)"
)
"""The variables that a worker inherits. The server's settings are excluded, because some are secrets."""

PROGRAM: Final = ("-m", "gradwire_server.workers")
"""What Python runs; tests put a program of their own around it."""

START_PATIENCE_S: Final = 60.0
STOP_PATIENCE_S: Final = 5.0
LINGER_S: Final = 30.0
"""How long a worker without sessions is kept for its key's next session."""

BUSY_CALLS: Final = 5
"""A worker with more calls than this between two heartbeats counts as busy."""

PAUSES_S: Final = (0.0, 0.1, 0.4, 1.6)
"""The pause before each attempt to start a worker. After the last one the request fails and may be retried."""

log = structlog.get_logger("gradwire.workers")


class Death(Exception):
    """A worker process has died.

    Attributes:
        text: how it ended.
        ended: the server killed it.
        overdue: the frame that it was killed for.
        cancelled: it was killed because a cancelled frame or a deleted session did not stop.
    """

    def __init__(self, text: str, ended: bool = False, overdue: Frame | None = None, cancelled: bool = False) -> None:
        super().__init__(text)
        self.text = text
        self.ended = ended
        self.overdue = overdue
        self.cancelled = cancelled


class Worker:
    """One process and its unanswered calls."""

    def __init__(self, settings: Settings, died: Callable[[Worker, Death], None]) -> None:
        self.settings = settings
        self.hosts: dict[str, ProcessHost] = {}
        self.ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.dead: asyncio.Future[Death] = asyncio.get_running_loop().create_future()
        self.idle_since = time.monotonic()
        self._died = died
        self._calls: dict[int, Answer] = {}
        self._last = 0
        self._last_checked = 0
        self._busy_workers = 1
        self._pinged = 0
        self._ponged = 0
        self._silent_s = 0.0
        self._kill_reason = ""
        self._overdue: Frame | None = None
        self._cancelled = False
        self._wire = Wire(self._on_message, self._on_closed)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The process id; 0 before the start."""
        return self._process.pid if self._process is not None else 0

    @property
    def unanswered(self) -> int:
        """How many calls it has not answered yet."""
        return len(self._calls)

    @property
    def state(self) -> str:
        """``starting``, ``spare`` (without sessions), ``busy`` or ``idle``."""
        if not self.ready.done():
            return "starting"
        if not self.hosts:
            return "spare"
        return "busy" if any(host.pending for host in self.hosts.values()) else "idle"

    async def start(self) -> None:
        """Start the process; ``ready`` is done when it accepts calls.

        Raises:
            OSError: when the process cannot be started.
        """
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        with theirs:
            command = [sys.executable, *PROGRAM, str(theirs.fileno()), str(os.getpid())]
            environment = {k: v for k, v in os.environ.items() if INHERITED.fullmatch(k)}
            try:
                # In this thread, because the process dies with the thread that started it (see worker.end_with). In a
                # new session, so that Ctrl-C in a terminal reaches only the server, which finishes running frames.
                self._process = subprocess.Popen(  # noqa: ASYNC220
                    command, env=environment, pass_fds=(theirs.fileno(),), stdin=subprocess.DEVNULL,
                    stdout=2, start_new_session=True,
                )  # fmt: skip
            except OSError:
                ours.close()
                raise
        ours.setblocking(False)
        await asyncio.get_running_loop().create_unix_connection(lambda: self._wire, sock=ours)
        settings = self.settings
        policy = settings.journal_policy()
        cache = None if settings.cache_dir is None else str(settings.cache_dir)
        self._wire.send(
            Setup(
                settings.max_worker_bytes, settings.log_level, settings.log_format, policy, settings.compiled_kernels,
                cache, settings.compute_threads, settings.spin_s,
            )
        )  # fmt: skip

    # Calls

    def call(self, make: Callable[[int], Message], answer: Answer, buffers: Buffers | None = None) -> int:
        """Send the message that ``make`` returns for a call number. ``answer`` gets the response, unless the worker
        dies.
        """
        self._last = number = self._last + 1
        self._calls[number] = answer
        self._wire.send(make(number), buffers or ())
        return number

    def _on_message(self, message: Replied | Result | Pong, buffers: Buffers) -> None:
        if isinstance(message, Pong):
            self._ponged = message.number
            self._silent_s = 0.0
            if not self.ready.done():
                self.ready.set_result(None)
            return
        answer = self._calls.pop(message.call, None)
        if answer is None:
            return
        try:
            answer(message, buffers)
        except Exception as error:
            # An exception in the transport would close the worker's connection.
            log.error("handling a worker's response failed", pid=self.pid, exc_info=error)

    def was_busy(self) -> bool:
        """Whether it got more than ``BUSY_CALLS`` calls since the last check."""
        before, self._last_checked = self._last_checked, self._last
        return self._last - before > BUSY_CALLS

    def set_busy_workers(self, workers: int) -> None:
        """Send it the number of busy workers, if that has changed."""
        if workers != self._busy_workers:
            self._busy_workers = workers
            self._wire.send(ComputeShare(workers))

    # Death

    def heartbeat(self, passed: float) -> None:
        """Send a ping, and kill the worker if it does not respond or hangs."""
        patience = self.settings.worker_patience_s
        if self._ponged < self._pinged:
            # Do not use the clock: a suspended server has not been waiting.
            self._silent_s += passed
            if self._silent_s > patience:
                self.kill(f"it sent no heartbeat for {patience:g} s ({variable('worker_patience_s')})")
                return
        else:
            self._silent_s = 0.0
            self._pinged += 1
            self._wire.send(Ping(self._pinged))
        for host in self.hosts.values():
            if (frame := host.overdue()) is not None:
                self._overdue = frame
                self.kill("a frame ran too long")
                return
        self._end_stuck()

    def _end_stuck(self) -> None:
        """Kill the worker if a session does not stop cancelled work and no other session would be lost."""
        hosts = list(self.hosts.values())
        stuck = next((host for host in hosts if host.is_stuck()), None)
        if stuck is not None and (stuck.hopeless or all(host.survives or host.closing for host in hosts)):
            self._overdue, self._cancelled = stuck.running(), True
            self.kill("a cancelled frame did not stop")

    def kill(self, reason: str) -> None:
        """Kill the process."""
        self._kill_reason = self._kill_reason or reason
        if self._process is not None and self._process.poll() is None:
            self._process.kill()

    def end(self) -> None:
        """Close its socket, which ends the process."""
        self._kill_reason = self._kill_reason or "it was no longer needed"
        self._wire.close()

    def _on_closed(self) -> None:
        """Handle the end of the connection: the process is about to end."""
        asyncio.get_running_loop().create_task(self._reap()).add_done_callback(_TASKS.discard)

    async def _reap(self) -> None:
        task = asyncio.current_task()
        assert task is not None
        _TASKS.add(task)
        process = self._process
        assert process is not None
        try:
            code = await asyncio.to_thread(process.wait, STOP_PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            # The process owns its sessions' files until it has ended.
            code = await asyncio.to_thread(process.wait)
        death = Death(self._kill_reason or _exit_text(code), bool(self._kill_reason), self._overdue, self._cancelled)
        self._calls.clear()
        self.dead.set_result(death)
        self._died(self, death)


_TASKS: Final[set[asyncio.Task[None]]] = set()
"""The event loop holds only weak references to tasks."""


def _exit_text(code: int) -> str:
    if code >= 0:
        return f"it exited with code {code}"
    try:
        return f"it was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"it was killed by signal {-code}"


class Slot:
    """The slot of one key's or one session's worker. A new worker takes it after a death.

    Attributes:
        alone: held by a session that reruns a call that may have crashed a worker, so that only one does.
    """

    def __init__(self, key: str) -> None:
        self.key = key
        self.worker: Worker | None = None
        self.alone = asyncio.Lock()
        self.turn = asyncio.Lock()


class WorkerPool:
    """Workers by key, and a spare worker, so that new keys do not wait for a process to start."""

    def __init__(self, settings: Settings, metrics: Metrics) -> None:
        self.settings = settings
        self.metrics = metrics
        self._slots: dict[str, Slot] = {}
        self._workers: set[Worker] = set()
        self._spare: asyncio.Task[Worker] | None = None
        self._closing = False

    def slot(self, key: str) -> Slot:
        """The slot of a key's worker."""
        found = self._slots.get(key)
        if found is None:
            found = self._slots[key] = Slot(key)
        return found

    async def worker(self, key: str) -> Worker:
        """The key's worker, started if necessary.

        Raises:
            Unavailable: when no worker can be started.
        """
        slot = self.slot(key)
        async with slot.turn:  # one start for all waiting calls
            if slot.worker is None:
                slot.worker = await self._take_spare()
                log.info("worker assigned", pid=slot.worker.pid)
            return slot.worker

    async def _take_spare(self) -> Worker:
        """The spare worker. Starts another spare one."""
        for pause in PAUSES_S:
            await asyncio.sleep(pause)
            if self._closing:
                raise Unavailable("the server is stopping")
            worker = await self._wait_for_spare()
            if worker is not None:
                self.prepare()
                return worker
        raise Unavailable("cannot start a worker process for the session; the server's log has the reason")

    async def _wait_for_spare(self) -> Worker | None:
        """Wait for the spare worker; ``None`` if its start failed."""
        self.prepare()
        spare, self._spare = self._spare, None
        assert spare is not None
        try:
            worker = await spare
        except (OSError, TimeoutError, Death) as error:
            log.error("starting a worker failed", reason=str(error) or type(error).__name__)
            return None
        return None if worker.dead.done() else worker

    def prepare(self) -> None:
        """Start a spare worker, unless there is one."""
        if self._spare is None and not self._closing:
            # An empty context, so that its log lines do not carry the current request's id.
            self._spare = asyncio.create_task(self._start(), context=contextvars.Context())

    async def _start(self) -> Worker:
        worker = Worker(self.settings, self._died)
        await worker.start()
        self._workers.add(worker)
        await asyncio.wait((worker.ready, worker.dead), timeout=START_PATIENCE_S, return_when=asyncio.FIRST_COMPLETED)
        if worker.dead.done():
            raise worker.dead.result()
        if not worker.ready.done():
            worker.kill("timeout at start")
            raise TimeoutError(f"not ready after {START_PATIENCE_S:g} s")
        return worker

    def _died(self, worker: Worker, death: Death) -> None:
        self._workers.discard(worker)
        for slot in self._slots.values():
            if slot.worker is worker:
                slot.worker = None
        if self._spare is not None and self._spare.done() and not self._spare.cancelled():
            if self._spare.exception() is None and self._spare.result() is worker:
                self._spare = None
        hosts, worker.hosts = list(worker.hosts.values()), {}
        if hosts:
            how = "cancelled" if death.cancelled else "hung" if death.ended else "died"
            self.metrics.worker_restarts.labels(how).inc()
            log.warning("worker died", pid=worker.pid, how=death.text, sessions=len(hosts))
        for host in hosts:
            host.died(death)

    async def watch(self) -> None:
        """Supervise the workers, forever."""
        tick = min(1.0, self.settings.worker_patience_s / 6)
        self.prepare()
        while True:
            before = time.monotonic()
            await asyncio.sleep(tick)
            passed = min(time.monotonic() - before, 2 * tick)
            ready = [worker for worker in self._workers if worker.ready.done()]
            for worker in ready:
                worker.heartbeat(passed)
            busy = sum([worker.was_busy() for worker in ready])
            for worker in ready:
                worker.set_busy_workers(max(busy, 1))
            self._end_idle()

    def _end_idle(self) -> None:
        now = time.monotonic()
        for key, slot in list(self._slots.items()):
            worker = slot.worker
            if worker is not None and worker.hosts:
                worker.idle_since = now
            elif not slot.turn.locked() and not slot.alone.locked():
                if worker is None:
                    del self._slots[key]
                elif now - worker.idle_since > LINGER_S:
                    slot.worker = None
                    worker.end()

    def describe(self) -> list[dict[str, Any]]:
        """The worker processes: process id, state, sessions, and calls that are not answered yet."""
        return [
            {
                "id": str(each.pid), "state": each.state, "sessions": sorted(each.hosts), "calls": each.unanswered,
            }
            for each in sorted(self._workers, key=lambda each: each.pid)
        ]  # fmt: skip

    async def close(self) -> None:
        """End all workers at the server's stop."""
        self._closing = True
        if self._spare is not None:
            self._spare.cancel()
        workers = list(self._workers)
        for worker in workers:
            worker.end()
        if workers:
            await asyncio.wait([worker.dead for worker in workers], timeout=2 * STOP_PATIENCE_S)
