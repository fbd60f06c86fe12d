/** Elements by index: `x.at(0, { start: 1, end: 3 }, null, mask)`, and writing into them. */

import { ArgumentTypeError, IndexOutOfRange } from "../errors.ts";
import { isOptions, shown } from "../ops/binding.ts";
import { kindOf, type Scalar } from "../ops/values.ts";
import type { DTypeName } from "../tensor/dtypes.ts";
import { Tensor } from "../tensor/tensor.ts";
import type { TensorLike } from "../tensor/values.ts";
import { one } from "./calling.ts";
import { tensor } from "./tensors.ts";

/** A range of indices: negative ones count from the end, `step` is at least 1. All of them without any. */
export interface Range {
  readonly start?: number | null;
  readonly end?: number | null;
  readonly step?: number;
}

/**
 * An index of one dimension, or what stands for it: a number removes the dimension, a range keeps part of it, `":"`
 * keeps all of it, `"..."` all that remain, `null` inserts a dimension. Tensors and lists of integers choose, tensors
 * of bools choose where they are true.
 */
export type Index = number | Range | ":" | "..." | null | Tensor | readonly number[] | readonly boolean[];

/** What remains after the parts of an index that make views, and the tensors that index it. */
interface Walked {
  readonly viewed: Tensor;
  readonly indices: (Tensor | null)[];
}

/** The elements that an index names: a view for numbers and ranges, a copy for tensors. */
export function elementsAt(x: Tensor, index: readonly Index[]): Tensor {
  const { viewed, indices } = walk(x, index);
  if (indices.some((one) => one !== null)) return one("index", viewed, indices);
  return viewed === x ? one("alias", x) : viewed;
}

/** Writes into the elements that an index names. */
export function writeAt(x: Tensor, index: readonly Index[], value: Tensor | Scalar | TensorLike): void {
  const { viewed, indices } = walk(x, index);
  const isNumber = kindOf(value) !== undefined;
  if (indices.some((one) => one !== null)) {
    const dtype = viewed.dtype;
    const given = value instanceof Tensor ? value : tensor(value as TensorLike, { session: x.session, dtype });
    one("index_put_", viewed, indices, dtype !== undefined && given.dtype !== dtype ? one("to", given, dtype) : given);
  } else if (isNumber) {
    one("fill_", viewed, value);
  } else {
    const given = value instanceof Tensor ? value : tensor(value as TensorLike, { session: x.session });
    const stretched = viewed.shape !== undefined && given.shape?.join() !== viewed.shape.join();
    one("copy_", viewed, stretched ? one("expand", given, viewed.shape) : given);
  }
}

function walk(x: Tensor, index: readonly Index[]): Walked {
  const parts = index.map((part) => asIndex(x, part));
  const taken = parts.reduce<number>((sum, part) => sum + dimsTaken(part), 0);
  const ndim = x.shape?.length;
  if (ndim !== undefined && taken > ndim) {
    throw new IndexOutOfRange(`${taken} indices are too many for a tensor of ${ndim} dimensions`, { op: "at" });
  }
  let viewed = x;
  const indices: (Tensor | null)[] = [];
  let dim = 0;
  const keep = (count: number): void => {
    for (let i = 0; i < count; i += 1) indices.push(null);
    dim += count;
  };
  for (const part of parts) {
    if (part === null) {
      viewed = one("unsqueeze", viewed, dim);
      keep(1);
    } else if (part === "...") {
      if (ndim === undefined) {
        throw new IndexOutOfRange('"..." needs the shape, which is not known yet: await x.size() first', { op: "at" });
      }
      keep(ndim - taken);
    } else if (part === ":") {
      keep(1);
    } else if (typeof part === "number") {
      viewed = one("select", viewed, dim, part);
    } else if (part instanceof Tensor) {
      indices.push(part);
      dim += dimsTaken(part);
    } else {
      viewed = one("slice", viewed, dim, part.start ?? null, part.end ?? null, part.step ?? 1);
      keep(1);
    }
  }
  return { viewed, indices };
}

type Part = number | Range | ":" | "..." | null | Tensor;

function asIndex(x: Tensor, part: Index): Part {
  if (part === null || part === ":" || part === "..." || typeof part === "number") return part;
  if (part instanceof Tensor) return part;
  if (Array.isArray(part)) {
    const dtype: DTypeName = typeof part[0] === "boolean" ? "bool" : "int64";
    return tensor(part as TensorLike, { dtype, session: x.session });
  }
  if (isOptions(part)) return part as Range;
  throw new ArgumentTypeError(`an index is a number, a range, null, "...", a tensor or a list, not ${shown(part)}`, {
    op: "at",
  });
}

function dimsTaken(part: Part): number {
  if (part === null || part === "...") return 0;
  return part instanceof Tensor && part.dtype === "bool" ? (part.shape?.length ?? 1) : 1;
}
