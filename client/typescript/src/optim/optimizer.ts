/** The base of optimizers: parameters in groups with options, and what is remembered of each parameter. */

import { call } from "../dispatch/call.ts";
import { ArgumentTypeError, ArgumentValueError } from "../errors.ts";
import { enableGrad, noGrad } from "../graph/modes.ts";
import { lookup } from "../ops/op.ts";
import type { Value } from "../ops/values.ts";
import { keep } from "../session/scopes.ts";
import type { Session } from "../session/session.ts";
import { one } from "../surface/calling.ts";
import { zeroGradients } from "../surface/gradients.ts";
import { Tensor } from "../tensor/tensor.ts";

/** Parameters with options of their own. Options can be changed between steps: `group.lr = 0.01`. */
export type ParamGroup<Options> = Options & { params: Tensor[] };

/** What an optimizer is made for: parameters, or groups of them with options. */
export type Params<Options> = Iterable<Tensor> | Iterable<Partial<Options> & { params: Iterable<Tensor> }>;

/** What is remembered of a parameter: tensors, and counts of steps. */
export type ParamState = Record<string, Tensor | number>;

/** A saved optimizer: parameters are numbered in the order of the groups. */
export interface OptimizerState<Options> {
  state: Record<number, ParamState>;
  paramGroups: (Options & { params: number[] })[];
}

/** A step is one record a parameter group, whatever the number of parameters. Nothing waits for the server. */
export abstract class Optimizer<Options extends object> {
  readonly paramGroups: ParamGroup<Options>[] = [];
  /** By parameter, what is remembered between steps. */
  readonly state: Map<Tensor, ParamState> = new Map();
  readonly #defaults: Options;

  constructor(params: Params<Options>, defaults: Options) {
    this.#defaults = defaults;
    const given = [...(params as Iterable<Tensor | (Partial<Options> & { params: Iterable<Tensor> })>)];
    if (given.length === 0) throw new ArgumentValueError("an optimizer needs at least one parameter; there is none");
    if (given[0] instanceof Tensor) this.addParamGroup({ params: given as Tensor[] } as never);
    else for (const group of given) this.addParamGroup(group as never);
    // What made the parameters is no part of the first step, which is then like the others.
    for (const session of this.#sessions()) session.frameEnds();
  }

  #sessions(): Set<Session> {
    return new Set(this.paramGroups.flatMap((group) => group.params.map((param) => param.session)));
  }

  /** Add parameters with options of their own. */
  addParamGroup(group: Partial<Options> & { params: Iterable<Tensor> }): void {
    const params = [...group.params];
    const known = new Set(this.paramGroups.flatMap((other) => other.params));
    for (const param of params) {
      if (!(param instanceof Tensor)) throw new ArgumentTypeError("an optimizer works on tensors");
      if (!param.isLeaf) throw new ArgumentValueError(`an optimizer works on leaves, ${param} was computed`);
      if (known.has(param)) throw new ArgumentValueError(`${param} is in another group already`);
    }
    const made = { ...this.#defaults, ...group, params };
    this.check(made);
    this.paramGroups.push(made);
  }

  /** Change all parameters that have a gradient. `closure` computes the loss anew, gradients included. */
  step(): void;
  step<T>(closure: () => T): T;
  step<T>(closure?: () => T): T | undefined {
    const loss = closure === undefined ? undefined : enableGrad(closure);
    for (const group of this.paramGroups) {
      const params = group.params.filter((param) => param.hasGrad);
      if (params.length > 0) noGrad(() => this.update(group, params));
    }
    for (const session of this.#sessions()) session.frameEnds();
    return loss;
  }

  /** Remove the gradients of all parameters, or make them zero, in one record. */
  zeroGrad(setToNone: boolean = true): void {
    zeroGradients(
      this.paramGroups.flatMap((group) => group.params),
      setToNone,
    );
  }

  /** Refuse options out of range. */
  protected abstract check(options: Options): void;
  /** Record the step of one group, for those of its parameters that have a gradient. */
  protected abstract update(group: ParamGroup<Options>, params: readonly Tensor[]): void;

  /** Record an op. */
  protected record(op: string, ...values: readonly Value[]): void {
    call(lookup(op), values);
  }

  protected stateOf(param: Tensor): ParamState {
    const found = this.state.get(param) ?? {};
    this.state.set(param, found);
    return found;
  }

  /** What is remembered of each parameter under a name: a tensor like it, made when it is first needed. */
  protected kept(params: readonly Tensor[], name: string, make: "zeros_like" | "empty_like" = "zeros_like"): Tensor[] {
    return params.map((param) => {
      const state = this.stateOf(param);
      state[name] ??= keep(one(make, param));
      return state[name] as Tensor;
    });
  }

  /** Count this step for each parameter. Parameters that took as many steps can share a record. */
  protected bySteps(params: readonly Tensor[]): Map<number, Tensor[]> {
    const found = new Map<number, Tensor[]>();
    for (const param of params) {
      const state = this.stateOf(param);
      const step = Number(state["step"] ?? 0) + 1;
      state["step"] = step;
      const alike = found.get(step) ?? [];
      found.set(step, alike);
      alike.push(param);
    }
    return found;
  }

  // State

  /** What is remembered, and the groups' options, with parameters replaced by their numbers. */
  stateDict(): OptimizerState<Options> {
    const params = this.paramGroups.flatMap((group) => group.params);
    const state: Record<number, ParamState> = {};
    params.forEach((param, i) => {
      const known = this.state.get(param);
      if (known !== undefined) state[i] = { ...known };
    });
    return {
      state,
      paramGroups: this.paramGroups.map((group) => ({ ...group, params: group.params.map((p) => params.indexOf(p)) })),
    };
  }

  /**
   * Take back what {@link stateDict} gave, for parameters in the same order. Tensors are copied.
   *
   * @throws ArgumentValueError when the groups or their sizes are others.
   */
  loadStateDict(saved: OptimizerState<Options>): void {
    const sizes = saved.paramGroups.map((group) => group.params.length);
    const own = this.paramGroups.map((group) => group.params.length);
    if (sizes.join() !== own.join()) {
      const [saves, has] = [sizes.join(", "), own.join(", ")];
      throw new ArgumentValueError(`the saved state has groups of ${saves} parameters, this optimizer of ${has}`);
    }
    const numbers = saved.paramGroups.flatMap((group) => group.params);
    const params = this.paramGroups.flatMap((group) => group.params);
    this.state.clear();
    numbers.forEach((number, i) => {
      const known = saved.state[number];
      if (known === undefined) return;
      const copied = Object.entries(known).map(([name, value]) => {
        return [name, value instanceof Tensor ? keep(noGrad(() => one("clone", value))) : value] as const;
      });
      this.state.set(params[i]!, Object.fromEntries(copied));
    });
    saved.paramGroups.forEach((group, i) => {
      const { params: _, ...options } = group;
      Object.assign(this.paramGroups[i]!, options);
    });
  }
}

/** Refuse an option that is below a bound, or not below another. */
export function checkRange(name: string, value: number, low: number, high: number = Infinity): void {
  if (value >= low && value < high) return;
  const limit = high === Infinity ? `at least ${low}` : `in [${low}, ${high})`;
  throw new ArgumentValueError(`${name} must be ${limit}, not ${value}`);
}
