/** Pairs near the threshold of a collection for a person to label; the labels choose a threshold for a new collection. */
import { useEffect, useState } from "preact/hooks";
import { Card, Excerpt, Name, ShortName, Stat, useWording } from "../components/basics";
import { Lines, type Line } from "../components/charts";
import { useListState } from "../components/list-state";
import { MarkButtons, MarkLabel } from "../components/mark-buttons";
import { withMark, type Mark } from "../components/review-keys";
import { decisionFile, saveFile, writeDecisionLines } from "../components/save-file";
import { ListEntry, SearchedList } from "../components/searched-list";
import { DiffLegend, SideBySide } from "../components/side-by-side";
import { fold, type Query } from "../report/query";
import { useCollection, type ToolProps } from "./collection-choice";
import { ThresholdInput } from "./create-collection";
import { collectPairs, type Collected, type LabelCandidate } from "./label-pairs";
import { EmptyState, NoCollections, SectionLink } from "./links";
import { findBestThreshold, judgeThreshold, type LabelledPair } from "./plan";
import { OverruledPair } from "./decisions";
import { useChanges, useRequests } from "./requests";
import type { Settings } from "./service";

type Order = "close" | "nearest" | "farthest";
type Marks = ReadonlyMap<LabelCandidate, Mark>;

export function Label(props: ToolProps) {
  const { service, onProblem } = props;
  const say = useWording();
  const { name, settings, choice, isEmpty } = useCollection(props);
  const { isWaiting, send } = useRequests(name, onProblem);
  const [collected, setCollected] = useState<Collected | null>(null);
  const [progress, setProgress] = useState<[number, number]>([0, 0]);
  const [marks, setMarks] = useState<Marks>(new Map());
  useEffect(() => {
    setCollected(null);
    setMarks(new Map());
  }, [name]);
  if (isEmpty) return <NoCollections />;
  const canLabel = settings?.holds === "texts" && settings.threshold !== undefined;
  const collect = () => {
    if (!settings) return;
    setCollected(null);
    setMarks(new Map());
    setProgress([0, 0]);
    const ask = (isCurrent: () => boolean) =>
      collectPairs(service, name, settings, (done, total) => {
        if (isCurrent()) setProgress([done, total]);
      });
    void send(ask, setCollected);
  };
  const setMark = (pair: LabelCandidate, mark: Mark | null) => setMarks((known) => withMark(known, pair, mark));
  return (
    <>
      <section class="card stack">
        <div class="line">
          {choice}
          <button type="button" class="button strong" disabled={!canLabel || isWaiting} onClick={collect}>{say.text("label.collect")}</button>
          {isWaiting && <span class="muted" role="status">{progress[1] === 0 ? say.text("console.reading") : say.text("label.progress", { done: progress[0], total: progress[1] })}</span>}
        </div>
        <p class="muted">{say.text(settings && !canLabel ? "label.cannot" : "label.origin")}</p>
      </section>
      {collected?.pairs.length === 0 && (
        <EmptyState
          why={collected.isIndexing ? "label.indexing" : "label.none"}
          links={[
            { to: "import.title", section: "collections", collection: name },
            { to: "console.check", section: "check", collection: name },
          ]}
        />
      )}
      {collected && collected.pairs.length > 0 && settings && <Labelling key={name} {...props} name={name} settings={settings} collected={collected} marks={marks} onMark={setMark} />}
    </>
  );
}

interface LabellingProps extends ToolProps {
  name: string;
  settings: Settings;
  collected: Collected;
  marks: Marks;
  onMark: (pair: LabelCandidate, mark: Mark | null) => void;
}

/** Returns the pairs that a query finds. */
function findPairs(pairs: readonly LabelCandidate[], query: Query, marks: Marks): LabelCandidate[] {
  return pairs.filter((it) => {
    const mark = marks.get(it);
    const ids = fold(it.ids.join("\n"));
    const text = () => fold(it.texts.join("\n"));
    const isMarked = (wanted: string) => (wanted === "yes" ? mark !== undefined : wanted === "no" ? mark === undefined : mark === wanted);
    return (
      query.similarity.every((test) => test(it.similarity)) &&
      query.marked.every(isMarked) &&
      query.id.every((part) => ids.includes(part)) &&
      query.words.every((part) => ids.includes(part) || text().includes(part)) &&
      query.text.every((part) => text().includes(part))
    );
  });
}

function Labelling({ name, settings, collected, marks, onMark, ...props }: LabellingProps) {
  const say = useWording();
  const { pairs } = collected;
  const threshold = settings.threshold ?? 0;
  const [chosen, setChosen] = useState(threshold);
  const labelled: LabelledPair[] = [...marks].map(([it, mark]) => ({ similarity: it.similarity, isSame: mark === "same" }));
  const { controls, rows, row: pair, markSelected } = useListState<LabelCandidate, Order>({
    orders: ["close", "nearest", "farthest"],
    inputs: [pairs],
    subject: pairs,
    find: (query, order) => {
      const found = query ? findPairs(pairs, query, query.marked.length > 0 ? marks : new Map()) : [...pairs];
      const sign = order === "nearest" ? 1 : -1;
      return order === "close" ? found : found.sort((a, b) => sign * (a.similarity - b.similarity));
    },
    mark: onMark,
  });
  return (
    <>
      {collected.isIndexing && <p class="note">{say.text("label.indexing")}</p>}
      {collected.tooLong > 0 && <p class="note">{say.text("label.tooLong", { n: collected.tooLong })}</p>}
      <Figures labelled={labelled} count={marks.size} threshold={chosen} />
      <div class="split">
        <div class="side">
          <SearchedList
            id="pairs"
            label={say.text("console.label")}
            controls={controls}
            hint="label.searchHint"
            help="label.searchHelp"
            empty={say.text("list.empty")}
            render={(entry) => {
              const it = rows[entry]!;
              return (
                <ListEntry
                  name={<Excerpt text={it.texts[1]} />}
                  value={say.similarity(it.similarity)}
                  more={<>{say.text(`label.from.${it.origin}`)}{say.colon}<ShortName text={it.ids[1]} /> → <ShortName text={it.ids[0]} /></>}
                  mark={<MarkLabel mark={marks.get(it)} />}
                />
              );
            }}
          />
        </div>
        {pair ? (
          <div class="card pair">
            <div class="pair-head">
              <h2>
                {say.text("pair.similarity", { similarity: say.similarity(pair.similarity) })}
                <span class="muted"> · {say.text(pair.similarity >= threshold ? "label.isMatch" : "label.isBelow", { threshold: String(threshold) })}</span>
              </h2>
              <DiffLegend />
            </div>
            <SideBySide
              key={pair.ids.join("\n")}
              kept={pair.texts[0]}
              removed={pair.texts[1]}
              runs={pair.runs}
              keptTitle={<><b>A</b> <Name text={pair.ids[0]} /></>}
              removedTitle={<><b>B</b> <Name text={pair.ids[1]} /></>}
            />
            <MarkButtons mark={marks.get(pair)} onMark={markSelected} />
            <OverruledPair key={pair.ids.join("\n")} {...props} name={name} ids={pair.ids} />
          </div>
        ) : (
          <p class="card muted">{say.text("pair.select")}</p>
        )}
      </div>
      <Choice {...props} settings={settings} marks={marks} labelled={labelled} threshold={chosen} onThreshold={setChosen} />
    </>
  );
}

const figures = ["precision", "recall", "f1"] as const;

/** What the labels say about the threshold that is tried. */
function Figures({ labelled, count, threshold }: { labelled: readonly LabelledPair[]; count: number; threshold: number }) {
  const say = useWording();
  const judged = judgeThreshold(labelled, threshold);
  const share = (value: number | null) => (value === null ? "–" : say.share(value));
  return (
    <div class="stats" role="status">
      <Stat value={say.count(count)} label={say.text("label.marked")} more={say.text("similarity.threshold", { threshold: String(threshold) })} />
      <Stat value={share(judged.precision)} label={say.text("eval.precision")} more={say.text("label.wrong", { n: judged.wrong })} />
      <Stat value={share(judged.recall)} label={say.text("eval.recall")} more={say.text("label.missed", { n: judged.missed })} />
    </div>
  );
}

interface ChoiceProps extends ToolProps {
  settings: Settings;
  marks: Marks;
  labelled: readonly LabelledPair[];
  threshold: number;
  onThreshold: (threshold: number) => void;
}

/** What the labels say about every threshold, and what becomes of them. */
function Choice({ service, onProblem, settings, marks, labelled, threshold, onThreshold }: ChoiceProps) {
  const say = useWording();
  const best = findBestThreshold(labelled);
  const lines: Line[] = figures.map((figure) => ({
    name: say.text(`eval.${figure}`),
    kind: figure,
    points: Array.from({ length: 101 }, (_, at) => ({ x: at / 100, value: judgeThreshold(labelled, at / 100)[figure] })).flatMap(({ x, value }) =>
      value === null ? [] : [{ x, y: value, low: value, high: value }],
    ),
  }));
  const save = () => saveFile(decisionFile, writeDecisionLines([...marks].map(([pair, label]) => ({ ...pair.decision, label }))));
  const title = say.text("label.figures");
  return (
    <Card title={title}>
      {marks.size > 0 && (
        <Lines
          title={title}
          lines={lines}
          ticks={[0, 0.2, 0.4, 0.6, 0.8, 1].map((it): [number, string] => [it, String(it)])}
          axis={say.text("run.threshold")}
          marker={[threshold, say.text("similarity.threshold", { threshold: String(threshold) })]}
        />
      )}
      <p class="muted">{say.text("label.honest")}</p>
      <div class="line">
        <span class="field">{say.text("label.try")} <ThresholdInput value={threshold} onChange={onThreshold} /></span>
        {best !== null && best !== threshold && (
          <button type="button" class="button" onClick={() => onThreshold(best)}>{say.text("label.best", { threshold: String(best) })}</button>
        )}
        <button type="button" class="button" disabled={marks.size === 0} title={say.text("marks.saveTitle")} onClick={save}>{say.text("marks.save")}</button>
      </div>
      <NewCollection {...{ service, onProblem, settings, threshold }} />
    </Card>
  );
}

/** Saves the threshold as settings of a new collection, because that of an existing one never changes. */
function NewCollection({ service, onProblem, settings, threshold }: Pick<ToolProps, "service" | "onProblem"> & { settings: Settings; threshold: number }) {
  const say = useWording();
  const [name, setName] = useState("");
  const [created, setCreated] = useState<{ name: string; threshold: string } | null>(null);
  const { isWaiting, send } = useChanges(onProblem);
  const rename = (changed: string) => {
    setName(changed);
    setCreated(null);
  };
  const create = () =>
    send(() => service.createCollection(name, { ...settings, threshold }), (it) => setCreated({ name: it.name, threshold: String(it.settings.threshold) }));
  return (
    <div class="stack">
      <p>{say.text("label.newAbout")}</p>
      <div class="line">
        <label class="field">{say.text("console.name")} <input value={name} maxLength={64} onInput={(event) => rename(event.currentTarget.value)} /></label>
        <button type="button" class="button strong" disabled={!name || isWaiting} onClick={create}>{say.text("label.create", { threshold: String(threshold) })}</button>
        {created && <span role="status">{say.text("label.created", created)} <SectionLink section="collections" collection={created.name}>{say.text("import.title")}</SectionLink></span>}
      </div>
    </div>
  );
}
