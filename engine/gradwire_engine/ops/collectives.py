"""Collectives over the ranks of a group: rings (Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for
clusters of workstations", 2009), and messages straight to the rank that needs them.

Tensors go round in chunks, so that ranks reduce one chunk while the next one travels. Which rank's values come first in
the sum of a segment depends on the segment alone. Everything happens on host memory, in the tensors' own dtype.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np

from gradwire_protocol.errors import ArgumentValueError, GroupNotOpen
from gradwire_protocol.meta import meta
from gradwire_protocol.table import lookup

from ..autograd.engine_context import EngineContext
from ..autograd.inplace import check_writable
from ..autograd.registry import control
from ..autograd.tensor import Storage, Tensor
from ..runtime.arrays import Array
from ..runtime.background import Lane
from ..runtime.groups import Group

CHUNK_BYTES: Final = 1 << 18
"""The size of the pieces that travel on their own."""

_REDUCE: Final[dict[str, Callable[..., Any]]] = {
    "sum": np.add, "product": np.multiply, "min": np.minimum, "max": np.maximum, "avg": np.add,
    "band": np.bitwise_and, "bor": np.bitwise_or, "bxor": np.bitwise_xor,
}  # fmt: skip


def group_of(engine: EngineContext, name: str) -> Group:
    """The open group of this name.

    Raises:
        GroupNotOpen: when the session has none.
    """
    found = engine.groups.get(name)
    if found is None:
        raise GroupNotOpen(
            f"the session has no open group {name!r}; POST /v1/sessions/{{id}}/groups opens one", group=name
        )
    return found


def check_rank(group: Group, op: str, what: str, rank: int) -> None:
    """Check that the group has this rank.

    Raises:
        ArgumentValueError: when it has not.
    """
    if not rank < group.world_size:
        raise ArgumentValueError(f"{op}: {what} is {rank}, but ranks go from 0 to {group.world_size - 1}")


def _check_world(group: Group, op: str, world_size: int, rank: int | None = None) -> None:
    if world_size != group.world_size:
        raise ArgumentValueError(
            f"{op}: world_size is {world_size}, but group {group.spec.name!r} has {group.world_size} ranks"
        )
    if rank is not None and rank != group.rank:
        raise ArgumentValueError(f"{op}: rank is {rank}, but the session opened the group as rank {group.rank}")


# From tensors to flat arrays in host memory, and back


def _values(engine: EngineContext, tensor: Tensor) -> Array:
    """A flat copy of a tensor's values."""
    return np.array(engine.to_numpy(tensor), order="C").reshape(-1)


def _write(engine: EngineContext, tensor: Tensor, values: Array) -> None:
    """Copy values over a tensor, on whatever device it is."""
    host = values.reshape(tensor.shape)
    tensor.array[...] = engine.backends[tensor.device].from_host(host)
    tensor.storage.version += 1


def _result(engine: EngineContext, values: Array, shape: Sequence[int], like: Tensor) -> Tensor:
    backend = engine.backends[like.device]
    engine.account.check(values.nbytes, "the result of a collective")
    data = backend.from_host(np.ascontiguousarray(values).reshape(tuple(shape)))
    return Tensor(engine, data, meta(tuple(shape), like.dtype, like.device), Storage(data, engine.account))


def done(engine: EngineContext) -> None:
    """Other ranks have seen this frame: it is not taken back any more."""
    if engine.undo is not None:
        engine.undo.give_up()


# Chunks and rings


def _segments(count: int, ranks: int) -> list[tuple[int, int]]:
    """Where the segments of a tensor with ``count`` elements begin and end, one for each rank."""
    size, more = divmod(count, ranks)
    edges = [r * size + min(r, more) for r in range(ranks + 1)]
    return list(pairwise(edges))


def _chunks(segment: tuple[int, int], itemsize: int) -> list[tuple[int, int]]:
    begin, end = segment
    step = max(CHUNK_BYTES // itemsize, 1)
    return [(at, min(at + step, end)) for at in range(begin, end, step)]


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


def _scatter_reduced(
    group: Lane, values: Array, segments: list[tuple[int, int]], op: str, onward: bool = False
) -> None:
    """Reduce segment r, over all ranks, into ``values`` of rank r. The sum begins with the rank after that one.

    ``onward`` sends each reduced chunk on at once, as the first step of :func:`_gather_round`.
    """
    ranks, rank = group.world_size, group.rank
    if ranks == 1:
        return
    after, before, reduce = (rank + 1) % ranks, (rank - 1) % ranks, _REDUCE[op]
    for begin, end in _chunks(segments[(rank - 1) % ranks], values.itemsize):
        group.send(after, _bytes(values[begin:end]))
    for step in range(1, ranks):
        last = step == ranks - 1
        for begin, end in _chunks(segments[(rank - 1 - step) % ranks], values.itemsize):
            mine = values[begin:end]
            reduce(_take(group, before, mine), mine, out=mine)
            if last and op == "avg":
                np.divide(mine, mine.dtype.type(ranks), out=mine)
            if onward and last:
                group.send(after, _final(mine))
            elif not last:
                group.send(after, _bytes(mine))


def _gather_round(group: Lane, values: Array, segments: list[tuple[int, int]], begun: bool = False) -> None:
    """Copy segment r from rank r into ``values`` of all. ``begun``: each rank has sent its own already, and nobody
    writes to ``values`` afterwards."""
    ranks, rank = group.world_size, group.rank
    after, before = (rank + 1) % ranks, (rank - 1) % ranks
    if ranks > 1 and not begun:
        for begin, end in _chunks(segments[rank], values.itemsize):
            group.send(after, _bytes(values[begin:end]))
    for step in range(1, ranks):
        segment = segments[(rank - step) % ranks]
        for begin, end in _chunks(segment, values.itemsize):
            values[begin:end] = _take(group, before, values[begin:end])
            if step < ranks - 1:
                group.send(after, (_final if begun else _bytes)(values[begin:end]))


def all_reduced(group: Lane, values: Array, op: str) -> None:
    """Reduce ``values`` of all ranks, element by element; each has the result there then. Nobody may write to it
    afterwards, since what travels is not copied: take what is to change from there."""
    segments = _segments(values.size, group.world_size)
    _scatter_reduced(group, values, segments, op, onward=True)
    _gather_round(group, values, segments, begun=True)


def passed_on(group: Group, values: Array, src: int) -> None:
    """Copy the values of rank ``src`` to all, each rank from the one before it."""
    ranks, rank = group.world_size, group.rank
    last = (src - 1) % ranks
    for begin, end in _chunks((0, values.size), values.itemsize):
        if rank != src:
            values[begin:end] = _take(group, (rank - 1) % ranks, values[begin:end])
        if rank != last:
            group.send((rank + 1) % ranks, _bytes(values[begin:end]))


def _told(name: str, tensor: Tensor, *rest: Any) -> str:
    return f"{name}({tensor.dtype.name}{list(tensor.shape)}{''.join(f', {each}' for each in rest)})"


# The ops


@control("all_reduce_")
def all_reduce_(engine: EngineContext, self: Tensor, group: str, op: str) -> None:
    found = group_of(engine, group)
    check_writable(lookup("all_reduce_"), [self], 1, engine, False)
    with found.collective(_told("all_reduce_", self, op), engine.clock):
        values = _values(engine, self)
        all_reduced(found, values, op)
    done(engine)
    _write(engine, self, values)


@control("reduce_")
def reduce_(engine: EngineContext, self: Tensor, group: str, dst: int, op: str) -> None:
    found = group_of(engine, group)
    check_writable(lookup("reduce_"), [self], 1, engine, False)
    check_rank(found, "reduce_", "dst", dst)
    ranks, rank = found.world_size, found.rank
    with found.collective(_told("reduce_", self, dst, op), engine.clock):
        values = _values(engine, self)
        # A chain from the rank after dst to dst, since only dst needs the result.
        place = (rank - dst - 1) % ranks
        for begin, end in _chunks((0, values.size), values.itemsize):
            mine = values[begin:end]
            if place:
                _REDUCE[op](_take(found, (rank - 1) % ranks, mine), mine, out=mine)
            if rank != dst:
                found.send((rank + 1) % ranks, _bytes(mine))
        if op == "avg":
            np.divide(values, values.dtype.type(ranks), out=values)
    done(engine)
    if rank == dst:
        _write(engine, self, values)


@control("broadcast_")
def broadcast_(engine: EngineContext, self: Tensor, group: str, src: int) -> None:
    found = group_of(engine, group)
    check_writable(lookup("broadcast_"), [self], 1, engine, False)
    check_rank(found, "broadcast_", "src", src)
    with found.collective(_told("broadcast_", self, src), engine.clock):
        values = _values(engine, self)
        passed_on(found, values, src)
    done(engine)
    if found.rank != src:
        _write(engine, self, values)


@control("all_gather")
def all_gather(engine: EngineContext, self: Tensor, group: str, world_size: int) -> Tensor:
    found = group_of(engine, group)
    _check_world(found, "all_gather", world_size)
    count = self.meta.numel
    engine.account.check(self.meta.nbytes * world_size, "the result of all_gather")
    with found.collective(_told("all_gather", self), engine.clock):
        mine = _values(engine, self)
        values = np.empty(count * world_size, mine.dtype)
        values[found.rank * count : (found.rank + 1) * count] = mine
        _gather_round(found, values, _segments(values.size, world_size))
    done(engine)
    return _result(engine, values, (world_size, *self.shape), self)


@control("gather_to")
def gather_to(engine: EngineContext, self: Tensor, group: str, dst: int, rank: int, world_size: int) -> Tensor:
    found = group_of(engine, group)
    _check_world(found, "gather_to", world_size, rank)
    rows = world_size if rank == dst else 0
    engine.account.check(self.meta.nbytes * rows, "the result of gather_to")
    with found.collective(_told("gather_to", self, dst), engine.clock):
        mine = _values(engine, self)
        values = np.empty((rows, mine.size), mine.dtype)
        if rank != dst:
            _send_all(found, dst, mine)
        else:
            for peer in range(world_size):
                if peer == rank:
                    values[peer] = mine
                else:
                    _take_all(found, peer, values[peer])
    done(engine)
    return _result(engine, values, (rows, *self.shape), self)


@control("scatter_from_")
def scatter_from_(engine: EngineContext, self: Tensor, group: str, src: int, parts: Tensor | None) -> None:
    found = group_of(engine, group)
    check_writable(lookup("scatter_from_"), [self], 1, engine, False)
    check_rank(found, "scatter_from_", "src", src)
    if (parts is not None) != (found.rank == src):
        raise ArgumentValueError(
            f"scatter_from_: rank {found.rank} passes {'no ' if parts is None else ''}parts, but src is {src}"
        )
    if parts is not None:
        _check_world(found, "scatter_from_", parts.shape[0])
    with found.collective(_told("scatter_from_", self, src), engine.clock):
        values = _values(engine, self)
        if parts is not None:
            rows = _values(engine, parts).reshape(found.world_size, values.size)
            for peer in range(found.world_size):
                if peer != src:
                    _send_all(found, peer, rows[peer])
            values = rows[src]
        else:
            _take_all(found, src, values)
    done(engine)
    _write(engine, self, values)


@control("reduce_scatter")
def reduce_scatter(engine: EngineContext, self: Tensor, group: str, world_size: int, op: str) -> Tensor:
    found = group_of(engine, group)
    _check_world(found, "reduce_scatter", world_size)
    with found.collective(_told("reduce_scatter", self, op), engine.clock):
        values = _values(engine, self)
        segments = _segments(values.size, world_size)
        _scatter_reduced(found, values, segments, op)
        begin, end = segments[found.rank]
    done(engine)
    return _result(engine, values[begin:end].copy(), (self.shape[0] // world_size, *self.shape[1:]), self)


@control("all_to_all")
def all_to_all(
    engine: EngineContext, self: Tensor, group: str, sent: tuple[int, ...], received: tuple[int, ...]
) -> Tensor:
    found = group_of(engine, group)
    _check_world(found, "all_to_all", len(sent))
    rank, rest = found.rank, self.shape[1:]
    if sent[rank] != received[rank]:
        raise ArgumentValueError(
            f"all_to_all: rank {rank} sends {sent[rank]} rows to itself, but receives {received[rank]}"
        )
    width = int(np.prod(rest, dtype=np.int64))
    engine.account.check(sum(received) * width * self.dtype.itemsize, "the result of all_to_all")
    with found.collective(f"all_to_all({self.dtype.name}{['rows', *rest]})", engine.clock):
        values = _values(engine, self)
        into = np.empty(sum(received) * width, values.dtype)
        give = np.concatenate([[0], np.cumsum(sent)]) * width
        take = np.concatenate([[0], np.cumsum(received)]) * width
        for step in range(1, found.world_size):
            peer = (rank + step) % found.world_size
            _send_all(found, peer, values[give[peer] : give[peer + 1]])
        into[take[rank] : take[rank + 1]] = values[give[rank] : give[rank + 1]]
        for step in range(1, found.world_size):
            peer = (rank - step) % found.world_size
            _take_all(found, peer, into[take[peer] : take[peer + 1]])
    done(engine)
    return _result(engine, into, (sum(received), *rest), self)


@control("barrier")
def barrier(engine: EngineContext, group: str) -> None:
    found = group_of(engine, group)
    ranks, rank = found.world_size, found.rank
    with found.collective("barrier()", engine.clock):
        step = 1
        while step < ranks:  # Hensgen, Finkel and Manber's dissemination: each round reaches twice as many
            found.send((rank + step) % ranks, b"")
            found.receive((rank - step) % ranks)
            step *= 2
    done(engine)


@control("send")
def send(engine: EngineContext, self: Tensor, group: str, dst: int, tag: int) -> None:
    found = group_of(engine, group)
    check_rank(found, "send", "dst", dst)
    if dst == found.rank:
        raise ArgumentValueError(f"send: rank {dst} cannot send to itself")
    with found.exchange(f"send({self.dtype.name}{list(self.shape)}, tag {tag})", engine.clock):
        _send_all(found, dst, _values(engine, self))
        found.send(dst, b"", awaited=True)
        found.delivered(dst)
    done(engine)


@control("recv_")
def recv_(engine: EngineContext, self: Tensor, group: str, src: int, tag: int) -> None:
    found = group_of(engine, group)
    check_writable(lookup("recv_"), [self], 1, engine, False)
    check_rank(found, "recv_", "src", src)
    if src == found.rank:
        raise ArgumentValueError(f"recv_: rank {src} cannot receive from itself")
    with found.exchange(f"send({self.dtype.name}{list(self.shape)}, tag {tag})", engine.clock):
        values = _values(engine, self)
        _take_all(found, src, values)
        found.receive(src)
    done(engine)
    _write(engine, self, values)


def _send_all(group: Group, peer: int, values: Array) -> None:
    for begin, end in _chunks((0, values.size), values.itemsize):
        group.send(peer, _bytes(values[begin:end]))


def _take_all(group: Group, peer: int, into: Array) -> None:
    for begin, end in _chunks((0, into.size), into.itemsize):
        into[begin:end] = _take(group, peer, into[begin:end])
