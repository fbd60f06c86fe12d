/** Serves the built package and the demo's page to a browser, on loopback. */

import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { IncomingMessage } from "node:http";
import { stripTypeScriptTypes } from "node:module";
import type { AddressInfo } from "node:net";
import { extname, join, normalize, sep } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const TYPES: { readonly [extension: string]: string } = {
  ".html": "text/html; charset=utf-8",
  ".css": "text/css",
  ".js": "text/javascript",
  ".mjs": "text/javascript",
  ".ts": "text/javascript",
  ".json": "application/json",
  ".map": "application/json",
};
/** What a page may load. */
const FOLDERS = ["demo", "dist", join("node_modules", "@msgpack", "msgpack")];

export interface Pages {
  /** The origin, which the gradwire server has to allow. */
  url: string;
  close(): Promise<void>;
}

/** Answers of this server, by path. */
export type Routes = { readonly [path: string]: (url: URL, request: IncomingMessage) => string | Promise<string> };

/** Serve files and routes on a port; 0 chooses one. */
export async function servePages(port = 0, routes: Routes = {}): Promise<Pages> {
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? "/", "http://localhost");
    const route = routes[url.pathname];
    const type = TYPES[extname(url.pathname)] ?? (route ? "text/plain" : "text/html; charset=utf-8");
    const answer = route ? Promise.resolve(route(url, request)) : file(url.pathname);
    answer.then(
      (body) => response.writeHead(200, { "Content-Type": type }).end(body),
      (error: unknown) => response.writeHead(404).end(String(error)),
    );
  });
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function file(path: string): Promise<Buffer | string> {
  const wanted = normalize(path === "/" ? "/demo/index.html" : path).slice(1);
  if (!FOLDERS.some((folder) => wanted.startsWith(folder + sep))) throw new Error(`${path} is not served`);
  const body = await readFile(join(ROOT, wanted));
  return wanted.endsWith(".ts") ? stripTypeScriptTypes(body.toString()) : body;
}
