/** Tensors as safetensors files: a uint64 header length, a JSON header, then the values (little-endian, row-major). */

import { ArgumentError, MalformedFrame } from "./errors.ts";
import { DTYPES } from "./ops/dtypes.ts";
import { tensor } from "./surface/tensors.ts";
import type { TensorOptions } from "./surface/tensors.ts";
import type { DTypeName } from "./tensor/dtypes.ts";
import type { Tensor } from "./tensor/tensor.ts";
import { sizeOf } from "./tensor/values.ts";
import type { Shape } from "./tensor/values.ts";

const PREFIX = 8;
const METADATA = "__metadata__";
/** The header is padded with spaces to a multiple of this, so that values are aligned. */
const ALIGNMENT = 8;

interface Entry {
  dtype: string;
  shape: number[];
  data_offsets: [number, number];
}

/**
 * Read tensors, in one round trip, and return them as the bytes of a safetensors file.
 *
 * @throws ArgumentError for complex128, which the format lacks.
 */
export async function saveSafetensors(
  tensors: { readonly [name: string]: Tensor },
  metadata?: { readonly [name: string]: string },
): Promise<Uint8Array<ArrayBuffer>> {
  const names = Object.keys(tensors).sort();
  const values = await Promise.all(names.map((name) => tensors[name]!.session.read(tensors[name]!)));
  const header: { [name: string]: unknown } = metadata ? { [METADATA]: metadata } : {};
  const parts: Uint8Array[] = [];
  let at = 0;
  for (const [index, name] of names.entries()) {
    const { bytes, dtype, shape } = values[index]!;
    const tag = DTYPES[dtype].safetensors;
    if (!tag) throw new ArgumentError(`${name} is ${dtype}, which safetensors cannot hold`);
    header[name] = { dtype: tag, shape: [...shape], data_offsets: [at, at + bytes.length] };
    parts.push(bytes);
    at += bytes.length;
  }
  let text = JSON.stringify(header);
  text = text.padEnd(Math.ceil(text.length / ALIGNMENT) * ALIGNMENT);
  const json = new TextEncoder().encode(text);
  const file = new Uint8Array(PREFIX + json.length + at);
  new DataView(file.buffer).setBigUint64(0, BigInt(json.length), true);
  file.set(json, PREFIX);
  let to = PREFIX + json.length;
  for (const part of parts) {
    file.set(part, to);
    to += part.length;
  }
  return file;
}

/**
 * The tensors of a safetensors file, on the server.
 *
 * @throws MalformedFrame for a file whose header and values do not fit together.
 */
export function loadSafetensors(
  file: Uint8Array,
  options: Pick<TensorOptions, "device" | "session"> = {},
): { [name: string]: Tensor } {
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength);
  const size = file.length >= PREFIX ? Number(view.getBigUint64(0, true)) : Infinity;
  if (PREFIX + size > file.length) throw new MalformedFrame("the file is too short for its header");
  let header: { [name: string]: Entry };
  try {
    header = JSON.parse(
      new TextDecoder("utf-8", { fatal: true }).decode(file.subarray(PREFIX, PREFIX + size)),
    ) as typeof header;
  } catch (error) {
    throw new MalformedFrame(`the file's header is not JSON: ${String(error)}`);
  }
  const loaded: [string, DTypeName, Shape, Uint8Array][] = [];
  for (const [name, entry] of Object.entries(header)) {
    if (name === METADATA) continue;
    loaded.push([name, ...valuesOf(name, entry, file.subarray(PREFIX + size))]);
  }
  return Object.fromEntries(
    loaded.map(([name, dtype, shape, bytes]) => [name, tensor(bytes, { ...options, dtype, shape, raw: true })]),
  );
}

function valuesOf(name: string, entry: Entry, values: Uint8Array): [DTypeName, Shape, Uint8Array] {
  const dtype = (Object.keys(DTYPES) as DTypeName[]).find((each) => DTYPES[each].safetensors === entry.dtype);
  if (!dtype) throw new MalformedFrame(`${name} has the dtype ${entry.dtype}, which is not one of gradwire's`);
  const [begin, end] = entry.data_offsets ?? [-1, -1];
  const bytes = sizeOf(entry.shape) * DTYPES[dtype].itemsize;
  if (!(begin >= 0 && end <= values.length && end - begin === bytes)) {
    throw new MalformedFrame(
      `${name} takes ${bytes} bytes, but its values stand from ${begin} to ${end} of ${values.length}`,
    );
  }
  return [dtype, entry.shape, values.slice(begin, end)];
}
