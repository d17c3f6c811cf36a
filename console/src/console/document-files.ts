/**
 * Files as documents: a text file is one document under its name, each line of a `.jsonl` file is one with `text` and
 * `id`. Without an id a line has the name of the file and its number. The service extracts the texts of Markdown, HTML,
 * `.docx` and PDF files.
 */
import { decodeText } from "../components/decode-text";
import { ServiceProblem, type NamedText } from "./service";

/** Extensions of the files that are read here, and of those that the service reads. */
const rowKinds = ["jsonl", "ndjson"];
const textKinds = ["txt", "text"];
const markupKinds = ["md", "markdown", "html", "htm", "xhtml"];
const binaryKinds = ["docx", "docm", "pdf"];

/** The extensions as a file input takes them. */
export const acceptedFiles = [...textKinds, ...rowKinds, ...markupKinds, ...binaryKinds].map((it) => `.${it}`).join(",");

/** Files that are sent at a time: the service reads so many for one client. */
const sentTogether = 2;

/** A file, or a line of one, that is no document. */
export interface BadFile {
  name: string;
  /** From 1; 0 for a whole file. */
  line: number;
  reason: "kind" | "encoding" | "json" | "empty" | "sending" | "service";
  /** What the service says about the file. */
  message?: string;
}

export interface ReadFiles {
  documents: NamedText[];
  bad: BadFile[];
}

function readLines(name: string, text: string): ReadFiles {
  const read: ReadFiles = { documents: [], bad: [] };
  text.split("\n").forEach((line, at) => {
    if (line.trim() === "") return;
    try {
      const row = JSON.parse(line) as { id?: unknown; text?: unknown };
      if (typeof row?.text !== "string") throw new Error("no text");
      const hasId = typeof row.id === "string" || typeof row.id === "number";
      read.documents.push({ id: hasId ? String(row.id) : `${name}:${at + 1}`, text: row.text });
    } catch {
      read.bad.push({ name, line: at + 1, reason: "json" });
    }
  });
  return read;
}

/** Returns the text of a document file by its name and its bytes. */
export type ExtractText = (name: string, bytes: Uint8Array) => Promise<string>;

const findExtension = (name: string): string => /\.([^.]+)$/.exec(name)?.[1]?.toLowerCase() ?? "";

/** Reads one file. */
export async function readFile(name: string, bytes: Uint8Array, extract: ExtractText): Promise<ReadFiles> {
  const extension = findExtension(name);
  const refuse = (reason: BadFile["reason"], message?: string): ReadFiles => ({
    documents: [],
    bad: [{ name, line: 0, reason, ...(message && { message }) }],
  });
  const take = (text: string): ReadFiles => (text.trim() === "" ? refuse("empty") : { documents: [{ id: name, text }], bad: [] });
  const isBinary = binaryKinds.includes(extension);
  if (![...rowKinds, ...textKinds, ...markupKinds].includes(extension) && !isBinary) return refuse("kind");
  const text = isBinary ? "" : decodeText(bytes);
  if (text === null) return refuse("encoding");
  if (rowKinds.includes(extension)) return text.trim() === "" ? refuse("empty") : readLines(name, text);
  if (textKinds.includes(extension)) return take(text);
  try {
    // The service takes markup in UTF-8 alone.
    return take(await extract(name, isBinary ? bytes : new TextEncoder().encode(text)));
  } catch (problem) {
    if (problem instanceof TypeError) return refuse("sending");
    // A key that is missing or has no rights concerns the whole page.
    if (!(problem instanceof ServiceProblem) || problem.status === 401 || problem.status === 403) throw problem;
    return refuse("service", problem.message);
  }
}

/** A file and its name; a file of a folder has its path from there, so that files of one name in two folders differ. */
export interface NamedFile {
  name: string;
  file: File;
}

/** Returns files under their own names. */
export const nameFiles = (files: Iterable<File>): NamedFile[] => [...files].map((file) => ({ name: file.name, file }));

/** Files that systems and word processors put into a folder, which are no documents of its owner. */
const isLeftBySystem = (name: string): boolean => name.startsWith(".") || name.startsWith("~$") || /^(desktop\.ini|thumbs\.db)$/i.test(name);

/** Returns all entries of a folder. A browser answers with some at a time, and at the end with none. */
async function listFolder(folder: FileSystemDirectoryEntry): Promise<FileSystemEntry[]> {
  const reader = folder.createReader();
  const entries: FileSystemEntry[] = [];
  for (;;) {
    const some = await new Promise<FileSystemEntry[]>((resolve, reject) => reader.readEntries(resolve, reject));
    if (some.length === 0) return entries;
    entries.push(...some);
  }
}

async function filesOfEntry(entry: FileSystemEntry): Promise<NamedFile[]> {
  if (entry.isFile) {
    const file = await new Promise<File>((resolve, reject) => (entry as FileSystemFileEntry).file(resolve, reject));
    return [{ name: entry.fullPath.replace(/^\//, ""), file }];
  }
  const entries = await listFolder(entry as FileSystemDirectoryEntry);
  const wanted = entries.filter((it) => !isLeftBySystem(it.name));
  return (await Promise.all(wanted.map(filesOfEntry))).flat();
}

/** Returns the files that were dropped, and those of dropped folders. It reads `dropped` before it first waits, because a browser empties it then. */
export async function findDroppedFiles(dropped: DataTransfer): Promise<NamedFile[]> {
  const entries = [...dropped.items].map((it) => it.webkitGetAsEntry()).filter((it) => it !== null);
  if (entries.length === 0) return nameFiles(dropped.files);
  return (await Promise.all(entries.map(filesOfEntry))).flat();
}

/** Reads files in the order of their names. Calls `onProgress` with the number of files that are read. */
export async function readFiles(files: readonly NamedFile[], extract: ExtractText, onProgress: (done: number) => void): Promise<ReadFiles> {
  const sorted = [...files].sort((a, b) => (a.name < b.name ? -1 : 1));
  const read: ReadFiles[] = [];
  let [next, done] = [0, 0];
  const readNext = async (): Promise<void> => {
    while (next < sorted.length) {
      const at = next++;
      read[at] = await readFile(sorted[at]!.name, new Uint8Array(await sorted[at]!.file.arrayBuffer()), extract);
      onProgress(++done);
    }
  };
  await Promise.all(Array.from({ length: sentTogether }, readNext));
  return { documents: read.flatMap((it) => it.documents), bad: read.flatMap((it) => it.bad) };
}
