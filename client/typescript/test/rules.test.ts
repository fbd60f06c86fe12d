/** The rules of this client against those of the op table, on the samples of ops that the engine is tested with. */

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { test } from "node:test";
import { promisify } from "node:util";
import { GradwireError } from "../src/errors.ts";
import { lookup, opNames } from "../src/ops/op.ts";
import { Complex, float, type TensorLike, type Value } from "../src/ops/values.ts";
import { countResults, infer } from "../src/rules/infer.ts";

type Result = [dtype: string, shape: number[]];
type Sample = [op: string, args: unknown[], results: Result[] | string];

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));

async function samples(): Promise<Sample[]> {
  const python = process.env["GRADWIRE_TEST_PYTHON"] ?? "python3";
  const { stdout } = await promisify(execFile)(python, ["-m", "tools.rule_samples"], { cwd: ROOT, maxBuffer: 2 ** 28 });
  return stdout
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Sample);
}

function number(text: string): number {
  return text === "inf" ? Infinity : text === "-inf" ? -Infinity : Number(text);
}

function decoded(value: unknown): Value {
  if (Array.isArray(value)) return value.map(decoded);
  if (typeof value !== "object" || value === null) return value as Value;
  const [[kind, held]] = Object.entries(value) as [[string, never]];
  if (kind === "tensor") return { dtype: held[0], shape: held[1] } as TensorLike;
  if (kind === "float") return float(number(held));
  if (kind === "int") return BigInt(held);
  return new Complex(number(held[0]), number(held[1]));
}

const KNOWN = await samples();

test("every claim about a sample is what the op table says", (context) => {
  const wrong: string[] = [];
  const unknown = new Map<string, number>();
  const dtypeless = new Set<string>();
  let [results, shapes, dtypes] = [0, 0, 0];
  for (const [name, args, expected] of KNOWN) {
    if (typeof expected === "string") continue;
    const op = lookup(name);
    const values = args.map(decoded);
    const told = `${name} ${JSON.stringify(args)}: ${JSON.stringify(expected)}`;
    let found;
    try {
      found = infer(op, values, expected.length);
    } catch (error) {
      wrong.push(`${told}, but ${error}`);
      continue;
    }
    expected.forEach(([dtype, shape], i) => {
      const one = found[i]!;
      const offered = op.exposed.length > 0; // programs do not call what only derivatives are made of
      if (offered) results += 1;
      if (one.dtype === undefined) dtypeless.add(name);
      else if (offered) dtypes += 1;
      if (one.shape === undefined && !shape.includes(-1)) unknown.set(name, (unknown.get(name) ?? 0) + 1);
      if (offered && (one.shape !== undefined || shape.includes(-1))) shapes += 1;
      const sameShape = one.shape === undefined || JSON.stringify(one.shape) === JSON.stringify(shape);
      if ((one.dtype ?? dtype) !== dtype || !sameShape) wrong.push(`${told}, but ${i}: ${JSON.stringify(one)}`);
    });
  }
  context.diagnostic(`${results} results: shapes of ${shapes} known, dtypes of ${dtypes}`);
  context.diagnostic(`dtype not known: ${[...dtypeless].join(" ")}`);
  context.diagnostic(`shape not known: ${[...unknown.keys()].join(" ")}`);
  assert.deepEqual(wrong.slice(0, 20), []);
  assert.ok(shapes / results > 0.9, `only ${shapes} of ${results} shapes are known`);
  assert.ok(dtypes / results > 0.99, `only ${dtypes} of ${results} dtypes are known`);
});

test("what this client refuses, the op table refuses", (context) => {
  let [refused, failing] = [0, 0];
  for (const [name, args, expected] of KNOWN) {
    if (typeof expected !== "string") continue;
    const op = lookup(name);
    failing += 1;
    try {
      infer(op, args.map(decoded), op.results ?? 1);
    } catch (error) {
      assert.ok(error instanceof GradwireError, `${name} ${JSON.stringify(args)}: ${error}`);
      refused += 1;
    }
  }
  context.diagnostic(`${refused} of ${failing} invalid calls are refused without the server`);
  assert.ok(refused > 0);
});

test("the number of results follows from the arguments", () => {
  for (const [name, args, expected] of KNOWN) {
    if (typeof expected === "string" || lookup(name).results === 0) continue;
    assert.equal(countResults(lookup(name), args.map(decoded)), expected.length, `${name} ${JSON.stringify(args)}`);
  }
});

test("nothing is claimed of what is not known", () => {
  const unknown: TensorLike = { dtype: "float32", shape: undefined };
  for (const name of ["relu", "add", "matmul", "sum", "linear", "transpose", "cat", "softmax", "mseLoss"]) {
    const op = lookup(name);
    const values = op.params.map((param) => {
      if (param.kind === "tensors") return [unknown];
      return param.required ? (param.kind === "attribute" ? 0 : unknown) : param.default;
    });
    const [result] = infer(op, values);
    assert.equal(result!.dtype, "float32", name);
    assert.ok(result!.shape === undefined || name === "sum" || name === "mseLoss", name);
  }
});

test("every op has a row that can be read", () => {
  assert.ok([...opNames()].map(lookup).length > 600);
});
