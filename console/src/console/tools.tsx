/** Looking at texts: check one, compare two. */
import { useState } from "preact/hooks";
import { ShortName, useWording } from "../components/basics";
import { Compared, useCollection, type ToolProps } from "./collection-choice";
import { NoCollections } from "./links";
import { RequestExamples, type ExampleRequest } from "./request-example";
import { useAnswer, useChanges, useRequests } from "./requests";
import { insertPath, queryPath, type Nearest, type QueryMatch, type QueryVerdict, type Settings } from "./service";

/** What was answered to a text. */
interface CheckedText {
  name: string;
  text: string;
  verdict: QueryVerdict;
  isInserted: boolean;
}

export function Check(props: ToolProps) {
  const { service, onProblem } = props;
  const say = useWording();
  const { name, settings, choice, isEmpty } = useCollection(props);
  const [text, setText] = useState("");
  const [id, setId] = useState("");
  const [answered, setAnswered] = useState<CheckedText | null>(null);
  /** The document shown beside the text. Every click makes a new object, so the document is requested again. */
  const [opened, setOpened] = useState<{ id: string } | null>(null);
  const looks = useRequests(name, onProblem);
  const inserts = useChanges(onProblem);
  // The answer of another collection or of another text is not shown.
  const answer = answered?.name === name && answered.text === text ? answered : null;
  const matched = useAnswer([answer, opened], answer && opened ? () => service.getDocument(name, opened.id) : null, onProblem);
  const show = (verdict: QueryVerdict, isInserted: boolean) => {
    setAnswered({ name, text, verdict, isInserted });
    const first = verdict.of ?? verdict.matches?.[0]?.id ?? verdict.nearest?.document?.id;
    setOpened(first ? { id: first } : null);
  };
  const look = () => {
    setAnswered(null);
    void looks.send(() => service.query(name, text), (it) => show(it, false));
  };
  /** Inserts the text. Of a text that is kept the nearest document is asked for, too; without an answer, the verdict stands alone. */
  const insertAndLook = async (): Promise<QueryVerdict> => {
    const verdict = await service.insert(name, id, text);
    if (verdict.verdict !== "kept") return verdict;
    const { nearest } = await service.query(name, text, id).catch((): Partial<QueryVerdict> => ({}));
    return { ...verdict, ...(nearest && { nearest }) };
  };
  const insert = () => {
    setAnswered(null);
    void inserts.send(insertAndLook, (it) => show(it, true));
  };
  const canSend = name !== "" && text !== "" && !looks.isWaiting && !inserts.isWaiting;
  if (isEmpty) return <NoCollections />;
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
          <button type="button" class="button strong" disabled={!canSend} onClick={look}>
            {say.text("console.look")}
          </button>
          <label class="field">
            {say.text("console.id")}
            <input
              value={id}
              onInput={(event) => {
                setId(event.currentTarget.value);
                setAnswered(null);
              }}
            />
          </label>
          <button type="button" class="button" disabled={!canSend || !id} onClick={insert}>
            {say.text("console.insert")}
          </button>
        </div>
        {name !== "" && text !== "" && <RequestExamples service={service} list={() => listRequests(name, text, id)} />}
      </section>
      {answer && <Outcome answer={answer} settings={settings} opened={opened?.id ?? null} onOpen={(it) => setOpened({ id: it })} />}
      {answer && matched && settings && <Compared {...props} a={matched} b={{ id: say.text("console.pasted"), text: answer.text }} settings={settings} />}
    </>
  );
}

/** Returns the requests of this section: check a text and, with an id, insert it. */
const listRequests = (name: string, text: string, id: string): ExampleRequest[] => {
  const check = { path: queryPath(name), body: { text } };
  return id ? [check, { path: insertPath(name), body: { id, text } }] : [check];
};

interface OutcomeProps {
  answer: CheckedText;
  settings: Settings | undefined;
  /** Id of the document that is shown beside the text. */
  opened: string | null;
  onOpen: (id: string) => void;
}

/** The verdict on a text, with its matches or, without one, the nearest document. */
function Outcome({ answer: { verdict, isInserted }, settings, opened, onOpen }: OutcomeProps) {
  const say = useWording();
  const { nearest } = verdict;
  const own: QueryMatch[] = verdict.of ? [{ id: verdict.of, similarity: verdict.similarity ?? 1, seq: 0 }] : [];
  const matches = verdict.matches ?? own;
  const repeats = verdict.verdict === "duplicate" || matches.length > 0;
  const shown = nearest?.document ? [nearest.document] : matches;
  return (
    <section class="card stack" role="status">
      <h2>{say.text(repeats ? "console.repeats" : isInserted ? "console.inserted" : "console.new")}</h2>
      {nearest && <p class="muted">{sayNearest(say, nearest, settings?.threshold)}</p>}
      <div class="line">
        {shown.map((it) => (
          <button type="button" class="button" aria-pressed={opened === it.id} key={it.id} onClick={() => onOpen(it.id)}>
            <ShortName text={it.id} /> <span class="number">{say.similarity(it.similarity)}</span>
          </button>
        ))}
      </div>
    </section>
  );
}

/** Says which documents the nearest one was found among, and what it is compared with. */
function sayNearest(say: ReturnType<typeof useWording>, { document, considered, complete }: Nearest, threshold: number | undefined): string {
  if (!document) return say.text(complete ? "nearest.none" : considered > 0 ? "nearest.noneOfSome" : "nearest.unknown", { n: considered });
  const among = say.text(complete ? "nearest.ofAll" : "nearest.ofSome", { n: considered });
  return threshold === undefined ? among : `${among} ${say.text("nearest.threshold", { threshold: String(threshold) })}`;
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
  const requests = [useRequests(name, onProblem), useRequests(name, onProblem)];
  /** Takes the text of a document, unless the user has changed its side meanwhile. */
  const take = (at: number) => {
    const side = sides[at]!;
    const put = (text: string) => setSides((known) => known.map((it) => (it === side ? { ...side, text, collection: name } : it)));
    return requests[at]!.send(() => service.getDocument(name, side.id), (it) => put(it.text ?? ""));
  };
  const isOfCollection = sides.every((it) => it.collection === name);
  const compare = () => setCompared({ sides, settings: isOfCollection ? settings : undefined });
  // The comparison of other texts is not shown.
  const isCurrent = compared !== null && compared.sides === sides;
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
          <button type="button" class="button strong" disabled={sides.some((it) => !it.text) || (isOfCollection && !settings)} onClick={compare}>{say.text("console.compare")}</button>
        </div>
      </section>
      {isCurrent && shown && <Compared {...props} a={shown[0]!} b={shown[1]!} settings={compared.settings} />}
    </>
  );
}
