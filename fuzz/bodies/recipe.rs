//! Checks that any text is a recipe or an error, and that a recipe survives a round trip with the
//! same id.

use lookalike::Recipe;

/// Panics if the bytes, read as TOML, violate that rule.
pub(crate) fn check(bytes: &[u8]) {
    let Ok(recipe) = String::from_utf8_lossy(bytes).parse::<Recipe>() else {
        return;
    };
    let toml = recipe.to_toml();
    let again: Recipe = toml.parse().expect("a recipe's own TOML is a recipe");
    assert_eq!(again, recipe);
    assert_eq!(again.recipe_id(), recipe.recipe_id());
    assert_eq!(again.to_toml(), toml);
}
