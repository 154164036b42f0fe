// Pictures of the three slices in sight (glyphs, peaks), asked for when a plane has moved, one at a time for each slice.
import { fetched } from "./fetched";
import type { Point } from "./slices";

export class SlicePictures {
  isShown = false;
  private readonly places: (number | null)[] = [null, null, null];
  private readonly onTheirWay = [false, false, false];

  /** `name` is that of the server's path, `place` where the slices are now, `show` takes what came for one of them. */
  constructor(
    private readonly name: "glyphs" | "peaks",
    private readonly place: () => Point,
    private readonly show: (axis: number, bytes: ArrayBuffer) => void,
    private readonly problem: (message: string) => void,
  ) {}

  /** What was shown is gone: the next follow() asks for it again. */
  forget(): void {
    this.places.fill(null);
  }

  follow(): void {
    if (!this.isShown) return;
    const here = this.place();
    for (const axis of [0, 1, 2]) {
      const mm = here[axis];
      if (!Number.isFinite(mm) || this.places[axis] === mm || this.onTheirWay[axis]) continue;
      this.onTheirWay[axis] = true;
      fetched(`api/${this.name}/${axis}/${mm}`)
        .then((response) => response.arrayBuffer())
        .then((bytes) => {
          this.show(axis, bytes);
          this.places[axis] = mm;
        })
        .catch((error) => this.problem(String(error.message ?? error)))
        .finally(() => {
          this.onTheirWay[axis] = false;
          if (this.places[axis] === mm) this.follow(); // the plane may have moved meanwhile
        });
    }
  }
}
