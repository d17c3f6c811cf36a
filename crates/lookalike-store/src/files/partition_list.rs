//! The list of the partitions that a collection must have, so that a lost one is noticed.

use std::collections::BTreeMap;
use std::io;

use lookalike::byte_reader::ByteReader;

use super::file_names::{FileNames, PARTITION_LIST_FILE};
use super::whole_file::{read_file, replace_file};
use crate::disk::Disk;
use crate::error::{Error, Result};

const LIST_MAGIC: [u8; 4] = *b"LApa";

/// Version of a list without compacted partitions.
const LIST_VERSION: u32 = 1;

/// Version of a list with compacted partitions.
const GENERATIONS_VERSION: u32 = 2;

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
    pub(crate) fn from_names(names: &[FileNames]) -> Self {
        let [oldest, newest] =
            [names.first(), names.last()].map(|name| name.map(|name| name.number));
        let mut listed = Self::from_range(oldest, newest);
        listed.set_generations(names.iter().copied());
        listed
    }

    /// Sets the generation of each of these partitions.
    pub(super) fn set_generations(&mut self, partitions: impl Iterator<Item = FileNames>) {
        for FileNames { number, generation } in partitions {
            match generation {
                0 => self.generations.remove(&number),
                _ => self.generations.insert(number, generation),
            };
        }
    }

    /// Returns the list with another generation of a partition.
    pub(crate) fn with_generation(mut self, partition: FileNames) -> Self {
        self.set_generations(std::iter::once(partition));
        self
    }

    /// Returns the names of the files of a listed partition.
    pub(super) fn file_names(&self, number: u64) -> FileNames {
        FileNames {
            number,
            generation: self.generations.get(&number).copied().unwrap_or(0),
        }
    }

    fn encode_list(&self, seal: u32) -> Vec<u8> {
        let mut bytes = LIST_MAGIC.to_vec();
        let version = if self.generations.is_empty() {
            LIST_VERSION
        } else {
            GENERATIONS_VERSION
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
        let mut reader = ByteReader::new(bytes.get(12..)?);
        let (first, end) = (reader.read_u64()?, reader.read_u64()?);
        let mut generations = BTreeMap::new();
        while reader.rest().len() > size_of::<u32>() {
            generations.insert(reader.read_u64()?, reader.read_u32()?);
        }
        let list = Self {
            first,
            end,
            generations,
        };
        (list.encode_list(seal) == bytes).then_some(list)
    }

    /// Replaces the list on disk, durably.
    pub(crate) fn write_list(&self, disk: &dyn Disk, seal: u32) -> Result<()> {
        replace_file(disk, PARTITION_LIST_FILE, [&*self.encode_list(seal)])
            .map_err(|error| Error::disk_error("cannot write", PARTITION_LIST_FILE, &error))
    }

    pub(super) fn read_list(disk: &dyn Disk, seal: u32) -> Result<Self> {
        let bytes = read_file(disk, PARTITION_LIST_FILE).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => Error::damaged_file(PARTITION_LIST_FILE, "it is missing"),
            _ => Error::disk_error("cannot read", PARTITION_LIST_FILE, &error),
        })?;
        let what = "it is not a list of the partitions of this collection";
        Self::decode_list(&bytes, seal)
            .ok_or_else(|| Error::damaged_file(PARTITION_LIST_FILE, what))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::DiskFolder;

    #[test]
    fn list_round_trips_and_detects_damage() {
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
