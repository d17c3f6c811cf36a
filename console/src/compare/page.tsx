/** Two texts through every step: verdict, differences, shared passages, similarities, sketches, features. */
import { useState } from "preact/hooks";
import { Card, Facts, Name, Phrase, useWording, Visible } from "../components/basics";
import { Shell, useFooter } from "../components/shell";
import { DiffLegend, RunKind, SideBySide } from "../components/side-by-side";

interface Figure {
  value: number | null;
  kind: string;
  detail: string;
}

interface Feature {
  feature: string;
  count: number;
  weight: number;
  hash: string;
  votes?: number[];
}

/** A text with its steps. */
interface Side {
  place: string;
  text: string;
  /** How decisions name the text: its hash, and its key after normalisation. */
  content: string;
  key: string;
  state: string;
  normalized: string;
  tokens: string[];
  features: Feature[];
  sums: number[];
  bits: string | null;
  fingerprint: string | null;
  signature: number[] | null;
  /** What decides bits whose sum is 0: a feature, or in recipes of other tools a bit. Pages of earlier programs lack it. */
  tie?: { feature: string; hash: string } | { bit: number } | null;
}

export interface Passage {
  length: number;
  similarity: number;
  kind: string;
  /** Unit of the length, where it is known. */
  unit?: "words" | "characters";
}

/** Characters of a passage in one text. */
interface Spot {
  start: number;
  end: number;
}

export interface SharedPassage extends Passage {
  a: Spot;
  b: Spot;
}

/** A comparison as `lookalike compare --json` prints it. */
export interface Comparison {
  recipe: string;
  recipe_id: string;
  a: Side;
  b: Side;
  distance: number | null;
  blocks: { a: string; b: string; distance: number }[] | null;
  figures: Record<string, Figure>;
  match: boolean;
  method: string | null;
  /** Null where the texts cannot be compared by the measure. */
  similarity: number | null;
  why: string;
  shared: { passages: SharedPassage[]; share_of_a: number; share_of_b: number };
}

export interface CompareData {
  kind: "compare";
  program: string;
  created: string;
  comparison: Comparison;
  feature: string;
  shown_features: number;
  rule_of_sums: string;
  runs: number[];
  passages: [number, number, number, number][];
  prefers_passages: boolean;
  equal_slots: [number, number] | null;
  smallest: [string, boolean, boolean, string][];
  sentences: [string, number, string, boolean][][];
}

export const readComparison = (data: { kind: string }): CompareData | null =>
  data.kind === "compare" ? (data as CompareData) : null;

export function ComparePage({ data, onLanguage }: { data: CompareData; onLanguage: () => void }) {
  const say = useWording();
  const footer = useFooter(data.created, data.program);
  return (
    <Shell title={say.text("compare.title")} onLanguage={onLanguage} footer={footer}>
      <ComparisonView data={data} />
    </Shell>
  );
}

/** The parts of a comparison, for a page of its own or inside another. */
export function ComparisonView({ data }: { data: CompareData }) {
  const say = useWording();
  const { comparison } = data;
  return (
    <>
      <Card title={say.text(comparison.match ? "compare.match" : "compare.noMatch")}>
        <p><Phrase text={comparison.why} /></p>
        <Facts
          rows={[
            [say.text("similarity.axis"), <span class="number">{comparison.similarity === null ? "–" : say.similarity(comparison.similarity)}</span>],
            [say.text("run.recipe"), <><Name text={comparison.recipe} /> <code>{comparison.recipe_id}</code>{data.feature && <>{say.colon}<Phrase text={data.feature} /></>}</>],
          ]}
        />
      </Card>
      <Texts data={data} />
      <div class="grid">
        <Figures figures={comparison.figures} similarity={comparison.similarity} />
        <Sketches data={data} />
      </div>
      <Steps data={data} letter="A" side={comparison.a} sentences={data.sentences[0]} />
      <Steps data={data} letter="B" side={comparison.b} sentences={data.sentences[1]} />
    </>
  );
}

/** Place of a text that is no file, as the command names it. */
const literalPlace = "as given";

function Texts({ data }: { data: CompareData }) {
  const say = useWording();
  const { a, b, shared } = data.comparison;
  const [showsPassages, setShowsPassages] = useState(data.prefers_passages);
  const titles = [a, b].map((side, at) => (
    <>
      <b>{"AB"[at]}</b> {side.place === literalPlace ? <Phrase text={side.place} /> : <Name text={side.place} />}
    </>
  ));
  return (
    <section class="card pair">
      <div class="pair-head">
        <h2>{say.text("compare.texts")}</h2>
        {data.passages.length > 0 && (
          <div class="line" role="group" aria-label={say.text("compare.texts")}>
            <button type="button" class="button" aria-pressed={!showsPassages} onClick={() => setShowsPassages(false)}>
              {say.text("compare.differences")}
            </button>
            <button type="button" class="button" aria-pressed={showsPassages} onClick={() => setShowsPassages(true)}>
              {say.text("compare.passages", { n: data.passages.length })}
            </button>
          </div>
        )}
      </div>
      {showsPassages ? (
        <>
          <p class="muted">
            {say.text("compare.shares", { a: say.share(shared.share_of_a), b: say.share(shared.share_of_b) })}
          </p>
          <div class="sides texts">
            <div class="left title common">{titles[0]}</div>
            <div class="right title">{titles[1]}</div>
            <div class="left text first last common"><Marked text={a.text} passages={data.passages} shared={shared.passages} side={0} /></div>
            <div class="right text first last"><Marked text={b.text} passages={data.passages} shared={shared.passages} side={1} /></div>
          </div>
        </>
      ) : (
        <>
          <DiffLegend />
          <SideBySide kept={a.text} removed={b.text} runs={data.runs} keptTitle={titles[0]} removedTitle={titles[1]} />
        </>
      )}
    </section>
  );
}

interface MarkedProps {
  text: string;
  passages: CompareData["passages"];
  shared: Passage[];
  side: 0 | 1;
  /** Runs of the edits of each passage, and the side of these runs on which the text stands. */
  edits?: { runs: readonly (readonly number[])[]; side: 0 | 1 };
}

/** A passage in which words that only this text has are marked. Runs have a kind and a length in both texts. */
function EditedWords({ text, runs, side }: { text: string; runs: readonly number[]; side: 0 | 1 }) {
  let end = 0;
  const parts = [];
  for (let at = 0; at + 2 < runs.length; at += 3) {
    const part = text.slice(end, (end += runs[at + 1 + side]!));
    if (part === "") continue;
    const isOwn = runs[at] === RunKind.Kept || runs[at] === RunKind.Removed;
    parts.push(isOwn && part.trim() !== "" ? <u class="own"><Visible text={part} /></u> : <Visible text={part} />);
  }
  return <>{parts}<Visible text={text.slice(end)} /></>;
}

/** A text with its passages. Where two overlap, the second begins behind the first. Numbers lead to the other text. */
export function Marked({ text, passages, shared, side, edits }: MarkedProps) {
  const say = useWording();
  const own = "ab"[side], other = "ba"[side];
  const order = passages.map((_, at) => at).sort((x, y) => passages[x]![2 * side]! - passages[y]![2 * side]!);
  let end = 0;
  const parts = order.map((at) => {
    const start = Math.max(end, passages[at]![2 * side]!);
    const stop = Math.max(start, passages[at]![2 * side + 1]!);
    const before = text.slice(end, start);
    end = stop;
    const passage = shared[at]!;
    const kind = say.known(`passage.${passage.kind}`, passage.kind);
    return (
      <>
        <Visible text={before} />
        <mark id={`${own}${at + 1}`} class={passage.kind} title={say.text(passage.unit ? `passage.title.${passage.unit}` : "passage.title", { kind, similarity: say.similarity(passage.similarity), n: passage.length })}>
          <a href={`#${other}${at + 1}`}>{at + 1}</a>{" "}
          {edits?.runs[at]?.length && start === passages[at]![2 * side] ? <EditedWords text={text.slice(start, stop)} runs={edits.runs[at]} side={edits.side} /> : <Visible text={text.slice(start, stop)} />}
        </mark>
      </>
    );
  });
  return (
    <div class="words" dir="auto">
      {parts}
      <Visible text={text.slice(end)} />
    </div>
  );
}

/** Figures in the order of their use: what a match is decided by, then what estimates it. */
const figureOrder = [
  "jaccard", "containment", "cosine_of_counts", "cosine_of_weights", "levenshtein", "levenshtein_by_words", "indel", "indel_by_words",
  "longest_common_substring", "longest_common_substring_by_words", "minhash", "bottom_k", "containment_by_bottom_k", "cosine_by_simhash", "simhash_bits",
];

function sortFigures(figures: Record<string, Figure>): [string, Figure][] {
  const place = (name: string) => {
    const at = figureOrder.indexOf(name);
    return at < 0 ? figureOrder.length : at;
  };
  return Object.entries(figures).sort((a, b) => place(a[0]) - place(b[0]));
}

/** Similarities that are shown at once; a click shows all figures. */
const shownFigures = 3;

/**
 * Returns the similarities that matter most: the one that decides, by its value, and then those that most people compare
 * texts by.
 */
export function chooseFigures(figures: Record<string, Figure>, similarity: number | null): [string, Figure][] {
  const sorted = sortFigures(figures).filter(([, figure]) => figure.kind === "similarity" && figure.value !== null);
  const isDeciding = ([, figure]: [string, Figure]) => similarity !== null && figure.value === similarity;
  const deciding = sorted.find(isDeciding);
  return [...(deciding ? [deciding] : []), ...sorted.filter((it) => it !== deciding)].slice(0, shownFigures);
}

export function Figures({ figures, similarity }: { figures: Record<string, Figure>; similarity: number | null }) {
  const say = useWording();
  const all = sortFigures(figures);
  const chosen = chooseFigures(figures, similarity);
  return (
    <Card title={say.text("compare.figures")}>
      {chosen.length > 0 && <FigureTable rows={chosen} />}
      {all.length > chosen.length && (
        <details>
          <summary>{say.text("compare.allFigures", { n: all.length })}</summary>
          <FigureTable rows={all} />
        </details>
      )}
    </Card>
  );
}

function FigureTable({ rows }: { rows: readonly (readonly [string, Figure])[] }) {
  const say = useWording();
  return (
    <table class="figures">
      <tbody>
        {rows.map(([name, figure]) => (
          <tr key={name}>
            <th scope="row">{say.known(`figure.${name}`, name.replaceAll("_", " "))}</th>
            <td class="number">{figure.value === null ? "–" : figure.kind === "distance" ? Number(figure.value.toFixed(4)) : figure.value.toFixed(4)}</td>
            <td class="bar-cell">
              <div class="bar-words">
                {figure.kind !== "distance" && (
                  <span class="meter" aria-hidden="true"><i style={{ width: `${100 * Math.min(1, Math.max(0, figure.value ?? 0))}%` }} /></span>
                )}
                <span class="muted"><Phrase text={figure.detail} /></span>
              </div>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

export function Sketches({ data }: { data: CompareData }) {
  const say = useWording();
  const { comparison, equal_slots: slots, smallest } = data;
  return (
    <Card title={say.text("compare.sketches")}>
      {comparison.blocks && comparison.distance !== null ? (
        <>
          <h3>{say.text("compare.distance", { n: comparison.distance, of: comparison.a.bits?.length ?? 0 })}</h3>
          <div class="bits" tabIndex={0} role="group" aria-label={say.text("compare.bits")}>
            {(["a", "b"] as const).map((own) => (
              <div class="bit-row" key={own}>
                <b>{own.toUpperCase()}</b>
                {comparison.blocks!.map((block, at) => (
                  <span class="bit-block" key={at}>
                    {[...block[own]].map((bit, place) => (
                      <i class={block.a[place] === block.b[place] ? "" : "differs"} key={place}>{bit}</i>
                    ))}
                  </span>
                ))}
                <code>{comparison[own].fingerprint}</code>
              </div>
            ))}
          </div>
          <p class="muted">{say.text("compare.blocks", { blocks: comparison.blocks.map((block) => block.distance).join(", ") })}</p>
        </>
      ) : (
        <p class="muted">{say.text("compare.noFingerprint")}</p>
      )}
      {slots && <h3>{say.text("compare.slots", { n: slots[0], of: slots[1] })}</h3>}
      {smallest.length > 0 && (
        <details>
          <summary>{say.text("compare.smallest", { n: smallest.filter((it) => it[1] && it[2]).length, of: smallest.length })}</summary>
          <div class="wide-table" tabIndex={0} role="group" aria-label={say.text("compare.smallestTitle")}>
            <table>
              <thead>
                <tr><th>A</th><th>B</th><th class="number">{say.text("compare.hash")}</th><th>{say.text("compare.feature")}</th></tr>
              </thead>
              <tbody>
                {smallest.map(([hash, inA, inB, feature]) => (
                  <tr key={hash}>
                    <td>{inA ? "✓" : "–"}</td><td>{inB ? "✓" : "–"}</td><td class="number">{hash}</td><td><Name text={feature} /></td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        </details>
      )}
    </Card>
  );
}

/** Tokens that are shown of a text. */
const shownTokens = 1000;

export function Steps({ data, letter, side, sentences }: { data: CompareData; letter: string; side: Side; sentences: CompareData["sentences"][number] | undefined }) {
  const say = useWording();
  const features = side.features.slice(0, data.shown_features);
  const heaviest = features[0]?.weight ?? 1;
  return (
    <details class="card">
      <summary>
        <h2>
          {say.text("compare.steps", { letter })} <span class="muted">· {say.text("compare.counts", { tokens: side.tokens.length, features: side.features.length })}</span>
        </h2>
      </summary>
      <div class="stack">
        <h3>{say.text("compare.normalized")}</h3>
        <div class="words clipped" dir="auto" tabIndex={0} role="group" aria-label={say.text("compare.normalized")}><Visible text={side.normalized} /></div>
        <h3>{say.text("compare.tokens")}</h3>
        <div class="tokens clipped" tabIndex={0} role="group" aria-label={say.text("compare.tokens")}>
          {side.tokens.slice(0, shownTokens).map((token, at) => <bdi key={at}><Visible text={token} /></bdi>)}
          {side.tokens.length > shownTokens && <span class="muted">{say.text("suspicious.more", { n: side.tokens.length - shownTokens })}</span>}
        </div>
        <h3>{say.text("compare.features")}</h3>
        <div class="wide-table" tabIndex={0} role="group" aria-label={say.text("compare.features")}>
          <table>
            <thead>
              <tr>
                <th>{say.text("compare.feature")}</th><th class="number">{say.text("compare.count")}</th>
                <th class="number">{say.text("compare.weight")}</th><th>{say.text("compare.hash")}</th><th>{say.text("compare.votes")}</th>
              </tr>
            </thead>
            <tbody>
              {features.map((feature) => (
                <tr key={feature.feature}>
                  <td><Name text={feature.feature} /></td>
                  <td class="number">{feature.count}</td>
                  <td class="number">
                    {Number(feature.weight.toFixed(4))} <span class="meter" aria-hidden="true"><i style={{ width: `${(100 * feature.weight) / heaviest}%` }} /></span>
                  </td>
                  <td><code>{feature.hash}</code></td>
                  <td><code class="votes">{feature.votes?.map((vote) => (vote > 0 ? "+" : "−")).join("")}</code></td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
        {side.bits && <Sums side={side} rule={data.rule_of_sums} />}
        {sentences && (
          <>
            <h3>{say.text("compare.sentences")}</h3>
            <table>
              <tbody>
                {sentences.map(([text, characters, hash, isShared]) => (
                  <tr key={hash + text}>
                    <td>{isShared ? "✓" : "–"}</td><td class="number">{say.count(characters)}</td><td><code>{hash}</code></td><td><Name text={text} /></td>
                  </tr>
                ))}
              </tbody>
            </table>
          </>
        )}
      </div>
    </details>
  );
}

/** The sum of the votes of every bit above the bit, and the feature that decides sums of 0. */
function Sums({ side, rule }: { side: Side; rule: string }) {
  const say = useWording();
  const deciding = side.tie && "feature" in side.tie && side.sums.includes(0) ? side.tie : null;
  return (
    <>
      <p>{say.text("compare.sums")}{rule && <>{say.brackets[0]}<Phrase text={rule} />{say.brackets[1]}</>}</p>
      <div class="wide-table" tabIndex={0} role="group" aria-label={say.text("compare.sums")}>
        <table class="steps">
          <tbody>
            <tr><th scope="row">Σ</th>{side.sums.map((sum, at) => <td class="number" key={at}>{Number(sum.toFixed(4))}</td>)}</tr>
            <tr class="sum"><th scope="row"><code>{side.fingerprint}</code></th>{[...side.bits!].map((bit, at) => <td class="number" key={at}>{bit}</td>)}</tr>
          </tbody>
        </table>
      </div>
      {deciding && <p>{say.text("compare.tie", { hash: deciding.hash })}{say.colon}<Name text={deciding.feature} /></p>}
    </>
  );
}
