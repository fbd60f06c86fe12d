/** Calls of ops: arguments as a program gives them, results as it gets them. */

import { call } from "../dispatch/call.ts";
import { bind, isOptions } from "../ops/binding.ts";
import { camel, exposedNames, lookup, type Op } from "../ops/op.ts";
import type { Value } from "../ops/values.ts";
import { countResults } from "../rules/infer.ts";
import { currentSession } from "../session/current.ts";
import type { Session } from "../session/session.ts";
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

/** Calls an op of one result. */
export function one(name: string, ...args: unknown[]): Tensor {
  return invoke(lookup(name), args) as Tensor;
}

/** Calls an op of several results. */
export function several(name: string, ...args: unknown[]): Tensor[] {
  return invoke(lookup(name), args) as Tensor[];
}

/** What functions that create tensors take beside the op's arguments. */
export interface CreationOptions {
  readonly requiresGrad?: boolean | undefined;
  readonly session?: Session | undefined;
}

/** Calls an op that creates a tensor, on the session's device unless another is named. */
export function create(op: Op, args: readonly unknown[]): Tensor {
  const last = args[args.length - 1];
  let options: CreationOptions = {};
  let given = args;
  if (isOptions(last)) {
    const { requiresGrad, session, ...rest } = last as CreationOptions & Record<string, unknown>;
    options = { requiresGrad, session };
    given = [...args.slice(0, -1), rest];
  }
  const values = bind(op, given);
  const like = op.params[0]?.kind === "tensor";
  const session = options.session ?? (like ? (values[0] as Tensor).session : currentSession());
  const at = op.positions.get("device")!;
  if (!like && values[at] === op.params[at]!.default && session.device !== values[at]) values[at] = session.device;
  const made = call(op, values as Value[], 1, session)[0]!;
  if (options.requiresGrad === true) made.requiresGrad = true;
  return made;
}

/** The functions of a namespace: one an op that is offered there. Each reads its op's row when it is first called. */
export function functionsOf<Interface extends object>(exposure: string, prefix: string = ""): Interface {
  const made: Record<string, unknown> = {};
  for (const name of exposedNames(exposure)) {
    made[camel(name.startsWith(prefix) ? name.slice(prefix.length) : name)] = functionOf(name);
  }
  return made as Interface;
}

function functionOf(name: string): (...args: unknown[]) => Returned {
  let op: Op | undefined;
  let creates = false;
  return (...args) => {
    if (op === undefined) {
      op = lookup(name);
      creates = op.exposed.includes("function") && op.positions.has("device");
    }
    return creates ? create(op, args) : invoke(op, args);
  };
}
