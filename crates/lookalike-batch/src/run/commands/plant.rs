//! A labelled corpus made from a user's own documents: edited copies of some of them, the pairs that
//! were already similar, and a sample of pairs that are less similar. An exact join finds the similar
//! pairs, so that their labels are true.
//!
//! The outputs depend only on inputs and settings, not on the number of threads. Memory is that of a
//! run, plus the copies of a few hundred documents.

use std::collections::{BTreeMap, BinaryHeap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::Instant;

use lookalike::dedup::{self, DocumentSource, MatchingPair};
use lookalike::plan::{self, MatchMethod, MatchPlan};
use lookalike::quality::plant::{
    EditPlanter, NegativeCandidates, NegativeOptions, NegativePair, NegativeSampler, PlantedEdit,
    TextStock,
};
use lookalike::text::{AnalysisScratch, TextAnalyzer, TextState};
use lookalike::{DocId, Recipe, Similarity, Threshold, similarity};
use lookalike_io::error::{Error, Result, display_path};
use lookalike_io::sink::{OutputTarget, TableCell, TableColumn, TableWriter, check_output};
use lookalike_io::source::{InputFormat, InputSet, ParseScratch, ReadOptions, format_by_extension};
use rayon::prelude::*;
use serde::Serialize;

use crate::run::execution::run_corpus::RunCorpus;
use crate::run::execution::run_stages::{RunStorage, SketchedRun};
use crate::run::length_classes;
use crate::run::length_classes::length_class;
use crate::run::progress::{ProgressListener, RunStage};
use crate::run::reading::open_inputs::OpenInputs;
use crate::run::reading::rejected_rows::RejectedRows;
use crate::run::settings::{RunInputs, RunSettings};

/// Settings of a planted corpus.
#[derive(Debug, Clone)]
pub struct PlantSettings {
    /// Determines how texts become features.
    pub recipe: Recipe,
    /// Smallest similarity of near-duplicates.
    pub threshold: Threshold,
    /// Smallest similarity from which all pairs below the threshold are hard negatives; at most the
    /// threshold. Below it, negatives are sampled.
    pub near: Threshold,
    /// Number of documents to draw, from 1; all documents if there are fewer.
    pub documents: usize,
    /// Number of copies with a single edit per drawn document.
    pub copies: usize,
    /// Number of copies with two edits per drawn document, and also of copies with three.
    pub combined: usize,
    /// Number of drawn documents of which filled forms are made; at most that of the drawn documents.
    pub form_documents: usize,
    /// Number of filled forms of each of these.
    pub filled_forms: usize,
    /// The edits to choose from, at least one.
    pub edits: Vec<PlantedEdit>,
    /// Largest number of natural pairs, of hard negatives, and of sampled negatives. If there are more, a
    /// random sample is taken.
    pub pairs: usize,
    /// Seed of the documents, edits and pairs.
    pub seed: u64,
    /// Options of reading.
    pub read: ReadOptions,
    /// Number of threads, from 1.
    pub threads: usize,
    /// `true` to stop at the first bad row.
    pub strict: bool,
}

/// Outputs of a planted corpus.
#[derive(Debug, Clone)]
pub struct PlantOutputs {
    /// All documents and the edited copies: `id, text`.
    pub corpus: OutputTarget,
    /// Labelled pairs: `a, b, label, kind, edit_strength, edits, similarity`.
    pub labels: OutputTarget,
    /// The rejected rows, byte for byte.
    pub rejected: Option<OutputTarget>,
}

/// The result of planting.
#[derive(Debug, Clone, Serialize)]
pub struct PlantSummary {
    /// Documents read.
    pub documents: u64,
    /// Documents of which copies were made.
    pub sampled: u64,
    /// Edited copies written.
    pub copies: u64,
    /// Filled forms written, which share the frame of a document and have other values.
    pub filled_forms: u64,
    /// Repeats of these, under a header or before a footer.
    pub form_repeats: u64,
    /// Labelled pairs of documents that were already similar.
    pub natural: u64,
    /// Labelled pairs a little below the threshold.
    pub near_misses: u64,
    /// Labelled pairs farther below it that share a topic or a template.
    pub siblings: u64,
    /// Labelled pairs that have hardly anything in common.
    pub unrelated: u64,
    /// Rows that could not be used.
    pub rejected: u64,
    /// Bytes of input, after decompression.
    pub bytes: u64,
    /// Seconds from start to the last synced byte.
    pub seconds: f64,
    /// The string that only ids of copies contain: an id, the mark and a number form the id of a copy.
    pub mark: String,
    /// The seed.
    pub seed: u64,
    /// Smallest similarity of near-duplicates.
    pub threshold: f64,
    /// Name of the recipe.
    pub recipe: String,
    /// Identity of the recipe.
    pub recipe_id: String,
    /// The similarity between copies and originals, by kind of edit.
    pub effects: Vec<EditEffect>,
}

/// The similarity between copies with one kind of edit and their originals.
#[derive(Debug, Clone, Serialize)]
pub struct EditEffect {
    /// Name of the kind, or `two-edits`, `three-edits`, `filled-form`, `form-repeat`.
    pub kind: &'static str,
    /// The changed share of the text, if the kind has strengths.
    pub strength: Option<f64>,
    /// Drawn documents to which the edit was not applicable.
    pub not_applicable: u64,
    /// Copies of all lengths.
    pub all: RemainingSimilarity,
    /// Copies by the length of the original in tokens; classes without copies are left out.
    pub by_length: Vec<RemainingSimilarity>,
}

/// The similarity between some copies and their originals.
#[derive(Debug, Clone, Serialize)]
pub struct RemainingSimilarity {
    /// The length of the originals in tokens, such as `16-50`.
    pub length: &'static str,
    /// Number of copies.
    pub copies: u64,
    /// Mean similarity.
    pub mean: f64,
    /// The fifth percentile of the similarity.
    pub low: f64,
    /// The share of copies at or above the threshold.
    pub above: f64,
}

/// Number of documents from which edits take text.
pub(super) const STOCK_DOCUMENTS: usize = 1000;

/// Number of documents whose copies are made at a time.
pub(super) const DOCUMENTS_AT_ONCE: usize = 256;

/// Largest number of documents with which drawn ones are compared to sample negatives, so that the time
/// for it is bounded.
const MAX_COMPARED_DOCUMENTS: usize = 20_000;

/// Number of filled forms of a document for each repeat of one.
const FILLED_FORMS_PER_REPEAT: usize = 4;

/// Largest number of attempts to draw several edits that all apply to a document.
const MAX_DRAW_ATTEMPTS: usize = 8;

/// Writes a corpus of all documents and edited copies of some, and a table of labelled pairs.
///
/// # Errors
/// If something cannot be read or written, or if the settings contradict each other. The outputs are
/// then unchanged.
pub fn run_plant(
    paths: &[PathBuf],
    settings: &PlantSettings,
    outputs: &PlantOutputs,
    progress: &dyn ProgressListener,
) -> Result<PlantSummary> {
    crate::threads::run_in_pool(settings.threads, || {
        plant_corpus(paths, settings, outputs, progress)
    })
}

fn plant_corpus(
    paths: &[PathBuf],
    settings: &PlantSettings,
    outputs: &PlantOutputs,
    progress: &dyn ProgressListener,
) -> Result<PlantSummary> {
    let started = Instant::now();
    check_settings(settings, outputs)?;
    let joined = settings.join_settings();
    let plan = MatchPlan::new(&joined.recipe, joined.matching)?;
    let inputs = RunInputs {
        documents: paths.to_vec().into(),
        ..RunInputs::default()
    };
    let opened = OpenInputs::new(&inputs, &joined)?;
    let all = [&outputs.corpus, &outputs.labels];
    for output in all.into_iter().chain(&outputs.rejected) {
        check_output(output, &opened.documents)?;
    }
    let rejected = RejectedRows::create_output(outputs.rejected.as_ref())?;
    let reject = |inputs: &_, row: &_| rejected.push_rows(inputs, row);
    let storage = RunStorage::default();
    let corpus = SketchedRun::read(&opened, &joined, &plan, storage, &reject, progress)?.corpus;
    // Labels address documents by their ids.
    corpus.refuse_repeated_ids(&joined)?;
    let field = PlantContext::new(&corpus, &opened.documents, settings)?;
    let labels = field.label_natural(progress)?;
    let planted = field.write_corpus(labels, outputs, progress)?;
    Ok(PlantSummary {
        documents: corpus.documents.len() as u64,
        sampled: field.drawn.len() as u64,
        copies: planted.copies,
        filled_forms: planted.filled_forms,
        form_repeats: planted.form_repeats,
        natural: planted.natural,
        near_misses: planted.near_misses,
        siblings: planted.siblings,
        unrelated: planted.unrelated,
        rejected: rejected.finish_output()?,
        bytes: corpus.documents.bytes,
        seconds: started.elapsed().as_secs_f64(),
        mark: field.mark.clone(),
        seed: settings.seed,
        threshold: settings.threshold.get(),
        recipe: settings.recipe.name.clone(),
        recipe_id: settings.recipe.recipe_id().to_string(),
        effects: planted.effects,
    })
}

fn check_settings(settings: &PlantSettings, outputs: &PlantOutputs) -> Result<()> {
    if settings.near.get() > settings.threshold.get() {
        return Err(Error::usage_error(format!(
            "hard negatives from {} would be above the threshold {}: give a lower similarity",
            settings.near.get(),
            settings.threshold.get()
        )));
    }
    if settings.form_documents > settings.documents {
        return Err(Error::usage_error(format!(
            "filled forms are made of {} documents, but {} are drawn: draw more documents",
            settings.form_documents, settings.documents
        )));
    }
    check_corpus_output(&outputs.corpus)
}

/// Refuses a planted corpus in a format that changes texts.
pub(super) fn check_corpus_output(output: &OutputTarget) -> Result<()> {
    let OutputTarget::Path(path) = output else {
        return Err(Error::usage_error(
            "a planted corpus cannot go to standard output: give a file (.jsonl, .csv, .parquet or .arrow)",
        ));
    };
    if matches!(
        format_by_extension(path),
        Some(InputFormat::Jsonl | InputFormat::CSV | InputFormat::Parquet | InputFormat::Arrow)
    ) {
        return Ok(());
    }
    Err(Error::usage_error(format!(
        "{} cannot store every text unchanged: give the corpus the extension .jsonl, .csv, \
         .parquet or .arrow",
        display_path(Path::new(path))
    )))
}

impl PlantSettings {
    /// Returns the settings of the run that finds the pairs that are already similar.
    fn join_settings(&self) -> RunSettings {
        RunSettings {
            recipe: self.recipe.clone(),
            matching: plan::MatchSettings {
                method: MatchMethod::Join,
                threshold: self.near,
                ..plan::MatchSettings::default()
            },
            read: self.read.clone(),
            threads: self.threads,
            strict: self.strict,
            ..RunSettings::default()
        }
    }
}

/// The documents of a corpus and those drawn from it.
struct PlantContext<'a> {
    corpus: &'a RunCorpus<'a>,
    inputs: &'a InputSet,
    settings: &'a PlantSettings,
    analyzer: TextAnalyzer,
    planter: EditPlanter,
    /// The drawn documents in reading order.
    drawn: Vec<DocId>,
    /// The forms of which filled ones are made.
    form_documents: HashSet<DocId>,
    /// Documents with which these are compared to sample negatives: drawn ones and others.
    compared: Vec<DocId>,
    mark: String,
}

/// A random sample of pairs with a largest size: the pairs with the smallest numbers.
struct DrawnPairs {
    most: usize,
    /// Number, documents and bits of the similarity of each pair; the largest number is on top.
    pairs: BinaryHeap<(u64, u32, u32, u64)>,
}

impl DrawnPairs {
    fn new(most: usize) -> Self {
        let pairs = BinaryHeap::new();
        Self { most, pairs }
    }

    fn offer_pair(&mut self, number: u64, a: DocId, b: DocId, similarity: Similarity) {
        let similarity = similarity.get().to_bits();
        self.pairs.push((number, a.0, b.0, similarity));
        if self.pairs.len() > self.most {
            self.pairs.pop();
        }
    }

    fn len(&self) -> usize {
        self.pairs.len()
    }

    /// Returns the pairs in reading order.
    fn into_ordered(self) -> Vec<(DocId, DocId, f64)> {
        let pairs = self.pairs.into_iter();
        let mut pairs: Vec<_> = pairs
            .map(|(_, a, b, similarity)| (DocId(a), DocId(b), f64::from_bits(similarity)))
            .collect();
        pairs.sort_unstable_by_key(|&(a, b, _)| (a, b));
        pairs
    }
}

/// Pairs that were already similar.
struct NaturalPairs {
    duplicates: Vec<(DocId, DocId, f64)>,
    near_misses: Vec<(DocId, DocId, f64)>,
    /// Pairs below those.
    negatives: Vec<NegativePair>,
}

/// A kind of pairs that were there already.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NaturalKind {
    Duplicate,
    NearMiss,
    Sibling,
    Unrelated,
}

impl NaturalKind {
    fn name(self) -> &'static str {
        match self {
            Self::Duplicate => "natural",
            Self::NearMiss => "near-miss",
            Self::Sibling => "sibling",
            Self::Unrelated => "unrelated",
        }
    }
}

impl NaturalPairs {
    /// All pairs with their kinds.
    fn pairs(&self) -> impl Iterator<Item = (NaturalKind, DocId, DocId, f64)> {
        let of = |kind, pairs: &[(DocId, DocId, f64)]| -> Vec<_> {
            let pairs = pairs.iter();
            pairs
                .map(|&(a, b, similarity)| (kind, a, b, similarity))
                .collect()
        };
        let negatives = self.negatives.iter().map(|pair| {
            let kind = if pair.is_sibling() {
                NaturalKind::Sibling
            } else {
                NaturalKind::Unrelated
            };
            (kind, pair.a, pair.b, pair.similarity.get())
        });
        of(NaturalKind::Duplicate, &self.duplicates)
            .into_iter()
            .chain(of(NaturalKind::NearMiss, &self.near_misses))
            .chain(negatives)
    }

    fn count(&self, kind: NaturalKind) -> u64 {
        self.pairs().filter(|pair| pair.0 == kind).count() as u64
    }
}

/// The amount of output.
struct PlantedCorpus {
    copies: u64,
    filled_forms: u64,
    form_repeats: u64,
    natural: u64,
    near_misses: u64,
    siblings: u64,
    unrelated: u64,
    effects: Vec<EditEffect>,
}

/// A text that is made of a document, or of another copy of it.
struct EditedCopy {
    group: EditGroup,
    edits: Vec<PlantedEdit>,
    /// Number of the copy of which this is made, from 1; `None` if it is made of the document.
    origin: Option<usize>,
    text: String,
    /// Similarity to its origin.
    similarity: f64,
}

/// The copies of one document.
struct PlantedDocument {
    document: DocId,
    /// Length of the document in tokens.
    length: usize,
    copies: Vec<EditedCopy>,
    /// Edits that were not applicable.
    idle: Vec<PlantedEdit>,
}

impl<'a> PlantContext<'a> {
    fn new(
        corpus: &'a RunCorpus<'a>,
        inputs: &'a InputSet,
        settings: &'a PlantSettings,
    ) -> Result<Self> {
        let empty = EditPlanter::new(settings.seed, TextStock::default());
        let mut ranked = Vec::new();
        let mut mark = 0;
        for document in (0..corpus.len()).map(|at| DocId(at as u32)) {
            let id = corpus.document_id(document)?;
            mark = mark.max(longest_run(&id));
            if corpus.sketches.text_state(document) != TextState::Empty {
                ranked.push((empty.document_rank(&id), document));
            }
        }
        if ranked.is_empty() {
            return Err(Error::input_error(
                "there is no document with a text to plant edits in",
            ));
        }
        ranked.sort_unstable();
        let mut field = Self {
            corpus,
            inputs,
            settings,
            analyzer: TextAnalyzer::new(&settings.recipe),
            planter: empty,
            drawn: Vec::new(),
            form_documents: HashSet::new(),
            compared: Vec::new(),
            mark: COPY_MARK.to_string().repeat(mark + 1),
        };
        let stock: Vec<_> = ranked
            .iter()
            .take(STOCK_DOCUMENTS)
            .map(|&(_, document)| document)
            .collect();
        let stock = field.read_texts(&stock)?;
        field.planter = EditPlanter::new(
            settings.seed,
            TextStock::new(stock.iter().map(String::as_str)),
        );
        let drawn = ranked.iter().take(settings.documents);
        field.drawn = drawn.map(|&(_, document)| document).collect();
        field.form_documents = field
            .drawn
            .iter()
            .copied()
            .take(settings.form_documents)
            .collect();
        field.drawn.sort_unstable();
        let most = MAX_COMPARED_DOCUMENTS.max(field.drawn.len());
        field.compared = ranked
            .iter()
            .take(most)
            .map(|&(_, document)| document)
            .collect();
        Ok(field)
    }

    fn read_texts(&self, documents: &[DocId]) -> Result<Vec<String>> {
        let read = |parse: &mut ParseScratch, &document: &DocId| {
            let place = self.corpus.documents.place_of(document.index());
            self.inputs
                .reread_row(place, parse, |row| row.text.to_owned())
        };
        documents
            .par_iter()
            .map_init(ParseScratch::default, read)
            .collect()
    }

    /// Finds pairs that are already similar. The first of several equal texts is paired with each of the
    /// others, and it alone is paired with similar texts.
    fn label_natural(&self, progress: &dyn ProgressListener) -> Result<NaturalPairs> {
        progress.begin_stage(RunStage::Candidates, None);
        let total = self.corpus.len() as u64;
        let deciding = |done: usize| {
            if done == 0 {
                progress.begin_stage(RunStage::Decide, Some(total));
            }
            progress.advance_stage(done as u64);
        };
        let mut duplicates = DrawnPairs::new(self.settings.pairs);
        let mut near_misses = DrawnPairs::new(self.settings.pairs);
        let threshold = self.settings.threshold;
        let draw = |pair: MatchingPair| -> Result<()> {
            let drawn = if threshold.admits_similarity(pair.similarity) {
                &mut duplicates
            } else {
                &mut near_misses
            };
            drawn.offer_pair(
                self.pair_number(pair.a, pair.b),
                pair.a,
                pair.b,
                pair.similarity,
            );
            Ok(())
        };
        let copies = dedup::CopyPairs::None;
        dedup::find_pairs(&self.corpus.match_corpus(), copies, draw, &deciding)?;
        // Pairs of equal texts only fill the remaining places, because there may be very many of them.
        let mut equal = DrawnPairs::new(self.settings.pairs - duplicates.len());
        self.equal_pairs(&mut equal);
        let mut duplicates = duplicates.into_ordered();
        duplicates.extend(equal.into_ordered());
        duplicates.sort_unstable_by_key(|&(a, b, _)| (a, b));
        let mut natural = NaturalPairs {
            duplicates,
            near_misses: near_misses.into_ordered(),
            negatives: Vec::new(),
        };
        natural.negatives = self.sample_negatives(&natural)?;
        Ok(natural)
    }

    /// Samples pairs of drawn documents and others below those that the join finds.
    fn sample_negatives(&self, natural: &NaturalPairs) -> Result<Vec<NegativePair>> {
        let options = NegativeOptions {
            below: self.settings.near,
            contained: self.settings.threshold,
            most: self.settings.pairs,
            seed: self.settings.seed,
        };
        let drawn = self.drawn.par_iter().map(|&document| {
            let mut features = Vec::new();
            self.features_of(document, &mut features)?;
            Ok((document, features))
        });
        let sampler = NegativeSampler::new(options, drawn.collect::<Result<_>>()?);
        let offer =
            |mut candidates: NegativeCandidates, &document: &DocId| -> Result<NegativeCandidates> {
                let mut features = Vec::new();
                self.features_of(document, &mut features)?;
                sampler.offer(document, &features, &mut candidates);
                Ok(candidates)
            };
        let candidates: Result<NegativeCandidates> = self
            .compared
            .par_chunks(DOCUMENTS_AT_ONCE)
            .map(|documents| documents.iter().try_fold(sampler.candidates(), offer))
            .try_reduce(
                || sampler.candidates(),
                |one, other| Ok(sampler.merge(one, other)),
            );
        let linked = natural.pairs().map(|(_, a, b, _)| (a, b));
        Ok(sampler.select(candidates?, linked))
    }

    /// Puts the distinct features of a document into a list that is empty; none of texts that are
    /// compared as wholes.
    fn features_of(&self, document: DocId, into: &mut Vec<u64>) -> Result<()> {
        let sketches = &self.corpus.sketches;
        if sketches.text_state(document) != TextState::Fingerprintable {
            return Ok(());
        }
        match sketches.kept_features(document) {
            Some(features) => into.extend_from_slice(features),
            None => self.corpus.append_features(document, into)?,
        }
        Ok(())
    }

    /// Offers every document whose text occurred before, paired with the first document of that text.
    fn equal_pairs(&self, to: &mut DrawnPairs) {
        let sketches = &self.corpus.sketches;
        let mut first_of = HashMap::new();
        for document in (0..self.corpus.len()).map(|at| DocId(at as u32)) {
            if sketches.text_state(document) == TextState::Empty {
                continue;
            }
            let first = *first_of
                .entry(sketches.text_key(document))
                .or_insert(document);
            if first != document {
                let number = self.pair_number(first, document);
                to.offer_pair(number, first, document, Similarity::ONE);
            }
        }
    }

    fn pair_number(&self, a: DocId, b: DocId) -> u64 {
        self.planter.document_rank(&format!("{} {}", a.0, b.0))
    }

    fn write_corpus(
        &self,
        natural: NaturalPairs,
        outputs: &PlantOutputs,
        progress: &dyn ProgressListener,
    ) -> Result<PlantedCorpus> {
        progress.begin_stage(RunStage::Write, Some(self.corpus.len() as u64));
        let columns = [TableColumn::Text("id"), TableColumn::Text("text")];
        let mut corpus = TableWriter::create_table(&outputs.corpus, &columns, Some(self.inputs))?;
        let mut labels = LabelTable::create_table(outputs, self.inputs)?;
        self.write_originals(&mut corpus, progress)?;
        let mut effects = EditEffects::default();
        let mut counts = BTreeMap::<EditGroup, u64>::new();
        for documents in self.drawn.chunks(DOCUMENTS_AT_ONCE) {
            for planted in self.plant_documents(documents)? {
                let id = self.corpus.document_id(planted.document)?;
                let copy_id = |number: usize| format!("{id}{}{number}", self.mark);
                for (number, copy) in (1..).zip(&planted.copies) {
                    let copied = copy_id(number);
                    corpus.push_row(&[TableCell::Text(&copied), TableCell::Text(&copy.text)])?;
                    let origin = copy.origin.map(copy_id);
                    labels.push_planted(origin.as_deref().unwrap_or(&id), &copied, copy)?;
                    *counts.entry(copy.group).or_default() += 1;
                }
                effects.accept_document(&planted);
            }
        }
        for (kind, a, b, similarity) in natural.pairs() {
            let (a, b) = (self.corpus.document_id(a)?, self.corpus.document_id(b)?);
            labels.push_natural(&a, &b, kind, similarity)?;
        }
        labels.table.finish_table()?;
        corpus.finish_table()?;
        let count = |group| counts.get(&group).copied().unwrap_or(0);
        let (filled_forms, form_repeats) =
            (count(EditGroup::FilledForm), count(EditGroup::FormRepeat));
        Ok(PlantedCorpus {
            copies: counts.values().sum::<u64>() - filled_forms - form_repeats,
            filled_forms,
            form_repeats,
            natural: natural.duplicates.len() as u64,
            near_misses: natural.near_misses.len() as u64,
            siblings: natural.count(NaturalKind::Sibling),
            unrelated: natural.count(NaturalKind::Unrelated),
            effects: effects.into_effects(self.settings.threshold),
        })
    }

    fn write_originals(
        &self,
        corpus: &mut TableWriter,
        progress: &dyn ProgressListener,
    ) -> Result<()> {
        let all: Vec<_> = (0..self.corpus.len()).map(|at| DocId(at as u32)).collect();
        let mut written = 0;
        for documents in all.chunks(DOCUMENTS_AT_ONCE) {
            for (&document, text) in documents.iter().zip(self.read_texts(documents)?) {
                corpus.push_row(&[
                    TableCell::Text(&self.corpus.document_id(document)?),
                    TableCell::Text(&text),
                ])?;
            }
            written += documents.len() as u64;
            progress.advance_stage(written);
        }
        Ok(())
    }

    fn plant_documents(&self, documents: &[DocId]) -> Result<Vec<PlantedDocument>> {
        let texts = self.read_texts(documents)?;
        let make = |(&document, text): (&DocId, &String)| self.plant_document(document, text);
        documents.par_iter().zip(&texts).map(make).collect()
    }

    fn plant_document(&self, document: DocId, text: &str) -> Result<PlantedDocument> {
        let id = self.corpus.document_id(document)?;
        let original = TokenisedText::new(&self.analyzer, text);
        let mut planted = PlantedDocument {
            document,
            length: original.length,
            copies: Vec::new(),
            idle: Vec::new(),
        };
        let mut keep = |edits: &[PlantedEdit]| {
            let edited = self.planter.plant_edits(&id, text, edits)?;
            planted.copies.push(EditedCopy {
                group: EditGroup::from_edits(edits),
                edits: edits.to_vec(),
                origin: None,
                similarity: original.similarity(&TokenisedText::new(&self.analyzer, &edited)),
                text: edited,
            });
            Some(())
        };
        let mut missing_copies = self.settings.copies;
        for edit in self.planter.order_edits(&id, &self.settings.edits) {
            if missing_copies == 0 {
                break;
            }
            match keep(&[edit]) {
                Some(()) => missing_copies -= 1,
                None => planted.idle.push(edit),
            }
        }
        for number in 0..self.settings.combined {
            for count in [2, 3] {
                // A combination is drawn again if one of its edits does not apply.
                (0..MAX_DRAW_ATTEMPTS).find_map(|attempt| {
                    let name = format!("{id} {number} {attempt}");
                    let edits = self.planter.draw_edits(&name, count, &self.settings.edits);
                    (edits.len() == count).then(|| keep(&edits))?
                });
            }
        }
        if self.form_documents.contains(&document) {
            self.plant_forms(&id, text, &original, &mut planted.copies);
        }
        Ok(planted)
    }

    /// Adds texts that share the frame of a document and have other values, and repeats of some of them.
    fn plant_forms(
        &self,
        id: &str,
        text: &str,
        original: &TokenisedText,
        copies: &mut Vec<EditedCopy>,
    ) {
        let filled_forms = self.planter.fill_form(id, text, self.settings.filled_forms);
        let mut known = HashSet::from([original.key]);
        for (at, filled) in filled_forms.into_iter().enumerate() {
            let compared = TokenisedText::new(&self.analyzer, &filled);
            // Words that are equal after normalisation are no other values.
            if !known.insert(compared.key) {
                continue;
            }
            copies.push(EditedCopy {
                group: EditGroup::FilledForm,
                edits: Vec::new(),
                origin: None,
                similarity: original.similarity(&compared),
                text: filled,
            });
            if at % FILLED_FORMS_PER_REPEAT != 0 {
                continue;
            }
            let origin = copies.len();
            let filled = &copies[origin - 1].text;
            let name = format!("{id} form {at}");
            let repeat = if (at / FILLED_FORMS_PER_REPEAT).is_multiple_of(2) {
                self.planter.add_header(&name, filled)
            } else {
                self.planter.add_footer(&name, filled)
            };
            if let Some(repeat) = repeat {
                copies.push(EditedCopy {
                    group: EditGroup::FormRepeat,
                    edits: Vec::new(),
                    origin: Some(origin),
                    similarity: compared.similarity(&TokenisedText::new(&self.analyzer, &repeat)),
                    text: repeat,
                });
            }
        }
    }
}

/// Ids of copies contain a longer run of this character than any other id.
pub(super) const COPY_MARK: char = '#';

/// Returns the length of the longest run of marks in an id.
pub(super) fn longest_run(id: &str) -> usize {
    let runs = id.split(|point| point != COPY_MARK);
    runs.map(str::len).max().unwrap_or_default()
}

/// A text in the form in which it is compared.
struct TokenisedText {
    features: Vec<u64>,
    key: u128,
    state: TextState,
    length: usize,
}

impl TokenisedText {
    fn new(analyzer: &TextAnalyzer, text: &str) -> Self {
        let mut scratch = AnalysisScratch::default();
        let analysis = analyzer.analyze_text(text, &mut scratch);
        let mut features = Vec::new();
        analysis.append_features(&mut features);
        Self {
            features,
            key: analysis.key,
            state: analysis.state,
            length: analysis.token_values().len(),
        }
    }

    /// Returns the similarity as a run computes it. Equal texts have 1, and a text without features has
    /// 0 with all others.
    fn similarity(&self, other: &Self) -> f64 {
        if self.key == other.key && self.state != TextState::Empty {
            return Similarity::ONE.get();
        }
        similarity::jaccard_index(&self.features, &other.features).get()
    }
}

/// The table of labelled pairs.
struct LabelTable {
    table: TableWriter,
}

impl LabelTable {
    fn create_table(outputs: &PlantOutputs, inputs: &InputSet) -> Result<Self> {
        let columns = [
            TableColumn::Text("a"),
            TableColumn::Text("b"),
            TableColumn::Integer("label"),
            TableColumn::Text("kind"),
            TableColumn::Number("strength"),
            TableColumn::Text("edits"),
            TableColumn::Number("similarity"),
        ];
        let table = TableWriter::create_table(&outputs.labels, &columns, Some(inputs))?;
        Ok(Self { table })
    }

    fn push_planted(&mut self, id: &str, copied: &str, copy: &EditedCopy) -> Result<()> {
        let group = copy.group;
        let edits: Vec<_> = copy.edits.iter().map(PlantedEdit::to_string).collect();
        let edits = edits.join("+");
        self.table.push_row(&[
            TableCell::Text(id),
            TableCell::Text(copied),
            TableCell::Integer(u64::from(group != EditGroup::FilledForm)),
            TableCell::Text(group.group_name()),
            group
                .edit_strength()
                .map_or(TableCell::Null, TableCell::Number),
            if edits.is_empty() {
                TableCell::Null
            } else {
                TableCell::Text(&edits)
            },
            TableCell::Number(copy.similarity),
        ])
    }

    fn push_natural(&mut self, a: &str, b: &str, kind: NaturalKind, similarity: f64) -> Result<()> {
        self.table.push_row(&[
            TableCell::Text(a),
            TableCell::Text(b),
            TableCell::Integer(u64::from(kind == NaturalKind::Duplicate)),
            TableCell::Text(kind.name()),
            TableCell::Null,
            TableCell::Null,
            TableCell::Number(similarity),
        ])
    }
}

/// The kind of edits by which copies are grouped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum EditGroup {
    One(PlantedEdit),
    Two,
    Three,
    /// The frame of a document with other values.
    FilledForm,
    /// A filled form under a header or before a footer.
    FormRepeat,
}

impl EditGroup {
    fn from_edits(edits: &[PlantedEdit]) -> Self {
        match edits {
            [edit] => Self::One(*edit),
            [_, _] => Self::Two,
            _ => Self::Three,
        }
    }

    fn group_name(self) -> &'static str {
        match self {
            Self::One(edit) => edit.edit_kind().name(),
            Self::Two => "two-edits",
            Self::Three => "three-edits",
            Self::FilledForm => "filled-form",
            Self::FormRepeat => "form-repeat",
        }
    }

    fn edit_strength(self) -> Option<f64> {
        match self {
            Self::One(edit) => edit.edit_strength(),
            Self::Two | Self::Three | Self::FilledForm | Self::FormRepeat => None,
        }
    }
}

/// Similarities of copies by edits and by the length of the original.
#[derive(Default)]
struct EditEffects {
    groups: BTreeMap<EditGroup, CopySimilarities>,
}

#[derive(Default)]
struct CopySimilarities {
    not_applicable: u64,
    /// Length of the original, and similarity.
    similarities: Vec<(usize, f64)>,
}

impl EditEffects {
    fn accept_document(&mut self, planted: &PlantedDocument) {
        for copy in &planted.copies {
            let copies = self.groups.entry(copy.group).or_default();
            copies.similarities.push((planted.length, copy.similarity));
        }
        for &edit in &planted.idle {
            let copies = self.groups.entry(EditGroup::One(edit)).or_default();
            copies.not_applicable += 1;
        }
    }

    fn into_effects(self, threshold: Threshold) -> Vec<EditEffect> {
        let effect = |(group, copies): (EditGroup, CopySimilarities)| EditEffect {
            kind: group.group_name(),
            strength: group.edit_strength(),
            not_applicable: copies.not_applicable,
            all: remaining_similarity(
                "all",
                copies
                    .similarities
                    .iter()
                    .map(|&(_, similarity)| similarity),
                threshold,
            ),
            by_length: effects_by_length(&copies.similarities, threshold),
        };
        self.groups.into_iter().map(effect).collect()
    }
}

fn effects_by_length(copies: &[(usize, f64)], threshold: Threshold) -> Vec<RemainingSimilarity> {
    let of = |name| {
        let inside = copies
            .iter()
            .filter(|(length, _)| length_class(*length) == name);
        remaining_similarity(name, inside.map(|&(_, similarity)| similarity), threshold)
    };
    let classes = length_classes::class_names().map(of);
    classes.filter(|left| left.copies > 0).collect()
}

fn remaining_similarity(
    length: &'static str,
    similarities: impl Iterator<Item = f64>,
    threshold: Threshold,
) -> RemainingSimilarity {
    let mut sorted: Vec<f64> = similarities.collect();
    sorted.sort_unstable_by(f64::total_cmp);
    let count = sorted.len().max(1) as f64;
    let above = sorted
        .iter()
        .filter(|&&similarity| similarity >= threshold.get())
        .count();
    RemainingSimilarity {
        length,
        copies: sorted.len() as u64,
        mean: sorted.iter().sum::<f64>() / count,
        low: sorted.get(sorted.len() / 20).copied().unwrap_or_default(),
        above: above as f64 / count,
    }
}
