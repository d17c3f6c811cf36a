//! Checks that every instruction set analyses any text under any recipe as the definition does.

use std::sync::OnceLock;

use lookalike::recipe::{MarkupKind, NormalizationStep, TokenKind};
use lookalike::text::{AnalysisScratch, TextAnalyzer, TextState, TextToken};
use lookalike::{Cpu, Recipe};

/// Panics if the bytes violate that rule. The first byte chooses the recipe, the others are the
/// text.
pub(crate) fn check(bytes: &[u8]) {
    let Some((&choice, text)) = bytes.split_first() else {
        return;
    };
    let text = &String::from_utf8_lossy(text);
    let mut scratch = AnalysisScratch::default();
    let mut key = None;
    for analyzer in analyzers(usize::from(choice) % RECIPES) {
        let values: Vec<u64> = analyzer
            .list_tokens(text)
            .iter()
            .map(TextToken::token_value)
            .collect();
        let analysis = analyzer.analyze_text(text, &mut scratch);
        let by = analyzer.cpu().name();
        assert_eq!(analysis.token_values(), values, "{by}");

        let ngram = analyzer.recipe().ngram as usize;
        assert_eq!(analysis.state, state(&values, ngram, text), "{by}");
        let count = (values.len() + 1).saturating_sub(ngram);
        assert_eq!(analysis.feature_count(), count, "{by}");
        let mut features = Vec::new();
        analysis.append_features(&mut features);
        assert!(
            features.len() <= count && features.is_sorted_by(|a, b| a < b),
            "{by}"
        );
        assert_eq!(*key.get_or_insert(analysis.key), analysis.key, "{by}");
    }
}

fn state(values: &[u64], ngram: usize, text: &str) -> TextState {
    match values.len() {
        0 if text.trim().is_empty() => TextState::Empty,
        0 => TextState::SymbolsOnly,
        few if few < ngram => TextState::TooShort,
        _ => TextState::Fingerprintable,
    }
}

/// Returns the analyzers of a recipe, one per instruction set. They are kept because their tables
/// are expensive.
fn analyzers(recipe: usize) -> &'static [TextAnalyzer] {
    static KNOWN: [OnceLock<Vec<TextAnalyzer>>; RECIPES] = [const { OnceLock::new() }; RECIPES];
    KNOWN[recipe].get_or_init(|| {
        let recipe = self::recipe(recipe);
        Cpu::detect_all()
            .into_iter()
            .map(|cpu| TextAnalyzer::with_cpu(&recipe, cpu))
            .collect()
    })
}

const TOKENS: [TokenKind; 3] = [
    TokenKind::Words,
    TokenKind::Characters,
    TokenKind::Whitespace,
];
const MARKUPS: [MarkupKind; 3] = [MarkupKind::None, MarkupKind::Markdown, MarkupKind::Html];
const STEPS: [&[NormalizationStep]; 5] = [
    &[
        NormalizationStep::Nfkc,
        NormalizationStep::Fold,
        NormalizationStep::ZeroWidth,
        NormalizationStep::Simplified,
        NormalizationStep::Punctuation,
        NormalizationStep::Whitespace,
    ],
    &[],
    &[NormalizationStep::Nfkc],
    &[
        NormalizationStep::Fold,
        NormalizationStep::Width,
        NormalizationStep::ZeroWidth,
        NormalizationStep::Whitespace,
    ],
    &[
        NormalizationStep::Simplified,
        NormalizationStep::Punctuation,
        NormalizationStep::NoWhitespace,
    ],
];

/// Number of combinations of tokens, markup and normalisation.
pub(crate) const RECIPES: usize = TOKENS.len() * MARKUPS.len() * STEPS.len();

fn recipe(number: usize) -> Recipe {
    let steps = number / TOKENS.len() / MARKUPS.len();
    Recipe {
        name: format!("recipe {number}"),
        tokens: TOKENS[number % TOKENS.len()],
        markup: MARKUPS[number / TOKENS.len() % MARKUPS.len()],
        normalize: STEPS[steps].to_vec(),
        ngram: 1 + steps as u32,
        ..Recipe::default()
    }
}
