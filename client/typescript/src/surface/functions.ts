// Derived from protocol/gradwire_protocol/ops/: change that, and run `make derive`.

import type { Tensor } from "../tensor/tensor.ts";
import type { Session } from "../session/session.ts";
import { functionsOf } from "./calling.ts";
import type { DTypeName } from "../ops/dtypes.ts";
import type { Real, Scalar } from "../ops/values.ts";

/** The functions of the package. */
export interface Functions {
  /** The absolute value; of a complex number its magnitude, which is real. Not defined on bools. */
  abs(input: Tensor): Tensor;
  /** In-place form of `abs`: writes the result into the tensor and returns it. */
  abs_(input: Tensor): Tensor;
  /** The angle whose cosine is `self`: NaN outside -1 to 1; integers become floats. */
  acos(input: Tensor): Tensor;
  /** In-place form of `acos`: writes the result into the tensor and returns it. */
  acos_(input: Tensor): Tensor;
  /** Inverse hyperbolic cosine: NaN below 1; integers become floats. */
  acosh(input: Tensor): Tensor;
  /** In-place form of `acosh`: writes the result into the tensor and returns it. */
  acosh_(input: Tensor): Tensor;
  /** Means over as many windows as `output_size`, along the last dimension. See `adaptiveAvgPool2d`. */
  adaptiveAvgPool1d(input: Tensor, outputSize: number | readonly (number | null)[]): Tensor;
  adaptiveAvgPool1d(input: Tensor, options: { outputSize: number | readonly (number | null)[] }): Tensor;
  /** Maxima over as many windows as `output_size` along the last dimension, and their indices. */
  adaptiveMaxPool1d(input: Tensor, outputSize: number | readonly (number | null)[]): [values: Tensor, indices: Tensor];
  adaptiveMaxPool1d(input: Tensor, options: { outputSize: number | readonly (number | null)[] }): [values: Tensor, indices: Tensor];
  /** Maxima over the windows of `adaptiveAvgPool2d`, and their indices in the flattened image. */
  adaptiveMaxPool2d(input: Tensor, outputSize: number | readonly (number | null)[]): [values: Tensor, indices: Tensor];
  adaptiveMaxPool2d(input: Tensor, options: { outputSize: number | readonly (number | null)[] }): [values: Tensor, indices: Tensor];
  /** Maxima over windows that divide volumes into `output_size`, and their indices in the flattened volume. */
  adaptiveMaxPool3d(input: Tensor, outputSize: number | readonly (number | null)[]): [values: Tensor, indices: Tensor];
  adaptiveMaxPool3d(input: Tensor, options: { outputSize: number | readonly (number | null)[] }): [values: Tensor, indices: Tensor];
  /**
   * `self + alpha * other`, with broadcasting and promotion. On bools it is a logical or.
   *
   * `alpha` may not be of a higher category than the result: no float alpha for integers.
   */
  add(input: Tensor, other: Tensor | Scalar, options?: { alpha?: Scalar }): Tensor;
  /** `beta * self + alpha * (batch1 @ batch2).sum(0)`: the products of a batch are summed into one matrix. */
  addbmm(input: Tensor, batch1: Tensor, batch2: Tensor, options?: { beta?: Scalar; alpha?: Scalar }): Tensor;
  /** `self + value * tensor1 / tensor2`, with broadcasting and promotion; not for a quotient of integers. */
  addcdiv(input: Tensor, tensor1: Tensor, tensor2: Tensor, options?: { value?: Scalar }): Tensor;
  /** `self + value * tensor1 * tensor2`, with broadcasting and promotion. Not defined on bools alone. */
  addcmul(input: Tensor, tensor1: Tensor, tensor2: Tensor, options?: { value?: Scalar }): Tensor;
  /** `beta * self + alpha * (mat1 @ mat2)` for matrices; `self` is expanded to the product's shape. */
  addmm(input: Tensor, mat1: Tensor, mat2: Tensor, options?: { beta?: Scalar; alpha?: Scalar }): Tensor;
  /** `beta * self + alpha * (mat @ vec)` for a matrix and a vector. */
  addmv(input: Tensor, mat: Tensor, vec: Tensor, options?: { beta?: Scalar; alpha?: Scalar }): Tensor;
  /** In-place form of `addmv`: writes the result into the tensor and returns it. */
  addmv_(input: Tensor, mat: Tensor, vec: Tensor, options?: { beta?: Scalar; alpha?: Scalar }): Tensor;
  /** `beta * self + alpha * outer(vec1, vec2)`. Promotes dtypes; on bools it is `self or (vec1 and vec2)`. */
  addr(input: Tensor, vec1: Tensor, vec2: Tensor, options?: { beta?: Scalar; alpha?: Scalar }): Tensor;
  /**
   * The grid of an affine map, for `gridSampler`: matrices `(N, 2, 3)` and a size `(N, C, H, W)` give
   * `(N, H, W, 2)`; `(N, 3, 4)` and `(N, C, D, H, W)` give `(N, D, H, W, 3)`.
   *
   * Each matrix is applied to the points, (x, y, 1) or (x, y, z, 1), at the centers of an image's elements.
   */
  affineGridGenerator(theta: Tensor, size: number | readonly number[], alignCorners: boolean): Tensor;
  affineGridGenerator(theta: Tensor, options: { size: number | readonly number[]; alignCorners: boolean }): Tensor;
  affineGridGenerator(theta: Tensor, size: number | readonly number[], options: { alignCorners: boolean }): Tensor;
  /** Whether all elements differ from zero; bool (uint8 for uint8). True where there is none. */
  all(input: Tensor, dim?: number | readonly number[] | null, keepdim?: boolean): Tensor;
  all(input: Tensor, options: { dim?: number | readonly number[] | null; keepdim?: boolean }): Tensor;
  all(input: Tensor, dim: number | readonly number[] | null, options: { keepdim?: boolean }): Tensor;
  /** Largest elements over one or several dimensions; gradients are shared equally among equals. */
  amax(input: Tensor, dim?: number | readonly number[] | null, keepdim?: boolean): Tensor;
  amax(input: Tensor, options: { dim?: number | readonly number[] | null; keepdim?: boolean }): Tensor;
  amax(input: Tensor, dim: number | readonly number[] | null, options: { keepdim?: boolean }): Tensor;
  /** Smallest elements over one or several dimensions; gradients are shared equally among equals. */
  amin(input: Tensor, dim?: number | readonly number[] | null, keepdim?: boolean): Tensor;
  amin(input: Tensor, options: { dim?: number | readonly number[] | null; keepdim?: boolean }): Tensor;
  amin(input: Tensor, dim: number | readonly number[] | null, options: { keepdim?: boolean }): Tensor;
  /** (smallest, largest) of all elements or along one dimension. */
  aminmax(input: Tensor, options?: { dim?: number | null; keepdim?: boolean }): [min: Tensor, max: Tensor];
  /** The argument of complex numbers, from -pi to pi; of real numbers 0, or pi if negative. */
  angle(input: Tensor): Tensor;
  /** Whether some element differs from zero; bool (uint8 for uint8). False where there is none. */
  any(input: Tensor, dim?: number | readonly number[] | null, keepdim?: boolean): Tensor;
  any(input: Tensor, options: { dim?: number | readonly number[] | null; keepdim?: boolean }): Tensor;
  any(input: Tensor, dim: number | readonly number[] | null, options: { keepdim?: boolean }): Tensor;
  /**
   * The numbers from `start` up to but without `end`, in steps of `step`; `arange(n)` counts from 0.
   *
   * The dtype is int64 if all three are integers, else the default float dtype.
   */
  arange(start: Scalar, end?: Scalar | null, step?: Scalar, options?: { dtype?: DTypeName | null; device?: string; requiresGrad?: boolean; session?: Session }): Tensor;
  arange(options: { start: Scalar; end?: Scalar | null; step?: Scalar; dtype?: DTypeName | null; device?: string; requiresGrad?: boolean; session?: Session }): Tensor;
  arange(start: Scalar, options: { end?: Scalar | null; step?: Scalar; dtype?: DTypeName | null; device?: string; requiresGrad?: boolean; session?: Session }): Tensor;
  arange(start: Scalar, end: Scalar | null, options: { step?: Scalar; dtype?: DTypeName | null; device?: string; requiresGrad?: boolean; session?: Session }): Tensor;
  /** Index of the first largest element: of the flattened tensor, or along `dim`. NaN counts as largest. */
  argmax(input: Tensor, dim?: number | null, keepdim?: boolean): Tensor;
  argmax(input: Tensor, options: { dim?: number | null; keepdim?: boolean }): Tensor;
  argmax(input: Tensor, dim: number | null, options: { keepdim?: boolean }): Tensor;
  /** Index of the first smallest element: of the flattened tensor, or along `dim`. NaN counts as smallest. */
  argmin(input: Tensor, dim?: number | null, keepdim?: boolean): Tensor;
  argmin(input: Tensor, options: { dim?: number | null; keepdim?: boolean }): Tensor;
  argmin(input: Tensor, dim: number | null, options: { keepdim?: boolean }): Tensor;
  /** The indices that `sort` gives. */
  argsort(input: Tensor, dim?: number, descending?: boolean, options?: { stable?: boolean }): Tensor;
  argsort(input: Tensor, options: { dim?: number; descending?: boolean; stable?: boolean }): Tensor;
  argsort(input: Tensor, dim: number, options: { descending?: boolean; stable?: boolean }): Tensor;
  /** Same as `nonzero`. */
  argwhere(input: Tensor): Tensor;
  /**
   * A view of the tensor's memory with any size and strides, both in elements.
   *
   * `storage_offset` counts from the tensor's own first element; with `absolute` from that of the storage, as in
   * PyTorch.
   */
  asStrided(input: Tensor, size: number | readonly number[], stride: number | readonly number[], storageOffset?: number, options?: { absolute?: boolean }): Tensor;
  asStrided(input: Tensor, options: { size: number | readonly number[]; stride: number | readonly number[]; storageOffset?: number; absolute?: boolean }): Tensor;
  asStrided(input: Tensor, size: number | readonly number[], options: { stride: number | readonly number[]; storageOffset?: number; absolute?: boolean }): Tensor;
  asStrided(input: Tensor, size: number | readonly number[], stride: number | readonly number[], options: { storageOffset?: number; absolute?: boolean }): Tensor;
  /** A copy of `self` with `src` written into the part that `asStrided` shows. */
  asStridedScatter(input: Tensor, src: Tensor, size: number | readonly number[], stride: number | readonly number[], storageOffset?: number): Tensor;
  asStridedScatter(input: Tensor, src: Tensor, options: { size: number | readonly number[]; stride: number | readonly number[]; storageOffset?: number }): Tensor;
  asStridedScatter(input: Tensor, src: Tensor, size: number | readonly number[], options: { stride: number | readonly number[]; storageOffset?: number }): Tensor;
  asStridedScatter(input: Tensor, src: Tensor, size: number | readonly number[], stride: number | readonly number[], options: { storageOffset?: number }): Tensor;
  /** The angle whose sine is `self`: NaN outside -1 to 1; integers become floats. */
  asin(input: Tensor): Tensor;
  /** In-place form of `asin`: writes the result into the tensor and returns it. */
  asin_(input: Tensor): Tensor;
  /** Inverse hyperbolic sine; integers become floats. */
  asinh(input: Tensor): Tensor;
  /** In-place form of `asinh`: writes the result into the tensor and returns it. */
  asinh_(input: Tensor): Tensor;
  /** The angle whose tangent is `self`; integers become floats. */
  atan(input: Tensor): Tensor;
  /** The angle of the point with abscissa `other` and ordinate `self`, from -pi to pi. */
  atan2(input: Tensor, other: Tensor): Tensor;
  /** In-place form of `atan`: writes the result into the tensor and returns it. */
  atan_(input: Tensor): Tensor;
  /** Inverse hyperbolic tangent: NaN outside -1 to 1; integers become floats. */
  atanh(input: Tensor): Tensor;
  /** In-place form of `atanh`: writes the result into the tensor and returns it. */
  atanh_(input: Tensor): Tensor;
  /** The mean of every window along the last dimension of `(N, C, L)` or `(C, L)`. See `avgPool2d`. */
  avgPool1d(input: Tensor, kernelSize: number | readonly number[], stride?: number | readonly number[] | null, padding?: number | readonly number[], ceilMode?: boolean, countIncludePad?: boolean): Tensor;
  avgPool1d(input: Tensor, options: { kernelSize: number | readonly number[]; stride?: number | readonly number[] | null; padding?: number | readonly number[]; ceilMode?: boolean; countIncludePad?: boolean }): Tensor;
  avgPool1d(input: Tensor, kernelSize: number | readonly number[], options: { stride?: number | readonly number[] | null; padding?: number | readonly number[]; ceilMode?: boolean; countIncludePad?: boolean }): Tensor;
  /** `beta * self + alpha * (batch1 @ batch2)`, matrix by matrix of a batch. */
  baddbmm(input: Tensor, batch1: Tensor, batch2: Tensor, options?: { beta?: Scalar; alpha?: Scalar }): Tensor;
  /**
   * 1 with the probability that `self` holds, else 0; with `p` only the shape and dtype of `self` count.
   *
   * The gradient is zero.
   */
  bernoulli(input: Tensor, p?: Real | null): Tensor;
  bernoulli(input: Tensor, options: { p?: Real | null }): Tensor;
  /**
   * How often each of 0, 1, 2, ... occurs in a vector of integers, or the sum of the weights where it does.
   *
   * The result has `max(self) + 1` elements, at least `minlength`.
   */
  bincount(input: Tensor, weights?: Tensor | null, minlength?: number): Tensor;
  bincount(input: Tensor, options: { weights?: Tensor | null; minlength?: number }): Tensor;
  bincount(input: Tensor, weights: Tensor | null, options: { minlength?: number }): Tensor;
  /**
   * How many of `count` independent trials succeed, each with probability `prob`; the operands broadcast.
   *
   * Both are floating point tensors of one dtype. The gradient for the probability is zero.
   */
  binomial(count: Tensor, prob: Tensor): Tensor;
  /** The bits set in both; on bools the logical and. */
  bitwiseAnd(input: Tensor | Scalar, other: Tensor | Scalar): Tensor;
  /** Bits moved up by `other`; 0 if that is negative or beyond the width. */
  bitwiseLeftShift(input: Tensor | Scalar, other: Tensor | Scalar): Tensor;
  /** Every bit inverted; on bools the logical not. */
  bitwiseNot(input: Tensor): Tensor;
  /** The bits set in either; on bools the logical or. */
  bitwiseOr(input: Tensor | Scalar, other: Tensor | Scalar): Tensor;
  /** Bits moved down by `other`, keeping the sign; all of them if that is negative or beyond the width. */
  bitwiseRightShift(input: Tensor | Scalar, other: Tensor | Scalar): Tensor;
  /** The bits set in one of the two; on bools the logical xor. */
  bitwiseXor(input: Tensor | Scalar, other: Tensor | Scalar): Tensor;
  /** The products of two batches of matrices, one by one: `(b, n, k)` times `(b, k, m)` is `(b, n, m)`. */
  bmm(input: Tensor, mat2: Tensor): Tensor;
  /** Same as `expand`, as a function. */
  broadcastTo(input: Tensor, size: readonly number[]): Tensor;
  broadcastTo(input: Tensor, ...size: number[]): Tensor;
  broadcastTo(input: Tensor, options: { size: readonly number[] }): Tensor;
  /**
   * The number of the interval between sorted `boundaries` that each value falls into. A boundary belongs to the
   * interval below it, with `right` to the one above.
   */
  bucketize(input: Tensor | Scalar, boundaries: Tensor, options?: { outInt32?: boolean; right?: boolean }): Tensor;
  /** The tensors one after the other along a dimension. Dtypes are promoted; empty vectors fit everything. */
  cat(tensors: readonly Tensor[], dim?: number): Tensor;
  cat(tensors: readonly Tensor[], options: { dim?: number }): Tensor;
  /**
   * The distances in the norm of order `p` between each row of `x1`, `(..., n, d)`, and each of `x2`,
   * `(..., m, d)`: `(..., n, m)`. Batches broadcast. `compute_mode` says whether Euclidean distances may come from
   * one matrix product, which is faster and less exact: by default from more than 25 points on.
   */
  cdist(x1: Tensor, x2: Tensor, p?: Real, computeMode?: "use_mm_for_euclid_dist_if_necessary" | "use_mm_for_euclid_dist" | "donot_use_mm_for_euclid_dist" | null): Tensor;
  cdist(x1: Tensor, x2: Tensor, options: { p?: Real; computeMode?: "use_mm_for_euclid_dist_if_necessary" | "use_mm_for_euclid_dist" | "donot_use_mm_for_euclid_dist" | null }): Tensor;
  cdist(x1: Tensor, x2: Tensor, p: Real, options: { computeMode?: "use_mm_for_euclid_dist_if_necessary" | "use_mm_for_euclid_dist" | "donot_use_mm_for_euclid_dist" | null }): Tensor;
  /** Round up; integers stay as they are. The gradient is zero. */
  ceil(input: Tensor): Tensor;
  /** In-place form of `ceil`: writes the result into the tensor and returns it. */
  ceil_(input: Tensor): Tensor;
  /** `self` where positive, else `alpha * (exp(self / alpha) - 1)`: smooth at 0 for every alpha but 0. */
  celu(input: Tensor, alpha?: Real): Tensor;
  celu(input: Tensor, options: { alpha?: Real }): Tensor;
  /** In-place form of `celu`: writes the result into the tensor and returns it. */
  celu_(input: Tensor, alpha?: Real): Tensor;
  celu_(input: Tensor, options: { alpha?: Real }): Tensor;
  /** `(N, C, ...)` with its channels interleaved: the first of each of `groups` groups, then the second, ... */
  channelShuffle(input: Tensor, groups: number): Tensor;
  channelShuffle(input: Tensor, options: { groups: number }): Tensor;
  /** The inverse of A, where `self` is A's Cholesky factor. */
  choleskyInverse(input: Tensor, upper?: boolean): Tensor;
  choleskyInverse(input: Tensor, options: { upper?: boolean }): Tensor;
  /** The solution `X` of `A @ X = self`, where `input2` is A's Cholesky factor. Batches broadcast. */
  choleskySolve(input: Tensor, input2: Tensor, upper?: boolean): Tensor;
  choleskySolve(input: Tensor, input2: Tensor, options: { upper?: boolean }): Tensor;
  /** Views of at most `chunks` consecutive parts along a dimension, of equal size except the last. */
  chunk(input: Tensor, chunks: number, dim?: number): Tensor[];
  chunk(input: Tensor, options: { chunks: number; dim?: number }): Tensor[];
  chunk(input: Tensor, chunks: number, options: { dim?: number }): Tensor[];
  /**
   * Cut the values to the range from `min` to `max`; either may be left out, not both.
   *
   * The bounds are both tensors or both numbers; beside a number, a tensor without dimensions counts as one. Where
   * `min` is above `max` the result is `max`. NaN stays.
   */
  clamp(input: Tensor, min?: Tensor | Scalar | null, max?: Tensor | Scalar | null): Tensor;
  clamp(input: Tensor, options: { min?: Tensor | Scalar | null; max?: Tensor | Scalar | null }): Tensor;
  clamp(input: Tensor, min: Tensor | Scalar | null, options: { max?: Tensor | Scalar | null }): Tensor;
  /** In-place form of `clamp`: writes the result into the tensor and returns it. */
  clamp_(input: Tensor, min?: Tensor | Scalar | null, max?: Tensor | Scalar | null): Tensor;
  clamp_(input: Tensor, options: { min?: Tensor | Scalar | null; max?: Tensor | Scalar | null }): Tensor;
  clamp_(input: Tensor, min: Tensor | Scalar | null, options: { max?: Tensor | Scalar | null }): Tensor;
  /** Lower values above `max` to it. */
  clampMax(input: Tensor, max: Tensor | Scalar): Tensor;
  /** In-place form of `clampMax`: writes the result into the tensor and returns it. */
  clampMax_(input: Tensor, max: Tensor | Scalar): Tensor;
  /** Raise values below `min` to it. */
  clampMin(input: Tensor, min: Tensor | Scalar): Tensor;
  /** In-place form of `clampMin`: writes the result into the tensor and returns it. */
  clampMin_(input: Tensor, min: Tensor | Scalar): Tensor;
  /**
   * A copy in new memory: in row-major or channels-last order, else in the memory order of `self` where that is
   * dense.
   */
  clone(input: Tensor, options?: { rowMajor?: boolean; channelsLast?: boolean }): Tensor;
  /** The complex conjugates, in new memory; real numbers as they are. */
  conj(input: Tensor): Tensor;
  /** The complex conjugates, in new memory; real numbers as they are. */
  conjPhysical(input: Tensor): Tensor;
  /** In-place form of `conjPhysical`: writes the result into the tensor and returns it. */
  conjPhysical_(input: Tensor): Tensor;
  /**
   * Slide kernels along one dimension: `(N, C, L)` or `(C, L)` with a weight `(O, C / groups, K)` gives
   * `(N, O, L')`. See `conv2d`.
   */
  conv1d(input: Tensor, weight: Tensor, bias?: Tensor | null, stride?: number | readonly number[], padding?: number | "valid" | "same" | readonly number[], dilation?: number | readonly number[], groups?: number): Tensor;
  conv1d(input: Tensor, weight: Tensor, options: { bias?: Tensor | null; stride?: number | readonly number[]; padding?: number | "valid" | "same" | readonly number[]; dilation?: number | readonly number[]; groups?: number }): Tensor;
  conv1d(input: Tensor, weight: Tensor, bias: Tensor | null, options: { stride?: number | readonly number[]; padding?: number | "valid" | "same" | readonly number[]; dilation?: number | readonly number[]; groups?: number }): Tensor;
  /**
   * Slide kernels over images: `(N, C, H, W)` or `(C, H, W)` with a weight `(O, C / groups, KH, KW)` gives
   * `(N, O, H', W')`, as a correlation (the kernel is not flipped).
   *
   * `padding` zeros surround the input; `"valid"` is none, `"same"` as many as keep the size (stride 1 only).
   * With `groups` each group of outputs sees only its group of channels. All operands have one dtype. Shapes that
   * do not fit raise RuntimeError.
   */
  conv2d(input: Tensor, weight: Tensor, bias?: Tensor | null, stride?: number | readonly number[], padding?: number | "valid" | "same" | readonly number[], dilation?: number | readonly number[], groups?: number): Tensor;
  conv2d(input: Tensor, weight: Tensor, options: { bias?: Tensor | null; stride?: number | readonly number[]; padding?: number | "valid" | "same" | readonly number[]; dilation?: number | readonly number[]; groups?: number }): Tensor;
  conv2d(input: Tensor, weight: Tensor, bias: Tensor | null, options: { stride?: number | readonly number[]; padding?: number | "valid" | "same" | readonly number[]; dilation?: number | readonly number[]; groups?: number }): Tensor;
  /**
   * Slide kernels through volumes: `(N, C, D, H, W)` or `(C, D, H, W)` with a weight of five dimensions. See
   * `conv2d`.
   */
  conv3d(input: Tensor, weight: Tensor, bias?: Tensor | null, stride?: number | readonly number[], padding?: number | "valid" | "same" | readonly number[], dilation?: number | readonly number[], groups?: number): Tensor;
  conv3d(input: Tensor, weight: Tensor, options: { bias?: Tensor | null; stride?: number | readonly number[]; padding?: number | "valid" | "same" | readonly number[]; dilation?: number | readonly number[]; groups?: number }): Tensor;
  conv3d(input: Tensor, weight: Tensor, bias: Tensor | null, options: { stride?: number | readonly number[]; padding?: number | "valid" | "same" | readonly number[]; dilation?: number | readonly number[]; groups?: number }): Tensor;
  /**
   * The transpose of `conv1d`: `(N, C, L)` with a weight `(C, O / groups, K)` gives `(N, O, L')`. See
   * `convTranspose2d`.
   */
  convTranspose1d(input: Tensor, weight: Tensor, bias?: Tensor | null, stride?: number | readonly number[], padding?: number | readonly number[], outputPadding?: number | readonly number[], groups?: number, dilation?: number | readonly number[]): Tensor;
  convTranspose1d(input: Tensor, weight: Tensor, options: { bias?: Tensor | null; stride?: number | readonly number[]; padding?: number | readonly number[]; outputPadding?: number | readonly number[]; groups?: number; dilation?: number | readonly number[] }): Tensor;
  convTranspose1d(input: Tensor, weight: Tensor, bias: Tensor | null, options: { stride?: number | readonly number[]; padding?: number | readonly number[]; outputPadding?: number | readonly number[]; groups?: number; dilation?: number | readonly number[] }): Tensor;
  /**
   * The transpose of `conv2d` as a linear map: every input element lays a scaled kernel onto the output.
   *
   * A weight has shape `(C, O / groups, KH, KW)`. `padding` is cut from the result's edges, and `output_padding`
   * is added to its ends, to tell apart the sizes that a strided convolution maps to one.
   */
  convTranspose2d(input: Tensor, weight: Tensor, bias?: Tensor | null, stride?: number | readonly number[], padding?: number | readonly number[], outputPadding?: number | readonly number[], groups?: number, dilation?: number | readonly number[]): Tensor;
  convTranspose2d(input: Tensor, weight: Tensor, options: { bias?: Tensor | null; stride?: number | readonly number[]; padding?: number | readonly number[]; outputPadding?: number | readonly number[]; groups?: number; dilation?: number | readonly number[] }): Tensor;
  convTranspose2d(input: Tensor, weight: Tensor, bias: Tensor | null, options: { stride?: number | readonly number[]; padding?: number | readonly number[]; outputPadding?: number | readonly number[]; groups?: number; dilation?: number | readonly number[] }): Tensor;
  /** The transpose of `conv3d`, with a weight `(C, O / groups, KD, KH, KW)`. See `convTranspose2d`. */
  convTranspose3d(input: Tensor, weight: Tensor, bias?: Tensor | null, stride?: number | readonly number[], padding?: number | readonly number[], outputPadding?: number | readonly number[], groups?: number, dilation?: number | readonly number[]): Tensor;
  convTranspose3d(input: Tensor, weight: Tensor, options: { bias?: Tensor | null; stride?: number | readonly number[]; padding?: number | readonly number[]; outputPadding?: number | readonly number[]; groups?: number; dilation?: number | readonly number[] }): Tensor;
  convTranspose3d(input: Tensor, weight: Tensor, bias: Tensor | null, options: { stride?: number | readonly number[]; padding?: number | readonly number[]; outputPadding?: number | readonly number[]; groups?: number; dilation?: number | readonly number[] }): Tensor;
  /** The magnitude of `self` with the sign of `other`, a negative zero's too. Integers become floats. */
  copysign(input: Tensor, other: Tensor | Scalar): Tensor;
  /** Cosine of an angle in radians; integers become floats. */
  cos(input: Tensor): Tensor;
  /** In-place form of `cos`: writes the result into the tensor and returns it. */
  cos_(input: Tensor): Tensor;
  /** Hyperbolic cosine; integers become floats. */
  cosh(input: Tensor): Tensor;
  /** In-place form of `cosh`: writes the result into the tensor and returns it. */
  cosh_(input: Tensor): Tensor;
  /**
   * The cosine of the angle between vectors along `dim`, with broadcasting and promotion: their product divided by
   * both norms, each at least `eps`.
   */
  cosineSimilarity(x1: Tensor, x2: Tensor, dim?: number, eps?: Real): Tensor;
  cosineSimilarity(x1: Tensor, x2: Tensor, options: { dim?: number; eps?: Real }): Tensor;
  cosineSimilarity(x1: Tensor, x2: Tensor, dim: number, options: { eps?: Real }): Tensor;
  /** How many elements differ from zero (NaN does), in all or over `dim`; int64. */
  countNonzero(input: Tensor, dim?: number | readonly number[] | null): Tensor;
  countNonzero(input: Tensor, options: { dim?: number | readonly number[] | null }): Tensor;
  /** The cross product of 3-vectors along `dim` (by default the first dimension of extent 3), with broadcasting. */
  cross(input: Tensor, other: Tensor, dim?: number | null): Tensor;
  cross(input: Tensor, other: Tensor, options: { dim?: number | null }): Tensor;
  /** (running maxima along `dim`, the index of the latest element that equals each). */
  cummax(input: Tensor, dim: number): [values: Tensor, indices: Tensor];
  cummax(input: Tensor, options: { dim: number }): [values: Tensor, indices: Tensor];
  /** (running minima along `dim`, the index of the latest element that equals each). */
  cummin(input: Tensor, dim: number): [values: Tensor, indices: Tensor];
  cummin(input: Tensor, options: { dim: number }): [values: Tensor, indices: Tensor];
  /** Running products along `dim`. Bools and integers are multiplied in int64; `dtype` converts first. */
  cumprod(input: Tensor, dim: number, options?: { dtype?: DTypeName | null }): Tensor;
  cumprod(input: Tensor, options: { dim: number; dtype?: DTypeName | null }): Tensor;
  /** Running sums along `dim`. Bools and integers are summed in int64; `dtype` converts first. */
  cumsum(input: Tensor, dim: number, options?: { dtype?: DTypeName | null }): Tensor;
  cumsum(input: Tensor, options: { dim: number; dtype?: DTypeName | null }): Tensor;
  /** Degrees to radians; integers become floats. */
  deg2rad(input: Tensor): Tensor;
  /** In-place form of `deg2rad`: writes the result into the tensor and returns it. */
  deg2rad_(input: Tensor): Tensor;
  /** The determinant of each square matrix. Float and complex dtypes of 32 bits and more. */
  det(input: Tensor): Tensor;
  /** A view without history: no gradient flows through it. It shares memory and version with `self`. */
  detach(input: Tensor): Tensor;
  /** The diagonal of a matrix, copied, or the matrix that has a vector on its diagonal. */
  diag(input: Tensor, diagonal?: number): Tensor;
  diag(input: Tensor, options: { diagonal?: number }): Tensor;
  /** Matrices that have the last dimension on their diagonal and zeros elsewhere, in dimensions `dim1, dim2`. */
  diagEmbed(input: Tensor, offset?: number, dim1?: number, dim2?: number): Tensor;
  diagEmbed(input: Tensor, options: { offset?: number; dim1?: number; dim2?: number }): Tensor;
  diagEmbed(input: Tensor, offset: number, options: { dim1?: number; dim2?: number }): Tensor;
  diagEmbed(input: Tensor, offset: number, dim1: number, options: { dim2?: number }): Tensor;
  /** A view of the elements whose indices along `dim1` and `dim2` differ by `offset`, as a last dimension. */
  diagonal(input: Tensor, offset?: number, dim1?: number, dim2?: number): Tensor;
  diagonal(input: Tensor, options: { offset?: number; dim1?: number; dim2?: number }): Tensor;
  diagonal(input: Tensor, offset: number, options: { dim1?: number; dim2?: number }): Tensor;
  diagonal(input: Tensor, offset: number, dim1: number, options: { dim2?: number }): Tensor;
  /** A copy with `src` in the place of `self.diagonal(offset, dim1, dim2)`. */
  diagonalScatter(input: Tensor, src: Tensor, offset?: number, dim1?: number, dim2?: number): Tensor;
  diagonalScatter(input: Tensor, src: Tensor, options: { offset?: number; dim1?: number; dim2?: number }): Tensor;
  diagonalScatter(input: Tensor, src: Tensor, offset: number, options: { dim1?: number; dim2?: number }): Tensor;
  diagonalScatter(input: Tensor, src: Tensor, offset: number, dim1: number, options: { dim2?: number }): Tensor;
  /** The derivative of `lgamma`: infinite at 0, NaN at negative integers; integers become floats. */
  digamma(input: Tensor): Tensor;
  /**
   * Divide elementwise.
   *
   * Without `rounding_mode` integers become floats. `"trunc"` drops the fraction of the quotient and
   * `"floor"` rounds it down; both keep integers, and then an integer division by zero is an error.
   */
  div(input: Tensor, other: Tensor | Scalar, options?: { roundingMode?: "trunc" | "floor" | null }): Tensor;
  /** The sum of products of two vectors of equal length, as a 0-dim tensor. Nothing is conjugated. */
  dot(input: Tensor, tensor: Tensor): Tensor;
  /**
   * The rows of a table that integer indices name. The row `padding_idx` (-1: none) receives no gradient;
   * `scale_grad_by_freq` divides each row's gradient by the number of times it was named.
   */
  embedding(weight: Tensor, indices: Tensor, paddingIdx?: number, scaleGradByFreq?: boolean): Tensor;
  embedding(weight: Tensor, indices: Tensor, options: { paddingIdx?: number; scaleGradByFreq?: boolean }): Tensor;
  embedding(weight: Tensor, indices: Tensor, paddingIdx: number, options: { scaleGradByFreq?: boolean }): Tensor;
  /**
   * Shorten the rows of a table that integers name, where their `norm_type`-norm is above `max_norm`, to that
   * length, in place.
   */
  embeddingRenorm_(input: Tensor, indices: Tensor, maxNorm: Real, normType?: Real): Tensor;
  embeddingRenorm_(input: Tensor, indices: Tensor, maxNorm: Real, options: { normType?: Real }): Tensor;
  /** A tensor of values that do not matter. They are zeros: memory of the past is shown to nobody. */
  empty(size: readonly number[], dtype?: DTypeName | null, device?: string, channelsLast?: boolean, options?: { requiresGrad?: boolean; session?: Session }): Tensor;
  empty(...size: number[]): Tensor;
  empty(options: { size: readonly number[]; dtype?: DTypeName | null; device?: string; channelsLast?: boolean; requiresGrad?: boolean; session?: Session }): Tensor;
  empty(size: readonly number[], options: { dtype?: DTypeName | null; device?: string; channelsLast?: boolean; requiresGrad?: boolean; session?: Session }): Tensor;
  empty(...args: [...size: number[], options: { dtype?: DTypeName | null; device?: string; channelsLast?: boolean; requiresGrad?: boolean; session?: Session }]): Tensor;
  /** Values that do not matter, in the shape, dtype and memory order of `self`. They are zeros. */
  emptyLike(input: Tensor, options?: { dtype?: DTypeName | null; device?: string | null; rowMajor?: boolean; channelsLast?: boolean; requiresGrad?: boolean; session?: Session }): Tensor;
  /** Whether two elements are equal, after promotion. NaN equals nothing. */
  eq(input: Tensor, other: Tensor | Scalar): Tensor;
  /** The error function of real numbers; integers become floats. */
  erf(input: Tensor): Tensor;
  /** In-place form of `erf`: writes the result into the tensor and returns it. */
  erf_(input: Tensor): Tensor;
  /** `1 - erf(self)`, exact far out; integers become floats. */
  erfc(input: Tensor): Tensor;
  /** In-place form of `erfc`: writes the result into the tensor and returns it. */
  erfc_(input: Tensor): Tensor;
  /** The inverse of `erf`: infinite at -1 and 1, NaN outside; integers become floats. */
  erfinv(input: Tensor): Tensor;
  /** e to the power of `self`; integers become floats. */
  exp(input: Tensor): Tensor;
  /** 2 to the power of `self`; integers become floats. */
  exp2(input: Tensor): Tensor;
  /** In-place form of `exp2`: writes the result into the tensor and returns it. */
  exp2_(input: Tensor): Tensor;
  /** In-place form of `exp`: writes the result into the tensor and returns it. */
  exp_(input: Tensor): Tensor;
  /** `exp(self) - 1`, exact near 0; integers become floats. */
  expm1(input: Tensor): Tensor;
  /** In-place form of `expm1`: writes the result into the tensor and returns it. */
  expm1_(input: Tensor): Tensor;
  /** A matrix of `n` rows and `m` (`n`) columns with ones on the diagonal and zeros elsewhere. */
  eye(n: number, m?: number | null, options?: { dtype?: DTypeName | null; device?: string; requiresGrad?: boolean; session?: Session }): Tensor;
  eye(options: { n: number; m?: number | null; dtype?: DTypeName | null; device?: string; requiresGrad?: boolean; session?: Session }): Tensor;
  eye(n: number, options: { m?: number | null; dtype?: DTypeName | null; device?: string; requiresGrad?: boolean; session?: Session }): Tensor;
  /** Write one value, a number or a 0-dim tensor, into every element. */
  fill_(input: Tensor, value: Tensor | Scalar): Tensor;
  /** Dimensions `start_dim` to `end_dim` merged into one. A view where strides allow it, else a copy. */
  flatten(input: Tensor, startDim?: number, endDim?: number): Tensor;
  flatten(input: Tensor, options: { startDim?: number; endDim?: number }): Tensor;
  flatten(input: Tensor, startDim: number, options: { endDim?: number }): Tensor;
  /** A copy with the order along the given dimensions reversed. */
  flip(input: Tensor, dims: readonly number[]): Tensor;
  flip(input: Tensor, ...dims: number[]): Tensor;
  flip(input: Tensor, options: { dims: readonly number[] }): Tensor;
  /** Round down; integers stay as they are. The gradient is zero. */
  floor(input: Tensor): Tensor;
  /** In-place form of `floor`: writes the result into the tensor and returns it. */
  floor_(input: Tensor): Tensor;
  /**
   * The quotient rounded down, as `//` in Python. It keeps integers; dividing one by zero is an error.
   *
   * Its result can require grad, but backward through it fails: use `div(..., rounding_mode="floor")`.
   */
  floorDivide(input: Tensor | Scalar, other: Tensor | Scalar): Tensor;
  /** The larger of two elements; a NaN loses against a number. `self` gets the gradient of a tie. */
  fmax(input: Tensor, other: Tensor): Tensor;
  /** The smaller of two elements; a NaN loses against a number. `self` gets the gradient of a tie. */
  fmin(input: Tensor, other: Tensor): Tensor;
  /** What is left of a division truncated towards zero: it has the sign of the dividend. */
  fmod(input: Tensor, other: Tensor | Scalar): Tensor;
  /** What `trunc` drops: `self - trunc(self)`. Floating point only. */
  frac(input: Tensor): Tensor;
  /** In-place form of `frac`: writes the result into the tensor and returns it. */
  frac_(input: Tensor): Tensor;
  /**
   * (mantissa, int32 exponent), where `self` is `mantissa * 2 ** exponent` and the mantissa's size is from 0.5 to
   * 1, or 0. Floating point only.
   */
  frexp(input: Tensor): [mantissa: Tensor, exponent: Tensor];
  /** A tensor of one value, whose kind decides the dtype unless one is named. */
  full(size: number | readonly number[], fillValue: Scalar, options?: { dtype?: DTypeName | null; device?: string; requiresGrad?: boolean; session?: Session }): Tensor;
  /** One value in the shape, dtype and memory order of `self`. */
  fullLike(input: Tensor, fillValue: Scalar, options?: { dtype?: DTypeName | null; device?: string | null; rowMajor?: boolean; channelsLast?: boolean; requiresGrad?: boolean; session?: Session }): Tensor;
  /**
   * For each element of `index` the element of `self` that it names along `dim`, at the same place in the
   * other dimensions. Indices start at 0; negative ones raise.
   */
  gather(input: Tensor, dim: number, index: Tensor): Tensor;
  /** The greatest common divisor, not negative; `gcd(0, 0)` is 0. Integers only. */
  gcd(input: Tensor, other: Tensor): Tensor;
  /** In-place form of `gcd`: writes the result into the tensor and returns it. */
  gcd_(input: Tensor, other: Tensor): Tensor;
  /** `self >= other`, after promotion. Complex numbers have no order. */
  ge(input: Tensor, other: Tensor | Scalar): Tensor;
  /**
   * Shift and scale each group of channels of each sample to mean 0 and variance 1; then multiply by `weight` and
   * add `bias`, which have one element per channel. Floating point only.
   */
  groupNorm(input: Tensor, numGroups: number, weight?: Tensor | null, bias?: Tensor | null, eps?: number): Tensor;
  groupNorm(input: Tensor, options: { numGroups: number; weight?: Tensor | null; bias?: Tensor | null; eps?: number }): Tensor;
  groupNorm(input: Tensor, numGroups: number, options: { weight?: Tensor | null; bias?: Tensor | null; eps?: number }): Tensor;
  /** `self > other`, after promotion. Complex numbers have no order. */
  gt(input: Tensor, other: Tensor | Scalar): Tensor;
  /** 0 from `-lambd` to `lambd`, elsewhere `self`. */
  hardshrink(input: Tensor, lambd?: Real): Tensor;
  hardshrink(input: Tensor, options: { lambd?: Real }): Tensor;
  /**
   * Exclusive or, over all elements or over `dim`, of the bits of each as a float64 or int64, as a uint64.
   *
   * The order of the elements does not matter, and equal pairs cancel. `mode` 0 is the only one.
   */
  hashTensor(input: Tensor, dim?: number | readonly number[] | null, options?: { keepdim?: boolean; mode?: number }): Tensor;
  hashTensor(input: Tensor, options: { dim?: number | readonly number[] | null; keepdim?: boolean; mode?: number }): Tensor;
  /**
   * The unit step: 0 below 0, 1 above, and `values` at 0. Both are of one dtype, which is not complex.
   *
   * Its result can require grad, but backward through it fails.
   */
  heaviside(input: Tensor, values: Tensor): Tensor;
  /**
   * How many elements fall into each of `bins` intervals of equal width from `min` to `max`, in the dtype of
   * the tensor. If both are 0 (or equal), they are the extremes of the elements. What is outside does not count.
   *
   * Floating point only. Extremes that are not finite are an error when the result is read.
   */
  histc(input: Tensor, bins?: number, min?: Real, max?: Real): Tensor;
  histc(input: Tensor, options: { bins?: number; min?: Real; max?: Real }): Tensor;
  histc(input: Tensor, bins: number, options: { min?: Real; max?: Real }): Tensor;
  histc(input: Tensor, bins: number, min: Real, options: { max?: Real }): Tensor;
  /** `sqrt(self**2 + other**2)` without overflow on the way. Floating point only. */
  hypot(input: Tensor, other: Tensor): Tensor;
  /** The modified Bessel function of the first kind, of order 0; integers become floats. */
  i0(input: Tensor): Tensor;
  /** In-place form of `i0`: writes the result into the tensor and returns it. */
  i0_(input: Tensor): Tensor;
  /**
   * The lower incomplete gamma function of order `self` at `other`, over the gamma function: from 0 to 1.
   *
   * NaN where either is negative. Floating point only. Its derivative by the order is not implemented.
   */
  igamma(input: Tensor, other: Tensor): Tensor;
  /**
   * `1 - igamma(self, other)`, exact where it is small. Floating point only.
   *
   * Its derivative by the order is not implemented.
   */
  igammac(input: Tensor, other: Tensor): Tensor;
  /** The imaginary parts of a complex tensor, as a view. */
  imag(input: Tensor): Tensor;
  /** A copy with the slices of `alpha * source` added at the indices along `dim`; repeated ones add up. */
  indexAdd(input: Tensor, dim: number, index: Tensor, source: Tensor, options?: { alpha?: Scalar }): Tensor;
  /** A copy with the slices of `source` written at the indices along `dim`. */
  indexCopy(input: Tensor, dim: number, index: Tensor, source: Tensor): Tensor;
  /** A copy with the slices at the indices along `dim` filled with one number or a 0-dim tensor. */
  indexFill(input: Tensor, dim: number, index: Tensor, value: Tensor | Scalar): Tensor;
  /**
   * A copy with `values`, broadcast, written to (or, with `accumulate`, added at) the elements that
   * `index` would read. Where an element is named twice, one of its values stays, or all are added.
   */
  indexPut(input: Tensor, indices: readonly (Tensor | null)[], values: Tensor, accumulate?: boolean): Tensor;
  indexPut(input: Tensor, indices: readonly (Tensor | null)[], values: Tensor, options: { accumulate?: boolean }): Tensor;
  /** In-place form of `indexPut`: writes the result into the tensor and returns it. */
  indexPut_(input: Tensor, indices: readonly (Tensor | null)[], values: Tensor, accumulate?: boolean): Tensor;
  indexPut_(input: Tensor, indices: readonly (Tensor | null)[], values: Tensor, options: { accumulate?: boolean }): Tensor;
  /** The slices of `self` that a vector of indices names along `dim`. Negative indices raise. */
  indexSelect(input: Tensor, dim: number, index: Tensor): Tensor;
  /** Contract the last dimensions of both operands. With a 0-dim operand it is an ordinary, promoting product. */
  inner(input: Tensor, other: Tensor): Tensor;
  /** The inverse of each square matrix. A singular one raises RuntimeError when the result is read. */
  inverse(input: Tensor): Tensor;
  /**
   * Whether `|self - other| <= atol + rtol * |other|`, or both are the same infinity. The dtypes are the same.
   *
   * NaN is close to NaN only with `equal_nan`.
   */
  isclose(input: Tensor, other: Tensor, rtol?: Real, atol?: Real, equalNan?: boolean): Tensor;
  isclose(input: Tensor, other: Tensor, options: { rtol?: Real; atol?: Real; equalNan?: boolean }): Tensor;
  isclose(input: Tensor, other: Tensor, rtol: Real, options: { atol?: Real; equalNan?: boolean }): Tensor;
  isclose(input: Tensor, other: Tensor, rtol: Real, atol: Real, options: { equalNan?: boolean }): Tensor;
  /** Whether an element is neither NaN nor infinite. */
  isfinite(input: Tensor): Tensor;
  /** Whether an element is infinite; of a complex number, whether either part is. */
  isinf(input: Tensor): Tensor;
  /** Whether an element is NaN; of a complex number, whether either part is. */
  isnan(input: Tensor): Tensor;
  /** Whether an element is negative infinity. Not defined on complex numbers. */
  isneginf(input: Tensor): Tensor;
  /** Whether an element is positive infinity. Not defined on complex numbers. */
  isposinf(input: Tensor): Tensor;
  /** Whether the imaginary part is 0, which it is for every real number. */
  isreal(input: Tensor): Tensor;
  /** The Kronecker product: every element of `self` times all of `other`, block by block. Promotes dtypes. */
  kron(input: Tensor, other: Tensor): Tensor;
  /** (the `k`-th smallest elements along `dim`, counted from 1, their indices). NaN counts as largest. */
  kthvalue(input: Tensor, k: number, dim?: number, keepdim?: boolean): [values: Tensor, indices: Tensor];
  kthvalue(input: Tensor, options: { k: number; dim?: number; keepdim?: boolean }): [values: Tensor, indices: Tensor];
  kthvalue(input: Tensor, k: number, options: { dim?: number; keepdim?: boolean }): [values: Tensor, indices: Tensor];
  kthvalue(input: Tensor, k: number, dim: number, options: { keepdim?: boolean }): [values: Tensor, indices: Tensor];
  /**
   * Shift and scale to mean 0 and variance 1 over the last dimensions, which are `normalized_shape`; then multiply
   * by `weight` and add `bias`, both of that shape.
   *
   * `eps` is added to the variance, which is the biased one. Floating point only; parameters have the input's
   * dtype, or float32 where it is a half precision one.
   */
  layerNorm(input: Tensor, normalizedShape: number | readonly number[], weight?: Tensor | null, bias?: Tensor | null, eps?: number): Tensor;
  layerNorm(input: Tensor, options: { normalizedShape: number | readonly number[]; weight?: Tensor | null; bias?: Tensor | null; eps?: number }): Tensor;
  layerNorm(input: Tensor, normalizedShape: number | readonly number[], options: { weight?: Tensor | null; bias?: Tensor | null; eps?: number }): Tensor;
  /** The least common multiple, not negative; 0 where either is 0. Integers only. */
  lcm(input: Tensor, other: Tensor): Tensor;
  /** In-place form of `lcm`: writes the result into the tensor and returns it. */
  lcm_(input: Tensor, other: Tensor): Tensor;
  /** `self * 2 ** other`; integers become floats. */
  ldexp(input: Tensor, other: Tensor): Tensor;
  /** In-place form of `ldexp`: writes the result into the tensor and returns it. */
  ldexp_(input: Tensor, other: Tensor): Tensor;
  /** `self <= other`, after promotion. Complex numbers have no order. */
  le(input: Tensor, other: Tensor | Scalar): Tensor;
  /** `self + weight * (end - self)`. The dtypes do not promote: they must be the same. */
  lerp(input: Tensor, end: Tensor, weight: Tensor | Scalar): Tensor;
  /** The natural logarithm of the gamma function's absolute value; integers become floats. */
  lgamma(input: Tensor): Tensor;
  /** `steps` numbers at equal distances from `start` to `end`, both included. */
  linspace(start: Scalar, end: Scalar, steps: number, options?: { dtype?: DTypeName | null; device?: string; requiresGrad?: boolean; session?: Session }): Tensor;
  linspace(start: Scalar, end: Scalar, options: { steps: number; dtype?: DTypeName | null; device?: string; requiresGrad?: boolean; session?: Session }): Tensor;
  /** The natural logarithm: -inf at 0, NaN below; integers become floats. */
  log(input: Tensor): Tensor;
  /** The logarithm to base 10; integers become floats. */
  log10(input: Tensor): Tensor;
  /** In-place form of `log10`: writes the result into the tensor and returns it. */
  log10_(input: Tensor): Tensor;
  /** `log(1 + self)`, exact near 0; integers become floats. */
  log1p(input: Tensor): Tensor;
  /** In-place form of `log1p`: writes the result into the tensor and returns it. */
  log1p_(input: Tensor): Tensor;
  /** The logarithm to base 2; integers become floats. */
  log2(input: Tensor): Tensor;
  /** In-place form of `log2`: writes the result into the tensor and returns it. */
  log2_(input: Tensor): Tensor;
  /** In-place form of `log`: writes the result into the tensor and returns it. */
  log_(input: Tensor): Tensor;
  /** Logarithm of `softmax`, computed without its rounding. */
  logSoftmax(input: Tensor, dim: number, dtype?: DTypeName | null): Tensor;
  logSoftmax(input: Tensor, options: { dim: number; dtype?: DTypeName | null }): Tensor;
  logSoftmax(input: Tensor, dim: number, options: { dtype?: DTypeName | null }): Tensor;
  /** `log(exp(self) + exp(other))` without overflow on the way. Floating point and complex only. */
  logaddexp(input: Tensor, other: Tensor): Tensor;
  /** `log2(2**self + 2**other)` without overflow on the way. Floating point only. */
  logaddexp2(input: Tensor, other: Tensor): Tensor;
  /** Logarithm of the running sums of exponentials along `dim`, without overflow. */
  logcumsumexp(input: Tensor, dim: number): Tensor;
  logcumsumexp(input: Tensor, options: { dim: number }): Tensor;
  /** Whether both elements are nonzero. */
  logicalAnd(input: Tensor, other: Tensor): Tensor;
  /** Whether an element is zero. */
  logicalNot(input: Tensor): Tensor;
  /** Whether at least one element is nonzero. */
  logicalOr(input: Tensor, other: Tensor): Tensor;
  /** Whether exactly one element is nonzero. */
  logicalXor(input: Tensor, other: Tensor): Tensor;
  /** `log(x / (1 - x))`; with `eps`, x is first cut to the range from `eps` to `1 - eps`. */
  logit(input: Tensor, eps?: Real | null): Tensor;
  logit(input: Tensor, options: { eps?: Real | null }): Tensor;
  /** In-place form of `logit`: writes the result into the tensor and returns it. */
  logit_(input: Tensor, eps?: Real | null): Tensor;
  logit_(input: Tensor, options: { eps?: Real | null }): Tensor;
  /** `base` to the powers that `linspace` gives. */
  logspace(start: Scalar, end: Scalar, steps: number, base?: Real, options?: { dtype?: DTypeName | null; device?: string; requiresGrad?: boolean; session?: Session }): Tensor;
  logspace(start: Scalar, end: Scalar, options: { steps: number; base?: Real; dtype?: DTypeName | null; device?: string; requiresGrad?: boolean; session?: Session }): Tensor;
  logspace(start: Scalar, end: Scalar, steps: number, options: { base?: Real; dtype?: DTypeName | null; device?: string; requiresGrad?: boolean; session?: Session }): Tensor;
  /** Logarithm of the sum of exponentials over `dim`, without overflow. Integers become the default float. */
  logsumexp(input: Tensor, dim: number | readonly number[] | null, keepdim?: boolean): Tensor;
  logsumexp(input: Tensor, options: { dim: number | readonly number[] | null; keepdim?: boolean }): Tensor;
  logsumexp(input: Tensor, dim: number | readonly number[] | null, options: { keepdim?: boolean }): Tensor;
  /** `self < other`, after promotion. Complex numbers have no order. */
  lt(input: Tensor, other: Tensor | Scalar): Tensor;
  /**
   * `self` with `value`, a number or a 0-dim tensor, where the bool `mask` holds.
   *
   * The mask broadcasts; the dtype stays that of `self`.
   */
  maskedFill(input: Tensor, mask: Tensor, value: Tensor | Scalar): Tensor;
  /** A copy with the places where the mask is true filled from `source`, one element after the other. */
  maskedScatter(input: Tensor, mask: Tensor, source: Tensor): Tensor;
  /** The elements where the mask is true, as a vector; tensor and mask broadcast. */
  maskedSelect(input: Tensor, mask: Tensor): Tensor;
  /**
   * The matrix product, for vectors, matrices and batches of matrices.
   *
   * Two vectors give their dot product. A vector on the left counts as a row, one on the right as a column, and the
   * result lacks that dimension. Leading dimensions are batches and broadcast. Both operands must have one dtype
   * other than bool; shapes that do not fit raise RuntimeError.
   */
  matmul(input: Tensor, other: Tensor): Tensor;
  /** The exponential `I + A + A @ A / 2 + ...` of each square matrix. Halves are computed in float32. */
  matrixExp(input: Tensor): Tensor;
  /** (largest elements along `dim`, their first indices). The gradient goes to the element of the index. */
  maxDim(input: Tensor, dim: number, keepdim?: boolean): [values: Tensor, indices: Tensor];
  maxDim(input: Tensor, options: { dim: number; keepdim?: boolean }): [values: Tensor, indices: Tensor];
  maxDim(input: Tensor, dim: number, options: { keepdim?: boolean }): [values: Tensor, indices: Tensor];
  /** The maximum of every window along the last dimension of `(N, C, L)` or `(C, L)`. See `maxPool2d`. */
  maxPool1d(input: Tensor, kernelSize: number | readonly number[], stride?: number | readonly number[] | null, padding?: number | readonly number[], dilation?: number | readonly number[], ceilMode?: boolean): Tensor;
  maxPool1d(input: Tensor, options: { kernelSize: number | readonly number[]; stride?: number | readonly number[] | null; padding?: number | readonly number[]; dilation?: number | readonly number[]; ceilMode?: boolean }): Tensor;
  maxPool1d(input: Tensor, kernelSize: number | readonly number[], options: { stride?: number | readonly number[] | null; padding?: number | readonly number[]; dilation?: number | readonly number[]; ceilMode?: boolean }): Tensor;
  /** `maxPool1d`, and the index of each maximum along the last dimension. */
  maxPool1dWithIndices(input: Tensor, kernelSize: number | readonly number[], stride?: number | readonly number[] | null, padding?: number | readonly number[], dilation?: number | readonly number[], ceilMode?: boolean): [values: Tensor, indices: Tensor];
  maxPool1dWithIndices(input: Tensor, options: { kernelSize: number | readonly number[]; stride?: number | readonly number[] | null; padding?: number | readonly number[]; dilation?: number | readonly number[]; ceilMode?: boolean }): [values: Tensor, indices: Tensor];
  maxPool1dWithIndices(input: Tensor, kernelSize: number | readonly number[], options: { stride?: number | readonly number[] | null; padding?: number | readonly number[]; dilation?: number | readonly number[]; ceilMode?: boolean }): [values: Tensor, indices: Tensor];
  /**
   * The maximum of every window of `(N, C, H, W)` or `(C, H, W)`.
   *
   * `stride` is the kernel size unless given; `padding` (at most half of the kernel's reach) counts as minus
   * infinity; `ceil_mode` also counts windows that reach beyond the end. The gradient goes to the first of equal
   * maxima. NaN wins. Bools and complex numbers raise NotImplementedError.
   */
  maxPool2d(input: Tensor, kernelSize: number | readonly number[], stride?: number | readonly number[] | null, padding?: number | readonly number[], dilation?: number | readonly number[], ceilMode?: boolean): Tensor;
  maxPool2d(input: Tensor, options: { kernelSize: number | readonly number[]; stride?: number | readonly number[] | null; padding?: number | readonly number[]; dilation?: number | readonly number[]; ceilMode?: boolean }): Tensor;
  maxPool2d(input: Tensor, kernelSize: number | readonly number[], options: { stride?: number | readonly number[] | null; padding?: number | readonly number[]; dilation?: number | readonly number[]; ceilMode?: boolean }): Tensor;
  /** `maxPool2d`, and the index of each maximum in its flattened image. */
  maxPool2dWithIndices(input: Tensor, kernelSize: number | readonly number[], stride?: number | readonly number[] | null, padding?: number | readonly number[], dilation?: number | readonly number[], ceilMode?: boolean): [values: Tensor, indices: Tensor];
  maxPool2dWithIndices(input: Tensor, options: { kernelSize: number | readonly number[]; stride?: number | readonly number[] | null; padding?: number | readonly number[]; dilation?: number | readonly number[]; ceilMode?: boolean }): [values: Tensor, indices: Tensor];
  maxPool2dWithIndices(input: Tensor, kernelSize: number | readonly number[], options: { stride?: number | readonly number[] | null; padding?: number | readonly number[]; dilation?: number | readonly number[]; ceilMode?: boolean }): [values: Tensor, indices: Tensor];
  /** The maximum of every window of `(N, C, D, H, W)` or `(C, D, H, W)`. See `maxPool2d`. */
  maxPool3d(input: Tensor, kernelSize: number | readonly number[], stride?: number | readonly number[] | null, padding?: number | readonly number[], dilation?: number | readonly number[], ceilMode?: boolean): Tensor;
  maxPool3d(input: Tensor, options: { kernelSize: number | readonly number[]; stride?: number | readonly number[] | null; padding?: number | readonly number[]; dilation?: number | readonly number[]; ceilMode?: boolean }): Tensor;
  maxPool3d(input: Tensor, kernelSize: number | readonly number[], options: { stride?: number | readonly number[] | null; padding?: number | readonly number[]; dilation?: number | readonly number[]; ceilMode?: boolean }): Tensor;
  /** `maxPool3d`, and the index of each maximum in its flattened volume. */
  maxPool3dWithIndices(input: Tensor, kernelSize: number | readonly number[], stride?: number | readonly number[] | null, padding?: number | readonly number[], dilation?: number | readonly number[], ceilMode?: boolean): [values: Tensor, indices: Tensor];
  maxPool3dWithIndices(input: Tensor, options: { kernelSize: number | readonly number[]; stride?: number | readonly number[] | null; padding?: number | readonly number[]; dilation?: number | readonly number[]; ceilMode?: boolean }): [values: Tensor, indices: Tensor];
  maxPool3dWithIndices(input: Tensor, kernelSize: number | readonly number[], options: { stride?: number | readonly number[] | null; padding?: number | readonly number[]; dilation?: number | readonly number[]; ceilMode?: boolean }): [values: Tensor, indices: Tensor];
  /** The larger of two elements, NaN if either is. The gradient of a tie is split in halves. */
  maximum(input: Tensor, other: Tensor): Tensor;
  /** Arithmetic mean over `dim`. Needs floating point or complex values, or a `dtype` that is; NaN if empty. */
  mean(input: Tensor, dim?: number | readonly number[] | null, keepdim?: boolean, options?: { dtype?: DTypeName | null }): Tensor;
  mean(input: Tensor, options: { dim?: number | readonly number[] | null; keepdim?: boolean; dtype?: DTypeName | null }): Tensor;
  mean(input: Tensor, dim: number | readonly number[] | null, options: { keepdim?: boolean; dtype?: DTypeName | null }): Tensor;
  /** (lower medians along `dim`, their indices). The gradient goes to the element of the index. */
  medianDim(input: Tensor, dim?: number, keepdim?: boolean): [values: Tensor, indices: Tensor];
  medianDim(input: Tensor, options: { dim?: number; keepdim?: boolean }): [values: Tensor, indices: Tensor];
  medianDim(input: Tensor, dim: number, options: { keepdim?: boolean }): [values: Tensor, indices: Tensor];
  /** (smallest elements along `dim`, their first indices). The gradient goes to the element of the index. */
  minDim(input: Tensor, dim: number, keepdim?: boolean): [values: Tensor, indices: Tensor];
  minDim(input: Tensor, options: { dim: number; keepdim?: boolean }): [values: Tensor, indices: Tensor];
  minDim(input: Tensor, dim: number, options: { keepdim?: boolean }): [values: Tensor, indices: Tensor];
  /** The smaller of two elements, NaN if either is. The gradient of a tie is split in halves. */
  minimum(input: Tensor, other: Tensor): Tensor;
  /** The product of two matrices, without broadcasting. */
  mm(input: Tensor, mat2: Tensor): Tensor;
  /**
   * (most frequent values along `dim`, the index of each one's last occurrence); the smallest of equally
   * frequent ones.
   */
  mode(input: Tensor, dim?: number, keepdim?: boolean): [values: Tensor, indices: Tensor];
  mode(input: Tensor, options: { dim?: number; keepdim?: boolean }): [values: Tensor, indices: Tensor];
  mode(input: Tensor, dim: number, options: { keepdim?: boolean }): [values: Tensor, indices: Tensor];
  /** A view with the dimensions `source` moved to the places `destination`, the others kept in order. */
  movedim(input: Tensor, source: number | readonly number[], destination: number | readonly number[]): Tensor;
  movedim(input: Tensor, options: { source: number | readonly number[]; destination: number | readonly number[] }): Tensor;
  movedim(input: Tensor, source: number | readonly number[], options: { destination: number | readonly number[] }): Tensor;
  /** The values in order along the first dimension. */
  msort(input: Tensor): Tensor;
  /** Multiply elementwise, with broadcasting and promotion. On bools it is a logical and. */
  mul(input: Tensor, other: Tensor | Scalar): Tensor;
  /**
   * Draw `num_samples` indices along the last dimension, as likely as the weights in `self` say.
   *
   * `self` has one or two dimensions; the weights need not sum to 1, are not negative and not all 0. There are 2**24
   * of them at most, as in PyTorch.
   */
  multinomial(input: Tensor, numSamples: number, replacement?: boolean): Tensor;
  multinomial(input: Tensor, options: { numSamples: number; replacement?: boolean }): Tensor;
  multinomial(input: Tensor, numSamples: number, options: { replacement?: boolean }): Tensor;
  /** The product of a matrix and a vector. */
  mv(input: Tensor, vec: Tensor): Tensor;
  /**
   * The logarithm of the multivariate gamma function of dimension `p`, for elements above `(p - 1) / 2`.
   *
   * Integers become floats.
   */
  mvlgamma(input: Tensor, p: number): Tensor;
  mvlgamma(input: Tensor, options: { p: number }): Tensor;
  /** Replace NaN by `nan` (0) and infinities by `posinf` and `neginf` (the dtype's extremes). */
  nanToNum(input: Tensor, nan?: Real | null, posinf?: Real | null, neginf?: Real | null): Tensor;
  nanToNum(input: Tensor, options: { nan?: Real | null; posinf?: Real | null; neginf?: Real | null }): Tensor;
  nanToNum(input: Tensor, nan: Real | null, options: { posinf?: Real | null; neginf?: Real | null }): Tensor;
  nanToNum(input: Tensor, nan: Real | null, posinf: Real | null, options: { neginf?: Real | null }): Tensor;
  /** In-place form of `nanToNum`: writes the result into the tensor and returns it. */
  nanToNum_(input: Tensor, nan?: Real | null, posinf?: Real | null, neginf?: Real | null): Tensor;
  nanToNum_(input: Tensor, options: { nan?: Real | null; posinf?: Real | null; neginf?: Real | null }): Tensor;
  nanToNum_(input: Tensor, nan: Real | null, options: { posinf?: Real | null; neginf?: Real | null }): Tensor;
  nanToNum_(input: Tensor, nan: Real | null, posinf: Real | null, options: { neginf?: Real | null }): Tensor;
  /** Mean of the elements that are not NaN; NaN where there is none. */
  nanmean(input: Tensor, dim?: number | readonly number[] | null, keepdim?: boolean, options?: { dtype?: DTypeName | null }): Tensor;
  nanmean(input: Tensor, options: { dim?: number | readonly number[] | null; keepdim?: boolean; dtype?: DTypeName | null }): Tensor;
  nanmean(input: Tensor, dim: number | readonly number[] | null, options: { keepdim?: boolean; dtype?: DTypeName | null }): Tensor;
  /** (medians along `dim` of what is not NaN, their indices). */
  nanmedianDim(input: Tensor, dim?: number, keepdim?: boolean): [values: Tensor, indices: Tensor];
  nanmedianDim(input: Tensor, options: { dim?: number; keepdim?: boolean }): [values: Tensor, indices: Tensor];
  nanmedianDim(input: Tensor, dim: number, options: { keepdim?: boolean }): [values: Tensor, indices: Tensor];
  /** Like `quantile`, leaving NaN out. */
  nanquantile(input: Tensor, q: Tensor | Real, dim?: number | null, keepdim?: boolean, options?: { interpolation?: "linear" | "lower" | "higher" | "midpoint" | "nearest" }): Tensor;
  nanquantile(input: Tensor, q: Tensor | Real, options: { dim?: number | null; keepdim?: boolean; interpolation?: "linear" | "lower" | "higher" | "midpoint" | "nearest" }): Tensor;
  nanquantile(input: Tensor, q: Tensor | Real, dim: number | null, options: { keepdim?: boolean; interpolation?: "linear" | "lower" | "higher" | "midpoint" | "nearest" }): Tensor;
  /** Like `sum`, with NaN counted as zero. Not defined for complex numbers. */
  nansum(input: Tensor, dim?: number | readonly number[] | null, keepdim?: boolean, options?: { dtype?: DTypeName | null }): Tensor;
  nansum(input: Tensor, options: { dim?: number | readonly number[] | null; keepdim?: boolean; dtype?: DTypeName | null }): Tensor;
  nansum(input: Tensor, dim: number | readonly number[] | null, options: { keepdim?: boolean; dtype?: DTypeName | null }): Tensor;
  /** A view of `length` indices from `start` along a dimension; unlike a slice, it must lie inside. */
  narrow(input: Tensor, dim: number, start: number | bigint, length: number): Tensor;
  narrow(input: Tensor, dim: number, start: number | bigint, options: { length: number }): Tensor;
  /** Whether two elements differ, after promotion. NaN differs from everything. */
  ne(input: Tensor, other: Tensor | Scalar): Tensor;
  /** `-self`. Not defined on bools; unsigned integers wrap around. */
  neg(input: Tensor): Tensor;
  /** In-place form of `neg`: writes the result into the tensor and returns it. */
  neg_(input: Tensor): Tensor;
  /** The next floating point number after `self` in the direction of `other`. Floating point only. */
  nextafter(input: Tensor, other: Tensor): Tensor;
  /** The indices of all elements that are not zero: int64, one row per element, one column per dimension. */
  nonzero(input: Tensor): Tensor;
  /**
   * The indices of the first `size` elements that are not zero, a row each; rows beyond hold `fill_value`.
   * Unlike that of `nonzero`, the result's shape does not depend on data.
   */
  nonzeroStatic(input: Tensor, options: { size: number; fillValue?: number }): Tensor;
  /**
   * Vector norm of order `p` over `dim` (all elements by default): `sum(abs(x) ** p) ** (1 / p)`.
   *
   * `p` may be infinite (largest or smallest magnitude) or 0 (how many elements are not 0). The result is real.
   */
  norm(input: Tensor, p?: Real, dim?: number | readonly number[] | null, keepdim?: boolean, dtype?: DTypeName | null): Tensor;
  norm(input: Tensor, options: { p?: Real; dim?: number | readonly number[] | null; keepdim?: boolean; dtype?: DTypeName | null }): Tensor;
  norm(input: Tensor, p: Real, options: { dim?: number | readonly number[] | null; keepdim?: boolean; dtype?: DTypeName | null }): Tensor;
  /** A tensor of ones. */
  ones(size: readonly number[], dtype?: DTypeName | null, device?: string, options?: { requiresGrad?: boolean; session?: Session }): Tensor;
  ones(...size: number[]): Tensor;
  ones(options: { size: readonly number[]; dtype?: DTypeName | null; device?: string; requiresGrad?: boolean; session?: Session }): Tensor;
  ones(size: readonly number[], options: { dtype?: DTypeName | null; device?: string; requiresGrad?: boolean; session?: Session }): Tensor;
  ones(...args: [...size: number[], options: { dtype?: DTypeName | null; device?: string; requiresGrad?: boolean; session?: Session }]): Tensor;
  ones(size: readonly number[], dtype: DTypeName | null, options: { device?: string; requiresGrad?: boolean; session?: Session }): Tensor;
  /** Ones in the shape, dtype and memory order of `self`. */
  onesLike(input: Tensor, options?: { dtype?: DTypeName | null; device?: string | null; rowMajor?: boolean; channelsLast?: boolean; requiresGrad?: boolean; session?: Session }): Tensor;
  /** All products of an element of one vector with one of the other, as a matrix. Promotes dtypes. */
  outer(input: Tensor, vec2: Tensor): Tensor;
  /**
   * The distances in the norm of order `p` between all pairs of the n rows: `n * (n - 1) / 2` of them, row by row
   * of the upper triangle of `cdist`'s matrix.
   */
  pdist(input: Tensor, p?: Real): Tensor;
  pdist(input: Tensor, options: { p?: Real }): Tensor;
  /** A view with its dimensions in the given order. */
  permute(input: Tensor, dims: readonly number[]): Tensor;
  permute(input: Tensor, ...dims: number[]): Tensor;
  permute(input: Tensor, options: { dims: readonly number[] }): Tensor;
  /** `(..., C * r * r, H, W)` as `(..., C, H * r, W * r)`: channels become the elements of r x r blocks. */
  pixelShuffle(input: Tensor, upscaleFactor: number): Tensor;
  pixelShuffle(input: Tensor, options: { upscaleFactor: number }): Tensor;
  /** The inverse of `pixelShuffle`: `(..., C, H * r, W * r)` as `(..., C * r * r, H, W)`. */
  pixelUnshuffle(input: Tensor, downscaleFactor: number): Tensor;
  pixelUnshuffle(input: Tensor, options: { downscaleFactor: number }): Tensor;
  /**
   * A number of the Poisson distribution for each rate in `self`, which are not negative; in its dtype.
   *
   * The gradient is zero.
   */
  poisson(input: Tensor): Tensor;
  /** Complex numbers from magnitude and angle, which broadcast and have one dtype. */
  polar(abs: Tensor, angle: Tensor): Tensor;
  /** `+self`: the tensor as it is. Not defined on bools. */
  positive(input: Tensor): Tensor;
  /**
   * `self` to the power of `exponent`; one of them may be a number.
   *
   * Integers stay integers: a negative number as exponent is an error then, negative entries of an exponent
   * tensor give 0 (or 1 and -1, where the base is).
   */
  pow(input: Tensor | Scalar, exponent: Tensor | Scalar): Tensor;
  /**
   * `self` where positive, else `weight * self`.
   *
   * The weight is one number, or one per channel: per entry of the second dimension. Its dtype is that of `self`.
   */
  prelu(input: Tensor, weight: Tensor): Tensor;
  /** Product of all elements, or along one dimension. Bools and integers are multiplied in int64. */
  prod(input: Tensor, dim?: number | null, keepdim?: boolean, options?: { dtype?: DTypeName | null }): Tensor;
  prod(input: Tensor, options: { dim?: number | null; keepdim?: boolean; dtype?: DTypeName | null }): Tensor;
  prod(input: Tensor, dim: number | null, options: { keepdim?: boolean; dtype?: DTypeName | null }): Tensor;
  /** A copy with `source` written to (or added at) the places that `index` names in the flattened tensor. */
  put(input: Tensor, index: Tensor, source: Tensor, accumulate?: boolean): Tensor;
  put(input: Tensor, index: Tensor, source: Tensor, options: { accumulate?: boolean }): Tensor;
  /**
   * Quantiles of all elements or along `dim`, for one `q` in [0, 1] or a vector of them, which then comes as
   * the first dimension of the result. NaN makes its quantile NaN.
   *
   * `interpolation` says what lies between two elements: `"linear"`, `"lower"`, `"higher"`, `"midpoint"`
   * or `"nearest"`.
   */
  quantile(input: Tensor, q: Tensor | Real, dim?: number | null, keepdim?: boolean, options?: { interpolation?: "linear" | "lower" | "higher" | "midpoint" | "nearest" }): Tensor;
  quantile(input: Tensor, q: Tensor | Real, options: { dim?: number | null; keepdim?: boolean; interpolation?: "linear" | "lower" | "higher" | "midpoint" | "nearest" }): Tensor;
  quantile(input: Tensor, q: Tensor | Real, dim: number | null, options: { keepdim?: boolean; interpolation?: "linear" | "lower" | "higher" | "midpoint" | "nearest" }): Tensor;
  /** Radians to degrees; integers become floats. */
  rad2deg(input: Tensor): Tensor;
  /** In-place form of `rad2deg`: writes the result into the tensor and returns it. */
  rad2deg_(input: Tensor): Tensor;
  /** Numbers uniform in [0, 1). */
  rand(size: readonly number[], dtype?: DTypeName | null, device?: string, options?: { requiresGrad?: boolean; session?: Session }): Tensor;
  rand(...size: number[]): Tensor;
  rand(options: { size: readonly number[]; dtype?: DTypeName | null; device?: string; requiresGrad?: boolean; session?: Session }): Tensor;
  rand(size: readonly number[], options: { dtype?: DTypeName | null; device?: string; requiresGrad?: boolean; session?: Session }): Tensor;
  rand(...args: [...size: number[], options: { dtype?: DTypeName | null; device?: string; requiresGrad?: boolean; session?: Session }]): Tensor;
  rand(size: readonly number[], dtype: DTypeName | null, options: { device?: string; requiresGrad?: boolean; session?: Session }): Tensor;
  /** Numbers uniform in [0, 1), in the shape and dtype of `self`. */
  randLike(input: Tensor, options?: { dtype?: DTypeName | null; device?: string | null; rowMajor?: boolean; channelsLast?: boolean; requiresGrad?: boolean; session?: Session }): Tensor;
  /** Numbers of the normal distribution with mean 0 and variance 1. */
  randn(size: readonly number[], dtype?: DTypeName | null, device?: string, options?: { requiresGrad?: boolean; session?: Session }): Tensor;
  randn(...size: number[]): Tensor;
  randn(options: { size: readonly number[]; dtype?: DTypeName | null; device?: string; requiresGrad?: boolean; session?: Session }): Tensor;
  randn(size: readonly number[], options: { dtype?: DTypeName | null; device?: string; requiresGrad?: boolean; session?: Session }): Tensor;
  randn(...args: [...size: number[], options: { dtype?: DTypeName | null; device?: string; requiresGrad?: boolean; session?: Session }]): Tensor;
  randn(size: readonly number[], dtype: DTypeName | null, options: { device?: string; requiresGrad?: boolean; session?: Session }): Tensor;
  /** Numbers of the normal distribution with mean 0 and variance 1, in the shape and dtype of `self`. */
  randnLike(input: Tensor, options?: { dtype?: DTypeName | null; device?: string | null; rowMajor?: boolean; channelsLast?: boolean; requiresGrad?: boolean; session?: Session }): Tensor;
  /** The integers from 0 up to but without `n`, in random order. */
  randperm(n: number, options?: { dtype?: DTypeName; device?: string; requiresGrad?: boolean; session?: Session }): Tensor;
  randperm(options: { n: number; dtype?: DTypeName; device?: string; requiresGrad?: boolean; session?: Session }): Tensor;
  /** The real parts, as a view; a real tensor as it is. */
  real(input: Tensor): Tensor;
  /** `1 / self`; integers become floats. */
  reciprocal(input: Tensor): Tensor;
  /** In-place form of `reciprocal`: writes the result into the tensor and returns it. */
  reciprocal_(input: Tensor): Tensor;
  /** `max(self, 0)`; NaN stays. The gradient at 0 is 0. */
  relu(input: Tensor): Tensor;
  /** In-place form of `relu`: writes the result into the tensor and returns it. */
  relu_(input: Tensor): Tensor;
  /** What is left by `floorDivide`, as `%` in Python: it has the sign of the divisor. */
  remainder(input: Tensor | Scalar, other: Tensor | Scalar): Tensor;
  /**
   * Slices along `dim` whose norm of order `p` is above `maxnorm`, scaled down to that norm; others as they
   * are. `p` is positive, `maxnorm` not negative.
   */
  renorm(input: Tensor, p: Real, dim: number, maxnorm: Real): Tensor;
  /** Every element `repeats` times in a row, along `dim` or of the flattened tensor. */
  repeatInterleave(input: Tensor, repeats: number, dim?: number | null): Tensor;
  repeatInterleave(input: Tensor, options: { repeats: number; dim?: number | null }): Tensor;
  repeatInterleave(input: Tensor, repeats: number, options: { dim?: number | null }): Tensor;
  /** The elements in another shape, one extent of which may be -1. A view where strides allow it, else a copy. */
  reshape(input: Tensor, shape: readonly number[]): Tensor;
  reshape(input: Tensor, ...shape: number[]): Tensor;
  reshape(input: Tensor, options: { shape: readonly number[] }): Tensor;
  /**
   * Divide by the root of the mean square over the last dimensions, which are `normalized_shape`; then multiply by
   * `weight`. `eps`, by default the dtype's smallest step from 1, is added to the mean square. Floating point only.
   */
  rmsNorm(input: Tensor, normalizedShape: number | readonly number[], weight?: Tensor | null, eps?: number | null): Tensor;
  rmsNorm(input: Tensor, options: { normalizedShape: number | readonly number[]; weight?: Tensor | null; eps?: number | null }): Tensor;
  rmsNorm(input: Tensor, normalizedShape: number | readonly number[], options: { weight?: Tensor | null; eps?: number | null }): Tensor;
  rmsNorm(input: Tensor, normalizedShape: number | readonly number[], weight: Tensor | null, options: { eps?: number | null }): Tensor;
  /**
   * A copy with elements moved along dimensions, those that fall off coming in again at the other end.
   *
   * Without `dims` the tensor is rolled as if it were flat.
   */
  roll(input: Tensor, shifts: number | readonly number[], dims?: number | readonly number[] | null): Tensor;
  roll(input: Tensor, options: { shifts: number | readonly number[]; dims?: number | readonly number[] | null }): Tensor;
  roll(input: Tensor, shifts: number | readonly number[], options: { dims?: number | readonly number[] | null }): Tensor;
  /** A copy rotated `k` times by 90 degrees in the plane of two dimensions, from the first towards the second. */
  rot90(input: Tensor, k?: number, dims?: number | readonly number[]): Tensor;
  rot90(input: Tensor, options: { k?: number; dims?: number | readonly number[] }): Tensor;
  rot90(input: Tensor, k: number, options: { dims?: number | readonly number[] }): Tensor;
  /**
   * Round to `decimals` places, halves to the even neighbour. The gradient is zero.
   *
   * Integers stay as they are, and take no `decimals`.
   */
  round(input: Tensor, options?: { decimals?: number }): Tensor;
  /** In-place form of `round`: writes the result into the tensor and returns it. */
  round_(input: Tensor, options?: { decimals?: number }): Tensor;
  /** `1 / sqrt(self)`; integers become floats. */
  rsqrt(input: Tensor): Tensor;
  /** In-place form of `rsqrt`: writes the result into the tensor and returns it. */
  rsqrt_(input: Tensor): Tensor;
  /** `other - alpha * self`: subtraction with its operands exchanged. Not defined on bools. */
  rsub(input: Tensor, other: Tensor | Scalar, alpha?: Scalar): Tensor;
  rsub(input: Tensor, other: Tensor | Scalar, options: { alpha?: Scalar }): Tensor;
  /**
   * A copy with the elements of `src` (or one number) written to the places along `dim` that `index` names.
   *
   * Where a place is named twice, one of its values stays.
   */
  scatter(input: Tensor, dim: number, index: Tensor, src: Tensor | Scalar): Tensor;
  /** A copy with the elements of `src` added at the places along `dim` that `index` names. */
  scatterAdd(input: Tensor, dim: number, index: Tensor, src: Tensor): Tensor;
  /**
   * A copy in which the elements of `src` that `index` sends to one place are combined there.
   *
   * `reduce` is `"sum"`, `"prod"`, `"mean"`, `"amax"` or `"amin"`; with `include_self` the element
   * that was there counts, too. Places that nothing is sent to keep it.
   */
  scatterReduce(input: Tensor, dim: number, index: Tensor, src: Tensor, reduce: "sum" | "prod" | "mean" | "amax" | "amin", options?: { includeSelf?: boolean }): Tensor;
  scatterReduce(input: Tensor, dim: number, index: Tensor, src: Tensor, options: { reduce: "sum" | "prod" | "mean" | "amax" | "amin"; includeSelf?: boolean }): Tensor;
  /**
   * Where each value would have to be inserted to keep the last dimension of `sorted_sequence` in order.
   *
   * The sequence is a vector, or has the same leading dimensions as the values. Among equals the first place is
   * given, with `right` the one after the last.
   */
  searchsorted(sortedSequence: Tensor, input: Tensor | Scalar, options?: { outInt32?: boolean; right?: boolean }): Tensor;
  /** A view of one index along a dimension, which disappears. */
  select(input: Tensor, dim: number, index: number | bigint): Tensor;
  /** A copy with `src` in the place of `self.select(dim, index)`. */
  selectScatter(input: Tensor, src: Tensor, dim: number, index: number | bigint): Tensor;
  /** `elu` with the constants that keep mean 0 and variance 1 from layer to layer. */
  selu(input: Tensor): Tensor;
  /** In-place form of `selu`: writes the result into the tensor and returns it. */
  selu_(input: Tensor): Tensor;
  /** The sign; of a complex number the number of magnitude 1 in its direction, 0 for 0. */
  sgn(input: Tensor): Tensor;
  /** `1 / (1 + exp(-self))`; integers become floats. */
  sigmoid(input: Tensor): Tensor;
  /** In-place form of `sigmoid`: writes the result into the tensor and returns it. */
  sigmoid_(input: Tensor): Tensor;
  /** -1, 0 or 1; NaN stays. For complex numbers see `sgn`. */
  sign(input: Tensor): Tensor;
  /** Whether the sign is negative, which that of `-0.0` is. Not defined on complex numbers. */
  signbit(input: Tensor): Tensor;
  /** Sine of an angle in radians; integers become floats. */
  sin(input: Tensor): Tensor;
  /** In-place form of `sin`: writes the result into the tensor and returns it. */
  sin_(input: Tensor): Tensor;
  /** `sin(pi * x) / (pi * x)`, 1 at 0; integers become floats. */
  sinc(input: Tensor): Tensor;
  /** In-place form of `sinc`: writes the result into the tensor and returns it. */
  sinc_(input: Tensor): Tensor;
  /** Hyperbolic sine; integers become floats. */
  sinh(input: Tensor): Tensor;
  /** In-place form of `sinh`: writes the result into the tensor and returns it. */
  sinh_(input: Tensor): Tensor;
  /** A copy with `src` in the place of the slice from `start` to `end` along `dim`. */
  sliceScatter(input: Tensor, src: Tensor, dim?: number, start?: number | bigint | null, end?: number | bigint | null, step?: number): Tensor;
  sliceScatter(input: Tensor, src: Tensor, options: { dim?: number; start?: number | bigint | null; end?: number | bigint | null; step?: number }): Tensor;
  sliceScatter(input: Tensor, src: Tensor, dim: number, options: { start?: number | bigint | null; end?: number | bigint | null; step?: number }): Tensor;
  /** Sign (for complex matrices: phase) and natural logarithm of the absolute value of each determinant. */
  slogdet(input: Tensor): [sign: Tensor, logabsdet: Tensor];
  /** Exponentials along `dim`, divided by their sum. NaN where all are -inf. `dtype` converts first. */
  softmax(input: Tensor, dim: number, dtype?: DTypeName | null): Tensor;
  softmax(input: Tensor, options: { dim: number; dtype?: DTypeName | null }): Tensor;
  softmax(input: Tensor, dim: number, options: { dtype?: DTypeName | null }): Tensor;
  /**
   * (the values in order along `dim`, the indices they came from).
   *
   * NaN counts as largest. Equals always keep their order, whether or not `stable` asks for it.
   */
  sort(input: Tensor, dim?: number, descending?: boolean, options?: { stable?: boolean | null }): [values: Tensor, indices: Tensor];
  sort(input: Tensor, options: { dim?: number; descending?: boolean; stable?: boolean | null }): [values: Tensor, indices: Tensor];
  sort(input: Tensor, dim: number, options: { descending?: boolean; stable?: boolean | null }): [values: Tensor, indices: Tensor];
  /** Views of consecutive parts along a dimension: of one size (the last may be smaller), or of given sizes. */
  split(input: Tensor, splitSizeOrSections: number | readonly number[], dim?: number): Tensor[];
  split(input: Tensor, options: { splitSizeOrSections: number | readonly number[]; dim?: number }): Tensor[];
  split(input: Tensor, splitSizeOrSections: number | readonly number[], options: { dim?: number }): Tensor[];
  /** The square root: NaN below 0, an infinite gradient at 0; integers become floats. */
  sqrt(input: Tensor): Tensor;
  /** In-place form of `sqrt`: writes the result into the tensor and returns it. */
  sqrt_(input: Tensor): Tensor;
  /** `self * self`; bools become int64. */
  square(input: Tensor): Tensor;
  /** In-place form of `square`: writes the result into the tensor and returns it. */
  square_(input: Tensor): Tensor;
  /** A view without its dimensions of extent 1: all of them, or those among `dim`. */
  squeeze(input: Tensor, dim?: number | readonly number[] | null): Tensor;
  squeeze(input: Tensor, options: { dim?: number | readonly number[] | null }): Tensor;
  /** Tensors of one shape, side by side along a new dimension. Dtypes are promoted. */
  stack(tensors: readonly Tensor[], dim?: number): Tensor;
  stack(tensors: readonly Tensor[], options: { dim?: number }): Tensor;
  /** Standard deviation over `dim`, the square root of `var`. */
  std(input: Tensor, dim?: number | readonly number[] | null, correction?: Real, keepdim?: boolean): Tensor;
  std(input: Tensor, options: { dim?: number | readonly number[] | null; correction?: Real; keepdim?: boolean }): Tensor;
  std(input: Tensor, dim: number | readonly number[] | null, options: { correction?: Real; keepdim?: boolean }): Tensor;
  std(input: Tensor, dim: number | readonly number[] | null, correction: Real, options: { keepdim?: boolean }): Tensor;
  /** (standard deviation, mean) over `dim`; see `std`. */
  stdMean(input: Tensor, dim?: number | readonly number[] | null, correction?: Real, keepdim?: boolean): [std: Tensor, mean: Tensor];
  stdMean(input: Tensor, options: { dim?: number | readonly number[] | null; correction?: Real; keepdim?: boolean }): [std: Tensor, mean: Tensor];
  stdMean(input: Tensor, dim: number | readonly number[] | null, options: { correction?: Real; keepdim?: boolean }): [std: Tensor, mean: Tensor];
  stdMean(input: Tensor, dim: number | readonly number[] | null, correction: Real, options: { keepdim?: boolean }): [std: Tensor, mean: Tensor];
  /** `self - alpha * other`, with broadcasting and promotion. Not defined on bools. */
  sub(input: Tensor, other: Tensor | Scalar, options?: { alpha?: Scalar }): Tensor;
  /** Sum over `dim` (an int, several, or all). Bools and integers are summed in int64; `dtype` converts first. */
  sum(input: Tensor, dim?: number | readonly number[] | null, keepdim?: boolean, options?: { dtype?: DTypeName | null }): Tensor;
  sum(input: Tensor, options: { dim?: number | readonly number[] | null; keepdim?: boolean; dtype?: DTypeName | null }): Tensor;
  sum(input: Tensor, dim: number | readonly number[] | null, options: { keepdim?: boolean; dtype?: DTypeName | null }): Tensor;
  /** The transposed view of a matrix; a tensor of fewer dimensions as it is. */
  t(input: Tensor): Tensor;
  /**
   * The elements that `index` names in the flattened tensor, in the shape of `index`. Negative indices count
   * from the end.
   */
  take(input: Tensor, index: Tensor): Tensor;
  /** Like `gather`, with `self` and `indices` broadcast in the other dimensions; flat without `dim`. */
  takeAlongDim(input: Tensor, indices: Tensor, dim?: number | null): Tensor;
  takeAlongDim(input: Tensor, indices: Tensor, options: { dim?: number | null }): Tensor;
  /** Tangent of an angle in radians; integers become floats. */
  tan(input: Tensor): Tensor;
  /** In-place form of `tan`: writes the result into the tensor and returns it. */
  tan_(input: Tensor): Tensor;
  /** Hyperbolic tangent; integers become floats. */
  tanh(input: Tensor): Tensor;
  /** In-place form of `tanh`: writes the result into the tensor and returns it. */
  tanh_(input: Tensor): Tensor;
  /**
   * Sum products over pairs of dimensions: `dims` is how many of the last of `self` and first of `other`, or
   * a pair of equally long lists of dimensions. The result has the remaining ones, those of `self` first.
   */
  tensordot(input: Tensor, other: Tensor, dims?: number | readonly (readonly number[])[]): Tensor;
  tensordot(input: Tensor, other: Tensor, options: { dims?: number | readonly (readonly number[])[] }): Tensor;
  /** `self` where above `threshold`, else `value`. */
  threshold(input: Tensor, threshold: Real, value: Real): Tensor;
  /** In-place form of `threshold`: writes the result into the tensor and returns it. */
  threshold_(input: Tensor, threshold: Real, value: Real): Tensor;
  /** Like `repeat`, for the last `len(dims)` dimensions if there are more. */
  tile(input: Tensor, dims: readonly number[]): Tensor;
  tile(input: Tensor, ...dims: number[]): Tensor;
  tile(input: Tensor, options: { dims: readonly number[] }): Tensor;
  /** (the `k` largest, or smallest, elements along `dim`, their indices), always in order, NaN as largest. */
  topk(input: Tensor, k: number, dim?: number, largest?: boolean, sorted?: boolean): [values: Tensor, indices: Tensor];
  topk(input: Tensor, options: { k: number; dim?: number; largest?: boolean; sorted?: boolean }): [values: Tensor, indices: Tensor];
  topk(input: Tensor, k: number, options: { dim?: number; largest?: boolean; sorted?: boolean }): [values: Tensor, indices: Tensor];
  /** The sum of a matrix's diagonal. Integers sum to int64. */
  trace(input: Tensor): Tensor;
  /** A view with two dimensions exchanged. */
  transpose(input: Tensor, dim0: number, dim1: number): Tensor;
  transpose(input: Tensor, options: { dim0: number; dim1: number }): Tensor;
  transpose(input: Tensor, dim0: number, options: { dim1: number }): Tensor;
  /** The lower triangles of matrices, up to the given diagonal; zeros elsewhere. */
  tril(input: Tensor, diagonal?: number): Tensor;
  tril(input: Tensor, options: { diagonal?: number }): Tensor;
  /** Rows (first) and columns (second) of the elements on and below a diagonal, in row-major order. */
  trilIndices(row: number, col: number, offset?: number, options?: { dtype?: DTypeName; device?: string; requiresGrad?: boolean; session?: Session }): Tensor;
  trilIndices(options: { row: number; col: number; offset?: number; dtype?: DTypeName; device?: string; requiresGrad?: boolean; session?: Session }): Tensor;
  trilIndices(row: number, options: { col: number; offset?: number; dtype?: DTypeName; device?: string; requiresGrad?: boolean; session?: Session }): Tensor;
  trilIndices(row: number, col: number, options: { offset?: number; dtype?: DTypeName; device?: string; requiresGrad?: boolean; session?: Session }): Tensor;
  /** The upper triangles of matrices, from the given diagonal on; zeros elsewhere. */
  triu(input: Tensor, diagonal?: number): Tensor;
  triu(input: Tensor, options: { diagonal?: number }): Tensor;
  /** Rows (first) and columns (second) of the elements on and above a diagonal, in row-major order. */
  triuIndices(row: number, col: number, offset?: number, options?: { dtype?: DTypeName; device?: string; requiresGrad?: boolean; session?: Session }): Tensor;
  triuIndices(options: { row: number; col: number; offset?: number; dtype?: DTypeName; device?: string; requiresGrad?: boolean; session?: Session }): Tensor;
  triuIndices(row: number, options: { col: number; offset?: number; dtype?: DTypeName; device?: string; requiresGrad?: boolean; session?: Session }): Tensor;
  triuIndices(row: number, col: number, options: { offset?: number; dtype?: DTypeName; device?: string; requiresGrad?: boolean; session?: Session }): Tensor;
  /** Round towards zero; integers stay as they are. The gradient is zero. */
  trunc(input: Tensor): Tensor;
  /** In-place form of `trunc`: writes the result into the tensor and returns it. */
  trunc_(input: Tensor): Tensor;
  /** Views of every index along a dimension, which disappears. */
  unbind(input: Tensor, dim?: number): Tensor[];
  unbind(input: Tensor, options: { dim?: number }): Tensor[];
  /** One dimension split into several of the given extents, one of which may be -1. */
  unflatten(input: Tensor, dim: number, sizes: number | readonly number[]): Tensor;
  unflatten(input: Tensor, options: { dim: number; sizes: number | readonly number[] }): Tensor;
  unflatten(input: Tensor, dim: number, options: { sizes: number | readonly number[] }): Tensor;
  /**
   * The distinct elements (or, with `dim`, the distinct slices along it), in order.
   *
   * `return_inverse` adds the place of each element among them, `return_counts` how often each occurs.
   */
  unique(input: Tensor, sorted?: boolean, returnInverse?: boolean, returnCounts?: boolean, dim?: number | null): Tensor[];
  unique(input: Tensor, options: { sorted?: boolean; returnInverse?: boolean; returnCounts?: boolean; dim?: number | null }): Tensor[];
  unique(input: Tensor, sorted: boolean, options: { returnInverse?: boolean; returnCounts?: boolean; dim?: number | null }): Tensor[];
  /** The elements (or slices along `dim`) that differ from the one before; results as of `unique`. */
  uniqueConsecutive(input: Tensor, returnInverse?: boolean, returnCounts?: boolean, dim?: number | null): Tensor[];
  uniqueConsecutive(input: Tensor, options: { returnInverse?: boolean; returnCounts?: boolean; dim?: number | null }): Tensor[];
  uniqueConsecutive(input: Tensor, returnInverse: boolean, options: { returnCounts?: boolean; dim?: number | null }): Tensor[];
  uniqueConsecutive(input: Tensor, returnInverse: boolean, returnCounts: boolean, options: { dim?: number | null }): Tensor[];
  /** A view with a dimension of extent 1 inserted at `dim`. */
  unsqueeze(input: Tensor, dim: number): Tensor;
  unsqueeze(input: Tensor, options: { dim: number }): Tensor;
  /**
   * Variance over `dim`: squared distances from the mean, divided by (their number - `correction`).
   *
   * Real for complex values. NaN where nothing is left to divide by.
   */
  var(input: Tensor, dim?: number | readonly number[] | null, correction?: Real, keepdim?: boolean): Tensor;
  var(input: Tensor, options: { dim?: number | readonly number[] | null; correction?: Real; keepdim?: boolean }): Tensor;
  var(input: Tensor, dim: number | readonly number[] | null, options: { correction?: Real; keepdim?: boolean }): Tensor;
  var(input: Tensor, dim: number | readonly number[] | null, correction: Real, options: { keepdim?: boolean }): Tensor;
  /** (variance, mean) over `dim`; see `var`. */
  varMean(input: Tensor, dim?: number | readonly number[] | null, correction?: Real, keepdim?: boolean): [variance: Tensor, mean: Tensor];
  varMean(input: Tensor, options: { dim?: number | readonly number[] | null; correction?: Real; keepdim?: boolean }): [variance: Tensor, mean: Tensor];
  varMean(input: Tensor, dim: number | readonly number[] | null, options: { correction?: Real; keepdim?: boolean }): [variance: Tensor, mean: Tensor];
  varMean(input: Tensor, dim: number | readonly number[] | null, correction: Real, options: { keepdim?: boolean }): [variance: Tensor, mean: Tensor];
  /** The dot product of two vectors with `self` conjugated. */
  vdot(input: Tensor, other: Tensor): Tensor;
  /** A view of pairs as complex numbers: the last dimension has extent 2, and its elements are adjacent. */
  viewAsComplex(input: Tensor): Tensor;
  /** A view of complex numbers as pairs: a last dimension of extent 2 with the real and the imaginary part. */
  viewAsReal(input: Tensor): Tensor;
  /**
   * `self` where the condition holds, else `other`; all three broadcast, the two values promote.
   *
   * The condition is bool or uint8. The side that is not taken gets a gradient of zero.
   */
  where(condition: Tensor, input: Tensor | Scalar, other: Tensor | Scalar): Tensor;
  /** `self * log(other)`, 0 where `self` is 0 unless `other` is NaN. Integers become floats. */
  xlogy(input: Tensor | Scalar, other: Tensor | Scalar): Tensor;
  /** In-place form of `xlogy`: writes the result into the tensor and returns it. */
  xlogy_(input: Tensor | Scalar, other: Tensor | Scalar): Tensor;
  /** Write 0 into every element. */
  zero_(input: Tensor): Tensor;
  /** A tensor of zeros. */
  zeros(size: readonly number[], dtype?: DTypeName | null, device?: string, options?: { requiresGrad?: boolean; session?: Session }): Tensor;
  zeros(...size: number[]): Tensor;
  zeros(options: { size: readonly number[]; dtype?: DTypeName | null; device?: string; requiresGrad?: boolean; session?: Session }): Tensor;
  zeros(size: readonly number[], options: { dtype?: DTypeName | null; device?: string; requiresGrad?: boolean; session?: Session }): Tensor;
  zeros(...args: [...size: number[], options: { dtype?: DTypeName | null; device?: string; requiresGrad?: boolean; session?: Session }]): Tensor;
  zeros(size: readonly number[], dtype: DTypeName | null, options: { device?: string; requiresGrad?: boolean; session?: Session }): Tensor;
  /** Zeros in the shape, dtype and memory order of `self`. */
  zerosLike(input: Tensor, options?: { dtype?: DTypeName | null; device?: string | null; rowMajor?: boolean; channelsLast?: boolean; requiresGrad?: boolean; session?: Session }): Tensor;
}

/** The functions of nn.functional. */
export interface NNFunctions {
  /** Means over as many windows as `output_size`, along the last dimension. See `adaptiveAvgPool2d`. */
  adaptiveAvgPool1d(input: Tensor, outputSize: number | readonly (number | null)[]): Tensor;
  adaptiveAvgPool1d(input: Tensor, options: { outputSize: number | readonly (number | null)[] }): Tensor;
  /**
   * Means over windows that divide `(N, C, H, W)` or `(C, H, W)` as evenly as they can into `output_size`
   * (`None` keeps an extent); windows overlap where the extents do not divide. Floating point only.
   */
  adaptiveAvgPool2d(input: Tensor, outputSize: number | readonly (number | null)[]): Tensor;
  adaptiveAvgPool2d(input: Tensor, options: { outputSize: number | readonly (number | null)[] }): Tensor;
  /** Means over windows that divide volumes into `output_size`. See `adaptiveAvgPool2d`. */
  adaptiveAvgPool3d(input: Tensor, outputSize: number | readonly (number | null)[]): Tensor;
  adaptiveAvgPool3d(input: Tensor, options: { outputSize: number | readonly (number | null)[] }): Tensor;
  /** The mean of every window along the last dimension of `(N, C, L)` or `(C, L)`. See `avgPool2d`. */
  avgPool1d(input: Tensor, kernelSize: number | readonly number[], stride?: number | readonly number[] | null, padding?: number | readonly number[], ceilMode?: boolean, countIncludePad?: boolean): Tensor;
  avgPool1d(input: Tensor, options: { kernelSize: number | readonly number[]; stride?: number | readonly number[] | null; padding?: number | readonly number[]; ceilMode?: boolean; countIncludePad?: boolean }): Tensor;
  avgPool1d(input: Tensor, kernelSize: number | readonly number[], options: { stride?: number | readonly number[] | null; padding?: number | readonly number[]; ceilMode?: boolean; countIncludePad?: boolean }): Tensor;
  /**
   * The mean of every window of `(N, C, H, W)` or `(C, H, W)`.
   *
   * A window's sum is divided by its number of elements, with the zeros of the padding unless
   * `count_include_pad` is false, or by `divisor_override`. Otherwise as `maxPool2d`.
   */
  avgPool2d(input: Tensor, kernelSize: number | readonly number[], stride?: number | readonly number[] | null, padding?: number | readonly number[], ceilMode?: boolean, countIncludePad?: boolean, divisorOverride?: number | null): Tensor;
  avgPool2d(input: Tensor, options: { kernelSize: number | readonly number[]; stride?: number | readonly number[] | null; padding?: number | readonly number[]; ceilMode?: boolean; countIncludePad?: boolean; divisorOverride?: number | null }): Tensor;
  avgPool2d(input: Tensor, kernelSize: number | readonly number[], options: { stride?: number | readonly number[] | null; padding?: number | readonly number[]; ceilMode?: boolean; countIncludePad?: boolean; divisorOverride?: number | null }): Tensor;
  /** The mean of every window of `(N, C, D, H, W)` or `(C, D, H, W)`. See `avgPool2d`. */
  avgPool3d(input: Tensor, kernelSize: number | readonly number[], stride?: number | readonly number[] | null, padding?: number | readonly number[], ceilMode?: boolean, countIncludePad?: boolean, divisorOverride?: number | null): Tensor;
  avgPool3d(input: Tensor, options: { kernelSize: number | readonly number[]; stride?: number | readonly number[] | null; padding?: number | readonly number[]; ceilMode?: boolean; countIncludePad?: boolean; divisorOverride?: number | null }): Tensor;
  avgPool3d(input: Tensor, kernelSize: number | readonly number[], options: { stride?: number | readonly number[] | null; padding?: number | readonly number[]; ceilMode?: boolean; countIncludePad?: boolean; divisorOverride?: number | null }): Tensor;
  /**
   * Shift and scale each channel (dimension 1) to mean 0 and variance 1; then multiply by `weight`, add `bias`.
   *
   * In `training` mean and (biased) variance are the batch's, and `running_mean` and `running_var` move towards
   * them (the variance unbiased) by `momentum`, in place; otherwise the running ones are used. A single value per
   * channel raises ValueError in training. Floating point only.
   */
  batchNorm(input: Tensor, runningMean: Tensor | null, runningVar: Tensor | null, weight?: Tensor | null, bias?: Tensor | null, training?: boolean, momentum?: Real, eps?: number): Tensor;
  batchNorm(input: Tensor, runningMean: Tensor | null, runningVar: Tensor | null, options: { weight?: Tensor | null; bias?: Tensor | null; training?: boolean; momentum?: Real; eps?: number }): Tensor;
  batchNorm(input: Tensor, runningMean: Tensor | null, runningVar: Tensor | null, weight: Tensor | null, options: { bias?: Tensor | null; training?: boolean; momentum?: Real; eps?: number }): Tensor;
  /** `sum_ij input1[..., i] * weight[o, i, j] * input2[..., j] + bias[o]` for inputs of equal leading shape. */
  bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias?: Tensor | null): Tensor;
  bilinear(input1: Tensor, input2: Tensor, weight: Tensor, options: { bias?: Tensor | null }): Tensor;
  /**
   * `-(target * log(self) + (1 - target) * log(1 - self))`, times `weight`, then reduced.
   *
   * The input holds probabilities; one outside [0, 1] raises RuntimeError. Logarithms are cut at -100.
   */
  binaryCrossEntropy(input: Tensor, target: Tensor, weight?: Tensor | null, reduction?: "none" | "mean" | "sum"): Tensor;
  binaryCrossEntropy(input: Tensor, target: Tensor, options: { weight?: Tensor | null; reduction?: "none" | "mean" | "sum" }): Tensor;
  binaryCrossEntropy(input: Tensor, target: Tensor, weight: Tensor | null, options: { reduction?: "none" | "mean" | "sum" }): Tensor;
  /**
   * `binaryCrossEntropy` of `sigmoid(self)`, computed without overflow; `pos_weight` multiplies the term
   * of the positive class. Input and target are floating point; the result has the target's dtype.
   */
  binaryCrossEntropyWithLogits(input: Tensor, target: Tensor, weight?: Tensor | null, posWeight?: Tensor | null, reduction?: "none" | "mean" | "sum"): Tensor;
  binaryCrossEntropyWithLogits(input: Tensor, target: Tensor, options: { weight?: Tensor | null; posWeight?: Tensor | null; reduction?: "none" | "mean" | "sum" }): Tensor;
  binaryCrossEntropyWithLogits(input: Tensor, target: Tensor, weight: Tensor | null, options: { posWeight?: Tensor | null; reduction?: "none" | "mean" | "sum" }): Tensor;
  binaryCrossEntropyWithLogits(input: Tensor, target: Tensor, weight: Tensor | null, posWeight: Tensor | null, options: { reduction?: "none" | "mean" | "sum" }): Tensor;
  /** `self` where positive, else `alpha * (exp(self / alpha) - 1)`: smooth at 0 for every alpha but 0. */
  celu(input: Tensor, alpha?: Real): Tensor;
  celu(input: Tensor, options: { alpha?: Real }): Tensor;
  /** In-place form of `celu`: writes the result into the tensor and returns it. */
  celu_(input: Tensor, alpha?: Real): Tensor;
  celu_(input: Tensor, options: { alpha?: Real }): Tensor;
  /** `(N, C, ...)` with its channels interleaved: the first of each of `groups` groups, then the second, ... */
  channelShuffle(input: Tensor, groups: number): Tensor;
  channelShuffle(input: Tensor, options: { groups: number }): Tensor;
  /**
   * Slide kernels along one dimension: `(N, C, L)` or `(C, L)` with a weight `(O, C / groups, K)` gives
   * `(N, O, L')`. See `conv2d`.
   */
  conv1d(input: Tensor, weight: Tensor, bias?: Tensor | null, stride?: number | readonly number[], padding?: number | "valid" | "same" | readonly number[], dilation?: number | readonly number[], groups?: number): Tensor;
  conv1d(input: Tensor, weight: Tensor, options: { bias?: Tensor | null; stride?: number | readonly number[]; padding?: number | "valid" | "same" | readonly number[]; dilation?: number | readonly number[]; groups?: number }): Tensor;
  conv1d(input: Tensor, weight: Tensor, bias: Tensor | null, options: { stride?: number | readonly number[]; padding?: number | "valid" | "same" | readonly number[]; dilation?: number | readonly number[]; groups?: number }): Tensor;
  /**
   * Slide kernels over images: `(N, C, H, W)` or `(C, H, W)` with a weight `(O, C / groups, KH, KW)` gives
   * `(N, O, H', W')`, as a correlation (the kernel is not flipped).
   *
   * `padding` zeros surround the input; `"valid"` is none, `"same"` as many as keep the size (stride 1 only).
   * With `groups` each group of outputs sees only its group of channels. All operands have one dtype. Shapes that
   * do not fit raise RuntimeError.
   */
  conv2d(input: Tensor, weight: Tensor, bias?: Tensor | null, stride?: number | readonly number[], padding?: number | "valid" | "same" | readonly number[], dilation?: number | readonly number[], groups?: number): Tensor;
  conv2d(input: Tensor, weight: Tensor, options: { bias?: Tensor | null; stride?: number | readonly number[]; padding?: number | "valid" | "same" | readonly number[]; dilation?: number | readonly number[]; groups?: number }): Tensor;
  conv2d(input: Tensor, weight: Tensor, bias: Tensor | null, options: { stride?: number | readonly number[]; padding?: number | "valid" | "same" | readonly number[]; dilation?: number | readonly number[]; groups?: number }): Tensor;
  /**
   * Slide kernels through volumes: `(N, C, D, H, W)` or `(C, D, H, W)` with a weight of five dimensions. See
   * `conv2d`.
   */
  conv3d(input: Tensor, weight: Tensor, bias?: Tensor | null, stride?: number | readonly number[], padding?: number | "valid" | "same" | readonly number[], dilation?: number | readonly number[], groups?: number): Tensor;
  conv3d(input: Tensor, weight: Tensor, options: { bias?: Tensor | null; stride?: number | readonly number[]; padding?: number | "valid" | "same" | readonly number[]; dilation?: number | readonly number[]; groups?: number }): Tensor;
  conv3d(input: Tensor, weight: Tensor, bias: Tensor | null, options: { stride?: number | readonly number[]; padding?: number | "valid" | "same" | readonly number[]; dilation?: number | readonly number[]; groups?: number }): Tensor;
  /**
   * The transpose of `conv1d`: `(N, C, L)` with a weight `(C, O / groups, K)` gives `(N, O, L')`. See
   * `convTranspose2d`.
   */
  convTranspose1d(input: Tensor, weight: Tensor, bias?: Tensor | null, stride?: number | readonly number[], padding?: number | readonly number[], outputPadding?: number | readonly number[], groups?: number, dilation?: number | readonly number[]): Tensor;
  convTranspose1d(input: Tensor, weight: Tensor, options: { bias?: Tensor | null; stride?: number | readonly number[]; padding?: number | readonly number[]; outputPadding?: number | readonly number[]; groups?: number; dilation?: number | readonly number[] }): Tensor;
  convTranspose1d(input: Tensor, weight: Tensor, bias: Tensor | null, options: { stride?: number | readonly number[]; padding?: number | readonly number[]; outputPadding?: number | readonly number[]; groups?: number; dilation?: number | readonly number[] }): Tensor;
  /**
   * The transpose of `conv2d` as a linear map: every input element lays a scaled kernel onto the output.
   *
   * A weight has shape `(C, O / groups, KH, KW)`. `padding` is cut from the result's edges, and `output_padding`
   * is added to its ends, to tell apart the sizes that a strided convolution maps to one.
   */
  convTranspose2d(input: Tensor, weight: Tensor, bias?: Tensor | null, stride?: number | readonly number[], padding?: number | readonly number[], outputPadding?: number | readonly number[], groups?: number, dilation?: number | readonly number[]): Tensor;
  convTranspose2d(input: Tensor, weight: Tensor, options: { bias?: Tensor | null; stride?: number | readonly number[]; padding?: number | readonly number[]; outputPadding?: number | readonly number[]; groups?: number; dilation?: number | readonly number[] }): Tensor;
  convTranspose2d(input: Tensor, weight: Tensor, bias: Tensor | null, options: { stride?: number | readonly number[]; padding?: number | readonly number[]; outputPadding?: number | readonly number[]; groups?: number; dilation?: number | readonly number[] }): Tensor;
  /** The transpose of `conv3d`, with a weight `(C, O / groups, KD, KH, KW)`. See `convTranspose2d`. */
  convTranspose3d(input: Tensor, weight: Tensor, bias?: Tensor | null, stride?: number | readonly number[], padding?: number | readonly number[], outputPadding?: number | readonly number[], groups?: number, dilation?: number | readonly number[]): Tensor;
  convTranspose3d(input: Tensor, weight: Tensor, options: { bias?: Tensor | null; stride?: number | readonly number[]; padding?: number | readonly number[]; outputPadding?: number | readonly number[]; groups?: number; dilation?: number | readonly number[] }): Tensor;
  convTranspose3d(input: Tensor, weight: Tensor, bias: Tensor | null, options: { stride?: number | readonly number[]; padding?: number | readonly number[]; outputPadding?: number | readonly number[]; groups?: number; dilation?: number | readonly number[] }): Tensor;
  /**
   * `1 - cos` of the angle between two vectors where the target is 1, `max(0, cos - margin)` where it is -1.
   *
   * Inputs are `(N, D)` with a target `(N,)`, or `(D,)` with a target `()`; the losses are then reduced.
   */
  cosineEmbeddingLoss(input1: Tensor, input2: Tensor, target: Tensor, margin?: number, reduction?: "none" | "mean" | "sum"): Tensor;
  cosineEmbeddingLoss(input1: Tensor, input2: Tensor, target: Tensor, options: { margin?: number; reduction?: "none" | "mean" | "sum" }): Tensor;
  cosineEmbeddingLoss(input1: Tensor, input2: Tensor, target: Tensor, margin: number, options: { reduction?: "none" | "mean" | "sum" }): Tensor;
  /**
   * The cosine of the angle between vectors along `dim`, with broadcasting and promotion: their product divided by
   * both norms, each at least `eps`.
   */
  cosineSimilarity(x1: Tensor, x2: Tensor, dim?: number, eps?: Real): Tensor;
  cosineSimilarity(x1: Tensor, x2: Tensor, options: { dim?: number; eps?: Real }): Tensor;
  cosineSimilarity(x1: Tensor, x2: Tensor, dim: number, options: { eps?: Real }): Tensor;
  /**
   * `nllLoss` of the log-softmax of scores.
   *
   * The target holds class indices, or, with the shape and a dtype like the scores', class probabilities, to which
   * gradients flow. `label_smoothing` mixes that share of the uniform distribution into the target.
   */
  crossEntropy(input: Tensor, target: Tensor, weight?: Tensor | null, ignoreIndex?: number, reduction?: "none" | "mean" | "sum", labelSmoothing?: number): Tensor;
  crossEntropy(input: Tensor, target: Tensor, options: { weight?: Tensor | null; ignoreIndex?: number; reduction?: "none" | "mean" | "sum"; labelSmoothing?: number }): Tensor;
  crossEntropy(input: Tensor, target: Tensor, weight: Tensor | null, options: { ignoreIndex?: number; reduction?: "none" | "mean" | "sum"; labelSmoothing?: number }): Tensor;
  /**
   * Minus the log-probability of sequences of labels, summed over all ways to align them with the input.
   *
   * Args:
   *     self: log-probabilities `(T, N, C)` of C labels at T times, or `(T, C)` without a batch.
   *     targets: labels, integers: `(N, S)`, padded, or all of them one after the other in one dimension.
   *     input_lengths: so many of the T times count, `(N,)` or `()`.
   *     target_lengths: so many labels each sequence has, `(N,)` or `()`.
   *     blank: the label that stands for none.
   *     reduction: `"mean"` divides each loss by its number of labels (1 at least) first.
   *     zero_infinity: losses of sequences too long to be aligned are 0 rather than infinite, and so their gradients.
   *
   * A length or a label outside its range raises RuntimeError. Graves et al., "Connectionist Temporal Classification",
   * ICML 2006.
   */
  ctcLoss(input: Tensor, targets: Tensor, inputLengths: Tensor, targetLengths: Tensor, blank?: number, reduction?: "none" | "mean" | "sum", zeroInfinity?: boolean): Tensor;
  ctcLoss(input: Tensor, targets: Tensor, inputLengths: Tensor, targetLengths: Tensor, options: { blank?: number; reduction?: "none" | "mean" | "sum"; zeroInfinity?: boolean }): Tensor;
  ctcLoss(input: Tensor, targets: Tensor, inputLengths: Tensor, targetLengths: Tensor, blank: number, options: { reduction?: "none" | "mean" | "sum"; zeroInfinity?: boolean }): Tensor;
  ctcLoss(input: Tensor, targets: Tensor, inputLengths: Tensor, targetLengths: Tensor, blank: number, reduction: "none" | "mean" | "sum", options: { zeroInfinity?: boolean }): Tensor;
  /** `self` where positive, else `alpha * (exp(self) - 1)`. */
  elu(input: Tensor, alpha?: Real): Tensor;
  elu(input: Tensor, options: { alpha?: Real }): Tensor;
  /** In-place form of `elu`: writes the result into the tensor and returns it. */
  elu_(input: Tensor, alpha?: Real): Tensor;
  elu_(input: Tensor, options: { alpha?: Real }): Tensor;
  /**
   * Minus the log-density of `target` under normal distributions with means `self` and variances `var`.
   *
   * `0.5 * (log(v) + (self - target) ** 2 / v)` with `v = max(var, eps)`, whose bound gradients ignore; with
   * broadcasting and promotion, then reduced. `var` has the shape of `self`, or lacks its last dimension, or has
   * the extent 1 in one dimension. A negative variance raises ValueError. `full` adds the constant
   * `0.5 * log(2 * pi)`.
   */
  gaussianNllLoss(input: Tensor, target: Tensor, var_: Tensor, full?: boolean, eps?: number, reduction?: "none" | "mean" | "sum"): Tensor;
  gaussianNllLoss(input: Tensor, target: Tensor, var_: Tensor, options: { full?: boolean; eps?: number; reduction?: "none" | "mean" | "sum" }): Tensor;
  gaussianNllLoss(input: Tensor, target: Tensor, var_: Tensor, full: boolean, options: { eps?: number; reduction?: "none" | "mean" | "sum" }): Tensor;
  gaussianNllLoss(input: Tensor, target: Tensor, var_: Tensor, full: boolean, eps: number, options: { reduction?: "none" | "mean" | "sum" }): Tensor;
  /**
   * `self` times the normal distribution's probability of a smaller value.
   *
   * `approximate="tanh"` replaces the error function by a hyperbolic tangent.
   */
  gelu(input: Tensor, approximate?: "none" | "tanh"): Tensor;
  gelu(input: Tensor, options: { approximate?: "none" | "tanh" }): Tensor;
  /**
   * Shift and scale each group of channels of each sample to mean 0 and variance 1; then multiply by `weight` and
   * add `bias`, which have one element per channel. Floating point only.
   */
  groupNorm(input: Tensor, numGroups: number, weight?: Tensor | null, bias?: Tensor | null, eps?: number): Tensor;
  groupNorm(input: Tensor, options: { numGroups: number; weight?: Tensor | null; bias?: Tensor | null; eps?: number }): Tensor;
  groupNorm(input: Tensor, numGroups: number, options: { weight?: Tensor | null; bias?: Tensor | null; eps?: number }): Tensor;
  /** 0 from `-lambd` to `lambd`, elsewhere `self`. */
  hardshrink(input: Tensor, lambd?: Real): Tensor;
  hardshrink(input: Tensor, options: { lambd?: Real }): Tensor;
  /** `relu6(self + 3) / 6`. The gradient at -3 and 3 is 0. */
  hardsigmoid(input: Tensor): Tensor;
  /** In-place form of `hardsigmoid`: writes the result into the tensor and returns it. */
  hardsigmoid_(input: Tensor): Tensor;
  /** `self * relu6(self + 3) / 6`. */
  hardswish(input: Tensor): Tensor;
  /** In-place form of `hardswish`: writes the result into the tensor and returns it. */
  hardswish_(input: Tensor): Tensor;
  /** `self` cut to the range from `min_val` to `max_val`. The gradient at either end is 0. */
  hardtanh(input: Tensor, minVal?: Scalar, maxVal?: Scalar): Tensor;
  hardtanh(input: Tensor, options: { minVal?: Scalar; maxVal?: Scalar }): Tensor;
  hardtanh(input: Tensor, minVal: Scalar, options: { maxVal?: Scalar }): Tensor;
  /** In-place form of `hardtanh`: writes the result into the tensor and returns it. */
  hardtanh_(input: Tensor, minVal?: Scalar, maxVal?: Scalar): Tensor;
  hardtanh_(input: Tensor, options: { minVal?: Scalar; maxVal?: Scalar }): Tensor;
  hardtanh_(input: Tensor, minVal: Scalar, options: { maxVal?: Scalar }): Tensor;
  /**
   * A distance itself where the target is 1, `max(0, margin - self)` where it is -1; with broadcasting, then
   * reduced.
   */
  hingeEmbeddingLoss(input: Tensor, target: Tensor, margin?: number, reduction?: "none" | "mean" | "sum"): Tensor;
  hingeEmbeddingLoss(input: Tensor, target: Tensor, options: { margin?: number; reduction?: "none" | "mean" | "sum" }): Tensor;
  hingeEmbeddingLoss(input: Tensor, target: Tensor, margin: number, options: { reduction?: "none" | "mean" | "sum" }): Tensor;
  /**
   * `0.5 * d ** 2` where the difference `d` is below `delta`, `delta * (abs(d) - 0.5 * delta)` elsewhere;
   * then reduced. The result has the dtype of `self`.
   */
  huberLoss(input: Tensor, target: Tensor, reduction?: "none" | "mean" | "sum", delta?: number): Tensor;
  huberLoss(input: Tensor, target: Tensor, options: { reduction?: "none" | "mean" | "sum"; delta?: number }): Tensor;
  huberLoss(input: Tensor, target: Tensor, reduction: "none" | "mean" | "sum", options: { delta?: number }): Tensor;
  /** `batchNorm` of every sample by itself: mean and variance are over the dimensions after the second. */
  instanceNorm(input: Tensor, runningMean?: Tensor | null, runningVar?: Tensor | null, weight?: Tensor | null, bias?: Tensor | null, useInputStats?: boolean, momentum?: Real, eps?: number): Tensor;
  instanceNorm(input: Tensor, options: { runningMean?: Tensor | null; runningVar?: Tensor | null; weight?: Tensor | null; bias?: Tensor | null; useInputStats?: boolean; momentum?: Real; eps?: number }): Tensor;
  instanceNorm(input: Tensor, runningMean: Tensor | null, options: { runningVar?: Tensor | null; weight?: Tensor | null; bias?: Tensor | null; useInputStats?: boolean; momentum?: Real; eps?: number }): Tensor;
  /**
   * The divergence of distributions: `target * (log(target) - self)` for log-probabilities `self`, with
   * broadcasting and promotion. With `log_target` the target holds log-probabilities, too. The reduction
   * `"batchmean"` divides the sum by the first extent.
   */
  klDiv(input: Tensor, target: Tensor, reduction?: "none" | "mean" | "sum" | "batchmean", logTarget?: boolean): Tensor;
  klDiv(input: Tensor, target: Tensor, options: { reduction?: "none" | "mean" | "sum" | "batchmean"; logTarget?: boolean }): Tensor;
  klDiv(input: Tensor, target: Tensor, reduction: "none" | "mean" | "sum" | "batchmean", options: { logTarget?: boolean }): Tensor;
  /** The absolute difference from the target, elementwise with broadcasting and promotion, then reduced. */
  l1Loss(input: Tensor, target: Tensor, reduction?: "none" | "mean" | "sum"): Tensor;
  l1Loss(input: Tensor, target: Tensor, options: { reduction?: "none" | "mean" | "sum" }): Tensor;
  /**
   * Shift and scale to mean 0 and variance 1 over the last dimensions, which are `normalized_shape`; then multiply
   * by `weight` and add `bias`, both of that shape.
   *
   * `eps` is added to the variance, which is the biased one. Floating point only; parameters have the input's
   * dtype, or float32 where it is a half precision one.
   */
  layerNorm(input: Tensor, normalizedShape: number | readonly number[], weight?: Tensor | null, bias?: Tensor | null, eps?: number): Tensor;
  layerNorm(input: Tensor, options: { normalizedShape: number | readonly number[]; weight?: Tensor | null; bias?: Tensor | null; eps?: number }): Tensor;
  layerNorm(input: Tensor, normalizedShape: number | readonly number[], options: { weight?: Tensor | null; bias?: Tensor | null; eps?: number }): Tensor;
  /** `self` where positive, else `negative_slope * self`. */
  leakyRelu(input: Tensor, negativeSlope?: Real): Tensor;
  leakyRelu(input: Tensor, options: { negativeSlope?: Real }): Tensor;
  /** In-place form of `leakyRelu`: writes the result into the tensor and returns it. */
  leakyRelu_(input: Tensor, negativeSlope?: Real): Tensor;
  leakyRelu_(input: Tensor, options: { negativeSlope?: Real }): Tensor;
  /**
   * `self @ weight.T + bias`: `(..., in)` and a weight of `(out, in)` give `(..., out)`.
   *
   * A weight of one dimension, `(in,)`, gives `(...)`. All operands have one dtype; the bias is expanded.
   */
  linear(input: Tensor, weight: Tensor, bias?: Tensor | null): Tensor;
  linear(input: Tensor, weight: Tensor, options: { bias?: Tensor | null }): Tensor;
  /** Logarithm of `softmax`, computed without its rounding. */
  logSoftmax(input: Tensor, dim: number, dtype?: DTypeName | null): Tensor;
  logSoftmax(input: Tensor, options: { dim: number; dtype?: DTypeName | null }): Tensor;
  logSoftmax(input: Tensor, dim: number, options: { dtype?: DTypeName | null }): Tensor;
  /** `log(sigmoid(self))` without underflow on the way. */
  logsigmoid(input: Tensor): Tensor;
  /**
   * `max(0, -target * (input1 - input2) + margin)`: with a target of 1 the first input should be the larger, with
   * -1 the second. All have as many dimensions; with broadcasting, then reduced.
   */
  marginRankingLoss(input1: Tensor, input2: Tensor, target: Tensor, margin?: number, reduction?: "none" | "mean" | "sum"): Tensor;
  marginRankingLoss(input1: Tensor, input2: Tensor, target: Tensor, options: { margin?: number; reduction?: "none" | "mean" | "sum" }): Tensor;
  marginRankingLoss(input1: Tensor, input2: Tensor, target: Tensor, margin: number, options: { reduction?: "none" | "mean" | "sum" }): Tensor;
  /** The maximum of every window along the last dimension of `(N, C, L)` or `(C, L)`. See `maxPool2d`. */
  maxPool1d(input: Tensor, kernelSize: number | readonly number[], stride?: number | readonly number[] | null, padding?: number | readonly number[], dilation?: number | readonly number[], ceilMode?: boolean): Tensor;
  maxPool1d(input: Tensor, options: { kernelSize: number | readonly number[]; stride?: number | readonly number[] | null; padding?: number | readonly number[]; dilation?: number | readonly number[]; ceilMode?: boolean }): Tensor;
  maxPool1d(input: Tensor, kernelSize: number | readonly number[], options: { stride?: number | readonly number[] | null; padding?: number | readonly number[]; dilation?: number | readonly number[]; ceilMode?: boolean }): Tensor;
  /**
   * The maximum of every window of `(N, C, H, W)` or `(C, H, W)`.
   *
   * `stride` is the kernel size unless given; `padding` (at most half of the kernel's reach) counts as minus
   * infinity; `ceil_mode` also counts windows that reach beyond the end. The gradient goes to the first of equal
   * maxima. NaN wins. Bools and complex numbers raise NotImplementedError.
   */
  maxPool2d(input: Tensor, kernelSize: number | readonly number[], stride?: number | readonly number[] | null, padding?: number | readonly number[], dilation?: number | readonly number[], ceilMode?: boolean): Tensor;
  maxPool2d(input: Tensor, options: { kernelSize: number | readonly number[]; stride?: number | readonly number[] | null; padding?: number | readonly number[]; dilation?: number | readonly number[]; ceilMode?: boolean }): Tensor;
  maxPool2d(input: Tensor, kernelSize: number | readonly number[], options: { stride?: number | readonly number[] | null; padding?: number | readonly number[]; dilation?: number | readonly number[]; ceilMode?: boolean }): Tensor;
  /** The maximum of every window of `(N, C, D, H, W)` or `(C, D, H, W)`. See `maxPool2d`. */
  maxPool3d(input: Tensor, kernelSize: number | readonly number[], stride?: number | readonly number[] | null, padding?: number | readonly number[], dilation?: number | readonly number[], ceilMode?: boolean): Tensor;
  maxPool3d(input: Tensor, options: { kernelSize: number | readonly number[]; stride?: number | readonly number[] | null; padding?: number | readonly number[]; dilation?: number | readonly number[]; ceilMode?: boolean }): Tensor;
  maxPool3d(input: Tensor, kernelSize: number | readonly number[], options: { stride?: number | readonly number[] | null; padding?: number | readonly number[]; dilation?: number | readonly number[]; ceilMode?: boolean }): Tensor;
  /** `self * tanh(softplus(self))`. */
  mish(input: Tensor): Tensor;
  /** In-place form of `mish`: writes the result into the tensor and returns it. */
  mish_(input: Tensor): Tensor;
  /**
   * The squared difference from the target, elementwise with broadcasting and promotion, then reduced (`"none"`,
   * `"mean"` or `"sum"`). Floating point only.
   */
  mseLoss(input: Tensor, target: Tensor, reduction?: "none" | "mean" | "sum"): Tensor;
  mseLoss(input: Tensor, target: Tensor, options: { reduction?: "none" | "mean" | "sum" }): Tensor;
  /**
   * `sum(max(0, margin - self[target] + self[i]) ** p for i != target) / C`, times the target's weight; reduced.
   *
   * Scores are `(N, C)` with classes `(N,)`, or `(C,)` with one class. `p` is 1 or 2. A class outside the
   * scores raises RuntimeError.
   */
  multiMarginLoss(input: Tensor, target: Tensor, p?: number, margin?: number, weight?: Tensor | null, reduction?: "none" | "mean" | "sum"): Tensor;
  multiMarginLoss(input: Tensor, target: Tensor, options: { p?: number; margin?: number; weight?: Tensor | null; reduction?: "none" | "mean" | "sum" }): Tensor;
  multiMarginLoss(input: Tensor, target: Tensor, p: number, options: { margin?: number; weight?: Tensor | null; reduction?: "none" | "mean" | "sum" }): Tensor;
  /**
   * `sum(max(0, 1 - self[j] + self[i])) / C` over a sample's labels `j` and all other classes `i`; reduced.
   *
   * Scores and target are `(N, C)` or `(C,)`. Each row of the target holds a sample's labels, up to the first -1.
   * A label outside the scores raises RuntimeError.
   */
  multilabelMarginLoss(input: Tensor, target: Tensor, reduction?: "none" | "mean" | "sum"): Tensor;
  multilabelMarginLoss(input: Tensor, target: Tensor, options: { reduction?: "none" | "mean" | "sum" }): Tensor;
  /**
   * The binary cross entropy of scores `(..., C)` with targets 0 and 1, times a weight for each class, averaged
   * over classes; then reduced.
   */
  multilabelSoftMarginLoss(input: Tensor, target: Tensor, weight?: Tensor | null, reduction?: "none" | "mean" | "sum"): Tensor;
  multilabelSoftMarginLoss(input: Tensor, target: Tensor, options: { weight?: Tensor | null; reduction?: "none" | "mean" | "sum" }): Tensor;
  multilabelSoftMarginLoss(input: Tensor, target: Tensor, weight: Tensor | null, options: { reduction?: "none" | "mean" | "sum" }): Tensor;
  /**
   * Minus the log-probability of each sample's class.
   *
   * Log-probabilities are `(C,)`, `(N, C)` or `(N, C, d1, ...)`, the target holds class indices and lacks the
   * dimension of classes. `weight` has one factor per class; the mean is weighted by it. Samples whose class is
   * `ignore_index` do not count. An index outside the classes raises IndexError.
   */
  nllLoss(input: Tensor, target: Tensor, weight?: Tensor | null, ignoreIndex?: number, reduction?: "none" | "mean" | "sum"): Tensor;
  nllLoss(input: Tensor, target: Tensor, options: { weight?: Tensor | null; ignoreIndex?: number; reduction?: "none" | "mean" | "sum" }): Tensor;
  nllLoss(input: Tensor, target: Tensor, weight: Tensor | null, options: { ignoreIndex?: number; reduction?: "none" | "mean" | "sum" }): Tensor;
  nllLoss(input: Tensor, target: Tensor, weight: Tensor | null, ignoreIndex: number, options: { reduction?: "none" | "mean" | "sum" }): Tensor;
  /** Divide by the norm of order `p` over `dim`, or by `eps` where that is larger. */
  normalize(input: Tensor, p?: Real, dim?: number | readonly number[], eps?: Scalar): Tensor;
  normalize(input: Tensor, options: { p?: Real; dim?: number | readonly number[]; eps?: Scalar }): Tensor;
  normalize(input: Tensor, p: Real, options: { dim?: number | readonly number[]; eps?: Scalar }): Tensor;
  normalize(input: Tensor, p: Real, dim: number | readonly number[], options: { eps?: Scalar }): Tensor;
  /**
   * Each integer as a vector of `num_classes` elements, int64, with a 1 at its place and 0 elsewhere.
   *
   * By default there are as many classes as the largest integer needs, so that the shape depends on data.
   */
  oneHot(input: Tensor, numClasses?: number): Tensor;
  oneHot(input: Tensor, options: { numClasses?: number }): Tensor;
  /**
   * Surround with a border: `pad` holds (before, after) for the last dimension, then for the one before it, ...
   *
   * Negative amounts take away. `mode` is `"constant"` (filled with `value`, 0 by default), `"reflect"`
   * (mirrored at the edge, which is not repeated), `"replicate"` (the edge repeated) or `"circular"` (the other
   * side). All but the first are for inputs with one or two dimensions in front of the padded ones, of which there
   * are up to three.
   */
  pad(input: Tensor, pad: number | readonly number[], mode?: "constant" | "reflect" | "replicate" | "circular", value?: Real | null): Tensor;
  pad(input: Tensor, options: { pad: number | readonly number[]; mode?: "constant" | "reflect" | "replicate" | "circular"; value?: Real | null }): Tensor;
  pad(input: Tensor, pad: number | readonly number[], options: { mode?: "constant" | "reflect" | "replicate" | "circular"; value?: Real | null }): Tensor;
  pad(input: Tensor, pad: number | readonly number[], mode: "constant" | "reflect" | "replicate" | "circular", options: { value?: Real | null }): Tensor;
  /**
   * The distances in the norm of order `p` between all pairs of the n rows: `n * (n - 1) / 2` of them, row by row
   * of the upper triangle of `cdist`'s matrix.
   */
  pdist(input: Tensor, p?: Real): Tensor;
  pdist(input: Tensor, options: { p?: Real }): Tensor;
  /** `(..., C * r * r, H, W)` as `(..., C, H * r, W * r)`: channels become the elements of r x r blocks. */
  pixelShuffle(input: Tensor, upscaleFactor: number): Tensor;
  pixelShuffle(input: Tensor, options: { upscaleFactor: number }): Tensor;
  /** The inverse of `pixelShuffle`: `(..., C, H * r, W * r)` as `(..., C * r * r, H, W)`. */
  pixelUnshuffle(input: Tensor, downscaleFactor: number): Tensor;
  pixelUnshuffle(input: Tensor, options: { downscaleFactor: number }): Tensor;
  /**
   * Minus the log-probability of counts `target` under Poisson distributions whose rates `self` predicts.
   *
   * `exp(self) - target * self` where `self` is the rate's logarithm (`log_input`), else
   * `self - target * log(self + eps)`; with broadcasting and promotion, then reduced. `full` adds Stirling's
   * approximation of `log(target!)` for targets above 1.
   */
  poissonNllLoss(input: Tensor, target: Tensor, logInput?: boolean, full?: boolean, eps?: number, reduction?: "none" | "mean" | "sum"): Tensor;
  poissonNllLoss(input: Tensor, target: Tensor, options: { logInput?: boolean; full?: boolean; eps?: number; reduction?: "none" | "mean" | "sum" }): Tensor;
  poissonNllLoss(input: Tensor, target: Tensor, logInput: boolean, options: { full?: boolean; eps?: number; reduction?: "none" | "mean" | "sum" }): Tensor;
  /**
   * `self` where positive, else `weight * self`.
   *
   * The weight is one number, or one per channel: per entry of the second dimension. Its dtype is that of `self`.
   */
  prelu(input: Tensor, weight: Tensor): Tensor;
  /** `max(self, 0)`; NaN stays. The gradient at 0 is 0. */
  relu(input: Tensor): Tensor;
  /** `self` cut to the range from 0 to 6. The gradient at either end is 0. */
  relu6(input: Tensor): Tensor;
  /** In-place form of `relu6`: writes the result into the tensor and returns it. */
  relu6_(input: Tensor): Tensor;
  /** In-place form of `relu`: writes the result into the tensor and returns it. */
  relu_(input: Tensor): Tensor;
  /**
   * Divide by the root of the mean square over the last dimensions, which are `normalized_shape`; then multiply by
   * `weight`. `eps`, by default the dtype's smallest step from 1, is added to the mean square. Floating point only.
   */
  rmsNorm(input: Tensor, normalizedShape: number | readonly number[], weight?: Tensor | null, eps?: number | null): Tensor;
  rmsNorm(input: Tensor, options: { normalizedShape: number | readonly number[]; weight?: Tensor | null; eps?: number | null }): Tensor;
  rmsNorm(input: Tensor, normalizedShape: number | readonly number[], options: { weight?: Tensor | null; eps?: number | null }): Tensor;
  rmsNorm(input: Tensor, normalizedShape: number | readonly number[], weight: Tensor | null, options: { eps?: number | null }): Tensor;
  /**
   * `softmax(query @ key.T * scale + attn_mask) @ value`, matrix by matrix of a batch.
   *
   * `query` is `(..., L, E)`, `key` `(..., S, E)`, `value` `(..., S, V)`; the result is `(..., L, V)`.
   * `scale` is `1 / sqrt(E)` unless given. A bool mask tells which keys a query may look at; a query that may look
   * at none gives zeros. `is_causal` allows keys up to the query's own position. `dropout_p` zeroes attention
   * weights at random. With `enable_gqa` each head of `key` and `value` serves several of `query`.
   */
  scaledDotProductAttention(query: Tensor, key: Tensor, value: Tensor, attnMask?: Tensor | null, dropoutP?: number, isCausal?: boolean, scale?: number | null, enableGqa?: boolean): Tensor;
  scaledDotProductAttention(query: Tensor, key: Tensor, value: Tensor, options: { attnMask?: Tensor | null; dropoutP?: number; isCausal?: boolean; scale?: number | null; enableGqa?: boolean }): Tensor;
  scaledDotProductAttention(query: Tensor, key: Tensor, value: Tensor, attnMask: Tensor | null, options: { dropoutP?: number; isCausal?: boolean; scale?: number | null; enableGqa?: boolean }): Tensor;
  /** `elu` with the constants that keep mean 0 and variance 1 from layer to layer. */
  selu(input: Tensor): Tensor;
  /** In-place form of `selu`: writes the result into the tensor and returns it. */
  selu_(input: Tensor): Tensor;
  /** `self * sigmoid(self)`. */
  silu(input: Tensor): Tensor;
  /** In-place form of `silu`: writes the result into the tensor and returns it. */
  silu_(input: Tensor): Tensor;
  /**
   * `0.5 * d ** 2 / beta` where the difference `d` is below `beta`, `abs(d) - 0.5 * beta` elsewhere; then
   * reduced. With `beta` 0 it is `l1Loss`.
   */
  smoothL1Loss(input: Tensor, target: Tensor, reduction?: "none" | "mean" | "sum", beta?: number): Tensor;
  smoothL1Loss(input: Tensor, target: Tensor, options: { reduction?: "none" | "mean" | "sum"; beta?: number }): Tensor;
  smoothL1Loss(input: Tensor, target: Tensor, reduction: "none" | "mean" | "sum", options: { beta?: number }): Tensor;
  /** `log(1 + exp(-target * self))` for targets 1 and -1, which broadcast to the input; then reduced. */
  softMarginLoss(input: Tensor, target: Tensor, reduction?: "none" | "mean" | "sum"): Tensor;
  softMarginLoss(input: Tensor, target: Tensor, options: { reduction?: "none" | "mean" | "sum" }): Tensor;
  /** Exponentials along `dim`, divided by their sum. NaN where all are -inf. `dtype` converts first. */
  softmax(input: Tensor, dim: number, dtype?: DTypeName | null): Tensor;
  softmax(input: Tensor, options: { dim: number; dtype?: DTypeName | null }): Tensor;
  softmax(input: Tensor, dim: number, options: { dtype?: DTypeName | null }): Tensor;
  /** `log(1 + exp(beta * self)) / beta`; `self` itself where `beta * self` is above `threshold`. */
  softplus(input: Tensor, beta?: Real, threshold?: Real): Tensor;
  softplus(input: Tensor, options: { beta?: Real; threshold?: Real }): Tensor;
  softplus(input: Tensor, beta: Real, options: { threshold?: Real }): Tensor;
  /** `self` moved towards 0 by `lambd`, which is not negative, and no further than 0. */
  softshrink(input: Tensor, lambd?: Real): Tensor;
  softshrink(input: Tensor, options: { lambd?: Real }): Tensor;
  /** `self / (1 + |self|)`; integers become floats. */
  softsign(input: Tensor): Tensor;
  /** `self - tanh(self)`; integers become floats. */
  tanhshrink(input: Tensor): Tensor;
  /** `self` where above `threshold`, else `value`. */
  threshold(input: Tensor, threshold: Real, value: Real): Tensor;
  /** In-place form of `threshold`: writes the result into the tensor and returns it. */
  threshold_(input: Tensor, threshold: Real, value: Real): Tensor;
  /**
   * `max(0, d(anchor, positive) - d(anchor, negative) + margin)`, then reduced.
   *
   * `d` is the p-norm of differences along the last dimension, to each of which `eps` is added. With `swap` the
   * negative's distance is the smaller of those from the anchor and from the positive.
   */
  tripletMarginLoss(anchor: Tensor, positive: Tensor, negative: Tensor, margin?: number, p?: number, eps?: number, swap?: boolean, reduction?: "none" | "mean" | "sum"): Tensor;
  tripletMarginLoss(anchor: Tensor, positive: Tensor, negative: Tensor, options: { margin?: number; p?: number; eps?: number; swap?: boolean; reduction?: "none" | "mean" | "sum" }): Tensor;
  tripletMarginLoss(anchor: Tensor, positive: Tensor, negative: Tensor, margin: number, options: { p?: number; eps?: number; swap?: boolean; reduction?: "none" | "mean" | "sum" }): Tensor;
}

/** The functions of special. */
export interface SpecialFunctions {
  /** The modified Bessel function of the first kind, of order 0; integers become floats. */
  i0(input: Tensor): Tensor;
  /** In-place form of `i0`: writes the result into the tensor and returns it. */
  i0_(input: Tensor): Tensor;
  /** The Airy function Ai; integers become floats. It has no derivative here. */
  airyAi(x: Tensor): Tensor;
  /** The Bessel function of the first kind, of order 0; integers become floats. It has no derivative here. */
  besselJ0(input: Tensor): Tensor;
  /** The Bessel function of the first kind, of order 1; integers become floats. It has no derivative here. */
  besselJ1(input: Tensor): Tensor;
  /** The Bessel function of the second kind, of order 0: -inf at 0, NaN below. It has no derivative here. */
  besselY0(input: Tensor): Tensor;
  /** The Bessel function of the second kind, of order 1: -inf at 0, NaN below. It has no derivative here. */
  besselY1(input: Tensor): Tensor;
  /** Chebyshev's polynomial of the first kind, `cos(n * acos(x))`. It has no derivative here. */
  chebyshevPolynomialT(x: Tensor | Scalar, n: Tensor | Scalar): Tensor;
  /** Chebyshev's polynomial of the second kind. It has no derivative here. */
  chebyshevPolynomialU(x: Tensor | Scalar, n: Tensor | Scalar): Tensor;
  /** Chebyshev's polynomial of the third kind. It has no derivative here. */
  chebyshevPolynomialV(x: Tensor | Scalar, n: Tensor | Scalar): Tensor;
  /** Chebyshev's polynomial of the fourth kind. It has no derivative here. */
  chebyshevPolynomialW(x: Tensor | Scalar, n: Tensor | Scalar): Tensor;
  /** `-x * log(x)`: 0 at 0, -inf below; integers become floats. */
  entr(input: Tensor): Tensor;
  /** `exp(x ** 2) * erfc(x)`, exact far out; integers become floats. */
  erfcx(input: Tensor): Tensor;
  /** The physicist's Hermite polynomial; NaN where it overflows. It has no derivative here. */
  hermitePolynomialH(x: Tensor | Scalar, n: Tensor | Scalar): Tensor;
  /** The probabilist's Hermite polynomial; NaN where it overflows. It has no derivative here. */
  hermitePolynomialHe(x: Tensor | Scalar, n: Tensor | Scalar): Tensor;
  /** `exp(-|x|) * i0(x)`, which does not overflow; integers become floats. */
  i0e(input: Tensor): Tensor;
  /** The modified Bessel function of the first kind, of order 1; integers become floats. */
  i1(input: Tensor): Tensor;
  /** `exp(-|x|) * i1(x)`, which does not overflow; integers become floats. */
  i1e(input: Tensor): Tensor;
  /** Laguerre's polynomial. It has no derivative here. */
  laguerrePolynomialL(x: Tensor | Scalar, n: Tensor | Scalar): Tensor;
  /** Legendre's polynomial. It has no derivative here. */
  legendrePolynomialP(x: Tensor | Scalar, n: Tensor | Scalar): Tensor;
  /** The logarithm of the standard normal distribution function, exact far out; integers become floats. */
  logNdtr(input: Tensor): Tensor;
  /** The modified Bessel function of the first kind, of order 0, without derivative: `i0` has one. */
  modifiedBesselI0(input: Tensor): Tensor;
  /** The modified Bessel function of the first kind, of order 1, without derivative: `specialI1` has one. */
  modifiedBesselI1(input: Tensor): Tensor;
  /** The modified Bessel function of the second kind, of order 0: infinite at 0, NaN below. No derivative here. */
  modifiedBesselK0(input: Tensor): Tensor;
  /** The modified Bessel function of the second kind, of order 1: infinite at 0, NaN below. No derivative here. */
  modifiedBesselK1(input: Tensor): Tensor;
  /** The standard normal distribution function, the area under the bell curve up to x; integers become floats. */
  ndtr(input: Tensor): Tensor;
  /** The quantile of the standard normal distribution: infinite at 0 and 1, NaN outside; integers become floats. */
  ndtri(input: Tensor): Tensor;
  /** `exp(x)` times the modified Bessel function of the second kind, of order 0. It has no derivative here. */
  scaledModifiedBesselK0(x: Tensor): Tensor;
  /** `exp(x)` times the modified Bessel function of the second kind, of order 1. It has no derivative here. */
  scaledModifiedBesselK1(x: Tensor): Tensor;
  /** Chebyshev's polynomial of the first kind at `2 * x - 1`. It has no derivative here. */
  shiftedChebyshevPolynomialT(x: Tensor | Scalar, n: Tensor | Scalar): Tensor;
  /** Chebyshev's polynomial of the second kind at `2 * x - 1`. It has no derivative here. */
  shiftedChebyshevPolynomialU(x: Tensor | Scalar, n: Tensor | Scalar): Tensor;
  /** Chebyshev's polynomial of the third kind at `2 * x - 1`. It has no derivative here. */
  shiftedChebyshevPolynomialV(x: Tensor | Scalar, n: Tensor | Scalar): Tensor;
  /** Chebyshev's polynomial of the fourth kind at `2 * x - 1`. It has no derivative here. */
  shiftedChebyshevPolynomialW(x: Tensor | Scalar, n: Tensor | Scalar): Tensor;
  /** The spherical Bessel function of the first kind, of order 0: `sin(x) / x`. It has no derivative here. */
  sphericalBesselJ0(x: Tensor): Tensor;
  /** `self * log1p(other)`, 0 where `self` is 0 unless `other` is NaN. Integers become floats. */
  xlog1py(input: Tensor | Scalar, other: Tensor | Scalar): Tensor;
  /**
   * Hurwitz' zeta function, the sum of `(k + other) ** -self` over all k from 0; integers become floats.
   *
   * Its derivative by `self` is not implemented.
   */
  zeta(input: Tensor | Scalar, other: Tensor | Scalar): Tensor;
}

export const FUNCTIONS = functionsOf<Functions>("function");

export const F = functionsOf<NNFunctions>("nn.functional");

export const special = functionsOf<SpecialFunctions>("special", "special_");

export const {
  abs, abs_, acos, acos_, acosh, acosh_, adaptiveAvgPool1d, adaptiveMaxPool1d, adaptiveMaxPool2d, adaptiveMaxPool3d,
  add, addbmm, addcdiv, addcmul, addmm, addmv, addmv_, addr, affineGridGenerator, all, amax, amin, aminmax, angle,
  any, arange, argmax, argmin, argsort, argwhere, asStrided, asStridedScatter, asin, asin_, asinh, asinh_, atan,
  atan2, atan_, atanh, atanh_, avgPool1d, baddbmm, bernoulli, bincount, binomial, bitwiseAnd, bitwiseLeftShift,
  bitwiseNot, bitwiseOr, bitwiseRightShift, bitwiseXor, bmm, broadcastTo, bucketize, cat, cdist, ceil, ceil_, celu,
  celu_, channelShuffle, choleskyInverse, choleskySolve, chunk, clamp, clamp_, clampMax, clampMax_, clampMin,
  clampMin_, clone, conj, conjPhysical, conjPhysical_, conv1d, conv2d, conv3d, convTranspose1d, convTranspose2d,
  convTranspose3d, copysign, cos, cos_, cosh, cosh_, cosineSimilarity, countNonzero, cross, cummax, cummin, cumprod,
  cumsum, deg2rad, deg2rad_, det, detach, diag, diagEmbed, diagonal, diagonalScatter, digamma, div, dot, embedding,
  embeddingRenorm_, empty, emptyLike, eq, erf, erf_, erfc, erfc_, erfinv, exp, exp2, exp2_, exp_, expm1, expm1_, eye,
  fill_, flatten, flip, floor, floor_, floorDivide, fmax, fmin, fmod, frac, frac_, frexp, full, fullLike, gather, gcd,
  gcd_, ge, groupNorm, gt, hardshrink, hashTensor, heaviside, histc, hypot, i0, i0_, igamma, igammac, imag, indexAdd,
  indexCopy, indexFill, indexPut, indexPut_, indexSelect, inner, inverse, isclose, isfinite, isinf, isnan, isneginf,
  isposinf, isreal, kron, kthvalue, layerNorm, lcm, lcm_, ldexp, ldexp_, le, lerp, lgamma, linspace, log, log10,
  log10_, log1p, log1p_, log2, log2_, log_, logSoftmax, logaddexp, logaddexp2, logcumsumexp, logicalAnd, logicalNot,
  logicalOr, logicalXor, logit, logit_, logspace, logsumexp, lt, maskedFill, maskedScatter, maskedSelect, matmul,
  matrixExp, maxDim, maxPool1d, maxPool1dWithIndices, maxPool2d, maxPool2dWithIndices, maxPool3d,
  maxPool3dWithIndices, maximum, mean, medianDim, minDim, minimum, mm, mode, movedim, msort, mul, multinomial, mv,
  mvlgamma, nanToNum, nanToNum_, nanmean, nanmedianDim, nanquantile, nansum, narrow, ne, neg, neg_, nextafter,
  nonzero, nonzeroStatic, norm, ones, onesLike, outer, pdist, permute, pixelShuffle, pixelUnshuffle, poisson, polar,
  positive, pow, prelu, prod, put, quantile, rad2deg, rad2deg_, rand, randLike, randn, randnLike, randperm, real,
  reciprocal, reciprocal_, relu, relu_, remainder, renorm, repeatInterleave, reshape, rmsNorm, roll, rot90, round,
  round_, rsqrt, rsqrt_, rsub, scatter, scatterAdd, scatterReduce, searchsorted, select, selectScatter, selu, selu_,
  sgn, sigmoid, sigmoid_, sign, signbit, sin, sin_, sinc, sinc_, sinh, sinh_, sliceScatter, slogdet, softmax, sort,
  split, sqrt, sqrt_, square, square_, squeeze, stack, std, stdMean, sub, sum, t, take, takeAlongDim, tan, tan_, tanh,
  tanh_, tensordot, threshold, threshold_, tile, topk, trace, transpose, tril, trilIndices, triu, triuIndices, trunc,
  trunc_, unbind, unflatten, unique, uniqueConsecutive, unsqueeze, var: varOf, varMean, vdot, viewAsComplex,
  viewAsReal, where, xlogy, xlogy_, zero_, zeros, zerosLike,
} = FUNCTIONS;
export { varOf as var };
