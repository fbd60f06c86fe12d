"""Verification of plans: every frame runs on the tape and by a plan, and the sessions are compared bit for bit.

A frame runs on the tape. A copy of the previous session, restored from a snapshot, runs the frame by a plan and is
compared with the first. Each structure is captured the first time.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from contextvars import copy_context
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np

from gradwire_engine.autograd.failures import GONE
from gradwire_engine.plans.inputs import Found, Unplannable, look
from gradwire_engine.runtime import deadline
from gradwire_engine.runtime.deadline import Clock
from gradwire_engine.session.frame_executor import FrameExecution
from gradwire_engine.session.plan_cache import VARIANTS_KEPT, Plan, Plans, digest_of
from gradwire_engine.session.structures import Known
from gradwire_engine.snapshot import Image, NotImageable, restore, take
from gradwire_protocol.errors import GradwireError, InternalError

MOST_NODES: Final = 3000
"""Sessions with larger graphs are not compared: an image takes as long as its graph."""

TALLY: Final = "GRADWIRE_TEST_PLANS_TALLY"
"""A variable that names a folder: each process adds to a file there a line for each outcome."""


class Differs(InternalError):
    """A plan did something else than the tape."""


class ShadowPlans(Plans):
    """Runs every frame on the tape, and once more by a plan in a copy of the session.

    A plan that an earlier frame left goes first, since that is what plans are for: other values in other memory, other
    numbers, payloads and parts. Where none holds, the frame is captured and run by its own plan.

    Attributes:
        outcomes: of the frames of this session.
    """

    def __init__(self) -> None:
        super().__init__(eager=True)
        self.outcomes: Counter[str] = Counter()

    def _count(self, *found: str) -> None:
        self.outcomes.update(found)
        if folder := os.environ.get(TALLY):
            with Path(folder, str(os.getpid())).open("a") as tally:
                tally.writelines(f"{outcome}\n" for outcome in found)

    def perform(self, run: Any, on_tape: Callable[[], None]) -> None:
        """Apply the records of a frame on the tape, and compare.

        Raises:
            Differs: with what is not the same.
        """
        if not run.structure.ops:
            return
        before, why = self._before(run)
        if before is None:
            self._count(why)
            on_tape()
            return
        digest = digest_of(run)
        live = run.session.engine.account.live
        known = self.entries.get(digest)
        earlier = [] if known is None else known.plans
        for plan in earlier:
            again = _again(run, before)
            ignored = _ignored(again, live)
            reason = self._replay(plan, again)
            if reason == "failed":
                _hold(before, _travelled(take(again.session)), {"peak", "structures"})
                on_tape()
                if not run.errors:
                    raise Differs("a plan failed where the tape did not")
                self._count("verified", "failed both ways")
                return
            if not reason:
                on_tape()
                _verify(run, again, ignored)
                self._count("verified", "by an earlier plan")
                return
        if known is not None:
            known.plans, known.patience, known.misses = [], 1, 0
        said = Counter(self.statistics.reasons)
        super().perform(run, on_tape)
        found = self.entries.get(digest)
        if found is None or not found.plans:
            self._count(*(self.statistics.reasons - said))
        else:
            again = _again(run, before)
            ignored = _ignored(again, live)
            reason = self._replay(found.plans[0], again)
            if reason:
                self._count(f"not run: {reason}")
            else:
                _verify(run, again, ignored)
                self._count("verified")
        if found is not None:
            found.plans = [*found.plans, *earlier][:VARIANTS_KEPT]

    def _before(self, run: FrameExecution) -> tuple[Image | None, str]:
        """The session as it is, or why there is nothing to compare."""
        if obstacle := self._obstacle(run):
            return None, obstacle
        if run.session.engine.account.nodes + len(run.structure.ops) > MOST_NODES:
            return None, "large"
        try:
            return _travelled(take(run.session)), ""
        except NotImageable:
            return None, "not imageable"

    def _replay(self, plan: Plan, again: FrameExecution) -> str:
        """Why a plan does not run; empty where it did, "failed" where it began and was undone."""
        session, engine = again.session, again.session.engine
        engine.grad_enabled, engine.inference, engine.anomaly = True, False, False
        known = self.entries[digest_of(again)]
        try:
            found = look([session.tensor(number) for number in again.frame.external], known.deep)
        except (GradwireError, Unplannable) as reason:
            return str(reason)
        if found.key != plan.key:
            return "another key"
        return copy_context().run(self._unhurried, plan, found, again)

    def _unhurried(self, plan: Plan, found: Found, again: FrameExecution) -> str:
        deadline.begin(0)
        return self._run(plan, found, again)


def _again(run: FrameExecution, before: Image) -> FrameExecution:
    """The frame, about to be applied to the session as it was."""
    twin = restore(before, run.session.limits)
    twin.engine.compiled = run.session.engine.compiled
    known = Known(run.structure, run.frees, b"", run.human, 0)
    return FrameExecution(
        twin, twin.clients[run.client.number], run.frame, run.seq, known, run.buffers, run.human, None, Clock()
    )


def _travelled(image: Image) -> Image:
    """The image after it was written and read, which shares nothing with its session."""
    facts = msgspec.json.decode(msgspec.json.encode(image.facts))
    return Image(facts, {name: array.copy() for name, array in image.arrays.items()})


def _ignored(again: FrameExecution, live: int) -> set[str]:
    """What may differ: the copy knows no structures, and without garbage in cycles it may begin with less memory."""
    return {"structures"} if again.session.engine.account.live == live else {"structures", "peak"}


def _verify(tape: FrameExecution, plan: FrameExecution, ignored: set[str]) -> None:
    """Hold the session that a plan ran in against the one on the tape."""
    if tape.errors or plan.errors:
        failed = [error.detail for error in (*tape.errors, *plan.errors)]
        raise Differs(f"{len(tape.errors)} errors on the tape, {len(plan.errors)} by the plan: {failed[0]}")
    _hold(_shown(tape), _shown(plan), ignored)


def _hold(tape: Image, plan: Image, ignored: set[str]) -> None:
    for name, expected in tape.facts.items():
        if name not in ignored and expected != plan.facts[name]:
            raise Differs(f"a plan differs from the tape in {name}: {_first(expected, plan.facts[name])}")
    for name, array in tape.arrays.items():
        if name != "structures" and not np.array_equal(array, plan.arrays[name]):
            raise Differs(f"a plan differs from the tape in the bytes of {name}")


def _shown(run: FrameExecution) -> Image:
    """An image of the session in which the results of the frame have their ids."""
    added = {run.first + i: held for i, held in enumerate(run.made) if held is not GONE}
    ids = run.session.ids
    before = dict(ids)
    ids.update(added)
    try:
        return take(run.session)
    finally:
        ids.clear()
        ids.update(before)


def _first(one: Any, other: Any) -> str:
    """The first place at which two facts differ."""
    if type(one) is list and type(other) is list:
        for i, (mine, yours) in enumerate(zip(one, other, strict=False)):
            if mine != yours:
                return f"row {i}: {mine!r:.300} on the tape, {yours!r:.300} by the plan"
        return f"{len(one)} rows on the tape, {len(other)} by the plan"
    return f"{one!r:.300} on the tape, {other!r:.300} by the plan"
