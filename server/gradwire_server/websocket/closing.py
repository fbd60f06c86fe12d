"""The close codes of streams, and the code for each error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from gradwire_protocol.errors import (
    GradwireError,
    InternalError,
    LimitExceeded,
    MalformedFrame,
    SessionGone,
    Superseded,
    TooManyRequests,
    Unauthorized,
    Unavailable,
    VersionMismatch,
)

from ..durable.shared.ownership import OwnershipLost

# The range 4000 to 4999 is for applications: here 4000 plus the HTTP status of the cause.
NORMAL: Final = 1000
MALFORMED: Final = 4400
KEY_ENDED: Final = 4401
GONE: Final = 4404
SUPERSEDED: Final = 4409
VERSION_MISMATCH: Final = 4426
TOO_MANY: Final = 4429
GOING_DOWN: Final = 1012
INTERNAL: Final = 1011

_CODES: Final[tuple[tuple[type[GradwireError], int, str], ...]] = (
    (VersionMismatch, VERSION_MISMATCH, "version mismatch"),
    (TooManyRequests, TOO_MANY, "too many streams"),
    (Superseded, SUPERSEDED, ""),
    (Unavailable, GOING_DOWN, ""),
    (SessionGone, GONE, ""),
    (GradwireError, MALFORMED, ""),
)
"""Close codes and reasons for a refused hello: the first match counts. The default reason is the error's code."""


@dataclass(frozen=True, slots=True)
class End:
    """Why and how the server ends a stream. ``at_once``: without waiting for running frames."""

    code: int
    reason: str
    problem: GradwireError | None = None
    at_once: bool = False


RESUMED: Final = End(SUPERSEDED, "the client resumed on another stream")
SILENT: Final = End(MALFORMED, "no hello", MalformedFrame("timeout while waiting for the hello"))
SERVER_STOPS: Final = End(GOING_DOWN, "service restart")


def malformed(error: MalformedFrame | LimitExceeded) -> End:
    """The client sent an invalid, unexpected or too large message."""
    return End(MALFORMED, "malformed message", error)


def session_gone(text: str) -> End:
    """The session was deleted or expired."""
    return End(GONE, "session gone", SessionGone(text))


def key_ended(text: str) -> End:
    """The key that opened the stream was revoked or has expired."""
    return End(KEY_ENDED, "key ended", Unauthorized(text), at_once=True)


def hello_refused(error: GradwireError) -> End:
    """The server refuses the hello."""
    code, reason = next((code, reason) for kind, code, reason in _CODES if isinstance(error, kind))
    return End(code, reason or error.code, error)


def session_unavailable(error: GradwireError) -> End:
    """The session is unavailable. If the error is retryable, the client resumes. After a loss of ownership, replies
    that wait are not sent."""
    code = GOING_DOWN if error.retryable else GONE if isinstance(error, SessionGone) else INTERNAL
    return End(code, error.code, error, at_once=isinstance(error, OwnershipLost))


def host_refused(error: Unavailable | SessionGone) -> End:
    """The host refuses further frames. The code alone tells a client that it may resume."""
    gone = isinstance(error, SessionGone)
    return End(GONE if gone else GOING_DOWN, error.code, error if gone else None)


def chunk_refused(error: MalformedFrame | SessionGone) -> End:
    """The session refuses a chunk of an upload."""
    return End(GONE if isinstance(error, SessionGone) else MALFORMED, error.code, error)


def defect(error: InternalError, reason: str = "internal") -> End:
    """The server has a bug."""
    return End(INTERNAL, reason, error)
