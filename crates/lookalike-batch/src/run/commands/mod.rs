//! Commands: one run for each command, from its settings to its outputs and its summary.

mod bad_row_outputs;
pub(crate) mod copy_weights;
pub(crate) mod corpus_sample;
pub(crate) mod decontaminate;
pub(crate) mod dedup;
mod document_table;
mod empty_inputs;
pub(crate) mod evaluate;
pub(crate) mod fingerprint;
pub(crate) mod forecast;
pub(crate) mod forms;
pub(crate) mod forms_check;
pub(crate) mod head;
pub(crate) mod idf;
pub(crate) mod labelled;
pub(crate) mod output_settings;
pub(crate) mod pairs;
pub(crate) mod passages;
pub(crate) mod plant;
pub(crate) mod plant_contamination;
pub(crate) mod repeated_text;
pub(crate) mod segment;
pub(crate) mod summary;
pub(crate) mod tune;
