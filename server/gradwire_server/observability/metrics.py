"""The server's metrics: a table with one row per metric, and the counters of every frame.

Labels are bounded: families of the op table, error codes, routes, devices of this machine. Ids, keys, names and source
lines of clients never become labels. Counting a frame costs about 4 us. Costlier counts, such as ops per family, are
kept per structure and summed at scrape time.
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

from ..settings.version import VERSION

PREFIX: Final = "gradwire_"
SHORT_S: Final = (0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 60.0)
"""Buckets for frames, waits, requests and commits: 0.1 ms to a minute."""
LONG_S: Final = (0.001, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0)
"""Buckets for recoveries and snapshots, whose time grows with the session."""


class Metric(NamedTuple):
    """One metric. ``labels`` are pairs of a name and its possible values."""

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
        "Frames by outcome; a repeated frame was answered from the kept replies",
        (("outcome", "`applied`, `repeated`, `refused`"),),
    ),
    Metric("ops_total", Counter, "Op records run, by family of the op table", (("family", "families"),)),
    Metric("results_total", Counter, "Tensors created by frames"),
    Metric("round_trips_total", Counter, "Frames that returned values"),
    Metric(
        "structures_total",
        Counter,
        "Frames by the form of their structure: a known hash, the whole structure, or an unknown hash, which makes the "
        "client resend the frame",
        (("how", "`hash`, `whole`, `unknown`"),),
    ),
    Metric(
        "planned_frames_total", Counter, "Frames that ran by a plan; `GET /v1/sessions/{id}` shows why others did not"
    ),
    Metric("frame_seconds", Histogram, "Run time of a frame in the engine", buckets=SHORT_S),
    Metric("frame_wait_seconds", Histogram, "Time a frame waited for the engine", buckets=SHORT_S),
    Metric("pending_frames", Gauge, "Queued and running frames of all sessions"),
    Metric("received_bytes_total", Counter, "Bytes of messages, frames and tensors received", _VIA),
    Metric("sent_bytes_total", Counter, "Bytes of messages, replies and tensors sent", _VIA),
    Metric("http_requests_total", Counter, "Requests and streams", (*_ROUTE, ("status", "HTTP statuses"))),
    Metric("http_request_seconds", Histogram, "Time from request to response", _ROUTE, SHORT_S),
    Metric("errors_total", Counter, "Errors returned to clients", (("code", "the error vocabulary"),)),
    Metric(
        "auth_failures_total",
        Counter,
        "Requests and streams refused because of their key",
        (("code", "`unauthorized`, `forbidden`"),),
    ),
    Metric("rate_limited_total", Counter, "Requests and frames refused with `too_many_requests`", _VIA),
    Metric(
        "sessions",
        Gauge,
        "Sessions by state (loaded in a host, or dormant on disk) and durability",
        (("state", "`live`, `dormant`"), ("durability", "`none`, `applied`, `durable`")),
    ),
    Metric("session_ends_total", Counter, "Sessions that ended", (("reason", "`deleted`, `expired`, `lost`"),)),
    Metric("streams", Gauge, "Open streams"),
    Metric(
        "memory_bytes",
        Gauge,
        "Memory of live sessions: all tensors and graphs (`live`), values saved for backward (`saved`), the maximum "
        "(`peak`) and the unused reserve of the devices' allocators (`pooled`)",
        (("device", "the server's devices"), ("kind", "`live`, `saved`, `peak`, `pooled`")),
    ),
    Metric("journal_bytes_total", Counter, "Bytes appended to journals"),
    Metric("commit_seconds", Histogram, "Duration of a group commit, `fdatasync` included", buckets=SHORT_S),
    Metric("snapshot_seconds", Histogram, "Duration of writing a snapshot", buckets=LONG_S),
    Metric("recovery_seconds", Histogram, "Duration of a session's recovery from its journal", buckets=LONG_S),
    Metric(
        "worker_restarts_total",
        Counter,
        "Worker processes lost with sessions in them: they died, hung, or did not stop a cancelled frame",
        (("reason", "`cancelled`, `died`, `hung`"),),
    ),
    Metric("fleet_directory_up", Gauge, "At a gateway: 1 while the fleet's directory answers; without it, no others"),
    Metric("fleet_nodes", Gauge, "At a gateway: nodes of the fleet", (("state", "`up`, `draining`"),)),
    Metric("fleet_gpus", Gauge, "At a gateway: GPUs of all nodes", (("kind", "`total`, `taken`"),)),
    Metric(
        "fleet_workers",
        Gauge,
        "At a gateway: workers of the fleet",
        (("state", "`starting`, `warm`, `assigned`, `draining`"),),
    ),
    Metric("fleet_sessions", Gauge, "At a gateway: sessions of the fleet", (("state", "`live`, `dormant`"),)),
    Metric("fleet_queue", Gauge, "At a gateway: sessions of the fleet that wait for a worker"),
    Metric(
        "fleet_placement_seconds",
        Histogram,
        "At a gateway: time until a new session that it asked for had a worker",
        buckets=LONG_S,
    ),
    Metric(
        "build_info", Gauge, "Always 1; see the labels", (("version", "of gradwire"), ("protocol", "protocol version"))
    ),
)
"""The server's own metrics. prometheus-client adds ``process_*`` and ``python_*``."""

BY_NAME: Final = {row.name: row for row in METRICS}
AUTH_CODES: Final = frozenset({"unauthorized", "forbidden"})
OTHER: Final = "other"
TALLIES_KEPT: Final = 1024
OPS_NAMED: Final = 6


@dataclass(slots=True)
class Applied:
    """The statistics of an applied frame. The host sends them with the reply, and the server's process counts them.

    Attributes:
        ops: the op records by family, or ``None`` when an earlier frame already reported this structure.
        reads: the number of values read.
        waited: seconds in the queue.
        took: seconds in the engine.
        repeated: the reply came from the kept replies.
        planned: the frame ran by a plan.
        notes: other measurements of the session since the last frame, by metric: commits, snapshots, a recovery.
        what: the first ops by name, whenever ``ops`` is there.
    """

    ops: dict[str, int] | None = None
    reads: int = 0
    waited: float = 0.0
    took: float = 0.0
    repeated: bool = False
    planned: bool = False
    notes: list[tuple[str, float]] = field(default_factory=list)
    what: str = ""

    @classmethod
    def of(cls, structure: Structure | None, known: bool, waited: float, took: float, planned: bool = False) -> Applied:
        """The statistics of a frame. ``known``: the families of this structure were already reported."""
        if structure is None:
            return cls(None, 0, waited, took, repeated=True)
        if known:
            return cls(None, len(structure.reads), waited, took, planned=planned)
        ops, what = families(structure), first_ops(structure)
        return cls(ops, len(structure.reads), waited, took, planned=planned, what=what)


class SessionState(NamedTuple):
    """A session's state at a scrape. ``memory`` has the last known fields of the engine's ``Session.memory``."""

    state: str
    durability: str
    device: str
    pending: int = 0
    memory: dict[str, int] | None = None


def families(structure: Structure) -> dict[str, int]:
    """The number of records of each family in a structure. Unknown ops count as ``other``."""
    found: dict[str, int] = {}
    for record in structure.ops:
        name = record[0]
        op = TABLE.get(name) if type(name) is str else None
        family = OTHER if op is None else op.family
        found[family] = found.get(family, 0) + 1
    return found


def first_ops(structure: Structure) -> str:
    """The first different ops of a structure by name, such as ``linear, relu, …``. Unknown ops are left out."""
    found: dict[str, None] = {}
    for record in structure.ops:
        name = record[0]
        if type(name) is str and name in TABLE:
            found[name] = None
            if len(found) > OPS_NAMED:
                return ", ".join(list(found)[:OPS_NAMED]) + ", …"
    return ", ".join(found)


class _Tally:
    """How often frames with one structure were applied."""

    __slots__ = ("count", "ops", "times", "what")

    def __init__(self, ops: dict[str, int], what: str = "") -> None:
        self.ops = ops
        self.count = sum(ops.values())
        self.what = what
        self.times = 0


class OpCounts(Collector):
    """Op counts by family. A frame with a known structure only increments that structure's counter."""

    def __init__(self) -> None:
        self._evicted: dict[str, int] = {}
        self._tallies: OrderedDict[bytes, _Tally] = OrderedDict()

    def knows(self, key: bytes) -> bool:
        """Whether the families of the structure with this hash are known."""
        return key in self._tallies

    def of(self, key: bytes) -> dict[str, int] | None:
        """The ops of the structure with this hash, by family, if known."""
        tally = self._tallies.get(key)
        return None if tally is None else tally.ops

    def summary(self, key: bytes) -> tuple[int, str] | None:
        """The number of ops of the structure with this hash, and the names of the first ones, if known."""
        tally = self._tallies.get(key)
        return None if tally is None else (tally.count, tally.what)

    def add(self, key: bytes, ops: dict[str, int] | None, what: str = "") -> None:
        """Count a frame. ``key`` is its structure's hash, or empty; ``what`` names its first ops."""
        tally = self._tallies.get(key)
        if tally is None:
            if ops is None:
                return
            if not key:
                self._fold(_counted_once(ops))
                return
            tally = self._tallies[key] = _Tally(ops, what)
            if len(self._tallies) > TALLIES_KEPT:
                self._fold(self._tallies.popitem(last=False)[1])
        tally.times += 1

    def _fold(self, tally: _Tally) -> None:
        for family, count in tally.ops.items():
            self._evicted[family] = self._evicted.get(family, 0) + count * tally.times

    def totals(self) -> dict[str, int]:
        """The op count of every family."""
        found = dict(self._evicted)
        for tally in self._tallies.values():
            for family, count in tally.ops.items():
                found[family] = found.get(family, 0) + count * tally.times
        return found

    def collect(self) -> Iterator[Family]:
        row = BY_NAME["ops_total"]
        metric = CounterMetricFamily(PREFIX + row.name, row.text, labels=["family"])
        for family, count in sorted(self.totals().items()):
            metric.add_metric([family], count)
        yield metric


def _counted_once(ops: dict[str, int]) -> _Tally:
    tally = _Tally(ops)
    tally.times = 1
    return tally


class SessionGauges(Collector):
    """Queue depth, sessions and memory, summed over the registry at scrape time."""

    def __init__(self) -> None:
        self.states: Callable[[], Iterable[SessionState]] = tuple

    def collect(self) -> Iterator[Family]:
        sessions, memory, pending = (self._family(n) for n in ("sessions", "memory_bytes", "pending_frames"))
        counts: dict[tuple[str, str], int] = {}
        held: dict[tuple[str, str], int] = {}
        waiting = 0
        for session in self.states():
            waiting += session.pending
            counts[session.state, session.durability] = counts.get((session.state, session.durability), 0) + 1
            for kind in ("live", "saved", "peak", "pooled"):
                size = (session.memory or {}).get(f"{kind}_bytes", 0)
                held[session.device, kind] = held.get((session.device, kind), 0) + size
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


FLEET: Final = "fleet_"
"""What the names of a gateway's own metrics begin with."""

COLLECTED: Final = frozenset({"ops_total", "sessions", "memory_bytes", "pending_frames"}) | {
    name for name in BY_NAME if name.startswith(FLEET)
}
"""Metrics computed at scrape time."""


class Metrics:
    """The metrics of one application."""

    content_type = CONTENT_TYPE_LATEST
    counts_first = False

    def __init__(self) -> None:
        # prometheus-client would add a second series with the creation time of each counter.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = CollectorRegistry()
        made: dict[str, Any] = {}
        for row in METRICS:
            if row.name not in COLLECTED:
                more = {"buckets": row.buckets} if row.buckets else {}
                labels = [label for label, _ in row.labels]
                made[row.name] = row.kind(PREFIX + row.name, row.text, labels, registry=self.registry, **more)
        self.op_counts, self.gauges = OpCounts(), SessionGauges()
        self.knows = self.op_counts.knows
        for collector in (self.op_counts, self.gauges):
            self.registry.register(collector)
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        GCCollector(registry=self.registry)
        self._made = made
        made["build_info"].labels(VERSION, str(PROTOCOL_VERSION)).set(1)
        # A lookup by labels costs more than the increment, so the counters of every frame are looked up once.
        frames, structures = made["frames_total"], made["structures_total"]
        self.frames_applied, self.frames_refused = frames.labels("applied"), frames.labels("refused")
        self.frames_repeated = frames.labels("repeated")
        self.structures_by_hash, self.structures_whole = structures.labels("hash"), structures.labels("whole")
        self.structures_unknown = structures.labels("unknown")
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

    def applied(self, key: bytes, whole: bool, reply: Reply, stats: Applied) -> None:
        """Count a frame and its reply. ``key`` is the structure's hash; ``whole``: the frame carried the structure."""
        refused = reply.refused
        if refused is None and stats.repeated:
            self.frames_repeated.inc()
        elif refused is None:
            self.frames_applied.inc()
            (self.structures_whole if whole else self.structures_by_hash).inc()
            self.op_counts.add(key, stats.ops, stats.what)
            if stats.planned:
                self.planned.inc()
            if reply.made:
                self.results.inc(reply.made)
            if stats.reads:
                self.round_trips.inc()
        else:
            self.frames_refused.inc()
            if refused.code == "unknown_structure":
                self.structures_unknown.inc()
        self.wait_seconds.observe(stats.waited)
        self.frame_seconds.observe(stats.took)
        for name, value in stats.notes:
            self.note(name, value)

    def note(self, name: str, value: float) -> None:
        """Add to a counter without labels, or observe a duration, by the metric's name."""
        metric = self._made[name]
        (metric.observe if BY_NAME[name].kind is Histogram else metric.inc)(value)

    def count_errors(self, reply: Reply, via: str) -> None:
        """Count the errors of a reply to a client."""
        if reply.refused is not None:
            self.error(reply.refused.code, via)
        for problem in reply.errors:
            self.error(problem.code, via)

    def error(self, code: str, via: str) -> None:
        """Count an error returned to a client."""
        self.errors.labels(code if code in BY_CODE else OTHER).inc()
        if code in AUTH_CODES:
            self.auth_failures.labels(code).inc()
        elif code == "too_many_requests":
            self.rate_limited.labels(via).inc()

    def exposition(self) -> bytes:
        """All metrics in Prometheus' text format."""
        return generate_latest(self.registry)
