/** Builds the console into the server's package; with `--check`, only compares with what is there. */

import { readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";

import { build } from "esbuild";

const FOLDER = fileURLToPath(new URL(".", import.meta.url));
const TARGET = fileURLToPath(new URL("../gradwire_server/http/console/", import.meta.url));
const NOTE = "Derived from server/console: change that, and run `npm run build` there.";

const bundled = await build({
  absWorkingDir: FOLDER,
  entryPoints: { app: "src/app.tsx" },
  bundle: true,
  minify: true,
  write: false,
  outdir: "out",
  format: "iife",
  target: ["chrome110", "firefox110", "safari16"],
  jsx: "automatic",
  jsxImportSource: "preact",
  legalComments: "eof",
  banner: { js: `/* ${NOTE} Contains Preact (MIT license, https://preactjs.com). */` },
});
const style = await build({
  absWorkingDir: FOLDER,
  entryPoints: ["src/app.css"],
  minify: true,
  write: false,
  outdir: "out",
  banner: { css: `/* ${NOTE} */` },
});
const files = {
  "app.js": bundled.outputFiles[0].text,
  "app.css": style.outputFiles[0].text,
  "icon.svg": await readFile(`${FOLDER}src/icon.svg`, "utf8"),
};

const stale = [];
for (const [name, text] of Object.entries(files)) {
  const held = await readFile(TARGET + name, "utf8").catch(() => "");
  if (held !== text) stale.push(name);
  if (!process.argv.includes("--check")) await writeFile(TARGET + name, text);
}
if (process.argv.includes("--check") && stale.length) {
  console.error(`stale in server/gradwire_server/http/console: ${stale.join(", ")}; run npm run build`);
  process.exitCode = 1;
}
