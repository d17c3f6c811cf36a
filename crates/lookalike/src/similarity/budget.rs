//! The work that verification may take.

use crate::error::{Error, ErrorKind, Result};

/// Counts the steps of verification, up to a limit.
///
/// A step is the work on one machine word: 64 cells of an edit distance, two to four nanoseconds. Other
/// work is charged by the same measure, by lengths alone. So the number of steps of a pair depends on its
/// two texts and on the match plan, and on nothing else.
///
/// ```
/// use lookalike::Threshold;
/// use lookalike::similarity::{SequenceMeasure, StepBudget};
///
/// let (text, mut budget) = (vec!['a'; 10_000], StepBudget::new(100));
/// let measure = SequenceMeasure::Levenshtein;
/// let refused = measure.similarity_within(&text, &text, Threshold::DEFAULT, &mut budget);
/// assert_eq!(refused.unwrap_err().kind(), lookalike::ErrorKind::TooCostly);
/// ```
#[derive(Clone, Debug)]
pub struct StepBudget {
    taken: u64,
    limit: u64,
    /// Steps beyond which the work is abandoned, to be done elsewhere.
    pause: u64,
}

impl StepBudget {
    /// Allows up to `limit` steps.
    pub fn new(limit: u64) -> Self {
        Self::resume(limit, 0)
    }

    /// Allows up to `limit` steps, of which `taken` were taken before.
    pub(crate) fn resume(limit: u64, taken: u64) -> Self {
        Self {
            taken,
            limit,
            pause: u64::MAX,
        }
    }

    /// Abandons the work before it takes more than `steps` further steps. Whoever gets the error asks
    /// [`has_paused`](Self::has_paused), because the limit may allow the work.
    pub(crate) fn pausing_after(self, steps: u64) -> Self {
        Self {
            pause: self.taken.saturating_add(steps),
            ..self
        }
    }

    /// Returns `true` if the work was abandoned by [`pausing_after`](Self::pausing_after).
    pub(crate) fn has_paused(&self) -> bool {
        self.taken > self.pause
    }

    /// Allows any number of steps.
    pub fn unlimited() -> Self {
        Self::new(u64::MAX)
    }

    /// Steps taken so far. They exceed the limit if the work was refused.
    pub fn taken(&self) -> u64 {
        self.taken
    }

    /// Counts steps that are not refused, because their number is small beside the work that follows.
    ///
    /// # Errors
    /// If the work [pauses](Self::pausing_after).
    pub(crate) fn add(&mut self, steps: u64) -> Result<()> {
        self.taken = self.taken.saturating_add(steps);
        if self.has_paused() {
            let what = "the comparison takes more steps than a unit of a turn";
            return Err(Error::new(ErrorKind::TooCostly, what));
        }
        Ok(())
    }

    /// Takes steps.
    ///
    /// # Errors
    /// [`ErrorKind::TooCostly`] if they exceed the limit together with those taken before.
    pub(crate) fn take(&mut self, steps: u64) -> Result<()> {
        self.add(steps)?;
        if self.taken <= self.limit {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::TooCostly,
            format!(
                "comparing the text with its candidates takes more than {} steps of 64 cells, the \
                 limit for one document: send a shorter text, or use a collection with a higher \
                 threshold or a measure of features, such as jaccard",
                self.limit
            ),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_refused_beyond_the_limit() {
        let mut budget = StepBudget::new(10);
        budget.take(9).unwrap();
        assert_eq!(budget.taken(), 9);
        budget.take(1).unwrap();
        let refused = budget.take(1).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::TooCostly);
        assert!(refused.to_string().contains("more than 10 steps"));
        StepBudget::unlimited().take(u64::MAX).unwrap();
    }

    #[test]
    fn work_pauses_before_further_steps() {
        let mut budget = StepBudget::resume(100, 7).pausing_after(10);
        budget.take(10).unwrap();
        assert!(!budget.has_paused());
        assert!(budget.clone().add(1).is_err());
        assert!(budget.take(1).is_err() && budget.has_paused());
        // Beyond the limit, the work is refused and not paused.
        let mut budget = StepBudget::resume(100, 95).pausing_after(10);
        assert!(budget.take(6).is_err() && !budget.has_paused());
    }
}
