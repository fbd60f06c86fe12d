/** The values that arguments of ops have: numbers, kinds of numbers, tensors as the rules see them. */

import type { DTypeName } from "./dtypes.ts";

/** A complex number: `complex(1, -2)`. */
export class Complex {
  readonly re: number;
  readonly im: number;

  constructor(re: number, im: number = 0) {
    this.re = re;
    this.im = im;
  }

  toString(): string {
    return `${this.re}${this.im < 0 || Object.is(this.im, -0) ? "-" : "+"}${Math.abs(this.im)}i`;
  }
}

/** A number that is a float even where it has no fraction: `float(2)`. */
export class Float {
  readonly value: number;

  constructor(value: number) {
    this.value = value;
  }

  valueOf(): number {
    return this.value;
  }
}

/** Makes a number a float where it has no fraction; `x.mul(2)` keeps integers, `x.mul(float(2))` makes them floats. */
export function float(value: number): Float {
  return new Float(value);
}

/** A real number. Without a fraction it is an integer, unless it is a `float(2)`. */
export type Real = number | bigint | boolean | Float;
/** A number, also a complex one. */
export type Scalar = Real | Complex;

/** What the rules see of a tensor. `undefined` is not known without a round trip. */
export interface TensorLike {
  readonly dtype: DTypeName | undefined;
  readonly shape: readonly number[] | undefined;
}

/** An argument that is bound to a parameter. */
export type Value = TensorLike | Scalar | string | null | ArrayBuffer | ArrayBufferView | readonly Value[];

/** The kind of a number. It is part of a frame's structure; the number is not. */
export type ScalarKind = "bool" | "int" | "float" | "complex";

/** The kind of a number, or `undefined` for what is not a number. `2` is an int, `2.5` and `-0` are floats. */
export function kindOf(value: unknown): ScalarKind | undefined {
  switch (typeof value) {
    case "number":
      return Number.isInteger(value) && !Object.is(value, -0) ? "int" : "float";
    case "boolean":
      return "bool";
    case "bigint":
      return "int";
    default:
      return value instanceof Float ? "float" : value instanceof Complex ? "complex" : undefined;
  }
}

/** Whether an argument is a tensor. */
export function isTensor(value: unknown): value is TensorLike {
  return typeof value === "object" && value !== null && "shape" in value && "dtype" in value;
}
