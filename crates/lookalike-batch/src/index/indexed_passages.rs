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
    /// The segments, each with the number of its first row.
    segments: Vec<(u32, StoredSegment)>,
    settings: PassageSettings,
    recipe: Recipe,
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

    fn open_parts(index_path: &Path, manifest: &IndexManifest) -> Result<Self> {
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
            segments,
            settings,
            recipe,
        })
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
        let segment = self.segments.partition_point(|(base, _)| *base <= number) - 1;
        let (base, stored) = &self.segments[segment];
        let row = u64::from(number - base);
        let id = stored.ids.id_of_row(row)?.into_owned();
        let text = match &stored.texts {
            Some(texts) => texts
                .text_of_row(row, &mut UnpackedFrame::default())?
                .to_owned(),
            None => String::new(),
        };
        Ok(IndexedSource { id, text })
    }
}
