"""Data sets: anything with ``__getitem__`` and a length, or anything that iterates."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from math import floor, isclose
from typing import Any, Generic, TypeVar, cast

from gradwire_protocol.errors import ArgumentValueError

from ..._core.surface.generator import Generator, default_generator
from ..._core.tensor.tensor import Tensor

T_co = TypeVar("T_co", covariant=True)
Entry = TypeVar("Entry")


class Dataset(Generic[T_co]):
    """A data set with an entry per key. A subclass defines ``__getitem__``, and usually ``__len__``.

    One that can fetch many entries at once may define ``__getitems__(indices)``, which returns a list of them.
    """

    def __getitem__(self, index: Any) -> T_co:
        raise NotImplementedError(f"{type(self).__name__} defines no __getitem__()")

    def __add__(self, other: Dataset[Any]) -> ConcatDataset[Any]:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T_co]):
    """A data set that is iterated, for data that come as a stream. A subclass defines ``__iter__``.

    With several workers each iterates over all of it, unless it asks :func:`get_worker_info` for its share.
    """

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError(f"{type(self).__name__} defines no __iter__()")

    def __add__(self, other: Dataset[Any]) -> ChainDataset:  # type: ignore[override]
        return ChainDataset([self, cast(Any, other)])


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """Rows of tensors of equal length. They are on the server, which also makes the batches."""

    def __init__(self, *tensors: Tensor) -> None:
        lengths = {len(t) for t in tensors}
        if len(lengths) > 1:
            raise AssertionError(f"tensors of a data set have equally many rows, these have {sorted(lengths)}")
        self.tensors: tuple[Tensor, ...] = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(t[index] for t in self.tensors)

    def __len__(self) -> int:
        return len(self.tensors[0])


class StackDataset(Dataset[Any]):
    """Entries of several data sets side by side: tuples of positional ones, dictionaries of named ones."""

    datasets: Any

    def __init__(self, *args: Dataset[Any], **kwargs: Dataset[Any]) -> None:
        if args and kwargs:
            raise ArgumentValueError("data sets are all positional (tuples come out) or all named (dictionaries do)")
        if not args and not kwargs:
            raise ArgumentValueError("StackDataset needs at least one data set")
        self.datasets = args or kwargs
        given: Any = args or kwargs.values()
        lengths = {len(d) for d in given}
        if len(lengths) > 1:
            raise ArgumentValueError(f"stacked data sets are equally long, these have {sorted(lengths)} entries")
        self._length = lengths.pop()

    def __getitem__(self, index: Any) -> Any:
        if isinstance(self.datasets, dict):
            return {k: d[index] for k, d in self.datasets.items()}
        return tuple(d[index] for d in self.datasets)

    def __getitems__(self, indices: Sequence[Any]) -> list[Any]:
        """Many entries at once."""
        if isinstance(self.datasets, dict):
            columns = {k: _many(d, indices) for k, d in self.datasets.items()}
            return [{k: column[i] for k, column in columns.items()} for i in range(len(indices))]
        return list(zip(*(_many(d, indices) for d in self.datasets), strict=True))

    def __len__(self) -> int:
        return self._length


def _many(dataset: Any, indices: Sequence[Any]) -> list[Any]:
    fetch = getattr(dataset, "__getitems__", None)
    if not callable(fetch):
        return [dataset[i] for i in indices]
    found: list[Any] = fetch(indices)
    if len(found) != len(indices):
        raise ArgumentValueError(
            f"__getitems__ of {type(dataset).__name__} gave {len(found)} entries for {len(indices)} indices"
        )
    return found


class ConcatDataset(Dataset[T_co]):
    """Several data sets, one after the other."""

    def __init__(self, datasets: Iterable[Dataset[T_co]]) -> None:
        self.datasets: list[Dataset[T_co]] = list(datasets)
        if not self.datasets:
            raise AssertionError("ConcatDataset needs at least one data set")
        if any(isinstance(d, IterableDataset) for d in self.datasets):
            raise AssertionError("a data set that is iterated has no length: ChainDataset joins such ones")
        self.cumulative_sizes: list[int] = list(accumulate(len(cast(Any, d)) for d in self.datasets))

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, index: int) -> T_co:
        if index < 0:
            if -index > len(self):
                raise ArgumentValueError(f"index {index} is out of range for {len(self)} entries")
            index += len(self)
        at = bisect_right(self.cumulative_sizes, index)
        return self.datasets[at][index - (self.cumulative_sizes[at - 1] if at else 0)]


class ChainDataset(IterableDataset[Any]):
    """Several data sets that are iterated, one after the other."""

    def __init__(self, datasets: Iterable[Dataset[Any]]) -> None:
        self.datasets: Iterable[Dataset[Any]] = datasets

    def __iter__(self) -> Iterator[Any]:
        for dataset in self.datasets:
            _check_iterable(dataset)
            yield from cast(Any, dataset)

    def __len__(self) -> int:
        total = 0
        for dataset in self.datasets:
            _check_iterable(dataset)
            total += len(cast(Any, dataset))
        return total


def _check_iterable(dataset: Any) -> None:
    if not isinstance(dataset, IterableDataset):
        raise AssertionError(f"ChainDataset joins data sets that are iterated, not {type(dataset).__name__}")


class Subset(Dataset[T_co]):
    """The entries of a data set at some indices."""

    def __init__(self, dataset: Dataset[T_co], indices: Sequence[Any]) -> None:
        self.dataset: Dataset[T_co] = dataset
        self.indices: Sequence[Any] = indices

    def __getitem__(self, index: Any) -> T_co:
        if isinstance(index, list):
            return self.dataset[[self.indices[i] for i in index]]
        return self.dataset[self.indices[index]]

    def __getitems__(self, indices: Sequence[Any]) -> list[Any]:
        """Many entries at once."""
        return _many(self.dataset, [self.indices[i] for i in indices])

    def __len__(self) -> int:
        return len(self.indices)


def random_split(
    dataset: Dataset[Entry], lengths: Sequence[float], generator: Generator | None = default_generator
) -> list[Subset[Entry]]:
    """Disjoint random subsets of these lengths, or of these shares of the whole, which add up to 1.

    What shares leave over goes to the first subsets, one entry each. No round trip.

    Raises:
        ArgumentValueError: when the lengths do not add up.
    """
    size = len(cast(Any, dataset))
    if isclose(sum(lengths), 1) and sum(lengths) <= 1:
        for i, share in enumerate(lengths):
            if not 0 <= share <= 1:
                raise ArgumentValueError(f"share {i} is {share}, it must be from 0 to 1")
        counts = [floor(size * share) for share in lengths]
        for i in range(size - sum(counts)):
            counts[i % len(counts)] += 1
    else:
        counts = [int(n) for n in lengths]
        if sum(lengths) != size:
            raise ArgumentValueError(f"the lengths add up to {sum(lengths)}, the data set has {size} entries")
    order = (generator or default_generator).local().permutation(size).tolist()
    ends = list(accumulate(counts))
    return [Subset(dataset, order[end - count : end]) for end, count in zip(ends, counts, strict=True)]


def rows_on_server(dataset: Any, indices: Sequence[int]) -> tuple[Any, Sequence[int]] | None:
    """The tensors behind a :class:`TensorDataset`, also through subsets, and the rows wanted; None for other data."""
    while type(dataset) is Subset:
        indices = [dataset.indices[i] for i in indices]
        dataset = dataset.dataset
    if type(dataset) is not TensorDataset or not all(isinstance(t, Tensor) for t in dataset.tensors):
        return None
    size = len(dataset)
    if not indices or not all(type(i) is int and -size <= i < size for i in indices):
        return None
    return dataset.tensors, [i % size for i in indices]


__all__ = [
    "ChainDataset", "ConcatDataset", "Dataset", "IterableDataset", "StackDataset", "Subset", "TensorDataset",
    "random_split",
]  # fmt: skip
