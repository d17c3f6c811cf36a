//! `lookalike passages index`: the commands of an index whose texts are sources of passages.

use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, Subcommand};
use lookalike::passages::PassageSettings;
use lookalike_batch::index::{self, BuildSettings, IndexReadOptions, RowContent};

use super::args::{IndexInfoArgs, IndexRemoveArgs, IndexVerifyArgs};
use super::memory::BuildMemoryArgs;
use super::{insert_rows, run_info, run_remove, run_verify};
use crate::CommandOutcome;
use crate::commands::shared::inputs::{
    ReadingArgs, read_options, refuse_features, without_features,
};
use crate::commands::shared::outputs::{RejectedArgs, check_standard_output};
use crate::commands::shared::recipes::{RecipeChangeArgs, load_recipe};
use crate::commands::shared::running::{RunningArgs, thread_count};

/// Keep the sources of passages in an index on disk
///
/// An index has the texts and the grams by which `lookalike passages IN --index LIB` finds what they share with a
/// document. It is a directory like that of `lookalike index`, and can be searched by distance, too. A change is
/// complete and on disk, or has not happened. One process at a time changes an index; any number may search it
/// meanwhile.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lookalike passages index build theses.lib theses/
  lookalike passages index add theses.lib new.jsonl
  lookalike passages essay.txt --index theses.lib --show")]
pub(crate) struct PassagesIndexArgs {
    #[command(subcommand)]
    command: PassagesIndexCommand,
}

/// Commands on an index of passages.
#[derive(Debug, Subcommand)]
enum PassagesIndexCommand {
    Build(Box<PassagesBuildArgs>),
    Add(Box<PassagesAddArgs>),
    Remove(IndexRemoveArgs),
    Info(IndexInfoArgs),
    Verify(IndexVerifyArgs),
}

/// Build an index of the sources of passages
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  lookalike passages index build theses.lib theses/ --min-length 20")]
struct PassagesBuildArgs {
    /// Directory to create
    #[arg(value_name = "LIB")]
    library: PathBuf,

    /// Shortest passage in words; a word counts as two characters of a script without spaces
    #[arg(
        long,
        value_name = "WORDS",
        default_value_t = 12,
        value_parser = clap::value_parser!(u32).range(2..=i64::from(PassageSettings::MAX_WORDS)),
        help_heading = "Index"
    )]
    min_length: u32,

    /// Recipe whose normalisation says which tokens are equal: a name (see `lookalike recipe`) or a TOML file
    #[arg(
        long,
        value_name = "NAME|FILE",
        default_value = "default",
        help_heading = "Index"
    )]
    recipe: String,

    #[command(flatten)]
    changes: RecipeChangeArgs,

    /// Replace an existing index
    #[arg(long, help_heading = "Index")]
    force: bool,

    #[command(flatten)]
    rows: PassagesRowsArgs,
}

/// Add documents to an index of the sources of passages
///
/// Rows with an id that the index already has are added, counted and reported; --strict refuses them, and then
/// nothing is added.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  lookalike passages index add theses.lib new.jsonl")]
struct PassagesAddArgs {
    /// Index directory
    #[arg(value_name = "LIB")]
    library: PathBuf,

    #[command(flatten)]
    rows: PassagesRowsArgs,
}

/// Documents that become entries of an index.
#[derive(Debug, Args)]
#[command(mut_arg("features", without_features))]
#[command(mut_arg("document_per_file", |argument| argument.hide(true)))]
struct PassagesRowsArgs {
    /// Documents: files, directories, globs, URLs, or - for standard input. A file of plain text is one document
    #[arg(value_name = "IN", required = true)]
    inputs: Vec<PathBuf>,

    /// Read each line of plain text as a document
    #[arg(long, help_heading = "Input", conflicts_with = "document_per_file")]
    document_per_line: bool,

    #[command(flatten)]
    bad_rows: RejectedArgs,

    #[command(flatten)]
    reading: ReadingArgs,

    #[command(flatten)]
    memory: BuildMemoryArgs,

    #[command(flatten)]
    running: RunningArgs,
}

impl PassagesRowsArgs {
    /// Prints the plan of the memory, if it was asked for.
    fn explain_plan(
        &self,
        reading: &IndexReadOptions,
        is_addition: bool,
    ) -> Result<Option<CommandOutcome>> {
        self.memory
            .explain_plan(&self.inputs, reading, is_addition, &self.running)
    }

    fn read_options(&self) -> Result<IndexReadOptions> {
        let rejected = self.bad_rows.rejected.as_deref();
        let named = rejected.map(|place| ("rejected rows", place));
        check_standard_output(named.as_slice(), self.running.json)?;
        refuse_features(&self.reading)?;
        let mut read = read_options(&self.reading)?;
        read.text_documents = !self.document_per_line;
        Ok(IndexReadOptions {
            content: RowContent::Documents,
            read,
            strict: self.running.strict,
            threads: thread_count(self.running.threads),
            memory: self.memory.limit(&RowContent::Documents),
        })
    }
}

/// Largest distance of a search by distance in an index of passages.
const LARGEST_DISTANCE: u32 = 3;

pub(crate) fn run_passages_index(args: &PassagesIndexArgs) -> Result<CommandOutcome> {
    match &args.command {
        PassagesIndexCommand::Build(args) => run_build(args),
        PassagesIndexCommand::Add(args) => {
            let reading = args.rows.read_options()?;
            if let Some(explained) = args.rows.explain_plan(&reading, true)? {
                return Ok(explained);
            }
            insert_rows(
                reading,
                &args.rows.bad_rows,
                &args.rows.running,
                |reading, rejected, reporter| {
                    index::add_to_index(
                        &args.library,
                        &args.rows.inputs,
                        reading,
                        rejected,
                        reporter,
                    )
                },
            )
        }
        PassagesIndexCommand::Remove(args) => run_remove(args),
        PassagesIndexCommand::Info(args) => run_info(args),
        PassagesIndexCommand::Verify(args) => run_verify(args),
    }
}

fn run_build(args: &PassagesBuildArgs) -> Result<CommandOutcome> {
    let recipe = load_recipe(&args.recipe, &args.changes)?;
    let settings = BuildSettings {
        bits: recipe.simhash.bits,
        recipe: Some(recipe),
        distance: LARGEST_DISTANCE,
        plan: "auto".to_owned(),
        index_memory: None,
        texts: true,
        distance_only: true,
        passages: Some(PassageSettings::new(args.min_length)?),
        replace: args.force,
    };
    let reading = args.rows.read_options()?;
    if let Some(explained) = args.rows.explain_plan(&reading, false)? {
        return Ok(explained);
    }
    insert_rows(
        reading,
        &args.rows.bad_rows,
        &args.rows.running,
        |reading, rejected, reporter| {
            let (index, inputs) = (&args.library, &args.rows.inputs);
            index::build_index(index, inputs, &settings, reading, rejected, reporter)
        },
    )
}
