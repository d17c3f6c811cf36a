/**
 * Import of files into a collection. The lines of a `.jsonl` file are sent as they are, so that `time` and `meta` stay; each
 * other file is one document under its name. Files of lines are read in portions; other files are read as a whole.
 */
import { readFile, type ExtractText, type NamedFile } from "./document-files";
import { ServiceProblem, type LineAnswer } from "./service";

/** A line that will be sent, with its place. */
export interface ImportLine {
  file: string;
  /** From 1; 0 for a whole file. */
  line: number;
  text: string;
}

/** A line that is no document of the collection, and why. */
export interface RejectedLine extends ImportLine {
  code: string;
  reason: string;
}

/** Documents of an import by what became of them. */
export interface ImportCounts {
  kept: number;
  duplicates: number;
  /** Older than the window: answered, and not stored. */
  late: number;
  rejected: number;
}

/** Progress of an import. */
export interface ImportProgress extends ImportCounts {
  /** Bytes of all files, and of those that are read. */
  totalBytes: number;
  readBytes: number;
}

export interface ImportResult extends ImportCounts {
  rejected: number;
  rejectedLines: RejectedLine[];
  /** `true` if it was stopped before its end. */
  isStopped: boolean;
  /** The problem that ended it; null if there was none. */
  problem: unknown;
}

/** Characters of the lines of a request, and their number. */
const portionCharacters = 1 << 20;
const portionLines = 1000;

/**
 * Bytes of the longest line, and of the longest file that is one document. Longer ones are rejected without being held, because a page has limited memory. A service takes
 * lines of 16 MiB unless it is told otherwise (`--max-document`), and answers longer ones itself.
 */
export const longestLineBytes = 64_000_000;

/** Rejected lines that are kept for the user, of at most so many characters together. */
const maxRejectedCharacters = 64 << 20;

/** How often a request is sent again that the service asks to repeat. */
const maxAttempts = 6;
const longestPauseSeconds = 30;

const rowFile = /\.(jsonl|ndjson)(\.gz)?$/i;

/** What an import needs: the calls of the service, and a pause that tests shorten. */
export interface ImportDoors {
  insertLines: (lines: readonly string[]) => Promise<LineAnswer[]>;
  extract: ExtractText;
  pause: (seconds: number) => Promise<void>;
}

/** A line of a file, and why it is none that can be sent. */
export interface SplitLine {
  text: string;
  problem: "long" | "utf8" | null;
}

const lineEnd = 0x0a;

/**
 * Splits UTF-8 that arrives in parts into lines. A line is put together once, at its end, so the time is linear in the bytes.
 * Of a line that is too long nothing is held.
 */
export class LineSplitter {
  private parts: Uint8Array[] = [];
  private bytes = 0;
  private readonly decoder = new TextDecoder("utf-8", { fatal: true });

  constructor(private readonly longestBytes = longestLineBytes) {}

  /** Returns the lines that end in this part. */
  split(part: Uint8Array): SplitLine[] {
    const lines: SplitLine[] = [];
    let start = 0;
    for (let end = part.indexOf(lineEnd); end >= 0; end = part.indexOf(lineEnd, start)) {
      this.add(part.subarray(start, end));
      lines.push(this.take());
      start = end + 1;
    }
    this.add(part.subarray(start));
    return lines;
  }

  /** Returns the last line, which has no end; none if it is empty. */
  finish(): SplitLine[] {
    return this.bytes === 0 ? [] : [this.take()];
  }

  private add(part: Uint8Array): void {
    this.bytes += part.length;
    if (this.bytes > this.longestBytes) this.parts = [];
    else if (part.length > 0) this.parts.push(part);
  }

  private take(): SplitLine {
    const [parts, bytes] = [this.parts, this.bytes];
    [this.parts, this.bytes] = [[], 0];
    return bytes > this.longestBytes ? { text: "", problem: "long" } : this.decode(parts, bytes);
  }

  private decode(parts: readonly Uint8Array[], bytes: number): SplitLine {
    const line = joinBytes(parts, bytes);
    try {
      return { text: this.decoder.decode(line), problem: null };
    } catch {
      return { text: new TextDecoder().decode(line), problem: "utf8" };
    }
  }
}

function joinBytes(parts: readonly Uint8Array[], bytes: number): Uint8Array {
  if (parts.length === 1) return parts[0]!;
  const joined = new Uint8Array(bytes);
  let at = 0;
  for (const part of parts) {
    joined.set(part, at);
    at += part.length;
  }
  return joined;
}

/** Sums up the answers to lines, and collects those that were refused. */
export class ImportTally {
  readonly counts: ImportCounts = { kept: 0, duplicates: 0, late: 0, rejected: 0 };
  readonly rejectedLines: RejectedLine[] = [];
  private characters = 0;

  reject(line: ImportLine, code: string, reason: string): void {
    this.counts.rejected += 1;
    this.characters += line.text.length;
    // Further ones are counted only, because a page has limited memory.
    if (this.characters <= maxRejectedCharacters) this.rejectedLines.push({ ...line, code, reason });
  }

  addAnswers(lines: readonly ImportLine[], answers: readonly LineAnswer[]): void {
    lines.forEach((line, at) => {
      const answer = answers[at];
      if (!answer) this.reject(line, "no_answer", "the service did not answer this line");
      else if ("problem" in answer) this.reject(line, answer.problem.code, answer.problem.detail);
      else if (answer.seq === null) this.counts.late += 1;
      else if (answer.verdict === "kept") this.counts.kept += 1;
      else this.counts.duplicates += 1;
    });
  }
}

/** Sends lines, and sends them again after a pause if the service asks for that. A document is never inserted twice. */
async function sendPatiently(doors: ImportDoors, lines: readonly ImportLine[]): Promise<LineAnswer[]> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await doors.insertLines(lines.map((it) => it.text));
    } catch (problem) {
      const seconds = problem instanceof ServiceProblem ? problem.retrySeconds : null;
      if (seconds === null || attempt === maxAttempts) throw problem;
      await doors.pause(Math.min(seconds, longestPauseSeconds));
    }
  }
}

/** Takes the lines of a file. */
interface LineTaker {
  onBytes: (bytes: number) => void;
  onRejected: (line: ImportLine, problem: string) => void;
  /** Takes lines that can be sent. It returns `false` to end the reading. */
  take: (lines: ImportLine[]) => Promise<boolean>;
}

/** Reads the lines of a file, in parts. */
async function readRows({ name, file }: NamedFile, { onBytes, onRejected, take }: LineTaker): Promise<void> {
  const counter = new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>({
    transform(chunk, controller) {
      onBytes(chunk.byteLength);
      controller.enqueue(chunk);
    },
  });
  const counted = file.stream().pipeThrough(counter);
  const bytes = name.toLowerCase().endsWith(".gz") ? counted.pipeThrough(new DecompressionStream("gzip")) : counted;
  const reader = bytes.getReader();
  const splitter = new LineSplitter();
  let number = 0;
  const place = (lines: readonly SplitLine[]): ImportLine[] =>
    lines.flatMap(({ text, problem }) => {
      const placed = { file: name, line: (number += 1), text: text.endsWith("\r") ? text.slice(0, -1) : text };
      if (problem !== null) onRejected(placed, problem);
      // Blank lines get no answer.
      return problem !== null || /^\s*$/.test(placed.text) ? [] : [placed];
    });
  for (;;) {
    const { done, value } = await reader.read();
    const goesOn = await take(place(done ? splitter.finish() : splitter.split(value)));
    if (done) return;
    if (!goesOn) return reader.cancel();
  }
}

/** Imports files one after another. `goesOn` is asked before each portion. A problem ends the import, and is in its result. */
export async function importFiles(
  files: readonly NamedFile[],
  doors: ImportDoors,
  onProgress: (progress: ImportProgress) => void,
  goesOn: () => boolean,
): Promise<ImportResult> {
  const tally = new ImportTally();
  const totalBytes = files.reduce((sum, { file }) => sum + file.size, 0);
  let readBytes = 0;
  let [waiting, characters]: [ImportLine[], number] = [[], 0];
  const report = () => onProgress({ ...tally.counts, totalBytes, readBytes });
  const onBytes = (bytes: number) => {
    readBytes += bytes;
    report();
  };
  const flush = async (): Promise<boolean> => {
    if (!goesOn()) return false;
    const lines = waiting;
    [waiting, characters] = [[], 0];
    if (lines.length > 0) tally.addAnswers(lines, await sendPatiently(doors, lines));
    report();
    return true;
  };
  const take = async (lines: readonly ImportLine[]): Promise<boolean> => {
    for (const line of lines) {
      waiting.push(line);
      characters += line.text.length;
      if ((characters >= portionCharacters || waiting.length >= portionLines) && !(await flush())) return false;
    }
    return goesOn();
  };
  const importFile = async ({ name, file }: NamedFile) => {
    const onRejected = (line: ImportLine, problem: string) => tally.reject(line, problem, "");
    if (rowFile.test(name)) return readRows({ name, file }, { onBytes, onRejected, take });
    if (file.size > longestLineBytes) {
      onRejected({ file: name, line: 0, text: "" }, "long");
      return onBytes(file.size);
    }
    const { documents, bad } = await readFile(name, new Uint8Array(await file.arrayBuffer()), doors.extract);
    for (const it of bad) tally.reject({ file: name, line: it.line, text: "" }, it.reason, it.message ?? "");
    onBytes(file.size);
    await take(documents.map((document) => ({ file: name, line: 0, text: JSON.stringify(document) })));
  };
  const end = (isStopped: boolean, problem: unknown): ImportResult => ({ ...tally.counts, rejectedLines: tally.rejectedLines, isStopped, problem });
  try {
    for (const file of files) if (goesOn()) await importFile(file);
    return end(!(await flush()), null);
  } catch (problem) {
    // Lines that were sent before stay inserted; their counts are shown beside the problem.
    return end(true, problem);
  }
}

/** Returns rejected lines as a file: each with its place, the reason and the line itself. */
export const writeRejected = (lines: readonly RejectedLine[]): string =>
  lines.map(({ file, line, code, reason, text }) => `${JSON.stringify({ file, line, code, reason, row: text })}\n`).join("");
