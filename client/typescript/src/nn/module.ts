/** The base class of modules. */

import { ArgumentError } from "../errors.ts";
import { noGrad } from "../graph/modes.ts";
import { snake } from "../ops/op.ts";
import { keep } from "../session/scopes.ts";
import { one } from "../surface/calling.ts";
import { zeroGradients } from "../surface/gradients.ts";
import { Tensor } from "../tensor/tensor.ts";
import { Parameter } from "./parameter.ts";

/** What {@link Module.loadStateDict} did not find, and what it found no place for. */
export interface IncompatibleKeys {
  missingKeys: string[];
  unexpectedKeys: string[];
}

/**
 * A function with parameters. Parameters and modules that are assigned to its properties belong to it:
 *
 * ```ts
 * class Net extends nn.Module {
 *   hidden = new nn.Linear(64, 32);
 *   out = new nn.Linear(32, 10);
 *   forward(x: Tensor): Tensor {
 *     return this.out.call(this.hidden.call(x).relu());
 *   }
 * }
 * ```
 */
export abstract class Module<Args extends readonly never[] | readonly unknown[] = [Tensor], Result = Tensor> {
  /** Whether it is in training mode, which matters to dropout and batch normalisation. */
  training: boolean = true;
  readonly #buffers = new Map<string, boolean>();

  abstract forward(...args: Args): Result;

  /** Call the module. */
  call(...args: Args): Result {
    return this.forward(...args);
  }

  /** Make a tensor part of the state without training it. One that is not persistent is left out of the state dict. */
  protected registerBuffer(name: string, tensor: Tensor | null, persistent: boolean = true): void {
    if (tensor !== null) keep(tensor);
    Object.assign(this, { [name]: tensor });
    this.#buffers.set(name, persistent);
  }

  // What belongs to it

  /** The modules that are properties of this one, by name. */
  *namedChildren(): Generator<[string, AnyModule]> {
    for (const [name, value] of Object.entries(this)) if (value instanceof Module) yield [name, value as AnyModule];
  }

  *children(): Generator<AnyModule> {
    for (const [, child] of this.namedChildren()) yield child;
  }

  /** This module and all below it, each once, by dotted name. */
  *namedModules(prefix: string = "", seen: Set<AnyModule> = new Set()): Generator<[string, AnyModule]> {
    if (seen.has(this)) return;
    seen.add(this);
    yield [prefix, this];
    for (const [name, child] of this.namedChildren()) yield* child.namedModules(dotted(prefix, name), seen);
  }

  *modules(): Generator<AnyModule> {
    for (const [, module] of this.namedModules()) yield module;
  }

  /** The parameters of this module and of all below it, each once, by dotted name. */
  *namedParameters(): Generator<[string, Parameter]> {
    const seen = new Set<Parameter>();
    for (const [prefix, module] of this.namedModules()) {
      for (const [name, parameter] of module.ownParameters()) {
        if (!seen.has(parameter)) yield [dotted(prefix, name), parameter];
        seen.add(parameter);
      }
    }
  }

  *parameters(): Generator<Parameter> {
    for (const [, parameter] of this.namedParameters()) yield parameter;
  }

  /** The buffers of this module and of all below it, by dotted name. */
  *namedBuffers(): Generator<[string, Tensor]> {
    for (const [prefix, module] of this.namedModules()) {
      for (const [name, buffer] of module.ownBuffers()) yield [dotted(prefix, name), buffer];
    }
  }

  /** @internal */
  *ownParameters(): Generator<[string, Parameter]> {
    for (const [name, value] of Object.entries(this)) if (value instanceof Parameter) yield [name, value];
  }

  /** @internal */
  *ownBuffers(persistentOnly: boolean = false): Generator<[string, Tensor]> {
    for (const [name, persistent] of this.#buffers) {
      const value: unknown = Reflect.get(this, name);
      if (value instanceof Tensor && (persistent || !persistentOnly)) yield [name, value];
    }
  }

  // Modes

  /** Set training mode, for this module and all below it. */
  train(mode: boolean = true): this {
    for (const module of this.modules()) module.training = mode;
    return this;
  }

  /** Set evaluation mode. */
  eval(): this {
    return this.train(false);
  }

  /** Train the parameters, or leave them as they are. */
  requiresGrad_(wanted: boolean = true): this {
    for (const parameter of this.parameters()) parameter.requiresGrad = wanted;
    return this;
  }

  /** Remove the gradients of all parameters, or make them zero. */
  zeroGrad(setToNone: boolean = true): void {
    zeroGradients([...this.parameters()], setToNone);
  }

  /** Call a function with this module and all below it, children first. */
  apply(visit: (module: AnyModule) => void): this {
    for (const child of this.children()) child.apply(visit);
    visit(this);
    return this;
  }

  // State

  /** Parameters and persistent buffers by dotted name, as Python clients name them: `running_mean`. No copies. */
  stateDict(): Record<string, Tensor> {
    const found: Record<string, Tensor> = {};
    this.#collect("", found);
    return found;
  }

  #collect(prefix: string, found: Record<string, Tensor>): void {
    for (const [name, parameter] of this.ownParameters()) found[dotted(prefix, snake(name))] = parameter;
    for (const [name, buffer] of this.ownBuffers(true)) found[dotted(prefix, snake(name))] = buffer;
    for (const [name, child] of this.namedChildren()) child.#collect(dotted(prefix, snake(name)), found);
  }

  /**
   * Copy values into parameters and buffers, by the names of {@link stateDict}.
   *
   * @throws ArgumentError for another shape, and, unless `strict: false`, for names that are missing or unknown.
   */
  loadStateDict(state: Readonly<Record<string, Tensor>>, options: { strict?: boolean } = {}): IncompatibleKeys {
    const own = this.stateDict();
    const missingKeys = Object.keys(own).filter((name) => !(name in state));
    const unexpectedKeys = Object.keys(state).filter((name) => !(name in own));
    if (options.strict !== false && missingKeys.length + unexpectedKeys.length > 0) {
      const missing = missingKeys.length > 0 ? `; missing: ${missingKeys.join(", ")}` : "";
      const unexpected = unexpectedKeys.length > 0 ? `; unknown: ${unexpectedKeys.join(", ")}` : "";
      throw new ArgumentError(`the state does not fit ${this.constructor.name}${missing}${unexpected}`);
    }
    const pairs = Object.entries(own).filter(([name]) => name in state);
    for (const [name, tensor] of pairs) {
      const given = state[name]!;
      if (tensor.shape && given.shape && tensor.shape.join() !== given.shape.join()) {
        const [own, other] = [tensor.shape.join(", "), given.shape.join(", ")];
        throw new ArgumentError(`${name} has shape [${own}], the state's is [${other}]`);
      }
    }
    noGrad(() => {
      for (const [name, tensor] of pairs) one("copy_", tensor, state[name]);
    });
    return { missingKeys, unexpectedKeys };
  }

  toString(): string {
    const lines: string[] = [];
    for (const [name, child] of this.namedChildren()) {
      lines.push(`  (${name}): ${child.toString().replaceAll("\n", "\n  ")}`);
    }
    return lines.length > 0 ? `${this.constructor.name}(\n${lines.join("\n")}\n)` : `${this.constructor.name}()`;
  }

  [Symbol.for("nodejs.util.inspect.custom")](): string {
    return this.toString();
  }
}

/** A module whatever it takes and returns. */
export type AnyModule = Module<any, any>;

function dotted(prefix: string, name: string): string {
  return prefix === "" ? name : `${prefix}.${name}`;
}
