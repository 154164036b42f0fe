// Streamlines as lines of WebGL2, in the context of whoever draws the slices. Batches are appended to buffers: a
// point is its place and the number of its line, and nothing else is sent of it. What belongs to a line, its colour and
// whether it is seen, is one texel, so that sliders cost four bytes a line and no point is touched.
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
const POINT_BYTES = 16;
// All lines are one strip. Between two stand two more points, the last of the one and the first of the other, whose
// homogeneous coordinates the shader negates: they lie where the points lie, so what leads to them has no length, and
// behind the eye, so what joins them is clipped. No index is needed.
const NEGATED = 0x80000000; // beside the line's number
const TINTS = ["#ff8a3d", "#4da3ff", "#c9ced6"].map((text) => rgb(text).map((value) => value / 255));

const VERTEX = `#version 300 es
// Of a point and its two neighbours in the strip: place, and the bits of the line's number.
layout(location = 0) in vec4 before;
layout(location = 1) in vec4 point;
layout(location = 2) in vec4 after;
uniform mat4 toClip;
uniform highp usampler2D lines;
uniform vec3 tints[3];
out vec3 place;
flat out uint state;
out vec3 shade;
void main() {
  uint bits = floatBitsToUint(point.w);
  uint line = bits & ${NEGATED - 1}u;
  uvec4 known = texelFetch(lines, ivec2(int(line % ${LINES_IN_ROW}u), int(line / ${LINES_IN_ROW}u)), 0);
  state = known.a;
  place = point.xyz;
  if (state == ${LineState.byDirection}u) {
    vec3 way = floatBitsToUint(after.w) == line ? after.xyz - point.xyz : point.xyz - before.xyz;
    shade = abs(way) / max(length(way), 1e-6);
  } else {
    shade = state >= 2u ? tints[int(state) - 2] : vec3(known.rgb) / 255.0;
  }
  gl_Position = state == 0u ? vec4(2.0, 2.0, 2.0, 1.0) : toClip * vec4(place, 1.0);
  if (bits != line) gl_Position = -gl_Position;
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

/** The program, which all layers of a context share. */
export class LineProgram extends GlProgram<"toClip" | "lines" | "tints" | "slabAxis" | "slabMm" | "slabHalf"> {
  constructor(gl: WebGL2RenderingContext) {
    super(gl, "streamlines", VERTEX, FRAGMENT, ["toClip", "lines", "tints", "slabAxis", "slabMm", "slabHalf"]);
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
const KEPT_PARTS = 4; // of what is shown no more: 49 MB

/** Points of the strip in a buffer of their own: what has come is never moved, and memory grows with what is shown. */
class StripPart {
  drawn = 0; // points
  private readonly array: WebGLVertexArrayObject;
  private readonly buffer: WebGLBuffer; // one more in front and behind, so that every point has two neighbours

  constructor(private readonly gl: WebGL2RenderingContext, private readonly capacity: number) {
    this.array = gl.createVertexArray()!;
    this.buffer = gl.createBuffer()!;
    gl.bindVertexArray(this.array);
    gl.bindBuffer(gl.ARRAY_BUFFER, this.buffer);
    gl.bufferData(gl.ARRAY_BUFFER, POINT_BYTES * (capacity + 2), gl.DYNAMIC_DRAW);
    for (const place of [0, 1, 2]) {
      gl.enableVertexAttribArray(place);
      gl.vertexAttribPointer(place, 4, gl.FLOAT, false, POINT_BYTES, place * POINT_BYTES);
    }
    gl.bindVertexArray(null);
  }

  hasRoomFor(points: number): boolean {
    return this.drawn + points <= this.capacity;
  }

  /** The last point of `points` is the neighbour behind and is not drawn. */
  append(points: Float32Array<ArrayBuffer>): void {
    const gl = this.gl;
    gl.bindBuffer(gl.ARRAY_BUFFER, this.buffer);
    gl.bufferSubData(gl.ARRAY_BUFFER, POINT_BYTES * (this.drawn + 1), points);
    this.drawn += points.length / 4 - 1;
  }

  free(): void {
    this.gl.deleteVertexArray(this.array);
    this.gl.deleteBuffer(this.buffer);
  }

  draw(): void {
    if (this.drawn === 0) return;
    this.gl.bindVertexArray(this.array);
    this.gl.drawArrays(this.gl.LINE_STRIP, 0, this.drawn);
    this.gl.bindVertexArray(null);
  }
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
    this.parts = [new StripPart(gl, FIRST_PART_POINTS)];
    this.texels = gl.createTexture()!;
  }

  /** Forgets what was drawn; some buffers stay for the next streamlines. */
  clear(): void {
    this.lines = 0;
    this.filled = 0;
    for (const part of this.parts.splice(KEPT_PARTS)) part.free();
    for (const part of this.parts) part.drawn = 0;
  }

  /** Brings what the streamlines have gained since the last call. New lines are shown in their own colour. */
  append(): void {
    const first = this.lines;
    for (const batch of this.streamlines.since(first)) this.appendBatch(batch);
    if (this.lines > first) this.setStates(first, new Uint8Array(this.lines - first).fill(LineState.own));
  }

  private appendBatch({ offsets, positions, seeds }: Batch): void {
    const most = 4 * (positions.length / 3 + 2 * seeds.length + 1);
    if (4 * most > this.scratch.byteLength) this.scratch = new ArrayBuffer(4 * most);
    const points = new Float32Array(this.scratch);
    const bits = new Uint32Array(this.scratch);
    let to = 0;
    const put = (point: number, mark: number) => {
      points[to] = positions[point];
      points[to + 1] = positions[point + 1];
      points[to + 2] = positions[point + 2];
      bits[to + 3] = mark;
      to += 4;
    };
    for (let line = 0; line < seeds.length; line++) {
      const number = this.lines + line;
      const begin = 3 * offsets[line];
      const end = 3 * offsets[line + 1];
      if (begin === end) continue;
      put(begin, NEGATED | number);
      for (let point = begin; point < end; point += 3) put(point, number);
      put(end - 3, NEGATED | number);
    }
    bits[to + 3] = NEGATED; // behind the last: of no line's own
    this.partFor(to / 4).append(new Float32Array(this.scratch, 0, to + 4));
    this.lines += seeds.length;
  }

  private partFor(points: number): StripPart {
    while (this.filled < this.parts.length && !this.parts[this.filled].hasRoomFor(points)) this.filled++;
    if (this.filled === this.parts.length) this.parts.push(new StripPart(this.gl, Math.max(PART_POINTS, points)));
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
