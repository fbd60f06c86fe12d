/** `backward` and `grad`. They are recorded; nothing waits for the server. */

import { GraphError } from "../errors.ts";
import { GraphNode, reachable } from "../graph/nodes.ts";
import type { Edge } from "../graph/nodes.ts";
import { lookup } from "../ops/op.ts";
import { Tensor } from "../tensor/tensor.ts";
import type { BackwardOptions } from "../tensor/tensor.ts";
import { CallbackBackward } from "./callback_backward.ts";

const FREED = "the graph was freed by an earlier backward; pass retainGraph: true to that one";

function startsOf(roots: readonly Tensor[], gradients: readonly (Tensor | null)[]): Edge[] {
  if (!roots.length) throw new GraphError("there is no tensor to differentiate");
  if (roots.length !== gradients.length) {
    throw new GraphError(`${roots.length} tensors come with ${gradients.length} gradients`);
  }
  return roots.map((root, at) => {
    const edge = root.gradientEdge;
    if (!edge) throw new GraphError(`${root} does not require a gradient and has no history: nothing to differentiate`);
    if (edge.node.freed) throw new GraphError(FREED);
    const gradient = gradients[at];
    if (!gradient && root.numel !== undefined && root.numel !== 1) {
      throw new GraphError(`a gradient can be left out only for a tensor of one element, not for ${root}`);
    }
    if (gradient?.shape && root.shape && gradient.shape.join() !== root.shape.join()) {
      throw new GraphError(`the gradient ${gradient} has another shape than its tensor, ${root}`);
    }
    return edge;
  });
}

/** Nodes through which one of the targets can be reached. */
function leadingTo(nodes: ReadonlySet<GraphNode>, targets: ReadonlySet<GraphNode>): Set<GraphNode> {
  const leading = new Set([...targets].filter((node) => nodes.has(node)));
  // A node is younger than those it leads to, so one pass by age finds all.
  for (const node of [...nodes].sort((a, b) => a.order - b.order)) {
    if (node.edges.some((edge) => edge && leading.has(edge.node))) leading.add(node);
  }
  return leading;
}

function checkNotFreed(nodes: ReadonlySet<GraphNode>): void {
  for (const node of nodes) if (node.freed) throw new GraphError(FREED);
}

/** Note which tensors receive a gradient. */
function noteArrivals(nodes: ReadonlySet<GraphNode>, wanted: ReadonlySet<GraphNode> | undefined): void {
  for (const node of nodes) {
    if (!wanted || wanted.has(node)) node.leaf?.deref()?.gradArrived();
    for (const retaining of node.retaining?.values() ?? []) retaining.deref()?.gradArrived();
  }
}

/**
 * Accumulate gradients of several tensors.
 *
 * @throws GraphError when there is no graph, it was freed, or a gradient is missing.
 */
export function backward(
  roots: readonly Tensor[],
  gradients: readonly (Tensor | null)[] = roots.map(() => null),
  options: BackwardOptions = {},
): void {
  const starts = startsOf(roots, gradients);
  const { inputs, createGraph = false } = options;
  const retainGraph = options.retainGraph ?? createGraph;
  const nodes = reachable(starts.map((edge) => edge.node));
  checkNotFreed(nodes);
  const targets = inputs?.map((input) => {
    const edge = input.gradientEdge;
    if (!edge) throw new GraphError(`${input} does not require a gradient`);
    return edge.node;
  });
  const wanted = targets && new Set(targets);
  if ([...nodes].some((node) => node.acts)) {
    const leading = wanted && leadingTo(nodes, wanted);
    new CallbackBackward(roots, gradients, starts, nodes, {
      inputs: inputs ?? null,
      leading,
      wanted,
      accumulate: true,
      retainGraph,
      createGraph,
    }).run();
  } else {
    const values = [roots, gradients, inputs ?? null, options.retainGraph ?? null, createGraph];
    roots[0]!.session.record(lookup("backward"), values, 0);
  }
  noteArrivals(nodes, wanted);
  if (!retainGraph) for (const node of nodes) node.free();
  roots[0]!.session.frameEnds();
}

export interface GradOptions {
  gradOutputs?: readonly (Tensor | null)[] | undefined;
  retainGraph?: boolean | undefined;
  createGraph?: boolean | undefined;
  /** Allow inputs that the outputs do not depend on; their gradient is `null`. */
  allowUnused?: boolean | undefined;
}

/**
 * The gradients of outputs with respect to inputs. No `grad` changes.
 *
 * @throws GraphError as {@link backward}, and for an input that is not used unless `allowUnused`.
 */
export function grad(
  outputs: Tensor | readonly Tensor[],
  inputs: readonly Tensor[],
  options: GradOptions = {},
): (Tensor | null)[] {
  const roots = outputs instanceof Tensor ? [outputs] : outputs;
  const gradients = options.gradOutputs ?? roots.map(() => null);
  const starts = startsOf(roots, gradients);
  const { createGraph = false, allowUnused = false } = options;
  const retainGraph = options.retainGraph ?? createGraph;
  const nodes = reachable(starts.map((edge) => edge.node));
  checkNotFreed(nodes);
  const edges = inputs.map((input) => {
    const edge = input.gradientEdge;
    if (!edge) throw new GraphError(`${input} does not require a gradient`);
    if (!nodes.has(edge.node) && !allowUnused) {
      throw new GraphError(`${input} was not used to compute the outputs; pass allowUnused: true to get null for it`);
    }
    return edge;
  });
  const wanted = new Set(edges.map((edge) => edge.node));
  const leading = leadingTo(nodes, wanted);
  const session = roots[0]!.session;
  let made: Tensor[];
  if ([...leading].some((node) => node.acts)) {
    made = new CallbackBackward(roots, gradients, starts, nodes, {
      inputs,
      leading,
      wanted,
      accumulate: false,
      retainGraph,
      createGraph,
    }).run(allowUnused);
  } else {
    const values = [roots, inputs, gradients, options.retainGraph ?? null, createGraph, allowUnused];
    const first = session.record(lookup("grad"), values, inputs.length);
    made = inputs.map((input, at) => new Tensor(session, first + at, infoOf(input)));
  }
  if (createGraph) for (const [at, gradient] of made.entries()) attachHistory(gradient, roots, inputs[at]!, nodes);
  if (!retainGraph) for (const node of nodes) node.free();
  return made.map((gradient, at) => {
    if (nodes.has(edges[at]!.node)) return gradient;
    gradient.dispose();
    return null;
  });
}

/** What is known of the gradient for a tensor. */
export function infoOf(tensor: Tensor): { dtype: Tensor["dtype"]; shape: Tensor["shape"]; device: string } {
  return { dtype: tensor.dtype, shape: tensor.shape, device: tensor.device };
}

/**
 * A gradient that was computed with `createGraph` depends on all that the graph was made of. The mirror gives it one
 * node with an edge to each leaf: which derivatives vanish is known to the server.
 */
export function attachHistory(
  gradient: Tensor,
  roots: readonly Tensor[],
  input: Tensor,
  nodes: ReadonlySet<GraphNode>,
): void {
  const edges: (Edge | null)[] = roots.map((root) => root.gradientEdge ?? null);
  for (const node of nodes) if (node.leaf && node.leaf.deref() !== input) edges.push({ node, slot: 0 });
  if (input.gradientEdge) edges.push(input.gradientEdge);
  gradient.rebase({ node: new GraphNode("GradBackward", edges, 1), slot: 0 });
}
