/** The error vocabulary: every error has a stable `code` and one class here. */

import { BY_CODE, InternalError } from "./errors/codes.ts";
import type { ErrorDetails, GradwireError } from "./errors/error.ts";

export { GradwireError, type ErrorDetails } from "./errors/error.ts";
export * from "./errors/codes.ts";

/** Rebuilds an error from its wire form. An unknown code becomes an `InternalError` that keeps it. */
export function errorOf(code: string, message: string, details: ErrorDetails = {}): GradwireError {
  const made = BY_CODE.get(code) ?? InternalError;
  return new made(message, { ...details, code });
}
