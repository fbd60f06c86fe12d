/**
 * Release of tensors. JavaScript collects garbage when its own memory is short, not the server's, so a program says
 * where tensors end: `tidy`, `using scope = gw.scope()`, or `tensor.dispose()`. What it forgets is released when the
 * proxy is collected.
 */

import type { Tensor } from "../tensor/tensor.ts";

const open: Scope[] = [];

/** Releases the tensors that were made while it was the innermost one. */
export class Scope {
  readonly #tensors = new Set<Tensor>();

  constructor() {
    open.push(this);
  }

  /** Keep tensors beyond the end of this scope, and of those around it. Returns what it was given. */
  keep<T>(kept: T): T {
    for (const tensor of tensorsIn(kept)) {
      for (const scope of open) scope.#tensors.delete(tensor);
    }
    return kept;
  }

  /** Leave tensors to the scope around this one, if there is one. */
  pass<T>(passed: T): T {
    const outer = open[open.indexOf(this) - 1];
    for (const tensor of tensorsIn(passed)) {
      if (this.#tensors.delete(tensor) && outer) outer.#tensors.add(tensor);
    }
    return passed;
  }

  dispose(): void {
    const at = open.indexOf(this);
    if (at >= 0) open.splice(at, 1);
    for (const tensor of this.#tensors) tensor.dispose();
    this.#tensors.clear();
  }

  [Symbol.dispose](): void {
    this.dispose();
  }

  /** @internal */
  static adopt(tensor: Tensor): void {
    const innermost = open.at(-1);
    if (innermost) innermost.#tensors.add(tensor);
  }
}

/** A new innermost scope: `using scope = gw.scope();` releases at the end of the block. */
export function scope(): Scope {
  return new Scope();
}

/**
 * Run a function and release the tensors that it made, except those in what it returns. Parameters, optimizer states
 * and gradients that the server holds are not affected.
 */
export function tidy<T>(body: () => T): T {
  const inner = new Scope();
  try {
    const result = body();
    if (result instanceof Promise) {
      throw new TypeError("tidy releases when its function returns, so that cannot be async: use gw.scope()");
    }
    return inner.pass(result);
  } finally {
    inner.dispose();
  }
}

/** Keep tensors that were made in a scope beyond its end. Returns what it was given. */
export function keep<T>(kept: T): T {
  open.at(-1)?.keep(kept);
  return kept;
}

/** Tensors in a value: itself, and those in lists and plain objects within it. */
function* tensorsIn(value: unknown): Generator<Tensor> {
  if (isTensor(value)) yield value;
  else if (Array.isArray(value)) for (const each of value) yield* tensorsIn(each);
  else if (value instanceof Map) for (const each of value.values()) yield* tensorsIn(each);
  else if (typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype) {
    for (const each of Object.values(value)) yield* tensorsIn(each);
  }
}

const TENSOR = Symbol.for("gradwire.tensor");

/** Whether a value is a tensor. */
export function isTensor(value: unknown): value is Tensor {
  return typeof value === "object" && value !== null && TENSOR in value;
}
