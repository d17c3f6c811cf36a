/** A run of the command over files of the user: its arguments, its bounds and what it writes. */
import { quoteWord } from "../components/shell-words";
import type { NamedFile } from "../console/document-files";
import type { GivenFile, WrittenFile } from "./worker";

/** Runs of this page, each a command. */
export const jobs = ["dedup", "passages"] as const;
export type Job = (typeof jobs)[number];

/** Settings of a run. Empty fields are left to the command. */
export interface FolderSettings {
  job: Job;
  recipe: string;
  text: string;
  id: string;
  /** Encoding of the files as `--encoding` names it; empty leaves it to the command. */
  encoding: string;
  /** `true` if duplicates are sought among text files, each as one document, not among their lines. */
  documentPerFile: boolean;
  threshold: number;
  /** Shortest passage in words. */
  words: number;
  reworded: boolean;
}

export const usualSettings: FolderSettings = { job: "dedup", recipe: "default", text: "", id: "", encoding: "", documentPerFile: false, threshold: 0.75, words: 12, reworded: false };

/** Encodings that a page offers, as `--encoding` names them. */
export const encodings = ["utf-8", "gb18030", "big5", "shift_jis", "euc-kr", "windows-1252"] as const;

/** Largest total size of the files of a run in bytes. A module has at most 4 GiB of memory, whatever the machine has. */
export const maxBytes: Record<Job, number> = { dedup: 1_000_000_000, passages: 200_000_000 };

/** Endings of files that are compressed. */
const compressedEnding = /\.(gz|zst|xz|bz2)$/;
/** Endings of the formats of rows, and those under which kept rows are written. */
const rowEndings: Record<string, string> = {
  jsonl: "jsonl", ndjson: "jsonl", json: "json", csv: "csv", tsv: "tsv", tab: "tsv", parquet: "parquet", pq: "parquet",
  arrow: "arrow", feather: "arrow", ipc: "arrow", arrows: "arrows", txt: "txt", text: "txt",
};
/** Endings of documents that only a search for passages reads. */
const documentEndings = ["md", "markdown", "html", "htm", "xhtml", "docx", "docm"];

/** Endings of documents that other programs save as `.docx`. */
const exportedEndings = ["pages", "doc", "dot", "odt", "ott", "rtf", "wps", "wpd", "gdoc", "key", "ppt", "pptx", "odp"];

/** Why a page leaves a file out: it is a PDF file, it can be saved as `.docx`, or its kind is unknown. */
export type UnreadReason = "pdf" | "export" | "kind";

export interface UnreadFile extends NamedFile {
  reason: UnreadReason;
}

/** Returns why a file of this name is left out; null if it is read. */
function findUnreadReason(name: string): UnreadReason | null {
  const ending = findEnding(name);
  if (ending === "pdf") return "pdf";
  if (exportedEndings.includes(ending)) return "export";
  return ending in rowEndings || documentEndings.includes(ending) ? null : "kind";
}

/** Returns the files that a page reads, and those that it leaves out, so that none of them stops a run. */
export function splitUnread(files: readonly NamedFile[]): { readable: NamedFile[]; unread: UnreadFile[] } {
  const readable: NamedFile[] = [];
  const unread: UnreadFile[] = [];
  for (const file of files) {
    const reason = findUnreadReason(file.name);
    if (reason === null) readable.push(file);
    else unread.push({ ...file, reason });
  }
  return { readable, unread };
}

/** The endings as a file input takes them. */
export const acceptedFiles = [...Object.keys(rowEndings), ...documentEndings, "gz", "zst", "xz", "bz2"].map((ending) => `.${ending}`).join(",");

/** Returns the ending of a file without that of its compression. */
export const findEnding = (path: string): string => /\.([^./]+)$/.exec(path.toLowerCase().replace(compressedEnding, ""))?.[1] ?? "";

/** Returns the endings of files whose rows cannot be kept in one file, sorted; none if they can. Rows of JSONL and JSON can. */
export function findMixedFormats(files: readonly NamedFile[]): string[] {
  const endings = files.map(({ name }) => findEnding(name));
  const formatOf = (ending: string) => (rowEndings[ending] ?? ending).replace(/^json$/, "jsonl").replace(/^arrows$/, "arrow");
  return new Set(endings.map(formatOf)).size > 1 ? [...new Set(endings)].sort() : [];
}

/** Returns the run that files are meant for: passages of documents, duplicates among rows. */
export const suggestJob = (files: readonly NamedFile[]): Job =>
  files.some(({ name }) => documentEndings.includes(findEnding(name)) || (files.length > 1 && rowEndings[findEnding(name)] === "txt")) ? "passages" : "dedup";

/** Names that the run writes, so that no file of the user has one of them. */
const writtenNames = ["kept", "removed", "rejected", "clusters", "passages", "report"];

/** Gives files paths that neither begin with `-` nor are those of outputs. Two files of one path both stay, the second in a folder of its own. */
export function placeFiles(files: readonly NamedFile[]): GivenFile[] {
  const taken = new Set<string>();
  // A folder that no file of the user has as its name, or as a folder.
  const firstParts = new Set(files.map(({ name }) => name.split("/")[0]!));
  const unusedFolder = (wanted: string): string => (firstParts.has(wanted) ? unusedFolder(`${wanted}_`) : wanted);
  return files.map(({ name, file }) => {
    const stem = name.split(".")[0]!;
    let path = name.startsWith("-") || writtenNames.includes(stem) ? `${unusedFolder("input")}/${name}` : name;
    for (let copy = 2; taken.has(path); copy += 1) path = `${unusedFolder(String(copy))}/${name}`;
    taken.add(path);
    return { path, content: file };
  });
}

/**
 * Returns the arguments of the command, as a user would type them. `base` are files with text that all were given, `against`
 * the possible sources.
 */
export function typedArguments(files: readonly GivenFile[], settings: FolderSettings, base: readonly GivenFile[] = [], against: readonly GivenFile[] = []): string[] {
  const paths = files.map(({ path }) => path);
  const recipe = settings.recipe === "default" ? [] : ["--recipe", settings.recipe];
  const field = (option: string, value: string) => (value.trim() === "" ? [] : [option, value.trim()]);
  const reading = [...field("--text", settings.text), ...field("--id", settings.id), ...field("--encoding", settings.encoding), ...recipe];
  if (settings.job === "passages") {
    const reworded = settings.reworded ? ["--reworded"] : [];
    const given = base.flatMap(({ path }) => ["--base", path]);
    const sources = against.length > 0 ? ["--against", ...against.map(({ path }) => path)] : [];
    return ["passages", ...paths, ...sources, "-o", "passages.tsv", "--report", "report.html", "--min-length", String(settings.words), ...reworded, ...given, ...reading];
  }
  const format = rowEndings[findEnding(paths[0] ?? "")] ?? "jsonl";
  const rejected = ["parquet", "arrow", "arrows"].includes(format) ? "jsonl" : format;
  // Kept documents of a file each would be copies of the files.
  const kept = settings.documentPerFile ? ["--document-per-file"] : ["-o", `kept.${format}`];
  const outputs = [...kept, "--removed", "removed.tsv", "--rejected", `rejected.${rejected}`, "--clusters", "clusters.tsv", "--report", "report.html"];
  return ["dedup", ...paths, ...outputs, "--threshold", String(settings.threshold), ...reading];
}

/** Memory of a run. The rest of the 4 GiB of a module is for what the command does not plan, for example its own data. */
const runMemory = "3584Mi";

/** Returns the arguments of a page: those of the user, what a page wants to know, and its limits. */
export const pageArguments = (typed: readonly string[], language: string): string[] => [
  ...typed, "--json", "--lang", language, "--color", "never", "--scratch", ".", "--memory", runMemory,
];

/** Writes arguments as a line for a shell. */
export const writeCommandLine = (typed: readonly string[]): string => ["lookalike", ...typed].map(quoteWord).join(" ");

/** Returns the report among what a run wrote, the rejected rows if there are any, and everything else. */
export function splitOutputs(written: readonly WrittenFile[]): { report: WrittenFile | null; rejected: WrittenFile | null; others: WrittenFile[] } {
  const isReport = ({ name }: WrittenFile) => name === "report.html";
  const isRejected = ({ name }: WrittenFile) => name.startsWith("rejected.");
  const others = written.filter((file) => !isReport(file) && !isRejected(file));
  return { report: written.find(isReport) ?? null, rejected: written.find((file) => isRejected(file) && file.content.size > 0) ?? null, others };
}
