/** Looking at texts: check one, compare two. */
import { useState } from "preact/hooks";
import { ShortName, useWording } from "../components/basics";
import { useAnswer } from "./answer";
import { Compared, NoCollections, useCollection, type ToolProps } from "./collection-choice";
import type { QueryVerdict, Settings } from "./service";

export function Check(props: ToolProps) {
  const { service, onProblem } = props;
  const say = useWording();
  const { name, settings, choice, isEmpty } = useCollection(props);
  const [text, setText] = useState("");
  const [id, setId] = useState("");
  const [answered, setAnswered] = useState<{ name: string; text: string; verdict: QueryVerdict; isInserted: boolean } | null>(null);
  const [opened, setOpened] = useState<string | null>(null);
  // What another collection answered is not shown.
  const answer = answered?.name === name ? answered : null;
  const matched = useAnswer([answer, opened], answer && opened ? () => service.getDocument(name, opened) : null, onProblem);
  const show = (verdict: QueryVerdict, isInserted: boolean) => {
    setAnswered({ name, text, verdict, isInserted });
    setOpened(verdict.of ?? verdict.matches?.[0]?.id ?? null);
  };
  if (isEmpty) return <NoCollections />;
  const matches = answer?.verdict.matches ?? (answer?.verdict.of ? [{ id: answer.verdict.of, similarity: answer.verdict.similarity ?? 1, seq: 0 }] : []);
  return (
    <>
      <section class="card stack">
        <div class="line">{choice}</div>
        <textarea
          class="search"
          rows={6}
          value={text}
          placeholder={say.text("console.paste")}
          aria-label={say.text("console.paste")}
          dir="auto"
          onInput={(event) => setText(event.currentTarget.value)}
        />
        <div class="line">
          <button type="button" class="button strong" disabled={!name || !text} onClick={() => service.query(name, text).then((it) => show(it, false), onProblem)}>
            {say.text("console.look")}
          </button>
          <label class="field">
            {say.text("console.id")}
            <input value={id} onInput={(event) => setId(event.currentTarget.value)} />
          </label>
          <button type="button" class="button" disabled={!name || !text || !id} onClick={() => service.insert(name, id, text).then((it) => show(it, true), onProblem)}>
            {say.text("console.insert")}
          </button>
        </div>
      </section>
      {answer && (
        <section class="card stack" role="status">
          <h2>{say.text(answer.verdict.verdict === "duplicate" || matches.length > 0 ? "console.repeats" : answer.isInserted ? "console.inserted" : "console.new")}</h2>
          <div class="line">
            {matches.map((it) => (
              <button type="button" class="button" aria-pressed={opened === it.id} key={it.id} onClick={() => setOpened(it.id)}>
                <ShortName text={it.id} /> <span class="number">{say.similarity(it.similarity)}</span>
              </button>
            ))}
          </div>
        </section>
      )}
      {answer && matched && <Compared {...props} a={matched} b={{ id: say.text("console.pasted"), text: answer.text }} settings={settings} />}
    </>
  );
}

/** A text of a comparison, with its id if it is that of a document. */
interface ComparedText {
  id: string;
  text: string;
  /** Name of the collection that it is from; null for a pasted text. */
  collection: string | null;
}

const emptyText: ComparedText = { id: "", text: "", collection: null };

/** Compares two texts, pasted or of a collection. Two documents are compared under the settings of their collection. */
export function CompareTool(props: ToolProps) {
  const { service, onProblem } = props;
  const say = useWording();
  const { name, settings, choice, isEmpty } = useCollection(props);
  const [sides, setSides] = useState([emptyText, emptyText]);
  const [compared, setCompared] = useState<{ sides: ComparedText[]; settings: Settings | undefined } | null>(null);
  const change = (at: number, side: Partial<ComparedText>) => setSides((known) => known.map((it, other) => (other === at ? { ...it, ...side } : it)));
  /** Takes the text of a document, unless its id was changed meanwhile. */
  const take = (at: number) => {
    const { id } = sides[at]!;
    const put = (text: string) => setSides((known) => known.map((it, other) => (other === at && it.id === id ? { id, text, collection: name } : it)));
    return service.getDocument(name, id).then((it) => put(it.text ?? ""), onProblem);
  };
  const compare = () => setCompared({ sides, settings: sides.every((it) => it.collection === name) ? settings : undefined });
  const shown = compared?.sides.map(({ id, text, collection }) => (collection === null ? { text } : { id, text }));
  return (
    <>
      <section class="card stack">
        {!isEmpty && <div class="line">{choice} <span class="muted">{say.text("console.compareAbout")}</span></div>}
        <div class="grid">
          {sides.map((side, at) => (
            <div class="stack" key={at}>
              <textarea
                class="search"
                rows={6}
                value={side.text}
                aria-label={say.text("console.text", { letter: "AB"[at]! })}
                placeholder={say.text("console.text", { letter: "AB"[at]! })}
                dir="auto"
                onInput={(event) => change(at, { text: event.currentTarget.value, collection: null })}
              />
              {!isEmpty && (
                <form
                  class="line"
                  onSubmit={(event) => {
                    event.preventDefault();
                    void take(at);
                  }}
                >
                  <label class="field">
                    {say.text("console.id")}
                    <input value={side.id} onInput={(event) => change(at, { id: event.currentTarget.value, collection: null })} />
                  </label>
                  <button type="submit" class="button" disabled={!settings || !side.id}>{say.text("console.take")}</button>
                </form>
              )}
            </div>
          ))}
        </div>
        <div class="line">
          <button type="button" class="button strong" disabled={sides.some((it) => !it.text)} onClick={compare}>{say.text("console.compare")}</button>
        </div>
      </section>
      {compared && shown && <Compared {...props} a={shown[0]!} b={shown[1]!} settings={compared.settings} />}
    </>
  );
}
