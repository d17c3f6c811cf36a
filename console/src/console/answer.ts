/** Answers of the service that belong to what a page shows now. */
import { useEffect, useRef, useState } from "preact/hooks";

/**
 * Returns what the service answers for these inputs; undefined until then, and without a question.
 *
 * An answer or a problem of earlier inputs that arrives late is dropped. The inputs are compared one by one.
 */
export function useAnswer<T>(inputs: readonly unknown[], ask: (() => Promise<T>) | null, onProblem: (problem: unknown) => void): T | undefined {
  const [answered, setAnswered] = useState<{ inputs: readonly unknown[]; answer: T } | null>(null);
  useEffect(() => {
    let isCurrent = true;
    ask?.().then(
      (answer) => isCurrent && setAnswered({ inputs, answer }),
      (problem: unknown) => isCurrent && onProblem(problem),
    );
    return () => {
      isCurrent = false;
    };
  }, inputs);
  return answered?.inputs.every((it, at) => it === inputs[at]) ? answered.answer : undefined;
}

/** Returns a function that wraps what takes an answer, so that one that arrives after the subject has changed is dropped. */
export function useWhileCurrent(subject: unknown) {
  const latest = useRef(subject);
  latest.current = subject;
  return <T,>(take: (answer: T) => void) =>
    (answer: T): void => {
      if (latest.current === subject) take(answer);
    };
}
