/** The documents of a collection in the order of their arrival: what became of each, and its text, time and `meta`. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { Card, Excerpt, Facts, Name, ShortName, Visible, useWording } from "../components/basics";
import { CopyButton } from "../components/copy-button";
import { useReviewKeys } from "../components/review-keys";
import { ListEntry } from "../components/searched-list";
import { VirtualList } from "../components/virtual-list";
import { useCollection, type ToolProps } from "./collection-choice";
import { useExcerpts, type Excerpts } from "./excerpts";
import { EmptyState, NoCollections, SectionLink } from "./links";
import { RequestExamples } from "./request-example";
import { useAnswer, useChanges, useRequests } from "./requests";
import { documentPath, hasConditions, listPath, type DocumentFilter, type DocumentPage, type Service, type StoredDocument } from "./service";

/** Documents that are read at a time. */
const documentsAtATime = 100;
/** Numbers of documents of which a filter is asked for at a time: a page has no more. */
const filteredAtATime = 1000;

/** Characters of a text that are shown, because browsers lay out longer ones slowly. */
const shownCharacters = 100_000;

/** Where a list begins: at the first document, or at the last one. */
type Start = "first" | "last";

/** Documents that were read so far, in the order of the list. */
interface LoadedDocuments {
  /** What was asked for. */
  asked: string;
  documents: readonly StoredDocument[];
  /** Number at which the next ones begin; null if there are no more. */
  next: number | null;
}

/** Returns the conditions that a search for `meta` has: `source=news lang=zh`. A condition without a value is left out. */
export function parseConditions(search: string): [field: string, value: string][] {
  const terms = search.match(/(?:[^\s"]+|"[^"]*"?)+/g) ?? [];
  return terms.flatMap((term) => {
    const at = term.indexOf("=");
    const [field, value] = [term.slice(0, at).replace(/^meta\./, ""), term.slice(at + 1)];
    return at > 0 && field !== "" && value !== "" ? [[field, value] as [string, string]] : [];
  });
}

export function Documents(props: ToolProps) {
  const { service, onProblem, address, onAddress } = props;
  const say = useWording();
  const { name, settings, choice, isEmpty } = useCollection(props);
  const [verdict, setVerdict] = useState<DocumentFilter["verdict"]>("");
  const [start, setStart] = useState<Start>("last");
  const [search, setSearch] = useState("");
  const conditions = useMemo(() => parseConditions(search), [search]);
  const filter: DocumentFilter = { verdict, conditions };
  const { loaded, isWaiting, isRead, read, drop } = useDocuments(props, name, filter, start);
  const { documents, next } = loaded;
  const ids = useMemo(() => documents.map((it) => it.id ?? ""), [documents]);
  const excerpts = useExcerpts(service, settings?.holds === "texts" ? name : "", ids, onProblem);
  const box = useRef<HTMLInputElement>(null);
  const selected = ids.indexOf(address.item ?? "");
  const select = (at: number) => onAddress({ item: ids[at] ?? null }, true);
  const move = (step: number) => ids.length > 0 && select(Math.min(ids.length - 1, Math.max(0, selected + step)));
  useReviewKeys({ move, search: () => box.current?.focus() });
  useEffect(() => {
    if (isRead && address.item === null && ids.length > 0) select(0);
  }, [isRead, ids, address.item]);
  if (isEmpty) return <NoCollections />;
  if (isRead && ids.length === 0 && next === null && !hasConditions(filter) && address.item === null) {
    return (
      <>
        <div class="line">{choice}</div>
        <EmptyState why="console.noDocuments" links={[{ to: "import.title", section: "collections", collection: name }]} />
      </>
    );
  }
  return (
    <div class="split">
      <div class="side">
        <div class="line">{choice}</div>
        <IdForm onId={(item) => onAddress({ item })} />
        <input
          ref={box}
          class="search"
          type="search"
          value={search}
          placeholder="source=news"
          aria-label={say.text("documents.meta")}
          title={say.text("documents.metaHelp")}
          onChange={(event) => setSearch(event.currentTarget.value)}
        />
        <div class="filters">
          <label class="field">
            {say.text("list.show")}
            <select value={verdict} onChange={(event) => setVerdict(event.currentTarget.value as DocumentFilter["verdict"])}>
              {(["", "kept", "duplicate"] as const).map((it) => <option value={it} key={it}>{say.text(`documents.show.${it || "all"}`)}</option>)}
            </select>
          </label>
          <label class="field">
            {say.text("list.sort")}
            <select value={start} onChange={(event) => setStart(event.currentTarget.value as Start)}>
              {(["last", "first"] as const).map((it) => <option value={it} key={it}>{say.text(`documents.start.${it}`)}</option>)}
            </select>
          </label>
        </div>
        <span class="muted" role="status">{say.text("list.count", { n: ids.length })}</span>
        {ids.length === 0 ? (
          <p class="card muted">{say.text(isRead && !isWaiting ? "list.empty" : "console.reading")}</p>
        ) : (
          <VirtualList
            id="documents"
            label={say.text("console.documents")}
            count={ids.length}
            selected={selected}
            onSelect={select}
            render={(at) => <DocumentEntry document={documents[at]!} excerpts={excerpts} />}
          />
        )}
        {next !== null && <button type="button" class="button" disabled={isWaiting} onClick={() => read(next)}>{say.text("console.more")}</button>}
        <RequestExamples service={service} list={() => [{ path: listPath(name, filter, 0, documentsAtATime) }]} />
      </div>
      {name !== "" && address.item !== null && (
        <DocumentView
          key={`${name} ${address.item}`}
          {...props}
          name={name}
          id={address.item}
          onDeleted={(id) => {
            drop(id);
            onAddress({ item: null }, true);
          }}
        />
      )}
    </div>
  );
}

/** Reads the documents of a collection that a filter names, some at a time. */
function useDocuments({ service, onProblem }: ToolProps, name: string, filter: DocumentFilter, start: Start) {
  const asked = JSON.stringify([name, filter, start]);
  const [known, setKnown] = useState<LoadedDocuments | null>(null);
  const { isWaiting, send } = useRequests(asked, onProblem);
  const isRead = known?.asked === asked;
  const loaded = isRead ? known : { asked, documents: [], next: null };
  const readOn = start === "first" ? readForwards : readBackwards;
  const read = (from: number | null) =>
    send(() => readOn(service, name, filter, from), (page) => setKnown({ asked, documents: [...loaded.documents, ...page.documents], next: page.next }));
  useEffect(() => {
    if (name) void read(null);
  }, [asked]);
  const drop = (id: string) => setKnown((before) => before && { ...before, documents: before.documents.filter((it) => it.id !== id) });
  return { loaded, isWaiting, isRead, read, drop };
}

/** Reads documents in the order of their numbers. */
const readForwards = (service: Service, name: string, filter: DocumentFilter, after: number | null): Promise<DocumentPage> =>
  service.listDocuments(name, filter, after ?? 0, documentsAtATime);

/**
 * Reads documents, the last one first: those whose numbers are the largest up to `last`, or of all. The service lists by
 * growing numbers, so a filter finds only some of these numbers, none at times, and more of them are asked for at once.
 */
export async function readBackwards(service: Pick<Service, "getStats" | "listDocuments">, name: string, filter: DocumentFilter, last: number | null): Promise<DocumentPage> {
  const newest = last ?? (await service.getStats(name)).last_durable_row;
  const numbers = hasConditions(filter) ? filteredAtATime : documentsAtATime;
  const after = Math.max(0, newest - numbers);
  const page = newest > 0 ? await service.listDocuments(name, filter, after, numbers) : { documents: [] };
  const documents = page.documents.filter((it) => (it.seq ?? 0) <= newest).reverse();
  return { documents, next: after > 0 ? after : null };
}

function DocumentEntry({ document, excerpts }: { document: StoredDocument; excerpts: Excerpts }) {
  const say = useWording();
  const excerpt = excerpts.get(document.id ?? "");
  const id = <ShortName text={document.id ?? ""} />;
  const arrival = say.text("console.arrival", { seq: document.seq ?? 0 });
  return (
    <ListEntry
      name={excerpt === undefined ? id : <Excerpt text={excerpt} />}
      value={say.text(`documents.verdict.${document.verdict}`)}
      more={excerpt === undefined ? arrival : <>{id}<span>· {arrival}</span></>}
    />
  );
}

/** Asks for the id of a document. */
function IdForm({ onId }: { onId: (id: string) => void }) {
  const say = useWording();
  const [id, setId] = useState("");
  return (
    <form
      class="line"
      onSubmit={(event) => {
        event.preventDefault();
        if (id) onId(id);
      }}
    >
      <label class="field">{say.text("console.id")} <input value={id} size={16} onInput={(event) => setId(event.currentTarget.value)} /></label>
      <button type="submit" class="button" disabled={!id}>{say.text("documents.open")}</button>
    </form>
  );
}

interface DocumentViewProps extends ToolProps {
  name: string;
  id: string;
  onDeleted: (id: string) => void;
}

/** One document with all that is stored of it. */
function DocumentView({ service, onProblem, name, id, onDeleted }: DocumentViewProps) {
  const say = useWording();
  const document = useAnswer([name, id], () => service.findDocument(name, id), onProblem);
  if (document === undefined) return <p class="muted">{say.text("console.reading")}</p>;
  if (document === null) return <p class="card note" role="status">{say.text("documents.missing", { document: id })}</p>;
  const text = document.text ?? "";
  const isCut = text.length > shownCharacters;
  return (
    <div class="stack">
      <Card title={say.text("documents.one")}>
        <Facts
          rows={[
            [say.text("console.id"), <Name text={id} />],
            [say.text("documents.verdict"), <VerdictWords document={document} name={name} />],
            [say.text("documents.similarity"), document.similarity === null || document.similarity === undefined ? "" : <span class="number">{say.similarity(document.similarity)}</span>],
            [say.text("documents.number"), <span class="number">{document.seq}</span>],
            [say.text("documents.fingerprint"), document.fingerprint && <code>{document.fingerprint}</code>],
            [say.text("collections.time"), document.time === undefined ? "" : <Name text={sayTime(document.time, say.locale)} />],
          ]}
        />
        {document.meta !== undefined && document.meta !== null && (
          <>
            <h3>meta</h3>
            <pre><Visible text={JSON.stringify(document.meta, null, 2)} /></pre>
          </>
        )}
        <div class="line">
          {document.cluster !== null && <SectionLink section="clusters" collection={name} item={document.cluster} button="plain">{say.text("documents.cluster")}</SectionLink>}
          <CopyButton text={JSON.stringify(document, null, 2)} label={say.text("documents.copy")} />
        </div>
        <DeleteDocument {...{ service, onProblem, name, id, onDeleted }} />
        <RequestExamples service={service} list={() => [{ path: documentPath(name, id) }, { method: "DELETE", path: documentPath(name, id) }]} />
      </Card>
      {text !== "" && (
        <Card title={say.text("documents.text")}>
          <div class="words" dir="auto"><Visible text={isCut ? text.slice(0, shownCharacters) : text} /></div>
          {isCut && <p class="muted">{say.text("console.textsCut", { n: shownCharacters })}</p>}
        </Card>
      )}
    </div>
  );
}

/** Says what became of a document, with a link to the kept one that it repeats. */
function VerdictWords({ document, name }: { document: StoredDocument; name: string }) {
  const say = useWording();
  if (document.verdict === "kept" || document.of === null) return <>{say.text("documents.verdict.kept")}</>;
  return (
    <>
      {say.text("documents.repeats")}{say.colon}
      {document.of_gone ? <><Name text={document.of} /> <span class="muted">{say.text("documents.gone")}</span></> : <SectionLink section="documents" collection={name} item={document.of}><Name text={document.of} /></SectionLink>}
    </>
  );
}

/** Returns a time of a document as people read it; one in another form stays as it is. */
export function sayTime(time: string | number, locale: string): string {
  const date = new Date(typeof time === "number" ? time * 1000 : time);
  return Number.isNaN(date.getTime()) ? String(time) : date.toLocaleString(locale);
}

/** Deletes a document once the user has confirmed it. */
function DeleteDocument({ service, onProblem, name, id, onDeleted }: Pick<DocumentViewProps, "service" | "onProblem" | "name" | "id" | "onDeleted">) {
  const say = useWording();
  const [isOpen, setOpen] = useState(false);
  const { isWaiting, send } = useChanges(onProblem);
  const remove = () => send(() => service.deleteDocument(name, id), () => onDeleted(id));
  if (!isOpen) return <div class="line"><button type="button" class="button" onClick={() => setOpen(true)}>{say.asking("documents.delete")}</button></div>;
  return (
    <>
      <p class="note">{say.text("documents.deleteAsk")}</p>
      <div class="line">
        <button type="button" class="button danger" disabled={isWaiting} onClick={remove}>{say.text("collections.deleteNow")}</button>
        <button type="button" class="button" onClick={() => setOpen(false)}>{say.text("collections.cancel")}</button>
      </div>
    </>
  );
}
