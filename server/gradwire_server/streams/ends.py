"""Why and how the server ends a stream: the codes of the closing, and which error closes with which."""

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

# 4000 to 4999 are an application's own, here 4000 plus the HTTP status of the cause.
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
"""What a hello is answered with that is not welcome: the first that fits; without a reason, the error's code."""


@dataclass(frozen=True, slots=True)
class End:
    """Why and how the server ends a stream. ``at_once``: what still runs is not answered on it."""

    code: int
    reason: str
    problem: GradwireError | None = None
    at_once: bool = False


RESUMED: Final = End(SUPERSEDED, "the client resumed on another stream")
SILENT: Final = End(MALFORMED, "no hello", MalformedFrame("the hello did not come in time"))
SERVER_STOPS: Final = End(GOING_DOWN, "service restart")


def malformed(error: MalformedFrame | LimitExceeded) -> End:
    """The client sent what is no message, has no place there, or is too much of one."""
    return End(MALFORMED, "malformed message", error)


def session_gone(text: str) -> End:
    """The session was deleted or expired."""
    return End(GONE, "session gone", SessionGone(text))


def key_ended(text: str) -> End:
    """The key that opened the stream was revoked or has expired."""
    return End(KEY_ENDED, "key ended", Unauthorized(text), at_once=True)


def not_welcome(error: GradwireError) -> End:
    """The hello cannot be answered with a welcome."""
    code, reason = next((code, reason) for kind, code, reason in _CODES if isinstance(error, kind))
    return End(code, reason or error.code, error)


def in_trouble(error: GradwireError) -> End:
    """The session cannot be used for now. Where that may pass by itself, the client resumes."""
    code = GOING_DOWN if error.retryable else GONE if isinstance(error, SessionGone) else INTERNAL
    return End(code, error.code, error)


def not_taken(error: Unavailable | SessionGone) -> End:
    """The host takes no more. Whoever may resume is told so by the code alone."""
    gone = isinstance(error, SessionGone)
    return End(GONE if gone else GOING_DOWN, error.code, error if gone else None)


def chunk_refused(error: MalformedFrame | SessionGone) -> End:
    """A piece of an upload has no place in the session."""
    return End(GONE if isinstance(error, SessionGone) else MALFORMED, error.code, error)


def defect(error: InternalError, reason: str = "internal") -> End:
    """The server failed."""
    return End(INTERNAL, reason, error)
