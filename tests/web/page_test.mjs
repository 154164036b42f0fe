// What tests of pages in Chromium share: packages, a folder with the phantom, the browser, and what is done to a page. The
// folder and the browser go when the tests of a file have ended. CINGULUM names the program, CINGULUM_TEST_NODE_PACKAGES the
// packages of this folder.
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { after } from "node:test";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";

const packages = path.join(process.env.CINGULUM_TEST_NODE_PACKAGES, "node_modules");
const load = (name) => import(pathToFileURL(path.join(packages, name)).href);
const { chromium } = await load("playwright-core/index.mjs");
const AxeBuilder = (await load("@axe-core/playwright/dist/index.mjs")).default;

export const CINGULUM = process.env.CINGULUM;
export const run = promisify(execFile);
export const folder = mkdtempSync(path.join(tmpdir(), "cingulum-test-"));
export const phantom = path.join(folder, "phantom");
let browser;

after(async () => {
  await browser?.close();
  rmSync(folder, { recursive: true, force: true });
});

export async function makePhantom() {
  await run(CINGULUM, ["phantom", "--preset", "crossing", "--voxel-size", "2.5", "--out", phantom, "--quiet"]);
}

/** What is drawn is drawn in software, wherever the tests run. */
export async function launch(...flags) {
  browser = await chromium.launch({ executablePath: process.env.CINGULUM_TEST_CHROMIUM ?? "/usr/bin/chromium", headless: true,
    args: ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", ...flags] });
  return browser;
}

/** Adds what the page complains of to `complaints`. */
export function listen(page, complaints) {
  page.on("console", (message) => {
    // The page says that it has no icon; a browser that leaves it before it read so may ask for one by itself.
    if (message.type() !== "error" || message.location().url.endsWith("/favicon.ico")) return;
    complaints.push(`${message.text()} (${message.location().url})`);
  });
  page.on("pageerror", (error) => complaints.push(error.message));
}

export async function ready(page) {
  await page.waitForFunction(() => document.body.dataset.ready === "yes", null, { timeout: 60000 });
}

export async function slide(page, name, value) {
  await page.locator(`#slider-${name}`).evaluate((input, to) => {
    input.value = String(to);
    input.dispatchEvent(new Event("input", { bubbles: true }));
  }, value);
}

/** The state of a page as its address has it after "Link". */
export function stateOf(page) {
  return JSON.parse(decodeURIComponent(new URL(page.url()).hash.slice(1)));
}

/** What axe finds of labels and contrast. */
export async function violations(page) {
  const found = await new AxeBuilder({ page }).analyze();
  return found.violations.map((each) => `${each.id}: ${each.nodes.map((node) => node.target).join(" ")}`);
}
