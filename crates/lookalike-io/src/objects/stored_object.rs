//! An object that is read: its length, its version, and ranges of its bytes.

use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use bytes::Bytes;
use futures_util::stream::{self, BoxStream, StreamExt};
use object_store::path::Path as Key;
use object_store::{
    Error as StoreError, GetOptions, GetRange, ObjectMeta, ObjectStore, ObjectStoreExt,
};

use tokio::task::JoinHandle;

use super::client::{self, reason_of};
use super::first_answer::AnswerDeadline;
use super::object_stream::ObjectStream;
use super::url::{ObjectUrl, StoreKind};
use super::{ObjectFailure, PART_BYTES};
use crate::error::{Error, Result};

/// Requests at the same time for one object that is read in order.
const PARTS_AT_ONCE: usize = 4;

/// Bytes of the first request. They suffice for recognising a format, and for most small objects.
const FIRST_BYTES: u64 = 256 << 10;

/// An object of a store or of a server.
#[derive(Debug)]
pub(crate) struct StoredObject {
    name: String,
    store: Arc<dyn ObjectStore>,
    key: Key,
    /// `None` if the server does not tell it.
    length: Option<u64>,
    has_ranges: bool,
    /// The version of the first answer.
    version: OnceLock<ObjectVersion>,
    /// The first part, if it was requested before the object is opened.
    ahead: Mutex<Option<RangeRequest>>,
}

/// A request on its way.
type RangeRequest = JoinHandle<Result<Bytes, ObjectFailure>>;

/// Properties by which two versions of an object differ.
#[derive(Debug)]
struct ObjectVersion {
    e_tag: Option<String>,
    modified: i64,
    length: u64,
}

impl ObjectVersion {
    fn from_meta(meta: &ObjectMeta) -> Self {
        Self {
            e_tag: meta.e_tag.as_deref().map(plain_tag),
            modified: meta.last_modified.timestamp(),
            length: meta.size,
        }
    }

    fn is_same(&self, other: &Self) -> bool {
        match (&self.e_tag, &other.e_tag) {
            (Some(one), Some(other)) => one == other,
            _ => (self.modified, self.length) == (other.modified, other.length),
        }
    }
}

/// Returns an `ETag` without quotes and without the mark of a weak one. Stores do not agree with themselves
/// about either.
fn plain_tag(tag: &str) -> String {
    tag.trim_start_matches("W/").trim_matches('"').to_owned()
}

impl StoredObject {
    /// Creates the object of a listing, of which nothing was read.
    pub(super) fn from_listing(
        name: String,
        store: &Arc<dyn ObjectStore>,
        meta: &ObjectMeta,
    ) -> Self {
        Self {
            name,
            store: Arc::clone(store),
            key: meta.location.clone(),
            length: Some(meta.size),
            has_ranges: true,
            version: OnceLock::new(),
            ahead: Mutex::default(),
        }
    }

    /// Asks for the object of a URL; `None` if there is none.
    ///
    /// # Errors
    /// If the store cannot be opened or does not answer until the deadline, or if access is denied.
    pub(super) fn open_url(url: &ObjectUrl, deadline: &AnswerDeadline) -> Result<Option<Self>> {
        let (store, key) = client::open_store(url, deadline)?;
        let object = Self {
            name: url.to_string(),
            store,
            key,
            length: None,
            has_ranges: true,
            version: OnceLock::new(),
            ahead: Mutex::default(),
        };
        let asked = deadline.wait_for(async {
            match url.kind {
                StoreKind::Https => object.ask_server().await,
                StoreKind::S3 | StoreKind::Google | StoreKind::Azure => {
                    let meta = client::repeat_if_cut(|| object.store.head(&object.key)).await?;
                    Ok((Some(meta.size), true))
                }
            }
        });
        let asked =
            asked.map_err(|cause| Error::input_error(format!("cannot open {url}: {cause}")))?;
        match asked {
            Ok((length, has_ranges)) => Ok(Some(Self {
                length,
                has_ranges,
                ..object
            })),
            Err(StoreError::NotFound { .. }) => Ok(None),
            Err(cause) => Err(Error::input_error(format!(
                "cannot open {url}: {}",
                reason_of(&cause)
            ))),
        }
    }

    /// Asks a server for the length of its object, and whether it sends ranges. A range of one byte is asked
    /// for first, because signed URLs often permit nothing but `GET`.
    async fn ask_server(&self) -> object_store::Result<(Option<u64>, bool)> {
        let first = self.store.get_opts(&self.key, range_options(&(0..1))).await;
        match first {
            Ok(found) => return Ok((Some(found.meta.size), true)),
            Err(StoreError::NotSupported { .. }) => {}
            Err(refused) if refused.to_string().contains("416 Range Not Satisfiable") => {}
            Err(refused) => return Err(refused),
        }
        let whole = GetOptions {
            head: true,
            ..GetOptions::default()
        };
        let found = self.store.get_opts(&self.key, whole).await?;
        Ok((Some(found.meta.size), false))
    }

    /// Returns the URL as results and messages show it.
    pub(crate) fn display_name(&self) -> &str {
        &self.name
    }

    /// Returns the length in bytes, if the server tells it.
    pub(crate) fn byte_length(&self) -> Option<u64> {
        self.length
    }

    /// Returns `true` if ranges of the object can be read, and not only all of it.
    pub(crate) fn has_ranges(&self) -> bool {
        self.has_ranges && self.length.is_some()
    }

    /// Requests the first part of an object that is opened soon. Small objects that are read one after the
    /// other then do not wait for one answer each.
    pub(crate) fn read_ahead(self: &Arc<Self>) {
        let Some(length) = self.length.filter(|&length| self.has_ranges && length > 0) else {
            return;
        };
        let mut ahead = self.ahead.lock().unwrap_or_else(PoisonError::into_inner);
        ahead.get_or_insert_with(|| self.request_range(0..length.min(FIRST_BYTES)));
    }

    fn request_range(self: &Arc<Self>, range: Range<u64>) -> RangeRequest {
        let object = Arc::clone(self);
        client::runtime().spawn(async move { object.fetch_range(range).await })
    }

    /// Opens the object for reading it once, in order.
    pub(crate) fn open_stream(self: &Arc<Self>) -> ObjectStream {
        ObjectStream::new(Arc::clone(self))
    }

    /// Reads a range. A range that is cut is read again.
    pub(super) async fn fetch_range(&self, range: Range<u64>) -> Result<Bytes, ObjectFailure> {
        let mut repetitions = 0;
        loop {
            let options = range_options(&range);
            let found = match self.store.get_opts(&self.key, options).await {
                Ok(found) => found,
                Err(cause) => return Err(self.explain_failure(&cause).await),
            };
            self.check_version(&found.meta)?;
            let cut = match found.bytes().await {
                Ok(bytes) if bytes.len() as u64 == range.end - range.start => return Ok(bytes),
                Ok(bytes) => format!(
                    "the server sent {} of the {} bytes from byte {} on",
                    bytes.len(),
                    range.end - range.start,
                    range.start
                ),
                Err(cause) => reason_of(&cause),
            };
            if repetitions == client::max_repetitions() {
                return Err(ObjectFailure::Failed(cut));
            }
            repetitions += 1;
            client::pause_before(repetitions).await;
        }
    }

    /// Returns the bytes in order, with [`PARTS_AT_ONCE`] requests on their way.
    pub(super) fn stream_parts(
        self: &Arc<Self>,
    ) -> BoxStream<'static, Result<Bytes, ObjectFailure>> {
        let Some(length) = self.length.filter(|_| self.has_ranges) else {
            return self.stream_whole();
        };
        let wait = |request: RangeRequest| async move {
            let ended = |cause| ObjectFailure::Failed(format!("the request ended: {cause}"));
            request.await.map_err(ended)?
        };
        let first = length.min(FIRST_BYTES);
        let start = (first > 0).then_some(0..first);
        let rest = (first..length)
            .step_by(PART_BYTES as usize)
            .map(move |start| start..length.min(start + PART_BYTES));
        let mut ahead = self
            .ahead
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let (object, rest_of) = (Arc::clone(self), Arc::clone(self));
        // The first part comes alone: whoever needs only it has nothing else read.
        stream::iter(start)
            .map(move |range| ahead.take().unwrap_or_else(|| object.request_range(range)))
            .then(wait)
            .chain(
                stream::iter(rest)
                    .map(move |range| wait(rest_of.request_range(range)))
                    .buffered(PARTS_AT_ONCE),
            )
            .boxed()
    }

    /// Returns the bytes as the server sends them, in one answer.
    fn stream_whole(self: &Arc<Self>) -> BoxStream<'static, Result<Bytes, ObjectFailure>> {
        let object = Arc::clone(self);
        let opened = async move {
            let whole = object.store.get_opts(&object.key, GetOptions::default());
            let found = match whole.await {
                Ok(found) => found,
                Err(cause) => return Err(object.explain_failure(&cause).await),
            };
            object.check_version(&found.meta)?;
            let cut = |cause: StoreError| {
                ObjectFailure::Failed(format!(
                    "{}; the server sends no ranges, so the rest cannot be read alone",
                    reason_of(&cause)
                ))
            };
            Ok(found.into_stream().map(move |bytes| bytes.map_err(cut)))
        };
        use futures_util::stream::TryStreamExt;
        stream::once(opened).try_flatten().boxed()
    }

    fn check_version(&self, meta: &ObjectMeta) -> Result<(), ObjectFailure> {
        let now = ObjectVersion::from_meta(meta);
        // A listing or the first question told the length, by which ranges were chosen.
        let is_as_long = self.length.is_none_or(|length| length == meta.size);
        let first = self.version.get_or_init(|| ObjectVersion::from_meta(meta));
        if is_as_long && first.is_same(&now) {
            Ok(())
        } else {
            Err(ObjectFailure::Changed)
        }
    }

    /// Finds out if a request failed because the object is another one by now.
    async fn explain_failure(&self, cause: &StoreError) -> ObjectFailure {
        match cause {
            StoreError::Precondition { .. } => return ObjectFailure::Changed,
            StoreError::NotFound { .. } if self.version.get().is_some() => {
                return ObjectFailure::Changed;
            }
            StoreError::Generic { .. } | StoreError::NotSupported { .. } => {}
            _ => return ObjectFailure::Failed(reason_of(cause)),
        }
        let is_range = cause.to_string().contains("416") || cause.to_string().contains("Requested");
        if is_range
            && let Ok(meta) = self.store.head(&self.key).await
            && self.check_version(&meta).is_err()
        {
            return ObjectFailure::Changed;
        }
        ObjectFailure::Failed(reason_of(cause))
    }
}

fn range_options(range: &Range<u64>) -> GetOptions {
    GetOptions {
        range: Some(GetRange::Bounded(range.clone())),
        ..GetOptions::default()
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
