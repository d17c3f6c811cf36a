//! Limits on the work and the memory of a search for passages.
//!
//! A service sets them, because the work of a pair grows with both texts, and the memory with what they share. The
//! threads of one search share a budget, and whoever started the search can cancel it from another thread.
//!
//! Cost: an atomic addition for every [`STEPS_AT_A_TIME`] steps.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use crate::error::{Error, ErrorKind, Result};

/// Steps that a [`StepMeter`] counts before it takes them from the budget.
const STEPS_AT_A_TIME: u64 = 4096;

/// The steps and bytes that a search for passages may take.
///
/// A step is the work on one token: some nanoseconds. Their number depends on the texts and the settings alone.
///
/// ```
/// use lookalike::passages::{PassageBudget, PassageFinder, PassageSettings, PassageSource};
///
/// let (tokens, settings) = (vec![7; 100_000], PassageSettings::default());
/// let source = PassageSource::new(&tokens, settings);
/// let mut finder = PassageFinder::new(settings);
/// finder.set_document(&tokens, None);
/// let budget = PassageBudget::new(1000, usize::MAX);
/// let refused = finder.find_passages_within(&source, &budget);
/// assert_eq!(refused.unwrap_err().kind(), lookalike::ErrorKind::TooCostly);
/// ```
#[derive(Debug)]
pub struct PassageBudget {
    max_steps: u64,
    taken_steps: AtomicU64,
    max_bytes: AtomicUsize,
    is_cancelled: AtomicBool,
}

impl PassageBudget {
    /// Allows up to `max_steps` steps in all, and at any time up to `max_bytes` bytes for what a pair of texts takes
    /// beside the texts themselves.
    pub fn new(max_steps: u64, max_bytes: usize) -> Self {
        Self {
            max_steps,
            taken_steps: AtomicU64::new(0),
            max_bytes: AtomicUsize::new(max_bytes),
            is_cancelled: AtomicBool::new(false),
        }
    }

    /// Allows any work and any memory.
    pub fn unlimited() -> Self {
        Self::new(u64::MAX, usize::MAX)
    }

    /// Sets how many bytes a pair of texts may take.
    pub fn set_max_bytes(&self, max_bytes: usize) {
        self.max_bytes.store(max_bytes, Ordering::Relaxed);
    }

    /// Returns how many bytes a pair of texts may take.
    pub fn max_bytes(&self) -> usize {
        self.max_bytes.load(Ordering::Relaxed)
    }

    /// Lets every search with this budget end soon, with an error.
    pub fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::Relaxed);
    }

    /// Returns `true` once the search was cancelled. Work that takes no steps asks this.
    pub fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(Ordering::Relaxed)
    }

    /// Takes steps.
    ///
    /// # Errors
    /// [`ErrorKind::TooCostly`] if they exceed the limit together with those taken before, and if the search was
    /// cancelled. All later calls then fail, too.
    pub fn take_steps(&self, steps: u64) -> Result<()> {
        let before = self.taken_steps.fetch_add(steps, Ordering::Relaxed);
        if self.is_cancelled() {
            return Err(Error::new(
                ErrorKind::TooCostly,
                "the search for passages was cancelled".to_owned(),
            ));
        }
        if before.saturating_add(steps) <= self.max_steps {
            return Ok(());
        }
        // The count stays above the limit and never wraps around.
        self.taken_steps.store(self.max_steps, Ordering::Relaxed);
        Err(Error::new(
            ErrorKind::TooCostly,
            format!(
                "finding the passages takes more than {} steps of one token, the limit of a search: send shorter or \
                 fewer texts",
                self.max_steps
            ),
        ))
    }

    /// Checks that a pair of texts may take bytes.
    ///
    /// # Errors
    /// [`ErrorKind::TooCostly`] if they exceed the limit.
    pub fn check_bytes(&self, bytes: usize) -> Result<()> {
        let max_bytes = self.max_bytes();
        if bytes <= max_bytes {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::TooCostly,
            format!(
                "finding the passages takes more than {max_bytes} bytes of memory, the limit for these texts: send \
                 shorter texts"
            ),
        ))
    }
}

/// Counts the steps of one thread, and takes them from the budget many at a time.
pub(super) struct StepMeter<'a> {
    budget: &'a PassageBudget,
    pending: u64,
    /// Bytes of both texts of the pair, prepared.
    text_bytes: usize,
}

impl<'a> StepMeter<'a> {
    pub(super) fn new(budget: &'a PassageBudget, text_bytes: usize) -> Self {
        Self {
            budget,
            pending: 0,
            text_bytes,
        }
    }

    /// Counts steps.
    #[inline]
    pub(super) fn count_steps(&mut self, steps: u64) -> Result<()> {
        self.pending += steps;
        if self.pending < STEPS_AT_A_TIME {
            return Ok(());
        }
        self.take_pending()
    }

    /// Takes the steps that are counted and not yet taken from the budget. Called at the end of a search, so that many
    /// short searches use up their budget, too.
    pub(super) fn take_pending(&mut self) -> Result<()> {
        self.budget.take_steps(std::mem::take(&mut self.pending))
    }

    /// Checks that lists of some bytes fit beside the texts.
    #[inline]
    pub(super) fn check_bytes(&self, bytes: usize) -> Result<()> {
        self.budget.check_bytes(self.text_bytes + bytes)
    }

    /// Checks that a list of `count` entries of `entry_bytes` each fits beside the texts. Most calls do nothing.
    #[inline]
    pub(super) fn check_list(&self, count: usize, entry_bytes: usize) -> Result<()> {
        if !count.is_multiple_of(LIST_CHECK) {
            return Ok(());
        }
        self.check_bytes((count + LIST_CHECK) * entry_bytes)
    }
}

/// Entries of a list after which its bytes are checked again.
const LIST_CHECK: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_beyond_the_limit_are_refused_for_ever() {
        let budget = PassageBudget::new(10, 100);
        budget.take_steps(9).unwrap();
        budget.take_steps(1).unwrap();
        let refused = budget.take_steps(1).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::TooCostly);
        assert!(refused.to_string().contains("more than 10 steps"));
        assert!(budget.take_steps(u64::MAX / 2).is_err());
        assert!(budget.take_steps(u64::MAX / 2).is_err());
        assert!(budget.take_steps(1).is_err());
        budget.check_bytes(100).unwrap();
        let refused = budget.check_bytes(101).unwrap_err();
        assert!(refused.to_string().contains("more than 100 bytes"));
    }

    #[test]
    fn cancelled_search_takes_no_more_steps() {
        let budget = PassageBudget::unlimited();
        budget.take_steps(1).unwrap();
        assert!(!budget.is_cancelled());
        budget.cancel();
        assert!(budget.is_cancelled());
        assert_eq!(
            budget.take_steps(1).unwrap_err().kind(),
            ErrorKind::TooCostly
        );
    }
}
