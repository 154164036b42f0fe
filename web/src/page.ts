// The page of `cingulum view`: what the user does becomes requests, filters and pictures.
import { compare, type Comparison } from "./line_comparison";
import { END_COLOURS, groupColour, LONGEST_SHOWN_MM, rampColour, type ColourBy } from "./line_colours";
import { passes, passesAll, type LineFilter, type Sphere } from "./line_filters";
import { fetchValues, type Column, type LineValues } from "./line_values";
import { fetched } from "./fetched";
import { GlyphLayer, GlyphProgram, parseGlyphs } from "./glyph_layer";
import { shortestEdge, type Grid } from "./grid";
import { LineProgram, LineState, StreamlineLayer } from "./streamline_layer";
import { LiveSocket } from "./live_socket";
import { Kind, parseAnswer, type Answer, type Batch, type Box, type End } from "./messages";
import { nearestOf } from "./nearest_first";
import { makeSlider, type Slider, type SliderOptions } from "./sliders";
import { outline } from "./sphere_outline";
import { SphereList, type SphereKind } from "./sphere_list";
import { SlicePictures } from "./slice_pictures";
import { readLink, writeLink } from "./link";
import { Slices, type Point } from "./slices";
import { openSource, source } from "./source";
import { Streamlines } from "./streamlines";

interface FileEntry {
  id: string;
  name: string;
  kind: "image" | "tractogram" | "series";
  bytes: number;
  columns?: Column[]; // of a tractogram
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
  peaks?: boolean;
  truth: boolean;
}

interface Listing {
  files: FileEntry[];
  live: Live | null;
  live_error: string | null;
}

const byId = <T extends HTMLElement>(id: string): T => document.getElementById(id) as T;
const LONGEST_MM = 500; // of the slider; there it leaves nothing out
const COLUMN = "column:"; // before the number of a file's column among the colours

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

/** A share as it is read. */
const percent = (share: number): string => `${(100 * share).toFixed(1)} %`;

class Page {
  // What is drawn: made anew where the browser takes the GPU's memory away.
  private file!: StreamlineLayer;
  private live!: StreamlineLayer; // B where A is frozen
  private frozen!: StreamlineLayer; // A
  private marks!: StreamlineLayer; // outlines of spheres
  private glyphs!: GlyphLayer[]; // of the slices along x, y and z
  private peaks!: StreamlineLayer[]; // of the same
  private readonly glyphPictures: SlicePictures;
  private readonly peakPictures: SlicePictures;
  private socket: LiveSocket | null = null;
  private comparison: Comparison | null = null;
  private frozenEnd: End | null = null;
  private lastEnd: End | null = null;
  private isFrozen = false;
  private readonly parts = { a: true, b: true, both: true };
  private readonly filter: LineFilter = { shortestMm: 0, longestMm: Infinity, share: 1, leastValue: 0, include: [], exclude: [] };
  private readonly spheres: SphereList;
  private seedsAt: Point = [NaN, NaN, NaN]; // the cross-hair, but while it takes a sphere of the list along
  private values: LineValues | null = null; // of the file that is shown
  private readonly plan = new Map<string, Slider>();
  private readonly filterSliders = new Map<string, Slider>();
  private getter: HTMLSelectElement | null = null;
  private measureFrom: Point | null = null;
  private fileLoad = 0;
  private redrawIsDue = false;

  constructor(private readonly slices: Slices, private readonly listing: Listing) {
    this.makeLayers();
    const here = () => slices.crosshair();
    this.glyphPictures = new SlicePictures("glyphs", here, (axis, bytes) => this.showGlyphs(axis, bytes), say);
    this.peakPictures = new SlicePictures("peaks", here, (axis, bytes) => this.showPeaks(axis, bytes), say);
    this.spheres = new SphereList(byId("sphere-list"), () => this.spheresChanged());
  }

  /** Layers of the streamlines that are there. */
  private makeLayers(): void {
    const program = new LineProgram(this.slices.gl);
    const layerOf = (known?: StreamlineLayer) => {
      const layer = new StreamlineLayer(program, known?.streamlines ?? new Streamlines());
      layer.append();
      return layer;
    };
    this.file = layerOf(this.file);
    this.live = layerOf(this.live);
    this.frozen = layerOf(this.frozen);
    this.marks = layerOf();
    const glyphProgram = new GlyphProgram(this.slices.gl);
    this.glyphs = [0, 1, 2].map(() => new GlyphLayer(glyphProgram));
    this.peaks = [0, 1, 2].map(() => layerOf());
  }

  /** The browser took the memory of the GPU away, and has given it back. */
  async restore(): Promise<void> {
    this.makeLayers(); // first: the slices draw with them
    await this.slices.restore();
    this.recolour();
    this.applyFilters();
    this.drawMarks();
    for (const pictures of [this.glyphPictures, this.peakPictures]) {
      pictures.forget();
      pictures.follow();
    }
  }

  draw(toClip: Float32Array, slab: Parameters<StreamlineLayer["draw"]>[1]): void {
    const gl = this.slices.gl;
    if (this.glyphPictures.isShown && slab) {
      // Lobes hide each other; the slice and the streamlines hide none of them, and they no streamline.
      gl.clear(gl.DEPTH_BUFFER_BIT);
      gl.enable(gl.DEPTH_TEST);
      gl.depthFunc(gl.LEQUAL);
      this.glyphs[slab.axis].draw(toClip);
      gl.disable(gl.DEPTH_TEST);
    }
    if (this.peakPictures.isShown && slab) this.peaks[slab.axis].draw(toClip, { ...slab, halfMm: LONGEST_MM }); // all of the slice
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
    colour.addEventListener("change", () => this.chooseColour().catch((error) => say(String(error.message ?? error))));
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
      }, source);
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

  /** Streamlines of a file, some at a time (docs/view.md, "Tractograms"): the first are seen while the others come. */
  private async showTractogram(id: string): Promise<void> {
    const load = ++this.fileLoad;
    this.file.streamlines.clear();
    this.file.clear();
    this.offerColumns(this.listing.files.find((file) => file.id === id)?.columns ?? []);
    this.redraw();
    document.body.dataset.fileLines = "0";
    document.body.dataset.fileIsWhole = String(!id);
    if (!id) return;
    const message = async (number: number) =>
      parseAnswer(await (await fetched(`api/lines/${encodeURIComponent(id)}/${number}`)).arrayBuffer());
    let drawn = 0;
    const take = (batch: Batch) => {
      const first = this.file.streamlines.lines;
      this.file.streamlines.append(batch);
      this.file.append();
      this.applyFilter(this.file, first);
      const lines = this.file.streamlines.lines;
      document.body.dataset.fileLines = String(lines);
      // A picture takes the longer the more lines there are: one whenever they have become half as many again.
      if (lines < 1.5 * drawn) return;
      drawn = lines;
      this.redraw();
    };
    // First a sample of the whole, to its last message, which says where the others lie.
    let number = 0;
    let boxes: Box[] | null = null;
    while (boxes === null) {
      const answer = await message(number++);
      if (load !== this.fileLoad) return;
      if (answer.kind === Kind.places) boxes = answer.boxes;
      else if (answer.kind === Kind.lines) take(answer.batch);
      else throw new Error("the streamlines of a file came as another message");
    }
    // Then the others, always those nearest to the cross-hair. While one is drawn the next is made.
    const left = new Set(boxes.keys());
    const asked: Promise<Answer>[] = [];
    const ask = () => {
      const next = nearestOf(boxes, left, this.slices.crosshair());
      if (next === undefined) return;
      left.delete(next);
      const answer = message(number + next);
      answer.catch(() => {}); // said when its turn comes
      asked.push(answer);
    };
    ask();
    while (asked.length > 0) {
      ask();
      const answer = await asked.shift()!;
      if (load !== this.fileLoad) return;
      if (answer.kind === Kind.lines) take(answer.batch);
    }
    this.redraw();
    document.body.dataset.fileIsWhole = "true";
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
    const edge = shortestEdge(live);
    for (const [name, text] of Object.entries(live.defaults[this.getter!.value] ?? {})) {
      const slider = this.plan.get(name);
      if (typeof text !== "string") continue;
      const value = parseFloat(text) * (text.endsWith("vox") ? edge : 1);
      if (slider && !this.touched.has(name) && Number.isFinite(value)) slider.value = value;
    }
  }
  /** Sliders that were moved. The others keep what the program takes by itself, and the command stays short. */
  private readonly touched = new Set<string>();

  /** What `cingulum track` would be asked for. */
  private planNow(): Record<string, unknown> {
    const plan: Record<string, unknown> = {
      dg: this.getter!.value,
      sphere: [...this.seedsAt.map(tenths), this.plan.get("radius")!.value],
      nseeds: this.plan.get("nseeds")!.value,
    };
    for (const name of this.touched) if (name !== "radius" && name !== "nseeds") plan[name] = this.plan.get(name)!.value;
    for (const kind of ["include", "exclude", "stop"] as const) {
      const spheres = this.spheres.of(kind);
      if (spheres.length > 0) plan[kind] = spheres.map(({ centre, radius }) => [...centre.map(tenths), radius]);
    }
    if (this.listing.live!.truth) plan.score = true;
    return plan;
  }

  private ask(): void {
    this.drawMarks();
    if (this.socket && this.seedsAt.every(Number.isFinite)) this.socket.ask(this.planNow());
  }

  private moved(): void {
    const here = this.slices.crosshair();
    if (this.spheres.carry(here)) this.applyFilter(this.file, 0);
    else this.seedsAt = here;
    this.ask();
    this.glyphPictures.follow();
    this.peakPictures.follow();
    this.showDistance();
  }

  private spheresChanged(): void {
    this.filter.include = this.spheres.of("include");
    this.filter.exclude = this.spheres.of("exclude");
    this.applyFilter(this.file, 0);
    this.ask();
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
      ...Object.entries(end.score ?? {}).map(([name, value]): [string, string] => [name.replaceAll("_", " "), percent(value)]),
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
    const [a, b] = [this.frozenEnd?.score, this.lastEnd?.score];
    listed(byId("difference"), [
      ["A alone", String(found.onlyA)],
      ["B alone", String(found.onlyB)],
      ["both, bit for bit", String(found.both)],
      ["voxels, Dice", found.dice.toFixed(3)],
      ["kept", `${this.frozenEnd?.kept ?? "?"} and ${this.lastEnd?.kept ?? "?"}`],
      ...(a && b ? Object.keys(a).map((name): [string, string] => [name.replaceAll("_", " "), `${percent(a[name])} and ${percent(b[name])}`]) : []),
    ]);
    this.applyFilter(this.frozen, 0);
    this.applyFilter(this.live, 0);
  }

  // What is seen

  private applyFilter(layer: StreamlineLayer, first: number): void {
    const of = layer.streamlines;
    const base = layer === this.frozen ? this.comparison?.statesA : layer === this.live ? this.comparison?.statesB : undefined;
    // Live streamlines were judged by the spheres where they were tracked, as their command says.
    const filter = layer === this.file ? this.filter : { ...this.filter, include: [], exclude: [], leastValue: 0 };
    if (!base && passesAll(filter)) {
      return layer.setStates(first, new Uint8Array(of.lines - first).fill(LineState.own));
    }
    const states = new Uint8Array(of.lines - first);
    for (let line = first; line < of.lines; line++) {
      let state = base?.[line] ?? LineState.own;
      if ((state === LineState.onlyA && !this.parts.a) || (state === LineState.onlyB && !this.parts.b) ||
          (state === LineState.both && !this.parts.both) || !passes(of, line, filter, layer === this.file ? this.values : null)) {
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
      [{ name: "least", label: "Values from, along the bar", least: 0, most: 100, step: 1, value: 0, unit: "%" },
        (value) => (this.filter.leastValue = value / 100)],
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

  /** What the file has numbers for, beside what every line has. */
  private offerColumns(columns: Column[]): void {
    const select = byId<HTMLSelectElement>("colour");
    const isGone = select.value.startsWith(COLUMN);
    for (const option of [...select.options]) if (option.value.startsWith(COLUMN)) option.remove();
    columns.forEach((column, number) => select.add(new Option(`${column.name}, of the file`, `${COLUMN}${number}`)));
    this.values = null;
    if (isGone) select.value = "direction";
    this.recolour();
  }

  private async chooseColour(): Promise<void> {
    const by = byId<HTMLSelectElement>("colour").value;
    const [load, file] = [this.fileLoad, byId<HTMLSelectElement>("tractogram").value];
    const columns = this.listing.files.find((each) => each.id === file)?.columns ?? [];
    const values = by.startsWith(COLUMN) ? await fetchValues(file, columns, Number(by.slice(COLUMN.length))) : null;
    if (load !== this.fileLoad) return; // another file meanwhile
    this.values = values;
    this.recolour();
    this.applyFilters();
  }

  private recolour(): void {
    const chosen = byId<HTMLSelectElement>("colour").value;
    const by = (chosen.startsWith(COLUMN) ? "values" : chosen) as ColourBy;
    for (const layer of [this.file, this.frozen, this.live]) layer.recolour(by, layer === this.file ? this.values : null);
    this.filterSliders.get("least")!.element.hidden = !this.values || this.values.column.groups !== undefined;
    const bar = byId("bar");
    const bands = (colours: string[]) =>
      `linear-gradient(90deg, ${colours.map((colour, i) => `${colour} ${(100 * i) / colours.length}% ${(100 * (i + 1)) / colours.length}%`).join(", ")})`;
    const css = (colour: [number, number, number]) => `rgb(${colour.map(Math.round).join(" ")})`;
    const ramp = `linear-gradient(90deg, ${[0, 0.25, 0.5, 0.75, 1].map((share) => css(rampColour(share))).join(", ")})`;
    const [background, text] =
      by === "direction" ? [bands(["#f33", "#3f3", "#55f"]), "red left-right, green front-back, blue up-down"]
      : by === "length" ? [ramp, `0 to ${LONGEST_SHOWN_MM} mm`]
      : by === "end" ? [bands(END_COLOURS), "one colour for each reason"]
      : !this.values ? ["", ""]
      : this.values.column.groups ? [bands(this.values.column.groups.map((_, group) => css(groupColour(group)))), this.values.column.groups.join(", ")]
      : [ramp, `${this.values.column.name}: ${this.values.least.toPrecision(3)} to ${this.values.most.toPrecision(3)}`];
    bar.style.background = background;
    byId("bar-text").textContent = text;
    this.redraw();
  }

  private outlined(): Sphere[] {
    const own = this.plan.has("radius") ? [{ centre: this.seedsAt, radius: this.plan.get("radius")!.value }] : [];
    return [...own, ...this.spheres.all()].filter((sphere) => sphere.centre.every(Number.isFinite));
  }

  private drawMarks(): void {
    const marks = this.marks;
    marks.streamlines.clear();
    marks.clear();
    marks.streamlines.append(outline(this.outlined(), this.slices.crosshair()));
    marks.append();
    marks.setStates(0, new Uint8Array(marks.streamlines.lines).fill(LineState.both));
    this.redraw();
  }

  private showGlyphs(axis: number, bytes: ArrayBuffer): void {
    this.glyphs[axis].sizeMm = 0.5 * shortestEdge(this.listing.live!);
    this.glyphs[axis].show(parseGlyphs(bytes));
    this.redraw();
  }

  private showPeaks(axis: number, bytes: ArrayBuffer): void {
    const answer = parseAnswer(bytes);
    if (answer.kind !== Kind.batch) return;
    const layer = this.peaks[axis];
    layer.streamlines.clear();
    layer.clear();
    layer.streamlines.append(answer.batch);
    layer.append();
    this.redraw();
  }

  private redraw(): void {
    if (this.redrawIsDue) return;
    this.redrawIsDue = true;
    requestAnimationFrame(() => {
      this.redrawIsDue = false;
      if (!this.slices.gl.isContextLost()) this.slices.redraw();
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
    const pictures = [["glyphs", this.glyphPictures, this.listing.live?.glyphs], ["peaks", this.peakPictures, this.listing.live?.peaks]] as const;
    for (const [name, of, isThere] of pictures) {
      const box = byId<HTMLInputElement>(name);
      byId(`${name}-choice`).hidden = !isThere;
      box.addEventListener("change", () => {
        of.isShown = box.checked;
        of.follow();
        this.redraw();
      });
    }
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
    if (what === "clear") return this.spheres.clear();
    this.spheres.place(what as SphereKind, { centre: this.slices.crosshair(), radius: this.plan.get("radius")?.value ?? 5 });
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
      colour: this.values ? undefined : byId<HTMLSelectElement>("colour").value,
      adapter: document.body.dataset.adapter === "chosen" || undefined,
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
  await openSource();
  const listing = (await (await fetched("api/files")).json()) as Listing;
  let page: Page | null = null;
  byId("scene").addEventListener("webglcontextlost", (event) => {
    event.preventDefault(); // it is wanted back
    document.body.dataset.graphics = "lost";
    say("The graphics of this page were lost: the GPU was reset. What is shown comes back when the browser has it again; if not, reload the page.");
  });
  byId("scene").addEventListener("webglcontextrestored", () => {
    Promise.resolve(page?.restore()).then(
      () => {
        document.body.dataset.graphics = "restored";
        say("The graphics of this page were lost and are back.");
      },
      (error) => say(`The graphics of this page were lost and cannot be made again (${error.message ?? error}). Reload the page.`),
    );
  });
  const slices = await Slices.open(byId<HTMLCanvasElement>("scene"), (toClip, slab) => page?.draw(toClip, slab));
  page = new Page(slices, listing);
  await page.start();
  document.body.dataset.ready = "yes";
}

main().catch((error) => say(`The page cannot start: ${error.message ?? error}`));
