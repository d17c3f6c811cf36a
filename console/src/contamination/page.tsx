/** Items of benchmarks in a corpus: how many of each are found, the worst findings beside their items, and what scores leave out. */
import { Fragment, type ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { Card, Facts, Name, ShortName, Stat, useWording, Visible } from "../components/basics";
import { Histogram } from "../components/charts";
import { CopyButton } from "../components/copy-button";
import { listKeys } from "../components/key-help";
import { useListState } from "../components/list-state";
import { ListEntry, SearchedList } from "../components/searched-list";
import { Shell, useFooter } from "../components/shell";
import type { Wording } from "../language/catalog";
import { fold, type Query } from "../report/query";

/** A text with the words that both sides of a finding have: start and end of each run in UTF-16 units. */
interface MarkedText {
  text: string;
  marks: [start: number, end: number][];
}

interface Benchmark {
  name: string;
  items: number;
  found: number;
  found_both: number;
  documents: number;
  rejected: number;
  findings: number;
  found_items: string[];
}

interface Finding {
  benchmark: number;
  item: string;
  found: "question" | "answer" | "both";
  score: number;
  documents: number;
  id: string;
  source: string;
  row: number;
  question: MarkedText;
  choices: MarkedText[];
  answer: MarkedText;
  excerpt: MarkedText;
  continues: [before: boolean, behind: boolean];
}

export interface ContaminationData {
  kind: "contamination";
  program: string;
  created: string;
  summary: {
    documents: number;
    kept: number;
    removed: number;
    cut: number;
    findings: number;
    items: number;
    items_found: number;
    short_items: number;
    boilerplate: number;
    rejected: number;
    bytes: number;
  };
  written: [string, string][];
  scores: number[];
  benchmark_count: number;
  benchmarks: Benchmark[];
  findings: Finding[];
  boilerplate_count: number;
  boilerplate: { benchmark: string; item: string; question: string; documents: number }[];
}

export const readContamination = (data: { kind: string }): ContaminationData | null =>
  data.kind === "contamination" ? (data as ContaminationData) : null;

/** Cuts a text into parts that are marked and parts that are not, in order. */
export function splitMarks({ text, marks }: MarkedText): { text: string; isMarked: boolean }[] {
  const parts: { text: string; isMarked: boolean }[] = [];
  let end = 0;
  const push = (to: number, isMarked: boolean) => {
    if (to > end) parts.push({ text: text.slice(end, to), isMarked });
    end = Math.max(end, to);
  };
  for (const [start, stop] of marks) {
    push(start, false);
    push(stop, true);
  }
  push(text.length, false);
  return parts;
}

/** Returns the statement of a benchmark for whoever publishes scores, with the ids that scores leave out. */
export function writeStatement(say: Wording, { name, items, found, found_items }: Benchmark): string {
  const statement = say.text("contamination.statement", { name, items, n: found });
  const rest = found - found_items.length;
  return [statement, ...found_items, ...(rest > 0 ? [say.text("contamination.furtherIds", { n: rest })] : [])].join("\n");
}

const sections = ["overview", "findings", "scores"] as const;
type Section = (typeof sections)[number];

export function ContaminationPage({ data, onLanguage }: { data: ContaminationData; onLanguage: () => void }) {
  const say = useWording();
  const footer = useFooter(data.created, data.program);
  const [section, setSection] = useState<Section>("overview");
  const open = (name: string) => {
    setSection(name as Section);
    window.scrollTo(0, 0);
  };
  return (
    <Shell
      title={say.text("contamination.title")}
      sections={sections.map((name) => [name, say.text(`contamination.section.${name}`)] as const)}
      section={section}
      onSection={open}
      onLanguage={onLanguage}
      keys={listKeys}
      footer={footer}
    >
      {section === "overview" && <Overview data={data} />}
      {section === "findings" && <Findings data={data} />}
      {section === "scores" && <Scores data={data} />}
    </Shell>
  );
}

const shareOf = (say: Wording, part: number, whole: number) => say.share(whole > 0 ? part / whole : 0);

function Overview({ data }: { data: ContaminationData }) {
  const say = useWording();
  const { summary, written } = data;
  const contaminated = summary.removed + summary.cut;
  return (
    <>
      <div class="stats">
        <Stat value={say.count(summary.documents)} label={say.text("stat.documents")} more={say.text("stat.bytes", { size: say.bytes(summary.bytes) })} />
        <Stat
          value={say.count(contaminated)}
          label={say.text("contamination.documents")}
          more={summary.cut > 0 ? say.text("contamination.cut", { n: summary.cut }) : say.text("stat.share", { share: shareOf(say, contaminated, summary.documents) })}
        />
        <Stat value={say.count(summary.findings)} label={say.text("contamination.findings")} />
        <Stat value={say.count(summary.items_found)} label={say.text("contamination.itemsFound")} more={say.text("contamination.ofItems", { n: summary.items })} />
        <Stat value={say.count(summary.rejected)} label={say.text("stat.rejected")} />
      </div>
      <Card title={say.text("contamination.benchmarks")}>
        <BenchmarkTable data={data} />
        {summary.short_items > 0 && <p class="muted">{say.text("contamination.short", { n: summary.short_items })}</p>}
      </Card>
      <div class="grid">
        <ScoreChart data={data} />
        {written.length > 0 && (
          <Card title={say.text("run.outputs")}>
            <Facts rows={written.map(([role, path]) => [say.known(`output.${role}`, role), <Name text={path} />] as const)} />
          </Card>
        )}
      </div>
      {data.boilerplate_count > 0 && <Boilerplate data={data} />}
    </>
  );
}

function BenchmarkTable({ data }: { data: ContaminationData }) {
  const say = useWording();
  const { benchmarks, benchmark_count } = data;
  const columns = ["items", "found", "share", "both", "documents"] as const;
  const cells = (it: Benchmark): Record<(typeof columns)[number], string> => ({
    items: say.count(it.items),
    found: say.count(it.found),
    share: shareOf(say, it.found, it.items),
    both: say.count(it.found_both),
    documents: say.count(it.documents),
  });
  return (
    <>
      <div class="wide-table" tabIndex={0} role="group" aria-label={say.text("contamination.benchmarks")}>
        <table class="labelled">
          <thead>
            <tr>
              <th>{say.text("contamination.benchmark")}</th>
              {columns.map((column) => <th class="number" key={column}>{say.text(`contamination.column.${column}`)}</th>)}
            </tr>
          </thead>
          <tbody>
            {benchmarks.map((it) => {
              const values = cells(it);
              return (
                <tr key={it.name}>
                  <td>
                    <Name text={it.name} />
                    {it.rejected > 0 && <span class="muted"> {say.text("contamination.rejected", { n: it.rejected })}</span>}
                  </td>
                  {columns.map((column) => <td class="number" key={column} data-label={say.text(`contamination.column.${column}`)}>{values[column]}</td>)}
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
      {benchmarks.length < benchmark_count && <p class="note">{say.text("contamination.moreBenchmarks", { listed: benchmarks.length, total: benchmark_count })}</p>}
    </>
  );
}

/** Widths of the bars of scores, in hundredths. */
const barHundredths = 2;

function ScoreChart({ data }: { data: ContaminationData }) {
  const say = useWording();
  const { scores } = data;
  const first = scores.findIndex((count) => count > 0);
  if (first < 0) return <Card title={say.text("contamination.scores")}><p class="muted">{say.text("contamination.none")}</p></Card>;
  const from = Math.floor(Math.min(first, 90) / 10) * 10;
  const span = 100 - from + barHundredths + 1;
  const place = (hundredth: number) => (hundredth - from) / span;
  const bars = [];
  for (let at = from; at < 100; at += barHundredths) {
    const value = scores.slice(at, Math.min(100, at + barHundredths)).reduce((sum, count) => sum + count, 0);
    const label = `${(at / 100).toFixed(2)}–${((at + barHundredths) / 100).toFixed(2)}`;
    bars.push({ start: place(at), end: place(at + barHundredths), value, label, title: say.text("contamination.bar", { range: label, n: value }) });
  }
  const exact = scores[100] ?? 0;
  bars.push({ start: place(101), end: 1, value: exact, label: "1", title: say.text("contamination.bar", { range: say.text("similarity.exact"), n: exact }) });
  const ticks: [number, string][] = [];
  for (let at = from; at <= 100; at += 10) ticks.push([place(at === 100 ? 102 : at), at === 100 ? "1" : (at / 100).toFixed(1)]);
  const title = say.text("contamination.scores");
  return (
    <Card title={title}>
      <Histogram title={title} bars={bars} ticks={ticks} axis={say.text("contamination.score")} values={say.text("contamination.findings")} />
      <p class="muted">{say.text("contamination.scoreNote")}</p>
    </Card>
  );
}

function Boilerplate({ data }: { data: ContaminationData }) {
  const say = useWording();
  const { boilerplate, boilerplate_count } = data;
  return (
    <Card title={say.text("contamination.boilerplate")}>
      <p class="muted">{say.text("contamination.boilerplateNote", { n: data.summary.boilerplate })}</p>
      <table class="stacked">
        <tbody>
          {boilerplate.map((it) => (
            <tr key={`${it.benchmark}\n${it.item}`}>
              <td><bdi><Visible text={it.question} /></bdi></td>
              <td class="muted"><Name text={it.benchmark} /> <Name text={it.item} /></td>
              <td class="number">{say.text("cluster.documents", { n: it.documents })}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {boilerplate.length < boilerplate_count && <p class="muted">{say.text("cluster.listed", { listed: boilerplate.length, total: boilerplate_count })}</p>}
    </Card>
  );
}

type Order = "worst" | "spread" | "name";

const orders: Record<Order, (a: Finding, b: Finding) => number> = {
  worst: () => 0,
  spread: (a, b) => b.documents - a.documents,
  name: (a, b) => (a.id < b.id ? -1 : a.id > b.id ? 1 : 0),
};

/** Returns the findings that a query finds. `similarity` is the score, `cluster` the number of documents with the item. */
function filterFindings(data: ContaminationData, findings: readonly Finding[], query: Query): Finding[] {
  return findings.filter((it) => {
    const names = fold(`${data.benchmarks[it.benchmark]!.name}\n${it.item}\n${it.id}`);
    const text = () => fold([it.question, ...it.choices, it.answer, it.excerpt].map((part) => part.text).join("\n"));
    return (
      query.similarity.every((test) => test(it.score)) &&
      query.cluster.every((test) => test(it.documents)) &&
      query.id.every((part) => fold(`${it.item}\n${it.id}`).includes(part)) &&
      query.source.every((part) => fold(it.source).includes(part)) &&
      query.words.every((part) => names.includes(part) || text().includes(part)) &&
      query.text.every((part) => text().includes(part))
    );
  });
}

function Findings({ data }: { data: ContaminationData }) {
  const say = useWording();
  const { benchmarks, findings, summary } = data;
  const withFindings = benchmarks.flatMap((it, at) => (it.findings > 0 ? [at] : []));
  const [benchmark, setBenchmark] = useState<number | null>(null);
  const { controls, rows, row } = useListState<Finding, Order>({
    orders: ["worst", "spread", "name"],
    inputs: [data, benchmark],
    subject: benchmark,
    find: (query, order) => {
      const chosen = findings.filter((it) => benchmark === null || it.benchmark === benchmark);
      return (query ? filterFindings(data, chosen, query) : chosen).sort(orders[order]);
    },
  });
  if (findings.length === 0) return <p class="card muted">{say.text("contamination.none")}</p>;
  const listed = benchmark === null ? findings.length : findings.filter((it) => it.benchmark === benchmark).length;
  const total = benchmark === null ? summary.findings : benchmarks[benchmark]!.findings;
  const filter = (
    <label class="field">
      {say.text("contamination.benchmark")}
      <select value={benchmark ?? ""} onChange={(event) => setBenchmark(event.currentTarget.value === "" ? null : Number(event.currentTarget.value))}>
        <option value="">{say.text("contamination.all")}</option>
        {withFindings.map((at) => <option value={at} key={at}>{benchmarks[at]!.name}</option>)}
      </select>
    </label>
  );
  return (
    <>
      {listed < total && <p class="note">{say.text("contamination.sample", { listed, total })}</p>}
      <div class="split">
        <div class="side">
          <SearchedList
            id="findings"
            label={say.text("contamination.section.findings")}
            controls={controls}
            hint="contamination.searchHint"
            help="contamination.searchHelp"
            filters={filter}
            empty={say.text("list.empty")}
            render={(at) => {
              const it = rows[at]!;
              return (
                <ListEntry
                  name={<><ShortName text={benchmarks[it.benchmark]!.name} /> <ShortName text={it.item} /></>}
                  value={say.similarity(it.score)}
                  more={<>→ <ShortName text={it.id} /></>}
                  mark={<span class="muted">{say.text(`contamination.found.${it.found}`)}</span>}
                />
              );
            }}
          />
        </div>
        {row ? <FindingView data={data} finding={row} /> : <p class="card muted">{say.text("pair.select")}</p>}
      </div>
    </>
  );
}

function FindingView({ data, finding }: { data: ContaminationData; finding: Finding }) {
  const say = useWording();
  const benchmark = data.benchmarks[finding.benchmark]!;
  const [before, behind] = finding.continues;
  return (
    <section class="card pair">
      <h2><Name text={benchmark.name} /> <Name text={finding.item} /></h2>
      <Facts
        rows={[
          [say.text("contamination.found"), say.text(`contamination.found.${finding.found}`)],
          [say.text("contamination.score"), <span class="number">{say.similarity(finding.score)}</span>],
          [say.text("contamination.place"), <Name text={say.text("pair.row", { source: finding.source, row: finding.row })} />],
          [say.text("contamination.column.documents"), say.text("contamination.itemDocuments", { n: finding.documents })],
        ]}
      />
      <div class="sides scrolled texts">
        <div class="left title"><b>{say.text("contamination.item")}</b> <Name text={finding.item} /></div>
        <div class="right title"><b>{say.text("passages.document")}</b> <Name text={finding.id} /></div>
        <div class="left text" tabIndex={0} role="group" aria-label={say.text("contamination.item")}>
          <div class="stack">
            <Words marked={finding.question} />
            {finding.choices.length > 0 && (
              <div>
                <h3>{say.text("contamination.choices")}</h3>
                <ol type="A">{finding.choices.map((choice, at) => <li key={at}><Words marked={choice} /></li>)}</ol>
              </div>
            )}
            {finding.answer.text !== "" && (
              <div>
                <h3>{say.text("contamination.answer")}</h3>
                <Words marked={finding.answer} />
              </div>
            )}
          </div>
        </div>
        <div class="right text" tabIndex={0} role="group" aria-label={say.text("passages.document")}>
          <Words marked={finding.excerpt} before={before && "… "} behind={behind && " …"} />
        </div>
      </div>
      <p class="muted">{say.text("contamination.marked")}</p>
    </section>
  );
}

/** A text with its marked words. */
function Words({ marked, before, behind }: { marked: MarkedText; before?: ComponentChildren; behind?: ComponentChildren }) {
  return (
    <div class="words" dir="auto">
      {before}
      {splitMarks(marked).map((part, at) => (
        <Fragment key={at}>{part.isMarked ? <mark class="verbatim"><Visible text={part.text} /></mark> : <Visible text={part.text} />}</Fragment>
      ))}
      {behind}
    </div>
  );
}

function Scores({ data }: { data: ContaminationData }) {
  const say = useWording();
  const found = data.benchmarks.filter((it) => it.found > 0);
  if (found.length === 0) return <p class="card muted">{say.text("contamination.none")}</p>;
  const statements = found.map((it) => writeStatement(say, it));
  return (
    <>
      <section class="card line apart">
        <p>{say.text("contamination.scoresNote")}</p>
        <CopyButton text={`${statements.join("\n\n")}\n`} label={say.text("contamination.copyAll")} />
      </section>
      {found.map((it, at) => (
        <section class="card" key={it.name}>
          <h2><Name text={it.name} /></h2>
          <div class="stack">
            <pre class="clipped" tabIndex={0} dir="auto"><Visible text={statements[at]!} /></pre>
            <CopyButton text={`${statements[at]}\n`} label={say.text("contamination.copy")} />
          </div>
        </section>
      ))}
    </>
  );
}
