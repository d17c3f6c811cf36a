/** Two texts, typed or from files, with all similarities, their differences and the passages that they share. */
import { useMemo, useState } from "preact/hooks";
import { useWording } from "../components/basics";
import { Compared, type TextComparer } from "../console/collection-choice";
import { useRequests } from "../console/requests";
import type { Engine, PairOptions } from "./engine";
import { sayWeb } from "./messages";
import { RecipeChoice } from "./recipe-choice";

export interface ToolProps {
  engine: Engine;
  onProblem: (problem: unknown) => void;
  /** A change of it means that a call that failed may succeed now. */
  attempt: number;
}

/** Measures in the order of their use. */
const measures = ["jaccard", "containment", "cosine", "levenshtein", "indel", "lcs"] as const;

/** Extensions of the files that are read. */
const acceptedFiles = [".txt", ".text", ".md", ".markdown", ".html", ".htm", ".xhtml", ".docx", ".docm"].join(",");

interface NamedText {
  /** Name of the file; empty for a typed text. */
  name: string;
  text: string;
  /** Encoding in which the file was read, if its bytes alone suggest it. */
  encoding?: string | null;
}

export function CompareSection({ engine, onProblem, attempt }: ToolProps) {
  const say = useWording();
  const [sides, setSides] = useState<readonly NamedText[]>([{ name: "", text: "" }, { name: "", text: "" }]);
  const [options, setOptions] = useState<PairOptions>({ recipe: "default", measure: "jaccard", threshold: 0.75 });
  const [asked, setAsked] = useState<{ number: number; sides: readonly NamedText[]; options: PairOptions } | null>(null);
  const change = (at: number, side: NamedText) => setSides((known) => known.map((other, place) => (place === at ? side : other)));
  const comparer = useMemo(() => asked && makeComparer(engine, asked.options), [engine, asked]);
  return (
    <>
      <section class="card stack">
        <div class="grid">
          {sides.map((side, at) => (
            <SideInput engine={engine} onProblem={onProblem} letter={"AB"[at]!} side={side} onChange={(changed) => change(at, changed)} key={at} />
          ))}
        </div>
        <div class="line">
          <RecipeChoice engine={engine} recipe={options.recipe} onChange={(recipe) => setOptions({ ...options, recipe })} />
          <label class="field">
            {sayWeb(say, "web.measure")}
            <select value={options.measure} onChange={(event) => setOptions({ ...options, measure: event.currentTarget.value })}>
              {measures.map((name) => <option value={name} key={name}>{say.text(`measure.${name}`)}</option>)}
            </select>
          </label>
          <label class="field">
            {sayWeb(say, "web.threshold")}
            <input type="number" min="0.01" max="1" step="0.01" value={options.threshold} onInput={(event) => setOptions({ ...options, threshold: Number(event.currentTarget.value) })} />
          </label>
          <label class="choice">
            <input type="checkbox" checked={options.reworded ?? false} onChange={(event) => setOptions({ ...options, reworded: event.currentTarget.checked })} />
            {sayWeb(say, "web.reworded")}
          </label>
        </div>
        <div class="line">
          <button
            type="button"
            class="button strong"
            disabled={sides.some((side) => side.text === "")}
            onClick={() => setAsked({ number: (asked?.number ?? 0) + 1, sides, options })}
          >
            {sayWeb(say, "web.do")}
          </button>
        </div>
      </section>
      {asked && comparer && (
        <Compared
          service={comparer}
          onProblem={onProblem}
          a={{ id: asked.sides[0]!.name, text: asked.sides[0]!.text }}
          b={{ id: asked.sides[1]!.name, text: asked.sides[1]!.text }}
          key={`${asked.number} ${attempt}`}
        />
      )}
    </>
  );
}

/** Returns the engine with these options, as what compares texts. */
const makeComparer = (engine: Engine, options: PairOptions): TextComparer => ({
  compare: (a, b) => engine.compare(a, b, options),
  findShared: (a, b) => engine.findShared(a, b, options),
});

interface SideInputProps extends Omit<ToolProps, "attempt"> {
  letter: string;
  side: NamedText;
  onChange: (side: NamedText) => void;
}

function SideInput({ engine, onProblem, letter, side, onChange }: SideInputProps) {
  const say = useWording();
  const reading = useRequests(engine, onProblem);
  const label = sayWeb(say, "web.text", { letter });
  const read = (file: File | undefined) => {
    if (!file) return;
    const extract = async () => engine.extractText(file.name, new Uint8Array(await file.arrayBuffer()));
    void reading.send(extract, ({ text, guessed_encoding: encoding }) => onChange({ name: file.name, text, encoding }));
  };
  return (
    <div
      class="stack"
      onDragOver={(event) => event.preventDefault()}
      onDrop={(event) => {
        event.preventDefault();
        read(event.dataTransfer?.files[0]);
      }}
    >
      <textarea class="search" rows={8} value={side.text} aria-label={label} placeholder={label} dir="auto" onInput={(event) => onChange({ name: "", text: event.currentTarget.value })} />
      <div class="line">
        <label class="button file">
          {sayWeb(say, "web.open")}
          <input
            class="hidden"
            type="file"
            accept={acceptedFiles}
            onChange={(event) => {
              read(event.currentTarget.files?.[0]);
              event.currentTarget.value = "";
            }}
          />
        </label>
        <span class="muted">{side.name || sayWeb(say, "web.openAbout")}{side.encoding && <> · {sayWeb(say, "web.readAs", { encoding: side.encoding })}</>}</span>
      </div>
    </div>
  );
}
