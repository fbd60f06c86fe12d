"""The fleet in a gateway's metrics, without a cluster."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

pytest.importorskip("ray", reason="a fleet needs Ray: pip install 'gradwire[cluster]'")

from prometheus_client import CollectorRegistry

from gradwire_protocol.errors import Unavailable
from gradwire_server.fleet import gauges
from gradwire_server.fleet.gateway_app import create_gateway
from gradwire_server.fleet.gauges import FRESH_S, FleetGauges
from gradwire_server.fleet.messages import Joined, pack
from gradwire_server.observability.metrics import FLEET, METRICS, PREFIX
from gradwire_server.settings.settings import Settings

from ..live_server import ADMIN_KEY, API_KEY

STATUS: dict[str, Any] = {
    "nodes": [
        {"state": "up", "gpus": 8.0, "gpus_taken": 2.5},
        {"state": "up", "gpus": 8.0, "gpus_taken": 1.0},
        {"state": "draining", "gpus": 0.0, "gpus_taken": 0},
    ],
    "workers": [{"state": state} for state in ("warm", "assigned", "assigned", "starting")],
    "sessions": 12, "dormant": 5, "queue": 3,
}  # fmt: skip


class Directory:
    """What the Directory answers; an exception is raised."""

    def __init__(self) -> None:
        self.asked = 0
        self.answer: Any = STATUS

    async def status(self) -> dict[str, Any]:
        self.asked += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        if self.answer is None:
            await asyncio.sleep(60)
        found: dict[str, Any] = self.answer
        return found


def samples(found: FleetGauges) -> dict[str, float]:
    registry = CollectorRegistry()
    registry.register(found)
    return {
        f"{each.name.removeprefix(PREFIX + FLEET)}{''.join(each.labels.values())}": each.value
        for family in registry.collect()
        for each in family.samples
        if "placement" not in each.name
    }


async def test_a_scrape_shows_what_the_directory_says() -> None:
    directory = Directory()
    found = FleetGauges(directory.status)
    for _ in range(3):
        await found.refresh()
    assert directory.asked == 1, "scrapes of a moment share an answer"
    assert samples(found) == {
        "directory_up": 1, "nodesup": 2, "nodesdraining": 1, "gpustotal": 16, "gpustaken": 3.5,
        "workersstarting": 1, "workerswarm": 1, "workersassigned": 2, "workersdraining": 0,
        "sessionslive": 7, "sessionsdormant": 5, "queue": 3,
    }  # fmt: skip


@pytest.mark.parametrize("answer", [Unavailable("the fleet's directory is away"), None])
async def test_a_directory_that_is_away_fails_no_scrape(answer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gauges, "PATIENCE_S", 0.05)
    directory = Directory()
    found = FleetGauges(directory.status)
    await found.refresh()
    directory.answer = answer
    found._at -= FRESH_S
    await found.refresh()
    assert samples(found) == {"directory_up": 0}


async def test_all_metrics_of_a_fleet_are_listed() -> None:
    directory = Directory()
    found = FleetGauges(directory.status)
    await found.refresh()
    with found.placing.time():
        pass
    registry = CollectorRegistry()
    registry.register(found)
    names = {family.name for family in registry.collect()}
    assert names == {PREFIX + row.name for row in METRICS if row.name.startswith(FLEET)}


class Handle:
    """The Directory for a gateway."""

    async def call(self, method: str, *arguments: Any, patience: float = 0.0) -> dict[str, Any]:
        if method == "join":
            return pack(Joined(incarnation="i", secret=bytes(32)))
        return STATUS if method == "fleet" else {}


async def test_a_gateway_shows_them_to_an_administrator() -> None:
    directory: Any = Handle()
    settings = Settings(session_host="ray", api_keys=(API_KEY,), admin_keys=(ADMIN_KEY,))
    app = create_gateway(settings, directory=directory)
    transport = httpx.ASGITransport(app)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://gateway") as http,
    ):
        refused = await http.get("/metrics", headers={"Authorization": f"Bearer {API_KEY}"})
        assert refused.status_code == 403
        answer = await http.get("/metrics", headers={"Authorization": f"Bearer {ADMIN_KEY}"})
    assert answer.status_code == 200, answer.text
    assert 'gradwire_fleet_workers{state="assigned"} 2.0' in answer.text
    assert "gradwire_frames_total" in answer.text
