//! Search of an index with a match plan. It finds every document that a run over the index and the
//! queries together would match with the query.
//!
//! The candidates of a query are the rows with the same text, the rows that have one of the query's
//! rarest features in the segment, and the rows that share a band of the plan. They are compared by
//! their records with the plan's measure and threshold. If the measure compares sequences, the records
//! rule out most candidates, and only the texts of the others are read. If the plan
//! joins by containment, the candidates are the rows that share enough features; see
//! [`containment`](super::containment).
//!
//! Cost: the buckets of bands are built when the index is opened, because they depend on the threshold.
//! They take 8 bytes for each band of each document that has a signature: of memory, or of a temporary file
//! if the memory is limited.

use std::ops::Range;
use std::path::Path;

use lookalike::plan::{MatchPlan, MatchSettings, SimilarityMeasure};
use lookalike::similarity::{ComparedDocument, DocumentComparer, Route};
use lookalike::text::{AnalysisScratch, TextAnalyzer};
use lookalike::{Recipe, Similarity};
use lookalike_io::error::{Error, Result, display_path};

use crate::index::build_space::BuildSpace;
use crate::index::containment::{ContainmentPostings, SharedCounts};
use crate::index::manifest::SegmentEntry;
use crate::index::postings::{OpenedPostings, PostingList, pack_posting};
use crate::index::records::{DocumentRecords, open_postings};
use crate::index::segments::StoredSegment;
use crate::index::texts::UnpackedFrame;

/// Finds the matches of queries in all segments.
pub(super) struct IndexMatcher {
    comparer: DocumentComparer,
    /// The plan with the Jaccard index in place of a measure of sequences. It rules out candidates by
    /// their records.
    by_features: Option<DocumentComparer>,
    analyzer: TextAnalyzer,
    segments: Vec<SegmentBuckets>,
}

/// The buckets of one segment.
struct SegmentBuckets {
    postings: PostingList,
    /// Postings of the bands.
    bands: OpenedPostings,
    /// Features of long documents, if the plan joins by containment.
    containment: Option<ContainmentPostings>,
}

/// Buffers that a thread reuses from query to query.
#[derive(Default)]
pub(super) struct MatchScratch {
    keys: Vec<u64>,
    buckets: Vec<Range<u64>>,
    rows: Vec<u32>,
    counts: SharedCounts,
    signature: Vec<u32>,
    stored: ComparedDocument,
    scratch: AnalysisScratch,
}

/// A segment during a search.
pub(super) struct SearchedSegment<'a> {
    pub(super) number: usize,
    pub(super) stored: &'a StoredSegment,
    pub(super) unpacked: &'a mut UnpackedFrame,
}

/// Returns the comparer of the records of rows, which hold features and weights. Sequences and forms are compared by the
/// texts afterwards.
fn comparer_of_records(recipe: &Recipe, plan: &MatchPlan) -> Result<DocumentComparer> {
    let recipe = recipe.clone().without_forms();
    let settings = match plan.sequence_measure() {
        Some(_) => MatchSettings {
            measure: SimilarityMeasure::Jaccard,
            threshold: plan.candidate_threshold(),
            ..*plan.match_settings()
        },
        None => *plan.match_settings(),
    };
    let plan = MatchPlan::new(&recipe, settings)?;
    Ok(DocumentComparer::new(&recipe, &plan))
}

impl IndexMatcher {
    /// Opens the buckets of all segments for a match plan. Buckets that must be built for it go where `space` says.
    pub(super) fn open_buckets<'a>(
        index_path: &Path,
        space: &BuildSpace,
        recipe: &Recipe,
        plan: &MatchPlan,
        segments: impl Iterator<Item = (&'a SegmentEntry, &'a StoredSegment)>,
    ) -> Result<Self> {
        let comparer = DocumentComparer::new(recipe, plan);
        let by_features = if comparer.needs_texts() {
            Some(comparer_of_records(recipe, plan)?)
        } else {
            None
        };
        let mut opened = Vec::new();
        for (entry, stored) in segments {
            let (Some(matching), Some(records)) = (&entry.matching, &stored.records) else {
                return Err(Error::input_error(format!(
                    "a segment of the index {} has no records: build the index again",
                    display_path(index_path)
                )));
            };
            if plan.compares_forms() && stored.texts.is_none() {
                return Err(Error::usage_error(format!(
                    "the recipe of the index {} has forms, which are compared by texts, and the index has no texts: \
                     build it with its texts, or with a recipe without forms",
                    display_path(index_path)
                )));
            }
            opened.push(SegmentBuckets {
                postings: open_postings(index_path, entry.file, matching.postings)?,
                bands: band_postings(records, &comparer, space)?,
                containment: if plan.joins_by_containment() {
                    Some(ContainmentPostings::read_records(records, space)?)
                } else {
                    None
                },
            });
        }
        let analyzer = TextAnalyzer::new(recipe).with_extras(comparer.required_extras());
        Ok(Self {
            comparer,
            by_features,
            analyzer,
            segments: opened,
        })
    }

    /// Bytes of memory that searches take for the rows of all segments.
    pub(super) fn row_bytes(&self, threads: usize) -> u64 {
        let segments = self.segments.iter();
        let containment = segments.filter_map(|segment| segment.containment.as_ref());
        containment
            .map(|postings| postings.row_bytes(threads))
            .sum()
    }

    /// Returns `true` if the measure compares sequences, so that queries need their own analysis.
    pub(super) fn needs_texts(&self) -> bool {
        self.comparer.needs_texts()
    }

    /// Returns the analyzer of queries.
    pub(super) fn query_analyzer(&self) -> &TextAnalyzer {
        &self.analyzer
    }

    /// Returns the comparer of queries.
    pub(super) fn query_comparer(&self) -> &DocumentComparer {
        &self.comparer
    }

    /// Calls `visit` with every row of a segment that matches the query, in ascending order, with the way in which it
    /// was found and the similarity.
    pub(super) fn find_matches(
        &self,
        query: &ComparedDocument,
        segment: SearchedSegment<'_>,
        scratch: &mut MatchScratch,
        mut visit: impl FnMut(u32, Route, Similarity),
    ) -> Result<()> {
        let SearchedSegment {
            number,
            stored,
            unpacked,
        } = segment;
        let Some(records) = &stored.records else {
            return Ok(());
        };
        self.find_candidates(query, &self.segments[number], scratch)?;
        let by_records = self.by_features.as_ref().unwrap_or(&self.comparer);
        let rows = std::mem::take(&mut scratch.rows);
        for &row in rows
            .iter()
            .filter(|&&row| !stored.removed.contains_row(row))
        {
            let is_signed = records.read_signature(row, &mut scratch.signature)?;
            let signature = is_signed.then_some(&scratch.signature[..]);
            by_records
                .restore_document(&records.record_of_row(row)?, signature, &mut scratch.stored)
                .ok_or_else(|| records.invalid_record(row))?;
            let mut similarity = by_records.compare_documents(query, &scratch.stored)?;
            if self.by_features.is_some()
                && similarity.is_some()
                && let Some(texts) = &stored.texts
            {
                let text = texts.text_of_row(row.into(), unpacked)?;
                let analysis = self.analyzer.analyze_text(text, &mut scratch.scratch);
                let document = self.comparer.prepare_document(&analysis);
                similarity = self.comparer.compare_documents(query, &document)?;
            }
            if let Some((route, similarity)) = similarity {
                visit(row, route, similarity);
            }
        }
        scratch.rows = rows;
        Ok(())
    }

    /// Compares a query with a row whose fingerprint differs in `distance` bits, by which the plan makes them
    /// candidates. Returns the way in which the row was found and the similarity if it matches.
    pub(super) fn verify_near_row(
        &self,
        query: &ComparedDocument,
        segment: SearchedSegment<'_>,
        row: u32,
        distance: u32,
        scratch: &mut MatchScratch,
    ) -> Result<Option<(Route, Similarity)>> {
        let SearchedSegment {
            stored, unpacked, ..
        } = segment;
        if self.needs_texts()
            && let Some(texts) = &stored.texts
        {
            let text = texts.text_of_row(row.into(), unpacked)?;
            let analysis = self.analyzer.analyze_text(text, &mut scratch.scratch);
            let document = self.comparer.prepare_document(&analysis);
            return Ok(self.comparer.compare_documents(query, &document)?);
        }
        let Some(records) = &stored.records else {
            return Ok(None);
        };
        self.comparer
            .restore_document(&records.record_of_row(row)?, None, &mut scratch.stored)
            .ok_or_else(|| records.invalid_record(row))?;
        let compared = self
            .comparer
            .compare_near_documents(query, &scratch.stored, distance)?;
        Ok(compared)
    }

    /// Collects the candidates of a query in ascending order.
    fn find_candidates(
        &self,
        query: &ComparedDocument,
        segment: &SegmentBuckets,
        scratch: &mut MatchScratch,
    ) -> Result<()> {
        let MatchScratch {
            keys,
            buckets,
            rows,
            counts,
            ..
        } = scratch;
        keys.clear();
        buckets.clear();
        rows.clear();
        let SegmentBuckets {
            postings,
            bands,
            containment,
        } = segment;
        let probed = match containment {
            Some(containment) => {
                containment.find_rows(&self.comparer, query, postings, keys, counts, rows)?;
                0
            }
            None => self.comparer.feature_keys(query, keys),
        };
        for &key in keys.iter() {
            buckets.push(postings.find_key(key)?);
        }
        buckets.sort_by_key(|bucket| bucket.end - bucket.start);
        buckets.truncate(probed);
        buckets.push(postings.find_key(self.comparer.text_key(query))?);
        for bucket in buckets.iter() {
            postings.visit_rows(bucket.clone(), |row| rows.push(row))?;
        }
        let mut read = Ok(());
        self.comparer.band_keys(query, &mut |key| {
            if read.is_ok() {
                read = bands.visit_rows(key, |row| rows.push(row));
            }
        });
        read?;
        rows.sort_unstable();
        rows.dedup();
        Ok(())
    }
}

/// Returns the postings of the bands of all signatures.
fn band_postings(
    records: &DocumentRecords,
    comparer: &DocumentComparer,
    space: &BuildSpace,
) -> Result<OpenedPostings> {
    if comparer.plan().band_plan().is_none() {
        return Ok(OpenedPostings::Memory(Vec::new()));
    }
    let slots = comparer.plan().signature_slots() as u64;
    if records.signature_slots().is_some_and(|own| own != slots) {
        return Err(records.invalid_record(0));
    }
    OpenedPostings::sort_postings(space, |put| {
        records.visit_signatures(|row, signature| {
            comparer.signature_keys(signature, &mut |key| put(pack_posting(key, row)));
        })
    })
}
