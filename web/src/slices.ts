// NiiVue, and nothing else of this page knows it: three planes and a rendering of an image with a linked cross-hair, and a
// place in its drawing where our own lines join with its matrices.
import { Niivue, DRAG_MODE, MULTIPLANAR_TYPE, SHOW_RENDER } from "@niivue/niivue";
import type { Slab } from "./streamline_layer";

export type Point = [number, number, number];
/** Draws with these; `slab` on a slice, null in the rendering. The GL state may be left as it is. */
export type DrawLines = (toClip: Float32Array, slab: Slab | null) => void;

// What of NiiVue's drawing is called here. It is not part of its documented interface; the package's version is fixed.
interface Drawing {
  draw2DMain(place: number[], plane: number, customMM?: number): void;
  init(): Promise<unknown>;
  crosshairs3D: unknown; // buffers of the cross-hair in the rendering; null: made when it is drawn
  drawMesh3D(depthTest: boolean, alpha: number, toClip: Float32Array, model: unknown, normal: unknown, is2D?: boolean): void;
  gl: WebGL2RenderingContext;
}

// NiiVue's planes: 0 axial, 1 coronal, 2 sagittal.
const AXIS_OF_PLANE = [2, 1, 0] as const;

export class Slices {
  private readonly nv: Niivue;
  private plane = 0;
  /** Half the thickness of what is shown about a slice. */
  slabHalfMm = 2;

  private constructor(nv: Niivue, drawLines: DrawLines) {
    this.nv = nv;
    const drawing = nv as unknown as Drawing;
    const slice = drawing.draw2DMain.bind(nv);
    drawing.draw2DMain = (place, plane, customMM) => {
      this.plane = plane;
      slice(place, plane, customMM);
    };
    const meshes = drawing.drawMesh3D.bind(nv);
    drawing.drawMesh3D = (depthTest, alpha, toClip, model, normal, is2D = false) => {
      meshes(depthTest, alpha, toClip, model, normal, is2D);
      if (!depthTest) return; // its second pass, for what lies behind
      const gl = drawing.gl;
      const axis = AXIS_OF_PLANE[this.plane];
      const slab = is2D && axis !== undefined ? { axis, mm: this.crosshair()[axis], halfMm: this.slabHalfMm } : null;
      gl.disable(gl.CULL_FACE);
      gl.disable(gl.BLEND);
      gl.depthMask(true);
      if (slab) {
        gl.disable(gl.DEPTH_TEST);
      } else {
        // Lines hide each other, and the image that is rendered around them hides none.
        gl.clear(gl.DEPTH_BUFFER_BIT);
        gl.enable(gl.DEPTH_TEST);
        gl.depthFunc(gl.LEQUAL);
      }
      drawLines(toClip, slab);
      gl.enable(gl.DEPTH_TEST);
      gl.enable(gl.BLEND);
    };
  }

  static async open(canvas: HTMLCanvasElement, drawLines: DrawLines): Promise<Slices> {
    const nv = new Niivue({
      isSliceMM: true, // world axes on slices, too
      meshThicknessOn2D: Infinity, // the slab is ours
      multiplanarShowRender: SHOW_RENDER.ALWAYS,
      multiplanarLayout: MULTIPLANAR_TYPE.GRID,
      dragMode: DRAG_MODE.pan,
      dragAndDropEnabled: false,
      isResizeCanvas: true,
      crosshairWidth: 0.15,
      crosshairColor: [1, 1, 1, 0.5],
      backColor: [0.06, 0.07, 0.09, 1],
      show3Dcrosshair: true,
      logLevel: "error",
    } as never);
    const slices = new Slices(nv, drawLines);
    await nv.attachToCanvas(canvas, true);
    nv.setSliceType(nv.sliceTypeMultiplanar);
    return slices;
  }

  get gl(): WebGL2RenderingContext {
    return (this.nv as unknown as Drawing).gl;
  }

  /** Whenever the cross-hair is moved, by whomever; world, mm. */
  onMove(listener: (place: Point) => void): void {
    this.nv.onLocationChange = (location) => {
      const mm = (location as { mm: ArrayLike<number> }).mm;
      listener([mm[0], mm[1], mm[2]]);
    };
  }

  async show(bytes: ArrayBuffer, name: string): Promise<void> {
    for (const volume of [...this.nv.volumes]) this.nv.removeVolume(volume);
    await this.nv.loadFromArrayBuffer(bytes, name);
    this.redraw();
  }

  crosshair(): Point {
    const mm = this.nv.frac2mm(this.nv.scene.crosshairPos);
    return [mm[0], mm[1], mm[2]];
  }

  moveTo(place: Point): void {
    this.nv.scene.crosshairPos = this.nv.mm2frac(place as never);
    this.redraw();
  }

  view(): [number, number] {
    return [this.nv.scene.renderAzimuth, this.nv.scene.renderElevation];
  }

  turnTo(azimuth: number, elevation: number): void {
    this.nv.setRenderAzimuthElevation(azimuth, elevation);
  }

  /** Makes textures and shaders anew, in a context that was lost. */
  async restore(): Promise<void> {
    const drawing = this.nv as unknown as Drawing;
    drawing.crosshairs3D = null;
    await drawing.init();
  }

  redraw(): void {
    this.nv.drawScene();
  }

  /** The picture on the canvas, as PNG. */
  picture(): Promise<Blob> {
    this.redraw(); // in the same task: the canvas is empty after it
    return new Promise((resolve, reject) => {
      (this.gl.canvas as HTMLCanvasElement).toBlob((blob) => (blob ? resolve(blob) : reject(new Error("no picture"))), "image/png");
    });
  }
}
