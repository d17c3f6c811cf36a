//! Files without a name that live as long as a run: parts that are written in blocks, and runs of sorted records.

pub(crate) mod part_file;
pub(crate) mod sorted_runs;
