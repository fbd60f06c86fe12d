"""The error vocabulary: every error on the wire has a stable ``code`` and one class here.

A class derives from the built-in exception that PyTorch raises in the same situation, so that a program's
``except RuntimeError`` keeps working. The wire carries the code, not the class name.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

MAX_MESSAGE_CHARS: Final = 4096
"""Messages are truncated because they may quote a client's input."""


class GradwireError(Exception):
    """The base class of gradwire's errors.

    Class attributes:
        code: a stable identifier to branch on in any language.
        status: the HTTP status of a response with this error.
        retryable: whether the same request may succeed later.
    """

    code: ClassVar[str] = "internal"
    status: ClassVar[int] = 500
    retryable: ClassVar[bool] = False

    def __init__(self, message: str, **details: Any) -> None:
        text = str(message)
        super().__init__(text if len(text) <= MAX_MESSAGE_CHARS else f"{text[:MAX_MESSAGE_CHARS]}...")
        self.details: dict[str, Any] = details
        self.half_done: list[Any] = []
        """Inside the engine: tensors whose memory was partially overwritten."""

    @property
    def message(self) -> str:
        return str(self.args[0])


class ShapeError(GradwireError, RuntimeError):
    """The shapes of the operands do not fit the operation."""

    code, status = "shape_mismatch", 422


class DTypeError(GradwireError, RuntimeError):
    """The operation does not support the dtype, or the dtype cannot require a gradient."""

    code, status = "dtype_mismatch", 422


class DeviceError(GradwireError, RuntimeError):
    """The operands are on different devices, or the server does not have the device."""

    code, status = "device_mismatch", 422


class IndexOutOfRange(GradwireError, IndexError):
    """An index or a dimension is out of range, or the index is invalid."""

    code, status = "index_out_of_range", 422


class ArgumentValueError(GradwireError, ValueError):
    """An argument has an invalid value. Raised where PyTorch raises ValueError."""

    code, status = "invalid_value", 422


class ArgumentError(GradwireError, RuntimeError):
    """An argument has an invalid value. Raised where PyTorch raises RuntimeError."""

    code, status = "invalid_argument", 422


class ArgumentTypeError(GradwireError, TypeError):
    """An argument is missing, unexpected or of the wrong type."""

    code, status = "invalid_argument_type", 422


class NumberTooLarge(GradwireError, OverflowError):
    """An integer exceeds 64 bits, or a number exceeds the range of floats."""

    code, status = "number_too_large", 422


class UnknownOp(GradwireError, NotImplementedError):
    """The op table has no op of this name."""

    code, status = "unknown_op", 422


class Unsupported(GradwireError, NotImplementedError):
    """gradwire does not support this PyTorch feature, or has no kernel for this dtype or device."""

    code, status = "unsupported", 422


class GraphError(GradwireError, RuntimeError):
    """Invalid use of the autograd graph: no graph, a freed graph, an invalid gradient, or an in-place write to a value
    that backward needs."""

    code, status = "graph_error", 422


class CheckpointError(GraphError):
    """The recomputation of a checkpointed function differs from its forward run."""

    code, status = "checkpoint_error", 422


class KernelError(GradwireError, RuntimeError):
    """A computation failed on its values, for example an integer division by zero."""

    code, status = "kernel_failed", 422


class LinAlgError(KernelError):
    """The computation is undefined for this matrix: it is singular or not positive definite."""

    code, status = "linalg_failed", 422


class UnknownTensor(GradwireError, RuntimeError):
    """No tensor has this id or name: it was never assigned, or the tensor was released."""

    code, status = "unknown_tensor", 404


class LimitExceeded(GradwireError, RuntimeError):
    """The request exceeds a limit of the server. ``setting`` names the environment variable of the limit."""

    code, status = "limit_exceeded", 413


class TimeExceeded(LimitExceeded):
    """An op or a frame exceeds its time limit."""

    code = "time_exceeded"


class Cancelled(GradwireError, RuntimeError):
    """The frame was cancelled by its program or by a request. The server undoes the frame and poisons its results with
    this error."""

    code, status = "cancelled", 409


class GroupNotOpen(GradwireError, RuntimeError):
    """The session has not opened the group of this collective, or has closed it. ``group`` names it."""

    code, status = "group_not_open", 409


class CollectiveError(GradwireError, RuntimeError):
    """A collective failed: a rank did not come in time, was lost, gave up or did something else than the others.
    ``group``, ``rank`` and ``worker`` name it."""

    code, status = "collective_failed", 409


class OutOfMemory(GradwireError, RuntimeError):
    """The host or the GPU has not enough free memory for the operation."""

    code, status, retryable = "out_of_memory", 507, True


class MalformedFrame(GradwireError, ValueError):
    """The message is not a valid frame."""

    code, status = "malformed_frame", 400


class FrameOutOfOrder(GradwireError, RuntimeError):
    """The frame's sequence number leaves a gap. ``expected`` is the next number."""

    code, status, retryable = "frame_out_of_order", 409, True


class ReplyForgotten(GradwireError, RuntimeError):
    """The server already applied this frame and no longer keeps its reply."""

    code, status = "reply_forgotten", 409


class UnknownStructure(GradwireError, RuntimeError):
    """The server does not hold the structure with this hash. Send the whole structure."""

    code, status, retryable = "unknown_structure", 409, True


class Superseded(GradwireError, RuntimeError):
    """Another program resumed this client. The server applies no more frames of this program."""

    code, status = "superseded", 409


class VersionMismatch(GradwireError, RuntimeError):
    """Client and server have different protocol versions."""

    code, status = "version_mismatch", 426


class Unauthorized(GradwireError, PermissionError):
    """The API key is missing or invalid."""

    code, status = "unauthorized", 401


class Forbidden(GradwireError, PermissionError):
    """The API key or the web page is not allowed to make this request. ``scope`` names the required scope; ``origin``
    names the refused origin."""

    code, status = "forbidden", 403


class NotFound(GradwireError, LookupError):
    """The route, session or name does not exist. Other tenants' sessions also return 404."""

    code, status = "not_found", 404


class SessionGone(NotFound):
    """The session expired or was deleted."""

    code, status = "session_gone", 404


class InvalidRequest(GradwireError, ValueError):
    """The parameters or the body of the request do not match the schema. ``errors`` lists the violations."""

    code, status = "invalid_request", 422


class MethodNotAllowed(GradwireError, RuntimeError):
    """The route does not support the request's method."""

    code, status = "method_not_allowed", 405


class NotAcceptable(GradwireError, RuntimeError):
    """The resource has no acceptable representation. ``available`` lists its media types."""

    code, status = "not_acceptable", 406


class UnsupportedMediaType(GradwireError, RuntimeError):
    """The route does not accept the media type of the body. ``accepted`` lists those it does."""

    code, status = "unsupported_media_type", 415


class TooManyRequests(GradwireError, RuntimeError):
    """The client exceeds a quota or a rate limit."""

    code, status, retryable = "too_many_requests", 429, True


class Unavailable(GradwireError, ConnectionError):
    """The server is starting, draining or overloaded."""

    code, status, retryable = "unavailable", 503, True


class ConnectionLost(GradwireError, ConnectionError):
    """The client could not reconnect to the server in time."""

    code, status, retryable = "connection_lost", 503, True


class WorkerDied(GradwireError, RuntimeError):
    """The worker process died repeatedly while it applied this frame. The frame is not applied."""

    code, status = "worker_died", 500


class JournalDamaged(GradwireError, RuntimeError):
    """The session's data on disk is damaged. ``offset`` is the position in the file."""

    code, status = "journal_damaged", 500


class InternalError(GradwireError, RuntimeError):
    """A bug in gradwire. The server's log has details under the request id."""

    code, status = "internal", 500


def _walk(cls: type[GradwireError]) -> dict[str, type[GradwireError]]:
    found = {cls.code: cls}
    for child in cls.__subclasses__():
        found |= _walk(child)
    return found


BY_CODE: dict[str, type[GradwireError]] = _walk(GradwireError) | {InternalError.code: InternalError}


def from_code(code: str, message: str, **details: Any) -> GradwireError:
    """Rebuild an error from its wire form. An unknown code becomes an ``InternalError``."""
    error = BY_CODE.get(code, InternalError)(message, **details)
    error.details.setdefault("code", code)
    return error
