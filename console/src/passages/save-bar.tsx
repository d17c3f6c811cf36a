/** What of a report is saved: the whole report, a copy without names, and the words that are blacked out in it. */
import { useWording } from "../components/basics";
import { saveFile } from "../components/save-file";
import { removeNames, replaceData, splitWords } from "./report-copy";
import type { PassageData } from "./page";
import type { Wording } from "../language/catalog";

/** A report as a file. */
export interface ReportSource {
  /** The page of the report, in which other data can take the place of its own. */
  page: string;
  /** `true` where the report is not a file yet, so that it can be saved as it is. */
  isNew: boolean;
}

/** Saves a copy without names of all pairs, or of one. `nameOf` returns what stands in the place of a name. */
export function saveCopy(say: Wording, page: string, data: PassageData, nameOf: (name: string) => string, words: string, pair?: number): void {
  const copy = removeNames(data, { language: say.language, nameOf, words: splitWords(words), ...(pair !== undefined && { pair }) });
  saveFile(pair === undefined ? "passages-without-names.html" : "pair-without-names.html", replaceData(page, copy), "text/html");
}

interface SaveButtonProps {
  data: PassageData;
  source: ReportSource;
  isAnonymous: boolean;
  onCopy: () => void;
}

/** Saves what is shown: with names hidden, and in a report that is a file already, a copy without names. */
export function SaveButton({ data, source, isAnonymous, onCopy }: SaveButtonProps) {
  const say = useWording();
  const isWhole = source.isNew && !isAnonymous;
  const label = isWhole ? "drop.save" : source.isNew ? "passages.saveHidden" : "passages.saveCopy";
  const save = () => (isWhole ? saveFile("passages.html", replaceData(source.page, data), "text/html") : onCopy());
  return <button type="button" class="button" onClick={save}>{say.text(label)}</button>;
}

interface BlackoutFieldProps {
  words: string;
  onWords: (words: string) => void;
}

/** Says that texts stay as they are, and takes the words that are blacked out in copies without names. */
export function BlackoutField({ words, onWords }: BlackoutFieldProps) {
  const say = useWording();
  return (
    <div class="line no-print">
      <span class="muted">{say.text("passages.namesInTexts")}</span>
      <label class="field">
        {say.text("passages.blackout")}
        <input type="text" size={24} value={words} placeholder={say.text("passages.blackoutHint")} onInput={(event) => onWords(event.currentTarget.value)} />
      </label>
    </div>
  );
}
