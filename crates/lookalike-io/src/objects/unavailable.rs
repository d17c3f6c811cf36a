//! Replaces the client of object stores in a build without it: every URL is refused.

use std::convert::Infallible;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::{ObjectIdentity, ObjectSearch, ObjectUrl};
use crate::error::{Error, Result};
use crate::spool::SpoolFile;

fn unavailable_url_error(url: &ObjectUrl) -> Error {
    Error::usage_error(format!(
        "{url} is in an object store or on a server, and this program was built without them: copy it to \
         a file, or build the program with `--features object-store`"
    ))
}

/// Refuses every URL.
///
/// # Errors
/// Always.
pub(crate) fn find_objects(url: &ObjectUrl) -> Result<ObjectSearch> {
    Err(unavailable_url_error(url))
}

/// Does nothing, because this build has recorded no upload.
pub(crate) fn abort_recorded_upload(_record: &Path) {}

/// Returns no URL, because this build has recorded no upload.
pub(crate) fn recorded_url(_record: &Path) -> Option<String> {
    None
}

/// The copies of objects of a run, of which there are none in this build.
#[derive(Debug)]
pub struct ObjectCopies(());

impl ObjectCopies {
    /// Opens no files, because there are no objects to copy.
    ///
    /// # Errors
    /// Never.
    pub fn open_in(_directory: &Path) -> Result<Self> {
        Ok(Self(()))
    }
}

/// An object, which cannot exist in this build.
#[derive(Debug)]
pub(crate) struct StoredObject(Infallible);

impl StoredObject {
    pub(crate) fn display_name(&self) -> &str {
        match self.0 {}
    }

    pub(crate) fn byte_length(&self) -> Option<u64> {
        match self.0 {}
    }

    pub(crate) fn has_ranges(&self) -> bool {
        match self.0 {}
    }

    pub(crate) fn object_identity(&self) -> Option<&ObjectIdentity> {
        match self.0 {}
    }

    pub(crate) fn keep_parts(&mut self, _copies: &Arc<ObjectCopies>) {
        match self.0 {}
    }

    pub(crate) fn keeps_parts(&self) -> bool {
        match self.0 {}
    }

    pub(crate) fn read_ahead(self: &Arc<Self>) {
        match self.0 {}
    }

    pub(crate) fn open_stream_at(self: &Arc<Self>, _byte: u64) -> ObjectStream {
        match self.0 {}
    }

    pub(crate) fn open_stream(self: &Arc<Self>) -> ObjectStream {
        match self.0 {}
    }
}

/// The bytes of an object.
#[derive(Debug)]
pub(crate) struct ObjectStream(Infallible);

impl Read for ObjectStream {
    fn read(&mut self, _room: &mut [u8]) -> io::Result<usize> {
        match self.0 {}
    }
}

/// The parts of an object that were read.
#[derive(Debug)]
pub(crate) struct RangeCopy(Infallible);

impl RangeCopy {
    pub(crate) fn new(object: &Arc<StoredObject>, _spool: Arc<SpoolFile>) -> Self {
        match object.0 {}
    }

    pub(crate) fn of_kept(object: &Arc<StoredObject>) -> Self {
        match object.0 {}
    }

    pub(crate) fn byte_length(&self) -> u64 {
        match self.0 {}
    }

    pub(crate) fn read_exact_at(&self, _room: &mut [u8], _start: u64) -> io::Result<()> {
        match self.0 {}
    }

    pub(crate) fn read_at(&self, _room: &mut [u8], _start: u64) -> io::Result<usize> {
        match self.0 {}
    }
}

/// An output of an object store.
#[derive(Debug, Clone)]
pub(crate) struct ObjectUpload(Infallible);

impl ObjectUpload {
    /// Refuses every URL.
    ///
    /// # Errors
    /// Always.
    pub(crate) fn begin_upload(url: &ObjectUrl) -> Result<Self> {
        Err(unavailable_url_error(url))
    }

    /// Refuses every URL.
    ///
    /// # Errors
    /// Always.
    pub(crate) fn prepare_recorded(url: &ObjectUrl, _record: PathBuf) -> Result<Self> {
        Err(unavailable_url_error(url))
    }

    pub(crate) fn display_name(&self) -> &str {
        match self.0 {}
    }

    pub(crate) fn is_same(&self, _other: &Self) -> bool {
        match self.0 {}
    }

    pub(crate) fn send_file(&self, _file: &File) -> Result<()> {
        match self.0 {}
    }

    pub(crate) fn complete_upload(&self) -> Result<()> {
        match self.0 {}
    }

    pub(crate) fn abort_upload(&self, _limit: Duration) {
        match self.0 {}
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn urls_are_refused_with_what_to_do() {
        let url = ObjectUrl::from_path(Path::new("s3://bucket/a.jsonl"));
        let url = url.unwrap().unwrap();
        for refused in [
            find_objects(&url).err(),
            ObjectUpload::begin_upload(&url).err(),
        ] {
            let message = refused.unwrap().to_string();
            assert!(message.starts_with("s3://bucket/a.jsonl"), "{message}");
            assert!(message.ends_with("`--features object-store`"), "{message}");
        }
    }
}
