/** The state of the service, read again two seconds after each answer. */
import { useEffect, useRef, useState } from "preact/hooks";
import { Card, Name, Stat, useWording } from "../components/basics";
import type { MessageKey } from "../language/catalog";
import { findQuantile, readSamples, ServiceProblem, sumSamples, type CollectionState, type Readiness, type Service, type Stats } from "./service";
import { readWindowFill, type WindowFill } from "./window-fill";

interface CollectionReading extends CollectionState {
  stats: Stats | null;
  fill: WindowFill | null;
}

interface Reading {
  at: number;
  readiness: Readiness;
  collections: CollectionReading[];
  metrics: string;
}

/** Documents per second, and how many of them are duplicates; null where the key does not permit the metrics. */
interface Rate {
  inserted: number;
  duplicates: number | null;
}

const everyMilliseconds = 2000;
/** Readings after which the fill of the windows is asked for again. */
const readingsPerFill = 15;
const shownRates = 60;
const unready = ["opening", "stopped", "failed", "full", "damaged", "unreadable"];

export function ConsoleOverview({ service, onProblem }: { service: Service; onProblem: (problem: unknown) => void }) {
  const say = useWording();
  const [reading, setReading] = useState<Reading | null>(null);
  const [rates, setRates] = useState<Rate[]>([]);
  const before = useRef<Reading | null>(null);
  useEffect(() => {
    let isActive = true;
    let readings = 0;
    let fills = new Map<string, WindowFill | null>();
    const read = async () => {
      try {
        const [readiness, states, metrics] = await Promise.all([service.getReadiness(), service.listCollections(), service.getMetrics()]);
        const permitted = <T,>(answer: Promise<T>) =>
          answer.catch((problem: unknown) => {
            if (problem instanceof ServiceProblem) return null;
            throw problem;
          });
        const at = performance.now();
        if (readings++ % readingsPerFill === 0) fills = new Map();
        const readCollection = async (state: CollectionState): Promise<CollectionReading> => {
          const stats = await permitted(service.getStats(state.name));
          if (stats && !fills.has(state.name)) fills.set(state.name, await permitted(readWindowFill(service, state.name, stats)));
          return { ...state, stats, fill: fills.get(state.name) ?? null };
        };
        const collections = await Promise.all(states.map(readCollection));
        if (!isActive) return;
        const now: Reading = { at, readiness, collections, metrics };
        const rate = before.current && findRate(before.current, now);
        if (rate) setRates((known) => [...known, rate].slice(-shownRates));
        before.current = now;
        setReading(now);
      } catch (problem) {
        if (isActive) onProblem(problem);
      }
    };
    let timer = 0;
    const readAgain = async () => {
      await read();
      if (isActive) timer = setTimeout(readAgain, everyMilliseconds);
    };
    void readAgain();
    return () => {
      isActive = false;
      clearTimeout(timer);
    };
  }, [service]);
  if (!reading) return <p class="muted">{say.text("console.reading")}</p>;
  const { readiness, collections, metrics } = reading;
  const last = rates[rates.length - 1];
  const sum = (of: (stats: Stats) => number) => collections.reduce((all, it) => all + (it.stats ? of(it.stats) : 0), 0);
  const buckets = readSamples(metrics, "lookalike_request_seconds_bucket", 'call="insert"', "le");
  const latency = findQuantile(buckets, 0.99);
  const free = Number(/^lookalike_disk_free_bytes (\S+)/m.exec(metrics)?.[1] ?? NaN);
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
        />
        <Stat value={say.bytes(sum(sumMemory))} label={say.text("console.memory")} />
        <Stat value={Number.isNaN(free) ? "–" : say.bytes(free)} label={say.text("console.disk")} />
      </div>
      <Card title={say.text("console.rateTitle")}>
        <RateChart rates={rates} />
      </Card>
      <Card title={say.text("console.collections")}>
        {collections.length === 0 ? (
          <p class="muted">{say.text("console.noCollections")}</p>
        ) : (
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
        )}
      </Card>
      <Complaints readiness={readiness} />
    </>
  );
}

const columns: readonly (readonly [key: MessageKey, isNumber: boolean])[] = [
  ["console.name", false],
  ["console.state", false],
  ["console.kept", true],
  ["console.documents", true],
  ["console.window", true],
  ["collections.memory", true],
];

function CollectionRow({ collection: { name, state, stats, fill } }: { collection: CollectionReading }) {
  const say = useWording();
  const cells = [
    <Name text={name} />,
    say.known(`state.${state}`, state),
    stats ? say.count(stats.kept) : "–",
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

const sumMemory = (stats: Stats) => Object.values(stats.memory).reduce((all, bytes) => all + bytes, 0);

function showSeconds(say: ReturnType<typeof useWording>, seconds: number): string {
  if (!Number.isFinite(seconds)) return say.text("console.slow");
  return seconds < 1 ? say.text("console.milliseconds", { n: say.decimal(1000 * seconds, 1) }) : say.text("unit.seconds", { n: say.decimal(seconds, 0) });
}

/** Returns what was inserted between two readings. Without metrics, the numbers of documents stand for it. */
function findRate(before: Reading, now: Reading): Rate {
  const perSecond = (count: number) => Math.max(0, (1000 * count) / (now.at - before.at));
  const difference = (result: string) => {
    const counts = [now, before].map((it) => sumSamples(it.metrics, "lookalike_documents_total", `result="${result}"`));
    return typeof counts[0] === "number" && typeof counts[1] === "number" ? counts[0] - counts[1] : null;
  };
  const [kept, duplicates] = [difference("kept"), difference("duplicate")];
  if (kept === null || duplicates === null) return { inserted: perSecond(countDocuments(now) - countDocuments(before)), duplicates: null };
  return { inserted: perSecond(kept + duplicates), duplicates: perSecond(duplicates) };
}

const countDocuments = (reading: Reading) => reading.collections.reduce((all, it) => all + (it.stats?.rows ?? 0), 0);

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
          <p class="note" key={state}><strong>{say.known(`state.${state}`, state)}</strong>: <Name text={names} /></p>
        ))
      )}
    </Card>
  );
}

/** The last rates as lines. */
function RateChart({ rates }: { rates: readonly Rate[] }) {
  const say = useWording();
  const most = Math.max(1, ...rates.map((it) => it.inserted));
  const last = rates[rates.length - 1];
  const drawLine = (kind: string, values: readonly number[]) => {
    const points = values.map((value, at) => `${(at / (shownRates - 1)) * 600} ${56 - (value / most) * 52}`);
    return points.length > 1 && <path class={`curve ${kind}`} d={`M${points.join(" L")}`} vector-effect="non-scaling-stroke" />;
  };
  const title = say.text("console.rateTitle");
  const now = say.text("console.rateNow", { rate: say.decimal(last?.inserted ?? 0, 1), most: say.decimal(Math.max(0, ...rates.map((it) => it.inserted)), 1) });
  return (
    <>
      <svg class="chart" viewBox="0 0 600 60" preserveAspectRatio="none" role="img" aria-label={`${title}: ${now}`} style={{ height: "60px" }}>
        <line class="axis" x1="0" x2="600" y1="58" y2="58" />
        {drawLine("", rates.map((it) => it.inserted))}
        {last?.duplicates !== null && drawLine("recall", rates.map((it) => it.duplicates ?? 0))}
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
