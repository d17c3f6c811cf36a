//! The passages that two texts share, with places as people and programs count them.

use std::ops::Range;
use std::sync::Arc;

use lookalike::passages::{
    BaseText, Passage, PassageBudget, PassageFinder, PassageKind, PassageSettings, PassageSource,
    PlaceIndex, count_covered, to_visible_characters,
};
use lookalike::text::{SpanTokenizer, SpannedTokens};
use lookalike::{Recipe, Result};
use lookalike_documents::{ExtractedText, TextOrigin};
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};
use serde_json::Value;

/// The place of one side of a passage. In a document file with markup, characters and line count in the file, while
/// the text is without the markup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PassageSpot {
    /// Bytes of the text.
    pub bytes: Range<usize>,
    /// Characters (code points) of the file.
    pub characters: Range<usize>,
    /// Line of the file in which the passage begins, from 1.
    pub line: usize,
    /// Characters of the text, if they are not those of the file.
    pub text_characters: Option<Range<usize>>,
}

impl Serialize for PassageSpot {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let count = if self.text_characters.is_some() { 5 } else { 3 };
        let mut fields = serializer.serialize_struct("PassageSpot", count)?;
        fields.serialize_field("start", &self.characters.start)?;
        fields.serialize_field("end", &self.characters.end)?;
        fields.serialize_field("line", &self.line)?;
        if let Some(text) = &self.text_characters {
            fields.serialize_field("text_start", &text.start)?;
            fields.serialize_field("text_end", &text.end)?;
        }
        fields.end()
    }
}

/// Returns the bytes of the file (in UTF-8) that a range of a text comes from, a byte order mark included.
pub fn file_bytes(extracted: &ExtractedText, bytes: &Range<usize>) -> Range<usize> {
    let range = original_range(extracted, bytes);
    let mark = if extracted.has_byte_order_mark {
        '\u{feff}'.len_utf8()
    } else {
        0
    };
    range.start + mark..range.end + mark
}

/// Returns the characters of the file that a range of a text comes from, a byte order mark included. `places` is
/// the index of the original text.
pub fn file_characters(
    extracted: &ExtractedText,
    places: &PlaceIndex,
    bytes: &Range<usize>,
) -> Range<usize> {
    let range = original_range(extracted, bytes);
    let mark = usize::from(extracted.has_byte_order_mark);
    let count = |byte| mark + places.count_characters(extracted.original_text(), byte);
    count(range.start)..count(range.end)
}

/// Returns the line of the file, from 1, in which a range of a text begins.
pub fn file_line(extracted: &ExtractedText, places: &PlaceIndex, bytes: &Range<usize>) -> usize {
    let start = original_range(extracted, bytes).start;
    places.line_number(extracted.original_text(), start)
}

/// Returns the range of the original text; the range itself if the file has no positions.
fn original_range(extracted: &ExtractedText, bytes: &Range<usize>) -> Range<usize> {
    let range = extracted.original_range(bytes.clone());
    range.unwrap_or_else(|| bytes.clone())
}

/// A passage that two texts share.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SharedPassage {
    /// Its place in the first text.
    pub a: PassageSpot,
    /// Its place in the second text.
    pub b: PassageSpot,
    /// Words and single characters of its part of the second text.
    pub length: usize,
    /// Share of equal tokens of both parts.
    pub similarity: f64,
    /// The way in which one was made of the other.
    #[serde(serialize_with = "serialize_kind")]
    pub kind: PassageKind,
}

fn serialize_kind<S: Serializer>(kind: &PassageKind, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(kind.kind_name())
}

/// All passages that two texts share. As JSON it is the list of passages, and the shares of both texts.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct SharedPassages {
    /// Ascending by their place in the second text.
    pub passages: Vec<SharedPassage>,
    /// Share of the words and single characters of the first text that lie in passages.
    pub share_of_a: f64,
    /// The same of the second text.
    pub share_of_b: f64,
    /// Number of words and single characters of the second text that lie in passages.
    #[serde(skip)]
    pub copied: usize,
}

impl SharedPassages {
    /// Finds the passages that the second text has from the first one, with the normalisation of a recipe.
    ///
    /// # Errors
    /// If a text has 4 GiB or more.
    pub fn find_all(recipe: &Recipe, texts: [&str; 2], settings: PassageSettings) -> Result<Self> {
        let [a, b] = texts.map(|text| ExtractedText::from_plain_text(text.to_owned()));
        Self::find_in_documents(recipe, [&a, &b], settings)
    }

    /// As [`find_all`](Self::find_all), within a budget.
    ///
    /// # Errors
    /// If a text has 4 GiB or more, or the comparison takes more memory or work than the budget has.
    pub fn find_all_within(
        recipe: &Recipe,
        texts: [&str; 2],
        settings: PassageSettings,
        budget: Arc<PassageBudget>,
    ) -> Result<Self> {
        let [a, b] = texts.map(|text| ExtractedText::from_plain_text(text.to_owned()));
        let tokenizer = SpanTokenizer::new(recipe);
        SourceComparer::new_within(&tokenizer, &b, settings, None, budget)?.find_passages(&a)
    }

    /// As [`find_all`](Self::find_all), without what stands in one of the base texts, which both texts were given.
    ///
    /// # Errors
    /// If a text has 4 GiB or more.
    pub fn find_all_beside(
        recipe: &Recipe,
        texts: [&str; 2],
        settings: PassageSettings,
        base: &[impl AsRef<str>],
    ) -> Result<Self> {
        let [a, b] = texts.map(|text| ExtractedText::from_plain_text(text.to_owned()));
        let tokenizer = SpanTokenizer::new(recipe);
        let budget = Arc::new(PassageBudget::unlimited());
        let base = read_base_texts(&tokenizer, settings, base, usize::MAX)?;
        SourceComparer::new_within(&tokenizer, &b, settings, Some(&base), budget)?.find_passages(&a)
    }

    /// Finds the passages that the second document has from the first one. Their places are those of the files.
    ///
    /// # Errors
    /// If a text has 4 GiB or more.
    pub fn find_in_documents(
        recipe: &Recipe,
        documents: [&ExtractedText; 2],
        settings: PassageSettings,
    ) -> Result<Self> {
        let [a, b] = documents;
        let tokenizer = SpanTokenizer::new(recipe);
        SourceComparer::new(&tokenizer, b, settings)?.find_passages(a)
    }

    /// Returns the passages with their places in the source and in the document.
    fn describe_passages(passages: &[Passage], [source, document]: [&ComparedText<'_>; 2]) -> Self {
        let covered = |range: fn(&Passage) -> &Range<usize>| {
            count_covered(
                passages
                    .iter()
                    .map(|passage| range(passage).clone())
                    .collect(),
            )
        };
        let copied = covered(|passage| &passage.document);
        Self {
            passages: passages
                .iter()
                .map(|passage| SharedPassage {
                    a: source.find_spot(&passage.source),
                    b: document.find_spot(&passage.document),
                    length: passage.document.len(),
                    similarity: round_share(passage.similarity()),
                    kind: passage.kind,
                })
                .collect(),
            share_of_a: source.share_of(covered(|passage| &passage.source)),
            share_of_b: document.share_of(copied),
            copied,
        }
    }

    /// Returns `true` if more than edits separate the texts, so that the passages show more than differences do: at
    /// least half of either text lies in no passage, or a passage is reworded.
    pub fn explain_more_than_differences(&self) -> bool {
        let is_reworded = |passage: &SharedPassage| passage.kind == PassageKind::Reworded;
        !self.passages.is_empty()
            && (self.share_of_a.min(self.share_of_b) < 0.5 || self.passages.iter().any(is_reworded))
    }

    /// Returns the passages as a tree of JSON, which takes several times the memory of their text. An answer with
    /// many passages is serialised instead.
    pub fn to_json(&self) -> Value {
        serde_json::to_value(self).expect("numbers and names serialise")
    }
}

/// Reads texts that all documents were given. `max_bytes` are the bytes of memory that the tokens of one may take.
///
/// # Errors
/// If a text has 4 GiB or more, or takes more memory.
pub fn read_base_texts(
    tokenizer: &SpanTokenizer,
    settings: PassageSettings,
    texts: &[impl AsRef<str>],
    max_bytes: usize,
) -> Result<BaseText> {
    let mut base = BaseText::new(settings);
    let mut tokens = SpannedTokens::default();
    let max_tokens = max_bytes / source_token_bytes(settings);
    for text in texts {
        tokenizer.tokenize_text_within(text.as_ref(), max_tokens, &mut tokens)?;
        base.add_text(tokens.values());
    }
    Ok(base)
}

/// Compares one document with others, one after another. The document is prepared once, however many others there
/// are; each other text is prepared for its comparison alone.
#[derive(Debug)]
pub struct SourceComparer<'t> {
    tokenizer: &'t SpanTokenizer,
    settings: PassageSettings,
    base: Option<&'t BaseText>,
    budget: Arc<PassageBudget>,
    finder: PassageFinder,
    document: ComparedText<'t>,
    /// Tokens of the other text, whose memory is kept.
    other_tokens: SpannedTokens,
    source: PassageSource,
    copies: Option<CopyFinder>,
}

/// The document of a [`SourceComparer`], prepared as the source of others, and the finder for them.
#[derive(Debug)]
struct CopyFinder {
    finder: PassageFinder,
    source: PassageSource,
}

impl<'t> SourceComparer<'t> {
    /// Prepares a document.
    ///
    /// # Errors
    /// If the text has 4 GiB or more.
    pub fn new(
        tokenizer: &'t SpanTokenizer,
        document: &'t ExtractedText,
        settings: PassageSettings,
    ) -> Result<Self> {
        let budget = Arc::new(PassageBudget::unlimited());
        Self::new_within(tokenizer, document, settings, None, budget)
    }

    /// Prepares a document, whose preparation and comparisons stay within a budget. Text of a base, if there is one, is
    /// no part of any passage.
    ///
    /// # Errors
    /// If the text has 4 GiB or more, or takes more memory or work than the budget has.
    pub fn new_within(
        tokenizer: &'t SpanTokenizer,
        document: &'t ExtractedText,
        settings: PassageSettings,
        base: Option<&'t BaseText>,
        budget: Arc<PassageBudget>,
    ) -> Result<Self> {
        let mut tokens = SpannedTokens::default();
        let max_tokens = budget.max_bytes() / document_token_bytes(settings);
        tokenizer.tokenize_text_within(&document.text, max_tokens, &mut tokens)?;
        budget.take_steps(preparation_steps(settings, tokens.len()))?;
        let mut finder = PassageFinder::new(settings);
        finder.set_document(tokens.values(), base);
        Ok(Self {
            tokenizer,
            settings,
            base,
            budget,
            finder,
            document: ComparedText::new(document, tokens),
            other_tokens: SpannedTokens::default(),
            source: PassageSource::default(),
            copies: None,
        })
    }

    /// Returns the tokens of the document.
    pub fn document_tokens(&self) -> &SpannedTokens {
        &self.document.tokens
    }

    /// Finds the passages that the document has from a source, which is the first text of the result.
    ///
    /// # Errors
    /// If the text has 4 GiB or more, or the comparison takes more memory or work than the budget has.
    pub fn find_passages(&mut self, source: &ExtractedText) -> Result<SharedPassages> {
        let mut tokens = std::mem::take(&mut self.other_tokens);
        self.read_other(&source.text, &mut tokens)?;
        self.source
            .set_tokens(tokens.values(), self.settings, self.base);
        let passages = self
            .finder
            .find_passages_within(&self.source, &self.budget)?;
        self.budget.take_steps(description_steps(passages.len()))?;
        if passages.is_empty() {
            self.other_tokens = tokens;
            return Ok(SharedPassages::default());
        }
        let source = ComparedText::new(source, tokens);
        let found = SharedPassages::describe_passages(&passages, [&source, &self.document]);
        self.other_tokens = source.tokens;
        Ok(found)
    }

    /// Finds the passages that another text has from the document, which is the first text of the result. The
    /// document is prepared as a source by the first call, which takes some 50 bytes of memory per token.
    ///
    /// # Errors
    /// If the text has 4 GiB or more, or the comparison takes more memory or work than the budget has.
    pub fn find_copies(&mut self, copying: &ExtractedText) -> Result<SharedPassages> {
        let mut tokens = std::mem::take(&mut self.other_tokens);
        self.read_other(&copying.text, &mut tokens)?;
        let (document, settings, base) = (&self.document.tokens, self.settings, self.base);
        let copies = self.copies.get_or_insert_with(|| {
            let mut source = PassageSource::default();
            source.set_tokens(document.values(), settings, base);
            CopyFinder {
                finder: PassageFinder::new(settings),
                source,
            }
        });
        copies.finder.set_document(tokens.values(), base);
        let passages = copies
            .finder
            .find_passages_within(&copies.source, &self.budget)?;
        self.budget.take_steps(description_steps(passages.len()))?;
        if passages.is_empty() {
            self.other_tokens = tokens;
            return Ok(SharedPassages::default());
        }
        let copying = ComparedText::new(copying, tokens);
        let found = SharedPassages::describe_passages(&passages, [&self.document, &copying]);
        self.other_tokens = copying.tokens;
        Ok(found)
    }
}

impl SourceComparer<'_> {
    /// Reads the tokens of the other text of a comparison, as far as the document leaves memory for them.
    fn read_other(&self, text: &str, tokens: &mut SpannedTokens) -> Result<()> {
        let of_document = document_token_bytes(self.settings) * self.document.tokens.len();
        let free = self.budget.max_bytes().saturating_sub(of_document);
        let max_tokens = free / source_token_bytes(self.settings);
        self.tokenizer
            .tokenize_text_within(text, max_tokens, tokens)?;
        self.budget
            .take_steps(preparation_steps(self.settings, tokens.len()))
    }
}

/// Returns the bytes of memory that a token of a document takes: its place, and what the finder has of it. For
/// reworded passages the tokens are sorted, too.
fn document_token_bytes(settings: PassageSettings) -> usize {
    if settings.finds_reworded() { 92 } else { 40 }
}

/// Returns the same for a token of a source, of which there is also a table of grams.
pub fn source_token_bytes(settings: PassageSettings) -> usize {
    document_token_bytes(settings) + 28
}

/// Returns the steps in which a text is read and prepared.
pub fn preparation_steps(settings: PassageSettings, tokens: usize) -> u64 {
    let per_token = if settings.finds_reworded() { 24 } else { 4 };
    per_token * tokens as u64
}

/// Returns the steps in which passages are described: characters and lines are counted from the last entry of a
/// [`PlaceIndex`] on, four times for each.
pub fn description_steps(passages: usize) -> u64 {
    1000 * passages as u64
}

/// A document with its tokens and the indices of its places.
#[derive(Debug)]
struct ComparedText<'t> {
    document: &'t ExtractedText,
    tokens: SpannedTokens,
    file: PlaceIndex,
    /// The places of the text, if they are not those of the file.
    text: Option<PlaceIndex>,
}

impl<'t> ComparedText<'t> {
    fn new(document: &'t ExtractedText, tokens: SpannedTokens) -> Self {
        let differs =
            document.has_byte_order_mark || matches!(document.origin, TextOrigin::Spans(_));
        Self {
            document,
            tokens,
            file: PlaceIndex::new(document.original_text()),
            text: differs.then(|| PlaceIndex::new(&document.text)),
        }
    }

    fn share_of(&self, tokens: usize) -> f64 {
        round_share(tokens as f64 / self.tokens.len().max(1) as f64)
    }

    fn find_spot(&self, range: &Range<usize>) -> PassageSpot {
        let text = &*self.document.text;
        let bytes = to_visible_characters(text, self.tokens.byte_range(range.clone()));
        let count = |places: &PlaceIndex| {
            let [start, end] =
                [bytes.start, bytes.end].map(|byte| places.count_characters(text, byte));
            start..end
        };
        PassageSpot {
            characters: file_characters(self.document, &self.file, &bytes),
            line: file_line(self.document, &self.file, &bytes),
            text_characters: self.text.as_ref().map(count),
            bytes,
        }
    }
}

/// Rounds a share to four digits, as tables show it.
pub fn round_share(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_lead_to_the_passage() {
        let passage = "清晨六點，老船長已經把纜繩解開了，岸上的人都知道他今天要去東邊的小島";
        let copy = "清晨六点老船长已经把缆绳解开了。岸上的人都知道他今天要去东边的小岛";
        let (a, b) = (format!("序🏝️。\n{passage}。"), format!("他说：{copy}！"));
        let shared =
            SharedPassages::find_all(&Recipe::default(), [&a, &b], PassageSettings::default());
        let shared = shared.unwrap();
        assert_eq!(shared.passages.len(), 1);
        let SharedPassage {
            a: of_a,
            b: of_b,
            kind,
            ..
        } = &shared.passages[0];
        assert_eq!(
            (&a[of_a.bytes.clone()], &b[of_b.bytes.clone()]),
            (passage, copy)
        );
        assert_eq!(
            (of_a.characters.start, of_a.line, *kind),
            (5, 2, PassageKind::Verbatim)
        );
        assert!(!shared.explain_more_than_differences());
        let none =
            SharedPassages::find_all(&Recipe::default(), ["", "船"], PassageSettings::default());
        assert_eq!(none.unwrap(), SharedPassages::default());
    }

    #[test]
    fn text_of_a_base_is_not_shared() {
        let question =
            "why did the ferry leave the island at seven although nobody had asked for it";
        let answer = "because the mail was on board and the captain never waited for anyone at all";
        let (a, b) = (
            format!("{question}? {answer}."),
            format!("My answer to {question}: {answer}!"),
        );
        let (recipe, settings) = (Recipe::default(), PassageSettings::default());
        let both = SharedPassages::find_all(&recipe, [&a, &b], settings).unwrap();
        assert_eq!((both.passages.len(), both.copied), (1, 30));
        let shared =
            SharedPassages::find_all_beside(&recipe, [&a, &b], settings, &[question]).unwrap();
        assert_eq!((shared.passages.len(), shared.copied), (1, 15));
        assert_eq!(&b[shared.passages[0].b.bytes.clone()], answer);
        let nothing: [&str; 0] = [];
        let whole = SharedPassages::find_all_beside(&recipe, [&a, &b], settings, &nothing).unwrap();
        assert_eq!(whole, both);
        let none = SharedPassages::find_all_beside(&recipe, [&a, &b], settings, &[&a]).unwrap();
        assert_eq!(none, SharedPassages::default());
    }

    #[test]
    fn document_is_compared_in_both_directions() {
        let (recipe, settings) = (Recipe::default(), PassageSettings::new(4).unwrap());
        let texts = [
            "The ferry leaves at seven. Nobody on the island misses it, because the mail is on it.",
            "Nobody on the whole island misses it because the mail is on it! the ferry leaves at seven",
            "清晨六點，老船長已經把纜繩解開了。",
            "他说：清晨六点老船长已经把缆绳解开了！",
            "",
        ];
        let texts = texts.map(|text| ExtractedText::from_plain_text(text.to_owned()));
        let tokenizer = SpanTokenizer::new(&recipe);
        let mut found = 0;
        for document in &texts {
            let mut comparer = SourceComparer::new(&tokenizer, document, settings).unwrap();
            for other in texts.iter().chain(&texts) {
                let whole = |pair| SharedPassages::find_in_documents(&recipe, pair, settings);
                let sources = comparer.find_passages(other).unwrap();
                assert_eq!(sources, whole([other, document]).unwrap());
                let copies = comparer.find_copies(other).unwrap();
                assert_eq!(copies, whole([document, other]).unwrap());
                found += copies.passages.len();
            }
        }
        assert!(found >= 2 * (4 + 4), "{found}");
    }
}
