"""The round trips of a stretch of a program."""

from __future__ import annotations

from typing import Any, Self

from ..round_trips import Key, Line, Report, report, since
from ..session import Session


class round_trips:  # a context, named like the profiler's others
    """Tell which lines waited for the server in a stretch of a program, and for how long.

    >>> with round_trips() as waited:
    ...     train()
    >>> print(waited)
    """

    def __init__(self) -> None:
        self._before: dict[Session, dict[Key, list[int]]] = {}
        self._found: Report | None = None

    def __enter__(self) -> Self:
        from ..sessions import OPENED

        self._before = {session: session.waits.copy() for session in OPENED}
        self._found = None
        return self

    def __exit__(self, *_: Any) -> None:
        self._found = self.report()

    def report(self) -> Report:
        """What was counted: in the whole stretch when it is over, so far while it runs."""
        from ..sessions import OPENED

        if self._found is not None:
            return self._found
        return report(since(self._before.get(session, {}), session.waits.copy()) for session in OPENED)

    @property
    def lines(self) -> list[Line]:
        """The lines, those that waited longest first."""
        return self.report().lines

    @property
    def count(self) -> int:
        """How often the program waited for values."""
        return self.report().count

    def __str__(self) -> str:
        return str(self.report())
