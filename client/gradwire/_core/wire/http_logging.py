"""Keeps gradwire's requests out of the program's log.

With ``logging.basicConfig(level=logging.INFO)`` the HTTP libraries would log each of gradwire's requests, and with
DEBUG every frame, which also costs time. The program's own requests with the same libraries are logged as usual.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final


class _Request(threading.local):
    running: bool = False  # whether this thread is making one of gradwire's requests


_REQUEST: Final = _Request()
_CARRIERS: Final = ("httpx", "httpcore.connection", "httpcore.http11", "httpcore.http2", "httpcore.proxy")


def _wanted(record: logging.LogRecord) -> bool:
    return not _REQUEST.running


@contextmanager
def unlogged() -> Iterator[None]:
    """Silence the loggers of the HTTP libraries in this thread, for one of gradwire's requests."""
    for name in _CARRIERS:
        logging.getLogger(name).addFilter(_wanted)  # adding a filter twice has no effect
    before, _REQUEST.running = _REQUEST.running, True
    try:
        yield
    finally:
        _REQUEST.running = before


def stream_logger() -> logging.Logger:
    """The logger of the stream. Its level is WARNING unless the program sets another."""
    logger = logging.getLogger("gradwire.stream")
    if logger.level == logging.NOTSET:
        logger.setLevel(logging.WARNING)
    return logger
