/**
 * Serve the digits demo as a page: `npm run build && node demo/browser.ts digits.json [port]`.
 *
 * This program keeps the key. The page gets a session and single-use tickets for it. The gradwire server (GRADWIRE_URL,
 * GRADWIRE_API_KEY) must allow the page's origin: GRADWIRE_ALLOWED_ORIGINS=http://127.0.0.1:8100.
 */

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

import { servePages } from "./pages.ts";
import type { Pages } from "./pages.ts";

/** Serve the demo for a gradwire server. */
export async function serveDemo(port: number, data: string, url: string, apiKey: string): Promise<Pages> {
  const post = async (path: string, body: object): Promise<Record<string, string>> => {
    const headers = { Authorization: `Bearer ${apiKey}`, "Content-Type": "application/json" };
    const answer = await fetch(url + path, { method: "POST", headers, body: JSON.stringify(body) });
    if (!answer.ok) throw new Error(await answer.text());
    return (await answer.json()) as Record<string, string>;
  };
  const sessions = new Set<string>();
  const pages = await servePages(port, {
    "/digits.json": () => data,
    "/session.json": async () => {
      const { id } = await post("/v1/sessions", { seed: 0, ttl_s: 600 });
      sessions.add(id!);
      return JSON.stringify({ url, session: id });
    },
    "/ticket": async ({ searchParams }) => {
      const session = searchParams.get("session") ?? "";
      if (!sessions.has(session)) throw new Error("this page has no such session");
      return (await post("/v1/tickets", { session }))["ticket"]!;
    },
  });
  const headers = { Authorization: `Bearer ${apiKey}` };
  return {
    url: pages.url,
    async close() {
      await pages.close();
      for (const session of sessions) await fetch(`${url}/v1/sessions/${session}`, { method: "DELETE", headers });
    },
  };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [path = "digits.json", port = "8100"] = process.argv.slice(2);
  const { GRADWIRE_URL: url = "http://127.0.0.1:8000", GRADWIRE_API_KEY: key = "" } = process.env;
  const pages = await serveDemo(Number(port), readFileSync(path, "utf8"), url, key);
  console.log(`the demo is on ${pages.url}`);
}
