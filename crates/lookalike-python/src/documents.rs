//! Documents of a run on many machines, read from tables with the reader of one machine; so texts, features and values
//! mean the same.
//!
//! A batch has the column `id` and, depending on the run, `text`, `features`, `value0`, `value1` … (order documents), `part`
//! (only documents with equal values match) and `given` (`true` for a known document).

use arrow_array::cast::AsArray;
use arrow_array::{Array, RecordBatch};
use lookalike::shuffle::{MatchBounds, OrderValue, ShuffleDocument, pack_features};
use lookalike_batch::run::{partition_value, rank_of_field};
use lookalike_io::source::{
    FieldValue, IdField, InputRow, InputSet, MemoryTable, ParseScratch, ReadOptions, RowSource,
    WantedFields, to_large_strings,
};
use lookalike_options::keep_order::KeepKey;
use lookalike_options::rank_value::RankValue;
use pyo3::prelude::*;

use crate::error::{InputError, engine_error_to_py, run_error_to_py};

/// Id of a row that cannot be used, and the reason.
pub(crate) type RejectedRow = (String, String);

/// A value by which documents are ordered.
enum RankSource {
    /// The number of characters.
    Length,
    /// A column, by its index in [`InputRow::extra`].
    Column(usize),
}

/// Reads the documents of a batch.
pub(crate) struct TableDocumentReader {
    options: ReadOptions,
    /// Values by which documents are ordered.
    ranks: Vec<RankSource>,
    /// Index in [`InputRow::extra`]; `None` if the run does not need it. So for the other.
    partition: Option<usize>,
    given: Option<usize>,
}

impl TableDocumentReader {
    /// Selects the fields that the order and the bounds of a run need. `keys` decide before the id.
    pub(crate) fn new(keys: &[KeepKey], bounds: MatchBounds) -> Self {
        let ranks = rank_sources(keys);
        let columns = ranks
            .iter()
            .filter(|rank| matches!(rank, RankSource::Column(_)))
            .count();
        let mut extra: Vec<String> = (0..columns).map(|at| format!("value{at}")).collect();
        let mut wanted = |name: &str, is_wanted: bool| {
            is_wanted.then(|| {
                extra.push(name.to_owned());
                extra.len() - 1
            })
        };
        let partition = wanted("part", bounds.within);
        let given = wanted("given", bounds.against);
        let fields = WantedFields {
            id: IdField::Named("id".to_owned()),
            features: bounds.features.then(|| "features".to_owned()),
            extra,
            ..WantedFields::default()
        };
        Self {
            options: ReadOptions {
                fields,
                ..ReadOptions::default()
            },
            ranks,
            partition,
            given,
        }
    }

    /// Calls `visit` with every document of a batch. Returns the rows that cannot be used, apart from those that
    /// [`name_rejected`] leaves out. With given features, the text is the packed features.
    ///
    /// # Errors
    /// Returns an error if a row has no id or the batch lacks a column, and the errors of `visit`.
    pub(crate) fn visit_documents(
        &self,
        batch: RecordBatch,
        visit: &mut dyn FnMut(&ShuffleDocument<'_>) -> lookalike::Result<()>,
    ) -> PyResult<Vec<RejectedRow>> {
        let table = MemoryTable::new("the data", batch.schema(), vec![batch.clone()])
            .map_err(run_error_to_py)?;
        let inputs = InputSet::open_source(&RowSource::Table(table), &self.options)
            .map_err(run_error_to_py)?;
        let (mut scratch, mut bad, mut failed) = (ParseScratch::default(), Vec::new(), None);
        while let Some(block) = inputs.next_block().map_err(run_error_to_py)? {
            let mut take = |row: Result<InputRow<'_>, lookalike_io::source::BadRow>| {
                match row {
                    Ok(row) if failed.is_none() => failed = self.visit_row(&row, visit).err(),
                    Ok(_) => {}
                    Err(row) => bad.push((row.number as usize - 1, row.reason)),
                }
                Ok(())
            };
            let parsed = inputs.parse_block(&block, &mut scratch, &mut take);
            parsed.map_err(run_error_to_py)?;
        }
        match failed {
            Some(error) => Err(engine_error_to_py(error)),
            None => name_rejected(&batch, bad),
        }
    }

    fn visit_row(
        &self,
        row: &InputRow<'_>,
        visit: &mut dyn FnMut(&ShuffleDocument<'_>) -> lookalike::Result<()>,
    ) -> lookalike::Result<()> {
        let packed = row
            .features
            .map(|features| pack_features(features.iter_weighted()));
        let extra = |at: Option<usize>| at.map_or(FieldValue::Missing, |at| row.extra[at]);
        let ranks: Vec<RankValue> = self
            .ranks
            .iter()
            .map(|rank| rank.value_in_row(row))
            .collect();
        let values: Vec<OrderValue<'_>> = ranks.iter().map(RankValue::as_order_value).collect();
        visit(&ShuffleDocument {
            id: row.id.unwrap_or_default(),
            values: &values,
            text: packed.as_deref().unwrap_or(row.text),
            partition: self
                .partition
                .map_or(0, |at| partition_value(row.extra[at])),
            is_known: extra(self.given) == FieldValue::Bool(true),
        })
    }
}

impl RankSource {
    fn value_in_row(&self, row: &InputRow<'_>) -> RankValue {
        match *self {
            Self::Length => RankValue::Integer(row.text.chars().count() as i64),
            // Ids are no values here: they decide after all values.
            Self::Column(at) => rank_of_field(row.extra[at], false),
        }
    }
}

/// Returns the values by which keys order documents. The columns are numbered in the order of the keys.
fn rank_sources(keys: &[KeepKey]) -> Vec<RankSource> {
    let mut columns = 0..;
    let ranks = keys.iter().filter_map(|key| match key {
        KeepKey::Longest => Some(RankSource::Length),
        KeepKey::Max(_) | KeepKey::Min(_) => columns.next().map(RankSource::Column),
        KeepKey::First | KeepKey::Last => None,
    });
    ranks.collect()
}

/// Returns the ids of rows that cannot be used, with the reasons. Rows without a text are left out, because the caller
/// counts rows with a null text itself. Rows of known documents are left out, because the caller lists the rows of the
/// data by these ids, and a usable row of the data may have the same id. Runs that count known documents also count
/// those that cannot be used.
fn name_rejected(batch: &RecordBatch, bad: Vec<(usize, String)>) -> PyResult<Vec<RejectedRow>> {
    if bad.is_empty() {
        return Ok(Vec::new());
    }
    let ids = batch
        .column_by_name("id")
        .map(|ids| to_large_strings(ids).map_err(|error| InputError::new_err(error.to_string())));
    let ids = ids.ok_or_else(|| {
        InputError::new_err("the batch has no column 'id', which this step needs")
    })??;
    let text = batch.column_by_name("text");
    let given = batch
        .column_by_name("given")
        .and_then(|value| value.as_boolean_opt());
    // The bit of a null is undefined.
    let is_given = |row| given.is_some_and(|given| given.is_valid(row) && given.value(row));
    let mut rejected = Vec::new();
    for (row, reason) in bad {
        if ids.is_null(row) || ids.value(row).is_empty() {
            let what = if ids.is_null(row) { "null" } else { "empty" };
            return Err(InputError::new_err(format!(
                "the id of a row is {what}: every document needs an id of its own"
            )));
        }
        if !is_given(row) && !text.is_some_and(|text| text.is_null(row)) {
            rejected.push((ids.value(row).to_owned(), reason));
        }
    }
    Ok(rejected)
}
