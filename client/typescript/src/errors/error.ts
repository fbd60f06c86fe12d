/** What an error says beside its message. */
export interface ErrorDetails {
  /** The op that failed or was called. */
  op?: string;
  /** The parameter whose argument is invalid. */
  parameter?: string;
  [name: string]: unknown;
}

/** The base class of gradwire's errors. Branch on `code`, which is stable, or on the class. */
export class GradwireError extends Error {
  static readonly code: string = "internal";
  static readonly status: number = 500;
  static readonly retryable: boolean = false;

  override name: string = "GradwireError";
  /** A stable identifier. */
  readonly code: string;
  /** What else is known: the op, limits, settings. */
  readonly details: ErrorDetails;

  constructor(message: string, details: ErrorDetails = {}) {
    super(message);
    this.details = details;
    const given = details["code"];
    this.code = typeof given === "string" ? given : (this.constructor as typeof GradwireError).code;
  }

  /** The HTTP status of a response with this error. */
  get status(): number {
    return (this.constructor as typeof GradwireError).status;
  }

  /** Whether the same request may succeed later. */
  get retryable(): boolean {
    return (this.constructor as typeof GradwireError).retryable;
  }
}
