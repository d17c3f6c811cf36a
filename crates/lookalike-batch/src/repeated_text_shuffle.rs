//! Repeated text among documents that are spread over many machines.
//!
//! ```text
//! hash_runs          texts → a hash for each run, by its first token
//! (outside)          equal hashes → each run with its first place in an earlier document
//! choose_cuts        a text and its repeated runs → its cuts
//! name_places        cuts in the order of the documents → the same with places that stay
//! describe_places    a text and ranges of its tokens → their places in characters, and hashes of their tokens
//! describe_cuts      a text, its cuts and the described places → verified pieces, and the text that is left
//! ```
//!
//! Documents are numbered from 0 in the order in which one machine would read them. A join by equal values, a sort and
//! groups by document are all that connects the steps, so that any engine with tables can do it.
//!
//! Guarantee: the cuts are those of `dedup --passages` on one machine, unless two different runs have equal hashes of 128
//! bits: one machine compares tokens, and here hashes of tokens are compared.
//!
//! Cost: a hash of 8 bytes for each token is exchanged, with the number of its document and its place; after that only
//! what is repeated. [`name_places`](PlaceNaming) is one task, whose memory is 40 bytes for each piece of a cut.

use std::collections::HashMap;
use std::ops::Range;

use lookalike::Recipe;
use lookalike::passages::{
    PassageSettings, RepeatedRun, RunList, TextCut, choose_cuts, join_repeated_runs,
    name_remaining_places,
};
use lookalike::text::{SpanTokenizer, SpannedTokens};
use lookalike_io::error::Result;
use lookalike_io::sink::LeftOutText;

use crate::run::commands::repeated_text::tokenized_text::TokenizedText;

/// The steps that read texts.
#[derive(Debug)]
pub struct RepeatedTextSteps {
    tokenizer: SpanTokenizer,
    settings: PassageSettings,
}

/// The place of a range of tokens in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescribedPlace {
    /// Characters from the first token to the last one.
    pub characters: Range<u64>,
    /// Hash of the tokens.
    pub tokens: u128,
}

/// A piece of a cut, with text that stands in one earlier document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PieceOfText {
    /// Characters of the document.
    pub characters: Range<u64>,
    /// The document that stays.
    pub first: u32,
    /// The index of its place among those that the pieces of all cuts name.
    pub place: usize,
    /// Characters there.
    pub first_characters: Range<u64>,
    /// Words, and characters of scripts without spaces.
    pub length: u64,
    /// The text.
    pub text: String,
}

/// The cuts of a document for the outputs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CutText {
    /// The pieces of all cuts, in order.
    pub pieces: Vec<PieceOfText>,
    /// The text without them.
    pub rest: String,
    /// `true` if nothing but blanks is left.
    pub is_emptied: bool,
}

/// The tokens of a text and its runs.
struct TextRuns {
    tokens: SpannedTokens,
    runs: RunList,
}

impl RepeatedTextSteps {
    /// Creates the steps for passages of a length. Of the recipe only the normalisation has an effect.
    pub fn new(recipe: &Recipe, settings: PassageSettings) -> Self {
        Self {
            tokenizer: SpanTokenizer::new(recipe),
            settings,
        }
    }

    /// Returns the hashes of the runs of a text, by their first tokens. Only runs of documents with the same `partition`
    /// can be equal.
    ///
    /// # Errors
    /// If the text has 4 GiB or more.
    pub fn hash_runs(&self, text: &str, partition: u64) -> Result<Vec<u64>> {
        Ok(self.find_runs(text, partition)?.runs.hashes().to_vec())
    }

    fn find_runs(&self, text: &str, partition: u64) -> Result<TextRuns> {
        let mut tokens = SpannedTokens::default();
        self.tokenizer.tokenize_text(text, &mut tokens)?;
        let mut runs = RunList::new(self.settings);
        runs.fill_runs(tokens.values(), partition);
        Ok(TextRuns { tokens, runs })
    }

    /// Returns the cuts of a text, whose pieces name the first places of their runs. `repeated` are the runs of the text
    /// that stand in earlier documents, ascending.
    ///
    /// # Errors
    /// If the text has 4 GiB or more.
    pub fn choose_cuts(&self, text: &str, repeated: &[RepeatedRun]) -> Result<Vec<TextCut>> {
        // The partition changes the hashes of runs, which are not used here, and not their places.
        let TextRuns { tokens, runs } = self.find_runs(text, 0)?;
        let pieces = join_repeated_runs(repeated, &runs);
        Ok(choose_cuts(text, &tokens, &pieces, self.settings))
    }

    /// Returns the places of ranges of tokens in a text; `None` for a range that the text does not have.
    ///
    /// # Errors
    /// If the text has 4 GiB or more.
    pub fn describe_places(
        &self,
        text: String,
        ranges: &[Range<u32>],
    ) -> Result<Vec<Option<DescribedPlace>>> {
        let text = TokenizedText::new(text, &self.tokenizer)?;
        let described = ranges.iter().map(|range| {
            let tokens = text.tokens_in(range).filter(|tokens| !tokens.is_empty())?;
            Some(DescribedPlace {
                characters: text.characters_of(range),
                tokens: hash_tokens(tokens),
            })
        });
        Ok(described.collect())
    }

    /// Describes the cuts of a text. `places` are those that the pieces name, one for each piece of all cuts. Cuts with a
    /// piece whose place is missing or has other tokens are left out.
    ///
    /// # Errors
    /// If the text has 4 GiB or more.
    pub fn describe_cuts(
        &self,
        text: String,
        cuts: &[TextCut],
        places: &[Option<DescribedPlace>],
    ) -> Result<CutText> {
        let text = TokenizedText::new(text, &self.tokenizer)?;
        let mut places = places.iter().enumerate();
        let mut left_out = LeftOutText {
            ranges: Vec::new(),
            length: text.text().len(),
        };
        let mut described = CutText::default();
        for cut in cuts {
            let pieces: Vec<Option<PieceOfText>> = (0..cut.pieces.len())
                .map(|at| {
                    let (number, place) = places.next()?;
                    let described = describe_piece(&text, cut, at, place.as_ref()?);
                    described.map(|piece| PieceOfText {
                        place: number,
                        ..piece
                    })
                })
                .collect();
            if let Some(pieces) = pieces.into_iter().collect::<Option<Vec<_>>>() {
                described.pieces.extend(pieces);
                left_out.ranges.push(cut.bytes.clone());
            }
        }
        let rest = left_out.cut_text(text.text());
        described.rest = rest.unwrap_or_else(|_| text.text().to_owned());
        described.is_emptied = described.rest.trim().is_empty();
        Ok(described)
    }
}

/// Returns the description of a piece if its place has the same tokens.
fn describe_piece(
    text: &TokenizedText,
    cut: &TextCut,
    at: usize,
    place: &DescribedPlace,
) -> Option<PieceOfText> {
    let piece = &cut.pieces[at];
    let tokens = text.tokens_in(&piece.tokens)?;
    let bytes = text.bytes_of_piece(cut, at);
    (hash_tokens(tokens) == place.tokens).then(|| PieceOfText {
        characters: text.characters_in(&bytes),
        first: piece.document,
        place: 0,
        first_characters: place.characters.clone(),
        length: tokens.len() as u64,
        text: text.text()[bytes].to_owned(),
    })
}

/// Returns a hash of 128 bits.
fn hash_tokens(tokens: &[u64]) -> u128 {
    let mut bytes: Vec<u8> = tokens
        .iter()
        .flat_map(|token| token.to_le_bytes())
        .collect();
    let low = lookalike::value_hash(&bytes);
    bytes.push(1);
    u128::from(lookalike::value_hash(&bytes)) << 64 | u128::from(low)
}

/// Lets the pieces of cuts name what stays, document by document. Memory: 40 bytes for each piece.
#[derive(Debug, Default)]
pub struct PlaceNaming(HashMap<u32, Vec<TextCut>>);

impl PlaceNaming {
    /// Creates a step without cuts.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the cuts of the next document, and returns them with places that stay.
    pub fn name_places(&mut self, document: u32, mut cuts: Vec<TextCut>) -> &[TextCut] {
        let known = &self.0;
        let find_cuts =
            |earlier: u32| -> std::result::Result<&[TextCut], std::convert::Infallible> {
                Ok(known.get(&earlier).map_or(&[], Vec::as_slice))
            };
        let Ok(()) = name_remaining_places(&mut cuts, find_cuts);
        self.0.entry(document).insert_entry(cuts).into_mut()
    }
}
