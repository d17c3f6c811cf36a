//! The recipe of a command, with the changes of `--set`.

use anyhow::{Result, bail};
use clap::Args;
use lookalike::Recipe;
use lookalike_batch::recipes;
use lookalike_options::forms_choice::FormsChoice;
use lookalike_options::match_options::OptionSpelling;

/// Fields of the recipe that are other than it says.
#[derive(Debug, Clone, Args)]
pub(crate) struct RecipeChangeArgs {
    /// Change a field of the recipe, named as in its TOML, such as ngram=3, simhash.weights=tfidf or
    /// filter.stopwords=zh. Lists and numbers are written as in TOML; file paths are relative to the current
    /// directory. May be repeated
    #[arg(long, value_name = "KEY=VALUE", help_heading = "Recipe")]
    pub(crate) set: Vec<String>,
}

/// The forms of a command that learns none.
#[derive(Debug, Clone, Args)]
pub(crate) struct FormTableArgs {
    /// Table of forms, as `lookalike forms learn` writes it; off for none. Two filled forms of one frame then match only if
    /// their slots agree, as in `dedup --forms FILE`
    ///
    /// Default: the forms of the recipe. Without any, texts are compared by similarity alone, as in `dedup --forms off`.
    #[arg(long, value_name = "off|FILE", help_heading = "Matching")]
    pub(crate) forms: Option<String>,
}

impl FormTableArgs {
    /// Returns the recipe with the forms of the table, or without forms.
    pub(crate) fn apply_to(&self, recipe: Recipe) -> Result<Recipe> {
        match self.forms.as_deref().map(FormsChoice::from) {
            None => Ok(recipe),
            Some(FormsChoice::Learn) => bail!(
                "this command learns no forms: write a table with `lookalike forms learn`, and name it with --forms"
            ),
            Some(choice) => Ok(choice.apply_to(recipe)?),
        }
    }
}

/// Loads a recipe by its name or file, with the changes of `--set`.
pub(crate) fn load_recipe(name: &str, changes: &RecipeChangeArgs) -> Result<Recipe> {
    Ok(recipes::load_recipe(
        name,
        &changes.set,
        OptionSpelling::Options,
    )?)
}

/// Refuses changes to a recipe if none is named.
pub(crate) fn refuse_changes(changes: &RecipeChangeArgs) -> Result<()> {
    match changes.set.first() {
        None => Ok(()),
        Some(change) => bail!(
            "--set {change} changes the recipe of --recipe, which is missing: give both or neither"
        ),
    }
}
