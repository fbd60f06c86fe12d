"""A repeated frame: a loop in one message.

Each iteration applies the frame to the state after the previous one, with the next numbers of the table of scalars. Its
results replace the previous ones under the same ids. Results to keep from every iteration are copied and stacked at the
end.
"""

from __future__ import annotations

import time
from typing import Any, Final

import msgspec

from gradwire_protocol.errors import Cancelled, GradwireError, LimitExceeded, MalformedFrame
from gradwire_protocol.frames import ID_BITS, Problem, Reply, Timing
from gradwire_protocol.records import mentioned

from ..autograd.failures import Poison, Poisoned, problem_of
from ..autograd.tensor import Tensor
from ..autograd.undo_log import UndoLog
from .frame_executor import Buffers, FrameExecution, PreparedFrame, begin_frame

SETTING: Final = "GRADWIRE_MAX_OPS_PER_FRAME"


class Repetition(PreparedFrame):
    """Applies a frame ``frame.repeat`` times, or once with stacked results. The loop ends after a failed iteration.

    Raises:
        MalformedFrame: when the tables do not fit the number of iterations, or the frame has reads or chunked payloads.
        LimitExceeded: when all iterations together have more records and copies than a frame may have records, or for
            too many tensors.
    """

    def __post_init__(self) -> None:
        session, frame, structure = self.session, self.frame, self.known.structure
        self.times = times = max(frame.repeat, 1)
        each = max(len(structure.ops) + len(frame.stacked), 1)
        if each * times > session.limits.max_ops_per_frame:
            raise LimitExceeded(
                f"{times:,} times {each:,} ops (and copies) are {times * each:,}; the limit is "
                f"{session.limits.max_ops_per_frame:,} ({SETTING})",
                setting=SETTING, limit=session.limits.max_ops_per_frame, value=times * each,
            )  # fmt: skip
        if len(session.ids) + len(frame.stacked) > session.limits.max_tensors:
            raise LimitExceeded(
                f"the session holds {len(session.ids):,} tensors (GRADWIRE_MAX_TENSORS); release some",
                setting="GRADWIRE_MAX_TENSORS", limit=session.limits.max_tensors, value=len(session.ids),
            )  # fmt: skip
        self.numbers = sum(mentioned(*record[:2])[0] for record in structure.ops)
        if len(frame.scalars) != times * self.numbers:
            raise MalformedFrame(
                f"{times:,} iterations of {self.numbers} numbers each need {times * self.numbers:,} scalars, not "
                f"{len(frame.scalars):,}"
            )
        if structure.reads or any(payload.upload is not None for payload in frame.payloads):
            raise MalformedFrame("a repeated frame must not read values or use uploads in chunks")
        dropped = set(structure.drops).intersection(frame.stacked)
        if dropped:
            raise MalformedFrame(f"result {min(dropped)} is dropped in each iteration, so it cannot be stacked")
        self.errors: list[Problem] = []
        self.first = frame.first
        self.first = self._single(0).first  # refuses an invalid frame before the loop

    def _single(self, iteration: int) -> FrameExecution:
        begin = iteration * self.numbers
        frame = msgspec.structs.replace(
            self.frame, first=self.first, repeat=0, stacked=[], releases=[], timed=False, detailed=False,
            scalars=self.frame.scalars[begin : begin + self.numbers],
        )  # fmt: skip
        failures = self.failures
        if failures is not None:
            failures = {i: p for i, p in failures.items() if p.extra.get("iteration", 0) == iteration}
        return FrameExecution(
            self.session, self.client, frame, self.seq, self.known, self.buffers, self.human, failures, self.clock
        )

    def execute(self) -> tuple[Reply, Buffers]:
        """Run the loop."""
        session, frame, times = self.session, self.frame, self.times
        timing = Timing(started=time.perf_counter_ns()) if frame.timed else None
        wanted: list[list[Any]] = []
        begin_frame(self)
        undo = UndoLog(session.engine)
        failed, ran = len(self.client.failed_writes), session.ops_run
        run = self._single(0)
        withdrawn = next((p for p in (self.failures or {}).values() if p.code == Cancelled.code), None)
        for iteration in range(times):
            if iteration:
                run = self._single(iteration)
            run.undo = undo
            try:
                if withdrawn is None:
                    if self.clock.cancelled:
                        self.clock.stop("a loop")
                    run.execute()
            except Cancelled as error:
                undo.undo()
                error.details["iteration"] = iteration
                withdrawn = run.note(error)
            if withdrawn is not None:
                run.withdraw(withdrawn, failed)
                run.settle()
                session.ops_run = ran
                session.failed = (withdrawn,)
            self.errors = list(session.failed)
            if withdrawn is not None:
                wanted.append([Poison(withdrawn)] * len(frame.stacked))
                break
            wanted.append(self._copies(run, iteration))
            for problem in self.errors:
                if "iteration" not in problem.extra:
                    problem.extra = {**problem.extra, "iteration": iteration}
                    problem.detail += f" (in iteration {iteration} of {times})"
            if self.errors:
                break
        undo.forget()
        self.clock.undo = []
        made = len(run.made)
        for i, tensor in enumerate(self._stacks(wanted)):
            session.ids[run.first + made + i] = tensor
        for tensor_id in frame.releases:
            session.ids.pop(tensor_id, None)
        counter = (run.first & ((1 << ID_BITS) - 1)) + made + len(frame.stacked) - 1
        self.client.counter = max(self.client.counter, counter)
        session.failed = tuple(self.errors)
        if timing is not None:
            timing.finished = time.perf_counter_ns()
        count = made + len(frame.stacked)
        return Reply(seq=self.seq, errors=self.errors, made=count, first=run.first if count else 0, timing=timing), []

    def _copies(self, run: FrameExecution, iteration: int) -> list[Any]:
        """Copies of an iteration's results to stack."""
        found: list[Any] = []
        place = len(self.known.structure.ops)
        for reference in self.frame.stacked:
            try:
                self._fail_again(place, iteration)
                found.append(self._plain("clone", run.result(reference)))
            except Poisoned as poisoned:
                found.append(Poison(poisoned.problem))
            except (GradwireError, MemoryError) as error:
                return [self._broken(error, place, "clone")] * len(self.frame.stacked)
        return found

    def _stacks(self, wanted: list[list[Any]]) -> list[Any]:
        """The stacked results of all iterations; poisoned if an iteration failed."""
        if self.errors:
            broken = next((each for each in wanted[-1] if isinstance(each, Poison)), Poison(self.errors[0]))
            return [broken] * len(self.frame.stacked)
        found: list[Any] = []
        place = len(self.known.structure.ops) + 1
        for copies in zip(*wanted, strict=True):
            unmade = next((each for each in copies if isinstance(each, Poison)), None)
            if unmade is not None:  # it depends on a failure in an earlier frame
                found.append(unmade)
                continue
            try:
                self._fail_again(place, 0)
                found.append(self._plain("stack", list(copies), 0))
            except Poisoned as poisoned:
                return [Poison(poisoned.problem)] * len(self.frame.stacked)
            except (GradwireError, MemoryError) as error:
                return [self._broken(error, place, "stack")] * len(self.frame.stacked)
        return found

    def _fail_again(self, place: int, iteration: int) -> None:
        """In a replay, fail where the frame failed originally."""
        problem = None if self.failures is None else self.failures.get(place)
        if problem is not None and problem.extra.get("iteration", 0) == iteration:
            if problem not in self.errors:
                self.errors.append(problem)
            raise Poisoned(problem)

    def _broken(self, error: GradwireError | MemoryError, place: int, name: str) -> Poison:
        known = error if isinstance(error, GradwireError) else self.session.engine.out_of_memory(name, error)
        problem = problem_of(known, op=name, seq=self.seq, index=place)
        self.errors.append(problem)
        return Poison(problem)

    def _plain(self, name: str, *args: Any) -> Tensor:
        engine = self.session.engine
        engine.grad_enabled = False
        found: Tensor = engine.call(name, *args)
        return found
