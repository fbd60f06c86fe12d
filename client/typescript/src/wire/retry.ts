/** Retries: how long a program keeps trying to reach its server, and how long it pauses between attempts. */

export const PATIENCE_S = 120;
const FIRST_PAUSE_S = 0.05;
const LONGEST_PAUSE_S = 5;

/** Wait, without keeping a Node process alive for it unless `hold`. */
export function sleep(seconds: number, hold = true): Promise<void> {
  return new Promise((resolve) => {
    const timer: unknown = setTimeout(resolve, seconds * 1000);
    if (!hold && typeof timer === "object" && timer !== null && "unref" in timer) (timer as { unref(): void }).unref();
  });
}

/** A budget of time for retries, which a success renews. */
export class RetryPolicy {
  readonly seconds: number;
  tries = 0;
  private spent = 0;

  constructor(seconds: number) {
    this.seconds = seconds;
  }

  renew(): void {
    this.tries = 0;
    this.spent = 0;
  }

  /** Count the time of an attempt. */
  async trying<T>(attempt: () => Promise<T>): Promise<T> {
    const began = performance.now();
    try {
      return await attempt();
    } finally {
      this.spent += (performance.now() - began) / 1000;
    }
  }

  /** Pause before the next attempt, at least `asked` seconds; false if the budget does not allow it. */
  async pause(asked = 0): Promise<boolean> {
    const left = this.seconds - this.spent;
    if (left <= 0 || asked > left) return false;
    const bound = Math.min(FIRST_PAUSE_S * 2 ** Math.min(this.tries, 16), LONGEST_PAUSE_S);
    this.tries += 1;
    const length = Math.max(asked, Math.min(Math.random() * bound, left));
    await this.trying(() => sleep(length));
    return true;
  }
}
