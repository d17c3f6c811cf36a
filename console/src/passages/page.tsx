/** Copied passages: how much of each document is found elsewhere and where, with both texts side by side. */
import { useMemo, useState } from "preact/hooks";
import { Name, ShortName, Stat, useWording } from "../components/basics";
import { listKeys } from "../components/key-help";
import { Shell, useFooter } from "../components/shell";
import { useListState } from "../components/list-state";
import { ListEntry, SearchedList } from "../components/searched-list";
import { VirtualList } from "../components/virtual-list";
import { Marked } from "../compare/page";
import { fold, type Query } from "../report/query";

type Mark = [start: number, end: number, sourceStart: number, sourceEnd: number, length: number, similarity: number, kind: string];

export interface PassageData {
  kind: "passages";
  program: string;
  created: string;
  summary: { documents: number; against: number; passages: number; pairs: number; copying: number; copied_tokens: number; tokens: number; rejected: number };
  written: [string, string][];
  pairs: {
    total: number;
    document: string[];
    source: string[];
    tokens: number[];
    covered: number[];
    copied: number[];
    share: number[];
    source_share: number[];
    passages: number[];
    longest: number[];
    document_text: number[];
    source_text: number[];
    marks: Mark[][];
  };
  texts: { text: string[]; characters: number[] };
}

export const readPassages = (data: { kind: string }): PassageData | null => (data.kind === "passages" ? (data as PassageData) : null);

/** A document with its sources, those with the most copied text first. */
interface CopyingDocument {
  name: string;
  /** Share of the document that lies in passages of any source. */
  share: number;
  tokens: number;
  pairs: number[];
}

/** Returns the documents, those that are found elsewhere to the largest part first. */
export function groupPairs({ document, tokens, covered }: PassageData["pairs"]): CopyingDocument[] {
  const documents = new Map<string, CopyingDocument>();
  document.forEach((name, at) => {
    const key = `${name}\n${tokens[at]}\n${covered[at]}`;
    const known = documents.get(key);
    if (known) known.pairs.push(at);
    else documents.set(key, { name, share: tokens[at]! > 0 ? covered[at]! / tokens[at]! : 0, tokens: tokens[at]!, pairs: [at] });
  });
  return [...documents.values()].sort((a, b) => b.share - a.share || (a.name < b.name ? -1 : 1));
}

/** Returns the documents that a query finds. `similarity` is the copied share, `cluster` the number of sources. */
function findDocuments(data: PassageData, documents: readonly CopyingDocument[], query: Query): CopyingDocument[] {
  const { pairs, texts } = data;
  return documents.filter((it) => {
    const names = fold([it.name, ...it.pairs.map((at) => pairs.source[at])].join("\n"));
    const text = () => fold(texts.text[pairs.document_text[it.pairs[0]!]!] ?? "");
    return (
      query.similarity.every((test) => test(it.share)) &&
      query.cluster.every((test) => test(it.pairs.length)) &&
      query.id.every((part) => fold(it.name).includes(part)) &&
      query.source.every((part) => it.pairs.some((at) => fold(pairs.source[at]!).includes(part))) &&
      query.words.every((part) => names.includes(part) || text().includes(part)) &&
      query.text.every((part) => text().includes(part))
    );
  });
}

export function PassagesPage({ data, onLanguage }: { data: PassageData; onLanguage: () => void }) {
  const say = useWording();
  const footer = useFooter(data.created, data.program);
  return (
    <Shell title={say.text("passages.title")} keys={listKeys} onLanguage={onLanguage} footer={footer}>
      <PassagesView data={data} />
    </Shell>
  );
}

type Order = "most" | "sources" | "name";

const orders: Record<Order, (a: CopyingDocument, b: CopyingDocument) => number> = {
  most: () => 0,
  sources: (a, b) => b.pairs.length - a.pairs.length,
  name: (a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0),
};

/** The parts of a report of passages, for a page of its own or inside another. */
export function PassagesView({ data }: { data: PassageData }) {
  const say = useWording();
  const { summary, pairs } = data;
  const documents = useMemo(() => groupPairs(pairs), [pairs]);
  const { controls, rows, row: document } = useListState<CopyingDocument, Order>({
    orders: ["most", "sources", "name"],
    inputs: [documents],
    subject: documents,
    find: (query, order) => (query ? findDocuments(data, documents, query) : [...documents]).sort(orders[order]),
  });
  return (
    <>
      <div class="stats">
        <Stat value={say.count(summary.documents)} label={say.text("stat.documents")} more={summary.against > 0 ? say.text("stat.reference", { n: summary.against }) : undefined} />
        <Stat value={say.count(summary.copying)} label={say.text("passages.copying")} />
        <Stat value={say.count(summary.passages)} label={say.text("passages.passages")} more={say.text("passages.pairs", { n: summary.pairs })} />
        <Stat value={say.share(summary.tokens > 0 ? summary.copied_tokens / summary.tokens : 0)} label={say.text("passages.share")} />
      </div>
      {pairs.document.length < pairs.total && <p class="note">{say.text("passages.sample", { listed: pairs.document.length, total: pairs.total })}</p>}
      {documents.length === 0 ? (
        <p class="card muted">{say.text("passages.none")}</p>
      ) : (
        <div class="split">
          <div class="side">
            <SearchedList
              id="documents"
              label={say.text("passages.copying")}
              controls={controls}
              hint="passages.searchHint"
              help="passages.searchHelp"
              empty={say.text("list.empty")}
              render={(entry) => (
                <ListEntry
                  name={<ShortName text={rows[entry]!.name} />}
                  value={say.share(rows[entry]!.share)}
                  more={say.text("passages.sources", { n: rows[entry]!.pairs.length })}
                />
              )}
            />
          </div>
          {document ? <DocumentView key={document.name + document.tokens} data={data} document={document} /> : <p class="card muted">{say.text("pair.select")}</p>}
        </div>
      )}
    </>
  );
}

function DocumentView({ data, document }: { data: PassageData; document: CopyingDocument }) {
  const say = useWording();
  const { pairs } = data;
  const [pair, setPair] = useState(document.pairs[0]!);
  return (
    <div class="stack">
      <section class="card stack">
        <h2>
          <Name text={document.name} /> <span class="muted">· {say.text("passages.found", { share: say.share(document.share), n: document.tokens })}</span>
        </h2>
        <VirtualList
          id="sources"
          label={say.text("passages.sources", { n: document.pairs.length })}
          isShort
          count={document.pairs.length}
          selected={document.pairs.indexOf(pair)}
          onSelect={(at) => setPair(document.pairs[at]!)}
          render={(at) => {
            const row = document.pairs[at]!;
            return (
              <ListEntry
                name={<ShortName text={pairs.source[row]!} />}
                value={say.share(pairs.share[row]!)}
                more={say.text("passages.ofSource", { n: pairs.passages[row]!, longest: pairs.longest[row]!, share: say.share(pairs.source_share[row]!) })}
              />
            );
          }}
        />
      </section>
      <PairTexts key={pair} data={data} pair={pair} />
    </div>
  );
}

function PairTexts({ data, pair }: { data: PassageData; pair: number }) {
  const say = useWording();
  const { pairs, texts } = data;
  const [document, source] = [pairs.document_text[pair]!, pairs.source_text[pair]!];
  const titles = [
    <><b>{say.text("passages.document")}</b> <Name text={pairs.document[pair]!} /></>,
    <><b>{say.text("passages.source")}</b> <Name text={pairs.source[pair]!} /></>,
  ];
  if (document < 0 || source < 0) return <p class="card note">{say.text("passages.noText")}</p>;
  const marks = pairs.marks[pair]!;
  const places = marks.map((it) => it.slice(0, 4) as [number, number, number, number]);
  const shared = marks.map((it) => ({ length: it[4], similarity: it[5], kind: it[6] }));
  const cut = [document, source].flatMap((text, side) => {
    const shown = [...texts.text[text]!].length;
    const n = texts.characters[text]!;
    return n > shown ? [`${say.text(side === 0 ? "passages.document" : "passages.source")}: ${say.text("pair.cut", { shown, n })}`] : [];
  });
  return (
    <section class="card pair">
      <p class="muted">{say.text("passages.numbers")}</p>
      <div class="sides scrolled texts">
        <div class="left title common">{titles[0]}</div>
        <div class="right title">{titles[1]}</div>
        <div class="left text" tabIndex={0} role="group" aria-label={say.text("passages.document")}>
          <Marked text={texts.text[document]!} passages={places} shared={shared} side={0} />
        </div>
        <div class="right text" tabIndex={0} role="group" aria-label={say.text("passages.source")}>
          <Marked text={texts.text[source]!} passages={places} shared={shared} side={1} />
        </div>
      </div>
      {cut.length > 0 && <p class="muted">{cut.join(" ")}</p>}
    </section>
  );
}
