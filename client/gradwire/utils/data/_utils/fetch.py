"""``torch.utils.data._utils.fetch``: entries of a data set for a batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class _BaseDatasetFetcher:
    def __init__(self, dataset: Any, auto_collation: bool, collate_fn: Callable[..., Any], drop_last: bool) -> None:
        self.dataset = dataset
        self.auto_collation = auto_collation
        self.collate_fn = collate_fn
        self.drop_last = drop_last

    def fetch(self, possibly_batched_index: Any) -> Any:
        """A batch, or one entry."""
        raise NotImplementedError


class _MapDatasetFetcher(_BaseDatasetFetcher):
    def fetch(self, possibly_batched_index: Any) -> Any:
        """The entries of these indices, or of this one, as a batch."""
        if not self.auto_collation:
            return self.collate_fn(self.dataset[possibly_batched_index])
        many = getattr(self.dataset, "__getitems__", None)
        found = many(possibly_batched_index) if many else [self.dataset[i] for i in possibly_batched_index]
        return self.collate_fn(found)


class _IterableDatasetFetcher(_BaseDatasetFetcher):
    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.dataset_iter = iter(self.dataset)
        self.ended = False

    def fetch(self, possibly_batched_index: Any) -> Any:
        """As many of the next entries as there are indices, as a batch."""
        if self.ended:
            raise StopIteration
        if not self.auto_collation:
            return self.collate_fn(next(self.dataset_iter))
        found = []
        for _ in possibly_batched_index:
            try:
                found.append(next(self.dataset_iter))
            except StopIteration:
                self.ended = True
                break
        if not found or (self.drop_last and len(found) < len(possibly_batched_index)):
            raise StopIteration
        return self.collate_fn(found)
