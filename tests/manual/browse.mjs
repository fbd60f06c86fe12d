// Opens pages in a headless Chromium and prints, as JSON, what a test asks for.
//
//     node browse.mjs '{"module": ".../playwright-core/index.mjs", "executable": ..., "steps": [...]}'
//
// A step is {"url", "width", "height", "dark", "search", "script", "picture"}: open the URL, type a search and follow
// it, run an expression in the page, take a picture. Each step answers {"status", "result", "found", "requests",
// "errors", "violations"}.
const { module, executable, steps } = JSON.parse(process.argv[2]);
const { chromium } = await import(module);

const browser = await chromium.launch({
  executablePath: executable,
  args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"],
  timeout: 240_000,
});
const answers = [];
try {
  for (const step of steps) {
    const context = await browser.newContext({
      viewport: { width: step.width ?? 1280, height: step.height ?? 900 },
      colorScheme: step.dark ? "dark" : "light",
      reducedMotion: "reduce",
    });
    const page = await context.newPage();
    page.setDefaultTimeout(120_000);
    const requests = [], errors = [];
    page.on("request", (request) => requests.push(request.url()));
    page.on("pageerror", (error) => errors.push(String(error)));
    page.on("console", (message) => { if (message.type() === "error") errors.push(message.text()); });
    const response = await page.goto(step.url);
    const answer = { status: response.status(), requests, errors };
    if (step.search) {
      await page.fill("input[name=q]", step.search);
      await page.press("input[name=q]", "Enter");
      await page.waitForFunction(() => /found/i.test(document.querySelector("#search-results")?.textContent ?? ""));
      await page.waitForSelector("#search-results li a");
      answer.found = await page.$$eval("#search-results li a", (links) => links.map((link) => link.href));
    }
    if (step.script) answer.result = await page.evaluate(step.script);
    if (step.picture) await page.waitForTimeout(1500); // pages scroll to their anchors
    if (step.picture) await page.screenshot({ path: step.picture });
    answers.push(answer);
    await context.close();
  }
} finally {
  await browser.close();
}
console.log(JSON.stringify(answers));
