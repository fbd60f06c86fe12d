import assert from "node:assert/strict";
import { test } from "node:test";

import * as gw from "../src/index.ts";
import { serverForFile } from "./server.ts";

const server = await serverForFile();

function session(name: string, body: (session: gw.Session) => Promise<void>): void {
  test(name, async () => {
    await using opened = await gw.connect(server.url, { apiKey: server.apiKey, seed: 7 });
    await body(opened);
  });
}

session("elements are found by index", async () => {
  const x = gw.arange(24).reshape(2, 3, 4);
  assert.deepEqual(await x.at(1, 2, 3).item(), 23);
  assert.deepEqual(await x.at("...", -1).toArray(), [
    [3, 7, 11],
    [15, 19, 23],
  ]);
  assert.deepEqual(await x.at(0, { start: 1, end: 3 }, { step: 2 }).toArray(), [
    [4, 6],
    [8, 10],
  ]);
  assert.deepEqual(await x.at(":", [2, 0]).at(0).toArray(), [
    [8, 9, 10, 11],
    [0, 1, 2, 3],
  ]);
  assert.deepEqual(await x.at(x.gt(21)).toArray(), [22, 23]);
  assert.deepEqual(x.at(null, 0).shape, [1, 3, 4]);
  assert.deepEqual(await x.slice(2, -2).at(0, 0).toArray(), [2, 3]);
  assert.throws(() => x.at(0, 0, 0, 0), /4 indices are too many/);
  assert.throws(() => x.at(2), /index 2 is out of range/);
});

session("elements are written by index", async () => {
  const x = gw.zeros(2, 3);
  x.setAt(0, 1)
    .setAt([1, { start: 1 }], [5, 6])
    .setAt([":", 0], gw.tensor([7, 8]));
  assert.deepEqual(await x.toArray(), [
    [7, 1, 1],
    [8, 5, 6],
  ]);
  x.setAt(x.gt(6), -1);
  assert.deepEqual(await x.toArray(), [
    [-1, 1, 1],
    [-1, 5, 6],
  ]);
});

session("names with several meanings", async () => {
  const x = gw.tensor([
    [3, 1],
    [2, 5],
  ]);
  const [values, indices] = x.max(1);
  const found = await gw.fetch(x.max(), values, indices, x.min(gw.tensor(2)));
  assert.deepEqual(found, [
    5,
    [3, 5],
    [0, 1],
    [
      [2, 1],
      [2, 2],
    ],
  ]);
  assert.deepEqual(await gw.max(x, { dim: 0, keepdim: true })[0].toArray(), [[3, 5]]);
  assert.deepEqual(await gw.fetch(x.median(), x.median(0)[0]), [2, [2, 1]]);
  assert.deepEqual(await gw.einsum("ij,jk->ik", x, x).toArray(), [
    [11, 8],
    [16, 27],
  ]);
  assert.deepEqual([x.T.shape, x.view(4).shape], [[2, 2], [4]]);
  assert.deepEqual([x.long().dtype, x.view("int32").dtype], ["int64", "int32"]);
  assert.equal(x.to("float32"), x);
  assert.deepEqual(await x.where(x.gt(2), 0).toArray(), [
    [3, 0],
    [0, 5],
  ]);
});

session("tensors are created as asked", async () => {
  assert.deepEqual(await gw.zeros(2, { dtype: "int64" }).toArray(), [0, 0]);
  assert.equal(gw.ones([2], { requiresGrad: true }).requiresGrad, true);
  assert.deepEqual(await gw.arange(1, 4).toArray(), [1, 2, 3]);
  assert.deepEqual(await gw.linspace(0, 1, 3).toArray(), [0, 0.5, 1]);
  assert.deepEqual(await gw.full([2], 2.5).toArray(), [2.5, 2.5]);
  assert.deepEqual(await gw.eye(2).toArray(), [
    [1, 0],
    [0, 1],
  ]);
  assert.deepEqual(gw.randint(5, [3]).dtype, "int64");
  assert.deepEqual(gw.randn(2, 3, { dtype: "float64", requiresGrad: true }).dtype, "float64");
  assert.deepEqual(await gw.zerosLike(gw.ones(2)).toArray(), [0, 0]);
  assert.throws(() => gw.zeros(2, { dtpye: "int64" } as never), /did you mean dtype/);
});

session("what is claimed of results is what the server has", async () => {
  const x = gw.randn(2, 3, 4);
  const made = [
    x.sum(1),
    x.mean({ dim: [0, 2], keepdim: true }),
    x.matmul(gw.randn(4, 5)),
    x.permute(2, 0, 1),
    x.softmax(-1),
    gw.cat([x, x], 1),
    gw.stack([x, x]),
    x.flatten(1),
    x.unsqueeze(0),
    x.expand(2, 2, 3, 4),
    x.gt(0),
    x.argmax(1),
    gw.F.pad(x, [1, 2]),
    x.topk(2)[1],
    gw.F.layerNorm(x, 4),
    gw.F.mseLoss(x, x),
    x.std(),
    x.long().div(2),
    x.cumsum(1),
  ];
  for (const result of made) {
    const [dtype, shape] = [result.dtype, result.shape];
    const row = await x.session.describe(result);
    assert.deepEqual([dtype, shape], [row.dtype, row.shape]);
  }
});

session("shapes that do not fit are refused at the call", async () => {
  const x = gw.ones(2, 3);
  assert.throws(() => x.add(gw.ones(4)), gw.ShapeError);
  assert.throws(() => x.add(gw.ones(4)), /shapes \[2, 3\] and \[4\] do not broadcast: dimension 1 has sizes 3 and 4/);
  assert.throws(() => x.matmul(x), /3 is not 2/);
  assert.throws(() => x.reshape(4, -1), /does not fit 6 elements/);
  assert.throws(
    () => x.sum(2),
    (error) => error instanceof gw.IndexOutOfRange,
  );
  assert.throws(() => gw.cat([x, gw.ones(2, 4)]), gw.ShapeError);
  assert.throws(() => x.add_(gw.ones(2, 2, 3)), /cannot change the shape/);
});

session("results whose number depends on the shape", async () => {
  const [a, b] = gw.arange(5).split(3);
  assert.deepEqual(await gw.fetch(a!, b!), [
    [0, 1, 2],
    [3, 4],
  ]);
  assert.equal(gw.ones(4, 2).unbind().length, 4);
  assert.deepEqual(
    (
      await Promise.all(
        gw
          .arange(4)
          .chunk(2)
          .map((part) => part.toArray()),
      )
    ).flat(),
    [0, 1, 2, 3],
  );
});

session("matrices are decomposed and transformed", async () => {
  const a = gw.tensor([
    [2, 1],
    [1, 3],
  ]);
  const [values, vectors] = gw.linalg.eigh(a);
  const [u, s, vh] = gw.linalg.svd(a);
  const made = [
    gw.linalg.inv(a).matmul(a),
    gw.linalg.det(a),
    vectors.mul(values).matmul(vectors.mT),
    u.mul(s).matmul(vh),
    gw.linalg.solve(a, gw.tensor([3, 4])),
    gw.linalg.matrixPower(a, 3),
    gw.linalg.matrixPower(a, 0),
    gw.linalg.matrixNorm(a),
    gw.linalg.cholesky(a).matmul(gw.linalg.cholesky(a).mT),
  ];
  const identity = [
    [1, 0],
    [0, 1],
  ];
  const same = [
    [2, 1],
    [1, 3],
  ];
  const wanted = [
    identity,
    5,
    same,
    same,
    [1, 1],
    [
      [15, 20],
      [20, 35],
    ],
    identity,
    Math.sqrt(15),
    same,
  ].flat(3);
  const found = (await gw.fetch(...made)).flat(3) as number[];
  wanted.forEach((value, i) => assert.ok(Math.abs(found[i]! - value) < 1e-4, `${i}: ${found[i]} is not ${value}`));
  assert.deepEqual([u.shape, s.shape, vh.shape, values.dtype], [[2, 2], [2], [2, 2], "float32"]);
});

session("Fourier transforms and their inverses", async () => {
  const x = gw.tensor([1, 2, 3, 4]);
  const y = gw.fft.rfft(x);
  assert.deepEqual([y.dtype, gw.fft.fft(x).dtype], ["complex64", "complex64"]);
  assert.deepEqual(await gw.fft.irfft(y).toArray(), [1, 2, 3, 4]);
  assert.deepEqual(await gw.viewAsReal(y).toArray(), [
    [10, 0],
    [-2, 2],
    [-2, 0],
  ]);
  assert.deepEqual(await gw.real(gw.fft.ifft2(gw.fft.fft2(gw.eye(2)))).toArray(), [
    [1, 0],
    [0, 1],
  ]);
  assert.deepEqual(await gw.real(gw.fft.fft(x, { n: 2 })).toArray(), [3, -1]);
});

session("every method and function of the table is there", async () => {
  const { opNames, lookup, camel } = await import("../src/ops/op.ts");
  const functions = gw as unknown as Record<string, unknown>;
  for (const name of opNames()) {
    const op = lookup(name);
    const places = { method: gw.Tensor.prototype, function: functions, "nn.functional": gw.F };
    for (const [exposure, place] of Object.entries(places)) {
      if (op.exposed.includes(exposure)) assert.equal(typeof Reflect.get(place, camel(name)), "function", name);
    }
  }
});
