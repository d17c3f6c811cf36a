/**
 * Passages: how much of each document is found elsewhere and where, with both texts side by side.
 *
 * Where nothing says which of two documents is the source, both are treated alike, in words and in pictures.
 */
import { createContext } from "preact";
import { useContext, useMemo, useState } from "preact/hooks";
import { Name, ShortName, Stat, useWording, Visible } from "../components/basics";
import { FileReason } from "../components/file-reason";
import { passageKeys } from "../components/key-help";
import { Shell, useFooter } from "../components/shell";
import { useListState } from "../components/list-state";
import { ListEntry, SearchedList } from "../components/searched-list";
import { VirtualList } from "../components/virtual-list";
import { saveFile } from "../components/save-file";
import { Marked } from "../compare/page";
import type { Language, Wording } from "../language/catalog";
import { fold, type Query } from "../report/query";
import { maxDocuments, type ShareEdge } from "./class-graph";
import { allGroups, GroupChoice, TableInput, type GroupFilter } from "./groups";
import { isOfKind, type NameTable } from "./name-table";
import { ClassOverview } from "./overview";
import { PassageList } from "./passage-list";
import { writePairs } from "./pair-table";
import { sayReworded } from "./reworded";
import { BlackoutField, SaveButton, saveCopy, type ReportSource } from "./save-bar";

type Mark = [start: number, end: number, sourceStart: number, sourceEnd: number, length: number, similarity: number, kind: string];

/** The unit of a length: characters where a script has no words. */
export type LengthUnit = "words" | "characters";

/** Returns a length with its unit. */
const sayLength = (say: Wording, length: number, unit: LengthUnit): string => say.text(`passages.${unit}`, { n: length });

/** Words for documents, as they are shown. */
interface ShownNames {
  nameOf: (name: string) => string;
  nameOfGroup: (group: string) => string;
  groupOf: (name: string) => string;
  /** Returns what a table says of a document besides its name, with its file; empty without a table. */
  detailsOf: (name: string) => string;
  /** Returns the words by which a document is found. */
  wordsOf: (name: string) => string;
}

/** Saves a copy with one pair alone and without names. */
const SavePairContext = createContext((_pair: number): void => undefined);

const NamesContext = createContext<ShownNames>({ nameOf: (name) => name, nameOfGroup: (group) => group, groupOf: () => "", detailsOf: () => "", wordsOf: (name) => name });

/** Returns the words for documents: those of a table if there is one, or numbers if names are hidden. */
export function chooseNames(say: Wording, table: NameTable | null, numbers: ReadonlyMap<string, number>, isAnonymous: boolean): ShownNames {
  const groupOf = (name: string) => table?.documents.get(name)?.group ?? "";
  if (isAnonymous) {
    const nameOf = (name: string) => say.text("passages.anonymous", { n: numbers.get(name) ?? 0 });
    const nameOfGroup = (group: string) => (group === "" ? "" : say.text("passages.anonymousGroup", { n: (table?.groups.indexOf(group) ?? 0) + 1 }));
    const detailsOf = (name: string) => nameOfGroup(groupOf(name));
    return { nameOf, nameOfGroup, groupOf, detailsOf, wordsOf: (name) => `${nameOf(name)}\n${detailsOf(name)}` };
  }
  const authors = new Map<string, number>();
  for (const { name } of table?.documents.values() ?? []) authors.set(name, (authors.get(name) ?? 0) + 1);
  const nameOf = (name: string) => {
    const author = table?.documents.get(name)?.name ?? "";
    if (author === "") return name;
    const [before, after] = say.brackets;
    return authors.get(author) === 1 ? author : `${author}${before}${name}${after}`;
  };
  const detailsOf = (name: string) => {
    const row = table?.documents.get(name);
    return row ? [row.group, row.time, nameOf(name) === row.name ? name : ""].filter(Boolean).join(" · ") : "";
  };
  return { nameOf, nameOfGroup: (group) => group, groupOf, detailsOf, wordsOf: (name) => `${nameOf(name)}\n${name}\n${groupOf(name)}` };
}

export interface PassageData {
  kind: "passages";
  program: string;
  created: string;
  summary: { documents: number; against: number; passages: number; pairs: number; copying: number; directed: boolean; sharing: number; copied_tokens: number; tokens: number; base: { texts: number; documents: number; tokens: number }; common: { text: string; characters: number; documents: number } | null; rejected: number; unreadable_files: number; /** Files of directories whose kind is not read; absent in reports of earlier versions. */ skipped_files?: number; unreadable: { file: string; reason: string }[]; guessed_encodings: { encoding: string; files: number; first: string; names?: string[] }[]; /** Files that were given, where this is known. */ files?: number };
  /** `true` in a copy in which numbers stand in the place of names. */
  without_names?: boolean;
  language?: Language;
  written: [string, string][];
  pairs: {
    total: number;
    document: string[];
    source: string[];
    tokens: number[];
    covered: number[];
    copied: number[];
    /** Words and characters among the copied ones that lie in reworded passages alone. */
    reworded: number[];
    unit: LengthUnit[];
    share: number[];
    source_share: number[];
    passages: number[];
    longest: number[];
    document_text: number[];
    source_text: number[];
    marks: Mark[][];
    /** Runs of the edits of each passage, from the source to the document. */
    edits: number[][][];
  };
  texts: { text: string[]; characters: number[] };
}

export const readPassages = (data: { kind: string }): PassageData | null => (data.kind === "passages" ? (data as PassageData) : null);

/** A pair of documents, seen from one of them: 0 is the one that was read later, or copies. */
interface SeenPair {
  at: number;
  side: 0 | 1;
}

/** A document with the others that share text with it, those with the most of it first. */
interface SharingDocument {
  key: string;
  name: string;
  /** Share of the document that lies in passages of any source; without a direction, in those of one other document at most. */
  share: number;
  /** Words and characters, which are known of documents that copy. */
  tokens: number;
  /** Length of the longest passage. */
  longest: number;
  pairs: SeenPair[];
}

/** Tells of a pair by its number whether it is shown. */
type PairTest = (at: number) => boolean;

const anyPair: PairTest = () => true;

/** Returns the documents of the pairs that are shown, those that are found elsewhere to the largest part first. */
export function groupPairs(pairs: PassageData["pairs"], isDirected: boolean, isShown = anyPair): SharingDocument[] {
  const { document, source, tokens, covered, share, source_share, longest } = pairs;
  const documents = new Map<string, SharingDocument>();
  const add = (key: string, name: string, ofPair: number, pair: SeenPair) => {
    const known = documents.get(key);
    if (known) {
      known.pairs.push(pair);
      known.share = Math.max(known.share, ofPair);
      known.longest = Math.max(known.longest, longest[pair.at]!);
    } else documents.set(key, { key, name, share: ofPair, tokens: tokens[pair.at]!, longest: longest[pair.at]!, pairs: [pair] });
  };
  document.forEach((name, at) => {
    if (!isShown(at)) return;
    if (isDirected) {
      // Documents of one name are told apart by their figures.
      add(`${name}\n${tokens[at]}\n${covered[at]}`, name, tokens[at]! > 0 ? covered[at]! / tokens[at]! : 0, { at, side: 0 });
    } else {
      add(name, name, share[at]!, { at, side: 0 });
      add(source[at]!, source[at]!, source_share[at]!, { at, side: 1 });
    }
  });
  return [...documents.values()].sort((a, b) => b.share - a.share || (a.name < b.name ? -1 : 1));
}

/** Returns the name of the other document of a pair. */
const otherName = ({ document, source }: PassageData["pairs"], pair: SeenPair): string => (pair.side === 0 ? source : document)[pair.at]!;

/** Returns the number of the text of the document from which a pair is seen, or −1. */
const ownText = ({ document_text, source_text }: PassageData["pairs"], pair: SeenPair): number => (pair.side === 0 ? document_text : source_text)[pair.at]!;

/** Returns the names of all documents, in the order in which pairs name them, with their numbers from 1. */
function numberNames({ document, source }: PassageData["pairs"]): Map<string, number> {
  const names = new Map<string, number>();
  document.forEach((name, at) => [name, source[at]!].forEach((it) => names.has(it) || names.set(it, names.size + 1)));
  return names;
}

/** Returns the names of the documents of the pairs that are shown, those that share most first, and these pairs as edges between them. */
export function listEdges(pairs: PassageData["pairs"], isShown = anyPair): { names: string[]; edges: ShareEdge[] } {
  const most = new Map<string, number>();
  const shareOf = (at: number) => Math.max(pairs.share[at]!, pairs.source_share[at]!);
  const { document, source } = pairs;
  document.forEach((name, at) => isShown(at) && [name, source[at]!].forEach((it) => most.set(it, Math.max(most.get(it) ?? 0, shareOf(at)))));
  const names = [...most].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).slice(0, maxDocuments).map(([name]) => name);
  const numbers = new Map(names.map((name, at) => [name, at]));
  const edges = document.flatMap((name, at): ShareEdge[] => {
    const [a, b] = [numbers.get(name), numbers.get(source[at]!)];
    return !isShown(at) || a === undefined || b === undefined || a === b ? [] : [[a, b, shareOf(at)]];
  });
  return { names, edges };
}

/** Returns the documents that a query finds. `similarity` is the copied share, `cluster` the number of sources. */
function findDocuments(data: PassageData, documents: readonly SharingDocument[], query: Query, wordsOf: ShownNames["wordsOf"]): SharingDocument[] {
  const { pairs, texts } = data;
  return documents.filter((it) => {
    // Hidden names are not searched, so that no search reveals one.
    const names = fold([it.name, ...it.pairs.map((pair) => otherName(pairs, pair))].map(wordsOf).join("\n"));
    const text = () => fold(texts.text[ownText(pairs, it.pairs[0]!)] ?? "");
    return (
      query.similarity.every((test) => test(it.share)) &&
      query.cluster.every((test) => test(it.pairs.length)) &&
      query.id.every((part) => fold(wordsOf(it.name)).includes(part)) &&
      query.source.every((part) => it.pairs.some((pair) => fold(wordsOf(otherName(pairs, pair))).includes(part))) &&
      query.words.every((part) => names.includes(part) || text().includes(part)) &&
      query.text.every((part) => text().includes(part))
    );
  });
}

interface PassagesPageProps {
  data: PassageData;
  /** The page without its data. */
  page: string;
  onLanguage: () => void;
}

export function PassagesPage({ data, page, onLanguage }: PassagesPageProps) {
  const say = useWording();
  const footer = useFooter(data.created, data.program);
  const [table, setTable] = useState<NameTable | null>(null);
  return (
    <Shell title={say.text(data.summary.directed ? "passages.title" : "passages.titleShared")} keys={passageKeys} onLanguage={onLanguage} footer={footer}>
      <PassagesView data={data} source={{ page, isNew: false }} table={table} onTable={setTable} />
    </Shell>
  );
}

/** Orders of documents; those of a list without a direction have neutral names. */
type Order = "most" | "sources" | "mostShared" | "others" | "longestPassage" | "name";

const byPairs = (a: SharingDocument, b: SharingDocument) => b.pairs.length - a.pairs.length;

const orders: Record<Exclude<Order, "name">, (a: SharingDocument, b: SharingDocument) => number> = {
  most: () => 0,
  mostShared: () => 0,
  sources: byPairs,
  others: byPairs,
  longestPassage: (a, b) => b.longest - a.longest,
};

interface PassagesViewProps {
  data: PassageData;
  source: ReportSource;
  /** Names and groups of the documents; null without a table. */
  table: NameTable | null;
  onTable: (table: NameTable | null) => void;
  /** Leaves a text out of the next search; undefined where the page makes none. */
  onLeaveOut?: (text: string) => void;
}

/** The parts of a report of passages, for a page of its own or inside another. */
export function PassagesView({ data, source, table, onTable, onLeaveOut }: PassagesViewProps) {
  const say = useWording();
  const { summary, pairs } = data;
  const [isAnonymous, setAnonymous] = useState(false);
  const [filter, setFilter] = useState<GroupFilter>(allGroups);
  const numbers = useMemo(() => numberNames(pairs), [pairs]);
  const names = useMemo(() => chooseNames(say, table, numbers, isAnonymous), [table, numbers, isAnonymous, say.language]);
  const { nameOf, nameOfGroup, groupOf, detailsOf } = names;
  const [words, setWords] = useState("");
  const hasNames = !data.without_names;
  const hideName = hasNames ? chooseNames(say, null, numbers, true).nameOf : (name: string) => name;
  const save = (pair?: number) => saveCopy(say, source.page, data, hideName, words, pair);
  const isShown = useMemo((): PairTest => {
    if (!table) return anyPair;
    const groups = (at: number) => [groupOf(pairs.document[at]!), groupOf(pairs.source[at]!)] as const;
    return (at) => groups(at).every((it) => !filter.hidden.has(it)) && isOfKind(filter.kind, ...groups(at));
  }, [table, filter, pairs]);
  const documents = useMemo(() => groupPairs(pairs, summary.directed, isShown), [pairs, summary.directed, isShown]);
  const graph = useMemo(() => listEdges(pairs, isShown), [pairs, isShown]);
  const groups = useMemo(() => graph.names.map((name) => table?.groups.indexOf(groupOf(name)) ?? -1), [graph, table]);
  const byName = (a: SharingDocument, b: SharingDocument) => nameOf(a.name).localeCompare(nameOf(b.name), say.locale, { numeric: true });
  const { controls, rows, row: document } = useListState<SharingDocument, Order>({
    orders: summary.directed ? ["most", "sources", "longestPassage", "name"] : ["mostShared", "others", "longestPassage", "name"],
    inputs: [documents, names],
    subject: documents,
    find: (query, order) => (query ? findDocuments(data, documents, query, names.wordsOf) : [...documents]).sort(order === "name" ? byName : orders[order]),
  });
  const select = (at: number) => {
    const entry = rows.findIndex((it) => it.name === graph.names[at]);
    if (entry >= 0) controls.onSelect(entry);
  };
  return (
    <NamesContext.Provider value={names}>
      <SavePairContext.Provider value={save}>
      {!hasNames && <p class="note">{say.text("passages.copy")}</p>}
      <LeftOut summary={summary} isAnonymous={isAnonymous} />
      <div class="stats">
        <Stat value={say.count(summary.documents)} label={say.text("stat.documents")} more={summary.against > 0 ? say.text("stat.reference", { n: summary.against }) : undefined} />
        <Stat value={say.count(summary.sharing)} label={say.text(summary.directed ? "passages.copying" : "passages.sharing")} />
        <Stat value={say.count(summary.passages)} label={say.text("passages.passages")} more={say.text(summary.directed ? "passages.pairs" : "passages.pairsShared", { n: summary.pairs })} />
        {summary.tokens > 0 && <Stat value={say.share(summary.copied_tokens / summary.tokens)} label={say.text(summary.directed ? "passages.share" : "passages.repeated")} />}
      </div>
      <BaseNotes summary={summary} onLeaveOut={onLeaveOut} />
      {!summary.directed && summary.pairs > 0 && <p class="note">{say.text("passages.noDirection")}</p>}
      {summary.pairs > 0 && <p class="muted">{say.text("passages.evidence")}</p>}
      {pairs.document.length < pairs.total && <p class="note">{say.text("passages.sample", { listed: pairs.document.length, total: pairs.total })}</p>}
      <div class="line">
        {hasNames && <button type="button" class="button" aria-pressed={isAnonymous} onClick={() => setAnonymous(!isAnonymous)}>{say.text(isAnonymous ? "passages.showNames" : "passages.hideNames")}</button>}
        <SaveButton data={data} source={source} isAnonymous={isAnonymous || !hasNames} onCopy={save} />
        {pairs.document.length > 0 && (
          <>
            <button type="button" class="button" onClick={() => saveFile("pairs.csv", writePairs(data, nameOf, table ? (name) => nameOfGroup(groupOf(name)) : undefined), "text/csv")}>{say.text("passages.savePairs")}</button>
            <TableInput
              names={[...numbers.keys()]}
              table={table}
              onTable={(it) => {
                setFilter(allGroups);
                onTable(it);
              }}
            />
          </>
        )}
        {isAnonymous && <span class="muted">{say.text("passages.namesHidden")}</span>}
      </div>
      <BlackoutField words={words} onWords={setWords} />
      {pairs.document.length === 0 ? (
        <p class="card muted">{say.text(summary.directed ? "passages.none" : "passages.noneShared")}</p>
      ) : (
        <>
        {table && <GroupChoice {...{ table, filter, nameOfGroup, isAnonymous }} documents={numbers.size} onFilter={setFilter} />}
        <ClassOverview names={graph.names.map(nameOf)} groups={groups} edges={graph.edges} selected={document ? graph.names.indexOf(document.name) : -1} onSelect={select} />
        <div class="split">
          <div class="side">
            <SearchedList
              id="documents"
              label={say.text(summary.directed ? "passages.copying" : "passages.sharing")}
              controls={controls}
              hint="passages.searchHint"
              help={summary.directed ? "passages.searchHelp" : "passages.searchHelpShared"}
              empty={say.text("list.empty")}
              render={(entry) => (
                <ListEntry
                  name={<ShortName text={nameOf(rows[entry]!.name)} />}
                  value={say.share(rows[entry]!.share)}
                  more={[detailsOf(rows[entry]!.name), say.text(summary.directed ? "passages.sources" : "passages.others", { n: rows[entry]!.pairs.length })].filter(Boolean).join(" · ")}
                />
              )}
            />
          </div>
          {document ? <DocumentView key={document.key} data={data} document={document} /> : <p class="card muted">{say.text("pair.select")}</p>}
        </div>
        </>
      )}
      </SavePairContext.Provider>
    </NamesContext.Provider>
  );
}

/** Characters of a common text that are shown. The data of a page that searches again have all of it. */
const commonCharacters = 2000;

/** Returns the beginning of a common text. */
function cutCommon(text: string): string {
  const characters = [...text.slice(0, 2 * commonCharacters + 2)];
  return characters.length > commonCharacters ? `${characters.slice(0, commonCharacters).join("")}…` : text;
}

/** Says what was left out because all were given it, and which text more than half of all documents have. */
function BaseNotes({ summary, onLeaveOut }: { summary: PassageData["summary"]; onLeaveOut?: ((text: string) => void) | undefined }) {
  const say = useWording();
  const { base, common, documents } = summary;
  return (
    <>
      {base.texts > 0 && <p class="note">{say.text("passages.base", { n: base.texts, tokens: base.tokens, documents: base.documents })}</p>}
      {common && (
        <details class="note">
          <summary>{say.text(onLeaveOut ? "passages.commonHere" : "passages.common", { n: common.characters, having: common.documents, documents, most: common.documents - 1 })}</summary>
          <p class="words" dir="auto"><Visible text={cutCommon(common.text)} /></p>
          {onLeaveOut && <button type="button" class="button" onClick={() => onLeaveOut(common.text)}>{say.text("passages.leaveOut")}</button>}
        </details>
      )}
    </>
  );
}

/** Returns the names of files whose encoding was guessed, as many as a report has. */
function listGuessed({ files, first, names = [first] }: PassageData["summary"]["guessed_encodings"][number]): string {
  return [...names, ...(files > names.length ? ["…"] : [])].join(", ");
}

/** Names the files that were not read, with the reasons, and those that were read in an encoding that was guessed. */
function LeftOut({ summary, isAnonymous }: { summary: PassageData["summary"]; isAnonymous: boolean }) {
  const say = useWording();
  const { unreadable_files, skipped_files = 0, unreadable, guessed_encodings: guessed, files } = summary;
  const count = unreadable_files + skipped_files;
  const rows = summary.rejected - unreadable_files;
  return (
    <>
      {count > 0 && (
        <section class="card stack" role="note">
          <h2>{files === undefined ? say.text("passages.unreadable", { n: count }) : say.text("passages.unreadableOf", { n: count, files })}</h2>
          {/* Reasons name their files, too. */}
          {!isAnonymous && unreadable.length > 0 && (
            <>
              <ul>
                {unreadable.map((it) => <li key={it.file}><Name text={it.file} />{say.colon}<FileReason text={it.reason} /></li>)}
              </ul>
              {unreadable.length < count && <p class="muted">{say.text("passages.moreUnreadable", { n: count - unreadable.length })}</p>}
            </>
          )}
        </section>
      )}
      {rows > 0 && <p class="note">{say.text("passages.badRows", { n: rows })}</p>}
      {guessed.map((it) => (
        <p class="note" key={it.encoding}>{say.text("passages.guessed", { n: it.files, encoding: it.encoding, first: isAnonymous ? "…" : listGuessed(it) })}</p>
      ))}
    </>
  );
}

function DocumentView({ data, document }: { data: PassageData; document: SharingDocument }) {
  const say = useWording();
  const { nameOf, detailsOf } = useContext(NamesContext);
  const { pairs } = data;
  const { directed } = data.summary;
  const [pair, setPair] = useState(document.pairs[0]!);
  const found = directed
    ? say.text("passages.found", { share: say.share(document.share), n: document.tokens })
    : say.text("passages.shared", { share: say.share(document.share) });
  return (
    <div class="stack">
      <section class="card stack">
        <h2>
          <Name text={nameOf(document.name)} /> <span class="muted">· {found}</span>
        </h2>
        {detailsOf(document.name) && <p class="muted"><Name text={detailsOf(document.name)} /></p>}
        <VirtualList
          id="sources"
          label={say.text(directed ? "passages.sources" : "passages.others", { n: document.pairs.length })}
          isShort
          count={document.pairs.length}
          selected={document.pairs.indexOf(pair)}
          onSelect={(at) => setPair(document.pairs[at]!)}
          render={(at) => {
            const seen = document.pairs[at]!;
            const row = seen.at;
            const [own, other] = seen.side === 0 ? [pairs.share, pairs.source_share] : [pairs.source_share, pairs.share];
            return (
              <ListEntry
                name={<ShortName text={nameOf(otherName(pairs, seen))} />}
                value={say.share(own[row]!)}
                more={say.text(directed ? "passages.ofSource" : "passages.ofOther", { n: pairs.passages[row]!, longest: sayLength(say, pairs.longest[row]!, pairs.unit[row]!), share: say.share(other[row]!) }) + (sayReworded(say, pairs.marks[row]!) && ` · ${sayReworded(say, pairs.marks[row]!)}`)}
              />
            );
          }}
        />
      </section>
      <PairTexts key={`${pair.at} ${pair.side}`} data={data} seen={pair} />
    </div>
  );
}

function PairTexts({ data, seen }: { data: PassageData; seen: SeenPair }) {
  const say = useWording();
  const { nameOf, detailsOf } = useContext(NamesContext);
  const savePair = useContext(SavePairContext);
  const { pairs, texts } = data;
  const { at: pair, side } = seen;
  const bothSides = <T,>(first: T, second: T): [T, T] => (side === 0 ? [first, second] : [second, first]);
  const [document, source] = bothSides(pairs.document_text[pair]!, pairs.source_text[pair]!);
  const names = bothSides(pairs.document[pair]!, pairs.source[pair]!);
  const labels = data.summary.directed
    ? [say.text("passages.document"), say.text("passages.source")]
    : [say.text("passages.document"), say.text("passages.other")];
  const titles = names.map((name, at) => <><b>{labels[at]}</b> <Name text={[nameOf(name), detailsOf(name)].filter(Boolean).join(" · ")} /></>);
  if (document < 0 || source < 0) return <p class="card note">{say.text("passages.noText")}</p>;
  const marks = pairs.marks[pair]!;
  const places = marks.map(([start, end, otherStart, otherEnd]): [number, number, number, number] =>
    side === 0 ? [start, end, otherStart, otherEnd] : [otherStart, otherEnd, start, end],
  );
  const shared = marks.map((it) => ({ length: it[4], similarity: it[5], kind: it[6], unit: pairs.unit[pair]! }));
  const edits = pairs.edits[pair]!;
  const [ofDocument, ofSource] = bothSides(1 as 0 | 1, 0 as 0 | 1);
  const cut = [document, source].flatMap((text, place) => {
    const shown = [...texts.text[text]!].length;
    const n = texts.characters[text]!;
    return n > shown ? [`${labels[place]}${say.colon}${say.text("pair.cut", { shown, n })}`] : [];
  });
  return (
    <section class="card pair">
      <p class="muted">{say.text("passages.numbers")}{edits.some((runs) => runs.length > 0) && <>{say.gap}{say.text("passages.edits")}</>}</p>
      <div class="line no-print"><button type="button" class="button" onClick={() => savePair(pair)}>{say.text("passages.savePair")}</button></div>
      <PassageList passages={shared} starts={places.map((it) => it[0])} />
      {pairs.reworded[pair]! > 0 && <p class="note">{say.text("passages.rewordedMeans", { length: sayLength(say, pairs.reworded[pair]!, pairs.unit[pair]!), all: sayLength(say, pairs.copied[pair]!, pairs.unit[pair]!) })}</p>}
      <div class="sides scrolled texts">
        <div class="left title common">{titles[0]}</div>
        <div class="right title">{titles[1]}</div>
        <div class="left text" tabIndex={0} role="group" aria-label={labels[0]}>
          <Marked text={texts.text[document]!} passages={places} shared={shared} side={0} edits={{ runs: edits, side: ofDocument }} />
        </div>
        <div class="right text" tabIndex={0} role="group" aria-label={labels[1]}>
          <Marked text={texts.text[source]!} passages={places} shared={shared} side={1} edits={{ runs: edits, side: ofSource }} />
        </div>
      </div>
      {cut.length > 0 && <p class="muted">{cut.join(" ")}</p>}
    </section>
  );
}
