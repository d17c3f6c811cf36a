/** Decisions of a person that overrule verdicts of the service: made beside a pair of documents, listed, and taken back. */
import { useEffect, useState } from "preact/hooks";
import { Card, ShortName, Visible, useWording } from "../components/basics";
import { MarkButtons, MarkLabel } from "../components/mark-buttons";
import { useReviewKeys, type Mark } from "../components/review-keys";
import type { ToolProps } from "./collection-choice";
import { useAnswer, useChanges, useRequests, type OnProblem } from "./requests";
import type { DecisionResult, Service, StoredDecision, Verdict } from "./service";

/** A pair of documents, the kept one first. */
type DocumentPair = readonly [string, string];

/** A change of a decision; `mark` is null if the decision was taken back. */
interface DecisionChange {
  pair: DocumentPair;
  mark: Mark | null;
  result: DecisionResult;
}

/** The decisions that a page makes about documents of a collection. */
export interface PageDecisions {
  isWaiting: boolean;
  /** Grows with every change. */
  version: number;
  /** The last change. */
  change: DecisionChange | null;
  decide: (pair: DocumentPair, mark: Mark | null) => void;
  /** Takes back the decision on a pair if it has one, otherwise the last decision that was made here. */
  takeBack: (pair: DocumentPair | null, isDecided: boolean) => void;
  /** Takes back a decision of the list. */
  withdraw: (decision: StoredDecision) => void;
}

const nothingChanged: DecisionResult = { outcome: "unchanged", changed: [], changed_total: 0 };

/** Makes decisions. They outlive the pair that they are about, because a pair that is decided often leaves its cluster. */
export function usePageDecisions({ service, name, onProblem, onChanged }: { service: Service; name: string; onProblem: OnProblem; onChanged: () => void }): PageDecisions {
  const [change, setChange] = useState<DecisionChange | null>(null);
  const [version, setVersion] = useState(0);
  /** Pairs that were decided here and can be taken back, the newest last. */
  const [made, setMade] = useState<readonly DocumentPair[]>([]);
  const { isWaiting, send } = useChanges(onProblem);
  useEffect(() => {
    setChange(null);
    setMade([]);
  }, [name]);
  const take = (pair: DocumentPair, mark: Mark | null, result: DecisionResult) => {
    const others = made.filter((it) => !isSamePair(it, pair));
    setMade(mark ? [...others, pair] : others);
    setChange({ pair, mark, result });
    setVersion((before) => before + 1);
    if (result.changed.length > 0) onChanged();
  };
  const decide = (pair: DocumentPair, mark: Mark | null) =>
    void send(
      () => service.decide(name, { a_id: pair[0], b_id: pair[1], label: mark ?? "none" }),
      (result) => take(pair, mark, result),
    );
  const takeBack = (pair: DocumentPair | null, isDecided: boolean) => {
    const found = isDecided ? pair : made.at(-1);
    if (found) decide(found, null);
    else if (pair) setChange({ pair, mark: null, result: nothingChanged });
  };
  const withdraw = (decision: StoredDecision) =>
    void send(
      () => service.withdrawDecision({ name, a: decision.a, b: decision.b }),
      (result) => take(namePair(decision), null, result),
    );
  return { isWaiting, version, change, decide, takeBack, withdraw };
}

/** Returns the documents of a decision, or the names of their texts where no document has them any more. */
const namePair = (it: StoredDecision): DocumentPair => [it.a_id ?? it.a, it.b_id ?? it.b];

/** A pair is the same in both orders. */
const isSamePair = (one: DocumentPair, other: DocumentPair): boolean => [...one].sort().join("\n") === [...other].sort().join("\n");

interface PairDecisionProps extends Pick<ToolProps, "service" | "onProblem"> {
  name: string;
  ids: DocumentPair;
  /** `true` if the keys of marks decide, because nothing else on the page takes them. */
  hasKeys: boolean;
  decisions: PageDecisions;
}

/** The buttons that decide about a pair of documents, with what is decided. */
export function PairDecision({ service, onProblem, name, ids, hasKeys, decisions }: PairDecisionProps) {
  const say = useWording();
  const decided = useAnswer([name, ...ids, decisions.version], () => findDecision(service, name, ids), onProblem);
  const onMark = (mark: Mark | null) => (mark ? decisions.decide(ids, mark) : decisions.takeBack(ids, decided != null));
  return (
    <section class="card stack" aria-busy={decisions.isWaiting}>
      {hasKeys && <MarkKeys onMark={onMark} />}
      <MarkButtons mark={decided?.label} onMark={onMark} />
      {decided && <p class="note">{say.text(`decide.${decided.label}`)}</p>}
    </section>
  );
}

/** A button that opens the decision about a pair, because the marks beside it are labels and change no verdict. */
export function OverruledPair({ service, onProblem, name, ids }: Omit<PairDecisionProps, "hasKeys" | "decisions">) {
  const say = useWording();
  const [isOpen, setOpen] = useState(false);
  const decisions = usePageDecisions({ service, name, onProblem, onChanged: () => undefined });
  return (
    <>
      <div class="line">
        <button type="button" class="button" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>{say.text("decide.apply")}</button>
      </div>
      {isOpen && <PairDecision {...{ service, onProblem, name, ids, decisions }} hasKeys={false} />}
      <DecisionEffect change={decisions.change} />
    </>
  );
}

/** Gives the keys of marks to a function. */
export function MarkKeys({ onMark }: { onMark: (mark: Mark | null) => void }) {
  useReviewKeys({ move: () => undefined, mark: onMark });
  return null;
}

/** Documents of an effect that are named. */
const namedDocuments = 3;

/** Says what a change of a decision did to the verdicts. */
export function DecisionEffect({ change }: { change: DecisionChange | null }) {
  const say = useWording();
  if (!change) return null;
  const { pair, mark, result } = change;
  const changed = result.changed.slice(0, namedDocuments);
  const further = result.changed_total - changed.length;
  if (result.outcome === "unchanged") return <p class="note" role="status">{say.text(mark ? "decide.unchanged" : "decide.nothingToTakeBack")}</p>;
  const done = mark ? say.text(`decide.marked.${mark}`) : say.text("decide.takenBack", { a: pair[0], b: pair[1] });
  const sentences = [done, ...changed.map((it) => sayVerdict(say, it))];
  if (further > 0) sentences.push(say.text("decide.more", { n: further }));
  if (result.outcome === "recorded") sentences.push(say.text(mark ? "decide.recorded" : "decide.notRestored"));
  return <p class="note" role="status"><Visible text={sentences.join(say.gap)} /></p>;
}

/** Says the new verdict on a document. */
function sayVerdict(say: ReturnType<typeof useWording>, { id, verdict, of, similarity }: Verdict): string {
  if (verdict === "kept") return say.text("decide.nowKept", { document: id ?? "" });
  return say.text("decide.nowDuplicate", { document: id ?? "", of: of ?? "", similarity: say.similarity(similarity ?? 1) });
}

/** Returns the decision on the texts of two documents, if there is one. */
async function findDecision(service: Service, name: string, ids: DocumentPair): Promise<StoredDecision | null> {
  const [first, second] = await Promise.all(ids.map((id) => service.listDecisions(name, null, id)));
  const seqs = new Set(first!.decisions.map((it) => it.seq));
  return second!.decisions.find((it) => seqs.has(it.seq)) ?? null;
}

interface DecisionListProps extends Pick<ToolProps, "service" | "onProblem"> {
  name: string;
  decisions: PageDecisions;
}

/** The decisions of a collection, a page at a time, each with a button that takes it back. */
export function DecisionList({ service, onProblem, name, decisions }: DecisionListProps) {
  const say = useWording();
  const [listed, setListed] = useState<readonly StoredDecision[]>([]);
  const [next, setNext] = useState<number | null>(null);
  const { isWaiting, send } = useRequests(name, onProblem);
  const read = (after: number | null) =>
    send(() => service.listDecisions(name, after), (page) => {
      setListed((known) => (after === null ? page.decisions : [...known, ...page.decisions]));
      setNext(page.next);
    });
  useEffect(() => {
    if (name) void read(null);
  }, [name, decisions.version]);
  if (listed.length === 0) return null;
  return (
    <Card title={say.text("decide.list")}>
      <ul class="decisions">
        {listed.map((it) => {
          const [a, b] = namePair(it);
          return (
            <li key={it.seq} class="line">
              <MarkLabel mark={it.label} /> <ShortName text={a} /> · <ShortName text={b} />
              <button type="button" class="button" disabled={decisions.isWaiting} onClick={() => decisions.withdraw(it)}>{say.text("pair.unmark")}</button>
            </li>
          );
        })}
      </ul>
      {next !== null && <button type="button" class="button" disabled={isWaiting} onClick={() => read(next)}>{say.text("console.more")}</button>}
    </Card>
  );
}
