/** The digits demo learns as the Python demo does, in Node and in a browser. DIGITS_DATA names its data. */

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { promisify } from "node:util";

import { serveDemo } from "../demo/browser.ts";
import { findChromium, withPage } from "./browser.ts";
import { startServer } from "./server.ts";

const data = process.env["DIGITS_DATA"];
const WANTED = 0.96;

/** A port that nobody uses now. */
async function freePort(): Promise<number> {
  const probe = createServer();
  await new Promise<void>((resolve) => probe.listen(0, "127.0.0.1", resolve));
  const { port } = probe.address() as AddressInfo;
  await new Promise((resolve) => probe.close(resolve));
  return port;
}

test("in Node", { skip: data ? false : "DIGITS_DATA is not set" }, async () => {
  const server = await startServer();
  try {
    const env = { ...process.env, GRADWIRE_URL: server.url, GRADWIRE_API_KEY: server.apiKey };
    const { stdout } = await promisify(execFile)(process.execPath, ["demo/node.ts", data!, "15"], { env });
    const reached = [...stdout.matchAll(/accuracy on held-out digits ([\d.]+)%/g)].map((found) => Number(found[1]));
    assert.equal(reached.length, 15);
    assert.ok(reached.at(-1)! > 100 * WANTED, stdout);
    const trips = /and (\d+) round trips/.exec(stdout)![1];
    assert.equal(Number(trips), 15); // one an epoch, none a step
  } finally {
    await server.stop();
  }
});

const chromium = findChromium();
const without = data ? (chromium ? false : "there is no Chromium on this machine") : "DIGITS_DATA is not set";

test("in a browser", { skip: without }, async () => {
  const port = await freePort();
  const server = await startServer({ ALLOWED_ORIGINS: `http://127.0.0.1:${port}` });
  const demo = await serveDemo(port, readFileSync(data!, "utf8"), server.url, server.apiKey);
  try {
    await withPage(chromium!, demo.url, async (page) => {
      await page.setViewportSize({ width: 1040, height: 620 });
      await page.click("#train:not([disabled])");
      await page.waitForFunction(() => document.body.dataset["accuracy"] !== undefined, undefined, {
        timeout: 300_000,
      });
      assert.ok(Number(await page.evaluate(() => document.body.dataset["accuracy"])) > WANTED);
      assert.ok((await page.locator("#digits .wrong").count()) < 5);
      const screenshot = process.env["DIGITS_SCREENSHOT"];
      if (screenshot) await page.screenshot({ path: screenshot });
    });
  } finally {
    await demo.close();
    await server.stop();
  }
});
