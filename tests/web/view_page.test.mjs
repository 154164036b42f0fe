// The page of `cingulum view` in Chromium, against the real server: loading, clicking, dragging, sliders, A and B, the link,
// what is on the canvas, large files and their order, graphics and devices that are lost, saving, access by keyboard and
// labels, and what a page of another port sees. Run by `make test-web`
// through tests/view/test_page.py. CINGULUM_PICTURES names a folder for the pictures of README and docs/view.md.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import path from "node:path";
import { after, before, test } from "node:test";
import * as pages from "./page_test.mjs";
import { CINGULUM, launch, listen, makePhantom, phantom, ready, run, stateOf, violations } from "./page_test.mjs";

let server, browser, context, page, link;
const complaints = [];

function startServer(files, environment = {}) {
  const started = spawn(CINGULUM, ["view", "dwi.nii.gz", "--mask", "mask.nii.gz", "--bvec-frame", "fsl", ...files, "--device", "cpu", "--port", "0", "--no-open"],
    { cwd: phantom, stdio: ["ignore", "pipe", "pipe"], env: { ...process.env, ...environment } });
  let shown = "";
  return new Promise((resolve, reject) => {
    const take = (data) => {
      shown += data;
      const found = shown.match(/http:\/\/127\.0\.0\.1:\d+\/open\/\S+/);
      if (found) resolve({ process: started, link: found[0] });
    };
    started.stdout.on("data", take);
    started.stderr.on("data", take);
    started.on("exit", (code) => reject(new Error(`cingulum view ended with ${code}: ${shown}`)));
  });
}

// A file whose neighbours lie beside each other, as bundles do: short lines along z on a grid in x and y, row after row.
const MANY = { rows: 300, columns: 400, mm: 0.25 };
function writeManyLines(file) {
  const count = MANY.rows * MANY.columns;
  const numbers = new Float32Array(9 * count + 3);
  for (let line = 0; line < count; line++) {
    const x = MANY.mm * (Math.floor(line / MANY.columns) - MANY.rows / 2);
    const y = MANY.mm * ((line % MANY.columns) - MANY.columns / 2);
    numbers.set([x, y, -1, x, y, 1, NaN, NaN, NaN], 9 * line);
  }
  numbers.fill(Infinity, 9 * count);
  const head = `mrtrix tracks\ndatatype: Float32LE\ncount: ${count}\nfile: . 128\nEND\n`;
  writeFileSync(file, Buffer.concat([Buffer.from(head.padEnd(128, "\n")), Buffer.from(numbers.buffer)]));
}

/** Does what is given and waits for its answer: that of an earlier request may be on its way still. */
async function answered(action) {
  const count = () => page.evaluate(() => Number(document.body.dataset.answered ?? "0"));
  const until = (await count()) + 1;
  await action();
  await page.waitForFunction((least) => Number(document.body.dataset.answered ?? 0) >= least, until, { timeout: 60000 });
  for (let known = until - 1, now = await count(); known !== now; now = await count()) {
    known = now;
    await page.waitForTimeout(300);
  }
}

const text = (id) => page.textContent(`#${id}`);
const slide = (name, value) => pages.slide(page, name, value);

/** How many pixels of the canvas have a colour: streamlines have, the image has none. */
async function colouredPixels(of = page) {
  return (await colouredMask(of)).length;
}

/** Places of the coloured pixels, row by row in the canvas. */
async function colouredMask(of = page) {
  await of.waitForTimeout(300);
  const picture = await of.locator("#scene").screenshot();
  return of.evaluate(async (base64) => {
    const image = new Image();
    image.src = `data:image/png;base64,${base64}`;
    await image.decode();
    const canvas = new OffscreenCanvas(image.width, image.height);
    const drawing = canvas.getContext("2d");
    drawing.drawImage(image, 0, 0);
    const data = drawing.getImageData(0, 0, image.width, image.height).data;
    const places = [];
    for (let i = 0; i < data.length; i += 4) {
      if (Math.max(data[i], data[i + 1], data[i + 2]) - Math.min(data[i], data[i + 1], data[i + 2]) > 60) {
        places.push([(i / 4) % image.width, Math.floor(i / 4 / image.width)]);
      }
    }
    return places;
  }, picture.toString("base64"));
}

/** The share of the places of `some` that lie within two pixels of one of `others`. */
function shareBeside(some, others) {
  const near = new Set();
  for (const [x, y] of others) for (let dx = -2; dx <= 2; dx++) for (let dy = -2; dy <= 2; dy++) near.add(10000 * (y + dy) + x + dx);
  return some.filter(([x, y]) => near.has(10000 * y + x)).length / some.length;
}

before(async () => {
  await makePhantom();
  await run(CINGULUM, ["track", "dwi.nii.gz", "--mask", "mask.nii.gz", "--bvec-frame", "fsl", "--dg", "det", "--nseeds", "500", "--device", "cpu", "--save-seeds",
    "--out", "tracks.trx", "--quiet"], { cwd: phantom });
  await run(CINGULUM, ["track", "dwi.nii.gz", "--mask", "mask.nii.gz", "--bvec-frame", "fsl", "--dg", "prob", "--seed-sphere=0,0,0,3", "--nseeds", "200", "--device", "cpu",
    "--out", "here.trx", "--quiet"], { cwd: phantom });
  writeManyLines(path.join(phantom, "many.tck"));
  ({ process: server, link } = await startServer(["tracks.trx", "truth.trx", "here.trx", "many.tck"]));
  browser = await launch();
  context = await browser.newContext({ viewport: { width: 1200, height: 800 }, acceptDownloads: true,
    permissions: ["clipboard-read", "clipboard-write"] });
  page = await context.newPage();
  listen(page, complaints);
  await page.goto(link);
  await ready(page);
  await page.waitForFunction(() => Number(document.body.dataset.answered ?? 0) >= 1, null, { timeout: 60000 });
});

after(() => server?.kill("SIGINT"));

test("the page loads and shows the files", async () => {
  assert.equal(await page.locator("#message").isVisible(), false, await text("message"));
  assert.ok((await page.locator("#image option").count()) >= 1);
  assert.equal(await page.locator("#tractogram option").count(), 5); // none, tracks.trx, truth.trx, here.trx, many.tck
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
  const state = stateOf(page);
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

test("where the truth is known A and B have their scores", async () => {
  await answered(() => slide("max-angle", 30));
  assert.match(await text("answer"), /valid\d+\.\d %.*no connection\d+\.\d %/);
  await page.click("#freeze");
  await answered(() => slide("max-angle", 6));
  assert.match(await text("difference"), /valid\d+\.\d % and \d+\.\d %/);
  assert.doesNotMatch(await text("command"), /score/);
  await page.click("#thaw");
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

test("streamlines of a file are drawn where the same ones of an answer are", async () => {
  const other = await context.newPage();
  const opened = (state) => other.goto(`${new URL(page.url()).origin}/#${encodeURIComponent(JSON.stringify(state))}`);
  await opened({ place: [0, 0, 0], plan: { dg: "prob" } });
  await ready(other);
  await other.waitForFunction(() => Number(document.body.dataset.answered ?? 0) >= 1, null, { timeout: 60000 });
  assert.match(await other.textContent("#command"), /--seed-sphere=0,0,0,3/);
  const live = await colouredMask(other);
  assert.ok(live.length > 500, `${live.length} coloured pixels`);
  // Nothing is as long as that: the answer is empty, and the file alone is seen.
  await pages.slide(other, "min-length", 100);
  await other.waitForFunction(() => /kept0 of/.test(document.getElementById("answer").textContent), null, { timeout: 60000 });
  assert.ok((await colouredPixels(other)) < 0.1 * live.length);
  await other.selectOption("#tractogram", { label: "here.trx" });
  await other.waitForFunction(() => document.body.dataset.fileIsWhole === "true");
  const file = await colouredMask(other);
  assert.ok(shareBeside(file, live) > 0.97, `${shareBeside(file, live)} of the file beside the answer`);
  assert.ok(shareBeside(live, file) > 0.97, `${shareBeside(live, file)} of the answer beside the file`);
  // All of them begin in a sphere about the cross-hair: one that they must meet leaves all, one that they must not meet none.
  await other.click("[data-sphere=include]");
  const met = await colouredMask(other);
  assert.ok(met.length > 0.9 * file.length, `${met.length} of ${file.length} pixels`);
  await other.click("[data-sphere=clear]");
  await other.click("[data-sphere=exclude]");
  assert.ok((await colouredPixels(other)) < 0.1 * file.length);
  await other.close();
});

test("of a large file a sample of the whole comes first, then what is nearest to the cross-hair", async () => {
  const other = await context.newPage();
  const messages = [];
  other.on("request", (request) => { // in the order in which they are asked for: two are on their way at once
    const found = /\/api\/lines\/[^/]+\/(\d+)$/.exec(request.url());
    if (found) messages.push({ number: Number(found[1]), body: request.response().then((response) => response.body()) });
  });
  const place = [30, -40, 0];
  await other.goto(`${new URL(page.url()).origin}/#${encodeURIComponent(JSON.stringify({ place, plan: { dg: "det", nseeds: 50, "min-length": 100, radius: 3 }, filter: { shortestMm: 0, longestMm: 500, share: 1, slabMm: 0.5 } }))}`);
  await ready(other);
  await other.selectOption("#tractogram", { label: "many.tck" });
  await other.waitForFunction(() => document.body.dataset.fileIsWhole === "true", null, { timeout: 60000 });
  const count = MANY.rows * MANY.columns;
  assert.equal(await other.evaluate(() => document.body.dataset.fileLines), String(count));
  const bodies = await Promise.all(messages.map(async ({ number, body }) => ({ number, body: await body })));
  const kindOf = (body) => body.readUInt16LE(4);
  const linesOf = (body) => Array.from({ length: body.readUInt32LE(12) }, (_, i) => body.readUInt32LE(36 + 4 * (body.readUInt32LE(12) + 1) + 4 * i));
  // Each line once, whatever the order.
  const seen = new Uint8Array(count);
  for (const { body } of bodies) if (kindOf(body) === 19) for (const line of linesOf(body)) seen[line]++;
  assert.ok(seen.every((times) => times === 1));
  const sample = bodies.findIndex(({ body }) => kindOf(body) === 20);
  assert.deepEqual(bodies.slice(0, sample + 1).map(({ number }) => number), Array.from({ length: sample + 1 }, (_, i) => i));
  // A tenth of the file has about a tenth of the sample.
  const tenths = new Array(10).fill(0);
  const first = linesOf(bodies[0].body);
  for (const line of first) tenths[Math.floor((10 * line) / count)]++;
  assert.ok(tenths.every((some) => some > 0.05 * first.length && some < 0.2 * first.length), tenths.join(" "));
  // By the distance of their boxes from the cross-hair, which is where the page says it is.
  await other.click("#link");
  const here = stateOf(other).place;
  assert.ok(here.every((mm, axis) => Math.abs(mm - place[axis]) < 2), `${here}`);
  const boxes = bodies[sample].body;
  const distance = (number) => Math.hypot(...[0, 1, 2].map((axis) => {
    const at = 16 + 24 * (number - sample - 1) + 4 * axis;
    return Math.max(boxes.readFloatLE(at) - here[axis], 0, here[axis] - boxes.readFloatLE(at + 12));
  }));
  const asked = bodies.slice(sample + 1).map(({ number }) => number);
  assert.ok(asked.length >= 5 && asked.length === boxes.readUInt32LE(12), `${asked}`);
  const distances = asked.map(distance);
  assert.deepEqual(distances, [...distances].sort((a, b) => a - b));
  assert.notDeepEqual(asked, [...asked].sort((a, b) => a - b), "the order of the file");
  // Three slices and the rendering, a quarter of the canvas each. The lines fill the plane z = 0: one slice shows all of
  // it, the two others what lies in their slab, a strip as long as the plane is there.
  const { width, height } = await other.locator("#scene").boundingBox();
  const extents = (mask) => [0, 1, 2, 3].map((quarter) => {
    const [left, top] = [(quarter % 2) * width / 2, Math.floor(quarter / 2) * height / 2];
    const own = mask.filter(([x, y]) => x >= left && x < left + width / 2 && y >= top && y < top + height / 2);
    const extent = (axis) => own.reduce((most, at) => Math.max(most, at[axis]), 0) - own.reduce((least, at) => Math.min(least, at[axis]), 1e9);
    return own.length === 0 ? [0, 0] : [extent(0), extent(1)];
  });
  const all = extents(await colouredMask(other));
  const [planeWidth, planeHeight] = all.reduce((one, next) => (next[0] * next[1] > one[0] * one[1] ? next : one));
  const strips = all.filter(([w, h]) => h < 0.15 * planeHeight && w > 0.5 * Math.min(planeWidth, planeHeight));
  assert.equal(strips.length, 2, JSON.stringify(all));
  // The lines that meet a sphere are seen, from all messages, and no others.
  await other.click("[data-sphere=include]");
  for (const [w, h] of extents(await colouredMask(other))) assert.ok(w < 0.2 * planeWidth && h < 0.2 * planeHeight, `${w} x ${h} pixels about the sphere`);
  await other.close();
});

test("what comes of an older request after a newer one's is not shown", async () => {
  const other = await context.newPage();
  let first = null;
  await other.routeWebSocket(/\/live$/, (socket) => {
    const there = socket.connectToServer();
    socket.onMessage((message) => there.send(message));
    there.onMessage((message) => {
      socket.send(message);
      if (message.readUInt16LE(4) !== 17) return; // the end of an answer
      if (first && message.readUInt32LE(8) > first.readUInt32LE(8)) socket.send(first);
      first ??= message;
    });
  });
  await other.goto(`${new URL(page.url()).origin}/#${encodeURIComponent(JSON.stringify({ place: [0, 0, 0] }))}`);
  await ready(other);
  await other.waitForFunction(() => Number(document.body.dataset.answered ?? 0) >= 1, null, { timeout: 60000 });
  await other.waitForTimeout(500);
  const before = Number(await other.evaluate(() => document.body.dataset.answered));
  await pages.slide(other, "max-angle", 14);
  await other.waitForFunction((count) => Number(document.body.dataset.answered) > count, before, { timeout: 60000 });
  await other.waitForTimeout(500);
  assert.equal(Number(await other.evaluate(() => document.body.dataset.answered)), before + 1);
  assert.match(await other.textContent("#command"), /--max-angle=14/);
  await other.close();
});

test("graphics that are lost are told, and come back", async () => {
  await page.selectOption("#tractogram", { label: "tracks.trx" });
  await page.waitForFunction(() => document.body.dataset.fileIsWhole === "true");
  await slide("share", 50);
  await answered(() => slide("max-angle", 30));
  const before = await colouredMask();
  assert.ok(before.length > 500);
  await page.evaluate(() => {
    globalThis.losing = document.getElementById("scene").getContext("webgl2").getExtension("WEBGL_lose_context");
    globalThis.losing.loseContext();
  });
  await page.waitForFunction(() => document.body.dataset.graphics === "lost");
  assert.match(await text("message"), /graphics of this page were lost/);
  assert.equal(await page.locator("#message").isVisible(), true);
  await page.evaluate(() => globalThis.losing.restoreContext());
  await page.waitForFunction(() => document.body.dataset.graphics === "restored");
  assert.match(await text("message"), /are back/);
  await answered(() => slide("max-angle", 30)); // the sentence goes, and the canvas has its size again
  assert.equal(await page.locator("#message").isVisible(), false);
  const after = await colouredMask();
  assert.ok(Math.abs(after.length - before.length) < 0.02 * before.length, `${after.length} pixels, ${before.length} before`);
  assert.ok(shareBeside(after, before) > 0.99);
  await slide("share", 100);
  await page.selectOption("#tractogram", "");
});

test("a device that is lost under the server is told, and the next click is answered", async () => {
  const losing = await startServer([], { CINGULUM_TEST_LOST_DEVICE: "2" });
  const own = await browser.newContext({ viewport: { width: 700, height: 500 } });
  const other = await own.newPage();
  try {
    await other.goto(losing.link);
    await ready(other);
    await other.waitForFunction(() => Number(document.body.dataset.answered ?? 0) >= 1, null, { timeout: 60000 });
    const first = await other.textContent("#answer");
    const turn = (to) => pages.slide(other, "max-angle", to);
    const angle = Number(await other.inputValue("#slider-max-angle"));
    await turn(angle - 10);
    await other.waitForFunction(() => !document.getElementById("message").hidden, null, { timeout: 60000 });
    assert.match(await other.textContent("#message"), /was lost.*from now on the CPU answers, with the same streamlines/);
    await turn(angle);
    await other.waitForFunction(() => Number(document.body.dataset.answered ?? 0) >= 2, null, { timeout: 60000 });
    assert.equal(await other.locator("#message").isVisible(), false);
    const numbers = (answer) => answer.replace(/answered in.*?\)/, "");
    assert.equal(numbers(await other.textContent("#answer")), numbers(first));
  } finally {
    await own.close();
    losing.process.removeAllListeners("exit");
    losing.process.kill("SIGINT");
  }
});

test("streamlines of a file are coloured and chosen by its numbers and groups", async () => {
  await slide("shortest", 200); // hides the live ones
  await page.selectOption("#tractogram", { label: "tracks.trx" });
  await page.waitForTimeout(500);
  await slide("shortest", 0);
  await page.selectOption("#colour", { label: "seed_index, of the file" });
  await page.waitForFunction(() => /^seed_index: \S+ to \S+$/.test(document.getElementById("bar-text").textContent));
  const all = await colouredPixels();
  await slide("least", 90);
  assert.ok((await colouredPixels()) < all);
  await slide("least", 0);
  await page.selectOption("#tractogram", { label: "truth.trx" });
  await page.waitForTimeout(500);
  assert.equal(await page.inputValue("#colour"), "direction"); // the columns are another file's
  await page.selectOption("#colour", { label: "group, of the file" });
  await page.waitForFunction(() => document.getElementById("bar-text").textContent.includes(", "));
  assert.equal(await page.locator("#slider-least").isVisible(), false);
  await page.selectOption("#tractogram", "");
  assert.equal(await page.inputValue("#colour"), "direction");
});

test("peaks and distributions are drawn on the slices", async () => {
  await slide("shortest", 200);
  const none = await colouredPixels();
  for (const name of ["peaks", "glyphs"]) {
    await page.check(`#${name}`);
    await page.waitForTimeout(1500);
    assert.ok((await colouredPixels()) > none + 500, name);
    await page.uncheck(`#${name}`);
  }
  await slide("shortest", 0);
});

test("spheres are part of the command, and the cross-hair takes one along", async () => {
  const spheres = async (kind) => [...(await text("command")).matchAll(new RegExp(`--${kind}[ =]'?([-\\d.,]+)`, "g"))].map((each) => each[1].split(",").map(Number));
  await answered(() => page.click("[data-sphere=stop]"));
  const [stop] = await spheres("stop");
  const [seeds] = await spheres("seed-sphere");
  assert.deepEqual(stop.slice(0, 3), seeds.slice(0, 3));
  await page.click("#sphere-list button[aria-pressed]");
  assert.equal(await page.getAttribute("#sphere-list button[aria-pressed]", "aria-pressed"), "true");
  await page.locator("#scene").focus();
  await answered(() => page.keyboard.press("ArrowRight"));
  const [moved] = await spheres("stop");
  assert.ok(Math.abs(moved[0] - stop[0] - 1) < 0.11, `${stop} ${moved}`);
  assert.deepEqual(await spheres("seed-sphere"), [seeds]); // the seeds stayed
  await answered(() => page.click("[data-sphere=include]"));
  assert.equal((await spheres("include")).length, 1);
  await answered(() => page.click("[data-sphere=clear]"));
  assert.doesNotMatch(await text("command"), /--stop|--include/);
  await answered(() => page.keyboard.press("ArrowLeft"));
});

test("what is not a number in a link is not taken, and the page works", async () => {
  const other = await context.newPage();
  const wrong = { plan: { dg: "nothing", "max-angle": null, nseeds: "x", "step-size": 1e999 }, colour: "mauve", place: [null, 1, 2] };
  await other.goto(`${new URL(page.url()).origin}/#${encodeURIComponent(JSON.stringify(wrong))}`);
  await ready(other);
  await other.waitForFunction(() => Number(document.body.dataset.answered ?? 0) >= 1, null, { timeout: 60000 });
  assert.doesNotMatch(await other.textContent("#command"), /nan|null|inf/i);
  await other.close();
});

test("a page of another port reads nothing and opens no socket", async () => {
  const ours = new URL(page.url()).origin;
  const site = createServer((_, answer) => answer.writeHead(200, { "Content-Type": "text/html" }).end("<!doctype html><title>x</title>"));
  await new Promise((resolve) => site.listen(0, "127.0.0.1", resolve));
  const other = await context.newPage(); // the same cookies, of which ports are no part
  try {
    await other.goto(`http://127.0.0.1:${site.address().port}/`);
    const seen = await other.evaluate(async (origin) => {
      const read = async (path, options) => {
        try {
          const answer = await fetch(origin + path, options);
          return answer.type === "opaque" ? "" : await answer.text();
        } catch {
          return "";
        }
      };
      const opened = (address) =>
        new Promise((resolve) => {
          const socket = new WebSocket(address, "cingulum-view-1");
          socket.onopen = () => resolve(true);
          socket.onerror = socket.onclose = () => resolve(false);
        });
      const loads = (tag, path) =>
        new Promise((resolve) => {
          const element = document.createElement(tag);
          element.onload = () => resolve(true);
          element.onerror = () => resolve(false);
          element.src = origin + path;
          document.body.append(element);
        });
      const texts = [];
      for (const path of ["/api/files", "/api/state", "/data/f1", "/", "/page.js"]) {
        for (const options of [{}, { credentials: "include" }, { credentials: "include", mode: "no-cors" }]) texts.push(await read(path, options));
      }
      texts.push(await read("/api/link", { method: "POST", credentials: "include", body: "" }));
      texts.push(await read("/api/save", { method: "POST", credentials: "include", mode: "no-cors", headers: { "Content-Type": "text/plain" }, body: "{}" }));
      return { texts, socket: await opened(`${origin.replace("http", "ws")}/live`), script: await loads("script", "/page.js"), image: await loads("img", "/data/f1") };
    }, ours);
    assert.deepEqual([...new Set(seen.texts)], [""]);
    assert.deepEqual([seen.socket, seen.script, seen.image], [false, false, false]);
  } finally {
    await other.close();
    site.close();
  }
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
  await run(CINGULUM, [...rest, "--out", "again.trx", "--quiet"], { cwd: phantom });
  assert.deepEqual(readFileSync(await saved.path()), readFileSync(path.join(phantom, "again.trx")));
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

test("pictures for the pages of the documentation", { skip: !process.env.CINGULUM_PICTURES }, async () => {
  const taken = async (name, of = page) => {
    await of.waitForTimeout(1500);
    await of.screenshot({ path: path.join(process.env.CINGULUM_PICTURES, name) });
  };
  await page.evaluate(() => (location.hash = ""));
  await page.reload();
  await ready(page);
  await answered(() => slide("radius", 6));
  await slide("slab", 4);
  await taken("view.png");
  const file = await context.newPage();
  await file.goto(`${new URL(page.url()).origin}/#${encodeURIComponent(JSON.stringify({ place: [0, 0, 0], plan: { "min-length": 100 }, filter: { shortestMm: 0, longestMm: 500, share: 1, slabMm: 4 } }))}`);
  await ready(file);
  await file.selectOption("#tractogram", { label: "truth.trx" });
  await file.waitForFunction(() => document.body.dataset.fileIsWhole === "true");
  await file.selectOption("#colour", { label: "group, of the file" });
  await file.locator("#slider-share").scrollIntoViewIfNeeded();
  await taken("view-tractogram.png", file);
  await file.close();
  await page.check("#glyphs");
  await answered(() => page.click("[data-sphere=stop]"));
  await page.click("#freeze");
  await answered(() => slide("max-angle", 12));
  await taken("view-comparison.png");
});

test("labels and contrast pass axe", async () => {
  assert.deepEqual(await violations(page), []);
});

test("the page complained of nothing", () => assert.deepEqual(complaints, []));
