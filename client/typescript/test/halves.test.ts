import assert from "node:assert/strict";
import { test } from "node:test";

import { Complex } from "../src/ops/values.ts";
import { arrayOf, dataOf, encode, nestedOf } from "../src/tensor/values.ts";
import { fromBfloat16, fromFloat16, toBfloat16, toFloat16 } from "../src/tensor/halves.ts";

test("every float16 and bfloat16 survives the way there and back", () => {
  for (let bits = 0; bits < 0x10000; bits++) {
    const half = fromFloat16(bits);
    if (Number.isNaN(half)) assert.ok(Number.isNaN(fromFloat16(toFloat16(half))));
    else assert.equal(toFloat16(half), bits);
    const brain = fromBfloat16(bits);
    if (Number.isNaN(brain)) assert.ok(Number.isNaN(fromBfloat16(toBfloat16(brain))));
    else assert.equal(toBfloat16(brain), bits);
  }
});

test("numbers between two halves are rounded to the nearest, ties to even", () => {
  for (let bits = 0; bits < 0x7bff; bits++) {
    const [low, high] = [fromFloat16(bits), fromFloat16(bits + 1)];
    const middle = (low + high) / 2;
    assert.equal(toFloat16(middle), bits % 2 ? bits + 1 : bits);
    assert.equal(toFloat16(low + (high - low) * 0.75), bits + 1);
    assert.equal(toFloat16(low + (high - low) * 0.25), bits);
  }
  assert.equal(toFloat16(65519.99), 0x7bff);
  assert.equal(toFloat16(65520), 0x7c00);
});

test("values of every dtype are encoded and decoded", () => {
  const values = {
    bool: [true, false],
    int64: [1, 2n ** 60n],
    complex64: [new Complex(1, -2), new Complex(0, 0.5)],
    uint8: [0, 255],
  } as const;
  for (const [dtype, flat] of Object.entries(values)) {
    const known = dtype as keyof typeof values;
    assert.deepEqual(nestedOf(arrayOf(encode(flat, known), known), [2], known), flat);
  }
});

test("the dtype follows from the values, and the shape from the lists", () => {
  const usual = "float32";
  assert.deepEqual(
    pick(
      dataOf(
        [
          [1, 2, 3],
          [4, 5, 6],
        ],
        undefined,
        undefined,
        usual,
      ),
    ),
    ["float32", [2, 3]],
  );
  assert.deepEqual(pick(dataOf([true], undefined, undefined, usual)), ["bool", [1]]);
  assert.deepEqual(pick(dataOf(5n, undefined, undefined, usual)), ["int64", []]);
  assert.deepEqual(pick(dataOf([[], []], undefined, undefined, usual)), ["float32", [2, 0]]);
  assert.deepEqual(pick(dataOf(new Int32Array(6), undefined, [2, 3], usual)), ["int32", [2, 3]]);
  assert.throws(() => dataOf([[1, 2], [3]], undefined, undefined, usual), { name: "ShapeError", message: /ragged/ });
  assert.throws(() => dataOf([1, [2]], undefined, undefined, usual), { name: "ShapeError", message: /ragged/ });
  assert.throws(() => dataOf([[1], 2], undefined, undefined, usual), { name: "ShapeError", message: /ragged/ });
  assert.throws(() => dataOf([300], "uint8", undefined, usual), /300 is outside of uint8/);
  assert.throws(() => dataOf([1, 2], undefined, [3], usual), /3 elements, but 2/);
});

function pick(data: { dtype: string; shape: readonly number[] }): [string, readonly number[]] {
  return [data.dtype, data.shape];
}
