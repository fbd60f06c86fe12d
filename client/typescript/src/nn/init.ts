/** Initial values: each function fills a tensor in place, without history, and returns it. */

import { ArgumentValueError } from "../errors.ts";
import { noGrad } from "../graph/modes.ts";
import { one } from "../surface/calling.ts";
import type { Tensor } from "../tensor/tensor.ts";

const PLAIN_GAINS: ReadonlyMap<string, number> = new Map([
  ...["linear", "conv1d", "conv2d", "conv3d", "convTranspose1d", "convTranspose2d", "convTranspose3d", "sigmoid"].map(
    (name): [string, number] => [name, 1],
  ),
  ["tanh", 5 / 3],
  ["relu", Math.sqrt(2)],
  ["selu", 0.75],
]);

/** The factor by which weights should be larger because of the function that follows them. */
export function calculateGain(nonlinearity: string, slope: number = 0.01): number {
  const plain = PLAIN_GAINS.get(nonlinearity);
  if (plain !== undefined) return plain;
  if (nonlinearity === "leakyRelu") return Math.sqrt(2 / (1 + slope ** 2));
  const known = ["leakyRelu", ...PLAIN_GAINS.keys()].join(", ");
  throw new ArgumentValueError(`no gain is known for '${nonlinearity}'; known are ${known}`);
}

/** How many inputs an output depends on, and how many outputs an input reaches, for a weight `(out, in, ...)`. */
export function fansOf(tensor: Tensor): { fanIn: number; fanOut: number } {
  const shape = tensor.shape ?? [];
  if (shape.length < 2) {
    throw new ArgumentValueError(`fan in and fan out need at least 2 dimensions, the shape is [${shape.join(", ")}]`);
  }
  const field = shape.slice(2).reduce((product, extent) => product * extent, 1);
  return { fanIn: shape[1]! * field, fanOut: shape[0]! * field };
}

function filled<T extends Tensor>(tensor: T, op: string, ...numbers: readonly number[]): T {
  noGrad(() => one(op, tensor, ...numbers));
  return tensor;
}

/** Numbers uniform between `low` and `high`. */
export function uniform_<T extends Tensor>(tensor: T, low: number = 0, high: number = 1): T {
  return filled(tensor, "uniform_", low, high);
}

/** Normal numbers of this mean and standard deviation. */
export function normal_<T extends Tensor>(tensor: T, mean: number = 0, std: number = 1): T {
  return filled(tensor, "normal_", mean, std);
}

/** One value everywhere. */
export function constant_<T extends Tensor>(tensor: T, value: number): T {
  return filled(tensor, "fill_", value);
}

/** Ones. */
export function ones_<T extends Tensor>(tensor: T): T {
  return constant_(tensor, 1);
}

/** Zeros. */
export function zeros_<T extends Tensor>(tensor: T): T {
  return filled(tensor, "zero_");
}

/** Uniform numbers of variance `gain ** 2 * 2 / (fanIn + fanOut)`. */
export function xavierUniform_<T extends Tensor>(tensor: T, gain: number = 1): T {
  const { fanIn, fanOut } = fansOf(tensor);
  const bound = gain * Math.sqrt(6 / (fanIn + fanOut));
  return uniform_(tensor, -bound, bound);
}

/** Normal numbers of variance `gain ** 2 * 2 / (fanIn + fanOut)`. */
export function xavierNormal_<T extends Tensor>(tensor: T, gain: number = 1): T {
  const { fanIn, fanOut } = fansOf(tensor);
  return normal_(tensor, 0, gain * Math.sqrt(2 / (fanIn + fanOut)));
}

/** What Kaiming's initialisation takes. */
export interface KaimingOptions {
  /** The negative slope of a leaky ReLU that follows. */
  a?: number;
  /** Which fan: `fanIn` keeps the variance forward, `fanOut` backward. */
  mode?: "fanIn" | "fanOut";
  /** The function that follows. */
  nonlinearity?: string;
}

function kaimingStd(tensor: Tensor, { a = 0, mode = "fanIn", nonlinearity = "leakyRelu" }: KaimingOptions): number {
  return calculateGain(nonlinearity, a) / Math.sqrt(fansOf(tensor)[mode]);
}

/** Uniform numbers of variance `gain ** 2 / fan`, where the gain is that of the function that follows. */
export function kaimingUniform_<T extends Tensor>(tensor: T, options: KaimingOptions = {}): T {
  if (tensor.numel === 0) return tensor;
  const bound = Math.sqrt(3) * kaimingStd(tensor, options);
  return uniform_(tensor, -bound, bound);
}

/** Normal numbers of variance `gain ** 2 / fan`; the options are those of {@link kaimingUniform_}. */
export function kaimingNormal_<T extends Tensor>(tensor: T, options: KaimingOptions = {}): T {
  return tensor.numel === 0 ? tensor : normal_(tensor, 0, kaimingStd(tensor, options));
}
