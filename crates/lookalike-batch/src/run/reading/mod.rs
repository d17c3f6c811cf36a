//! Reading: all threads parse blocks of rows and sketch them; the documents come in input order.
//!
//! | module | has |
//! |---|---|
//! | [`benchmarks`] | items of evaluation benchmarks |
//! | [`open_inputs`] | the opened inputs of a run |
//! | [`ordered_pipeline`] | blocks on all threads, with results in input order |
//! | [`corpus_reader`] | the reader of all documents of a run |
//! | [`reading_sink`] | the interface to the place of documents: memory or disk |
//! | [`documents`], [`document_ids`], [`row_places`], [`element_count`] | columns of the documents that were read, and their bytes in files |
//! | [`corpus_rows`] | the inputs, and the place of each document's row |
//! | [`row_analysis`] | the analysis of a row |
//! | [`row_sampling`] | a sample of rows, for a forecast |
//! | [`rejected_rows`], [`repeated_ids`] | bad rows, and ids that several documents have |

pub(crate) mod benchmarks;
pub(crate) mod corpus_reader;
pub(crate) mod corpus_rows;
pub(crate) mod document_ids;
pub(crate) mod documents;
pub(crate) mod element_count;
pub(crate) mod open_inputs;
pub(crate) mod ordered_pipeline;
pub(crate) mod reading_sink;
pub(crate) mod rejected_rows;
pub(crate) mod repeated_ids;
pub(crate) mod row_analysis;
pub(crate) mod row_places;
pub(crate) mod row_sampling;
pub(crate) mod source_values;
