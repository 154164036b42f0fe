// The grid of the image that is tracked.

export interface Grid {
  shape: [number, number, number];
  /** Row-major 4 x 4, voxel to world. */
  affine: number[];
}

/** The shortest of a voxel's edges, in mm. */
export function shortestEdge(grid: Grid): number {
  return Math.min(...[0, 1, 2].map((column) => Math.hypot(...[0, 1, 2].map((row) => grid.affine[4 * row + column]))));
}
