//! Sorting of hashes without repetitions.
//!
//! Hashes are evenly distributed, so they can be sorted while they are inserted into a table of twice their
//! number. The upper bits of a value give its position, and larger values in its way move up. A value that is
//! already in the table is dropped, so repetitions cost little. Values that are not evenly distributed, and
//! lists so long that the table would take more memory than anything else, are sorted in place.

/// Largest number of values that are sorted by counting the smaller ones of each.
const MOST_COUNTED_VALUES: usize = 20;

/// Largest number of values that are sorted with a table, which takes up to 32 bytes per value.
const MOST_TABLE_VALUES: usize = 1 << 23;

/// Distance between a value and its position that proves an uneven distribution.
const FAR_DISTANCE: usize = 64;

/// Sorts the values from `start` on and keeps one of each. It is fast for values that are evenly distributed
/// over 64 bits, and correct for any.
pub(super) fn sort_distinct(values: &mut Vec<u64>, start: usize) {
    if values.len() - start <= MOST_COUNTED_VALUES {
        sort_tiny_list(&mut values[start..]);
    } else if let Some(distinct) = sort_by_table(&mut values[start..]) {
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

/// Marks an empty position of the table.
const FREE_POSITION: u64 = u64::MAX;

/// Moves the distinct values to the front, ascending, and returns their number. Returns `None` and leaves the
/// values unchanged if they are not evenly distributed or too many.
fn sort_by_table(values: &mut [u64]) -> Option<usize> {
    if values.len() > MOST_TABLE_VALUES {
        return None;
    }
    let bits = (2 * values.len()).next_power_of_two().ilog2();
    let mut table = vec![FREE_POSITION; (1 << bits) + FAR_DISTANCE];
    let mut has_greatest = false;
    for &value in values.iter() {
        if value == FREE_POSITION {
            has_greatest = true;
            continue;
        }
        let home = (value >> (64 - bits)) as usize;
        let mut value = value;
        let placed = table[home..home + FAR_DISTANCE].iter_mut().any(|place| {
            if *place < value {
                return false;
            }
            let before = std::mem::replace(place, value);
            let placed = before == FREE_POSITION || before == value;
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
        distinct += usize::from(value != FREE_POSITION);
    }
    if has_greatest {
        values[distinct] = FREE_POSITION;
        distinct += 1;
    }
    Some(distinct)
}

/// Moves every value to the position given by the number of smaller values. This is quadratic but has no
/// branch that depends on the values, which would be unpredictable for hashes.
fn sort_tiny_list(values: &mut [u64]) {
    let mut copy = [0; MOST_COUNTED_VALUES];
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
    use crate::hash::mix_bits;

    #[test]
    fn sort_equals_the_standard_library() {
        for length in (0..300).chain([1000, 5000]) {
            let even: Vec<u64> = (0..length).map(mix_bits).collect();
            let equal = vec![7; length as usize];
            let greatest: Vec<u64> = (0..length)
                .map(|at| mix_bits(at) | u64::MAX << (at % 65).min(63))
                .collect();
            let zeros = vec![0; length as usize];
            let low: Vec<u64> = (0..length).rev().collect();
            let high: Vec<u64> = (0..length).map(|at| u64::MAX - at).collect();
            let repeated: Vec<u64> = (0..length).map(|at| mix_bits(at % 17)).collect();
            let mixed: Vec<u64> = (0..length)
                .map(|at| mix_bits(at % 100).wrapping_mul(at % 3))
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
