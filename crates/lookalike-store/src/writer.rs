//! Writes waiting batches to disk, in order.

use std::sync::Arc;

use crate::disk::Disk;
use crate::error::Result;
use crate::files::partition::{self, FileEnds, PartitionFiles};
use crate::files::partition_set::PartitionSet;
use crate::files::sketches::SketchFile;
use crate::state::{PendingBatch, PendingWork};

/// The only writer of a collection.
#[derive(Debug)]
pub(crate) struct StoreWriter {
    disk: Arc<dyn Disk>,
    /// Checksum of the manifest.
    seal: u32,
    /// Partitions on disk; rows are added to the newest.
    partitions: PartitionSet,
    /// Place after the texts of the newest partition, in units.
    texts: u64,
    /// File of sketches of the newest partition, if the collection has sketches and they could be written.
    sketches: Option<SketchFile>,
}

impl StoreWriter {
    pub(crate) fn new(
        disk: Arc<dyn Disk>,
        seal: u32,
        partitions: PartitionSet,
        texts: u64,
        sketches: Option<SketchFile>,
    ) -> Self {
        Self {
            disk,
            seal,
            partitions,
            texts,
            sketches,
        }
    }

    /// Returns the partitions on disk.
    pub(crate) fn partitions(&self) -> &PartitionSet {
        &self.partitions
    }

    /// Returns the ends of the append-only files of the newest partition.
    pub(crate) fn newest_file_ends(&self) -> FileEnds {
        let newest = self.partitions.newest();
        let texts = newest.map_or(Ok(0), |newest| newest.record_offset(self.texts));
        FileEnds {
            texts: texts.unwrap_or(0),
            sketches: self.sketches.as_ref().map_or(0, SketchFile::end_offset),
        }
    }

    /// Does all of the work; returns the partitions that began. After an error the content of the disk is
    /// unknown, and this must not be called again.
    pub(crate) fn write_work(&mut self, work: &PendingWork) -> Result<Vec<Arc<PartitionFiles>>> {
        let mut begun = Vec::new();
        for batch in &work.batches {
            begun.extend(self.write_batch(batch)?);
        }
        self.remove_expired(&work.expired)?;
        Ok(begun)
    }

    /// Removes the files of expired partitions, after taking them off the list.
    fn remove_expired(&mut self, expired: &[u64]) -> Result<()> {
        let Some(&newest) = expired.last() else {
            return Ok(());
        };
        let gone = self.partitions.remove_up_to(newest);
        self.partitions.write_list(&*self.disk, self.seal)?;
        for partition in gone
            .iter()
            .filter(|files| expired.contains(&files.about.number))
        {
            partition::remove_partition_files(&*self.disk, partition.about.file_names())?;
        }
        Ok(())
    }

    /// Returns `true` if a partition is on disk and was not replaced.
    pub(crate) fn has_partition(&self, partition: &Arc<PartitionFiles>) -> bool {
        self.partitions.contains_partition(partition)
    }

    /// Replaces a partition by its compacted version, all of whose files are on disk, and its sketches if it
    /// is the newest. After an error the content of the disk is unknown.
    pub(crate) fn replace_partition(
        &mut self,
        partition: &Arc<PartitionFiles>,
        sketches: Option<SketchFile>,
    ) -> Result<()> {
        let names = partition.about.file_names();
        let listed = self.partitions.to_list().with_generation(names);
        listed.write_list(&*self.disk, self.seal)?;
        let is_newest =
            self.partitions.newest().map(|files| files.about.number) == Some(names.number);
        self.partitions.replace_partition(Arc::clone(partition));
        if is_newest {
            self.sketches = sketches;
        }
        Ok(())
    }

    /// Writes a batch; returns the partition if it begins with this batch.
    fn write_batch(&mut self, batch: &PendingBatch) -> Result<Option<Arc<PartitionFiles>>> {
        let begun = match batch.begins {
            Some(about) => Some(Arc::new(PartitionFiles::create_files(
                &*self.disk,
                about,
                batch.initial_progress.as_ref(),
            )?)),
            None => None,
        };
        if let Some(partition) = &begun {
            self.partitions.push_newest(partition.clone());
            // The list is written before the first row, so a partition that is not listed is empty.
            self.partitions.write_list(&*self.disk, self.seal)?;
            let about = partition.about;
            let sketches =
                || SketchFile::create_file(&*self.disk, about.seal, about.file_names()).ok();
            self.sketches = batch.sketches.as_ref().and_then(|_| sketches());
        }
        if let Some(newest) = self.partitions.newest() {
            newest.write_rows_and_texts(
                &batch.rows,
                batch.first_row,
                &batch.texts,
                batch.texts_place,
                batch.progress.as_ref(),
            )?;
            self.texts = batch.texts_end();
        }
        // A cache that cannot be written is abandoned and rebuilt when the collection is opened.
        if let Some(entries) = &batch.sketches {
            self.sketches
                .take_if(|sketches| sketches.append_entries(entries).is_err());
        }
        Ok(begun)
    }
}
