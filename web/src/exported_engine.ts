// Tracking in the page itself: requests come as the messages that a server would get, and the same messages leave. One
// request is at work at a time, and the newest wins. Before an adapter tracks for the user it has to give the bits that the
// program computed when it exported; where it does not, the processor tracks instead, exactly.
import { BrowserHost, HostFailure } from "./browser_host";
import { ExportedGpu, findAdapter, type FoundAdapter } from "./exported_gpu";
import { Kind, message } from "./messages";

interface Check {
  items: number;
  arithmetic: string;
  getters: Record<string, { request: string; sum: string }>;
}

// While one drags, answers that are quick are seen; a slow one makes way.
const LONGEST_BESIDE_NEWER_MS = 300;
// A GPU that was lost so often is not taken again.
const MOST_LOSSES = 2;
// A call on a lost GPU may fail before the browser has said that it is lost.
const LOSS_IS_TOLD_MS = 500;

/** Who tracks, for users to see. */
export type Engine =
  | { by: "gpu"; name: string }
  | { by: "processor"; why: string; refused: string | null; offered: string | null } // `refused`: the adapter that gave
  // other bits; `offered`: one that may be chosen all the same
  | { by: "lost"; name: string; why: string } // until the next request
  | { by: "inexact"; name: string };

export class ExportedEngine {
  private gpu: ExportedGpu | null = null;
  private readonly checked = new Set<string>(); // getters, on this adapter
  private acceptsInexact = false;
  private refused: string | null = null;
  private hasNone = false; // no adapter, or none that the field fits or that stayed
  private isChosen = false; // an adapter, though it be software
  private losses = 0;
  private tail: Promise<unknown> = Promise.resolve();
  private newest = 0;
  onEngine: (engine: Engine) => void = () => {};

  private constructor(private readonly host: BrowserHost, private readonly check: Check) {}

  static async open(folder: URL, listing: Uint8Array, check: Check, progress: (share: number) => void): Promise<ExportedEngine> {
    const need = async (name: string) => {
      const response = await fetch(new URL(name, folder));
      if (!response.ok) throw new Error(`${name}: the web server answered ${response.status}`);
      return response;
    };
    const [host, head] = await Promise.all([BrowserHost.load(folder), need("field/head").then((response) => response.arrayBuffer())]);
    host.open(listing, new Uint8Array(head));
    const reader = (await need("field/records")).body!.getReader();
    let at = 0;
    for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
      if (at + piece.value.length > host.recordBytes) throw new Error("field/records is longer than field/head says");
      host.fillRecords(at, piece.value);
      at += piece.value.length;
      progress(at / host.recordBytes);
    }
    if (at !== host.recordBytes) throw new Error("field/records is cut short");
    return new ExportedEngine(host, check);
  }

  /** One after the other. */
  private inTurn<T>(job: () => Promise<T>): Promise<T> {
    const turn = this.tail.then(job, job);
    this.tail = turn.catch(() => {});
    return turn;
  }

  /** Opens the adapter and checks its arithmetic; from then on it is known who tracks. */
  start(): Promise<void> {
    return this.inTurn(() => this.haveGpu());
  }

  useInexact(): void {
    this.acceptsInexact = true;
    this.refused = null;
  }

  /** The adapter that is there, software or not, once it has given the bits of the CPU. */
  useAdapter(): void {
    this.isChosen = true;
    this.hasNone = false;
  }

  private async haveGpu(): Promise<void> {
    if (this.gpu?.lost) {
      this.gpu = null;
      this.checked.clear();
    }
    if (this.gpu || this.refused || this.hasNone) return;
    let found: FoundAdapter | null = null;
    let why = "there is no WebGPU here";
    let offered: string | null = null;
    try {
      found = await findAdapter();
      if (found && this.losses >= MOST_LOSSES) {
        why = `${found.name} was lost ${this.losses} times`;
      } else if (found?.isSoftware && !this.isChosen && !this.acceptsInexact) {
        // It computes on the same processor, by way of shaders that the processor was not made for.
        why = `${found.name} is a GPU in software, which is slower`;
        offered = found.name;
      } else if (found) {
        this.gpu = await ExportedGpu.open(this.host, found);
        this.watch(this.gpu);
      }
    } catch (error) {
      why = String((error as Error).message ?? error);
    }
    this.hasNone = this.gpu === null;
    if (!this.gpu) return this.useProcessor(why, null, offered);
    if (!this.acceptsInexact && this.host.sumOf([await this.gpu.arithmetic(this.check.items)]) !== this.check.arithmetic) {
      return this.refuse("its arithmetic is another");
    }
    this.tell();
  }

  /** A GPU that is lost while nobody waits for it is told at once. */
  private watch(gpu: ExportedGpu): void {
    void gpu.whenLost.then((why) => {
      if (this.gpu !== gpu) return; // it was closed here
      this.losses++;
      this.onEngine({ by: "lost", name: gpu.name, why });
    });
  }

  private tell(): void {
    if (this.gpu) this.onEngine({ by: this.acceptsInexact ? "inexact" : "gpu", name: this.gpu.name });
  }
  private useProcessor(why: string, refused: string | null, offered: string | null): void {
    this.refused = refused;
    this.host.useCpu();
    const gpu = this.gpu;
    this.gpu = null;
    gpu?.close();
    this.onEngine({ by: "processor", why, refused, offered });
  }
  private refuse(why: string): void {
    this.useProcessor(why, this.gpu!.name, null);
  }

  /** The messages of a request, those without streamlines left out; null where it was stopped. */
  private async track(number: number, request: string, saves: boolean, stops: () => boolean,
    send: (message: Uint8Array<ArrayBuffer>) => void): Promise<Uint8Array<ArrayBuffer> | null> {
    this.host.ask(number, request, saves);
    while (this.host.nextRange()) {
      if (stops()) return null;
      if (this.gpu) {
        if (!(await this.gpu.trackRange(stops))) return null;
      } else {
        this.host.trackByCpu();
        await new Promise((resolve) => setTimeout(resolve)); // others of the page take their turn
      }
      const part = this.host.endRange();
      if (part.length > 0) send(part);
    }
    return stops() ? null : this.host.end();
  }

  private async checkGetter(getter: string): Promise<void> {
    const expected = this.check.getters[getter];
    if (!this.gpu || this.acceptsInexact || !expected || this.checked.has(getter)) return;
    const parts: Uint8Array[] = [];
    await this.track(0, expected.request, false, () => false, (part) => parts.push(part));
    if (this.host.sumOf(parts) !== expected.sum) this.refuse(`its streamlines by ${getter} are others`);
    else this.checked.add(getter);
  }

  private async whole(number: number, request: string, saves: boolean, stops: () => boolean,
    send: (message: Uint8Array<ArrayBuffer>) => void): Promise<Uint8Array<ArrayBuffer> | null> {
    let gpu: ExportedGpu | null = null;
    try {
      await this.haveGpu();
      gpu = this.gpu;
      await this.checkGetter(String(JSON.parse(request).dg ?? Object.keys(this.check.getters)[0]));
      return await this.track(number, request, saves, stops, send);
    } catch (error) {
      if (error instanceof HostFailure || !gpu) throw error;
      const lost = await Promise.race([gpu.whenLost, new Promise<null>((resolve) => setTimeout(() => resolve(null), LOSS_IS_TOLD_MS))]);
      if (lost !== null) throw new Error(`${gpu.name} was lost (${lost}); the next click is answered, with the same bits.`);
      throw error;
    }
  }

  /** A request; of those that wait the newest counts, and one at work is given up for it once it has had its time. */
  ask(number: number, request: string, send: (message: Uint8Array<ArrayBuffer>) => void): void {
    this.newest = number;
    let begin = -Infinity;
    const stops = () => this.newest !== number && (this.newest < 0 || performance.now() - begin > LONGEST_BESIDE_NEWER_MS);
    void this.inTurn(async () => {
      if (stops()) return;
      begin = performance.now();
      try {
        const end = await this.whole(number, request, false, stops, send);
        if (end) send(end);
      } catch (error) {
        const body = error instanceof HostFailure ? error.body : JSON.stringify({ kind: "device", message: String((error as Error).message ?? error), argument: "" });
        if (!stops()) send(message(Kind.error, number, new TextEncoder().encode(body)));
      }
    });
  }
  cancel(number: number): void {
    if (this.newest === number) this.newest = -1;
  }

  /** The TRX of a request, with its command and what is told beside it. */
  save(request: string): Promise<{ bytes: Uint8Array<ArrayBuffer>; command: string; sidecar: Record<string, unknown> }> {
    return this.inTurn(async () => {
      const bytes = await this.whole(0, request, true, () => false, () => {});
      const tracker = this.gpu ? this.gpu.name : "the processor of a browser";
      const sidecar = { ...this.host.sidecar(), request: JSON.parse(request), exact: !this.acceptsInexact, bytes: bytes!.length, run: { device: tracker } };
      return { bytes: bytes!, command: this.host.command(), sidecar };
    });
  }

  /** Pictures of a slice, as the server names them. */
  picture(name: "glyphs" | "peaks", axis: number, mm: number): Uint8Array<ArrayBuffer> {
    return this.host[name](axis, mm);
  }
}
