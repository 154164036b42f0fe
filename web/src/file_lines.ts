// Streamlines of a file, some at a time (docs/view.md, "Tractograms"): the first are seen while the others come.
import { fetched } from "./fetched";
import { Kind, parseAnswer, type Answer, type Batch, type Box } from "./messages";
import { nearestOf } from "./nearest_first";
import type { Point } from "./slices";

/** Hands every batch over; false as soon as the file `isWanted` no longer. `here` is the cross-hair. */
export async function takeFileLines(id: string, here: () => Point, isWanted: () => boolean,
  take: (batch: Batch) => void): Promise<boolean> {
  const message = async (number: number) =>
    parseAnswer(await (await fetched(`api/lines/${encodeURIComponent(id)}/${number}`)).arrayBuffer());
  // First a sample of the whole, to its last message, which says where the others lie.
  let number = 0;
  let boxes: Box[] | null = null;
  while (boxes === null) {
    const answer = await message(number++);
    if (!isWanted()) return false;
    if (answer.kind === Kind.places) boxes = answer.boxes;
    else if (answer.kind === Kind.lines) take(answer.batch);
    else throw new Error("the streamlines of a file came as another message");
  }
  // Then the others, always those nearest to the cross-hair. While one is drawn the next is made.
  const left = new Set(boxes.keys());
  const asked: Promise<Answer>[] = [];
  const ask = () => {
    const next = nearestOf(boxes, left, here());
    if (next === undefined) return;
    left.delete(next);
    const answer = message(number + next);
    answer.catch(() => {}); // said when its turn comes
    asked.push(answer);
  };
  ask();
  while (asked.length > 0) {
    ask();
    const answer = await asked.shift()!;
    if (!isWanted()) return false;
    if (answer.kind === Kind.lines) take(answer.batch);
  }
  return true;
}
