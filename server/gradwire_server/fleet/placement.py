"""The workers of the fleet: Ray starts, places and watches them; this module decides which session gets which."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from math import ceil
from typing import Any, Final

import ray
import structlog

from gradwire_protocol.errors import InvalidRequest, Unavailable

from ..settings.settings import Settings, variable
from .messages import NAMESPACE, WORKER_PREFIX, Facts, unpack
from .resources import Resources, requested

START_TIMEOUT_S: Final = 120.0
"""For a worker that got its resources to import its libraries and listen."""

RECLAIM_AFTER_S: Final = 1.0
"""A session that waits longer takes the place of idle workers."""

UNAVAILABLE_S: Final = 0.5

PROCESS_DIED: Final = ("its worker process has died", "exit type: system_error", "connection error code")
"""What Ray's word on an actor contains when its node saw the kernel close the connection of the actor's process."""

log = structlog.get_logger("gradwire.fleet")


@dataclass(eq=False)
class FleetWorkerState:
    """A worker that the Directory knows.

    Attributes:
        avoided: the nodes that were drained when Ray was asked to place it.
        assigned: the tenant or the session that it belongs to; empty for a warm worker.
        placed: Ray has found a node for it.
        ready: it listens.
        draining: it gets no more sessions.
        reserved: sessions that are being created or loaded on it.
        idle_since: when it last had a session.
    """

    id: str
    handle: Any
    resources: Resources
    avoided: frozenset[str] = frozenset()
    placed: bool = False
    ready: bool = False
    draining: bool = False
    assigned: str = ""
    url: str = ""
    node: str = ""
    version: str = ""
    owner: str = ""
    pid: int = 0
    reserved: int = 0
    idle_since: float = field(default_factory=time.monotonic)
    seen: float = field(default_factory=time.monotonic)


class Workers:
    """All workers.

    Args:
        settings: of the fleet; ``packed`` is what a worker is started with.
        count: the number of sessions of a worker.
        died: called with a worker and why it ended, when Ray says that it has.
    """

    def __init__(
        self,
        settings: Settings,
        packed: dict[str, Any],
        secret: bytes,
        count: Callable[[str], int],
        died: Callable[[FleetWorkerState, str, bool], None],
    ) -> None:
        self.settings = settings
        self.packed = packed
        self.secret = secret
        self.known: dict[str, FleetWorkerState] = {}
        self.drained: set[str] = set()
        """Nodes that get no workers."""
        self._count = count
        self._died = died
        self._changed = asyncio.Event()
        self._waiting: dict[Resources, Counter[str]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.default = requested(settings, None)

    # Choice

    async def place(self, owner: str, resources: Resources, avoided: str = "") -> FleetWorkerState:
        """A worker for a session of this owner (a tenant, or a session of its own worker). Counts as reserved.

        Args:
            avoided: a worker that must not be it.

        Raises:
            InvalidRequest: when no node can have the resources.
            Unavailable: when none has them free before the placement timeout.
        """
        deadline = time.monotonic() + self.settings.placement_timeout_s
        while True:
            found = self._choose(owner, resources, avoided)
            if found is not None:
                found.assigned, found.idle_since = owner, time.monotonic()
                found.reserved += 1
                self.refill()
                return found
            self._check_possible(resources)
            waiting = self._waiting.setdefault(resources, Counter())
            waiting[owner] += 1
            try:
                self.refill()
                changed = self._changed
                await asyncio.wait_for(changed.wait(), max(min(deadline - time.monotonic(), RECLAIM_AFTER_S), 0.001))
            except TimeoutError:
                if time.monotonic() > deadline + (START_TIMEOUT_S if self._starting(resources) else 0.0):
                    raise self._timeout(resources) from None
                self._reclaim(resources)
            finally:
                waiting[owner] -= 1
                if not waiting[owner]:
                    del waiting[owner]
                    if not waiting:
                        self._waiting.pop(resources, None)

    def _choose(self, owner: str, resources: Resources, avoided: str) -> FleetWorkerState | None:
        most, best = self._most, None
        for each in self.known.values():
            if not each.ready or each.draining or each.resources != resources or each.assigned not in ("", owner):
                continue
            if each.id == avoided or self._count(each.id) + each.reserved >= most:
                continue
            if each.assigned:
                return each
            best = best or each
        return best

    @property
    def _most(self) -> int:
        """How many sessions a worker may have."""
        return 1 if self.settings.worker_per == "session" else self.settings.sessions_per_worker

    def unreserve(self, state: FleetWorkerState) -> None:
        """A session that was placed on a worker is there, or will not come."""
        state.reserved -= 1
        state.idle_since = time.monotonic()
        self._notify()

    @property
    def queue(self) -> int:
        """How many sessions wait for a worker."""
        return sum(waiting.total() for waiting in self._waiting.values())

    def _notify(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    def _starting(self, resources: Resources) -> bool:
        """Whether a worker has got these resources and is about to listen."""
        return any(each.placed and not each.ready and each.resources == resources for each in self.known.values())

    def _reclaim(self, resources: Resources) -> None:
        """End idle workers whose resources a waiting session of another class may need."""
        now, needed = time.monotonic(), set(resources.demand())
        for each in list(self.known.values()):
            idle = each.ready and not self._count(each.id) and not each.reserved and not each.draining
            # Another warm worker would take the place of a warm one.
            warm = not each.assigned and each.resources == self.default
            helps = each.resources != resources and not needed.isdisjoint(each.resources.demand())
            if idle and helps and not warm and now - each.idle_since > RECLAIM_AFTER_S:
                self.stop(each)

    # Refusals

    def _check_possible(self, resources: Resources) -> None:
        if self.settings.autoscaling:
            return
        nodes = self._nodes()
        if not any(_fits(resources, node["Resources"], node.get("Labels", {})) for node in nodes):
            raise InvalidRequest(
                f"no node of the fleet has {resources.shown}; {_existing(nodes)}",
                nodes=[_described(node) for node in nodes],
            )

    def _timeout(self, resources: Resources) -> Unavailable:
        wait = self.settings.placement_timeout_s
        nodes = self._nodes()
        return Unavailable(
            f"no node had {resources.shown} free within {wait:g} s ({variable('placement_timeout_s')}); "
            f"{_existing(nodes)}; free now: {_amounts(ray.available_resources())}",
            setting=variable("placement_timeout_s"), limit=wait, nodes=[_described(node) for node in nodes],
        )  # fmt: skip

    def _nodes(self) -> list[dict[str, Any]]:
        return [node for node in ray.nodes() if node["Alive"] and node["NodeID"] not in self.drained]

    # Starting

    def refill(self) -> None:
        """Start the workers that waiting sessions and the warm pool need."""
        wanted = {
            resources: sum(ceil(count / self._most) for count in owners.values())
            for resources, owners in self._waiting.items()
        }
        wanted[self.default] = wanted.get(self.default, 0) + self.settings.warm_workers
        for resources, needed in wanted.items():
            there = sum(
                not each.assigned and not each.draining and each.resources == resources for each in self.known.values()
            )
            for _ in range(needed - there):
                self._spawn(self._start(self._ask(resources)))

    def _ask(self, resources: Resources) -> FleetWorkerState:
        """Ask Ray for a worker."""
        from .worker import FleetWorker

        name = secrets.token_hex(8)
        actor: Any = ray.remote(FleetWorker)
        handle: Any = actor.options(
            name=WORKER_PREFIX + name, namespace=NAMESPACE, lifetime="detached", max_restarts=0, max_task_retries=0,
            max_concurrency=1000, **resources.options(self.drained),
        ).remote(name, self.packed, self.secret, _plain(resources))  # fmt: skip
        state = self.known[name] = FleetWorkerState(name, handle, resources, frozenset(self.drained))
        return state

    async def _start(self, state: FleetWorkerState) -> None:
        """Wait until Ray has placed a worker and it listens."""
        name, resources, began = state.id, state.resources, time.monotonic()
        try:
            async with asyncio.timeout(self.settings.placement_timeout_s):
                await state.handle.ping.remote()
            state.placed = True
            async with asyncio.timeout(START_TIMEOUT_S):
                facts = unpack(await state.handle.start.remote(), Facts)
        except (TimeoutError, ray.exceptions.RayError) as error:
            if self.known.pop(name, None) is None:
                return  # it was withdrawn
            ray.kill(state.handle)
            if isinstance(error, TimeoutError):
                log.warning("no node has room for a worker", resources=resources.shown)
                await asyncio.sleep(self.settings.placement_timeout_s)
            else:
                log.error("a worker did not start", worker=name, reason=str(error)[-2000:])
                await asyncio.sleep(1.0)
            self.refill()
            return
        self.join(state, facts)
        log.info("worker started", worker=name, url=facts.url, seconds=round(time.monotonic() - began, 3))
        if state.draining:  # its node was drained meanwhile
            self.stop(state)
            self.refill()

    def avoid(self, node: str) -> None:
        """Start no more workers on a node."""
        self.drained.add(node)
        self._withdraw()

    def use(self, node: str) -> None:
        """Start workers on a node again."""
        self.drained.discard(node)
        self._withdraw()

    def _withdraw(self) -> None:
        """Ask Ray anew for the workers that it has not placed: those were to avoid other nodes."""
        for each in list(self.known.values()):
            if not each.placed and not each.ready and each.avoided != self.drained:
                del self.known[each.id]
                ray.kill(each.handle)
        self.refill()

    def join(self, state: FleetWorkerState, facts: Facts) -> None:
        """Take a worker that listens into the fleet, and watch it."""
        state.url, state.node, state.version = facts.url, facts.node, facts.version
        state.owner, state.pid, state.ready = facts.owner, facts.pid, True
        state.assigned = state.assigned or facts.assigned
        state.draining = state.draining or state.node in self.drained
        self.known[state.id] = state
        self._spawn(self._watch(state))
        self._notify()

    async def adopt(self, name: str) -> tuple[FleetWorkerState, Facts] | None:
        """Take in a worker that another Directory started; ``None`` when it is dead, or known."""
        if name in self.known:
            return None
        try:
            handle = ray.get_actor(WORKER_PREFIX + name, namespace=NAMESPACE)
            async with asyncio.timeout(10):
                facts = unpack(await handle.start.remote(), Facts)
        except (ValueError, TimeoutError, ray.exceptions.RayError) as error:
            log.warning("a worker of the former Directory is gone", worker=name, reason=str(error)[:200])
            return None
        state = FleetWorkerState(name, handle, _resources(facts.resources))
        if name in self.known:
            return None
        self.join(state, facts)
        return state, facts

    async def _watch(self, state: FleetWorkerState) -> None:
        """Wait for Ray's word that a worker has ended."""
        process_died = False
        while True:
            try:
                await state.handle.run.remote()
                # Its server has stopped. If it closed its sessions, it has told the storage itself; if it did not, the
                # process may still write, so that only the end of its lease counts.
                reason = "it was stopped"
                ray.kill(state.handle)  # the process has nothing left to do, and holds its resources until it ends
            except ray.exceptions.ActorUnavailableError as error:  # it runs, or Ray will say that it does not
                log.warning("worker is away", worker=state.id, reason=str(error)[:200])
                await asyncio.sleep(UNAVAILABLE_S)
                continue
            except ray.exceptions.RayActorError as error:
                reason = str(error).strip().splitlines()[-1][:300]
                alive = any(node["Alive"] and node["NodeID"] == state.node for node in ray.nodes())
                process_died = alive and says_that_process_died(error)
            except ray.exceptions.RayError as error:
                reason = str(error)[:300]
            break
        self.known.pop(state.id, None)
        self._notify()
        log.warning("worker ended", worker=state.id, node=state.node, reason=reason, process_died=process_died)
        self._died(state, reason, process_died)
        self.refill()

    # Ending

    def stop_idle(self) -> None:
        """End workers that have had no session for a while, beyond the warm ones."""
        now = time.monotonic()
        for each in list(self.known.values()):
            if self._count(each.id) or each.reserved:
                each.idle_since = now
            elif each.ready and now - each.idle_since > self.settings.worker_idle_s and self._superfluous(each):
                self.stop(each)

    def _superfluous(self, state: FleetWorkerState) -> bool:
        if state.assigned or state.resources != self.default or state.draining:
            return True
        warm = [each for each in self.known.values() if not each.assigned and each.resources == self.default]
        return len(warm) > self.settings.warm_workers

    def stop(self, state: FleetWorkerState) -> None:
        """End a worker cleanly."""
        state.draining = True
        self._spawn(self._stop(state))

    async def _stop(self, state: FleetWorkerState) -> None:
        try:
            async with asyncio.timeout(self.settings.drain_timeout_s + 10):
                await state.handle.stop.remote()
        except (TimeoutError, ray.exceptions.RayError):
            pass
        ray.kill(state.handle)

    def _spawn(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def says_that_process_died(error: Exception) -> bool:
    """Whether Ray says that a process has ended, so that nobody need wait for its lease.

    Nothing else is its end: not a broken connection to it, not that its node is unreachable, and neither ``ray.kill``
    nor an intended exit, which Ray reports before the process is gone.
    """
    said = str(error).lower()
    return isinstance(error, ray.exceptions.ActorDiedError) and all(part in said for part in PROCESS_DIED)


def _plain(resources: Resources) -> dict[str, Any]:
    return {name: getattr(resources, name) for name in resources.__struct_fields__}


def _resources(data: dict[str, Any]) -> Resources:
    known = {name: value for name, value in data.items() if name in Resources.__struct_fields__}
    return Resources(**known)


def _fits(resources: Resources, total: dict[str, float], labels: dict[str, str]) -> bool:
    """Whether an empty node of this size could run a worker."""
    enough = all(total.get(name, 0.0) >= amount for name, amount in resources.demand().items())
    return enough and all(labels.get(name) == value for name, value in resources.labels.items())


def _amounts(resources: dict[str, float]) -> str:
    shown = {name: amount for name, amount in resources.items() if not name.startswith(("node:", "object_store"))}
    parts = [f"{name} {_size(amount) if name == 'memory' else f'{amount:g}'}" for name, amount in sorted(shown.items())]
    return ", ".join(parts) or "nothing"


def _size(amount: float) -> str:
    return f"{amount / 1e9:.1f} GB"


def _described(node: dict[str, Any]) -> dict[str, Any]:
    kept = {k: v for k, v in node["Resources"].items() if not k.startswith(("node:", "object_store"))}
    return {"node": node["NodeID"], "address": node["NodeManagerAddress"], "resources": kept}


def _existing(nodes: list[dict[str, Any]]) -> str:
    kinds = Counter(_amounts(node["Resources"]) for node in nodes)
    return (
        "its nodes have: " + "; ".join(f"{count} x ({kind})" for kind, count in kinds.items()) if kinds else "no node"
    )
