"""Groups of one server whose ranks may use NCCL: who agrees to it, and ranks with emulated GPUs over real links."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from gradwire_engine.runtime import backends, nccl
from gradwire_server.fleet.group_messages import Arrival, Seat
from gradwire_server.fleet.group_tables import GroupTables
from gradwire_server.groups.rendezvous import Joining, LocalRendezvous
from tests.cuda_emulation.nccl import ConnectedBackend, Network
from tests.live_server import LiveServer, live_server

from .ranks import Rank, Ranks, ranks, until

VERSION = 22304


class Host:
    """A session's host that is only asked how it opens a group."""

    def __init__(self, version: int | None) -> None:
        self.version, self.opening = version, dict[str, Any]()

    async def prepare_group(self, name: str) -> dict[str, Any]:
        prepared: dict[str, Any] = {"address": ("127.0.0.1", 1), "worker": "here", "token": ""}
        return prepared if self.version is None else prepared | {"nccl": self.version}

    async def open_group(self, opening: dict[str, Any]) -> None:
        self.opening = opening


CASES = [
    ([VERSION, VERSION, VERSION], True),
    ([VERSION, 0, VERSION], False),  # a rank has a journal, or no GPU
    ([VERSION, VERSION, 22809], False),
    ([VERSION, VERSION, None], False),  # a server of the version before
    ([0, 0, 0], False),
]


@pytest.mark.parametrize(("versions", "agreed"), CASES)
def test_ranks_of_a_server_agree_when_they_open_the_group(versions: list[int | None], agreed: bool) -> None:
    hosts = [Host(version) for version in versions]

    async def join() -> None:
        rendezvous = LocalRendezvous()
        await asyncio.gather(*[
            rendezvous.join(Joining("t", "world", rank, len(hosts), 5.0, f"s{rank}", host))  # type: ignore[arg-type]
            for rank, host in enumerate(hosts)
        ])  # fmt: skip

    asyncio.run(join())
    assert [host.opening["nccl"] for host in hosts] == [agreed] * len(hosts)


def test_a_setting_refuses_it_for_all() -> None:
    hosts = [Host(VERSION), Host(VERSION)]

    async def join() -> None:
        rendezvous = LocalRendezvous()
        await asyncio.gather(*[
            rendezvous.join(Joining("t", "world", rank, 2, 5.0, f"s{rank}", host, nccl=rank == 0))  # type: ignore[arg-type]
            for rank, host in enumerate(hosts)
        ])  # fmt: skip

    asyncio.run(join())
    assert [host.opening["nccl"] for host in hosts] == [False, False]


@pytest.mark.parametrize(("versions", "agreed"), CASES)
def test_the_directory_of_a_fleet_decides_for_all_ranks(versions: list[int | None], agreed: bool) -> None:
    async def join() -> Any:
        tables = GroupTables(lambda *_: None)
        arrivals = [
            Arrival(
                tenant="t", group="world", world_size=len(versions),
                seat=Seat(rank=rank, session=f"s{rank}", worker="w", attempt=str(rank), nccl=version or 0),
            )
            for rank, version in enumerate(versions)
        ]  # fmt: skip
        return await asyncio.gather(*[tables.join(arrival, 5.0) for arrival in arrivals])

    assert [meeting.nccl for meeting in asyncio.run(join())] == [agreed] * len(versions)


@pytest.fixture
def network(monkeypatch: pytest.MonkeyPatch) -> Network:
    """GPUs of the sessions that this process has."""
    found = Network()
    monkeypatch.setattr(nccl, "version", lambda: VERSION)

    def start(self: Any, device: str) -> Any:
        return ConnectedBackend(found, int(device.partition(":")[2]))

    monkeypatch.setattr(backends.Backends, "_start", start)
    return found


@pytest.fixture
def server(network: Network) -> Iterator[LiveServer]:
    with live_server(session_host="inline") as found:
        yield found


@pytest.fixture
def world(server: LiveServer) -> Iterator[Ranks]:
    with ranks(server, 3) as found:
        found.open()
        yield found


def summed(rank: Rank, device: Callable[[int], str] = "cuda:{}".format, size: int = 6) -> Any:
    """The sum over all ranks of their numbers, from 1."""
    ops = [["full", [[size], rank.rank + 1, "float32", device(rank.rank)]], ["all_reduce_", [0, "world", "sum"]]]
    return rank.apply(ops, [0])


def numbers(reply: dict[str, Any]) -> list[float]:
    assert not reply.get("errors"), reply
    found: list[float] = reply["values"][0]["values"]
    return found


def test_sessions_on_gpus_of_their_own_are_connected(world: Ranks, network: Network) -> None:
    assert [rank.counts()["nccl"] for rank in world] == [False] * 3
    for _ in range(2):
        assert [numbers(reply) for reply in world.do(summed)] == [[6.0] * 6] * 3
    assert [rank.counts()["nccl"] for rank in world] == [True] * 3
    assert sorted(network.made) == [0, 1, 2]
    assert network.bytes_moved == 2 * 2 * 2 * 24
    for rank in world:
        world.http.delete(f"{rank.session}/groups/world")
    until(lambda: sorted(network.destroyed) == [0, 1, 2], "the communicators are destroyed")
    assert network.aborted == []


def test_sessions_on_one_gpu_and_in_host_memory_are_not(world: Ranks, network: Network) -> None:
    for device in ("cuda:0", "cpu"):
        replies = world.do(lambda rank, device=device: summed(rank, lambda _: device))  # type: ignore[misc]
        assert [numbers(reply) for reply in replies] == [[6.0] * 6] * 3
    assert network.made == []


def test_a_session_with_a_journal_has_all_ranks_go_through_host_memory(network: Network, tmp_path: Any) -> None:
    with live_server(session_host="inline", data_dir=tmp_path) as server, ranks(server, 2) as found:
        durable = found.http.post("/v1/sessions", json={"durability": "applied"})
        found.each[1] = Rank(found.http, durable.headers["location"], 1)
        found.open()
        assert [numbers(reply) for reply in found.do(summed)] == [[3.0] * 6] * 2
        assert network.made == []


def test_a_session_that_is_deleted_in_a_collective_ends_it_for_the_others(world: Ranks, network: Network) -> None:
    world.do(summed)
    network.silent.add(2)  # it has come, and nothing of it arrives
    began = time.monotonic()
    timer = threading.Timer(0.5, lambda: world.http.delete(world[2].session))
    timer.start()
    *others, deleted = world.do(summed)
    timer.join()
    assert time.monotonic() - began < 50
    assert deleted["errors"]
    for reply in others:
        assert any("rank 2" in problem["detail"] for problem in reply["errors"]), reply
    until(lambda: {0, 1} <= set(network.aborted), "the communicators are aborted")
    assert all(rank.counts()["failed"] for rank in (world[0], world[1]))
