// The messages of the socket, versioned (docs/view.md, "Messages"): little-endian, a header of 12 bytes, then what the kind
// says. What does not parse is an error, never a guess.

const MAGIC = 0x31564743; // "CGV1"
const HEADER_BYTES = 12;
export const PROTOCOL = "cingulum-view-1";

export enum Kind {
  track = 1,
  cancel = 2,
  batch = 16,
  end = 17,
  error = 18,
  lines = 19,
  places = 20,
}

/** Streamlines; line i holds the points offsets[i] to offsets[i + 1]. */
export interface Batch {
  offsets: Uint32Array;
  /** A coordinate in world millimetres is corner + unit * position. Those of answers are the numbers themselves (corner 0,
   * unit 1); those of files have 16 bits and are for pictures. */
  positions: Float32Array | Uint16Array;
  corner: readonly [number, number, number];
  unit: number;
  /** Of answers the seed, of files the place there. */
  seeds: Uint32Array;
  /** Two of each line: the end of the second half, the end of the first. */
  endReasons: Uint8Array;
}

export const EXACT = { corner: [0, 0, 0], unit: 1 } as const;

/** Around the middles of lines: least x y z, greatest x y z. */
export type Box = Float32Array;

export interface End {
  seeds: number;
  kept: number;
  points: number;
  mean_mm: number;
  milliseconds: { tracking: number; total: number };
  end_reasons: Record<string, number>;
  command: string;
  score: Record<string, number> | null;
}

export interface Problem {
  kind: string;
  message: string;
}

export type Answer =
  | { kind: Kind.batch | Kind.lines; request: number; batch: Batch }
  | { kind: Kind.places; request: number; boxes: Box[] }
  | { kind: Kind.end; request: number; end: End }
  | { kind: Kind.error; request: number; problem: Problem };

export function message(kind: Kind, request: number, body: Uint8Array): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(HEADER_BYTES + body.length);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, MAGIC, true);
  view.setUint16(4, kind, true);
  view.setUint32(8, request, true);
  bytes.set(body, HEADER_BYTES);
  return bytes;
}

export function trackMessage(request: number, plan: object): Uint8Array<ArrayBuffer> {
  return message(Kind.track, request, new TextEncoder().encode(JSON.stringify(plan)));
}

export function cancelMessage(request: number): Uint8Array<ArrayBuffer> {
  return message(Kind.cancel, request, new Uint8Array());
}

/** What a page sends; `text` is the JSON of a request, null where it cancels one. */
export function parseRequest(bytes: Uint8Array): { number: number; text: string | null } {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const kind = view.getUint16(4, true);
  const text = kind === Kind.track ? new TextDecoder().decode(bytes.subarray(HEADER_BYTES)) : null;
  return { number: view.getUint32(8, true), text };
}

/** The body of a batch, which begins at `begin`. */
function parseBatch(bytes: ArrayBuffer, begin: number): Batch {
  const [lines, points] = countsOf(bytes, begin);
  const offsetsAt = begin + 8;
  const positionsAt = offsetsAt + 4 * (lines + 1);
  const seedsAt = positionsAt + 12 * points;
  const reasonsAt = seedsAt + 4 * lines;
  needs(bytes, begin, reasonsAt + 2 * lines - begin);
  return checked({
    offsets: new Uint32Array(bytes, offsetsAt, lines + 1),
    positions: new Float32Array(bytes, positionsAt, 3 * points),
    ...EXACT,
    seeds: new Uint32Array(bytes, seedsAt, lines),
    endReasons: new Uint8Array(bytes, reasonsAt, 2 * lines),
  });
}

/** The same of a file, whose points are quantised and whose lines have no reasons. */
function parseLines(bytes: ArrayBuffer, begin: number): Batch {
  const [lines, points] = countsOf(bytes, begin);
  const offsetsAt = begin + 24;
  const placesAt = offsetsAt + 4 * (lines + 1);
  const positionsAt = placesAt + 4 * lines;
  needs(bytes, begin, positionsAt + 6 * points - begin);
  const [x, y, z, unit] = new Float32Array(bytes, begin + 8, 4);
  return checked({
    offsets: new Uint32Array(bytes, offsetsAt, lines + 1),
    positions: new Uint16Array(bytes, positionsAt, 3 * points),
    corner: [x, y, z],
    unit,
    seeds: new Uint32Array(bytes, placesAt, lines),
    endReasons: new Uint8Array(2 * lines),
  });
}

function parsePlaces(bytes: ArrayBuffer, begin: number): Box[] {
  needs(bytes, begin, 4);
  const count = new DataView(bytes).getUint32(begin, true);
  needs(bytes, begin, 4 + 24 * count);
  return Array.from({ length: count }, (_, i) => new Float32Array(bytes, begin + 4 + 24 * i, 6));
}

function needs(bytes: ArrayBuffer, begin: number, count: number): void {
  if (begin + count > bytes.byteLength) throw new Error(`a batch of ${bytes.byteLength - begin} bytes is cut short`);
}

function countsOf(bytes: ArrayBuffer, begin: number): [number, number] {
  needs(bytes, begin, 8);
  const view = new DataView(bytes);
  return [view.getUint32(begin, true), view.getUint32(begin + 4, true)];
}

function checked(batch: Batch): Batch {
  let previous = 0;
  for (const offset of batch.offsets) {
    if (offset < previous) throw new Error("the offsets of a batch decrease");
    previous = offset;
  }
  if (batch.offsets[0] !== 0 || previous !== batch.positions.length / 3) throw new Error("the offsets of a batch do not span its points");
  return batch;
}

export function parseAnswer(bytes: ArrayBuffer): Answer {
  const view = new DataView(bytes);
  if (bytes.byteLength < HEADER_BYTES || view.getUint32(0, true) !== MAGIC) throw new Error("not a message of cingulum view");
  const kind = view.getUint16(4, true);
  const request = view.getUint32(8, true);
  const json = () => JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(new Uint8Array(bytes, HEADER_BYTES)));
  switch (kind) {
    case Kind.batch:
      return { kind, request, batch: parseBatch(bytes, HEADER_BYTES) };
    case Kind.lines:
      return { kind, request, batch: parseLines(bytes, HEADER_BYTES) };
    case Kind.places:
      return { kind, request, boxes: parsePlaces(bytes, HEADER_BYTES) };
    case Kind.end:
      return { kind, request, end: json() };
    case Kind.error:
      return { kind, request, problem: json() };
    default:
      throw new Error(`a message of kind ${kind} is not known here`);
  }
}
