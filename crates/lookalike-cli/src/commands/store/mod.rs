//! `lookalike store`.

mod args;
mod log;

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Result, bail};
use flate2::bufread::MultiGzDecoder;
use lookalike_io::sink::{ByteWriter, OutputTarget};
use lookalike_io::source::WholeInput;
use lookalike_server::{
    DifferingCheck, FindRecipe, RestorePoint, SnapshotPlace, is_shared_log, read_stored_settings,
    restore_from_log, with_snapshot, write_settings,
};
use lookalike_store::{
    self as store, Collection, CollectionOptions, Disk, DiskFolder, ImportCounts, MANIFEST_FILE,
    ReadFolder, SettingsRecord, VerificationLimits, VerifyReport,
};
use lookalike_system::make_files_private;
use serde_json::{Value, json};

pub(crate) use self::args::StoreArgs;
use self::args::{
    RestoreMoment, StoreCommand, StoreExportArgs, StoreImportArgs, StoreRepairArgs,
    StoreRestoreArgs, StoreVerifyArgs,
};
use super::shared::running::{self, SummaryArgs};
use crate::CommandOutcome;
use crate::language::engine_phrases::translate_phrase;
use crate::language::{CountedNoun, NounCount, messages};
use crate::output::{OutputPrinter, escape_control, format_count, format_plural, with_context};
use crate::progress::ProgressReporter;

/// Number of findings that are shown; the rest are counted.
const SHOWN_FINDINGS: usize = 20;

/// Bytes that are written at a time.
const BUFFER_BYTES: usize = 1 << 20;

pub(crate) fn run_store(args: &StoreArgs) -> Result<CommandOutcome> {
    match &args.command {
        StoreCommand::Verify(args) => run_verify(args),
        StoreCommand::Repair(args) => {
            make_files_private();
            run_repair(args)
        }
        StoreCommand::Restore(args) => {
            make_files_private();
            run_restore(args)
        }
        StoreCommand::Log(args) => log::run_log(args),
        StoreCommand::Export(args) => run_export(args),
        StoreCommand::Import(args) => {
            make_files_private();
            run_import(args)
        }
    }
}

fn run_verify(args: &StoreVerifyArgs) -> Result<CommandOutcome> {
    check_existing(&args.directory)?;
    let disk = open_to_read(&args.directory)?;
    verify_disk(&disk, &args.directory, &args.telling)
}

fn run_restore(args: &StoreRestoreArgs) -> Result<CommandOutcome> {
    match (args.at, &args.snapshot) {
        (Some(RestoreMoment(point)), SnapshotPlace::Url(url)) => run_restore_log(args, url, point),
        (Some(_), SnapshotPlace::Folder(_)) => bail!(
            "{} is no URL of a shared log: give one, such as s3://bucket/log or file:///directory",
            args.snapshot
        ),
        (None, SnapshotPlace::Url(url)) if is_shared_log(url) => {
            run_restore_log(args, url, RestorePoint::Latest)
        }
        (None, _) => run_restore_collection(args),
    }
}

fn run_restore_collection(args: &StoreRestoreArgs) -> Result<CommandOutcome> {
    let disk = with_snapshot(&args.snapshot, |snapshot| {
        let cannot = || with_context(format!("cannot restore {}", args.snapshot));
        // The directory is created only if the source is a snapshot.
        store::read_settings(snapshot).map_err(cannot())?;
        let disk = open_fresh(&args.directory)?;
        store::restore_collection(snapshot, &disk, 0).map_err(cannot())?;
        anyhow::Ok(disk)
    })?;
    verify_disk(&disk, &args.directory, &args.telling)
}

fn run_restore_log(
    args: &StoreRestoreArgs,
    url: &str,
    point: RestorePoint,
) -> Result<CommandOutcome> {
    let restored = restore_from_log(url, &args.directory, point)?;
    for snapshot in &restored.unusable_snapshots {
        let reason = translate_phrase(&snapshot.reason);
        let warning = messages::log_snapshot_unusable(&snapshot.name, &reason);
        OutputPrinter::new(false).print_warning(escape_control(&warning));
    }
    warn_of_differing_checks(&restored.differing_checks);
    let time = jiff::Timestamp::from_microsecond(restored.time_us).unwrap_or_default();
    let names = if restored.collections.is_empty() {
        messages::log_without_collections()
    } else {
        restored.collections.join(", ")
    };
    let mut words = messages::log_restored(restored.record, time, &names) + "\n";
    if !restored.differing_checks.is_empty() {
        words += &messages::log_checks_differed(restored.differing_checks.len());
        words.push('\n');
    }
    let differing = restored.differing_checks.iter();
    let differing: Vec<_> = differing
        .map(|check| {
            json!({
                "record": check.record,
                "writer": check.writer,
                "collections": check.collections,
            })
        })
        .collect();
    let unusable = restored.unusable_snapshots.iter();
    let unusable: Vec<_> = unusable
        .map(|snapshot| json!({ "name": snapshot.name, "reason": snapshot.reason }))
        .collect();
    let summary = json!({
        "record": restored.record,
        "time": time.to_string(),
        "collections": restored.collections,
        "differing_checks": differing,
        "unusable_snapshots": unusable,
    });
    print_summary(&args.telling, summary, Some(words))?;
    Ok(CommandOutcome::Done)
}

fn warn_of_differing_checks(differing: &[DifferingCheck]) {
    let printer = OutputPrinter::new(false);
    for check in differing.iter().take(SHOWN_FINDINGS) {
        let record = log::name_record(check.record);
        let names = check.collections.join(", ");
        let warning = if check.collections.is_empty() {
            messages::log_check_unreadable(&record, &check.writer)
        } else {
            messages::log_check_differs(&record, &names, &check.writer)
        };
        printer.print_warning(escape_control(&warning));
    }
}

fn verify_disk(disk: &dyn Disk, directory: &Path, telling: &SummaryArgs) -> Result<CommandOutcome> {
    let report = store::verify_collection(disk)?;
    tell_findings(&report);
    let words = messages::collection_whole(&summarize_report(&report)) + "\n";
    let is_whole = report.findings.is_empty();
    print_summary(telling, report_as_json(&report), is_whole.then_some(words))?;
    if is_whole {
        return Ok(CommandOutcome::Done);
    }
    bail!(
        "{} is damaged: {} can be read, and {} listed above; `lookalike store repair` makes a new \
         collection from what can be read",
        directory.display(),
        describe_report(&report),
        match report.findings.len() {
            1 => "the damage is".to_owned(),
            more => format!("{more} damaged places are"),
        }
    );
}

fn run_repair(args: &StoreRepairArgs) -> Result<CommandOutcome> {
    // If settings are given, the manifest may be missing, but not the directory.
    if args.settings.is_none() || !args.directory.is_dir() {
        check_existing(&args.directory)?;
    }
    let from = open_to_read(&args.directory)?;
    // A collection has its own copy of a recipe with files, which was uploaded.
    let find_recipe = |name: &str| {
        let recipe = store::read_recipe(&from)?;
        Ok(recipe.filter(|recipe| recipe.name == name))
    };
    let settings = args.settings.as_deref();
    let settings = settings.map(|file| settings_in(file, &find_recipe));
    let settings = settings.transpose()?;
    let was_there = args.new.exists();
    let to = Arc::new(open_fresh(&args.new)?);
    let repaired =
        store::repair_collection(&from, settings.as_ref(), to, CollectionOptions::default());
    if repaired.is_err() && !args.new.join(MANIFEST_FILE).exists() {
        discard_new_collection(&args.new, was_there);
    }
    let (report, collection) = repaired?;
    tell_findings(&report);
    if !report.findings.is_empty() {
        OutputPrinter::new(false).print_warning(messages::deleted_may_have_returned());
    }
    let rows = collection.collect_stats()?.rows;
    let words = messages::rows_repaired(
        &summarize_report(&report),
        NounCount(rows, CountedNoun::Row),
        args.new.display(),
    ) + "\n";
    print_summary(&args.telling, report_as_json(&report), Some(words))?;
    Ok(CommandOutcome::from_rejected(report.findings.len() as u64))
}

/// Returns where the data of a command goes.
///
/// # Errors
/// If data and summary would both go to standard output, or the file cannot be written as asked.
fn data_output(path: Option<&Path>, telling: &SummaryArgs) -> Result<OutputTarget> {
    let output = match path {
        Some(path) if path.as_os_str() != "-" => OutputTarget::Path(path.to_owned()),
        _ => OutputTarget::Stdout,
    };
    if output == OutputTarget::Stdout && telling.json {
        bail!(
            "--json needs standard output for the summary: write the documents to a file (-o FILE) or \
             leave --json out"
        );
    }
    if let OutputTarget::Path(path) = &output {
        check_promise(path)?;
    }
    Ok(output)
}

fn run_export(args: &StoreExportArgs) -> Result<CommandOutcome> {
    let output = data_output(args.output.as_deref(), &args.telling)?;
    let collection = Collection::open_existing(
        Arc::new(open_existing(&args.directory)?),
        CollectionOptions::default(),
    )?;
    if let Some(path) = &args.settings {
        let created = collection.created_settings();
        let mut text = write_settings(&collection.collection_settings(), created.as_deref())?;
        text.push(b'\n');
        let mut file = ByteWriter::create_output(&OutputTarget::Path(path.clone()))?;
        file.write_bytes(&text)?;
        file.finish_output()?;
    }
    let mut lines = OutputLines {
        writer: ByteWriter::create_output(&output)?,
        waiting: Vec::new(),
    };
    let documents = store::export_documents(&collection, &mut lines)?;
    lines.flush()?;
    lines.writer.finish_output()?;
    let words = messages::exported(NounCount(documents, CountedNoun::Document)) + "\n";
    print_summary(
        &args.telling,
        json!({ "documents": documents }),
        Some(words),
    )?;
    Ok(CommandOutcome::Done)
}

/// Refuses a file name whose extension belongs to another format than that of an export.
fn check_promise(path: &Path) -> Result<()> {
    const OTHER_COMMANDS: [&str; 11] = [
        "csv", "tsv", "tab", "parquet", "pq", "arrow", "feather", "ipc", "arrows", "txt", "text",
    ];
    let inner = match lower_extension(path).as_str() {
        "gz" | "gzip" | "zst" | "zstd" => {
            lower_extension(Path::new(path.file_stem().unwrap_or_default()))
        }
        outer => outer.to_owned(),
    };
    if OTHER_COMMANDS.contains(&&*inner) {
        bail!(
            "{} has the extension .{inner}: an export is JSONL (.jsonl, also .gz and .zst)",
            path.display()
        );
    }
    Ok(())
}

fn lower_extension(path: &Path) -> String {
    let extension = path.extension().unwrap_or_default();
    extension.to_string_lossy().to_ascii_lowercase()
}

fn run_import(args: &StoreImportArgs) -> Result<CommandOutcome> {
    let name = escape_control(&args.input.display().to_string()).into_owned();
    let mut lines = open_lines(&args.input).map_err(with_context(format!("cannot read {name}")))?;
    let was_there = args.directory.exists();
    // An export holds documents that a service took, maybe with a higher limit.
    let options = CollectionOptions {
        verification: VerificationLimits {
            document_steps: u64::MAX,
            ..VerificationLimits::default()
        },
        ..CollectionOptions::default()
    };
    let collection = match &args.settings {
        None => Collection::open_existing(Arc::new(open_existing(&args.directory)?), options)?,
        Some(file) => {
            let settings = settings_in(file, &|_| Ok(None))?.settings;
            let disk = Arc::new(open_fresh(&args.directory)?);
            Collection::create_empty(disk, &settings, options)?
        }
    };
    let imported = import_lines(&collection, &mut lines, &name, args.strict);
    if imported.is_err() && args.settings.is_some() && collection.collect_stats()?.rows == 0 {
        drop(collection);
        discard_new_collection(&args.directory, was_there);
    }
    let imported = imported?;
    let words = format!("{}\n", describe_import(&imported));
    let summary = json!({
        "documents": imported.new + imported.again,
        "new": imported.new,
        "existing": imported.again,
        "decisions": imported.decisions,
        "rejected": imported.rejected,
    });
    print_summary(&args.telling, summary, Some(words))?;
    Ok(CommandOutcome::from_rejected(imported.rejected))
}

fn import_lines(
    collection: &Collection,
    lines: &mut dyn BufRead,
    name: &str,
    strict: bool,
) -> Result<ImportCounts> {
    let mut refused = None;
    let imported = ProgressReporter::watch_run(OutputPrinter::new(true), strict, "", |reporter| {
        store::import_documents(collection, lines, &mut |line, error| {
            let reason = error.to_string();
            if strict {
                refused = Some(format!("{name}:{line}: {reason}"));
                return Err(error.clone());
            }
            reporter.report_bad_line(name, line, &reason);
            Ok(())
        })
    });
    match (imported, refused) {
        (Err(_), Some(refused)) => bail!(refused),
        (imported, _) => imported.map_err(with_context(name)),
    }
}

fn describe_import(imported: &ImportCounts) -> String {
    let mut words = messages::imported(NounCount(imported.new, CountedNoun::Document));
    if imported.again > 0 {
        words += &messages::already_there(&format_count(imported.again));
    }
    if imported.decisions > 0 {
        words += &messages::with_decisions(&format_count(imported.decisions));
    }
    if imported.rejected > 0 {
        let rows = NounCount(imported.rejected, CountedNoun::BadRow).to_string();
        words += &messages::bad_rows_skipped(&rows);
    }
    words
}

/// Removes a collection that was created for a failed import and is still empty, and its directory if that
/// was created too. If a file cannot be removed, an empty collection remains.
fn discard_new_collection(directory: &Path, was_there: bool) {
    let _ = store::remove_creation_files(directory);
    if !was_there {
        let _ = std::fs::remove_dir(directory);
    }
}

fn settings_in(file: &Path, find_recipe: FindRecipe<'_>) -> Result<SettingsRecord> {
    let place = format!("the settings in {}", file.display());
    let bytes = std::fs::read(file).map_err(with_context(&place))?;
    read_stored_settings(&bytes, find_recipe).map_err(with_context(&place))
}

/// Opens the lines of a file, decompressed according to its extension.
fn open_lines(path: &Path) -> io::Result<Box<dyn BufRead>> {
    if path.as_os_str() == "-" {
        return Ok(Box::new(io::stdin().lock()));
    }
    let file: Box<dyn Read> = if lookalike_io::is_url(path) {
        Box::new(WholeInput::open(path).map_err(io::Error::other)?)
    } else {
        Box::new(File::open(path)?)
    };
    let file = BufReader::with_capacity(BUFFER_BYTES, file);
    Ok(match lower_extension(path).as_str() {
        "gz" | "gzip" => Box::new(BufReader::with_capacity(
            BUFFER_BYTES,
            MultiGzDecoder::new(file),
        )),
        "zst" | "zstd" => {
            let decoder = zstd::Decoder::with_buffer(file)?;
            Box::new(BufReader::with_capacity(BUFFER_BYTES, decoder))
        }
        _ => Box::new(file),
    })
}

/// A buffered writer of lines to an output.
struct OutputLines {
    writer: ByteWriter,
    waiting: Vec<u8>,
}

impl Write for OutputLines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.waiting.extend_from_slice(bytes);
        if self.waiting.len() >= BUFFER_BYTES {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let written = self.writer.write_bytes(&self.waiting);
        self.waiting.clear();
        written.map_err(io::Error::other)
    }
}

/// Opens the directory of an existing collection.
fn open_existing(path: &Path) -> Result<DiskFolder> {
    check_existing(path)?;
    open_folder(path)
}

/// Checks that a directory contains a collection.
fn check_existing(path: &Path) -> Result<()> {
    if !path.join(MANIFEST_FILE).is_file() {
        let shown = path.display();
        let below = std::fs::read_dir(path).into_iter().flatten().flatten();
        let mut names: Vec<_> = below
            .filter(|entry| entry.path().join(MANIFEST_FILE).is_file())
            .map(|entry| entry.path().display().to_string())
            .collect();
        names.sort();
        if names.is_empty() {
            bail!(
                "{shown} is not a collection: it has no file '{MANIFEST_FILE}'; if that was lost, \
                 `lookalike store repair --settings FILE` makes a new collection from the other \
                 files"
            )
        } else {
            bail!(
                "{shown} is not a collection, but contains collections: name one of {}",
                names.join(", ")
            )
        }
    }
    Ok(())
}

/// Opens a directory in which a collection can be created.
fn open_fresh(path: &Path) -> Result<DiskFolder> {
    if path.join(MANIFEST_FILE).exists() {
        bail!(
            "{} already is a collection: name a new directory",
            path.display()
        );
    }
    open_folder(path)
}

fn open_folder(path: &Path) -> Result<DiskFolder> {
    DiskFolder::open(path).map_err(with_context(format!("cannot open {}", path.display())))
}

/// Opens a directory without writing to it, also on a read-only disk.
fn open_to_read(path: &Path) -> Result<ReadFolder> {
    ReadFolder::open(path).map_err(with_context(format!("cannot open {}", path.display())))
}

fn describe_report(report: &VerifyReport) -> String {
    format!(
        "{} with {} in {}",
        format_plural(report.documents, "document", "documents"),
        format_plural(report.rows, "row", "rows"),
        format_plural(report.partitions, "partition", "partitions")
    )
}

/// Returns what a collection contains in the language of messages. Errors are English: [`describe_report`].
fn summarize_report(report: &VerifyReport) -> String {
    messages::rows_in_partitions(
        NounCount(report.documents, CountedNoun::Document),
        NounCount(report.rows, CountedNoun::Row),
        NounCount(report.partitions, CountedNoun::Partition),
    )
}

fn tell_findings(report: &VerifyReport) {
    let printer = OutputPrinter::new(false);
    if let Some(first) = report.remade.first() {
        printer.print_warning(match report.remade.len() as u64 - 1 {
            0 => messages::sketches_are_damaged(first),
            more => {
                let count = NounCount(more, CountedNoun::FurtherFile);
                messages::sketches_of_more_are_damaged(first, count)
            }
        });
    }
    for finding in report.findings.iter().take(SHOWN_FINDINGS) {
        printer.print_warning(escape_control(finding));
    }
    let more = report.findings.len().saturating_sub(SHOWN_FINDINGS);
    if more > 0 {
        let count = NounCount(more as u64, CountedNoun::Finding);
        printer.print_warning(messages::more_findings(count));
    }
}

fn report_as_json(report: &VerifyReport) -> Value {
    json!({
        "partitions": report.partitions,
        "rows": report.rows,
        "documents": report.documents,
        "findings": report.findings,
        "damaged_sketches": report.remade,
    })
}

fn print_summary(telling: &SummaryArgs, summary: Value, words: Option<String>) -> Result<()> {
    let printer = OutputPrinter::new(telling.quiet);
    running::print_summary(&printer, telling.json, &summary, || {
        words.unwrap_or_default()
    })
}
