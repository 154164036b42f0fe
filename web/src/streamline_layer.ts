// Streamlines as lines of WebGL2, in the context of whoever draws the slices. Batches are appended to buffers that grow;
// whether a line is seen, and in which tint, is one byte of a texture, so that sliders cost a byte a line and no point is
// touched.
import { colourPoints, rgb, type ColourBy } from "./line_colours";
import type { Streamlines } from "./streamlines";

/** How a line is shown. */
export enum LineState {
  hidden = 0,
  own = 1, // its own colour
  onlyA = 2,
  onlyB = 3,
  both = 4,
}

/** Of a slice: lines farther than `halfMm` from the plane at `mm` along `axis` are left out. */
export interface Slab {
  axis: 0 | 1 | 2;
  mm: number;
  halfMm: number;
}

const STATES_WIDTH = 2048; // every WebGL2 has textures of this size
const RESTART = 0xffffffff;
const TINTS = ["#ff8a3d", "#4da3ff", "#c9ced6"].map((text) => rgb(text).map((value) => value / 255));

const VERTEX = `#version 300 es
layout(location = 0) in vec3 position;
layout(location = 1) in vec4 colour;
layout(location = 2) in uint line;
uniform mat4 toClip;
uniform highp usampler2D states;
uniform vec3 tints[3];
out vec3 place;
flat out uint state;
out vec4 shade;
void main() {
  state = texelFetch(states, ivec2(int(line & ${STATES_WIDTH - 1}u), int(line / ${STATES_WIDTH}u)), 0).r;
  place = position;
  shade = state >= 2u ? vec4(tints[int(state) - 2], 1.0) : colour;
  gl_Position = state == 0u ? vec4(2.0, 2.0, 2.0, 1.0) : toClip * vec4(position, 1.0);
}`;

const FRAGMENT = `#version 300 es
precision highp float;
in vec3 place;
flat in uint state;
in vec4 shade;
uniform int slabAxis; // -1: none
uniform float slabMm;
uniform float slabHalf;
out vec4 result;
void main() {
  if (state == 0u || (slabAxis >= 0 && abs(place[slabAxis] - slabMm) > slabHalf)) discard;
  result = shade;
}`;

function compiled(gl: WebGL2RenderingContext, type: number, text: string): WebGLShader {
  const shader = gl.createShader(type)!;
  gl.shaderSource(shader, text);
  gl.compileShader(shader);
  if (!gl.getShaderParameter(shader, gl.COMPILE_STATUS)) {
    throw new Error(`the shader of streamlines: ${gl.getShaderInfoLog(shader)}`);
  }
  return shader;
}

/** The program, which all layers of a context share. */
export class LineProgram {
  readonly program: WebGLProgram;
  private readonly places: Record<string, WebGLUniformLocation | null> = {};

  constructor(readonly gl: WebGL2RenderingContext) {
    this.program = gl.createProgram()!;
    gl.attachShader(this.program, compiled(gl, gl.VERTEX_SHADER, VERTEX));
    gl.attachShader(this.program, compiled(gl, gl.FRAGMENT_SHADER, FRAGMENT));
    gl.linkProgram(this.program);
    if (!gl.getProgramParameter(this.program, gl.LINK_STATUS)) {
      throw new Error(`the shader of streamlines: ${gl.getProgramInfoLog(this.program)}`);
    }
    for (const name of ["toClip", "states", "tints", "slabAxis", "slabMm", "slabHalf"]) {
      this.places[name] = gl.getUniformLocation(this.program, name);
    }
  }

  use(toClip: Float32Array, slab: Slab | null): void {
    const gl = this.gl;
    gl.useProgram(this.program);
    gl.uniformMatrix4fv(this.places.toClip, false, toClip);
    gl.uniform3fv(this.places.tints, TINTS.flat());
    gl.uniform1i(this.places.states, 0);
    gl.uniform1i(this.places.slabAxis, slab ? slab.axis : -1);
    gl.uniform1f(this.places.slabMm, slab?.mm ?? 0);
    gl.uniform1f(this.places.slabHalf, slab?.halfMm ?? 0);
  }
}

/** A buffer that grows by copies on the GPU. */
class GrowingBuffer {
  buffer: WebGLBuffer;
  private capacity: number;

  constructor(private readonly gl: WebGL2RenderingContext, private readonly target: number, bytes: number) {
    this.capacity = bytes;
    this.buffer = this.made(bytes);
  }

  private made(bytes: number): WebGLBuffer {
    const buffer = this.gl.createBuffer()!;
    this.gl.bindBuffer(this.target, buffer);
    this.gl.bufferData(this.target, bytes, this.gl.DYNAMIC_DRAW);
    return buffer;
  }

  /** True where the buffer is another one afterwards. */
  write(at: number, data: ArrayBufferView<ArrayBuffer>): boolean {
    const gl = this.gl;
    const needed = at + data.byteLength;
    let moved = false;
    if (needed > this.capacity) {
      const old = this.buffer;
      const held = this.capacity;
      this.capacity = Math.max(needed, 2 * held);
      this.buffer = this.made(this.capacity);
      gl.bindBuffer(gl.COPY_READ_BUFFER, old);
      gl.copyBufferSubData(gl.COPY_READ_BUFFER, this.target, 0, 0, held);
      gl.deleteBuffer(old);
      moved = true;
    }
    gl.bindBuffer(this.target, this.buffer);
    gl.bufferSubData(this.target, at, data);
    return moved;
  }
}

export class StreamlineLayer {
  private readonly gl: WebGL2RenderingContext;
  private readonly array: WebGLVertexArrayObject;
  private readonly positions: GrowingBuffer;
  private readonly colours: GrowingBuffer;
  private readonly owners: GrowingBuffer;
  private readonly indices: GrowingBuffer;
  private readonly states: WebGLTexture;
  private rows = 0;
  private lines = 0;
  private drawn = 0; // indices
  colourBy: ColourBy = "direction";

  constructor(private readonly program: LineProgram, readonly streamlines: Streamlines) {
    const gl = (this.gl = program.gl);
    this.array = gl.createVertexArray()!;
    gl.bindVertexArray(this.array);
    this.positions = new GrowingBuffer(gl, gl.ARRAY_BUFFER, 12 * 65536);
    this.colours = new GrowingBuffer(gl, gl.ARRAY_BUFFER, 4 * 65536);
    this.owners = new GrowingBuffer(gl, gl.ARRAY_BUFFER, 4 * 65536);
    this.indices = new GrowingBuffer(gl, gl.ELEMENT_ARRAY_BUFFER, 4 * 65536);
    this.states = gl.createTexture()!;
    this.bind();
    gl.bindVertexArray(null);
  }

  private bind(): void {
    const gl = this.gl;
    gl.bindVertexArray(this.array);
    gl.bindBuffer(gl.ARRAY_BUFFER, this.positions.buffer);
    gl.enableVertexAttribArray(0);
    gl.vertexAttribPointer(0, 3, gl.FLOAT, false, 0, 0);
    gl.bindBuffer(gl.ARRAY_BUFFER, this.colours.buffer);
    gl.enableVertexAttribArray(1);
    gl.vertexAttribPointer(1, 4, gl.UNSIGNED_BYTE, true, 0, 0);
    gl.bindBuffer(gl.ARRAY_BUFFER, this.owners.buffer);
    gl.enableVertexAttribArray(2);
    gl.vertexAttribIPointer(2, 1, gl.UNSIGNED_INT, 0, 0);
    gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, this.indices.buffer);
  }

  /** Forgets what was drawn; the buffers stay for the next streamlines. */
  clear(): void {
    this.lines = 0;
    this.drawn = 0;
  }

  /** Brings what the streamlines have gained since the last call. New lines are shown in their own colour. */
  append(): void {
    const gl = this.gl;
    const from = this.streamlines;
    if (this.lines === from.lines) return;
    const first = this.lines;
    const firstPoint = from.offsets[first];
    const points = from.points - firstPoint;
    const owners = new Uint32Array(points);
    const indices = new Uint32Array(points + from.lines - first);
    let at = 0;
    for (let line = first; line < from.lines; line++) {
      for (let i = from.offsets[line]; i < from.offsets[line + 1]; i++) {
        owners[i - firstPoint] = line;
        indices[at++] = i;
      }
      indices[at++] = RESTART;
    }
    gl.bindVertexArray(this.array);
    let moved = this.positions.write(12 * firstPoint, from.positions.subarray(3 * firstPoint, 3 * from.points));
    moved = this.colours.write(4 * firstPoint, colourPoints(from, first, from.lines, this.colourBy)) || moved;
    moved = this.owners.write(4 * firstPoint, owners) || moved;
    moved = this.indices.write(4 * this.drawn, indices) || moved;
    if (moved) this.bind();
    gl.bindVertexArray(null);
    this.drawn += at;
    this.lines = from.lines;
    this.setStates(first, new Uint8Array(from.lines - first).fill(LineState.own));
  }

  recolour(by: ColourBy): void {
    this.colourBy = by;
    if (this.lines === 0) return;
    this.gl.bindVertexArray(this.array);
    this.colours.write(0, colourPoints(this.streamlines, 0, this.lines, by));
    this.gl.bindVertexArray(null);
  }

  /** LineState of the lines from `first` on. */
  setStates(first: number, states: Uint8Array): void {
    const gl = this.gl;
    gl.activeTexture(gl.TEXTURE0);
    gl.bindTexture(gl.TEXTURE_2D, this.states);
    gl.pixelStorei(gl.UNPACK_ALIGNMENT, 1);
    const rows = Math.max(1, Math.ceil((first + states.length) / STATES_WIDTH));
    if (rows > this.rows) {
      // A texture cannot grow: all states are set anew, those before `first` as they were asked for last.
      this.known = grownBytes(this.known, 2 * rows * STATES_WIDTH);
      this.rows = 2 * rows;
      this.known.set(states, first);
      gl.texImage2D(gl.TEXTURE_2D, 0, gl.R8UI, STATES_WIDTH, this.rows, 0, gl.RED_INTEGER, gl.UNSIGNED_BYTE, this.known);
      gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MIN_FILTER, gl.NEAREST);
      gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MAG_FILTER, gl.NEAREST);
    } else if (states.length > 0) {
      this.known.set(states, first);
      const firstRow = Math.floor(first / STATES_WIDTH);
      const changed = this.known.subarray(firstRow * STATES_WIDTH, rows * STATES_WIDTH);
      gl.texSubImage2D(gl.TEXTURE_2D, 0, 0, firstRow, STATES_WIDTH, rows - firstRow, gl.RED_INTEGER, gl.UNSIGNED_BYTE, changed);
    }
    gl.pixelStorei(gl.UNPACK_ALIGNMENT, 4);
    gl.bindTexture(gl.TEXTURE_2D, null);
  }
  private known: Uint8Array<ArrayBuffer> = new Uint8Array(0);

  draw(toClip: Float32Array, slab: Slab | null): void {
    if (this.drawn === 0) return;
    const gl = this.gl;
    this.program.use(toClip, slab);
    gl.activeTexture(gl.TEXTURE0);
    const before = gl.getParameter(gl.TEXTURE_BINDING_2D);
    gl.bindTexture(gl.TEXTURE_2D, this.states);
    gl.bindVertexArray(this.array);
    gl.drawElements(gl.LINE_STRIP, this.drawn, gl.UNSIGNED_INT, 0);
    gl.bindVertexArray(null);
    gl.bindTexture(gl.TEXTURE_2D, before);
  }
}

function grownBytes(bytes: Uint8Array, length: number): Uint8Array<ArrayBuffer> {
  const larger = new Uint8Array(length);
  larger.set(bytes);
  return larger;
}
