//! Text of kept documents that stands in an earlier one: marked, or left out of the output.
//!
//! ```text
//! count runs → collect repeated runs → choose cuts → verify and describe → write
//! ```
//!
//! Each step reads the texts that it needs again. A cut is made only after its tokens were compared with the tokens of
//! the place that stays. Rows of a library that share text with documents of the run come before these.
//!
//! Guarantee: the outputs are the same bytes in any memory, at any number of threads, and whether a run was interrupted.
//!
//! Memory: [`repeated_text_plan`](crate::memory::repeated_text_plan) divides what a limit leaves. Repeated runs, cuts and
//! descriptions go to temporary files if the runs do not fit. Without a limit it takes what
//! [`lookalike::passages::RunCounter`] does, 256 MiB of texts, and some hundred bytes for each cut.
//!
//! | module | has |
//! |---|---|
//! | `searched_texts` | the documents of a search, and the rows of a library among them |
//! | `run_search` | the runs that stand in earlier documents, in memory or in temporary files |
//! | `cut_choice` | cuts, each with the places that stay |
//! | `description`, `cut_table`, `tokenized_text` | cuts for people: places in characters, and their table |
//! | `document_records` | bytes by document, in memory or in a temporary file |

mod cut_choice;
mod cut_table;
mod description;
mod document_records;
mod run_search;
mod searched_texts;
pub(crate) mod tokenized_text;

use lookalike::DocId;
use lookalike::byte_reader::ByteReader;
use lookalike::passages::PassageSettings;
use lookalike_io::error::{Error, Result};
use lookalike_io::sink::{AddedValue, LeftOutText, OutputTarget, StagedOutput};
use serde::Serialize;

use self::cut_choice::changed_file_error;
use self::cut_table::CutTable;
use self::description::{CutDescriber, DescribedCuts};
use self::document_records::DocumentRecords;
use self::run_search::{RunSearch, SearchedRun};
use crate::index::indexed_passages::IndexedPassages;
use crate::memory::repeated_text_plan::RepeatedTextShares;
use crate::run::execution::run_corpus::RunCorpus;
use crate::run::execution::work_directory::WorkDirectory;
use crate::run::progress::{ProgressListener, RunStage};
use crate::run::settings::RunSettings;

/// The use of text that stands in an earlier document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RepeatedTextAction {
    /// A field `passages` says where it is; the text stays.
    Mark,
    /// It is left out.
    Remove,
}

/// Settings of the search for repeated text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RepeatedTextSettings {
    /// Its use.
    pub action: RepeatedTextAction,
    /// Its shortest length.
    pub passages: PassageSettings,
}

/// Counts of the repeated text of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct RepeatedTextSummary {
    /// Its use.
    pub action: RepeatedTextAction,
    /// Fewest words of a passage; characters of scripts without spaces count half.
    pub min_words: u32,
    /// Kept documents with repeated text.
    pub documents: u64,
    /// Passages: parts of one document that stand in one earlier document.
    pub passages: u64,
    /// Words, and characters of scripts without spaces, in all passages.
    pub tokens: u64,
    /// Documents of which nothing stays.
    pub emptied: u64,
    /// Rows of the library that were read, because they share some words with the documents. `None` without a library.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub library_rows: Option<u64>,
    /// Bytes of repeated runs that were written to temporary files, because they did not fit into the memory.
    #[serde(skip_serializing_if = "is_zero")]
    pub spilled_bytes: u64,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_zero(bytes: &u64) -> bool {
    *bytes == 0
}

/// Checks that the repeated text of a run can be found and written.
///
/// # Errors
/// If the text has several fields, or if documents are compared within a time window.
pub(in crate::run) fn check_settings(settings: &RunSettings) -> Result<()> {
    let text = &settings.read.fields.text;
    if text.len() > 1 {
        return Err(Error::usage_error(format!(
            "passages are cut from one field, and the text has {}: `{}`; name one",
            text.len(),
            text.join("`, `")
        )));
    }
    if settings.window.is_some() {
        return Err(Error::usage_error(
            "passages are searched in all earlier documents: they cannot be combined with a time window",
        ));
    }
    Ok(())
}

/// The surroundings of a search: where its intermediate results are, and which documents come first.
#[derive(Clone, Copy)]
pub(in crate::run) struct SearchSurroundings<'a> {
    pub(in crate::run) shares: RepeatedTextShares,
    /// A library whose rows come before all documents.
    pub(in crate::run) library: Option<&'a IndexedPassages>,
    /// The directory of the run, if it can be interrupted.
    pub(in crate::run) work: Option<&'a WorkDirectory>,
}

/// The text of a run's documents that stands in earlier ones.
pub(in crate::run) struct RepeatedPassages {
    /// The value of the field `passages`, or the parts that are left out.
    found: DocumentRecords,
    pub(in crate::run) summary: RepeatedTextSummary,
}

impl RepeatedPassages {
    /// Finds the text of kept documents that stands in earlier ones, and completes the table of cuts. `kept` are the kept
    /// and known documents, ascending, without those of an index.
    ///
    /// # Errors
    /// If a text, the library or a temporary file cannot be read, or if something cannot be written.
    pub(in crate::run) fn find_in_corpus(
        corpus: &RunCorpus<'_>,
        kept: &[DocId],
        settings: &RepeatedTextSettings,
        run: &RunSettings,
        surroundings: SearchSurroundings<'_>,
        cuts: Option<&OutputTarget>,
        progress: &dyn ProgressListener,
    ) -> Result<(Self, Option<StagedOutput>)> {
        progress.begin_stage(RunStage::Passages, Some(2 * kept.len() as u64));
        let mut search = RunSearch::new(SearchedRun {
            corpus,
            kept,
            settings: settings.passages,
            run,
            library: surroundings.library,
            shares: surroundings.shares,
            progress,
        });
        let chosen = search.find_cuts(surroundings.work)?;
        let table = cuts.map(|output| CutTable::create_table(output, &search.texts));
        let mut table = table.transpose()?;
        let mut repeated = Self {
            found: search.new_records(chosen.is_in_memory())?,
            summary: RepeatedTextSummary::new(settings),
        };
        CutDescriber::new(&search, &chosen).visit_described(|described| {
            if let Some(table) = &mut table {
                table.write_cuts(&described)?;
            }
            let document = described.number - search.texts.library_rows();
            repeated.add_document(DocId(document), &described)
        })?;
        repeated.summary.library_rows = surroundings
            .library
            .map(|_| u64::from(search.texts.library_rows()));
        repeated.summary.spilled_bytes = search.spilled.total();
        let table = table.map(CutTable::prepare_table).transpose()?;
        Ok((repeated, table))
    }

    fn add_document(&mut self, document: DocId, described: &DescribedCuts) -> Result<()> {
        self.summary.count_document(described);
        let record = match self.summary.action {
            RepeatedTextAction::Mark => described.to_json().into_bytes(),
            RepeatedTextAction::Remove => encode_left_out(&described.left_out),
        };
        self.found.push_record(document.0, &record)
    }

    /// Returns the parts of a document's text that are left out; `None` if there are none.
    ///
    /// # Errors
    /// If a temporary file cannot be read or has changed.
    pub(in crate::run) fn left_out(&self, document: DocId) -> Result<Option<LeftOutText>> {
        let mut record = Vec::new();
        if !self.found.read_record(document.0, &mut record)? {
            return Ok(None);
        }
        let left_out = decode_left_out(&record);
        left_out.ok_or_else(changed_file_error).map(Some)
    }

    /// Returns the value of the field `passages`.
    ///
    /// # Errors
    /// As [`left_out`](Self::left_out).
    pub(in crate::run) fn marked_value(&self, document: DocId) -> Result<AddedValue> {
        let mut record = Vec::new();
        if !self.found.read_record(document.0, &mut record)? {
            return Ok(AddedValue::Json("[]".to_owned()));
        }
        let json = String::from_utf8(record).map_err(|_| changed_file_error())?;
        Ok(AddedValue::Json(json))
    }
}

impl RepeatedTextSummary {
    fn new(settings: &RepeatedTextSettings) -> Self {
        Self {
            action: settings.action,
            min_words: settings.passages.min_words(),
            documents: 0,
            passages: 0,
            tokens: 0,
            emptied: 0,
            library_rows: None,
            spilled_bytes: 0,
        }
    }

    fn count_document(&mut self, described: &DescribedCuts) {
        self.documents += 1;
        self.passages += described.pieces.len() as u64;
        let lengths = described.pieces.iter().map(|piece| piece.length);
        self.tokens += lengths.sum::<u64>();
        self.emptied += u64::from(described.is_emptied);
    }
}

/// Returns the parts that are left out as bytes: the length of the text, and the start and the end of each part, 8 bytes
/// each.
fn encode_left_out(left_out: &LeftOutText) -> Vec<u8> {
    let ranges = left_out.ranges.iter();
    let places = ranges.flat_map(|range| [range.start, range.end]);
    let numbers = std::iter::once(left_out.length).chain(places);
    numbers
        .flat_map(|number| (number as u64).to_le_bytes())
        .collect()
}

fn decode_left_out(record: &[u8]) -> Option<LeftOutText> {
    let mut reader = ByteReader::new(record);
    let mut read_number = || usize::try_from(reader.read_u64()?).ok();
    let length = read_number()?;
    let mut ranges = Vec::new();
    for _ in 0..record.len() / 16 {
        let range = read_number()?..read_number()?;
        ranges.push(range);
    }
    reader.is_at_end().then_some(LeftOutText { ranges, length })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn left_out_parts_are_read_as_they_were_written() {
        for ranges in [vec![], vec![0..3, 3..4], vec![2..9, 11..1 << 40]] {
            let left_out = LeftOutText { ranges, length: 77 };
            let record = encode_left_out(&left_out);
            let read = decode_left_out(&record).unwrap();
            assert_eq!((read.ranges, read.length), (left_out.ranges, 77));
            assert!(decode_left_out(&record[1..]).is_none());
        }
    }
}
