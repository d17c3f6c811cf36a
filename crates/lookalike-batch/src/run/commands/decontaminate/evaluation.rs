//! Findings in a planted corpus against what was planted, as two tables.
//!
//! A finding is *right* if its document was planted with its item. Any other finding in a planted document is *wrong*,
//! unless the document from which the planted one was made has it, too: it was there before. Findings in documents that
//! were not planted are only counted, because they may be real.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::Instant;

use lookalike_io::error::{Error, Result};
use lookalike_io::source::{
    FieldValue, IdField, InputRow, InputSet, ReadOptions, WantedFields, shortest_digits,
};
use serde::Serialize;

use crate::run::commands::labelled::{
    as_written, is_tsv, refuse_nothing, text_of_field, visit_label_rows,
};
use crate::run::commands::plant_contamination::{is_held_out_form, list_form_names};
use crate::run::progress::ProgressListener;

/// Words and single characters below which a question is short: a run of 13 words, by which others search, is longer.
const SHORT_WORDS: u64 = 13;

/// A table of findings and a table of planted documents.
#[derive(Debug, Clone)]
pub struct ContaminationFiles {
    /// The findings: `id, benchmark, item`; may have no rows.
    pub findings: PathBuf,
    /// The planted documents: `document, host, benchmark, item, form, label, words`.
    pub truth: PathBuf,
    /// Options of reading: encoding and format.
    pub read: ReadOptions,
    /// Number of threads, from 1.
    pub threads: usize,
}

/// The agreement of findings with what was planted.
#[derive(Debug, Clone, Serialize)]
pub struct ContaminationEvaluation {
    /// Planted documents with an item.
    pub planted: u64,
    /// Planted documents with a decoy.
    pub decoys: u64,
    /// Findings in planted documents that name the planted item.
    pub right: u64,
    /// Other findings in planted documents.
    pub wrong: u64,
    /// Other findings in planted documents that are also findings of the documents from which these were made. They count
    /// neither as right nor as wrong.
    pub in_hosts: u64,
    /// Findings in documents that were not planted.
    pub in_other_documents: u64,
    /// The share of right findings among right and wrong ones; `None` if there are none.
    pub precision: Option<f64>,
    /// The share of planted items that are found; `None` if none was planted.
    pub recall: Option<f64>,
    /// The planted items by form.
    pub forms: Vec<FormRecall>,
    /// The decoys by kind.
    pub decoy_kinds: Vec<DecoyFindings>,
    /// Duration in seconds.
    pub seconds: f64,
}

/// The items that were planted in one form, and how many are found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FormRecall {
    /// Name of the form.
    pub form: String,
    /// Planted items.
    pub planted: u64,
    /// Items of these that are found.
    pub found: u64,
    /// The share of these.
    pub recall: f64,
    /// Planted items whose question has fewer than 13 words and single characters.
    pub short: u64,
    /// Items of these that are found.
    pub short_found: u64,
    /// The share of these; `None` if there are no short ones.
    pub short_recall: Option<f64>,
}

/// The decoys of one kind, and how many have a wrong finding.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DecoyFindings {
    /// Name of the kind.
    pub form: String,
    /// Documents with a decoy.
    pub planted: u64,
    /// Documents of these with a wrong finding.
    pub wrong: u64,
    /// The share of these.
    pub share: f64,
}

/// Scores findings against what was planted.
///
/// # Errors
/// If a table cannot be read, if nothing was planted, if a row lacks a column or a document is planted twice, and if the
/// findings are of other benchmarks or of held-out items.
pub fn evaluate_contamination(
    files: &ContaminationFiles,
    progress: &dyn ProgressListener,
) -> Result<ContaminationEvaluation> {
    crate::threads::run_in_pool(files.threads, || {
        let started = Instant::now();
        let truth = open_table(&files.truth, "document", &TRUTH_FIELDS, &files.read)?;
        let findings = open_table(&files.findings, "id", &ITEM_FIELDS, &files.read)?;
        let in_tsv = [&truth, &findings]
            .iter()
            .any(|side| side.input_files().iter().any(is_tsv));
        let truth = PlantedTruth::read(&truth, in_tsv, progress)?;
        let findings = read_findings(&findings, in_tsv, progress)?;
        truth.check_findings(&findings, files)?;
        let mut evaluation = truth.score_findings(&findings);
        evaluation.seconds = started.elapsed().as_secs_f64();
        Ok(evaluation)
    })
}

/// The columns that name an item.
const ITEM_FIELDS: [&str; 2] = ["benchmark", "item"];

/// The columns of the planted documents but the first.
const TRUTH_FIELDS: [&str; 6] = ["benchmark", "item", "host", "form", "label", "words"];

fn open_table(path: &Path, id: &str, fields: &[&str], read: &ReadOptions) -> Result<InputSet> {
    InputSet::open_paths(
        &[path.to_path_buf()],
        &ReadOptions {
            again: false,
            fields: WantedFields {
                text: Vec::new(),
                id: IdField::Named(id.to_owned()),
                extra: fields.iter().map(|&field| field.to_owned()).collect(),
                ..WantedFields::default()
            },
            ..read.clone()
        },
    )
}

/// An item: the name of its benchmark, and its id.
type ItemName = (String, String);

/// A document with something planted.
#[derive(Debug, Clone)]
struct PlantedDocument {
    item: ItemName,
    host: String,
    form: String,
    has_item: bool,
    is_short: bool,
}

/// A finding: the document and the item.
type ContaminationFinding = (String, ItemName);

/// The planted documents, as the table of the truth has them.
struct PlantedTruth {
    documents: HashMap<String, PlantedDocument>,
}

impl PlantedTruth {
    fn read(inputs: &InputSet, in_tsv: bool, progress: &dyn ProgressListener) -> Result<Self> {
        let mut documents = HashMap::new();
        visit_label_rows(
            inputs,
            progress,
            |row| parse_planted(row, in_tsv),
            |(document, planted), at| {
                if documents.contains_key(&document) {
                    let reason = format!("the document '{document}' has an earlier row");
                    return Err(at.error_at_row(inputs, &reason));
                }
                documents.insert(document, planted);
                Ok(())
            },
        )?;
        refuse_nothing(inputs, documents.len() as u64)?;
        Ok(Self { documents })
    }

    /// Refuses findings of a search that was not for the indexed items.
    fn check_findings(
        &self,
        findings: &[ContaminationFinding],
        files: &ContaminationFiles,
    ) -> Result<()> {
        let (truth, table) = (files.truth.display(), files.findings.display());
        let planted = self.documents.values();
        let held_out: HashSet<&ItemName> = planted
            .filter(|planted| is_held_out_form(&planted.form))
            .map(|planted| &planted.item)
            .collect();
        if let Some((_, (benchmark, item))) =
            findings.iter().find(|(_, item)| held_out.contains(item))
        {
            return Err(Error::usage_error(format!(
                "{table} has a finding of the item '{item}' of {benchmark}, which {truth} holds out: search for the \
                 indexed items alone, which are in the file that `plant --indexed` wrote"
            )));
        }
        let known: HashSet<&str> = self
            .documents
            .values()
            .map(|planted| &*planted.item.0)
            .collect();
        let Some((_, (benchmark, _))) = findings.first() else {
            return Ok(());
        };
        if findings
            .iter()
            .any(|(_, (benchmark, _))| known.contains(&**benchmark))
        {
            return Ok(());
        }
        Err(Error::usage_error(format!(
            "no finding of {table} is of a benchmark of {truth}; the first is of {benchmark}: search for the items in the \
             file that `plant --indexed` wrote"
        )))
    }

    fn score_findings(&self, findings: &[ContaminationFinding]) -> ContaminationEvaluation {
        let known: HashSet<(&str, &ItemName)> = findings
            .iter()
            .map(|(document, item)| (&**document, item))
            .collect();
        let mut counts = FindingCounts::default();
        let mut found: HashSet<&str> = HashSet::new();
        let mut wrong: HashSet<&str> = HashSet::new();
        for &(document, item) in &known {
            let Some(planted) = self.documents.get(document) else {
                counts.in_other_documents += 1;
                continue;
            };
            if planted.has_item && planted.item == *item {
                counts.right += 1;
                found.insert(document);
            } else if known.contains(&(&planted.host, item)) {
                counts.in_hosts += 1;
            } else {
                counts.wrong += 1;
                wrong.insert(document);
            }
        }
        let mut forms: BTreeMap<FormOrder<'_>, [u64; 4]> = BTreeMap::new();
        let mut decoys: BTreeMap<FormOrder<'_>, [u64; 2]> = BTreeMap::new();
        let names = list_form_names();
        for (document, planted) in &self.documents {
            let place = names.iter().position(|name| *name == planted.form);
            let order = FormOrder(place.unwrap_or(names.len()), &planted.form);
            if planted.has_item {
                let is_found = u64::from(found.contains(&**document));
                let is_short = u64::from(planted.is_short);
                let row = forms.entry(order).or_default();
                for (count, more) in
                    row.iter_mut()
                        .zip([1, is_found, is_short, is_short * is_found])
                {
                    *count += more;
                }
            } else {
                let row = decoys.entry(order).or_default();
                row[0] += 1;
                row[1] += u64::from(wrong.contains(&**document));
            }
        }
        let planted = forms.values().map(|row| row[0]).sum();
        ContaminationEvaluation {
            planted,
            decoys: decoys.values().map(|row| row[0]).sum(),
            right: counts.right,
            wrong: counts.wrong,
            in_hosts: counts.in_hosts,
            in_other_documents: counts.in_other_documents,
            precision: share(counts.right, counts.right + counts.wrong),
            recall: share(counts.right, planted),
            forms: forms.iter().map(recall_of_form).collect(),
            decoy_kinds: decoys.iter().map(findings_of_decoys).collect(),
            seconds: 0.0,
        }
    }
}

/// Findings by what they are.
#[derive(Default)]
struct FindingCounts {
    right: u64,
    wrong: u64,
    in_hosts: u64,
    in_other_documents: u64,
}

/// A form: its place in reports, and its name.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct FormOrder<'a>(usize, &'a str);

fn recall_of_form(
    (form, &[planted, found, short, short_found]): (&FormOrder<'_>, &[u64; 4]),
) -> FormRecall {
    FormRecall {
        form: form.1.to_owned(),
        planted,
        found,
        recall: share(found, planted).unwrap_or_default(),
        short,
        short_found,
        short_recall: share(short_found, short),
    }
}

fn findings_of_decoys((form, &[planted, wrong]): (&FormOrder<'_>, &[u64; 2])) -> DecoyFindings {
    DecoyFindings {
        form: form.1.to_owned(),
        planted,
        wrong,
        share: share(wrong, planted).unwrap_or_default(),
    }
}

fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

fn read_findings(
    inputs: &InputSet,
    in_tsv: bool,
    progress: &dyn ProgressListener,
) -> Result<Vec<ContaminationFinding>> {
    let mut findings = Vec::new();
    visit_label_rows(
        inputs,
        progress,
        |row| {
            let document = as_written(row.id.unwrap_or_default(), in_tsv).into_owned();
            Ok((document, parse_item(row, in_tsv)?))
        },
        |finding, _| {
            findings.push(finding);
            Ok(())
        },
    )?;
    Ok(findings)
}

fn parse_planted(row: &InputRow<'_>, in_tsv: bool) -> Result<(String, PlantedDocument), String> {
    let name = |at: usize| parse_name(TRUTH_FIELDS[at], row.extra[at], in_tsv);
    let label = name(4)?;
    let words = name(5)?;
    let words: u64 = words
        .parse()
        .map_err(|_| format!("the field `words` is {words}, not a whole number from 0"))?;
    let planted = PlantedDocument {
        item: parse_item(row, in_tsv)?,
        host: name(2)?,
        form: name(3)?,
        has_item: match &*label {
            "1" => true,
            "0" => false,
            other => {
                return Err(format!(
                    "the field `label` is {other}: give 1 for an item and 0 for a decoy"
                ));
            }
        },
        is_short: words < SHORT_WORDS,
    };
    let document = as_written(row.id.unwrap_or_default(), in_tsv).into_owned();
    Ok((document, planted))
}

/// Returns the item of a row, whose first two extra fields name it.
fn parse_item(row: &InputRow<'_>, in_tsv: bool) -> Result<ItemName, String> {
    let name = |at: usize| parse_name(ITEM_FIELDS[at], row.extra[at], in_tsv);
    Ok((name(0)?, name(1)?))
}

fn parse_name(field: &str, value: FieldValue<'_>, in_tsv: bool) -> Result<String, String> {
    let text = match value {
        FieldValue::Number { literal, .. } => shortest_digits(literal),
        value => text_of_field(field, value)?.into(),
    };
    Ok(as_written(&text, in_tsv).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planted(item: &str, form: &str, has_item: bool, is_short: bool) -> PlantedDocument {
        PlantedDocument {
            item: ("b".to_owned(), item.to_owned()),
            host: "h".to_owned(),
            form: form.to_owned(),
            has_item,
            is_short,
        }
    }

    fn finding(document: &str, item: &str) -> ContaminationFinding {
        (document.to_owned(), ("b".to_owned(), item.to_owned()))
    }

    #[test]
    fn findings_are_right_wrong_or_there_before() {
        let documents = [
            ("h#1", planted("1", "verbatim", true, true)),
            ("h#2", planted("2", "verbatim", true, false)),
            ("h#3", planted("1", "latex", true, true)),
            ("h#4", planted("1", "same-topic", false, true)),
            ("h#5", planted("9", "same-series", false, false)),
        ];
        let documents = documents.map(|(id, planted)| (id.to_owned(), planted));
        let truth = PlantedTruth {
            documents: documents.into_iter().collect(),
        };
        let findings = [
            finding("h#1", "1"),
            // A repeated row counts once.
            finding("h#1", "1"),
            // Wrong beside the right one, in a document of another item, and in a decoy.
            finding("h#1", "2"),
            finding("h#2", "1"),
            finding("h#4", "1"),
            // The host has it, too.
            finding("h", "7"),
            finding("h#5", "7"),
            finding("z", "3"),
        ];
        let scored = truth.score_findings(&findings);
        assert_eq!(
            [scored.planted, scored.decoys, scored.right, scored.wrong],
            [3, 2, 1, 3]
        );
        assert_eq!([scored.in_hosts, scored.in_other_documents], [1, 2]);
        assert_eq!(scored.precision, Some(0.25));
        let [verbatim, latex] = &scored.forms[..] else {
            panic!("{:?}", scored.forms);
        };
        assert_eq!(
            (verbatim.planted, verbatim.found, verbatim.short),
            (2, 1, 1)
        );
        assert_eq!(verbatim.short_recall, Some(1.0));
        assert_eq!((latex.found, latex.recall), (0, 0.0));
        let decoys: Vec<_> = scored.decoy_kinds.iter().map(|kind| kind.wrong).collect();
        assert_eq!(decoys, [1, 0]);
    }
}
