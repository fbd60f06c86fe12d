/** The frame that a session is recording. */

import { ArgumentError } from "../errors.ts";
import { INITIAL_MODE, modeFlags } from "../graph/modes.ts";
import type { Op } from "../ops/op.ts";
import { encodeArgs } from "../ops/records.ts";
import type { Encoded, ScalarEntry } from "../ops/records.ts";
import type { Value } from "../ops/values.ts";
import type { Tensor } from "../tensor/tensor.ts";
import type { Record_, Structure } from "../wire/messages.ts";
import type { CutFrame } from "../wire/send_window.ts";
import type { CallSite } from "./call_sites.ts";
import { KnownFrames } from "./known_frames.ts";
import { isTensor } from "./scopes.ts";

/** Records ops and cuts frames. Ids are counters of this client; results of a frame follow its `first`. */
export class FrameBuilder {
  #owner: object;
  #records: Record_[] = [];
  #sites: (CallSite | undefined)[] = [];
  #scalars: ScalarEntry[] = [];
  #payloads: Value[] = [];
  readonly #known = new KnownFrames();
  readonly #refer = (tensor: Tensor): number => this.#reference(tensor);
  #external = new Map<number, number>();
  #first = 1;
  #next = 1;
  #mode = INITIAL_MODE;
  /** Counters that the program released, and those whose proxies were collected. */
  #released = new Set<number>();
  #collected: number[] = [];

  /** `owner` is the session, whose tensors records may name. */
  constructor(owner: object) {
    this.#owner = owner;
  }

  /** Records of the open frame. */
  get length(): number {
    return this.#records.length;
  }

  /** The counter of the open frame's first result. */
  get first(): number {
    return this.#first;
  }

  /** Add an op. Returns the counter of its first result; the others follow. */
  record(op: Op, values: readonly Value[], results: number): number {
    const scalars = this.#scalars;
    const payloads = this.#payloads;
    const before = [scalars.length, payloads.length] as const;
    let args: Encoded[];
    try {
      args = encodeArgs(op, values, isTensor, this.#refer, scalars, payloads);
    } catch (error) {
      [scalars.length, payloads.length] = before; // nothing is recorded
      throw error;
    }
    const mode = modeFlags();
    if (mode !== this.#mode) {
      this.#append(["set_mode", [mode]]);
      this.#mode = mode;
    }
    this.#append(op.results === undefined ? [op.name, args, results] : [op.name, args]);
    const first = this.#next;
    this.#next += results;
    return first;
  }

  #append(record: Record_): void {
    this.#sites.push(this.#known.siteOf(record, this.#records.length));
    this.#records.push(record);
  }

  /** Release a tensor that the program is done with: with this frame. */
  release(counter: number): void {
    this.#released.add(counter);
  }

  /**
   * Release a tensor whose proxy was collected. When that happens is chance, so it must not change a structure: a
   * result of the open frame is released with the next one.
   */
  collect(counter: number): void {
    this.#collected.push(counter);
  }

  /** End the frame, with these reads, and begin another. `heard`: somebody waits although nothing is read. */
  cut(reads: readonly Tensor[], heard: boolean, readBytes: number): CutFrame {
    const asked = reads.map((tensor) => this.#reference(tensor));
    const first = this.#first;
    const drops: number[] = [];
    const releases: number[] = [];
    for (const counter of this.#released) {
      if (counter >= first) drops.push(counter - first);
      else releases.push(counter);
    }
    const later: number[] = [];
    for (const counter of this.#collected) (counter >= first ? later : releases).push(counter);
    drops.sort((a, b) => a - b);
    releases.sort((a, b) => a - b);
    const structure: Structure = { ops: this.#records };
    if (asked.length) structure.reads = asked;
    if (drops.length) structure.drops = drops;
    if (heard && !asked.length) structure.heard = true;
    const { structure: known, packed, hash } = this.#known.encode(structure, this.#sites);
    const frame: CutFrame = {
      structure: known,
      packed,
      hash,
      first,
      external: [...this.#external.keys()],
      scalars: this.#scalars,
      payloads: this.#payloads as Uint8Array[],
      releases,
      sites: this.#sites,
      readBytes,
    };
    this.#records = [];
    this.#sites = [];
    this.#scalars = [];
    this.#payloads = [];
    this.#external = new Map();
    this.#released = new Set();
    this.#collected = later;
    this.#first = this.#next;
    this.#mode = INITIAL_MODE;
    return frame;
  }

  /** Whether releases wait that no record carries. */
  get releasing(): boolean {
    return this.#released.size + this.#collected.length > 0;
  }

  /** How a record names a tensor: a result of this frame, or, below 0, an entry of the table of external ones. */
  #reference(tensor: Tensor): number {
    if ((tensor.session as object) !== this.#owner) {
      throw new ArgumentError("tensors of different sessions were used together: each session computes on its own");
    }
    const counter = tensor.counter;
    if (counter >= this.#first) return counter - this.#first;
    let at = this.#external.get(counter);
    if (at === undefined) {
      at = this.#external.size;
      this.#external.set(counter, at);
    }
    return -1 - at;
  }
}
