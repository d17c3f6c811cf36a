//! The properties of a run's documents that stay in memory, apart from their sketches.

pub(in crate::run) mod block_codec;

use lookalike::text::TextState;
use lookalike_options::document_time::{is_compact_date, is_plausible_time, parse_time};
use lookalike_options::keep_order::{KeepKey, KeepOrder};
use lookalike_options::rank_value::RankValue;
use serde::Serialize;
use std::cmp::Ordering;
use std::ops::Range;

use lookalike::{ColumnReservation, DocId, DocumentSketches};
use lookalike_io::error::{Error, Result};
use lookalike_io::source::{BadRow, FieldValue, InputRow, InputSet, RowPlace, shortest_digits};

use crate::run::reading::document_ids::DocumentIds;
use crate::run::reading::row_places::{RowNumbers, RowPlaces};
use crate::run::reading::source_values::{SourceValues, source_text};
use crate::run::settings::RunSettings;

/// The documents of one set of inputs, in reading order. Each takes about four bytes and its id, and more only if the
/// settings need it. In a run out of core ids are in a temporary file.
#[derive(Debug, Default)]
pub(in crate::run) struct ReadDocuments {
    places: RowPlaces,
    numbers: RowNumbers,
    pub(in crate::run) ids: DocumentIds,
    /// Values of `--keep`: for each document one for each of [`ExtraFields::ranks`].
    keep_values: Vec<RankValue>,
    /// Times in seconds, with `--window`.
    pub(in crate::run) times: Vec<f64>,
    /// Hashes of the values of `--within`.
    pub(in crate::run) partitions: Vec<u64>,
    /// Values of the field of `--sources`.
    pub(in crate::run) sources: SourceValues,
    pub(in crate::run) sketches: DocumentSketches,
    /// For each of [`ExtraFields::names`]: `true` if some row had the field.
    seen_fields: Vec<bool>,
    /// Bad rows that have not been reported yet.
    pub(in crate::run) bad: Vec<BadRow>,
    /// Bytes of the rows, good and bad.
    pub(in crate::run) bytes: u64,
}

/// The extra fields that a run reads from every row, with their indices in `names`.
#[derive(Debug, Clone)]
pub(in crate::run) struct ExtraFields {
    /// The values by which `--keep` orders documents, one for each key that has any.
    ranks: Vec<RankSource>,
    time: Option<usize>,
    /// Field of `--within`.
    partition: Option<usize>,
    source: Option<usize>,
    /// The text fields, if there are several. Each must occur in at least one row.
    texts: Range<usize>,
    /// The names, as [`WantedFields::extra`](lookalike_io::source::WantedFields) expects them.
    pub(in crate::run) names: Vec<String>,
}

/// A value by which documents are ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RankSource {
    /// The number of characters.
    Length,
    /// An extra field, by its index in the names.
    Field { at: usize, is_id: bool },
}

impl ExtraFields {
    /// Returns the fields for the documents of the run.
    pub(in crate::run) fn new(settings: &RunSettings) -> Self {
        Self::with_keys(settings, settings.keep.keys(), settings.sources.as_ref())
    }

    /// Returns the fields for the documents of `--against`, whose order and sources do not matter.
    pub(in crate::run) fn for_against(settings: &RunSettings) -> Self {
        Self::with_keys(settings, &[], None)
    }

    fn with_keys(settings: &RunSettings, keys: &[KeepKey], source: Option<&String>) -> Self {
        let mut names = Vec::new();
        let mut add_field = |name: Option<&String>| {
            name.map(|name| {
                names.push(name.clone());
                names.len() - 1
            })
        };
        let id = match &settings.read.fields.id {
            lookalike_io::source::IdField::Named(name) => name.as_str(),
            lookalike_io::source::IdField::Default | lookalike_io::source::IdField::RowNumber => {
                "id"
            }
        };
        let ranks = keys.iter().filter_map(|key| match key {
            KeepKey::Max(field) | KeepKey::Min(field) => {
                let is_id = field == id;
                add_field(Some(field)).map(|at| RankSource::Field { at, is_id })
            }
            KeepKey::Longest => Some(RankSource::Length),
            KeepKey::First | KeepKey::Last => None,
        });
        let ranks = ranks.collect();
        let time = add_field(settings.window.as_ref().map(|window| &window.field));
        let partition = add_field(settings.within.as_ref());
        let source = add_field(source);
        let text = &settings.read.fields.text;
        let texts = names.len()..names.len() + if text.len() > 1 { text.len() } else { 0 };
        names.extend(text[..texts.len()].iter().cloned());
        Self {
            ranks,
            time,
            partition,
            source,
            texts,
            names,
        }
    }
}

impl ReadDocuments {
    pub(in crate::run) fn with_sketches(sketches: DocumentSketches) -> Self {
        Self {
            sketches,
            ..Self::default()
        }
    }

    pub(in crate::run) fn len(&self) -> usize {
        self.places.len()
    }

    /// Returns the bytes of memory, without sketches and the values of `--keep`.
    pub(in crate::run) fn memory_bytes(&self) -> u64 {
        let fixed = self.places.memory_bytes() + self.numbers.memory_bytes();
        let columns =
            8 * (self.times.len() + self.partitions.len()) + self.sources.document_bytes();
        (fixed + columns + self.ids.memory_bytes()) as u64
    }

    /// Returns the bytes of memory of the values of `--keep` and of the order that follows from them, apart from
    /// string values.
    pub(in crate::run) fn value_bytes(&self) -> u64 {
        if self.keep_values.is_empty() {
            return 0;
        }
        // The order itself, and the rank of each document.
        let of_order = 2 * size_of::<DocId>() * self.len();
        (self.keep_values.len() * size_of::<RankValue>() + of_order) as u64
    }

    /// Returns the bytes of memory of all texts among the values of `--keep` and `--sources`.
    pub(in crate::run) fn string_value_bytes(&self) -> u64 {
        let of_texts = self.keep_values.iter().map(RankValue::heap_bytes);
        (of_texts.sum::<usize>() + self.sources.text_bytes()) as u64
    }

    pub(in crate::run) fn place_of(&self, index: usize) -> RowPlace {
        self.places.place_of(index)
    }

    /// Returns the row number, from 1.
    pub(in crate::run) fn row_number(&self, index: usize) -> u64 {
        u64::from(self.numbers.number_of(index))
    }

    /// Returns the row number of the last document; 0 if there are no documents.
    pub(in crate::run) fn last_number(&self) -> u64 {
        self.numbers.last_number().into()
    }

    /// Returns the index of the document that was read from the row with this number.
    pub(in crate::run) fn index_of_row(&self, number: u64) -> Option<usize> {
        self.numbers.index_of(u32::try_from(number).ok()?)
    }

    /// Adds a row, whose sketch is added separately. The error is the reason why the row cannot be
    /// used.
    pub(in crate::run) fn push_row(
        &mut self,
        row: &InputRow<'_>,
        extra: &ExtraFields,
    ) -> Result<(), String> {
        let time = extra
            .time
            .map(|at| parse_seconds(row.extra[at]))
            .transpose()
            .map_err(|reason| {
                let field = extra.time.map_or("", |at| &extra.names[at]);
                format!("the time in field '{field}' {reason}")
            })?;
        let number = u32::try_from(row.number).map_err(|_| {
            format!(
                "row {} is beyond the limit of {} rows",
                row.number,
                u32::MAX
            )
        })?;
        let source = extra.source.map(|at| source_text(row.extra[at]));
        let source = source.transpose().map_err(|reason| {
            let field = extra.source.map_or("", |at| &extra.names[at]);
            format!("the source in field '{field}' {reason}")
        })?;
        self.seen_fields.resize(extra.names.len(), false);
        for (is_seen, value) in self.seen_fields.iter_mut().zip(row.extra) {
            *is_seen |= *value != FieldValue::Missing;
        }
        self.times.extend(time);
        self.places.push_place(row.place);
        self.numbers.push_number(number);
        if let Some(id) = row.id {
            self.ids.push_id(id);
        }
        self.keep_values
            .extend(extra.ranks.iter().map(|&source| match source {
                RankSource::Length => RankValue::Integer(row.text.chars().count() as i64),
                RankSource::Field { at, is_id } => rank_of_field(row.extra[at], is_id),
            }));
        if let Some(at) = extra.partition {
            self.partitions.push(partition_value(row.extra[at]));
        }
        if let Some(source) = source {
            self.sources.push_value(source.as_deref());
        }
        Ok(())
    }

    /// Reserves memory for as many documents as expected, if they are like those that are already there.
    pub(in crate::run) fn reserve_documents(&mut self, expected: usize) {
        let reserve = ColumnReservation {
            documents: self.len(),
            expected,
        };
        self.places.reserve_places(expected);
        reserve.extend_column(&mut self.keep_values);
        reserve.extend_column(&mut self.times);
        reserve.extend_column(&mut self.partitions);
        self.sources.reserve_values(reserve);
        self.ids.reserve_ids(reserve);
        // The sketches are also those of the known documents.
        let known = self.sketches.len().saturating_sub(self.len());
        self.sketches.reserve_documents(known + expected);
    }

    /// Moves the documents of `other` behind these. Its bad rows stay, because they are reported by block.
    ///
    /// # Errors
    /// If the temporary file of ids cannot be written.
    pub(in crate::run) fn append_documents(&mut self, other: &mut Self) -> Result<()> {
        self.places.append_places(&other.places);
        self.numbers.append_numbers(&other.numbers);
        self.ids.append_ids(&other.ids)?;
        self.keep_values.append(&mut other.keep_values);
        self.times.append(&mut other.times);
        self.partitions.append(&mut other.partitions);
        self.sources.append_values(&mut other.sources);
        self.sketches.append_sketches(&other.sketches);
        self.seen_fields
            .resize(self.seen_fields.len().max(other.seen_fields.len()), false);
        for (is_seen, other) in self.seen_fields.iter_mut().zip(&other.seen_fields) {
            *is_seen |= other;
        }
        self.bytes += other.bytes;
        Ok(())
    }

    /// Refuses a field of the settings that no document has. Single rows may lack it, but if all do,
    /// the setting would have no effect.
    pub(in crate::run) fn check_fields(
        &self,
        inputs: &InputSet,
        extra: &ExtraFields,
        settings: &RunSettings,
    ) -> Result<()> {
        let absent = self.seen_fields.iter().position(|is_seen| !is_seen);
        let Some(at) = absent.filter(|_| self.len() > 0) else {
            return Ok(());
        };
        let field = &extra.names[at];
        let is_rank = |source: &RankSource| matches!(source, RankSource::Field { at: rank, .. } if *rank == at);
        let setting = if extra.ranks.iter().any(is_rank) {
            let order = settings.keep.to_string();
            settings.spelling.spell_choice("keep", &order)
        } else if extra.texts.contains(&at) {
            let names = settings.read.fields.text.join(",");
            settings.spelling.spell_choice("text", &names)
        } else if extra.source == Some(at) {
            settings.spelling.spell_choice("sources", field)
        } else {
            settings.spelling.spell_choice("within", field)
        };
        let there = inputs.describe_fields(field);
        let there = there.map_or_else(String::new, |there| format!(": {there}"));
        Err(Error::usage_error(format!(
            "{setting}: none of the {} documents has a field '{field}'{there}",
            self.len()
        )))
    }

    /// Returns how many documents have a number and how many a string in the first field of `--keep` that has both, if
    /// one has.
    pub(in crate::run) fn mixed_values(&self) -> Option<MixedValues> {
        let values_each = self.values_each();
        let count_key = |key: usize| {
            let mut mixed = MixedValues::default();
            for rank in self.keep_values.iter().skip(key).step_by(values_each) {
                mixed.numbers +=
                    u64::from(matches!(rank, RankValue::Integer(_) | RankValue::Number(_)));
                mixed.strings += u64::from(matches!(rank, RankValue::Text(_)));
            }
            mixed
        };
        let mut counts = (0..values_each).map(count_key);
        counts.find(|mixed| mixed.numbers > 0 && mixed.strings > 0)
    }

    /// Returns the number of values of `--keep` that each document has.
    fn values_each(&self) -> usize {
        self.keep_values.len().checked_div(self.len()).unwrap_or(0)
    }

    /// Returns all documents of a run in their total order, or `None` if that is the reading order. The `known_count`
    /// documents of `--against`, which have the first numbers, come first; those of an index are put before them later.
    pub(in crate::run) fn total_order(
        &self,
        keep: &KeepOrder,
        known_count: usize,
    ) -> Option<Vec<DocId>> {
        if keep.single_key() == Some(&KeepKey::First) {
            return None;
        }
        let mut order: Vec<_> = (0..(known_count + self.len()) as u32).map(DocId).collect();
        let rest = &mut order[known_count..];
        // The sort is stable, so documents that are equal stay in the order that they have before it.
        if keep.keys().last() == Some(&KeepKey::Last) {
            rest.reverse();
        }
        let descending: Vec<bool> = keep
            .keys()
            .iter()
            .filter_map(|key| match key {
                KeepKey::Longest | KeepKey::Max(_) => Some(true),
                KeepKey::Min(_) => Some(false),
                KeepKey::First | KeepKey::Last => None,
            })
            .collect();
        let values_of = |document: &DocId| {
            let first = (document.index() - known_count) * descending.len();
            &self.keep_values[first..first + descending.len()]
        };
        match descending[..] {
            [] => {}
            [descending] => rest.sort_by(|a, b| {
                let (a, b) = (&values_of(a)[0], &values_of(b)[0]);
                a.compare_preferred(b, descending)
            }),
            _ => rest.sort_by(|a, b| {
                let values = values_of(a).iter().zip(values_of(b)).zip(&descending);
                values
                    .map(|((a, b), &descending)| a.compare_preferred(b, descending))
                    .find(|ordering| ordering.is_ne())
                    .unwrap_or(Ordering::Equal)
            }),
        }
        Some(order)
    }
}

/// Returns the hash of a value of [`RunSettings::within`]. Equal values have equal hashes. Values are
/// compared as text, as ids are: a number by its shortest digits, so that `1`, `1.0` and the string `1`
/// are equal, and a Boolean by its word. Missing values and null are equal to each other and to nothing
/// else.
pub fn partition_value(value: FieldValue<'_>) -> u64 {
    let canonical = match value {
        FieldValue::Missing | FieldValue::Null => return 0,
        FieldValue::Number { literal, .. } => shortest_digits(literal),
        FieldValue::Text(text) => text.into(),
        FieldValue::Bool(true) => "true".into(),
        FieldValue::Bool(false) => "false".into(),
    };
    lookalike::value_hash(canonical.as_bytes()) | 1
}

/// Returns the value by which a field ranks its document. Ids always count as text.
pub fn rank_of_field(value: FieldValue<'_>, is_id: bool) -> RankValue {
    match value {
        FieldValue::Missing | FieldValue::Null => RankValue::Missing,
        FieldValue::Number { literal, .. } if is_id => {
            RankValue::Text(shortest_digits(literal).into())
        }
        FieldValue::Number { literal, value } => RankValue::from_number(literal, value),
        FieldValue::Text(text) if is_id => RankValue::Text(text.into()),
        FieldValue::Text(text) => RankValue::from_text(text),
        FieldValue::Bool(truth) => RankValue::from_truth(truth),
    }
}

/// Returns the time in seconds since 1970, or the reason why the value is not a time.
fn parse_seconds(value: FieldValue<'_>) -> Result<f64, String> {
    match value {
        FieldValue::Missing => Err("is missing".into()),
        FieldValue::Null => Err("is null".into()),
        FieldValue::Bool(_) => Err("is a boolean, not a time".into()),
        FieldValue::Number { literal, .. } | FieldValue::Text(literal)
            if is_compact_date(literal) =>
        {
            Err(format!(
                "is {literal}, which may be a date or seconds since 1970: write the date with \
                 hyphens, or the seconds as {literal}.0"
            ))
        }
        FieldValue::Number { value, .. } if is_plausible_time(value) => Ok(value),
        FieldValue::Number { literal, .. } => Err(format!(
            "is {literal}, which is too large for seconds since 1970: divide milliseconds by 1000"
        )),
        FieldValue::Text(text) => parse_time(text.trim()).ok_or_else(|| {
            let shown: String = text.chars().take(40).collect();
            format!("is '{shown}': give seconds since 1970 or an ISO 8601 date or date and time")
        }),
    }
}

/// Counts of numbers and strings in the field of `--keep`, if it has both. Every string is larger than
/// every number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct MixedValues {
    /// Documents with a number or a Boolean.
    pub numbers: u64,
    /// Documents with a string that is not a number.
    pub strings: u64,
}

/// Documents by text state, without those that have features.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct TextStateCounts {
    /// Fewer tokens than a shingle needs.
    pub too_short: u64,
    /// No tokens, but some text.
    pub symbols_only: u64,
    /// No text; matches nothing.
    pub empty: u64,
}

/// Counts the text state of a document.
pub(in crate::run) fn count_state(states: &mut TextStateCounts, state: TextState) {
    match state {
        TextState::Fingerprintable => {}
        TextState::TooShort => states.too_short += 1,
        TextState::SymbolsOnly => states.symbols_only += 1,
        TextState::Empty => states.empty += 1,
    }
}
