"""Straight lines of kernels as CUDA graphs: what takes a launch each from Python is one launch.

A *segment* is a function of arrays that launches kernels, the same ones each time. It is run as it is at first sight,
when sources are compiled and algorithms chosen. At second sight its launches are captured; from then on the graph is
launched, as long as the guards hold: shapes, dtypes and strides of what comes in, the numbers, and the addresses of
what came from the same place twice (a parameter). What comes from elsewhere each time (a batch) is copied into memory
of the segment's own, and back if the segment writes to it. Where several inputs share memory that is written to, they
have to stay where they are. Alignment matters only where an operand has gaps: kernels copy what begins between two
blocks (``kernels/cuda/problem.py``), and gaps do not survive it.

Nothing is computed during a capture, so it may fail: by what CUDA refuses, and by copies from host memory, which would
be of what that memory holds by then (:func:`_refuse_host_memory`). The segment then runs as it is.

What comes out lies in the graph's memory. It is lent: the next launch would write over it, so a segment has up to
``TWINS`` graphs and takes one whose results nobody holds any more. Single numbers are copied, because programs hold on
to losses. Where all graphs' results are held, one more graph is captured whose results are all copied. Each graph has
its memory from a pool of its own, since another graph's launches would write over what it lends; the pool stays as long
as the graph or any of its results.
"""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol
from weakref import WeakSet, ref

import numpy as np

from gradwire_protocol.errors import Cancelled, TimeExceeded

from ..arrays import DeviceArray, Namespace
from ..random import Generator

SEGMENTS_KEPT: Final = 128
ALIGNMENT: Final = 16
TWINS: Final = 3
SPARSEST: Final = 4
SMALL: Final = 1 << 24
"""An input is copied with its strides if it lies in so many times its own memory at most, or in so many bytes."""

MOST_UNSTEADY: Final = 4
"""A number that differed so often in a row is taken for one that always does."""

MOST_MISSES: Final = 16
"""A segment whose guards fail so often in a row stays as it is."""

Arrays = Sequence[DeviceArray]
Function = Callable[[Arrays], Arrays]


class Reporter(Protocol):
    """Who is told why a segment is no graph, and may part it where the reason is."""

    def refused(self, error: BaseException) -> None:
        """Its capture ended with this error."""

    def unsteady(self, begin: int, numbers: Sequence[int]) -> None:
        """These of its numbers, by position, are not twice the same."""


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
        inputs: where the others are copied to; ``back`` are those that are copied back.
        outs: the results, in memory of the graph.
        word: the offset of the random numbers, on the device; ``drawn`` blocks are taken by each launch.
        pool: that all its memory is of, and ``nbytes``, how much that is.
        copies: whether all results are copied, not only single numbers.
        held: arrays of others that it reads.
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
    copies: bool
    held: list[DeviceArray]
    back: list[int] = field(default_factory=list)
    lease: ref[_Lease] | None = None

    @property
    def free(self) -> bool:
        return self.lease is None or self.lease() is None


@dataclass(slots=True)
class _Segment:
    """What is known of one segment.

    Attributes:
        facts, numbers, addresses: those of the last inputs.
        misses: in a row, of graphs; ``unsteady``: the numbers that differed each time, and in how many turns.
        restless: positions of inputs that were read where they lay, and then lay elsewhere.
        copies: whether its graphs' results are all copied, since there is no room for two graphs; one ``needs`` so many
            bytes.
        reason: why it is not captured.
    """

    facts: tuple[Any, ...] = ()
    numbers: tuple[Any, ...] = ()
    addresses: tuple[int, ...] = ()
    graphs: list[_Graph] = field(default_factory=list)
    misses: int = 0
    unsteady: tuple[frozenset[int], int] = (frozenset(), 0)
    restless: set[int] = field(default_factory=set)
    copies: bool = False
    needs: int = 0
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
        _refuse_host_memory(cupy)
        self.limit = limit
        self.outcomes: Counter[str] = Counter()

    @property
    def held(self) -> int:
        return sum(graph.nbytes for graph in self._all)

    def run(
        self, key: Hashable, function: Function, inputs: Arrays, numbers: Sequence[Any] = (),
        random: Generator | None = None, written: Sequence[Sequence[int]] = (), reporter: Reporter | None = None,
    ) -> list[DeviceArray]:  # fmt: skip
        """The results of ``function(inputs)``.

        Args:
            key: of the segment, hashable: what the function does follows from it and from the numbers. A reporter's
                segments have a tuple that ends with a position.
            numbers: what the function was given beside arrays.
            random: the session's generator, if the function draws from it; all draws are by kernels.
            written: positions of the inputs that the function writes to, those together that share memory.
            reporter: is told why the segment is no graph.
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
        like = [(a.shape, a.dtype, a.strides, _beside(a, at)) for a, at in zip(inputs, addresses, strict=True)]
        facts = tuple(like), random and random.seed
        given, earlier, before = tuple(numbers), segment.numbers, segment.addresses
        same = facts == segment.facts and given == earlier
        segment.facts, segment.numbers, segment.addresses = facts, given, addresses
        if not same:
            if before and given != earlier and reporter is not None:
                self._unsteady(segment, key, given, earlier, reporter)
            if segment.graphs:
                segment.misses += 1
                if segment.misses > MOST_MISSES:
                    segment.graphs.clear()
                    self._changed(self.held)
                    segment.reason = "its inputs or numbers are never twice the same"
            return self._as_it_is(function, inputs, "guard" if before else "first sight")
        segment.unsteady = frozenset(), 0
        for graph in segment.graphs:
            if graph.free and all(wanted in (None, at) for wanted, at in zip(graph.direct, addresses, strict=True)):
                segment.misses = 0
                self.outcomes["graph"] += 1
                return self._launch(graph, inputs, random)
        self._forget_moved(segment, addresses)
        shared = [i for group in written if len(group) > 1 for i in group]
        if any(addresses[i] != before[i] or i in segment.restless for i in shared):
            return self._as_it_is(function, inputs, "what it writes to has moved")
        if not self._room(segment):
            return self._as_it_is(function, inputs, "the graphs hold what they may")
        made = self._capture(segment, function, inputs, before, random, reporter)
        if made is None:
            return self._as_it_is(function, inputs, segment.reason)
        segment.needs = made.nbytes
        made.back = [group[0] for group in written if made.direct[group[0]] is None]
        segment.graphs.append(made)
        self.outcomes["captured"] += 1
        return self._launch(made, inputs, random)

    def _forget_moved(self, segment: _Segment, addresses: tuple[int, ...]) -> None:
        """Let go of the graphs that nobody holds results of: what they read where it lay lies elsewhere."""
        gone = [graph for graph in segment.graphs if graph.free]
        for graph in gone:
            now = zip(graph.direct, addresses, strict=True)
            segment.restless.update(i for i, (wanted, at) in enumerate(now) if wanted not in (None, at))
        if gone:
            segment.graphs = [graph for graph in segment.graphs if not graph.free]
            self._changed(self.held)

    def _room(self, segment: _Segment) -> bool:
        """Whether there is memory for one more graph. Without any for a second one, the next copies its results, so
        that it does not have to wait until nobody holds them."""
        room = self.limit - self.held
        if room >= max(segment.needs, 1):
            return True
        if segment.graphs:
            segment.copies = True
            segment.graphs.clear()
            self._changed(self.held)
        return False

    def _unsteady(
        self, segment: _Segment, key: Any, given: tuple[Any, ...], earlier: tuple[Any, ...], to: Reporter
    ) -> None:
        """Count the numbers that differ each time, and report them."""
        differ = frozenset(i for i, (a, b) in enumerate(zip(given, earlier, strict=True)) if a != b)
        always, turns = segment.unsteady
        differ = differ & always if turns else differ
        segment.unsteady = differ, turns + 1 if differ else 0
        if segment.unsteady[1] == MOST_UNSTEADY:
            to.unsteady(key[-1], sorted(differ))

    def _as_it_is(self, function: Function, inputs: Arrays, reason: str) -> list[DeviceArray]:
        self.outcomes[reason] += 1
        return list(function(inputs))

    def _capture(
        self, segment: _Segment, function: Function, inputs: Arrays, before: tuple[int, ...], random: Generator | None,
        reporter: Reporter | None,
    ) -> _Graph | None:  # fmt: skip
        """The segment as a graph; None, with the reason noted, where it cannot be one. Nothing was computed."""
        cuda = self._cupy.cuda
        stream = cuda.get_current_stream()
        if not stream.ptr:
            segment.reason = "the thread has no stream of its own"
            return None
        pool = cuda.MemoryPool()
        pool.set_limit(size=self.limit - self.held)
        state = None if random is None else random.get_state()
        held: list[DeviceArray] = []
        pairs = enumerate(zip(segment.addresses, before, strict=True))
        direct = tuple(now if now == then and i not in segment.restless else None for i, (now, then) in pairs)
        try:
            with cuda.using_allocator(pool.malloc):
                given = [a if at is not None else _like(self._cupy, a) for a, at in zip(inputs, direct, strict=True)]
                word = None if random is None else self._cupy.empty((1,), np.uint64)
                stream.begin_capture()
                _capturing.held = held
                try:
                    if random is not None:
                        random.base = (random.offset, word)
                    begins = {a.data.ptr for a in given}
                    # The next launch would write over a result that is an input's copy.
                    outs = [out.copy(order="K") if out.data.ptr in begins else out for out in function(given)]
                finally:
                    _capturing.held = None
                    if random is not None:
                        random.base = None
                    graph = stream.end_capture()
        except Exception as error:
            first = _first(error)
            if isinstance(first, (Cancelled, TimeExceeded)):
                raise first from None
            segment.reason = f"not to be captured: {first!s:.200}"
            if reporter is not None and not isinstance(first, MemoryError):  # of which no kernel is the reason
                reporter.refused(error)
            return None
        finally:
            drawn = 0
            if random is not None and state is not None:
                drawn = random.offset - state[1]
                random.set_state(state)
        copied = [a if at is None else None for a, at in zip(given, direct, strict=True)]
        copies = segment.copies or len(segment.graphs) >= TWINS
        made = _Graph(graph, direct, copied, outs, word, drawn, pool, int(pool.total_bytes()), copies, held)
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
        for i in graph.back:
            inputs[i][...] = graph.inputs[i]
        if graph.copies:
            return [out.copy(order="K") for out in graph.outs]
        lease = _Lease(graph)
        graph.lease = ref(lease)
        return [out.copy(order="K") if out.size == 1 else self._lent(out, lease) for out in graph.outs]

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


def _like(cupy: Namespace, array: DeviceArray) -> DeviceArray:
    """New memory for an array, with its strides, which kernels may be chosen by."""
    if array.flags.c_contiguous:
        return cupy.empty(array.shape, array.dtype)
    beside = array.data.ptr % ALIGNMENT
    reaches = [(n - 1) * step for n, step in zip(array.shape, array.strides, strict=True)]
    lowest = -sum(reach for reach in reaches if reach < 0)
    span = lowest + sum(reach for reach in reaches if reach > 0) + array.dtype.itemsize
    if span > max(SPARSEST * array.nbytes, SMALL):
        raise RuntimeError("an input is a small part of what it lies in")
    memory = cupy.empty(span + ALIGNMENT, np.uint8)
    begin = memory.data + lowest
    begin += (beside - begin.ptr) % ALIGNMENT
    return cupy.ndarray(array.shape, array.dtype, begin, array.strides)


def _beside(array: DeviceArray, address: int) -> int:
    """By how much an array that may have gaps begins behind a block."""
    rest = address % ALIGNMENT
    return rest if rest and not array.flags.c_contiguous else 0


class _Capturing(threading.local):
    """While this thread captures, ``held`` is what the graph has to keep beside its own memory; else None."""

    held: list[DeviceArray] | None = None


def capturing() -> bool:
    """Whether this thread captures."""
    return _capturing.held is not None


def hold(array: DeviceArray) -> None:
    """Keep an array from before the capture as long as the graph that is captured."""
    if _capturing.held is not None:
        _capturing.held.append(array)


_capturing: Final = _Capturing()
_guarded: Final[set[int]] = set()


def _refuse_host_memory(cupy: Namespace) -> None:
    """Have CuPy refuse copies from the host while this thread captures: the graph would copy at each launch what the
    pinned memory between holds then. All such copies ask for pinned memory; numbers are arguments of kernels."""
    set_allocator = getattr(cupy.cuda, "set_pinned_memory_allocator", None)
    if set_allocator is None or id(cupy) in _guarded:
        return
    _guarded.add(id(cupy))
    pool = cupy.get_default_pinned_memory_pool()

    def allocate(size: int) -> Any:
        if capturing():
            raise RuntimeError("memory of the host is copied from")
        return pool.malloc(size)

    set_allocator(allocate)


def _first(error: BaseException) -> BaseException:
    """What went wrong first: the end of a capture fails, too, once anything in it did."""
    while error.__context__ is not None:
        error = error.__context__
    return error
