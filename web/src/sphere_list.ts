// Spheres that streamlines must meet, must not meet or end at, in a list where each can be taken along by the cross-hair
// or removed.
import type { Sphere } from "./line_filters";
import type { Point } from "./slices";

export type SphereKind = "include" | "exclude" | "stop";

interface Placed {
  kind: SphereKind;
  sphere: Sphere;
}

export class SphereList {
  private placed: Placed[] = [];
  private held: Placed | null = null;

  /** `changed` is called when spheres come, go or are let go of. */
  constructor(private readonly list: HTMLElement, private readonly changed: () => void) {}

  place(kind: SphereKind, sphere: Sphere): void {
    this.placed.push({ kind, sphere });
    this.held = null;
    this.show();
    this.changed();
  }

  clear(): void {
    this.placed = [];
    this.held = null;
    this.show();
    this.changed();
  }

  of(kind: SphereKind): Sphere[] {
    return this.placed.filter((each) => each.kind === kind).map((each) => each.sphere);
  }

  all(): Sphere[] {
    return this.placed.map((each) => each.sphere);
  }

  /** Moves the one that is taken along, if any: then the cross-hair moves no seeds. */
  carry(to: Point): boolean {
    if (!this.held) return false;
    this.held.sphere.centre = to;
    this.show();
    return true;
  }

  private show(): void {
    const rows = this.placed.map((each, number) => {
      const item = document.createElement("li");
      const text = document.createElement("span");
      text.textContent = `${each.kind} ${each.sphere.centre.map((value) => value.toFixed(1)).join(", ")}; ${each.sphere.radius} mm`;
      const button = (name: string, pressed: () => void) => {
        const made = document.createElement("button");
        made.textContent = name;
        made.setAttribute("aria-label", `${name} ${each.kind} ${number + 1}`);
        made.addEventListener("click", pressed);
        return made;
      };
      const move = button("Move", () => {
        this.held = this.held === each ? null : each;
        this.show();
        this.changed();
      });
      move.setAttribute("aria-pressed", String(this.held === each));
      const remove = button("Remove", () => {
        this.placed = this.placed.filter((other) => other !== each);
        if (this.held === each) this.held = null;
        this.show();
        this.changed();
      });
      item.append(text, " ", move, " ", remove);
      return item;
    });
    this.list.replaceChildren(...rows);
  }
}
