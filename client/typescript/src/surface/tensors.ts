/** Tensors made of the program's values. */

import { call } from "../dispatch/call.ts";
import { lookup } from "../ops/op.ts";
import { currentSession } from "../session/current.ts";
import type { Session } from "../session/session.ts";
import type { DTypeName } from "../tensor/dtypes.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { dataOf, rawOf } from "../tensor/values.ts";
import type { Shape, TensorLike } from "../tensor/values.ts";

export interface TensorOptions {
  /** Default: that of a typed array; the session's default dtype for numbers, int64 for bigints, bool for booleans. */
  dtype?: DTypeName | undefined;
  /** The shape of values that are given as a flat list or a typed array. */
  shape?: Shape | undefined;
  requiresGrad?: boolean | undefined;
  device?: string | undefined;
  session?: Session | undefined;
  /** The values are the little-endian bytes of `dtype` and `shape`, for dtypes that have no typed array. */
  raw?: boolean | undefined;
}

/**
 * A tensor of values: a number, nested lists, or a typed array, which is copied.
 *
 * ```ts
 * const x = gw.tensor([[1, 2], [3, 4]], { requiresGrad: true });
 * ```
 *
 * @throws ShapeError for ragged lists or a shape that does not fit.
 */
export function tensor(values: TensorLike, options: TensorOptions = {}): Tensor {
  const session = options.session ?? currentSession();
  const { dtype, shape, bytes } = options.raw
    ? rawOf(values, options.dtype, options.shape)
    : dataOf(values, options.dtype, options.shape, session.defaultDtype);
  const made = call(lookup("upload"), [bytes, dtype, shape, options.device ?? session.device], 1, session)[0]!;
  if (options.requiresGrad) made.requiresGrad = true;
  return made;
}
