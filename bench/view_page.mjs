// The page of `cingulum view` in headless Chromium. First what it takes to show streamlines, beside NiiVue's own mesh in the
// same page; then a tractogram of a million streamlines from the real server: its first picture, all of it, the memory of
// the tab. `node bench/view_page.mjs BUILD [OUT.json]`, after `make bootstrap-web`; CINGULUM_BENCH_TRACTOGRAM names a file
// to show in the place of the one that is tracked for it (a minute, 1 GB).
import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { pathToFileURL } from "node:url";

const [build, out] = [path.resolve(process.argv[2] ?? "build"), process.argv[3]];
const root = path.resolve(import.meta.dirname, "..");
const packages = path.join(build, "web/node_modules");
const program = path.join(build, "bin/cingulum");
const { chromium } = await import(pathToFileURL(path.join(build, "node/node_modules/playwright-core/index.mjs")).href);
const folder = mkdtempSync(path.join(tmpdir(), "cingulum-bench-"));
let browser, server;

async function beside() {
  const [platform] = readdirSync(path.join(packages, "@esbuild"));
  execFileSync(path.join(packages, "@esbuild", platform, "bin/esbuild"),
    [path.join(root, "web/bench/append_lines.ts"), "--bundle", "--minify", "--format=iife", "--target=es2022", "--log-level=warning",
      `--outfile=${path.join(folder, "bench.js")}`],
    { env: { ...process.env, NODE_PATH: packages }, stdio: "inherit" });
  const page = await browser.newPage();
  page.on("pageerror", (error) => console.error(error.message));
  await page.addScriptTag({ path: path.join(folder, "bench.js") });
  const result = await page.evaluate(() => globalThis.measure());
  await page.close();
  return result;
}

function millionTracks() {
  if (process.env.CINGULUM_BENCH_TRACTOGRAM) return path.resolve(process.env.CINGULUM_BENCH_TRACTOGRAM);
  const run = (...words) => execFileSync(program, [...words, "--quiet"], { cwd: folder, stdio: ["ignore", "ignore", "inherit"] });
  run("phantom", "--preset", "brain", "--voxel-size", "2", "--scheme", "dirs64-b1000", "--out", "brain");
  run("track", "brain/dwi.nii.gz", "--mask", "brain/mask.nii.gz", "--dg", "prob", "--select", "1000000", "--min-length", "10", "--device", "cpu", "--out", "million.trx");
  return path.join(folder, "million.trx");
}

function started(words) {
  server = spawn(program, ["view", ...words, "--no-open"], { stdio: ["ignore", "pipe", "inherit"] });
  return new Promise((resolve, reject) => {
    let said = "";
    server.stdout.on("data", (data) => {
      said += data;
      const link = said.match(/http:\S+/);
      if (link) resolve(link[0]);
    });
    server.on("exit", (code) => reject(new Error(`cingulum view ended with ${code}`)));
  });
}

/** Bytes of the largest renderer, now and at most, and of the process that draws. */
async function memory() {
  const session = await browser.newBrowserCDPSession();
  const { processInfo } = await session.send("SystemInfo.getProcessInfo");
  await session.detach();
  const of = (type, name) => Math.max(0, ...processInfo.filter((each) => each.type === type)
    .map((each) => 1024 * Number(readFileSync(`/proc/${each.id}/status`, "utf8").match(new RegExp(`${name}:\\s+(\\d+)`))?.[1] ?? 0)));
  return { tab_bytes: of("renderer", "VmRSS"), tab_most_bytes: of("renderer", "VmHWM"), gpu_process_bytes: of("GPU", "VmRSS") };
}

async function million() {
  const file = millionTracks();
  const page = await browser.newPage({ viewport: { width: 1200, height: 800 } });
  page.on("pageerror", (error) => console.error(error.message));
  const bare = await memory();
  const link = await started([file]);
  await page.goto(link);
  // The page shows the only file by itself: from where it begins to load.
  const begin = Date.now();
  await page.waitForFunction(() => Number(document.body.dataset.fileLines ?? 0) > 0, null, { timeout: 120000 });
  await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
  const first_ms = Date.now() - begin;
  await page.waitForFunction(() => document.body.dataset.fileIsWhole === "true", null, { timeout: 600000 });
  await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
  const all_ms = Date.now() - begin;
  const lines = Number(await page.evaluate(() => document.body.dataset.fileLines));
  const picture = await page.screenshot();
  if (process.env.CINGULUM_BENCH_PICTURE) writeFileSync(process.env.CINGULUM_BENCH_PICTURE, picture);
  return { lines, file_bytes: statSync(file).size, first_ms, all_ms, goal: "first <= 2 s, all <= 20 s, tab <= 1 GB", bare, ...(await memory()) };
}

try {
  browser = await chromium.launch({ executablePath: process.env.CINGULUM_TEST_CHROMIUM ?? "/usr/bin/chromium", headless: true,
    args: ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"] });
  const result = { bench: "view_page", browser: browser.version(), ...(await beside()), million_of_a_file: await million() };
  const text = JSON.stringify(result, null, 1);
  console.log(text);
  if (out) writeFileSync(out, `${text}\n`);
} finally {
  await browser?.close();
  server?.kill("SIGINT");
  rmSync(folder, { recursive: true, force: true });
}
