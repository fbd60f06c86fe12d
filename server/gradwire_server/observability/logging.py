"""Structured logging to stderr, as console text or JSON."""

from __future__ import annotations

import logging
import sys
from typing import Any, Final, Protocol

import structlog

from . import session_log


class LogSettings(Protocol):
    """The settings of the log."""

    @property
    def log_level(self) -> str:
        """The minimum level."""

    @property
    def log_format(self) -> str:
        """``console`` or ``json``."""


REFUSED_HANDSHAKE: Final = "ASGI callable returned without completing handshake."


def is_relevant(record: logging.LogRecord) -> bool:
    """Whether to log a record of uvicorn. It logs each refused WebSocket handshake as an error, although the server
    logs it, too; somebody who tries keys could flood the log."""
    return record.msg != REFUSED_HANDSHAKE


def configure(settings: LogSettings) -> None:
    """Format records of structlog and of the standard library (uvicorn's) alike and write them to stderr."""
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        session_log.RECENT,
    ]
    last: list[Any]
    # Tracebacks omit local variables, which may be keys or user data.
    if settings.log_format == "json":
        tracebacks = structlog.tracebacks.ExceptionDictTransformer(show_locals=False)
        last = [structlog.processors.ExceptionRenderer(tracebacks), structlog.processors.JSONRenderer(default=repr)]
    else:
        plain = structlog.dev.plain_traceback
        last = [structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), exception_formatter=plain)]
    structlog.configure(
        processors=[structlog.stdlib.filter_by_level, *shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared, processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *last]
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(settings.log_level.upper())
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access"):
        logger = logging.getLogger(name)
        logger.addFilter(is_relevant)
        logger.handlers.clear()
        logger.propagate = True
        # The server logs uvicorn's "info" messages (opened and closed streams) itself.
        logger.setLevel(max(logging.WARNING, root.level))
