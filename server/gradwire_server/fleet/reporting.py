"""What a worker reports to the Directory, and how often: changes at once, else a sign of life now and then."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

from .messages import Report, Shared

QUIET_S: Final = 5.0
"""Between the reports of a worker at which nothing changes."""

REPEATED: Final = 2
"""Reports after a change: the Directory believes that a session is gone when it is told so more than once."""


class Reports:
    """The reports of one worker.

    Args:
        blank: a report without contents.
        clock: monotonic time.
    """

    def __init__(self, blank: Callable[[], Report], clock: Callable[[], float] = time.monotonic) -> None:
        self._blank = blank
        self._clock = clock
        self._told: dict[str, dict[str, Any]] = {}
        self._gone: dict[str, str] = {}
        self._incarnation = ""
        self._sent = -QUIET_S
        self._repeats = 0

    def next(self, rows: list[dict[str, Any]], gone: dict[str, str], use: dict[str, float]) -> Report | None:
        """The report that is due now; ``None`` for none."""
        changed = [row for row in rows if self._told.get(row["id"]) != _lasting(row)]
        ids = [str(row["id"]) for row in rows]
        ended = gone if gone != self._gone else {}
        if changed or ended or use or self._told.keys() != set(ids):
            self._repeats = REPEATED
        elif self._repeats:
            self._repeats -= 1
        elif self._clock() - self._sent < QUIET_S:
            return None
        told = self._blank()
        told.sessions, told.here, told.gone, told.use = changed, ids, ended, use
        self._sent = self._clock()
        return told

    def answered(self, told: Report, gone: dict[str, str], shared: Shared) -> None:
        """The Directory has got a report."""
        if shared.whole or not shared.known or shared.incarnation != self._incarnation:
            self.lost()
            self._incarnation = shared.incarnation
            return
        self._told |= {str(row["id"]): _lasting(row) for row in told.sessions}
        self._told = {each: row for each, row in self._told.items() if each in set(told.here or ())}
        self._gone = gone

    def lost(self) -> None:
        """Nobody knows what the Directory has got: the next report is whole."""
        self._told, self._gone = {}, {}


def _lasting(row: dict[str, Any]) -> dict[str, Any]:
    """What of a session's row is a change; the end of its time moves on while it is used."""
    return {name: value for name, value in row.items() if name != "expires_at"}
