/** Gives tensors their methods: one an op that the table offers as a method, and those of `methods.ts`. */

import { camel, exposedNames, lookup, type Op } from "../ops/op.ts";
import { invoke, type Returned } from "./calling.ts";
import { COMPOSED_METHODS } from "./methods.ts";

/** Attaches the methods to a prototype. What is there already stays. */
export function attachMethods(prototype: object): void {
  for (const [key, descriptor] of Object.entries(Object.getOwnPropertyDescriptors(COMPOSED_METHODS))) {
    if (!(key in prototype)) Object.defineProperty(prototype, key, { ...descriptor, enumerable: false });
  }
  for (const name of exposedNames("method")) {
    const key = camel(name);
    if (!(key in prototype)) {
      const value = methodOf(name);
      Object.defineProperty(prototype, key, { value, writable: true, configurable: true, enumerable: false });
    }
  }
}

function methodOf(name: string): (this: unknown, ...args: unknown[]) => Returned {
  let op: Op | undefined;
  return function (...args) {
    return invoke((op ??= lookup(name)), [this, ...args]);
  };
}
