/** Optimizers, fused on the server. */

export { Adam, AdamW, SGD } from "./algorithms.ts";
export type { AdamOptions, SGDOptions } from "./algorithms.ts";
export { Optimizer } from "./optimizer.ts";
export type { OptimizerState, ParamGroup, ParamState, Params } from "./optimizer.ts";
