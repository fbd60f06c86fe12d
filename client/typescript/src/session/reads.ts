/** Reads of one moment go with one frame: all that the program asks for before it waits costs one round trip. */

import { GradwireError, MalformedFrame, errorOf } from "../errors.ts";
import type { DTypeName } from "../tensor/dtypes.ts";
import { isDType } from "../tensor/dtypes.ts";
import type { Tensor } from "../tensor/tensor.ts";
import type { NumberArray, Shape } from "../tensor/values.ts";
import { arrayOf } from "../tensor/values.ts";
import type { Link } from "../wire/link.ts";
import type { Problem } from "../wire/messages.ts";
import type { Answer } from "../wire/send_window.ts";
import type { CallSite } from "./call_sites.ts";

const FRAMES_REMEMBERED = 256;

export interface ReadOptions {
  /** Cancels what is computed for the read; the read then throws `Cancelled`. */
  signal?: AbortSignal | undefined;
}

/** A value that was read. */
export interface ReadValue {
  array: NumberArray;
  /** The same, as little-endian bytes of the dtype. */
  bytes: Uint8Array;
  dtype: DTypeName;
  shape: Shape;
}

interface Pending {
  tensor: Tensor;
  signal: AbortSignal | undefined;
  resolve(value: ReadValue): void;
  reject(error: unknown): void;
}

/** Collects reads until the program waits, then has the frame cut and hands out what its answer brings. */
export class Reads {
  #pending: Pending[] = [];
  #sites = new Map<number, readonly (CallSite | undefined)[]>();
  readonly #link: Link;
  readonly #cut: (tensors: readonly Tensor[]) => number;

  /** `cut` sends the open frame with these reads, and returns its number. */
  constructor(link: Link, cut: (tensors: readonly Tensor[]) => number) {
    this.#link = link;
    this.#cut = cut;
  }

  /** Remember where the ops of a frame were recorded. */
  remember(seq: number, sites: readonly (CallSite | undefined)[]): void {
    this.#sites.set(seq, sites);
    if (this.#sites.size > FRAMES_REMEMBERED) {
      const [oldest] = this.#sites.keys();
      this.#sites.delete(oldest!);
    }
  }

  read(tensor: Tensor, options: ReadOptions = {}): Promise<ReadValue> {
    if (tensor.disposed) {
      return Promise.reject(errorOf("graph_error", "this tensor was disposed; keep() it, or return it from tidy()"));
    }
    return new Promise((resolve, reject) => {
      if (!this.#pending.length) queueMicrotask(() => void this.#flush());
      this.#pending.push({ tensor, signal: options.signal, resolve, reject });
    });
  }

  async #flush(): Promise<void> {
    const pending = this.#pending;
    this.#pending = [];
    try {
      const tensors = [...new Set(pending.map((each) => each.tensor))];
      const signal = pending.find((each) => each.signal)?.signal;
      const answer = await this.#link.answer(this.#cut(tensors), signal);
      const values = tensors.map((tensor, at) => [tensor, this.#value(answer, at, tensor)] as const);
      const found = new Map<Tensor, ReadValue | GradwireError>(values);
      const failed = this.takeFailure([...found.values()].filter((value) => value instanceof GradwireError));
      for (const { tensor, resolve, reject } of pending) {
        const value = found.get(tensor)!;
        if (value instanceof GradwireError) reject(value);
        else if (failed) reject(failed);
        else resolve(value);
      }
    } catch (error) {
      for (const { reject } of pending) reject(error);
    }
  }

  #value(answer: Answer, at: number, tensor: Tensor): ReadValue | GradwireError {
    if (answer.refusal) return answer.refusal;
    const value = answer.reply.values?.[at];
    if (!value) return new MalformedFrame(`the reply to frame ${answer.seq} has no value ${at}`);
    if (value.error !== undefined) {
      const problem = answer.reply.errors?.[value.error];
      return problem
        ? this.describe(problem)
        : new MalformedFrame(`the reply refers to error ${value.error}, which it lacks`);
    }
    if (!value.dtype)
      return errorOf("graph_error", "this gradient is undefined: nothing that was differentiated used the tensor");
    if (!isDType(value.dtype)) return new MalformedFrame(`the server sent a value of dtype ${value.dtype}`);
    const shape = value.shape ?? [];
    tensor.learn(value.dtype, shape);
    const bytes = answer.buffers[at]!;
    return { array: arrayOf(bytes, value.dtype), bytes, dtype: value.dtype, shape };
  }

  /**
   * The first error that nobody was told about, besides those of `told`: what failed in frames that read nothing, or
   * beside what was read.
   */
  takeFailure(told: readonly GradwireError[] = []): GradwireError | undefined {
    const known = new Set(told.map((error) => `${error.details["seq"]}.${error.details["index"]}`));
    for (const answer of this.#link.failed.splice(0)) {
      if (answer.refusal && !told.includes(answer.refusal)) return answer.refusal;
      const problem = answer.reply.errors?.find(({ seq, index }) => !known.has(`${seq ?? 0}.${index ?? 0}`));
      if (problem) return this.describe(problem);
    }
    return undefined;
  }

  /** The typed error of a problem, with the op and the line of the program that recorded it. */
  describe(problem: Problem): GradwireError {
    const { code, detail, op, seq = 0, index = 0, extra } = problem;
    const site = String(this.#sites.get(seq)?.[index] ?? "");
    const where = `${op ? ` (in ${op}` : ""}${op && site ? `, recorded at ${site}` : ""}${op ? ")" : ""}`;
    return errorOf(code, detail + where, { ...extra, ...(op && { op }), seq, index, site });
  }
}
