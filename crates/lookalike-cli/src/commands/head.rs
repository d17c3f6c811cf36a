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
use crate::language::{CountedNoun, NounCount, messages};
use crate::output::{OutputPrinter, escape_control, format_bytes, format_count, pad_to_width};

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
    let text = if args.json {
        format!("{}\n", serde_json::to_string(&head)?)
    } else {
        describe_head(&head)
    };
    OutputPrinter::new(false).write_data(&text)?;
    Ok(CommandOutcome::Done)
}

/// Columns of a shown value.
const SHOWN_VALUE_COLUMNS: usize = 60;

fn describe_head(head: &InputHead) -> String {
    let size = head
        .bytes
        .map(|bytes| messages::further_part(&format_bytes(bytes)))
        .unwrap_or_default();
    let others = match head.inputs {
        0 | 1 => size,
        count => messages::first_of(NounCount(count as u64, CountedNoun::Input), &size),
    };
    let mut text = format!("{}: {}{others}\n", head.source, head.format);
    if !head.fields.is_empty() {
        let rows = NounCount(head.looked_at as u64, CountedNoun::Row);
        text += &format!("\n{}\n", messages::fields_of(rows));
        let names = head.fields.iter().map(|field| field.name.chars().count());
        let width = names.max().unwrap_or(0).clamp(8, 30);
        for field in &head.fields {
            text += &format!(
                "  {} {:>5}  {}  {}\n",
                pad_to_width(&escape_control(&field.name), width),
                format_count(field.rows as u64),
                pad_to_width(&describe_types(&field.types), 8),
                one_line(&field.example)
            );
        }
    }
    for (place, reason) in &head.bad {
        let told = messages::row_cannot_be_used(place, &translate_phrase(reason));
        text += &format!("\n{told}\n");
    }
    if head.rows.is_empty() && !head.bad.is_empty() {
        text += &format!("\n{}\n", messages::name_the_fields());
    }
    if !head.rows.is_empty() {
        let recipe = format_recipe(&head.recipe, &head.recipe_id);
        text += &format!("\n{}\n", messages::first_rows_under(&recipe));
        text.extend(head.rows.iter().map(describe_row));
    }
    text
}

/// Returns the types of a field's values, joined by bars.
fn describe_types(types: &[impl AsRef<str>]) -> String {
    let names = types.iter().map(|name| match name.as_ref() {
        "string" => messages::type_string(),
        "number" => messages::type_number(),
        "boolean" => messages::type_boolean(),
        "object" => messages::type_object(),
        "list" => messages::type_list(),
        "null" => messages::type_null(),
        other => other.to_owned(),
    });
    names.collect::<Vec<_>>().join("|")
}

fn describe_row(row: &HeadRow) -> String {
    let line = |label: String, value: String| format!("  {} {value}\n", pad_to_width(&label, 9));
    let characters = NounCount(row.characters as u64, CountedNoun::Character);
    let shown = messages::shown_text(&one_line(&row.text), characters);
    let mut text = messages::row_with_id(&row.place, &escape_control(&row.id)) + "\n";
    text += &line(messages::text(), shown);
    if row.token_count > 0 {
        let tokens = one_line(&row.tokens.join(" "));
        let shown = messages::shown_tokens(&tokens, &format_count(row.token_count as u64));
        text += &line(messages::token_column(), shown);
    }
    let features = match row.state {
        "fingerprintable" => messages::different_features(&format_count(row.features as u64)),
        "too_short" => messages::no_features_too_short(),
        "symbols_only" => messages::no_features_but_symbols(),
        _ => messages::no_features_empty(),
    };
    text + &line(messages::features(), features)
}

/// Returns the beginning of a text on one line.
fn one_line(text: &str) -> String {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut shown: String = words.chars().take(SHOWN_VALUE_COLUMNS).collect();
    if shown.len() < words.len() {
        shown.push('…');
    }
    escape_control(&shown).into_owned()
}
