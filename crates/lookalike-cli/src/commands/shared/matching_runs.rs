//! Options of `dedup` and `pairs`, which compare all documents.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use lookalike::Recipe;
use lookalike_batch::run::{
    AuditSettings, FormLearning, MemoryLimit, RunInputs, RunSettings, RunWindow,
};
use lookalike_options::forms_choice::FormsChoice;
use lookalike_options::keep_order::KeepOrder;
use lookalike_options::machine_memory::default_memory;
use lookalike_options::match_options::OptionSpelling;
use lookalike_options::units::{parse_seconds, parse_size};

use super::inputs::{ReadingArgs, check_has_text, read_options};
use super::matching::{MatchRuleArgs, settings_and_plan};
use super::running::{RunningArgs, parse_limit, thread_count};

/// Options of a run that compares all documents.
#[derive(Debug, Args)]
pub(crate) struct MatchingRunArgs {
    /// Inputs: files, directories, globs, URLs, or - for standard input (read as JSONL unless --format is given)
    ///
    /// Known extensions are .jsonl, .ndjson, .json, .csv, .tsv, .tab, .parquet, .pq, .arrow, .feather, .ipc,
    /// .arrows, .txt and .text, the text formats also with .gz, .zst, .xz or .bz2. In directories, files with other extensions are skipped and reported;
    /// hidden files and those that begin with an underscore are skipped.
    #[arg(value_name = "IN", required_unless_present = "explain_plan")]
    pub(crate) inputs: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) matching: MatchingArgs,

    #[command(flatten)]
    pub(crate) audit: AuditArgs,

    /// Maximum memory of the process: bytes, or with the unit K, M, G (of 1000) or Ki, Mi, Gi (of 1024). Sketches
    /// and keys that do not fit go to temporary files; results do not depend on it
    ///
    /// Temporary files are in the directory of --work, else in --scratch, else in the directory of the variable TMPDIR,
    /// else in /tmp. A limit in which the rows do not fit is refused with the smallest one that would do;
    /// --explain-plan shows both. Default: four fifths of the available memory of the machine or of its control group,
    /// for files; objects of stores and standard input go to temporary files only under a limit that is given.
    #[arg(long, value_name = "SIZE", value_parser = parse_size, help_heading = "Running")]
    pub(crate) memory: Option<u64>,

    #[command(flatten)]
    pub(crate) reading: ReadingArgs,

    #[command(flatten)]
    pub(crate) running: RunningArgs,
}

/// Options that decide which documents of a run match.
#[derive(Debug, Args)]
#[command(next_help_heading = "Matching")]
pub(crate) struct MatchingArgs {
    #[command(flatten)]
    pub(crate) rule: MatchRuleArgs,

    /// Keep filled forms that differ in their slots: learn, off, or a table of `forms learn`
    ///
    /// A form is a frame that many different documents share, with slots at which most have a value of their own, such
    /// as offers that differ in name and price. Two documents of one form match only if their slots agree: at most one slot
    /// in five may differ, seven at most, and none of fewer than five. Documents of different forms do not match. `learn` learns the forms
    /// of the inputs first; `off` compares by similarity alone. Texts with other titles or other numbers are kept apart, too.
    ///
    /// A run with --work keeps the forms in its directory, and a new --library with its documents; later runs use them.
    /// Default: the forms of the recipe or the library, if it has any; off for ready-made features, for schemes of other
    /// tools and for a library that was made without forms; else learn.
    #[arg(long, value_name = "learn|off|FILE")]
    pub(crate) forms: Option<String>,

    /// Match only documents with equal values of this field
    ///
    /// Rows in which the field is missing or null are compared with one another. Values are equal as ids are:
    /// 1, 1.0 and "1" are one value, "1.0" is another.
    #[arg(long, value_name = "FIELD")]
    pub(crate) within: Option<String>,

    /// Maximum time between two documents that match: a number with the unit s, m, h, d or w, such as 90s,
    /// 15m, 36h, 2d, 1w; needs --time
    #[arg(
        long,
        value_name = "DURATION",
        value_parser = parse_seconds,
        allow_hyphen_values = true,
        requires = "time"
    )]
    pub(crate) window: Option<f64>,

    /// Field with the time for --window: seconds since 1970 or an ISO 8601 date or date and time
    #[arg(long, value_name = "FIELD", requires = "window")]
    pub(crate) time: Option<String>,

    /// Print the match plan, then stop. It has the predicted recall and the memory for each document. Given inputs, it
    /// also predicts the number of compared pairs, the number of false candidates among them, and the memory
    /// and time of the run, from a sample of the rows (of at most a gigabyte)
    #[arg(long)]
    pub(crate) explain_plan: bool,
}

/// Options of the audit of a run.
#[derive(Debug, Args)]
#[command(next_help_heading = "Running")]
pub(crate) struct AuditArgs {
    /// Estimate the recall and precision of the run, with 95 % intervals: compares N sampled documents
    /// exactly with all documents read after them, and puts edited copies of some through the same plan
    ///
    /// Without a number, samples about one document in 80, from 500 to 1,000, or 1,000 if the size of the
    /// input is unknown. More documents give narrower intervals and a longer run. May sample fewer on
    /// compressed input, because its content is not known before it is read; the report says so.
    #[arg(
        long,
        value_name = "N",
        num_args = 0..=1,
        require_equals = true,
        value_parser = parse_limit
    )]
    #[expect(
        clippy::option_option,
        reason = "not asked for, asked for, asked for with a number"
    )]
    pub(crate) audit: Option<Option<usize>>,

    /// Seed of the audit's sample
    ///
    /// Default: 1.
    #[arg(long, value_name = "NUMBER", requires = "audit")]
    pub(crate) audit_seed: Option<u64>,
}

impl MatchingRunArgs {
    /// Returns the validated settings.
    pub(crate) fn to_settings(&self, keep: &KeepOrder) -> Result<RunSettings> {
        self.to_settings_with(keep, None)
    }

    /// Returns the validated settings. If the options name no recipe, it is `library_recipe`, or the default if there
    /// is none.
    pub(crate) fn to_settings_with(
        &self,
        keep: &KeepOrder,
        library_recipe: Option<Recipe>,
    ) -> Result<RunSettings> {
        let Self {
            matching,
            audit,
            reading,
            running,
            ..
        } = self;
        let (recipe, chosen, _) = settings_and_plan(&matching.rule, reading, library_recipe)?;
        let forms = matching.forms.as_deref().map(FormsChoice::from);
        let recipe = match &forms {
            None => recipe,
            Some(forms) => forms.apply_to(recipe)?,
        };
        let form_learning = match forms {
            Some(FormsChoice::Learn) => FormLearning::Always,
            None => FormLearning::WherePossible,
            Some(_) => FormLearning::Never,
        };
        if form_learning == FormLearning::Always || recipe.forms.is_some() {
            check_has_text(reading, "a comparison of forms")?;
        }
        let window = match (matching.window, &matching.time) {
            (Some(seconds), Some(field)) => Some(RunWindow {
                seconds,
                field: field.clone(),
            }),
            _ => None,
        };
        Ok(RunSettings {
            recipe,
            matching: chosen,
            form_learning,
            read: read_options(reading)?,
            keep: keep.clone(),
            within: matching.within.clone(),
            sources: None,
            window,
            threads: thread_count(running.threads),
            strict: running.strict,
            audit: audit_settings(audit),
            memory: memory_limit(self.memory),
            temporary: reading.scratch.clone(),
            decisions: Vec::new(),
            spelling: OptionSpelling::Options,
        })
    }

    /// Returns the inputs with the known documents of `--against`.
    pub(crate) fn run_inputs(&self, against: &[PathBuf]) -> RunInputs {
        RunInputs {
            documents: self.inputs.clone().into(),
            against: against.to_vec().into(),
        }
    }
}

/// Returns the limit that a user has set, or else that of the machine.
pub(crate) fn memory_limit(set: Option<u64>) -> Option<MemoryLimit> {
    let bytes = set.or_else(default_memory)?;
    let is_set = set.is_some();
    Some(MemoryLimit {
        bytes,
        is_set,
        working_set: None,
    })
}

/// Returns the settings of the audit, if one was requested.
fn audit_settings(args: &AuditArgs) -> Option<AuditSettings> {
    args.audit.map(|documents| AuditSettings {
        documents,
        seed: args.audit_seed.unwrap_or(1),
    })
}
