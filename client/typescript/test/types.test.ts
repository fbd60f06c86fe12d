/** Calls that compile, and calls that must not. The compiler is the test; nothing here is sent. */

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { createRequire } from "node:module";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import * as gw from "../src/index.ts";

/** Never called: only its types matter. */
export function accepted(x: gw.Tensor): void {
  const sum: gw.Tensor = x.sum(0, { keepdim: true });
  x.sum({ dim: [0, 1], dtype: "float64" });
  x.permute(0, 2, 1).permute([1, 0]).reshape(2, -1);
  x.add(2).add(2n).add(true).add(gw.complex(1, 2)).add(gw.float(2)).add(sum, { alpha: 2 });
  const [values, indices]: [gw.Tensor, gw.Tensor] = x.topk(3, { largest: false });
  const [best] = x.max(1);
  const most: gw.Tensor = x.max();
  const self: gw.Tensor = x.add_(1).clampMin_(0);
  const parts: gw.Tensor[] = x.split([1, 2], 1);
  gw.zeros(2, 3, { dtype: "int64", requiresGrad: false });
  gw.full([2], 1).softmax({ dim: 0 });
  gw.F.crossEntropy(x, x, { labelSmoothing: 0.1, reduction: "sum" });
  gw.F.conv2d(x, x, null, [1, 1], "same");
  gw.div(x, 2, { roundingMode: "floor" });
  gw.special.entr(x);
  x.at(0, ":", { start: 1 }, null, "...", x.gt(0), [1, 2]);
  void [values, indices, best, most, self, parts];
}

/** Never called: only its types matter. */
export function refused(x: gw.Tensor): void {
  // @ts-expect-error: a string is no operand
  x.add("2");
  // @ts-expect-error: no such dtype
  x.sum(0, { dtype: "float31" });
  // @ts-expect-error: no such option
  x.sum({ keepDims: true });
  // @ts-expect-error: no such word
  gw.F.mseLoss(x, x, "average");
  // @ts-expect-error: the dimension is required
  x.softmax();
  // @ts-expect-error: an op of the session is no method
  x.manualSeed(1);
  // @ts-expect-error: two indices, not three
  const [a, b, c] = x.sort();
  // @ts-expect-error: no such layer option
  new gw.nn.Linear(2, 3, { biased: false });
  void [a, b, c];
}

test("the calls of this file have the types that they should", async () => {
  const folder = fileURLToPath(new URL("..", import.meta.url));
  const compiler = createRequire(import.meta.url).resolve("typescript/bin/tsc");
  const checked = promisify(execFile)(process.execPath, [compiler, "-p", "tsconfig.json"], { cwd: folder });
  await checked.catch((error: { stdout: string }) => assert.fail(error.stdout));
  assert.deepEqual([typeof accepted, typeof refused], ["function", "function"]);
});
