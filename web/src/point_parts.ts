// Points of streamlines in buffers of the GPU, in parts of a fixed size: what has come is never moved, and memory grows with
// what is shown. Points of answers are sent as the float32 that came, beside the numbers of their lines; those of files have
// 16 bits and share eight bytes with the number of theirs. Called by streamline_layer.ts, whose shader reads each point with
// its two neighbours; nothing is drawn here.
import type { Batch } from "./messages";

// Attributes of the shader, three in a row: of the point before, of the point itself and of the one after it.
export const PLACES_AT = 0; // where the point lies
export const NUMBERS_AT = 3; // its line's number in the run

/** Lines that came together. */
export interface PointRun {
  firstPoint: number; // in its part
  points: number;
  firstLine: number; // of the layer
  /** A coordinate in world millimetres is corner + unit * place. */
  corner: readonly [number, number, number];
  unit: number;
}

interface Attribute {
  at: typeof PLACES_AT | typeof NUMBERS_AT;
  type: "FLOAT" | "UNSIGNED_SHORT";
  offset: number; // in the bytes of a point
}

const LINES_IN_RUN = 65536; // their numbers have 16 bits

/** How points lie in buffers. */
interface PointFormat {
  buffers: readonly { bytes: number; attributes: readonly Attribute[] }[]; // bytes of a point
  /** What each buffer takes of the lines from `first` to before `last`; `scratch` has eight bytes for each of their points. */
  contents(batch: Batch, first: number, last: number, scratch: ArrayBuffer): ArrayBufferView[];
}

const EXACT: PointFormat = {
  buffers: [
    { bytes: 12, attributes: [{ at: PLACES_AT, type: "FLOAT", offset: 0 }] },
    { bytes: 2, attributes: [{ at: NUMBERS_AT, type: "UNSIGNED_SHORT", offset: 0 }] },
  ],
  contents({ offsets, positions }, first, last, scratch) {
    const begin = offsets[first];
    const numbers = new Uint16Array(scratch, 0, offsets[last] - begin);
    for (let line = first; line < last; line++) numbers.fill(line - first, offsets[line] - begin, offsets[line + 1] - begin);
    return [positions.subarray(3 * begin, 3 * offsets[last]), numbers];
  },
};

const QUANTISED: PointFormat = {
  buffers: [
    { bytes: 8, attributes: [{ at: PLACES_AT, type: "UNSIGNED_SHORT", offset: 0 }, { at: NUMBERS_AT, type: "UNSIGNED_SHORT", offset: 6 }] },
  ],
  contents({ offsets, positions }, first, last, scratch) {
    const words = new Uint32Array(scratch, 0, 2 * (offsets[last] - offsets[first]));
    let to = 0;
    for (let line = first; line < last; line++) {
      const end = 3 * offsets[line + 1];
      const number = (line - first) << 16;
      for (let i = 3 * offsets[line]; i < end; i += 3) {
        words[to] = positions[i] | (positions[i + 1] << 16);
        words[to + 1] = positions[i + 2] | number;
        to += 2;
      }
    }
    return [words];
  },
};

class PointPart {
  readonly runs: PointRun[] = [];
  private used = 0; // points
  private readonly array: WebGLVertexArrayObject;
  private readonly buffers: WebGLBuffer[];

  constructor(private readonly gl: WebGL2RenderingContext, private readonly format: PointFormat, private readonly capacity: number) {
    this.array = gl.createVertexArray()!;
    gl.bindVertexArray(this.array);
    this.buffers = format.buffers.map(({ bytes, attributes }) => {
      const buffer = gl.createBuffer()!;
      gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
      // One more in front and behind, so that every point has two neighbours.
      gl.bufferData(gl.ARRAY_BUFFER, bytes * (capacity + 2), gl.DYNAMIC_DRAW);
      for (const { at, type, offset } of attributes) {
        for (const neighbour of [0, 1, 2]) {
          const from = neighbour * bytes + offset;
          gl.enableVertexAttribArray(at + neighbour);
          if (at === PLACES_AT) gl.vertexAttribPointer(at + neighbour, 3, gl[type], false, bytes, from);
          else gl.vertexAttribIPointer(at + neighbour, 1, gl[type], bytes, from);
        }
      }
      return buffer;
    });
    gl.bindVertexArray(null);
  }

  takes(format: PointFormat, points: number): boolean {
    return this.format === format && this.used + points <= this.capacity;
  }

  clear(): void {
    this.used = 0;
    this.runs.length = 0;
  }

  append(batch: Batch, first: number, last: number, firstLine: number, scratch: ArrayBuffer): void {
    const { gl, format } = this;
    format.contents(batch, first, last, scratch).forEach((numbers, i) => {
      gl.bindBuffer(gl.ARRAY_BUFFER, this.buffers[i]);
      gl.bufferSubData(gl.ARRAY_BUFFER, format.buffers[i].bytes * (this.used + 1), numbers);
    });
    const points = batch.offsets[last] - batch.offsets[first];
    this.runs.push({ firstPoint: this.used, points, firstLine, corner: batch.corner, unit: batch.unit });
    this.used += points;
  }

  bind(): void {
    this.gl.bindVertexArray(this.array);
  }

  free(): void {
    this.gl.deleteVertexArray(this.array);
    for (const buffer of this.buffers) this.gl.deleteBuffer(buffer);
  }
}

const FIRST_PART_POINTS = 65536; // enough for an answer
const PART_POINTS = 1 << 20;
const KEPT_PARTS = 4; // of what is shown no more: 45 MB of answers, 25 MB of a file

/** The points of a layer. */
export class PointParts {
  private readonly parts: PointPart[] = [];
  private filled = 0; // parts before this one take nothing more
  private scratch = new ArrayBuffer(0); // fresh memory would cost more than filling it

  constructor(private readonly gl: WebGL2RenderingContext) {}

  /** Forgets them; some buffers stay for the next. */
  clear(): void {
    this.filled = 0;
    for (const part of this.parts.splice(KEPT_PARTS)) part.free();
    for (const part of this.parts) part.clear();
  }

  /** `firstLine` is the number of the batch's first line in the layer. */
  append(batch: Batch, firstLine: number): void {
    const { positions, offsets, seeds } = batch;
    const format = positions instanceof Float32Array ? EXACT : QUANTISED;
    for (let first = 0; first < seeds.length; first += LINES_IN_RUN) {
      const last = Math.min(first + LINES_IN_RUN, seeds.length);
      const points = offsets[last] - offsets[first];
      if (points === 0) continue;
      if (8 * points > this.scratch.byteLength) this.scratch = new ArrayBuffer(8 * points);
      this.partFor(format, points).append(batch, first, last, firstLine + first, this.scratch);
    }
  }

  private partFor(format: PointFormat, points: number): PointPart {
    while (this.filled < this.parts.length && !this.parts[this.filled].takes(format, points)) this.filled++;
    if (this.filled === this.parts.length) {
      const usual = this.parts.length === 0 ? FIRST_PART_POINTS : PART_POINTS;
      this.parts.push(new PointPart(this.gl, format, Math.max(usual, points)));
    }
    return this.parts[this.filled];
  }

  /** Calls `draw` for each run, with the buffers of its part bound. */
  eachRun(draw: (run: PointRun) => void): void {
    for (const part of this.parts) {
      if (part.runs.length === 0) continue;
      part.bind();
      part.runs.forEach(draw);
    }
    this.gl.bindVertexArray(null);
  }
}
