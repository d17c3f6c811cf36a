//! Inventory: which partitions a collection must have, compared with the files on disk.
//!
//! Missing rows in the middle are noticed by their numbers. Missing rows at either end are noticed only
//! because a file, `partitions`, lists the partitions.
//!
//! # Order of writes
//!
//! - A partition is listed after its files are durable, and before its first row is written. So a partition
//!   after the listed ones is an interrupted creation, and is empty.
//! - An expired partition is taken off the list, durably, before its first file is removed. So a partition
//!   before the listed ones is an interrupted removal.
//! - Compaction makes the files of the next generation durable, then lists that generation, and then removes
//!   the old files. So files of a listed partition in another generation are an interrupted compaction or
//!   removal.
//!
//! All of these are removed. Any other difference means that a file was lost or added by somebody else, and
//! nothing is removed.
//!
//! Collections of the first version have no list. For these, a file of texts with content and without rows
//! shows that rows were lost.

use std::collections::BTreeSet;

use super::file_names::{FileNames, INCOMPLETE, PARTITION_LIST_FILE};
use super::manifest::CollectionManifest;
use super::partition::PartitionFiles;
use super::partition_list::PartitionList;
use crate::disk::Disk;
use crate::error::{Error, Result};

/// The partitions found on disk.
#[derive(Debug, Default)]
pub(crate) struct DiskInventory {
    /// Partitions that count, in the order of their numbers.
    pub(crate) partitions: Vec<FileNames>,
    /// Files of interrupted creations and removals, in the order in which they are removed.
    leftovers: Vec<String>,
    /// Missing and unexpected files.
    pub(crate) findings: Vec<Error>,
}

/// Partitions that have a file of each kind.
struct FoundFiles {
    rows: BTreeSet<FileNames>,
    texts: BTreeSet<FileNames>,
    sketches: BTreeSet<FileNames>,
}

impl FoundFiles {
    fn from_names(names: &[String]) -> Self {
        let named =
            |of: fn(&str) -> Option<FileNames>| names.iter().filter_map(|name| of(name)).collect();
        Self {
            rows: named(FileNames::from_rows_file),
            texts: named(FileNames::from_texts_file),
            sketches: named(FileNames::from_sketches_file),
        }
    }

    fn all_partitions(&self) -> BTreeSet<FileNames> {
        let all = [&self.rows, &self.texts, &self.sketches];
        all.into_iter().flatten().copied().collect()
    }

    /// Derives a list from the databases, with the earliest generation of each partition, because only that
    /// one is certainly complete.
    fn to_list(&self) -> PartitionList {
        let number = |it: &FileNames| it.number;
        let oldest = self.rows.first().map(number);
        let mut listed = PartitionList::from_range(oldest, self.rows.last().map(number));
        listed.set_generations(self.rows.iter().rev().copied());
        listed
    }
}

impl DiskInventory {
    /// Compares the list with the files on disk. Removes nothing.
    ///
    /// # Errors
    /// If a disk operation fails. Missing files are findings, not errors.
    pub(crate) fn compare_with_disk(
        disk: &dyn Disk,
        manifest: &CollectionManifest,
    ) -> Result<Self> {
        let names = list_files(disk)?;
        let found = FoundFiles::from_names(&names);
        let mut inventory = Self::default();
        let unfinished = names.iter().filter(|name| name.ends_with(INCOMPLETE));
        inventory.leftovers.extend(unfinished.cloned());
        let listed = inventory.read_listed(disk, manifest);
        let expected = listed.clone().unwrap_or_else(|| found.to_list());
        for names in found.all_partitions() {
            if (expected.first..expected.end).contains(&names.number) {
                if names != expected.file_names(names.number) {
                    inventory.note_leftover(&found, names);
                }
            } else if listed.is_some() && names.number < expected.first {
                inventory.note_leftover(&found, names);
            } else {
                inventory.note_unlisted(disk, manifest, &found, names)?;
            }
        }
        for number in expected.first..expected.end {
            inventory.note_expected(&found, expected.file_names(number));
        }
        inventory.partitions.sort_unstable();
        Ok(inventory)
    }

    /// Returns the list, if there is one and it can be read.
    fn read_listed(
        &mut self,
        disk: &dyn Disk,
        manifest: &CollectionManifest,
    ) -> Option<PartitionList> {
        if !manifest.lists_partitions {
            return None;
        }
        let listed = PartitionList::read_list(disk, manifest.seal);
        listed.map_err(|error| self.findings.push(error)).ok()
    }

    fn note_expected(&mut self, found: &FoundFiles, names: FileNames) {
        if found.rows.contains(&names) {
            self.partitions.push(names);
            return;
        }
        let mut what = "it is missing".to_owned();
        if found.texts.contains(&names) {
            what += &format!("; texts of its documents are in '{}'", names.texts_file());
        }
        self.findings
            .push(Error::damaged_file(&names.rows_file(), what));
    }

    /// Examines a partition that is not expected. If its creation was interrupted, it is empty.
    fn note_unlisted(
        &mut self,
        disk: &dyn Disk,
        manifest: &CollectionManifest,
        found: &FoundFiles,
        names: FileNames,
    ) -> Result<()> {
        let has_texts = found.texts.contains(&names) && has_content(disk, &names.texts_file())?;
        if found.rows.contains(&names) {
            if !has_texts && is_without_rows(disk, manifest.seal, names) {
                self.note_leftover(found, names);
                return Ok(());
            }
            self.partitions.push(names);
            let what =
                format!("it is behind the last partition that '{PARTITION_LIST_FILE}' lists");
            self.findings
                .push(Error::damaged_file(&names.rows_file(), what));
        } else if has_texts {
            let what = format!("it has texts, and '{}' is missing", names.rows_file());
            self.findings
                .push(Error::damaged_file(&names.texts_file(), what));
        } else {
            self.note_leftover(found, names);
        }
        Ok(())
    }

    /// Notes the files of a partition for removal, rows first, because without rows the other files are left
    /// over as well.
    fn note_leftover(&mut self, found: &FoundFiles, names: FileNames) {
        let files = [
            (&found.rows, names.rows_file()),
            (&found.texts, names.texts_file()),
            (&found.sketches, names.sketches_file()),
        ];
        let there = files.into_iter().filter(|(of, _)| of.contains(&names));
        self.leftovers.extend(there.map(|(_, name)| name));
    }

    /// Removes the files of interrupted creations and removals.
    pub(crate) fn remove_leftovers(&self, disk: &dyn Disk) -> Result<()> {
        for name in &self.leftovers {
            let removed = disk.remove_file(name);
            removed.map_err(|error| Error::disk_error("cannot remove", name, &error))?;
        }
        if self.leftovers.is_empty() {
            return Ok(());
        }
        let synced = disk.sync_names();
        synced.map_err(|error| Error::disk_error("cannot sync", "names", &error))
    }
}

pub(crate) fn list_files(disk: &dyn Disk) -> Result<Vec<String>> {
    disk.file_names()
        .map_err(|error| Error::disk_error("cannot list the files of", "collection", &error))
}

fn has_content(disk: &dyn Disk, name: &str) -> Result<bool> {
    let is_empty = disk.open_file(name).and_then(|file| file.is_empty());
    is_empty
        .map(|is_empty| !is_empty)
        .map_err(|error| Error::disk_error("cannot read", name, &error))
}

/// Returns `true` if a partition is intact and has no rows.
fn is_without_rows(disk: &dyn Disk, seal: u32, names: FileNames) -> bool {
    let mut blocks = 0;
    let counted = PartitionFiles::open_files(disk, seal, names).and_then(|partition| {
        partition.for_each_raw_block(|_, _| {
            blocks += 1;
            Ok(())
        })
    });
    counted.is_ok() && blocks == 0
}
