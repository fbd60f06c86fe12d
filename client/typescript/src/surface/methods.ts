/** Methods of tensors that are no ops of the table: several meanings of a name, indexing, conversions. */

import { ArgumentTypeError } from "../errors.ts";
import { isOptions } from "../ops/binding.ts";
import { DTYPES, type DTypeName } from "../ops/dtypes.ts";
import type { Scalar } from "../ops/values.ts";
import { Tensor } from "../tensor/tensor.ts";
import type { TensorLike } from "../tensor/values.ts";
import { one, several } from "./calling.ts";
import { elementsAt, writeAt, type Index, type Range } from "./indexing.ts";

/** Values along a dimension and their indices. */
export type ValuesAndIndices = [values: Tensor, indices: Tensor];

/** What a reduction along one dimension takes by name. */
export interface AlongOptions {
  dim: number;
  keepdim?: boolean;
}

/** What {@link ComposedMethods.to} takes by name. */
export interface ToOptions {
  dtype?: DTypeName;
  device?: string;
  /** Copy even if nothing changes. */
  copy?: boolean;
}

/** The methods that this file gives tensors. */
export interface ComposedMethods {
  /** The largest element. */
  max(): Tensor;
  /** The larger of two elements each. */
  max(other: Tensor): Tensor;
  /** The largest elements along a dimension, and their indices. */
  max(dim: number, keepdim?: boolean): ValuesAndIndices;
  max(options: AlongOptions): ValuesAndIndices;
  /** The smallest element. */
  min(): Tensor;
  /** The smaller of two elements each. */
  min(other: Tensor): Tensor;
  /** The smallest elements along a dimension, and their indices. */
  min(dim: number, keepdim?: boolean): ValuesAndIndices;
  min(options: AlongOptions): ValuesAndIndices;
  /** The middle element, the lower one of two. */
  median(): Tensor;
  /** The middle elements along a dimension, and their indices. */
  median(dim: number, keepdim?: boolean): ValuesAndIndices;
  median(options: AlongOptions): ValuesAndIndices;
  /** `median` without NaN. */
  nanmedian(): Tensor;
  nanmedian(dim: number, keepdim?: boolean): ValuesAndIndices;
  nanmedian(options: AlongOptions): ValuesAndIndices;

  /**
   * The elements at an index, one part a dimension: `x.at(0)`, `x.at(":", { start: 1, end: 3 })`, `x.at("...", -1)`,
   * `x.at(mask)`, `x.at([2, 0])`, `x.at(null)`. A view for numbers and ranges, a copy for tensors and lists.
   */
  at(...index: readonly Index[]): Tensor;
  /** Write into the elements at an index: `x.setAt([0, { end: 2 }], 1)`. Returns the tensor. */
  setAt(index: Index | readonly Index[], value: Tensor | Scalar | TensorLike): this;
  /** A view of every `step`-th index from `start` up to `end` along a dimension; negative ones count from the end. */
  slice(dim: number, start?: number | null, end?: number | null, step?: number): Tensor;
  slice(options: Range & { dim?: number }): Tensor;

  /** The same elements under another shape without a copy; or the same memory read as another dtype. */
  view(size: readonly number[]): Tensor;
  view(...size: number[]): Tensor;
  view(dtype: DTypeName): Tensor;

  /** In another dtype, or on another device; itself if it is so already. */
  to(dtypeOrDevice: DTypeName | (string & {})): Tensor;
  to(options: ToOptions): Tensor;
  /** As float32. */
  float(): Tensor;
  /** As float64. */
  double(): Tensor;
  /** As float16. */
  half(): Tensor;
  /** As bfloat16. */
  bfloat16(): Tensor;
  /** As int32. */
  int(): Tensor;
  /** As int64. */
  long(): Tensor;
  /** As bool: what is not zero is true. */
  bool(): Tensor;

  /** Elements of the tensor where `condition` holds, of `other` elsewhere. */
  where(condition: Tensor, other: Tensor | Scalar): Tensor;
  /** A view expanded to the shape of another tensor. */
  expandAs(other: Tensor): Tensor;
  /** The elements in the shape of another tensor. */
  reshapeAs(other: Tensor): Tensor;
  /** A view with the last two dimensions exchanged, of a matrix or a batch of matrices. */
  readonly mT: Tensor;
  /** A view with the dimensions in reverse order. */
  readonly T: Tensor;
}

function extreme(name: "max" | "min", elementwise: string) {
  return function (this: Tensor, first?: Tensor | number | AlongOptions, keepdim: boolean = false) {
    if (first instanceof Tensor) return one(elementwise, this, first);
    return along(this, name, first, keepdim);
  };
}

function along(x: Tensor, name: string, first: number | AlongOptions | undefined, keepdim: boolean): unknown {
  if (first === undefined) return one(name, x);
  return isOptions(first) ? several(`${name}_dim`, x, first) : several(`${name}_dim`, x, first, keepdim);
}

function middle(name: "median" | "nanmedian") {
  return function (this: Tensor, dim?: number | AlongOptions, keepdim: boolean = false) {
    return along(this, name, dim, keepdim);
  };
}

function as(dtype: DTypeName) {
  return function (this: Tensor): Tensor {
    return this.to(dtype);
  };
}

/** What a single word to {@link ComposedMethods.to} means. */
function placeOf(word: string): ToOptions {
  return Object.hasOwn(DTYPES, word) ? { dtype: word as DTypeName } : { device: word };
}

function knownShape(x: Tensor, method: string): readonly number[] {
  if (x.shape === undefined) {
    throw new ArgumentTypeError(`${method} needs the shape of a tensor that is not known yet: await x.size() first`);
  }
  return x.shape;
}

/** The methods, to be attached to tensors. */
export const COMPOSED_METHODS: object & ThisType<Tensor> = {
  max: extreme("max", "maximum"),
  min: extreme("min", "minimum"),
  median: middle("median"),
  nanmedian: middle("nanmedian"),
  at(...index: Index[]): Tensor {
    return elementsAt(this, index);
  },
  setAt(index: Index | readonly Index[], value: Tensor | Scalar | TensorLike): Tensor {
    writeAt(this, Array.isArray(index) ? (index as readonly Index[]) : [index as Index], value);
    return this;
  },
  slice(...args: unknown[]): Tensor {
    return one("slice", this, ...args);
  },
  view(...args: unknown[]): Tensor {
    return typeof args[0] === "string" ? one("view_dtype", this, args[0]) : one("view", this, ...args);
  },
  to(given: string | ToOptions): Tensor {
    const wanted = typeof given === "string" ? placeOf(given) : given;
    const same =
      (wanted.dtype === undefined || wanted.dtype === this.dtype) &&
      (wanted.device === undefined || wanted.device === this.device);
    return same && wanted.copy !== true ? this : one("to", this, wanted);
  },
  float: as("float32"),
  double: as("float64"),
  half: as("float16"),
  bfloat16: as("bfloat16"),
  int: as("int32"),
  long: as("int64"),
  bool: as("bool"),
  where(condition: Tensor, other: Tensor | Scalar): Tensor {
    return one("where", condition, this, other);
  },
  expandAs(other: Tensor): Tensor {
    return one("expand", this, knownShape(other, "expandAs"));
  },
  reshapeAs(other: Tensor): Tensor {
    return one("reshape", this, knownShape(other, "reshapeAs"));
  },
  get mT(): Tensor {
    return one("transpose", this, -2, -1);
  },
  get T(): Tensor {
    const order = knownShape(this, "T")
      .map((_, i) => i)
      .reverse();
    return one("permute", this, order);
  },
};
