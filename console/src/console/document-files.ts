/**
 * Files as documents: a text file is one document under its name, each line of a `.jsonl` file is one with `text` and
 * `id`. Without an id a line has the name of the file and its number. The service extracts the texts of Markdown, HTML,
 * `.docx` and PDF files.
 */
import { decodeFile, decodeUnicode } from "../components/decode-text";
import { ServiceProblem, type ExtractedFile, type NamedText } from "./service";

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

/** A file whose encoding was guessed by its bytes. */
export interface GuessedFile {
  name: string;
  encoding: string;
}

export interface ReadFiles {
  documents: NamedText[];
  bad: BadFile[];
  guessed: GuessedFile[];
}

function readLines(name: string, text: string): ReadFiles {
  const read: ReadFiles = { documents: [], bad: [], guessed: [] };
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

/** Reads a document file by its name and its bytes. */
export type ExtractText = (name: string, bytes: Uint8Array) => Promise<ExtractedFile>;

const findExtension = (name: string): string => /\.([^.]+)$/.exec(name)?.[1]?.toLowerCase() ?? "";

/** Reads one file. */
export async function readFile(name: string, bytes: Uint8Array, extract: ExtractText): Promise<ReadFiles> {
  const extension = findExtension(name);
  const refuse = (reason: BadFile["reason"], message?: string): ReadFiles => ({
    documents: [],
    bad: [{ name, line: 0, reason, ...(message && { message }) }],
    guessed: [],
  });
  const sayGuessed = (encoding: string | null | undefined): GuessedFile[] => (encoding ? [{ name, encoding }] : []);
  if (rowKinds.includes(extension)) {
    const decoded = decodeFile(bytes);
    if (decoded === null) return refuse("encoding");
    return decoded.text.trim() === "" ? refuse("empty") : { ...readLines(name, decoded.text), guessed: sayGuessed(decoded.guessed) };
  }
  if (![...textKinds, ...markupKinds, ...binaryKinds].includes(extension)) return refuse("kind");
  const take = (text: string, guessed: GuessedFile[] = []): ReadFiles =>
    text.trim() === "" ? refuse("empty") : { documents: [{ id: name, text }], bad: [], guessed };
  const plain = textKinds.includes(extension) ? decodeUnicode(bytes) : null;
  if (plain !== null) return take(plain);
  try {
    const { text, guessed_encoding: encoding } = await extract(name, bytes);
    return take(text, sayGuessed(encoding));
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

/** Returns files under their own names, or under their paths from a folder that was chosen. */
export const nameFiles = (files: Iterable<File>): NamedFile[] => [...files].map((file) => ({ name: file.webkitRelativePath || file.name, file }));

/** Files that systems and word processors put into a folder, which are no documents of its owner. */
const isLeftBySystem = (name: string): boolean => name.startsWith(".") || name.startsWith("~$") || /^(desktop\.ini|thumbs\.db)$/i.test(name);

/** Returns the files of a folder that was chosen, without those of systems. */
export const nameFolderFiles = (files: Iterable<File>): NamedFile[] =>
  nameFiles(files).filter(({ name }) => !name.split("/").slice(1).some(isLeftBySystem));

/** A folder that was dropped and cannot be read, because a browser gives a page from disk no access to it. */
export class FolderUnreadable extends Error {
  constructor(readonly folder: string) {
    super(`the folder ${folder} cannot be read where it was dropped: choose it with the button`);
  }
}

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

/** A file or a folder that a page may read; the types of TypeScript know no list of its entries. */
type FileHandle = { kind: "file"; name: string; getFile(): Promise<File> } | { kind: "directory"; name: string; values(): AsyncIterable<FileHandle> };

async function filesOfHandle(handle: FileHandle, path: string): Promise<NamedFile[]> {
  if (handle.kind === "file") return [{ name: path, file: await handle.getFile() }];
  const found: NamedFile[] = [];
  for await (const entry of handle.values()) {
    if (!isLeftBySystem(entry.name)) found.push(...(await filesOfHandle(entry, `${path}/${entry.name}`)));
  }
  return found;
}

/** An item of a drop with the ways to read it, which a browser offers only while it tells of the drop. */
type DroppedItem = DataTransferItem & { getAsFileSystemHandle?: () => Promise<FileHandle | null> };

/**
 * Returns a function that reads a dropped item. Chromium reads no files of entries on a page from disk, so that files are
 * taken as such, and folders by their handle where their entries fail.
 */
function takeItem(item: DroppedItem): () => Promise<NamedFile[]> {
  const entry = item.webkitGetAsEntry();
  const file = item.getAsFile();
  if (!entry?.isDirectory) return async () => (file ? nameFiles([file]) : []);
  // Its failure matters only if the entries fail, too.
  const handle = item.getAsFileSystemHandle?.().catch(() => null);
  const readHandle = async (): Promise<NamedFile[]> => {
    const folder = await handle;
    if (!folder) throw new FolderUnreadable(entry.name);
    return filesOfHandle(folder, folder.name).catch(() => {
      throw new FolderUnreadable(entry.name);
    });
  };
  return () => filesOfEntry(entry).catch(readHandle);
}

/** Returns the files that were dropped, and those of dropped folders. It takes all items before it first waits, because a browser empties `dropped` then. */
export async function findDroppedFiles(dropped: DataTransfer): Promise<NamedFile[]> {
  const items = [...dropped.items].filter((it) => it.kind === "file").map(takeItem);
  if (items.length === 0) return nameFiles(dropped.files);
  return (await Promise.all(items.map((read) => read()))).flat();
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
  return { documents: read.flatMap((it) => it.documents), bad: read.flatMap((it) => it.bad), guessed: read.flatMap((it) => it.guessed) };
}
