/** The list of keys of a page, which `?` shows and hides. */
import { useEffect, useState } from "preact/hooks";
import type { MessageKey } from "../language/catalog";
import { useWording } from "./basics";

/** Keys with what they do. */
export type KeyRow = readonly [keys: readonly string[], does: MessageKey];

/** Keys of a page with lists. */
export const listKeys: readonly KeyRow[] = [
  [["j", "k"], "keys.next"],
  [["/"], "keys.search"],
  [["?"], "keys.help"],
];

/** Keys of a page on which pairs are marked, too. */
export const reviewKeys: readonly KeyRow[] = [listKeys[0]!, [["y", "n", "u"], "keys.mark"], ...listKeys.slice(1)];

/** Keys of a page with pairs of texts and their passages. */
export const passageKeys: readonly KeyRow[] = [listKeys[0]!, [["J", "K"], "keys.passage"], ...listKeys.slice(1)];

export function KeyHelp({ keys }: { keys: readonly KeyRow[] }) {
  const say = useWording();
  const [isOpen, setOpen] = useState(false);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const isTyping = (event.target as HTMLElement).matches("input, select, textarea");
      if (event.key === "?" && !isTyping) setOpen(!isOpen);
      if (event.key === "Escape") setOpen(false);
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  });
  return (
    <>
      <button type="button" class="button keys-button" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        {say.text("app.keys")} <kbd>?</kbd>
      </button>
      {isOpen && (
        <aside class="keys" aria-label={say.text("keys.title")}>
          <h2>{say.text("keys.title")}</h2>
          {keys.map(([names, does]) => (
            <div class="line" key={does}>
              <span>{names.map((name) => <><kbd>{name}</kbd> </>)}</span>
              <span>{say.text(does)}</span>
            </div>
          ))}
        </aside>
      )}
    </>
  );
}
