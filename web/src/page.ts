// The page of `cingulum view`: what the user does becomes requests, filters and pictures.
import { compare, type Comparison, type Grid } from "./line_comparison";
import { END_COLOURS, lengthColour, LONGEST_SHOWN_MM, type ColourBy } from "./line_colours";
import { passes, passesAll, type LineFilter, type Sphere } from "./line_filters";
import { GlyphLayer, parseGlyphs } from "./glyph_layer";
import { LineProgram, LineState, StreamlineLayer } from "./streamline_layer";
import { LiveSocket } from "./live_socket";
import { Kind, parseAnswer, type End } from "./messages";
import { makeSlider, type Slider, type SliderOptions } from "./sliders";
import { outline } from "./sphere_outline";
import { readLink, writeLink } from "./link";
import { Slices, type Point } from "./slices";
import { Streamlines } from "./streamlines";

interface FileEntry {
  id: string;
  name: string;
  kind: "image" | "tractogram" | "series";
  bytes: number;
}

interface Live extends Grid {
  field: string;
  getters: string[];
  getter: string; // what `cingulum track` takes unless told
  lowest_stop_threshold: number | null;
  defaults: Record<string, Record<string, string | boolean>>; // as on the command line; flags are true or false
  most_seeds: number;
  device: string;
  image?: string;
  glyphs?: boolean;
  truth: boolean;
}

interface Listing {
  files: FileEntry[];
  live: Live | null;
  live_error: string | null;
}

const byId = <T extends HTMLElement>(id: string): T => document.getElementById(id) as T;
const LONGEST_MM = 500; // of the slider; there it leaves nothing out

function say(message: string | null): void {
  const place = byId("message");
  place.hidden = message === null;
  place.textContent = message ?? "";
}

function listed(place: HTMLElement, rows: [string, string][]): void {
  place.replaceChildren(
    ...rows.flatMap(([name, value]) => {
      const term = document.createElement("dt");
      const text = document.createElement("dd");
      term.textContent = name;
      text.textContent = value;
      return [term, text];
    }),
  );
}

/** A place that can be read and typed. */
function tenths(mm: number): number {
  return Math.round(10 * mm) / 10;
}

function download(blob: Blob, name: string): void {
  const address = URL.createObjectURL(blob);
  const anchor = document.createElement("a");
  anchor.href = address;
  anchor.download = name;
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}

async function fetched(path: string, options?: RequestInit): Promise<Response> {
  const response = await fetch(path, options);
  if (response.ok) return response;
  const said = await response.text();
  let message = said;
  try {
    message = JSON.parse(said).message ?? said;
  } catch {
    // a plain sentence
  }
  throw new Error(message || `${path}: the server answered ${response.status}`);
}

class Page {
  private readonly program: LineProgram;
  private readonly file: StreamlineLayer;
  private readonly live: StreamlineLayer; // B where A is frozen
  private readonly frozen: StreamlineLayer; // A
  private readonly marks: StreamlineLayer; // outlines of spheres
  private readonly glyphs: GlyphLayer[]; // of the slices along x, y and z
  private readonly glyphPlaces: (number | null)[] = [null, null, null];
  private glyphsAreShown = false;
  private socket: LiveSocket | null = null;
  private comparison: Comparison | null = null;
  private frozenEnd: End | null = null;
  private lastEnd: End | null = null;
  private isFrozen = false;
  private readonly parts = { a: true, b: true, both: true };
  private readonly filter: LineFilter = { shortestMm: 0, longestMm: Infinity, share: 1, include: [], exclude: [] };
  private readonly plan = new Map<string, Slider>();
  private readonly filterSliders = new Map<string, Slider>();
  private getter: HTMLSelectElement | null = null;
  private measureFrom: Point | null = null;
  private fileLoad = 0;
  private redrawIsDue = false;

  constructor(private readonly slices: Slices, private readonly listing: Listing) {
    this.program = new LineProgram(slices.gl);
    this.file = new StreamlineLayer(this.program, new Streamlines());
    this.live = new StreamlineLayer(this.program, new Streamlines());
    this.frozen = new StreamlineLayer(this.program, new Streamlines());
    this.marks = new StreamlineLayer(this.program, new Streamlines());
    this.glyphs = [0, 1, 2].map(() => new GlyphLayer(slices.gl));
  }

  draw(toClip: Float32Array, slab: Parameters<StreamlineLayer["draw"]>[1]): void {
    const gl = this.slices.gl;
    if (this.glyphsAreShown && slab) {
      // Lobes hide each other; the slice and the streamlines hide none of them, and they no streamline.
      gl.clear(gl.DEPTH_BUFFER_BIT);
      gl.enable(gl.DEPTH_TEST);
      gl.depthFunc(gl.LEQUAL);
      this.glyphs[slab.axis].draw(toClip);
      gl.disable(gl.DEPTH_TEST);
    }
    for (const layer of [this.file, this.frozen, this.live]) layer.draw(toClip, slab);
    this.marks.draw(toClip, slab && { ...slab, halfMm: 0.05 });
  }

  async start(): Promise<void> {
    const link = readLink(location.hash);
    if (this.listing.live_error) say(this.listing.live_error);
    this.makeFilters(link.filter);
    if (this.listing.live) this.makePlan(this.listing.live, link.plan ?? {});
    this.makeButtons();
    this.makeKeys();
    const images = this.listing.files.filter((file) => file.kind === "image");
    const tractograms = this.listing.files.filter((file) => file.kind === "tractogram");
    const image = this.makeChoice("image", images, (id) => this.showImage(id));
    const tractogram = this.makeChoice("tractogram", tractograms, (id) => this.showTractogram(id), "none");
    const colour = byId<HTMLSelectElement>("colour");
    colour.value = ["direction", "length", "end"].includes(link.colour ?? "") ? link.colour! : "direction";
    colour.addEventListener("change", () => this.recolour());
    this.recolour();

    const wanted = images.find((file) => file.id === (link.image ?? this.listing.live?.image)) ?? images[0];
    if (wanted) {
      image.value = wanted.id;
      await this.showImage(wanted.id);
    }
    if (link.view) this.slices.turnTo(link.view[0], link.view[1]);
    if (this.listing.live) {
      this.socket = new LiveSocket({
        begin: () => this.beginAnswer(),
        batch: (batch) => this.takeBatch(batch),
        end: (end, milliseconds) => this.endAnswer(end, milliseconds),
        problem: (message) => say(message),
      });
    }
    this.slices.onMove(() => this.moved());
    if (link.place) this.slices.moveTo(link.place);
    if (link.tractogram && tractograms.some((file) => file.id === link.tractogram)) tractogram.value = link.tractogram;
    else if (!this.listing.live && tractograms[0]) tractogram.value = tractograms[0].id;
    if (tractogram.value) await this.showTractogram(tractogram.value);
    this.moved();
  }

  // Files

  private makeChoice(id: string, files: FileEntry[], chosen: (id: string) => Promise<void>, none?: string): HTMLSelectElement {
    const select = byId<HTMLSelectElement>(id);
    if (none !== undefined) select.add(new Option(none, ""));
    for (const file of files) select.add(new Option(file.name, file.id));
    select.disabled = select.options.length === 0;
    select.addEventListener("change", () => {
      say(null);
      chosen(select.value).catch((error) => say(String(error.message ?? error)));
    });
    return select;
  }

  private async showImage(id: string): Promise<void> {
    const file = this.listing.files.find((each) => each.id === id)!;
    const response = await fetched(`data/${encodeURIComponent(id)}`);
    const place = this.slices.crosshair();
    await this.slices.show(await response.arrayBuffer(), file.name);
    if (place.every(Number.isFinite) && !(place[0] === 0 && place[1] === 0 && place[2] === 0)) this.slices.moveTo(place);
  }

  /** Streamlines of a file, some at a time: the first are seen while the others come. */
  private async showTractogram(id: string): Promise<void> {
    const load = ++this.fileLoad;
    this.file.streamlines.clear();
    this.file.clear();
    this.redraw();
    if (!id) return;
    for (let first = 0; ; ) {
      const response = await fetched(`api/lines/${encodeURIComponent(id)}/${first}`);
      const answer = parseAnswer(await response.arrayBuffer());
      if (load !== this.fileLoad || answer.kind !== Kind.batch || answer.batch.seeds.length === 0) return;
      this.file.streamlines.append(answer.batch);
      this.file.append();
      this.applyFilter(this.file, first);
      first += answer.batch.seeds.length;
      this.redraw();
    }
  }

  // Live

  private makePlan(live: Live, given: Record<string, number | string>): void {
    byId("live").hidden = false;
    const place = byId("plan");
    const label = document.createElement("label");
    label.htmlFor = "getter";
    label.textContent = "Getter";
    const getter = (this.getter = document.createElement("select"));
    getter.id = "getter";
    for (const name of live.getters) getter.add(new Option(name, name));
    getter.value = live.getters.includes(String(given.dg)) ? String(given.dg) : live.getter;
    place.append(label, getter);
    const lowest = Math.max(live.lowest_stop_threshold ?? 0, 0);
    const sliders: SliderOptions[] = [
      { name: "radius", label: "Sphere", least: 0.5, most: 15, step: 0.5, value: 3, unit: "mm" },
      { name: "nseeds", label: "Seeds", least: 50, most: Math.min(5000, live.most_seeds), step: 50, value: 200 },
      { name: "max-angle", label: "Largest angle", least: 5, most: 90, step: 1, value: 30, unit: "°" },
      { name: "step-size", label: "Step", least: 0.1, most: 2, step: 0.05, value: 0.5, unit: "mm" },
      { name: "stop-threshold", label: "Stop threshold", least: Math.ceil(lowest * 100) / 100, most: 0.6, step: 0.01, value: 0.15 },
      { name: "min-length", label: "Shortest", least: 0, most: 100, step: 1, value: 0, unit: "mm" },
    ];
    for (const options of sliders) {
      const slider = makeSlider(options, () => {
        this.touched.add(options.name);
        this.ask();
      });
      this.plan.set(options.name, slider);
      place.append(slider.element);
    }
    getter.addEventListener("change", () => {
      this.setDefaults(live);
      this.ask();
    });
    this.setDefaults(live);
    for (const [name, value] of Object.entries(given)) {
      const slider = this.plan.get(name);
      if (slider && typeof value === "number" && Number.isFinite(value)) {
        slider.value = value;
        this.touched.add(name);
      }
    }
  }

  private setDefaults(live: Live): void {
    const edges = [0, 1, 2].map((column) => Math.hypot(...[0, 1, 2].map((row) => live.affine[4 * row + column])));
    for (const [name, text] of Object.entries(live.defaults[this.getter!.value] ?? {})) {
      const slider = this.plan.get(name);
      if (typeof text !== "string") continue;
      const value = parseFloat(text) * (text.endsWith("vox") ? Math.min(...edges) : 1);
      if (slider && !this.touched.has(name) && Number.isFinite(value)) slider.value = value;
    }
  }
  /** Sliders that were moved. The others keep what the program takes by itself, and the command stays short. */
  private readonly touched = new Set<string>();

  /** What `cingulum track` would be asked for. */
  private planNow(): Record<string, unknown> {
    const plan: Record<string, unknown> = {
      dg: this.getter!.value,
      sphere: [...this.slices.crosshair().map(tenths), this.plan.get("radius")!.value],
      nseeds: this.plan.get("nseeds")!.value,
    };
    for (const name of this.touched) if (name !== "radius" && name !== "nseeds") plan[name] = this.plan.get(name)!.value;
    return plan;
  }

  private ask(): void {
    this.drawMarks();
    if (this.socket && this.slices.crosshair().every(Number.isFinite)) this.socket.ask(this.planNow());
  }

  private moved(): void {
    this.ask();
    this.fetchGlyphs();
    this.showDistance();
  }

  private beginAnswer(): void {
    say(null);
    this.live.streamlines.clear();
    this.live.clear();
  }

  private takeBatch(batch: Parameters<Streamlines["append"]>[0]): void {
    const first = this.live.streamlines.lines;
    this.live.streamlines.append(batch);
    this.live.append();
    this.applyFilter(this.live, first);
    this.redraw();
  }

  private endAnswer(end: End, milliseconds: number): void {
    this.lastEnd = end;
    const reasons = Object.entries(end.end_reasons).sort((a, b) => b[1] - a[1]);
    listed(byId("answer"), [
      ["answered in", `${milliseconds.toFixed(0)} ms (tracking ${end.milliseconds.tracking.toFixed(0)})`],
      ["kept", `${end.kept} of ${end.seeds} seeds`],
      ["mean length", `${end.mean_mm.toFixed(1)} mm`],
      ...reasons.map(([name, count]): [string, string] => [name.replaceAll("_", " "), String(count)]),
      ...Object.entries(end.score ?? {}).map(([name, value]): [string, string] => [name, value.toFixed(3)]),
    ]);
    byId("command").textContent = end.command;
    document.body.dataset.answered = String(Number(document.body.dataset.answered ?? 0) + 1);
    this.updateComparison();
    this.redraw();
  }

  // A and B

  private freeze(): void {
    if (this.isFrozen) {
      this.isFrozen = false;
      this.comparison = null;
      this.frozen.streamlines.clear();
      this.frozen.clear();
      this.applyFilter(this.live, 0);
    } else {
      const of = this.live.streamlines;
      if (of.lines === 0) return say("There is nothing to freeze: no streamline was kept here.");
      this.isFrozen = true;
      this.frozenEnd = this.lastEnd;
      this.frozen.streamlines.clear();
      this.frozen.clear();
      this.frozen.streamlines.append(of.whole());
      this.frozen.append();
      this.updateComparison();
    }
    byId<HTMLButtonElement>("freeze").disabled = this.isFrozen;
    byId<HTMLButtonElement>("thaw").disabled = !this.isFrozen;
    byId("comparison").hidden = !this.isFrozen;
    this.redraw();
  }

  private updateComparison(): void {
    if (!this.isFrozen || !this.listing.live) return;
    const found = (this.comparison = compare(this.frozen.streamlines, this.live.streamlines, this.listing.live));
    const score = (end: End | null) => end?.score?.f1?.toFixed(3) ?? "";
    listed(byId("difference"), [
      ["A alone", String(found.onlyA)],
      ["B alone", String(found.onlyB)],
      ["both, bit for bit", String(found.both)],
      ["voxels, Dice", found.dice.toFixed(3)],
      ["kept", `${this.frozenEnd?.kept ?? "?"} and ${this.lastEnd?.kept ?? "?"}`],
      ...(this.frozenEnd?.score && this.lastEnd?.score
        ? ([["F1 of A and B", `${score(this.frozenEnd)} and ${score(this.lastEnd)}`]] as [string, string][])
        : []),
    ]);
    this.applyFilter(this.frozen, 0);
    this.applyFilter(this.live, 0);
  }

  // What is seen

  private applyFilter(layer: StreamlineLayer, first: number): void {
    const of = layer.streamlines;
    const base = layer === this.frozen ? this.comparison?.statesA : layer === this.live ? this.comparison?.statesB : undefined;
    if (!base && passesAll(this.filter)) {
      return layer.setStates(first, new Uint8Array(of.lines - first).fill(LineState.own));
    }
    const states = new Uint8Array(of.lines - first);
    for (let line = first; line < of.lines; line++) {
      let state = base?.[line] ?? LineState.own;
      if ((state === LineState.onlyA && !this.parts.a) || (state === LineState.onlyB && !this.parts.b) ||
          (state === LineState.both && !this.parts.both) || !passes(of, line, this.filter)) {
        state = LineState.hidden;
      }
      states[line - first] = state;
    }
    layer.setStates(first, states);
  }

  private applyFilters(): void {
    for (const layer of [this.file, this.frozen, this.live]) this.applyFilter(layer, 0);
    this.redraw();
  }

  private makeFilters(given?: { shortestMm: number; longestMm: number; share: number; slabMm: number }): void {
    const place = byId("filters");
    const sliders: [SliderOptions, (value: number) => void][] = [
      [{ name: "slab", label: "Slab about a slice, ±", least: 0.5, most: 30, step: 0.5, value: given?.slabMm ?? 2, unit: "mm" },
        (value) => (this.slices.slabHalfMm = value)],
      [{ name: "shortest", label: "Lines from", least: 0, most: 200, step: 1, value: given?.shortestMm ?? 0, unit: "mm" },
        (value) => (this.filter.shortestMm = value)],
      [{ name: "longest", label: "to", least: 1, most: LONGEST_MM, step: 1, value: given?.longestMm ?? LONGEST_MM, unit: "mm" },
        (value) => (this.filter.longestMm = value >= LONGEST_MM ? Infinity : value)],
      [{ name: "share", label: "A random share", least: 1, most: 100, step: 1, value: 100 * (given?.share ?? 1), unit: "%" },
        (value) => (this.filter.share = value / 100)],
    ];
    for (const [options, set] of sliders) {
      const slider = makeSlider(options, (value) => {
        set(value);
        this.applyFilters();
      });
      set(slider.value);
      this.filterSliders.set(options.name, slider);
      place.append(slider.element);
    }
  }

  private recolour(): void {
    const by = byId<HTMLSelectElement>("colour").value as ColourBy;
    for (const layer of [this.file, this.frozen, this.live]) layer.recolour(by);
    const bar = byId("bar");
    if (by === "direction") {
      bar.style.background = "linear-gradient(90deg, #f33 0 33%, #3f3 33% 67%, #55f 67%)";
      bar.title = "red: left-right, green: front-back, blue: up-down";
    } else if (by === "length") {
      const stops = [0, 0.25, 0.5, 0.75, 1].map((share) => `rgb(${lengthColour(share).map(Math.round).join(" ")})`);
      bar.style.background = `linear-gradient(90deg, ${stops.join(", ")})`;
      bar.title = `0 to ${LONGEST_SHOWN_MM} mm`;
    } else {
      const share = 100 / END_COLOURS.length;
      bar.style.background = `linear-gradient(90deg, ${END_COLOURS.map((colour, i) => `${colour} ${i * share}% ${(i + 1) * share}%`).join(", ")})`;
      bar.title = "one colour for each reason";
    }
    this.redraw();
  }

  private spheres(): Sphere[] {
    const own = this.plan.has("radius") ? [{ centre: this.slices.crosshair(), radius: this.plan.get("radius")!.value }] : [];
    return [...own, ...this.filter.include, ...this.filter.exclude].filter((sphere) => sphere.centre.every(Number.isFinite));
  }

  private drawMarks(): void {
    const marks = this.marks;
    marks.streamlines.clear();
    marks.clear();
    marks.streamlines.append(outline(this.spheres(), this.slices.crosshair()));
    marks.append();
    marks.setStates(0, new Uint8Array(marks.streamlines.lines).fill(LineState.both));
    this.redraw();
  }

  /** Of the three slices in sight, each when its plane has moved and nothing is on its way for it. */
  private fetchGlyphs(): void {
    if (!this.glyphsAreShown || !this.listing.live) return;
    const here = this.slices.crosshair();
    const edges = [0, 1, 2].map((column) => Math.hypot(...[0, 1, 2].map((row) => this.listing.live!.affine[4 * row + column])));
    for (const axis of [0, 1, 2]) {
      const mm = here[axis];
      if (!Number.isFinite(mm) || this.glyphPlaces[axis] === mm || this.glyphsOnTheirWay[axis]) continue;
      this.glyphsOnTheirWay[axis] = true;
      fetched(`api/glyphs/${axis}/${mm}`)
        .then((response) => response.arrayBuffer())
        .then((bytes) => {
          this.glyphs[axis].sizeMm = 0.5 * Math.min(...edges);
          this.glyphs[axis].show(parseGlyphs(bytes));
          this.glyphPlaces[axis] = mm;
          this.redraw();
        })
        .catch((error) => say(String(error.message ?? error)))
        .finally(() => {
          this.glyphsOnTheirWay[axis] = false;
          if (this.glyphPlaces[axis] === mm) this.fetchGlyphs(); // the plane may have moved meanwhile
        });
    }
  }
  private readonly glyphsOnTheirWay = [false, false, false];

  private redraw(): void {
    if (this.redrawIsDue) return;
    this.redrawIsDue = true;
    requestAnimationFrame(() => {
      this.redrawIsDue = false;
      this.slices.redraw();
    });
  }

  // Buttons and keys

  private makeButtons(): void {
    const press = (id: string, action: () => unknown) =>
      byId(id).addEventListener("click", () => Promise.resolve(action()).catch((error) => say(String(error.message ?? error))));
    press("save", () => this.save());
    press("copy-command", () => navigator.clipboard.writeText(byId("command").textContent ?? ""));
    press("freeze", () => this.freeze());
    press("thaw", () => this.freeze());
    press("picture", async () => download(await this.slices.picture(), "cingulum.png"));
    press("link", () => {
      location.hash = this.link();
      return navigator.clipboard.writeText(location.href);
    });
    press("measure", () => {
      this.measureFrom = this.slices.crosshair();
      this.showDistance();
    });
    const glyphs = byId<HTMLInputElement>("glyphs");
    byId("glyphs-choice").hidden = !this.listing.live?.glyphs;
    glyphs.addEventListener("change", () => {
      this.glyphsAreShown = glyphs.checked;
      this.fetchGlyphs();
      this.redraw();
    });
    for (const box of document.querySelectorAll<HTMLInputElement>("[data-part]")) {
      box.addEventListener("change", () => {
        this.parts[box.dataset.part as "a" | "b" | "both"] = box.checked;
        this.applyFilters();
      });
    }
    for (const button of document.querySelectorAll<HTMLButtonElement>("[data-sphere]")) {
      button.addEventListener("click", () => this.placeSphere(button.dataset.sphere!));
    }
  }

  private placeSphere(what: string): void {
    if (what === "clear") {
      this.filter.include = [];
      this.filter.exclude = [];
    } else {
      const radius = this.plan.get("radius")?.value ?? 5;
      (what === "include" ? this.filter.include : this.filter.exclude).push({ centre: this.slices.crosshair(), radius });
    }
    const row = (kind: string) => (sphere: Sphere) => {
      const item = document.createElement("li");
      item.textContent = `${kind} ${sphere.centre.map((value) => value.toFixed(1)).join(", ")}; ${sphere.radius} mm`;
      return item;
    };
    byId("sphere-list").replaceChildren(...this.filter.include.map(row("include")), ...this.filter.exclude.map(row("exclude")));
    this.drawMarks();
    this.applyFilters();
  }

  private async save(): Promise<void> {
    const body = JSON.stringify(this.planNow());
    const ask = { method: "POST", headers: { "Content-Type": "application/json" }, body };
    // One after the other: the server saves one run at a time, and the second is the first one's.
    download(await (await fetched("api/save", ask)).blob(), "streamlines.trx");
    download(await (await fetched("api/save-sidecar", ask)).blob(), "streamlines.trx.json");
  }

  private link(): string {
    const plan = this.getter
      ? { dg: this.getter.value, ...Object.fromEntries([...this.touched].map((name) => [name, this.plan.get(name)!.value])) }
      : undefined;
    return writeLink({
      image: byId<HTMLSelectElement>("image").value || undefined,
      tractogram: byId<HTMLSelectElement>("tractogram").value || undefined,
      place: this.slices.crosshair(),
      view: this.slices.view(),
      plan,
      filter: { shortestMm: this.filter.shortestMm, longestMm: Math.min(this.filter.longestMm, LONGEST_MM), share: this.filter.share,
        slabMm: this.slices.slabHalfMm },
      colour: byId<HTMLSelectElement>("colour").value,
    });
  }

  private showDistance(): void {
    if (!this.measureFrom) return;
    const here = this.slices.crosshair();
    const squares = here.map((value, i) => (value - this.measureFrom![i]) ** 2);
    byId("distance").textContent = `${Math.sqrt(squares[0] + squares[1] + squares[2]).toFixed(1)} mm`;
  }

  private makeKeys(): void {
    const turn = (slider: Slider | undefined, by: number, changed: () => void) => {
      if (!slider) return;
      slider.value = slider.value + by;
      changed();
    };
    const radius = () => this.plan.get("radius");
    const slab = () => this.filterSliders.get("slab")!;
    const slabChanged = () => {
      this.slices.slabHalfMm = slab().value;
      this.redraw();
    };
    const steps: Record<string, Point> = {
      ArrowLeft: [-1, 0, 0], ArrowRight: [1, 0, 0], ArrowUp: [0, 1, 0], ArrowDown: [0, -1, 0], PageUp: [0, 0, 1], PageDown: [0, 0, -1],
    };
    const keys: Record<string, () => void> = {
      "+": () => turn(radius(), 0.5, () => this.ask()),
      "-": () => turn(radius(), -0.5, () => this.ask()),
      "[": () => turn(slab(), -0.5, slabChanged),
      "]": () => turn(slab(), 0.5, slabChanged),
      f: () => this.freeze(),
      s: () => byId("save").click(),
      p: () => byId("picture").click(),
    };
    addEventListener("keydown", (event) => {
      const target = event.target as HTMLElement;
      if (event.ctrlKey || event.metaKey || event.altKey || ["INPUT", "SELECT"].includes(target.tagName)) return;
      const step = steps[event.key];
      if (step) {
        const here = this.slices.crosshair();
        this.slices.moveTo(here.map((value, i) => value + step[i]) as Point);
        this.moved();
      } else if (keys[event.key]) keys[event.key]();
      else return;
      event.preventDefault();
      event.stopPropagation(); // NiiVue has keys of its own
    }, { capture: true });
  }
}

async function main(): Promise<void> {
  const listing = (await (await fetched("api/files")).json()) as Listing;
  let page: Page | null = null;
  const slices = await Slices.open(byId<HTMLCanvasElement>("scene"), (toClip, slab) => page?.draw(toClip, slab));
  page = new Page(slices, listing);
  await page.start();
  document.body.dataset.ready = "yes";
}

main().catch((error) => say(`The page cannot start: ${error.message ?? error}`));
