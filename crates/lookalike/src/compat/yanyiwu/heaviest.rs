//! The heaviest of weighted words, in the order in which this tool takes them.
//!
//! The tool calls the C++ library's partial sort, which may put equally heavy words in any order and, at the
//! cut, may keep any of them. Words that are in no table all have the same weight, so this order decides many
//! fingerprints. This module does what the GNU library does. The first words form a heap with the lightest at
//! the top, and every later word that is heavier replaces the top. Then the heap is taken apart, with the
//! lightest words at the end.
//!
//! Cost: one comparison per word, and log(top) for every word that enters the heap.

/// The hash of a word and its weight.
pub(super) type WeighedWord = (u64, f64);

/// Keeps the `top` heaviest words, heaviest first.
pub(super) fn keep_heaviest(words: &mut Vec<WeighedWord>, top: usize) {
    let top = top.min(words.len());
    let (heap, rest) = words.split_at_mut(top);
    for root in (0..top / 2).rev() {
        let word = heap[root];
        sift_down(heap, root, word);
    }
    for &word in &*rest {
        if word.1 > heap[0].1 {
            sift_down(heap, 0, word);
        }
    }
    for last in (1..top).rev() {
        let word = heap[last];
        heap[last] = heap[0];
        sift_down(&mut heap[..last], 0, word);
    }
    words.truncate(top);
}

/// Inserts a word into the heap below an empty position. The lighter children move up along a path to the
/// bottom, and the word rises from there past the words that are heavier. Of equal children the second moves
/// up.
fn sift_down(heap: &mut [WeighedWord], root: usize, word: WeighedWord) {
    let mut place = root;
    loop {
        let (first, second) = (2 * place + 1, 2 * place + 2);
        let child = match heap.len() {
            length if second < length && heap[second].1 > heap[first].1 => first,
            length if second < length => second,
            length if first < length => first,
            _ => break,
        };
        heap[place] = heap[child];
        place = child;
    }
    while place > root {
        let above = (place - 1) / 2;
        if heap[above].1 <= word.1 {
            break;
        }
        heap[place] = heap[above];
        place = above;
    }
    heap[place] = word;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(weights: &[f64], top: usize) -> Vec<u64> {
        let mut words: Vec<_> = (0..).zip(weights.iter().copied()).collect();
        keep_heaviest(&mut words, top);
        words.into_iter().map(|(word, _)| word).collect()
    }

    #[test]
    fn heaviest_come_first_in_any_number() {
        for count in 0..40 {
            let weight = |at: u64| (crate::hash::mix_bits(at) % 1000) as f64 + at as f64 / 1000.0;
            let words: Vec<WeighedWord> = (0..count).map(|at| (at, weight(at))).collect();
            let mut sorted = words.clone();
            sorted.sort_by(|a, b| b.1.total_cmp(&a.1));
            for top in 1..=count as usize + 1 {
                let mut heaviest = words.clone();
                keep_heaviest(&mut heaviest, top);
                assert_eq!(heaviest, sorted[..top.min(sorted.len())]);
            }
        }
    }

    /// The expected results are those of `std::partial_sort` of GNU libstdc++ 12.
    #[test]
    fn ties_are_ordered_as_in_the_gnu_library() {
        let halves = [2.0, 1.0, 2.0, 1.0, 2.0, 1.0, 2.0, 1.0, 2.0];
        let thirds = [1.0, 2.0, 3.0, 3.0, 2.0, 1.0, 1.0, 2.0, 3.0, 3.0];
        for (weights, expected) in [
            (&[1.0; 7][..], &[0][..]),
            (&[1.0; 7], &[0, 1, 2]),
            (&[1.0; 7], &[3, 4, 1, 0, 2]),
            (&[1.0; 7], &[3, 4, 1, 0, 5, 2, 6]),
            (&halves, &[2, 0]),
            (&halves, &[0, 4, 6, 8, 2]),
            (&halves, &[8, 4, 0, 2, 6, 1, 3, 7, 5]),
            (&thirds, &[8, 3, 2]),
            (&thirds, &[3, 9, 8, 2, 1, 4, 7]),
            (&thirds, &[8, 3, 9, 2, 7, 1, 4, 0, 5]),
        ] {
            assert_eq!(kept(weights, expected.len()), expected, "{weights:?}");
        }
    }
}
