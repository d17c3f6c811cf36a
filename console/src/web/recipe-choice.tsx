/** The choice of a recipe of the engine. */
import { useEffect, useState } from "preact/hooks";
import { useWording } from "../components/basics";
import type { Engine, RecipeAbility } from "./engine";
import { sayWeb } from "./messages";

interface RecipeChoiceProps {
  engine: Engine;
  recipe: string;
  onChange: (recipe: string) => void;
}

export function RecipeChoice({ engine, recipe, onChange }: RecipeChoiceProps) {
  const say = useWording();
  const [recipes, setRecipes] = useState<RecipeAbility[]>([]);
  useEffect(() => {
    // The page itself reports that the engine cannot be loaded.
    engine.recipes.then(setRecipes, () => {});
  }, [engine]);
  const names = recipes.length > 0 ? recipes.map((ability) => ability.name) : [recipe];
  return (
    <label class="field">
      {sayWeb(say, "web.recipe")}
      <select value={recipe} onChange={(event) => onChange(event.currentTarget.value)}>
        {names.map((name) => <option value={name} key={name}>{say.known(`recipe.${name}`, name)}</option>)}
      </select>
    </label>
  );
}
