//! A labelled corpus made from a user's own documents: edited copies of some of them, the pairs that were
//! already similar, and a sample of pairs that are less similar. An exact join finds the similar pairs, so that
//! their labels are true.
//!
//! The outputs depend only on inputs and settings, not on the number of threads. Memory is that of a
//! run, plus the copies of a few hundred documents.

use std::collections::{BTreeMap, BinaryHeap, HashMap};
use std::path::{Path, PathBuf};
use std::time::Instant;

use lookalike::matching::{self, Pair, Texts};
use lookalike::plan::{self, Method, Plan};
use lookalike::plant::{
    Edit, NegativeCandidates, NegativeOptions, NegativePair, NegativeSampler, Planter, Stock,
};
use lookalike::text::{Analyzer, Scratch, State};
use lookalike::{DocId, Recipe, Similarity, Threshold, verify};
use rayon::prelude::*;
use serde::Serialize;

use super::corpus::{Opened, ReadCorpus};
use super::lengths::{self, class_of};
use super::progress::{Progress, Stage};
use super::rejected::Rejected;
use super::settings::{RunInputs, Settings};
use crate::error::{Error, Result, shown};
use crate::sink::{Cell, Column, Output, TableWriter, check_output};
use crate::source::{Format, Inputs, ParseScratch, ReadOptions, format_by_extension};

/// Settings of a planted corpus.
#[derive(Debug, Clone)]
pub struct PlantSettings {
    /// Determines how texts become features.
    pub recipe: Recipe,
    /// Smallest similarity of near-duplicates.
    pub threshold: Threshold,
    /// Smallest similarity from which all pairs below the threshold are hard negatives; at most the threshold.
    /// Below it, negatives are sampled.
    pub near: Threshold,
    /// Number of documents to draw, from 1; all documents if there are fewer.
    pub documents: usize,
    /// Number of copies with a single edit per drawn document.
    pub copies: usize,
    /// Number of copies with two edits per drawn document, and also of copies with three.
    pub combined: usize,
    /// The edits to choose from, at least one.
    pub edits: Vec<Edit>,
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
    pub corpus: Output,
    /// Labelled pairs: `a, b, label, kind, strength, edits, similarity`.
    pub labels: Output,
    /// The rejected rows, byte for byte.
    pub rejected: Option<Output>,
}

/// The result of planting.
#[derive(Debug, Clone, Serialize)]
pub struct PlantSummary {
    /// Documents read.
    pub documents: u64,
    /// Documents of which copies were made.
    pub drawn: u64,
    /// Edited copies written.
    pub copies: u64,
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
    pub effects: Vec<Effect>,
}

/// The similarity between copies with one kind of edit and their originals.
#[derive(Debug, Clone, Serialize)]
pub struct Effect {
    /// Name of the kind, or `two-edits`, `three-edits`.
    pub kind: &'static str,
    /// The changed share of the text, if the kind has strengths.
    pub strength: Option<f64>,
    /// Drawn documents to which the edit was not applicable.
    pub not_applicable: u64,
    /// Copies of all lengths.
    pub all: Left,
    /// Copies by the length of the original in tokens; classes without copies are left out.
    pub by_length: Vec<Left>,
}

/// The similarity between some copies and their originals.
#[derive(Debug, Clone, Serialize)]
pub struct Left {
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
const STOCK: usize = 1000;

/// Number of documents whose copies are made at a time.
const AT_ONCE: usize = 256;

/// Largest number of documents with which drawn ones are compared to sample negatives, so that the time for it
/// is bounded.
const COMPARED: usize = 20_000;

/// Largest number of attempts to draw several edits that all apply to a document.
const TRIES: usize = 8;

/// Writes a corpus of all documents and edited copies of some, and a table of labelled pairs.
///
/// # Errors
/// If something cannot be read or written, or if the settings contradict each other. The outputs are
/// then unchanged.
pub fn plant(
    paths: &[PathBuf],
    settings: &PlantSettings,
    outputs: &PlantOutputs,
    progress: &dyn Progress,
) -> Result<PlantSummary> {
    super::in_pool(settings.threads, || run(paths, settings, outputs, progress))
}

fn run(
    paths: &[PathBuf],
    settings: &PlantSettings,
    outputs: &PlantOutputs,
    progress: &dyn Progress,
) -> Result<PlantSummary> {
    let started = Instant::now();
    check_settings(settings, outputs)?;
    let joined = settings.of_join();
    let plan = Plan::new(&joined.recipe, joined.matching)?;
    let inputs = RunInputs {
        documents: paths.to_vec().into(),
        ..RunInputs::default()
    };
    let opened = Opened::new(&inputs, &joined)?;
    let all = [&outputs.corpus, &outputs.labels];
    for output in all.into_iter().chain(&outputs.rejected) {
        check_output(output, &opened.inputs)?;
    }
    let rejected = Rejected::create(outputs.rejected.as_ref())?;
    let reject = |inputs: &_, row: &_| rejected.push(inputs, row);
    let corpus = ReadCorpus::read(&opened, &joined, &plan, &reject, progress)?;
    // Labels address documents by their ids.
    corpus.refuse_repeated_ids(&joined)?;
    let field = Field::new(&corpus, &opened.inputs, settings)?;
    let labels = field.label_natural(progress)?;
    let planted = field.write(labels, outputs, progress)?;
    Ok(PlantSummary {
        documents: corpus.documents.len() as u64,
        drawn: field.drawn.len() as u64,
        copies: planted.copies,
        natural: planted.natural,
        near_misses: planted.near_misses,
        siblings: planted.siblings,
        unrelated: planted.unrelated,
        rejected: rejected.finish()?,
        bytes: corpus.documents.bytes,
        seconds: started.elapsed().as_secs_f64(),
        mark: field.mark.clone(),
        seed: settings.seed,
        threshold: settings.threshold.get(),
        recipe: settings.recipe.name.clone(),
        recipe_id: settings.recipe.id().to_string(),
        effects: planted.effects,
    })
}

fn check_settings(settings: &PlantSettings, outputs: &PlantOutputs) -> Result<()> {
    if settings.near.get() > settings.threshold.get() {
        return Err(Error::usage(format!(
            "hard negatives from {} would be above the threshold {}: give a lower similarity",
            settings.near.get(),
            settings.threshold.get()
        )));
    }
    let Output::Path(path) = &outputs.corpus else {
        return Err(Error::usage(
            "a planted corpus cannot go to standard output: give a file (.jsonl, .csv or .parquet)",
        ));
    };
    if matches!(
        format_by_extension(path),
        Some(Format::Jsonl | Format::CSV | Format::Parquet)
    ) {
        return Ok(());
    }
    Err(Error::usage(format!(
        "{} cannot store every text unchanged: give the corpus the extension .jsonl, .csv or \
         .parquet",
        shown(Path::new(path))
    )))
}

impl PlantSettings {
    /// Returns the settings of the run that finds the pairs that are already similar.
    fn of_join(&self) -> Settings {
        Settings {
            recipe: self.recipe.clone(),
            matching: plan::Settings {
                method: Method::Join,
                threshold: self.near,
                ..plan::Settings::default()
            },
            read: self.read.clone(),
            threads: self.threads,
            strict: self.strict,
            ..Settings::default()
        }
    }
}

/// The documents of a corpus and those drawn from it.
struct Field<'a> {
    corpus: &'a ReadCorpus<'a>,
    inputs: &'a Inputs,
    settings: &'a PlantSettings,
    analyzer: Analyzer,
    planter: Planter,
    /// The drawn documents in reading order.
    drawn: Vec<DocId>,
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

    fn offer(&mut self, number: u64, (a, b): (DocId, DocId), similarity: Similarity) {
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
    fn finish(self) -> Vec<(DocId, DocId, f64)> {
        let pairs = self.pairs.into_iter();
        let mut pairs: Vec<_> = pairs
            .map(|(_, a, b, similarity)| (DocId(a), DocId(b), f64::from_bits(similarity)))
            .collect();
        pairs.sort_unstable_by_key(|&(a, b, _)| (a, b));
        pairs
    }
}

/// Pairs that were already similar.
struct Natural {
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

impl Natural {
    /// All pairs with their kinds.
    fn pairs(&self) -> impl Iterator<Item = (NaturalKind, DocId, DocId, f64)> {
        let of = |kind, pairs: &[(DocId, DocId, f64)]| -> Vec<_> {
            let pairs = pairs.iter();
            pairs.map(|&(a, b, it)| (kind, a, b, it)).collect()
        };
        let negatives = self.negatives.iter().map(|pair| {
            let kind = match pair.is_sibling() {
                true => NaturalKind::Sibling,
                false => NaturalKind::Unrelated,
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
struct Planted {
    copies: u64,
    natural: u64,
    near_misses: u64,
    siblings: u64,
    unrelated: u64,
    effects: Vec<Effect>,
}

/// An edited copy of a document.
struct Copy {
    edits: Vec<Edit>,
    text: String,
    similarity: f64,
}

/// The copies of one document.
struct Made {
    document: DocId,
    /// Length of the document in tokens.
    length: usize,
    copies: Vec<Copy>,
    /// Edits that were not applicable.
    idle: Vec<Edit>,
}

impl<'a> Field<'a> {
    fn new(
        corpus: &'a ReadCorpus<'a>,
        inputs: &'a Inputs,
        settings: &'a PlantSettings,
    ) -> Result<Self> {
        let empty = Planter::new(settings.seed, Stock::default());
        let mut ranked = Vec::new();
        let mut mark = 0;
        for document in (0..corpus.len()).map(|at| DocId(at as u32)) {
            let id = corpus.id(document)?;
            mark = mark.max(longest_run(&id));
            if corpus.sketches.state(document) != State::Empty {
                ranked.push((empty.rank(&id), document));
            }
        }
        if ranked.is_empty() {
            return Err(Error::input(
                "there is no document with a text to plant edits in",
            ));
        }
        ranked.sort_unstable();
        let mut field = Self {
            corpus,
            inputs,
            settings,
            analyzer: Analyzer::new(&settings.recipe),
            planter: empty,
            drawn: Vec::new(),
            compared: Vec::new(),
            mark: MARK.to_string().repeat(mark + 1),
        };
        let stock: Vec<_> = ranked.iter().take(STOCK).map(|&(_, it)| it).collect();
        let stock = field.texts(&stock)?;
        field.planter = Planter::new(settings.seed, Stock::new(stock.iter().map(String::as_str)));
        let drawn = ranked.iter().take(settings.documents);
        field.drawn = drawn.map(|&(_, document)| document).collect();
        field.drawn.sort_unstable();
        let most = COMPARED.max(field.drawn.len());
        field.compared = ranked.iter().take(most).map(|&(_, it)| it).collect();
        Ok(field)
    }

    fn texts(&self, documents: &[DocId]) -> Result<Vec<String>> {
        let read = |parse: &mut ParseScratch, &document: &DocId| {
            let place = self.corpus.documents.place(document.index());
            self.inputs.reread(place, parse, |row| row.text.to_owned())
        };
        documents
            .par_iter()
            .map_init(ParseScratch::default, read)
            .collect()
    }

    /// Finds pairs that are already similar. Of several equal texts, the first one is paired with each
    /// of the others, and only the first one with similar texts.
    fn label_natural(&self, progress: &dyn Progress) -> Result<Natural> {
        progress.begin(Stage::Candidates, None);
        let total = self.corpus.len() as u64;
        let deciding = |done: usize| {
            if done == 0 {
                progress.begin(Stage::Decide, Some(total));
            }
            progress.advance(done as u64);
        };
        let mut duplicates = DrawnPairs::new(self.settings.pairs);
        let mut near_misses = DrawnPairs::new(self.settings.pairs);
        let threshold = self.settings.threshold;
        let draw = |pair: Pair| -> Result<()> {
            let both = (pair.a, pair.b);
            let drawn = match threshold.admits_similarity(pair.similarity) {
                true => &mut duplicates,
                false => &mut near_misses,
            };
            drawn.offer(self.number_of(both), both, pair.similarity);
            Ok(())
        };
        let copies = matching::CopyPairs::None;
        matching::find_pairs(&self.corpus.corpus(), copies, draw, &deciding)?;
        // Pairs of equal texts only fill the remaining places, because there may be very many of them.
        let mut equal = DrawnPairs::new(self.settings.pairs - duplicates.len());
        self.equal_pairs(&mut equal);
        let mut duplicates = duplicates.finish();
        duplicates.extend(equal.finish());
        duplicates.sort_unstable_by_key(|&(a, b, _)| (a, b));
        let mut natural = Natural {
            duplicates,
            near_misses: near_misses.finish(),
            negatives: Vec::new(),
        };
        natural.negatives = self.sample_negatives(&natural)?;
        Ok(natural)
    }

    /// Samples pairs of drawn documents and others below those that the join finds.
    fn sample_negatives(&self, natural: &Natural) -> Result<Vec<NegativePair>> {
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
            .par_chunks(AT_ONCE)
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
        if sketches.state(document) != State::Rich {
            return Ok(());
        }
        match sketches.features(document) {
            Some(features) => into.extend_from_slice(features),
            None => self.corpus.features(document, into)?,
        }
        Ok(())
    }

    /// Offers every document whose text occurred before, paired with the first document of that text.
    fn equal_pairs(&self, to: &mut DrawnPairs) {
        let sketches = &self.corpus.sketches;
        let mut first_of = HashMap::new();
        for document in (0..self.corpus.len()).map(|at| DocId(at as u32)) {
            if sketches.state(document) == State::Empty {
                continue;
            }
            let first = *first_of.entry(sketches.key(document)).or_insert(document);
            if first != document {
                let both = (first, document);
                to.offer(self.number_of(both), both, Similarity::ONE);
            }
        }
    }

    fn number_of(&self, (a, b): (DocId, DocId)) -> u64 {
        self.planter.rank(&format!("{} {}", a.0, b.0))
    }

    fn write(
        &self,
        natural: Natural,
        outputs: &PlantOutputs,
        progress: &dyn Progress,
    ) -> Result<Planted> {
        progress.begin(Stage::Write, Some(self.corpus.len() as u64));
        let columns = [Column::Text("id"), Column::Text("text")];
        let mut corpus = TableWriter::create(&outputs.corpus, &columns, Some(self.inputs))?;
        let mut labels = Labels::create(outputs, self.inputs)?;
        self.write_originals(&mut corpus, progress)?;
        let mut effects = Effects::default();
        let mut copies = 0;
        for documents in self.drawn.chunks(AT_ONCE) {
            for made in self.made(documents)? {
                let id = self.corpus.id(made.document)?;
                for (number, copy) in (1..).zip(&made.copies) {
                    let copied = format!("{id}{}{number}", self.mark);
                    corpus.push(&[Cell::Text(&copied), Cell::Text(&copy.text)])?;
                    labels.planted(&id, &copied, copy)?;
                    copies += 1;
                }
                effects.take(&made);
            }
        }
        for (kind, a, b, similarity) in natural.pairs() {
            let ids = (&*self.corpus.id(a)?, &*self.corpus.id(b)?);
            labels.natural(ids, kind, similarity)?;
        }
        labels.table.finish()?;
        corpus.finish()?;
        Ok(Planted {
            copies,
            natural: natural.duplicates.len() as u64,
            near_misses: natural.near_misses.len() as u64,
            siblings: natural.count(NaturalKind::Sibling),
            unrelated: natural.count(NaturalKind::Unrelated),
            effects: effects.finish(self.settings.threshold),
        })
    }

    fn write_originals(&self, corpus: &mut TableWriter, progress: &dyn Progress) -> Result<()> {
        let all: Vec<_> = (0..self.corpus.len()).map(|at| DocId(at as u32)).collect();
        let mut written = 0;
        for documents in all.chunks(AT_ONCE) {
            for (&document, text) in documents.iter().zip(self.texts(documents)?) {
                corpus.push(&[Cell::Text(&self.corpus.id(document)?), Cell::Text(&text)])?;
            }
            written += documents.len() as u64;
            progress.advance(written);
        }
        Ok(())
    }

    fn made(&self, documents: &[DocId]) -> Result<Vec<Made>> {
        let texts = self.texts(documents)?;
        let make = |(&document, text): (&DocId, &String)| self.make(document, text);
        documents.par_iter().zip(&texts).map(make).collect()
    }

    fn make(&self, document: DocId, text: &str) -> Result<Made> {
        let id = self.corpus.id(document)?;
        let original = Compared::new(&self.analyzer, text);
        let mut made = Made {
            document,
            length: original.length,
            copies: Vec::new(),
            idle: Vec::new(),
        };
        let mut keep = |edits: &[Edit]| {
            let edited = self.planter.plant(&id, text, edits)?;
            made.copies.push(Copy {
                edits: edits.to_vec(),
                similarity: original.similarity(&Compared::new(&self.analyzer, &edited)),
                text: edited,
            });
            Some(())
        };
        let mut left = self.settings.copies;
        for edit in self.planter.order(&id, &self.settings.edits) {
            if left == 0 {
                break;
            }
            match keep(&[edit]) {
                Some(()) => left -= 1,
                None => made.idle.push(edit),
            }
        }
        for number in 0..self.settings.combined {
            for count in [2, 3] {
                // A combination is drawn again if one of its edits does not apply.
                (0..TRIES).find_map(|attempt| {
                    let name = format!("{id} {number} {attempt}");
                    let edits = self.planter.draw(&name, count, &self.settings.edits);
                    (edits.len() == count).then(|| keep(&edits))?
                });
            }
        }
        Ok(made)
    }
}

/// Ids of copies contain a longer run of this character than any other id.
const MARK: char = '#';

/// Returns the length of the longest run of marks in an id.
fn longest_run(id: &str) -> usize {
    let runs = id.split(|point| point != MARK);
    runs.map(str::len).max().unwrap_or_default()
}

/// A text in the form in which it is compared.
struct Compared {
    features: Vec<u64>,
    key: u128,
    state: State,
    length: usize,
}

impl Compared {
    fn new(analyzer: &Analyzer, text: &str) -> Self {
        let mut scratch = Scratch::default();
        let analysis = analyzer.analyze(text, &mut scratch);
        let mut features = Vec::new();
        analysis.features(&mut features);
        Self {
            features,
            key: analysis.key,
            state: analysis.state,
            length: analysis.tokens().len(),
        }
    }

    /// Returns the similarity as a run computes it. Equal texts have 1, and a text without features has
    /// 0 with all others.
    fn similarity(&self, other: &Self) -> f64 {
        if self.key == other.key && self.state != State::Empty {
            return Similarity::ONE.get();
        }
        verify::jaccard(&self.features, &other.features).get()
    }
}

/// The table of labelled pairs.
struct Labels {
    table: TableWriter,
}

impl Labels {
    fn create(outputs: &PlantOutputs, inputs: &Inputs) -> Result<Self> {
        let columns = [
            Column::Text("a"),
            Column::Text("b"),
            Column::Integer("label"),
            Column::Text("kind"),
            Column::Number("strength"),
            Column::Text("edits"),
            Column::Number("similarity"),
        ];
        let table = TableWriter::create(&outputs.labels, &columns, Some(inputs))?;
        Ok(Self { table })
    }

    fn planted(&mut self, id: &str, copied: &str, copy: &Copy) -> Result<()> {
        let group = Group::of(&copy.edits);
        let edits: Vec<_> = copy.edits.iter().map(Edit::to_string).collect();
        self.table.push(&[
            Cell::Text(id),
            Cell::Text(copied),
            Cell::Integer(1),
            Cell::Text(group.kind()),
            group.strength().map_or(Cell::Null, Cell::Number),
            Cell::Text(&edits.join("+")),
            Cell::Number(copy.similarity),
        ])
    }

    fn natural(&mut self, (a, b): (&str, &str), kind: NaturalKind, similarity: f64) -> Result<()> {
        self.table.push(&[
            Cell::Text(a),
            Cell::Text(b),
            Cell::Integer(u64::from(kind == NaturalKind::Duplicate)),
            Cell::Text(kind.name()),
            Cell::Null,
            Cell::Null,
            Cell::Number(similarity),
        ])
    }
}

/// The kind of edits by which copies are grouped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Group {
    One(Edit),
    Two,
    Three,
}

impl Group {
    fn of(edits: &[Edit]) -> Self {
        match edits {
            [edit] => Self::One(*edit),
            [_, _] => Self::Two,
            _ => Self::Three,
        }
    }

    fn kind(self) -> &'static str {
        match self {
            Self::One(edit) => edit.kind().name(),
            Self::Two => "two-edits",
            Self::Three => "three-edits",
        }
    }

    fn strength(self) -> Option<f64> {
        match self {
            Self::One(edit) => edit.strength(),
            Self::Two | Self::Three => None,
        }
    }
}

/// Similarities of copies by edits and by the length of the original.
#[derive(Default)]
struct Effects {
    groups: BTreeMap<Group, Copies>,
}

#[derive(Default)]
struct Copies {
    not_applicable: u64,
    /// Length of the original, and similarity.
    left: Vec<(usize, f64)>,
}

impl Effects {
    fn take(&mut self, made: &Made) {
        for copy in &made.copies {
            let copies = self.groups.entry(Group::of(&copy.edits)).or_default();
            copies.left.push((made.length, copy.similarity));
        }
        for &edit in &made.idle {
            let copies = self.groups.entry(Group::One(edit)).or_default();
            copies.not_applicable += 1;
        }
    }

    fn finish(self, threshold: Threshold) -> Vec<Effect> {
        let effect = |(group, copies): (Group, Copies)| Effect {
            kind: group.kind(),
            strength: group.strength(),
            not_applicable: copies.not_applicable,
            all: left("all", copies.left.iter().map(|&(_, it)| it), threshold),
            by_length: by_length(&copies.left, threshold),
        };
        self.groups.into_iter().map(effect).collect()
    }
}

fn by_length(copies: &[(usize, f64)], threshold: Threshold) -> Vec<Left> {
    let of = |name| {
        let inside = copies
            .iter()
            .filter(|(length, _)| class_of(*length) == name);
        left(name, inside.map(|&(_, similarity)| similarity), threshold)
    };
    let classes = lengths::names().map(of);
    classes.filter(|left| left.copies > 0).collect()
}

fn left(
    length: &'static str,
    similarities: impl Iterator<Item = f64>,
    threshold: Threshold,
) -> Left {
    let mut sorted: Vec<f64> = similarities.collect();
    sorted.sort_unstable_by(f64::total_cmp);
    let count = sorted.len().max(1) as f64;
    let above = sorted.iter().filter(|&&it| it >= threshold.get()).count();
    Left {
        length,
        copies: sorted.len() as u64,
        mean: sorted.iter().sum::<f64>() / count,
        low: sorted.get(sorted.len() / 20).copied().unwrap_or_default(),
        above: above as f64 / count,
    }
}
