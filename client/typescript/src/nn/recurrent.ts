/** Recurrent layers: each layer and direction is one op over the whole sequence. */

import { ArgumentError, ArgumentValueError } from "../errors.ts";
import { lookup } from "../ops/op.ts";
import { create, one, several } from "../surface/calling.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { uniform_ } from "./init.ts";
import { Module } from "./module.ts";
import { emptyParameter, type ModuleOptions, type Parameter } from "./parameter.ts";

export interface RecurrentOptions extends ModuleOptions {
  /** How many layers, each of which reads the one before. Default: 1. */
  numLayers?: number;
  /** Default: true. */
  bias?: boolean;
  /** Inputs and outputs are `(batch, time, features)` rather than `(time, batch, features)`. */
  batchFirst?: boolean;
  /** Which share of each layer's outputs but the last's is dropped in training. */
  dropout?: number;
  /** A second direction reads each sequence from its end; outputs are joined. */
  bidirectional?: boolean;
}

/** The states of an LSTM: outputs and cells, `(layers * directions, batch, hidden)` each. */
export type LSTMState = [h: Tensor, c: Tensor];

/** What recurrent layers have in common. Weights are `weightIhL0`, `weightHhL0`, `biasIhL0`, ..., `...Reverse`. */
abstract class Recurrent<State> extends Module<[Tensor, (State | null)?], [output: Tensor, state: State]> {
  readonly inputSize: number;
  readonly hiddenSize: number;
  readonly numLayers: number;
  readonly batchFirst: boolean;
  readonly dropout: number;
  readonly bidirectional: boolean;
  readonly #op: string;
  readonly #states: number;
  readonly #names: string[][] = [];

  constructor(
    op: string,
    gates: number,
    states: number,
    inputSize: number,
    hiddenSize: number,
    options: RecurrentOptions,
  ) {
    super();
    const { numLayers = 1, bias = true, batchFirst = false, dropout = 0, bidirectional = false, ...place } = options;
    for (const [name, value] of Object.entries({ inputSize, hiddenSize, numLayers })) {
      if (value <= 0) throw new ArgumentValueError(`${name} must be positive, not ${value}`);
    }
    this.inputSize = inputSize;
    this.hiddenSize = hiddenSize;
    this.numLayers = numLayers;
    this.batchFirst = batchFirst;
    this.dropout = dropout;
    this.bidirectional = bidirectional;
    this.#op = op;
    this.#states = states;
    const directions = bidirectional ? 2 : 1;
    const rows = gates * hiddenSize;
    for (let layer = 0; layer < numLayers; layer += 1) {
      const inputs = layer === 0 ? inputSize : hiddenSize * directions;
      for (let direction = 0; direction < directions; direction += 1) {
        const suffix = `L${layer}${direction === 1 ? "Reverse" : ""}`;
        const shapes: [string, number[]][] = [
          ["weightIh", [rows, inputs]],
          ["weightHh", [rows, hiddenSize]],
        ];
        if (bias) shapes.push(["biasIh", [rows]], ["biasHh", [rows]]);
        for (const [name, shape] of shapes) Object.assign(this, { [name + suffix]: emptyParameter(shape, place) });
        this.#names.push(shapes.map(([name]) => name + suffix));
      }
    }
    this.resetParameters();
  }

  /** Draw new initial values, uniform between plus and minus `1 / sqrt(hiddenSize)`. */
  resetParameters(): void {
    const bound = 1 / Math.sqrt(this.hiddenSize);
    for (const parameter of this.parameters()) uniform_(parameter, -bound, bound);
  }

  /** The states as a list, and a list of states as what `forward` returns. */
  protected abstract asList(state: State): readonly Tensor[];
  protected abstract fromList(states: readonly Tensor[]): State;

  forward(x: Tensor, state: State | null = null): [output: Tensor, state: State] {
    const ndim = x.ndim;
    if (ndim !== 2 && ndim !== 3) {
      throw new ArgumentError(`${this.constructor.name} takes 2 or 3 dimensions, not ${ndim ?? "an unknown number"}`);
    }
    if (ndim === 3) return this.#batched(x, state === null ? null : this.asList(state));
    const at = this.batchFirst ? 0 : 1;
    const given = state === null ? null : this.asList(state).map((each) => one("unsqueeze", each, 1));
    const [output, last] = this.#batched(one("unsqueeze", x, at), given);
    return [one("squeeze", output, at), this.fromList(this.asList(last).map((each) => one("squeeze", each, 1)))];
  }

  #batched(x: Tensor, given: readonly Tensor[] | null): [output: Tensor, state: State] {
    let sequence = this.batchFirst ? one("transpose", x, 0, 1) : x;
    const directions = this.bidirectional ? 2 : 1;
    const first = this.#first(sequence, given);
    const last: Tensor[][] = [];
    for (let layer = 0; layer < this.numLayers; layer += 1) {
      const sides: Tensor[] = [];
      for (let direction = 0; direction < directions; direction += 1) {
        const at = layer * directions + direction;
        const weights = this.#names[at]!.map((name) => Reflect.get(this, name) as Parameter);
        const states = first.map((each) => each[at]!);
        const named = { reverse: direction === 1 };
        const [output, ...final] = several(this.#op, sequence, ...states, ...weights, named) as [Tensor, ...Tensor[]];
        sides.push(output);
        last.push(final);
      }
      sequence = sides.length === 1 ? sides[0]! : one("cat", sides, -1);
      if (this.dropout > 0 && this.training && layer < this.numLayers - 1) {
        sequence = several("dropout", sequence, this.dropout, true)[0]!;
      }
    }
    const states = Array.from({ length: this.#states }, (_, k) =>
      one(
        "stack",
        last.map((each) => each[k]!),
      ),
    );
    return [this.batchFirst ? one("transpose", sequence, 0, 1) : sequence, this.fromList(states)];
  }

  /** For each state what each layer and direction begins with: zeros without. */
  #first(sequence: Tensor, given: readonly Tensor[] | null): readonly (readonly Tensor[])[] {
    const count = this.#names.length;
    if (given !== null) {
      for (const state of given) {
        if (state.shape?.[0] !== count) {
          const shape = state.shape?.join(", ") ?? "?";
          throw new ArgumentError(`states have shape (${count}, batch, hidden), not [${shape}]`);
        }
      }
      return given.map((state) => several("unbind", state, 0));
    }
    const size = [sequence.shape![1]!, this.hiddenSize];
    const { dtype, device, session } = sequence;
    const zeros = create(lookup("zeros"), [size, { dtype, device, session }]);
    return new Array<readonly Tensor[]>(this.#states).fill(new Array<Tensor>(count).fill(zeros));
  }
}

/**
 * Long short-term memory. `forward(x, [h, c])` gives the outputs of every step, and the last states of all layers and
 * directions. The rows of the weights are those of the input, forget, cell and output gates.
 */
export class LSTM extends Recurrent<LSTMState> {
  constructor(inputSize: number, hiddenSize: number, options: RecurrentOptions = {}) {
    super("lstm_layer", 4, 2, inputSize, hiddenSize, options);
  }

  protected override asList(state: LSTMState): readonly Tensor[] {
    return state;
  }

  protected override fromList(states: readonly Tensor[]): LSTMState {
    return [states[0]!, states[1]!];
  }
}

/** A recurrence of one state. */
abstract class OneState extends Recurrent<Tensor> {
  protected override asList(state: Tensor): readonly Tensor[] {
    return [state];
  }

  protected override fromList(states: readonly Tensor[]): Tensor {
    return states[0]!;
  }
}

/** Gated recurrent units. The rows of the weights are those of the reset, update and new gates. */
export class GRU extends OneState {
  constructor(inputSize: number, hiddenSize: number, options: RecurrentOptions = {}) {
    super("gru_layer", 3, 1, inputSize, hiddenSize, options);
  }
}

/** Elman's recurrence: `h = tanh(W_ih x + b_ih + W_hh h + b_hh)`. */
export class RNN extends OneState {
  constructor(inputSize: number, hiddenSize: number, options: RecurrentOptions = {}) {
    super("rnn_layer", 1, 1, inputSize, hiddenSize, options);
  }
}
