// Colours of streamlines: by direction (red left-right, green front-back, blue up-down), which the shader knows, or one
// colour for each line: by length, by why it ended, by a number or a group that its file has for it.
import { shareOf, type LineValues } from "./line_values";
import type { Streamlines } from "./streamlines";

export type ColourBy = "direction" | "length" | "end" | "values";

export const LONGEST_SHOWN_MM = 150;
// Told apart by people who see red and green alike, too.
export const END_COLOURS = ["#56b4e9", "#e69f00", "#009e73", "#f0e442", "#cc79a7", "#d55e00", "#0072b2", "#c9ced6"];

export function rgb(text: string): [number, number, number] {
  const number = parseInt(text.slice(1), 16);
  return [number >> 16, (number >> 8) & 255, number & 255];
}

/** From dark blue over magenta to yellow; brighter is more, so that it can be read without colours, too. */
export function rampColour(share: number): [number, number, number] {
  const stops = [[40, 44, 140], [180, 50, 140], [245, 130, 60], [250, 240, 120]];
  const place = Math.min(Math.max(share, 0), 1) * (stops.length - 1);
  const first = Math.min(Math.floor(place), stops.length - 2);
  const part = place - first;
  return [0, 1, 2].map((i) => stops[first][i] + part * (stops[first + 1][i] - stops[first][i])) as [number, number, number];
}

const WITHOUT_VALUE: [number, number, number] = [110, 116, 125];

/** Of the n-th group: steps of the golden angle around the circle of hues never come back to the same. */
export function groupColour(group: number): [number, number, number] {
  const hue = (group * 137.508) % 360;
  return [0, 8, 4].map((shift) => {
    const k = (shift + hue / 30) % 12;
    return 255 * (0.6 - 0.36 * Math.max(-1, Math.min(k - 3, 9 - k, 1)));
  }) as [number, number, number];
}

export function lineColour(of: Streamlines, line: number, by: Exclude<ColourBy, "direction">, values: LineValues | null): [number, number, number] {
  if (by === "length") return rampColour(of.lengths()[line] / LONGEST_SHOWN_MM);
  if (by === "end") return rgb(END_COLOURS[of.endReasonOf(line) % END_COLOURS.length]);
  const value = values!.numbers[of.nameOf(line)];
  if (!Number.isFinite(value)) return WITHOUT_VALUE;
  return values!.column.groups ? groupColour(value) : rampColour(shareOf(values!, value));
}
