//! The part of the audit that compares the contents of removed and kept documents, and not their similarity.
//!
//! Forms are learned from the clusters of the sampled removals. A removed document that is of a form with other values in its slots, or
//! that has another title or other numbers than the document that is kept, probably says something that is now nowhere.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use lookalike::compare::FormDifference;
use lookalike::forms::FormLearner;
use lookalike::text::{AnalysisScratch, TextAnalyzer};
use lookalike::{DocId, ErrorKind};
use lookalike_io::error::Result;
use lookalike_io::source::ParseScratch;
use rayon::prelude::*;
use serde::Serialize;

use crate::run::execution::audit::tallies::{EstimatedShare, RunningMean};
use crate::run::execution::run_corpus::RunCorpus;

/// Removed documents that are shown.
const SHOWN_EXAMPLES: usize = 10;

/// Name of the table of forms that the audit learns.
const AUDITED_FORMS: &str = "audited-forms.toml";

/// The sampled removals that have another title, other numbers or other values of a form than the kept document.
#[derive(Debug, Clone, Serialize)]
pub struct AuditedContents {
    /// `true` if the run compares forms itself.
    #[serde(skip)]
    pub run_compares_forms: bool,
    /// The share of the sampled removals that say something else, of those whose text is not equal.
    pub different: EstimatedShare,
    /// Some of them: one for each kept document, first those of which most were removed.
    pub examples: Vec<DifferentRemoval>,
}

/// A removed document that says something else than the kept one.
#[derive(Debug, Clone, Serialize)]
pub struct DifferentRemoval {
    /// Id of the removed document.
    pub removed: String,
    /// Id of the kept document.
    pub kept: String,
    /// Number of sampled removals of the same kept document that say something else.
    pub of_same: u64,
    /// Name of the reason: `form`, `title` or `numbers`.
    pub reason: &'static str,
    /// The difference as a phrase.
    pub difference: String,
}

/// A kept document with sampled documents that were removed because of it, as far as both have texts.
struct RemovalGroup {
    kept: DocId,
    /// The removed documents with what each says otherwise.
    removed: Vec<(DocId, Option<FormDifference>)>,
}

impl RemovalGroup {
    fn count_different(&self) -> u64 {
        let different = self.removed.iter().filter(|(_, found)| found.is_some());
        different.count() as u64
    }
}

/// Compares the texts of removals, each with the document that is kept, by a recipe with the forms of `groups`: kept
/// documents, each with those that were removed because of it. `pairs` has the removed document first. Returns `None` if the recipe is that of another tool, or if there are no texts.
///
/// # Errors
/// If a text cannot be read again.
pub(super) fn compare_contents(
    corpus: &RunCorpus<'_>,
    pairs: &[(DocId, DocId)],
    groups: &[Vec<DocId>],
) -> Result<Option<AuditedContents>> {
    let recipe = corpus.run_recipe().clone().without_forms();
    let table = FormLearner::new(&recipe).learn_table(corpus, groups)?;
    let mut groups: BTreeMap<DocId, Vec<DocId>> = BTreeMap::new();
    for &(removed, kept) in pairs {
        groups
            .entry(kept)
            .or_insert_with(|| vec![kept])
            .push(removed);
    }
    let groups: Vec<Vec<DocId>> = groups.into_values().collect();
    let recipe = match recipe.with_forms(AUDITED_FORMS, &table) {
        Ok(recipe) => recipe,
        Err(error) if error.kind() == ErrorKind::Recipe => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let analyzer = TextAnalyzer::new(&recipe);
    let compared = groups
        .par_iter()
        .map(|group| compare_group(corpus, &analyzer, group));
    let compared = compared.collect::<Result<Vec<RemovalGroup>>>()?;
    let has_texts = compared.iter().any(|group| !group.removed.is_empty());
    if !has_texts && !pairs.is_empty() {
        return Ok(None);
    }
    report_groups(corpus, compared).map(Some)
}

fn compare_group(
    corpus: &RunCorpus<'_>,
    analyzer: &TextAnalyzer,
    group: &[DocId],
) -> Result<RemovalGroup> {
    let mut parse = ParseScratch::default();
    let [mut of_kept, mut of_removed] = [(); 2].map(|()| AnalysisScratch::default());
    let mut compared = RemovalGroup {
        kept: group[0],
        removed: Vec::new(),
    };
    let Some(kept_text) = corpus.reread_text(group[0], &mut parse)? else {
        return Ok(compared);
    };
    let kept = analyzer.analyze_text(&kept_text, &mut of_kept);
    for &document in &group[1..] {
        let Some(text) = corpus.reread_text(document, &mut parse)? else {
            continue;
        };
        let analysis = analyzer.analyze_text(&text, &mut of_removed);
        let difference = FormDifference::between_texts(&analysis, &kept);
        compared.removed.push((document, difference));
    }
    Ok(compared)
}

fn report_groups(corpus: &RunCorpus<'_>, mut groups: Vec<RemovalGroup>) -> Result<AuditedContents> {
    let mut different = RunningMean::default();
    for (_, found) in groups.iter().flat_map(|group| &group.removed) {
        different.add_share(u64::from(found.is_some()), 1);
    }
    // The sort is stable, so equal groups stay in the order of their kept documents.
    groups.sort_by_key(|group| Reverse(group.count_different()));
    let mut examples = Vec::new();
    for group in groups.iter().take(SHOWN_EXAMPLES) {
        let found = group.removed.iter();
        let mut found = found.filter_map(|(document, found)| Some((*document, found.as_ref()?)));
        let Some((document, difference)) = found.next() else {
            break;
        };
        examples.push(DifferentRemoval {
            removed: corpus.document_id(document)?.into_owned(),
            kept: corpus.document_id(group.kept)?.into_owned(),
            of_same: group.count_different(),
            reason: difference.reason_name(),
            difference: difference.to_string(),
        });
    }
    Ok(AuditedContents {
        run_compares_forms: corpus.plan.compares_forms(),
        different: different.to_share(),
        examples,
    })
}
