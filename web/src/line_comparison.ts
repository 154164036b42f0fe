// Two answers side by side: which lines both have, point for point, and how far the voxels that they visit agree.
import type { Grid } from "./grid";
import { LineState } from "./streamline_layer";
import type { Streamlines } from "./streamlines";

export interface Comparison {
  statesA: Uint8Array<ArrayBuffer>;
  statesB: Uint8Array<ArrayBuffer>;
  onlyA: number;
  onlyB: number;
  both: number;
  dice: number;
}

/** The bits of a line, as a text that equal lines alone share. */
function bitsOf(of: Streamlines, line: number): string {
  const { positions, offsets } = of.whole();
  const words = new Uint32Array(positions.buffer, positions.byteOffset, positions.length);
  const begin = 3 * offsets[line];
  const end = 3 * offsets[line + 1];
  // Two hashes of 32 bits (FNV-1a, from two starts) beside the count: a mere 200 000 lines do not collide.
  let first = 0x811c9dc5;
  let second = 0x01000193;
  for (let i = begin; i < end; i++) {
    first = Math.imul(first ^ words[i], 0x01000193);
    second = Math.imul(second ^ (words[i] >>> 7) ^ (words[i] << 9), 0x85ebca6b);
  }
  return `${end - begin}.${first >>> 0}.${second >>> 0}`;
}

function inverse3(a: number[]): number[] {
  const [a00, a01, a02, , a10, a11, a12, , a20, a21, a22] = a;
  const c0 = a11 * a22 - a12 * a21;
  const c1 = a12 * a20 - a10 * a22;
  const c2 = a10 * a21 - a11 * a20;
  const determinant = a00 * c0 + a01 * c1 + a02 * c2;
  return [c0, a02 * a21 - a01 * a22, a01 * a12 - a02 * a11, c1, a00 * a22 - a02 * a20, a02 * a10 - a00 * a12, c2,
    a01 * a20 - a00 * a21, a00 * a11 - a01 * a10].map((value) => value / determinant);
}

export function visitedVoxels(of: Streamlines, grid: Grid): Set<number> {
  const m = inverse3(grid.affine);
  const [tx, ty, tz] = [grid.affine[3], grid.affine[7], grid.affine[11]];
  const [sx, sy, sz] = grid.shape;
  const found = new Set<number>();
  const { positions } = of.whole();
  for (let i = 0; i < of.points; i++) {
    const x = positions[3 * i] - tx;
    const y = positions[3 * i + 1] - ty;
    const z = positions[3 * i + 2] - tz;
    const vx = Math.round(m[0] * x + m[1] * y + m[2] * z);
    const vy = Math.round(m[3] * x + m[4] * y + m[5] * z);
    const vz = Math.round(m[6] * x + m[7] * y + m[8] * z);
    if (vx >= 0 && vy >= 0 && vz >= 0 && vx < sx && vy < sy && vz < sz) found.add(vx + sx * (vy + sy * vz));
  }
  return found;
}

export function compare(a: Streamlines, b: Streamlines, grid: Grid): Comparison {
  const count = new Map<string, number>();
  for (let line = 0; line < a.lines; line++) {
    const bits = bitsOf(a, line);
    count.set(bits, (count.get(bits) ?? 0) + 1);
  }
  const statesB = new Uint8Array(b.lines);
  const shared = new Map<string, number>();
  let both = 0;
  for (let line = 0; line < b.lines; line++) {
    const bits = bitsOf(b, line);
    const left = count.get(bits) ?? 0;
    if (left > 0) {
      count.set(bits, left - 1);
      shared.set(bits, (shared.get(bits) ?? 0) + 1);
      both++;
    }
    statesB[line] = left > 0 ? LineState.both : LineState.onlyB;
  }
  const statesA = new Uint8Array(a.lines);
  for (let line = 0; line < a.lines; line++) {
    const bits = bitsOf(a, line);
    const left = shared.get(bits) ?? 0;
    // What both have is drawn once, with B.
    if (left > 0) shared.set(bits, left - 1);
    statesA[line] = left > 0 ? LineState.hidden : LineState.onlyA;
  }
  const voxelsA = visitedVoxels(a, grid);
  const voxelsB = visitedVoxels(b, grid);
  let common = 0;
  for (const voxel of voxelsA) if (voxelsB.has(voxel)) common++;
  const all = voxelsA.size + voxelsB.size;
  return { statesA, statesB, onlyA: a.lines - both, onlyB: b.lines - both, both, dice: all === 0 ? 1 : (2 * common) / all };
}
