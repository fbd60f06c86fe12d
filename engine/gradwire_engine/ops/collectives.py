"""Collectives over the ranks of a group. Tensors travel through host memory (:mod:`.host_rings`), or from GPU to GPU
(:mod:`.device_rings`) where all ranks can; the results have the same bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradwire_protocol.errors import ArgumentValueError, GroupNotOpen
from gradwire_protocol.meta import meta
from gradwire_protocol.table import lookup

from ..autograd.engine_context import EngineContext
from ..autograd.inplace import check_writable
from ..autograd.registry import control
from ..autograd.tensor import Storage, Tensor
from ..runtime.arrays import Array
from ..runtime.groups import Group
from .host_rings import exchanged, segments_of
from .transport import (
    ALL_REDUCED,
    EXCHANGED,
    GATHER_ROUND,
    PASSED_ON,
    REDUCED_TO,
    SCATTER_REDUCED,
    Transport,
    to_device,
)


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


# From tensors to flat arrays, and back


def _host_values(engine: EngineContext, tensor: Tensor) -> Array:
    """A flat copy of a tensor's values in host memory, whatever device it is on: a rank may send before the other one
    receives, which NCCL has no room for."""
    return np.array(engine.to_numpy(tensor), order="C").reshape(-1)


def _write(engine: EngineContext, tensor: Tensor, values: Array) -> None:
    """Copy values over a tensor, on whatever device it is."""
    tensor.array[...] = to_device(engine.backends[tensor.device], values.reshape(tensor.shape))
    tensor.storage.version += 1


def _result(engine: EngineContext, values: Array, shape: Sequence[int], like: Tensor) -> Tensor:
    engine.account.check(values.nbytes, "the result of a collective")
    data = to_device(engine.backends[like.device], values.reshape(tuple(shape)))
    return Tensor(engine, data, meta(tuple(shape), like.dtype, like.device), Storage(data, engine.account))


def done(engine: EngineContext) -> None:
    """Other ranks have seen this frame: it is not taken back any more."""
    if engine.undo is not None:
        engine.undo.give_up()


def _told(name: str, tensor: Tensor, *rest: Any) -> str:
    return f"{name}({tensor.dtype.name}{list(tensor.shape)}{''.join(f', {each}' for each in rest)})"


# The ops


@control("all_reduce_")
def all_reduce_(engine: EngineContext, self: Tensor, group: str, op: str) -> None:
    found = group_of(engine, group)
    check_writable(lookup("all_reduce_"), [self], 1, engine, False)
    with found.collective(_told("all_reduce_", self, op), engine.clock):
        transport = Transport(engine, found, self.device)
        values = transport.flat(self)
        transport.run(ALL_REDUCED, values, op)
    done(engine)
    _write(engine, self, values)


@control("reduce_")
def reduce_(engine: EngineContext, self: Tensor, group: str, dst: int, op: str) -> None:
    found = group_of(engine, group)
    check_writable(lookup("reduce_"), [self], 1, engine, False)
    check_rank(found, "reduce_", "dst", dst)
    with found.collective(_told("reduce_", self, dst, op), engine.clock):
        transport = Transport(engine, found, self.device)
        values = transport.flat(self)
        transport.run(REDUCED_TO, values, dst, op)
    done(engine)
    if found.rank == dst:
        _write(engine, self, values)


@control("broadcast_")
def broadcast_(engine: EngineContext, self: Tensor, group: str, src: int) -> None:
    found = group_of(engine, group)
    check_writable(lookup("broadcast_"), [self], 1, engine, False)
    check_rank(found, "broadcast_", "src", src)
    with found.collective(_told("broadcast_", self, src), engine.clock):
        transport = Transport(engine, found, self.device)
        values = transport.flat(self)
        transport.run(PASSED_ON, values, src)
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
        transport = Transport(engine, found, self.device)
        values = transport.empty(count * world_size, self.dtype)
        values[found.rank * count : (found.rank + 1) * count] = transport.flat(self)
        transport.run(GATHER_ROUND, values, segments_of(values.size, world_size))
    done(engine)
    return _result(engine, values, (world_size, *self.shape), self)


@control("gather_to")
def gather_to(engine: EngineContext, self: Tensor, group: str, dst: int, rank: int, world_size: int) -> Tensor:
    found = group_of(engine, group)
    _check_world(found, "gather_to", world_size, rank)
    rows = world_size if rank == dst else 0
    engine.account.check(self.meta.nbytes * rows, "the result of gather_to")
    with found.collective(_told("gather_to", self, dst), engine.clock):
        transport = Transport(engine, found, self.device)
        mine = transport.flat(self)
        values = transport.empty((rows, mine.size), self.dtype)
        if rank == dst:
            values[rank] = mine
            transport.run(EXCHANGED, [], [(peer, values[peer]) for peer in range(world_size) if peer != rank])
        else:
            transport.run(EXCHANGED, [(dst, mine)], [])
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
        transport = Transport(engine, found, self.device)
        if parts is None:
            values = transport.flat(self)
            transport.run(EXCHANGED, [], [(src, values)])
        else:
            rows = transport.flat(parts).reshape(found.world_size, self.meta.numel)
            values = rows[src]
            transport.run(EXCHANGED, [(peer, rows[peer]) for peer in range(found.world_size) if peer != src], [])
    done(engine)
    _write(engine, self, values)


@control("reduce_scatter")
def reduce_scatter(engine: EngineContext, self: Tensor, group: str, world_size: int, op: str) -> Tensor:
    found = group_of(engine, group)
    _check_world(found, "reduce_scatter", world_size)
    with found.collective(_told("reduce_scatter", self, op), engine.clock):
        transport = Transport(engine, found, self.device)
        values = transport.flat(self)
        segments = segments_of(values.size, world_size)
        transport.run(SCATTER_REDUCED, values, segments, op)
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
        transport = Transport(engine, found, self.device, sent)
        for peer, counts in enumerate(transport.counts or ()):
            if counts[rank] != received[peer]:
                expected = f"{counts[rank]:,} rows where rank {rank} expects {received[peer]:,}"
                raise found.error(peer, f"{found.named(peer)} sends {expected}")
        values = transport.flat(self)
        into = transport.empty(sum(received) * width, self.dtype)
        give = np.concatenate([[0], np.cumsum(sent)]) * width
        take = np.concatenate([[0], np.cumsum(received)]) * width
        into[take[rank] : take[rank + 1]] = values[give[rank] : give[rank + 1]]
        after = [(rank + step) % found.world_size for step in range(1, found.world_size)]
        before = [(rank - step) % found.world_size for step in range(1, found.world_size)]
        sends = [(peer, values[give[peer] : give[peer + 1]]) for peer in after]
        transport.run(EXCHANGED, sends, [(peer, into[take[peer] : take[peer + 1]]) for peer in before])
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
        exchanged(found, [(dst, _host_values(engine, self))], [])
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
        values = _host_values(engine, self)
        exchanged(found, [], [(src, values)])
        found.receive(src)
    done(engine)
    _write(engine, self, values)
