//! What is a candidate, and what matches: decided from two documents alone.

use super::cache::Material;
use super::groups::Rank;
use super::keys::band_key;
use super::portions::Portions;
use super::walk::Corpus;
use crate::error::Result;
use crate::plan::{Blocks, Measure, Plan, Unit};
use crate::sketch::{equal_slots, shared_smallest};
use crate::types::{DocId, Similarity};
use crate::verify::{self, OfSequences};

/// How a pair was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// The texts are equal after normalisation.
    Exact,
    /// By the exact join of short documents.
    Join,
    /// By a shared band of their MinHash signatures.
    MinHash,
    /// By the Hamming distance of their SimHash fingerprints, or a block that these share.
    SimHash,
    /// By their longest sentences.
    Sentences,
    /// By one of the smallest hashes of their features.
    BottomK,
}

impl Route {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Join => "join",
            Self::MinHash => "minhash",
            Self::SimHash => "simhash",
            Self::Sentences => "sentences",
            Self::BottomK => "bottomk",
        }
    }
}

/// A pair that matches, seen from one side.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Match {
    /// The other document.
    pub with: DocId,
    /// How similar it is.
    pub similarity: Similarity,
    /// How it was found.
    pub route: Route,
}

/// How a run finds two documents that are similar enough by its measure, if it does: the plan makes
/// them candidates, and where sketches alone decide, these agree. It is the predicate of the whole
/// run, decided from the two documents and no others; whether the exact measure admits them is for
/// the caller to know.
///
/// # Errors
/// If what a document is compared by cannot be had again.
pub fn route_between(corpus: &Corpus<'_>, a: DocId, b: DocId) -> Result<Option<Route>> {
    let in_order_read = Corpus {
        order: None,
        ..*corpus
    };
    let judge = Judge::new(&in_order_read, Portions::default());
    let Some(route) = judge.candidates(a.0, b.0) else {
        return Ok(None);
    };
    if corpus.plan.settings().measure == Measure::Sketch {
        return Ok(judge.check(a.0, b.0, route)?.map(|_| route));
    }
    Ok(Some(route))
}

/// Decides on pairs of documents.
pub(super) struct Judge<'a> {
    corpus: &'a Corpus<'a>,
    plan: &'a Plan,
    of_sequences: Option<OfSequences>,
    blocks: Option<Blocks>,
    pub(super) portions: Portions,
    pub(super) material: Material<'a>,
}

impl<'a> Judge<'a> {
    pub(super) fn new(corpus: &'a Corpus<'a>, portions: Portions) -> Self {
        Self {
            corpus,
            plan: corpus.plan,
            of_sequences: corpus.plan.of_sequences(),
            blocks: corpus.plan.blocks(),
            portions,
            material: Material::new(corpus.sketches, corpus.texts, portions.remembered),
        }
    }

    /// How the plan makes these two candidates, if it does and they may match. Cheap: no features
    /// are looked at.
    pub(super) fn candidates(&self, a: Rank, b: Rank) -> Option<Route> {
        let (in_a, in_b) = (self.corpus.document(a), self.corpus.document(b));
        let sketches = self.corpus.sketches;
        if let Some(of) = self.of_sequences {
            let (one, other) = (sketches.outline(in_a), sketches.outline(in_b));
            if !of.may_reach(one, other, self.plan.threshold()) {
                return None;
            }
        }
        if !self.corpus.may_meet(a, b) {
            return None;
        }
        let (brief_a, brief_b) = (sketches.brief(in_a), sketches.brief(in_b));
        if brief_a.may_equal(brief_b) && sketches.key(in_a) == sketches.key(in_b) {
            return Some(Route::Exact);
        }
        if let Some(distance) = self.plan.distance() {
            let (a, b) = (sketches.fingerprint(in_a)?, sketches.fingerprint(in_b)?);
            let near = match self.blocks {
                Some(blocks) => blocks.share(a, b),
                None => (a ^ b).count_ones() <= distance.get(),
            };
            return near.then_some(Route::SimHash);
        }
        if self.plan.sentences().is_some() {
            let same = sketches.sentences(in_a)? == sketches.sentences(in_b)?;
            return same.then_some(Route::Sentences);
        }
        if let Some(smallest) = self.plan.smallest() {
            let (a, b) = (sketches.smallest(in_a)?, sketches.smallest(in_b)?);
            let first = |hashes: &'a [u64]| &hashes[..hashes.len().min(smallest.meeting)];
            let meet = verify::intersection(first(a), first(b)) > 0;
            let near = || {
                let (shared, of) = shared_smallest(a, b, smallest.kept);
                if of < smallest.kept {
                    // These are all features of both.
                    self.plan.candidate_threshold().admits(shared, of)
                } else {
                    shared >= smallest.least_equal
                }
            };
            return (meet && near()).then_some(Route::BottomK);
        }
        if let Some(join) = self.plan.join()
            && brief_a.size.max(brief_b.size) as usize <= join.reach
        {
            let shared = brief_a.most_shared(brief_b);
            let union = (brief_a.size + brief_b.size) as usize - shared;
            let near = self.plan.candidate_threshold().admits(shared, union);
            return (shared > 0 && near).then_some(Route::Join);
        }
        let bands = self.plan.bands()?;
        let (a, b) = (sketches.signature(in_a)?, sketches.signature(in_b)?);
        let near = equal_slots(a, b) >= bands.least_equal
            && (0..bands.bands).any(|band| band_key(bands, band, a) == band_key(bands, band, b));
        near.then_some(Route::MinHash)
    }

    /// Makes sure that [`check`](Self::check) has at hand what a document is compared by first.
    pub(super) fn prepare(&self, rank: Rank) -> Result<()> {
        let document = self.corpus.document(rank);
        let measure = self.plan.settings().measure;
        let by_features = matches!(measure, Measure::Jaccard | Measure::Containment);
        if measure == Measure::Sketch {
            return Ok(());
        }
        if by_features || self.plan.finds_by_features() {
            self.material.features(document)?;
        } else if measure == Measure::Cosine {
            self.material.weighted(document)?;
        } else if self.plan.settings().unit == Unit::Words {
            self.material.words(document)?;
        } else {
            self.material.characters(document)?;
        }
        Ok(())
    }

    /// The similarity of two candidates, if it passes the check.
    pub(super) fn check(&self, a: Rank, b: Rank, route: Route) -> Result<Option<Similarity>> {
        let (a, b) = (self.corpus.document(a), self.corpus.document(b));
        let by_sketch = self.plan.settings().measure == Measure::Sketch;
        match route {
            Route::Exact => Ok(Some(Similarity::ONE)),
            Route::SimHash | Route::MinHash | Route::Sentences | Route::BottomK if by_sketch => {
                Ok(self.by_sketch(a, b, route))
            }
            _ => self.compared(a, b),
        }
    }

    fn by_sketch(&self, a: DocId, b: DocId, route: Route) -> Option<Similarity> {
        let sketches = self.corpus.sketches;
        let (part, whole) = match route {
            Route::SimHash => {
                let print = |document| sketches.fingerprint(document).unwrap_or(0);
                let bits = self.plan.bits() as usize;
                let differing = (print(a) ^ print(b)).count_ones() as usize;
                return Some(Similarity::ratio(bits - differing, bits));
            }
            Route::MinHash => {
                let (a, b) = (sketches.signature(a)?, sketches.signature(b)?);
                (equal_slots(a, b), self.plan.slots())
            }
            Route::BottomK => {
                let (a, b) = (sketches.smallest(a)?, sketches.smallest(b)?);
                shared_smallest(a, b, self.plan.slots())
            }
            Route::Exact | Route::Sentences | Route::Join => return Some(Similarity::ONE),
        };
        let passes = self.plan.threshold().admits(part, whole);
        passes.then(|| Similarity::ratio(part, whole))
    }

    /// The similarity of the documents themselves, if it passes the check.
    fn compared(&self, a: DocId, b: DocId) -> Result<Option<Similarity>> {
        let material = &self.material;
        let settings = self.plan.settings();
        let measure = settings.measure;
        if matches!(
            measure,
            Measure::Jaccard | Measure::Containment | Measure::Sketch
        ) {
            let (a, b) = (material.features(a)?, material.features(b)?);
            return Ok(verify::check(self.plan, &a, &b));
        }
        if self.plan.finds_by_features() {
            let (a, b) = (material.features(a)?, material.features(b)?);
            if !verify::near(self.plan, &a, &b) {
                return Ok(None);
            }
        }
        let threshold = settings.threshold;
        match (self.of_sequences, settings.unit) {
            (None, _) => {
                let (a, b) = (material.weighted(a)?, material.weighted(b)?);
                let similarity = verify::cosine(&a, &b);
                Ok(Some(similarity).filter(|&it| threshold.admits_similarity(it)))
            }
            (Some(of), Unit::Characters) => {
                let (a, b) = (material.characters(a)?, material.characters(b)?);
                of.similarity(&a, &b, threshold)
            }
            (Some(of), Unit::Words) => {
                let (a, b) = (material.words(a)?, material.words(b)?);
                of.similarity(&a, &b, threshold)
            }
        }
    }
}
