/** A list of any length of which only the visible entries exist. Arrow keys, page keys, Home and End move. */
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

interface VirtualListProps {
  /** Name of the list on its page. */
  id: string;
  label: string;
  isShort?: boolean;
  count: number;
  /** Selected entry, or −1. */
  selected: number;
  onSelect: (at: number) => void;
  render: (at: number) => ComponentChildren;
}

/** Height of an entry in pixels, as in the style. */
const entryHeight = 56;
const spare = 6;

export function VirtualList({ id, label, isShort, count, selected, onSelect, render }: VirtualListProps) {
  const box = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, height: 600 });
  const measure = () => {
    const element = box.current;
    if (element) setView({ top: element.scrollTop, height: element.clientHeight });
  };
  useLayoutEffect(measure, [count]);
  useEffect(() => {
    window.addEventListener("resize", measure);
    return () => window.removeEventListener("resize", measure);
  }, []);
  useLayoutEffect(() => {
    const element = box.current;
    if (!element || selected < 0) return;
    const start = selected * entryHeight;
    if (start < element.scrollTop) element.scrollTop = start;
    else if (start + entryHeight > element.scrollTop + element.clientHeight) {
      element.scrollTop = start + entryHeight - element.clientHeight;
    }
    measure();
  }, [selected, count]);
  const onKeyDown = (event: KeyboardEvent) => {
    const page = Math.max(1, Math.floor(view.height / entryHeight) - 1);
    const steps: Record<string, number> = {
      ArrowDown: 1,
      ArrowUp: -1,
      PageDown: page,
      PageUp: -page,
      Home: -count,
      End: count,
    };
    const step = steps[event.key];
    if (step === undefined || count === 0) return;
    event.preventDefault();
    onSelect(Math.min(count - 1, Math.max(0, selected + step)));
  };
  const first = Math.max(0, Math.floor(view.top / entryHeight) - spare);
  const end = Math.min(count, Math.ceil((view.top + view.height) / entryHeight) + spare);
  const entries = [];
  for (let at = first; at < end; at += 1) {
    entries.push(
      <div
        class="entry"
        role="option"
        key={at}
        id={`${id}-${at}`}
        aria-selected={at === selected}
        aria-setsize={count}
        aria-posinset={at + 1}
        style={{ top: `${at * entryHeight}px` }}
        onClick={() => onSelect(at)}
      >
        {render(at)}
      </div>,
    );
  }
  return (
    <div
      class={isShort ? "list short" : "list"}
      ref={box}
      role="listbox"
      tabIndex={0}
      aria-label={label}
      aria-activedescendant={selected >= first && selected < end ? `${id}-${selected}` : undefined}
      onScroll={measure}
      onKeyDown={onKeyDown}
    >
      <div class="list-inner" role="presentation" style={{ height: `${count * entryHeight}px` }}>
        {entries}
      </div>
    </div>
  );
}
