/** Activation functions as modules. */

import { one } from "../surface/calling.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { Module } from "./module.ts";

/** A function of each element, with its options. */
abstract class Activation extends Module {
  abstract readonly op: string;

  /** The arguments after the tensor. */
  protected options(): readonly unknown[] {
    return [];
  }

  forward(x: Tensor): Tensor {
    return one(this.op, x, ...this.options());
  }
}

/** The larger of the value and 0. */
export class ReLU extends Activation {
  readonly op = "relu";
}

/** `x` times the normal distribution's probability of a smaller value; `"tanh"` is a cheaper approximation. */
export class GELU extends Activation {
  readonly op = "gelu";
  readonly approximate: "none" | "tanh";

  constructor(options: { approximate?: "none" | "tanh" } = {}) {
    super();
    this.approximate = options.approximate ?? "none";
  }

  protected override options(): readonly unknown[] {
    return [this.approximate];
  }
}

/** The hyperbolic tangent. */
export class Tanh extends Activation {
  readonly op = "tanh";
}

/** The logistic function. */
export class Sigmoid extends Activation {
  readonly op = "sigmoid";
}

/** `x * sigmoid(x)`. */
export class SiLU extends Activation {
  readonly op = "silu";
}

/** `x * tanh(softplus(x))`. */
export class Mish extends Activation {
  readonly op = "mish";
}

/** `log(1 + exp(x))`. */
export class Softplus extends Activation {
  readonly op = "softplus";
}

/** `x` where positive, else `negativeSlope * x`. */
export class LeakyReLU extends Activation {
  readonly op = "leaky_relu";
  readonly negativeSlope: number;

  constructor(negativeSlope: number = 0.01) {
    super();
    this.negativeSlope = negativeSlope;
  }

  protected override options(): readonly unknown[] {
    return [this.negativeSlope];
  }
}

/** `x` where positive, else `alpha * (exp(x) - 1)`. */
export class ELU extends Activation {
  readonly op = "elu";
  readonly alpha: number;

  constructor(alpha: number = 1) {
    super();
    this.alpha = alpha;
  }

  protected override options(): readonly unknown[] {
    return [this.alpha];
  }
}

/** Exponentials along a dimension, divided by their sum. */
export class Softmax extends Activation {
  readonly op: string = "softmax";
  readonly dim: number;

  constructor(dim: number) {
    super();
    this.dim = dim;
  }

  protected override options(): readonly unknown[] {
    return [this.dim];
  }
}

/** The logarithm of {@link Softmax}, computed without its rounding. */
export class LogSoftmax extends Softmax {
  override readonly op: string = "log_softmax";
}
