//! Candidates of a search by containment: rows that share enough features with the query.
//!
//! The postings of a segment have the features of short documents only. The features of long ones are added in memory
//! when the index is opened, because only containment needs them: a query of any length may be contained in a
//! long document.
//!
//! Guarantee: every row whose containment reaches the threshold is found, because all features of the query
//! are counted.
//!
//! Cost: opening reads all records. Memory is 8 bytes for each feature of documents above [`MOST_INDEXED`]
//! features, unless it is limited and they go to a temporary file, and 4 for each row. A query takes as many steps as rows have its features.

use lookalike::similarity::{ComparedDocument, DocumentComparer, MOST_INDEXED, visit_feature_keys};
use lookalike_io::error::Result;

use crate::index::build_space::BuildSpace;
use crate::index::postings::{OpenedPostings, PostingList, pack_posting};
use crate::index::records::DocumentRecords;

/// Sizes of all documents of a segment and the features of its long ones, which its postings do not have.
pub(super) struct ContainmentPostings {
    /// Number of features of each row.
    sizes: Vec<u32>,
    /// Postings of the features of long documents.
    long: OpenedPostings,
}

/// Numbers of features that rows share with a query.
#[derive(Default)]
pub(super) struct SharedCounts {
    counts: Vec<u32>,
    /// Rows whose number is not 0.
    rows: Vec<u32>,
}

impl SharedCounts {
    /// Makes room for rows below `rows`. Others, which a damaged file may name, are not counted.
    fn resize_for(&mut self, rows: usize) {
        self.counts.resize(rows, 0);
    }

    fn count_row(&mut self, row: u32) {
        if let Some(count) = self.counts.get_mut(row as usize) {
            if *count == 0 {
                self.rows.push(row);
            }
            *count += 1;
        }
    }

    /// Calls `visit` with every counted row and its number, and sets all numbers to 0.
    fn drain_rows(&mut self, mut visit: impl FnMut(u32, usize)) {
        for row in self.rows.drain(..) {
            visit(row, std::mem::take(&mut self.counts[row as usize]) as usize);
        }
    }
}

impl ContainmentPostings {
    /// Reads the records of a segment.
    pub(super) fn read_records(records: &DocumentRecords, space: &BuildSpace) -> Result<Self> {
        let mut sizes = Vec::with_capacity(records.len() as usize);
        let mut postings = Vec::new();
        let long = OpenedPostings::sort_postings(space, |put| {
            sizes.clear();
            for row in 0..records.len() as u32 {
                postings.clear();
                let visit = &mut |key| postings.push(pack_posting(key, row));
                let size = visit_feature_keys(&records.record_of_row(row)?, visit)
                    .ok_or_else(|| records.invalid_record(row))?;
                if size > MOST_INDEXED {
                    postings.iter().for_each(|&posting| put(posting));
                }
                sizes.push(size as u32);
            }
            Ok(())
        })?;
        Ok(Self { sizes, long })
    }

    /// Bytes of memory that a search takes for the rows of the segment, beside what `threads` threads count.
    pub(super) fn row_bytes(&self, threads: usize) -> u64 {
        (size_of::<u32>() * self.sizes.len() * (1 + threads)) as u64
    }

    /// Appends the rows that share enough features with a query. `keys` is empty before and after.
    pub(super) fn find_rows(
        &self,
        comparer: &DocumentComparer,
        query: &ComparedDocument,
        postings: &PostingList,
        keys: &mut Vec<u64>,
        counts: &mut SharedCounts,
        rows: &mut Vec<u32>,
    ) -> Result<()> {
        comparer.feature_keys(query, keys);
        counts.resize_for(self.sizes.len());
        for key in keys.drain(..) {
            postings.visit_rows(postings.find_key(key)?, |row| counts.count_row(row))?;
            self.long.visit_rows(key, |row| counts.count_row(row))?;
        }
        counts.drain_rows(|row, shared| {
            if comparer.may_contain(query, shared, self.sizes[row as usize] as usize) {
                rows.push(row);
            }
        });
        Ok(())
    }
}
