//! Cuts as the outputs have them: verified, and with places in characters.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use lookalike::DocId;
use lookalike::passages::{CopiedPiece, TextCut};
use lookalike_io::error::Result;
use lookalike_io::sink::LeftOutText;
use rayon::prelude::*;

use super::cut_choice::CutRecords;
use super::run_search::RunSearch;
use super::searched_texts::TextScratch;
use super::tokenized_text::TokenizedText;
use crate::run::commands::passages::cache::DocumentCache;

/// Documents with cuts that are described before their rows are written, and about the most bytes of their cuts.
const DESCRIBED_AT_ONCE: usize = 1024;
const DESCRIBED_BYTES: usize = 8 << 20;

/// The cuts of a document for the outputs.
pub(super) struct DescribedCuts {
    /// The document among those of the search.
    pub(super) number: u32,
    pub(super) pieces: Vec<DescribedPiece>,
    pub(super) left_out: LeftOutText,
    /// `true` if nothing of the text stays.
    pub(super) is_emptied: bool,
}

/// A piece of a cut, which stands in one earlier document.
pub(super) struct DescribedPiece {
    /// Characters of the document.
    pub(super) place: Range<u64>,
    /// The document that stays, among those of the search.
    pub(super) first: u32,
    pub(super) first_id: String,
    /// Characters of the first occurrence.
    pub(super) first_place: Range<u64>,
    /// Words, and characters of scripts without spaces.
    pub(super) length: u64,
    pub(super) text: String,
}

impl DescribedCuts {
    /// Returns the value of the field `passages`.
    pub(super) fn to_json(&self) -> String {
        let pieces = self.pieces.iter().map(|piece| {
            serde_json::json!({
                "start": piece.place.start,
                "end": piece.place.end,
                "first": piece.first_id,
                "first_start": piece.first_place.start,
                "first_end": piece.first_place.end,
            })
        });
        serde_json::Value::Array(pieces.collect()).to_string()
    }
}

/// A document that others copy.
struct SourceText {
    id: String,
    text: TokenizedText,
}

/// Describes cuts, with the texts of recent sources.
pub(super) struct CutDescriber<'a> {
    search: &'a RunSearch<'a>,
    cuts: &'a CutRecords,
    sources: Mutex<DocumentCache<Arc<SourceText>>>,
}

impl<'a> CutDescriber<'a> {
    pub(super) fn new(search: &'a RunSearch<'a>, cuts: &'a CutRecords) -> Self {
        Self {
            search,
            cuts,
            sources: Mutex::new(DocumentCache::new(search.of.shares.source_bytes())),
        }
    }

    /// Calls `visit` with the cuts of each document, in the order of the documents.
    ///
    /// # Errors
    /// If a text cannot be read again, if temporary files fail, and the errors of `visit`.
    pub(super) fn visit_described(
        &self,
        mut visit: impl FnMut(DescribedCuts) -> Result<()>,
    ) -> Result<()> {
        let mut rest = self.cuts.documents();
        while !rest.is_empty() {
            let portion = self.read_portion(rest)?;
            rest = &rest[portion.len()..];
            for described in self.describe_documents(&portion)? {
                visit(described)?;
            }
        }
        Ok(())
    }

    /// Reads the cuts of the first documents, at least of one, until they have enough bytes.
    fn read_portion(&self, documents: &[u32]) -> Result<Vec<(u32, Vec<TextCut>)>> {
        let mut portion = Vec::new();
        let mut bytes = 0;
        for &document in documents.iter().take(DESCRIBED_AT_ONCE) {
            if bytes >= DESCRIBED_BYTES {
                break;
            }
            let cuts = self.cuts.read_cuts(document)?;
            bytes += cuts.iter().map(|cut| cut.bytes.len()).sum::<usize>();
            portion.push((document, cuts));
        }
        Ok(portion)
    }

    /// Describes the cuts of documents. Leaves out documents of which no cut remains.
    fn describe_documents(&self, portion: &[(u32, Vec<TextCut>)]) -> Result<Vec<DescribedCuts>> {
        let described = portion.par_iter();
        let described = described.map_init(TextScratch::default, |scratch, entry| {
            let (document, cuts) = entry;
            self.describe_cuts(*document, cuts, scratch)
        });
        let mut described = described.collect::<Result<Vec<_>>>()?;
        described.retain(|document| !document.pieces.is_empty());
        Ok(described)
    }

    /// Describes the cuts of a document whose tokens are equal to those that stay.
    fn describe_cuts(
        &self,
        number: u32,
        cuts: &[TextCut],
        scratch: &mut TextScratch,
    ) -> Result<DescribedCuts> {
        let texts = &self.search.texts;
        let copied = texts.read_tokens(number, scratch)?;
        let mut described = DescribedCuts {
            number,
            pieces: Vec::new(),
            left_out: LeftOutText {
                ranges: Vec::new(),
                length: copied.text().len(),
            },
            is_emptied: false,
        };
        for cut in cuts {
            let mut pieces = Vec::new();
            for (at, piece) in cut.pieces.iter().enumerate() {
                let source = self.read_source(piece.document, scratch)?;
                let is_equal = is_equal(&copied, piece, &source.text)
                    && texts.partition_of(number) == texts.partition_of(piece.document);
                pieces.extend(is_equal.then(|| describe_piece(&copied, cut, at, &source)));
            }
            if pieces.len() == cut.pieces.len() {
                described.pieces.extend(pieces);
                described.left_out.ranges.push(cut.bytes.clone());
            }
        }
        let rest = described.left_out.cut_text(copied.text());
        described.is_emptied = rest.is_ok_and(|rest| rest.trim().is_empty());
        Ok(described)
    }

    fn read_source(&self, number: u32, scratch: &mut TextScratch) -> Result<Arc<SourceText>> {
        let sources = || self.sources.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = sources().find_value(DocId(number)) {
            return Ok(known);
        }
        let texts = &self.search.texts;
        let text = texts.read_tokens(number, scratch)?;
        let bytes = text.memory_bytes();
        let source = Arc::new(SourceText {
            id: texts.id_of(number)?,
            text,
        });
        sources().add_value(DocId(number), Arc::clone(&source), bytes);
        Ok(source)
    }
}

/// Returns `true` if a piece has the tokens that it should have in its source.
fn is_equal(copied: &TokenizedText, piece: &CopiedPiece, source: &TokenizedText) -> bool {
    let own = copied.tokens_in(&piece.tokens);
    own.is_some() && own == source.tokens_in(&piece.source_tokens())
}

/// Describes a piece of a cut.
fn describe_piece(
    copied: &TokenizedText,
    cut: &TextCut,
    at: usize,
    source: &SourceText,
) -> DescribedPiece {
    let piece = &cut.pieces[at];
    let bytes = copied.bytes_of_piece(cut, at);
    DescribedPiece {
        place: copied.characters_in(&bytes),
        first: piece.document,
        first_id: source.id.clone(),
        first_place: source.text.characters_of(&piece.source_tokens()),
        length: u64::from(piece.tokens.end - piece.tokens.start),
        text: copied.text()[bytes].to_owned(),
    }
}
