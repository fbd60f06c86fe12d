/// <reference lib="esnext.disposable" preserve="true" />
/**
 * gradwire: tensors, autograd, nn and optimizers on a remote server.
 *
 * ```ts
 * import * as gw from "gradwire";
 *
 * await gw.connect("http://127.0.0.1:8000", { apiKey });
 * const x = gw.tensor([[1, 2], [3, 4]], { requiresGrad: true });
 * const y = x.pow(2).mean();
 * y.backward();
 * console.log(await x.grad!.toArray());
 * ```
 */

import "./autograd/services.ts";
import { attachMethods } from "./surface/attach.ts";
import { Tensor } from "./tensor/tensor.ts";
import type { Nested } from "./tensor/values.ts";

export { backward, grad } from "./autograd/backward.ts";
export type { GradOptions } from "./autograd/backward.ts";
export { FunctionContext, defineFunction } from "./autograd/function.ts";
export type { FunctionDefinition } from "./autograd/function.ts";
export * from "./errors.ts";
export { enableGrad, inferenceMode, isGradEnabled, noGrad } from "./graph/modes.ts";
export { Complex, Float, float } from "./ops/values.ts";
export * as nn from "./nn/index.ts";
export { functional as F } from "./nn/functional.ts";
export { Module, Parameter } from "./nn/index.ts";
export * as optim from "./optim/index.ts";
export { loadSafetensors, saveSafetensors } from "./safetensors.ts";
export { noteCallSites } from "./session/call_sites.ts";
export { currentSession, useSession } from "./session/current.ts";
export type { ReadOptions } from "./session/reads.ts";
export { Scope, keep, scope, tidy } from "./session/scopes.ts";
export { Session, connect } from "./session/session.ts";
export type { ConnectOptions, SessionStats } from "./session/session.ts";
export { complex, einsum, max, median, meshgrid, min, nanmedian, normal, randint } from "./surface/composed.ts";
export type { DrawOptions } from "./surface/composed.ts";
export * as fft from "./surface/fft.ts";
export * from "./surface/functions.ts";
export { clipGradNorm_ } from "./surface/gradients.ts";
export type { Index, Range } from "./surface/indexing.ts";
export * as linalg from "./surface/linalg.ts";
export { tensor } from "./surface/tensors.ts";
export type { TensorOptions } from "./surface/tensors.ts";
export type { DTypeName } from "./tensor/dtypes.ts";
export { Tensor } from "./tensor/tensor.ts";
export type { BackwardOptions } from "./tensor/tensor.ts";
export type { Element, Nested, NumberArray, Shape, TensorLike } from "./tensor/values.ts";
export { VERSION } from "./version.ts";

attachMethods(Tensor.prototype);

/** Read several tensors in one round trip, as nested lists. */
export function fetch(...tensors: readonly Tensor[]): Promise<Nested[]> {
  return Promise.all(tensors.map((tensor) => tensor.toArray()));
}
