/** The proxy of a tensor that a server holds. The methods for ops are attached from the op table. */

import { ArgumentError, GraphError } from "../errors.ts";
import { GraphNode } from "../graph/nodes.ts";
import type { AccumulatedHook, Edge, GradientHook } from "../graph/nodes.ts";
import type { TensorMethods } from "../ops/methods.ts";
import type { ReadOptions } from "../session/reads.ts";
import { Scope } from "../session/scopes.ts";
import type { Session } from "../session/session.ts";
import type { ComposedMethods } from "../surface/methods.ts";
import type { DTypeName } from "./dtypes.ts";
import { carriesGradient, itemSize } from "./dtypes.ts";
import type { Element, Nested, NumberArray, Shape } from "./values.ts";
import { elementOf, nestedOf, sizeOf } from "./values.ts";

/** What is known of a tensor when it is made. */
export interface TensorInfo {
  /** `undefined` where only the server knows. */
  readonly dtype: DTypeName | undefined;
  readonly shape: Shape | undefined;
  readonly device?: string | undefined;
}

/** What upper layers do for tensors. They attach it, so that this file needs nothing above it. */
export interface TensorServices {
  backward(roots: readonly Tensor[], gradients: readonly (Tensor | null)[], options: BackwardOptions): void;
  gradOf(leaf: Tensor): Tensor;
  setGrad(leaf: Tensor, gradient: Tensor | null): void;
  requireGrad(leaf: Tensor, wanted: boolean): void;
  retainGrad(tensor: Tensor): void;
  detach(tensor: Tensor): Tensor;
  setName(tensor: Tensor, name: string): void;
  /** A tensor without values that names the node on the server. */
  placeOf(tensor: Tensor): Tensor;
}

export interface BackwardOptions {
  /** The gradient to start from; a tensor of one element needs none. */
  gradient?: Tensor | undefined;
  /** Accumulate into these only. */
  inputs?: readonly Tensor[] | undefined;
  /** Keep the graph for another backward. Default: `createGraph`. */
  retainGraph?: boolean | undefined;
  /** Record the backward itself, for derivatives of higher order. */
  createGraph?: boolean | undefined;
}

let services: TensorServices | undefined;

/** @internal */
export function provide(given: TensorServices): void {
  services = given;
}

function above(): TensorServices {
  if (services === undefined) throw new Error("the package was not loaded by its entry point");
  return services;
}

export interface Tensor extends TensorMethods, ComposedMethods {}

/**
 * A tensor on a server. Ops on it are recorded and return at once; `await` is needed only to read values:
 * `item()`, `data()`, `toArray()`.
 */
export class Tensor {
  readonly session: Session;
  /** Names the tensor among those of this program. */
  readonly counter: number;
  #dtype: DTypeName | undefined;
  #shape: Shape | undefined;
  readonly #device: string | undefined;
  #requires: boolean;
  #disposed = false;
  /** What made it, where history is recorded. @internal */
  edge: Edge | undefined;
  /** The tensor whose memory it views. @internal */
  base: Tensor | undefined;
  #accumulator: GraphNode | undefined;
  /** Of a tensor that was found by its name other clients may change it; the server knows. */
  #hasGrad: boolean | "unknown" = false;
  #retains = false;
  #grad: Tensor | undefined;

  /** @internal */
  constructor(session: Session, counter: number, info: TensorInfo, requires = false, edge?: Edge) {
    this.session = session;
    this.counter = counter;
    this.#dtype = info.dtype;
    this.#shape = info.shape;
    this.#device = info.device;
    this.#requires = requires;
    this.edge = edge;
    session.adopt(this);
    Scope.adopt(this);
  }

  get [Symbol.for("gradwire.tensor")](): true {
    return true;
  }

  get [Symbol.toStringTag](): string {
    return "Tensor";
  }

  // What is known

  /**
   * The shape, where it is known without a round trip: after creation, elementwise ops, products, reductions, views
   * and most others. `undefined` where only the server knows; {@link size} always works.
   */
  get shape(): Shape | undefined {
    return this.#shape;
  }

  /** The dtype, or `undefined` where only the server knows. */
  get dtype(): DTypeName | undefined {
    return this.#dtype;
  }

  /** The device, e.g. `"cpu"`. */
  get device(): string {
    return this.#device ?? this.session.device;
  }

  /** The number of dimensions, where the shape is known. */
  get ndim(): number | undefined {
    return this.#shape?.length;
  }

  /** The number of elements, where the shape is known. */
  get numel(): number | undefined {
    return this.#shape && sizeOf(this.#shape);
  }

  /** The shape. Asks the server if it is not known. */
  async size(): Promise<Shape> {
    if (this.#shape === undefined) {
      const row = await this.session.describe(this);
      this.learn(row.dtype, row.shape);
    }
    return this.#shape!;
  }

  /** What the server said. @internal */
  learn(dtype: DTypeName, shape: Shape): void {
    this.#dtype = dtype;
    this.#shape = shape;
  }

  /** It is a tensor that others made, which may have a gradient and a history here unknown. @internal */
  share(requires: boolean): void {
    this.#requires = requires;
    this.#hasGrad = requires ? "unknown" : false;
  }

  // Values

  /** The value of a tensor of one element. int64 beyond 2**53 is a bigint, a complex number a `Complex`. */
  async item(options?: ReadOptions): Promise<Element> {
    if (this.#shape !== undefined && this.numel !== 1) {
      throw new ArgumentError(`item() takes a tensor of one element; this one has shape [${this.#shape.join(", ")}]`);
    }
    const { array, dtype, shape } = await this.session.read(this, options);
    if (sizeOf(shape) !== 1) {
      throw new ArgumentError(`item() takes a tensor of one element; this one has shape [${shape.join(", ")}]`);
    }
    return elementOf(array, 0, dtype);
  }

  /**
   * The values, row-major, as a typed array: floats of 16 and 8 bits as Float32Array, bool as Uint8Array, complex
   * dtypes as alternating real and imaginary parts.
   */
  async data(options?: ReadOptions): Promise<NumberArray> {
    return (await this.session.read(this, options)).array;
  }

  /** The values as nested lists. */
  async toArray(options?: ReadOptions): Promise<Nested> {
    const { array, dtype, shape } = await this.session.read(this, options);
    return nestedOf(array, shape, dtype);
  }

  // Gradients

  /** Whether a gradient flows to it. Assignable for a leaf, as in `x.requiresGrad = true`. */
  get requiresGrad(): boolean {
    return this.#requires;
  }

  set requiresGrad(wanted: boolean) {
    if (!this.isLeaf) {
      throw new GraphError("requiresGrad of a tensor with history cannot be changed; detach() it");
    }
    if (wanted && !carriesGradient(this.#dtype)) {
      throw new GraphError(
        `a tensor of dtype ${this.#dtype} cannot require a gradient, only floating point and complex`,
      );
    }
    if (wanted === this.#requires) return;
    above().requireGrad(this, wanted);
    this.#requires = wanted;
  }

  /** Make a leaf require a gradient. Returns it. */
  requiresGrad_(wanted = true): this {
    this.requiresGrad = wanted;
    return this;
  }

  /** Whether the program made it, rather than an op with history. */
  get isLeaf(): boolean {
    return this.edge === undefined;
  }

  /**
   * The gradient that backward has accumulated, or `null`. Assign `null` to remove it. Whether a tensor that was found
   * by its name has one is known to the server only: reading a gradient that is not there throws `GraphError`.
   */
  get grad(): Tensor | null {
    if (!this.#hasGrad) return null;
    if (this.#grad === undefined || this.#grad.disposed) this.#grad = above().gradOf(this);
    return this.#grad;
  }

  set grad(gradient: Tensor | null) {
    if (gradient === null && !this.#hasGrad) return;
    above().setGrad(this, gradient);
    this.#hasGrad = gradient !== null;
    this.#grad = undefined;
  }

  /** A gradient was added. @internal */
  gradArrived(): void {
    this.#hasGrad = true;
    this.#grad = undefined;
  }

  /** The gradient is gone: the server was told. @internal */
  gradRemoved(): void {
    this.#hasGrad = false;
    this.#grad = undefined;
  }

  /** Whether it has a gradient, or may have one. @internal */
  get hasGrad(): boolean {
    return this.#hasGrad !== false;
  }

  /** Keep the gradient of a tensor that is no leaf, too. */
  retainGrad(): void {
    if (!this.#requires) throw new GraphError("a tensor that does not require a gradient cannot retain one");
    if (this.edge === undefined || this.#retains) return;
    above().retainGrad(this);
    this.#retains = true;
    (this.edge.node.retaining ??= new Map()).set(this.edge.slot, new WeakRef(this));
  }

  /** Where gradients for it go. @internal */
  get gradientEdge(): Edge | undefined {
    if (this.edge) return this.edge;
    if (!this.#requires) return undefined;
    this.#accumulator ??= new GraphNode("AccumulateGrad", [], 1, this);
    return { node: this.#accumulator, slot: 0 };
  }

  /** It was written to in place, with this as its new history. @internal */
  rebase(edge: Edge): void {
    this.edge = edge;
    this.#requires = true;
    this.#accumulator = undefined;
  }

  /** The graph was cut here. @internal */
  cut(): void {
    this.edge = undefined;
    this.#requires = false;
  }

  /**
   * Accumulate gradients of this tensor into the `grad` of the leaves that it depends on.
   *
   * @throws GraphError when there is no graph, or it was freed.
   */
  backward(options: BackwardOptions | Tensor = {}): void {
    const given = options instanceof Tensor ? { gradient: options } : options;
    above().backward([this], [given.gradient ?? null], given);
  }

  /** The same memory without history. */
  detach(): Tensor {
    return above().detach(this);
  }

  /** Call `hook` with each gradient for this tensor; what it returns replaces the gradient. Returns a remover. */
  registerHook(hook: GradientHook): () => void {
    const edge = this.gradientEdge;
    if (!edge) throw new GraphError("a tensor that does not require a gradient cannot have a hook");
    const { node, slot } = edge;
    if (this.edge && !node.custom) node.place ??= above().placeOf(this);
    const hooks = (node.hooks ??= new Map()).get(slot) ?? new Set();
    node.hooks.set(slot, hooks);
    hooks.add(hook);
    return () => {
      hooks.delete(hook);
      if (!hooks.size) node.hooks?.delete(slot);
    };
  }

  /** Call `hook` after this leaf has accumulated a gradient. Returns a remover. */
  registerPostAccumulateGradHook(hook: AccumulatedHook): () => void {
    const node = this.isLeaf ? this.gradientEdge?.node : undefined;
    if (!node) throw new GraphError("only a leaf that requires a gradient accumulates one");
    const hooks = (node.accumulated ??= new Set());
    hooks.add(hook);
    return () => void hooks.delete(hook);
  }

  // Names and release

  /** Give it a name that every client of the session can look up: `session.tensor(name)`. Returns it. */
  named(name: string): this {
    above().setName(this, name);
    return this;
  }

  get disposed(): boolean {
    return this.#disposed;
  }

  /** Release the tensor on the server. Views of it, and graphs that need it, keep what they need. */
  dispose(): void {
    if (this.#disposed) return;
    this.#disposed = true;
    this.session.release(this);
  }

  [Symbol.dispose](): void {
    this.dispose();
  }

  toString(): string {
    const shape = this.#shape === undefined ? "?" : `[${this.#shape.join(", ")}]`;
    const history = this.edge ? `, gradFn=${this.edge.node.name}` : this.#requires ? ", requiresGrad=true" : "";
    return `Tensor(${this.#dtype ?? "?"} ${shape}${history})`;
  }

  [Symbol.for("nodejs.util.inspect.custom")](): string {
    return this.toString();
  }

  /** Bytes of its values, where they are known. @internal */
  get bytes(): number {
    return this.#shape && this.#dtype ? sizeOf(this.#shape) * itemSize(this.#dtype) : Infinity;
  }
}
