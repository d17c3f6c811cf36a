//! The commands, one module each.

pub(crate) mod compare;
pub(crate) mod dedup;
mod documents;
pub(crate) mod eval;
pub(crate) mod explain;
pub(crate) mod fingerprint;
pub(crate) mod generate;
pub(crate) mod idf;
pub(crate) mod index;
pub(crate) mod pairs;
pub(crate) mod plant;
pub(crate) mod recipe;
pub(crate) mod search;
pub(crate) mod segment;
pub(crate) mod serve;
pub(crate) mod store;
pub(crate) mod tune;
