/**
 * The bytes of a message, little-endian: the header's length (uint32), the header in MessagePack, then each buffer at
 * the next multiple of 64 bytes.
 */

import { Decoder, Encoder } from "@msgpack/msgpack";

import { MalformedFrame } from "../errors.ts";
import type { FromClient, FromServer } from "./messages.ts";

export const ALIGNMENT = 64;
const PREFIX = 4;

const encoder = new Encoder({ useBigInt64: true, ignoreUndefined: true });
const decoder = new Decoder();

/** Any value in MessagePack. Integers take the fewest bytes; a bigint takes nine. */
export function pack(value: unknown): Uint8Array<ArrayBuffer> {
  return encoder.encode(value);
}

function aligned(at: number): number {
  return Math.ceil(at / ALIGNMENT) * ALIGNMENT;
}

/** A message and its buffers as one array of bytes. Sets the header's `buffers`. */
export function encode(message: FromClient, buffers: readonly Uint8Array[] = []): Uint8Array<ArrayBuffer> {
  const complete = buffers.length ? { ...message, buffers: buffers.map((buffer) => buffer.byteLength) } : message;
  const header = encoder.encodeSharedRef(complete);
  let size = PREFIX + header.length;
  for (const buffer of buffers) size = aligned(size) + buffer.byteLength;
  const whole = new Uint8Array(size);
  new DataView(whole.buffer).setUint32(0, header.length, true);
  whole.set(header, PREFIX);
  let at = PREFIX + header.length;
  for (const buffer of buffers) {
    at = aligned(at);
    whole.set(buffer, at);
    at += buffer.byteLength;
  }
  return whole;
}

export interface Decoded<M> {
  message: M;
  buffers: Uint8Array[];
}

/**
 * The message and its buffers, which are views of `data`.
 *
 * @throws MalformedFrame naming what does not fit.
 */
export function decode<M = FromServer>(data: Uint8Array): Decoded<M> {
  if (data.length < PREFIX) {
    throw new MalformedFrame(`the message has ${data.length} bytes, too few for a header's length`);
  }
  const size = new DataView(data.buffer, data.byteOffset).getUint32(0, true);
  if (PREFIX + size > data.length) {
    throw new MalformedFrame(`the header has ${size} bytes, but only ${data.length - PREFIX} arrived`);
  }
  let message: M & { buffers?: readonly number[] };
  try {
    message = decoder.decode(data.subarray(PREFIX, PREFIX + size)) as typeof message;
  } catch (error) {
    throw new MalformedFrame(`the header is not MessagePack: ${String(error)}`);
  }
  if (typeof message !== "object" || message === null || !("type" in message)) {
    throw new MalformedFrame("the header is not a map with a type");
  }
  const buffers: Uint8Array[] = [];
  let at = PREFIX + size;
  for (const length of message.buffers ?? []) {
    at = aligned(at);
    if (!(length >= 0) || at + length > data.length) {
      throw new MalformedFrame(`a buffer of ${length} bytes at ${at} exceeds the message of ${data.length} bytes`);
    }
    buffers.push(data.subarray(at, at + length));
    at += length;
  }
  if (at !== data.length) throw new MalformedFrame(`${data.length - at} bytes follow the last buffer`);
  return { message, buffers };
}
