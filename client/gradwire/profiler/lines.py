"""The round trips of a section of a program."""

from __future__ import annotations

from typing import Any, Self

from .._core.session.opened import OPENED
from .._core.session.round_trips import Key, Report, WaitingLine, report, since
from .._core.session.session import Session


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
        self._before = {session: session.waits.copy() for session in OPENED}
        self._found = None
        return self

    def __exit__(self, *_: Any) -> None:
        self._found = self.report()

    def report(self) -> Report:
        """The counts of the whole section, or so far while it runs."""
        if self._found is not None:
            return self._found
        return report(since(self._before.get(session, {}), session.waits.copy()) for session in OPENED)

    @property
    def lines(self) -> list[WaitingLine]:
        """The lines, by descending waiting time."""
        return self.report().lines

    @property
    def count(self) -> int:
        """How often the program waited for values."""
        return self.report().count

    def __str__(self) -> str:
        return str(self.report())

    def _repr_html_(self) -> str:
        return self.report()._repr_html_()
