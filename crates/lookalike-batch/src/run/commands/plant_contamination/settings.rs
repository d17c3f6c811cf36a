//! Inputs, settings, outputs and summary of a run that plants items of benchmarks.

use std::path::PathBuf;

use lookalike_io::sink::OutputTarget;
use lookalike_io::source::ReadOptions;
use serde::Serialize;

use crate::run::reading::benchmarks::ItemFields;

/// Inputs of a run that plants items of benchmarks.
#[derive(Debug, Clone)]
pub struct PlantContaminationInputs {
    /// The corpus.
    pub documents: Vec<PathBuf>,
    /// Files and directories of benchmarks.
    pub benchmarks: Vec<PathBuf>,
    /// The fields of the benchmarks; `None` to recognise them.
    pub fields: Option<ItemFields>,
}

/// Settings of a run that plants items of benchmarks.
#[derive(Debug, Clone)]
pub struct PlantContaminationSettings {
    /// Largest number of documents in which items are planted, from 1. Each has an item of its own, so there are not more
    /// of them than indexed items.
    pub documents: usize,
    /// Seed of the halves, documents and items.
    pub seed: u64,
    /// Options of reading.
    pub read: ReadOptions,
    /// Number of threads, from 1.
    pub threads: usize,
    /// `true` to stop at the first bad row.
    pub strict: bool,
}

/// Outputs of a run that plants items of benchmarks.
#[derive(Debug, Clone)]
pub struct PlantContaminationOutputs {
    /// All documents and those with planted texts: `id, text`.
    pub corpus: OutputTarget,
    /// The planted documents: `document, host, benchmark, item, form, label, words`.
    pub labels: OutputTarget,
    /// The indexed items, as a benchmark in JSONL.
    pub indexed: OutputTarget,
    /// The rejected rows, byte for byte.
    pub rejected: Option<OutputTarget>,
}

/// The result of planting items of benchmarks.
#[derive(Debug, Clone, Serialize)]
pub struct PlantContaminationSummary {
    /// Documents read.
    pub documents: u64,
    /// Documents in which something was planted.
    pub sampled: u64,
    /// Items of all benchmarks.
    pub items: u64,
    /// Items of the half that is searched for.
    pub indexed: u64,
    /// Items of the other half.
    pub held_out: u64,
    /// Items of neither half, because an earlier item has the same question or the question has no word.
    pub unused_items: u64,
    /// Planted documents with an item.
    pub planted: u64,
    /// Planted documents with a decoy.
    pub decoys: u64,
    /// The planted documents by form, and by kind of decoy.
    pub forms: Vec<PlantedFormCount>,
    /// Rows that could not be used.
    pub rejected: u64,
    /// Bytes of input, after decompression.
    pub bytes: u64,
    /// Seconds from start to the last synced byte.
    pub seconds: f64,
    /// The string that only ids of planted documents contain: an id, the mark and a number form the id of one.
    pub mark: String,
    /// The seed.
    pub seed: u64,
}

/// The planted documents of one form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlantedFormCount {
    /// Name of the form of an item or of the kind of a decoy.
    pub form: &'static str,
    /// 1 if the documents have their items, 0 for decoys.
    pub label: u64,
    /// Documents.
    pub planted: u64,
    /// Items to which the form was not applicable, for example other choices to an item without choices.
    pub not_applicable: u64,
}
