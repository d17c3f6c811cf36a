//! The report of a passages run: which documents have text from elsewhere, how much, and where.
//!
//! Figures are kept for the pairs with the most copied text, at most [`MAX_REPORTED_PAIRS`] of them. The texts of the
//! first of these pairs are shown within a budget of bytes. Totals of the summary count everything.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use lookalike::DocId;
use lookalike::passages::PassageKind;
use lookalike::text::{SpanTokenizer, SpannedTokens};
use lookalike_comparison::text_diff::diff_paired;
use lookalike_io::error::Result;
use lookalike_io::source::ParseScratch;
use serde::Serialize;
use serde_json::Value;

use crate::run::commands::passages::corpus::PassageCorpus;
use crate::run::commands::passages::search::DocumentFindings;
use crate::run::report::budgets::{NameBudget, count_json_bytes, shorten_name};
use crate::run::report::{encode_runs, render_report};

/// Pairs with figures.
const MAX_REPORTED_PAIRS: usize = 50_000;

/// Bytes of texts that are shown, and of their passages.
const SHOWN_BYTES: usize = 12_000_000;

/// Bytes of a passage, about.
const PASSAGE_BYTES: usize = 60;

/// Bytes of an edit inside a passage, about, and of both parts of a passage whose edits are shown.
const EDIT_BYTES: usize = 8;
const MAX_EDITED_BYTES: usize = 60_000;

/// Characters of a text that are shown.
const TEXT_CHARACTERS: usize = 60_000;

/// A document and a source of it.
struct ReportedPair {
    document: DocId,
    source: DocId,
    ids: [Arc<str>; 2],
    /// Words and characters of the document, and those of them that lie in passages of any source.
    tokens: usize,
    covered: usize,
    /// Words and characters that lie in passages of this source.
    copied: usize,
    /// Words and characters among these that lie in reworded passages alone.
    reworded: usize,
    unit: &'static str,
    share: f64,
    source_share: f64,
    passages: Vec<ReportedPassage>,
}

struct ReportedPassage {
    /// Bytes of both texts.
    bytes: [Range<usize>; 2],
    length: usize,
    similarity: f64,
    kind: &'static str,
}

/// Collects pairs while documents are searched.
#[derive(Default)]
pub(super) struct PassageReport {
    pairs: Vec<ReportedPair>,
}

/// The data of the page.
#[derive(Debug, Default, Serialize)]
pub(super) struct PassageData {
    summary: Value,
    written: Vec<(String, String)>,
    /// Pairs as columns, those with the most copied text first.
    pairs: PairColumns,
    texts: PassageTextColumns,
}

#[derive(Debug, Default, Serialize)]
struct PairColumns {
    /// All pairs, listed or not.
    total: u64,
    document: Vec<String>,
    source: Vec<String>,
    tokens: Vec<usize>,
    /// Words and characters of the document in passages of any source.
    covered: Vec<usize>,
    copied: Vec<usize>,
    reworded: Vec<usize>,
    /// Units of the lengths, `words` or `characters`.
    unit: Vec<&'static str>,
    share: Vec<f64>,
    source_share: Vec<f64>,
    passages: Vec<usize>,
    longest: Vec<usize>,
    /// Numbers of both texts, or −1.
    document_text: Vec<i64>,
    source_text: Vec<i64>,
    /// Passages of each pair with texts; none for a pair without texts.
    marks: Vec<Vec<PassageMark>>,
    /// Runs of the edits of each of these passages, from the source to the document, as `encode_runs` has them; none if
    /// it has no edits, or they are not shown.
    edits: Vec<Vec<Vec<usize>>>,
}

/// Start and end of a passage in both texts in UTF-16 units, its length, similarity and kind.
type PassageMark = (usize, usize, usize, usize, usize, f64, &'static str);

#[derive(Debug, Default, Serialize)]
struct PassageTextColumns {
    text: Vec<String>,
    characters: Vec<usize>,
}

impl PassageReport {
    /// Adds the passages of a document.
    pub(super) fn add_findings(&mut self, findings: &DocumentFindings) {
        let of_sources = findings.rows.chunk_by(|a, b| a.source == b.source);
        for (rows, figures) in of_sources.zip(&findings.pairs) {
            self.pairs.push(ReportedPair {
                document: rows[0].document,
                source: rows[0].source,
                ids: rows[0].ids.clone(),
                tokens: findings.tokens,
                covered: findings.copied,
                copied: figures.copied,
                reworded: figures.reworded,
                unit: figures.unit,
                share: figures.share,
                source_share: figures.source_share,
                passages: rows
                    .iter()
                    .map(|row| ReportedPassage {
                        bytes: row.bytes.clone(),
                        length: row.length,
                        similarity: row.similarity,
                        kind: row.kind,
                    })
                    .collect(),
            });
        }
        if self.pairs.len() > 2 * MAX_REPORTED_PAIRS {
            self.keep_most_copied();
        }
    }

    fn keep_most_copied(&mut self) {
        self.pairs
            .sort_by_key(|pair| (Reverse(pair.copied), pair.document, pair.source));
        self.pairs.truncate(MAX_REPORTED_PAIRS);
    }

    /// Returns the data of the page. `pairs` is the number of all pairs that share a passage. `written` are the other
    /// outputs of the run: role and path.
    ///
    /// # Errors
    /// If a document cannot be read again.
    pub(super) fn collect_data(
        mut self,
        corpus: &PassageCorpus<'_>,
        summary: Value,
        pairs: u64,
        written: &[(String, String)],
    ) -> Result<PassageData> {
        self.keep_most_copied();
        let mut data = PassageData {
            summary,
            written: written.to_vec(),
            ..PassageData::default()
        };
        data.pairs.total = pairs;
        let mut shown = ShownDocuments::new(corpus);
        let mut names = NameBudget::default();
        for pair in &self.pairs {
            if !names.count_names(&pair.ids) {
                break;
            }
            let texts = shown.show_pair(pair, &mut data.texts)?;
            let edits = texts.map_or_else(
                || Ok(Vec::new()),
                |numbers| shown.mark_edits(pair, numbers.map(|number| &*data.texts.text[number])),
            )?;
            data.pairs.push_pair(pair, texts, edits, &data.texts);
        }
        Ok(data)
    }
}

impl PassageData {
    /// Returns the page. `language` is that in which it opens; `None` leaves it to the browser.
    pub(super) fn render_page(&self, language: Option<&'static str>) -> String {
        render_report("passages", language, self)
    }
}

impl PairColumns {
    fn push_pair(
        &mut self,
        pair: &ReportedPair,
        texts: Option<[usize; 2]>,
        edits: Vec<Vec<usize>>,
        columns: &PassageTextColumns,
    ) {
        let [document, source] = &pair.ids;
        self.document.push(shorten_name(document));
        self.source.push(shorten_name(source));
        self.tokens.push(pair.tokens);
        self.covered.push(pair.covered);
        self.copied.push(pair.copied);
        self.reworded.push(pair.reworded);
        self.unit.push(pair.unit);
        self.share.push(pair.share);
        self.source_share.push(pair.source_share);
        self.passages.push(pair.passages.len());
        let lengths = pair.passages.iter().map(|passage| passage.length);
        self.longest.push(lengths.max().unwrap_or(0));
        let number = |side: usize| texts.map_or(-1, |sides| sides[side] as i64);
        self.document_text.push(number(0));
        self.source_text.push(number(1));
        let marks = texts.map(|numbers| {
            let both = numbers.map(|number| &*columns.text[number]);
            pair.mark_passages(both)
        });
        self.marks.push(marks.unwrap_or_default());
        self.edits.push(edits);
    }
}

impl ReportedPassage {
    /// Returns the passage in both texts, if it lies in their shown parts.
    fn shown_parts<'t>(&self, texts: [&'t str; 2]) -> Option<[&'t str; 2]> {
        let [document, source] = &self.bytes;
        Some([
            texts[0].get(document.clone())?,
            texts[1].get(source.clone())?,
        ])
    }
}

impl ReportedPair {
    /// Returns the passages that lie in the shown parts of both texts.
    fn mark_passages(&self, texts: [&str; 2]) -> Vec<PassageMark> {
        let units =
            |text: &str, byte: usize| text.get(..byte).map(|front| front.encode_utf16().count());
        let mark = |passage: &ReportedPassage| {
            let [document, source] = &passage.bytes;
            Some((
                units(texts[0], document.start)?,
                units(texts[0], document.end)?,
                units(texts[1], source.start)?,
                units(texts[1], source.end)?,
                passage.length,
                passage.similarity,
                passage.kind,
            ))
        };
        self.passages.iter().filter_map(mark).collect()
    }
}

/// Texts read again, within the budget of bytes.
struct ShownDocuments<'a> {
    corpus: &'a PassageCorpus<'a>,
    parse: ParseScratch,
    tokens: SpannedTokens,
    /// Number of the text of a searched document, and of a source.
    numbers: [HashMap<DocId, usize>; 2],
    bytes: usize,
}

impl<'a> ShownDocuments<'a> {
    fn new(corpus: &'a PassageCorpus<'a>) -> Self {
        Self {
            corpus,
            parse: ParseScratch::default(),
            tokens: SpannedTokens::default(),
            numbers: Default::default(),
            bytes: 0,
        }
    }

    /// Returns the numbers of both texts; `None` if the budget is spent.
    fn show_pair(
        &mut self,
        pair: &ReportedPair,
        columns: &mut PassageTextColumns,
    ) -> Result<Option<[usize; 2]>> {
        if self.bytes > SHOWN_BYTES {
            return Ok(None);
        }
        self.bytes += PASSAGE_BYTES * pair.passages.len();
        let document = self.show_text(0, pair.document, columns)?;
        let source = self.show_text(1, pair.source, columns)?;
        Ok(Some([document, source]))
    }

    /// Returns the runs of the edits of the passages that lie in the shown parts of both texts, in the order of
    /// [`ReportedPair::mark_passages`].
    fn mark_edits(&mut self, pair: &ReportedPair, texts: [&str; 2]) -> Result<Vec<Vec<usize>>> {
        let tokenizer: &SpanTokenizer = &self.corpus.tokenizer;
        let mut edits = Vec::new();
        for passage in &pair.passages {
            let Some([document, source]) = passage.shown_parts(texts) else {
                continue;
            };
            let is_shown = passage.kind == PassageKind::Edited.kind_name()
                && document.len() + source.len() <= MAX_EDITED_BYTES
                && self.bytes <= SHOWN_BYTES;
            let mut runs = Vec::new();
            if is_shown {
                let paired = diff_paired(source, document, tokenizer)?;
                runs = encode_runs(&paired, source, document, false);
            }
            self.bytes += EDIT_BYTES * runs.len() / 3;
            edits.push(runs);
        }
        Ok(edits)
    }

    fn show_text(
        &mut self,
        side: usize,
        document: DocId,
        columns: &mut PassageTextColumns,
    ) -> Result<usize> {
        if let Some(&number) = self.numbers[side].get(&document) {
            return Ok(number);
        }
        let (parse, tokens) = (&mut self.parse, &mut self.tokens);
        let reread = match side {
            0 => self.corpus.reread_document(document, parse, tokens)?,
            _ => self.corpus.reread_source(document, parse, tokens)?,
        };
        let text = reread.text();
        let end = text.char_indices().nth(TEXT_CHARACTERS);
        let shown = &text[..end.map_or(text.len(), |(end, _)| end)];
        let number = columns.text.len();
        self.bytes += count_json_bytes(shown);
        columns.text.push(shown.to_owned());
        columns.characters.push(text.chars().count());
        self.numbers[side].insert(document, number);
        Ok(number)
    }
}
