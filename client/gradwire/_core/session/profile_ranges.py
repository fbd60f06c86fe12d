"""Named stretches of a program, as they stand in a profile."""

from __future__ import annotations

from contextlib import ContextDecorator
from typing import Any, Self

from .profile_recorder import ProfileRecorder, Range, current


class record_function(ContextDecorator):  # PyTorch's name
    """Give a stretch of the program a name in profiles: a context, or a decorator. Costs next to nothing without one.

    >>> with record_function("forward"):
    ...     loss = model(x)
    """

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name: str = name
        self.args: str | None = args
        self._open: list[tuple[ProfileRecorder, Range] | None] = []

    def __enter__(self) -> Self:
        recorder = current()
        self._open.append(None if recorder is None else (recorder, recorder.enter(self.name, self.args)))
        return self

    def __exit__(self, *_: Any) -> None:
        entered = self._open.pop()
        if entered is not None:
            recorder, opened = entered
            recorder.leave(opened)
