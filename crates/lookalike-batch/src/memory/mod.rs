//! The memory of a run: its limit, and the budget that a limit leaves.

mod budget;
mod limit;

pub(crate) use self::budget::{BYTES_BESIDE_ROW, MemoryBudget, RowBudget, with_reserve};
pub use self::limit::MemoryLimit;
