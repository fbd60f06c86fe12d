"""A discrete-event simulation of a fleet: what saturates first, at which size, and which change moves the limit.

``python -m benchmarks.fleet_simulation`` simulates up to 1,000 GPUs with 20,000 sessions, and writes
``benchmarks/results/fleet_simulation.md``. Every cost is a row of :func:`costs`, with its source. Requests, reports,
leases, takeovers and failures are events; steps of sessions are too many for that and are rates.
"""

from __future__ import annotations

import json
import math
import random
import statistics
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

import simpy
import typer

MEASURED: Final = Path(__file__).parent / "results" / "fleet_costs.json"
RESULTS: Final = Path(__file__).parent / "results" / "fleet_simulation.md"
GPUS_A_NODE: Final = 8
SESSIONS_A_GPU: Final = 20
FULL: Final = 0.7
"""The utilisation at which a part counts as saturated: waiting times grow fast beyond it."""

BATCH_S: Final = 0.02
PATIENCE_S: Final = 180.0
"""How long a storm is watched."""

Events = Generator[simpy.Event, Any, Any]

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


class Cost(NamedTuple):
    """One input."""

    value: float
    unit: str
    source: str


def costs() -> dict[str, Cost]:
    """The inputs. What ``benchmarks.fleet_costs`` measures is read from its results."""
    found = json.loads(MEASURED.read_text())["seconds"]
    here = "measured here (`benchmarks.fleet_costs`)"
    rows = {name: Cost(seconds, "s", here) for name, seconds in found.items()}
    aws = "published: AWS, S3 performance guidelines and prices (us-east-1)"
    return rows | {
        "network_s": Cost(0.0005, "s", "assumed: a round trip inside a data centre"),
        "nfs_op_s": Cost(0.002, "s", "assumed: a synchronous metadata operation of a shared file system"),
        "nfs_ops": Cost(20_000, "1/s", "assumed: such operations, all clients together"),
        "nfs_bytes": Cost(5e9, "B/s", "assumed: all clients together"),
        "s3_put_s": Cost(0.030, "s", "assumed: median of a small PUT in the same region (AWS: 100 to 200 ms at most)"),
        "s3_get_s": Cost(0.015, "s", "assumed: median of a small GET in the same region"),
        "s3_puts": Cost(3_500, "1/s", f"{aws}: a prefix; more prefixes scale"),
        "s3_put_usd": Cost(0.005 / 1000, "USD", aws),
        "s3_get_usd": Cost(0.0004 / 1000, "USD", aws),
        "worker_bytes": Cost(1e9, "B/s", "assumed: what one worker loads or stores"),
        "cold_worker_s": Cost(6.0, "s", "goal: a worker that must be started"),
        "replay_s": Cost(0.5, "s", "assumed: the mean replay of a journal since its snapshot"),
        "takeover_ops": Cost(18, "", "counted in `durable/shared`: storage operations of a takeover"),
        "snapshot_bytes": Cost(2e8, "B", "assumed: median; log-normal, a factor of 4 a standard deviation"),
        "step_bytes": Cost(20_000, "B", "assumed: a step's frame and reply, without uploads"),
        "steps": Cost(5.0, "1/s", "assumed: steps of an active session"),
        "active": Cost(0.5, "", "assumed: the part of sessions that compute at a time"),
        "relayed": Cost(0.1, "", "assumed: the part of streams that cannot go directly"),
        "lifetime_s": Cost(3600.0, "s", "assumed: mean life of a session"),
        "idle_every_s": Cost(1800.0, "s", "assumed: how often a session parks and is loaded again"),
        "rest": Cost(0.02, "1/s", "assumed: REST requests of a session"),
        "gateway_s": Cost(0.002, "s", "assumed: a forwarded REST request's processor time"),
        "scan_ops": Cost(3, "", "counted in `fleet/directory`: storage operations a session after its restart"),
        "process_detect_s": Cost(1.0, "s", "assumed: Ray's word that a process has died"),
        "failures": Cost(
            6.5e-3, "1/(node day)",
            "published: Kokolis et al. 2024, Meta's RSC-1; Llama 3 (419 in 54 days on 16,384 GPUs) gives 3.8e-3",
        ),
    }  # fmt: skip


@dataclass(frozen=True)
class Design:
    """What the design decides.

    Attributes:
        report_s: how often a worker reports to the Directory.
        only_changes: whether a report has only the sessions that changed.
        shards: into how many actors the Directory is divided.
        lease_s: the lease of an owner, renewed three times in it.
        owners_a_node: 8 with a lease a worker, 1 with a lease a node.
        cached: whether gateways keep the places of sessions and ask only when a worker does not answer.
        commit_s: how long a commit to an object store gathers records; 0: each step is one PUT.
        spread: whether the sessions of a dead node go to all workers, instead of to fresh ones on one node.
        scans: how many look-ups of a scan run at a time.
    """

    store: str = "directory"
    report_s: float = 1.0
    only_changes: bool = False
    shards: int = 1
    lease_s: float = 6.0
    owners_a_node: int = GPUS_A_NODE
    cached: bool = True
    commit_s: float = 0.0
    spread: bool = True
    scans: int = 1


@dataclass
class Load:
    """What a run measured."""

    created: list[float] = field(default_factory=list)
    loaded: list[float] = field(default_factory=list)
    recovered: list[float] = field(default_factory=list)
    busy: float = 0.0


def quantile(values: list[float], part: float) -> float:
    """A quantile; not a number without values."""
    return sorted(values)[min(int(part * len(values)), len(values) - 1)] if values else math.nan


class Fleet:
    """A fleet of some size in the simulation.

    Args:
        gpus: one worker each, with 20 sessions.
    """

    def __init__(self, gpus: int, design: Design, cost: dict[str, Cost], seed: int = 0) -> None:
        self.env = simpy.Environment()
        self.gpus, self.design = gpus, design
        self.sessions = gpus * SESSIONS_A_GPU
        self.random = random.Random(seed)
        self.load = Load()
        self._cost = {name: each.value for name, each in cost.items()}
        self.shards = [simpy.Resource(self.env) for _ in range(design.shards)]
        # A file system serves a bounded number of operations at a time, less what the leases take; an object store is
        # not bounded here.
        renewals = 2 * 3 / design.lease_s * gpus * design.owners_a_node / GPUS_A_NODE
        free = max(self._cost["nfs_ops"] - renewals, 1) * self._cost["nfs_op_s"]
        slots = max(1, round(free)) if design.store == "directory" else 10_000
        self.storage = simpy.Resource(self.env, slots)
        streams = self._cost["nfs_bytes"] / self._cost["worker_bytes"] if design.store == "directory" else 10_000
        self.streams = simpy.Resource(self.env, max(1, int(streams)))
        self.workers = [simpy.Resource(self.env, 4) for _ in range(gpus)]

    def cost(self, name: str) -> float:
        return self._cost[name]

    # Parts

    def directory(self, service_s: float, shard: int | None = None) -> Events:
        """A call of the Directory: its queue, its service time, the network."""
        chosen = self.shards[self.random.randrange(len(self.shards)) if shard is None else shard]
        with chosen.request() as turn:
            yield turn
            self.load.busy += service_s
            yield self.env.timeout(service_s)
        yield self.env.timeout(max(self.cost("actor_call_s") - service_s, 0))

    def stored(self, operations: float, put: bool = False) -> Events:
        """Some operations on the storage, one after another."""
        if self.design.store == "directory":
            mean = self.cost("nfs_op_s")
        else:
            mean = self.cost("s3_put_s" if put else "s3_get_s")
        with self.storage.request() as turn:
            yield turn
            yield self.env.timeout(operations * self.random.lognormvariate(math.log(mean), 0.4))

    def transferred(self, size: float) -> Events:
        with self.streams.request() as turn:
            yield turn
            yield self.env.timeout(size / self.cost("worker_bytes"))

    # Actors

    def reports(self, shard: int) -> Events:
        """The reports of a shard's workers, in batches. One without changed sessions costs what a question costs."""
        service = self.cost("locate_service_s" if self.design.only_changes else "report_service_s")
        share = self.gpus / len(self.shards) * BATCH_S / self.design.report_s
        while True:
            self.env.process(self.directory(share * service, shard))
            yield self.env.timeout(BATCH_S)

    def arrivals(self, every_s: float, request: Callable[[], Events]) -> Events:
        while True:
            yield self.env.timeout(self.random.expovariate(1 / every_s))
            self.env.process(request())

    def creation(self) -> Events:
        """POST /v1/sessions: place, create on a warm worker, claim and publish, note."""
        began = self.env.now
        yield self.env.timeout(self.cost("network_s") + self.cost("gateway_s"))
        yield from self.directory(self.cost("locate_service_s"))
        with self.random.choice(self.workers).request() as turn:
            yield turn
            yield self.env.timeout(self.cost("create_s"))
            yield from self.stored(6, put=True)
        yield from self.directory(self.cost("locate_service_s"))
        self.load.created.append(self.env.now - began)

    def rest(self) -> Events:
        yield self.env.timeout(self.cost("gateway_s"))
        if not self.design.cached:
            yield from self.directory(self.cost("locate_service_s"))

    def loading(self) -> Events:
        """The first use of a session that was parked: locate, take over."""
        began = self.env.now
        yield from self.directory(self.cost("locate_service_s"))
        yield from self.takeover(self.random.choice(self.workers))
        self.load.loaded.append(self.env.now - began)

    def takeover(self, worker: simpy.Resource) -> Events:
        with worker.request() as turn:
            yield turn
            yield from self.stored(self.cost("takeover_ops"), put=True)
            size = self.random.lognormvariate(math.log(self.cost("snapshot_bytes")), math.log(4))
            yield from self.transferred(size)
            yield self.env.timeout(self.random.expovariate(1 / self.cost("replay_s")))

    def recovery(self, worker: simpy.Resource, began: float, cold: bool) -> Events:
        """A session of a dead node: its client comes back within a second."""
        yield self.env.timeout(self.random.random())
        yield from self.directory(self.cost("locate_service_s"))
        if cold:
            yield self.env.timeout(self.cost("cold_worker_s"))
        yield from self.takeover(worker)
        self.load.recovered.append(self.env.now - began)

    # Runs

    def steady(self, seconds: float) -> Load:
        """Ordinary operation for a time."""
        for shard in range(len(self.shards)):
            self.env.process(self.reports(shard))
        self.env.process(self.arrivals(self.cost("lifetime_s") / self.sessions, self.creation))
        self.env.process(self.arrivals(self.cost("idle_every_s") / self.sessions, self.loading))
        if not self.design.cached:
            self.env.process(self.arrivals(1 / (self.cost("rest") * self.sessions), self.rest))
        self.env.run(seconds)
        return self.load

    def storm(self, nodes: int) -> Load:
        """Some nodes die at once; their sessions go on elsewhere. Times count from the detection."""
        for shard in range(len(self.shards)):
            self.env.process(self.reports(shard))
        # Fresh workers come one node for each that died.
        fresh = self.workers[: nodes * GPUS_A_NODE]
        for number in range(nodes * GPUS_A_NODE * SESSIONS_A_GPU):
            chosen = self.random.choice(self.workers) if self.design.spread else fresh[number % len(fresh)]
            self.env.process(self.recovery(chosen, self.env.now, cold=not self.design.spread))
        expected, until = nodes * GPUS_A_NODE * SESSIONS_A_GPU, 0.0
        while len(self.load.recovered) < expected and until < PATIENCE_S:
            until += 5.0
            self.env.run(until)
        # The others count with the time that they have waited so far.
        self.load.recovered += [until] * (expected - len(self.load.recovered))
        return self.load


class Demand(NamedTuple):
    """A rate against a limit, at some size. ``size``: the number of GPUs at which it is saturated."""

    part: str
    rate: float
    limit: float
    unit: str

    @property
    def use(self) -> float:
        return self.rate / self.limit


def demands(gpus: int, design: Design, cost: dict[str, Cost], gateways: int) -> Iterator[Demand]:
    """The rates that follow from the size, without waiting."""
    value = {name: each.value for name, each in cost.items()}
    sessions = gpus * SESSIONS_A_GPU
    steps = sessions * value["active"] * value["steps"]
    report = value["locate_service_s" if design.only_changes else "report_service_s"]
    asked = sessions * (2 / value["lifetime_s"] + 1 / value["idle_every_s"] + (0 if design.cached else value["rest"]))
    busy = gpus / design.report_s * report + asked * value["locate_service_s"]
    yield Demand("Directory: busy time of its actor", busy / design.shards, 1.0, "s/s")
    renewals = gpus * design.owners_a_node / GPUS_A_NODE * 3 / design.lease_s
    loads = sessions * (1 / value["idle_every_s"] + 1 / value["lifetime_s"])
    if design.store == "directory":
        operations = 2 * renewals + loads * value["takeover_ops"]
        yield Demand("storage: synchronous operations", operations, value["nfs_ops"], "1/s")
        moved = loads * value["snapshot_bytes"] * math.exp(math.log(4) ** 2 / 2)
        yield Demand("storage: bytes", steps * value["step_bytes"] + moved, value["nfs_bytes"], "B/s")
    else:
        each = min(value["steps"], 1 / max(design.commit_s, value["s3_put_s"]))
        puts = renewals + sessions * value["active"] * each
        # Keys of sessions and owners are random, so a store divides them into prefixes as the rate grows.
        yield Demand("storage: PUTs, below one prefix of S3", puts, value["s3_puts"], "1/s")
    relayed = steps * value["relayed"] * value["relayed_message_s"] + sessions * value["rest"] * value["gateway_s"]
    yield Demand("gateways: busy time of one", relayed / gateways, 1.0, "s/s")


def price_a_day(gpus: int, design: Design, cost: dict[str, Cost]) -> dict[str, float]:
    """What S3 costs in requests: leases, commits, takeovers."""
    value = {name: each.value for name, each in cost.items()}
    sessions, day = gpus * SESSIONS_A_GPU, 86_400
    renewals = gpus * design.owners_a_node / GPUS_A_NODE * 3 / design.lease_s
    commits = sessions * value["active"] * min(value["steps"], 1 / max(design.commit_s, value["s3_put_s"]))
    loads = sessions * (1 / value["idle_every_s"] + 1 / value["lifetime_s"])
    return {
        "leases": renewals * day * (value["s3_put_usd"] + value["s3_get_usd"]),
        "commits": commits * day * value["s3_put_usd"],
        "takeovers": loads * day * value["takeover_ops"] / 2 * (value["s3_put_usd"] + value["s3_get_usd"]),
    }


AS_DESIGNED: Final = Design()
CHANGED: Final = Design(report_s=5.0, only_changes=True, owners_a_node=GPUS_A_NODE, lease_s=6.0, scans=32)
S3: Final = Design(store="S3")
S3_CHANGED: Final = replace(CHANGED, store="S3", lease_s=15.0, commit_s=1.0)

VARIANTS: Final = (("as designed", AS_DESIGNED), ("changed", CHANGED), ("S3", S3), ("S3, changed", S3_CHANGED))


def row(*cells: object) -> str:
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def table(head: tuple[str, ...], rows: list[tuple[object, ...]]) -> list[str]:
    return [row(*head), row(*("---" for _ in head)), *(row(*each) for each in rows), ""]


def ms(seconds: float) -> str:
    """A duration for a reader."""
    return "-" if math.isnan(seconds) else f"{seconds * 1e3:.0f} ms" if seconds < 10 else f"{seconds:.0f} s"


def report(sizes: list[int], seconds: float, seed: int = 0) -> str:
    """The results as a document."""
    cost, most = costs(), sizes[-1]
    gateways = max(1, most // 250)
    text = [
        "# A fleet in simulation", "",
        "`python -m benchmarks.fleet_costs && python -m benchmarks.fleet_simulation` makes this page. "
        f"{SESSIONS_A_GPU} sessions a GPU, {GPUS_A_NODE} GPUs a node, one worker a GPU, {gateways} gateways.", "",
        "## What saturates first", "",
        f"The use of each part with {most} GPUs and {most * SESSIONS_A_GPU} sessions, and the size at which it reaches "
        f"{FULL:.0%}.", "",
    ]  # fmt: skip
    rows: list[tuple[object, ...]] = []
    for name, design in (("directory", AS_DESIGNED), ("S3", S3)):
        changed = CHANGED if name == "directory" else S3_CHANGED
        for before, after in zip(
            demands(most, design, cost, gateways), demands(most, changed, cost, gateways), strict=True
        ):
            rows.append((
                name, before.part, f"{before.use:.0%}", f"{most * FULL / before.use:,.0f}",
                f"{after.use:.0%}", f"{most * FULL / after.use:,.0f}",
            ))  # fmt: skip
    text += table(("storage", "part", "use", "GPUs at the limit", "use, changed", "GPUs at the limit, changed"), rows)
    text += [
        f"Changed: reports every {CHANGED.report_s:g} s that have only changes; on S3 also leases of "
        f"{S3_CHANGED.lease_s:g} s and commits that gather records for {S3_CHANGED.commit_s:g} s.", "",
        "## Waiting in ordinary operation", "",
    ]  # fmt: skip
    rows = []
    for size in sizes:
        for name, design in VARIANTS:
            load = Fleet(size, design, cost, seed).steady(seconds)
            rows.append((
                size, size * SESSIONS_A_GPU, name, f"{load.busy / seconds / design.shards:.0%}",
                ms(statistics.median(load.created or [math.nan])), ms(quantile(load.created, 0.95)),
                ms(statistics.median(load.loaded or [math.nan])), ms(quantile(load.loaded, 0.95)),
            ))  # fmt: skip
    text += table(
        ("GPUs", "sessions", "design", "Directory busy", "create, median", "p95", "load a parked session", "p95"), rows
    )
    text += ["A fleet four times as large, to see the limit itself (uncached gateways ask for each REST request):", ""]
    rows = []
    large = most * 4
    for name, design in (
        ("as designed", AS_DESIGNED), ("gateways without a cache", replace(AS_DESIGNED, cached=False)),
        ("four shards", replace(AS_DESIGNED, shards=4)), ("changed", CHANGED),
    ):  # fmt: skip
        load = Fleet(large, design, cost, seed).steady(seconds / 2)
        rows.append((
            large, name, f"{load.busy / (seconds / 2) / design.shards:.0%}",
            ms(statistics.median(load.created or [math.nan])), ms(quantile(load.created, 0.95)),
        ))  # fmt: skip
    text += table(("GPUs", "design", "Directory busy", "create, median", "p95"), rows)
    text += [
        "## A recovery storm", "",
        "Nodes die at once; the times count from the detection (Ray's word on a process "
        f"{cost['process_detect_s'].value:g} s; a node that cannot be reached: the lease, "
        f"{AS_DESIGNED.lease_s * 1.1 + 1:.1f} s, or {S3_CHANGED.lease_s * 1.1 + 1:.1f} s with leases of "
        f"{S3_CHANGED.lease_s:g} s).", "",
    ]  # fmt: skip
    rows = []
    for nodes in sorted({1, max(1, most // GPUS_A_NODE // 30), max(1, most // GPUS_A_NODE // 4)}):
        for name, design in (
            ("as designed", AS_DESIGNED),
            ("changed, on fresh workers", replace(CHANGED, spread=False)),
            ("changed, spread over all", CHANGED),
            ("S3, changed, spread over all", S3_CHANGED),
        ):
            load = Fleet(most, design, cost, seed).storm(nodes)
            worst = max(load.recovered)
            rows.append((
                nodes, len(load.recovered), name, ms(statistics.median(load.recovered)),
                ms(quantile(load.recovered, 0.95)), f"over {ms(worst)}" if worst >= PATIENCE_S else ms(worst),
            ))  # fmt: skip
    text += table(("nodes", "sessions", "design", "median", "p95", "all"), rows)
    text += ["## Failures, restarts and prices", ""]
    a_day = most / GPUS_A_NODE * cost["failures"].value
    restart = most * SESSIONS_A_GPU * cost["scan_ops"].value
    rows = [
        ("node failures a day", f"{a_day:.2f}"),
        ("sessions that move a day because of them", f"{a_day * GPUS_A_NODE * SESSIONS_A_GPU:.0f}"),
        ("reports after a Directory's restart until it knows all workers",
         ms(most * cost["report_service_s"].value + AS_DESIGNED.report_s)),
        ("scan of the dormant sessions after its restart, one at a time, S3", ms(restart * cost["s3_get_s"].value)),
        (f"the same, {CHANGED.scans} at a time", ms(restart * cost["s3_get_s"].value / CHANGED.scans)),
    ]  # fmt: skip
    text += table(("figure", "value"), [tuple(each) for each in rows])
    rows = []
    for name, design in (
        ("as designed", S3), ("a lease of 15 s", replace(S3, lease_s=15.0)),
        ("one lease a node", replace(S3, owners_a_node=1)), ("commits gather 1 s", replace(S3, commit_s=1.0)),
        ("changed", S3_CHANGED),
    ):  # fmt: skip
        price = price_a_day(most, design, cost)
        rows.append((name, *(f"{each:,.0f}" for each in price.values()), f"{sum(price.values()):,.0f}"))
    text += ["Requests of S3, US dollars a day:", ""]
    text += table(("design", "leases", "commits", "takeovers", "all"), rows)
    text += ["## Inputs", ""]
    text += table(("cost", "value", "source"), [
        (name, f"{each.value:.3g} {each.unit}".strip(), each.source) for name, each in cost.items()
    ])  # fmt: skip
    return "\n".join(text).rstrip() + "\n"


@app.command()
def main(
    gpus: int = typer.Option(1000, help="The largest fleet."),
    seconds: float = typer.Option(60.0, help="How long each run simulates."),
    out: Path = RESULTS,
) -> None:
    """Simulate and write the results."""
    sizes = sorted({max(GPUS_A_NODE, gpus // 10), max(GPUS_A_NODE, gpus // 2), gpus})
    text = report(sizes, seconds)
    out.write_text(text)
    print(text)


if __name__ == "__main__":
    app()
