"""A warning for a line that reads values one by one in a loop, where one round trip would bring all.

A read counts if it is made by the same line as the one before, and between the two the program recorded at most
:data:`FEW_OPS` ops, none of which changes memory or runs backward. So reads of different lines, and a training loop
that reads a loss each step, never count. After :data:`MANY` reads that count, one after the other, the line is warned
of, once; by ``warnings``, so that its filters decide::

    warnings.filterwarnings("ignore", category=gradwire.ReadLoopWarning)
"""

from __future__ import annotations

import warnings
from typing import Any, Final

from ..context.call_sites import Line, user_call, user_depth
from .frame_builder import FrameBuilder
from .round_trips import HINTS, SPELLED, TOGETHER

MANY: Final = 200
FEW_OPS: Final = 4
LINES_KEPT: Final = 1000


class ReadLoopWarning(UserWarning):
    """A line reads many values one by one."""


class ReadLoops:
    """Counts the reads of one session that follow each other at the same line."""

    __slots__ = ("_builder", "_changes", "_count", "_line", "_recorded")

    def __init__(self, builder: FrameBuilder) -> None:
        self._builder = builder
        self._recorded = self._changes = self._count = 0
        self._line: Line | None = None

    def read(self) -> None:
        """Count a read of the caller's. Whoever has the session's lock calls this, before the read.

        Raises:
            ReadLoopWarning: where the program's filters make an error of it.
        """
        builder = self._builder
        recorded, changes = builder.recorded, builder.changes
        few = recorded - self._recorded <= FEW_OPS and changes == self._changes
        self._recorded, self._changes = recorded, changes
        if not few:
            self._count, self._line = 0, None
            return
        code, instruction, name = user_call()
        if self._line != (code, instruction):
            self._count, self._line = 1, (code, instruction)
            return
        self._count += 1
        if self._count == MANY:
            _warn(code, instruction, name)


_warned: Final[set[Any]] = set()


def _warn(code: Any, instruction: int, name: str) -> None:
    if HINTS.get(name) != TOGETHER or (code, instruction) in _warned or len(_warned) >= LINES_KEPT:
        return
    _warned.add((code, instruction))
    warnings.warn(
        f"{SPELLED.get(name, f'{name}()')} was called {MANY} times in a row at this line, one round trip each: keep "
        "the tensors in a list and read them at once, with torch.fetch(*tensors), or torch.stack(tensors).tolist()",
        ReadLoopWarning, stacklevel=user_depth(),
    )  # fmt: skip
