"""Applies one frame: runs its records in order, collects their results and handles their failures."""

from __future__ import annotations

import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from operator import length_hint
from typing import TYPE_CHECKING, Any, Final

from gradwire_protocol.errors import (
    ArgumentError,
    Cancelled,
    GradwireError,
    InternalError,
    LimitExceeded,
    MalformedFrame,
    UnknownOp,
    UnknownTensor,
)
from gradwire_protocol.frames import ID_BITS, MAX_ID, Frame, Payload, Problem, Reply, Timing, Value, position_of
from gradwire_protocol.records import decode_args, mentioned
from gradwire_protocol.table import TABLE, Kind, Op

from ..autograd.failures import GONE, MOMENTARY, Poison, Poisoned, problem_of
from ..autograd.registry import BACKWARDS, SETTLING, row
from ..autograd.tensor import Tensor
from ..autograd.undo_log import UndoLog
from ..runtime import deadline
from ..runtime.arrays import Array, native
from ..runtime.deadline import Clock
from ..runtime.memory import UNLIMITED
from . import names
from .averages_ahead import averages_after
from .clients import NESTED_NUMBER_BYTES, Client
from .json_values import entries, to_json
from .payloads import payload_array
from .structures import Known

if TYPE_CHECKING:
    from .session import Session

log = logging.getLogger("gradwire.session")

FRAME_SECONDS: Final = "GRADWIRE_MAX_FRAME_SECONDS"
MAX_OPERANDS: Final = 8
"""How many operands the error of a failed op describes."""

_USING_GRADIENTS: Final = frozenset({"grad_of", "average_gradients"})
"""Ops beside optimizer steps that are skipped after a failed backward."""

Buffers = list[memoryview]


def begin_frame(applied: PreparedFrame) -> None:
    """Start a frame's clock and its accounting."""
    session = applied.session
    session.engine.account.frame += 1
    session.engine.clock = applied.clock
    applied.clock.start(session.limits.max_frame_seconds if applied.failures is None else 0)


@dataclass(eq=False, repr=False)
class PreparedFrame(ABC):
    """A frame ready to be applied once (:class:`FrameExecution`) or in a loop (:mod:`.repeating`).

    Attributes:
        seq: the frame's number; for an unnumbered frame, the next one.
        known: its structure.
        human: whether values are nested lists.
        failures: for a replay, the original failures by the index of the record.
        clock: its time limit and cancellation.
    """

    session: Session
    client: Client
    frame: Frame
    seq: int
    known: Known
    buffers: Buffers
    human: bool
    failures: Mapping[int, Problem] | None
    clock: Clock

    @abstractmethod
    def __post_init__(self) -> None:
        """Validate the frame, and refuse an invalid one before anything changes."""

    @abstractmethod
    def execute(self) -> tuple[Reply, Buffers]:
        """Apply the frame and return its reply."""

    def replay(self) -> tuple[Reply, Buffers]:
        """Execute with the known failures and without limits that could cause others."""
        account = self.session.engine.account
        limits, account.limits = account.limits, UNLIMITED
        try:
            return self.execute()
        finally:
            account.limits = limits


class FrameExecution(PreparedFrame):
    """Applies one frame once."""

    def __post_init__(self) -> None:
        frame, client = self.frame, self.client
        self.generator = self.session.engine.generator
        self.structure, self.frees = self.known.structure, self.known.frees
        self.made: list[Tensor | Poison | None] = []
        self.errors: list[Problem] = []
        self.error_at: dict[int, int] = {}
        self.first = frame.first or (client.number << ID_BITS | (client.counter + 1))
        self.index = 0
        self.scalars, self.payloads = iter(frame.scalars), iter(frame.payloads)
        self.counted = (0, 0, 0)
        self.undo: UndoLog | None = None  # shared by the iterations of a loop, which are undone together
        self.halted: Problem | None = None  # set at the time limit; no further record runs
        self.timing = Timing() if frame.timed else None
        self._check_first()

    def execute(self) -> tuple[Reply, Buffers]:
        session, engine = self.session, self.session.engine
        alone, clock = self.undo is None, self.clock
        if alone:
            begin_frame(self)
        take, timing, engine.timeline = self._step, self.timing, None
        if timing is not None:
            timing.started = time.perf_counter_ns()
            if self.frame.detailed:
                take, engine.timeline = self._timed_step, []
        if self.failures:
            take = self._failed_step
        engine.grad_enabled, engine.inference, engine.anomaly = True, False, False
        engine.region = None
        scalars, payloads = self.scalars, self.payloads
        begin = position_of(self.client.number, self.seq, 0)

        def on_tape() -> None:
            engine.undo = undo = self.undo or UndoLog(engine)
            clock.undo = undo.entries
            past = self._settling()
            try:
                for index, record in enumerate(self.structure.ops):
                    self.index = index
                    engine.position = begin + index
                    if index == past and alone:
                        undo.give_up()
                    if engine.groups and alone and record[0] == "backward":
                        engine.watcher = averages_after(self, index)
                    take(record, scalars, payloads)
                    engine.watcher = None
                    for slot in self.frees[index]:
                        self.made[slot] = GONE
                if clock.cancelled:
                    clock.stop("the end of the frame")
            except Cancelled:
                if alone:
                    undo.undo()
                raise
            finally:
                engine.undo = engine.watcher = None
                for group in engine.groups.values():
                    group.end_started("its frame was cancelled")
                if alone:
                    undo.forget()

        failed = len(self.client.failed_writes)
        withdrawn: Problem | None = None
        if self.failures:
            withdrawn = next((p for p in self.failures.values() if p.code == Cancelled.code), None)
        try:
            if withdrawn is not None:
                self.withdraw(withdrawn, failed)
            elif session.plans is None:
                on_tape()
            else:
                session.plans.perform(self, on_tape)
        except Cancelled as error:
            if not alone:
                raise
            withdrawn = self.note(error)
            self.withdraw(withdrawn, failed)
        clock.undo = []
        if engine.region is not None:
            engine.region.settle()
        if withdrawn is None:
            session.ops_run += len(self.structure.ops)
        session.failed = tuple(self.errors)  # before the reads, which may append errors of other frames
        values, out = self._read()
        self.settle()
        if self.structure.reads or self.structure.heard or self.human:
            self.client.failures_seen()
        if timing is not None:
            timing.nodes = [(step[0] - begin, *step[1:]) for step in engine.timeline or ()]
            engine.timeline = None
            timing.finished = time.perf_counter_ns()
        return Reply(
            seq=self.seq,
            values=values,
            errors=self.errors,
            made=len(self.made),
            first=self.first if self.made else 0,
            timing=timing,
        ), out

    def note(self, error: GradwireError) -> Problem:
        """Record an error of the current record."""
        name = self.structure.ops[self.index][0] if self.structure.ops else ""
        return self._note(error, name if type(name) is str else "")

    def _settling(self) -> int:
        """The index of the first of the final records that only store results: optimizer steps and changes of
        gradients. From there on the frame cannot be cancelled, so they need no undo copies."""
        ops = self.structure.ops
        index = len(ops)
        while index and type(name := ops[index - 1][0]) is str and name in SETTLING:
            index -= 1
        return index

    def withdraw(self, problem: Problem, failed: int) -> None:
        """Mark a cancelled and undone frame as failed.

        ``failed`` is the number of failed writes before the frame.
        """
        self.errors, self.error_at = [problem], {id(problem): 0}
        for storage in self.client.failed_writes[failed:]:
            storage.poison = None
        del self.client.failed_writes[failed:]
        ops = [(TABLE.get(record[0]) if type(record[0]) is str else None, record) for record in self.structure.ops]
        counts = [
            count if type(count := op.results if op is not None and op.results is not None else (*r, None)[2]) is int
            else 1
            for op, r in ops
        ]  # fmt: skip
        self.made = [Poison(problem)] * sum(counts)
        if self.client.failed_backward is None and any(op is not None and op.name in BACKWARDS for op, _ in ops):
            self.client.failed_backward = problem

    def _check_first(self) -> None:
        if not 0 < self.first <= MAX_ID - len(self.structure.ops) or (
            self.frame.first and self.first >> ID_BITS != self.client.number
        ):
            raise MalformedFrame(
                f"first={self.frame.first} is not an id of client {self.client.number}; its ids are "
                f"{self.client.number} << {ID_BITS} plus a counter"
            )

    def _failed_step(self, record: Any, scalars: Iterator[Any], payloads: Iterator[Payload]) -> None:
        """Replay a record. A record that failed originally fails again, with all consequences."""
        assert self.failures is not None
        problem = self.failures.get(self.index)
        op = TABLE.get(record[0]) if type(record[0]) is str else None
        if problem is None or op is None or op.internal or type(record[1]) is not list:
            self._step(record, scalars, payloads)
            return
        args = record[1]
        count = op.results if op.results is not None else (*record, None)[2]
        values: list[Any] = []
        if len(self.session.ids) + len(self.made) < self.session.limits.max_tensors:
            try:
                values = decode_args(op, args, self._resolve, scalars, payloads)
            except Poisoned as poisoned:
                self._fail(op, args, count, poisoned.problem, values)
                return
            except GradwireError:
                values = []
        if id(problem) not in self.error_at:
            self.error_at[id(problem)] = len(self.errors)
            self.errors.append(problem)
        if problem.extra.get("setting") == FRAME_SECONDS:
            self.halted = problem
        self._fail(op, args, count, problem, values, problem.extra.get("begun", True))

    def _timed_step(self, record: Any, scalars: Iterator[Any], payloads: Iterator[Payload]) -> None:
        account, timing = self.session.engine.account, self.timing
        assert timing is not None
        before, started = account.live, time.perf_counter_ns()
        self._step(record, scalars, payloads)
        timing.ops += (started, time.perf_counter_ns())
        timing.memory.append(account.live - before)

    def _step(self, record: Any, scalars: Iterator[Any], payloads: Iterator[Payload]) -> None:
        session = self.session
        op: Op | None = None
        values: list[Any] = []
        drawn = self.generator.offset
        begun = False
        name, args, count = (*record, None)[:3]
        if type(name) is not str or type(args) is not list or type(count) not in (int, type(None)):
            malformed = MalformedFrame(f"record {self.index} is not [name, arguments, results?]: {record!r:.80}")
            self._fail(None, [], None, self._note(malformed, ""), [])
            return
        try:
            entry = row(name)
            op = entry.op
            if op.internal:
                raise UnknownOp(f"{name!r} is an internal op; a frame must not use it", op=name)
            if op.results is not None:
                count = op.results
            if len(session.ids) + len(self.made) >= session.limits.max_tensors:
                raise LimitExceeded(
                    f"the session holds {len(session.ids) + len(self.made):,} tensors "
                    "(GRADWIRE_MAX_TENSORS); release some",
                    setting="GRADWIRE_MAX_TENSORS", limit=session.limits.max_tensors, value=len(session.ids),
                )  # fmt: skip
            values = decode_args(op, args, self._resolve, scalars, payloads)
            tracer = session.engine.tracer
            if tracer is not None:
                tracer.record(op, args, values)
            if entry.payload_at is not None:
                values[entry.payload_at] = self._payload(op, values, entry.payload_at)
                if tracer is not None:
                    tracer.payload(op, values, entry.payload_at)
            if self.halted is not None:
                raise Poisoned(self.halted)
            if deadline.monotonic() > self.clock.end:
                self.clock.stop(name)
            if (op.step or op.name in _USING_GRADIENTS) and self.client.failed_backward is not None:
                raise Poisoned(self.client.failed_backward)
            begun = True
            self._take(session.engine.run(entry, values), count)
            if session.engine.observer is not None:
                session.engine.observer.results(name, self.index, self._affected(op, values, count))
            failed = self.client.failed_backward
            if failed is not None and failed.code == Cancelled.code and name in BACKWARDS:
                self.client.failed_backward = None  # the client knows of its cancellation, and gradients exist again
        except Poisoned as poisoned:
            self._fail(op, args, count, poisoned.problem, values)
        except Cancelled:
            raise
        # Do not keep these errors: their tracebacks reference the op's arrays.
        except GradwireError as error:
            self._failed(op, args, count, error, values, begun, drawn)
        except MemoryError as error:
            self._failed(op, args, count, session.engine.out_of_memory(name, error), values, begun, drawn)
        except ArithmeticError as error:  # of Python numbers; arrays do not raise it
            unusable = ArgumentError(f"{name}: no result for these numbers ({error})")
            self._failed(op, args, count, unusable, values, begun, drawn)
        except RecursionError:
            nested = MalformedFrame("the arguments are nested too deeply")
            self._failed(op, args, count, nested, values, begun, drawn)
        except Exception as error:
            log.exception("op %s failed in the engine", name)
            internal = InternalError(
                f"{name} failed inside the engine ({type(error).__name__}); the server's log has details"
            )
            self._failed(op, args, count, internal, values, begun, drawn)

    def _failed(
        self,
        op: Op | None,
        args: list[Any],
        count: int | None,
        error: GradwireError,
        values: list[Any],
        begun: bool,
        drawn: int,
    ) -> None:
        """Handle a record's own failure; ``drawn`` is the offset of the random generator before it."""
        name = self.structure.ops[self.index][0]
        if error.code in MOMENTARY and self.generator.offset != drawn:
            # A replay does not run the record, so reset the generator.
            self.generator.set_state((self.generator.seed, drawn))
        timed_out = error.details.get("setting") == FRAME_SECONDS
        if timed_out:
            error.details["begun"] = begun
        operands = [repr(value.meta) for value in values if isinstance(value, Tensor)]
        if operands:
            error.details["operands"] = operands[:MAX_OPERANDS]
        problem = self._note(error, name)
        for tensor in error.half_done:
            self._poison(tensor, problem)
        if timed_out:
            self.halted = problem
        self._fail(op, args, count, problem, values, begun)

    def _affected(self, op: Op, values: list[Any], count: int | None) -> list[Tensor]:
        """The tensors that a record made or changed."""
        found = self.made[len(self.made) - (1 if count is None else count) :] if count != 0 else []
        if op.mutates is not None:
            found = [*found, values[0]]
        elif op.step:
            lists = [
                v for p, v in zip(op.params, values, strict=False) if p.kind in (Kind.TENSORS, Kind.OPTIONAL_TENSORS)
            ]
            found = [*found, *(tensor for value in lists for tensor in value or ())]
        return [tensor for tensor in found if isinstance(tensor, Tensor)]

    def _take(self, result: Any, count: int | None) -> None:
        if count == 0:
            return
        results = result if type(result) is tuple else (result,)
        if count is not None and len(results) != count:
            raise MalformedFrame(f"the record declares {count} results, but the op has {len(results)}")
        self.made.extend(results)

    def _fail(
        self,
        op: Op | None,
        args: list[Any],
        count: int | None,
        problem: Problem,
        values: list[Any],
        begun: bool = False,
    ) -> None:
        """Mark a record as failed: poison its results and the tensors that it should have changed.

        ``values`` are its decoded arguments, or empty. ``begun``: it failed while it ran, and was not skipped.
        """
        self.made.extend(Poison(problem) for _ in range(1 if count is None else count))
        self._pass_over()
        if op is None:
            return
        if op.collective:
            self._end_group(op, args, problem)
        if op.mutates is not None:
            target = values[0] if values else self._target(args)
            if isinstance(target, Tensor):
                self._poison(target, problem)
        elif begun and op.step:
            # The step may have changed some of its parameters. A skipped step changes none, which protects parameters
            # from missing gradients.
            for param, value in zip(op.params, values, strict=False):
                if param.kind in (Kind.TENSORS, Kind.OPTIONAL_TENSORS):
                    for tensor in value or ():
                        if isinstance(tensor, Tensor):
                            self._poison(tensor, problem)
        if op.name in BACKWARDS and self.client.failed_backward is None:
            self.client.failed_backward = problem

    def _end_group(self, op: Op, args: list[Any], problem: Problem) -> None:
        """After a collective that failed or was skipped: the other ranks do not wait for this one."""
        at = op.positions["group"]
        name = args[at] if at < len(args) else None
        group = self.session.engine.groups.get(name) if type(name) is str else None
        if group is not None:
            group.fail(f"rank {group.rank} did not do {op.name}: {problem.detail}")

    def _target(self, args: list[Any]) -> Tensor | None:
        """The target of an in-place op whose other arguments could not be decoded."""
        try:
            return self._resolve(args[0]) if args and type(args[0]) is int else None
        except (Poisoned, GradwireError):
            return None  # already poisoned, or unknown

    def _pass_over(self) -> None:
        """Skip the unused numbers and payloads of the failed record."""
        counted, numbers, payloads = self.counted
        for record in self.structure.ops[counted : self.index + 1]:
            more = mentioned(record[0], record[1])
            numbers, payloads = numbers + more[0], payloads + more[1]
        self.counted = self.index + 1, numbers, payloads
        for _ in range(length_hint(self.scalars) - len(self.frame.scalars) + numbers):
            next(self.scalars, None)
        for _ in range(length_hint(self.payloads) - len(self.frame.payloads) + payloads):
            next(self.payloads, None)

    def _poison(self, tensor: Tensor, problem: Problem) -> None:
        tensor.storage.poison = problem
        self.client.failed_writes.append(tensor.storage)

    def _note(self, error: GradwireError, name: str) -> Problem:
        problem = problem_of(error, op=name, seq=self.seq, index=self.index)
        self.error_at[id(problem)] = len(self.errors)
        self.errors.append(problem)
        return problem

    def _resolve(self, ref: int) -> Tensor:
        if ref < 0:
            at, external = -1 - ref, self.frame.external
            if at < len(external):
                return self.session.tensor(external[at])
            if at >= len(external) + len(self.frame.named):
                raise MalformedFrame(f"reference {ref} is outside the table of {len(external)} external ids")
            return names.find(self.session.engine.names, self.frame.named[at - len(external)])
        if ref >= len(self.made):
            raise MalformedFrame(f"reference {ref} is to a later result; the frame has {len(self.made)} results so far")
        found = self.made[ref]
        if isinstance(found, Poison):
            raise Poisoned(found.problem)
        if found is None:
            raise UnknownTensor(f"result {ref} of this frame is undefined: it is a missing gradient")
        if found.storage.poison is not None:
            raise Poisoned(found.storage.poison)
        return found

    def result(self, ref: int) -> Tensor:
        """The tensor of a reference, after the frame was applied.

        Raises:
            Poisoned: when its computation failed.
            MalformedFrame, UnknownTensor: when it does not exist or was dropped.
        """
        return self._resolve(ref)

    def _payload(self, op: Op, values: list[Any], at: int) -> Array:
        dtype, shape = values[op.positions["dtype"]], values[op.positions["size"]]
        account, uploads = self.session.engine.account, self.session.uploads
        return payload_array(account, uploads, self.client.number, self.buffers, values[at], dtype, shape)

    def _read(self) -> tuple[list[Value], Buffers]:
        values: list[Value] = []
        out: Buffers = []
        total = 0
        if len(self.structure.reads) > 1:
            self._expect_reads()
        for ref in self.structure.reads:
            try:
                tensor = self._resolve(ref)
                total += entries(tensor.shape) * NESTED_NUMBER_BYTES if self.human else tensor.meta.nbytes
                self._check_read(total)
                values.append(self._value(tensor, out))
            except Poisoned as poisoned:
                values.append(self._broken(poisoned.problem))
            except MemoryError as error:
                found = self.session.engine.out_of_memory("a read", error)
                values.append(self._broken(problem_of(found, op="read", seq=self.seq, index=len(self.structure.ops))))
            except GradwireError as error:
                if ref >= 0 and ref < len(self.made) and self.made[ref] is None:
                    values.append(Value())
                else:
                    values.append(
                        self._broken(problem_of(error, op="read", seq=self.seq, index=len(self.structure.ops)))
                    )
        return values, out

    def _check_read(self, total: int) -> None:
        limits = self.session.limits
        if total > limits.max_read_bytes:
            raise LimitExceeded(
                f"the reads of this frame exceed {limits.max_read_bytes:,} bytes (GRADWIRE_MAX_READ_BYTES)",
                setting="GRADWIRE_MAX_READ_BYTES", limit=limits.max_read_bytes, value=total,
            )  # fmt: skip
        if self.human and total > limits.max_decoded_bytes:
            raise LimitExceeded(
                f"the reads of this frame would take {total:,} bytes as nested lists; the limit is "
                f"{limits.max_decoded_bytes:,} (GRADWIRE_MAX_DECODED_BYTES); read them as raw bytes",
                setting="GRADWIRE_MAX_DECODED_BYTES", limit=limits.max_decoded_bytes, value=total,
            )  # fmt: skip

    def _expect_reads(self) -> None:
        """Copy the values to read from their GPU together. Errors are found later."""
        backends, total = self.session.engine.backends, 0
        for backend in backends.opened():
            backend.forget_reads()
        for ref in self.structure.reads:
            held = self.made[ref] if 0 <= ref < len(self.made) else None
            if type(held) is Tensor and held.device != "cpu":
                total += held.meta.nbytes
                if total > self.session.limits.max_read_bytes:
                    return
                backends[held.device].expect(held.array)

    def _broken(self, problem: Problem) -> Value:
        # Look up by identity, because a frame may have many errors and many reads.
        at = self.error_at.get(id(problem))
        if at is None:
            at = self.error_at[id(problem)] = len(self.errors)
            self.errors.append(problem)
        return Value(error=at)

    def _value(self, tensor: Tensor, out: Buffers) -> Value:
        host, meta = self.session.engine.to_numpy(tensor), tensor.meta
        if host.dtype != native(meta.dtype):  # the bytes would be read as other numbers
            raise InternalError(f"a kernel made {host.dtype} where its op infers {meta.dtype.name}")
        value = Value(dtype=meta.dtype.name, shape=list(meta.shape))
        if self.human:
            value.values = to_json(host, meta.dtype)
            return value
        # Copy, because the tensor may change before the reply is sent or resent.
        value.buffer = len(out)
        out.append(memoryview(host.tobytes()))
        return value

    def _name_tensors(self) -> None:
        """Move names to the tensors that they name from now on. One that could not be computed leaves its name where it
        is; the name of an undefined one is removed."""
        held = self.session.engine.names
        found: dict[str, Tensor | None] = {}
        for name, ref in self.structure.keeps.items():
            try:
                found[name] = None if ref is None else self._resolve(ref)
            except UnknownTensor:
                found[name] = None
            except (Poisoned, MalformedFrame):
                continue
        for name, tensor in found.items():
            if self.undo is not None:
                self.undo.later(names.mover(held, name, held.get(name)))
            names.move(held, name, tensor)

    def settle(self) -> None:
        """Assign ids to the results and release what the client dropped."""
        ids = self.session.ids
        without_id = {*self.structure.drops, *self.structure.keeps.values()}
        for i, held in enumerate(self.made):
            if i not in without_id:
                ids[self.first + i] = held
        if self.structure.keeps:
            self._name_tensors()
        for tensor_id in self.frame.releases:
            ids.pop(tensor_id, None)
        for payload in self.frame.payloads:  # those that no record used
            if payload.upload is not None:
                self.session.uploads.forget((self.client.number, payload.upload))
        self.client.counter = max(self.client.counter, (self.first & ((1 << ID_BITS) - 1)) + len(self.made) - 1)
