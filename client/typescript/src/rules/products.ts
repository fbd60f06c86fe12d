/** The shapes of matrix products. */

import type { CallArguments, ShapeRule } from "./call_arguments.ts";
import { broadcast, listed } from "./extents.ts";
import type { Shape } from "./operands.ts";

/** A rule from the shapes of the first tensors, all of which must be known. */
function ofShapes(count: number, rule: (call: CallArguments, ...shapes: Shape[]) => Shape | undefined): ShapeRule {
  return (call) => {
    const shapes: Shape[] = [];
    for (let i = 0; i < count; i += 1) {
      const shape = call.shape(i);
      if (shape === undefined) return [undefined];
      shapes.push(shape);
    }
    return [rule(call, ...shapes)];
  };
}

function ranks(call: CallArguments, ...wanted: [Shape, number][]): void {
  for (const [shape, ndim] of wanted) {
    if (shape.length !== ndim) call.mismatch(`needs ${ndim} dimensions, got ${listed(shape)}`);
  }
}

function agree(call: CallArguments, a: Shape, b: Shape, left: number, right: number): void {
  if (left !== right) call.mismatch(`shapes ${listed(a)} and ${listed(b)} do not fit: ${left} is not ${right}`);
}

function matmul(call: CallArguments, a: Shape, b: Shape): Shape {
  if (a.length === 0 || b.length === 0) call.mismatch(`needs at least 1 dimension, got ${listed(a)} and ${listed(b)}`);
  const rows = a.length > 1 ? [a[a.length - 2]!] : [];
  const columns = b.length > 1 ? [b[b.length - 1]!] : [];
  agree(call, a, b, a[a.length - 1]!, b.length > 1 ? b[b.length - 2]! : b[0]!);
  const batch = a.length > 2 || b.length > 2 ? broadcast(call.name, [a.slice(0, -2), b.slice(0, -2)]) : [];
  return [...batch, ...rows, ...columns];
}

function mm(call: CallArguments, a: Shape, b: Shape): Shape {
  ranks(call, [a, 2], [b, 2]);
  agree(call, a, b, a[1]!, b[0]!);
  return [a[0]!, b[1]!];
}

function bmm(call: CallArguments, a: Shape, b: Shape): Shape {
  ranks(call, [a, 3], [b, 3]);
  agree(call, a, b, a[0]!, b[0]!);
  agree(call, a, b, a[2]!, b[1]!);
  return [a[0]!, a[1]!, b[2]!];
}

function linear(call: CallArguments, x: Shape, weight: Shape): Shape | undefined {
  if (x.length === 0 || weight.length === 0 || weight.length > 2) return undefined;
  agree(call, x, weight, x[x.length - 1]!, weight[weight.length - 1]!);
  return [...x.slice(0, -1), ...weight.slice(0, -1)];
}

export const PRODUCTS: Readonly<Record<string, ShapeRule>> = {
  matmul: ofShapes(2, matmul),
  mm: ofShapes(2, mm),
  bmm: ofShapes(2, bmm),
  mv: ofShapes(2, (call, a, b) => {
    ranks(call, [a, 2], [b, 1]);
    agree(call, a, b, a[1]!, b[0]!);
    return [a[0]!];
  }),
  dot: ofShapes(2, (call, a, b) => {
    ranks(call, [a, 1], [b, 1]);
    agree(call, a, b, a[0]!, b[0]!);
    return [];
  }),
  outer: ofShapes(2, (call, a, b) => {
    ranks(call, [a, 1], [b, 1]);
    return [a[0]!, b[0]!];
  }),
  inner: ofShapes(2, (call, a, b) => {
    if (a.length === 0 || b.length === 0) return broadcast(call.name, [a, b]);
    agree(call, a, b, a[a.length - 1]!, b[b.length - 1]!);
    return [...a.slice(0, -1), ...b.slice(0, -1)];
  }),
  addmm: ofShapes(3, (call, _, a, b) => mm(call, a, b)),
  addmv: ofShapes(3, (_, __, a) => [a[0]!]),
  addr: ofShapes(3, (_, __, a, b) => [a[0]!, b[0]!]),
  baddbmm: ofShapes(3, (call, _, a, b) => bmm(call, a, b)),
  addbmm: ofShapes(3, (call, _, a, b) => bmm(call, a, b).slice(1)),
  linear: ofShapes(2, linear),
  bilinear: ofShapes(3, (_, a, __, weight) => [...a.slice(0, -1), weight[0]!]),
  scaled_dot_product_attention: ofShapes(3, (_, query, __, value) =>
    query.length < 2 || query.length !== value.length ? undefined : [...query.slice(0, -1), value[value.length - 1]!],
  ),
};
