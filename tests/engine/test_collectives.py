"""Collectives in the engine, between ranks in threads: on both array libraries, in replays and in snapshots."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from gradwire_engine.autograd.engine import Engine
from gradwire_engine.runtime.backends import Backends
from gradwire_engine.runtime.groups import Exchanged, Group
from gradwire_engine.session.session import Session
from gradwire_engine.snapshot import NotImageable, restore, take
from gradwire_protocol.errors import CollectiveError, GroupNotOpen
from tests.strict_backend import StrictArray, StrictBackend
from tests.wired_ranks import Wires, queues_of, spec


def together(engines: list[Engine], work: Callable[[Engine, int], Any], keeps: bool = False) -> list[Any]:
    """Let each engine do something as a rank of a new group."""
    ranks = len(engines)
    queues = queues_of(ranks)
    for rank, engine in enumerate(engines):
        group = engine.groups["world"] = Group(spec(rank, ranks), keeps=keeps)
        group.communicator = Wires(group, queues)
    with ThreadPoolExecutor(ranks) as pool:
        return list(pool.map(work, engines, range(ranks)))


@pytest.mark.parametrize("ranks", [1, 2, 3, 5])
def test_any_number_of_ranks(ranks: int) -> None:
    def work(engine: Engine, rank: int) -> Any:
        x = engine.from_numpy(np.arange(11, dtype=np.float64) * (rank + 1))
        engine.call("all_reduce_", x, "world", "avg")
        parts = engine.call("all_gather", x, "world", ranks)
        engine.call("barrier", "world")
        return engine.to_numpy(x).tolist(), engine.to_numpy(parts).shape

    mean = (np.arange(11) * sum(range(1, ranks + 1)) / ranks).tolist()
    assert together([Engine() for _ in range(ranks)], work) == [(mean, (ranks, 11))] * ranks


def test_a_leaf_and_a_strided_view_are_written_to_without_history() -> None:
    def work(engine: Engine, rank: int) -> Any:
        leaf = engine.from_numpy(np.ones((3, 4), np.float32) * rank, requires_grad=True)
        before = leaf.storage.version
        engine.call("all_reduce_", leaf, "world", "sum")
        view = engine.call("transpose", engine.call("detach", leaf), 0, 1)
        engine.call("broadcast_", view, "world", 1)
        assert leaf.is_leaf
        assert leaf.storage.version == before + 1 + (rank == 0)
        return engine.to_numpy(leaf).tolist()

    assert together([Engine(), Engine()], work) == [[[1.0] * 4] * 3] * 2


def test_a_device_goes_through_host_memory() -> None:
    """On the strict stand-in for CuPy, which refuses arrays of NumPy."""

    def work(engine: Engine, rank: int) -> Any:
        x = engine.from_numpy(np.arange(6, dtype=np.float32) + rank)
        engine.call("all_reduce_", x, "world", "sum")
        part = engine.call("reduce_scatter", x, "world", 2, "max")
        stacked = engine.call("all_gather", part, "world", 2)
        assert type(x.array) is type(stacked.array) is StrictArray
        return engine.to_numpy(stacked).reshape(-1).tolist()

    engines = [Engine(backends=Backends(cpu=StrictBackend())) for _ in range(2)]
    assert together(engines, work) == [[1, 3, 5, 7, 9, 11]] * 2


def test_a_frame_replays_from_what_it_received() -> None:
    def work(engine: Engine, rank: int) -> tuple[bytes, Exchanged | None]:
        x = engine.from_numpy(np.random.default_rng(rank).standard_normal(1000))
        engine.call("all_reduce_", x, "world", "sum")
        return engine.to_numpy(x).tobytes(), engine.groups["world"].exchanged()

    for rank, (bits, exchanged) in enumerate(together([Engine(), Engine(), Engine()], work, keeps=True)):
        alone = Engine()
        group = alone.groups["world"] = Group(spec(rank, 3), keeps=True)
        group.replay(exchanged)
        assert work(alone, rank)[0] == bits
        group.replayed(exchanged)
        assert group.needed  # its peers may ask for what it sent
        assert group.completed == 1


def test_a_snapshot_keeps_groups_once_the_peers_have_committed() -> None:
    session = Session()
    group = session.engine.groups["world"] = Group(spec(1, 2), keeps=True)
    group.replay(Exchanged(((0, b""),), (1, 1)))
    session.engine.call("barrier", "world")
    group.replayed(None)
    with pytest.raises(NotImageable, match="'world'"):
        take(session)
    group.forget(0, group.sent[0])
    again = restore(take(session), session.limits).engine.groups["world"]
    assert (again.spec, again.counts(), again.keeps) == (group.spec, group.counts(), True)


def test_a_rank_that_does_not_come_is_named() -> None:
    engine = Engine()
    group = engine.groups["world"] = Group(spec(0, 2, timeout_s=0.1))
    group.communicator = Wires(group, queues_of(2))
    x = engine.from_numpy(np.ones(3))
    with pytest.raises(CollectiveError, match=r"rank 1 \(session s1 on here\) did not come") as caught:
        engine.call("all_reduce_", x, "world", "sum")
    assert caught.value.details["rank"] == 1
    assert engine.to_numpy(x).tolist() == [1, 1, 1]
    with pytest.raises(GroupNotOpen, match="open it again"):
        engine.call("barrier", "world")
