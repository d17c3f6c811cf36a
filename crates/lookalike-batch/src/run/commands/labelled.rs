//! Readers of labelled texts: pairs with labels, given as texts or ids, and groups of texts.
//!
//! A row that cannot be used is an error, because figures over a file without some of its rows would
//! describe a different file. All texts with a label are held in memory; of a corpus, only those that a
//! label names.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

use lookalike::DocId;
use lookalike::content_hash::ContentHash;
use lookalike::quality::evaluate::{LabelledPair, LabelledTexts};
use lookalike_io::error::{Error, Result};
use lookalike_io::sink::{OutputTarget, check_output, escape_tsv};
use lookalike_io::source::{
    FieldValue, IdField, InputFile, InputFormat, InputRow, InputSet, ReadOptions, RowPlace,
    RowSource, WantedFields, shortest_digits,
};
use lookalike_options::match_options::OptionSpelling;

use crate::run::commands::corpus_sample::{CorpusSample, CorpusSampler, DrawnDocuments};
use crate::run::progress::ProgressListener;
use crate::run::reading::ordered_pipeline::parse_blocks_in_order;
use crate::run::reading::row_analysis::row_position;

/// Files with labels, and the structure of their rows.
#[derive(Debug, Clone)]
pub struct LabelledInputs {
    /// The origin of the rows.
    pub source: RowSource,
    /// The structure of the rows.
    pub rows: LabelledRows,
    /// Options of reading. The fields of text and id are those of the corpus.
    pub read: ReadOptions,
    /// Outputs of the run; none of them may be one of the inputs.
    pub outputs: Vec<OutputTarget>,
}

/// The structure of labelled rows.
#[derive(Debug, Clone)]
pub enum LabelledRows {
    /// Pairs with a label.
    Pairs(PairFields),
    /// Texts with the name of a group. Pairs within a group are similar, all other pairs are not.
    Groups {
        /// The field with the name of the group.
        group: String,
        /// The place of the texts.
        texts: GroupTexts,
    },
}

/// The fields of a pair.
#[derive(Debug, Clone)]
pub struct PairFields {
    /// One text, or its id.
    pub a: String,
    /// The other text, or its id.
    pub b: String,
    /// The label.
    pub label: String,
    /// The field with the kind of edit, if there is one.
    pub kind: Option<String>,
    /// The meaning of numeric labels; `None` if labels are yes or no.
    pub grades: Option<GradeThresholds>,
    /// The corpus that contains the texts, if `a` and `b` are ids; empty if they are texts.
    pub corpus: RowSource,
    /// Treatment of pairs with contradictory labels.
    pub contradictory: ContradictoryLabels,
    /// The spelling of options in messages.
    pub spelling: OptionSpelling,
}

/// Treatment of a pair that is labelled as similar in one row and as not similar in another.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ContradictoryLabels {
    /// The reading fails and names all such pairs.
    #[default]
    Refuse,
    /// The pair is left out.
    Drop,
    /// The first label counts.
    First,
}

/// The meaning of graded labels. Pairs with grades between the two limits are left out and counted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GradeThresholds {
    /// Smallest grade of a similar pair.
    pub positive: f64,
    /// Largest grade of a pair that is not similar.
    pub negative: f64,
}

/// The place of the texts of groups.
#[derive(Debug, Clone)]
pub enum GroupTexts {
    /// One text per row, in the text fields.
    InRows,
    /// A list of texts per row, in this field. A row without a name is a group of its own.
    InList(String),
}

/// The result of reading labels.
#[derive(Debug, Clone)]
pub struct ReadLabels {
    /// The texts and their labels.
    pub labelled: LabelledTexts,
    /// Pairs whose grade is between similar and not similar.
    pub ungraded: u64,
    /// Rows that repeat a pair with the same label; such pairs count once.
    pub repeated: u64,
    /// Pairs with contradictory labels, which were left out or have their first label.
    pub contradictory: u64,
    /// Documents of the corpus that the labels name, if there is one and a sample was asked for.
    pub sample: Option<CorpusSample>,
}

/// Reads labelled texts.
///
/// # Errors
/// Fails if an input cannot be read, if a row lacks a side or a label, if a label is not valid, if the
/// corpus does not have an id, or if all labels are the same. Contradictory labels of a pair, in either
/// order, are an error unless [`PairFields::contradictory`] permits them.
pub fn read_labelled(
    inputs: &LabelledInputs,
    progress: &dyn ProgressListener,
) -> Result<ReadLabels> {
    read_with(inputs, None, progress)
}

/// Reads labelled texts, and a sample of the corpus if the labels name documents of one.
pub(in crate::run) fn read_labelled_and_sample(
    inputs: &LabelledInputs,
    progress: &dyn ProgressListener,
) -> Result<ReadLabels> {
    read_with(inputs, Some(&CorpusSampler::new()), progress)
}

fn read_with(
    inputs: &LabelledInputs,
    sampler: Option<&CorpusSampler>,
    progress: &dyn ProgressListener,
) -> Result<ReadLabels> {
    match &inputs.rows {
        LabelledRows::Pairs(fields) => read_pairs(inputs, fields, sampler, progress),
        LabelledRows::Groups { group, texts } => read_groups(inputs, group, texts, progress),
    }
}

/// Opens labelled files with the given fields.
fn open_labels(inputs: &LabelledInputs, fields: WantedFields) -> Result<InputSet> {
    let options = ReadOptions {
        fields,
        again: false,
        ..inputs.read.clone()
    };
    open_separately(&inputs.source, &options, &inputs.outputs)
}

/// Opens a source and refuses it if it is one of the outputs.
fn open_separately(
    source: &RowSource,
    options: &ReadOptions,
    outputs: &[OutputTarget],
) -> Result<InputSet> {
    let inputs = InputSet::open_source(source, options)?;
    for output in outputs {
        check_output(output, &inputs)?;
    }
    Ok(inputs)
}

/// Calls `make` for every row and `take` with the results in input order. The first bad row is an
/// error.
pub(in crate::run) fn visit_label_rows<T: Send>(
    inputs: &InputSet,
    progress: &dyn ProgressListener,
    make: impl Fn(&InputRow<'_>) -> Result<T, String> + Sync,
    mut take: impl FnMut(T, RowLocation) -> Result<()> + Send,
) -> Result<()> {
    parse_blocks_in_order(
        inputs,
        progress,
        |block, parse, (): &mut (), _| {
            let mut rows = Vec::new();
            inputs.parse_block(block, parse, &mut |row| {
                rows.push(match row {
                    Ok(row) => {
                        let at = RowLocation(row.place, row.number);
                        let row = make(&row).map_err(|reason| {
                            let absent = inputs.refuse_field_of(&reason).err();
                            absent.unwrap_or_else(|| at.error_at_row(inputs, &reason))
                        });
                        row.map(|row| (row, at))
                    }
                    Err(bad) => {
                        let message = || format!("{}:{}: {}", bad.file, bad.line, bad.reason);
                        let absent = inputs.refuse_field_of(&bad.reason).err();
                        Err(absent.unwrap_or_else(|| Error::input_error(message())))
                    }
                });
                Ok(())
            })?;
            Ok(rows)
        },
        |rows: Vec<Result<(T, RowLocation)>>| {
            let mut rows = rows.into_iter();
            rows.try_for_each(|row| row.and_then(|(row, at)| take(row, at)))
        },
    )
}

/// The place of a row and its number over all inputs.
#[derive(Debug, Clone, Copy)]
pub(in crate::run) struct RowLocation(RowPlace, u64);

impl RowLocation {
    fn display_location(self, inputs: &InputSet) -> String {
        let (file, line) = row_position(inputs, self.0, self.1);
        format!("{file}:{line}")
    }

    /// Returns the source and the row number within it, in the form in which labels can name the row.
    fn label_place(self, inputs: &InputSet) -> String {
        let (source, row) = inputs.source_row(self.0, self.1);
        format!("{source}:{row}")
    }

    pub(in crate::run) fn error_at_row(self, inputs: &InputSet, reason: &str) -> Error {
        Error::input_error(format!("{}: {reason}", self.display_location(inputs)))
    }
}

/// A row that labels a pair.
struct PairRow {
    a: String,
    b: String,
    /// `None` if the grade is between similar and not similar.
    label: Option<bool>,
    kind: Option<String>,
}

/// Strings, numbered in order of appearance.
#[derive(Default)]
struct NameNumbers {
    of: HashMap<String, u32>,
}

impl NameNumbers {
    fn number_name(&mut self, name: String) -> Result<u32> {
        let next = self.of.len();
        if next >= DocId::LIMIT {
            return Err(Error::limit_error(format!(
                "there are more than {} texts or names",
                DocId::LIMIT
            )));
        }
        Ok(*self.of.entry(name).or_insert(next as u32))
    }

    fn names_in_order(self) -> Vec<String> {
        let mut names = vec![String::new(); self.of.len()];
        for (name, number) in self.of {
            names[number as usize] = name;
        }
        names
    }
}

fn read_pairs(
    labelled: &LabelledInputs,
    fields: &PairFields,
    sampler: Option<&CorpusSampler>,
    progress: &dyn ProgressListener,
) -> Result<ReadLabels> {
    let label_fields = [&fields.a, &fields.b, &fields.label];
    let extra = label_fields
        .into_iter()
        .chain(&fields.kind)
        .cloned()
        .collect();
    let inputs = open_labels(
        labelled,
        WantedFields {
            text: Vec::new(),
            id: IdField::RowNumber,
            extra,
            ..WantedFields::default()
        },
    )?;
    let mut sides = NameNumbers::default();
    let mut kinds = NameNumbers::default();
    let mut pairs: Vec<(LabelledPair, RowLocation)> = Vec::new();
    let mut ungraded = 0;
    visit_label_rows(
        &inputs,
        progress,
        |row| fields.parse_row(row.extra),
        |row, at| {
            let (a, b) = (sides.number_name(row.a)?, sides.number_name(row.b)?);
            let kind = row.kind.map(|kind| kinds.number_name(kind)).transpose()?;
            let Some(similar) = row.label else {
                ungraded += 1;
                return Ok(());
            };
            let (a, b) = (DocId(a), DocId(b));
            let pair = LabelledPair {
                a,
                b,
                similar,
                kind,
            };
            pairs.push((pair, at));
            Ok(())
        },
    )?;
    refuse_nothing(&inputs, pairs.len() as u64 + ungraded)?;
    refuse_no_kinds(&inputs, fields, &kinds)?;
    let mut drawn = sampler.map(|sampler| (sampler, DrawnDocuments::default()));
    let texts = if fields.corpus.is_empty() {
        drawn = None;
        sides.names_in_order()
    } else {
        let named = |id: u32| {
            let pair = pairs
                .iter()
                .find(|(pair, _)| pair.a.0 == id || pair.b.0 == id);
            pair.map_or_else(String::new, |(_, at)| {
                format!("{}: ", at.display_location(&inputs))
            })
        };
        let in_tsv = inputs.input_files().iter().any(is_tsv);
        let texts = read_corpus_texts(
            sides, in_tsv, fields, labelled, &named, &mut drawn, progress,
        )?;
        let (texts, text_of) = number_texts(texts)?;
        for (pair, _) in &mut pairs {
            (pair.a, pair.b) = (text_of[pair.a.index()], text_of[pair.b.index()]);
        }
        texts
    };
    let once = UniquePairs::from_pairs(pairs);
    let contradictory = once.contradictions.len() as u64;
    let repeated = once.repeated;
    let pairs = once.resolve_contradictions(fields, &inputs)?;
    let labelled = LabelledTexts::from_pairs(texts, pairs, kinds.names_in_order())
        .map_err(|error| name_files_in_error(&inputs, &error))?;
    Ok(ReadLabels {
        labelled,
        ungraded,
        repeated,
        contradictory,
        sample: drawn.map(|(_, drawn)| drawn.finish()),
    })
}

/// Labelled pairs, each only once.
#[derive(Default)]
struct UniquePairs {
    pairs: Vec<(LabelledPair, RowLocation)>,
    repeated: u64,
    /// For each contradictory pair, by its index in `pairs`: the first row whose label differs from the
    /// first label.
    contradictions: BTreeMap<usize, RowLocation>,
}

impl UniquePairs {
    fn from_pairs(pairs: Vec<(LabelledPair, RowLocation)>) -> Self {
        let mut once = Self::default();
        let mut place_of: HashMap<(DocId, DocId), usize> = HashMap::new();
        for (pair, at) in pairs {
            let both = (pair.a.min(pair.b), pair.a.max(pair.b));
            let place = *place_of.entry(both).or_insert(once.pairs.len());
            match once.pairs.get(place) {
                None => once.pairs.push((pair, at)),
                Some((first, _)) if first.similar == pair.similar => once.repeated += 1,
                Some(_) => {
                    once.contradictions.entry(place).or_insert(at);
                }
            }
        }
        once
    }

    /// Returns the pairs that remain after contradictions have been handled.
    fn resolve_contradictions(
        self,
        fields: &PairFields,
        inputs: &InputSet,
    ) -> Result<Vec<LabelledPair>> {
        let is_dropped = match fields.contradictory {
            ContradictoryLabels::Refuse if !self.contradictions.is_empty() => {
                return Err(self.contradiction_error(fields, inputs));
            }
            ContradictoryLabels::Refuse | ContradictoryLabels::First => false,
            ContradictoryLabels::Drop => true,
        };
        let pairs = self.pairs.into_iter().enumerate();
        let counts = |at: &usize| !is_dropped || !self.contradictions.contains_key(at);
        Ok(pairs
            .filter(|(at, _)| counts(at))
            .map(|(_, (pair, _))| pair)
            .collect())
    }

    fn contradiction_error(&self, fields: &PairFields, inputs: &InputSet) -> Error {
        let messages: Vec<_> = (self.contradictions.iter())
            .map(|(&place, at)| {
                let (first, first_at) = &self.pairs[place];
                let conflict = conflict_message(!first.similar, first_at.display_location(inputs));
                format!("{}: {conflict}", at.display_location(inputs))
            })
            .collect();
        let option = fields.spelling.spell_option("contradictory");
        let pairs = match messages.len() {
            1 => "1 pair has".to_owned(),
            count => format!("{count} pairs have"),
        };
        Error::input_error(format!(
            "{}\n{pairs} contradictory labels: correct them, or leave such pairs out with {option} \
             drop, or count their first label with {option} first",
            messages.join("\n")
        ))
    }
}

/// Returns the distinct texts, and the number of each given text among them. Documents with equal texts
/// become one, as they do if labelled rows contain the texts themselves.
fn number_texts(texts: Vec<String>) -> Result<(Vec<String>, Vec<DocId>)> {
    let mut numbers = NameNumbers::default();
    let number = |text| numbers.number_name(text).map(DocId);
    let text_of = texts.into_iter().map(number).collect::<Result<_>>()?;
    Ok((numbers.names_in_order(), text_of))
}

/// Refuses inputs in which no row has a kind, although a field for it was named.
fn refuse_no_kinds(inputs: &InputSet, fields: &PairFields, kinds: &NameNumbers) -> Result<()> {
    match &fields.kind {
        Some(field) if kinds.of.keys().all(|kind| kind == NO_KIND) => {
            Err(Error::input_error(format!(
                "{}: no row has a kind in the field `{field}`",
                list_file_names(inputs)
            )))
        }
        _ => Ok(()),
    }
}

/// The name of the kind of rows without one.
const NO_KIND: &str = "(none)";

fn kind_of_edit(field: &str, value: FieldValue<'_>) -> Result<String, String> {
    match value {
        FieldValue::Null | FieldValue::Missing => Ok(NO_KIND.to_owned()),
        FieldValue::Text(text) if text.trim().is_empty() => Ok(NO_KIND.to_owned()),
        FieldValue::Number { literal, .. } => Ok(literal.to_owned()),
        value => text_of_field(field, value).map(str::to_owned),
    }
}

fn conflict_message(similar: bool, first: String) -> String {
    let label_name = |similar| if similar { "similar" } else { "not similar" };
    format!(
        "the pair is labelled {}, but {} in {first}",
        label_name(similar),
        label_name(!similar)
    )
}

pub(in crate::run) fn refuse_nothing(inputs: &InputSet, rows: u64) -> Result<()> {
    if rows > 0 {
        return Ok(());
    }
    Err(Error::input_error(format!(
        "{} has no rows",
        list_file_names(inputs)
    )))
}

/// Converts an error of the engine and adds the names of the files.
fn name_files_in_error(inputs: &InputSet, error: &lookalike::Error) -> Error {
    Error::input_error(format!("{}: {error}", list_file_names(inputs)))
}

fn list_file_names(inputs: &InputSet) -> String {
    let names: Vec<_> = inputs
        .input_files()
        .iter()
        .map(|file| file.display_name())
        .collect();
    match names[..] {
        [first, .., last] if names.len() > 3 => {
            format!("{first} … {last} ({} files)", names.len())
        }
        _ => names.join(", "),
    }
}

pub(in crate::run) fn is_tsv(file: &InputFile) -> bool {
    file.input_format() == InputFormat::TSV
}

/// Returns an id as TSV contains it, if the tables in which it is looked up are TSV.
pub(in crate::run) fn as_written(id: &str, in_tsv: bool) -> Cow<'_, str> {
    if in_tsv {
        escape_tsv(id)
    } else {
        Cow::Borrowed(id)
    }
}

/// Returns `true` if a name may be that of a row in a source, because it has the form `SOURCE:ROW`.
fn is_row_place(name: &str) -> bool {
    let row = name.rsplit_once(':').map(|(_, row)| row);
    row.is_some_and(|row| !row.is_empty() && row.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The sampler of a corpus and the documents that it has drawn, if the corpus is sampled.
type Drawing<'a> = Option<(&'a CorpusSampler, DrawnDocuments)>;

/// Returns the texts of a corpus with these ids. The ids are in the form of TSV if `in_tsv` is set.
fn read_corpus_texts(
    ids: NameNumbers,
    in_tsv: bool,
    fields: &PairFields,
    labelled: &LabelledInputs,
    named: &dyn Fn(u32) -> String,
    drawing: &mut Drawing<'_>,
    progress: &dyn ProgressListener,
) -> Result<Vec<String>> {
    let mut options = ReadOptions {
        again: false,
        ..labelled.read.clone()
    };
    // If the corpus shows its own format, the requested format applies only to the labels.
    if fields.corpus.says_its_format() {
        options.format = None;
    }
    let corpus = open_separately(&fields.corpus, &options, &labelled.outputs)?;
    let mut texts: Vec<Option<(String, RowLocation)>> = (0..ids.of.len()).map(|_| None).collect();
    let requested_ids = RequestedIds::new(&ids, in_tsv);
    let sampler = drawing.as_ref().map(|(sampler, _)| *sampler);
    visit_label_rows(
        &corpus,
        progress,
        |row| {
            let requested = requested_ids.find_row(&corpus, row);
            let may_be_drawn = sampler.is_some_and(|sampler| sampler.may_draw(row.number));
            let text = (may_be_drawn || !requested.is_empty()).then(|| row.text.to_owned());
            Ok((requested, text))
        },
        |(requested, text), at| {
            if let Some((sampler, drawn)) = drawing {
                sampler.offer_row(at.1, text.clone(), drawn);
            }
            let Some(text) = text.filter(|_| !requested.is_empty()) else {
                return Ok(());
            };
            for (number, id) in requested {
                // Documents of one content are one text.
                if texts[number as usize].is_some() && is_content_hash(&id) {
                    continue;
                }
                if let Some((_, first)) = &texts[number as usize] {
                    let [first_place, place] =
                        [*first, at].map(|location| location.label_place(&corpus));
                    let reason = format!(
                        "the id '{id}' is already in {}: in the labels, name the document by \
                         source and row, as '{first_place}' or '{place}'",
                        first.display_location(&corpus)
                    );
                    return Err(at.error_at_row(&corpus, &reason));
                }
                texts[number as usize] = Some((text.clone(), at));
            }
            Ok(())
        },
    )?;
    if let Some(id) = texts.iter().position(Option::is_none) {
        let missing = texts.iter().filter(|text| text.is_none()).count();
        let names = ids.names_in_order();
        return Err(Error::input_error(format!(
            "{}no document of {} has the id '{}'{}",
            named(id as u32),
            self::list_file_names(&corpus),
            names[id],
            match missing {
                1 => String::new(),
                more => format!(" ({more} ids are unknown)"),
            }
        )));
    }
    Ok(texts.into_iter().flatten().map(|(text, _)| text).collect())
}

/// The ids by which labels name documents of a corpus, and which kinds of ids are among them.
struct RequestedIds<'a> {
    ids: &'a NameNumbers,
    in_tsv: bool,
    has_places: bool,
    has_contents: bool,
}

impl<'a> RequestedIds<'a> {
    fn new(ids: &'a NameNumbers, in_tsv: bool) -> Self {
        Self {
            ids,
            in_tsv,
            has_places: ids.of.keys().any(|id| is_row_place(id)),
            has_contents: ids.of.keys().any(|id| is_content_hash(id)),
        }
    }

    /// Returns the ids that name a row, with their numbers: its own id, its place and the hash of its text.
    fn find_row(&self, corpus: &InputSet, row: &InputRow<'_>) -> Vec<(u32, String)> {
        let number = row.number.to_string();
        let id = as_written(row.id.unwrap_or(&number), self.in_tsv);
        let place = self.has_places.then(|| {
            let (source, row) = corpus.source_row(row.place, row.number);
            Cow::Owned(as_written(&format!("{source}:{row}"), self.in_tsv).into_owned())
        });
        let content = self
            .has_contents
            .then(|| Cow::Owned(ContentHash::from_text(row.text).to_string()));
        [Some(id), place, content]
            .into_iter()
            .flatten()
            .filter_map(|name| Some((*self.ids.of.get(&*name)?, name.into_owned())))
            .collect()
    }
}

fn is_content_hash(id: &str) -> bool {
    ContentHash::parse_hash(id).is_some()
}

impl PairFields {
    /// Converts the values of a row.
    fn parse_row(&self, values: &[FieldValue<'_>]) -> Result<PairRow, String> {
        Ok(PairRow {
            a: self.parse_side(&self.a, values[0])?,
            b: self.parse_side(&self.b, values[1])?,
            label: self.parse_label(values[2])?,
            kind: match (&self.kind, values.get(3)) {
                (Some(field), Some(&value)) => Some(kind_of_edit(field, value)?),
                _ => None,
            },
        })
    }

    fn parse_side(&self, field: &str, value: FieldValue<'_>) -> Result<String, String> {
        match value {
            FieldValue::Number { literal, .. } if !self.corpus.is_empty() => {
                Ok(shortest_digits(literal).into_owned())
            }
            value => text_of_field(field, value).map(str::to_owned),
        }
    }

    fn parse_label(&self, value: FieldValue<'_>) -> Result<Option<bool>, String> {
        let field = &self.label;
        match self.grades {
            Some(grades) => grades.grade_to_label(field, value),
            None => is_similar(field, value, self.spelling).map(Some),
        }
    }
}

pub(in crate::run) fn text_of_field<'a>(
    field: &str,
    value: FieldValue<'a>,
) -> Result<&'a str, String> {
    match value {
        FieldValue::Text(text) if !text.trim().is_empty() => Ok(text),
        FieldValue::Text(_) | FieldValue::Null => Err(format!("the field `{field}` is empty")),
        FieldValue::Missing => Err(format!("the field `{field}` is missing")),
        FieldValue::Number { literal, .. } => Err(format!(
            "the field `{field}` is the number {literal}, not a string"
        )),
        FieldValue::Bool(_) => Err(format!("the field `{field}` is a boolean, not a string")),
    }
}

/// Labels that mean similar, and labels that mean not similar.
const SIMILAR_LABELS: [&str; 10] = [
    "1",
    "true",
    "yes",
    "dup",
    "duplicate",
    "near-duplicate",
    "similar",
    "same",
    "match",
    "positive",
];
const DIFFERENT_LABELS: [&str; 10] = [
    "0",
    "false",
    "no",
    "non-duplicate",
    "not-duplicate",
    "different",
    "distinct",
    "unrelated",
    "no-match",
    "negative",
];

fn is_similar(
    field: &str,
    value: FieldValue<'_>,
    spelling: OptionSpelling,
) -> Result<bool, String> {
    let label = match value {
        FieldValue::Bool(label) => return Ok(label),
        FieldValue::Number { value: 1.0, .. } => return Ok(true),
        FieldValue::Number { value: 0.0, .. } => return Ok(false),
        FieldValue::Number { literal, .. } => literal,
        value => text_of_field(field, value)?.trim(),
    };
    match label.parse() {
        Ok(1.0) => return Ok(true),
        Ok(0.0) => return Ok(false),
        _ => {}
    }
    let lower = label.to_lowercase();
    match (
        SIMILAR_LABELS.contains(&&*lower),
        DIFFERENT_LABELS.contains(&&*lower),
    ) {
        (true, _) => Ok(true),
        (_, true) => Ok(false),
        _ => Err(format!(
            "the label in field `{field}` is '{label}': give 1 or 0, true or false, yes or no, \
             similar or different, or grades with {} and {}",
            spelling.spell_option("positive"),
            spelling.spell_option("negative")
        )),
    }
}

impl GradeThresholds {
    fn grade_to_label(self, field: &str, value: FieldValue<'_>) -> Result<Option<bool>, String> {
        let grade = match value {
            FieldValue::Number { value, .. } => value,
            value => {
                let text = text_of_field(field, value)?.trim();
                let number = text.parse().ok().filter(|grade: &f64| grade.is_finite());
                number.ok_or_else(|| {
                    format!("the grade in field `{field}` is '{text}', not a number")
                })?
            }
        };
        Ok(if grade >= self.positive {
            Some(true)
        } else if grade <= self.negative {
            Some(false)
        } else {
            None
        })
    }
}

fn read_groups(
    labelled: &LabelledInputs,
    group: &str,
    texts: &GroupTexts,
    progress: &dyn ProgressListener,
) -> Result<ReadLabels> {
    let (text, list) = match texts {
        GroupTexts::InRows => (labelled.read.fields.text.clone(), None),
        GroupTexts::InList(field) => (Vec::new(), Some(field.clone())),
    };
    let may_lack_name = list.is_some();
    let inputs = open_labels(
        labelled,
        WantedFields {
            text,
            id: IdField::RowNumber,
            lists_only: list.is_some(),
            features: list,
            extra: vec![group.to_owned()],
        },
    )?;
    let mut names = NameNumbers::default();
    let (mut texts, mut groups) = (Vec::new(), Vec::new());
    visit_label_rows(
        &inputs,
        progress,
        |row| {
            let name = match row.extra[0] {
                FieldValue::Missing if may_lack_name => None,
                FieldValue::Number { literal, .. } => Some(shortest_digits(literal)),
                value => Some(text_of_field(group, value)?.into()),
            };
            let texts: Vec<String> = match &row.features {
                Some(list) => list
                    .iter_weighted()
                    .map(|(text, _)| text.to_owned())
                    .collect(),
                None => vec![row.text.to_owned()],
            };
            // The space makes this a name that no field can contain.
            let name = name.map_or_else(|| format!(" {}", row.number), Cow::into_owned);
            Ok((name, texts))
        },
        |(name, members), _| {
            let number = names.number_name(name)?;
            groups.resize(groups.len() + members.len(), number);
            texts.extend(members);
            Ok(())
        },
    )?;
    refuse_nothing(&inputs, names.of.len() as u64)?;
    let labelled = LabelledTexts::from_groups(texts, groups)
        .map_err(|error| name_files_in_error(&inputs, &error))?;
    Ok(ReadLabels {
        labelled,
        ungraded: 0,
        repeated: 0,
        contradictory: 0,
        sample: None,
    })
}

/// The cluster of each document, by id.
pub(in crate::run) type ClustersById = HashMap<String, String>;

/// Reads two tables of clusters with the columns `id` and `cluster`. If one of them is TSV, the ids of
/// both are converted to the form of TSV, so that they can be compared.
pub(in crate::run) fn read_both_clusters(
    [one, other]: [&PathBuf; 2],
    read: &ReadOptions,
    progress: &dyn ProgressListener,
) -> Result<[ClustersById; 2]> {
    let (one, other) = (open_clusters(one, read)?, open_clusters(other, read)?);
    let mut files = one.input_files().iter().chain(other.input_files());
    let in_tsv = files.any(is_tsv);
    Ok([
        read_clusters(&one, in_tsv, progress)?,
        read_clusters(&other, in_tsv, progress)?,
    ])
}

fn open_clusters(path: &PathBuf, read: &ReadOptions) -> Result<InputSet> {
    let id = match &read.fields.id {
        IdField::Named(name) => name.clone(),
        IdField::Default | IdField::RowNumber => "id".to_owned(),
    };
    InputSet::open_paths(
        std::slice::from_ref(path),
        &ReadOptions {
            again: false,
            fields: WantedFields {
                text: Vec::new(),
                id: IdField::Named(id),
                extra: vec!["cluster".to_owned()],
                ..WantedFields::default()
            },
            ..read.clone()
        },
    )
}

fn read_clusters(
    inputs: &InputSet,
    in_tsv: bool,
    progress: &dyn ProgressListener,
) -> Result<ClustersById> {
    let mut clusters: HashMap<String, (String, RowLocation)> = HashMap::new();
    visit_label_rows(
        inputs,
        progress,
        |row| {
            let cluster = match row.extra[0] {
                FieldValue::Number { literal, .. } => shortest_digits(literal),
                value => text_of_field("cluster", value)?.into(),
            };
            let id = as_written(row.id.unwrap_or_default(), in_tsv);
            Ok((id.into_owned(), cluster.into_owned()))
        },
        |(id, cluster), at| match clusters.get(&id) {
            Some((_, first)) => {
                let first = first.display_location(inputs);
                let reason = format!(
                    "the id '{id}' is already in {first}: clusters are compared by ids, which must \
                     differ; `--id-row` numbers the rows of both runs"
                );
                Err(at.error_at_row(inputs, &reason))
            }
            None => {
                clusters.insert(id, (cluster, at));
                Ok(())
            }
        },
    )?;
    refuse_nothing(inputs, clusters.len() as u64)?;
    let clusters = clusters.into_iter();
    Ok(clusters.map(|(id, (cluster, _))| (id, cluster)).collect())
}
