// A program of WebGL2: compiled once, with the places of its uniforms.

function compiled(gl: WebGL2RenderingContext, of: string, type: number, text: string): WebGLShader {
  const shader = gl.createShader(type)!;
  gl.shaderSource(shader, text);
  gl.compileShader(shader);
  if (!gl.getShaderParameter(shader, gl.COMPILE_STATUS)) throw new Error(`the shader of ${of}: ${gl.getShaderInfoLog(shader)}`);
  return shader;
}

export class GlProgram<Uniform extends string> {
  readonly places: Record<Uniform, WebGLUniformLocation | null>;
  private readonly program: WebGLProgram;

  /** `of` is what it draws, for messages. */
  constructor(readonly gl: WebGL2RenderingContext, of: string, vertex: string, fragment: string, uniforms: readonly Uniform[]) {
    this.program = gl.createProgram()!;
    gl.attachShader(this.program, compiled(gl, of, gl.VERTEX_SHADER, vertex));
    gl.attachShader(this.program, compiled(gl, of, gl.FRAGMENT_SHADER, fragment));
    gl.linkProgram(this.program);
    if (!gl.getProgramParameter(this.program, gl.LINK_STATUS)) {
      throw new Error(`the shader of ${of}: ${gl.getProgramInfoLog(this.program)}`);
    }
    this.places = Object.fromEntries(uniforms.map((name) => [name, gl.getUniformLocation(this.program, name)])) as typeof this.places;
  }

  use(): void {
    this.gl.useProgram(this.program);
  }
}
