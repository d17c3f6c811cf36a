//! Run-time options of a collection.

use std::fmt;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use lookalike::stream::{SearchTurn, Timestamp};

use crate::state::{CompactionTrigger, begin_turn};

/// Returns the current time.
pub type WallClock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// Run-time options of a collection. Only the clock can change a verdict. `headroom` and `verification` decide which
/// documents are refused, `headroom` only where the collection follows no log.
#[derive(Clone)]
pub struct CollectionOptions {
    /// Source of the current time.
    pub clock: WallClock,
    /// Bytes that must remain free on the disk. Inserts that would leave less are refused. Documents whose
    /// insertion expires a partition may use half of this reserve.
    pub headroom: u64,
    /// Conditions under which [`run_maintenance`](crate::Collection::run_maintenance) compacts a partition.
    pub compaction: CompactionTrigger,
    /// Limits of verification, for a document and for a turn.
    pub verification: VerificationLimits,
    /// `true` if the collection follows a shared log, so that replicas derive the same rows from the same entries;
    /// see [`admit_logged`](crate::Collection::admit_logged). Then `clock` must be the time of the record that is
    /// applied, and `verification` must not limit the steps of a document, because its steps depend on the order of
    /// checks. The headroom refuses nothing: the owner waits for room before it applies an entry.
    pub follows_log: bool,
}

/// Limits of checks, in steps of 64 cells of an edit distance, a few nanoseconds each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VerificationLimits {
    /// The most steps of a document, where documents are compared as sequences. One that takes more is
    /// refused as [`TooCostly`](crate::ErrorKind::TooCostly). So is one that matches nothing and takes more
    /// than half of them, because later ones like it, which are compared with it too, must still get their
    /// verdicts.
    pub document_steps: u64,
    /// Steps after which a turn ends, so that readers and other writers get the lock. All work of checks and
    /// insertions counts, by every measure: looking up candidates, filtering and comparing them, and adding keys. A
    /// single comparison of more than a quarter of them, or of a text of more than a byte for every 16 of them, is
    /// made without keeping anybody waiting.
    pub turn_steps: u64,
}

impl VerificationLimits {
    /// Returns a turn that has not begun.
    pub(super) fn begin_turn(&self) -> SearchTurn {
        begin_turn(self.turn_steps, self.turn_steps)
    }
}

impl Default for VerificationLimits {
    /// 2^24 steps, some 50 ms, and 2^21, some 6 ms.
    fn default() -> Self {
        Self {
            document_steps: 1 << 24,
            turn_steps: 1 << 21,
        }
    }
}

impl Default for CollectionOptions {
    /// Returns the wall clock, 256 MiB of headroom and the default compaction trigger.
    fn default() -> Self {
        Self {
            clock: Arc::new(wall_clock),
            headroom: 256 << 20,
            compaction: CompactionTrigger::default(),
            verification: VerificationLimits::default(),
            follows_log: false,
        }
    }
}

impl fmt::Debug for CollectionOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = formatter.debug_struct("CollectionOptions");
        shown
            .field("headroom", &self.headroom)
            .field("compaction", &self.compaction)
            .field("verification", &self.verification)
            .field("follows_log", &self.follows_log)
            .finish_non_exhaustive()
    }
}

fn wall_clock() -> Timestamp {
    let microseconds = match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_micros()).unwrap_or(i64::MAX),
        Err(before) => -i64::try_from(before.duration().as_micros()).unwrap_or(i64::MAX),
    };
    Timestamp(microseconds)
}
