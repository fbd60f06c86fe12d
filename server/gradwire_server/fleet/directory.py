"""The Directory: the one actor that knows where each session of the fleet is.

It is a named, detached Ray actor. Ray restarts it when it dies, and its state follows from what is left: the workers
describe themselves and their sessions, the shared storage has the dormant ones. While it is away, sessions go on, since
neither frames nor requests for known sessions pass through it.
"""

from __future__ import annotations

import asyncio
import re
import secrets
import time
from collections.abc import Awaitable, Callable
from functools import wraps
from itertools import islice
from typing import Any, Final, TypeVar

import msgspec
import ray
import structlog

from gradwire_protocol.errors import GradwireError, JournalDamaged, NotFound, Unavailable

from ..auth.keys import Key
from ..durable.shared.claims import SESSIONS, placement_key
from ..durable.shared.epochs import newest_published
from ..durable.shared.in_parallel import BATCH, in_parallel
from ..durable.shared.ownership import certify
from ..durable.shared.storage import Storage, open_storage
from ..durable.shared.tombstones import tombstone
from ..settings.session_spec import SessionSpec
from ..settings.settings import Settings
from ..settings.version import VERSION
from .group_messages import Arrival, Meeting, Seat, parsed, plain
from .group_tables import GroupTables
from .messages import (
    NAMESPACE,
    REPORT_EVERY_S,
    WORKER_PREFIX,
    Joined,
    Placement,
    Report,
    Shared,
    Wanted,
    answered,
    pack,
    refused,
    unpack,
)
from .placement import FleetWorkerState, Workers
from .registry import FleetSession, FleetSessions
from .resources import Resources
from .shares import Shares

SECRET_BYTES: Final = 32
GATEWAY_SILENT_S: Final = 10.0
PROBE_S: Final = 2.0
SETTLED_S: Final = 8.0
"""After this time all workers have announced their groups to a new Directory."""

TELL_S: Final = 20.0
"""How long it tries to tell a worker something of a group."""

HAND_OVERS: Final = 4
"""How many sessions of a drained node move at the same time."""

DEVICES_KNOWN_S: Final = 5.0
STORED_ID: Final = re.compile(r"s_[A-Za-z0-9_-]{1,100}")
T = TypeVar("T")

log = structlog.get_logger("gradwire.fleet")

Answer = Callable[..., Awaitable[dict[str, Any]]]


def _answering(method: Callable[..., Awaitable[dict[str, Any]]]) -> Answer:
    """Wait until the Directory has its state, and answer errors as data."""

    @wraps(method)
    async def call(self: Directory, *arguments: Any) -> dict[str, Any]:
        try:
            await self.ready()
            return await method(self, *arguments)
        except GradwireError as error:
            return refused(error)

    return call


class Directory:
    """The actor.

    Args:
        packed: the fleet's settings, as the first gateway has them.
    """

    def __init__(self, packed: dict[str, Any]) -> None:
        self.settings = Settings(**packed)
        self.incarnation = secrets.token_hex(8)
        self.sessions = FleetSessions(self.settings)
        self.groups = GroupTables(self._tell)
        self.sessions.on_end = lambda session, end: self.groups.left(session, f"its session {end}")
        self.shares = Shares()
        self.secret = b""
        self._packed = packed
        self._gateways: dict[str, tuple[Report, float]] = {}
        self._ended: set[str] = set()
        self._placing: dict[str, asyncio.Lock] = {}
        self._starting: asyncio.Task[None] | None = None
        self._workers: Workers | None = None
        self._storage: Storage | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._devices_known: list[str] = []
        self._devices_at = -DEVICES_KNOWN_S
        self._began = time.monotonic()

    @property
    def workers(self) -> Workers:
        assert self._workers is not None
        return self._workers

    async def ready(self) -> None:
        """Rebuild the state, once."""
        if self._starting is None:
            self._starting = asyncio.ensure_future(self._start())
        await asyncio.shield(self._starting)

    async def _start(self) -> None:
        named = ray.util.list_named_actors(all_namespaces=True)
        names = [each["name"].removeprefix(WORKER_PREFIX) for each in named if _is_worker(each)]
        workers = Workers(self.settings, self._packed, b"", self.sessions.count, self._died)
        found = [each for each in await asyncio.gather(*map(workers.adopt, names)) if each is not None]
        self.secret = next((each[1].secret for each in found if each[1].secret), secrets.token_bytes(SECRET_BYTES))
        workers.secret = self.secret
        self._workers = workers
        for state, facts in found:
            self.sessions.reported(state.id, state.resources, facts.sessions)
            self._announced(facts.groups)
        workers.refill()
        self._storage = await asyncio.to_thread(open_storage, self.settings.store) if self.settings.store else None
        self._spawn(self._maintain())
        if self._storage is not None:
            self._spawn(self._scan())
        log.info(
            "directory started", incarnation=self.incarnation, workers=len(found), sessions=len(self.sessions.sessions)
        )

    async def _maintain(self) -> None:
        while True:
            await asyncio.sleep(REPORT_EVERY_S)
            try:
                self.workers.stop_idle()
                self.sessions.sweep()
                self.groups.sweep()
            except Exception as error:
                log.error("maintenance failed", exc_info=error)

    def _spawn(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _died(self, state: FleetWorkerState, reason: str, process_died: bool) -> None:
        if process_died and state.owner and self._storage is not None:
            storage, owner = self._storage, state.owner
            self._spawn(self._in_storage(lambda: certify(storage, owner, f"directory {self.incarnation}")))
        kept = self.sessions.lost(state.id, reason)
        if kept:
            log.info("sessions wait for their next use", worker=state.id, count=len(kept))

    # The shared storage

    async def _in_storage(self, work: Callable[[], T]) -> T | None:
        try:
            return await asyncio.to_thread(work)
        except (OSError, GradwireError) as error:
            log.warning("the shared storage fails", reason=str(error))
            return None

    async def _find_stored(self, session: str, tenant: str) -> None:
        """Take in a session that nobody has loaded since this Directory began."""
        storage = self._storage
        if storage is None or self.sessions.knows(session) or not STORED_ID.fullmatch(session):
            return
        try:
            found = await asyncio.to_thread(self._stored, storage, session)
        except (OSError, JournalDamaged) as error:
            raise Unavailable(f"the shared storage fails: {error}") from None
        if found is not None and found[0].tenant == tenant:
            self.sessions.found(*found)

    def _stored(self, storage: Storage, session: str) -> tuple[SessionSpec, Resources] | None:
        record = newest_published(storage, session)
        if record is None or tombstone(storage, session) is not None:
            return None
        kept = storage.get(placement_key(session))
        resources = self.workers.default if kept is None else _resources(msgspec.json.decode(kept))
        return record[1].spec, resources

    async def _scan(self) -> None:
        """Take in all sessions of the shared storage. A look-up does not wait for this."""
        storage = self._storage
        assert storage is not None
        ids = await self._in_storage(lambda: storage.children(SESSIONS)) or ()
        unknown = iter([each for each in ids if each not in self.sessions.sessions])
        while batch := list(islice(unknown, BATCH)):
            for found in await asyncio.to_thread(self._stored_all, storage, batch):
                self.sessions.found(*found)

    def _stored_all(self, storage: Storage, sessions: list[str]) -> list[tuple[SessionSpec, Resources]]:
        """As :meth:`_stored`, without those that cannot be read: their look-up tells the error."""

        def read(session: str) -> tuple[SessionSpec, Resources] | None:
            try:
                return self._stored(storage, session)
            except (OSError, GradwireError) as error:
                log.warning("a session cannot be read", session=session, reason=str(error))
                return None

        return [each for each in in_parallel(read, sessions) if each is not None]

    # Gateways

    @_answering
    async def join(self) -> dict[str, Any]:
        """What a gateway needs to begin."""
        return pack(Joined(incarnation=self.incarnation, secret=self.secret))

    @_answering
    async def place(self, data: dict[str, Any]) -> dict[str, Any]:
        """Find a worker for a new session, and reserve quota for it."""
        wanted = unpack(data, Wanted)
        if wanted.repeat and (known := self.sessions.repeated(wanted.tenant, wanted.repeat, wanted.request)):
            return pack(self._placement(self.sessions.get(known, wanted.tenant)))
        resources = _resources(wanted.resources)
        key = msgspec.convert(wanted.key, Key, strict=False)
        reservation, limits = self.sessions.reserve(key, wanted.limits, resources, wanted.repeat, wanted.request)
        try:
            owner = reservation if self.settings.worker_per == "session" else f"tenant:{wanted.tenant}"
            state = await self.workers.place(owner, resources)
        except BaseException:
            self.sessions.failed(reservation)
            raise
        self.sessions.on_worker(reservation, state.id, lambda: self.workers.unreserve(state))
        return pack(
            Placement(
                worker=state.id, url=state.url, node=state.node, reservation=reservation, limits=limits,
                tenant=wanted.tenant, incarnation=self.incarnation,
            )
        )  # fmt: skip

    @_answering
    async def made(self, reservation: str, worker: str, summary: dict[str, Any]) -> dict[str, Any]:
        """A gateway has created the session on the worker."""
        made = self.sessions.made(reservation, worker, summary)
        storage = self._storage
        if made is not None and storage is not None and made.durable and made.resources != self.workers.default:
            data = msgspec.json.encode(made.resources)
            self._spawn(self._in_storage(lambda: storage.put(placement_key(made.id), data)))
        return {}

    @_answering
    async def failed(self, reservation: str) -> dict[str, Any]:
        """A gateway could not create the session."""
        self.sessions.failed(reservation)
        return {}

    @_answering
    async def locate(self, session: str, tenant: str, silent: str = "") -> dict[str, Any]:
        """Where a session of a tenant is. ``silent``: a worker that does not answer the caller."""
        await self._find_stored(session, tenant)
        found = self.sessions.get(session, tenant)
        state = self.workers.known.get(found.worker or "")
        if state is not None and state.ready and state.id != silent:
            return pack(self._placement(found))
        async with self._placing.setdefault(session, asyncio.Lock()):
            try:
                return pack(await self._place_again(session, tenant, silent))
            finally:
                self._placing.pop(session, None)

    async def _place_again(self, session: str, tenant: str, silent: str) -> Placement:
        found = self.sessions.get(session, tenant)
        state = self.workers.known.get(found.worker or "")
        if state is not None and state.id != silent:  # somebody else has placed it meanwhile
            return self._placement(found)
        if state is not None and not await self._is_dead(state) and not found.durable:
            raise Unavailable(f"the worker of session {session} does not answer")
        found = self.sessions.get(session, tenant)  # its end may have been reported meanwhile
        if not found.durable:
            self.sessions.forget(session, "was lost with its worker")
            found = self.sessions.get(session, tenant)
        owner = session if self.settings.worker_per == "session" else f"tenant:{tenant}"
        state = await self.workers.place(owner, found.resources, avoided=silent)
        self.workers.unreserve(state)
        self.sessions.move(self.sessions.get(session, tenant), state.id)
        return self._placement(found, fresh=True)

    async def _is_dead(self, state: FleetWorkerState) -> bool:
        """Whether a worker that is silent to a gateway is dead. A live one answers, so the network is at fault."""
        try:
            async with asyncio.timeout(PROBE_S):
                await state.handle.ping.remote()
        except (TimeoutError, ray.exceptions.RayError):
            await asyncio.sleep(0.05)  # for the watch to note it first
            return state.id not in self.workers.known
        return False

    def _placement(self, session: FleetSession, fresh: bool = False) -> Placement:
        state = self.workers.known.get(session.worker or "")
        return Placement(
            session=session.id, tenant=session.tenant, worker=session.worker or "", incarnation=self.incarnation,
            url="" if state is None else state.url, node="" if state is None else state.node, fresh=fresh,
        )  # fmt: skip

    @_answering
    async def list_sessions(self, tenant: str) -> dict[str, Any]:
        """The tenant's sessions, oldest first."""
        return {"sessions": [each.summary for each in self.sessions.of(tenant)]}

    @_answering
    async def deleted(self, session: str, tenant: str) -> dict[str, Any]:
        """A gateway has deleted a session."""
        self.sessions.get(session, tenant)
        self.sessions.forget(session, "was deleted")
        return {}

    @_answering
    async def tenant_of(self, session: str) -> dict[str, Any]:
        """Whose a session is, for operators."""
        found = self.sessions.sessions.get(session)
        if found is None:
            raise NotFound(f"session {session!r:.80} does not exist")
        return {"tenant": found.tenant}

    # Reports

    @_answering
    async def report(self, data: dict[str, Any]) -> dict[str, Any]:
        """What happened at a process in the last second."""
        told = unpack(data, Report)
        self._ended.update(told.ended)
        known, whole = True, False
        if told.worker:
            state = self.workers.known.get(told.process)
            if state is None:
                self._spawn(self._adopt_late(told.process))
                known = False
            elif state.ready:
                state.seen = time.monotonic()
                whole = self.sessions.reported(state.id, state.resources, told.sessions, told.gone, told.here)
        else:
            self._gateways[told.process] = (told, time.monotonic())
        return pack(
            Shared(
                shares=self.shares.report(told.process, told.use), ended=sorted(self._ended),
                incarnation=self.incarnation, known=known, devices=self._devices(),
                whole=whole,
            )
        )  # fmt: skip

    def _devices(self) -> list[str]:
        now = time.monotonic()
        if now - self._devices_at > DEVICES_KNOWN_S:
            gpus = any(node["Resources"].get("GPU") for node in ray.nodes() if node["Alive"])
            self._devices_known, self._devices_at = ["cpu", "cuda:0"] if gpus else ["cpu"], now
        return self._devices_known

    async def _adopt_late(self, name: str) -> None:
        found = await self.workers.adopt(name)
        if found is not None:
            self.sessions.reported(found[0].id, found[0].resources, found[1].sessions)

    # Groups of ranks

    @_answering
    async def group_join(self, data: dict[str, Any], wait_s: float) -> dict[str, Any]:
        """Wait a while for the ranks of a group."""
        found = await self.groups.join(parsed(data, Arrival), wait_s)
        return {"meeting": plain(found)} if isinstance(found, Meeting) else {"missing": found}

    @_answering
    async def group_withdraw(self, data: dict[str, Any]) -> dict[str, Any]:
        """A rank waits no more."""
        found = self.groups.withdraw(parsed(data, Arrival))
        return {} if found is None else {"meeting": plain(found)}

    @_answering
    async def groups_of(self, session: str) -> dict[str, Any]:
        """The groups of a session. Unless ``settled``, some workers may not have announced theirs yet."""
        settled = time.monotonic() - self._began > SETTLED_S
        return {"meetings": [plain(each) for each in self.groups.of_session(session)], "settled": settled}

    @_answering
    async def groups_open(self, meetings: list[dict[str, Any]]) -> dict[str, Any]:
        """A worker announces its groups."""
        self._announced(meetings)
        return {}

    def _announced(self, meetings: list[dict[str, Any]]) -> None:
        for each in meetings:
            self.groups.announced(parsed(each, Meeting))

    @_answering
    async def group_moved(self, meeting: str, seat: dict[str, Any]) -> dict[str, Any]:
        """A rank was recovered on another worker."""
        return plain(self.groups.moved(meeting, parsed(seat, Seat)))

    @_answering
    async def group_left(self, session: str, reason: str, group: str | None) -> dict[str, Any]:
        """A session has left a group, or all."""
        self.groups.left(session, reason, group)
        return {}

    def _tell(self, worker: str, method: str, arguments: tuple[Any, ...]) -> None:
        self._spawn(self._tell_worker(worker, method, arguments))

    async def _tell_worker(self, worker: str, method: str, arguments: tuple[Any, ...]) -> None:
        """Tell a worker something, unless it is gone: whoever takes its sessions over asks."""
        deadline = time.monotonic() + TELL_S
        while (state := self.workers.known.get(worker)) is not None and time.monotonic() < deadline:
            try:
                async with asyncio.timeout(TELL_S):
                    answered(await getattr(state.handle, method).remote(*arguments))
                return
            except (TimeoutError, ray.exceptions.RayError) as error:
                log.warning("a worker was not told of a group", worker=worker, reason=str(error)[:200])
                await asyncio.sleep(REPORT_EVERY_S)
            except GradwireError as error:
                log.warning("a worker has refused news of a group", worker=worker, reason=error.message)
                return

    # Operation

    @_answering
    async def fleet(self) -> dict[str, Any]:
        """Nodes, workers, gateways and counts."""
        workers = [
            {
                "id": each.id, "node": each.node, "url": each.url, "pid": each.pid, "version": each.version,
                "state": "starting" if not each.ready else "draining" if each.draining else
                "assigned" if each.assigned else "warm",
                "tenant": each.assigned.removeprefix("tenant:"), "resources": each.resources.demand(),
                "sessions": self.sessions.count(each.id),
            }
            for each in self.workers.known.values()
        ]  # fmt: skip
        now = time.monotonic()
        gateways = [
            {"id": name, "url": told.url, "version": told.version}
            for name, (told, at) in self._gateways.items()
            if now - at < GATEWAY_SILENT_S
        ]
        sessions = self.sessions.sessions.values()
        return {
            "version": VERSION,
            "incarnation": self.incarnation,
            "nodes": [self._node(node) for node in ray.nodes() if node["Alive"]],
            "workers": workers,
            "gateways": gateways,
            "sessions": len(sessions),
            "dormant": sum(each.worker is None for each in sessions),
            "queue": self.workers.queue,
        }

    def _node(self, node: dict[str, Any]) -> dict[str, Any]:
        here = [each for each in self.workers.known.values() if each.node == node["NodeID"]]
        total = node["Resources"]
        models = [name.partition(":")[2] for name in total if name.startswith("accelerator_type:")]
        return {
            "id": node["NodeID"], "address": node["NodeManagerAddress"],
            "state": "draining" if node["NodeID"] in self.workers.drained else "up",
            "cpus": total.get("CPU", 0.0), "gpus": total.get("GPU", 0.0), "gpu": ", ".join(models),
            "gpus_taken": sum(each.resources.gpus for each in here), "memory": int(total.get("memory", 0)),
            "workers": len(here), "sessions": sum(self.sessions.count(each.id) for each in here),
        }  # fmt: skip

    @_answering
    async def drain(self, node: str) -> dict[str, Any]:
        """Move all sessions away from a node, and start no workers there."""
        found = self._find_node(node)
        self.workers.avoid(found)
        moved: list[str] = []
        kept: list[str] = []
        states = [each for each in self.workers.known.values() if each.node == found]
        for state in states:
            state.draining = True
        at_once = asyncio.Semaphore(HAND_OVERS)

        async def move(state: FleetWorkerState, session: FleetSession) -> None:
            async with at_once:
                if await self._hand_over(state, session):
                    moved.append(session.id)
                elif session.id in self.sessions.sessions:  # it has not ended meanwhile
                    kept.append(session.id)

        await asyncio.gather(*[move(state, each) for state in states for each in self.sessions.on(state.id)])
        for state in states:
            if not self.sessions.count(state.id):
                self.workers.stop(state)
        self.workers.refill()
        return {"node": found, "moved": moved, "kept": kept}

    @_answering
    async def undrain(self, node: str) -> dict[str, Any]:
        """Let a drained node take workers again."""
        found = self._find_node(node)
        self.workers.use(found)
        return {"node": found}

    def _find_node(self, name: str) -> str:
        alive = [node for node in ray.nodes() if node["Alive"]]
        found = [n["NodeID"] for n in alive if n["NodeID"].startswith(name) or n["NodeManagerAddress"] == name]
        if len(found) != 1:
            what = "no node" if not found else f"{len(found)} nodes"
            raise NotFound(f"{what} of the fleet matches {name!r:.80}", nodes=[node["NodeID"] for node in alive])
        return str(found[0])

    async def _hand_over(self, state: FleetWorkerState, session: FleetSession) -> bool:
        """Move one session to another worker. Returns whether it moved."""
        if not session.durable:
            return await self._give_away(state, session)
        try:
            answer = answered(await state.handle.hand_over.remote(session.id))
        except (GradwireError, ray.exceptions.RayError) as error:
            log.warning("a session could not be handed over", session=session.id, reason=str(error)[:300])
            return False
        if answer.get("released"):
            self.sessions.sleep(session)
        return bool(answer.get("released"))

    async def _give_away(self, state: FleetWorkerState, session: FleetSession) -> bool:
        """Move a session that is only in the memory of its worker. Returns whether it moved."""
        owner = session.id if self.settings.worker_per == "session" else f"tenant:{session.tenant}"
        try:
            target = await self.workers.place(owner, session.resources, avoided=state.id)
            try:
                answer = answered(await state.handle.move.remote(session.id, target.id))
                if answer.get("moved") and session.id in self.sessions.sessions:
                    self.sessions.move(session, target.id)
                    session.stale = True
            finally:
                self.workers.unreserve(target)
        except (GradwireError, AttributeError, ray.exceptions.RayError) as error:
            log.warning("a session could not be moved", session=session.id, reason=str(error)[:300])
            return False
        return bool(answer.get("moved"))


def _is_worker(actor: dict[str, str]) -> bool:
    return actor["namespace"] == NAMESPACE and actor["name"].startswith(WORKER_PREFIX)


def _resources(data: dict[str, Any]) -> Resources:
    known = {name: value for name, value in data.items() if name in Resources.__struct_fields__}
    return Resources(**known)
