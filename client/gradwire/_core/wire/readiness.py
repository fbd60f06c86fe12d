"""Waiting until a socket can be read or written.

By poll(2) where there is one: select(2) refuses descriptors above 1023, which a program with many files has.
"""

from __future__ import annotations

import math
import select
import socket
from typing import Final

LONGEST_S: Final = 1e6
"""Poll takes no more milliseconds than an int holds. Who has more time waits again."""


def wait_readable(sock: socket.socket, timeout: float | None) -> bool:
    """Wait until there is something to read, an error or the end included.

    Args:
        timeout: in seconds; ``None`` waits without a limit.

    Raises:
        OSError, ValueError: when the socket is closed.
    """
    return _wait(sock, timeout, write=False)[0]


def wait_either(sock: socket.socket, timeout: float | None) -> tuple[bool, bool]:
    """Wait until the socket can be read or written; returns whether it can be read, and whether written.

    Raises: as :func:`wait_readable`.
    """
    return _wait(sock, timeout, write=True)


def _wait(sock: socket.socket, timeout: float | None, write: bool) -> tuple[bool, bool]:
    if timeout is not None:
        timeout = min(max(timeout, 0), LONGEST_S)
    if not hasattr(select, "poll"):  # Windows, where select(2) has no such limit
        readable, writable, _ = select.select([sock], [sock] if write else [], [], timeout)
        return bool(readable), bool(writable)
    poll = select.poll()
    poll.register(sock, select.POLLIN | select.POLLOUT if write else select.POLLIN)
    found = poll.poll(None if timeout is None else math.ceil(timeout * 1000))
    events = found[0][1] if found else 0
    return bool(events & ~select.POLLOUT), bool(events & select.POLLOUT)
