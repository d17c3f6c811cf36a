//! The kept document that is most similar to a text that matches none.
//!
//! Buckets lead to pairs at the threshold only, so texts are compared with the one that is asked about. Of a collection with
//! at most [`MAX_COMPARED`] kept documents all are compared: then the answer is exact. Of a larger one those are compared that
//! share grams with the text, first those that share most, as the search for passages finds them.
//!
//! Texts of fewer than twelve words have no grams, so nothing is found for them in a larger one.
//!
//! Bounds: [`MAX_COMPARED`] documents and [`MAX_COMPARED_BYTES`] of their texts; sequences also take steps of the request.
//! The answer says how many documents were compared, and if they were all.

use std::collections::HashSet;
use std::sync::Arc;

use lookalike::plan::{ComparedInputs, EditUnit};
use lookalike::similarity::{WeightedFeature, intersection};
use lookalike::text::{AnalysisExtras, AnalysisScratch, TextAnalysis, TextAnalyzer, TextState};
use lookalike::{Similarity, Threshold};
use lookalike_store::{
    CollectionContent, CollectionSettings, DocumentContent, DocumentSelection, StoredVerdict,
};

use crate::api::problem::{ApiProblem, ProblemCode};
use crate::api::text_work::TextAllowance;
use crate::collections::open_collection::OpenCollection;
use crate::service::ServiceState;

/// Kept documents that are compared with a text.
pub(crate) const MAX_COMPARED: usize = 2000;

/// Bytes of kept texts after which no further one is compared.
const MAX_COMPARED_BYTES: usize = 16 << 20;

/// Kept documents that are listed at a time, and pages after which the others stay unknown: some million documents, of which
/// nearly all are duplicates.
const LISTED_AT_A_TIME: usize = 1000;
const MAX_PAGES: usize = 64;

/// Cells of the comparison of two sequences that take one step, because their bits are computed together.
const CELLS_OF_STEP: u64 = 64;

/// A kept document and its similarity to a text.
#[derive(Debug)]
pub(crate) struct NearestDocument {
    pub(crate) id: String,
    pub(crate) seq: u64,
    pub(crate) similarity: Similarity,
}

/// The result of a search.
#[derive(Debug, Default)]
pub(crate) struct NearestSearch {
    /// The most similar kept document; the earliest of several. `None` if none of those compared shares anything.
    pub(crate) document: Option<NearestDocument>,
    /// Number of kept documents that were compared.
    pub(crate) considered: usize,
    /// `true` if these are all kept documents.
    pub(crate) is_complete: bool,
}

impl NearestSearch {
    /// Takes a document if it is more similar than the one before, or as similar and earlier. One that shares nothing is not
    /// taken.
    fn offer_document(&mut self, found: NearestDocument) {
        let similarity = found.similarity.get();
        let is_nearer = self.document.as_ref().is_none_or(|known| {
            let best = known.similarity.get();
            similarity > best || (similarity == best && found.seq < known.seq)
        });
        if similarity > 0.0 && is_nearer {
            self.document = Some(found);
        }
    }
}

/// Finds the kept document that is most similar to a text by the measure of the collection, without the one with the id
/// `without`. With the measure `none` it is the most similar by the Jaccard index.
///
/// # Errors
/// If the collection holds no texts, a file is damaged, or the client has disconnected.
pub(crate) fn find_nearest(
    service: &Arc<ServiceState>,
    open: &Arc<OpenCollection>,
    text: &str,
    without: Option<&str>,
    allowance: &mut TextAllowance,
) -> Result<NearestSearch, ApiProblem> {
    let settings = open.collection.collection_settings();
    if settings.holds != CollectionContent::Texts {
        let detail = format!(
            "the collection '{}' holds fingerprints without texts, of which no nearest one is searched for: leave \
             `nearest` out",
            open.name
        );
        return Err(ApiProblem::new(ProblemCode::BadSettings, detail));
    }
    let kept = open.collection.visit_kept(|kept| kept.count());
    let kept = kept.map_err(|error| open.to_problem(error))?;
    // Documents that share most come first, because the texts of a few thousand documents can exceed the bound.
    let mut seqs = rank_candidates(service, open, text, allowance)?;
    let mut are_all = false;
    if kept <= MAX_COMPARED as u64 {
        let listed;
        (listed, are_all) = list_kept(open, allowance)?;
        let ranked: HashSet<u64> = seqs.iter().copied().collect();
        seqs.extend(listed.into_iter().filter(|seq| !ranked.contains(seq)));
    }
    let mut search = compare_all(open, &settings, text, without, &seqs, allowance)?;
    search.is_complete &= are_all;
    Ok(search)
}

/// Returns the sequence numbers of the kept documents that share grams with a text, first those that share most. There are
/// none while the index is being made, which the answer shows by the number of compared documents.
fn rank_candidates(
    service: &Arc<ServiceState>,
    open: &Arc<OpenCollection>,
    text: &str,
    allowance: &mut TextAllowance,
) -> Result<Vec<u64>, ApiProblem> {
    let ranked = open
        .passages
        .rank_candidates(service, open, text, allowance);
    ranked.or_else(|problem| match problem.code {
        ProblemCode::PassagesNotReady | ProblemCode::PassageMemory | ProblemCode::TooCostly => {
            Ok(Vec::new())
        }
        _ => Err(problem),
    })
}

/// Returns the sequence numbers of kept documents in their order, and `true` if these are all.
fn list_kept(
    open: &OpenCollection,
    allowance: &TextAllowance,
) -> Result<(Vec<u64>, bool), ApiProblem> {
    let selection = DocumentSelection {
        count: LISTED_AT_A_TIME,
        has_texts: false,
        accepts: &|answer, _| matches!(answer.verdict, StoredVerdict::Kept),
    };
    let (mut seqs, mut after) = (Vec::new(), 0);
    for _ in 0..MAX_PAGES {
        allowance.check_client()?;
        let page = open.collection.list_documents(after, &selection);
        let page = page.map_err(|error| open.to_problem(error))?;
        seqs.extend(page.documents.iter().filter_map(|listed| listed.answer.seq));
        match page.continue_after {
            Some(last) => after = last,
            None => return Ok((seqs, true)),
        }
    }
    Ok((seqs, false))
}

fn compare_all(
    open: &OpenCollection,
    settings: &CollectionSettings,
    text: &str,
    without: Option<&str>,
    seqs: &[u64],
    allowance: &mut TextAllowance,
) -> Result<NearestSearch, ApiProblem> {
    let comparer = TextComparer::new(settings);
    let asked = comparer.read_text(text);
    let mut search = NearestSearch::default();
    let mut bytes = 0;
    for &seq in seqs {
        allowance.check_client()?;
        if search.considered == MAX_COMPARED || bytes >= MAX_COMPARED_BYTES {
            return Ok(search);
        }
        let stored = open.collection.find_kept(seq);
        let stored = stored.map_err(|error| open.to_problem(error))?;
        let Some(stored) = stored.filter(|stored| Some(&*stored.answer.id) != without) else {
            continue;
        };
        let meta_bytes = stored.meta.as_ref().map_or(0, String::len);
        let DocumentContent::Text(kept) = stored.content else {
            continue;
        };
        bytes += kept.len();
        allowance.hold_memory(text.len() + kept.len() + meta_bytes, 0)?;
        let kept = comparer.read_text(&kept);
        if allowance
            .budget
            .take_steps(comparer.count_steps(&asked, &kept))
            .is_err()
        {
            return Ok(search);
        }
        search.considered += 1;
        let least = search.document.as_ref();
        let least = least.map_or(0.0, |nearest| nearest.similarity.get());
        let Some(similarity) = comparer.measure_texts(&asked, &kept, least) else {
            continue;
        };
        let found = NearestDocument {
            id: stored.answer.id,
            seq,
            similarity,
        };
        search.offer_document(found);
    }
    search.is_complete = true;
    Ok(search)
}

/// Compares texts by the measure of a collection, whatever their similarity is.
struct TextComparer {
    analyzer: TextAnalyzer,
    inputs: ComparedInputs,
    unit: EditUnit,
}

/// Parts of a text that the measure compares. All lists are empty for a text without features.
#[derive(Default)]
struct ComparedText {
    features: Vec<u64>,
    weighted: Vec<WeightedFeature>,
    /// Characters or words.
    symbols: Vec<u64>,
}

impl TextComparer {
    fn new(settings: &CollectionSettings) -> Self {
        let inputs = settings.matching.measure.descriptor().inputs;
        let unit = settings.matching.unit;
        let extras = AnalysisExtras {
            characters: matches!(inputs, ComparedInputs::Sequences(_))
                && unit == EditUnit::Characters,
            sentences: None,
        };
        Self {
            analyzer: TextAnalyzer::new(&settings.recipe).with_extras(extras),
            inputs,
            unit,
        }
    }

    fn read_text(&self, text: &str) -> ComparedText {
        let mut scratch = AnalysisScratch::default();
        let analysis = self.analyzer.analyze_text(text, &mut scratch);
        if analysis.state == TextState::Fingerprintable {
            self.read_analysis(&analysis)
        } else {
            ComparedText::default()
        }
    }

    fn read_analysis(&self, analysis: &TextAnalysis<'_>) -> ComparedText {
        let mut read = ComparedText::default();
        match self.inputs {
            ComparedInputs::Sets(_) => analysis.append_features(&mut read.features),
            ComparedInputs::Weights(_) => analysis.weighted_features(&mut read.weighted),
            ComparedInputs::Sequences(_) => match self.unit {
                EditUnit::Characters => {
                    let characters = analysis.characters().iter().copied();
                    read.symbols.extend(characters.map(u64::from));
                }
                EditUnit::Words => read.symbols.extend_from_slice(analysis.token_values()),
            },
        }
        read
    }

    /// Returns the steps of comparing two texts: that of reading both, and of sequences that of their cells.
    fn count_steps(&self, a: &ComparedText, b: &ComparedText) -> u64 {
        let read = a.features.len() + b.features.len() + a.weighted.len() + b.weighted.len();
        let cells = a.symbols.len() as u64 * b.symbols.len() as u64;
        read as u64 + cells / CELLS_OF_STEP
    }

    /// Returns the similarity of two texts, unless it is below `least` or sequences are too long to be compared.
    fn measure_texts(&self, a: &ComparedText, b: &ComparedText, least: f64) -> Option<Similarity> {
        match self.inputs {
            ComparedInputs::Sets(measure) => {
                let (in_a, in_b) = (a.features.len(), b.features.len());
                let shared = intersection(&a.features, &b.features);
                (shared > 0).then(|| measure.similarity_of_sizes(shared, in_a, in_b))
            }
            ComparedInputs::Weights(measure) => Some(measure(&a.weighted, &b.weighted)),
            ComparedInputs::Sequences(measure) => {
                let least = Threshold::new(least.max(f64::MIN_POSITIVE)).ok()?;
                measure.similarity(&a.symbols, &b.symbols, least).ok()?
            }
        }
    }
}
