/** Values in JavaScript and as little-endian bytes. Every platform that runs JavaScript today is little-endian. */

import { ArgumentError, ArgumentTypeError, ShapeError } from "../errors.ts";
import { Complex } from "../ops/values.ts";
import { isComplexDType, itemSize } from "./dtypes.ts";
import type { DTypeName } from "./dtypes.ts";
import { fromFloat8, toFloat8 } from "./floats8.ts";
import { fromBfloat16, fromFloat16, toBfloat16, toFloat16 } from "./halves.ts";

/** The typed arrays that hold values. */
export type NumberArray =
  | Uint8Array
  | Int8Array
  | Int16Array
  | Uint16Array
  | Int32Array
  | Uint32Array
  | BigInt64Array
  | BigUint64Array
  | Float32Array
  | Float64Array;

/** One element. int64 and uint64 are a number where that is exact, else a bigint. */
export type Element = number | bigint | boolean | Complex;

/** Nested lists of one element type. */
export type Nested = Element | readonly Nested[];

/** What a tensor can be made of. */
export type TensorLike = Nested | NumberArray | Uint8ClampedArray;

export type Shape = readonly number[];

export function sizeOf(shape: Shape): number {
  return shape.reduce((product, extent) => product * extent, 1);
}

/** A tensor's values before they are sent. */
export interface Data {
  dtype: DTypeName;
  shape: Shape;
  bytes: Uint8Array;
}

const OF_ARRAY: readonly [new (length: number) => NumberArray, DTypeName][] = [
  [Float32Array, "float32"],
  [Float64Array, "float64"],
  [Int32Array, "int32"],
  [BigInt64Array, "int64"],
  [Uint8Array, "uint8"],
  [Int8Array, "int8"],
  [Int16Array, "int16"],
  [Uint16Array, "uint16"],
  [Uint32Array, "uint32"],
  [BigUint64Array, "uint64"],
];

function bytesOf(array: ArrayBufferView): Uint8Array {
  return new Uint8Array(array.buffer as ArrayBuffer, array.byteOffset, array.byteLength);
}

/**
 * The values as bytes. A typed array has its dtype and, without `shape`, one dimension; it is copied. Numbers become
 * the default dtype, bigints int64, booleans bool, `complex(re, im)` complex64.
 *
 * @throws ShapeError for lists that are ragged, or values that do not fill `shape`.
 */
export function dataOf(
  values: TensorLike,
  dtype: DTypeName | undefined,
  shape: Shape | undefined,
  usual: DTypeName,
): Data {
  if (ArrayBuffer.isView(values)) {
    const plain = values instanceof Uint8ClampedArray ? new Uint8Array(values) : values;
    const own = OF_ARRAY.find(([type]) => plain instanceof type)?.[1];
    if (own === undefined) throw new ArgumentTypeError(`a tensor cannot be made of ${values.constructor.name}`);
    const full = shape ?? [plain.length];
    check(full, plain.length);
    if (dtype === undefined || dtype === own) return { dtype: own, shape: full, bytes: bytesOf(plain).slice() };
    return { dtype, shape: full, bytes: encode(Array.from<Element>(plain), dtype) };
  }
  const flat: Element[] = [];
  const found: number[] = [];
  flatten(values, 0, found, flat);
  const full = shape ?? found;
  check(full, flat.length);
  const chosen = dtype ?? guess(flat, usual);
  return { dtype: chosen, shape: full, bytes: encode(flat, chosen) };
}

/** Bytes as they are. @throws ShapeError when they are not those of `dtype` and `shape`. */
export function rawOf(values: TensorLike, dtype: DTypeName | undefined, shape: Shape | undefined): Data {
  if (!(values instanceof Uint8Array) || !dtype || !shape) {
    throw new ArgumentTypeError("raw values are a Uint8Array, with a dtype and a shape");
  }
  check(shape, values.length / itemSize(dtype));
  return { dtype, shape, bytes: values.slice() };
}

function check(shape: Shape, count: number): void {
  if (!shape.every((extent) => Number.isInteger(extent) && extent >= 0)) {
    throw new ShapeError(`the shape [${shape.join(", ")}] has an extent that is not a whole number of at least 0`);
  }
  if (sizeOf(shape) !== count) {
    throw new ShapeError(`the shape [${shape.join(", ")}] has ${sizeOf(shape)} elements, but ${count} were given`);
  }
}

function flatten(values: Nested, depth: number, shape: number[], flat: Element[]): void {
  if (!Array.isArray(values)) {
    if (depth < shape.length) throw new ShapeError(`the lists are ragged: a value stands at depth ${depth}`);
    flat.push(values as Element);
    return;
  }
  const lists = values as readonly Nested[];
  if (depth === shape.length) {
    if (flat.length) throw new ShapeError(`the lists are ragged: a list stands at depth ${depth}`);
    shape.push(lists.length);
  } else if (lists.length !== shape[depth]) {
    throw new ShapeError(
      `the lists are ragged: at depth ${depth} one has ${lists.length} entries, the first ${shape[depth]}`,
    );
  }
  for (const each of lists) flatten(each, depth + 1, shape, flat);
}

function guess(flat: readonly Element[], usual: DTypeName): DTypeName {
  const kinds = new Set(flat.map((value) => (value instanceof Complex ? "complex" : typeof value)));
  if (kinds.has("complex")) return usual === "float64" ? "complex128" : "complex64";
  if (kinds.has("number") || !kinds.size) return usual;
  return kinds.has("bigint") ? "int64" : "bool";
}

function real(value: Element): number {
  if (value instanceof Complex) {
    if (value.im !== 0) throw new ArgumentTypeError(`the complex number ${value.re} + ${value.im}i is not real`);
    return value.re;
  }
  if (typeof value === "number") return value;
  if (typeof value === "boolean" || typeof value === "bigint") return Number(value);
  throw new ArgumentTypeError(
    `a tensor's values are numbers, bigints, booleans or complex(re, im), not ${typeof value}`,
  );
}

const INTEGERS: { readonly [dtype: string]: readonly [number, number] } = {
  uint8: [0, 255],
  int8: [-128, 127],
  int16: [-32768, 32767],
  int32: [-2147483648, 2147483647],
  uint16: [0, 65535],
  uint32: [0, 4294967295],
};

function integer(value: Element, dtype: DTypeName): number {
  const number = real(value);
  const range = INTEGERS[dtype]!;
  if (!Number.isFinite(number)) throw new ArgumentError(`${number} cannot be stored as ${dtype}`);
  const whole = Math.trunc(number);
  if (whole < range[0] || whole > range[1]) {
    throw new ArgumentError(`${number} is outside of ${dtype}, from ${range[0]} to ${range[1]}`);
  }
  return whole;
}

function long(value: Element, dtype: "int64" | "uint64"): bigint {
  const whole = typeof value === "bigint" ? value : BigInt(Math.trunc(finite(real(value), dtype)));
  const held = dtype === "int64" ? BigInt.asIntN(64, whole) : BigInt.asUintN(64, whole);
  if (held !== whole) throw new ArgumentError(`${whole} does not fit into ${dtype}`);
  return whole;
}

function finite(value: number, dtype: string): number {
  if (!Number.isFinite(value)) throw new ArgumentError(`${value} cannot be stored as ${dtype}`);
  return value;
}

function pairs(flat: readonly Element[]): number[] {
  return flat.flatMap((value) => (value instanceof Complex ? [value.re, value.im] : [real(value), 0]));
}

/** Elements as bytes of a dtype. @throws ArgumentError for an integer out of range. */
export function encode(flat: readonly Element[], dtype: DTypeName): Uint8Array {
  switch (dtype) {
    case "bool":
      return Uint8Array.from(flat, (value) =>
        typeof value === "bigint" ? Number(value !== 0n) : Number(real(value) !== 0),
      );
    case "uint8":
      return Uint8Array.from(flat, (value) => integer(value, dtype));
    case "int8":
      return bytesOf(Int8Array.from(flat, (value) => integer(value, dtype)));
    case "int16":
      return bytesOf(Int16Array.from(flat, (value) => integer(value, dtype)));
    case "int32":
      return bytesOf(Int32Array.from(flat, (value) => integer(value, dtype)));
    case "int64":
      return bytesOf(BigInt64Array.from(flat, (value) => long(value, dtype)));
    case "uint16":
      return bytesOf(Uint16Array.from(flat, (value) => integer(value, dtype)));
    case "uint32":
      return bytesOf(Uint32Array.from(flat, (value) => integer(value, dtype)));
    case "uint64":
      return bytesOf(BigUint64Array.from(flat, (value) => long(value, dtype)));
    case "float8_e4m3fn":
    case "float8_e5m2":
      return Uint8Array.from(flat, (value) => toFloat8(real(value), dtype));
    case "float16":
      return bytesOf(Uint16Array.from(flat, (value) => toFloat16(real(value))));
    case "bfloat16":
      return bytesOf(Uint16Array.from(flat, (value) => toBfloat16(real(value))));
    case "float32":
      return bytesOf(Float32Array.from(flat, real));
    case "float64":
      return bytesOf(Float64Array.from(flat, real));
    case "complex64":
      return bytesOf(Float32Array.from(pairs(flat)));
    case "complex128":
      return bytesOf(Float64Array.from(pairs(flat)));
  }
}

/**
 * The bytes as a typed array of their own memory: floats of 16 and 8 bits as Float32Array, bool as Uint8Array,
 * complex dtypes as alternating real and imaginary parts.
 */
export function arrayOf(bytes: Uint8Array, dtype: DTypeName): NumberArray {
  const memory = bytes.slice().buffer;
  switch (dtype) {
    case "bool":
    case "uint8":
      return new Uint8Array(memory);
    case "int8":
      return new Int8Array(memory);
    case "int16":
      return new Int16Array(memory);
    case "int32":
      return new Int32Array(memory);
    case "int64":
      return new BigInt64Array(memory);
    case "uint16":
      return new Uint16Array(memory);
    case "uint32":
      return new Uint32Array(memory);
    case "uint64":
      return new BigUint64Array(memory);
    case "float8_e4m3fn":
    case "float8_e5m2":
      return Float32Array.from(new Uint8Array(memory), (bits) => fromFloat8(bits, dtype));
    case "float16":
      return Float32Array.from(new Uint16Array(memory), fromFloat16);
    case "bfloat16":
      return Float32Array.from(new Uint16Array(memory), fromBfloat16);
    case "float32":
    case "complex64":
      return new Float32Array(memory);
    case "float64":
    case "complex128":
      return new Float64Array(memory);
  }
}

/** Element `at` of a typed array that {@link arrayOf} made. */
export function elementOf(array: NumberArray, at: number, dtype: DTypeName): Element {
  if (isComplexDType(dtype)) return new Complex(Number(array[2 * at]), Number(array[2 * at + 1]));
  const value = array[at]!;
  if (dtype === "bool") return value !== 0;
  if (typeof value === "number") return value;
  return Number.isSafeInteger(Number(value)) ? Number(value) : value;
}

/** The values as nested lists. */
export function nestedOf(array: NumberArray, shape: Shape, dtype: DTypeName): Nested {
  let at = 0;
  const level = (depth: number): Nested => {
    if (depth === shape.length) return elementOf(array, at++, dtype);
    return Array.from({ length: shape[depth]! }, () => level(depth + 1));
  };
  return level(0);
}
