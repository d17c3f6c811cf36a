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

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::sync::Arc;

use crate::bytes::ByteReader;
use crate::disk::Disk;
use crate::error::{Error, Result};
use crate::partition::{FileNames, PartitionFiles};
use crate::settings::{CollectionManifest, NEW};

/// Name of the list.
pub(crate) const PARTITIONS: &str = "partitions";

const MAGIC: [u8; 4] = *b"LApa";

/// Version of a list without compacted partitions.
const VERSION: u32 = 1;

/// Version of a list with compacted partitions.
const WITH_GENERATIONS: u32 = 2;

/// The partitions that must exist; their numbers ascend without gaps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PartitionList {
    /// Number of the oldest partition.
    pub(crate) first: u64,
    /// Number of the newest partition, plus one.
    pub(crate) end: u64,
    /// Generations of compacted partitions, by partition number.
    generations: BTreeMap<u64, u32>,
}

impl PartitionList {
    /// Creates a list from the numbers of the oldest and the newest partition.
    pub(crate) fn from_range(oldest: Option<u64>, newest: Option<u64>) -> Self {
        match (oldest, newest) {
            (Some(first), Some(newest)) => Self {
                first,
                end: newest + 1,
                generations: BTreeMap::new(),
            },
            _ => Self {
                first: 1,
                end: 1,
                generations: BTreeMap::new(),
            },
        }
    }

    /// Creates a list of partitions, which are in the order of their numbers.
    pub(crate) fn from_partitions(partitions: &VecDeque<Arc<PartitionFiles>>) -> Self {
        let mut names = partitions.iter().map(|it| it.about.file_names());
        let oldest = names.clone().next().map(|it| it.number);
        let newest = names.clone().next_back().map(|it| it.number);
        let mut listed = Self::from_range(oldest, newest);
        listed.name_generations(&mut names);
        listed
    }

    fn name_generations(&mut self, partitions: &mut dyn Iterator<Item = FileNames>) {
        for FileNames { number, generation } in partitions {
            match generation {
                0 => self.generations.remove(&number),
                _ => self.generations.insert(number, generation),
            };
        }
    }

    /// Returns the list with another generation of a partition.
    pub(crate) fn with_generation(mut self, partition: FileNames) -> Self {
        self.name_generations(&mut std::iter::once(partition));
        self
    }

    /// Returns the names of the files of a listed partition.
    fn file_names(&self, number: u64) -> FileNames {
        FileNames {
            number,
            generation: self.generations.get(&number).copied().unwrap_or(0),
        }
    }

    fn encode_list(&self, seal: u32) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        let version = match self.generations.is_empty() {
            true => VERSION,
            false => WITH_GENERATIONS,
        };
        bytes.extend(version.to_le_bytes());
        bytes.extend(seal.to_le_bytes());
        bytes.extend(self.first.to_le_bytes());
        bytes.extend(self.end.to_le_bytes());
        for (number, generation) in &self.generations {
            bytes.extend(number.to_le_bytes());
            bytes.extend(generation.to_le_bytes());
        }
        bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
        bytes
    }

    fn decode_list(bytes: &[u8], seal: u32) -> Option<Self> {
        let mut reader = ByteReader(bytes.get(12..)?);
        let (first, end) = (reader.read_u64()?, reader.read_u64()?);
        let mut generations = BTreeMap::new();
        while reader.0.len() > size_of::<u32>() {
            generations.insert(reader.read_u64()?, reader.read_u32()?);
        }
        let listed = Self {
            first,
            end,
            generations,
        };
        (listed.encode_list(seal) == bytes).then_some(listed)
    }

    /// Replaces the list on disk, durably.
    pub(crate) fn write_list(&self, disk: &dyn Disk, seal: u32) -> Result<()> {
        let name = format!("{PARTITIONS}{NEW}");
        let write = || {
            let file = disk.create_file(&name)?;
            file.write_at(&self.encode_list(seal), 0)?;
            file.sync()?;
            disk.rename_file(&name, PARTITIONS)?;
            disk.sync_names()
        };
        write().map_err(|error| Error::disk_error("cannot write", PARTITIONS, &error))
    }

    fn read_list(disk: &dyn Disk, seal: u32) -> Result<Self> {
        let read = || {
            let file = disk.open_file(PARTITIONS)?;
            let mut bytes = vec![0; file.len()? as usize];
            file.read_exact(&mut bytes, 0)?;
            Ok(bytes)
        };
        let bytes = read().map_err(|error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => Error::damaged_file(PARTITIONS, "it is missing"),
            _ => Error::disk_error("cannot read", PARTITIONS, &error),
        })?;
        let what = "it is not a list of the partitions of this collection";
        Self::decode_list(&bytes, seal).ok_or_else(|| Error::damaged_file(PARTITIONS, what))
    }
}

/// The partitions found on disk.
#[derive(Debug, Default)]
pub(crate) struct DiskInventory {
    /// Partitions that count, in the order of their numbers.
    pub(crate) partitions: Vec<FileNames>,
    /// Files of interrupted creations and removals, in the order in which they are removed.
    left_over: Vec<String>,
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
            |of: fn(&str) -> Option<FileNames>| names.iter().filter_map(|it| of(it)).collect();
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
        listed.name_generations(&mut self.rows.iter().rev().copied());
        listed
    }
}

impl DiskInventory {
    /// Compares the list with the files on disk. Removes nothing.
    ///
    /// # Errors
    /// If a disk operation fails. Missing files are findings, not errors.
    pub(crate) fn take_inventory(disk: &dyn Disk, manifest: &CollectionManifest) -> Result<Self> {
        let names = list_files(disk)?;
        let found = FoundFiles::from_names(&names);
        let mut inventory = Self::default();
        let unfinished = names.iter().filter(|name| name.ends_with(NEW));
        inventory.left_over.extend(unfinished.cloned());
        let listed = inventory.read_listed(disk, manifest);
        let expected = listed.clone().unwrap_or_else(|| found.to_list());
        for names in found.all_partitions() {
            if (expected.first..expected.end).contains(&names.number) {
                if names != expected.file_names(names.number) {
                    inventory.leave_over(&found, names);
                }
            } else if listed.is_some() && names.number < expected.first {
                inventory.leave_over(&found, names);
            } else {
                inventory.look_at_stray(disk, manifest, &found, names)?;
            }
        }
        for number in expected.first..expected.end {
            inventory.look_at_expected(&found, expected.file_names(number));
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

    fn look_at_expected(&mut self, found: &FoundFiles, names: FileNames) {
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
    fn look_at_stray(
        &mut self,
        disk: &dyn Disk,
        manifest: &CollectionManifest,
        found: &FoundFiles,
        names: FileNames,
    ) -> Result<()> {
        let has_texts = found.texts.contains(&names) && has_content(disk, &names.texts_file())?;
        if found.rows.contains(&names) {
            if !has_texts && is_without_rows(disk, manifest.seal, names) {
                self.leave_over(found, names);
                return Ok(());
            }
            self.partitions.push(names);
            let what = format!("it is behind the last partition that '{PARTITIONS}' lists");
            self.findings
                .push(Error::damaged_file(&names.rows_file(), what));
        } else if has_texts {
            let what = format!("it has texts, and '{}' is missing", names.rows_file());
            self.findings
                .push(Error::damaged_file(&names.texts_file(), what));
        } else {
            self.leave_over(found, names);
        }
        Ok(())
    }

    /// Notes the files of a partition for removal, rows first, because without rows the other files are left
    /// over as well.
    fn leave_over(&mut self, found: &FoundFiles, names: FileNames) {
        let files = [
            (&found.rows, names.rows_file()),
            (&found.texts, names.texts_file()),
            (&found.sketches, names.sketches_file()),
        ];
        let there = files.into_iter().filter(|(of, _)| of.contains(&names));
        self.left_over.extend(there.map(|(_, name)| name));
    }

    /// Removes the files of interrupted creations and removals.
    pub(crate) fn remove_leftovers(&self, disk: &dyn Disk) -> Result<()> {
        for name in &self.left_over {
            let removed = disk.remove_file(name);
            removed.map_err(|error| Error::disk_error("cannot remove", name, &error))?;
        }
        if self.left_over.is_empty() {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::DiskFolder;

    #[test]
    fn inventory_round_trips_and_detects_damage() {
        let folder = tempfile::tempdir().unwrap();
        let disk = DiskFolder::open(folder.path()).unwrap();
        let plain = PartitionList::from_range(Some(7), Some(30));
        let compacted =
            [(9, 1), (30, 4)].map(|(number, generation)| FileNames { number, generation });
        let some = compacted
            .into_iter()
            .fold(plain.clone(), PartitionList::with_generation);
        for (listed, length) in [(plain, 32), (some, 32 + 2 * 12)] {
            listed.write_list(&disk, 5).unwrap();
            assert_eq!(PartitionList::read_list(&disk, 5).unwrap(), listed);
            assert!(PartitionList::read_list(&disk, 6).is_err());
            let bytes = listed.encode_list(5);
            assert_eq!(bytes.len(), length);
            for at in 0..length {
                let mut flipped = bytes.clone();
                flipped[at] ^= 1 << (at % 8);
                assert_eq!(PartitionList::decode_list(&flipped, 5), None, "{at}");
                assert_eq!(PartitionList::decode_list(&bytes[..at], 5), None, "{at}");
            }
        }
    }
}
