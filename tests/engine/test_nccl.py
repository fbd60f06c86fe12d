"""Collectives between GPUs by NCCL, on an emulation of it: the bits are the host's, and nothing waits for ever."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from gradwire_engine.autograd.engine import Engine
from gradwire_engine.runtime import nccl
from gradwire_engine.runtime.backends import available_devices
from gradwire_engine.runtime.deadline import Clock
from gradwire_engine.runtime.groups import Group
from gradwire_engine.session.session import Session
from gradwire_engine.snapshot import restore, take
from gradwire_protocol.errors import Cancelled, CollectiveError, GroupNotOpen
from tests.cuda_emulation.nccl import ConnectedBackend, Network
from tests.strict_backend import StrictArray
from tests.wired_ranks import Links, queues_of, spec

Work = Callable[[Engine, int, str], Any]


class Ranks:
    """Engines in a group, each with a GPU.

    Args:
        buses: where each GPU is.
        meets: whether they may use NCCL.
    """

    def __init__(self, size: int, buses: Sequence[int] = (), meets: bool = True, timeout_s: float = 30.0) -> None:
        self.network = Network()
        self.queues = queues_of(size)
        self.failed: dict[int, str] = {}
        self.engines = [Engine() for _ in range(size)]
        for rank, engine in enumerate(self.engines):
            bus = buses[rank] if buses else rank
            engine.backends[f"cuda:{rank}"] = ConnectedBackend(self.network, rank, bus)  # type: ignore[assignment]
            self.join(rank, Group(spec(rank, size, timeout_s), meets=meets))

    def join(self, rank: int, group: Group) -> None:
        self.engines[rank].groups["world"] = group
        group.communicator = Links(group, self.queues, self.failed)

    @property
    def groups(self) -> list[Group]:
        return [engine.groups["world"] for engine in self.engines]

    def run(self, work: Work, on: Callable[[int], str] = lambda rank: f"cuda:{rank}") -> list[Any]:
        with ThreadPoolExecutor(len(self.engines)) as pool:
            return list(pool.map(lambda rank: work(self.engines[rank], rank, on(rank)), range(len(self.engines))))

    def attempt(self, work: Work, on: Callable[[int], str] = lambda rank: f"cuda:{rank}") -> list[BaseException]:
        """What each rank ends with, of which all are to fail."""

        def caught(engine: Engine, rank: int, device: str) -> Any:
            with pytest.raises((CollectiveError, Cancelled)) as error:
                work(engine, rank, device)
            return error.value

        return self.run(caught, on)


def bits(engine: Engine, tensor: Any) -> bytes:
    return bytes(engine.to_numpy(tensor).tobytes())


def everything(dtype: Any) -> Work:
    """All collectives of all ranks on tensors of one dtype; what they give, as bytes."""
    kind = np.dtype(dtype).kind
    reductions = ["sum", *(["avg"] if kind in "fcV" else []), *(["product", "min", "max"] if kind != "c" else [])]
    reductions += ["band", "bor", "bxor"] if kind in "ib" else []

    def work(engine: Engine, rank: int, device: str) -> list[bytes]:
        size = engine.groups["world"].world_size
        random = np.random.default_rng(rank)

        def tensor(*shape: int) -> Any:
            values = random.standard_normal(shape) * 3
            if kind == "c":
                values = values + 1j * random.standard_normal(shape)
            return engine.from_numpy((values > 0 if kind == "b" else values).astype(dtype), device=device)

        found = []
        for op in reductions:
            for count in (1, 3, 130):  # segments may be empty, and of different sizes
                x = tensor(count)
                engine.call("all_reduce_", x, "world", op)
                found.append(bits(engine, x))
            x = tensor(37)
            engine.call("reduce_", x, "world", size - 1, op)
            found.append(bits(engine, x))
            found.append(bits(engine, engine.call("reduce_scatter", tensor(size * 3, 2), "world", size, op)))
        x = tensor(5, 4)
        engine.call("broadcast_", x, "world", 1)
        found.append(bits(engine, x))
        found.append(bits(engine, engine.call("all_gather", tensor(3, 2), "world", size)))
        found.append(bits(engine, engine.call("gather_to", tensor(3, 2), "world", 1, rank, size)))
        x, parts = tensor(4), tensor(size, 4)
        engine.call("scatter_from_", x, "world", 0, parts if rank == 0 else None)
        found.append(bits(engine, x))
        rows = [[(a + 2 * b) % 3 for b in range(size)] for a in range(size)]
        sent, received = tuple(rows[rank]), tuple(rows[a][rank] for a in range(size))
        found.append(bits(engine, engine.call("all_to_all", tensor(sum(sent), 2), "world", sent, received)))
        several = [tensor(7), tensor(2, 3)]
        engine.call("broadcast_each", several, "world", size - 1)
        found += [bits(engine, each) for each in several]
        engine.call("barrier", "world")
        return found

    return work


@pytest.mark.parametrize("size", [2, 3, 4])
@pytest.mark.parametrize(
    "dtype", [np.float32, np.float64, np.float16, ml_dtypes.bfloat16, np.complex64, np.int64, np.bool_]
)
def test_each_collective_has_the_bits_of_the_way_through_host_memory(size: int, dtype: Any) -> None:
    work = everything(dtype)
    between, through = Ranks(size), Ranks(size, meets=False)
    assert between.run(work) == through.run(work)
    assert all(group.linked for group in between.groups)
    assert not any(group.linked for group in through.groups)
    assert sorted(between.network.made) == list(range(size))
    assert between.network.bytes_moved > 1000
    assert through.network.bytes_moved == 0


def test_tensors_do_not_pass_through_messages() -> None:
    def work(engine: Engine, rank: int, device: str) -> bytes:
        x = engine.from_numpy(np.arange(100_000, dtype=np.float32) * (rank + 1), device=device)
        engine.call("all_reduce_", x, "world", "avg")
        assert type(x.array) is StrictArray
        return bits(engine, x)

    ranks = Ranks(2)
    first, second = ranks.run(work)
    assert first == second == (np.arange(100_000, dtype=np.float32) * 1.5).tobytes()
    assert ranks.network.bytes_moved == 2 * 400_000
    assert all(group.bytes_sent < 2000 for group in ranks.groups)


def reduce_once(engine: Engine, rank: int, device: str) -> list[float]:
    x = engine.from_numpy(np.ones(5, np.float32) * (rank + 1), device=device)
    engine.call("all_reduce_", x, "world", "sum")
    found: list[float] = engine.to_numpy(x).tolist()
    return found


def test_two_ranks_on_one_gpu_go_through_host_memory() -> None:
    ranks = Ranks(3, buses=[0, 1, 1])
    assert ranks.run(reduce_once) == [[6.0] * 5] * 3
    assert ranks.network.made == []


def test_a_rank_whose_tensor_is_in_host_memory_has_all_go_that_way() -> None:
    ranks = Ranks(2)
    for _ in range(2):
        assert ranks.run(reduce_once, on=lambda rank: "cpu" if rank else "cuda:0") == [[3.0] * 5] * 2
        assert ranks.network.made == []
    assert ranks.run(reduce_once) == [[3.0] * 5] * 2
    assert sorted(ranks.network.made) == [0, 1]
    assert ranks.run(reduce_once, on=lambda rank: "cpu") == [[3.0] * 5] * 2


def test_ranks_with_different_versions_go_through_host_memory() -> None:
    ranks = Ranks(2)
    ranks.network.versions[1] = 22809
    assert ranks.run(reduce_once) == [[3.0] * 5] * 2
    assert ranks.network.made == []


@pytest.mark.parametrize("broken", [0, 1])
def test_where_nccl_fails_to_start_on_one_rank_none_uses_it(broken: int) -> None:
    """The others wait for that rank in NCCL, until it tells them."""
    ranks = Ranks(3)
    ranks.network.broken.add(broken)
    began = time.monotonic()
    assert ranks.run(reduce_once) == [[6.0] * 5] * 3
    assert ranks.run(reduce_once) == [[6.0] * 5] * 3
    assert time.monotonic() - began < 15
    reasons = {group._devices.refused for group in ranks.groups}
    assert len(reasons) == 1
    assert f"rank {broken}: NCCL_ERROR_SYSTEM_ERROR: no shared memory" in reasons.pop()


def test_a_rank_that_has_moved_is_connected_again() -> None:
    ranks = Ranks(3)
    assert ranks.run(reduce_once) == [[6.0] * 5] * 3
    old = ranks.groups[1]
    old.unlink()
    ranks.join(1, Group(old.spec, old.counts(), meets=True))
    assert ranks.run(reduce_once) == [[6.0] * 5] * 3
    assert sorted(ranks.network.made) == [0, 0, 1, 1, 2, 2]
    assert all(group.linked for group in ranks.groups)


@pytest.mark.parametrize("meets", [True, False])
def test_a_session_that_moves_takes_along_how_its_group_was_opened(meets: bool) -> None:
    """Images of the version before do not tell."""
    session = Session()
    session.engine.groups["world"] = Group(spec(1, 2), meets=meets)
    image = take(session)
    assert restore(image, session.limits).engine.groups["world"].meets == meets
    (row,) = image.facts["groups"]
    image.facts["groups"] = [row[:-1]]
    assert not restore(image, session.limits).engine.groups["world"].meets


def settled(what: Callable[[], bool]) -> bool:
    """Whether something becomes true soon: threads of communicators end by themselves."""
    until = time.monotonic() + 10
    while not what() and time.monotonic() < until:
        time.sleep(0.01)
    return what()


def test_a_group_that_is_closed_destroys_its_communicators() -> None:
    before = set(threading.enumerate())
    ranks = Ranks(2)
    ranks.run(reduce_once)
    for group in ranks.groups:
        group.unlink()
    assert settled(lambda: sorted(ranks.network.destroyed) == [0, 1])
    assert ranks.network.aborted == []
    assert settled(lambda: not set(threading.enumerate()) - before)


def test_shapes_that_differ_end_before_anything_waits_in_nccl() -> None:
    def work(engine: Engine, rank: int, device: str) -> None:
        x = engine.from_numpy(np.ones(5 + rank, np.float32), device=device)
        engine.call("all_reduce_", x, "world", "sum")

    ranks = Ranks(3)
    ranks.run(reduce_once)
    moved = ranks.network.bytes_moved
    errors = ranks.attempt(work)
    assert all("rank" in str(error) for error in errors)
    assert ranks.network.bytes_moved == moved
    assert settled(lambda: sorted(ranks.network.aborted) == [0, 1, 2])
    with pytest.raises(GroupNotOpen, match="open it again"):
        reduce_once(ranks.engines[0], 0, "cuda:0")


def test_rows_that_do_not_fit_are_an_error_that_names_the_rank() -> None:
    def work(engine: Engine, rank: int, device: str) -> None:
        x = engine.from_numpy(np.ones((4, 2), np.float32), device=device)
        engine.call("all_to_all", x, "world", (2, 2), (2, 2) if rank else (2, 3))
        engine.call("barrier", "world")

    ranks = Ranks(2)
    mine, theirs = ranks.attempt(work)
    assert "rank 1 (session s1 on here) sends 2 rows where rank 0 expects 3" in str(mine)
    assert "rank 0" in str(theirs)


def test_an_error_of_nccl_on_one_rank_ends_the_collective_of_all() -> None:
    ranks = Ranks(3)
    ranks.run(reduce_once)
    ranks.network.fails.add(1)
    began = time.monotonic()
    errors = ranks.attempt(reduce_once)
    assert time.monotonic() - began < 15
    assert "NCCL failed on rank 1 (session s1 on here): NCCL_ERROR_UNHANDLED_CUDA_ERROR" in str(errors[1])
    assert all("rank 1" in str(error) for error in errors)
    assert settled(lambda: sorted(ranks.network.aborted) == [0, 1, 2])


def test_a_rank_that_is_lost_in_a_collective_is_named() -> None:
    """It has come, so the others wait for it in NCCL."""
    ranks = Ranks(2)
    ranks.run(reduce_once)
    ranks.network.silent.add(1)
    timer = threading.Timer(0.3, ranks.failed.setdefault, (1, "rank 1 does not take part any more: it was killed"))
    timer.start()
    with ThreadPoolExecutor(1) as pool:
        lost = pool.submit(reduce_once, ranks.engines[1], 1, "cuda:1")
        with pytest.raises(CollectiveError, match="rank 1 does not take part any more: it was killed") as caught:
            reduce_once(ranks.engines[0], 0, "cuda:0")
        assert caught.value.details["rank"] == 1
        with pytest.raises(CollectiveError):
            lost.result(timeout=15)
    assert settled(lambda: sorted(ranks.network.aborted) == [0, 1])


def test_a_collective_that_does_not_end_fails_after_the_groups_time() -> None:
    ranks = Ranks(2, timeout_s=1.0)
    ranks.run(reduce_once)
    ranks.network.silent.update((0, 1))
    began = time.monotonic()
    errors = ranks.attempt(reduce_once)
    assert time.monotonic() - began < 15
    assert any("as collective 2 did not end within 1 s" in str(error) for error in errors)


class CancelledLater(Clock):
    """The clock of a frame that is cancelled once its collective has begun in NCCL."""

    def __init__(self, network: Network) -> None:
        self._until = time.monotonic() + 0.3
        super().__init__()

    @property
    def cancelled(self) -> bool:  # type: ignore[override]
        return time.monotonic() > self._until


def test_a_frame_that_is_cancelled_ends_the_collective_of_all() -> None:
    ranks = Ranks(2)
    ranks.run(reduce_once)
    ranks.network.silent.update((0, 1))
    ranks.engines[0].clock = CancelledLater(ranks.network)
    began = time.monotonic()
    mine, theirs = ranks.attempt(reduce_once)
    assert time.monotonic() - began < 15
    assert isinstance(mine, Cancelled)
    assert "rank 0 ended in all_reduce_" in str(theirs)
    assert settled(lambda: sorted(ranks.network.aborted) == [0, 1])


@pytest.mark.skipif(len(available_devices()) > 1, reason="there is a GPU")
def test_without_gpus_there_is_no_version() -> None:
    assert nccl.version() == 0
