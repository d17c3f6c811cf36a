//! The calls of the service: from a request to its answer.

pub(crate) mod aliases;
pub(crate) mod answer_text;
pub(crate) mod body;
pub(crate) mod collections;
pub(crate) mod decision_schemas;
pub(crate) mod decisions;
pub(crate) mod documents;
pub(crate) mod export;
pub(crate) mod extraction;
pub(crate) mod forms;
pub(crate) mod health;
pub(crate) mod listing;
pub(crate) mod openapi;
pub(crate) mod problem;
pub(crate) mod recipe_upload;
pub(crate) mod recipes;
pub(crate) mod replicated;
pub(crate) mod request_log;
pub(crate) mod responses;
pub(crate) mod router;
pub(crate) mod snapshots;
pub(crate) mod stream;
pub(crate) mod text_work;
pub(crate) mod texts;
