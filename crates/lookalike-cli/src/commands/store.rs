//! `lookalike store`.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Result, bail};
use flate2::bufread::MultiGzDecoder;
use lookalike_batch::sink::{ByteWriter, Output};
use lookalike_store::{self as store, Collection, Folder, Options, Report, Settings};
use serde_json::{Value, json};

use crate::Outcome;
use crate::args::{
    StoreArgs, StoreCommand, StoreExportArgs, StoreImportArgs, StoreRepairArgs, StoreRestoreArgs,
    StoreTelling, StoreVerifyArgs,
};
use crate::output::{Printer, about, plural, visible};
use crate::serve::{read_settings, write_settings};
use crate::snapshots::with_snapshot;

/// So many findings are told; the rest are counted.
const TOLD: usize = 20;

/// The file without which a directory is no collection.
const MANIFEST: &str = "manifest";

/// Bytes that are written at a time.
const BUFFER: usize = 1 << 20;

pub(crate) fn run(args: &StoreArgs) -> Result<Outcome> {
    match &args.command {
        StoreCommand::Verify(args) => verify(args),
        StoreCommand::Repair(args) => repair(args),
        StoreCommand::Restore(args) => restore(args),
        StoreCommand::Export(args) => export(args),
        StoreCommand::Import(args) => import(args),
    }
}

fn verify(args: &StoreVerifyArgs) -> Result<Outcome> {
    let disk = existing(&args.directory)?;
    verify_disk(&disk, &args.directory, &args.telling)
}

fn restore(args: &StoreRestoreArgs) -> Result<Outcome> {
    let disk = with_snapshot(&args.snapshot, |snapshot| {
        let cannot = || about(format!("cannot restore {}", args.snapshot));
        // No directory is made for what is no snapshot.
        store::read_settings(snapshot).map_err(cannot())?;
        let disk = fresh(&args.directory)?;
        store::restore(snapshot, &disk).map_err(cannot())?;
        Ok(disk)
    })?;
    verify_disk(&disk, &args.directory, &args.telling)
}

fn verify_disk(disk: &Folder, directory: &Path, telling: &StoreTelling) -> Result<Outcome> {
    let report = store::verify(disk)?;
    tell_findings(&report);
    let words = format!("{}: whole\n", counted(&report));
    let is_whole = report.findings.is_empty();
    tell(telling, report_as_json(&report), is_whole.then_some(words))?;
    if is_whole {
        return Ok(Outcome::Done);
    }
    bail!(
        "{} is damaged: {} can be read, and {} told above; `lookalike store repair` makes a new \
         collection of what can be read",
        directory.display(),
        counted(&report),
        match report.findings.len() {
            1 => "what is wrong is".to_owned(),
            more => format!("{more} things that are wrong are"),
        }
    );
}

fn repair(args: &StoreRepairArgs) -> Result<Outcome> {
    let from = existing(&args.directory)?;
    let to = Arc::new(fresh(&args.new)?);
    let (report, collection) = store::repair(&from, to, Options::default())?;
    tell_findings(&report);
    let rows = collection.stats()?.rows;
    let words = format!(
        "{} have been read; {} made in {}\n",
        counted(&report),
        plural(rows, "row was", "rows were"),
        args.new.display()
    );
    tell(&args.telling, report_as_json(&report), Some(words))?;
    Ok(Outcome::of(report.findings.len() as u64))
}

fn export(args: &StoreExportArgs) -> Result<Outcome> {
    let output = match &args.output {
        Some(path) if path.as_os_str() != "-" => Output::Path(path.clone()),
        _ => Output::Stdout,
    };
    if output == Output::Stdout && args.telling.json {
        bail!(
            "--json needs standard output for the summary: write the documents to a file (-o FILE) or \
             leave --json out"
        );
    }
    let collection = Collection::open(Arc::new(existing(&args.directory)?), Options::default())?;
    if let Some(path) = &args.settings {
        let mut text = write_settings(collection.settings())?;
        text.push(b'\n');
        let mut file = ByteWriter::create(&Output::Path(path.clone()))?;
        file.put(&text)?;
        file.finish()?;
    }
    let mut lines = Lines {
        writer: ByteWriter::create(&output)?,
        waiting: Vec::new(),
    };
    let documents = store::export(&collection, &mut lines)?;
    lines.flush()?;
    lines.writer.finish()?;
    let words = format!("{} exported\n", plural(documents, "document", "documents"));
    tell(
        &args.telling,
        json!({ "documents": documents }),
        Some(words),
    )?;
    Ok(Outcome::Done)
}

fn import(args: &StoreImportArgs) -> Result<Outcome> {
    let mut lines =
        open_lines(&args.input).map_err(about(format!("cannot read {}", args.input.display())))?;
    let collection = match &args.settings {
        None => Collection::open(Arc::new(existing(&args.directory)?), Options::default())?,
        Some(file) => {
            let settings = settings_in(file)?;
            let disk = Arc::new(fresh(&args.directory)?);
            Collection::create(disk, &settings, Options::default())?
        }
    };
    let documents = store::import(&collection, &mut lines)?;
    let words = format!("{} imported\n", plural(documents, "document", "documents"));
    tell(
        &args.telling,
        json!({ "documents": documents }),
        Some(words),
    )?;
    Ok(Outcome::Done)
}

fn settings_in(file: &Path) -> Result<Settings> {
    let place = format!("the settings in {}", file.display());
    let bytes = std::fs::read(file).map_err(about(&place))?;
    read_settings(&bytes).map_err(about(&place))
}

/// The lines of a file, expanded as its extension says.
fn open_lines(path: &Path) -> io::Result<Box<dyn BufRead>> {
    if path.as_os_str() == "-" {
        return Ok(Box::new(io::stdin().lock()));
    }
    let file = BufReader::with_capacity(BUFFER, File::open(path)?);
    let extension = path.extension().unwrap_or_default().to_ascii_lowercase();
    Ok(match extension.to_str() {
        Some("gz" | "gzip") => {
            Box::new(BufReader::with_capacity(BUFFER, MultiGzDecoder::new(file)))
        }
        Some("zst" | "zstd") => {
            let decoder = zstd::Decoder::with_buffer(file)?;
            Box::new(BufReader::with_capacity(BUFFER, decoder))
        }
        _ => Box::new(file),
    })
}

/// Lines on their way to an output.
struct Lines {
    writer: ByteWriter,
    waiting: Vec<u8>,
}

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.waiting.extend_from_slice(bytes);
        if self.waiting.len() >= BUFFER {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let written = self.writer.put(&self.waiting);
        self.waiting.clear();
        written.map_err(io::Error::other)
    }
}

/// The directory of a collection that is there.
fn existing(path: &Path) -> Result<Folder> {
    if !path.join(MANIFEST).is_file() {
        let shown = path.display();
        let below = std::fs::read_dir(path).into_iter().flatten().flatten();
        let mut names: Vec<_> = below
            .filter(|entry| entry.path().join(MANIFEST).is_file())
            .map(|entry| entry.path().display().to_string())
            .collect();
        names.sort();
        match names.is_empty() {
            true => bail!("{shown} is no collection: there is no file '{MANIFEST}' in it"),
            false => bail!(
                "{shown} is no collection, but has some: name one of {}",
                names.join(", ")
            ),
        }
    }
    open(path)
}

/// A directory in which a collection can be made.
fn fresh(path: &Path) -> Result<Folder> {
    if path.join(MANIFEST).exists() {
        bail!("{} is a collection already", path.display());
    }
    open(path)
}

fn open(path: &Path) -> Result<Folder> {
    Folder::open(path).map_err(about(format!("cannot open {}", path.display())))
}

fn counted(report: &Report) -> String {
    format!(
        "{} with {} in {}",
        plural(report.documents, "document", "documents"),
        plural(report.rows, "row", "rows"),
        plural(report.partitions, "partition", "partitions")
    )
}

fn tell_findings(report: &Report) {
    let printer = Printer::new(false);
    for finding in report.findings.iter().take(TOLD) {
        printer.warn(visible(finding));
    }
    let more = report.findings.len().saturating_sub(TOLD);
    if more > 0 {
        printer.warn(format!("{more} more; --json lists them all"));
    }
}

fn report_as_json(report: &Report) -> Value {
    json!({
        "partitions": report.partitions,
        "rows": report.rows,
        "documents": report.documents,
        "findings": report.findings,
    })
}

fn tell(telling: &StoreTelling, summary: Value, words: Option<String>) -> Result<()> {
    let printer = Printer::new(telling.quiet);
    if telling.json {
        printer.data(&format!("{summary}\n"))?;
    } else if let Some(words) = words {
        printer.note(&words);
    }
    Ok(())
}
