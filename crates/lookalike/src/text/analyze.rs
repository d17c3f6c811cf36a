//! Analysis of a text under a recipe: tokens, text state, key and weights.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, OnceLock, Weak};

use super::charmap::{AsciiRules, CharMap};
use super::layout::{PieceKind, TextLayout};
use super::normalize::{self, CharacterRole, TextToken};
use super::sentences::LongSentence;
use super::sort::sort_distinct;
use super::terms::{self, SpelledTerm, TermBuffers, TermSpeller};
use super::tokenize::{TokenBuffers, TokenizeKernel};
use super::{characters, markup, segment, sentences, shingle};
use crate::arch::Cpu;
use crate::compat::{self, CompatTool, ForeignVotes, TextRemainder};
use crate::forms::{self, FormId, FormIndex, FormMatch, FormTable};
use crate::hash;
use crate::recipe::{MarkupKind, Recipe, RecipeId, TokenKind, WeightScheme};
use crate::text::weight::{
    FeatureWeighting, WEIGHT_STEPS, WeightingBuffers, keep_heaviest, weight_in_steps,
};

/// The state of a text: how much of it can be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextState {
    /// At least one feature, so the text has fingerprints.
    Fingerprintable,
    /// Tokens, but fewer than an n-gram needs. The text matches only texts with the same tokens.
    TooShort,
    /// Some text, but no tokens. The text matches only texts that are equal as they are, except for white
    /// space at the ends.
    SymbolsOnly,
    /// Nothing but white space. The text matches nothing.
    Empty,
}

impl TextState {
    /// Returns the name of the state in reports.
    pub fn state_name(self) -> &'static str {
        match self {
            Self::Fingerprintable => "fingerprintable",
            Self::TooShort => "too_short",
            Self::SymbolsOnly => "symbols_only",
            Self::Empty => "empty",
        }
    }
}

/// Buffers for [`TextAnalyzer::analyze_text`], which are reused from text to text.
#[derive(Debug, Default)]
pub struct AnalysisScratch {
    buffers: TokenBuffers,
    characters: Vec<char>,
    compat: compat::CompatBuffers,
    terms: TermBuffers,
    features: Vec<u64>,
    weighed: WeightingBuffers,
    symbols: Vec<u32>,
    compared_text: String,
}

/// Analyses texts under one recipe. It is cheap to share between threads.
///
/// ```
/// use lookalike::Recipe;
/// use lookalike::text::{TextAnalyzer, AnalysisScratch, TextState};
///
/// let analyzer = TextAnalyzer::new(&Recipe::built_in("default")?);
/// let (mut scratch, mut features) = (AnalysisScratch::default(), Vec::new());
/// let analysis = analyzer.analyze_text("The boat left at dawn.", &mut scratch);
/// analysis.append_features(&mut features);
/// // Five words have four pairs of adjacent words.
/// assert_eq!((analysis.state, features.len()), (TextState::Fingerprintable, 4));
/// // One word has none.
/// assert_eq!(analyzer.analyze_text("Boat!", &mut scratch).state, TextState::TooShort);
/// # Ok::<_, lookalike::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct TextAnalyzer {
    tables: Arc<AnalyzerTables>,
    cpu: Cpu,
    extras: AnalysisExtras,
}

/// Everything that an analyzer derives from its recipe.
#[derive(Debug)]
struct AnalyzerTables {
    recipe: Recipe,
    /// Identity of the recipe, computed on first use.
    id: OnceLock<RecipeId>,
    map: Arc<CharMap>,
    ascii: Option<AsciiRules>,
    speller: TermSpeller,
    /// `true` if tokens depend on their spelling, so that the fast path cannot compute them.
    spelled: bool,
    weighting: Option<FeatureWeighting>,
    tool: Option<CompatTool>,
    forms: FormIndex,
}

/// The tables of all analyzers that exist.
static TABLES_IN_USE: Mutex<Vec<Weak<AnalyzerTables>>> = Mutex::new(Vec::new());

impl AnalyzerTables {
    /// Returns the tables of an analyzer that exists and has an equal recipe, or makes them.
    fn shared_tables(recipe: &Recipe) -> Arc<Self> {
        if let Some(tables) = Self::find_tables(recipe) {
            return tables;
        }
        let tables = Arc::new(Self::new(recipe));
        if let Ok(mut in_use) = TABLES_IN_USE.try_lock() {
            in_use.retain(|tables| tables.strong_count() > 0);
            in_use.push(Arc::downgrade(&tables));
        }
        tables
    }

    fn find_tables(recipe: &Recipe) -> Option<Arc<Self>> {
        // Without waiting, because in a process that forks nobody may ever release the lock.
        let in_use = TABLES_IN_USE.try_lock().ok()?;
        let mut tables = in_use.iter().filter_map(Weak::upgrade);
        tables.find(|tables| tables.recipe == *recipe)
    }

    fn new(recipe: &Recipe) -> Self {
        let map = CharMap::shared_map(recipe);
        let without_forms = Self {
            recipe: recipe.clone(),
            id: OnceLock::new(),
            ascii: map.ascii_rules(),
            speller: TermSpeller::new(recipe, &map),
            spelled: recipe.tokens == TokenKind::Jieba || !recipe.filter.is_empty(),
            weighting: FeatureWeighting::new(recipe, term_to_feature(recipe, &map)),
            tool: CompatTool::new(recipe),
            forms: FormIndex::default(),
            map,
        };
        match &recipe.loaded_files().forms {
            Some(table) => without_forms.with_forms(table),
            None => without_forms,
        }
    }

    /// Returns the tables with the index of a table of forms, whose frames have the tokens of these tables.
    fn with_forms(self, table: &FormTable) -> Self {
        let analyzer = TextAnalyzer {
            tables: Arc::new(self),
            cpu: Cpu::detect_best(),
            extras: AnalysisExtras::default(),
        };
        let mut scratch = AnalysisScratch::default();
        let recipe = &analyzer.tables.recipe;
        let forms = FormIndex::new(recipe, table, |part, tokens| {
            tokens.extend_from_slice(analyzer.analyze_text(part, &mut scratch).token_values());
        });
        let tables = Arc::into_inner(analyzer.tables).expect("the analyzer was not cloned");
        Self { forms, ..tables }
    }
}

/// Optional parts of an analysis, besides tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AnalysisExtras {
    /// `true` to include the normalised characters.
    pub characters: bool,
    /// Number of longest sentences of which to include a signature.
    pub sentences: Option<usize>,
}

/// The tokens of a text and the values derived from them.
#[derive(Clone, Copy, Debug)]
pub struct TextAnalysis<'a> {
    /// The state of the text.
    pub state: TextState,
    /// Hash of the text, equal for texts that are equal after normalisation. About 64 of its 128 bits protect
    /// against accidental collisions.
    pub key: u128,
    tokens: &'a [u64],
    /// Features with their weights, unless the weights are just the numbers of occurrences.
    weighted: Option<&'a [(u64, i64)]>,
    /// `true` if a feature without a weight of its own weighs 1, however often it occurs.
    binary: bool,
    ngram: usize,
    /// The votes by the rule of another tool. With them, the tokens are the hashes that vote.
    foreign_votes: Option<ForeignVotes<'a>>,
    characters: &'a [u32],
    sentences: Option<u64>,
    forms: &'a FormIndex,
    /// The beginning of the text without markup, by which it is compared with others; empty if the recipe has no forms, or if
    /// features were given.
    compared_text: &'a str,
}

/// Domains of keys: keys of different domains never match.
const TOKEN_DOMAIN: u64 = 1;
const RAW_DOMAIN: u64 = 2;
const WEIGHT_DOMAIN: u64 = 5;

impl TextAnalyzer {
    /// Creates an analyzer that uses the fastest instructions of this CPU.
    ///
    /// Analyzers of equal recipes share their tables as long as one of them exists. So a program that analyses one
    /// text after another keeps an analyzer and makes further ones at no cost. Without one, a recipe with a table of
    /// weights takes a pass over that table. The first analyzer with words cut by jieba loads the dictionary, which
    /// takes about 100 ms.
    ///
    /// # Panics
    /// If the recipe names files and was not made by [`Recipe::read_recipe`], which reads them.
    pub fn new(recipe: &Recipe) -> Self {
        Self::with_cpu(recipe, Cpu::detect_best())
    }

    /// Creates an analyzer that uses the given instructions. The results are the same.
    ///
    /// # Panics
    /// As for [`new`](Self::new).
    pub fn with_cpu(recipe: &Recipe, cpu: Cpu) -> Self {
        Self {
            tables: AnalyzerTables::shared_tables(recipe),
            cpu,
            extras: AnalysisExtras::default(),
        }
    }

    /// Returns the same analyzer with optional parts in its analyses of texts.
    pub fn with_extras(self, extras: AnalysisExtras) -> Self {
        Self { extras, ..self }
    }

    /// Returns the same analyzer, with the same tables, for other instructions.
    #[cfg(test)]
    pub(super) fn with_instructions(&self, cpu: Cpu) -> Self {
        Self {
            cpu,
            ..self.clone()
        }
    }

    /// Returns the recipe.
    pub fn recipe(&self) -> &Recipe {
        &self.tables.recipe
    }

    /// Returns the identity of the recipe, as [`Recipe::recipe_id`] does. The tables keep it.
    pub fn recipe_id(&self) -> RecipeId {
        let compute = || self.tables.recipe.recipe_id();
        *self.tables.id.get_or_init(compute)
    }

    /// Returns the number of forms in the recipe's table.
    pub fn form_count(&self) -> usize {
        self.tables.forms.form_count()
    }

    /// Returns the name of a form of the recipe's table.
    pub fn form_name(&self, form: FormId) -> Option<&str> {
        self.tables.forms.name_of_form(form)
    }

    /// Returns the instruction set in use.
    pub fn cpu(&self) -> Cpu {
        self.cpu
    }

    /// Analyses a text.
    ///
    /// Cost: about one nanosecond per byte if no character depends on its neighbours; some tens of
    /// nanoseconds per byte otherwise, and for words cut by jieba. Weights from a table, and a limit on the
    /// number of features that vote, cost a sort of the features.
    pub fn analyze_text<'a>(
        &'a self,
        text: &str,
        scratch: &'a mut AnalysisScratch,
    ) -> TextAnalysis<'a> {
        let plain = self.without_markup(text);
        self.read_extras(&plain, scratch);
        self.keep_compared_text(&plain, scratch);
        let sentences = self.sentence_signature(&plain);
        if let Some(tool) = &self.tables.tool {
            let AnalysisScratch {
                compat, symbols, ..
            } = scratch;
            return TextAnalysis {
                characters: symbols,
                sentences,
                ..self.analyze_by(tool, text, compat)
            };
        }
        if self.tables.spelled {
            self.spell_text(&plain, scratch);
        } else {
            self.tokenize_text(&plain, scratch);
        }
        let AnalysisScratch {
            buffers,
            features,
            weighed,
            symbols,
            compared_text,
            ..
        } = scratch;
        let analysis = self.finish_analysis(text, &buffers.tokens);
        let weighted = self.tables.weighting.as_ref().map(|weighting| {
            features.clear();
            features.resize(analysis.feature_count(), 0);
            shingle::hash_shingles(analysis.ngram, analysis.tokens, features);
            weighting.weigh_features(features, weighed);
            &*weighed.features
        });
        TextAnalysis {
            weighted,
            characters: symbols,
            sentences,
            compared_text,
            ..analysis
        }
    }

    fn keep_compared_text(&self, plain: &str, scratch: &mut AnalysisScratch) {
        scratch.compared_text.clear();
        if self.tables.forms.compares_contents() {
            let beginning = forms::compared_part(plain);
            scratch.compared_text.push_str(beginning);
        }
    }

    fn read_extras(&self, plain: &str, scratch: &mut AnalysisScratch) {
        scratch.symbols.clear();
        if !self.extras.characters {
            return;
        }
        match &self.tables.tool {
            Some(tool) => tool.characters(plain, &mut scratch.symbols),
            None => characters::append_characters(
                &self.tables.recipe,
                &self.tables.map,
                plain,
                &mut scratch.symbols,
            ),
        }
    }

    fn sentence_signature(&self, plain: &str) -> Option<u64> {
        let count = self.extras.sentences?;
        sentences::sentence_signature(&self.tables.recipe, &self.tables.map, plain, count)
    }

    /// Returns the longest sentences of a text, longest first: `count` of them, or fewer if the text has
    /// fewer. [`sentence_signature`](TextAnalysis::sentence_signature) is the signature of the same ones.
    pub fn longest_sentences(&self, text: &str, count: usize) -> Vec<LongSentence> {
        sentences::longest_sentences(
            &self.tables.recipe,
            &self.tables.map,
            &self.without_markup(text),
            count,
        )
    }

    fn tokenize_text(&self, plain: &str, scratch: &mut AnalysisScratch) {
        let AnalysisScratch {
            buffers,
            characters,
            ..
        } = scratch;
        buffers.trim_buffers();
        let tokenize = TokenizeKernel {
            map: &self.tables.map,
            ascii: self.tables.ascii,
            text: plain,
            buffers,
        };
        if !self.cpu.run(tokenize) {
            buffers.tokens.clear();
            normalize::characters(&self.tables.recipe, plain, characters);
            normalize::cut_tokens(&self.tables.recipe, characters, |token| {
                buffers.tokens.push(token.token_value());
            });
        }
    }

    fn spell_text(&self, plain: &str, scratch: &mut AnalysisScratch) {
        let AnalysisScratch { buffers, terms, .. } = scratch;
        buffers.trim_buffers();
        let tokens = &mut buffers.tokens;
        tokens.clear();
        let (recipe, map) = (&self.tables.recipe, &*self.tables.map);
        self.tables
            .speller
            .visit_terms(recipe, map, plain, terms, false, |term| {
                tokens.push(term.value)
            });
    }

    /// Calls `visit` with the spelling of every token of a text, in the order of the text. With `tags` it
    /// includes parts of speech, if the recipe can tell them.
    ///
    /// Cost: some nanoseconds per byte, and the time of jieba if the recipe uses it.
    pub fn visit_terms(
        &self,
        text: &str,
        scratch: &mut AnalysisScratch,
        tags: bool,
        visit: &mut dyn FnMut(SpelledTerm<'_>),
    ) {
        if let Some(tool) = &self.tables.tool {
            let values = self.analyze_text(text, scratch).token_values().to_vec();
            for (text, value) in tool.list_features(text).iter().zip(values) {
                let part = None;
                visit(SpelledTerm { text, value, part });
            }
            return;
        }
        let plain = self.without_markup(text);
        let (recipe, map) = (&self.tables.recipe, &*self.tables.map);
        self.tables
            .speller
            .visit_terms(recipe, map, &plain, &mut scratch.terms, tags, visit);
    }

    /// Analyses a text that the caller has cut into features. Every string is one feature, whatever the
    /// n-gram of the recipe. Weights count in SimHash and the cosine. They must be above 0 and at most
    /// [`MOST_WEIGHT`](crate::text::weight::MOST_WEIGHT), and are rounded to steps of 1/65,536. Tables of the
    /// recipe do not apply, because they are about the recipe's own terms.
    pub fn analyze_features<'a, 'f>(
        &'a self,
        features: impl IntoIterator<Item = (&'f str, f64)>,
        scratch: &'a mut AnalysisScratch,
    ) -> TextAnalysis<'a> {
        let AnalysisScratch {
            buffers: TokenBuffers { tokens, .. },
            weighed: WeightingBuffers {
                features: weighed, ..
            },
            compat,
            ..
        } = scratch;
        tokens.clear();
        weighed.clear();
        let features = features.into_iter().map(|(feature, weight)| {
            weighed.push((0, weight_in_steps(weight)));
            (feature, weight)
        });
        let (tokens, foreign_votes) = match &self.tables.tool {
            None => {
                tokens.extend(features.map(|(feature, _)| hash::hash_word(feature.as_bytes())));
                (&tokens[..], None)
            }
            Some(tool) => {
                tool.analyze_features(self.cpu, features, compat);
                (&compat.low[..], tool.feature_votes(compat))
            }
        };
        let mut weighted = weighed.iter().any(|&(_, weight)| weight != WEIGHT_STEPS);
        // Two such texts are equal only if their weights are equal too.
        let weights_key = if weighted {
            let weights: Vec<u64> = weighed.iter().map(|&(_, weight)| weight as u64).collect();
            hash::hash_sequence(WEIGHT_DOMAIN, &weights)
        } else {
            0
        };
        for ((feature, _), token) in weighed.iter_mut().zip(tokens) {
            *feature = shingle::hash_single_token(*token);
        }
        // Under a scheme, `top` is about the words of texts, not about given features.
        if let Some(top) = self.tables.recipe.simhash.top
            && self.tables.tool.is_none()
        {
            weighted = true;
            sum_of_equal(weighed, 0, i64::saturating_add);
            keep_heaviest(weighed, top as usize);
        }
        let analysis = self.finish_analysis("", tokens);
        let state = if tokens.is_empty() {
            TextState::Empty
        } else {
            TextState::Fingerprintable
        };
        TextAnalysis {
            state,
            key: analysis.key ^ weights_key,
            ngram: 1,
            weighted: weighted.then_some(weighed),
            foreign_votes,
            ..analysis
        }
    }

    /// Analyses a text under another tool's scheme. The tool's features become the tokens.
    fn analyze_by<'a>(
        &'a self,
        tool: &CompatTool,
        text: &str,
        buffers: &'a mut compat::CompatBuffers,
    ) -> TextAnalysis<'a> {
        let rest = tool.analyze_text(self.cpu, text, buffers);
        let foreign_votes = tool.text_votes(buffers);
        let analysis = TextAnalysis {
            weighted: tool.weighs_features().then_some(&buffers.weighed),
            ..self.finish_analysis(text, &buffers.low)
        };
        match rest {
            TextRemainder::None => TextAnalysis {
                foreign_votes,
                ..analysis
            },
            TextRemainder::Words(words) => TextAnalysis {
                state: TextState::TooShort,
                key: hash::hash_sequence(TOKEN_DOMAIN, &[words]),
                foreign_votes,
                ..analysis
            },
        }
    }

    /// Returns the tokens as text, by the definition. Under a scheme these are its features, and their hashes
    /// are the scheme's, not [`TextToken::token_value`].
    pub fn list_tokens(&self, text: &str) -> Vec<TextToken> {
        if let Some(tool) = &self.tables.tool {
            let features = tool.list_features(text);
            return features.into_iter().map(TextToken::Word).collect();
        }
        let mut tokens = Vec::new();
        if self.tables.spelled {
            self.visit_terms(text, &mut AnalysisScratch::default(), false, &mut |term| {
                tokens.push(TextToken::from_term(term));
            });
            return tokens;
        }
        let mut characters = Vec::new();
        normalize::characters(
            &self.tables.recipe,
            &self.without_markup(text),
            &mut characters,
        );
        normalize::cut_tokens(&self.tables.recipe, &characters, |token| tokens.push(token));
        tokens
    }

    fn without_markup<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match self.tables.recipe.markup {
            MarkupKind::None => Cow::Borrowed(text),
            MarkupKind::Markdown => Cow::Owned(markup::from_markdown(text)),
            MarkupKind::Html => Cow::Owned(markup::strip_html(text)),
        }
    }

    fn finish_analysis<'a>(&'a self, text: &str, tokens: &'a [u64]) -> TextAnalysis<'a> {
        let ngram = self.tables.recipe.ngram as usize;
        let raw = text.trim();
        let (state, key) = if tokens.is_empty() && raw.is_empty() {
            (TextState::Empty, 0)
        } else if tokens.is_empty() {
            (
                TextState::SymbolsOnly,
                hash::hash_bytes(RAW_DOMAIN, raw.as_bytes()),
            )
        } else {
            let state = if tokens.len() < ngram {
                TextState::TooShort
            } else {
                TextState::Fingerprintable
            };
            (state, hash::hash_sequence(TOKEN_DOMAIN, tokens))
        };
        TextAnalysis {
            state,
            key,
            tokens,
            weighted: None,
            binary: self.tables.recipe.simhash.weights == WeightScheme::Binary,
            ngram,
            foreign_votes: None,
            characters: &[],
            sentences: None,
            forms: &self.tables.forms,
            compared_text: "",
        }
    }
}

/// Sorts the entries from `start` on by feature, and merges the weights of equal features with `sum`.
fn sum_of_equal(weighed: &mut Vec<(u64, i64)>, start: usize, sum: impl Fn(i64, i64) -> i64) {
    weighed[start..].sort_unstable_by_key(|&(feature, _)| feature);
    let mut kept = start;
    for at in start..weighed.len() {
        let (feature, weight) = weighed[at];
        if kept > start && weighed[kept - 1].0 == feature {
            weighed[kept - 1].1 = sum(weighed[kept - 1].1, weight);
        } else {
            weighed[kept] = (feature, weight);
            kept += 1;
        }
    }
    weighed.truncate(kept);
}

/// Returns the features of terms of a table that was not learned by lookalike; `None` for a term that the
/// recipe never produces.
pub(crate) fn features_of_terms<'t>(
    recipe: &Recipe,
    terms: impl Iterator<Item = &'t str>,
) -> Vec<Option<u64>> {
    let map = CharMap::shared_map(recipe);
    let mut feature = term_to_feature(recipe, &map);
    terms.map(|term| feature(term, false)).collect()
}

/// Returns a function that maps a term of a table to its feature. Terms of a table that was learned under the
/// recipe are tokens separated by spaces and are used unchanged; all others are normalised first. A term that
/// the recipe never produces has no feature.
fn term_to_feature<'r>(
    recipe: &'r Recipe,
    map: &'r CharMap,
) -> impl FnMut(&str, bool) -> Option<u64> + 'r {
    let mut layout = TextLayout::default();
    let mut tokens = Vec::new();
    let is_character = |token: &str| {
        let mut points = token.chars();
        points.next().is_some_and(|point| {
            points.next().is_none()
                && normalize::character_role(recipe, point) == CharacterRole::Character
        })
    };
    let own = move |token: &str| {
        let kind = if is_character(token) {
            PieceKind::Character
        } else {
            PieceKind::Word
        };
        terms::term_value(token, kind)
    };
    move |term, learned| {
        tokens.clear();
        if learned && recipe.tokens == TokenKind::Characters {
            tokens.extend(term.chars().map(|point| u64::from(point as u32)));
        } else if learned {
            tokens.extend(term.split(' ').map(own));
        } else {
            layout.lay_out_text(recipe, map, term);
            tokens.extend(layout.pieces().map(|(text, kind)| match kind {
                PieceKind::Run => terms::term_value(text, segment::kind_of_word(text)),
                kind => terms::term_value(text, kind),
            }));
            // A normalised text has no blanks at its ends, but a feature within a text may have them.
            if recipe.tokens == TokenKind::Characters && tokens.len() < recipe.ngram as usize {
                let blank = u64::from(' ');
                if term.starts_with(' ') {
                    tokens.insert(0, blank);
                }
                if term.ends_with(' ') {
                    tokens.push(blank);
                }
            }
        }
        if tokens.len() != recipe.ngram as usize {
            return None;
        }
        let mut feature = [0];
        shingle::hash_shingles(tokens.len(), &tokens, &mut feature);
        Some(feature[0])
    }
}

impl TextAnalysis<'_> {
    /// Returns the value of every token, in the order of the text.
    pub fn token_values(&self) -> &[u64] {
        self.tokens
    }

    /// Appends the identity of the text's form and a hash of the value of each slot; nothing if the text is of no form of
    /// the recipe's table.
    ///
    /// Cost: some look-ups per token, and the alignment of the tokens with a few frames.
    pub(crate) fn append_form_values(&self, into: &mut Vec<u64>) {
        self.forms.append_values(self.tokens, into);
    }

    /// Returns the form of the text and the places of its values in its tokens.
    pub(crate) fn find_form(&self) -> Option<FormMatch> {
        self.forms.find_form(self.tokens)
    }

    /// Returns the spelling of tokens at some places. Returns `None` if these tokens have no places in the text, because
    /// they are not words and characters, or are behind the part of the text that is compared.
    pub(crate) fn spell_places(&self, places: &[std::ops::Range<usize>]) -> Option<Vec<String>> {
        self.forms
            .spell_places(self.compared_text, self.tokens, places)
    }

    /// Returns the form of the text, if it is of a form of the recipe's table.
    ///
    /// Cost: some look-ups per token, and the alignment of the tokens with a few frames.
    pub fn form_id(&self) -> Option<FormId> {
        let mut values = Vec::new();
        self.append_form_values(&mut values);
        FormId::from_values(&values)
    }

    /// Appends the tokens by which titles and numbers are compared, those of [`forms::find_difference`]; nothing if the
    /// recipe has no forms.
    pub(crate) fn append_marked_tokens(&self, into: &mut Vec<u64>) {
        self.forms.append_marked_tokens(self.compared_text, into);
    }

    /// Returns the spelling of some of the tokens of [`append_marked_tokens`](Self::append_marked_tokens).
    pub(crate) fn spell_compared_tokens(&self, tokens: std::ops::Range<usize>) -> &str {
        self.forms.spell_tokens(self.compared_text, tokens)
    }

    /// Returns the normalised characters as code points if the analyzer was asked for them: the characters of
    /// the tokens with one space between two words. Under another tool's scheme they are the characters from
    /// which the tool makes features. Empty if features were given.
    pub fn characters(&self) -> &[u32] {
        self.characters
    }

    /// Returns the signature of the longest sentences if the analyzer was asked for it and the text has
    /// sentences.
    pub fn sentence_signature(&self) -> Option<u64> {
        self.sentences
    }

    /// Appends the distinct features with their weights, ascending by feature. The weight is the sum of the
    /// given weights, in steps of 1/65,536, or otherwise the number of occurrences; with binary weights it is
    /// 1.
    pub fn weighted_features(&self, into: &mut Vec<(u64, i64)>) {
        let start = into.len();
        if let Some(weighted) = self.iter_weighted() {
            into.extend(weighted);
            return sum_of_equal(into, start, i64::saturating_add);
        }
        let sum = if self.binary {
            |one, _| one
        } else {
            i64::saturating_add
        };
        let mut most = AT_ONCE;
        self.visit_chunks(|features| {
            into.extend(features.iter().map(|&it| (it, 1)));
            if into.len() - start > most {
                sum_of_equal(into, start, sum);
                most = AT_ONCE.max(2 * (into.len() - start));
            }
        });
        sum_of_equal(into, start, sum);
    }

    /// Returns the number of features with repetitions; 0 if the text is too short to have any.
    pub fn feature_count(&self) -> usize {
        (self.tokens.len() + 1).saturating_sub(self.ngram)
    }

    /// Returns the votes by the rule of the tool whose scheme the recipe names. Returns `None` if features vote by
    /// their own hashes: without a scheme, and under one that has no SimHash.
    pub(crate) fn foreign_votes(&self) -> Option<ForeignVotes<'_>> {
        self.foreign_votes
    }

    /// Returns the features with their weights in steps of 1/65,536, or `None` if the weights are just the
    /// numbers of occurrences, or 1 with binary weights. A feature that was given with several weights
    /// appears several times.
    pub fn iter_weighted(&self) -> Option<impl ExactSizeIterator<Item = (u64, i64)> + Clone> {
        Some(self.weighted?.iter().copied())
    }

    /// Appends the distinct features in ascending order.
    pub fn append_features(&self, into: &mut Vec<u64>) {
        let start = into.len();
        let count = self.feature_count();
        let mut at = 0;
        // Repeated features are removed after every batch. The buffer therefore grows to at most twice the
        // number of distinct features, or to [`AT_ONCE`] more than it.
        while at < count {
            let some = (count - at).min(AT_ONCE.max(into.len() - start));
            let end = into.len();
            into.resize(end + some, 0);
            let tokens = &self.tokens[at..at + some + self.ngram - 1];
            shingle::hash_shingles(self.ngram, tokens, &mut into[end..]);
            sort_distinct(into, start);
            at += some;
        }
    }

    /// Returns `true` if there are more than `limit` distinct features. The cost is proportional to the
    /// limit, or to the text if it has fewer features.
    pub(crate) fn has_more_features_than(&self, limit: usize) -> bool {
        if self.feature_count() <= limit {
            return false;
        }
        if self.surely_has_more_features_than(limit) {
            return true;
        }
        let mut table = vec![0; (4 * limit + 4).next_power_of_two()];
        let mask = table.len() - 1;
        let mut distinct = 0;
        self.chunks_while(limit + limit / 4 + 8, |features| {
            for &feature in features {
                let feature = feature.max(1);
                let mut at = feature as usize & mask;
                while table[at] != 0 && table[at] != feature {
                    at = (at + 1) & mask;
                }
                distinct += usize::from(table[at] == 0);
                table[at] = feature;
                if distinct > limit {
                    return false;
                }
            }
            true
        });
        distinct > limit
    }

    /// Returns `true` if the upper 10 bits of the first features alone have more than `limit` different
    /// values. This holds for nearly every text that is long compared with the limit.
    fn surely_has_more_features_than(&self, limit: usize) -> bool {
        let mut bits = [0u64; 16];
        let mut distinct = 0;
        self.chunks_while(2 * limit, |features| {
            for &feature in features {
                bits[(feature >> 60) as usize] |= 1 << (feature >> 54 & 63);
            }
            distinct = bits.iter().map(|bits| bits.count_ones() as usize).sum();
            false
        });
        distinct > limit
    }

    /// Calls `visit` with the features in the order of the text, one chunk at a time.
    #[inline(always)]
    pub(crate) fn visit_chunks(&self, mut visit: impl FnMut(&[u64])) {
        self.chunks_while(CHUNK_FEATURES, |features| {
            visit(features);
            true
        });
    }

    #[inline(always)]
    fn chunks_while(&self, most: usize, mut visit: impl FnMut(&[u64]) -> bool) {
        // Clearing a full buffer would take longer than analysing a title.
        if self.feature_count() <= SHORT_CHUNK {
            self.visit_chunks_with(&mut [0; SHORT_CHUNK], most, &mut visit);
        } else {
            self.visit_chunks_with(&mut [0; CHUNK_FEATURES], most, &mut visit);
        }
    }

    #[inline(always)]
    fn visit_chunks_with(
        &self,
        buffer: &mut [u64],
        most: usize,
        visit: &mut impl FnMut(&[u64]) -> bool,
    ) {
        let count = self.feature_count();
        let mut at = 0;
        while at < count {
            let length = most.min(buffer.len()).min(count - at);
            let tokens = &self.tokens[at..at + length + self.ngram - 1];
            shingle::hash_shingles(self.ngram, tokens, &mut buffer[..length]);
            if !visit(&buffer[..length]) {
                return;
            }
            at += length;
        }
    }
}

/// Number of features after which repeated ones are removed.
const AT_ONCE: usize = 1 << 21;

/// Number of features in a chunk, which fits into the first-level cache.
pub(crate) const CHUNK_FEATURES: usize = 1024;

/// Number of features in a chunk of a short text.
const SHORT_CHUNK: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn analyzers_of_equal_recipes_share_their_tables_while_one_exists() {
        let recipe = Recipe {
            name: "a recipe of this test alone".into(),
            ..Recipe::default()
        };
        let first = TextAnalyzer::new(&recipe);
        let shares = |recipe: &Recipe| {
            let mut again = (0..100).map(|_| TextAnalyzer::new(recipe));
            again.any(|analyzer| Arc::ptr_eq(&analyzer.tables, &first.tables))
        };
        // Other tests can hold the lock for a moment, and an analyzer then has tables of its own.
        assert!(shares(&recipe.clone()));
        let ngram = recipe.ngram + 1;
        assert!(!shares(&Recipe {
            ngram,
            ..recipe.clone()
        }));
        assert_eq!(first.recipe_id(), recipe.recipe_id());
        let tables = Arc::downgrade(&first.tables);
        drop(first);
        assert!(tables.upgrade().is_none());
    }
}
