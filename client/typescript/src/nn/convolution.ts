/** Convolutions and pooling. */

import { ArgumentValueError } from "../errors.ts";
import { one } from "../surface/calling.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { fansOf, kaimingUniform_, uniform_ } from "./init.ts";
import { Module } from "./module.ts";
import { emptyParameter, type ModuleOptions, type Parameter } from "./parameter.ts";

/** A number for all dimensions, or one for each. */
export type Extents = number | readonly number[];

export interface ConvOptions extends ModuleOptions {
  stride?: Extents;
  padding?: Extents | "same" | "valid";
  dilation?: Extents;
  groups?: number;
  /** Default: true. */
  bias?: boolean;
}

function each(extents: Extents, count: number): readonly number[] {
  return typeof extents === "number" ? new Array<number>(count).fill(extents) : extents;
}

abstract class Convolution extends Module {
  readonly inChannels: number;
  readonly outChannels: number;
  readonly kernelSize: readonly number[];
  readonly stride: readonly number[];
  readonly padding: readonly number[] | "same" | "valid";
  readonly dilation: readonly number[];
  readonly groups: number;
  weight: Parameter;
  bias: Parameter | null;
  readonly #op: string;

  constructor(count: number, inChannels: number, outChannels: number, kernelSize: Extents, options: ConvOptions) {
    super();
    const { stride = 1, padding = 0, dilation = 1, groups = 1, bias = true, ...place } = options;
    if (groups <= 0 || inChannels % groups !== 0 || outChannels % groups !== 0) {
      throw new ArgumentValueError(`${inChannels} and ${outChannels} channels cannot be split into ${groups} groups`);
    }
    this.inChannels = inChannels;
    this.outChannels = outChannels;
    this.kernelSize = each(kernelSize, count);
    this.stride = each(stride, count);
    this.padding = typeof padding === "string" ? padding : each(padding, count);
    this.dilation = each(dilation, count);
    this.groups = groups;
    this.#op = `conv${count}d`;
    this.weight = emptyParameter([outChannels, inChannels / groups, ...this.kernelSize], place);
    this.bias = bias ? emptyParameter([outChannels], place) : null;
    this.resetParameters();
  }

  /** Draw new initial values, uniform between plus and minus `1 / sqrt(fanIn)`. */
  resetParameters(): void {
    kaimingUniform_(this.weight, { a: Math.sqrt(5) });
    const { fanIn } = fansOf(this.weight);
    if (this.bias !== null && fanIn > 0) uniform_(this.bias, -1 / Math.sqrt(fanIn), 1 / Math.sqrt(fanIn));
  }

  forward(x: Tensor): Tensor {
    return one(this.#op, x, this.weight, this.bias, this.stride, this.padding, this.dilation, this.groups);
  }

  override toString(): string {
    const kernel = this.kernelSize.join(", ");
    return `${this.constructor.name}(${this.inChannels}, ${this.outChannels}, kernelSize=[${kernel}])`;
  }
}

/** A convolution along one dimension: `(N, C, L)` gives `(N, outChannels, L')`. */
export class Conv1d extends Convolution {
  constructor(inChannels: number, outChannels: number, kernelSize: Extents, options: ConvOptions = {}) {
    super(1, inChannels, outChannels, kernelSize, options);
  }
}

/** A convolution over images: `(N, C, H, W)` gives `(N, outChannels, H', W')`. */
export class Conv2d extends Convolution {
  constructor(inChannels: number, outChannels: number, kernelSize: Extents, options: ConvOptions = {}) {
    super(2, inChannels, outChannels, kernelSize, options);
  }
}

/** A convolution through volumes: `(N, C, D, H, W)` gives `(N, outChannels, D', H', W')`. */
export class Conv3d extends Convolution {
  constructor(inChannels: number, outChannels: number, kernelSize: Extents, options: ConvOptions = {}) {
    super(3, inChannels, outChannels, kernelSize, options);
  }
}

export interface PoolOptions {
  /** Default: the kernel size. */
  stride?: Extents | null;
  padding?: Extents;
  ceilMode?: boolean;
}

abstract class Pool extends Module {
  readonly kernelSize: Extents;
  readonly stride: Extents | null;
  readonly padding: Extents;
  readonly ceilMode: boolean;

  constructor(kernelSize: Extents, options: PoolOptions = {}) {
    super();
    this.kernelSize = kernelSize;
    this.stride = options.stride ?? null;
    this.padding = options.padding ?? 0;
    this.ceilMode = options.ceilMode ?? false;
  }

  protected pooled(op: string, x: Tensor): Tensor {
    return one(op, x, this.kernelSize, { stride: this.stride, padding: this.padding, ceilMode: this.ceilMode });
  }
}

/** The largest values of windows along one dimension. */
export class MaxPool1d extends Pool {
  forward(x: Tensor): Tensor {
    return this.pooled("max_pool1d", x);
  }
}

/** The largest values of the windows of images. */
export class MaxPool2d extends Pool {
  forward(x: Tensor): Tensor {
    return this.pooled("max_pool2d", x);
  }
}

/** The means of the windows of images. */
export class AvgPool2d extends Pool {
  forward(x: Tensor): Tensor {
    return this.pooled("avg_pool2d", x);
  }
}

/** Means of as many windows of images as the output has elements; `null` keeps an extent. */
export class AdaptiveAvgPool2d extends Module {
  readonly outputSize: number | readonly (number | null)[];

  constructor(outputSize: number | readonly (number | null)[]) {
    super();
    this.outputSize = outputSize;
  }

  forward(x: Tensor): Tensor {
    return one("adaptive_avg_pool2d", x, this.outputSize);
  }
}
