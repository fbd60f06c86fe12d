/** Arithmetic of shapes: broadcasting, dimensions, sizes, windows. */

import { ArgumentError, IndexOutOfRange, ShapeError } from "../errors.ts";
import type { Shape } from "./operands.ts";

export function listed(shape: Shape): string {
  return `[${shape.join(", ")}]`;
}

/** How many elements a shape has. */
export function numel(shape: Shape): number {
  return shape.reduce((product, extent) => product * extent, 1);
}

/** The common shape. Throws `ShapeError` with the shapes and the first mismatching dimension. */
export function broadcast(op: string, shapes: readonly Shape[]): Shape {
  const first = shapes[0];
  if (first === undefined) return [];
  let longest = first;
  let same = true;
  for (const shape of shapes) {
    if (shape.length > longest.length) longest = shape;
    same &&= shape === first || (shape.length === first.length && shape.every((n, i) => n === first[i]));
  }
  if (same) return first;
  const result = new Array<number>(longest.length).fill(1);
  for (const shape of shapes) {
    for (let i = 1; i <= shape.length; i += 1) {
      const at = result.length - i;
      const extent = shape[shape.length - i]!;
      const found = result[at]!;
      if (extent === found || extent === 1) continue;
      if (found !== 1) {
        const all = shapes.map(listed).join(" and ");
        const sizes = `dimension ${at} has sizes ${found} and ${extent}`;
        throw new ShapeError(`${op}: shapes ${all} do not broadcast: ${sizes}`, { op });
      }
      result[at] = extent;
    }
  }
  return result;
}

/** A dimension as a non-negative index. A 0-dim tensor accepts 0 and -1. */
export function canonicalDim(op: string, dim: number, ndim: number): number {
  const span = Math.max(ndim, 1);
  if (!Number.isInteger(dim) || dim < -span || dim >= span) {
    throw new IndexOutOfRange(`${op}: dimension ${dim} is out of range; it must be from ${-span} to ${span - 1}`, {
      op,
    });
  }
  return dim < 0 ? dim + span : dim;
}

/** Distinct dimensions as non-negative indices; `null` and an empty list mean all. */
export function canonicalDims(op: string, dims: Shape | number | null | undefined, ndim: number): number[] {
  const given = typeof dims === "number" ? [dims] : (dims ?? []);
  if (given.length === 0) return Array.from({ length: ndim }, (_, i) => i);
  const found = given.map((dim) => canonicalDim(op, dim, ndim));
  if (new Set(found).size !== found.length) {
    throw new ArgumentError(`${op}: dimensions ${listed(given)} contain a duplicate`, { op });
  }
  return found;
}

/** The shape after a reduction, which removes dimensions or keeps them with extent 1. */
export function reduced(shape: Shape, dims: readonly number[], keepdim: boolean): Shape {
  if (shape.length === 0) return [];
  const gone = new Set(dims);
  return keepdim ? shape.map((n, i) => (gone.has(i) ? 1 : n)) : shape.filter((_, i) => !gone.has(i));
}

/** Fills in the one -1 of a target shape. */
export function inferSize(op: string, wanted: Shape, elements: number): Shape {
  const holes = wanted.filter((n) => n === -1).length;
  if (holes > 1) throw new ArgumentError(`${op}: shape ${listed(wanted)} has more than one -1`, { op });
  const known = wanted.reduce((product, n) => (n === -1 ? product : product * n), 1);
  if (wanted.some((n) => n < -1)) {
    throw new ShapeError(`${op}: shape ${listed(wanted)} has a negative size other than -1`, { op });
  }
  if (holes === 1) {
    if (known === 0 || elements % known !== 0) {
      throw new ShapeError(`${op}: shape ${listed(wanted)} does not fit ${elements} elements`, { op });
    }
    return wanted.map((n) => (n === -1 ? elements / known : n));
  }
  if (known !== elements) {
    const text = `shape ${listed(wanted)} has ${known} elements, but the tensor has ${elements}`;
    throw new ShapeError(`${op}: ${text}`, { op });
  }
  return wanted;
}

/** A shape with another extent at one place. */
export function withExtent(shape: Shape, at: number, extent: number): Shape {
  return shape.map((n, i) => (i === at ? extent : n));
}

/** One number a dimension, from a number or a list. */
export function perDimension(value: unknown, count: number): number[] {
  if (typeof value === "number") return new Array<number>(count).fill(value);
  const list = value as readonly number[];
  return list.length === 1 ? new Array<number>(count).fill(list[0]!) : [...list];
}

/** The number of positions of a sliding window along one dimension. */
export function windowExtent(
  extent: number,
  kernel: number,
  stride: number,
  padding: number,
  dilation: number = 1,
  ceilMode: boolean = false,
): number {
  const room = extent + 2 * padding - dilation * (kernel - 1) - 1;
  if (!ceilMode) return Math.floor(room / stride) + 1;
  const count = Math.ceil(room / stride) + 1;
  // A window that would start in the padding after the end does not count.
  return (count - 1) * stride >= extent + padding ? count - 1 : count;
}
