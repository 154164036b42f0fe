// What the viewer has to show: the answer to api/files.
import type { Grid } from "./grid";
import type { Column } from "./line_values";

export interface FileEntry {
  id: string;
  name: string;
  kind: "image" | "tractogram" | "series";
  bytes: number;
  columns?: Column[]; // of a tractogram
}

export interface Live extends Grid {
  field: string;
  getters: string[];
  getter: string; // what `cingulum track` takes unless told
  lowest_stop_threshold: number | null;
  defaults: Record<string, Record<string, string | boolean>>; // as on the command line; flags are true or false
  most_seeds: number;
  device: string;
  image?: string;
  glyphs?: boolean;
  peaks?: boolean;
  truth: boolean;
}

export interface Listing {
  files: FileEntry[];
  live: Live | null;
  live_error: string | null;
}
