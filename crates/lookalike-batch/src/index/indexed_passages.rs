//! The texts of an index as sources of passages.

use std::path::Path;

use lookalike::Recipe;
use lookalike::passages::PassageSettings;
use lookalike_io::error::{Error, Result, display_path};

use crate::index::directory;
use crate::index::manifest::IndexManifest;
use crate::index::paged::PagedFile;
use crate::index::postings::PostingList;
use crate::index::segments::{SegmentIds, StoredSegment, open_stored_segment};
use crate::index::texts::{StoredTexts, UnpackedFrame};

/// An index that finds passages. Its sources are numbered from 0, in the order of its rows; removed rows have a number,
/// too.
pub(crate) struct IndexedPassages {
    /// The name of the directory in messages and tables.
    name: String,
    /// The segments, each with the number of its first row.
    segments: Vec<(u32, StoredSegment)>,
    settings: PassageSettings,
    recipe: Recipe,
}

/// A decompressed part of the texts of an index, with which neighbouring texts are read.
#[derive(Default)]
pub(crate) struct IndexedTextScratch {
    segment: usize,
    unpacked: UnpackedFrame,
}

/// A source of passages.
#[derive(Debug)]
pub(crate) struct IndexedSource {
    pub(crate) id: String,
    pub(crate) text: String,
}

impl IndexedPassages {
    /// Opens an index.
    ///
    /// # Errors
    /// If it is no index, was built without passages, or is damaged.
    pub(crate) fn open_index(index_path: &Path) -> Result<Self> {
        directory::read_consistently(index_path, |manifest| {
            Self::open_parts(index_path, &manifest)
        })
    }

    /// Opens the files that the manifest of an index names.
    ///
    /// # Errors
    /// As [`open_index`](Self::open_index).
    pub(super) fn open_parts(index_path: &Path, manifest: &IndexManifest) -> Result<Self> {
        let (Some(settings), Some(recipe)) = (manifest.passage_settings(), manifest.known_recipe())
        else {
            return Err(Error::usage_error(format!(
                "the index {} cannot find passages: build one with `lookalike passages index build`",
                display_path(index_path)
            )));
        };
        let mut segments = Vec::new();
        let mut base = 0u64;
        for entry in &manifest.segments {
            let first = u32::try_from(base).ok();
            base += entry.rows;
            let first = first
                .filter(|_| base <= u64::from(u32::MAX))
                .ok_or_else(|| {
                    Error::limit_error(format!(
                        "the index {} has more than {} rows, the most in which passages are found",
                        display_path(index_path),
                        u32::MAX
                    ))
                })?;
            segments.push((first, open_stored_segment(index_path, entry)?));
        }
        Ok(Self {
            name: display_path(index_path),
            segments,
            settings,
            recipe,
        })
    }

    /// Returns the name of the directory in messages and tables.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the number of sources, with those that are removed.
    pub(crate) fn count_sources(&self) -> usize {
        let last = self.segments.last();
        last.map_or(0, |(base, stored)| {
            *base as usize + stored.entry.rows as usize
        })
    }

    /// Returns the row numbers of ascending sources, from 1. Removed rows do not count.
    pub(crate) fn number_rows(&self, sources: &[u32]) -> Vec<u32> {
        let mut numbers = Vec::with_capacity(sources.len());
        let mut live_base = 0;
        for (base, stored) in &self.segments {
            let end = u64::from(*base) + stored.entry.rows;
            let removed_before = stored.removed.rank_before();
            let rest = &sources[numbers.len()..];
            let in_segment = rest.partition_point(|&source| u64::from(source) < end);
            numbers.extend(rest[..in_segment].iter().map(|source| {
                let row = source - base;
                live_base + row - removed_before(row) + 1
            }));
            live_base += stored.entry.count_live_rows() as u32;
        }
        numbers
    }

    /// If the files have more than `bytes` bytes, keeps about that many in memory; otherwise keeps all.
    pub(crate) fn keep_within(&mut self, bytes: u64) {
        let mut files: Vec<&mut PagedFile> = Vec::new();
        for (_, stored) in &mut self.segments {
            files.extend(stored.grams.as_mut().map(PostingList::file_mut));
            files.extend(stored.texts.as_mut().map(StoredTexts::file_mut));
            if let SegmentIds::Stored(ids) = &mut stored.ids {
                files.push(ids.file_mut());
            }
        }
        let all_bytes = files.iter().map(|file| file.byte_length()).sum();
        if all_bytes > bytes {
            for file in files {
                file.keep_recent_within_share(bytes, all_bytes);
            }
        }
    }

    /// Returns how long a passage must be.
    pub(crate) fn passage_settings(&self) -> PassageSettings {
        self.settings
    }

    /// Returns the recipe whose normalisation says which tokens are equal.
    pub(crate) fn recipe(&self) -> &Recipe {
        &self.recipe
    }

    /// Returns the number of sources that are not removed.
    pub(crate) fn count_live_sources(&self) -> usize {
        let live = self.segments.iter();
        live.map(|(_, stored)| stored.entry.count_live_rows() as usize)
            .sum()
    }

    /// Replaces `sources` by those that have a gram, ascending.
    pub(crate) fn find_sources_with_gram(&self, hash: u64, sources: &mut Vec<u32>) -> Result<()> {
        sources.clear();
        for (base, stored) in &self.segments {
            let Some(postings) = &stored.grams else {
                continue;
            };
            postings.visit_rows(postings.find_key(hash)?, |row| {
                // Only a damaged file has a row beyond the segment. Its number would be that of a row of the next
                // segment.
                if !stored.removed.contains_row(row) && u64::from(row) < stored.entry.rows {
                    sources.push(base + row);
                }
            })?;
        }
        sources.dedup();
        Ok(())
    }

    /// Reads the id and the text of a source.
    pub(crate) fn read_source(&self, number: u32) -> Result<IndexedSource> {
        let mut scratch = IndexedTextScratch::default();
        Ok(IndexedSource {
            id: self.read_id(number)?,
            text: self.read_text(number, &mut scratch)?.to_owned(),
        })
    }

    /// Reads the id of a source.
    pub(crate) fn read_id(&self, number: u32) -> Result<String> {
        let (_, stored, row) = self.locate_source(number);
        Ok(stored.ids.id_of_row(row)?.into_owned())
    }

    /// Reads the text of a source. Neighbouring sources are read fast with the same `scratch`, which belongs to this index.
    pub(crate) fn read_text<'s>(
        &self,
        number: u32,
        scratch: &'s mut IndexedTextScratch,
    ) -> Result<&'s str> {
        let (segment, stored, row) = self.locate_source(number);
        if scratch.segment != segment {
            *scratch = IndexedTextScratch {
                segment,
                unpacked: UnpackedFrame::default(),
            };
        }
        match &stored.texts {
            Some(texts) => texts.text_of_row(row, &mut scratch.unpacked),
            None => Ok(""),
        }
    }

    /// Returns the segment of a source, its number, and the row in it.
    fn locate_source(&self, number: u32) -> (usize, &StoredSegment, u64) {
        let segment = self.segments.partition_point(|(base, _)| *base <= number) - 1;
        let (base, stored) = &self.segments[segment];
        (segment, stored, u64::from(number - base))
    }
}
