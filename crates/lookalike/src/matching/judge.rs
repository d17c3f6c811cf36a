//! The predicate of a plan: which two documents are candidates, and which candidates match.

use super::cache::{List, Material};
use super::crowds::{Crowds, FeaturesOf};
use super::groups::{Groups, Rank};
use super::keys::band_key;
use super::portions::Portions;
use super::survey::Tally;
use super::walk::Corpus;
use crate::error::{Error, ErrorKind, Result};
use crate::plan::{Blocks, Measure, Plan, Smallest, Unit};
use crate::sketch::{equal_slots, shared_smallest};
use crate::sketches::{Brief, Sketches};
use crate::types::{DocId, Similarity};
use crate::verify::{self, OfSequences, Outline, StepBudget, Weighted};

/// The way in which a pair was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// The texts are equal after normalisation.
    Exact,
    /// The exact join of short documents.
    Join,
    /// A shared band of the MinHash signatures.
    MinHash,
    /// SimHash fingerprints within the Hamming distance, or with a shared block of bits.
    SimHash,
    /// The same longest sentences.
    Sentences,
    /// One of the smallest hashes of the features in common.
    BottomK,
}

/// All routes, in the order of their declaration.
pub(super) const ROUTES: [Route; 6] = [
    Route::Exact,
    Route::Join,
    Route::MinHash,
    Route::SimHash,
    Route::Sentences,
    Route::BottomK,
];

impl Route {
    /// Returns the name that reports use.
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

/// A match, seen from one of its two documents.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Match {
    /// The other document.
    pub with: DocId,
    /// Similarity of the two documents.
    pub similarity: Similarity,
    /// The way in which the pair was found.
    pub route: Route,
}

/// A document of a pair, by its sketches.
#[derive(Clone, Copy)]
pub(crate) struct Sketched<'a> {
    pub(crate) sketches: &'a Sketches,
    pub(crate) document: DocId,
}

impl<'a> Sketched<'a> {
    #[inline]
    pub(crate) fn key(self) -> u128 {
        self.sketches.key(self.document)
    }

    #[inline]
    fn brief(self) -> Brief {
        self.sketches.brief(self.document)
    }

    #[inline]
    fn outline(self) -> Outline {
        self.sketches.outline(self.document)
    }

    #[inline]
    pub(crate) fn signature(self) -> Option<&'a [u32]> {
        self.sketches.signature(self.document)
    }

    #[inline]
    pub(crate) fn fingerprint(self) -> Option<u128> {
        self.sketches.fingerprint(self.document)
    }

    #[inline]
    pub(crate) fn sentences(self) -> Option<u64> {
        self.sketches.sentences(self.document)
    }

    #[inline]
    pub(crate) fn smallest(self) -> Option<&'a [u64]> {
        self.sketches.smallest(self.document)
    }

    /// Returns `true` if the texts are equal after normalisation. Most unequal texts are rejected by a
    /// few bits of their keys.
    #[inline]
    pub(crate) fn equals(self, other: Self) -> bool {
        self.sketches
            .may_equal(self.document, other.sketches, other.document)
            && self.key() == other.key()
    }
}

/// The features, weights and sequences of one document. Each list is requested only where the measure
/// needs it, because it may have to be made from the text.
pub(crate) trait Compared {
    /// Returns the distinct features, ascending.
    fn features(&self) -> Result<List<'_, u64>>;

    /// Returns the distinct features with their weights, ascending.
    fn weighted(&self) -> Result<List<'_, Weighted>>;

    /// Returns the normalised characters.
    fn characters(&self) -> Result<List<'_, u32>>;

    /// Returns the values of the tokens.
    fn words(&self) -> Result<List<'_, u64>>;
}

/// The predicate of a plan: which two documents are candidates, and which candidates match. It looks at
/// the two documents and at nothing else, so all its callers agree.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rule<'p> {
    plan: &'p Plan,
    of_sequences: Option<OfSequences>,
    blocks: Option<Blocks>,
}

impl<'p> Rule<'p> {
    pub(crate) fn new(plan: &'p Plan) -> Self {
        Self {
            plan,
            of_sequences: plan.of_sequences(),
            blocks: plan.blocks(),
        }
    }

    /// Returns the route by which the plan makes two documents candidates, if it does. Cheap, because
    /// it compares sketches and no features.
    pub(crate) fn candidates(&self, a: Sketched<'_>, b: Sketched<'_>) -> Option<Route> {
        if let Some(of) = self.of_sequences
            && !of.may_reach(a.outline(), b.outline(), self.plan.threshold())
        {
            return None;
        }
        if a.equals(b) {
            return Some(Route::Exact);
        }
        if let Some(distance) = self.plan.distance() {
            let (a, b) = (a.fingerprint()?, b.fingerprint()?);
            let near = match self.blocks {
                Some(blocks) => blocks.share(a, b),
                None => (a ^ b).count_ones() <= distance.get(),
            };
            return near.then_some(Route::SimHash);
        }
        if self.plan.sentences().is_some() {
            let same = a.sentences()? == b.sentences()?;
            return same.then_some(Route::Sentences);
        }
        if let Some(smallest) = self.plan.smallest() {
            let (a, b) = (a.smallest()?, b.smallest()?);
            let near = meet_by_smallest(smallest, a, b) && self.near_by_smallest(smallest, a, b);
            return near.then_some(Route::BottomK);
        }
        if self.plan.join().is_some()
            && let Some(near) = self.joins(a.brief(), b.brief())
        {
            return near.then_some(Route::Join);
        }
        let bands = self.plan.bands()?;
        let (a, b) = (a.signature()?, b.signature()?);
        let near = equal_slots(a, b) >= bands.least_equal
            && (0..bands.bands).any(|band| band_key(bands, band, a) == band_key(bands, band, b));
        near.then_some(Route::MinHash)
    }

    /// Returns `true` if the exact join makes two documents candidates, and `None` if one of them does
    /// not take part in the join.
    #[inline]
    pub(crate) fn joins(&self, a: Brief, b: Brief) -> Option<bool> {
        let join = self.plan.join()?;
        if a.size.max(b.size) as usize > join.reach {
            return None;
        }
        let shared = a.most_shared(b);
        let union = (a.size + b.size) as usize - shared;
        Some(shared > 0 && self.plan.candidate_threshold().admits(shared, union))
    }

    fn near_by_smallest(&self, smallest: Smallest, a: &[u64], b: &[u64]) -> bool {
        let (shared, of) = shared_smallest(a, b, smallest.kept);
        if of < smallest.kept {
            // The union has fewer hashes than are kept, so these are all features of both documents.
            self.plan.candidate_threshold().admits(shared, of)
        } else {
            shared >= smallest.least_equal
        }
    }

    /// Verifies two candidates. Returns their similarity if they match.
    pub(crate) fn check(
        &self,
        route: Route,
        a: (Sketched<'_>, &impl Compared),
        b: (Sketched<'_>, &impl Compared),
    ) -> Result<Option<Similarity>> {
        self.check_within(route, a, b, &mut StepBudget::unlimited())
    }

    /// As [`check`](Self::check), by taking the steps of sequences from a budget.
    pub(crate) fn check_within(
        &self,
        route: Route,
        (a, in_a): (Sketched<'_>, &impl Compared),
        (b, in_b): (Sketched<'_>, &impl Compared),
        budget: &mut StepBudget,
    ) -> Result<Option<Similarity>> {
        if route == Route::Exact {
            Ok(Some(Similarity::ONE))
        } else if self.is_decided_by_sketches(route) {
            Ok(self.by_sketch(a, b, route))
        } else {
            self.compared(in_a, in_b, budget)
        }
    }

    /// Returns `true` if candidates that were found so are compared by their sketches alone.
    fn is_decided_by_sketches(&self, route: Route) -> bool {
        self.plan.settings().measure == Measure::Sketch && route != Route::Join
    }

    /// Returns the steps that it takes about to read a candidate's text and to make what it is compared by.
    pub(crate) fn count_reading_steps(&self, route: Route, candidate: Sketched<'_>) -> u64 {
        /// Steps for a symbol or a feature.
        const STEPS: u64 = 4;
        /// Symbols or features of a document of which the number is not known.
        const USUAL: u64 = 1000;
        if route == Route::Exact || self.is_decided_by_sketches(route) {
            return 0;
        }
        let length = match self.of_sequences {
            Some(_) => candidate.outline().length().map_or(USUAL, |it| it as u64),
            None => USUAL,
        };
        STEPS * length
    }

    fn by_sketch(&self, a: Sketched<'_>, b: Sketched<'_>, route: Route) -> Option<Similarity> {
        let (part, whole) = match route {
            Route::SimHash => {
                let print = |document: Sketched<'_>| document.fingerprint().unwrap_or(0);
                let bits = self.plan.bits() as usize;
                let differing = (print(a) ^ print(b)).count_ones() as usize;
                return Some(Similarity::ratio(bits - differing, bits));
            }
            Route::MinHash => (
                equal_slots(a.signature()?, b.signature()?),
                self.plan.slots(),
            ),
            Route::BottomK => shared_smallest(a.smallest()?, b.smallest()?, self.plan.slots()),
            Route::Exact | Route::Sentences | Route::Join => return Some(Similarity::ONE),
        };
        let passes = self.plan.threshold().admits(part, whole);
        passes.then(|| Similarity::ratio(part, whole))
    }

    /// Returns the similarity of the documents themselves if it reaches the threshold.
    fn compared(
        &self,
        a: &impl Compared,
        b: &impl Compared,
        budget: &mut StepBudget,
    ) -> Result<Option<Similarity>> {
        let settings = self.plan.settings();
        let measure = settings.measure;
        let by_sets = matches!(
            measure,
            Measure::Jaccard | Measure::Containment | Measure::Sketch
        );
        if by_sets || self.plan.finds_by_features() {
            let (a, b) = (a.features()?, b.features()?);
            budget.add((a.len() + b.len()) as u64);
            if by_sets {
                return Ok(verify::check(self.plan, &a, &b));
            }
            if !verify::near(self.plan, &a, &b) {
                return Ok(None);
            }
        }
        let threshold = settings.threshold;
        match (self.of_sequences, settings.unit) {
            (None, _) => {
                let (a, b) = (a.weighted()?, b.weighted()?);
                budget.add((a.len() + b.len()) as u64);
                let similarity = verify::cosine(&a, &b);
                Ok(Some(similarity).filter(|&it| threshold.admits_similarity(it)))
            }
            (Some(of), Unit::Characters) => {
                of.similarity_within(&a.characters()?, &b.characters()?, threshold, budget)
            }
            (Some(of), Unit::Words) => {
                of.similarity_within(&a.words()?, &b.words()?, threshold, budget)
            }
        }
    }
}

/// Turns the refusal of a comparison beyond its budget into the result of one that finds nothing.
pub(super) fn refuse_no_limit<T>(error: Error) -> Result<Option<T>> {
    match error.kind() {
        ErrorKind::Limit | ErrorKind::TooCostly => Ok(None),
        _ => Err(error),
    }
}

fn meet_by_smallest(smallest: Smallest, a: &[u64], b: &[u64]) -> bool {
    let first = |hashes: &'_ [u64]| hashes.len().min(smallest.meeting);
    verify::intersection(&a[..first(a)], &b[..first(b)]) > 0
}

/// The predicate of a plan applied to the documents of a corpus, behind the bitmap filter.
pub(super) struct Judge<'a> {
    corpus: &'a Corpus<'a>,
    rule: Rule<'a>,
    pub(super) portions: Portions,
    pub(super) material: Material<'a>,
    /// Bitmap filter of the dense sets.
    pub(super) crowds: Crowds,
    /// Counter of comparisons, if a survey wants them counted.
    tally: Option<&'a Tally>,
}

impl<'a> Judge<'a> {
    pub(super) fn new(corpus: &'a Corpus<'a>, portions: Portions) -> Self {
        Self {
            corpus,
            rule: Rule::new(corpus.plan),
            portions,
            material: Material::new(corpus.sketches, corpus.texts, portions.remembered),
            crowds: Crowds::default(),
            tally: None,
        }
    }

    /// Returns a verifier that counts its comparisons in `tally`.
    pub(super) fn counting(corpus: &'a Corpus<'a>, portions: Portions, tally: &'a Tally) -> Self {
        Self {
            tally: Some(tally),
            ..Self::new(corpus, portions)
        }
    }

    fn sketched(&self, document: DocId) -> Sketched<'a> {
        let sketches = self.corpus.sketches;
        Sketched { sketches, document }
    }

    /// Returns the route by which the plan makes two documents candidates, if it does. Returns `None`
    /// for pairs that the partition, the window or the bitmap filter excludes.
    pub(super) fn candidates(&self, a: Rank, b: Rank) -> Option<Route> {
        if !self.corpus.may_meet(a, b) || self.crowds.rule_out(a, b) {
            return None;
        }
        let (a, b) = (self.corpus.document(a), self.corpus.document(b));
        self.rule.candidates(self.sketched(a), self.sketched(b))
    }

    /// Finds the dense sets among the buckets. `first` returns the first document with the same text.
    pub(super) fn form_crowds(&mut self, groups: &mut Groups, first: impl Fn(Rank) -> Rank) {
        if let Some(threshold) = self.corpus.plan.least_jaccard() {
            let (documents, most) = (self.corpus.len(), self.portions.crowd);
            self.crowds = Crowds::form(groups, documents, most, threshold);
            self.crowds.stand_for(first);
        }
    }

    /// Makes the bitmaps of those dense sets for which they now pay off.
    pub(super) fn learn_crowds(&mut self) -> Result<()> {
        let mut crowds = std::mem::take(&mut self.crowds);
        let features: &FeaturesOf<'_> =
            &|rank, buffer, visit| self.features_once(rank, buffer, visit);
        crowds.learn(self.portions.price, features)?;
        self.crowds = crowds;
        Ok(())
    }

    /// Makes the bitmaps of the dense sets for a search that looks at every pair.
    pub(super) fn learn_all_crowds(&mut self, groups: &Groups) -> Result<()> {
        self.crowds.meet_all(groups);
        self.learn_crowds()
    }

    /// Returns `true` if scanning `crowd` documents of a dense set by bitmaps is less work than
    /// visiting `met` members of its buckets.
    #[inline]
    pub(super) fn scans(&self, met: usize, crowd: usize) -> bool {
        met > 0 && crowd <= met.saturating_mul(self.portions.scanned)
    }

    /// Calls `visit` with the features of a document without caching them.
    pub(super) fn features_once(
        &self,
        rank: Rank,
        buffer: &mut Vec<u64>,
        visit: impl FnOnce(&[u64]),
    ) -> Result<()> {
        let document = self.corpus.document(rank);
        self.material.features_once(document, buffer, visit)
    }

    /// Prefetches the prefilter data and the bitmap of a document.
    #[inline]
    pub(super) fn fetch(&self, rank: Rank) {
        self.crowds.fetch(rank);
        self.corpus.sketches.fetch(self.corpus.document(rank));
    }

    /// Makes and caches the list that [`check`](Self::check) needs first for a document.
    pub(super) fn prepare(&self, rank: Rank) -> Result<()> {
        let document = self.corpus.document(rank);
        let plan = self.corpus.plan;
        let measure = plan.settings().measure;
        let by_features = matches!(measure, Measure::Jaccard | Measure::Containment);
        if measure == Measure::Sketch {
            return Ok(());
        }
        if by_features || plan.finds_by_features() {
            self.material.features(document)?;
        } else if measure == Measure::Cosine {
            self.material.weighted(document)?;
        } else if plan.settings().unit == Unit::Words {
            self.material.words(document)?;
        } else {
            self.material.characters(document)?;
        }
        Ok(())
    }

    /// Verifies two candidates. Returns their similarity if they match.
    pub(super) fn check(&self, a: Rank, b: Rank, route: Route) -> Result<Option<Similarity>> {
        self.crowds.compare(a, b);
        let Some(tally) = self.tally else {
            return self.compare(a, b, route, &mut StepBudget::unlimited());
        };
        tally.count_candidate(route);
        tally.verify(route, |budget| self.compare(a, b, route, budget))
    }

    /// Counts a candidate pair without comparing it.
    pub(super) fn count_candidate(&self, a: Rank, b: Rank, route: Route) {
        self.crowds.compare(a, b);
        if let Some(tally) = self.tally {
            tally.count_candidate(route);
        }
    }

    /// Compares a pair that has been counted as a candidate.
    pub(super) fn verify_counted(&self, a: Rank, b: Rank, route: Route) -> Result<()> {
        let Some(tally) = self.tally else {
            return Ok(());
        };
        // The inputs are made first and not measured, because a run makes them once for many pairs.
        self.compare(a, b, route, &mut StepBudget::new(0))
            .or_else(refuse_no_limit)?;
        tally
            .verify(route, |budget| self.compare(a, b, route, budget))
            .map(drop)
    }

    fn compare(
        &self,
        a: Rank,
        b: Rank,
        route: Route,
        budget: &mut StepBudget,
    ) -> Result<Option<Similarity>> {
        let (a, b) = (self.corpus.document(a), self.corpus.document(b));
        self.rule.check_within(
            route,
            (self.sketched(a), &self.material.of(a)),
            (self.sketched(b), &self.material.of(b)),
            budget,
        )
    }
}
