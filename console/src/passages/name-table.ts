/** A table that says of each document whose it is: a name, a group and a time. Only the page uses it; no report has it. */
import { decodeText } from "../components/decode-text";

/** A row of the table, for one document. */
export interface NamedDocument {
  /** Name of the author; empty if the table has none. */
  name: string;
  /** Group, for example a course or a year; empty if the table has none. */
  group: string;
  /** Time as the table has it; empty if the table has none. */
  time: string;
}

/** The rows of a table for the documents of a report. */
export interface NameTable {
  documents: ReadonlyMap<string, NamedDocument>;
  /** Groups in the order of their names. */
  groups: readonly string[];
  /** Names of files in the table that are no document of the report, or could be several. */
  unknown: readonly string[];
}

/** Why a file is no such table. */
export type TableProblem = "encoding" | "columns";

/** Headings of the columns, in lower case. The first that a table has is taken. */
const headings = {
  file: ["filename", "file", "document", "id", "文件名", "文件", "文档", "编号", "学号"],
  name: ["full_name", "fullname", "name", "author", "student", "姓名", "作者", "学生"],
  group: ["label", "labels", "group", "class", "course", "year", "标签", "组", "小组", "班级", "班", "课程", "年级"],
  time: ["created_at", "time", "date", "submitted", "submitted_at", "时间", "日期", "提交时间"],
} as const;

/** Separators of columns. The one that the first line has most often is that of the table. */
const separators = [",", ";", "\t"] as const;

/** Returns the fields of a table (RFC 4180), line by line. Blank lines are left out. */
export function parseTable(text: string): string[][] {
  const content = text.replace(/^\ufeff/, "");
  const separator = findSeparator(content);
  const rows: string[][] = [];
  let [row, field, isQuoted]: [string[], string, boolean] = [[], "", false];
  const endRow = () => {
    row.push(field);
    if (row.some((it) => it.trim() !== "")) rows.push(row);
    [row, field] = [[], ""];
  };
  for (let at = 0; at < content.length; at += 1) {
    const sign = content[at]!;
    if (isQuoted) {
      if (sign !== '"') field += sign;
      else if (content[at + 1] === '"') field += content[(at += 1)]!;
      else isQuoted = false;
    } else if (sign === '"' && field === "") isQuoted = true;
    else if (sign === separator) {
      row.push(field);
      field = "";
    } else if (sign === "\n") endRow();
    else if (sign !== "\r") field += sign;
  }
  endRow();
  return rows;
}

function findSeparator(text: string): string {
  const first = text.slice(0, Math.max(0, text.indexOf("\n")) || undefined);
  const counts = separators.map((it) => first.split(it).length);
  return separators[counts.indexOf(Math.max(...counts))]!;
}

/** Reads the rows of a table that are about the documents of these names. */
export function readNameTable(bytes: Uint8Array, names: readonly string[]): NameTable | TableProblem {
  const text = decodeText(bytes);
  if (text === null) return "encoding";
  const [head = [], ...rows] = parseTable(text);
  const titles = head.map((it) => it.trim().toLowerCase());
  const columnOf = (names: readonly string[]) => titles.indexOf(names.find((it) => titles.includes(it)) ?? "");
  const [file, name, group, time] = [headings.file, headings.name, headings.group, headings.time].map(columnOf);
  if (file! < 0 || (name! < 0 && group! < 0 && time! < 0)) return "columns";
  const find = makeFinder(names);
  const documents = new Map<string, NamedDocument>();
  const unknown: string[] = [];
  for (const row of rows) {
    const field = (column: number) => (row[column] ?? "").trim();
    const document = find(field(file!));
    if (document === null) unknown.push(field(file!));
    else documents.set(document, { name: field(name!), group: field(group!), time: field(time!) });
  }
  const groups = [...new Set([...documents.values()].map((it) => it.group))].filter(Boolean).sort((a, b) => a.localeCompare(b));
  return { documents, groups, unknown };
}

/**
 * Returns a function that finds the document of a file name: the document of this name, or the only one whose path ends in
 * it, with or without its extension.
 */
function makeFinder(names: readonly string[]): (file: string) => string | null {
  const known = new Set(names);
  const ends = new Map<string, string | null>();
  const add = (end: string, name: string) => ends.set(end, ends.has(end) && ends.get(end) !== name ? null : name);
  for (const name of names) {
    const parts = name.replaceAll("\\", "/").split("/");
    parts.forEach((_, at) => {
      const end = parts.slice(at).join("/");
      add(end, name);
      add(end.replace(/\.[^./]+$/, ""), name);
    });
  }
  return (file) => (known.has(file) ? file : (ends.get(file.replaceAll("\\", "/").replace(/^\.\//, "")) ?? null));
}

/** Which pairs are shown: all, or by the groups of both documents. */
export type PairKind = "all" | "within" | "between";

/** Returns `true` if a pair of documents of two groups is one of a kind. A document without a group is in none. */
export function isOfKind(kind: PairKind, a: string, b: string): boolean {
  if (kind === "all") return true;
  return a !== "" && b !== "" && (a === b) === (kind === "within");
}
