/** Files that are dropped or chosen, and imported into a collection: progress, what became of them, and rejected lines. */
import { useState } from "preact/hooks";
import { Card, Name, Phrase, useWording } from "../components/basics";
import { saveFile } from "../components/save-file";
import { acceptedFiles, findDroppedFiles, nameFiles, type NamedFile } from "./document-files";
import { longestLineBytes, writeRejected, type ImportResult, type RejectedLine } from "./import-lines";
import { sayCounts, sayProgress, type Imports } from "./imports";
import { SectionLink } from "./links";
import { ProblemText } from "./problem-text";
import type { OnProblem } from "./requests";

/** Rejected lines that are shown; the file has all. */
const shownLines = 5;

export function ImportFiles({ imports, name, onProblem }: { imports: Imports; name: string; onProblem: OnProblem }) {
  const say = useWording();
  const [isOver, setOver] = useState(false);
  const { run } = imports;
  const isRunning = run !== null && run.result === null;
  const own = run?.name === name ? run : null;
  const start = (files: readonly NamedFile[]) => imports.start(name, files);
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
          if (event.dataTransfer && !isRunning) findDroppedFiles(event.dataTransfer).then(start, onProblem);
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
            disabled={isRunning}
            onChange={(event) => {
              start(nameFiles(event.currentTarget.files ?? []));
              event.currentTarget.value = "";
            }}
          />
        </label>
        {own && isRunning && (
          <div class="line">
            <progress max={own.progress.totalBytes || 1} value={own.progress.readBytes} aria-label={say.text("import.title")} />
            <span class="muted" role="status">{sayProgress(say, own.progress)}</span>
            <button type="button" class="button" onClick={imports.stop}>{say.text("import.stop")}</button>
          </div>
        )}
        {isRunning && !own && <p class="muted">{say.text("import.oneAtATime", { name: run.name })}</p>}
      </div>
      {own?.result && <ImportOutcome result={own.result} name={name} />}
    </Card>
  );
}

function ImportOutcome({ result, name }: { result: ImportResult; name: string }) {
  const say = useWording();
  const { duplicates, late, rejected, rejectedLines, isStopped, problem } = result;
  return (
    <div class="stack">
      <p role="status">
        {isStopped && <strong>{say.text("import.stopped")} </strong>}
        {sayCounts(say, result)}
        {late > 0 && ` ${say.text("import.late", { n: late })}`}
        {duplicates > 0 && <> <SectionLink section="clusters" collection={name}>{say.text("import.seeClusters")}</SectionLink></>}
      </p>
      {problem !== null && <p class="note" role="alert"><ProblemText problem={problem} /></p>}
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

/** Says where a rejected line stands and why it is none: by the kind of the reason, and in the words of the service. */
function RejectedNote({ line: { file, line, code, reason } }: { line: RejectedLine }) {
  const say = useWording();
  const kind = say.known(`rejected.${code}`, "");
  const words = reason && <Phrase text={reason} />;
  const [opening, closing] = say.brackets;
  return (
    <>
      <Name text={line ? `${file}:${line}` : file} />{say.colon}
      {!reason ? say.known(`drop.bad.${code}`, code, { limit: say.bytes(longestLineBytes) }) : kind ? <>{kind}{opening}{words}{closing}</> : words}
    </>
  );
}
