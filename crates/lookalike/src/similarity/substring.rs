//! The longest common substring: the longest run of symbols that occurs in both texts.
//!
//! If the run must have at least L symbols, it covers one of the positions 0, L, 2L, … of the shorter text.
//! For each of these positions, linear time suffices to find how far the texts agree before and behind it, at
//! every position of the other text (the Z algorithm; Main and Lorentz 1984). A similarity of t means at most
//! 1/t + 1 such positions, so the cost is linear in the texts, whatever they contain. Without a least length,
//! the suffix automaton of the shorter text (Blumer et al. 1985) reads the other text. This is also linear,
//! but takes about 120 bytes per symbol.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::budget::StepBudget;
use super::edit::{MOST_STEPS, SequenceSymbol};
use crate::error::{Error, ErrorKind, Result};
use crate::hash::mix_bits;

/// Largest number of symbols of the shorter text if no least length is given; this takes about 2 GiB of
/// memory.
pub const MOST_SYMBOLS: usize = 1 << 24;

/// Returns the length of the longest common substring if it is at least `least`; 0 counts as 1.
///
/// # Errors
/// [`ErrorKind::Limit`] if `least` is so small compared with the texts that it takes more than [`MOST_STEPS`]
/// steps.
pub(super) fn longest_of_at_least<S: SequenceSymbol>(
    a: &[S],
    b: &[S],
    least: usize,
    budget: &mut StepBudget,
) -> Result<Option<usize>> {
    let (less, more) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    let least = least.max(1);
    if less.len() < least {
        return Ok(None);
    }
    let places = less.len() / least + 1;
    let steps = places as u64 * (a.len() + b.len()) as u64;
    if steps > MOST_STEPS {
        return Err(Error::new(
            ErrorKind::Limit,
            format!(
                "finding common substrings of {least} or more symbols of two texts of {} and {} \
                 takes more than {MOST_STEPS} steps: give a higher threshold, or compare by words",
                less.len(),
                more.len(),
            ),
        ));
    }
    budget.take(steps)?;
    let (less_reversed, more_reversed) = (reverse_symbols(less), reverse_symbols(more));
    let (mut behind, mut before) = (PrefixAgreement::default(), PrefixAgreement::default());
    let mut longest = 0;
    for place in (0..less.len()).step_by(least) {
        behind.compute_agreement(&less[place..], more);
        before.compute_agreement(&less_reversed[less.len() - place..], &more_reversed);
        for at in 0..=more.len() {
            let run = behind.agreement_at(at) + before.agreement_at(more.len() - at);
            longest = longest.max(run);
        }
    }
    Ok((longest >= least).then_some(longest))
}

fn reverse_symbols<S: SequenceSymbol>(symbols: &[S]) -> Vec<S> {
    symbols.iter().rev().copied().collect()
}

/// Lengths of the agreement of a text with the beginning of another, at each of its positions.
#[derive(Default)]
struct PrefixAgreement {
    /// The same lengths for the beginning and itself.
    own: Vec<usize>,
    found: Vec<usize>,
}

impl PrefixAgreement {
    fn compute_agreement<S: SequenceSymbol>(&mut self, beginning: &[S], text: &[S]) {
        let mut own = std::mem::take(&mut self.own);
        own.clear();
        own.resize(beginning.len(), 0);
        if let Some(whole) = own.first_mut() {
            *whole = beginning.len();
        }
        agreements(beginning, beginning, 1, &[], &mut own);
        self.found.clear();
        self.found.resize(text.len(), 0);
        agreements(beginning, text, 0, &own, &mut self.found);
        self.own = own;
    }

    fn agreement_at(&self, position: usize) -> usize {
        self.found.get(position).copied().unwrap_or(0)
    }
}

/// Fills `found[agreement_at]`, from `first` on, with the length of the longest common prefix of
/// `beginning` and `text[agreement_at..]`. `own` holds these lengths for the beginning itself, and is
/// empty while they are being computed.
fn agreements<S: SequenceSymbol>(
    beginning: &[S],
    text: &[S],
    first: usize,
    own: &[usize],
    found: &mut [usize],
) {
    // `text[start..end]` agrees with the beginning, and no known agreement ends later.
    let (mut start, mut end) = (first, first);
    for at in first..text.len() {
        let known = if own.is_empty() { &*found } else { own };
        let mut length = if at < end {
            known
                .get(at - start)
                .map_or(0, |&length| length.min(end - at))
        } else {
            0
        };
        if at + length >= end {
            while length < beginning.len()
                && at + length < text.len()
                && beginning[length] == text[at + length]
            {
                length += 1;
            }
            (start, end) = (at, at + length);
        }
        found[at] = length;
    }
}

/// Returns the length of the longest common substring.
///
/// ```
/// use lookalike::similarity::longest_common_substring;
///
/// let [a, b] = ["the old ferry", "an old ferryman"].map(|text| text.chars().collect::<Vec<_>>());
/// assert_eq!(longest_common_substring(&a, &b)?, " old ferry".len());
/// # Ok::<_, lookalike::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Limit`] if the shorter text has more than [`MOST_SYMBOLS`] symbols.
pub fn longest_common_substring<S: SequenceSymbol>(a: &[S], b: &[S]) -> Result<usize> {
    let (less, more) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    if less.len() > MOST_SYMBOLS {
        return Err(Error::new(
            ErrorKind::Limit,
            format!(
                "the longest common substring of texts of {} and {} symbols exceeds the limit of \
                 {MOST_SYMBOLS} symbols for the shorter one: compare by words, or give a minimum \
                 similarity",
                less.len(),
                more.len()
            ),
        ));
    }
    let mut automaton = SuffixAutomaton::with_capacity(less.len());
    less.iter()
        .for_each(|symbol| automaton.push_symbol(symbol.symbol_value()));
    Ok(automaton.longest_in(more))
}

/// The suffix automaton of a text: its paths from the first state spell all substrings of the text.
struct SuffixAutomaton {
    states: Vec<AutomatonState>,
    edges: Vec<AutomatonEdge>,
    /// Index of the edge of a state for a symbol.
    at: HashMap<(u32, u64), u32, BuildHasherDefault<MixingHasher>>,
    last: u32,
}

#[derive(Clone, Copy)]
struct AutomatonState {
    length: u32,
    link: u32,
    /// Index of the newest edge that leaves the state.
    edge: u32,
}

#[derive(Clone, Copy)]
struct AutomatonEdge {
    symbol: u64,
    to: u32,
    /// Index of the next older edge of the same state.
    next: u32,
}

const NO_STATE: u32 = u32::MAX;

impl SuffixAutomaton {
    fn with_capacity(symbols: usize) -> Self {
        let mut automaton = Self {
            states: Vec::with_capacity(2 * symbols + 1),
            edges: Vec::new(),
            at: HashMap::default(),
            last: 0,
        };
        automaton.states.push(AutomatonState {
            length: 0,
            link: NO_STATE,
            edge: NO_STATE,
        });
        automaton
    }

    fn next_state(&self, state: u32, symbol: u64) -> Option<u32> {
        let edge = self.at.get(&(state, symbol))?;
        Some(self.edges[*edge as usize].to)
    }

    fn connect_states(&mut self, state: u32, symbol: u64, to: u32) {
        if let Some(&edge) = self.at.get(&(state, symbol)) {
            self.edges[edge as usize].to = to;
            return;
        }
        let next = std::mem::replace(
            &mut self.states[state as usize].edge,
            self.edges.len() as u32,
        );
        self.at.insert((state, symbol), self.edges.len() as u32);
        self.edges.push(AutomatonEdge { symbol, to, next });
    }

    fn add_state(&mut self, length: u32, link: u32) -> u32 {
        self.states.push(AutomatonState {
            length,
            link,
            edge: NO_STATE,
        });
        self.states.len() as u32 - 1
    }

    fn push_symbol(&mut self, symbol: u64) {
        let length = self.states[self.last as usize].length + 1;
        let new = self.add_state(length, 0);
        let mut at = std::mem::replace(&mut self.last, new);
        while at != NO_STATE && self.next_state(at, symbol).is_none() {
            self.connect_states(at, symbol, new);
            at = self.states[at as usize].link;
        }
        if at == NO_STATE {
            return;
        }
        let found = self.next_state(at, symbol).unwrap_or(0);
        let length = self.states[at as usize].length + 1;
        if self.states[found as usize].length == length {
            self.states[new as usize].link = found;
            return;
        }
        let copy = self.copy_state(found, length);
        while at != NO_STATE && self.next_state(at, symbol) == Some(found) {
            self.connect_states(at, symbol, copy);
            at = self.states[at as usize].link;
        }
        self.states[found as usize].link = copy;
        self.states[new as usize].link = copy;
    }

    /// Adds a state with the edges and the link of another.
    fn copy_state(&mut self, state: u32, length: u32) -> u32 {
        let AutomatonState { link, mut edge, .. } = self.states[state as usize];
        let copy = self.add_state(length, link);
        while edge != NO_STATE {
            let AutomatonEdge { symbol, to, next } = self.edges[edge as usize];
            self.connect_states(copy, symbol, to);
            edge = next;
        }
        copy
    }

    fn longest_in<S: SequenceSymbol>(&self, text: &[S]) -> usize {
        let (mut state, mut length, mut longest) = (0, 0, 0);
        for symbol in text.iter().map(|symbol| symbol.symbol_value()) {
            loop {
                if let Some(next) = self.next_state(state, symbol) {
                    (state, length) = (next, length + 1);
                    break;
                }
                let link = self.states[state as usize].link;
                if link == NO_STATE {
                    length = 0;
                    break;
                }
                (state, length) = (link, self.states[link as usize].length);
            }
            longest = longest.max(length);
        }
        longest as usize
    }
}

/// A hasher of a state and a symbol. It affects only speed.
#[derive(Default)]
struct MixingHasher(u64);

impl Hasher for MixingHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_u32(&mut self, value: u32) {
        self.write_u64(u64::from(value));
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = mix_bits(self.0.rotate_left(32) ^ value);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn plain(a: &[u64], b: &[u64]) -> usize {
        let mut longest = 0;
        let mut row = vec![0; b.len() + 1];
        for x in a {
            for j in (0..b.len()).rev() {
                row[j + 1] = if *x == b[j] { row[j] + 1 } else { 0 };
                longest = longest.max(row[j + 1]);
            }
        }
        longest
    }

    fn longest_from<S: SequenceSymbol>(a: &[S], b: &[S], least: usize) -> Result<Option<usize>> {
        longest_of_at_least(a, b, least, &mut StepBudget::unlimited())
    }

    fn check(a: &[u64], b: &[u64]) {
        let expected = plain(a, b);
        assert_eq!(longest_common_substring(a, b).unwrap(), expected);
        assert_eq!(longest_common_substring(b, a).unwrap(), expected);
        for least in [
            1,
            2,
            expected / 2,
            expected.saturating_sub(1),
            expected,
            expected + 1,
        ] {
            let found = (expected >= least.max(1)).then_some(expected);
            assert_eq!(
                longest_from(a, b, least).unwrap(),
                found,
                "{a:?} {b:?} {least}"
            );
            assert_eq!(
                longest_from(b, a, least).unwrap(),
                found,
                "{b:?} {a:?} {least}"
            );
        }
    }

    #[test]
    fn substring_equals_worked_examples() {
        let symbols = |text: &str| text.chars().map(|c| c as u64).collect::<Vec<_>>();
        for (a, b, length) in [
            ("", "", 0),
            ("a", "", 0),
            ("a", "b", 0),
            ("abcde", "xbcdy", 3),
            ("aaaa", "aaaaaaa", 4),
            ("abababab", "babababa", 7),
            (
                "你妈妈喊你回家吃饭哦，回家罗回家罗",
                "你妈妈叫你回家吃饭啦，回家罗回家罗",
                7,
            ),
        ] {
            let (a, b) = (symbols(a), symbols(b));
            assert_eq!(longest_common_substring(&a, &b).unwrap(), length);
            check(&a, &b);
        }
    }

    #[test]
    fn long_repetitive_texts_take_linear_time() {
        let a = vec![7u32; 300_000];
        let mut b = vec![7u32; 300_000];
        b[150_000] = 8;
        assert_eq!(longest_from(&a, &b, 100_000).unwrap(), Some(150_000));
        assert_eq!(longest_common_substring(&a, &b).unwrap(), 150_000);
        assert_eq!(longest_from(&a, &b, 150_001).unwrap(), None);
    }

    #[test]
    fn too_long_comparison_is_refused() {
        let text = vec![1u32; 400_000];
        let error = longest_from(&text, &text, 1).unwrap_err();
        assert!(error.to_string().contains("400000"), "{error}");
        let text = vec![1u32; MOST_SYMBOLS + 1];
        let error = longest_common_substring(&text, &text).unwrap_err();
        assert!(error.to_string().contains("16777217"), "{error}");
    }

    proptest! {
        #[test]
        fn arbitrary_pairs_equal_the_plain_table(
            a in proptest::collection::vec(0u64..3, 0..60),
            b in proptest::collection::vec(0u64..3, 0..60),
        ) {
            check(&a, &b);
        }

        #[test]
        fn wide_alphabets_equal_the_plain_table(
            a in proptest::collection::vec(0u64..40, 0..90),
            b in proptest::collection::vec(0u64..40, 0..90),
        ) {
            check(&a, &b);
        }
    }
}
