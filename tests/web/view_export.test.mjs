// The folder of `cingulum view --export` in Chromium, served by a plain server of files: it tracks by WebGPU (a software
// adapter), and what it saves are the bytes of the command that it shows, for every getter that the field allows. Run by
// `make test-web` through tests/view/test_export_page.py.
import assert from "node:assert/strict";
import { cpSync, createReadStream, readFileSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import path from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { CINGULUM, folder, launch, listen, makePhantom, phantom, ready, run, slide, stateOf, violations } from "./page_test.mjs";

const TYPES = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".wasm": "application/wasm" };
let server, browser, base, withGpu;
const foreign = [];
const complaints = [];

async function exported(name, options) {
  await run(CINGULUM, ["view", "dwi.nii.gz", "--mask", "mask.nii.gz", "--bvec-frame", "fsl", "--device", "cpu", ...options, "--export", path.join(folder, name), "--quiet"],
    { cwd: phantom });
}

/** A page of an exported folder, with nothing but that folder in reach. The adapter here is software, which a page takes
 * only where it is chosen: `state` says so unless told otherwise. */
async function open(name, state = {}, context = withGpu) {
  state = { adapter: true, ...state };
  const page = await context.newPage();
  page.setDefaultTimeout(120000);
  listen(page, complaints);
  await page.route("**/*", (route) => {
    const url = route.request().url();
    if (url.startsWith(base) || url.startsWith("data:") || url.startsWith("blob:")) return route.continue();
    foreign.push(url);
    return route.abort();
  });
  await page.goto(`${base}/${name}/#${encodeURIComponent(JSON.stringify(state))}`);
  await ready(page);
  return page;
}

async function answered(page, count = 1) {
  await page.waitForFunction((until) => Number(document.body.dataset.answered ?? 0) >= until || !document.getElementById("message").hidden, count,
    { timeout: 120000 });
  assert.equal(await page.locator("#message").isVisible(), false, await page.textContent("#message"));
}

const engineOf = (page) => page.evaluate(() => document.body.dataset.engine);

/** What the page saves, and what its command writes. */
async function savedAndWritten(page) {
  const downloads = [];
  page.on("download", (download) => downloads.push(download));
  await page.click("#save");
  for (let i = 0; i < 600 && downloads.length < 2; i++) await page.waitForTimeout(100);
  const saved = readFileSync(await downloads.find((each) => each.suggestedFilename().endsWith(".trx")).path());
  const sidecar = JSON.parse(readFileSync(await downloads.find((each) => each.suggestedFilename().endsWith(".json")).path(), "utf8"));
  const command = await page.textContent("#command");
  assert.equal(sidecar.command, command);
  const words = command.match(/'[^']*'|\S+/g).slice(1).map((word) => word.replaceAll("'", ""));
  await run(CINGULUM, [...words.slice(0, words.indexOf("--out")), "--out", "again.trx", "--force", "--device", "cpu", "--quiet"], { cwd: phantom });
  return { saved, written: readFileSync(path.join(phantom, "again.trx")), command, sidecar,
    theirs: JSON.parse(readFileSync(path.join(phantom, "again.trx.json"), "utf8")) };
}

before(async () => {
  await makePhantom();
  await exported("csd", []);
  server = createServer((request, response) => {
    let file = path.join(folder, decodeURIComponent(new URL(request.url, "http://x").pathname));
    try {
      if (statSync(file).isDirectory()) file = path.join(file, "index.html");
      statSync(file);
    } catch {
      return response.writeHead(404).end();
    }
    response.writeHead(200, { "Content-Type": TYPES[path.extname(file)] ?? "application/octet-stream" });
    createReadStream(file).pipe(response);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  base = `http://127.0.0.1:${server.address().port}`;
  browser = await launch("--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader", "--disable-gpu-watchdog");
  withGpu = await browser.newContext({ viewport: { width: 700, height: 500 }, acceptDownloads: true, permissions: ["clipboard-read", "clipboard-write"] });
});

after(() => server?.close());

for (const getter of ["prob", "det", "closest", "ptt"]) {
  test(`${getter}: what the browser's GPU tracked has the bytes that the command writes`, async () => {
    const page = await open("csd", { place: [0, 0, 0], plan: { dg: getter, radius: 4, nseeds: 50 } });
    await answered(page);
    assert.equal(await engineOf(page), "gpu");
    assert.match(await page.textContent("#engine"), /SwiftShader.*bits are those of the CPU/i);
    const { saved, written, command } = await savedAndWritten(page);
    assert.match(command, new RegExp(`--dg=${getter} `));
    assert.ok(written.length > 10000, `${written.length} bytes are too few to say anything`);
    assert.deepEqual(saved, written);
    await page.close();
  });
}

for (const [name, options] of [["tensor", ["--dg", "tensor"]], ["boot", ["--dg", "boot"]], ["half", ["--amplitudes", "--field-precision", "half"]]]) {
  test(`the field of ${options.join(" ")}: the bytes that the command writes`, async () => {
    await exported(name, options);
    const page = await open(name, { place: [0, 0, 0], plan: { radius: 4, nseeds: 50 } });
    await answered(page);
    assert.equal(await engineOf(page), "gpu");
    const { saved, written } = await savedAndWritten(page);
    assert.ok(written.length > 10000, `${written.length} bytes are too few to say anything`);
    assert.deepEqual(saved, written);
    await page.close();
  });
}

test("the sidecar says what that of the command says", async () => {
  const page = await open("csd", { place: [0, 0, 0], plan: { dg: "prob", radius: 4, nseeds: 50, "max-angle": 20 } });
  await answered(page);
  const { saved, sidecar, theirs } = await savedAndWritten(page);
  for (const name of ["rules", "plan", "end_reason_codes", "result"]) assert.deepEqual(sidecar[name], theirs[name], name);
  // The exported field reaches farther: it is prepared for lower thresholds and every getter.
  const { fitted_voxels: fitted, ...model } = sidecar.model;
  const { fitted_voxels: fittedThere, ...modelThere } = theirs.model;
  const { bytes: fieldBytes, replaced, ...field } = sidecar.field;
  const { bytes: fieldBytesThere, replaced: replacedThere, sphere, ...fieldThere } = theirs.field;
  assert.ok(sphere.length > 0 && !("sphere" in field)); // among the arguments
  assert.deepEqual([model, field], [modelThere, fieldThere]);
  assert.ok(fitted >= fittedThere && fieldBytes >= fieldBytesThere && replaced >= replacedThere);
  assert.ok(sidecar.result.kept > 10 && sidecar.result.steps > 100);
  assert.equal(sidecar.bytes, theirs.bytes);
  assert.equal(sidecar.bytes, saved.length);
  assert.equal(sidecar.exact, true);
  assert.match(sidecar.run.device, /SwiftShader/i);
  // What the page was given stands there as what the command was given; what it was not told of is the default.
  const { options, given } = sidecar.arguments;
  for (const name of ["dg", "max-angle", "nseeds", "seed-sphere", "step-size", "mask", "bvec-frame", "stop-threshold", "interpolate"]) {
    assert.deepEqual(options[name], theirs.arguments.options[name], name);
  }
  assert.deepEqual([...given].sort(), theirs.arguments.given.filter((name) => given.includes(name)).sort());
  for (const name of ["dg", "max-angle", "nseeds", "seed-sphere", "mask"]) assert.ok(given.includes(name), name);
  await page.close();
});

test("where the truth is known streamlines are scored as `cingulum score` does", async () => {
  const page = await open("csd", { place: [5, 0, 0], plan: { dg: "prob", radius: 12, nseeds: 300 }, adapter: false });
  await answered(page);
  const shown = await page.textContent("#answer");
  await savedAndWritten(page);
  const { stdout } = await run(CINGULUM, ["score", "again.trx", "--truth", ".", "--json"], { cwd: phantom });
  const told = JSON.parse(stdout);
  assert.ok(told.valid > 0 && told.no_connection > 0, stdout);
  for (const name of ["valid", "wrong_path", "invalid", "no_connection"]) {
    assert.ok(shown.includes(`${name.replace("_", " ")}${(100 * told[name]).toFixed(1)} %`), `${name} ${told[name]}: ${shown}`);
  }
  assert.doesNotMatch(await page.textContent("#command"), /score/);
  await page.close();
});

test("an adapter in software is not taken by itself, and where one asks for it", async () => {
  const page = await open("csd", { place: [0, 0, 0], plan: { dg: "prob", radius: 4, nseeds: 50 }, adapter: false });
  await answered(page);
  assert.equal(await engineOf(page), "processor");
  assert.match(await page.textContent("#engine"), /by the processor.*SwiftShader.* is a GPU in software/i);
  const { saved, written, sidecar } = await savedAndWritten(page);
  assert.deepEqual(saved, written);
  assert.match(sidecar.run.device, /processor/);
  await page.click("#use-adapter");
  await page.waitForFunction(() => document.body.dataset.engine === "gpu", null, { timeout: 60000 });
  assert.match(await page.textContent("#engine"), /SwiftShader.*bits are those of the CPU/i);
  await page.click("#link");
  assert.equal(stateOf(page).adapter, true);
  await page.close();
});

test("a GPU that is lost is told, and the next click is answered exactly", async () => {
  const context = await browser.newContext({ viewport: { width: 700, height: 500 }, acceptDownloads: true });
  await context.addInitScript(() => {
    globalThis.devices = [];
    const request = GPUAdapter.prototype.requestDevice;
    GPUAdapter.prototype.requestDevice = async function (...words) {
      const device = await request.apply(this, words);
      globalThis.devices.push(device);
      return device;
    };
  });
  const page = await open("csd", { place: [0, 0, 0], plan: { dg: "prob", radius: 4, nseeds: 50 } }, context);
  const turn = (to) => slide(page, "max-angle", to);
  await answered(page);
  assert.equal(await engineOf(page), "gpu");
  // While nobody waits for it: the sentence stands until the next click.
  await page.evaluate(() => globalThis.devices.at(-1).destroy());
  await page.waitForFunction(() => document.body.dataset.engine === "lost");
  assert.match(await page.textContent("#engine"), /SwiftShader.* was lost: .*The next click is answered, with the same bits/i);
  await turn(21);
  await page.waitForFunction(() => document.getElementById("command").textContent.includes("--max-angle=21"), null, { timeout: 60000 });
  assert.equal(await engineOf(page), "gpu");
  assert.equal(await page.evaluate(() => globalThis.devices.length), 2);
  const { saved, written } = await savedAndWritten(page);
  assert.deepEqual(saved, written);
  // In the middle of a request: it fails with a sentence, and the next one is the processor's, since it was the second time.
  await page.evaluate(() => {
    const device = globalThis.devices.at(-1);
    const submit = device.queue.submit.bind(device.queue);
    device.queue.submit = (commands) => {
      submit(commands);
      device.destroy();
    };
  });
  await turn(22);
  await page.waitForFunction(() => !document.getElementById("message").hidden, null, { timeout: 60000 });
  assert.match(await page.textContent("#message"), /was lost .*the next click is answered, with the same bits/);
  await turn(23);
  await page.waitForFunction(() => document.getElementById("command").textContent.includes("--max-angle=23"), null, { timeout: 60000 });
  assert.equal(await page.locator("#message").isVisible(), false);
  assert.equal(await engineOf(page), "processor");
  assert.match(await page.textContent("#engine"), /was lost 2 times/);
  const last = await savedAndWritten(page);
  assert.deepEqual(last.saved, last.written);
  await context.close();
});

test("a click, a slider, pictures of slices and a link are answered as by a server", async () => {
  const wide = await browser.newContext({ viewport: { width: 1200, height: 800 }, permissions: ["clipboard-read", "clipboard-write"] });
  const page = await open("csd", { place: [0, 0, 0], plan: { dg: "prob", nseeds: 50 } }, wide);
  await answered(page);
  const box = await page.locator("#scene").boundingBox();
  const before = await page.textContent("#command");
  await page.mouse.click(box.x + 0.2 * box.width, box.y + 0.22 * box.height);
  await page.waitForFunction((was) => document.getElementById("command").textContent !== was, before, { timeout: 60000 });
  await slide(page, "max-angle", 12);
  await page.waitForFunction(() => document.getElementById("command").textContent.includes("--max-angle=12"), null, { timeout: 60000 });
  for (const picture of ["glyphs", "peaks"]) await page.check(`#${picture}`);
  await page.waitForTimeout(500);
  assert.equal(await page.locator("#message").isVisible(), false, await page.textContent("#message"));
  for (const picture of ["glyphs", "peaks"]) await page.uncheck(`#${picture}`); // a software renderer draws them slowly
  await page.click("#link");
  const other = await open("csd", stateOf(page), wide);
  await answered(other);
  assert.equal(await other.textContent("#command"), await page.textContent("#command"));
  assert.deepEqual(await violations(other), []);
  await wide.close();
});

test("an adapter whose bits are others is named, and is used where one asks for it, as not exact", async () => {
  for (const [what, change] of [["arithmetic", (check) => (check.arithmetic = "0".repeat(16))], ["prob", (check) => (check.getters.prob.sum = "0".repeat(16))]]) {
    const copy = `differs-${what}`;
    cpSync(path.join(folder, "csd"), path.join(folder, copy), { recursive: true });
    const listing = path.join(folder, copy, "api/files");
    const json = JSON.parse(readFileSync(listing, "utf8"));
    change(json.check);
    writeFileSync(listing, JSON.stringify(json));
    const page = await open(copy, { place: [0, 0, 0], plan: { dg: "prob", radius: 4, nseeds: 50 } });
    await answered(page);
    assert.equal(await engineOf(page), "processor");
    assert.match(await page.textContent("#engine"), new RegExp(`SwiftShader.* does not give the bits of the CPU: .*${what}`, "i"));
    // The processor is exact.
    const { saved, written } = await savedAndWritten(page);
    assert.deepEqual(saved, written);
    await page.click("#use-inexact");
    await page.waitForFunction(() => document.body.dataset.engine === "inexact", null, { timeout: 60000 });
    assert.match(await page.textContent("#engine"), /SwiftShader.*not exact/i);
    await page.close();
  }
});

test("without WebGPU the processor tracks, exactly", async () => {
  const context = await browser.newContext({ viewport: { width: 700, height: 500 }, acceptDownloads: true });
  await context.addInitScript(() => Object.defineProperty(navigator, "gpu", { value: undefined }));
  for (const getter of ["prob", "det", "closest", "ptt"]) {
    const page = await open("csd", { place: [0, 0, 0], plan: { dg: getter, radius: 4, nseeds: 50 } }, context);
    await answered(page);
    assert.equal(await engineOf(page), "processor");
    assert.match(await page.textContent("#engine"), /no WebGPU/);
    const { saved, written } = await savedAndWritten(page);
    assert.deepEqual(saved, written);
    await page.close();
  }
  await context.close();
});

test("opened as a file the page says what it needs", async () => {
  const context = await browser.newContext();
  const page = await context.newPage();
  await page.goto(pathToFileURL(path.join(folder, "csd/index.html")).href);
  await page.waitForTimeout(500);
  assert.match(await page.textContent("#message"), /needs a web server.*python3 -m http\.server/s);
  assert.equal(await page.locator("#message").isVisible(), true);
  await context.close();
});

test("the pages asked nobody else for anything and complained of nothing", () => {
  assert.deepEqual(foreign, []);
  assert.deepEqual(complaints, []);
});
