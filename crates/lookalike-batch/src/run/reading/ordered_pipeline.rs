//! Blocks of rows, processed by all threads, with results in input order.
//!
//! Memory is bounded, because threads wait in two cases. A thread waits if it is more than a few blocks ahead
//! of the others. A thread that emits results of a block before its end also waits, until all earlier blocks are
//! done.

use lookalike_io::error::Result;
use lookalike_io::ordered_results::OrderedResults;
use lookalike_io::source::{InputBlock, InputSet, ParseScratch};

use crate::run::progress::{ProgressListener, begin_reading};

/// Number of finished blocks per thread that may wait for earlier blocks.
const WAITING_BLOCKS_PER_THREAD: u64 = 3;

/// Passes on a chunk of a block's results, once all earlier blocks are done.
pub(crate) type EmitChunk<'a, T> = dyn Fn(T) -> Result<()> + 'a;

/// Reads all inputs. `work` parses and processes each block on any thread, with a state of its own per thread.
/// `accept` receives the results in input order.
pub(crate) fn parse_blocks_in_order<S: Default, T: Send>(
    inputs: &InputSet,
    progress: &dyn ProgressListener,
    work: impl Fn(&InputBlock, &mut ParseScratch, &mut S, &EmitChunk<'_, T>) -> Result<T> + Sync,
    accept: impl FnMut(T) -> Result<()> + Send,
) -> Result<()> {
    let work = |block: &InputBlock, state: &mut (ParseScratch, S), emit: &EmitChunk<'_, T>| {
        work(block, &mut state.0, &mut state.1, emit)
    };
    process_blocks_in_order(
        inputs,
        progress,
        <(ParseScratch, S)>::default,
        &|| inputs.next_block(),
        work,
        accept,
    )
}

/// Reads inputs until `next_block` returns none. `new_state` makes the state of a thread.
pub(in crate::run) fn process_blocks_in_order<S, T: Send>(
    inputs: &InputSet,
    progress: &dyn ProgressListener,
    new_state: impl Fn() -> S + Sync,
    next_block: &(dyn Fn() -> Result<Option<InputBlock>> + Sync),
    work: impl Fn(&InputBlock, &mut S, &EmitChunk<'_, T>) -> Result<T> + Sync,
    mut accept: impl FnMut(T) -> Result<()> + Send,
) -> Result<()> {
    begin_reading(progress, inputs);
    let mut all_bytes = 0;
    let receive = |(chunk, bytes_on_disk): (T, Option<u64>)| {
        accept(chunk)?;
        if let Some(bytes) = bytes_on_disk {
            all_bytes += bytes;
            progress.advance_stage(all_bytes);
        }
        Ok(())
    };
    let ordered = OrderedResults::new(
        receive,
        WAITING_BLOCKS_PER_THREAD * rayon::current_num_threads() as u64,
    );
    rayon::broadcast(|_| {
        ordered.run_worker(|| {
            let mut state = new_state();
            while !ordered.is_stopped() {
                let Some(block) = next_block()? else {
                    break;
                };
                let ordinal = block.ordinal();
                let emit = |chunk| ordered.use_in_order(ordinal, |receive| receive((chunk, None)));
                let chunk = work(&block, &mut state, &emit)?;
                let bytes_on_disk = block.bytes_on_disk();
                inputs.recycle_block(block);
                ordered.finish_result(ordinal, (chunk, Some(bytes_on_disk)))?;
            }
            Ok(())
        });
    });
    ordered.into_receiver().map(drop)
}
