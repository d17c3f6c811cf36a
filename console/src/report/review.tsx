/** The removals one by one, the most doubtful first. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { ShortName, useWording } from "../components/basics";
import { VirtualList } from "../components/virtual-list";
import type { MessageKey } from "../language/catalog";
import type { Report } from "./data";
import type { Mark, Marks } from "./marks";
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

  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const target = event.target as HTMLElement;
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (target.matches("input, select, textarea")) {
        if (event.key === "Escape") target.blur();
        return;
      }
      const move = (step: number) => setSelected(Math.max(0, Math.min(rows.length - 1, at + step)));
      const mark = (value: Mark | null) => {
        if (removal === undefined) return;
        onMark(removal, value);
        if (value) move(1);
      };
      const actions: Record<string, () => void> = {
        j: () => move(1),
        k: () => move(-1),
        y: () => mark("same"),
        n: () => mark("different"),
        u: () => mark(null),
        "/": () => box.current?.focus(),
      };
      const action = actions[event.key];
      if (action) {
        event.preventDefault();
        action();
      }
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  });

  return (
    <div class="split">
      <div class="side">
        <input
          ref={box}
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
            {say.text("list.show")}
            <select value={shown} onChange={(event) => onShow(event.currentTarget.value as Shown)}>
              {(["nearest", "equal", "all"] as const).map((it) => (
                <option value={it} key={it}>{say.text(`show.${it}`)}</option>
              ))}
            </select>
          </label>
          <label class="field">
            {say.text("list.sort")}
            <select value={order} onChange={(event) => setOrder(event.currentTarget.value as Order)}>
              {(["nearest", "farthest", "input"] as const).map((it) => (
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
            id="removals"
            label={say.text("section.review")}
            count={rows.length}
            selected={at}
            onSelect={setSelected}
            render={(entry) => {
              const row = rows[entry]!;
              const cluster = removals.cluster[row]!;
              return (
                <>
                  <span class="name"><ShortName text={removals.id[row]!} length={28} /></span>
                  <span class="value">{say.similarity(removals.similarity[row]!)}</span>
                  <span class="more">→ <ShortName text={clusters.id[cluster]!} /></span>
                  <MarkLabel mark={marks.get(row)} />
                </>
              );
            }}
          />
        )}
      </div>
      {removal === undefined ? (
        <p class="card muted">{say.text("pair.select")}</p>
      ) : (
        <PairView report={report} removal={removal} mark={marks.get(removal)} onMark={(mark) => onMark(removal, mark)} />
      )}
    </div>
  );
}

export function MarkLabel({ mark }: { mark: Mark | undefined }) {
  const say = useWording();
  if (!mark) return <span />;
  const key: MessageKey = mark === "same" ? "pair.markedSame" : "pair.markedDifferent";
  return (
    <span class={`mark ${mark}`}>
      {mark === "same" ? "✓" : "✗"} <span class="hidden">{say.text(key)}</span>
    </span>
  );
}
