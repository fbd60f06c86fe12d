"""What /metrics tells: one row a metric in a table, and the counting of what every frame does.

Labels are bounded: names of the op table's families, codes of errors, routes, devices of this machine. Ids, keys,
names and lines of clients never become labels. Counting a frame costs about 4 us; what would cost more, such as a
count per family of ops, is kept per structure and added up when somebody looks.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from gradwire_protocol.errors import BY_CODE
from gradwire_protocol.frames import PROTOCOL_VERSION, Reply, Structure
from gradwire_protocol.table import TABLE

from .version import VERSION

PREFIX: Final = "gradwire_"
SHORT_S: Final = (0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 60.0)
"""Buckets of what takes from a tenth of a millisecond to a minute: frames, waits, requests, commits."""
LONG_S: Final = (0.001, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0)
"""Buckets of recoveries and snapshots, which grow with a session."""


class Metric(NamedTuple):
    """One metric. ``labels`` are given with the values that each may take."""

    name: str
    kind: type
    text: str
    labels: tuple[tuple[str, str], ...] = ()
    buckets: tuple[float, ...] = ()


_VIA: Final = (("via", "`stream`, `rest`"),)
_ROUTE: Final = (("method", "HTTP's methods, `STREAM`, `other`"), ("route", "the routes of the API, `none`"))
METRICS: Final = (
    Metric(
        "frames_total",
        Counter,
        "Frames, by what became of them; a repeated one was answered from the kept replies",
        (("outcome", "`applied`, `repeated`, `refused`"),),
    ),
    Metric("ops_total", Counter, "Op records that ran or failed, by family of the op table", (("family", "families"),)),
    Metric("results_total", Counter, "Tensors that frames made"),
    Metric("round_trips_total", Counter, "Frames that carried values back: somebody waited, or will, for each"),
    Metric(
        "structures_total",
        Counter,
        "Frames by how their structure came: as the hash of one that is held, whole, or as a hash that is not held "
        "(any more), which costs the client a second sending",
        (("how", "`hash`, `whole`, `unknown`"),),
    ),
    Metric(
        "planned_frames_total",
        Counter,
        "Frames that ran by a plan, having been seen before; a session's description tells why others did not",
    ),
    Metric("frame_seconds", Histogram, "Time a frame took in the engine", buckets=SHORT_S),
    Metric("frame_wait_seconds", Histogram, "Time a frame waited for the engine", buckets=SHORT_S),
    Metric("pending_frames", Gauge, "Frames that wait or run, of all sessions"),
    Metric("received_bytes_total", Counter, "Bytes of messages, frames and tensors received", _VIA),
    Metric("sent_bytes_total", Counter, "Bytes of messages, replies and tensors sent", _VIA),
    Metric("http_requests_total", Counter, "Requests and streams", (*_ROUTE, ("status", "HTTP statuses"))),
    Metric("http_request_seconds", Histogram, "Time from request to response", _ROUTE, SHORT_S),
    Metric("errors_total", Counter, "Errors told to clients", (("code", "the error vocabulary"),)),
    Metric(
        "auth_failures_total",
        Counter,
        "Requests and streams turned away for their key",
        (("code", "`unauthorized`, `forbidden`"),),
    ),
    Metric("rate_limited_total", Counter, "Requests and frames turned away with `too_many_requests`", _VIA),
    Metric(
        "sessions",
        Gauge,
        "Sessions, by whether a host holds them and by what they survive",
        (("state", "`live`, `dormant`"), ("durability", "`none`, `applied`, `durable`")),
    ),
    Metric("session_ends_total", Counter, "Sessions that ended", (("reason", "`deleted`, `expired`, `lost`"),)),
    Metric("streams", Gauge, "Open streams"),
    Metric(
        "memory_bytes",
        Gauge,
        "Memory of live sessions: held by tensors and graphs, the part of it that graphs keep for backward, the most "
        "that was held at once, and what the devices' allocators hold in reserve",
        (("device", "the server's devices"), ("kind", "`live`, `saved`, `peak`, `pooled`")),
    ),
    Metric("journal_bytes_total", Counter, "Bytes appended to journals"),
    Metric("commit_seconds", Histogram, "Time a group commit took, `fdatasync` included", buckets=SHORT_S),
    Metric("snapshot_seconds", Histogram, "Time it took to write a snapshot", buckets=LONG_S),
    Metric("recovery_seconds", Histogram, "Time it took to bring a session back from its journal", buckets=LONG_S),
    Metric(
        "worker_restarts_total",
        Counter,
        "Worker processes that were lost with sessions in them: they died, or were ended because they hung "
        "or did not stop what was cancelled",
        (("reason", "`cancelled`, `died`, `hung`"),),
    ),
    Metric(
        "build_info", Gauge, "1, for the labels", (("version", "of gradwire"), ("protocol", "the protocol's version"))
    ),
)
"""Every metric of this server's own. Beside them stand prometheus-client's of the process: ``process_*``, ``python_*``.
"""

BY_NAME: Final = {row.name: row for row in METRICS}
AUTH_CODES: Final = frozenset({"unauthorized", "forbidden"})
OTHER: Final = "other"
TALLIES_KEPT: Final = 1024


@dataclass(slots=True)
class Applied:
    """What a frame did, told with its reply by whoever ran it: counted here, wherever it ran.

    Attributes:
        ops: the op records by family of the op table, or ``None`` where the structure of this hash was told before.
        reads: how many values were asked for.
        waited: seconds until the engine had time for it.
        took: seconds in the engine.
        repeated: it was answered from the kept replies.
        planned: it ran by a plan.
        notes: what else its session did meanwhile, as names of metrics with values: commits, snapshots, a recovery.
    """

    ops: dict[str, int] | None = None
    reads: int = 0
    waited: float = 0.0
    took: float = 0.0
    repeated: bool = False
    planned: bool = False
    notes: list[tuple[str, float]] = field(default_factory=list)

    @classmethod
    def of(
        cls, structure: Structure | None, known: bool, waited: float, took: float, planned: bool = False
    ) -> Applied:  # fmt: skip
        """What a frame of this structure did; ``known`` spares telling its families again."""
        if structure is None:
            return cls(None, 0, waited, took, repeated=True)
        return cls(None if known else families(structure), len(structure.reads), waited, took, planned=planned)


class Standing(NamedTuple):
    """A session as a scrape sees it. ``memory`` has the fields of ``Session.memory`` in the engine, as last told."""

    state: str
    durability: str
    device: str
    pending: int = 0
    memory: dict[str, int] | None = None


def families(structure: Structure) -> dict[str, int]:
    """How many records of each family a structure has. What is no op counts as ``other``."""
    found: dict[str, int] = {}
    for record in structure.ops:
        name = record[0]
        op = TABLE.get(name) if type(name) is str else None
        family = OTHER if op is None else op.family
        found[family] = found.get(family, 0) + 1
    return found


class _Tally:
    """How often frames of one structure were applied."""

    __slots__ = ("ops", "times")

    def __init__(self, ops: dict[str, int]) -> None:
        self.ops = ops
        self.times = 0


class OpCounts(Collector):
    """The ops that ran, by family. Frames of a known structure only count how often it came."""

    def __init__(self) -> None:
        self._told: dict[str, int] = {}
        self._tallies: OrderedDict[bytes, _Tally] = OrderedDict()

    def knows(self, key: bytes) -> bool:
        """Whether the families of the structure with this hash were told."""
        return key in self._tallies

    def of(self, key: bytes) -> dict[str, int] | None:
        """The ops of the structure with this hash, by family, if they were told."""
        tally = self._tallies.get(key)
        return None if tally is None else tally.ops

    def add(self, key: bytes, ops: dict[str, int] | None) -> None:
        """Count a frame. ``key`` is its structure's hash, or empty."""
        tally = self._tallies.get(key)
        if tally is None:
            if ops is None:
                return
            if not key:
                self._fold(_counted_once(ops))
                return
            tally = self._tallies[key] = _Tally(ops)
            if len(self._tallies) > TALLIES_KEPT:
                self._fold(self._tallies.popitem(last=False)[1])
        tally.times += 1

    def _fold(self, tally: _Tally) -> None:
        for family, count in tally.ops.items():
            self._told[family] = self._told.get(family, 0) + count * tally.times

    def totals(self) -> dict[str, int]:
        """The count of every family that was seen."""
        found = dict(self._told)
        for tally in self._tallies.values():
            for family, count in tally.ops.items():
                found[family] = found.get(family, 0) + count * tally.times
        return found

    def collect(self) -> Iterator[Family]:
        row = BY_NAME["ops_total"]
        told = CounterMetricFamily(PREFIX + row.name, row.text, labels=["family"])
        for family, count in sorted(self.totals().items()):
            told.add_metric([family], count)
        yield told


def _counted_once(ops: dict[str, int]) -> _Tally:
    tally = _Tally(ops)
    tally.times = 1
    return tally


class SessionGauges(Collector):
    """Queue depth, sessions and memory, added up from what the registry knows when somebody looks."""

    def __init__(self) -> None:
        self.look: Callable[[], Iterable[Standing]] = tuple

    def collect(self) -> Iterator[Family]:
        sessions, memory, pending = (self._family(n) for n in ("sessions", "memory_bytes", "pending_frames"))
        counts: dict[tuple[str, str], int] = {}
        held: dict[tuple[str, str], int] = {}
        waiting = 0
        for one in self.look():
            waiting += one.pending
            counts[one.state, one.durability] = counts.get((one.state, one.durability), 0) + 1
            for kind in ("live", "saved", "peak", "pooled"):
                size = (one.memory or {}).get(f"{kind}_bytes", 0)
                held[one.device, kind] = held.get((one.device, kind), 0) + size
        for labels, count in sorted(counts.items()):
            sessions.add_metric(labels, count)
        for labels, size in sorted(held.items()):
            memory.add_metric(labels, size)
        pending.add_metric((), waiting)
        yield from (sessions, memory, pending)

    @staticmethod
    def _family(name: str) -> GaugeMetricFamily:
        row = BY_NAME[name]
        return GaugeMetricFamily(PREFIX + name, row.text, labels=[label for label, _ in row.labels])


COLLECTED: Final = frozenset({"ops_total", "sessions", "memory_bytes", "pending_frames"})
"""What is added up when somebody looks."""


class Metrics:
    """The server's counters, in the registry of one application."""

    content_type = CONTENT_TYPE_LATEST

    def __init__(self) -> None:
        # There would be a second series for each, of when it began, which says nothing here.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = CollectorRegistry()
        made: dict[str, Any] = {}
        for row in METRICS:
            if row.name not in COLLECTED:
                more = {"buckets": row.buckets} if row.buckets else {}
                labels = [label for label, _ in row.labels]
                made[row.name] = row.kind(PREFIX + row.name, row.text, labels, registry=self.registry, **more)
        self.op_counts, self.gauges = OpCounts(), SessionGauges()
        for collector in (self.op_counts, self.gauges):
            self.registry.register(collector)
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        GCCollector(registry=self.registry)
        self._made = made
        made["build_info"].labels(VERSION, str(PROTOCOL_VERSION)).set(1)
        # Looking a child up by its labels takes longer than counting: what every frame counts is looked up here.
        frames, structures = made["frames_total"], made["structures_total"]
        self.frames_applied, self.frames_refused = frames.labels("applied"), frames.labels("refused")
        self.frames_repeated = frames.labels("repeated")
        self.came_as_hash, self.came_whole = structures.labels("hash"), structures.labels("whole")
        self.came_unknown = structures.labels("unknown")
        self.results: Counter = made["results_total"]
        self.planned: Counter = made["planned_frames_total"]
        self.round_trips: Counter = made["round_trips_total"]
        self.frame_seconds: Histogram = made["frame_seconds"]
        self.wait_seconds: Histogram = made["frame_wait_seconds"]
        bytes_in, bytes_out = made["received_bytes_total"], made["sent_bytes_total"]
        self.stream_in, self.stream_out = bytes_in.labels("stream"), bytes_out.labels("stream")
        self.rest_in, self.rest_out = bytes_in.labels("rest"), bytes_out.labels("rest")
        self.requests: Counter = made["http_requests_total"]
        self.request_seconds: Histogram = made["http_request_seconds"]
        self.errors: Counter = made["errors_total"]
        self.auth_failures: Counter = made["auth_failures_total"]
        self.rate_limited: Counter = made["rate_limited_total"]
        self.session_ends: Counter = made["session_ends_total"]
        self.streams: Gauge = made["streams"]
        self.journal_bytes: Counter = made["journal_bytes_total"]
        self.commit_seconds: Histogram = made["commit_seconds"]
        self.snapshot_seconds: Histogram = made["snapshot_seconds"]
        self.recovery_seconds: Histogram = made["recovery_seconds"]
        self.worker_restarts: Counter = made["worker_restarts_total"]

    def knows(self, key: bytes) -> bool:
        """Whether the families of the structure with this hash were told."""
        return self.op_counts.knows(key)

    def applied(self, key: bytes, whole: bool, reply: Reply, told: Applied) -> None:
        """Count a frame that was answered. ``key`` is its structure's hash, ``whole`` whether the structure came."""
        refused = reply.refused
        if refused is None and told.repeated:
            self.frames_repeated.inc()
        elif refused is None:
            self.frames_applied.inc()
            (self.came_whole if whole else self.came_as_hash).inc()
            self.op_counts.add(key, told.ops)
            if told.planned:
                self.planned.inc()
            if reply.made:
                self.results.inc(reply.made)
            if told.reads:
                self.round_trips.inc()
        else:
            self.frames_refused.inc()
            if refused.code == "unknown_structure":
                self.came_unknown.inc()
        self.wait_seconds.observe(told.waited)
        self.frame_seconds.observe(told.took)
        for name, value in told.notes:
            self.note(name, value)

    def note(self, name: str, value: float) -> None:
        """Add to a counter without labels, or observe a duration, by its name in the table."""
        metric = self._made[name]
        (metric.observe if BY_NAME[name].kind is Histogram else metric.inc)(value)

    def told(self, reply: Reply, via: str) -> None:
        """Count the errors of a reply that goes to a client as it is."""
        if reply.refused is not None:
            self.error(reply.refused.code, via)
        for problem in reply.errors:
            self.error(problem.code, via)

    def error(self, code: str, via: str) -> None:
        """Count an error that a client is told."""
        self.errors.labels(code if code in BY_CODE else OTHER).inc()
        if code in AUTH_CODES:
            self.auth_failures.labels(code).inc()
        elif code == "too_many_requests":
            self.rate_limited.labels(via).inc()

    def exposition(self) -> bytes:
        """All metrics in Prometheus' text format."""
        return generate_latest(self.registry)
