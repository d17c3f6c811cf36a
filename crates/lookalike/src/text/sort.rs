//! The distinct values of a list of hashes, in ascending order.
//!
//! Hashes are spread evenly, so a table of twice their number in which a value stands at the place
//! that its upper bits name, or a little behind it, is sorted as it is filled: a larger value on the
//! way makes room. Repeated values are met on the way and dropped, so it does not matter how many
//! there are. Values that are not spread evenly, and so many that the table would take more memory
//! than anything else, are sorted where they stand.

/// Up to this many values a place is counted for each.
const TINY: usize = 20;

/// More values are sorted without a table, whose size is up to 32 bytes a value.
const MOST: usize = 1 << 23;

/// A value further from its place than this shows that the values are not spread evenly.
const FAR: usize = 64;

/// Sorts what stands from `start` on and keeps every value once. Fast for values that are spread
/// evenly over 64 bits, correct for any.
pub(super) fn sort_distinct(values: &mut Vec<u64>, start: usize) {
    if values.len() - start <= TINY {
        sort_tiny(&mut values[start..]);
    } else if let Some(distinct) = by_table(&mut values[start..]) {
        values.truncate(start + distinct);
        return;
    } else {
        values[start..].sort_unstable();
    }
    let sorted = &mut values[start..];
    let mut distinct = sorted.len().min(1);
    for at in 1..sorted.len() {
        sorted[distinct] = sorted[at];
        distinct += usize::from(sorted[at] != sorted[distinct - 1]);
    }
    values.truncate(start + distinct);
}

/// Stands where no value is.
const FREE: u64 = u64::MAX;

/// Puts the distinct values to the front, ascending, and returns how many they are. None, with the
/// values as they were, if they are not spread evenly or too many.
fn by_table(values: &mut [u64]) -> Option<usize> {
    if values.len() > MOST {
        return None;
    }
    let bits = (2 * values.len()).next_power_of_two().ilog2();
    let mut table = vec![FREE; (1 << bits) + FAR];
    let mut has_greatest = false;
    for &value in values.iter() {
        if value == FREE {
            has_greatest = true;
            continue;
        }
        let home = (value >> (64 - bits)) as usize;
        let mut value = value;
        let placed = table[home..home + FAR].iter_mut().any(|place| {
            if *place < value {
                return false;
            }
            let before = std::mem::replace(place, value);
            let placed = before == FREE || before == value;
            value = before;
            placed
        });
        if !placed {
            return None;
        }
    }
    let mut distinct = 0;
    for &value in &table {
        let Some(place) = values.get_mut(distinct) else {
            break;
        };
        *place = value;
        distinct += usize::from(value != FREE);
    }
    if has_greatest {
        values[distinct] = FREE;
        distinct += 1;
    }
    Some(distinct)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::mix;

    #[test]
    fn sorts_like_the_library() {
        for length in (0..300).chain([1000, 5000]) {
            let even: Vec<u64> = (0..length).map(mix).collect();
            let equal = vec![7; length as usize];
            let greatest: Vec<u64> = (0..length)
                .map(|at| mix(at) | u64::MAX << (at % 65).min(63))
                .collect();
            let zeros = vec![0; length as usize];
            let low: Vec<u64> = (0..length).rev().collect();
            let high: Vec<u64> = (0..length).map(|at| u64::MAX - at).collect();
            let repeated: Vec<u64> = (0..length).map(|at| mix(at % 17)).collect();
            let mixed: Vec<u64> = (0..length)
                .map(|at| mix(at % 100).wrapping_mul(at % 3))
                .collect();
            for values in [even, equal, zeros, greatest, low, high, repeated, mixed] {
                let mut expected = values.clone();
                expected.sort_unstable();
                expected.dedup();
                let mut values = [vec![9, 9, 5], values].concat();
                sort_distinct(&mut values, 3);
                assert_eq!(values[..3], [9, 9, 5]);
                assert_eq!(values[3..], expected);
            }
        }
    }
}
