/**
 * The window of unanswered frames, which are kept for resending, and its bounds.
 *
 * The server keeps 1,024 replies per client, and of these the latest with 64 MB of values, but always the last one. The
 * window stays within half of that, so no reply that may be needed again is dropped.
 */

import type { GradwireError } from "../errors.ts";
import type { ScalarEntry } from "../ops/records.ts";
import type { CallSite } from "../session/call_sites.ts";
import type { Reply, Structure } from "./messages.ts";

export const IN_FLIGHT_FRAMES = 256;
export const IN_FLIGHT_BYTES = 32 * 2 ** 20;
export const IN_FLIGHT_READS = 32 * 2 ** 20;
const FRAME_OVERHEAD = 512;

/** A frame that the session cut. */
export interface CutFrame {
  structure: Structure;
  /** The structure in MessagePack, and its hash; no hash if it is always sent whole. */
  packed: Uint8Array;
  hash: Uint8Array | undefined;
  /** The counter of its first result. */
  first: number;
  external: readonly number[];
  scalars: readonly ScalarEntry[];
  payloads: readonly Uint8Array[];
  releases: readonly number[];
  /** Where in the program each op was recorded. */
  sites: readonly (CallSite | undefined)[];
  /** The expected bytes of the values that it reads; infinite if unknown. */
  readBytes: number;
}

/** A reply with all bytes of its values. */
export interface Answer {
  frame: CutFrame;
  seq: number;
  reply: Reply;
  /** The bytes of each value that has some. */
  buffers: (Uint8Array | undefined)[];
  /** Why an empty frame was applied in place of this one. */
  refusal: GradwireError | undefined;
}

/** A frame in the window. */
export class SentFrame {
  readonly seq: number;
  frame: CutFrame;
  readonly size: number;
  /** Large payloads by the number of their upload. */
  uploads = new Map<number, Uint8Array>();
  refusal: GradwireError | undefined;
  /** How often the server asked for its structure. */
  unknown = 0;

  constructor(seq: number, frame: CutFrame) {
    this.seq = seq;
    this.frame = frame;
    this.size = frame.payloads.reduce((sum, data) => sum + data.byteLength, FRAME_OVERHEAD + frame.packed.length);
  }
}

/** Unanswered frames, oldest first; those after {@link written} are not sent yet on this connection. */
export class SendWindow {
  /** The last answered frame. */
  answered = 0;
  /** The last frame that the connection carries. */
  written = 0;
  #frames: SentFrame[] = [];

  get length(): number {
    return this.#frames.length;
  }

  get next(): number {
    return this.answered + this.#frames.length + 1;
  }

  get first(): SentFrame | undefined {
    return this.#frames[0];
  }

  find(seq: number): SentFrame | undefined {
    return this.#frames[seq - this.answered - 1];
  }

  add(frame: CutFrame): SentFrame {
    const sent = new SentFrame(this.next, frame);
    this.#frames.push(sent);
    return sent;
  }

  /** Remove the oldest frame, which was answered. */
  answer(): void {
    this.#frames.shift();
    this.answered += 1;
  }

  /** The frames to write now: within the bounds, or a single one of any size. */
  *due(): Generator<SentFrame> {
    let bytes = 0;
    let reads = 0;
    for (const [at, sent] of this.#frames.entries()) {
      bytes += sent.size;
      reads += sent.frame.readBytes;
      if (at && (at >= IN_FLIGHT_FRAMES || bytes > IN_FLIGHT_BYTES || reads > IN_FLIGHT_READS)) return;
      if (sent.seq > this.written) yield sent;
    }
  }

  /** Bytes of values that the unanswered frames may read. */
  get expected(): number {
    return this.#frames.reduce((sum, sent) => sum + sent.frame.readBytes, 0);
  }

  /** What is on its way, for an error; empty if nothing is. */
  describe(): string {
    if (!this.#frames.length) return "";
    const ops = this.#frames.reduce((sum, sent) => sum + sent.frame.structure.ops.length, 0);
    const last = this.next - 1;
    const which = this.#frames.length === 1 ? `frame ${last}` : `frames ${this.answered + 1} to ${last}`;
    return `${which} (${ops} ops)`;
  }
}
