//! Tokens with their spelling, for recipes whose tokens depend on it: words cut by jieba, filters.
//!
//! The table of document frequencies and the list of a text's tokens use the same code, because they show
//! terms.

use super::charmap::CharMap;
use super::layout::{PieceKind, TextLayout};
use super::segment::WordSegmenter;
use crate::hash;
use crate::recipe::{CONTENT_TAGS, LoadedFiles, Recipe, STOPWORD_LISTS, SegmentRecipe, TokenKind};
use crate::text::weight::HashLookup;

/// A token with its spelling after normalisation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpelledTerm<'a> {
    /// The text.
    pub text: &'a str,
    /// The value from which features are computed.
    pub value: u64,
    /// Part of speech, if it was requested and the recipe can tell it.
    pub part: Option<&'a str>,
}

/// Buffers for [`TermSpeller::visit_terms`].
#[derive(Debug, Default)]
pub(super) struct TermBuffers {
    layout: TextLayout,
    batch: String,
}

/// Produces the terms of texts under one recipe.
#[derive(Debug)]
pub(super) struct TermSpeller {
    segmenter: Option<WordSegmenter>,
    least_characters: usize,
    stopwords: HashLookup,
    parts: Vec<String>,
    /// `true` if nothing is filtered out.
    keeps_all: bool,
}

impl TermSpeller {
    pub(super) fn new(recipe: &Recipe, map: &CharMap) -> Self {
        let loaded = recipe.loaded_files();
        let filter = &recipe.filter;
        let parts = filter.parts.iter().flat_map(|part| match &**part {
            "content" => CONTENT_TAGS.map(str::to_owned).to_vec(),
            _ => vec![part.clone()],
        });
        Self {
            segmenter: (recipe.tokens == TokenKind::Jieba)
                .then(|| build_segmenter(recipe, map, &loaded)),
            least_characters: filter.least_characters as usize,
            stopwords: build_stopwords(recipe, map, &loaded),
            parts: parts.collect(),
            keeps_all: filter.is_empty(),
        }
    }

    /// Calls `visit` with every term of a text without markup that passes the filters. With `tags` it
    /// includes parts of speech.
    pub(super) fn visit_terms(
        &self,
        recipe: &Recipe,
        map: &CharMap,
        text: &str,
        buffers: &mut TermBuffers,
        tags: bool,
        mut visit: impl FnMut(SpelledTerm<'_>),
    ) {
        let TermBuffers { layout, batch } = buffers;
        layout.lay_out_text(recipe, map, text);
        let token = |text: &str, value: u64, part: Option<&str>| {
            if self.is_counted(text, value, part) {
                visit(SpelledTerm { text, value, part });
            }
        };
        let tags = tags || !self.parts.is_empty();
        match &self.segmenter {
            Some(segmenter) => segmenter.visit_tokens(layout, batch, tags, token),
            None => {
                let mut token = token;
                for (piece, kind) in layout.pieces() {
                    token(piece, term_value(piece, kind), None);
                }
            }
        }
    }

    #[inline]
    fn is_counted(&self, text: &str, value: u64, part: Option<&str>) -> bool {
        if self.keeps_all {
            return true;
        }
        let long =
            self.least_characters < 2 || text.chars().nth(self.least_characters - 1).is_some();
        long && self.stopwords.get(value).is_none()
            && (self.parts.is_empty()
                || part.is_some_and(|part| self.parts.iter().any(|own| part.starts_with(&**own))))
    }
}

#[inline]
pub(super) fn term_value(text: &str, kind: PieceKind) -> u64 {
    match (kind, text.chars().next()) {
        (PieceKind::Character, Some(point)) => u64::from(point as u32),
        _ => hash::hash_word(text.as_bytes()),
    }
}

/// Returns the piece that a word of a list becomes after normalisation, or `None` if the recipe splits it,
/// because it can then never be a token.
fn normalized_piece<'l>(
    recipe: &Recipe,
    map: &CharMap,
    word: &str,
    layout: &'l mut TextLayout,
) -> Option<(&'l str, PieceKind)> {
    layout.lay_out_text(recipe, map, word);
    let mut pieces = layout.pieces();
    let piece = pieces.next();
    piece.filter(|_| pieces.next().is_none())
}

fn build_segmenter(recipe: &Recipe, map: &CharMap, loaded: &LoadedFiles) -> WordSegmenter {
    let standard = SegmentRecipe::default();
    let segment = recipe.segment.as_ref().unwrap_or(&standard);
    let mut layout = TextLayout::default();
    let mut words = Vec::new();
    for word in &loaded.words {
        if let Some((normalised, _)) = normalized_piece(recipe, map, &word.word, &mut layout) {
            let mut own = word.clone();
            normalised.clone_into(&mut own.word);
            words.push(own);
        }
    }
    WordSegmenter::new(segment.mode, segment.hmm, &words)
}

fn build_stopwords(recipe: &Recipe, map: &CharMap, loaded: &LoadedFiles) -> HashLookup {
    let named = (recipe.filter.stopwords.iter())
        .filter(|name| STOPWORD_LISTS.contains(&name.as_str()))
        .flat_map(|name| stop_words::lookup(name).unwrap_or_default())
        .copied();
    let mut layout = TextLayout::default();
    let mut values = Vec::new();
    for word in named.chain(loaded.stopwords.iter().map(String::as_str)) {
        if let Some((text, kind)) = normalized_piece(recipe, map, word, &mut layout) {
            let kind = match kind {
                PieceKind::Run => super::segment::kind_of_word(text),
                kind => kind,
            };
            values.push((term_value(text, kind), 1));
        }
    }
    HashLookup::new(values)
}
