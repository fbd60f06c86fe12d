/** Normalisation: over the last dimensions, over groups of channels, over the batch. */

import { ArgumentValueError } from "../errors.ts";
import { lookup } from "../ops/op.ts";
import { create, one } from "../surface/calling.ts";
import { tensor } from "../surface/tensors.ts";
import { noGrad } from "../graph/modes.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { ones_, zeros_ } from "./init.ts";
import { Module } from "./module.ts";
import { emptyParameter, type ModuleOptions, type Parameter } from "./parameter.ts";

export interface LayerNormOptions extends ModuleOptions {
  /** Default: 1e-5. */
  eps?: number;
  /** Whether to scale and shift. Default: true. */
  elementwiseAffine?: boolean;
  /** Whether to shift. Default: true. */
  bias?: boolean;
}

/** Normalise over the last dimensions, then scale and shift each element. */
export class LayerNorm extends Module {
  readonly normalizedShape: readonly number[];
  readonly eps: number;
  weight: Parameter | null;
  bias: Parameter | null;

  constructor(normalizedShape: number | readonly number[], options: LayerNormOptions = {}) {
    super();
    const { eps = 1e-5, elementwiseAffine = true, bias = true, ...place } = options;
    this.normalizedShape = typeof normalizedShape === "number" ? [normalizedShape] : normalizedShape;
    this.eps = eps;
    this.weight = elementwiseAffine ? ones_(emptyParameter(this.normalizedShape, place)) : null;
    this.bias = elementwiseAffine && bias ? zeros_(emptyParameter(this.normalizedShape, place)) : null;
  }

  forward(x: Tensor): Tensor {
    return one("layer_norm", x, this.normalizedShape, this.weight, this.bias, this.eps);
  }
}

export interface GroupNormOptions extends ModuleOptions {
  eps?: number;
  /** Whether to scale and shift. Default: true. */
  affine?: boolean;
}

/** Normalise each sample over groups of channels, then scale and shift each channel. */
export class GroupNorm extends Module {
  readonly numGroups: number;
  readonly numChannels: number;
  readonly eps: number;
  weight: Parameter | null;
  bias: Parameter | null;

  constructor(numGroups: number, numChannels: number, options: GroupNormOptions = {}) {
    super();
    const { eps = 1e-5, affine = true, ...place } = options;
    if (numChannels % numGroups !== 0) {
      throw new ArgumentValueError(`${numChannels} channels cannot be split into ${numGroups} groups`);
    }
    this.numGroups = numGroups;
    this.numChannels = numChannels;
    this.eps = eps;
    this.weight = affine ? ones_(emptyParameter([numChannels], place)) : null;
    this.bias = affine ? zeros_(emptyParameter([numChannels], place)) : null;
  }

  forward(x: Tensor): Tensor {
    return one("group_norm", x, this.numGroups, this.weight, this.bias, this.eps);
  }
}

export interface BatchNormOptions extends ModuleOptions {
  eps?: number;
  /** The weight of the newest batch in the running averages. Default: 0.1. */
  momentum?: number;
  affine?: boolean;
  /** Whether to remember running averages, for evaluation. Default: true. */
  trackRunningStats?: boolean;
}

/**
 * Normalise each channel over the batch, then scale and shift it. In training the batch's own mean and variance are
 * used and remembered as running averages, which take their place in evaluation.
 */
abstract class BatchNorm extends Module {
  readonly numFeatures: number;
  readonly eps: number;
  readonly momentum: number;
  weight: Parameter | null;
  bias: Parameter | null;
  declare runningMean: Tensor | null;
  declare runningVar: Tensor | null;
  declare numBatchesTracked: Tensor | null;

  constructor(numFeatures: number, options: BatchNormOptions = {}) {
    super();
    const { eps = 1e-5, momentum = 0.1, affine = true, trackRunningStats = true, ...place } = options;
    this.numFeatures = numFeatures;
    this.eps = eps;
    this.momentum = momentum;
    this.weight = affine ? ones_(emptyParameter([numFeatures], place)) : null;
    this.bias = affine ? zeros_(emptyParameter([numFeatures], place)) : null;
    const tracked = trackRunningStats;
    this.registerBuffer("runningMean", tracked ? create(lookup("zeros"), [[numFeatures], place]) : null);
    this.registerBuffer("runningVar", tracked ? create(lookup("ones"), [[numFeatures], place]) : null);
    const counted = tracked ? tensor(0, { dtype: "int64", device: place.device, session: place.session }) : null;
    this.registerBuffer("numBatchesTracked", counted);
  }

  protected abstract readonly dimensions: readonly number[];

  forward(x: Tensor): Tensor {
    if (x.ndim !== undefined && !this.dimensions.includes(x.ndim)) {
      const shape = x.shape!.join(", ");
      throw new ArgumentValueError(
        `${this.constructor.name} takes ${this.dimensions.join(" or ")} dimensions, the input's shape is [${shape}]`,
      );
    }
    const counted = this.numBatchesTracked;
    if (this.training && counted !== null) noGrad(() => one("add_", counted, 1));
    const training = this.training || this.runningMean === null;
    return one(
      "batch_norm",
      x,
      this.runningMean,
      this.runningVar,
      this.weight,
      this.bias,
      training,
      this.momentum,
      this.eps,
    );
  }
}

/** Batch normalisation of `(N, C)` or `(N, C, L)`. */
export class BatchNorm1d extends BatchNorm {
  protected override readonly dimensions = [2, 3];
}

/** Batch normalisation of `(N, C, H, W)`. */
export class BatchNorm2d extends BatchNorm {
  protected override readonly dimensions = [4];
}
