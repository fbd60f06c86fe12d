"""gradwire's requests stay out of the program's log.

A program that says ``logging.basicConfig(level=logging.INFO)`` wants its own lines. The libraries that carry gradwire's
requests log each of them, and with DEBUG every frame, which costs time as well. Requests of the program's own, made
with the same libraries, are logged as ever.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final


class _Request(threading.local):
    running: bool = False  # whether this thread makes one of gradwire's requests


_REQUEST: Final = _Request()
_CARRIERS: Final = ("httpx", "httpcore.connection", "httpcore.http11", "httpcore.http2", "httpcore.proxy")


def _wanted(record: logging.LogRecord) -> bool:
    return not _REQUEST.running


@contextmanager
def unlogged() -> Iterator[None]:
    """For the extent of a request of gradwire's, what carries it says nothing."""
    for name in _CARRIERS:
        logging.getLogger(name).addFilter(_wanted)  # one that is there already is not added again
    before, _REQUEST.running = _REQUEST.running, True
    try:
        yield
    finally:
        _REQUEST.running = before


def stream_logger() -> logging.Logger:
    """The logger of the stream. It is silent below WARNING until the program gives it a level of its own."""
    logger = logging.getLogger("gradwire.stream")
    if logger.level == logging.NOTSET:
        logger.setLevel(logging.WARNING)
    return logger
