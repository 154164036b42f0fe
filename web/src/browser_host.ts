// The host part of tracking, our C++ as WebAssembly (web/host/browser_host.cpp): bytes in, bytes out. What fails throws the
// sentence that the C++ says.

interface Module {
  HEAPU8: Uint8Array<ArrayBuffer>;
  _malloc(bytes: number): number;
  _free(place: number): void;
  _host_answer(): number;
  _host_answer_bytes(): number;
  _host_open(listing: number, listingBytes: number, head: number, headBytes: number): number;
  _host_records(): number;
  _host_records_bytes(): number;
  _host_use_adapter(software: number, largestBinding: number, storageBindings: number, workgroupBytes: number): number;
  _host_use_cpu(): void;
  _host_ask(number: number, request: number, bytes: number, saves: number): number;
  _host_command(): void;
  _host_sidecar(): void;
  _host_getter(): number;
  _host_text(): void;
  _host_tables(): void;
  _host_next_range(): number;
  _host_track_by_cpu(): number;
  _host_begin_dispatches(): number;
  _host_launch(): number;
  _host_after_dispatch(counters: number, seconds: number): number;
  _host_take_pages(entries: number, entryBytes: number, points: number, pointBytes: number): void;
  _host_finished(): number;
  _host_end_range(): number;
  _host_end(): number;
  _host_glyphs(axis: number, mm: number): number;
  _host_peaks(axis: number, mm: number): number;
  _host_begin_sum(): void;
  _host_add_to_sum(bytes: number, count: number): void;
  _host_sum(): void;
  _host_selfcheck_text(): void;
}

/** Of buffers on the device, in bytes. */
export interface DeviceLayout {
  pieces: number;
  pieceBytes: number;
  workBytes: number;
  pagesBytes: number;
  seedsAt: number;
  pointsAt: number;
  counterBytes: number;
  dispatchCountersAt: number;
  dispatchCounterBytes: number;
  pagesCounterAt: number;
  entryBytes: number;
  pageBytes: number;
}

export interface Adapter {
  software: boolean;
  largestBinding: number;
  storageBindings: number;
  workgroupBytes: number;
}

export class HostFailure extends Error {
  /** The body of an error message. */
  constructor(readonly body: string) {
    super(JSON.parse(body).message);
  }
}

export class BrowserHost {
  private constructor(private readonly module: Module) {}

  static async load(folder: URL): Promise<BrowserHost> {
    const script = await import(new URL("browser_host.js", folder).href);
    return new BrowserHost(await script.default({ locateFile: (name: string) => new URL(name, folder).href }));
  }

  /** A copy: the memory moves when it grows. */
  private answer(): Uint8Array<ArrayBuffer> {
    const at = this.module._host_answer();
    return this.module.HEAPU8.slice(at, at + this.module._host_answer_bytes());
  }
  private text(): string {
    return new TextDecoder().decode(this.answer());
  }
  private must(done: number): void {
    if (!done) throw new HostFailure(this.text());
  }
  private given<T>(bytes: Uint8Array[], use: (places: number[]) => T): T {
    const places = bytes.map((some) => {
      const place = this.module._malloc(Math.max(some.length, 1));
      this.module.HEAPU8.set(some, place);
      return place;
    });
    try {
      return use(places);
    } finally {
      for (const place of places) this.module._free(place);
    }
  }

  open(listing: Uint8Array, head: Uint8Array): void {
    this.given([listing, head], ([a, b]) => this.must(this.module._host_open(a, listing.length, b, head.length)));
  }
  get recordBytes(): number {
    return this.module._host_records_bytes();
  }
  fillRecords(at: number, bytes: Uint8Array): void {
    this.module.HEAPU8.set(bytes, this.module._host_records() + at);
  }
  records(at: number, bytes: number): Uint8Array<ArrayBuffer> {
    const place = this.module._host_records() + at;
    return this.module.HEAPU8.subarray(place, place + bytes);
  }

  useAdapter(adapter: Adapter): DeviceLayout {
    this.must(this.module._host_use_adapter(adapter.software ? 1 : 0, adapter.largestBinding, adapter.storageBindings, adapter.workgroupBytes));
    const numbers = new Uint32Array(this.answer().buffer);
    const [pieces, pieceBytes, workBytes, pagesBytes, seedsAt, pointsAt, counterBytes, dispatchCountersAt, dispatchCounterBytes,
      pagesCounterAt, entryBytes, pageBytes] = numbers;
    return { pieces, pieceBytes, workBytes, pagesBytes, seedsAt, pointsAt, counterBytes, dispatchCountersAt, dispatchCounterBytes,
      pagesCounterAt, entryBytes, pageBytes };
  }
  useCpu(): void {
    this.module._host_use_cpu();
  }

  ask(number: number, request: string, saves: boolean): void {
    const bytes = new TextEncoder().encode(request);
    this.given([bytes], ([place]) => this.must(this.module._host_ask(number, place, bytes.length, saves ? 1 : 0)));
  }
  command(): string {
    this.module._host_command();
    return this.text();
  }
  /** Of what was saved last. */
  sidecar(): Record<string, unknown> {
    this.module._host_sidecar();
    return JSON.parse(this.text());
  }
  getter(): number {
    return this.module._host_getter();
  }
  shader(): string {
    this.module._host_text();
    return this.text();
  }
  tables(): Uint8Array<ArrayBuffer> {
    this.module._host_tables();
    return this.answer();
  }
  nextRange(): boolean {
    return this.module._host_next_range() !== 0;
  }
  trackByCpu(): void {
    this.must(this.module._host_track_by_cpu());
  }
  beginDispatches(): Uint8Array<ArrayBuffer> {
    this.must(this.module._host_begin_dispatches());
    return this.answer();
  }
  launch(): { workgroups: number; numbers: Uint8Array<ArrayBuffer> } {
    const workgroups = this.module._host_launch();
    return { workgroups, numbers: this.answer() };
  }
  /** How many pages are to be taken. */
  afterDispatch(counters: Uint8Array, seconds: number): number {
    return this.given([counters], ([place]) => this.module._host_after_dispatch(place, seconds));
  }
  takePages(entries: Uint8Array, points: Uint8Array): void {
    this.given([entries, points], ([a, b]) => this.module._host_take_pages(a, entries.length, b, points.length));
  }
  finished(): boolean {
    return this.module._host_finished() !== 0;
  }
  /** A message, empty where nothing was kept. */
  endRange(): Uint8Array<ArrayBuffer> {
    this.must(this.module._host_end_range());
    return this.answer();
  }
  /** The message at the end, or what was saved. */
  end(): Uint8Array<ArrayBuffer> {
    this.must(this.module._host_end());
    return this.answer();
  }
  glyphs(axis: number, mm: number): Uint8Array<ArrayBuffer> {
    this.must(this.module._host_glyphs(axis, mm));
    return this.answer();
  }

  peaks(axis: number, mm: number): Uint8Array<ArrayBuffer> {
    this.must(this.module._host_peaks(axis, mm));
    return this.answer();
  }

  sumOf(parts: Uint8Array[]): string {
    this.module._host_begin_sum();
    for (const part of parts) this.given([part], ([place]) => this.module._host_add_to_sum(place, part.length));
    this.module._host_sum();
    return this.text();
  }
  selfcheckShader(): string {
    this.module._host_selfcheck_text();
    return this.text();
  }
}
