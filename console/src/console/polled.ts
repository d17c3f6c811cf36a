/** Figures of the service that are read again and again while a page shows them. */
import { useEffect, useState } from "preact/hooks";

/** Time from an answer to the next request. All pages have the same, so that their totals are equal. */
export const everyMilliseconds = 2000;

/**
 * Returns what the service answers for these inputs, read again two seconds after each answer; `undefined` before the first
 * one. A problem is reported, and the next reading goes on; one that succeeds ends the problem.
 */
export function usePolled<T>(inputs: readonly unknown[], ask: () => Promise<T>, onProblem: (problem: unknown) => void): T | undefined {
  const [answered, setAnswered] = useState<{ inputs: readonly unknown[]; answer: T } | null>(null);
  useEffect(() => {
    let [isActive, hasFailed, timer] = [true, false, 0];
    const read = async () => {
      try {
        const answer = await ask();
        if (!isActive) return;
        setAnswered({ inputs, answer });
        if (hasFailed) onProblem(null);
        hasFailed = false;
      } catch (problem) {
        if (!isActive) return;
        onProblem(problem);
        hasFailed = true;
      }
      timer = setTimeout(read, everyMilliseconds);
    };
    void read();
    return () => {
      isActive = false;
      clearTimeout(timer);
    };
  }, inputs);
  return answered?.inputs.every((it, at) => it === inputs[at]) ? answered.answer : undefined;
}
