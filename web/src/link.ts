// The state of the page as a link: behind "#", so that it stays out of logs, and with identifiers of files alone.
import type { FilterValues } from "./filter_sliders";

export interface LinkState {
  image?: string;
  tractogram?: string;
  place?: [number, number, number];
  view?: [number, number];
  plan?: Record<string, number | string>;
  filter?: FilterValues;
  colour?: string;
  adapter?: boolean; // of an exported page: the adapter of the browser tracks, software or not
}

const areNumbers = (value: unknown, count: number): boolean =>
  Array.isArray(value) && value.length === count && value.every(Number.isFinite);

export function readLink(hash: string): LinkState {
  if (hash.length < 2) return {};
  try {
    const state: unknown = JSON.parse(decodeURIComponent(hash.slice(1)));
    if (state === null || typeof state !== "object" || Array.isArray(state)) return {};
    const { place, view, adapter, ...rest } = state as LinkState;
    return { ...rest, ...(areNumbers(place, 3) && { place }), ...(areNumbers(view, 2) && { view }), ...(adapter === true && { adapter }) };
  } catch {
    return {}; // somebody else's fragment
  }
}

export function writeLink(state: LinkState): string {
  return `#${encodeURIComponent(JSON.stringify(state))}`;
}
