/**
 * The client's mirror of the autograd graph: nodes and edges, no values. It answers which leaves receive a gradient
 * and in what order callbacks run, without a round trip.
 */

import type { Tensor } from "../tensor/tensor.ts";

/** An output of a node. */
export interface Edge {
  readonly node: GraphNode;
  readonly slot: number;
}

/** Replaces a gradient, or leaves it as it is. */
export type GradientHook = (gradient: Tensor) => Tensor | void;
/** Runs after a leaf has accumulated its gradient. */
export type AccumulatedHook = (leaf: Tensor) => void;

/** The derivative of a function of the program's own: gradients of its outputs to those of its inputs. */
export interface CustomDerivative {
  readonly name: string;
  differentiate(gradients: Tensor[]): (Tensor | null)[];
  /** Names the node on the server. */
  readonly place: Tensor;
}

let made = 0;

/** A node: an op that was recorded, or, without edges, the accumulation of a leaf's gradient. */
export class GraphNode {
  readonly name: string;
  readonly edges: readonly (Edge | null)[];
  readonly outputs: number;
  /** Later nodes run first in backward. */
  readonly order = (made += 1);
  /** The leaf that accumulates here. */
  readonly leaf: WeakRef<Tensor> | undefined;
  /** By slot. */
  hooks: Map<number, Set<GradientHook>> | undefined;
  accumulated: Set<AccumulatedHook> | undefined;
  custom: CustomDerivative | undefined;
  /** A tensor that names the node on the server. It must not keep values, so it is one of `place_of`. */
  place: Tensor | undefined;
  /** Tensors that want their gradient although they are no leaves, by slot. */
  retaining: Map<number, WeakRef<Tensor>> | undefined;
  freed = false;

  constructor(name: string, edges: readonly (Edge | null)[], outputs: number, leaf?: Tensor) {
    this.name = name;
    this.edges = edges;
    this.outputs = outputs;
    this.leaf = leaf && new WeakRef(leaf);
  }

  /** Whether the program is called while gradients pass. */
  get acts(): boolean {
    return this.custom !== undefined || !!this.hooks?.size || !!this.accumulated?.size;
  }

  /** Forget what leads on, after a backward that freed the graph. */
  free(): void {
    if (!this.edges.length) return;
    this.freed = true;
    this.custom = undefined;
    (this as { edges: readonly (Edge | null)[] }).edges = [];
  }
}

/** All nodes that gradients from these can reach. */
export function reachable(starts: Iterable<GraphNode>): Set<GraphNode> {
  const found = new Set(starts);
  for (const node of found) for (const edge of node.edges) if (edge) found.add(edge.node);
  return found;
}

/** Each node after those that feed gradients to it; later ones first, but leaves as soon as they can. */
export function inOrder(starts: readonly GraphNode[], nodes: ReadonlySet<GraphNode>): GraphNode[] {
  const feeding = new Map<GraphNode, number>();
  const count = (node: GraphNode): void => void feeding.set(node, (feeding.get(node) ?? 0) + 1);
  starts.forEach(count);
  for (const node of nodes) for (const edge of node.edges) if (edge) count(edge.node);
  const ready = new Heap();
  const order: GraphNode[] = [];
  const feed = (node: GraphNode): void => {
    const left = feeding.get(node)! - 1;
    feeding.set(node, left);
    if (!left) ready.push(node);
  };
  starts.forEach(feed);
  for (let node = ready.pop(); node; node = ready.pop()) {
    order.push(node);
    for (const edge of node.edges) if (edge) feed(edge.node);
  }
  return order;
}

/** Nodes by the order in which backward takes them. */
class Heap {
  readonly #items: GraphNode[] = [];
  readonly #before = (a: GraphNode, b: GraphNode): boolean =>
    !a.edges.length === !b.edges.length ? a.order > b.order : !a.edges.length;

  push(node: GraphNode): void {
    const items = this.#items;
    let at = items.push(node) - 1;
    while (at) {
      const parent = (at - 1) >> 1;
      if (!this.#before(items[at]!, items[parent]!)) break;
      [items[at], items[parent]] = [items[parent]!, items[at]!];
      at = parent;
    }
  }

  pop(): GraphNode | undefined {
    const items = this.#items;
    const top = items[0];
    const last = items.pop();
    if (last === undefined || !items.length) return top;
    items[0] = last;
    for (let at = 0; ;) {
      let best = at;
      for (const child of [2 * at + 1, 2 * at + 2]) {
        if (child < items.length && this.#before(items[child]!, items[best]!)) best = child;
      }
      if (best === at) return top;
      [items[at], items[best]] = [items[best]!, items[at]!];
      at = best;
    }
  }
}
