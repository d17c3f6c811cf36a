/** The form of a new collection: three questions with an explanation each, and the other settings folded. */
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Card, useWording } from "../components/basics";
import { Curve } from "../components/charts";
import type { MessageKey } from "../language/catalog";
import type { ToolProps } from "./collection-choice";
import { drawCurve, findProbability, planBands } from "./plan";
import { RequestExamples } from "./request-example";
import { ProblemText } from "./problem-text";
import { useChanges } from "./requests";
import { collectionPath, ServiceProblem, type Settings } from "./service";
import { parsePeriod } from "./window-fill";

/** Recipes that every service has and whose signatures have 128 slots. */
const builtInRecipes = ["default", "words-1", "words-3", "words-5", "characters-3", "jieba", "jieba-search"];
const methods = ["auto", "join", "minhash", "simhash", "exact"];
const measures = ["jaccard", "containment", "cosine", "levenshtein", "indel", "lcs"];

/** Names that the service accepts. */
export const namePattern = /^[a-z0-9][a-z0-9_-]{0,63}$/;

/** Fields of the form, by the names of their settings. */
const fields = ["name", "threshold", "window", "holds", "recipe", "method", "measure", "distance", "refresh", "on_conflict"] as const;
type Field = (typeof fields)[number];

/** A mistake, and the field that it is in; null if it is in none of the form. */
export interface Mistake {
  field: Field | null;
  message: ComponentChildren;
}

/** Returns the field that a problem of the service is about. It names a setting in backticks. */
export function findField({ code, message }: Pick<ServiceProblem, "code" | "message">): Field | null {
  if (code === "bad_name" || code === "collection_conflict") return "name";
  const named = [...message.matchAll(/`([a-z_]+)`/g)].map((found) => found[1]!);
  return fields.find((field) => named.includes(field)) ?? fields.find((field) => new RegExp(`\\b${field}\\b`).test(message)) ?? null;
}

interface SettingProps {
  label: string;
  about: string;
  field: Field;
  mistake: Mistake | null;
  children: ComponentChildren;
}

/** A setting with the sentence that explains it, and the mistake in it. */
function Setting({ label, about, field, mistake, children }: SettingProps) {
  const own = mistake?.field === field ? mistake : null;
  return (
    <div class={own ? "setting wrong" : "setting"}>
      <label class="field">{label} {children}</label>
      <p class="muted">{about}</p>
      {own && <MistakeNote mistake={own} />}
    </div>
  );
}

const MistakeNote = ({ mistake }: { mistake: Mistake }) => <p class="note" role="alert">{mistake.message}</p>;

export function CreateCollection({ service, onProblem, onAddress }: ToolProps) {
  const say = useWording();
  const [name, setName] = useState("");
  const [holds, setHolds] = useState("texts");
  const [recipe, setRecipe] = useState("default");
  const [uploaded, setUploaded] = useState<string[]>([]);
  const [known, setKnown] = useState<string[]>([]);
  const [method, setMethod] = useState("auto");
  const [measure, setMeasure] = useState("jaccard");
  const [threshold, setThreshold] = useState(0.75);
  const [distance, setDistance] = useState(3);
  const [window, setWindow] = useState("");
  const [refreshes, setRefreshes] = useState(false);
  const [onConflict, setOnConflict] = useState("refuse");
  const [mistake, setMistake] = useState<Mistake | null>(null);
  useEffect(() => {
    service.listRecipes().then((found) => setUploaded(found.map((it) => it.name)), () => setUploaded([]));
    service.listCollections().then((found) => setKnown(found.map((it) => it.name)), onProblem);
  }, [service]);
  const holdsTexts = holds === "texts";
  const hasDistance = !holdsTexts || method === "simhash";
  const hasThreshold = holdsTexts && method !== "exact";
  const settings: Partial<Settings> = { holds, ...(recipe === "default" ? {} : { recipe }), ...(onConflict === "refuse" ? {} : { on_conflict: onConflict }) };
  if (holdsTexts) Object.assign(settings, { method, ...(method === "exact" ? {} : { measure, threshold }) });
  if (hasDistance) settings.distance = distance;
  if (window.trim()) Object.assign(settings, { window: window.trim(), refresh: refreshes });
  const { isWaiting, send } = useChanges((problem) => {
    if (problem instanceof ServiceProblem && problem.status !== 401) setMistake({ field: findField(problem), message: <ProblemText problem={problem} /> });
    else onProblem(problem);
  });
  const findMistake = (): Mistake | null => {
    if (!namePattern.test(name)) return { field: "name", message: say.text("collections.badName") };
    if (known.includes(name)) return { field: "name", message: say.text("collections.nameInUse", { name }) };
    if (window.trim() && parsePeriod(window) === null) return { field: "window", message: say.text("collections.badWindow") };
    return null;
  };
  const create = () => {
    const found = findMistake();
    setMistake(found);
    if (!found) void send(() => service.createCollection(name, settings), (it) => onAddress({ section: "collections", collection: it.name, item: null }));
  };
  const choose = (value: string, values: readonly string[], onChange: (value: string) => void, messages: string) => (
    <select value={value} onChange={(event) => onChange(event.currentTarget.value)}>
      {values.map((it) => <option value={it} key={it}>{say.known(`${messages}.${it}`, it)}</option>)}
    </select>
  );
  const isWrong = (field: Field) => mistake?.field === field;
  return (
    <form
      class="stack"
      // A change of any field ends what was said of the form before.
      onInput={() => setMistake(null)}
      onSubmit={(event) => {
        event.preventDefault();
        create();
      }}
    >
      <Card title={say.text("collections.new")}>
        <Setting label={say.text("collections.askName")} about={say.text("collections.nameAbout")} field="name" mistake={mistake}>
          <input value={name} maxLength={64} autocomplete="off" aria-invalid={isWrong("name")} onInput={(event) => setName(event.currentTarget.value)} />
        </Setting>
        {hasThreshold && (
          <Setting label={say.text("collections.askThreshold")} about={say.text("collections.thresholdAbout")} field="threshold" mistake={mistake}>
            <ThresholdInput value={threshold} onChange={setThreshold} />
          </Setting>
        )}
        <Setting label={say.text("collections.askWindow")} about={say.text("collections.windowAbout")} field="window" mistake={mistake}>
          <input value={window} placeholder="2d" size={8} aria-invalid={isWrong("window")} onInput={(event) => setWindow(event.currentTarget.value)} />
        </Setting>
        <p class="muted">{say.text("collections.fixed")}</p>
        <details open={mistake?.field != null && !["name", "threshold", "window"].includes(mistake.field) ? true : undefined}>
          <summary>{say.text("collections.moreSettings")}</summary>
          <div class="stack more-settings">
            {hasThreshold && measure === "jaccard" && (method === "auto" || method === "minhash") && builtInRecipes.includes(recipe) && (
              <PlannedCurve threshold={threshold} isJoined={method === "auto"} />
            )}
            <Setting label={say.text("collections.holds")} about={say.text(holdsTexts ? "collections.textsAbout" : "collections.fingerprintsAbout")} field="holds" mistake={mistake}>
              {choose(holds, ["texts", "fingerprints"], setHolds, "holds")}
            </Setting>
            {holdsTexts && (
              <>
                <Setting label={say.text("run.recipe")} about={say.text("collections.recipeAbout")} field="recipe" mistake={mistake}>
                  {choose(recipe, [...builtInRecipes, ...uploaded], setRecipe, "recipe")}
                </Setting>
                <Setting label={say.text("run.method")} about={say.text(`method.about.${method}` as MessageKey)} field="method" mistake={mistake}>
                  {choose(method, methods, setMethod, "method")}
                </Setting>
              </>
            )}
            {hasThreshold && (
              <Setting label={say.text("run.measure")} about={say.text(`measure.about.${measure}` as MessageKey)} field="measure" mistake={mistake}>
                {choose(measure, measures, setMeasure, "measure")}
              </Setting>
            )}
            {hasDistance && (
              <Setting label={say.text("run.distance")} about={say.text("collections.distanceAbout")} field="distance" mistake={mistake}>
                <input type="number" min="0" max="16" value={distance} onInput={(event) => setDistance(Number(event.currentTarget.value))} />
              </Setting>
            )}
            {window.trim() && (
              <Setting label={say.text("collections.refresh")} about={say.text("collections.refreshAbout")} field="refresh" mistake={mistake}>
                <input type="checkbox" checked={refreshes} onChange={(event) => setRefreshes(event.currentTarget.checked)} />
              </Setting>
            )}
            <Setting label={say.text("collections.conflict")} about={say.text("collections.conflictAbout")} field="on_conflict" mistake={mistake}>
              {choose(onConflict, ["refuse", "replace"], setOnConflict, "conflict")}
            </Setting>
          </div>
        </details>
        <RequestExamples service={service} list={() => [{ method: "PUT", path: collectionPath(name || "NAME"), body: settings }]} />
        {mistake?.field === null && <MistakeNote mistake={mistake} />}
        <div class="line">
          <button type="submit" class="button strong" disabled={isWaiting}>{say.text("collections.create")}</button>
        </div>
      </Card>
    </form>
  );
}

/** A threshold by slider and by number. */
export function ThresholdInput({ value, onChange, least = 0.05 }: { value: number; onChange: (value: number) => void; least?: number }) {
  const say = useWording();
  const change = (text: string) => {
    const number = Number(text);
    if (number >= least && number <= 1) onChange(number);
  };
  return (
    <span class="threshold-input">
      <input type="range" min={least} max="1" step="0.01" value={value} aria-label={say.text("run.threshold")} onInput={(event) => change(event.currentTarget.value)} />
      <input type="number" min={least} max="1" step="0.01" value={value} aria-label={say.text("run.threshold")} onChange={(event) => change(event.currentTarget.value)} />
    </span>
  );
}

/** The probability that a pair is found, for a threshold that can be moved. */
function PlannedCurve({ threshold, isJoined }: { threshold: number; isJoined: boolean }) {
  const say = useWording();
  const plan = planBands(threshold);
  const title = say.text("run.curve");
  if (!plan) return <p class="note">{say.text("collections.noBands")}</p>;
  return (
    <div class="stack" id="planned-curve">
      <h3>{title}</h3>
      <Curve
        title={title}
        points={drawCurve(plan)}
        axis="Jaccard"
        values={say.text("run.probability")}
        threshold={[threshold, say.text("similarity.threshold", { threshold: String(threshold) })]}
      />
      <p class="muted">
        {say.text("collections.bands", { bands: plan.bands, rows: plan.rows })}{say.gap}{say.text(isJoined ? "run.curveNote" : "collections.curveNote", { threshold: String(threshold), probability: say.share(findProbability(plan, threshold)) })}
      </p>
    </div>
  );
}
