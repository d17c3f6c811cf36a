//! `lookalike head`.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use lookalike_batch::run::{HeadRow, HeadSettings, InputHead, read_head};

use super::shared::inputs::{ReadingArgs, read_options};
use super::shared::recipes::{RecipeChangeArgs, load_recipe};
use super::shared::summary::format_recipe;
use crate::CommandOutcome;
use crate::language::engine_phrases::translate_phrase;
use crate::language::messages;
use crate::output::{
    OutputPrinter, escape_control, format_bytes, format_count, format_plural, pad_to_width,
};

/// Show the fields of inputs, and what the recipe makes of the first rows
///
/// Reads only the beginning: the fields are those of the first 100 rows. Rows without the text field are no error here,
/// so that the name of the field is found. Of each shown row it prints the text, its tokens after normalisation, and how
/// many different features they give.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lookalike head crawl/*.parquet
  lookalike head posts.jsonl --text title,body --rows 10")]
pub(crate) struct HeadArgs {
    /// Inputs: files, directories, globs, URLs, or - for standard input (read as JSONL unless --format is given)
    #[arg(value_name = "IN", required = true)]
    pub(crate) inputs: Vec<PathBuf>,

    /// Number of rows to show, from 0 to 1000
    #[arg(long, value_name = "N", default_value_t = 3,
        value_parser = clap::value_parser!(u16).range(0..=1000), help_heading = "Output")]
    pub(crate) rows: u16,

    /// Print one JSON object
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,

    /// Recipe that turns texts into tokens and features: a name (see `lookalike recipe`) or a TOML file
    #[arg(
        long,
        value_name = "NAME|FILE",
        default_value = "default",
        help_heading = "Recipe"
    )]
    pub(crate) recipe: String,

    #[command(flatten)]
    pub(crate) changes: RecipeChangeArgs,

    #[command(flatten)]
    pub(crate) reading: ReadingArgs,
}

pub(crate) fn run_head(args: &HeadArgs) -> Result<CommandOutcome> {
    let settings = HeadSettings {
        recipe: load_recipe(&args.recipe, &args.changes)?,
        read: read_options(&args.reading)?,
        rows: args.rows.into(),
    };
    let head = read_head(&args.inputs.clone().into(), &settings)?;
    let text = match args.json {
        true => format!("{}\n", serde_json::to_string(&head)?),
        false => describe_head(&head),
    };
    OutputPrinter::new(false).write_data(&text)?;
    Ok(CommandOutcome::Done)
}

/// Columns of a shown value.
const SHOWN: usize = 60;

fn describe_head(head: &InputHead) -> String {
    let size = head
        .bytes
        .map(|bytes| format!(", {}", format_bytes(bytes)))
        .unwrap_or_default();
    let others = match head.inputs {
        0 | 1 => size,
        count => format!(
            ", the first of {}{size} in all",
            format_plural(count as u64, "input", "inputs")
        ),
    };
    let mut text = format!("{}: {}{others}\n", head.source, head.format);
    let looked_at = format_plural(head.looked_at as u64, "row", "rows");
    if !head.fields.is_empty() {
        text +=
            &format!("\nFields of the first {looked_at}: rows that have it, type, first value\n");
        let names = head.fields.iter().map(|field| field.name.chars().count());
        let width = names.max().unwrap_or(0).clamp(8, 30);
        for field in &head.fields {
            text += &format!(
                "  {} {:>5}  {:<8}  {}\n",
                pad_to_width(&escape_control(&field.name), width),
                format_count(field.rows as u64),
                field.types.join("|"),
                one_line(&field.example)
            );
        }
    }
    for (place, reason) in &head.bad {
        let told = messages::row_cannot_be_used(place, &translate_phrase(reason));
        text += &format!("\n{told}\n");
    }
    if head.rows.is_empty() && !head.bad.is_empty() {
        text += "\nName the field of the text with --text FIELD, that of the id with --id FIELD\n";
    }
    if !head.rows.is_empty() {
        let recipe = format_recipe(&head.recipe, &head.recipe_id);
        text += &format!("\nThe first rows under the recipe {recipe}\n");
        text.extend(head.rows.iter().map(describe_row));
    }
    text
}

fn describe_row(row: &HeadRow) -> String {
    let characters = format_plural(row.characters as u64, "character", "characters");
    let features = match row.state {
        "fingerprintable" => format!("{} different", format_count(row.features as u64)),
        state => format!("none: {state}"),
    };
    let tokens = match row.token_count {
        0 => String::new(),
        count => format!(
            "  tokens    {}, {}\n",
            one_line(&row.tokens.join(" ")),
            format_count(count as u64)
        ),
    };
    format!(
        "{}, id {}\n  text      {}, {characters}\n{tokens}  features  {features}\n",
        row.place,
        escape_control(&row.id),
        one_line(&row.text)
    )
}

/// Returns the beginning of a text on one line.
fn one_line(text: &str) -> String {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut shown: String = words.chars().take(SHOWN).collect();
    if shown.len() < words.len() {
        shown.push('…');
    }
    escape_control(&shown).into_owned()
}
