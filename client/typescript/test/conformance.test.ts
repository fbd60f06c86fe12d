/** The offline halves of the conformance vectors (protocol/vectors/README.md). */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { decode as unpack } from "@msgpack/msgpack";

import { GradwireError, errorOf } from "../src/errors.ts";
import { lookup } from "../src/ops/op.ts";
import { encodeArgs } from "../src/ops/records.ts";
import type { ScalarEntry } from "../src/ops/records.ts";
import { Complex, float } from "../src/ops/values.ts";
import type { Value } from "../src/ops/values.ts";
import type { DTypeName } from "../src/tensor/dtypes.ts";
import { isComplexDType } from "../src/tensor/dtypes.ts";
import { arrayOf, dataOf, encode as bytesOf, nestedOf, sizeOf } from "../src/tensor/values.ts";
import type { Element, Nested } from "../src/tensor/values.ts";
import { blake2b } from "../src/wire/blake2b.ts";
import { decode, encode, pack } from "../src/wire/envelope.ts";
import type { FromClient, Structure } from "../src/wire/messages.ts";

const FOLDER = new URL("../../../protocol/vectors/v1/", import.meta.url);

function vectors<V>(group: string): (V & { id: string; text: string })[] {
  const file = JSON.parse(readFileSync(new URL(`${group}.json`, FOLDER), "utf8")) as { vectors: never[] };
  assert.ok(file.vectors.length > 0);
  return file.vectors;
}

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex");
const bytes = (text: string): Uint8Array => new Uint8Array(Buffer.from(text, "hex"));

/** Broken messages whose fields are wrong: which fields a client's messages have is for the server to check. */
const OF_FIELDS = new Set([
  "unknown-type",
  "wrong-kind",
  "float-number",
  "missing-field",
  "negative-count",
  "map-key",
  "bad-utf8",
]);

/** JavaScript's integers include -0, which MessagePack's do not: a client sends it as text. */
function spelled(value: unknown): unknown {
  if (Object.is(value, -0)) return "-0.0";
  if (value instanceof Uint8Array || typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(spelled);
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, spelled(each)]));
}

interface EnvelopeVector {
  message?: { type: string; hash?: string; [field: string]: unknown };
  buffers?: string[];
  bytes: string;
  error?: string;
}

test("envelope: messages are decoded, and encoded so that they decode to the same", () => {
  for (const { id, message, buffers = [], bytes: given, error } of vectors<EnvelopeVector>("envelope")) {
    if (error !== undefined) {
      if (OF_FIELDS.has(id.replace("envelope/broken/", ""))) continue;
      assert.throws(() => decode(bytes(given)), { code: error }, id);
      continue;
    }
    const decoded = decode<{ hash?: Uint8Array; buffers?: number[]; [field: string]: unknown }>(bytes(given));
    const { buffers: lengths, ...fields } = decoded.message;
    const shown = fields.hash ? { ...fields, hash: hex(fields.hash) } : fields;
    assert.deepEqual(shown, message, id);
    assert.deepEqual(decoded.buffers.map(hex), buffers, id);
    assert.deepEqual(
      lengths ?? [],
      buffers.map((buffer) => buffer.length / 2),
      id,
    );
    const again = decode(encode(spelled(fields) as FromClient, buffers.map(bytes)));
    assert.deepEqual(again.message, spelled(decoded.message), id);
  }
});

interface ValuesVector {
  dtype: DTypeName;
  shape: number[];
  bytes?: string;
  values: unknown;
  direction?: "encode" | "decode";
  error?: string;
}

/** The protocol's JSON form of values, as this client takes them. */
function fromJson(value: unknown, dtype: DTypeName, depth: number): Nested {
  if (depth) return (value as unknown[]).map((each) => fromJson(each, dtype, depth - 1));
  if (isComplexDType(dtype) && Array.isArray(value)) {
    const [re, im] = value.map((part) => Number(part));
    return new Complex(re!, im!);
  }
  if (typeof value === "string") return dtype.endsWith("int64") ? BigInt(value) : Number(value);
  return value as Element;
}

test("values: every dtype becomes these bytes, and these bytes become it", () => {
  for (const { id, dtype, shape, bytes: expected, values, direction, error } of vectors<ValuesVector>("values")) {
    if (error !== undefined) continue; // a server's; here a wrong value is refused by its own rules
    const nested = fromJson(values, dtype, shape.length);
    if (direction !== "decode" && sizeOf(shape))
      assert.equal(hex(dataOf(nested, dtype, shape, "float32").bytes), expected, id);
    if (direction !== "encode") {
      const flat = flattened(nestedOf(arrayOf(bytes(expected!), dtype), shape, dtype));
      assert.equal(hex(bytesOf(flat, dtype)), expected, id);
      assert.deepEqual(plain(flat), plain(flattened(nested)), id);
    }
  }
});

function flattened(nested: Nested): Element[] {
  return Array.isArray(nested) ? (nested as Nested[]).flatMap(flattened) : [nested as Element];
}

/** Numbers as text: int64 and uint64 are a number or a bigint. */
function plain(flat: readonly Element[]): string[] {
  return flat.map((value) =>
    value instanceof Complex ? `${value.re},${value.im}` : Object.is(value, -0) ? "-0" : String(value),
  );
}

test("structure_hash: hashes are those of the bytes", () => {
  for (const { id, structure, bytes: given, hash } of vectors<{ structure?: Structure; bytes: string; hash: string }>(
    "structure_hash",
  )) {
    assert.equal(hex(blake2b(bytes(given), 16)), hash, id);
    if (structure) assert.deepEqual(unpack(pack(structure)), unpack(bytes(given)), id);
  }
});

interface RecordVector {
  op: string;
  arguments: { [name: string]: { [tag: string]: unknown } | null };
  record?: unknown[];
  scalars?: unknown[];
  payloads?: unknown[];
  error?: string;
}

class Reference {
  readonly at: number;
  readonly shape = undefined;
  readonly dtype = undefined;
  constructor(at: number) {
    this.at = at;
  }
}

function argument(tagged: { [tag: string]: unknown } | null): Value {
  if (tagged === null) return null;
  const [[tag, value]] = Object.entries(tagged) as [[string, unknown]];
  if (tag === "tensor") return new Reference(value as number);
  if (tag === "tensors") return (value as ({ tensor: number } | null)[]).map(argument);
  if (tag === "int") return BigInt(value as number | string); // a number would be a float where the op takes floats
  if (tag === "float") return float(Number(value));
  if (tag === "complex") return new Complex(...((value as unknown[]).map(Number) as [number, number]));
  if (tag === "payload") return bytes("");
  return value as Value;
}

test("records: a call with these arguments is this record", () => {
  const isReference = (value: Value): value is Reference => value instanceof Reference;
  for (const vector of vectors<RecordVector>("records")) {
    const encodeIt = (): [unknown[], ScalarEntry[], Value[]] => {
      const op = lookup(vector.op);
      const unknown = Object.keys(vector.arguments).find((name) => !op.params.some((param) => param.name === name));
      if (unknown !== undefined) throw errorOf("invalid_argument_type", `${vector.op} has no argument ${unknown}`);
      const values = op.params.map((param) => {
        const given = vector.arguments[param.name];
        if (given === undefined && param.required) throw errorOf("invalid_argument_type", `${param.name} is missing`);
        return given === undefined ? param.default : argument(given);
      });
      const [scalars, payloads]: [ScalarEntry[], Value[]] = [[], []];
      return [encodeArgs(op, values, isReference, (tensor) => tensor.at, scalars, payloads), scalars, payloads];
    };
    if (vector.error !== undefined) {
      assert.throws(encodeIt, (error: unknown) => error instanceof GradwireError, vector.id);
      continue;
    }
    const [args, scalars, payloads] = encodeIt();
    assert.deepEqual(args, vector.record![1], vector.id);
    assert.deepEqual(scalars.map(String), (vector.scalars ?? []).map(String), vector.id);
    assert.equal(payloads.length, (vector.payloads ?? []).length, vector.id);
  }
});

interface ErrorVector {
  problem: { code: string; detail: string; extra?: { [name: string]: unknown } };
  code: string;
  class: string;
  status: number;
  retryable: boolean;
}

test("errors: a problem becomes the error of its code", () => {
  for (const { id, problem, code, class: name, status, retryable } of vectors<ErrorVector>("errors")) {
    const error = errorOf(problem.code, problem.detail, problem.extra);
    assert.equal(error.name, name, id);
    assert.equal(error.message, problem.detail, id);
    if (code !== "internal")
      assert.deepEqual([error.code, error.status, error.retryable], [code, status, retryable], id);
  }
});
