//! Compares the fast path with the definition, and tests the laws of the default normalisation.

mod words;

use std::sync::LazyLock;

use icu_normalizer::{ComposingNormalizerBorrowed, DecomposingNormalizerBorrowed};
use proptest::prelude::*;
use rayon::prelude::*;

use super::*;
use crate::arch::Cpu;
use crate::recipe::{MarkupKind, NormalizationStep, Recipe, TokenKind};

/// A recipe with one analyzer per instruction set.
struct Bench {
    recipe: Recipe,
    analyzers: Vec<TextAnalyzer>,
    /// If words are cut by jieba, an analyzer of the same recipe with the tokens `words`.
    words: Option<TextAnalyzer>,
    /// If tokens have places under the recipe, a tokenizer per instruction set.
    span_tokenizers: Vec<SpanTokenizer>,
}

impl Bench {
    fn new(recipe: Recipe) -> Self {
        let best = TextAnalyzer::new(&recipe);
        let analyzers = Cpu::detect_all()
            .into_iter()
            .map(|cpu| best.with_instructions(cpu))
            .collect();
        let words = (recipe.tokens == TokenKind::Jieba).then(|| {
            TextAnalyzer::new(&Recipe {
                tokens: TokenKind::Words,
                segment: None,
                ..recipe.clone()
            })
        });
        let has_spans = recipe.tokens == TokenKind::Words && recipe.markup == MarkupKind::None;
        let span_tokenizers = Cpu::detect_all()
            .into_iter()
            .filter(|_| has_spans)
            .map(|cpu| SpanTokenizer::with_cpu(&recipe, cpu))
            .collect();
        Self {
            recipe,
            analyzers,
            words,
            span_tokenizers,
        }
    }

    /// Compares every instruction set with the definition.
    fn check(&self, text: &str, scratch: &mut AnalysisScratch) {
        let tokens = self.analyzers[0].list_tokens(text);
        let values: Vec<u64> = tokens.iter().map(TextToken::token_value).collect();
        let expected_state = match (values.len(), text.trim().is_empty()) {
            (0, true) => TextState::Empty,
            (0, false) => TextState::SymbolsOnly,
            (few, _) if few < self.recipe.ngram as usize => TextState::TooShort,
            _ => TextState::Fingerprintable,
        };
        let mut keys = Vec::new();
        for analyzer in &self.analyzers {
            let analysis = analyzer.analyze_text(text, scratch);
            let what = || {
                format!(
                    "{} of {text:?} by {}",
                    analyzer.cpu().name(),
                    self.recipe.name
                )
            };
            assert_eq!(
                analysis.feature_count(),
                features(&self.recipe, &values).len()
            );
            assert_eq!(analysis.state, expected_state, "{}", what());
            let mut chunked = Vec::new();
            analysis.visit_chunks(|features| chunked.extend_from_slice(features));
            assert_eq!(chunked, features(&self.recipe, &values), "{}", what());
            keys.push(analysis.key);
        }
        let extras = AnalysisExtras {
            characters: true,
            sentences: None,
        };
        let extended = self.analyzers[0].clone().with_extras(extras);
        let found = extended.analyze_text(text, scratch).characters().to_vec();
        // Words cut by jieba are not separated by spaces.
        let apart = self
            .words
            .as_ref()
            .map_or(tokens, |words| words.list_tokens(text));
        assert_eq!(found, joined(&apart), "{text:?} by {}", self.recipe.name);
        assert!(
            keys.iter().all(|&key| key == keys[0]),
            "keys of {text:?} by {}",
            self.recipe.name
        );
        self.check_spans(text, &values);
        // If a text has fewer tokens than an n-gram, only its key depends on its tokens.
        if expected_state == TextState::TooShort {
            assert_eq!(keys[0], crate::hash::hash_sequence(1, &values), "{text:?}");
        }
    }
}

impl Bench {
    /// Compares tokens with places with the definition. The places are ordered and hold whole characters.
    fn check_spans(&self, text: &str, values: &[u64]) {
        let mut spans = SpannedTokens::default();
        for (cpu, tokenizer) in Cpu::detect_all().iter().zip(&self.span_tokenizers) {
            tokenizer.tokenize_text(text, &mut spans).unwrap();
            assert_eq!(spans.values(), values, "{} of {text:?}", cpu.name());
            let places: Vec<_> = (0..spans.len())
                .map(|at| spans.byte_range(at..at + 1))
                .collect();
            assert!(
                places.iter().all(|place| !text[place.clone()].is_empty()),
                "{text:?}"
            );
            // A character that becomes several tokens is the place of each of them.
            let is_ordered = |two: &[std::ops::Range<usize>]| {
                two[0].start <= two[1].start && two[0].end <= two[1].end
            };
            assert!(places.windows(2).all(is_ordered), "{text:?}: {places:?}");
        }
    }
}

/// Returns the characters of tokens, with a space between two words.
fn joined(tokens: &[TextToken]) -> Vec<u32> {
    let mut joined = Vec::new();
    let mut after_word = false;
    for token in tokens {
        match token {
            TextToken::Word(word) => {
                if after_word {
                    joined.push(' ' as u32);
                }
                joined.extend(word.chars().map(u32::from));
            }
            TextToken::Character(character) => joined.push(*character as u32),
        }
        after_word = matches!(token, TextToken::Word(_));
    }
    joined
}

/// Returns the features of token values, one window after another.
fn features(recipe: &Recipe, values: &[u64]) -> Vec<u64> {
    let window = |window: &[u64]| {
        let products = window.iter().zip(crate::hash::POSITION);
        let sum = products.fold(0u64, |sum, (&value, factor)| {
            sum.wrapping_add(value.wrapping_mul(factor))
        });
        crate::hash::mix_bits(sum)
    };
    values.windows(recipe.ngram as usize).map(window).collect()
}

const STEPS: [NormalizationStep; 9] = [
    NormalizationStep::Nfkc,
    NormalizationStep::Fold,
    NormalizationStep::Width,
    NormalizationStep::ZeroWidth,
    NormalizationStep::Simplified,
    NormalizationStep::Variants,
    NormalizationStep::Punctuation,
    NormalizationStep::Whitespace,
    NormalizationStep::NoWhitespace,
];

/// The built-in recipes, with one step left out or one alone, with the other kinds of tokens, and with
/// markup.
static BENCHES: LazyLock<Vec<Bench>> = LazyLock::new(|| {
    let mut recipes: Vec<Recipe> = Recipe::NAMES
        .iter()
        .map(|name| Recipe::built_in(name).unwrap())
        // A scheme has its own rules, which golden vectors pin.
        .filter(|recipe| recipe.scheme.is_none())
        .collect();
    let plain = Recipe {
        ngram: 1,
        ..Recipe::default()
    };
    for (tokens, name) in [
        (TokenKind::Words, "words"),
        (TokenKind::Characters, "characters"),
        (TokenKind::Whitespace, "whitespace"),
    ] {
        let named = |name: String, normalize: Vec<NormalizationStep>| {
            Recipe {
                name,
                normalize,
                tokens,
                ..plain.clone()
            }
            .validate()
            .unwrap()
        };
        recipes.push(named(name.into(), plain.normalize.clone()));
        recipes.push(named(format!("{name} as they are"), Vec::new()));
        recipes.push(named(format!("{name}, all steps"), STEPS.to_vec()));
        for left_out in STEPS {
            let rest = STEPS[..8]
                .iter()
                .copied()
                .filter(|&step| step != left_out)
                .collect();
            recipes.push(named(format!("{name} without {left_out:?}"), rest));
        }
        for alone in [
            NormalizationStep::Fold,
            NormalizationStep::Width,
            NormalizationStep::ZeroWidth,
            NormalizationStep::Simplified,
            NormalizationStep::Variants,
        ] {
            recipes.push(named(
                format!("{name} with {alone:?}"),
                vec![alone, NormalizationStep::Punctuation],
            ));
        }
    }
    for (ngram, tokens) in [(9, TokenKind::Words), (32, TokenKind::Characters)] {
        recipes.push(Recipe {
            ngram,
            tokens,
            name: format!("{ngram} {}", tokens.name()),
            ..plain.clone()
        });
    }
    recipes.push(Recipe {
        markup: MarkupKind::Html,
        name: "html".into(),
        ..plain.clone()
    });
    recipes.push(Recipe {
        markup: MarkupKind::Markdown,
        name: "markdown".into(),
        ..plain
    });
    recipes.into_par_iter().map(Bench::new).collect()
});

fn check_all(text: &str) {
    let mut scratch = AnalysisScratch::default();
    BENCHES
        .iter()
        .for_each(|bench| bench.check(text, &mut scratch));
}

fn default_bench() -> &'static Bench {
    &BENCHES[0]
}

fn key(text: &str) -> u128 {
    default_bench()
        .analyzers
        .last()
        .unwrap()
        .analyze_text(text, &mut AnalysisScratch::default())
        .key
}

fn words(text: &str) -> Vec<String> {
    default_bench().analyzers[0]
        .list_tokens(text)
        .into_iter()
        .map(|token| match token {
            TextToken::Word(word) => word,
            TextToken::Character(character) => character.into(),
        })
        .collect()
}

/// Pieces of text whose characters do not depend on one another under any recipe.
const SETTLED: &[&str] = &[
    "the",
    "Cat",
    "SAT",
    "x",
    "0",
    "42",
    "_",
    "-",
    "'",
    " ",
    "  ",
    "\n",
    "\t",
    "\0",
    "\u{7f}",
    "<b>",
    "&amp;",
    "**",
    "漢字",
    "汉",
    "電腦",
    "資訊",
    "。",
    "，",
    "、",
    "「",
    "」",
    "\u{3000}",
    "Ａ",
    "ｚ",
    "９",
    "！",
    "ひらがな",
    "カタカナ",
    "ー",
    "々",
    "〇",
    "ｶ",
    "ﾀ",
    "ｰ",
    "･",
    "한국어",
    "글",
    "กขค",
    "ไทย",
    "العربية",
    "ﷺ",
    "ﷲ",
    "ﻻ",
    "हद",
    "é",
    "Ü",
    "ñ",
    "ç",
    "ß",
    "ẞ",
    "ſ",
    "ŉ",
    "ǰ",
    "ΐ",
    "Σ",
    "ς",
    "Ⱥ",
    "Ⱦ",
    "ꭰ",
    "Ꮿ",
    "İ",
    "ı",
    "Ǆ",
    "ǅ",
    "ŀ",
    "½",
    "¼",
    "²",
    "①",
    "⑳",
    "㎏",
    "㍿",
    "™",
    "℀",
    "ﬁ",
    "ﬃ",
    "Ⅷ",
    "ª",
    "№",
    "…",
    "—",
    "“",
    "”",
    "\u{a0}",
    "\u{2003}",
    "\u{200b}",
    "\u{200d}",
    "\u{feff}",
    "\u{ad}",
    "\u{2060}",
    "\u{fe0f}",
    "\u{34f}",
    "\u{115f}",
    "\u{3164}",
    "😀",
    "👩‍👩‍👧",
    "🇨🇳",
    "𝒜",
    "𝟘",
    "𝔘",
    "𐐀",
    "𐐨",
    "𞤀",
    "𠀀",
    "𪚥",
    "🄰",
    "🅪",
    "🈁",
    "𝄞",
    "\u{e0041}",
    "\u{e000}",
    "\u{378}",
    "\u{10ffff}",
    "\u{fffd}",
    "ꓐ",
    "ⷠ",
    "ა",
    "Ა",
    "Ա",
    "և",
    "Ж",
    "й",
    "ë",
];

/// Pieces whose first character affects the characters before it.
const COMPOSING: &[&str] = &[
    "\u{300}",
    "\u{301}",
    "\u{308}",
    "\u{323}",
    "\u{327}",
    "\u{345}",
    "\u{1100}\u{1161}",
    "\u{1161}",
    "\u{11a8}",
    "ﾞ",
    "ﾟ",
    "\u{3099}",
    "\u{309a}",
    "ะ\u{e33}",
    "\u{93c}",
    "\u{9be}",
    "\u{5bc}",
    "\u{64b}\u{651}",
    "\u{f71}\u{f72}",
    "\u{1d165}",
    "\u{110ba}",
    "\u{a69f}",
    "ﾡ",
    "ￂ",
];

fn text_of(pieces: &'static [&'static str], more: bool) -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        8 => proptest::sample::select(pieces).prop_map(str::to_owned),
        3 => "[a-zA-Z0-9]{1,20}",
        2 => "[a-zA-Z0-9 .,_-]{12,70}",
        1 => "[a-zA-Z0-9 ]{120,140}",
        1 => any::<char>().prop_map(|c| c.to_string()),
        2 => "[\u{80}-\u{2ff}\u{370}-\u{5ff}\u{1e00}-\u{1fff}]",
        (if more { 3 } else { 1 }) => proptest::sample::select(COMPOSING).prop_map(str::to_owned),
    ];
    let kept = move |text: &String| more || !text.chars().any(unicode::is_composing);
    proptest::collection::vec(piece.prop_filter("composes", kept), 0..24)
        .prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, ..ProptestConfig::default() })]

    #[test]
    fn normalised_texts_are_read_as_defined(
        text in text_of(SETTLED, false),
        offset in 0usize..65,
        inside in any::<bool>(),
    ) {
        let before = if inside { "w" } else { " " };
        check_all(&(before.repeat(offset) + &text));
    }

    #[test]
    fn composing_texts_are_read_as_defined(text in text_of(SETTLED, true)) {
        check_all(&text);
    }

    #[test]
    fn arbitrary_text_is_read_as_defined(text in any::<String>()) {
        check_all(&text);
    }

    #[test]
    fn scratch_keeps_no_state(
        texts in proptest::collection::vec(text_of(SETTLED, true), 1..6),
    ) {
        let mut scratch = AnalysisScratch::default();
        for text in &texts {
            for bench in [&BENCHES[0], &BENCHES[5]] {
                bench.check(text, &mut scratch);
            }
        }
    }
}

/// Returns all characters except those of planes that are completely unassigned or private.
fn assigned() -> impl Iterator<Item = char> {
    ('\0'..='\u{33fff}')
        .chain('\u{e0000}'..='\u{e0fff}')
        .chain('\u{10fff0}'..=char::MAX)
}

#[test]
fn every_character_is_read_as_defined() {
    let bench = default_bench();
    let analyzer = bench.analyzers.last().unwrap();
    let all: Vec<char> = assigned().collect();
    all.par_chunks(4096).for_each(|characters| {
        let mut scratch = AnalysisScratch::default();
        let mut text = String::new();
        for &character in characters {
            text.clear();
            text.extend(['a', character, 'B', character, character, '漢']);
            let values: Vec<u64> = analyzer
                .list_tokens(&text)
                .iter()
                .map(TextToken::token_value)
                .collect();
            let expected = crate::hash::hash_sequence(1, &values);
            assert_eq!(
                analyzer.analyze_text(&text, &mut scratch).key,
                expected,
                "{character:?}"
            );
        }
    });
}

#[test]
fn results_do_not_depend_on_block_offset() {
    let text = "The Quick中文 brown-fox, ÉTÉ jumps\u{200b}over… ½ ﷺ Ⱥ😀 LAZY dogs: ".repeat(4);
    let mut scratch = AnalysisScratch::default();
    for bench in BENCHES.iter().step_by(5) {
        for offset in 0..=130 {
            for before in ["w", " "] {
                bench.check(&(before.repeat(offset) + &text), &mut scratch);
            }
        }
        for end in text.char_indices().map(|(at, _)| at) {
            bench.check(&text[..end], &mut scratch);
        }
    }
}

#[test]
fn words_of_every_length_are_whole() {
    let mut scratch = AnalysisScratch::default();
    for length in (1..=200).chain([4095, 4096, 4097, 10_000]) {
        for letter in ["w", "W", "é", "Ⱥ", "字", "𐐀", "ß", "½"] {
            let text = letter.repeat(length);
            default_bench().check(&text, &mut scratch);
            default_bench().check(&format!("{text} {text},{text}"), &mut scratch);
        }
    }
}

#[test]
fn texts_can_grow_when_normalised() {
    for letter in ["Ⱥ", "ﷺ", "ΐ", "㍿", "𝒜", "ŉ", "½", "🅪"] {
        for between in ["", " ", "a", "abcdefghijklmnopqrst"] {
            let text = format!("{letter}{between}").repeat(3000);
            default_bench().check(&text, &mut AnalysisScratch::default());
            default_bench().check(
                &format!("{text}{}", "tail ".repeat(50)),
                &mut AnalysisScratch::default(),
            );
        }
    }
}

#[test]
fn word_of_one_megabyte_is_one_token() {
    for letter in ["w", "é"] {
        let text = letter.repeat(1 << 20);
        assert_eq!(words(&text), std::slice::from_ref(&text));
        let mut scratch = AnalysisScratch::default();
        default_bench().check(&text, &mut scratch);
        default_bench().check(&format!("Of {text} more"), &mut scratch);
        default_bench().check("then a short one", &mut scratch);
    }
}

#[test]
fn many_words_refill_the_edge_buffer() {
    let mut scratch = AnalysisScratch::default();
    for count in [2047, 2048, 2049, 4096, 4097, 20_000] {
        default_bench().check(&"a ".repeat(count), &mut scratch);
        default_bench().check(&"é ".repeat(count), &mut scratch);
        default_bench().check(&"ab字 ".repeat(count), &mut scratch);
        default_bench().check(&format!("{}word goes on", "a ".repeat(count)), &mut scratch);
    }
}

#[test]
fn tokens_equal_worked_examples() {
    for (text, expected) in [
        ("The cat sat.", vec!["the", "cat", "sat"]),
        ("don't stop_me", vec!["don", "t", "stop", "me"]),
        (
            "我爱Rust语言2024",
            vec!["我", "爱", "rust", "语", "言", "2024"],
        ),
        ("繁體中文", vec!["繁", "体", "中", "文"]),
        ("ｶﾞｷﾞ", vec!["ガ", "ギ"]),
        ("한국어 텍스트", vec!["한국어", "텍스트"]),
        ("สวัสดี", vec!["ส", "ว", "\u{e31}", "ส", "ด", "\u{e35}"]),
        ("हिन्दी में", vec!["हिन्दी", "में"]),
        ("Tiếng Việt", vec!["tiếng", "việt"]),
        ("Straße STRASSE", vec!["strasse", "strasse"]),
        ("ﬁne №5 ½", vec!["fine", "no5", "1", "2"]),
        ("co\u{ad}oper\u{200b}ate", vec!["cooperate"]),
        ("😀!", vec![]),
    ] {
        assert_eq!(words(text), expected, "{text}");
    }
}

#[test]
fn text_states_equal_worked_examples() {
    let state = |name: &str, text: &str| {
        TextAnalyzer::new(&Recipe::built_in(name).unwrap())
            .analyze_text(text, &mut AnalysisScratch::default())
            .state
    };
    for (text, pairs, triples) in [
        ("", TextState::Empty, TextState::Empty),
        (" \n\u{3000}\t", TextState::Empty, TextState::Empty),
        ("😀", TextState::SymbolsOnly, TextState::SymbolsOnly),
        ("!!! ... 。", TextState::SymbolsOnly, TextState::SymbolsOnly),
        ("\u{200b}", TextState::SymbolsOnly, TextState::SymbolsOnly),
        ("a", TextState::TooShort, TextState::TooShort),
        ("字", TextState::TooShort, TextState::TooShort),
        ("two words", TextState::Fingerprintable, TextState::TooShort),
        ("漢字", TextState::Fingerprintable, TextState::TooShort),
        (
            "three short words",
            TextState::Fingerprintable,
            TextState::Fingerprintable,
        ),
    ] {
        assert_eq!(state("default", text), pairs, "{text:?}");
        assert_eq!(state("words-3", text), triples, "{text:?}");
    }
}

#[test]
fn text_key_of_symbols_is_their_raw_text() {
    assert_eq!(key("😀"), key("  😀\n"));
    assert_ne!(key("😀"), key("😃"));
    assert_ne!(key("😀"), key("😀 😀"));
    assert_ne!(key("!"), key("?"));
    // The key of tokens never equals the key of raw text.
    assert_ne!(key("a"), key("!"));
}

#[test]
fn given_features_are_used_unchanged() {
    for name in Recipe::NAMES {
        let analyzer = TextAnalyzer::new(&Recipe::built_in(name).unwrap());
        let mut scratch = AnalysisScratch::default();
        let none = analyzer.analyze_features([], &mut scratch);
        assert_eq!((none.state, none.feature_count()), (TextState::Empty, 0));
        let one = analyzer.analyze_features([("The Cat", 1.0)], &mut scratch);
        assert_eq!(
            (one.state, one.feature_count()),
            (TextState::Fingerprintable, 1)
        );
        let mut three = Vec::new();
        let given = ["b", "a", "b", ""].map(|feature| (feature, 1.0));
        analyzer
            .analyze_features(given, &mut scratch)
            .append_features(&mut three);
        assert_eq!(three.len(), 3);
        assert!(three.is_sorted());
    }
}

#[test]
fn distinct_features_are_counted_up_to_a_limit() {
    let analyzer = TextAnalyzer::new(&Recipe::built_in("words-1").unwrap());
    let mut scratch = AnalysisScratch::default();
    for distinct in [1, 2, 63, 64, 65, 500] {
        for repeats in [1, 3] {
            let all: String = (0..distinct * repeats)
                .map(|n| format!("w{} ", n % distinct))
                .collect();
            let analysis = analyzer.analyze_text(&all, &mut scratch);
            for limit in [0, 1, 2, 62, 63, 64, 65, 66, 499, 500, 501, 5000] {
                assert_eq!(analysis.has_more_features_than(limit), distinct > limit);
            }
        }
    }
}

// The laws of the default normalisation: these changes do not affect the key of a text.

fn sentence() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        4 => "[a-zA-Z]{1,9}",
        1 => "[0-9]{1,4}",
        1 => "[à-öø-ÿÀ-ÖØ-Þ]{1,5}",
        1 => "[Α-Ρα-ρς-ω]{1,5}",
        1 => "[А-Яа-я]{1,5}",
        1 => "[가-힣]{1,4}",
        1 => "[ạ-ỹ]{1,4}",
        2 => "[一-龥]{1,6}",
        1 => "[ぁ-ゔァ-ヴ]{1,5}",
        1 => "[ก-ฮะ-ู]{1,5}",
    ];
    proptest::collection::vec(word, 1..12).prop_map(|words| words.join(" "))
}

fn full_width(text: &str) -> String {
    let wide = |c: char| match c {
        ' ' => '\u{3000}',
        '!'..='~' => char::from_u32(c as u32 + 0xfee0).unwrap(),
        _ => c,
    };
    text.chars().map(wide).collect()
}

proptest! {
    #[test]
    fn character_width_is_ignored(text in sentence()) {
        prop_assert_eq!(key(&text), key(&full_width(&text)));
    }

    #[test]
    fn case_is_ignored(text in sentence()) {
        prop_assert_eq!(key(&text), key(&text.to_uppercase()));
        prop_assert_eq!(key(&text), key(&text.to_lowercase()));
    }

    #[test]
    fn punctuation_and_spacing_are_ignored(
        text in sentence(),
        marks in proptest::collection::vec("[ \n.,;:!?—…，。！？、·“”‘’(){}_😀]{1,4}", 12),
    ) {
        let words: Vec<_> = text.split(' ').collect();
        let other: String = words.iter().zip(&marks).flat_map(|(word, mark)| [word, &**mark]).collect();
        prop_assert_eq!(key(&text), key(&other));
        prop_assert_eq!(key(&text), key(&format!("{}{text}{}", marks[0], marks[1])));
    }

    #[test]
    fn zero_width_characters_are_ignored(
        text in sentence(),
        places in proptest::collection::vec((0usize..100, 0usize..8), 1..9),
    ) {
        let mut characters: Vec<char> = text.chars().collect();
        for (place, which) in places {
            let ignorable = ['\u{200b}', '\u{200c}', '\u{200d}', '\u{feff}', '\u{ad}', '\u{2060}',
                '\u{fe0f}', '\u{e0100}'][which];
            characters.insert(place % (characters.len() + 1), ignorable);
        }
        prop_assert_eq!(key(&text), key(&String::from_iter(characters)));
    }

    #[test]
    fn composition_is_ignored(text in prop_oneof![sentence(), text_of(SETTLED, true)]) {
        // The key of a text without tokens is that of its raw form.
        prop_assume!(!words(&text).is_empty());
        let composed = ComposingNormalizerBorrowed::new_nfc().normalize(&text).into_owned();
        let decomposed = DecomposingNormalizerBorrowed::new_nfd().normalize(&text).into_owned();
        prop_assert_eq!(key(&text), key(&composed));
        prop_assert_eq!(key(&text), key(&decomposed));
    }

    #[test]
    fn compatibility_forms_are_ignored(text in sentence(), more in text_of(SETTLED, false)) {
        let text = text + &more;
        let compatible = ComposingNormalizerBorrowed::new_nfkc().normalize(&text).into_owned();
        prop_assert_eq!(key(&text), key(&compatible));
    }

    #[test]
    fn tokenising_twice_changes_nothing(text in prop_oneof![sentence(), text_of(SETTLED, true)]) {
        let once = words(&text);
        prop_assert_eq!(&words(&once.join(" ")), &once);
        prop_assert_eq!(&words(&once.join("。")), &once);
    }

    #[test]
    fn different_words_make_different_texts(text in sentence(), at in 0usize..12) {
        let mut words: Vec<_> = text.split(' ').collect();
        let at = at % words.len();
        words[at] = "otherwise";
        prop_assert_ne!(key(&text), key(&words.join(" ")));
    }
}

#[test]
fn tokens_of_every_single_character_are_stable() {
    let all: Vec<char> = assigned().collect();
    let analyzer = &default_bench().analyzers[0];
    all.par_iter().for_each(|character| {
        let text = |tokens: Vec<TextToken>| {
            let strings = tokens.into_iter().map(|token| match token {
                TextToken::Word(word) => word,
                TextToken::Character(character) => character.into(),
            });
            strings.collect::<Vec<String>>().join(" ")
        };
        let once = text(analyzer.list_tokens(&character.to_string()));
        assert_eq!(text(analyzer.list_tokens(&once)), once, "{character:?}");
    });
}

#[test]
fn marks_around_iota_subscript_have_any_order() {
    for forms in [
        ["ᾀ\u{5bc}", "α\u{5bc}\u{313}\u{345}", "ἀ\u{345}\u{5bc}"],
        ["ᾴ", "ᾳ\u{301}", "α\u{345}\u{301}"],
    ] {
        assert!(
            forms.iter().all(|form| words(form) == words(forms[0])),
            "{forms:?}"
        );
    }
}

#[test]
fn chinese_and_latin_need_no_separator() {
    assert_eq!(
        key("我用Rust写程序，共2000行。"),
        key("我 用 Rust 写 程序 共 2000 行")
    );
    assert_eq!(key("第1章"), key("第 1 章"));
    assert_ne!(key("Rust 2000"), key("Rust2000"));
}

#[test]
fn variants_are_equal_only_with_their_step() {
    let mut recipe = Recipe::default();
    let key = |recipe: &Recipe, text: &str| {
        let mut scratch = AnalysisScratch::default();
        TextAnalyzer::new(recipe)
            .analyze_text(text, &mut scratch)
            .key
    };
    let pairs = [
        ("牠看著妳", "它看着你"),
        ("甚麼瞭解", "什么了解"),
        ("邨裏的靑磚", "村里的青砖"),
        ("答覆", "答复"),
    ];
    for (a, b) in pairs {
        assert_ne!(key(&recipe, a), key(&recipe, b), "{a}");
    }
    recipe.normalize.push(NormalizationStep::Variants);
    for (a, b) in pairs {
        assert_eq!(key(&recipe, a), key(&recipe, b), "{a}");
    }
    assert_ne!(key(&recipe, "她"), key(&recipe, "他"));
    assert_ne!(key(&recipe, "您"), key(&recipe, "你"));
    assert_ne!(recipe.recipe_id(), Recipe::default().recipe_id());
    let built_in = Recipe::NAMES
        .iter()
        .map(|name| Recipe::built_in(name).unwrap());
    let mut built_in = built_in.map(|recipe| recipe.has_step(NormalizationStep::Variants));
    assert!(!built_in.any(|has_step| has_step));
}

#[test]
fn traditional_characters_equal_simplified_ones() {
    for (traditional, simplified) in [
        ("我們在電腦上閱讀漢字。", "我们在电脑上阅读汉字。"),
        ("資訊科技與圖書館", "资讯科技与图书馆"),
        ("學習機器翻譯的歷史", "学习机器翻译的历史"),
        ("臺灣、香港與澳門", "台湾、香港与澳门"),
    ] {
        assert_eq!(key(traditional), key(simplified), "{traditional}");
    }
}

#[test]
fn markup_is_ignored_unless_the_recipe_keeps_it() {
    let key = |markup, text: &str| {
        let recipe = Recipe {
            markup,
            ..Recipe::default()
        };
        TextAnalyzer::new(&recipe)
            .analyze_text(text, &mut AnalysisScratch::default())
            .key
    };
    let plain = key(MarkupKind::None, "A title Some linked text and code");
    let html = "<h1>A title</h1><p>Some <a href='x'>linked</a> text &amp; <code>code</code>";
    assert_ne!(
        key(MarkupKind::Html, html),
        plain,
        "an ampersand is not the word 'and'"
    );
    assert_eq!(key(MarkupKind::Html, &html.replace("&amp;", "and")), plain);
    assert_eq!(
        key(
            MarkupKind::Markdown,
            "# A title\n\nSome [linked](x) *text* and `code`"
        ),
        plain
    );
    // The key of a text that is only markup is that of its raw form.
    assert_ne!(key(MarkupKind::Html, "<br>"), key(MarkupKind::Html, "<hr>"));
}

proptest! {
    #[test]
    fn arbitrary_markup_is_read_as_defined(text in "([a-z<>/!\\-&;#x=\"' *_`\\[\\]()|~\n]|<script>|</style>|<!--|&#){0,80}") {
        for bench in BENCHES.iter().filter(|bench| bench.recipe.markup != MarkupKind::None) {
            bench.check(&text, &mut AnalysisScratch::default());
        }
    }
}

/// No other test fails if these recipes stop using blocks; they would only be slow.
#[test]
fn suitable_recipes_read_ascii_in_blocks() {
    use super::charmap::{AsciiRules, AsciiTokens, CharMap};

    let ascii = |name| CharMap::new(&Recipe::built_in(name).unwrap()).ascii_rules();
    let folded = |tokens| {
        Some(AsciiRules {
            folds: true,
            tokens,
        })
    };
    assert_eq!(ascii("default"), folded(AsciiTokens::Words));
    let characters = AsciiTokens::Characters { spaces: true };
    assert_eq!(ascii("characters-3"), folded(characters));
}

/// Another dictionary would give other fingerprints under the same name.
#[test]
fn provided_dictionary_is_the_pinned_one() {
    let refusal = super::segment::provide_dictionary("AT&T 3 nz\n".as_bytes()).unwrap_err();
    assert_eq!(refusal.kind(), crate::ErrorKind::File);
    let message = refusal.to_string();
    assert!(
        message.contains("that of the right one is ddc10645"),
        "{message}"
    );
}
