//! The manifest: the settings of an index and the list of its files.
//!
//! It is a text. The first line holds a magic word, the version and the checksum of the rest; the rest
//! is JSON. It is replaced as a whole, by renaming, after the files that it names are on disk.

use crate::sealed_manifest::{FileChecksum, ManifestKind};
use std::path::Path;

use lookalike::Recipe;
use lookalike::passages::PassageSettings;
use lookalike_io::error::Result;
use serde::{Deserialize, Serialize};

use crate::index::counts::COUNTS_FILE;
use crate::index::paged::damaged_file;

/// The manifest's file name.
pub(super) const MANIFEST_FILE: &str = "manifest";

/// The versions that are read. Version 2 added rows without a fingerprint, version 3 added records, version 4 added
/// grams, version 5 added counts.
const MANIFEST_KIND: ManifestKind = ManifestKind {
    magic: "lookalike-library",
    noun: "an index",
    versions: &["1", "2", WRITTEN_VERSION, PASSAGES_VERSION, COUNTS_VERSION],
    damaged_file,
};

/// The version that is written, unless the index finds passages or has counts.
const WRITTEN_VERSION: &str = "3";

/// The version of an index that finds passages.
const PASSAGES_VERSION: &str = "4";

/// The version of an index with counts.
const COUNTS_VERSION: &str = "5";

/// The settings of an index and its files.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IndexManifest {
    /// The recipe of the fingerprints as TOML, if it is known.
    pub(super) recipe: Option<String>,
    /// Bits of a fingerprint, 8–128.
    pub(super) bits: u32,
    /// Largest distance that a search can ask for.
    pub(super) distance: u32,
    /// The name of the Hamming plan: `auto`, `blocks`, ….
    pub(super) plan: String,
    /// Largest size of all Hamming indexes together, in bytes.
    pub(super) memory: Option<u64>,
    /// `true` if rows have ids, `false` if they are numbered, `None` while there are no rows.
    pub(super) ids: Option<bool>,
    /// `true` if the texts are stored.
    pub(super) texts: bool,
    /// `true` if records are stored, so that the index can be searched by thresholds and measures.
    #[serde(skip_serializing_if = "is_false", default)]
    pub(super) matching: bool,
    /// Fewest words of a passage, if grams are stored, so that passages of the texts can be found.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) passages: Option<u32>,
    /// The field with the sources of documents that runs count, if they count any.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) sources: Option<String>,
    /// The number of the next row, from 1.
    pub(super) next_row: u64,
    /// The number of the next file, from 1.
    pub(super) next_file: u64,
    /// The segments, in the order of their rows.
    pub(super) segments: Vec<SegmentEntry>,
    /// The files that the recipe names. The digests in the recipe verify their content.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub(super) tables: Vec<TableEntry>,
    /// The recipe with its files loaded.
    #[serde(skip)]
    pub(super) loaded: Option<Recipe>,
}

/// A file that the recipe names.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TableEntry {
    /// Its name in the recipe.
    pub(super) name: String,
    /// The number in the file name of its copy.
    pub(super) file: u64,
}

/// A segment and its files. A file's name is a number and an extension.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SegmentEntry {
    /// The number in the names of its files, except for that of the tombstones.
    pub(super) file: u64,
    pub(super) rows: u64,
    pub(super) codes: FileChecksum,
    /// Size of the file of codes in bytes.
    pub(super) bytes: u64,
    /// The number of the first row, if rows are numbered consecutively.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) first: Option<u64>,
    /// The seal of the file of ids, if rows are not numbered consecutively.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) ids: Option<FileChecksum>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) texts: Option<FileChecksum>,
    #[serde(rename = "poor", skip_serializing_if = "Option::is_none", default)]
    pub(super) unfingerprinted: Option<UnfingerprintedEntry>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) matching: Option<MatchingEntry>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) grams: Option<FileChecksum>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) removed: Option<RemovedEntry>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) counts: Option<CountsEntry>,
}

/// The counts of a segment: how many documents its rows stand for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CountsEntry {
    pub(super) file: u64,
    pub(super) seal: FileChecksum,
    /// Rows, at most, whose counts begin later than they were added.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub(super) uncounted: u64,
}

/// The rows of a segment without a fingerprint, including removed ones.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct UnfingerprintedEntry {
    pub(super) rows: u64,
    /// Removed rows among them.
    #[serde(rename = "gone", skip_serializing_if = "is_zero", default)]
    pub(super) removed: u64,
    pub(super) seal: FileChecksum,
}

/// The files of a segment for searches by thresholds and measures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MatchingEntry {
    pub(super) records: FileChecksum,
    pub(super) postings: FileChecksum,
    /// `None` if no document of the segment has a signature.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) signatures: Option<FileChecksum>,
}

fn is_false(value: &bool) -> bool {
    !value
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// The tombstones of a segment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RemovedEntry {
    pub(super) file: u64,
    pub(super) rows: u64,
    pub(super) seal: FileChecksum,
}

/// Returns the name of a file of an index.
pub(super) fn file_name(number: u64, extension: &str) -> String {
    format!("{number:08}.{extension}")
}

impl IndexManifest {
    /// Returns the content of the manifest's file.
    pub fn to_text(&self) -> String {
        let has_counts =
            self.sources.is_some() || self.segments.iter().any(|segment| segment.counts.is_some());
        let version = match self.passages {
            _ if has_counts => COUNTS_VERSION,
            None => WRITTEN_VERSION,
            Some(_) => PASSAGES_VERSION,
        };
        MANIFEST_KIND.seal_manifest(version, self)
    }

    /// Parses the content of a manifest's file. Messages name it by `path`.
    ///
    /// # Errors
    ///
    /// If the content is not a manifest, has an unsupported version, is damaged or contradicts itself.
    pub fn parse_manifest(bytes: &[u8], path: &Path) -> Result<Self> {
        let mut manifest: Self = MANIFEST_KIND.open_manifest(bytes, path)?;
        let directory = path.parent().unwrap_or(Path::new(""));
        manifest
            .load_recipe(directory)
            .map_err(|what| damaged_file(path, &what))?;
        manifest
            .check_consistency()
            .map_err(|what| damaged_file(path, &what))?;
        Ok(manifest)
    }

    fn load_recipe(&mut self, directory: &Path) -> Result<(), String> {
        let Some(recipe) = &self.recipe else {
            return Ok(());
        };
        let locate = |_: &str, name: &str| {
            let entry = self.tables.iter().find(|entry| entry.name == name);
            // No file has the number 0, so reading an unlisted file fails.
            directory.join(file_name(entry.map_or(0, |entry| entry.file), "table"))
        };
        let loaded = Recipe::read_recipe(recipe, &locate).map_err(|error| error.to_string())?;
        self.loaded = Some(loaded);
        Ok(())
    }

    fn check_consistency(&self) -> Result<(), String> {
        if let Some(table) = self
            .tables
            .iter()
            .find(|table| table.file >= self.next_file)
        {
            return Err(format!(
                "the number of table {} was never assigned",
                table.file
            ));
        }
        if let Some(recipe) = &self.loaded {
            let bits = recipe.simhash.bits;
            if bits != self.bits {
                return Err(format!(
                    "its recipe has {bits} bits, the index {}",
                    self.bits
                ));
            }
        }
        if !(8..=128).contains(&self.bits) || self.distance >= self.bits {
            return Err(format!("{} bits, distance {}", self.bits, self.distance));
        }
        if self.matching && self.recipe.is_none() {
            return Err("it has records, but no recipe".to_owned());
        }
        if let Some(words) = self.passages {
            PassageSettings::new(words).map_err(|error| error.to_string())?;
            if self.recipe.is_none() || !self.texts {
                return Err("it has grams, but no recipe or no texts".to_owned());
            }
        }
        let mut next = 1;
        for segment in &self.segments {
            self.check_segment(segment)?;
            if let Some(first) = segment.first {
                let end = first.checked_add(segment.rows);
                next = end
                    .filter(|&end| first >= next && end <= self.next_row)
                    .ok_or_else(|| {
                        format!("the rows of segment {} are out of order", segment.file)
                    })?;
            }
        }
        Ok(())
    }

    /// Checks that an entry fits to the index and to itself.
    fn check_segment(&self, segment: &SegmentEntry) -> Result<(), String> {
        let file = segment.file;
        let removed = segment.removed.as_ref();
        let counts = segment.counts.as_ref();
        let files = [
            Some(file),
            removed.map(|removed| removed.file),
            counts.map(|counts| counts.file),
        ];
        if files
            .into_iter()
            .flatten()
            .any(|file| file >= self.next_file)
        {
            return Err(format!("the number of segment {file} was never assigned"));
        }
        if segment.rows == 0 || segment.rows > u64::from(u32::MAX) {
            return Err(format!("segment {file} has {} rows", segment.rows));
        }
        if segment.first.is_some() == segment.ids.is_some() {
            return Err(format!("segment {file} mixes ids and row numbers"));
        }
        let contents = [
            ("texts", segment.texts.is_some(), self.texts),
            ("records", segment.matching.is_some(), self.matching),
            ("grams", segment.grams.is_some(), self.passages.is_some()),
        ];
        for (content, is_in_segment, is_in_index) in contents {
            if is_in_segment != is_in_index {
                return Err(format!(
                    "segment {file} differs from the index in whether {content} are stored"
                ));
            }
        }
        if removed.is_some_and(|removed| removed.rows > segment.rows) {
            return Err(format!("segment {file} has fewer rows than are removed"));
        }
        let is_impossible =
            |entry: &UnfingerprintedEntry| entry.rows > segment.rows || entry.removed > entry.rows;
        if segment.unfingerprinted.as_ref().is_some_and(is_impossible) {
            return Err(format!(
                "segment {file} has fewer rows than rows without fingerprint or removed rows"
            ));
        }
        Ok(())
    }

    /// Returns the recipe, if it is known.
    pub(super) fn known_recipe(&self) -> Option<Recipe> {
        self.loaded.clone()
    }

    /// Returns how long a passage must be, if passages can be found.
    pub(super) fn passage_settings(&self) -> Option<PassageSettings> {
        self.passages
            .and_then(|words| PassageSettings::new(words).ok())
    }

    /// Returns the number of rows that are not removed.
    pub(super) fn count_live_rows(&self) -> u64 {
        self.segments
            .iter()
            .map(SegmentEntry::count_live_rows)
            .sum()
    }

    /// Returns the names of all files.
    pub(super) fn all_file_names(&self) -> Vec<String> {
        let tables = self.tables.iter();
        let mut names: Vec<_> = tables
            .map(|stored| file_name(stored.file, "table"))
            .collect();
        for segment in &self.segments {
            names.push(file_name(segment.file, "codes"));
            if segment.ids.is_some() {
                names.push(file_name(segment.file, "ids"));
            }
            if segment.texts.is_some() {
                names.push(file_name(segment.file, "texts"));
            }
            if segment.unfingerprinted.is_some() {
                names.push(file_name(segment.file, "poor"));
            }
            if let Some(matching) = &segment.matching {
                names.extend(record_file_names(segment.file, matching));
            }
            if segment.grams.is_some() {
                names.push(file_name(segment.file, GRAMS_FILE));
            }
            if let Some(removed) = &segment.removed {
                names.push(file_name(removed.file, "removed"));
            }
            if let Some(counts) = &segment.counts {
                names.push(file_name(counts.file, COUNTS_FILE));
            }
        }
        names
    }
}

impl SegmentEntry {
    /// Returns the number of rows that are not removed.
    pub(super) fn count_live_rows(&self) -> u64 {
        self.rows - self.removed.as_ref().map_or(0, |removed| removed.rows)
    }

    /// Returns the number of rows, at most, whose counts begin later than they were added.
    pub(super) fn count_uncounted(&self) -> u64 {
        let live = self.count_live_rows();
        self.counts
            .as_ref()
            .map_or(live, |counts| counts.uncounted.min(live))
    }

    /// Returns the number of rows that have no fingerprint and are not removed.
    pub(super) fn count_unfingerprinted(&self) -> u64 {
        self.unfingerprinted.as_ref().map_or(0, |unfingerprinted| {
            unfingerprinted.rows - unfingerprinted.removed
        })
    }
}

/// Extension of the file.
pub(super) const GRAMS_FILE: &str = "grams";
/// Extensions of the files.
pub(super) const RECORDS_FILE: &str = "records";
pub(super) const SIGNATURES_FILE: &str = "signatures";
pub(super) const POSTINGS_FILE: &str = "postings";

/// Returns the names of a segment's files.
pub(super) fn record_file_names(file: u64, entry: &MatchingEntry) -> Vec<String> {
    let signatures = entry.signatures.as_ref().map(|_| SIGNATURES_FILE);
    let extensions = [RECORDS_FILE, POSTINGS_FILE].into_iter().chain(signatures);
    extensions
        .map(|extension| file_name(file, extension))
        .collect()
}
