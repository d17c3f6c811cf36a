//! An output of an object store, which appears when all of its parts are there.
//!
//! An upload is begun before anything is written, and aborted if it is not completed. An upload with a
//! [record](super::upload_record) is begun when its parts are sent, and is not aborted: a later process that has the
//! same bytes sends only the parts that the store does not have. It sends the last part in any case, because the answer
//! shows whether the store still has the upload.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;

use futures_util::stream::{self, StreamExt, TryStreamExt};
use lookalike_system::PositionedAccess;
use object_store::multipart::{MultipartStore, PartId};
use object_store::path::Path as Key;
use object_store::{Error as StoreError, MultipartId, ObjectMeta, ObjectStore, ObjectStoreExt};

use super::client::{self, UploadStore, reason_of, wait_for};
use super::first_answer::AnswerDeadline;
use super::upload_record::{RecordWriter, RecordedPart, RecordedUpload, read_record};
use super::url::ObjectUrl;
use crate::error::{Error, Result};

/// Smallest bytes of a part, and those of all parts on their way together: 8 and 32 MiB.
const PART_BYTES: u64 = 8 << 20;
const BYTES_AT_ONCE: u64 = 32 << 20;

/// Most parts of an upload, somewhat fewer than the 10,000 that stores accept.
const MAX_PARTS: u64 = 9_000;

/// An upload that was begun. Clones are the same upload. It is aborted when the last one is dropped without
/// having been completed, unless it has a record.
#[derive(Debug, Clone)]
pub(crate) struct ObjectUpload(Arc<OpenUpload>);

struct OpenUpload {
    name: String,
    store: Arc<dyn ObjectStore>,
    uploads: Arc<dyn MultipartStore>,
    key: Key,
    /// The object under this name before the upload.
    before: Option<ObjectMeta>,
    /// `None` before it is begun, and once it is completed or aborted.
    upload: Mutex<Option<BegunUpload>>,
    sent: Mutex<u64>,
    /// The file of its record, if a later process may continue it.
    record: Option<PathBuf>,
}

/// An upload in the store, with the parts that were sent, in their order.
#[derive(Debug, Clone)]
struct BegunUpload {
    id: MultipartId,
    parts: Vec<PartId>,
}

/// The reason why a part was not sent.
enum PartFailure {
    /// Its bytes could not be read, or it could not be recorded.
    Local(Error),
    Store(StoreError),
}

/// The file of an upload, divided into parts.
#[derive(Clone, Copy)]
struct FileParts<'a> {
    file: &'a File,
    length: u64,
    part_bytes: u64,
}

impl fmt::Debug for OpenUpload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenUpload")
            .field("name", &self.name)
            .field("record", &self.record)
            .finish_non_exhaustive()
    }
}

impl ObjectUpload {
    /// Begins an upload. The store refuses it if the bucket does not exist or must not be written to.
    ///
    /// # Errors
    /// If the URL is not one that can be written to, or if the store refuses.
    pub(crate) fn begin_upload(url: &ObjectUrl) -> Result<Self> {
        let deadline = AnswerDeadline::begin_wait();
        let (store, key) = open_writable(url, &deadline)?;
        let mut upload = OpenUpload::new(url.to_string(), store, key);
        let id = upload.create_upload(&deadline)?;
        upload.before = wait_for(upload.store.head(&upload.key)).ok();
        *lock_ignoring_poison(&upload.upload) = Some(BegunUpload::new(id));
        Ok(Self(Arc::new(upload)))
    }

    /// Prepares an upload that is begun when its parts are sent, and is recorded in a file.
    ///
    /// # Errors
    /// If the URL is not one that can be written to, or if the store cannot be opened.
    pub(crate) fn prepare_recorded(url: &ObjectUrl, record: PathBuf) -> Result<Self> {
        let deadline = AnswerDeadline::begin_wait();
        let (store, key) = open_writable(url, &deadline)?;
        let mut upload = OpenUpload::new(url.to_string(), store, key);
        let before = deadline.wait_for(upload.store.head(&upload.key));
        upload.before = before.ok().and_then(|before| before.ok());
        upload.record = Some(record);
        Ok(Self(Arc::new(upload)))
    }

    /// Returns the URL.
    pub(crate) fn display_name(&self) -> &str {
        &self.0.name
    }

    /// Returns `true` if both are the same upload.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Uploads a file, in bounded memory. The parts that the record of the upload has are not sent again.
    ///
    /// # Errors
    /// If the file cannot be read, if a part fails, or if the record cannot be written.
    pub(crate) fn send_file(&self, file: &File) -> Result<()> {
        let upload = &self.0;
        let length = file
            .metadata()
            .map_err(|cause| Error::write_error("upload", &upload.name, cause))?
            .len();
        *lock_ignoring_poison(&upload.sent) = length;
        let parts = FileParts {
            file,
            length,
            part_bytes: PART_BYTES.max(length.div_ceil(MAX_PARTS)),
        };
        let sent = match &upload.record {
            Some(record) => upload.send_recorded(parts, record)?,
            None => {
                let begun = lock_ignoring_poison(&upload.upload).clone();
                let id = begun.ok_or_else(|| upload.abandoned())?.id;
                let sent = upload.send_parts(&id, parts, &BTreeMap::new(), None);
                sent.map_err(|failure| upload.failed_part(failure))?
            }
        };
        let mut begun = lock_ignoring_poison(&upload.upload);
        if upload.record.is_none() && begun.is_none() {
            return Err(upload.abandoned());
        }
        *begun = Some(sent);
        Ok(())
    }

    /// Makes the object appear under its name.
    ///
    /// # Errors
    /// If the store refuses. The object under this name is then unchanged.
    pub(crate) fn complete_upload(&self) -> Result<()> {
        let upload = &self.0;
        let taken = lock_ignoring_poison(&upload.upload).take();
        let begun = taken.ok_or_else(|| upload.abandoned())?;
        let parts = begun.parts.clone();
        let completed = wait_for(
            upload
                .uploads
                .complete_multipart(&upload.key, &begun.id, parts),
        );
        let Err(cause) = completed else {
            upload.remove_record();
            return Ok(());
        };
        if upload.has_appeared() {
            upload.remove_record();
            return Ok(());
        }
        // A later process cannot complete these parts either.
        if is_forgotten(&cause) || cause.to_string().contains("400 Bad Request") {
            upload.remove_record();
        }
        // The upload is given back, so that it is aborted unless it is recorded.
        *lock_ignoring_poison(&upload.upload) = Some(begun);
        Err(Error::output_error(format!(
            "cannot complete {}: {}",
            upload.name,
            reason_of(&cause)
        )))
    }

    /// Aborts the upload unless it has a record, and waits for that at most for the time `limit`. It may be called on
    /// any thread.
    pub(crate) fn abort_upload(&self, limit: Duration) {
        self.0.abort_unrecorded(limit);
    }
}

/// Aborts the upload that a file records, and removes the file. If the store does not answer, its life-cycle rules
/// remove the parts.
pub(crate) fn abort_recorded_upload(record: &Path) {
    if let Some((known, _)) = read_record(record)
        && let Some(Ok(url)) = ObjectUrl::from_path(Path::new(&known.url))
    {
        let deadline = AnswerDeadline::begin_wait();
        if let Ok((store, key)) = open_writable(&url, &deadline) {
            let _ = deadline.wait_for(client::repeat_if_cut(|| {
                store.uploads.abort_multipart(&key, &known.upload)
            }));
        }
    }
    let _ = fs::remove_file(record);
}

/// Returns the URL of the upload that a file records.
pub(crate) fn recorded_url(record: &Path) -> Option<String> {
    read_record(record).map(|(known, _)| known.url)
}

/// Opens the store of a URL for an upload.
fn open_writable(url: &ObjectUrl, deadline: &AnswerDeadline) -> Result<(UploadStore, Key)> {
    let refused = |reason: &str| Error::output_error(format!("cannot create {url}: {reason}"));
    if url.is_prefix() && url.is_writable() {
        return Err(refused("it has no name: give a key after the last /"));
    }
    client::open_upload_store(url, deadline)?.ok_or_else(|| {
        refused("a server cannot be written to: give a file, or an object as s3://, gs:// or az://")
    })
}

impl BegunUpload {
    fn new(id: MultipartId) -> Self {
        Self {
            id,
            parts: Vec::new(),
        }
    }
}

impl OpenUpload {
    fn new(name: String, store: UploadStore, key: Key) -> Self {
        Self {
            name,
            store: store.objects,
            uploads: store.uploads,
            key,
            before: None,
            upload: Mutex::new(None),
            sent: Mutex::new(0),
            record: None,
        }
    }

    fn create_upload(&self, deadline: &AnswerDeadline) -> Result<MultipartId> {
        let refused =
            |reason: &str| Error::output_error(format!("cannot create {}: {reason}", self.name));
        let begun = deadline.wait_for(client::repeat_if_cut(|| {
            self.uploads.create_multipart(&self.key)
        }));
        let begun = begun.map_err(|cause| refused(&cause.to_string()))?;
        begun.map_err(|cause| refused(&reason_of(&cause)))
    }

    /// Sends the parts that the store does not have, of the upload that is recorded or of a new one.
    fn send_recorded(&self, parts: FileParts<'_>, record: &Path) -> Result<BegunUpload> {
        if let Some((known, stored)) = read_record(record) {
            let is_same = known.url == self.name
                && (known.length, known.part_bytes) == (parts.length, parts.part_bytes);
            // An upload without parts cannot show whether the store still has it.
            if is_same && parts.length > 0 {
                let writer = RecordWriter::continue_at(record, &known, &stored)?;
                match self.send_parts(&known.upload, parts, &stored, Some(&writer)) {
                    Err(PartFailure::Store(cause)) if is_forgotten(&cause) => {}
                    sent => return sent.map_err(|failure| self.failed_part(failure)),
                }
            } else {
                // Its parts are of no use. If the store does not answer, its life-cycle rules remove them.
                let _ = wait_for(client::repeat_if_cut(|| {
                    self.uploads.abort_multipart(&self.key, &known.upload)
                }));
            }
        }
        let id = self.create_upload(&AnswerDeadline::begin_wait())?;
        let new = RecordedUpload {
            url: self.name.clone(),
            upload: id.clone(),
            length: parts.length,
            part_bytes: parts.part_bytes,
        };
        let writer = RecordWriter::create_at(record, &new)?;
        let sent = self.send_parts(&id, parts, &BTreeMap::new(), Some(&writer));
        sent.map_err(|failure| self.failed_part(failure))
    }

    /// Sends the parts of a file, except for those that are `stored` with the same bytes.
    fn send_parts(
        &self,
        id: &MultipartId,
        parts: FileParts<'_>,
        stored: &BTreeMap<usize, RecordedPart>,
        record: Option<&RecordWriter>,
    ) -> Result<BegunUpload, PartFailure> {
        let count = parts.length.div_ceil(parts.part_bytes) as usize;
        let requests = (0..count).map(|number| async move {
            if self.is_aborted() {
                return Err(PartFailure::Local(self.abandoned()));
            }
            let bytes = self.read_part(parts, number)?;
            let checksum = lookalike::value_hash(&bytes);
            let known = stored.get(&number).filter(|_| number + 1 < count);
            if let Some(known) = known.filter(|known| known.checksum == checksum) {
                return Ok(PartId {
                    content_id: known.id.clone(),
                });
            }
            let sent = self.uploads.put_part(&self.key, id, number, bytes.into());
            let sent = sent.await.map_err(PartFailure::Store)?;
            if let Some(record) = record {
                let part = RecordedPart {
                    part: number,
                    checksum,
                    id: sent.content_id.clone(),
                };
                record.append_part(&part).map_err(PartFailure::Local)?;
            }
            Ok(sent)
        });
        let at_once = (BYTES_AT_ONCE / parts.part_bytes).clamp(1, 4) as usize;
        let sent = wait_for(stream::iter(requests).buffered(at_once).try_collect())?;
        Ok(BegunUpload {
            id: id.clone(),
            parts: sent,
        })
    }

    fn read_part(&self, parts: FileParts<'_>, number: usize) -> Result<Vec<u8>, PartFailure> {
        let start = number as u64 * parts.part_bytes;
        let mut part = vec![0; (parts.length - start).min(parts.part_bytes) as usize];
        let read = parts.file.read_exact_bytes_at(&mut part, start);
        read.map_err(|cause| PartFailure::Local(Error::write_error("upload", &self.name, cause)))?;
        Ok(part)
    }

    fn failed_part(&self, failure: PartFailure) -> Error {
        match failure {
            PartFailure::Local(error) => error,
            PartFailure::Store(cause) => Error::output_error(format!(
                "cannot upload {}: {}",
                self.name,
                reason_of(&cause)
            )),
        }
    }

    /// Returns `true` if the object has appeared although the answer that says so was lost.
    fn has_appeared(&self) -> bool {
        let Ok(now) = wait_for(self.store.head(&self.key)) else {
            return false;
        };
        let is_new = self.before.as_ref().is_none_or(|before| {
            (&before.e_tag, before.last_modified) != (&now.e_tag, now.last_modified)
        });
        is_new && now.size == *lock_ignoring_poison(&self.sent)
    }

    /// Returns `true` if another thread has aborted an upload whose parts are being sent.
    fn is_aborted(&self) -> bool {
        self.record.is_none() && lock_ignoring_poison(&self.upload).is_none()
    }

    fn abandoned(&self) -> Error {
        Error::output_error(format!("the upload of {} was abandoned", self.name))
    }

    fn remove_record(&self) {
        if let Some(record) = &self.record {
            // A record that remains names an upload that the store does not have, which is then begun anew.
            let _ = fs::remove_file(record);
        }
    }

    fn abort_unrecorded(&self, limit: Duration) {
        if self.record.is_none()
            && let Some(begun) = lock_ignoring_poison(&self.upload).take()
        {
            abort(self, begun.id, limit);
        }
    }
}

impl Drop for OpenUpload {
    fn drop(&mut self) {
        self.abort_unrecorded(Duration::from_secs(30));
    }
}

/// Returns `true` if a store does not have an upload any more. Most say so by 404, and others by their words.
fn is_forgotten(cause: &StoreError) -> bool {
    let said = cause.to_string();
    let words = ["NoSuchUpload", "Upload not found"];
    matches!(cause, StoreError::NotFound { .. }) || words.iter().any(|word| said.contains(word))
}

/// If the store does not answer, its life-cycle rules remove the parts.
fn abort(upload: &OpenUpload, id: MultipartId, limit: Duration) {
    let (uploads, key) = (Arc::clone(&upload.uploads), upload.key.clone());
    let (done, wait) = mpsc::channel();
    client::runtime().spawn(async move {
        let _ = client::repeat_if_cut(|| uploads.abort_multipart(&key, &id)).await;
        let _ = done.send(());
    });
    let _ = wait.recv_timeout(limit);
}

fn lock_ignoring_poison<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use object_store::memory::InMemory;

    use super::*;

    const LENGTH: usize = 2 * PART_BYTES as usize + 5;

    struct Outputs {
        store: UploadStore,
        file: File,
        bytes: Vec<u8>,
        directory: tempfile::TempDir,
    }

    impl Outputs {
        fn new() -> Self {
            let bytes: Vec<u8> = (0..LENGTH).map(|at| (at % 251) as u8).collect();
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(&bytes).unwrap();
            Self {
                store: UploadStore::new(InMemory::new()),
                file,
                bytes,
                directory: tempfile::tempdir().unwrap(),
            }
        }

        fn record(&self) -> PathBuf {
            self.directory.path().join("record")
        }

        fn key() -> Key {
            Key::from("out")
        }

        /// The upload of a process with a record.
        fn upload(&self) -> ObjectUpload {
            let name = "s3://b/out".to_owned();
            let mut upload = OpenUpload::new(name, self.store.clone(), Self::key());
            upload.record = Some(self.record());
            ObjectUpload(Arc::new(upload))
        }

        fn object(&self) -> Option<Vec<u8>> {
            let found = wait_for(self.store.objects.get(&Self::key())).ok()?;
            Some(wait_for(found.bytes()).unwrap().to_vec())
        }
    }

    #[test]
    fn a_recorded_upload_appears_when_it_is_completed() {
        let outputs = Outputs::new();
        let upload = outputs.upload();
        upload.send_file(&outputs.file).unwrap();
        assert_eq!(read_record(&outputs.record()).unwrap().1.len(), 3);
        assert_eq!(outputs.object(), None);
        upload.complete_upload().unwrap();
        assert!(outputs.object().unwrap() == outputs.bytes);
        assert!(!outputs.record().exists());
    }

    /// Part 0 of the store has other bytes than the file, which shows that it is not sent again.
    #[test]
    fn a_later_process_sends_missing_changed_and_last_parts() {
        let outputs = Outputs::new();
        outputs.upload().send_file(&outputs.file).unwrap();
        let (known, parts) = read_record(&outputs.record()).unwrap();
        let writer = RecordWriter::create_at(&outputs.record(), &known).unwrap();
        writer.append_part(&parts[&0]).unwrap();
        let mut changed = parts[&1].clone();
        changed.checksum ^= 1;
        writer.append_part(&changed).unwrap();
        writer.append_part(&parts[&2]).unwrap();
        for number in 0..3 {
            let foreign = vec![7; 5].into();
            let uploads = &outputs.store.uploads;
            wait_for(uploads.put_part(&Outputs::key(), &known.upload, number, foreign)).unwrap();
        }
        let later = outputs.upload();
        later.send_file(&outputs.file).unwrap();
        later.complete_upload().unwrap();
        let expected = [&[7; 5], &outputs.bytes[PART_BYTES as usize..]].concat();
        assert!(outputs.object().unwrap() == expected);
    }

    #[test]
    fn an_upload_that_the_store_forgot_is_begun_anew() {
        let outputs = Outputs::new();
        outputs.upload().send_file(&outputs.file).unwrap();
        let (known, _) = read_record(&outputs.record()).unwrap();
        let uploads = &outputs.store.uploads;
        wait_for(uploads.abort_multipart(&Outputs::key(), &known.upload)).unwrap();
        let later = outputs.upload();
        later.send_file(&outputs.file).unwrap();
        later.complete_upload().unwrap();
        assert!(outputs.object().unwrap() == outputs.bytes);
    }

    #[test]
    fn an_upload_of_another_length_is_begun_anew() {
        let outputs = Outputs::new();
        outputs.upload().send_file(&outputs.file).unwrap();
        let mut shorter = tempfile::tempfile().unwrap();
        shorter.write_all(&outputs.bytes[..LENGTH - 9]).unwrap();
        let later = outputs.upload();
        later.send_file(&shorter).unwrap();
        later.complete_upload().unwrap();
        assert!(outputs.object().unwrap() == outputs.bytes[..LENGTH - 9]);
        let empty = outputs.upload();
        empty.send_file(&tempfile::tempfile().unwrap()).unwrap();
        empty.complete_upload().unwrap();
        assert_eq!(outputs.object(), Some(Vec::new()));
    }

    #[test]
    fn uploads_without_a_record_are_aborted_when_they_are_dropped() {
        let outputs = Outputs::new();
        let upload = OpenUpload::new(
            "s3://b/out".to_owned(),
            outputs.store.clone(),
            Outputs::key(),
        );
        let id = upload.create_upload(&AnswerDeadline::begin_wait()).unwrap();
        *lock_ignoring_poison(&upload.upload) = Some(BegunUpload::new(id.clone()));
        let upload = ObjectUpload(Arc::new(upload));
        upload.send_file(&outputs.file).unwrap();
        drop(upload);
        let uploads = &outputs.store.uploads;
        let key = Outputs::key();
        let part = uploads.put_part(&key, &id, 0, vec![1].into());
        assert!(wait_for(part).is_err());
    }
}
