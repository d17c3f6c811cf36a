//! Mappings of characters: normalisation, folding, simplification.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, ensure};
use icu_normalizer::properties::{
    CanonicalCompositionBorrowed, CanonicalDecompositionBorrowed, Decomposed,
};

use crate::sources::{self, Simplifier, code_points};

/// Precomposed Hangul syllables, which the engine computes without a table.
const HANGUL_SYLLABLES: std::ops::RangeInclusive<char> = '\u{ac00}'..='\u{d7a3}';

/// Vowels and trailing consonants that are joined to a preceding syllable by computation.
const HANGUL_SECONDS: [std::ops::RangeInclusive<char>; 2] =
    ['\u{1161}'..='\u{1175}', '\u{11a8}'..='\u{11c2}'];

/// A table from characters to their replacements, ordered by character.
pub(crate) type Expansions = BTreeMap<char, Vec<char>>;

/// All tables except the classes, each ordered by its first column.
pub(crate) struct Mappings {
    /// NFKC of a single character, where it differs from the character.
    pub(crate) compatibility: Expansions,
    /// Full case folding, where it differs from the character.
    pub(crate) fold: Expansions,
    /// NFD of a single character, where it differs from the character, without Hangul.
    pub(crate) decomposition: Expansions,
    /// Primary composites by first and second character, without Hangul.
    pub(crate) compositions: BTreeMap<(char, char), char>,
    /// First and last of each run of characters with the same non-zero combining class.
    pub(crate) combining: Vec<(char, char, u8)>,
    /// First and last of each run of characters that can combine with a preceding one.
    pub(crate) composing: Vec<(char, char)>,
    /// Traditional to simplified characters.
    pub(crate) simplified: BTreeMap<char, char>,
}

impl Mappings {
    pub(crate) fn collect() -> Result<Self> {
        Ok(Self {
            compatibility: differing(sources::nfkc),
            fold: differing(sources::fold),
            decomposition: {
                let mut table = differing(sources::nfd);
                table.retain(|c, _| !HANGUL_SYLLABLES.contains(c));
                table
            },
            compositions: compositions(),
            combining: combining(),
            composing: composing()?,
            simplified: simplified()?,
        })
    }
}

fn differing(mapping: impl Fn(char) -> Vec<char>) -> Expansions {
    code_points()
        .map(|c| (c, mapping(c)))
        .filter(|(c, to)| to != &[*c])
        .collect()
}

fn compositions() -> BTreeMap<(char, char), char> {
    let canonical = CanonicalDecompositionBorrowed::new();
    let composition = CanonicalCompositionBorrowed::new();
    code_points()
        .filter(|c| !HANGUL_SYLLABLES.contains(c))
        .filter_map(|c| match canonical.decompose(c) {
            Decomposed::Expansion(first, second) => Some(((first, second), c)),
            _ => None,
        })
        .filter(|&((first, second), c)| composition.compose(first, second) == Some(c))
        .collect()
}

fn combining() -> Vec<(char, char, u8)> {
    let mut runs: Vec<(char, char, u8)> = Vec::new();
    for c in code_points() {
        match (sources::combining_class(c), runs.last_mut()) {
            (0, _) => {}
            (class, Some(run)) if run.2 == class && follows(run.1, c) => run.1 = c,
            (class, _) => runs.push((c, c, class)),
        }
    }
    runs
}

/// Returns runs of the characters that have a combining class, that compose with a character before
/// them, or whose decomposition, canonical or by compatibility, starts with such a character.
fn composing() -> Result<Vec<(char, char)>> {
    let seconds: BTreeSet<char> = compositions()
        .into_keys()
        .map(|(_, second)| second)
        .collect();
    let acts = |c: char| {
        sources::combining_class(c) != 0
            || seconds.contains(&c)
            || HANGUL_SECONDS.iter().any(|range| range.contains(&c))
    };
    let mut runs: Vec<(char, char)> = Vec::new();
    for c in code_points() {
        let composing = acts(c) || sources::nfkd(c).first().copied().is_some_and(acts);
        ensure!(
            composing || !sources::quick_check_maybe(c),
            "U+{:04X} may compose, but starts with no second half of a composite",
            u32::from(c)
        );
        if composing {
            match runs.last_mut() {
                Some(run) if follows(run.1, c) => run.1 = c,
                _ => runs.push((c, c)),
            }
        }
    }
    Ok(runs)
}

/// Returns the table applied to itself until nothing changes, so that simplified text stays as it
/// is. For example, 薴 becomes 苧, which as a traditional character becomes 苎.
fn simplified() -> Result<BTreeMap<char, char>> {
    let simplifier = Simplifier::new()?;
    let mut table = BTreeMap::new();
    for c in code_points() {
        let mut steps = vec![c];
        while let Some(next) = simplifier.simplified(steps[steps.len() - 1])? {
            ensure!(
                !steps.contains(&next),
                "simplifying {c:?} comes back to {next:?}"
            );
            steps.push(next);
        }
        if let [_, .., last] = steps[..] {
            table.insert(c, last);
        }
    }
    Ok(table)
}

fn follows(earlier: char, later: char) -> bool {
    u32::from(earlier) + 1 == u32::from(later)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simplification_is_closed_on_normalised_text() {
        let table = simplified().unwrap();
        assert_eq!(table[&'薴'], '苎');
        assert_eq!(table.len(), 4105);
        for (from, to) in &table {
            assert!(!table.contains_key(to), "{from} becomes {to}");
            assert_eq!(sources::nfkc(*from), [*from]);
            assert_eq!(sources::nfkc(*to), [*to]);
        }
    }

    #[test]
    fn composing_covers_halfwidth_and_compatibility() {
        let runs = composing().unwrap();
        let covered = |c: char| {
            runs.iter()
                .any(|&(first, last)| (first..=last).contains(&c))
        };
        for c in [
            '\u{301}', '\u{3099}', 'ﾞ', 'ﾟ', '\u{1161}', '\u{11a8}', 'ㅏ', '\u{9be}',
        ] {
            assert!(covered(c), "U+{:04X}", u32::from(c));
        }
        for c in ['a', 'é', '漢', '가', '\u{1100}', 'ㄱ', 'ア'] {
            assert!(!covered(c), "U+{:04X}", u32::from(c));
        }
    }
}
