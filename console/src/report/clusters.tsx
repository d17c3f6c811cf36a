/** The clusters: kept documents with those that were removed for them. */
import { useMemo, useState } from "preact/hooks";
import { Name, ShortName, useWording } from "../components/basics";
import { useListState } from "../components/list-state";
import { MarkLabel } from "../components/mark-buttons";
import type { Mark } from "../components/review-keys";
import { ListEntry, SearchedList } from "../components/searched-list";
import { VirtualList } from "../components/virtual-list";
import type { Report } from "./data";
import type { Marks } from "./marks";
import { PairView } from "./pair-view";
import { fold, type Query } from "./query";

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

function compareClusters(clusters: Report["data"]["clusters"], order: Order, a: number, b: number): number {
  switch (order) {
    case "largest": return clusters.size[b]! - clusters.size[a]!;
    case "smallest": return clusters.size[a]! - clusters.size[b]!;
    case "stretched": return clusters.least[a]! - clusters.least[b]!;
    case "input": return clusters.source[a]! - clusters.source[b]! || clusters.row[a]! - clusters.row[b]!;
  }
}

interface ClustersProps {
  report: Report;
  marks: Marks;
  onMark: (removal: number, mark: Mark | null) => void;
}

export function Clusters({ report, marks, onMark }: ClustersProps) {
  const say = useWording();
  const { clusters } = report.data;
  const { controls, rows, row: cluster } = useListState<number, Order>({
    orders: ["largest", "smallest", "stretched", "input"],
    inputs: [report],
    subject: report,
    find: (query, order) => {
      const found = query ? findClusters(report, query) : clusters.id.map((_, at) => at);
      return found.sort((a, b) => compareClusters(clusters, order, a, b) || a - b);
    },
  });
  return (
    <div class="split">
      <div class="side">
        <SearchedList
          id="clusters"
          label={say.text("section.clusters")}
          controls={controls}
          hint="list.searchHint"
          help="list.searchHelp"
          empty={say.text("list.empty")}
          render={(entry) => {
            const row = rows[entry]!;
            return (
              <ListEntry
                name={<ShortName text={clusters.id[row]!} />}
                value={say.count(clusters.size[row]!)}
                more={say.text("cluster.least", { similarity: say.similarity(clusters.least[row]!) })}
              />
            );
          }}
        />
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
          {say.text("cluster.representative")}{say.colon}<strong><Name text={clusters.id[cluster]!} /></strong>{" "}
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
              <ListEntry
                name={<ShortName text={removals.id[row]!} />}
                value={say.similarity(removals.similarity[row]!)}
                more={<ShortName text={say.text("pair.row", { source: sources[removals.source[row]!] ?? "", row: removals.row[row]! })} />}
                mark={<MarkLabel mark={marks.get(row)} />}
              />
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
