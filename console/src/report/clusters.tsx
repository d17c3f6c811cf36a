/** The clusters: kept documents with those that were removed for them. */
import { useEffect, useMemo, useState } from "preact/hooks";
import { Name, ShortName, useWording } from "../components/basics";
import { VirtualList } from "../components/virtual-list";
import type { Report } from "./data";
import type { Mark, Marks } from "./marks";
import { PairView } from "./pair-view";
import { fold, isBadTerm, parseQuery, type Query } from "./query";
import { MarkLabel } from "./review";

type Order = "largest" | "smallest" | "stretched" | "input";

/** Returns the clusters that a query finds. */
export function findClusters(report: Report, query: Query): number[] {
  const { clusters, texts, sources } = report.data;
  const found: number[] = [];
  const textOf = (at: number) => fold(texts.text[clusters.text[at]!] ?? "");
  for (let at = 0; at < clusters.id.length; at += 1) {
    const id = fold(clusters.id[at]!);
    if (
      query.similarity.every((test) => test(clusters.least[at]!)) &&
      query.cluster.every((test) => test(clusters.size[at]!)) &&
      query.source.every((part) => fold(sources[clusters.source[at]!] ?? "").includes(part)) &&
      query.id.every((part) => id.includes(part)) &&
      query.words.every((part) => id.includes(part) || textOf(at).includes(part)) &&
      query.text.every((part) => textOf(at).includes(part))
    ) {
      found.push(at);
    }
  }
  return found;
}

interface ClustersProps {
  report: Report;
  marks: Marks;
  onMark: (removal: number, mark: Mark | null) => void;
}

export function Clusters({ report, marks, onMark }: ClustersProps) {
  const say = useWording();
  const { clusters } = report.data;
  const [search, setSearch] = useState("");
  const [order, setOrder] = useState<Order>("largest");
  const [selected, setSelected] = useState(0);
  const query = useMemo(() => parseQuery(search), [search]);
  const rows = useMemo(() => {
    const found = isBadTerm(query) ? clusters.id.map((_, at) => at) : findClusters(report, query);
    const compare: Record<Order, (a: number, b: number) => number> = {
      largest: (a, b) => clusters.size[b]! - clusters.size[a]!,
      smallest: (a, b) => clusters.size[a]! - clusters.size[b]!,
      stretched: (a, b) => clusters.least[a]! - clusters.least[b]!,
      input: (a, b) => clusters.source[a]! - clusters.source[b]! || clusters.row[a]! - clusters.row[b]!,
    };
    return found.sort((a, b) => compare[order](a, b) || a - b);
  }, [report, query, order]);
  useEffect(() => setSelected(0), [query, order]);
  const at = Math.min(selected, rows.length - 1);
  const cluster = rows[at];
  return (
    <div class="split">
      <div class="side">
        <input
          class="search"
          type="search"
          value={search}
          placeholder={say.text("list.searchHint")}
          aria-label={say.text("list.search")}
          title={say.text("list.searchHelp")}
          onInput={(event) => setSearch(event.currentTarget.value)}
        />
        <div class="filters">
          <label class="field">
            {say.text("list.sort")}
            <select value={order} onChange={(event) => setOrder(event.currentTarget.value as Order)}>
              {(["largest", "smallest", "stretched", "input"] as const).map((it) => (
                <option value={it} key={it}>{say.text(`sort.${it}`)}</option>
              ))}
            </select>
          </label>
        </div>
        {isBadTerm(query) && (
          <p class="note" role="alert">{say.text("list.badQuery", { term: query.term, help: say.text(query.help) })}</p>
        )}
        <span class="muted" role="status">{say.text("list.count", { n: rows.length })}</span>
        {rows.length === 0 ? (
          <p class="card muted">{say.text("list.empty")}</p>
        ) : (
          <VirtualList
            id="clusters"
            label={say.text("section.clusters")}
            count={rows.length}
            selected={at}
            onSelect={setSelected}
            render={(entry) => {
              const row = rows[entry]!;
              return (
                <>
                  <span class="name"><ShortName text={clusters.id[row]!} length={28} /></span>
                  <span class="value">{say.count(clusters.size[row]!)}</span>
                  <span class="more">{say.text("cluster.least", { similarity: say.similarity(clusters.least[row]!) })}</span>
                  <span />
                </>
              );
            }}
          />
        )}
      </div>
      {cluster === undefined ? (
        <p class="card muted">{say.text("pair.select")}</p>
      ) : (
        <ClusterView key={cluster} report={report} cluster={cluster} marks={marks} onMark={onMark} />
      )}
    </div>
  );
}

function ClusterView({ report, cluster, marks, onMark }: ClustersProps & { cluster: number }) {
  const say = useWording();
  const { clusters, removals, sources } = report.data;
  const members = useMemo(() => report.membersOf(cluster), [report, cluster]);
  const withTexts = members.find((row) => report.textsOf(row) !== null);
  const [member, setMember] = useState(withTexts ?? members[0]);
  const total = clusters.size[cluster]! - 1;
  return (
    <div class="stack">
      <section class="card stack">
        <h2>
          {say.text("cluster.documents", { n: clusters.size[cluster]! })}
          <span class="muted"> · {say.text("cluster.least", { similarity: say.similarity(clusters.least[cluster]!) })}</span>
        </h2>
        <p>
          {say.text("cluster.representative")}: <strong><Name text={clusters.id[cluster]!} /></strong>{" "}
          <span class="muted">
            <Name text={say.text("pair.row", { source: sources[clusters.source[cluster]!] ?? "", row: clusters.row[cluster]! })} />
          </span>
        </p>
        <h3>
          {say.text("cluster.members")}
          {members.length < total && <span class="muted"> · {say.text("cluster.listed", { listed: members.length, total })}</span>}
        </h3>
        <VirtualList
          id="members"
          label={say.text("cluster.members")}
          isShort
          count={members.length}
          selected={member === undefined ? -1 : members.indexOf(member)}
          onSelect={(at) => setMember(members[at])}
          render={(at) => {
            const row = members[at]!;
            return (
              <>
                <span class="name"><ShortName text={removals.id[row]!} length={56} /></span>
                <span class="value">{say.similarity(removals.similarity[row]!)}</span>
                <span class="more">
                  <ShortName text={say.text("pair.row", { source: sources[removals.source[row]!] ?? "", row: removals.row[row]! })} length={56} />
                </span>
                <MarkLabel mark={marks.get(row)} />
              </>
            );
          }}
        />
      </section>
      {member !== undefined && (
        <PairView report={report} removal={member} mark={marks.get(member)} onMark={(mark) => onMark(member, mark)} />
      )}
    </div>
  );
}
