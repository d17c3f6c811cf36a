//! A turn: the work that a search may do under one lock, before others get the lock.

/// Counts the work of searches up to the end of a turn, in steps of 64 cells of an edit distance, two to four
/// nanoseconds each.
///
/// All work counts: looking up keys, collecting and filtering candidates, and verification by every measure.
/// The work divides into units, such as one candidate. A turn ends between two units, and has at least one, so
/// that a search ends whatever its turns allow. A candidate that takes much work is one unit all the same, unless
/// the turn has a [limit for units](Self::with_unit_steps).
///
/// ```
/// use lookalike::stream::SearchTurn;
///
/// let turn = SearchTurn::new(1 << 21);
/// assert_eq!((turn.steps(), turn.is_over()), (0, false));
/// ```
#[derive(Clone, Debug)]
pub struct SearchTurn {
    steps: u64,
    limit: u64,
    /// Largest number of steps of a comparison.
    unit_steps: u64,
    has_begun: bool,
}

/// Steps of reading and analysing a byte of a text. Most texts take a tenth of that; words cut by jieba take as
/// many.
const STEPS_OF_TEXT_BYTE: u64 = 4;

impl SearchTurn {
    /// Returns a turn that ends with the unit of work that exceeds `limit` steps.
    pub fn new(limit: u64) -> Self {
        Self {
            steps: 0,
            limit,
            unit_steps: u64::MAX,
            has_begun: false,
        }
    }

    /// Limits the work of a comparison, and of making the keys of a document, which then
    /// [awaits](super::PrecheckResult::awaits_keys) them. A comparison that takes more steps, or needs a text of
    /// more than a byte for every four steps, ends the turn and is
    /// [deferred](super::PrecheckResult::deferred_slot): the caller compares it without its lock. Steps until then
    /// are taken in vain, at most as many as this.
    pub fn with_unit_steps(self, unit_steps: u64) -> Self {
        Self { unit_steps, ..self }
    }

    /// Returns the largest number of steps of a comparison.
    pub(super) fn unit_steps(&self) -> u64 {
        self.unit_steps
    }

    /// Returns the length in bytes of the longest text that is read and analysed in a unit.
    pub fn most_text_bytes(&self) -> usize {
        usize::try_from(self.unit_steps / STEPS_OF_TEXT_BYTE).unwrap_or(usize::MAX)
    }

    /// Counts the work of reading and analysing a text.
    pub fn add_text_bytes(&mut self, bytes: usize) {
        self.add_steps((bytes as u64).saturating_mul(STEPS_OF_TEXT_BYTE));
    }

    /// Returns a turn that does not end.
    pub fn unlimited() -> Self {
        Self::new(u64::MAX)
    }

    /// Returns the steps of the work so far.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Returns `true` if the work exceeds the limit.
    pub fn is_over(&self) -> bool {
        self.steps > self.limit
    }

    /// Counts work.
    pub fn add_steps(&mut self, steps: u64) {
        self.steps = self.steps.saturating_add(steps);
    }

    /// Returns `true` if another unit of work may begin.
    pub(super) fn begin_unit(&mut self) -> bool {
        let may_begin = !self.has_begun || !self.is_over();
        self.has_begun = true;
        may_begin
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turn_has_a_unit_and_ends_beyond_its_limit() {
        let mut turn = SearchTurn::new(0);
        turn.add_steps(5);
        assert!(turn.begin_unit() && !turn.begin_unit());
        let mut turn = SearchTurn::new(10);
        assert!(turn.begin_unit());
        turn.add_steps(10);
        assert!(turn.begin_unit() && !turn.is_over());
        turn.add_steps(1);
        assert!(!turn.begin_unit() && turn.is_over());
    }
}
