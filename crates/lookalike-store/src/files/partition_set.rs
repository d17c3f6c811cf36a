//! The open partitions of a collection that are on disk.

use std::collections::VecDeque;
use std::sync::Arc;

use super::file_names::FileNames;
use super::partition::PartitionFiles;
use super::partition_list::PartitionList;
use crate::disk::Disk;
use crate::error::Result;

/// Open partitions; their numbers, and the numbers of their rows, ascend.
#[derive(Clone, Debug, Default)]
pub(crate) struct PartitionSet(VecDeque<Arc<PartitionFiles>>);

impl PartitionSet {
    /// Adds a partition whose number is greater than all before.
    pub(crate) fn push_newest(&mut self, partition: Arc<PartitionFiles>) {
        self.0.push_back(partition);
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &Arc<PartitionFiles>> {
        self.0.iter()
    }

    pub(crate) fn newest(&self) -> Option<&Arc<PartitionFiles>> {
        self.0.back()
    }

    /// Removes the newest partition and returns it.
    pub(crate) fn pop_newest(&mut self) -> Option<Arc<PartitionFiles>> {
        self.0.pop_back()
    }

    /// Returns the names of the files of the partitions.
    pub(crate) fn file_names(&self) -> Vec<FileNames> {
        self.0
            .iter()
            .map(|files| files.about.file_names())
            .collect()
    }

    pub(crate) fn find_by_number(&self, number: u64) -> Option<&Arc<PartitionFiles>> {
        self.0.get(self.position_of(number)?)
    }

    fn position_of(&self, number: u64) -> Option<usize> {
        self.0
            .binary_search_by_key(&number, |partition| partition.about.number)
            .ok()
    }

    /// Returns the partition that has the row with a number, if that row exists.
    pub(crate) fn find_by_row(&self, row: u64) -> Option<&Arc<PartitionFiles>> {
        let behind = self
            .0
            .partition_point(|partition| partition.about.first <= row);
        self.0.get(behind.checked_sub(1)?)
    }

    /// Returns `true` if the set has this partition and not another generation of it.
    pub(crate) fn contains_partition(&self, partition: &Arc<PartitionFiles>) -> bool {
        self.0.iter().any(|other| Arc::ptr_eq(other, partition))
    }

    /// Replaces a partition by another generation of it; returns the one before.
    pub(crate) fn replace_partition(
        &mut self,
        partition: Arc<PartitionFiles>,
    ) -> Option<Arc<PartitionFiles>> {
        let at = self.position_of(partition.about.number)?;
        Some(std::mem::replace(&mut self.0[at], partition))
    }

    /// Removes the partitions up to a number and returns them.
    pub(crate) fn remove_up_to(&mut self, number: u64) -> Vec<Arc<PartitionFiles>> {
        let count = self
            .0
            .partition_point(|partition| partition.about.number <= number);
        self.0.drain(..count).collect()
    }

    /// Returns the list that names these partitions.
    pub(crate) fn to_list(&self) -> PartitionList {
        PartitionList::from_names(&self.file_names())
    }

    /// Replaces the list on disk by one that names these partitions, durably.
    pub(crate) fn write_list(&self, disk: &dyn Disk, seal: u32) -> Result<()> {
        self.to_list().write_list(disk, seal)
    }
}

impl FromIterator<Arc<PartitionFiles>> for PartitionSet {
    /// Makes a set of partitions, which are in the order of their numbers.
    fn from_iter<T: IntoIterator<Item = Arc<PartitionFiles>>>(partitions: T) -> Self {
        Self(partitions.into_iter().collect())
    }
}
