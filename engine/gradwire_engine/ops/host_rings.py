"""Rings through host memory (Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of
workstations", 2009), and messages straight to the rank that needs them.

Tensors go round in chunks, so that ranks reduce one chunk while the next one travels. Which rank's values come first in
the sum of a segment depends on the segment alone. Everything happens in the tensors' own dtype.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np

from ..runtime.arrays import Array, Namespace
from ..runtime.lane import Lane

CHUNK_BYTES: Final = 1 << 18
"""The size of the pieces that travel on their own."""

REDUCE: Final[dict[str, Callable[..., Any]]] = {
    "sum": np.add, "product": np.multiply, "min": np.minimum, "max": np.maximum, "avg": np.add,
    "band": np.bitwise_and, "bor": np.bitwise_or, "bxor": np.bitwise_xor,
}  # fmt: skip

Segments = Sequence[tuple[int, int]]


def segments_of(count: int, ranks: int) -> Segments:
    """Where the segments of a tensor with ``count`` elements begin and end, one for each rank."""
    size, more = divmod(count, ranks)
    edges = [r * size + min(r, more) for r in range(ranks + 1)]
    return list(pairwise(edges))


def pieces(segment: tuple[int, int], itemsize: int, nbytes: int = CHUNK_BYTES) -> Segments:
    """Where the pieces of a segment begin and end, of so many bytes at most."""
    begin, end = segment
    step = max(nbytes // itemsize, 1)
    return [(at, min(at + step, end)) for at in range(begin, end, step)]


def divide(xp: Namespace, sums: Array, ranks: int) -> None:
    """Make means of sums; real and imaginary parts one by one, which is the same on all array libraries."""
    parts = sums.view(sums.real.dtype) if sums.dtype.kind == "c" else sums
    xp.divide(parts, parts.dtype.type(ranks), out=parts)


def _bytes(values: Array) -> bytes:
    return values.tobytes()


def _final(values: Array) -> memoryview:
    """The bytes of values that nobody writes to any more: they need no copy."""
    return values.view(np.uint8).data


def _take(group: Lane, peer: int, into: Array) -> Array:
    """The next message of a peer as an array like ``into``."""
    data = group.receive(peer)
    if len(data) != into.nbytes:
        raise group.error(
            peer, f"{group.named(peer)} sent {len(data):,} bytes where rank {group.rank} expects {into.nbytes:,}"
        )
    return np.frombuffer(data, into.dtype)


def scatter_reduced(group: Lane, values: Array, segments: Segments, op: str, onward: bool = False) -> None:
    """Reduce segment r, over all ranks, into ``values`` of rank r. The sum begins with the rank after that one.

    ``onward`` sends each reduced chunk on at once, as the first step of :func:`gather_round`.
    """
    ranks, rank = group.world_size, group.rank
    if ranks == 1:
        return
    after, before, reduce = (rank + 1) % ranks, (rank - 1) % ranks, REDUCE[op]
    for begin, end in pieces(segments[(rank - 1) % ranks], values.itemsize):
        group.send(after, _bytes(values[begin:end]))
    for step in range(1, ranks):
        last = step == ranks - 1
        for begin, end in pieces(segments[(rank - 1 - step) % ranks], values.itemsize):
            mine = values[begin:end]
            reduce(_take(group, before, mine), mine, out=mine)
            if last and op == "avg":
                divide(np, mine, ranks)
            if onward and last:
                group.send(after, _final(mine))
            elif not last:
                group.send(after, _bytes(mine))


def gather_round(group: Lane, values: Array, segments: Segments, begun: bool = False) -> None:
    """Copy segment r from rank r into ``values`` of all. ``begun``: each rank has sent its own already, and nobody
    writes to ``values`` afterwards."""
    ranks, rank = group.world_size, group.rank
    after, before = (rank + 1) % ranks, (rank - 1) % ranks
    if ranks > 1 and not begun:
        for begin, end in pieces(segments[rank], values.itemsize):
            group.send(after, _bytes(values[begin:end]))
    for step in range(1, ranks):
        segment = segments[(rank - step) % ranks]
        for begin, end in pieces(segment, values.itemsize):
            values[begin:end] = _take(group, before, values[begin:end])
            if step < ranks - 1:
                group.send(after, (_final if begun else _bytes)(values[begin:end]))


def all_reduced(group: Lane, values: Array, op: str) -> None:
    """Reduce ``values`` of all ranks, element by element; each has the result there then. Nobody may write to it
    afterwards, since what travels is not copied: take what is to change from there."""
    segments = segments_of(values.size, group.world_size)
    scatter_reduced(group, values, segments, op, onward=True)
    gather_round(group, values, segments, begun=True)


def reduced_to(group: Lane, values: Array, dst: int, op: str) -> None:
    """Reduce ``values`` of all ranks into those of rank ``dst``: a chain from the rank after it, since no other rank
    needs the result."""
    ranks, rank = group.world_size, group.rank
    place = (rank - dst - 1) % ranks
    for begin, end in pieces((0, values.size), values.itemsize):
        mine = values[begin:end]
        if place:
            REDUCE[op](_take(group, (rank - 1) % ranks, mine), mine, out=mine)
        if rank != dst:
            group.send((rank + 1) % ranks, _bytes(mine))
    if op == "avg":
        divide(np, values, ranks)


def passed_on(group: Lane, values: Array, src: int) -> None:
    """Copy the values of rank ``src`` to all, each rank from the one before it."""
    ranks, rank = group.world_size, group.rank
    last = (src - 1) % ranks
    for begin, end in pieces((0, values.size), values.itemsize):
        if rank != src:
            values[begin:end] = _take(group, (rank - 1) % ranks, values[begin:end])
        if rank != last:
            group.send((rank + 1) % ranks, _bytes(values[begin:end]))


def exchanged(group: Lane, sends: Sequence[tuple[int, Array]], receives: Sequence[tuple[int, Array]]) -> None:
    """Send arrays to ranks, and receive others."""
    for peer, values in sends:
        for begin, end in pieces((0, values.size), values.itemsize):
            group.send(peer, _bytes(values[begin:end]))
    for peer, into in receives:
        for begin, end in pieces((0, into.size), into.itemsize):
            into[begin:end] = _take(group, peer, into[begin:end])
