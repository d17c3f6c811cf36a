/** The clusters of a collection: their members, how they hang together, and each member beside the kept document. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { Excerpt, Name, ShortName, useWording } from "../components/basics";
import { ClusterGraph, maxDrawn, type GraphEdge, type GraphMember } from "../components/cluster-graph";
import { useListState } from "../components/list-state";
import { ListEntry, SearchedList } from "../components/searched-list";
import { VirtualList } from "../components/virtual-list";
import type { Wording } from "../language/catalog";
import { fold, isBadTerm, type Query } from "../report/query";
import { Compared, useCollection, type ToolProps } from "./collection-choice";
import { DecisionEffect, DecisionList, MarkKeys, PairDecision, usePageDecisions, type PageDecisions } from "./decisions";
import { useExcerpts, type Excerpts } from "./excerpts";
import { EmptyState, NoCollections, SectionLink } from "./links";
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

/** Clusters that a search reads at a time, and after which it asks before it reads more. */
const clustersAtATime = 1000;
const maxSearched = 20_000;

const leastOf = (cluster: Cluster): number => Math.min(1, ...cluster.members.map((it) => it.similarity ?? 1));

/** Returns the documents of a cluster as far as they are known, in words: the list and the cluster itself say the same. */
const countDocuments = (say: Wording, cluster: Cluster): string => `${say.count(cluster.members.length + 1)}${cluster.more ? "+" : ""}`;

/** Returns the clusters that a query finds, by the ids of their documents and the beginning of the kept text. */
function findClusters(clusters: readonly Cluster[], query: Query, excerpts: Excerpts): Cluster[] {
  return clusters.filter((it) => {
    const ids = fold([it.cluster, ...it.members.map((member) => member.id ?? "")].join("\n"));
    const text = () => fold(excerpts.get(it.cluster) ?? "");
    return (
      query.similarity.every((test) => test(leastOf(it))) &&
      query.cluster.every((test) => test(it.members.length + 1)) &&
      query.id.every((part) => ids.includes(part)) &&
      query.words.every((part) => ids.includes(part) || text().includes(part)) &&
      query.text.every((part) => text().includes(part))
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
  const { service, onProblem, address, visit, onAddress } = props;
  const say = useWording();
  const { name, settings, choice, isEmpty } = useCollection(props);
  const [loaded, setLoaded] = useState<LoadedClusters>({ name: "", clusters: [], next: null });
  const { isWaiting, send } = useRequests(name, onProblem);
  // Clusters that were loaded of another collection are not shown, and no more of them are requested.
  const isLoaded = name !== "" && loaded.name === name;
  const { clusters, next } = isLoaded ? loaded : nothingLoaded;
  const keptIds = useMemo(() => clusters.map((it) => it.cluster), [clusters]);
  const excerpts = useExcerpts(service, settings?.holds === "texts" ? name : "", keptIds, onProblem);
  const { controls, rows, row: cluster } = useListState<Cluster, Order>({
    orders: ["largest", "newest", "stretched", "input"],
    inputs: [clusters, excerpts],
    subject: name,
    find: (query, order) => (query ? findClusters(clusters, query, excerpts) : [...clusters]).sort(orders[order]),
  });
  /** Adds clusters to the loaded ones. A cluster that is loaded already moves to the end. */
  const add = (found: readonly Cluster[], next: string | null) => {
    const ids = new Set(found.map((it) => it.cluster));
    setLoaded({ name, clusters: [...clusters.filter((it) => !ids.has(it.cluster)), ...found], next });
  };
  /** Puts a cluster that is known better in the place of what the list has of it. */
  const replace = (known: Cluster) =>
    setLoaded((before) => (before.name === name ? { ...before, clusters: before.clusters.map((it) => (it.cluster === known.cluster ? known : it)) } : before));
  const read = (after: string | null, limit?: number) => send(() => service.listClusters(name, after, limit), (it) => add(it.clusters, it.next));
  useEffect(() => {
    if (name) void read(null);
  }, [name]);
  /** Reads the clusters again after verdicts have changed. */
  const reload = () => void send(() => service.listClusters(name, null), (it) => setLoaded({ name, clusters: it.clusters, next: it.next }));
  const decisions = usePageDecisions({ service, name, onProblem, onChanged: reload });
  const search = controls.search.trim();
  const isSearching = search !== "" && !isBadTerm(controls.query);
  // A search is over all clusters: it reads what is not loaded yet.
  const readsOn = isSearching && next !== null && clusters.length < maxSearched;
  useEffect(() => {
    if (readsOn && !isWaiting) void read(next, clustersAtATime);
  }, [readsOn, isWaiting, next]);
  const findCluster = async (id: string) => {
    const document = await service.getDocument(name, id);
    return document.cluster ? [await service.getCluster(name, document.cluster, membersOnPage)] : [];
  };
  const findDocument = (id: string) => send(() => findCluster(id), (found) => add(found, next));
  useAddressedRow(address.item, rows, cluster, {
    isReady: isLoaded && !isWaiting,
    visit,
    source: clusters,
    onSelect: controls.onSelect,
    onMissing: (id) => void findDocument(id),
    onShown: (item) => onAddress({ item }, true),
  });
  if (isEmpty) return <NoCollections />;
  if (isLoaded && clusters.length === 0 && !isWaiting) {
    return (
      <>
        <div class="line">{choice}</div>
        <TakeBackKey decisions={decisions} />
        <DecisionEffect change={decisions.change} />
        <NoClusters {...{ service, onProblem, name }} />
        {settings?.holds === "texts" && <DecisionList {...{ service, onProblem, name, decisions }} />}
      </>
    );
  }
  const canFindId = isSearching && rows.length === 0 && !readsOn && !isWaiting && !search.includes(":");
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
          empty={say.text(!isLoaded || readsOn ? "console.reading" : "list.empty")}
          render={(entry) => <ClusterEntry cluster={rows[entry]!} excerpt={excerpts.get(rows[entry]!.cluster)} />}
        />
        {canFindId && (
          <button type="button" class="button" onClick={() => findDocument(search)}>{say.text("console.findId")}</button>
        )}
        {readsOn && <p class="muted" role="status">{say.text("console.searching", { n: clusters.length })}</p>}
        {next && !readsOn && (
          <>
            <p class="muted">{say.text("console.loaded", { n: clusters.length })}</p>
            <button type="button" class="button" disabled={isWaiting} onClick={() => read(next)}>{say.text("console.more")}</button>
          </>
        )}
        {settings?.holds === "texts" && <DecisionList {...{ service, onProblem, name, decisions }} />}
      </div>
      <div class="stack">
        <DecisionEffect change={decisions.change} />
        {cluster ? <ClusterView key={`${name} ${cluster.cluster}`} {...props} name={name} settings={settings} cluster={cluster} onWhole={replace} decisions={decisions} /> : <TakeBackKey decisions={decisions} />}
      </div>
    </div>
  );
}

/** Takes back the last decision by its key where no pair can be decided. */
function TakeBackKey({ decisions }: { decisions: PageDecisions }) {
  return <MarkKeys onMark={(mark) => mark === null && decisions.takeBack(null, false)} />;
}

/** What a page does with the row that its address names. */
interface AddressedRow {
  /** `true` once the rows are known. */
  isReady: boolean;
  /** Grows with every visit of another address. What the list itself writes into the address is none. */
  visit: number;
  /** What the rows are taken from. If it changes, the row that is shown stays selected. */
  source: readonly Cluster[];
  onSelect: (at: number) => void;
  /** Called for a row that is not among the known ones. */
  onMissing: (id: string) => void;
  /** Called with the row that is shown. */
  onShown: (id: string) => void;
}

/** Selects the cluster that the address names, and names the one that is selected in the address. */
function useAddressedRow(item: string | null, rows: readonly Cluster[], row: Cluster | undefined, { isReady, visit, source, onSelect, onMissing, onShown }: AddressedRow): void {
  /** The row that is still to be selected, and the one that was looked for. */
  const wanted = useRef<string | null>(item);
  const missing = useRef<string | null>(null);
  const known = useRef(source);
  useEffect(() => {
    wanted.current = item;
  }, [visit]);
  useEffect(() => {
    if (!isReady) return;
    if (known.current !== source) {
      known.current = source;
      if (rows.some((it) => it.cluster === item)) wanted.current ??= item;
    }
    const id = wanted.current;
    if (id !== null && row?.cluster !== id) {
      const at = rows.findIndex((it) => it.cluster === id || it.members.some((member) => member.id === id));
      if (at >= 0) {
        wanted.current = null;
        onSelect(at);
      } else if (missing.current !== id) {
        missing.current = id;
        onMissing(id);
      } else wanted.current = null;
      return;
    }
    wanted.current = null;
    if (row && row.cluster !== item) onShown(row.cluster);
  }, [isReady, item, rows, row]);
}

function ClusterEntry({ cluster, excerpt }: { cluster: Cluster; excerpt: string | undefined }) {
  const say = useWording();
  const least = say.text("cluster.least", { similarity: say.similarity(leastOf(cluster)) });
  const id = <ShortName text={cluster.cluster} />;
  return (
    <ListEntry
      name={excerpt === undefined ? id : <Excerpt text={excerpt} />}
      value={countDocuments(say, cluster)}
      more={excerpt === undefined ? least : <>{id}<span>· {least}</span></>}
    />
  );
}

/** A collection without clusters: it is empty, or nothing in it repeats. */
function NoClusters({ service, onProblem, name }: Pick<ToolProps, "service" | "onProblem"> & { name: string }) {
  const stats = useAnswer([name], () => service.getStats(name), onProblem);
  if (!stats) return null;
  if (stats.rows === 0) return <EmptyState why="console.noDocuments" links={[{ to: "import.title", section: "collections", collection: name }]} />;
  const links = [
    { to: "console.check", section: "check", collection: name },
    { to: "import.title", section: "collections", collection: name },
  ] as const;
  return <EmptyState why="console.noClusters" links={links} />;
}

interface ClusterViewProps extends ToolProps {
  name: string;
  settings: Settings | undefined;
  cluster: Cluster;
  /** Called with the cluster once more of it is known than the list has. */
  onWhole: (cluster: Cluster) => void;
  decisions: PageDecisions;
}

function ClusterView({ cluster, name, settings, onWhole, decisions, ...props }: ClusterViewProps) {
  const { service, onProblem } = props;
  const say = useWording();
  const [memberId, setMemberId] = useState<string | null>(null);
  const [edges, setEdges] = useState<GraphEdge[]>([]);
  const isWhole = !cluster.more || cluster.members.length >= maxDrawn;
  const read = useAnswer([cluster.cluster, isWhole], isWhole ? null : () => service.getCluster(name, cluster.cluster, maxDrawn), onProblem);
  useEffect(() => {
    if (read) onWhole(read);
  }, [read]);
  /** Members in the order of their arrival. */
  const members = useMemo(() => [...cluster.members].sort((a, b) => (a.seq ?? 0) - (b.seq ?? 0)), [cluster]);
  const ids = useMemo(() => members.map((it) => it.id ?? ""), [members]);
  const excerpts = useExcerpts(service, settings?.holds === "texts" ? name : "", ids, onProblem);
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
  const connect = () => comparisons.send(() => connectMembers(service, name, ids, settings), setEdges);
  const canDecide = shownId && texts && texts[0].text !== texts[1].text;
  const canConnect = members.length > 1 && members.length <= maxConnected && settings?.holds === "texts" && edges.length === 0;
  return (
    <div class="stack">
      <section class="card stack">
        <h2>{say.text("cluster.representative")}{say.colon}<Name text={cluster.cluster} /> <span class="muted">· {say.text("console.clusterOf", { n: countDocuments(say, cluster), duplicates: `${say.count(members.length)}${cluster.more ? "+" : ""}` })}</span></h2>
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
          {cluster.more && <span class="muted"> · {say.text("console.newestMembers", { n: members.length })}</span>}
        </h3>
        <VirtualList
          id="members"
          label={say.text("console.members")}
          isShort
          count={members.length}
          selected={member}
          onSelect={select}
          render={(at) => <MemberEntry member={members[at]!} excerpt={excerpts.get(ids[at]!)} />}
        />
        <div class="line">
          <SectionLink section="documents" collection={name} item={cluster.cluster} button="plain">{say.text("documents.showKept")}</SectionLink>
          {shown?.id && <SectionLink section="documents" collection={name} item={shown.id} button="plain">{say.text("documents.showDuplicate")}</SectionLink>}
        </div>
      </section>
      {canDecide ? <PairDecision key={shownId} {...{ service, onProblem, name, decisions }} ids={[cluster.cluster, shownId]} hasKeys /> : <TakeBackKey decisions={decisions} />}
      {texts && <Compared {...props} a={texts[0]} b={texts[1]} settings={settings} />}
    </div>
  );
}

function MemberEntry({ member, excerpt }: { member: Verdict; excerpt: string | undefined }) {
  const say = useWording();
  const arrival = say.text("console.arrival", { seq: member.seq ?? 0 });
  const id = <ShortName text={member.id ?? ""} />;
  return (
    <ListEntry
      name={excerpt === undefined ? id : <Excerpt text={excerpt} />}
      value={say.similarity(member.similarity ?? 1)}
      more={excerpt === undefined ? arrival : <>{id}<span>· {arrival}</span></>}
    />
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
