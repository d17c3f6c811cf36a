//! `lookalike explain`: shows why a document was removed, with both texts.
//!
//! The record of a removal contains the result of the run. Both texts are read again and their similarity is
//! computed again, so the answer is about the present texts, and says whether the record still fits them.

mod args;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use anyhow::{Result, bail};
use lookalike::compare::{FormComparison, FormDifference};
use lookalike::content_hash::ContentHash;
use lookalike::dedup::PairDecision;
use lookalike::plan::{ComparedInputs, EditUnit, EqualKeySketch, MatchMethod, SimilarityMeasure};
use lookalike::similarity::{Route, SequenceMeasure};
use lookalike::sketch::{MinHasher, SimHasher, bottom_k_jaccard, equal_slots, smallest_features};
use lookalike::text::{AnalysisExtras, AnalysisScratch, TextAnalysis, TextAnalyzer, TextState};
use lookalike::{Cpu, Recipe, Threshold, similarity};
use lookalike_batch::decisions::read_decisions;
use lookalike_batch::index::{StoredDocument, find_stored_document, index_recipe};
use lookalike_comparison::text_diff::diff_passages;
use lookalike_io::source::{
    FieldValue, IdField, InputFormat, InputRow, InputSet, ReadOptions, WantedFields,
};
use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr;

pub(crate) use self::args::ExplainArgs;
use super::forms::spell_frame;
use super::shared::documents::{
    DocumentAddress, DocumentDescription, FoundDocument, ambiguous_id_message,
    lock_ignoring_poison, look_up_documents, unless_known, visit_rows,
};
use super::shared::inputs::{check_has_text, read_options};
use super::shared::matching;
use super::shared::recipes::load_recipe;
use super::shared::running::thread_count;
use crate::CommandOutcome;
use crate::language::engine_phrases::translate_phrase;
use crate::language::{CountedNoun, MessageLanguage, NounCount, messages};
use crate::output::{OutputPrinter, TextTone, escape_control, format_count, pad_to_width};
use crate::text_diff::mark_passages;

/// Number of removed duplicates of a kept document that are named.
const NAMED_DUPLICATES: usize = 5;

/// Largest difference of equal numbers. Tables have enough digits to restore every `f64`.
const LARGEST_ROUNDING: f64 = 1e-12;

pub(crate) fn run_explain(args: &ExplainArgs) -> Result<CommandOutcome> {
    let printer = OutputPrinter::new(false);
    if args.json {
        let object = explain_as_json(args, &read_options(&args.reading)?)?;
        printer.write_data(&format!("{object}\n"))?;
        return Ok(CommandOutcome::Done);
    }
    let recipe = explained_recipe(args)?;
    check_unit(args)?;
    let options = read_options(&args.reading)?;
    let table = RemovalTable::read_table(args)?;
    let text = match table.removal_of(DocumentAddress::parse_address(&args.document))? {
        Some(removal) => {
            ExplainedRemoval::find_documents(args, &options, &recipe, &table, removal)?
                .describe_in_words(args, &printer)
        }
        None => describe_not_removed(&find_not_removed(args, &options, &table)?, args),
    };
    printer.write_data(&text)?;
    Ok(CommandOutcome::Done)
}

/// Returns what the command prints with `--json`. `options` are those of reading.
///
/// # Errors
/// As those of the command.
pub(crate) fn explain_as_json(args: &ExplainArgs, options: &ReadOptions) -> Result<Value> {
    let recipe = explained_recipe(args)?;
    check_unit(args)?;
    let table = RemovalTable::read_table(args)?;
    match table.removal_of(DocumentAddress::parse_address(&args.document))? {
        Some(removal) => {
            let explained =
                ExplainedRemoval::find_documents(args, options, &recipe, &table, removal)?;
            Ok(explained.to_json())
        }
        None => Ok(find_not_removed(args, options, &table)?.to_json(args)),
    }
}

/// Refuses a unit of edits that has no effect.
fn check_unit(args: &ExplainArgs) -> Result<()> {
    let measure = args.verify.unwrap_or(SimilarityMeasure::Jaccard);
    matching::edit_unit(measure, args.unit, &args.reading).map(drop)
}

/// Returns the recipe of the dedup run, with its table of forms. Without a name it is that of the library, as in the run.
fn explained_recipe(args: &ExplainArgs) -> Result<Recipe> {
    let of_library = match (&args.recipe, &args.library) {
        (None, Some(library)) if args.changes.set.is_empty() => index_recipe(library)?,
        _ => None,
    };
    let recipe = match of_library {
        Some(recipe) => recipe,
        None => load_recipe(args.recipe.as_deref().unwrap_or("default"), &args.changes)?,
    };
    let recipe = args.forms.apply_to(recipe)?;
    if recipe.forms.is_some() {
        check_has_text(&args.reading, "a comparison of forms")?;
    }
    Ok(recipe)
}

/// A row of the table of removed documents.
#[derive(Debug, Clone)]
struct RemovalRow {
    id: String,
    kept: String,
    similarity: Option<f64>,
    method: String,
    threshold: Option<f64>,
    cluster: String,
    /// Name of the form of both documents; empty if the table has none.
    form: String,
    /// Places of the document and the kept one, if the table has them.
    place: Option<SourceRow>,
    kept_place: Option<SourceRow>,
}

/// A source and a row in it, from 1.
#[derive(Debug, Clone)]
struct SourceRow {
    source: String,
    row: u64,
}

impl SourceRow {
    fn is_at(&self, source: &str, row: u64) -> bool {
        self.row == row && self.source == source
    }

    fn display_place(&self) -> String {
        format!("{}:{}", self.source, self.row)
    }
}

/// Columns of the table besides both ids. Only tables of runs with forms have the last one, and tables of earlier versions
/// have only the first four.
const TABLE_COLUMNS: [&str; 9] = [
    "similarity",
    "method",
    "threshold",
    "cluster",
    "source",
    "row",
    "kept_source",
    "kept_row",
    "form",
];

/// The part of the table about one document: its own removal, or the removals that name it.
struct RemovalTable {
    removals: Vec<RemovalRow>,
    /// `true` for TSV, which writes tabs and line ends as `\t`, `\n` and `\r`.
    escaped: bool,
}

impl RemovalTable {
    fn read_table(args: &ExplainArgs) -> Result<Self> {
        let read = |columns: usize| Self::read_columns(args, &TABLE_COLUMNS[..columns]);
        read(9).or_else(|_| read(8)).or_else(|_| read(4))
    }

    fn read_columns(args: &ExplainArgs, columns: &[&str]) -> Result<Self> {
        let address = DocumentAddress::parse_address(&args.document);
        // A file without a known extension is TSV, because the run that wrote it chose that too.
        let format = unless_known(&args.removed, InputFormat::TSV);
        let fields = WantedFields {
            text: vec!["kept".to_owned()],
            id: IdField::Named("id".to_owned()),
            extra: columns.iter().map(|&column| column.to_owned()).collect(),
            ..WantedFields::default()
        };
        let scratch = args.reading.scratch.clone();
        let options = ReadOptions {
            format,
            fields,
            scratch,
            ..ReadOptions::default()
        };
        let inputs = InputSet::open_paths(std::slice::from_ref(&args.removed), &options)?;
        let escaped = inputs
            .input_files()
            .iter()
            .any(|file| file.input_format() == InputFormat::TSV);
        let wanted = escape_id(&args.document, escaped);
        let removals = Mutex::new(Vec::new());
        let bad = Mutex::new(None);
        visit_rows(&inputs, thread_count(args.threads), &|row| match row {
            Ok(row) => {
                let id = row.id.unwrap_or_default();
                let removal = parse_removal(row);
                let is_place = |place: &Option<SourceRow>| {
                    let place = place.as_ref();
                    place.is_some_and(|place| address.is_place(&place.source, place.row))
                };
                if id == args.document
                    || id == wanted
                    || row.text == args.document
                    || row.text == wanted
                    || is_place(&removal.place)
                    || is_place(&removal.kept_place)
                {
                    lock_ignoring_poison(&removals).push((row.number, removal));
                }
                true
            }
            Err(reason) => {
                lock_ignoring_poison(&bad).get_or_insert(reason);
                true
            }
        })?;
        if let Some(reason) = bad.into_inner().unwrap_or_else(PoisonError::into_inner) {
            bail!(
                "this is not a table of removed documents as `dedup --removed` writes it: {reason}"
            );
        }
        let mut removals = removals
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        removals.sort_by_key(|(number, _)| *number);
        let mut removals: Vec<_> = removals.into_iter().map(|(_, removal)| removal).collect();
        for removal in removals.iter_mut().filter(|removal| removal.id == wanted) {
            removal.id.clone_from(&args.document);
        }
        Ok(Self { removals, escaped })
    }

    /// Returns the removal of the addressed document, if it was removed. Refuses an id that several removed
    /// documents have.
    fn removal_of(&self, address: DocumentAddress<'_>) -> Result<Option<&RemovalRow>> {
        let is_place = |removal: &&RemovalRow| {
            let place = removal.place.as_ref();
            place.is_some_and(|place| address.is_place(&place.source, place.row))
        };
        if let Some(removal) = self.removals.iter().find(is_place) {
            return Ok(Some(removal));
        }
        let has_id = |removal: &&RemovalRow| removal.id == address.text;
        let removals: Vec<_> = self.removals.iter().filter(has_id).collect();
        if removals.len() > 1 {
            let places = removals.iter().filter_map(|removal| removal.place.as_ref());
            let places: Vec<_> = places
                .take(NAMED_DUPLICATES)
                .map(SourceRow::display_place)
                .collect();
            bail!(
                "{}",
                ambiguous_id_message(address.text, removals.len() as u64, &places)
            );
        }
        Ok(removals.first().copied())
    }

    /// Returns `true` if an id in the table stands for an id of the inputs.
    fn names_id(&self, in_table: &str, id: &str) -> bool {
        in_table == id || self.escaped && in_table == escape_id(id, true)
    }
}

fn escape_id(id: &str, escaped: bool) -> String {
    if escaped {
        id.replace('\t', "\\t")
            .replace('\n', "\\n")
            .replace('\r', "\\r")
    } else {
        id.to_owned()
    }
}

fn parse_removal(row: &InputRow<'_>) -> RemovalRow {
    let [similarity, method, threshold, cluster, places @ ..] = row.extra else {
        unreachable!("at least four fields were asked for");
    };
    let text = |value: &FieldValue<'_>| match value {
        FieldValue::Text(text) | FieldValue::Number { literal: text, .. } => (*text).to_owned(),
        FieldValue::Missing | FieldValue::Null | FieldValue::Bool(_) => String::new(),
    };
    let number = |value: &FieldValue<'_>| text(value).parse().ok();
    let place = |at: usize| {
        let (source, row) = (places.get(at)?, places.get(at + 1)?);
        let row = text(row).parse().ok()?;
        let source = text(source);
        (!source.is_empty()).then_some(SourceRow { source, row })
    };
    RemovalRow {
        id: row.id.unwrap_or_default().to_owned(),
        kept: row.text.to_owned(),
        similarity: number(similarity),
        method: text(method),
        threshold: number(threshold),
        cluster: text(cluster),
        form: places.get(4).map(text).unwrap_or_default(),
        place: place(0),
        kept_place: place(2),
    }
}

/// A removal with both documents and their present comparison.
struct ExplainedRemoval<'a> {
    removal: &'a RemovalRow,
    recipe: &'a Recipe,
    removed: FoundDocument,
    kept: FoundDocument,
    now: CurrentComparison,
    /// The decision of a person on both texts, if there is one.
    decision: Option<DecisionOnPair>,
}

impl<'a> ExplainedRemoval<'a> {
    fn find_documents(
        args: &ExplainArgs,
        options: &ReadOptions,
        recipe: &'a Recipe,
        table: &RemovalTable,
        removal: &'a RemovalRow,
    ) -> Result<Self> {
        let threads = thread_count(args.threads);
        let address = DocumentAddress::parse_address(&args.document);
        let removed_place = removal.place.as_ref();
        let by_place = removed_place
            .filter(|removed_place| address.is_place(&removed_place.source, removed_place.row));
        let is_removed = |id: &str, source: &str, row: u64| match by_place {
            Some(place) => place.is_at(source, row),
            None => id == args.document,
        };
        let is_kept = |id: &str, _: &str, _: u64| table.names_id(&removal.kept, id);
        let kept_place = removal.kept_place.as_ref();
        let is_kept_there = |_: &str, source: &str, row: u64| {
            kept_place.is_some_and(|place| place.is_at(source, row))
        };
        let wanted: [DocumentDescription<'_>; 3] = [&is_kept, &is_kept_there, &is_removed];
        let mut in_against =
            look_up_documents(&args.against, options, threads, &wanted[..2])?.into_iter();
        let mut found = look_up_documents(&args.inputs, options, threads, &wanted)?.into_iter();
        let mut next = || found.next().unwrap_or_default();
        let (by_id, in_place, removed) = (next(), next(), next());
        let removed = removed.into_only_document(&args.document)?;
        let mut next = || in_against.next().unwrap_or_default();
        let (against_by_id, against_in_place) = (next(), next());
        // If the table has the place of the kept document, that identifies it even if the id is not unique.
        // Inputs may have been renamed since; then the id decides.
        let (in_against, in_inputs) = match (against_in_place.into_first(), in_place.into_first()) {
            (None, None) => (against_by_id.into_first(), by_id.into_first()),
            in_place => in_place,
        };
        let missing = |id: &str, role: &str, more: &str| {
            anyhow::anyhow!(
                "the {role} document {id} is not in the inputs: give the inputs of the dedup run, \
                 with the same --id, --id-row and --format{more}"
            )
        };
        let removed = removed.ok_or_else(|| missing(&args.document, "removed", ""))?;
        // The id can occur in both inputs; then the document that fits the record is the right one.
        let in_inputs = in_inputs.filter(|found| found.number != removed.number);
        let in_library = find_in_library(args, options, removal)?;
        let without_text = match &in_library {
            Some(LibraryDocument::WithoutText(message)) => Some(message.clone()),
            _ => None,
        };
        let in_library = match in_library {
            Some(LibraryDocument::Found(kept)) => Some(kept),
            _ => None,
        };
        let mut candidates: Vec<_> = in_library
            .into_iter()
            .chain(in_against)
            .chain(in_inputs)
            .map(|kept| {
                let now = CurrentComparison::new(recipe, args, removal, &kept, &removed)?;
                Ok((kept, now))
            })
            .collect::<Result<_>>()?;
        let fitting = candidates
            .iter()
            .position(|(_, now)| now.fitting_measure(removal).is_some());
        let is_unknown = candidates.is_empty() || (fitting.is_none() && args.against.is_empty());
        if let Some(message) = without_text.filter(|_| is_unknown) {
            bail!(message);
        }
        if candidates.is_empty() {
            return Err(missing(
                &removal.kept,
                "kept",
                ", and those of --against and --library",
            ));
        }
        let (kept, now) = candidates.swap_remove(fitting.unwrap_or(0));
        let decision = find_decision(args, recipe, &now, [&kept.text, &removed.text])?;
        Ok(Self {
            removal,
            recipe,
            removed,
            kept,
            now,
            decision,
        })
    }

    fn describe_in_words(&self, args: &ExplainArgs, printer: &OutputPrinter) -> String {
        let Self {
            removal,
            now,
            kept,
            removed,
            recipe,
            ..
        } = self;
        let full = args.full;
        let mut text = String::new();
        let (id, kept_id) = (escape_control(&removal.id), escape_control(&removal.kept));
        let _ = writeln!(text, "{}", messages::removed_because(&id, &kept_id));
        let mut line = |label: &str, value: &str| {
            let _ = writeln!(
                text,
                "  {} {}",
                pad_to_width(label, 12),
                escape_control(value)
            );
        };
        line(&messages::kept(), &kept.display_place());
        line(&messages::removed(), &removed.display_place());
        let recorded = |value: Option<f64>, show: fn(f64) -> String| {
            value.map_or_else(messages::not_recorded, show)
        };
        let similarity = recorded(removal.similarity, |value| format!("{value:.4}"));
        line(
            &messages::similarity(),
            &messages::found_by(&similarity, &removal.method),
        );
        line(
            &messages::threshold(),
            &recorded(removal.threshold, |value| value.to_string()),
        );
        line(&messages::cluster(), &removal.cluster);
        if !removal.form.is_empty() {
            line(&messages::form(), &removal.form);
        }
        line(
            &messages::recipe(),
            &messages::recipe_with_id(&recipe.name, recipe.recipe_id()),
        );
        line(&messages::now(), &now.describe_in_words());
        line("", &self.describe_record());
        if let Some(decision) = self.describe_decision(args) {
            line("", &decision);
        }
        if let Some(difference) = &now.difference {
            let reason = difference.to_string();
            let reason = translate_phrase(&reason);
            line("", &messages::kept_apart_by_forms(&reason));
        }
        if let Some(form) = &now.form {
            text.push_str(&describe_form(form, full, printer));
        }
        let (kept, removed) = (kept.display_text(), removed.display_text());
        let heading = messages::both_texts_marked();
        let _ = writeln!(
            text,
            "\n{}",
            printer.paint_for_output(TextTone::Heading, &heading)
        );
        text.push_str(&mark_passages(
            &diff_passages(&kept, &removed),
            full,
            printer,
        ));
        text.push('\n');
        text
    }

    /// Returns a sentence about the decision of a person on both texts, if there is one or the run had one.
    fn describe_decision(&self, args: &ExplainArgs) -> Option<String> {
        let is_by_decision = self.removal.method == Route::Decision.name();
        match &self.decision {
            Some(decision) if !decision.is_of_recipe => {
                Some(messages::decision_of_other_recipe(decision.label()))
            }
            Some(decision) if decision.is_about_form => {
                Some(messages::decision_on_form(decision.label()))
            }
            Some(decision) => Some(messages::decision_on_pair(decision.label())),
            None if is_by_decision && args.decisions.is_empty() => {
                Some(messages::decision_not_given())
            }
            None if is_by_decision => Some(messages::decision_not_found()),
            None => None,
        }
    }

    /// Returns a sentence that says whether the record fits the present texts.
    fn describe_record(&self) -> String {
        match self.now.fitting_measure(self.removal) {
            Some(measure) => messages::record_fits(&measure),
            None if self.removal.method == Route::Decision.name() => messages::record_of_decision(),
            None => messages::record_differs(),
        }
    }

    fn to_json(&self) -> Value {
        let Self {
            removal,
            now,
            kept,
            removed,
            recipe,
            ..
        } = self;
        let (kept_text, removed_text) = (kept.display_text(), removed.display_text());
        let document = |found: &FoundDocument, text: &str| json!({ "file": found.file, "row": found.row, "text": text });
        json!({
            "id": removal.id,
            "removed": true,
            "kept": removal.kept,
            "similarity": removal.similarity,
            "method": removal.method,
            "threshold": removal.threshold,
            "cluster": removal.cluster,
            "form": (!removal.form.is_empty()).then_some(&removal.form),
            "recipe": recipe.name,
            "recipe_id": recipe.recipe_id().to_string(),
            "now": {
                "equal": now.equal,
                "jaccard": now.jaccard,
                "containment": now.containment,
                "cosine": now.cosine,
                "sequence_similarity": now.measured_sequences(),
                "shared_features": now.shared,
                "kept_features": now.kept,
                "removed_features": now.removed,
                "fits_record": now.fitting_measure(removal).is_some(),
                "form": now.form.as_ref().map(form_to_json),
                "decision": self.decision.as_ref().map(|decision| json!({
                    "label": decision.decision_name(),
                    "of_form": decision.is_about_form,
                    "applied": decision.is_of_recipe,
                })),
                "apart": now.difference.as_ref().map(|difference| json!({
                    "by": difference.reason_name(),
                    "reason": difference.to_string(),
                })),
            },
            "kept_document": document(kept, &kept_text),
            "removed_document": document(removed, &removed_text),
            "differences": diff_passages(&kept_text, &removed_text),
        })
    }
}

/// A decision of a person on two texts, or on all documents of their form.
#[derive(Debug)]
struct DecisionOnPair {
    decision: PairDecision,
    is_about_form: bool,
    /// `true` if it was made under the recipe of the run, so that the run applied it.
    is_of_recipe: bool,
}

impl DecisionOnPair {
    fn decision_name(&self) -> &'static str {
        match self.decision {
            PairDecision::Same => "same",
            PairDecision::Different => "different",
        }
    }

    /// Returns the decision as a message says it.
    fn label(&self) -> &'static str {
        match (self.decision, MessageLanguage::current()) {
            (PairDecision::Same, MessageLanguage::English) => "the same",
            (PairDecision::Same, MessageLanguage::Chinese) => "相同",
            (PairDecision::Different, MessageLanguage::English) => "different",
            (PairDecision::Different, MessageLanguage::Chinese) => "不同",
        }
    }
}

/// Finds the decision on two texts in the files of decisions: one about the pair itself, else one about their form; one of
/// the recipe, else one of another.
fn find_decision(
    args: &ExplainArgs,
    recipe: &Recipe,
    now: &CurrentComparison,
    texts: [&str; 2],
) -> Result<Option<DecisionOnPair>> {
    let [one, other] = texts.map(ContentHash::from_text);
    // The keys of texts do not depend on forms, so decisions name the recipe without them, too.
    let without_forms = recipe.clone().without_forms();
    let recipe_ids = [recipe, &without_forms].map(|recipe| recipe.recipe_id().to_string());
    let frame = now.form.as_ref().map(|form| &form.frame);
    let mut found: Vec<_> = read_decisions(&args.decisions)?
        .into_iter()
        .filter_map(|decided| {
            let contents = [decided.a.content, decided.b.content];
            let is_on_pair = contents == [one, other] || contents == [other, one];
            let is_about_form = decided
                .form
                .as_ref()
                .is_some_and(|form| Some(&form.frame) == frame);
            (is_on_pair || is_about_form).then_some(DecisionOnPair {
                decision: decided.decision,
                is_about_form: !is_on_pair,
                is_of_recipe: recipe_ids.contains(&decided.recipe),
            })
        })
        .collect();
    found.sort_by_key(|decided| (!decided.is_of_recipe, decided.is_about_form));
    Ok(found.into_iter().next())
}

/// The kept document of a run with a library.
enum LibraryDocument {
    Found(FoundDocument),
    /// The library stores no texts; the message says what to give instead.
    WithoutText(String),
}

/// Looks for the kept document in the library of the run: that of `--library`, else the source in the table. `None` if it is
/// not in a library.
fn find_in_library(
    args: &ExplainArgs,
    options: &ReadOptions,
    removal: &RemovalRow,
) -> Result<Option<LibraryDocument>> {
    let place = removal.kept_place.as_ref();
    let given = args.library.clone();
    let Some(library) = given.or_else(|| place.map(|place| PathBuf::from(&place.source))) else {
        return Ok(None);
    };
    let row = place.map(|place| place.row);
    let name = library.display().to_string();
    let Some(document) = find_allowed(&library, &removal.kept, row, options)? else {
        return Ok(None);
    };
    Ok(Some(match document.text {
        Some(text) => LibraryDocument::Found(FoundDocument::from_text(text, name, document.row)),
        None => LibraryDocument::WithoutText(format!(
            "the kept document {} is row {} of the library {name}, which stores no texts: give the file from which it \
             came with --against",
            escape_control(&removal.kept),
            document.row
        )),
    }))
}

/// Finds a document in a library, unless the library is none or may not be read.
fn find_allowed(
    library: &Path,
    id: &str,
    row: Option<u64>,
    options: &ReadOptions,
) -> Result<Option<StoredDocument>> {
    let folders = options.allowed_folders.as_ref();
    if folders.is_some_and(|folders| folders.resolve_path(library).is_none()) {
        return Ok(None);
    }
    Ok(find_stored_document(library, id, row)?)
}

/// Present comparison of two documents under a recipe.
#[derive(Debug)]
struct CurrentComparison {
    /// Measure to which the recorded similarity is attributed.
    measure: SimilarityMeasure,
    /// `true` if the texts are equal after normalisation.
    equal: bool,
    /// Distinct features of each document, and shared ones.
    kept: usize,
    removed: usize,
    shared: usize,
    jaccard: f64,
    containment: f64,
    cosine: f64,
    /// The similarity by the measure. That of sequences is known if it reaches the recorded threshold.
    measured: Option<f64>,
    /// Estimate from the smallest hashes.
    smallest: f64,
    /// The key by which the pair was found, if it was by one, and `true` if the texts still have the same.
    equal_key: Option<(EqualKeySketch, bool)>,
    /// Share of equal slots of the signatures.
    slots: Option<f64>,
    /// 1 − distance/bits of the fingerprints.
    bits: Option<f64>,
    /// The values of both documents in the slots of their form, if they are of one.
    form: Option<FormComparison>,
    /// Reason why the forms of the recipe keep the two documents apart; `None` if they do not.
    difference: Option<FormDifference>,
}

impl CurrentComparison {
    fn new(
        recipe: &Recipe,
        args: &ExplainArgs,
        removal: &RemovalRow,
        kept: &FoundDocument,
        removed: &FoundDocument,
    ) -> Result<Self> {
        let analyzer = TextAnalyzer::new(recipe).with_extras(AnalysisExtras {
            characters: true,
            sentences: Some(args.sentences),
        });
        let (mut scratch_a, mut scratch_b) =
            (AnalysisScratch::default(), AnalysisScratch::default());
        let a = kept.analyze_document(&analyzer, &mut scratch_a);
        let b = removed.analyze_document(&analyzer, &mut scratch_b);
        let listed = |analysis: &TextAnalysis<'_>| {
            let (mut features, mut weighted, mut smallest) = (Vec::new(), Vec::new(), Vec::new());
            analysis.append_features(&mut features);
            analysis.weighted_features(&mut weighted);
            smallest_features(analysis, recipe.minhash.slots as usize, &mut smallest);
            (features, weighted, smallest)
        };
        let (in_a, weighted_a, smallest_a) = listed(&a);
        let (in_b, weighted_b, smallest_b) = listed(&b);
        let measure = args.verify.unwrap_or(SimilarityMeasure::Jaccard);
        let unit = matching::edit_unit(measure, args.unit, &args.reading)?;
        let mut comparison = Self {
            measure,
            equal: a.state != TextState::Empty && a.key == b.key,
            kept: in_a.len(),
            removed: in_b.len(),
            shared: similarity::intersection(&in_a, &in_b),
            jaccard: similarity::jaccard_index(&in_a, &in_b).get(),
            containment: similarity::containment_index(&in_a, &in_b).get(),
            cosine: similarity::cosine_similarity(&weighted_a, &weighted_b).get(),
            measured: match measure.descriptor().inputs {
                ComparedInputs::Sets(of_sets) => {
                    let shared = similarity::intersection(&in_a, &in_b);
                    let similarity = of_sets.similarity_of_sizes(shared, in_a.len(), in_b.len());
                    Some(similarity.get())
                }
                ComparedInputs::Weights(of_weights) => {
                    Some(of_weights(&weighted_a, &weighted_b).get())
                }
                ComparedInputs::Sequences(of_sequences) => {
                    similarity_of_sequences(of_sequences, unit, removal, &a, &b)?
                }
            },
            smallest: bottom_k_jaccard(&smallest_a, &smallest_b, recipe.minhash.slots as usize)
                .get(),
            equal_key: key_of_route(&removal.method).map(|key| {
                let in_kept = (key.key_of)(&a);
                (key, in_kept.is_some() && in_kept == (key.key_of)(&b))
            }),
            slots: equal_share(recipe, &a, &b),
            bits: equal_bits(recipe, &a, &b),
            form: FormComparison::between_texts(recipe, &kept.text, &removed.text),
            difference: FormDifference::between_texts(&a, &b),
        };
        // A run without a check of the features can be recognised only by its numbers.
        if args.verify.is_none() && comparison.fitting_measure(removal).is_none() {
            comparison.measure = SimilarityMeasure::Sketch;
        }
        Ok(comparison)
    }

    /// Returns the measure by which the record is right, if it is.
    fn fitting_measure(&self, removal: &RemovalRow) -> Option<String> {
        let (value, name) = if removal.method == "exact" || self.equal {
            (f64::from(u8::from(self.equal)), messages::by_equal_text())
        } else {
            match (self.measure, &removal.method[..]) {
                (SimilarityMeasure::Sketch, "minhash") => (self.slots?, messages::by_equal_slots()),
                (SimilarityMeasure::Sketch, "simhash") => (self.bits?, messages::by_equal_bits()),
                (SimilarityMeasure::Sketch, "bottomk") => {
                    (self.smallest, messages::by_smallest_hashes())
                }
                (measure, _) => match self.equal_key {
                    Some((key, is_same)) if measure == SimilarityMeasure::Sketch => {
                        let equality = translate_phrase(key.equality);
                        (f64::from(u8::from(is_same)), equality.into_owned())
                    }
                    _ => {
                        let noun = translate_phrase(measure.descriptor().noun);
                        (self.measured?, noun.into_owned())
                    }
                },
            }
        };
        ((value - removal.similarity?).abs() <= LARGEST_ROUNDING).then_some(name)
    }

    /// Returns the similarity by the measure, if it compares sequences.
    fn measured_sequences(&self) -> Option<f64> {
        self.measured
            .filter(|_| self.measure.sequence_measure().is_some())
    }

    fn describe_in_words(&self) -> String {
        if self.equal {
            return messages::texts_equal();
        }
        if self.kept == 0 || self.removed == 0 {
            return messages::texts_differ_short();
        }
        messages::features_shared(
            NounCount(self.shared as u64, CountedNoun::Feature),
            self.kept,
            self.removed,
            format_args!("{:.4}", self.jaccard),
            format_args!("{:.4}", self.containment),
        ) + &self.measured_sequences().map_or_else(String::new, |value| {
            messages::sequence_similarity(format_args!("{value:.4}"))
        })
    }
}

/// Largest number of characters of a value that is shown, unless whole texts are.
const SHOWN_VALUE: usize = 36;

/// Returns the frame of a form with its slots numbered, and the values of both documents.
fn describe_form(form: &FormComparison, full: bool, printer: &OutputPrinter) -> String {
    let heading = messages::form_and_slots(&escape_control(&form.name));
    let mut text = format!(
        "\n{}\n  {}\n",
        printer.paint_for_output(TextTone::Heading, &heading),
        spell_frame(&form.frame)
    );
    let shown = |value: &String| {
        let value = escape_control(value).replace(['\n', '\t'], " ");
        match value.char_indices().nth(SHOWN_VALUE) {
            Some((end, _)) if !full => format!("{}…", &value[..end]),
            _ => value,
        }
    };
    let slots = form
        .slots
        .iter()
        .map(|slot| slot.values.each_ref().map(shown));
    let slots: Vec<[String; 2]> = slots.collect();
    let in_kept = slots.iter().map(|[kept, _]| kept.width()).max();
    let width = in_kept.unwrap_or(0).max(messages::kept().width());
    let mut row = |label: &str, kept: &str, removed: &str| {
        let label = pad_to_width(label, 6);
        let row = format!("  {label} {}  {removed}", pad_to_width(kept, width));
        text.push_str(row.trim_end());
        text.push('\n');
    };
    row("", &messages::kept(), &messages::removed());
    for (number, ([kept, removed], slot)) in (1..).zip(slots.iter().zip(&form.slots)) {
        let mark = if slot.is_equal { "" } else { " *" };
        row(&format!("[{number}]{mark}"), kept, removed);
    }
    text
}

fn form_to_json(form: &FormComparison) -> Value {
    let slots = form.slots.iter().map(|slot| {
        let [kept, removed] = &slot.values;
        json!({ "kept": kept, "removed": removed, "equal": slot.is_equal })
    });
    json!({ "name": form.name, "frame": form.frame, "slots": slots.collect::<Vec<_>>() })
}

/// Returns the key by which candidates of a route are found, if they are found by one.
fn key_of_route(route: &str) -> Option<EqualKeySketch> {
    let mut keys = MatchMethod::ALL
        .into_iter()
        .filter_map(MatchMethod::equal_key);
    keys.find(|key| key.route.name() == route)
}

/// Returns the similarity of sequences, if it reaches the recorded threshold.
fn similarity_of_sequences(
    measure: SequenceMeasure,
    unit: EditUnit,
    removal: &RemovalRow,
    a: &TextAnalysis<'_>,
    b: &TextAnalysis<'_>,
) -> Result<Option<f64>> {
    let Some(threshold) = removal.threshold else {
        return Ok(None);
    };
    let threshold = Threshold::new(threshold)?;
    let found = match unit {
        EditUnit::Characters => measure.similarity(a.characters(), b.characters(), threshold)?,
        EditUnit::Words => measure.similarity(a.token_values(), b.token_values(), threshold)?,
    };
    Ok(found.map(|similarity| similarity.get()))
}

fn equal_share(recipe: &Recipe, a: &TextAnalysis<'_>, b: &TextAnalysis<'_>) -> Option<f64> {
    let hasher = MinHasher::new(&recipe.minhash, Cpu::detect_best());
    let sign = |analysis: &TextAnalysis<'_>| {
        let mut signature = vec![0; hasher.slot_count()];
        hasher
            .write_signature(analysis, &mut signature)
            .then_some(signature)
    };
    Some(equal_slots(&sign(a)?, &sign(b)?) as f64 / hasher.slot_count() as f64)
}

fn equal_bits(recipe: &Recipe, a: &TextAnalysis<'_>, b: &TextAnalysis<'_>) -> Option<f64> {
    let hasher = SimHasher::new(&recipe.simhash, Cpu::detect_best());
    let differing = (hasher.fingerprint(a)? ^ hasher.fingerprint(b)?).count_ones();
    let bits = recipe.simhash.bits;
    Some(f64::from(bits - differing) / f64::from(bits))
}

/// Inputs of the run in which a document was found that it did not remove.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KeptOrigin {
    /// Inputs from which the run removes documents.
    Inputs,
    /// Inputs of `--against`.
    Reference,
    /// The library: an earlier run kept the document.
    Library,
}

impl KeptOrigin {
    fn name(self) -> &'static str {
        match self {
            Self::Inputs => "inputs",
            Self::Reference => "against",
            Self::Library => "library",
        }
    }
}

/// A document that is not among the removed ones.
struct KeptDocument {
    origin: KeptOrigin,
    file: String,
    row: u64,
    /// The text as it is shown; `None` for a document of a library that stores no texts.
    text: Option<String>,
    /// Ids of the removed documents that name it.
    duplicates: Vec<String>,
    /// Numbers of texts that a person decided to be the same as its text and to be different from it.
    decided: [u64; 2],
}

impl KeptDocument {
    fn to_json(&self, args: &ExplainArgs) -> Value {
        let [same, different] = self.decided;
        json!({
            "id": args.document,
            "removed": false,
            "found_in": self.origin.name(),
            "duplicates": self.duplicates,
            "decisions": { "same": same, "different": different },
            "document": { "file": self.file, "row": self.row, "text": self.text },
        })
    }
}

/// A document of the inputs or of a library, before it is known what was decided about it.
struct FoundKept {
    origin: KeptOrigin,
    file: String,
    row: u64,
    content: Option<ContentHash>,
    shown_text: Option<String>,
}

impl FoundKept {
    fn from_inputs(origin: KeptOrigin, found: &FoundDocument) -> Self {
        Self {
            origin,
            file: found.file.clone(),
            row: found.row,
            content: Some(ContentHash::from_text(&found.text)),
            shown_text: Some(found.display_text()),
        }
    }

    fn from_library(library: &Path, stored: StoredDocument) -> Self {
        Self {
            origin: KeptOrigin::Library,
            file: library.display().to_string(),
            row: stored.row,
            content: stored.text.as_deref().map(ContentHash::from_text),
            shown_text: stored.text,
        }
    }
}

/// Finds a document that is not among the removed ones: in the inputs, else in those of `--against`, else in the library.
fn find_not_removed(
    args: &ExplainArgs,
    options: &ReadOptions,
    table: &RemovalTable,
) -> Result<KeptDocument> {
    let Some(found) = find_kept(args, options, table)? else {
        bail!(
            "the document {} is neither in {} nor in the inputs: give an id as it is in the table, \
             and the inputs of the dedup run with the same --id, --id-row and --format",
            escape_control(&args.document),
            args.removed.display()
        );
    };
    let mut decided = [0; 2];
    for decision in read_decisions(&args.decisions)? {
        let contents = [decision.a.content, decision.b.content].map(Some);
        if found.content.is_some() && contents.contains(&found.content) {
            decided[usize::from(decision.decision == PairDecision::Different)] += 1;
        }
    }
    let removals = table.removals.iter();
    Ok(KeptDocument {
        origin: found.origin,
        file: found.file,
        row: found.row,
        text: found.shown_text,
        decided,
        duplicates: removals.map(|removal| removal.id.clone()).collect(),
    })
}

fn find_kept(
    args: &ExplainArgs,
    options: &ReadOptions,
    table: &RemovalTable,
) -> Result<Option<FoundKept>> {
    let address = DocumentAddress::parse_address(&args.document);
    let is_wanted =
        |id: &str, source: &str, row: u64| id == args.document || address.is_place(source, row);
    for (origin, paths) in [
        (KeptOrigin::Inputs, &args.inputs),
        (KeptOrigin::Reference, &args.against),
    ] {
        let found = look_up_documents(paths, options, thread_count(args.threads), &[&is_wanted])?;
        let found = found.into_iter().next().unwrap_or_default();
        if let Some(found) = found.into_only_document(&args.document)? {
            return Ok(Some(FoundKept::from_inputs(origin, &found)));
        }
    }
    find_kept_in_library(args, options, table)
}

/// Looks for a kept document in the library of `--library`, and in those that the table names as its source.
fn find_kept_in_library(
    args: &ExplainArgs,
    options: &ReadOptions,
    table: &RemovalTable,
) -> Result<Option<FoundKept>> {
    let mut libraries: Vec<(PathBuf, &str, Option<u64>)> = Vec::new();
    let given = args.library.clone();
    libraries.extend(given.map(|library| (library, &*args.document, None)));
    for removal in &table.removals {
        if let Some(place) = &removal.kept_place {
            let library = args.library.clone();
            let library = library.unwrap_or_else(|| PathBuf::from(&place.source));
            libraries.push((library, &removal.kept, Some(place.row)));
        }
    }
    libraries.dedup();
    for (library, id, row) in libraries {
        if let Some(stored) = find_allowed(&library, id, row, options)? {
            return Ok(Some(FoundKept::from_library(&library, stored)));
        }
    }
    Ok(None)
}

/// Describes a document that is not among the removed ones.
fn describe_not_removed(kept: &KeptDocument, args: &ExplainArgs) -> String {
    let id = escape_control(&args.document);
    let place = messages::row_of(&kept.file, &kept.row.to_string());
    let place = escape_control(&place);
    let was_kept = match kept.origin {
        KeptOrigin::Inputs => messages::was_not_removed(&id, &place),
        KeptOrigin::Reference => messages::is_reference(&id, &place),
        KeptOrigin::Library => messages::is_in_library(&id, &place),
    };
    let mut text = was_kept + "\n";
    let for_it = &kept.duplicates;
    if for_it.is_empty() {
        text.push_str(&messages::nothing_removed_for_it());
    } else {
        let named = for_it[..for_it.len().min(NAMED_DUPLICATES)].join(", ");
        let more = if for_it.len() > NAMED_DUPLICATES {
            ", …"
        } else {
            ""
        };
        let documents = NounCount(for_it.len() as u64, CountedNoun::RemovedDocument).to_string();
        let named = format!("{}{more}", escape_control(&named));
        text.push_str(&messages::kept_for_others(&documents, &named));
    }
    text.push('\n');
    let [same, different] = kept.decided;
    if same + different > 0 {
        text.push_str(&messages::decisions_on_text(
            &format_count(same),
            &format_count(different),
        ));
        text.push('\n');
    }
    if kept.text.is_none() && !args.decisions.is_empty() {
        text.push_str(&messages::no_decisions_without_text());
        text.push('\n');
    }
    text
}
