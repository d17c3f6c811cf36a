//! Opens the object store of a shared log.

use std::sync::Arc;

use lookalike_log::{LogStore, has_log};
use tokio::runtime::{Handle, Runtime};

use crate::error::{Error, Result, bail, with_context};

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

/// Opens the prefix of an object store that a URL names, and creates no directory.
///
/// # Errors
/// As for [`open_log_store`]; also if the URL is that of a directory that does not exist.
#[cfg(feature = "object-store")]
pub(crate) fn open_existing_log_store(url: &str, runtime: &Handle) -> Result<Arc<dyn LogStore>> {
    let store = lookalike_log::ObjectLogStore::open_existing_url(url, runtime.clone());
    let store = store.map_err(with_context("the shared log"))?;
    Ok(Arc::new(store))
}

/// Refuses every URL, because this program was built without object stores.
///
/// # Errors
/// Always.
#[cfg(not(feature = "object-store"))]
pub fn open_log_store(url: &str, _runtime: &Handle) -> Result<Arc<dyn LogStore>> {
    bail!(
        "the shared log '{url}' is in an object store, and this program was built without object stores: build it \
         with `--features object-store`"
    )
}

#[cfg(not(feature = "object-store"))]
pub(crate) use open_log_store as open_existing_log_store;

/// Calls `work` with the object store of a shared log, which must exist. Creates nothing.
///
/// # Errors
/// As for [`open_log_store`], if there is no directory of this URL, and any error of `work`.
pub fn with_log_store<T, E: From<Error>>(
    url: &str,
    work: impl FnOnce(Arc<dyn LogStore>) -> Result<T, E>,
) -> Result<T, E> {
    let runtime = Runtime::new().map_err(with_context("cannot start the threads for requests"))?;
    work(open_existing_log_store(url, runtime.handle())?)
}

/// Checks that there is a log below a URL, or at least a mark or snapshot of one.
///
/// # Errors
/// If there is none, or a request fails.
pub fn check_log_exists(url: &str, store: &dyn LogStore) -> Result<()> {
    if has_log(store).map_err(with_context(url))? {
        return Ok(());
    }
    bail!("there is no log below {url}: give the URL that the replicas have as --shared-log")
}

/// Returns `true` if there is a log below a URL. A place that cannot be read, or is none of a log, has none.
pub fn is_shared_log(url: &str) -> bool {
    let found = with_log_store(url, |store| has_log(&*store).map_err(with_context(url)));
    found.unwrap_or(false)
}
