//! A bounded sample of the documents of a corpus, to try settings on.

use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicU64, Ordering};

/// The most documents of a sample.
const MOST_DOCUMENTS: usize = 10_000;

/// The most bytes of their texts.
const MOST_BYTES: usize = 32 << 20;

/// Documents of a corpus: all, or those with the smallest hashes of their row numbers.
#[derive(Debug, Clone, Default)]
pub struct CorpusSample {
    /// The texts in the order of the rows.
    pub texts: Vec<String>,
    /// Documents of the corpus.
    pub documents: u64,
}

/// Draws a [`CorpusSample`], which does not depend on the number of threads.
#[derive(Debug)]
pub(in crate::run) struct CorpusSampler {
    /// Rows with this hash or a larger one are not in the sample.
    cut: AtomicU64,
}

/// The documents drawn so far.
#[derive(Debug, Default)]
pub(in crate::run) struct DrawnDocuments {
    /// Hash and number of the row, and the text; the largest hash on top.
    drawn: BinaryHeap<(u64, u64, String)>,
    bytes: usize,
    documents: u64,
}

impl CorpusSampler {
    pub(in crate::run) fn new() -> Self {
        Self {
            cut: AtomicU64::new(u64::MAX),
        }
    }

    /// Returns `false` if a row is certainly not in the sample.
    pub(in crate::run) fn may_draw(&self, row: u64) -> bool {
        hash_of(row) < self.cut.load(Ordering::Relaxed)
    }

    /// Counts a row, and takes its text if it is still in the sample.
    pub(in crate::run) fn offer_row(
        &self,
        row: u64,
        text: Option<String>,
        drawn: &mut DrawnDocuments,
    ) {
        drawn.documents += 1;
        let Some(text) = text.filter(|_| self.may_draw(row)) else {
            return;
        };
        drawn.bytes += text.len();
        drawn.drawn.push((hash_of(row), row, text));
        while drawn.drawn.len() > 1
            && (drawn.drawn.len() > MOST_DOCUMENTS || drawn.bytes > MOST_BYTES)
        {
            if let Some((hash, _, text)) = drawn.drawn.pop() {
                drawn.bytes -= text.len();
                self.cut.store(hash, Ordering::Relaxed);
            }
        }
    }
}

fn hash_of(row: u64) -> u64 {
    lookalike::value_hash(&row.to_le_bytes())
}

impl DrawnDocuments {
    pub(in crate::run) fn finish(self) -> CorpusSample {
        let mut drawn = self.drawn.into_vec();
        drawn.sort_unstable_by_key(|&(_, row, _)| row);
        CorpusSample {
            texts: drawn.into_iter().map(|(.., text)| text).collect(),
            documents: self.documents,
        }
    }
}

impl CorpusSample {
    /// A sample of texts that are all there is.
    pub(in crate::run) fn of_texts(texts: &[String]) -> Self {
        let sampler = CorpusSampler::new();
        let mut drawn = DrawnDocuments::default();
        for (row, text) in (1..).zip(texts) {
            let text = sampler.may_draw(row).then(|| text.clone());
            sampler.offer_row(row, text, &mut drawn);
        }
        drawn.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sample_has_document_and_byte_limits() {
        let small: Vec<String> = (0..100).map(|at| format!("text {at}")).collect();
        let sample = CorpusSample::of_texts(&small);
        assert_eq!((sample.texts, sample.documents), (small, 100));
        let many = vec!["x".to_owned(); MOST_DOCUMENTS + 500];
        let sample = CorpusSample::of_texts(&many);
        assert_eq!(sample.texts.len(), MOST_DOCUMENTS);
        assert_eq!(sample.documents, MOST_DOCUMENTS as u64 + 500);
        let large: Vec<String> = (0..9).map(|_| "x".repeat(MOST_BYTES / 4)).collect();
        assert_eq!(CorpusSample::of_texts(&large).texts.len(), 4);
        assert_eq!(
            CorpusSample::of_texts(&["x".repeat(2 * MOST_BYTES)])
                .texts
                .len(),
            1
        );
    }
}
