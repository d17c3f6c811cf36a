/** Reworded passages, of which only a part of the words is shared: they are named apart from copied ones, with their similarity. */
import type { Wording } from "../language/catalog";

/** A passage of a pair as reports have it. */
type PassageMark = readonly [start: number, end: number, sourceStart: number, sourceEnd: number, length: number, similarity: number, kind: string];

/** Returns the number of reworded passages and the largest similarity of one; null if there is none. */
export function findReworded(marks: readonly PassageMark[]): { count: number; similarity: number } | null {
  const similarities = marks.filter(([, , , , , , kind]) => kind === "reworded").map(([, , , , , similarity]) => similarity);
  return similarities.length > 0 ? { count: similarities.length, similarity: Math.max(...similarities) } : null;
}

/** Says how many passages of a pair are reworded; empty if none is. */
export function sayReworded(say: Wording, marks: readonly PassageMark[]): string {
  const found = findReworded(marks);
  return found ? say.text("passages.reworded", { n: found.count, similarity: say.similarity(found.similarity) }) : "";
}
