//! The memory of a run: its limit, the budget that the limit leaves, and the shares by which a run divides it.
//!
//! | module | has |
//! |---|---|
//! | `limit` | the limit that a user or the machine sets |
//! | `budget` | what a limit leaves beside the process, its threads and the rows; the reserve of estimates |
//! | [`run_plan`] | runs that compare documents: `dedup`, `pairs` |
//! | [`repeated_text_plan`] | the search for repeated text of `dedup` |
//! | [`passage_plan`] | runs that search for copied passages |
//! | [`contamination_plan`] | runs that look for items of benchmarks |
//! | [`frequency_plan`] | runs that learn document frequencies |
//! | [`build_plan`] | building an index |
//!
//! A *plan* estimates a run before it begins. A *share* is the part of the budget that one purpose has, for example
//! sorting. Nothing here reads inputs: a module `memory_measuring` of each run measures its first rows, and makes the
//! plan from the measures.

mod budget;
pub(crate) mod build_plan;
pub(crate) mod contamination_plan;
pub(crate) mod frequency_plan;
mod limit;
pub(crate) mod passage_plan;
pub(crate) mod repeated_text_plan;
pub(crate) mod run_plan;

pub(crate) use self::budget::{
    BYTES_BESIDE_ROW, MemoryBudget, PROCESS_BYTES, RowBudget, with_reserve,
};
pub use self::limit::MemoryLimit;
