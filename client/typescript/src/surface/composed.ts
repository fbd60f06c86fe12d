/** Functions that are no ops of the table: several meanings of a name, and compositions that programs use every day. */

import { Complex } from "../ops/values.ts";
import type { Session } from "../session/session.ts";
import type { DTypeName } from "../tensor/dtypes.ts";
import { Tensor } from "../tensor/tensor.ts";
import { lookup } from "../ops/op.ts";
import { create, one } from "./calling.ts";
import type { AlongOptions, ValuesAndIndices } from "./methods.ts";

type Extreme = {
  (x: Tensor): Tensor;
  (x: Tensor, other: Tensor): Tensor;
  (x: Tensor, dim: number, keepdim?: boolean): ValuesAndIndices;
  (x: Tensor, options: AlongOptions): ValuesAndIndices;
};

type Middle = {
  (x: Tensor): Tensor;
  (x: Tensor, dim: number, keepdim?: boolean): ValuesAndIndices;
  (x: Tensor, options: AlongOptions): ValuesAndIndices;
};

/** The largest element; with a dimension, those along it and their indices; with a tensor, the larger of two. */
export const max: Extreme = ((x: Tensor, ...rest: []) => x.max(...rest)) as Extreme;
/** The smallest element; with a dimension, those along it and their indices; with a tensor, the smaller of two. */
export const min: Extreme = ((x: Tensor, ...rest: []) => x.min(...rest)) as Extreme;
/** The middle element, the lower one of two; with a dimension, those along it and their indices. */
export const median: Middle = ((x: Tensor, ...rest: []) => x.median(...rest)) as Middle;
/** {@link median} without NaN. */
export const nanmedian: Middle = ((x: Tensor, ...rest: []) => x.nanmedian(...rest)) as Middle;

/** Products of tensors summed over repeated letters: `einsum("ij,jk->ik", a, b)`. */
export function einsum(equation: string, ...operands: readonly Tensor[]): Tensor {
  return one("einsum", equation, operands);
}

/** A complex number, or a tensor of complex numbers from their real and imaginary parts. */
export function complex(re: number, im?: number): Complex;
export function complex(real: Tensor, imag: Tensor): Tensor;
export function complex(real: Tensor | number, imag?: Tensor | number): Complex | Tensor {
  return real instanceof Tensor ? one("complex", real, imag) : new Complex(real, imag as number | undefined);
}

/** What functions that draw numbers take by name. */
export interface DrawOptions {
  dtype?: DTypeName;
  device?: string;
  requiresGrad?: boolean;
  session?: Session;
}

/** Integers from `low` (default: 0) up to but without `high`, each as likely: `randint(10, [2, 3])`. */
export function randint(high: number, size: readonly number[], options?: DrawOptions): Tensor;
export function randint(low: number, high: number, size: readonly number[], options?: DrawOptions): Tensor;
export function randint(...args: unknown[]): Tensor {
  return create(lookup("randint"), Array.isArray(args[1]) ? [0, ...args] : args);
}

/** Normal numbers of these means and standard deviations: tensors that broadcast, or numbers and a size. */
export function normal(mean: Tensor | number, std: Tensor): Tensor;
export function normal(mean: Tensor, std: number): Tensor;
export function normal(mean: number, std: number, size: readonly number[], options?: DrawOptions): Tensor;
export function normal(mean: Tensor | number, std: Tensor | number, ...rest: unknown[]): Tensor {
  const drawsTensors = mean instanceof Tensor || std instanceof Tensor;
  return drawsTensors ? one("normal", mean, std) : create(lookup("normal"), [mean, std, ...rest]);
}

/** Grids of the coordinates that vectors give: one tensor a vector, `"ij"` indexed. */
export function meshgrid(...vectors: readonly Tensor[]): Tensor[] {
  const count = vectors.length;
  const sizes = vectors.map((vector) => vector.numel!);
  return vectors.map((vector, i) => {
    const shape = new Array<number>(count).fill(1);
    shape[i] = sizes[i]!;
    return one("expand", one("reshape", vector, shape), sizes);
  });
}
