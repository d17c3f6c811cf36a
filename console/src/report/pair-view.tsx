/** A removal: both documents side by side, and the reviewer's mark. */
import { DiffLegend, SideBySide } from "../components/side-by-side";
import { Name, useWording } from "../components/basics";
import { MarkButtons } from "../components/mark-buttons";
import type { Mark } from "../components/review-keys";
import { quoteWord } from "../components/shell-words";
import type { Report } from "./data";
import { canMark } from "./marks";
import { sayRoute } from "./route";

interface PairViewProps {
  report: Report;
  removal: number;
  mark: Mark | undefined;
  onMark: (mark: Mark | null) => void;
}

export function PairView({ report, removal, mark, onMark }: PairViewProps) {
  const say = useWording();
  const { data } = report;
  const { removals, clusters, texts } = data;
  const cluster = removals.cluster[removal]!;
  const pair = report.textsOf(removal);
  const runs = report.runs.get(removal);
  const route = data.routes[removals.route[removal]!] ?? "";
  const place = (source: number, row: number) =>
    say.text("pair.row", { source: data.sources[source] ?? "", row });
  const keptTitle = (
    <>
      <b>{say.text("pair.kept")}</b> <Name text={clusters.id[cluster]!} />
      <div class="muted"><Name text={place(clusters.source[cluster]!, clusters.row[cluster]!)} /></div>
    </>
  );
  const removedTitle = (
    <>
      <b>{say.text("pair.removed")}</b> <Name text={removals.id[removal]!} />
      <div class="muted"><Name text={place(removals.source[removal]!, removals.row[removal]!)} /></div>
    </>
  );
  return (
    <div class="card pair">
      <div class="pair-head">
        <h2>
          {say.text("pair.similarity", { similarity: say.similarity(removals.similarity[removal]!) })}
          <span class="muted"> · {sayRoute(say, data, route)}{data.kind === "dedup" && <> · {say.text("pair.cluster", { n: clusters.size[cluster]! })}</>}</span>
        </h2>
        <DiffLegend />
      </div>
      {pair && runs ? (
        <>
          {report.isIdentical(removal) && <p class="note">{say.text("pair.identical")}</p>}
          <SideBySide
            key={removal}
            kept={texts.text[pair.kept]!}
            removed={texts.text[pair.removed]!}
            runs={runs}
            keptTitle={keptTitle}
            removedTitle={removedTitle}
          />
          <CutNote report={report} pair={pair} />
        </>
      ) : (
        <>
          <div class="sides">
            <div class="left title common">{keptTitle}</div>
            <div class="right title">{removedTitle}</div>
          </div>
          <MissingText report={report} id={removals.id[removal]!} />
        </>
      )}
      {canMark(report, removal) && <MarkButtons mark={mark} onMark={onMark} />}
    </div>
  );
}

function MissingText({ report, id }: { report: Report; id: string }) {
  const say = useWording();
  const { texts, explain_command: command } = report.data;
  if (texts.text.length === 0) return <p class="note">{say.text("pair.noTextFeatures")}</p>;
  if (!command) return <p class="note">{say.text("pair.noTextCommand")}</p>;
  return (
    <div class="note stack">
      <p>{say.text("pair.noText")}</p>
      <pre tabIndex={0}><Name text={command.replace(" ID ", () => ` ${quoteWord(id)} `)} /></pre>
    </div>
  );
}

function CutNote({ report, pair }: { report: Report; pair: { kept: number; removed: number } }) {
  const say = useWording();
  const { texts } = report.data;
  const notes = ([["pair.kept", pair.kept], ["pair.removed", pair.removed]] as const).flatMap(([side, text]) => {
    const shown = [...texts.text[text]!].length;
    const whole = texts.characters[text]!;
    return whole > shown ? [`${say.text(side)}${say.colon}${say.text("pair.cut", { shown, n: whole })}`] : [];
  });
  return notes.length > 0 ? <p class="muted">{notes.join(" ")}</p> : null;
}
