// The sliders that leave streamlines out of the picture.
import { byId } from "./elements";
import type { LineFilter } from "./line_filters";
import { makeSlider, type Slider, type SliderOptions } from "./sliders";
import type { Slices } from "./slices";

export const LONGEST_MM = 500; // of the slider; there it leaves nothing out

export interface FilterValues {
  shortestMm: number;
  longestMm: number;
  share: number;
  slabMm: number;
}

/** They set the filter and the slab of the slices, now and whenever they are moved. */
export function makeFilterSliders(filter: LineFilter, slices: Slices, given: FilterValues | undefined,
  changed: () => void): Map<string, Slider> {
  const made = new Map<string, Slider>();
  const sliders: [SliderOptions, (value: number) => void][] = [
    [{ name: "slab", label: "Slab about a slice, ±", least: 0.5, most: 30, step: 0.5, value: given?.slabMm ?? 2, unit: "mm" },
      (value) => (slices.slabHalfMm = value)],
    [{ name: "shortest", label: "Lines from", least: 0, most: 200, step: 1, value: given?.shortestMm ?? 0, unit: "mm" },
      (value) => (filter.shortestMm = value)],
    [{ name: "longest", label: "to", least: 1, most: LONGEST_MM, step: 1, value: given?.longestMm ?? LONGEST_MM, unit: "mm" },
      (value) => (filter.longestMm = value >= LONGEST_MM ? Infinity : value)],
    [{ name: "share", label: "A random share", least: 1, most: 100, step: 1, value: 100 * (given?.share ?? 1), unit: "%" },
      (value) => (filter.share = value / 100)],
    [{ name: "least", label: "Values from, along the bar", least: 0, most: 100, step: 1, value: 0, unit: "%" },
      (value) => (filter.leastValue = value / 100)],
  ];
  for (const [options, set] of sliders) {
    const slider = makeSlider(options, (value) => {
      set(value);
      changed();
    });
    set(slider.value);
    made.set(options.name, slider);
    byId("filters").append(slider.element);
  }
  return made;
}

/** What a link says of them. */
export function filterForLink(filter: LineFilter, slices: Slices): FilterValues {
  return { shortestMm: filter.shortestMm, longestMm: Math.min(filter.longestMm, LONGEST_MM), share: filter.share, slabMm: slices.slabHalfMm };
}
