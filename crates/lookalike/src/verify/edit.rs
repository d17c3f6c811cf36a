//! Edit distances: how few edits turn one sequence of symbols into another.
//!
//! **Levenshtein** counts insertions, deletions and substitutions, **Indel** insertions and deletions
//! alone. Both are exact, symmetric, and may be asked for only up to a limit, which is much faster
//! for texts that are farther apart.
//!
//! What both have in common at the head and the tail is left aside. The rest is the textbook's table,
//! 64 cells of a column at a time in one machine word (Myers 1999 and Hyyrö 2003 for Levenshtein,
//! Crochemore et al. 2001 and Hyyrö 2004 for Indel), in strips of 64 rows that hand the differences
//! along their lower edge to the next one. Only cells through which a path within the limit may lead
//! are visited (Ukkonen 1985), and the limit grows fourfold from round to round, so that near texts cost
//! what they differ by. Once it is wide, symbols are numbered, so that a column costs no search, and
//! Indel has four words of rows in a strip, because their steps overlap in the processor.
//!
//! Before that, the symbols of long texts are counted: those that one text has more often than the other
//! bound the distance from below, in linear time. Texts in scripts of many characters, and texts by
//! words, seldom pass this bound unless they are near.
//!
//! Cost: for texts of m ≤ n symbols at distance d, about (m/64)·(min(d, limit) + 64) steps of two to
//! four nanoseconds; memory of one byte a symbol of the longer one, and up to 72 more for texts of up to
//! 2^18 symbols. More than [`MOST_STEPS`] are refused.

use crate::error::{Error, ErrorKind, Result};

/// The most steps of 64 cells that a comparison may take: some minutes.
pub const MOST_STEPS: u64 = 100_000_000_000;

/// What a compared sequence is made of: code points, or the values of tokens.
pub trait Symbol: Copy + Eq + Ord + Default {
    /// Different for different symbols.
    fn value(self) -> u64;

    /// A number below 2^`bits` that spreads symbols evenly.
    fn spread(self, bits: u32) -> u32 {
        (self.value().wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - bits)) as u32
    }
}

impl Symbol for u32 {
    fn value(self) -> u64 {
        u64::from(self)
    }
}

impl Symbol for char {
    fn value(self) -> u64 {
        u64::from(u32::from(self))
    }
}

impl Symbol for u64 {
    fn value(self) -> u64 {
        self
    }
}

/// The fewest insertions, deletions and substitutions of symbols that turn one sequence into the
/// other, if they are at most `most`.
///
/// # Errors
/// If it takes more than [`MOST_STEPS`].
pub fn levenshtein<S: Symbol>(a: &[S], b: &[S], most: usize) -> Result<Option<usize>> {
    distance::<Levenshtein, S>(a, b, most, &mut StepBudget::default())
}

/// [`levenshtein`] within a budget of steps.
pub(super) fn levenshtein_within<S: Symbol>(
    a: &[S],
    b: &[S],
    most: usize,
    budget: &mut StepBudget,
) -> Result<Option<usize>> {
    distance::<Levenshtein, S>(a, b, most, budget)
}

/// The fewest insertions and deletions of symbols that turn one sequence into the other, if they are
/// at most `most`.
///
/// # Errors
/// If it takes more than [`MOST_STEPS`].
pub fn indel<S: Symbol>(a: &[S], b: &[S], most: usize) -> Result<Option<usize>> {
    distance::<Indel, S>(a, b, most, &mut StepBudget::default())
}

/// [`indel`] within a budget of steps.
pub(super) fn indel_within<S: Symbol>(
    a: &[S],
    b: &[S],
    most: usize,
    budget: &mut StepBudget,
) -> Result<Option<usize>> {
    distance::<Indel, S>(a, b, most, budget)
}

/// Steps that a comparison may take and has taken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StepBudget {
    /// Steps taken.
    pub(crate) taken: u64,
    /// The most steps that may be taken.
    pub(crate) most: u64,
}

impl Default for StepBudget {
    fn default() -> Self {
        Self {
            taken: 0,
            most: MOST_STEPS,
        }
    }
}

/// What decides most pairs at a glance: 16 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Outline {
    /// Symbols, as far as they can be counted.
    length: u32,
    /// Bit i says whether the number of symbols that fall on it is odd.
    parities: u64,
}

impl Outline {
    pub(crate) fn new<S: Symbol>(symbols: &[S]) -> Self {
        let parities = symbols
            .iter()
            .fold(0, |bits, symbol| bits ^ 1 << symbol.spread(6));
        Self {
            length: u32::try_from(symbols.len()).unwrap_or(u32::MAX),
            parities,
        }
    }

    /// How many symbols, or None if they cannot be told.
    pub(crate) fn length(self) -> Option<usize> {
        (self.length < u32::MAX).then_some(self.length as usize)
    }

    /// The fewest symbols of the two that are in no pair of equal ones: every bit in which the
    /// parities differ takes one, and so does every symbol that one text has more.
    pub(crate) fn least_alone(self, other: Self) -> usize {
        let odd = (self.parities ^ other.parities).count_ones();
        odd.max(self.length.abs_diff(other.length)) as usize
    }

    /// The fewest edits of any kind: each of those by which the lengths differ changes one parity,
    /// every other one at most two.
    pub(crate) fn least_edits(self, other: Self) -> usize {
        let longer = self.length.abs_diff(other.length);
        let odd = (self.parities ^ other.parities).count_ones();
        longer.max((odd + longer).div_ceil(2)) as usize
    }
}

/// Rows of a strip: the bits of a machine word.
const ROWS: usize = 64;

/// The vertical differences between the cells of a column of a strip.
trait Cells: Copy {
    /// Every cell is one more than the cell above it: the cheapest way down a border.
    const BORDER: Self;

    /// The column to the right, where bit i of `equal` says whether row i has the symbol of the
    /// column; `above` is the horizontal difference along the upper edge, 1, 0 or −1, and the
    /// result that of row `last`.
    fn step(&mut self, equal: u64, above: i8, last: usize) -> i8;

    /// The largest distance of sequences of these lengths.
    fn farthest(less: usize, more: usize) -> usize;

    /// The fewest edits between two sequences of which each has so many symbols that the other one has
    /// not.
    fn least_edits(surplus: [usize; 2]) -> usize;

    const NAME: &'static str;

    /// Words of rows in a tall strip.
    const WORDS: usize;

    /// [`in_tall_strips`] with so many words.
    fn in_tall_strips(
        numbered: &Numbered,
        most: usize,
        table: &mut [u64],
        steps: &mut Steps<'_>,
    ) -> Result<Option<usize>>;
}

#[derive(Clone, Copy)]
struct Levenshtein {
    rises: u64,
    falls: u64,
}

impl Cells for Levenshtein {
    const BORDER: Self = Self {
        rises: u64::MAX,
        falls: 0,
    };
    const NAME: &'static str = "Levenshtein";

    const WORDS: usize = 1;

    fn in_tall_strips(
        numbered: &Numbered,
        most: usize,
        table: &mut [u64],
        steps: &mut Steps<'_>,
    ) -> Result<Option<usize>> {
        in_tall_strips::<Self, { Self::WORDS }>(numbered, most, table, steps)
    }

    #[inline(always)]
    fn step(&mut self, equal: u64, above: i8, last: usize) -> i8 {
        let (rises, falls) = (self.rises, self.falls);
        let (above_rises, above_falls) = (u64::from(above > 0), u64::from(above < 0));
        let no_cost_down = equal | falls;
        let equal = equal | above_falls;
        let no_cost_right = ((equal & rises).wrapping_add(rises) ^ rises) | equal;
        let right_rises = falls | !(no_cost_right | rises);
        let right_falls = rises & no_cost_right;
        let below = (right_rises >> last & 1) as i8 - (right_falls >> last & 1) as i8;
        let right_rises = right_rises << 1 | above_rises;
        let right_falls = right_falls << 1 | above_falls;
        self.rises = right_falls | !(no_cost_down | right_rises);
        self.falls = right_rises & no_cost_down;
        below
    }

    fn farthest(_: usize, more: usize) -> usize {
        more
    }

    /// A substitution takes away one on either side.
    fn least_edits(surplus: [usize; 2]) -> usize {
        surplus[0].max(surplus[1])
    }
}

/// Differences are 1 or −1: where a cell is not one more than the one above, it is one less, and
/// the longest common subsequence has become longer.
#[derive(Clone, Copy)]
struct Indel {
    rises: u64,
}

impl Cells for Indel {
    const BORDER: Self = Self { rises: u64::MAX };
    const NAME: &'static str = "Indel";

    const WORDS: usize = 4;

    fn in_tall_strips(
        numbered: &Numbered,
        most: usize,
        table: &mut [u64],
        steps: &mut Steps<'_>,
    ) -> Result<Option<usize>> {
        in_tall_strips::<Self, { Self::WORDS }>(numbered, most, table, steps)
    }

    /// A carry is a common subsequence that becomes longer by this column; rows behind the last one
    /// are equal to nothing and pass it on.
    #[inline(always)]
    fn step(&mut self, equal: u64, above: i8, _: usize) -> i8 {
        let met = self.rises & equal;
        let (sum, carry) = self.rises.overflowing_add(met);
        let (sum, carry_above) = sum.overflowing_add(u64::from(above < 0));
        self.rises = sum | (self.rises - met);
        1 - 2 * i8::from(carry | carry_above)
    }

    fn farthest(less: usize, more: usize) -> usize {
        less + more
    }

    fn least_edits(surplus: [usize; 2]) -> usize {
        surplus[0] + surplus[1]
    }
}

/// From this limit on, symbols are numbered once, so that no strip has to look for them; below, that
/// costs more than it saves.
const WIDE: usize = 8 * ROWS;

/// Longer texts are not numbered, which takes up to 72 bytes a symbol.
const NUMBERED: usize = 1 << 18;

/// The limit grows so many times from round to round.
const GROWTH: usize = 4;

/// Which rows of a strip have a symbol.
struct Masks<S> {
    symbols: [S; 2 * ROWS],
    rows: [u64; 2 * ROWS],
}

impl<S: Symbol> Masks<S> {
    #[inline(always)]
    fn new(strip: &[S]) -> Self {
        let mut masks = Self {
            symbols: [S::default(); 2 * ROWS],
            rows: [0; 2 * ROWS],
        };
        for (row, &symbol) in strip.iter().enumerate() {
            let at = masks.place(symbol);
            masks.symbols[at] = symbol;
            masks.rows[at] |= 1 << row;
        }
        masks
    }

    /// Half of the places stay empty, so that a search ends.
    #[inline(always)]
    fn place(&self, symbol: S) -> usize {
        let mut at = symbol.spread(7) as usize;
        while self.rows[at] != 0 && self.symbols[at] != symbol {
            at = (at + 1) % (2 * ROWS);
        }
        at
    }

    #[inline(always)]
    fn rows(&self, symbol: S) -> u64 {
        self.rows[self.place(symbol)]
    }
}

/// Two sequences by the numbers of their symbols: 0 is whatever the first one does not have.
struct Numbered {
    less: Vec<u32>,
    more: Vec<u32>,
    symbols: usize,
}

impl Numbered {
    fn new<S: Symbol>(less: &[S], more: &[S]) -> Self {
        let bits = (2 * less.len()).next_power_of_two().ilog2().max(6);
        let mask = (1usize << bits) - 1;
        // At most half full, so that a search ends.
        let mut table: Vec<(S, u32)> = vec![(S::default(), 0); mask + 1];
        let mut symbols = 1;
        let place = |table: &[(S, u32)], symbol: S| {
            let mut at = symbol.spread(bits) as usize;
            while table[at].1 != 0 && table[at].0 != symbol {
                at = (at + 1) & mask;
            }
            at
        };
        let mut number = |&symbol: &S| {
            let at = place(&table, symbol);
            if table[at].1 == 0 {
                table[at] = (symbol, symbols);
                symbols += 1;
            }
            table[at].1
        };
        let less = less.iter().map(&mut number).collect();
        let more = more
            .iter()
            .map(|&symbol| table[place(&table, symbol)].1)
            .collect();
        Self {
            less,
            more,
            symbols: symbols as usize,
        }
    }
}

/// Shorter texts, and those that may differ by fewer edits, are not counted: their cells cost as little.
const COUNTED: usize = 4 * ROWS;

/// Returns `true` if the counts of symbols show that two sequences are more than `most` edits apart.
fn are_apart_by_counts<C: Cells, S: Symbol>(less: &[S], more: &[S], most: usize) -> bool {
    less.len() >= COUNTED
        && most >= COUNTED
        && most < C::farthest(less.len(), more.len())
        && C::least_edits(surplus(less, more)) > most
}

/// How many symbols each of two sequences has that the other one has not, at least. They are counted by
/// their hashes: symbols that fall together hide differences and never add any.
fn surplus<S: Symbol>(a: &[S], b: &[S]) -> [usize; 2] {
    /// Buckets of 16 KiB, which the first cache holds.
    const BITS: u32 = 12;
    let mut counts = vec![0i32; 1 << BITS];
    let bucket = |symbol: &S| symbol.spread(BITS) as usize;
    a.iter().for_each(|symbol| counts[bucket(symbol)] += 1);
    b.iter().for_each(|symbol| counts[bucket(symbol)] -= 1);
    let sum = |sign: i32| -> usize { counts.iter().map(|&it| (sign * it).max(0) as usize).sum() };
    [sum(1), sum(-1)]
}

/// Two sequences without what they have in common at the head and the tail.
fn trimmed<'a, S: Symbol>(a: &'a [S], b: &'a [S]) -> (&'a [S], &'a [S]) {
    let head = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let (a, b) = (&a[head..], &b[head..]);
    let tail = a.iter().rev().zip(b.iter().rev());
    let tail = tail.take_while(|(a, b)| a == b).count();
    (&a[..a.len() - tail], &b[..b.len() - tail])
}

fn distance<C: Cells, S: Symbol>(
    a: &[S],
    b: &[S],
    most: usize,
    budget: &mut StepBudget,
) -> Result<Option<usize>> {
    if a.len().abs_diff(b.len()) > most {
        return Ok(None);
    }
    let (a, b) = trimmed(a, b);
    // Of two of one length, the order of their symbols says which is which: the work is the same
    // from both sides.
    let swapped = (b.len(), b) < (a.len(), a);
    let (less, more) = if swapped { (b, a) } else { (a, b) };
    if less.is_empty() {
        return Ok((more.len() <= most).then_some(more.len()));
    }
    if less.len() <= ROWS {
        let mut steps = Steps::of::<C>(less.len(), more.len(), budget);
        steps.take(more.len())?;
        return Ok(in_one_strip::<C, S>(less, more, most));
    }
    if are_apart_by_counts::<C, S>(less, more, most) {
        return Ok(None);
    }
    let mut steps = Steps::of::<C>(less.len(), more.len(), budget);
    let most = most.min(C::farthest(less.len(), more.len()));
    let mut limit = more.len() - less.len() + ROWS;
    let mut numbered = None;
    loop {
        let is_wide = limit >= WIDE && more.len() <= NUMBERED;
        let within = match is_wide && limit > most / 2 {
            true => most,
            false => limit.min(most),
        };
        let found = if is_wide && within >= WIDE {
            let (numbered, table) = numbered.get_or_insert_with(|| {
                let numbered = Numbered::new(less, more);
                let table = vec![0; numbered.symbols * C::WORDS];
                (numbered, table)
            });
            C::in_tall_strips(numbered, within, table, &mut steps)?
        } else {
            in_strips::<C, S>(less, more, within, &mut steps)?
        };
        if found.is_some() || within == most {
            return Ok(found);
        }
        limit = limit.saturating_mul(GROWTH);
    }
}

/// Counts the steps of a comparison.
struct Steps<'b> {
    budget: &'b mut StepBudget,
    what: &'static str,
    lengths: [usize; 2],
}

impl<'b> Steps<'b> {
    fn of<C: Cells>(less: usize, more: usize, budget: &'b mut StepBudget) -> Self {
        Self {
            budget,
            what: C::NAME,
            lengths: [less, more],
        }
    }

    fn take(&mut self, steps: usize) -> Result<()> {
        self.budget.taken += steps as u64;
        if self.budget.taken <= self.budget.most {
            return Ok(());
        }
        let [less, more] = self.lengths;
        Err(Error::new(
            ErrorKind::Limit,
            format!(
                "the {} distance of two texts that differ over {less} and {more} symbols takes \
                 more than {} steps: give a higher threshold, compare by words, or take a measure \
                 of features, such as the Jaccard index",
                self.what, self.budget.most
            ),
        ))
    }
}

/// Up to 64 rows.
#[inline(always)]
fn in_one_strip<C: Cells, S: Symbol>(less: &[S], more: &[S], most: usize) -> Option<usize> {
    let masks = Masks::new(less);
    let last = less.len() - 1;
    let mut column = C::BORDER;
    let mut value = less.len();
    let mut left = more.len();
    for &symbol in more {
        let below = column.step(masks.rows(symbol), 1, last);
        value = value.wrapping_add_signed(isize::from(below));
        left -= 1;
        // Every further column takes away one at the most.
        if value > left.saturating_add(most) {
            return None;
        }
    }
    Some(value)
}

/// Any number of rows. Cells outside the strips count as if the way along the border of what is
/// visited were the only one: never less than they are, and as they are where it matters.
fn in_strips<C: Cells, S: Symbol>(
    less: &[S],
    more: &[S],
    most: usize,
    steps: &mut Steps<'_>,
) -> Result<Option<usize>> {
    let longer = more.len() - less.len();
    let aside = (most - longer) / 2;
    // The horizontal differences along the lower edge of the strip before.
    let mut edge = vec![1i8; more.len()];
    let (mut first, mut corner) = (0, 0);
    let mut bottom = 0;
    for strip in less.chunks(ROWS) {
        bottom += strip.len();
        let rows_left = less.len() - bottom;
        let end = more.len().min(bottom + longer + aside);
        steps.take(end - first)?;
        // Whether a path within the limit may lead through a cell of the lower edge.
        let may_lead =
            |column: usize, value: usize| value + rows_left.abs_diff(more.len() - column) <= most;
        let masks = Masks::new(strip);
        let mut cells = C::BORDER;
        let mut value = corner + strip.len();
        let mut column = first;
        let mut advance = |column: usize, value: usize| {
            let symbol = more[column];
            let below = cells.step(masks.rows(symbol), edge[column], strip.len() - 1);
            edge[column] = below;
            value.wrapping_add_signed(isize::from(below))
        };
        while !may_lead(column, value) {
            if column == end {
                return Ok(None);
            }
            value = advance(column, value);
            column += 1;
        }
        (first, corner) = (column, value);
        for column in column..end {
            value = advance(column, value);
        }
        if rows_left == 0 {
            return Ok((value <= most).then_some(value));
        }
    }
    Ok(None)
}

/// The same with symbols that are numbered, in strips of `W` words of rows. `table` holds the rows of
/// every symbol in the strip, all 0 before and after.
fn in_tall_strips<C: Cells, const W: usize>(
    numbered: &Numbered,
    most: usize,
    table: &mut [u64],
    steps: &mut Steps<'_>,
) -> Result<Option<usize>> {
    let Numbered { less, more, .. } = numbered;
    let longer = more.len() - less.len();
    let aside = (most - longer) / 2;
    let mut edge = vec![1i8; more.len()];
    let (mut first, mut corner) = (0, 0);
    let mut bottom = 0;
    for strip in less.chunks(W * ROWS) {
        bottom += strip.len();
        let rows_left = less.len() - bottom;
        let end = more.len().min(bottom + longer + aside);
        steps.take(strip.len().div_ceil(ROWS) * (end - first))?;
        let may_lead =
            |column: usize, value: usize| value + rows_left.abs_diff(more.len() - column) <= most;
        for (row, &symbol) in strip.iter().enumerate() {
            table[symbol as usize * W + row / ROWS] |= 1 << (row % ROWS);
        }
        let mut cells = [C::BORDER; W];
        let mut value = corner + strip.len();
        let mut column = first;
        let (full, last) = ((strip.len() - 1) / ROWS, (strip.len() - 1) % ROWS);
        let mut advance = |column: usize, value: usize| {
            let at = more[column] as usize * W;
            let rows = &table[at..at + W];
            let mut below = edge[column];
            if W == 1 {
                below = cells[0].step(rows[0], below, last);
            } else {
                for (word, (cells, &rows)) in cells.iter_mut().zip(rows).enumerate() {
                    if word < full {
                        below = cells.step(rows, below, ROWS - 1);
                    } else if word == full {
                        below = cells.step(rows, below, last);
                    }
                }
            }
            edge[column] = below;
            value.wrapping_add_signed(isize::from(below))
        };
        let mut leads = may_lead(column, value);
        while !leads && column < end {
            value = advance(column, value);
            column += 1;
            leads = may_lead(column, value);
        }
        (first, corner) = (column, value);
        if leads {
            for column in column..end {
                value = advance(column, value);
            }
        }
        for &symbol in strip {
            table[symbol as usize * W..][..W].fill(0);
        }
        if !leads {
            return Ok(None);
        }
        if rows_left == 0 {
            return Ok((value <= most).then_some(value));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The textbook's table.
    fn plain<S: Symbol>(a: &[S], b: &[S], substitution: usize) -> usize {
        let mut row: Vec<usize> = (0..=b.len()).collect();
        for (i, x) in a.iter().enumerate() {
            let mut diagonal = row[0];
            row[0] = i + 1;
            for (j, y) in b.iter().enumerate() {
                let changed = diagonal + if x == y { 0 } else { substitution };
                diagonal = row[j + 1];
                row[j + 1] = changed.min(diagonal + 1).min(row[j] + 1);
            }
        }
        row[b.len()]
    }

    fn symbols(text: &str) -> Vec<char> {
        text.chars().collect()
    }

    /// Both distances are the textbook's, with every limit around them, from both sides.
    fn check<S: Symbol + std::fmt::Debug>(a: &[S], b: &[S]) {
        type Distance<S> = fn(&[S], &[S], usize) -> Result<Option<usize>>;
        for (within, substitution) in [(levenshtein as Distance<S>, 1), (indel, 2)] {
            let expected = plain(a, b, substitution);
            for most in [
                0,
                1,
                expected / 2,
                expected.saturating_sub(1),
                expected,
                expected + 1,
                2 * expected + 70,
                usize::MAX,
            ] {
                let found = (expected <= most).then_some(expected);
                assert_eq!(within(a, b, most).unwrap(), found, "{a:?} {b:?} {most}");
                assert_eq!(within(b, a, most).unwrap(), found, "{b:?} {a:?} {most}");
            }
        }
    }

    #[test]
    fn examples() {
        for (a, b, edits, indels) in [
            ("", "", 0, 0),
            ("", "abc", 3, 3),
            ("kitten", "sitting", 3, 5),
            ("flaw", "lawn", 2, 2),
            ("一二三", "一三", 1, 1),
            (
                "你妈妈喊你回家吃饭哦，回家罗回家罗",
                "你妈妈叫你回家吃饭啦，回家罗回家罗",
                2,
                4,
            ),
        ] {
            let (a, b) = (symbols(a), symbols(b));
            check(&a, &b);
            assert_eq!(levenshtein(&a, &b, usize::MAX).unwrap(), Some(edits));
            assert_eq!(indel(&a, &b, usize::MAX).unwrap(), Some(indels));
        }
    }

    /// Symbols of a small or large alphabet, from a seed.
    fn random(length: usize, alphabet: u64, seed: u64) -> Vec<u64> {
        (0..length as u64)
            .map(|at| crate::hash::mix(seed << 32 | at) % alphabet)
            .collect()
    }

    #[test]
    fn every_length_around_the_strips_is_the_textbook() {
        for less in [0, 1, 2, 31, 63, 64, 65, 66, 127, 128, 129, 192, 200] {
            for more in [0, 1, 62, 63, 64, 65, 100, 128, 130, 193, 400] {
                for alphabet in [1, 2, 4, 50, 1 << 40] {
                    check(&random(less, alphabet, 1), &random(more, alphabet, 2));
                }
            }
        }
    }

    /// A long text and a copy with some edits.
    fn edited(length: usize, alphabet: u64, edits: u64, seed: u64) -> [Vec<u64>; 2] {
        let text = random(length, alphabet, seed);
        let mut other = text.clone();
        for edit in 0..edits {
            let at = crate::hash::mix(seed ^ edit << 40) as usize % other.len().max(1);
            match edit % 3 {
                0 => other[at] = edit,
                1 => other.insert(at, edit),
                _ => {
                    other.remove(at);
                }
            }
        }
        [text, other]
    }

    #[test]
    fn edited_copies_are_the_textbook() {
        for (length, edits) in [
            (70, 3),
            (300, 5),
            (500, 120),
            (1000, 40),
            (1500, 0),
            (2000, 700),
        ] {
            for alphabet in [3, 300] {
                let [a, b] = edited(length, alphabet, edits, 7);
                check(&a, &b);
                check(&a, &b[..b.len() * 4 / 5]);
                check(&a[length / 9..], &b);
            }
        }
    }

    #[test]
    fn what_would_take_too_long_is_refused() {
        let mut budget = StepBudget {
            taken: 0,
            most: 300,
        };
        let mut steps = Steps::of::<Levenshtein>(300, 400, &mut budget);
        let (a, b) = (random(300, 9, 1), random(400, 9, 2));
        let error = in_strips::<Levenshtein, _>(&a, &b, 400, &mut steps).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Limit);
        let said = error.to_string();
        assert!(
            said.contains("300 and 400 symbols takes more than 300 steps"),
            "{said}"
        );
    }

    #[test]
    fn near_texts_cost_what_they_differ_by() {
        let [a, b] = edited(300_000, 5000, 30, 3);
        let (less, more) = trimmed(&a, &b);
        let (less, more) = if less.len() <= more.len() {
            (less, more)
        } else {
            (more, less)
        };
        let mut budget = StepBudget::default();
        let mut steps = Steps::of::<Levenshtein>(less.len(), more.len(), &mut budget);
        let within = more.len() - less.len() + ROWS;
        let found = in_strips::<Levenshtein, _>(less, more, within, &mut steps).unwrap();
        assert!(
            found.is_some_and(|found| found <= 30 && found > 20),
            "{found:?}"
        );
        assert!(budget.taken < 5 * 300_000, "{}", budget.taken);
        assert_eq!(levenshtein(&a, &b, 60_000).unwrap(), found);
    }

    /// Pages of one template with content of their own: counts bound the distance from below, and often
    /// end the comparison there.
    #[test]
    fn counts_never_promise_too_much() {
        let mut rejected = 0;
        for (alphabet, seed) in [(4, 1), (30, 2), (3000, 3)] {
            for own in [200, 700, 1500] {
                let template = random(2000 - own, alphabet, seed);
                let page = |seed: u64| {
                    let (head, tail) = template.split_at(template.len() / 2);
                    [head, &random(own, alphabet, seed), tail].concat()
                };
                let (a, b) = (page(70 * seed), page(70 * seed + 1));
                let (edits, indels) = (plain(&a, &b, 1), plain(&a, &b, 2));
                let surplus = surplus(&a, &b);
                assert!(Levenshtein::least_edits(surplus) <= edits);
                assert!(Indel::least_edits(surplus) <= indels);
                for most in [COUNTED - 1, COUNTED, 400, 600] {
                    let apart = are_apart_by_counts::<Levenshtein, _>(&a, &b, most);
                    rejected += u32::from(apart);
                    assert!(!apart || edits > most, "{alphabet} {own} {most}");
                }
                check(&a, &b);
            }
        }
        assert!(rejected > 2, "{rejected}");
    }

    proptest! {
        #[test]
        fn symbols_of_any_two_are_no_more_than_edits(
            a in proptest::collection::vec(0u64..9, 0..60),
            b in proptest::collection::vec(0u64..9, 0..60),
        ) {
            let surplus = surplus(&a, &b);
            prop_assert!(Levenshtein::least_edits(surplus) <= plain(&a, &b, 1));
            prop_assert!(Indel::least_edits(surplus) <= plain(&a, &b, 2));
        }

        #[test]
        fn tall_strips_are_the_textbook(
            a in proptest::collection::vec(0u64..5, 1..700),
            b in proptest::collection::vec(0u64..5, 1..700),
            slack in 0usize..100,
        ) {
            let (less, more) = if a.len() <= b.len() { (a, b) } else { (b, a) };
            let numbered = Numbered::new(&less, &more);
            let expected = [plain(&less, &more, 1), plain(&less, &more, 2)];
            for (at, words) in [(0, Levenshtein::WORDS), (1, Indel::WORDS)] {
                for most in [expected[at] + slack, expected[at].saturating_sub(1 + slack)] {
                    if most < more.len() - less.len() {
                        continue;
                    }
                    let mut budget = StepBudget::default();
                    let mut steps = Steps::of::<Indel>(less.len(), more.len(), &mut budget);
                    let mut table = vec![0; numbered.symbols * words];
                    let found = match at {
                        0 => Levenshtein::in_tall_strips(&numbered, most, &mut table, &mut steps),
                        _ => Indel::in_tall_strips(&numbered, most, &mut table, &mut steps),
                    };
                    let within = (expected[at] <= most).then_some(expected[at]);
                    prop_assert_eq!(found.unwrap(), within);
                    prop_assert!(table.iter().all(|&rows| rows == 0));
                }
            }
        }

        #[test]
        fn any_two_are_the_textbook(
            a in proptest::collection::vec(0u64..5, 0..150),
            b in proptest::collection::vec(0u64..5, 0..150),
        ) {
            check(&a, &b);
        }

        #[test]
        fn an_outline_never_promises_too_much(
            a in proptest::collection::vec(0u32..200, 0..40),
            b in proptest::collection::vec(0u32..200, 0..40),
        ) {
            let (one, other) = (Outline::new(&a), Outline::new(&b));
            prop_assert!(one.least_edits(other) <= plain(&a, &b, 1));
            prop_assert!(one.least_alone(other) <= plain(&a, &b, 2));
            prop_assert_eq!(one.least_edits(other), other.least_edits(one));
            prop_assert_eq!(one.least_alone(other), other.least_alone(one));
        }
    }
}
