/** Large values that arrive in chunks before their reply. */

import { MalformedFrame } from "../errors.ts";
import type { Chunk } from "./messages.ts";

const SLACK_BYTES = 64 * 2 ** 20;

interface Part {
  whole: Uint8Array;
  filled: number;
}

/** The downloads of one connection. A defective server causes an error, never unbounded memory. */
export class Downloads {
  #parts = new Map<number, Part>();

  /** Discard what is incomplete: on the next connection it starts over. */
  clear(): void {
    this.#parts.clear();
  }

  /**
   * Store a chunk. `expected`: the bytes that all unanswered reads may return.
   *
   * @throws MalformedFrame for one that does not continue its download, or is more than was asked for.
   */
  take(chunk: Chunk, buffers: readonly Uint8Array[], expected: number): void {
    const data = buffers[0];
    if (buffers.length !== 1 || data === undefined || !data.length) {
      throw new MalformedFrame(`a chunk came with ${buffers.length} buffers; it has one, which is not empty`);
    }
    let part = this.#parts.get(chunk.transfer);
    if (part === undefined) {
      let held = chunk.total;
      for (const other of this.#parts.values()) held += other.whole.length;
      if (!(chunk.total >= 0) || held > expected + SLACK_BYTES) {
        throw new MalformedFrame(`the server announced ${chunk.total} bytes; ${expected} were asked for`);
      }
      part = { whole: new Uint8Array(chunk.total), filled: 0 };
      this.#parts.set(chunk.transfer, part);
    }
    const end = part.filled + data.length;
    if (chunk.offset !== part.filled || chunk.total !== part.whole.length || end > part.whole.length) {
      throw new MalformedFrame(
        `a chunk of ${data.length} bytes at ${chunk.offset} of ${chunk.total} came after ${part.filled} bytes`,
      );
    }
    part.whole.set(data, part.filled);
    part.filled = end;
  }

  /**
   * All bytes of a download, which is over.
   *
   * @throws MalformedFrame when it is incomplete.
   */
  finish(transfer: number): Uint8Array {
    const part = this.#parts.get(transfer);
    if (part === undefined || part.filled !== part.whole.length) {
      throw new MalformedFrame(`the reply refers to download ${transfer}, which is incomplete`);
    }
    this.#parts.delete(transfer);
    return part.whole;
  }
}
