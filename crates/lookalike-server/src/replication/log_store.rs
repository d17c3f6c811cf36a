//! Opens the object store of a shared log.

use std::sync::Arc;

use lookalike_log::LogStore;
use tokio::runtime::{Handle, Runtime};

use crate::error::{Error, Result, with_context};

/// Opens the prefix of an object store that a URL names.
///
/// # Errors
/// If the URL is not that of a known store, the environment configures the store wrongly, or this program was built
/// without object stores.
#[cfg(feature = "object-store")]
pub fn open_log_store(url: &str, runtime: &Handle) -> Result<Arc<dyn LogStore>> {
    let store = lookalike_log::ObjectLogStore::open_url(url, runtime.clone());
    let store = store.map_err(with_context(format!("the shared log '{url}'")))?;
    Ok(Arc::new(store))
}

/// Refuses every URL, because this program was built without object stores.
///
/// # Errors
/// Always.
#[cfg(not(feature = "object-store"))]
pub fn open_log_store(url: &str, _runtime: &Handle) -> Result<Arc<dyn LogStore>> {
    crate::error::bail!(
        "the shared log '{url}' is in an object store, and this program was built without object stores: build it \
         with `--features object-store`"
    )
}

/// Calls `work` with the object store of a shared log.
///
/// # Errors
/// As for [`open_log_store`], and any error of `work`.
pub fn with_log_store<T, E: From<Error>>(
    url: &str,
    work: impl FnOnce(Arc<dyn LogStore>) -> Result<T, E>,
) -> Result<T, E> {
    let runtime = Runtime::new().map_err(with_context("cannot start the threads for requests"))?;
    work(open_log_store(url, runtime.handle())?)
}
