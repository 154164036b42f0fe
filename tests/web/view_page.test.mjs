// The page of `cingulum view` in Chromium, against the real server: loading, clicking, dragging, sliders, A and B, the link,
// what is on the canvas, saving, access by keyboard and labels. Run by `make test-web` through tests/view/test_page.py.
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";

const CINGULUM = process.env.CINGULUM;
const packages = path.join(process.env.CINGULUM_TEST_NODE_PACKAGES, "node_modules");
const load = (name) => import(pathToFileURL(path.join(packages, name)).href);
const { chromium } = await load("playwright-core/index.mjs");
const AxeBuilder = (await load("@axe-core/playwright/dist/index.mjs")).default;
const run = promisify(execFile);
const folder = mkdtempSync(path.join(tmpdir(), "cingulum-test-"));
let server, browser, context, page, link;
const complaints = [];

async function startServer() {
  server = spawn(CINGULUM, ["view", "dwi.nii.gz", "--mask", "mask.nii.gz", "--bvec-frame", "fsl", "tracks.trx", "--device", "cpu", "--port", "0", "--no-open"],
    { cwd: path.join(folder, "phantom"), stdio: ["ignore", "pipe", "pipe"] });
  let shown = "";
  return new Promise((resolve, reject) => {
    const take = (data) => {
      shown += data;
      const found = shown.match(/http:\/\/127\.0\.0\.1:\d+\/open\/\S+/);
      if (found) resolve(found[0]);
    };
    server.stdout.on("data", take);
    server.stderr.on("data", take);
    server.on("exit", (code) => reject(new Error(`cingulum view ended with ${code}: ${shown}`)));
  });
}

async function ready(of) {
  await of.waitForFunction(() => document.body.dataset.ready === "yes", null, { timeout: 60000 });
}

/** Does what is given and waits for the next answer. */
async function answered(action) {
  const until = Number(await page.evaluate(() => document.body.dataset.answered ?? "0")) + 1;
  await action();
  await page.waitForFunction((count) => Number(document.body.dataset.answered ?? 0) >= count, until, { timeout: 60000 });
}

const text = (id) => page.textContent(`#${id}`);
async function slide(name, value) {
  await page.locator(`#slider-${name}`).evaluate((input, to) => {
    input.value = String(to);
    input.dispatchEvent(new Event("input", { bubbles: true }));
  }, value);
}

/** How many pixels of the canvas have a colour: streamlines have, the image has none. */
async function colouredPixels() {
  await page.waitForTimeout(300);
  const picture = await page.locator("#scene").screenshot();
  return page.evaluate(async (base64) => {
    const image = new Image();
    image.src = `data:image/png;base64,${base64}`;
    await image.decode();
    const canvas = new OffscreenCanvas(image.width, image.height);
    const drawing = canvas.getContext("2d");
    drawing.drawImage(image, 0, 0);
    const data = drawing.getImageData(0, 0, image.width, image.height).data;
    let count = 0;
    for (let i = 0; i < data.length; i += 4) {
      if (Math.max(data[i], data[i + 1], data[i + 2]) - Math.min(data[i], data[i + 1], data[i + 2]) > 60) count++;
    }
    return count;
  }, picture.toString("base64"));
}

before(async () => {
  await run(CINGULUM, ["phantom", "--preset", "crossing", "--voxel-size", "2.5", "--out", path.join(folder, "phantom"), "--quiet"]);
  await run(CINGULUM, ["track", "dwi.nii.gz", "--mask", "mask.nii.gz", "--bvec-frame", "fsl", "--dg", "det", "--nseeds", "500", "--device", "cpu",
    "--out", "tracks.trx", "--quiet"], { cwd: path.join(folder, "phantom") });
  link = await startServer();
  browser = await chromium.launch({ executablePath: process.env.CINGULUM_TEST_CHROMIUM ?? "/usr/bin/chromium", headless: true,
    args: ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"] });
  context = await browser.newContext({ viewport: { width: 1200, height: 800 }, acceptDownloads: true,
    permissions: ["clipboard-read", "clipboard-write"] });
  page = await context.newPage();
  page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
  page.on("pageerror", (error) => complaints.push(error.message));
  await page.goto(link);
  await ready(page);
  await page.waitForFunction(() => Number(document.body.dataset.answered ?? 0) >= 1, null, { timeout: 60000 });
});

after(async () => {
  await browser?.close();
  server?.kill("SIGINT");
  rmSync(folder, { recursive: true, force: true });
});

test("the page loads and shows the files", async () => {
  assert.equal(await page.locator("#message").isVisible(), false, await text("message"));
  assert.ok((await page.locator("#image option").count()) >= 1);
  assert.equal(await page.locator("#tractogram option").count(), 2); // none, tracks.trx
});

test("a click is answered with streamlines from there, and with the command", async () => {
  const box = await page.locator("#scene").boundingBox();
  await answered(() => page.mouse.click(box.x + 0.2 * box.width, box.y + 0.22 * box.height));
  assert.match(await text("answer"), /kept\d+ of 200 seeds/);
  assert.match(await text("command"), /cingulum track .*--seed-sphere/);
});

test("dragging asks again and again, and the last answer is that of the last place", async () => {
  const box = await page.locator("#scene").boundingBox();
  await page.mouse.move(box.x + 0.18 * box.width, box.y + 0.2 * box.height);
  await page.mouse.down();
  for (let i = 0; i < 20; i++) await page.mouse.move(box.x + (0.18 + 0.003 * i) * box.width, box.y + 0.2 * box.height);
  await page.mouse.up();
  await page.waitForTimeout(1500);
  const sphere = (await text("command")).match(/--seed-sphere[ =]'?([-\d.,]+)/)[1].split(",").map(Number);
  await page.click("#measure");
  await page.click("#link");
  const state = JSON.parse(decodeURIComponent(new URL(page.url()).hash.slice(1)));
  for (const axis of [0, 1, 2]) assert.ok(Math.abs(sphere[axis] - state.place[axis]) <= 0.0501, `${sphere} and ${state.place}`);
});

test("a slider changes the command and the answer", async () => {
  const one = await text("answer");
  await answered(() => slide("max-angle", 8));
  assert.match(await text("command"), /--max-angle[ =]8\b/);
  assert.notEqual((await text("answer")).replace(/answered in.*?\)/, ""), one.replace(/answered in.*?\)/, ""));
  await answered(() => slide("nseeds", 500));
  assert.match(await text("answer"), /of 500 seeds/);
});

test("A and B: what both have, what one has alone", async () => {
  await answered(() => slide("max-angle", 30));
  await page.click("#freeze");
  await answered(() => slide("max-angle", 30));
  assert.match(await text("difference"), /A alone0B alone0both, bit for bit\d+voxels, Dice1\.000/);
  await answered(() => slide("max-angle", 6));
  assert.doesNotMatch(await text("difference"), /A alone0B/);
  const seen = await colouredPixels();
  await page.uncheck("[data-part=a]");
  assert.ok((await colouredPixels()) < seen);
  await page.check("[data-part=a]");
  await page.click("#thaw");
  assert.equal(await page.locator("#comparison").isVisible(), false);
});

test("what is on the canvas follows the sliders of the display", async () => {
  await answered(() => slide("max-angle", 30));
  const all = await colouredPixels();
  assert.ok(all > 500, `${all} coloured pixels`);
  await slide("share", 10);
  const some = await colouredPixels();
  assert.ok(some < 0.6 * all, `${some} of ${all}`);
  await slide("share", 100);
  assert.ok(Math.abs((await colouredPixels()) - all) < 0.05 * all);
  await slide("slab", 30);
  assert.ok((await colouredPixels()) > all);
  await slide("slab", 2);
});

test("a file of streamlines is shown", async () => {
  await slide("shortest", 200); // hides the live ones
  const none = await colouredPixels();
  await slide("shortest", 0);
  const live = await colouredPixels();
  await page.selectOption("#tractogram", { label: "tracks.trx" });
  await page.waitForTimeout(1000);
  assert.ok((await colouredPixels()) > live && live > none);
  await page.selectOption("#tractogram", "");
});

test("the saved file has the bytes that the command writes", async () => {
  await answered(() => slide("max-angle", 25));
  const downloads = [];
  page.on("download", (download) => downloads.push(download));
  await page.click("#save");
  for (let i = 0; i < 100 && downloads.length < 2; i++) await page.waitForTimeout(100);
  const saved = downloads.find((each) => each.suggestedFilename().endsWith(".trx"));
  const words = (await text("command")).match(/'[^']*'|\S+/g).slice(1).map((word) => word.replaceAll("'", ""));
  const out = words.indexOf("--out");
  const rest = out >= 0 ? words.filter((_, i) => i !== out && i !== out + 1) : words;
  await run(CINGULUM, [...rest, "--out", "again.trx", "--quiet"], { cwd: path.join(folder, "phantom") });
  assert.deepEqual(readFileSync(await saved.path()), readFileSync(path.join(folder, "phantom/again.trx")));
});

test("a link brings the same state to another tab", async () => {
  await answered(() => slide("max-angle", 17));
  await page.click("#link");
  const other = await context.newPage();
  await other.goto(page.url());
  await ready(other);
  await other.waitForFunction(() => Number(document.body.dataset.answered ?? 0) >= 1, null, { timeout: 60000 });
  assert.equal(await other.textContent("#command"), await text("command"));
  await other.close();
});

test("keys move the cross-hair and the sphere", async () => {
  const sphere = async () => (await text("command")).match(/--seed-sphere[ =]'?([-\d.,]+)/)[1].split(",").map(Number);
  const before = await sphere();
  await page.locator("#scene").focus();
  await answered(() => page.keyboard.press("ArrowRight"));
  await answered(() => page.keyboard.press("+"));
  const now = await sphere();
  assert.ok(Math.abs(now[0] - before[0] - 1) < 0.11, `${before} ${now}`);
  assert.equal(now[3], before[3] + 0.5);
});

test("labels and contrast pass axe", async () => {
  const found = await new AxeBuilder({ page }).analyze();
  assert.deepEqual(found.violations.map((each) => `${each.id}: ${each.nodes.map((node) => node.target).join(" ")}`), []);
});

test("the page complained of nothing", () => assert.deepEqual(complaints, []));
