// Which part of a file comes next: the one that lies nearest to where one looks.
import type { Box } from "./messages";

/** Of a place from a box, squared; 0 inside. */
function squaredDistance(box: Box, place: readonly number[]): number {
  let sum = 0;
  for (let axis = 0; axis < 3; axis++) {
    const off = Math.max(box[axis] - place[axis], 0, place[axis] - box[3 + axis]);
    sum += off * off;
  }
  return sum;
}

/** The nearest box of those that are left, and of equals the first; undefined where none is left. Where `place` is none, the first. */
export function nearestOf(boxes: Box[], left: Iterable<number>, place: readonly number[]): number | undefined {
  let best: number | undefined;
  let least = Infinity;
  for (const number of left) {
    const distance = squaredDistance(boxes[number], place);
    if (best !== undefined && !(distance < least)) continue;
    best = number;
    least = distance;
  }
  return best;
}
