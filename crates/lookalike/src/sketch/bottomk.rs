//! Bottom-k: the k smallest hashes of a set, under a single hash (Broder 1997).
//!
//! The k smallest hashes of a union are a random sample of it, and can be computed from the k smallest hashes
//! of its parts. The share of the sample that both sets have is an unbiased estimate of their Jaccard index.
//! A union of at most k features is sampled completely, so the estimate is then exact. The sketch is the k
//! smallest features, because a feature is already a 64-bit hash.
//!
//! The ratios of textbooks, |Min(A) ∩ Min(B)| / |Min(A) ∪ Min(B)| over the minima of k hash functions or over
//! the k smallest values of one, are biased. They have functions of their own, so that they can be shown
//! beside the estimates.
//!
//! Cost: one comparison per feature, and occasionally a sort of a few hundred features.

use crate::similarity;
use crate::text::TextAnalysis;
use crate::types::Similarity;

/// Appends the `kept` smallest distinct features of a text, ascending, or all if it has fewer.
pub fn smallest_features(analysis: &TextAnalysis<'_>, kept: usize, into: &mut Vec<u64>) {
    let start = into.len();
    // Once the sketch is full, features from this one on cannot enter it.
    let mut limit = u64::MAX;
    let mut full = false;
    analysis.visit_chunks(|features| {
        for &feature in features {
            if feature < limit || !full {
                into.push(feature);
                if into.len() - start >= LISTED_PER_KEPT * kept {
                    keep_smallest(into, start, kept);
                    if into.len() - start == kept {
                        full = true;
                        limit = into[into.len() - 1];
                    }
                }
            }
        }
    });
    keep_smallest(into, start, kept);
}

/// The list of features is sorted once it has this many times `kept` entries.
const LISTED_PER_KEPT: usize = 4;

fn keep_smallest(into: &mut Vec<u64>, start: usize, kept: usize) {
    into[start..].sort_unstable();
    let mut distinct = start;
    for at in start..into.len() {
        if distinct == start || into[distinct - 1] != into[at] {
            into[distinct] = into[at];
            distinct += 1;
        }
    }
    into.truncate(distinct.min(start + kept));
}

/// Returns how many of the `kept` smallest hashes of the union both sketches have, and the number of these
/// hashes, which is below `kept` if the union is smaller. The quotient of the two is an unbiased estimate of
/// the Jaccard index.
pub fn shared_smallest(a: &[u64], b: &[u64], kept: usize) -> (usize, usize) {
    let (mut i, mut j, mut shared, mut all) = (0, 0, 0, 0);
    while all < kept && (i < a.len() || j < b.len()) {
        let x = a.get(i).copied().unwrap_or(u64::MAX);
        let y = b.get(j).copied().unwrap_or(u64::MAX);
        let (in_a, in_b) = (i < a.len() && x <= y, j < b.len() && y <= x);
        shared += usize::from(in_a && in_b);
        all += 1;
        i += usize::from(in_a);
        j += usize::from(in_b);
    }
    (shared, all)
}

/// Returns an unbiased estimate of the Jaccard index of two sets from their `kept` smallest hashes. It is
/// exact while the union has at most `kept` features.
///
/// ```
/// use lookalike::sketch::bottom_k_jaccard;
///
/// // Among the 3 smallest hashes of the union, 1, 2 and 3, two are in both.
/// assert_eq!(bottom_k_jaccard(&[1, 2, 3], &[2, 3, 4], 3).get(), 2.0 / 3.0);
/// ```
pub fn bottom_k_jaccard(a: &[u64], b: &[u64], kept: usize) -> Similarity {
    let (shared, all) = shared_smallest(a, b, kept);
    Similarity::from_ratio(shared, all)
}

/// Returns an estimate of |A ∩ B| / |A| from the `kept` smallest hashes of both sets: among the hashes of A
/// in the range that both sketches cover, the share that B has too. It is exact while neither set has more
/// than `kept` features, and 0 if A is empty.
pub fn bottom_k_containment(a: &[u64], b: &[u64], kept: usize) -> Similarity {
    let reach = |hashes: &[u64]| match hashes.last() {
        Some(&last) if hashes.len() >= kept => last,
        _ => u64::MAX,
    };
    let reach = reach(a).min(reach(b));
    let within = |hashes: &[u64]| hashes.partition_point(|&hash| hash <= reach);
    let (a, b) = (&a[..within(a)], &b[..within(b)]);
    Similarity::from_ratio(similarity::intersection(a, b), a.len())
}

/// Returns the ratio of textbooks, |Min(A) ∩ Min(B)| / |Min(A) ∪ Min(B)|, over the k smallest values of one
/// hash. It is biased, because values of one sketch beyond the range of the other count as missing.
pub fn textbook_bottom_k(a: &[u64], b: &[u64]) -> Similarity {
    similarity::jaccard_index(a, b)
}

/// Returns the ratio of textbooks, |Min(A) ∩ Min(B)| / |Min(A) ∪ Min(B)|, over the sets of minima of k hash
/// functions, from two signatures. It is biased: if the share J of the slots is equal, the ratio is about J /
/// (2 − J).
pub fn textbook_k_minima(a: &[u32], b: &[u32]) -> Similarity {
    let set = |signature: &[u32]| {
        let mut values: Vec<u64> = signature.iter().map(|&value| value.into()).collect();
        values.sort_unstable();
        values.dedup();
        values
    };
    similarity::jaccard_index(&set(a), &set(b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::mix_bits;

    fn smallest(set: impl IntoIterator<Item = u64>, kept: usize) -> Vec<u64> {
        let mut hashes: Vec<u64> = set.into_iter().collect();
        keep_smallest(&mut hashes, 0, kept);
        hashes
    }

    /// S1 = {a, d}, S2 = {c}, S3 = {b, d, e}, S4 = {a, c, d} under the order b, e, a, d, c.
    #[test]
    fn permutation_equals_the_textbook() {
        let order = ['b', 'e', 'a', 'd', 'c'];
        let least = |set: &str| {
            let place = |element| order.iter().position(|&other| other == element).unwrap() as u64;
            let hashes = smallest(set.chars().map(place), 1);
            order[hashes[0] as usize]
        };
        assert_eq!(["ad", "c", "bde", "acd"].map(least), ['a', 'c', 'b', 'a']);
    }

    /// Returns the hashes of two sets that share `shared` features and have `a` and `b` features of their
    /// own.
    fn sets(shared: u64, a: u64, b: u64, seed: u64) -> [Vec<u64>; 2] {
        let hash = move |at: u64| mix_bits(mix_bits(seed) ^ at);
        let own = |from: u64, count: u64| {
            (0..shared)
                .chain(from..from + count)
                .map(hash)
                .collect::<Vec<_>>()
        };
        [own(1 << 30, a), own(1 << 31, b)]
    }

    #[test]
    fn small_union_is_exact() {
        for (shared, a, b) in [
            (80, 20, 28),
            (0, 64, 64),
            (128, 0, 0),
            (1, 0, 0),
            (100, 28, 0),
        ] {
            let [a_hashes, b_hashes] = sets(shared, a, b, 1).map(|set| smallest(set, 128));
            let jaccard = shared as f64 / (shared + a + b) as f64;
            assert_eq!(bottom_k_jaccard(&a_hashes, &b_hashes, 128).get(), jaccard);
            let containment = shared as f64 / (shared + a) as f64;
            assert_eq!(
                bottom_k_containment(&a_hashes, &b_hashes, 128).get(),
                containment
            );
        }
        assert_eq!(bottom_k_jaccard(&[], &[], 128).get(), 0.0);
        assert_eq!(bottom_k_containment(&[], &[3], 128).get(), 0.0);
    }

    /// Over many sets, the mean of an estimate is within four standard errors of the truth.
    #[test]
    fn estimates_are_unbiased() {
        const ROUNDS: u64 = 3000;
        let kept = 64;
        for (shared, a, b) in [
            (400, 50, 50),
            (200, 200, 50),
            (100, 1000, 10),
            (50, 300, 400),
        ] {
            let jaccard = shared as f64 / (shared + a + b) as f64;
            let containment = shared as f64 / (shared + a) as f64;
            let (mut sum_j, mut sum_c, mut textbook) = (0.0, 0.0, 0.0);
            for round in 0..ROUNDS {
                let [a, b] = sets(shared, a, b, round).map(|set| smallest(set, kept));
                let estimate = bottom_k_jaccard(&a, &b, kept).get();
                let error = (jaccard * (1.0 - jaccard) / kept as f64).sqrt();
                assert!(
                    (estimate - jaccard).abs() < 5.5 * error.max(0.02),
                    "{estimate} {jaccard}"
                );
                sum_j += estimate;
                sum_c += bottom_k_containment(&a, &b, kept).get();
                textbook += textbook_bottom_k(&a, &b).get();
            }
            let mean = |sum: f64| sum / ROUNDS as f64;
            let error = |p: f64, of: f64| 4.0 * (p * (1.0 - p) / of / ROUNDS as f64).sqrt();
            let off = (mean(sum_j) - jaccard).abs();
            assert!(off < error(jaccard, kept as f64), "Jaccard: {off}");
            // As a rule, at least this many hashes of A are in the range that both sketches cover.
            let sample = kept as f64 * (shared + a).min(shared + b) as f64
                / (shared + b).max(shared + a) as f64;
            let off = (mean(sum_c) - containment).abs();
            assert!(
                off < error(containment, sample) + 0.002,
                "containment: {off}"
            );
            if a != b {
                let off = (mean(textbook) - jaccard).abs();
                assert!(
                    off > error(jaccard, kept as f64),
                    "the textbook's ratio is biased: {off}"
                );
            }
        }
    }

    #[test]
    fn sketch_is_the_start_of_the_sorted_set() {
        use crate::recipe::Recipe;
        use crate::text::{AnalysisScratch, TextAnalyzer};
        let analyzer = TextAnalyzer::new(&Recipe::built_in("words-1").unwrap());
        let mut scratch = AnalysisScratch::default();
        for (words, distinct) in [(0, 1), (1, 1), (5, 3), (200, 150), (3000, 2500), (5000, 20)] {
            let text: String = (0..words)
                .map(|at| format!("w{} ", mix_bits(at) % distinct))
                .collect();
            let analysis = analyzer.analyze_text(&text, &mut scratch);
            let mut all = Vec::new();
            analysis.append_features(&mut all);
            for kept in [16, 17, 64, 128] {
                let mut sketch = vec![7];
                smallest_features(&analysis, kept, &mut sketch);
                assert_eq!(sketch[0], 7);
                assert_eq!(sketch[1..], all[..kept.min(all.len())]);
            }
        }
    }

    #[test]
    fn ratios_of_minima_equal_the_textbook() {
        assert_eq!(
            textbook_k_minima(&[1, 2, 3, 4], &[1, 2, 9, 8]).get(),
            2.0 / 6.0
        );
        assert_eq!(textbook_k_minima(&[1, 1, 1], &[1, 1, 1]).get(), 1.0);
        assert_eq!(textbook_bottom_k(&[1, 2, 3], &[2, 3, 4]).get(), 0.5);
        assert_eq!(shared_smallest(&[1, 2, 3], &[2, 3, 4], 3), (2, 3));
        assert_eq!(shared_smallest(&[1, 2, 3], &[2, 3, 4], 2), (1, 2));
        assert_eq!(shared_smallest(&[1], &[u64::MAX], 5), (0, 2));
    }
}
