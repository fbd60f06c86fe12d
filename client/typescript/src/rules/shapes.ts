/** The shapes of results: the general rules that the op table names, and those of single ops. */

import type { Op } from "../ops/op.ts";
import { isTensor, type Value } from "../ops/values.ts";
import { CallArguments, type ShapeRule, type Shapes } from "./call_arguments.ts";
import { broadcast, canonicalDims, reduced } from "./extents.ts";
import { JOINING } from "./joining.ts";
import { MATRICES } from "./matrices.ts";
import type { Shape } from "./operands.ts";
import { PRODUCTS } from "./products.ts";
import { VIEWS } from "./views.ts";
import { WINDOWS } from "./windows.ts";

/** `all` and `any` over an empty list of dimensions reduce none of them, unlike other reductions. */
const truths: ShapeRule = (call) => {
  const dim = call.get("dim");
  return [Array.isArray(dim) && dim.length === 0 ? call.shape(0) : general(call, "reduce")];
};

const AT = "@".charCodeAt(0);

const OWN: ReadonlyMap<string, ShapeRule> = new Map(
  Object.entries({ ...VIEWS, ...PRODUCTS, ...JOINING, ...WINDOWS, ...MATRICES, all: truths, any: truths }),
);

/** The shapes of an op's results, in order. There may be fewer than results: the others are not known. */
export function shapesOf(op: Op, values: readonly Value[]): Shapes {
  const call = new CallArguments(op, values);
  const own = OWN.get(op.base ?? op.name);
  if (own !== undefined) return own(call);
  const rules = op.shapeRules;
  const count = op.results ?? 0;
  if (rules.length === 1) {
    const shape = general(call, rules[0]!);
    if (count <= 1) return [shape];
    return new Array<Shape | undefined>(Math.max(count, 1)).fill(shape);
  }
  return rules.map((rule) => general(call, rule));
}

function general(call: CallArguments, rule: string): Shape | undefined {
  if (rule.charCodeAt(0) === AT) {
    const at = Number(rule.slice(1));
    return isTensor(call.values[at]) ? call.shape(at) : [];
  }
  switch (rule) {
    case "broadcast": {
      const shapes = call.shapes();
      return shapes === undefined ? undefined : broadcast(call.name, shapes);
    }
    case "reduce": {
      const shape = call.shape(0);
      if (shape === undefined) return undefined;
      const dim = call.get("dim") as Shape | number | null;
      return reduced(shape, canonicalDims(call.name, dim, shape.length), call.flag("keepdim"));
    }
    case "loss": {
      if (call.get("reduction") !== "none") return [];
      const [x, target] = [call.shape(0), call.shape(1)];
      return x === undefined || target === undefined ? undefined : broadcast(call.name, [x, target]);
    }
    case "size":
      return call.list("size");
    case "scalar":
      return [];
    default:
      return undefined;
  }
}
