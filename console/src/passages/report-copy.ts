/**
 * A report of passages as a file: the data in its page, and copies without names.
 *
 * A copy is made of the fields that are listed here, so that a field that is added to reports names nobody by accident.
 * The table of names that a user adds is never a part of a report.
 */
import type { Language } from "../language/catalog";
import type { PassageData } from "./page";

/** Text before the data in a page. */
const dataStart = '<script type="application/json" id="data">';

/** Returns the place of the data in a page. The page is not parsed: no `<` of the data is written as such. */
function findData(page: string): [start: number, end: number] | null {
  const before = page.indexOf(dataStart);
  const start = before + dataStart.length;
  return before < 0 ? null : [start, page.indexOf("<", start)];
}

/** Returns the data that a page has in it; null if it has none. */
export function readData(page: string): { kind: string } | null {
  const place = findData(page);
  return place && (JSON.parse(page.slice(...place)) as { kind: string });
}

/** Returns a page with other data. */
export function replaceData(page: string, data: object): string {
  const place = findData(page);
  if (!place) return page;
  return page.slice(0, place[0]) + JSON.stringify(data).replaceAll("<", "\\u003c") + page.slice(place[1]);
}

/** Returns the words of a list with commas, semicolons or line breaks between them. */
export const splitWords = (list: string): string[] => list.split(/[,;，；、\n]/).map((word) => word.trim()).filter(Boolean);

/** Returns a pattern for a word: case and the number of spaces do not count, nor how an accent is written. */
function matchWord(word: string): string {
  const forms = [...new Set([word.normalize("NFC"), word.normalize("NFD")])];
  return forms.map((form) => form.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&").replace(/\s+/g, "\\s+")).join("|");
}

/**
 * Returns a function that blacks out words wherever they stand, also within longer ones. Texts keep their lengths, so that
 * passages keep their places.
 */
export function makeBlackout(words: readonly string[]): (text: string) => string {
  if (words.length === 0) return (text) => text;
  const longestFirst = [...words].sort((a, b) => b.length - a.length);
  const pattern = new RegExp(longestFirst.map(matchWord).join("|"), "giu");
  return (text) => text.replace(pattern, (found) => "█".repeat(found.length));
}

interface CopyOptions {
  language: Language;
  /** Returns what stands in the place of a name. */
  nameOf: (name: string) => string;
  /** Words that are blacked out in the texts. */
  words: readonly string[];
  /** Number of the only pair of the copy; all pairs without it. */
  pair?: number;
}

/** Returns the data of a copy without names: of all pairs, or of one. */
export function removeNames(data: PassageData, { language, nameOf, words, pair }: CopyOptions): PassageData & { format: string; version: number } {
  const blackOut = makeBlackout(words);
  const rows = pair === undefined ? data.pairs.document.map((_, at) => at) : [pair];
  const used = [...new Set(rows.flatMap((at) => [data.pairs.document_text[at]!, data.pairs.source_text[at]!]))].filter((text) => text >= 0);
  const places = new Map(used.map((text, at) => [text, at]));
  return {
    format: "lookalike-report",
    version: 1,
    kind: "passages",
    language,
    without_names: true,
    program: data.program,
    created: data.created,
    summary: pair === undefined ? copySummary(data.summary, blackOut) : summarizePair(data, pair),
    written: [],
    pairs: copyPairs(data.pairs, rows, nameOf, (text) => places.get(text) ?? -1),
    texts: { text: used.map((text) => blackOut(data.texts.text[text]!)), characters: used.map((text) => data.texts.characters[text]!) },
  };
}

function copySummary(summary: PassageData["summary"], blackOut: (text: string) => string): PassageData["summary"] {
  const { documents, against, passages, pairs, copying, directed, sharing, copied_tokens, tokens, base, common, rejected, unreadable_files, skipped_files, files } = summary;
  return {
    documents, against, passages, pairs, copying, directed, sharing, copied_tokens, tokens, base, rejected, unreadable_files,
    ...(files !== undefined && { files }),
    ...(skipped_files !== undefined && { skipped_files }),
    common: common && { text: blackOut(common.text), characters: common.characters, documents: common.documents },
    // Reasons name their files.
    unreadable: [],
    guessed_encodings: summary.guessed_encodings.map(({ encoding, files }) => ({ encoding, files, first: "…" })),
  };
}

/** Returns the summary of a copy with one pair. Figures of all documents are not in it. */
function summarizePair({ summary, pairs }: PassageData, pair: number): PassageData["summary"] {
  const { directed } = summary;
  return {
    documents: directed ? 1 : 2, against: directed ? 1 : 0, passages: pairs.passages[pair]!, pairs: 1, copying: 1, directed, sharing: directed ? 1 : 2,
    copied_tokens: 0, tokens: 0, base: { texts: 0, documents: 0, tokens: 0 }, common: null, rejected: 0, unreadable_files: 0, unreadable: [], guessed_encodings: [],
  };
}

function copyPairs(pairs: PassageData["pairs"], rows: readonly number[], nameOf: (name: string) => string, placeOf: (text: number) => number): PassageData["pairs"] {
  const take = <T,>(column: readonly T[]): T[] => rows.map((at) => column[at]!);
  const isWhole = rows.length === pairs.document.length;
  return {
    total: isWhole ? pairs.total : rows.length,
    document: take(pairs.document).map(nameOf),
    source: take(pairs.source).map(nameOf),
    tokens: take(pairs.tokens),
    covered: take(isWhole ? pairs.covered : pairs.copied),
    copied: take(pairs.copied),
    reworded: take(pairs.reworded),
    unit: take(pairs.unit),
    share: take(pairs.share),
    source_share: take(pairs.source_share),
    passages: take(pairs.passages),
    longest: take(pairs.longest),
    document_text: take(pairs.document_text).map(placeOf),
    source_text: take(pairs.source_text).map(placeOf),
    marks: take(pairs.marks),
    edits: take(pairs.edits),
  };
}
