//! Copies of a collection: made while it is in use, and restored while it is not.

mod file_copier;
mod partition_copy;
mod restore;

use std::sync::Arc;

use self::file_copier::FileCopier;
use self::partition_copy::{CopiedPartition, partition_bytes};
pub use self::restore::restore_collection;
use crate::collection::Collection;
use crate::disk::Disk;
use crate::error::Result;
use crate::files::manifest::CollectionManifest;
use crate::files::partition::{self, FileEnds};
use crate::files::partition_list::PartitionList;
use crate::files::partition_set::PartitionSet;
use crate::recipes::recipe_bytes;

impl Collection {
    /// Copies the collection, as it is on disk at one moment, to an empty disk while the collection stays in
    /// use. The manifest is written last: a copy without it is incomplete and is not a collection. The
    /// headroom applies to the other disk too.
    ///
    /// Writers wait only while this copies the rows of the newest partition, what was appended to its texts and
    /// sketches since, and partitions that began since.
    ///
    /// # Errors
    /// If an operation on either disk fails. The copied files are removed then, as far as the other disk allows. If it
    /// has no room while writers wait, they go on only after that, because they may need the same room.
    pub fn copy_to_snapshot(&self, to: &dyn Disk) -> Result<()> {
        let _files = self.lock_maintenance();
        let mut copier = FileCopier::new(to, self.options.headroom);
        let copied = self.copy_files(&mut copier, to);
        copied.inspect_err(|_| copier.remove_copies())
    }

    fn copy_files(&self, copier: &mut FileCopier<'_>, to: &dyn Disk) -> Result<()> {
        let (at_start, ends) = {
            let writer = self.lock_writer();
            (writer.partitions().clone(), writer.newest_file_ends())
        };
        let names_at_start = at_start.file_names();
        copier.reserve_bytes(recipe_bytes(&self.collection_settings().recipe))?;
        let newest = self.copy_without_lock(copier, at_start, ends)?;
        let (copied, listed, manifest) = self.finish_under_writer_lock(copier, newest)?;
        copied.iter().try_for_each(CopiedPartition::sync_files)?;
        // The copies of partitions that expired meanwhile are removed, because the list does not name them.
        for expired in names_at_start
            .into_iter()
            .filter(|entry| entry.number < listed.first)
        {
            partition::remove_partition_files(to, expired)?;
        }
        listed.write_list(to, manifest.seal)?;
        manifest.write_file(to)
    }

    /// Copies partitions as far as they will not change: the older ones completely, and the newest one up to
    /// the given ends of its files. Returns the unfinished copy of the newest one.
    fn copy_without_lock(
        &self,
        copier: &mut FileCopier<'_>,
        mut partitions: PartitionSet,
        ends: FileEnds,
    ) -> Result<Option<CopiedPartition>> {
        for partition in partitions.iter() {
            copier.reserve_bytes(partition_bytes(partition, &*self.disk)?)?;
        }
        let newest = partitions.pop_newest();
        for partition in partitions.iter() {
            let partition = Arc::clone(partition);
            let mut copy = CopiedPartition::begin_copy(copier, &*self.disk, partition)?;
            copy.copy_rest(copier)?;
            copy.sync_files()?;
        }
        let Some(newest) = newest else {
            return Ok(None);
        };
        let mut copy = CopiedPartition::begin_copy(copier, &*self.disk, newest)?;
        copy.copy_up_to(copier, ends)?;
        Ok(Some(copy))
    }

    /// Copies the rest of the partition that was the newest, and the partitions that began meanwhile, while
    /// nobody writes. Also returns the list of partitions and the manifest at that moment.
    fn finish_under_writer_lock(
        &self,
        copier: &mut FileCopier<'_>,
        newest: Option<CopiedPartition>,
    ) -> Result<(Vec<CopiedPartition>, PartitionList, Arc<CollectionManifest>)> {
        let writer = self.lock_writer();
        self.check_running()?;
        let last = newest
            .as_ref()
            .map_or(0, |newest| newest.file_names().number);
        let begun_since = writer.partitions().iter();
        let begun_since = begun_since
            .filter(|partition| partition.about.number > last)
            .cloned();
        let mut copied = Vec::from_iter(newest);
        let copy = || {
            for partition in begun_since {
                copied.push(CopiedPartition::begin_copy(copier, &*self.disk, partition)?);
            }
            copied
                .iter_mut()
                .try_for_each(|partition| partition.copy_rest(copier))
        };
        if let Err(error) = copy() {
            // Open files keep their room, so they are closed before they are removed.
            drop(copied);
            copier.make_room_after(&error);
            return Err(error);
        }
        let listed = writer.partitions().to_list();
        Ok((copied, listed, self.current_manifest()))
    }
}
