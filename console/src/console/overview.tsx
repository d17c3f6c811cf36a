/** The state of the service, read again two seconds after each answer. */
import { useRef, useState } from "preact/hooks";
import { Card, Name, Stat, useWording } from "../components/basics";
import type { MessageKey } from "../language/catalog";
import { countRate, findQuantile, findRates, type DocumentCount, type Rate } from "./activity";
import type { ToolProps } from "./collection-choice";
import { EmptyState, SectionLink } from "./links";
import { usePolled } from "./polled";
import { ServiceProblem, sumMemory, type Activity, type CollectionState, type Readiness, type Service, type Stats } from "./service";
import { readWindowFill, type WindowFill } from "./window-fill";

interface CollectionReading extends CollectionState {
  stats: Stats | null;
  fill: WindowFill | null;
}

interface Reading {
  readiness: Readiness;
  collections: CollectionReading[];
  /** Null where the key does not permit it. */
  activity: Activity | null;
  /** Free bytes of the disk; null where the key does not permit it. */
  freeBytes: number | null;
}

/** Readings after which the fill of the windows is asked for again. */
const readingsPerFill = 15;
/** Intervals in a chart: those of ten minutes. */
const shownRates = 120;
const unready = ["opening", "stopped", "failed", "full", "damaged", "unreadable"];

/** Returns an answer, or null where the service refuses it to this key. */
const permitted = <T,>(answer: Promise<T>): Promise<T | null> =>
  answer.catch((problem: unknown) => {
    if (problem instanceof ServiceProblem && problem.status !== 401) return null;
    throw problem;
  });

/** Returns a function that reads everything. It asks for the fill of a window with every fifteenth reading only. */
function makeReader(service: Service): () => Promise<Reading> {
  let readings = 0;
  let fills = new Map<string, WindowFill | null>();
  const readCollection = async (state: CollectionState): Promise<CollectionReading> => {
    const stats = await permitted(service.getStats(state.name));
    if (stats && !fills.has(state.name)) fills.set(state.name, await permitted(readWindowFill(service, state.name, stats)));
    return { ...state, stats, fill: fills.get(state.name) ?? null };
  };
  return async () => {
    const [readiness, states, activity, metrics] = await Promise.all([
      service.getReadiness(),
      service.listCollections(),
      permitted(service.getActivity()),
      permitted(service.getMetrics()),
    ]);
    if (readings++ % readingsPerFill === 0) fills = new Map();
    const free = /^lookalike_disk_free_bytes (\S+)/m.exec(metrics ?? "")?.[1];
    return { readiness, collections: await Promise.all(states.map(readCollection)), activity, freeBytes: free === undefined ? null : Number(free) };
  };
}

export function ConsoleOverview({ service, onProblem }: ToolProps) {
  const say = useWording();
  const [read] = useState(() => makeReader(service));
  const reading = usePolled([read], read, onProblem);
  const counted = useCountedRates(reading);
  if (!reading) return <p class="muted">{say.text("console.reading")}</p>;
  const { readiness, collections, activity, freeBytes } = reading;
  const rates = activity ? findRates(activity.samples) : counted;
  const last = rates[rates.length - 1];
  const sum = (of: (stats: Stats) => number) => collections.reduce((all, it) => all + (it.stats ? of(it.stats) : 0), 0);
  const latency = activity && findQuantile(activity, 0.99);
  return (
    <>
      <div class="stats">
        <Stat value={say.count(sum((it) => it.kept))} label={say.text("console.kept")} more={say.text("console.rows", { n: sum((it) => it.rows) })} />
        <Stat
          value={say.decimal(last?.inserted ?? 0, 1)}
          label={say.text("console.rate")}
          more={typeof last?.duplicates === "number" ? say.text("console.duplicateRate", { rate: say.decimal(last.duplicates, 1) }) : undefined}
        />
        <Stat
          value={latency === null ? "–" : showSeconds(say, latency)}
          label={say.text("console.latency")}
          more={say.text(activity && latency === null ? "console.noInserts" : "console.lastMinutes")}
        />
        <Stat value={say.bytes(sum(sumMemory))} label={say.text("console.memory")} />
        <Stat value={freeBytes === null ? "–" : say.bytes(freeBytes)} label={say.text("console.disk")} />
      </div>
      <Card title={say.text("console.rateTitle")}>
        <RateChart rates={rates} />
      </Card>
      {collections.length === 0 ? (
        <EmptyState why="console.noCollections" links={[{ to: "collections.new", section: "new" }]} />
      ) : (
        <Card title={say.text("console.collections")}>
          <div class="wide-table" tabIndex={0} role="group" aria-label={say.text("console.collections")}>
            <table class="labelled">
              <thead>
                <tr>{columns.map(([key, isNumber]) => <th class={isNumber ? "number" : ""} key={key}>{say.text(key)}</th>)}</tr>
              </thead>
              <tbody>
                {collections.map((it) => <CollectionRow collection={it} key={it.name} />)}
              </tbody>
            </table>
          </div>
        </Card>
      )}
      <Complaints readiness={readiness} />
    </>
  );
}

/** Returns the rates between the readings of this page, for a key that the activity is not permitted to. */
function useCountedRates(reading: Reading | undefined): readonly Rate[] {
  const known = useRef<{ reading: Reading; count: DocumentCount; rates: Rate[] } | null>(null);
  if (reading && reading !== known.current?.reading) {
    const count = { at: performance.now(), documents: reading.collections.reduce((all, it) => all + (it.stats?.rows ?? 0), 0) };
    const rates = known.current ? [...known.current.rates, countRate(known.current.count, count)].slice(-shownRates) : [];
    known.current = { reading, count, rates };
  }
  return known.current?.rates ?? [];
}

const columns: readonly (readonly [key: MessageKey, isNumber: boolean])[] = [
  ["console.name", false],
  ["console.state", false],
  ["console.kept", true],
  ["console.documentCount", true],
  ["console.window", true],
  ["collections.memory", true],
];

function CollectionRow({ collection: { name, state, stats, fill } }: { collection: CollectionReading }) {
  const say = useWording();
  const cells = [
    <SectionLink section="collections" collection={name}><Name text={name} /></SectionLink>,
    say.known(`state.${state}`, state),
    stats ? <SectionLink section="clusters" collection={name}>{say.count(stats.kept)}</SectionLink> : "–",
    stats ? say.count(stats.rows) : "–",
    fill ? say.text("console.fill", { window: fill.window, share: fill.share === null ? "–" : say.share(fill.share) }) : "–",
    stats ? say.bytes(sumMemory(stats)) : "–",
  ];
  return (
    <tr>
      {columns.map(([key, isNumber], at) => (
        <td class={isNumber ? "number" : ""} data-label={at > 0 ? say.text(key) : undefined} key={key}>{cells[at]}</td>
      ))}
    </tr>
  );
}

function showSeconds(say: ReturnType<typeof useWording>, seconds: number): string {
  if (!Number.isFinite(seconds)) return say.text("console.slow");
  return seconds < 1 ? say.text("console.milliseconds", { n: say.decimal(1000 * seconds, 1) }) : say.text("unit.seconds", { n: say.decimal(seconds, 0) });
}

/** What keeps the service from being ready. */
function Complaints({ readiness }: { readiness: Readiness }) {
  const say = useWording();
  const complaints = unready.flatMap((state) => {
    const found = readiness[state];
    const names = Array.isArray(found) ? found.map(String).join(", ") : found ? String(found) : "";
    return names ? [[state, names] as const] : [];
  });
  return (
    <Card title={say.text(readiness.ready ? "console.ready" : "console.notReady")}>
      {complaints.length === 0 ? (
        <p class="muted">{say.text("console.readyNote")}</p>
      ) : (
        complaints.map(([state, names]) => (
          <p class="note" key={state}><strong>{say.known(`state.${state}`, state)}</strong>{say.colon}<Name text={names} /></p>
        ))
      )}
    </Card>
  );
}

/** The last rates as lines, the newest at the right. */
function RateChart({ rates }: { rates: readonly Rate[] }) {
  const say = useWording();
  const shown = rates.slice(-shownRates);
  const most = Math.max(1, ...shown.map((it) => it.inserted));
  const last = shown[shown.length - 1];
  const drawLine = (kind: string, values: readonly number[]) => {
    const points = values.map((value, at) => `${((shownRates - values.length + at) / (shownRates - 1)) * 600} ${56 - (value / most) * 52}`);
    return points.length > 1 && <path class={`curve ${kind}`} d={`M${points.join(" L")}`} vector-effect="non-scaling-stroke" />;
  };
  const title = say.text("console.rateTitle");
  const now = say.text("console.rateNow", { rate: say.decimal(last?.inserted ?? 0, 1), most: say.decimal(Math.max(0, ...shown.map((it) => it.inserted)), 1) });
  return (
    <>
      <svg class="chart" viewBox="0 0 600 60" preserveAspectRatio="none" role="img" aria-label={`${title}: ${now}`} style={{ height: "60px" }}>
        <line class="axis" x1="0" x2="600" y1="58" y2="58" />
        {drawLine("", shown.map((it) => it.inserted))}
        {typeof last?.duplicates === "number" && drawLine("recall", shown.map((it) => it.duplicates ?? 0))}
      </svg>
      <div class="muted line">
        <span class="line"><svg class="chart key" viewBox="0 0 36 12" aria-hidden="true"><path class="curve" d="M0 6H36" /></svg> {now}</span>
        {typeof last?.duplicates === "number" && (
          <span class="line">
            <svg class="chart key" viewBox="0 0 36 12" aria-hidden="true"><path class="curve recall" d="M0 6H36" /></svg> {say.text("console.duplicateRate", { rate: say.decimal(last.duplicates, 1) })}
          </span>
        )}
      </div>
    </>
  );
}
