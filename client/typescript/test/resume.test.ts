import assert from "node:assert/strict";
import { test } from "node:test";

import * as gw from "../src/index.ts";
import { CuttingProxy } from "./cutting_proxy.ts";
import { serverForFile } from "./server.ts";

const server = await serverForFile();

function through(
  name: string,
  transport: "stream" | "requests",
  body: (session: gw.Session, proxy: CuttingProxy) => Promise<void>,
): void {
  test(`${name} (${transport})`, async () => {
    const proxy = await CuttingProxy.before(server.url);
    try {
      const session = await gw.connect(proxy.url, { apiKey: server.apiKey, transport, patience: 20 });
      await body(session, proxy);
      await session.close();
    } finally {
      await proxy.close();
    }
  });
}

for (const transport of ["stream", "requests"] as const) {
  through("a counter is right after many cuts: each frame is applied once", transport, async (session, proxy) => {
    const counter = gw.tensor(0);
    for (let step = 1; step <= 30; step++) {
      counter.add_(1);
      session.flush();
      if (step % 5 === 0) proxy.cut();
      if (step % 7 === 0) assert.equal(await counter.item(), step);
    }
    assert.equal(await counter.item(), 30);
    assert.ok(proxy.cuts > 0);
    if (transport === "stream") assert.ok(session.stats().reconnects > 0);
  });

  through("a reply that got lost is sent again", transport, async (session, proxy) => {
    const counter = gw.tensor(0);
    await session.synchronize();
    for (let step = 1; step <= 5; step++) {
      counter.add_(1);
      let lost = 0;
      proxy.passes = () => lost++ > 0; // the server has applied the frame; its reply is cut
      assert.equal(await counter.item(), step);
      proxy.passes = () => true;
    }
    assert.ok(proxy.cuts >= 5);
  });
}

test("a server that is away costs time, then an error, and nothing is lost", async () => {
  const proxy = await CuttingProxy.before(server.url);
  const session = await gw.connect(proxy.url, { apiKey: server.apiKey, patience: 0.5 });
  const x = gw.tensor([1, 2]);
  await session.synchronize();
  proxy.passes = () => false;
  proxy.cut();
  await assert.rejects(x.add(1).toArray(), gw.ConnectionLost);
  proxy.passes = () => true;
  assert.deepEqual(await x.add(1).toArray(), [2, 3]);
  await session.close();
  await proxy.close();
});

test("a session that was deleted meanwhile is gone for good", async () => {
  const session = await gw.connect(server.url, { apiKey: server.apiKey });
  const x = gw.tensor([1, 2]);
  await session.synchronize();
  await session.rest.json("DELETE", `/v1/sessions/${session.id}`);
  await assert.rejects(x.add(1).toArray(), gw.SessionGone);
  assert.throws(() => {
    x.add(2);
    session.flush();
  }, gw.SessionGone);
});

test("an aborted read cancels what it waits for", async () => {
  const session = await gw.connect(server.url, { apiKey: server.apiKey });
  const big = gw.ones([1200, 1200], { dtype: "float64" });
  await big.sum().item();
  let product = big;
  for (let i = 0; i < 200; i++) product = product.matmul(big).mul(1e-3);
  const stop = new AbortController();
  const reading = product.sum().item({ signal: stop.signal });
  setTimeout(() => stop.abort(), 300);
  const began = performance.now();
  await assert.rejects(reading, gw.Cancelled);
  assert.ok(performance.now() - began < 15_000);
  assert.equal(await gw.tensor([1, 2]).sum().item(), 3);
  await session.close();
});
