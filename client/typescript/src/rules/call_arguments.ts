/** The arguments of one call, read by the names of the op table. */

import { ShapeError } from "../errors.ts";
import type { Op } from "../ops/op.ts";
import { Float, isTensor, type TensorLike, type Value } from "../ops/values.ts";
import { canonicalDim } from "./extents.ts";
import { tensorsOf, type Shape } from "./operands.ts";

/** The shapes of an op's results; `undefined` where one is not known. */
export type Shapes = readonly (Shape | undefined)[];
/** A rule for the shapes of an op's results. Throws what the server would raise. */
export type ShapeRule = (call: CallArguments) => Shapes;

export class CallArguments {
  readonly op: Op;
  readonly values: readonly Value[];

  constructor(op: Op, values: readonly Value[]) {
    this.op = op;
    this.values = values;
  }

  get name(): string {
    return this.op.name;
  }

  /** The argument of a parameter. */
  get(name: string): Value | undefined {
    const at = this.op.positions.get(name);
    return at === undefined ? undefined : this.values[at];
  }

  /** A number. */
  number(name: string): number {
    const value = this.get(name);
    return value instanceof Float ? value.value : Number(value);
  }

  /** A number, or `null`. */
  optional(name: string): number | null {
    return this.get(name) === null ? null : this.number(name);
  }

  flag(name: string): boolean {
    return this.get(name) === true;
  }

  /** Ints as a list. */
  list(name: string): Shape {
    const value = this.get(name);
    return typeof value === "number" ? [value] : (value as Shape);
  }

  /** The tensor at a position. */
  tensor(at: number): TensorLike | undefined {
    const value = this.values[at];
    return isTensor(value) ? value : undefined;
  }

  /** The shape of the tensor at a position. */
  shape(at: number): Shape | undefined {
    return this.tensor(at)?.shape;
  }

  /** The shapes of all tensors, those in lists included; `undefined` if one is not known. */
  shapes(): readonly Shape[] | undefined {
    const found: Shape[] = [];
    for (const tensor of tensorsOf(this.values)) {
      if (tensor.shape === undefined) return undefined;
      found.push(tensor.shape);
    }
    return found;
  }

  /** The dimension that a parameter names. */
  dim(shape: Shape, name: string = "dim"): number {
    return canonicalDim(this.name, this.number(name), shape.length);
  }

  /** Throws a `ShapeError`. */
  mismatch(text: string): never {
    throw new ShapeError(`${this.name}: ${text}`, { op: this.name });
  }
}

/** A rule for one result, from the shape of the first tensor. */
export function ofFirst(rule: (call: CallArguments, shape: Shape) => Shape | undefined): ShapeRule {
  return (call) => {
    const shape = call.shape(0);
    return [shape === undefined ? undefined : rule(call, shape)];
  };
}
