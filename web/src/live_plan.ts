// The plan of live tracking, as its sliders and the choice of a getter say it.
import { byId } from "./elements";
import { shortestEdge } from "./grid";
import type { Live } from "./listing";
import { makeSlider, type Slider, type SliderOptions } from "./sliders";
import type { Point } from "./slices";
import type { SphereList } from "./sphere_list";

/** A place that can be read and typed. */
function tenths(mm: number): number {
  return Math.round(10 * mm) / 10;
}

export class LivePlan {
  private readonly getter = document.createElement("select");
  private readonly sliders = new Map<string, Slider>();
  /** Sliders that were moved. The others keep what the program takes by itself, and the command stays short. */
  private readonly touched = new Set<string>();

  constructor(private readonly live: Live, given: Record<string, number | string>, changed: () => void) {
    byId("live").hidden = false;
    const place = byId("plan");
    const label = document.createElement("label");
    label.htmlFor = "getter";
    label.textContent = "Getter";
    const getter = this.getter;
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
        changed();
      });
      this.sliders.set(options.name, slider);
      place.append(slider.element);
    }
    getter.addEventListener("change", () => {
      this.setDefaults();
      changed();
    });
    this.setDefaults();
    for (const [name, value] of Object.entries(given)) {
      const slider = this.sliders.get(name);
      if (slider && typeof value === "number" && Number.isFinite(value)) {
        slider.value = value;
        this.touched.add(name);
      }
    }
  }

  private setDefaults(): void {
    const edge = shortestEdge(this.live);
    for (const [name, text] of Object.entries(this.live.defaults[this.getter.value] ?? {})) {
      const slider = this.sliders.get(name);
      if (typeof text !== "string") continue;
      const value = parseFloat(text) * (text.endsWith("vox") ? edge : 1);
      if (slider && !this.touched.has(name) && Number.isFinite(value)) slider.value = value;
    }
  }

  /** Of the sphere in which seeds lie. */
  get radius(): Slider {
    return this.sliders.get("radius")!;
  }

  /** What `cingulum track` would be asked for. */
  request(seedsAt: Point, list: SphereList): Record<string, unknown> {
    const plan: Record<string, unknown> = {
      dg: this.getter.value,
      sphere: [...seedsAt.map(tenths), this.radius.value],
      nseeds: this.sliders.get("nseeds")!.value,
    };
    for (const name of this.touched) if (name !== "radius" && name !== "nseeds") plan[name] = this.sliders.get(name)!.value;
    for (const kind of ["include", "exclude", "stop"] as const) {
      const spheres = list.of(kind);
      if (spheres.length > 0) plan[kind] = spheres.map(({ centre, radius }) => [...centre.map(tenths), radius]);
    }
    if (this.live.truth) plan.score = true;
    return plan;
  }

  /** What a link says of it. */
  forLink(): Record<string, number | string> {
    return { dg: this.getter.value, ...Object.fromEntries([...this.touched].map((name) => [name, this.sliders.get(name)!.value])) };
  }
}
