/** The shapes of decompositions, solutions, recurrent layers, and of contractions by letters. */

import type { CallArguments, ShapeRule, Shapes } from "./call_arguments.ts";
import { broadcast, canonicalDim, canonicalDims, listed, withExtent } from "./extents.ts";
import type { Shape } from "./operands.ts";

/** A rule from the batch dimensions, rows and columns of the first tensor, where it is a batch of matrices. */
function ofMatrix(rule: (batch: Shape, rows: number, columns: number, call: CallArguments) => Shapes): ShapeRule {
  return (call) => {
    const shape = call.shape(0);
    if (shape === undefined || shape.length < 2) return [];
    return rule(shape.slice(0, -2), shape[shape.length - 2]!, shape[shape.length - 1]!, call);
  };
}

const square = (results: number): ShapeRule =>
  ofMatrix((batch, rows, columns, call) => {
    if (rows !== columns) call.mismatch(`needs square matrices, got ${listed([...batch, rows, columns])}`);
    return new Array<Shape>(results).fill(batch);
  });

/** A layer of a recurrence: outputs of every step, then the last states. */
function layer(call: CallArguments, gates: number, states: number): Shapes {
  const [x, hx, weight] = [call.shape(0), call.shape(1), call.values.length > 3 ? shapeOf(call, "w_hh") : undefined];
  if (x === undefined || hx === undefined || weight === undefined) return [];
  const hidden = weight[0]! / gates;
  const outputs = shapeOf(call, "w_hr")?.[0] ?? hidden;
  const batch = hx[0]!;
  const all: Shape[] = [
    [...x.slice(0, -1), outputs],
    [batch, outputs],
  ];
  return states === 2 ? [...all, [batch, hidden]] : all;
}

function shapeOf(call: CallArguments, name: string): Shape | undefined {
  return call.shape(call.op.params.findIndex((param) => param.name === name));
}

/** Letters of an equation, one for each dimension; the dimensions of `...` have capital Greek ones. */
function letters(term: string, ndim: number): string[] {
  const names = term.replace(/\s/g, "");
  const at = names.indexOf("...");
  if (at < 0) return [...names];
  const count = ndim - (names.length - 3);
  const filled = Array.from({ length: count }, (_, i) => `.${count - i}`);
  return [...names.slice(0, at), ...filled, ...names.slice(at + 3)];
}

function einsum(call: CallArguments): Shapes {
  const shapes = call.shapes();
  if (shapes === undefined) return [];
  const [inputs, output] = String(call.values[0]).split("->") as [string, string | undefined];
  const terms = inputs.split(",").map((term, i) => letters(term, shapes[i]?.length ?? 0));
  if (terms.length !== shapes.length || terms.some((term, i) => term.length !== shapes[i]!.length)) {
    call.mismatch(`the equation ${String(call.values[0])} does not fit shapes ${shapes.map(listed).join(" and ")}`);
  }
  const extents = new Map<string, number>();
  const counts = new Map<string, number>();
  terms.forEach((term, i) =>
    term.forEach((letter, at) => {
      extents.set(letter, Math.max(extents.get(letter) ?? 1, shapes[i]![at]!));
      if (shapes[i]![at] === 0) extents.set(letter, 0);
      counts.set(letter, (counts.get(letter) ?? 0) + 1);
    }),
  );
  const dots = [...extents.keys()]
    .filter((letter) => letter.startsWith("."))
    .sort()
    .reverse();
  const once = [...counts].filter(([letter, n]) => n === 1 && !letter.startsWith(".")).map(([letter]) => letter);
  const named = output === undefined ? [...dots, ...once.sort()] : outputLetters(output, dots);
  return [named.map((letter) => extents.get(letter)!)];
}

function outputLetters(output: string, dots: readonly string[]): string[] {
  const names = output.replace(/\s/g, "");
  const at = names.indexOf("...");
  return at < 0 ? [...names] : [...names.slice(0, at), ...dots, ...names.slice(at + 3)];
}

function tensordot(call: CallArguments): Shapes {
  const [a, b] = [call.shape(0), call.shape(1)];
  if (a === undefined || b === undefined) return [];
  const dims = call.get("dims") as number | readonly Shape[];
  if (typeof dims === "number") return [[...a.slice(0, a.length - dims), ...b.slice(dims)]];
  const [left, right] = dims.map((list, i) => list.map((dim) => canonicalDim("tensordot", dim, [a, b][i]!.length)));
  return [[...a.filter((_, i) => !left!.includes(i)), ...b.filter((_, i) => !right!.includes(i))]];
}

const solved: ShapeRule = ofMatrix((batch, rows, _, call) => {
  const other = call.shape(1);
  if (other === undefined) return [];
  const vector = other.length === 1 || listed(other) === listed([...batch, rows]);
  if (vector) return [undefined, batch];
  const common = broadcast(call.name, [batch, other.slice(0, -2)]);
  return [[...common, ...other.slice(-2)], batch];
});

export const MATRICES: Readonly<Record<string, ShapeRule>> = {
  det: square(1),
  slogdet: square(2),
  inverse: (call) => [call.shape(0)],
  linalg_inv_ex: ofMatrix((batch, rows, columns) => [[...batch, rows, columns], batch]),
  linalg_cholesky_ex: ofMatrix((batch, rows, columns) => [[...batch, rows, columns], batch]),
  linalg_solve: (call) => solved(call).slice(0, 1),
  linalg_solve_ex: solved,
  linalg_solve_triangular: (call) => solved(call).slice(0, 1),
  triangular_solve: () => [],
  cholesky_solve: () => [],
  linalg_eigh: ofMatrix((batch, rows, columns) => [
    [...batch, rows],
    [...batch, rows, columns],
  ]),
  linalg_eigvalsh: ofMatrix((batch, rows) => [[...batch, rows]]),
  linalg_eig: ofMatrix((batch, rows, columns) => [
    [...batch, rows],
    [...batch, rows, columns],
  ]),
  linalg_eigvals: ofMatrix((batch, rows) => [[...batch, rows]]),
  linalg_svdvals: ofMatrix((batch, rows, columns) => [[...batch, Math.min(rows, columns)]]),
  linalg_svd: ofMatrix((batch, rows, columns, call) => {
    const least = Math.min(rows, columns);
    const full = call.flag("full_matrices");
    return [
      [...batch, rows, full ? rows : least],
      [...batch, least],
      [...batch, full ? columns : least, columns],
    ];
  }),
  linalg_pinv: ofMatrix((batch, rows, columns) => [[...batch, columns, rows]]),
  linalg_qr: ofMatrix((batch, rows, columns, call) => {
    const least = Math.min(rows, columns);
    const mode = call.get("mode");
    if (mode === "r") return [[0], [...batch, least, columns]];
    const inner = mode === "complete" ? rows : least;
    return [
      [...batch, rows, inner],
      [...batch, inner, columns],
    ];
  }),
  geqrf: ofMatrix((batch, rows, columns) => [
    [...batch, rows, columns],
    [...batch, Math.min(rows, columns)],
  ]),
  rnn_layer: (call) => layer(call, 1, 1),
  gru_layer: (call) => layer(call, 3, 1),
  lstm_layer: (call) => layer(call, 4, 2),
  einsum,
  tensordot,
  cdist: (call) => {
    const [a, b] = [call.shape(0), call.shape(1)];
    if (a === undefined || b === undefined || a.length < 2 || b.length < 2) return [];
    return [[...broadcast("cdist", [a.slice(0, -2), b.slice(0, -2)]), a[a.length - 2]!, b[b.length - 2]!]];
  },
  kron: (call) => {
    const [a, b] = [call.shape(0), call.shape(1)];
    if (a === undefined || b === undefined) return [];
    const ndim = Math.max(a.length, b.length);
    const full = (shape: Shape): number[] => [...new Array<number>(ndim - shape.length).fill(1), ...shape];
    const other = full(b);
    return [full(a).map((n, i) => n * other[i]!)];
  },
  cosine_similarity: (call) => {
    const shapes = call.shapes();
    if (shapes === undefined) return [];
    const shape = broadcast("cosine_similarity", shapes);
    const at = call.dim(shape);
    return [shape.filter((_, i) => i !== at)];
  },
  diag_embed: (call) => {
    const shape = call.shape(0);
    if (shape === undefined || shape.length === 0) return [];
    const ndim = shape.length + 1;
    const at = canonicalDims("diag_embed", [call.number("dim1"), call.number("dim2")], ndim);
    const side = shape[shape.length - 1]! + Math.abs(call.number("offset"));
    const rest = shape.slice(0, -1);
    return [Array.from({ length: ndim }, (_, i) => (at.includes(i) ? side : rest.shift()!))];
  },
  glu: (call) => {
    const shape = call.shape(0);
    if (shape === undefined || shape.length === 0) return [];
    const at = call.dim(shape);
    return [withExtent(shape, at, shape[at]! / 2)];
  },
  view_as_real: (call) => {
    const shape = call.shape(0);
    return [shape && [...shape, 2]];
  },
  view_as_complex: (call) => [call.shape(0)?.slice(0, -1)],
  masked_scatter: (call) => {
    const [shape, mask] = [call.shape(0), call.shape(1)];
    return [shape && mask && broadcast("masked_scatter", [shape, mask])];
  },
  take_along_dim: (call) => {
    const [shape, index] = [call.shape(0), call.shape(1)];
    if (shape === undefined || index === undefined || call.get("dim") === null) return [];
    const at = call.dim(shape);
    if (shape.length === 0) return [[]];
    const common = broadcast("take_along_dim", [withExtent(shape, at, 1), withExtent(index, at, 1)]);
    return [withExtent(common, at, index[at]!)];
  },
  nonzero_static: (call) => {
    const shape = call.shape(0);
    return [shape && [call.number("size"), shape.length]];
  },
  fft_r2c: (call) => {
    const shape = call.shape(0);
    const last = call.list("dim").at(-1);
    if (shape === undefined || last === undefined || !call.flag("onesided")) return [shape];
    const at = canonicalDim("fft_r2c", last, shape.length);
    return [withExtent(shape, at, Math.floor(shape[at]! / 2) + 1)];
  },
  fft_c2r: (call) => {
    const shape = call.shape(0);
    const last = call.list("dim").at(-1);
    if (shape === undefined || last === undefined) return [];
    return [withExtent(shape, canonicalDim("fft_c2r", last, shape.length), call.number("last_size"))];
  },
  linalg_lu: ofMatrix((batch, rows, columns, call) => {
    const least = Math.min(rows, columns);
    const pivoted: Shape = call.flag("pivot") ? [...batch, rows, rows] : [0];
    return [pivoted, [...batch, rows, least], [...batch, least, columns]];
  }),
  pdist: (call) => {
    const rows = call.shape(0)?.[0];
    return [rows === undefined ? undefined : [(rows * (rows - 1)) / 2]];
  },
  histc: (call) => [[call.number("bins")]],
  feature_dropout: (call) => {
    const shape = call.shape(0);
    return [shape, shape && shape.map((n, i) => (i < 2 ? n : 1))];
  },
  attention: (call) => {
    const [query, value] = [call.shape(0), call.shape(2)];
    return [query && value && [...query.slice(0, -1), value[value.length - 1]!]];
  },
  attention_backward: (call) => [call.shape(1), call.shape(2), call.shape(3)],
};
