//! The limit on the memory of a run.

/// A limit on the memory of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryLimit {
    /// Bytes of memory of the process.
    pub bytes: u64,
    /// `true` if a user has set the limit, `false` if it is a share of what the machine has. Inputs of unknown size
    /// are read out of core only under a limit that was set.
    pub is_set: bool,
    /// Bytes for keys and groups of documents. The run is then out of core, whatever the limit is. `None` takes what
    /// the limit leaves beside the rows.
    pub working_set: Option<u64>,
}

impl MemoryLimit {
    /// Returns `true` if inputs of `bytes` bytes need not be measured, because they cannot reach the limit and it was
    /// not set by a user.
    pub(crate) fn is_far_above(self, bytes: u64) -> bool {
        !self.is_set && self.working_set.is_none() && bytes <= self.bytes / 16
    }
}
