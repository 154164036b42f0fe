// Which lines are seen: by length, by a number of theirs, by a share drawn with a fixed seed, by spheres that they must or
// must not meet.
import { shareOf, type LineValues } from "./line_values";
import type { Streamlines } from "./streamlines";

export interface Sphere {
  centre: [number, number, number]; // world, mm
  radius: number;
}

export interface LineFilter {
  shortestMm: number;
  longestMm: number;
  share: number; // of all lines, 0 to 1
  leastValue: number; // of the numbers by which lines are coloured, 0 to 1 along the bar; 0: any
  include: Sphere[]; // each is met
  exclude: Sphere[]; // none is met
}

/** A number in [0, 1) that belongs to the index alone: the same lines are drawn whenever the share is the same, whatever
 * came first. */
export function drawOf(index: number): number {
  let bits = (index + 0x9e3779b9) | 0;
  bits = Math.imul(bits ^ (bits >>> 16), 0x21f0aaad);
  bits = Math.imul(bits ^ (bits >>> 15), 0x735a2d97);
  return ((bits ^ (bits >>> 15)) >>> 0) / 4294967296;
}

/** Whether a point or a piece between two lies in the sphere: what is shown has few points. */
function meets(of: Streamlines, line: number, sphere: Sphere): boolean {
  const { batch, index } = of.at(line);
  const { positions: p, offsets, corner, unit } = batch;
  // Where the sphere lies among the batch's own numbers.
  const x = (sphere.centre[0] - corner[0]) / unit;
  const y = (sphere.centre[1] - corner[1]) / unit;
  const z = (sphere.centre[2] - corner[2]) / unit;
  const radius = sphere.radius / unit;
  const square = radius * radius;
  let [bx, by, bz] = [NaN, NaN, NaN]; // of the point before, from the centre
  for (let i = offsets[index]; i < offsets[index + 1]; i++) {
    const dx = p[3 * i] - x;
    const dy = p[3 * i + 1] - y;
    const dz = p[3 * i + 2] - z;
    if (dx * dx + dy * dy + dz * dz <= square) return true;
    const [wx, wy, wz] = [dx - bx, dy - by, dz - bz];
    const share = -(bx * wx + by * wy + bz * wz) / (wx * wx + wy * wy + wz * wz); // of the piece's nearest place
    if (share > 0 && share < 1) {
      const [nx, ny, nz] = [bx + share * wx, by + share * wy, bz + share * wz];
      if (nx * nx + ny * ny + nz * nz <= square) return true;
    }
    bx = dx;
    by = dy;
    bz = dz;
  }
  return false;
}

export function passesAll(filter: LineFilter): boolean {
  return (
    filter.shortestMm <= 0 && filter.longestMm === Infinity && filter.share >= 1 && filter.leastValue <= 0 &&
    filter.include.length + filter.exclude.length === 0
  );
}

/** `values`: those of the lines' file, if it was asked for any; without a number of its own a line passes no bound. */
export function passes(of: Streamlines, line: number, filter: LineFilter, values: LineValues | null): boolean {
  if (values && !values.column.groups && filter.leastValue > 0) {
    if (!(shareOf(values, values.numbers[of.nameOf(line)]) >= filter.leastValue)) return false;
  }
  if (filter.shortestMm > 0 || filter.longestMm < Infinity) {
    const length = of.lengths()[line];
    if (length < filter.shortestMm || length > filter.longestMm) return false;
  }
  return (
    (filter.share >= 1 || drawOf(of.nameOf(line)) < filter.share) &&
    filter.include.every((sphere) => meets(of, line, sphere)) &&
    !filter.exclude.some((sphere) => meets(of, line, sphere))
  );
}
