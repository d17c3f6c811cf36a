//! Turns of documents that are costly to compare, so that no record keeps a replica for long.
//!
//! Where texts are compared as sequences, a pair takes time in proportion to the product of its lengths. A document is
//! therefore checked before it is proposed, against the collection as it is then, and refused if that takes too long.
//! Once it is in the log nothing may refuse it, because every replica must decide equally, and no two machines take the
//! same time.
//!
//! That check does not see the documents that are proposed and not applied yet, which are compared with it when they
//! are. So this replica bounds them together, by their bytes and by the time of their checks. One document at a time is
//! checked, and it waits until those in flight leave room for it. A document that is larger than the bound is in flight
//! alone.
//!
//! Guarantee: of the entries that a replica writes to a record, the checks took at most [`MAX_CHECK_TIME`] together, or
//! one of them alone more. The comparisons among them take at most half of [`MAX_BYTES`] squared in cells of 64 a step,
//! which is 2²⁷ steps of two to four nanoseconds. Records of other replicas, which are written between a check and the
//! application, add the same for each of them.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, MutexGuard, watch};

/// Most bytes of the documents in flight, unless there is one alone. Their JSON counts, which is no shorter than their
/// texts.
pub(crate) const MAX_BYTES: usize = 128 << 10;

/// Longest time of the checks of the documents in flight, unless there is one alone.
const MAX_CHECK_TIME: Duration = Duration::from_millis(250);

/// Costs of documents that are proposed and not applied yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct DocumentCosts {
    documents: usize,
    bytes: usize,
    check_time: Duration,
}

impl DocumentCosts {
    fn has_room_for_bytes(&self, bytes: usize) -> bool {
        self.documents == 0 || self.bytes.saturating_add(bytes) <= MAX_BYTES
    }

    fn has_room_for_check(&self, check_time: Duration) -> bool {
        self.documents == 0 || self.check_time + check_time <= MAX_CHECK_TIME
    }
}

/// The turns of a replica. Documents of all of its requests take them in the order in which they ask.
#[derive(Default)]
pub(crate) struct CostlyTurns {
    turn: Mutex<()>,
    in_flight: Arc<watch::Sender<DocumentCosts>>,
}

/// The turn of one document: nobody else checks or proposes a costly document meanwhile.
pub(crate) struct CostlyTurn<'a> {
    guard: MutexGuard<'a, ()>,
    in_flight: &'a Arc<watch::Sender<DocumentCosts>>,
    bytes: usize,
}

/// The turn of a document that counts as in flight.
pub(crate) struct CountedTurn<'a> {
    guard: MutexGuard<'a, ()>,
    cost: HeldCost,
}

/// The cost of a document, counted until this is dropped.
pub(crate) struct HeldCost {
    in_flight: Arc<watch::Sender<DocumentCosts>>,
    bytes: usize,
    check_time: Duration,
}

impl CostlyTurns {
    /// Waits for the turn of a document, and until those in flight leave room for its bytes.
    pub(crate) async fn begin_turn(&self, bytes: usize) -> CostlyTurn<'_> {
        let guard = self.turn.lock().await;
        let mut costs = self.in_flight.subscribe();
        // The sender lives as long as the replica.
        let _ = costs
            .wait_for(|costs| costs.has_room_for_bytes(bytes))
            .await;
        CostlyTurn {
            guard,
            in_flight: &self.in_flight,
            bytes,
        }
    }
}

impl<'a> CostlyTurn<'a> {
    /// Waits until the documents in flight leave room for the time that the check has taken, and counts the document.
    pub(crate) async fn count_document(self, check_time: Duration) -> CountedTurn<'a> {
        let mut costs = self.in_flight.subscribe();
        let _ = costs
            .wait_for(|costs| costs.has_room_for_check(check_time))
            .await;
        self.in_flight.send_modify(|costs| {
            costs.documents += 1;
            costs.bytes += self.bytes;
            costs.check_time += check_time;
        });
        let cost = HeldCost {
            in_flight: Arc::clone(self.in_flight),
            bytes: self.bytes,
            check_time,
        };
        CountedTurn {
            guard: self.guard,
            cost,
        }
    }
}

impl<'a> CountedTurn<'a> {
    /// Returns the cost, which is dropped once the document is applied, and the guard of the turn, which is dropped once
    /// it is proposed.
    pub(crate) fn into_parts(self) -> (HeldCost, MutexGuard<'a, ()>) {
        (self.cost, self.guard)
    }
}

impl Drop for HeldCost {
    fn drop(&mut self) {
        self.in_flight.send_modify(|costs| {
            costs.documents -= 1;
            costs.bytes -= self.bytes;
            costs.check_time -= self.check_time;
        });
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    /// Returns the result of a future that is ready.
    fn poll_once<T>(future: impl Future<Output = T>) -> Option<T> {
        let mut context = Context::from_waker(Waker::noop());
        match pin!(future).poll(&mut context) {
            Poll::Ready(result) => Some(result),
            Poll::Pending => None,
        }
    }

    /// Counts a document, if its turn comes at once.
    fn count(turns: &CostlyTurns, bytes: usize, milliseconds: u64) -> Option<HeldCost> {
        let turn = poll_once(turns.begin_turn(bytes))?;
        let counted = poll_once(turn.count_document(Duration::from_millis(milliseconds)))?;
        Some(counted.into_parts().0)
    }

    #[test]
    fn documents_in_flight_are_bounded_by_bytes_and_time() {
        let turns = CostlyTurns::default();
        // A document beyond both bounds is in flight alone.
        let large = count(&turns, MAX_BYTES + 1, 400).unwrap();
        assert!(count(&turns, 1, 0).is_none());
        drop(large);
        let half = count(&turns, MAX_BYTES / 2, 100).unwrap();
        let rest = count(&turns, MAX_BYTES / 2, 150).unwrap();
        assert!(count(&turns, 1, 0).is_none());
        drop(rest);
        // There is room for the bytes, and not for the time of the check.
        assert!(count(&turns, 1, 151).is_none());
        assert!(count(&turns, 1, 150).is_some());
        drop(half);
        assert_eq!(*turns.in_flight.borrow(), DocumentCosts::default());
    }

    /// Nobody else has a turn before the document is proposed.
    #[test]
    fn turn_lasts_until_the_document_is_proposed() {
        let turns = CostlyTurns::default();
        let turn = poll_once(turns.begin_turn(1)).unwrap();
        assert!(poll_once(turns.begin_turn(1)).is_none());
        let counted = poll_once(turn.count_document(Duration::ZERO)).unwrap();
        assert!(poll_once(turns.begin_turn(1)).is_none());
        drop(counted.into_parts());
        assert!(poll_once(turns.begin_turn(1)).is_some());
    }
}
