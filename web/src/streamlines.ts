// Streamlines that come batch by batch, and what is known of each line. Nothing is drawn here. Batches stay as they came
// until somebody asks for all points in one array: what is only shown is never copied.
import type { Batch } from "./messages";

export class Streamlines {
  lines = 0;
  points = 0;
  private batches: Batch[] = [];
  private measured = new Float32Array(0); // lengths of the first lines

  clear(): void {
    this.lines = 0;
    this.points = 0;
    this.batches = [];
    this.measured = new Float32Array(0);
  }

  append(batch: Batch): void {
    this.batches.push(batch);
    this.lines += batch.seeds.length;
    this.points += batch.positions.length / 3;
  }

  /** What was appended after the first `lines` lines; `lines` is a number that this had once. */
  since(lines: number): Batch[] {
    let first = 0;
    let skipped = 0;
    while (skipped < lines) skipped += this.batches[first++].seeds.length;
    if (skipped === lines) return this.batches.slice(first);
    return [part(this.whole(), lines)];
  }

  /** All in one: line i holds the points offsets[i] to offsets[i + 1]. */
  whole(): Batch {
    if (this.batches.length !== 1) {
      const all: Batch = {
        offsets: new Uint32Array(this.lines + 1),
        positions: new Float32Array(3 * this.points),
        seeds: new Uint32Array(this.lines),
        endReasons: new Uint8Array(2 * this.lines),
      };
      let line = 0;
      let point = 0;
      for (const batch of this.batches) {
        all.positions.set(batch.positions, 3 * point);
        all.seeds.set(batch.seeds, line);
        all.endReasons.set(batch.endReasons, 2 * line);
        for (let i = 1; i < batch.offsets.length; i++) all.offsets[line + i] = point + batch.offsets[i];
        line += batch.seeds.length;
        point += batch.positions.length / 3;
      }
      this.batches = [all];
    }
    return this.batches[0];
  }

  /** In mm, of each line. */
  lengths(): Float32Array {
    if (this.measured.length < this.lines) {
      const known = this.measured;
      const { offsets, positions } = this.whole();
      this.measured = new Float32Array(this.lines);
      this.measured.set(known);
      for (let line = known.length; line < this.lines; line++) {
        let length = 0;
        for (let i = offsets[line] + 1; i < offsets[line + 1]; i++) length += distance(positions, i - 1, i);
        this.measured[line] = length;
      }
    }
    return this.measured;
  }
}

function part(of: Batch, firstLine: number): Batch {
  const firstPoint = of.offsets[firstLine];
  return {
    offsets: of.offsets.slice(firstLine).map((offset) => offset - firstPoint),
    positions: of.positions.subarray(3 * firstPoint),
    seeds: of.seeds.subarray(firstLine),
    endReasons: of.endReasons.subarray(2 * firstLine),
  };
}

export function distance(positions: Float32Array, from: number, to: number): number {
  const x = positions[3 * to] - positions[3 * from];
  const y = positions[3 * to + 1] - positions[3 * from + 1];
  const z = positions[3 * to + 2] - positions[3 * from + 2];
  return Math.sqrt(x * x + y * y + z * z);
}
