/**
 * The import of files, which goes on whatever the page shows: one at a time, with its progress in the header, and its result
 * on the page of its collection.
 */
import { useEffect, useRef, useState } from "preact/hooks";
import { Name, useWording } from "../components/basics";
import type { Wording } from "../language/catalog";
import type { Address } from "./address";
import type { NamedFile } from "./document-files";
import { importFiles, type ImportCounts, type ImportProgress, type ImportResult } from "./import-lines";
import { SectionLink } from "./links";
import { ServiceProblem, type Service } from "./service";

/** An import that runs, or the one that ended last. */
export interface ImportRun {
  /** Name of the collection. */
  name: string;
  progress: ImportProgress;
  /** Null until the end. */
  result: ImportResult | null;
}

export interface Imports {
  run: ImportRun | null;
  /** Starts an import, unless one runs. */
  start: (name: string, files: readonly NamedFile[]) => void;
  /** Ends the import after the request that is on its way. */
  stop: () => void;
  /** Forgets the import that has ended. */
  forget: () => void;
}

const pause = (seconds: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, 1000 * seconds));

const nothingYet: ImportProgress = { kept: 0, duplicates: 0, late: 0, rejected: 0, totalBytes: 0, readBytes: 0 };

/** Holds the tab open while an import runs: the browser asks before it closes or reloads the page. */
function useOpenTab(isNeeded: boolean): void {
  useEffect(() => {
    if (!isNeeded) return;
    const ask = (event: BeforeUnloadEvent) => event.preventDefault();
    addEventListener("beforeunload", ask);
    return () => removeEventListener("beforeunload", ask);
  }, [isNeeded]);
}

/** Returns the imports of the page. `onKeyMissing` is called if the service wants another key. */
export function useImports(service: Service, onKeyMissing: (problem: unknown) => void): Imports {
  const [run, setRun] = useState<ImportRun | null>(null);
  /** `true` from the start of an import to its end. The state of the page follows later, so it cannot hold off a second one. */
  const isRunning = useRef(false);
  const isWanted = useRef(true);
  useOpenTab(run !== null && run.result === null);
  const start = (name: string, files: readonly NamedFile[]) => {
    if (files.length === 0 || isRunning.current) return;
    isRunning.current = true;
    isWanted.current = true;
    setRun({ name, progress: nothingYet, result: null });
    const doors = { insertLines: (lines: readonly string[]) => service.insertLines(name, lines), extract: service.extractText, pause };
    const show = (progress: ImportProgress) => setRun({ name, progress, result: null });
    void importFiles(files, doors, show, () => isWanted.current).then((result) => {
      isRunning.current = false;
      setRun((known) => ({ name, progress: known?.progress ?? nothingYet, result }));
      if (result.problem instanceof ServiceProblem && result.problem.status === 401) onKeyMissing(result.problem);
    });
  };
  return {
    run,
    start,
    stop: () => (isWanted.current = false),
    forget: () => {
      if (!isRunning.current) setRun(null);
    },
  };
}

/** Says how far an import is. */
export const sayProgress = (say: Wording, { readBytes, totalBytes, kept, duplicates, late }: ImportProgress): string =>
  say.text("import.progress", { done: say.bytes(readBytes), total: say.bytes(totalBytes), n: kept + duplicates + late });

/** Says what became of the documents. */
export const sayCounts = (say: Wording, { kept, duplicates }: ImportCounts): string => say.text("import.counts", { kept, duplicates });

/** A line about the import, with the way back to it, on every page but its own. */
export function ImportNotice({ imports, address }: { imports: Imports; address: Address }) {
  const say = useWording();
  const { run, stop, forget } = imports;
  if (!run || (address.section === "collections" && address.collection === run.name)) return null;
  const { name, progress, result } = run;
  return (
    <p class="note import-notice" role="status">
      <SectionLink section="collections" collection={name}>{say.text(result ? "import.endedIn" : "import.runsIn")} <Name text={name} /></SectionLink>
      <span>
        {result?.isStopped && <strong>{say.text("import.stopped")} </strong>}
        {result ? sayCounts(say, result) : sayProgress(say, progress)}
      </span>
      {result ? (
        <button type="button" class="fold-button" onClick={forget}>{say.text("console.dismiss")}</button>
      ) : (
        <button type="button" class="fold-button" onClick={stop}>{say.text("import.stop")}</button>
      )}
    </p>
  );
}
