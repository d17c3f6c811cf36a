//! Tests that run the real program on files.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests stop where the tests stop"
)]

mod attacks;
mod auditing;
mod base_text;
mod bounded;
mod bounded_tables;
mod comparing;
mod compat;
mod contamination_planting;
mod copies;
mod decisions;
mod decontaminate;
mod documents;
mod evaluating;
mod explaining;
// Rights of files, signals and devices of Unix.
#[cfg(unix)]
mod failures;
mod fields;
mod fingerprints;
mod formats;
mod forms;
mod garbled;
mod growing;
mod guarded;
mod guide;
mod heads;
mod hostile;
mod interface;
mod killed;
mod language;
mod libraries;
mod listing;
mod matching;
mod mcp;
mod measures;
mod monitoring;
mod operating;
mod option_pairs;
mod oracle;
mod outputs;
mod packages;
mod pages;
mod passage_index;
mod passages;
mod plain;
mod plan_names;
mod planting;
mod recipes;
mod repeated_text;
mod replicas;
mod reporting;
mod resuming;
mod sampling;
mod scale;
mod service;
mod serving;
mod storing;
mod summaries;
mod support;
mod systems;
mod words;
mod yanyiwu;
