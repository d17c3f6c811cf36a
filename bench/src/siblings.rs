//! Documents of one template that are slightly less similar than the threshold. All of them are
//! kept, and the time must not grow with the square of their number.
//!
//! The answer is checked in the short form, against the verdicts of the oracle.

use anyhow::{Result, ensure};
use lookalike::Threshold;
use lookalike_oracle::{OracleVerdict, all_pairs, generate, verdicts_from_pairs};
use serde::Serialize;

use crate::corpora::Corpus;
use crate::{dedup, machine};

#[derive(Serialize)]
struct Row {
    words: usize,
    /// Percentage of words that are the document's own.
    own: u32,
    places: &'static str,
    templates: usize,
    method: &'static str,
    documents: u64,
    kept: u64,
    #[serde(serialize_with = "machine::rounded")]
    seconds: f64,
    #[serde(serialize_with = "machine::rounded")]
    microseconds_a_document: f64,
}

/// Positions of the words that are the document's own.
#[derive(Clone, Copy)]
enum Places {
    Own,
    Same,
}

impl Places {
    fn name(self) -> &'static str {
        match self {
            Self::Own => "anywhere",
            Self::Same => "the same in all",
        }
    }
}

/// Documents of some templates.
#[derive(Clone, Copy)]
struct Template {
    words: usize,
    places: Places,
    /// Percentage of words that are the document's own.
    own: u32,
    /// Number of templates.
    templates: usize,
}

impl Template {
    const fn new(words: usize, places: Places, own: u32) -> Self {
        let templates = 1;
        Self {
            words,
            places,
            own,
            templates,
        }
    }

    const fn of(self, templates: usize) -> Self {
        Self { templates, ..self }
    }

    /// Returns documents of each template in turn.
    fn texts(self, documents: usize) -> Vec<(String, String)> {
        let make = match self.places {
            Places::Own => generate::generate_template,
            Places::Same => generate::generate_form,
        };
        let own = f64::from(self.own) / 100.0;
        let each = documents.div_ceil(self.templates);
        let of_one = |seed| make(each, self.words, seed, own);
        let made: Vec<_> = (11..).take(self.templates).map(of_one).collect();
        let mut texts = Vec::with_capacity(documents);
        for at in 0..documents {
            let (_, text) = &made[at % self.templates][at / self.templates];
            texts.push((at.to_string(), text.clone()));
        }
        texts
    }
}

const TEXT_TEMPLATES: [Template; 14] = [
    Template::new(60, Places::Own, 5),
    Template::new(60, Places::Own, 6),
    Template::new(100, Places::Own, 4),
    Template::new(100, Places::Own, 5),
    Template::new(100, Places::Own, 7),
    Template::new(100, Places::Own, 7).of(80),
    Template::new(100, Places::Own, 10),
    Template::new(100, Places::Same, 8),
    Template::new(100, Places::Same, 12),
    Template::new(1100, Places::Own, 4),
    Template::new(1100, Places::Own, 5),
    Template::new(1100, Places::Own, 6),
    Template::new(1100, Places::Own, 10),
    Template::new(1100, Places::Same, 10),
];

/// Measures on two threads.
pub fn run() -> Result<()> {
    let mut rows = Vec::new();
    for template in TEXT_TEMPLATES {
        for documents in [10_000, 20_000, 40_000] {
            rows.push(measure(template, "auto", documents, 2)?);
        }
    }
    for documents in [10_000, 20_000, 40_000] {
        rows.push(measure(TEXT_TEMPLATES[1], "bottomk", documents, 2)?);
    }
    machine::write("siblings", rows)
}

/// Number of documents in the short form, above the size at which a bucket may be refined (512).
const SHORT_FORM_DOCUMENTS: usize = 600;

/// Runs a short form, as a test.
pub fn smoke() -> Result<()> {
    for template in TEXT_TEMPLATES {
        let row = measure(template, "auto", SHORT_FORM_DOCUMENTS, 0)?;
        let made = template.texts(SHORT_FORM_DOCUMENTS);
        let texts: Vec<&str> = made.iter().map(|(_, text)| text.as_str()).collect();
        let pairs = all_pairs(&texts, 2, Threshold::DEFAULT.get());
        let order: Vec<usize> = (0..texts.len()).collect();
        let verdicts = verdicts_from_pairs(&order, 0, &pairs);
        let kept = verdicts
            .iter()
            .filter(|&verdict| *verdict == OracleVerdict::Kept)
            .count();
        ensure!(
            row.kept == kept as u64,
            "{} with {} words of {} their own kept, not {kept}",
            row.kept,
            row.own,
            row.words
        );
    }
    Ok(())
}

fn measure(template: Template, method: &'static str, documents: usize, rounds: u32) -> Result<Row> {
    let folder = tempfile::tempdir()?;
    let corpus = Corpus::from_documents("siblings", &template.texts(documents), folder.path())?;
    let run = dedup::best_by(method, &corpus.path, 2, Threshold::DEFAULT.get(), rounds)?;
    let row = Row {
        words: template.words,
        own: template.own,
        places: template.places.name(),
        templates: template.templates,
        method,
        documents: run.documents,
        kept: run.kept,
        seconds: run.seconds,
        microseconds_a_document: run.seconds * 1e6 / run.documents as f64,
    };
    println!(
        "{:4} words, {:2} % their own, {:16} {:2} templates {method:7} {documents:6} documents \
         {:6.3} s {:5.0} µs a document, kept {}",
        row.words,
        row.own,
        row.places,
        row.templates,
        row.seconds,
        row.microseconds_a_document,
        row.kept
    );
    Ok(row)
}
