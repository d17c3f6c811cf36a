/** The removals one by one, the most doubtful first. */
import { ShortName, useWording } from "../components/basics";
import { useListState } from "../components/list-state";
import { MarkLabel } from "../components/mark-buttons";
import type { Mark } from "../components/review-keys";
import { ListEntry, SearchedList } from "../components/searched-list";
import type { Report } from "./data";
import type { Marks } from "./marks";
import { PairView } from "./pair-view";
import { fold, type Query } from "./query";

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
  const { controls, rows, row: removal } = useListState<number, Order>({
    orders: ["nearest", "farthest", "input"],
    inputs: [report, shown],
    subject: shown,
    find: (query, order) => {
      const { nearest, equal_after_normalization: equal } = report.data;
      const all = shown === "nearest" ? nearest : shown === "equal" ? equal.rows : removals.id.map((_, row) => row);
      const found = query ? findRemovals(report, all, query, query.marked.length > 0 ? marks : new Map()) : [...all];
      const sign = order === "nearest" ? 1 : order === "farthest" ? -1 : 0;
      return found.sort((a, b) => sign * (removals.similarity[a]! - removals.similarity[b]!) || a - b);
    },
    mark: onMark,
  });
  return (
    <div class="split">
      <div class="side">
        <SearchedList
          id="removals"
          label={say.text("section.review")}
          controls={controls}
          hint="list.searchHint"
          help="list.searchHelp"
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
          empty={say.text("list.empty")}
          render={(entry) => {
            const row = rows[entry]!;
            const cluster = removals.cluster[row]!;
            return (
              <ListEntry
                name={<ShortName text={removals.id[row]!} />}
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
