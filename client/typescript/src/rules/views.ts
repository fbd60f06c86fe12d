/** The shapes of views, and of copies that rearrange elements. */

import { ArgumentError, IndexOutOfRange, ShapeError } from "../errors.ts";
import { ofFirst, type CallArguments, type ShapeRule } from "./call_arguments.ts";
import { canonicalDim, canonicalDims, inferSize, listed, numel, withExtent } from "./extents.ts";
import type { Shape } from "./operands.ts";

const without = (shape: Shape, at: number): Shape => shape.filter((_, i) => i !== at);

const replaced = (shape: Shape, at: number, instead: Shape): Shape => [
  ...shape.slice(0, at),
  ...instead,
  ...shape.slice(at + 1),
];

function target(name: string): ShapeRule {
  return (call) => {
    const shape = call.shape(0);
    const wanted = call.list(name);
    if (shape === undefined) return [wanted.includes(-1) ? undefined : wanted];
    return [inferSize(call.name, wanted, numel(shape))];
  };
}

/** The size of an expanded view; -1 keeps an extent. */
const expanded: ShapeRule = (call) => {
  const size = call.list("size");
  const shape = call.shape(0);
  if (shape === undefined) return [size.includes(-1) ? undefined : size];
  const lead = size.length - shape.length;
  if (lead < 0) call.mismatch(`size ${listed(size)} has fewer dimensions than the tensor's shape ${listed(shape)}`);
  return [
    size.map((wanted, i) => {
      const extent = i >= lead ? shape[i - lead]! : 1;
      if (wanted === -1 && i >= lead) return extent;
      if (wanted < 0) call.mismatch(`size ${listed(size)} has a negative extent in dimension ${i}`);
      if (wanted !== extent && extent !== 1) {
        call.mismatch(`${listed(shape)} cannot become ${listed(size)}: dimension ${i} has extent ${extent}, not 1`);
      }
      return wanted;
    }),
  ];
};

function moved(call: CallArguments, shape: Shape): Shape {
  const sources = call.list("source");
  const places = call.list("destination");
  if (sources.length !== places.length) {
    throw new ArgumentError(`movedim: ${sources.length} dimensions cannot move to ${places.length} places`);
  }
  if (sources.length === 0 || shape.length === 0) return shape;
  const come = canonicalDims("movedim", sources, shape.length);
  const go = canonicalDims("movedim", places, shape.length);
  const rest = shape.map((_, i) => i).filter((i) => !come.includes(i));
  return shape.map((_, i) => {
    const at = go.indexOf(i);
    return shape[at >= 0 ? come[at]! : rest.shift()!]!;
  });
}

/** The number of indices of a slice, clamped to the extent as Python does. */
export function span(extent: number, start: number | null, end: number | null, step: number): number {
  const clamp = (at: number): number => Math.min(Math.max(at < 0 ? at + extent : at, 0), extent);
  const first = clamp(start ?? 0);
  const stop = clamp(end ?? extent);
  return Math.max(0, Math.ceil((stop - first) / step));
}

function needDimensions(call: CallArguments, shape: Shape): void {
  if (shape.length === 0) {
    throw new IndexOutOfRange(`${call.name}: a 0-dim tensor has no dimension`, { op: call.name });
  }
}

const repeated = (call: CallArguments, shape: Shape, repeats: Shape): Shape => {
  if (repeats.some((n) => n < 0)) throw new ArgumentError(`${call.name}: ${listed(repeats)} has a negative number`);
  const full = [...new Array<number>(repeats.length - shape.length).fill(1), ...shape];
  return full.map((n, i) => n * repeats[i]!);
};

/** The extents of the parts that `split` makes. */
function sections(call: CallArguments, extent: number): Shape {
  const sizes = call.get("split_size_or_sections") as number | Shape;
  if (typeof sizes !== "number") {
    if (sizes.some((n) => n < 0) || sizes.reduce((sum, n) => sum + n, 0) !== extent) {
      throw new ArgumentError(`${call.name}: sizes ${listed(sizes)} do not add up to the extent, ${extent}`, {
        op: call.name,
      });
    }
    return sizes;
  }
  if (sizes < 0 || (sizes === 0 && extent > 0)) {
    throw new ArgumentError(`${call.name}: a part cannot have ${sizes} of ${extent} elements`, { op: call.name });
  }
  const count = sizes === 0 ? 1 : Math.max(1, Math.ceil(extent / sizes));
  return Array.from({ length: count }, (_, i) => Math.min(sizes, extent - i * sizes));
}

function chunks(call: CallArguments, extent: number): Shape {
  const count = call.number("chunks");
  if (count <= 0) throw new ArgumentError(`chunk: chunks must be positive, not ${count}`, { op: "chunk" });
  if (extent === 0) return new Array<number>(count).fill(0);
  const size = Math.ceil(extent / count);
  return Array.from({ length: Math.ceil(extent / size) }, (_, i) => Math.min(size, extent - i * size));
}

/** Parts along a dimension, from the extents of the parts. */
function parts(extents: (call: CallArguments, extent: number) => Shape): ShapeRule {
  return (call) => {
    const shape = call.shape(0);
    if (shape === undefined) {
      throw new ShapeError(`${call.name}: the shape of the tensor is not known yet; await its shape first`, {
        op: call.name,
      });
    }
    needDimensions(call, shape);
    const at = call.dim(shape);
    return extents(call, shape[at]!).map((extent) => withExtent(shape, at, extent));
  };
}

const split = parts(sections);

export const VIEWS: Readonly<Record<string, ShapeRule>> = {
  view: target("size"),
  reshape: target("shape"),
  flatten: ofFirst((call, shape) => {
    if (shape.length === 0) return [1];
    const start = call.dim(shape, "start_dim");
    const end = call.dim(shape, "end_dim");
    if (start > end) throw new ArgumentError(`flatten: start_dim ${start} comes after end_dim ${end}`);
    return [...shape.slice(0, start), numel(shape.slice(start, end + 1)), ...shape.slice(end + 1)];
  }),
  unflatten: ofFirst((call, shape) => {
    const at = call.dim(shape);
    const sizes = call.list("sizes");
    if (sizes.length === 0) throw new ArgumentError("unflatten: sizes must name at least one extent");
    return replaced(shape, at, inferSize("unflatten", sizes, shape[at] ?? 1));
  }),
  transpose: ofFirst((call, shape) => {
    const a = call.dim(shape, "dim0");
    const b = call.dim(shape, "dim1");
    return shape.map((n, i) => (i === a ? shape[b]! : i === b ? shape[a]! : n));
  }),
  t: ofFirst((call, shape) => {
    if (shape.length > 2) call.mismatch(`takes at most 2 dimensions, got ${listed(shape)}; use transpose or permute`);
    return [...shape].reverse();
  }),
  permute: ofFirst((call, shape) => {
    const dims = call.list("dims");
    if (dims.length !== shape.length) {
      call.mismatch(`${listed(dims)} does not order the ${shape.length} dimensions of ${listed(shape)}`);
    }
    return canonicalDims("permute", dims, shape.length).map((i) => shape[i]!);
  }),
  movedim: ofFirst(moved),
  squeeze: ofFirst((call, shape) => {
    const dim = call.get("dim") as Shape | number | null;
    if (Array.isArray(dim) && dim.length === 0) return shape;
    const gone = canonicalDims("squeeze", dim, shape.length);
    return shape.filter((n, i) => n !== 1 || !gone.includes(i));
  }),
  unsqueeze: ofFirst((call, shape) => {
    const at = canonicalDim("unsqueeze", call.number("dim"), shape.length + 1);
    return [...shape.slice(0, at), 1, ...shape.slice(at)];
  }),
  expand: expanded,
  broadcast_to: expanded,
  repeat: ofFirst((call, shape) => {
    const repeats = call.list("repeats");
    if (repeats.length < shape.length) call.mismatch(`${listed(repeats)} names fewer dimensions than ${listed(shape)}`);
    return repeated(call, shape, repeats);
  }),
  tile: ofFirst((call, shape) => {
    const dims = call.list("dims");
    const missing = Math.max(0, shape.length - dims.length);
    return repeated(call, shape, [...new Array<number>(missing).fill(1), ...dims]);
  }),
  select: ofFirst((call, shape) => {
    needDimensions(call, shape);
    const at = call.dim(shape);
    const index = call.number("index");
    const extent = shape[at]!;
    if (index < -extent || index >= extent) {
      throw new IndexOutOfRange(`index ${index} is out of range for dimension ${at} of ${listed(shape)}`, {
        op: "select",
      });
    }
    return without(shape, at);
  }),
  slice: ofFirst((call, shape) => {
    needDimensions(call, shape);
    const at = call.dim(shape);
    const step = call.number("step");
    if (step <= 0) throw new ArgumentError(`slice: step ${step} is not positive`, { op: "slice" });
    return withExtent(shape, at, span(shape[at]!, call.optional("start"), call.optional("end"), step));
  }),
  narrow: ofFirst((call, shape) => {
    needDimensions(call, shape);
    const at = call.dim(shape);
    const length = call.number("length");
    const extent = shape[at]!;
    const given = call.number("start");
    if (length < 0) throw new ArgumentError(`narrow: length ${length} is negative`, { op: "narrow" });
    if (given < -extent || given > extent) {
      throw new IndexOutOfRange(`narrow: start ${given} is out of range for dimension ${at}`, { op: "narrow" });
    }
    const start = given < 0 ? given + extent : given;
    if (start + length > extent) {
      throw new ArgumentError(`narrow: ${start} + ${length} exceeds dimension ${at} of ${listed(shape)}`, {
        op: "narrow",
      });
    }
    return withExtent(shape, at, length);
  }),
  diagonal: ofFirst((call, shape) => {
    const a = call.dim(shape, "dim1");
    const b = call.dim(shape, "dim2");
    needDimensions(call, shape);
    if (a === b) throw new ArgumentError(`diagonal: dim1 and dim2 are both ${a}`, { op: "diagonal" });
    const offset = call.number("offset");
    const [rows, columns] = [shape[a]!, shape[b]!];
    const extent = offset >= 0 ? Math.min(rows, columns - offset) : Math.min(rows + offset, columns);
    return [...shape.filter((_, i) => i !== a && i !== b), Math.max(extent, 0)];
  }),
  unfold: ofFirst((call, shape) => {
    const at = call.dim(shape, "dimension");
    const size = call.number("size");
    const step = call.number("step");
    const extent = shape[at] ?? 1;
    if (size < 0 || size > extent || step <= 0) {
      throw new ArgumentError(`unfold: windows of ${size} with step ${step} do not fit an extent of ${extent}`, {
        op: "unfold",
      });
    }
    if (shape.length === 0) return [size];
    return [...withExtent(shape, at, Math.floor((extent - size) / step) + 1), size];
  }),
  split,
  unsafe_split: split,
  chunk: parts(chunks),
  unbind: (call) => {
    const shape = call.shape(0);
    if (shape === undefined) {
      throw new ShapeError("unbind: the shape of the tensor is not known yet; await its shape first", { op: "unbind" });
    }
    needDimensions(call, shape);
    const at = call.dim(shape);
    return new Array<Shape>(shape[at]!).fill(without(shape, at));
  },
  diag: ofFirst((call, shape) => {
    const offset = call.number("diagonal");
    if (shape.length === 1) {
      const side = shape[0]! + Math.abs(offset);
      return [side, side];
    }
    if (shape.length !== 2) return undefined;
    const [rows, columns] = shape as [number, number];
    return [Math.max(offset >= 0 ? Math.min(rows, columns - offset) : Math.min(rows + offset, columns), 0)];
  }),
  rot90: ofFirst((call, shape) => {
    const dims = call.list("dims");
    if (dims.length !== 2 || call.number("k") % 2 === 0) return shape;
    const [a, b] = canonicalDims("rot90", dims, shape.length) as [number, number];
    return shape.map((n, i) => (i === a ? shape[b]! : i === b ? shape[a]! : n));
  }),
};
