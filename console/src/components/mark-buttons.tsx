/** What a reviewer decides on a pair: the same, different, or not yet. */
import { useWording } from "./basics";
import type { MessageKey } from "../language/catalog";
import type { Mark } from "./review-keys";

/** The subject of a mark: a pair of texts, or a form. */
type Subject = "pair" | "form";

export function MarkButtons({ mark, onMark, about = "pair" }: { mark: Mark | undefined; onMark: (mark: Mark | null) => void; about?: Subject }) {
  const say = useWording();
  return (
    <div class="marks" role="group" aria-label={say.text(`${about}.question`)}>
      <strong>{say.text(`${about}.question`)}</strong>
      <button type="button" class="button same" aria-pressed={mark === "same"} onClick={() => onMark("same")}>
        ✓ {say.text(`${about}.same`)}<span class="wide">{say.text(`${about}.sameMeans`)}</span> <kbd>y</kbd>
      </button>
      <button type="button" class="button different" aria-pressed={mark === "different"} onClick={() => onMark("different")}>
        ✗ {say.text(`${about}.different`)}<span class="wide">{say.text(`${about}.differentMeans`)}</span> <kbd>n</kbd>
      </button>
      {mark && (
        <button type="button" class="button" onClick={() => onMark(null)}>
          {say.text("pair.unmark")} <kbd>u</kbd>
        </button>
      )}
    </div>
  );
}

export function MarkLabel({ mark, about = "pair" }: { mark: Mark | undefined; about?: Subject }) {
  const say = useWording();
  if (!mark) return <span />;
  const key: MessageKey = mark === "same" ? `${about}.markedSame` : `${about}.markedDifferent`;
  return (
    <span class={`mark ${mark}`}>
      {mark === "same" ? "✓" : "✗"} <span class="hidden">{say.text(key)}</span>
    </span>
  );
}
