/** The state of a list that is searched, sorted and walked by keys. Every page with a list uses it. */
import type { RefObject } from "preact";
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { isBadTerm, parseQuery, type BadTerm, type Query } from "../report/query";
import { useReviewKeys, type Mark } from "./review-keys";

/** What a list shows. */
export interface ListSource<Row, Order extends string> {
  /** Orders to choose from, the usual one first. */
  orders: readonly Order[];
  /** Returns the rows that a query finds, all without one, as a new array in the order. */
  find: (query: Query | null, order: Order) => Row[];
  /** Values that `find` depends on. */
  inputs: readonly unknown[];
  /** What the list is about. A change selects the first row again. */
  subject: unknown;
  /** Marks a row; without it, the keys of marks do nothing. */
  mark?: (row: Row, mark: Mark | null) => void;
}

/** The parts of the state that the list itself takes. */
export interface ListControls<Order extends string> {
  search: string;
  onSearch: (search: string) => void;
  query: Query | BadTerm;
  box: RefObject<HTMLInputElement | null>;
  order: { value: Order; values: readonly Order[]; onChange: (order: Order) => void };
  count: number;
  selected: number;
  onSelect: (at: number) => void;
}

export interface ListState<Row, Order extends string> {
  controls: ListControls<Order>;
  rows: readonly Row[];
  /** Selected row; undefined if no row is found. */
  row: Row | undefined;
  /** Marks the selected row and moves on, unless a mark is taken back. */
  markSelected: (mark: Mark | null) => void;
}

export function useListState<Row, Order extends string>({ orders, find, inputs, subject, mark }: ListSource<Row, Order>): ListState<Row, Order> {
  const [search, onSearch] = useState("");
  const [order, setOrder] = useState<Order>(orders[0]!);
  const [selected, setSelected] = useState(0);
  // Keys that are pressed before the page is drawn again start from here.
  const latest = useRef(0);
  const onSelect = (at: number) => setSelected((latest.current = at));
  const box = useRef<HTMLInputElement>(null);
  const query = useMemo(() => parseQuery(search), [search]);
  // A mark is no input, so that no entry moves under the reviewer's hand.
  const rows = useMemo(() => find(isBadTerm(query) ? null : query, order), [...inputs, query, order]);
  useLayoutEffect(() => onSelect(0), [subject, query, order]);
  const within = (at: number) => Math.min(at, rows.length - 1);
  const at = within(selected);
  const move = (step: number) => onSelect(Math.max(0, within(within(latest.current) + step)));
  const markSelected = (value: Mark | null) => {
    const row = rows[within(latest.current)];
    if (!mark || row === undefined) return;
    mark(row, value);
    if (value) move(1);
  };
  useReviewKeys({ move, search: () => box.current?.focus(), ...(mark && { mark: markSelected }) });
  const controls: ListControls<Order> = {
    search,
    onSearch,
    query,
    box,
    order: { value: order, values: orders, onChange: setOrder },
    count: rows.length,
    selected: at,
    onSelect,
  };
  return { controls, rows, row: rows[at], markSelected };
}
