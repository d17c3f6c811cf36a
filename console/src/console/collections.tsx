/** Collections: their state and settings; create one, change its window, copy it, delete it. */
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Card, Facts, Name, ShortName, useWording } from "../components/basics";
import { Curve } from "../components/charts";
import { ListEntry } from "../components/searched-list";
import { VirtualList } from "../components/virtual-list";
import type { MessageKey } from "../language/catalog";
import type { ToolProps } from "./collection-choice";
import { drawCurve, findProbability, planBands } from "./plan";
import { useAnswer, useChanges, useRequests } from "./requests";
import { ServiceProblem, type CollectionState, type Settings, type Snapshot } from "./service";

/** Recipes that every service has and whose signatures have 128 slots. */
const builtInRecipes = ["default", "words-1", "words-3", "words-5", "characters-3", "jieba", "jieba-search"];
const methods = ["auto", "join", "minhash", "simhash", "exact"];
const measures = ["jaccard", "containment", "cosine", "levenshtein", "indel", "lcs"];

export function Collections(props: ToolProps) {
  const { service, onProblem } = props;
  const say = useWording();
  const [collections, setCollections] = useState<CollectionState[] | null>(null);
  const [selected, setSelected] = useState<string | null>(null);
  const [isCreating, setCreating] = useState(false);
  const { send } = useRequests(service, onProblem);
  const read = () => send(service.listCollections, setCollections);
  useEffect(() => void read(), [service]);
  if (!collections) return <p class="muted">{say.text("console.reading")}</p>;
  const at = Math.max(0, collections.findIndex((it) => it.name === selected));
  const collection = collections[at];
  const showsForm = isCreating || !collection;
  return (
    <div class="split">
      <div class="side">
        <button type="button" class="button strong" aria-pressed={showsForm} onClick={() => setCreating(true)}>{say.text("collections.new")}</button>
        <span class="muted" role="status">{say.text("collections.count", { n: collections.length })}</span>
        {collections.length > 0 && (
          <VirtualList
            id="collections"
            label={say.text("console.collections")}
            isShort={collections.length <= 4}
            count={collections.length}
            selected={showsForm ? -1 : at}
            onSelect={(entry) => {
              setSelected(collections[entry]!.name);
              setCreating(false);
            }}
            render={(entry) => (
              <ListEntry
                name={<ShortName text={collections[entry]!.name} />}
                more={say.known(`state.${collections[entry]!.state}`, collections[entry]!.state)}
              />
            )}
          />
        )}
      </div>
      {showsForm ? (
        <CreateForm
          {...props}
          onCreated={(name) => {
            setSelected(name);
            setCreating(false);
          }}
          onChanged={read}
        />
      ) : (
        <CollectionView key={collection.name} {...props} collection={collection} onChanged={read} />
      )}
    </div>
  );
}

/** A setting with the sentence that explains it. */
function Setting({ label, about, children }: { label: string; about: string; children: ComponentChildren }) {
  return (
    <div class="setting">
      <label class="field">{label} {children}</label>
      <p class="muted">{about}</p>
    </div>
  );
}

interface CreateProps extends ToolProps {
  onCreated: (name: string) => void;
  /** Reads the list of collections again. */
  onChanged: () => Promise<void>;
}

function CreateForm({ service, onProblem, onCreated, onChanged }: CreateProps) {
  const say = useWording();
  const [name, setName] = useState("");
  const [holds, setHolds] = useState("texts");
  const [recipe, setRecipe] = useState("default");
  const [uploaded, setUploaded] = useState<string[]>([]);
  const [method, setMethod] = useState("auto");
  const [measure, setMeasure] = useState("jaccard");
  const [threshold, setThreshold] = useState(0.75);
  const [distance, setDistance] = useState(3);
  const [window, setWindow] = useState("");
  const [refreshes, setRefreshes] = useState(false);
  const [onConflict, setOnConflict] = useState("refuse");
  useEffect(() => void service.listRecipes().then(setUploaded, () => setUploaded([])), [service]);
  const holdsTexts = holds === "texts";
  const hasDistance = !holdsTexts || method === "simhash";
  const settings: Partial<Settings> = { holds, ...(recipe === "default" ? {} : { recipe }), ...(onConflict === "refuse" ? {} : { on_conflict: onConflict }) };
  if (holdsTexts) Object.assign(settings, { method, ...(method === "exact" ? {} : { measure, threshold }) });
  if (hasDistance) settings.distance = distance;
  if (window.trim()) Object.assign(settings, { window: window.trim(), refresh: refreshes });
  const { isWaiting, send } = useChanges(onProblem);
  const create = () => send(() => service.createCollection(name, settings).then(onChanged), () => onCreated(name));
  const hasThreshold = holdsTexts && method !== "exact";
  const choose = (value: string, values: readonly string[], onChange: (value: string) => void, messages: string) => (
    <select value={value} onChange={(event) => onChange(event.currentTarget.value)}>
      {values.map((it) => <option value={it} key={it}>{say.known(`${messages}.${it}`, it)}</option>)}
    </select>
  );
  return (
    <div class="stack">
      <Card title={say.text("collections.new")}>
        <p>{say.text("collections.fixed")}</p>
        <Setting label={say.text("console.name")} about={say.text("collections.nameAbout")}>
          <input value={name} maxLength={64} pattern="[a-z0-9][a-z0-9_\-]*" onInput={(event) => setName(event.currentTarget.value)} />
        </Setting>
        <Setting label={say.text("collections.holds")} about={say.text(holdsTexts ? "collections.textsAbout" : "collections.fingerprintsAbout")}>
          {choose(holds, ["texts", "fingerprints"], setHolds, "holds")}
        </Setting>
        {holdsTexts && (
          <>
            <Setting label={say.text("run.recipe")} about={say.text("collections.recipeAbout")}>
              {choose(recipe, [...builtInRecipes, ...uploaded], setRecipe, "recipe")}
            </Setting>
            <Setting label={say.text("run.method")} about={say.text(`method.about.${method}` as MessageKey)}>
              {choose(method, methods, setMethod, "method")}
            </Setting>
          </>
        )}
        {hasThreshold && (
          <>
            <Setting label={say.text("run.measure")} about={say.text(`measure.about.${measure}` as MessageKey)}>
              {choose(measure, measures, setMeasure, "measure")}
            </Setting>
            <Setting label={say.text("run.threshold")} about={say.text("collections.thresholdAbout")}>
              <ThresholdInput value={threshold} onChange={setThreshold} />
            </Setting>
          </>
        )}
        {hasThreshold && measure === "jaccard" && (method === "auto" || method === "minhash") && builtInRecipes.includes(recipe) && (
          <PlannedCurve threshold={threshold} isJoined={method === "auto"} />
        )}
        {hasDistance && (
          <Setting label={say.text("run.distance")} about={say.text("collections.distanceAbout")}>
            <input type="number" min="0" max="16" value={distance} onInput={(event) => setDistance(Number(event.currentTarget.value))} />
          </Setting>
        )}
        <Setting label={say.text("run.window")} about={say.text("collections.windowAbout")}>
          <input value={window} placeholder="2d" size={8} onInput={(event) => setWindow(event.currentTarget.value)} />
        </Setting>
        {window.trim() && (
          <Setting label={say.text("collections.refresh")} about={say.text("collections.refreshAbout")}>
            <input type="checkbox" checked={refreshes} onChange={(event) => setRefreshes(event.currentTarget.checked)} />
          </Setting>
        )}
        <Setting label={say.text("collections.conflict")} about={say.text("collections.conflictAbout")}>
          {choose(onConflict, ["refuse", "replace"], setOnConflict, "conflict")}
        </Setting>
        <div class="line">
          <button type="button" class="button strong" disabled={!name || isWaiting} onClick={create}>{say.text("collections.create")}</button>
          <span class="muted">{say.text("collections.asJson")} <code>{JSON.stringify(settings)}</code></span>
        </div>
      </Card>
    </div>
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
        {say.text("collections.bands", { bands: plan.bands, rows: plan.rows })} {say.text(isJoined ? "run.curveNote" : "collections.curveNote", { threshold: String(threshold), probability: say.share(findProbability(plan, threshold)) })}
      </p>
    </div>
  );
}

interface CollectionViewProps extends ToolProps {
  collection: CollectionState;
  /** Reads the list of collections again. */
  onChanged: () => Promise<void>;
}

function CollectionView({ service, onProblem, collection, onChanged }: CollectionViewProps) {
  const say = useWording();
  const { name } = collection;
  const [changed, setChanged] = useState<Settings | null>(null);
  const first = useAnswer([name], () => service.getSettings(name), onProblem);
  const stats = useAnswer([name], () => service.getStats(name).catch(() => null), onProblem);
  const settings = changed ?? first;
  if (!settings) return <p class="muted">{say.text("console.reading")}</p>;
  return (
    <div class="stack">
      <Card title={name}>
        <Facts
          rows={[
            [say.text("console.state"), say.known(`state.${collection.state}`, collection.state)],
            [say.text("console.kept"), stats && <span class="number">{say.count(stats.kept)}</span>],
            [say.text("console.documents"), stats && <span class="number">{say.count(stats.rows)}</span>],
            [say.text("collections.memory"), stats && say.bytes(Object.values(stats.memory).reduce((a, b) => a + b, 0))],
            [say.text("collections.holds"), say.known(`holds.${settings.holds}`, settings.holds)],
            [say.text("run.recipe"), <Name text={settings.recipe.includes("\n") ? "TOML" : settings.recipe} />],
            [say.text("run.method"), say.known(`method.${settings.method}`, settings.method)],
            [say.text("run.measure"), say.known(`measure.${settings.measure}`, settings.measure)],
            [say.text("run.threshold"), settings.threshold === undefined ? "" : String(settings.threshold)],
            [say.text("run.distance"), settings.distance === undefined ? "" : String(settings.distance)],
            [say.text("run.window"), settings.window ?? say.text("collections.noWindow")],
            [say.text("collections.refresh"), settings.window ? say.text(settings.refresh ? "collections.yes" : "collections.no") : ""],
            [say.text("collections.conflict"), say.known(`conflict.${settings.on_conflict ?? ""}`, settings.on_conflict ?? "")],
          ]}
        />
        <p class="muted">{say.text("collections.fixed")}</p>
      </Card>
      {settings.window && <WindowForm {...{ service, onProblem, name }} window={settings.window} onChanged={setChanged} />}
      <Snapshots {...{ service, onProblem, name }} />
      <DeleteForm {...{ service, onProblem, name, onChanged }} />
    </div>
  );
}

function WindowForm({ service, onProblem, name, window, onChanged }: ToolProps & { name: string; window: string; onChanged: (settings: Settings) => void }) {
  const say = useWording();
  const [wanted, setWanted] = useState(window);
  const { isWaiting, send } = useChanges(onProblem);
  const change = () => send(() => service.changeCollection(name, { window: wanted.trim() }), (it) => onChanged(it.settings));
  return (
    <Card title={say.text("collections.changeWindow")}>
      <p class="muted">{say.text("collections.changeWindowAbout")}</p>
      <div class="line">
        <label class="field">{say.text("run.window")} <input value={wanted} size={8} onInput={(event) => setWanted(event.currentTarget.value)} /></label>
        <button type="button" class="button" disabled={!wanted.trim() || wanted.trim() === window || isWaiting} onClick={change}>{say.text("collections.change")}</button>
      </div>
    </Card>
  );
}

/** Returns a name for a snapshot of this minute. */
const nameSnapshot = (now: Date): string => `console-${now.toISOString().slice(0, 16).replace(/\D/g, "")}`;

function Snapshots({ service, onProblem, name }: ToolProps & { name: string }) {
  const say = useWording();
  const [snapshots, setSnapshots] = useState<Snapshot[] | string | null>(null);
  const [wanted, setWanted] = useState(() => nameSnapshot(new Date()));
  const requests = useRequests(name, onProblem);
  const { isWaiting, send } = useChanges(onProblem);
  // A service without a place for snapshots, or a key without the right to see them, is no fault of the page.
  const list = () =>
    service.listSnapshots(name).catch((problem: unknown) => {
      if (problem instanceof ServiceProblem && problem.status !== 401) return problem.message;
      throw problem;
    });
  const read = () => requests.send(list, setSnapshots);
  useEffect(() => void read(), [name]);
  const make = () => send(() => service.makeSnapshot(name, wanted).then(read), () => {});
  return (
    <Card title={say.text("collections.snapshots")}>
      {typeof snapshots === "string" ? (
        <p class="note"><span lang="en">{snapshots}</span></p>
      ) : (
        <>
          <p class="muted">{say.text("collections.snapshotAbout")}</p>
          <div class="line">
            <label class="field">{say.text("console.name")} <input value={wanted} maxLength={64} onInput={(event) => setWanted(event.currentTarget.value)} /></label>
            <button type="button" class="button" disabled={!wanted || snapshots === null || isWaiting} onClick={make}>{say.text("collections.makeSnapshot")}</button>
            {isWaiting && <span class="muted" role="status">{say.text("collections.makingSnapshot")}</span>}
          </div>
          {snapshots && snapshots.length > 0 && (
            <div class="wide-table" tabIndex={0} role="group" aria-label={say.text("collections.snapshots")}>
              <table>
                <thead>
                  <tr><th>{say.text("console.name")}</th><th>{say.text("collections.time")}</th><th class="number">{say.text("collections.size")}</th></tr>
                </thead>
                <tbody>
                  {snapshots.map((it) => (
                    <tr key={it.name}>
                      <td><Name text={it.name} /></td>
                      <td>{new Date(it.time).toLocaleString(say.locale)}</td>
                      <td class="number">{say.bytes(it.bytes)}</td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          )}
        </>
      )}
    </Card>
  );
}

function DeleteForm({ service, onProblem, name, onChanged }: ToolProps & { name: string; onChanged: () => Promise<void> }) {
  const say = useWording();
  const [typed, setTyped] = useState("");
  const [isOpen, setOpen] = useState(false);
  const { isWaiting, send } = useChanges(onProblem);
  const remove = () => send(() => service.deleteCollection(name).then(onChanged), () => {});
  return (
    <Card title={say.text("collections.delete")}>
      {isOpen ? (
        <>
          <p class="note">{say.text("collections.deleteAsk", { name })}</p>
          <div class="line">
            <label class="field">{say.text("collections.typeName")} <input value={typed} autocomplete="off" onInput={(event) => setTyped(event.currentTarget.value)} /></label>
            <button type="button" class="button danger" disabled={typed !== name || isWaiting} onClick={remove}>{say.text("collections.deleteNow")}</button>
            <button type="button" class="button" onClick={() => setOpen(false)}>{say.text("collections.cancel")}</button>
          </div>
        </>
      ) : (
        <div class="line"><button type="button" class="button" onClick={() => setOpen(true)}>{say.text("collections.delete")} …</button></div>
      )}
    </Card>
  );
}
