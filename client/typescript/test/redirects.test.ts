/** A gateway sends the client to the worker that has the session; programs do not see what happens on the way. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { createInterface } from "node:readline";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";

import * as gw from "../src/index.ts";
import type { Direct } from "../src/wire/dialer.ts";
import { trusted } from "../src/wire/dialer.ts";
import { CuttingProxy } from "./cutting_proxy.ts";

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));

interface Seen {
  offered: number;
  relayed: number;
}

const python = process.env["GRADWIRE_TEST_PYTHON"] ?? "python3";
const path = [ROOT, process.env["PYTHONPATH"]].filter(Boolean).join(":");
const child = spawn(python, ["-m", "tests.typescript.fleet_for_node"], {
  cwd: ROOT,
  env: { ...process.env, PYTHONPATH: path },
  stdio: ["pipe", "pipe", "inherit"],
});
const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
const fleet = await answer<{ url: string; apiKey: string; worker: string; session: string }>();
after(() => child.stdin.end());

async function answer<T>(): Promise<T> {
  const line = await lines.next();
  if (line.done) throw new Error("the fleet has ended");
  return JSON.parse(line.value) as T;
}

/** Let redirects lead to these addresses, one after the other. Returns what was seen before. */
async function point(...addresses: readonly (string | null)[]): Promise<Seen> {
  child.stdin.write(`${JSON.stringify(addresses)}\n`);
  return await answer<Seen>();
}

/** A session by way of the gateway; only its stream is asked for, since this gateway forwards no requests. */
async function join(direct?: Direct): Promise<gw.Session> {
  const headers = { Authorization: `Bearer ${fleet.apiKey}`, "Content-Type": "application/json" };
  const body = JSON.stringify({ session: fleet.session });
  const ticket = async (): Promise<string> => {
    const response = await fetch(`${fleet.url}/v1/tickets`, { method: "POST", headers, body });
    assert.equal(response.status, 201);
    return ((await response.json()) as { ticket: string }).ticket;
  };
  return await gw.connect(fleet.url, { session: fleet.session, ticket, patience: 20, direct });
}

/** Add 1 again and again, and read each sum: a frame that is lost or applied twice shows. */
async function count(most: number): Promise<void> {
  const counter = gw.tensor(0);
  for (let step = 1; step <= most; step++) {
    counter.add_(1);
    assert.equal(await counter.item(), step);
  }
}

test("the session runs on the worker", async () => {
  await point("worker");
  const session = await join();
  await count(3);
  const { direct, redirects, fallbacks } = session.stats();
  assert.deepEqual({ direct, redirects, fallbacks }, { direct: true, redirects: 1, fallbacks: 0 });
  await session.close();
  assert.deepEqual(await point("worker"), { offered: 1, relayed: 0 });
});

test("a program can stay at the gateway", async () => {
  await point("worker");
  const session = await join(false);
  await count(3);
  assert.equal(session.stats().direct, false);
  await session.close();
  assert.deepEqual(await point("worker"), { offered: 0, relayed: 1 });
});

test("a gateway may relay who offers to follow redirects", async () => {
  await point(null);
  const session = await join();
  await count(3);
  assert.equal(session.stats().redirects, 0);
  await session.close();
  assert.deepEqual(await point("worker"), { offered: 1, relayed: 1 });
});

test("an address that does not answer is avoided", async () => {
  const nobody = createServer();
  await new Promise<void>((resolve) => nobody.listen(0, "127.0.0.1", resolve));
  const { port } = nobody.address() as AddressInfo;
  await new Promise((resolve) => nobody.close(resolve));
  await point(`http://127.0.0.1:${port}`);
  const session = await join();
  await count(3);
  const { direct, fallbacks } = session.stats();
  assert.deepEqual({ direct, fallbacks }, { direct: false, fallbacks: 1 });
  await session.close();
  assert.equal((await point("worker")).relayed, 1);
});

test("a gateway that redirects to itself ends in its relay", async () => {
  await point(fleet.url);
  const session = await join();
  await count(3);
  assert.equal(session.stats().direct, false);
  await session.close();
});

test("a broken direct connection begins at the gateway again", async () => {
  const proxy = await CuttingProxy.before(fleet.worker);
  await point(proxy.url, "worker");
  const session = await join();
  await count(3);
  proxy.cut();
  await count(3);
  const { direct, redirects, reconnects, fallbacks } = session.stats();
  assert.deepEqual(
    { direct, redirects, reconnects, fallbacks },
    {
      direct: true,
      redirects: 2,
      reconnects: 1,
      fallbacks: 0,
    },
  );
  await session.close();
  await proxy.close();
});

test("cuts on the direct way change nothing", async () => {
  const proxy = await CuttingProxy.before(fleet.worker);
  await point(proxy.url);
  const session = await join();
  const counter = gw.tensor(0);
  for (let step = 1; step <= 30; step++) {
    counter.add_(1);
    session.flush();
    if (step % 5 === 0) proxy.cut();
    if (step % 7 === 0) assert.equal(await counter.item(), step);
  }
  assert.equal(await counter.item(), 30);
  assert.ok(session.stats().reconnects > 0);
  await session.close();
  await proxy.close();
});

test("which redirects are followed", () => {
  const cases: readonly [string, string, boolean, boolean][] = [
    ["http://g", "http://10.0.0.1:8000", false, true],
    ["https://g", "https://w.example:8443/prefix", false, true],
    ["https://g", "http://10.0.0.1:8000", false, false],
    ["https://g", "http://10.0.0.1:8000", true, true],
    ["https://g", "http://127.0.0.1:8000", false, true],
    ["https://g", "http://[::1]:8000", false, true],
    ["https://g", "http://localhost.evil.example", false, false],
    ["https://g", "http://127.0.0.1.evil.example", false, false],
    ["https://g", "ftp://w.example", true, false],
    ["https://g", "w.example:8000", true, false],
    ["https://g", "https://user:word@w.example", true, false],
    ["https://g", "https://w.example/?a=b", true, false],
  ];
  for (const [gateway, worker, plain, followed] of cases)
    assert.equal(trusted(gateway, worker, plain), followed, worker);
});
