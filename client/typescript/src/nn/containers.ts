/** Containers of modules. */

import type { Tensor } from "../tensor/tensor.ts";
import { Module, type AnyModule } from "./module.ts";

/** Modules one after the other: each gets what the one before it returns. */
export class Sequential extends Module<[Tensor], Tensor> {
  constructor(...modules: readonly Module<[Tensor], Tensor>[]) {
    super();
    modules.forEach((module, i) => Object.assign(this, { [i]: module }));
  }

  get length(): number {
    return [...this.children()].length;
  }

  /** Add a module at the end. */
  append(module: Module<[Tensor], Tensor>): this {
    Object.assign(this, { [this.length]: module });
    return this;
  }

  forward(x: Tensor): Tensor {
    let result = x;
    for (const child of this.children()) result = (child as Module<[Tensor], Tensor>).call(result);
    return result;
  }

  [Symbol.iterator](): Iterator<AnyModule> {
    return this.children();
  }
}

/** A list of modules, which a module's `forward` calls as it likes. */
export class ModuleList<M extends AnyModule = Module<[Tensor], Tensor>> extends Module<[], never> {
  constructor(modules: Iterable<M> = []) {
    super();
    for (const module of modules) this.append(module);
  }

  get length(): number {
    return [...this.children()].length;
  }

  /** Add a module at the end. */
  append(module: M): this {
    Object.assign(this, { [this.length]: module });
    return this;
  }

  /** The module at a position; negative ones count from the end. */
  at(index: number): M | undefined {
    return [...this].at(index);
  }

  forward(): never {
    throw new TypeError("a ModuleList cannot be called: call its modules");
  }

  [Symbol.iterator](): Iterator<M> & Iterable<M> {
    return this.children() as Generator<M>;
  }
}

/** Modules by name. */
export class ModuleDict<M extends AnyModule = Module<[Tensor], Tensor>> extends Module<[], never> {
  constructor(modules: Readonly<Record<string, M>> = {}) {
    super();
    Object.assign(this, modules);
  }

  /** The module of a name. */
  get(name: string): M | undefined {
    return new Map(this.namedChildren()).get(name) as M | undefined;
  }

  /** Add a module, or replace one. */
  set(name: string, module: M): this {
    Object.assign(this, { [name]: module });
    return this;
  }

  forward(): never {
    throw new TypeError("a ModuleDict cannot be called: call its modules");
  }
}
