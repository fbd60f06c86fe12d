/** The messages of the protocol (docs/protocol.md), as in MessagePack. Fields at their default are absent. */

import type { Encoded, ScalarEntry } from "../ops/records.ts";

export const PROTOCOL_VERSION = 1;
/** The oldest version that this one still speaks. */
export const MIN_PROTOCOL_VERSION = 1;

/** A tensor's id is `client * 2**32 + counter`. */
export const IDS_OF_A_CLIENT = 2 ** 32;

/** `[name, arguments]`, or with the number of results where the op leaves it open. */
export type Record_ = readonly [string, readonly Encoded[]] | readonly [string, readonly Encoded[], number];

export interface Structure {
  ops: readonly Record_[];
  reads?: readonly number[];
  drops?: readonly number[];
  heard?: boolean;
}

export type Payload = { buffer: number } | { upload: number };

export interface Frame {
  type: "frame";
  seq: number;
  client?: number;
  first?: number;
  structure?: Structure;
  hash?: Uint8Array;
  external?: readonly number[];
  scalars?: readonly ScalarEntry[];
  payloads?: readonly Payload[];
  releases?: readonly number[];
  ack?: number;
  epoch?: number;
  timed?: boolean;
  near?: boolean;
  buffers?: readonly number[];
}

export interface Chunk {
  type: "chunk";
  transfer: number;
  offset: number;
  total: number;
  buffers?: readonly number[];
}

export interface Cancel {
  type: "cancel";
  first: number;
  last: number;
}

export interface Hello {
  type: "hello";
  version: number;
  client?: number;
  acked?: number;
  agent?: string;
  instance?: string;
  epoch?: number;
  cancelled?: number;
  capabilities?: readonly string[];
}

export interface Problem {
  code: string;
  detail: string;
  op?: string;
  seq?: number;
  index?: number;
  retryable?: boolean;
  extra?: { readonly [name: string]: unknown };
}

export interface Value {
  dtype?: string;
  shape?: readonly number[];
  buffer?: number;
  download?: number;
  error?: number;
}

export interface Reply {
  type: "reply";
  seq: number;
  values?: readonly Value[];
  errors?: readonly Problem[];
  refused?: Problem;
  made?: number;
  first?: number;
  buffers?: readonly number[];
}

export interface Welcome {
  type: "welcome";
  version: number;
  client: number;
  expected: number;
  session?: string;
  capabilities?: readonly string[];
  limits?: { readonly [name: string]: number };
  devices?: readonly string[];
  epoch?: number;
  durability?: string;
}

/** The session is served elsewhere: the same hello is said there, on a stream that the ticket opens. */
export interface Redirect {
  type: "redirect";
  url: string;
  ticket: string;
}

export interface Refusal {
  type: "refusal";
  problem: Problem;
}

export type FromClient = Frame | Chunk | Cancel | Hello;
export type FromServer = Reply | Chunk | Welcome | Redirect | Refusal;
