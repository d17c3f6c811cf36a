/** The pairs of a report as a table for a spreadsheet. */
import type { PassageData } from "./page";

/** Beginnings that a spreadsheet takes for a formula. A name that a student chose must not be one. */
const formula = /^[=+\-@\t\r]/;

/** Returns a field of CSV (RFC 4180), which no spreadsheet runs. */
export function writeField(value: string | number): string {
  const text = typeof value === "string" && formula.test(value) ? `'${value}` : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Returns the pairs as CSV, with the names as they are shown. The mark at its start says that it is UTF-8. */
export function writePairs(data: PassageData, nameOf: (name: string) => string): string {
  const { pairs, summary } = data;
  const names = summary.directed ? ["document", "source"] : ["document", "other_document"];
  const shares = summary.directed ? ["share_of_document", "share_of_source"] : ["share_of_document", "share_of_other_document"];
  const rows = pairs.document.map((document, at) => [
    nameOf(document), nameOf(pairs.source[at]!), pairs.passages[at]!, pairs.copied[at]!, pairs.longest[at]!, pairs.unit[at]!, pairs.share[at]!, pairs.source_share[at]!,
  ]);
  const table = [[...names, "passages", "length", "longest", "unit", ...shares], ...rows];
  return `\ufeff${table.map((row) => row.map(writeField).join(",")).join("\r\n")}\r\n`;
}
