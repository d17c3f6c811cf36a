/** The marks of a reviewer, and the file of decisions that is made of them. */
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { withMark, type Mark } from "../components/review-keys";
import { writeDecisionLines, type Decision } from "../components/save-file";
import type { Report } from "./data";

/** Marks by removal. */
export type Marks = ReadonlyMap<number, Mark>;

/** Returns the name under which the browser keeps the marks of a report. */
const storageKey = (report: Report) => `lookalike-marks ${report.data.created} ${report.data.plan.recipe_id} ${report.data.summary.documents}`;

/** Returns the marks that the browser kept of this report. Pages from disk may have no storage. */
function storedMarks(report: Report): Marks {
  try {
    const stored = JSON.parse(localStorage.getItem(storageKey(report)) ?? "[]") as [number, Mark][];
    const isValid = ([removal, mark]: [number, Mark]) => canMark(report, removal) && (mark === "same" || mark === "different");
    return new Map(stored.filter(isValid));
  } catch {
    return new Map();
  }
}

export function useMarks(report: Report) {
  const [marks, setMarks] = useState<Marks>(() => storedMarks(report));
  const stored = useRef(marks);
  // The effect runs before the page is drawn, so every mark on the screen is stored. Opening a report stores nothing.
  useLayoutEffect(() => {
    if (stored.current === marks) return;
    stored.current = marks;
    try {
      localStorage.setItem(storageKey(report), JSON.stringify([...marks]));
    } catch {
      // Without storage the marks last as long as the page.
    }
  }, [marks]);
  const setMark = (removal: number, mark: Mark | null) => {
    if (canMark(report, removal)) setMarks((known) => withMark(known, removal, mark));
  };
  return { marks, setMark, clearMarks: () => setMarks(new Map()) };
}

/** Returns `true` if a decision can name both texts: they are in the file, and they differ. */
export const canMark = (report: Report, removal: number): boolean =>
  report.textsOf(removal) !== null && !report.isIdentical(removal);

/** Returns the decisions as JSON Lines, in the order of the removals. */
export function writeDecisions(report: Report, marks: Marks): string {
  const { removals, clusters, texts, plan } = report.data;
  const rows = [...marks].sort(([a], [b]) => a - b);
  const decisions = rows.flatMap(([removal, label]): Decision[] => {
    const pair = report.textsOf(removal);
    if (!pair) return [];
    const cluster = removals.cluster[removal]!;
    const decision = {
      a: texts.content[pair.kept]!,
      b: texts.content[pair.removed]!,
      label,
      recipe: plan.recipe_id,
      a_key: texts.key[pair.kept]!,
      b_key: texts.key[pair.removed]!,
      a_id: clusters.id[cluster]!,
      b_id: removals.id[removal]!,
      similarity: removals.similarity[removal]!,
    };
    return [decision];
  });
  return writeDecisionLines(decisions);
}
