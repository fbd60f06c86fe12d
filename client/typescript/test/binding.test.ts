import assert from "node:assert/strict";
import { test } from "node:test";
import { ArgumentTypeError, UnknownOp } from "../src/errors.ts";
import { bind } from "../src/ops/binding.ts";
import { camel, lookup, opNames, snake } from "../src/ops/op.ts";
import { encodeArgs, type ScalarEntry } from "../src/ops/records.ts";
import { Complex, float, isTensor, type TensorLike, type Value } from "../src/ops/values.ts";

const x: TensorLike = { dtype: "float32", shape: [2, 3] };

function encoded(name: string, ...args: unknown[]): [unknown, ScalarEntry[]] {
  const op = lookup(name);
  const scalars: ScalarEntry[] = [];
  return [encodeArgs(op, bind(op, args), isTensor, () => 7, scalars, []), scalars];
}

test("arguments are given by position, or by name in a last object", () => {
  const sum = lookup("sum");
  assert.deepEqual(bind(sum, [x, 0, { keepdim: true }]), [x, 0, true, null]);
  assert.deepEqual(bind(sum, [x, { dim: [0, 1], dtype: "float64" }]), [x, [0, 1], false, "float64"]);
  assert.deepEqual(bind(lookup("layer_norm"), [x, 3]).slice(0, 2), [x, [3]]);
  assert.deepEqual(bind(lookup("nllLoss"), [x, x, { ignoreIndex: -1 }])[3], -1);
  assert.deepEqual(bind(lookup("clamp"), [x, { min: null, max: 2 }]).slice(1), [null, 2]);
});

test("ints in a row become a list", () => {
  assert.deepEqual(bind(lookup("permute"), [x, 1, 0])[1], [1, 0]);
  assert.deepEqual(bind(lookup("zeros"), [2, 3, { dtype: "int64" }]).slice(0, 2), [[2, 3], "int64"]);
});

test("a wrong argument names the op, the parameter and the nearest name", () => {
  const sum = lookup("sum");
  assert.throws(() => bind(sum, [x, { keepdims: true }]), /no parameter 'keepdims'; did you mean keepdim/);
  assert.throws(() => bind(sum, [x, 0, { dim: 1 }]), /'dim' twice/);
  assert.throws(() => bind(sum, []), /missing the argument 'self'/);
  assert.throws(() => bind(sum, [x, 0, true, null, 5]), /got 5 arguments; it takes 4/);
  assert.throws(
    () => encoded("sum", x, "all"),
    (error) => error instanceof ArgumentTypeError && error.details.op === "sum" && error.details.parameter === "dim",
  );
  assert.throws(
    () => lookup("reluu"),
    (error) => error instanceof UnknownOp && /relu/.test(error.message),
  );
});

test("numbers are data, told apart by kind", () => {
  assert.deepEqual(encoded("mul", x, 2), [[7, "int"], [2]]);
  assert.deepEqual(encoded("mul", x, 2.5), [[7, "float"], [2.5]]);
  assert.deepEqual(encoded("mul", x, float(2)), [[7, "float"], [2]]);
  assert.deepEqual(encoded("mul", x, -0), [[7, "float"], ["-0.0"]]);
  assert.deepEqual(encoded("mul", x, true), [[7, "bool"], [true]]);
  assert.deepEqual(encoded("mul", x, new Complex(1, -2)), [[7, "complex"], [[1, -2]]]);
  assert.deepEqual(encoded("mul", x, 2n ** 60n), [[7, "int"], [String(2n ** 60n)]]);
  assert.deepEqual(encoded("mul", x, 5n), [[7, "int"], [5]]);
  assert.throws(() => encoded("mul", x, 2n ** 64n), /exceeds 64 bits/);
});

test("trailing defaults are not sent, nor their numbers", () => {
  assert.deepEqual(encoded("add", x, x), [[7, 7], []]);
  assert.deepEqual(encoded("add", x, x, { alpha: 2 }), [[7, 7, "int"], [2]]);
  assert.deepEqual(encoded("softplus", x), [[7], []]);
  assert.deepEqual(encoded("softplus", x, { threshold: 3 }), [
    [7, "float", "int"],
    [1, 3],
  ]);
  assert.deepEqual(encoded("slice", x, 1, { end: 2 }), [[7, 1, null, "int"], [2]]);
  assert.deepEqual(encoded("conv2d", x, x, null, [1, 2]), [[7, 7, null, [1, 2]], []]);
  assert.deepEqual(encoded("index", x, [null, x]), [[7, [null, 7]], []]);
});

test("attributes have the types of the table", () => {
  assert.throws(() => encoded("sum", x, 0.5), ArgumentTypeError);
  assert.throws(() => encoded("sum", x, { dtype: "float31" }), /'float31' is no dtype/);
  assert.throws(() => encoded("relu", 3), ArgumentTypeError);
  assert.throws(() => encoded("cat", [x, null]), ArgumentTypeError);
  const values: Value[] = bind(lookup("dropout"), [x, float(1)]);
  assert.deepEqual(values.slice(1), [1, true]);
});

test("names are spelled both ways without loss", () => {
  for (const name of opNames()) {
    assert.equal(lookup(name).name, name);
    assert.ok(!camel(name).slice(0, -1).includes("_"), camel(name));
    if (!/_\d|[A-Z]/.test(name)) assert.equal(snake(camel(name)), name);
  }
});
