//! Inputs, settings, outputs and summary of a run that takes benchmarks out of a corpus.

use std::path::PathBuf;

use lookalike_io::sink::OutputTarget;
use lookalike_io::source::{ReadOptions, RowSource};
use lookalike_options::match_options::OptionSpelling;
use serde::Serialize;

use crate::memory::MemoryLimit;
use crate::run::execution::work_directory::{NamedOutput, WorkSettings};
use crate::run::reading::benchmarks::{ItemFields, RejectedItem};
use crate::run::report::ReportOutput;

/// The part of a document with findings that is taken out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ContaminationCut {
    /// The whole document.
    #[default]
    Document,
    /// The question, with its answer and its choices if they stand nearby.
    Passage,
    /// The same with the rest of the sentences in which they stand.
    Sentence,
}

impl ContaminationCut {
    /// All of them, in the order of messages.
    pub const ALL: [Self; 3] = [Self::Document, Self::Passage, Self::Sentence];

    /// Returns the name, as users write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Document => "document",
            Self::Passage => "passage",
            Self::Sentence => "sentence",
        }
    }
}

/// Inputs of a run that takes benchmarks out of a corpus.
#[derive(Debug, Clone)]
pub struct DecontaminateInputs {
    /// The corpus.
    pub documents: RowSource,
    /// Files and directories of benchmarks.
    pub benchmarks: Vec<PathBuf>,
    /// The fields of the benchmarks; `None` to recognise them.
    pub fields: Option<ItemFields>,
}

/// Settings of a run that takes benchmarks out of a corpus.
#[derive(Debug, Clone)]
pub struct DecontaminateSettings {
    /// Options of reading.
    pub read: ReadOptions,
    /// Number of threads, from 1.
    pub threads: usize,
    /// `true` to stop at the first bad row.
    pub strict: bool,
    /// The part of a document with findings that is taken out.
    pub cut: ContaminationCut,
    /// Limit on the memory of the process; `None` for none.
    pub memory: Option<MemoryLimit>,
    /// Directory in which intermediate results are kept, so that a killed run can be continued; `None` for none.
    pub work: Option<WorkSettings>,
    /// The spelling of options in messages.
    pub spelling: OptionSpelling,
}

/// Outputs of a run that takes benchmarks out of a corpus; all are optional.
#[derive(Debug, Clone, Default)]
pub struct DecontaminateOutputs {
    /// The rows of the corpus without contamination. In memory, they are a table of their numbers; see
    /// [`prepare_kept`](lookalike_io::sink::prepare_kept).
    pub kept: Option<OutputTarget>,
    /// A table of findings: `id, benchmark, item, found, score, start, end, item_start, item_end, source, row`. Documents
    /// are in input order, and the findings of one with the largest score first. Positions count characters from 0.
    pub findings: Option<OutputTarget>,
    /// A table of the items that were found: `benchmark, item, found, score, documents`.
    pub items: Option<OutputTarget>,
    /// The rejected rows, byte for byte.
    pub rejected: Option<OutputTarget>,
    /// A report of the run as an HTML file.
    pub report: Option<ReportOutput>,
    /// `true` if a corpus without any row may replace outputs that exist. It is refused otherwise.
    pub allows_empty: bool,
}

impl DecontaminateOutputs {
    /// Returns the outputs that are wanted.
    pub(super) fn targets(&self) -> impl Iterator<Item = &OutputTarget> {
        let targets = [&self.kept, &self.findings, &self.items, &self.rejected];
        let report = self.report.as_ref().map(|report| &report.target);
        targets.into_iter().flatten().chain(report)
    }

    /// Returns the outputs that are wanted, each with the name of its content.
    pub(super) fn named_outputs(&self, cut: ContaminationCut) -> Vec<NamedOutput<'_>> {
        let report = self.report.as_ref().map(|report| &report.target);
        let targets = [
            (format!("kept, cut {cut:?}"), self.kept.as_ref()),
            ("findings".to_owned(), self.findings.as_ref()),
            ("items".to_owned(), self.items.as_ref()),
            ("rejected".to_owned(), self.rejected.as_ref()),
            (format!("report, cut {cut:?}"), report),
        ];
        let named = targets.into_iter().filter_map(|(name, target)| {
            let target = target?;
            Some(NamedOutput { name, target })
        });
        named.collect()
    }
}

/// The result of a run that takes benchmarks out of a corpus.
#[derive(Debug, Clone, Serialize)]
pub struct DecontaminateSummary {
    /// Documents read.
    pub documents: u64,
    /// Documents that stay, whole or in part.
    pub kept: u64,
    /// Documents of which nothing stays.
    pub removed: u64,
    /// Documents of which a part is left out.
    pub cut: u64,
    /// Findings: an item in a document counts once.
    pub findings: u64,
    /// Items of all benchmarks.
    pub items: u64,
    /// Items that stand in some document.
    pub items_found: u64,
    /// Items whose question has fewer than three words, or four characters of a script without spaces. They cannot be found.
    pub short_items: u64,
    /// Findings of questions in so many documents that they are boilerplate. They are none without an answer or choices.
    pub boilerplate: u64,
    /// The questions that are boilerplate, most frequent first; at most ten.
    pub boilerplate_questions: Vec<BoilerplateQuestion>,
    /// Each benchmark.
    pub benchmarks: Vec<BenchmarkContamination>,
    /// Rows of the corpus that could not be used.
    pub rejected: u64,
    /// Bytes of the corpus, after decompression.
    pub bytes: u64,
    /// Bytes of memory of the items.
    pub index_bytes: u64,
    /// Seconds from start to the last synced byte.
    pub seconds: f64,
}

/// A question that stands in very many documents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BoilerplateQuestion {
    /// Name of the first benchmark that has it.
    pub benchmark: String,
    /// Id of the first item that has it.
    pub item: String,
    /// The question; its first 200 characters.
    pub question: String,
    /// Documents in which it stands alone.
    pub documents: u64,
}

/// The contamination of one benchmark.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BenchmarkContamination {
    /// Its name, with the split if the files tell it.
    pub name: String,
    /// How its fields were recognised.
    pub presets: Vec<&'static str>,
    /// Items.
    pub items: u64,
    /// Rows without an item.
    pub rejected: u64,
    /// The first of these rows.
    pub rejected_rows: Vec<RejectedItem>,
    /// Items that stand in some document.
    pub found: u64,
    /// Items of these whose question and answer stand in one document.
    pub found_both: u64,
    /// Documents with an item of it.
    pub documents: u64,
}
