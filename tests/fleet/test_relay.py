"""Relayed streams: what a gateway holds of them counts for the key, and so do their bytes, once."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("ray", reason="a fleet needs Ray: pip install 'gradwire[cluster]'")

from starlette.websockets import WebSocket

from gradwire_server.auth.caller import Caller
from gradwire_server.auth.passes import PassMint
from gradwire_server.fleet import relay
from gradwire_server.fleet.messages import Placement
from gradwire_server.http.backlog import SMALL_BYTES, Backlog

from ..server.exchange import binary, stream
from ..small_fleet import WORKER, SmallFleet, small_fleet

RATE = 50_000_000
LARGE = 3 << 20


class Places:
    """One worker has everything."""

    def __init__(self, fleet: SmallFleet) -> None:
        self._fleet = fleet

    async def locate(self, session: str, tenant: str, silent: str = "", fresh: bool = False) -> Placement:
        return Placement(session=session, tenant=tenant, worker=WORKER, url=self._fleet.worker.url)

    async def mint(self) -> PassMint:
        return self._fleet.mint


@pytest.fixture(scope="module")
def fleet() -> Iterator[SmallFleet]:
    limits: dict[str, Any] = {"max_bytes_per_second": RATE}
    with small_fleet(gateway=limits, worker=limits) as found:

        async def relayed(socket: WebSocket, session: str, caller: Caller, first: bytes | str) -> None:
            backlog = found.gateway.app.state.server.backlogs.of(caller.key.tenant)
            await relay.run(Places(found), socket, session, caller, first, backlog)

        found.director.relay = relayed  # type: ignore[method-assign]
        yield found


def test_bytes_of_a_relayed_stream_count_once_at_the_worker(fleet: SmallFleet) -> None:
    fleet.point(None)
    session = fleet.create()
    here, there = (each.app.state.server.access.rates.usage(fleet.key) for each in (fleet.gateway, fleet.worker))
    before = here.bytes.used, there.bytes.used
    with stream(fleet.gateway, session) as peer:
        ops = [["upload", ["payload", "uint8", [LARGE]]]]
        peer.send(binary(1, ops, [0], payloads=[{"buffer": 0}]), [bytes(LARGE)])
        reply, _ = peer.reply()
        assert reply.errors == []
    assert (there.bytes.used - before[1]) * RATE > 2 * LARGE, "up and down"
    assert here.bytes.used == before[0]
    backlog = fleet.gateway.app.state.server.backlogs.of(fleet.key.tenant)
    assert backlog.pending_bytes == 0
    fleet.delete(session)


async def test_what_a_gateway_holds_of_a_stream_is_bounded_for_the_key() -> None:
    backlog = Backlog(LARGE)
    paused: list[str] = []
    direct: Any = SimpleNamespace(
        report_partial=lambda on_partial: None, pause_reading=lambda: paused.append("paused"),
        resume=lambda: paused.append("resumed"),
    )  # fmt: skip
    first, second = relay.Held(backlog, None), relay.Held(backlog, direct)
    with first.passing(bytes(LARGE)), second.passing(bytes(SMALL_BYTES + 1)):
        assert backlog.pending_bytes == LARGE + SMALL_BYTES + 1
        await asyncio.wait_for(first.room(), 1)  # the first one that waits goes on
        waiting = asyncio.create_task(second.room())
        await asyncio.sleep(0.05)
        assert not waiting.done()
        second._on_partial(2 * SMALL_BYTES)
        assert paused == ["paused"]
    await asyncio.wait_for(waiting, 5)
    await asyncio.sleep(0.05)
    assert paused[-1] == "resumed"
    for each in (first, second):
        each.close()
    assert backlog.pending_bytes == 0
