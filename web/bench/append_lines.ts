// In one page: 10 000 streamlines of 100 points join what is shown, by our layer and by NiiVue's mesh of streamlines, each
// until the GPU has them. And a million streamlines by our layer, batch by batch. Run by bench/view_page.mjs.
import { NVMesh } from "@niivue/niivue";
import { LineProgram, StreamlineLayer } from "../src/streamline_layer";
import { Streamlines } from "../src/streamlines";
import { EXACT, type Batch } from "../src/messages";

function someLines(count: number, points: number, seed: number): Batch {
  const offsets = new Uint32Array(count + 1);
  const positions = new Float32Array(3 * count * points);
  let state = seed >>> 0;
  const draw = () => ((state = (Math.imul(state, 1664525) + 1013904223) >>> 0) / 4294967296) - 0.5;
  for (let line = 0; line < count; line++) {
    offsets[line + 1] = (line + 1) * points;
    const place = [160 * draw(), 200 * draw(), 140 * draw()];
    const way = [draw(), draw(), draw()];
    for (let i = 0; i < points; i++) {
      for (let axis = 0; axis < 3; axis++) {
        way[axis] += 0.1 * draw();
        place[axis] += way[axis];
        positions[3 * (line * points + i) + axis] = place[axis];
      }
    }
  }
  return { offsets, positions, ...EXACT, seeds: new Uint32Array(count), endReasons: new Uint8Array(2 * count) };
}

// The shortest: other work on the machine only lengthens a round.
const shortest = (values: number[]) => Math.min(...values);

function context(): WebGL2RenderingContext {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = 256;
  return canvas.getContext("webgl2")!;
}

function whole(gl: WebGL2RenderingContext): void {
  gl.readPixels(0, 0, 1, 1, gl.RGBA, gl.UNSIGNED_BYTE, new Uint8Array(4)); // waits for all that was asked
}

function ours(rounds: number): number {
  const gl = context();
  const streamlines = new Streamlines();
  const layer = new StreamlineLayer(new LineProgram(gl), streamlines);
  const times = [];
  for (let round = 0; round < rounds; round++) {
    const batch = someLines(10000, 100, round);
    streamlines.clear();
    layer.clear();
    whole(gl);
    const begin = performance.now();
    streamlines.append(batch);
    layer.append();
    whole(gl);
    times.push(performance.now() - begin);
  }
  return shortest(times);
}

function theirs(rounds: number): number {
  const gl = context();
  const first = someLines(10000, 100, 0);
  const none = new Uint8Array([0, 255, 0, 0]); // an opacity of 0 says: streamlines
  const mesh = new NVMesh(first.positions as Float32Array, first.offsets, "lines", none, 1, true, gl);
  mesh.fiberColor = "Local"; // by direction, as ours
  const times = [];
  for (let round = 0; round < rounds; round++) {
    const batch = someLines(10000, 100, round);
    whole(gl);
    const begin = performance.now();
    mesh.pts = batch.positions as Float32Array;
    mesh.offsetPt0 = batch.offsets;
    mesh.updateMesh(gl);
    whole(gl);
    times.push(performance.now() - begin);
  }
  return shortest(times);
}

function million(): { first_ms: number; all_ms: number } {
  const gl = context();
  const streamlines = new Streamlines();
  const layer = new StreamlineLayer(new LineProgram(gl), streamlines);
  const batch = someLines(20000, 14, 1); // as many points as float16 at 0.3 mm leaves
  const toClip = new Float32Array([0.01, 0, 0, 0, 0, 0.01, 0, 0, 0, 0, 0.01, 0, 0, 0, 0, 1]);
  const begin = performance.now();
  let first = 0;
  for (let i = 0; i < 50; i++) {
    streamlines.append(batch);
    layer.append();
    if (i === 0) {
      layer.draw(toClip, null);
      whole(gl);
      first = performance.now() - begin;
    }
  }
  whole(gl);
  return { first_ms: first, all_ms: performance.now() - begin };
}

(globalThis as unknown as { measure: () => unknown }).measure = () => {
  ours(1);
  theirs(1);
  const [own, other] = [ours(15), theirs(15)];
  return { points: 1000000, ours_ms: own, niivue_ms: other, times: other / own, million: million() };
};
