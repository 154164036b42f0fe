// Streamlines as lines of WebGL2, in the context of whoever draws the slices. Batches are appended to buffers
// (point_parts.ts). What belongs to a line, its colour and whether it is seen, is one texel, so that sliders cost four bytes
// a line and no point is touched.
import { GlProgram } from "./gl_program";
import { lineColour, rgb, type ColourBy } from "./line_colours";
import type { LineValues } from "./line_values";
import { NUMBERS_AT, PLACES_AT, PointParts, type PointRun } from "./point_parts";
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
const TINTS = ["#ff8a3d", "#4da3ff", "#c9ced6"].map((text) => rgb(text).map((value) => value / 255));

// A run is drawn as pieces of two points: first those that begin at every second point, then those between. So each piece has
// two corners of its own, and one that would join two lines is put where nothing is seen. Points need neither an index nor a
// mark where a line ends, and are sent as they are.
const VERTEX = `#version 300 es
// For a point and its two neighbours in the buffer: place in the box of the run, and the line's number there.
layout(location = ${PLACES_AT}) in vec3 before;
layout(location = ${PLACES_AT + 1}) in vec3 point;
layout(location = ${PLACES_AT + 2}) in vec3 after;
layout(location = ${NUMBERS_AT}) in uint numberBefore;
layout(location = ${NUMBERS_AT + 1}) in uint number;
layout(location = ${NUMBERS_AT + 2}) in uint numberAfter;
uniform mat4 toClip;
uniform vec4 box; // its corner, and the unit of places
uniform uint firstLine;
uniform int firstPoint; // of those that are drawn now
uniform int lastPoint; // of the run: what lies behind it is not of its lines
uniform highp usampler2D lines;
uniform vec3 tints[3];
out vec3 place;
flat out uint state;
out vec3 shade;
void main() {
  uint line = firstLine + number;
  uvec4 known = texelFetch(lines, ivec2(int(line % ${LINES_IN_ROW}u), int(line / ${LINES_IN_ROW}u)), 0);
  state = known.a;
  place = box.xyz + box.w * point;
  if (state == ${LineState.byDirection}u) {
    vec3 way = numberAfter == number && gl_VertexID != lastPoint ? after - point : point - before;
    shade = abs(way) / max(length(way), 1e-6);
  } else {
    shade = state >= 2u ? tints[int(state) - 2] : vec3(known.rgb) / 255.0;
  }
  uint numberAcross = ((gl_VertexID - firstPoint) & 1) == 0 ? numberAfter : numberBefore;
  gl_Position = state == 0u || numberAcross != number ? vec4(2.0, 2.0, 2.0, 1.0) : toClip * vec4(place, 1.0);
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

const UNIFORMS = ["toClip", "box", "firstLine", "firstPoint", "lastPoint", "lines", "tints", "slabAxis", "slabMm", "slabHalf"] as const;

/** The program, which all layers of a context share. */
export class LineProgram extends GlProgram<(typeof UNIFORMS)[number]> {
  constructor(gl: WebGL2RenderingContext) {
    super(gl, "streamlines", VERTEX, FRAGMENT, UNIFORMS);
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

  draw({ firstPoint, points, firstLine, corner, unit }: PointRun): void {
    const { gl, places } = this;
    gl.uniform4f(places.box, corner[0], corner[1], corner[2], unit);
    gl.uniform1ui(places.firstLine, firstLine);
    gl.uniform1i(places.lastPoint, firstPoint + points - 1);
    for (const skipped of [0, 1]) {
      gl.uniform1i(places.firstPoint, firstPoint + skipped);
      gl.drawArrays(gl.LINES, firstPoint + skipped, points - skipped);
    }
  }
}

export class StreamlineLayer {
  private readonly gl: WebGL2RenderingContext;
  private readonly points: PointParts;
  private readonly texels: WebGLTexture;
  private known: Uint8Array<ArrayBuffer> = new Uint8Array(0); // what the texels hold
  private rows = 0;
  private lines = 0;
  private colourBy: ColourBy = "direction";
  private values: LineValues | null = null;

  constructor(private readonly program: LineProgram, readonly streamlines: Streamlines) {
    const gl = (this.gl = program.gl);
    this.points = new PointParts(gl);
    this.texels = gl.createTexture()!;
  }

  /** Forgets what was drawn; some buffers stay for the next streamlines. */
  clear(): void {
    this.lines = 0;
    this.points.clear();
  }

  /** Brings what the streamlines have gained since the last call. New lines are shown in their own colour. */
  append(): void {
    const first = this.lines;
    for (const batch of this.streamlines.since(first)) {
      this.points.append(batch, this.lines);
      this.lines += batch.seeds.length;
    }
    if (this.lines > first) this.setStates(first, new Uint8Array(this.lines - first).fill(LineState.own));
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
    this.points.eachRun((run) => this.program.draw(run));
    gl.bindTexture(gl.TEXTURE_2D, before);
  }
}
