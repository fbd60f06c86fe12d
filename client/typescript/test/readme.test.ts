/** The code blocks of README.md run, in order, and print what their comments say. */

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { startServer } from "./server.ts";

const HERE = fileURLToPath(new URL("..", import.meta.url));
const BLOCK = /^```ts\n(.*?)^```$/gms;
const PRINTED = /console\.log\(.*\); \/\/ (.*)$/;

test("README.md runs and prints what it says", async () => {
  const blocks = [...readFileSync(join(HERE, "README.md"), "utf8").matchAll(BLOCK)].map((found) => found[1]!);
  assert.ok(blocks.length >= 5);
  const server = await startServer();
  const [first, ...rest] = blocks;
  const connected = first!
    .replace('"gradwire"', '"../src/index.ts"')
    .replace("http://127.0.0.1:8000", server.url)
    .replace("your key", server.apiKey);
  const scoped = rest.map((block) => `{\n${block}}\n`).join("");
  const again = `await gw.connect("${server.url}", { apiKey: "${server.apiKey}" });\n`;
  const program = `${connected}${again}${scoped}await gw.currentSession().close();\n`;
  const folder = mkdtempSync(join(HERE, "readme-"));
  try {
    writeFileSync(join(folder, "program.ts"), program);
    const { stdout } = await promisify(execFile)(process.execPath, [join(folder, "program.ts")]);
    const expected = program.split("\n").flatMap((line) => PRINTED.exec(line)?.[1] ?? []);
    const lines = stdout.trim().split("\n");
    assert.equal(lines.length, expected.length, stdout);
    for (const [at, line] of lines.entries()) {
      const pattern = expected[at]!.split("...")
        .map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"))
        .join(".*");
      assert.match(line, new RegExp(`^${pattern}$`));
    }
  } finally {
    rmSync(folder, { recursive: true });
    await server.stop();
  }
});
