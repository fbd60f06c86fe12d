"""The error vocabulary: every error that crosses the wire has a stable ``code`` and one class here.

A class derives from the built-in exception that PyTorch raises in the same situation, so that a program's
``except RuntimeError`` keeps working. The code, not the class name, is what travels.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

LONGEST: Final = 4096
"""Of a message, in characters: it may name what a client sent."""


class GradwireError(Exception):
    """The root of all of gradwire's own errors.

    Class attributes:
        code: stable identifier, safe to branch on in any language.
        status: the HTTP status of a response that consists of this error.
        retryable: whether the same request may succeed later, unchanged.
    """

    code: ClassVar[str] = "internal"
    status: ClassVar[int] = 500
    retryable: ClassVar[bool] = False

    def __init__(self, message: str, **details: Any) -> None:
        text = str(message)
        super().__init__(text if len(text) <= LONGEST else f"{text[:LONGEST]}...")
        self.details: dict[str, Any] = details
        self.half_done: list[Any] = []
        """Inside the engine: tensors whose memory holds a part of what should have been written."""

    @property
    def message(self) -> str:
        return str(self.args[0])


class ShapeError(GradwireError, RuntimeError):
    """Shapes that do not fit the operation."""

    code, status = "shape_mismatch", 422


class DTypeError(GradwireError, RuntimeError):
    """An element type that the operation does not take, or that cannot require a gradient."""

    code, status = "dtype_mismatch", 422


class DeviceError(GradwireError, RuntimeError):
    """Operands on different devices, or a device that this server lacks."""

    code, status = "device_mismatch", 422


class IndexOutOfRange(GradwireError, IndexError):
    """An index or a dimension outside its range, or an unusable index."""

    code, status = "index_out_of_range", 422


class ArgumentValueError(GradwireError, ValueError):
    """An argument of the right type with a value that cannot be used, where PyTorch raises ValueError."""

    code, status = "invalid_value", 422


class ArgumentError(GradwireError, RuntimeError):
    """An argument of the right type with a value that cannot be used, where PyTorch raises RuntimeError."""

    code, status = "invalid_argument", 422


class ArgumentTypeError(GradwireError, TypeError):
    """An argument that is missing, superfluous or of the wrong type."""

    code, status = "invalid_argument_type", 422


class NumberTooLarge(GradwireError, OverflowError):
    """An integer beyond 64 bits, or a number beyond the range of floats."""

    code, status = "number_too_large", 422


class UnknownOp(GradwireError, NotImplementedError):
    """An op name that is not in the table."""

    code, status = "unknown_op", 422


class Unsupported(GradwireError, NotImplementedError):
    """Something PyTorch has and gradwire lacks, or that the dtype or device has no kernel for."""

    code, status = "unsupported", 422


class GraphError(GradwireError, RuntimeError):
    """Misuse of the autograd graph: no graph, a freed graph, a wrong gradient, an in-place write that
    destroys what backward needs."""

    code, status = "graph_error", 422


class CheckpointError(GraphError):
    """A checkpointed computation was not the same when backward ran it again."""

    code, status = "checkpoint_error", 422


class KernelError(GradwireError, RuntimeError):
    """A computation that failed on its values: integer division by zero, a singular matrix, ..."""

    code, status = "kernel_failed", 422


class LinAlgError(KernelError):
    """A matrix that the computation is not defined for: singular, or not positive definite."""

    code, status = "linalg_failed", 422


class UnknownTensor(GradwireError, RuntimeError):
    """A tensor id that was never made, or was released."""

    code, status = "unknown_tensor", 404


class LimitExceeded(GradwireError, RuntimeError):
    """A limit of the server would be passed. ``setting`` names the environment variable that sets it."""

    code, status = "limit_exceeded", 413


class TimeExceeded(LimitExceeded):
    """The work would take, or has taken, more time than the server gives to an op or a frame."""

    code = "time_exceeded"


class Cancelled(GradwireError, RuntimeError):
    """The frame was cancelled: by its program, or by a request. Nothing of it has happened, and its results are
    poisoned with this."""

    code, status = "cancelled", 409


class OutOfMemory(GradwireError, RuntimeError):
    """The host or the GPU has no memory left for the operation."""

    code, status, retryable = "out_of_memory", 507, True


class MalformedFrame(GradwireError, ValueError):
    """Bytes that are not a frame, or a frame that breaks the protocol."""

    code, status = "malformed_frame", 400


class FrameOutOfOrder(GradwireError, RuntimeError):
    """A frame whose number leaves a gap. ``expected`` is the number the server waits for."""

    code, status, retryable = "frame_out_of_order", 409, True


class ReplyForgotten(GradwireError, RuntimeError):
    """A frame that was applied long ago arrives again, and its reply is no longer kept."""

    code, status = "reply_forgotten", 409


class UnknownStructure(GradwireError, RuntimeError):
    """A structure hash that the server does not hold (any more): send the structure whole."""

    code, status, retryable = "unknown_structure", 409, True


class Superseded(GradwireError, RuntimeError):
    """Another program resumed this client's place in the session: nothing more of this one is applied."""

    code, status = "superseded", 409


class VersionMismatch(GradwireError, RuntimeError):
    """Client and server speak different versions of the protocol."""

    code, status = "version_mismatch", 426


class Unauthorized(GradwireError, PermissionError):
    """No API key, or a wrong one."""

    code, status = "unauthorized", 401


class Forbidden(GradwireError, PermissionError):
    """The API key is known, but does not reach so far. ``scope`` names the scope that the request needs; ``origin``
    stands for a web page that may not ask."""

    code, status = "forbidden", 403


class NotFound(GradwireError, LookupError):
    """No such route, session or name. A session of another key is not found either."""

    code, status = "not_found", 404


class SessionGone(NotFound):
    """The session expired or was deleted."""

    code, status = "session_gone", 404


class InvalidRequest(GradwireError, ValueError):
    """A request whose parameters or body do not have the declared form. ``errors`` lists what does not fit."""

    code, status = "invalid_request", 422


class MethodNotAllowed(GradwireError, RuntimeError):
    """A route that does not know the request's method."""

    code, status = "method_not_allowed", 405


class NotAcceptable(GradwireError, RuntimeError):
    """A representation that the resource does not have. ``available`` lists those it has."""

    code, status = "not_acceptable", 406


class UnsupportedMediaType(GradwireError, RuntimeError):
    """A body in a form that the route does not read. ``accepted`` lists those it does."""

    code, status = "unsupported_media_type", 415


class TooManyRequests(GradwireError, RuntimeError):
    """The client asked for more than its share."""

    code, status, retryable = "too_many_requests", 429, True


class Unavailable(GradwireError, ConnectionError):
    """The server is starting, draining or overloaded."""

    code, status, retryable = "unavailable", 503, True


class ConnectionLost(GradwireError, ConnectionError):
    """The server could not be reached again within the client's patience."""

    code, status, retryable = "connection_lost", 503, True


class WorkerDied(GradwireError, RuntimeError):
    """The process that ran the session died, more than once, while it applied this frame; it is not applied."""

    code, status = "worker_died", 500


class JournalDamaged(GradwireError, RuntimeError):
    """What the server kept of a session on disk is damaged. ``offset`` says where in which file."""

    code, status = "journal_damaged", 500


class InternalError(GradwireError, RuntimeError):
    """A defect of gradwire itself. The request id finds it in the server's log."""

    code, status = "internal", 500


def _walk(cls: type[GradwireError]) -> dict[str, type[GradwireError]]:
    found = {cls.code: cls}
    for child in cls.__subclasses__():
        found |= _walk(child)
    return found


BY_CODE: dict[str, type[GradwireError]] = _walk(GradwireError) | {InternalError.code: InternalError}


def from_code(code: str, message: str, **details: Any) -> GradwireError:
    """Rebuild an error from what travelled. An unknown code becomes an ``InternalError``."""
    error = BY_CODE.get(code, InternalError)(message, **details)
    error.details.setdefault("code", code)
    return error
