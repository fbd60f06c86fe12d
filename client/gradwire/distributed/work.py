"""``Work``: a collective that the program does not wait for."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final

from gradwire_protocol.errors import ArgumentError, Unavailable

from .._core.session.session import Session

LOOK_S: Final = 0.002
"""How often an answer is looked for while ``Future.wait`` waits with a limit."""


class Work:
    """What ``async_op=True`` returns.

    What is recorded after a collective is computed after it, so :meth:`wait` need not wait for the server, as with
    NCCL: it makes sure that the collective is on its way. An error of the collective is raised where a value is read.
    """

    def __init__(self, session: Session | None = None, result: Any = None) -> None:
        self._session = session
        self._result = result
        # The frame that is being recorded, which the collective is in.
        self._frame = 0 if session is None else session.link.next_frame

    def _sent(self) -> None:
        if self._session is not None and self._session.link.next_frame <= self._frame:
            self._session.flush()

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Make sure that the collective is sent. With a timeout, wait so long for the server to have done it.

        Raises:
            Unavailable: when it has not.
        """
        self._sent()
        if timeout is not None and timeout > timedelta(0):
            end = time.monotonic() + timeout.total_seconds()
            while not self.is_completed():
                if time.monotonic() > end:
                    raise Unavailable(f"the collective was not done within {timeout.total_seconds():g} s")
                time.sleep(LOOK_S)
        return True

    def is_completed(self) -> bool:
        """Whether the server has done it. Does not wait."""
        if self._session is None:
            return True
        self._sent()
        self._session.link.confirm()
        return self._session.stats()["acknowledged"] >= self._frame

    def is_success(self) -> bool:
        """Whether the server has done it. An error of it is raised where a value is read."""
        return self.is_completed()

    def synchronize(self) -> None:
        """As :meth:`wait`."""
        self.wait()

    def block_current_stream(self) -> None:
        """As :meth:`wait`: a session computes in order."""
        self.wait()

    def result(self) -> Any:
        """The tensors that the collective writes to."""
        return [] if self._result is None else self._result

    def get_future(self) -> Future:
        """A future of :meth:`result`."""
        return Future(self)


class Future:
    """What ``Work.get_future()`` returns: the collective's tensors, and what ``then`` makes of them."""

    def __init__(self, work: Work, action: Callable[[Future], Any] | None = None, source: Future | None = None) -> None:
        self._work = work
        self._value: Any = work.result() if action is None or source is None else action(source)

    def done(self) -> bool:
        """Whether the server has done the collective."""
        return self._work.is_completed()

    def wait(self) -> Any:
        """The value. Its tensors are proxies like any others."""
        self._work.wait()
        return self._value

    def value(self) -> Any:
        """The value, as :meth:`wait` gives it."""
        return self.wait()

    def then(self, callback: Callable[[Future], Any]) -> Future:
        """A future of ``callback(self)``, which runs now: it records what is computed after the collective."""
        return Future(self._work, callback, self)

    def add_done_callback(self, callback: Callable[[Future], Any]) -> None:
        """Call ``callback(self)`` now: what it records is computed after the collective."""
        callback(self)

    def set_result(self, result: Any) -> None:
        """Not for a collective's own future.

        Raises:
            ArgumentError: always.
        """
        raise ArgumentError(f"the future of a collective has its own result, not {result!r:.40}")
