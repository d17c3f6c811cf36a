//! Verdicts, pairs and components against a model: a double loop over sets of strings.
//!
//! The model has no keys, buckets or blocks. It takes the tokens of the definition and the numbers of
//! the plan. Where the plan finds candidates by sketches, it takes these too, because they have tests
//! of their own.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex, OnceLock};

use lookalike_oracle::effort::choose_effort;

use super::batch_sizes::BatchSizes;
use super::components::components_in;
use super::decided_prefix::continue_in;
use super::deduplicator::verdicts_in;
use super::pairs::find_pairs_with_sizes;
use super::survey::survey_with_sizes;
use super::*;
use crate::arch::Cpu;
use crate::byte_reader::ByteReader;
use crate::candidates::PrefixLengths;
use crate::error::{Error, ErrorKind, Result};
use crate::hash::mix_bits;
use crate::plan::{
    CandidateRule, EditUnit, MatchMethod, MatchPlan, MatchSettings, SimilarityMeasure,
};
use crate::recipe::Recipe;
use crate::similarity::WeightedFeature;
use crate::similarity::{DocumentMatch, OverlapBound, Route};
use crate::sketch::{DocumentSketcher, DocumentSketches};
use crate::text::{AnalysisScratch, TextAnalysis, TextAnalyzer, TextToken};
use crate::types::{DocId, Similarity, Threshold};

/// A generator of numbers that are the same in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix_bits(self.0)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    fn shuffle<T>(&mut self, values: &mut [T]) {
        for at in (1..values.len()).rev() {
            values.swap(at, self.below(at + 1));
        }
    }
}

/// A document's text after normalisation.
#[derive(Clone, Debug, PartialEq)]
enum Identity {
    Nothing,
    Raw(String),
    Tokens(Vec<TextToken>),
}

/// A document in the model.
struct Document {
    identity: Identity,
    /// Numbers of the distinct features, ascending.
    features: Vec<usize>,
    /// Number of occurrences of each feature.
    counts: HashMap<usize, u64>,
    characters: Vec<char>,
    words: Vec<TextToken>,
    signature: Vec<u32>,
    fingerprint: u128,
    sentences: Option<u64>,
    smallest: Vec<u64>,
}

/// Returns the normalised characters: those of the tokens, and a space between two words.
fn characters(tokens: &[TextToken]) -> Vec<char> {
    let mut text = String::new();
    for (at, token) in tokens.iter().enumerate() {
        match token {
            TextToken::Character(character) => text.push(*character),
            TextToken::Word(word) => {
                if at > 0 && matches!(tokens[at - 1], TextToken::Word(_)) {
                    text.push(' ');
                }
                text.push_str(word);
            }
        }
    }
    text.chars().collect()
}

/// Returns the edit distance by the textbook's table.
fn edits<T: PartialEq>(a: &[T], b: &[T], substitution: usize) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let changed = diagonal + if x == y { 0 } else { substitution };
            diagonal = row[j + 1];
            row[j + 1] = changed.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

fn common_run<T: PartialEq>(a: &[T], b: &[T]) -> usize {
    let mut longest = 0;
    let mut row = vec![0; b.len() + 1];
    for x in a {
        for j in (0..b.len()).rev() {
            row[j + 1] = if *x == b[j] { row[j] + 1 } else { 0 };
            longest = longest.max(row[j + 1]);
        }
    }
    longest
}

/// Returns the similarity of two sequences, or some value below the threshold if their lengths alone
/// rule it out.
fn of_sequences<T: PartialEq>(measure: SimilarityMeasure, a: &[T], b: &[T], threshold: f64) -> f64 {
    let (sum, longer, shorter) = (
        a.len() + b.len(),
        a.len().max(b.len()),
        a.len().min(b.len()),
    );
    let quotient = |part: usize, whole: usize| part as f64 / whole as f64;
    if measure == SimilarityMeasure::Levenshtein {
        if quotient(shorter, longer) < threshold {
            return 0.0;
        }
        return quotient(longer - edits(a, b, 1), longer);
    }
    if quotient(2 * shorter, sum) < threshold {
        return 0.0;
    }
    match measure {
        SimilarityMeasure::Indel => quotient(sum - edits(a, b, 2), sum),
        _ => quotient(2 * common_run(a, b), sum),
    }
}

static ANALYZERS: LazyLock<[TextAnalyzer; 2]> = LazyLock::new(|| {
    ["words-1", "default"].map(|name| TextAnalyzer::new(&Recipe::built_in(name).unwrap()))
});

/// Similarity and route of a pair that matches.
type RelatedPair = Option<(f64, Route)>;

/// Texts and all options of a run.
struct Run {
    analyzer: &'static TextAnalyzer,
    plan: MatchPlan,
    texts: Vec<String>,
    /// Features of the texts, made once, because the engine asks for them in every part of a run.
    features: Vec<OnceLock<Vec<u64>>>,
    documents: Vec<Document>,
    /// The decisions of the model on pairs, with the smaller index first; it asks for each several times.
    decided: Mutex<HashMap<(usize, usize), RelatedPair>>,
    order: Option<Vec<DocId>>,
    partitions: Option<Vec<u64>>,
    window: Option<(Vec<f64>, f64)>,
    given: usize,
    decisions: Option<PairDecisions>,
}

impl DocumentSource for Run {
    fn append_features(&self, document: DocId, into: &mut Vec<u64>) -> Result<()> {
        let features = self.features[document.index()].get_or_init(|| {
            let (text, mut features) = (&self.texts[document.index()], Vec::new());
            self.analyzer
                .analyze_text(text, &mut AnalysisScratch::default())
                .append_features(&mut features);
            features
        });
        into.extend_from_slice(features);
        Ok(())
    }

    fn append_weighted_features(
        &self,
        document: DocId,
        into: &mut Vec<WeightedFeature>,
    ) -> Result<()> {
        self.analyzed(document, |analysis| analysis.weighted_features(into))
    }

    fn append_characters(&self, document: DocId, into: &mut Vec<u32>) -> Result<()> {
        self.analyzed(document, |analysis| {
            into.extend_from_slice(analysis.characters())
        })
    }

    fn append_words(&self, document: DocId, into: &mut Vec<u64>) -> Result<()> {
        self.analyzed(document, |analysis| {
            into.extend_from_slice(analysis.token_values())
        })
    }
}

type Found = (usize, usize, f64, Route);

impl Run {
    fn new(analyzer: &'static TextAnalyzer, settings: MatchSettings, texts: Vec<String>) -> Self {
        let run = Self::without_model(analyzer, settings, texts);
        let documents = run.model_documents();
        Self { documents, ..run }
    }

    /// Returns a run without the documents of the model, for tests of the engine alone.
    fn without_model(
        analyzer: &'static TextAnalyzer,
        settings: MatchSettings,
        texts: Vec<String>,
    ) -> Self {
        Self {
            analyzer,
            plan: MatchPlan::new(analyzer.recipe(), settings).unwrap(),
            features: texts.iter().map(|_| OnceLock::new()).collect(),
            texts,
            documents: Vec::new(),
            decided: Mutex::default(),
            order: None,
            partitions: None,
            window: None,
            given: 0,
            decisions: None,
        }
    }

    fn analyzed(&self, document: DocId, visit: impl FnOnce(&TextAnalysis<'_>)) -> Result<()> {
        let text = &self.texts[document.index()];
        visit(
            &self
                .extended()
                .analyze_text(text, &mut AnalysisScratch::default()),
        );
        Ok(())
    }

    /// Returns the analyzer with the extras that the plan needs.
    fn extended(&self) -> TextAnalyzer {
        let sketcher =
            DocumentSketcher::new(self.analyzer.recipe(), &self.plan, Cpu::detect_best());
        self.analyzer
            .clone()
            .with_extras(sketcher.required_extras())
    }

    fn model_documents(&self) -> Vec<Document> {
        let analyzer = &self.extended();
        let recipe = analyzer.recipe();
        let ngram = recipe.ngram as usize;
        let minhash = crate::sketch::MinHasher::new(&recipe.minhash, Cpu::detect_best());
        let simhash = crate::sketch::SimHasher::new(&recipe.simhash, Cpu::detect_best());
        let mut names: HashMap<Vec<TextToken>, usize> = HashMap::new();
        let mut scratch = AnalysisScratch::default();
        let documents = self.texts.iter().map(|text| {
            let tokens = analyzer.list_tokens(text);
            let mut features = Vec::new();
            let mut counts = HashMap::new();
            for window in tokens.windows(ngram) {
                let next = names.len();
                let name = *names.entry(window.to_vec()).or_insert(next);
                *counts.entry(name).or_default() += 1;
                features.push(name);
            }
            let (characters, words) = (characters(&tokens), tokens.clone());
            features.sort_unstable();
            features.dedup();
            let identity = match (tokens.is_empty(), text.trim()) {
                (true, "") => Identity::Nothing,
                (true, raw) => Identity::Raw(raw.into()),
                (false, _) => Identity::Tokens(tokens),
            };
            let analysis = analyzer.analyze_text(text, &mut scratch);
            let mut signature = vec![0; minhash.slot_count()];
            minhash.write_signature(&analysis, &mut signature);
            let fingerprint = simhash.fingerprint(&analysis).unwrap_or(0);
            let mut smallest = Vec::new();
            crate::sketch::smallest_features(&analysis, minhash.slot_count(), &mut smallest);
            Document {
                identity,
                features,
                counts,
                characters,
                words,
                signature,
                fingerprint,
                sentences: analysis.sentence_signature(),
                smallest,
            }
        });
        documents.collect()
    }

    fn document(&self, rank: usize) -> usize {
        self.order
            .as_ref()
            .map_or(rank, |order| order[rank].index())
    }

    fn len(&self) -> usize {
        self.texts.len()
    }

    // The model.

    /// Returns `true` if the partition and the window let two documents match.
    fn may_meet(&self, a: usize, b: usize) -> bool {
        let of_one_partition = self
            .partitions
            .as_ref()
            .is_none_or(|partitions| partitions[a] == partitions[b]);
        let window = self.window.as_ref();
        of_one_partition
            && window.is_none_or(|(times, width)| (times[a] - times[b]).abs() <= *width)
    }

    /// Returns the similarity and the route of two documents if they match.
    fn related(&self, a: usize, b: usize) -> Option<(f64, Route)> {
        if !self.may_meet(a, b) {
            return None;
        }
        let decisions = self.decisions.as_ref();
        match decisions
            .and_then(|decisions| decisions.decision_between(DocId(a as u32), DocId(b as u32)))
        {
            Some(PairDecision::Same) => Some((1.0, Route::Decision)),
            Some(PairDecision::Different) => None,
            None if self.have_common_difference(a, b) => None,
            None => self.related_by_plan(a, b),
        }
    }

    /// Returns `true` if both documents are decided as different from a third one, and their texts differ.
    fn have_common_difference(&self, a: usize, b: usize) -> bool {
        let Some(decisions) = &self.decisions else {
            return false;
        };
        let differ = |a: usize, b: usize| {
            let decision = decisions.decision_between(DocId(a as u32), DocId(b as u32));
            decision == Some(PairDecision::Different)
        };
        self.documents[a].identity != self.documents[b].identity
            && (0..self.len()).any(|other| differ(a, other) && differ(b, other))
    }

    /// Returns the similarity and the route of two documents if they match by the plan.
    fn related_by_plan(&self, a: usize, b: usize) -> Option<(f64, Route)> {
        if !self.may_meet(a, b) {
            return None;
        }
        let mut decided = self.decided.lock().unwrap();
        *decided
            .entry((a.min(b), a.max(b)))
            .or_insert_with(|| self.decide_pair(&self.documents[a], &self.documents[b]))
    }

    /// Returns the similarity and the route of two documents that may meet if they match.
    fn decide_pair(&self, a: &Document, b: &Document) -> Option<(f64, Route)> {
        if a.identity == b.identity && a.identity != Identity::Nothing {
            return Some((1.0, Route::Exact));
        }
        if a.features.is_empty() || b.features.is_empty() {
            return None;
        }
        let route = self.candidates(a, b)?;
        self.check(a, b, route)
            .map(|similarity| (similarity, route))
    }

    fn candidates(&self, a: &Document, b: &Document) -> Option<Route> {
        let by_bands = || {
            let bands = self.plan.band_plan().unwrap();
            let share = (0..bands.bands).any(|band| {
                (0..bands.rows).all(|row| {
                    let slot = band * bands.rows + row;
                    a.signature[slot] == b.signature[slot]
                })
            });
            (share && equal(a, b) >= bands.min_equal_slots).then_some(Route::MinHash)
        };
        let (less, more) = (
            a.features.len().min(b.features.len()),
            a.features.len().max(b.features.len()),
        );
        match self.plan.match_settings().method {
            MatchMethod::Exact => None,
            MatchMethod::Join => Some(Route::Join),
            MatchMethod::MinHash => by_bands(),
            MatchMethod::SimHash => {
                let differing = a.fingerprint ^ b.fingerprint;
                let distance = self.plan.match_settings().distance;
                let near = match self.plan.match_settings().candidates {
                    CandidateRule::Distance => differing.count_ones() <= distance,
                    CandidateRule::Blocks => {
                        let (bits, count) = (self.plan.fingerprint_bits(), distance + 1);
                        let mut start = 0;
                        (0..count).any(|at| {
                            let end = start + bits / count + u32::from(at < bits % count);
                            let mut block = start..end;
                            start = end;
                            block.all(|bit| differing >> bit & 1 == 0)
                        })
                    }
                };
                near.then_some(Route::SimHash)
            }
            MatchMethod::Sentences => (a.sentences? == b.sentences?).then_some(Route::Sentences),
            MatchMethod::BottomK => {
                let smallest = self.plan.bottom_k_plan().unwrap();
                let first = |document: &Document| {
                    document.smallest[..document.smallest.len().min(smallest.bucket_keys)].to_vec()
                };
                let (in_a, in_b) = (first(a), first(b));
                let meet = in_a.iter().any(|hash| in_b.contains(hash));
                let (shared, of) = sampled(a, b, self.plan.signature_slots());
                let near = if of < self.plan.signature_slots() {
                    shared as f64 / of as f64 >= self.plan.candidate_threshold().get()
                } else {
                    shared >= smallest.min_shared_hashes
                };
                (meet && near).then_some(Route::BottomK)
            }
            MatchMethod::Auto => {
                let join = self.plan.join_plan().unwrap();
                if more <= join.max_partner_features {
                    Some(Route::Join)
                } else if less > join.max_features {
                    by_bands()
                } else {
                    None
                }
            }
        }
    }

    fn check(&self, a: &Document, b: &Document, route: Route) -> Option<f64> {
        let threshold = self.plan.match_settings().threshold.get();
        let shared = shared(&a.features, &b.features);
        let union = a.features.len() + b.features.len() - shared;
        let jaccard = shared as f64 / union as f64;
        let similarity = match (self.plan.match_settings().measure, route) {
            (SimilarityMeasure::Sketch, Route::SimHash) => {
                let bits = self.plan.fingerprint_bits();
                let distance = (a.fingerprint ^ b.fingerprint).count_ones();
                return Some(f64::from(bits - distance) / f64::from(bits));
            }
            (SimilarityMeasure::Sketch, Route::MinHash) => {
                equal(a, b) as f64 / self.plan.signature_slots() as f64
            }
            (SimilarityMeasure::Sketch, Route::Sentences) => return Some(1.0),
            (SimilarityMeasure::Sketch, Route::BottomK) => {
                let (shared, of) = sampled(a, b, self.plan.signature_slots());
                shared as f64 / of as f64
            }
            (SimilarityMeasure::Jaccard | SimilarityMeasure::Sketch, _) => jaccard,
            (measure, route)
                if measure != SimilarityMeasure::Containment
                    && !matches!(route, Route::SimHash | Route::Sentences)
                    && jaccard < self.plan.candidate_threshold().get() =>
            {
                return None;
            }
            (SimilarityMeasure::Cosine, _) => {
                let dot: u64 = a
                    .counts
                    .iter()
                    .map(|(name, count)| count * b.counts.get(name).unwrap_or(&0))
                    .sum();
                let norm =
                    |it: &Document| it.counts.values().map(|count| count * count).sum::<u64>();
                (dot as f64 / ((norm(a) * norm(b)) as f64).sqrt()).min(1.0)
            }
            (
                measure @ (SimilarityMeasure::Levenshtein
                | SimilarityMeasure::Indel
                | SimilarityMeasure::Substring),
                _,
            ) => match self.plan.match_settings().unit {
                EditUnit::Characters => {
                    of_sequences(measure, &a.characters, &b.characters, threshold)
                }
                EditUnit::Words => of_sequences(measure, &a.words, &b.words, threshold),
            },
            (SimilarityMeasure::Containment, _) => {
                let near = jaccard >= self.plan.candidate_threshold().get();
                let by_sketch = matches!(route, Route::MinHash | Route::BottomK);
                if by_sketch && !near {
                    return None;
                }
                shared as f64 / a.features.len().min(b.features.len()) as f64
            }
        };
        (similarity >= threshold).then_some(similarity)
    }

    /// Keeps a document if no kept document before it matches it. A removal names the most similar one.
    fn model_verdicts(&self) -> Vec<Found> {
        let mut kept: Vec<usize> = Vec::new();
        let mut removals = Vec::new();
        for rank in 0..self.len() {
            let document = self.document(rank);
            let mut best: Option<Found> = None;
            for &other in kept.iter().filter(|_| rank >= self.given) {
                if let Some((similarity, route)) = self.related(document, other)
                    && best.is_none_or(|(_, _, before, _)| similarity > before)
                {
                    best = Some((document, other, similarity, route));
                }
            }
            match best {
                Some(best) => removals.push(best),
                None => kept.push(document),
            }
        }
        removals
    }

    /// Returns every pair that is listed, with the earlier document first, and the number of copies.
    fn model_pairs(&self, copies: CopyPairs) -> (Vec<Found>, usize) {
        let documents: Vec<usize> = (0..self.len()).map(|rank| self.document(rank)).collect();
        let is_complete = match copies {
            CopyPairs::All => true,
            CopyPairs::WithEarliest => self.given > 0,
            CopyPairs::None => false,
        };
        let is_copy = |a: usize, b: usize| {
            let [a, b] = [a, b].map(|rank| &self.documents[documents[rank]].identity);
            a == b && *a != Identity::Nothing
        };
        let is_within_reach = |a: usize, b: usize| {
            let both_given = a.max(b) < self.given;
            !both_given && self.may_meet(documents[a], documents[b])
        };
        // Returns `true` if the pair of `rank` and `other` is listed with an earlier document of the
        // same text instead of `rank`.
        let has_earlier = |rank: usize, other: usize| {
            (0..rank).any(|before| is_copy(before, rank) && is_within_reach(before, other))
        };
        let mut pairs = Vec::new();
        for a in 0..self.len() {
            for b in a + 1..self.len() {
                let asked = self.given == 0 || a < self.given && b >= self.given;
                let listed = is_complete
                    || if is_copy(a, b) {
                        copies == CopyPairs::WithEarliest && !has_earlier(a, b)
                    } else {
                        !has_earlier(a, b) && !has_earlier(b, a)
                    };
                if let Some((similarity, route)) = self.related_by_plan(documents[a], documents[b])
                    && asked
                    && listed
                {
                    pairs.push((documents[a], documents[b], similarity, route));
                }
            }
        }
        let copies = (0..self.len()).filter(|&rank| !is_complete && has_earlier(rank, rank));
        (pairs, copies.count())
    }

    /// Returns the first document of every document's component, in the order read.
    fn model_components(&self) -> Vec<usize> {
        let mut component: Vec<usize> = (0..self.len()).collect();
        for b in 0..self.len() {
            for a in 0..b {
                if self.related(self.document(a), self.document(b)).is_some() {
                    let (from, to) = (
                        component[a].max(component[b]),
                        component[a].min(component[b]),
                    );
                    component
                        .iter_mut()
                        .filter(|at| **at == from)
                        .for_each(|at| *at = to);
                }
            }
        }
        let mut of_document = vec![0; self.len()];
        for rank in 0..self.len() {
            of_document[self.document(rank)] = self.document(component[rank]);
        }
        of_document
    }

    // The engine.

    /// Returns the sketches, made in stretches as several threads would.
    fn sketches(&self, feature_budget: usize, stretch: usize) -> DocumentSketches {
        self.sketches_behind(0, feature_budget, stretch)
    }

    /// Returns the sketches, where those of the first `indexed` documents are those of an empty text.
    fn sketches_behind(
        &self,
        indexed: usize,
        feature_budget: usize,
        stretch: usize,
    ) -> DocumentSketches {
        let sketcher =
            DocumentSketcher::new(self.analyzer.recipe(), &self.plan, Cpu::detect_best());
        let mut scratch = AnalysisScratch::default();
        let analyzer = self.extended();
        let mut all = sketcher.new_sketches(feature_budget);
        let empty = vec![String::new(); indexed];
        let texts: Vec<_> = empty.iter().chain(&self.texts[indexed..]).collect();
        for texts in texts.chunks(stretch.max(1)) {
            let mut some = sketcher.new_sketches(feature_budget);
            for text in texts {
                sketcher.add_document(&analyzer.analyze_text(text, &mut scratch), &mut some);
            }
            all.append_sketches(&some);
        }
        all
    }

    fn corpus<'a>(&'a self, sketches: &'a DocumentSketches) -> MatchCorpus<'a> {
        MatchCorpus {
            plan: &self.plan,
            sketches,
            texts: self,
            order: self.order.as_deref(),
            partitions: self.partitions.as_deref(),
            window: self.window.as_ref().map(|(times, width)| TimeWindow {
                times,
                width: *width,
            }),
            known_prefix: self.given,
            decisions: self.decisions.as_ref(),
        }
    }

    fn verdicts(&self, batch_sizes: BatchSizes, sketches: &DocumentSketches) -> Vec<Found> {
        found(&verdicts_in(batch_sizes, &self.corpus(sketches), &[], &|_, _| {}).unwrap())
    }

    /// Returns the verdicts where the matches with the first `indexed` documents are known.
    fn verdicts_beside_index(
        &self,
        batch_sizes: BatchSizes,
        feature_budget: usize,
        indexed: usize,
    ) -> Vec<Found> {
        let known = (self.given..self.len()).filter_map(|document| {
            let mut best: Option<DocumentMatch> = None;
            for other in 0..indexed {
                if let Some((similarity, route)) = self.related(document, other)
                    && best.is_none_or(|best| similarity > best.similarity.get())
                {
                    best = Some(DocumentMatch {
                        with: DocId(other as u32),
                        similarity: Similarity::from_quotient(similarity, 1.0),
                        route,
                    });
                }
            }
            let document = DocId(document as u32);
            best.map(|kept| DocumentRemoval { document, kept })
        });
        let known: Vec<_> = known.collect();
        let sketches = self.sketches_behind(indexed, feature_budget, 64);
        found(&verdicts_in(batch_sizes, &self.corpus(&sketches), &known, &|_, _| {}).unwrap())
    }

    /// Returns the verdicts that continue behind a prefix of the verdicts.
    fn continued_verdicts(
        &self,
        batch_sizes: BatchSizes,
        sketches: &DocumentSketches,
        documents: usize,
    ) -> Vec<Found> {
        let corpus = self.corpus(sketches);
        let whole = verdicts_in(batch_sizes, &corpus, &[], &|_, _| {}).unwrap();
        let rank = |document: DocId| {
            let order = self.order.as_ref();
            let place = |order: &Vec<DocId>| order.iter().position(|id| *id == document).unwrap();
            order.map_or(document.index(), place)
        };
        let removals = whole.removals.iter();
        let prefix = DecidedPrefix {
            documents,
            removals: removals
                .filter(|removal| rank(removal.document) < documents)
                .copied()
                .collect(),
        };
        let (mut told, mut last) = (Vec::new(), 0);
        let outcome = continue_in(batch_sizes, &corpus, prefix, |decided, removals| {
            assert!(decided >= last);
            assert!(
                removals
                    .iter()
                    .all(|removal| rank(removal.document) < decided)
            );
            last = decided;
            told.extend_from_slice(removals);
            ControlFlow::Continue(())
        })
        .unwrap();
        assert_eq!((last, &told), (corpus.len(), &outcome.removals));
        found(&outcome)
    }

    fn pairs(
        &self,
        batch_sizes: BatchSizes,
        sketches: &DocumentSketches,
        copies: CopyPairs,
    ) -> (Vec<Found>, usize) {
        let mut pairs = Vec::new();
        let visit = |pair: MatchingPair| {
            pairs.push((
                pair.a.index(),
                pair.b.index(),
                pair.similarity.get(),
                pair.route,
            ));
            Ok::<_, Error>(())
        };
        let copies =
            find_pairs_with_sizes(batch_sizes, &self.corpus(sketches), copies, visit, &|_| {});
        (pairs, copies.unwrap())
    }

    fn components(&self, batch_sizes: BatchSizes, sketches: &DocumentSketches) -> Vec<usize> {
        let corpus = self.corpus(sketches);
        let outcome = verdicts_in(batch_sizes, &corpus, &[], &|_, _| {}).unwrap();
        let components = components_in(batch_sizes, &corpus, &outcome).unwrap();
        components.into_iter().map(DocId::index).collect()
    }

    /// Compares the engine with the model, with several batch sizes.
    fn check_all(&self, what: &str) {
        let verdicts = self.model_verdicts();
        self.check_laws(&verdicts, what);
        let pairs = COPY_PAIRS.map(|copies| self.model_pairs(copies));
        let components = self.model_components();
        for (batch_sizes, feature_budget, stretch) in [
            (BatchSizes::default(), 1 << 20, 64),
            (TINY, 0, 5),
            (SMALL, 60, 1000),
        ] {
            let sketches = self.sketches(feature_budget, stretch);
            assert_eq!(
                self.verdicts(batch_sizes, &sketches),
                verdicts,
                "verdicts of {what}"
            );
            // Documents of an index are numbered in their order.
            let mut ranks = 0..self.given;
            let in_order = ranks.all(|rank| self.document(rank) == rank);
            for indexed in [self.given, self.given / 2]
                .into_iter()
                .filter(|_| in_order)
            {
                assert_eq!(
                    self.verdicts_beside_index(batch_sizes, feature_budget, indexed),
                    verdicts,
                    "verdicts of {what} beside an index of {indexed}"
                );
            }
            let documents = sketches.len();
            for decided in [1, documents / 3, documents - documents / 10, documents] {
                assert_eq!(
                    self.continued_verdicts(batch_sizes, &sketches, decided.min(documents)),
                    verdicts,
                    "verdicts of {what}, continued behind {decided}"
                );
            }
            for (copies, pairs) in COPY_PAIRS.into_iter().zip(&pairs) {
                let found = self.pairs(batch_sizes, &sketches, copies);
                assert_eq!(found, *pairs, "pairs of {what}, {copies:?}");
            }
            assert_eq!(
                self.components(batch_sizes, &sketches),
                components,
                "components of {what}"
            );
        }
    }

    /// Checks the laws of verdicts, which follow from the relation of matching alone.
    fn check_laws(&self, verdicts: &[Found], what: &str) {
        let removed = |document: usize| verdicts.iter().any(|&(it, ..)| it == document);
        let kept: Vec<usize> = (0..self.len())
            .map(|rank| self.document(rank))
            .filter(|&it| !removed(it))
            .collect();
        for (at, &b) in kept.iter().enumerate().filter(|&(at, _)| at >= self.given) {
            for &a in &kept[..at] {
                assert_eq!(self.related(a, b), None, "both are kept: {what}");
            }
        }
        for &(document, with, similarity, route) in verdicts {
            assert!(!removed(with), "the named one is kept: {what}");
            assert_eq!(
                self.related(document, with),
                Some((similarity, route)),
                "{what}"
            );
        }
    }
}

const COPY_PAIRS: [CopyPairs; 3] = [CopyPairs::WithEarliest, CopyPairs::All, CopyPairs::None];

/// Returns the number of common elements of two ascending lists.
fn shared(mut a: &[usize], mut b: &[usize]) -> usize {
    let mut shared = 0;
    while let ([x, rest_of_a @ ..], [y, rest_of_b @ ..]) = (a, b) {
        if x == y {
            shared += 1;
        }
        (a, b) = (
            if x <= y { rest_of_a } else { a },
            if y <= x { rest_of_b } else { b },
        );
    }
    shared
}

/// Returns how many of the smallest hashes of the union both documents have, and how many hashes these
/// are.
fn sampled(a: &Document, b: &Document, kept: usize) -> (usize, usize) {
    let mut union = [&a.smallest[..], &b.smallest].concat();
    union.sort_unstable();
    union.dedup();
    union.truncate(kept);
    let both = |hash: &&u64| a.smallest.contains(hash) && b.smallest.contains(hash);
    (union.iter().filter(both).count(), union.len())
}

fn equal(a: &Document, b: &Document) -> usize {
    a.signature
        .iter()
        .zip(&b.signature)
        .filter(|(a, b)| a == b)
        .count()
}

fn found(outcome: &DedupOutcome) -> Vec<Found> {
    let found = |removal: &DocumentRemoval| {
        let DocumentMatch {
            with,
            similarity,
            route,
        } = removal.kept;
        (
            removal.document.index(),
            with.index(),
            similarity.get(),
            route,
        )
    };
    outcome.removals.iter().map(found).collect()
}

/// Batch sizes so small that nothing fits into one batch.
const TINY: BatchSizes = BatchSizes {
    keys: 300,
    rare: 0,
    crowded_keys: &[1],
    key_cost: None,
    crowded: 2,
    first_block: 1,
    first_pairs: 1,
    block: 9,
    few: 2,
    pairs: 1,
    near: 0,
    neighbours: 0,
    remembered: 0,
    refining: 0.0,
    dense_above: 1,
    price: 0,
    together: 2,
    scanned: usize::MAX,
};

const SMALL: BatchSizes = BatchSizes {
    keys: 1500,
    rare: 1,
    crowded_keys: &[2, 5],
    key_cost: Some(0.1),
    crowded: 6,
    first_block: 5,
    first_pairs: 2,
    block: 40,
    few: 7,
    pairs: 50,
    near: 500,
    neighbours: 1,
    remembered: 900,
    refining: 1.0,
    dense_above: 6,
    price: 1,
    together: 3,
    scanned: 0,
};

/// Returns the text of a list of words, given as numbers.
fn sentence(words: &[u64]) -> String {
    words
        .iter()
        .map(|word| format!("w{word}"))
        .collect::<Vec<_>>()
        .join(" ")
}

fn new_text(random: &mut Random) -> Vec<u64> {
    let length = match random.below(10) {
        0..3 => 1 + random.below(6),
        3..6 => 10 + random.below(50),
        6..8 => 60 + random.below(30),
        _ => 90 + random.below(120),
    };
    (0..length)
        .map(|_| {
            if random.chance(20) {
                random.next() % 40
            } else {
                random.next() % 100_000
            }
        })
        .collect()
}

fn changed(random: &mut Random, words: &[u64]) -> Vec<u64> {
    let mut words = words.to_vec();
    let rarity = random.one_of(&[3, 8, 20]);
    let changes = random.below(2 + words.len() / rarity);
    for _ in 0..changes {
        let at = random.below(words.len());
        match random.below(3) {
            0 => words[at] = random.next() % 100_000,
            1 => words.insert(at, random.next() % 100_000),
            _ if words.len() > 1 => {
                words.remove(at);
            }
            _ => {}
        }
    }
    if random.chance(10) {
        words.truncate(1 + words.len() * 9 / 10);
    }
    words
}

/// Returns texts in clusters: copies, copies that differ in what normalisation removes, changed texts,
/// the same words in another order, and texts that are too short or empty.
fn clustered(random: &mut Random, count: usize) -> Vec<String> {
    let mut originals: Vec<Vec<u64>> = Vec::new();
    let mut texts = Vec::new();
    while texts.len() < count {
        if originals.is_empty() || random.chance(30) {
            originals.push(new_text(random));
        }
        let at = random.below(originals.len());
        let words = originals[at].clone();
        let text = match random.below(20) {
            0 => sentence(&words),
            1 => sentence(&words).to_uppercase().replace(' ', ", "),
            2 => {
                let mut words = words;
                random.shuffle(&mut words);
                sentence(&words)
            }
            3 => {
                let mut words = words;
                words.sort_unstable();
                sentence(&words)
            }
            4 => random.one_of(&["", " ", "\n\t"]).to_owned(),
            5 => random.one_of(&["!", "! ", "?", "😀", "。。"]).to_owned(),
            6 => random
                .one_of(&["word", "Word.", "字", "other", "two words", "words two"])
                .to_owned(),
            7 => sentence(&[words.clone(), words].concat()),
            _ => {
                let words = changed(random, &words);
                if random.chance(30) {
                    originals[at] = words.clone();
                }
                sentence(&words)
            }
        };
        texts.push(text);
    }
    random.shuffle(&mut texts);
    texts
}

/// Returns the text with a full stop after some words, always the same ones.
fn in_sentences(text: &str) -> String {
    let ends = |word: &&str| word.ends_with(['3', '7']);
    let words = text.split(' ').map(|word| {
        if ends(&word) {
            format!("{word}.")
        } else {
            word.to_owned()
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

fn settings(
    threshold: f64,
    method: MatchMethod,
    measure: SimilarityMeasure,
    distance: u32,
) -> MatchSettings {
    MatchSettings {
        method,
        threshold: Threshold::new(threshold).unwrap(),
        distance,
        measure,
        ..MatchSettings::default()
    }
}

/// Returns a run of random texts with random options.
fn random_run(random: &mut Random, settings: MatchSettings, count: usize) -> Run {
    let analyzer = &ANALYZERS[random.below(2)];
    let mut texts = clustered(random, count);
    if settings.method == MatchMethod::Sentences {
        texts.iter_mut().for_each(|text| *text = in_sentences(text));
    }
    let mut run = Run::new(analyzer, settings, texts);
    if random.chance(40) {
        let mut order: Vec<_> = (0..count as u32).map(DocId).collect();
        random.shuffle(&mut order);
        run.order = Some(order);
    }
    if random.chance(25) {
        run.partitions = Some((0..count).map(|_| random.next() % 2).collect());
    }
    if random.chance(30) {
        let times: Vec<f64> = (0..count).map(|_| random.below(60) as f64 / 2.0).collect();
        if random.chance(50) {
            let mut order: Vec<_> = (0..count as u32).map(DocId).collect();
            order.sort_by(|a, b| times[a.index()].total_cmp(&times[b.index()]));
            run.order = Some(order);
        }
        run.window = Some((times, 7.5));
    }
    if random.chance(30) {
        run.given = random.below(count + 1);
    }
    if random.chance(50) {
        run.decisions = Some(random_decisions(random, &run));
    }
    run
}

/// Returns decisions on random texts: some that match and some that do not, each decided in either way.
fn random_decisions(random: &mut Random, run: &Run) -> PairDecisions {
    let mut decisions = PairDecisions::default();
    let first_of = |at: usize| {
        let equal = |it: &String| *it == run.texts[at];
        run.texts.iter().position(equal).unwrap() as u32
    };
    for _ in 0..random.below(1 + run.len() / 4) {
        let a = random.below(run.len());
        let related: Vec<usize> = (0..run.len())
            .filter(|&b| run.related_by_plan(a, b).is_some())
            .collect();
        let b = if !related.is_empty() && random.chance(60) {
            random.one_of(&related)
        } else {
            random.below(run.len())
        };
        let decision = random.one_of(&[PairDecision::Same, PairDecision::Different]);
        let (a, b) = (first_of(a), first_of(b));
        if a != b {
            decisions.decide_classes(a, b, decision);
            for (at, text) in run.texts.iter().enumerate() {
                for class in [a, b] {
                    if *text == run.texts[class as usize] {
                        decisions.set_class(DocId(at as u32), class);
                    }
                }
            }
        }
    }
    decisions
}

/// A person overrules the plan in both directions, and the verdicts follow from the corrected relation.
#[test]
fn decisions_overrule_the_plan() {
    let texts = [pair_of(9, 1, 1), pair_of(0, 40, 50)].concat();
    let mut run = Run::new(
        &ANALYZERS[0],
        settings(0.5, MatchMethod::Auto, SimilarityMeasure::Jaccard, 3),
        texts,
    );
    let named = |run: &Run| -> Vec<(usize, usize)> {
        let verdicts = run.verdicts(BatchSizes::default(), &run.sketches(0, 10));
        verdicts
            .iter()
            .map(|verdict| (verdict.0, verdict.1))
            .collect()
    };
    assert_eq!(named(&run), [(1, 0)]);
    let mut decisions = PairDecisions::default();
    (0..4).for_each(|at| decisions.set_class(DocId(at), at));
    decisions.decide_classes(0, 1, PairDecision::Different);
    decisions.decide_classes(3, 2, PairDecision::Same);
    decisions.decide_classes(2, 1, PairDecision::Same);
    run.decisions = Some(decisions);
    assert_eq!(named(&run), [(2, 1)]);
    run.check_all("decisions");
}

/// Three hundred documents of which each is decided as different from one are all kept, and their repeats are not.
#[test]
fn documents_that_differ_from_one_differ_from_each_other() {
    const COUNT: usize = 300;
    let words: String = (0..40).map(|word| format!("w{word} ")).collect();
    let mut texts: Vec<String> = (0..=COUNT).map(|at| format!("{words}n{at}")).collect();
    texts.extend((1..=COUNT).map(|at| format!("{words}N{at}!")));
    let mut run = Run::without_model(
        &ANALYZERS[0],
        settings(0.75, MatchMethod::Auto, SimilarityMeasure::Jaccard, 3),
        texts,
    );
    let verdicts = |run: &Run| run.verdicts(BatchSizes::default(), &run.sketches(0, run.len()));
    assert_eq!(verdicts(&run).len(), 2 * COUNT);
    let mut decisions = PairDecisions::default();
    for at in 0..=COUNT as u32 {
        decisions.set_class(DocId(at), at);
        if at > 0 {
            decisions.decide_classes(at, 0, PairDecision::Different);
        }
    }
    run.decisions = Some(decisions);
    let verdicts = verdicts(&run);
    let named: Vec<(usize, usize)> = verdicts
        .iter()
        .map(|verdict| (verdict.0, verdict.1))
        .collect();
    // The repeats were not decided on, and match the documents that they repeat best.
    let repeats = (1..=COUNT).map(|at| (COUNT + at, at));
    assert_eq!(named, repeats.collect::<Vec<_>>());
}

/// Returns the settings with variations of those that the method and the measure leave open.
fn varied(settings: MatchSettings, round: usize) -> MatchSettings {
    MatchSettings {
        unit: [EditUnit::Words, EditUnit::Characters][round % 2],
        candidates: [CandidateRule::Distance, CandidateRule::Blocks][round / 2 % 2],
        sentences: 1 + round % 3,
        ..settings
    }
}

#[test]
fn every_method_and_measure_equals_the_model() {
    let mut random = Random(1);
    for method in MatchMethod::ALL {
        for measure in SimilarityMeasure::ALL {
            for (threshold, distance) in [(0.8, 3), (0.55, 12)] {
                let settings = settings(threshold, method, measure, distance);
                for round in choose_effort(vec![random.below(4)], (0..4).collect()) {
                    let settings = varied(settings, round);
                    // The plain table is slow for long texts.
                    let slow = matches!(
                        measure,
                        SimilarityMeasure::Levenshtein
                            | SimilarityMeasure::Indel
                            | SimilarityMeasure::Substring
                    );
                    let run = random_run(&mut random, settings, if slow { 35 } else { 70 });
                    run.check_all(&format!("{settings:?}, round {round}"));
                }
            }
        }
    }
}

#[test]
fn random_settings_equal_the_model() {
    for seed in 0..choose_effort(50, 150) {
        let mut random = Random(seed << 32);
        let threshold = random.one_of(&[0.3, 0.5, 0.6, 0.7, 0.75, 0.8, 0.9, 0.95, 1.0]);
        let method = match threshold {
            0.3 => MatchMethod::Join,
            _ => random.one_of(&MatchMethod::ALL),
        };
        let distance = random.one_of(&[0, 1, 3, 8, 20]);
        let settings = settings(
            threshold,
            method,
            random.one_of(&SimilarityMeasure::ALL),
            distance,
        );
        let settings = varied(settings, random.below(12));
        let count = random.one_of(&[0, 1, 2, 3, 10, 31, 32, 33, 60, 100]);
        let run = random_run(&mut random, settings, count);
        run.check_all(&format!("seed {seed}: {settings:?}, {count} documents"));
    }
}

#[test]
fn block_borders_change_no_verdict() {
    let mut random = Random(2);
    // Blocks end at 32, 96, 224, 480, 992, 2016 and 4064.
    for count in [95, 96, 97, 223, 225, 480, 993, 2015, 2017, 4100] {
        let settings = settings(0.7, MatchMethod::Join, SimilarityMeasure::Jaccard, 3);
        let mut texts: Vec<String> = Vec::new();
        for at in 0..count {
            let text = match random.below(4) {
                0 if at > 0 => {
                    // Usually a neighbour, sometimes a distant document.
                    let back = if random.chance(80) {
                        1 + random.below(at.min(40))
                    } else {
                        1 + random.below(at)
                    };
                    let mut words: Vec<&str> = texts[at - back].split(' ').collect();
                    words[0] = "changed";
                    words.join(" ")
                }
                1 if at > 0 => texts[random.below(at)].to_uppercase(),
                _ => sentence(&(0..8).map(|_| random.next() % 5000).collect::<Vec<_>>()),
            };
            texts.push(text);
        }
        let run = Run::new(&ANALYZERS[0], settings, texts);
        let expected = run.model_verdicts();
        assert!(expected.len() > count / 8);
        assert_eq!(
            run.verdicts(BatchSizes::default(), &run.sketches(1 << 20, 700)),
            expected
        );
    }
}

/// Returns documents of one template: `common` words that all have, and `own` further words each.
fn template(random: &mut Random, count: usize, common: usize, own: usize) -> Vec<String> {
    let shared: Vec<u64> = (0..common as u64).collect();
    (0..count)
        .map(|_| {
            let mut words = shared.clone();
            let own = 1 + random.below(own);
            // From a small vocabulary, so that some documents share much beyond the template.
            words.extend((0..own).map(|_| 1000 + random.next() % 60));
            sentence(&words)
        })
        .collect()
}

#[test]
fn dense_buckets_lose_no_pair() {
    let mut random = Random(3);
    for (method, measure, threshold) in [
        (MatchMethod::MinHash, SimilarityMeasure::Jaccard, 0.9),
        (MatchMethod::Auto, SimilarityMeasure::Jaccard, 0.8),
        (MatchMethod::MinHash, SimilarityMeasure::Containment, 0.9),
        (MatchMethod::MinHash, SimilarityMeasure::Sketch, 0.9),
    ] {
        let settings = settings(threshold, method, measure, 3);
        let run = Run::new(&ANALYZERS[0], settings, template(&mut random, 500, 90, 40));
        let bands = run.plan.band_plan().unwrap();
        let largest = (0..bands.bands)
            .map(|band| {
                let mut buckets: HashMap<&[u32], usize> = HashMap::new();
                for document in &run.documents {
                    let rows = &document.signature[band * bands.rows..][..bands.rows];
                    *buckets.entry(rows).or_default() += 1;
                }
                buckets.into_values().max().unwrap()
            })
            .max();
        let crowded = BatchSizes {
            crowded: 80,
            refining: 0.0,
            ..BatchSizes::default()
        };
        assert!(
            largest > Some(80),
            "the test needs a crowded bucket: {largest:?}"
        );
        let expected = run.model_verdicts();
        assert!(expected.len() > 50, "{settings:?}: {}", expected.len());
        let sketches = run.sketches(1 << 20, 1000);
        for batch_sizes in [
            crowded,
            BatchSizes {
                keys: 500,
                ..crowded
            },
            BatchSizes {
                refining: f64::INFINITY,
                ..crowded
            },
            BatchSizes {
                refining: 1.0,
                ..crowded
            },
            BatchSizes {
                crowded: usize::MAX,
                ..crowded
            },
        ] {
            assert_eq!(
                run.verdicts(batch_sizes, &sketches),
                expected,
                "{settings:?}"
            );
        }
        let pairs = run.model_pairs(CopyPairs::WithEarliest);
        assert!(pairs.0.len() > 500, "{settings:?}: {}", pairs.0.len());
        for refining in [0.0, 1.0, f64::INFINITY] {
            let batch_sizes = BatchSizes {
                refining,
                ..crowded
            };
            assert_eq!(
                run.pairs(batch_sizes, &sketches, CopyPairs::WithEarliest),
                pairs,
                "{settings:?}"
            );
        }
    }
}

/// Documents of more than a thousand features each, many of them their own, and some texts twice.
/// Features that occur once, keys of indexing prefixes and bitmaps are learned in several parts.
#[test]
fn long_template_texts_equal_the_model() {
    let mut random = Random(8);
    let mut number = 10_000;
    let mut texts: Vec<String> = Vec::new();
    let count = choose_effort(120, 240);
    for at in 0..count {
        if at % 5 == 4 {
            texts.push(texts[random.below(texts.len())].clone());
            continue;
        }
        let mut words: Vec<u64> = (0..1100).collect();
        for _ in 0..30 + random.below(160) {
            words[random.below(1100)] = number;
            number += 1;
        }
        texts.push(sentence(&words));
    }
    let settings = settings(0.75, MatchMethod::MinHash, SimilarityMeasure::Jaccard, 3);
    let run = Run::new(&ANALYZERS[0], settings, texts);
    let sizes = run.documents.iter().map(|document| document.features.len());
    assert!(sizes.min() > Some(1000));
    let (expected, pairs) = (
        run.model_verdicts(),
        run.model_pairs(CopyPairs::WithEarliest),
    );
    let equal = expected
        .iter()
        .filter(|removal| removal.3 == Route::Exact)
        .count();
    assert!(
        equal > count / 24 && expected.len() > equal + count / 5,
        "{equal}"
    );
    let sketches = run.sketches(1 << 20, 1000);
    for keys in [200, 3000, 1 << 20] {
        let batch_sizes = BatchSizes {
            crowded: 20,
            rare: 0,
            refining: 0.0,
            keys,
            ..BatchSizes::default()
        };
        for scanned in [0, 8, usize::MAX] {
            let batch_sizes = BatchSizes {
                scanned,
                ..batch_sizes
            };
            assert_eq!(run.verdicts(batch_sizes, &sketches), expected, "{keys}");
            assert_eq!(
                run.pairs(batch_sizes, &sketches, CopyPairs::WithEarliest),
                pairs,
                "{keys}"
            );
        }
    }
}

/// Texts of all lengths that contain one another: every pair at the threshold is found, with windows,
/// partitions and known documents.
#[test]
fn containment_finds_every_pair() {
    let mut far = 0;
    for (at, threshold) in [0.5, 0.9, 1.0].into_iter().enumerate() {
        for (analyzer, method) in [(0, MatchMethod::Auto), (1, MatchMethod::Join)] {
            let settings = settings(threshold, method, SimilarityMeasure::Containment, 3);
            let seed = 10 * at as u64 + analyzer as u64;
            let count = choose_effort(80, 250);
            let texts = lookalike_oracle::generate::generate_contained(count, seed);
            let texts = texts.into_iter().map(|(_, text)| text).collect();
            let mut run = Run::new(&ANALYZERS[analyzer], settings, texts);
            run.check_all(&format!("containment {threshold} {method:?}"));
            let (pairs, _) = run.model_pairs(CopyPairs::None);
            let size = |document: usize| run.documents[document].features.len();
            let is_far = |&&(a, b, ..): &&Found| {
                let (less, more) = (size(a).min(size(b)), size(a).max(size(b)));
                more > 3 * less && less > 20
            };
            far += pairs.iter().filter(is_far).count();
            let mut random = Random(seed);
            run.partitions = Some((0..count).map(|_| random.next() % 2).collect());
            run.given = 40;
            run.check_all("containment with partitions and known documents");
            let times = (0..count).map(|_| random.below(60) as f64).collect();
            run.window = Some((times, 20.0));
            run.given = 0;
            run.check_all("containment with partitions and a window");
            run.partitions = None;
            run.order = Some((0..count).rev().map(|at| DocId(at as u32)).collect());
            run.check_all("containment with a window and an order");
        }
    }
    assert!(far > choose_effort(10, 100), "{far}");
}

/// For every two sizes with as few shared features as the threshold requires, all of them last in the
/// order: the first shared one is still in both prefixes. With one feature fewer it need not be.
#[test]
fn prefixes_collide_at_threshold_rarely_below() {
    for hundredths in (5..=100).step_by(5).chain([1, 33, 67, 99]) {
        let threshold = Threshold::new(f64::from(hundredths) / 100.0).unwrap();
        let bound = OverlapBound::Jaccard(threshold);
        for smaller in 1..80 {
            let of_smaller = PrefixLengths::from_feature_count(smaller, bound);
            assert!(of_smaller.indexing <= of_smaller.probing);
            for larger in smaller..80 {
                let shared = threshold.least_shared(smaller + larger).max(1);
                if shared > smaller {
                    continue;
                }
                let of_larger = PrefixLengths::from_feature_count(larger, bound);
                assert!(smaller - shared < of_smaller.indexing, "{smaller} {larger}");
                assert!(larger - shared < of_larger.probing, "{smaller} {larger}");
                if smaller == larger && shared > 1 {
                    assert_eq!(of_smaller.indexing, smaller - shared + 1);
                }
                if smaller == shared {
                    let largest = !threshold.admits_ratio(smaller, larger + 1);
                    assert!(!largest || of_larger.probing == larger - shared + 1 || shared == 1);
                }
            }
        }
    }
}

/// A survey that compares everything.
const ENDLESS: SurveyLimits = SurveyLimits {
    candidates: u64::MAX,
    verified: usize::MAX,
    steps: u64::MAX,
};

/// Documents of one template a little below the threshold share bands or rare features, and few of the
/// 4.5 million pairs are compared.
#[test]
fn texts_of_one_template_are_rarely_compared() {
    let mut random = Random(7);
    for (method, anywhere, own) in [
        (MatchMethod::Join, false, 29),
        (MatchMethod::MinHash, false, 35),
        (MatchMethod::MinHash, true, 20),
        (MatchMethod::MinHash, true, 30),
    ] {
        let mut number = 1000;
        let texts = (0..3000).map(|_| {
            let mut words: Vec<u64> = (0..200).collect();
            for at in 0..own {
                let place = if anywhere { random.below(200) } else { 5 * at };
                words[place] = number;
                number += 1;
            }
            sentence(&words)
        });
        let settings = settings(0.75, method, SimilarityMeasure::Jaccard, 3);
        let run = Run::without_model(&ANALYZERS[0], settings, texts.collect());
        let sketches = run.sketches(1 << 20, 100);
        // With bitmaps from the start, and with those that must pay off first. Of 4.5 million pairs,
        // few are compared for each of 3,000 documents.
        let usual = BatchSizes::default();
        let at_once = BatchSizes { price: 0, ..usual };
        for followed in [SurveyKind::Pairs, SurveyKind::Verdicts] {
            for (batch_sizes, most) in [(at_once, 200), (usual, 3000 * 40)] {
                let corpus = run.corpus(&sketches);
                let survey = survey_with_sizes(batch_sizes, &corpus, followed, ENDLESS).unwrap();
                let compared: u64 = survey.by_route.iter().map(|(_, of)| of.pairs).sum();
                let of = format!("{method:?} {anywhere} {own} {followed:?}");
                assert!(compared <= most, "{of}: {compared} of {most}");
            }
        }
    }
}

#[test]
fn template_larger_than_a_bucket_loses_no_pair() {
    let mut random = Random(4);
    let settings = settings(0.8, MatchMethod::Auto, SimilarityMeasure::Jaccard, 3);
    let run = Run::new(
        &ANALYZERS[0],
        settings,
        template(&mut random, 1500, 120, 60),
    );
    assert!(
        run.documents
            .iter()
            .all(|document| document.features.len() > 100)
    );
    let expected = run.model_verdicts();
    assert_eq!(
        run.verdicts(BatchSizes::default(), &run.sketches(0, 100)),
        expected
    );
}

#[test]
fn results_do_not_depend_on_threads() {
    let mut random = Random(5);
    for method in [
        MatchMethod::Auto,
        MatchMethod::MinHash,
        MatchMethod::SimHash,
        MatchMethod::Join,
    ] {
        let settings = settings(0.7, method, SimilarityMeasure::Jaccard, 6);
        let run = Run::new(&ANALYZERS[1], settings, clustered(&mut random, 700));
        let sketches = run.sketches(1 << 20, 100);
        let by_threads = [1, 2, 8].map(|threads| {
            let pool = rayon::ThreadPoolBuilder::new()
                .num_threads(threads)
                .build()
                .unwrap();
            pool.install(|| {
                let batch_sizes = BatchSizes {
                    crowded: 20,
                    keys: 300,
                    ..BatchSizes::default()
                };
                (
                    run.verdicts(batch_sizes, &sketches),
                    run.pairs(batch_sizes, &sketches, CopyPairs::WithEarliest),
                    run.components(batch_sizes, &sketches),
                )
            })
        });
        assert!(by_threads[0].0.len() > 100);
        assert!(
            by_threads[1..].iter().all(|other| *other == by_threads[0]),
            "{method:?}"
        );
    }
}

#[test]
fn maximum_threshold_removes_equal_texts_only() {
    let mut random = Random(6);
    for method in MatchMethod::ALL {
        let mut texts: Vec<String> = (0..200)
            .map(|_| {
                let words = new_text(&mut random);
                // Two equal words could give two texts the same set of words.
                sentence(
                    &words
                        .iter()
                        .map(|&word| word + random.next() % 1000 * 1_000_000)
                        .collect::<Vec<_>>(),
                )
            })
            .collect();
        let copies: Vec<String> = (0..50).map(|at| texts[at * 3].to_uppercase()).collect();
        texts.extend(copies);
        let settings = settings(1.0, method, SimilarityMeasure::Jaccard, 10);
        let run = Run::new(&ANALYZERS[1], settings, texts);
        let verdicts = run.verdicts(BatchSizes::default(), &run.sketches(1 << 20, 100));
        assert_eq!(verdicts, run.model_verdicts());
        assert!(verdicts.len() >= 50);
        for (document, with, similarity, _) in verdicts {
            assert_eq!(similarity, 1.0);
            assert_eq!(
                run.documents[document].features,
                run.documents[with].features
            );
        }
    }
}

/// Returns two texts with `shared` common words, and `a` and `b` further words of their own.
fn pair_of(shared: u64, a: u64, b: u64) -> [String; 2] {
    let common: Vec<u64> = (0..shared).collect();
    let own = |from: u64, count: u64| (from..from + count).collect::<Vec<u64>>();
    [
        sentence(&[common.clone(), own(10_000, a)].concat()),
        sentence(&[common, own(20_000, b)].concat()),
    ]
}

#[test]
fn one_feature_decides_at_the_threshold() {
    let matches = |settings: MatchSettings, [a, b]: [String; 2]| {
        let run = Run::new(&ANALYZERS[0], settings, vec![a, b]);
        let expected = run.model_verdicts();
        for budget in [0, 1 << 20] {
            assert_eq!(
                run.verdicts(BatchSizes::default(), &run.sketches(budget, 2)),
                expected
            );
        }
        expected.first().map(|&(_, _, similarity, _)| similarity)
    };
    // A union of 100 features, in both orders of size and on both sides of the border of the join.
    for (threshold, least) in [(0.8, 80), (0.7, 70), (0.9, 90), (0.29, 29)] {
        for scale in [1, 2] {
            let of = |shared: u64| {
                let rest = 100 - shared;
                [
                    pair_of(shared, rest, 0),
                    pair_of(shared, 0, rest),
                    pair_of(shared, rest / 2, rest - rest / 2),
                ]
                .map(|[a, b]| {
                    if scale == 1 {
                        [a, b]
                    } else {
                        [format!("{a} {a}"), format!("{b} {b}")]
                    }
                })
            };
            let settings = settings(threshold, MatchMethod::Join, SimilarityMeasure::Jaccard, 3);
            for pair in of(least - 1) {
                assert_eq!(matches(settings, pair), None, "{threshold}");
            }
            for pair in of(least) {
                assert_eq!(
                    matches(settings, pair),
                    Some(least as f64 / 100.0),
                    "{threshold}"
                );
            }
            for pair in of(least + 1) {
                assert_eq!(
                    matches(settings, pair),
                    Some((least + 1) as f64 / 100.0),
                    "{threshold}"
                );
            }
        }
    }
    // Across the border of `auto`: documents of 64 features are short, and the join reaches 81.
    let auto = settings(0.8, MatchMethod::Auto, SimilarityMeasure::Jaccard, 3);
    assert_eq!(matches(auto, pair_of(64, 0, 16)), Some(0.8));
    assert_eq!(matches(auto, pair_of(63, 1, 16)), None);
    assert_eq!(matches(auto, pair_of(64, 0, 17)), None);
    assert_eq!(matches(auto, pair_of(64, 1, 15)), Some(0.8));
    assert_eq!(matches(auto, pair_of(65, 0, 16)), Some(65.0 / 81.0));
    // Containment of two sets of equal size.
    let containment = settings(0.8, MatchMethod::Join, SimilarityMeasure::Containment, 3);
    assert_eq!(matches(containment, pair_of(80, 20, 20)), Some(0.8));
    assert_eq!(matches(containment, pair_of(79, 21, 21)), None);
    assert_eq!(matches(containment, pair_of(81, 19, 19)), Some(0.81));
    // Containment in a longer text, whatever its length is.
    for more in [20, 50, 200, 1900] {
        assert_eq!(matches(containment, pair_of(80, 20, more)), Some(0.8));
        assert_eq!(matches(containment, pair_of(79, 21, more + 1)), None);
        assert_eq!(matches(containment, pair_of(80, more, 20)), Some(0.8));
    }
}

#[test]
fn one_bit_decides_at_the_distance() {
    let mut random = Random(7);
    let texts = clustered(&mut random, 250);
    let mut found = Vec::new();
    for distance in [0, 1, 2, 3, 4, 10, 31, 62, 63] {
        let settings = settings(
            0.1,
            MatchMethod::SimHash,
            SimilarityMeasure::Sketch,
            distance,
        );
        let run = Run::new(&ANALYZERS[0], settings, texts.clone());
        let expected = run.model_pairs(CopyPairs::WithEarliest);
        assert_eq!(
            run.pairs(
                BatchSizes::default(),
                &run.sketches(0, 100),
                CopyPairs::WithEarliest
            ),
            expected
        );
        found.push(expected.0.len());
    }
    assert!(found.is_sorted() && found[1] < found[4], "{found:?}");
}

#[test]
fn fingerprints_of_every_width_are_searched() {
    let mut random = Random(8);
    let texts = clustered(&mut random, 120);
    for bits in [8, 31, 64, 65, 127, 128] {
        let mut recipe = Recipe::built_in("words-1").unwrap();
        recipe.simhash.bits = bits;
        let analyzer: &'static TextAnalyzer = Box::leak(Box::new(TextAnalyzer::new(&recipe)));
        for distance in [0, 1, 5, bits - 1] {
            let settings = settings(
                0.6,
                MatchMethod::SimHash,
                SimilarityMeasure::Jaccard,
                distance,
            );
            let run = Run::new(analyzer, settings, texts.clone());
            let found = run.verdicts(BatchSizes::default(), &run.sketches(0, 100));
            assert_eq!(found, run.model_verdicts(), "{distance} of {bits} bits");
        }
    }
}

#[test]
fn join_finds_every_pair() {
    let mut random = Random(9);
    for threshold in [0.05, 0.5, 0.8, 1.0] {
        let settings = settings(threshold, MatchMethod::Join, SimilarityMeasure::Jaccard, 3);
        let texts = [
            clustered(&mut random, 150),
            template(&mut random, 70, 20, 20),
        ]
        .concat();
        let run = Run::new(&ANALYZERS[0], settings, texts);
        let pairs = run.model_pairs(CopyPairs::WithEarliest);
        assert!(pairs.0.len() > 10, "{threshold}: {}", pairs.0.len());
        for batch_sizes in [BatchSizes::default(), SMALL] {
            assert_eq!(
                run.pairs(batch_sizes, &run.sketches(0, 50), CopyPairs::WithEarliest),
                pairs,
                "{threshold}"
            );
        }
    }
}

#[test]
fn bands_reach_the_predicted_recall() {
    const PAIRS: usize = 600;
    for (threshold, union) in [(0.8, 150), (0.8, 400), (0.6, 200), (0.9, 200), (0.998, 500)] {
        let settings = settings(
            threshold,
            MatchMethod::MinHash,
            SimilarityMeasure::Jaccard,
            3,
        );
        let shared = (threshold * f64::from(union)).round() as u64;
        let own = union as u64 - shared;
        let mut texts = Vec::new();
        for pair in 0..PAIRS as u64 / if union >= 500 { 2 } else { 1 } {
            let word = |at: u64| mix_bits(pair << 32 | at) >> 1;
            let common: Vec<u64> = (0..shared).map(word).collect();
            let a: Vec<u64> = (shared..shared + own / 2).map(word).collect();
            let b: Vec<u64> = (shared + own / 2..union as u64).map(word).collect();
            texts.push(sentence(&[common.clone(), a].concat()));
            texts.push(sentence(&[common, b].concat()));
        }
        let pairs = texts.len() / 2;
        let run = Run::without_model(&ANALYZERS[0], settings, texts);
        let (found, _) = run.pairs(
            BatchSizes::default(),
            &run.sketches(0, 500),
            CopyPairs::WithEarliest,
        );
        assert!(found.iter().all(|&(a, b, ..)| a % 2 == 0 && b == a + 1));
        let recall = found.len() as f64 / pairs as f64;
        let predicted = run.plan.band_plan().unwrap().expected_recall(threshold);
        assert!(predicted >= 0.99);
        // Four standard errors below the prediction, less the loss that the cutoff may cause.
        let error = (predicted * (1.0 - predicted) / pairs as f64)
            .sqrt()
            .max(0.7 / pairs as f64);
        assert!(
            recall >= predicted - 0.0005 - 4.0 * error,
            "{threshold}: {recall}, {predicted}"
        );
    }
}

#[test]
fn earliest_most_similar_known_document_is_named() {
    // With single words as features, both given texts have similarity 1, though only one is equal.
    for between in [0, 1, 40, 300] {
        let mut texts = ["b a", "a b"].map(str::to_owned).to_vec();
        texts.extend((0..between).map(|at| format!("other {at}")));
        texts.extend(["A, B!", "b, a"].map(str::to_owned));
        let settings = settings(0.8, MatchMethod::Join, SimilarityMeasure::Jaccard, 3);
        let mut run = Run::new(&ANALYZERS[0], settings, texts);
        run.given = 2;
        let removed = [
            (between + 2, 0, 1.0, Route::Join),
            (between + 3, 0, 1.0, Route::Exact),
        ];
        assert_eq!(run.model_verdicts(), removed);
        run.check_all("given");
    }
}

#[test]
fn chain_keeps_both_ends() {
    let texts = [
        pair_of(9, 1, 0)[0].clone(),
        pair_of(9, 0, 1)[1].clone(),
        sentence(&[1, 2, 3, 4, 5, 6, 7, 8, 20_000, 5, 7]),
    ];
    let settings = settings(0.8, MatchMethod::Auto, SimilarityMeasure::Jaccard, 3);
    let run = Run::new(&ANALYZERS[0], settings, texts.to_vec());
    let [a, b, c] = [(0, 1), (1, 2), (0, 2)].map(|(a, b)| run.related(a, b).is_some());
    assert!(a && b && !c, "a chain of three");
    let kept = run.verdicts(BatchSizes::default(), &run.sketches(0, 2));
    assert_eq!(kept, [(1, 0, 9.0 / 11.0, Route::Join)]);
    assert_eq!(
        run.components(BatchSizes::default(), &run.sketches(0, 2)),
        [0, 0, 0]
    );
}

#[test]
fn window_separates_equal_texts() {
    let texts = vec!["the same text".to_owned(); 4];
    let settings = settings(0.8, MatchMethod::Auto, SimilarityMeasure::Jaccard, 3);
    let mut run = Run::new(&ANALYZERS[0], settings, texts);
    run.window = Some((vec![0.0, 2.0, 2.5, 4.5], 2.0));
    // The second repeats the first. The third is out of the first's reach. The fourth repeats the
    // third.
    assert_eq!(
        run.model_verdicts(),
        [(1, 0, 1.0, Route::Exact), (3, 2, 1.0, Route::Exact)]
    );
    run.check_all("window");
}

/// Expected by hand: the third is out of the first's reach, so the fourth is paired with the third.
/// Without the window, all are paired with the first.
#[test]
fn copies_are_paired_with_earliest_in_the_window() {
    let mut texts = vec!["the same text".to_owned(); 4];
    texts.extend(["the same text again".to_owned(), "the same text".to_owned()]);
    let settings = settings(0.6, MatchMethod::Join, SimilarityMeasure::Jaccard, 3);
    let mut run = Run::new(&ANALYZERS[0], settings, texts);
    let listed = |run: &Run, copies| -> Vec<(usize, usize)> {
        let sketches = run.sketches(0, 9);
        let (pairs, _) = run.pairs(BatchSizes::default(), &sketches, copies);
        pairs.into_iter().map(|(a, b, ..)| (a, b)).collect()
    };
    assert_eq!(
        listed(&run, CopyPairs::WithEarliest),
        [(0, 1), (0, 2), (0, 3), (0, 4), (0, 5)]
    );
    assert_eq!(listed(&run, CopyPairs::None), [(0, 4)]);
    assert_eq!(listed(&run, CopyPairs::All).len(), 15);
    run.window = Some((vec![0.0, 2.0, 2.5, 4.5, 4.0, 9.0], 2.0));
    assert_eq!(
        listed(&run, CopyPairs::WithEarliest),
        [(0, 1), (1, 2), (1, 4), (2, 3)]
    );
    assert_eq!(listed(&run, CopyPairs::None), [(1, 4)]);
    run.check_all("copies in a window");
}

#[test]
fn million_equal_texts_take_linear_time() {
    let run = Run::new(
        &ANALYZERS[1],
        settings(0.8, MatchMethod::Auto, SimilarityMeasure::Jaccard, 3),
        vec!["one text among a million".to_owned()],
    );
    let mut sketches = run.sketches(1 << 20, 1);
    for _ in 0..20 {
        let doubled = sketches.clone();
        sketches.append_sketches(&doubled);
    }
    let outcome = find_verdicts(&run.corpus(&sketches), &|_| {}).unwrap();
    assert_eq!(outcome.removals.len(), (1 << 20) - 1);
    assert!(
        outcome
            .removals
            .iter()
            .all(|removal| removal.kept.with == DocId(0))
    );
    let mut listed = 0;
    let take = |pair: MatchingPair| {
        listed += 1;
        assert_eq!((pair.a, pair.b), (DocId(0), DocId(listed)));
        Ok::<_, Error>(())
    };
    let copies = CopyPairs::WithEarliest;
    let found = find_pairs(&run.corpus(&sketches), copies, take, &|_| {}).unwrap();
    assert_eq!((found, listed), ((1 << 20) - 1, (1 << 20) - 1));
}

#[test]
fn progress_is_reported_to_the_end() {
    let mut random = Random(10);
    let settings = settings(0.8, MatchMethod::Auto, SimilarityMeasure::Jaccard, 3);
    let run = Run::new(&ANALYZERS[0], settings, clustered(&mut random, 300));
    let sketches = run.sketches(0, 100);
    let last = AtomicUsize::new(0);
    let progress = |done: usize| {
        assert!(last.swap(done, Ordering::Relaxed) <= done);
    };
    find_verdicts(&run.corpus(&sketches), &progress).unwrap();
    assert_eq!(last.swap(0, Ordering::Relaxed), 300);
    find_pairs(
        &run.corpus(&sketches),
        CopyPairs::All,
        |_| Ok::<_, Error>(()),
        &progress,
    )
    .unwrap();
    assert_eq!(last.into_inner(), 300);
}

#[test]
fn failed_second_reading_ends_the_run() {
    struct Lost;
    impl DocumentSource for Lost {
        fn append_features(&self, _: DocId, _: &mut Vec<u64>) -> Result<()> {
            Err(Error::text_error("the file is gone"))
        }
    }
    let run = Run::new(
        &ANALYZERS[0],
        settings(0.5, MatchMethod::Auto, SimilarityMeasure::Jaccard, 3),
        pair_of(9, 1, 1).to_vec(),
    );
    let sketches = run.sketches(0, 10);
    let corpus = MatchCorpus {
        texts: &Lost,
        ..run.corpus(&sketches)
    };
    let error = find_verdicts(&corpus, &|_| {}).unwrap_err();
    assert_eq!(
        (error.kind(), error.to_string()),
        (ErrorKind::Text, "the file is gone".into())
    );
    let all = CopyPairs::All;
    let error = find_pairs(&corpus, all, |_| Ok::<_, Error>(()), &|_| {}).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Text);
    // Kept features need no text.
    let sketches = run.sketches(1 << 10, 10);
    let corpus = MatchCorpus {
        texts: &Lost,
        ..run.corpus(&sketches)
    };
    assert_eq!(find_verdicts(&corpus, &|_| {}).unwrap().removals.len(), 1);
}

#[test]
fn pair_search_can_be_cancelled() {
    let run = Run::new(
        &ANALYZERS[0],
        settings(0.5, MatchMethod::Auto, SimilarityMeasure::Jaccard, 3),
        vec!["a b c".into(), "a b c d".into(), "a b c d e".into()],
    );
    let sketches = run.sketches(1 << 20, 10);
    let mut seen = 0;
    let stop = |_| {
        seen += 1;
        Err(Error::setting_error("enough"))
    };
    let all = CopyPairs::All;
    let error = find_pairs(&run.corpus(&sketches), all, stop, &|_| {}).unwrap_err();
    assert_eq!((seen, error.to_string()), (1, "enough".into()));
}

/// The price of a survey is bounded by steps, whatever the measure and however long the texts, and its
/// counts do not depend on the number of threads.
#[test]
fn survey_takes_a_bounded_number_of_steps() {
    let mut random = Random(11);
    let texts: Vec<String> = (0..120)
        .map(|_| {
            let mut words: Vec<u64> = (0..400).collect();
            for at in 0..20 {
                words[20 * at] = random.next();
            }
            sentence(&words)
        })
        .collect();
    let longest = texts.iter().map(String::len).max().unwrap() as u64;
    let limits = SurveyLimits {
        steps: 1_600_000,
        ..SurveyLimits::default()
    };
    // All match, or none does, so that all are kept.
    for (followed, threshold) in [(SurveyKind::Pairs, 0.5), (SurveyKind::Verdicts, 0.9)] {
        let settings = settings(
            threshold,
            MatchMethod::MinHash,
            SimilarityMeasure::Levenshtein,
            3,
        );
        let run = Run::without_model(&ANALYZERS[0], settings, texts.clone());
        let sketches = run.sketches(0, 100);
        let [by_one, by_two, by_five] = [1, 2, 5].map(|threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
            let corpus = run.corpus(&sketches);
            let survey = pool
                .build()
                .unwrap()
                .install(|| survey_corpus(&corpus, followed, limits));
            let survey = survey.unwrap();
            (survey.by_route, survey.steps)
        });
        assert_eq!(by_one, by_two);
        assert_eq!(by_one, by_five);
        let (by_route, steps) = by_one;
        let verified = by_route[0].1.verified;
        assert!(verified > 0);
        assert_eq!(by_route[0].1.matching > 0, followed == SurveyKind::Pairs);
        // Beyond the limit goes what is under way: pairs that are compared together, or the documents
        // of a block, which are as many as all before it.
        let of_pair = limits.steps / 16 + 4 * longest;
        let most = match followed {
            SurveyKind::Pairs => limits.steps + 8 * of_pair,
            SurveyKind::Verdicts => 5 * limits.steps + 28 * of_pair,
        };
        assert!(steps <= most, "{followed:?}: {steps} of {most}");
        let corpus = run.corpus(&sketches);
        let all = survey_with_sizes(BatchSizes::default(), &corpus, followed, ENDLESS).unwrap();
        assert!(verified < all.by_route[0].1.verified / 4, "{verified}");
        assert!(steps < all.steps / 4, "{steps} of {}", all.steps);
        if followed == SurveyKind::Pairs {
            // All candidates are counted, and the sample says how many of them match.
            assert_eq!(by_route[0].1.pairs, all.by_route[0].1.pairs);
            let [some, all] =
                [by_route[0].1, all.by_route[0].1].map(|pairs| pairs.matching_share());
            assert!((some - all).abs() < 0.15, "{some} {all}");
        }
    }
}

#[test]
fn removals_are_read_back() {
    for (at, route) in Route::ALL.into_iter().enumerate() {
        let removal = DocumentRemoval {
            document: DocId(7 + at as u32),
            kept: DocumentMatch {
                with: DocId(at as u32),
                similarity: Similarity::from_ratio(at, 7),
                route,
            },
        };
        let mut bytes = Vec::new();
        removal.encode_removal(&mut bytes);
        assert_eq!(bytes.len(), DocumentRemoval::BYTES);
        let mut reader = ByteReader::new(&bytes);
        assert_eq!(DocumentRemoval::decode_removal(&mut reader), Some(removal));
        assert!(reader.is_at_end());
        bytes[16] = Route::ALL.len() as u8;
        assert_eq!(
            DocumentRemoval::decode_removal(&mut ByteReader::new(&bytes)),
            None
        );
    }
}

#[test]
fn verdicts_of_another_corpus_are_refused() {
    let recipe = Recipe::default();
    let plan = MatchPlan::new(&recipe, MatchSettings::default()).unwrap();
    let sketcher = DocumentSketcher::new(&recipe, &plan, Cpu::detect_best());
    let analyzer = TextAnalyzer::new(&recipe);
    let (mut sketches, mut scratch) = (sketcher.new_sketches(1 << 10), AnalysisScratch::default());
    for text in ["a b c d e f", "g h i j k l", "a b c d e f g"] {
        sketcher.add_document(&analyzer.analyze_text(text, &mut scratch), &mut sketches);
    }
    struct NoTexts;
    impl DocumentSource for NoTexts {
        fn append_features(&self, _: DocId, _: &mut Vec<u64>) -> Result<()> {
            Err(Error::text_error("there are no texts"))
        }
    }
    let corpus = MatchCorpus {
        known_prefix: 1,
        ..MatchCorpus::new(&plan, &sketches, &NoTexts)
    };
    let removal = |document| DocumentRemoval {
        document: DocId(document),
        kept: DocumentMatch {
            with: DocId(0),
            similarity: Similarity::ONE,
            route: Route::Exact,
        },
    };
    // Too many documents, a document that does not exist, one behind the prefix, one twice, and a given one.
    let prefixes = [
        (4, vec![]),
        (3, vec![removal(3)]),
        (2, vec![removal(2)]),
        (3, vec![removal(2), removal(2)]),
        (3, vec![removal(0)]),
    ];
    for (documents, removals) in prefixes {
        let prefix = DecidedPrefix {
            documents,
            removals,
        };
        let refused = continue_verdicts(&corpus, prefix.clone(), |_, _| ControlFlow::Continue(()));
        assert!(refused.is_err(), "{prefix:?}");
    }
}
