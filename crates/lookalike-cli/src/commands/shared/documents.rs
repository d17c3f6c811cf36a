//! Look-up of single documents of the inputs by id or by place.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use anyhow::{Result, bail};
use lookalike::text::{AnalysisScratch, TextAnalysis, TextAnalyzer};
use lookalike_io::source::{InputFormat, InputRow, InputSet, ParseScratch, ReadOptions};

use crate::language::messages;
use crate::output::escape_control;

/// Returns the format `usual` for a file whose name does not tell its format. Returns `None` if the name, or
/// the content of a directory, decides.
pub(crate) fn unless_known(path: &Path, usual: InputFormat) -> Option<InputFormat> {
    let lower = path.to_string_lossy().to_lowercase();
    let plain = [".gz", ".gzip", ".zst", ".zstd"]
        .iter()
        .find_map(|extension| lower.strip_suffix(extension))
        .unwrap_or(&lower);
    let known = [
        ".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".tab", ".parquet", ".pq", ".arrow",
        ".feather", ".ipc", ".arrows",
    ];
    let is_known = known.iter().any(|extension| plain.ends_with(extension)) || path.is_dir();
    (!is_known).then_some(usual)
}

/// Calls `visit` for every row, in any order and from several threads, until it returns `false`. A bad row is
/// passed as a message.
pub(crate) fn visit_rows(
    inputs: &InputSet,
    threads: usize,
    visit: &(dyn Fn(Result<&InputRow<'_>, String>) -> bool + Sync),
) -> lookalike_io::Result<()> {
    let enough = AtomicBool::new(false);
    let work = || -> lookalike_io::Result<()> {
        let mut scratch = ParseScratch::default();
        while !enough.load(Ordering::Relaxed) {
            let Some(block) = inputs.next_block()? else {
                break;
            };
            inputs.parse_block(&block, &mut scratch, &mut |row| {
                let more = match row {
                    Ok(row) => visit(Ok(&row)),
                    Err(bad) => visit(Err(format!("{}:{}: {}", bad.file, bad.line, bad.reason))),
                };
                if !more {
                    enough.store(true, Ordering::Relaxed);
                }
                Ok(())
            })?;
            inputs.recycle_block(block);
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        let own = work();
        let joined = |worker: std::thread::ScopedJoinHandle<'_, _>| {
            worker.join().expect("a panic ends the process")
        };
        workers
            .into_iter()
            .map(joined)
            .fold(own, lookalike_io::Result::and)
    })
}

pub(crate) fn lock_ignoring_poison<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A document of the inputs.
#[derive(Debug, Clone)]
pub(crate) struct FoundDocument {
    pub(crate) text: String,
    features: Option<Vec<(String, f64)>>,
    pub(crate) file: String,
    /// Number of the row in its file, from 1.
    pub(crate) row: u64,
    /// Number of the row over all inputs, from 1.
    pub(crate) number: u64,
}

/// The address of a document as a user types it: an id, or `source:row`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DocumentAddress<'a> {
    pub(crate) text: &'a str,
    /// Source and row, if the text can be read as such.
    place: Option<(&'a str, u64)>,
}

impl<'a> DocumentAddress<'a> {
    pub(crate) fn parse_address(text: &'a str) -> Self {
        Self {
            text,
            place: parse_place(text),
        }
    }

    pub(crate) fn is_place(&self, source: &str, row: u64) -> bool {
        self.place == Some((source, row))
    }
}

/// Parses `source:row`.
pub(crate) fn parse_place(text: &str) -> Option<(&str, u64)> {
    let (source, row) = text.rsplit_once(':')?;
    let row = row.parse().ok().filter(|&row| row > 0)?;
    (!source.is_empty()).then_some((source, row))
}

impl FoundDocument {
    pub(crate) fn new(row: &InputRow<'_>, inputs: &InputSet) -> Self {
        let features = |features: lookalike_io::source::RowFeatures<'_>| {
            features
                .iter_weighted()
                .map(|(feature, weight)| (feature.to_owned(), weight))
                .collect()
        };
        let (file, row_there) = inputs.source_row(row.place, row.number);
        Self {
            text: row.text.to_owned(),
            features: row.features.map(features),
            file: file.to_owned(),
            row: row_there,
            number: row.number,
        }
    }

    /// Creates a document that is in no input, with its place.
    pub(crate) fn from_text(text: String, file: String, row: u64) -> Self {
        Self {
            text,
            features: None,
            file,
            row,
            number: 0,
        }
    }

    pub(crate) fn analyze_document<'s>(
        &self,
        analyzer: &'s TextAnalyzer,
        scratch: &'s mut AnalysisScratch,
    ) -> TextAnalysis<'s> {
        match &self.features {
            Some(features) => {
                let features = features
                    .iter()
                    .map(|(feature, weight)| (&feature[..], *weight));
                analyzer.analyze_features(features, scratch)
            }
            None => analyzer.analyze_text(&self.text, scratch),
        }
    }

    /// Returns the text as it is shown.
    pub(crate) fn display_text(&self) -> String {
        match &self.features {
            Some(features) if self.text.is_empty() => {
                let features: Vec<_> = features.iter().map(|(feature, _)| &feature[..]).collect();
                features.join(" ")
            }
            _ => self.text.clone(),
        }
    }

    pub(crate) fn display_place(&self) -> String {
        messages::row_of(&self.file, &self.row.to_string())
    }
}

/// Documents that fit one description: the first few in input order, and their number.
#[derive(Debug, Clone, Default)]
pub(crate) struct DescribedDocuments {
    first: Vec<FoundDocument>,
    count: u64,
}

/// Number of documents named when an ambiguous id is refused.
const NAMED_PLACES: usize = 3;

impl DescribedDocuments {
    fn accept_document(&mut self, found: FoundDocument) {
        self.count += 1;
        let at = self
            .first
            .partition_point(|block| block.number < found.number);
        self.first.insert(at, found);
        self.first.truncate(NAMED_PLACES);
    }

    /// Returns the first document in input order.
    pub(crate) fn into_first(self) -> Option<FoundDocument> {
        self.first.into_iter().next()
    }

    /// Returns the only document, if there is one; refuses several.
    pub(crate) fn into_only_document(self, id: &str) -> Result<Option<FoundDocument>> {
        if self.count > 1 {
            let places = self
                .first
                .iter()
                .map(|document| format!("{}:{}", document.file, document.row));
            let places: Vec<_> = places.collect();
            bail!("{}", ambiguous_id_message(id, self.count, &places));
        }
        Ok(self.into_first())
    }
}

/// Returns the message for an id that several documents have.
pub(crate) fn ambiguous_id_message(id: &str, count: u64, places: &[String]) -> String {
    let more = if count as usize > places.len() {
        ", …"
    } else {
        ""
    };
    let named = places.join(", ");
    let first = places.first().map_or("SOURCE:ROW", |place| place);
    escape_control(&format!(
        "{count} documents have the id '{id}' ({named}{more}): name one by its source and row, as \
         in {first}"
    ))
    .into_owned()
}

/// A predicate on the id, the source and the row of a document.
pub(crate) type DocumentDescription<'a> = &'a (dyn Fn(&str, &str, u64) -> bool + Sync);

/// Finds the documents that fit each of several descriptions.
pub(crate) fn look_up_documents(
    paths: &[PathBuf],
    options: &ReadOptions,
    threads: usize,
    wanted: &[DocumentDescription<'_>],
) -> Result<Vec<DescribedDocuments>> {
    let found = Mutex::new(vec![DescribedDocuments::default(); wanted.len()]);
    if paths.is_empty() {
        return Ok(found.into_inner().unwrap_or_else(PoisonError::into_inner));
    }
    let inputs = InputSet::open_paths(paths, options)?;
    visit_rows(&inputs, threads, &|row| {
        let Ok(row) = row else { return true };
        let number = row.number.to_string();
        let id = row.id.unwrap_or(&number);
        let (source, row_there) = inputs.source_row(row.place, row.number);
        for (at, fits) in wanted.iter().enumerate() {
            if fits(id, source, row_there) {
                lock_ignoring_poison(&found)[at].accept_document(FoundDocument::new(row, &inputs));
            }
        }
        true
    })?;
    let found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    if found.iter().any(|matches| matches.count == 0) {
        inputs.refuse_absent_fields()?;
    }
    Ok(found)
}
