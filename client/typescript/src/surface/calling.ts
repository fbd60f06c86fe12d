/** Calls of ops: arguments as a program gives them, results as it gets them. */

import { call } from "../dispatch/call.ts";
import { bind } from "../ops/binding.ts";
import { camel, lookup, opNames, type Op } from "../ops/op.ts";
import type { Value } from "../ops/values.ts";
import { countResults } from "../rules/infer.ts";
import type { Tensor } from "../tensor/tensor.ts";

/** What a call returns: nothing, a tensor, or several. An op that writes in place returns what it wrote to. */
export type Returned = Tensor | Tensor[] | undefined;

/** Calls an op with arguments by position, or by name in a last plain object. */
export function invoke(op: Op, args: readonly unknown[]): Returned {
  const values = bind(op, args);
  if (op.results === 1) return call(op, values)[0];
  if (op.results === 0) {
    call(op, values);
    return op.inplace ? (values[0] as Tensor) : undefined;
  }
  return op.results === undefined ? call(op, values, countResults(op, values)) : call(op, values);
}

/** Calls an op with the arguments of all its leading parameters, in order. */
export function run(name: string, ...values: Value[]): Tensor {
  const op = lookup(name);
  return invoke(op, values) as Tensor;
}

/** The functions of a namespace: one an op that is offered there. Each looks its op up when it is first called. */
export function functionsOf<Interface extends object>(exposure: string, prefix: string = ""): Interface {
  const made: Record<string, unknown> = {};
  for (const name of exposedNames(exposure)) {
    made[camel(name.startsWith(prefix) ? name.slice(prefix.length) : name)] = functionOf(name);
  }
  return made as Interface;
}

/** A function that calls an op. */
export function functionOf(name: string): (...args: unknown[]) => Returned {
  let op: Op | undefined;
  return (...args) => invoke((op ??= lookup(name)), args);
}

/** The names of the ops that are offered somewhere. */
export function* exposedNames(exposure: string): Generator<string> {
  for (const name of opNames()) if (isExposed(name, exposure)) yield name;
}

function isExposed(name: string, exposure: string): boolean {
  return lookup(name).exposed.includes(exposure);
}
