/** Collections: their state and settings; import documents, change the window, copy, restore and delete. */
import { useEffect, useRef, useState } from "preact/hooks";
import { Card, Facts, Name, ShortName, useWording } from "../components/basics";
import { ListEntry } from "../components/searched-list";
import { VirtualList } from "../components/virtual-list";
import { fold } from "../report/query";
import type { ToolProps } from "./collection-choice";
import { ImportFiles } from "./import-files";
import { EmptyState, SectionLink } from "./links";
import { usePolled } from "./polled";
import { RequestExamples, type ExampleRequest } from "./request-example";
import { useAnswer, useChanges, useRequests } from "./requests";
import { collectionPath, sumMemory, type CollectionState, type Settings } from "./service";
import { Snapshots } from "./snapshots";

export function Collections(props: ToolProps) {
  const { service, onProblem, address, onAddress } = props;
  const say = useWording();
  const [collections, setCollections] = useState<CollectionState[] | null>(null);
  const [search, setSearch] = useState("");
  const { send } = useRequests(service, onProblem);
  const read = () => send(service.listCollections, setCollections);
  useEffect(() => void read(), [service]);
  const select = (name: string, replaces = false) => onAddress({ collection: name, item: null }, replaces);
  const at = collections?.findIndex((it) => it.name === address.collection) ?? -1;
  const first = collections?.[0]?.name;
  /** The name for which the list was read again. */
  const missing = useRef<string | null>(null);
  useEffect(() => {
    if (at >= 0) missing.current = null;
    if (!collections || at >= 0) return;
    const { collection: wanted } = address;
    if (wanted !== null && missing.current !== wanted) {
      // The list can be older than the collection, for example after a snapshot was restored.
      missing.current = wanted;
      void read();
    } else if (first) {
      // An address without a collection, or with one that was deleted, shows the first.
      select(first, true);
    }
  }, [collections, at, address.collection]);
  if (!collections) return <p class="muted">{say.text("console.reading")}</p>;
  if (collections.length === 0) return <EmptyState why="console.noCollections" links={[{ to: "collections.new", section: "new" }]} />;
  const collection = collections[at];
  const found = findCollections(collections, search);
  return (
    <div class="split">
      <div class="side">
        <SectionLink section="new" button="strong">{say.text("collections.new")}</SectionLink>
        {(collections.length > searchedCollections || search !== "") && (
          <input class="search" type="search" value={search} placeholder={say.text("list.search")} aria-label={say.text("list.search")} onInput={(event) => setSearch(event.currentTarget.value)} />
        )}
        <span class="muted" role="status">{say.text("collections.count", { n: found.length })}</span>
        {found.length === 0 ? (
          <p class="card muted">{say.text("list.empty")}</p>
        ) : (
          <VirtualList
            id="collections"
            label={say.text("console.collections")}
            isShort={found.length <= 4}
            count={found.length}
            selected={found.findIndex((it) => it.name === collection?.name)}
            onSelect={(entry) => select(found[entry]!.name)}
            render={(entry) => (
              <ListEntry
                name={<ShortName text={found[entry]!.name} />}
                more={say.known(`state.${found[entry]!.state}`, found[entry]!.state)}
              />
            )}
          />
        )}
      </div>
      {collection && <CollectionView key={collection.name} {...props} collection={collection} onChanged={read} />}
    </div>
  );
}

/** Returns requests about a collection: show it, make another one like it, and read all its documents. */
const listRequests = (name: string, settings: Settings): ExampleRequest[] => [
  { path: collectionPath(name) },
  { method: "PUT", path: collectionPath("NAME"), body: settings },
  { path: `${collectionPath(name)}/export` },
];

/** Names of collections among which a search is worth its place. */
const searchedCollections = 8;

/** Returns the collections whose names contain a text, whatever its case. */
export const findCollections = (collections: readonly CollectionState[], search: string): CollectionState[] => {
  const wanted = fold(search.trim());
  return collections.filter((it) => fold(it.name).includes(wanted));
};

interface CollectionViewProps extends ToolProps {
  collection: CollectionState;
  /** Reads the list of collections again. */
  onChanged: () => Promise<void>;
}

function CollectionView({ collection, onChanged, ...tool }: CollectionViewProps) {
  const { service, onProblem } = tool;
  const say = useWording();
  const { name } = collection;
  const [changed, setChanged] = useState<Settings | null>(null);
  const first = useAnswer([name], () => service.getSettings(name), onProblem);
  const stats = usePolled([name], () => service.getStats(name).catch(() => null), onProblem);
  const settings = changed ?? first;
  if (!settings) return <p class="muted">{say.text("console.reading")}</p>;
  return (
    <div class="stack">
      <Card title={name}>
        <Facts
          rows={[
            [say.text("console.state"), say.known(`state.${collection.state}`, collection.state)],
            [say.text("console.kept"), stats && <span class="number">{say.count(stats.kept)}</span>],
            [say.text("console.documentCount"), stats && <span class="number">{say.count(stats.rows)}</span>],
            [say.text("collections.memory"), stats && say.bytes(sumMemory(stats))],
            [say.text("collections.holds"), say.known(`holds.${settings.holds}`, settings.holds)],
            [say.text("run.recipe"), <Name text={settings.recipe.includes("\n") ? "TOML" : settings.recipe} />],
            [say.text("run.method"), say.known(`method.${settings.method}`, settings.method)],
            [say.text("run.measure"), say.known(`measure.${settings.measure}`, settings.measure)],
            [say.text("run.threshold"), settings.threshold === undefined ? "" : String(settings.threshold)],
            [say.text("run.distance"), settings.distance === undefined ? "" : String(settings.distance)],
            [say.text("run.window"), settings.window ?? say.text("collections.noWindow")],
            [say.text("collections.refresh"), settings.window ? say.text(settings.refresh ? "collections.yes" : "collections.no") : ""],
            [say.text("collections.conflict"), say.known(`conflict.${settings.on_conflict ?? ""}`, settings.on_conflict ?? "")],
          ]}
        />
        <div class="line">
          {settings.holds === "texts" && <SectionLink section="check" collection={name} button="plain">{say.text("console.check")}</SectionLink>}
          <SectionLink section="documents" collection={name} button="plain">{say.text("console.documents")}</SectionLink>
          <SectionLink section="clusters" collection={name} button="plain">{say.text("console.clusters")}</SectionLink>
          {settings.holds === "texts" && <SectionLink section="label" collection={name} button="plain">{say.text("console.label")}</SectionLink>}
        </div>
        <RequestExamples service={service} list={() => listRequests(name, settings)} />
      </Card>
      <ImportFiles imports={tool.imports} name={name} onProblem={onProblem} />
      {settings.window && <WindowForm {...{ service, onProblem, name }} window={settings.window} onChanged={setChanged} />}
      <Snapshots {...tool} name={name} />
      <DeleteForm {...{ service, onProblem, name, onChanged }} />
    </div>
  );
}

/** A form about one collection. */
interface CollectionForm extends Pick<ToolProps, "service" | "onProblem"> {
  name: string;
}

function WindowForm({ service, onProblem, name, window, onChanged }: CollectionForm & { window: string; onChanged: (settings: Settings) => void }) {
  const say = useWording();
  const [wanted, setWanted] = useState(window);
  const { isWaiting, send } = useChanges(onProblem);
  const change = () => send(() => service.changeCollection(name, { window: wanted.trim() }), (it) => onChanged(it.settings));
  return (
    <Card title={say.text("collections.changeWindow")}>
      <p class="muted">{say.text("collections.changeWindowAbout")}</p>
      <div class="line">
        <label class="field">{say.text("run.window")} <input value={wanted} size={8} onInput={(event) => setWanted(event.currentTarget.value)} /></label>
        <button type="button" class="button" disabled={!wanted.trim() || wanted.trim() === window || isWaiting} onClick={change}>{say.text("collections.change")}</button>
      </div>
    </Card>
  );
}

function DeleteForm({ service, onProblem, name, onChanged }: CollectionForm & { onChanged: () => Promise<void> }) {
  const say = useWording();
  const [typed, setTyped] = useState("");
  const [isOpen, setOpen] = useState(false);
  const { isWaiting, send } = useChanges(onProblem);
  const remove = () => send(() => service.deleteCollection(name).then(onChanged), () => {});
  return (
    <Card title={say.text("collections.delete")}>
      {isOpen ? (
        <>
          <p class="note">{say.text("collections.deleteAsk", { name })}</p>
          <div class="line">
            <label class="field">{say.text("collections.typeName")} <input value={typed} autocomplete="off" onInput={(event) => setTyped(event.currentTarget.value)} /></label>
            <button type="button" class="button danger" disabled={typed !== name || isWaiting} onClick={remove}>{say.text("collections.deleteNow")}</button>
            <button type="button" class="button" onClick={() => setOpen(false)}>{say.text("collections.cancel")}</button>
          </div>
        </>
      ) : (
        <div class="line"><button type="button" class="button" onClick={() => setOpen(true)}>{say.asking("collections.delete")}</button></div>
      )}
    </Card>
  );
}
