//! Single documents of inputs, looked for by their ids.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use anyhow::Result;
use lookalike::text::{Analysis, Analyzer, Scratch};
use lookalike_batch::source::{Format, Inputs, ParseScratch, ReadOptions, Row};

/// The format of a file whose name says nothing of one; None where the name, or what is in the
/// directory, decides.
pub(super) fn unless_known(path: &Path, usual: Format) -> Option<Format> {
    let lower = path.to_string_lossy().to_lowercase();
    let plain = [".gz", ".gzip", ".zst", ".zstd"]
        .iter()
        .find_map(|extension| lower.strip_suffix(extension))
        .unwrap_or(&lower);
    let known = [
        ".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".tab", ".parquet", ".pq",
    ];
    let is_known = known.iter().any(|extension| plain.ends_with(extension)) || path.is_dir();
    (!is_known).then_some(usual)
}

/// Calls back with every row, in any order and from several threads, until one answer is `false`.
/// A bad row comes as a sentence.
pub(super) fn visit_rows(
    inputs: &Inputs,
    threads: usize,
    visit: &(dyn Fn(Result<&Row<'_>, String>) -> bool + Sync),
) -> lookalike_batch::Result<()> {
    let enough = AtomicBool::new(false);
    let work = || -> lookalike_batch::Result<()> {
        let mut scratch = ParseScratch::default();
        while !enough.load(Ordering::Relaxed) {
            let Some(block) = inputs.next_block()? else {
                break;
            };
            inputs.parse(&block, &mut scratch, &mut |row| {
                let more = match row {
                    Ok(row) => visit(Ok(&row)),
                    Err(bad) => visit(Err(format!("{}:{}: {}", bad.file, bad.line, bad.reason))),
                };
                if !more {
                    enough.store(true, Ordering::Relaxed);
                }
                Ok(())
            })?;
            inputs.recycle(block);
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let joined = |worker: std::thread::ScopedJoinHandle<'_, _>| {
            worker.join().expect("a panic ends the process")
        };
        workers
            .into_iter()
            .map(joined)
            .fold(Ok(()), lookalike_batch::Result::and)
    })
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A document of the inputs.
#[derive(Debug, Clone)]
pub(super) struct Found {
    pub(super) text: String,
    features: Option<Vec<(String, f64)>>,
    pub(super) file: String,
    pub(super) number: u64,
}

impl Found {
    pub(super) fn new(row: &Row<'_>, inputs: &Inputs) -> Self {
        let features = |features: lookalike_batch::source::Features<'_>| {
            features
                .iter()
                .map(|(feature, weight)| (feature.to_owned(), weight))
                .collect()
        };
        Self {
            text: row.text.to_owned(),
            features: row.features.map(features),
            file: inputs.file_of(row.place).name().to_owned(),
            number: row.number,
        }
    }

    pub(super) fn analyze<'s>(
        &self,
        analyzer: &Analyzer,
        scratch: &'s mut Scratch,
    ) -> Analysis<'s> {
        match &self.features {
            Some(features) => {
                let features = features
                    .iter()
                    .map(|(feature, weight)| (&feature[..], *weight));
                analyzer.analyze_features(features, scratch)
            }
            None => analyzer.analyze(&self.text, scratch),
        }
    }

    /// The text as it is shown.
    pub(super) fn shown(&self) -> String {
        match &self.features {
            Some(features) if self.text.is_empty() => {
                let features: Vec<_> = features.iter().map(|(feature, _)| &feature[..]).collect();
                features.join(" ")
            }
            _ => self.text.clone(),
        }
    }

    pub(super) fn place(&self) -> String {
        format!("{}, row {}", self.file, self.number)
    }
}

/// Looks for the documents with any of several ids; the first row of each in input order.
pub(super) fn look_up(
    paths: &[PathBuf],
    options: &ReadOptions,
    threads: usize,
    is_wanted: &[&(dyn Fn(&str) -> bool + Sync)],
) -> Result<Vec<Option<Found>>> {
    let found = Mutex::new(vec![None::<Found>; is_wanted.len()]);
    if paths.is_empty() {
        return Ok(vec![None; is_wanted.len()]);
    }
    let inputs = Inputs::open(paths, options)?;
    visit_rows(&inputs, threads, &|row| {
        let Ok(row) = row else { return true };
        let number = row.number.to_string();
        let id = row.id.unwrap_or(&number);
        for (at, is_wanted) in is_wanted.iter().enumerate() {
            if is_wanted(id) {
                let mut found = lock(&found);
                if found[at]
                    .as_ref()
                    .is_none_or(|earlier| earlier.number > row.number)
                {
                    found[at] = Some(Found::new(row, &inputs));
                }
                if found.iter().all(Option::is_some) {
                    return false;
                }
            }
        }
        true
    })?;
    Ok(found.into_inner().unwrap_or_else(PoisonError::into_inner))
}
