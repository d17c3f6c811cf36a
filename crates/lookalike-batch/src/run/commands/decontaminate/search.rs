//! The first reading: which documents may have which items, and the counts of the tokens of all documents.

use lookalike::contamination::{
    ContaminationIndex, CorpusTerms, CountedTerms, ItemSearcher, extend_to_blanks, extend_to_marks,
    extend_to_sentences,
};
use lookalike::passages::PlaceIndex;
use lookalike_io::error::Result;
use lookalike_io::sink::OutputRows;
use lookalike_io::source::{InputRow, ParseScratch, RowPlace};

use super::candidate_spool::{CandidateDocument, CandidateSpool, LocatedCandidate};
use super::stored_search::{StoredSearch, encode_block};
use crate::memory::contamination_plan::ContaminationShares;
use crate::run::reading::ordered_pipeline::process_blocks_in_order;
use crate::run::reading::reading_sink::BlockSource;
use crate::run::reading::rejected_rows::{CountedRows, OpenedRows};
use crate::run::reading::row_analysis::id_text;
use crate::run::reading::row_places::RowPlaces;

/// The rows of a corpus after the first reading. Memory: about four bytes for each row.
#[derive(Default)]
pub(super) struct CorpusPlaces {
    places: RowPlaces,
    /// Numbers of the rows that cannot be used, ascending.
    bad_numbers: Vec<u64>,
}

impl CorpusPlaces {
    /// Returns the number of usable rows.
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// Returns the place of a row, and its number over all inputs, from 1.
    pub(super) fn locate_row(&self, index: u64) -> (RowPlace, u64) {
        let rows = self.without(&[]);
        (
            rows.place_of(index as usize),
            rows.row_number(index as usize),
        )
    }

    /// Returns the rows with those that are removed, by their numbers, ascending.
    pub(super) fn without<'a>(&'a self, removed: &'a [u64]) -> RemainingRows<'a> {
        RemainingRows {
            rows: self,
            removed,
        }
    }
}

/// The rows of a corpus, of which some are removed.
pub(super) struct RemainingRows<'a> {
    rows: &'a CorpusPlaces,
    removed: &'a [u64],
}

impl OutputRows for RemainingRows<'_> {
    fn len(&self) -> usize {
        self.rows.places.len()
    }

    fn place_of(&self, index: usize) -> RowPlace {
        self.rows.places.place_of(index)
    }

    fn row_number(&self, index: usize) -> u64 {
        // Row `index` has as many bad rows before it as there are whose number is not larger than its own.
        let bad = &self.rows.bad_numbers;
        let (mut low, mut high) = (0, bad.len());
        while low < high {
            let middle = low.midpoint(high);
            if bad[middle] <= index as u64 + 1 + middle as u64 {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        index as u64 + 1 + low as u64
    }

    fn is_kept(&self, index: usize) -> bool {
        self.removed.binary_search(&(index as u64)).is_err()
    }
}

/// A corpus after the first reading.
pub(super) struct SearchedCorpus {
    pub(super) rows: CorpusPlaces,
    pub(super) candidates: CandidateSpool,
    pub(super) terms: CorpusTerms,
    pub(super) bytes: u64,
}

/// The result of a block.
pub(super) struct SearchedBlock {
    pub(super) read: CountedRows,
    pub(super) places: Vec<RowPlace>,
    /// The documents with candidates as bytes, numbered within the block.
    pub(super) documents: Vec<u8>,
    pub(super) terms: CountedTerms,
    /// The block as bytes for a later process, if the run can be interrupted and the block is not stored yet.
    pub(super) stored: Option<Vec<u8>>,
    /// Size of the block on disk.
    pub(super) bytes_on_disk: u64,
}

/// The state of a thread.
struct SearchWorker<'a> {
    parse: ParseScratch,
    searcher: ItemSearcher<'a>,
    number: String,
}

/// Searches all documents for items. `stored` has the results of an interrupted run.
///
/// # Errors
/// If an input, a temporary file or a stored block fails, if no row can be used, if the rows are too many for the memory,
/// and in a strict run if a row is bad.
pub(super) fn search_corpus(
    opened: &OpenedRows<'_>,
    index: &ContaminationIndex,
    stored: Option<&StoredSearch<'_>>,
    mut candidates: CandidateSpool,
    memory: ContaminationShares,
) -> Result<SearchedCorpus> {
    let inputs = &opened.inputs;
    let mut rows = CorpusPlaces::default();
    let mut terms = CorpusTerms::new(index);
    let mut bytes = 0;
    process_blocks_in_order(
        inputs,
        opened.progress,
        || SearchWorker {
            parse: ParseScratch::default(),
            searcher: ItemSearcher::new(index),
            number: String::new(),
        },
        &|| match stored {
            Some(stored) => inputs.next_block_unless_known(&|ordinal| stored.find_block(ordinal)),
            None => inputs.next_block(),
        },
        |block, worker, _| {
            let source = BlockSource { inputs, block };
            if let Some(stored) = stored {
                let restored = stored.restore_block(source, &mut worker.parse, index)?;
                if let Some(block) = restored {
                    return Ok(block);
                }
            }
            let mut searched = worker.search_block(source)?;
            searched.stored = stored.map(|_| encode_block(source, &searched));
            Ok(searched)
        },
        |block: SearchedBlock| {
            opened.report_rows(&block.read.bad, block.read.documents)?;
            if let Some(stored) = stored {
                stored.push_block(&block)?;
            }
            bytes += block.read.bytes;
            candidates.push_documents(&block.documents, rows.len() as u64)?;
            let places = block.places.iter();
            places.for_each(|&place| rows.places.push_place(place));
            memory.check_rows(rows.len(), rows.places.memory_bytes() as u64)?;
            let bad = block.read.bad.iter().map(|bad| bad.number);
            rows.bad_numbers.extend(bad);
            terms.add_counted(&block.terms);
            Ok(())
        },
    )?;
    if let Some(stored) = stored {
        stored.finish_steps()?;
    }
    opened.refuse_useless()?;
    rows.bad_numbers.sort_unstable();
    Ok(SearchedCorpus {
        rows,
        candidates,
        terms,
        bytes,
    })
}

impl SearchWorker<'_> {
    fn search_block(&mut self, source: BlockSource<'_>) -> Result<SearchedBlock> {
        let Self {
            parse,
            searcher,
            number,
        } = self;
        let mut searched = SearchedBlock {
            read: CountedRows::default(),
            places: Vec::new(),
            documents: Vec::new(),
            terms: CountedTerms::default(),
            stored: None,
            bytes_on_disk: source.block.bytes_on_disk(),
        };
        source.inputs.parse_block(source.block, parse, &mut |row| {
            if let Some(row) = searched.read.count_row(row) {
                let index = searched.places.len() as u64;
                if let Some(document) = search_row(&row, index, searcher, number)? {
                    document.append_bytes(&mut searched.documents);
                }
                searched.places.push(row.place);
            }
            Ok(())
        })?;
        searched.terms = searcher.take_counts();
        Ok(searched)
    }
}

/// Returns the document of a row if it has candidates.
fn search_row(
    row: &InputRow<'_>,
    index: u64,
    searcher: &mut ItemSearcher<'_>,
    number: &mut String,
) -> Result<Option<CandidateDocument>> {
    let candidates = locate_candidates(row.text, searcher)?;
    if candidates.is_empty() {
        return Ok(None);
    }
    Ok(Some(CandidateDocument {
        index,
        id: id_text(row, number).to_owned(),
        text_bytes: row.text.len() as u64,
        candidates,
    }))
}

/// Returns the candidates of a text with their places.
///
/// # Errors
/// If the text has 4 GiB or more.
pub(crate) fn locate_candidates(
    text: &str,
    searcher: &mut ItemSearcher<'_>,
) -> lookalike::Result<Vec<LocatedCandidate>> {
    let mut found = Vec::new();
    searcher.search_text(text, &mut found)?;
    if found.is_empty() {
        return Ok(Vec::new());
    }
    let places = PlaceIndex::new(text);
    let located = found.into_iter().map(|candidate| {
        let characters = [candidate.place.start, candidate.place.end]
            .map(|byte| places.count_characters(text, byte) as u64);
        let item = extend_to_marks(text, candidate.whole_place.clone());
        let sentences = extend_to_sentences(text, item.clone());
        let [passage, sentences] = [item, sentences].map(|range| extend_to_blanks(text, range));
        let to_u64 = |range: std::ops::Range<usize>| range.start as u64..range.end as u64;
        LocatedCandidate {
            characters: characters[0]..characters[1],
            passage: to_u64(passage),
            sentences: to_u64(sentences),
            candidate,
        }
    });
    Ok(located.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row_numbers_count_bad_rows() {
        let rows = CorpusPlaces {
            places: [RowPlace::new(0, 1); 6].into_iter().collect(),
            bad_numbers: vec![1, 2, 5, 9, 10, 11],
        };
        let remaining = rows.without(&[2, 4]);
        let numbers: Vec<u64> = (0..6).map(|index| remaining.row_number(index)).collect();
        assert_eq!(numbers, [3, 4, 6, 7, 8, 12]);
        let kept: Vec<bool> = (0..6).map(|index| remaining.is_kept(index)).collect();
        assert_eq!(kept, [true, true, false, true, false, true]);
    }
}
