//! Near-duplicate runs over files, in bounded memory: deduplication, pairs, indexes, fingerprints and
//! evaluation.

pub mod contamination_shuffle;
pub mod decisions;
pub mod index;
mod memory;
pub mod passage_shuffle;
mod ranked_set;
pub mod recipes;
pub mod repeated_text_shuffle;
pub mod run;
mod sealed_manifest;
mod temporary;
mod threads;
