//! Texts of a report, each once, and the differences of pairs of them.

use std::collections::HashMap;

use lookalike::DocId;
use lookalike::content_hash::ContentHash;
use lookalike::text::SpanTokenizer;
use lookalike_comparison::text_diff::{PairedRun, RunKind, diff_paired};
use lookalike_io::error::Result;
use lookalike_io::source::ParseScratch;
use serde::Serialize;

use crate::run::execution::run_corpus::RunCorpus;
use crate::run::report::budgets::{TEXT_BYTES, TEXT_CHARACTERS, count_digits, count_json_bytes};

/// Bytes in the JSON of a page, at most: a content hash, a key, a number of characters, and a difference apart from its
/// numbers.
const CONTENT_HASH_JSON_BYTES: usize = 74;
const KEY_JSON_BYTES: usize = 35;
const MAX_COUNT_JSON_BYTES: usize = 8;
const DIFFERENCE_JSON_BYTES: usize = 10;

/// Texts as columns.
#[derive(Debug, Default, Serialize)]
pub(super) struct TextColumns {
    /// The text, or its beginning.
    text: Vec<String>,
    /// Characters of the whole text.
    characters: Vec<usize>,
    /// Hash of the whole text, for decisions.
    #[serde(rename = "content")]
    content_hash: Vec<String>,
    /// Key of the text after normalisation, for decisions.
    key: Vec<String>,
}

/// Differences of pairs, as columns.
#[derive(Debug, Default, Serialize)]
pub(super) struct DifferenceColumns {
    /// Index into `removals`.
    removal: Vec<usize>,
    /// Runs, three numbers each: the kind, and the lengths in the kept and in the removed text in UTF-16 units. Kinds:
    /// 0 equal, 1 equal after normalisation, 2 in the kept text only, 3 in the removed text only.
    runs: Vec<Vec<usize>>,
}

impl DifferenceColumns {
    pub(super) fn push_runs(&mut self, removal: usize, runs: Vec<usize>) {
        self.removal.push(removal);
        self.runs.push(runs);
    }
}

/// Texts read again, within the budget of bytes.
pub(super) struct ShownTexts<'a> {
    corpus: &'a RunCorpus<'a>,
    tokenizer: SpanTokenizer,
    columns: TextColumns,
    number_of: HashMap<DocId, usize>,
    parse: ParseScratch,
    bytes: usize,
}

impl<'a> ShownTexts<'a> {
    pub(super) fn new(corpus: &'a RunCorpus<'a>) -> Self {
        Self {
            corpus,
            tokenizer: SpanTokenizer::new(corpus.run_recipe()),
            columns: TextColumns::default(),
            number_of: HashMap::new(),
            parse: ParseScratch::default(),
            bytes: 0,
        }
    }

    /// Returns the whole text of a document; `None` if the document is a list of features.
    pub(super) fn read_text(&mut self, document: DocId) -> Result<Option<String>> {
        self.corpus.reread_text(document, &mut self.parse)
    }

    /// Returns the number of a document's text, if it is shown.
    pub(super) fn number_of(&self, document: DocId) -> Option<usize> {
        self.number_of.get(&document).copied()
    }

    /// Shows the texts of a pair and returns the runs of their difference. Returns `None`, and shows nothing new, if
    /// the budget is spent or the documents have no texts.
    pub(super) fn show_pair(&mut self, kept: DocId, removed: DocId) -> Result<Option<Vec<usize>>> {
        if self.bytes >= TEXT_BYTES {
            return Ok(None);
        }
        let (Some(kept_text), Some(removed_text)) =
            (self.prepare_text(kept)?, self.prepare_text(removed)?)
        else {
            return Ok(None);
        };
        let runs = diff_paired(&kept_text.shown, &removed_text.shown, &self.tokenizer)?;
        let is_cut = kept_text.is_cut() || removed_text.is_cut();
        let runs = encode_runs(&runs, &kept_text.shown, &removed_text.shown, is_cut);
        let of_numbers = runs.iter().map(|&number| 1 + count_digits(number as u64));
        self.bytes += DIFFERENCE_JSON_BYTES + of_numbers.sum::<usize>();
        self.add_text(kept, kept_text);
        self.add_text(removed, removed_text);
        Ok(Some(runs))
    }

    /// Returns a text as it is shown; `None` if the document is a list of features.
    fn prepare_text(&mut self, document: DocId) -> Result<Option<ShownTextData>> {
        if let Some(number) = self.number_of(document) {
            return Ok(Some(ShownTextData {
                shown: self.columns.text[number].clone(),
                characters: self.columns.characters[number],
                content_hash: self.columns.content_hash[number].clone(),
                key: self.columns.key[number].clone(),
            }));
        }
        let Some(mut text) = self.read_text(document)? else {
            return Ok(None);
        };
        let characters = text.chars().count();
        let content_hash = ContentHash::from_text(&text).to_string();
        let key = self.corpus.key_of_text(&text);
        if let Some((end, _)) = text.char_indices().nth(TEXT_CHARACTERS) {
            text.truncate(end);
        }
        Ok(Some(ShownTextData {
            shown: text,
            characters,
            content_hash,
            key: format!("{key:032x}"),
        }))
    }

    fn add_text(&mut self, document: DocId, text: ShownTextData) {
        if self.number_of.contains_key(&document) {
            return;
        }
        let columns = &mut self.columns;
        self.number_of.insert(document, columns.text.len());
        self.bytes += count_json_bytes(&text.shown)
            + CONTENT_HASH_JSON_BYTES
            + KEY_JSON_BYTES
            + MAX_COUNT_JSON_BYTES;
        columns.characters.push(text.characters);
        columns.content_hash.push(text.content_hash);
        columns.key.push(text.key);
        columns.text.push(text.shown);
    }

    pub(super) fn into_columns(self) -> TextColumns {
        self.columns
    }
}

/// A text that is shown.
struct ShownTextData {
    /// The text, or its beginning.
    shown: String,
    /// Characters of the whole text.
    characters: usize,
    content_hash: String,
    key: String,
}

impl ShownTextData {
    fn is_cut(&self) -> bool {
        self.characters > TEXT_CHARACTERS
    }
}

/// Returns the runs of two texts as numbers: the kind of each run, and its lengths in both texts in UTF-16 units. The
/// kinds are 0 (equal), 1 (equal after normalisation), 2 (in the first text only) and 3 (in the second text only). If
/// the texts are cut, runs at the end that only one text has are left out, because they may go on in the other.
pub fn encode_runs(runs: &[PairedRun], kept: &str, removed: &str, is_cut: bool) -> Vec<usize> {
    let is_common = |run: &PairedRun| matches!(run.kind, RunKind::Equal | RunKind::Normalized);
    let end = if is_cut {
        runs.iter().rposition(is_common).map_or(0, |at| at + 1)
    } else {
        runs.len()
    };
    let units = |text: &str| text.chars().map(char::len_utf16).sum::<usize>();
    let numbers = runs[..end].iter().flat_map(|run| {
        let kind = match run.kind {
            RunKind::Equal => 0,
            RunKind::Normalized => 1,
            RunKind::Kept => 2,
            RunKind::Removed => 3,
        };
        [
            kind,
            units(&kept[run.kept.clone()]),
            units(&removed[run.removed.clone()]),
        ]
    });
    numbers.collect()
}
