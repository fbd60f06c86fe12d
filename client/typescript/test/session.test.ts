import assert from "node:assert/strict";
import { test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

import * as gw from "../src/index.ts";
import { serverForFile } from "./server.ts";

const server = await serverForFile();
const options = { apiKey: server.apiKey };

/** Run a test in a session of its own, over each transport. */
function session(name: string, body: (session: gw.Session) => Promise<void>): void {
  for (const transport of ["stream", "requests"] as const) {
    test(`${name} (${transport})`, async () => {
      await using opened = await gw.connect(server.url, { ...options, transport, seed: 1 });
      await body(opened);
    });
  }
}

session("the first gradient", async () => {
  const x = gw.tensor(
    [
      [1, 2],
      [3, 4],
    ],
    { requiresGrad: true },
  );
  const y = x.pow(2).mean();
  y.backward();
  assert.deepEqual(await x.grad!.toArray(), [
    [0.5, 1],
    [1.5, 2],
  ]);
  assert.equal(await y.item(), 7.5);
  assert.deepEqual(y.shape, []);
  assert.equal(y.dtype, "float32");
});

session("reads of one moment cost one round trip", async (opened) => {
  const x = gw.tensor([1, 2, 3]);
  const before = opened.stats().roundTrips;
  const [sum, doubled, again] = await gw.fetch(x.sum(), x.mul(2), x);
  assert.deepEqual([sum, doubled, again], [6, [2, 4, 6], [1, 2, 3]]);
  assert.equal(opened.stats().roundTrips, before + 1);
});

session("values of every dtype go there and come back", async () => {
  for (const dtype of ["uint8", "int8", "int16", "int32", "float16", "bfloat16", "float32", "float64"] as const) {
    assert.deepEqual(
      await gw
        .tensor(
          [
            [1, 2],
            [3, 0],
          ],
          { dtype },
        )
        .toArray(),
      [
        [1, 2],
        [3, 0],
      ],
    );
  }
  assert.deepEqual(await gw.tensor([1n, 2n ** 60n]).toArray(), [1, 2n ** 60n]);
  assert.deepEqual(await gw.tensor([true, false]).toArray(), [true, false]);
  assert.deepEqual(
    await gw
      .tensor([new gw.Complex(1, 2)])
      .mul(gw.tensor([new gw.Complex(0, 1)]))
      .toArray(),
    [new gw.Complex(-2, 1)],
  );
  assert.deepEqual(await gw.tensor([NaN, Infinity, -Infinity, -0]).toArray(), [NaN, Infinity, -Infinity, -0]);
  assert.deepEqual(await gw.tensor([]).toArray(), []);
  assert.deepEqual(await gw.tensor(new Float64Array([1, 2, 3, 4]), { shape: [2, 2] }).toArray(), [
    [1, 2],
    [3, 4],
  ]);
});

session("large values travel in chunks, or within a request", async () => {
  const values = Float32Array.from({ length: 1_500_000 }, (_, at) => at);
  const x = gw.tensor(values);
  assert.deepEqual(await x.data(), values);
  assert.equal(await x.amax().item(), 1_499_999);
});

session("a step that repeats travels as its hash, and releases what it made", async (opened) => {
  const w = gw.keep(gw.tensor([0.5], { requiresGrad: true }));
  for (let step = 0; step < 8; step++) {
    const loss = gw.tidy(() => {
      const x = gw.tensor(Float32Array.from({ length: 16 }, (_, at) => (at + step) / 16));
      const loss = x.mul(w).sub(x.mul(3)).pow(2).mean();
      loss.backward();
      gw.noGrad(() => w.sub_(w.grad!.mul(0.1)));
      w.grad = null;
      return loss;
    });
    assert.ok(Number.isFinite(await loss.item()));
    loss.dispose();
  }
  await opened.synchronize();
  const stats = opened.stats();
  assert.ok(stats.structureHits >= 5, JSON.stringify(stats));
  const page = await opened.rest.json<{ tensors: unknown[] }>("GET", `/v1/sessions/${opened.id}/tensors`);
  assert.equal(page.tensors.length, 1); // w
});

session("an error names the op and the line, and the session lives on", async () => {
  const x = gw.tensor([1, 2, 3]);
  const index = gw.tensor([7n]);
  const bad = x.indexSelect(0, index);
  await assert.rejects(bad.item(), (error: gw.GradwireError) => {
    assert.ok(error instanceof gw.GradwireError);
    assert.match(error.message, /index_select/);
    assert.match(String(error.details["site"]), /session\.test\.ts:\d+/);
    return true;
  });
  assert.equal(await x.sum().item(), 6);
});

session("an error of what nobody read is thrown by the next read, once", async (opened) => {
  const x = gw.tensor([1, 2, 3]);
  x.indexSelect(0, gw.tensor([7n]));
  opened.flush();
  await assert.rejects(x.sum().item(), gw.IndexOutOfRange);
  assert.equal(await x.sum().item(), 6);
});

session("a wrong shape is thrown where it is written", async () => {
  assert.throws(() => gw.tensor([1, 2, 3]).add(gw.tensor([1, 2])), gw.ShapeError);
  assert.throws(() => gw.tensor([1, 2, 3]).backward(), gw.GraphError);
});

session("a graph that was freed is refused", async () => {
  const x = gw.tensor([2], { requiresGrad: true });
  const y = x.mul(x);
  y.backward();
  assert.throws(() => y.backward(), gw.GraphError);
  const z = x.pow(3).sum();
  z.backward({ retainGraph: true });
  z.backward();
  assert.deepEqual(await x.grad!.toArray(), [4 + 12 + 12]);
});

session("second derivatives", async () => {
  const x = gw.tensor(2, { requiresGrad: true });
  const [first] = gw.grad(x.pow(3), [x], { createGraph: true });
  assert.equal(await first!.item(), 12);
  const [second] = gw.grad(first!, [x]);
  assert.equal(await second!.item(), 12);
});

session("unused inputs", async () => {
  const x = gw.tensor(2, { requiresGrad: true });
  const unused = gw.tensor(2, { requiresGrad: true });
  assert.throws(() => gw.grad(x.mul(2), [unused]), gw.GraphError);
  const [none] = gw.grad(x.mul(2), [unused], { allowUnused: true });
  assert.equal(none, null);
});

session("history is not recorded in noGrad", async () => {
  const x = gw.tensor([2], { requiresGrad: true });
  assert.equal(gw.noGrad(() => x.mul(2)).requiresGrad, false);
  assert.equal(gw.isGradEnabled(), true);
  assert.throws(() => gw.noGrad(async () => x.mul(2)), TypeError);
  assert.throws(() => x.add_(1), gw.GraphError);
});

session("writes in place go through views", async () => {
  const x = gw.tensor([1, 2, 3, 4], { requiresGrad: true });
  const y = x.mul(1);
  y.select(0, 1).mul_(10);
  y.sum().backward();
  assert.deepEqual(await x.grad!.toArray(), [1, 10, 1, 1]);
});

session("hooks replace gradients, on tensors and leaves", async () => {
  const x = gw.tensor([1, 2], { requiresGrad: true });
  const y = x.mul(3);
  const seen: gw.Tensor[] = [];
  const remove = y.registerHook((gradient) => {
    seen.push(gradient);
    return gradient.mul(10);
  });
  x.registerHook((gradient) => gradient.add(1));
  let accumulated = 0;
  x.registerPostAccumulateGradHook((leaf) => {
    assert.equal(leaf, x);
    accumulated += 1;
  });
  y.sum().backward();
  assert.deepEqual(await x.grad!.toArray(), [31, 31]);
  assert.deepEqual(await seen[0]!.toArray(), [1, 1]);
  assert.equal(accumulated, 1);
  remove();
  x.grad = null;
  x.mul(3).sum().backward();
  assert.deepEqual(await x.grad!.toArray(), [4, 4]);
});

session("functions with a derivative of their own", async () => {
  let calls = 0;
  const clampedSquare = gw.defineFunction({
    name: "ClampedSquare",
    forward(ctx, x: gw.Tensor, scale: number) {
      ctx.saveForBackward(x);
      ctx.values["scale"] = scale;
      return x.mul(x).mul(scale);
    },
    backward(ctx, gradient) {
      calls += 1;
      return gradient
        .mul(ctx.saved[0]!)
        .mul(2 * (ctx.values["scale"] as number))
        .clamp(-5, 5);
    },
  });
  const x = gw.tensor([1, 2, 30], { requiresGrad: true });
  const y = gw.tidy(() => clampedSquare(x.mul(1), 1).mul(1));
  y.sum().backward();
  assert.deepEqual(await x.grad!.toArray(), [2, 4, 5]);
  assert.equal(calls, 1);
  assert.throws(() => {
    const bad = gw.defineFunction({
      name: "Bad",
      forward: (_, t: gw.Tensor) => t.mul(1),
      backward: () => [null, null],
    });
    bad(x).sum().backward();
  }, gw.GraphError);
  assert.equal(await x.sum().item(), 33);
});

session("retained gradients", async () => {
  const x = gw.tensor([1, 2], { requiresGrad: true });
  const y = x.mul(3);
  y.retainGrad();
  y.pow(2).sum().backward();
  assert.deepEqual(await y.grad!.toArray(), [6, 12]);
});

session("shapes that only the server knows", async () => {
  const x = gw.tensor([0, 5, 0, 7]);
  const found = x.nonzero();
  assert.deepEqual(await found.size(), [2, 1]);
  assert.deepEqual(await found.toArray(), [[1], [3]]);
});

session("a disposed tensor is refused", async () => {
  const x = gw.tensor([1]);
  const y = gw.tidy(() => {
    const inner = x.mul(2);
    return { kept: inner, list: [x.add(1)] };
  });
  assert.deepEqual(await y.list[0]!.toArray(), [2]);
  y.kept.dispose();
  await assert.rejects(y.kept.item(), gw.GraphError);
  assert.throws(() => y.kept.add(1), gw.GraphError);
});

session("what the program forgets is released once it is collected", async (opened) => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  const kept = gw.tensor([1]);
  for (let i = 0; i < 50; i++) kept.add(i).mul(2);
  await opened.synchronize();
  const count = async (): Promise<number> => {
    await opened.synchronize();
    return (await opened.rest.json<{ tensors: unknown[] }>("GET", `/v1/sessions/${opened.id}/tensors`)).tensors.length;
  };
  const before = await count();
  for (let round = 0; round < 20 && (await count()) > 5; round++) {
    collect();
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  const after = await count();
  assert.ok(before > 50 && after <= 5, `${before} before, ${after} after`);
  assert.deepEqual(await kept.toArray(), [1]);
});

test("programs share tensors by name", async () => {
  await using one = await gw.connect(server.url, options);
  const w = gw.tensor([1, 2, 3]).named("weights");
  gw.tensor([1, 1], { requiresGrad: true }).named("parameter");
  await one.synchronize();
  await using two = await gw.connect(server.url, { ...options, session: one.id });
  const found = await two.tensor("weights");
  assert.deepEqual(found.shape, [3]);
  assert.deepEqual(await found.mul(2).toArray(), [2, 4, 6]);
  await assert.rejects(two.tensor("none"), gw.NotFound);
  assert.throws(() => found.add(w), gw.ArgumentError);
  const p = await two.tensor("parameter");
  await assert.rejects(p.grad!.toArray(), gw.GraphError);
  p.mul(5).sum().backward();
  assert.deepEqual(await p.grad!.toArray(), [5, 5]);
});

test("safetensors files go both ways", async () => {
  await using opened = await gw.connect(server.url, options);
  const half = gw.tensor([1.5, -2], { dtype: "bfloat16" });
  const file = await gw.saveSafetensors(
    {
      w: gw.tensor([
        [1, 2],
        [3, 4],
      ]),
      half,
      n: gw.tensor([5n]),
    },
    { from: "a test" },
  );
  const loaded = gw.loadSafetensors(file);
  assert.deepEqual(await loaded["w"]!.toArray(), [
    [1, 2],
    [3, 4],
  ]);
  assert.deepEqual(await loaded["half"]!.toArray(), [1.5, -2]);
  assert.equal(loaded["half"]!.dtype, "bfloat16");
  assert.deepEqual(await loaded["n"]!.toArray(), [5]);
  assert.throws(() => gw.loadSafetensors(file.slice(0, 20), { session: opened }), gw.MalformedFrame);
});

test("a session that this program started is deleted when it closes", async () => {
  const opened = await gw.connect(server.url, options);
  const x = gw.tensor([1]);
  await opened.close();
  await opened.close();
  assert.throws(() => x.add(1), gw.InvalidRequest);
  await assert.rejects(gw.connect(server.url, { ...options, session: opened.id }), gw.SessionGone);
});

test("a wrong key, a wrong URL and no server are told apart", async () => {
  await assert.rejects(gw.connect(server.url, { apiKey: "wrong" }), gw.Unauthorized);
  await assert.rejects(gw.connect("ftp://nowhere", options), TypeError);
  const signal = AbortSignal.timeout(300);
  await assert.rejects(gw.connect("http://127.0.0.1:9", { ...options, signal }));
});
