"""Segments as graphs, against a stand-in that records launches during capture and refuses what CuPy refuses."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gradwire_engine.kernels.cuda import load
from gradwire_engine.runtime.cuda.graphs import MOST_MISSES, TWINS, Graphs, _like
from gradwire_engine.runtime.random import Generator
from gradwire_protocol.errors import Cancelled
from tests.cuda_emulation.capturing import CapturingBackend

load()


class Fake:
    """CuPy on the host, whose kernels run at once, or, while a stream captures, at each launch of the graph."""

    def __init__(self) -> None:
        self.capturing: list[Any] | None = None
        self.launches = 0
        self.allocator = "the session's"
        self.allocated: list[str] = []
        self.pools: list[Any] = []
        self.stream = SimpleNamespace(ptr=7, begin_capture=self.begin, end_capture=self.end)
        self.cuda = SimpleNamespace(
            get_current_stream=lambda: self.stream, MemoryPool=self.pool, using_allocator=self.using,
            UnownedMemory=lambda ptr, size, owner: SimpleNamespace(ptr=ptr, size=size, owner=owner),
            MemoryPointer=lambda memory, offset: SimpleNamespace(ptr=memory.ptr + offset, memory=memory),
        )  # fmt: skip
        self.by_address: dict[int, np.ndarray] = {}
        self.sizes: Counter[str] = Counter()

    def begin(self) -> None:
        assert self.capturing is None
        self.capturing = []

    def end(self) -> Any:
        work, self.capturing = self.capturing, None

        def launch() -> None:
            self.launches += 1
            for entry in work or ():
                entry()

        return SimpleNamespace(launch=launch)

    def pool(self) -> Any:
        name = f"pool {len(self.pools)}"
        found = SimpleNamespace(malloc=name, limit=0, total_bytes=lambda: self.sizes[name])
        found.set_limit = lambda *, size: setattr(found, "limit", size)
        self.pools.append(found)
        return found

    @contextmanager
    def using(self, allocator: str) -> Iterator[None]:
        before, self.allocator = self.allocator, allocator
        yield
        self.allocator = before

    def launch(self, work: Any) -> None:
        if self.capturing is None:
            self.launches += 1
            work()
        else:
            self.capturing.append(work)

    def array(self, values: Any) -> Array:
        self.allocated.append(self.allocator)
        found = Array(self, np.array(values))
        self.sizes[self.allocator] += found.nbytes
        return found

    def empty_like(self, array: Any) -> Array:
        return self.array(np.zeros_like(array.values))

    def empty(self, shape: Any, dtype: Any) -> Array:
        return self.array(np.zeros(shape, dtype))

    def address(self, values: np.ndarray) -> int:
        """Aligned as CuPy's allocations are, and never twice the same."""
        at = next((at for at, held in self.by_address.items() if held is values), 512 * (len(self.by_address) + 1))
        self.by_address[at] = values
        return at

    def ndarray(self, shape: Any, dtype: Any, data: Any, strides: Any) -> Array:
        found = Array(self, self.by_address[data.ptr])
        found.data = data
        return found

    # What functions do

    def add(self, a: Any, b: Any) -> Array:
        out = self.empty_like(a)
        self.launch(lambda: np.add(a.values, b.values, out=out.values))
        return out

    def item(self, a: Any) -> float:
        if self.capturing is not None:
            raise RuntimeError("cudaErrorStreamCaptureUnsupported: operation not permitted when stream is capturing")
        return float(a.values.sum())

    def cublas(self, a: Any) -> Array:
        if self.capturing is not None:
            raise RuntimeError("cuBLAS is not allowed to be used during stream capture")
        return self.add(a, a)


class Array:
    def __init__(self, fake: Fake, values: np.ndarray) -> None:
        self.fake, self.values = fake, values
        self.shape, self.dtype, self.strides, self.nbytes = values.shape, values.dtype, values.strides, values.nbytes
        self.size, self.flags = values.size, values.flags
        self.data = SimpleNamespace(ptr=fake.address(values))

    def __setitem__(self, index: Any, value: Any) -> None:
        self.fake.launch(lambda: self.values.__setitem__(index, value.values))

    def copy(self, order: str) -> Array:
        assert order == "K", "strides are kept"
        out = self.fake.empty(self.shape, self.dtype)
        self.fake.launch(lambda: np.copyto(out.values, self.values))
        return out

    def fill(self, value: Any) -> None:
        self.fake.launch(lambda: self.values.fill(value))


@pytest.fixture
def fake() -> Fake:
    return Fake()


def line(fake: Fake) -> Any:
    """x + w + w + x, in three launches."""
    return lambda given: [fake.add(fake.add(fake.add(given[0], given[1]), given[1]), given[0])]


def test_a_segment_is_run_then_captured_then_launched_as_one(fake: Fake) -> None:
    graphs = Graphs(fake, 1000)
    weight = fake.array([10.0, 20.0])
    for turn in range(5):
        before = fake.launches
        (found,) = graphs.run("line", line(fake), [fake.array([turn, 1.0]), weight])
        assert found.values.tolist() == [20 + 2 * turn, 42]
        # At first three launches; later the copy of the batch and the graph.
        assert fake.launches - before == (3 if turn == 0 else 2)
        del found
    assert graphs.outcomes == {"first sight": 1, "captured": 1, "graph": 3}


def test_a_parameter_is_read_where_it_lies(fake: Fake) -> None:
    graphs = Graphs(fake, 1000)
    weight = fake.array([1.0])
    for turn in range(4):
        weight.values[0] = turn  # an optimizer's step
        (found,) = graphs.run("line", line(fake), [fake.array([0.5]), weight])
        assert found.values.tolist() == [1 + 2 * turn]
        del found
    graphs.run("line", line(fake), [fake.array([0.5]), fake.array([7.0])])
    assert graphs.outcomes["graph"] == 2
    assert graphs.outcomes["captured"] == 2  # the parameter has moved: it is captured once more, and then copied


def test_results_that_are_held_are_not_written_over(fake: Fake) -> None:
    graphs = Graphs(fake, 1000)
    weight = fake.array([0.0, 1.0])
    held = [graphs.run("line", line(fake), [fake.array([float(turn), 0.0]), weight])[0] for turn in range(8)]
    assert [h.values.tolist() for h in held] == [[2.0 * t, 2.0] for t in range(8)]
    assert graphs.outcomes == {"first sight": 1, "captured": TWINS + 1, "graph": 8 - 2 - TWINS}  # one copies results
    launches = fake.launches
    graphs.run("line", line(fake), [fake.array([1.0, 2.0]), weight])
    assert fake.launches - launches == 3, "the batch, the graph, the result"


def test_without_room_for_a_second_graph_results_are_copied(fake: Fake) -> None:
    graphs = Graphs(fake, 100)  # a graph has three results and a copy of the batch, of 16 bytes each
    weight = fake.array([0.0, 1.0])
    held = [graphs.run("line", line(fake), [fake.array([float(turn), 0.0]), weight])[0] for turn in range(8)]
    assert [h.values.tolist() for h in held] == [[2.0 * t, 2.0] for t in range(8)]
    assert graphs.held <= 100
    held.clear()
    outcomes = graphs.outcomes
    held += [graphs.run("line", line(fake), [fake.array([float(turn), 0.0]), weight])[0] for turn in range(8)]
    assert [h.values.tolist() for h in held] == [[2.0 * t, 2.0] for t in range(8)]
    assert outcomes["graph"] >= 6, outcomes


def test_an_input_that_moves_now_and_then_is_copied(fake: Fake) -> None:
    graphs = Graphs(fake, 1000)
    weight, places = fake.array([0.0, 1.0]), [fake.array([1.0, 1.0]), fake.array([2.0, 2.0])]
    for turn in range(24):
        place = places[turn // 3 % 2]
        (found,) = graphs.run("line", line(fake), [place, weight])
        assert found.values.tolist() == [2 * place.values[0], 2 * place.values[1] + 2]
        del found
    assert graphs.outcomes["captured"] <= 3, graphs.outcomes


def test_numbers_are_copied_out_of_a_graph(fake: Fake) -> None:
    graphs = Graphs(fake, 1000)
    weight = fake.array([0.0])
    held = [graphs.run("line", line(fake), [fake.array([float(turn)]), weight])[0] for turn in range(8)]
    assert [h.values.tolist() for h in held] == [[2.0 * t] for t in range(8)]
    assert graphs.outcomes == {"first sight": 1, "captured": 1, "graph": 6}


def test_what_a_segment_writes_to_stays_or_is_copied_back(fake: Fake) -> None:
    graphs = Graphs(fake, 1000)

    def count(given: Any) -> Any:
        out = fake.add(given[0], given[1])
        fake.launch(lambda: given[0].values.__iadd__(1))
        return [out]

    first, one = fake.array([1.0, 1.0]), fake.array([1.0, 1.0])
    for turn in range(4):
        assert graphs.run("count", count, [first, one], written=((0,),))[0].values.tolist() == [2.0 + turn] * 2
    assert graphs.outcomes["graph"] == 2
    for written, reason in (((0,),), "graph"), (((0, 1),), "what it writes to has moved"):
        before = graphs.outcomes[reason]
        for turn in range(4):  # elsewhere each time
            counted = fake.array([float(turn), 0.0])
            found = graphs.run(written, count, [counted, one], written=written)
            assert found[0].values.tolist() == [turn + 1.0, 1.0]
            assert counted.values.tolist() == [turn + 1.0, 1.0]
            del found  # or the next one takes another graph
        assert graphs.outcomes[reason] >= before + 2


def test_a_copied_input_has_the_strides_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gradwire_engine.runtime.cuda.graphs.SMALL", 0)
    xp = CapturingBackend().xp
    memory = xp.asarray(np.arange(60, dtype=np.float32))
    for given in (memory[:24].reshape(4, 6).T, memory[1:25].reshape(4, 6).T, memory[:48].reshape(4, 12)[:, ::-2]):
        cupy = SimpleNamespace(empty=xp.empty, ndarray=_strided)
        found = _like(cupy, given)
        assert (found.shape, found.strides) == (given.shape, given.strides)
        assert (found.data.ptr - given.data.ptr) % 16 == 0
    with pytest.raises(RuntimeError, match="small part"):
        _like(cupy, memory[::15])


def _strided(shape: Any, dtype: Any, memory: Any, strides: Any) -> Any:
    return SimpleNamespace(shape=shape, strides=strides, data=memory)


class Noting:
    """A reporter that notes what it is told."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def refused(self, error: BaseException) -> None:
        self.told.append(type(error))

    def unsteady(self, begin: int, numbers: Any) -> None:
        self.told.append((begin, numbers))


def test_why_there_is_no_graph_is_reported(fake: Fake) -> None:
    graphs, reporter = Graphs(fake, 1000), Noting()
    weight = fake.array([1.0])
    for turn in range(8):
        graphs.run((0, 7), line(fake), [weight, weight], ("same", turn, turn // 2), reporter=reporter)
    assert reporter.told == [(7, [1])]
    for _ in range(3):
        graphs.run((0, 8), lambda given: [fake.item(given[0])], [weight], reporter=reporter)
    assert reporter.told[1:] == [RuntimeError]


@pytest.mark.parametrize(("error", "raised"), [(MemoryError("full"), False), (Cancelled("stopped"), True)])
def test_no_kernel_is_the_reason_of_a_full_memory_or_a_cancelled_frame(
    fake: Fake, error: Exception, raised: bool
) -> None:
    graphs, reporter, weight = Graphs(fake, 1000), Noting(), fake.array([1.0])

    def run(given: Any) -> Any:
        if fake.capturing is not None:
            raise error
        return [fake.add(given[0], given[0])]

    graphs.run((0, 1), run, [weight], reporter=reporter)
    with pytest.raises(Cancelled) if raised else nullcontext():
        graphs.run((0, 1), run, [weight], reporter=reporter)
    assert reporter.told == []
    assert ("not to be captured: full" in graphs.outcomes) == (not raised)


def test_a_graph_s_memory_is_a_pool_of_its_own_with_a_limit(fake: Fake) -> None:
    graphs = Graphs(fake, 1234)
    for _ in range(2):
        graphs.run("line", line(fake), [fake.array([1.0]), fake.array([1.0])])
    assert [pool.limit for pool in fake.pools] == [1234]
    assert fake.allocated.count("pool 0") == 2 + 3  # both inputs were copied, three results
    assert fake.allocator == "the session's"


@pytest.mark.parametrize("obstacle", ["item", "cublas"])
def test_what_may_not_be_captured_runs_as_it_is_and_is_told(fake: Fake, obstacle: str) -> None:
    graphs = Graphs(fake, 1000)
    function = line(fake)

    def broken(given: Any) -> Any:
        getattr(fake, obstacle)(given[0])
        return function(given)

    weight = fake.array([1.0])
    for turn in range(4):
        (found,) = graphs.run("broken", broken, [fake.array([float(turn)]), weight])
        assert found.values.tolist() == [2 * turn + 2]
    assert fake.capturing is None
    (reason,) = set(graphs.outcomes) - {"first sight"}
    assert reason.startswith("not to be captured")


def test_a_thread_without_a_stream_of_its_own_captures_nothing(fake: Fake) -> None:
    fake.stream.ptr = 0
    graphs = Graphs(fake, 1000)
    for _ in range(3):
        graphs.run("line", line(fake), [fake.array([1.0]), fake.array([1.0])])
    assert graphs.outcomes == {"first sight": 1, "the thread has no stream of its own": 2}


def test_other_shapes_and_numbers_miss_and_come_back(fake: Fake) -> None:
    graphs = Graphs(fake, 1000)
    weight = fake.array([1.0])
    for numbers in ((1.0,), (1.0,), (2.0,), (1.0,), (1.0,)):
        graphs.run("line", line(fake), [fake.array([1.0]), weight], numbers)
    assert graphs.outcomes == {"first sight": 1, "captured": 1, "guard": 2, "graph": 1}


def test_a_segment_that_is_never_twice_the_same_is_left_alone(fake: Fake) -> None:
    graphs = Graphs(fake, 1000)
    weight = fake.array([1.0])
    for number in (0.0, 0.0, *range(1, MOST_MISSES + 4)):
        graphs.run("line", line(fake), [fake.array([1.0]), weight], (number,))
    assert graphs.outcomes["its inputs or numbers are never twice the same"] == 2


def test_graphs_share_no_memory_and_have_no_more_than_the_limit(fake: Fake) -> None:
    told: list[int] = []
    graphs = Graphs(fake, 64, told.append)
    weight = fake.array([1.0])
    for turn in range(2):
        for key in range(3):
            graphs.run(key, line(fake), [fake.array([float(turn)]), weight])
    assert [pool.limit for pool in fake.pools] == [64, 32]
    assert told == [32, 64]
    assert graphs.outcomes["the graphs hold what they may"] == 1


def test_a_result_keeps_the_memory_of_a_graph_that_was_let_go_of(fake: Fake) -> None:
    graphs = Graphs(fake, 1000)
    weight = fake.array([1.0, 2.0])
    for _ in range(2):
        (found,) = graphs.run("line", line(fake), [fake.array([1.0, 2.0]), weight])
    graphs.trim()
    assert graphs.held > 0  # somebody holds the result
    graphs.clear()
    assert graphs.held > 0
    del found
    gc.collect()
    assert graphs.held == 0


def test_segments_go_with_their_owner(fake: Fake) -> None:
    graphs, mine, yours = Graphs(fake, 1000), object(), object()
    weight = fake.array([1.0])
    for _ in range(2):
        for owner in (mine, yours):
            graphs.run((owner, 1), line(fake), [fake.array([1.0]), weight])
    held = graphs.held
    graphs.forget(mine)
    assert graphs.held == held // 2 > 0


def test_random_numbers_go_on_from_launch_to_launch(fake: Fake) -> None:
    plain, random = Generator(5), Generator(5)

    def draw(generator: Generator) -> Any:
        def function(given: Any) -> Any:
            first, base = generator.take(3)
            second, _ = generator.take(2)
            out = fake.empty((2,), np.uint64)
            fake.launch(lambda: out.values.__setitem__(slice(None), [
                first + (0 if base is None else int(base.values[0])),
                second + (0 if base is None else int(base.values[0])),
            ]))  # fmt: skip
            return [out]

        return function

    graphs, x = Graphs(fake, 1000), fake.array([1.0])
    for _ in range(4):
        expected = draw(plain)([x])[0].values.tolist()
        (found,) = graphs.run("draw", draw(random), [x], random=random)
        assert found.values.tolist() == expected
        assert random.get_state() == plain.get_state()
        del found
    assert graphs.outcomes["graph"] == 2


def test_a_pool_that_is_full_is_a_reason(fake: Fake) -> None:
    def full(given: Any) -> Any:
        if fake.capturing is not None:
            raise MemoryError("the pool is full")
        return line(fake)(given)

    graphs = Graphs(fake, 1000)
    for _ in range(3):
        (found,) = graphs.run("full", full, [fake.array([1.0]), fake.array([1.0])])
        assert found.values.tolist() == [4.0]
