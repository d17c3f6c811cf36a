//! `lookalike recipe`.

use anyhow::{Result, bail};
use lookalike::Recipe;
use lookalike::recipe::{Mode, Tokens};

use crate::Outcome;
use crate::args::RecipeArgs;
use crate::output::Printer;
use crate::recipes::load_recipe;

pub(crate) fn run(args: &RecipeArgs) -> Result<Outcome> {
    let text = match &args.recipe {
        Some(name) => {
            let recipe = load_recipe(name, &args.changes)?;
            format!("# id {}\n{}", recipe.id(), recipe.to_toml())
        }
        None if args.changes.set.is_empty() => list()?,
        None => bail!("--set changes a recipe: name one"),
    };
    Printer::new(false).data(&text)?;
    Ok(Outcome::Done)
}

fn list() -> Result<String> {
    let mut text = format!("{:<14} {:<16}  features\n", "name", "id");
    for name in Recipe::NAMES {
        let recipe = Recipe::named(name)?;
        let features = if name == recipe.name {
            features(&recipe)
        } else {
            format!("the same as {}", recipe.name)
        };
        text.push_str(&format!("{name:<14} {}  {features}\n", recipe.id()));
    }
    Ok(text)
}

/// What a feature is, in words.
pub(crate) fn features(recipe: &Recipe) -> String {
    let (one, many) = match recipe.tokens {
        Tokens::Words => ("words", "words"),
        Tokens::Characters => ("characters", "characters"),
        Tokens::Jieba => match recipe.mode() {
            Some(Mode::Full) => ("words of jieba's dictionary", "words of jieba's dictionary"),
            Some(Mode::Search) => (
                "words cut by jieba for search",
                "words cut by jieba for search",
            ),
            _ => ("words cut by jieba", "words cut by jieba"),
        },
        Tokens::Whitespace => ("words parted by white space", "words parted by white space"),
    };
    match recipe.ngram {
        1 => format!("single {one}"),
        2 => format!("pairs of neighbouring {many}"),
        n => format!("runs of {n} {many}"),
    }
}
