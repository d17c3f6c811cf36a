/** The search language of lists: words, and terms such as `similarity:>0.9`. */
import type { MessageKey } from "../language/catalog";

export type NumberTest = (value: number) => boolean;

export interface Query {
  words: string[];
  similarity: NumberTest[];
  cluster: NumberTest[];
  id: string[];
  text: string[];
  source: string[];
  route: string[];
  marked: string[];
}

/** A term that is not understood, and the message that helps. */
export interface BadTerm {
  term: string;
  help: MessageKey;
}

/** Parses a number with a comparison, or a range. Returns null if it is neither. */
export function parseNumberTest(text: string): NumberTest | null {
  const range = /^(\d+(?:\.\d+)?|\.\d+)\.\.(\d+(?:\.\d+)?|\.\d+)$/.exec(text);
  if (range) {
    const [low, high] = [Number(range[1]), Number(range[2])];
    return (value) => value >= low && value <= high;
  }
  const one = /^(>=|<=|≥|≤|>|<|=)?(\d+(?:\.\d+)?|\.\d+)$/.exec(text);
  if (!one) return null;
  const limit = Number(one[2]);
  switch (one[1]) {
    case ">": return (value) => value > limit;
    case ">=": case "≥": return (value) => value >= limit;
    case "<": return (value) => value < limit;
    case "<=": case "≤": return (value) => value <= limit;
    default: return (value) => value === limit;
  }
}

/** Splits a search into terms. Quotes hold words together. */
function splitTerms(search: string): string[] {
  const terms = search.match(/(?:[^\s"“”]+|["“”][^"“”]*["“”]?)+/g) ?? [];
  return terms.map((term) => term.replace(/["“”]/g, "")).filter(Boolean);
}

/** Parses a search. */
export function parseQuery(search: string): Query | BadTerm {
  const query: Query = { words: [], similarity: [], cluster: [], id: [], text: [], source: [], route: [], marked: [] };
  for (const term of splitTerms(search)) {
    const found = /^(similarity|cluster|id|text|source|route|marked)[:：](.*)$/is.exec(term);
    if (!found) {
      query.words.push(fold(term));
      continue;
    }
    const [, name, value] = [term, found[1]!.toLowerCase() as keyof Query, found[2]!];
    if (name === "similarity" || name === "cluster") {
      const test = parseNumberTest(value);
      if (!test) return { term, help: "list.helpNumber" };
      query[name].push(test);
    } else if (name === "marked") {
      const wanted = value.toLowerCase();
      if (!["same", "different", "yes", "no"].includes(wanted)) return { term, help: "list.helpMarked" };
      query.marked.push(wanted);
    } else if (value) {
      query[name].push(fold(value));
    }
  }
  return query;
}

/** Returns a text as it is compared in a search: without case and width. */
export const fold = (text: string): string => text.normalize("NFKC").toLowerCase();

export const isBadTerm = (query: Query | BadTerm): query is BadTerm => "help" in query;
