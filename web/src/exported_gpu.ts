// WebGPU, and nothing else of this page knows it: buffers, shaders, dispatches. What is in them, the host says
// (browser_host.ts).
import type { BrowserHost, DeviceLayout } from "./browser_host";

// Values of WebGPU that TypeScript's own library does not declare.
declare const GPUBufferUsage: Record<"COPY_SRC" | "COPY_DST" | "MAP_READ" | "STORAGE" | "UNIFORM", number>;
declare const GPUShaderStage: Record<"COMPUTE", number>;
declare const GPUMapMode: Record<"READ", number>;

function nameOf(adapter: GPUAdapter): string {
  const { vendor, architecture, device, description } = adapter.info;
  return description || device || [vendor, architecture].filter(Boolean).join(" ") || "an adapter without a name";
}

function roundedUp(bytes: number): number {
  return Math.ceil(bytes / 4) * 4;
}

/** An adapter that is there, before anything is asked of it. */
export interface FoundAdapter {
  adapter: GPUAdapter;
  name: string;
  isSoftware: boolean; // a processor that plays a GPU
}

/** Null where there is none. */
export async function findAdapter(): Promise<FoundAdapter | null> {
  const adapter = await navigator.gpu?.requestAdapter({ powerPreference: "high-performance" });
  if (!adapter) return null;
  const name = nameOf(adapter);
  return { adapter, name, isSoftware: adapter.info.isFallbackAdapter || /swiftshader|llvmpipe|lavapipe|basic render/i.test(name) };
}

export class ExportedGpu {
  private readonly pipelines = new Map<string, GPUComputePipeline>();
  private readonly tables = new Map<number, GPUBuffer>();
  private readonly pieces: GPUBuffer[] = [];
  private readonly work: GPUBuffer;
  private readonly pages: GPUBuffer;
  private readonly numbers: GPUBuffer;
  private readonly readCounters: GPUBuffer;
  private readonly readPages: GPUBuffer;
  private readonly bindings: GPUBindGroupLayout;
  /** Why it can be used no more; null while it can. */
  lost: string | null = null;
  readonly whenLost: Promise<string>;

  private constructor(
    readonly name: string,
    private readonly device: GPUDevice,
    private readonly host: BrowserHost,
    private readonly layout: DeviceLayout,
  ) {
    this.whenLost = device.lost.then((information) => {
      this.lost = information.message || information.reason;
      return this.lost;
    });
    const make = (size: number, usage: number) => device.createBuffer({ size: roundedUp(size), usage });
    for (let piece = 0; piece < layout.pieces; piece++) {
      const at = piece * layout.pieceBytes;
      const bytes = roundedUp(Math.min(layout.pieceBytes, host.recordBytes - at));
      const buffer = make(bytes, GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_DST);
      device.queue.writeBuffer(buffer, 0, host.records(at, bytes));
      this.pieces.push(buffer);
    }
    this.work = make(layout.workBytes, GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST);
    this.pages = make(layout.pagesBytes, GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC);
    this.numbers = make(1024, GPUBufferUsage.UNIFORM | GPUBufferUsage.COPY_DST);
    this.readCounters = make(layout.counterBytes, GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST);
    this.readPages = make(layout.pagesBytes, GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST);
    const types: GPUBufferBindingType[] = [
      ...Array<GPUBufferBindingType>(layout.pieces + 1).fill("read-only-storage"), "storage", "storage", "uniform",
    ];
    this.bindings = device.createBindGroupLayout({
      entries: types.map((type, binding) => ({ binding, visibility: GPUShaderStage.COMPUTE, buffer: { type } })),
    });
  }

  /** Throws the host's sentence where the field is beyond its limits. */
  static async open(host: BrowserHost, { adapter, name, isSoftware }: FoundAdapter): Promise<ExportedGpu> {
    const { maxStorageBufferBindingSize, maxBufferSize, maxStorageBuffersPerShaderStage, maxComputeWorkgroupStorageSize } = adapter.limits;
    const largest = Math.min(maxStorageBufferBindingSize, maxBufferSize, 2 ** 31 - 4);
    const layout = host.useAdapter({
      software: isSoftware,
      largestBinding: largest,
      storageBindings: maxStorageBuffersPerShaderStage,
      workgroupBytes: maxComputeWorkgroupStorageSize,
    });
    const device = await adapter.requestDevice({
      requiredLimits: { maxStorageBufferBindingSize: largest, maxBufferSize: largest, maxStorageBuffersPerShaderStage, maxComputeWorkgroupStorageSize },
    });
    return new ExportedGpu(name, device, host, layout);
  }

  private async compile(text: string, entry: string, layout: GPUBindGroupLayout): Promise<GPUComputePipeline> {
    const known = this.pipelines.get(text);
    if (known) return known;
    const made = await this.device.createComputePipelineAsync({
      layout: this.device.createPipelineLayout({ bindGroupLayouts: [layout] }),
      compute: { module: this.device.createShaderModule({ code: text }), entryPoint: entry },
    });
    this.pipelines.set(text, made);
    return made;
  }

  private async read(buffer: GPUBuffer, bytes: number): Promise<Uint8Array<ArrayBuffer>> {
    await buffer.mapAsync(GPUMapMode.READ, 0, bytes);
    const copy = new Uint8Array(buffer.getMappedRange(0, bytes).slice(0));
    buffer.unmap();
    return copy;
  }

  /** The arithmetic that `cingulum selfcheck` compares, of so many items. */
  async arithmetic(items: number): Promise<Uint8Array> {
    const device = this.device;
    const bytes = 16 * items;
    const output = device.createBuffer({ size: bytes, usage: GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC });
    const back = device.createBuffer({ size: bytes, usage: GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST });
    const layout = device.createBindGroupLayout({
      entries: (["storage", "uniform"] as const).map((type, binding) => ({ binding, visibility: GPUShaderStage.COMPUTE, buffer: { type } })),
    });
    const pipeline = await this.compile(this.host.selfcheckShader(), "selfcheck", layout);
    const scalars = new DataView(new ArrayBuffer(8));
    scalars.setUint32(0, items, true);
    scalars.setFloat32(4, -0, true);
    device.queue.writeBuffer(this.numbers, 0, scalars.buffer);
    const encoder = device.createCommandEncoder();
    const pass = encoder.beginComputePass();
    pass.setPipeline(pipeline);
    pass.setBindGroup(0, device.createBindGroup({
      layout,
      entries: [{ binding: 0, resource: { buffer: output } }, { binding: 1, resource: { buffer: this.numbers, size: 8 } }],
    }));
    pass.dispatchWorkgroups(Math.ceil(items / 64));
    pass.end();
    encoder.copyBufferToBuffer(output, 0, back, 0, bytes);
    device.queue.submit([encoder.finish()]);
    const words = await this.read(back, bytes);
    output.destroy();
    back.destroy();
    return words;
  }

  private tablesOf(getter: number): GPUBuffer {
    const known = this.tables.get(getter);
    if (known) return known;
    const bytes = this.host.tables();
    const buffer = this.device.createBuffer({ size: bytes.length, usage: GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_DST });
    this.device.queue.writeBuffer(buffer, 0, bytes);
    this.tables.set(getter, buffer);
    return buffer;
  }

  /** The range of seeds that the host has begun; false where `stops` said so before its end. */
  async trackRange(stops: () => boolean): Promise<boolean> {
    const { device, host, layout } = this;
    const pipeline = await this.compile(host.shader(), "track", this.bindings);
    const buffers = [this.tablesOf(host.getter()), ...this.pieces, this.work, this.pages, this.numbers];
    const group = device.createBindGroup({
      layout: this.bindings,
      entries: buffers.map((buffer, binding) => ({ binding, resource: { buffer } })),
    });
    const seeds = host.beginDispatches();
    let encoder = device.createCommandEncoder();
    encoder.clearBuffer(this.work, 0, layout.seedsAt);
    device.queue.submit([encoder.finish()]);
    device.queue.writeBuffer(this.work, layout.seedsAt, seeds);
    while (!host.finished()) {
      if (stops()) return false;
      const { workgroups, numbers } = host.launch();
      device.queue.writeBuffer(this.numbers, 0, numbers);
      encoder = device.createCommandEncoder();
      encoder.clearBuffer(this.work, layout.dispatchCountersAt, layout.dispatchCounterBytes);
      const pass = encoder.beginComputePass();
      pass.setPipeline(pipeline);
      pass.setBindGroup(0, group);
      pass.dispatchWorkgroups(workgroups);
      pass.end();
      encoder.copyBufferToBuffer(this.work, 0, this.readCounters, 0, layout.counterBytes);
      const begin = performance.now();
      device.queue.submit([encoder.finish()]);
      const counters = await this.read(this.readCounters, layout.counterBytes);
      const used = host.afterDispatch(counters, (performance.now() - begin) / 1000);
      if (used === 0) continue;
      const entryBytes = used * layout.entryBytes;
      const pointBytes = used * layout.pageBytes;
      encoder = device.createCommandEncoder();
      encoder.copyBufferToBuffer(this.pages, 0, this.readPages, 0, entryBytes);
      encoder.copyBufferToBuffer(this.pages, layout.pointsAt, this.readPages, entryBytes, pointBytes);
      encoder.clearBuffer(this.work, layout.pagesCounterAt, 4);
      device.queue.submit([encoder.finish()]);
      const taken = await this.read(this.readPages, entryBytes + pointBytes);
      host.takePages(taken.subarray(0, entryBytes), taken.subarray(entryBytes));
    }
    return true;
  }

  close(): void {
    this.device.destroy();
  }
}
