//! Counts of the comparisons that a plan makes, measured on a sample, to estimate those of a whole
//! corpus.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rayon::prelude::*;

use super::judge::{Judge, ROUTES, Route};
use super::portions::Portions;
use super::walk::{CopyPairs, Corpus, Nodes, PairFinder, Seen, Walk};
use crate::error::Result;

/// Numbers of pairs of one route.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ComparedPairs {
    /// Pairs that were compared by their features or texts.
    pub pairs: u64,
    /// Compared pairs that match.
    pub matching: u64,
}

/// The kind of run that a survey measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Surveyed {
    /// A search for every matching pair.
    Pairs,
    /// Deduplication, in which each document is compared with kept ones alone.
    Verdicts,
}

/// The comparisons that a run over a corpus makes. Pairs of equal texts are not counted.
#[derive(Clone, Debug)]
pub struct Survey {
    /// Compared pairs by route.
    pub by_route: Vec<(Route, ComparedPairs)>,
    /// Time that all threads spent comparing pairs.
    pub comparing: Duration,
    /// Share of the work that was done; below 1 if the survey stopped early.
    share: f64,
    /// Exponent of the growth of pairs with the number of documents.
    growth: f64,
}

impl Survey {
    /// Returns the factor by which pairs grow for a corpus of the same kind that is `times` as large.
    pub fn scale(&self, times: f64) -> f64 {
        times.powf(self.growth) / self.share.max(f64::MIN_POSITIVE)
    }
}

/// Counts the pairs that a plan compares. Stops early once it has compared `most`.
///
/// # Errors
/// Fails if `corpus.texts` cannot provide a document again, if texts are too long for the measure, or
/// if the documents share more than 2³² − 1 bucket keys.
pub fn survey(corpus: &Corpus<'_>, followed: Surveyed, most: u64) -> Result<Survey> {
    survey_in(Portions::default(), corpus, followed, most)
}

pub(super) fn survey_in(
    portions: Portions,
    corpus: &Corpus<'_>,
    followed: Surveyed,
    most: u64,
) -> Result<Survey> {
    let tally = Tally::default();
    let judge = Judge::counting(corpus, portions, &tally);
    let (share, growth) = match followed {
        Surveyed::Pairs => (pairs(judge, corpus, &tally, most)?, 2.0),
        Surveyed::Verdicts => verdicts(judge, corpus, &tally, most)?,
    };
    Ok(tally.survey(share, growth))
}

/// Runs a search for all pairs. Returns the share of all pairs that was searched.
fn pairs(judge: Judge<'_>, corpus: &Corpus<'_>, tally: &Tally, most: u64) -> Result<f64> {
    let nodes = Nodes::of_pairs(corpus, CopyPairs::WithEarliest);
    let mut finder = PairFinder::new(judge, corpus, nodes)?;
    let ends = finder.firsts();
    let mut start = 0;
    while start < ends && tally.pairs() < most {
        let block = finder.block(start, ends);
        start = block.end as usize;
        block
            .into_par_iter()
            .try_for_each_init(Seen::default, |seen, rank| {
                finder.pairs_of(rank, seen).map(drop)
            })?;
        finder.learn()?;
    }
    Ok(share_of_pairs(corpus, start, ends))
}

/// Returns the share of all pairs whose earlier document is among the first `done` of `ends`.
fn share_of_pairs(corpus: &Corpus<'_>, done: usize, ends: usize) -> f64 {
    if done >= ends {
        return 1.0;
    }
    let (done, ends) = (done as f64, ends as f64);
    if corpus.given > 0 {
        return done / ends;
    }
    1.0 - ((ends - done) / ends).powi(2)
}

/// Runs a deduplication. Returns the share of the work that was done, and the exponent of its growth.
fn verdicts(judge: Judge<'_>, corpus: &Corpus<'_>, tally: &Tally, most: u64) -> Result<(f64, f64)> {
    // Pairs of the number of documents decided and the number of pairs compared until then.
    let mut course = vec![(0, 0)];
    Walk::new(judge, corpus)?.go(|decided, _| {
        course.push((decided, tally.pairs()));
        if tally.pairs() < most {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    })?;
    let &(done, _) = course.last().expect("it has a start");
    let growth = growth(&course);
    let share = done.max(1) as f64 / corpus.len().max(1) as f64;
    Ok((share.powf(growth), growth))
}

/// Returns the exponent with which counts grow between half of a course and its end: 1 if every
/// document is compared with a few kept ones, 2 if with all earlier ones.
fn growth(course: &[(usize, u64)]) -> f64 {
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
    if at_half < FEWEST {
        return MOST_GROWTH;
    }
    (all as f64 / at_half).log2().clamp(1.0, MOST_GROWTH)
}

const MOST_GROWTH: f64 = 2.0;

/// Number of pairs below which the growth cannot be estimated.
const FEWEST: f64 = 100.0;

/// Counters of comparisons, shared by all threads.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pairs: [AtomicU64; ROUTES.len()],
    matching: [AtomicU64; ROUTES.len()],
    nanoseconds: AtomicU64,
}

impl Tally {
    /// Runs and counts one comparison. Equal texts are not counted.
    pub(super) fn count<T>(
        &self,
        route: Route,
        compare: impl FnOnce() -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        if route == Route::Exact {
            return compare();
        }
        let begun = Instant::now();
        let found = compare()?;
        let nanoseconds = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let add = |to: &AtomicU64, count| to.fetch_add(count, Ordering::Relaxed);
        add(&self.nanoseconds, nanoseconds);
        add(&self.pairs[route as usize], 1);
        add(&self.matching[route as usize], u64::from(found.is_some()));
        Ok(found)
    }

    fn pairs(&self) -> u64 {
        let pairs = self.pairs.iter();
        pairs.map(|pairs| pairs.load(Ordering::Relaxed)).sum()
    }

    fn survey(self, share: f64, growth: f64) -> Survey {
        let counts = self.pairs.into_iter().zip(self.matching);
        let counts = counts.map(|(pairs, matching)| ComparedPairs {
            pairs: pairs.into_inner(),
            matching: matching.into_inner(),
        });
        let mut by_route: Vec<_> = ROUTES.into_iter().zip(counts).collect();
        by_route.retain(|(_, counts)| counts.pairs > 0);
        by_route.sort_by_key(|(route, _)| route.name());
        Survey {
            by_route,
            comparing: Duration::from_nanos(self.nanoseconds.into_inner()),
            share,
            growth,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_read_off_the_second_half() {
        let course = |of: &dyn Fn(u64) -> u64| -> Vec<(usize, u64)> {
            let ends = [0, 32, 96, 224, 1000, 3000, 5000, 10_000];
            ends.iter().map(|&at| (at as usize, of(at))).collect()
        };
        let close = |found: f64, expected: f64| (found - expected).abs() < 0.1;
        assert!(close(growth(&course(&|at| 3 * at)), 1.0));
        assert!(close(growth(&course(&|at| at * at / 2)), 2.0));
        assert!(close(growth(&course(&|at| at.pow(3) / 1000)), 2.0));
        assert!(close(growth(&course(&|_| 500)), 1.0));
        // Too few pairs to estimate, or none.
        assert!(close(growth(&course(&|at| at / 100)), 2.0));
        assert!(close(growth(&[(0, 0)]), 2.0));
        assert!(close(growth(&[]), 2.0));
    }
}
