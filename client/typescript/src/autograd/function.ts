/** Functions with a derivative of the program's own. Both run in the program, on proxies; nothing waits. */

import { ArgumentTypeError, GraphError } from "../errors.ts";
import { isGradEnabled, noGrad } from "../graph/modes.ts";
import { GraphNode } from "../graph/nodes.ts";
import { lookup } from "../ops/op.ts";
import { keep } from "../session/scopes.ts";
import { carriesGradient } from "../tensor/dtypes.ts";
import { Tensor } from "../tensor/tensor.ts";

/** Carries what the derivative needs from forward to backward. */
export class FunctionContext {
  #saved: readonly Tensor[] = [];
  /** Which inputs a gradient is wanted for. */
  readonly needsInputGrad: readonly boolean[];
  /** Values that are no tensors. */
  readonly values: { [name: string]: unknown } = {};

  /** @internal */
  constructor(needsInputGrad: readonly boolean[]) {
    this.needsInputGrad = needsInputGrad;
  }

  /** Keep tensors until backward, beyond the scope that they were made in. */
  saveForBackward(...tensors: Tensor[]): void {
    this.#saved = keep(tensors);
  }

  /** @throws GraphError when backward has freed them. */
  get saved(): readonly Tensor[] {
    return this.#saved;
  }
}

export type Outputs = Tensor | readonly Tensor[];

/** A function and its derivative. */
export interface FunctionDefinition<Inputs extends readonly unknown[], Result extends Outputs> {
  /** For errors and graphs, e.g. `"Square"`. */
  name: string;
  /** Compute the results. Recorded without history. */
  forward(ctx: FunctionContext, ...inputs: Inputs): Result;
  /** One gradient per output in; one per tensor input out, `null` where there is none. */
  backward(ctx: FunctionContext, ...gradients: Tensor[]): Tensor | null | readonly (Tensor | null)[];
}

/**
 * A function that may be called like any other and whose derivative is the program's:
 *
 * ```ts
 * const square = defineFunction({
 *   name: "Square",
 *   forward(ctx, x: Tensor) { ctx.saveForBackward(x); return x.mul(x); },
 *   backward(ctx, gradient) { return gradient.mul(ctx.saved[0]!).mul(2); },
 * });
 * ```
 */
export function defineFunction<Inputs extends readonly unknown[], Result extends Outputs>(
  definition: FunctionDefinition<Inputs, Result>,
): (...inputs: Inputs) => Result {
  return (...inputs) => {
    const tensors = inputs.filter((input): input is Inputs[number] & Tensor => input instanceof Tensor);
    const edges = tensors.map((tensor) => tensor.gradientEdge ?? null);
    const ctx = new FunctionContext(edges.map((edge) => edge !== null));
    const result = noGrad(() => definition.forward(ctx, ...inputs));
    const outputs = result instanceof Tensor ? [result] : result;
    if (!Array.isArray(outputs) || !outputs.every((output) => output instanceof Tensor)) {
      throw new ArgumentTypeError(`${definition.name}: forward returns a tensor or a list of tensors`);
    }
    if (!isGradEnabled() || !edges.some((edge) => edge)) return result;
    if (outputs.some((output) => tensors.includes(output))) {
      throw new GraphError(`${definition.name}: forward returned one of its inputs; return a clone() of it`);
    }
    const session = tensors[0]!.session;
    const attached = outputs.flatMap((output, at) => (carriesGradient(output.dtype) ? [at] : []));
    const values = [definition.name, tensors, outputs, attached];
    const counter = session.record(lookup("attach_function"), values, 1);
    const place = keep(new Tensor(session, counter, { dtype: undefined, shape: undefined }));
    const node = new GraphNode(definition.name, edges, outputs.length);
    node.custom = {
      name: definition.name,
      place,
      differentiate(gradients) {
        const given = definition.backward(ctx, ...gradients);
        return given === null || given instanceof Tensor ? [given] : [...given];
      },
    };
    for (const at of attached) outputs[at]!.rebase({ node, slot: at });
    return result;
  };
}
