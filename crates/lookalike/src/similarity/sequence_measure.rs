//! Measures of sequences of characters or words.

use super::budget::StepBudget;
use super::edit::{self, SequenceOutline, SequenceSymbol};
use super::substring;
use crate::error::{Error, Result};
use crate::types::{Similarity, Threshold};

/// Symbols that are read in the time of one step.
const SYMBOLS_READ_IN_A_STEP: u64 = 4;

/// A measure of the similarity of two sequences.
///
/// ```
/// use lookalike::Threshold;
/// use lookalike::similarity::SequenceMeasure;
///
/// let [a, b] = ["渡船七点开", "渡船八点开了"].map(|text| text.chars().collect::<Vec<_>>());
/// let similarity = SequenceMeasure::Levenshtein.similarity(&a, &b, Threshold::new(0.5)?)?;
/// // Two edits in six characters.
/// assert_eq!(similarity.map(|similarity| similarity.get()), Some(4.0 / 6.0));
/// # Ok::<_, lookalike::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SequenceMeasure {
    /// 1 − Levenshtein distance ÷ the length of the longer sequence.
    Levenshtein,
    /// 1 − Indel distance ÷ the sum of both lengths.
    Indel,
    /// 2 · length of the longest common substring ÷ the sum of both lengths.
    Substring,
}

impl SequenceMeasure {
    /// Returns the similarity of two sequences if it reaches a threshold; `None` also if both are empty.
    ///
    /// # Errors
    /// [`ErrorKind::Limit`](crate::ErrorKind::Limit) if the sequences are so long and the threshold so low
    /// that it takes more than [`MOST_STEPS`](super::MOST_STEPS) steps.
    pub fn similarity<S: SequenceSymbol>(
        self,
        a: &[S],
        b: &[S],
        threshold: Threshold,
    ) -> Result<Option<Similarity>> {
        self.similarity_within(a, b, threshold, &mut StepBudget::unlimited())
    }

    /// As [`similarity`](Self::similarity), but takes its steps from a budget.
    ///
    /// # Errors
    /// Also [`ErrorKind::TooCostly`](crate::ErrorKind::TooCostly) if the budget runs out.
    pub fn similarity_within<S: SequenceSymbol>(
        self,
        a: &[S],
        b: &[S],
        threshold: Threshold,
        budget: &mut StepBudget,
    ) -> Result<Option<Similarity>> {
        let whole = self.normalizing_length(a.len(), b.len());
        if whole == 0 {
            return Ok(None);
        }
        // Trimming and counting read every symbol.
        budget.take((a.len() + b.len()) as u64 / SYMBOLS_READ_IN_A_STEP)?;
        let least = threshold.least_part(whole);
        let part = match self {
            Self::Levenshtein => {
                let edits = edit::levenshtein_within(a, b, whole - least, budget)?;
                edits.map(|edits| whole - edits)
            }
            Self::Indel => {
                let edits = edit::indel_within(a, b, whole - least, budget)?;
                edits.map(|edits| whole - edits)
            }
            Self::Substring => {
                let least = least.div_ceil(2);
                substring::longest_of_at_least(a, b, least, budget)?.map(|length| 2 * length)
            }
        };
        Ok(part.map(|part| Similarity::from_ratio(part, whole)))
    }

    /// Returns the divisor of the similarity of sequences with these lengths.
    fn normalizing_length(self, a: usize, b: usize) -> usize {
        match self {
            Self::Levenshtein => a.max(b),
            Self::Indel | Self::Substring => a + b,
        }
    }

    /// Returns `false` only if the outlines prove that two sequences cannot reach the threshold.
    #[inline]
    pub(crate) fn may_reach_threshold(
        self,
        a: SequenceOutline,
        b: SequenceOutline,
        threshold: Threshold,
    ) -> bool {
        let (Some(in_a), Some(in_b)) = (a.symbol_count(), b.symbol_count()) else {
            return true;
        };
        let whole = self.normalizing_length(in_a, in_b);
        let least = match self {
            Self::Levenshtein => a.least_edits(b),
            Self::Indel | Self::Substring => a.least_alone(b),
        };
        whole == 0 || threshold.admits_ratio(whole - least.min(whole), whole)
    }

    /// Returns `true` if the measure counts edits, which takes time in proportion to the product of both lengths.
    pub fn counts_edits(self) -> bool {
        match self {
            Self::Levenshtein | Self::Indel => true,
            Self::Substring => false,
        }
    }

    /// Returns the similarity of two sequences, whatever it is, and describes how it comes about. The sequences must
    /// not both be empty.
    ///
    /// # Errors
    /// Fails if the sequences differ in more than `most_edits` edits, or are too long to be compared.
    pub(crate) fn describe_similarity<S: SequenceSymbol>(
        self,
        a: &[S],
        b: &[S],
        most_edits: usize,
        symbol: SymbolNoun,
    ) -> Result<(Similarity, String)> {
        let whole = self.normalizing_length(a.len(), b.len());
        let in_whole = symbol.format_count(whole);
        let most = whole.min(most_edits);
        let check_edits = |edits: Option<usize>| {
            edits.ok_or_else(|| {
                Error::text_error(format!(
                    "not computed: the texts have {} and {} {} and differ in more than {most_edits} \
                     edits",
                    a.len(),
                    b.len(),
                    symbol.plural
                ))
            })
        };
        let (part, detail) = match self {
            Self::Levenshtein => {
                let edits = check_edits(edit::levenshtein_distance(a, b, most)?)?;
                let counted = format_count(edits, "edit", "edits");
                (
                    whole.saturating_sub(edits),
                    format!("{counted}, {in_whole} in the longer"),
                )
            }
            Self::Indel => {
                let edits = check_edits(edit::indel_distance(a, b, most)?)?;
                let counted =
                    format_count(edits, "insertion or deletion", "insertions and deletions");
                (
                    whole.saturating_sub(edits),
                    format!("{counted}, {in_whole} in both"),
                )
            }
            Self::Substring => {
                let length = substring::longest_common_substring(a, b)?;
                let run = symbol.format_count(length);
                (2 * length, format!("{run} in a row, {whole} in both"))
            }
        };
        Ok((Similarity::from_ratio(part, whole), detail))
    }
}

/// The noun for the symbols of a sequence.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SymbolNoun {
    pub(crate) singular: &'static str,
    pub(crate) plural: &'static str,
}

impl SymbolNoun {
    fn format_count(self, count: usize) -> String {
        format_count(count, self.singular, self.plural)
    }
}

/// Returns a number with its noun.
pub(crate) fn format_count(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}
