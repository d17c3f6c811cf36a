//! Reading: all threads parse blocks of rows and sketch them; the documents come in input order.

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
pub(crate) mod row_sampling;
