//! An object that is read: its length, its version, and ranges of its bytes.

use std::io;
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
use super::object_copies::{ObjectCopies, PartPlace, PartTable};
use super::object_stream::ObjectStream;
use super::url::{ObjectUrl, StoreKind};
use super::{FIRST_BYTES, ObjectFailure, ObjectIdentity, PART_BYTES};
use crate::error::{Error, Result};

/// Requests at the same time for one object that is read in order.
const PARTS_AT_ONCE: usize = 4;

/// An object of a store or of a server.
#[derive(Debug)]
pub(crate) struct StoredObject {
    name: String,
    store: Arc<dyn ObjectStore>,
    key: Key,
    /// `None` if the server does not tell it.
    length: Option<u64>,
    has_ranges: bool,
    /// The version that the listing or the first question was answered with.
    found: Option<ObjectVersion>,
    /// The version of the first answer with bytes. Of an object whose parts are kept it is the version that was found,
    /// because the parts may be of an earlier process.
    version: OnceLock<ObjectVersion>,
    /// The first part, if it was requested before the object is opened.
    ahead: Mutex<Option<RangeRequest>>,
    /// The parts that outlive the process, if the run keeps them.
    kept: Option<KeptParts>,
}

/// The parts of an object in the copies of a run.
#[derive(Debug, Clone)]
struct KeptParts {
    copies: Arc<ObjectCopies>,
    table: Arc<PartTable>,
}

/// A request on its way.
type RangeRequest = JoinHandle<Result<Bytes, ObjectFailure>>;

/// Properties by which two versions of an object differ.
#[derive(Debug, Clone)]
struct ObjectVersion {
    identity: ObjectIdentity,
    length: u64,
}

impl ObjectVersion {
    fn from_meta(meta: &ObjectMeta) -> Self {
        // Answers say the second, and listings of some stores its fraction too. Without a time it is that of 1970.
        let is_timed = meta.last_modified.timestamp() != 0;
        let modified = meta.last_modified.to_rfc3339();
        let modified = modified.get(.."2026-11-30T12:00:00".len());
        let modified = modified.filter(|_| is_timed);
        Self {
            identity: ObjectIdentity {
                version: meta.version.clone(),
                e_tag: meta.e_tag.as_deref().map(plain_tag),
                modified: modified.map(|time| format!("{time}Z")),
            },
            length: meta.size,
        }
    }

    fn is_same(&self, other: &Self) -> bool {
        self.length == other.length && self.identity.is_same(&other.identity)
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
            found: Some(ObjectVersion::from_meta(meta)),
            version: OnceLock::new(),
            ahead: Mutex::default(),
            kept: None,
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
            found: None,
            version: OnceLock::new(),
            ahead: Mutex::default(),
            kept: None,
        };
        let asked = deadline.wait_for(async {
            match url.kind {
                StoreKind::Https => object.ask_server().await,
                StoreKind::S3 | StoreKind::Google | StoreKind::Azure => {
                    let meta = client::repeat_if_cut(|| object.store.head(&object.key)).await?;
                    Ok((meta, true))
                }
            }
        });
        let asked =
            asked.map_err(|cause| Error::input_error(format!("cannot open {url}: {cause}")))?;
        match asked {
            Ok((meta, has_ranges)) => Ok(Some(Self {
                length: Some(meta.size),
                has_ranges,
                found: Some(ObjectVersion::from_meta(&meta)),
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
    async fn ask_server(&self) -> object_store::Result<(ObjectMeta, bool)> {
        let first = self.store.get_opts(&self.key, range_options(&(0..1))).await;
        match first {
            Ok(found) => return Ok((found.meta, true)),
            Err(StoreError::NotSupported { .. }) => {}
            Err(refused) if refused.to_string().contains("416 Range Not Satisfiable") => {}
            Err(refused) => return Err(refused),
        }
        let whole = GetOptions {
            head: true,
            ..GetOptions::default()
        };
        let found = self.store.get_opts(&self.key, whole).await?;
        Ok((found.meta, false))
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

    /// Returns the properties by which a later process recognises the object, if the store states any.
    pub(crate) fn object_identity(&self) -> Option<&ObjectIdentity> {
        let identity = self.found.as_ref().map(|found| &found.identity);
        identity.filter(|identity| identity.is_known())
    }

    /// Keeps what is read of the object in the copies of a run, and takes from there what is there. An object that a
    /// later process could not recognise is not kept.
    pub(crate) fn keep_parts(&mut self, copies: &Arc<ObjectCopies>) {
        let Some(found) = self
            .found
            .clone()
            .filter(|_| self.object_identity().is_some())
        else {
            return;
        };
        self.kept = Some(KeptParts {
            copies: Arc::clone(copies),
            table: copies.table_of(&self.name, found.length, &found.identity),
        });
        self.version.get_or_init(|| found);
    }

    /// Returns `true` if what is read of the object is kept in the copies of a run.
    pub(crate) fn keeps_parts(&self) -> bool {
        self.kept.is_some()
    }

    /// Requests the first part of an object that is opened soon. Small objects that are read one after the
    /// other then do not wait for one answer each.
    pub(crate) fn read_ahead(self: &Arc<Self>) {
        if let Some(kept) = &self.kept {
            if self.has_ranges && kept.table.part_count() > 0 {
                let object = Arc::clone(self);
                // A failure comes again when the part is needed.
                client::runtime().spawn(async move { object.load_part(0).await });
            }
            return;
        }
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
        ObjectStream::new(self.stream_parts())
    }

    /// Opens an object whose parts are kept for reading it from a byte on, in order. Nothing before the part of that
    /// byte is requested.
    pub(crate) fn open_stream_at(self: &Arc<Self>, byte: u64) -> ObjectStream {
        ObjectStream::new(match &self.kept {
            Some(kept) => self.stream_kept(kept, byte),
            None => self.stream_parts(),
        })
    }

    /// Fills the beginning of `room` with bytes from offset `start` on, at most to the end of the part that it lies in.
    /// Returns their number; 0 at the end of the object, and if its parts are not kept.
    pub(super) fn read_kept_at(self: &Arc<Self>, room: &mut [u8], start: u64) -> io::Result<usize> {
        let Some(kept) = &self.kept else {
            return Ok(0);
        };
        let number = kept.table.part_at(start);
        if number >= kept.table.part_count() {
            return Ok(0);
        }
        let range = kept.table.range_of(number);
        let length = room.len().min(range.end.saturating_sub(start) as usize);
        let present = kept.table.place_of(number).try_lock();
        let present = present.ok().and_then(|place| match *place {
            PartPlace::Present(offset) => Some(offset),
            PartPlace::Missing | PartPlace::Unverified(_) => None,
        });
        let offset = match present {
            Some(offset) => offset,
            None => client::wait_for(self.load_part(number))?,
        };
        let within = start - range.start;
        kept.copies
            .read_exact_at(&mut room[..length], offset + within)?;
        Ok(length)
    }

    /// Returns the offset of a part in the copies of the run. Requests the part if it is not there.
    async fn load_part(self: &Arc<Self>, number: usize) -> Result<u64, ObjectFailure> {
        let Some(KeptParts { copies, table }) = &self.kept else {
            return Err(ObjectFailure::Failed("its parts are not kept".to_owned()));
        };
        let mut place = table.place_of(number).lock().await;
        if let Some(offset) = copies.find_part(table, number, &mut place) {
            return Ok(offset);
        }
        if !self.has_ranges {
            drop(place);
            self.load_whole(copies, table).await?;
            place = table.place_of(number).lock().await;
            let loaded = copies.find_part(table, number, &mut place);
            return loaded.ok_or_else(|| ObjectFailure::Failed("its copy is damaged".to_owned()));
        }
        let bytes = self.fetch_range(table.range_of(number)).await?;
        let offset = copies.append_part(table, number, &bytes)?;
        *place = PartPlace::Present(offset);
        Ok(offset)
    }

    /// Transfers an object without ranges, unless another call has done so.
    async fn load_whole(
        self: &Arc<Self>,
        copies: &ObjectCopies,
        table: &PartTable,
    ) -> Result<(), ObjectFailure> {
        let _whole = table.whole.lock().await;
        if self.has_all_parts(copies, table).await {
            return Ok(());
        }
        let mut answer = self.stream_whole();
        let (mut pending, mut number) = (Vec::new(), 0);
        while let Some(bytes) = answer.next().await {
            pending.extend_from_slice(&bytes?);
            while number < table.part_count() {
                let range = table.range_of(number);
                let length = (range.end - range.start) as usize;
                if pending.len() < length {
                    break;
                }
                let mut place = table.place_of(number).lock().await;
                if copies.find_part(table, number, &mut place).is_none() {
                    let offset = copies.append_part(table, number, &pending[..length])?;
                    *place = PartPlace::Present(offset);
                }
                pending.drain(..length);
                number += 1;
            }
        }
        if number < table.part_count() {
            let wanted = table.range_of(table.part_count() - 1).end;
            let sent = table.range_of(number).start + pending.len() as u64;
            return Err(ObjectFailure::Failed(format!(
                "the server sent {sent} of the {wanted} bytes, and sends no ranges"
            )));
        }
        Ok(())
    }

    async fn has_all_parts(&self, copies: &ObjectCopies, table: &PartTable) -> bool {
        for number in 0..table.part_count() {
            let mut place = table.place_of(number).lock().await;
            if copies.find_part(table, number, &mut place).is_none() {
                return false;
            }
        }
        true
    }

    /// Returns the bytes of a part.
    async fn read_part(self: Arc<Self>, number: usize) -> Result<Bytes, ObjectFailure> {
        let offset = self.load_part(number).await?;
        let Some(KeptParts { copies, table }) = &self.kept else {
            return Ok(Bytes::new());
        };
        let range = table.range_of(number);
        let mut bytes = vec![0; (range.end - range.start) as usize];
        let read = copies.read_exact_at(&mut bytes, offset);
        read.map_err(|cause| ObjectFailure::Failed(format!("cannot read its copy: {cause}")))?;
        Ok(bytes.into())
    }

    /// Returns the bytes from `start` on in order, with [`PARTS_AT_ONCE`] requests on their way.
    fn stream_kept(
        self: &Arc<Self>,
        kept: &KeptParts,
        start: u64,
    ) -> BoxStream<'static, Result<Bytes, ObjectFailure>> {
        let table = &kept.table;
        let mut numbers = table.part_at(start)..table.part_count();
        let first = numbers.next();
        let skipped = first.map_or(0, |number| (start - table.range_of(number).start) as usize);
        let read = |object: &Arc<Self>, number| {
            wait_for_range(client::runtime().spawn(Arc::clone(object).read_part(number)))
        };
        let (object, rest_of) = (Arc::clone(self), Arc::clone(self));
        let first = stream::iter(first)
            .then(move |number| read(&object, number))
            .map(move |bytes| bytes.map(|bytes| bytes.slice(skipped..)));
        // The first part comes alone: whoever needs only it has nothing else read.
        first
            .chain(
                stream::iter(numbers)
                    .map(move |number| read(&rest_of, number))
                    .buffered(PARTS_AT_ONCE),
            )
            .boxed()
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
        if let Some(kept) = &self.kept {
            return self.stream_kept(kept, 0);
        }
        let Some(length) = self.length.filter(|_| self.has_ranges) else {
            return self.stream_whole();
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
            .then(wait_for_range)
            .chain(
                stream::iter(rest)
                    .map(move |range| wait_for_range(rest_of.request_range(range)))
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

async fn wait_for_range(request: RangeRequest) -> Result<Bytes, ObjectFailure> {
    let ended = |cause| ObjectFailure::Failed(format!("the request ended: {cause}"));
    request.await.map_err(ended)?
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
