// Colours of streamlines: by direction (red left-right, green front-back, blue up-down), by length, by why they ended.
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

/** RGBA of the points of the lines `first` to `end`, written behind one another. */
export function colourPoints(of: Streamlines, first: number, end: number, by: ColourBy): Uint8Array<ArrayBuffer> {
  const begin = of.offsets[first];
  const colours = new Uint8Array(4 * (of.offsets[end] - begin));
  const p = of.positions;
  for (let line = first; line < end; line++) {
    const from = of.offsets[line];
    const to = of.offsets[line + 1];
    const fixed =
      by === "direction" ? null : by === "length" ? lengthColour(of.lengths[line] / LONGEST_SHOWN_MM)
        : rgb(END_COLOURS[of.endReasons[2 * line] % END_COLOURS.length]);
    for (let i = from; i < to; i++) {
      const at = 4 * (i - begin);
      if (fixed) {
        colours[at] = fixed[0];
        colours[at + 1] = fixed[1];
        colours[at + 2] = fixed[2];
      } else {
        const before = 3 * Math.max(i - 1, from);
        const after = 3 * Math.min(i + 1, to - 1);
        const x = Math.abs(p[after] - p[before]);
        const y = Math.abs(p[after + 1] - p[before + 1]);
        const z = Math.abs(p[after + 2] - p[before + 2]);
        const scale = 255 / Math.max(Math.sqrt(x * x + y * y + z * z), 1e-6);
        colours[at] = x * scale;
        colours[at + 1] = y * scale;
        colours[at + 2] = z * scale;
      }
      colours[at + 3] = 255;
    }
  }
  return colours;
}
