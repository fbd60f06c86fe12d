// Derived from protocol/gradwire_protocol/ops/: change that, and run `make derive`.

import type { Tensor } from "../tensor/tensor.ts";
import type { DTypeName } from "./dtypes.ts";
import type { Real, Scalar } from "./values.ts";

/**
 * The methods of a tensor that are ops of the table. Arguments are by position, or the last ones by name
 * in a plain object: `x.sum(0, { keepdim: true })`.
 */
export interface TensorMethods {
  /** The absolute value; of a complex number its magnitude, which is real. Not defined on bools. */
  abs(): Tensor;
  /** In-place form of `abs`: writes the result into the tensor and returns it. */
  abs_(): this;
  /** The angle whose cosine is `self`: NaN outside -1 to 1; integers become floats. */
  acos(): Tensor;
  /** In-place form of `acos`: writes the result into the tensor and returns it. */
  acos_(): this;
  /** Inverse hyperbolic cosine: NaN below 1; integers become floats. */
  acosh(): Tensor;
  /** In-place form of `acosh`: writes the result into the tensor and returns it. */
  acosh_(): this;
  /**
   * `self + alpha * other`, with broadcasting and promotion. On bools it is a logical or.
   *
   * `alpha` may not be of a higher category than the result: no float alpha for integers.
   */
  add(other: Tensor | Scalar, options?: { alpha?: Scalar }): Tensor;
  /** In-place form of `add`: writes the result into the tensor and returns it. */
  add_(other: Tensor | Scalar, options?: { alpha?: Scalar }): this;
  /** `beta * self + alpha * (batch1 @ batch2).sum(0)`: the products of a batch are summed into one matrix. */
  addbmm(batch1: Tensor, batch2: Tensor, options?: { beta?: Scalar; alpha?: Scalar }): Tensor;
  /** In-place form of `addbmm`: writes the result into the tensor and returns it. */
  addbmm_(batch1: Tensor, batch2: Tensor, options?: { beta?: Scalar; alpha?: Scalar }): this;
  /** `self + value * tensor1 / tensor2`, with broadcasting and promotion; not for a quotient of integers. */
  addcdiv(tensor1: Tensor, tensor2: Tensor, options?: { value?: Scalar }): Tensor;
  /** In-place form of `addcdiv`: writes the result into the tensor and returns it. */
  addcdiv_(tensor1: Tensor, tensor2: Tensor, options?: { value?: Scalar }): this;
  /** `self + value * tensor1 * tensor2`, with broadcasting and promotion. Not defined on bools alone. */
  addcmul(tensor1: Tensor, tensor2: Tensor, options?: { value?: Scalar }): Tensor;
  /** In-place form of `addcmul`: writes the result into the tensor and returns it. */
  addcmul_(tensor1: Tensor, tensor2: Tensor, options?: { value?: Scalar }): this;
  /** `beta * self + alpha * (mat1 @ mat2)` for matrices; `self` is expanded to the product's shape. */
  addmm(mat1: Tensor, mat2: Tensor, options?: { beta?: Scalar; alpha?: Scalar }): Tensor;
  /** In-place form of `addmm`: writes the result into the tensor and returns it. */
  addmm_(mat1: Tensor, mat2: Tensor, options?: { beta?: Scalar; alpha?: Scalar }): this;
  /** `beta * self + alpha * (mat @ vec)` for a matrix and a vector. */
  addmv(mat: Tensor, vec: Tensor, options?: { beta?: Scalar; alpha?: Scalar }): Tensor;
  /** In-place form of `addmv`: writes the result into the tensor and returns it. */
  addmv_(mat: Tensor, vec: Tensor, options?: { beta?: Scalar; alpha?: Scalar }): this;
  /** `beta * self + alpha * outer(vec1, vec2)`. Promotes dtypes; on bools it is `self or (vec1 and vec2)`. */
  addr(vec1: Tensor, vec2: Tensor, options?: { beta?: Scalar; alpha?: Scalar }): Tensor;
  /** In-place form of `addr`: writes the result into the tensor and returns it. */
  addr_(vec1: Tensor, vec2: Tensor, options?: { beta?: Scalar; alpha?: Scalar }): this;
  /** Whether all elements differ from zero; bool (uint8 for uint8). True where there is none. */
  all(dim?: number | readonly number[] | null, keepdim?: boolean): Tensor;
  all(options?: { dim?: number | readonly number[] | null; keepdim?: boolean }): Tensor;
  all(dim: number | readonly number[] | null, options: { keepdim?: boolean }): Tensor;
  /** Largest elements over one or several dimensions; gradients are shared equally among equals. */
  amax(dim?: number | readonly number[] | null, keepdim?: boolean): Tensor;
  amax(options?: { dim?: number | readonly number[] | null; keepdim?: boolean }): Tensor;
  amax(dim: number | readonly number[] | null, options: { keepdim?: boolean }): Tensor;
  /** Smallest elements over one or several dimensions; gradients are shared equally among equals. */
  amin(dim?: number | readonly number[] | null, keepdim?: boolean): Tensor;
  amin(options?: { dim?: number | readonly number[] | null; keepdim?: boolean }): Tensor;
  amin(dim: number | readonly number[] | null, options: { keepdim?: boolean }): Tensor;
  /** (smallest, largest) of all elements or along one dimension. */
  aminmax(options?: { dim?: number | null; keepdim?: boolean }): [min: Tensor, max: Tensor];
  /** The argument of complex numbers, from -pi to pi; of real numbers 0, or pi if negative. */
  angle(): Tensor;
  /** Whether some element differs from zero; bool (uint8 for uint8). False where there is none. */
  any(dim?: number | readonly number[] | null, keepdim?: boolean): Tensor;
  any(options?: { dim?: number | readonly number[] | null; keepdim?: boolean }): Tensor;
  any(dim: number | readonly number[] | null, options: { keepdim?: boolean }): Tensor;
  /** Index of the first largest element: of the flattened tensor, or along `dim`. NaN counts as largest. */
  argmax(dim?: number | null, keepdim?: boolean): Tensor;
  argmax(options?: { dim?: number | null; keepdim?: boolean }): Tensor;
  argmax(dim: number | null, options: { keepdim?: boolean }): Tensor;
  /** Index of the first smallest element: of the flattened tensor, or along `dim`. NaN counts as smallest. */
  argmin(dim?: number | null, keepdim?: boolean): Tensor;
  argmin(options?: { dim?: number | null; keepdim?: boolean }): Tensor;
  argmin(dim: number | null, options: { keepdim?: boolean }): Tensor;
  /** The indices that `sort` gives. */
  argsort(dim?: number, descending?: boolean, options?: { stable?: boolean }): Tensor;
  argsort(options?: { dim?: number; descending?: boolean; stable?: boolean }): Tensor;
  argsort(dim: number, options: { descending?: boolean; stable?: boolean }): Tensor;
  /** Same as `nonzero`. */
  argwhere(): Tensor;
  /**
   * A view of the tensor's memory with any size and strides, both in elements.
   *
   * `storage_offset` counts from the tensor's own first element; with `absolute` from that of the storage, as in
   * PyTorch.
   */
  asStrided(size: number | readonly number[], stride: number | readonly number[], storageOffset?: number, options?: { absolute?: boolean }): Tensor;
  asStrided(options: { size: number | readonly number[]; stride: number | readonly number[]; storageOffset?: number; absolute?: boolean }): Tensor;
  asStrided(size: number | readonly number[], options: { stride: number | readonly number[]; storageOffset?: number; absolute?: boolean }): Tensor;
  asStrided(size: number | readonly number[], stride: number | readonly number[], options: { storageOffset?: number; absolute?: boolean }): Tensor;
  /** A copy of `self` with `src` written into the part that `asStrided` shows. */
  asStridedScatter(src: Tensor, size: number | readonly number[], stride: number | readonly number[], storageOffset?: number): Tensor;
  asStridedScatter(src: Tensor, options: { size: number | readonly number[]; stride: number | readonly number[]; storageOffset?: number }): Tensor;
  asStridedScatter(src: Tensor, size: number | readonly number[], options: { stride: number | readonly number[]; storageOffset?: number }): Tensor;
  asStridedScatter(src: Tensor, size: number | readonly number[], stride: number | readonly number[], options: { storageOffset?: number }): Tensor;
  /** The angle whose sine is `self`: NaN outside -1 to 1; integers become floats. */
  asin(): Tensor;
  /** In-place form of `asin`: writes the result into the tensor and returns it. */
  asin_(): this;
  /** Inverse hyperbolic sine; integers become floats. */
  asinh(): Tensor;
  /** In-place form of `asinh`: writes the result into the tensor and returns it. */
  asinh_(): this;
  /** The angle whose tangent is `self`; integers become floats. */
  atan(): Tensor;
  /** The angle of the point with abscissa `other` and ordinate `self`, from -pi to pi. */
  atan2(other: Tensor): Tensor;
  /** In-place form of `atan2`: writes the result into the tensor and returns it. */
  atan2_(other: Tensor): this;
  /** In-place form of `atan`: writes the result into the tensor and returns it. */
  atan_(): this;
  /** Inverse hyperbolic tangent: NaN outside -1 to 1; integers become floats. */
  atanh(): Tensor;
  /** In-place form of `atanh`: writes the result into the tensor and returns it. */
  atanh_(): this;
  /** `beta * self + alpha * (batch1 @ batch2)`, matrix by matrix of a batch. */
  baddbmm(batch1: Tensor, batch2: Tensor, options?: { beta?: Scalar; alpha?: Scalar }): Tensor;
  /** In-place form of `baddbmm`: writes the result into the tensor and returns it. */
  baddbmm_(batch1: Tensor, batch2: Tensor, options?: { beta?: Scalar; alpha?: Scalar }): this;
  /**
   * 1 with the probability that `self` holds, else 0; with `p` only the shape and dtype of `self` count.
   *
   * The gradient is zero.
   */
  bernoulli(p?: Real | null): Tensor;
  bernoulli(options?: { p?: Real | null }): Tensor;
  /** Fill with 1 with probability `p` (a number, or a tensor that broadcasts), else 0. */
  bernoulli_(p?: Tensor | Real): this;
  bernoulli_(options?: { p?: Tensor | Real }): this;
  /**
   * How often each of 0, 1, 2, ... occurs in a vector of integers, or the sum of the weights where it does.
   *
   * The result has `max(self) + 1` elements, at least `minlength`.
   */
  bincount(weights?: Tensor | null, minlength?: number): Tensor;
  bincount(options?: { weights?: Tensor | null; minlength?: number }): Tensor;
  bincount(weights: Tensor | null, options: { minlength?: number }): Tensor;
  /** The bits set in both; on bools the logical and. */
  bitwiseAnd(other: Tensor | Scalar): Tensor;
  /** In-place form of `bitwiseAnd`: writes the result into the tensor and returns it. */
  bitwiseAnd_(other: Tensor | Scalar): this;
  /** Bits moved up by `other`; 0 if that is negative or beyond the width. */
  bitwiseLeftShift(other: Tensor | Scalar): Tensor;
  /** In-place form of `bitwiseLeftShift`: writes the result into the tensor and returns it. */
  bitwiseLeftShift_(other: Tensor | Scalar): this;
  /** Every bit inverted; on bools the logical not. */
  bitwiseNot(): Tensor;
  /** In-place form of `bitwiseNot`: writes the result into the tensor and returns it. */
  bitwiseNot_(): this;
  /** The bits set in either; on bools the logical or. */
  bitwiseOr(other: Tensor | Scalar): Tensor;
  /** In-place form of `bitwiseOr`: writes the result into the tensor and returns it. */
  bitwiseOr_(other: Tensor | Scalar): this;
  /** Bits moved down by `other`, keeping the sign; all of them if that is negative or beyond the width. */
  bitwiseRightShift(other: Tensor | Scalar): Tensor;
  /** In-place form of `bitwiseRightShift`: writes the result into the tensor and returns it. */
  bitwiseRightShift_(other: Tensor | Scalar): this;
  /** The bits set in one of the two; on bools the logical xor. */
  bitwiseXor(other: Tensor | Scalar): Tensor;
  /** In-place form of `bitwiseXor`: writes the result into the tensor and returns it. */
  bitwiseXor_(other: Tensor | Scalar): this;
  /** The products of two batches of matrices, one by one: `(b, n, k)` times `(b, k, m)` is `(b, n, m)`. */
  bmm(mat2: Tensor): Tensor;
  /** Same as `expand`, as a function. */
  broadcastTo(size: readonly number[]): Tensor;
  broadcastTo(...size: number[]): Tensor;
  broadcastTo(options: { size: readonly number[] }): Tensor;
  /**
   * The number of the interval between sorted `boundaries` that each value falls into. A boundary belongs to the
   * interval below it, with `right` to the one above.
   */
  bucketize(boundaries: Tensor, options?: { outInt32?: boolean; right?: boolean }): Tensor;
  /** Fill with numbers of the Cauchy distribution. */
  cauchy_(median?: Real, sigma?: Real): this;
  cauchy_(options?: { median?: Real; sigma?: Real }): this;
  cauchy_(median: Real, options: { sigma?: Real }): this;
  /** Round up; integers stay as they are. The gradient is zero. */
  ceil(): Tensor;
  /** In-place form of `ceil`: writes the result into the tensor and returns it. */
  ceil_(): this;
  /** The inverse of A, where `self` is A's Cholesky factor. */
  choleskyInverse(upper?: boolean): Tensor;
  choleskyInverse(options?: { upper?: boolean }): Tensor;
  /** The solution `X` of `A @ X = self`, where `input2` is A's Cholesky factor. Batches broadcast. */
  choleskySolve(input2: Tensor, upper?: boolean): Tensor;
  choleskySolve(input2: Tensor, options: { upper?: boolean }): Tensor;
  /** Views of at most `chunks` consecutive parts along a dimension, of equal size except the last. */
  chunk(chunks: number, dim?: number): Tensor[];
  chunk(options: { chunks: number; dim?: number }): Tensor[];
  chunk(chunks: number, options: { dim?: number }): Tensor[];
  /**
   * Cut the values to the range from `min` to `max`; either may be left out, not both.
   *
   * The bounds are both tensors or both numbers; beside a number, a tensor without dimensions counts as one. Where
   * `min` is above `max` the result is `max`. NaN stays.
   */
  clamp(min?: Tensor | Scalar | null, max?: Tensor | Scalar | null): Tensor;
  clamp(options?: { min?: Tensor | Scalar | null; max?: Tensor | Scalar | null }): Tensor;
  clamp(min: Tensor | Scalar | null, options: { max?: Tensor | Scalar | null }): Tensor;
  /** In-place form of `clamp`: writes the result into the tensor and returns it. */
  clamp_(min?: Tensor | Scalar | null, max?: Tensor | Scalar | null): this;
  clamp_(options?: { min?: Tensor | Scalar | null; max?: Tensor | Scalar | null }): this;
  clamp_(min: Tensor | Scalar | null, options: { max?: Tensor | Scalar | null }): this;
  /** Lower values above `max` to it. */
  clampMax(max: Tensor | Scalar): Tensor;
  /** In-place form of `clampMax`: writes the result into the tensor and returns it. */
  clampMax_(max: Tensor | Scalar): this;
  /** Raise values below `min` to it. */
  clampMin(min: Tensor | Scalar): Tensor;
  /** In-place form of `clampMin`: writes the result into the tensor and returns it. */
  clampMin_(min: Tensor | Scalar): this;
  /**
   * A copy in new memory: in row-major or channels-last order, else in the memory order of `self` where that is
   * dense.
   */
  clone(options?: { rowMajor?: boolean; channelsLast?: boolean }): Tensor;
  /** The complex conjugates, in new memory; real numbers as they are. */
  conj(): Tensor;
  /** The complex conjugates, in new memory; real numbers as they are. */
  conjPhysical(): Tensor;
  /** In-place form of `conjPhysical`: writes the result into the tensor and returns it. */
  conjPhysical_(): this;
  /** The tensor in row-major order: as it is where it already is, else a copy. */
  contiguous(): Tensor;
  /** Write the values of `src` into `self`: it broadcasts, and is cast to the dtype and device of `self`. */
  copy_(src: Tensor, nonBlocking?: boolean): this;
  copy_(src: Tensor, options: { nonBlocking?: boolean }): this;
  /** The magnitude of `self` with the sign of `other`, a negative zero's too. Integers become floats. */
  copysign(other: Tensor | Scalar): Tensor;
  /** In-place form of `copysign`: writes the result into the tensor and returns it. */
  copysign_(other: Tensor | Scalar): this;
  /** Cosine of an angle in radians; integers become floats. */
  cos(): Tensor;
  /** In-place form of `cos`: writes the result into the tensor and returns it. */
  cos_(): this;
  /** Hyperbolic cosine; integers become floats. */
  cosh(): Tensor;
  /** In-place form of `cosh`: writes the result into the tensor and returns it. */
  cosh_(): this;
  /** How many elements differ from zero (NaN does), in all or over `dim`; int64. */
  countNonzero(dim?: number | readonly number[] | null): Tensor;
  countNonzero(options?: { dim?: number | readonly number[] | null }): Tensor;
  /** The cross product of 3-vectors along `dim` (by default the first dimension of extent 3), with broadcasting. */
  cross(other: Tensor, dim?: number | null): Tensor;
  cross(other: Tensor, options: { dim?: number | null }): Tensor;
  /** (running maxima along `dim`, the index of the latest element that equals each). */
  cummax(dim: number): [values: Tensor, indices: Tensor];
  cummax(options: { dim: number }): [values: Tensor, indices: Tensor];
  /** (running minima along `dim`, the index of the latest element that equals each). */
  cummin(dim: number): [values: Tensor, indices: Tensor];
  cummin(options: { dim: number }): [values: Tensor, indices: Tensor];
  /** Running products along `dim`. Bools and integers are multiplied in int64; `dtype` converts first. */
  cumprod(dim: number, options?: { dtype?: DTypeName | null }): Tensor;
  cumprod(options: { dim: number; dtype?: DTypeName | null }): Tensor;
  /** In-place form of `cumprod`: writes the result into the tensor and returns it. */
  cumprod_(dim: number, options?: { dtype?: DTypeName | null }): this;
  /** Running sums along `dim`. Bools and integers are summed in int64; `dtype` converts first. */
  cumsum(dim: number, options?: { dtype?: DTypeName | null }): Tensor;
  cumsum(options: { dim: number; dtype?: DTypeName | null }): Tensor;
  /** In-place form of `cumsum`: writes the result into the tensor and returns it. */
  cumsum_(dim: number, options?: { dtype?: DTypeName | null }): this;
  /** Degrees to radians; integers become floats. */
  deg2rad(): Tensor;
  /** In-place form of `deg2rad`: writes the result into the tensor and returns it. */
  deg2rad_(): this;
  /** The determinant of each square matrix. Float and complex dtypes of 32 bits and more. */
  det(): Tensor;
  /** A view without history: no gradient flows through it. It shares memory and version with `self`. */
  detach(): Tensor;
  /** The diagonal of a matrix, copied, or the matrix that has a vector on its diagonal. */
  diag(diagonal?: number): Tensor;
  diag(options?: { diagonal?: number }): Tensor;
  /** Matrices that have the last dimension on their diagonal and zeros elsewhere, in dimensions `dim1, dim2`. */
  diagEmbed(offset?: number, dim1?: number, dim2?: number): Tensor;
  diagEmbed(options?: { offset?: number; dim1?: number; dim2?: number }): Tensor;
  diagEmbed(offset: number, options: { dim1?: number; dim2?: number }): Tensor;
  diagEmbed(offset: number, dim1: number, options: { dim2?: number }): Tensor;
  /** A view of the elements whose indices along `dim1` and `dim2` differ by `offset`, as a last dimension. */
  diagonal(offset?: number, dim1?: number, dim2?: number): Tensor;
  diagonal(options?: { offset?: number; dim1?: number; dim2?: number }): Tensor;
  diagonal(offset: number, options: { dim1?: number; dim2?: number }): Tensor;
  diagonal(offset: number, dim1: number, options: { dim2?: number }): Tensor;
  /** A copy with `src` in the place of `self.diagonal(offset, dim1, dim2)`. */
  diagonalScatter(src: Tensor, offset?: number, dim1?: number, dim2?: number): Tensor;
  diagonalScatter(src: Tensor, options: { offset?: number; dim1?: number; dim2?: number }): Tensor;
  diagonalScatter(src: Tensor, offset: number, options: { dim1?: number; dim2?: number }): Tensor;
  diagonalScatter(src: Tensor, offset: number, dim1: number, options: { dim2?: number }): Tensor;
  /** The derivative of `lgamma`: infinite at 0, NaN at negative integers; integers become floats. */
  digamma(): Tensor;
  /** In-place form of `digamma`: writes the result into the tensor and returns it. */
  digamma_(): this;
  /**
   * Divide elementwise.
   *
   * Without `rounding_mode` integers become floats. `"trunc"` drops the fraction of the quotient and
   * `"floor"` rounds it down; both keep integers, and then an integer division by zero is an error.
   */
  div(other: Tensor | Scalar, options?: { roundingMode?: "trunc" | "floor" | null }): Tensor;
  /** In-place form of `div`: writes the result into the tensor and returns it. */
  div_(other: Tensor | Scalar, options?: { roundingMode?: "trunc" | "floor" | null }): this;
  /** The sum of products of two vectors of equal length, as a 0-dim tensor. Nothing is conjugated. */
  dot(tensor: Tensor): Tensor;
  /** Whether two elements are equal, after promotion. NaN equals nothing. */
  eq(other: Tensor | Scalar): Tensor;
  /** In-place form of `eq`: writes the result into the tensor and returns it. */
  eq_(other: Tensor | Scalar): this;
  /** The error function of real numbers; integers become floats. */
  erf(): Tensor;
  /** In-place form of `erf`: writes the result into the tensor and returns it. */
  erf_(): this;
  /** `1 - erf(self)`, exact far out; integers become floats. */
  erfc(): Tensor;
  /** In-place form of `erfc`: writes the result into the tensor and returns it. */
  erfc_(): this;
  /** The inverse of `erf`: infinite at -1 and 1, NaN outside; integers become floats. */
  erfinv(): Tensor;
  /** In-place form of `erfinv`: writes the result into the tensor and returns it. */
  erfinv_(): this;
  /** e to the power of `self`; integers become floats. */
  exp(): Tensor;
  /** 2 to the power of `self`; integers become floats. */
  exp2(): Tensor;
  /** In-place form of `exp2`: writes the result into the tensor and returns it. */
  exp2_(): this;
  /** In-place form of `exp`: writes the result into the tensor and returns it. */
  exp_(): this;
  /**
   * A view that repeats dimensions of extent 1 to the given size, without memory; -1 keeps an extent.
   *
   * New dimensions appear in front.
   */
  expand(size: readonly number[]): Tensor;
  expand(...size: number[]): Tensor;
  expand(options: { size: readonly number[] }): Tensor;
  /** `exp(self) - 1`, exact near 0; integers become floats. */
  expm1(): Tensor;
  /** In-place form of `expm1`: writes the result into the tensor and returns it. */
  expm1_(): this;
  /** Fill with numbers of the exponential distribution with rate `lambd`. */
  exponential_(lambd?: Real): this;
  exponential_(options?: { lambd?: Real }): this;
  /** Write one value, a number or a 0-dim tensor, into every element. */
  fill_(value: Tensor | Scalar): this;
  /** Dimensions `start_dim` to `end_dim` merged into one. A view where strides allow it, else a copy. */
  flatten(startDim?: number, endDim?: number): Tensor;
  flatten(options?: { startDim?: number; endDim?: number }): Tensor;
  flatten(startDim: number, options: { endDim?: number }): Tensor;
  /** A copy with the order along the given dimensions reversed. */
  flip(dims: readonly number[]): Tensor;
  flip(...dims: number[]): Tensor;
  flip(options: { dims: readonly number[] }): Tensor;
  /** Round down; integers stay as they are. The gradient is zero. */
  floor(): Tensor;
  /** In-place form of `floor`: writes the result into the tensor and returns it. */
  floor_(): this;
  /**
   * The quotient rounded down, as `//` in Python. It keeps integers; dividing one by zero is an error.
   *
   * Its result can require grad, but backward through it fails: use `div(..., rounding_mode="floor")`.
   */
  floorDivide(other: Tensor | Scalar): Tensor;
  /** In-place form of `floorDivide`: writes the result into the tensor and returns it. */
  floorDivide_(other: Tensor | Scalar): this;
  /** The larger of two elements; a NaN loses against a number. `self` gets the gradient of a tie. */
  fmax(other: Tensor): Tensor;
  /** The smaller of two elements; a NaN loses against a number. `self` gets the gradient of a tie. */
  fmin(other: Tensor): Tensor;
  /** What is left of a division truncated towards zero: it has the sign of the dividend. */
  fmod(other: Tensor | Scalar): Tensor;
  /** In-place form of `fmod`: writes the result into the tensor and returns it. */
  fmod_(other: Tensor | Scalar): this;
  /** What `trunc` drops: `self - trunc(self)`. Floating point only. */
  frac(): Tensor;
  /** In-place form of `frac`: writes the result into the tensor and returns it. */
  frac_(): this;
  /**
   * (mantissa, int32 exponent), where `self` is `mantissa * 2 ** exponent` and the mantissa's size is from 0.5 to
   * 1, or 0. Floating point only.
   */
  frexp(): [mantissa: Tensor, exponent: Tensor];
  /**
   * For each element of `index` the element of `self` that it names along `dim`, at the same place in the
   * other dimensions. Indices start at 0; negative ones raise.
   */
  gather(dim: number, index: Tensor): Tensor;
  /** The greatest common divisor, not negative; `gcd(0, 0)` is 0. Integers only. */
  gcd(other: Tensor): Tensor;
  /** In-place form of `gcd`: writes the result into the tensor and returns it. */
  gcd_(other: Tensor): this;
  /** `self >= other`, after promotion. Complex numbers have no order. */
  ge(other: Tensor | Scalar): Tensor;
  /** In-place form of `ge`: writes the result into the tensor and returns it. */
  ge_(other: Tensor | Scalar): this;
  /** Fill with the number of trials up to the first success, each succeeding with probability `p`: 1, 2, ... */
  geometric_(p: Real): this;
  /** `self > other`, after promotion. Complex numbers have no order. */
  gt(other: Tensor | Scalar): Tensor;
  /** In-place form of `gt`: writes the result into the tensor and returns it. */
  gt_(other: Tensor | Scalar): this;
  /** 0 from `-lambd` to `lambd`, elsewhere `self`. */
  hardshrink(lambd?: Real): Tensor;
  hardshrink(options?: { lambd?: Real }): Tensor;
  /**
   * Exclusive or, over all elements or over `dim`, of the bits of each as a float64 or int64, as a uint64.
   *
   * The order of the elements does not matter, and equal pairs cancel. `mode` 0 is the only one.
   */
  hashTensor(dim?: number | readonly number[] | null, options?: { keepdim?: boolean; mode?: number }): Tensor;
  hashTensor(options?: { dim?: number | readonly number[] | null; keepdim?: boolean; mode?: number }): Tensor;
  /**
   * The unit step: 0 below 0, 1 above, and `values` at 0. Both are of one dtype, which is not complex.
   *
   * Its result can require grad, but backward through it fails.
   */
  heaviside(values: Tensor): Tensor;
  /** In-place form of `heaviside`: writes the result into the tensor and returns it. */
  heaviside_(values: Tensor): this;
  /**
   * How many elements fall into each of `bins` intervals of equal width from `min` to `max`, in the dtype of
   * the tensor. If both are 0 (or equal), they are the extremes of the elements. What is outside does not count.
   *
   * Floating point only. Extremes that are not finite are an error when the result is read.
   */
  histc(bins?: number, min?: Real, max?: Real): Tensor;
  histc(options?: { bins?: number; min?: Real; max?: Real }): Tensor;
  histc(bins: number, options: { min?: Real; max?: Real }): Tensor;
  histc(bins: number, min: Real, options: { max?: Real }): Tensor;
  /** `sqrt(self**2 + other**2)` without overflow on the way. Floating point only. */
  hypot(other: Tensor): Tensor;
  /** In-place form of `hypot`: writes the result into the tensor and returns it. */
  hypot_(other: Tensor): this;
  /** The modified Bessel function of the first kind, of order 0; integers become floats. */
  i0(): Tensor;
  /** In-place form of `i0`: writes the result into the tensor and returns it. */
  i0_(): this;
  /**
   * The lower incomplete gamma function of order `self` at `other`, over the gamma function: from 0 to 1.
   *
   * NaN where either is negative. Floating point only. Its derivative by the order is not implemented.
   */
  igamma(other: Tensor): Tensor;
  /** In-place form of `igamma`: writes the result into the tensor and returns it. */
  igamma_(other: Tensor): this;
  /**
   * `1 - igamma(self, other)`, exact where it is small. Floating point only.
   *
   * Its derivative by the order is not implemented.
   */
  igammac(other: Tensor): Tensor;
  /** In-place form of `igammac`: writes the result into the tensor and returns it. */
  igammac_(other: Tensor): this;
  /** The imaginary parts of a complex tensor, as a view. */
  imag(): Tensor;
  /** A copy with the slices of `alpha * source` added at the indices along `dim`; repeated ones add up. */
  indexAdd(dim: number, index: Tensor, source: Tensor, options?: { alpha?: Scalar }): Tensor;
  /** In-place form of `indexAdd`: writes the result into the tensor and returns it. */
  indexAdd_(dim: number, index: Tensor, source: Tensor, options?: { alpha?: Scalar }): this;
  /** A copy with the slices of `source` written at the indices along `dim`. */
  indexCopy(dim: number, index: Tensor, source: Tensor): Tensor;
  /** In-place form of `indexCopy`: writes the result into the tensor and returns it. */
  indexCopy_(dim: number, index: Tensor, source: Tensor): this;
  /** A copy with the slices at the indices along `dim` filled with one number or a 0-dim tensor. */
  indexFill(dim: number, index: Tensor, value: Tensor | Scalar): Tensor;
  /** In-place form of `indexFill`: writes the result into the tensor and returns it. */
  indexFill_(dim: number, index: Tensor, value: Tensor | Scalar): this;
  /**
   * A copy with `values`, broadcast, written to (or, with `accumulate`, added at) the elements that
   * `index` would read. Where an element is named twice, one of its values stays, or all are added.
   */
  indexPut(indices: readonly (Tensor | null)[], values: Tensor, accumulate?: boolean): Tensor;
  indexPut(indices: readonly (Tensor | null)[], values: Tensor, options: { accumulate?: boolean }): Tensor;
  /** In-place form of `indexPut`: writes the result into the tensor and returns it. */
  indexPut_(indices: readonly (Tensor | null)[], values: Tensor, accumulate?: boolean): this;
  indexPut_(indices: readonly (Tensor | null)[], values: Tensor, options: { accumulate?: boolean }): this;
  /** The slices of `self` that a vector of indices names along `dim`. Negative indices raise. */
  indexSelect(dim: number, index: Tensor): Tensor;
  /** Contract the last dimensions of both operands. With a 0-dim operand it is an ordinary, promoting product. */
  inner(other: Tensor): Tensor;
  /** The inverse of each square matrix. A singular one raises RuntimeError when the result is read. */
  inverse(): Tensor;
  /**
   * Whether `|self - other| <= atol + rtol * |other|`, or both are the same infinity. The dtypes are the same.
   *
   * NaN is close to NaN only with `equal_nan`.
   */
  isclose(other: Tensor, rtol?: Real, atol?: Real, equalNan?: boolean): Tensor;
  isclose(other: Tensor, options: { rtol?: Real; atol?: Real; equalNan?: boolean }): Tensor;
  isclose(other: Tensor, rtol: Real, options: { atol?: Real; equalNan?: boolean }): Tensor;
  isclose(other: Tensor, rtol: Real, atol: Real, options: { equalNan?: boolean }): Tensor;
  /** Whether an element is neither NaN nor infinite. */
  isfinite(): Tensor;
  /** Whether an element is infinite; of a complex number, whether either part is. */
  isinf(): Tensor;
  /** Whether an element is NaN; of a complex number, whether either part is. */
  isnan(): Tensor;
  /** Whether an element is negative infinity. Not defined on complex numbers. */
  isneginf(): Tensor;
  /** Whether an element is positive infinity. Not defined on complex numbers. */
  isposinf(): Tensor;
  /** Whether the imaginary part is 0, which it is for every real number. */
  isreal(): Tensor;
  /** The Kronecker product: every element of `self` times all of `other`, block by block. Promotes dtypes. */
  kron(other: Tensor): Tensor;
  /** (the `k`-th smallest elements along `dim`, counted from 1, their indices). NaN counts as largest. */
  kthvalue(k: number, dim?: number, keepdim?: boolean): [values: Tensor, indices: Tensor];
  kthvalue(options: { k: number; dim?: number; keepdim?: boolean }): [values: Tensor, indices: Tensor];
  kthvalue(k: number, options: { dim?: number; keepdim?: boolean }): [values: Tensor, indices: Tensor];
  kthvalue(k: number, dim: number, options: { keepdim?: boolean }): [values: Tensor, indices: Tensor];
  /** The least common multiple, not negative; 0 where either is 0. Integers only. */
  lcm(other: Tensor): Tensor;
  /** In-place form of `lcm`: writes the result into the tensor and returns it. */
  lcm_(other: Tensor): this;
  /** `self * 2 ** other`; integers become floats. */
  ldexp(other: Tensor): Tensor;
  /** In-place form of `ldexp`: writes the result into the tensor and returns it. */
  ldexp_(other: Tensor): this;
  /** `self <= other`, after promotion. Complex numbers have no order. */
  le(other: Tensor | Scalar): Tensor;
  /** In-place form of `le`: writes the result into the tensor and returns it. */
  le_(other: Tensor | Scalar): this;
  /** `self + weight * (end - self)`. The dtypes do not promote: they must be the same. */
  lerp(end: Tensor, weight: Tensor | Scalar): Tensor;
  /** In-place form of `lerp`: writes the result into the tensor and returns it. */
  lerp_(end: Tensor, weight: Tensor | Scalar): this;
  /** The natural logarithm of the gamma function's absolute value; integers become floats. */
  lgamma(): Tensor;
  /** In-place form of `lgamma`: writes the result into the tensor and returns it. */
  lgamma_(): this;
  /** The natural logarithm: -inf at 0, NaN below; integers become floats. */
  log(): Tensor;
  /** The logarithm to base 10; integers become floats. */
  log10(): Tensor;
  /** In-place form of `log10`: writes the result into the tensor and returns it. */
  log10_(): this;
  /** `log(1 + self)`, exact near 0; integers become floats. */
  log1p(): Tensor;
  /** In-place form of `log1p`: writes the result into the tensor and returns it. */
  log1p_(): this;
  /** The logarithm to base 2; integers become floats. */
  log2(): Tensor;
  /** In-place form of `log2`: writes the result into the tensor and returns it. */
  log2_(): this;
  /** In-place form of `log`: writes the result into the tensor and returns it. */
  log_(): this;
  /** Fill with numbers whose logarithms are normal with this mean and standard deviation. */
  logNormal_(mean?: Real, std?: Real): this;
  logNormal_(options?: { mean?: Real; std?: Real }): this;
  logNormal_(mean: Real, options: { std?: Real }): this;
  /** Logarithm of `softmax`, computed without its rounding. */
  logSoftmax(dim: number, dtype?: DTypeName | null): Tensor;
  logSoftmax(options: { dim: number; dtype?: DTypeName | null }): Tensor;
  logSoftmax(dim: number, options: { dtype?: DTypeName | null }): Tensor;
  /** `log(exp(self) + exp(other))` without overflow on the way. Floating point and complex only. */
  logaddexp(other: Tensor): Tensor;
  /** `log2(2**self + 2**other)` without overflow on the way. Floating point only. */
  logaddexp2(other: Tensor): Tensor;
  /** Logarithm of the running sums of exponentials along `dim`, without overflow. */
  logcumsumexp(dim: number): Tensor;
  logcumsumexp(options: { dim: number }): Tensor;
  /** Whether both elements are nonzero. */
  logicalAnd(other: Tensor): Tensor;
  /** In-place form of `logicalAnd`: writes the result into the tensor and returns it. */
  logicalAnd_(other: Tensor): this;
  /** Whether an element is zero. */
  logicalNot(): Tensor;
  /** In-place form of `logicalNot`: writes the result into the tensor and returns it. */
  logicalNot_(): this;
  /** Whether at least one element is nonzero. */
  logicalOr(other: Tensor): Tensor;
  /** In-place form of `logicalOr`: writes the result into the tensor and returns it. */
  logicalOr_(other: Tensor): this;
  /** Whether exactly one element is nonzero. */
  logicalXor(other: Tensor): Tensor;
  /** In-place form of `logicalXor`: writes the result into the tensor and returns it. */
  logicalXor_(other: Tensor): this;
  /** `log(x / (1 - x))`; with `eps`, x is first cut to the range from `eps` to `1 - eps`. */
  logit(eps?: Real | null): Tensor;
  logit(options?: { eps?: Real | null }): Tensor;
  /** In-place form of `logit`: writes the result into the tensor and returns it. */
  logit_(eps?: Real | null): this;
  logit_(options?: { eps?: Real | null }): this;
  /** Logarithm of the sum of exponentials over `dim`, without overflow. Integers become the default float. */
  logsumexp(dim: number | readonly number[] | null, keepdim?: boolean): Tensor;
  logsumexp(options: { dim: number | readonly number[] | null; keepdim?: boolean }): Tensor;
  logsumexp(dim: number | readonly number[] | null, options: { keepdim?: boolean }): Tensor;
  /** `self < other`, after promotion. Complex numbers have no order. */
  lt(other: Tensor | Scalar): Tensor;
  /** In-place form of `lt`: writes the result into the tensor and returns it. */
  lt_(other: Tensor | Scalar): this;
  /**
   * `self` with `value`, a number or a 0-dim tensor, where the bool `mask` holds.
   *
   * The mask broadcasts; the dtype stays that of `self`.
   */
  maskedFill(mask: Tensor, value: Tensor | Scalar): Tensor;
  /** In-place form of `maskedFill`: writes the result into the tensor and returns it. */
  maskedFill_(mask: Tensor, value: Tensor | Scalar): this;
  /** A copy with the places where the mask is true filled from `source`, one element after the other. */
  maskedScatter(mask: Tensor, source: Tensor): Tensor;
  /** In-place form of `maskedScatter`: writes the result into the tensor and returns it. */
  maskedScatter_(mask: Tensor, source: Tensor): this;
  /** The elements where the mask is true, as a vector; tensor and mask broadcast. */
  maskedSelect(mask: Tensor): Tensor;
  /**
   * The matrix product, for vectors, matrices and batches of matrices.
   *
   * Two vectors give their dot product. A vector on the left counts as a row, one on the right as a column, and the
   * result lacks that dimension. Leading dimensions are batches and broadcast. Both operands must have one dtype
   * other than bool; shapes that do not fit raise RuntimeError.
   */
  matmul(other: Tensor): Tensor;
  /** The exponential `I + A + A @ A / 2 + ...` of each square matrix. Halves are computed in float32. */
  matrixExp(): Tensor;
  /** (largest elements along `dim`, their first indices). The gradient goes to the element of the index. */
  maxDim(dim: number, keepdim?: boolean): [values: Tensor, indices: Tensor];
  maxDim(options: { dim: number; keepdim?: boolean }): [values: Tensor, indices: Tensor];
  maxDim(dim: number, options: { keepdim?: boolean }): [values: Tensor, indices: Tensor];
  /** The larger of two elements, NaN if either is. The gradient of a tie is split in halves. */
  maximum(other: Tensor): Tensor;
  /** Arithmetic mean over `dim`. Needs floating point or complex values, or a `dtype` that is; NaN if empty. */
  mean(dim?: number | readonly number[] | null, keepdim?: boolean, options?: { dtype?: DTypeName | null }): Tensor;
  mean(options?: { dim?: number | readonly number[] | null; keepdim?: boolean; dtype?: DTypeName | null }): Tensor;
  mean(dim: number | readonly number[] | null, options: { keepdim?: boolean; dtype?: DTypeName | null }): Tensor;
  /** (lower medians along `dim`, their indices). The gradient goes to the element of the index. */
  medianDim(dim?: number, keepdim?: boolean): [values: Tensor, indices: Tensor];
  medianDim(options?: { dim?: number; keepdim?: boolean }): [values: Tensor, indices: Tensor];
  medianDim(dim: number, options: { keepdim?: boolean }): [values: Tensor, indices: Tensor];
  /** (smallest elements along `dim`, their first indices). The gradient goes to the element of the index. */
  minDim(dim: number, keepdim?: boolean): [values: Tensor, indices: Tensor];
  minDim(options: { dim: number; keepdim?: boolean }): [values: Tensor, indices: Tensor];
  minDim(dim: number, options: { keepdim?: boolean }): [values: Tensor, indices: Tensor];
  /** The smaller of two elements, NaN if either is. The gradient of a tie is split in halves. */
  minimum(other: Tensor): Tensor;
  /** The product of two matrices, without broadcasting. */
  mm(mat2: Tensor): Tensor;
  /**
   * (most frequent values along `dim`, the index of each one's last occurrence); the smallest of equally
   * frequent ones.
   */
  mode(dim?: number, keepdim?: boolean): [values: Tensor, indices: Tensor];
  mode(options?: { dim?: number; keepdim?: boolean }): [values: Tensor, indices: Tensor];
  mode(dim: number, options: { keepdim?: boolean }): [values: Tensor, indices: Tensor];
  /** A view with the dimensions `source` moved to the places `destination`, the others kept in order. */
  movedim(source: number | readonly number[], destination: number | readonly number[]): Tensor;
  movedim(options: { source: number | readonly number[]; destination: number | readonly number[] }): Tensor;
  movedim(source: number | readonly number[], options: { destination: number | readonly number[] }): Tensor;
  /** The values in order along the first dimension. */
  msort(): Tensor;
  /** Multiply elementwise, with broadcasting and promotion. On bools it is a logical and. */
  mul(other: Tensor | Scalar): Tensor;
  /** In-place form of `mul`: writes the result into the tensor and returns it. */
  mul_(other: Tensor | Scalar): this;
  /**
   * Draw `num_samples` indices along the last dimension, as likely as the weights in `self` say.
   *
   * `self` has one or two dimensions; the weights need not sum to 1, are not negative and not all 0. There are 2**24
   * of them at most, as in PyTorch.
   */
  multinomial(numSamples: number, replacement?: boolean): Tensor;
  multinomial(options: { numSamples: number; replacement?: boolean }): Tensor;
  multinomial(numSamples: number, options: { replacement?: boolean }): Tensor;
  /** The product of a matrix and a vector. */
  mv(vec: Tensor): Tensor;
  /**
   * The logarithm of the multivariate gamma function of dimension `p`, for elements above `(p - 1) / 2`.
   *
   * Integers become floats.
   */
  mvlgamma(p: number): Tensor;
  mvlgamma(options: { p: number }): Tensor;
  /** In-place form of `mvlgamma`: writes the result into the tensor and returns it. */
  mvlgamma_(p: number): this;
  /** Replace NaN by `nan` (0) and infinities by `posinf` and `neginf` (the dtype's extremes). */
  nanToNum(nan?: Real | null, posinf?: Real | null, neginf?: Real | null): Tensor;
  nanToNum(options?: { nan?: Real | null; posinf?: Real | null; neginf?: Real | null }): Tensor;
  nanToNum(nan: Real | null, options: { posinf?: Real | null; neginf?: Real | null }): Tensor;
  nanToNum(nan: Real | null, posinf: Real | null, options: { neginf?: Real | null }): Tensor;
  /** In-place form of `nanToNum`: writes the result into the tensor and returns it. */
  nanToNum_(nan?: Real | null, posinf?: Real | null, neginf?: Real | null): this;
  nanToNum_(options?: { nan?: Real | null; posinf?: Real | null; neginf?: Real | null }): this;
  nanToNum_(nan: Real | null, options: { posinf?: Real | null; neginf?: Real | null }): this;
  nanToNum_(nan: Real | null, posinf: Real | null, options: { neginf?: Real | null }): this;
  /** Mean of the elements that are not NaN; NaN where there is none. */
  nanmean(dim?: number | readonly number[] | null, keepdim?: boolean, options?: { dtype?: DTypeName | null }): Tensor;
  nanmean(options?: { dim?: number | readonly number[] | null; keepdim?: boolean; dtype?: DTypeName | null }): Tensor;
  nanmean(dim: number | readonly number[] | null, options: { keepdim?: boolean; dtype?: DTypeName | null }): Tensor;
  /** (medians along `dim` of what is not NaN, their indices). */
  nanmedianDim(dim?: number, keepdim?: boolean): [values: Tensor, indices: Tensor];
  nanmedianDim(options?: { dim?: number; keepdim?: boolean }): [values: Tensor, indices: Tensor];
  nanmedianDim(dim: number, options: { keepdim?: boolean }): [values: Tensor, indices: Tensor];
  /** Like `quantile`, leaving NaN out. */
  nanquantile(q: Tensor | Real, dim?: number | null, keepdim?: boolean, options?: { interpolation?: "linear" | "lower" | "higher" | "midpoint" | "nearest" }): Tensor;
  nanquantile(q: Tensor | Real, options: { dim?: number | null; keepdim?: boolean; interpolation?: "linear" | "lower" | "higher" | "midpoint" | "nearest" }): Tensor;
  nanquantile(q: Tensor | Real, dim: number | null, options: { keepdim?: boolean; interpolation?: "linear" | "lower" | "higher" | "midpoint" | "nearest" }): Tensor;
  /** Like `sum`, with NaN counted as zero. Not defined for complex numbers. */
  nansum(dim?: number | readonly number[] | null, keepdim?: boolean, options?: { dtype?: DTypeName | null }): Tensor;
  nansum(options?: { dim?: number | readonly number[] | null; keepdim?: boolean; dtype?: DTypeName | null }): Tensor;
  nansum(dim: number | readonly number[] | null, options: { keepdim?: boolean; dtype?: DTypeName | null }): Tensor;
  /** A view of `length` indices from `start` along a dimension; unlike a slice, it must lie inside. */
  narrow(dim: number, start: number | bigint, length: number): Tensor;
  narrow(dim: number, start: number | bigint, options: { length: number }): Tensor;
  /** Whether two elements differ, after promotion. NaN differs from everything. */
  ne(other: Tensor | Scalar): Tensor;
  /** In-place form of `ne`: writes the result into the tensor and returns it. */
  ne_(other: Tensor | Scalar): this;
  /** `-self`. Not defined on bools; unsigned integers wrap around. */
  neg(): Tensor;
  /** In-place form of `neg`: writes the result into the tensor and returns it. */
  neg_(): this;
  /** The next floating point number after `self` in the direction of `other`. Floating point only. */
  nextafter(other: Tensor): Tensor;
  /** In-place form of `nextafter`: writes the result into the tensor and returns it. */
  nextafter_(other: Tensor): this;
  /** The indices of all elements that are not zero: int64, one row per element, one column per dimension. */
  nonzero(): Tensor;
  /**
   * The indices of the first `size` elements that are not zero, a row each; rows beyond hold `fill_value`.
   * Unlike that of `nonzero`, the result's shape does not depend on data.
   */
  nonzeroStatic(options: { size: number; fillValue?: number }): Tensor;
  /**
   * Vector norm of order `p` over `dim` (all elements by default): `sum(abs(x) ** p) ** (1 / p)`.
   *
   * `p` may be infinite (largest or smallest magnitude) or 0 (how many elements are not 0). The result is real.
   */
  norm(p?: Real, dim?: number | readonly number[] | null, keepdim?: boolean, dtype?: DTypeName | null): Tensor;
  norm(options?: { p?: Real; dim?: number | readonly number[] | null; keepdim?: boolean; dtype?: DTypeName | null }): Tensor;
  norm(p: Real, options: { dim?: number | readonly number[] | null; keepdim?: boolean; dtype?: DTypeName | null }): Tensor;
  /** Fill with normal numbers of this mean and standard deviation. */
  normal_(mean?: Real, std?: Real): this;
  normal_(options?: { mean?: Real; std?: Real }): this;
  normal_(mean: Real, options: { std?: Real }): this;
  /** All products of an element of one vector with one of the other, as a matrix. Promotes dtypes. */
  outer(vec2: Tensor): Tensor;
  /** A view with its dimensions in the given order. */
  permute(dims: readonly number[]): Tensor;
  permute(...dims: number[]): Tensor;
  permute(options: { dims: readonly number[] }): Tensor;
  /** The `n`-th derivative of `digamma`, for `n >= 0`; integers become floats. */
  polygamma(n: number): Tensor;
  polygamma(options: { n: number }): Tensor;
  /** In-place form of `polygamma`: writes the result into the tensor and returns it. */
  polygamma_(n: number): this;
  /** `+self`: the tensor as it is. Not defined on bools. */
  positive(): Tensor;
  /**
   * `self` to the power of `exponent`; one of them may be a number.
   *
   * Integers stay integers: a negative number as exponent is an error then, negative entries of an exponent
   * tensor give 0 (or 1 and -1, where the base is).
   */
  pow(exponent: Tensor | Scalar): Tensor;
  /** In-place form of `pow`: writes the result into the tensor and returns it. */
  pow_(exponent: Tensor | Scalar): this;
  /**
   * `self` where positive, else `weight * self`.
   *
   * The weight is one number, or one per channel: per entry of the second dimension. Its dtype is that of `self`.
   */
  prelu(weight: Tensor): Tensor;
  /** Product of all elements, or along one dimension. Bools and integers are multiplied in int64. */
  prod(dim?: number | null, keepdim?: boolean, options?: { dtype?: DTypeName | null }): Tensor;
  prod(options?: { dim?: number | null; keepdim?: boolean; dtype?: DTypeName | null }): Tensor;
  prod(dim: number | null, options: { keepdim?: boolean; dtype?: DTypeName | null }): Tensor;
  /** A copy with `source` written to (or added at) the places that `index` names in the flattened tensor. */
  put(index: Tensor, source: Tensor, accumulate?: boolean): Tensor;
  put(index: Tensor, source: Tensor, options: { accumulate?: boolean }): Tensor;
  /** In-place form of `put`: writes the result into the tensor and returns it. */
  put_(index: Tensor, source: Tensor, accumulate?: boolean): this;
  put_(index: Tensor, source: Tensor, options: { accumulate?: boolean }): this;
  /**
   * Quantiles of all elements or along `dim`, for one `q` in [0, 1] or a vector of them, which then comes as
   * the first dimension of the result. NaN makes its quantile NaN.
   *
   * `interpolation` says what lies between two elements: `"linear"`, `"lower"`, `"higher"`, `"midpoint"`
   * or `"nearest"`.
   */
  quantile(q: Tensor | Real, dim?: number | null, keepdim?: boolean, options?: { interpolation?: "linear" | "lower" | "higher" | "midpoint" | "nearest" }): Tensor;
  quantile(q: Tensor | Real, options: { dim?: number | null; keepdim?: boolean; interpolation?: "linear" | "lower" | "higher" | "midpoint" | "nearest" }): Tensor;
  quantile(q: Tensor | Real, dim: number | null, options: { keepdim?: boolean; interpolation?: "linear" | "lower" | "higher" | "midpoint" | "nearest" }): Tensor;
  /** Radians to degrees; integers become floats. */
  rad2deg(): Tensor;
  /** In-place form of `rad2deg`: writes the result into the tensor and returns it. */
  rad2deg_(): this;
  /**
   * Fill with integers from `low` up to but without `high`, by default up to the largest that the dtype holds
   * exactly. From -2**63 on without `high`, all integers of 64 bits.
   */
  random_(low?: number | bigint, high?: number | bigint | null): this;
  random_(options?: { low?: number | bigint; high?: number | bigint | null }): this;
  random_(low: number | bigint, options: { high?: number | bigint | null }): this;
  /** The real parts, as a view; a real tensor as it is. */
  real(): Tensor;
  /** `1 / self`; integers become floats. */
  reciprocal(): Tensor;
  /** In-place form of `reciprocal`: writes the result into the tensor and returns it. */
  reciprocal_(): this;
  /** `max(self, 0)`; NaN stays. The gradient at 0 is 0. */
  relu(): Tensor;
  /** In-place form of `relu`: writes the result into the tensor and returns it. */
  relu_(): this;
  /** What is left by `floorDivide`, as `%` in Python: it has the sign of the divisor. */
  remainder(other: Tensor | Scalar): Tensor;
  /** In-place form of `remainder`: writes the result into the tensor and returns it. */
  remainder_(other: Tensor | Scalar): this;
  /**
   * Slices along `dim` whose norm of order `p` is above `maxnorm`, scaled down to that norm; others as they
   * are. `p` is positive, `maxnorm` not negative.
   */
  renorm(p: Real, dim: number, maxnorm: Real): Tensor;
  /** In-place form of `renorm`: writes the result into the tensor and returns it. */
  renorm_(p: Real, dim: number, maxnorm: Real): this;
  /** A copy that contains the tensor `repeats[i]` times along dimension `i`; new dimensions appear in front. */
  repeat(repeats: readonly number[]): Tensor;
  repeat(...repeats: number[]): Tensor;
  repeat(options: { repeats: readonly number[] }): Tensor;
  /** Every element `repeats` times in a row, along `dim` or of the flattened tensor. */
  repeatInterleave(repeats: number, dim?: number | null): Tensor;
  repeatInterleave(options: { repeats: number; dim?: number | null }): Tensor;
  repeatInterleave(repeats: number, options: { dim?: number | null }): Tensor;
  /** The elements in another shape, one extent of which may be -1. A view where strides allow it, else a copy. */
  reshape(shape: readonly number[]): Tensor;
  reshape(...shape: number[]): Tensor;
  reshape(options: { shape: readonly number[] }): Tensor;
  /**
   * A copy with elements moved along dimensions, those that fall off coming in again at the other end.
   *
   * Without `dims` the tensor is rolled as if it were flat.
   */
  roll(shifts: number | readonly number[], dims?: number | readonly number[] | null): Tensor;
  roll(options: { shifts: number | readonly number[]; dims?: number | readonly number[] | null }): Tensor;
  roll(shifts: number | readonly number[], options: { dims?: number | readonly number[] | null }): Tensor;
  /** A copy rotated `k` times by 90 degrees in the plane of two dimensions, from the first towards the second. */
  rot90(k?: number, dims?: number | readonly number[]): Tensor;
  rot90(options?: { k?: number; dims?: number | readonly number[] }): Tensor;
  rot90(k: number, options: { dims?: number | readonly number[] }): Tensor;
  /**
   * Round to `decimals` places, halves to the even neighbour. The gradient is zero.
   *
   * Integers stay as they are, and take no `decimals`.
   */
  round(options?: { decimals?: number }): Tensor;
  /** In-place form of `round`: writes the result into the tensor and returns it. */
  round_(options?: { decimals?: number }): this;
  /** `1 / sqrt(self)`; integers become floats. */
  rsqrt(): Tensor;
  /** In-place form of `rsqrt`: writes the result into the tensor and returns it. */
  rsqrt_(): this;
  /** `other - alpha * self`: subtraction with its operands exchanged. Not defined on bools. */
  rsub(other: Tensor | Scalar, alpha?: Scalar): Tensor;
  rsub(other: Tensor | Scalar, options: { alpha?: Scalar }): Tensor;
  /**
   * A copy with the elements of `src` (or one number) written to the places along `dim` that `index` names.
   *
   * Where a place is named twice, one of its values stays.
   */
  scatter(dim: number, index: Tensor, src: Tensor | Scalar): Tensor;
  /** In-place form of `scatter`: writes the result into the tensor and returns it. */
  scatter_(dim: number, index: Tensor, src: Tensor | Scalar): this;
  /** A copy with the elements of `src` added at the places along `dim` that `index` names. */
  scatterAdd(dim: number, index: Tensor, src: Tensor): Tensor;
  /** In-place form of `scatterAdd`: writes the result into the tensor and returns it. */
  scatterAdd_(dim: number, index: Tensor, src: Tensor): this;
  /**
   * A copy in which the elements of `src` that `index` sends to one place are combined there.
   *
   * `reduce` is `"sum"`, `"prod"`, `"mean"`, `"amax"` or `"amin"`; with `include_self` the element
   * that was there counts, too. Places that nothing is sent to keep it.
   */
  scatterReduce(dim: number, index: Tensor, src: Tensor, reduce: "sum" | "prod" | "mean" | "amax" | "amin", options?: { includeSelf?: boolean }): Tensor;
  scatterReduce(dim: number, index: Tensor, src: Tensor, options: { reduce: "sum" | "prod" | "mean" | "amax" | "amin"; includeSelf?: boolean }): Tensor;
  /** In-place form of `scatterReduce`: writes the result into the tensor and returns it. */
  scatterReduce_(dim: number, index: Tensor, src: Tensor, reduce: "sum" | "prod" | "mean" | "amax" | "amin", options?: { includeSelf?: boolean }): this;
  /**
   * Where each value would have to be inserted to keep the last dimension of `sorted_sequence` in order.
   *
   * The sequence is a vector, or has the same leading dimensions as the values. Among equals the first place is
   * given, with `right` the one after the last.
   */
  searchsorted(input: Tensor | Scalar, options?: { outInt32?: boolean; right?: boolean }): Tensor;
  /** A view of one index along a dimension, which disappears. */
  select(dim: number, index: number | bigint): Tensor;
  /** A copy with `src` in the place of `self.select(dim, index)`. */
  selectScatter(src: Tensor, dim: number, index: number | bigint): Tensor;
  /** The sign; of a complex number the number of magnitude 1 in its direction, 0 for 0. */
  sgn(): Tensor;
  /** In-place form of `sgn`: writes the result into the tensor and returns it. */
  sgn_(): this;
  /** `1 / (1 + exp(-self))`; integers become floats. */
  sigmoid(): Tensor;
  /** In-place form of `sigmoid`: writes the result into the tensor and returns it. */
  sigmoid_(): this;
  /** -1, 0 or 1; NaN stays. For complex numbers see `sgn`. */
  sign(): Tensor;
  /** In-place form of `sign`: writes the result into the tensor and returns it. */
  sign_(): this;
  /** Whether the sign is negative, which that of `-0.0` is. Not defined on complex numbers. */
  signbit(): Tensor;
  /** Sine of an angle in radians; integers become floats. */
  sin(): Tensor;
  /** In-place form of `sin`: writes the result into the tensor and returns it. */
  sin_(): this;
  /** `sin(pi * x) / (pi * x)`, 1 at 0; integers become floats. */
  sinc(): Tensor;
  /** In-place form of `sinc`: writes the result into the tensor and returns it. */
  sinc_(): this;
  /** Hyperbolic sine; integers become floats. */
  sinh(): Tensor;
  /** In-place form of `sinh`: writes the result into the tensor and returns it. */
  sinh_(): this;
  /** A copy with `src` in the place of the slice from `start` to `end` along `dim`. */
  sliceScatter(src: Tensor, dim?: number, start?: number | bigint | null, end?: number | bigint | null, step?: number): Tensor;
  sliceScatter(src: Tensor, options: { dim?: number; start?: number | bigint | null; end?: number | bigint | null; step?: number }): Tensor;
  sliceScatter(src: Tensor, dim: number, options: { start?: number | bigint | null; end?: number | bigint | null; step?: number }): Tensor;
  /** Sign (for complex matrices: phase) and natural logarithm of the absolute value of each determinant. */
  slogdet(): [sign: Tensor, logabsdet: Tensor];
  /** Exponentials along `dim`, divided by their sum. NaN where all are -inf. `dtype` converts first. */
  softmax(dim: number, dtype?: DTypeName | null): Tensor;
  softmax(options: { dim: number; dtype?: DTypeName | null }): Tensor;
  softmax(dim: number, options: { dtype?: DTypeName | null }): Tensor;
  /**
   * (the values in order along `dim`, the indices they came from).
   *
   * NaN counts as largest. Equals always keep their order, whether or not `stable` asks for it.
   */
  sort(dim?: number, descending?: boolean, options?: { stable?: boolean | null }): [values: Tensor, indices: Tensor];
  sort(options?: { dim?: number; descending?: boolean; stable?: boolean | null }): [values: Tensor, indices: Tensor];
  sort(dim: number, options: { descending?: boolean; stable?: boolean | null }): [values: Tensor, indices: Tensor];
  /** Views of consecutive parts along a dimension: of one size (the last may be smaller), or of given sizes. */
  split(splitSizeOrSections: number | readonly number[], dim?: number): Tensor[];
  split(options: { splitSizeOrSections: number | readonly number[]; dim?: number }): Tensor[];
  split(splitSizeOrSections: number | readonly number[], options: { dim?: number }): Tensor[];
  /** The square root: NaN below 0, an infinite gradient at 0; integers become floats. */
  sqrt(): Tensor;
  /** In-place form of `sqrt`: writes the result into the tensor and returns it. */
  sqrt_(): this;
  /** `self * self`; bools become int64. */
  square(): Tensor;
  /** In-place form of `square`: writes the result into the tensor and returns it. */
  square_(): this;
  /** A view without its dimensions of extent 1: all of them, or those among `dim`. */
  squeeze(dim?: number | readonly number[] | null): Tensor;
  squeeze(options?: { dim?: number | readonly number[] | null }): Tensor;
  /** Standard deviation over `dim`, the square root of `var`. */
  std(dim?: number | readonly number[] | null, correction?: Real, keepdim?: boolean): Tensor;
  std(options?: { dim?: number | readonly number[] | null; correction?: Real; keepdim?: boolean }): Tensor;
  std(dim: number | readonly number[] | null, options: { correction?: Real; keepdim?: boolean }): Tensor;
  std(dim: number | readonly number[] | null, correction: Real, options: { keepdim?: boolean }): Tensor;
  /** (standard deviation, mean) over `dim`; see `std`. */
  stdMean(dim?: number | readonly number[] | null, correction?: Real, keepdim?: boolean): [std: Tensor, mean: Tensor];
  stdMean(options?: { dim?: number | readonly number[] | null; correction?: Real; keepdim?: boolean }): [std: Tensor, mean: Tensor];
  stdMean(dim: number | readonly number[] | null, options: { correction?: Real; keepdim?: boolean }): [std: Tensor, mean: Tensor];
  stdMean(dim: number | readonly number[] | null, correction: Real, options: { keepdim?: boolean }): [std: Tensor, mean: Tensor];
  /** `self - alpha * other`, with broadcasting and promotion. Not defined on bools. */
  sub(other: Tensor | Scalar, options?: { alpha?: Scalar }): Tensor;
  /** In-place form of `sub`: writes the result into the tensor and returns it. */
  sub_(other: Tensor | Scalar, options?: { alpha?: Scalar }): this;
  /** Sum over `dim` (an int, several, or all). Bools and integers are summed in int64; `dtype` converts first. */
  sum(dim?: number | readonly number[] | null, keepdim?: boolean, options?: { dtype?: DTypeName | null }): Tensor;
  sum(options?: { dim?: number | readonly number[] | null; keepdim?: boolean; dtype?: DTypeName | null }): Tensor;
  sum(dim: number | readonly number[] | null, options: { keepdim?: boolean; dtype?: DTypeName | null }): Tensor;
  /** The sum over the dimensions that broadcasting added or stretched, so that the result has the given size. */
  sumToSize(size: readonly number[]): Tensor;
  sumToSize(...size: number[]): Tensor;
  sumToSize(options: { size: readonly number[] }): Tensor;
  /** The transposed view of a matrix; a tensor of fewer dimensions as it is. */
  t(): Tensor;
  /**
   * The elements that `index` names in the flattened tensor, in the shape of `index`. Negative indices count
   * from the end.
   */
  take(index: Tensor): Tensor;
  /** Like `gather`, with `self` and `indices` broadcast in the other dimensions; flat without `dim`. */
  takeAlongDim(indices: Tensor, dim?: number | null): Tensor;
  takeAlongDim(indices: Tensor, options: { dim?: number | null }): Tensor;
  /** Tangent of an angle in radians; integers become floats. */
  tan(): Tensor;
  /** In-place form of `tan`: writes the result into the tensor and returns it. */
  tan_(): this;
  /** Hyperbolic tangent; integers become floats. */
  tanh(): Tensor;
  /** In-place form of `tanh`: writes the result into the tensor and returns it. */
  tanh_(): this;
  /** Like `repeat`, for the last `len(dims)` dimensions if there are more. */
  tile(dims: readonly number[]): Tensor;
  tile(...dims: number[]): Tensor;
  tile(options: { dims: readonly number[] }): Tensor;
  /** (the `k` largest, or smallest, elements along `dim`, their indices), always in order, NaN as largest. */
  topk(k: number, dim?: number, largest?: boolean, sorted?: boolean): [values: Tensor, indices: Tensor];
  topk(options: { k: number; dim?: number; largest?: boolean; sorted?: boolean }): [values: Tensor, indices: Tensor];
  topk(k: number, options: { dim?: number; largest?: boolean; sorted?: boolean }): [values: Tensor, indices: Tensor];
  /** The sum of a matrix's diagonal. Integers sum to int64. */
  trace(): Tensor;
  /** A view with two dimensions exchanged. */
  transpose(dim0: number, dim1: number): Tensor;
  transpose(options: { dim0: number; dim1: number }): Tensor;
  transpose(dim0: number, options: { dim1: number }): Tensor;
  /** The lower triangles of matrices, up to the given diagonal; zeros elsewhere. */
  tril(diagonal?: number): Tensor;
  tril(options?: { diagonal?: number }): Tensor;
  /** In-place form of `tril`: writes the result into the tensor and returns it. */
  tril_(diagonal?: number): this;
  tril_(options?: { diagonal?: number }): this;
  /** The upper triangles of matrices, from the given diagonal on; zeros elsewhere. */
  triu(diagonal?: number): Tensor;
  triu(options?: { diagonal?: number }): Tensor;
  /** In-place form of `triu`: writes the result into the tensor and returns it. */
  triu_(diagonal?: number): this;
  triu_(options?: { diagonal?: number }): this;
  /** Round towards zero; integers stay as they are. The gradient is zero. */
  trunc(): Tensor;
  /** In-place form of `trunc`: writes the result into the tensor and returns it. */
  trunc_(): this;
  /** Views of every index along a dimension, which disappears. */
  unbind(dim?: number): Tensor[];
  unbind(options?: { dim?: number }): Tensor[];
  /** One dimension split into several of the given extents, one of which may be -1. */
  unflatten(dim: number, sizes: number | readonly number[]): Tensor;
  unflatten(options: { dim: number; sizes: number | readonly number[] }): Tensor;
  unflatten(dim: number, options: { sizes: number | readonly number[] }): Tensor;
  /** A view of all windows of `size` elements along a dimension, `step` apart, as a last dimension. */
  unfold(dimension: number, size: number, step: number): Tensor;
  unfold(options: { dimension: number; size: number; step: number }): Tensor;
  unfold(dimension: number, options: { size: number; step: number }): Tensor;
  unfold(dimension: number, size: number, options: { step: number }): Tensor;
  /** Fill with numbers uniform in [low, high). */
  uniform_(low?: Real, high?: Real): this;
  uniform_(options?: { low?: Real; high?: Real }): this;
  uniform_(low: Real, options: { high?: Real }): this;
  /**
   * The distinct elements (or, with `dim`, the distinct slices along it), in order.
   *
   * `return_inverse` adds the place of each element among them, `return_counts` how often each occurs.
   */
  unique(sorted?: boolean, returnInverse?: boolean, returnCounts?: boolean, dim?: number | null): Tensor[];
  unique(options?: { sorted?: boolean; returnInverse?: boolean; returnCounts?: boolean; dim?: number | null }): Tensor[];
  unique(sorted: boolean, options: { returnInverse?: boolean; returnCounts?: boolean; dim?: number | null }): Tensor[];
  /** The elements (or slices along `dim`) that differ from the one before; results as of `unique`. */
  uniqueConsecutive(returnInverse?: boolean, returnCounts?: boolean, dim?: number | null): Tensor[];
  uniqueConsecutive(options?: { returnInverse?: boolean; returnCounts?: boolean; dim?: number | null }): Tensor[];
  uniqueConsecutive(returnInverse: boolean, options: { returnCounts?: boolean; dim?: number | null }): Tensor[];
  uniqueConsecutive(returnInverse: boolean, returnCounts: boolean, options: { dim?: number | null }): Tensor[];
  /** A view with a dimension of extent 1 inserted at `dim`. */
  unsqueeze(dim: number): Tensor;
  unsqueeze(options: { dim: number }): Tensor;
  /**
   * Variance over `dim`: squared distances from the mean, divided by (their number - `correction`).
   *
   * Real for complex values. NaN where nothing is left to divide by.
   */
  var(dim?: number | readonly number[] | null, correction?: Real, keepdim?: boolean): Tensor;
  var(options?: { dim?: number | readonly number[] | null; correction?: Real; keepdim?: boolean }): Tensor;
  var(dim: number | readonly number[] | null, options: { correction?: Real; keepdim?: boolean }): Tensor;
  var(dim: number | readonly number[] | null, correction: Real, options: { keepdim?: boolean }): Tensor;
  /** (variance, mean) over `dim`; see `var`. */
  varMean(dim?: number | readonly number[] | null, correction?: Real, keepdim?: boolean): [variance: Tensor, mean: Tensor];
  varMean(options?: { dim?: number | readonly number[] | null; correction?: Real; keepdim?: boolean }): [variance: Tensor, mean: Tensor];
  varMean(dim: number | readonly number[] | null, options: { correction?: Real; keepdim?: boolean }): [variance: Tensor, mean: Tensor];
  varMean(dim: number | readonly number[] | null, correction: Real, options: { keepdim?: boolean }): [variance: Tensor, mean: Tensor];
  /** The dot product of two vectors with `self` conjugated. */
  vdot(other: Tensor): Tensor;
  /** `self * log(other)`, 0 where `self` is 0 unless `other` is NaN. Integers become floats. */
  xlogy(other: Tensor | Scalar): Tensor;
  /** In-place form of `xlogy`: writes the result into the tensor and returns it. */
  xlogy_(other: Tensor | Scalar): this;
  /** Write 0 into every element. */
  zero_(): this;
}
