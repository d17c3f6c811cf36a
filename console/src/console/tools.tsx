/** Looking at texts: check one, compare two. */
import { useState } from "preact/hooks";
import { ShortName, useWording } from "../components/basics";
import { Compared, NoCollections, useCollection, type ToolProps } from "./collection-choice";
import type { QueryVerdict, StoredDocument } from "./service";

export function Check(props: ToolProps) {
  const { service, onProblem } = props;
  const say = useWording();
  const { name, settings, choice, isEmpty } = useCollection(props);
  const [text, setText] = useState("");
  const [id, setId] = useState("");
  const [answer, setAnswer] = useState<{ text: string; verdict: QueryVerdict; isInserted: boolean } | null>(null);
  const [matched, setMatched] = useState<StoredDocument | null>(null);
  const open = (of: string) => service.getDocument(name, of).then(setMatched, onProblem);
  const show = (verdict: QueryVerdict, isInserted: boolean) => {
    setAnswer({ text, verdict, isInserted });
    setMatched(null);
    const first = verdict.of ?? verdict.matches?.[0]?.id;
    if (first) void open(first);
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
          <button type="button" class="button strong" disabled={!text} onClick={() => service.query(name, text).then((it) => show(it, false), onProblem)}>
            {say.text("console.look")}
          </button>
          <label class="field">
            {say.text("console.id")}
            <input value={id} onInput={(event) => setId(event.currentTarget.value)} />
          </label>
          <button type="button" class="button" disabled={!text || !id} onClick={() => service.insert(name, id, text).then((it) => show(it, true), onProblem)}>
            {say.text("console.insert")}
          </button>
        </div>
      </section>
      {answer && (
        <section class="card stack" role="status">
          <h2>{say.text(answer.verdict.verdict === "duplicate" || matches.length > 0 ? "console.repeats" : answer.isInserted ? "console.inserted" : "console.new")}</h2>
          <div class="line">
            {matches.map((it) => (
              <button type="button" class="button" aria-pressed={matched?.id === it.id} key={it.id} onClick={() => open(it.id)}>
                <ShortName text={it.id} length={40} /> <span class="number">{say.similarity(it.similarity)}</span>
              </button>
            ))}
          </div>
        </section>
      )}
      {answer && matched && <Compared {...props} a={matched} b={answer} settings={settings} />}
    </>
  );
}

export function CompareTool(props: ToolProps) {
  const say = useWording();
  const [texts, setTexts] = useState(["", ""]);
  const [compared, setCompared] = useState<[string, string] | null>(null);
  const [a, b] = texts as [string, string];
  return (
    <>
      <section class="card stack">
        <div class="grid">
          {[0, 1].map((at) => (
            <textarea
              class="search"
              rows={6}
              key={at}
              value={texts[at]}
              aria-label={say.text("console.text", { letter: "AB"[at]! })}
              placeholder={say.text("console.text", { letter: "AB"[at]! })}
              dir="auto"
              onInput={(event) => setTexts(texts.map((it, other) => (other === at ? event.currentTarget.value : it)))}
            />
          ))}
        </div>
        <div class="line">
          <button type="button" class="button strong" disabled={!a || !b} onClick={() => setCompared([a, b])}>{say.text("console.compare")}</button>
        </div>
      </section>
      {compared && <Compared {...props} a={{ text: compared[0] }} b={{ text: compared[1] }} />}
    </>
  );
}
