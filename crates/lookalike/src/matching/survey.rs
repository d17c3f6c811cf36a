//! How much a plan compares, counted on a sample.

use std::time::{Duration, Instant};

use rayon::prelude::*;

use super::groups::Rank;
use super::judge::Route;
use super::portions::Portions;
use super::walk::{Corpus, PairFinder, Seen};
use crate::error::Result;

/// Pairs of a route.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ComparedPairs {
    /// Pairs that were compared by their features or texts.
    pub pairs: u64,
    /// Those of them that match.
    pub matching: u64,
}

/// What finding the pairs of a corpus takes; of equal texts the first stands for all.
#[derive(Clone, Debug, Default)]
pub struct Survey {
    /// Documents that an earlier one with an equal text stands for.
    pub equal: usize,
    /// The share of all pairs that was gone through: below 1 if there were too many to compare.
    pub share: f64,
    /// What was compared, by the routes that pairs were found by.
    pub by_route: Vec<(Route, ComparedPairs)>,
    /// How long threads compared pairs, all together.
    pub comparing: Duration,
}

impl Survey {
    fn take(&mut self, route: Route, matches: bool) {
        let at = self.by_route.iter().position(|&(of, _)| of == route);
        let at = at.unwrap_or_else(|| {
            self.by_route.push((route, ComparedPairs::default()));
            self.by_route.len() - 1
        });
        let compared = &mut self.by_route[at].1;
        compared.pairs += 1;
        compared.matching += u64::from(matches);
    }

    fn pairs(&self) -> u64 {
        self.by_route.iter().map(|(_, of)| of.pairs).sum()
    }
}

/// Counts the pairs that a plan compares, and goes no further when it has compared `most`.
///
/// # Errors
/// If what a document is compared by cannot be had again.
pub fn survey(corpus: &Corpus<'_>, most: u64) -> Result<Survey> {
    let finder = PairFinder::new(Portions::default(), corpus, false)?;
    let ends = finder.firsts();
    let mut survey = Survey {
        equal: finder.equal(),
        ..Survey::default()
    };
    let mut start = 0;
    while start < ends && survey.pairs() < most {
        let block = finder.block(start, ends);
        start = block.end as usize;
        let compared: Vec<(Vec<(Route, bool)>, Duration)> = block
            .into_par_iter()
            .map_init(Seen::default, |seen, rank| compare(&finder, rank, seen))
            .collect::<Result<_>>()?;
        for (pairs, time) in compared {
            survey.comparing += time;
            for (route, matches) in pairs {
                survey.take(route, matches);
            }
        }
    }
    survey.share = share_of_pairs(corpus, start, ends);
    survey.by_route.sort_by_key(|(route, _)| route.name());
    Ok(survey)
}

fn compare(
    finder: &PairFinder<'_>,
    rank: Rank,
    seen: &mut Seen,
) -> Result<(Vec<(Route, bool)>, Duration)> {
    let candidates = finder.candidates_of(rank, seen);
    if candidates.is_empty() {
        return Ok((Vec::new(), Duration::ZERO));
    }
    let begun = Instant::now();
    let compared = candidates.into_iter().map(|(other, route)| {
        let similarity = finder.similarity(rank, other, route)?;
        Ok((route, similarity.is_some()))
    });
    Ok((compared.collect::<Result<_>>()?, begun.elapsed()))
}

/// The share of all pairs whose earlier document is among the first `done` of `ends`.
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
