"""The line that tells what the program waits for, on a terminal and in Jupyter; :mod:`..context.waiting` has the facts.

On a terminal the line stands below the row that the program writes in, and the cursor stays where the program left it.
So a prompt, half a line or a bar of tqdm remain as they are. What the program prints meanwhile removes the line first,
and it comes back below. Nothing is written to pipes and files, nor with ``GRADWIRE_PROGRESS=off``.

The thread that redraws the line is started when a wait has lasted two seconds, and ends with the last wait.
"""

from __future__ import annotations

import io
import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from time import monotonic
from typing import IO, Any, Final

from gradwire_protocol.errors import ArgumentValueError

from ..context import waiting
from ..context.waiting import Wait
from .wait_words import words

VARIABLE: Final = "GRADWIRE_PROGRESS"
OFF: Final = ("off", "0", "false", "no")
ON: Final = ("", "on", "1", "true", "yes")

REDRAWN_S: Final = 0.25
COLUMNS: Final = 80
ASKED_EVERY_S: Final = 2.0
LOCKED_S: Final = 1.0
"""How long drawing is waited for: a thread may have been stopped in the middle of it."""

_MAKE_ROOM: Final = "\x1bD\x1bM"
"""Down and up again: the terminal scrolls if there was no row below. The column stays."""
_BELOW: Final = "\x1b7\x1bD\r\x1b[2K"
_BACK: Final = "\x1b8"


def enabled() -> bool:
    """Whether ``GRADWIRE_PROGRESS`` allows it.

    Raises:
        ArgumentValueError: for a value that is neither on nor off.
    """
    text = os.environ.get(VARIABLE, "").strip().lower()
    if text not in ON and text not in OFF:
        raise ArgumentValueError(f"{VARIABLE}={text!r:.40} must be on or off")
    return text in ON


class TerminalLine:
    """One line below the program's own on a terminal."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        self._shown = False
        self._guarded: list[tuple[Any, Callable[..., Any]]] = []

    def draw(self, text: str) -> None:
        """Show this text instead of what is shown."""
        from rich.console import Console
        from rich.text import Text

        if not self._guarded:
            self._guard()
        drawn = io.StringIO()
        console = Console(file=drawn, force_terminal=True, legacy_windows=False, width=self._width())
        line = Text(text, style="dim", no_wrap=True, overflow="ellipsis", end="")
        line.truncate(console.width - 1, overflow="ellipsis")
        console.print(line, end="", soft_wrap=True)
        self._write(f"{_MAKE_ROOM}{_BELOW}{drawn.getvalue()}{_BACK}")
        self._shown = True

    def erase(self) -> None:
        """Leave the terminal as the program left it."""
        if self._shown:
            self._shown = False
            self._write(f"{_BELOW}{_BACK}")

    def close(self) -> None:
        """Erase it for good."""
        self.erase()
        for stream, guard in self._guarded:
            if stream.__dict__.get("write") is guard:
                del stream.write
        self._guarded.clear()

    def _width(self) -> int:
        try:
            return os.get_terminal_size(self._stream.fileno()).columns or COLUMNS  # 0: it does not know
        except (OSError, ValueError):
            return COLUMNS

    def _write(self, text: str) -> None:
        with suppress(OSError, ValueError):  # the terminal is gone
            type(self._stream).write(self._stream, text)
            self._stream.flush()

    def _guard(self) -> None:
        """Have what the program prints remove the line first, also through references that it took earlier."""
        for stream in {id(each): each for each in (sys.stdout, sys.stderr, self._stream)}.values():
            with suppress(AttributeError, TypeError, ValueError, OSError):
                if stream.isatty() and "write" not in stream.__dict__:
                    guard = self._guard_of(stream)
                    stream.write = guard  # type: ignore[method-assign]
                    self._guarded.append((stream, guard))

    def _guard_of(self, stream: Any) -> Callable[[str], Any]:
        plain = stream.write

        def write(text: str) -> Any:
            with LINE.locked():
                self.erase()
            return plain(text)

        return write


class NotebookLine:
    """One line in the output of a cell of a notebook."""

    def __init__(self) -> None:
        self._handle: Any = None

    def draw(self, text: str) -> None:
        """Show this text instead of what is shown."""
        from IPython import display

        if self._handle is None:
            show: Any = display.display
            self._handle = show({"text/plain": text}, raw=True, display_id=True)
        else:
            self._handle.update({"text/plain": text}, raw=True)

    def close(self) -> None:
        """Empty it."""
        if self._handle is not None:
            self._handle.update({"text/plain": ""}, raw=True)


def _surface() -> TerminalLine | NotebookLine | None:
    """Where the line can be shown now; ``None`` if nowhere."""
    if not enabled():
        return None
    shell = sys.modules.get("IPython")
    if shell is not None and getattr(shell.get_ipython(), "kernel", None) is not None:
        return NotebookLine()
    stream: Any = sys.stderr
    stream = getattr(stream, "rich_proxied_file", stream)
    try:
        if os.environ.get("TERM") in ("dumb", "unknown") or os.name != "posix" or not stream.isatty():
            return None
    except (AttributeError, ValueError, OSError):
        return None
    return TerminalLine(stream)


class WaitLine:
    """The waits that last, of which the latest is shown."""

    def __init__(self) -> None:
        self._reset()

    def _reset(self) -> None:
        self._lock = threading.RLock()
        self._waits: list[Wait] = []
        self._surface: TerminalLine | NotebookLine | None = None
        self._drawing: threading.Thread | None = None
        self._asking: threading.Thread | None = None
        self._stirred = threading.Event()

    def locked(self) -> _Locked:
        """A ``with`` in which nobody else draws."""
        return _Locked(self._lock)

    # The listener's side

    def attend(self, wait: Wait) -> None:
        """Tell of this wait once it lasts."""
        if _surface() is not None:
            _start(self._attend, wait)

    def begin(self, wait: Wait) -> None:
        """Show this wait from now on."""
        with self.locked():
            if self._surface is None:
                self._surface = _surface()
            if self._surface is None:
                return
            self._waits.append(wait)
            if self._drawing is None or not self._drawing.is_alive():
                self._drawing = _start(self._redraw)
            else:
                self._stirred.set()
            if wait.asks is not None and (self._asking is None or not self._asking.is_alive()):
                self._asking = _start(self._ask)

    def end(self, wait: Wait) -> None:
        """Show it no longer."""
        with self.locked():
            if wait in self._waits:
                self._waits.remove(wait)
            if not self._waits and self._surface is not None:
                surface, self._surface = self._surface, None
                with suppress(Exception):  # whatever a display does, the program goes on
                    surface.close()
        self._stirred.set()

    # The threads

    def _attend(self, wait: Wait) -> None:
        while (pause := wait.pause(None)) is not None:
            if wait.over is None or wait.over.wait(pause):
                return
            wait.look()

    def _redraw(self) -> None:
        while True:
            with self.locked():
                if not self._waits or self._surface is None:
                    self._drawing = None
                    return
                with suppress(Exception):
                    self._surface.draw(words(self._waits[-1], monotonic()))
            self._stirred.wait(REDRAWN_S)
            self._stirred.clear()

    def _ask(self) -> None:
        while True:
            with self.locked():
                asked = [wait for wait in self._waits if wait.asks is not None]
                if not asked:
                    self._asking = None
                    return
            wait = asked[-1]
            if wait.asks is not None:
                wait.answer = wait.asks()
            if wait.over is not None:
                wait.over.wait(ASKED_EVERY_S)


class _Locked:
    """A lock that is not waited for forever: a thread that holds it may have been stopped for good."""

    __slots__ = ("_held", "_lock")

    def __init__(self, lock: threading.RLock) -> None:
        self._lock = lock

    def __enter__(self) -> None:
        self._held = self._lock.acquire(timeout=LOCKED_S)

    def __exit__(self, *_: object) -> None:
        if self._held:
            self._lock.release()


def _start(target: Callable[..., None], *args: Any) -> threading.Thread | None:
    thread = threading.Thread(target=target, args=args, name="gradwire-wait", daemon=True)
    try:
        thread.start()
    except RuntimeError:  # the interpreter ends
        return None
    return thread


LINE: Final = WaitLine()
waiting.listen(LINE)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=LINE._reset)
