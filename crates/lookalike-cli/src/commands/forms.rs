//! `lookalike forms`.

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::{Args, Subcommand};
use lookalike::forms::{Form, FormTable};
use lookalike_batch::run::{self, FormCheckSettings, FormCheckSummary, FormsSummary};
use lookalike_options::forms_choice::{FormsChoice, read_form_table};
use lookalike_options::keep_order::KeepOrder;

use super::shared::inputs::{
    ReadingArgs, check_has_text, read_options, refuse_features, without_features,
};
use super::shared::matching_runs::MatchingRunArgs;
use super::shared::outputs::{RejectedArgs, TableOutputs};
use super::shared::recipes::{RecipeChangeArgs, load_recipe};
use super::shared::running::{RowsRun, RunningArgs, thread_count};
use super::shared::summary::{SummaryText, TEXT_OPTIONS, format_recipe};
use crate::CommandOutcome;
use crate::language::{CountedNoun, NounCount, messages};
use crate::output::{OutputPrinter, escape_control, format_count};

/// Learn and show forms: frames that many different documents share
///
/// A form is a frame with slots, at which most documents have a value of their own: offers that differ in name and
/// price, weather reports, minutes. With a table of forms (`dedup --forms TABLE`), two documents of one form match only if
/// their slots agree: at most one slot in five may differ, seven at most, and none of fewer than five.
#[derive(Debug, Args)]
pub(crate) struct FormsArgs {
    #[command(subcommand)]
    pub(crate) action: FormsAction,
}

/// Action of `lookalike forms`.
#[derive(Debug, Subcommand)]
pub(crate) enum FormsAction {
    Learn(Box<LearnFormsArgs>),
    Show(ShowFormsArgs),
    Check(Box<CheckFormsArgs>),
}

/// Learn the forms of documents
///
/// Writes a table in TOML: for each form the parts of its frame, between which the slots are, the number of documents of
/// which it was learned, and examples of the values. A person may strike forms and add others. The documents are compared
/// as `dedup` compares them, and groups of at least six are examined.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lookalike forms learn offers.jsonl -o forms.toml
  lookalike forms learn july.jsonl --extend forms.toml -o forms-july.toml
  lookalike forms show forms.toml
  lookalike dedup offers.jsonl -o unique.jsonl --forms forms.toml")]
pub(crate) struct LearnFormsArgs {
    /// Table to write (.toml); without it, standard output
    #[arg(short, long, value_name = "TABLE", help_heading = "Output")]
    pub(crate) output: Option<PathBuf>,

    /// Table to extend: its forms come first and stay as they are, and only other documents are examined
    #[arg(long, value_name = "TABLE", help_heading = "Input")]
    pub(crate) extend: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) bad_rows: RejectedArgs,

    #[command(flatten)]
    pub(crate) run: MatchingRunArgs,
}

/// List the documents of each form, with the values of their slots
///
/// Writes a table with the columns id, form, slot and value, with a row for each slot of each document that is of a form
/// of the table. The summary counts the documents of each form. So a person sees what a form covers, before and after
/// changing it.
#[derive(Debug, Args)]
#[command(mut_arg("features", without_features))]
#[command(after_help = "\
Examples:
  lookalike forms check forms.toml offers.jsonl
  lookalike forms check forms.toml offers.jsonl -o slots.csv")]
pub(crate) struct CheckFormsArgs {
    /// Table of forms
    #[arg(value_name = "TABLE")]
    pub(crate) table: PathBuf,

    /// Inputs: files, directories, globs, URLs, or - for standard input (read as JSONL unless --format is given)
    #[arg(value_name = "IN", required = true)]
    pub(crate) inputs: Vec<PathBuf>,

    /// Table to write (.tsv, .csv, .jsonl, .parquet or .arrow, the first three also .gz and .zst); without it, TSV on
    /// standard output
    #[arg(short, long, value_name = "OUT", help_heading = "Output")]
    pub(crate) output: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) bad_rows: RejectedArgs,

    /// Recipe that turns texts into tokens: a name (see `lookalike recipe`) or a TOML file
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

    #[command(flatten)]
    pub(crate) running: RunningArgs,
}

/// Show the forms of a table: each frame with its slots, and examples of values
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lookalike forms show forms.toml
  lookalike forms show forms.toml f3b1c2d4")]
pub(crate) struct ShowFormsArgs {
    /// Table of forms
    #[arg(value_name = "TABLE")]
    pub(crate) table: PathBuf,

    /// Names of the forms to show; without it, all
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<String>,
}

pub(crate) fn run_forms(args: &FormsArgs) -> Result<CommandOutcome> {
    match &args.action {
        FormsAction::Learn(args) => learn_forms(args),
        FormsAction::Show(args) => show_forms(args),
        FormsAction::Check(args) => check_forms(args),
    }
}

fn learn_forms(args: &LearnFormsArgs) -> Result<CommandOutcome> {
    let LearnFormsArgs {
        output,
        extend,
        bad_rows,
        run,
    } = args;
    if run.matching.explain_plan || run.audit.audit.is_some() {
        bail!(
            "--explain-plan and --audit are for `lookalike dedup`, with the same matching options"
        );
    }
    if let Some(forms) = &run.matching.forms {
        bail!("--forms {forms} has no effect here, because this command learns forms");
    }
    check_has_text(&run.reading, "a comparison of forms")?;
    let is_toml = |path: &PathBuf| {
        path.extension()
            .is_some_and(|extension| extension == "toml")
    };
    if let Some(path) = output.as_ref().filter(|path| !is_toml(path)) {
        bail!(
            "the table of forms is TOML, and its name is {}: name a .toml file",
            path.display()
        );
    }
    let recipe = run.matching.rule.recipe.as_deref();
    let place = output.as_deref();
    let outputs = TableOutputs::new("the table", place, bad_rows, run.running.json, recipe)?;
    let mut settings = run.to_settings(&KeepOrder::default())?;
    let extended = extend.clone().map(FormsChoice::Table);
    settings.recipe = extended
        .unwrap_or(FormsChoice::Learn)
        .apply_to(settings.recipe)?;
    let inputs = run.run_inputs(&[]);
    let rows = RowsRun::with_table(&run.running, &outputs);
    let TableOutputs { table, rejected } = &outputs;
    let done = rows.watch_work(|reporter| {
        run::write_form_table(&inputs, &settings, table, rejected.as_ref(), reporter)
    })?;
    rows.finish_run(&done, done.rejected, || describe_learned(&done, args))
}

/// Returns the summary for people.
fn describe_learned(done: &FormsSummary, args: &LearnFormsArgs) -> String {
    let mut text = SummaryText::from_speed(done.documents, done.bytes, done.seconds);
    text.add_rejected(done.rejected, done.documents, TEXT_OPTIONS);
    let of_forms = format_count(done.documents_of_forms);
    text.add_line(
        &messages::forms(),
        messages::forms_of_documents(&format_count(done.forms), &of_forms),
    );
    text.add_line(
        &messages::recipe(),
        format_recipe(&done.recipe, &done.recipe_id),
    );
    text.add_output(args.output.as_deref());
    text.into_text()
}

fn check_forms(args: &CheckFormsArgs) -> Result<CommandOutcome> {
    refuse_features(&args.reading)?;
    let recipe = Some(&*args.recipe);
    let place = args.output.as_deref();
    let outputs = TableOutputs::new(
        "the table",
        place,
        &args.bad_rows,
        args.running.json,
        recipe,
    )?;
    let settings = FormCheckSettings {
        recipe: load_recipe(&args.recipe, &args.changes)?,
        table: read_form_table(&args.table)?,
        read: read_options(&args.reading)?,
        threads: thread_count(args.running.threads),
        strict: args.running.strict,
    };
    let source = args.inputs.clone().into();
    let rows = RowsRun::with_table(&args.running, &outputs);
    let TableOutputs { table, rejected } = &outputs;
    let done = rows.watch_work(|reporter| {
        run::check_forms(&source, &settings, table, rejected.as_ref(), reporter)
    })?;
    rows.finish_run(&done, done.rejected, || describe_checked(&done, args))
}

/// Returns the summary for people.
fn describe_checked(done: &FormCheckSummary, args: &CheckFormsArgs) -> String {
    let mut text = SummaryText::from_speed(done.documents, done.bytes, done.seconds);
    text.add_rejected(done.rejected, done.documents, TEXT_OPTIONS);
    let count = |documents| NounCount(documents, CountedNoun::Document);
    let of_forms = messages::forms_of_run(
        &format_count(done.forms.len() as u64),
        count(done.documents_of_forms),
    );
    text.add_line(&messages::forms(), of_forms);
    for form in &done.forms {
        text.add_line(&form.name, count(form.documents));
    }
    text.add_line(
        &messages::recipe(),
        format_recipe(&done.recipe, &done.recipe_id),
    );
    text.add_output(args.output.as_deref());
    text.into_text()
}

fn show_forms(args: &ShowFormsArgs) -> Result<CommandOutcome> {
    let table = read_form_table(&args.table)?;
    let shown = chosen_forms(&table, &args.names)?;
    let shown: Vec<String> = shown.into_iter().map(describe_form).collect();
    let text = shown.join("\n");
    OutputPrinter::new(false).write_data(&text)?;
    Ok(CommandOutcome::Done)
}

fn chosen_forms<'t>(table: &'t FormTable, names: &[String]) -> Result<Vec<&'t Form>> {
    if names.is_empty() {
        return Ok(table.forms().iter().collect());
    }
    let find = |name: &String| {
        let form = table.forms().iter().find(|form| form.name == *name);
        form.ok_or_else(|| anyhow::anyhow!("the table has no form named '{name}'"))
    };
    names.iter().map(find).collect()
}

/// Returns the parts of a frame with the numbers of the slots between them.
pub(super) fn spell_frame(parts: &[String]) -> String {
    let mut text = String::new();
    for (slot, part) in parts.iter().enumerate() {
        if slot > 0 {
            text.push_str(&format!(" [{slot}] "));
        }
        text.push_str(&escape_control(part));
    }
    text
}

/// Returns a form for people: its frame with the slots numbered, and the values of each slot.
fn describe_form(form: &Form) -> String {
    let mut text = format!(
        "{}  {} documents\n  {}\n",
        escape_control(&form.name),
        format_count(form.documents),
        spell_frame(&form.frame)
    );
    for (slot, values) in (1..).zip(&form.values) {
        let values: Vec<_> = values.iter().map(|value| escape_control(value)).collect();
        text.push_str(&format!("  [{slot}] {}\n", values.join(" | ")));
    }
    text
}
