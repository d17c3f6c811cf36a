//! Copies of files, to a disk on which some space must remain free.
//!
//! An append-only file can be copied up to its end at some moment, and the rest later. The copy is written
//! once from its beginning to its end, as object stores require.

use std::io;
use std::sync::Arc;

use crate::disk::{Disk, DiskFile, check_free_bytes};
use crate::error::{Error, ErrorKind, Result};
use crate::files::file_names::MANIFEST_FILE;

/// Bytes that are copied at a time.
const COPIED_BYTES_AT_ONCE: usize = 8 << 20;

/// Copies files to a disk, as long as the headroom remains free.
pub(crate) struct FileCopier<'a> {
    to: &'a dyn Disk,
    headroom: u64,
    /// Known number of bytes still to be copied.
    announced: u64,
    piece: Vec<u8>,
}

/// An unfinished copy of a file.
pub(super) struct CopyInProgress {
    name: String,
    from: Arc<dyn DiskFile>,
    to: Arc<dyn DiskFile>,
    /// Bytes copied so far.
    at: u64,
}

impl<'a> FileCopier<'a> {
    pub(crate) fn new(to: &'a dyn Disk, headroom: u64) -> Self {
        Self {
            to,
            headroom,
            announced: 0,
            piece: vec![0; COPIED_BYTES_AT_ONCE],
        }
    }

    /// Announces bytes that will be copied.
    ///
    /// # Errors
    /// [`ErrorKind::Full`] if there is no room for all announced bytes.
    pub(crate) fn reserve_bytes(&mut self, bytes: u64) -> Result<()> {
        self.announced += bytes;
        self.check_room(self.announced)
    }

    /// Copies a file that nobody writes.
    pub(crate) fn copy_file(&mut self, from: Arc<dyn DiskFile>, name: &str) -> Result<()> {
        let mut copy = self.begin_copy(from, name.to_owned())?;
        self.continue_copy(&mut copy, u64::MAX)?;
        copy.sync_copy()
    }

    /// Removes everything copied, if the error was that there is no room.
    pub(crate) fn make_room_after(&self, error: &Error) {
        if error.kind() == ErrorKind::Full {
            self.remove_copies();
        }
    }

    /// Removes all files of the disk, as far as that succeeds. The manifest goes first, because a copy with a manifest
    /// counts as complete.
    pub(crate) fn remove_copies(&self) {
        let mut names = self.to.file_names().unwrap_or_default();
        names.sort_by_key(|name| name != MANIFEST_FILE);
        for name in names {
            let _ = self.to.remove_file(&name);
        }
    }

    pub(super) fn begin_copy(
        &self,
        from: Arc<dyn DiskFile>,
        name: String,
    ) -> Result<CopyInProgress> {
        let to = self.to.create_file(&name);
        let to = to.map_err(|error| copy_refused(&name, &error))?;
        Ok(CopyInProgress {
            name,
            from,
            to,
            at: 0,
        })
    }

    /// Copies up to offset `end`, or the end of the file.
    pub(super) fn continue_copy(&mut self, copy: &mut CopyInProgress, end: u64) -> Result<()> {
        while copy.at < end {
            let wanted = end.saturating_sub(copy.at).min(COPIED_BYTES_AT_ONCE as u64) as usize;
            let read = copy.from.read_at(&mut self.piece[..wanted], copy.at);
            let read = read.map_err(|error| copy_refused(&copy.name, &error))?;
            if read == 0 {
                break;
            }
            self.check_room(self.announced.max(read as u64))?;
            let written = copy.to.write_at(&self.piece[..read], copy.at);
            written.map_err(|error| copy_refused(&copy.name, &error))?;
            copy.at += read as u64;
            self.announced = self.announced.saturating_sub(read as u64);
        }
        Ok(())
    }

    fn check_room(&self, bytes: u64) -> Result<()> {
        check_free_bytes(self.to, self.headroom.saturating_add(bytes))
    }
}

impl CopyInProgress {
    pub(super) fn sync_copy(&self) -> Result<()> {
        let synced = self.to.sync();
        synced.map_err(|error| copy_refused(&self.name, &error))
    }
}

/// Returns the error of a failed copy. A write can find the disk full even if it reported free space.
fn copy_refused(name: &str, error: &io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            Error::new(ErrorKind::Full, format!("cannot copy '{name}': {error}"))
        }
        _ => Error::disk_error("cannot copy", name, error),
    }
}
