//! Which partitions a collection must have: a file says so, and what is on the disk is compared with it.
//!
//! Rows that are missing in the middle are noticed by their numbers. That the oldest or the newest ones
//! are missing is noticed by this file alone.
//!
//! # The order of writing
//!
//! A partition is listed once its files are there, durably, and before it has its first row. So one behind
//! the listed ones is one whose making was interrupted, and is empty. A partition that expires is taken
//! off the list, durably, before its first file is removed. So one before the listed ones is one whose
//! removal was interrupted. Both can go; all else that does not agree was lost or put there by others,
//! and is never removed.
//!
//! Collections of the first version have no list. There texts with content and without rows are what
//! tells that rows were lost.

use std::collections::BTreeSet;
use std::io;

use crate::bytes::Reader;
use crate::disk::Disk;
use crate::error::{Error, Result};
use crate::partition::{self, Partition, rows_name, texts_name};
use crate::settings::{Manifest, NEW};
use crate::sketches::{self, sketches_name};

/// The name of the list.
pub(crate) const PARTITIONS: &str = "partitions";

const MAGIC: [u8; 4] = *b"LApa";
const VERSION: u32 = 1;

/// The bytes of the list.
const LENGTH: usize = 32;

/// The partitions that must be there: their numbers ascend without gaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Listed {
    /// The oldest.
    pub(crate) first: u64,
    /// The number after that of the newest.
    pub(crate) end: u64,
}

impl Listed {
    /// From the oldest to the newest.
    pub(crate) fn between(oldest: Option<u64>, newest: Option<u64>) -> Self {
        match (oldest, newest) {
            (Some(first), Some(newest)) => Self {
                first,
                end: newest + 1,
            },
            _ => Self { first: 1, end: 1 },
        }
    }

    fn encode(self, seal: u32) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend(seal.to_le_bytes());
        bytes.extend(self.first.to_le_bytes());
        bytes.extend(self.end.to_le_bytes());
        bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8], seal: u32) -> Option<Self> {
        let mut reader = Reader(bytes.get(12..)?);
        let listed = Self {
            first: reader.u64()?,
            end: reader.u64()?,
        };
        (listed.encode(seal) == bytes).then_some(listed)
    }

    /// Writes the list in place of the one before; it is on disk then.
    pub(crate) fn write(self, disk: &dyn Disk, seal: u32) -> Result<()> {
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
            let mut bytes = vec![0; LENGTH + 1];
            let read = disk.open(PARTITIONS)?.read_at(&mut bytes, 0)?;
            bytes.truncate(read);
            Ok(bytes)
        };
        let bytes = read().map_err(|error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => Error::damaged(PARTITIONS, "it is missing"),
            _ => Error::disk("cannot read", PARTITIONS, &error),
        })?;
        let what = "it is no list of the partitions of this collection";
        Self::decode(&bytes, seal).ok_or_else(|| Error::damaged(PARTITIONS, what))
    }
}

/// What is on the disk of a collection.
#[derive(Debug, Default)]
pub(crate) struct Inventory {
    /// The numbers of all partitions that count, ascending.
    pub(crate) partitions: Vec<u64>,
    /// Files of what was begun or removed and not brought to its end, in the order in which they go.
    left_over: Vec<String>,
    /// What is missing, or was not to be there.
    pub(crate) findings: Vec<Error>,
}

/// The numbers of partitions that have a file of some kind.
struct Found {
    rows: BTreeSet<u64>,
    texts: BTreeSet<u64>,
    sketches: BTreeSet<u64>,
}

impl Found {
    fn of(names: &[String]) -> Self {
        let numbers = |of: fn(&str) -> Option<u64>| names.iter().filter_map(|it| of(it)).collect();
        Self {
            rows: numbers(partition::number_of),
            texts: numbers(partition::number_of_texts),
            sketches: numbers(sketches::number_of),
        }
    }

    fn numbers(&self) -> BTreeSet<u64> {
        let all = [&self.rows, &self.texts, &self.sketches];
        all.into_iter().flatten().copied().collect()
    }
}

impl Inventory {
    /// Looks at what is there; removes nothing.
    ///
    /// # Errors
    /// If the disk refuses. What is missing is among the findings.
    pub(crate) fn take(disk: &dyn Disk, manifest: &Manifest) -> Result<Self> {
        let names = names(disk)?;
        let found = Found::of(&names);
        let mut inventory = Self::default();
        let unfinished = names.iter().filter(|name| name.ends_with(NEW));
        inventory.left_over.extend(unfinished.cloned());
        let listed = inventory.listed(disk, manifest);
        let (oldest, newest) = (found.rows.first(), found.rows.last());
        let expected = listed.unwrap_or(Listed::between(oldest.copied(), newest.copied()));
        let numbers = found.numbers();
        // Before and behind the numbers that are expected.
        for &number in numbers.range(..expected.first) {
            match listed {
                Some(_) => inventory.leave_over(&found, number),
                None => inventory.look_at_stray(disk, manifest, &found, number)?,
            }
        }
        for number in expected.first..expected.end {
            inventory.look_at_expected(&found, number);
        }
        for &number in numbers.range(expected.end..) {
            inventory.look_at_stray(disk, manifest, &found, number)?;
        }
        inventory.partitions.sort_unstable();
        Ok(inventory)
    }

    /// What the list says, if there is one and it can be read.
    fn listed(&mut self, disk: &dyn Disk, manifest: &Manifest) -> Option<Listed> {
        if !manifest.lists_partitions {
            return None;
        }
        let listed = Listed::read(disk, manifest.seal);
        listed.map_err(|error| self.findings.push(error)).ok()
    }

    fn look_at_expected(&mut self, found: &Found, number: u64) {
        if found.rows.contains(&number) {
            self.partitions.push(number);
            return;
        }
        let mut what = "it is missing".to_owned();
        if found.texts.contains(&number) {
            what += &format!("; texts of its documents are in '{}'", texts_name(number));
        }
        self.findings.push(Error::damaged(&rows_name(number), what));
    }

    /// A partition that is not expected: one whose making was interrupted is empty.
    fn look_at_stray(
        &mut self,
        disk: &dyn Disk,
        manifest: &Manifest,
        found: &Found,
        number: u64,
    ) -> Result<()> {
        let has_texts = found.texts.contains(&number) && has_content(disk, &texts_name(number))?;
        if found.rows.contains(&number) {
            if !has_texts && is_without_rows(disk, manifest.seal, number) {
                self.leave_over(found, number);
                return Ok(());
            }
            self.partitions.push(number);
            let what = format!("it is behind the last partition that '{PARTITIONS}' lists");
            self.findings.push(Error::damaged(&rows_name(number), what));
        } else if has_texts {
            let what = format!("it has texts, and '{}' is missing", rows_name(number));
            self.findings
                .push(Error::damaged(&texts_name(number), what));
        } else {
            self.leave_over(found, number);
        }
        Ok(())
    }

    /// Rows go first: without them the other files are left over as well.
    fn leave_over(&mut self, found: &Found, number: u64) {
        let files = [
            (&found.rows, rows_name(number)),
            (&found.texts, texts_name(number)),
            (&found.sketches, sketches_name(number)),
        ];
        let there = files.into_iter().filter(|(of, _)| of.contains(&number));
        self.left_over.extend(there.map(|(_, name)| name));
    }

    /// Removes what was begun or removed and not brought to its end.
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

/// Whether a partition is whole, and nothing has happened in it.
fn is_without_rows(disk: &dyn Disk, seal: u32, number: u64) -> bool {
    let mut blocks = 0;
    let counted = Partition::open(disk, seal, number).and_then(|partition| {
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
        let listed = Listed { first: 7, end: 31 };
        listed.write(&disk, 5).unwrap();
        assert_eq!(Listed::read(&disk, 5).unwrap(), listed);
        assert!(Listed::read(&disk, 6).is_err());
        let bytes = listed.encode(5);
        assert_eq!(bytes.len(), LENGTH);
        for at in 0..LENGTH {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << (at % 8);
            assert_eq!(Listed::decode(&flipped, 5), None, "{at}");
            assert_eq!(Listed::decode(&bytes[..at], 5), None, "{at}");
        }
    }
}
