//! Checks that every instruction set analyses any text under any recipe as the definition does.

use std::sync::OnceLock;

use lookalike::recipe::{Markup, Step, Tokens};
use lookalike::text::{Analyzer, Scratch, State, Token};
use lookalike::{Cpu, Recipe};

/// Panics if the bytes violate that rule. The first byte chooses the recipe, the others are the
/// text.
pub(crate) fn check(bytes: &[u8]) {
    let Some((&choice, text)) = bytes.split_first() else {
        return;
    };
    let text = &String::from_utf8_lossy(text);
    let mut scratch = Scratch::default();
    let mut key = None;
    for analyzer in analyzers(usize::from(choice) % RECIPES) {
        let values: Vec<u64> = analyzer.tokens(text).iter().map(Token::value).collect();
        let analysis = analyzer.analyze(text, &mut scratch);
        let by = analyzer.cpu().name();
        assert_eq!(analysis.tokens(), values, "{by}");

        let ngram = analyzer.recipe().ngram as usize;
        assert_eq!(analysis.state, state(&values, ngram, text), "{by}");
        let count = (values.len() + 1).saturating_sub(ngram);
        assert_eq!(analysis.feature_count(), count, "{by}");
        let mut features = Vec::new();
        analysis.features(&mut features);
        assert!(
            features.len() <= count && features.is_sorted_by(|a, b| a < b),
            "{by}"
        );
        assert_eq!(*key.get_or_insert(analysis.key), analysis.key, "{by}");
    }
}

fn state(values: &[u64], ngram: usize, text: &str) -> State {
    match values.len() {
        0 if text.trim().is_empty() => State::Empty,
        0 => State::Blank,
        few if few < ngram => State::Poor,
        _ => State::Rich,
    }
}

/// Returns the analyzers of a recipe, one per instruction set. They are kept because their tables
/// are expensive.
fn analyzers(recipe: usize) -> &'static [Analyzer] {
    static KNOWN: [OnceLock<Vec<Analyzer>>; RECIPES] = [const { OnceLock::new() }; RECIPES];
    KNOWN[recipe].get_or_init(|| {
        let recipe = self::recipe(recipe);
        Cpu::all()
            .into_iter()
            .map(|cpu| Analyzer::with_cpu(&recipe, cpu))
            .collect()
    })
}

const TOKENS: [Tokens; 3] = [Tokens::Words, Tokens::Characters, Tokens::Whitespace];
const MARKUPS: [Markup; 3] = [Markup::None, Markup::Markdown, Markup::Html];
const STEPS: [&[Step]; 5] = [
    &[
        Step::Nfkc,
        Step::Fold,
        Step::ZeroWidth,
        Step::Simplified,
        Step::Punctuation,
        Step::Whitespace,
    ],
    &[],
    &[Step::Nfkc],
    &[Step::Fold, Step::Width, Step::ZeroWidth, Step::Whitespace],
    &[Step::Simplified, Step::Punctuation, Step::NoWhitespace],
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
