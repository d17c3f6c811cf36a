/**
 * Phrases that the engine writes in English, and their Chinese. `{}` stands for a number, a name or another phrase. The
 * command reads the same list, and finds phrases in the same way.
 */
import list from "../../../crates/lookalike-cli/src/language/phrases.json";

/** Phrases in English and in Chinese. */
export type PhraseList = readonly (readonly [string, string])[];

export const enginePhrases = list as unknown as PhraseList;

/** A space within a name, which no pattern has. */
const joint = "\u00a0";

/** Names of several words, those that begin with another one first. */
const longNames = [
  "containment by bottom-k",
  "cosine by SimHash",
  "cosine of counts",
  "cosine of weights",
  "longest common substring by words",
  "longest common substring",
  "Levenshtein by words",
  "Indel by words",
];

/** Returns the parts of a phrase that stand for `{}` in a pattern, if the rest is equal. */
function matchParts(phrase: string, pattern: string): string[] | null {
  const literals = pattern.split("{}");
  const last = literals.pop()!;
  const first = literals.shift();
  if (first === undefined || !phrase.startsWith(first)) return null;
  let rest = phrase.slice(first.length);
  const parts: string[] = [];
  for (const literal of literals) {
    const at = rest.indexOf(literal);
    if (at < 0) return null;
    parts.push(rest.slice(0, at));
    rest = rest.slice(at + literal.length);
  }
  if (!rest.endsWith(last)) return null;
  parts.push(rest.slice(0, rest.length - last.length));
  return parts.every((part) => part !== "" && part.length < phrase.length) ? parts : null;
}

/** Returns the Chinese of a phrase of the engine; null of one that is not listed. */
export const toChinese = (phrase: string): string | null => translate(phrase, enginePhrases);

/** Returns the Chinese of a phrase of a list; null of another one. Of several patterns the longest counts. */
export function translate(phrase: string, phrases: PhraseList): string | null {
  const plain = phrase.replaceAll(joint, " ");
  const listed = phrases.find(([english]) => english === plain);
  if (listed !== undefined) return listed[1];
  const joined = longNames.reduce((text, name) => text.replaceAll(name, name.replaceAll(" ", joint)), phrase);
  let best: { length: number; parts: string[]; chinese: string } | null = null;
  for (const [english, chinese] of phrases) {
    const parts = matchParts(joined, english);
    if (parts && (!best || english.length >= best.length)) best = { length: english.length, parts, chinese };
  }
  if (!best) return null;
  const { parts } = best;
  let at = 0;
  return best.chinese.replace(/([`']?)\{\}/g, (_, mark: string) => {
    const part = parts[at++] ?? "";
    // A quoted part is a name or a value of the user.
    const translated = mark === "" ? translate(part, phrases) : null;
    return mark + (translated ?? part.replaceAll(joint, " "));
  });
}
