/** The passages of a pair of texts, each a click away in both texts. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { useWording } from "../components/basics";

interface PassageListProps {
  passages: readonly { length: number; similarity: number; kind: string; unit: "words" | "characters" }[];
  /** Where each begins in the text on the left. */
  starts: readonly number[];
}

/** Shows a passage in the middle of both texts, and marks it. The left text comes last, so that it is in sight where both do not fit. */
function showPassage(number: number): void {
  document.querySelectorAll("mark.target").forEach((it) => it.classList.remove("target"));
  for (const side of ["b", "a"]) {
    const mark = document.getElementById(`${side}${number}`);
    mark?.classList.add("target");
    mark?.scrollIntoView({ block: "center" });
  }
}

/** Calls a function with 1 for the key J and with −1 for K. */
function usePassageKeys(onStep: (step: number) => void): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const isTyping = (event.target as HTMLElement).matches("input, select, textarea");
      if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === "J") onStep(1);
      if (event.key === "K") onStep(-1);
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  });
}

export function PassageList({ passages, starts }: PassageListProps) {
  const say = useWording();
  const order = useMemo(() => passages.map((_, at) => at).sort((a, b) => starts[a]! - starts[b]!), [passages.length, starts.join()]);
  const [shown, setShown] = useState(-1);
  // Keys that are pressed before the page is drawn again start from here.
  const latest = useRef(-1);
  const show = (place: number) => {
    setShown((latest.current = place));
    showPassage(order[place]! + 1);
  };
  usePassageKeys((step) => order.length > 0 && show(Math.min(order.length - 1, Math.max(0, latest.current + step))));
  if (order.length < 2) return null;
  return (
    <nav class="passage-list" aria-label={say.text("passages.list")}>
      {order.map((at, place) => {
        const { length, kind, unit } = passages[at]!;
        return (
          <button type="button" class="button" aria-pressed={place === shown} key={at} onClick={() => show(place)}>
            {at + 1} <span class="muted">{say.text(`passages.${unit}`, { n: length })} · {say.known(`passage.${kind}`, kind)}</span>
          </button>
        );
      })}
    </nav>
  );
}
