// Derived from protocol/gradwire_protocol/errors.py: change that, and run `make derive`.

import { GradwireError } from "./error.ts";

/** An argument has an invalid value. Raised where PyTorch raises RuntimeError. */
export class ArgumentError extends GradwireError {
  static override readonly code: string = "invalid_argument";
  static override readonly status: number = 422;
  static override readonly retryable: boolean = false;
  override name: string = "ArgumentError";
}

/** An argument is missing, unexpected or of the wrong type. */
export class ArgumentTypeError extends GradwireError {
  static override readonly code: string = "invalid_argument_type";
  static override readonly status: number = 422;
  static override readonly retryable: boolean = false;
  override name: string = "ArgumentTypeError";
}

/** An argument has an invalid value. Raised where PyTorch raises ValueError. */
export class ArgumentValueError extends GradwireError {
  static override readonly code: string = "invalid_value";
  static override readonly status: number = 422;
  static override readonly retryable: boolean = false;
  override name: string = "ArgumentValueError";
}

/** The frame was cancelled by its program or by a request. The server undoes the frame and poisons its results with this error. */
export class Cancelled extends GradwireError {
  static override readonly code: string = "cancelled";
  static override readonly status: number = 409;
  static override readonly retryable: boolean = false;
  override name: string = "Cancelled";
}

/** A collective failed: a rank did not come in time, was lost, gave up or did something else than the others. `group`, `rank` and `worker` name it. */
export class CollectiveError extends GradwireError {
  static override readonly code: string = "collective_failed";
  static override readonly status: number = 409;
  static override readonly retryable: boolean = false;
  override name: string = "CollectiveError";
}

/** The operation does not support the dtype, or the dtype cannot require a gradient. */
export class DTypeError extends GradwireError {
  static override readonly code: string = "dtype_mismatch";
  static override readonly status: number = 422;
  static override readonly retryable: boolean = false;
  override name: string = "DTypeError";
}

/** The operands are on different devices, or the server does not have the device. */
export class DeviceError extends GradwireError {
  static override readonly code: string = "device_mismatch";
  static override readonly status: number = 422;
  static override readonly retryable: boolean = false;
  override name: string = "DeviceError";
}

/** The frame's sequence number leaves a gap. `expected` is the next number. */
export class FrameOutOfOrder extends GradwireError {
  static override readonly code: string = "frame_out_of_order";
  static override readonly status: number = 409;
  static override readonly retryable: boolean = true;
  override name: string = "FrameOutOfOrder";
}

/** Invalid use of the autograd graph: no graph, a freed graph, an invalid gradient, or an in-place write to a value that backward needs. */
export class GraphError extends GradwireError {
  static override readonly code: string = "graph_error";
  static override readonly status: number = 422;
  static override readonly retryable: boolean = false;
  override name: string = "GraphError";
}

/** The session has not opened the group of this collective, or has closed it. `group` names it. */
export class GroupNotOpen extends GradwireError {
  static override readonly code: string = "group_not_open";
  static override readonly status: number = 409;
  static override readonly retryable: boolean = false;
  override name: string = "GroupNotOpen";
}

/** A bug in gradwire. The server's log has details under the request id. */
export class InternalError extends GradwireError {
  static override readonly code: string = "internal";
  static override readonly status: number = 500;
  static override readonly retryable: boolean = false;
  override name: string = "InternalError";
}

/** The parameters or the body of the request do not match the schema. `errors` lists the violations. */
export class InvalidRequest extends GradwireError {
  static override readonly code: string = "invalid_request";
  static override readonly status: number = 422;
  static override readonly retryable: boolean = false;
  override name: string = "InvalidRequest";
}

/** The session's data on disk is damaged. `offset` is the position in the file. */
export class JournalDamaged extends GradwireError {
  static override readonly code: string = "journal_damaged";
  static override readonly status: number = 500;
  static override readonly retryable: boolean = false;
  override name: string = "JournalDamaged";
}

/** A computation failed on its values, for example an integer division by zero. */
export class KernelError extends GradwireError {
  static override readonly code: string = "kernel_failed";
  static override readonly status: number = 422;
  static override readonly retryable: boolean = false;
  override name: string = "KernelError";
}

/** The request exceeds a limit of the server. `setting` names the environment variable of the limit. */
export class LimitExceeded extends GradwireError {
  static override readonly code: string = "limit_exceeded";
  static override readonly status: number = 413;
  static override readonly retryable: boolean = false;
  override name: string = "LimitExceeded";
}

/** The message is not a valid frame. */
export class MalformedFrame extends GradwireError {
  static override readonly code: string = "malformed_frame";
  static override readonly status: number = 400;
  static override readonly retryable: boolean = false;
  override name: string = "MalformedFrame";
}

/** The route does not support the request's method. */
export class MethodNotAllowed extends GradwireError {
  static override readonly code: string = "method_not_allowed";
  static override readonly status: number = 405;
  static override readonly retryable: boolean = false;
  override name: string = "MethodNotAllowed";
}

/** The resource has no acceptable representation. `available` lists its media types. */
export class NotAcceptable extends GradwireError {
  static override readonly code: string = "not_acceptable";
  static override readonly status: number = 406;
  static override readonly retryable: boolean = false;
  override name: string = "NotAcceptable";
}

/** The route, session or name does not exist. Other tenants' sessions also return 404. */
export class NotFound extends GradwireError {
  static override readonly code: string = "not_found";
  static override readonly status: number = 404;
  static override readonly retryable: boolean = false;
  override name: string = "NotFound";
}

/** The host or the GPU has not enough free memory for the operation. */
export class OutOfMemory extends GradwireError {
  static override readonly code: string = "out_of_memory";
  static override readonly status: number = 507;
  static override readonly retryable: boolean = true;
  override name: string = "OutOfMemory";
}

/** The server already applied this frame and no longer keeps its reply. */
export class ReplyForgotten extends GradwireError {
  static override readonly code: string = "reply_forgotten";
  static override readonly status: number = 409;
  static override readonly retryable: boolean = false;
  override name: string = "ReplyForgotten";
}

/** The shapes of the operands do not fit the operation. */
export class ShapeError extends GradwireError {
  static override readonly code: string = "shape_mismatch";
  static override readonly status: number = 422;
  static override readonly retryable: boolean = false;
  override name: string = "ShapeError";
}

/** Another program resumed this client. The server applies no more frames of this program. */
export class Superseded extends GradwireError {
  static override readonly code: string = "superseded";
  static override readonly status: number = 409;
  static override readonly retryable: boolean = false;
  override name: string = "Superseded";
}

/** The client exceeds a quota or a rate limit. */
export class TooManyRequests extends GradwireError {
  static override readonly code: string = "too_many_requests";
  static override readonly status: number = 429;
  static override readonly retryable: boolean = true;
  override name: string = "TooManyRequests";
}

/** The server does not hold the structure with this hash. Send the whole structure. */
export class UnknownStructure extends GradwireError {
  static override readonly code: string = "unknown_structure";
  static override readonly status: number = 409;
  static override readonly retryable: boolean = true;
  override name: string = "UnknownStructure";
}

/** No tensor has this id or name: it was never assigned, or the tensor was released. */
export class UnknownTensor extends GradwireError {
  static override readonly code: string = "unknown_tensor";
  static override readonly status: number = 404;
  static override readonly retryable: boolean = false;
  override name: string = "UnknownTensor";
}

/** The route does not accept the media type of the body. `accepted` lists those it does. */
export class UnsupportedMediaType extends GradwireError {
  static override readonly code: string = "unsupported_media_type";
  static override readonly status: number = 415;
  static override readonly retryable: boolean = false;
  override name: string = "UnsupportedMediaType";
}

/** Client and server have different protocol versions. */
export class VersionMismatch extends GradwireError {
  static override readonly code: string = "version_mismatch";
  static override readonly status: number = 426;
  static override readonly retryable: boolean = false;
  override name: string = "VersionMismatch";
}

/** The worker process died repeatedly while it applied this frame. The frame is not applied. */
export class WorkerDied extends GradwireError {
  static override readonly code: string = "worker_died";
  static override readonly status: number = 500;
  static override readonly retryable: boolean = false;
  override name: string = "WorkerDied";
}

/** The recomputation of a checkpointed function differs from its forward run. */
export class CheckpointError extends GraphError {
  static override readonly code: string = "checkpoint_error";
  static override readonly status: number = 422;
  static override readonly retryable: boolean = false;
  override name: string = "CheckpointError";
}

/** The client could not reconnect to the server in time. */
export class ConnectionLost extends GradwireError {
  static override readonly code: string = "connection_lost";
  static override readonly status: number = 503;
  static override readonly retryable: boolean = true;
  override name: string = "ConnectionLost";
}

/** The API key or the web page is not allowed to make this request. `scope` names the required scope; `origin` names the refused origin. */
export class Forbidden extends GradwireError {
  static override readonly code: string = "forbidden";
  static override readonly status: number = 403;
  static override readonly retryable: boolean = false;
  override name: string = "Forbidden";
}

/** An index or a dimension is out of range, or the index is invalid. */
export class IndexOutOfRange extends GradwireError {
  static override readonly code: string = "index_out_of_range";
  static override readonly status: number = 422;
  static override readonly retryable: boolean = false;
  override name: string = "IndexOutOfRange";
}

/** The computation is undefined for this matrix: it is singular or not positive definite. */
export class LinAlgError extends KernelError {
  static override readonly code: string = "linalg_failed";
  static override readonly status: number = 422;
  static override readonly retryable: boolean = false;
  override name: string = "LinAlgError";
}

/** An integer exceeds 64 bits, or a number exceeds the range of floats. */
export class NumberTooLarge extends GradwireError {
  static override readonly code: string = "number_too_large";
  static override readonly status: number = 422;
  static override readonly retryable: boolean = false;
  override name: string = "NumberTooLarge";
}

/** The session expired or was deleted. */
export class SessionGone extends NotFound {
  static override readonly code: string = "session_gone";
  static override readonly status: number = 404;
  static override readonly retryable: boolean = false;
  override name: string = "SessionGone";
}

/** An op or a frame exceeds its time limit. */
export class TimeExceeded extends LimitExceeded {
  static override readonly code: string = "time_exceeded";
  static override readonly status: number = 413;
  static override readonly retryable: boolean = false;
  override name: string = "TimeExceeded";
}

/** The API key is missing or invalid. */
export class Unauthorized extends GradwireError {
  static override readonly code: string = "unauthorized";
  static override readonly status: number = 401;
  static override readonly retryable: boolean = false;
  override name: string = "Unauthorized";
}

/** The server is starting, draining or overloaded. */
export class Unavailable extends GradwireError {
  static override readonly code: string = "unavailable";
  static override readonly status: number = 503;
  static override readonly retryable: boolean = true;
  override name: string = "Unavailable";
}

/** The op table has no op of this name. */
export class UnknownOp extends GradwireError {
  static override readonly code: string = "unknown_op";
  static override readonly status: number = 422;
  static override readonly retryable: boolean = false;
  override name: string = "UnknownOp";
}

/** gradwire does not support this PyTorch feature, or has no kernel for this dtype or device. */
export class Unsupported extends GradwireError {
  static override readonly code: string = "unsupported";
  static override readonly status: number = 422;
  static override readonly retryable: boolean = false;
  override name: string = "Unsupported";
}

/** The class of each code. */
export const BY_CODE: ReadonlyMap<string, typeof GradwireError> = new Map([
  ["cancelled", Cancelled],
  ["checkpoint_error", CheckpointError],
  ["collective_failed", CollectiveError],
  ["connection_lost", ConnectionLost],
  ["device_mismatch", DeviceError],
  ["dtype_mismatch", DTypeError],
  ["forbidden", Forbidden],
  ["frame_out_of_order", FrameOutOfOrder],
  ["graph_error", GraphError],
  ["group_not_open", GroupNotOpen],
  ["index_out_of_range", IndexOutOfRange],
  ["internal", InternalError],
  ["invalid_argument", ArgumentError],
  ["invalid_argument_type", ArgumentTypeError],
  ["invalid_request", InvalidRequest],
  ["invalid_value", ArgumentValueError],
  ["journal_damaged", JournalDamaged],
  ["kernel_failed", KernelError],
  ["limit_exceeded", LimitExceeded],
  ["linalg_failed", LinAlgError],
  ["malformed_frame", MalformedFrame],
  ["method_not_allowed", MethodNotAllowed],
  ["not_acceptable", NotAcceptable],
  ["not_found", NotFound],
  ["number_too_large", NumberTooLarge],
  ["out_of_memory", OutOfMemory],
  ["reply_forgotten", ReplyForgotten],
  ["session_gone", SessionGone],
  ["shape_mismatch", ShapeError],
  ["superseded", Superseded],
  ["time_exceeded", TimeExceeded],
  ["too_many_requests", TooManyRequests],
  ["unauthorized", Unauthorized],
  ["unavailable", Unavailable],
  ["unknown_op", UnknownOp],
  ["unknown_structure", UnknownStructure],
  ["unknown_tensor", UnknownTensor],
  ["unsupported", Unsupported],
  ["unsupported_media_type", UnsupportedMediaType],
  ["version_mismatch", VersionMismatch],
  ["worker_died", WorkerDied],
] as [string, typeof GradwireError][]);
