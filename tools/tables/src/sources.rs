//! The data crates behind simple functions, and the check that they agree.

use anyhow::{Result, bail, ensure};
use ferrous_opencc::OpenCC;
use ferrous_opencc::config::BuiltinConfig;
use icu_casemap::CaseMapper;
use icu_normalizer::properties::CanonicalCombiningClassMapBorrowed;
use icu_normalizer::{ComposingNormalizerBorrowed, DecomposingNormalizerBorrowed};
use icu_properties::CodePointMapData;
use icu_properties::props::GeneralCategory;
use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick, is_nfkc_quick};

/// The Unicode version of all sources.
pub(crate) const UNICODE_VERSION: (u8, u8, u8) = (18, 0, 0);

/// Number of graphic, format and control characters that this version assigns. It distinguishes
/// versions in data that carries no version number.
const ASSIGNED: usize = 172_873;

/// Returns every code point that text can hold, which is all but the surrogates.
pub(crate) fn code_points() -> impl Iterator<Item = char> {
    '\0'..=char::MAX
}

/// Returns the NFKC form of a single character.
pub(crate) fn nfkc(c: char) -> Vec<char> {
    characters(&ComposingNormalizerBorrowed::new_nfkc().normalize(c.encode_utf8(&mut [0; 4])))
}

/// Returns the NFD form of a single character.
pub(crate) fn nfd(c: char) -> Vec<char> {
    characters(&DecomposingNormalizerBorrowed::new_nfd().normalize(c.encode_utf8(&mut [0; 4])))
}

/// Returns the NFKD form of a single character.
pub(crate) fn nfkd(c: char) -> Vec<char> {
    characters(&DecomposingNormalizerBorrowed::new_nfkd().normalize(c.encode_utf8(&mut [0; 4])))
}

/// Returns the full case folding (C and F) of a character.
pub(crate) fn fold(c: char) -> Vec<char> {
    characters(&CaseMapper::new().fold_string(c.encode_utf8(&mut [0; 4])))
}

/// Returns the Canonical_Combining_Class of a character.
pub(crate) fn combining_class(c: char) -> u8 {
    CanonicalCombiningClassMapBorrowed::new().get_u8(c)
}

/// Returns `true` if the character can compose with a preceding one: its NFC_Quick_Check or
/// NFKC_Quick_Check is Maybe.
pub(crate) fn quick_check_maybe(c: char) -> bool {
    let alone = || std::iter::once(c);
    is_nfc_quick(alone()) == IsNormalized::Maybe || is_nfkc_quick(alone()) == IsNormalized::Maybe
}

/// OpenCC's table of single characters, traditional to simplified. Characters that it does not
/// change map to `None`.
///
/// The converter is asked for one character at a time, so that no phrase can match. It returns the
/// first alternative of the table.
pub(crate) struct Simplifier(OpenCC);

impl Simplifier {
    pub(crate) fn new() -> Result<Self> {
        Ok(Self(OpenCC::from_config(BuiltinConfig::T2s)?))
    }

    pub(crate) fn simplified(&self, c: char) -> Result<Option<char>> {
        match characters(&self.0.convert(c.encode_utf8(&mut [0; 4]))).as_slice() {
            [same] if *same == c => Ok(None),
            [other] => Ok(Some(*other)),
            other => bail!("{c:?} is simplified to {other:?}, which is not one character"),
        }
    }
}

/// Returns an error if the sources have another Unicode version or different versions.
pub(crate) fn check_agreement() -> Result<()> {
    let version = unicode_normalization::UNICODE_VERSION;
    ensure!(
        version == UNICODE_VERSION,
        "unicode-normalization has Unicode {version:?}"
    );
    let assigned = code_points().filter(|&c| is_assigned(c)).count();
    ensure!(
        assigned == ASSIGNED,
        "icu_properties assigns {assigned} characters, not {ASSIGNED}"
    );
    for c in code_points() {
        let same = nfkc(c).into_iter().eq(std::iter::once(c).nfkc())
            && nfd(c).into_iter().eq(std::iter::once(c).nfd())
            && nfkd(c).into_iter().eq(std::iter::once(c).nfkd())
            && combining_class(c) == unicode_normalization::char::canonical_combining_class(c);
        ensure!(
            same,
            "the sources disagree on the normalisation of U+{:04X}",
            u32::from(c)
        );
        ensure!(
            is_assigned(c) || is_inert(c),
            "icu_properties does not assign U+{:04X}, which normalisation or folding changes",
            u32::from(c)
        );
    }
    Ok(())
}

fn is_assigned(c: char) -> bool {
    let category = CodePointMapData::<GeneralCategory>::new().get(c);
    !matches!(
        category,
        GeneralCategory::Unassigned | GeneralCategory::PrivateUse
    )
}

fn is_inert(c: char) -> bool {
    combining_class(c) == 0 && nfkc(c) == [c] && fold(c) == [c]
}

fn characters(text: &str) -> Vec<char> {
    text.chars().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_agree() {
        check_agreement().unwrap();
    }

    #[test]
    fn simplifier_maps_single_characters_only() {
        let simplifier = Simplifier::new().unwrap();
        assert_eq!(simplifier.simplified('漢').unwrap(), Some('汉'));
        assert_eq!(simplifier.simplified('乾').unwrap(), Some('干'));
        assert_eq!(simplifier.simplified('汉').unwrap(), None);
        assert_eq!(simplifier.simplified('a').unwrap(), None);
    }
}
