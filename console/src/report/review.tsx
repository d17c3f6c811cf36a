/** The removals one by one, the most doubtful first. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { ShortName, useWording } from "../components/basics";
import { MarkLabel } from "../components/mark-buttons";
import { useReviewKeys, type Mark } from "../components/review-keys";
import { ListEntry, SearchedList } from "../components/searched-list";
import type { Report } from "./data";
import type { Marks } from "./marks";
import { PairView } from "./pair-view";
import { fold, isBadTerm, parseQuery, type Query } from "./query";

export type Shown = "nearest" | "equal" | "all";
type Order = "nearest" | "farthest" | "input";

/** Returns the removals that a query finds, in the order given. */
export function findRemovals(report: Report, rows: readonly number[], query: Query, marks: Marks): number[] {
  const { removals, clusters, texts, sources, routes } = report.data;
  const textsOf = (row: number) => {
    const pair = report.textsOf(row);
    return pair ? fold(`${texts.text[pair.kept]}\n${texts.text[pair.removed]}`) : "";
  };
  const idsOf = (row: number) => fold(`${removals.id[row]}\n${clusters.id[removals.cluster[row]!]}`);
  const hasMark = (row: number, wanted: string) => {
    const mark = marks.get(row);
    return wanted === "yes" ? mark !== undefined : wanted === "no" ? mark === undefined : mark === wanted;
  };
  return rows.filter((row) => {
    const cluster = removals.cluster[row]!;
    return (
      query.similarity.every((test) => test(removals.similarity[row]!)) &&
      query.cluster.every((test) => test(clusters.size[cluster]!)) &&
      query.marked.every((wanted) => hasMark(row, wanted)) &&
      query.route.every((route) => (routes[removals.route[row]!] ?? "").startsWith(route)) &&
      query.source.every((part) => fold(sources[removals.source[row]!] ?? "").includes(part)) &&
      query.id.every((part) => idsOf(row).includes(part)) &&
      query.words.every((part) => idsOf(row).includes(part) || textsOf(row).includes(part)) &&
      query.text.every((part) => textsOf(row).includes(part))
    );
  });
}

interface ReviewProps {
  report: Report;
  shown: Shown;
  onShow: (shown: Shown) => void;
  marks: Marks;
  onMark: (removal: number, mark: Mark | null) => void;
}

export function Review({ report, shown, onShow, marks, onMark }: ReviewProps) {
  const say = useWording();
  const { removals, clusters } = report.data;
  const [search, setSearch] = useState("");
  const [order, setOrder] = useState<Order>("nearest");
  const [selected, setSelected] = useState(0);
  const box = useRef<HTMLInputElement>(null);
  const query = useMemo(() => parseQuery(search), [search]);
  const rows = useMemo(() => {
    const { nearest, equal_after_normalization: equal } = report.data;
    const all = shown === "nearest" ? nearest : shown === "equal" ? equal.rows : removals.id.map((_, row) => row);
    const found = isBadTerm(query) ? all : findRemovals(report, all, query, query.marked.length > 0 ? marks : new Map());
    const sign = order === "nearest" ? 1 : order === "farthest" ? -1 : 0;
    const by = (a: number, b: number) => sign * (removals.similarity[a]! - removals.similarity[b]!) || a - b;
    return [...found].sort(by);
    // Marks change the list only where the search asks for them, so that no entry moves under the reviewer's hand.
  }, [report, shown, query, order]);
  useEffect(() => setSelected(0), [shown, query, order]);
  const at = Math.min(selected, rows.length - 1);
  const removal = rows[at];

  const move = (step: number) => setSelected(Math.max(0, Math.min(rows.length - 1, at + step)));
  useReviewKeys({
    move,
    mark: (mark) => {
      if (removal === undefined) return;
      onMark(removal, mark);
      if (mark) move(1);
    },
    search: () => box.current?.focus(),
  });

  return (
    <div class="split">
      <div class="side">
        <SearchedList
          id="removals"
          label={say.text("section.review")}
          search={search}
          onSearch={setSearch}
          query={query}
          hint="list.searchHint"
          help="list.searchHelp"
          box={box}
          filters={
            <label class="field">
              {say.text("list.show")}
              <select value={shown} onChange={(event) => onShow(event.currentTarget.value as Shown)}>
                {(["nearest", "equal", "all"] as const).map((it) => (
                  <option value={it} key={it}>{say.text(`show.${it}`)}</option>
                ))}
              </select>
            </label>
          }
          order={{ value: order, values: ["nearest", "farthest", "input"], onChange: setOrder }}
          count={rows.length}
          selected={at}
          onSelect={setSelected}
          empty={say.text("list.empty")}
          render={(entry) => {
            const row = rows[entry]!;
            const cluster = removals.cluster[row]!;
            return (
              <ListEntry
                name={<ShortName text={removals.id[row]!} length={28} />}
                value={say.similarity(removals.similarity[row]!)}
                more={<>→ <ShortName text={clusters.id[cluster]!} /></>}
                mark={<MarkLabel mark={marks.get(row)} />}
              />
            );
          }}
        />
      </div>
      {removal === undefined ? (
        <p class="card muted">{say.text("pair.select")}</p>
      ) : (
        <PairView report={report} removal={removal} mark={marks.get(removal)} onMark={(mark) => onMark(removal, mark)} />
      )}
    </div>
  );
}
