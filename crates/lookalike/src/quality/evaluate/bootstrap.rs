//! Intervals by resampling (Efron 1979): how much a figure would vary with other texts of the same
//! kind.
//!
//! *Units* are drawn with replacement. A unit consists of texts that are connected. A pair within a
//! unit counts as often as the unit was drawn. A pair between two units counts as often as the product
//! of both draws (the pigeonhole bootstrap of Owen 2007), so dependent pairs stay together. The
//! interval consists of percentiles of the figure over the resamples in which it has a value.

use rayon::prelude::*;
use serde::Serialize;

use super::counts::ConfusionCounts;
use crate::hash::mix_bits;

/// Options of the intervals.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BootstrapOptions {
    /// Number of resamples; 0 makes no intervals.
    pub resamples: u32,
    /// Seed of the random draws.
    pub seed: u64,
    /// Share of resamples inside an interval, above 0 and below 1.
    pub confidence: f64,
}

impl Default for BootstrapOptions {
    fn default() -> Self {
        Self {
            resamples: 1000,
            seed: 1,
            confidence: 0.95,
        }
    }
}

/// The interval in which a figure lies in most resamples.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ConfidenceInterval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// A figure and its interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct MetricEstimate {
    /// The figure; `None` where it is not defined.
    pub value: Option<f64>,
    /// Interval; `None` without a value, without resamples, or with fewer than two units.
    pub interval: Option<ConfidenceInterval>,
}

/// Counts and the figures that follow from them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct MetricEstimates {
    /// Numbers of pairs that were found, missed and found wrongly.
    pub counts: ConfusionCounts,
    /// Share of found pairs that are similar.
    pub precision: MetricEstimate,
    /// Share of similar pairs that were found.
    pub recall: MetricEstimate,
    /// Harmonic mean of precision and recall.
    pub f1: MetricEstimate,
}

/// The cuts at which a pair is found, one bit each.
pub(super) type FoundAtCuts = u128;

/// Largest number of cuts that are counted together.
pub(super) const MOST_CUTS: usize = FoundAtCuts::BITS as usize;

/// A pair in the form that resampling needs.
#[derive(Clone, Copy, Debug)]
pub(super) struct PairObservation {
    /// Units of both texts.
    pub(super) units: [u32; 2],
    pub(super) similar: bool,
    pub(super) found: FoundAtCuts,
}

impl PairObservation {
    /// Returns how often the pair counts in a resample.
    fn resample_weight(&self, drawn: &[u32]) -> u64 {
        let [a, b] = self.units.map(|unit| u64::from(drawn[unit as usize]));
        if self.units[0] == self.units[1] {
            a
        } else {
            a * b
        }
    }
}

/// Returns how often each unit is drawn in a resample. It depends only on the seed and the number of
/// the resample, and not on the thread.
pub(super) fn draw_units(seed: u64, resample: u32, units: usize) -> Vec<u32> {
    let mut drawn = vec![0; units];
    let mut state = mix_bits(seed ^ mix_bits(u64::from(resample) + 1));
    for _ in 0..units {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        drawn[((u128::from(mix_bits(state)) * units as u128) >> 64) as usize] += 1;
    }
    drawn
}

/// Returns counts with intervals at every cut. Another `others` pairs are not similar and found at no
/// cut.
pub(super) fn estimate_metrics(
    observations: &[PairObservation],
    others: u64,
    cuts: usize,
    units: usize,
    bootstrap: &BootstrapOptions,
) -> Vec<MetricEstimates> {
    let counts = count_at_cuts(observations, others, cuts);
    let resampled = count_resamples(observations, cuts, units, bootstrap);
    let at = |cut: usize, of: fn(&ConfusionCounts) -> Option<f64>| MetricEstimate {
        value: of(&counts[cut]),
        interval: of(&counts[cut]).and_then(|_| {
            let values = resampled.iter().filter_map(|resample| of(&resample[cut]));
            percentile_interval(values.collect(), bootstrap.confidence)
        }),
    };
    (0..cuts)
        .map(|cut| MetricEstimates {
            counts: counts[cut],
            precision: at(cut, ConfusionCounts::precision),
            recall: at(cut, ConfusionCounts::recall),
            f1: at(cut, ConfusionCounts::f1_score),
        })
        .collect()
}

fn count_at_cuts(
    observations: &[PairObservation],
    others: u64,
    cuts: usize,
) -> Vec<ConfusionCounts> {
    let mut counts = tally_weighted(observations, cuts, |_| 1);
    counts.iter_mut().for_each(|at| at.true_negatives += others);
    counts
}

/// Returns the counts of every resample at every cut. Pairs that are neither similar nor found are left
/// out.
fn count_resamples(
    observations: &[PairObservation],
    cuts: usize,
    units: usize,
    bootstrap: &BootstrapOptions,
) -> Vec<Vec<ConfusionCounts>> {
    if units < 2 {
        return Vec::new();
    }
    (0..bootstrap.resamples)
        .into_par_iter()
        .map(|resample| {
            let drawn = draw_units(bootstrap.seed, resample, units);
            tally_weighted(observations, cuts, |pair| pair.resample_weight(&drawn))
        })
        .collect()
}

/// Counts pairs with weights at every cut. A pair is found over a few runs of neighbouring cuts. So
/// only the start and end of each run are recorded, and then summed up.
fn tally_weighted(
    observations: &[PairObservation],
    cuts: usize,
    weight: impl Fn(&PairObservation) -> u64,
) -> Vec<ConfusionCounts> {
    let mut changes = vec![[0i64; 2]; cuts];
    let mut all = [0i64; 2];
    for pair in observations {
        let weight = weight(pair) as i64;
        if weight == 0 {
            continue;
        }
        let column = usize::from(pair.similar);
        all[column] += weight;
        let mut borders = pair.found ^ (pair.found << 1);
        while borders != 0 {
            let at = borders.trailing_zeros() as usize;
            borders &= borders - 1;
            if at < cuts {
                let begins = pair.found >> at & 1 == 1;
                changes[at][column] += if begins { weight } else { -weight };
            }
        }
    }
    let mut found = [0i64; 2];
    changes
        .into_iter()
        .map(|[wrong, right]| {
            found = [found[0] + wrong, found[1] + right];
            ConfusionCounts {
                true_positives: found[1] as u64,
                false_positives: found[0] as u64,
                false_negatives: (all[1] - found[1]) as u64,
                true_negatives: (all[0] - found[0]) as u64,
            }
        })
        .collect()
}

/// Returns the percentiles around the middle, or `None` if there are no values.
pub(super) fn percentile_interval(
    mut values: Vec<f64>,
    confidence: f64,
) -> Option<ConfidenceInterval> {
    values.sort_by(f64::total_cmp);
    let outside = (1.0 - confidence) / 2.0;
    Some(ConfidenceInterval {
        low: percentile(&values, outside)?,
        high: percentile(&values, 1.0 - outside)?,
    })
}

/// Returns the value at a share of the way through a sorted list, interpolated linearly.
pub(super) fn percentile(sorted: &[f64], share: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let at = share * last as f64;
    let (below, above) = (at.floor() as usize, at.ceil() as usize);
    let rest = at - at.floor();
    Some(sorted[below] + (sorted[above] - sorted[below]) * rest)
}

/// Returns figures of sums over units, with intervals. `fixed` is added to every sum, whatever is
/// drawn.
pub(super) fn estimate_figures<const SUMS: usize, const FIGURES: usize>(
    units: &[[f64; SUMS]],
    fixed: [f64; SUMS],
    figures: impl Fn(&[f64; SUMS]) -> [Option<f64>; FIGURES] + Sync,
    bootstrap: &BootstrapOptions,
) -> [MetricEstimate; FIGURES] {
    let total = |weight: &dyn Fn(usize) -> f64| {
        let mut total = fixed;
        for (at, sums) in units.iter().enumerate() {
            let weight = weight(at);
            for (total, sum) in total.iter_mut().zip(sums) {
                *total += weight * sum;
            }
        }
        figures(&total)
    };
    let resamples = if units.len() < 2 {
        0
    } else {
        bootstrap.resamples
    };
    let resampled: Vec<_> = (0..resamples)
        .into_par_iter()
        .map(|resample| {
            let drawn = draw_units(bootstrap.seed, resample, units.len());
            total(&|unit| f64::from(drawn[unit]))
        })
        .collect();
    let values = total(&|_| 1.0);
    std::array::from_fn(|at| MetricEstimate {
        value: values[at],
        interval: values[at].and_then(|_| {
            let values = resampled.iter().filter_map(|all| all[at]);
            percentile_interval(values.collect(), bootstrap.confidence)
        }),
    })
}

/// In how large a share of resamples the first of two ways has the higher figure, of those in which
/// both have one; none if there are none.
pub(super) fn share_better(
    [first, second]: [&[PairObservation]; 2],
    units: usize,
    figure: fn(&ConfusionCounts) -> Option<f64>,
    bootstrap: &BootstrapOptions,
) -> Option<f64> {
    let value = |observations: &[PairObservation], drawn: &[u32]| {
        figure(&tally_weighted(observations, 1, |pair| pair.resample_weight(drawn))[0])
    };
    let outcomes: Vec<bool> = (0..bootstrap.resamples)
        .into_par_iter()
        .filter_map(|resample| {
            let drawn = draw_units(bootstrap.seed, resample, units);
            Some(value(first, &drawn)? > value(second, &drawn)?)
        })
        .collect();
    let better = outcomes.iter().filter(|&&better| better).count();
    (!outcomes.is_empty()).then(|| better as f64 / outcomes.len() as f64)
}
