//! The outputs: tables of findings and of items, and the rows that stay.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use lookalike::contamination::{FoundParts, ItemPart, ItemTokenizer};
use lookalike::passages::PlaceIndex;
use lookalike_io::error::Result;
use lookalike_io::sink::{
    LeftOutText, OutputTarget, RowChange, StagedOutput, TableCell, TableColumn, TableWriter,
    WriteOptions, prepare_kept,
};
use lookalike_io::source::InputSet;

use super::findings::{ContaminatedDocument, ItemFinding};
use super::search::CorpusPlaces;
use super::settings::ContaminationCut;
use crate::run::progress::{ProgressListener, RunStage};
use crate::run::reading::benchmarks::BenchmarkSet;

/// Writes the table of findings.
///
/// # Errors
/// If it cannot be written.
pub(super) fn write_findings(
    documents: &[ContaminatedDocument],
    rows: &CorpusPlaces,
    benchmarks: &BenchmarkSet,
    inputs: &InputSet,
    output: &OutputTarget,
) -> Result<StagedOutput> {
    let columns = [
        TableColumn::Text("id"),
        TableColumn::Text("benchmark"),
        TableColumn::Text("item"),
        TableColumn::Text("found"),
        TableColumn::Number("score"),
        TableColumn::Integer("start"),
        TableColumn::Integer("end"),
        TableColumn::Integer("item_start"),
        TableColumn::Integer("item_end"),
        TableColumn::Text("source"),
        TableColumn::Integer("row"),
    ];
    let mut table = TableWriter::create_table(output, &columns, Some(inputs))?;
    let mut places = ItemPlaces::default();
    for document in documents {
        let (place, number) = rows.locate_row(document.index);
        let (source, row) = inputs.source_row(place, number);
        for finding in &document.findings {
            let item = &benchmarks.items[finding.item as usize];
            let within = places.characters(finding, benchmarks)?;
            table.push_row(&[
                TableCell::Text(&document.id),
                TableCell::Text(&benchmarks.benchmarks[item.benchmark as usize].name),
                TableCell::Text(&item.id),
                TableCell::Text(finding.found.name()),
                TableCell::Number(finding.score),
                TableCell::Integer(finding.characters.start),
                TableCell::Integer(finding.characters.end),
                TableCell::Integer(within.start),
                TableCell::Integer(within.end),
                TableCell::Text(source),
                TableCell::Integer(row),
            ])?;
        }
    }
    table.prepare_table()
}

/// The places of findings in the texts of their items.
#[derive(Default)]
pub(crate) struct ItemPlaces {
    tokenizer: ItemTokenizer,
}

impl ItemPlaces {
    /// Returns the characters of the question, or of the answer, from the first to the last token that was found.
    ///
    /// # Errors
    /// If the text has 4 GiB or more.
    pub(crate) fn characters(
        &mut self,
        finding: &ItemFinding,
        benchmarks: &BenchmarkSet,
    ) -> Result<Range<u64>> {
        let item = &benchmarks.items[finding.item as usize];
        let text = match finding.part {
            ItemPart::Question => &item.question,
            ItemPart::Answer => &item.answer,
        };
        let tokens = self.tokenizer.tokenize_text(text)?;
        let range = finding.part_tokens.start as usize..finding.part_tokens.end as usize;
        let bytes = tokens.byte_range(range);
        let places = PlaceIndex::new(text);
        let count = |byte| places.count_characters(text, byte) as u64;
        Ok(count(bytes.start)..count(bytes.end))
    }
}

/// An item that was found: its best finding, and the number of its documents.
struct FoundItem {
    found: FoundParts,
    score: f64,
    documents: u64,
}

/// The items that were found, by number.
pub(super) struct FoundItems(BTreeMap<u32, FoundItem>);

impl FoundItems {
    pub(super) fn of_documents(documents: &[ContaminatedDocument]) -> Self {
        let mut items: BTreeMap<u32, FoundItem> = BTreeMap::new();
        for finding in documents.iter().flat_map(|document| &document.findings) {
            let item = items.entry(finding.item).or_insert(FoundItem {
                found: finding.found,
                score: finding.score,
                documents: 0,
            });
            item.found = item.found.max(finding.found);
            item.score = item.score.max(finding.score);
            item.documents += 1;
        }
        Self(items)
    }

    pub(super) fn len(&self) -> u64 {
        self.0.len() as u64
    }

    /// Returns the numbers of the items, ascending.
    pub(super) fn item_numbers(&self) -> impl Iterator<Item = u32> {
        self.0.keys().copied()
    }

    /// Returns the number of documents in which an item was found.
    pub(super) fn document_count(&self, item: u32) -> u64 {
        self.0.get(&item).map_or(0, |found| found.documents)
    }

    /// Returns for each benchmark with findings its items that were found, and those of these with their answers.
    pub(super) fn count_by_benchmark(&self, benchmarks: &BenchmarkSet) -> HashMap<u32, [u64; 2]> {
        let mut counts: HashMap<u32, [u64; 2]> = HashMap::new();
        for (&item, found) in &self.0 {
            let benchmark = benchmarks.items[item as usize].benchmark;
            let counts = counts.entry(benchmark).or_default();
            counts[0] += 1;
            counts[1] += u64::from(found.found == FoundParts::Both);
        }
        counts
    }

    /// Writes the table of items.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(super) fn write_table(
        &self,
        benchmarks: &BenchmarkSet,
        inputs: &InputSet,
        output: &OutputTarget,
    ) -> Result<StagedOutput> {
        let columns = [
            TableColumn::Text("benchmark"),
            TableColumn::Text("item"),
            TableColumn::Text("found"),
            TableColumn::Number("score"),
            TableColumn::Integer("documents"),
        ];
        let mut table = TableWriter::create_table(output, &columns, Some(inputs))?;
        for (&number, found) in &self.0 {
            let item = &benchmarks.items[number as usize];
            table.push_row(&[
                TableCell::Text(&benchmarks.benchmarks[item.benchmark as usize].name),
                TableCell::Text(&item.id),
                TableCell::Text(found.found.name()),
                TableCell::Number(found.score),
                TableCell::Integer(found.documents),
            ])?;
        }
        table.prepare_table()
    }
}

/// The parts that are left out of documents, and the documents of which nothing stays.
pub(super) struct CorpusCuts {
    /// By the number of the document.
    cuts: HashMap<u64, LeftOutText>,
    /// Ascending.
    pub(super) removed: Vec<u64>,
}

impl CorpusCuts {
    pub(super) fn new(documents: &[ContaminatedDocument], cut: ContaminationCut) -> Self {
        let mut cuts = HashMap::new();
        let mut removed = Vec::new();
        for document in documents {
            if let Some(left_out) = left_out_text(document, cut) {
                cuts.insert(document.index, left_out);
            } else {
                removed.push(document.index);
            }
        }
        Self { cuts, removed }
    }

    pub(super) fn cut_count(&self) -> u64 {
        self.cuts.len() as u64
    }

    /// Writes the rows that stay.
    ///
    /// # Errors
    /// If an input or the output fails.
    pub(super) fn write_rows(
        &self,
        rows: &CorpusPlaces,
        inputs: &InputSet,
        output: &OutputTarget,
        threads: usize,
        progress: &dyn ProgressListener,
    ) -> Result<StagedOutput> {
        progress.begin_stage(RunStage::Write, Some(rows.len() as u64));
        let cut = |index: usize| Ok(self.cuts.get(&(index as u64)).cloned());
        let options = WriteOptions {
            change: if self.cuts.is_empty() {
                RowChange::Unchanged
            } else {
                RowChange::CutText(&cut)
            },
            threads,
        };
        let remaining = rows.without(&self.removed);
        let advance = |done| progress.advance_stage(done);
        StagedOutput::even_if_unread(prepare_kept(inputs, &remaining, output, &options, &advance))
    }
}

/// Returns the parts that are cut from a document with findings; `None` if nothing of it stays, because the whole document
/// is left out or its parts cover it.
pub(crate) fn left_out_text(
    document: &ContaminatedDocument,
    cut: ContaminationCut,
) -> Option<LeftOutText> {
    let ranges = match cut {
        ContaminationCut::Document => return None,
        ContaminationCut::Passage => cut_ranges(document, |finding| &finding.passage),
        ContaminationCut::Sentence => cut_ranges(document, |finding| &finding.sentences),
    };
    let length = document.text_bytes as usize;
    let left: usize = ranges.iter().map(Range::len).sum();
    (left < length).then_some(LeftOutText { ranges, length })
}

/// Returns the ranges of bytes of a document's findings, ascending and joined where they overlap.
fn cut_ranges(
    document: &ContaminatedDocument,
    range: impl Fn(&ItemFinding) -> &Range<u64>,
) -> Vec<Range<usize>> {
    let mut ranges: Vec<Range<usize>> = document
        .findings
        .iter()
        .map(|finding| range(finding).start as usize..range(finding).end as usize)
        .collect();
    ranges.sort_unstable_by_key(|range| range.start);
    ranges.dedup_by(|next, before| {
        let joins = next.start <= before.end;
        if joins {
            before.end = before.end.max(next.end);
        }
        joins
    });
    ranges
}
