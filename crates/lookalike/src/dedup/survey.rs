//! Counts of the comparisons that a plan makes, measured on a sample, to estimate those of a whole
//! corpus.
//!
//! Candidate pairs are counted. A bounded sample of them is compared, with a bounded number of steps
//! ([`SurveyLimits`]), so the time of a survey does not grow with the length of texts or the price of a
//! measure. The sample depends on the documents alone, not on the number of threads.
//!
//! Where verdicts are followed, every candidate is compared, because the outcome decides which documents are
//! kept; the survey then ends at the first block of documents after the limit.

use std::collections::BinaryHeap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rayon::prelude::*;

use super::batch_sizes::BatchSizes;
use super::corpus::{EqualTextNodes, MatchCorpus};
use super::deduplicator::Deduplicator;
use super::pair_verifier::{PairVerifier, refuse_no_limit};
use super::pairs::{CopyPairs, PairFinder};
use super::seen_candidates::SeenCandidates;
use crate::candidates::buckets::DocumentRank;
use crate::error::Result;
use crate::hash::mix_bits;
use crate::similarity::{Route, StepBudget};

/// Numbers of pairs of one route.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ComparedPairs {
    /// Candidate pairs, which a run compares by their features or texts.
    pub pairs: u64,
    /// Candidate pairs that were compared.
    pub verified: u64,
    /// Compared pairs that match. A pair that takes more steps than one pair may does not match.
    pub matching: u64,
}

impl ComparedPairs {
    /// The share of candidate pairs that match, by those that were compared; 0 if none was.
    pub fn matching_share(&self) -> f64 {
        self.matching as f64 / self.verified.max(1) as f64
    }
}

/// Limits of a survey.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SurveyLimits {
    /// Candidate pairs that are counted, about.
    pub candidates: u64,
    /// The most pairs that are compared, where all pairs are followed.
    pub verified: usize,
    /// Steps of comparing, about: a feature, symbol or weight that is gone through, or a column of an
    /// edit distance. A single pair takes a sixteenth of them at most.
    pub steps: u64,
}

impl Default for SurveyLimits {
    /// Some tenths of a second.
    fn default() -> Self {
        Self {
            candidates: 2_000_000,
            verified: 4096,
            steps: 1 << 27,
        }
    }
}

impl SurveyLimits {
    /// The most steps of a pair.
    fn steps_of_pair(&self) -> u64 {
        self.steps / 16
    }
}

/// Pairs that are compared at a time, until the steps are taken.
const AT_ONCE: usize = 8;

/// The kind of run that a survey measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SurveyKind {
    /// A search for every matching pair.
    Pairs,
    /// Deduplication, in which each document is compared with kept ones alone.
    Verdicts,
}

/// The comparisons that a run over a corpus makes. Pairs of equal texts are not counted.
#[derive(Clone, Debug)]
pub struct CandidateSurvey {
    /// Compared pairs by route.
    pub by_route: Vec<(Route, ComparedPairs)>,
    /// Time that all threads would spend comparing all candidate pairs.
    pub comparing: Duration,
    /// Time that all threads spent comparing pairs.
    pub spent: Duration,
    /// Steps taken for it.
    pub steps: u64,
    /// Share of the work that was done; below 1 if the survey stopped early.
    share: f64,
    /// Exponent of the growth of pairs with the number of documents.
    growth: f64,
}

impl CandidateSurvey {
    /// Returns the factor by which pairs grow for a corpus of the same kind that is `times` as large.
    pub fn scale_factor(&self, times: f64) -> f64 {
        times.powf(self.growth) / self.share.max(f64::MIN_POSITIVE)
    }
}

/// Counts the pairs that a plan compares, and compares some of them.
///
/// # Errors
/// Fails if `corpus.texts` cannot provide a document again, if texts are too long for the measure, or
/// if the documents share more than 2³² − 1 bucket keys.
pub fn survey_corpus(
    corpus: &MatchCorpus<'_>,
    followed: SurveyKind,
    limits: SurveyLimits,
) -> Result<CandidateSurvey> {
    // Small blocks, because a survey ends between them.
    let batch_sizes = BatchSizes {
        first_block: 8,
        block: 256,
        pairs: 1 << 19,
        ..BatchSizes::default()
    };
    survey_with_sizes(batch_sizes, corpus, followed, limits)
}

pub(super) fn survey_with_sizes(
    batch_sizes: BatchSizes,
    corpus: &MatchCorpus<'_>,
    followed: SurveyKind,
    limits: SurveyLimits,
) -> Result<CandidateSurvey> {
    let tally = ComparisonTally::new(limits);
    let verifier = PairVerifier::with_tally(corpus, batch_sizes, &tally);
    let (share, growth) = match followed {
        SurveyKind::Pairs => (survey_pairs(verifier, corpus, &tally)?, 2.0),
        SurveyKind::Verdicts => survey_verdicts(verifier, corpus, &tally)?,
    };
    Ok(tally.into_survey(share, growth))
}

/// Counts the candidate pairs, and compares those with the smallest numbers. Returns the share of all
/// pairs that was searched.
fn survey_pairs(
    verifier: PairVerifier<'_>,
    corpus: &MatchCorpus<'_>,
    tally: &ComparisonTally,
) -> Result<f64> {
    let nodes = EqualTextNodes::for_pairs(corpus, CopyPairs::WithEarliest);
    let mut finder = PairFinder::new(verifier, corpus, nodes)?;
    let mut drawn = DrawnCandidates::new(tally.limits.verified);
    let ends = finder.count_first_documents();
    let mut start = 0;
    while start < ends && tally.total_pairs() < tally.limits.candidates {
        let block = finder.next_block(start, ends);
        start = block.end as usize;
        let found: Vec<Vec<DrawnCandidate>> = block
            .into_par_iter()
            .map_init(SeenCandidates::default, |seen, rank| {
                let candidates = finder.candidates_of(rank, seen);
                let candidates = candidates
                    .into_iter()
                    .filter(|candidate| candidate.1 != Route::Exact);
                candidates
                    .filter_map(|(other, route)| {
                        finder.verifier().count_candidate(rank, other, route);
                        let candidate = DrawnCandidate::new(rank, other, route);
                        drawn.may_keep(&candidate).then_some(candidate)
                    })
                    .collect()
            })
            .collect();
        found
            .into_iter()
            .flatten()
            .for_each(|pair| drawn.offer_candidate(pair));
        finder.build_due_bitmaps()?;
    }
    let drawn = drawn.candidates.into_sorted_vec();
    for few in drawn.chunks(AT_ONCE) {
        if tally.steps() >= tally.limits.steps {
            break;
        }
        few.par_iter().try_for_each(|pair| {
            let route = Route::ALL[pair.route];
            finder.verifier().verify_counted(pair.a, pair.b, route)
        })?;
    }
    Ok(share_of_pairs(corpus, start, ends))
}

/// A candidate pair with the number by which it is drawn, ordered by that number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct DrawnCandidate {
    number: u64,
    a: DocumentRank,
    b: DocumentRank,
    /// Its place among all routes.
    route: usize,
}

impl DrawnCandidate {
    fn new(a: DocumentRank, b: DocumentRank, route: Route) -> Self {
        Self {
            number: mix_bits(u64::from(a) << 32 | u64::from(b)),
            a,
            b,
            route: route as usize,
        }
    }
}

/// The `most` candidate pairs with the smallest numbers.
struct DrawnCandidates {
    most: usize,
    candidates: BinaryHeap<DrawnCandidate>,
}

impl DrawnCandidates {
    fn new(most: usize) -> Self {
        let candidates = BinaryHeap::new();
        Self { most, candidates }
    }

    fn may_keep(&self, candidate: &DrawnCandidate) -> bool {
        let last = self.candidates.peek();
        self.candidates.len() < self.most || last.is_some_and(|last| candidate < last)
    }

    fn offer_candidate(&mut self, candidate: DrawnCandidate) {
        if self.may_keep(&candidate) {
            self.candidates.push(candidate);
            if self.candidates.len() > self.most {
                self.candidates.pop();
            }
        }
    }
}

/// Returns the share of all pairs whose earlier document is among the first `done` of `ends`.
fn share_of_pairs(corpus: &MatchCorpus<'_>, done: usize, ends: usize) -> f64 {
    if done >= ends {
        return 1.0;
    }
    let (done, ends) = (done as f64, ends as f64);
    if corpus.known_prefix > 0 {
        return done / ends;
    }
    1.0 - ((ends - done) / ends).powi(2)
}

/// Runs a deduplication. Returns the share of the work that was done, and the exponent of its growth.
fn survey_verdicts(
    verifier: PairVerifier<'_>,
    corpus: &MatchCorpus<'_>,
    tally: &ComparisonTally,
) -> Result<(f64, f64)> {
    let SurveyLimits {
        candidates, steps, ..
    } = tally.limits;
    // Pairs of the number of documents decided and the number of pairs compared until then.
    let mut course = vec![(0, 0)];
    Deduplicator::new(verifier, corpus)?.run_blocks(|decided, _| {
        course.push((decided, tally.total_pairs()));
        if tally.total_pairs() < candidates && tally.steps() < steps {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    })?;
    let &(done, _) = course.last().expect("it has a start");
    let growth = growth_exponent(&course);
    let share = done.max(1) as f64 / corpus.len().max(1) as f64;
    Ok((share.powf(growth), growth))
}

/// Returns the exponent with which counts grow between half of a course and its end: 1 if every
/// document is compared with a few kept ones, 2 if with all earlier ones.
fn growth_exponent(course: &[(usize, u64)]) -> f64 {
    let Some(&(done, all)) = course.last() else {
        return MOST_GROWTH;
    };
    let half = done as f64 / 2.0;
    let after = course.partition_point(|&(decided, _)| (decided as f64) < half);
    let (Some(&(from, before)), Some(&(to, behind))) =
        (course.get(after.wrapping_sub(1)), course.get(after))
    else {
        return MOST_GROWTH;
    };
    let way = (half - from as f64) / (to - from) as f64;
    let at_half = before as f64 + way * (behind - before) as f64;
    if at_half < FEWEST_PAIRS {
        return MOST_GROWTH;
    }
    (all as f64 / at_half).log2().clamp(1.0, MOST_GROWTH)
}

const MOST_GROWTH: f64 = 2.0;

/// Number of pairs below which the growth cannot be estimated.
const FEWEST_PAIRS: f64 = 100.0;

/// Counters of comparisons, shared by all threads.
#[derive(Debug)]
pub(crate) struct ComparisonTally {
    limits: SurveyLimits,
    pairs: [AtomicU64; Route::ALL.len()],
    verified: [AtomicU64; Route::ALL.len()],
    matching: [AtomicU64; Route::ALL.len()],
    nanoseconds: [AtomicU64; Route::ALL.len()],
    steps: AtomicU64,
}

impl ComparisonTally {
    fn new(limits: SurveyLimits) -> Self {
        Self {
            limits,
            pairs: Default::default(),
            verified: Default::default(),
            matching: Default::default(),
            nanoseconds: Default::default(),
            steps: AtomicU64::new(0),
        }
    }

    /// Counts a candidate pair of texts that are not equal.
    pub(crate) fn count_candidate(&self, route: Route) {
        if route != Route::Exact {
            self.pairs[route as usize].fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts a comparison of texts that are not equal, and its time. One that takes more steps than a
    /// pair may finds nothing.
    pub(crate) fn verify<T>(
        &self,
        route: Route,
        compare: impl FnOnce(&mut StepBudget) -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        let mut budget = StepBudget::new(self.limits.steps_of_pair());
        if route == Route::Exact {
            return compare(&mut budget);
        }
        let begun = Instant::now();
        let found = compare(&mut budget).or_else(refuse_no_limit)?;
        let nanoseconds = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let add = |to: &AtomicU64, count| to.fetch_add(count, Ordering::Relaxed);
        add(&self.steps, budget.taken());
        add(&self.nanoseconds[route as usize], nanoseconds);
        add(&self.verified[route as usize], 1);
        add(&self.matching[route as usize], u64::from(found.is_some()));
        Ok(found)
    }

    fn total_pairs(&self) -> u64 {
        let pairs = self.pairs.iter();
        pairs.map(|pairs| pairs.load(Ordering::Relaxed)).sum()
    }

    fn steps(&self) -> u64 {
        self.steps.load(Ordering::Relaxed)
    }

    fn into_survey(self, share: f64, growth: f64) -> CandidateSurvey {
        let (mut by_route, mut all, mut spent) = (Vec::new(), 0.0, 0);
        for route in Route::ALL {
            let of = |counts: &[AtomicU64; Route::ALL.len()]| {
                counts[route as usize].load(Ordering::Relaxed)
            };
            let counts = ComparedPairs {
                pairs: of(&self.pairs),
                verified: of(&self.verified),
                matching: of(&self.matching),
            };
            if counts.pairs > 0 {
                let nanoseconds = of(&self.nanoseconds);
                spent += nanoseconds;
                all += nanoseconds as f64 * counts.pairs as f64 / counts.verified.max(1) as f64;
                by_route.push((route, counts));
            }
        }
        by_route.sort_by_key(|(route, _)| route.name());
        CandidateSurvey {
            by_route,
            comparing: Duration::from_nanos(all as u64),
            spent: Duration::from_nanos(spent),
            steps: self.steps(),
            share,
            growth,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_estimated_from_the_second_half() {
        let course = |of: &dyn Fn(u64) -> u64| -> Vec<(usize, u64)> {
            let ends = [0, 32, 96, 224, 1000, 3000, 5000, 10_000];
            ends.iter().map(|&at| (at as usize, of(at))).collect()
        };
        let close = |found: f64, expected: f64| (found - expected).abs() < 0.1;
        assert!(close(growth_exponent(&course(&|at| 3 * at)), 1.0));
        assert!(close(growth_exponent(&course(&|at| at * at / 2)), 2.0));
        assert!(close(growth_exponent(&course(&|at| at.pow(3) / 1000)), 2.0));
        assert!(close(growth_exponent(&course(&|_| 500)), 1.0));
        // Too few pairs to estimate, or none.
        assert!(close(growth_exponent(&course(&|at| at / 100)), 2.0));
        assert!(close(growth_exponent(&[(0, 0)]), 2.0));
        assert!(close(growth_exponent(&[]), 2.0));
    }
}
