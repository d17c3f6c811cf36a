/** The steps of SimHash and MinHash, by hand and of one's own text. All numbers come from the engine. */
import { useState } from "preact/hooks";
import { Card, Name, useWording } from "../components/basics";
import { Curve } from "../components/charts";
import { Figures, Sketches, Steps } from "../compare/page";
import { toCompareData } from "../console/collection-choice";
import { countBytes, maxComparedBytes } from "../console/service";
import type { ToolProps } from "./compare";
import type { HashedDocument, HashedPair, PermutedSets } from "./engine";
import { useEngineAnswer, useSettled } from "./engine-answer";
import { sayWeb } from "./messages";
import { RecipeChoice } from "./recipe-choice";
import { RefusalText } from "./refusals";

export function LearnSection(props: ToolProps) {
  return (
    <>
      <OwnText {...props} />
      <HashesByHand {...props} />
      <SetsByHand {...props} />
      <BandCurve {...props} />
    </>
  );
}

/** Texts with which the page begins, by language. */
const firstTexts = {
  en: ["The boat left the harbour at dawn with nine men on board.", "The boat left the harbour at dawn with ten men on board."],
  zh: ["渡轮在黎明时分离开了港口，船上有九个人。", "渡轮在黎明时分离开了港口，船上有十个人。"],
} as const;

function OwnText({ engine, onProblem, attempt }: ToolProps) {
  const say = useWording();
  const [texts, setTexts] = useState<readonly string[] | null>(null);
  const [recipe, setRecipe] = useState("default");
  const [a, b] = texts ?? firstTexts[say.language];
  const [settledA, settledB] = [useSettled(a!), useSettled(b!)];
  const isTooLong = countBytes(settledA) + countBytes(settledB) > maxComparedBytes;
  const compare = isTooLong ? null : () => engine.compare(settledA, settledB, { recipe });
  const { answer, refusal } = useEngineAnswer([settledA, settledB, recipe, attempt], compare, onProblem);
  const data = answer && toCompareData(answer, ["", ""]);
  return (
    <>
      <Card title={sayWeb(say, "web.ownTitle")}>
        <p class="muted">{sayWeb(say, "web.ownAbout")}</p>
        <div class="grid">
          {[a!, b!].map((text, at) => {
            const label = sayWeb(say, "web.text", { letter: "AB"[at]! });
            return (
              <textarea class="search" rows={3} value={text} aria-label={label} placeholder={label} dir="auto" key={at} onInput={(event) => setTexts(at === 0 ? [event.currentTarget.value, b!] : [a!, event.currentTarget.value])} />
            );
          })}
        </div>
        <div class="line"><RecipeChoice engine={engine} recipe={recipe} onChange={setRecipe} /></div>
        {isTooLong && <p class="note" role="alert">{sayWeb(say, "web.tooLong")}</p>}
        <Refusal refusal={refusal} />
      </Card>
      {data && (
        <>
          <div class="grid">
            <Sketches data={data} />
            <Figures figures={data.comparison.figures} similarity={data.comparison.similarity} />
          </div>
          <Steps data={data} letter="A" side={data.comparison.a} sentences={undefined} />
          <Steps data={data} letter="B" side={data.comparison.b} sentences={undefined} />
        </>
      )}
    </>
  );
}

/** Why the engine refuses what is typed, beside the place where it is typed. */
function Refusal({ refusal }: { refusal: string | null }) {
  return refusal && <p class="note" role="alert"><RefusalText text={refusal} /></p>;
}

/** Documents with hashes and weights, as articles have them. */
const hashExamples = [
  { a: "CSDN=100101:4 博客=101011:5", b: "CSDN=100101:4 博客=101011:3 教程=010011:2", distance: 3 },
  { a: "a=10011100:5 b=01110101:4", b: "a=10011100:5 b=01110101:6", distance: 3 },
  { a: "near=1011:2 copy=0110:3", b: "near=1011:2 copy=0110:2 text=0101:1", distance: 1 },
] as const;

/** Bits whose votes have a column each. */
const maxColumns = 16;

function HashesByHand({ engine, onProblem }: ToolProps) {
  const say = useWording();
  const [given, setGiven] = useState<{ a: string; b: string; distance: number }>({ ...hashExamples[0] });
  const explain = () => engine.explainHashes(given.a, given.b, given.distance);
  const { answer: pair, refusal } = useEngineAnswer<HashedPair>([given.a, given.b, given.distance], explain, onProblem);
  return (
    <Card title={sayWeb(say, "web.hashesTitle")}>
      <p class="muted">{sayWeb(say, "web.hashesAbout")}</p>
      <ExampleButtons count={hashExamples.length} onChoose={(at) => setGiven({ ...hashExamples[at]! })} />
      <div class="grid">
        {(["a", "b"] as const).map((side) => {
          const label = sayWeb(say, "web.document", { letter: side.toUpperCase() });
          return (
            <textarea class="search given" rows={2} value={given[side]} aria-label={label} placeholder={label} key={side} onInput={(event) => setGiven({ ...given, [side]: event.currentTarget.value })} />
          );
        })}
      </div>
      <Refusal refusal={refusal} />
      {pair && (
        <>
          <div class="grid">
            <VoteTable letter="A" document={pair.a} />
            <VoteTable letter="B" document={pair.b} />
          </div>
          <p class="muted">{sayWeb(say, "web.rule")}</p>
          <Blocks pair={pair} distance={given.distance} onDistance={(distance) => setGiven({ ...given, distance })} />
        </>
      )}
    </Card>
  );
}

function ExampleButtons({ count, onChoose }: { count: number; onChoose: (at: number) => void }) {
  const say = useWording();
  return (
    <div class="line" role="group" aria-label={sayWeb(say, "web.examples")}>
      {Array.from({ length: count }, (_, at) => (
        <button type="button" class="button" key={at} onClick={() => onChoose(at)}>{sayWeb(say, "web.example", { n: at + 1 })}</button>
      ))}
    </div>
  );
}

/** Returns a number without trailing zeros, with its sign. */
const showVote = (vote: number): string => String(Number(vote.toFixed(4))).replace("-", "−");

/** The votes of all features, their sums and the bits. More bits than fit into columns are shown as signs. */
function VoteTable({ letter, document }: { letter: string; document: HashedDocument }) {
  const say = useWording();
  const label = sayWeb(say, "web.document", { letter });
  const hasColumns = document.bits.length <= maxColumns;
  const cells = (values: readonly number[]) =>
    hasColumns ? values.map((value, at) => <td class="number" key={at}>{showVote(value)}</td>) : <td><code class="votes">{values.map((value) => (value > 0 ? "+" : value < 0 ? "−" : "0")).join("")}</code></td>;
  return (
    <div class="wide-table" tabIndex={0} role="group" aria-label={label}>
      <table class="steps">
        <thead>
          <tr>
            <th>{label}</th><th class="number">{sayWeb(say, "web.weight")}</th><th>{sayWeb(say, "web.hash")}</th>
            <th colSpan={hasColumns ? document.bits.length : 1}>{sayWeb(say, "web.votes")}</th>
          </tr>
        </thead>
        <tbody>
          {document.features.map((feature) => (
            <tr key={feature.feature}>
              <td><Name text={feature.feature} /></td><td class="number">{feature.weight}</td><td><code>{feature.hash}</code></td>{cells(feature.votes)}
            </tr>
          ))}
          <tr class="sum"><td>{sayWeb(say, "web.sums")}</td><td /><td />{cells(document.sums)}</tr>
          <tr class="sum">
            <td>{sayWeb(say, "web.bits")}</td><td /><td><code>{document.fingerprint}</code></td>
            {hasColumns ? [...document.bits].map((bit, at) => <td class="number" key={at}>{bit}</td>) : <td><code class="votes">{document.bits}</code></td>}
          </tr>
        </tbody>
      </table>
    </div>
  );
}

interface BlocksProps {
  pair: HashedPair;
  distance: number;
  onDistance: (distance: number) => void;
}

/** Distance of a comparison without one, where the fingerprints have more bits. */
const usualDistance = 3;

function Blocks({ pair, distance, onDistance }: BlocksProps) {
  const say = useWording();
  const bits = pair.a.bits.length;
  const most = Math.max(0, bits - 1);
  const widths = pair.blocks.map((block) => block.a.length);
  return (
    <>
      <h3>{sayWeb(say, "web.blocksTitle")}</h3>
      <p class="muted">{sayWeb(say, "web.blocksAbout", { n: distance, blocks: pair.blocks.length })}</p>
      <label class="threshold-input">
        {sayWeb(say, "web.distance")}
        <input type="range" min="0" max={most} value={distance} onInput={(event) => onDistance(Number(event.currentTarget.value))} />
        <b class="number">{distance}</b>
      </label>
      {most < usualDistance && <p class="muted">{sayWeb(say, "web.shortHashes", { n: most })}</p>}
      {new Set(widths).size > 1 && <p class="muted">{sayWeb(say, "web.blockWidths", { n: bits, blocks: widths.length, widths: widths.join(say.language === "zh" ? "、" : ", ") })}</p>}
      <div class="bits" tabIndex={0} role="group" aria-label={sayWeb(say, "web.blocksTitle")}>
        {(["a", "b"] as const).map((own) => (
          <div class="bit-row" key={own}>
            <b>{own.toUpperCase()}</b>
            {pair.blocks.map((block, at) => (
              <span class={block.distance === 0 ? "bit-block equal" : "bit-block"} key={at}>
                {[...block[own]].map((bit, place) => <i class={block.a[place] === block.b[place] ? "" : "differs"} key={place}>{bit}</i>)}
              </span>
            ))}
          </div>
        ))}
      </div>
      <ol class="names">
        {pair.blocks.map((block, at) => (
          <li key={at}>{block.distance === 0 ? <b>{sayWeb(say, "web.blockEqual")}</b> : sayWeb(say, "web.blockDiffers", { n: block.distance })}</li>
        ))}
      </ol>
      <p role="status">
        {sayWeb(say, "web.differ", { n: pair.distance, of: pair.a.bits.length })}{say.colon}<b>{sayWeb(say, pair.match ? "web.isMatch" : "web.isNoMatch")}</b>
      </p>
    </>
  );
}

/** Documents as sets of shingles, and permutations, as articles have them. */
const setExamples = [
  { documents: "S1=a d\nS2=c\nS3=b d e\nS4=a c d", permutations: "b e a d c\nd c b a e" },
  { documents: "A=the cat sat\nB=the cat ran", permutations: "the cat sat ran\nran sat cat the\ncat ran the sat\nsat the ran cat" },
] as const;

const splitLines = (text: string): string[] => text.split("\n").map((line) => line.trim()).filter((line) => line !== "");

/** Returns all shingles of documents in a random order. */
function drawPermutation(documents: readonly string[]): string {
  const shingles = [...new Set(documents.flatMap((line) => line.slice(line.indexOf("=") + 1).split(/\s+/)).filter((shingle) => shingle !== ""))];
  for (let at = shingles.length - 1; at > 0; at -= 1) {
    const other = Math.floor(Math.random() * (at + 1));
    [shingles[at], shingles[other]] = [shingles[other]!, shingles[at]!];
  }
  return shingles.join(" ");
}

function SetsByHand({ engine, onProblem }: ToolProps) {
  const say = useWording();
  const [given, setGiven] = useState<{ documents: string; permutations: string }>({ ...setExamples[0] });
  const documents = splitLines(given.documents);
  const permutations = splitLines(given.permutations);
  const explain = () => engine.explainPermutations(documents, permutations);
  const { answer: sets, refusal } = useEngineAnswer<PermutedSets>([given.documents, given.permutations], explain, onProblem);
  const fields = [["documents", "web.sets"], ["permutations", "web.orders"]] as const;
  return (
    <Card title={sayWeb(say, "web.setsTitle")}>
      <p class="muted">{sayWeb(say, "web.setsAbout")}</p>
      <ExampleButtons count={setExamples.length} onChoose={(at) => setGiven({ ...setExamples[at]! })} />
      <div class="grid">
        {fields.map(([field, label]) => (
          <label class="stack" key={field}>
            <span class="muted">{sayWeb(say, label)}</span>
            <textarea class="search given" rows={4} value={given[field]} onInput={(event) => setGiven({ ...given, [field]: event.currentTarget.value })} />
          </label>
        ))}
      </div>
      <div class="line">
        <button type="button" class="button" onClick={() => setGiven({ ...given, permutations: `${given.permutations.trimEnd()}\n${drawPermutation(documents)}` })}>{sayWeb(say, "web.draw")}</button>
      </div>
      <Refusal refusal={refusal} />
      {sets && <PermutationTables sets={sets} />}
    </Card>
  );
}

function PermutationTables({ sets }: { sets: PermutedSets }) {
  const say = useWording();
  const count = sets.permutations.length;
  return (
    <>
      <div class="grid">
        {sets.permutations.map(({ rows, minima }, number) => {
          const label = sayWeb(say, "web.permutation", { n: number + 1 });
          return (
            <div class="wide-table" tabIndex={0} role="group" aria-label={label} key={number}>
              <h3>{label}</h3>
              <table class="steps">
                <thead><tr><th>{sayWeb(say, "web.shingle")}</th>{sets.documents.map((name) => <th key={name}><Name text={name} /></th>)}</tr></thead>
                <tbody>
                  {rows.map((row) => (
                    <tr key={row.shingle}>
                      <td><Name text={row.shingle} /></td>
                      {row.in.map((isIn, at) => <td class={minima[at] === row.shingle ? "minimum" : ""} key={at}>{isIn}</td>)}
                    </tr>
                  ))}
                  <tr class="sum"><td>{sayWeb(say, "web.minimum")}</td>{minima.map((minimum, at) => <td key={at}><Name text={minimum} /></td>)}</tr>
                </tbody>
              </table>
            </div>
          );
        })}
      </div>
      <div class="wide-table" tabIndex={0} role="group" aria-label={sayWeb(say, "web.equalMinima")}>
        <table class="steps">
          <thead>
            <tr><th>{sayWeb(say, "web.pair")}</th><th class="number">{sayWeb(say, "web.equalMinima")}</th><th class="number">{sayWeb(say, "web.estimate")}</th><th class="number">{say.text("measure.jaccard")}</th></tr>
          </thead>
          <tbody>
            {sets.pairs.map((pair) => (
              <tr key={`${pair.a} ${pair.b}`}>
                <td><Name text={pair.a} /> <Name text={pair.b} /></td>
                <td class="number">{sayWeb(say, "web.ofAll", { n: pair.equal_minima, of: count })}</td>
                <td class="number">{pair.estimate.toFixed(4)}</td><td class="number">{pair.jaccard.toFixed(4)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

/** Slots of a signature of the default recipe. */
const usualSlots = 128;

/** How many slots the bands take, and why some are left over. */
function SlotUse({ slots }: { slots: number }) {
  const say = useWording();
  const key = slots > usualSlots ? "web.moreSlots" : slots === usualSlots ? "web.allSlots" : "web.someSlots";
  return <>{sayWeb(say, key, { slots, of: usualSlots })}</>;
}

/** Largest number of bands and of rows that can be chosen. */
const maxBands = 128;

function BandCurve({ engine, onProblem }: ToolProps) {
  const say = useWording();
  const [threshold, setThreshold] = useState(0.75);
  /** Chosen bands and rows; null as long as those of the engine are taken. */
  const [chosen, setChosen] = useState<{ bands: number; rows: number } | null>(null);
  const draw = () => (chosen ? engine.drawBands(chosen.bands, chosen.rows) : engine.planBands(threshold));
  const { answer: drawn, refusal } = useEngineAnswer([chosen, chosen ? null : threshold], draw, onProblem);
  const numbers = ["bands", "rows"] as const;
  return (
    <Card title={sayWeb(say, "web.bandsTitle")}>
      <p class="muted">{sayWeb(say, "web.bandsAbout")}</p>
      <div class="line">
        <label class="threshold-input">
          {sayWeb(say, "web.threshold")}
          <input type="range" min="0.3" max="0.95" step="0.01" value={threshold} onInput={(event) => setThreshold(Number(event.currentTarget.value))} />
          <b class="number">{threshold.toFixed(2)}</b>
        </label>
        {drawn &&
          numbers.map((name) => (
            <label class="threshold-input" key={name}>
              {sayWeb(say, `web.${name}`)}
              <input type="range" min="1" max={maxBands} value={drawn[name]} onInput={(event) => setChosen({ bands: drawn.bands, rows: drawn.rows, [name]: Number(event.currentTarget.value) })} />
              <b class="number">{drawn[name]}</b>
            </label>
          ))}
        <button type="button" class="button" disabled={chosen === null} onClick={() => setChosen(null)}>{sayWeb(say, "web.plan")}</button>
      </div>
      <Refusal refusal={refusal} />
      {drawn && (
        <>
          <Curve
            title={sayWeb(say, "web.bandsTitle")}
            points={drawn.curve}
            axis={say.text("measure.jaccard")}
            values={sayWeb(say, "web.probability")}
            threshold={[threshold, threshold.toFixed(2)]}
          />
          <p role="status">
            {sayWeb(say, "web.found", { threshold: threshold.toFixed(2), probability: say.share(drawn.curve[Math.round(100 * threshold)] ?? 0) })}{" "}
            <SlotUse slots={drawn.bands * drawn.rows} />
          </p>
        </>
      )}
    </Card>
  );
}
