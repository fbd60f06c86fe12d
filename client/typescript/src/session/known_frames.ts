/**
 * Frames that were sent lately. A frame that begins like one of them takes over its call sites, since looking one up
 * costs more than the rest of recording; one that ends like it, too, also its encoded structure and hash.
 */

import type { Encoded } from "../ops/records.ts";
import { blake2b } from "../wire/blake2b.ts";
import { pack } from "../wire/envelope.ts";
import type { Record_, Structure } from "../wire/messages.ts";
import type { CallSite } from "./call_sites.ts";
import { callSite } from "./call_sites.ts";

const REMEMBERED = 8;
/** A structure up to this size is always sent whole: a hash would save little. */
const HASHED_BYTES = 64;
const HASH_BYTES = 16;

/** A structure as it is sent. */
export interface EncodedStructure {
  readonly structure: Structure;
  readonly packed: Uint8Array;
  readonly hash: Uint8Array | undefined;
}

interface Known extends EncodedStructure {
  readonly sites: readonly (CallSite | undefined)[];
}

function same(one: Encoded | undefined, other: Encoded | undefined): boolean {
  if (one === other) return true;
  if (!Array.isArray(one) || !Array.isArray(other) || one.length !== other.length) return false;
  for (let at = 0; at < one.length; at++) if (!same(one[at], other[at])) return false;
  return true;
}

export class KnownFrames {
  readonly #recent: Known[] = [];
  /** Those that begin like the open frame. */
  #like: Known[] = [];
  #begun = false;

  /** The line of the program for a record at a position of the open frame. */
  siteOf(record: Record_, at: number): CallSite | undefined {
    if (!this.#begun) {
      this.#like = this.#recent.slice();
      this.#begun = true;
    }
    const like = this.#like;
    let kept = 0;
    for (let i = 0; i < like.length; i++) {
      const known = like[i]!;
      if (same(known.structure.ops[at] as Encoded | undefined, record as unknown as Encoded)) like[kept++] = known;
    }
    like.length = kept;
    return kept ? like[0]!.sites[at] : callSite();
  }

  /** The open frame ends with this structure. */
  encode(structure: Structure, sites: readonly (CallSite | undefined)[]): EncodedStructure {
    const like = this.#begun ? this.#like : [];
    this.#begun = false;
    const known = like.find(
      (each) =>
        each.structure.ops.length === structure.ops.length &&
        each.structure.heard === structure.heard &&
        same(each.structure.reads ?? [], structure.reads ?? []) &&
        same(each.structure.drops ?? [], structure.drops ?? []),
    );
    if (known) return known;
    const packed = pack(structure);
    const hash = packed.length > HASHED_BYTES ? blake2b(packed, HASH_BYTES) : undefined;
    const made = { structure, packed, hash, sites };
    if (structure.ops.length) {
      setTimeout(() => sites.forEach((site) => site?.settle())); // while the program waits
      this.#recent.unshift(made);
      if (this.#recent.length > REMEMBERED) this.#recent.pop();
    }
    return made;
  }
}
