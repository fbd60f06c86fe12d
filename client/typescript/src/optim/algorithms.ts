/** The optimizers: each step of a group is one op, which the server fuses. */

import { ArgumentValueError } from "../errors.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { Optimizer, checkRange, type ParamGroup, type Params } from "./optimizer.ts";

export interface SGDOptions {
  /** The learning rate. */
  lr: number;
  /** How much of the last step's direction is kept. */
  momentum: number;
  /** How much of the gradient does not enter that direction. */
  dampening: number;
  /** Times the parameter itself is added to its gradient. */
  weightDecay: number;
  /** Look ahead along the momentum. */
  nesterov: boolean;
  /** Go along the gradient, not against it. */
  maximize: boolean;
}

/** Against the gradient by `lr` times its length, with momentum if asked for. */
export class SGD extends Optimizer<SGDOptions> {
  constructor(params: Params<SGDOptions>, options: Partial<SGDOptions> = {}) {
    super(params, {
      lr: 1e-3,
      momentum: 0,
      dampening: 0,
      weightDecay: 0,
      nesterov: false,
      maximize: false,
      ...options,
    });
  }

  protected override check({ lr, momentum, dampening, weightDecay, nesterov }: SGDOptions): void {
    checkRange("lr", lr, 0);
    checkRange("momentum", momentum, 0);
    checkRange("weightDecay", weightDecay, 0);
    if (nesterov && (momentum <= 0 || dampening !== 0)) {
      const given = `${momentum} and ${dampening}`;
      throw new ArgumentValueError(`nesterov needs momentum above 0 and no dampening, not ${given}`);
    }
  }

  protected override update(group: ParamGroup<SGDOptions>, params: readonly Tensor[]): void {
    let first: boolean[] = [];
    let buffers: (Tensor | null)[] = params.map(() => null);
    if (group.momentum !== 0) {
      first = params.map((param) => this.state.get(param)?.["momentum_buffer"] === undefined);
      buffers = this.kept(params, "momentum_buffer", "empty_like");
    }
    const { lr, momentum, dampening, weightDecay, nesterov, maximize } = group;
    const fresh = first.includes(true) ? first : [];
    this.record("sgd_step", params, buffers, lr, momentum, dampening, weightDecay, nesterov, maximize, fresh, null);
  }
}

export interface AdamOptions {
  /** The learning rate. */
  lr: number;
  /** The decay rates of the means of the gradient and of its square. */
  betas: readonly [number, number];
  /** Added to the root of the second mean. */
  eps: number;
  /** Times the parameter itself is added to its gradient. */
  weightDecay: number;
  /** Divide by the largest second mean so far. */
  amsgrad: boolean;
  /** Go along the gradient, not against it. */
  maximize: boolean;
  /** Shrink the parameter itself by `lr * weightDecay` instead, as AdamW does. */
  decoupledWeightDecay: boolean;
}

const ADAM: AdamOptions = {
  lr: 1e-3,
  betas: [0.9, 0.999],
  eps: 1e-8,
  weightDecay: 0,
  amsgrad: false,
  maximize: false,
  decoupledWeightDecay: false,
};

/** Steps of about `lr` an element, from running means of the gradient and of its square. */
export class Adam extends Optimizer<AdamOptions> {
  constructor(params: Params<AdamOptions>, options: Partial<AdamOptions> = {}) {
    super(params, { ...ADAM, ...options });
  }

  protected override check({ lr, betas, eps, weightDecay }: AdamOptions): void {
    checkRange("lr", lr, 0);
    checkRange("eps", eps, 0);
    checkRange("weightDecay", weightDecay, 0);
    betas.forEach((beta, i) => checkRange(`betas[${i}]`, beta, 0, 1));
  }

  protected override update(group: ParamGroup<AdamOptions>, params: readonly Tensor[]): void {
    const { lr, betas, eps, weightDecay, amsgrad, maximize, decoupledWeightDecay } = group;
    for (const [step, alike] of this.bySteps(params)) {
      const means = this.kept(alike, "exp_avg");
      const squares = this.kept(alike, "exp_avg_sq");
      const largest = amsgrad ? this.kept(alike, "max_exp_avg_sq") : alike.map(() => null);
      this.record(
        "adam_step",
        alike,
        means,
        squares,
        largest,
        lr,
        betas[0],
        betas[1],
        eps,
        weightDecay,
        step,
        amsgrad,
        maximize,
        decoupledWeightDecay,
        null,
      );
    }
  }
}

/** {@link Adam} whose weight decay is decoupled: parameters shrink by `lr * weightDecay` each step. */
export class AdamW extends Adam {
  constructor(params: Params<AdamOptions>, options: Partial<AdamOptions> = {}) {
    super(params, { weightDecay: 1e-2, ...options, decoupledWeightDecay: true });
  }
}
