/** The state of the service, read every two seconds. */
import { useEffect, useRef, useState } from "preact/hooks";
import { Card, Name, Stat, useWording } from "../components/basics";
import { findQuantile, readSamples, ServiceProblem, type CollectionState, type Readiness, type Service, type Stats } from "./service";

interface Reading {
  at: number;
  readiness: Readiness;
  collections: (CollectionState & { stats: Stats | null })[];
  metrics: string;
}

const everyMilliseconds = 2000;
const unready = ["opening", "stopped", "failed", "full", "damaged", "unreadable"];

export function ConsoleOverview({ service, onProblem }: { service: Service; onProblem: (problem: unknown) => void }) {
  const say = useWording();
  const [reading, setReading] = useState<Reading | null>(null);
  const [rates, setRates] = useState<number[]>([]);
  const before = useRef<Reading | null>(null);
  useEffect(() => {
    let isActive = true;
    const read = async () => {
      try {
        const [readiness, states, metrics] = await Promise.all([service.getReadiness(), service.listCollections(), service.getMetrics()]);
        const statsOf = (name: string) =>
          service.getStats(name).catch((problem: unknown) => {
            if (problem instanceof ServiceProblem) return null;
            throw problem;
          });
        const collections = await Promise.all(states.map(async (it) => ({ ...it, stats: await statsOf(it.name) })));
        if (!isActive) return;
        const now: Reading = { at: performance.now(), readiness, collections, metrics };
        if (before.current) {
          const rate = (1000 * (countDocuments(now) - countDocuments(before.current))) / (now.at - before.current.at);
          setRates((known) => [...known, Math.max(0, rate)].slice(-60));
        }
        before.current = now;
        setReading(now);
      } catch (problem) {
        if (isActive) onProblem(problem);
      }
    };
    void read();
    const timer = setInterval(read, everyMilliseconds);
    return () => {
      isActive = false;
      clearInterval(timer);
    };
  }, [service]);
  if (!reading) return <p class="muted">{say.text("console.reading")}</p>;
  const { readiness, collections, metrics } = reading;
  const sum = (of: (stats: Stats) => number) => collections.reduce((all, it) => all + (it.stats ? of(it.stats) : 0), 0);
  const buckets = readSamples(metrics, "lookalike_request_seconds_bucket", 'call="insert"', "le");
  const latency = findQuantile(buckets, 0.99);
  const free = Number(/^lookalike_disk_free_bytes (\S+)/m.exec(metrics)?.[1] ?? NaN);
  return (
    <>
      <div class="stats">
        <Stat value={say.count(sum((it) => it.kept))} label={say.text("console.kept")} more={say.text("console.rows", { n: sum((it) => it.rows) })} />
        <Stat value={say.decimal(rates[rates.length - 1] ?? 0, 1)} label={say.text("console.rate")} />
        <Stat
          value={latency === null ? "–" : showSeconds(say, latency)}
          label={say.text("console.latency")}
        />
        <Stat value={say.bytes(sum((it) => Object.values(it.memory).reduce((a, b) => a + b, 0)))} label={say.text("console.memory")} />
        <Stat value={Number.isNaN(free) ? "–" : say.bytes(free)} label={say.text("console.disk")} />
      </div>
      <Card title={say.text("console.rateTitle")}>
        <Spark values={rates} title={say.text("console.rateTitle")} />
      </Card>
      <Card title={say.text("console.collections")}>
        {collections.length === 0 ? (
          <p class="muted">{say.text("console.noCollections")}</p>
        ) : (
          <div class="wide-table" tabIndex={0} role="group" aria-label={say.text("console.collections")}>
            <table>
              <thead>
                <tr>
                  <th>{say.text("console.name")}</th><th>{say.text("console.state")}</th><th class="number">{say.text("console.kept")}</th>
                  <th class="number">{say.text("console.documents")}</th><th class="number">{say.text("console.memory")}</th>
                </tr>
              </thead>
              <tbody>
                {collections.map((it) => (
                  <tr key={it.name}>
                    <td><Name text={it.name} /></td>
                    <td>{say.known(`state.${it.state}`, it.state)}</td>
                    <td class="number">{it.stats ? say.count(it.stats.kept) : "–"}</td>
                    <td class="number">{it.stats ? say.count(it.stats.rows) : "–"}</td>
                    <td class="number">{it.stats ? say.bytes(Object.values(it.stats.memory).reduce((a, b) => a + b, 0)) : "–"}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        )}
      </Card>
      <Complaints readiness={readiness} />
    </>
  );
}

function showSeconds(say: ReturnType<typeof useWording>, seconds: number): string {
  if (!Number.isFinite(seconds)) return say.text("console.slow");
  return seconds < 1 ? say.text("console.milliseconds", { n: say.decimal(1000 * seconds, 1) }) : say.text("unit.seconds", { n: say.decimal(seconds, 0) });
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

/** The last values as a line. */
function Spark({ values, title }: { values: readonly number[]; title: string }) {
  const say = useWording();
  const most = Math.max(1, ...values);
  const points = values.map((value, at) => `${(at / 59) * 600} ${56 - (value / most) * 52}`);
  return (
    <svg class="chart" viewBox="0 0 600 60" preserveAspectRatio="none" role="img" aria-label={`${title}: ${say.decimal(values[values.length - 1] ?? 0, 1)}`} style={{ height: "60px" }}>
      <line class="axis" x1="0" x2="600" y1="58" y2="58" />
      {points.length > 1 && <path class="curve" d={`M${points.join(" L")}`} vector-effect="non-scaling-stroke" />}
    </svg>
  );
}
