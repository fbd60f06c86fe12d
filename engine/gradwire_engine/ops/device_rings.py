"""The rings of :mod:`.host_rings` between GPUs, by NCCL's copies.

NCCL's own reductions add in an order of its own choice. Here it only copies, and the sums are ours, in the order of the
other rings: a tensor has the same bits whichever way it went.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from ..runtime.arrays import DeviceArray, Namespace, dtype_of
from ..runtime.nccl import Ring
from .host_rings import REDUCE, Segments, divide, pieces, segments_of

PIECE_BYTES: Final = 4 << 20
"""The size of the pieces that go along a chain."""


def _reduce(xp: Namespace, op: str, taken: DeviceArray, mine: DeviceArray) -> None:
    """Reduce what came into ``mine``; half precision through float32, as on the CPU."""
    function = getattr(xp, REDUCE[op].__name__)
    if dtype_of(mine).is_low_precision:
        mine[...] = function(taken.astype(np.float32), mine.astype(np.float32)).astype(mine.dtype)
    else:
        function(taken, mine, out=mine)


def _divide(xp: Namespace, sums: DeviceArray, ranks: int) -> None:
    if dtype_of(sums).is_low_precision:
        by = np.float32(sums.dtype.type(ranks))
        sums[...] = xp.divide(sums.astype(np.float32), by).astype(sums.dtype)
    else:
        divide(xp, sums, ranks)


def scatter_reduced(ring: Ring, values: DeviceArray, segments: Segments, op: str) -> None:
    """Reduce segment r, over all ranks, into ``values`` of rank r."""
    ranks, rank = ring.world_size, ring.rank
    after, before = (rank + 1) % ranks, (rank - 1) % ranks
    room = ring.xp.empty(max(end - begin for begin, end in segments), values.dtype)
    for step in range(1, ranks):
        begin, end = segments[(rank - step) % ranks]
        sent = values[begin:end]
        begin, end = segments[(rank - 1 - step) % ranks]
        mine, taken = values[begin:end], room[: end - begin]
        ring.exchange([(after, sent)], [(before, taken)])
        if mine.size:
            _reduce(ring.xp, op, taken, mine)
            if op == "avg" and step == ranks - 1:
                _divide(ring.xp, mine, ranks)


def gather_round(ring: Ring, values: DeviceArray, segments: Segments) -> None:
    """Copy segment r from rank r into ``values`` of all."""
    ranks, rank = ring.world_size, ring.rank
    after, before = (rank + 1) % ranks, (rank - 1) % ranks
    for step in range(1, ranks):
        begin, end = segments[(rank - step + 1) % ranks]
        sent = values[begin:end]
        begin, end = segments[(rank - step) % ranks]
        ring.exchange([(after, sent)], [(before, values[begin:end])])


def all_reduced(ring: Ring, values: DeviceArray, op: str) -> None:
    """Reduce ``values`` of all ranks, element by element; each has the result there then."""
    segments = segments_of(values.size, ring.world_size)
    scatter_reduced(ring, values, segments, op)
    gather_round(ring, values, segments)


def reduced_to(ring: Ring, values: DeviceArray, dst: int, op: str) -> None:
    """Reduce ``values`` of all ranks into those of rank ``dst``, along a chain: each rank sends one piece on while it
    receives the next one."""
    ranks, rank = ring.world_size, ring.rank
    after, before, first = (rank + 1) % ranks, (rank - 1) % ranks, (dst + 1) % ranks
    along = [values[begin:end] for begin, end in pieces((0, values.size), values.itemsize, PIECE_BYTES)]
    room = ring.xp.empty(max((piece.size for piece in along), default=0), values.dtype)
    done: list[DeviceArray] = []
    for mine in [*along, None]:
        sends = [(after, piece) for piece in done if rank != dst]
        taken = room[: mine.size] if mine is not None and rank != first else None
        if sends or taken is not None:
            ring.exchange(sends, [] if taken is None else [(before, taken)])
        if mine is not None and taken is not None:
            _reduce(ring.xp, op, taken, mine)
        done = [] if mine is None else [mine]
    if op == "avg" and rank == dst and values.size:
        _divide(ring.xp, values, ranks)


def passed_on(ring: Ring, values: DeviceArray, src: int) -> None:
    """Copy the values of rank ``src`` to all."""
    ring.broadcast(values, src)


def exchanged(
    ring: Ring, sends: Sequence[tuple[int, DeviceArray]], receives: Sequence[tuple[int, DeviceArray]]
) -> None:
    """Send arrays to ranks, and receive others."""
    ring.exchange(sends, receives)
