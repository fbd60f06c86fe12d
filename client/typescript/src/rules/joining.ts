/** The shapes of joined, chosen and created tensors. */

import { ArgumentValueError, ArgumentError } from "../errors.ts";
import { Float, isTensor, type TensorLike, type Value } from "../ops/values.ts";
import { ofFirst, type ShapeRule } from "./call_arguments.ts";
import { broadcast, canonicalDim, listed, numel, reduced, withExtent } from "./extents.ts";
import type { Shape } from "./operands.ts";

const size: ShapeRule = (call) => {
  const wanted = call.list("size");
  if (wanted.some((n) => n < 0)) call.mismatch(`size ${listed(wanted)} must not be negative`);
  return [wanted];
};

const number = (value: Value | undefined): number => (value instanceof Float ? value.value : Number(value));

function listOf(value: Value | undefined): readonly TensorLike[] {
  return (value as readonly Value[]).filter(isTensor);
}

/** The shape of the values of an index by tensors, one or none a dimension. */
const indexed: ShapeRule = (call) => {
  const shape = call.shape(0);
  const indices = call.get("indices") as readonly Value[];
  if (shape === undefined) return [undefined];
  const tensors = indices.filter(isTensor);
  // The number of elements that a mask chooses depends on data.
  const isMask = (one: TensorLike): boolean => one.dtype === "bool" || one.dtype === "uint8";
  if (tensors.some((one) => one.shape === undefined || isMask(one))) return [undefined];
  const shapes = tensors.map((one) => one.shape!);
  const chosen = broadcast("index", shapes);
  const places = indices.flatMap((one, i) => (isTensor(one) ? [i] : []));
  if (places.length === 0) return [shape];
  const rest = shape.filter((_, i) => !places.includes(i));
  const adjacent = places[places.length - 1]! - places[0]! + 1 === places.length;
  const at = adjacent ? places[0]! : 0;
  return [[...rest.slice(0, at), ...chosen, ...rest.slice(at)]];
};

/** How many numbers `arange` gives. */
function arangeCount(start: number, end: number, step: number): number {
  if (step === 0) throw new ArgumentError("arange: the step is 0", { op: "arange" });
  if (step > 0 ? end < start : end > start) {
    throw new ArgumentError(`arange: a step of ${step} has the wrong sign from ${start} to ${end}`, { op: "arange" });
  }
  return Math.ceil((end - start) / step);
}

const triangle = (rows: number, columns: number, offset: number): number => {
  let count = 0;
  for (let row = 0; row < rows; row += 1) count += Math.min(Math.max(row + offset + 1, 0), columns);
  return count;
};

const searched: ShapeRule = (call) => {
  const at = call.name === "searchsorted" ? 1 : 0;
  return [isTensor(call.values[at]) ? call.shape(at) : []];
};

export const JOINING: Readonly<Record<string, ShapeRule>> = {
  cat: (call) => {
    const tensors = listOf(call.values[0]);
    if (tensors.length === 0) throw new ArgumentValueError("cat needs at least one tensor", { op: "cat" });
    if (tensors.some((one) => one.shape === undefined)) return [undefined];
    const all = tensors.map((one) => one.shape!);
    all.forEach((shape, i) => {
      if (shape.length === 0) call.mismatch(`tensor ${i} has no dimension to join along; use stack`);
    });
    const real = all.filter((shape) => shape.length !== 1 || shape[0] !== 0);
    const first = real[0];
    if (first === undefined) return [[0]];
    const at = call.dim(first);
    for (const shape of real) {
      if (shape.length !== first.length || shape.some((n, i) => i !== at && n !== first[i])) {
        call.mismatch(`shapes ${listed(first)} and ${listed(shape)} must agree in all dimensions but ${at}`);
      }
    }
    return [
      withExtent(
        first,
        at,
        real.reduce((sum, shape) => sum + shape[at]!, 0),
      ),
    ];
  },
  stack: (call) => {
    const tensors = listOf(call.values[0]);
    const first = tensors[0]?.shape;
    if (tensors.length === 0) throw new ArgumentError("stack needs at least one tensor", { op: "stack" });
    if (first === undefined || tensors.some((one) => one.shape === undefined)) return [undefined];
    tensors.forEach((one, i) => {
      if (listed(one.shape!) !== listed(first)) {
        call.mismatch(`all tensors must have one shape, got ${listed(first)} and, at ${i}, ${listed(one.shape!)}`);
      }
    });
    const at = canonicalDim("stack", call.number("dim"), first.length + 1);
    return [[...first.slice(0, at), tensors.length, ...first.slice(at)]];
  },
  gather: (call) => [call.shape(2)],
  take: (call) => [call.shape(1)],
  index: indexed,
  index_select: ofFirst((call, shape) => {
    const index = call.shape(2);
    if (index === undefined) return undefined;
    return shape.length === 0 ? [] : withExtent(shape, call.dim(shape), numel(index));
  }),
  embedding: (call) => {
    const weight = call.shape(0);
    const indices = call.shape(1);
    if (weight === undefined || indices === undefined) return [undefined];
    if (weight.length !== 2) call.mismatch(`the weight must be a matrix, got ${listed(weight)}`);
    return [[...indices, weight[1]!]];
  },
  one_hot: ofFirst((call, shape) => {
    const classes = call.number("num_classes");
    return classes < 0 ? undefined : [...shape, classes];
  }),
  repeat_interleave: ofFirst((call, shape) => {
    const repeats = call.number("repeats");
    if (call.get("dim") === null) return [numel(shape) * repeats];
    const at = call.dim(shape);
    return shape.length === 0 ? [repeats] : withExtent(shape, at, shape[at]! * repeats);
  }),
  topk: (call) => {
    const shape = call.shape(0);
    if (shape === undefined || shape.length === 0) return [shape, shape];
    const found = withExtent(shape, call.dim(shape), call.number("k"));
    return [found, found];
  },
  multinomial: ofFirst((call, shape) => [...shape.slice(0, -1), call.number("num_samples")]),
  quantile: quantile(),
  nanquantile: quantile(),
  searchsorted: searched,
  bucketize: searched,
  zeros: size,
  ones: size,
  empty: size,
  full: size,
  rand: size,
  randn: size,
  randint: size,
  upload: size,
  resized: size,
  sum_to_size: size,
  normal: (call) => {
    const given = call.get("size") as Shape | null;
    const shapes = call.shapes();
    return [given ?? (shapes === undefined ? undefined : broadcast("normal", shapes))];
  },
  eye: (call) => [[call.number("n"), call.optional("m") ?? call.number("n")]],
  arange: (call) => {
    const [start, end, step] = call.values as [Value, Value, Value];
    const [first, last] = end === null ? [0, number(start)] : [number(start), number(end)];
    const dtype = call.get("dtype");
    const whole = dtype === "int64" ? Math.trunc : (n: number) => n;
    return [[arangeCount(whole(first), whole(last), whole(number(step)))]];
  },
  linspace: (call) => [[call.number("steps")]],
  logspace: (call) => [[call.number("steps")]],
  randperm: (call) => [[call.number("n")]],
  tril_indices: (call) => [[2, triangle(call.number("row"), call.number("col"), call.number("offset"))]],
  triu_indices: (call) => {
    const [rows, columns] = [call.number("row"), call.number("col")];
    return [[2, rows * columns - triangle(rows, columns, call.number("offset") - 1)]];
  },
};

function quantile(): ShapeRule {
  return ofFirst((call, shape) => {
    const q = call.values[1]!;
    const points = isTensor(q) ? q.shape : [];
    if (points === undefined) return undefined;
    const dim = call.optional("dim");
    const dims = dim === null ? shape.map((_, i) => i) : [call.dim(shape)];
    return [...points, ...reduced(shape, dims, call.flag("keepdim"))];
  });
}
