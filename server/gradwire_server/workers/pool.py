"""The worker processes of a server: started, watched, replaced, stopped."""

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

from ..metrics import Metrics
from ..settings import Settings, variable
from .wire import Buffers, Message, Ping, Pong, Replied, Result, Setup, Share, Wire

if TYPE_CHECKING:
    from .host import ProcessHost

Answer = Callable[[Any, Buffers], None]

INHERITED: Final = re.compile(
    r"(PATH|HOME|USER|LANG|LANGUAGE|TZ|TMPDIR|VIRTUAL_ENV|LD_LIBRARY_PATH|LD_PRELOAD|XDG_CACHE_HOME"
    r"|(LC|PYTHON|OMP|OPENBLAS|MKL|BLIS|VECLIB|NUMBA|CUDA|CUPY|NVIDIA|GLIBC|MALLOC)_?[A-Z0-9_]*)"
)
"""The variables that a worker is given. None of the server's settings is among them: some are secrets."""

START_PATIENCE_S: Final = 60.0
STOP_PATIENCE_S: Final = 5.0
LINGER_S: Final = 30.0
"""How long a worker without sessions is kept for its key's next one."""

BUSY_CALLS: Final = 5
"""Between two beats; a worker that is given more counts among those that compute at once."""

PAUSES_S: Final = (0.0, 0.1, 0.4, 1.6)
"""Before each attempt to start a worker; then whoever waits for it is told, and may come again."""

log = structlog.get_logger("gradwire.workers")


class Death(Exception):
    """A worker is gone with all that it held.

    Attributes:
        text: how it ended, for people.
        ended: the server ended it.
        overdue: the frame that it was ended for, which ran too long.
        cancelled: or that was cancelled and did not stop; or it was ended for a session that was deleted.
    """

    def __init__(self, text: str, ended: bool = False, overdue: Frame | None = None, cancelled: bool = False) -> None:
        super().__init__(text)
        self.text = text
        self.ended = ended
        self.overdue = overdue
        self.cancelled = cancelled


class Worker:
    """One process, and the calls that it has not answered."""

    def __init__(self, settings: Settings, died: Callable[[Worker, Death], None]) -> None:
        self.settings = settings
        self.hosts: dict[str, ProcessHost] = {}
        self.ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.dead: asyncio.Future[Death] = asyncio.get_running_loop().create_future()
        self.idle_since = time.monotonic()
        self._died = died
        self._calls: dict[int, Answer] = {}
        self._last = 0
        self._asked = 0
        self._shares = 1
        self._pinged = 0
        self._ponged = 0
        self._silent_s = 0.0
        self._ending = ""
        self._overdue: Frame | None = None
        self._cancelled = False
        self._wire = Wire(self._take, self._lost)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The process id; 0 before it was started."""
        return self._process.pid if self._process is not None else 0

    async def start(self) -> None:
        """Start the process; ``ready`` is done when it can be used.

        Raises:
            OSError: when no process can be started.
        """
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        with theirs:
            command = [sys.executable, "-m", "gradwire_server.workers", str(theirs.fileno()), str(os.getpid())]
            environment = {k: v for k, v in os.environ.items() if INHERITED.fullmatch(k)}
            try:
                # In this thread: the process ends with the thread that started it (see worker.end_with). A session
                # of its own: Ctrl-C at a terminal is for the server, which first finishes what runs.
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
        """Send the message that ``make`` makes for a number; ``answer`` gets what comes back, unless it dies."""
        self._last = number = self._last + 1
        self._calls[number] = answer
        self._wire.send(make(number), buffers or ())
        return number

    def _take(self, message: Replied | Result | Pong, buffers: Buffers) -> None:
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
            # Whoever asked is at fault. Raised into the transport, it would cost the worker its life.
            log.error("an answer of a worker was not taken", pid=self.pid, exc_info=error)

    def was_busy(self) -> bool:
        """Whether it was given more than a little to do since this was asked last."""
        before, self._asked = self._asked, self._last
        return self._last - before > BUSY_CALLS

    def share(self, workers: int) -> None:
        """Tell it how many compute at once, if it does not know."""
        if workers != self._shares:
            self._shares = workers
            self._wire.send(Share(workers))

    # The end

    def beat(self, passed: float) -> None:
        """Ask whether it is there; one that has not answered for too long is ended."""
        patience = self.settings.worker_patience_s
        if self._ponged < self._pinged:
            # Not by the clock: a server that was stopped itself has not been waiting.
            self._silent_s += passed
            if self._silent_s > patience:
                self.kill(f"it gave no sign of life for {patience:g} s ({variable('worker_patience_s')})")
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
        """End it, if one of its sessions computes on what nobody wants, and none of the others is lost by that."""
        hosts = list(self.hosts.values())
        stuck = next((host for host in hosts if host.stuck()), None)
        if stuck is not None and (stuck.hopeless or all(host.survives or host.closing for host in hosts)):
            self._overdue, self._cancelled = stuck.running(), True
            self.kill("what was cancelled did not stop")

    def kill(self, reason: str) -> None:
        """End it now."""
        self._ending = self._ending or reason
        if self._process is not None and self._process.poll() is None:
            self._process.kill()

    def end(self) -> None:
        """Let it end: it does when its socket closes."""
        self._ending = self._ending or "it was not needed any more"
        self._wire.close()

    def _lost(self) -> None:
        """The socket is closed: nothing more comes, and soon the process is gone."""
        asyncio.get_running_loop().create_task(self._bury()).add_done_callback(_KEPT.discard)

    async def _bury(self) -> None:
        task = asyncio.current_task()
        assert task is not None
        _KEPT.add(task)
        process = self._process
        assert process is not None
        try:
            code = await asyncio.to_thread(process.wait, STOP_PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            # Its sessions' files are its own until it is really gone.
            code = await asyncio.to_thread(process.wait)
        death = Death(self._ending or _spelled(code), bool(self._ending), self._overdue, self._cancelled)
        self._calls.clear()
        self.dead.set_result(death)
        self._died(self, death)


_KEPT: Final[set[asyncio.Task[None]]] = set()
"""The event loop itself holds tasks only weakly."""


def _spelled(code: int) -> str:
    if code >= 0:
        return f"it ended with exit code {code}"
    try:
        return f"it was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"it was ended by signal {-code}"


class Slot:
    """The place of one key's (or one session's) worker: when a worker dies, the next one takes it.

    Attributes:
        alone: held by the session that does what a worker may have died of, so that one at a time does.
    """

    def __init__(self, key: str) -> None:
        self.key = key
        self.worker: Worker | None = None
        self.alone = asyncio.Lock()
        self.turn = asyncio.Lock()


class Pool:
    """Workers by key, and a spare one, so that nobody waits for a process to start."""

    def __init__(self, settings: Settings, metrics: Metrics) -> None:
        self.settings = settings
        self.metrics = metrics
        self._slots: dict[str, Slot] = {}
        self._workers: set[Worker] = set()
        self._spare: asyncio.Task[Worker] | None = None
        self._closing = False

    def slot(self, key: str) -> Slot:
        """The place of a key's worker."""
        found = self._slots.get(key)
        if found is None:
            found = self._slots[key] = Slot(key)
        return found

    async def worker(self, key: str) -> Worker:
        """The key's worker; it is started if there is none.

        Raises:
            Unavailable: when none can be started.
        """
        slot = self.slot(key)
        async with slot.turn:  # one start for all who wait
            if slot.worker is None:
                slot.worker = await self._next()
                log.info("worker taken", pid=slot.worker.pid)
            return slot.worker

    async def _next(self) -> Worker:
        """The spare worker; another one is started in its place."""
        for pause in PAUSES_S:
            await asyncio.sleep(pause)
            if self._closing:
                raise Unavailable("the server is stopping")
            worker = await self._started()
            if worker is not None:
                self.prepare()
                return worker
        raise Unavailable("no worker process can be started for the session; the server's log tells why")

    async def _started(self) -> Worker | None:
        """The spare worker, if it is usable when it has started."""
        self.prepare()
        spare, self._spare = self._spare, None
        assert spare is not None
        try:
            worker = await spare
        except (OSError, TimeoutError, Death) as error:
            log.error("a worker did not start", reason=str(error) or type(error).__name__)
            return None
        return None if worker.dead.done() else worker

    def prepare(self) -> None:
        """Start a spare worker, unless there is one."""
        if self._spare is None and not self._closing:
            # It belongs to no request, and neither do the lines that the log will have about it.
            self._spare = asyncio.create_task(self._start(), context=contextvars.Context())

    async def _start(self) -> Worker:
        worker = Worker(self.settings, self._died)
        await worker.start()
        self._workers.add(worker)
        await asyncio.wait((worker.ready, worker.dead), timeout=START_PATIENCE_S, return_when=asyncio.FIRST_COMPLETED)
        if worker.dead.done():
            raise worker.dead.result()
        if not worker.ready.done():
            worker.kill("it did not start in time")
            raise TimeoutError(f"it was not ready after {START_PATIENCE_S:g} s")
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
            log.warning("a worker died", pid=worker.pid, how=death.text, sessions=len(hosts))
        for host in hosts:
            host.died(death)

    async def watch(self) -> None:
        """Look after the workers, forever."""
        tick = min(1.0, self.settings.worker_patience_s / 6)
        self.prepare()
        while True:
            before = time.monotonic()
            await asyncio.sleep(tick)
            passed = min(time.monotonic() - before, 2 * tick)
            ready = [worker for worker in self._workers if worker.ready.done()]
            for worker in ready:
                worker.beat(passed)
            busy = sum([worker.was_busy() for worker in ready])
            for worker in ready:
                worker.share(max(busy, 1))
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

    async def close(self) -> None:
        """End all workers, when the server stops."""
        self._closing = True
        if self._spare is not None:
            self._spare.cancel()
        workers = list(self._workers)
        for worker in workers:
            worker.end()
        if workers:
            await asyncio.wait([worker.dead for worker in workers], timeout=2 * STOP_PATIENCE_S)
