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

use crate::bytes::Reader;
use crate::disk::Disk;
use crate::error::{Error, Result};
use crate::partition::{FileNames, Partition};
use crate::settings::{Manifest, NEW};

/// Name of the list.
pub(crate) const PARTITIONS: &str = "partitions";

const MAGIC: [u8; 4] = *b"LApa";

/// Version of a list without compacted partitions.
const VERSION: u32 = 1;

/// Version of a list with compacted partitions.
const WITH_GENERATIONS: u32 = 2;

/// The partitions that must exist; their numbers ascend without gaps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Listed {
    /// Number of the oldest partition.
    pub(crate) first: u64,
    /// Number of the newest partition, plus one.
    pub(crate) end: u64,
    /// Generations of compacted partitions, by partition number.
    generations: BTreeMap<u64, u32>,
}

impl Listed {
    /// Creates a list from the numbers of the oldest and the newest partition.
    pub(crate) fn between(oldest: Option<u64>, newest: Option<u64>) -> Self {
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
    pub(crate) fn of(partitions: &VecDeque<Arc<Partition>>) -> Self {
        let mut names = partitions.iter().map(|it| it.about.names());
        let oldest = names.clone().next().map(|it| it.number);
        let newest = names.clone().next_back().map(|it| it.number);
        let mut listed = Self::between(oldest, newest);
        listed.name(&mut names);
        listed
    }

    fn name(&mut self, partitions: &mut dyn Iterator<Item = FileNames>) {
        for FileNames { number, generation } in partitions {
            match generation {
                0 => self.generations.remove(&number),
                _ => self.generations.insert(number, generation),
            };
        }
    }

    /// Returns the list with another generation of a partition.
    pub(crate) fn with(mut self, partition: FileNames) -> Self {
        self.name(&mut std::iter::once(partition));
        self
    }

    /// Returns the names of the files of a listed partition.
    fn names(&self, number: u64) -> FileNames {
        FileNames {
            number,
            generation: self.generations.get(&number).copied().unwrap_or(0),
        }
    }

    fn encode(&self, seal: u32) -> Vec<u8> {
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

    fn decode(bytes: &[u8], seal: u32) -> Option<Self> {
        let mut reader = Reader(bytes.get(12..)?);
        let (first, end) = (reader.u64()?, reader.u64()?);
        let mut generations = BTreeMap::new();
        while reader.0.len() > size_of::<u32>() {
            generations.insert(reader.u64()?, reader.u32()?);
        }
        let listed = Self {
            first,
            end,
            generations,
        };
        (listed.encode(seal) == bytes).then_some(listed)
    }

    /// Replaces the list on disk, durably.
    pub(crate) fn write(&self, disk: &dyn Disk, seal: u32) -> Result<()> {
        let name = format!("{PARTITIONS}{NEW}");
        let write = || {
            let file = disk.create(&name)?;
            file.write_at(&self.encode(seal), 0)?;
            file.sync()?;
            disk.rename(&name, PARTITIONS)?;
            disk.sync_names()
        };
        write().map_err(|error| Error::disk("cannot write", PARTITIONS, &error))
    }

    fn read(disk: &dyn Disk, seal: u32) -> Result<Self> {
        let read = || {
            let file = disk.open(PARTITIONS)?;
            let mut bytes = vec![0; file.len()? as usize];
            file.read_exact(&mut bytes, 0)?;
            Ok(bytes)
        };
        let bytes = read().map_err(|error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => Error::damaged(PARTITIONS, "it is missing"),
            _ => Error::disk("cannot read", PARTITIONS, &error),
        })?;
        let what = "it is not a list of the partitions of this collection";
        Self::decode(&bytes, seal).ok_or_else(|| Error::damaged(PARTITIONS, what))
    }
}

/// The partitions found on disk.
#[derive(Debug, Default)]
pub(crate) struct Inventory {
    /// Partitions that count, in the order of their numbers.
    pub(crate) partitions: Vec<FileNames>,
    /// Files of interrupted creations and removals, in the order in which they are removed.
    left_over: Vec<String>,
    /// Missing and unexpected files.
    pub(crate) findings: Vec<Error>,
}

/// Partitions that have a file of each kind.
struct Found {
    rows: BTreeSet<FileNames>,
    texts: BTreeSet<FileNames>,
    sketches: BTreeSet<FileNames>,
}

impl Found {
    fn of(names: &[String]) -> Self {
        let named =
            |of: fn(&str) -> Option<FileNames>| names.iter().filter_map(|it| of(it)).collect();
        Self {
            rows: named(FileNames::of_rows),
            texts: named(FileNames::of_texts),
            sketches: named(FileNames::of_sketches),
        }
    }

    fn all(&self) -> BTreeSet<FileNames> {
        let all = [&self.rows, &self.texts, &self.sketches];
        all.into_iter().flatten().copied().collect()
    }

    /// Derives a list from the databases, with the earliest generation of each partition, because only that
    /// one is certainly complete.
    fn listed(&self) -> Listed {
        let number = |it: &FileNames| it.number;
        let oldest = self.rows.first().map(number);
        let mut listed = Listed::between(oldest, self.rows.last().map(number));
        listed.name(&mut self.rows.iter().rev().copied());
        listed
    }
}

impl Inventory {
    /// Compares the list with the files on disk. Removes nothing.
    ///
    /// # Errors
    /// If a disk operation fails. Missing files are findings, not errors.
    pub(crate) fn take(disk: &dyn Disk, manifest: &Manifest) -> Result<Self> {
        let names = names(disk)?;
        let found = Found::of(&names);
        let mut inventory = Self::default();
        let unfinished = names.iter().filter(|name| name.ends_with(NEW));
        inventory.left_over.extend(unfinished.cloned());
        let listed = inventory.listed(disk, manifest);
        let expected = listed.clone().unwrap_or_else(|| found.listed());
        for names in found.all() {
            if (expected.first..expected.end).contains(&names.number) {
                if names != expected.names(names.number) {
                    inventory.leave_over(&found, names);
                }
            } else if listed.is_some() && names.number < expected.first {
                inventory.leave_over(&found, names);
            } else {
                inventory.look_at_stray(disk, manifest, &found, names)?;
            }
        }
        for number in expected.first..expected.end {
            inventory.look_at_expected(&found, expected.names(number));
        }
        inventory.partitions.sort_unstable();
        Ok(inventory)
    }

    /// Returns the list, if there is one and it can be read.
    fn listed(&mut self, disk: &dyn Disk, manifest: &Manifest) -> Option<Listed> {
        if !manifest.lists_partitions {
            return None;
        }
        let listed = Listed::read(disk, manifest.seal);
        listed.map_err(|error| self.findings.push(error)).ok()
    }

    fn look_at_expected(&mut self, found: &Found, names: FileNames) {
        if found.rows.contains(&names) {
            self.partitions.push(names);
            return;
        }
        let mut what = "it is missing".to_owned();
        if found.texts.contains(&names) {
            what += &format!("; texts of its documents are in '{}'", names.texts());
        }
        self.findings.push(Error::damaged(&names.rows(), what));
    }

    /// Examines a partition that is not expected. If its creation was interrupted, it is empty.
    fn look_at_stray(
        &mut self,
        disk: &dyn Disk,
        manifest: &Manifest,
        found: &Found,
        names: FileNames,
    ) -> Result<()> {
        let has_texts = found.texts.contains(&names) && has_content(disk, &names.texts())?;
        if found.rows.contains(&names) {
            if !has_texts && is_without_rows(disk, manifest.seal, names) {
                self.leave_over(found, names);
                return Ok(());
            }
            self.partitions.push(names);
            let what = format!("it is behind the last partition that '{PARTITIONS}' lists");
            self.findings.push(Error::damaged(&names.rows(), what));
        } else if has_texts {
            let what = format!("it has texts, and '{}' is missing", names.rows());
            self.findings.push(Error::damaged(&names.texts(), what));
        } else {
            self.leave_over(found, names);
        }
        Ok(())
    }

    /// Notes the files of a partition for removal, rows first, because without rows the other files are left
    /// over as well.
    fn leave_over(&mut self, found: &Found, names: FileNames) {
        let files = [
            (&found.rows, names.rows()),
            (&found.texts, names.texts()),
            (&found.sketches, names.sketches()),
        ];
        let there = files.into_iter().filter(|(of, _)| of.contains(&names));
        self.left_over.extend(there.map(|(_, name)| name));
    }

    /// Removes the files of interrupted creations and removals.
    pub(crate) fn tidy(&self, disk: &dyn Disk) -> Result<()> {
        for name in &self.left_over {
            let removed = disk.remove(name);
            removed.map_err(|error| Error::disk("cannot remove", name, &error))?;
        }
        if self.left_over.is_empty() {
            return Ok(());
        }
        let synced = disk.sync_names();
        synced.map_err(|error| Error::disk("cannot sync", "names", &error))
    }
}

pub(crate) fn names(disk: &dyn Disk) -> Result<Vec<String>> {
    disk.names()
        .map_err(|error| Error::disk("cannot list the files of", "collection", &error))
}

fn has_content(disk: &dyn Disk, name: &str) -> Result<bool> {
    let is_empty = disk.open(name).and_then(|file| file.is_empty());
    is_empty
        .map(|is_empty| !is_empty)
        .map_err(|error| Error::disk("cannot read", name, &error))
}

/// Returns `true` if a partition is intact and has no rows.
fn is_without_rows(disk: &dyn Disk, seal: u32, names: FileNames) -> bool {
    let mut blocks = 0;
    let counted = Partition::open(disk, seal, names).and_then(|partition| {
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
    use crate::disk::Folder;

    #[test]
    fn a_list_comes_back_and_damage_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let disk = Folder::open(folder.path()).unwrap();
        let plain = Listed::between(Some(7), Some(30));
        let compacted =
            [(9, 1), (30, 4)].map(|(number, generation)| FileNames { number, generation });
        let some = compacted.into_iter().fold(plain.clone(), Listed::with);
        for (listed, length) in [(plain, 32), (some, 32 + 2 * 12)] {
            listed.write(&disk, 5).unwrap();
            assert_eq!(Listed::read(&disk, 5).unwrap(), listed);
            assert!(Listed::read(&disk, 6).is_err());
            let bytes = listed.encode(5);
            assert_eq!(bytes.len(), length);
            for at in 0..length {
                let mut flipped = bytes.clone();
                flipped[at] ^= 1 << (at % 8);
                assert_eq!(Listed::decode(&flipped, 5), None, "{at}");
                assert_eq!(Listed::decode(&bytes[..at], 5), None, "{at}");
            }
        }
    }
}
