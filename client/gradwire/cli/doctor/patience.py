"""A limit of time for calls that have none, such as the resolution of a name or an answer that arrives byte by byte."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class TookTooLong(Exception):
    """A call did not end in time. It goes on in a thread that does not keep the program from ending."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"no answer within {seconds:g} s")


def within(seconds: float, call: Callable[[], T]) -> T:
    """The result of a call that may take so many seconds; what it raises is raised.

    Raises:
        TookTooLong: when it takes longer.
    """
    done: queue.SimpleQueue[tuple[T | None, BaseException | None]] = queue.SimpleQueue()

    def run() -> None:
        try:
            done.put((call(), None))
        except BaseException as error:
            done.put((None, error))

    threading.Thread(target=run, name="doctor", daemon=True).start()
    try:
        found, error = done.get(timeout=seconds)
    except queue.Empty:
        raise TookTooLong(seconds) from None
    if error is not None:
        raise error
    return found  # type: ignore[return-value]  # None only where the call returned it
