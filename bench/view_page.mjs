// The page of `cingulum view` in headless Chromium: what it takes to show streamlines, beside NiiVue's own mesh in the same
// page. `node bench/view_page.mjs BUILD [OUT.json]`, after `make bootstrap-web`.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { pathToFileURL } from "node:url";

const [build, out] = [path.resolve(process.argv[2] ?? "build"), process.argv[3]];
const root = path.resolve(import.meta.dirname, "..");
const packages = path.join(build, "web/node_modules");
const { chromium } = await import(pathToFileURL(path.join(build, "node/node_modules/playwright-core/index.mjs")).href);
const folder = mkdtempSync(path.join(tmpdir(), "cingulum-bench-"));
let browser;
try {
  const [platform] = readdirSync(path.join(packages, "@esbuild"));
  execFileSync(path.join(packages, "@esbuild", platform, "bin/esbuild"),
    [path.join(root, "web/bench/append_lines.ts"), "--bundle", "--minify", "--format=iife", "--target=es2022", "--log-level=warning",
      `--outfile=${path.join(folder, "bench.js")}`],
    { env: { ...process.env, NODE_PATH: packages }, stdio: "inherit" });
  browser = await chromium.launch({ executablePath: process.env.CINGULUM_TEST_CHROMIUM ?? "/usr/bin/chromium", headless: true,
    args: ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--enable-precise-memory-info"] });
  const page = await browser.newPage();
  page.on("pageerror", (error) => console.error(error.message));
  await page.addScriptTag({ path: path.join(folder, "bench.js") });
  const result = await page.evaluate(() => globalThis.measure());
  result.tab_mb = await page.evaluate(() => performance.memory.usedJSHeapSize / 1e6);
  result.browser = browser.version();
  const text = JSON.stringify({ bench: "view_page", ...result }, null, 1);
  console.log(text);
  if (out) writeFileSync(out, `${text}\n`);
} finally {
  await browser?.close();
  rmSync(folder, { recursive: true, force: true });
}
