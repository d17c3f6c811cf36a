//! The sample of drawn documents, in an inverted index by their features.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};

use super::drawn_index::{BinnedText, DocumentProbe, DrawnTextIndex, KeyHits, LookupRule};
use crate::arch::{Arch, Cpu, Kernel};
use crate::hash::mix_bits;
use crate::plan::MatchPlan;
use crate::similarity::{SetMeasure, intersection};
use crate::text::{TextAnalysis, TextState};
use crate::types::{Similarity, Threshold};

/// Drawn documents with which all later ones are compared.
///
/// A document with a Jaccard index of at least t with a drawn one lacks at most l = n − ⌈t·n⌉ of the n
/// features of the drawn one. So it has at least k of any l + k of them. The l + k features that are
/// rarest in the sample are indexed, where k is a twelfth of n. A long drawn document, of some hundreds
/// of features, is indexed by the smallest hashes in its bins instead. Of these, a document at t lacks
/// no more than Chernoff's bound, with a probability of 1 − 10⁻⁶.
///
/// So a document costs one step for each of its features, and one look-up for each bin. It is compared
/// feature by feature only with drawn documents of which it has enough index keys and, if they are
/// long, enough of the bytes of 256 bins.
///
/// Drawn documents with equal texts are one. For each, up to [`PARTNERS`] similar documents are stored:
/// those with the smallest hash numbers, which are a sample that does not depend on the order in which
/// documents come.
#[derive(Debug)]
pub struct DrawnSample {
    measure: SetMeasure,
    floor: Threshold,
    rule: LookupRule,
    texts: Vec<DrawnText>,
    /// Texts of the drawn documents, by their keys.
    by_key: HashMap<u128, u32>,
    by_row: BTreeMap<u64, u32>,
    index: DrawnTextIndex,
    /// Number of texts of which no document is drawn any more.
    dead: usize,
}

/// Numbers of texts at which the index is rebuilt, if they are powers of two.
const REBUILD_SIZES: std::ops::RangeInclusive<usize> = 16..=256;

/// Largest number of similar documents stored for a drawn one.
pub const PARTNERS: usize = 16;

/// A document in the form in which a sample stores it, made before it is known whether it is drawn.
#[derive(Clone, Debug)]
pub struct DrawnDocument {
    key: u128,
    features: Box<[u64]>,
    length: u32,
}

impl DrawnDocument {
    /// Takes what a sample needs from the analysis of a document.
    pub fn new(analysis: &TextAnalysis<'_>) -> Self {
        let mut features = Vec::new();
        if analysis.state == TextState::Fingerprintable {
            analysis.append_features(&mut features);
        }
        Self {
            key: analysis.key,
            features: features.into(),
            length: u32::try_from(analysis.token_values().len()).unwrap_or(u32::MAX),
        }
    }
}

/// A drawn text.
#[derive(Debug)]
pub(crate) struct DrawnText {
    drawn: DrawnDocument,
    /// Tags of the bins, for a long text.
    binned: Option<BinnedText>,
    /// First drawn row with the text. Only later rows are its partners.
    first: u64,
    /// Number of drawn rows with the text.
    rows: usize,
    partners: Mutex<SimilarPartners>,
}

/// Similar documents by hash number, each with its row and similarity.
#[derive(Debug, Default)]
struct SimilarPartners {
    smallest: BTreeMap<u64, (u64, Similarity)>,
}

/// A document that is similar to a drawn one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SimilarPartner {
    /// Row of the document.
    pub row: u64,
    /// Similarity of the two documents.
    pub similarity: Similarity,
}

/// The receiver of the drawn texts that are similar to a document.
pub(crate) trait PartnerVisitor {
    /// Returns `false` if the similarity with a text is not needed, so that it is not computed.
    fn wants_text(&self, text: &DrawnText) -> bool;

    /// Takes a text that is similar to the document.
    fn visit_text(&mut self, text: &DrawnText, similarity: Similarity);
}

/// A document that becomes a partner of the drawn texts that it is similar to.
struct NewPartner {
    row: u64,
    number: u64,
}

impl PartnerVisitor for NewPartner {
    fn wants_text(&self, text: &DrawnText) -> bool {
        text.wants_partner(self.number)
    }

    fn visit_text(&mut self, text: &DrawnText, similarity: Similarity) {
        let row = self.row;
        text.add_partner(self.number, SimilarPartner { row, similarity });
    }
}

/// Buffers for the comparison of documents, one for each thread.
#[derive(Clone, Debug)]
pub struct SampleComparer {
    cpu: Cpu,
    rule: LookupRule,
    hits: KeyHits,
    probe: DocumentProbe,
    features: Vec<u64>,
}

impl SampleComparer {
    /// Starts with a document. All its features must be [seen](Self::add_features) before it is
    /// [compared](DrawnSample::compare_seen), so they can come from a caller that makes them anyway.
    pub fn begin_document(&mut self, analysis: &TextAnalysis<'_>) {
        self.probe
            .begin_document(self.rule, analysis.feature_count());
    }

    /// Adds features of the current document. All must be added, in any order and in any batches;
    /// repetitions do no harm.
    pub fn add_features(&mut self, features: &[u64]) {
        self.probe.add_features(features);
    }

    fn add_all_features(&mut self, analysis: &TextAnalysis<'_>) {
        struct AllFeaturesKernel<'a, 'd>(&'a mut SampleComparer, &'a TextAnalysis<'d>);

        impl Kernel for AllFeaturesKernel<'_, '_> {
            type Output = ();

            #[inline(always)]
            fn run<A: Arch>(self, _: A) {
                self.1
                    .visit_chunks(|features| self.0.probe.add_features(features));
            }
        }

        self.cpu.run(AllFeaturesKernel(self, analysis));
    }
}

impl DrawnSample {
    /// Returns an empty sample that detects similarities from `floor` up, by the measure of a plan.
    /// Returns `None` if the measure does not compare sets of features.
    pub fn new(plan: &MatchPlan, floor: Threshold) -> Option<Self> {
        let measure = plan.match_settings().measure.set_measure()?;
        if !measure.bounds_jaccard() && !plan.has_candidate_threshold() {
            return None;
        }
        // Other measures, such as containment, are searched for down to a lower Jaccard index.
        let lowered = floor.get().min(plan.candidate_threshold().get());
        let floor = if measure == SetMeasure::Jaccard {
            floor
        } else {
            Threshold::new(lowered).ok()?
        };
        Some(Self {
            measure,
            floor,
            texts: Vec::new(),
            by_key: HashMap::new(),
            by_row: BTreeMap::new(),
            rule: LookupRule::new(floor),
            index: DrawnTextIndex::new(LookupRule::new(floor)),
            dead: 0,
        })
    }

    /// Returns the number of drawn documents.
    pub fn len(&self) -> usize {
        self.by_row.len()
    }

    /// Returns `true` if no document is drawn.
    pub fn is_empty(&self) -> bool {
        self.by_row.is_empty()
    }

    /// Returns the drawn rows, ascending.
    pub fn drawn_rows(&self) -> impl Iterator<Item = u64> {
        self.by_row.keys().copied()
    }

    /// Returns the approximate number of bytes that the sample takes.
    pub fn memory_bytes(&self) -> usize {
        let of_text = |text: &DrawnText| 8 * text.drawn.features.len() + size_of::<DrawnText>();
        let texts: usize = self.texts.iter().map(of_text).sum();
        texts + self.index.memory_bytes() + 64 * self.by_row.len()
    }

    /// Adds a document. Its row must be after all rows added before. A document without features can be
    /// drawn, but it has no partners, because only equal texts are similar to it.
    pub fn add_document(&mut self, row: u64, drawn: DrawnDocument) {
        if let Some(&at) = self.by_key.get(&drawn.key) {
            self.texts[at as usize].rows += 1;
            self.by_row.insert(row, at);
            return;
        }
        let at = self.texts.len() as u32;
        self.index.count_features(&drawn.features);
        let binned = self.index.insert_text(&drawn.features);
        self.by_key.insert(drawn.key, at);
        self.by_row.insert(row, at);
        self.texts.push(DrawnText {
            drawn,
            binned,
            first: row,
            rows: 1,
            partners: Mutex::default(),
        });
        // Rebuilt early, because the first texts were indexed before it was known which features are
        // rare.
        if self.texts.len().is_power_of_two() && REBUILD_SIZES.contains(&self.texts.len()) {
            self.rebuild_index();
        }
    }

    /// Removes a row.
    pub fn remove_row(&mut self, row: u64) {
        let Some(at) = self.by_row.remove(&row) else {
            return;
        };
        let text = &mut self.texts[at as usize];
        text.rows -= 1;
        if text.rows == 0 {
            self.by_key.remove(&text.drawn.key);
            text.drawn.features = Box::default();
            text.binned = None;
            self.index.forget_text(at);
            self.dead += 1;
            if 2 * self.dead > self.texts.len() {
                self.rebuild_index();
            }
        }
    }

    /// Rebuilds the index without removed texts, and with the features that are rare now.
    fn rebuild_index(&mut self) {
        let mut moved = vec![0; self.texts.len()];
        let mut index = self.index.empty_with_frequencies();
        let texts = std::mem::take(&mut self.texts);
        for (from, mut text) in texts.into_iter().enumerate() {
            if text.rows == 0 {
                continue;
            }
            let at = self.texts.len() as u32;
            text.binned = index.insert_text(&text.drawn.features);
            moved[from] = at;
            self.texts.push(text);
        }
        let places = self.by_key.values_mut().chain(self.by_row.values_mut());
        places.for_each(|at| *at = moved[*at as usize]);
        self.index = index;
        self.dead = 0;
    }

    /// Returns the buffers that a thread needs for comparisons. They remain valid when documents are
    /// added.
    pub fn new_comparer(&self) -> SampleComparer {
        SampleComparer {
            cpu: Cpu::detect_best(),
            rule: self.rule,
            hits: KeyHits::default(),
            probe: DocumentProbe::default(),
            features: Vec::new(),
        }
    }

    /// Compares a document with all drawn ones before it.
    pub fn compare_document(
        &self,
        row: u64,
        analysis: &TextAnalysis<'_>,
        counter: &mut SampleComparer,
    ) {
        counter.begin_document(analysis);
        counter.add_all_features(analysis);
        self.compare_seen(row, analysis, counter);
    }

    /// Compares a document, whose features were seen, with all drawn ones before it. Documents may have
    /// been drawn since [`SampleComparer::begin_document`].
    pub fn compare_seen(
        &self,
        row: u64,
        analysis: &TextAnalysis<'_>,
        counter: &mut SampleComparer,
    ) {
        let number = mix_bits(row ^ PARTNER_DOMAIN);
        self.visit_seen(row, analysis, counter, &mut NewPartner { row, number });
    }

    /// Calls `visitor` with every drawn text that is similar to a document and of which a document was drawn
    /// before it. Stores nothing.
    pub(crate) fn visit_similar_texts<V: PartnerVisitor>(
        &self,
        row: u64,
        analysis: &TextAnalysis<'_>,
        counter: &mut SampleComparer,
        visitor: &mut V,
    ) {
        counter.begin_document(analysis);
        counter.add_all_features(analysis);
        self.visit_seen(row, analysis, counter, visitor);
    }

    fn visit_seen<V: PartnerVisitor>(
        &self,
        row: u64,
        analysis: &TextAnalysis<'_>,
        counter: &mut SampleComparer,
        visitor: &mut V,
    ) {
        struct CompareKernel<'a, 'd, V>(
            &'a DrawnSample,
            u64,
            &'a TextAnalysis<'d>,
            &'a mut SampleComparer,
            &'a mut V,
        );

        impl<V: PartnerVisitor> Kernel for CompareKernel<'_, '_, V> {
            type Output = ();

            #[inline(always)]
            fn run<A: Arch>(self, _: A) {
                self.0
                    .compare_fingerprintable(self.1, self.2, self.3, self.4);
            }
        }

        if analysis.state == TextState::Fingerprintable {
            let cpu = counter.cpu;
            cpu.run(CompareKernel(self, row, analysis, counter, visitor));
        }
    }

    #[inline(always)]
    fn compare_fingerprintable<V: PartnerVisitor>(
        &self,
        row: u64,
        analysis: &TextAnalysis<'_>,
        counter: &mut SampleComparer,
        visitor: &mut V,
    ) {
        let SampleComparer {
            hits,
            probe,
            features,
            ..
        } = counter;
        hits.begin_document(self.texts.len());
        let all = |into: &mut Vec<u64>| analysis.append_features(into);
        let few = probe.features_to_look_up(self.rule, analysis.feature_count(), all);
        self.index.count_hits(few, hits);
        self.index.count_hits(probe.bin_keys(self.rule), hits);
        features.clear();
        for at in hits.met.drain(..) {
            let count = std::mem::take(&mut hits.of[at as usize]);
            if !self.index.are_enough(count, at) {
                continue;
            }
            let text = &self.texts[at as usize];
            let is_other = text.first < row && text.drawn.key != analysis.key;
            if !is_other || !visitor.wants_text(text) {
                continue;
            }
            if let Some(binned) = &text.binned
                && !binned.may_be_similar(probe)
            {
                continue;
            }
            if features.is_empty() {
                analysis.append_features(features);
            }
            if let Some(similarity) = self.similarity(&text.drawn.features, features) {
                visitor.visit_text(text, similarity);
            }
        }
    }

    fn similarity(&self, a: &[u64], b: &[u64]) -> Option<Similarity> {
        if !self
            .floor
            .admits_ratio(a.len().min(b.len()), a.len().max(b.len()))
        {
            return None;
        }
        let shared = intersection(a, b);
        let union = a.len() + b.len() - shared;
        let near = self.floor.admits_ratio(shared, union);
        near.then(|| self.measure.similarity_of_sizes(shared, a.len(), b.len()))
    }

    /// Returns the stored similar documents of a drawn row. All are later rows.
    pub fn partners_of(&self, row: u64) -> Vec<SimilarPartner> {
        let Some(&at) = self.by_row.get(&row) else {
            return Vec::new();
        };
        let partners = self.texts[at as usize].lock_partners();
        let all = partners.smallest.values();
        all.map(|&(row, similarity)| SimilarPartner { row, similarity })
            .filter(|partner| partner.row > row)
            .collect()
    }
}

impl DrawnSample {
    /// Returns the length of a drawn document in tokens, or 0 if the row is not drawn.
    pub fn token_count(&self, row: u64) -> usize {
        let at = self.by_row.get(&row);
        at.map_or(0, |&at| self.texts[at as usize].drawn.length as usize)
    }
}

const PARTNER_DOMAIN: u64 = 0x2545_f491_4f6c_dd1d;

impl DrawnText {
    /// Returns the first drawn row with the text.
    pub(crate) fn first_row(&self) -> u64 {
        self.first
    }

    fn lock_partners(&self) -> std::sync::MutexGuard<'_, SimilarPartners> {
        // The list is whole whatever happened elsewhere, because the insertion is the last step.
        self.partners.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns `true` if a document of this hash number would be stored.
    fn wants_partner(&self, number: u64) -> bool {
        let partners = self.lock_partners();
        let full = partners.smallest.len() == PARTNERS;
        !full
            || partners
                .smallest
                .last_key_value()
                .is_some_and(|(&last, _)| number < last)
    }

    fn add_partner(&self, number: u64, partner: SimilarPartner) {
        let mut partners = self.lock_partners();
        let entry = (partner.row, partner.similarity);
        partners.smallest.insert(number, entry);
        if partners.smallest.len() > PARTNERS {
            partners.smallest.pop_last();
        }
    }
}
