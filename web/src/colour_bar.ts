// The bar that says what the colours of streamlines mean.
import { byId } from "./elements";
import { END_COLOURS, groupColour, LONGEST_SHOWN_MM, rampColour, type ColourBy } from "./line_colours";
import type { LineValues } from "./line_values";

export function showColourBar(by: ColourBy, values: LineValues | null): void {
  const bands = (colours: string[]) =>
    `linear-gradient(90deg, ${colours.map((colour, i) => `${colour} ${(100 * i) / colours.length}% ${(100 * (i + 1)) / colours.length}%`).join(", ")})`;
  const css = (colour: [number, number, number]) => `rgb(${colour.map(Math.round).join(" ")})`;
  const ramp = `linear-gradient(90deg, ${[0, 0.25, 0.5, 0.75, 1].map((share) => css(rampColour(share))).join(", ")})`;
  const [background, text] =
    by === "direction" ? [bands(["#f33", "#3f3", "#55f"]), "red left-right, green front-back, blue up-down"]
    : by === "length" ? [ramp, `0 to ${LONGEST_SHOWN_MM} mm`]
    : by === "end" ? [bands(END_COLOURS), "one colour for each reason"]
    : !values ? ["", ""]
    : values.column.groups ? [bands(values.column.groups.map((_, group) => css(groupColour(group)))), values.column.groups.join(", ")]
    : [ramp, `${values.column.name}: ${values.least.toPrecision(3)} to ${values.most.toPrecision(3)}`];
  byId("bar").style.background = background;
  byId("bar-text").textContent = text;
}
