//! Arguments, settings and lines of summaries that several commands have in common.

pub(crate) mod audit_report;
pub(crate) mod documents;
pub(crate) mod fingerprints;
pub(crate) mod inputs;
pub(crate) mod labels;
pub(crate) mod matching;
pub(crate) mod matching_runs;
pub(crate) mod memory_report;
pub(crate) mod outputs;
pub(crate) mod plan_report;
pub(crate) mod recipes;
pub(crate) mod running;
pub(crate) mod summary;
pub(crate) mod weighted_hashes;
