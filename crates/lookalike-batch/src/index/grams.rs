//! Grams of a segment's texts: they find the rows that may share a passage with a text.
//!
//! A file of grams has the format of [postings](super::postings). Its keys are the hashes of the selected grams
//! of every text (see [`lookalike::passages`]).

use std::path::Path;
use std::sync::Arc;

use lookalike::passages::{PassageIndex, PassageSettings, SelectedGram, Winnower};
use lookalike::text::{SpanTokenizer, SpannedTokens};
use lookalike_io::error::{Error, Result};

use crate::index::manifest::{GRAMS_FILE, IndexManifest, file_name};
use crate::index::paged::damaged_file;
use crate::index::postings::{PostingList, PostingSort, pack_posting, write_postings};
use crate::index::segments::StoredSegment;
use crate::index::spill_buffer::FingerprintSpool;
use crate::index::spill_buffer::spill_failed;
use crate::index::texts::UnpackedFrame;
use crate::sealed_manifest::FileChecksum;

/// Selects the grams of texts, with buffers that it uses again for each text.
#[derive(Clone)]
pub(super) struct GramSelector {
    tokenizer: Arc<SpanTokenizer>,
    winnower: Winnower,
    tokens: SpannedTokens,
    selected: Vec<SelectedGram>,
}

impl GramSelector {
    /// Creates a selector for the texts of an index; `None` if it finds no passages.
    pub(super) fn for_index(manifest: &IndexManifest) -> Option<Self> {
        let settings: PassageSettings = manifest.passage_settings()?;
        let recipe = manifest.known_recipe()?;
        Some(Self {
            tokenizer: Arc::new(SpanTokenizer::new(&recipe)),
            winnower: Winnower::new(settings),
            tokens: SpannedTokens::default(),
            selected: Vec::new(),
        })
    }

    /// Returns the selected grams of a text.
    fn grams_of_text(&mut self, text: &str) -> Result<&[SelectedGram]> {
        self.tokenizer.tokenize_text(text, &mut self.tokens)?;
        let tokens = self.tokens.values();
        self.winnower.select_grams(tokens, &mut self.selected);
        Ok(&self.selected)
    }

    /// Appends the postings of a row.
    pub(super) fn select_grams(
        &mut self,
        text: &str,
        row: u32,
        postings: &mut Vec<u64>,
    ) -> Result<()> {
        let selected = self.grams_of_text(text)?.iter();
        postings.extend(selected.map(|gram| pack_posting(gram.hash, row)));
        Ok(())
    }
}

/// Appends postings whose rows count from `base`.
pub(super) fn append_grams(
    all: &mut FingerprintSpool<u64>,
    postings: &mut [u64],
    base: u32,
) -> Result<()> {
    if all.len() + postings.len() > PassageIndex::MAX_POSTINGS {
        return Err(Error::limit_error(format!(
            "one run adds at most {} grams, which is some 110 GB of text: give the inputs in several runs of \
             `lookalike passages index add`",
            PassageIndex::MAX_POSTINGS
        )));
    }
    for posting in postings.iter_mut() {
        *posting += u64::from(base);
    }
    all.push_codes(postings).map_err(spill_failed)
}

/// Writes the grams of new rows.
pub(super) fn write_grams(
    index_path: &Path,
    file: u64,
    postings: &FingerprintSpool<u64>,
    sort: &PostingSort,
) -> Result<(FileChecksum, PostingList)> {
    let path = index_path.join(file_name(file, GRAMS_FILE));
    let seal = write_postings(&path, postings.len() as u64, sort, |visit| {
        let visited = postings.visit_codes(|_, postings| {
            postings.iter().for_each(|&posting| visit(posting));
            Ok(())
        });
        visited.map_err(spill_failed)
    })?;
    let mut written = PostingList::open_file(&path)?;
    written.keep_recent_pages();
    Ok((FileChecksum(seal), written))
}

/// Opens the grams of a segment and compares their checksum.
pub(super) fn open_grams(
    index_path: &Path,
    file: u64,
    expected: FileChecksum,
) -> Result<PostingList> {
    PostingList::open_named(&index_path.join(file_name(file, GRAMS_FILE)), expected)
}

/// Writes the grams of the rows that remain of several segments.
pub(super) fn merge_grams(
    index_path: &Path,
    file: u64,
    segments: &[&StoredSegment],
    sort: &PostingSort,
) -> Result<FileChecksum> {
    let path = index_path.join(file_name(file, GRAMS_FILE));
    let lists = || segments.iter().filter_map(|stored| stored.grams.as_ref());
    let count = lists().map(PostingList::count_postings).sum();
    let seal = write_postings(&path, count, sort, |visit| {
        let mut base = 0;
        for stored in segments {
            let removed = &stored.removed;
            let removed_before = removed.rank_before();
            if let Some(postings) = &stored.grams {
                postings.visit_postings(|posting| {
                    let row = posting as u32;
                    if !removed.contains_row(row) {
                        visit(pack_posting(posting, base + row - removed_before(row)));
                    }
                })?;
            }
            base += (stored.entry.rows - removed.count_rows()) as u32;
        }
        Ok(())
    })?;
    Ok(FileChecksum(seal))
}

/// Verifies that every `step`th row of a segment has the grams of its text.
pub(super) fn verify_sampled_rows(
    stored: &StoredSegment,
    mut selector: GramSelector,
    step: u64,
    index_path: &Path,
) -> Result<()> {
    let (Some(texts), Some(postings)) = (&stored.texts, &stored.grams) else {
        return Ok(());
    };
    let mut unpacked = UnpackedFrame::default();
    for row in (0..stored.entry.rows).step_by(step as usize) {
        let text = texts.text_of_row(row, &mut unpacked)?;
        for gram in selector.grams_of_text(text)? {
            let mut is_found = false;
            postings.visit_rows(postings.find_key(gram.hash)?, |other| {
                is_found |= u64::from(other) == row;
            })?;
            if !is_found {
                let path = index_path.join(file_name(stored.entry.file, GRAMS_FILE));
                let id = stored.ids.id_of_row(row)?;
                let what = format!("a gram of '{id}' is missing");
                return Err(damaged_file(&path, &what));
            }
        }
    }
    Ok(())
}
