/** The pairs of a report as a table for a spreadsheet. */
import type { PassageData } from "./page";

/**
 * Returns `true` for a text that a spreadsheet takes for a formula, with its first sign in any width and behind spaces or
 * characters that cannot be seen. A name that a student chose must not be one.
 */
export const isFormula = (text: string): boolean => /^[\t\r\n]/.test(text) || /^[=+\-@\u2212]/.test(text.replace(/^[\s\p{C}]+/u, "").slice(0, 1).normalize("NFKC"));

/** Returns a field of CSV (RFC 4180), which no spreadsheet runs. */
export function writeField(value: string | number): string {
  const text = typeof value === "string" && isFormula(value) ? `'${value}` : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/**
 * Returns the pairs as CSV, with the names as they are shown, and with the groups of both documents if they are known. The
 * mark at its start says that it is UTF-8.
 */
export function writePairs(data: PassageData, nameOf: (name: string) => string, groupOf?: (name: string) => string): string {
  const { pairs, summary } = data;
  const groups = groupOf ? ["group_of_document", summary.directed ? "group_of_source" : "group_of_other_document"] : [];
  const names = summary.directed ? ["document", "source"] : ["document", "other_document"];
  const shares = summary.directed ? ["share_of_document", "share_of_source"] : ["share_of_document", "share_of_other_document"];
  const rows = pairs.document.map((document, at) => [
    nameOf(document), nameOf(pairs.source[at]!), pairs.passages[at]!, pairs.copied[at]!, pairs.reworded[at]!, pairs.longest[at]!, pairs.unit[at]!, pairs.share[at]!, pairs.source_share[at]!,
    ...(groupOf ? [groupOf(document), groupOf(pairs.source[at]!)] : []),
  ]);
  const table = [[...names, "passages", "length", "reworded", "longest", "unit", ...shares, ...groups], ...rows];
  return `\ufeff${table.map((row) => row.map(writeField).join(",")).join("\r\n")}\r\n`;
}
