//! Names of the files of a collection. No other file of the project spells them, except that of the lock, which
//! belongs to the disk.

use std::io;
use std::path::Path;

use crate::disk::LOCK_FILE;

/// Name of the file without which a directory is not a collection. It is written last.
pub const MANIFEST_FILE: &str = "manifest";

/// Name of the file with the files that the recipe names, if it names any. It is written before the manifest.
pub(crate) const RECIPE_FILE: &str = "recipe";

/// Name of the list of partitions. It is written before the manifest.
pub(crate) const PARTITION_LIST_FILE: &str = "partitions";

/// Ending of the name of an incomplete file.
pub(crate) const INCOMPLETE: &str = ".new";

/// Ending of the names of databases.
const ROWS_END: &str = ".rows";

/// Ending of the names of files of texts.
const TEXTS_END: &str = ".texts";

/// Ending of the names of caches of sketches.
const SKETCHES_END: &str = ".sketches";

/// Returns `true` if a file contains rows or texts, which cannot be made again.
pub fn is_data_file(name: &str) -> bool {
    [ROWS_END, TEXTS_END].iter().any(|end| name.ends_with(end))
}

/// Returns `true` if a file belongs to a complete collection and is not its manifest.
pub(crate) fn is_listed_or_data_file(name: &str) -> bool {
    matches!(name, PARTITION_LIST_FILE | RECIPE_FILE)
        || is_data_file(name)
        || name.ends_with(SKETCHES_END)
}

/// Returns `true` if a file name is one that files of a collection have, complete or not.
pub fn is_collection_file(name: &str) -> bool {
    matches!(name, LOCK_FILE | MANIFEST_FILE)
        || is_listed_or_data_file(name)
        || name.ends_with(INCOMPLETE)
}

/// Returns `true` if an interrupted creation of a collection leaves files of this name.
pub fn is_creation_file(name: &str) -> bool {
    let complete = name.strip_suffix(INCOMPLETE).unwrap_or(name);
    name == LOCK_FILE || matches!(complete, MANIFEST_FILE | PARTITION_LIST_FILE | RECIPE_FILE)
}

/// Removes the files of a collection that never had a document. Returns the first error, after all were
/// tried.
///
/// # Errors
/// If a file is there and cannot be removed.
pub fn remove_creation_files(directory: &Path) -> io::Result<()> {
    let mut removed = Ok(());
    for name in [MANIFEST_FILE, RECIPE_FILE, PARTITION_LIST_FILE, LOCK_FILE] {
        match std::fs::remove_file(directory.join(name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            other => removed = removed.and(other),
        }
    }
    removed
}

/// Names of a partition's files: its number and, once it was compacted, its generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FileNames {
    pub(crate) number: u64,
    pub(crate) generation: u32,
}

impl FileNames {
    pub(crate) fn rows_file(self) -> String {
        self.with_extension(ROWS_END)
    }

    pub(crate) fn texts_file(self) -> String {
        self.with_extension(TEXTS_END)
    }

    pub(crate) fn sketches_file(self) -> String {
        self.with_extension(SKETCHES_END)
    }

    /// Returns the names after another compaction.
    pub(crate) fn next_generation(self) -> Self {
        Self {
            generation: self.generation + 1,
            ..self
        }
    }

    fn with_extension(self, end: &str) -> String {
        let Self { number, generation } = self;
        match generation {
            0 => format!("{number:016x}{end}"),
            _ => format!("{number:016x}-{generation:08x}{end}"),
        }
    }

    pub(crate) fn from_rows_file(name: &str) -> Option<Self> {
        Self::parse_name(name, ROWS_END)
    }

    pub(crate) fn from_texts_file(name: &str) -> Option<Self> {
        Self::parse_name(name, TEXTS_END)
    }

    pub(crate) fn from_sketches_file(name: &str) -> Option<Self> {
        Self::parse_name(name, SKETCHES_END)
    }

    fn parse_name(name: &str, end: &str) -> Option<Self> {
        let stem = name.strip_suffix(end)?;
        let (number, generation) = stem.split_once('-').unwrap_or((stem, "0"));
        let names = Self {
            number: u64::from_str_radix(number, 16).ok()?,
            generation: u32::from_str_radix(generation, 16).ok()?,
        };
        (names.with_extension(end) == name).then_some(names)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_of_a_partition_is_read_back() {
        for (number, generation) in [(1, 0), (u64::MAX, 7), (26, u32::MAX)] {
            let names = FileNames { number, generation };
            let read = [
                FileNames::from_rows_file(&names.rows_file()),
                FileNames::from_texts_file(&names.texts_file()),
                FileNames::from_sketches_file(&names.sketches_file()),
            ];
            assert_eq!(read, [Some(names); 3]);
        }
        for name in [
            "1.rows",
            "0000000000000001-00000000.rows",
            "000000000000001A.rows",
        ] {
            assert_eq!(FileNames::from_rows_file(name), None, "{name}");
        }
    }

    /// Kinds of a name: of a collection, left by an interrupted creation, with rows or texts.
    #[test]
    fn names_are_told_apart() {
        let names = FileNames {
            number: 1,
            generation: 2,
        };
        for (name, kinds) in [
            (MANIFEST_FILE, [true, true, false]),
            ("manifest.new", [true, true, false]),
            (PARTITION_LIST_FILE, [true, true, false]),
            ("partitions.new", [true, true, false]),
            (LOCK_FILE, [true, true, false]),
            (&names.rows_file(), [true, false, true]),
            (
                &format!("{}{INCOMPLETE}", names.rows_file()),
                [true, false, false],
            ),
            (&names.texts_file(), [true, false, true]),
            (&names.sketches_file(), [true, false, false]),
            ("partitions.rows", [true, false, true]),
            ("manifest.txt", [false; 3]),
            ("notes", [false; 3]),
        ] {
            let found = [is_collection_file, is_creation_file, is_data_file].map(|is| is(name));
            assert_eq!(found, kinds, "{name}");
        }
    }

    #[test]
    fn creation_files_are_removed_and_others_stay() {
        let folder = tempfile::tempdir().unwrap();
        for name in [MANIFEST_FILE, LOCK_FILE, "notes"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        remove_creation_files(folder.path()).unwrap();
        let left = std::fs::read_dir(folder.path()).unwrap();
        let left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["notes"]);
        // A directory under the name of a file cannot be removed as a file.
        std::fs::create_dir(folder.path().join(MANIFEST_FILE)).unwrap();
        std::fs::write(folder.path().join(LOCK_FILE), "").unwrap();
        assert!(remove_creation_files(folder.path()).is_err());
        assert!(!folder.path().join(LOCK_FILE).exists());
    }
}
