/** Losses as modules. */

import { one } from "../surface/calling.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { Module } from "./module.ts";

/** How the losses of elements become one: their mean, their sum, or not at all. */
export type Reduction = "mean" | "sum" | "none";

export interface LossOptions {
  /** Default: `"mean"`. */
  reduction?: Reduction;
}

/** A prediction and a target in, one number out; with `reduction: "none"`, one number an element. */
abstract class Loss extends Module<[prediction: Tensor, target: Tensor], Tensor> {
  readonly reduction: Reduction;

  constructor(options: LossOptions = {}) {
    super();
    this.reduction = options.reduction ?? "mean";
  }
}

/** The squared error. */
export class MSELoss extends Loss {
  forward(prediction: Tensor, target: Tensor): Tensor {
    return one("mse_loss", prediction, target, this.reduction);
  }
}

/** The absolute error. */
export class L1Loss extends Loss {
  forward(prediction: Tensor, target: Tensor): Tensor {
    return one("l1_loss", prediction, target, this.reduction);
  }
}

/** The squared error below `beta`, the absolute error above. */
export class SmoothL1Loss extends Loss {
  readonly beta: number;

  constructor(options: LossOptions & { beta?: number } = {}) {
    super(options);
    this.beta = options.beta ?? 1;
  }

  forward(prediction: Tensor, target: Tensor): Tensor {
    return one("smooth_l1_loss", prediction, target, this.reduction, this.beta);
  }
}

export interface ClassLossOptions extends LossOptions {
  /** A weight for each class. */
  weight?: Tensor | null;
  /** A target that does not count. Default: -100. */
  ignoreIndex?: number;
}

/** The negative log-likelihood of classes, from log-probabilities `(N, C, ...)` and classes `(N, ...)`. */
export class NLLLoss extends Loss {
  declare weight: Tensor | null;
  readonly ignoreIndex: number;

  constructor(options: ClassLossOptions = {}) {
    super(options);
    this.registerBuffer("weight", options.weight ?? null);
    this.ignoreIndex = options.ignoreIndex ?? -100;
  }

  forward(prediction: Tensor, target: Tensor): Tensor {
    return one("nll_loss", prediction, target, this.weight, this.ignoreIndex, this.reduction);
  }
}

/** The cross entropy of classes, from scores `(N, C, ...)` and classes `(N, ...)` or probabilities `(N, C, ...)`. */
export class CrossEntropyLoss extends NLLLoss {
  readonly labelSmoothing: number;

  constructor(options: ClassLossOptions & { labelSmoothing?: number } = {}) {
    super(options);
    this.labelSmoothing = options.labelSmoothing ?? 0;
  }

  override forward(prediction: Tensor, target: Tensor): Tensor {
    const { weight, ignoreIndex, reduction, labelSmoothing } = this;
    return one("cross_entropy", prediction, target, weight, ignoreIndex, reduction, labelSmoothing);
  }
}

/** The cross entropy of two classes, from scores. */
export class BCEWithLogitsLoss extends Loss {
  declare weight: Tensor | null;
  declare posWeight: Tensor | null;

  constructor(options: LossOptions & { weight?: Tensor | null; posWeight?: Tensor | null } = {}) {
    super(options);
    this.registerBuffer("weight", options.weight ?? null);
    this.registerBuffer("posWeight", options.posWeight ?? null);
  }

  forward(prediction: Tensor, target: Tensor): Tensor {
    return one("binary_cross_entropy_with_logits", prediction, target, this.weight, this.posWeight, this.reduction);
  }
}

/** The cross entropy of two classes, from probabilities. */
export class BCELoss extends Loss {
  forward(prediction: Tensor, target: Tensor): Tensor {
    return one("binary_cross_entropy", prediction, target, null, this.reduction);
  }
}
