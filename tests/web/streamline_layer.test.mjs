// The layer of streamlines (web/src/streamline_layer.ts) alone in a page of Chromium, by pixels: lines from end to end and
// nothing between them, directions where a line ends, and colours that belong to a line's place in its file. Run by
// `make test-web` through tests/view/test_page.py. CINGULUM_TEST_PAGE_PACKAGES names the packages of web.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readdirSync } from "node:fs";
import path from "node:path";
import { before, test } from "node:test";
import { launch } from "./page_test.mjs";

const packages = path.join(process.env.CINGULUM_TEST_PAGE_PACKAGES, "node_modules");
const sources = path.resolve(import.meta.dirname, "../../web/src");
let page;

before(async () => {
  const [platform] = readdirSync(path.join(packages, "@esbuild"));
  const parts = ["streamline_layer", "streamlines", "messages", "line_colours", "line_filters"];
  const bundle = execFileSync(path.join(packages, "@esbuild", platform, "bin/esbuild"), ["--bundle", "--format=iife", "--global-name=view", "--target=es2022"],
    { cwd: sources, input: parts.map((name) => `export * from "./${name}";`).join("\n"), encoding: "utf8" });
  page = await (await launch()).newPage();
  await page.addScriptTag({ content: bundle });
  await page.evaluate(() => {
    const SIZE = 64; // pixels of the canvas along an edge, and millimetres
    const canvas = document.createElement("canvas");
    canvas.width = canvas.height = SIZE;
    const gl = canvas.getContext("webgl2", { antialias: false });
    const toClip = new Float32Array([2 / SIZE, 0, 0, 0, 0, 2 / SIZE, 0, 0, 0, 0, 1 / SIZE, 0, -1, -1, 0, 1]);

    /** Lines (arrays of points [x, y] in the middles of pixels) as an answer brings them, or as a file does. */
    globalThis.batchOf = (lines, kind, places = lines.map((_, i) => i)) => {
      const points = lines.flat().map(([x, y]) => [x + 0.5, y + 0.5, 0]);
      const offsets = new Uint32Array([0, ...lines.map((line) => line.length)]);
      for (let i = 0; i < lines.length; i++) offsets[i + 1] += offsets[i];
      if (kind === "answer") {
        return { offsets, positions: new Float32Array(points.flat()), corner: [0, 0, 0], unit: 1, seeds: new Uint32Array(places), endReasons: new Uint8Array(2 * lines.length) };
      }
      // As a message of the server (docs/view.md), read by the page's own parser.
      const UNIT = 1 / 256;
      const bytes = new ArrayBuffer(36 + 4 * (2 * lines.length + 1) + 6 * points.length);
      const head = new DataView(bytes);
      head.setUint32(0, 0x31564743, true);
      head.setUint16(4, view.Kind.lines, true);
      head.setUint32(12, lines.length, true);
      head.setUint32(16, points.length, true);
      [-1, -2, -3, UNIT].forEach((value, i) => head.setFloat32(20 + 4 * i, value, true));
      new Uint32Array(bytes, 36, lines.length + 1).set(offsets);
      new Uint32Array(bytes, 36 + 4 * (lines.length + 1), lines.length).set(places);
      new Uint16Array(bytes, 36 + 4 * (2 * lines.length + 1), 3 * points.length).set(points.flatMap(([x, y, z]) => [(x + 1) / UNIT, (y + 2) / UNIT, (z + 3) / UNIT]));
      return view.parseAnswer(bytes).batch;
    };
    globalThis.newLayer = () => new view.StreamlineLayer(new view.LineProgram(gl), new view.Streamlines());
    globalThis.append = (layer, batch) => {
      layer.streamlines.append(batch);
      layer.append();
    };
    globalThis.clear = (layer) => {
      layer.streamlines.clear();
      layer.clear();
    };
    /** Coloured pixels: [x, y, red, green, blue]. */
    globalThis.drawn = (layer) => {
      gl.viewport(0, 0, SIZE, SIZE);
      gl.clearColor(0, 0, 0, 1);
      gl.clear(gl.COLOR_BUFFER_BIT);
      layer.draw(toClip, null);
      const data = new Uint8Array(4 * SIZE * SIZE);
      gl.readPixels(0, 0, SIZE, SIZE, gl.RGBA, gl.UNSIGNED_BYTE, data);
      const found = [];
      for (let i = 0; i < SIZE * SIZE; i++) {
        const colour = [...data.subarray(4 * i, 4 * i + 3)];
        if (Math.max(...colour) > 0) found.push([i % SIZE, Math.floor(i / SIZE), ...colour]);
      }
      return found;
    };
  });
});

/** The rows that have pixels, each with its first and last and how many there are. */
function rowsOf(pixels) {
  const rows = {};
  for (const [x, y] of pixels) {
    const row = (rows[y] ??= { first: x, last: x, count: 0 });
    row.first = Math.min(row.first, x);
    row.last = Math.max(row.last, x);
    row.count++;
  }
  return rows;
}

/** A horizontal line with points every four pixels; no piece has its end's pixel. */
const across = (row, x, points) => Array.from({ length: points }, (_, i) => [x + 4 * i, row]);
const pixelsOf = (x, points) => ({ first: x, last: x + 4 * (points - 1) - 1, count: 4 * (points - 1) });

for (const kind of ["answer", "file"]) {
  test(`lines of ${kind === "answer" ? "an answer" : "a file"} are drawn from end to end, and nothing between them`, async () => {
    // Even and odd numbers of points, none and one among them, in three batches.
    const lines = [[2, 5, 2], [6, 20, 3], [10, 3, 0], [14, 40, 4], [18, 9, 1], [22, 30, 5], [26, 4, 6], [30, 1, 3], [34, 50, 2], [38, 7, 9]];
    const batches = [lines.slice(0, 5), lines.slice(5, 6), lines.slice(6)];
    const pixels = await page.evaluate(({ batches, kind }) => {
      const layer = newLayer();
      for (const batch of batches) append(layer, batchOf(batch, kind));
      return drawn(layer);
    }, { batches: batches.map((batch) => batch.map((line) => across(...line))), kind });
    const expected = Object.fromEntries(lines.filter(([, , points]) => points > 1).map(([row, x, points]) => [row, pixelsOf(x, points)]));
    assert.deepEqual(rowsOf(pixels), expected);
  });

  test(`directions of ${kind === "answer" ? "an answer" : "a file"} at the end of what was appended are its own, whatever lay there`, async () => {
    const pixels = await page.evaluate(({ line, kind }) => {
      const layer = newLayer();
      // The points that stay behind the line's last are of a line with the same number, and lead up.
      append(layer, batchOf([[...line, ...line.map(([x, y]) => [x, y + 20])]], kind));
      clear(layer);
      append(layer, batchOf([line], kind));
      return drawn(layer);
    }, { line: across(10, 8, 4), kind });
    assert.deepEqual(rowsOf(pixels), { 10: pixelsOf(8, 4) });
    for (const [x, , ...colour] of pixels) assert.deepEqual(colour, [255, 0, 0], `at ${x}`);
  });
}

test("a line keeps its own state among more lines than 16 bits can count", async () => {
  for (const kind of ["answer", "file"]) {
    const pixels = await page.evaluate(({ kind, other, last }) => {
      const lines = 66000;
      const layer = newLayer();
      append(layer, batchOf(Array.from({ length: lines }, (_, i) => (i + 1 < lines ? other : last)), kind));
      const states = new Uint8Array(lines);
      states[lines - 1] = view.LineState.own;
      layer.setStates(0, states);
      return drawn(layer);
    }, { kind, other: across(20, 5, 2), last: across(40, 8, 3) });
    assert.deepEqual(rowsOf(pixels), { 40: pixelsOf(8, 3) }, kind);
  }
});

test("numbers and groups of a file belong to a line's place there, whenever it came", async () => {
  // Two messages, whose lines lie in the file in another order; the row is the place.
  const messages = [[7, 2, 5], [0, 6, 1, 3, 4]];
  const numbers = [60, 10, 80, 0, 40, 30, NaN, 70];
  const found = await page.evaluate(({ messages, lines, numbers }) => {
    const layer = newLayer();
    const values = { column: { name: "x" }, numbers: new Float32Array(numbers), least: 0, most: 80 };
    const groups = { column: { name: "group", groups: ["a", "b"] }, numbers: new Float32Array(numbers.map((_, place) => place % 3)), least: 0, most: 1 };
    append(layer, batchOf(lines[0], "file", messages[0]));
    layer.recolour("values", values); // what comes later is coloured as it comes
    append(layer, batchOf(lines[1], "file", messages[1]));
    const byNumber = drawn(layer);
    layer.recolour("values", groups);
    const byGroup = drawn(layer);
    const filter = { shortestMm: 0, longestMm: Infinity, share: 1, leastValue: 0.5, include: [], exclude: [] };
    const places = messages.flat();
    return {
      byNumber, byGroup,
      expected: numbers.map((number) => view.rampColour((number || 0) / 80).map(Math.floor)),
      expectedGroups: numbers.map((_, place) => view.groupColour(place % 3).map(Math.floor)),
      passed: places.filter((_, line) => view.passes(layer.streamlines, line, filter, values)).sort(),
      drawnShare: places.filter((_, line) => view.passes(layer.streamlines, line, { ...filter, leastValue: 0, share: 0.5 }, null)).sort(),
      expectedShare: places.filter((place) => view.drawOf(place) < 0.5).sort(),
    };
  }, { messages, lines: messages.map((places) => places.map((place) => across(4 * place + 2, 3, 5))), numbers });
  const colours = (pixels) => numbers.map((_, place) => [...new Set(pixels.filter(([, y]) => y === 4 * place + 2).map(([, , ...colour]) => colour.join(" ")))]);
  const withoutNumber = numbers.findIndex(Number.isNaN);
  colours(found.byNumber).forEach((seen, place) => place !== withoutNumber && assert.deepEqual(seen, [found.expected[place].join(" ")], `place ${place}`));
  assert.deepEqual(colours(found.byNumber)[withoutNumber], ["110 116 125"]); // grey
  assert.deepEqual(colours(found.byGroup), found.expectedGroups.map((colour) => [colour.join(" ")]));
  assert.deepEqual(found.passed, [0, 2, 4, 7]); // from 40 on
  assert.deepEqual(found.drawnShare, found.expectedShare);
  assert.ok(found.expectedShare.length > 0 && found.expectedShare.length < numbers.length);
});
