/** A server for tests: that of GRADWIRE_URL, or one started with GRADWIRE_TEST_PYTHON (default `python3`). */

import { spawn } from "node:child_process";
import { after } from "node:test";

export interface Server {
  url: string;
  apiKey: string;
  stop(): Promise<void>;
}

const PATIENCE_MS = 240_000;

/** Start a server. Settings are environment variables without their prefix: `{ ALLOWED_ORIGINS: "..." }`. */
export async function startServer(settings: { readonly [name: string]: string } = {}): Promise<Server> {
  const url = process.env["GRADWIRE_URL"];
  if (url && !Object.keys(settings).length) {
    return { url, apiKey: process.env["GRADWIRE_API_KEY"] ?? "", stop: () => Promise.resolve() };
  }
  const env: NodeJS.ProcessEnv = { ...process.env, GRADWIRE_LOG_LEVEL: "warning" };
  for (const [name, value] of Object.entries(settings)) env[`GRADWIRE_${name}`] = value;
  const python = process.env["GRADWIRE_TEST_PYTHON"] ?? "python3";
  const port = settings["PORT"] ?? "0";
  const child = spawn(python, ["-m", "gradwire_server", "--port", port, "--announce"], {
    env,
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ended = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  const announced = await new Promise<string>((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error("the server did not start")), PATIENCE_MS);
    child.once("exit", (code) => reject(new Error(`the server ended with ${code} before it listened`)));
    child.stdout.once("data", (data: Buffer) => {
      clearTimeout(timer);
      resolve(data.toString());
    });
  });
  const told = JSON.parse(announced) as { url: string; api_key: string };
  return {
    url: told.url,
    apiKey: settings["API_KEYS"] ?? told.api_key,
    async stop() {
      child.kill("SIGTERM");
      await ended;
    },
  };
}

/** A server for all tests of a file, stopped after them. */
export async function serverForFile(settings?: { readonly [name: string]: string }): Promise<Server> {
  const server = await startServer(settings);
  after(() => server.stop());
  return server;
}
