//! The documents of a group, and the run that finds the near-duplicates among them.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt64Type};
use arrow_schema::{DataType, Field, Schema};
use lookalike::{DocId, Threshold};
use lookalike_batch::run::{
    DedupOutputs, FormLearning, RunInputs, RunSettings, SilentProgress, run_dedup, run_in_caller,
};
use lookalike_io::sink::{CollectedTable, OutputTarget};
use lookalike_io::source::{IdField, MemoryTable, ReadOptions, RowSource, WantedFields};
use lookalike_options::match_options::{MatchOptions, OptionSpelling};
use lookalike_options::shown_text::shorten_text;

use super::ids::IdList;
use super::text_list::TextList;
use crate::columns::CallRows;
use crate::recipe_tools::{DEFAULT_RECIPE, RecipeTools};

/// Bytes of texts up to which a run is faster in the calling thread than starting others.
const SMALL_BYTES: usize = 1 << 14;

/// Average bytes from which ids can be texts that stand in the place of ids.
const LONG_ID_BYTES: usize = 100;

/// How many times longer than the texts such ids are.
const LONG_ID_RATIO: usize = 4;

/// A removed document.
pub(super) struct RemovedDocument {
    /// Its place in its group.
    pub(super) document: usize,
    /// The place of the document that is kept instead.
    pub(super) kept: usize,
    pub(super) similarity: f64,
    /// The route by which the pair was found.
    pub(super) method: String,
}

/// Documents of a group, in the order in which DuckDB passed them.
#[derive(Debug, Default)]
pub(super) struct DocumentGroup<I> {
    pub(super) ids: I,
    texts: TextList,
    /// The options of the first row, which all rows must have.
    options: Option<GroupOptions>,
}

/// The optional arguments. Missing ones have the default of the command.
#[derive(Clone, Debug, Default, PartialEq)]
struct GroupOptions {
    threshold: Option<f64>,
    recipe: Option<Box<str>>,
    form_learning: FormLearning,
}

impl<I: IdList> DocumentGroup<I> {
    /// Adds the document of a row. A row without a text is no document.
    ///
    /// # Errors
    /// If the document has no id, is too long, or has other options than those before it.
    pub(super) fn push_row(&mut self, rows: &CallRows, row: usize) -> Result<(), String> {
        let [text, id] = [0, 1].map(|at| &rows.columns[at]);
        if !text.has_value(row) {
            return Ok(());
        }
        let text = text.text_at(row);
        if !id.has_value(row) {
            return Err(format!(
                "the document '{}' has no id, because its id is NULL: leave it out with WHERE … IS NOT NULL",
                shorten_text(text, 40)
            ));
        }
        let threshold = rows.optional_column(2, row);
        // SAFETY: the third parameter has real numbers.
        let threshold = threshold.map(|column| unsafe { column.number_at::<f64>(row) });
        let form_learning = parse_forms(rows.optional_text(4, row))?;
        self.check_options(threshold, rows.optional_text(3, row), form_learning)?;
        self.ids.push_id(id, row)?;
        self.texts.push_text(text)
    }

    /// # Errors
    /// If the options differ from those of the rows before.
    fn check_options(
        &mut self,
        threshold: Option<f64>,
        recipe: Option<&str>,
        form_learning: FormLearning,
    ) -> Result<(), String> {
        let is_same = |options: &GroupOptions| {
            options.threshold == threshold
                && options.recipe.as_deref() == recipe
                && options.form_learning == form_learning
        };
        let given = || GroupOptions {
            threshold,
            recipe: recipe.map(Box::from),
            form_learning,
        };
        match &self.options {
            Some(options) if is_same(options) => Ok(()),
            Some(options) => options.refuse_other(&given()),
            None => {
                self.options = Some(given());
                Ok(())
            }
        }
    }

    /// Adds the documents of another group.
    ///
    /// # Errors
    /// If its options differ.
    pub(super) fn append_group(&mut self, other: &Self) -> Result<(), String> {
        match (&self.options, &other.options) {
            (Some(own), Some(options)) if own != options => own.refuse_other(options)?,
            (None, options) => self.options.clone_from(options),
            _ => {}
        }
        self.ids.append_ids(&other.ids);
        self.texts.append_texts(&other.texts);
        Ok(())
    }

    /// Finds the near-duplicates, in the order of their ids.
    ///
    /// # Errors
    /// Those of a run, if a threshold or recipe does not exist, and if ids repeat or seem to be the texts.
    pub(super) fn find_duplicates(&self) -> Result<Vec<RemovedDocument>, String> {
        let mut settings = self.options.clone().unwrap_or_default().to_settings()?;
        if self.texts.len() == 0 {
            return Ok(Vec::new());
        }
        if self.texts.len() > DocId::LIMIT {
            return Err(format!(
                "a group has {} documents, more than the limit of {}",
                self.texts.len(),
                DocId::LIMIT
            ));
        }
        let order = self.document_order();
        self.check_ids(&order)?;
        let inputs = RunInputs {
            documents: RowSource::Table(self.to_table(&order)?),
            against: RowSource::default(),
        };
        let removed = CollectedTable::default();
        let outputs = DedupOutputs {
            removed: Some(OutputTarget::Memory(removed.clone())),
            ..DedupOutputs::default()
        };
        let run = |settings: &RunSettings| run_dedup(&inputs, settings, &outputs, &SilentProgress);
        let done = if self.texts.byte_count() > SMALL_BYTES {
            run(&settings)
        } else {
            settings.threads = 1;
            run_in_caller(|| run(&settings))
        };
        done.map_err(|error| error.to_string())?;
        let mut found = Vec::new();
        let table = removed.take_batches();
        for batch in table.iter().flat_map(|(_, batches)| batches) {
            read_removals(batch, &order, &mut found)?;
        }
        Ok(found)
    }

    /// Returns the places of the documents in the order of their ids. Equal ids stand side by side, and are refused.
    fn document_order(&self) -> Vec<u32> {
        let mut order: Vec<u32> = (0..self.texts.len() as u32).collect();
        order.sort_unstable_by(|&a, &b| {
            let (a, b) = (a as usize, b as usize);
            let by_id = self.ids.compare_ids(a, b);
            by_id.then_with(|| self.texts.text_at(a).cmp(self.texts.text_at(b)))
        });
        order
    }

    /// Refuses ids that several documents have, because a query that leaves out the removed ids would leave out the kept
    /// documents, too.
    ///
    /// # Errors
    /// If ids repeat, or are so long that the columns seem to be in the wrong order.
    fn check_ids(&self, order: &[u32]) -> Result<(), String> {
        let is_same = |a: u32, b: u32| self.ids.compare_ids(a as usize, b as usize).is_eq();
        let Some(repeated) = order.windows(2).find(|pair| is_same(pair[0], pair[1])) else {
            return self.check_lengths();
        };
        let repeated = repeated[0];
        let id = self.ids.show_id(repeated as usize);
        let rows = order.iter().filter(|&&at| is_same(at, repeated)).count();
        if rows == order.len() {
            return Err(format!(
                "all {rows} rows have the id '{id}': give the columns of the texts and of the ids without quotes, as in \
                 near_duplicates('posts', text, id)"
            ));
        }
        Err(format!(
            "{rows} rows have the id '{id}': give each document an id of its own, for example row_number() OVER ()"
        ))
    }

    /// # Errors
    /// If the ids are much longer than the texts.
    fn check_lengths(&self) -> Result<(), String> {
        let count = self.texts.len();
        let id_bytes = self.ids.text_bytes().unwrap_or_default() / count;
        let text_bytes = self.texts.byte_count() / count;
        if id_bytes < LONG_ID_BYTES || id_bytes < LONG_ID_RATIO * text_bytes {
            return Ok(());
        }
        Err(format!(
            "the ids have {id_bytes} bytes on average and the texts {text_bytes}: give the text before the id, as in \
             near_duplicates('posts', text, id), or md5(id) in place of long ids"
        ))
    }

    fn to_table(&self, order: &[u32]) -> Result<MemoryTable, String> {
        let texts = self.texts.to_column(order)?;
        let field = Field::new(TEXT_FIELD, DataType::Utf8View, false);
        let schema = Arc::new(Schema::new(vec![field]));
        let batch = RecordBatch::try_new(Arc::clone(&schema), vec![Arc::new(texts)]);
        let batch = batch.map_err(|error| error.to_string())?;
        let table = MemoryTable::new("the documents", schema, vec![batch]);
        table.map_err(|error| error.to_string())
    }
}

/// Name of the only column of a run.
const TEXT_FIELD: &str = "text";

impl GroupOptions {
    fn refuse_other(&self, other: &Self) -> Result<(), String> {
        Err(format!(
            "one row has {self} and another one {other}: give all rows of a group the same"
        ))
    }

    /// Returns the settings of a run.
    ///
    /// # Errors
    /// If the threshold or the recipe does not exist.
    fn to_settings(&self) -> Result<RunSettings, String> {
        let threshold = self.threshold.map(Threshold::new).transpose();
        let matching = MatchOptions {
            threshold: threshold.map_err(|error| error.to_string())?,
            ..MatchOptions::default()
        };
        let matching = matching.to_settings(OptionSpelling::Arguments);
        let recipe = self.recipe.as_deref().unwrap_or(DEFAULT_RECIPE);
        Ok(RunSettings {
            matching: matching.map_err(|error| error.to_string())?,
            recipe: RecipeTools::from_name(recipe)?.recipe.clone(),
            form_learning: self.form_learning,
            read: ReadOptions {
                fields: WantedFields {
                    text: vec![TEXT_FIELD.to_owned()],
                    id: IdField::RowNumber,
                    ..WantedFields::default()
                },
                max_row_bytes: u32::MAX,
                ..ReadOptions::default()
            },
            spelling: OptionSpelling::Arguments,
            ..RunSettings::default()
        })
    }
}

impl std::fmt::Display for GroupOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.threshold {
            Some(threshold) => write!(f, "the threshold {threshold}")?,
            None => f.write_str("the default threshold")?,
        }
        let recipe = self.recipe.as_deref().unwrap_or(DEFAULT_RECIPE);
        write!(f, " and the recipe '{recipe}'")?;
        match self.form_learning {
            FormLearning::WherePossible => Ok(()),
            FormLearning::Always => f.write_str(" with forms 'learn'"),
            FormLearning::Never => f.write_str(" with forms 'off'"),
        }
    }
}

/// Returns when a run learns forms. Without a value it learns them where possible, as the command does.
///
/// # Errors
/// If the value is not one of those of the command that need no file.
fn parse_forms(forms: Option<&str>) -> Result<FormLearning, String> {
    match forms {
        None => Ok(FormLearning::WherePossible),
        Some("learn") => Ok(FormLearning::Always),
        Some("off") => Ok(FormLearning::Never),
        Some(other) => Err(format!(
            "forms is '{}': give 'learn' or 'off'",
            shorten_text(other, 40)
        )),
    }
}

/// Reads rows of the table of removed documents, whose row numbers are places in `order`, from 1.
///
/// # Errors
/// If the table lacks a column.
fn read_removals(
    batch: &RecordBatch,
    order: &[u32],
    found: &mut Vec<RemovedDocument>,
) -> Result<(), String> {
    let column = |name| {
        let column = batch.column_by_name(name);
        column.ok_or_else(|| format!("the table of removed documents has no column `{name}`"))
    };
    let rows = column("row")?.as_primitive::<UInt64Type>();
    let kept_rows = column("kept_row")?.as_primitive::<UInt64Type>();
    let similarities = column("similarity")?.as_primitive::<Float64Type>();
    let methods = column("method")?.as_string::<i32>();
    let place = |row: u64| order[row as usize - 1] as usize;
    found.extend((0..batch.num_rows()).map(|at| RemovedDocument {
        document: place(rows.value(at)),
        kept: place(kept_rows.value(at)),
        similarity: similarities.value(at),
        method: methods.value(at).to_owned(),
    }));
    Ok(())
}
