//! Word-by-word differences of two texts.
//!
//! Words are those of Unicode text segmentation; in Chinese every character is a word.

use std::collections::HashMap;
use std::ops::Range;
use std::time::{Duration, Instant};

use lookalike::Result;
use lookalike::text::{SpanTokenizer, SpannedTokens};
use serde::Serialize;
use similar::algorithms::{Capture, Compact, Replace, myers};
use similar::{DiffOp, DiffTag};
use unicode_segmentation::UnicodeSegmentation;

/// Longest time for finding the shortest difference. After it, a longer one is accepted.
const DIFF_TIME_LIMIT: Duration = Duration::from_secs(5);

/// Texts that have a passage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PassageSide {
    /// Both texts.
    Both,
    /// The first text only.
    Kept,
    /// The second text only.
    Removed,
}

/// Consecutive words that have the same side.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DiffPassage<'a> {
    /// Texts that have these words.
    pub side: PassageSide,
    /// The words, with the blanks and signs between them.
    #[serde(serialize_with = "concatenated")]
    pub words: Vec<&'a str>,
}

fn concatenated<S: serde::Serializer>(words: &[&str], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&words.concat())
}

/// Splits both texts into passages, in order.
pub fn diff_passages<'a>(kept: &'a str, removed: &'a str) -> Vec<DiffPassage<'a>> {
    let mut keys = HashMap::new();
    let mut key_words = |words: &[&'a str]| -> Vec<u64> {
        let mut key = |word: &&'a str| {
            let next = keys.len() as u64;
            *keys.entry(*word).or_insert(next)
        };
        words.iter().map(&mut key).collect()
    };
    let kept: Vec<&str> = kept.split_word_bounds().collect();
    let removed: Vec<&str> = removed.split_word_bounds().collect();
    let steps = diff_keys(&key_words(&kept), &key_words(&removed), DIFF_TIME_LIMIT);
    passages_of_steps(&steps, &kept, &removed)
}

/// Splits both texts into passages, in order. Words that are equal after normalisation are common; they are given as
/// the second text has them. Signs and blanks between words do not differ.
///
/// # Errors
/// If a text has 4 GiB or more.
pub fn diff_normalized<'a>(
    kept: &'a str,
    removed: &'a str,
    tokenizer: &SpanTokenizer,
) -> Result<Vec<DiffPassage<'a>>> {
    let kept = KeyedWords::new(kept, tokenizer)?;
    let removed = KeyedWords::new(removed, tokenizer)?;
    let steps = diff_keys(&kept.keys, &removed.keys, DIFF_TIME_LIMIT);
    Ok(passages_of_steps(&steps, &kept.words, &removed.words))
}

/// Returns the steps from the first list of keys to the second one: the fewest changes, if they are found in time.
/// All differences use this algorithm, so only one of the library's algorithms is compiled.
fn diff_keys(kept: &[u64], removed: &[u64], patience: Duration) -> Vec<DiffOp> {
    let deadline = Some(Instant::now() + patience);
    let mut steps = Compact::new(Replace::new(Capture::new()), kept, removed);
    let ranges = (0..kept.len(), 0..removed.len());
    let Ok(()) = myers::diff_deadline(&mut steps, kept, ranges.0, removed, ranges.1, deadline);
    steps.into_inner().into_inner().into_ops()
}

/// Common words are given as the second text has them.
fn passages_of_steps<'a>(
    steps: &[DiffOp],
    kept: &[&'a str],
    removed: &[&'a str],
) -> Vec<DiffPassage<'a>> {
    let mut passages = Vec::new();
    for step in steps {
        let (kept, removed) = (&kept[step.old_range()], &removed[step.new_range()]);
        let sides: &[(PassageSide, &[&'a str])] = match step.tag() {
            DiffTag::Equal => &[(PassageSide::Both, removed)],
            DiffTag::Delete | DiffTag::Insert | DiffTag::Replace => {
                &[(PassageSide::Kept, kept), (PassageSide::Removed, removed)]
            }
        };
        let given = sides.iter().filter(|(_, words)| !words.is_empty());
        passages.extend(given.map(|&(side, words)| DiffPassage {
            side,
            words: words.to_vec(),
        }));
    }
    passages
}

/// The relation of two texts in a run of words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunKind {
    /// Both have the same characters.
    Equal,
    /// Both have the same words after normalisation, in different characters.
    Normalized,
    /// Only the first text has these words.
    Kept,
    /// Only the second text has these words.
    Removed,
}

/// Consecutive words of both texts that relate in the same way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PairedRun {
    /// The relation.
    pub kind: RunKind,
    /// Bytes of the first text; empty for [`RunKind::Removed`].
    pub kept: Range<usize>,
    /// Bytes of the second text; empty for [`RunKind::Kept`].
    pub removed: Range<usize>,
}

/// Splits both texts into runs, in order. Words that are equal after normalisation are common. A common blank, sign or
/// single word between longer differences counts as different, because a reader takes such differences for one.
///
/// # Errors
/// If a text has 4 GiB or more.
pub fn diff_paired(kept: &str, removed: &str, tokenizer: &SpanTokenizer) -> Result<Vec<PairedRun>> {
    let kept = KeyedWords::new(kept, tokenizer)?;
    let removed = KeyedWords::new(removed, tokenizer)?;
    let steps = diff_keys(&kept.keys, &removed.keys, PAIR_DIFF_TIME_LIMIT);
    let mut blocks: Vec<WordBlock> = Vec::new();
    for step in steps {
        let block = WordBlock {
            is_common: step.tag() == DiffTag::Equal,
            kept: step.old_range(),
            removed: step.new_range(),
        };
        WordBlock::push_merged(&mut blocks, block);
    }
    let mut merged: Vec<WordBlock> = Vec::with_capacity(blocks.len());
    for at in 0..blocks.len() {
        let mut block = blocks[at].clone();
        let sides = (at.checked_sub(1).map(|at| &blocks[at]), blocks.get(at + 1));
        if let (true, (Some(before), Some(after))) = (block.is_common, sides) {
            let size = |block: &WordBlock| {
                let words = kept.count_keyed(&block.kept);
                words.max(removed.count_keyed(&block.removed))
            };
            let common = kept.count_keyed(&block.kept);
            let is_island = common == 1 && size(before).min(size(after)) >= LONG_DIFFERENCE_WORDS;
            block.is_common = common > 0 && !is_island;
        }
        WordBlock::push_merged(&mut merged, block);
    }
    let (kept, removed) = (kept.with_ends(), removed.with_ends());
    let mut runs = Vec::new();
    for block in &merged {
        block.append_runs(&kept, &removed, &mut runs);
    }
    Ok(runs)
}

/// A part of two texts in their order, with the fields that it has: `both` if both texts have the same characters, `a` and
/// `b` if they are equal after normalisation only, and one of these if only that text has it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct AlignedPart<'a> {
    /// Characters of the first text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub a: Option<&'a str>,
    /// Characters of the second text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub b: Option<&'a str>,
    /// Characters that both texts have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub both: Option<&'a str>,
}

/// Splits both texts into parts as [`diff_paired`] does, with their characters.
///
/// # Errors
/// If a text has 4 GiB or more.
pub fn align_texts<'a>(
    a: &'a str,
    b: &'a str,
    tokenizer: &SpanTokenizer,
) -> Result<Vec<AlignedPart<'a>>> {
    let runs = diff_paired(a, b, tokenizer)?;
    let parts = runs.into_iter().map(|run| {
        let (in_a, in_b) = (Some(&a[run.kept]), Some(&b[run.removed]));
        let none = AlignedPart::default();
        match run.kind {
            RunKind::Equal => AlignedPart { both: in_a, ..none },
            RunKind::Normalized => AlignedPart {
                a: in_a,
                b: in_b,
                ..none
            },
            RunKind::Kept => AlignedPart { a: in_a, ..none },
            RunKind::Removed => AlignedPart { b: in_b, ..none },
        }
    });
    Ok(parts.collect())
}

/// Longest time for the difference of one of many pairs.
const PAIR_DIFF_TIME_LIMIT: Duration = Duration::from_millis(300);

/// Words of a difference from which it swallows a common word between it and another one.
const LONG_DIFFERENCE_WORDS: usize = 3;

/// Consecutive words that both texts have, or that differ.
#[derive(Clone)]
struct WordBlock {
    is_common: bool,
    kept: Range<usize>,
    removed: Range<usize>,
}

impl WordBlock {
    fn push_merged(blocks: &mut Vec<Self>, block: Self) {
        match blocks.last_mut() {
            Some(last) if last.is_common == block.is_common => {
                last.kept.end = block.kept.end;
                last.removed.end = block.removed.end;
            }
            _ => blocks.push(block),
        }
    }

    fn append_runs(
        &self,
        kept: &DelimitedWords<'_>,
        removed: &DelimitedWords<'_>,
        runs: &mut Vec<PairedRun>,
    ) {
        if !self.is_common {
            for (kind, kept_words, removed_words) in [
                (
                    RunKind::Kept,
                    self.kept.clone(),
                    self.removed.start..self.removed.start,
                ),
                (
                    RunKind::Removed,
                    self.kept.end..self.kept.end,
                    self.removed.clone(),
                ),
            ] {
                if !kept_words.is_empty() || !removed_words.is_empty() {
                    runs.push(PairedRun {
                        kind,
                        kept: kept.byte_range(kept_words),
                        removed: removed.byte_range(removed_words),
                    });
                }
            }
            return;
        }
        let first = runs.len();
        for (a, b) in self.kept.clone().zip(self.removed.clone()) {
            let kind = if kept.words[a] == removed.words[b] {
                RunKind::Equal
            } else {
                RunKind::Normalized
            };
            let run = PairedRun {
                kind,
                kept: kept.byte_range(a..a + 1),
                removed: removed.byte_range(b..b + 1),
            };
            match runs[first..].last_mut().filter(|run| run.kind == kind) {
                Some(last) => {
                    last.kept.end = run.kept.end;
                    last.removed.end = run.removed.end;
                }
                None => runs.push(run),
            }
        }
    }
}

/// The words of a text, each with a key that equal words share after normalisation.
struct KeyedWords<'a> {
    words: Vec<&'a str>,
    /// 0 for signs and blanks.
    keys: Vec<u64>,
}

impl<'a> KeyedWords<'a> {
    fn new(text: &'a str, tokenizer: &SpanTokenizer) -> Result<Self> {
        let mut tokens = SpannedTokens::default();
        tokenizer.tokenize_text(text, &mut tokens)?;
        let words: Vec<&str> = text.split_word_bounds().collect();
        let (mut end, mut at) = (0, 0);
        let keys = words.iter().map(|word| {
            end += word.len();
            let first = at;
            while at < tokens.len() && tokens.byte_range(at..at + 1).start < end {
                at += 1;
            }
            let values = tokens.values()[first..at].iter();
            values.fold(0, |key: u64, value| {
                key.rotate_left(5).wrapping_mul(31) ^ value
            })
        });
        Ok(Self {
            keys: keys.collect(),
            words,
        })
    }

    /// Returns how many of these words are not blanks or signs.
    fn count_keyed(&self, words: &Range<usize>) -> usize {
        let keys = self.keys[words.clone()].iter();
        keys.filter(|&&key| key != 0).count()
    }

    /// Returns the words, and the byte before each and behind the last.
    fn with_ends(self) -> DelimitedWords<'a> {
        let mut ends = vec![0];
        ends.extend(self.words.iter().scan(0, |end, word| {
            *end += word.len();
            Some(*end)
        }));
        DelimitedWords {
            words: self.words,
            ends,
        }
    }
}

/// The words of a text and where they end in it.
struct DelimitedWords<'a> {
    words: Vec<&'a str>,
    /// 0, then the end of each word in bytes.
    ends: Vec<usize>,
}

impl DelimitedWords<'_> {
    /// Returns the bytes of consecutive words in the text.
    fn byte_range(&self, words: Range<usize>) -> Range<usize> {
        self.ends[words.start]..self.ends[words.end]
    }
}

#[cfg(test)]
mod tests {
    use lookalike::Recipe;

    use super::*;

    /// Runs cover both texts, and a reader sees one difference where a blank would divide it.
    #[test]
    fn paired_runs_cover_both_texts() {
        let tokenizer = SpanTokenizer::new(&Recipe::default());
        for (kept, removed, expected) in [
            ("A boat", "a Boat", "~A|a~ ~boat|Boat~"),
            (
                "the old red boat",
                "the new blue boat",
                "the [old red|][|new blue] boat",
            ),
            (
                "一二三四五六七",
                "一甲乙丙五丁戊己七",
                "一[二三四五六|][|甲乙丙五丁戊己]七",
            ),
            ("one, two", "one; two", "one~,|;~ two"),
            ("", "x", "[|x]"),
            ("", "", ""),
        ] {
            let runs = diff_paired(kept, removed, &tokenizer).unwrap();
            let shown = runs.iter().map(|run| {
                let (a, b) = (&kept[run.kept.clone()], &removed[run.removed.clone()]);
                match run.kind {
                    RunKind::Equal => a.to_owned(),
                    RunKind::Normalized => format!("~{a}|{b}~"),
                    RunKind::Kept | RunKind::Removed => format!("[{a}|{b}]"),
                }
            });
            assert_eq!(shown.collect::<String>(), expected);
            let all: String = runs.iter().map(|run| &kept[run.kept.clone()]).collect();
            assert_eq!(all, kept);
            let all: String = runs
                .iter()
                .map(|run| &removed[run.removed.clone()])
                .collect();
            assert_eq!(all, removed);
        }
    }

    #[test]
    fn aligned_parts_have_the_characters_of_their_texts() {
        let tokenizer = SpanTokenizer::new(&Recipe::default());
        let parts = align_texts("A boat at dawn", "a boat at noon", &tokenizer).unwrap();
        let written = serde_json::to_string(&parts).unwrap();
        let expected = r#"[{"a":"A","b":"a"},{"both":" boat at "},{"a":"dawn"},{"b":"noon"}]"#;
        assert_eq!(written, expected);
    }

    #[test]
    fn words_that_normalise_to_the_same_do_not_differ() {
        let tokenizer = SpanTokenizer::new(&Recipe::default());
        let shown = |kept: &str, removed: &str| -> String {
            let passages = diff_normalized(kept, removed, &tokenizer).unwrap();
            let mark = |passage: &DiffPassage<'_>| match passage.side {
                PassageSide::Both => passage.words.concat(),
                PassageSide::Kept => format!("[-{}-]", passage.words.concat()),
                PassageSide::Removed => format!("{{+{}+}}", passage.words.concat()),
            };
            passages.iter().map(mark).collect()
        };
        for (kept, removed, expected) in [
            ("Ａ boat, at SEVEN", "a Boat; at seven", "a Boat; at seven"),
            ("把纜繩解開了", "把缆绳拉开了", "把缆绳[-解-]{+拉+}开了"),
            ("one two", "one two three", "one two{+ three+}"),
            ("one two", "", "[-one two-]"),
            ("", "", ""),
        ] {
            assert_eq!(shown(kept, removed), expected);
        }
    }
}
