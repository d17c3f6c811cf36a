/**
 * Files as documents: a text file is one document under its name, each line of a `.jsonl` file is one with `text` and
 * `id`. Without an id a line has the name of the file and its number.
 */
import type { NamedText } from "./service";

/** A file, or a line of one, that is no document. */
export interface BadFile {
  name: string;
  /** From 1; 0 for a whole file. */
  line: number;
  reason: "kind" | "encoding" | "json" | "empty";
}

export interface ReadFiles {
  documents: NamedText[];
  bad: BadFile[];
}

/** Returns the text of a file in UTF-8, UTF-16 with its mark, or GB18030; null if it is none of these. */
export function decodeText(bytes: Uint8Array): string | null {
  const marks: [number, number, string][] = [[0xff, 0xfe, "utf-16le"], [0xfe, 0xff, "utf-16be"]];
  const marked = marks.find(([first, second]) => bytes[0] === first && bytes[1] === second);
  for (const encoding of marked ? [marked[2]] : ["utf-8", "gb18030"]) {
    try {
      return new TextDecoder(encoding, { fatal: true }).decode(bytes);
    } catch {
      // Another encoding may fit.
    }
  }
  return null;
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

/** Reads one file. */
export function readFile(name: string, bytes: Uint8Array): ReadFiles {
  const extension = /\.([^.]+)$/.exec(name)?.[1]?.toLowerCase() ?? "";
  const refuse = (reason: BadFile["reason"]): ReadFiles => ({ documents: [], bad: [{ name, line: 0, reason }] });
  if (!["txt", "text", "jsonl", "ndjson"].includes(extension)) return refuse("kind");
  const text = decodeText(bytes);
  if (text === null) return refuse("encoding");
  if (text.trim() === "") return refuse("empty");
  return extension.startsWith("t") ? { documents: [{ id: name, text }], bad: [] } : readLines(name, text);
}

/** Reads files in the order of their names. */
export async function readFiles(files: readonly File[]): Promise<ReadFiles> {
  const sorted = [...files].sort((a, b) => (a.name < b.name ? -1 : 1));
  const read = await Promise.all(sorted.map(async (file) => readFile(file.name, new Uint8Array(await file.arrayBuffer()))));
  return { documents: read.flatMap((it) => it.documents), bad: read.flatMap((it) => it.bad) };
}
