/** The marks of a reviewer, and the file of decisions that is made of them. */
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { withMark, type Mark } from "../components/review-keys";
import { writeDecisionLines, type Decision } from "../components/save-file";
import type { Report } from "./data";

/** Marks by row of a list. */
export type Marks = ReadonlyMap<number, Mark>;

/** Returns the name under which the browser keeps marks of a report. */
const storageKey = (report: Report, kind: string) =>
  `lookalike-${kind} ${report.data.created} ${report.data.plan.recipe_id} ${report.data.summary.documents}`;

/** Returns the marks that the browser kept. Pages from disk may have no storage. */
function storedMarks(key: string, canMark: (row: number) => boolean): Marks {
  try {
    const stored = JSON.parse(localStorage.getItem(key) ?? "[]") as [number, Mark][];
    return new Map(stored.filter(([row, mark]) => canMark(row) && (mark === "same" || mark === "different")));
  } catch {
    return new Map();
  }
}

/** Marks of rows that the browser keeps under a key. */
function useStoredMarks(key: string, canMark: (row: number) => boolean) {
  const [marks, setMarks] = useState<Marks>(() => storedMarks(key, canMark));
  const stored = useRef(marks);
  // The effect runs before the page is drawn, so every mark on the screen is stored. Opening a report stores nothing.
  useLayoutEffect(() => {
    if (stored.current === marks) return;
    stored.current = marks;
    try {
      localStorage.setItem(key, JSON.stringify([...marks]));
    } catch {
      // Without storage the marks last as long as the page.
    }
  }, [marks]);
  const setMark = (row: number, mark: Mark | null) => {
    if (canMark(row)) setMarks((known) => withMark(known, row, mark));
  };
  return { marks, setMark, clearMarks: () => setMarks(new Map()) };
}

/** Marks of the removals and of the forms of a report. */
export function useMarks(report: Report) {
  const removals = useStoredMarks(storageKey(report, "marks"), (removal) => canMark(report, removal));
  const forms = useStoredMarks(storageKey(report, "form-marks"), (form) => report.canMarkForm(form));
  return {
    marks: removals.marks,
    setMark: removals.setMark,
    formMarks: forms.marks,
    setFormMark: forms.setMark,
    clearMarks: () => {
      removals.clearMarks();
      forms.clearMarks();
    },
  };
}

/** Returns `true` if a decision can name both texts: they are in the file, and they differ. */
export const canMark = (report: Report, removal: number): boolean =>
  report.textsOf(removal) !== null && !report.isIdentical(removal);

/** Returns the decisions as JSON Lines: about pairs in the order of the removals, and then about forms. */
export function writeDecisions(report: Report, marks: Marks, formMarks: Marks): string {
  const aboutForms = decisionsOnForms(report, formMarks);
  // The mark of a form counts for the pair that names it, too.
  const pairOf = ({ a, b }: Decision) => [a, b].sort().join(" ");
  const decided = new Set(aboutForms.map(pairOf));
  const aboutPairs = decisionsOnPairs(report, marks).filter((decision) => !decided.has(pairOf(decision)));
  return writeDecisionLines([...aboutPairs, ...aboutForms]);
}

const inOrder = (marks: Marks) => [...marks].sort(([a], [b]) => a - b);

function decisionsOnPairs(report: Report, marks: Marks): Decision[] {
  const { removals, clusters, texts, plan } = report.data;
  return inOrder(marks).flatMap(([removal, label]): Decision[] => {
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
}

/** Returns decisions about forms. Each is also about two documents of the form. */
function decisionsOnForms(report: Report, marks: Marks): Decision[] {
  const { forms, plan } = report.data;
  return inOrder(marks).flatMap(([form, label]): Decision[] => {
    const examples = forms.examples[form];
    if (!examples) return [];
    const [a, b] = examples;
    const decision = {
      a: a.content,
      b: b.content,
      label,
      recipe: plan.recipe_id,
      a_key: a.key,
      b_key: b.key,
      a_id: a.id,
      b_id: b.id,
      form: { name: forms.name[form]!, frame: forms.frame[form]! },
    };
    return [decision];
  });
}
