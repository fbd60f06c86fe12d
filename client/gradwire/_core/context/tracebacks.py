"""Tracebacks of gradwire's errors without gradwire's own frames: they end at the program's line.

Only what is shown is shortened, and only for errors of gradwire's vocabulary, whose text names value, limit and line.
An exception keeps its ``__traceback__``, for programs, ``logging`` and debuggers. Other exceptions are shown whole:
they may be a fault of gradwire's. ``GRADWIRE_TRACEBACK=full`` shows everything.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Final

import gradwire_protocol
from gradwire_protocol.errors import GradwireError

from .call_sites import PACKAGE, running_ipython

SETTING: Final = "GRADWIRE_TRACEBACK"
SHORT, FULL = "short", "full"

_OURS: Final = tuple(
    folder + os.sep for folder in (PACKAGE, PACKAGE + "_torch", str(Path(str(gradwire_protocol.__file__)).parent))
)
_LIBRARY: Final = os.path.dirname(os.__file__) + os.sep
_INSTALLED: Final = (os.sep + "site-packages" + os.sep, os.sep + "dist-packages" + os.sep)


def shortens() -> bool:
    """Whether tracebacks are to be shortened: unless the environment says otherwise, or something unknown."""
    return os.environ.get(SETTING, SHORT) in (SHORT, "")


def without_our_frames(trace: TracebackType | None) -> TracebackType | None:
    """A traceback of the program's frames: without gradwire's, and those of Python's library that gradwire called.

    Nothing is changed: the entries are new ones. ``None`` where no frame is left.
    """
    kept: list[TracebackType] = []
    ours = False
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if file.startswith(_OURS) or (ours and _of_python(file)):
            ours = True
        else:
            ours = False
            kept.append(trace)
        trace = trace.tb_next
    found: TracebackType | None = None
    for entry in reversed(kept):
        found = TracebackType(found, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return found


def _of_python(file: str) -> bool:
    return file.startswith("<frozen ") or (
        file.startswith(_LIBRARY) and not any(folder in file for folder in _INSTALLED)
    )


@contextmanager
def shortened(error: BaseException) -> Iterator[int]:
    """While inside, an error of gradwire's and those that led to it have tracebacks of the program's frames alone.

    Errors that led to it and happened inside of gradwire altogether, such as a socket's, are not shown. Yields how many
    frames are left out: 0 for other errors, for ones that only gradwire's frames led to, and where the environment asks
    for full tracebacks.
    """
    if not isinstance(error, GradwireError) or not shortens() or without_our_frames(error.__traceback__) is None:
        yield 0
        return
    before: list[tuple[BaseException, TracebackType | None, BaseException | None, BaseException | None, bool]] = []
    hidden = 0
    at: BaseException | None = error
    while at is not None and all(at is not known[0] for known in before):
        before.append((at, at.__traceback__, at.__cause__, at.__context__, at.__suppress_context__))
        short = without_our_frames(at.__traceback__)
        hidden += _length(at.__traceback__) - _length(short)
        led = at.__cause__ if at.__cause__ is not None else None if at.__suppress_context__ else at.__context__
        inside = led is not None and led.__traceback__ is not None and without_our_frames(led.__traceback__) is None
        at.__traceback__ = short
        if inside:
            hidden += _length(led.__traceback__) if led is not None else 0
            at.__cause__, at.__context__ = None, None
            break
        at = led
    try:
        yield hidden
    finally:
        for known, trace, cause, context, suppressed in before:
            known.__traceback__, known.__cause__, known.__context__ = trace, cause, context
            known.__suppress_context__ = suppressed  # an assignment of the cause sets it


def _length(trace: TracebackType | None) -> int:
    count = 0
    while trace is not None:
        count, trace = count + 1, trace.tb_next
    return count


def note(hidden: int) -> str:
    """What is said below a traceback that frames were left out of."""
    return f"({hidden} frame{'s' * (hidden != 1)} inside gradwire left out; {SETTING}={FULL} shows all)"


def install() -> None:
    """Shorten what is printed of errors that nobody catches: of the program, of its threads, and in IPython."""
    hook = sys.excepthook
    if getattr(hook, "shortens", False):
        return
    sys.excepthook = _shortening(hook, lambda kind, error, trace: error)
    threading.excepthook = _shortening(threading.excepthook, lambda args: args.exc_value)
    GradwireError._render_traceback_ = _render_traceback_  # type: ignore[attr-defined]


def _shortening(hook: Callable[..., Any], error_in: Callable[..., Any]) -> Callable[..., None]:
    def show(*args: Any) -> None:
        error = error_in(*args)
        if error is None:
            hook(*args)
            return
        with shortened(error) as hidden:
            hook(*args)
        if hidden:
            print(note(hidden), file=sys.stderr)

    show.shortens = True  # type: ignore[attr-defined]
    return show


def _render_traceback_(self: GradwireError) -> list[str]:
    """The lines that IPython shows for an error: it asks the error itself."""
    shell: Any = running_ipython()
    with shortened(self) as hidden:
        lines: list[str] = shell.InteractiveTB.structured_traceback(type(self), self, self.__traceback__)
    return [*lines, note(hidden)] if hidden and shell.InteractiveTB.mode != "Minimal" else lines
