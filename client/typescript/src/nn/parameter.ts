/** Parameters: the tensors of a module that are trained. */

import { lookup } from "../ops/op.ts";
import { create } from "../surface/calling.ts";
import { keep } from "../session/scopes.ts";
import type { Session } from "../session/session.ts";
import type { DTypeName } from "../tensor/dtypes.ts";
import { Tensor } from "../tensor/tensor.ts";

/** Where and how the parameters of a module are made. */
export interface ModuleOptions {
  dtype?: DTypeName | undefined;
  device?: string | undefined;
  session?: Session | undefined;
}

/** A leaf that shares memory with a tensor and requires a gradient. It outlives the scopes in which it is made. */
export class Parameter extends Tensor {
  constructor(data: Tensor, requiresGrad: boolean = true) {
    const counter = data.session.record(lookup("detach"), [data], 1);
    super(data.session, counter, { dtype: data.dtype, shape: data.shape, device: data.device });
    keep(this);
    if (requiresGrad) this.requiresGrad = true;
  }
}

/** A parameter without values yet, which initialisation fills. */
export function emptyParameter(size: readonly number[], options: ModuleOptions): Parameter {
  const data = create(lookup("empty"), [size, options]);
  const made = new Parameter(data);
  data.dispose();
  return made;
}
