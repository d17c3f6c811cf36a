//! Compares the tables with ICU4X, at every code point and on random texts.

use std::collections::BTreeSet;

use icu_casemap::CaseMapper;
use icu_normalizer::properties::{
    CanonicalCombiningClassMapBorrowed, CanonicalCompositionBorrowed,
    CanonicalDecompositionBorrowed, Decomposed,
};
use icu_normalizer::{ComposingNormalizerBorrowed, DecomposingNormalizerBorrowed};
use icu_properties::props::{
    ChangesWhenNfkcCasefolded, DefaultIgnorableCodePoint, GeneralCategory, GeneralCategoryGroup,
    WhiteSpace,
};
use icu_properties::{CodePointMapData, CodePointSetData};
use lookalike_oracle::effort::choose_effort;
use proptest::prelude::*;

use super::compose::{combining_class, compose_pair, decompose_character, normalize_nfc};
use super::*;

fn code_points() -> impl Iterator<Item = char> {
    '\0'..=char::MAX
}

fn chars(text: &str) -> Vec<char> {
    text.chars().collect()
}

fn icu_nfc(text: &[char]) -> Vec<char> {
    chars(&ComposingNormalizerBorrowed::new_nfc().normalize(&String::from_iter(text)))
}

fn icu_nfkc(text: &[char]) -> Vec<char> {
    chars(&ComposingNormalizerBorrowed::new_nfkc().normalize(&String::from_iter(text)))
}

fn own_nfc(text: &[char]) -> Vec<char> {
    let mut result = text.to_vec();
    normalize_nfc(&mut result);
    result
}

fn own_nfkc(text: &[char]) -> Vec<char> {
    let mut result: Vec<char> = replaced(text, compatibility);
    normalize_nfc(&mut result);
    result
}

fn replaced(text: &[char], by: impl Fn(char) -> Option<&'static [char]>) -> Vec<char> {
    text.iter()
        .flat_map(|&c| by(c).map_or_else(|| vec![c], <[char]>::to_vec))
        .collect()
}

/// Returns every pair of characters that is the decomposition of a character.
fn canonical_pairs() -> Vec<(char, char)> {
    let canonical = CanonicalDecompositionBorrowed::new();
    code_points()
        .filter_map(|c| match canonical.decompose(c) {
            Decomposed::Expansion(first, second) => Some((first, second)),
            _ => None,
        })
        .collect()
}

#[test]
fn every_character_maps_as_in_icu() {
    let nfd = DecomposingNormalizerBorrowed::new_nfd();
    let classes = CanonicalCombiningClassMapBorrowed::new();
    for c in code_points() {
        let text = c.to_string();
        let point = u32::from(c);
        let differing = |to: Vec<char>| (to != [c]).then_some(to);
        assert_eq!(
            compatibility(c).map(<[char]>::to_vec),
            differing(icu_nfkc(&[c])),
            "{point:X}"
        );
        let folded = chars(&CaseMapper::new().fold_string(&text));
        assert_eq!(
            fold_case(c).map(<[char]>::to_vec),
            differing(folded),
            "{point:X}"
        );
        let decomposed = chars(&nfd.normalize(&text));
        assert_eq!(
            decompose_character(c).map(|own| own.to_vec()),
            differing(decomposed),
            "{point:X}"
        );
        assert_eq!(combining_class(c), classes.get_u8(c), "{point:X}");
    }
}

#[test]
fn classes_follow_the_general_category() {
    let categories = CodePointMapData::<GeneralCategory>::new();
    for c in code_points() {
        let category = categories.get(c);
        let counts = [
            GeneralCategoryGroup::Letter,
            GeneralCategoryGroup::Mark,
            GeneralCategoryGroup::Number,
        ]
        .iter()
        .any(|group| group.contains(category));
        let allowed: &[CharacterClass] =
            if CodePointSetData::new::<DefaultIgnorableCodePoint>().contains(c) {
                &[CharacterClass::Ignorable]
            } else if CodePointSetData::new::<WhiteSpace>().contains(c) || c.is_control() {
                &[CharacterClass::Space]
            } else if category == GeneralCategory::DecimalNumber {
                &[CharacterClass::Word]
            } else if counts {
                &[CharacterClass::Word, CharacterClass::Character]
            } else if category == GeneralCategory::OtherSymbol {
                &[CharacterClass::Separator, CharacterClass::Character]
            } else {
                &[CharacterClass::Separator]
            };
        assert!(
            allowed.contains(&character_class(c)),
            "U+{:04X} is {:?}",
            u32::from(c),
            character_class(c)
        );
    }
}

#[test]
fn classes_equal_worked_examples() {
    let cases = [
        (
            CharacterClass::Ignorable,
            "\u{ad}\u{34f}\u{200b}\u{200d}\u{2060}\u{fe0f}\u{feff}\u{3164}\u{e0001}",
        ),
        (
            CharacterClass::Space,
            " \t\n\r\0\u{1b}\u{7f}\u{85}\u{a0}\u{2009}\u{2028}\u{3000}",
        ),
        (
            CharacterClass::Separator,
            "_-.,'’#$+<^`|。「・～€😀👍\u{1f3fd}\u{e000}\u{378}\u{ffff}\u{600}་།〒",
        ),
        (
            CharacterClass::Word,
            "azAZ09ßéΩжשعहि\u{94d}\u{301}\u{20e3}한ᄀ\u{1161}ཀአᠠᚠ²①٣०๑၁០ª\u{2bc}",
        ),
        (
            CharacterClass::Character,
            "漢汉〇々〆〱𠀀ひカーｶﾞ\u{3099}ㄅꀀ𗀀𛅰⺠⼀꒐ทำ\u{e34}\u{e48}ລကြ\u{103b}កᦀᨠꦲ\u{a9c0}𓀀𒀀",
        ),
    ];
    for (expected, text) in cases {
        for c in text.chars() {
            assert_eq!(character_class(c), expected, "{c} U+{:04X}", u32::from(c));
        }
    }
}

#[test]
fn composites_equal_icu() {
    let icu = CanonicalCompositionBorrowed::new();
    let pairs = canonical_pairs();
    let firsts: BTreeSet<char> = pairs
        .iter()
        .map(|pair| pair.0)
        .chain('\u{1100}'..='\u{1113}')
        .collect();
    let seconds: BTreeSet<char> = pairs
        .iter()
        .map(|pair| pair.1)
        .chain('\u{1160}'..='\u{1176}')
        .chain('\u{11a6}'..='\u{11c3}')
        .collect();
    for &first in &firsts {
        for &second in &seconds {
            assert_eq!(
                compose_pair(first, second),
                icu.compose(first, second),
                "{first:?} {second:?}"
            );
        }
    }
    for first in [
        '\u{ac00}', '\u{ac01}', '\u{ac1b}', '\u{ac1c}', '\u{d788}', '\u{d7a3}', '\u{d7a4}',
    ] {
        for second in '\u{1100}'..='\u{11ff}' {
            assert_eq!(
                compose_pair(first, second),
                icu.compose(first, second),
                "{first:?} {second:?}"
            );
        }
    }
}

#[test]
fn composing_characters_act_on_preceding_ones() {
    let icu = CanonicalCompositionBorrowed::new();
    let classes = CanonicalCombiningClassMapBorrowed::new();
    let nfkd = DecomposingNormalizerBorrowed::new_nfkd();
    let seconds: BTreeSet<char> = canonical_pairs()
        .into_iter()
        .filter(|&(first, second)| icu.compose(first, second).is_some())
        .map(|(_, second)| second)
        .collect();
    let acts = |c: char| classes.get_u8(c) != 0 || seconds.contains(&c);
    for c in code_points() {
        let first = nfkd.normalize(&c.to_string()).chars().next();
        assert_eq!(
            is_composing(c),
            acts(c) || first.is_some_and(acts),
            "U+{:04X}",
            u32::from(c)
        );
    }
}

#[test]
fn other_characters_are_normalised_one_by_one() {
    let before = chars("a\u{323}\u{301}ー\u{9c7}\u{d46}\u{1100}\u{ac00}\u{113c2}");
    let normalized: Vec<Vec<char>> = (1..=before.len()).map(|n| icu_nfkc(&before[..n])).collect();
    let others = code_points().filter(|&c| !is_composing(c));
    for c in others.step_by(choose_effort(7, 1)) {
        let alone = icu_nfkc(&[c]);
        for (n, expected) in normalized.iter().enumerate() {
            let together = icu_nfkc(&[&before[..=n], &[c]].concat());
            assert_eq!(
                together,
                [expected.as_slice(), &alone].concat(),
                "U+{:04X}",
                u32::from(c)
            );
        }
    }
}

/// Returns NFKC_Casefold of a character by the engine's own tables: it folds, maps compatibility characters,
/// removes ignorable characters and composes until nothing changes.
fn own_nfkc_casefold(c: char) -> Vec<char> {
    let mut text = vec![c];
    loop {
        let mut next = replaced(&replaced(&text, fold_case), compatibility);
        next.retain(|&c| character_class(c) != CharacterClass::Ignorable);
        normalize_nfc(&mut next);
        if next == text {
            return text;
        }
        text = next;
    }
}

/// Returns NFKC_Casefold of a character by ICU4X.
fn icu_nfkc_casefold(c: char) -> Vec<char> {
    let ignorable = CodePointSetData::new::<DefaultIgnorableCodePoint>();
    let mut text = c.to_string();
    loop {
        let folded = CaseMapper::new().fold_string(&text).into_owned();
        let mut next = ComposingNormalizerBorrowed::new_nfkc()
            .normalize(&folded)
            .into_owned();
        next.retain(|c| !ignorable.contains(c));
        let next = ComposingNormalizerBorrowed::new_nfc()
            .normalize(&next)
            .into_owned();
        if next == text {
            return chars(&text);
        }
        text = next;
    }
}

#[test]
fn nfkc_casefold_is_a_fixed_point_of_the_tables() {
    let changes = CodePointSetData::new::<ChangesWhenNfkcCasefolded>();
    for c in code_points() {
        let folded = own_nfkc_casefold(c);
        assert_eq!(folded, icu_nfkc_casefold(c), "U+{:04X}", u32::from(c));
        assert_eq!(folded != [c], changes.contains(c), "U+{:04X}", u32::from(c));
    }
}

#[test]
fn composition_equals_worked_examples() {
    let cases = [
        ("", ""),
        ("plain", "plain"),
        ("e\u{301}", "é"),
        ("\u{301}e", "\u{301}e"),
        ("é\u{323}", "ẹ\u{301}"),
        ("a\u{323}\u{302}", "ậ"),
        ("a\u{302}\u{323}x\u{302}", "ậx\u{302}"),
        ("a\u{300}\u{301}", "à\u{301}"),
        ("a\u{345}\u{300}", "à\u{345}"),
        ("\u{212b}\u{2126}\u{f900}", "ÅΩ豈"),
        ("\u{958}", "\u{915}\u{93c}"),
        ("か\u{3099}は\u{309a}", "がぱ"),
        ("\u{1112}\u{1161}\u{11ab}\u{1100}\u{1173}\u{11af}", "한글"),
        ("\u{ac00}\u{11a7}\u{11a8}", "\u{ac00}\u{11a7}\u{11a8}"),
        ("\u{113c2}\u{113c5}", "\u{113c5}\u{113c2}"),
    ];
    for (text, expected) in cases {
        assert_eq!(own_nfc(&chars(text)), chars(expected), "{text:?}");
        assert_eq!(icu_nfc(&chars(text)), chars(expected), "{text:?}");
    }
    assert_eq!(own_nfkc(&chars("ｶﾞㄱㅏ①ﬁ")), chars("ガ가1fi"));
}

#[test]
fn million_marks_on_one_letter_take_linear_time() {
    let half = 500_000;
    let mut text = vec!['a'];
    text.extend(['\u{301}', '\u{323}'].repeat(half));
    text.push('b');
    normalize_nfc(&mut text);
    assert_eq!(text.len(), 2 * half + 1);
    assert_eq!(text[..2], ['ạ', '\u{323}']);
    assert_eq!(text[half..half + 2], ['\u{301}', '\u{301}']);
    assert_eq!(text.last(), Some(&'b'));
}

#[test]
fn simplification_equals_worked_examples() {
    let cases = "漢汉 臺台 後后 裡里 裏里 麵面 乾干 發发 髮发 龍龙 薴苎";
    for pair in cases.split(' ') {
        let [from, to] = chars(pair)[..] else {
            panic!("{pair} is no pair")
        };
        assert_eq!(simplified(from), Some(to));
    }
    assert!(
        chars("汉字a。あ한\0\u{10ffff}")
            .into_iter()
            .all(|c| simplified(c).is_none())
    );
}

#[test]
fn simplified_characters_do_not_change() {
    for to in code_points().filter_map(simplified) {
        assert_eq!(simplified(to), None);
        assert_eq!(compatibility(to), None);
        assert_eq!(fold_case(to), None);
        assert_eq!(character_class(to), CharacterClass::Character);
    }
}

#[test]
fn unicode_version_is_stated() {
    assert_eq!(UNICODE_VERSION, "18.0.0");
}

/// Generates characters that affect one another, and some that do not.
fn character() -> impl Strategy<Value = char> {
    let composing: Vec<char> = code_points().filter(|&c| is_composing(c)).collect();
    let changing: Vec<char> = code_points()
        .filter(|&c| compatibility(c).is_some())
        .collect();
    let composite: Vec<char> = code_points()
        .filter(|&c| decompose_character(c).is_some_and(|to| to.len() > 1))
        .collect();
    let frequent = chars(
        "aeiouAk \u{300}\u{301}\u{302}\u{308}\u{323}\u{327}\u{345}かハ\u{3099}\u{309a}ﾞ\u{ac00}\u{1100}\u{1161}\u{11a8}\u{9c7}\u{9be}\u{113c2}ㄱㅏ",
    );
    prop_oneof![
        3 => prop::sample::select(frequent),
        2 => prop::sample::select(composing),
        1 => prop::sample::select(changing),
        1 => prop::sample::select(composite),
        1 => any::<char>(),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn texts_normalise_as_in_icu(text in prop::collection::vec(character(), 0..24)) {
        prop_assert_eq!(own_nfc(&text), icu_nfc(&text));
        let normalized = own_nfkc(&text);
        prop_assert_eq!(&normalized, &icu_nfkc(&text));
        prop_assert_eq!(&own_nfc(&normalized), &normalized);
    }
}

/// Variants and their common forms are characters of scripts without spaces that no other step changes.
#[test]
fn variants_have_one_common_form() {
    let forms: Vec<_> = variant_forms().collect();
    assert!(forms.is_sorted_by(|a, b| a.0 < b.0));
    for (variant, common) in forms {
        for point in [variant, common] {
            assert_eq!(character_class(point), CharacterClass::Character, "{point}");
            assert_eq!(
                (compatibility(point), fold_case(point)),
                (None, None),
                "{point}"
            );
            assert_eq!(simplified(point), None, "{point}");
        }
        assert_eq!(common_variant(variant), Some(common));
        assert_eq!(common_variant(common), None, "{variant} {common}");
    }
}
