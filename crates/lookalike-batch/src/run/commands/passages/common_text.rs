//! Text that stands in more than half of all documents, which is a question or a form more often than a copy.
//!
//! Passages are collected by the source in which they lie. A stretch of a source that passages of more than half of the
//! documents cover is common text.
//!
//! Memory: 20 bytes for each passage, of at most [`MAX_PLACES`] of them. A run with more has no hint.

use std::ops::Range;

use lookalike::DocId;
use lookalike::text::SpannedTokens;
use lookalike_io::error::Result;
use lookalike_io::source::ParseScratch;

use crate::run::commands::passages::corpus::PassageCorpus;
use crate::run::commands::passages::search::{PassageRow, cut_text};
use crate::run::commands::passages::settings::{CommonPassage, PassageRunSettings};

/// Passages that are collected.
const MAX_PLACES: usize = 2_000_000;

/// Fewest documents of which "more than half" says something: two documents that share text are a finding.
const MIN_DOCUMENTS: usize = 3;

/// The place of a passage in its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct SourcePlace {
    source: u32,
    document: u32,
    start: u32,
    end: u32,
}

/// A stretch of a source, and the number of other documents that have all of it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct CommonStretch {
    source: DocId,
    bytes: Range<usize>,
    documents: usize,
}

/// Collects the places of passages.
#[derive(Debug, Default)]
pub(super) struct SourcePlaces {
    places: Vec<SourcePlace>,
    is_incomplete: bool,
}

impl SourcePlaces {
    /// Adds the passages of a document.
    pub(super) fn add_rows(&mut self, rows: &[PassageRow]) {
        if self.places.len() + rows.len() > MAX_PLACES {
            self.is_incomplete = true;
            return;
        }
        let narrow = |bytes: &Range<usize>| -> Option<[u32; 2]> {
            Some([bytes.start.try_into().ok()?, bytes.end.try_into().ok()?])
        };
        self.places.extend(rows.iter().filter_map(|row| {
            let [start, end] = narrow(&row.bytes[1])?;
            Some(SourcePlace {
                source: row.source.0,
                document: row.document.0,
                start,
                end,
            })
        }));
    }

    /// Returns the longest text that more than half of all documents have; `None` if there is none as long as a passage.
    ///
    /// # Errors
    /// If its source cannot be read again.
    pub(super) fn find_common(
        mut self,
        corpus: &PassageCorpus<'_>,
        settings: &PassageRunSettings,
    ) -> Result<Option<CommonPassage>> {
        if self.is_incomplete {
            return Ok(None);
        }
        // A source among the documents has the text itself.
        let own = usize::from(corpus.count_others() == 0);
        let all = corpus.rows.documents.len();
        let least = (all / 2 + 1).max(MIN_DOCUMENTS) - own;
        self.places.sort_unstable();
        let by_source = self.places.chunk_by(|a, b| a.source == b.source);
        let longest = by_source
            .filter_map(|places| find_longest(places, least))
            .reduce(|best, next| {
                if next.bytes.len() > best.bytes.len() {
                    next
                } else {
                    best
                }
            });
        let Some(stretch) = longest else {
            return Ok(None);
        };
        let (mut parse, mut tokens) = (ParseScratch::default(), SpannedTokens::default());
        let source = corpus.reread_source(stretch.source, &mut parse, &mut tokens)?;
        let text = source.text().get(stretch.bytes).unwrap_or_default().trim();
        let characters = text.chars().count();
        let is_long = characters >= 2 * settings.passages.min_words() as usize;
        Ok(is_long.then(|| CommonPassage {
            text: cut_text(text, settings.common_characters),
            characters,
            documents: (stretch.documents + own) as u64,
        }))
    }
}

/// Returns the longest stretch of a source that at least `least` documents have; the first of equally long ones. The
/// places are those of one source, ascending.
fn find_longest(places: &[SourcePlace], least: usize) -> Option<CommonStretch> {
    if places.len() < least {
        return None;
    }
    // Starts and ends of what each document has of the source, each byte once.
    let mut ends: Vec<(u32, i32)> = Vec::new();
    for of_document in places.chunk_by(|a, b| a.document == b.document) {
        let mut open = of_document[0];
        for place in &of_document[1..] {
            if place.start <= open.end {
                open.end = open.end.max(place.end);
            } else {
                ends.extend([(open.start, 1), (open.end, -1)]);
                open = *place;
            }
        }
        ends.extend([(open.start, 1), (open.end, -1)]);
    }
    ends.sort_unstable();
    let mut best: Option<CommonStretch> = None;
    let (mut covering, mut start, mut fewest) = (0usize, None, usize::MAX);
    for at in ends.chunk_by(|a, b| a.0 == b.0) {
        let change: i32 = at.iter().map(|end| end.1).sum();
        covering = covering.saturating_add_signed(change as isize);
        let byte = at[0].0 as usize;
        if covering >= least {
            start.get_or_insert(byte);
            fewest = fewest.min(covering);
        } else if let Some(start) = start.take() {
            let bytes = start..byte;
            if best
                .as_ref()
                .is_none_or(|best| bytes.len() > best.bytes.len())
            {
                best = Some(CommonStretch {
                    source: DocId(places[0].source),
                    bytes,
                    documents: fewest,
                });
            }
            fewest = usize::MAX;
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn longest_stretch_equals_a_scan(
            mut raw in proptest::collection::vec((0..6u32, 0..40u32, 1..12u32), 0..20),
            least in 1..5usize,
        ) {
            raw.sort_unstable();
            let places: Vec<SourcePlace> = raw
                .iter()
                .map(|&(document, start, length)| SourcePlace { source: 9, document, start, end: start + length })
                .collect();
            let covering = |byte: u32| {
                let having = places.iter().filter(|place| (place.start..place.end).contains(&byte));
                let documents: std::collections::BTreeSet<u32> = having.map(|place| place.document).collect();
                documents.len()
            };
            let counts: Vec<usize> = (0..60).map(covering).collect();
            let mut expected: Option<(Range<usize>, usize)> = None;
            for start in 0..60 {
                for end in start + 1..=60 {
                    let fewest = *counts[start..end].iter().min().unwrap();
                    let is_longer = expected.as_ref().is_none_or(|best| end - start > best.0.len());
                    if fewest >= least && is_longer {
                        expected = Some((start..end, fewest));
                    }
                }
            }
            let found = find_longest(&places, least).map(|found| (found.bytes, found.documents));
            prop_assert_eq!(found, expected);
        }
    }
}
