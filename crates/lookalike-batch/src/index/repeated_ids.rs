//! Ids that rows of an addition share with each other or with the index.
//!
//! Repeated ids are allowed unless `--strict` is set, because `index remove` takes all rows of an id. They are
//! counted and reported, because adding the same file twice is usually a mistake.
//!
//! Cost: one pass over the ids of the index, and one read of a new id for each equal hash. Memory: 20 to 40 bytes
//! per new row.

use std::path::Path;

use lookalike_io::error::{Error, Result, display_path};

use crate::index::ids::StoredIds;
use crate::index::manifest::IndexManifest;
use crate::index::segments::{SegmentIds, open_stored_segment};
use crate::run::progress::RepeatedIds;
use crate::run::reading::repeated_ids::{BitTable, equal_hash_groups};

/// Number of rows whose ids a thread compares at once.
const PORTION_ROWS: usize = 64;

/// The ids of the rows of an addition.
pub(super) struct NewIds<'a> {
    pub(super) ids: &'a StoredIds,
    /// The hash of each id.
    pub(super) hashes: &'a [u64],
    /// The row number of each id, counted over all inputs.
    pub(super) numbers: &'a [u32],
    /// `true` if ids that new rows share with each other count too.
    pub(super) counts_own: bool,
}

/// A new row whose id an earlier row has.
struct RepeatedRow {
    row: usize,
    /// The earlier new row; `None` if the index has the id.
    earlier: Option<usize>,
}

/// The rows found so far that repeat an id.
#[derive(Default)]
struct RepeatTally {
    rows: u64,
    first: Option<RepeatedRow>,
}

impl RepeatTally {
    fn add_row(&mut self, row: usize, earlier: Option<usize>) {
        self.rows += 1;
        if self.first.as_ref().is_none_or(|first| row < first.row) {
            self.first = Some(RepeatedRow { row, earlier });
        }
    }
}

impl NewIds<'_> {
    /// Counts the new rows with the id of a row of the index, and those with the id of an earlier new row if they
    /// count. Removed rows of the index do not count.
    ///
    /// # Errors
    ///
    /// If an id is repeated and `strict` is set, or if the ids cannot be read.
    pub(super) fn find_repeats(
        &self,
        index_path: &Path,
        manifest: &IndexManifest,
        strict: bool,
    ) -> Result<Option<RepeatedIds>> {
        let mut tally = RepeatTally::default();
        let is_repeat = self.mark_repeats(&mut tally)?;
        if !manifest.segments.is_empty() {
            self.find_known(index_path, manifest, &is_repeat, &mut tally)?;
        }
        let Some(first) = tally.first else {
            return Ok(None);
        };
        let id = self.ids.id_of_row(first.row as u64)?.into_owned();
        if strict {
            return Err(self.repeat_error(&id, &first, index_path));
        }
        let place = |row: usize| format!("row {} of the inputs", self.numbers[row]);
        let earlier = first
            .earlier
            .map_or_else(|| display_path(index_path), place);
        Ok(Some(RepeatedIds {
            documents: tally.rows,
            id,
            places: [earlier, place(first.row)],
        }))
    }

    /// Marks the rows with the id of an earlier new row.
    fn mark_repeats(&self, tally: &mut RepeatTally) -> Result<Vec<bool>> {
        let mut is_repeat = vec![false; self.hashes.len()];
        let portions: Vec<&[u64]> = self.hashes.chunks(PORTION_ROWS).collect();
        let visit_portion = |portion: usize, visit: &mut dyn FnMut(usize, u64)| {
            let rows = portion * PORTION_ROWS..;
            rows.zip(portions[portion])
                .for_each(|(row, &hash)| visit(row, hash));
            Ok(())
        };
        for group in equal_hash_groups(self.hashes.len(), portions.len(), visit_portion)? {
            // Different ids may have the same hash.
            let mut distinct: Vec<(_, usize)> = Vec::new();
            for row in group {
                let id = self.ids.id_of_row(row as u64)?;
                match distinct.iter().find(|(other, _)| *other == id) {
                    None => distinct.push((id, row)),
                    Some(&(_, earlier)) => {
                        is_repeat[row] = true;
                        if self.counts_own {
                            tally.add_row(row, Some(earlier));
                        }
                    }
                }
            }
        }
        Ok(is_repeat)
    }

    /// Finds the first new row of each id that the index contains.
    fn find_known(
        &self,
        index_path: &Path,
        manifest: &IndexManifest,
        is_repeat: &[bool],
        tally: &mut RepeatTally,
    ) -> Result<()> {
        let table = BitTable::new(self.hashes.len());
        let mut distinct: Vec<(u64, usize)> = Vec::new();
        for (row, &hash) in self.hashes.iter().enumerate() {
            if !is_repeat[row] {
                table.insert_hash(hash);
                distinct.push((hash, row));
            }
        }
        distinct.sort_unstable();
        let mut is_known = vec![false; self.hashes.len()];
        visit_live_ids(index_path, manifest, |id| {
            let hash = lookalike::value_hash(id.as_bytes());
            if !table.contains_hash(hash) {
                return Ok(());
            }
            let from = distinct.partition_point(|(other, _)| *other < hash);
            let same_hash = distinct[from..]
                .iter()
                .take_while(|(other, _)| *other == hash);
            for &(_, row) in same_hash {
                if !is_known[row] && self.ids.id_of_row(row as u64)? == id {
                    is_known[row] = true;
                    tally.add_row(row, None);
                }
            }
            Ok(())
        })
    }

    fn repeat_error(&self, id: &str, first: &RepeatedRow, index_path: &Path) -> Error {
        let row = self.numbers[first.row];
        Error::input_error(match first.earlier {
            Some(earlier) => format!(
                "the id '{id}' is in rows {} and {row}, but with --strict ids must differ: name another field \
                 with --id, or number the rows with --id-row",
                self.numbers[earlier]
            ),
            None => format!(
                "the id '{id}' of row {row} of the inputs is already in the index {}: remove it \
                 there first, with `lookalike index remove`, or give the row another id",
                display_path(index_path)
            ),
        })
    }
}

/// Calls `visit` with the id of every row of the index that is not removed.
fn visit_live_ids(
    index_path: &Path,
    manifest: &IndexManifest,
    mut visit: impl FnMut(&str) -> Result<()>,
) -> Result<()> {
    for entry in &manifest.segments {
        let stored = open_stored_segment(index_path, entry)?;
        let mut unless_removed = |row: u64, id: &str| {
            if stored.removed.contains_row(row as u32) {
                Ok(())
            } else {
                visit(id)
            }
        };
        match &stored.ids {
            SegmentIds::Stored(ids) => ids.visit_ids(unless_removed)?,
            SegmentIds::Numbered(first) => (0..entry.rows)
                .try_for_each(|row| unless_removed(row, &(first + row).to_string()))?,
        }
    }
    Ok(())
}
