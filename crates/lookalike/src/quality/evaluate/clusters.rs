//! Scores of predicted clusters against true ones.

use std::collections::BTreeMap;

use serde::Serialize;

use super::bootstrap::{BootstrapOptions, MetricEstimate, estimate_figures};
use crate::candidates::UnionFind;
use crate::error::{Error, Result};

/// Precision, recall and their harmonic mean, of something other than single pairs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct AveragedMetrics {
    /// Share of what the prediction puts together that belongs together.
    pub precision: MetricEstimate,
    /// Share of what belongs together that the prediction puts together.
    pub recall: MetricEstimate,
    /// Harmonic mean of precision and recall.
    pub f1: MetricEstimate,
}

/// Scores of predicted clusters against true ones.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ClusterScores {
    /// Number of documents compared.
    pub documents: u64,
    /// Number of predicted clusters of at least two documents.
    pub predicted: u64,
    /// Number of true clusters of at least two documents.
    pub truth: u64,
    /// Number of clusters of at least two documents that are the same in both.
    pub exact: u64,
    /// Scores over pairs of documents: together in the prediction against together in truth.
    pub pairwise: AveragedMetrics,
    /// B-cubed (Bagga and Baldwin 1998): for every document, the share of its predicted cluster that is
    /// in its true one, and vice versa, averaged over all documents.
    pub b_cubed: AveragedMetrics,
    /// Scores over clusters of at least two documents that are the same in both.
    pub exact_set: AveragedMetrics,
}

/// The sums over units.
#[derive(Clone, Copy)]
enum UnitSum {
    Documents,
    PairsInBoth,
    PairsPredicted,
    PairsTrue,
    SharesPredicted,
    SharesTrue,
    SetsInBoth,
    SetsPredicted,
    SetsTrue,
}

type UnitSums = [f64; 9];

/// Scores predicted clusters.
///
/// `predicted` and `truth` hold the cluster number of every document; the numbers are arbitrary, and a
/// document by itself has a number of its own. Another `alone` documents are by themselves in both.
/// They count in the averages of B-cubed and nowhere else. Units of resampling are documents connected
/// by clusters of either kind.
///
/// ```
/// use lookalike::quality::evaluate::{BootstrapOptions, compare_clusters};
///
/// // Documents 0, 1 and 2 belong together; the prediction puts 2 by itself.
/// let scores = compare_clusters(&[1, 1, 2], &[7, 7, 7], 0, &BootstrapOptions::default())?;
/// assert_eq!(scores.pairwise.precision.value, Some(1.0));
/// assert_eq!(scores.pairwise.recall.value, Some(1.0 / 3.0));
/// # Ok::<_, lookalike::Error>(())
/// ```
///
/// # Errors
/// Fails if the two lists have different lengths.
pub fn compare_clusters(
    predicted: &[u64],
    truth: &[u64],
    alone: u64,
    bootstrap: &BootstrapOptions,
) -> Result<ClusterScores> {
    if predicted.len() != truth.len() {
        return Err(Error::setting_error(format!(
            "{} documents have a predicted cluster and {} a true one: both need the same documents",
            predicted.len(),
            truth.len()
        )));
    }
    let units = sums_of_units(predicted, truth);
    let mut fixed = UnitSums::default();
    for sum in [
        UnitSum::Documents,
        UnitSum::SharesPredicted,
        UnitSum::SharesTrue,
    ] {
        fixed[sum as usize] = alone as f64;
    }
    let total = |sum: UnitSum| units.iter().map(|unit| unit[sum as usize]).sum::<f64>() as u64;
    let [pairwise, b_cubed, exact_set] = estimate_averages(&units, fixed, bootstrap);
    Ok(ClusterScores {
        documents: total(UnitSum::Documents) + alone,
        predicted: total(UnitSum::SetsPredicted),
        truth: total(UnitSum::SetsTrue),
        exact: total(UnitSum::SetsInBoth),
        pairwise,
        b_cubed,
        exact_set,
    })
}

fn estimate_averages(
    units: &[UnitSums],
    fixed: UnitSums,
    bootstrap: &BootstrapOptions,
) -> [AveragedMetrics; 3] {
    use UnitSum::{
        Documents, PairsInBoth, PairsPredicted, PairsTrue, SetsInBoth, SetsPredicted, SetsTrue,
        SharesPredicted, SharesTrue,
    };
    let of = |sums: &UnitSums| {
        let ratio = |part: UnitSum, whole: UnitSum| {
            let (part, whole) = (sums[part as usize], sums[whole as usize]);
            (whole > 0.0).then(|| part / whole)
        };
        let [pairs, shares, sets] = [
            [
                ratio(PairsInBoth, PairsPredicted),
                ratio(PairsInBoth, PairsTrue),
            ],
            [
                ratio(SharesPredicted, Documents),
                ratio(SharesTrue, Documents),
            ],
            [
                ratio(SetsInBoth, SetsPredicted),
                ratio(SetsInBoth, SetsTrue),
            ],
        ];
        let mean = harmonic_mean;
        [
            pairs[0],
            pairs[1],
            mean(pairs),
            shares[0],
            shares[1],
            mean(shares),
            sets[0],
            sets[1],
            mean(sets),
        ]
    };
    let estimates: [MetricEstimate; 9] = estimate_figures(units, fixed, of, bootstrap);
    std::array::from_fn(|at| AveragedMetrics {
        precision: estimates[3 * at],
        recall: estimates[3 * at + 1],
        f1: estimates[3 * at + 2],
    })
}

/// Returns the harmonic mean, as for pairs: 0 if one of the two has no value or both are 0, and `None`
/// if neither has a value.
fn harmonic_mean([precision, recall]: [Option<f64>; 2]) -> Option<f64> {
    if precision.is_none() && recall.is_none() {
        return None;
    }
    let (precision, recall) = (precision.unwrap_or(0.0), recall.unwrap_or(0.0));
    let sum = precision + recall;
    Some(if sum > 0.0 {
        2.0 * precision * recall / sum
    } else {
        0.0
    })
}

fn sums_of_units(predicted: &[u64], truth: &[u64]) -> Vec<UnitSums> {
    let [in_predicted, in_truth] = [cluster_members(predicted), cluster_members(truth)];
    let unit_of = connect_units(
        predicted.len(),
        in_predicted.values().chain(in_truth.values()),
    );
    let count = unit_of.iter().max().map_or(0, |&last| last + 1);
    let mut sums = vec![UnitSums::default(); count];
    for (clusters, pairs, sets) in [
        (
            &in_predicted,
            UnitSum::PairsPredicted,
            UnitSum::SetsPredicted,
        ),
        (&in_truth, UnitSum::PairsTrue, UnitSum::SetsTrue),
    ] {
        for members in clusters.values() {
            let unit = &mut sums[unit_of[members[0]]];
            unit[pairs as usize] += choose_two(members.len());
            unit[sets as usize] += f64::from(u8::from(members.len() > 1));
        }
    }
    for ((cluster, true_cluster), (first, shared)) in count_overlaps(predicted, truth) {
        let unit = &mut sums[unit_of[first]];
        let (size, true_size) = (in_predicted[&cluster].len(), in_truth[&true_cluster].len());
        let is_same = shared > 1 && shared == size && shared == true_size;
        unit[UnitSum::Documents as usize] += shared as f64;
        unit[UnitSum::PairsInBoth as usize] += choose_two(shared);
        unit[UnitSum::SetsInBoth as usize] += f64::from(u8::from(is_same));
        // Each of the shared documents shares its cluster with this many documents.
        unit[UnitSum::SharesPredicted as usize] += (shared * shared) as f64 / size as f64;
        unit[UnitSum::SharesTrue as usize] += (shared * shared) as f64 / true_size as f64;
    }
    sums
}

fn choose_two(count: usize) -> f64 {
    (count * count.saturating_sub(1)) as f64 / 2.0
}

/// Returns the documents of every cluster.
fn cluster_members(clusters: &[u64]) -> BTreeMap<u64, Vec<usize>> {
    let mut members: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    for (document, &cluster) in clusters.iter().enumerate() {
        members.entry(cluster).or_default().push(document);
    }
    members
}

/// Returns, for every predicted and true cluster that share documents, one of these and their number.
fn count_overlaps(predicted: &[u64], truth: &[u64]) -> BTreeMap<(u64, u64), (usize, usize)> {
    let mut overlaps = BTreeMap::new();
    for (document, (&cluster, &true_cluster)) in predicted.iter().zip(truth).enumerate() {
        let (_, shared) = overlaps
            .entry((cluster, true_cluster))
            .or_insert((document, 0));
        *shared += 1;
    }
    overlaps
}

/// Returns the number of every document's unit. Units are numbered by their first documents.
fn connect_units<'a>(
    documents: usize,
    clusters: impl Iterator<Item = &'a Vec<usize>>,
) -> Vec<usize> {
    let mut sets = UnionFind::with_members(documents);
    for members in clusters {
        members
            .windows(2)
            .for_each(|pair| sets.union_sets(pair[0] as u32, pair[1] as u32));
    }
    let mut numbers = BTreeMap::new();
    (0..documents as u32)
        .map(|document| {
            let next = numbers.len();
            *numbers.entry(sets.find_root(document)).or_insert(next)
        })
        .collect()
}
