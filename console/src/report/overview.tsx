/** What went in and came out, in numbers and pictures. */
import { Card, Name, Phrase, Stat, useWording } from "../components/basics";
import { Histogram, type Bar } from "../components/charts";
import type { Report } from "./data";
import type { View } from "./address";
import { sayRoute } from "./route";

export function Overview({ report, onOpen }: { report: Report; onOpen: (view: View) => void }) {
  const say = useWording();
  const { kind, summary, bad_rows: badRows, clusters, removals } = report.data;
  const suspicious = summary.suspicious ?? [];
  return (
    <>
      <div class="stats">
        <Stat
          value={say.count(summary.documents)}
          label={say.text("stat.documents")}
          more={[
            say.text("stat.bytes", { size: say.bytes(summary.bytes) }),
            summary.bytes_per_second && say.text("stat.speed", { rate: say.decimal(summary.bytes_per_second / 1e6, 1) }),
          ]
            .filter(Boolean)
            .join(" · ")}
        />
        {summary.pairs !== undefined && <Stat value={say.count(summary.pairs)} label={say.text("stat.pairs.pairs")} />}
        {summary.equal_texts !== undefined && <Stat value={say.count(summary.equal_texts)} label={say.text("stat.equalTexts.pairs")} />}
        {summary.kept !== undefined && (
          <Stat value={say.count(summary.kept)} label={say.text("stat.kept")} more={shareOf(say, summary.kept, summary.documents)} />
        )}
        {summary.removed !== undefined && (
          <Stat value={say.count(summary.removed)} label={say.text("stat.removed")} more={shareOf(say, summary.removed, summary.documents)} />
        )}
        {summary.clusters !== undefined && <Stat
          value={say.count(summary.clusters)}
          label={say.text("stat.clusters")}
          more={[
            summary.largest?.[0] && say.text("stat.largest", { n: summary.largest[0].documents }),
            summary.components !== undefined && say.text("stat.components", { n: summary.components }),
          ]
            .filter(Boolean)
            .join(" · ")}
        />}
        <Stat
          value={say.count(summary.rejected)}
          label={say.text("stat.rejected")}
          more={summary.against > 0 ? say.text("stat.reference", { n: summary.against }) : undefined}
        />
      </div>
      {kind === "dedup" && <Flow report={report} />}
      <Doubtful report={report} onOpen={onOpen} />
      <div class="grid">
        <Similarities report={report} />
        {kind === "dedup" && <Sizes report={report} />}
      </div>
      {suspicious.length > 0 && <Suspicious report={report} />}
      {badRows.length > 0 && <BadRows report={report} />}
      {removals.id.length < removals.total && (
        <p class="note">{say.text("sample.removals", { listed: removals.id.length, total: removals.total })}</p>
      )}
      {kind === "dedup" && clusters.id.length < clusters.total && (
        <p class="note">{say.text("sample.clusters", { listed: clusters.id.length, total: clusters.total })}</p>
      )}
    </>
  );
}

const shareOf = (say: ReturnType<typeof useWording>, part: number, whole: number) =>
  whole > 0 ? say.text("stat.share", { share: say.share(part / whole) }) : undefined;

function Flow({ report }: { report: Report }) {
  const say = useWording();
  const { summary } = report.data;
  const routes = Object.entries(summary.by_route ?? {}).filter(([, count]) => count > 0);
  const parts: [string, string, number][] = [
    ["kept", say.text("flow.kept"), summary.kept ?? 0],
    ...routes.map(([route, count]): [string, string, number] => [route, sayRoute(say, report.data, route), count]),
  ];
  return (
    <Card title={say.text("flow.title")}>
      <div class="flow" aria-hidden="true">
        {parts
          .filter(([, , count]) => count > 0)
          .map(([name, , count]) => (
            <i class={`fill-${name}`} style={{ flexGrow: count }} key={name} />
          ))}
      </div>
      <ul class="legend">
        {parts.map(([name, label, count]) => (
          <li key={name}>
            <i class={`fill-${name}`} />
            <span>{label}</span>
            <span class="number">
              {say.count(count)} <span class="muted">({say.share(summary.documents > 0 ? count / summary.documents : 0)})</span>
            </span>
          </li>
        ))}
      </ul>
    </Card>
  );
}

function Doubtful({ report, onOpen }: { report: Report; onOpen: (view: View) => void }) {
  const say = useWording();
  const { nearest, equal_after_normalization: equal, summary, removals } = report.data;
  const { decisions } = summary;
  return (
    <Card title={say.text("doubtful.title")}>
      {nearest.length > 0 ? (
        <div class="line apart">
          <p>{say.text("doubtful.nearest", { n: nearest.length })}</p>
          <button type="button" class="button strong" onClick={() => onOpen({ section: "review", show: "nearest" })}>
            {say.text("doubtful.open")}
          </button>
        </div>
      ) : (
        <p>{say.text(removals.total > 0 ? "doubtful.nearestNone" : "stat.none")}</p>
      )}
      {equal.read > 0 && (
        <div class="line apart">
          <p>{say.text(equal.differing > 0 ? "doubtful.equal" : "doubtful.equalNone", { read: equal.read, n: equal.differing })}</p>
          {equal.rows.length > 0 && (
            <button type="button" class="button" onClick={() => onOpen({ section: "review", show: "equal" })}>
              {say.text("doubtful.equalOpen")}
            </button>
          )}
        </div>
      )}
      {decisions && (
        <div class="stack">
          <h3>{say.text("decisions.title")}</h3>
          <p>{say.text("decisions.counts", { same: decisions.same, different: decisions.different })}</p>
          {decisions.without_pair > 0 && <p>{say.text("decisions.without", { n: decisions.without_pair })}</p>}
          {(decisions.forms ?? 0) > 0 && <p>{say.text("decisions.forms", { n: decisions.forms ?? 0 })}</p>}
          {(decisions.forms_not_applied ?? 0) > 0 && <p>{say.text("decisions.formsNotApplied", { n: decisions.forms_not_applied ?? 0 })}</p>}
          {(decisions.forms_without_documents ?? 0) > 0 && <p>{say.text("decisions.formsWithoutDocuments", { n: decisions.forms_without_documents ?? 0 })}</p>}
          {decisions.of_other_recipes > 0 && <p>{say.text("decisions.other", { n: decisions.of_other_recipes })}</p>}
        </div>
      )}
    </Card>
  );
}

/** Suspicious clusters that are named. */
const namedSuspicions = 6;

function Suspicious({ report }: { report: Report }) {
  const say = useWording();
  const { suspicious = [] } = report.data.summary;
  const more = suspicious.length - namedSuspicions;
  return (
    <Card title={say.text("doubtful.suspicious")}>
      <table class="stacked">
        <tbody>
          {suspicious.slice(0, namedSuspicions).map((it) => (
            <tr key={it.kind + it.cluster}>
              <td><Name text={it.cluster} /></td>
              <td>{say.text(it.kind === "form" ? "suspicious.form" : "suspicious.stretched", { n: it.count })}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {more > 0 && <p class="muted">{say.text("suspicious.more", { n: more })}</p>}
    </Card>
  );
}

function Similarities({ report }: { report: Report }) {
  const say = useWording();
  const { similarities, plan } = report.data;
  const used = similarities.findIndex((count) => count > 0);
  const first = Math.max(0, Math.floor(Math.min(used < 0 ? 100 : used, plan.threshold * 100) / 10) * 10 - (plan.threshold < 0.2 ? 0 : 10));
  // Exactly 1 has a bar of its own behind the axis.
  const whole = 100 - first + 3;
  const place = (hundredth: number) => (hundredth - first) / whole;
  const bars: Bar[] = similarities.slice(first, 100).map((value, at) => {
    const start = first + at;
    const range = `${(start / 100).toFixed(2)}–${((start + 1) / 100).toFixed(2)}`;
    return { start: place(start), end: place(start + 1), value, label: range, title: say.text("similarity.bar", { range, n: value }) };
  });
  const exact = similarities[100] ?? 0;
  const range = say.text("similarity.exact");
  bars.push({ start: place(101), end: 1, value: exact, label: "1", title: say.text("similarity.bar", { range, n: exact }) });
  const ticks: [number, string][] = [];
  for (let at = first; at <= 100; at += 10) ticks.push([at === 100 ? place(102) : place(at), at === 100 ? "1" : (at / 100).toFixed(1)]);
  const title = say.text("similarity.title");
  const threshold = String(plan.threshold);
  return (
    <Card title={title}>
      <Histogram
        title={title}
        bars={bars}
        ticks={ticks}
        axis={say.text("similarity.axis")}
        values={say.text("similarity.documents")}
        threshold={[place(plan.threshold * 100), say.text("similarity.threshold", { threshold })]}
      />
      <p class="muted">{say.text("similarity.note", { threshold })}</p>
    </Card>
  );
}

/** Sizes of clusters in intervals whose ends double. */
export function groupSizes(sizes: readonly [number, number][]): { from: number; to: number; clusters: number }[] {
  const groups: { from: number; to: number; clusters: number }[] = [];
  for (const [size, clusters] of sizes) {
    const power = Math.ceil(Math.log2(size));
    const at = Math.max(0, power - 1);
    while (groups.length <= at) {
      const number = groups.length;
      groups.push({ from: number === 0 ? 2 : 2 ** number + 1, to: 2 ** (number + 1), clusters: 0 });
    }
    groups[at]!.clusters += clusters;
  }
  return groups;
}

function Sizes({ report }: { report: Report }) {
  const say = useWording();
  const groups = groupSizes(report.data.cluster_sizes);
  const title = say.text("sizes.title");
  if (groups.length === 0) return null;
  const label = (group: { from: number; to: number }) => (group.from === group.to ? say.count(group.from) : `${say.count(group.from)}–${say.count(group.to)}`);
  const every = Math.ceil(groups.length / 7);
  const bars = groups.map((group, at) => ({
    start: at / groups.length,
    end: (at + 0.9) / groups.length,
    value: group.clusters,
    label: label(group),
    title: say.text("sizes.bar", { range: label(group), n: group.clusters }),
  }));
  const ticks = groups.flatMap((group, at): [number, string][] => (at % every === 0 ? [[(at + 0.45) / groups.length, label(group)]] : []));
  return (
    <Card title={title}>
      <Histogram title={title} bars={bars} ticks={ticks} axis={say.text("sizes.axis")} values={say.text("sizes.clusters")} />
    </Card>
  );
}

function BadRows({ report }: { report: Report }) {
  const say = useWording();
  return (
    <Card title={say.text("bad.title")}>
      <table>
        <thead>
          <tr>
            <th>{say.text("bad.reason")}</th>
            <th class="number">{say.text("bad.rows")}</th>
            <th>{say.text("bad.places")}</th>
          </tr>
        </thead>
        <tbody>
          {report.data.bad_rows.map((row) => (
            <tr key={row.reason}>
              <td>{row.reason ? <bdi><Phrase text={row.reason} /></bdi> : say.text("bad.other")}</td>
              <td class="number">{say.count(row.rows)}</td>
              <td class="muted">{row.places.map((place) => <div key={place}><Name text={place} /></div>)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Card>
  );
}
