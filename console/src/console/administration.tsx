/** What belongs to no single collection: aliases, uploaded recipes, and the snapshots of all collections. */
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Card, Name, useWording } from "../components/basics";
import type { ToolProps } from "./collection-choice";
import { SectionLink } from "./links";
import { useChanges, useRequests } from "./requests";
import type { UploadedRecipe } from "./service";
import { Snapshots } from "./snapshots";

export function Administration(props: ToolProps) {
  return (
    <>
      <Aliases {...props} />
      <Recipes {...props} />
      <Snapshots {...props} name={null} />
    </>
  );
}

/** Reads a list when the part begins and after each change, and sends changes. */
function useList<T>(list: () => Promise<T>, onProblem: ToolProps["onProblem"]) {
  const [rows, setRows] = useState<T | null>(null);
  const requests = useRequests(list, onProblem);
  const { isWaiting, send } = useChanges(onProblem);
  const read = () => requests.send(list, setRows);
  useEffect(() => void read(), [list]);
  const change = (call: () => Promise<unknown>) => send(() => call().then(read), () => {});
  return { rows, isWaiting, change };
}

/** A table with a column of buttons. */
function NamedTable({ label, columns, children }: { label: string; columns: readonly string[]; children: ComponentChildren }) {
  return (
    <div class="wide-table" tabIndex={0} role="group" aria-label={label}>
      <table class="labelled">
        <thead>
          <tr>{columns.map((it) => <th key={it}>{it}</th>)}</tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}

function Aliases({ service, onProblem }: ToolProps) {
  const say = useWording();
  const [alias, setAlias] = useState("");
  const [target, setTarget] = useState("");
  const [collections, setCollections] = useState<string[]>([]);
  const { rows, isWaiting, change } = useList(service.listAliases, onProblem);
  useEffect(() => {
    service.listCollections().then((found) => {
      setCollections(found.map((it) => it.name));
      setTarget((known) => known || (found[0]?.name ?? ""));
    }, onProblem);
  }, [service]);
  const options = collections.map((it) => <option value={it} key={it}>{it}</option>);
  return (
    <Card title={say.text("aliases.title")}>
      <p class="muted">{say.text("aliases.about")}</p>
      {rows && Object.keys(rows).length > 0 && (
        <NamedTable label={say.text("aliases.title")} columns={[say.text("aliases.alias"), say.text("console.collection"), say.text("snapshots.actions")]}>
          {Object.entries(rows).map(([name, collection]) => (
            <tr key={name}>
              <td><Name text={name} /></td>
              <td data-label={say.text("console.collection")}><SectionLink section="collections" collection={collection}><Name text={collection} /></SectionLink></td>
              <td>
                <div class="line">
                  <label class="field">
                    {say.text("aliases.switch")}
                    <select value={collection} disabled={isWaiting} onChange={(event) => change(() => service.setAlias(name, event.currentTarget.value))}>{options}</select>
                  </label>
                  <button type="button" class="button" disabled={isWaiting} onClick={() => change(() => service.deleteAlias(name))}>{say.text("aliases.remove")}</button>
                </div>
              </td>
            </tr>
          ))}
        </NamedTable>
      )}
      <form
        class="line"
        onSubmit={(event) => {
          event.preventDefault();
          void change(() => service.setAlias(alias, target).then(() => setAlias("")));
        }}
      >
        <label class="field">{say.text("aliases.alias")} <input value={alias} maxLength={64} onInput={(event) => setAlias(event.currentTarget.value)} /></label>
        <label class="field">
          {say.text("console.collection")} <select value={target} onChange={(event) => setTarget(event.currentTarget.value)}>{options}</select>
        </label>
        <button type="submit" class="button" disabled={!alias || !target || isWaiting}>{say.text("aliases.set")}</button>
      </form>
    </Card>
  );
}

function Recipes({ service, onProblem }: ToolProps) {
  const say = useWording();
  const { rows, isWaiting, change } = useList(service.listRecipes, onProblem);
  return (
    <Card title={say.text("recipes.title")}>
      <p class="muted">{say.text("recipes.about")}</p>
      {rows && rows.length > 0 && (
        <NamedTable label={say.text("recipes.title")} columns={[say.text("console.name"), say.text("recipes.identity"), say.text("collections.size"), say.text("console.state"), say.text("snapshots.actions")]}>
          {rows.map((it) => <RecipeRow recipe={it} isWaiting={isWaiting} onDelete={() => change(() => service.deleteRecipe(it.name))} key={it.name} />)}
        </NamedTable>
      )}
      <RecipeUpload isWaiting={isWaiting} onUpload={(name, recipe, files) => change(() => service.uploadRecipe(name, recipe, files))} />
    </Card>
  );
}

function RecipeRow({ recipe, isWaiting, onDelete }: { recipe: UploadedRecipe; isWaiting: boolean; onDelete: () => void }) {
  const say = useWording();
  return (
    <tr>
      <td><Name text={recipe.name} /></td>
      <td data-label={say.text("recipes.identity")}><code>{recipe.recipe_id ?? "–"}</code></td>
      <td data-label={say.text("collections.size")}>{say.bytes(recipe.bytes)}</td>
      <td data-label={say.text("console.state")}>{say.known(`recipes.state.${recipe.state}`, recipe.state)}</td>
      <td><button type="button" class="button" disabled={isWaiting} onClick={onDelete}>{say.text("aliases.remove")}</button></td>
    </tr>
  );
}

interface RecipeUploadProps {
  isWaiting: boolean;
  onUpload: (name: string, recipe: File, files: readonly File[]) => Promise<void>;
}

/** Chosen files: the TOML is the recipe, the others are what it names. */
function RecipeUpload({ isWaiting, onUpload }: RecipeUploadProps) {
  const say = useWording();
  const [name, setName] = useState("");
  const [files, setFiles] = useState<readonly File[]>([]);
  const recipes = files.filter((it) => it.name.toLowerCase().endsWith(".toml"));
  // A recipe can name a table of forms, which is TOML, too: of several the one with the name of the upload is the recipe.
  const recipe = recipes.find((it) => it.name.toLowerCase() === `${name}.toml`) ?? (recipes.length === 1 ? recipes[0] : undefined);
  const choose = (chosen: readonly File[]) => {
    setFiles(chosen);
    const only = chosen.filter((it) => it.name.toLowerCase().endsWith(".toml"));
    if (!name && only.length === 1) setName(only[0]!.name.slice(0, -".toml".length).toLowerCase().replace(/[^a-z0-9_-]/g, "-"));
  };
  return (
    <form
      class="stack"
      onSubmit={(event) => {
        event.preventDefault();
        if (recipe) void onUpload(name, recipe, files.filter((it) => it !== recipe));
      }}
    >
      <div class="line">
        <label class="button file">
          {say.text("recipes.choose")}
          <input class="hidden" type="file" multiple onChange={(event) => choose([...(event.currentTarget.files ?? [])])} />
        </label>
        <label class="field">{say.text("console.name")} <input value={name} maxLength={64} onInput={(event) => setName(event.currentTarget.value)} /></label>
        <button type="submit" class="button" disabled={!name || !recipe || isWaiting}>{say.text("recipes.upload")}</button>
      </div>
      {files.length > 0 && (
        <p class={recipe ? "muted" : "note"} role="status">
          {recipe ? say.text("recipes.chosen", { recipe: recipe.name, files: files.filter((it) => it !== recipe).map((it) => it.name).join(", ") || "–" }) : say.text("recipes.noRecipe")}
        </p>
      )}
    </form>
  );
}
