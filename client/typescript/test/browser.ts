/** A headless Chromium of the system, for tests. */

import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";

import { chromium } from "playwright-core";
import type { Browser, Page } from "playwright-core";

const NAMES = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

/** The path of a Chromium, or `undefined` if there is none: CHROMIUM, or what PATH has. */
export function findChromium(): string | undefined {
  const folders = (process.env["PATH"] ?? "").split(delimiter);
  const candidates = [
    process.env["CHROMIUM"] ?? "",
    ...NAMES.flatMap((name) => folders.map((folder) => join(folder, name))),
  ];
  return candidates.find((path) => {
    try {
      accessSync(path, constants.X_OK);
      return path !== "";
    } catch {
      return false;
    }
  });
}

/** A busy machine takes its time to show a page. */
const PATIENCE_MS = 240_000;

/** Open a page, run `body` with it, and close the browser. Errors of the page fail the test. */
export async function withPage<T>(executable: string, url: string, body: (page: Page) => Promise<T>): Promise<T> {
  const browser: Browser = await chromium.launch({
    timeout: PATIENCE_MS,
    executablePath: executable,
    args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"],
  });
  try {
    const page = await browser.newPage();
    page.setDefaultTimeout(PATIENCE_MS);
    const errors: string[] = [];
    page.on("pageerror", (error) => errors.push(String(error)));
    await page.goto(url);
    const result = await body(page);
    if (errors.length) throw new Error(`the page failed: ${errors.join("; ")}`);
    return result;
  } finally {
    await browser.close();
  }
}
