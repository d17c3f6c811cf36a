//! Brings what waits to disk, in order.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::copying::Ends;
use crate::disk::Disk;
use crate::error::Result;
use crate::inventory::Listed;
use crate::partition::{self, Partition};
use crate::sketches::Sketches;
use crate::state::{Batch, Work};

/// The only one that writes.
#[derive(Debug)]
pub(crate) struct Writer {
    disk: Arc<dyn Disk>,
    /// The checksum of the manifest.
    seal: u32,
    /// Those on disk; the newest is written.
    partitions: VecDeque<Arc<Partition>>,
    /// Where the texts of the newest end.
    texts: u64,
    /// The sketches of the newest, if documents of this collection have such and they could be written.
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

    /// The partitions that are on disk.
    pub(crate) fn partitions(&self) -> &VecDeque<Arc<Partition>> {
        &self.partitions
    }

    /// Where the files of the newest partition end that are appended to.
    pub(crate) fn ends(&self) -> Ends {
        Ends {
            texts: self.texts,
            sketches: self.sketches.as_ref().map_or(0, Sketches::end),
        }
    }

    /// Does all of the work; returns the partitions that began. After an error nothing is known of what
    /// is on disk, and this must not be called again.
    pub(crate) fn work(&mut self, work: &Work) -> Result<Vec<Arc<Partition>>> {
        let mut begun = Vec::new();
        for batch in &work.batches {
            begun.extend(self.write(batch)?);
        }
        self.forget(&work.expired)?;
        Ok(begun)
    }

    /// Removes the files of partitions, once these are not listed any more.
    fn forget(&mut self, expired: &[u64]) -> Result<()> {
        let Some(&newest) = expired.last() else {
            return Ok(());
        };
        self.list_from(newest + 1)?;
        for &number in expired {
            partition::remove(&*self.disk, number)?;
            self.partitions.retain(|it| it.about.number != number);
        }
        Ok(())
    }

    /// Writes the list of partitions, of which the oldest has this number or a later one.
    fn list_from(&self, oldest: u64) -> Result<()> {
        let numbers = self.partitions.iter().map(|it| it.about.number);
        let mut listed = numbers.skip_while(|&number| number < oldest);
        let oldest = listed.next();
        let listed = Listed::between(oldest, listed.last().or(oldest));
        listed.write(&*self.disk, self.seal)
    }

    /// Returns the partition if it begins with the batch.
    fn write(&mut self, batch: &Batch) -> Result<Option<Arc<Partition>>> {
        let begun = match batch.begins {
            Some(about) => Some(Arc::new(Partition::create(&*self.disk, about)?)),
            None => None,
        };
        if let Some(partition) = &begun {
            self.partitions.push_back(partition.clone());
            // Before the first row: one that is not listed is empty.
            self.list_from(0)?;
            let about = partition.about;
            let sketches = || Sketches::create(&*self.disk, about.seal, about.number).ok();
            self.sketches = batch.with_sketches.then(sketches).flatten();
        }
        if let Some(newest) = self.partitions.back() {
            newest.write(&batch.rows, batch.first, &batch.texts, batch.texts_at)?;
            self.texts = batch.texts_at + batch.texts.len() as u64;
        }
        // A cache that cannot be written is none, and is made anew when the collection is opened.
        self.sketches
            .take_if(|sketches| sketches.append(&batch.sketches).is_err());
        Ok(begun)
    }
}
