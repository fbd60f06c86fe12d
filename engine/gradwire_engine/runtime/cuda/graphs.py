"""Straight lines of kernels as CUDA graphs: what takes a launch each from Python is one launch.

A *segment* is a function of arrays that does nothing but launch kernels (``Row.launches``), the same ones each
time. It is run as it is at first sight, when sources are compiled and algorithms chosen. At second sight its launches
are captured; from then on the graph is launched, as long as the guards hold: shapes, dtypes and strides of what comes
in, the numbers, and the addresses of what came from the same place twice (a parameter). What comes from elsewhere each
time (a batch) is copied into memory of the segment's own.

What comes out lies in the graph's memory. It is lent: the next launch would write over it, so a segment has up to
``TWINS`` graphs and takes one whose results nobody holds any more; where all are held the segment runs as it is. Each
graph has its memory from a pool of its own, since another graph's launches would write over what it lends; the pool
stays as long as the graph or any of its results.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from weakref import WeakSet, ref

import numpy as np

from ..arrays import DeviceArray, Namespace
from ..random import Generator

SEGMENTS_KEPT: Final = 128
TWINS: Final = 3
ALIGNMENT: Final = 256
MOST_MISSES: Final = 16
"""A segment whose guards fail so often in a row stays as it is."""

Arrays = Sequence[DeviceArray]
Function = Callable[[Arrays], Arrays]


class _Lease:
    """Lives as long as some result of a launch does, and keeps the graph, whose memory the result shows."""

    __slots__ = ("__weakref__", "graph")

    def __init__(self, graph: _Graph) -> None:
        self.graph = graph


@dataclass(slots=True, eq=False, weakref_slot=True)
class _Graph:
    """A captured segment.

    Attributes:
        graph: CuPy's.
        direct: addresses of the inputs that are read where they lie; None for those that are copied.
        inputs: where the others are copied to.
        outs: the results, in memory of the graph.
        word: the offset of the random numbers, on the device; ``drawn`` blocks are taken by each launch.
        pool: that all its memory is of, and ``nbytes``, how much that is.
        lease: of the last launch's results.
    """

    graph: Any
    direct: tuple[int | None, ...]
    inputs: list[DeviceArray | None]
    outs: list[DeviceArray]
    word: DeviceArray | None
    drawn: int
    pool: Any
    nbytes: int
    lease: ref[_Lease] | None = None

    @property
    def free(self) -> bool:
        return self.lease is None or self.lease() is None


@dataclass(slots=True)
class _Segment:
    """What is known of one segment. ``facts`` are those of its last inputs, ``reason`` why it is not captured."""

    facts: tuple[Any, ...] = ()
    addresses: tuple[int, ...] = ()
    graphs: list[_Graph] = field(default_factory=list)
    misses: int = 0
    reason: str = ""


class Graphs:
    """The graphs of one session on one device. All work is on the thread's current stream, which must be its own.

    Attributes:
        outcomes: how often segments were launched as graphs, captured, or run as they are, and why.
        limit: bytes that graphs may hold.
        held: bytes that they do hold, those without a segment aside whose results are still there.
    """

    def __init__(self, cupy: Namespace, limit: int, changed: Callable[[int], None] = lambda _: None) -> None:
        self._cupy = cupy
        self._segments: OrderedDict[Hashable, _Segment] = OrderedDict()
        self._all: WeakSet[_Graph] = WeakSet()
        self._changed = changed
        self.limit = limit
        self.outcomes: Counter[str] = Counter()

    @property
    def held(self) -> int:
        return sum(graph.nbytes for graph in self._all)

    def run(
        self, key: Hashable, function: Function, inputs: Arrays, numbers: Sequence[Any] = (),
        random: Generator | None = None,
    ) -> list[DeviceArray]:  # fmt: skip
        """The results of ``function(inputs)``.

        Args:
            key: of the segment, hashable: what the function does follows from it and from the numbers.
            numbers: what the function was given beside arrays.
            random: the session's generator, if the function draws from it; all draws are by kernels.
        """
        segment = self._segments.get(key)
        if segment is None:
            segment = self._segments[key] = _Segment()
            if len(self._segments) > SEGMENTS_KEPT:
                self._segments.popitem(last=False)
                self._changed(self.held)
        else:
            self._segments.move_to_end(key)
        if segment.reason:
            return self._as_it_is(function, inputs, segment.reason)
        addresses = tuple([a.data.ptr for a in inputs])
        like = tuple([(a.shape, a.dtype, a.strides, aligned(at)) for a, at in zip(inputs, addresses, strict=True)])
        facts = (like, tuple(numbers), random and random.seed)
        same, before = facts == segment.facts, segment.addresses
        segment.facts, segment.addresses = facts, addresses
        if not same:
            if segment.graphs:
                segment.misses += 1
                if segment.misses > MOST_MISSES:
                    segment.graphs.clear()
                    self._changed(self.held)
                    segment.reason = "its inputs or numbers are never twice the same"
            return self._as_it_is(function, inputs, "first sight" if not before else "guard")
        for graph in segment.graphs:
            if graph.free and all(wanted in (None, at) for wanted, at in zip(graph.direct, addresses, strict=True)):
                segment.misses = 0
                self.outcomes["graph"] += 1
                return self._launch(graph, inputs, random)
        if any(graph.free for graph in segment.graphs):  # a parameter has moved
            segment.graphs = [g for g in segment.graphs if not g.free]
            self._changed(self.held)
        if len(segment.graphs) >= TWINS:
            return self._as_it_is(function, inputs, "all results are held")
        return self._captured(segment, function, inputs, before, random)

    def _as_it_is(self, function: Function, inputs: Arrays, reason: str) -> list[DeviceArray]:
        self.outcomes[reason] += 1
        return list(function(inputs))

    def _captured(
        self, segment: _Segment, function: Function, inputs: Arrays, before: tuple[int, ...], random: Generator | None
    ) -> list[DeviceArray]:
        graph = self._capture(segment, function, inputs, before, random)
        if graph is None:
            return self._as_it_is(function, inputs, segment.reason)
        segment.graphs.append(graph)
        self.outcomes["captured"] += 1
        return self._launch(graph, inputs, random)

    def _capture(
        self, segment: _Segment, function: Function, inputs: Arrays, before: tuple[int, ...], random: Generator | None
    ) -> _Graph | None:
        """The segment as a graph; None, with the reason noted, where it cannot be one. Nothing was computed."""
        cuda = self._cupy.cuda
        stream = cuda.get_current_stream()
        if not stream.ptr:
            segment.reason = "the thread has no stream of its own"
            return None
        room = self.limit - self.held
        if room <= 0:
            segment.reason = "the graphs hold what they may"
            return None
        pool = cuda.MemoryPool()
        pool.set_limit(size=room)
        state = None if random is None else random.get_state()
        direct = tuple(now if now == then else None for now, then in zip(segment.addresses, before, strict=True))
        try:
            with cuda.using_allocator(pool.malloc):
                given = [a if at is not None else self._cupy.empty_like(a) for a, at in zip(inputs, direct)]
                if not all(_lies_like(a, b) for a, b in zip(inputs, given, strict=True)):
                    segment.reason = "a copy of an input lies otherwise"  # so kernels might be chosen otherwise
                    return None
                word = None if random is None else self._cupy.empty((1,), np.uint64)
                stream.begin_capture()
                try:
                    if random is not None:
                        random.base = (random.offset, word)
                    outs = list(function(given))
                finally:
                    if random is not None:
                        random.base = None
                    graph = stream.end_capture()
        except (RuntimeError, MemoryError) as error:  # CuPy's refusals, and CUDA's, are runtime errors
            segment.reason = f"not to be captured: {error!s:.200}"
            return None
        finally:
            drawn = 0
            if random is not None and state is not None:
                drawn = random.offset - state[1]
                random.set_state(state)
        if any(out.data.ptr in segment.addresses for out in outs):
            segment.reason = "a result is an input"
            return None
        copied = [a if at is None else None for a, at in zip(given, direct)]
        made = _Graph(graph, direct, copied, outs, word, drawn, pool, int(pool.total_bytes()))
        self._all.add(made)
        self._changed(self.held)
        return made

    def _launch(self, graph: _Graph, inputs: Arrays, random: Generator | None) -> list[DeviceArray]:
        for static, given in zip(graph.inputs, inputs, strict=True):
            if static is not None:
                static[...] = given
        if graph.word is not None and random is not None:
            graph.word.fill(np.uint64(random.offset))
            random.offset += graph.drawn
        graph.graph.launch()
        lease = _Lease(graph)
        graph.lease = ref(lease)
        return [self._lent(out, lease) for out in graph.outs]

    def _lent(self, out: DeviceArray, lease: _Lease) -> DeviceArray:
        """A result under an owner that tells when nobody holds it any more."""
        cuda = self._cupy.cuda
        memory = cuda.UnownedMemory(out.data.ptr, out.nbytes, lease)
        return self._cupy.ndarray(out.shape, out.dtype, cuda.MemoryPointer(memory, 0), out.strides)

    def forget(self, owner: object) -> None:
        """Let go of the segments whose key is of this owner: a tuple that begins with it."""
        for key in list(self._segments):
            if type(key) is tuple and key[0] is owner:
                del self._segments[key]
        self._changed(self.held)

    def trim(self) -> None:
        """Let go of the graphs of which no result is held; they are captured anew when they are needed."""
        for segment in list(self._segments.values()):
            segment.graphs = [graph for graph in segment.graphs if not graph.free]
        self._changed(self.held)

    def clear(self) -> None:
        """Let go of all graphs. The memory of results that are held goes with the last of these."""
        self._segments.clear()
        self._changed(self.held)


def _lies_like(one: DeviceArray, other: DeviceArray) -> bool:
    return one.strides == other.strides and aligned(one.data.ptr) == aligned(other.data.ptr)


def aligned(address: int) -> int:
    """The bytes by which an address is aligned, as far as the choice of a kernel depends on them."""
    return min(address & -address, ALIGNMENT)
