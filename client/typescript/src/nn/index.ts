/** Neural networks: modules, losses, initial values, functions. */

export { ELU, GELU, LeakyReLU, LogSoftmax, Mish, ReLU, SiLU, Sigmoid, Softmax, Softplus, Tanh } from "./activation.ts";
export { ModuleDict, ModuleList, Sequential } from "./containers.ts";
export { AdaptiveAvgPool2d, AvgPool2d, Conv1d, Conv2d, Conv3d, MaxPool1d, MaxPool2d } from "./convolution.ts";
export type { ConvOptions, Extents, PoolOptions } from "./convolution.ts";
export { functional } from "./functional.ts";
export * as init from "./init.ts";
export { Dropout, Dropout2d, Embedding, Flatten, Identity, Linear, Unflatten } from "./layers.ts";
export type { EmbeddingOptions, LinearOptions } from "./layers.ts";
export { BCELoss, BCEWithLogitsLoss, CrossEntropyLoss, L1Loss, MSELoss, NLLLoss, SmoothL1Loss } from "./losses.ts";
export type { ClassLossOptions, LossOptions, Reduction } from "./losses.ts";
export { Module } from "./module.ts";
export type { AnyModule, IncompatibleKeys } from "./module.ts";
export { BatchNorm1d, BatchNorm2d, GroupNorm, LayerNorm } from "./normalization.ts";
export type { BatchNormOptions, GroupNormOptions, LayerNormOptions } from "./normalization.ts";
export { Parameter } from "./parameter.ts";
export type { ModuleOptions } from "./parameter.ts";
export { GRU, LSTM, RNN } from "./recurrent.ts";
export type { LSTMState, RecurrentOptions } from "./recurrent.ts";
export { clipGradNorm_ } from "../surface/gradients.ts";
