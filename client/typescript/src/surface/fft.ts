/** Discrete Fourier transforms. */

import { ArgumentError, DTypeError } from "../errors.ts";
import { DTYPES } from "../ops/dtypes.ts";
import { canonicalDim } from "../rules/extents.ts";
import { toComplex, toFloat } from "../rules/promotion.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { one } from "./calling.ts";

/** Which of a transform and its inverse is scaled by `1 / n`; `"ortho"` scales both by its root. */
export type Norm = "backward" | "ortho" | "forward";

export interface FFTOptions {
  /** The number of points: the input is cut or filled up with zeros. */
  n?: number | null;
  /** Default: the last. */
  dim?: number;
  norm?: Norm;
}

export interface FFTnOptions {
  /** The numbers of points. */
  s?: readonly number[] | null;
  /** Default: all, or as many of the last as `s` has numbers. */
  dim?: readonly number[] | null;
  norm?: Norm;
}

const SCALES: Readonly<Record<Norm, readonly [string, string]>> = {
  backward: ["none", "count"],
  ortho: ["root", "root"],
  forward: ["count", "none"],
};

function scaleOf(norm: Norm, forward: boolean): string {
  return SCALES[norm][forward ? 0 : 1];
}

function shapeOf(name: string, x: Tensor): readonly number[] {
  if (x.shape === undefined) throw new ArgumentError(`fft.${name} needs a shape that is not known yet: await x.size()`);
  return x.shape;
}

/** What is transformed: complex numbers, real ones (which stay so), or any. */
type Kind = "complex" | "real" | "any";

/** The input in a dtype that can be transformed. */
function prepared(name: string, x: Tensor, kind: Kind): Tensor {
  const dtype = x.dtype;
  if (dtype === undefined) throw new DTypeError(`fft.${name} needs a dtype that is not known yet: await x.size()`);
  if (DTYPES[dtype].category === 2 && DTYPES[dtype].itemsize === 2) {
    throw new DTypeError(`fft.${name} is not defined for ${dtype}: cast to float32`);
  }
  if (kind === "real" && DTYPES[dtype].category === 3) {
    throw new DTypeError(`fft.${name} takes real numbers, not ${dtype}`);
  }
  const floating = toFloat(dtype);
  return x.to(kind === "complex" ? toComplex(floating) : floating);
}

/** Cut or filled up with zeros to a size along each dimension; `null` leaves it as it is. */
function resized(name: string, x: Tensor, dims: readonly number[], sizes: readonly (number | null)[]): Tensor {
  const shape = shapeOf(name, x);
  const padding = new Array<number>(2 * shape.length).fill(0);
  let result = x;
  dims.forEach((dim, i) => {
    const extent = shape[dim]!;
    const size = sizes[i] ?? null;
    if ((size ?? extent) < 1) throw new ArgumentError(`fft.${name}: there is no transform of ${size ?? extent} points`);
    if (size === null) return;
    if (extent > size) result = one("slice", result, dim, 0, size, 1);
    padding[2 * (shape.length - 1 - dim) + 1] = Math.max(size - extent, 0);
  });
  return padding.some((n) => n > 0) ? one("pad", result, padding, "constant", 0) : result;
}

function along(name: string, x: Tensor, { n = null, dim = -1 }: FFTOptions, kind: Kind): [Tensor, number] {
  const ready = prepared(name, x, kind);
  const at = canonicalDim(`fft.${name}`, dim, shapeOf(name, ready).length);
  return [resized(name, ready, [at], [n]), at];
}

function isComplex(x: Tensor): boolean {
  return x.dtype !== undefined && DTYPES[x.dtype].category === 3;
}

/** The transform along a dimension: `X[k] = sum(x[j] * exp(-2i * pi * j * k / n))`. The result is complex. */
export function fft(x: Tensor, options: FFTOptions = {}): Tensor {
  const [ready, dim] = along("fft", x, options, "any");
  const scale = scaleOf(options.norm ?? "backward", true);
  return isComplex(ready) ? one("fft_c2c", ready, [dim], scale, true) : one("fft_r2c", ready, [dim], scale, false);
}

/** The inverse of {@link fft}. The result is complex. */
export function ifft(x: Tensor, options: FFTOptions = {}): Tensor {
  const [ready, dim] = along("ifft", x, options, "any");
  const scale = scaleOf(options.norm ?? "backward", false);
  if (isComplex(ready)) return one("fft_c2c", ready, [dim], scale, false);
  return one("conj", one("fft_r2c", ready, [dim], scale, false));
}

/** {@link fft} of real numbers: only the `n / 2 + 1` frequencies that are not negative. */
export function rfft(x: Tensor, options: FFTOptions = {}): Tensor {
  const [ready, dim] = along("rfft", x, options, "real");
  return one("fft_r2c", ready, [dim], scaleOf(options.norm ?? "backward", true), true);
}

/** The inverse of {@link rfft}: n real numbers, by default `2 * (extent - 1)`, which is even. */
export function irfft(x: Tensor, options: FFTOptions = {}): Tensor {
  const ready = prepared("irfft", x, "complex");
  const shape = shapeOf("irfft", ready);
  const dim = canonicalDim("fft.irfft", options.dim ?? -1, shape.length);
  const size = options.n ?? 2 * (shape[dim]! - 1);
  if (size < 1) throw new ArgumentError(`fft.irfft: there is no transform to ${size} points`);
  const cut = resized("irfft", ready, [dim], [Math.floor(size / 2) + 1]);
  return one("fft_c2r", cut, [dim], scaleOf(options.norm ?? "backward", false), size);
}

function several(name: string, x: Tensor, options: FFTnOptions, forward: boolean): Tensor {
  const ready = prepared(name, x, "complex");
  const ndim = shapeOf(name, ready).length;
  const sizes = options.s ?? null;
  const count = sizes?.length ?? ndim;
  const given = options.dim ?? Array.from({ length: count }, (_, i) => ndim - count + i);
  const dims = given.map((dim) => canonicalDim(`fft.${name}`, dim, ndim));
  if (sizes !== null && sizes.length !== dims.length) {
    throw new ArgumentError(`fft.${name}: ${sizes.length} sizes for ${dims.length} dimensions`);
  }
  const cut = resized(name, ready, dims, sizes ?? dims.map(() => null));
  const scale = scaleOf(options.norm ?? "backward", forward);
  return dims.length > 0 ? one("fft_c2c", cut, dims, scale, forward) : one("clone", cut);
}

/** {@link fft} along several dimensions, all by default. */
export function fftn(x: Tensor, options: FFTnOptions = {}): Tensor {
  return several("fftn", x, options, true);
}

/** The inverse of {@link fftn}. */
export function ifftn(x: Tensor, options: FFTnOptions = {}): Tensor {
  return several("ifftn", x, options, false);
}

/** {@link fftn} along the last two dimensions. */
export function fft2(x: Tensor, options: FFTnOptions = {}): Tensor {
  return several("fft2", x, { dim: [-2, -1], ...options }, true);
}

/** The inverse of {@link fft2}. */
export function ifft2(x: Tensor, options: FFTnOptions = {}): Tensor {
  return several("ifft2", x, { dim: [-2, -1], ...options }, false);
}
