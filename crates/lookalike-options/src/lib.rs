//! Options as users set them, and their conversion to settings of the engine.
//!
//! Command, HTTP service and Python package take the same choices. They parse them with this crate, so that all of them
//! accept the same values, refuse the same contradictions, and derive the same match plan. Only the spelling in messages
//! differs ([`OptionSpelling`](match_options::OptionSpelling)).
//!
//! ```
//! use lookalike::plan::MatchMethod;
//! use lookalike_options::match_options::{MatchOptions, OptionSpelling};
//!
//! let options = MatchOptions { distance: Some(5), ..MatchOptions::default() };
//! let refusal = options.to_settings(OptionSpelling::Fields).unwrap_err();
//! assert!(refusal.to_string().starts_with("\"distance\": 5 is for fingerprints"));
//!
//! let options = MatchOptions { method: Some(MatchMethod::SimHash), ..options };
//! assert_eq!(options.to_settings(OptionSpelling::Fields)?.distance, 5);
//! # Ok::<_, lookalike_options::OptionError>(())
//! ```
//!
//! | module | holds |
//! |---|---|
//! | [`match_options`] | method, threshold, distance, measure … and the contradictions among them |
//! | [`sketch_kind`] | the sketch that is printed of a text |
//! | [`text_fingerprinter`] | the sketch itself, as tables and answers contain it |
//! | [`fingerprint_notation`] | fingerprints as hexadecimal, decimal and binary digits |
//! | [`forms_choice`] | the forms by which documents are compared |
//! | [`keep_order`] | which document of a cluster is kept |
//! | [`rank_value`] | the order of the values of a field, by which it is kept |
//! | [`boilerplate_limit`] | in how many documents a passage counts as boilerplate |
//! | [`document_time`] | times of documents |
//! | [`stream_options`] | how far back a stream in memory reaches |
//! | [`units`] | durations and sizes |
//! | [`machine_memory`] | the memory that a run takes unless a limit is set |
//! | [`shown_text`] | texts of users as messages show them |
//!
//! Parsers of single values return their reason as a phrase that can follow the value. Options that contradict each other
//! are an [`OptionError`]. Options of one command alone are not here, but where the command is.

pub mod boilerplate_limit;
pub mod document_time;
pub mod fingerprint_notation;
pub mod forms_choice;
pub mod keep_order;
pub mod machine_memory;
pub mod match_options;
mod option_error;
pub mod rank_value;
pub mod shown_text;
pub mod sketch_kind;
pub mod stream_options;
pub mod text_fingerprinter;
pub mod units;

pub use option_error::{OptionError, OptionErrorKind};
