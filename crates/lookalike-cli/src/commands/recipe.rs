//! `lookalike recipe`.

use anyhow::{Result, bail};
use lookalike::Recipe;
use lookalike::recipe::{Mode, Scheme, Tokens};

use crate::Outcome;
use crate::args::RecipeArgs;
use crate::output::Printer;
use crate::settings::load_recipe;

pub(crate) fn run(args: &RecipeArgs) -> Result<Outcome> {
    let text = match &args.recipe {
        Some(name) => {
            let recipe = load_recipe(name, &args.changes)?;
            format!("# id {}\n{}", recipe.id(), recipe.to_toml())
        }
        None if args.changes.set.is_empty() => list()?,
        None => bail!("--set changes a recipe: name a recipe"),
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

/// Describes a feature of another tool's scheme.
fn of_scheme(scheme: Scheme) -> &'static str {
    match scheme {
        Scheme::E0ng => "runs of 4 characters, letters and digits alone, as in the package simhash",
        Scheme::Seomoz => "runs of 4 words, as in the package simhash-py",
        Scheme::NewsMd5 => "words separated by white space, as in the script for news",
        Scheme::JavaClassic => "words separated by blanks, as in the Java class",
        Scheme::Yanyiwu => "words cut by jieba with tables from files, as in yanyiwu's simhash",
        Scheme::DatasketchLegacy => "words separated by white space, hashed as in datasketch 1",
        Scheme::DatasketchAffine32 => "words separated by white space, hashed as in datasketch 2",
    }
}

/// Describes a feature of a recipe.
pub(crate) fn features(recipe: &Recipe) -> String {
    if let Some(scheme) = recipe.scheme {
        return of_scheme(scheme).to_owned();
    }
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
        Tokens::Whitespace => (
            "words separated by white space",
            "words separated by white space",
        ),
    };
    match recipe.ngram {
        1 => format!("single {one}"),
        2 => format!("pairs of neighbouring {many}"),
        n => format!("runs of {n} {many}"),
    }
}
