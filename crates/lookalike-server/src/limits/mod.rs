//! Limits that keep one client from using up what all share: bytes, requests and permits.

pub(crate) mod answer_permits;
pub(crate) mod byte_budget;
pub(crate) mod detached_bytes;
pub(crate) mod fair_queue;
pub(crate) mod request_budget;
pub(crate) mod request_rate;
pub(crate) mod response_budget;
