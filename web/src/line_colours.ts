// Colours of streamlines: by direction (red left-right, green front-back, blue up-down), which the shader knows, or one
// colour for each line: by length, by why it ended.
import type { Streamlines } from "./streamlines";

export type ColourBy = "direction" | "length" | "end";

export const LONGEST_SHOWN_MM = 150;
// Told apart by people who see red and green alike, too.
export const END_COLOURS = ["#56b4e9", "#e69f00", "#009e73", "#f0e442", "#cc79a7", "#d55e00", "#0072b2", "#c9ced6"];

export function rgb(text: string): [number, number, number] {
  const number = parseInt(text.slice(1), 16);
  return [number >> 16, (number >> 8) & 255, number & 255];
}

/** From dark blue over magenta to yellow; brighter is longer, so that it can be read without colours, too. */
export function lengthColour(share: number): [number, number, number] {
  const stops = [[40, 44, 140], [180, 50, 140], [245, 130, 60], [250, 240, 120]];
  const place = Math.min(Math.max(share, 0), 1) * (stops.length - 1);
  const first = Math.min(Math.floor(place), stops.length - 2);
  const part = place - first;
  return [0, 1, 2].map((i) => stops[first][i] + part * (stops[first + 1][i] - stops[first][i])) as [number, number, number];
}

export function lineColour(of: Streamlines, line: number, by: "length" | "end"): [number, number, number] {
  return by === "length"
    ? lengthColour(of.lengths()[line] / LONGEST_SHOWN_MM)
    : rgb(END_COLOURS[of.whole().endReasons[2 * line] % END_COLOURS.length]);
}
