/** The keys of a list: j and k move, / searches, and where pairs are marked, y, n and u mark. */
import { useLayoutEffect } from "preact/hooks";

export type Mark = "same" | "different";

/** Returns a copy of the marks with another mark of an entry; null removes its mark. */
export function withMark<Entry>(marks: ReadonlyMap<Entry, Mark>, entry: Entry, mark: Mark | null): ReadonlyMap<Entry, Mark> {
  const changed = new Map(marks);
  if (mark) changed.set(entry, mark);
  else changed.delete(entry);
  return changed;
}

interface ReviewKeys {
  /** Moves by a number of entries. */
  move: (step: number) => void;
  mark?: (mark: Mark | null) => void;
  search?: () => void;
}

export function useReviewKeys({ move, mark, search }: ReviewKeys): void {
  // Before the page is drawn, so that no key meets the handler of an earlier state.
  useLayoutEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const target = event.target as HTMLElement;
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (target.matches("input, select, textarea")) {
        if (event.key === "Escape") target.blur();
        return;
      }
      const actions: Record<string, (() => void) | undefined> = {
        j: () => move(1),
        k: () => move(-1),
        y: mark && (() => mark("same")),
        n: mark && (() => mark("different")),
        u: mark && (() => mark(null)),
        "/": search,
      };
      const action = actions[event.key];
      if (action) {
        event.preventDefault();
        action();
      }
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  });
}
