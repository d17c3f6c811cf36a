//! Arguments of `dedup`, and the settings of its run.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use lookalike::passages::PassageSettings;
use lookalike::plan::MatchSettings;
use lookalike_batch::decisions::read_decisions;
use lookalike_batch::index::{RunIndexSettings, index_recipe};
use lookalike_batch::run::report::ReportOutput;
use lookalike_batch::run::{
    CopyFields, CopyWeight, DedupOutputs, KeptMembers, RepeatedTextAction, RepeatedTextSettings,
    RunInputs, RunSettings, SourcesField, WeightField, WorkSettings,
};
use lookalike_options::keep_order::{KeepOrder, parse_keep};
use lookalike_system::quote_for_shell;

use crate::commands::shared::inputs::reading_words;
use crate::commands::shared::matching_runs::MatchingRunArgs;
use crate::commands::shared::outputs::{
    EmptyInputArgs, RejectedArgs, check_separate_outputs, check_standard_output, is_standard,
    output_target, page_language,
};

/// Keep one document of each group of near-duplicates
///
/// Reads all inputs, finds the documents that are similar, and writes the rows that are kept, byte
/// for byte (Parquet and Arrow: column for column). Of a similar pair never both are kept, and every removed
/// document has a kept one that it is similar to.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lookalike dedup articles.jsonl.zst -o unique.jsonl.zst --removed removed.tsv
  lookalike dedup posts/ --text title,body --keep max:time --dry-run
  lookalike dedup today.csv --against yesterday.csv -o new.csv
  lookalike dedup march.jsonl.zst --library seen.lib -o march-new.jsonl.zst
  lookalike dedup corpus.jsonl -o clean.jsonl --passages remove --cuts cuts.jsonl
  lookalike dedup big/*.jsonl.zst -o unique.jsonl.zst --work run1 --resume")]
pub(crate) struct DedupArgs {
    /// Reference documents: they come before all others, count as kept and are never written. Give them after
    /// IN, or before another option
    #[arg(long, value_name = "IN", num_args = 1.., help_heading = "Input")]
    pub(crate) against: Vec<PathBuf>,

    /// Library of all documents kept so far: they come before all others and count as kept, and the kept documents of
    /// this run are added to it. It is created if it does not exist
    ///
    /// A library is a directory that `lookalike index` shows, removes from and compacts. The result is that of
    /// --against with all documents of the library, at the cost of the new ones. Documents are added after all
    /// outputs are complete: a run that fails adds nothing, and a run that is repeated finds its documents in the
    /// library. Recipe and measure must be those that the library supports; --dry-run adds nothing.
    #[arg(
        long,
        value_name = "DIR",
        conflicts_with = "work",
        help_heading = "Input"
    )]
    pub(crate) library: Option<PathBuf>,

    /// File for the kept rows, compressed if its extension is .gz or .zst; or a directory that mirrors the
    /// inputs (DIR/); or - for standard output. JSONL, Parquet and Arrow become each other by the extension
    #[arg(short, long, value_name = "OUT", help_heading = "Output")]
    pub(crate) output: Option<PathBuf>,

    /// Table of the removed documents with the evidence: id, kept, similarity, method, threshold, cluster,
    /// source, row, kept_source, kept_row, and the form of both unless --forms off (.tsv, .csv, .jsonl, .parquet or .arrow).
    /// Rows count from 1 within their source
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) removed: Option<PathBuf>,

    /// Table of the documents in clusters: id, cluster, representative, similarity, kept, source, row (.tsv,
    /// .csv, .jsonl, .parquet or .arrow). Documents without a near-duplicate are left out
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) clusters: Option<PathBuf>,

    /// Also find components, the sets of documents connected by chains of matching pairs: counts them and
    /// adds the column `component` to --clusters
    #[arg(long, help_heading = "Output")]
    pub(crate) components: bool,

    /// Report of the run as one HTML file: what was removed and why, with the most doubtful removals side by side.
    /// It opens in a browser without a network; marks that are set in it become a file for --decisions
    #[arg(long, value_name = "FILE.html", help_heading = "Output")]
    pub(crate) report: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) bad_rows: RejectedArgs,

    #[command(flatten)]
    pub(crate) empty_input: EmptyInputArgs,

    /// Write all rows to OUT, with added fields: `cluster`, `duplicate_of` and `similarity`
    #[arg(long, help_heading = "Output")]
    pub(crate) annotate: bool,

    /// Add a field to kept rows: how many documents a row stands for, itself and the removed ones that name it
    #[arg(long, value_name = "NAME", help_heading = "Copies")]
    pub(crate) copies: Option<String>,

    /// Add a field to kept rows: the values of FIELD, for example of a crawl or a site, in the documents that a row stands
    /// for, the most frequent first. The added field is `sources`, or NAME
    ///
    /// It is a list of strings; in CSV its JSON. Values are equal as ids are: 1, 1.0 and "1" are one value.
    #[arg(
        long,
        value_name = "FIELD[=NAME]",
        value_parser = parse_sources,
        help_heading = "Copies"
    )]
    pub(crate) sources: Option<SourcesArg>,

    /// Largest number of values in the field of --sources
    #[arg(
        long,
        value_name = "N",
        default_value_t = 10,
        value_parser = clap::value_parser!(u32).range(1..=1000),
        requires = "sources",
        help_heading = "Copies"
    )]
    pub(crate) most_sources: u32,

    /// Add a field to kept rows: a weight that follows from how many documents a row stands for
    #[arg(long, value_name = "NAME", help_heading = "Copies")]
    pub(crate) weight: Option<String>,

    /// Weight of a number of documents: log (1 + its natural logarithm), sqrt (its square root), or a table with a number
    /// and a weight in each line, separated by a tab
    ///
    /// A table begins with 1, and a weight counts from its number to the next one. Weights have six decimal places.
    #[arg(
        long,
        value_name = "log|sqrt|FILE",
        default_value = "log",
        requires = "weight",
        help_heading = "Copies"
    )]
    pub(crate) weight_by: String,

    /// Write nothing; the summary shows how many documents would be kept and removed
    #[arg(long, help_heading = "Output")]
    pub(crate) dry_run: bool,

    /// Repeated text of kept rows
    ///
    /// It is text that stands in an earlier kept row. mark adds the field `passages`, which says where; remove leaves the
    /// text out of OUT.
    ///
    /// Whole sentences and lines that together have at least --min-length, and whose words all lie in runs of that
    /// length that stand in earlier rows. Case, punctuation, width and Chinese script do not count. The first
    /// occurrence stays. With --library, the rows of the library come before all others; it must have been begun with
    /// --passages and at most this --min-length.
    #[arg(
        long,
        value_name = "ACTION",
        value_enum,
        conflicts_with_all = ["annotate", "window"],
        help_heading = "Passages"
    )]
    pub(crate) passages: Option<PassagesArg>,

    /// Fewest words of a repeated passage; twice as many characters of scripts without spaces
    #[arg(
        long,
        value_name = "WORDS",
        default_value_t = 40,
        value_parser = clap::value_parser!(u32).range(2..=i64::from(PassageSettings::MAX_WORDS)),
        requires = "passages",
        help_heading = "Passages"
    )]
    pub(crate) min_length: u32,

    /// Table of the repeated passages with their texts, from which all can be put back: id, first, start, end,
    /// first_start, first_end, length, source, row, first_source, first_row, text (.tsv, .csv, .jsonl,
    /// .parquet or .arrow). Positions count characters from 0
    #[arg(
        long,
        value_name = "FILE",
        requires = "passages",
        help_heading = "Passages"
    )]
    pub(crate) cuts: Option<PathBuf>,

    /// Rule that selects the kept document of each group: first, last, longest (most characters), max:FIELD
    /// or min:FIELD (largest or smallest value), or several of these, separated by commas: each decides where those
    /// before it are equal. Strings are larger than numbers; missing, empty and NaN values come last in both. Ties go
    /// to the first document
    ///
    /// For example, `--keep max:quality,longest` keeps the document of the best quality, and of equally good ones the
    /// longest.
    #[arg(
        long,
        value_name = "RULE",
        default_value = "first",
        value_parser = parse_keep,
        help_heading = "Matching"
    )]
    pub(crate) keep: KeepOrder,

    /// Number of documents to keep of each group: the kept one of --keep, and those that come next in its order
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..),
        conflicts_with = "drop_all",
        help_heading = "Matching"
    )]
    pub(crate) keep_count: Option<u32>,

    /// Keep no document of a group of N or more, 2 without a number
    ///
    /// A document of --against counts. In the table of --removed, the document that --keep would keep names the one that is
    /// most similar to it.
    #[arg(
        long,
        value_name = "N",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "2",
        value_parser = clap::value_parser!(u32).range(2..),
        help_heading = "Matching"
    )]
    pub(crate) drop_all: Option<u32>,

    /// Decisions of a person, as a report saves them: pairs decided as the same match, pairs decided as different do
    /// not, and everything else follows from the corrected matches. May be repeated
    #[arg(long, value_name = "FILE", help_heading = "Matching")]
    pub(crate) decisions: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) run: MatchingRunArgs,

    /// Directory for what the run has computed so far. A run that was killed, that a full disk ended, or that a
    /// power failure interrupted, is continued by the same command with --resume
    ///
    /// The directory is created if it does not exist. It takes about as much space as the run takes memory, beside
    /// what is read of objects in stores, and may be deleted when the run is finished. Every input must be a regular
    /// file or an object. `lookalike status DIR` shows the progress.
    #[arg(
        long,
        value_name = "DIR",
        conflicts_with_all = ["audit", "explain_plan"],
        help_heading = "Running"
    )]
    pub(crate) work: Option<PathBuf>,

    /// Continue the run in --work DIR, or begin it if there is none
    ///
    /// Inputs, settings and the version of the program must be those of the run. Outputs, --threads and --strict may
    /// be others.
    #[arg(long, requires = "work", help_heading = "Running")]
    pub(crate) resume: bool,
}

/// The values of `--passages`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PassagesArg {
    /// Add the field `passages`
    Mark,
    /// Leave them out
    Remove,
}

/// The value of `--sources`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SourcesArg {
    /// The field that is read.
    field: String,
    /// The field that is added.
    name: String,
}

/// Name of the field of `--sources` if none is given.
const SOURCES_NAME: &str = "sources";

/// Parses `FIELD` or `FIELD=NAME`. The name of the added field follows the last equals sign.
fn parse_sources(text: &str) -> Result<SourcesArg, String> {
    let (field, name) = text.rsplit_once('=').unwrap_or((text, SOURCES_NAME));
    if field.is_empty() || name.is_empty() {
        return Err("give FIELD, or FIELD=NAME".to_owned());
    }
    Ok(SourcesArg {
        field: field.to_owned(),
        name: name.to_owned(),
    })
}

/// The outputs that options name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DedupOutput {
    KeptRows,
    Removed,
    Clusters,
    Cuts,
    Report,
    RejectedRows,
}

impl DedupOutput {
    /// Returns the name in messages about contradictions, and in the list of files of a report.
    fn name(self) -> &'static str {
        match self {
            Self::KeptRows => "kept rows",
            Self::Removed => "removed",
            Self::Clusters => "clusters",
            Self::Cuts => "cuts",
            Self::Report => "report",
            Self::RejectedRows => "rejected rows",
        }
    }
}

/// An output with the place that its option names.
pub(super) type OutputArgument<'a> = (DedupOutput, &'a Path);

impl DedupArgs {
    /// Returns the settings of repeated text, if it is wanted.
    fn repeated_text(&self) -> Result<Option<RepeatedTextSettings>> {
        let Some(action) = self.passages else {
            return Ok(None);
        };
        Ok(Some(RepeatedTextSettings {
            action: match action {
                PassagesArg::Mark => RepeatedTextAction::Mark,
                PassagesArg::Remove => RepeatedTextAction::Remove,
            },
            passages: PassageSettings::new(self.min_length)?,
        }))
    }

    /// Returns the field with the source of each document.
    pub(super) fn source_field(&self) -> Option<&str> {
        self.sources.as_ref().map(|sources| &*sources.field)
    }

    /// Returns how many documents of a cluster are kept.
    fn kept_members(&self) -> KeptMembers {
        match (self.keep_count, self.drop_all) {
            (_, Some(least)) => KeptMembers::DropClusters(least),
            (Some(count), None) => KeptMembers::Best(count),
            (None, None) => KeptMembers::Representative,
        }
    }

    /// Returns the fields about copies that are added to kept rows.
    fn copy_fields(&self) -> Result<CopyFields> {
        let sources = self.sources.as_ref().map(|sources| SourcesField {
            name: sources.name.clone(),
            most: self.most_sources as usize,
        });
        let weight = match &self.weight {
            Some(name) => Some(WeightField {
                name: name.clone(),
                rule: CopyWeight::from_name_or_file(&self.weight_by)?,
            }),
            None => None,
        };
        Ok(CopyFields {
            copies: self.copies.clone(),
            sources,
            weight,
        })
    }

    /// Returns the outputs that are given.
    fn named_outputs(&self) -> Vec<OutputArgument<'_>> {
        let places = [
            (DedupOutput::KeptRows, &self.output),
            (DedupOutput::Removed, &self.removed),
            (DedupOutput::Clusters, &self.clusters),
            (DedupOutput::Cuts, &self.cuts),
            (DedupOutput::Report, &self.report),
            (DedupOutput::RejectedRows, &self.bad_rows.rejected),
        ];
        let given = places.into_iter();
        given
            .filter_map(|(output, place)| Some((output, place.as_deref()?)))
            .collect()
    }
}

/// Settings of a dedup run.
pub(super) struct DedupRun<'a> {
    pub(super) inputs: RunInputs,
    pub(super) settings: RunSettings,
    pub(super) outputs: DedupOutputs,
    /// The directory of the run, if it can be interrupted.
    pub(super) work: Option<WorkSettings>,
    /// The index of all documents kept so far, if there is one.
    pub(super) library: Option<RunIndexSettings>,
    /// Outputs named by options, for the summary.
    pub(super) written: Vec<OutputArgument<'a>>,
}

impl<'a> DedupRun<'a> {
    pub(super) fn new(args: &'a DedupArgs) -> Result<Self> {
        let library_recipe = match &args.library {
            Some(library) => index_recipe(library)?,
            None => None,
        };
        let settings = args.run.to_settings_with(&args.keep, library_recipe)?;
        let settings = RunSettings {
            temporary: args.work.clone().or(settings.temporary),
            decisions: read_decisions(&args.decisions)?,
            sources: args.source_field().map(str::to_owned),
            ..settings
        };
        let named = args.named_outputs();
        check_outputs(args, &named)?;
        let written = if args.dry_run {
            Vec::new()
        } else {
            named.clone()
        };
        let outputs = DedupOutputs {
            kept: args.output.as_deref().map(output_target),
            annotate: args.annotate,
            members: args.kept_members(),
            copy_fields: args.copy_fields()?,
            removed: args.removed.as_deref().map(output_target),
            clusters: args.clusters.as_deref().map(output_target),
            components: args.components,
            rejected: args.bad_rows.target(),
            allows_empty: args.empty_input.allow_empty,
            passages: args.repeated_text()?,
            cuts: args.cuts.as_deref().map(output_target),
            report: args
                .report
                .as_deref()
                .map(|place| report_output(args, place, &named)),
        };
        let outputs = if args.dry_run {
            outputs.without_files()
        } else {
            outputs
        };
        Ok(Self {
            inputs: args.run.run_inputs(&args.against),
            settings,
            outputs,
            work: args.work.as_ref().map(|directory| WorkSettings {
                directory: directory.clone(),
                resume: args.resume,
            }),
            library: args.library.as_ref().map(|path| RunIndexSettings {
                path: path.clone(),
                adds_kept: !args.dry_run,
            }),
            written,
        })
    }
}

/// Returns the report and what only the command knows about it.
fn report_output(args: &DedupArgs, place: &Path, named: &[OutputArgument<'_>]) -> ReportOutput {
    let others = named.iter();
    let others = others.filter(|(output, _)| *output != DedupOutput::Report);
    ReportOutput {
        target: output_target(place),
        language: page_language(),
        written: others
            .map(|(output, place)| (output.name().to_owned(), place.display().to_string()))
            .collect(),
        explain_command: explain_command(args, named),
    }
}

/// Returns the command that explains a removal, with `ID` in place of the id, if there is a table of removals. It works
/// as it is when it is pasted into a shell in the directory of the run.
pub(super) fn explain_command(args: &DedupArgs, written: &[OutputArgument<'_>]) -> Option<String> {
    let is_table = |(output, place): &&OutputArgument<'_>| {
        *output == DedupOutput::Removed && !is_standard(place)
    };
    let (_, removed) = written.iter().find(is_table)?;
    let mut words = vec![quote_path(removed), "ID".to_owned()];
    words.extend(args.run.inputs.iter().map(|input| quote_path(input)));
    words.extend(explain_words(args));
    Some(format!("lookalike explain {}", words.join(" ")))
}

fn quote_path(path: &Path) -> String {
    quote_for_shell(&path.display().to_string())
}

/// Returns the options of the run without which its documents are not found, not read or not compared as they were, as
/// words of a shell.
fn explain_words(args: &DedupArgs) -> Vec<String> {
    // Every option is named here, so that one that is added is not forgotten.
    let DedupArgs {
        against,
        library,
        decisions,
        run,
        output: _,
        removed: _,
        clusters: _,
        components: _,
        report: _,
        bad_rows: _,
        empty_input: _,
        annotate: _,
        copies: _,
        sources: _,
        most_sources: _,
        weight: _,
        weight_by: _,
        dry_run: _,
        passages: _,
        min_length: _,
        cuts: _,
        keep: _,
        keep_count: _,
        drop_all: _,
        work: _,
        resume: _,
    } = args;
    let (matching, rule) = (&run.matching, &run.matching.rule);
    let mut words = Vec::new();
    if !against.is_empty() {
        words.push("--against".to_owned());
        words.extend(against.iter().map(|input| quote_path(input)));
    }
    let mut add = |option: &str, value: Option<String>| {
        if let Some(value) = value {
            words.extend([option.to_owned(), quote_for_shell(&value)]);
        }
    };
    let shown = |path: &PathBuf| path.display().to_string();
    add("--library", library.as_ref().map(shown));
    for file in decisions {
        add("--decisions", Some(shown(file)));
    }
    let forms = matching.forms.as_deref();
    let forms = forms.filter(|forms| !["learn", "off"].contains(forms));
    add("--forms", forms.map(str::to_owned));
    add("--recipe", rule.recipe.clone());
    for change in &rule.changes.set {
        add("--set", Some(change.clone()));
    }
    let is_usual = rule.verify == MatchSettings::default().measure;
    let measure = (!is_usual).then(|| rule.verify.name().to_owned());
    add("--verify", measure);
    add("--unit", rule.unit.map(|unit| unit.name().to_owned()));
    add(
        "--sentences",
        rule.sentences.map(|sentences| sentences.to_string()),
    );
    words.extend(reading_words(&run.reading));
    words
}

fn check_outputs(args: &DedupArgs, named: &[OutputArgument<'_>]) -> Result<()> {
    if named.is_empty() && !args.dry_run {
        bail!(
            "no output is given: give -o OUT for the kept rows, or --removed, --clusters or \
             --rejected, or --dry-run for the summary alone"
        );
    }
    if args.annotate && args.output.is_none() {
        bail!("--annotate adds fields to the rows of -o OUT, which is missing");
    }
    let fields = [
        ("--copies", args.copies.is_some()),
        (
            "--sources",
            args.sources.is_some() && args.library.is_none(),
        ),
        ("--weight", args.weight.is_some()),
    ];
    if let Some((option, _)) = fields.iter().find(|(_, is_given)| *is_given)
        && args.output.is_none()
    {
        bail!("{option} adds a field to the rows of -o OUT, which is missing");
    }
    let named = named.iter().map(|(output, place)| (output.name(), *place));
    let named: Vec<(&str, &Path)> = named.collect();
    check_standard_output(&named, args.run.running.json)?;
    check_separate_outputs(&named, args.run.matching.rule.recipe.as_deref())
}
