/** Files of the user through the command: duplicates among rows, or passages that documents share. */
import { useEffect, useRef, useState } from "preact/hooks";
import { Stat, useWording } from "../components/basics";
import { findDroppedFiles, nameFiles, nameFolderFiles, type NamedFile } from "../console/document-files";
import type { ToolProps } from "./compare";
import { EngineRefusal, type EndedRun, type StartedRun } from "./engine";
import {
  acceptedFiles, encodings, findEnding, findMixedFormats, jobs, maxBytes, pageArguments, placeFiles, splitOutputs, splitUnread, suggestJob, typedArguments, usualSettings, writeCommandLine,
  type FolderSettings, type Job, type UnreadFile,
} from "./folder-run";
import { sayWeb, type WebKey } from "./messages";
import { RecipeChoice } from "./recipe-choice";
import { findSuggestedEncoding } from "./refusals";
import type { WrittenFile } from "./worker";

/** Settings that belong to the files of a run, as they are before any is given. */
const { text, id, encoding, documentPerFile } = usualSettings;
const ownSettings = { text, id, encoding, documentPerFile };

/** Files that are listed by name. */
const shownFiles = 8;

const sumBytes = (files: readonly NamedFile[]): number => files.reduce((total, { file }) => total + file.size, 0);

export function FolderSection({ engine, onProblem, attempt }: ToolProps) {
  const say = useWording();
  const [files, setFiles] = useState<readonly NamedFile[]>([]);
  /** Files with text that all were given, which a search for passages leaves out. */
  const [base, setBase] = useState<readonly NamedFile[]>([]);
  /** Possible sources. With them, documents are not compared with each other. */
  const [against, setAgainst] = useState<readonly NamedFile[]>([]);
  /** Files that were given and are left out. */
  const [unread, setUnread] = useState<readonly UnreadFile[]>([]);
  const [settings, setSettings] = useState<FolderSettings>(usualSettings);
  const [status, setStatus] = useState("");
  const [ended, setEnded] = useState<{ run: EndedRun; job: Job } | null>(null);
  const [started, setStarted] = useState<StartedRun | null>(null);
  /** The encoding that the last run was refused for; null if it was not. */
  const [suggested, setSuggested] = useState<string | null>(null);
  const latest = useRef<StartedRun | null>(null);
  const stop = () => {
    latest.current?.cancel();
    latest.current = null;
    setStarted(null);
  };
  // A change of the section ends the run, and so does the dictionary that it waits for.
  useEffect(() => stop, [engine, attempt]);
  const all = settings.job === "passages" ? [...files, ...base, ...against] : files;
  const given = placeFiles(all);
  const sourcesFrom = files.length + base.length;
  const typeArguments = (chosen: FolderSettings) => typedArguments(given.slice(0, files.length), chosen, given.slice(files.length, sourcesFrom), given.slice(sourcesFrom));
  const typed = typeArguments(settings);
  const bytes = sumBytes(all);
  const isTooLarge = bytes > maxBytes[settings.job];
  const mixed = settings.job === "dedup" && !settings.documentPerFile ? findMixedFormats(files) : [];
  const hasTextFiles = files.some(({ name }) => ["txt", "text"].includes(findEnding(name)));
  const run = (chosen: FolderSettings) => {
    onProblem(null);
    setEnded(null);
    setStatus("");
    setSuggested(null);
    setSettings(chosen);
    const { job } = chosen;
    const next = engine.startRun(pageArguments(typeArguments(chosen), say.language), given, chosen.recipe, setStatus);
    latest.current = next;
    setStarted(next);
    const isCurrent = () => latest.current === next;
    const refuse = (problem: unknown) => {
      onProblem(problem);
      if (problem instanceof EngineRefusal) setSuggested(findSuggestedEncoding(problem.message));
    };
    next.ended.then((end) => isCurrent() && setEnded({ run: end, job }), (problem: unknown) => isCurrent() && refuse(problem)).finally(() => isCurrent() && stop());
  };
  /** Returns the files that are read, and keeps the names of the others. */
  const takeReadable = (given: readonly NamedFile[]): readonly NamedFile[] => {
    const { readable, unread: others } = splitUnread(given);
    if (others.length > 0) setUnread([...unread, ...others]);
    return readable;
  };
  const add = (added: readonly NamedFile[]) => {
    // A browser lists the files of a folder in any order.
    const sorted = [...added].sort((a, b) => (a.name < b.name ? -1 : 1));
    const all = [...files, ...takeReadable(sorted)];
    const job = suggestJob(all);
    setFiles(all);
    setEnded(null);
    setSuggested(null);
    // Fields of rows are not those of other files.
    setSettings({ ...settings, ...(job !== settings.job && ownSettings), job });
  };
  const remove = (file: NamedFile) => {
    const rest = files.filter((it) => it !== file);
    setFiles(rest);
    setSuggested(null);
    if (rest.length === 0) setSettings({ ...settings, ...ownSettings });
  };
  const clear = () => {
    setFiles([]);
    setUnread([]);
    setEnded(null);
    setSuggested(null);
    setSettings({ ...settings, ...ownSettings });
  };
  const number = (value: string, usual: number) => Number(value) || usual;
  return (
    <>
      <section class="card stack">
        <FileDrop files={files} onAdd={add} onRemove={remove} onClear={clear} onProblem={onProblem} />
        {unread.length > 0 && <UnreadNote files={unread} />}
        <div class="line" role="radiogroup" aria-label={sayWeb(say, "web.job")}>
          {jobs.map((job) => (
            <label class="choice" key={job}>
              <input type="radio" name="job" value={job} checked={settings.job === job} onChange={() => setSettings({ ...settings, job })} />
              {sayWeb(say, `web.job.${job}` as WebKey)}
            </label>
          ))}
        </div>
        <div class="line">
          <RecipeChoice engine={engine} recipe={settings.recipe} onChange={(recipe) => setSettings({ ...settings, recipe })} />
          {settings.job === "dedup" ? (
            <label class="field">
              {sayWeb(say, "web.threshold")}
              <input type="number" min="0.01" max="1" step="0.01" value={settings.threshold} onInput={(event) => setSettings({ ...settings, threshold: number(event.currentTarget.value, 0.75) })} />
            </label>
          ) : (
            <>
              <label class="field">
                {say.text("drop.words")}
                <input type="number" min="2" max="1000" value={settings.words} onInput={(event) => setSettings({ ...settings, words: number(event.currentTarget.value, 12) })} />
              </label>
              <label class="choice">
                <input type="checkbox" checked={settings.reworded} onChange={(event) => setSettings({ ...settings, reworded: event.currentTarget.checked })} />
                {sayWeb(say, "web.reworded")}
              </label>
              <ExtraFiles label={say.text("drop.addBase")} files={base} onChange={(chosen) => setBase(takeReadable(chosen))} />
              <ExtraFiles label={sayWeb(say, "web.addSources")} files={against} onChange={(chosen) => setAgainst(takeReadable(chosen))} />
              {against.length > 0 && <p class="muted">{sayWeb(say, "web.sourcesOnly")}</p>}
            </>
          )}
          <label class="field">
            {sayWeb(say, "web.textField")}
            <input type="text" size={10} placeholder="text" value={settings.text} onInput={(event) => setSettings({ ...settings, text: event.currentTarget.value })} />
          </label>
          <label class="field">
            {sayWeb(say, "web.idField")}
            <input type="text" size={10} placeholder="id" value={settings.id} onInput={(event) => setSettings({ ...settings, id: event.currentTarget.value })} />
          </label>
          <label class="field">
            {sayWeb(say, "web.encoding")}
            <select value={settings.encoding} onChange={(event) => setSettings({ ...settings, encoding: event.currentTarget.value })}>
              <option value="">{sayWeb(say, "web.encoding.guessed")}</option>
              {[...new Set([...encodings, settings.encoding])].filter((name) => name !== "").map((name) => <option key={name} value={name}>{name}</option>)}
            </select>
          </label>
          {settings.job === "dedup" && (hasTextFiles || settings.documentPerFile) && (
            <label class="choice">
              <input type="checkbox" checked={settings.documentPerFile} onChange={(event) => setSettings({ ...settings, documentPerFile: event.currentTarget.checked })} />
              {sayWeb(say, "web.documentPerFile")}
            </label>
          )}
        </div>
        {settings.job === "dedup" && <p class="muted">{sayWeb(say, settings.documentPerFile ? "web.filesOnly" : "web.rowsOnly")}</p>}
        {mixed.length > 0 && <p class="note" role="alert">{sayWeb(say, "web.mixed", { endings: mixed.map((ending) => `.${ending}`).join(say.language === "zh" ? "、" : ", ") })}</p>}
        {suggested !== null && (
          <p class="note">
            {sayWeb(say, "web.otherEncoding")}{" "}
            <button type="button" class="button" onClick={() => run({ ...settings, encoding: suggested })}>{sayWeb(say, "web.readAs", { encoding: suggested })}</button>
          </p>
        )}
        <div class="line">
          {started ? (
            <button type="button" class="button strong" onClick={stop}>{sayWeb(say, "web.cancel")}</button>
          ) : (
            <button type="button" class="button strong" disabled={files.length === 0 || isTooLarge || mixed.length > 0} onClick={() => run(settings)}>{sayWeb(say, "web.run")}</button>
          )}
          <span class="muted" role="status">{started && (status || sayWeb(say, "web.begins"))}</span>
        </div>
        {isTooLarge ? (
          <p class="note" role="alert">{sayWeb(say, "web.tooLarge", { size: say.bytes(bytes), limit: say.bytes(maxBytes[settings.job]) })}</p>
        ) : (
          <p class="muted">{sayWeb(say, "web.bound", { limit: say.bytes(maxBytes[settings.job]) })}</p>
        )}
        {files.length > 0 && (
          <p class="muted">
            {sayWeb(say, "web.same")} <code>{writeCommandLine(typed)}</code>
          </p>
        )}
      </section>
      {ended && <RunResult ended={ended.run} job={ended.job} />}
    </>
  );
}

/** Says which files are not read, and why. */
function UnreadNote({ files }: { files: readonly UnreadFile[] }) {
  const say = useWording();
  const reasons = (["pdf", "export", "kind"] as const).filter((reason) => files.some((file) => file.reason === reason));
  return (
    <div class="note" role="alert">
      {reasons.map((reason) => {
        const names = files.filter((file) => file.reason === reason).map(({ name }) => name);
        return <div key={reason}>{sayWeb(say, `web.unread.${reason}`, { names: names.join(say.language === "zh" ? "、" : ", ") })}</div>;
      })}
    </div>
  );
}

interface ExtraFilesProps {
  label: string;
  files: readonly NamedFile[];
  onChange: (files: readonly NamedFile[]) => void;
}

/** A choice of files besides the documents, and their names. */
function ExtraFiles({ label, files, onChange }: ExtraFilesProps) {
  const say = useWording();
  return (
    <>
      <label class="button file">
        {label}
        <input
          class="hidden"
          type="file"
          multiple
          accept={acceptedFiles}
          onChange={(event) => {
            onChange([...files, ...nameFiles(event.currentTarget.files ?? [])]);
            event.currentTarget.value = "";
          }}
        />
      </label>
      {files.length > 0 && (
        <span>
          {files.map(({ name }) => name).join(", ")}{" "}
          <button type="button" class="fold-button" onClick={() => onChange([])}>{say.text("drop.clear")}</button>
        </span>
      )}
    </>
  );
}

interface FileDropProps {
  files: readonly NamedFile[];
  onAdd: (files: readonly NamedFile[]) => void;
  onRemove: (file: NamedFile) => void;
  onClear: () => void;
  onProblem: (problem: unknown) => void;
}

function FileDrop({ files, onAdd, onRemove, onClear, onProblem }: FileDropProps) {
  const say = useWording();
  const [isOver, setOver] = useState(false);
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
        if (event.dataTransfer) findDroppedFiles(event.dataTransfer).then(onAdd, onProblem);
      }}
    >
      <p class="muted">{sayWeb(say, "web.dropHint")}</p>
      <div class="line">
        <label class="button file">
          {say.text("drop.choose")}
          <input
            class="hidden"
            type="file"
            multiple
            accept={acceptedFiles}
            onChange={(event) => {
              onAdd(nameFiles(event.currentTarget.files ?? []));
              event.currentTarget.value = "";
            }}
          />
        </label>
        <label class="button file">
          {sayWeb(say, "web.chooseFolder")}
          <input
            class="hidden"
            type="file"
            {...{ webkitdirectory: true }}
            onChange={(event) => {
              onAdd(nameFolderFiles(event.currentTarget.files ?? []));
              event.currentTarget.value = "";
            }}
          />
        </label>
        {files.length > 0 && <button type="button" class="button" onClick={onClear}>{say.text("drop.clear")}</button>}
        {files.length > 0 && <span>{sayWeb(say, "web.files", { n: files.length, size: say.bytes(sumBytes(files)) })}</span>}
      </div>
      {files.length > 0 && <FileList files={files} onRemove={onRemove} />}
    </div>
  );
}

/** The names of files, the first of them until all are wanted, each with a button that removes it. */
function FileList({ files, onRemove }: { files: readonly NamedFile[]; onRemove: (file: NamedFile) => void }) {
  const say = useWording();
  const [isWhole, setWhole] = useState(false);
  const shown = isWhole ? files : files.slice(0, shownFiles);
  return (
    <ul class="names">
      {shown.map((named) => (
        <li key={named.name}>
          {named.name} <span class="muted">{say.bytes(named.file.size)}</span>{" "}
          <button type="button" class="fold-button" aria-label={sayWeb(say, "web.removeFile", { name: named.name })} title={sayWeb(say, "web.removeFile", { name: named.name })} onClick={() => onRemove(named)}>×</button>
        </li>
      ))}
      {files.length > shown.length && (
        <li><button type="button" class="fold-button" onClick={() => setWhole(true)}>{sayWeb(say, "web.moreFiles", { n: files.length - shown.length })}</button></li>
      )}
    </ul>
  );
}

/** Figures of a summary, in the order in which they are shown. */
const shownFigures: Record<Job, readonly string[]> = {
  dedup: ["documents", "kept", "removed", "clusters", "rejected"],
  passages: ["documents", "passages", "pairs", "rejected"],
};

/** Documents of a search for passages are files, not rows. */
const nameFigure = (job: Job, name: string): WebKey => (job === "passages" && name === "rejected" ? "web.figure.rejectedFiles" : (`web.figure.${name}` as WebKey));

function RunResult({ ended, job }: { ended: EndedRun; job: Job }) {
  const say = useWording();
  const summary = JSON.parse(ended.output) as Record<string, unknown>;
  const { report, rejected, others } = splitOutputs(ended.files);
  const figures = shownFigures[job].filter((name) => typeof summary[name] === "number");
  return (
    <>
      <section class="card stack">
        <h2>{sayWeb(say, "web.result")}</h2>
        <div class="stats">
          {figures.map((name) => <Stat value={say.count(summary[name] as number)} label={sayWeb(say, nameFigure(job, name))} key={name} />)}
          <Stat value={say.decimal(Number(summary["seconds"]), 1)} label={sayWeb(say, "web.figure.seconds")} />
        </div>
        {job === "dedup" && Number(summary["rejected"]) > 0 && <p class="note">{sayWeb(say, "web.rowsRejected", { n: Number(summary["rejected"]) })}</p>}
        <div class="line">
          {[...others, ...(rejected ? [rejected] : []), ...(report ? [report] : [])].map((file) => <Download file={file} key={file.name} />)}
        </div>
        {ended.messages !== "" && (
          <details open={ended.code !== 0}>
            <summary>{sayWeb(say, "web.messages")}</summary>
            <pre class="given">{ended.messages}</pre>
          </details>
        )}
      </section>
      {report && <ReportFrame report={report} />}
    </>
  );
}

/** Returns the address of a file for as long as it is shown. */
function useAddress(content: Blob): string | undefined {
  const [address, setAddress] = useState<string>();
  useEffect(() => {
    const made = URL.createObjectURL(content);
    setAddress(made);
    return () => URL.revokeObjectURL(made);
  }, [content]);
  return address;
}

function Download({ file }: { file: WrittenFile }) {
  const say = useWording();
  const address = useAddress(file.content);
  return (
    <a class="button" href={address} download={file.name}>
      {sayWeb(say, "web.download", { name: file.name, size: say.bytes(file.content.size) })}
    </a>
  );
}

/** The report as the command wrote it. The policy of this page allows its script and its style by their hashes. */
function ReportFrame({ report }: { report: WrittenFile }) {
  const say = useWording();
  const [page, setPage] = useState<Blob | null>(null);
  useEffect(() => {
    setPage(report.content.slice(0, report.content.size, "text/html"));
  }, [report]);
  return page && <Frame page={page} title={sayWeb(say, "web.report")} />;
}

function Frame({ page, title }: { page: Blob; title: string }) {
  const address = useAddress(page);
  return address ? <iframe class="report" src={address} title={title} /> : null;
}
