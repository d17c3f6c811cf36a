/** Files that are dropped or chosen, and imported into a collection: progress, what became of them, and rejected lines. */
import { useRef, useState } from "preact/hooks";
import { Card, Name, useWording } from "../components/basics";
import { saveFile } from "../components/save-file";
import { acceptedFiles, findDroppedFiles, nameFiles, type NamedFile } from "./document-files";
import { importFiles, writeRejected, type ImportProgress, type ImportResult, type RejectedLine } from "./import-lines";
import type { ToolProps } from "./collection-choice";
import { SectionLink } from "./links";
import { useChanges } from "./requests";

/** Rejected lines that are shown; the file has all. */
const shownLines = 5;

const pause = (seconds: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, 1000 * seconds));

export function ImportFiles({ service, onProblem, name }: Pick<ToolProps, "service" | "onProblem"> & { name: string }) {
  const say = useWording();
  const [isOver, setOver] = useState(false);
  const [progress, setProgress] = useState<ImportProgress | null>(null);
  const [result, setResult] = useState<ImportResult | null>(null);
  const isWanted = useRef(true);
  const { isWaiting, send } = useChanges(onProblem);
  const run = (files: readonly NamedFile[]) => {
    if (files.length === 0) return;
    isWanted.current = true;
    setResult(null);
    setProgress(null);
    const doors = { insertLines: (lines: readonly string[]) => service.insertLines(name, lines), extract: service.extractText, pause };
    const end = (ended: ImportResult) => {
      setProgress(null);
      setResult(ended);
      if (ended.problem !== null) onProblem(ended.problem);
    };
    void send(() => importFiles(files, doors, setProgress, () => isWanted.current), end);
  };
  return (
    <Card title={say.text("import.title")}>
      <div
        class={isOver ? "drop over" : "drop"}
        onDragOver={(event) => {
          event.preventDefault();
          setOver(true);
        }}
        onDragLeave={() => setOver(false)}
        onDrop={(event) => {
          event.preventDefault();
          setOver(false);
          if (event.dataTransfer && !isWaiting) findDroppedFiles(event.dataTransfer).then(run, onProblem);
        }}
      >
        <p class="muted">{say.text("import.hint")}</p>
        <label class="button file">
          {say.text("drop.choose")}
          <input
            class="hidden"
            type="file"
            multiple
            accept={`${acceptedFiles},.gz`}
            disabled={isWaiting}
            onChange={(event) => {
              run(nameFiles(event.currentTarget.files ?? []));
              event.currentTarget.value = "";
            }}
          />
        </label>
        {isWaiting && progress && (
          <div class="line">
            <progress max={progress.totalBytes || 1} value={progress.readBytes} aria-label={say.text("import.title")} />
            <span class="muted" role="status">
              {say.text("import.progress", { done: say.bytes(progress.readBytes), total: say.bytes(progress.totalBytes), n: progress.kept + progress.duplicates + progress.late })}
            </span>
            <button type="button" class="button" onClick={() => (isWanted.current = false)}>{say.text("import.stop")}</button>
          </div>
        )}
      </div>
      {result && <ImportOutcome result={result} name={name} />}
    </Card>
  );
}

function ImportOutcome({ result, name }: { result: ImportResult; name: string }) {
  const say = useWording();
  const { kept, duplicates, late, rejected, rejectedLines, isStopped } = result;
  return (
    <div class="stack">
      <p role="status">
        {isStopped && <strong>{say.text("import.stopped")} </strong>}
        {say.text("import.counts", { kept, duplicates })}
        {late > 0 && ` ${say.text("import.late", { n: late })}`}
        {duplicates > 0 && <> <SectionLink section="clusters" collection={name}>{say.text("import.seeClusters")}</SectionLink></>}
      </p>
      {rejected > 0 && (
        <>
          <div class="line">
            <strong>{say.text("import.rejected", { n: rejected })}</strong>
            <button type="button" class="button" onClick={() => saveFile("rejected.jsonl", writeRejected(rejectedLines))}>{say.text("import.saveRejected")}</button>
          </div>
          <ul class="names">
            {rejectedLines.slice(0, shownLines).map((it) => <li key={`${it.file}:${it.line}`}><RejectedNote line={it} /></li>)}
            {rejected > shownLines && <li class="muted">{say.text("suspicious.more", { n: rejected - shownLines })}</li>}
          </ul>
        </>
      )}
    </div>
  );
}

/** Says where a rejected line stands and why it is none. The reasons of the service are English. */
function RejectedNote({ line: { file, line, code, reason } }: { line: RejectedLine }) {
  const say = useWording();
  return (
    <>
      <Name text={line ? `${file}:${line}` : file} />: {reason ? <span lang="en">{reason}</span> : say.known(`drop.bad.${code}`, code)}
    </>
  );
}
