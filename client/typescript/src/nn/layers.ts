/** Layers: linear maps, tables, dropout, shapes. */

import { ArgumentValueError } from "../errors.ts";
import { noGrad } from "../graph/modes.ts";
import { one } from "../surface/calling.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { dropout, dropout2d, embedding } from "./functional.ts";
import { kaimingUniform_, normal_, uniform_ } from "./init.ts";
import { Module } from "./module.ts";
import { emptyParameter, type ModuleOptions, type Parameter } from "./parameter.ts";

/** Returns what it is given. */
export class Identity extends Module {
  forward(x: Tensor): Tensor {
    return x;
  }
}

export interface LinearOptions extends ModuleOptions {
  /** Default: true. */
  bias?: boolean;
}

/**
 * `x @ weight.T + bias` on the last dimension: `(..., inFeatures)` gives `(..., outFeatures)`. `weight` and `bias`
 * start uniform between plus and minus `1 / sqrt(inFeatures)`.
 */
export class Linear extends Module {
  readonly inFeatures: number;
  readonly outFeatures: number;
  weight: Parameter;
  bias: Parameter | null;

  constructor(inFeatures: number, outFeatures: number, options: LinearOptions = {}) {
    super();
    const { bias = true, ...place } = options;
    this.inFeatures = inFeatures;
    this.outFeatures = outFeatures;
    this.weight = emptyParameter([outFeatures, inFeatures], place);
    this.bias = bias ? emptyParameter([outFeatures], place) : null;
    this.resetParameters();
  }

  /** Draw new initial values. */
  resetParameters(): void {
    kaimingUniform_(this.weight, { a: Math.sqrt(5) });
    if (this.bias === null) return;
    const bound = this.inFeatures > 0 ? 1 / Math.sqrt(this.inFeatures) : 0;
    uniform_(this.bias, -bound, bound);
  }

  forward(x: Tensor): Tensor {
    return one("linear", x, this.weight, this.bias);
  }

  override toString(): string {
    return `Linear(${this.inFeatures}, ${this.outFeatures}${this.bias === null ? ", bias=false" : ""})`;
  }
}

export interface EmbeddingOptions extends ModuleOptions {
  /** A row that starts at zero and receives no gradient. */
  paddingIdx?: number | null;
  /** Divide each row's gradient by the number of times it was looked up. */
  scaleGradByFreq?: boolean;
}

/** A table with a row for each of `numEmbeddings` integers: `(...)` gives `(..., embeddingDim)`. It starts normal. */
export class Embedding extends Module {
  readonly numEmbeddings: number;
  readonly embeddingDim: number;
  readonly paddingIdx: number | null;
  readonly scaleGradByFreq: boolean;
  weight: Parameter;

  constructor(numEmbeddings: number, embeddingDim: number, options: EmbeddingOptions = {}) {
    super();
    const { paddingIdx = null, scaleGradByFreq = false, ...place } = options;
    if (paddingIdx !== null && (paddingIdx < -numEmbeddings || paddingIdx >= numEmbeddings)) {
      throw new ArgumentValueError(`paddingIdx ${paddingIdx} is outside a table of ${numEmbeddings} rows`);
    }
    this.numEmbeddings = numEmbeddings;
    this.embeddingDim = embeddingDim;
    this.paddingIdx = paddingIdx !== null && paddingIdx < 0 ? paddingIdx + numEmbeddings : paddingIdx;
    this.scaleGradByFreq = scaleGradByFreq;
    this.weight = emptyParameter([numEmbeddings, embeddingDim], place);
    this.resetParameters();
  }

  /** Draw new initial values. */
  resetParameters(): void {
    normal_(this.weight);
    if (this.paddingIdx !== null) noGrad(() => one("fill_", one("select", this.weight, 0, this.paddingIdx), 0));
  }

  forward(indices: Tensor): Tensor {
    return embedding(indices, this.weight, { paddingIdx: this.paddingIdx, scaleGradByFreq: this.scaleGradByFreq });
  }

  override toString(): string {
    return `Embedding(${this.numEmbeddings}, ${this.embeddingDim})`;
  }
}

function checkProbability(p: number): void {
  if (!(p >= 0 && p <= 1)) throw new ArgumentValueError(`p is a probability, from 0 to 1, not ${p}`);
}

/** Zero each element with probability `p` in training, and scale the others by `1 / (1 - p)`. */
export class Dropout extends Module {
  readonly p: number;

  constructor(p: number = 0.5) {
    super();
    checkProbability(p);
    this.p = p;
  }

  forward(x: Tensor): Tensor {
    return dropout(x, this.p, this.training);
  }
}

/** Zero whole channels of `(N, C, H, W)` with probability `p` in training, and scale the others. */
export class Dropout2d extends Dropout {
  override forward(x: Tensor): Tensor {
    return dropout2d(x, this.p, this.training);
  }
}

/** Dimensions `startDim` to `endDim` merged into one. */
export class Flatten extends Module {
  readonly startDim: number;
  readonly endDim: number;

  constructor(startDim: number = 1, endDim: number = -1) {
    super();
    this.startDim = startDim;
    this.endDim = endDim;
  }

  forward(x: Tensor): Tensor {
    return one("flatten", x, this.startDim, this.endDim);
  }
}

/** One dimension split into several. */
export class Unflatten extends Module {
  readonly dim: number;
  readonly sizes: readonly number[];

  constructor(dim: number, sizes: readonly number[]) {
    super();
    this.dim = dim;
    this.sizes = sizes;
  }

  forward(x: Tensor): Tensor {
    return one("unflatten", x, this.dim, this.sizes);
  }
}
