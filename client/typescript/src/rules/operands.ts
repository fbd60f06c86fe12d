/** The arguments of a call as the rules look at them. */

import type { Op } from "../ops/op.ts";
import { isTensor, kindOf, type TensorLike, type Value } from "../ops/values.ts";

export type Shape = readonly number[];

/** The argument of a parameter, by the parameter's name in the op table. */
export function named(op: Op, values: readonly Value[], name: string): Value | undefined {
  const at = op.positions.get(name);
  return at === undefined ? undefined : values[at];
}

/** The tensors of a call, those in lists included. */
export function tensorsOf(values: readonly Value[]): TensorLike[] {
  const found: TensorLike[] = [];
  for (const value of values) {
    if (isTensor(value)) found.push(value);
    else if (Array.isArray(value)) found.push(...(value as Value[]).filter(isTensor));
  }
  return found;
}

/** The operands of a call: its tensors, and the numbers that stand for tensors. */
export function operandsOf(op: Op, values: readonly Value[]): Value[] {
  const found: Value[] = [];
  for (let i = 0; i < values.length; i += 1) {
    const value = values[i]!;
    if (isTensor(value)) found.push(value);
    else if (Array.isArray(value)) found.push(...(value as Value[]).filter(isTensor));
    else if (op.params[i]!.kind === "operand" && kindOf(value) !== undefined) found.push(value);
  }
  return found;
}

/** The tensor at a position. */
export function tensorAt(values: readonly Value[], at: number): TensorLike | undefined {
  const value = values[at];
  return isTensor(value) ? value : undefined;
}
