//! The normalised text of the default recipe and its tokens.
//!
//! **Normalised text.** NFKC, full case folding and the removal of default ignorable code points
//! are repeated until nothing changes. Then every traditional Chinese character is replaced by the
//! first simplified character in OpenCC's table, which is simplified again if the table contains
//! it. Canonically equivalent texts are always equal, because folding sees text in canonical order
//! instead of one character after another.
//!
//! **Tokens.** Letters, marks and numbers (general categories L, M and N), and the radicals of Han
//! and Yi, form tokens; everything else separates them. A character of a script that is written
//! without spaces is a token by itself, but decimal digits are always part of words. All other
//! characters form words: a token is a run of them that is as long as possible.
//!
//! A script counts as written without spaces if lines may break between its letters, that is, if
//! most of its letters have one of the Line_Break classes ID, CJ, SA, AK and AS. Hangul is
//! excluded, and four ancient scripts of word signs are included. A character of several scripts
//! (Common or Inherited with Script_Extensions) counts only if all of these are written without
//! spaces.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::LazyLock;

use ferrous_opencc::OpenCC;
use ferrous_opencc::config::BuiltinConfig;
use icu_casemap::CaseMapper;
use icu_normalizer::ComposingNormalizerBorrowed;
use icu_properties::props::{
    DefaultIgnorableCodePoint, GeneralCategory, GeneralCategoryGroup, LineBreak, Script,
};
use icu_properties::script::ScriptWithExtensions;
use icu_properties::{CodePointMapData, CodePointSetData};

/// Returns the text as the default recipe compares it, with punctuation and white space in place.
pub fn normalize_text(text: &str) -> String {
    let nfkc = ComposingNormalizerBorrowed::new_nfkc();
    let ignorable = CodePointSetData::new::<DefaultIgnorableCodePoint>();
    let mut text = text.to_owned();
    loop {
        let composed = nfkc.normalize(&text);
        let folded = CaseMapper::new().fold_string(&composed);
        let next: String = folded.chars().filter(|&c| !ignorable.contains(c)).collect();
        if next == text {
            // Folding decomposes some characters that NFKC composes, for example "ǰ".
            return nfkc.normalize(&text).chars().map(simplified).collect();
        }
        text = next;
    }
}

/// Returns the normalised tokens of a text, in order.
pub fn split_tokens(text: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    let mut word = String::new();
    for c in normalize_text(text).chars() {
        let kind = character_kind(c);
        if kind == CharacterKind::Word {
            word.push(c);
            continue;
        }
        if !word.is_empty() {
            tokens.push(std::mem::take(&mut word));
        }
        if kind == CharacterKind::Character {
            tokens.push(c.to_string());
        }
    }
    if !word.is_empty() {
        tokens.push(word);
    }
    tokens
}

/// Returns OpenCC's simplified form of a character, simplified again as far as possible. For
/// example, 薴 becomes 苧, which becomes 苎.
fn simplified(c: char) -> char {
    static SIMPLIFIED_FORMS: LazyLock<HashMap<char, char>> = LazyLock::new(|| {
        let converter = OpenCC::from_config(BuiltinConfig::T2s).expect("the crate embeds it");
        let mut table = HashMap::new();
        for c in '\0'..=char::MAX {
            if CodePointMapData::<Script>::new().get(c) != Script::Han {
                continue;
            }
            // The converter cannot apply a phrase to a single character.
            let step = |c: char| {
                converter
                    .convert(&c.to_string())
                    .chars()
                    .next()
                    .unwrap_or(c)
            };
            let mut simple = step(c);
            while step(simple) != simple {
                simple = step(simple);
            }
            if simple != c {
                table.insert(c, simple);
            }
        }
        table
    });
    SIMPLIFIED_FORMS.get(&c).copied().unwrap_or(c)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CharacterKind {
    Separator,
    Word,
    Character,
}

fn character_kind(c: char) -> CharacterKind {
    let category = CodePointMapData::<GeneralCategory>::new().get(c);
    let counts = [
        GeneralCategoryGroup::Letter,
        GeneralCategoryGroup::Mark,
        GeneralCategoryGroup::Number,
    ];
    if category == GeneralCategory::DecimalNumber {
        CharacterKind::Word
    } else if counts.iter().any(|group| group.contains(category)) {
        if character_scripts(c)
            .iter()
            .all(|&script| is_unspaced(script))
        {
            CharacterKind::Character
        } else {
            CharacterKind::Word
        }
    } else if category == GeneralCategory::OtherSymbol
        && [Script::Han, Script::Yi].contains(&CodePointMapData::new().get(c))
    {
        CharacterKind::Character
    } else {
        CharacterKind::Separator
    }
}

/// Returns the script of a character, or the scripts that use it if it belongs to none.
fn character_scripts(c: char) -> Vec<Script> {
    match CodePointMapData::<Script>::new().get(c) {
        Script::Common | Script::Inherited => ScriptWithExtensions::new()
            .get_script_extensions_val(c)
            .iter()
            .collect(),
        script => vec![script],
    }
}

fn is_unspaced(script: Script) -> bool {
    static UNSPACED_SCRIPTS: LazyLock<BTreeSet<Script>> = LazyLock::new(|| {
        let mut letters: BTreeMap<Script, (usize, usize)> = BTreeMap::new();
        for c in '\0'..=char::MAX {
            if GeneralCategoryGroup::Letter.contains(CodePointMapData::new().get(c)) {
                let breaks_anywhere = matches!(
                    CodePointMapData::<LineBreak>::new().get(c),
                    LineBreak::Ideographic
                        | LineBreak::ConditionalJapaneseStarter
                        | LineBreak::ComplexContext
                        | LineBreak::Aksara
                        | LineBreak::AksaraStart
                );
                let (breaking, all) = letters.entry(CodePointMapData::new().get(c)).or_default();
                *breaking += usize::from(breaks_anywhere);
                *all += 1;
            }
        }
        letters.retain(|_, (breaking, all)| 2 * *breaking > *all);
        let mut unspaced: BTreeSet<Script> = letters.into_keys().collect();
        unspaced.remove(&Script::Hangul);
        unspaced.extend([
            Script::AnatolianHieroglyphs,
            Script::Cuneiform,
            Script::EgyptianHieroglyphs,
            Script::ProtoCuneiform,
        ]);
        unspaced
    });
    UNSPACED_SCRIPTS.contains(&script)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reposting_changes_are_normalised_away() {
        let cases = [
            ("ＡＢＣ１２３", "abc123"),
            ("Straße STRASSE", "strasse strasse"),
            ("e\u{301}\u{34f} É", "é é"),
            ("ǰ \u{1f0}", "ǰ ǰ"),
            ("zero\u{200b}width\u{feff}", "zerowidth"),
            ("後來髮廊裏頭", "后来发廊里头"),
            ("ﾊﾝｶｸ", "ハンカク"),
            ("①㎏", "1kg"),
            ("α\u{345}\u{301}", "άι"),
            ("豈\u{f900}", "岂岂"),
        ];
        for (text, expected) in cases {
            assert_eq!(normalize_text(text), expected, "{text:?}");
        }
    }

    #[test]
    fn normalising_twice_changes_nothing() {
        for c in '\0'..=char::MAX {
            let once = normalize_text(&c.to_string());
            assert_eq!(normalize_text(&once), once, "U+{:04X}", u32::from(c));
        }
    }

    #[test]
    fn tokens_are_words_or_unspaced_characters() {
        let cases: [(&str, &[&str]); 9] = [
            (
                "Hello, World-wide web_2.0!",
                &["hello", "world", "wide", "web", "2", "0"],
            ),
            ("don't", &["don", "t"]),
            ("iPhone手机15 Pro", &["iphone", "手", "机", "15", "pro"]),
            (
                "カタカナとー漢字",
                &["カ", "タ", "カ", "ナ", "と", "ー", "汉", "字"],
            ),
            ("한국어 문장", &["한국어", "문장"]),
            ("ไทย๑๒", &["ไ", "ท", "ย", "๑๒"]),
            ("naïve cafe\u{301}", &["naïve", "café"]),
            ("नमस्ते दुनिया", &["नमस्ते", "दुनिया"]),
            ("…！ 😀 \u{e000}", &[]),
        ];
        for (text, expected) in cases {
            assert_eq!(split_tokens(text), expected, "{text:?}");
        }
    }

    #[test]
    fn only_han_is_simplified() {
        let converter = OpenCC::from_config(BuiltinConfig::T2s).expect("the crate embeds it");
        for c in '\0'..=char::MAX {
            if CodePointMapData::<Script>::new().get(c) != Script::Han {
                assert_eq!(converter.convert(&c.to_string()), c.to_string());
            }
        }
        assert_eq!(
            ['薴', '苧', '龍', '龙'].map(simplified),
            ['苎', '苎', '龙', '龙']
        );
    }
}
