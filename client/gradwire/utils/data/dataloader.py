"""``DataLoader``: batches of a data set, uploaded before the program uses them."""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from threading import get_ident
from typing import Any, Final, Generic, TypeVar, cast
from weakref import ref

from gradwire_protocol.errors import ArgumentValueError
from gradwire_protocol.ops.control import GRAD_MODE

from ..._core.context.modes import MODES
from ..._core.dispatch.dispatch import call
from ..._core.session.current_session import current_session
from ..._core.session.profile_ranges import record_function
from ..._core.surface.creation import tensor
from ..._core.surface.generator import Generator, default_generator
from ..._core.surface.stand_ins import stand_ins
from .collate import default_collate, default_convert, gather, sent
from .dataset import Dataset, IterableDataset, _many, rows_on_server
from .sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler
from .workers import END, Fetch, WorkerInfo, WorkerThreads, shares

T_co = TypeVar("T_co", covariant=True)

_SETTLED: Final = frozenset({
    "batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers",
})  # fmt: skip


class _DatasetKind:
    """Whether entries are got by index or one after the other."""

    Map = 0
    Iterable = 1


# Programs ask whether an iterator is one of these: it is not, iterators are generators here.
_BaseDataLoaderIter, _SingleProcessDataLoaderIter, _MultiProcessingDataLoaderIter = stand_ins(
    __name__,
    "_BaseDataLoaderIter _SingleProcessDataLoaderIter _MultiProcessingDataLoaderIter",
    "iter(loader) gives one",
).values()


class DataLoader(Generic[T_co]):
    """Batches of a data set, in an order of choice.

    A batch of a :class:`TensorDataset` is made on the server, and nothing is uploaded but the indices. With workers,
    batches are fetched and collated ahead in threads, and the next ones are uploaded while the program waits for the
    server to compute with the last.

    Args:
        dataset: with ``__getitem__`` and a length, or one that is iterated.
        batch_size: None gives entries one by one.
        shuffle: in a new random order each pass.
        sampler: gives the indices instead; ``batch_sampler`` lists of them.
        num_workers: how many threads fetch ahead; with 0, a batch is fetched when it is asked for.
        collate_fn: makes a batch of a list of entries, by default :func:`default_collate`.
        pin_memory, pin_memory_device, multiprocessing_context, in_order: accepted; nothing here depends on them.
        drop_last: leave out a last batch that is too small.
        timeout: seconds to wait for a worker's batch; 0 waits on.
        worker_init_fn: called in each worker first, with its number.
        generator: where a random order comes from.
        prefetch_factor: how many batches each worker is ahead, by default 2.
        persistent_workers: keep the threads from one pass to the next.
    """

    _pool: WorkerThreads | None = None
    _initialized = False

    def __init__(
        self,
        dataset: Dataset[T_co] | Sequence[T_co],
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Sampler[Any] | Iterable[Any] | None = None,
        batch_sampler: Sampler[Sequence[Any]] | Iterable[Sequence[Any]] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[Any], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None,
        generator: Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        if num_workers < 0:
            raise ArgumentValueError(f"num_workers is at least 0, not {num_workers}")
        if timeout < 0:
            raise ArgumentValueError(f"timeout is at least 0, not {timeout}")
        if num_workers == 0 and prefetch_factor is not None:
            raise ArgumentValueError("prefetch_factor needs num_workers above 0: only workers fetch ahead")
        if prefetch_factor is not None and prefetch_factor < 0:
            raise ArgumentValueError(f"prefetch_factor is at least 0, not {prefetch_factor}")
        if persistent_workers and num_workers == 0:
            raise ArgumentValueError("persistent_workers needs num_workers above 0")
        self.dataset: Any = dataset
        self.num_workers: int = num_workers
        self.prefetch_factor: int | None = 2 if num_workers and prefetch_factor is None else prefetch_factor
        self.pin_memory: bool = pin_memory
        self.pin_memory_device: str = pin_memory_device
        self.timeout: float = timeout
        self.worker_init_fn: Callable[[int], None] | None = worker_init_fn
        self.multiprocessing_context: Any = multiprocessing_context
        self.in_order: bool = in_order
        self.generator: Generator | None = generator
        self.persistent_workers: bool = persistent_workers
        self._is_stream = isinstance(dataset, IterableDataset)
        if self._is_stream:
            if shuffle not in (None, False):
                raise ArgumentValueError("a data set that is iterated has its own order: shuffle does not apply")
            if sampler is not None or batch_sampler is not None:
                raise ArgumentValueError("a data set that is iterated has its own order: no sampler applies")
        if sampler is not None and shuffle:
            raise ArgumentValueError("sampler and shuffle exclude each other")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ArgumentValueError("batch_sampler excludes batch_size, shuffle, sampler and drop_last")
            batch_size = None
        elif batch_size is None and drop_last:
            raise ArgumentValueError("drop_last needs a batch_size")
        if sampler is None and not self._is_stream:
            sized: Any = dataset
            sampler = RandomSampler(sized, generator=generator) if shuffle else SequentialSampler(sized)
        if batch_size is not None and batch_sampler is None and not self._is_stream:
            batch_sampler = BatchSampler(cast(Any, sampler), batch_size, drop_last)
        if self._is_stream and batch_size is not None:
            BatchSampler([], batch_size, drop_last)  # checks both
        self.batch_size: int | None = batch_size
        self.drop_last: bool = drop_last
        self.sampler: Any = sampler
        self.batch_sampler: Any = batch_sampler
        self._batches = batch_size is not None or batch_sampler is not None
        self.collate_fn: Callable[[Any], Any] = collate_fn or (default_collate if self._batches else default_convert)
        self._initialized = True

    def __setattr__(self, name: str, value: Any) -> None:
        if self._initialized and name in _SETTLED:
            raise ArgumentValueError(f"{name} is settled when a {type(self).__name__} is made")
        super().__setattr__(name, value)

    def __len__(self) -> int:
        if not self._is_stream:
            return len(self.batch_sampler if self._batches else self.sampler)
        size = len(self.dataset)
        if self.batch_size is None:
            return size
        return size // self.batch_size if self.drop_last else -(-size // self.batch_size)

    def __iter__(self) -> Iterator[Any]:
        if self.num_workers == 0:
            return _Plain(self)
        return _Ahead(self)

    def check_worker_number_rationality(self) -> None:
        """Accept any number, because workers are threads."""

    # Fetching

    def _orders(self) -> Iterator[Any]:
        """The tasks: an index, a list of them, or None for the next entry of a stream."""
        if self._is_stream:
            while True:
                yield None
        yield from self.batch_sampler if self._batches else self.sampler

    def _opened(self) -> Fetch:
        """A function that fetches a task, for one pass. Arrays of a batch are still on the client."""
        if self._is_stream:
            entries = iter(self.dataset)
            stream = shares(entries, self.batch_size, self.drop_last) if self._batches else entries
            return lambda _: END if (found := next(stream, END)) is END else self._collated(found)
        if not self._batches:
            return lambda index: self._collated(self.dataset[index])
        return self._fetched

    def _fetched(self, indices: Any) -> Any:
        if self.collate_fn is default_collate:
            found = rows_on_server(self.dataset, indices)
            if found is not None:
                return _rows(*found)
        return self._collated(_many(self.dataset, indices))

    def _collated(self, entries: Any) -> Any:
        return gather(entries) if self.collate_fn is default_collate else self.collate_fn(entries)


def _rows(tensors: tuple[Any, ...], indices: Any) -> list[Any]:
    """Rows of tensors on the server: copies, since a program may write to its batch."""
    first, count = indices[0], len(indices)
    if list(indices) == list(range(first, first + count)):
        return [call("clone", call("slice", t, 0, first, first + count, 1)) for t in tensors]
    places = {str(t.device): tensor(indices, device=t.device) for t in tensors}
    return [call("index_select", t, 0, places[str(t.device)]) for t in tensors]


class _Pass:
    """One pass over the data. In profiles each batch is a range that has PyTorch's name."""

    _shown = "_SingleProcessDataLoaderIter"

    def __init__(self, loader: DataLoader[Any]) -> None:
        self._loader = loader
        self._orders = loader._orders()
        self._given = 0
        self._expected: int | None = None
        if loader._is_stream:
            try:
                self._expected = len(loader)
            except (TypeError, NotImplementedError):
                self._expected = None

    def __iter__(self) -> Any:
        return self

    def __len__(self) -> int:
        return len(self._loader)

    def __next__(self) -> Any:
        with record_function(f"enumerate(DataLoader)#{self._shown}.__next__"):
            found = self._next()
        self._given += 1
        if self._expected is not None and self._given > self._expected:
            warnings.warn(
                f"the data set says that it has {self._expected} batches, this is number {self._given}: with several "
                "workers, each should give its share alone",
                UserWarning,
                stacklevel=2,
            )
        return found

    def _next(self) -> Any:
        raise NotImplementedError


class _Plain(_Pass):
    """Fetches each batch on demand."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        super().__init__(loader)
        self._fetch = loader._opened()

    def _next(self) -> Any:
        found = self._fetch(next(self._orders))
        if found is END:
            raise StopIteration
        return sent(found)


class _Ahead(_Pass):
    """Workers fetch batches; while the program waits for the server, those that are there are uploaded."""

    _shown = "_MultiProcessingDataLoaderIter"

    def __init__(self, loader: DataLoader[Any]) -> None:
        super().__init__(loader)
        count = loader.num_workers
        pool = loader._pool
        if pool is None:
            seed = int((loader.generator or default_generator).local().integers(1 << 62))
            infos = [WorkerInfo(i, count, seed + i, loader.dataset) for i in range(count)]
            pool = WorkerThreads(infos, loader.worker_init_fn, loader._opened)
            if loader.persistent_workers:
                loader._pool = pool
        pool.begin()
        self._pool = pool
        self._keeps = loader.persistent_workers
        self._asked = 0
        self._turn = 0
        self._open = [True] * count
        self._tasks: deque[tuple[int, int]] = deque()  # (number, worker), in the order in which batches are given
        self._uploaded: deque[Any] = deque()  # of the first of them
        self._done = False
        self._session = current_session()
        self._thread = get_ident()
        for _ in range(max(loader.prefetch_factor or 0, 1) * count):
            self._ask()
        # The session holds no pass alive: one that is given up goes away, and its threads with it.
        me = ref(self)

        def upload() -> None:
            found = me()
            if found is not None:
                found._upload()

        self._while_waiting = upload
        self._session.reader.while_waiting.append(self._while_waiting)

    def _ask(self) -> None:
        """Give the next worker another task."""
        for _ in self._open:
            worker, self._turn = self._turn, (self._turn + 1) % len(self._open)
            if self._open[worker]:
                break
        else:
            return
        try:
            order = next(self._orders)
        except StopIteration:
            return
        self._pool.give(worker, self._asked, order)
        self._tasks.append((self._asked, worker))
        self._asked += 1

    def _upload(self) -> None:
        """Upload the workers' finished batches in order. Called while the program waits for the server anyway."""
        if get_ident() != self._thread or MODES.maps or MODES.region is not None:
            return
        flags, MODES.flags = MODES.flags, GRAD_MODE
        try:
            while self._tasks and self._pool.ready(self._tasks[0][0]) and len(self._uploaded) < len(self._open) * 2:
                number, worker = self._tasks.popleft()
                try:
                    found = self._pool.take(number, 0)
                    found = END if found is END else sent(found)
                except Exception as error:
                    found = _Raised(error)
                self._uploaded.append((found, worker))
        finally:
            MODES.flags = flags
        self._session.flush()

    def _next(self) -> Any:
        while not self._done:
            if self._uploaded:
                found, worker = self._uploaded.popleft()
            elif self._tasks:
                number, worker = self._tasks.popleft()
                try:
                    found = self._pool.take(number, self._loader.timeout)
                    found = END if found is END else sent(found)
                except Exception:
                    self._ask()
                    raise
            else:
                break
            if found is END:
                self._open[worker] = False
                continue
            self._ask()
            if isinstance(found, _Raised):
                raise found.error
            return found
        self._end()
        raise StopIteration

    def _end(self) -> None:
        if self._done:
            return
        self._done = True
        if self._while_waiting in self._session.reader.while_waiting:
            self._session.reader.while_waiting.remove(self._while_waiting)
        if not self._keeps:
            self._pool.close()

    def __del__(self) -> None:
        if "_while_waiting" in self.__dict__:
            self._end()


class _Raised:
    """An exception during the upload of a batch ahead of its use."""

    __slots__ = ("error",)

    def __init__(self, error: Exception) -> None:
        self.error = error


__all__ = ["DataLoader", "Dataset", "IterableDataset", "Sampler", "default_collate", "default_convert"]
