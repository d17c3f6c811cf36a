//! Copies of files, to a disk on which some space must remain free.
//!
//! An append-only file can be copied up to its end at some moment, and the rest later. The copy is written
//! once from its beginning to its end, as object stores require.

use std::io;
use std::sync::Arc;

use crate::disk::{Disk, DiskFile};
use crate::error::{Error, ErrorKind, Result};
use crate::files::file_names::FileNames;
use crate::files::partition::PartitionFiles;

/// Bytes that are copied at a time.
const PIECE: usize = 8 << 20;

/// Copies files to a disk, as long as the headroom remains free.
pub(crate) struct FileCopier<'a> {
    to: &'a dyn Disk,
    headroom: u64,
    /// Known number of bytes still to be copied.
    precheck: u64,
    piece: Vec<u8>,
}

/// An unfinished copy of a file.
struct CopyInProgress {
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
            precheck: 0,
            piece: vec![0; PIECE],
        }
    }

    /// Announces bytes that will be copied.
    ///
    /// # Errors
    /// [`ErrorKind::Full`] if there is no room for all announced bytes.
    pub(crate) fn reserve_bytes(&mut self, bytes: u64) -> Result<()> {
        self.precheck += bytes;
        self.check_room(self.precheck)
    }

    /// Copies a file that nobody writes.
    pub(crate) fn copy_file(&mut self, from: Arc<dyn DiskFile>, name: &str) -> Result<()> {
        let mut copy = self.begin_copy(from, name.to_owned())?;
        self.continue_copy(&mut copy, u64::MAX)?;
        copy.sync_copy()
    }

    /// Removes everything copied, if the error was that there is no room.
    pub(crate) fn make_room_after(&self, error: &Error) {
        if error.kind() != ErrorKind::Full {
            return;
        }
        for name in self.to.file_names().unwrap_or_default() {
            let _ = self.to.remove_file(&name);
        }
    }

    fn begin_copy(&self, from: Arc<dyn DiskFile>, name: String) -> Result<CopyInProgress> {
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
    fn continue_copy(&mut self, copy: &mut CopyInProgress, end: u64) -> Result<()> {
        while copy.at < end {
            let wanted = end.saturating_sub(copy.at).min(PIECE as u64) as usize;
            let read = copy.from.read_at(&mut self.piece[..wanted], copy.at);
            let read = read.map_err(|error| copy_refused(&copy.name, &error))?;
            if read == 0 {
                break;
            }
            self.check_room(self.precheck.max(read as u64))?;
            let written = copy.to.write_at(&self.piece[..read], copy.at);
            written.map_err(|error| copy_refused(&copy.name, &error))?;
            copy.at += read as u64;
            self.precheck = self.precheck.saturating_sub(read as u64);
        }
        Ok(())
    }

    fn check_room(&self, bytes: u64) -> Result<()> {
        check_free(self.to, self.headroom.saturating_add(bytes))
    }
}

impl CopyInProgress {
    fn sync_copy(&self) -> Result<()> {
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

/// Checks that a disk has `needed` bytes free.
pub(crate) fn check_free(disk: &dyn Disk, needed: u64) -> Result<()> {
    let free = disk.free_bytes();
    let free =
        free.map_err(|error| Error::disk_error("cannot read the free space of", "disk", &error))?;
    if free >= needed {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Full,
        format!(
            "the disk has {free} bytes left, and {needed} are wanted for this and as a reserve"
        ),
    ))
}

/// Ends of the append-only files of a partition, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FileEnds {
    pub(crate) texts: u64,
    pub(crate) sketches: u64,
}

/// An unfinished copy of a partition. The partition can expire meanwhile.
pub(crate) struct CopiedPartition {
    partition: Arc<PartitionFiles>,
    texts: CopyInProgress,
    /// Cache of sketches, which is optional; if it does not exist, it is not copied.
    sketches: Option<CopyInProgress>,
    rows: Option<CopyInProgress>,
}

impl CopiedPartition {
    pub(crate) fn begin_copy(
        copier: &FileCopier<'_>,
        disk: &dyn Disk,
        partition: Arc<PartitionFiles>,
    ) -> Result<Self> {
        let names = partition.about.file_names();
        let sketches = disk.open_file(&names.sketches_file()).ok();
        let sketches = sketches.map(|file| copier.begin_copy(file, names.sketches_file()));
        Ok(Self {
            texts: copier.begin_copy(Arc::clone(&partition.texts_file), names.texts_file())?,
            sketches: sketches.transpose()?,
            rows: None,
            partition,
        })
    }

    pub(crate) fn file_names(&self) -> FileNames {
        self.partition.about.file_names()
    }

    /// Copies what will not change any more. Others may write meanwhile.
    pub(crate) fn copy_up_to(&mut self, copier: &mut FileCopier<'_>, ends: FileEnds) -> Result<()> {
        copier.continue_copy(&mut self.texts, ends.texts)?;
        match &mut self.sketches {
            Some(sketches) => copier.continue_copy(sketches, ends.sketches),
            None => Ok(()),
        }
    }

    /// Copies the rest of a partition while nobody writes to it. The copy is durable only after
    /// [`sync_files`](Self::sync_files).
    pub(crate) fn copy_rest(&mut self, copier: &mut FileCopier<'_>) -> Result<()> {
        let all = FileEnds {
            texts: u64::MAX,
            sketches: u64::MAX,
        };
        self.copy_up_to(copier, all)?;
        let rows = Arc::clone(&self.partition.rows_file);
        let mut rows = copier.begin_copy(rows, self.file_names().rows_file())?;
        copier.continue_copy(&mut rows, u64::MAX)?;
        self.rows = Some(rows);
        Ok(())
    }

    pub(crate) fn sync_files(&self) -> Result<()> {
        let files = [
            Some(&self.texts),
            self.sketches.as_ref(),
            self.rows.as_ref(),
        ];
        files
            .into_iter()
            .flatten()
            .try_for_each(CopyInProgress::sync_copy)
    }
}

/// Returns the bytes of the files of a partition.
pub(crate) fn partition_bytes(partition: &PartitionFiles, disk: &dyn Disk) -> Result<u64> {
    let length = |file: &dyn DiskFile| {
        let length = file.len();
        length.map_err(|error| Error::disk_error("cannot read", &partition.rows_name(), &error))
    };
    let sketches = disk
        .open_file(&partition.about.file_names().sketches_file())
        .ok();
    let sketches = sketches.map_or(Ok(0), |file| length(&*file))?;
    Ok(length(&*partition.texts_file)? + length(&*partition.rows_file)? + sketches)
}
