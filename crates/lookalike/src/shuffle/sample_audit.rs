//! The audit of a run on many machines: every document is compared exactly with those of a sample that come
//! before it.
//!
//! 1. [`DocumentSampler`] selects the sampled documents of a portion. A number that follows from seed and id
//!    decides, so the sample is the same whatever the portions are.
//! 2. [`SampleAudit`] receives the whole sample and goes through a portion. It finds the documents that are
//!    similar to a sampled one before them by [`DrawnSample`], which no sketch, band or bucket takes part in,
//!    and determines for each whether the match plan makes the two candidates.
//!
//! Guarantee: of the similar documents of a sampled one, at most [`PARTNERS`] count, those with the smallest
//! numbers. A portion returns its own smallest ones, so the smallest of all portions are the same whatever
//! the portions are.
//!
//! **Cost.** Two readings of the data, and the time of [`DrawnSample`]. A task analyses all sampled documents
//! once and holds them with their features and sketches.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::{ShuffleDocument, ShuffleSetup};
use crate::dedup::{DocumentSource, MatchCorpus, route_between};
use crate::error::{Error, Result};
use crate::hash::value_hash;
use crate::quality::audit::{
    DrawnDocument, DrawnSample, DrawnText, PARTNERS, PartnerVisitor, SampleComparer, draw_number,
    similarity,
};
use crate::sketch::DocumentSketches;
use crate::text::{AnalysisScratch, TextAnalysis};
use crate::types::{DocId, Similarity};

/// Selects the documents of a sample.
pub struct DocumentSampler {
    setup: Arc<ShuffleSetup>,
    seed: u64,
    limit: u64,
}

/// A document that is sampled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SampledDocument {
    /// Number by which the document is sampled. The sample has the documents with the smallest numbers.
    pub number: u64,
    /// Id of the document.
    pub id: String,
    /// `true` if the document is known.
    pub is_known: bool,
    /// Partition, if documents match only within one.
    pub partition: u64,
    /// Position of the document in the total order.
    pub position: Vec<u8>,
    /// Text, or packed features.
    pub text: String,
}

impl DocumentSampler {
    /// Returns a sampler of the documents whose numbers are at most `limit`; see
    /// [`draw_limit`](crate::quality::audit::draw_limit).
    pub fn new(setup: Arc<ShuffleSetup>, seed: u64, limit: u64) -> Self {
        Self { setup, seed, limit }
    }

    /// Returns the number of a document, if that is within the limit.
    pub fn number_within_limit(&self, document: &ShuffleDocument<'_>) -> Option<u64> {
        let name = self.setup.mark_known_id(document);
        let number = draw_number(self.seed, name.as_bytes());
        (number <= self.limit).then_some(number)
    }

    /// Returns a document as one of the sample.
    pub fn sampled_document(&self, document: &ShuffleDocument<'_>, number: u64) -> SampledDocument {
        SampledDocument {
            number,
            id: document.id.to_owned(),
            is_known: document.is_known,
            partition: document.partition,
            position: self.setup.document_position(document),
            text: document.text.to_owned(),
        }
    }
}

/// A document that is similar to a sampled one before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SampledPartner {
    /// Index of the sampled document in the sample.
    pub sampled: u32,
    /// Number of the similar document. Of a sampled document, those with the smallest numbers count.
    pub number: u64,
    /// Id of the similar document.
    pub id: String,
    /// `true` if the similar document is known.
    pub is_known: bool,
    /// `true` if the match plan makes the two documents candidates.
    pub found: bool,
}

/// Compares documents with those of a sample that come before them.
pub struct SampleAudit {
    setup: Arc<ShuffleSetup>,
    /// The sampled documents by position.
    documents: Vec<RankedDocument>,
    sample: DrawnSample,
    comparer: SampleComparer,
    /// Ranks of the sampled documents with a text, by the first row of the text in the sample.
    of_text: HashMap<u64, Vec<u32>>,
    /// Sketches of the sampled documents, by rank.
    sketches: DocumentSketches,
    scratch: AnalysisScratch,
}

/// A sampled document, and the documents that are similar to it.
struct RankedDocument {
    /// Index in the sample as it was given.
    index: u32,
    is_known: bool,
    partition: u64,
    position: Vec<u8>,
    features: Box<[u64]>,
    /// Similar documents by number and marked id, at most [`PARTNERS`].
    partners: BTreeMap<(u64, String), SampledPartner>,
}

impl RankedDocument {
    /// Returns `true` if a document of this number would be among the similar ones that count.
    fn wants_partner(&self, number: u64) -> bool {
        let last = self.partners.last_key_value();
        self.partners.len() < PARTNERS || last.is_some_and(|((last, _), _)| number <= *last)
    }

    fn add_partner(&mut self, marked: String, partner: SampledPartner) {
        self.partners.insert((partner.number, marked), partner);
        if self.partners.len() > PARTNERS {
            self.partners.pop_last();
        }
    }
}

/// Returns the row in the sample of the document with this rank. Documents that are not sampled have the even
/// rows between these.
fn row_of_rank(rank: usize) -> u64 {
    2 * rank as u64 + 1
}

impl SampleAudit {
    /// Returns the audit of a sample.
    ///
    /// # Errors
    /// Fails if the measure does not compare sets of features.
    pub fn new(setup: Arc<ShuffleSetup>, sample: &[SampledDocument]) -> Result<Self> {
        let plan = setup.match_plan();
        let drawn = DrawnSample::new(plan, plan.threshold()).ok_or_else(|| {
            Error::setting_error(format!(
                "a sample compares sets of features, and {} compares texts: give another measure",
                plan.match_settings().measure.name()
            ))
        })?;
        let mut audit = Self {
            documents: Vec::with_capacity(sample.len()),
            comparer: drawn.new_comparer(),
            sample: drawn,
            of_text: HashMap::new(),
            sketches: setup.document_sketcher().new_sketches(0),
            scratch: AnalysisScratch::default(),
            setup,
        };
        let mut ranked: Vec<(u32, &SampledDocument)> = (0..).zip(sample).collect();
        ranked.sort_unstable_by(|a, b| a.1.position.cmp(&b.1.position));
        let mut first_rows = HashMap::new();
        for (index, document) in ranked {
            audit.add_sampled(index, document, &mut first_rows);
        }
        Ok(audit)
    }

    fn add_sampled(
        &mut self,
        index: u32,
        document: &SampledDocument,
        first_rows: &mut HashMap<u128, u64>,
    ) {
        let rank = self.documents.len();
        let row = row_of_rank(rank);
        let analysis = self.setup.analyze_text(&document.text, &mut self.scratch);
        self.setup
            .document_sketcher()
            .add_document(&analysis, &mut self.sketches);
        let first = *first_rows.entry(analysis.key).or_insert(row);
        self.of_text.entry(first).or_default().push(rank as u32);
        let mut features = Vec::new();
        analysis.append_features(&mut features);
        self.sample.add_document(row, DrawnDocument::new(&analysis));
        self.documents.push(RankedDocument {
            index,
            is_known: document.is_known,
            partition: document.partition,
            position: document.position.clone(),
            features: features.into(),
            partners: BTreeMap::new(),
        });
    }

    /// Compares a document with all sampled ones before it. Texts that are equal after normalisation do not
    /// count, nor do pairs of documents that are both known or of different partitions.
    ///
    /// # Errors
    /// Fails if packed features are damaged.
    pub fn compare_document(&mut self, document: &ShuffleDocument<'_>) -> Result<()> {
        self.setup.check_text(document.text)?;
        let mut scratch = std::mem::take(&mut self.scratch);
        let setup = self.setup.clone();
        let compared =
            self.compare_analysis(document, &setup.analyze_text(document.text, &mut scratch));
        self.scratch = scratch;
        compared
    }

    fn compare_analysis(
        &mut self,
        document: &ShuffleDocument<'_>,
        analysis: &TextAnalysis<'_>,
    ) -> Result<()> {
        let marked = self.setup.mark_known_id(document);
        let number = value_hash(marked.as_bytes());
        let row = self.row_of(document);
        let mut search = PartnerSearch {
            setup: &self.setup,
            documents: &self.documents,
            of_text: &self.of_text,
            document,
            row,
            number,
            ranks: Vec::new(),
        };
        self.sample
            .visit_similar_texts(row, analysis, &mut self.comparer, &mut search);
        let ranks = search.ranks;
        if ranks.is_empty() {
            return Ok(());
        }
        let found = self.find_candidates(&ranks, analysis)?;
        for (&rank, found) in ranks.iter().zip(found) {
            let sampled = &mut self.documents[rank as usize];
            let partner = SampledPartner {
                sampled: sampled.index,
                number,
                id: document.id.to_owned(),
                is_known: document.is_known,
                found,
            };
            sampled.add_partner(marked.clone().into_owned(), partner);
        }
        Ok(())
    }

    /// Returns the row of a document among those of the sample.
    fn row_of(&self, document: &ShuffleDocument<'_>) -> u64 {
        let position = self.setup.document_position(document);
        let rank = self
            .documents
            .partition_point(|sampled| sampled.position < position);
        let is_sampled = self
            .documents
            .get(rank)
            .is_some_and(|sampled| sampled.position == position);
        if is_sampled {
            row_of_rank(rank)
        } else {
            2 * rank as u64
        }
    }

    /// Returns for each of these sampled documents whether the match plan makes it and a later document
    /// candidates.
    fn find_candidates(&self, ranks: &[u32], analysis: &TextAnalysis<'_>) -> Result<Vec<bool>> {
        let sketcher = self.setup.document_sketcher();
        let mut texts = ComparedTexts {
            sketches: sketcher.new_sketches(0),
            features: Vec::new(),
        };
        for &rank in ranks {
            texts.sketches.append_document(&self.sketches, DocId(rank));
            let features = &self.documents[rank as usize].features;
            texts.features.push(features.to_vec());
        }
        sketcher.add_document(analysis, &mut texts.sketches);
        texts.features.push(Vec::new());
        if let Some(own) = texts.features.last_mut() {
            analysis.append_features(own);
        }
        texts.candidates_of_last(&self.setup)
    }

    /// Returns the similar documents of the sampled ones, in the order of the sample and of their numbers.
    pub fn into_partners(self) -> Vec<SampledPartner> {
        let of_documents = self.documents.into_iter().map(|document| document.partners);
        let mut all: Vec<_> = of_documents.flat_map(BTreeMap::into_values).collect();
        all.sort_by_key(|partner| partner.sampled);
        all
    }

    /// Returns the length of every sampled document in tokens, in the order of the sample.
    pub fn token_counts(&self) -> Vec<usize> {
        let mut counts = vec![0; self.documents.len()];
        for (rank, document) in self.documents.iter().enumerate() {
            counts[document.index as usize] = self.sample.token_count(row_of_rank(rank));
        }
        counts
    }

    /// Returns the approximate number of bytes that the sample takes in a task.
    pub fn memory_bytes(&self) -> u64 {
        let features = |document: &RankedDocument| 8 * document.features.len() as u64;
        self.sample.memory_bytes() as u64
            + self.documents.iter().map(features).sum::<u64>()
            + self.sketches.memory_bytes()
    }
}

/// The search for the sampled documents that are similar to a document and count it among their partners.
struct PartnerSearch<'a, 'd> {
    setup: &'a ShuffleSetup,
    documents: &'a [RankedDocument],
    of_text: &'a HashMap<u64, Vec<u32>>,
    document: &'a ShuffleDocument<'d>,
    row: u64,
    number: u64,
    /// Ranks of the documents found.
    ranks: Vec<u32>,
}

impl PartnerSearch<'_, '_> {
    /// Returns the ranks of the sampled documents with a text that count the document.
    fn wanting_ranks(&self, text: &DrawnText) -> impl Iterator<Item = u32> {
        let of_text = self.of_text.get(&text.first_row());
        let ranks = of_text.map_or(&[][..], Vec::as_slice).iter().copied();
        ranks.filter(|&rank| {
            let sampled = &self.documents[rank as usize];
            row_of_rank(rank as usize) < self.row
                && self.can_pair(sampled)
                && sampled.wants_partner(self.number)
        })
    }

    fn can_pair(&self, sampled: &RankedDocument) -> bool {
        let bounds = self.setup.bounds;
        let both_known = bounds.against && sampled.is_known && self.document.is_known;
        !both_known && (!bounds.within || sampled.partition == self.document.partition)
    }
}

impl PartnerVisitor for PartnerSearch<'_, '_> {
    fn wants_text(&self, text: &DrawnText) -> bool {
        self.wanting_ranks(text).next().is_some()
    }

    fn visit_text(&mut self, text: &DrawnText, similarity: Similarity) {
        let threshold = self.setup.match_plan().threshold();
        if threshold.admits_similarity(similarity) {
            let ranks: Vec<u32> = self.wanting_ranks(text).collect();
            self.ranks.extend(ranks);
        }
    }
}

/// Some texts with their sketches and features, in their total order.
struct ComparedTexts {
    sketches: DocumentSketches,
    features: Vec<Vec<u64>>,
}

impl ComparedTexts {
    /// Returns for each text but the last whether the match plan makes it and the last one candidates.
    fn candidates_of_last(&self, setup: &ShuffleSetup) -> Result<Vec<bool>> {
        let corpus = MatchCorpus::new(setup.match_plan(), &self.sketches, self);
        let last = self.features.len() as u32 - 1;
        (0..last)
            .map(|at| Ok(route_between(&corpus, DocId(at), DocId(last))?.is_some()))
            .collect()
    }
}

impl DocumentSource for ComparedTexts {
    fn append_features(&self, document: DocId, into: &mut Vec<u64>) -> Result<()> {
        into.extend_from_slice(&self.features[document.index()]);
        Ok(())
    }
}

/// The exact comparison of a reported pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExactComparison {
    /// `true` if the texts are equal after normalisation, or at or above the threshold.
    pub matches: bool,
    /// Length of the first text in tokens.
    pub tokens: usize,
}

impl ShuffleSetup {
    /// Compares two texts, or packed features, by the exact measure.
    ///
    /// # Errors
    /// Fails if packed features are damaged.
    pub fn compare_exactly(
        &self,
        first: &str,
        second: &str,
        scratch: &mut AnalysisScratch,
    ) -> Result<ExactComparison> {
        let mut analyze = |text: &str| {
            self.check_text(text)?;
            let analysis = self.analyze_text(text, scratch);
            let mut features = Vec::new();
            analysis.append_features(&mut features);
            Ok::<_, Error>((analysis.key, features, analysis.token_values().len()))
        };
        let (first_key, first_features, tokens) = analyze(first)?;
        let (second_key, second_features, _) = analyze(second)?;
        Ok(ExactComparison {
            matches: first_key == second_key
                || similarity(&self.plan, &first_features, &second_features).is_some(),
            tokens,
        })
    }

    /// Returns `true` if texts are packed features.
    pub fn has_given_features(&self) -> bool {
        self.bounds.features
    }
}
