/** What is known of a call's results without asking the server. */

import { ArgumentError, ShapeError } from "../errors.ts";
import type { DTypeName } from "../ops/dtypes.ts";
import type { Op } from "../ops/op.ts";
import { isTensor, type Value } from "../ops/values.ts";
import { checkWritten, dtypeOf } from "./dtypes.ts";
import { listed } from "./extents.ts";
import { named, type Shape } from "./operands.ts";
import { shapesOf } from "./shapes.ts";

/** What is known of a result; `undefined` is not known without a round trip. */
export interface Inferred {
  readonly dtype: DTypeName | undefined;
  readonly shape: Shape | undefined;
}

/**
 * The dtypes and shapes of an op's results. Throws `ShapeError` and its like for operands that do not fit.
 *
 * `count` is the number of results, where the op leaves it open.
 */
export function infer(op: Op, values: readonly Value[], count: number = op.results ?? 0): Inferred[] {
  if (op.inplace && (op.results === 0 || count === 0)) checkInplace(op, values);
  if (count === 0) return [];
  const shapes = shapesOf(op, values);
  const found: Inferred[] = [];
  for (let i = 0; i < count; i += 1) {
    found.push({ dtype: dtypeOf(op, values, i), shape: shapes[i] });
  }
  return found;
}

/** The number of results of a call. Throws `ShapeError` if it depends on a shape that is not known. */
export function countResults(op: Op, values: readonly Value[]): number {
  if (op.results !== undefined) return op.results;
  switch (op.name) {
    case "unique":
    case "unique_consecutive":
      return 1 + ["return_inverse", "return_counts"].filter((name) => named(op, values, name) === true).length;
    case "histogramdd":
      return 1 + (named(op, values, "bins") as readonly unknown[]).length;
    case "layer_norm_backward":
    case "rms_norm_backward":
    case "rnn_layer_backward":
    case "gru_layer_backward":
    case "lstm_layer_backward":
      return GRADIENTS[op.name]! + given(op, values, "weight", "bias", "w_hr", "inputs");
    case "grad":
      return (named(op, values, "inputs") as readonly unknown[]).length;
    case "advance":
      return Number(named(op, values, "results"));
    case "split":
    case "unsafe_split":
    case "chunk":
    case "unbind":
      return shapesOf(op, values).length;
    default:
      throw new ArgumentError(`${op.name}: the number of results must be given`, { op: op.name });
  }
}

/** The gradients that an op returns in any case; others come with operands and flags. */
const GRADIENTS: Readonly<Record<string, number>> = {
  layer_norm_backward: 1,
  rms_norm_backward: 1,
  rnn_layer_backward: 4,
  gru_layer_backward: 5,
  lstm_layer_backward: 5,
};

/** How many of these parameters are tensors or true. */
function given(op: Op, values: readonly Value[], ...names: string[]): number {
  return names.filter((name) => {
    if (!op.params.some((param) => param.name === name)) return false;
    const value = named(op, values, name);
    return isTensor(value) || value === true;
  }).length;
}

/** Refuses results that do not fit the tensor that is written to. */
function checkInplace(op: Op, values: readonly Value[]): void {
  const target = values[0];
  if (!isTensor(target) || op.base === undefined) return;
  const shape = shapesOf(op, values)[0];
  const dtype = named(op, values, "dtype") === undefined ? dtypeOf(op, values, 0) : undefined;
  if (shape !== undefined && target.shape !== undefined && listed(shape) !== listed(target.shape)) {
    const text = `the result has shape ${listed(shape)}, but the tensor has ${listed(target.shape)}`;
    throw new ShapeError(`${op.name}: ${text}; an in-place op cannot change the shape`, { op: op.name });
  }
  if (dtype !== undefined && target.dtype !== undefined) checkWritten(op, target.dtype, dtype);
}
