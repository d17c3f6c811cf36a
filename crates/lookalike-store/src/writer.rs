//! Writes waiting batches to disk, in order.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::copying::Ends;
use crate::disk::Disk;
use crate::error::Result;
use crate::inventory::Listed;
use crate::partition::{self, Partition};
use crate::sketches::Sketches;
use crate::state::{Batch, Work};

/// The only writer of a collection.
#[derive(Debug)]
pub(crate) struct Writer {
    disk: Arc<dyn Disk>,
    /// Checksum of the manifest.
    seal: u32,
    /// Partitions on disk; rows are added to the newest.
    partitions: VecDeque<Arc<Partition>>,
    /// Place after the texts of the newest partition, in units.
    texts: u64,
    /// File of sketches of the newest partition, if the collection has sketches and they could be written.
    sketches: Option<Sketches>,
}

impl Writer {
    pub(crate) fn new(
        disk: Arc<dyn Disk>,
        seal: u32,
        partitions: VecDeque<Arc<Partition>>,
        texts: u64,
        sketches: Option<Sketches>,
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
    pub(crate) fn partitions(&self) -> &VecDeque<Arc<Partition>> {
        &self.partitions
    }

    /// Returns the ends of the append-only files of the newest partition.
    pub(crate) fn ends(&self) -> Ends {
        let newest = self.partitions.back();
        let texts = newest.map_or(Ok(0), |newest| newest.offset(self.texts));
        Ends {
            texts: texts.unwrap_or(0),
            sketches: self.sketches.as_ref().map_or(0, Sketches::end),
        }
    }

    /// Does all of the work; returns the partitions that began. After an error the content of the disk is
    /// unknown, and this must not be called again.
    pub(crate) fn work(&mut self, work: &Work) -> Result<Vec<Arc<Partition>>> {
        let mut begun = Vec::new();
        for batch in &work.batches {
            begun.extend(self.write(batch)?);
        }
        self.forget(&work.expired)?;
        Ok(begun)
    }

    /// Removes the files of expired partitions, after taking them off the list.
    fn forget(&mut self, expired: &[u64]) -> Result<()> {
        let Some(&newest) = expired.last() else {
            return Ok(());
        };
        let stays = |it: &Arc<Partition>| it.about.number > newest;
        let (stay, go): (Vec<_>, Vec<_>) = self.partitions.drain(..).partition(stays);
        self.partitions = stay.into();
        self.list()?;
        for partition in go.iter().filter(|it| expired.contains(&it.about.number)) {
            partition::remove(&*self.disk, partition.about.names())?;
        }
        Ok(())
    }

    /// Writes the list of partitions.
    fn list(&self) -> Result<()> {
        Listed::of(&self.partitions).write(&*self.disk, self.seal)
    }

    /// Returns `true` if a partition is on disk and was not replaced.
    pub(crate) fn has(&self, partition: &Arc<Partition>) -> bool {
        self.partitions.iter().any(|it| Arc::ptr_eq(it, partition))
    }

    /// Replaces a partition by its compacted version, all of whose files are on disk, and its sketches if it
    /// is the newest. After an error the content of the disk is unknown.
    pub(crate) fn replace(
        &mut self,
        partition: &Arc<Partition>,
        sketches: Option<Sketches>,
    ) -> Result<()> {
        let names = partition.about.names();
        let listed = Listed::of(&self.partitions).with(names);
        listed.write(&*self.disk, self.seal)?;
        let is_newest = self.partitions.back().map(|it| it.about.number) == Some(names.number);
        let same = |it: &&mut Arc<Partition>| it.about.number == names.number;
        if let Some(before) = self.partitions.iter_mut().find(same) {
            *before = Arc::clone(partition);
        }
        if is_newest {
            self.sketches = sketches;
        }
        Ok(())
    }

    /// Writes a batch; returns the partition if it begins with this batch.
    fn write(&mut self, batch: &Batch) -> Result<Option<Arc<Partition>>> {
        let begun = match batch.begins {
            Some(about) => Some(Arc::new(Partition::create(&*self.disk, about)?)),
            None => None,
        };
        if let Some(partition) = &begun {
            self.partitions.push_back(partition.clone());
            // The list is written before the first row, so a partition that is not listed is empty.
            self.list()?;
            let about = partition.about;
            let sketches = || Sketches::create(&*self.disk, about.seal, about.names()).ok();
            self.sketches = batch.with_sketches.then(sketches).flatten();
        }
        if let Some(newest) = self.partitions.back() {
            newest.write(&batch.rows, batch.first, &batch.texts, batch.texts_at)?;
            self.texts = batch.texts_end();
        }
        // A cache that cannot be written is abandoned and rebuilt when the collection is opened.
        self.sketches
            .take_if(|sketches| sketches.append(&batch.sketches).is_err());
        Ok(begun)
    }
}
