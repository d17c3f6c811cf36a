//! Replaces `bucket` in a build without object stores: every URL is refused.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::SystemTime;

use lookalike_store::{Disk, DiskFile};
use tokio::runtime::Handle;

use crate::error::{Result, bail};

/// A prefix of an object store, which cannot exist in this build.
#[derive(Debug, Clone)]
pub(crate) struct ObjectBucket(Infallible);

impl ObjectBucket {
    /// Refuses every URL.
    ///
    /// # Errors
    /// Always.
    pub(crate) fn open_url(url: &str, _runtime: Handle) -> Result<Self> {
        bail!(
            "'{url}' is the URL of an object store, and this program was built without object \
             stores: give a directory, or build the program with `--features object-store`"
        )
    }

    pub(crate) fn folder_names(&self) -> io::Result<Vec<String>> {
        match self.0 {}
    }

    pub(crate) fn describe_objects(&self, _name: &str) -> io::Result<(u64, Option<SystemTime>)> {
        match self.0 {}
    }

    pub(crate) fn below_prefix(&self, _name: &str) -> Self {
        match self.0 {}
    }
}

impl Disk for ObjectBucket {
    fn create_file(&self, _name: &str) -> io::Result<Arc<dyn DiskFile>> {
        match self.0 {}
    }

    fn open_file(&self, _name: &str) -> io::Result<Arc<dyn DiskFile>> {
        match self.0 {}
    }

    fn file_names(&self) -> io::Result<Vec<String>> {
        match self.0 {}
    }

    fn rename_file(&self, _from: &str, _to: &str) -> io::Result<()> {
        match self.0 {}
    }

    fn remove_file(&self, _name: &str) -> io::Result<()> {
        match self.0 {}
    }

    fn sync_names(&self) -> io::Result<()> {
        match self.0 {}
    }

    fn free_bytes(&self) -> io::Result<u64> {
        match self.0 {}
    }
}
