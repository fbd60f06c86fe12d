/** Arranges the arguments of a call by parameter and fills in defaults. */

import { ArgumentTypeError } from "../errors.ts";
import { closest, type Op, type Param } from "./op.ts";
import { Float, Complex, isTensor, type Value } from "./values.ts";

/** Whether an argument is a plain object, which names arguments. */
export function isOptions(value: unknown): value is Readonly<Record<string, unknown>> {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return (prototype === Object.prototype || prototype === null) && !isTensor(value);
}

/**
 * The arguments of a call in the order of the op's parameters, defaults filled in. The last argument may be a plain
 * object that names the others. Throws `ArgumentTypeError`, which names the op and the parameter.
 */
export function bind(op: Op, given: readonly unknown[]): Value[] {
  const params = op.params;
  const last = given.length > 0 ? given[given.length - 1] : undefined;
  let options: Readonly<Record<string, unknown>> | undefined;
  let args = given;
  if (isOptions(last)) {
    options = last;
    args = given.slice(0, -1);
  }
  const variadic = op.variadic;
  if (variadic !== undefined && typeof args[variadic] === "number") {
    args = [...args.slice(0, variadic), args.slice(variadic)];
  }
  if (args.length > params.length) {
    throw new ArgumentTypeError(`${op.signature} got ${args.length} arguments; it takes ${params.length}`, {
      op: op.name,
    });
  }
  const bound = new Array<Value>(params.length);
  for (let i = 0; i < params.length; i += 1) {
    const param = params[i]!;
    let value = i < args.length ? args[i] : undefined;
    if (options !== undefined && value === undefined) {
      value = param.key in options ? options[param.key] : options[param.name];
    }
    if (value === undefined) {
      if (param.required) {
        throw new ArgumentTypeError(`${op.signature} is missing the argument '${param.key}'`, {
          op: op.name,
          parameter: param.key,
        });
      } else {
        bound[i] = param.default;
      }
    } else {
      bound[i] = converted(param, value as Value);
    }
  }
  if (options !== undefined) refuseUnknown(op, args.length, options);
  return bound;
}

function refuseUnknown(op: Op, positional: number, options: Readonly<Record<string, unknown>>): void {
  for (const name of Object.keys(options)) {
    const at = op.params.findIndex((param) => param.key === name || param.name === name);
    const details = { op: op.name, parameter: name };
    if (at < 0) {
      const close = closest(
        name,
        op.params.map((param) => param.key),
      );
      const hint = close.length > 0 ? `; did you mean ${close.join(" or ")}?` : "";
      throw new ArgumentTypeError(`${op.signature} has no parameter '${name}'${hint}`, details);
    }
    if (at < positional) throw new ArgumentTypeError(`${op.signature} got '${name}' twice`, details);
  }
}

/** An argument as the op takes it: a number for a list of one, a `float(2)` for an attribute. */
function converted(param: Param, value: Value): Value {
  if (param.kind !== "attribute") return value;
  if (typeof value === "number") {
    return !TAKES_NUMBER.some((type) => param.types.includes(type)) && param.types.includes("int[]") ? [value] : value;
  }
  if (value instanceof Float && !param.types.includes("number")) return value.value;
  if (typeof value === "bigint" && Number.isSafeInteger(Number(value))) return Number(value);
  return value;
}

const TAKES_NUMBER = ["int", "float", "number"];

/** What an error shows of an argument. */
export function shown(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value.slice(0, 80));
  if (value instanceof Complex) return value.toString();
  if (value instanceof Float) return String(value.value);
  if (isTensor(value)) return `a tensor ${value.dtype ?? "?"}${value.shape ? `[${value.shape.join(", ")}]` : ""}`;
  if (Array.isArray(value)) return `[${value.slice(0, 8).map(shown).join(", ")}${value.length > 8 ? ", ..." : ""}]`;
  if (typeof value === "function") return `the function ${value.name}`;
  if (typeof value === "object" && value !== null) return `an object of class ${value.constructor?.name ?? "null"}`;
  return String(value);
}
