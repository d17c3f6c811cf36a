//! Copies of partitions, the newest of which is written to meanwhile.

use std::sync::Arc;

use super::file_copier::{CopyInProgress, FileCopier};
use crate::disk::{Disk, DiskFile};
use crate::error::{Error, Result};
use crate::files::file_names::FileNames;
use crate::files::partition::{FileEnds, PartitionFiles};

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
