/** Files of a user, and the passages that they share. The service keeps none of them. */
import { useState } from "preact/hooks";
import { Name, useWording } from "../components/basics";
import { FileReason } from "../components/file-reason";
import type { NameTable } from "../passages/name-table";
import { PassagesView, readPassages, type PassageData } from "../passages/page";
import { readData } from "../passages/report-copy";
import { catalogs, type MessageKey } from "../language/catalog";
import type { ToolProps } from "./collection-choice";
import { acceptedFiles, findDroppedFiles, nameFiles, readFiles, type BadFile, type ExtractText, type NamedFile, type ReadFiles } from "./document-files";
import { useRequests } from "./requests";
import type { NamedText, PassagesRequest } from "./service";

/** Documents that were dropped, files that could not be read, and the number of all files. */
interface Dropped extends ReadFiles {
  files: number;
}

const none: Dropped = { documents: [], bad: [], guessed: [], files: 0 };

/** Shortest passage in words, unless another one is chosen. */
const usualWords = 12;

/** The report as it was answered, and the data in it. */
interface FoundReport {
  page: string;
  data: PassageData;
}

/** Why a file is not read, as a sentence in English. Reports have it so, and show it in their language. */
const explainBadFile = ({ reason, message }: BadFile): string => message ?? (catalogs.en[`drop.bad.${reason}` as MessageKey] as string);

/** Returns the encodings that were guessed, each with its files. */
function countEncodings(read: readonly ReadFiles[]): PassageData["summary"]["guessed_encodings"] {
  const guessed = read.flatMap((it) => it.guessed);
  const encodings = [...new Set(guessed.map((it) => it.encoding))];
  return encodings.map((encoding) => {
    const names = guessed.filter((it) => it.encoding === encoding).map((it) => it.name);
    return { encoding, files: names.length, first: names[0]!, names };
  });
}

/** Adds to a summary what only this page knows: the files that it could not read, and encodings that it guessed. */
export function addUnread(summary: PassageData["summary"], read: readonly Dropped[]): PassageData["summary"] {
  const bad = read.flatMap((it) => it.bad);
  const unreadable = bad.filter((it) => it.line === 0).map((it) => ({ file: it.name, reason: explainBadFile(it) }));
  return {
    ...summary,
    files: read.reduce((sum, it) => sum + it.files, 0),
    rejected: summary.rejected + bad.length,
    unreadable_files: unreadable.length,
    skipped_files: 0,
    unreadable,
    guessed_encodings: countEncodings(read),
  };
}

/** Returns a report with the data that it has in it, and what is known of the files that it was made of. */
function readReport(page: string, read: readonly Dropped[]): FoundReport | null {
  const kind = readData(page);
  const data = kind && readPassages(kind);
  return data && { page, data: { ...data, summary: addUnread(data.summary, read) } };
}

export function PassagesTool({ service, onProblem }: ToolProps) {
  const say = useWording();
  const [documents, setDocuments] = useState<Dropped>(none);
  const [sources, setSources] = useState<Dropped>(none);
  const [base, setBase] = useState<Dropped>(none);
  const [maxDocuments, setMaxDocuments] = useState<number | null>(null);
  const [againstSources, setAgainstSources] = useState(false);
  const [words, setWords] = useState(usualWords);
  const [findsReworded, setFindsReworded] = useState(false);
  /** Lists of files that are being read. */
  const [reading, setReading] = useState(0);
  const { isWaiting: isRunning, send } = useRequests(service, onProblem);
  const [report, setReport] = useState<FoundReport | null>(null);
  /** Names and groups stay while the same documents are searched again. */
  const [table, setTable] = useState<NameTable | null>(null);
  const count = documents.documents.length;
  const isReady = againstSources ? count > 0 && sources.documents.length > 0 : count > 1;
  const find = (given: readonly NamedText[] = base.documents) => {
    const request: PassagesRequest = { documents: documents.documents, min_length: words, reworded: findsReworded, language: say.language };
    if (againstSources) request.against = sources.documents;
    if (given.length > 0) request.base = given.map((it) => it.text);
    if (maxDocuments !== null) request.max_documents = maxDocuments;
    setReport(null);
    void send(() => service.reportPassages(request), (page) => setReport(readReport(page, againstSources ? [documents, sources, base] : [documents, base])));
  };
  /** Takes a text as one that all were given, and searches again. */
  const leaveOut = (text: string) => {
    const given = [...base.documents, { id: `${[...text].slice(0, 40).join("")} …`, text }];
    setBase({ ...base, documents: given });
    find(given);
  };
  const drop = { onReading: (change: number) => setReading((known) => known + change), onProblem, extract: service.extractText };
  return (
    <>
      <section class="card stack">
        <div class="grid">
          <FileDrop label={say.text("drop.documents")} dropped={documents} onChange={setDocuments} {...drop} />
          {againstSources && <FileDrop label={say.text("drop.sources")} dropped={sources} onChange={setSources} {...drop} />}
          <FileDrop label={say.text("drop.base")} hint="drop.baseHint" dropped={base} onChange={setBase} {...drop} />
        </div>
        <div class="line" role="radiogroup" aria-label={say.text("drop.compare")}>
          <span class="muted">{say.text("drop.compare")}</span>
          {[false, true].map((it) => (
            <label class="choice" key={String(it)}>
              <input type="radio" name="against" checked={againstSources === it} onChange={() => setAgainstSources(it)} />
              {say.text(it ? "drop.againstSources" : "drop.eachOther")}
            </label>
          ))}
        </div>
        <div class="line">
          <label class="field">
            {say.text("drop.words")}
            <input type="number" min="2" max="1000" value={words} onChange={(event) => setWords(Math.max(2, Math.round(Number(event.currentTarget.value)) || usualWords))} />
          </label>
          <label class="field">
            {say.text("drop.maxDocuments")}
            <input type="number" min="1" max="1000000" placeholder={say.text("drop.usual")} value={maxDocuments ?? ""} onChange={(event) => setMaxDocuments(Math.floor(Number(event.currentTarget.value)) || null)} />
          </label>
          <label class="choice">
            <input type="checkbox" checked={findsReworded} onChange={(event) => setFindsReworded(event.currentTarget.checked)} />
            {say.text("drop.reworded")}
          </label>
        </div>
        <div class="line">
          <button type="button" class="button strong" disabled={!isReady || isRunning || reading > 0} onClick={() => find()}>{say.text("drop.find")}</button>
          <span class="muted" role="status">{say.text(isRunning || reading > 0 ? "console.reading" : isReady ? "drop.private" : againstSources ? "drop.wantsBoth" : "drop.wantsTwo")}</span>
        </div>
      </section>
      {report && <PassagesView data={report.data} source={{ page: report.page, isNew: true }} table={table} onTable={setTable} onLeaveOut={leaveOut} />}
    </>
  );
}

/** Returns what was dropped with files that were read after it. */
const addRead = (known: Dropped, read: ReadFiles, files: number): Dropped => ({
  documents: [...known.documents, ...read.documents],
  bad: [...known.bad, ...read.bad],
  guessed: [...known.guessed, ...read.guessed],
  files: known.files + files,
});

interface FileDropProps {
  label: string;
  hint?: MessageKey;
  dropped: Dropped;
  onChange: (change: (known: Dropped) => Dropped) => void;
  /** Called with 1 when files begin to be read, and with −1 at their end. */
  onReading: (change: number) => void;
  onProblem: (problem: unknown) => void;
  extract: ExtractText;
}

/** A place to drop files on, or to choose them. Files are added to those before. */
function FileDrop({ label, hint = "drop.hint", dropped, onChange, onReading, onProblem, extract }: FileDropProps) {
  const say = useWording();
  const [isOver, setOver] = useState(false);
  const [progress, setProgress] = useState<[done: number, total: number] | null>(null);
  const add = (files: readonly NamedFile[]) => {
    if (!files.length || progress) return;
    const total = files.length;
    setProgress([0, total]);
    onReading(1);
    readFiles(files, extract, (done) => setProgress([done, total]))
      .then((read) => onChange((known) => addRead(known, read, total)), onProblem)
      .finally(() => {
        setProgress(null);
        onReading(-1);
      });
  };
  const shown = dropped.documents.slice(0, 8);
  return (
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
        if (event.dataTransfer && !progress) findDroppedFiles(event.dataTransfer).then(add, onProblem);
      }}
    >
      <h2>{label}</h2>
      <p class="muted">{say.text(hint)}</p>
      <label class="button file">
        {say.text("drop.choose")}
        <input
          class="hidden"
          type="file"
          multiple
          accept={acceptedFiles}
          disabled={progress !== null}
          onChange={(event) => {
            add(nameFiles(event.currentTarget.files ?? []));
            event.currentTarget.value = "";
          }}
        />
      </label>
      {progress && <p class="muted" role="status">{say.text("drop.progress", { done: progress[0], total: progress[1] })}</p>}
      {dropped.documents.length > 0 && (
        <>
          <p role="status">
            {say.text("cluster.documents", { n: dropped.documents.length })}{" "}
            <button type="button" class="fold-button" disabled={progress !== null} onClick={() => onChange(() => none)}>{say.text("drop.clear")}</button>
          </p>
          <ul class="names">
            {shown.map((it) => <li key={it.id}><Name text={it.id} /></li>)}
            {dropped.documents.length > shown.length && <li class="muted">{say.text("suspicious.more", { n: dropped.documents.length - shown.length })}</li>}
          </ul>
        </>
      )}
      {dropped.bad.map((it) => (
        <p class="note" role="alert" key={it.name + it.line}><Name text={it.line ? `${it.name}:${it.line}` : it.name} />{say.colon}<FileReason text={explainBadFile(it)} /></p>
      ))}
    </div>
  );
}
