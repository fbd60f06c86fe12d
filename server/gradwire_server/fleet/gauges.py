"""The fleet in a gateway's metrics: what the Directory says of it, asked for at a scrape."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Any, Final

import structlog
from prometheus_client import Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from gradwire_protocol.errors import GradwireError

from ..observability.metrics import BY_NAME, PREFIX

PATIENCE_S: Final = 2.0
"""How long a scrape waits for the Directory."""

FRESH_S: Final = 5.0
"""Scrapes in this time get the same values, so that they cost the Directory little, however many gateways there are."""

WORKER_STATES: Final = ("starting", "warm", "assigned", "draining")
NODE_STATES: Final = ("up", "draining")

log = structlog.get_logger("gradwire.fleet")


class FleetGauges(Collector):
    """Nodes, GPUs, workers, sessions and the queue. Without the Directory, only that it is away.

    Args:
        status: asks the Directory for its state of the fleet.

    Attributes:
        placing: durations of the placements that this gateway asked for.
    """

    def __init__(self, status: Callable[[], Awaitable[dict[str, Any]]]) -> None:
        self._status = status
        self._known: dict[str, Any] | None = None
        self._at = -FRESH_S
        row = BY_NAME["fleet_placement_seconds"]
        self.placing = Histogram(PREFIX + row.name, row.text, registry=None, buckets=row.buckets)

    async def refresh(self) -> None:
        """Ask the Directory, unless it was asked a moment ago."""
        if time.monotonic() - self._at < FRESH_S:
            return
        self._at = time.monotonic()
        try:
            async with asyncio.timeout(PATIENCE_S):
                self._known = await self._status()
        except (TimeoutError, GradwireError) as error:
            self._known = None
            log.warning("no metrics of the fleet: its directory is away", reason=str(error))

    def collect(self) -> Iterator[Family]:
        known = self._known
        yield _family("fleet_directory_up", [((), known is not None)])
        if known is not None:
            yield from _gauges(known)
        yield from self.placing.collect()


def _gauges(known: dict[str, Any]) -> Iterator[Family]:
    nodes, workers = known["nodes"], known["workers"]
    yield _family("fleet_nodes", _by_state(nodes, NODE_STATES))
    gpus = {"total": sum(each["gpus"] for each in nodes), "taken": sum(each["gpus_taken"] for each in nodes)}
    yield _family("fleet_gpus", (((kind,), amount) for kind, amount in gpus.items()))
    yield _family("fleet_workers", _by_state(workers, WORKER_STATES))
    dormant = known["dormant"]
    counts = {"live": known["sessions"] - dormant, "dormant": dormant}
    yield _family("fleet_sessions", (((state,), count) for state, count in counts.items()))
    yield _family("fleet_queue", [((), known["queue"])])


def _by_state(rows: list[dict[str, Any]], states: tuple[str, ...]) -> list[tuple[tuple[str], int]]:
    counts = Counter(str(row["state"]) for row in rows)
    return [((state,), counts[state]) for state in states]


def _family(name: str, values: Iterable[tuple[tuple[str, ...], float]]) -> Family:
    row = BY_NAME[name]
    family = GaugeMetricFamily(PREFIX + name, row.text, labels=[label for label, _ in row.labels])
    for labels, value in values:
        family.add_metric(labels, float(value))
    return family
