// Orientation distributions of the voxels of a slice: one sphere of triangles, drawn once for each voxel, each corner
// pulled out as far as the amplitude there says. Coloured by direction.
import { GlProgram } from "./gl_program";

export interface Glyphs {
  directions: Float32Array<ArrayBuffer>; // of the corners, 3 each
  centres: Float32Array<ArrayBuffer>; // of the voxels, 3 each
  greatest: Float32Array<ArrayBuffer>; // amplitude of each voxel
  triangles: Uint16Array<ArrayBuffer>;
  amplitudes: Uint8Array<ArrayBuffer>; // of each voxel and corner
}

export function parseGlyphs(bytes: ArrayBuffer): Glyphs {
  if (bytes.byteLength < 12) throw new Error("glyphs are cut short");
  const [voxels, corners, triangles] = new Uint32Array(bytes, 0, 3);
  const centresAt = 12 + 12 * corners;
  const greatestAt = centresAt + 12 * voxels;
  const trianglesAt = greatestAt + 4 * voxels;
  const amplitudesAt = trianglesAt + 6 * triangles;
  if (amplitudesAt + voxels * corners !== bytes.byteLength) throw new Error("glyphs of another size than they say");
  return {
    directions: new Float32Array(bytes, 12, 3 * corners),
    centres: new Float32Array(bytes, centresAt, 3 * voxels),
    greatest: new Float32Array(bytes, greatestAt, voxels),
    triangles: new Uint16Array(bytes, trianglesAt, 3 * triangles),
    amplitudes: new Uint8Array(bytes, amplitudesAt, voxels * corners),
  };
}

const VERTEX = `#version 300 es
layout(location = 0) in vec3 direction;
layout(location = 1) in vec3 centre;
uniform mat4 toClip;
uniform float size; // mm from the centre to the end of the longest lobe
uniform highp sampler2D amplitudes;
uniform int corners;
uniform int voxelsInRow;
out vec3 shade;
void main() {
  float amplitude = texelFetch(amplitudes, ivec2(gl_InstanceID % voxelsInRow * corners + gl_VertexID, gl_InstanceID / voxelsInRow), 0).r;
  vec3 colour = abs(direction);
  shade = colour / max(max(colour.x, max(colour.y, colour.z)), 1e-6) * (0.45 + 0.55 * amplitude);
  gl_Position = toClip * vec4(centre + direction * (amplitude * size), 1.0);
}`;

const FRAGMENT = `#version 300 es
precision highp float;
in vec3 shade;
out vec4 result;
void main() {
  result = vec4(shade, 1.0);
}`;

/** The program, which the layers of all slices share. */
export class GlyphProgram extends GlProgram<"toClip" | "size" | "amplitudes" | "corners" | "voxelsInRow"> {
  readonly textureSide: number;

  constructor(gl: WebGL2RenderingContext) {
    super(gl, "glyphs", VERTEX, FRAGMENT, ["toClip", "size", "amplitudes", "corners", "voxelsInRow"]);
    this.textureSide = Math.min(gl.getParameter(gl.MAX_TEXTURE_SIZE), 8192); // 180 000 voxels of 362 corners
  }
}

export class GlyphLayer {
  private readonly gl: WebGL2RenderingContext;
  private readonly array: WebGLVertexArrayObject;
  private readonly directions: WebGLBuffer;
  private readonly centres: WebGLBuffer;
  private readonly triangles: WebGLBuffer;
  private readonly amplitudes: WebGLTexture;
  private voxels = 0;
  private corners = 1;
  private indices = 0;
  sizeMm = 1;

  constructor(private readonly program: GlyphProgram) {
    const gl = (this.gl = program.gl);
    this.array = gl.createVertexArray()!;
    this.directions = gl.createBuffer()!;
    this.centres = gl.createBuffer()!;
    this.triangles = gl.createBuffer()!;
    this.amplitudes = gl.createTexture()!;
    gl.bindVertexArray(this.array);
    gl.bindBuffer(gl.ARRAY_BUFFER, this.directions);
    gl.enableVertexAttribArray(0);
    gl.vertexAttribPointer(0, 3, gl.FLOAT, false, 0, 0);
    gl.bindBuffer(gl.ARRAY_BUFFER, this.centres);
    gl.enableVertexAttribArray(1);
    gl.vertexAttribPointer(1, 3, gl.FLOAT, false, 0, 0);
    gl.vertexAttribDivisor(1, 1);
    gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, this.triangles);
    gl.bindVertexArray(null);
  }

  clear(): void {
    this.voxels = 0;
  }

  show(glyphs: Glyphs): void {
    const gl = this.gl;
    const corners = glyphs.directions.length / 3;
    const all = glyphs.centres.length / 3;
    const inRow = this.voxelsInRow(corners);
    const count = Math.min(all, inRow * this.program.textureSide); // a slice of more shows the first
    const rows = Math.ceil(count / inRow);
    const amplitudes = new Uint8Array(inRow * corners * rows);
    amplitudes.set(glyphs.amplitudes.subarray(0, corners * count));
    gl.bindVertexArray(this.array);
    gl.bindBuffer(gl.ARRAY_BUFFER, this.directions);
    gl.bufferData(gl.ARRAY_BUFFER, glyphs.directions, gl.STATIC_DRAW);
    gl.bindBuffer(gl.ARRAY_BUFFER, this.centres);
    gl.bufferData(gl.ARRAY_BUFFER, glyphs.centres, gl.DYNAMIC_DRAW);
    gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, this.triangles);
    gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, glyphs.triangles, gl.STATIC_DRAW);
    gl.bindVertexArray(null);
    if (count > 0) {
      gl.activeTexture(gl.TEXTURE0);
      const before = gl.getParameter(gl.TEXTURE_BINDING_2D);
      gl.bindTexture(gl.TEXTURE_2D, this.amplitudes);
      gl.pixelStorei(gl.UNPACK_ALIGNMENT, 1);
      gl.texImage2D(gl.TEXTURE_2D, 0, gl.R8, inRow * corners, rows, 0, gl.RED, gl.UNSIGNED_BYTE, amplitudes);
      gl.pixelStorei(gl.UNPACK_ALIGNMENT, 4);
      gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MIN_FILTER, gl.NEAREST);
      gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MAG_FILTER, gl.NEAREST);
      gl.bindTexture(gl.TEXTURE_2D, before);
    }
    this.voxels = count;
    this.corners = corners;
    this.indices = glyphs.triangles.length;
  }

  private voxelsInRow(corners: number): number {
    return Math.max(1, Math.floor(this.program.textureSide / corners));
  }

  /** Needs a depth test: lobes hide each other. */
  draw(toClip: Float32Array): void {
    if (this.voxels === 0) return;
    const gl = this.gl;
    const { places } = this.program;
    this.program.use();
    gl.uniformMatrix4fv(places.toClip, false, toClip);
    gl.uniform1f(places.size, this.sizeMm);
    gl.uniform1i(places.amplitudes, 0);
    gl.uniform1i(places.corners, this.corners);
    gl.uniform1i(places.voxelsInRow, this.voxelsInRow(this.corners));
    gl.activeTexture(gl.TEXTURE0);
    const before = gl.getParameter(gl.TEXTURE_BINDING_2D);
    gl.bindTexture(gl.TEXTURE_2D, this.amplitudes);
    gl.bindVertexArray(this.array);
    gl.drawElementsInstanced(gl.TRIANGLES, this.indices, gl.UNSIGNED_SHORT, 0, this.voxels);
    gl.bindVertexArray(null);
    gl.bindTexture(gl.TEXTURE_2D, before);
  }
}
