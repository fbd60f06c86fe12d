"""Workers of a data loader: threads that fetch batches ahead.

Threads, not processes: tensors are proxies of one connection, which a process could not share, and what a data set does
(reading files, decoding, NumPy) mostly lets other threads run. Each has its own ``get_worker_info()``; memory and the
random generators of ``random`` and ``numpy`` are those of the program.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from queue import SimpleQueue
from typing import Any, NamedTuple

from gradwire_protocol.errors import ArgumentError

from ..._core.context.modes import MODES

_local = threading.local()


class WorkerInfo(NamedTuple):
    """Facts about the current worker: its number, the number of workers, its seed, and the data set."""

    id: int
    num_workers: int
    seed: int
    dataset: Any


def get_worker_info() -> WorkerInfo | None:
    """The worker of this thread, None in the main thread."""
    found: WorkerInfo | None = getattr(_local, "info", None)
    return found


class Failure:
    """A worker's exception, raised when its batch is requested."""

    __slots__ = ("error",)

    def __init__(self, error: BaseException, worker: int) -> None:
        error.add_note(f"raised in worker {worker} of a DataLoader")
        self.error: BaseException = error


END = object()
"""What a worker gives once it has nothing left."""

Fetch = Callable[[Any], Any]


class WorkerThreads:
    """Fetching threads and their results, by task number.

    Args:
        count: how many.
        infos: what each is told of itself.
        start: called in each thread first, with its number; it may be None.
        open: called in each thread for a pass over the data; gives the function that fetches a task.
    """

    def __init__(self, infos: list[WorkerInfo], start: Callable[[int], None] | None, open: Callable[[], Fetch]) -> None:
        self._tasks: list[SimpleQueue[Any]] = [SimpleQueue() for _ in infos]
        self._done: dict[int, Any] = {}
        self._arrived = threading.Condition()
        self._generation = 0
        self._open = open
        for info, tasks in zip(infos, self._tasks, strict=True):
            name = f"gradwire-loader-{info.id}"
            threading.Thread(target=self._work, args=(info, tasks, start), name=name, daemon=True).start()

    def begin(self) -> None:
        """Begin a pass over the data, and discard the rest of another."""
        with self._arrived:
            self._generation += 1
            self._done.clear()

    def give(self, worker: int, number: int, task: Any) -> None:
        """Have a worker fetch a task."""
        self._tasks[worker].put((self._generation, number, task))

    def ready(self, number: int) -> bool:
        """Whether a task is done."""
        return number in self._done

    def take(self, number: int, timeout: float) -> Any:
        """What became of a task, once it is done.

        Raises:
            ArgumentError: when that takes longer than ``timeout`` seconds, if there is a timeout.
            Whatever the worker raised.
        """
        if MODES.capture is not None:
            MODES.capture.refuse("it takes batches that workers fetch")
            MODES.capture.let_others()
        with self._arrived:
            if not self._arrived.wait_for(lambda: number in self._done, timeout or None):
                raise ArgumentError(f"no batch arrived within timeout={timeout} s: the data set is slower than that")
            found = self._done.pop(number)
        if isinstance(found, Failure):
            raise found.error
        return found

    def close(self) -> None:
        """Let the threads end."""
        self.begin()
        for tasks in self._tasks:
            tasks.put(None)

    def _work(self, info: WorkerInfo, tasks: SimpleQueue[Any], start: Callable[[int], None] | None) -> None:
        _local.info = info
        failure: Failure | None = None
        try:
            if start is not None:
                start(info.id)
        except Exception as error:
            failure = Failure(error, info.id)
        generation, fetch = 0, None
        while (task := tasks.get()) is not None:
            now, number, wanted = task
            if now != self._generation:
                continue
            try:
                if generation != now or fetch is None:
                    generation, fetch = now, self._open()
                found = failure or fetch(wanted)
            except Exception as error:
                found = Failure(error, info.id)
            with self._arrived:
                if now == self._generation:
                    self._done[number] = found
                    self._arrived.notify_all()


def shares(iterator: Iterator[Any], size: int | None, drop_last: bool) -> Iterator[list[Any]]:
    """Entries of a stream in lists of ``size``."""
    batch: list[Any] = []
    for entry in iterator:
        batch.append(entry)
        if len(batch) == size:
            yield batch
            batch = []
    if batch and not drop_last:
        yield batch
