/** Requests of a page: answers that belong to what it shows now, and changes that are sent once. */
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

/** Takes a problem. It gets null where a request begins, because a problem of the request before is no longer true. */
export type OnProblem = (problem: unknown) => void;

/**
 * Returns what the service answers for these inputs; `undefined` before the answer arrives and if `ask` is null.
 *
 * An answer or a problem of earlier inputs that arrives late is dropped. The inputs are compared one by one.
 */
export function useAnswer<T>(inputs: readonly unknown[], ask: (() => Promise<T>) | null, onProblem: OnProblem): T | undefined {
  const [answered, setAnswered] = useState<{ inputs: readonly unknown[]; answer: T } | null>(null);
  useEffect(() => {
    let isCurrent = true;
    if (ask) onProblem(null);
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

/** Requests about one subject. Only the last one counts. */
export interface Requests {
  /** `true` until the last request is answered. */
  isWaiting: boolean;
  /**
   * Sends a request. `ask` gets a function that tells whether the request still counts. The next request, a change of
   * the subject and the end of the component end that; an answer or a problem after it is dropped.
   */
  send: <T>(ask: (isCurrent: () => boolean) => Promise<T>, take: (answer: T) => void) => Promise<void>;
}

/** Returns the requests about a subject. */
export function useRequests(subject: unknown, onProblem: OnProblem): Requests {
  const latest = useRef<object | null>(null);
  const [isWaiting, setWaiting] = useState(false);
  useLayoutEffect(() => {
    setWaiting(false);
    return () => {
      latest.current = null;
    };
  }, [subject]);
  const send: Requests["send"] = async (ask, take) => {
    const mine = (latest.current = {});
    const isCurrent = () => latest.current === mine;
    onProblem(null);
    setWaiting(true);
    try {
      const answer = await ask(isCurrent);
      if (isCurrent()) take(answer);
    } catch (problem) {
      if (isCurrent()) onProblem(problem);
    }
    if (isCurrent()) setWaiting(false);
  };
  return { isWaiting, send };
}

/** Changes of the service, one at a time. */
export interface Changes {
  /** `true` until the change is answered. */
  isWaiting: boolean;
  /** Sends a change, unless one is on its way. */
  send: <T>(change: () => Promise<T>, take: (answer: T) => void) => Promise<void>;
}

/** Returns the changes of a component. A problem is reported even if the component has ended. */
export function useChanges(onProblem: OnProblem): Changes {
  const isSending = useRef(false);
  const isShown = useRef(true);
  const [isWaiting, setWaiting] = useState(false);
  useEffect(() => {
    isShown.current = true;
    return () => {
      isShown.current = false;
    };
  }, []);
  const send: Changes["send"] = async (change, take) => {
    if (isSending.current) return;
    isSending.current = true;
    onProblem(null);
    setWaiting(true);
    try {
      const answer = await change();
      if (isShown.current) take(answer);
    } catch (problem) {
      onProblem(problem);
    }
    isSending.current = false;
    setWaiting(false);
  };
  return { isWaiting, send };
}
