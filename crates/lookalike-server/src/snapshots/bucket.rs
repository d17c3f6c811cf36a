//! A prefix of an object store as a [`Disk`], whose files are written once and then read.
//!
//! The client repeats a request that has no answer for minutes. The first answer of the store, with its credentials,
//! has a deadline, so that a store that cannot be reached is an error and not a wait.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use lookalike_store::{Disk, DiskFile};
use object_store::path::Path as Key;
use object_store::{MultipartUpload, ObjectStore, ObjectStoreExt, PutPayload};
use tokio::runtime::Handle;
use tokio::time::timeout;

use crate::error::{Result, with_context};

/// Bytes per request. Object stores accept parts of 5 MiB or more.
const PART_BYTES: usize = 8 << 20;

/// Longest time to the first answer of a store.
const FIRST_ANSWER_LIMIT: Duration = Duration::from_secs(60);

/// A prefix of an object store.
#[derive(Debug, Clone)]
pub(crate) struct ObjectBucket {
    store: Arc<dyn ObjectStore>,
    prefix: Key,
    runtime: Handle,
    first_answer_limit: Duration,
    /// `true` once the store has answered a request.
    is_answered: Arc<AtomicBool>,
}

impl ObjectBucket {
    /// Opens the prefix that a URL names.
    ///
    /// # Errors
    /// If the URL is not that of a known store, or the environment configures the store wrongly.
    pub(crate) fn open_url(url: &str, runtime: Handle) -> Result<Self> {
        Self::open_with(url, std::env::vars(), runtime)
    }

    /// Opens the prefix that a URL names, with the options of the store instead of the environment.
    fn open_with(
        url: &str,
        options: impl IntoIterator<Item = (String, String)>,
        runtime: Handle,
    ) -> Result<Self> {
        // Without an installed provider the client cannot use TLS.
        let _ = tokio_rustls::rustls::crypto::ring::default_provider().install_default();
        let what = format!("'{url}' is not a URL of an object store");
        let parsed = url.parse().map_err(with_context(&what))?;
        let _entered = runtime.enter();
        let opened = object_store::parse_url_opts(&parsed, options);
        let (store, prefix) = opened.map_err(with_context(&what))?;
        Ok(Self {
            store: store.into(),
            prefix,
            runtime,
            first_answer_limit: FIRST_ANSWER_LIMIT,
            is_answered: Arc::default(),
        })
    }

    pub(crate) fn below_prefix(&self, name: &str) -> Self {
        Self {
            prefix: self.object_key(name),
            // An operation works below one prefix, and has its own deadline.
            is_answered: Arc::default(),
            ..self.clone()
        }
    }

    /// Returns the names of the prefixes below this one.
    pub(crate) fn folder_names(&self) -> io::Result<Vec<String>> {
        let listed = self.wait_for(self.store.list_with_delimiter(Some(&self.prefix)))?;
        let names = listed.common_prefixes.iter();
        Ok(names
            .filter_map(|prefix| prefix.parts().next_back())
            .map(|part| part.as_ref().to_owned())
            .collect())
    }

    /// Returns the size of all objects directly below the prefix, and the time of the object `name`, if it
    /// exists.
    pub(crate) fn describe_objects(&self, name: &str) -> io::Result<(u64, Option<SystemTime>)> {
        let listed = self.wait_for(self.store.list_with_delimiter(Some(&self.prefix)))?;
        let key = self.object_key(name);
        let found = listed.objects.iter().find(|object| object.location == key);
        let bytes = listed.objects.iter().map(|object| object.size).sum();
        Ok((bytes, found.map(|found| found.last_modified.into())))
    }

    fn object_key(&self, name: &str) -> Key {
        self.prefix.clone().join(name)
    }

    fn wait_for<T>(&self, request: impl Future<Output = object_store::Result<T>>) -> io::Result<T> {
        if self.is_answered.load(Ordering::Relaxed) {
            return self.runtime.block_on(request).map_err(io::Error::from);
        }
        let limit = self.first_answer_limit;
        let answered = self
            .runtime
            .block_on(async { timeout(limit, request).await });
        let answered = answered.map_err(|_| {
            let seconds = limit.as_secs_f64();
            let message = format!(
                "the object store gave no answer in {seconds} s, the limit: check the network, the endpoint and \
                 where the credentials come from"
            );
            io::Error::new(io::ErrorKind::TimedOut, message)
        })?;
        if is_answer(&answered) {
            self.is_answered.store(true, Ordering::Relaxed);
        }
        answered.map_err(io::Error::from)
    }
}

/// Returns `true` if the store has answered, even if it has refused the request.
fn is_answer<T>(answered: &object_store::Result<T>) -> bool {
    use object_store::Error::{
        AlreadyExists, NotFound, NotModified, PermissionDenied, Precondition, Unauthenticated,
    };
    match answered {
        Ok(_) => true,
        Err(refusal) => matches!(
            refusal,
            AlreadyExists { .. }
                | NotFound { .. }
                | NotModified { .. }
                | PermissionDenied { .. }
                | Precondition { .. }
                | Unauthenticated { .. }
        ),
    }
}

impl Disk for ObjectBucket {
    fn create_file(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        Ok(Arc::new(ObjectUpload {
            key: self.object_key(name),
            bucket: self.clone(),
            state: Mutex::default(),
        }))
    }

    fn open_file(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let key = self.object_key(name);
        let bytes = self.wait_for(self.store.head(&key))?.size;
        Ok(Arc::new(StoredObject {
            bucket: self.clone(),
            key,
            bytes,
        }))
    }

    fn file_names(&self) -> io::Result<Vec<String>> {
        let listed = self.wait_for(self.store.list_with_delimiter(Some(&self.prefix)))?;
        let names = listed
            .objects
            .iter()
            .filter_map(|object| object.location.filename());
        Ok(names.map(str::to_owned).collect())
    }

    fn rename_file(&self, from: &str, to: &str) -> io::Result<()> {
        self.wait_for(
            self.store
                .rename(&self.object_key(from), &self.object_key(to)),
        )
    }

    fn remove_file(&self, name: &str) -> io::Result<()> {
        self.wait_for(self.store.delete(&self.object_key(name)))
    }

    fn sync_names(&self) -> io::Result<()> {
        Ok(())
    }

    fn free_bytes(&self) -> io::Result<u64> {
        Ok(u64::MAX)
    }
}

/// A file that is being written.
#[derive(Debug)]
struct ObjectUpload {
    bucket: ObjectBucket,
    key: Key,
    state: Mutex<UploadProgress>,
}

#[derive(Debug, Default)]
struct UploadProgress {
    /// Bytes sent so far.
    sent: u64,
    waiting: Vec<u8>,
    /// `None` before the first part.
    parts: Option<Box<dyn MultipartUpload>>,
    complete: bool,
}

fn unsupported(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, what)
}

impl ObjectUpload {
    fn upload_part(&self, written: &mut UploadProgress) -> io::Result<()> {
        let parts = match &mut written.parts {
            Some(parts) => parts,
            none => none.insert(
                self.bucket
                    .wait_for(self.bucket.store.put_multipart(&self.key))?,
            ),
        };
        let part = std::mem::take(&mut written.waiting);
        written.sent += part.len() as u64;
        self.bucket.wait_for(parts.put_part(part.into()))
    }
}

impl DiskFile for ObjectUpload {
    fn len(&self) -> io::Result<u64> {
        let written = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(written.sent + written.waiting.len() as u64)
    }

    fn set_len(&self, _len: u64) -> io::Result<()> {
        Err(unsupported("an object cannot be cut"))
    }

    fn read_at(&self, _bytes: &mut [u8], _offset: u64) -> io::Result<usize> {
        Err(unsupported(
            "an object cannot be read while it is being written",
        ))
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut written = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if written.complete || offset != written.sent + written.waiting.len() as u64 {
            return Err(unsupported(
                "an object is written once, from its beginning on",
            ));
        }
        written.waiting.extend_from_slice(bytes);
        if written.waiting.len() >= PART_BYTES {
            self.upload_part(&mut written)?;
        }
        Ok(())
    }

    /// Completes the object.
    fn sync(&self) -> io::Result<()> {
        let mut written = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if written.complete {
            return Ok(());
        }
        if written.parts.is_none() {
            let all = PutPayload::from(std::mem::take(&mut written.waiting));
            self.bucket
                .wait_for(self.bucket.store.put(&self.key, all))?;
        } else {
            if !written.waiting.is_empty() {
                self.upload_part(&mut written)?;
            }
            if let Some(parts) = &mut written.parts {
                self.bucket.wait_for(parts.complete())?;
            }
        }
        written.complete = true;
        Ok(())
    }
}

impl Drop for ObjectUpload {
    fn drop(&mut self) {
        let written = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(parts) = written.parts.as_mut().filter(|_| !written.complete) {
            // If the upload cannot be aborted now, the life-cycle rules of the store remove it.
            let _ = self.bucket.runtime.block_on(parts.abort());
        }
    }
}

/// A complete file.
#[derive(Debug)]
struct StoredObject {
    bucket: ObjectBucket,
    key: Key,
    bytes: u64,
}

impl DiskFile for StoredObject {
    fn len(&self) -> io::Result<u64> {
        Ok(self.bytes)
    }

    fn set_len(&self, _len: u64) -> io::Result<()> {
        Err(unsupported("an object cannot be cut"))
    }

    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let end = self.bytes.min(offset.saturating_add(bytes.len() as u64));
        if offset >= end {
            return Ok(0);
        }
        let store = &self.bucket.store;
        let read = self
            .bucket
            .wait_for(store.get_range(&self.key, offset..end))?;
        let read = read.get(..(end - offset) as usize);
        let read = read.ok_or(io::ErrorKind::UnexpectedEof)?;
        bytes[..read.len()].copy_from_slice(read);
        Ok(read.len())
    }

    fn write_at(&self, _bytes: &[u8], _offset: u64) -> io::Result<()> {
        Err(unsupported("an object is written once"))
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tokio::runtime::Runtime;

    use super::*;

    #[test]
    fn silent_store_is_given_up_at_the_deadline() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            // Connections stay open as long as they are kept.
            let _open: Vec<_> = listener.incoming().collect();
        });
        let runtime = Runtime::new().unwrap();
        let endpoint = format!("http://{address}");
        let keys = [("aws_access_key_id", "a"), ("aws_secret_access_key", "b")];
        let with_keys = [("aws_endpoint", &*endpoint), ("aws_allow_http", "true")];
        let with_keys = [keys, with_keys].concat();
        let with_metadata = vec![("aws_metadata_endpoint", &*endpoint)];
        for options in [with_keys, with_metadata] {
            let options = options
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value.to_owned()));
            let handle = runtime.handle().clone();
            let bucket = ObjectBucket::open_with("s3://bucket/prefix", options, handle).unwrap();
            let bucket = ObjectBucket {
                first_answer_limit: Duration::from_millis(200),
                ..bucket
            };
            for refused in [
                bucket.folder_names().err(),
                bucket.below_prefix("a").file_names().err(),
                bucket.open_file("a").err(),
            ] {
                let message = refused.unwrap().to_string();
                assert!(message.contains("no answer in 0.2 s"), "{message}");
            }
        }
    }

    /// Empty files, short files and files of several parts are read as they were written.
    #[test]
    fn objects_are_files_that_are_written_once() {
        let runtime = Runtime::new().unwrap();
        let bucket =
            ObjectBucket::open_url("memory:///snapshots/a", runtime.handle().clone()).unwrap();
        for length in [
            0,
            1,
            PART_BYTES - 1,
            PART_BYTES,
            PART_BYTES + 1,
            2 * PART_BYTES + 7,
        ] {
            let bytes: Vec<u8> = (0..length).map(|at| (at % 251) as u8).collect();
            let file = bucket.create_file("file").unwrap();
            for (at, piece) in bytes.chunks(1 << 20).enumerate() {
                file.write_at(piece, (at << 20) as u64).unwrap();
            }
            assert_eq!(file.len().unwrap(), length as u64);
            assert!(file.write_at(b"x", length as u64 + 1).is_err());
            file.sync().unwrap();
            assert!(file.write_at(b"x", length as u64).is_err());
            bucket.rename_file("file", "renamed").unwrap();
            assert_eq!(bucket.file_names().unwrap(), ["renamed"]);
            assert!(bucket.open_file("file").is_err());
            let file = bucket.open_file("renamed").unwrap();
            assert_eq!(file.len().unwrap(), length as u64);
            let mut read = vec![0; length + 9];
            assert_eq!(file.read_at(&mut read, 0).unwrap(), length);
            assert!(read[..length] == bytes);
            let tail = length.saturating_sub(3);
            assert_eq!(file.read_at(&mut read, tail as u64).unwrap(), length - tail);
            assert!(read[..length - tail] == bytes[tail..]);
            bucket.remove_file("renamed").unwrap();
        }
        assert!(bucket.file_names().unwrap().is_empty());
        drop(bucket.create_file("nothing").unwrap());
        assert!(bucket.file_names().unwrap().is_empty());
    }
}
