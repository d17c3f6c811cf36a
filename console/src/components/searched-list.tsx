/** A list with its search, its order, its number of entries and what stands in its place where it is empty. */
import type { ComponentChildren } from "preact";
import type { MessageKey } from "../language/catalog";
import { isBadTerm } from "../report/query";
import { useWording } from "./basics";
import type { ListControls } from "./list-state";
import { VirtualList } from "./virtual-list";

interface SearchedListProps<Order extends string> {
  /** Name of the list on its page. */
  id: string;
  label: string;
  controls: ListControls<Order>;
  hint: MessageKey;
  help: MessageKey;
  /** Choices before the order. */
  filters?: ComponentChildren;
  /** What stands in place of an empty list. */
  empty: string;
  render: (at: number) => ComponentChildren;
}

export function SearchedList<Order extends string>(props: SearchedListProps<Order>) {
  const say = useWording();
  const { search, onSearch, query, box, order, count, selected, onSelect } = props.controls;
  return (
    <>
      <input
        ref={box}
        class="search"
        type="search"
        value={search}
        placeholder={say.text(props.hint)}
        aria-label={say.text("list.search")}
        title={say.text(props.help)}
        onInput={(event) => onSearch(event.currentTarget.value)}
      />
      <div class="filters">
        {props.filters}
        <label class="field">
          {say.text("list.sort")}
          <select value={order.value} onChange={(event) => order.onChange(event.currentTarget.value as Order)}>
            {order.values.map((it) => <option value={it} key={it}>{say.known(`sort.${it}`, it)}</option>)}
          </select>
        </label>
      </div>
      {isBadTerm(query) && (
        <p class="note" role="alert">{say.text("list.badQuery", { term: query.term, help: say.text(query.help) })}</p>
      )}
      <span class="muted" role="status">{say.text("list.count", { n: count })}</span>
      {count === 0 ? (
        <p class="card muted">{props.empty}</p>
      ) : (
        <VirtualList id={props.id} label={props.label} count={count} selected={selected} onSelect={onSelect} render={props.render} />
      )}
    </>
  );
}

/** What an entry of a list shows: a name and a value, and below them more and a mark. */
export function ListEntry({ name, value, more, mark }: { name: ComponentChildren; value?: ComponentChildren; more?: ComponentChildren; mark?: ComponentChildren }) {
  return (
    <>
      <span class="name parts">{name}</span>
      <span class="value">{value}</span>
      <span class={typeof more === "string" ? "more" : "more parts"}>{more}</span>
      {mark && <span class="under">{mark}</span>}
    </>
  );
}
