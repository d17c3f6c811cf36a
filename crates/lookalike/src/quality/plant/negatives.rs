//! Honest negatives of a planted corpus: pairs that are no near-duplicates, over the whole range of
//! similarity.
//!
//! A corpus in which only copies have labels says nothing of what a low threshold finds wrongly, so any
//! threshold seems good. [`NegativeSampler`] compares documents that were drawn with others and samples
//! pairs of every twentieth of similarity: *sibling* pairs, which share a topic or a template, and
//! *unrelated* ones. The most similar other documents of every drawn one are among them, because these
//! are what a method takes for copies first.
//!
//! # What is guaranteed
//!
//! - Similarities are exact. No pair reaches the limit below which negatives are, and of no pair one
//!   document is contained in the other, because such a document may be a copy of a part.
//! - The sample follows from the seed and the documents, not from the order in which they are offered or
//!   the number of threads.
//! - Pairs connect few documents each, so that labels can be parted into halves without a common
//!   document.
//!
//! Cost: an index of the features of the drawn documents; every feature of another document is looked up
//! once, and each pair costs some nanoseconds more.

use std::collections::{BinaryHeap, HashMap};
use std::hash::BuildHasherDefault;

use crate::hash::mix_bits;
use crate::text::frequencies::FeatureHasher;
use crate::types::{DocId, Similarity, Threshold};

/// Parts into which the range of similarity from 0 to 1 is divided.
const SIMILARITY_PARTS: f64 = 20.0;

/// Most similar others that are candidates for every drawn document.
const NEAREST_OTHERS: usize = 3;

/// Pairs that are wanted for every drawn document.
const WANTED_PAIRS: usize = 5;

/// Candidates of a part for each pair that is wanted of it: some connect too many documents.
const CANDIDATES_PER_PAIR: usize = 4;

/// Documents that sibling pairs connect at most, where enough documents were drawn.
const MOST_CONNECTED: usize = 6;

/// Unrelated pairs may connect so many more.
const CONNECTED_UNRELATED: usize = 2;

/// Settings of a [`NegativeSampler`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NegativeOptions {
    /// The similarity that negatives do not reach.
    pub below: Threshold,
    /// Pairs are left out from this share of the features of the smaller document on that are in the
    /// larger one.
    pub contained: Threshold,
    /// The most pairs of a sample, from 1.
    pub most: usize,
    /// The seed of the sample.
    pub seed: u64,
}

/// A pair that is no near-duplicate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NegativePair {
    /// The earlier document.
    pub a: DocId,
    /// The later document.
    pub b: DocId,
    /// The Jaccard index of their features.
    pub similarity: Similarity,
}

impl NegativePair {
    /// Returns `true` if the documents share a twentieth of their features or more, as documents of one
    /// topic or template do.
    pub fn is_sibling(&self) -> bool {
        self.part() > 0
    }

    fn part(&self) -> usize {
        (self.similarity.get() * SIMILARITY_PARTS) as usize
    }
}

/// Samples pairs of drawn documents and others that are no near-duplicates.
///
/// ```
/// use lookalike::quality::plant::{NegativeOptions, NegativeSampler};
/// use lookalike::{DocId, Threshold};
///
/// let options = NegativeOptions {
///     below: Threshold::new(0.75)?,
///     contained: Threshold::new(0.75)?,
///     most: 100,
///     seed: 1,
/// };
/// let sampler = NegativeSampler::new(options, vec![(DocId(0), vec![1, 2, 3, 4])]);
/// let mut candidates = sampler.candidates();
/// sampler.offer(DocId(1), &[1, 2, 5, 6], &mut candidates);
/// sampler.offer(DocId(2), &[7, 8, 9], &mut candidates);
/// let pairs = sampler.select(candidates, []);
/// assert_eq!(pairs.len(), 2);
/// assert!(pairs[0].is_sibling() && !pairs[1].is_sibling());
/// # Ok::<(), lookalike::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct NegativeSampler {
    options: NegativeOptions,
    /// Drawn documents with a feature, by their places in `drawn`.
    index: HashMap<u64, Vec<u32>, BuildHasherDefault<FeatureHasher>>,
    /// Ascending, each with the number of its features.
    drawn: Vec<(DocId, usize)>,
}

/// Candidates for the sample of a [`NegativeSampler`].
#[derive(Clone, Debug)]
pub struct NegativeCandidates {
    /// Of every drawn document.
    nearest: Vec<Vec<Candidate>>,
    /// Of every part of the range of similarity: those with the smallest numbers.
    parts: Vec<BinaryHeap<Candidate>>,
    /// Shared features with every drawn document.
    shared: Vec<u32>,
}

/// A pair with the number by which it is drawn; ordered by that number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    number: u64,
    a: u32,
    b: u32,
    /// Features of both documents.
    shared: u32,
    /// Features of either.
    union: u32,
}

impl Candidate {
    fn pair(self) -> NegativePair {
        NegativePair {
            a: DocId(self.a),
            b: DocId(self.b),
            similarity: Similarity::from_ratio(self.shared as usize, self.union as usize),
        }
    }
}

impl NegativeSampler {
    /// Creates a sampler for drawn documents with their features, distinct ones.
    pub fn new(options: NegativeOptions, mut drawn: Vec<(DocId, Vec<u64>)>) -> Self {
        drawn.sort_unstable_by_key(|&(document, _)| document);
        let mut index: HashMap<_, Vec<u32>, _> = HashMap::default();
        for (at, (_, features)) in (0..).zip(&drawn) {
            for &feature in features {
                index.entry(feature).or_default().push(at);
            }
        }
        let drawn = drawn.into_iter();
        Self {
            options,
            index,
            drawn: drawn
                .map(|(document, features)| (document, features.len()))
                .collect(),
        }
    }

    /// Returns an empty set of candidates.
    pub fn candidates(&self) -> NegativeCandidates {
        NegativeCandidates {
            nearest: vec![Vec::new(); self.drawn.len()],
            parts: vec![BinaryHeap::new(); self.part_count()],
            shared: Vec::new(),
        }
    }

    fn part_count(&self) -> usize {
        ((self.options.below.get() * SIMILARITY_PARTS).ceil() as usize).max(1)
    }

    /// Pairs that are wanted of every part.
    fn quota(&self) -> usize {
        let all = self.options.most.min(WANTED_PAIRS * self.drawn.len());
        (all / self.part_count()).max(1)
    }

    /// Compares a document, by its distinct features, with all drawn ones. Documents without features
    /// make no pairs.
    pub fn offer(&self, document: DocId, features: &[u64], into: &mut NegativeCandidates) {
        if features.is_empty() {
            return;
        }
        let mut shared = std::mem::take(&mut into.shared);
        shared.clear();
        shared.resize(self.drawn.len(), 0);
        for drawn in features
            .iter()
            .filter_map(|feature| self.index.get(feature))
            .flatten()
        {
            shared[*drawn as usize] += 1;
        }
        // A pair of drawn documents is offered from both sides and counts once.
        let own = self.drawn.binary_search_by_key(&document, |entry| entry.0);
        let first = own.map_or(0, |own| own + 1);
        for (at, &count) in shared.iter().enumerate().skip(first) {
            if let Some(candidate) = self.candidate(document, features.len(), at, count as usize) {
                self.offer_candidate(at, candidate, into);
            }
        }
        into.shared = shared;
    }

    fn candidate(
        &self,
        document: DocId,
        size: usize,
        at: usize,
        shared: usize,
    ) -> Option<Candidate> {
        let (drawn, of_drawn) = self.drawn[at];
        let union = size + of_drawn - shared;
        let NegativeOptions {
            below,
            contained,
            seed,
            ..
        } = self.options;
        let is_contained = contained.admits_ratio(shared, size.min(of_drawn).max(1));
        if of_drawn == 0 || below.admits_ratio(shared, union) || is_contained {
            return None;
        }
        let (a, b) = (document.0.min(drawn.0), document.0.max(drawn.0));
        Some(Candidate {
            number: mix_bits(seed ^ mix_bits(u64::from(a) << 32 | u64::from(b))),
            a,
            b,
            shared: shared as u32,
            union: union as u32,
        })
    }

    fn offer_candidate(&self, at: usize, candidate: Candidate, into: &mut NegativeCandidates) {
        self.offer_to_part(candidate, into);
        insert_nearest(candidate, &mut into.nearest[at]);
    }

    fn offer_to_part(&self, candidate: Candidate, into: &mut NegativeCandidates) {
        let part = &mut into.parts[candidate.pair().part()];
        let most = CANDIDATES_PER_PAIR * self.quota();
        if part.len() < most || part.peek().is_some_and(|last| candidate < *last) {
            part.push(candidate);
            if part.len() > most {
                part.pop();
            }
        }
    }

    /// Joins candidates that were found among different documents.
    pub fn merge(
        &self,
        mut one: NegativeCandidates,
        other: NegativeCandidates,
    ) -> NegativeCandidates {
        for (nearest, others) in one.nearest.iter_mut().zip(other.nearest) {
            others
                .into_iter()
                .for_each(|other| insert_nearest(other, nearest));
        }
        for candidate in other.parts.into_iter().flatten() {
            self.offer_to_part(candidate, &mut one);
        }
        one
    }

    /// Chooses pairs so that every part of the range has its share, as far as there are pairs, and few
    /// documents are connected; `linked` pairs have labels already. The pairs are in the order of their
    /// documents.
    pub fn select(
        &self,
        candidates: NegativeCandidates,
        linked: impl IntoIterator<Item = (DocId, DocId)>,
    ) -> Vec<NegativePair> {
        let mut connected = Connected::default();
        for (a, b) in linked {
            connected.join(a.0, b.0, usize::MAX);
        }
        let nearest = candidates.nearest.into_iter().flatten();
        let mut all: Vec<(bool, Candidate)> = nearest.map(|nearest| (false, nearest)).collect();
        let drawn = candidates.parts.into_iter().flatten();
        all.extend(drawn.map(|drawn| (true, drawn)));
        // From the most similar down; in a part the nearest first.
        all.sort_unstable_by_key(|&(is_drawn, it)| (usize::MAX - it.pair().part(), is_drawn, it));
        let (most, quota) = (self.connected(), self.quota());
        let mut pairs: Vec<NegativePair> = Vec::new();
        for part in all.chunk_by(|a, b| a.1.pair().part() == b.1.pair().part()) {
            let mut chosen = Vec::new();
            for &(_, candidate) in part {
                let more = usize::from(!candidate.pair().is_sibling()) * CONNECTED_UNRELATED;
                if chosen.len() < quota
                    && !chosen.contains(&candidate)
                    && connected.join(candidate.a, candidate.b, most + more)
                {
                    chosen.push(candidate);
                }
            }
            pairs.extend(chosen.into_iter().map(Candidate::pair));
        }
        pairs.sort_unstable_by_key(|pair| (pair.a, pair.b));
        pairs
    }

    /// Documents that pairs connect at most: fewer where few were drawn, so that there are halves.
    fn connected(&self) -> usize {
        (self.drawn.len() / 8).clamp(2, MOST_CONNECTED)
    }
}

/// Keeps the most similar siblings of a drawn document; of equally similar ones those with the smallest
/// numbers.
fn insert_nearest(candidate: Candidate, nearest: &mut Vec<Candidate>) {
    let pair = candidate.pair();
    let is_before = |other: &Candidate| {
        let similarity = other.pair().similarity;
        pair.similarity > similarity || pair.similarity == similarity && candidate < *other
    };
    let place = nearest.iter().position(is_before).unwrap_or(nearest.len());
    if pair.is_sibling() && place < NEAREST_OTHERS {
        nearest.insert(place, candidate);
        nearest.truncate(NEAREST_OTHERS);
    }
}

/// Sets of connected documents, with their sizes.
#[derive(Default)]
struct Connected {
    /// The parent of a document; it is the root of its set if it has none.
    parents: HashMap<u32, u32>,
    /// Sizes of the sets of more than one document, by root.
    sizes: HashMap<u32, usize>,
}

impl Connected {
    fn root(&mut self, document: u32) -> u32 {
        let mut root = document;
        while let Some(&parent) = self.parents.get(&root) {
            root = parent;
        }
        let mut at = document;
        while at != root {
            at = self.parents.insert(at, root).unwrap_or(root);
        }
        root
    }

    /// Connects two documents unless more than `most` would hang together then. Returns `true` if they
    /// are connected.
    fn join(&mut self, a: u32, b: u32, most: usize) -> bool {
        let (a, b) = (self.root(a), self.root(b));
        if a == b {
            return true;
        }
        let size_of = |root| self.sizes.get(&root).copied().unwrap_or(1);
        let size = size_of(a) + size_of(b);
        if size <= most {
            self.parents.insert(b.max(a), a.min(b));
            self.sizes.insert(a.min(b), size);
        }
        size <= most
    }
}
