// Streamlines that come batch by batch, and what is known of each line. Nothing is drawn here. Batches stay as they came
// until somebody asks for all points of an answer in one array: what is only shown is never copied.
import { EXACT, type Batch } from "./messages";

export class Streamlines {
  lines = 0;
  points = 0;
  private batches: Batch[] = [];
  private firsts: number[] = []; // the first line of each batch
  private found = 0; // the batch that was found last: lines are asked for one after the other
  private measured = new Float32Array(0); // lengths of the first lines, and room for others
  private measuredLines = 0;

  clear(): void {
    this.lines = 0;
    this.points = 0;
    this.batches = [];
    this.firsts = [];
    this.found = 0;
    this.measuredLines = 0;
  }

  append(batch: Batch): void {
    this.batches.push(batch);
    this.firsts.push(this.lines);
    this.lines += batch.seeds.length;
    this.points += batch.positions.length / 3;
  }

  /** What was appended after the first `lines` lines; `lines` is a number that this had once. */
  since(lines: number): Batch[] {
    let first = 0;
    let skipped = 0;
    while (skipped < lines) skipped += this.batches[first++].seeds.length;
    if (skipped === lines) return this.batches.slice(first);
    const { batch, index } = this.at(lines);
    return [part(batch, index), ...this.batches.slice(first)];
  }

  /** The batch that holds a line, and its place there. */
  at(line: number): { batch: Batch; index: number } {
    if (line < this.firsts[this.found]) this.found = 0;
    while (line >= this.firsts[this.found] + this.batches[this.found].seeds.length) this.found++;
    return { batch: this.batches[this.found], index: line - this.firsts[this.found] };
  }

  /** What a line is known by: the seed of an answer, the place in a file. */
  nameOf(line: number): number {
    const { batch, index } = this.at(line);
    return batch.seeds[index];
  }

  endReasonOf(line: number): number {
    const { batch, index } = this.at(line);
    return batch.endReasons[2 * index];
  }

  /** Of an answer, all in one: line i holds the points offsets[i] to offsets[i + 1]. */
  whole(): Batch & { positions: Float32Array } {
    if (this.batches.length !== 1) {
      const all = {
        offsets: new Uint32Array(this.lines + 1),
        positions: new Float32Array(3 * this.points),
        ...EXACT,
        seeds: new Uint32Array(this.lines),
        endReasons: new Uint8Array(2 * this.lines),
      };
      let line = 0;
      let point = 0;
      for (const batch of this.batches) {
        all.positions.set(exact(batch), 3 * point);
        all.seeds.set(batch.seeds, line);
        all.endReasons.set(batch.endReasons, 2 * line);
        for (let i = 1; i < batch.offsets.length; i++) all.offsets[line + i] = point + batch.offsets[i];
        line += batch.seeds.length;
        point += batch.positions.length / 3;
      }
      this.batches = [all];
      this.firsts = [0];
      this.found = 0;
    }
    const [batch] = this.batches;
    return { ...batch, positions: exact(batch) };
  }

  /** In mm, of each line. */
  lengths(): Float32Array {
    if (this.measured.length < this.lines) {
      const larger = new Float32Array(Math.max(this.lines, 2 * this.measured.length));
      larger.set(this.measured.subarray(0, this.measuredLines));
      this.measured = larger;
    }
    for (let line = this.measuredLines; line < this.lines; line++) {
      const { batch, index } = this.at(line);
      const { offsets, positions, unit } = batch;
      let length = 0;
      for (let i = offsets[index] + 1; i < offsets[index + 1]; i++) length += distance(positions, i - 1, i);
      this.measured[line] = unit * length;
    }
    this.measuredLines = this.lines;
    return this.measured;
  }
}

function exact(batch: Batch): Float32Array {
  if (batch.positions instanceof Float32Array) return batch.positions;
  throw new Error("streamlines of a file are for pictures: their bits are not those of the file");
}

function part(of: Batch, firstLine: number): Batch {
  const firstPoint = of.offsets[firstLine];
  return {
    ...of,
    offsets: of.offsets.slice(firstLine).map((offset) => offset - firstPoint),
    positions: of.positions.subarray(3 * firstPoint),
    seeds: of.seeds.subarray(firstLine),
    endReasons: of.endReasons.subarray(2 * firstLine),
  };
}

function distance(positions: Float32Array | Uint16Array, from: number, to: number): number {
  const x = positions[3 * to] - positions[3 * from];
  const y = positions[3 * to + 1] - positions[3 * from + 1];
  const z = positions[3 * to + 2] - positions[3 * from + 2];
  return Math.sqrt(x * x + y * y + z * z);
}
