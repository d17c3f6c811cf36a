//! `lookalike recipe`.

use anyhow::{Result, bail};
use clap::Args;
use lookalike::Recipe;
use lookalike::recipe::{CompatScheme, SegmentationMode, TokenKind};

use super::shared::recipes::{RecipeChangeArgs, load_recipe};
use crate::CommandOutcome;
use crate::output::OutputPrinter;

/// Print a recipe: everything that determines how texts compare
///
/// Without an argument, lists the built-in recipes. The printed TOML can be changed and given to --recipe.
/// Recipes with different ids never compare.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  lookalike recipe words-3 > mine.toml
  lookalike dedup articles.jsonl -o unique.jsonl --recipe mine.toml")]
pub(crate) struct RecipeArgs {
    /// Name of a recipe, or a TOML file
    #[arg(value_name = "NAME|FILE")]
    pub(crate) recipe: Option<String>,

    #[command(flatten)]
    pub(crate) changes: RecipeChangeArgs,
}

pub(crate) fn run_recipe(args: &RecipeArgs) -> Result<CommandOutcome> {
    let text = match &args.recipe {
        Some(name) => {
            let recipe = load_recipe(name, &args.changes)?;
            format!("# id {}\n{}", recipe.recipe_id(), recipe.to_toml())
        }
        None if args.changes.set.is_empty() => list_recipes()?,
        None => bail!("--set changes a recipe: name a recipe"),
    };
    OutputPrinter::new(false).write_data(&text)?;
    Ok(CommandOutcome::Done)
}

fn list_recipes() -> Result<String> {
    let mut text = format!("{:<14} {:<16}  features\n", "name", "id");
    for name in Recipe::NAMES {
        let recipe = Recipe::built_in(name)?;
        let features = if name == recipe.name {
            describe_feature(&recipe)
        } else {
            format!("the same as {}", recipe.name)
        };
        text.push_str(&format!("{name:<14} {}  {features}\n", recipe.recipe_id()));
    }
    Ok(text)
}

/// Describes a feature of another tool's scheme.
fn describe_scheme_feature(scheme: CompatScheme) -> &'static str {
    match scheme {
        CompatScheme::E0ng => {
            "runs of 4 characters, letters and digits alone, as in the package simhash"
        }
        CompatScheme::Seomoz => "runs of 4 words, as in the package simhash-py",
        CompatScheme::NewsMd5 => "words separated by white space, as in the script for news",
        CompatScheme::JavaClassic => "words separated by blanks, as in the Java class",
        CompatScheme::Yanyiwu => {
            "words cut by jieba with tables from files, as in yanyiwu's simhash"
        }
        CompatScheme::DatasketchLegacy => {
            "words separated by white space, hashed as in datasketch 1"
        }
        CompatScheme::DatasketchAffine32 => {
            "words separated by white space, hashed as in datasketch 2"
        }
    }
}

/// Describes a feature of a recipe.
pub(crate) fn describe_feature(recipe: &Recipe) -> String {
    if let Some(scheme) = recipe.scheme {
        return describe_scheme_feature(scheme).to_owned();
    }
    let (one, many) = match recipe.tokens {
        TokenKind::Words => ("words", "words"),
        TokenKind::Characters => ("characters", "characters"),
        TokenKind::Jieba => match recipe.segmentation_mode() {
            Some(SegmentationMode::Full) => {
                ("words of jieba's dictionary", "words of jieba's dictionary")
            }
            Some(SegmentationMode::Search) => (
                "words cut by jieba for search",
                "words cut by jieba for search",
            ),
            _ => ("words cut by jieba", "words cut by jieba"),
        },
        TokenKind::Whitespace => (
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
