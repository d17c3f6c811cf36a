/**
 * Two texts side by side, line by line, with their differences marked by colour and by a sign. Lines and long stretches
 * that are equal are folded; a click unfolds them.
 */
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { useWording, Visible } from "./basics";

/** Kinds of runs, as the report has them. */
export const RunKind = { Equal: 0, Normalized: 1, Kept: 2, Removed: 3 } as const;

interface Piece {
  readonly kind: number;
  readonly text: string;
}

/** A line of both texts. */
interface Line {
  readonly left: Piece[];
  readonly right: Piece[];
}

/** Equal lines before and after a difference that stay unfolded, and characters of a long equal stretch. */
const contextLines = 1;
const contextCharacters = 140;
const longStretch = 500;

/** Cuts both texts into lines. A line ends where both texts have a line break in a run that they share. */
export function splitLines(kept: string, removed: string, runs: readonly number[]): Line[] {
  const lines: Line[] = [{ left: [], right: [] }];
  let [a, b] = [0, 0];
  const push = (kind: number, left: string, right: string) => {
    const line = lines[lines.length - 1]!;
    if (left) line.left.push({ kind, text: left });
    if (right) line.right.push({ kind, text: right });
  };
  for (let at = 0; at + 2 < runs.length; at += 3) {
    const kind = runs[at]!;
    const left = kept.slice(a, (a += runs[at + 1]!));
    const right = removed.slice(b, (b += runs[at + 2]!));
    if (kind !== RunKind.Equal) {
      push(kind, left, right);
      continue;
    }
    const parts = left.split("\n");
    parts.forEach((part, number) => {
      if (number > 0) lines.push({ left: [], right: [] });
      push(kind, part, part);
    });
  }
  return lines;
}

const isEqualLine = (line: Line) => line.left.every((piece) => piece.kind === RunKind.Equal) && line.right.every((piece) => piece.kind === RunKind.Equal);

interface SideBySideProps {
  kept: string;
  removed: string;
  runs: readonly number[];
  keptTitle: ComponentChildren;
  removedTitle: ComponentChildren;
}

export function SideBySide({ kept, removed, runs, keptTitle, removedTitle }: SideBySideProps) {
  const { text: say } = useWording();
  const [unfolded, setUnfolded] = useState<ReadonlySet<number>>(new Set());
  const lines = splitLines(kept, removed, runs);
  const equal = lines.map(isEqualLine);
  const rows: ComponentChildren[] = [];
  const unfold = (at: number) => setUnfolded(new Set([...unfolded, at]));
  const push = (from: number, to: number) => {
    for (let at = from; at < to; at += 1) rows.push(<Row line={lines[at]!} isFirst={at === 0} isLast={at === lines.length - 1} key={at} />);
  };
  for (let at = 0; at < lines.length; ) {
    const start = at;
    while (at < lines.length && equal[at]) at += 1;
    const from = start === 0 ? 0 : start + contextLines;
    const to = at === lines.length ? at : at - contextLines;
    if (to - from > 2 && !unfolded.has(start)) {
      push(start, from);
      rows.push(
        <div class="fold" key={`fold-${start}`}>
          <button type="button" class="fold-button" onClick={() => unfold(start)}>
            ⋯ {say("pair.equalLines", { n: to - from })}
          </button>
        </div>,
      );
      push(to, at);
    } else {
      push(start, at);
    }
    if (at < lines.length) {
      push(at, at + 1);
      at += 1;
    }
  }
  return (
    <div class="sides">
      <div class="left title common">{keptTitle}</div>
      <div class="right title">{removedTitle}</div>
      {rows}
    </div>
  );
}

function Row({ line, isFirst, isLast }: { line: Line; isFirst: boolean; isLast: boolean }) {
  const place = `${isEqualLine(line) ? " common" : ""}${isFirst ? " first" : ""}${isLast ? " last" : ""}`;
  return (
    <>
      <div class={`left${place}`}>
        <Words pieces={line.left} />
      </div>
      <div class={`right${place}`}>
        <Words pieces={line.right} />
      </div>
    </>
  );
}

function Words({ pieces }: { pieces: readonly Piece[] }) {
  return (
    <div class="words" dir="auto">
      {pieces.map((piece, at) => (
        <Run piece={piece} isFirst={at === 0} isLast={at === pieces.length - 1} key={at} />
      ))}
    </div>
  );
}

function Run({ piece, isFirst, isLast }: { piece: Piece; isFirst: boolean; isLast: boolean }) {
  const { text: say } = useWording();
  const [isOpen, setOpen] = useState(false);
  const { kind, text } = piece;
  // Each line has a mark of its own, and empty lines have none.
  if (kind === RunKind.Kept) return <>{eachLine(text, (line) => <del><Visible text={line} /></del>)}</>;
  if (kind === RunKind.Removed) return <>{eachLine(text, (line) => <ins><Visible text={line} /></ins>)}</>;
  if (kind === RunKind.Normalized) return <span class="alike"><Visible text={text} /></span>;
  if (isOpen || text.length <= longStretch) return <Visible text={text} />;
  const head = isFirst ? "" : text.slice(0, contextCharacters);
  const tail = isLast ? "" : text.slice(-contextCharacters);
  const start = isFirst && isLast ? text.slice(0, 2 * contextCharacters) : head;
  return (
    <>
      <Visible text={start} />{" "}
      <button type="button" class="fold-button" onClick={() => setOpen(true)}>
        ⋯ {say("pair.equalCharacters", { n: text.length - start.length - tail.length })}
      </button>{" "}
      <Visible text={tail} />
    </>
  );
}

/** Returns the parts of a text, with the line breaks between its lines. */
function eachLine(text: string, render: (line: string) => ComponentChildren): ComponentChildren[] {
  return text.split("\n").flatMap((line, at) => [at > 0 ? "\n" : "", line.trim() === "" ? line : render(line)]);
}

/** What the marks mean. */
export function DiffLegend() {
  const { text: say } = useWording();
  return (
    <div class="diff-legend words">
      <span><del>&nbsp;</del>{say("pair.legendKept")}</span>
      <span><ins>&nbsp;</ins>{say("pair.legendRemoved")}</span>
      <span><span class="alike">&nbsp;Aa&nbsp;</span>{say("pair.legendNormalized")}</span>
    </div>
  );
}
