"""Streams of entries: each step is a data set that is iterated, and takes its entries from another."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, ClassVar, Self, TypeVar

from ..collate import default_collate
from ..dataset import Dataset, IterableDataset

__all__ = ["DataChunk", "IterDataPipe", "MapDataPipe", "functional_datapipe"]

Pipe = TypeVar("Pipe", bound=type)


class DataChunk(list[Any]):
    """Entries that belong together: what :class:`Batcher` gives."""

    def raw_iterator(self) -> Iterator[Any]:
        """Over the entries."""
        return iter(self)


class _Steps:
    """Steps are methods, too: ``pipe.map(f)`` is ``Mapper(pipe, f)``."""

    functions: ClassVar[dict[str, Any]] = {}

    def __getattr__(self, attribute_name: str) -> Any:
        if attribute_name in type(self).functions:
            return partial(type(self).functions[attribute_name], self)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {attribute_name!r}")

    @classmethod
    def register_datapipe_as_function(cls, function_name: str, cls_to_register: Any, **options: Any) -> None:
        """Make a step a method of all pipes.

        Raises:
            Exception: when there is one of that name.
        """
        if function_name in cls.functions:
            raise Exception(f"the step {function_name!r} is there already")
        cls.functions[function_name] = cls_to_register

    def __repr__(self) -> str:
        return type(self).__name__


class IterDataPipe(_Steps, IterableDataset[Any]):
    """A stream of entries."""

    functions: ClassVar[dict[str, Any]] = {}

    def reset(self) -> None:
        """Called before another pass; a class that has something to do defines it."""


class MapDataPipe(_Steps, Dataset[Any]):
    """Entries by index."""

    functions: ClassVar[dict[str, Any]] = {}


class functional_datapipe:
    """A decorator that makes a class of pipes a method ``name`` of all pipes."""

    def __init__(self, name: str, enable_df_api_tracing: bool = False) -> None:
        self.name = name

    def __call__(self, cls: Pipe) -> Pipe:
        """Register the class.

        Raises:
            TypeError: for a class that is no pipe.
        """
        for kind in (IterDataPipe, MapDataPipe):
            if isinstance(cls, type) and issubclass(cls, kind):
                kind.register_datapipe_as_function(self.name, cls)
                return cls
        raise TypeError(f"functional_datapipe decorates IterDataPipe and MapDataPipe, not {cls!r}")


class IterableWrapper(IterDataPipe):
    """What can be iterated, as a pipe."""

    def __init__(self, iterable: Iterable[Any], deepcopy: bool = True) -> None:
        self.iterable: Any = iterable

    def __iter__(self) -> Iterator[Any]:
        return iter(self.iterable)

    def __len__(self) -> int:
        return len(self.iterable)


@functional_datapipe("map")
class Mapper(IterDataPipe):
    """A function of each entry, or of a part of it."""

    def __init__(self, datapipe: Any, fn: Callable[..., Any], input_col: Any = None, output_col: Any = None) -> None:
        if input_col is not None or output_col is not None:
            raise NotImplementedError("Mapper(input_col=, output_col=) is not supported: take the column in fn")
        self.datapipe: Any = datapipe
        self.fn: Callable[..., Any] = fn

    def __iter__(self) -> Iterator[Any]:
        return map(self.fn, self.datapipe)

    def __len__(self) -> int:
        return len(self.datapipe)


@functional_datapipe("collate")
class Collator(Mapper):
    """Each entry, a list, as a batch."""

    def __init__(self, datapipe: Any, conversion: Any = None, collate_fn: Callable[..., Any] | None = None) -> None:
        if isinstance(conversion, dict):
            raise NotImplementedError("Collator(conversion=) of columns is not supported: pass a function")
        super().__init__(datapipe, collate_fn or conversion or default_collate)


@functional_datapipe("filter")
class Filter(IterDataPipe):
    """The entries of which a function is true."""

    def __init__(self, datapipe: Any, filter_fn: Callable[[Any], bool], input_col: Any = None) -> None:
        if input_col is not None:
            raise NotImplementedError("Filter(input_col=) is not supported: take the column in filter_fn")
        self.datapipe: Any = datapipe
        self.filter_fn: Callable[[Any], bool] = filter_fn

    def __iter__(self) -> Iterator[Any]:
        for entry in self.datapipe:
            kept = self.filter_fn(entry)
            if not isinstance(kept, bool):
                raise ValueError(f"filter_fn gives True or False, not {type(kept).__name__}")
            if kept:
                yield entry


@functional_datapipe("batch")
class Batcher(IterDataPipe):
    """Entries in lists of ``batch_size``."""

    def __init__(
        self, datapipe: Any, batch_size: int, drop_last: bool = False, wrapper_class: type[DataChunk] = DataChunk
    ) -> None:
        if batch_size <= 0:
            raise AssertionError(f"batch_size is positive, not {batch_size}")
        self.datapipe: Any = datapipe
        self.batch_size: int = batch_size
        self.drop_last: bool = drop_last
        self.wrapper_class: type[DataChunk] = wrapper_class

    def __iter__(self) -> Iterator[Any]:
        batch: list[Any] = []
        for entry in self.datapipe:
            batch.append(entry)
            if len(batch) == self.batch_size:
                yield self.wrapper_class(batch)
                batch = []
        if batch and not self.drop_last:
            yield self.wrapper_class(batch)

    def __len__(self) -> int:
        count = len(self.datapipe)
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)


@functional_datapipe("shuffle")
class Shuffler(IterDataPipe):
    """Entries in a random order, as far as a buffer reaches."""

    def __init__(
        self, datapipe: Any, *, default: bool = True, buffer_size: int = 10000, unbatch_level: int = 0
    ) -> None:
        if buffer_size <= 0:
            raise ValueError(f"buffer_size is positive, not {buffer_size}")
        if unbatch_level:
            raise NotImplementedError("Shuffler(unbatch_level=) is not supported: shuffle before batch")
        self.datapipe: Any = datapipe
        self.buffer_size: int = buffer_size
        self._enabled = default
        self._seed: int | None = None

    def set_shuffle(self, shuffle: bool = True) -> Self:
        """Whether the order is random."""
        self._enabled = shuffle
        return self

    def set_seed(self, seed: int) -> Self:
        """The seed of the next pass."""
        self._seed = seed
        return self

    def __iter__(self) -> Iterator[Any]:
        if not self._enabled:
            yield from self.datapipe
            return
        rng = random.Random(random.getrandbits(64) if self._seed is None else self._seed)
        self._seed = None
        held: list[Any] = []
        for entry in self.datapipe:
            if len(held) < self.buffer_size:
                held.append(entry)
                continue
            at = rng.randrange(len(held))
            held[at], entry = entry, held[at]
            yield entry
        rng.shuffle(held)
        yield from held

    def __len__(self) -> int:
        return len(self.datapipe)


class SequenceWrapper(MapDataPipe):
    """A sequence, or a dictionary, as a pipe."""

    def __init__(self, sequence: Sequence[Any] | dict[Any, Any], deepcopy: bool = True) -> None:
        self.sequence: Any = sequence

    def __getitem__(self, index: Any) -> Any:
        return self.sequence[index]

    def __len__(self) -> int:
        return len(self.sequence)


@functional_datapipe("map")
class MapMapper(MapDataPipe):
    """A function of each entry."""

    def __init__(self, datapipe: Any, fn: Callable[..., Any]) -> None:
        self.datapipe: Any = datapipe
        self.fn: Callable[..., Any] = fn

    def __getitem__(self, index: Any) -> Any:
        return self.fn(self.datapipe[index])

    def __len__(self) -> int:
        return len(self.datapipe)
