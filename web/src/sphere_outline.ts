// Spheres as lines: circles about the three axes, and where a slice cuts the sphere its circle there.
import type { Sphere } from "./line_filters";
import { EXACT, type Batch } from "./messages";

const CORNERS = 48;

function circle(centre: number[], radius: number, axis: number): number[] {
  const points: number[] = [];
  const [u, v] = axis === 0 ? [1, 2] : axis === 1 ? [0, 2] : [0, 1];
  for (let i = 0; i <= CORNERS; i++) {
    const angle = (2 * Math.PI * i) / CORNERS;
    const point = [...centre];
    point[u] += radius * Math.cos(angle);
    point[v] += radius * Math.sin(angle);
    points.push(...point);
  }
  return points;
}

/** `planes`: where the three slices lie, along x, y and z. */
export function outline(spheres: Sphere[], planes: [number, number, number]): Batch {
  const lines: number[][] = [];
  for (const { centre, radius } of spheres) {
    for (const axis of [0, 1, 2]) {
      lines.push(circle(centre, radius, axis));
      const off = planes[axis] - centre[axis];
      if (off !== 0 && Math.abs(off) < radius) {
        const cut = [...centre];
        cut[axis] = planes[axis];
        lines.push(circle(cut, Math.sqrt(radius * radius - off * off), axis));
      }
    }
  }
  const offsets = new Uint32Array(lines.length + 1);
  lines.forEach((line, i) => (offsets[i + 1] = offsets[i] + line.length / 3));
  return { offsets, positions: new Float32Array(lines.flat()), ...EXACT, seeds: new Uint32Array(lines.length),
    endReasons: new Uint8Array(2 * lines.length) };
}
