/** Whether ops record history. The mode travels with the records, as bits of `set_mode`. */

export const GRAD_MODE = 1;
export const INFERENCE_MODE = 2;
/** The mode that every frame starts with. */
export const INITIAL_MODE = GRAD_MODE;

let flags = INITIAL_MODE;

export function modeFlags(): number {
  return flags;
}

export function isGradEnabled(): boolean {
  return (flags & GRAD_MODE) !== 0;
}

/** Run a function with these modes. It must not be async: the mode would end at its first `await`. */
export function withFlags<T>(wanted: number, body: () => T): T {
  const before = flags;
  flags = wanted;
  try {
    const result = body();
    if (result instanceof Promise) {
      throw new TypeError("a mode holds while its function runs, so this function cannot be async: await around it");
    }
    return result;
  } finally {
    flags = before;
  }
}

/** Run a function without recording history: what it computes does not require gradients. */
export function noGrad<T>(body: () => T): T {
  return withFlags(flags & ~GRAD_MODE, body);
}

/** Run a function with history recorded, within {@link noGrad}. */
export function enableGrad<T>(body: () => T): T {
  return withFlags(flags | GRAD_MODE, body);
}

/** Run a function in inference mode: as {@link noGrad}, and its results can never take part in a graph. */
export function inferenceMode<T>(body: () => T): T {
  return withFlags((flags & ~GRAD_MODE) | INFERENCE_MODE, body);
}
