// Numbers that a file has for its streamlines, by which they are coloured and left out: data, or groups.
import { fetched } from "./fetched";

export interface Column {
  name: string;
  groups?: string[]; // the numbers are places here
}

export interface LineValues {
  column: Column;
  numbers: Float32Array; // by place in the file; NaN: none
  /** What the ends of the bar stand for: all but the lowest and the highest hundredth lie between them. */
  least: number;
  most: number;
}

export async function fetchValues(file: string, columns: Column[], column: number): Promise<LineValues> {
  const response = await fetched(`api/values/${encodeURIComponent(file)}/${column}`);
  const numbers = new Float32Array(await response.arrayBuffer());
  const sorted = numbers.filter(Number.isFinite).sort();
  const at = (share: number) => (sorted.length === 0 ? 0 : sorted[Math.round(share * (sorted.length - 1))]);
  return { column: columns[column], numbers, least: at(0.01), most: at(0.99) };
}

/** Where a number lies on the bar, 0 to 1. */
export function shareOf(values: LineValues, number: number): number {
  return values.most > values.least ? (number - values.least) / (values.most - values.least) : 0.5;
}
