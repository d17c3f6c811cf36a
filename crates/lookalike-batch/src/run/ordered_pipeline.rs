//! Blocks of rows, processed by all threads, with results in input order.
//!
//! Memory is bounded: a thread waits if it is more than a few blocks ahead of the others, or if it has
//! produced too many results of a single block and it is not that block's turn.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use lookalike_io::error::{Error, Result};
use lookalike_io::source::{InputBlock, InputSet, ParseScratch};

use super::progress::{ProgressListener, begin_reading};

/// Number of finished blocks per thread that may wait for earlier blocks.
const WAITING: u64 = 3;

/// Passes on a part of a block's results, after waiting for the block's turn.
pub(crate) type EmitPart<'a, T> = dyn Fn(T) -> Result<()> + 'a;

struct OrderedResults<T, H> {
    state: Mutex<OrderedState<T, H>>,
    moved: Condvar,
}

struct OrderedState<T, H> {
    /// The block whose turn it is.
    next: u64,
    waiting: BTreeMap<u64, T>,
    hand_on: H,
    bytes_on_disk: u64,
    failure: Option<Error>,
}

/// Reads all inputs. `work` processes each block on any thread, with a state of its own per thread.
/// `hand_on` receives the results in input order.
pub(crate) fn blocks_in_order<S: Default, T: Send>(
    inputs: &InputSet,
    progress: &dyn ProgressListener,
    work: impl Fn(&InputBlock, &mut ParseScratch, &mut S, &EmitPart<'_, T>) -> Result<T> + Sync,
    hand_on: impl FnMut(T) -> Result<()> + Send,
) -> Result<()> {
    begin_reading(progress, inputs);
    let ordered = OrderedResults {
        state: Mutex::new(OrderedState {
            next: 0,
            waiting: BTreeMap::new(),
            hand_on,
            bytes_on_disk: 0,
            failure: None,
        }),
        moved: Condvar::new(),
    };
    rayon::broadcast(|_| {
        let _guard = StopOnPanic(&ordered);
        let mut parse = ParseScratch::default();
        let mut state = S::default();
        let mut run = || -> Result<()> {
            while ordered.lock_state().failure.is_none() {
                let Some(block) = inputs.next_block()? else {
                    break;
                };
                let ordinal = block.ordinal();
                let emit = |part| ordered.emit_part(ordinal, part);
                let made = work(&block, &mut parse, &mut state, &emit)?;
                let bytes_on_disk = block.bytes_on_disk();
                inputs.recycle_block(block);
                progress.advance_stage(ordered.finish_block(ordinal, made, bytes_on_disk)?);
            }
            Ok(())
        };
        if let Err(error) = run() {
            ordered.record_failure(error);
        }
    });
    let state = ordered.state.into_inner();
    match state.unwrap_or_else(PoisonError::into_inner).failure {
        Some(error) => Err(error),
        None => Ok(()),
    }
}

impl<T, H: FnMut(T) -> Result<()>> OrderedResults<T, H> {
    fn emit_part(&self, ordinal: u64, part: T) -> Result<()> {
        let mut state = self.wait_until(|next| next == ordinal)?;
        (state.hand_on)(part)
    }

    /// Takes the results of a block, or the rest of them. Returns the total number of bytes read.
    fn finish_block(&self, ordinal: u64, made: T, bytes_on_disk: u64) -> Result<u64> {
        let ahead = WAITING * rayon::current_num_threads() as u64;
        let mut state = self.wait_until(|next| next + ahead >= ordinal)?;
        state.bytes_on_disk += bytes_on_disk;
        state.waiting.insert(ordinal, made);
        let before = state.next;
        loop {
            let next = state.next;
            let Some(made) = state.waiting.remove(&next) else {
                break;
            };
            (state.hand_on)(made)?;
            state.next += 1;
        }
        if state.next > before {
            self.moved.notify_all();
        }
        Ok(state.bytes_on_disk)
    }

    /// Waits until `is_turn` holds. Returns an error if another thread has failed.
    fn wait_until(
        &self,
        is_turn: impl Fn(u64) -> bool,
    ) -> Result<MutexGuard<'_, OrderedState<T, H>>> {
        let mut state = self.lock_state();
        loop {
            if state.failure.is_some() {
                // The failing thread reports the error itself.
                return Err(Error::usage_error("another thread has failed"));
            }
            if is_turn(state.next) {
                return Ok(state);
            }
            state = self
                .moved
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl<T, H> OrderedResults<T, H> {
    fn record_failure(&self, error: Error) {
        self.lock_state().failure.get_or_insert(error);
        self.moved.notify_all();
    }

    fn lock_state(&self) -> MutexGuard<'_, OrderedState<T, H>> {
        // A panic in another thread propagates at the end of the broadcast anyway.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends all waiting if a thread panics.
struct StopOnPanic<'a, T, H>(&'a OrderedResults<T, H>);

impl<T, H> Drop for StopOnPanic<'_, T, H> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0
                .record_failure(Error::usage_error("a thread has panicked"));
        }
    }
}
