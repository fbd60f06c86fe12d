/** The shapes of convolutions, pooling, padding, and of losses and norms that have rules of their own. */

import { ArgumentError } from "../errors.ts";
import { ofFirst, type CallArguments, type ShapeRule } from "./call_arguments.ts";
import { listed, perDimension, windowExtent } from "./extents.ts";
import type { Shape } from "./operands.ts";

/** The number of spatial dimensions, which ends an op's name: `conv2d`, `max_pool1d_with_indices`. */
function dimensionsOf(name: string): number {
  return Number(/(\d)d/.exec(name)![1]);
}

function channelsOf(call: CallArguments, shape: Shape, count: number): number {
  if (shape.length !== count + 1 && shape.length !== count + 2) {
    call.mismatch(`takes ${count + 1} or ${count + 2} dimensions, got ${listed(shape)}`);
  }
  return shape[shape.length - count - 1]!;
}

const convolution: ShapeRule = (call) => {
  const [x, weight] = [call.shape(0), call.shape(1)];
  if (x === undefined || weight === undefined) return [undefined];
  const count = dimensionsOf(call.name);
  if (weight.length !== count + 2) call.mismatch(`the weight needs ${count + 2} dimensions, got ${listed(weight)}`);
  const channels = channelsOf(call, x, count);
  const groups = call.number("groups");
  if (channels !== weight[1]! * groups) {
    const wanted = `the weight ${listed(weight)} takes ${weight[1]! * groups}`;
    call.mismatch(`the input ${listed(x)} has ${channels} channels, ${wanted}`);
  }
  const stride = perDimension(call.get("stride"), count);
  const dilation = perDimension(call.get("dilation"), count);
  const padding = call.get("padding");
  const extents = x.slice(-count).map((extent, i) => {
    if (padding === "same") return extent;
    const pad = padding === "valid" ? 0 : perDimension(padding, count)[i]!;
    return windowExtent(extent, weight[i + 2]!, stride[i]!, pad, dilation[i]!);
  });
  if (extents.some((n) => n < 1)) call.mismatch(`the kernel of ${listed(weight)} does not fit the input ${listed(x)}`);
  return [[...x.slice(0, -count - 1), weight[0]!, ...extents]];
};

const transposed: ShapeRule = (call) => {
  const [x, weight] = [call.shape(0), call.shape(1)];
  if (x === undefined || weight === undefined) return [undefined];
  const count = dimensionsOf(call.name);
  channelsOf(call, x, count);
  const [stride, padding, extra, dilation] = ["stride", "padding", "output_padding", "dilation"].map((name) =>
    perDimension(call.get(name), count),
  ) as [number[], number[], number[], number[]];
  const extents = x.slice(-count).map((extent, i) => {
    const reach = dilation[i]! * (weight[i + 2]! - 1) + 1;
    return (extent - 1) * stride[i]! - 2 * padding[i]! + reach + extra[i]!;
  });
  return [[...x.slice(0, -count - 1), weight[1]! * call.number("groups"), ...extents]];
};

/** The same shape for each result. */
function pooled(results: number): ShapeRule {
  return (call) => {
    const x = call.shape(0);
    if (x === undefined) return new Array<undefined>(results).fill(undefined);
    const count = dimensionsOf(call.name);
    channelsOf(call, x, count);
    const kernel = perDimension(call.get("kernel_size"), count);
    const given = call.get("stride");
    const noStride = given === null || (Array.isArray(given) && given.length === 0);
    const stride = noStride ? kernel : perDimension(given, count);
    const padding = perDimension(call.get("padding"), count);
    const dilation = perDimension(call.get("dilation") ?? 1, count);
    const extents = x
      .slice(-count)
      .map((n, i) => windowExtent(n, kernel[i]!, stride[i]!, padding[i]!, dilation[i]!, call.flag("ceil_mode")));
    const shape = [...x.slice(0, -count), ...extents];
    return new Array<Shape>(results).fill(shape);
  };
}

function adaptive(results: number): ShapeRule {
  return (call) => {
    const x = call.shape(0);
    if (x === undefined) return new Array<undefined>(results).fill(undefined);
    const count = dimensionsOf(call.name);
    const size = call.get("output_size") as number | readonly (number | null)[];
    const wanted = typeof size === "number" ? new Array<number>(count).fill(size) : size;
    const full = wanted.length === count ? wanted : new Array<number | null>(count).fill(wanted[0]!);
    const shape = [...x.slice(0, -count), ...x.slice(-count).map((n, i) => full[i] ?? n)];
    return new Array<Shape>(results).fill(shape);
  };
}

/** No dimensions, unless nothing is reduced: then one loss for each target. */
const perSample: ShapeRule = (call) => {
  if (call.get("reduction") !== "none") return [[]];
  const [x, target] = [call.shape(0), call.shape(1)];
  if (x === undefined || target === undefined) return [undefined];
  if (call.name !== "cross_entropy" || x.length !== target.length) return [target];
  return [x.length > 1 ? [x[0]!, ...x.slice(2)] : []]; // the target has probabilities of classes
};

const named = (name: string, rule: (count: number) => ShapeRule): [string, ShapeRule][] =>
  [1, 2, 3].map((n) => [name.replace("#", String(n)), rule(n)]);

export const WINDOWS: Readonly<Record<string, ShapeRule>> = {
  ...Object.fromEntries([
    ...named("conv#d", () => convolution),
    ...named("conv_transpose#d", () => transposed),
    ...named("max_pool#d", () => pooled(1)),
    ...named("max_pool#d_with_indices", () => pooled(2)),
    ...named("avg_pool#d", () => pooled(1)),
    ...named("adaptive_avg_pool#d", () => adaptive(1)),
    ...named("adaptive_max_pool#d", () => adaptive(2)),
  ]),
  pad: ofFirst((call, shape) => {
    const pads = call.list("pad");
    if (pads.length % 2 === 1 || pads.length > 2 * shape.length) {
      throw new ArgumentError(`pad: ${listed(pads)} does not fit a tensor of shape ${listed(shape)}`, { op: "pad" });
    }
    return shape.map((n, i) => {
      const at = 2 * (shape.length - 1 - i);
      return n + (pads[at] ?? 0) + (pads[at + 1] ?? 0);
    });
  }),
  pixel_shuffle: ofFirst((call, shape) => {
    const factor = call.number("upscale_factor");
    if (shape.length < 3) return undefined;
    const [c, h, w] = shape.slice(-3) as [number, number, number];
    return [...shape.slice(0, -3), c / (factor * factor), h * factor, w * factor];
  }),
  pixel_unshuffle: ofFirst((call, shape) => {
    const factor = call.number("downscale_factor");
    if (shape.length < 3) return undefined;
    const [c, h, w] = shape.slice(-3) as [number, number, number];
    return [...shape.slice(0, -3), c * factor * factor, h / factor, w / factor];
  }),
  interpolate: ofFirst((call, shape) => [...shape.slice(0, 2), ...call.list("size")]),
  nll_loss: perSample,
  multi_margin_loss: perSample,
  cross_entropy: perSample,
};
