"""The proof that plans are the tape: every frame runs both ways, and the two sessions are compared bit for bit.

For tests. Each structure is captured at first sight; the session as it was before the frame is restored beside it from
an image, runs the frame by the plan, and is held against the session that ran it on the tape.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np

from gradwire_protocol.errors import InternalError

from .. import deadline
from ..failures import GONE, Poison
from ..structures import Known
from .cache import Entry, Plans, digest_of
from .inputs import look

if TYPE_CHECKING:
    from ..applying import Run
    from ..session import Session


MOST_NODES: Final = 3000
"""Sessions with larger graphs are not compared: an image takes as long as its graph."""


class Differs(InternalError):
    """A plan did something else than the tape."""


class ShadowPlans(Plans):
    """Runs every frame on the tape, and once more by a plan in a copy of the session.

    Attributes:
        outcomes: what became of the frames: verified, or why there was nothing to verify.
    """

    def __init__(self) -> None:
        super().__init__(eager=True)
        self.outcomes: Counter[str] = Counter()

    def perform(self, run: Run, on_tape: Callable[[], None]) -> None:
        """Apply the records of a frame on the tape, and compare.

        Raises:
            Differs: with what is not the same.
        """
        from ..image import NotImageable, take

        if not run.structure.ops:
            return
        for entry in self.entries.values():
            entry.plans.clear()
            entry.patience, entry.misses = 1, 0
        if self._obstacle(run):
            self.outcomes[self._obstacle(run)] += 1
            on_tape()
            return
        if run.session.engine.account.nodes + len(run.structure.ops) > MOST_NODES:
            self.outcomes["large"] += 1
            on_tape()
            return
        try:
            before = take(run.session)
        except NotImageable:
            self.outcomes["not imageable"] += 1
            on_tape()
            return
        before = type(before)(
            msgspec.json.decode(msgspec.json.encode(before.facts)), {n: a.copy() for n, a in before.arrays.items()}
        )
        live = run.session.engine.account.live
        said = Counter(self.statistics.reasons)
        super().perform(run, on_tape)
        found = self.entries.get(digest_of(run))
        if found is None or not found.plans:
            self.outcomes.update(self.statistics.reasons - said)
            return
        self.outcomes[self._verify(run, found, before, live)] += 1

    def _verify(self, run: Run, entry: Entry, before: Any, live: int) -> str:
        from ..applying import Run as Again
        from ..image import restore

        session = run.session
        twin = restore(before, session.limits)
        twin.engine.compiled = session.engine.compiled
        same = twin.engine.account.live == live  # garbage in cycles is in no image
        other = ShadowPlans()
        known = Known(run.structure, run.frees, b"", run.human)
        client = twin.clients[run.client.number]
        again = Again(twin, client, run.frame, run.seq, known, run.buffers, run.human, None)
        deadline.begin(0)
        engine = twin.engine
        engine.grad_enabled, engine.inference, engine.anomaly = True, False, False

        (plan,) = entry.plans
        found = look([twin.tensor(number) for number in run.frame.external], entry.deep)
        reason = "another key" if found.key != plan.key else other._run(plan, found, again)
        if reason:
            return f"not run: {reason}"
        self._compare(_shown(session, run), _shown(twin, again), {"structures"} if same else {"structures", "peak"})
        return "verified"

    def _compare(self, tape: Any, plan: Any, ignored: set[str]) -> None:
        for name, expected in tape.facts.items():
            if name not in ignored and expected != plan.facts[name]:
                raise Differs(f"a plan differs from the tape in {name}: {_first(expected, plan.facts[name])}")
        for name, array in tape.arrays.items():
            if name != "structures" and not np.array_equal(array, plan.arrays[name]):
                raise Differs(f"a plan differs from the tape in the bytes of {name}")


def _shown(session: Session, run: Run) -> Any:
    """An image of the session in which the results of the frame have their ids."""
    from ..image import take

    added = {}
    for i, held in enumerate(run.made):
        if held is not GONE:
            if isinstance(held, Poison):
                raise Differs(f"a plan failed where the tape did not: {held.problem.detail}")
            added[run.first + i] = held
    before = dict(session.ids)
    session.ids.update(added)
    try:
        return take(session)
    finally:
        session.ids.clear()
        session.ids.update(before)


def _first(one: Any, other: Any) -> str:
    """The first place at which two facts differ."""
    if type(one) is list and type(other) is list:
        for i, (mine, yours) in enumerate(zip(one, other, strict=False)):
            if mine != yours:
                return f"row {i}: {mine!r:.300} on the tape, {yours!r:.300} by the plan"
        return f"{len(one)} rows on the tape, {len(other)} by the plan"
    return f"{one!r:.300} on the tape, {other!r:.300} by the plan"
