/** Refusals of the engine and of the command, in the language of the page. */
import errorList from "../../../crates/lookalike-cli/src/language/error_phrases.json";
import { useWording } from "../components/basics";
import { enginePhrases, translate, type PhraseList } from "../language/phrases";

const errorPhrases = [...enginePhrases, ...(errorList as unknown as PhraseList)];

/** Returns the Chinese of a refusal, as the command translates it; null of one that is not listed. Where only its end is listed, for example behind the letter of a document, the beginning stays. */
export function translateRefusal(refusal: string): string | null {
  const whole = translate(refusal, errorPhrases);
  if (whole !== null) return whole;
  for (const { index, 0: mark } of refusal.matchAll(/: /g)) {
    const end = translate(refusal.slice(index + mark.length), errorPhrases);
    if (end !== null) return `${refusal.slice(0, index)}：${end}`;
  }
  return null;
}

/** A refusal in the language of the page. One that is not listed stays English, and says so to readers. */
export function RefusalText({ text }: { text: string }) {
  const { language } = useWording();
  const chinese = language === "zh" ? translateRefusal(text.trim()) : null;
  return chinese === null ? <span lang="en">{text}</span> : <>{chinese}</>;
}

/** Returns the encoding that a refusal suggests for rows that are not valid UTF-8; null if it suggests none. */
export const findSuggestedEncoding = (messages: string): string | null => /--encoding ([a-z0-9_-]+)(?![a-z0-9_…-])/.exec(messages)?.[1] ?? null;
