//! Sorting hashes.
//!
//! Hashes are spread evenly, so one pass that puts every value into the bucket of its upper bits
//! leaves a value or two to a bucket, and an insertion sort over the whole finishes. Values that
//! are not spread evenly fall back to a comparison sort.

/// Below this buckets are not worth setting up.
const FEW: usize = 48;

/// Up to this many values a place is counted for each.
const TINY: usize = 20;

/// A bucket of more values than this shows that the values are not spread evenly.
const CROWDED: u32 = 24;

/// Sorts values that are spread evenly over 64 bits; correct for any.
pub(super) fn sort_hashes(values: &mut [u64]) {
    if values.len() <= TINY {
        return sort_tiny(values);
    }
    if values.len() < FEW || values.len() > u32::MAX as usize {
        values.sort_unstable();
        return;
    }
    let bits = values.len().ilog2();
    let bucket = |value: u64| (value >> (64 - bits)) as usize;
    let mut ends = vec![0u32; 1 << bits];
    values.iter().for_each(|&value| ends[bucket(value)] += 1);
    let mut end = 0;
    let mut most = 0;
    for count in &mut ends {
        most = most.max(*count);
        end += std::mem::replace(count, end);
    }
    if most > CROWDED {
        values.sort_unstable();
        return;
    }
    let mut sorted = vec![0; values.len()];
    for &value in values.iter() {
        let at = &mut ends[bucket(value)];
        sorted[*at as usize] = value;
        *at += 1;
    }
    values.copy_from_slice(&sorted);
    insertion_sort(values);
}

/// Every value goes to the place that the number of smaller ones tells: quadratic, but without a
/// branch that depends on the values, which hashes would make unpredictable.
fn sort_tiny(values: &mut [u64]) {
    let mut copy = [0; TINY];
    let copy = &mut copy[..values.len()];
    copy.copy_from_slice(values);
    for (at, &value) in copy.iter().enumerate() {
        let (before, behind) = copy.split_at(at);
        let place = before
            .iter()
            .map(|&other| usize::from(other <= value))
            .sum::<usize>()
            + behind
                .iter()
                .map(|&other| usize::from(other < value))
                .sum::<usize>();
        values[place] = value;
    }
}

/// Linear for values that are at most a bucket away from their place.
fn insertion_sort(values: &mut [u64]) {
    for at in 1..values.len() {
        let value = values[at];
        let mut hole = at;
        while hole > 0 && values[hole - 1] > value {
            values[hole] = values[hole - 1];
            hole -= 1;
        }
        values[hole] = value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::mix;

    #[test]
    fn sorts_like_the_library() {
        for length in (0..300).chain([1000, 5000]) {
            let even: Vec<u64> = (0..length).map(mix).collect();
            let equal = vec![7; length as usize];
            let low: Vec<u64> = (0..length).rev().collect();
            let repeated: Vec<u64> = (0..length).map(|at| mix(at % 17)).collect();
            for mut values in [even, equal, low, repeated] {
                let mut expected = values.clone();
                expected.sort_unstable();
                sort_hashes(&mut values);
                assert_eq!(values, expected);
            }
        }
    }
}
