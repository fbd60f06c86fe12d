/**
 * Drives the console in a headless Chromium, as tests/console does with a server and a training program running.
 *
 * `node test/browser.mjs` reads a JSON object of what to do from its standard input, and writes what it saw as JSON.
 */

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

import { chromium } from "playwright-core";

const wanted = JSON.parse(readFileSync(0, "utf8"));
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const PATIENCE_MS = wanted.patience_ms ?? 60_000;

const browser = await chromium.launch({
  executablePath: wanted.chromium,
  timeout: PATIENCE_MS,
  args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"],
});
const context = await browser.newContext({ viewport: { width: 1360, height: 900 }, ignoreHTTPSErrors: true });
const page = await context.newPage();
page.setDefaultTimeout(PATIENCE_MS);
const seen = { requests: [], errors: [], violations: {}, numbers: {}, urls: [] };
page.on("request", (request) => seen.requests.push(request.url()));
page.on("pageerror", (error) => seen.errors.push(String(error)));
page.on("console", (message) => {
  if (message.type() === "error") seen.errors.push(message.text());
});

/** What axe-core finds on the page as it is, in light and dark. Its script runs beside the page, past its policy. */
async function examine(name) {
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    await page.waitForFunction((theme) => document.documentElement.dataset.theme === theme, colorScheme);
    const client = await context.newCDPSession(page);
    const { frameTree } = await client.send("Page.getFrameTree");
    const { executionContextId } = await client.send("Page.createIsolatedWorld", { frameId: frameTree.frame.id });
    const run = `${axe}; axe.run(document).then((found) => JSON.stringify(found.violations.map((each) =>
      [each.id, each.nodes.length, each.nodes[0].html.slice(0, 200), each.nodes[0].failureSummary])))`;
    const sent = { expression: run, contextId: executionContextId, awaitPromise: true };
    const { result } = await client.send("Runtime.evaluate", sent);
    seen.violations[`${name}, ${colorScheme}`] = JSON.parse(result.value);
    await client.detach();
  }
  await page.emulateMedia({ colorScheme: "light" });
}

async function shot(name, options = {}) {
  if (!wanted.shots) return;
  const { width = 1360, height = 900, dark = false, full = true } = options;
  await page.setViewportSize({ width, height });
  await page.emulateMedia({ colorScheme: dark ? "dark" : "light" });
  await page.waitForTimeout(1200);
  await page.screenshot({ path: `${wanted.shots}/${name}.png`, fullPage: full });
  await page.setViewportSize({ width: 1360, height: 900 });
  await page.emulateMedia({ colorScheme: "light" });
}

const figure = (label) => page.locator(".figure", { has: page.locator("dt", { hasText: label }) }).locator(".value");

const steps = {
  /** Sign in by keyboard only. */
  async signIn() {
    await page.goto(wanted.url);
    seen.urls.push(page.url());
    await page.waitForSelector("#key");
    await examine("sign-in");
    await shot("sign-in");
    await page.focus("#key");
    await page.keyboard.type("gw_wrong");
    await page.keyboard.press("Enter");
    await page.waitForSelector("#problem:not([hidden])");
    seen.numbers.wrong = await page.textContent("#problem");
    await page.fill("#key", wanted.key);
    await page.keyboard.press("Enter");
    await page.waitForSelector("table.rows");
    seen.numbers.cookies = await context.cookies();
    seen.numbers.readable = await page.evaluate(() => document.cookie);
    seen.numbers.stored = await page.evaluate(() => JSON.stringify({ ...localStorage, ...sessionStorage }));
  },
  async overview() {
    const read = async () => [await figure("Frames a second").textContent(), await figure("Sessions").textContent()];
    await page.waitForFunction(() => document.querySelectorAll(".chart .line").length >= 4);
    const first = await page.locator(".chart .line").first().getAttribute("d");
    seen.numbers.overview = await read();
    await page.waitForFunction((old) => document.querySelector(".chart .line").getAttribute("d") !== old, first);
    await examine("overview");
    await page.waitForTimeout(wanted.shots ? 15_000 : 0);
    await shot("overview");
    await shot("overview-dark", { dark: true });
    await shot("overview-narrow", { width: 390, height: 844 });
    await page.fill("input[type=search]", "no such session");
    await page.waitForSelector("text=No session fits the filter.");
    await page.fill("input[type=search]", "");
    await page.click("thead button:has-text('Live')");
    await page.waitForSelector("th[aria-sort=descending]:has-text('Live')");
  },
  async session() {
    await page.click(`a[href="#/sessions/${wanted.session}"]`);
    await page.waitForSelector("section[aria-labelledby=frames] tbody tr");
    await page.waitForSelector("section[aria-labelledby=tensors] tbody tr");
    const frame = "section[aria-labelledby=frames] tbody tr:first-child td:nth-child(2)";
    const first = await page.textContent(frame);
    await page.waitForFunction(([at, old]) => document.querySelector(at).textContent !== old, [frame, first]);
    seen.numbers.tensors = await page.locator("section[aria-labelledby=tensors] tbody th").allTextContents();
    await page.click("section[aria-labelledby=graph] button");
    await page.waitForFunction(() => document.querySelector("img.graph")?.naturalWidth > 0);
    await page.click("section[aria-labelledby=profile] button");
    await page.waitForSelector(".flame rect", { timeout: PATIENCE_MS });
    seen.numbers.flame = await page.locator(".flame tbody th").allTextContents();
    await page.focus(".flame g:nth-of-type(2)");
    await page.keyboard.press("Enter");
    await page.waitForSelector(".flame .crumbs button:nth-child(2)");
    await page.click(".flame .crumbs button:first-child");
    await examine("session");
    await shot("session");
    await shot("session-dark", { dark: true });
    await shot("session-narrow", { width: 390, height: 844 });
    const download = page.waitForEvent("download");
    await page.click("a.button:has-text('Export')");
    seen.numbers.exported = (await download).suggestedFilename();
    await page.click("button:has-text('Cancel frames')");
    await page.waitForFunction(() => /cancelled|No frame/.test(document.querySelector(".said").textContent));
    await page.click("button:has-text('End session')");
    await page.waitForSelector("dialog[open]");
    await examine("question");
    await page.keyboard.press("Escape");
    await page.waitForSelector("dialog", { state: "detached" });
    await page.click("button:has-text('End session')");
    await page.click("dialog button.danger");
    await page.waitForURL("**/console#/");
    await page.waitForSelector("h1:has-text('What runs')");
  },
  async keys() {
    await page.click("nav a:has-text('Keys')");
    await page.waitForSelector("table.rows tbody tr");
    await examine("keys");
    await shot("keys");
    await page.click("button[aria-label='Revoke of the test']");
    await page.click("dialog button.danger");
    await page.waitForFunction(() => /is revoked/.test(document.querySelector(".said").textContent));
  },
  async signOut() {
    await page.click("button:has-text('Sign out')");
    await page.waitForSelector("#key");
    await page.reload();
    await page.waitForSelector("#key");
  },
};

try {
  for (const step of wanted.steps) await steps[step]();
} catch (error) {
  seen.failure = String(error);
  if (wanted.shots) await page.screenshot({ path: `${wanted.shots}/failure.png` });
} finally {
  await browser.close();
}
console.log(JSON.stringify(seen));
