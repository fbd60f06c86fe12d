"""What each session does: rates of the last seconds, the last frames and the last error.

A host counts each frame here, and the server's metrics count it, too. It costs about 2 us per frame. Nothing is
measured for it: the numbers come with the reply, from the server's process or from a worker.
"""

from __future__ import annotations

import time
from collections import deque
from dataclasses import asdict, dataclass
from typing import Any, Final

from gradwire_protocol.frames import Problem, Reply

from ..settings.timestamps import timestamp
from .metrics import Applied, Metrics

WINDOW_S: Final = 5
"""Rates are averages over this many whole seconds."""

FRAMES_KEPT: Final = 50
DETAIL_CHARS: Final = 500


@dataclass(slots=True)
class _Second:
    """The counts of one second of the monotonic clock."""

    at: int
    frames: int = 0
    ops: int = 0
    busy_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Rates:
    """A session's averages over the last seconds; ``busy`` is the part of the time in which its frames ran."""

    frames: float
    ops: float
    busy: float


@dataclass(frozen=True, slots=True)
class RecentFrame:
    """An answered frame.

    Attributes:
        at: Unix time of its answer.
        seq: its number.
        ops: its op records.
        what: its first ops by name.
        took_s, waited_s: seconds in the engine and in the queue.
        planned: it ran by a plan.
        error: the code of its first error, or empty.
    """

    at: float
    seq: int
    ops: int
    what: str
    took_s: float
    waited_s: float
    planned: bool
    error: str


class SessionActivity:
    """The counts of one session. Implements the counting that hosts require.

    Attributes:
        frames, ops, planned, errors: totals since the session was loaded into this server.
        last: when the last frame was answered, by the monotonic clock; before the first, when counting began.
        last_error: the last error of a frame.
    """

    counts_first = False

    __slots__ = ("_metrics", "_recent", "_seconds", "errors", "frames", "last", "last_error", "ops", "planned", "since")

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._seconds: deque[_Second] = deque(maxlen=WINDOW_S + 1)
        self._recent: deque[tuple[Any, ...]] = deque(maxlen=FRAMES_KEPT)
        self.frames = self.ops = self.planned = self.errors = 0
        self.since = self.last = time.monotonic()
        self.last_error: tuple[float, Problem] | None = None

    def knows(self, key: bytes) -> bool:
        """Whether the ops of the structure with this hash are known."""
        return self._metrics.knows(key)

    def applied(self, key: bytes, whole: bool, reply: Reply, stats: Applied) -> None:
        """Count a frame and its reply, here and in the server's metrics."""
        self._metrics.applied(key, whole, reply, stats)
        at = time.time()
        problem = reply.refused
        if problem is None and reply.errors:
            problem = reply.errors[0]
        if problem is not None:
            if problem.code == "unknown_structure":
                return  # the client sends the frame again
            self.errors += 1
            self.last_error = at, problem
        counted = self._metrics.op_counts.summary(key) if stats.ops is None else (sum(stats.ops.values()), stats.what)
        ops, what = (0, "") if counted is None else counted
        self.frames += 1
        self.ops += ops
        self.planned += stats.planned
        self.last = time.monotonic()
        second = int(self.last)
        if not self._seconds or self._seconds[-1].at != second:
            self._seconds.append(_Second(second))
        current = self._seconds[-1]
        current.frames += 1
        current.ops += ops
        current.busy_s += stats.took
        code = "" if problem is None else problem.code
        self._recent.append((at, reply.seq, ops, what, stats.took, stats.waited, stats.planned, code))

    def rates(self) -> Rates:
        """The averages over the last whole seconds."""
        now = time.monotonic()
        this = int(now)
        counted = [each for each in self._seconds if this - WINDOW_S <= each.at < this]
        span = min(WINDOW_S, max(1.0, now - self.since))
        return Rates(
            sum(each.frames for each in counted) / span,
            sum(each.ops for each in counted) / span,
            min(1.0, sum(each.busy_s for each in counted) / span),
        )

    def recent(self) -> list[RecentFrame]:
        """The last frames, the latest first."""
        return [RecentFrame(*each) for each in reversed(self._recent)]

    def describe_recent(self) -> list[dict[str, Any]]:
        """The last frames as plain data, the latest first."""
        return [asdict(each) | {"at": timestamp(each.at)} for each in self.recent()]

    def describe_error(self, with_text: bool = True) -> dict[str, Any] | None:
        """The last error as plain data; without its text, only what the error vocabulary says."""
        if self.last_error is None:
            return None
        at, problem = self.last_error
        found: dict[str, Any] = {"at": timestamp(at), "code": problem.code, "op": problem.op}
        return found | {"detail": problem.detail[:DETAIL_CHARS]} if with_text else found
