/** What a reviewer decides on a pair: the same, different, or not yet. */
import { useWording } from "./basics";
import type { MessageKey } from "../language/catalog";
import type { Mark } from "./review-keys";

export function MarkButtons({ mark, onMark }: { mark: Mark | undefined; onMark: (mark: Mark | null) => void }) {
  const say = useWording();
  return (
    <div class="marks" role="group" aria-label={say.text("pair.question")}>
      <strong>{say.text("pair.question")}</strong>
      <button type="button" class="button same" aria-pressed={mark === "same"} onClick={() => onMark("same")}>
        ✓ {say.text("pair.same")}<span class="wide">{say.text("pair.sameMeans")}</span> <kbd>y</kbd>
      </button>
      <button type="button" class="button different" aria-pressed={mark === "different"} onClick={() => onMark("different")}>
        ✗ {say.text("pair.different")}<span class="wide">{say.text("pair.differentMeans")}</span> <kbd>n</kbd>
      </button>
      {mark && (
        <button type="button" class="button" onClick={() => onMark(null)}>
          {say.text("pair.unmark")} <kbd>u</kbd>
        </button>
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
