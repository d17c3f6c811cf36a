//! Bucket keys: the values that candidates share.
//!
//! Each part of a plan yields keys of its own: equal texts, bands of MinHash signatures, rare features
//! of the exact join, near SimHash fingerprints or their blocks, longest sentences, smallest hashes.
//! Keys are collected in batches to bound memory, and keys that only one document has are dropped
//! before sorting.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;

use super::groups::{self, Groups, GroupsBuilder, Keyed, Rank, Side};
use super::judge::Judge;
use super::walk::{Corpus, Nodes};
use crate::arch::prefetch;
use crate::error::Result;
use crate::hamming::Code;
use crate::hamming::join::{Distinct, Near, near_values};
use crate::hash::{fold, mix};
use crate::plan::{Bands, Blocks};
use crate::text::State;
use crate::types::{Distance, DocId, Threshold};

/// Builds the buckets of all parts of the plan, and finds the dense sets among them for the bitmap
/// filter.
pub(super) fn groups(corpus: &Corpus<'_>, judge: &mut Judge<'_>, nodes: &Nodes) -> Result<Groups> {
    let ranks_where = |takes: &(dyn Fn(DocId) -> bool + Sync)| -> Vec<Rank> {
        let all = (0..corpus.len() as Rank).into_par_iter();
        all.filter(|&rank| nodes.is_first(rank) && takes(corpus.document(rank)))
            .collect()
    };
    let sketches = corpus.sketches;
    let mut builder = GroupsBuilder::new(corpus.len());
    if !nodes.together() {
        by_equality(corpus, &mut builder);
    }
    if let Some(bands) = corpus.plan.bands() {
        let signed = ranks_where(&|document| sketches.signature(document).is_some());
        by_bands(corpus, judge, bands, &signed, &mut builder)?;
    }
    if let Some(join) = corpus.plan.join() {
        let joined = ranks_where(&|document| {
            let size = sketches.brief(document).size as usize;
            size > 0 && size <= join.reach
        });
        let frequencies = Frequencies::count(corpus, judge, &joined)?;
        let rare = RareKeys::new(corpus, judge, &joined, frequencies)?;
        by_rare_features(rare, &mut builder)?;
    }
    if let Some(distance) = corpus.plan.distance() {
        let rich = ranks_where(&|document| sketches.state(document) == State::Rich);
        match corpus.plan.blocks() {
            Some(blocks) => by_blocks(corpus, blocks, &rich, &mut builder),
            None => by_fingerprints(corpus, judge, distance, &rich, &mut builder)?,
        }
    }
    if corpus.plan.sentences().is_some() {
        let rich = ranks_where(&|document| sketches.sentences(document).is_some());
        let keys = SketchKeys {
            portions: 1,
            most: 1,
            of: &|document, _, visit| sketches.sentences(document).into_iter().for_each(visit),
        };
        by_sketches(corpus, judge, &keys, &rich, &mut builder)?;
    }
    if let Some(smallest) = corpus.plan.smallest() {
        let rich = ranks_where(&|document| sketches.smallest(document).is_some());
        by_smallest(corpus, judge, smallest.meeting, &rich, &mut builder)?;
    }
    let mut groups = builder.build()?;
    judge.form_crowds(&mut groups, |rank| nodes.first(rank));
    Ok(groups)
}

/// Adds the buckets of equal texts, for plans in which equal texts are separate nodes.
fn by_equality(corpus: &Corpus<'_>, builder: &mut GroupsBuilder) {
    builder.add(&mut keyed_by_text(corpus), |_| true);
}

fn keyed_by_text(corpus: &Corpus<'_>) -> Vec<Keyed> {
    (0..corpus.len() as Rank)
        .into_par_iter()
        .filter(|&rank| corpus.sketches.state(corpus.document(rank)) != State::Empty)
        .map(|rank| {
            let key = corpus.sketches.key(corpus.document(rank));
            Keyed::full(corpus.parted(text_key(key), rank), rank)
        })
        .collect()
}

/// Calls `visit` with every document whose text an earlier document has, and with the earliest document
/// of that text.
pub(super) fn equal_texts(corpus: &Corpus<'_>, mut visit: impl FnMut(Rank, Rank)) {
    let mut keyed = keyed_by_text(corpus);
    groups::sort(&mut keyed);
    let name = |rank: Rank| {
        let document = corpus.document(rank);
        (
            corpus.sketches.key(document),
            corpus.parts.map(|parts| parts[document.index()]),
        )
    };
    for group in keyed.chunk_by(|a, b| a.key == b.key) {
        for (at, member) in group.iter().enumerate().skip(1) {
            let same = |other: &&Keyed| name(other.rank) == name(member.rank);
            if let Some(earliest) = group[..at].iter().find(same) {
                visit(member.rank, earliest.rank);
            }
        }
    }
}

/// Returns the bucket key of texts that are equal after normalisation.
pub(crate) fn text_key(key: u128) -> u64 {
    key as u64 ^ (key >> 64) as u64
}

/// Returns the bucket key of one band of a signature.
pub(crate) fn band_key(bands: Bands, band: usize, signature: &[u32]) -> u64 {
    let rows = &signature[band * bands.rows..][..bands.rows];
    rows.iter().fold(mix(band as u64), |key, &row| {
        fold(key ^ u64::from(row), BAND_FACTOR)
    })
}

const BAND_FACTOR: u64 = 0x9fb2_1c65_1e98_df25;

fn by_bands(
    corpus: &Corpus<'_>,
    judge: &Judge<'_>,
    bands: Bands,
    signed: &[Rank],
    builder: &mut GroupsBuilder,
) -> Result<()> {
    let at_once = (judge.portions.keys / signed.len().max(1)).clamp(1, bands.bands);
    let keys = SketchKeys {
        portions: bands.bands.div_ceil(at_once),
        most: at_once,
        of: &|document, portion, visit| {
            let first = portion * at_once;
            if let Some(signature) = corpus.sketches.signature(document) {
                (first..(first + at_once).min(bands.bands))
                    .for_each(|band| visit(band_key(bands, band, signature)));
            }
        },
    };
    by_sketches(corpus, judge, &keys, signed, builder)
}

/// Adds a bucket for each of the smallest hashes. If all documents have too many of them for one batch,
/// the batches divide the hashes by value.
fn by_smallest(
    corpus: &Corpus<'_>,
    judge: &Judge<'_>,
    meeting: usize,
    rich: &[Rank],
    builder: &mut GroupsBuilder,
) -> Result<()> {
    let portions = (rich.len() * meeting).div_ceil(judge.portions.keys.max(rich.len()).max(1));
    let keys = SketchKeys {
        portions,
        most: meeting,
        of: &|document, portion, visit| {
            let hashes = corpus.sketches.smallest(document).unwrap_or_default();
            let meeting = hashes.iter().take(meeting).map(|&hash| smallest_key(hash));
            meeting
                .filter(|key| (key >> 32) as usize % portions == portion)
                .for_each(visit);
        },
    };
    by_sketches(corpus, judge, &keys, rich, builder)
}

/// Returns the bucket key of one of the smallest hashes.
pub(crate) fn smallest_key(hash: u64) -> u64 {
    mix(hash)
}

/// The bucket keys of sketches, in batches. Equal keys are always in the same batch.
struct SketchKeys<'a> {
    portions: usize,
    /// Largest number of keys of one document in one batch.
    most: usize,
    /// Calls back with the keys of a document in a batch.
    of: &'a KeysOf<'a>,
}

type KeysOf<'a> = dyn Fn(DocId, usize, &mut dyn FnMut(u64)) + Sync + 'a;

fn by_sketches(
    corpus: &Corpus<'_>,
    judge: &Judge<'_>,
    keys: &SketchKeys<'_>,
    ranks: &[Rank],
    builder: &mut GroupsBuilder,
) -> Result<()> {
    let refines = corpus.plan.least_jaccard().is_some();
    let mut hot: Vec<Vec<Rank>> = Vec::new();
    for portion in 0..keys.portions {
        let keyed = |ranks: &[Rank]| {
            let mut keyed = Vec::with_capacity(ranks.len() * keys.most);
            for &rank in ranks {
                (keys.of)(corpus.document(rank), portion, &mut |key| {
                    keyed.push(Keyed::full(corpus.parted(key, rank), rank));
                });
            }
            keyed
        };
        let mut keyed = shared(ranks.len() * keys.most, ranks, keyed);
        builder.add(&mut keyed, |members| {
            let is_hot = refines && members.len() > judge.portions.hot;
            if is_hot {
                hot.push(members.iter().map(|member| member.rank).collect());
            }
            !is_hot
        });
    }
    by_hot_groups(corpus, judge, hot, builder)
}

/// Adds large buckets, either unchanged or replaced by buckets of their members' rarest features,
/// whichever costs less to scan.
fn by_hot_groups(
    corpus: &Corpus<'_>,
    judge: &Judge<'_>,
    hot: Vec<Vec<Rank>>,
    builder: &mut GroupsBuilder,
) -> Result<()> {
    if hot.is_empty() {
        return Ok(());
    }
    let mut is_hot = vec![false; corpus.len()];
    hot.iter()
        .flatten()
        .for_each(|&rank| is_hot[rank as usize] = true);
    let ranks: Vec<Rank> = (0..is_hot.len() as Rank)
        .filter(|&rank| is_hot[rank as usize])
        .collect();
    drop(is_hot);
    let frequencies = Frequencies::count(corpus, judge, &ranks)?;
    let met = hot.iter().map(|members| (members.len() as f64).powi(2));
    let rare = RareKeys::new(corpus, judge, &ranks, frequencies)?;
    if met.sum::<f64>() > judge.portions.refining * rare.expected.met {
        drop(hot);
        by_rare_features(rare, builder)?;
    } else {
        for members in hot {
            builder.push(members);
        }
    }
    Ok(())
}

/// Returns the keys of `ranks`, without most of those that only one document has, so that these need
/// not be sorted. `keys` returns the keys of some of the ranks; there are about `count` keys in all.
fn shared(count: usize, ranks: &[Rank], keys: impl Fn(&[Rank]) -> Vec<Keyed> + Sync) -> Vec<Keyed> {
    let met = MetTwice::new(count);
    let mut portions: Vec<_> = ranks
        .par_chunks(512)
        .map(|ranks| {
            let keys = keys(ranks);
            keys.iter().for_each(|keyed| met.meet(keyed.key));
            keys
        })
        .collect();
    portions
        .par_iter_mut()
        .for_each(|portion| portion.retain(|keyed| met.may_be_shared(keyed.key)));
    portions.concat()
}

/// An approximate set that separates keys seen twice from most keys seen once, in 16 to 32 bits a key.
///
/// Each key has two bits in one word: seen once, and seen twice. A key that was seen twice is always
/// reported as such. A key that was seen once may be reported as seen twice if another key has the same
/// bits.
pub(super) struct MetTwice {
    words: Vec<AtomicU64>,
}

impl MetTwice {
    pub(super) fn new(keys: usize) -> Self {
        let words = (keys / 4).next_power_of_two();
        Self {
            words: (0..words).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// Returns the word of a key and the lower of its two bits, which means "seen once". The next bit
    /// means "seen twice".
    fn place(&self, key: u64) -> (&AtomicU64, u64) {
        let word = &self.words[(key >> 5) as usize & (self.words.len() - 1)];
        (word, 1 << (2 * (key % 32)))
    }

    /// Prefetches the words of keys.
    pub(super) fn fetch(&self, keys: &[u64]) {
        keys.iter().for_each(|&key| prefetch(self.place(key).0));
    }

    pub(super) fn meet(&self, key: u64) {
        let (word, once) = self.place(key);
        let before = word.fetch_or(once, Ordering::Relaxed);
        if before & once != 0 && before & once << 1 == 0 {
            word.fetch_or(once << 1, Ordering::Relaxed);
        }
    }

    fn may_be_met(&self, key: u64) -> bool {
        let (word, once) = self.place(key);
        word.load(Ordering::Relaxed) & once != 0
    }

    pub(super) fn may_be_shared(&self, key: u64) -> bool {
        let (word, once) = self.place(key);
        word.load(Ordering::Relaxed) & once << 1 != 0
    }
}

/// Adds the buckets of the prefix filter: the [prefixes](Prefixes) of each document's rarest features.
///
/// The filter is exact under any total order of the features. Ordering by frequency keeps documents of
/// one template apart, because the features that they share are frequent: if too many of their features
/// are their own for a pair to reach the threshold, their prefixes have no feature in common. A feature
/// that occurs once needs no bucket.
fn by_rare_features(mut keys: RareKeys<'_>, builder: &mut GroupsBuilder) -> Result<()> {
    let portions = keys.judge.portions;
    let room = portions.keys.max(keys.ranks.len() * portions.rare);
    // Learning which keys have a document with a full prefix makes all features once more, which costs
    // as much as one further part does. So it is only done where there would be more than a few parts.
    if keys.expected.keys > (FEW_PARTS * room) as f64 {
        keys.learn_full()?;
    }
    let parts = (keys.expected.keys / room as f64).ceil();
    let mut parts = parts.clamp(1.0, MOST_PARTS as f64) as u64;
    // Keys are spread evenly over the parts, so the first part shows whether there are enough parts.
    // But a single key of very many documents always stays in one part, so the number of parts is
    // limited.
    let first = loop {
        let most = if parts < MOST_PARTS { room } else { usize::MAX };
        match keys.part(0, parts, most)? {
            Some(keyed) => break keyed,
            None => parts = (2 * parts).min(MOST_PARTS),
        }
    };
    builder.add(&mut { first }, |_| true);
    for part in 1..parts {
        let keyed = keys.part(part, parts, usize::MAX)?;
        builder.add(&mut keyed.unwrap_or_default(), |_| true);
    }
    Ok(())
}

/// Largest number of keys for which a [`MetTwice`] is sized: 64 MiB.
pub(super) const MOST_MET: usize = 1 << 25;

/// Largest number of parts. It is limited because each part makes the features of all documents again.
const MOST_PARTS: u64 = 16;

/// Number of parts up to which [`RareKeys::learn_full`] does not pay off.
const FEW_PARTS: usize = 2;

/// The bucket keys of the rarest features of documents.
struct RareKeys<'a> {
    corpus: &'a Corpus<'a>,
    judge: &'a Judge<'a>,
    ranks: &'a [Rank],
    frequencies: Frequencies,
    /// Keys that a document has in its full prefix, once they are learned. Under other keys no two
    /// documents can be candidates.
    full: Option<MetTwice>,
    expected: Expected,
}

/// Estimates about the keys of all documents, from a sample.
#[derive(Clone, Copy, Default)]
struct Expected {
    /// Number of keys.
    keys: f64,
    /// Number of keys of full prefixes.
    full: f64,
    /// Sum, over all features of full prefixes, of the documents that have the feature at all. It
    /// bounds from above the candidates that the keys yield.
    met: f64,
}

/// Number of documents in the sample.
const SAMPLE: usize = 256;

impl<'a> RareKeys<'a> {
    fn new(
        corpus: &'a Corpus<'a>,
        judge: &'a Judge<'a>,
        ranks: &'a [Rank],
        frequencies: Frequencies,
    ) -> Result<Self> {
        let mut keys = Self {
            corpus,
            judge,
            ranks,
            frequencies,
            full: None,
            expected: Expected::default(),
        };
        keys.expected = keys.expect()?;
        Ok(keys)
    }

    fn expect(&self) -> Result<Expected> {
        let sample = self.ranks.iter();
        let sample = sample.step_by(self.ranks.len().div_ceil(SAMPLE).max(1));
        let scale = self.ranks.len() as f64 / sample.len().max(1) as f64;
        let sample: Vec<Rank> = sample.copied().collect();
        let mut expected = Expected::default();
        self.of(&sample, |_, rarest| {
            for (at, &(count, _)) in rarest.features.iter().enumerate() {
                expected.keys += scale;
                if at < rarest.full {
                    expected.full += scale;
                    expected.met += scale * f64::from(count);
                }
            }
        })?;
        Ok(expected)
    }

    /// Learns the keys that some document has in its full prefix, so that all others are left out.
    fn learn_full(&mut self) -> Result<()> {
        let full = MetTwice::new((self.expected.full as usize).min(MOST_MET / 4));
        self.ranks.par_chunks(1024).try_for_each(|ranks| {
            self.of(ranks, |_, rarest| {
                let keys = rarest.keys().filter(|&(_, side)| side == Side::Full);
                keys.for_each(|(key, _)| full.meet(key));
            })
        })?;
        self.full = Some(full);
        self.expected = self.expect()?;
        Ok(())
    }

    /// Returns the keys that fall into a part, or `None` if there are more than `most`.
    fn part(&self, part: u64, parts: u64, most: usize) -> Result<Option<Vec<Keyed>>> {
        let collected = AtomicUsize::new(0);
        let too_many = || collected.load(Ordering::Relaxed) > most;
        let chunks = self.ranks.par_chunks(1024).filter(|_| !too_many());
        let keyed: Vec<Vec<Keyed>> = chunks
            .map(|ranks| {
                let mut keyed = Vec::new();
                self.of(ranks, |rank, rarest| {
                    let keys = rarest.keys();
                    let keys = keys.filter(|(key, _)| (key >> 32) % parts == part);
                    keyed.extend(keys.map(|(key, side)| Keyed {
                        key: self.corpus.parted(key, rank),
                        side,
                        rank,
                    }));
                })?;
                collected.fetch_add(keyed.len(), Ordering::Relaxed);
                Ok(keyed)
            })
            .collect::<Result<_>>()?;
        Ok((!too_many()).then(|| keyed.concat()))
    }

    /// Calls `visit` with the rarest features of each of these documents.
    fn of(&self, ranks: &[Rank], mut visit: impl FnMut(Rank, &Rarest)) -> Result<()> {
        let threshold = self.corpus.plan.candidate_threshold();
        let (mut buffer, mut rarest) = (Vec::new(), Rarest::default());
        for (at, &rank) in ranks.iter().enumerate() {
            if let Some(&soon) = ranks.get(at + 2) {
                let features = self.corpus.sketches.features(self.corpus.document(soon));
                self.frequencies.fetch(features.unwrap_or_default());
            }
            self.judge.features_once(rank, &mut buffer, |features| {
                self.frequencies.rarest(features, threshold, &mut rarest);
            })?;
            if let Some(full) = &self.full {
                rarest.retain(|key| full.may_be_met(key));
            }
            visit(rank, &rarest);
        }
        Ok(())
    }
}

/// Returns the bucket key of a feature.
pub(crate) fn feature_key(feature: u64) -> u64 {
    mix(feature ^ FEATURE_ROUTE)
}

const FEATURE_ROUTE: u64 = 0x5851_f42d_4c95_7f2d;

/// Numbers of features of a set, the first in any total order, that serve as its bucket keys.
///
/// Of two sets with a Jaccard index of at least t, the probing prefix of the larger one and the full
/// prefix of the smaller one have a feature in common (Chaudhuri et al. 2006; Bayardo et al. 2007; the
/// two lengths: Xiao et al. 2008, where the full prefix is called the indexing prefix).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Prefixes {
    /// n − ⌈2t / (1 + t) · n⌉ + 1 of n features. Under these, a set is a candidate for all sets with
    /// the key.
    pub(crate) full: usize,
    /// n − ⌈t · n⌉ + 1 of n features, which is no fewer. Under the additional ones, a set is a
    /// candidate only for sets that have the key in their full prefix.
    pub(crate) probing: usize,
}

impl Prefixes {
    /// Returns the prefixes of a set of `features` features, which must not be 0.
    pub(crate) fn of(features: usize, threshold: Threshold) -> Self {
        let all_but = |least: usize| features - least.max(1) + 1;
        Self {
            full: all_but(threshold.least_shared(2 * features)),
            probing: all_but(threshold.least_part(features)),
        }
    }
}

/// The features of a document that serve as its bucket keys, with those of the full prefix first.
#[derive(Debug, Default)]
pub(crate) struct Rarest {
    /// Pairs of a frequency and a feature.
    features: Vec<(u32, u64)>,
    /// Number of features in the full prefix.
    full: usize,
}

impl Rarest {
    /// Returns the bucket key of each feature and the side on which the document is in that bucket.
    pub(crate) fn keys(&self) -> impl Iterator<Item = (u64, Side)> {
        let full = self.full;
        let keys = self.features.iter().enumerate();
        keys.map(move |(at, &(_, feature))| {
            let side = if at < full { Side::Full } else { Side::Probing };
            (feature_key(feature), side)
        })
    }

    /// Removes the features of the probing prefix whose keys `keeps` rejects.
    fn retain(&mut self, keeps: impl Fn(u64) -> bool) {
        let mut at = 0;
        self.features.retain(|&(_, feature)| {
            at += 1;
            at <= self.full || keeps(feature_key(feature))
        });
    }

    fn clear(&mut self) {
        self.features.clear();
        self.full = 0;
    }
}

/// Counts of how often features occur, in a table without collision handling.
///
/// A feature that shares its counter with others counts as more frequent than it is. That costs time
/// and never loses a pair, because the prefix filter is exact under any order.
pub(crate) struct Frequencies {
    counts: Vec<AtomicU32>,
    /// Features seen twice. Used where documents are so long that the features which only one of them
    /// has would fill the table.
    met: Option<MetTwice>,
}

impl Frequencies {
    /// Counts the features of documents.
    fn count(corpus: &Corpus<'_>, judge: &Judge<'_>, ranks: &[Rank]) -> Result<Self> {
        let size = (ranks.len() * 64)
            .next_power_of_two()
            .clamp(1 << 12, 1 << 23);
        let remembered = |rank| corpus.sketches.features(corpus.document(rank)).is_some();
        let short = ranks.iter().filter(|&&rank| remembered(rank)).count();
        let met =
            (2 * short < ranks.len()).then(|| MetTwice::new((64 * ranks.len()).min(MOST_MET)));
        let frequencies = Self {
            met,
            ..Self::of(vec![0; size])
        };
        ranks.par_chunks(1024).try_for_each(|ranks| {
            let mut buffer = Vec::new();
            for &rank in ranks {
                judge.features_once(rank, &mut buffer, |features| frequencies.add(features))?;
            }
            Ok(())
        })?;
        Ok(frequencies)
    }

    /// Returns a table of these counts. Their number must be a power of two.
    pub(crate) fn of(counts: Vec<u32>) -> Self {
        let counts = counts.into_iter().map(AtomicU32::new).collect();
        Self { counts, met: None }
    }

    /// Prefetches the counters of features.
    fn fetch(&self, features: &[u64]) {
        let counters = features.iter().map(|&feature| self.counter(feature));
        counters.for_each(prefetch);
        if let Some(met) = &self.met {
            met.fetch(features);
        }
    }

    /// Adds the features of one document to the counts.
    pub(crate) fn add(&self, features: &[u64]) {
        // Prefetched first because an atomic addition waits for its cache line, and the following ones
        // wait with it.
        self.fetch(features);
        for &feature in features {
            self.counter(feature).fetch_add(1, Ordering::Relaxed);
        }
        if let Some(met) = &self.met {
            features.iter().for_each(|&feature| met.meet(feature));
        }
    }

    /// Returns how often a feature occurs. Never less than the truth, and 1 for most features that
    /// occur once.
    fn count_of(&self, feature: u64) -> u32 {
        match &self.met {
            Some(met) if !met.may_be_shared(feature) => 1,
            _ => self.counter(feature).load(Ordering::Relaxed),
        }
    }

    /// Returns all counts.
    pub(crate) fn counts(&self) -> impl Iterator<Item = u32> + '_ {
        self.counts
            .iter()
            .map(|count| count.load(Ordering::Relaxed))
    }

    fn counter(&self, feature: u64) -> &AtomicU32 {
        &self.counts[(feature >> 20) as usize & (self.counts.len() - 1)]
    }

    /// Finds the features of a document that serve as its bucket keys. `rarest` is empty if so many
    /// features occur only once that no other document can match.
    pub(crate) fn rarest(&self, features: &[u64], threshold: Threshold, rarest: &mut Rarest) {
        rarest.clear();
        if features.is_empty() {
            return;
        }
        if self.met.is_some() {
            // The features of long documents were made only now, so nothing has prefetched their
            // counters.
            self.fetch(features);
        }
        let order = &mut rarest.features;
        let count = |&feature: &u64| (self.count_of(feature), feature);
        order.extend(features.iter().map(count));
        let prefixes = Prefixes::of(features.len(), threshold);
        let alone = order.iter().filter(|(count, _)| *count <= 1).count();
        if alone >= prefixes.probing {
            return rarest.clear();
        }
        for prefix in [prefixes.probing, prefixes.full] {
            if prefix < order.len() {
                order.select_nth_unstable(prefix - 1);
            }
            order.truncate(prefixes.probing);
        }
        order.retain(|&(count, _)| count > 1);
        rarest.full = prefixes.full.saturating_sub(alone);
    }
}

/// Adds a bucket for each distinct fingerprint, and connects buckets within the distance. Falls back to
/// blocks of bits where near fingerprints are so many that their pairs would take too much memory.
fn by_fingerprints(
    corpus: &Corpus<'_>,
    judge: &Judge<'_>,
    distance: Distance,
    rich: &[Rank],
    builder: &mut GroupsBuilder,
) -> Result<()> {
    let most = judge.portions.near + judge.portions.neighbours * rich.len();
    let joined = if corpus.plan.bits() <= u64::BITS {
        by_codes::<u64>(corpus, distance, rich, most, builder)
    } else {
        by_codes::<u128>(corpus, distance, rich, most, builder)
    };
    if !joined? {
        let blocks = Blocks {
            count: distance.get() + 1,
            bits: corpus.plan.bits(),
        };
        by_blocks(corpus, blocks, rich, builder);
    }
    Ok(())
}

/// Returns `false`, and adds nothing, if there are more than `most` pairs of near values.
fn by_codes<C: Code>(
    corpus: &Corpus<'_>,
    distance: Distance,
    rich: &[Rank],
    most: usize,
    builder: &mut GroupsBuilder,
) -> Result<bool> {
    let code = |&rank: &Rank| {
        let fingerprint = corpus.sketches.fingerprint(corpus.document(rank));
        C::narrow(fingerprint.expect("rich documents have fingerprints"))
    };
    let codes: Vec<C> = rich.par_iter().map(code).collect();
    let values = Distinct::new(&codes, corpus.plan.bits())?;
    drop(codes);
    let Some(near) = near_values_up_to(&values, distance, most)? else {
        return Ok(false);
    };
    let mut wanted: Vec<bool> = (0..values.len() as u32)
        .map(|value| values.rows(value).len() > 1)
        .collect();
    for &(one, other) in &near {
        (wanted[one as usize], wanted[other as usize]) = (true, true);
    }
    let mut of_values = OfValues::default();
    for value in 0..values.len() as u32 {
        let rows = values.rows(value).iter().filter(|_| wanted[value as usize]);
        of_values.add(corpus, rows.map(|&row| rich[row as usize]), builder);
    }
    for (one, other) in near {
        of_values.connect(one, other, builder);
    }
    Ok(true)
}

/// The buckets of each distinct fingerprint: one for each partition that has documents with it.
#[derive(Default)]
struct OfValues {
    ends: Vec<u32>,
    /// Pairs of a partition and a bucket, ascending by partition for each fingerprint.
    groups: Vec<(u64, u32)>,
}

impl OfValues {
    /// Adds the documents of the next fingerprint.
    fn add(
        &mut self,
        corpus: &Corpus<'_>,
        documents: impl Iterator<Item = Rank>,
        builder: &mut GroupsBuilder,
    ) {
        let mut parted: Vec<_> = documents.map(|rank| (corpus.part(rank), rank)).collect();
        parted.sort_unstable();
        for members in parted.chunk_by(|a, b| a.0 == b.0) {
            let group = builder.push(members.iter().map(|&(_, rank)| rank));
            self.groups.push((members[0].0, group));
        }
        self.ends.push(self.groups.len() as u32);
    }

    fn of(&self, value: u32) -> &[(u64, u32)] {
        let start = value
            .checked_sub(1)
            .map_or(0, |before| self.ends[before as usize]);
        &self.groups[start as usize..self.ends[value as usize] as usize]
    }

    /// Connects the buckets of two fingerprints that are of the same partition.
    fn connect(&self, one: u32, other: u32, builder: &mut GroupsBuilder) {
        let (few, many) = (self.of(one), self.of(other));
        let (few, many) = if few.len() <= many.len() {
            (few, many)
        } else {
            (many, few)
        };
        for &(part, group) in few {
            if let Ok(at) = many.binary_search_by_key(&part, |&(part, _)| part) {
                builder.connect(group, many[at].1);
            }
        }
    }
}

/// Returns the pairs of near values, or `None` if there are more than `most`.
fn near_values_up_to<C: Code>(
    values: &Distinct<C>,
    distance: Distance,
    most: usize,
) -> Result<Option<Vec<(u32, u32)>>> {
    let found = Mutex::new(Vec::new());
    let all = near_values(values, distance, &|near: &[Near]| {
        let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
        if found.len() + near.len() > most {
            return ControlFlow::Break(());
        }
        found.extend(near.iter().map(|near| (near.a, near.b)));
        ControlFlow::Continue(())
    })?;
    let found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(all.is_continue().then_some(found))
}

/// Returns the bucket key of a block of a fingerprint, from the number of the block and its bits,
/// unshifted.
pub(crate) fn block_key(block: usize, bits: u128) -> u64 {
    mix(bits as u64 ^ mix((bits >> 64) as u64 ^ block as u64))
}

/// Adds a bucket for each block of bits. Complete, because two fingerprints within distance k have at
/// least one of any k + 1 blocks in common.
fn by_blocks(corpus: &Corpus<'_>, blocks: Blocks, rich: &[Rank], builder: &mut GroupsBuilder) {
    for (block, mask) in blocks.masks().enumerate() {
        let mut keyed: Vec<_> = rich
            .par_iter()
            .filter_map(|&rank| {
                let fingerprint = corpus.sketches.fingerprint(corpus.document(rank))?;
                let key = block_key(block, fingerprint & mask);
                Some(Keyed::full(corpus.parted(key, rank), rank))
            })
            .collect();
        builder.add(&mut keyed, |_| true);
    }
}
