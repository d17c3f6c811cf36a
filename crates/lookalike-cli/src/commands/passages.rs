//! `lookalike passages`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::{Args, Subcommand, ValueEnum};
use lookalike::Recipe;
use lookalike::passages::PassageSettings;
use lookalike::text::SpanTokenizer;
use lookalike_batch::index::min_passage_words;
use lookalike_batch::run::report::ReportOutput;
use lookalike_batch::run::{
    self, DescribedPassage, GuessedFiles, MemoryLimit, OffsetUnit, PassageOrder, PassageOutputs,
    PassagePlan, PassageRunSettings, PassagesSummary, RunInputs, RunSettings, RunWindow,
    SHOWN_PASSAGE_CHARACTERS,
};
use lookalike_comparison::text_diff::diff_normalized;
use lookalike_options::boilerplate_limit::{BoilerplateLimit, parse_boilerplate_limit};
use lookalike_options::match_options::OptionSpelling;
use lookalike_options::units::{parse_seconds, parse_size};

use super::index::{PassagesIndexArgs, run_passages_index};
use super::shared::inputs::{
    ReadingArgs, document_file_options, read_options, refuse_features, without_features,
};
use super::shared::matching_runs::memory_limit;
use super::shared::memory_report::{MemoryReport, print_plan};
use super::shared::outputs::{
    RejectedArgs, TableOutputs, check_separate_outputs, check_standard_output, is_standard,
    output_file, output_target, page_language,
};
use super::shared::recipes::{RecipeChangeArgs, load_recipe};
use super::shared::running::{RowsRun, RunningArgs, thread_count};
use super::shared::summary::{SummaryText, TEXT_OPTIONS, format_recipe};
use crate::CommandOutcome;
use crate::language::engine_phrases::translate_phrase;
use crate::language::{CountedNoun, NounCount, messages};
use crate::output::{OutputPrinter, TextTone, escape_control, format_bytes, format_count};
use crate::text_diff::{join_lines, mark_passages, show_both};

/// Find copied passages: which document took what from where
///
/// Writes a table with the columns document, source, start, end, source_start, source_end, length, similarity and
/// kind (verbatim, edited, reordered, or reworded with --reworded). The source is the earlier document, or the one of --against. Positions
/// count characters from 0; the length counts words, and characters of scripts without spaces. Every equal run of
/// at least --min-length that is not boilerplate is found; case, punctuation, width and Chinese script do not
/// count.
///
/// A file of plain text, Markdown, HTML, .docx or PDF is one document, and its path is its id. Markdown and HTML are
/// compared without their markup. Positions are those of the file, a byte order mark included; in .docx and PDF files
/// they count in the extracted text, which --extracted writes. A file that cannot be read is reported, and the others
/// are compared. Each PDF file is read by a process of its own with at most 2 GiB of memory, 60 s of processor time
/// and 120 s in all.
#[derive(Debug, Args)]
#[command(mut_arg("features", without_features))]
#[command(mut_arg("document_per_file", |argument| argument.hide(true)))]
#[command(after_help = "\
Examples:
  lookalike passages essay.docx --against sources/ --show --extracted texts/
  lookalike passages articles.jsonl -o passages.tsv --time published
  lookalike passages essay.txt --index theses.lib --show
  lookalike passages essays/ --base question.txt --report essays.html
  lookalike passages chapters/ --order longest --min-length 20 -o passages.parquet")]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct PassagesArgs {
    #[command(subcommand)]
    pub(crate) command: Option<PassagesCommand>,

    /// Documents: files, directories, globs, URLs, or - for standard input (read as JSONL unless --format is given)
    #[arg(value_name = "IN", required = true)]
    pub(crate) inputs: Vec<PathBuf>,

    /// Possible sources: finds only what documents of IN share with these. Give them after IN, or before
    /// another option
    #[arg(long, value_name = "IN", num_args = 1.., help_heading = "Input")]
    pub(crate) against: Vec<PathBuf>,

    /// Text that all were given, such as a question or a form: never a passage. May be repeated
    ///
    /// A file like those of IN. Each run of five words (ten characters) of it counts for nothing in every document, and
    /// no passage goes on across more than 12 words (24 characters) of it.
    #[arg(long, value_name = "FILE", help_heading = "Input")]
    pub(crate) base: Vec<PathBuf>,

    /// Index whose texts are the possible sources (see `lookalike passages index`). Its recipe says which tokens are
    /// equal
    #[arg(
        long,
        value_name = "LIB",
        conflicts_with_all = ["against", "time", "window", "within", "recipe"],
        help_heading = "Input"
    )]
    pub(crate) index: Option<PathBuf>,

    /// Read each line of a plain text file as a document
    #[arg(long, help_heading = "Input", conflicts_with = "document_per_file")]
    pub(crate) document_per_line: bool,

    /// Table of passages, .tsv, .csv, .jsonl (also .gz, .zst), .parquet or .arrow; TSV on standard output without it, --show
    /// and --report
    #[arg(short, long, value_name = "OUT", help_heading = "Output")]
    pub(crate) output: Option<PathBuf>,

    /// Print the N longest passages with both texts and their differences marked
    ///
    /// Default: 10.
    #[arg(
        long,
        value_name = "N",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "10",
        value_parser = clap::value_parser!(u32).range(1..=100_000),
        help_heading = "Output"
    )]
    pub(crate) show: Option<u32>,

    /// Unit of the positions in the table
    #[arg(long, value_enum, default_value_t = OffsetsArg::Characters, help_heading = "Output")]
    pub(crate) offsets: OffsetsArg,

    /// Order of the table
    #[arg(long, value_enum, default_value_t = OrderArg::Position, help_heading = "Output")]
    pub(crate) order: OrderArg,

    /// Directory for the texts of .docx and PDF files, in which their positions count: ID.txt for each file. A file
    /// that exists with another text is not replaced, but refused
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub(crate) extracted: Option<PathBuf>,

    /// Report of the run as one HTML file: how much of each document is found elsewhere and where, with both texts side
    /// by side and their passages numbered. It opens in a browser without a network. Without -o, the table is not
    /// written
    #[arg(long, value_name = "FILE.html", help_heading = "Output")]
    pub(crate) report: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) bad_rows: RejectedArgs,

    /// Shortest passage in words; a word counts as two characters of a script without spaces
    ///
    /// Default: 12; with --index, what the index was built for.
    #[arg(
        long,
        value_name = "WORDS",
        value_parser = clap::value_parser!(u32).range(2..=i64::from(PassageSettings::MAX_WORDS)),
        help_heading = "Passages"
    )]
    pub(crate) min_length: Option<u32>,

    /// Also find reworded passages: many of the same rarer words close together, in whatever order, but few runs of
    /// equal words, as after synonyms were put in and sentences rearranged
    ///
    /// They have at least 30 words (60 characters). They are judged by shares, so some copies are missed; the other
    /// passages stay as they are. It takes more time and memory.
    #[arg(long, conflicts_with = "index", help_heading = "Passages")]
    pub(crate) reworded: bool,

    /// In how many documents a run of five words (ten characters) may be before it is boilerplate, for which alone
    /// no two documents are compared: a number, a percentage, or none for no limit
    ///
    /// Default: 20 documents, or 0.1% of them if that is more; with --against or --index, of those documents.
    #[arg(
        long,
        value_name = "N|PERCENT|none",
        value_parser = parse_boilerplate_limit,
        allow_hyphen_values = true,
        help_heading = "Passages"
    )]
    pub(crate) max_documents: Option<BoilerplateLimit>,

    /// Field with the time of a document: seconds since 1970 or an ISO 8601 date or date and time. The source of
    /// a passage is then the document with the earlier time, not the one that is read first
    #[arg(long, value_name = "FIELD", help_heading = "Passages")]
    pub(crate) time: Option<String>,

    /// Maximum time between two documents that are compared: a number with the unit s, m, h, d or w; needs --time
    #[arg(
        long,
        value_name = "DURATION",
        value_parser = parse_seconds,
        allow_hyphen_values = true,
        requires = "time",
        help_heading = "Passages"
    )]
    pub(crate) window: Option<f64>,

    /// Compare only documents with equal values of this field
    #[arg(long, value_name = "FIELD", help_heading = "Passages")]
    pub(crate) within: Option<String>,

    /// Recipe whose normalisation says which tokens are equal: a name (see `lookalike recipe`) or a TOML file
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

    /// Maximum memory of the process: bytes, or with the unit K, M, G (of 1000) or Ki, Mi, Gi (of 1024). Grams of the
    /// sources that do not fit go to temporary files; the passages do not depend on it
    ///
    /// Temporary files are in --scratch, else in the directory of the variable TMPDIR, else in /tmp. The places and ids of all rows stay
    /// in memory: a limit in which they do not fit is refused with the smallest one that would do, and --explain-plan
    /// shows both. Passages that are sorted (--order) wait in memory, too. Default: four fifths of the available memory
    /// of the machine or of its control group.
    #[arg(long, value_name = "SIZE", value_parser = parse_size, help_heading = "Running")]
    pub(crate) memory: Option<u64>,

    /// Print the plan of the memory, then stop. It is estimated from the first rows
    #[arg(long, help_heading = "Running")]
    pub(crate) explain_plan: bool,

    #[command(flatten)]
    pub(crate) running: RunningArgs,
}

/// Commands beside the search itself.
#[derive(Debug, Subcommand)]
pub(crate) enum PassagesCommand {
    Index(PassagesIndexArgs),
}

/// A unit of positions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OffsetsArg {
    /// Characters (code points)
    Characters,
    /// Bytes of UTF-8
    Bytes,
}

/// An order of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OrderArg {
    /// By document, by source and by position
    Position,
    /// The longest passages first
    Longest,
    /// First the document that has most text of one source
    Copied,
}

/// Passages and pairs of documents in a summary if none are shown.
const DESCRIBED_PASSAGES: usize = 5;

/// Documents of a guessed encoding that are named.
const SHOWN_GUESSED_FILES: usize = 20;

pub(crate) fn run_passages(args: &PassagesArgs) -> Result<CommandOutcome> {
    if let Some(PassagesCommand::Index(args)) = &args.command {
        return run_passages_index(args);
    }
    refuse_inside_inputs(args)?;
    let settings = passage_settings(args)?;
    if args.explain_plan {
        return explain_plan(args, &settings);
    }
    let outputs = passage_outputs(args)?;
    let targets = [&outputs.passages, &outputs.rejected];
    let files = targets.into_iter().flatten().filter_map(output_file);
    let run = RowsRun::new(&args.running, files, outputs.rejected.is_some());
    let inputs = RunInputs {
        documents: args.inputs.clone().into(),
        against: args.against.clone().into(),
    };
    let done =
        run.watch_work(|reporter| run::find_passages(&inputs, &settings, &outputs, reporter))?;
    if args.show.is_some() && !args.running.json {
        run.printer.write_data(&show_passages(
            &done,
            &settings.reading.recipe,
            &run.printer,
        )?)?;
    }
    run.finish_run(&done, done.rejected, || {
        describe_passages(&done, args, &run.printer)
    })
}

fn explain_plan(args: &PassagesArgs, settings: &PassageRunSettings) -> Result<CommandOutcome> {
    let Some(limit) = settings.reading.memory else {
        bail!("the available memory of this machine is not known: give a limit with --memory");
    };
    let inputs = RunInputs {
        documents: args.inputs.clone().into(),
        against: args.against.clone().into(),
    };
    // Small inputs are measured, too.
    let limit = MemoryLimit {
        is_set: true,
        ..limit
    };
    let plan = PassagePlan::plan_run(&inputs, settings, limit)?;
    print_plan(&plan, &args.running, describe_plan)
}

/// Returns the plan for people.
fn describe_plan(plan: &PassagePlan, printer: &OutputPrinter) -> String {
    let documents = plan.documents.map_or_else(String::new, |documents| {
        format!("About {} documents\n\n", format_count(documents))
    });
    let rows = format_bytes(plan.resident_bytes);
    let grams = match (plan.out_of_core, plan.documents) {
        (true, _) => format!(
            "out of core: about {} of temporary files; {rows} for rows stay in memory",
            format_bytes(plan.disk_bytes)
        ),
        (false, Some(_)) => "in memory, without temporary files".to_owned(),
        (false, None) => {
            "inputs of unknown size: grams that do not fit go to temporary files".to_owned()
        }
    };
    let report = MemoryReport {
        limit_bytes: plan.limit_bytes,
        in_memory_bytes: plan.in_memory_bytes,
        plan: grams,
        smallest_limit_bytes: plan.smallest_limit_bytes,
    };
    documents + &report.into_text(printer)
}

/// Returns the settings of the run.
pub(crate) fn passage_settings(args: &PassagesArgs) -> Result<PassageRunSettings> {
    refuse_features(&args.reading)?;
    let mut read = read_options(&args.reading)?;
    read.text_documents = !args.document_per_line;
    read.document_files = Some(document_file_options());
    Ok(PassageRunSettings {
        reading: RunSettings {
            recipe: load_recipe(&args.recipe, &args.changes)?,
            read,
            within: args.within.clone(),
            window: args.time.clone().map(|field| RunWindow {
                seconds: args.window.unwrap_or(f64::INFINITY),
                field,
            }),
            threads: thread_count(args.running.threads),
            strict: args.running.strict,
            memory: memory_limit(args.memory),
            spelling: OptionSpelling::Options,
            ..RunSettings::default()
        },
        passages: passage_length(args)?,
        max_documents: args.max_documents.unwrap_or_default(),
        base: args.base.clone().into(),
        index: args.index.clone(),
        offsets: match args.offsets {
            OffsetsArg::Characters => OffsetUnit::Characters,
            OffsetsArg::Bytes => OffsetUnit::Bytes,
        },
        order: match args.order {
            OrderArg::Position => PassageOrder::Position,
            OrderArg::Longest => PassageOrder::Longest,
            OrderArg::Copied => PassageOrder::Copied,
        },
        described: args.show.map_or(DESCRIBED_PASSAGES, |shown| shown as usize),
        common_characters: SHOWN_PASSAGE_CHARACTERS,
        limits: None,
    })
}

/// Returns how long a passage must be.
fn passage_length(args: &PassagesArgs) -> Result<PassageSettings> {
    let indexed = match (&args.index, args.min_length) {
        (Some(index), None) => min_passage_words(index)?,
        _ => None,
    };
    let settings = match args.min_length.or(indexed) {
        Some(words) => PassageSettings::new(words)?,
        None => PassageSettings::default(),
    };
    Ok(settings.with_reworded(args.reworded))
}

/// Refuses to write extracted texts into a directory that is read, because another run would read them as
/// documents.
fn refuse_inside_inputs(args: &PassagesArgs) -> Result<()> {
    let Some(extracted) = &args.extracted else {
        return Ok(());
    };
    if lookalike_io::is_url(extracted) {
        bail!(
            "--extracted {} is a URL, and extracted texts are written to a directory of this machine: name one, and \
             copy it afterwards",
            extracted.display()
        );
    }
    let existing = extracted
        .ancestors()
        .find_map(|ancestor| match ancestor.as_os_str() {
            empty if empty.is_empty() => Path::new(".").canonicalize().ok(),
            _ => ancestor.canonicalize().ok(),
        });
    for input in args.inputs.iter().chain(&args.against).chain(&args.base) {
        let is_around = |input: PathBuf| {
            existing
                .as_ref()
                .is_some_and(|existing| existing.starts_with(input))
        };
        if input.is_dir() && input.canonicalize().is_ok_and(is_around) {
            bail!(
                "the texts of --extracted {} would be documents of {} in the next run: name a directory outside it",
                extracted.display(),
                input.display()
            );
        }
    }
    Ok(())
}

/// Returns the outputs. The table goes to standard output unless the passages are shown there.
/// Returns the report, if one is wanted.
fn report_output(args: &PassagesArgs) -> Result<Option<ReportOutput>> {
    let Some(place) = &args.report else {
        return Ok(None);
    };
    let places = [
        ("passages", &args.output),
        ("report", &args.report),
        ("rejected rows", &args.bad_rows.rejected),
    ];
    let places: Vec<_> = (places.into_iter())
        .filter_map(|(name, place)| Some((name, place.as_deref()?)))
        .collect();
    check_separate_outputs(&places, Some(&*args.recipe))?;
    Ok(Some(ReportOutput {
        target: output_target(place),
        language: page_language(),
        written: (args.output.iter())
            .map(|path| ("passages".to_owned(), path.display().to_string()))
            .collect(),
        explain_command: None,
    }))
}

fn passage_outputs(args: &PassagesArgs) -> Result<PassageOutputs> {
    let (recipe, json) = (Some(&*args.recipe), args.running.json);
    if args.show.is_some() && args.output.as_deref().is_some_and(is_standard) {
        bail!(
            "--show prints on standard output: write the table to a file (-o FILE), or leave one of them out"
        );
    }
    if args.output.is_some() || args.show.is_none() && args.report.is_none() {
        let outputs = TableOutputs::new(
            "passages",
            args.output.as_deref(),
            &args.bad_rows,
            json,
            recipe,
        )?;
        return Ok(PassageOutputs {
            passages: Some(outputs.table),
            rejected: outputs.rejected,
            extracted: args.extracted.clone(),
            report: report_output(args)?,
        });
    }
    let mut named = Vec::new();
    named.extend((!json && args.show.is_some()).then_some(("shown passages", Path::new("-"))));
    named.extend(
        args.bad_rows
            .rejected
            .iter()
            .map(|path| ("rejected rows", &**path)),
    );
    check_standard_output(&named, json)?;
    check_separate_outputs(&named, recipe)?;
    Ok(PassageOutputs {
        passages: None,
        rejected: args.bad_rows.target(),
        extracted: args.extracted.clone(),
        report: report_output(args)?,
    })
}

/// Returns the longest passages with their texts. The recipe says which words are marked as different.
fn show_passages(
    done: &PassagesSummary,
    recipe: &Recipe,
    printer: &OutputPrinter,
) -> Result<String> {
    let tokenizer = SpanTokenizer::new(recipe);
    let mut text = String::new();
    for (number, passage) in (1..).zip(&done.longest) {
        push_passage(
            &mut text,
            number,
            passage,
            done.directed,
            &tokenizer,
            printer,
        )?;
    }
    Ok(text)
}

/// Returns a length in its unit.
fn count_length(length: usize, unit: &str) -> NounCount {
    let noun = if unit == "characters" {
        CountedNoun::WordCharacter
    } else {
        CountedNoun::Word
    };
    NounCount(length as u64, noun)
}

fn push_passage(
    text: &mut String,
    number: usize,
    passage: &DescribedPassage,
    is_directed: bool,
    tokenizer: &SpanTokenizer,
    printer: &OutputPrinter,
) -> Result<()> {
    let [document, source] = [&passage.document, &passage.source].map(|name| escape_control(name));
    let heading = if is_directed {
        messages::shown_passage
    } else {
        messages::shown_common_passage
    };
    let heading = heading(
        number,
        &messages::line_of(&document, passage.line),
        &messages::line_of(&source, passage.source_line),
        count_length(passage.length, passage.unit),
        &translate_phrase(passage.kind),
        passage.similarity,
    );
    let _ = writeln!(
        text,
        "{}",
        printer.paint_for_output(TextTone::Heading, &heading)
    );
    let [document, source] = [&passage.text, &passage.source_text].map(|text| join_lines(text));
    let shown = match passage.kind {
        "verbatim" => escape_control(&document).into_owned(),
        "reordered" | "reworded" if is_directed => show_both([
            (&messages::passage_in_document(), &document),
            (&messages::passage_in_source(), &source),
        ]),
        "reordered" | "reworded" => show_both([
            (&messages::passage_in_first(), &document),
            (&messages::passage_in_second(), &source),
        ]),
        _ => {
            let differences = diff_normalized(&source, &document, tokenizer)?;
            mark_passages(&differences, true, printer)
        }
    };
    for line in shown.lines() {
        let _ = writeln!(text, "   {line}");
    }
    text.push('\n');
    Ok(())
}

/// Returns the summary for people.
fn describe_passages(
    done: &PassagesSummary,
    args: &PassagesArgs,
    printer: &OutputPrinter,
) -> String {
    // The texts of an index are not read as inputs.
    let read = match &args.index {
        Some(_) => done.documents,
        None => done.documents + done.against,
    };
    let mut text = SummaryText::from_speed(read, done.bytes, done.seconds);
    if done.passages == 0 {
        let least = NounCount(done.min_words.into(), CountedNoun::Word);
        text.add_line(&messages::passages(), messages::no_passages(least));
    } else {
        let share = 100.0 * done.copied_tokens as f64 / done.tokens.max(1) as f64;
        add_found(&mut text, done, &format!("{share:.1}"));
    }
    add_boilerplate(&mut text, done);
    add_base(&mut text, done);
    if !done.most_copied.is_empty() {
        add_pairs(&mut text, done, printer);
    }
    if done.unreadable_files > 0 {
        let unreadable = messages::reported_files(&format_count(done.unreadable_files));
        text.add_line(&messages::unreadable_files(), unreadable);
    }
    for guessed in &done.guessed_encodings {
        let files = NounCount(guessed.files, CountedNoun::File);
        text.add_line(
            &messages::guessed_encoding(),
            messages::files_in_encoding(files, &guessed.encoding, &list_guessed(guessed)),
        );
    }
    let bad_rows = done.rejected - done.unreadable_files;
    text.add_rejected(bad_rows, done.documents, TEXT_OPTIONS);
    if let Some(directory) = &args.extracted {
        let texts = format_count(done.extracted_texts);
        let written = messages::new_in(&texts, directory.display());
        text.add_line(&messages::extracted_texts(), written);
    }
    text.add_line(
        &messages::recipe(),
        format_recipe(&done.recipe, &done.recipe_id),
    );
    text.add_spilled_data(done.spilled);
    text.add_output(args.output.as_deref());
    text.into_text()
}

/// Names the first files of a guessed encoding.
fn list_guessed(guessed: &GuessedFiles) -> String {
    let shown = guessed.names.iter().take(SHOWN_GUESSED_FILES);
    let names: Vec<_> = shown
        .map(|name| escape_control(name).into_owned())
        .collect();
    let rest = if guessed.files > names.len() as u64 {
        ", …"
    } else {
        ""
    };
    names.join(", ") + rest
}

/// Adds what was found. Without a direction no document is called the source, because nothing says that it is.
fn add_found(text: &mut SummaryText, done: &PassagesSummary, share: &str) {
    let passages = format_count(done.passages);
    let (found, name, share) = if done.directed {
        let found = messages::passages_found(
            &passages,
            NounCount(done.copying, CountedNoun::Document),
            NounCount(done.pairs, CountedNoun::SourcePair),
        );
        (
            found,
            messages::copied_text(),
            messages::copied_share(share),
        )
    } else {
        let found = messages::common_passages(
            &passages,
            NounCount(done.pairs, CountedNoun::Pair),
            NounCount(done.sharing, CountedNoun::Document),
        );
        (
            found,
            messages::repeated_text(),
            messages::repeated_share(share),
        )
    };
    text.add_line(&messages::passages(), found);
    text.add_line(&name, share);
    if !done.directed {
        text.add_line(&messages::direction(), messages::unknown_direction());
    }
}

/// Adds the pairs that share most text.
fn add_pairs(text: &mut SummaryText, done: &PassagesSummary, printer: &OutputPrinter) {
    let heading = if done.directed {
        messages::most_copied()
    } else {
        messages::most_shared()
    };
    text.add_heading(printer, TextTone::Heading, &heading);
    let describe = if done.directed {
        messages::copied_from
    } else {
        messages::shared_by
    };
    for pair in &done.most_copied {
        let [share, source_share] =
            [pair.share, pair.source_share].map(|share| format!("{:.0}", 100.0 * share));
        let mut described = describe(
            &escape_control(&pair.document),
            &escape_control(&pair.source),
            count_length(pair.copied, pair.unit),
            NounCount(pair.passages, CountedNoun::Passage),
            &share,
            &source_share,
        )
        .to_string();
        if pair.reworded > 0 {
            let reworded = messages::in_reworded(count_length(pair.reworded, pair.unit));
            described += &reworded.to_string();
        }
        text.add_text(described);
    }
}

/// Adds what was left out because all documents were given it, and a text of which nobody said that they were.
fn add_base(text: &mut SummaryText, done: &PassagesSummary) {
    if done.base.texts > 0 {
        let left_out = messages::base_left_out(
            count_length(done.base.tokens as usize, done.base.unit),
            NounCount(done.base.documents, CountedNoun::Document),
            NounCount(done.base.texts, CountedNoun::Text),
        );
        text.add_line(&messages::base_text(), left_out);
    }
    if done.base.short_texts > 0 {
        let short = describe_short_base(done);
        text.add_line(&messages::base_text(), short);
    }
    if let Some(common) = &done.common {
        let characters = NounCount(common.characters as u64, CountedNoun::Character);
        let having = format_count(common.documents);
        let documents = NounCount(done.documents, CountedNoun::Document);
        // The limit counts sources, which are other documents if there are any.
        let hint = if done.against == 0 {
            messages::common_passage(characters, &having, documents, common.documents - 1)
        } else {
            messages::common_passage_of_sources(characters, &having, documents)
        };
        text.add_line(&messages::common_text(), hint);
    }
}

/// Words of the runs that are compared with a base text; a passage that may be shorter has shorter ones.
const BASE_RUN_WORDS: u32 = 5;

/// Returns a line on the base texts that are too short to leave anything out.
fn describe_short_base(done: &PassagesSummary) -> String {
    let words = done.min_words.min(BASE_RUN_WORDS);
    let named: Vec<_> = (done.base.short_names.iter())
        .map(|name| escape_control(name))
        .collect();
    let more = if done.base.short_texts as usize > named.len() {
        ", …"
    } else {
        ""
    };
    let texts = NounCount(done.base.short_texts, CountedNoun::Text);
    let names = format!("{}{more}", named.join(", "));
    messages::short_base(texts, words, 2 * words, &names)
}

fn add_boilerplate(text: &mut SummaryText, done: &PassagesSummary) {
    let Some(most) = done
        .boilerplate
        .max_documents
        .filter(|_| done.boilerplate.grams > 0)
    else {
        return;
    };
    let runs = NounCount(done.boilerplate.grams, CountedNoun::WordRun);
    let most = NounCount(most.into(), CountedNoun::Document);
    text.add_line(&messages::boilerplate(), messages::common_runs(runs, most));
    for example in &done.boilerplate.examples {
        let shown: String = example
            .text
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        let documents = format_count(example.documents.into());
        text.add_text(messages::boilerplate_example(
            &documents,
            &escape_control(&shown),
        ));
    }
}
