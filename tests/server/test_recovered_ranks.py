"""Ranks whose sessions are recovered: from their journals alone, and in the midst of a collective."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gradwire_server.durable.disk import Disk
from gradwire_server.durable.recovery import recover
from gradwire_server.durable.store import read_spec
from tests.live_server import LiveServer, live_server

from .ranks import WAIT_S, Rank, Ranks, ranks, until

STEP: list[Any] = [
    ["mul", [-1, "float"]], ["all_reduce_", [0, "world"]], ["add_", [-1, 0, "float"]],
    ["all_gather", [-1, "world", 2], 1], ["barrier", ["world"]],
]  # fmt: skip
"""A step with three collectives, whose result depends on all steps before it."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """Sessions in a worker process each, kept on disk."""
    folder = tmp_path_factory.mktemp("data")
    with live_server(session_host="process", worker_per="session", data_dir=folder) as found:
        yield found


def begin(world: Ranks) -> list[int]:
    """A tensor on each rank; returns their ids."""
    world.open()
    world.do(Rank.numbered)
    made = world.do(
        lambda r: r.apply([["arange", [5]], ["to", [0, "float32"]], ["mul_", [1, "float"]]], scalars=[0.1 + r.rank])
    )
    return [reply["first"] + 1 for reply in made]


def step(rank: Rank, tensors: list[int]) -> Any:
    scalars = [0.01 * (rank.rank + 1), 0.5]
    reply = rank.apply(STEP, [-1, 1], external=[tensors[rank.rank]], scalars=scalars)
    assert not reply.get("errors"), reply
    return [value["values"] for value in reply["values"]]


def pid_of(server: LiveServer, rank: Rank) -> int:
    """The process of a rank's session."""

    def find() -> int:
        for worker in list(server.app.state.server.registry.pool._workers):
            if rank.id in worker.hosts:
                return int(worker.pid)
        return 0

    return int(until(find, "a worker"))


def test_a_session_replays_alone(server: LiveServer, tmp_path: Path) -> None:
    """From its journal, and from a snapshot with the rest of the journal, to the same bits."""
    with ranks(server, 2, durability="durable") as pair:
        tensors = begin(pair)
        for _ in range(3):
            last = pair.do(lambda r: step(r, tensors))
        for rank in pair:
            root = server.app.state.server.registry.store.folder(rank.id)
            copy = tmp_path / rank.id
            shutil.copytree(root, copy)
            found = recover(Disk(), copy, read_spec(copy))
            group = found.session.engine.groups["world"]
            assert (group.completed, group.rank, group.communicator) == (9, rank.rank, None)
            alone = found.session.engine.to_numpy(found.session.tensor(tensors[rank.rank]))
            assert alone.tolist() == np.array(last[rank.rank][0], np.float32).tolist()
            found.journal.close()
            found.manifest.close()


def undisturbed(server: LiveServer, steps: int) -> list[Any]:
    with ranks(server, 2, durability="applied") as pair:
        tensors = begin(pair)
        return [pair.do(lambda r: step(r, tensors)) for _ in range(steps)]


def test_a_worker_killed_between_frames_is_only_a_delay(server: LiveServer) -> None:
    wanted = undisturbed(server, 4)
    with ranks(server, 2, durability="applied") as pair:
        tensors, found = begin(pair), []
        for at in range(4):
            if at in (1, 3):
                os.kill(pid_of(server, pair[at % 2]), signal.SIGKILL)
            found.append(pair.do(lambda r: step(r, tensors)))
        assert found == wanted


@pytest.mark.parametrize("victim", [0, 1])
def test_a_worker_killed_while_it_waits_is_only_a_delay(server: LiveServer, victim: int) -> None:
    """The frame runs again and finds the others where they are."""
    wanted = undisturbed(server, 3)
    with ranks(server, 2, durability="applied") as pair:
        tensors = begin(pair)
        assert pair.do(lambda r: step(r, tensors)) == wanted[0]
        before = pid_of(server, pair[victim])
        host = server.app.state.server.registry._sessions[pair[victim].id].host
        waiting = pair.pool.submit(lambda: step(pair[victim], tensors))
        until(lambda: any(entry.submitted for entry in list(host._entries.values())), "a frame that runs")
        os.kill(before, signal.SIGKILL)
        until(lambda: pid_of(server, pair[victim]) != before, "another worker")
        other = step(pair[1 - victim], tensors)
        found = [other, other]
        found[victim] = waiting.result(WAIT_S)
        assert found == wanted[1]
        assert pair.do(lambda r: step(r, tensors)) == wanted[2]
