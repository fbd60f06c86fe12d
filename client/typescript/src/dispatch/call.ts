/** From a call with bound arguments to a record and the proxies of its results. */

import { GraphError, ShapeError } from "../errors.ts";
import { isGradEnabled } from "../graph/modes.ts";
import { GraphNode } from "../graph/nodes.ts";
import type { Edge } from "../graph/nodes.ts";
import type { Op } from "../ops/op.ts";
import type { Value } from "../ops/values.ts";
import { infer } from "../rules/infer.ts";
import { setDefaultFloatDType } from "../rules/promotion.ts";
import { currentSession } from "../session/current.ts";
import { isTensor } from "../session/scopes.ts";
import type { Session } from "../session/session.ts";
import { carriesGradient } from "../tensor/dtypes.ts";
import { Tensor } from "../tensor/tensor.ts";

function sessionOf(values: readonly Value[]): Session {
  for (const value of values) {
    if (isTensor(value)) return value.session;
    if (Array.isArray(value)) {
      const found = value.find(isTensor);
      if (found) return found.session;
    }
  }
  return currentSession();
}

function checkAlive(tensor: Tensor, op: Op): void {
  if (tensor.disposed) throw new GraphError(`${op.name}: an operand was disposed; keep() it, or return it from tidy()`);
}

/** The edges to the operands that gradients flow to, or `undefined` if none requires one. */
function edgesOf(op: Op, values: readonly Value[]): (Edge | null)[] | undefined {
  const edges: (Edge | null)[] = [];
  let requires = false;
  const visit = (value: unknown, flows: boolean): void => {
    if (!isTensor(value)) return;
    checkAlive(value, op);
    const edge = flows ? (value.gradientEdge ?? null) : null;
    if (flows) edges.push(edge);
    requires ||= edge !== null;
  };
  for (const [at, value] of values.entries()) {
    const flows = op.differentiable.includes(at);
    if (Array.isArray(value)) for (const each of value) visit(each, flows);
    else visit(value, flows);
  }
  return requires && isGradEnabled() ? edges : undefined;
}

/**
 * Record an op with values in the order of its parameters.
 *
 * @param results the number of results, where the op leaves it open.
 * @param session where there is no tensor among the values; default: the current one.
 * @throws ShapeError, ArgumentTypeError for what is wrong by shapes and types; the rest is found by the server.
 */
export function call(
  op: Op,
  values: readonly Value[],
  results: number = op.results ?? -1,
  session = sessionOf(values),
): Tensor[] {
  if (results < 0) throw new ShapeError(`${op.name}: the number of results depends on a shape that is not known yet`);
  const edges = edgesOf(op, values);
  const target = op.inplace ? (values[0] as Tensor) : undefined;
  if (target && edges && target.requiresGrad && target.isLeaf) {
    throw new GraphError(`${op.name} writes to a leaf that requires a gradient: use noGrad(() => ...), or clone() it`);
  }
  setDefaultFloatDType(session.defaultDtype);
  const infos = infer(op, values, results);
  const first = session.record(op, values, results);
  if (target && edges) rebase(target, op, edges);
  let node: GraphNode | undefined;
  const made: Tensor[] = [];
  for (let at = 0; at < results; at++) {
    const info = infos[at]!;
    const requires = edges !== undefined && !op.constant.includes(at) && carriesGradient(info.dtype);
    if (requires) node ??= new GraphNode(nodeName(op), edges, results);
    const edge = requires ? { node: node!, slot: at } : undefined;
    const tensor = new Tensor(session, first + at, info, requires, edge);
    if (op.view && isTensor(values[0])) tensor.base = values[0].base ?? values[0];
    made.push(tensor);
  }
  return made;
}

const nodeNames = new Map<Op, string>();

/** The name of an op's node: `MulBackward` of `mul` and `mul_`. */
function nodeName(op: Op): string {
  let name = nodeNames.get(op);
  if (name === undefined) {
    const base = op.base ?? op.name;
    name = `${base.replace(/(?:^|_)([a-z0-9])/g, (_, letter: string) => letter.toUpperCase())}Backward`;
    nodeNames.set(op, name);
  }
  return name;
}

/** A tensor was written to: it has a new history, and so has the tensor whose memory it views. */
function rebase(target: Tensor, op: Op, edges: (Edge | null)[]): void {
  const edge = { node: new GraphNode(nodeName(op), edges, 1), slot: 0 };
  target.rebase(edge);
  const base = target.base;
  if (base) {
    const node = new GraphNode("CopySlices", [base.gradientEdge ?? null, edge], 1);
    base.rebase({ node, slot: 0 });
  }
}
