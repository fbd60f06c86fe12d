"""Long waits: whoever waits tells here what for, and a listener that an upper room sets shows it.

A wait costs nothing until it has lasted :data:`SHOWN_AFTER_S`: the thread that waits wakes up then, once, and tells the
listener. From then on the listener asks for the facts whenever it draws, in a thread of its own.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from typing import Any, Final, Literal, Protocol

from .call_sites import user_call

SHOWN_AFTER_S: Final = 2.0

Kind = Literal["read", "room", "upload", "download", "connection", "server", "session"]
"""What is waited for: a value; room for more frames; bytes to be sent or received; a connection that is lost; an
embedded server to start; a session to open or to wake up."""


@dataclass(slots=True)
class Facts:
    """What a wait is about at a moment.

    Attributes:
        kind: see :data:`Kind`.
        url: the server.
        cause: why there is no connection, or what the server does meanwhile.
        op, line: the last op of the frame that the server computes, and where the program called it.
        ops, frames: how many ops that frame has, and how many frames are unanswered.
        done, total: bytes so far, and in all if that is known.
        began: when the first of these bytes was moved (``monotonic``).
        again_at: when the next attempt to connect begins; 0 while one is made.
        left: seconds of the time for attempts.
    """

    kind: Kind
    url: str = ""
    cause: str = ""
    op: str = ""
    line: Any = None
    ops: int = 0
    frames: int = 0
    done: int = 0
    total: int | None = None
    began: float = 0.0
    again_at: float = 0.0
    left: float = 0.0


class Listener(Protocol):
    """Shows waits. Its methods may be called from any thread, and return soon."""

    def attend(self, wait: Wait) -> None:
        """A wait begins whose thread cannot wake up to tell of it: :meth:`Wait.tell` is to be called, once it lasts."""

    def begin(self, wait: Wait) -> None:
        """A wait lasts."""

    def end(self, wait: Wait) -> None:
        """It is over: nothing of it remains visible."""


_listener: Listener | None = None


def listen(listener: Listener | None) -> Listener | None:
    """Have waits told to this listener, or to none. Returns the one before."""
    global _listener
    before, _listener = _listener, listener
    return before


class Wait:
    """A wait of one thread.

    Args:
        facts: tells what it is about. Another thread calls it: it only looks.
        asks: asks the server what it does meanwhile, for :attr:`answer`. It may take a second.
        began: when it began (``monotonic``), if not now.

    Attributes:
        site: the line that waits, and the name of what it called; known once the wait was told.
        answer: what the server said last.
        in_main: whether Ctrl-C reaches the thread that waits.
        greeted: whether a server answered, and its session is waited for.
        over: set when it is over, if a listener attends to it.
    """

    __slots__ = ("_due", "_listener", "answer", "asks", "began", "facts", "greeted", "in_main", "over", "site")

    def __init__(
        self, facts: Callable[[], Facts], asks: Callable[[], str] | None = None, began: float | None = None
    ) -> None:
        self.facts = facts
        self.asks = asks
        self.answer = ""
        self.site: tuple[Any, int, str] | None = None
        self.in_main = True
        self.greeted = False
        self.over: threading.Event | None = None
        self.began = monotonic() if began is None else began
        self._due: float | None = self.began + SHOWN_AFTER_S
        self._listener: Listener | None = None

    def pause(self, most: float | None) -> float | None:
        """How long to sleep until :meth:`look` is due, at most ``most`` seconds; ``None`` is without a limit."""
        if self._due is None:
            return most
        left = max(self._due - monotonic(), 0.0)
        return left if most is None else min(left, most)

    def look(self) -> None:
        """Tell the listener, if the wait has lasted so long by now."""
        if self._due is not None and monotonic() >= self._due:
            self.tell()

    def tell(self) -> None:
        """Tell the listener now."""
        self._due = None
        if _listener is not None and self._listener is None:
            self.site = user_call()
            self.in_main = threading.current_thread() is threading.main_thread()
            self._listener = _listener
            self.over = self.over or threading.Event()
            _listener.begin(self)

    def attend(self) -> None:
        """Have the listener look: this thread will be inside a call that it cannot wake up from."""
        if _listener is not None:
            self.over = threading.Event()
            _listener.attend(self)

    def end(self) -> None:
        """The wait is over."""
        self._due = None
        if self.over is not None:
            self.over.set()
        listener, self._listener = self._listener, None
        if listener is not None:
            listener.end(self)
