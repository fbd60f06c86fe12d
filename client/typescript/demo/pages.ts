/** Serves the built package and its demo to a browser: `node demo/pages.ts` after `npm run build`. */

import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { extname, join, normalize, sep } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const TYPES: { readonly [extension: string]: string } = {
  ".html": "text/html; charset=utf-8", ".js": "text/javascript", ".mjs": "text/javascript", ".json": "application/json",
  ".map": "application/json",
};
/** What a page may load, beside the data of the demo. */
const FOLDERS = ["demo", "dist", join("node_modules", "@msgpack", "msgpack")];

export interface Pages {
  /** The origin, which the gradwire server has to allow. */
  url: string;
  close(): Promise<void>;
}

/** Serve pages on a port of loopback; 0 chooses one. `files` are served, too, by their path. */
export async function servePages(port = 0, files: { readonly [path: string]: string } = {}): Promise<Pages> {
  const server = createServer((request, response) => {
    const path = new URL(request.url ?? "/", "http://localhost").pathname;
    void find(path, files).then(
      ([type, body]) => response.writeHead(200, { "Content-Type": type }).end(body),
      () => response.writeHead(404).end(),
    );
  });
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () => new Promise((resolve) => server.close(() => resolve())),
  };
}

async function find(path: string, files: { readonly [path: string]: string }): Promise<[string, Buffer | string]> {
  const type = TYPES[extname(path)] ?? "application/octet-stream";
  const given = files[path];
  if (given !== undefined) return [type, given];
  const wanted = normalize(path === "/" ? "/demo/index.html" : path).slice(1);
  if (!FOLDERS.some((folder) => wanted.startsWith(folder + sep))) throw new Error(`${path} is not served`);
  return [type, await readFile(join(ROOT, wanted))];
}
