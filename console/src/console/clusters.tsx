/** The clusters of a collection: their members, how they hang together, and each member beside the kept document. */
import { useEffect, useMemo, useState } from "preact/hooks";
import { Name, ShortName, useWording } from "../components/basics";
import { ClusterGraph, maxDrawn, type GraphEdge, type GraphMember } from "../components/cluster-graph";
import { useListState } from "../components/list-state";
import { ListEntry, SearchedList } from "../components/searched-list";
import { VirtualList } from "../components/virtual-list";
import { fold, isBadTerm, type Query } from "../report/query";
import { Compared, NoCollections, useCollection, type ToolProps } from "./collection-choice";
import { DecisionList, PairDecision } from "./decisions";
import { useAnswer, useRequests } from "./requests";
import { countBytes, maxComparedBytes, type Cluster, type Settings, type Verdict } from "./service";

type Order = "input" | "newest" | "largest" | "stretched";

/** Members that are compared with each other. Of 14 there are 91 pairs, and a request has at most 100. */
const maxConnected = 14;

/** Clusters of a collection that were read so far. */
interface LoadedClusters {
  name: string;
  clusters: readonly Cluster[];
  /** Where the next ones begin; null if there are no more. */
  next: string | null;
}

const nothingLoaded: Omit<LoadedClusters, "name"> = { clusters: [], next: null };

/** Members of a cluster that is looked for by a document, as many as the list of clusters has of each. */
const membersOnPage = 100;

const leastOf = (cluster: Cluster): number => Math.min(1, ...cluster.members.map((it) => it.similarity ?? 1));

/** Returns the clusters that a query finds, by the ids of their documents. */
function findClusters(clusters: readonly Cluster[], query: Query): Cluster[] {
  return clusters.filter((it) => {
    const ids = fold([it.cluster, ...it.members.map((member) => member.id ?? "")].join("\n"));
    return (
      query.similarity.every((test) => test(leastOf(it))) &&
      query.cluster.every((test) => test(it.members.length + 1)) &&
      [...query.words, ...query.id].every((part) => ids.includes(part))
    );
  });
}

const orders: Record<Order, (a: Cluster, b: Cluster) => number> = {
  input: () => 0,
  newest: (a, b) => newestOf(b) - newestOf(a),
  largest: (a, b) => b.members.length - a.members.length || Number(b.more) - Number(a.more),
  stretched: (a, b) => leastOf(a) - leastOf(b),
};
const newestOf = (cluster: Cluster) => Math.max(cluster.kept.seq ?? 0, ...cluster.members.map((it) => it.seq ?? 0));

export function ConsoleClusters(props: ToolProps) {
  const { service, onProblem } = props;
  const say = useWording();
  const { name, settings, choice, isEmpty } = useCollection(props);
  const [loaded, setLoaded] = useState<LoadedClusters>({ name: "", clusters: [], next: null });
  const { isWaiting, send } = useRequests(name, onProblem);
  // Clusters that were loaded of another collection are not shown, and no more of them are requested.
  const { clusters, next } = loaded.name === name ? loaded : nothingLoaded;
  const { controls, rows, row: cluster } = useListState<Cluster, Order>({
    orders: ["largest", "newest", "stretched", "input"],
    inputs: [clusters],
    subject: name,
    find: (query, order) => (query ? findClusters(clusters, query) : [...clusters]).sort(orders[order]),
  });
  /** Adds clusters to the loaded ones. A cluster that is loaded already moves to the end. */
  const add = (found: readonly Cluster[], next: string | null) => {
    const ids = new Set(found.map((it) => it.cluster));
    setLoaded({ name, clusters: [...clusters.filter((it) => !ids.has(it.cluster)), ...found], next });
  };
  const read = (after: string | null) => send(() => service.listClusters(name, after), (it) => add(it.clusters, it.next));
  useEffect(() => {
    if (name) void read(null);
  }, [name]);
  const [decisionVersion, setDecisionVersion] = useState(0);
  /** Reads the clusters again after verdicts have changed. */
  const reload = () => {
    setDecisionVersion((version) => version + 1);
    void send(() => service.listClusters(name, null), (it) => setLoaded({ name, clusters: it.clusters, next: it.next }));
  };
  const search = controls.search.trim();
  /** Looks for the cluster of a document that is in none of the loaded ones. */
  const findCluster = async () => {
    const document = await service.getDocument(name, search);
    return document.cluster ? [await service.getCluster(name, document.cluster, membersOnPage)] : [];
  };
  const findDocument = () => send(findCluster, (found) => add(found, next));
  if (isEmpty) return <NoCollections />;
  return (
    <div class="split">
      <div class="side">
        <div class="line">{choice}</div>
        <SearchedList
          id="clusters"
          label={say.text("section.clusters")}
          controls={controls}
          hint="console.clusterHint"
          help="console.clusterHelp"
          empty={say.text(loaded.name !== name ? "console.reading" : clusters.length === 0 ? "console.noClusters" : "list.empty")}
          render={(entry) => (
            <ListEntry
              name={<ShortName text={rows[entry]!.cluster} />}
              value={`${say.count(rows[entry]!.members.length + 1)}${rows[entry]!.more ? "+" : ""}`}
              more={say.text("cluster.least", { similarity: say.similarity(leastOf(rows[entry]!)) })}
            />
          )}
        />
        {next && rows.length === 0 && search !== "" && !isBadTerm(controls.query) && (
          <button type="button" class="button" disabled={isWaiting} onClick={findDocument}>{say.text("console.findId")}</button>
        )}
        {next && (
          <>
            <p class="muted">{say.text("console.loaded", { n: clusters.length })}</p>
            <button type="button" class="button" disabled={isWaiting} onClick={() => read(next)}>{say.text("console.more")}</button>
          </>
        )}
        {settings?.holds === "texts" && <DecisionList {...props} name={name} version={decisionVersion} onChanged={reload} />}
      </div>
      {cluster && <ClusterView key={`${name} ${cluster.cluster}`} {...props} name={name} settings={settings} cluster={cluster} onChanged={reload} />}
    </div>
  );
}

interface ClusterViewProps extends ToolProps {
  name: string;
  settings: Settings | undefined;
  cluster: Cluster;
  /** Called after a decision has changed verdicts. */
  onChanged: () => void;
}

function ClusterView({ cluster, name, settings, onChanged, ...props }: ClusterViewProps) {
  const { service, onProblem } = props;
  const say = useWording();
  const [memberId, setMemberId] = useState<string | null>(null);
  const [edges, setEdges] = useState<GraphEdge[]>([]);
  const whole = useAnswer([cluster], cluster.more ? () => service.getCluster(name, cluster.cluster, maxDrawn) : null, onProblem) ?? cluster;
  /** Members in the order of their arrival. */
  const members = useMemo(() => [...whole.members].sort((a, b) => (a.seq ?? 0) - (b.seq ?? 0)), [whole]);
  const member = Math.max(0, members.findIndex((it) => it.id === memberId));
  const select = (at: number) => setMemberId(members[at]?.id ?? null);
  const shown: Verdict | undefined = members[member];
  const shownId = settings && settings.holds !== "fingerprints" ? shown?.id : null;
  const texts = useAnswer([cluster.cluster, shownId], shownId ? () => Promise.all([service.getDocument(name, cluster.cluster), service.getDocument(name, shownId)]) : null, onProblem);
  const [first, last] = [members[0]?.seq ?? 0, members[members.length - 1]?.seq ?? 0];
  const drawn: GraphMember[] = members.map((it) => ({
    id: it.id ?? "",
    similarity: it.similarity ?? 1,
    place: last > first ? ((it.seq ?? 0) - first) / (last - first) : 0.5,
  }));
  const comparisons = useRequests(cluster, onProblem);
  const connect = () => comparisons.send(() => connectMembers(service, name, members.map((it) => it.id ?? ""), settings), setEdges);
  const canConnect = members.length > 1 && members.length <= maxConnected && settings?.holds === "texts" && edges.length === 0;
  return (
    <div class="stack">
      <section class="card stack">
        <h2>{say.text("cluster.representative")}: <Name text={cluster.cluster} /></h2>
        <ClusterGraph
          kept={cluster.cluster}
          members={drawn}
          edges={edges}
          threshold={settings?.threshold ?? Math.min(1, ...drawn.map((it) => it.similarity))}
          selected={member}
          onSelect={select}
        />
        {canConnect && (
          <div class="line"><button type="button" class="button" disabled={comparisons.isWaiting} onClick={connect}>{say.text("graph.connect", { n: members.length })}</button></div>
        )}
        <h3>
          {say.text("console.members")}
          {whole.more && <span class="muted"> · {say.text("console.newestMembers", { n: members.length })}</span>}
        </h3>
        <VirtualList
          id="members"
          label={say.text("console.members")}
          isShort
          count={members.length}
          selected={member}
          onSelect={select}
          render={(at) => (
            <ListEntry
              name={<ShortName text={members[at]!.id ?? ""} />}
              value={say.similarity(members[at]!.similarity ?? 1)}
              more={say.text("console.arrival", { seq: members[at]!.seq ?? 0 })}
            />
          )}
        />
      </section>
      {shownId && texts && texts[0].text !== texts[1].text && <PairDecision key={shownId} {...props} name={name} ids={[cluster.cluster, shownId]} hasKeys onChanged={onChanged} />}
      {texts && <Compared {...props} a={texts[0]} b={texts[1]} settings={settings} />}
    </div>
  );
}

/** Compares the members of a cluster with each other. */
async function connectMembers(service: ToolProps["service"], name: string, ids: readonly string[], settings: Settings | undefined): Promise<GraphEdge[]> {
  const texts = (await service.getDocuments(name, ids)).map((it) => it?.text ?? "");
  const places = texts.flatMap((_, a) => texts.slice(a + 1).map((_, after) => [a, a + 1 + after] as const));
  const bytes = texts.reduce((sum, text) => sum + countBytes(text), 0) * (texts.length - 1);
  if (bytes > maxComparedBytes) return connectSingly(service, texts, places, settings);
  const found = await service.comparePairs(places.map(([a, b]) => ({ a: texts[a]!, b: texts[b]! })), settings);
  return found.map((it, at): GraphEdge => [...places[at]!, it.similarity ?? 0]);
}

/** Compares long texts pair by pair. */
async function connectSingly(service: ToolProps["service"], texts: readonly string[], places: readonly (readonly [number, number])[], settings: Settings | undefined): Promise<GraphEdge[]> {
  const edges: GraphEdge[] = [];
  for (const [a, b] of places) {
    const found = await service.compare(texts[a]!, texts[b]!, settings);
    edges.push([a, b, found.similarity ?? 0]);
  }
  return edges;
}
