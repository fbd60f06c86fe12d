"""``torch.utils.data.distributed``: a sampler that gives each of several processes its share of the data."""

from __future__ import annotations

from collections.abc import Iterator, Sized
from math import ceil

import numpy as np

from gradwire_protocol.errors import ArgumentValueError

from ...distributed.process_group import get_rank, get_world_size
from .sampler import Sampler


class DistributedSampler(Sampler[int]):
    """Every ``num_replicas``-th index of an order that all replicas share, beginning at ``rank``.

    Args:
        num_replicas, rank: how many programs there are, and which one this is; by default what
            :mod:`torch.distributed` says.
        shuffle: whether the order is random: the same for all with the same ``seed``, another each :meth:`set_epoch`.
        drop_last: leave indices out so that all have equally many, rather than visit some twice.
    """

    def __init__(
        self, dataset: Sized, num_replicas: int | None = None, rank: int | None = None, shuffle: bool = True,
        seed: int = 0, drop_last: bool = False,
    ) -> None:  # fmt: skip
        if num_replicas is None:
            num_replicas = get_world_size()
        if rank is None:
            rank = get_rank()
        if not 0 <= rank < num_replicas:
            raise ArgumentValueError(f"rank is from 0 to {num_replicas - 1}, not {rank}")
        self.dataset: Sized = dataset
        self.num_replicas: int = num_replicas
        self.rank: int = rank
        self.epoch: int = 0
        self.shuffle: bool = shuffle
        self.seed: int = seed
        self.drop_last: bool = drop_last
        size = len(dataset)
        self.num_samples: int = size // num_replicas if drop_last and size % num_replicas else ceil(size / num_replicas)
        self.total_size: int = self.num_samples * num_replicas

    def __iter__(self) -> Iterator[int]:
        size = len(self.dataset)
        order = list(range(size))
        if self.shuffle:
            order = np.random.Generator(np.random.PCG64([self.seed, self.epoch])).permutation(size).tolist()
        if not self.drop_last and order:
            order = (order * ceil(self.total_size / size))[: self.total_size]
        return iter(order[self.rank : self.total_size : self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Use the order of another epoch."""
        self.epoch = epoch
