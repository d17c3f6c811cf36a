//! Calls of tools that wait for the one thread that works on them.
//!
//! The thread that reads messages adds and cancels, another one takes. At most [`LONGEST_QUEUE`] calls wait; further ones
//! are refused, so a client that never waits for answers cannot fill the memory.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Map, Value};

use super::call_watch::CallWatch;
use super::protocol::{ErrorCode, ProtocolError, RequestId};
use super::tools::ToolDescription;
use crate::commands::shared::documents::lock_ignoring_poison;

/// Largest number of calls that wait.
const LONGEST_QUEUE: usize = 16;

/// Largest number of bytes of all waiting calls together. One call always fits.
const MAX_WAITING_BYTES: usize = 64 << 20;

/// A call of a tool.
pub(super) struct ToolCall {
    pub(super) id: RequestId,
    pub(super) tool: &'static ToolDescription,
    pub(super) arguments: Map<String, Value>,
    /// Bytes of its message.
    pub(super) bytes: usize,
}

#[derive(Default)]
struct QueueState {
    waiting: VecDeque<ToolCall>,
    running: Option<(RequestId, Arc<CallWatch>)>,
    is_closed: bool,
}

/// The queue of calls.
#[derive(Default)]
pub(super) struct CallQueue {
    state: Mutex<QueueState>,
    changed: Condvar,
}

impl CallQueue {
    /// Adds a call at the end.
    ///
    /// # Errors
    /// If a call with its id waits or runs, or if too many calls wait.
    pub(super) fn push_call(&self, call: ToolCall) -> Result<(), ProtocolError> {
        let mut state = lock_ignoring_poison(&self.state);
        let runs = state.running.as_ref().is_some_and(|(id, _)| *id == call.id);
        if runs || state.waiting.iter().any(|other| other.id == call.id) {
            return Err(ProtocolError::new(
                ErrorCode::InvalidRequest,
                "a request with this id is not answered yet: give each request another id",
            ));
        }
        let bytes: usize = state.waiting.iter().map(|other| other.bytes).sum();
        let is_full = state.waiting.len() >= LONGEST_QUEUE
            || (bytes > 0 && bytes + call.bytes > MAX_WAITING_BYTES);
        if is_full {
            return Err(ProtocolError::new(
                ErrorCode::Busy,
                format!(
                    "{} calls wait, at most {LONGEST_QUEUE} of {} MiB together may: send the call again when one is \
                     answered",
                    state.waiting.len(),
                    MAX_WAITING_BYTES >> 20
                ),
            ));
        }
        state.waiting.push_back(call);
        self.changed.notify_all();
        Ok(())
    }

    /// Waits for the first call and takes it. The time limit of its watch begins now. Returns `None` if the queue is
    /// closed and empty.
    pub(super) fn take_call(&self, timeout: Duration) -> Option<(ToolCall, Arc<CallWatch>)> {
        let mut state = lock_ignoring_poison(&self.state);
        loop {
            if let Some(call) = state.waiting.pop_front() {
                let watch = Arc::new(CallWatch::new(timeout));
                state.running = Some((call.id.clone(), Arc::clone(&watch)));
                return Some((call, watch));
            }
            if state.is_closed {
                return None;
            }
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Ends the call that was taken last.
    pub(super) fn finish_call(&self) {
        lock_ignoring_poison(&self.state).running = None;
        self.changed.notify_all();
    }

    /// Cancels a call: one that waits is dropped, one that runs stops as soon as it can. An id that is not known is
    /// ignored, because its answer may be on its way.
    pub(super) fn cancel_call(&self, id: &RequestId) {
        let mut state = lock_ignoring_poison(&self.state);
        state.waiting.retain(|call| call.id != *id);
        if let Some((running, watch)) = &state.running
            && running == id
        {
            watch.cancel();
        }
    }

    /// Takes no further calls. Those that wait are still worked on.
    pub(super) fn close_queue(&self) {
        lock_ignoring_poison(&self.state).is_closed = true;
        self.changed.notify_all();
    }

    /// Waits until no call waits or runs, at most for a time; then cancels all of them.
    pub(super) fn drain_calls(&self, patience: Duration) {
        let end = Instant::now() + patience;
        let mut state = lock_ignoring_poison(&self.state);
        while state.running.is_some() || !state.waiting.is_empty() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                state.waiting.clear();
                if let Some((_, watch)) = &state.running {
                    watch.cancel();
                }
                return;
            }
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tools::TOOLS;
    use super::*;

    fn call(id: i64, bytes: usize) -> ToolCall {
        ToolCall {
            id: RequestId::Number(id),
            tool: &TOOLS[0],
            arguments: Map::new(),
            bytes,
        }
    }

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn queue_is_bounded_and_in_order() {
        let queue = CallQueue::default();
        for id in 0..LONGEST_QUEUE as i64 {
            queue.push_call(call(id, 1)).unwrap();
        }
        let refused = queue.push_call(call(99, 1)).unwrap_err();
        assert_eq!(refused.code, ErrorCode::Busy);
        let refused = queue.push_call(call(3, 1)).unwrap_err();
        assert_eq!(refused.code, ErrorCode::InvalidRequest);
        let (first, _) = queue.take_call(LONG).unwrap();
        assert_eq!(first.id, RequestId::Number(0));
        // The id of the running call is in use, too.
        assert!(queue.push_call(call(0, 1)).is_err());
        queue.finish_call();
        queue.push_call(call(0, 1)).unwrap();
        queue.cancel_call(&RequestId::Number(1));
        let (next, _) = queue.take_call(LONG).unwrap();
        assert_eq!(next.id, RequestId::Number(2));
    }

    #[test]
    fn waiting_calls_have_a_largest_size() {
        let queue = CallQueue::default();
        queue.push_call(call(1, MAX_WAITING_BYTES + 1)).unwrap();
        assert_eq!(
            queue.push_call(call(2, 1)).unwrap_err().code,
            ErrorCode::Busy
        );
        queue.take_call(LONG).unwrap();
        queue.push_call(call(2, MAX_WAITING_BYTES)).unwrap();
        assert!(queue.push_call(call(3, 1)).is_err());
    }

    #[test]
    fn cancelled_and_late_calls_are_over() {
        let queue = CallQueue::default();
        queue.push_call(call(1, 1)).unwrap();
        let (_, watch) = queue.take_call(LONG).unwrap();
        queue.cancel_call(&RequestId::Number(2));
        assert!(!watch.is_over());
        queue.cancel_call(&RequestId::Number(1));
        assert!(watch.is_over() && watch.is_cancelled());
        queue.finish_call();
        queue.push_call(call(3, 1)).unwrap();
        let (_, late) = queue.take_call(Duration::ZERO).unwrap();
        assert!(late.is_over() && !late.is_cancelled());
        queue.close_queue();
        queue.drain_calls(Duration::ZERO);
        assert!(late.is_cancelled());
        assert!(queue.take_call(LONG).is_none());
    }
}
