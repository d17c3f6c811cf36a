//! Edit distances: the fewest edits that turn one sequence of symbols into another.
//!
//! **Levenshtein** counts insertions, deletions and substitutions, **Indel** counts insertions and deletions
//! alone. Both are exact and symmetric. A limit on the distance makes the comparison much faster for texts
//! that are farther apart.
//!
//! 1. The common head and tail of both texts are cut off.
//! 2. In long texts, the occurrences of each symbol are counted. The symbols that one text has more often
//!    than the other bound the distance from below, in linear time. Texts in scripts of many characters, and
//!    texts by words, seldom pass this bound unless they are near.
//! 3. The rest is the textbook's table, with 64 cells of a column at a time in one machine word (Myers 1999
//!    and Hyyrö 2003 for Levenshtein, Crochemore et al. 2001 and Hyyrö 2004 for Indel). It is computed in
//!    strips of 64 rows, and each strip passes the differences along its lower edge to the next one. Only
//!    cells through which a path within the limit may lead are computed (Ukkonen 1985). The limit is
//!    quadrupled in every round, so that the cost of near texts depends on their distance.
//! 4. Once the limit is wide, symbols are numbered, so that a column needs no search. Levenshtein then has eight
//!    strips at a time, in the lanes of wide registers ([`lanes`]). Indel has four words of rows in a strip,
//!    because their steps overlap in the processor.
//!
//! Cost: for texts of m ≤ n symbols at distance d, about (m/64)·(min(d, limit) + 64) steps of two to four
//! nanoseconds, and of a third of that in lanes. Memory is one byte per symbol of the longer text, and up to 104
//! more for texts of up to 2^18 symbols. A thread keeps its table of symbols for the next pair, at most 8 MiB. A
//! comparison of more than [`MOST_STEPS`] steps is refused.

mod lanes;

use std::cell::RefCell;

use lanes::distance_in_lanes;

use super::budget::StepBudget;
use crate::arch::{Cpu, LANES};
use crate::error::{Error, ErrorKind, Result};

/// Largest number of steps of 64 cells in a comparison, which take some minutes.
pub const MOST_STEPS: u64 = 100_000_000_000;

/// A symbol of a compared sequence: a code point, or the value of a token.
pub trait SequenceSymbol: Copy + Eq + Ord + Default {
    /// Returns a number that identifies the symbol.
    fn symbol_value(self) -> u64;

    /// Returns a number below 2^`bits` that distributes symbols evenly.
    fn spread_bits(self, bits: u32) -> u32 {
        (self.symbol_value().wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - bits)) as u32
    }
}

impl SequenceSymbol for u32 {
    fn symbol_value(self) -> u64 {
        u64::from(self)
    }
}

impl SequenceSymbol for char {
    fn symbol_value(self) -> u64 {
        u64::from(u32::from(self))
    }
}

impl SequenceSymbol for u64 {
    fn symbol_value(self) -> u64 {
        self
    }
}

/// Returns the fewest insertions, deletions and substitutions of symbols that turn one sequence into the
/// other, if there are at most `most`.
///
/// ```
/// use lookalike::similarity::levenshtein_distance;
///
/// let [a, b] = ["渡船七点开", "渡船八点开了"].map(|text| text.chars().collect::<Vec<_>>());
/// assert_eq!(levenshtein_distance(&a, &b, 5)?, Some(2));
/// assert_eq!(levenshtein_distance(&a, &b, 1)?, None);
/// # Ok::<_, lookalike::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Limit`] if it takes more than [`MOST_STEPS`] steps.
pub fn levenshtein_distance<S: SequenceSymbol>(
    a: &[S],
    b: &[S],
    most: usize,
) -> Result<Option<usize>> {
    levenshtein_within(a, b, most, &mut StepBudget::unlimited())
}

/// As [`levenshtein_distance`], by taking the steps from a budget.
pub(super) fn levenshtein_within<S: SequenceSymbol>(
    a: &[S],
    b: &[S],
    most: usize,
    budget: &mut StepBudget,
) -> Result<Option<usize>> {
    edit_distance::<LevenshteinCells, S>(a, b, most, budget)
}

/// Returns the fewest insertions and deletions of symbols that turn one sequence into the other, if there are
/// at most `most`.
///
/// ```
/// use lookalike::similarity::indel_distance;
///
/// // A substitution is a deletion and an insertion.
/// let [a, b] = ["渡船七点开", "渡船八点开了"].map(|text| text.chars().collect::<Vec<_>>());
/// assert_eq!(indel_distance(&a, &b, 5)?, Some(3));
/// # Ok::<_, lookalike::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Limit`] if it takes more than [`MOST_STEPS`] steps.
pub fn indel_distance<S: SequenceSymbol>(a: &[S], b: &[S], most: usize) -> Result<Option<usize>> {
    indel_within(a, b, most, &mut StepBudget::unlimited())
}

/// As [`indel_distance`], by taking the steps from a budget.
pub(super) fn indel_within<S: SequenceSymbol>(
    a: &[S],
    b: &[S],
    most: usize,
    budget: &mut StepBudget,
) -> Result<Option<usize>> {
    edit_distance::<IndelCells, S>(a, b, most, budget)
}

/// A prefilter of 16 bytes that rejects most pairs of sequences without reading them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SequenceOutline {
    /// Number of symbols; `u32::MAX` if there are at least as many.
    length: u32,
    /// Bit i is set if the number of symbols whose hash is i is odd.
    parities: u64,
}

impl SequenceOutline {
    pub(crate) fn new<S: SequenceSymbol>(symbols: &[S]) -> Self {
        let parities = symbols
            .iter()
            .fold(0, |bits, symbol| bits ^ 1 << symbol.spread_bits(6));
        Self {
            length: u32::try_from(symbols.len()).unwrap_or(u32::MAX),
            parities,
        }
    }

    /// Returns the length (4 bytes) and the parities (8).
    pub(crate) fn to_bytes(self) -> [u8; 12] {
        let mut bytes = [0; 12];
        bytes[..4].copy_from_slice(&self.length.to_le_bytes());
        bytes[4..].copy_from_slice(&self.parities.to_le_bytes());
        bytes
    }

    /// Returns the outline whose [`to_bytes`](Self::to_bytes) are these.
    pub(crate) fn from_bytes(bytes: [u8; 12]) -> Self {
        let [a, b, c, d, parities @ ..] = bytes;
        Self {
            length: u32::from_le_bytes([a, b, c, d]),
            parities: u64::from_le_bytes(parities),
        }
    }

    /// Returns the number of symbols, or `None` if it is too large for the outline.
    pub(crate) fn symbol_count(self) -> Option<usize> {
        (self.length < u32::MAX).then_some(self.length as usize)
    }

    /// Returns a lower bound of the number of symbols that are not in a pair of equal ones. Every bit in
    /// which the parities differ needs one such symbol, and so does every symbol by which one text is longer.
    pub(crate) fn least_alone(self, other: Self) -> usize {
        let odd = (self.parities ^ other.parities).count_ones();
        odd.max(self.length.abs_diff(other.length)) as usize
    }

    /// Returns a lower bound of the number of edits of any kind. Each edit that accounts for the difference
    /// in length changes one parity, and every other edit changes at most two.
    pub(crate) fn least_edits(self, other: Self) -> usize {
        let longer = self.length.abs_diff(other.length);
        let odd = (self.parities ^ other.parities).count_ones();
        longer.max((odd + longer).div_ceil(2)) as usize
    }
}

/// Number of rows in a strip, which is the number of bits in a machine word.
const ROWS: usize = 64;

/// Vertical differences between the cells of a column of a strip.
trait StripCells: Copy {
    /// Every cell is one more than the cell above it, as along the left border of the table.
    const BORDER: Self;

    /// Moves to the column on the right. Bit i of `equal` is set if row i has the symbol of the column.
    /// `above` is the horizontal difference along the upper edge (1, 0 or −1), and the result is the
    /// horizontal difference along row `last`.
    fn advance_column(&mut self, equal: u64, above: i8, last: usize) -> i8;

    /// Returns the largest distance of sequences of these lengths.
    fn largest_distance(less: usize, more: usize) -> usize;

    /// Returns a lower bound of the number of edits between two sequences, from the numbers of symbols that
    /// only one of them has.
    fn least_edits(surplus: [usize; 2]) -> usize;

    const NAME: &'static str;

    /// Number of words of rows in a tall strip.
    const WORDS: usize;

    /// Limit from which on symbols are numbered once, so that no strip has to search for them. Below this limit,
    /// numbering costs more than it saves.
    const WIDE: usize;

    /// Computes the distance in strips of this number of words. `table` has as many words for every symbol; all
    /// are 0 before and after.
    fn in_tall_strips(
        numbered: &NumberedSequences,
        most: usize,
        table: &mut [u64],
        steps: &mut PairSteps<'_>,
    ) -> Result<Option<usize>>;
}

#[derive(Clone, Copy)]
struct LevenshteinCells {
    rises: u64,
    falls: u64,
}

impl StripCells for LevenshteinCells {
    const BORDER: Self = Self {
        rises: u64::MAX,
        falls: 0,
    };
    const NAME: &'static str = "Levenshtein";

    const WORDS: usize = LANES;
    const WIDE: usize = 4 * ROWS;

    fn in_tall_strips(
        numbered: &NumberedSequences,
        most: usize,
        table: &mut [u64],
        steps: &mut PairSteps<'_>,
    ) -> Result<Option<usize>> {
        let (rows, _) = table.as_chunks_mut();
        distance_in_lanes(numbered, most, rows, Cpu::detect_best(), steps)
    }

    #[inline(always)]
    fn advance_column(&mut self, equal: u64, above: i8, last: usize) -> i8 {
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

    fn largest_distance(_: usize, more: usize) -> usize {
        more
    }

    /// A substitution removes one surplus symbol on each side.
    fn least_edits(surplus: [usize; 2]) -> usize {
        surplus[0].max(surplus[1])
    }
}

/// Differences are 1 or −1. If a cell is not one more than the cell above it, it is one less, and the longest
/// common subsequence has become longer.
#[derive(Clone, Copy)]
struct IndelCells {
    rises: u64,
}

impl StripCells for IndelCells {
    const BORDER: Self = Self { rises: u64::MAX };
    const NAME: &'static str = "Indel";

    const WORDS: usize = 4;
    const WIDE: usize = 8 * ROWS;

    fn in_tall_strips(
        numbered: &NumberedSequences,
        most: usize,
        table: &mut [u64],
        steps: &mut PairSteps<'_>,
    ) -> Result<Option<usize>> {
        in_tall_strips::<Self, { Self::WORDS }>(numbered, most, table, steps)
    }

    /// A carry means that this column makes the longest common subsequence longer. Rows behind the last one
    /// equal no symbol and pass the carry on.
    #[inline(always)]
    fn advance_column(&mut self, equal: u64, above: i8, _: usize) -> i8 {
        let met = self.rises & equal;
        let (sum, carry) = self.rises.overflowing_add(met);
        let (sum, carry_above) = sum.overflowing_add(u64::from(above < 0));
        self.rises = sum | (self.rises - met);
        1 - 2 * i8::from(carry | carry_above)
    }

    fn largest_distance(less: usize, more: usize) -> usize {
        less + more
    }

    fn least_edits(surplus: [usize; 2]) -> usize {
        surplus[0] + surplus[1]
    }
}

/// Length of the longest text whose symbols are numbered, because numbering takes up to 104 bytes per symbol.
const NUMBERED: usize = 1 << 18;

/// Factor by which the limit grows from round to round.
const GROWTH: usize = 4;

/// The rows of a strip that have each symbol, as bit masks.
struct SymbolMasks<S> {
    symbols: [S; 2 * ROWS],
    rows: [u64; 2 * ROWS],
}

impl<S: SequenceSymbol> SymbolMasks<S> {
    #[inline(always)]
    fn new(strip: &[S]) -> Self {
        let mut masks = Self {
            symbols: [S::default(); 2 * ROWS],
            rows: [0; 2 * ROWS],
        };
        for (row, &symbol) in strip.iter().enumerate() {
            let at = masks.symbol_slot(symbol);
            masks.symbols[at] = symbol;
            masks.rows[at] |= 1 << row;
        }
        masks
    }

    /// Returns the place of a symbol. At least half of the places are empty, so the search ends.
    #[inline(always)]
    fn symbol_slot(&self, symbol: S) -> usize {
        let mut at = symbol.spread_bits(7) as usize;
        while self.rows[at] != 0 && self.symbols[at] != symbol {
            at = (at + 1) % (2 * ROWS);
        }
        at
    }

    #[inline(always)]
    fn rows_with_symbol(&self, symbol: S) -> u64 {
        self.rows[self.symbol_slot(symbol)]
    }
}

/// Two sequences by the numbers of their symbols; 0 stands for all symbols that `less` does not contain.
struct NumberedSequences {
    less: Vec<u32>,
    more: Vec<u32>,
    symbols: usize,
}

impl NumberedSequences {
    fn new<S: SequenceSymbol>(less: &[S], more: &[S]) -> Self {
        SYMBOL_TABLE.with_borrow_mut(|table| {
            table.clear_numbers(less.len());
            let less = less.iter().map(|&symbol| table.add_symbol(symbol));
            let less = less.collect();
            let more = more.iter().map(|&symbol| table.symbol_number(symbol));
            Self {
                less,
                more: more.collect(),
                symbols: table.count as usize + 1,
            }
        })
    }
}

thread_local! {
    /// Kept for the next pair, because allocating and clearing the table takes as long as numbering does.
    static SYMBOL_TABLE: RefCell<SymbolTable> = RefCell::default();
}

/// A hash table of the symbols of one sequence and their numbers, from 1 in the order of their first
/// occurrence.
///
/// It is cleared without writing to its entries: numbers are stored with `base` added, and entries up to
/// `base` are empty, because they are of earlier sequences.
#[derive(Default)]
struct SymbolTable {
    /// Value of a symbol, and `base` plus its number. At most half of the first 2^`bits` entries are used, so
    /// that a search ends.
    entries: Vec<(u64, u32)>,
    bits: u32,
    base: u32,
    /// Number of different symbols.
    count: u32,
}

impl SymbolTable {
    /// Removes all symbols, and makes room for `most` different ones.
    fn clear_numbers(&mut self, most: usize) {
        self.base += self.count;
        self.count = 0;
        self.bits = (2 * most).next_power_of_two().ilog2().max(6);
        let needed = 1 << self.bits;
        if self.entries.len() < needed || self.base as usize + most > u32::MAX as usize {
            self.entries.clear();
            self.entries.resize(needed, (0, 0));
            self.base = 0;
        }
    }

    /// Returns the place of a symbol, and its number, or 0 if it is not in the table.
    fn find_symbol<S: SequenceSymbol>(&self, symbol: S) -> (usize, u32) {
        let mut at = symbol.spread_bits(self.bits) as usize;
        loop {
            let (value, number) = self.entries[at];
            if number <= self.base || value == symbol.symbol_value() {
                return (at, number.saturating_sub(self.base));
            }
            at = (at + 1) & ((1 << self.bits) - 1);
        }
    }

    fn symbol_number<S: SequenceSymbol>(&self, symbol: S) -> u32 {
        self.find_symbol(symbol).1
    }

    /// Returns the number of a symbol, which is a new one if it is not in the table.
    fn add_symbol<S: SequenceSymbol>(&mut self, symbol: S) -> u32 {
        let (at, number) = self.find_symbol(symbol);
        if number > 0 {
            return number;
        }
        self.count += 1;
        self.entries[at] = (symbol.symbol_value(), self.base + self.count);
        self.count
    }
}

/// Smallest length, and smallest limit, for which symbols are counted. Below it, computing the cells costs no
/// more.
const COUNTED: usize = 4 * ROWS;

/// Returns `true` if the counts of symbols show that two sequences are more than `most` edits apart.
fn are_apart_by_counts<C: StripCells, S: SequenceSymbol>(
    less: &[S],
    more: &[S],
    most: usize,
) -> bool {
    less.len() >= COUNTED
        && most >= COUNTED
        && most < C::largest_distance(less.len(), more.len())
        && C::least_edits(count_surplus(less, more)) > most
}

/// Returns lower bounds of the numbers of symbols that each of two sequences has beyond the other. Symbols
/// are counted by hash; a collision can hide a difference but never adds one.
fn count_surplus<S: SequenceSymbol>(a: &[S], b: &[S]) -> [usize; 2] {
    /// 2¹² counters take 16 KiB, which fit into the first-level cache.
    const BITS: u32 = 12;
    let mut counts = [0i32; 1 << BITS];
    let bucket = |symbol: &S| symbol.spread_bits(BITS) as usize;
    a.iter().for_each(|symbol| counts[bucket(symbol)] += 1);
    b.iter().for_each(|symbol| counts[bucket(symbol)] -= 1);
    let sum = |sign: i32| -> usize { counts.iter().map(|&it| (sign * it).max(0) as usize).sum() };
    [sum(1), sum(-1)]
}

/// Returns two sequences without their common head and tail.
fn trim_common_ends<'a, S: SequenceSymbol>(a: &'a [S], b: &'a [S]) -> (&'a [S], &'a [S]) {
    let head = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let (a, b) = (&a[head..], &b[head..]);
    let tail = a.iter().rev().zip(b.iter().rev());
    let tail = tail.take_while(|(a, b)| a == b).count();
    (&a[..a.len() - tail], &b[..b.len() - tail])
}

fn edit_distance<C: StripCells, S: SequenceSymbol>(
    a: &[S],
    b: &[S],
    most: usize,
    budget: &mut StepBudget,
) -> Result<Option<usize>> {
    if a.len().abs_diff(b.len()) > most {
        return Ok(None);
    }
    let (a, b) = trim_common_ends(a, b);
    // Of two sequences of equal length, the smaller one comes first, so that the work does not depend on the
    // order of the arguments.
    let swapped = (b.len(), b) < (a.len(), a);
    let (less, more) = if swapped { (b, a) } else { (a, b) };
    if less.is_empty() {
        return Ok((more.len() <= most).then_some(more.len()));
    }
    if less.len() <= ROWS {
        let mut steps = PairSteps::for_lengths::<C>(less.len(), more.len(), budget);
        steps.take_steps(more.len())?;
        return Ok(in_one_strip::<C, S>(less, more, most));
    }
    if are_apart_by_counts::<C, S>(less, more, most) {
        return Ok(None);
    }
    let mut steps = PairSteps::for_lengths::<C>(less.len(), more.len(), budget);
    let most = most.min(C::largest_distance(less.len(), more.len()));
    let mut limit = more.len() - less.len() + ROWS;
    let mut numbered = None;
    loop {
        let is_wide = limit >= C::WIDE && more.len() <= NUMBERED;
        let within = if is_wide && limit > most / 2 {
            most
        } else {
            limit.min(most)
        };
        let found = if is_wide && within >= C::WIDE {
            let (numbered, table) = numbered.get_or_insert_with(|| {
                let numbered = NumberedSequences::new(less, more);
                let table = vec![0; numbered.symbols * C::WORDS];
                (numbered, table)
            });
            C::in_tall_strips(numbered, within, table, &mut steps)?
        } else {
            distance_in_strips::<C, S>(less, more, within, &mut steps)?
        };
        if found.is_some() || within == most {
            return Ok(found);
        }
        limit = limit.saturating_mul(GROWTH);
    }
}

/// Counts the steps of a comparison, and refuses too many.
struct PairSteps<'b> {
    taken: u64,
    most: u64,
    budget: &'b mut StepBudget,
    what: &'static str,
    lengths: [usize; 2],
}

impl<'b> PairSteps<'b> {
    fn for_lengths<C: StripCells>(less: usize, more: usize, budget: &'b mut StepBudget) -> Self {
        Self {
            taken: 0,
            most: MOST_STEPS,
            budget,
            what: C::NAME,
            lengths: [less, more],
        }
    }

    fn take_steps(&mut self, steps: usize) -> Result<()> {
        self.budget.take(steps as u64)?;
        self.taken += steps as u64;
        if self.taken <= self.most {
            return Ok(());
        }
        let [less, more] = self.lengths;
        Err(Error::new(
            ErrorKind::Limit,
            format!(
                "the {} distance of two texts that differ over {less} and {more} symbols takes \
                 more than {} steps: give a higher threshold, compare by words, or use a measure \
                 of features, such as the Jaccard index",
                self.what, self.most
            ),
        ))
    }
}

/// Computes the distance if `less` has at most 64 rows.
#[inline(always)]
fn in_one_strip<C: StripCells, S: SequenceSymbol>(
    less: &[S],
    more: &[S],
    most: usize,
) -> Option<usize> {
    let masks = SymbolMasks::new(less);
    let last = less.len() - 1;
    let mut column = C::BORDER;
    let mut value = less.len();
    let mut left = more.len();
    for &symbol in more {
        let below = column.advance_column(masks.rows_with_symbol(symbol), 1, last);
        value = value.wrapping_add_signed(isize::from(below));
        left -= 1;
        // Every further column lowers the value by at most one.
        if value > left.saturating_add(most) {
            return None;
        }
    }
    Some(value)
}

/// Computes the distance for any number of rows. Cells outside the strips count as if the only path to them
/// led along the border of the computed cells. Their values are therefore never too small, and correct
/// wherever they matter.
fn distance_in_strips<C: StripCells, S: SequenceSymbol>(
    less: &[S],
    more: &[S],
    most: usize,
    steps: &mut PairSteps<'_>,
) -> Result<Option<usize>> {
    let longer = more.len() - less.len();
    let aside = (most - longer) / 2;
    // Horizontal differences along the lower edge of the previous strip.
    let mut edge = vec![1i8; more.len()];
    let (mut first, mut corner) = (0, 0);
    let mut bottom = 0;
    for strip in less.chunks(ROWS) {
        bottom += strip.len();
        let rows_left = less.len() - bottom;
        let end = more.len().min(bottom + longer + aside);
        steps.take_steps(end - first)?;
        // `true` if a path within the limit may lead through a cell of the lower edge.
        let may_lead =
            |column: usize, value: usize| value + rows_left.abs_diff(more.len() - column) <= most;
        let masks = SymbolMasks::new(strip);
        let mut cells = C::BORDER;
        let mut value = corner + strip.len();
        let mut column = first;
        let mut advance = |column: usize, value: usize| {
            let symbol = more[column];
            let below = cells.advance_column(
                masks.rows_with_symbol(symbol),
                edge[column],
                strip.len() - 1,
            );
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

/// Computes the distance of numbered symbols, in strips of `W` words of rows. `table` holds the rows of every
/// symbol in the strip; all are 0 before and after.
fn in_tall_strips<C: StripCells, const W: usize>(
    numbered: &NumberedSequences,
    most: usize,
    table: &mut [u64],
    steps: &mut PairSteps<'_>,
) -> Result<Option<usize>> {
    let NumberedSequences { less, more, .. } = numbered;
    let longer = more.len() - less.len();
    let aside = (most - longer) / 2;
    let mut edge = vec![1i8; more.len()];
    let (mut first, mut corner) = (0, 0);
    let mut bottom = 0;
    for strip in less.chunks(W * ROWS) {
        bottom += strip.len();
        let rows_left = less.len() - bottom;
        let end = more.len().min(bottom + longer + aside);
        steps.take_steps(strip.len().div_ceil(ROWS) * (end - first))?;
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
            for (word, (cells, &rows)) in cells.iter_mut().zip(rows).enumerate() {
                if word < full {
                    below = cells.advance_column(rows, below, ROWS - 1);
                } else if word == full {
                    below = cells.advance_column(rows, below, last);
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

    /// Returns the distance by the textbook's table.
    pub(super) fn plain<S: SequenceSymbol>(a: &[S], b: &[S], substitution: usize) -> usize {
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

    /// Checks that both distances equal the textbook's, for every limit around them and both orders of
    /// arguments.
    fn check<S: SequenceSymbol + std::fmt::Debug>(a: &[S], b: &[S]) {
        type Distance<S> = fn(&[S], &[S], usize) -> Result<Option<usize>>;
        for (within, substitution) in [
            (levenshtein_distance as Distance<S>, 1),
            (indel_distance, 2),
        ] {
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
    fn edit_distance_equals_worked_examples() {
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
            assert_eq!(
                levenshtein_distance(&a, &b, usize::MAX).unwrap(),
                Some(edits)
            );
            assert_eq!(indel_distance(&a, &b, usize::MAX).unwrap(), Some(indels));
        }
    }

    /// Returns random symbols of an alphabet of the given size.
    pub(super) fn random(length: usize, alphabet: u64, seed: u64) -> Vec<u64> {
        (0..length as u64)
            .map(|at| crate::hash::mix_bits(seed << 32 | at) % alphabet)
            .collect()
    }

    #[test]
    fn lengths_around_strip_borders_equal_textbook() {
        for less in [0, 1, 2, 31, 63, 64, 65, 66, 127, 128, 129, 192, 200] {
            for more in [0, 1, 62, 63, 64, 65, 100, 128, 130, 193, 400] {
                for alphabet in [1, 2, 4, 50, 1 << 40] {
                    check(&random(less, alphabet, 1), &random(more, alphabet, 2));
                }
            }
        }
    }

    /// Returns a long text and a copy with some edits.
    pub(super) fn edited(length: usize, alphabet: u64, edits: u64, seed: u64) -> [Vec<u64>; 2] {
        let text = random(length, alphabet, seed);
        let mut other = text.clone();
        for edit in 0..edits {
            let at = crate::hash::mix_bits(seed ^ edit << 40) as usize % other.len().max(1);
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
    fn edited_copies_equal_the_textbook() {
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
    fn too_long_comparison_is_refused() {
        let mut unlimited = StepBudget::unlimited();
        let mut steps = PairSteps::for_lengths::<LevenshteinCells>(300, 400, &mut unlimited);
        steps.most = 300;
        let (a, b) = (random(300, 9, 1), random(400, 9, 2));
        let error = distance_in_strips::<LevenshteinCells, _>(&a, &b, 400, &mut steps).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Limit);
        let said = error.to_string();
        assert!(
            said.contains("300 and 400 symbols takes more than 300 steps"),
            "{said}"
        );
    }

    #[test]
    fn cost_is_bounded_by_the_distance() {
        let [a, b] = edited(300_000, 5000, 30, 3);
        let (less, more) = trim_common_ends(&a, &b);
        let (less, more) = if less.len() <= more.len() {
            (less, more)
        } else {
            (more, less)
        };
        let mut unlimited = StepBudget::unlimited();
        let mut steps =
            PairSteps::for_lengths::<LevenshteinCells>(less.len(), more.len(), &mut unlimited);
        let within = more.len() - less.len() + ROWS;
        let found =
            distance_in_strips::<LevenshteinCells, _>(less, more, within, &mut steps).unwrap();
        assert!(
            found.is_some_and(|found| found <= 30 && found > 20),
            "{found:?}"
        );
        assert!(steps.taken < 5 * 300_000, "{}", steps.taken);
        assert_eq!(levenshtein_distance(&a, &b, 60_000).unwrap(), found);
    }

    /// Pages share a template and have content of their own. The counts must bound the distance from below,
    /// and for some pairs they must end the comparison.
    #[test]
    fn counts_bound_the_distance_from_below() {
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
                let surplus = count_surplus(&a, &b);
                assert!(LevenshteinCells::least_edits(surplus) <= edits);
                assert!(IndelCells::least_edits(surplus) <= indels);
                for most in [COUNTED - 1, COUNTED, 400, 600] {
                    let apart = are_apart_by_counts::<LevenshteinCells, _>(&a, &b, most);
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
        fn differing_symbols_never_exceed_the_edits(
            a in proptest::collection::vec(0u64..9, 0..60),
            b in proptest::collection::vec(0u64..9, 0..60),
        ) {
            let surplus = count_surplus(&a, &b);
            prop_assert!(LevenshteinCells::least_edits(surplus) <= plain(&a, &b, 1));
            prop_assert!(IndelCells::least_edits(surplus) <= plain(&a, &b, 2));
        }

        #[test]
        fn tall_strips_equal_the_textbook(
            a in proptest::collection::vec(0u64..5, 1..700),
            b in proptest::collection::vec(0u64..5, 1..700),
            slack in 0usize..100,
        ) {
            let (less, more) = if a.len() <= b.len() { (a, b) } else { (b, a) };
            let numbered = NumberedSequences::new(&less, &more);
            let expected = [plain(&less, &more, 1), plain(&less, &more, 2)];
            for (at, words) in [(0, LevenshteinCells::WORDS), (1, IndelCells::WORDS)] {
                for most in [expected[at] + slack, expected[at].saturating_sub(1 + slack)] {
                    if most < more.len() - less.len() {
                        continue;
                    }
                    let mut unlimited = StepBudget::unlimited();
                    let mut steps = PairSteps::for_lengths::<IndelCells>(less.len(), more.len(), &mut unlimited);
                    let mut table = vec![0; numbered.symbols * words];
                    let found = match at {
                        0 => LevenshteinCells::in_tall_strips(&numbered, most, &mut table, &mut steps),
                        _ => IndelCells::in_tall_strips(&numbered, most, &mut table, &mut steps),
                    };
                    let within = (expected[at] <= most).then_some(expected[at]);
                    prop_assert_eq!(found.unwrap(), within);
                    prop_assert!(table.iter().all(|&rows| rows == 0));
                }
            }
        }

        #[test]
        fn arbitrary_pairs_equal_the_textbook(
            a in proptest::collection::vec(0u64..5, 0..150),
            b in proptest::collection::vec(0u64..5, 0..150),
        ) {
            check(&a, &b);
        }

        #[test]
        fn outline_bounds_the_distance_from_below(
            a in proptest::collection::vec(0u32..200, 0..40),
            b in proptest::collection::vec(0u32..200, 0..40),
        ) {
            let (one, other) = (SequenceOutline::new(&a), SequenceOutline::new(&b));
            prop_assert!(one.least_edits(other) <= plain(&a, &b, 1));
            prop_assert!(one.least_alone(other) <= plain(&a, &b, 2));
            prop_assert_eq!(one.least_edits(other), other.least_edits(one));
            prop_assert_eq!(one.least_alone(other), other.least_alone(one));
        }
    }
}
