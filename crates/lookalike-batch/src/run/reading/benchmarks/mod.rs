//! Evaluation benchmarks: files as they come become items with a question, choices, an answer and a passage.
//!
//! Files are JSONL, JSON lists, CSV, TSV, Parquet and Arrow, the text formats also compressed; they are named by
//! themselves, by directories, globs and URLs of objects. The fields of each row decide what is its question and its
//! answer: by a [preset](presets) for the fields of well-known benchmarks, or by [`ItemFields`] that a user gives.
//! Rows that an evaluation harness has logged hold the row of the benchmark in their object `doc`.
//!
//! ```text
//! files → whole rows → preset or ItemFields → BenchmarkItem, one for each row
//!                      AnswerRow            → BenchmarkItem, one for some rows
//!                      ItemRow              → BenchmarkItem, as it was written
//! ```
//!
//! Guarantees:
//!
//! * The items depend on the files alone: those of a benchmark are together, in the order of their rows.
//! * A row without an item is counted with its benchmark, and the first ones are named with place and reason. A file
//!   with rows but without any item is an error.
//! * Ids are distinct within a benchmark: where rows repeat one, the later ones get `#2`, `#3`, ….
//!
//! Cost: rows are read by blocks on one thread, about 40 MB of JSON a second; only the items stay in memory.
//!
//! Limits: a benchmark with a layout of its own, for example one whose question is divided over several fields, has
//! to be rewritten first. Rows of plain text have no fields; such files in directories are listed as skipped.
//!
//! | module | has |
//! |---|---|
//! | [`benchmark_names`] | the name of a benchmark by the path of its files |
//! | [`field_values`] | fields as texts, choices and answers |
//! | [`printed_values`] | lists that are spelled in strings |
//! | [`presets`] | fields of well-known benchmarks |
//! | [`item_fields`] | fields that a user names |
//! | [`answer_rows`] | items of several rows |
//! | [`item_rows`] | items as this program writes them |

mod answer_rows;
mod benchmark_names;
mod field_values;
mod item_fields;
mod item_rows;
mod presets;
mod printed_values;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;

use lookalike_io::error::{Error, Result};
use lookalike_io::source::{
    BadRow, InputFile, InputSet, ParseScratch, ReadOptions, WantedFields, WholeRow,
};
use lookalike_options::match_options::OptionSpelling;
use serde::Serialize;
use serde_json::Value;

use self::answer_rows::{ANSWER_ROWS, AnswerGroups, AnswerRow};
use self::benchmark_names::{NamedFile, name_files};
use self::field_values::{AnswerNotation, LabelledChoices, RowFields, text_of};
pub use self::item_fields::ItemFields;
pub(in crate::run) use self::item_rows::write_item_rows;
use self::item_rows::{ITEM_ROWS, ItemRow};
use self::presets::{ItemPreset, ParsedItem};

/// Largest number of rejected rows of a benchmark that are named.
const NAMED_REJECTED_ROWS: usize = 20;

/// Largest number of fields that a message lists.
const LISTED_FIELDS: usize = 30;

/// Name of the fields that a user gave, where others have the name of their preset.
const GIVEN_FIELDS: &str = "fields";

/// Names of the field with the id of a row, in the order of preference.
const ID_NAMES: [&str; 21] = [
    "id",
    "_id",
    "ID",
    "Id",
    "qid",
    "question_id",
    "questionID",
    "task_id",
    "unique_id",
    "uid",
    "example_id",
    "query_id",
    "problem_id",
    "instance_id",
    "Record ID",
    "ind",
    "idx",
    "key",
    "doc_id",
    "guid",
    "uuid",
];

/// One item of a benchmark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BenchmarkItem {
    /// Index of its benchmark in [`BenchmarkSet::benchmarks`].
    pub benchmark: u32,
    /// The id field of the row, or the number of the row in its benchmark, from 1. Distinct within a benchmark.
    pub id: String,
    /// The question; never blank.
    pub question: String,
    /// The choices in their order; empty if the item has none.
    pub choices: Vec<String>,
    /// The right answer as text: the text of the right choice if the row has its label or its number. Several right
    /// choices are lines. Empty if it is unknown.
    pub answer: String,
    /// A text that the question is about. Empty if there is none.
    pub passage: String,
}

/// A benchmark, or one split of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BenchmarkInfo {
    /// The name, with the split if the files tell it, for example `mmlu/test`.
    pub name: String,
    /// The files, as given or as found in a directory.
    pub sources: Vec<String>,
    /// The presets that its rows matched, in the order of the rows; `fields` if the user named the fields.
    pub presets: Vec<&'static str>,
    /// Number of items.
    pub items: u64,
    /// Number of rows without an item.
    pub rejected: u64,
    /// The first 20 of these rows.
    pub rejected_rows: Vec<RejectedItem>,
}

/// A row of a benchmark without an item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RejectedItem {
    /// The file and the line, or the number of the row where there are no lines: `test.jsonl:12`.
    pub place: String,
    /// A phrase that says why.
    pub reason: String,
}

/// Benchmarks and their items.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BenchmarkSet {
    /// The benchmarks in the order in which they are read.
    pub benchmarks: Vec<BenchmarkInfo>,
    /// The items in the order of their benchmarks, and within one in the order of their rows.
    pub items: Vec<BenchmarkItem>,
    /// Files in the given directories that are not read, because they have no rows with fields.
    pub skipped_files: Vec<String>,
}

/// Reads benchmarks from files, directories, globs and URLs. Of `read`, the fields are not used. Messages name options by
/// `spelling`.
///
/// # Errors
/// A file that cannot be read, that is plain text, or of whose rows none becomes an item; files without any row; two
/// arguments whose files would have the same name; and a field of `fields` that no row has.
pub fn read_benchmarks(
    paths: &[PathBuf],
    fields: Option<&ItemFields>,
    read: &ReadOptions,
    spelling: OptionSpelling,
) -> Result<BenchmarkSet> {
    OpenBenchmarks::open_paths(paths, read)?.read_items(fields, spelling)
}

/// Benchmarks whose files are open and not read yet.
pub(in crate::run) struct OpenBenchmarks {
    /// The files of each argument.
    arguments: Vec<BenchmarkFiles>,
}

impl OpenBenchmarks {
    /// Opens files, directories, globs and URLs. Of `read`, the fields are not used.
    ///
    /// # Errors
    /// A file that cannot be opened or that is plain text.
    pub(in crate::run) fn open_paths(paths: &[PathBuf], read: &ReadOptions) -> Result<Self> {
        let options = ReadOptions {
            fields: WantedFields::whole_rows(),
            document_per_file: false,
            text_documents: false,
            document_files: None,
            again: false,
            ..read.clone()
        };
        let open = |path| BenchmarkFiles::open_argument(path, &options);
        Ok(Self {
            arguments: paths.iter().map(open).collect::<Result<_>>()?,
        })
    }

    /// Returns the files of each argument, which no output may overwrite.
    pub(in crate::run) fn inputs(&self) -> impl Iterator<Item = &InputSet> {
        self.arguments.iter().map(|argument| &argument.inputs)
    }

    /// Reads the items; see [`read_benchmarks`].
    ///
    /// # Errors
    /// Those of [`read_benchmarks`], apart from those of [`open_paths`](Self::open_paths).
    pub(in crate::run) fn read_items(
        &self,
        fields: Option<&ItemFields>,
        spelling: OptionSpelling,
    ) -> Result<BenchmarkSet> {
        let arguments = &self.arguments;
        let mut reader = BenchmarkReader::new(fields, spelling);
        for argument in arguments {
            let skipped = argument.inputs.skipped_files().iter();
            let skipped = skipped.map(|path| path.display().to_string());
            reader.set.skipped_files.extend(skipped);
            reader
                .set
                .skipped_files
                .extend(argument.plain_texts.iter().cloned());
        }
        let names = name_all(arguments)?;
        for (argument, names) in arguments.iter().zip(&names) {
            reader.read_argument(argument, names)?;
        }
        reader.finish_set()
    }
}

/// The files that one argument names.
struct BenchmarkFiles {
    inputs: InputSet,
    /// Files of plain text below a directory, which are skipped.
    plain_texts: HashSet<String>,
}

impl BenchmarkFiles {
    fn open_argument(path: &PathBuf, options: &ReadOptions) -> Result<Self> {
        let inputs = InputSet::open_paths(std::slice::from_ref(path), options)?;
        let mut plain_texts = HashSet::new();
        for file in inputs.input_files() {
            let name = file.display_name();
            if !file.input_format().is_plain_text() {
                continue;
            }
            if file.path() == path {
                return Err(Error::usage_error(format!(
                    "{name} is {}, whose rows have no fields: give a benchmark as JSONL, a JSON list, CSV, TSV, \
                     Parquet or Arrow",
                    file.input_format().descriptor().contents
                )));
            }
            plain_texts.insert(name.to_owned());
        }
        if plain_texts.len() == inputs.input_files().len() {
            return Err(Error::input_error(format!(
                "{} holds only plain text, whose rows have no fields",
                path.display()
            )));
        }
        Ok(Self {
            inputs,
            plain_texts,
        })
    }

    /// Returns the files with fields.
    fn files(&self) -> impl Iterator<Item = &InputFile> {
        let files = self.inputs.input_files().iter();
        files.filter(|file| !self.plain_texts.contains(file.display_name()))
    }
}

/// Returns the names of the benchmarks of each argument, by the names of the files.
fn name_all(arguments: &[BenchmarkFiles]) -> Result<Vec<BTreeMap<String, String>>> {
    let mut files = Vec::new();
    for (argument, opened) in arguments.iter().enumerate() {
        files.extend(opened.files().map(|file| NamedFile {
            argument,
            path: file.path().to_owned(),
            below: file.path_below().to_owned(),
        }));
    }
    let mut names = name_files(&files)?.into_iter();
    let names_of = |opened: &BenchmarkFiles| {
        let files = opened.files().map(|file| file.display_name().to_owned());
        files.zip(names.by_ref()).collect()
    };
    Ok(arguments.iter().map(names_of).collect())
}

/// Reads rows one after another.
struct BenchmarkReader<'a> {
    fields: Option<&'a ItemFields>,
    spelling: OptionSpelling,
    /// For each of the fields: `true` if a row has had it.
    seen_fields: Vec<bool>,
    set: BenchmarkSet,
    /// Index of each benchmark by its name.
    indexes: HashMap<String, u32>,
    /// Rows of each benchmark so far, of which the number of a row is one.
    row_counts: Vec<u64>,
    groups: AnswerGroups,
    /// The file that is being read.
    file: Option<FileProgress>,
}

/// The rows of a file so far.
struct FileProgress {
    /// The name of the file.
    source: String,
    /// The benchmark of its path.
    benchmark: String,
    rows: u64,
    items: u64,
    /// The first row without an item: the line, the reason, and an advice for a file in which all rows are like it.
    first_rejected: Option<(u64, RowProblem)>,
}

/// Why a row has no item.
enum RowProblem {
    /// The row itself is malformed, or its question is blank.
    Unusable(String),
    /// Neither a preset nor the given question fits its fields.
    Unknown {
        reason: String,
        /// What to do if all rows of the file are so.
        advice: String,
    },
}

impl RowProblem {
    fn reason(&self) -> &str {
        match self {
            Self::Unusable(reason) | Self::Unknown { reason, .. } => reason,
        }
    }
}

impl<'a> BenchmarkReader<'a> {
    fn new(fields: Option<&'a ItemFields>, spelling: OptionSpelling) -> Self {
        Self {
            fields,
            spelling,
            seen_fields: fields.map_or_else(Vec::new, |fields| {
                vec![false; fields.named_fields().count()]
            }),
            set: BenchmarkSet::default(),
            indexes: HashMap::new(),
            row_counts: Vec::new(),
            groups: AnswerGroups::default(),
            file: None,
        }
    }

    fn read_argument(
        &mut self,
        argument: &BenchmarkFiles,
        names: &BTreeMap<String, String>,
    ) -> Result<()> {
        let mut scratch = ParseScratch::default();
        let mut read_files = HashSet::new();
        while let Some(block) = argument.inputs.next_block()? {
            argument
                .inputs
                .parse_whole_rows(&block, &mut scratch, &mut |row| {
                    let source = match &row {
                        Ok(row) => row.file.display_name(),
                        Err(bad) => bad.file.as_str(),
                    };
                    let Some(benchmark) = names.get(source) else {
                        return Ok(());
                    };
                    if self.file.as_ref().is_none_or(|file| file.source != source) {
                        self.finish_file()?;
                        read_files.insert(source.to_owned());
                        self.file = Some(FileProgress {
                            source: source.to_owned(),
                            benchmark: benchmark.clone(),
                            rows: 0,
                            items: 0,
                            first_rejected: None,
                        });
                    }
                    self.add_row(row);
                    Ok(())
                })?;
            argument.inputs.recycle_block(block);
        }
        self.finish_file()?;
        for (source, benchmark) in names {
            if !read_files.contains(source) {
                self.benchmark_index(benchmark, source);
            }
        }
        Ok(())
    }

    /// Checks the file that has been read.
    fn finish_file(&mut self) -> Result<()> {
        let Some(file) = self.file.take().filter(|file| file.items == 0) else {
            return Ok(());
        };
        let Some((line, problem)) = file.first_rejected else {
            return Ok(());
        };
        let place = format!("{}:{line}", file.source);
        Err(match problem {
            RowProblem::Unusable(reason) => Error::input_error(format!(
                "none of the {} rows of {} is an item of a benchmark; the first, {place}: {reason}",
                file.rows, file.source
            )),
            RowProblem::Unknown { reason, advice } => {
                Error::usage_error(format!("{place}: {reason}; {advice}"))
            }
        })
    }

    fn add_row(&mut self, row: std::result::Result<WholeRow<'_>, BadRow>) {
        let Some(mut file) = self.file.take() else {
            return;
        };
        file.rows += 1;
        let (line, added) = match row {
            Err(bad) => (bad.line, Err(RowProblem::Unusable(bad.reason))),
            Ok(row) => (row.line, self.add_item(RowFields::new(&row.fields), &file)),
        };
        match added {
            Ok(()) => file.items += 1,
            Err(problem) => {
                let index = self.benchmark_index(&file.benchmark, &file.source);
                let benchmark = &mut self.set.benchmarks[index as usize];
                benchmark.rejected += 1;
                if benchmark.rejected_rows.len() < NAMED_REJECTED_ROWS {
                    benchmark.rejected_rows.push(RejectedItem {
                        place: format!("{}:{line}", file.source),
                        reason: problem.reason().to_owned(),
                    });
                }
                self.row_counts[index as usize] += 1;
                file.first_rejected.get_or_insert((line, problem));
            }
        }
        self.file = Some(file);
    }

    /// Adds the item of a row, or the answer in a row to its item.
    fn add_item(
        &mut self,
        row: RowFields<'_>,
        file: &FileProgress,
    ) -> std::result::Result<(), RowProblem> {
        let inner = row.inner_document();
        if let Some(fields) = self.fields {
            for (seen, (_, name)) in self.seen_fields.iter_mut().zip(fields.named_fields()) {
                *seen = *seen || given_value(row, inner, name).is_some();
            }
            let texts = texts_of_fields(row, inner, fields, self.spelling)?;
            let id = fields.id.as_deref();
            let id = id.and_then(|name| text_of(&*given_value(row, inner, name)?));
            let id = id.unwrap_or_default();
            return self.push_item(texts, id, GIVEN_FIELDS, &file.benchmark, file);
        }
        let document = inner.unwrap_or(row);
        if let Some(answer) = AnswerRow::from_fields(document) {
            return self.push_answer(answer, file);
        }
        if let Some(item) = ItemRow::from_fields(document) {
            return self.push_item(item.texts, item.id, ITEM_ROWS, &item.benchmark, file);
        }
        let Some(preset) = ItemPreset::find(document) else {
            return Err(unknown_fields(document, inner.is_some(), self.spelling));
        };
        let mut id = find_id(document);
        if id.is_empty() && inner.is_some() {
            id = find_id(row);
        }
        let texts = preset.item_texts(document);
        self.push_item(texts, id, preset.name, &file.benchmark, file)
    }

    fn push_item(
        &mut self,
        texts: ParsedItem,
        id: String,
        preset: &'static str,
        benchmark: &str,
        file: &FileProgress,
    ) -> std::result::Result<(), RowProblem> {
        refuse_blank(&texts.question)?;
        let benchmark = self.benchmark_index(benchmark, &file.source);
        self.row_counts[benchmark as usize] += 1;
        let number = self.row_counts[benchmark as usize];
        self.count_item(benchmark, preset);
        self.set.items.push(BenchmarkItem {
            benchmark,
            id: if id.is_empty() {
                number.to_string()
            } else {
                id
            },
            question: texts.question,
            choices: texts.choices,
            answer: texts.answer,
            passage: texts.passage,
        });
        Ok(())
    }

    fn push_answer(
        &mut self,
        row: AnswerRow,
        file: &FileProgress,
    ) -> std::result::Result<(), RowProblem> {
        refuse_blank(&row.question)?;
        let benchmark = self.benchmark_index(&row.benchmark, &file.source);
        if self.groups.add_row(benchmark, row, &mut self.set.items) {
            self.count_item(benchmark, ANSWER_ROWS);
        }
        Ok(())
    }

    fn count_item(&mut self, benchmark: u32, preset: &'static str) {
        let info = &mut self.set.benchmarks[benchmark as usize];
        info.items += 1;
        if !info.presets.contains(&preset) {
            info.presets.push(preset);
        }
    }

    /// Returns the index of a benchmark, which is new if no row had its name yet.
    fn benchmark_index(&mut self, name: &str, source: &str) -> u32 {
        let benchmarks = &mut self.set.benchmarks;
        let index = match self.indexes.get(name) {
            Some(&index) => index,
            None => {
                let index = u32::try_from(benchmarks.len()).expect("there are fewer files");
                self.indexes.insert(name.to_owned(), index);
                self.row_counts.push(0);
                benchmarks.push(BenchmarkInfo {
                    name: name.to_owned(),
                    sources: Vec::new(),
                    presets: Vec::new(),
                    items: 0,
                    rejected: 0,
                    rejected_rows: Vec::new(),
                });
                index
            }
        };
        let sources = &mut benchmarks[index as usize].sources;
        if sources.last().is_none_or(|last| last != source)
            && !sources.iter().any(|known| known == source)
        {
            sources.push(source.to_owned());
        }
        index
    }

    fn finish_set(mut self) -> Result<BenchmarkSet> {
        if self.set.items.is_empty() {
            let sources = self.set.benchmarks.iter().flat_map(|info| &info.sources);
            let sources: Vec<&str> = sources.map(String::as_str).collect();
            return Err(Error::input_error(format!(
                "there is no item of a benchmark, because no file has rows: {}",
                sources.join(", ")
            )));
        }
        if let Some(fields) = self.fields {
            let mut named = fields.named_fields().zip(&self.seen_fields);
            if let Some(((role, name), _)) = named.find(|(_, seen)| !**seen) {
                return Err(Error::usage_error(format!(
                    "no row has the field `{name}`, which {} names for `{role}`",
                    self.spelling.spell_option("fields")
                )));
            }
        }
        self.groups.finish_items(&mut self.set.items);
        self.set.items.sort_by_key(|item| item.benchmark);
        distinguish_ids(&mut self.set.items);
        Ok(self.set)
    }
}

fn refuse_blank(question: &str) -> std::result::Result<(), RowProblem> {
    if question.trim().is_empty() {
        return Err(RowProblem::Unusable("the question is empty".to_owned()));
    }
    Ok(())
}

/// Returns the id in a row, or nothing.
fn find_id(row: RowFields<'_>) -> String {
    let ids = ID_NAMES
        .iter()
        .filter_map(|name| text_of(&*row.value(name)?));
    ids.into_iter()
        .find(|id| !id.is_empty())
        .unwrap_or_default()
}

/// Returns the value of a field that the user named, in the row or in the document within it.
fn given_value<'a>(
    row: RowFields<'a>,
    inner: Option<RowFields<'a>>,
    name: &str,
) -> Option<Cow<'a, Value>> {
    row.value(name)
        .or_else(|| inner.and_then(|document| document.value(name)))
}

/// Returns the texts in the fields that the user named.
fn texts_of_fields(
    row: RowFields<'_>,
    inner: Option<RowFields<'_>>,
    fields: &ItemFields,
    spelling: OptionSpelling,
) -> std::result::Result<ParsedItem, RowProblem> {
    let value = |name: &str| given_value(row, inner, name);
    let not_text = |name: &str, value: &Value| {
        let kind = if value.is_array() {
            "a list"
        } else {
            "an object"
        };
        RowProblem::Unusable(format!(
            "the field `{name}` is {kind}, where a text is wanted"
        ))
    };
    let text = |name: &str| match value(name) {
        None => Ok(String::new()),
        Some(value) => text_of(&value).ok_or_else(|| not_text(name, &value)),
    };
    if value(&fields.question).is_none() {
        return Err(RowProblem::Unknown {
            reason: format!(
                "the field `{}`, which {} names for the question, is missing among {}",
                fields.question,
                spelling.spell_option("fields"),
                list_fields(row)
            ),
            advice: format!(
                "for example, say {}",
                spelling.spell_choice("fields", &format!("question={}", likely_question(row)))
            ),
        });
    }
    let choices = match &fields.choices[..] {
        [] => LabelledChoices::default(),
        [single] => match value(single) {
            None => LabelledChoices::default(),
            Some(value) => LabelledChoices::from_value(&value).ok_or_else(|| {
                RowProblem::Unusable(format!(
                    "the field `{single}` is no list of choices: {}",
                    first_characters(&value.to_string())
                ))
            })?,
        },
        several => {
            let texts = several.iter().map(|name| text(name));
            let texts: Vec<String> = texts.collect::<std::result::Result<_, _>>()?;
            LabelledChoices::from_texts(texts.into_iter().filter(|text| !text.is_empty()).collect())
        }
    };
    let answer = fields.answer.as_deref().and_then(value);
    Ok(ParsedItem {
        question: text(&fields.question)?,
        answer: choices.resolve_answer(answer.as_deref(), AnswerNotation::Any),
        choices: choices.texts,
        passage: fields.passage.as_deref().map_or(Ok(String::new()), text)?,
    })
}

/// Returns the problem of a row that no preset matches.
fn unknown_fields(row: RowFields<'_>, is_inner: bool, spelling: OptionSpelling) -> RowProblem {
    let prefix = if is_inner { "doc." } else { "" };
    let fields = format!("question={prefix}{}", likely_question(row));
    RowProblem::Unknown {
        reason: format!(
            "its fields are those of no known benchmark: {}",
            list_fields(row)
        ),
        advice: format!(
            "say which field is the question, for example {}",
            spelling.spell_choice("fields", &fields)
        ),
    }
}

fn list_fields(row: RowFields<'_>) -> String {
    let mut names: Vec<String> = row.names().map(|name| format!("`{name}`")).collect();
    let count = names.len();
    if count == 0 {
        return "none".to_owned();
    }
    names.truncate(LISTED_FIELDS);
    if count > LISTED_FIELDS {
        names.push(format!("{} more", count - LISTED_FIELDS));
    }
    names.join(", ")
}

/// Returns the field with the longest string, or a word that stands for a field.
fn likely_question(row: RowFields<'_>) -> &str {
    let length = |name: &&str| {
        let value = row.value(name);
        value.and_then(|value| value.as_str().map(|text| text.chars().count()))
    };
    let texts = row.names().filter(|name| length(name).is_some());
    texts.max_by_key(length).unwrap_or("FIELD")
}

fn first_characters(text: &str) -> String {
    const SHOWN_CHARACTERS: usize = 60;
    let mut shown: String = text.chars().take(SHOWN_CHARACTERS).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}

/// Gives items whose id an earlier one of their benchmark has a number: `a#2`, `a#3`, ….
fn distinguish_ids(items: &mut [BenchmarkItem]) {
    for items in items.chunk_by_mut(|a, b| a.benchmark == b.benchmark) {
        let mut counts: HashMap<String, u64> = HashMap::new();
        for item in items {
            let Some(count) = counts.get(&item.id) else {
                counts.insert(item.id.clone(), 1);
                continue;
            };
            let numbers = (count + 1..).map(|number| (number, format!("{}#{number}", item.id)));
            let free = numbers.into_iter().find(|(_, id)| !counts.contains_key(id));
            let (number, id) = free.expect("the numbers do not end");
            counts.insert(std::mem::replace(&mut item.id, id.clone()), number);
            counts.insert(id, 1);
        }
    }
}
