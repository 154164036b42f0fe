// What the page says beside the streamlines of an answer, and beside two answers, A and B.
import { byId, listed } from "./elements";
import type { Comparison } from "./line_comparison";
import type { End } from "./messages";

/** A share as it is read. */
const percent = (share: number): string => `${(100 * share).toFixed(1)} %`;

export function showEnd(end: End, milliseconds: number): void {
  const reasons = Object.entries(end.end_reasons).sort((a, b) => b[1] - a[1]);
  listed(byId("answer"), [
    ["answered in", `${milliseconds.toFixed(0)} ms (tracking ${end.milliseconds.tracking.toFixed(0)})`],
    ["kept", `${end.kept} of ${end.seeds} seeds`],
    ["mean length", `${end.mean_mm.toFixed(1)} mm`],
    ...reasons.map(([name, count]): [string, string] => [name.replaceAll("_", " "), String(count)]),
    ...Object.entries(end.score ?? {}).map(([name, value]): [string, string] => [name.replaceAll("_", " "), percent(value)]),
  ]);
  byId("command").textContent = end.command;
  document.body.dataset.answered = String(Number(document.body.dataset.answered ?? 0) + 1);
}

export function showDifference(found: Comparison, endA: End | null, endB: End | null): void {
  const [a, b] = [endA?.score, endB?.score];
  listed(byId("difference"), [
    ["A alone", String(found.onlyA)],
    ["B alone", String(found.onlyB)],
    ["both, bit for bit", String(found.both)],
    ["voxels, Dice", found.dice.toFixed(3)],
    ["kept", `${endA?.kept ?? "?"} and ${endB?.kept ?? "?"}`],
    ...(a && b ? Object.keys(a).map((name): [string, string] => [name.replaceAll("_", " "), `${percent(a[name])} and ${percent(b[name])}`]) : []),
  ]);
}
