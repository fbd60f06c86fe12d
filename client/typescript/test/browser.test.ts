import assert from "node:assert/strict";
import { after, test } from "node:test";

import { servePages } from "../demo/pages.ts";
import { findChromium, withPage } from "./browser.ts";
import { startServer } from "./server.ts";

const executable = findChromium();
const skip = executable ? false : "there is no Chromium on this machine";

const PAGE = `<!doctype html><meta charset="utf-8">
<script type="importmap">{"imports": {
  "gradwire": "/dist/index.js", "@msgpack/msgpack": "/node_modules/@msgpack/msgpack/dist.esm/index.mjs"
}}</script>
<script type="module">import * as gw from "gradwire"; window.gw = gw; document.title = "ready";</script>`;

const pages = await servePages(0, { "/page.html": () => PAGE });
after(() => pages.close());

interface Global {
  gw: typeof import("../src/index.ts");
}

test("a page of an allowed origin trains over a WebSocket", { skip }, async () => {
  const server = await startServer({ ALLOWED_ORIGINS: pages.url });
  try {
    const found = await withPage(executable!, `${pages.url}/page.html`, async (page) => {
      await page.waitForFunction(() => document.title === "ready");
      return page.evaluate(
        async ([url, apiKey]) => {
          const { gw } = globalThis as unknown as Global;
          const session = await gw.connect(url!, { apiKey: apiKey!, seed: 0 });
          const x = gw.tensor(
            [
              [1, 2],
              [3, 4],
            ],
            { requiresGrad: true },
          );
          const y = x.pow(2).mean();
          y.backward();
          const gradient = await x.grad!.toArray();
          const large = await gw.tensor(new Float32Array(1_000_000).fill(2)).sum().item();
          let site = "";
          try {
            await x.indexSelect(0, gw.tensor([9n])).toArray();
          } catch (error) {
            site = String((error as { details: { site?: string } }).details.site);
          }
          const transport = session.stats();
          await session.close();
          return { gradient, large, site, trips: transport.roundTrips };
        },
        [server.url, server.apiKey],
      );
    });
    assert.deepEqual(found.gradient, [
      [0.5, 1],
      [1.5, 2],
    ]);
    assert.equal(found.large, 2_000_000);
    assert.equal(found.trips, 3);
  } finally {
    await server.stop();
  }
});

test("a page of another origin is refused", { skip }, async () => {
  const server = await startServer({ ALLOWED_ORIGINS: "https://elsewhere.example.com" });
  try {
    const message = await withPage(executable!, `${pages.url}/page.html`, async (page) => {
      await page.waitForFunction(() => document.title === "ready");
      return page.evaluate(
        async ([url, apiKey]) => {
          const { gw } = globalThis as unknown as Global;
          try {
            await gw.connect(url!, { apiKey: apiKey!, signal: AbortSignal.timeout(1500) });
            return "connected";
          } catch (error) {
            return (error as Error).name;
          }
        },
        [server.url, server.apiKey],
      );
    });
    assert.notEqual(message, "connected");
  } finally {
    await server.stop();
  }
});

test("a page that is given tickets needs no key", { skip }, async () => {
  const server = await startServer({ ALLOWED_ORIGINS: pages.url });
  const headers = { Authorization: `Bearer ${server.apiKey}`, "Content-Type": "application/json" };
  const post = async (path: string, body: object): Promise<{ id: string; ticket: string }> =>
    (await (await fetch(server.url + path, { method: "POST", headers, body: JSON.stringify(body) })).json()) as never;
  const { id } = await post("/v1/sessions", {});
  try {
    const sum = await withPage(executable!, `${pages.url}/page.html`, async (page) => {
      await page.exposeFunction("freshTicket", async () => (await post("/v1/tickets", { session: id })).ticket);
      await page.waitForFunction(() => document.title === "ready");
      return page.evaluate(
        async ([url, session]) => {
          const { gw } = globalThis as unknown as Global;
          const ticket = (globalThis as unknown as { freshTicket: () => Promise<string> }).freshTicket;
          const opened = await gw.connect(url!, { session: session!, ticket });
          const sum = await gw.tensor([1, 2, 3]).sum().item();
          await opened.close();
          return sum;
        },
        [server.url, id],
      );
    });
    assert.equal(sum, 6);
  } finally {
    await server.stop();
  }
});
