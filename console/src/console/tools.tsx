/** Looking at texts: check one, walk through clusters, compare two. */
import { useEffect, useState } from "preact/hooks";
import { ComparisonView, type CompareData, type Comparison } from "../compare/page";
import { Name, ShortName, useWording } from "../components/basics";
import { VirtualList } from "../components/virtual-list";
import { toRuns, type Cluster, type Difference, type QueryVerdict, type Service, type Settings, type StoredDocument, type Verdict } from "./service";

interface ToolProps {
  service: Service;
  onProblem: (problem: unknown) => void;
}

/** Features of which the comparison shows the votes. */
const shownFeatures = 40;

/** Returns a comparison of the service as the page of comparisons takes it. */
function toCompareData(told: Comparison & { differences: Difference[] }, places: [string, string]): CompareData {
  const comparison = { ...told, a: { ...told.a, place: places[0] }, b: { ...told.b, place: places[1] } };
  const slots = [comparison.a.signature, comparison.b.signature];
  const equal = slots[0]?.filter((slot, at) => slot === slots[1]?.[at]).length;
  return {
    kind: "compare",
    program: "",
    created: "",
    comparison,
    feature: "",
    shown_features: shownFeatures,
    rule_of_sums: "",
    runs: toRuns(told.differences),
    passages: [],
    prefers_passages: false,
    equal_slots: slots[0] && slots[1] && equal !== undefined ? [equal, slots[0].length] : null,
    smallest: [],
    sentences: [],
  };
}

/** Chooses a collection and keeps its settings. */
function useCollection({ service, onProblem }: ToolProps) {
  const say = useWording();
  const [names, setNames] = useState<string[]>([]);
  const [name, setName] = useState("");
  const [settings, setSettings] = useState<Settings | undefined>();
  useEffect(() => {
    service.listCollections().then(
      (found) => {
        setNames(found.map((it) => it.name));
        setName((known) => known || (found[0]?.name ?? ""));
      },
      onProblem,
    );
  }, [service]);
  useEffect(() => {
    if (name) service.getSettings(name).then(setSettings, onProblem);
  }, [name]);
  const choice = (
    <label class="field">
      {say.text("console.collection")}
      <select value={name} onChange={(event) => setName(event.currentTarget.value)}>
        {names.map((it) => <option value={it} key={it}>{it}</option>)}
      </select>
    </label>
  );
  return { name, settings, choice, isEmpty: names.length === 0 };
}

/** Two texts compared by the service. */
function Compared({ service, onProblem, a, b, settings }: ToolProps & { a: { id?: string | null; text?: string }; b: { id?: string | null; text?: string }; settings?: Settings | undefined }) {
  const say = useWording();
  const [data, setData] = useState<CompareData | null>(null);
  useEffect(() => {
    setData(null);
    service.compare(a.text ?? "", b.text ?? "", settings).then((it) => setData(toCompareData(it, [a.id ?? "", b.id ?? ""])), onProblem);
  }, [a.text, b.text]);
  return data ? <ComparisonView data={data} /> : <p class="muted">{say.text("console.reading")}</p>;
}

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
  if (isEmpty) return <p class="card muted">{say.text("console.noCollections")}</p>;
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

export function ConsoleClusters(props: ToolProps) {
  const { service, onProblem } = props;
  const say = useWording();
  const { name, settings, choice, isEmpty } = useCollection(props);
  const [clusters, setClusters] = useState<Cluster[]>([]);
  const [next, setNext] = useState<string | null>(null);
  const [selected, setSelected] = useState(0);
  const [member, setMember] = useState(0);
  const [texts, setTexts] = useState<[StoredDocument, StoredDocument] | null>(null);
  useEffect(() => {
    setClusters([]);
    if (name) service.listClusters(name, null).then((it) => { setClusters(it.clusters); setNext(it.next); }, onProblem);
  }, [name]);
  const more = () => service.listClusters(name, next).then((it) => { setClusters([...clusters, ...it.clusters]); setNext(it.next); }, onProblem);
  const cluster = clusters[selected];
  const shown: Verdict | undefined = cluster?.members[member];
  useEffect(() => setMember(0), [selected]);
  useEffect(() => {
    setTexts(null);
    if (!cluster || !shown?.id) return;
    Promise.all([service.getDocument(name, cluster.cluster), service.getDocument(name, shown.id)]).then(setTexts, onProblem);
  }, [cluster?.cluster, shown?.id]);
  if (isEmpty) return <p class="card muted">{say.text("console.noCollections")}</p>;
  return (
    <div class="split">
      <div class="side">
        <div class="line">{choice}</div>
        <span class="muted" role="status">{say.text("list.count", { n: clusters.length })}</span>
        {clusters.length === 0 ? (
          <p class="card muted">{say.text("console.noClusters")}</p>
        ) : (
          <VirtualList
            id="clusters"
            label={say.text("section.clusters")}
            count={clusters.length}
            selected={selected}
            onSelect={setSelected}
            render={(at) => (
              <>
                <span class="name"><ShortName text={clusters[at]!.cluster} length={28} /></span>
                <span class="value">{clusters[at]!.members.length + 1}{clusters[at]!.more ? "+" : ""}</span>
                <span class="more">{say.text("cluster.least", { similarity: say.similarity(Math.min(1, ...clusters[at]!.members.map((it) => it.similarity ?? 1))) })}</span>
                <span />
              </>
            )}
          />
        )}
        {next && <button type="button" class="button" onClick={more}>{say.text("console.more")}</button>}
      </div>
      {cluster && (
        <div class="stack">
          <section class="card stack">
            <h2>{say.text("cluster.representative")}: <Name text={cluster.cluster} /></h2>
            <div class="line">
              {cluster.members.map((it, at) => (
                <button type="button" class="button" aria-pressed={at === member} key={it.id} onClick={() => setMember(at)}>
                  <ShortName text={it.id ?? ""} length={40} /> <span class="number">{say.similarity(it.similarity ?? 1)}</span>
                </button>
              ))}
            </div>
          </section>
          {texts && <Compared {...props} a={texts[0]} b={texts[1]} settings={settings} />}
        </div>
      )}
    </div>
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

