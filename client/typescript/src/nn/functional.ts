/** Functions of neural networks: those of the op table, and compositions. */

import { ArgumentValueError } from "../errors.ts";
import { one, several } from "../surface/calling.ts";
import { F as DERIVED, type NNFunctions } from "../surface/functions.ts";
import type { Tensor } from "../tensor/tensor.ts";

function dropped(op: string, x: Tensor, p: number, training: boolean): Tensor {
  if (!(p >= 0 && p <= 1)) throw new ArgumentValueError(`p is a probability, from 0 to 1, not ${p}`);
  if (!training) return x;
  const [result, mask] = several(op, x, p, true) as [Tensor, Tensor];
  mask.dispose();
  return result;
}

/** Zero each element with probability `p` and scale the others by `1 / (1 - p)`; without training, nothing. */
export function dropout(x: Tensor, p: number = 0.5, training: boolean = true): Tensor {
  return dropped("dropout", x, p, training);
}

/** Zero whole channels (the second dimension) with probability `p` and scale the others; without training, nothing. */
export function dropout2d(x: Tensor, p: number = 0.5, training: boolean = true): Tensor {
  return dropped("feature_dropout", x, p, training);
}

/** What {@link embedding} takes by name. */
export interface EmbeddingCallOptions {
  paddingIdx?: number | null;
  scaleGradByFreq?: boolean;
}

/** The rows of a table that integers name: `(...)` and `(rows, columns)` give `(..., columns)`. */
export function embedding(indices: Tensor, weight: Tensor, options: EmbeddingCallOptions = {}): Tensor {
  const row = options.paddingIdx ?? -1;
  const rows = weight.shape?.[0];
  const counted = options.paddingIdx != null && row < 0 && rows !== undefined ? row + rows : row;
  return one("embedding", weight, indices, counted, options.scaleGradByFreq ?? false);
}

/** The first half of a dimension times the sigmoid of the second. */
export function glu(x: Tensor, dim: number = -1): Tensor {
  return one("glu", x, dim);
}

/** The softmax of the negated values. */
export function softmin(x: Tensor, dim: number): Tensor {
  return one("softmax", one("neg", x), dim);
}

/** The hyperbolic tangent. */
export function tanh(x: Tensor): Tensor {
  return one("tanh", x);
}

/** The logistic function. */
export function sigmoid(x: Tensor): Tensor {
  return one("sigmoid", x);
}

/** What this file adds to the functions of the op table. */
export interface ComposedFunctions {
  dropout: typeof dropout;
  dropout2d: typeof dropout2d;
  embedding: typeof embedding;
  glu: typeof glu;
  softmin: typeof softmin;
  tanh: typeof tanh;
  sigmoid: typeof sigmoid;
}

/** The namespace `nn.functional`. */
export const functional: NNFunctions & ComposedFunctions = Object.assign(
  { dropout, dropout2d, embedding, glu, softmin, tanh, sigmoid },
  DERIVED,
);
