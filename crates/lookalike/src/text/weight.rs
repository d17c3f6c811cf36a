//! Weights of features: their numbers of occurrences, and weights from a table.
//!
//! Weights are integers in steps of 1/65,536, so that sums are exact and depend neither on the order of
//! features nor on the platform. A table is read once, with its recipe. A document then costs a sort of its
//! features and one look-up for each distinct feature.
//!
//! A table of document frequencies stores idf as decimal digits, so that weights depend on the file and not
//! on the logarithm function of the machine that reads it. The idf is ln((1 + documents) / (1 + documents
//! with the term)) + 1, so that a term that occurs in every document still counts.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

use crate::arch::{LargePageArray, prefetch};
use crate::error::{Error, Result};
use crate::recipe::{Recipe, WeightScheme};
use crate::sketch::tie_order;
use crate::text::frequencies::LearnedFrequencies;

/// Number of steps in a weight of 1.
pub const WEIGHT_STEPS: i64 = 65_536;

/// Returns a given weight in whole steps. A weight other than 0 is at least one step, with its sign.
pub(crate) fn weight_in_steps(weight: f64) -> i64 {
    match (weight * WEIGHT_STEPS as f64).round() as i64 {
        0 if weight > 0.0 => 1,
        0 if weight < 0.0 => -1,
        steps => steps,
    }
}

/// Largest weight in a table, and largest given weight. A sum of such weights does not overflow even in the
/// longest text.
pub const MOST_WEIGHT: f64 = 1_000_000.0;

/// First line of a table of document frequencies, without its version.
const MAGIC: &str = "# lookalike idf ";

/// Version of such tables that is written, and the only one that is read.
const VERSION: &str = "1";

/// Number of lines of the header of a table of document frequencies.
const HEADER_LINES: usize = 6;

/// The kind of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TableKind {
    /// Document frequencies, learned from a corpus.
    Frequencies(FrequencyTableHeader),
    /// A weight or level for each term.
    Plain,
}

/// The header of a table of document frequencies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrequencyTableHeader {
    /// Name of the recipe under which the table was learned.
    pub recipe: String,
    /// Identity of the part of the recipe that makes terms: [`Recipe::terms_id`].
    pub terms_id: String,
    /// Number of documents of the corpus that have a term.
    pub documents: u64,
    /// Number of terms in the table.
    pub rows: u64,
}

/// A table `term<TAB>…<TAB>weight`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WeightTable {
    pub(crate) kind: TableKind,
    /// Terms with their weights and line numbers.
    pub(crate) rows: Vec<(Box<str>, i64, usize)>,
}

impl FrequencyTableHeader {
    /// Creates the header of a table with `rows` terms, learned from `documents` documents under
    /// a recipe.
    pub fn new(recipe: &Recipe, documents: u64, rows: usize) -> Self {
        Self {
            recipe: recipe.name.clone(),
            terms_id: recipe.terms_id().to_string(),
            documents,
            rows: rows as u64,
        }
    }

    /// Returns the lines before the rows.
    pub fn to_text(&self) -> String {
        format!(
            "{MAGIC}{VERSION}\n# recipe {}\n# terms {}\n# documents {}\n# rows {}\nterm\tdocuments\tidf\n",
            escape_term(&self.recipe),
            self.terms_id,
            self.documents,
            self.rows
        )
    }

    /// Appends the lines of a range of learned terms.
    pub fn append_rows(
        &self,
        learned: &LearnedFrequencies,
        range: Range<usize>,
        into: &mut String,
    ) {
        let mut lines = FrequencyLines::new(self.documents);
        learned.visit_terms(range, |term, documents| {
            lines.append_line(term, documents, into);
        });
    }
}

/// Formats the lines of a table of document frequencies. Equal numbers in a row are formatted once.
#[derive(Clone, Debug)]
pub struct FrequencyLines {
    all_documents: u64,
    documents: u64,
    tail: String,
}

impl FrequencyLines {
    /// Creates the lines of a table that was learned from so many documents.
    pub fn new(all_documents: u64) -> Self {
        Self {
            all_documents,
            documents: 0,
            tail: String::new(),
        }
    }

    /// Appends the line of a term that is in `documents` documents, from 1.
    pub fn append_line(&mut self, term: &str, documents: u64, into: &mut String) {
        if documents != self.documents {
            self.documents = documents;
            let idf = inverse_frequency(self.all_documents, documents);
            self.tail = format!("\t{documents}\t{idf:.4}\n");
        }
        into.push_str(&escape_term(term));
        into.push_str(&self.tail);
    }
}

/// Returns the inverse document frequency of a term.
fn inverse_frequency(all: u64, with: u64) -> f64 {
    ((1 + all) as f64 / (1 + with) as f64).ln() + 1.0
}

/// Reads a table of document frequencies. It calls `visit` with every term and its number of documents, and
/// returns the header.
///
/// # Errors
/// [`ErrorKind::Recipe`](crate::ErrorKind::Recipe), with the line, if the text is not such a table. `name` is
/// for messages.
pub fn read_frequencies(
    name: &str,
    text: &str,
    mut visit: impl FnMut(String, u64),
) -> Result<FrequencyTableHeader> {
    refuse_other_tables(name, text)?;
    let mut lines = TableLines::new(name, text);
    let head = lines.read_header()?;
    let mut seen = HashSet::new();
    while let Some(line) = lines.next_line() {
        let (term, documents, _) = lines.parse_frequency(line, head.documents)?;
        if !seen.insert(term.clone()) {
            return Err(repeated_term_error(name, lines.number as u64, &term));
        }
        visit(term, documents);
    }
    lines.check_rows(&head, seen.len())?;
    Ok(head)
}

/// Reads a table of document frequencies line by line. It calls `visit` with every term, its number of documents and
/// the number of its line, and returns the header. Repeated terms are not noticed.
///
/// # Errors
/// The error of `next_line`, which replaces a line by the next one and returns `false` at the end; the errors of
/// `visit`; and [`ErrorKind::Recipe`](crate::ErrorKind::Recipe), with the line, if the lines are not such a table.
/// `name` is for messages.
pub fn read_frequency_lines<E: From<Error>>(
    name: &str,
    mut next_line: impl FnMut(&mut String) -> Result<bool, E>,
    mut visit: impl FnMut(String, u64, u64) -> Result<(), E>,
) -> Result<FrequencyTableHeader, E> {
    let (mut front, mut line) = (String::new(), String::new());
    for _ in 0..HEADER_LINES {
        if !next_line(&mut line)? {
            break;
        }
        front.push_str(&line);
        front.push('\n');
    }
    refuse_other_tables(name, &front)?;
    let mut lines = TableLines::new(name, &front);
    let head = lines.read_header()?;
    let mut rows = 0;
    while next_line(&mut line)? {
        lines.number += 1;
        let (term, documents, _) = lines.parse_frequency(&line, head.documents)?;
        rows += 1;
        visit(term, documents, lines.number as u64)?;
    }
    lines.check_rows(&head, rows)?;
    Ok(head)
}

/// Returns the error for a term that is repeated on a line of a table.
pub fn repeated_term_error(name: &str, line: u64, term: &str) -> Error {
    Error::recipe_error(format!("{name}:{line}: the term '{term}' is repeated"))
}

fn refuse_other_tables(name: &str, text: &str) -> Result<()> {
    if text.starts_with(MAGIC) {
        return Ok(());
    }
    Err(Error::recipe_error(format!(
        "{name} is not a table of document frequencies: its first line is not \
         '{MAGIC}{VERSION}'"
    )))
}

impl WeightTable {
    /// Parses a table; `name` is for messages.
    pub(crate) fn parse_table(name: &str, text: &str) -> Result<Self> {
        let mut lines = TableLines::new(name, text);
        let learned = text.starts_with(MAGIC);
        let kind = if learned {
            TableKind::Frequencies(lines.read_header()?)
        } else {
            TableKind::Plain
        };
        let mut rows = Vec::new();
        let mut seen = HashSet::new();
        while let Some(line) = lines.next_line() {
            let (term, weight) = match &kind {
                TableKind::Frequencies(head) => {
                    let (term, _, idf) = lines.parse_frequency(line, head.documents)?;
                    (term, idf)
                }
                TableKind::Plain if line.trim().is_empty() || line.starts_with('#') => continue,
                TableKind::Plain => lines.parse_weight(line)?,
            };
            if !seen.insert(term.clone()) {
                return Err(lines.line_error(format!("the term '{term}' is repeated")));
            }
            rows.push((term.into_boxed_str(), weight, lines.number));
        }
        if let TableKind::Frequencies(head) = &kind {
            lines.check_rows(head, rows.len())?;
        }
        Ok(Self { kind, rows })
    }

    /// Returns the table, or an error if one of its weights is not a level.
    pub(crate) fn refuse_other_levels(self, name: &str) -> Result<Self> {
        let is_level = |weight: i64| {
            weight % WEIGHT_STEPS == 0 && (1..=LEVEL_COUNT).contains(&(weight / WEIGHT_STEPS))
        };
        match self.rows.iter().find(|(_, weight, _)| !is_level(*weight)) {
            None => Ok(self),
            Some((term, weight, line)) => Err(Error::recipe_error(format!(
                "{name}:{line}: the level of '{term}' is {}, but must be 1, 2, 3, 4 or 5",
                *weight as f64 / WEIGHT_STEPS as f64
            ))),
        }
    }

    /// Returns the table, or an error if terms that are the same to the recipe have different weights.
    /// `features` are the features of the terms.
    pub(crate) fn refuse_contradictions(
        self,
        name: &str,
        features: &[Option<u64>],
    ) -> Result<Self> {
        let mut first = HashMap::new();
        for (row, feature) in self.rows.iter().zip(features) {
            let Some(feature) = feature else {
                continue;
            };
            let (term, weight, line) = row;
            let (before, other, above) = *first.entry(feature).or_insert(row);
            if weight != other {
                let [weight, other] =
                    [weight, other].map(|weight| *weight as f64 / WEIGHT_STEPS as f64);
                return Err(Error::recipe_error(format!(
                    "{name}:{line}: '{term}' weighs {weight}, and '{before}' on line {above} weighs \
                     {other}, but both are the same term after normalisation"
                )));
            }
        }
        Ok(self)
    }

    /// Returns the weight of a term that is not in the table.
    fn absent_weight(&self) -> i64 {
        match self.kind {
            TableKind::Plain => WEIGHT_STEPS,
            TableKind::Frequencies(_) => {
                let weights = self.rows.iter().map(|(_, weight, _)| *weight);
                weights.max().unwrap_or(WEIGHT_STEPS)
            }
        }
    }
}

struct TableLines<'t> {
    name: &'t str,
    lines: std::str::Lines<'t>,
    number: usize,
    /// `true` if spaces separate terms from their weights, because the text has no tab.
    parted_by_spaces: bool,
}

impl<'t> TableLines<'t> {
    fn new(name: &'t str, text: &'t str) -> Self {
        let lines = text.lines();
        Self {
            name,
            lines,
            number: 0,
            // jieba separates the words of its `inverse_frequency.txt` from their weights by a space.
            parted_by_spaces: !text.contains('\t'),
        }
    }

    fn next_line(&mut self) -> Option<&'t str> {
        self.number += 1;
        self.lines.next()
    }

    fn line_error(&self, what: impl std::fmt::Display) -> Error {
        Error::recipe_error(format!("{}:{}: {what}", self.name, self.number))
    }

    fn read_header(&mut self) -> Result<FrequencyTableHeader> {
        let version = self.expect_prefix(MAGIC)?;
        if version != VERSION {
            return Err(self.line_error(format!(
                "the table is of version {version}; this program reads version {VERSION}"
            )));
        }
        let recipe = unescape_term(self.expect_prefix("# recipe ")?);
        let terms_id = self.expect_prefix("# terms ")?.to_owned();
        let documents = self.expect_prefix("# documents ")?;
        let documents = documents
            .parse()
            .map_err(|_| self.line_error(format!("'{documents}' is not a number of documents")))?;
        let rows = self.expect_prefix("# rows ")?;
        let rows = rows
            .parse()
            .map_err(|_| self.line_error(format!("'{rows}' is not a number of rows")))?;
        self.expect_prefix("term\tdocuments\tidf")?;
        Ok(FrequencyTableHeader {
            recipe,
            terms_id,
            documents,
            rows,
        })
    }

    /// Refuses a table that was truncated or extended.
    fn check_rows(&self, head: &FrequencyTableHeader, rows: usize) -> Result<()> {
        if head.rows == rows as u64 {
            return Ok(());
        }
        Err(Error::recipe_error(format!(
            "{} has {rows} terms, but its header says {}: it was truncated or changed",
            self.name, head.rows
        )))
    }

    fn expect_prefix(&mut self, what: &str) -> Result<&'t str> {
        let line = self.next_line().unwrap_or_default();
        line.strip_prefix(what)
            .ok_or_else(|| self.line_error(format!("expected '{}'", what.trim_end())))
    }

    /// Parses a term, its number of documents, and its idf.
    fn parse_frequency(&self, line: &str, most: u64) -> Result<(String, u64, i64)> {
        let mut fields = line.split('\t');
        let (Some(term), Some(documents), Some(idf), None) =
            (fields.next(), fields.next(), fields.next(), fields.next())
        else {
            return Err(self.line_error("a line is a term, a tab, its documents, a tab, its idf"));
        };
        let plain = unescape_term(term);
        if term.is_empty() || escape_term(&plain) != term {
            return Err(self.line_error(format!(
                "'{term}' is not a valid term: a term has one character or more, and a backslash \
                 is followed by t, n, r or another backslash"
            )));
        }
        let number = documents.parse().ok();
        let number = number.filter(|number| (1..=most).contains(number));
        let number = number.ok_or_else(|| {
            self.line_error(format!(
                "'{documents}' is not a number of documents from 1 to {most}"
            ))
        })?;
        Ok((plain, number, self.parse_steps(idf)?))
    }

    /// Parses a term and its weight.
    fn parse_weight(&self, line: &str) -> Result<(String, i64)> {
        let parts = if self.parted_by_spaces {
            line.trim_end().rsplit_once(' ')
        } else {
            line.split_once('\t')
        };
        let (term, weight) = parts
            .filter(|(term, weight)| !term.trim().is_empty() && !weight.contains('\t'))
            .ok_or_else(|| self.line_error("a line is a term, a tab, its weight"))?;
        Ok((unescape_term(term), self.parse_steps(weight.trim())?))
    }

    fn parse_steps(&self, weight: &str) -> Result<i64> {
        let number = weight.parse::<f64>().ok();
        let number = number.filter(|number| (0.0..=MOST_WEIGHT).contains(number));
        let number = number.ok_or_else(|| {
            self.line_error(format!(
                "'{weight}' is not a weight: give a number from 0 to {MOST_WEIGHT}"
            ))
        })?;
        Ok((number * WEIGHT_STEPS as f64).round() as i64)
    }
}

/// Escapes a term for a line: tab, line feed, carriage return and backslash become `\t`, `\n`, `\r`, `\\`.
fn escape_term(term: &str) -> Cow<'_, str> {
    if !term.contains(['\\', '\t', '\n', '\r']) {
        return term.into();
    }
    let escaped = (term.replace('\\', "\\\\").replace('\t', "\\t"))
        .replace('\n', "\\n")
        .replace('\r', "\\r");
    escaped.into()
}

/// Restores an escaped term.
fn unescape_term(line: &str) -> String {
    let mut term = String::with_capacity(line.len());
    let mut points = line.chars();
    while let Some(point) = points.next() {
        if point != '\\' {
            term.push(point);
            continue;
        }
        match points.next() {
            Some('t') => term.push('\t'),
            Some('n') => term.push('\n'),
            Some('r') => term.push('\r'),
            Some('\\') | None => term.push('\\'),
            Some(other) => term.extend(['\\', other]),
        }
    }
    term
}

/// Prefetch distance of the table, in features.
const PREFETCH_DISTANCE: usize = 8;

/// The number of levels.
const LEVEL_COUNT: i64 = 5;

/// Weighting of the features of a text, for recipes in which their counts alone are not the weights.
#[derive(Debug)]
pub(crate) struct FeatureWeighting {
    weights: WeightScheme,
    table: Option<HashLookup>,
    absent: i64,
    /// `true` if the table holds the levels themselves, and not the weights from which levels are computed.
    levels_given: bool,
    top: Option<usize>,
}

/// Buffers for [`FeatureWeighting::weigh_features`].
#[derive(Debug, Default)]
pub(crate) struct WeightingBuffers {
    /// Distinct features with their weights.
    pub(crate) features: Vec<(u64, i64)>,
    /// Hash table of the features by a few of their bits. An entry holds the number of its text, and an index
    /// into `features`.
    places: Vec<(u32, u32)>,
    text: u32,
    sorted: Vec<i64>,
}

impl WeightingBuffers {
    /// Counts the features of a text.
    fn count_features(&mut self, features: &[u64]) {
        self.features.clear();
        let size = (2 * features.len()).next_power_of_two().max(16);
        self.text = self.text.wrapping_add(1);
        if self.places.len() < size || self.text == 0 {
            self.places.clear();
            self.places.resize(size, (0, 0));
            self.text = 1;
        }
        let mask = size - 1;
        for &feature in features {
            let mut at = feature as usize & mask;
            loop {
                let (text, place) = &mut self.places[at];
                if *text != self.text {
                    self.features.push((feature, 1));
                    (*text, *place) = (self.text, self.features.len() as u32 - 1);
                    break;
                }
                let known = &mut self.features[*place as usize];
                if known.0 == feature {
                    known.1 += 1;
                    break;
                }
                at = (at + 1) & mask;
            }
        }
    }
}

impl FeatureWeighting {
    /// Creates the weighting of a recipe, or returns `None` if counts are the weights. `feature` maps a term
    /// to the recipe's feature; its second argument is `true` if the term was made by a recipe with the same
    /// terms.
    pub(crate) fn new(
        recipe: &Recipe,
        mut feature: impl FnMut(&str, bool) -> Option<u64>,
    ) -> Option<Self> {
        let simhash = &recipe.simhash;
        if !simhash.weights.needs_table() && simhash.top.is_none() {
            return None;
        }
        let loaded = recipe.loaded_files();
        let table = loaded.table.as_ref();
        let learned = table.is_some_and(|table| table.kind != TableKind::Plain);
        let lookup = table.map(|table| {
            let known = table.rows.iter().filter_map(|(term, weight, _)| {
                feature(term, learned).map(|feature| (feature, *weight))
            });
            HashLookup::new(known.collect())
        });
        Some(Self {
            weights: simhash.weights,
            absent: table.map_or(WEIGHT_STEPS, WeightTable::absent_weight),
            table: lookup,
            levels_given: simhash.weights == WeightScheme::Levels && !learned,
            top: simhash.top.map(|top| top as usize),
        })
    }

    /// Converts the features of a text, with repetitions, to the distinct ones with their weights. They are
    /// in the order of their first occurrence; with `top`, the order is unspecified.
    pub(crate) fn weigh_features(&self, features: &[u64], weighed: &mut WeightingBuffers) {
        weighed.count_features(features);
        let counted = &mut weighed.features;
        for at in 0..counted.len() {
            if let (Some(table), Some(&(later, _))) =
                (&self.table, counted.get(at + PREFETCH_DISTANCE))
            {
                table.prefetch_key(later);
            }
            let (feature, count) = counted[at];
            counted[at].1 = self.feature_weight(feature, count);
        }
        self.finish_weights(weighed);
    }

    fn feature_weight(&self, feature: u64, count: i64) -> i64 {
        let known = self.table.as_ref().and_then(|table| table.get(feature));
        let weight = known.unwrap_or(self.absent);
        let times = match self.weights {
            WeightScheme::Binary => 1,
            WeightScheme::Levels if self.levels_given => 1,
            _ => count,
        };
        weight.saturating_mul(times)
    }

    /// Reduces weighted features to the heaviest, and computes levels.
    fn finish_weights(&self, weighed: &mut WeightingBuffers) {
        let WeightingBuffers {
            features, sorted, ..
        } = weighed;
        let by_levels = self.weights == WeightScheme::Levels && !self.levels_given;
        if by_levels {
            sorted.clear();
            sorted.extend(features.iter().map(|&(_, weight)| weight));
            sorted.sort_unstable();
        }
        if let Some(top) = self.top {
            keep_heaviest(features, top);
        }
        if by_levels {
            for (_, weight) in features {
                *weight = weight_level(sorted, *weight) * WEIGHT_STEPS;
            }
        } else {
            // A feature of weight 0 does not vote, so it must not decide ties either.
            features.retain(|&(_, weight)| weight != 0);
        }
    }
}

/// Keeps the heaviest features. Among equal weights, the first ones stay in an order of hashes in which all
/// bits take part.
pub(crate) fn keep_heaviest(features: &mut Vec<(u64, i64)>, top: usize) {
    if features.len() > top {
        features.select_nth_unstable_by(top, |(a, heavy), (b, light)| {
            light
                .cmp(heavy)
                .then_with(|| tie_order(*a).cmp(&tie_order(*b)))
        });
        features.truncate(top);
    }
}

/// Returns the level of a weight: 1 plus the number of whole fifths of all weights that are lighter.
fn weight_level(sorted: &[i64], weight: i64) -> i64 {
    let lighter = sorted.partition_point(|&other| other < weight);
    1 + LEVEL_COUNT * lighter as i64 / sorted.len() as i64
}

/// A hash table from 64-bit hashes to values, with open addressing, at most two thirds full.
#[derive(Debug)]
pub(crate) struct HashLookup {
    /// Keys and values; key 0 marks an empty slot.
    slots: LargePageArray<[u64; 2]>,
    shift: u32,
    zero: Option<i64>,
}

impl HashLookup {
    /// Creates a table. A key that occurs twice has the same value both times, or is a collision of two
    /// hashes; the first value is kept.
    pub(crate) fn new(entries: Vec<(u64, i64)>) -> Self {
        let size = (entries.len() * 3 / 2 + 2).next_power_of_two();
        let mut lookup = Self {
            slots: LargePageArray::allocate_zeroed(size)
                .expect("memory for a table that was just read"),
            shift: 64 - size.trailing_zeros(),
            zero: None,
        };
        for (key, value) in entries {
            if key == 0 {
                lookup.zero.get_or_insert(value);
                continue;
            }
            let at = lookup.find_slot(key);
            if lookup.slots[at][0] == 0 {
                lookup.slots[at] = [key, value as u64];
            }
        }
        lookup
    }

    /// Prefetches the slot of a key that will be looked up soon, because a table of a million terms does not
    /// fit into the cache.
    #[inline]
    fn prefetch_key(&self, key: u64) {
        prefetch(&self.slots[self.home_slot(key)]);
    }

    /// Returns the value of a key.
    #[inline]
    pub(crate) fn get(&self, key: u64) -> Option<i64> {
        if key == 0 {
            return self.zero;
        }
        let [found, value] = self.slots[self.find_slot(key)];
        (found != 0).then_some(value as i64)
    }

    /// Returns the preferred position of a key.
    #[inline]
    fn home_slot(&self, key: u64) -> usize {
        (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift) as usize
    }

    /// Returns the position at which a key is, or would be inserted.
    #[inline]
    fn find_slot(&self, key: u64) -> usize {
        let mask = self.slots.len() - 1;
        let mut at = self.home_slot(key);
        while self.slots[at][0] != 0 && self.slots[at][0] != key {
            at = (at + 1) & mask;
        }
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn weighting(weights: WeightScheme, top: Option<usize>) -> FeatureWeighting {
        FeatureWeighting {
            weights,
            table: Some(HashLookup::new(vec![(10, 3), (11, 0), (0, 7)])),
            absent: 2,
            levels_given: false,
            top,
        }
    }

    fn weighed(weighting: &FeatureWeighting, features: &[u64]) -> Vec<(u64, i64)> {
        let mut weighed = WeightingBuffers::default();
        weighting.weigh_features(features, &mut weighed);
        weighed.features.sort_unstable();
        weighed.features
    }

    #[test]
    fn weights_multiply_counts_and_zero_is_omitted() {
        let given = weighting(WeightScheme::Given, None);
        assert_eq!(weighed(&given, &[]), []);
        assert_eq!(
            weighed(&given, &[12, 10, 0, 10, 11, 12]),
            [(0, 7), (10, 6), (12, 4)]
        );
    }

    #[test]
    fn heaviest_are_kept_with_stable_ties() {
        let features: Vec<u64> = (100..140).collect();
        let reversed: Vec<u64> = features.iter().rev().copied().collect();
        for top in [1, 39, 40, 41] {
            let heaviest = weighting(WeightScheme::Given, Some(top));
            let kept = weighed(&heaviest, &features);
            assert_eq!(kept.len(), top.min(40));
            assert_eq!(kept, weighed(&heaviest, &reversed));
        }
        let heaviest = weighting(WeightScheme::Given, Some(2));
        assert_eq!(weighed(&heaviest, &[0, 10, 200, 200]), [(0, 7), (200, 4)]);
    }

    #[test]
    fn equal_weights_have_one_of_five_levels() {
        let sorted: Vec<i64> = (0..10).collect();
        let levels: Vec<_> = sorted
            .iter()
            .map(|&weight| weight_level(&sorted, weight))
            .collect();
        assert_eq!(levels, [1, 1, 2, 2, 3, 3, 4, 4, 5, 5]);
        assert_eq!(weight_level(&[4], 4), 1);
        assert_eq!(weight_level(&[1, 1, 1, 9], 9), 4);
        assert_eq!(weight_level(&[1, 1, 1, 9], 1), 1);
        let levels = weighting(WeightScheme::Levels, None);
        let steps = |level| level * WEIGHT_STEPS;
        assert_eq!(
            weighed(&levels, &[11, 10, 12, 0]),
            [
                (0, steps(4)),
                (10, steps(3)),
                (11, steps(1)),
                (12, steps(2))
            ]
        );
    }

    #[test]
    fn overflowing_weights_saturate_one_by_one() {
        let table = HashLookup::new(vec![(5, i64::MAX)]);
        let heavy = FeatureWeighting {
            table: Some(table),
            ..weighting(WeightScheme::Given, None)
        };
        assert_eq!(weighed(&heavy, &[5, 5, 6]), [(5, i64::MAX), (6, 2)]);
    }

    #[test]
    fn tables_are_read_and_bad_lines_are_named() {
        let table =
            WeightTable::parse_table("t.tsv", "\n# note\n大学\t2.5\nnew york\t0\na\\tb\t1\n")
                .unwrap();
        let rows: Vec<_> = (table.rows.iter())
            .map(|(term, weight, line)| (&**term, *weight, *line))
            .collect();
        assert_eq!(
            rows,
            [
                ("大学", 163_840, 3),
                ("new york", 0, 4),
                ("a\tb", 65_536, 5)
            ]
        );
        let head = "# lookalike idf 1\n# recipe x\n# terms 00\n# documents 9\n# rows 1\nterm\tdocuments\tidf\n";
        for (text, said) in [
            ("a\t1\nb", "t.tsv:2: a line is a term"),
            ("a\t1\na\t2", "t.tsv:2: the term 'a' is repeated"),
            ("a\t-1", "t.tsv:1: '-1' is not a weight"),
            ("a\t1000001", "from 0 to 1000000"),
            ("a\tNaN", "'NaN' is not a weight"),
            (
                "# lookalike idf 2\n",
                "version 2; this program reads version 1",
            ),
            ("# lookalike idf 1\n# terms", "t.tsv:2: expected '# recipe'"),
            (
                &format!("{head}a\t10\t1.5"),
                "t.tsv:7: '10' is not a number of documents from 1 to 9",
            ),
            (
                &format!("{head}a\t1"),
                "t.tsv:7: a line is a term, a tab, its documents",
            ),
            (head, "t.tsv has 0 terms, but its header says 1"),
            (
                &format!("{head}a\t1\t1.5\nb\t1\t1.5"),
                "t.tsv has 2 terms, but its header says 1",
            ),
            (
                &format!("{head}a\t1\t1.5\na\t1\t1.5"),
                "t.tsv:8: the term 'a' is repeated",
            ),
            ("\t5", "t.tsv:1: a line is a term, a tab, its weight"),
            (
                "a\t1\nroute 66",
                "t.tsv:2: a line is a term, a tab, its weight",
            ),
            ("route", "t.tsv:1: a line is a term, a tab, its weight"),
            ("route 66\nroute high", "t.tsv:2: 'high' is not a weight"),
            (
                "a\t33112\t1.5",
                "t.tsv:1: a line is a term, a tab, its weight",
            ),
        ] {
            let error = WeightTable::parse_table("t.tsv", text)
                .unwrap_err()
                .to_string();
            assert!(error.contains(said), "{error}");
            if text.starts_with(head) {
                let error = read_frequencies("t.tsv", text, |_, _| {}).unwrap_err();
                assert!(error.to_string().contains(said), "{error}");
                if !said.contains("repeated") {
                    let error = read_lines("t.tsv", text).unwrap_err().to_string();
                    assert!(error.contains(said), "{error}");
                }
            }
        }
        let of_jieba =
            WeightTable::parse_table("idf.txt", "劳动防护 13.5\n生化学 0.25\n\n").unwrap();
        let rows: Vec<_> = of_jieba
            .rows
            .iter()
            .map(|(term, weight, _)| (&**term, *weight))
            .collect();
        let weights = [(27 * WEIGHT_STEPS) / 2, WEIGHT_STEPS / 4];
        assert_eq!(rows, [("劳动防护", weights[0]), ("生化学", weights[1])]);
        let levels = WeightTable::parse_table("t.tsv", "a\t5\nb\t6").unwrap();
        let error = levels.refuse_other_levels("t.tsv").unwrap_err();
        assert!(
            error.to_string().contains("t.tsv:2: the level of 'b' is 6"),
            "{error}"
        );
    }

    /// A header, and the term, the number of documents and the line of each row.
    type ReadTable = (FrequencyTableHeader, Vec<(String, u64, u64)>);

    /// Reads a table line by line. Returns its header and its rows.
    fn read_lines(name: &str, text: &str) -> Result<ReadTable> {
        let (mut lines, mut rows) = (text.lines(), Vec::new());
        let next_line = |line: &mut String| {
            let next = lines.next();
            line.clear();
            line.push_str(next.unwrap_or_default());
            Ok(next.is_some())
        };
        let head = read_frequency_lines(name, next_line, |term, documents, line| {
            rows.push((term, documents, line));
            Ok(())
        });
        Ok((head?, rows))
    }

    #[test]
    fn frequencies_round_trip() {
        let head = FrequencyTableHeader::new(&Recipe::default(), 3, 2);
        let mut text = head.to_text();
        let terms = [("a\\b\tc".to_owned(), 3), ("大".to_owned(), 1)];
        let frequencies = crate::text::frequencies::DocumentFrequencies::new(&Recipe::default());
        let learned = frequencies.finish_counting(3, terms.into(), 1, None);
        head.append_rows(&learned, 0..learned.len(), &mut text);
        let mut rows = Vec::new();
        let read = read_frequencies("x", &text, |term, documents| rows.push((term, documents)));
        assert_eq!(read.unwrap(), head);
        assert_eq!(rows, [("a\\b\tc".to_owned(), 3), ("大".to_owned(), 1)]);
        let by_lines = [("a\\b\tc".to_owned(), 3, 7), ("大".to_owned(), 1, 8)];
        assert_eq!(read_lines("x", &text).unwrap(), (head, by_lines.to_vec()));
        let table = WeightTable::parse_table("x", &text).unwrap();
        assert_eq!(table.rows[0].1, WEIGHT_STEPS);
        assert_eq!(table.absent_weight(), table.rows[1].1);
    }
}
