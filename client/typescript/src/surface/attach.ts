/** Gives tensors their methods: one an op that the table offers as a method. */

import { camel, lookup, type Op } from "../ops/op.ts";
import { exposedNames, invoke, type Returned } from "./calling.ts";

/** Attaches the methods to a prototype. What is there already stays. */
export function attachMethods(prototype: object): void {
  for (const name of exposedNames("method")) {
    const key = camel(name);
    if (!(key in prototype)) define(prototype, key, methodOf(name));
  }
}

/** Attaches a method or replaces it; it is not enumerable, like those of a class. */
export function define(prototype: object, key: string, value: unknown): void {
  Object.defineProperty(prototype, key, { value, writable: true, configurable: true, enumerable: false });
}

function methodOf(name: string): (this: unknown, ...args: unknown[]) => Returned {
  let op: Op | undefined;
  return function (...args) {
    return invoke((op ??= lookup(name)), [this, ...args]);
  };
}
