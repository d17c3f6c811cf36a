/** Decisions of a person that overrule verdicts of the service: made beside a pair of documents, listed, and taken back. */
import { useEffect, useState } from "preact/hooks";
import { Card, ShortName, useWording } from "../components/basics";
import { MarkButtons, MarkLabel } from "../components/mark-buttons";
import { useReviewKeys, type Mark } from "../components/review-keys";
import type { ToolProps } from "./collection-choice";
import { useAnswer, useChanges, useRequests } from "./requests";
import type { DecisionResult, StoredDecision } from "./service";

/** A pair of documents, the kept one first. */
type DocumentPair = readonly [string, string];

interface PairDecisionProps extends ToolProps {
  name: string;
  ids: DocumentPair;
  /** `true` if the keys of marks decide, because nothing else on the page takes them. */
  hasKeys: boolean;
  /** Called after verdicts have changed. */
  onChanged: () => void;
}

/** The buttons that decide about a pair of documents, with what is decided and what the last decision has changed. */
export function PairDecision({ service, onProblem, name, ids, hasKeys, onChanged }: PairDecisionProps) {
  const say = useWording();
  const [result, setResult] = useState<DecisionResult | null>(null);
  const decided = useAnswer([name, ...ids, result], () => findDecision(service, name, ids), onProblem);
  const { isWaiting, send } = useChanges(onProblem);
  const decide = (mark: Mark | null) =>
    send(
      () => service.decide(name, { a_id: ids[0], b_id: ids[1], label: mark ?? "none" }),
      (found) => {
        setResult(found);
        if (found.changed.length > 0) onChanged();
      },
    );
  return (
    <section class="card stack" aria-busy={isWaiting}>
      {hasKeys && <MarkKeys onMark={decide} />}
      <MarkButtons mark={decided?.label} onMark={decide} />
      {decided && <p class="note">{say.text(`decide.${decided.label}`)}</p>}
      {result && <DecisionEffect result={result} />}
    </section>
  );
}

/** A button that opens the decision about a pair, because the marks beside it are labels and change no verdict. */
export function OverruledPair(props: Omit<PairDecisionProps, "hasKeys" | "onChanged">) {
  const say = useWording();
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <div class="line">
        <button type="button" class="button" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>{say.text("decide.apply")}</button>
      </div>
      {isOpen && <PairDecision {...props} hasKeys={false} onChanged={() => undefined} />}
    </>
  );
}

/** Gives the keys of marks to the buttons. */
function MarkKeys({ onMark }: { onMark: (mark: Mark | null) => void }) {
  useReviewKeys({ move: () => undefined, mark: onMark });
  return null;
}

/** Says which verdicts a decision has changed. */
function DecisionEffect({ result }: { result: DecisionResult }) {
  const say = useWording();
  return (
    <div role="status">
      <p>{say.text(`decide.outcome.${result.outcome}`)}</p>
      {result.changed.length > 0 && (
        <ul>
          {result.changed.slice(0, shownDocuments).map((it) => (
            <li key={it.id}>
              <ShortName text={it.id ?? ""} />{" "}
              {it.verdict === "kept" ? say.text("decide.kept") : <>{say.text("decide.duplicateOf")} <ShortName text={it.of ?? ""} /></>}
            </li>
          ))}
        </ul>
      )}
      {result.changed_total > shownDocuments && <p class="muted">{say.text("decide.more", { n: result.changed_total - shownDocuments })}</p>}
    </div>
  );
}

/** Documents of an effect that are listed. */
const shownDocuments = 20;

/** Returns the decision on the texts of two documents, if there is one. */
async function findDecision(service: ToolProps["service"], name: string, ids: DocumentPair): Promise<StoredDecision | null> {
  const [first, second] = await Promise.all(ids.map((id) => service.listDecisions(name, null, id)));
  const seqs = new Set(first!.decisions.map((it) => it.seq));
  return second!.decisions.find((it) => seqs.has(it.seq)) ?? null;
}

interface DecisionListProps extends ToolProps {
  name: string;
  /** Changes whenever decisions may have changed. */
  version: number;
  onChanged: () => void;
}

/** The decisions of a collection, a page at a time, each with a button that takes it back. */
export function DecisionList({ service, onProblem, name, version, onChanged }: DecisionListProps) {
  const say = useWording();
  const [decisions, setDecisions] = useState<readonly StoredDecision[]>([]);
  const [next, setNext] = useState<number | null>(null);
  const { isWaiting, send } = useRequests(name, onProblem);
  const changes = useChanges(onProblem);
  const read = (after: number | null) =>
    send(() => service.listDecisions(name, after), (page) => {
      setDecisions((known) => (after === null ? page.decisions : [...known, ...page.decisions]));
      setNext(page.next);
    });
  useEffect(() => {
    if (name) void read(null);
  }, [name, version]);
  const withdraw = (decision: StoredDecision) => changes.send(() => service.withdrawDecision({ name, a: decision.a, b: decision.b }), onChanged);
  if (decisions.length === 0) return null;
  return (
    <Card title={say.text("decide.list")}>
      <ul class="decisions">
        {decisions.map((it) => (
          <li key={it.seq} class="line">
            <MarkLabel mark={it.label} /> <ShortName text={it.a_id ?? it.a} /> · <ShortName text={it.b_id ?? it.b} />
            <button type="button" class="button" disabled={changes.isWaiting} onClick={() => withdraw(it)}>{say.text("pair.unmark")}</button>
          </li>
        ))}
      </ul>
      {next !== null && <button type="button" class="button" disabled={isWaiting} onClick={() => read(next)}>{say.text("console.more")}</button>}
    </Card>
  );
}
