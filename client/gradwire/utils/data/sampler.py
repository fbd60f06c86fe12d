"""Samplers: the order of a data set's entries. The client draws random orders, without a wait."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Any, Generic, TypeVar

from gradwire_protocol.dtypes import float64
from gradwire_protocol.errors import ArgumentTypeError, ArgumentValueError

from ..._core.dispatch.dispatch import call
from ..._core.surface.creation import as_tensor
from ..._core.surface.generator import Generator, default_generator
from ..._core.tensor.tensor import Tensor

T_co = TypeVar("T_co", covariant=True)


class Sampler(Generic[T_co]):
    """The base of samplers. A subclass defines ``__iter__``, over indices or lists of them."""

    def __init__(self, data_source: Any = None) -> None:
        pass

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError(f"{type(self).__name__} defines no __iter__()")


class SequentialSampler(Sampler[int]):
    """From the first to the last."""

    def __init__(self, data_source: Sized) -> None:
        self.data_source: Sized = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """In random order, or drawn with replacement.

    Args:
        num_samples: how many, by default as many as there are entries.
        generator: where the order comes from; by default it follows :func:`gradwire.manual_seed`.
    """

    def __init__(
        self,
        data_source: Sized,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Generator | None = None,
    ) -> None:
        if not isinstance(replacement, bool):
            raise ArgumentTypeError(f"replacement is a bool, not {replacement!r}")
        self.data_source: Sized = data_source
        self.replacement: bool = replacement
        self._num_samples = num_samples
        self.generator: Generator | None = generator
        if not isinstance(self.num_samples, int) or self.num_samples < 0:
            raise ArgumentValueError(f"num_samples is an int of at least 0, not {self.num_samples!r}")

    @property
    def num_samples(self) -> int:
        """The number of samples, which may change as the data set grows."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        size, count = len(self.data_source), self.num_samples
        # The stream is taken now, the numbers when they are asked for.
        local = (self.generator or default_generator).local()
        if self.replacement:
            for start in range(0, count, 4096):
                yield from local.integers(0, size, min(4096, count - start)).tolist()
            return
        while count > 0 and size > 0:
            yield from local.permutation(size)[:count].tolist()
            count -= size

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """Some indices, in random order."""

    def __init__(self, indices: Sequence[int], generator: Generator | None = None) -> None:
        self.indices: Sequence[int] = indices
        self.generator: Generator | None = generator

    def __iter__(self) -> Iterator[int]:
        for i in (self.generator or default_generator).local().permutation(len(self.indices)).tolist():
            yield self.indices[i]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """Indices drawn with probabilities proportional to weights. One round trip a pass: the server draws."""

    def __init__(
        self,
        weights: Sequence[float] | Tensor,
        num_samples: int,
        replacement: bool = True,
        generator: Generator | None = None,
    ) -> None:
        if not isinstance(num_samples, int) or isinstance(num_samples, bool) or num_samples <= 0:
            raise ArgumentValueError(f"num_samples is an int above 0, not {num_samples!r}")
        if not isinstance(replacement, bool):
            raise ArgumentValueError(f"replacement is a bool, not {replacement!r}")
        self.weights: Tensor = as_tensor(weights, dtype=float64)
        if self.weights.ndim != 1:
            raise ArgumentValueError(f"weights are one number per entry, not of shape {list(self.weights.shape)}")
        self.num_samples: int = num_samples
        self.replacement: bool = replacement
        self.generator: Generator | None = generator

    def __iter__(self) -> Iterator[int]:
        with (self.generator or default_generator).drawing():
            drawn = call("multinomial", self.weights, self.num_samples, self.replacement)
        yield from drawn.tolist()

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """Another sampler's indices in lists of ``batch_size``; the last may be shorter, or is dropped."""

    def __init__(self, sampler: Iterable[Any], batch_size: int, drop_last: bool) -> None:
        if not isinstance(batch_size, int) or isinstance(batch_size, bool) or batch_size <= 0:
            raise ArgumentValueError(f"batch_size is an int above 0, not {batch_size!r}")
        if not isinstance(drop_last, bool):
            raise ArgumentValueError(f"drop_last is a bool, not {drop_last!r}")
        self.sampler: Iterable[Any] = sampler
        self.batch_size: int = batch_size
        self.drop_last: bool = drop_last

    def __iter__(self) -> Iterator[list[int]]:
        batch: list[int] = []
        for index in self.sampler:
            batch.append(index)
            if len(batch) == self.batch_size:
                yield batch
                batch = []
        if batch and not self.drop_last:
            yield batch

    def __len__(self) -> int:
        size = len(self.sampler)  # type: ignore[arg-type]
        return size // self.batch_size if self.drop_last else -(-size // self.batch_size)
