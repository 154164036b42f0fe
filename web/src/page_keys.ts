// Keys of the page: arrows and pages move the cross-hair, others act.
import type { Point } from "./slices";

const STEPS: Record<string, Point> = {
  ArrowLeft: [-1, 0, 0], ArrowRight: [1, 0, 0], ArrowUp: [0, 1, 0], ArrowDown: [0, -1, 0], PageUp: [0, 0, 1], PageDown: [0, 0, -1],
};

export function listenToKeys(move: (by: Point) => void, keys: Record<string, () => void>): void {
  addEventListener("keydown", (event) => {
    const target = event.target as HTMLElement;
    if (event.ctrlKey || event.metaKey || event.altKey || ["INPUT", "SELECT"].includes(target.tagName)) return;
    const step = STEPS[event.key];
    if (step) move(step);
    else if (keys[event.key]) keys[event.key]();
    else return;
    event.preventDefault();
    event.stopPropagation(); // NiiVue has keys of its own
  }, { capture: true });
}
