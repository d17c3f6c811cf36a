/** Answers of the engine for what a page shows now. */
import { useEffect, useRef, useState } from "preact/hooks";
import { useAnswer } from "../console/requests";
import { EngineRefusal } from "./engine";

export interface EngineAnswer<T> {
  /** The answer; that of earlier inputs until a new one arrives, so that what is shown does not vanish meanwhile. */
  answer: T | undefined;
  /** Why the engine refuses the inputs, a sentence of the engine; null if it does not. */
  refusal: string | null;
}

/** Asks the engine whenever an input changes. A refusal is about the inputs; every other failure goes to `onProblem`. */
export function useEngineAnswer<T>(inputs: readonly unknown[], ask: (() => Promise<T>) | null, onProblem: (problem: unknown) => void): EngineAnswer<T> {
  const latest = useRef<T | undefined>(undefined);
  const orRefusal = (cause: unknown): EngineRefusal => {
    if (cause instanceof EngineRefusal) return cause;
    throw cause;
  };
  const told = useAnswer<T | EngineRefusal>(inputs, ask && (() => ask().catch(orRefusal)), onProblem);
  const isRefused = told instanceof EngineRefusal;
  if (told !== undefined && !isRefused) latest.current = told;
  return { answer: latest.current, refusal: isRefused ? told.message : null };
}

/** Milliseconds without a change after which a text is taken as typed. */
const settlingMilliseconds = 250;

/** Returns a value once it has not changed for a moment, so that the engine does not answer every key. */
export function useSettled<T>(value: T): T {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), settlingMilliseconds);
    return () => clearTimeout(timer);
  }, [value]);
  return settled;
}
