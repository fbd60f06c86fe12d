"""The plans of a session: when to capture a frame, when to run a plan, and the reasons when neither happens."""

from __future__ import annotations

import logging
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from gradwire_protocol.dtypes import DType
from gradwire_protocol.errors import Cancelled, GradwireError, InternalError
from gradwire_protocol.frames import Frame, Problem, Structure, position_of, structure_hash
from gradwire_protocol.meta import Meta
from gradwire_protocol.table import Op

from ..autograd.failures import Poison
from ..autograd.registry import CONTROLS, GRAPH_WALKS, PLANNED
from ..autograd.tensor import Tensor
from ..autograd.undo_log import UndoLog
from ..plans.device import HOST
from ..plans.effects import FrameState, Harvest
from ..plans.emitting import PlanEmitter
from ..plans.graph_segments import Separators
from ..plans.guards import Guard, guard_of
from ..plans.inputs import FACTS, Found, Unplannable, look
from ..plans.program import DynamicView, Number
from ..plans.tracing import Tracer
from ..runtime.arrays import Array
from ..runtime.cuda.graphs import Graphs
from ..runtime.deadline import Clock
from .clients import Client

log = logging.getLogger("gradwire.plans")

STRUCTURES_KEPT: Final = 256
VARIANTS_KEPT: Final = 4
INSTRUCTIONS_KEPT: Final = 100_000
"""The limit for the generated lines of all plans; a line takes about 250 bytes."""

SOON: Final = 32
"""Frames within which a structure that comes again is captured. Of one that takes longer, as in a program that runs
twice as a whole, a capture waits for the third time: the second may have been the last."""

PLACES_KEPT: Final = 1024
"""How many view offsets a plan caches."""

GRAPHS_KEPT: Final = 16
"""How many graphs behind the frames of a structure are remembered, to see whether one of them comes again."""

MOST_PATIENCE: Final = 1024
USELESS: Final = 8
"""How much longer the next capture waits each time after one whose plan never ran; twice as long where it did."""
SLOW: Final = 20
"""A frame that takes more than this fraction of its time limit stays on the tape, which checks the clock."""

_REASONS_KEPT: Final = 64


class RunningFrame(Protocol):
    """The part of :class:`.frame_executor.FrameExecution` that plans use."""

    session: Any
    client: Client
    frame: Frame
    structure: Structure
    seq: int
    human: bool
    failures: Mapping[int, Problem] | None
    errors: list[Problem]
    clock: Clock
    made: list[Tensor | Poison | None]
    undo: UndoLog | None
    index: int

    def _payload(self, op: Op, values: list[Any], at: int) -> Array: ...

    def _note(self, error: GradwireError, name: str) -> Problem: ...

    def _poison(self, tensor: Tensor, problem: Problem) -> None: ...


@dataclass(slots=True, eq=False)
class Plan:
    """The plan of one frame.

    Attributes:
        key: describes the state that the frame requires.
        guard: a faster check of this state, if any.
        kinds: types of the frame's numbers.
        kept: (object, position): numbers that nodes keep, which follow the frame's.
        guarded: (index, number, its text): numbers that must be the same.
        fixed: (object, offset): objects that must have the same offset.
        payloads: the op, its arguments and the position of the payload among them.
        written: objects whose memory the plan writes.
        seq, peak, size: the number of created nodes, the peak memory, the number of instructions.
        logged: the undo log is required, because the plan can be cancelled after a write.
        device, coarse: the device and the precision of its products.
    """

    key: tuple[Any, ...]
    function: Callable[..., list[Any]]
    kinds: tuple[type, ...]
    kept: list[tuple[int, int]]
    guarded: list[tuple[int, Any, str]]
    places: list[DynamicView]
    fixed: list[tuple[int, int]]
    payloads: list[tuple[Any, list[Any], int]]
    written: list[int]
    default_dtype: DType
    compiled: bool
    seq: int
    peak: int
    results: int
    size: int
    device: str
    coarse: bool
    logged: bool
    guard: Guard | None


@dataclass(slots=True, eq=False)
class StructurePlans:
    """The plans of one structure.

    Attributes:
        unplannable: why it has no plan.
        patience: how many misses precede the next capture.
        used: whether a plan ran since the last capture.
        seen: the frame in which it came last, counted from the session's first; 0 once it came again.
        graphs: hashes of the keys of frames that went backward through a graph of frames before, and had no plan.
        separators: where its plans' runs of launches on a GPU are parted.
    """

    seen: int
    deep: bool = False
    unplannable: str = ""
    plans: list[Plan] = field(default_factory=list)
    misses: int = 0
    patience: int = 1
    used: bool = True
    separators: Separators = field(default_factory=Separators)
    graphs: deque[int] = field(default_factory=lambda: deque(maxlen=GRAPHS_KEPT))


@dataclass(slots=True)
class Statistics:
    """Counts of frames.

    Attributes:
        hits: frames run by a plan.
        captured: frames captured on the tape.
        reasons: counts of the reasons why frames ran on the tape.
    """

    hits: int = 0
    captured: int = 0
    reasons: Counter[str] = field(default_factory=Counter)

    def miss(self, reason: str) -> None:
        """Count a frame that no plan ran."""
        if reason not in self.reasons and len(self.reasons) >= _REASONS_KEPT:
            reason = "other"
        self.reasons[reason] += 1


class Plans:
    """The plans of one session.

    Args:
        eager: capture a structure at first sight.

    Attributes:
        planned: whether a plan ran the last frame.
        frames: the number of frames that could have a plan.
        kept, instructions: the number of plans and of their lines.
        graphs: the captured CUDA graphs by device.
        refused: the kernels that CUDA refused to capture.
    """

    def __init__(self, eager: bool = False) -> None:
        self.eager = eager
        self.entries: OrderedDict[bytes, StructurePlans] = OrderedDict()
        self.statistics = Statistics()
        self.planned = False
        self.frames = 0
        self.kept = 0
        self.instructions = 0
        self.graphs: dict[str, Graphs] = {}
        self.refused: set[str] = set()

    def describe(self) -> dict[str, Any]:
        """The statistics as plain data."""
        seen = self.statistics
        reasons = dict(seen.reasons)
        return {
            "hits": seen.hits, "misses": sum(reasons.values()), "captured": seen.captured, "reasons": reasons,
            "kept": self.kept, "instructions": self.instructions,
            "graphs": {device: dict(graphs.outcomes) for device, graphs in self.graphs.items()},
        }  # fmt: skip

    # Frames

    def perform(self, run: RunningFrame, on_tape: Callable[[], None]) -> None:
        """Apply the records of a frame by a valid plan, else on the tape."""
        self.planned = False
        if not run.structure.ops:
            return
        statistics = self.statistics
        obstacle = self._obstacle(run)
        if obstacle:
            statistics.miss(obstacle)
            on_tape()
            return
        self.frames += 1
        digest = digest_of(run)
        entry = self.entries.get(digest)
        if entry is None:
            entry = self.entries[digest] = _entry(run, self.frames, self.refused)
            if len(self.entries) > STRUCTURES_KEPT:
                self.entries.popitem(last=False)
            if not self.eager:
                statistics.miss(f"unplannable: {entry.unplannable}" if entry.unplannable else "first sight")
                on_tape()
                return
        else:
            self.entries.move_to_end(digest)
        if entry.unplannable:
            statistics.miss(f"unplannable: {entry.unplannable}")
            on_tape()
            return
        if entry.separators.outdated:
            entry.separators.outdated = False
            entry.plans.clear()
            entry.misses = entry.patience
        late = entry.seen and self.frames - entry.seen > SOON and not self.eager
        entry.seen = 0
        try:
            found = _recognized(entry, run) or look(
                [*[_external(run.session, number) for number in run.frame.external], *_named(run)], entry.deep
            )
        except Unplannable as unplannable:
            statistics.miss(f"guard: {unplannable}")
            on_tape()
            return
        if late:
            self._is_repeated(entry, found)
            statistics.miss("second sight, long after the first")
            del found
            on_tape()
            return
        reason = "captured"
        for plan in entry.plans:
            if plan.key == found.key:
                reason = self._run(plan, found, run)
                if not reason:
                    statistics.hits += 1
                    self.planned = entry.used = True
                    if plan is not entry.plans[0]:
                        entry.plans.remove(plan)
                        entry.plans.insert(0, plan)
                    return
                if reason == "failed":
                    statistics.miss(reason)
                    del found
                    on_tape()
                    return
        if entry.plans and reason == "captured":
            reason = "guard: " + _difference(entry.plans[0].key, found.key)
        entry.misses += 1
        repeated = self._is_repeated(entry, found)
        if entry.misses < entry.patience or not repeated:
            if not entry.plans:
                reason = "first sight of the graph behind it"
            statistics.miss(reason)
            del found
            on_tape()
            return
        entry.misses = 0
        if entry.plans:
            entry.patience = min((2 if entry.used else USELESS) * entry.patience, MOST_PATIENCE)
        entry.used = False
        self._capture(entry, found, run, on_tape, reason)

    def _is_repeated(self, entry: StructurePlans, found: Found) -> bool:
        """Whether the frame may repeat as a whole: a graph behind it, which frames before it have made, came before.

        An episode of decisions ends with the same records each time, and may have another graph each time."""
        if self.eager or not entry.deep or all(type(thing) is Tensor for thing in found.objects):
            return True
        digest = hash(found.key)
        if digest in entry.graphs:
            return True
        entry.graphs.append(digest)
        return False

    def _obstacle(self, run: RunningFrame) -> str:
        """Why this frame cannot use a plan, regardless of its structure; empty if it can."""
        frame, session = run.frame, run.session
        client = run.client
        if frame.detailed or run.failures:
            return "not a plain frame"
        if client.failed_backward is not None or client.failed_writes:
            return "guard: something failed before"
        engine = session.engine
        if engine.batched or engine.dual_levels or engine.duals:
            return "guard: vmap or forward mode is open"
        return ""

    # Runs

    def _run(self, plan: Plan, found: Found, run: RunningFrame) -> str:
        """Run a plan. Returns why it was not valid, without a change; empty after a run."""
        session, engine, frame = run.session, run.session.engine, run.frame
        account, limits = engine.account, engine.account.limits
        numbers = frame.scalars
        if tuple(map(type, numbers)) != plan.kinds or len(frame.payloads) != len(plan.payloads):
            return "guard: kinds of numbers"
        if plan.kept:
            numbers = [*numbers, *[found.objects[number].values[at] for number, at in plan.kept]]
        for place, value, text in plan.guarded:
            if numbers[place] != value or (_signed(value) and repr(numbers[place]) != text):
                return "guard: a number"
        if plan.fixed and any(found.objects[i].offset != offset for i, offset in plan.fixed):
            return "guard: where a part begins"
        if (
            engine.default_dtype is not plan.default_dtype
            or engine.compiled != plan.compiled
            or engine.coarse_products != plan.coarse
        ):
            return "guard: default dtype or kernels"
        if (
            account.live + plan.peak > limits.max_session_bytes
            or account.nodes + plan.seq > limits.max_graph_nodes
            or len(session.ids) + plan.results >= session.limits.max_tensors
        ):
            return "guard: near a limit"
        offsets = []
        try:
            for part in plan.places:
                asked = tuple([numbers[arg.place] for arg in part.args if type(arg) is Number])
                begins = part.known.get(asked)
                if begins is None:
                    args = [numbers[arg.place] if type(arg) is Number else arg for arg in part.args]
                    inferred = engine._infer(part.row, args)
                    if not all(map(_same, inferred.outs, part.inferred.outs)):
                        return "guard: the shape of a part"
                    begins = inferred.offsets or ()
                    if len(part.known) < PLACES_KEPT:
                        part.known[asked] = begins
                offsets.append(begins)
        except GradwireError:
            return "guard: a part that is not there"
        kept = [(key, session.uploads.get(key)) for key in _uploads(run)] if frame.payloads else []
        payloads: list[Any] = []
        undo: list[Any] = []
        drawn = engine.generator.get_state()
        live, peak = account.live, account.peak
        begin = position_of(run.client.number, run.seq, 0)
        error: BaseException | None = None
        noted = run.undo or (UndoLog(engine) if plan.logged else None)
        if noted is not None:
            for held in found.objects:
                if type(held) is Tensor:
                    noted.note(held)
            for number in plan.written:
                noted.write(found.objects[number])
        run.clock.undo = undo if noted is None else noted.entries
        try:
            for (op, template, at), payload in zip(plan.payloads, frame.payloads, strict=True):
                values = list(template)
                values[at] = payload
                payloads.append(run._payload(op, values, at))
            backend = engine.backends[plan.device]
            run.made = plan.function(
                found.objects, numbers, offsets, payloads, engine.generator, backend, engine, account, engine._seq,
                begin, undo,
            )  # fmt: skip
        except (GradwireError, ArithmeticError, ValueError, IndexError, MemoryError) as found_error:
            error = found_error
        except Exception as found_error:
            log.exception("a plan failed")
            error = found_error
        finally:
            run.clock.undo = [] if run.undo is None else run.undo.entries
        account.peak = max(peak, live + plan.peak)
        if error is None:
            if noted is not None and noted is not run.undo:
                noted.forget()
            engine._seq += plan.seq
            engine.position = begin + len(run.structure.ops) - 1
            return ""
        error.__traceback__ = None
        cancelled = isinstance(error, Cancelled) and noted is not None
        if cancelled and noted is run.undo:
            raise error  # undone with the other iterations
        if cancelled and noted is not None:
            noted.undo()
        elif undo and undo[-1] is None:
            self._broken(plan, found, run, error)
            return ""
        for array, before in reversed([] if cancelled else undo):
            array[...] = before
        engine.generator.set_state(drawn)
        for key, upload in kept:
            if upload is not None:
                session.uploads[key] = upload
        run.made = []
        return "failed"

    def _broken(self, plan: Plan, found: Found, run: RunningFrame, error: BaseException) -> None:
        """Handle the failure of a plan that cannot be undone: poison everything that it writes."""
        failure = error if isinstance(error, GradwireError) else InternalError(f"a plan failed halfway: {error!r:.200}")
        if isinstance(error, MemoryError):
            failure = run.session.engine.out_of_memory("a plan", error)
        run.index = len(run.structure.ops) - 1
        problem = run._note(failure, run.structure.ops[run.index][0])
        for number in plan.written:
            run._poison(found.objects[number], problem)
        run.made = [Poison(problem) for _ in range(plan.results)]

    # Captures

    def _capture(
        self, entry: StructurePlans, found: Found, run: RunningFrame, on_tape: Callable[[], None], reason: str
    ) -> None:
        engine, statistics = run.session.engine, self.statistics
        account = engine.account
        tracer, before, key = Tracer(engine, found, run.frame.scalars), FrameState(found, engine), found.key
        found.objects.clear()  # keep no reference to tensors that the frame releases
        live, peak, account.peak = account.live, account.peak, account.live
        engine.tracer = tracer
        began = time.monotonic()
        try:
            on_tape()
        finally:
            engine.tracer = None
            highest, account.peak = account.peak - live, max(peak, account.peak)
        limit = run.session.limits.max_frame_seconds
        try:
            if tracer.reason:
                raise Unplannable(tracer.reason)
            if run.errors:
                statistics.miss("a record failed")
                return
            if limit and time.monotonic() - began > limit / SLOW:
                raise Unplannable("it takes long")
            plan = self._made(tracer, before, key, run, highest, entry.separators)
        except Unplannable as unplannable:
            statistics.miss(f"unplannable: {unplannable}")
            if not entry.plans:
                entry.unplannable = str(unplannable)
            return
        statistics.captured += 1
        statistics.miss(reason)
        entry.plans.insert(0, plan)
        del entry.plans[VARIANTS_KEPT:]
        self._bound()

    def _made(
        self, tracer: Tracer, before: FrameState, key: tuple[Any, ...], run: RunningFrame, peak: int,
        separators: Separators,
    ) -> Plan:  # fmt: skip
        engine, program = run.session.engine, tracer.program
        begin = position_of(run.client.number, run.seq, 0)
        harvest = Harvest(tracer, before, run.made, begin)
        effects = harvest.run(engine)
        written = sorted(harvest.written())
        emitter = PlanEmitter(program, effects, tracer.backend, separators)
        if tracer.backend.graphs is not None:
            self.graphs[tracer.backend.device] = tracer.backend.graphs
        function = emitter.function()
        kinds, numbers = tuple(map(type, run.frame.scalars)), tracer.numbers
        if [kind.__name__ for kind in kinds] != tracer.kinds:
            raise Unplannable("numbers of other kinds than announced")
        return Plan(
            key, function, kinds, list(tracer.kept),
            [(place, numbers[place], repr(numbers[place])) for place in sorted(program.guarded)],
            program.places, sorted(program.fixed.items()), tracer.payloads, written,
            engine.default_dtype, engine.compiled, effects.seq, peak,
            len(effects.made), len(emitter.lines) + len(emitter.functions), tracer.device or HOST,
            engine.coarse_products, emitter.logged, guard_of(key),
        )  # fmt: skip

    def _bound(self) -> None:
        plans = [plan for entry in self.entries.values() for plan in entry.plans]
        held = sum(plan.size for plan in plans)
        while held > INSTRUCTIONS_KEPT and len(self.entries) > 1:
            _, gone = self.entries.popitem(last=False)
            held -= sum(plan.size for plan in gone.plans)
            plans = plans[len(gone.plans) :]
        self.kept, self.instructions = len(plans), held


def digest_of(run: RunningFrame) -> bytes:
    """The hash of the frame's structure; one that a client does not want remembered comes whole each time."""
    return run.frame.hash or structure_hash(bytes(run.frame.structure))


def _entry(run: RunningFrame, seen: int, refused: set[str]) -> StructurePlans:
    """What the structure alone tells."""
    names = {record[0] for record in run.structure.ops if type(record[0]) is str}
    entry = StructurePlans(seen, deep=not names.isdisjoint(GRAPH_WALKS), separators=Separators(refused))
    for name in sorted(names):
        if name in CONTROLS and name not in PLANNED:
            entry.unplannable = f"op {name}"
            break
    return entry


def _recognized(entry: StructurePlans, run: RunningFrame) -> Found | None:
    """What the frame finds, where that is what one of the plans needs and its guard can tell."""
    if run.frame.named:  # a guard looks at ids
        return None
    for plan in entry.plans:
        objects = None if plan.guard is None else plan.guard(run.session.ids, run.frame.external)
        if objects is not None:
            return Found(objects, plan.key)
    return None


def _external(session: Any, number: int) -> Tensor:
    held = session.ids.get(number)
    if type(held) is not Tensor:
        raise Unplannable("an external is no tensor")
    return held


def _named(run: RunningFrame) -> list[Tensor]:
    """The tensors that the frame names."""
    held = run.session.engine.names
    found: list[Tensor] = [held[name] for name in run.frame.named if name in held]
    if len(found) != len(run.frame.named):
        raise Unplannable("a name of no tensor")
    return found


def _signed(number: float) -> bool:
    """Whether an equal number may have other signs of zero."""
    return not number or type(number) is complex


def _same(one: Meta, other: Meta) -> bool:
    return one is other or one.same_as(other)


def _uploads(run: RunningFrame) -> list[tuple[int, int]]:
    return [(run.client.number, p.upload) for p in run.frame.payloads if p.upload is not None]


def _difference(one: tuple[Any, ...], other: tuple[Any, ...]) -> str:
    """What differs first between two keys, in a word."""
    for mine, yours in zip(one, other, strict=False):
        if mine != yours:
            if type(mine) is tuple and type(yours) is tuple and len(mine) == len(yours) == len(FACTS):
                return next(fact for fact, a, b in zip(FACTS, mine, yours, strict=True) if a != b)
            break
    return "the graph or the externals"
