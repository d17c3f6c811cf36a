/** The choice of a collection, and the comparison of two texts under its settings. Several sections share both. */
import { useEffect, useMemo, useState } from "preact/hooks";
import { ComparisonView, Marked, type CompareData } from "../compare/page";
import { Name, useWording } from "../components/basics";
import type { Address } from "./address";
import type { Imports } from "./imports";
import { useAnswer, type OnProblem } from "./requests";
import { countBytes, maxComparedBytes, toRuns, type Service, type ServiceComparison, type Settings, type SharedPassages } from "./service";

export interface ToolProps {
  service: Service;
  onProblem: OnProblem;
  imports: Imports;
  /** The address of what is shown. */
  address: Address;
  /** Grows with every visit of another address. */
  visit: number;
  /** Shows another address; it takes the place of this one in the history if `replaces` is set. */
  onAddress: (address: Partial<Address>, replaces?: boolean) => void;
}

/** Features of which the comparison shows the votes. */
const shownFeatures = 40;

/** Returns a comparison of the service as the page of comparisons takes it. */
export function toCompareData(told: ServiceComparison, places: [string, string]): CompareData {
  const comparison = { ...told, a: { ...told.a, place: places[0] }, b: { ...told.b, place: places[1] } };
  const slots = [comparison.a.signature, comparison.b.signature];
  const equal = slots[0]?.filter((slot, at) => slot === slots[1]?.[at]).length;
  const [inA, inB] = [findUnits(told.a.text), findUnits(told.b.text)];
  return {
    kind: "compare",
    program: "",
    created: "",
    comparison,
    feature: "",
    shown_features: shownFeatures,
    rule_of_sums: "",
    runs: toRuns(told.aligned),
    passages: told.shared.passages.map((it) => [inA(it.a.start), inA(it.a.end), inB(it.b.start), inB(it.b.end)]),
    prefers_passages: false,
    equal_slots: slots[0] && slots[1] && equal !== undefined ? [equal, slots[0].length] : null,
    smallest: [],
    sentences: [],
  };
}

/** Returns a function from a place in characters to one in UTF-16 units. */
function findUnits(text: string): (characters: number) => number {
  // Without characters of two units both are the same.
  if (!/[\ud800-\udbff]/.test(text)) return (at) => at;
  const starts: number[] = [];
  let unit = 0;
  for (const character of text) {
    starts.push(unit);
    unit += character.length;
  }
  starts.push(unit);
  return (at) => starts[at] ?? unit;
}

/** Chooses a collection: that of the address, or the first one. The settings follow later. */
export function useCollection({ service, onProblem, address, onAddress }: ToolProps) {
  const say = useWording();
  const [names, setNames] = useState<string[] | null>(null);
  useEffect(() => {
    service.listCollections().then((found) => setNames(found.map((it) => it.name)), onProblem);
  }, [service]);
  // The name waits for the list, so that nothing is sent to a service without collections.
  const name = names ? (address.collection ?? names[0] ?? "") : "";
  useEffect(() => {
    if (name && name !== address.collection) onAddress({ collection: name, item: null }, true);
  }, [name]);
  const settings = useAnswer<Settings>([name], name ? () => service.getSettings(name) : null, onProblem);
  // An address can have an alias, which is in no list of collections.
  const choices = [...new Set([...(names ?? []), ...(name ? [name] : [])])];
  const choice = (
    <label class="field">
      {say.text("console.collection")}
      <select value={name} onChange={(event) => onAddress({ collection: event.currentTarget.value, item: null })}>
        {choices.map((it) => <option value={it} key={it}>{it}</option>)}
      </select>
    </label>
  );
  return { name, settings, choice, isEmpty: names !== null && choices.length === 0 };
}

/** The comparer of texts: the service, or the engine inside a page. */
export type TextComparer = Pick<Service, "compare" | "findShared">;

interface ComparedProps {
  service: TextComparer;
  onProblem: OnProblem;
  a: { id?: string | null; text?: string };
  b: { id?: string | null; text?: string };
  settings?: Settings | undefined;
}

/** Two texts compared by the service. Of texts that are too long for every step, the passages are shown that both share. */
export function Compared(props: ComparedProps) {
  const bytes = countBytes(props.a.text ?? "") + countBytes(props.b.text ?? "");
  return bytes <= maxComparedBytes ? <AllSteps {...props} /> : <LongTexts {...props} />;
}

/** Bytes of both texts beyond which the service takes them in no request; a request has at most 16 MiB. */
const maxSharedBytes = 12 << 20;

/** Characters of a long text that are shown, because browsers lay out longer ones slowly. */
const shownCharacters = 200_000;

const noPassages: SharedPassages = { passages: [], share_of_a: 0, share_of_b: 0 };

function LongTexts({ service, onProblem, a, b }: ComparedProps) {
  const say = useWording();
  const [first, second] = [a.text ?? "", b.text ?? ""];
  const isTooLong = countBytes(first) + countBytes(second) > maxSharedBytes;
  const found = useAnswer([first, second], isTooLong ? null : () => service.findShared(first, second), onProblem);
  const shared = isTooLong ? noPassages : found;
  if (!shared) return <p class="muted">{say.text("console.reading")}</p>;
  const [inA, inB] = [findUnits(first), findUnits(second)];
  const marked = shared.passages.flatMap((it) => {
    const place: [number, number, number, number] = [inA(it.a.start), inA(it.a.end), inB(it.b.start), inB(it.b.end)];
    return place[1] <= shownCharacters && place[3] <= shownCharacters ? [{ place, it }] : [];
  });
  const side = (text: string, at: 0 | 1) => (
    <div class={at === 0 ? "left text" : "right text"} tabIndex={0} role="group" aria-label={say.text("console.text", { letter: "AB"[at]! })}>
      <Marked text={text.slice(0, shownCharacters)} passages={marked.map((it) => it.place)} shared={marked.map((it) => it.it)} side={at} />
    </div>
  );
  const cut = [first, second].some((it) => it.length > shownCharacters);
  return (
    <section class="card pair">
      <p class="note">{say.text(isTooLong ? "console.tooLongTexts" : "console.longTexts")}</p>
      {!isTooLong && <p class="muted">{say.text("compare.shares", { a: say.share(shared.share_of_a), b: say.share(shared.share_of_b) })}</p>}
      <div class="sides scrolled texts">
        <div class="left title common"><b>A</b> <Name text={a.id ?? ""} /></div>
        <div class="right title"><b>B</b> <Name text={b.id ?? ""} /></div>
        {side(first, 0)}
        {side(second, 1)}
      </div>
      {cut && <p class="muted">{say.text("console.textsCut", { n: shownCharacters })}</p>}
    </section>
  );
}

function AllSteps({ service, onProblem, a, b, settings }: ComparedProps) {
  const say = useWording();
  const comparison = useAnswer([a.text, b.text, settings], () => service.compare(a.text ?? "", b.text ?? "", settings), onProblem);
  const data = useMemo(() => comparison && toCompareData(comparison, [a.id ?? "", b.id ?? ""]), [comparison, a.id, b.id]);
  return data ? <ComparisonView data={data} /> : <p class="muted">{say.text("console.reading")}</p>;
}
