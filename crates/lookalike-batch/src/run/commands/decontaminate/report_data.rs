//! The data of the report of a run: benchmarks, scores, findings with their texts, and the items that were found.
//!
//! Counts are of the whole run. Findings with texts have a budget in bytes, which the benchmarks share: the worst finding
//! of each benchmark comes first, then the second worst of each, until the budget is spent. The *worst* findings are those
//! of question and answer, then those with the largest score; a further finding of an item comes behind the first ones of
//! all other items. So the same run shows the same findings, at any number of threads.
//!
//! Texts of documents are read again, only those of shown findings.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::ops::Range;

use lookalike::contamination::{FoundParts, ItemMarker, ItemTexts};
use lookalike_io::error::{Error, Result};
use lookalike_io::sink::StagedOutput;
use lookalike_io::source::{InputSet, ParseScratch};
use lookalike_options::shown_text::shorten_text;
use serde::Serialize;
use serde_json::Value;

use super::describe_boilerplate;
use super::findings::{ContaminatedDocument, CorpusFindings, ItemFinding};
use super::search::CorpusPlaces;
use super::settings::{BoilerplateQuestion, DecontaminateSummary};
use super::writing::FoundItems;
use crate::run::reading::benchmarks::{BenchmarkItem, BenchmarkSet};
use crate::run::report::budgets::{count_json_bytes, shorten_name};
use crate::run::report::{ReportOutput, hundredth_of, stage_report_file, summary_to_json};

/// Findings of a benchmark that are shown at most.
const SHOWN_FINDINGS_PER_BENCHMARK: usize = 200;

/// Bytes of shown findings with their texts, as JSON.
const FINDING_BYTES: usize = 12_000_000;

/// Bytes of a finding apart from its texts, names and marks.
const FINDING_FIXED_BYTES: usize = 300;

/// Bytes of a mark, at most.
const MARK_BYTES: usize = 14;

/// Bytes of the ids of items that were found.
const ITEM_ID_BYTES: usize = 3_000_000;

/// Benchmarks that are listed, and questions that are boilerplate.
const LISTED_BENCHMARKS: usize = 2000;
const LISTED_BOILERPLATE: usize = 200;

/// Characters of the texts of an item that are shown, and number of its choices.
const QUESTION_CHARACTERS: usize = 4000;
const ANSWER_CHARACTERS: usize = 2000;
const CHOICE_CHARACTERS: usize = 600;
const SHOWN_CHOICES: usize = 26;

/// Characters of a document that are shown before and behind what is found.
const CONTEXT_CHARACTERS: usize = 300;

/// Characters from the beginning of what is found, backward and forward, outside of which no choices and answers are shown.
const EXCERPT_CHARACTERS: usize = 4000;

/// The data of the page.
#[derive(Debug, Serialize)]
struct ContaminationReport {
    /// The summary of the run, without the lists that the report has itself.
    summary: Value,
    written: Vec<(String, String)>,
    /// Findings by hundredths of their score, and those of exactly 1 last.
    scores: Vec<u64>,
    /// All benchmarks, listed or not.
    benchmark_count: usize,
    benchmarks: Vec<ReportedBenchmark>,
    /// The worst findings, those of a benchmark one behind the other.
    findings: Vec<ReportedFinding>,
    /// All questions that are boilerplate, listed or not.
    boilerplate_count: usize,
    boilerplate: Vec<BoilerplateQuestion>,
}

/// A benchmark, or one split of it.
#[derive(Debug, Serialize)]
struct ReportedBenchmark {
    name: String,
    items: u64,
    found: u64,
    found_both: u64,
    documents: u64,
    rejected: u64,
    /// All findings, shown or not.
    findings: usize,
    /// The ids of the items that were found, in the order of the benchmark; fewer than `found` if the budget is spent.
    found_items: Vec<String>,
}

/// An item in a document.
#[derive(Debug, Serialize)]
struct ReportedFinding {
    /// Index of the benchmark in the list.
    benchmark: u32,
    item: String,
    found: &'static str,
    score: f64,
    /// Documents with the item.
    documents: u64,
    /// Id, input and row of the document.
    id: String,
    source: String,
    row: u64,
    question: MarkedText,
    choices: Vec<MarkedText>,
    answer: MarkedText,
    excerpt: MarkedText,
    /// `true` if the document goes on before the excerpt, and behind it.
    continues: [bool; 2],
}

/// A text, or its beginning, with the words that both sides of a finding have.
#[derive(Debug, Default, Serialize)]
struct MarkedText {
    text: String,
    /// Start and end of each run of such words in UTF-16 units.
    marks: Vec<[usize; 2]>,
}

/// The sources of a report.
pub(super) struct ReportInputs<'a> {
    pub(super) benchmarks: &'a BenchmarkSet,
    pub(super) rows: &'a CorpusPlaces,
    pub(super) inputs: &'a InputSet,
    pub(super) findings: &'a CorpusFindings,
    pub(super) found: &'a FoundItems,
}

/// Collects the data of a report and writes the file, which has its final content and a temporary name until the result
/// is published.
///
/// # Errors
/// If a document cannot be read again, or if the file cannot be written.
pub(super) fn write_report(
    run: &ReportInputs<'_>,
    summary: &DecontaminateSummary,
    output: &ReportOutput,
) -> Result<StagedOutput> {
    stage_report_file("contamination", output, run.collect_data(summary, output)?)
}

/// The place of a finding: indexes into the contaminated documents, and into the findings of one.
#[derive(Clone, Copy)]
struct FindingPlace {
    document: usize,
    finding: usize,
}

impl ReportInputs<'_> {
    fn collect_data(
        &self,
        summary: &DecontaminateSummary,
        output: &ReportOutput,
    ) -> Result<ContaminationReport> {
        let by_benchmark = self.places_by_benchmark();
        let all = self.findings.documents.iter();
        let mut scores = vec![0; 101];
        for finding in all.flat_map(|document| &document.findings) {
            scores[hundredth_of(finding.score).min(100)] += 1;
        }
        let boilerplate = self.findings.boilerplate.most_frequent_first();
        let named = boilerplate.iter().take(LISTED_BOILERPLATE);
        let named = named.filter_map(|question| describe_boilerplate(self.benchmarks, question));
        Ok(ContaminationReport {
            summary: without_lists(summary),
            written: output.written.clone(),
            scores,
            benchmark_count: summary.benchmarks.len(),
            benchmarks: self.list_benchmarks(summary, &by_benchmark),
            boilerplate_count: boilerplate.len(),
            boilerplate: named.collect(),
            findings: self.show_findings(by_benchmark)?,
        })
    }

    /// Returns the findings of each benchmark, the worst first.
    fn places_by_benchmark(&self) -> Vec<Vec<FindingPlace>> {
        let mut places = vec![Vec::new(); self.benchmarks.benchmarks.len()];
        for (document, contaminated) in self.findings.documents.iter().enumerate() {
            for (finding, found) in contaminated.findings.iter().enumerate() {
                let item = &self.benchmarks.items[found.item as usize];
                places[item.benchmark as usize].push(FindingPlace { document, finding });
            }
        }
        for places in &mut places {
            self.sort_worst_first(places);
        }
        places
    }

    fn sort_worst_first(&self, places: &mut [FindingPlace]) {
        places.sort_by(|&a, &b| {
            let (one, other) = (self.finding_at(a), self.finding_at(b));
            let is_both = |finding: &ItemFinding| Reverse(finding.found == FoundParts::Both);
            is_both(one)
                .cmp(&is_both(other))
                .then(other.score.total_cmp(&one.score))
                .then(other.bits.total_cmp(&one.bits))
                .then((one.item, a.document).cmp(&(other.item, b.document)))
        });
        let mut earlier: HashMap<u32, usize> = HashMap::new();
        let mut ranked: Vec<(usize, FindingPlace)> = Vec::with_capacity(places.len());
        for &place in places.iter() {
            let count = earlier.entry(self.finding_at(place).item).or_default();
            ranked.push((*count, place));
            *count += 1;
        }
        ranked.sort_by_key(|&(rank, _)| rank);
        for (place, (_, sorted)) in places.iter_mut().zip(ranked) {
            *place = sorted;
        }
    }

    fn document_at(&self, place: FindingPlace) -> &ContaminatedDocument {
        &self.findings.documents[place.document]
    }

    fn finding_at(&self, place: FindingPlace) -> &ItemFinding {
        &self.document_at(place).findings[place.finding]
    }

    fn list_benchmarks(
        &self,
        summary: &DecontaminateSummary,
        by_benchmark: &[Vec<FindingPlace>],
    ) -> Vec<ReportedBenchmark> {
        let mut ids: HashMap<u32, Vec<String>> = HashMap::new();
        let mut bytes = 0;
        for number in self.found.item_numbers() {
            let item = &self.benchmarks.items[number as usize];
            let id = shorten_name(&item.id);
            bytes += count_json_bytes(&id);
            if bytes > ITEM_ID_BYTES {
                break;
            }
            ids.entry(item.benchmark).or_default().push(id);
        }
        let listed = summary.benchmarks.iter().take(LISTED_BENCHMARKS);
        let listed = listed
            .zip(0..)
            .map(|(benchmark, number)| ReportedBenchmark {
                name: shorten_name(&benchmark.name),
                items: benchmark.items,
                found: benchmark.found,
                found_both: benchmark.found_both,
                documents: benchmark.documents,
                rejected: benchmark.rejected,
                findings: by_benchmark[number as usize].len(),
                found_items: ids.remove(&number).unwrap_or_default(),
            });
        listed.collect()
    }

    /// Returns the shown findings: the worst of each benchmark, then the second worst of each, within the budget.
    fn show_findings(&self, by_benchmark: Vec<Vec<FindingPlace>>) -> Result<Vec<ReportedFinding>> {
        let mut reader = FindingReader::default();
        let (mut shown, mut bytes) = (Vec::new(), 0);
        'ranks: for rank in 0..SHOWN_FINDINGS_PER_BENCHMARK {
            let listed = by_benchmark.iter().take(LISTED_BENCHMARKS);
            for place in listed.filter_map(|places| places.get(rank)) {
                let finding = reader.read_finding(self, *place)?;
                bytes += finding.count_bytes();
                if bytes > FINDING_BYTES {
                    break 'ranks;
                }
                shown.push(finding);
            }
        }
        // The order within a benchmark stays.
        shown.sort_by_key(|finding: &ReportedFinding| finding.benchmark);
        Ok(shown)
    }
}

/// Returns a summary without what the report has in other places.
fn without_lists(summary: &DecontaminateSummary) -> Value {
    let mut summary = summary_to_json(summary);
    if let Value::Object(fields) = &mut summary {
        fields.remove("benchmarks");
        fields.remove("boilerplate_questions");
    }
    summary
}

/// Reads the texts of findings again, and marks their words.
#[derive(Default)]
struct FindingReader {
    parse: ParseScratch,
    marker: ItemMarker,
}

impl FindingReader {
    fn read_finding(
        &mut self,
        run: &ReportInputs<'_>,
        place: FindingPlace,
    ) -> Result<ReportedFinding> {
        let (document, finding) = (run.document_at(place), run.finding_at(place));
        let (row_place, number) = run.rows.locate_row(document.index);
        let (source, row) = run.inputs.source_row(row_place, number);
        let excerpt = run
            .inputs
            .reread_row(row_place, &mut self.parse, |row| {
                DocumentExcerpt::cut_out(row.text, finding)
            })?
            .ok_or_else(|| {
                Error::input_error(format!(
                    "row {row} of {source} was changed while it was being read: run again"
                ))
            })?;
        let item = &run.benchmarks.items[finding.item as usize];
        let texts = ShownItem::new(item);
        let marks = self.marker.mark_item(
            texts.as_texts(),
            finding.part,
            &excerpt.text,
            excerpt.place.clone(),
        )?;
        let choices = texts.choices.iter().zip(&marks.choices);
        Ok(ReportedFinding {
            benchmark: item.benchmark,
            item: shorten_name(&item.id),
            found: finding.found.name(),
            score: finding.score,
            documents: run.found.document_count(finding.item),
            id: shorten_name(&document.id),
            source: shorten_name(source),
            row,
            choices: choices
                .map(|(choice, marks)| MarkedText::new(choice, marks))
                .collect(),
            question: MarkedText::new(&texts.question, &marks.question),
            answer: MarkedText::new(&texts.answer, &marks.answer),
            excerpt: MarkedText::new(&excerpt.text, &marks.excerpt),
            continues: excerpt.continues,
        })
    }
}

/// The texts of an item, or their beginnings.
struct ShownItem {
    question: String,
    choices: Vec<String>,
    answer: String,
}

impl ShownItem {
    fn new(item: &BenchmarkItem) -> Self {
        let choices = item.choices.iter().take(SHOWN_CHOICES);
        Self {
            question: shorten_text(&item.question, QUESTION_CHARACTERS),
            choices: choices
                .map(|choice| shorten_text(choice, CHOICE_CHARACTERS))
                .collect(),
            answer: shorten_text(&item.answer, ANSWER_CHARACTERS),
        }
    }

    fn as_texts(&self) -> ItemTexts<'_> {
        ItemTexts {
            question: &self.question,
            choices: &self.choices,
            answer: &self.answer,
            passage: "",
        }
    }
}

/// The surroundings of a finding in its document.
#[derive(Debug, PartialEq, Eq)]
struct DocumentExcerpt {
    text: String,
    /// Bytes of the excerpt in which the question, or the answer, was found.
    place: Range<usize>,
    /// `true` if the document goes on before the excerpt, and behind it.
    continues: [bool; 2],
}

impl DocumentExcerpt {
    /// Cuts the excerpt out of the text of a document: what is found with choices and answers nearby, and some context.
    /// `None` if the text is not that in which it was found.
    fn cut_out(text: &str, finding: &ItemFinding) -> Option<Self> {
        let byte_of = |character: u64| {
            let ends = text.char_indices().map(|(byte, _)| byte);
            let mut ends = ends.chain(std::iter::once(text.len()));
            ends.nth(usize::try_from(character).ok()?)
        };
        let place = byte_of(finding.characters.start)?..byte_of(finding.characters.end)?;
        let whole = finding.passage.start as usize..finding.passage.end as usize;
        text.get(whole.clone())?;
        let first = step_back(text, place.start, EXCERPT_CHARACTERS).max(whole.start);
        let last = step_forward(text, place.start, EXCERPT_CHARACTERS).min(whole.end);
        let start = step_back(text, first.min(place.start), CONTEXT_CHARACTERS);
        let end = step_forward(text, last.max(place.start), CONTEXT_CHARACTERS);
        Some(Self {
            text: text[start..end].to_owned(),
            place: place.start - start..place.end.min(end) - start,
            continues: [start > 0, end < text.len()],
        })
    }
}

/// Returns the place so many characters before a byte, or the start of the text.
fn step_back(text: &str, from: usize, characters: usize) -> usize {
    let before = text[..from].char_indices().rev();
    before.take(characters).last().map_or(from, |(at, _)| at)
}

/// Returns the place so many characters behind a byte, or the end of the text.
fn step_forward(text: &str, from: usize, characters: usize) -> usize {
    let behind = text[from..].char_indices().nth(characters);
    behind.map_or(text.len(), |(at, _)| from + at)
}

impl MarkedText {
    /// Creates a text with marks, given as ascending ranges of bytes.
    fn new(text: &str, marks: &[Range<usize>]) -> Self {
        let (mut byte, mut unit) = (0, 0);
        let mut units_until = |end: usize| {
            unit += text[byte..end].chars().map(char::len_utf16).sum::<usize>();
            byte = end;
            unit
        };
        let marks = marks.iter();
        let marks = marks.map(|range| [units_until(range.start), units_until(range.end)]);
        Self {
            marks: marks.collect(),
            text: text.to_owned(),
        }
    }

    fn count_bytes(&self) -> usize {
        count_json_bytes(&self.text) + MARK_BYTES * self.marks.len()
    }
}

impl ReportedFinding {
    /// Returns its bytes as JSON, at most.
    fn count_bytes(&self) -> usize {
        let names = [&self.item, &self.id, &self.source];
        let names = names.into_iter().map(|name| count_json_bytes(name));
        let texts = [&self.question, &self.answer, &self.excerpt];
        let texts = texts.into_iter().chain(&self.choices);
        FINDING_FIXED_BYTES
            + 24 * self.choices.len()
            + names.sum::<usize>()
            + texts.map(MarkedText::count_bytes).sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use lookalike::contamination::ItemPart;

    use super::*;

    fn finding(characters: Range<u64>, passage: Range<u64>) -> ItemFinding {
        ItemFinding {
            item: 0,
            part: ItemPart::Question,
            found: FoundParts::Question,
            score: 1.0,
            bits: 80.0,
            characters,
            part_tokens: 0..1,
            sentences: passage.clone(),
            passage,
        }
    }

    #[test]
    fn excerpt_has_context_on_both_sides() {
        let text = format!("{}问题？答案{}", "前".repeat(400), "后".repeat(250));
        // The question has three characters, and the answer behind it two.
        let found = finding(400..403, 1200..1215);
        let excerpt = DocumentExcerpt::cut_out(&text, &found).unwrap();
        assert_eq!(
            excerpt.text,
            format!("{}问题？答案{}", "前".repeat(300), "后".repeat(250))
        );
        assert_eq!(&excerpt.text[excerpt.place.clone()], "问题？");
        assert_eq!(excerpt.continues, [true, false]);
    }

    #[test]
    fn excerpt_of_a_short_text_is_the_text() {
        let excerpt = DocumentExcerpt::cut_out("Why so?", &finding(0..7, 0..7)).unwrap();
        let expected = DocumentExcerpt {
            text: "Why so?".to_owned(),
            place: 0..7,
            continues: [false, false],
        };
        assert_eq!(excerpt, expected);
    }

    #[test]
    fn long_passages_are_cut() {
        let text = format!("Why so? {}", "word ".repeat(4000));
        let length = text.len() as u64;
        let excerpt = DocumentExcerpt::cut_out(&text, &finding(0..7, 0..length)).unwrap();
        assert_eq!(excerpt.text.len(), EXCERPT_CHARACTERS + CONTEXT_CHARACTERS);
        assert_eq!(excerpt.continues, [false, true]);
    }

    #[test]
    fn a_changed_text_has_no_excerpt() {
        for (text, characters, passage) in [
            ("short", 2..9, 0..5),
            ("short", 0..5, 0..9),
            ("问题", 0..2, 0..5),
        ] {
            let found = finding(characters, passage);
            assert_eq!(DocumentExcerpt::cut_out(text, &found), None, "{found:?}");
        }
    }

    #[test]
    fn marks_count_utf16_units() {
        let text = "a𝄞 问 b";
        let marks = [0..5, 6..9];
        assert_eq!(&text[6..9], "问");
        assert_eq!(MarkedText::new(text, &marks).marks, [[0, 3], [4, 5]]);
    }
}
