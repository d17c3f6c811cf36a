//! Tokens of items and documents.

use std::ops::Range;

use super::markup_places::find_markup;
use crate::Recipe;
use crate::error::Result;
use crate::recipe::NormalizationStep;
use crate::text::{SpanTokenizer, SpannedTokens};

/// Cuts texts into normalised words, and single characters of scripts without spaces. Tags of HTML, commands of LaTeX
/// and entities are left out. Case, punctuation, width and the Chinese script do not matter.
///
/// ```
/// use lookalike::contamination::ItemTokenizer;
///
/// let mut tokenizer = ItemTokenizer::new();
/// let plain = tokenizer.tokenize_text("What is 2 + 3? 臺灣")?.values().to_vec();
/// let marked = tokenizer.tokenize_text("<b>WHAT</b> is $2 \\cdot 3$? 台湾")?.values();
/// assert_eq!(plain, marked);
/// # Ok::<_, lookalike::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct ItemTokenizer {
    tokenizer: SpanTokenizer,
    tokens: SpannedTokens,
    markup: Vec<Range<usize>>,
}

impl Default for ItemTokenizer {
    fn default() -> Self {
        Self::new()
    }
}

impl ItemTokenizer {
    /// Creates a tokenizer with buffers of its own.
    pub fn new() -> Self {
        let mut recipe = Recipe::default();
        recipe.normalize.push(NormalizationStep::Variants);
        Self {
            tokenizer: SpanTokenizer::new(&recipe),
            tokens: SpannedTokens::default(),
            markup: Vec::new(),
        }
    }

    /// Returns the tokens of a text. They stay until the next call.
    ///
    /// # Errors
    /// [`ErrorKind::Limit`](crate::ErrorKind::Limit) if the text has 4 GiB or more.
    pub fn tokenize_text(&mut self, text: &str) -> Result<&SpannedTokens> {
        self.tokenizer.tokenize_text(text, &mut self.tokens)?;
        find_markup(text, &mut self.markup);
        self.tokens.remove_within(&self.markup);
        Ok(&self.tokens)
    }

    /// Returns the tokens of the last text.
    pub(super) fn last_tokens(&self) -> &SpannedTokens {
        &self.tokens
    }
}
