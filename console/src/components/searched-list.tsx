/** A list with its search, its order, its number of entries and what stands in its place where it is empty. */
import type { ComponentChildren, RefObject } from "preact";
import type { MessageKey } from "../language/catalog";
import type { BadTerm, Query } from "../report/query";
import { isBadTerm } from "../report/query";
import { useWording } from "./basics";
import { VirtualList } from "./virtual-list";

interface SearchedListProps<Order extends string> {
  /** Name of the list on its page. */
  id: string;
  label: string;
  search: string;
  onSearch: (search: string) => void;
  /** The parsed search. */
  query: Query | BadTerm;
  hint: MessageKey;
  help: MessageKey;
  box?: RefObject<HTMLInputElement | null>;
  /** Choices before the order. */
  filters?: ComponentChildren;
  order?: { value: Order; values: readonly Order[]; onChange: (order: Order) => void };
  count: number;
  selected: number;
  onSelect: (at: number) => void;
  /** What stands in place of an empty list. */
  empty: string;
  render: (at: number) => ComponentChildren;
}

export function SearchedList<Order extends string>(props: SearchedListProps<Order>) {
  const say = useWording();
  const { query, order, filters, count } = props;
  return (
    <>
      <input
        ref={props.box ?? null}
        class="search"
        type="search"
        value={props.search}
        placeholder={say.text(props.hint)}
        aria-label={say.text("list.search")}
        title={say.text(props.help)}
        onInput={(event) => props.onSearch(event.currentTarget.value)}
      />
      {(filters || order) && (
        <div class="filters">
          {filters}
          {order && (
            <label class="field">
              {say.text("list.sort")}
              <select value={order.value} onChange={(event) => order.onChange(event.currentTarget.value as Order)}>
                {order.values.map((it) => <option value={it} key={it}>{say.known(`sort.${it}`, it)}</option>)}
              </select>
            </label>
          )}
        </div>
      )}
      {isBadTerm(query) && (
        <p class="note" role="alert">{say.text("list.badQuery", { term: query.term, help: say.text(query.help) })}</p>
      )}
      <span class="muted" role="status">{say.text("list.count", { n: count })}</span>
      {count === 0 ? (
        <p class="card muted">{props.empty}</p>
      ) : (
        <VirtualList id={props.id} label={props.label} count={count} selected={props.selected} onSelect={props.onSelect} render={props.render} />
      )}
    </>
  );
}

/** What an entry of a list shows: a name and a value, and below them more and a mark. */
export function ListEntry({ name, value, more, mark }: { name: ComponentChildren; value?: ComponentChildren; more?: ComponentChildren; mark?: ComponentChildren }) {
  return (
    <>
      <span class="name">{name}</span>
      <span class="value">{value}</span>
      <span class="more">{more}</span>
      <span class="under">{mark}</span>
    </>
  );
}
