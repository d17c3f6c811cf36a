//! An output of an object store, which appears when all of its parts are there.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;

use futures_util::stream::{self, StreamExt, TryStreamExt};
use object_store::path::Path as Key;
use object_store::{MultipartUpload, ObjectMeta, ObjectStore, ObjectStoreExt, UploadPart};

use super::client::{self, reason_of, wait_for};
use super::first_answer::AnswerDeadline;
use super::url::ObjectUrl;
use crate::error::{Error, Result};

/// Smallest bytes of a part, and those of all parts on their way together: 8 and 32 MiB.
const PART_BYTES: u64 = 8 << 20;
const BYTES_AT_ONCE: u64 = 32 << 20;

/// Most parts of an upload, somewhat fewer than the 10,000 that stores accept.
const MAX_PARTS: u64 = 9_000;

/// An upload that was begun. Clones are the same upload. It is aborted when the last one is dropped without
/// having been completed.
#[derive(Debug, Clone)]
pub(crate) struct ObjectUpload(Arc<OpenUpload>);

#[derive(Debug)]
struct OpenUpload {
    name: String,
    store: Arc<dyn ObjectStore>,
    key: Key,
    /// The object under this name before the upload.
    before: Option<ObjectMeta>,
    /// `None` once it is completed or aborted.
    upload: Mutex<Option<Box<dyn MultipartUpload>>>,
    sent: Mutex<u64>,
}

impl ObjectUpload {
    /// Begins an upload. The store refuses it if the bucket does not exist or must not be written to.
    ///
    /// # Errors
    /// If the URL is not one that can be written to, or if the store refuses.
    pub(crate) fn begin_upload(url: &ObjectUrl) -> Result<Self> {
        let refused = |reason: &str| Error::output_error(format!("cannot create {url}: {reason}"));
        if !url.is_writable() {
            return Err(refused(
                "a server cannot be written to: give a file, or an object as s3://, gs:// or az://",
            ));
        }
        if url.is_prefix() {
            return Err(refused("it has no name: give a key after the last /"));
        }
        let deadline = AnswerDeadline::begin_wait();
        let (store, key) = client::open_store(url, &deadline)?;
        let begun = deadline.wait_for(client::repeat_if_cut(|| store.put_multipart(&key)));
        let begun = begun.map_err(|cause| refused(&cause.to_string()))?;
        let upload = begun.map_err(|cause| refused(&reason_of(&cause)))?;
        let before = wait_for(store.head(&key)).ok();
        Ok(Self(Arc::new(OpenUpload {
            name: url.to_string(),
            store,
            key,
            before,
            upload: Mutex::new(Some(upload)),
            sent: Mutex::new(0),
        })))
    }

    /// Returns the URL.
    pub(crate) fn display_name(&self) -> &str {
        &self.0.name
    }

    /// Returns `true` if both are the same upload.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Uploads a file, in bounded memory.
    ///
    /// # Errors
    /// If the file cannot be read, or if a part fails.
    pub(crate) fn send_file(&self, file: &File) -> Result<()> {
        let name = &self.0.name;
        let length = file
            .metadata()
            .map_err(|cause| Error::write_error("upload", name, cause))?
            .len();
        *lock_ignoring_poison(&self.0.sent) = length;
        let part_bytes = PART_BYTES.max(length.div_ceil(MAX_PARTS));
        let starts = (0..length).step_by(part_bytes as usize);
        let parts = starts.map(|start| {
            let part = (length - start).min(part_bytes) as usize;
            let request = self.request_part(file, start, part);
            async move {
                let failed = |cause| {
                    let reason = reason_of(&cause);
                    Error::output_error(format!("cannot upload {name}: {reason}"))
                };
                request?.await.map_err(failed)
            }
        });
        let at_once = (BYTES_AT_ONCE / part_bytes).clamp(1, 4) as usize;
        wait_for(stream::iter(parts).buffered(at_once).try_collect())
    }

    /// Reads a part and creates its request, in the order of the parts.
    fn request_part(&self, file: &File, start: u64, length: usize) -> Result<UploadPart> {
        let mut part = vec![0; length];
        file.read_exact_at(&mut part, start)
            .map_err(|cause| Error::write_error("upload", &self.0.name, cause))?;
        let mut upload = lock_ignoring_poison(&self.0.upload);
        match &mut *upload {
            Some(upload) => Ok(upload.put_part(part.into())),
            None => Err(self.abandoned()),
        }
    }

    /// Makes the object appear under its name.
    ///
    /// # Errors
    /// If the store refuses. The object under this name is then unchanged.
    pub(crate) fn complete_upload(&self) -> Result<()> {
        let taken = lock_ignoring_poison(&self.0.upload).take();
        let mut upload = taken.ok_or_else(|| self.abandoned())?;
        let Err(cause) = wait_for(upload.complete()) else {
            return Ok(());
        };
        if self.has_appeared() {
            return Ok(());
        }
        // The upload is given back, so that it is aborted.
        *lock_ignoring_poison(&self.0.upload) = Some(upload);
        Err(Error::output_error(format!(
            "cannot complete {}: {}",
            self.0.name,
            reason_of(&cause)
        )))
    }

    /// Returns `true` if the object has appeared although the answer that says so was lost.
    fn has_appeared(&self) -> bool {
        let Ok(now) = wait_for(self.0.store.head(&self.0.key)) else {
            return false;
        };
        let is_new = self.0.before.as_ref().is_none_or(|before| {
            (&before.e_tag, before.last_modified) != (&now.e_tag, now.last_modified)
        });
        is_new && now.size == *lock_ignoring_poison(&self.0.sent)
    }

    fn abandoned(&self) -> Error {
        Error::output_error(format!("the upload of {} was abandoned", self.0.name))
    }

    /// Aborts the upload, and waits for that at most for the time `limit`. It may be called on any thread.
    pub(crate) fn abort_upload(&self, limit: Duration) {
        abort(&self.0.upload, limit);
    }
}

impl Drop for OpenUpload {
    fn drop(&mut self) {
        abort(&self.upload, Duration::from_secs(30));
    }
}

/// If the store does not answer, its life-cycle rules remove the parts.
fn abort(upload: &Mutex<Option<Box<dyn MultipartUpload>>>, limit: Duration) {
    let Some(mut upload) = lock_ignoring_poison(upload).take() else {
        return;
    };
    let (done, wait) = mpsc::channel();
    client::runtime().spawn(async move {
        let _ = upload.abort().await;
        let _ = done.send(());
    });
    let _ = wait.recv_timeout(limit);
}

fn lock_ignoring_poison<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
