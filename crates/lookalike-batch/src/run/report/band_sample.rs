//! A sample of the pairs of a run from each band of similarity, with their texts, so that a person can choose a
//! threshold by eye.
//!
//! The bands are the bins of [`SimilarityHistogram`]. A pair has the hash of the numbers of its two documents, and a
//! band's sample has the pairs with the smallest hashes. So the sample depends on the inputs and their order alone, not
//! on the number of threads. Documents that are appended to the inputs change little of it.

use std::collections::BTreeMap;

use lookalike::dedup::MatchingPair;
use lookalike::{DocId, value_hash};
use lookalike_io::error::{Error, Result};
use lookalike_io::source::ParseScratch;
use serde::Serialize;

use crate::run::reading::corpus_rows::CorpusRows;
use crate::run::report::similarity_histogram::SimilarityHistogram;

/// Longest text of a sampled document, in characters. A longer one is cut after these.
const SHOWN_CHARACTERS: usize = 20_000;

/// The pairs of a run whose similarities are in one band, and a sample of them.
#[derive(Debug, Clone, Serialize)]
pub struct SimilarityBand {
    /// Least similarity of the band.
    pub from: f64,
    /// Upper edge, which is outside the band; `None` for the band of exactly 1.
    pub below: Option<f64>,
    /// Number of pairs in the band.
    pub pairs: u64,
    /// Sampled pairs, most similar first.
    pub sampled: Vec<SampledPair>,
}

/// A sampled pair, the earlier document first.
#[derive(Debug, Clone, Serialize)]
pub struct SampledPair {
    /// Similarity of the two documents.
    pub similarity: f64,
    /// The earlier document.
    pub a: BandDocument,
    /// The later document.
    pub b: BandDocument,
}

/// A document of a sampled pair.
#[derive(Debug, Clone, Serialize)]
pub struct BandDocument {
    /// Its id.
    pub id: String,
    /// Name of its input.
    pub source: String,
    /// Number of its row in the input, from 1.
    pub row: u64,
    /// Its text, or the first 20,000 characters of it.
    pub text: String,
}

/// Returns a hash of the numbers of the two documents of a pair. The pairs with the smallest hashes are a sample that
/// depends on the inputs and their order alone.
pub(in crate::run) fn hash_pair(pair: &MatchingPair) -> u64 {
    let mut numbers = [0; 8];
    numbers[..4].copy_from_slice(&pair.a.0.to_le_bytes());
    numbers[4..].copy_from_slice(&pair.b.0.to_le_bytes());
    value_hash(&numbers)
}

/// Draws the sample while pairs are found.
pub(in crate::run) struct PairSampler {
    /// Pairs that a band's sample has at most.
    size: usize,
    /// For each bin of the histogram, the pairs with the smallest hashes so far.
    drawn: Vec<BTreeMap<(u64, DocId, DocId), MatchingPair>>,
}

impl PairSampler {
    /// Creates a sampler of up to `size` pairs from each band.
    pub(in crate::run) fn new(size: usize) -> Self {
        Self {
            size,
            drawn: vec![BTreeMap::new(); SimilarityHistogram::INTERVAL_COUNT + 1],
        }
    }

    /// Offers a pair of the run, each once.
    pub(in crate::run) fn offer_pair(&mut self, pair: MatchingPair) {
        let drawn = &mut self.drawn[SimilarityHistogram::bin_of(pair.similarity)];
        drawn.insert((hash_pair(&pair), pair.a, pair.b), pair);
        if drawn.len() > self.size {
            drawn.pop_last();
        }
    }

    /// Reads the texts of the sampled pairs again, and returns all bands from the threshold on.
    ///
    /// # Errors
    /// If a row cannot be read again, or has features instead of a text.
    pub(in crate::run) fn describe_bands(
        self,
        histogram: &SimilarityHistogram,
        threshold: f64,
        rows: &CorpusRows<'_>,
    ) -> Result<Vec<SimilarityBand>> {
        let first = histogram.first_shown_bin(threshold);
        let mut parse = ParseScratch::default();
        let mut bands = Vec::new();
        for (bin, drawn) in self.drawn.into_iter().enumerate().skip(first) {
            let mut pairs: Vec<_> = drawn.into_values().collect();
            pairs.sort_by(|one, other| {
                let by_similarity = other.similarity.get().total_cmp(&one.similarity.get());
                by_similarity.then((one.a, one.b).cmp(&(other.a, other.b)))
            });
            let sampled = pairs.into_iter().map(|pair| {
                Ok(SampledPair {
                    similarity: pair.similarity.get(),
                    a: BandDocument::read(pair.a, rows, &mut parse)?,
                    b: BandDocument::read(pair.b, rows, &mut parse)?,
                })
            });
            let (from, below) = SimilarityHistogram::bin_edges(bin);
            bands.push(SimilarityBand {
                from,
                below,
                pairs: histogram.bin_counts()[bin],
                sampled: sampled.collect::<Result<_>>()?,
            });
        }
        Ok(bands)
    }
}

impl BandDocument {
    fn read(document: DocId, rows: &CorpusRows<'_>, parse: &mut ParseScratch) -> Result<Self> {
        let (source, row) = rows.source_and_row(document);
        let text = rows.reread_text(document, parse)?.ok_or_else(|| {
            Error::usage_error(format!(
                "row {row}, in {source}: a sample of pairs shows texts, and this row has features instead: \
                 leave out --features or --sample-by-similarity"
            ))
        })?;
        let end = text.char_indices().nth(SHOWN_CHARACTERS);
        let text = end.map_or(&text[..], |(end, _)| &text[..end]);
        Ok(Self {
            id: rows.document_id(document)?.into_owned(),
            source: source.to_owned(),
            row,
            text: text.to_owned(),
        })
    }
}
