// Streamlines that grow batch by batch: one array of points and what is known of each line. Nothing is drawn here.
import type { Batch } from "./messages";

function grown<T extends Float32Array | Uint32Array | Uint8Array>(array: T, needed: number): T {
  if (needed <= array.length) return array;
  const larger = new (array.constructor as new (length: number) => T)(Math.max(needed, 2 * array.length));
  larger.set(array as never);
  return larger;
}

export class Streamlines {
  positions = new Float32Array(3 * 4096);
  /** Line i holds the points offsets[i] to offsets[i + 1]. */
  offsets = new Uint32Array(1024);
  lengths = new Float32Array(1024);
  seeds = new Uint32Array(1024);
  endReasons = new Uint8Array(2048);
  lines = 0;
  points = 0;

  clear(): void {
    this.lines = 0;
    this.points = 0;
  }

  append(batch: Batch): void {
    const count = batch.seeds.length;
    const points = batch.positions.length / 3;
    this.positions = grown(this.positions, 3 * (this.points + points));
    this.offsets = grown(this.offsets, this.lines + count + 1);
    this.lengths = grown(this.lengths, this.lines + count);
    this.seeds = grown(this.seeds, this.lines + count);
    this.endReasons = grown(this.endReasons, 2 * (this.lines + count));
    this.positions.set(batch.positions, 3 * this.points);
    this.seeds.set(batch.seeds, this.lines);
    this.endReasons.set(batch.endReasons, 2 * this.lines);
    for (let line = 0; line < count; line++) {
      const end = batch.offsets[line + 1];
      let length = 0;
      for (let i = batch.offsets[line] + 1; i < end; i++) length += distance(batch.positions, i - 1, i);
      this.lengths[this.lines + line] = length;
      this.offsets[this.lines + line + 1] = this.points + end;
    }
    this.lines += count;
    this.points += points;
  }
}

export function distance(positions: Float32Array, from: number, to: number): number {
  const x = positions[3 * to] - positions[3 * from];
  const y = positions[3 * to + 1] - positions[3 * from + 1];
  const z = positions[3 * to + 2] - positions[3 * from + 2];
  return Math.sqrt(x * x + y * y + z * z);
}
