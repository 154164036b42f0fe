// Streamlines as lines of WebGL2, in the context of whoever draws the slices. Batches are appended to buffers: a
// point is eight bytes, its place in the box of its batch and the number of its line there, and nothing else is sent of
// it. What belongs to a line, its colour and whether it is seen, is one texel, so that sliders cost four bytes a line and
// no point is touched.
import { GlProgram } from "./gl_program";
import { lineColour, rgb, type ColourBy } from "./line_colours";
import type { LineValues } from "./line_values";
import type { Batch } from "./messages";
import type { Streamlines } from "./streamlines";

/** How a line is shown. */
export enum LineState {
  hidden = 0,
  own = 1, // its own colour
  onlyA = 2,
  onlyB = 3,
  both = 4,
  byDirection = 5, // set by the layer in the place of `own`
}

/** Of a slice: lines farther than `halfMm` from the plane at `mm` along `axis` are left out. */
export interface Slab {
  axis: 0 | 1 | 2;
  mm: number;
  halfMm: number;
}

const LINES_IN_ROW = 2048; // every WebGL2 has textures of this size
const POINT_BYTES = 8;
const POINT_WORDS = POINT_BYTES / 4;
const GREATEST_NUMBER = 65535; // of a coordinate
const FARTHEST_MM = 1e5; // what is farther away, or not a number, is drawn wrong and makes no box larger
// All lines are one strip. Between two stand two more points, the last of the one and the first of the other, whose
// homogeneous coordinates the shader negates: they lie where the points lie, so what leads to them has no length, and
// behind the eye, so what joins them is clipped. No index is needed.
const NEGATED = 0x8000; // beside the line's number in its run
const LINES_IN_RUN = NEGATED;
const TINTS = ["#ff8a3d", "#4da3ff", "#c9ced6"].map((text) => rgb(text).map((value) => value / 255));

const VERTEX = `#version 300 es
// Of a point and its two neighbours in the strip: place in the box of the run, and the line's number there.
layout(location = 0) in vec4 before;
layout(location = 1) in vec4 point;
layout(location = 2) in vec4 after;
uniform mat4 toClip;
uniform vec4 box; // its corner, and the unit of places
uniform uint firstLine;
uniform highp usampler2D lines;
uniform vec3 tints[3];
out vec3 place;
flat out uint state;
out vec3 shade;
void main() {
  uint bits = uint(point.w);
  uint number = bits & ${NEGATED - 1}u;
  uint line = firstLine + number;
  uvec4 known = texelFetch(lines, ivec2(int(line % ${LINES_IN_ROW}u), int(line / ${LINES_IN_ROW}u)), 0);
  state = known.a;
  place = box.xyz + box.w * point.xyz;
  if (state == ${LineState.byDirection}u) {
    vec3 way = uint(after.w) == number ? after.xyz - point.xyz : point.xyz - before.xyz;
    shade = abs(way) / max(length(way), 1e-6);
  } else {
    shade = state >= 2u ? tints[int(state) - 2] : vec3(known.rgb) / 255.0;
  }
  gl_Position = state == 0u ? vec4(2.0, 2.0, 2.0, 1.0) : toClip * vec4(place, 1.0);
  if (bits != number) gl_Position = -gl_Position;
}`;

const FRAGMENT = `#version 300 es
precision highp float;
in vec3 place;
flat in uint state;
in vec3 shade;
uniform int slabAxis; // -1: none
uniform float slabMm;
uniform float slabHalf;
out vec4 result;
void main() {
  if (state == 0u || (slabAxis >= 0 && abs(place[slabAxis] - slabMm) > slabHalf)) discard;
  result = vec4(shade, 1.0);
}`;

type LineUniform = "toClip" | "box" | "firstLine" | "lines" | "tints" | "slabAxis" | "slabMm" | "slabHalf";

/** The program, which all layers of a context share. */
export class LineProgram extends GlProgram<LineUniform> {
  constructor(gl: WebGL2RenderingContext) {
    super(gl, "streamlines", VERTEX, FRAGMENT, ["toClip", "box", "firstLine", "lines", "tints", "slabAxis", "slabMm", "slabHalf"]);
  }

  set(toClip: Float32Array, slab: Slab | null): void {
    const { gl, places } = this;
    this.use();
    gl.uniformMatrix4fv(places.toClip, false, toClip);
    gl.uniform3fv(places.tints, TINTS.flat());
    gl.uniform1i(places.lines, 0);
    gl.uniform1i(places.slabAxis, slab ? slab.axis : -1);
    gl.uniform1f(places.slabMm, slab?.mm ?? 0);
    gl.uniform1f(places.slabHalf, slab?.halfMm ?? 0);
  }
}

const FIRST_PART_POINTS = 65536; // enough for an answer
const PART_POINTS = 1 << 20;
const KEPT_PARTS = 4; // of what is shown no more: 25 MB

/** Where the numbers of points lie. */
interface PointBox {
  corner: readonly [number, number, number];
  unit: number;
}

/** Points of one box, drawn at once. */
interface Run extends PointBox {
  firstPoint: number;
  points: number;
  firstLine: number;
}

/** Points of the strip in a buffer of their own: what has come is never moved, and memory grows with what is shown. */
class StripPart {
  private used = 0; // points
  private runs: Run[] = [];
  private readonly array: WebGLVertexArrayObject;
  private readonly buffer: WebGLBuffer; // one more in front and behind, so that every point has two neighbours

  constructor(private readonly program: LineProgram, private readonly capacity: number) {
    const gl = program.gl;
    this.array = gl.createVertexArray()!;
    this.buffer = gl.createBuffer()!;
    gl.bindVertexArray(this.array);
    gl.bindBuffer(gl.ARRAY_BUFFER, this.buffer);
    gl.bufferData(gl.ARRAY_BUFFER, POINT_BYTES * (capacity + 2), gl.DYNAMIC_DRAW);
    for (const place of [0, 1, 2]) {
      gl.enableVertexAttribArray(place);
      gl.vertexAttribPointer(place, 4, gl.UNSIGNED_SHORT, false, POINT_BYTES, place * POINT_BYTES);
    }
    gl.bindVertexArray(null);
  }

  hasRoomFor(points: number): boolean {
    return this.used + points <= this.capacity;
  }

  clear(): void {
    this.used = 0;
    this.runs = [];
  }

  append(words: Uint32Array<ArrayBuffer>, firstLine: number, { corner, unit }: PointBox): void {
    const gl = this.program.gl;
    const points = words.length / POINT_WORDS;
    gl.bindBuffer(gl.ARRAY_BUFFER, this.buffer);
    gl.bufferSubData(gl.ARRAY_BUFFER, POINT_BYTES * (this.used + 1), words);
    this.runs.push({ firstPoint: this.used, points, firstLine, corner, unit });
    this.used += points;
  }

  free(): void {
    this.program.gl.deleteVertexArray(this.array);
    this.program.gl.deleteBuffer(this.buffer);
  }

  draw(): void {
    if (this.used === 0) return;
    const { gl, places } = this.program;
    gl.bindVertexArray(this.array);
    for (const { firstPoint, points, firstLine, corner, unit } of this.runs) {
      gl.uniform4f(places.box, corner[0], corner[1], corner[2], unit);
      gl.uniform1ui(places.firstLine, firstLine);
      gl.drawArrays(gl.LINE_STRIP, firstPoint, points);
    }
    gl.bindVertexArray(null);
  }
}

/** Around all points that have a place. */
function boxOf(positions: Float32Array): PointBox {
  const box = boxWithin(positions, Infinity);
  return Math.max(...box.map(Math.abs)) <= FARTHEST_MM ? pointBox(box) : pointBox(boxWithin(positions, FARTHEST_MM));
}

/** Least and greatest coordinates; of those farther than `mm` from the origin none. What is not a number is never less nor greater. */
function boxWithin(positions: Float32Array, mm: number): number[] {
  let [x0, y0, z0, x1, y1, z1] = [Infinity, Infinity, Infinity, -Infinity, -Infinity, -Infinity];
  for (let i = 0; i < positions.length; i += 3) {
    const x = positions[i];
    const y = positions[i + 1];
    const z = positions[i + 2];
    if (x < x0 && x >= -mm) x0 = x;
    if (x > x1 && x <= mm) x1 = x;
    if (y < y0 && y >= -mm) y0 = y;
    if (y > y1 && y <= mm) y1 = y;
    if (z < z0 && z >= -mm) z0 = z;
    if (z > z1 && z <= mm) z1 = z;
  }
  return [x0, y0, z0, x1, y1, z1];
}

function pointBox([x0, y0, z0, x1, y1, z1]: number[]): PointBox {
  const edge = Math.max(x1 - x0, y1 - y0, z1 - z0);
  // Without points there is no box, and a single place has no edge.
  return Number.isFinite(edge) ? { corner: [x0, y0, z0], unit: edge / GREATEST_NUMBER || 1 } : { corner: [0, 0, 0], unit: 1 };
}

/** Sets the point in front of a line, and the one behind it at `to`; where the next line begins. */
function joined(words: Uint32Array, start: number, to: number): number {
  words[start] = words[start + POINT_WORDS];
  words[start + 1] = words[start + POINT_WORDS + 1] | (NEGATED << 16);
  words[to] = words[to - POINT_WORDS];
  words[to + 1] = words[to - POINT_WORDS + 1] | (NEGATED << 16);
  return to + POINT_WORDS;
}

export class StreamlineLayer {
  private readonly gl: WebGL2RenderingContext;
  private readonly parts: StripPart[];
  private filled = 0; // parts before this one take nothing more
  private readonly texels: WebGLTexture;
  private known: Uint8Array<ArrayBuffer> = new Uint8Array(0); // what the texels hold
  private rows = 0;
  private lines = 0;
  private scratch = new ArrayBuffer(0); // where a strip is made; fresh memory would cost more than filling it
  private colourBy: ColourBy = "direction";
  private values: LineValues | null = null;

  constructor(private readonly program: LineProgram, readonly streamlines: Streamlines) {
    const gl = (this.gl = program.gl);
    this.parts = [new StripPart(program, FIRST_PART_POINTS)];
    this.texels = gl.createTexture()!;
  }

  /** Forgets what was drawn; some buffers stay for the next streamlines. */
  clear(): void {
    this.lines = 0;
    this.filled = 0;
    for (const part of this.parts.splice(KEPT_PARTS)) part.free();
    for (const part of this.parts) part.clear();
  }

  /** Brings what the streamlines have gained since the last call. New lines are shown in their own colour. */
  append(): void {
    const first = this.lines;
    for (const batch of this.streamlines.since(first)) this.appendBatch(batch);
    if (this.lines > first) this.setStates(first, new Uint8Array(this.lines - first).fill(LineState.own));
  }

  private appendBatch(batch: Batch): void {
    const { positions, seeds } = batch;
    const box = positions instanceof Float32Array ? boxOf(positions) : batch;
    for (let first = 0; first < seeds.length; first += LINES_IN_RUN) {
      const words = this.strip(batch, box, first, Math.min(first + LINES_IN_RUN, seeds.length));
      if (words.length > 0) this.partFor(words.length / POINT_WORDS).append(words, this.lines + first, box);
    }
    this.lines += seeds.length;
  }

  /** The lines from `first` to before `last` as points of the strip: x and y in a word, z and the line's number in the next. */
  private strip({ offsets, positions }: Batch, { corner, unit }: PointBox, first: number, last: number): Uint32Array<ArrayBuffer> {
    const most = POINT_WORDS * (offsets[last] - offsets[first] + 2 * (last - first));
    if (4 * most > this.scratch.byteLength) this.scratch = new ArrayBuffer(4 * most);
    const words = new Uint32Array(this.scratch);
    // Loops without calls, one for each kind of number: they are what adding lines costs.
    let to = 0;
    if (positions instanceof Uint16Array) {
      for (let line = first; line < last; line++) {
        const begin = 3 * offsets[line];
        const end = 3 * offsets[line + 1];
        if (begin === end) continue;
        const mark = (line - first) << 16;
        const start = to;
        to += POINT_WORDS;
        for (let i = begin; i < end; i += 3) {
          words[to] = positions[i] | (positions[i + 1] << 16);
          words[to + 1] = positions[i + 2] | mark;
          to += POINT_WORDS;
        }
        to = joined(words, start, to);
      }
    } else {
      const scale = 1 / unit;
      const x0 = 0.5 - corner[0] * scale;
      const y0 = 0.5 - corner[1] * scale;
      const z0 = 0.5 - corner[2] * scale;
      for (let line = first; line < last; line++) {
        const begin = 3 * offsets[line];
        const end = 3 * offsets[line + 1];
        if (begin === end) continue;
        const mark = (line - first) << 16;
        const start = to;
        to += POINT_WORDS;
        for (let i = begin; i < end; i += 3) {
          // The bits of what has no place in the box stay in theirs.
          words[to] = ((positions[i] * scale + x0) & GREATEST_NUMBER) | ((positions[i + 1] * scale + y0) << 16);
          words[to + 1] = ((positions[i + 2] * scale + z0) & GREATEST_NUMBER) | mark;
          to += POINT_WORDS;
        }
        to = joined(words, start, to);
      }
    }
    return new Uint32Array(this.scratch, 0, to);
  }

  private partFor(points: number): StripPart {
    while (this.filled < this.parts.length && !this.parts[this.filled].hasRoomFor(points)) this.filled++;
    if (this.filled === this.parts.length) this.parts.push(new StripPart(this.program, Math.max(PART_POINTS, points)));
    return this.parts[this.filled];
  }

  /** By values where it has any; lines without them keep the colours of their directions. */
  recolour(by: ColourBy, values: LineValues | null = null): void {
    if (by === "values" && values === null) by = "direction";
    if (by === this.colourBy && values === this.values) return;
    this.colourBy = by;
    this.values = values;
    const states = new Uint8Array(this.lines);
    for (let line = 0; line < this.lines; line++) {
      const state = this.known[4 * line + 3];
      states[line] = state === LineState.byDirection ? LineState.own : state;
    }
    this.setStates(0, states);
  }

  /** Of the lines from `first` on. */
  setStates(first: number, states: Uint8Array): void {
    const gl = this.gl;
    const rows = Math.ceil((first + states.length) / LINES_IN_ROW);
    if (rows > this.rows) {
      const larger = new Uint8Array(4 * LINES_IN_ROW * 2 * rows);
      larger.set(this.known);
      this.known = larger;
    }
    for (let i = 0; i < states.length; i++) {
      const at = 4 * (first + i);
      let state = states[i];
      if (state === LineState.own && this.colourBy === "direction") state = LineState.byDirection;
      else if (state === LineState.own) this.known.set(lineColour(this.streamlines, first + i, this.colourBy as Exclude<ColourBy, "direction">, this.values), at);
      this.known[at + 3] = state;
    }
    gl.activeTexture(gl.TEXTURE0);
    const before = gl.getParameter(gl.TEXTURE_BINDING_2D);
    gl.bindTexture(gl.TEXTURE_2D, this.texels);
    if (rows > this.rows) {
      this.rows = 2 * rows;
      gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA8UI, LINES_IN_ROW, this.rows, 0, gl.RGBA_INTEGER, gl.UNSIGNED_BYTE, this.known);
      gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MIN_FILTER, gl.NEAREST);
      gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MAG_FILTER, gl.NEAREST);
    } else if (states.length > 0) {
      const row = Math.floor(first / LINES_IN_ROW);
      const changed = this.known.subarray(4 * row * LINES_IN_ROW, 4 * rows * LINES_IN_ROW);
      gl.texSubImage2D(gl.TEXTURE_2D, 0, 0, row, LINES_IN_ROW, rows - row, gl.RGBA_INTEGER, gl.UNSIGNED_BYTE, changed);
    }
    gl.bindTexture(gl.TEXTURE_2D, before);
  }

  draw(toClip: Float32Array, slab: Slab | null): void {
    if (this.lines === 0) return;
    const gl = this.gl;
    this.program.set(toClip, slab);
    gl.activeTexture(gl.TEXTURE0);
    const before = gl.getParameter(gl.TEXTURE_BINDING_2D);
    gl.bindTexture(gl.TEXTURE_2D, this.texels);
    for (const part of this.parts) part.draw();
    gl.bindTexture(gl.TEXTURE_2D, before);
  }
}
