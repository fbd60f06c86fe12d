"""The log: structured, on stderr, for people or for machines."""

from __future__ import annotations

import logging
import sys
from typing import Any, Final, Protocol

import structlog


class LogSettings(Protocol):
    """The settings that concern the log."""

    @property
    def log_level(self) -> str:
        """Least level that is logged."""

    @property
    def log_format(self) -> str:
        """``console`` or ``json``."""


REFUSED_HANDSHAKE: Final = "ASGI callable returned without completing handshake."


def worth_telling(record: logging.LogRecord) -> bool:
    """Whether a record of uvicorn's is news. It calls every WebSocket that is refused with a response an error; whoever
    tries keys would fill the log with that, and each refusal has its line already."""
    return record.msg != REFUSED_HANDSHAKE


def configure(settings: LogSettings) -> None:
    """Send structlog's and the standard library's records (uvicorn's are such) through one form to stderr."""
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    last: list[Any]
    # Tracebacks are shown without local variables: those may be keys, or somebody's data.
    if settings.log_format == "json":
        tracebacks = structlog.tracebacks.ExceptionDictTransformer(show_locals=False)
        last = [structlog.processors.ExceptionRenderer(tracebacks), structlog.processors.JSONRenderer(default=repr)]
    else:
        plain = structlog.dev.plain_traceback
        last = [structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), exception_formatter=plain)]
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *last],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(settings.log_level.upper())
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access"):
        logger = logging.getLogger(name)
        logger.addFilter(worth_telling)
        logger.handlers.clear()
        logger.propagate = True
        # What uvicorn tells at "info" (each stream that opens and closes) is told here already.
        logger.setLevel(max(logging.WARNING, root.level))
