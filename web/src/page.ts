// The page of `cingulum view`: what the user does becomes requests, filters and pictures.
import { showDifference, showEnd } from "./answer_panels";
import { showColourBar } from "./colour_bar";
import { byId, download, say, sayError } from "./elements";
import { fetched } from "./fetched";
import { takeFileLines } from "./file_lines";
import { filterForLink, LONGEST_MM, makeFilterSliders } from "./filter_sliders";
import { GlyphLayer, GlyphProgram, parseGlyphs } from "./glyph_layer";
import { shortestEdge } from "./grid";
import type { ColourBy } from "./line_colours";
import { compare, type Comparison } from "./line_comparison";
import { passes, passesAll, type LineFilter, type Sphere } from "./line_filters";
import { fetchValues, type Column, type LineValues } from "./line_values";
import { readLink, writeLink } from "./link";
import type { FileEntry, Listing } from "./listing";
import { LivePlan } from "./live_plan";
import { LiveSocket } from "./live_socket";
import { Kind, parseAnswer, type Batch, type End } from "./messages";
import { listenToKeys } from "./page_keys";
import { SlicePictures } from "./slice_pictures";
import { Slices, type Point } from "./slices";
import type { Slider } from "./sliders";
import { openSource, source } from "./source";
import { SphereList, type SphereKind } from "./sphere_list";
import { outline } from "./sphere_outline";
import { LineProgram, LineState, StreamlineLayer } from "./streamline_layer";
import { Streamlines } from "./streamlines";

const COLUMN = "column:"; // before the number of a file's column among the colours

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
  private plan: LivePlan | null = null;
  private filterSliders!: Map<string, Slider>;
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
    this.filterSliders = makeFilterSliders(this.filter, this.slices, link.filter, () => this.applyFilters());
    if (this.listing.live) this.plan = new LivePlan(this.listing.live, link.plan ?? {}, () => this.ask());
    this.makeButtons();
    this.makeKeys();
    const images = this.listing.files.filter((file) => file.kind === "image");
    const tractograms = this.listing.files.filter((file) => file.kind === "tractogram");
    const image = this.makeChoice("image", images, (id) => this.showImage(id));
    const tractogram = this.makeChoice("tractogram", tractograms, (id) => this.showTractogram(id), "none");
    const colour = byId<HTMLSelectElement>("colour");
    colour.value = ["direction", "length", "end"].includes(link.colour ?? "") ? link.colour! : "direction";
    colour.addEventListener("change", () => this.chooseColour().catch(sayError));
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
      chosen(select.value).catch(sayError);
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

  private async showTractogram(id: string): Promise<void> {
    const load = ++this.fileLoad;
    this.file.streamlines.clear();
    this.file.clear();
    this.offerColumns(this.listing.files.find((file) => file.id === id)?.columns ?? []);
    this.redraw();
    document.body.dataset.fileLines = "0";
    document.body.dataset.fileIsWhole = String(!id);
    if (!id) return;
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
    const isWanted = () => load === this.fileLoad;
    if (!(await takeFileLines(id, () => this.slices.crosshair(), isWanted, take))) return;
    this.redraw();
    document.body.dataset.fileIsWhole = "true";
  }

  // Live

  private ask(): void {
    this.drawMarks();
    if (this.socket && this.seedsAt.every(Number.isFinite)) this.socket.ask(this.plan!.request(this.seedsAt, this.spheres));
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
    showEnd(end, milliseconds);
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
    this.comparison = compare(this.frozen.streamlines, this.live.streamlines, this.listing.live);
    showDifference(this.comparison, this.frozenEnd, this.lastEnd);
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
    showColourBar(by, this.values);
    this.redraw();
  }

  private outlined(): Sphere[] {
    const own = this.plan ? [{ centre: this.seedsAt, radius: this.plan.radius.value }] : [];
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
      byId(id).addEventListener("click", () => Promise.resolve(action()).catch(sayError));
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
    this.spheres.place(what as SphereKind, { centre: this.slices.crosshair(), radius: this.plan?.radius.value ?? 5 });
  }

  private async save(): Promise<void> {
    if (!this.plan) return; // nothing is tracked here, and the key was pressed all the same
    const body = JSON.stringify(this.plan.request(this.seedsAt, this.spheres));
    const ask = { method: "POST", headers: { "Content-Type": "application/json" }, body };
    // One after the other: the server saves one run at a time, and the second is the first one's.
    download(await (await fetched("api/save", ask)).blob(), "streamlines.trx");
    download(await (await fetched("api/save-sidecar", ask)).blob(), "streamlines.trx.json");
  }

  private link(): string {
    return writeLink({
      image: byId<HTMLSelectElement>("image").value || undefined,
      tractogram: byId<HTMLSelectElement>("tractogram").value || undefined,
      place: this.slices.crosshair(),
      view: this.slices.view(),
      plan: this.plan?.forLink(),
      filter: filterForLink(this.filter, this.slices),
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
    const radius = () => this.plan?.radius;
    const slab = () => this.filterSliders.get("slab")!;
    const slabChanged = () => {
      this.slices.slabHalfMm = slab().value;
      this.redraw();
    };
    const move = (by: Point) => {
      const here = this.slices.crosshair();
      this.slices.moveTo(here.map((value, i) => value + by[i]) as Point);
      this.moved();
    };
    listenToKeys(move, {
      "+": () => turn(radius(), 0.5, () => this.ask()),
      "-": () => turn(radius(), -0.5, () => this.ask()),
      "[": () => turn(slab(), -0.5, slabChanged),
      "]": () => turn(slab(), 0.5, slabChanged),
      f: () => this.freeze(),
      s: () => byId("save").click(),
      p: () => byId("picture").click(),
    });
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
