/**
 * A backward in which the program takes part: hooks, and derivatives of its own. The mirror knows in what order they
 * run, so the server pauses there, and the gradients that stand there are proxies like any other: nothing waits.
 */

import { ArgumentTypeError, GraphError } from "../errors.ts";
import { GRAD_MODE, modeFlags, withFlags } from "../graph/modes.ts";
import { inOrder } from "../graph/nodes.ts";
import type { Edge, GraphNode } from "../graph/nodes.ts";
import { lookup } from "../ops/op.ts";
import { Tensor } from "../tensor/tensor.ts";
import type { TensorInfo } from "../tensor/tensor.ts";

/** Stages of a pause (docs/protocol.md, "Backward with callbacks"). */
const BEFORE = 0;
const INSTEAD = 1;
const ACCUMULATED = 3;

const UNKNOWN: TensorInfo = { dtype: undefined, shape: undefined };

export interface CallbackOptions {
  /** What gradients are wanted for; `null` for all leaves. */
  inputs: readonly Tensor[] | null;
  /** The nodes that lead to them, and their own; `undefined` for all. */
  leading: ReadonlySet<GraphNode> | undefined;
  wanted: ReadonlySet<GraphNode> | undefined;
  /** Whether gradients go to `grad` or are returned. */
  accumulate: boolean;
  retainGraph: boolean;
  createGraph: boolean;
}

/** One backward with callbacks. */
export class CallbackBackward {
  readonly #roots: readonly Tensor[];
  readonly #gradients: readonly (Tensor | null)[];
  readonly #options: CallbackOptions;
  readonly #order: readonly GraphNode[];
  #run!: Tensor;
  #step = 0;
  #supplied: (Tensor | null)[] = [];
  /** By node, which of its outputs a gradient has arrived at. */
  readonly #arrived = new Map<GraphNode, Set<number>>();

  constructor(
    roots: readonly Tensor[],
    gradients: readonly (Tensor | null)[],
    starts: readonly Edge[],
    nodes: ReadonlySet<GraphNode>,
    options: CallbackOptions,
  ) {
    this.#roots = roots;
    this.#gradients = gradients;
    this.#options = options;
    this.#order = inOrder(
      starts.map((edge) => edge.node),
      nodes,
    );
    for (const edge of starts) this.#deliver(edge);
  }

  /** Run to the end. Returns the gradients of the inputs, unless they accumulate. */
  run(allowUnused = false): Tensor[] {
    const { inputs, retainGraph, createGraph, accumulate } = this.#options;
    const pauses = this.#order.flatMap((node) => this.#stages(node).map((stage) => [placeOf(node), stage] as const));
    const values = [
      this.#roots,
      this.#gradients,
      inputs,
      pauses.map(([place]) => place),
      pauses.map(([, stage]) => stage),
      retainGraph,
      createGraph,
      accumulate,
    ];
    const session = this.#roots[0]!.session;
    this.#run = new Tensor(session, session.record(lookup("begin_backward"), values, 1), UNKNOWN);
    try {
      for (const node of this.#order) this.#pass(node);
      const wanted = accumulate ? [] : (inputs ?? []);
      const last = [this.#run, this.#step, this.#supplied, allowUnused, false];
      const first = session.record(lookup("finish_backward"), last, wanted.length);
      return wanted.map((input, at) => {
        const { dtype, shape, device } = input;
        return new Tensor(session, first + at, { dtype, shape, device });
      });
    } catch (error) {
      session.record(lookup("abandon_backward"), [this.#run], 0);
      throw error;
    } finally {
      this.#run.dispose();
    }
  }

  #leads(edge: Edge | null): edge is Edge {
    return edge !== null && (this.#options.leading === undefined || this.#options.leading.has(edge.node));
  }

  /** Whether the node's derivative is computed, and not only what arrives there. */
  #runs(node: GraphNode): boolean {
    const { leading, wanted, accumulate } = this.#options;
    if (leading === undefined || (accumulate && wanted?.has(node))) return true;
    return node.edges.some((edge) => this.#leads(edge));
  }

  #stages(node: GraphNode): number[] {
    if (!node.acts || (this.#options.leading && !this.#options.leading.has(node))) return [];
    const stages: number[] = [];
    if (node.hooks?.size) stages.push(BEFORE);
    if (!this.#runs(node)) return stages;
    if (node.custom) stages.push(INSTEAD);
    if (node.accumulated?.size) stages.push(ACCUMULATED);
    return stages;
  }

  #pass(node: GraphNode): void {
    if (this.#options.leading && !this.#options.leading.has(node)) return;
    const stages = this.#stages(node);
    const arrived = this.#arrived.get(node);
    if (stages.includes(BEFORE)) this.#callHooks(node, arrived);
    if (!this.#runs(node)) return;
    let given = node.edges.map((edge) => arrived !== undefined && this.#leads(edge));
    if (stages.includes(INSTEAD)) given = this.#differentiate(node);
    if (stages.includes(ACCUMULATED)) this.#accumulated(node);
    for (const [at, edge] of node.edges.entries()) if (edge && given[at]) this.#deliver(edge);
  }

  #callHooks(node: GraphNode, arrived: ReadonlySet<number> | undefined): void {
    const found = this.#advance(node.outputs);
    const supplied: (Tensor | null)[] = found.map(() => null);
    this.#withModes(() => {
      for (const [slot, hooks] of node.hooks ?? []) {
        let gradient = found[slot];
        if (!gradient || !arrived?.has(slot)) continue;
        for (const hook of [...hooks]) {
          const replaced: unknown = hook(gradient);
          if (replaced === undefined) continue;
          if (!(replaced instanceof Tensor)) throw new ArgumentTypeError("a tensor's hook returns a tensor or nothing");
          gradient = supplied[slot] = replaced;
        }
      }
    });
    this.#supplied = supplied;
  }

  #differentiate(node: GraphNode): boolean[] {
    const found = this.#advance(node.outputs);
    const custom = node.custom!;
    const gradients = this.#withModes(() => custom.differentiate(found)); // zeros stand for what did not arrive
    if (gradients.length !== node.edges.length) {
      throw new GraphError(
        `the derivative of ${custom.name} returned ${gradients.length} gradients; it has ${node.edges.length} inputs`,
      );
    }
    this.#supplied = gradients.map((gradient, at) => (this.#leads(node.edges[at]!) ? gradient : null));
    return this.#supplied.map((gradient) => gradient !== null);
  }

  #accumulated(node: GraphNode): void {
    this.#advance(0);
    const leaf = node.leaf?.deref();
    if (!leaf) return;
    leaf.gradArrived();
    this.#withModes(() => {
      for (const hook of [...node.accumulated!]) hook(leaf);
    });
  }

  /** Go on to the next pause. Returns the gradients that stand there. */
  #advance(count: number): Tensor[] {
    const session = this.#run.session;
    const values = [this.#run, this.#step, this.#supplied, count];
    const first = session.record(lookup("advance"), values, count);
    this.#step += 1;
    this.#supplied = [];
    return Array.from({ length: count }, (_, at) => new Tensor(session, first + at, UNKNOWN));
  }

  #deliver(edge: Edge): void {
    const slots = this.#arrived.get(edge.node) ?? new Set();
    this.#arrived.set(edge.node, slots.add(edge.slot));
  }

  /** Callbacks record history exactly when the backward itself is recorded. */
  #withModes<T>(body: () => T): T {
    const grad = this.#options.createGraph ? GRAD_MODE : 0;
    return withFlags((modeFlags() & ~GRAD_MODE) | grad, body);
  }
}

/** A tensor that names the node on the server. */
function placeOf(node: GraphNode): Tensor {
  const place = node.custom?.place ?? node.place ?? node.leaf?.deref();
  if (!place) throw new GraphError(`the ${node.name} node has callbacks, but nothing names it any more`);
  return place;
}
