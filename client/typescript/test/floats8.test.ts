import assert from "node:assert/strict";
import { test } from "node:test";

import { join, resultType, toComplex } from "../src/rules/promotion.ts";
import { fromFloat8, toFloat8 } from "../src/tensor/floats8.ts";
import { arrayOf, dataOf, encode, nestedOf } from "../src/tensor/values.ts";

const FORMATS = ["float8_e4m3fn", "float8_e5m2"] as const;

test("every float of 8 bits survives the way there and back", () => {
  for (const dtype of FORMATS) {
    for (let bits = 0; bits < 0x100; bits++) {
      const value = fromFloat8(bits, dtype);
      if (Number.isNaN(value)) assert.ok(Number.isNaN(fromFloat8(toFloat8(value, dtype), dtype)));
      else assert.equal(toFloat8(value, dtype), bits);
    }
  }
});

test("numbers between two floats of 8 bits are rounded to the nearest, ties to even", () => {
  for (const dtype of FORMATS) {
    const last = dtype === "float8_e4m3fn" ? 0x7e : 0x7b;
    for (let bits = 0; bits < last; bits++) {
      const [low, high] = [fromFloat8(bits, dtype), fromFloat8(bits + 1, dtype)];
      assert.equal(toFloat8((low + high) / 2, dtype), bits % 2 ? bits + 1 : bits);
      assert.equal(toFloat8(-(low + (high - low) * 0.75), dtype), 0x80 | (bits + 1));
    }
  }
});

test("beyond the range float8_e4m3fn has its largest number, float8_e5m2 infinity", () => {
  for (const value of [465, 1e6, 1e300, Infinity]) assert.equal(toFloat8(value, "float8_e4m3fn"), 0x7e);
  assert.equal(toFloat8(61439, "float8_e5m2"), 0x7b);
  for (const value of [61440, 1e300, Infinity]) assert.equal(toFloat8(-value, "float8_e5m2"), 0xfc);
});

test("values of the dtypes for storage are encoded and decoded", () => {
  const values = {
    uint16: [0, 65535],
    uint32: [7, 4294967295],
    uint64: [7, 2n ** 64n - 1n],
    float8_e4m3fn: [-448, 0.5],
    float8_e5m2: [57344, -0.25],
  } as const;
  for (const [dtype, flat] of Object.entries(values)) {
    const known = dtype as keyof typeof values;
    assert.deepEqual(nestedOf(arrayOf(encode(flat, known), known), [2], known), flat);
  }
  assert.throws(() => encode([-1], "uint64"), /-1 does not fit into uint64/);
  assert.throws(() => encode([65536], "uint16"), /65536 is outside of uint16/);
  assert.equal(dataOf(new Uint16Array(2), undefined, undefined, "float32").dtype, "uint16");
  assert.equal(dataOf(new BigUint64Array(2), undefined, undefined, "float32").dtype, "uint64");
});

test("dtypes for storage have a common dtype with few others", () => {
  assert.equal(join("uint16", "uint16"), "uint16");
  assert.equal(join("bfloat16", "uint64"), "bfloat16");
  for (const other of ["int64", "uint32", "bool", "complex64", "float8_e5m2"] as const) {
    assert.throws(() => join("uint16", other), { name: "DTypeError" });
  }
  assert.throws(() => join("float8_e5m2", "float32"), { name: "DTypeError" });
  assert.throws(() => toComplex("float8_e5m2"), { name: "DTypeError" });
  assert.equal(resultType([{ dtype: "uint16", dimensioned: true }, "int"]), "uint16");
  assert.equal(resultType([{ dtype: "uint16", dimensioned: true }, "float"]), "float32");
  assert.equal(resultType([{ dtype: "float8_e5m2", dimensioned: true }, "float"]), "float8_e5m2");
});
