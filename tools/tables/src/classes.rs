//! The tokeniser's class of every code point.
//!
//! The rule is explained in the engine's module `text::unicode`.

use icu_properties::props::{
    DefaultIgnorableCodePoint, GeneralCategory, GeneralCategoryGroup, Script, WhiteSpace,
};
use icu_properties::script::ScriptWithExtensions;
use icu_properties::{CodePointMapData, CodePointSetData};

use crate::sources::code_points;

/// The classes of the engine's tokeniser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    Ignorable,
    Space,
    Separator,
    Word,
    Character,
}

/// Scripts without Hangul in whose text lines break between letters without a space: most of their
/// letters have Line_Break ID, CJ, SA, AK or AS. A test checks the list against that rule.
const BROKEN_BETWEEN_LETTERS: [Script; 29] = [
    Script::Ahom,
    Script::Balinese,
    Script::Batak,
    Script::Bopomofo,
    Script::Brahmi,
    Script::Cham,
    Script::DivesAkuru,
    Script::Grantha,
    Script::GurungKhema,
    Script::Han,
    Script::Hiragana,
    Script::Javanese,
    Script::Jurchen,
    Script::Katakana,
    Script::Kawi,
    Script::Khmer,
    Script::Lao,
    Script::Makasar,
    Script::Myanmar,
    Script::NewTaiLue,
    Script::Nushu,
    Script::Seal,
    Script::TaiLe,
    Script::TaiTham,
    Script::TaiViet,
    Script::Tangut,
    Script::Thai,
    Script::TuluTigalari,
    Script::Yi,
];

/// Ancient scripts of word and syllable signs without word division, whose line breaking class is
/// that of alphabets.
const LOGOSYLLABIC: [Script; 4] = [
    Script::AnatolianHieroglyphs,
    Script::Cuneiform,
    Script::EgyptianHieroglyphs,
    Script::ProtoCuneiform,
];

/// Returns the first code point of every run of equal class, in order; the first run starts at 0.
pub(crate) fn ranges() -> Vec<(char, Class)> {
    let mut ranges: Vec<(char, Class)> = Vec::new();
    for c in code_points() {
        let class = class(c);
        if ranges.last().is_none_or(|&(_, last)| last != class) {
            ranges.push((c, class));
        }
    }
    ranges
}

fn class(c: char) -> Class {
    let category = CodePointMapData::<GeneralCategory>::new().get(c);
    let within = |group: GeneralCategoryGroup| group.contains(category);
    if CodePointSetData::new::<DefaultIgnorableCodePoint>().contains(c) {
        Class::Ignorable
    } else if CodePointSetData::new::<WhiteSpace>().contains(c)
        || category == GeneralCategory::Control
    {
        Class::Space
    } else if category == GeneralCategory::DecimalNumber {
        Class::Word
    } else if within(GeneralCategoryGroup::Letter)
        || within(GeneralCategoryGroup::Mark)
        || within(GeneralCategoryGroup::Number)
    {
        if is_unspaced(c) {
            Class::Character
        } else {
            Class::Word
        }
    } else if is_radical(c, category) {
        Class::Character
    } else {
        Class::Separator
    }
}

/// Returns `true` if every script of the character is written without spaces between words.
fn is_unspaced(c: char) -> bool {
    let unspaced =
        |script| BROKEN_BETWEEN_LETTERS.contains(&script) || LOGOSYLLABIC.contains(&script);
    match CodePointMapData::<Script>::new().get(c) {
        Script::Common | Script::Inherited => ScriptWithExtensions::new()
            .get_script_extensions_val(c)
            .iter()
            .all(unspaced),
        script => unspaced(script),
    }
}

/// Returns `true` if the character is a radical of Han or Yi. Its category is a symbol, but texts
/// use it in place of the character that looks the same.
fn is_radical(c: char, category: GeneralCategory) -> bool {
    let script = CodePointMapData::<Script>::new().get(c);
    category == GeneralCategory::OtherSymbol && matches!(script, Script::Han | Script::Yi)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use icu_properties::props::LineBreak;

    use super::*;

    #[test]
    fn unspaced_scripts_break_between_letters() {
        let mut letters: BTreeMap<Script, (u32, u32)> = BTreeMap::new();
        for c in code_points() {
            let category = CodePointMapData::<GeneralCategory>::new().get(c);
            if GeneralCategoryGroup::Letter.contains(category) {
                let counts = letters
                    .entry(CodePointMapData::<Script>::new().get(c))
                    .or_default();
                let breaks = matches!(
                    CodePointMapData::<LineBreak>::new().get(c),
                    LineBreak::Ideographic
                        | LineBreak::ConditionalJapaneseStarter
                        | LineBreak::ComplexContext
                        | LineBreak::Aksara
                        | LineBreak::AksaraStart
                );
                counts.0 += u32::from(breaks);
                counts.1 += 1;
            }
        }
        letters.retain(|&script, &mut (breaks, all)| 2 * breaks > all && script != Script::Hangul);
        let mut expected = BROKEN_BETWEEN_LETTERS.to_vec();
        expected.sort();
        assert_eq!(letters.into_keys().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn every_class_has_expected_ranges() {
        let cases = [
            (
                Class::Ignorable,
                "\u{ad}\u{34f}\u{200b}\u{200d}\u{fe0f}\u{feff}\u{3164}\u{e0001}",
            ),
            (Class::Space, " \t\n\r\0\u{1b}\u{85}\u{a0}\u{2028}\u{3000}"),
            (
                Class::Separator,
                "_-.,'#$+<^`。「・～€😀\u{e000}\u{378}\u{600}༐་",
            ),
            (
                Class::Word,
                "aZ9éßΩжشע१\u{301}각ᄀ\u{1161}འཀᠠᚚ①²๑၁\u{20e3}ª\u{fe70}",
            ),
            (
                Class::Character,
                "漢〇々〆〱あアーｱﾞ\u{3099}ㄅꀀ𗀀⼀⺠꒐ท\u{e34}ລក\u{1000}\u{103b}𓀀𒀀",
            ),
        ];
        for (expected, text) in cases {
            for c in text.chars() {
                assert_eq!(class(c), expected, "U+{:04X}", u32::from(c));
            }
        }
    }
}
