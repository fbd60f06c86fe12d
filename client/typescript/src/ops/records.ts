/** Encoding of bound arguments as an op record. */

import { ArgumentTypeError, ArgumentValueError, NumberTooLarge } from "../errors.ts";
import { shown } from "./binding.ts";
import { DTYPES } from "./dtypes.ts";
import type { Op, Param } from "./op.ts";
import { Complex, Float, kindOf, type Value } from "./values.ts";

const PAYLOAD = "payload";
const INT64_LEAST = -(2n ** 63n);
const INT64_END = 2n ** 63n;
const UINT64_END = 2n ** 64n;

/** An argument of a record: a reference, a kind of number, or the value of an attribute. */
export type Encoded = number | boolean | string | null | readonly Encoded[];
/** An entry of the table of scalars. */
export type ScalarEntry = number | boolean | string | readonly [number, number];

/**
 * The arguments of a record. Appends numbers and payloads to their tables. Omits trailing defaults.
 *
 * `ref` converts a tensor to a reference; `isTensor` recognises one. Throws `ArgumentTypeError` for a value whose type
 * the parameter does not accept.
 */
export function encodeArgs<T extends Value>(
  op: Op,
  values: readonly Value[],
  isTensor: (value: Value) => value is T,
  ref: (tensor: T) => number,
  scalars: ScalarEntry[],
  payloads: Value[],
): Encoded[] {
  const args: Encoded[] = [];
  const params = op.params;
  let last = 0;
  let numbers = scalars.length;
  for (let i = 0; i < params.length; i += 1) {
    const param = params[i]!;
    const value = values[i]!;
    if (value === null && param.nullable) {
      args.push(null);
    } else {
      switch (param.kind) {
        case "tensor":
        case "operand":
          if (isTensor(value)) args.push(ref(value));
          else if (param.kind === "operand") args.push(scalar(op, param, value, scalars));
          else throw wrongType(op, param, value);
          break;
        case "attribute":
          args.push(attribute(op, param, value));
          break;
        case "scalar":
        case "position":
          args.push(scalar(op, param, value, scalars));
          break;
        case "tensors":
        case "optionalTensors":
          if (!Array.isArray(value)) throw wrongType(op, param, value);
          args.push(
            (value as readonly Value[]).map((item) => {
              if (isTensor(item)) return ref(item);
              if (item === null && param.kind === "optionalTensors") return null;
              throw wrongType(op, param, item);
            }),
          );
          break;
        case "payload":
          payloads.push(value);
          args.push(PAYLOAD);
      }
    }
    if (param.required || !isDefault(value, param)) {
      last = args.length;
      numbers = scalars.length;
    }
  }
  // Omitted defaults have no entry in the table of scalars either.
  args.length = last;
  scalars.length = numbers;
  return args;
}

/** Whether a value need not be sent: `float(2)` is the default 2 of a float, and `1n` the default 1. */
function isDefault(value: Value, param: Param): boolean {
  if (value === param.default) return true;
  if (typeof value === "bigint" && typeof param.default === "number") return Number(value) === param.default;
  return value instanceof Float && param.default instanceof Float && Object.is(value.value, param.default.value);
}

function scalar(op: Op, param: Param, value: Value, scalars: ScalarEntry[]): string {
  const kind = typeof value === "number" && param.types.includes("Float") ? "float" : kindOf(value);
  if (kind === undefined || (param.kind === "position" && kind !== "int")) throw wrongType(op, param, value);
  if (value instanceof Complex) scalars.push([value.re, value.im]);
  else if (typeof value === "bigint") scalars.push(spelled(op, param, value));
  else if (value instanceof Float) scalars.push(Object.is(value.value, -0) ? "-0.0" : value.value);
  else if (Object.is(value, -0)) scalars.push("-0.0");
  else if (kind === "int" && !Number.isSafeInteger(value)) scalars.push(spelled(op, param, BigInt(value as number)));
  else scalars.push(value as number | boolean);
  return kind;
}

/** An integer as the table of scalars has it: one beyond 2^53 in decimal digits. */
function spelled(op: Op, param: Param, value: bigint): number | string {
  const end = param.kind === "position" ? INT64_END : UINT64_END;
  if (value < INT64_LEAST || value >= end) throw tooLarge(op, param);
  return Number.isSafeInteger(Number(value)) ? Number(value) : String(value);
}

function attribute(op: Op, param: Param, value: Value): Encoded {
  const plain = value instanceof Float ? value.value : value;
  if (!param.types.some((type) => matches(type, plain))) throw wrongType(op, param, value);
  return plain as Encoded;
}

function isInt(value: unknown): boolean {
  return typeof value === "number" && Number.isSafeInteger(value);
}

/** Whether an attribute's value has a type of the table. */
function matches(type: string, value: unknown): boolean {
  if (type.endsWith("[]")) {
    if (!Array.isArray(value)) return false;
    const holes = type.endsWith("?[]");
    const inner = type.slice(0, holes ? -3 : -2);
    return value.every((item: unknown) => (holes && item === null) || matches(inner, item));
  }
  switch (type) {
    case "int":
      return isInt(value);
    case "float":
      return typeof value === "number" || typeof value === "boolean";
    case "number":
      return typeof value === "number" || typeof value === "boolean";
    case "bool":
      return typeof value === "boolean";
    case "str":
      return typeof value === "string";
    case "dtype":
      return typeof value === "string" && Object.hasOwn(DTYPES, value);
    default:
      return false;
  }
}

function tooLarge(op: Op, param: Param): NumberTooLarge {
  return new NumberTooLarge(`${op.name}: argument '${param.key}' exceeds 64 bits`, {
    op: op.name,
    parameter: param.key,
  });
}

/** The error for a value that a parameter does not accept. */
function wrongType(op: Op, param: Param, value: unknown): ArgumentTypeError | ArgumentValueError {
  const details = { op: op.name, parameter: param.key };
  const accepted = [...param.types, ...(param.nullable ? ["null"] : [])].join(" | ");
  if (param.types.includes("dtype") && typeof value === "string") {
    return new ArgumentValueError(`${op.name}: '${value.slice(0, 40)}' is no dtype`, details);
  }
  return new ArgumentTypeError(`${op.name}: argument '${param.key}: ${accepted}' cannot be ${shown(value)}`, details);
}
