//! The work that a search may do before others have their turn.

/// Counts the work of searches up to the end of a turn, in steps of 64 cells of an edit distance, two to four
/// nanoseconds each.
///
/// All work counts: looking up keys, collecting and filtering candidates, and verification by every measure.
/// The work divides into units, such as one candidate. A turn ends between two units, and has at least one, so
/// that a search ends whatever its turns allow.
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
    has_begun: bool,
}

impl SearchTurn {
    /// Returns a turn that ends with the unit of work that exceeds `limit` steps.
    pub fn new(limit: u64) -> Self {
        Self {
            steps: 0,
            limit,
            has_begun: false,
        }
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
