//! The match plan: how candidates are found, and which of them match.
//!
//! A [`Plan`] follows from recipe, method, threshold, measure and distance alone, and never from the
//! size of a corpus. So a batch, a service and a cluster agree on every pair.
//!
//! The method `auto` has one predicate, the similarity at the threshold, and two ways to find
//! candidates:
//!
//! * Documents of few features take part in an **exact join**, which finds every pair at the threshold.
//!   Documents just above the border take part too, up to the largest size that a match of a short
//!   document can have, so that no pair across the border is lost.
//! * Documents above the border have **MinHash** signatures. Two of them are candidates if they share a
//!   band of slots and enough slots altogether.
//!
//! A band has the largest number of rows with which a pair *at* the threshold is found with probability
//! [`RECALL`]. Recall comes first, because verification removes false candidates.

use crate::error::{Error, Result};
use crate::recipe::Recipe;
use crate::types::{Distance, Similarity, Threshold};
use crate::verify::OfSequences;

/// Least predicted recall of pairs whose similarity is the threshold.
pub const RECALL: f64 = 0.99;

/// Additional loss that the check of whole sketches may cause: the probability that a pair at the
/// threshold shares too few slots.
const CUTOFF_LOSS: f64 = 0.0005;

/// Largest number of distinct features of a short document. Short documents are joined exactly.
pub const SHORT: usize = 64;

/// The method of finding candidates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Method {
    /// The exact join for short documents, and MinHash for all others.
    #[default]
    Auto,
    /// MinHash bands for all documents.
    MinHash,
    /// SimHash fingerprints within a Hamming distance.
    SimHash,
    /// Only texts that are equal after normalisation.
    Exact,
    /// The exact join for all documents.
    Join,
    /// The same longest sentences.
    Sentences,
    /// The smallest hashes of the features: one of the very smallest in common.
    BottomK,
}

/// The similarity measure by which candidates are verified. In the formulas, t is the threshold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Measure {
    /// |A ∩ B| / |A ∪ B| on the sets of features.
    #[default]
    Jaccard,
    /// |A ∩ B| / min(|A|, |B|), for pairs whose Jaccard index is at least t/(2−t). Two sets of equal
    /// size have that index when one contains the share t of the other.
    Containment,
    /// The cosine of the weighted features, for pairs whose Jaccard index is at least t/(2−t). A weight
    /// is the number of occurrences unless weights are given.
    Cosine,
    /// 1 − Levenshtein distance ÷ length of the longer text, for pairs whose Jaccard index is at least
    /// what that many edits leave of the features.
    Levenshtein,
    /// 1 − Indel distance ÷ sum of both lengths, for pairs as with Levenshtein.
    Indel,
    /// 2 · length of the longest common substring ÷ sum of both lengths, for pairs whose Jaccard index
    /// is at least t/(2−t).
    Substring,
    /// The sketches alone: the share of equal slots, 1 − distance/bits, the estimate from the smallest
    /// hashes, or 1 for equal sentences. Documents of the exact join are still compared exactly.
    Sketch,
}

/// The unit of edits and lengths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unit {
    /// Characters of the normalised text.
    #[default]
    Characters,
    /// Tokens of the recipe: words, and single characters in scripts written without spaces.
    Words,
}

/// The rule by which SimHash fingerprints are candidates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Candidates {
    /// Fingerprints within the distance.
    #[default]
    Distance,
    /// Fingerprints that share one of distance + 1 equal blocks of bits, whatever their distance is.
    Blocks,
}

/// The match options that a user chooses.
///
/// ```
/// use lookalike::plan::{Measure, Method, Plan, Settings};
/// use lookalike::{Recipe, Threshold};
///
/// // SimHash fingerprints within distance 6, verified by containment at the default threshold.
/// let settings = Settings {
///     method: Method::SimHash,
///     distance: 6,
///     measure: Measure::Containment,
///     ..Settings::default()
/// };
/// let plan = Plan::new(&Recipe::named("default")?, settings)?;
/// assert_eq!(plan.threshold(), Threshold::DEFAULT);
/// assert!(plan.distance().is_some_and(|distance| distance.get() == 6));
/// # Ok::<_, lookalike::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Method of finding candidates.
    pub method: Method,
    /// Least similarity of a match. A plan replaces it where something else decides: by 1 with
    /// [`Method::Exact`]; with [`Measure::Sketch`], by 1 − distance/bits for SimHash and by 1 for
    /// sentences.
    pub threshold: Threshold,
    /// Largest Hamming distance of SimHash candidates.
    pub distance: u32,
    /// Measure by which candidates are verified.
    pub measure: Measure,
    /// Unit of edits and lengths.
    pub unit: Unit,
    /// Rule by which SimHash fingerprints are candidates.
    pub candidates: Candidates,
    /// Number of longest sentences that represent a document; at least 1.
    pub sentences: usize,
}

/// Default number of longest sentences that represent a document.
pub const SENTENCES: usize = 3;

impl Default for Settings {
    fn default() -> Self {
        Self {
            method: Method::Auto,
            threshold: Threshold::DEFAULT,
            distance: 3,
            measure: Measure::Jaccard,
            unit: Unit::Characters,
            candidates: Candidates::Distance,
            sentences: SENTENCES,
        }
    }
}

/// The division of a signature into bands of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bands {
    /// Number of bands.
    pub bands: usize,
    /// Slots in a band.
    pub rows: usize,
    /// Least number of equal slots in the whole signature for a candidate pair.
    pub least_equal: usize,
}

/// The exact join of short documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Join {
    /// Largest number of features of a short document. Short documents have no signature.
    pub short: usize,
    /// Largest number of features of a document that takes part.
    pub reach: usize,
}

/// A division of the bits of fingerprints into blocks of equal width. If the number of bits is not a
/// multiple, the first blocks have one bit more.
///
/// ```
/// use lookalike::plan::Blocks;
///
/// // Two fingerprints of 64 bits with 3 different bits agree in at least one of 4 blocks.
/// let blocks = Blocks { count: 4, bits: 64 };
/// assert!(blocks.share(0, 1 << 40 | 1 << 20 | 1));
/// assert!(!blocks.share(0, 1 << 60 | 1 << 40 | 1 << 20 | 1));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocks {
    /// Number of blocks.
    pub count: u32,
    /// Bits of a fingerprint.
    pub bits: u32,
}

impl Blocks {
    /// Returns a mask of the bits of each block.
    pub fn masks(self) -> impl Iterator<Item = u128> {
        let Self { count, bits } = self;
        (0..count).map(move |at| {
            let start = bits / count * at + at.min(bits % count);
            let width = bits / count + u32::from(at < bits % count);
            (u128::MAX >> (128 - width)) << start
        })
    }

    /// Returns `true` if two fingerprints have at least one block in common.
    pub fn share(self, a: u128, b: u128) -> bool {
        self.masks().any(|mask| (a ^ b) & mask == 0)
    }
}

/// The bottom-k sketch: the smallest hashes of a document's features.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Smallest {
    /// Number of each document's smallest hashes that are bucket keys. Two documents are candidates
    /// only if they have one of these in common.
    pub meeting: usize,
    /// Number of hashes that are kept of a document.
    pub kept: usize,
    /// Least number of shared hashes, among the smallest of the union, for a candidate pair. Applies
    /// where the union has at least `kept` hashes.
    pub least_equal: usize,
}

impl Smallest {
    /// Returns the sketch with the fewest bucket keys that find a pair at the threshold with
    /// probability [`RECALL`].
    fn for_recall(kept: usize, threshold: Threshold) -> Result<Self> {
        let least_equal = cutoff(kept, threshold.get());
        (1..=kept)
            .map(|meeting| Self {
                meeting,
                kept,
                least_equal,
            })
            .find(|smallest| smallest.recall(threshold.get()) - CUTOFF_LOSS >= RECALL)
            .ok_or_else(|| {
                Error::setting(format!(
                    "sketches of {kept} smallest hashes do not find pairs at the threshold \
                     {threshold} with probability {RECALL}: give a higher threshold or more slots, \
                     or use the exact join",
                    threshold = threshold.get()
                ))
            })
    }

    /// Returns a lower bound of the probability that a pair with this Jaccard index J shares a bucket
    /// key. Each of the smallest hashes of the union is in both documents with probability J, and then
    /// it is among the smallest of both.
    pub fn recall(&self, jaccard: f64) -> f64 {
        1.0 - (1.0 - jaccard).powi(self.meeting as i32)
    }
}

/// A match plan: how candidates are found and checked.
///
/// ```
/// use lookalike::plan::{Plan, RECALL, Settings};
/// use lookalike::{Recipe, Threshold};
///
/// let threshold = Threshold::new(0.8)?;
/// let plan = Plan::new(&Recipe::named("default")?, Settings { threshold, ..Settings::default() })?;
/// // Two long documents are candidates if 6 slots of a band are equal.
/// let bands = plan.bands().unwrap();
/// assert_eq!(bands.rows, 6);
/// assert!(bands.recall(0.8) >= RECALL);
/// // Short documents are joined exactly.
/// assert_eq!(plan.join().unwrap().short, 64);
/// # Ok::<_, lookalike::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan {
    settings: Settings,
    candidate_threshold: Threshold,
    join: Option<Join>,
    bands: Option<Bands>,
    smallest: Option<Smallest>,
    distance: Option<Distance>,
    bits: u32,
    slots: usize,
}

impl Plan {
    /// Returns the plan for a recipe and settings.
    ///
    /// # Errors
    /// Fails if the distance is not below the bits of the recipe's SimHash, if no bands of the recipe's
    /// signature or no smallest hashes reach [`RECALL`] at the threshold, or if the number of sentences
    /// is 0 with [`Method::Sentences`].
    pub fn new(recipe: &Recipe, settings: Settings) -> Result<Self> {
        let bits = recipe.simhash.bits;
        let distance = if settings.method == Method::SimHash {
            Some(Distance::new(settings.distance, bits)?)
        } else {
            None
        };
        let settings = Settings {
            threshold: deciding_threshold(&settings, bits)?,
            ..settings
        };
        let candidate_threshold = candidate_threshold(&settings, recipe.ngram)?;
        let slots = recipe.minhash.slots as usize;
        let (short, signs) = match settings.method {
            Method::Auto => (Some(SHORT), true),
            Method::MinHash => (None, true),
            Method::Join => (Some(usize::MAX), false),
            Method::SimHash | Method::Exact | Method::Sentences | Method::BottomK => (None, false),
        };
        let join = short.map(|short| Join {
            short,
            reach: ((short as f64 / candidate_threshold.get()) as usize).saturating_add(1),
        });
        let bands = if signs {
            Some(Bands::for_recall(slots, candidate_threshold)?)
        } else {
            None
        };
        let smallest = if settings.method == Method::BottomK {
            Some(Smallest::for_recall(slots, candidate_threshold)?)
        } else {
            None
        };
        if settings.method == Method::Sentences && settings.sentences == 0 {
            return Err(Error::setting(
                "0 sentences cannot represent a document: give 1 or more",
            ));
        }
        Ok(Self {
            settings,
            candidate_threshold,
            join,
            bands,
            smallest,
            distance,
            bits,
            slots,
        })
    }

    /// Returns the settings. Their threshold is the one that decides.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Returns the least similarity of a match.
    pub fn threshold(&self) -> Threshold {
        self.settings.threshold
    }

    /// Returns the least Jaccard index of candidates.
    pub fn candidate_threshold(&self) -> Threshold {
        self.candidate_threshold
    }

    /// Returns the least Jaccard index of candidates if another measure decides among them. Pairs below
    /// it are not compared, however similar they are by that measure.
    pub fn candidates_from(&self) -> Option<Threshold> {
        let measure = self.settings.measure;
        let decides = !matches!(measure, Measure::Jaccard | Measure::Sketch);
        (decides && self.finds_by_features()).then_some(self.candidate_threshold)
    }

    /// Returns the exact join, if the plan has one.
    pub fn join(&self) -> Option<Join> {
        self.join
    }

    /// Returns the bands, if the plan compares signatures.
    pub fn bands(&self) -> Option<Bands> {
        self.bands
    }

    /// Returns the Hamming distance, if the plan compares fingerprints.
    pub fn distance(&self) -> Option<Distance> {
        self.distance
    }

    /// Returns the blocks of bits, if candidates are found by these instead of the distance.
    pub fn blocks(&self) -> Option<Blocks> {
        let count = self.distance?.get() + 1;
        let bits = self.bits;
        (self.settings.candidates == Candidates::Blocks).then_some(Blocks { count, bits })
    }

    /// Returns the number of longest sentences, if the plan compares sentences.
    pub fn sentences(&self) -> Option<usize> {
        (self.settings.method == Method::Sentences).then_some(self.settings.sentences)
    }

    /// Returns the bottom-k sketch, if the plan compares it.
    pub fn smallest(&self) -> Option<Smallest> {
        self.smallest
    }

    /// Returns the similarity of sequences by which candidates are verified, if the measure is one.
    pub fn of_sequences(&self) -> Option<OfSequences> {
        if self.settings.method == Method::Exact {
            return None;
        }
        match self.settings.measure {
            Measure::Levenshtein => Some(OfSequences::Levenshtein),
            Measure::Indel => Some(OfSequences::Indel),
            Measure::Substring => Some(OfSequences::Substring),
            Measure::Jaccard | Measure::Containment | Measure::Cosine | Measure::Sketch => None,
        }
    }

    /// Returns `true` if candidates must have a Jaccard index of at least
    /// [`candidate_threshold`](Self::candidate_threshold).
    pub fn finds_by_features(&self) -> bool {
        self.join.is_some() || self.bands.is_some() || self.smallest.is_some()
    }

    /// Returns the least Jaccard index of all matching pairs of unequal texts, if the plan guarantees
    /// one without relying on sketches. It is [`candidate_threshold`](Self::candidate_threshold).
    pub(crate) fn least_jaccard(&self) -> Option<Threshold> {
        let reach = match self.settings.measure {
            Measure::Sketch => false,
            Measure::Jaccard => true,
            _ => self.finds_by_features(),
        };
        reach.then_some(self.candidate_threshold)
    }

    /// Returns the number of bits of the recipe's fingerprints.
    pub fn bits(&self) -> u32 {
        self.bits
    }

    /// Returns the number of slots of the recipe's signatures.
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// Returns the bytes of memory of a document's sketch, if it has one, besides those that every
    /// document takes.
    pub fn sketch_bytes(&self) -> usize {
        let sketch = if self.bands.is_some() {
            4 * self.slots
        } else if self.distance.is_some() {
            16
        } else if let Some(smallest) = self.smallest {
            8 * smallest.kept + 8
        } else if self.sentences().is_some() {
            8
        } else {
            0
        };
        let outline = if self.of_sequences().is_some() { 20 } else { 0 };
        sketch + outline
    }
}

/// Lowest Jaccard index down to which candidates of a measure of sequences are searched for.
pub const LEAST_CANDIDATES: f64 = 0.2;

/// Returns the threshold that decides: the chosen one, or the one that follows from the method and
/// measure.
fn deciding_threshold(settings: &Settings, bits: u32) -> Result<Threshold> {
    match (settings.method, settings.measure) {
        (Method::Exact, _) | (Method::Sentences, Measure::Sketch) => Threshold::new(1.0),
        (Method::SimHash, Measure::Sketch) => {
            let equal = bits - settings.distance;
            Threshold::new(Similarity::ratio(equal as usize, bits as usize).get())
        }
        _ => Ok(settings.threshold),
    }
}

/// Returns the least Jaccard index of candidates.
///
/// An edit of one character (or token) changes at most `ngram` = n features. So if two texts of equal
/// length have a Levenshtein similarity of 1 − x, they have a Jaccard index of at least (1 − n·x)/(1 +
/// n·x). With Indel, 2n − 1 takes the place of n, because an insertion in one place and a deletion in
/// another cost as much as one substitution.
fn candidate_threshold(settings: &Settings, ngram: u32) -> Result<Threshold> {
    let threshold = settings.threshold.get();
    let after_edits = |features: u32| {
        let changed = f64::from(features) * (1.0 - threshold);
        ((1.0 - changed) / (1.0 + changed)).max(LEAST_CANDIDATES)
    };
    let least = match settings.measure {
        Measure::Containment | Measure::Cosine | Measure::Substring => {
            threshold / (2.0 - threshold)
        }
        Measure::Levenshtein => after_edits(ngram).min(threshold),
        Measure::Indel => after_edits(2 * ngram - 1).min(threshold),
        Measure::Jaccard | Measure::Sketch => return Ok(settings.threshold),
    };
    // Lowered by more than all rounding errors, because for example 80 of 120 must reach the bound of
    // 0.8.
    Threshold::new(least * (1.0 - 8.0 * f64::EPSILON))
}

impl Bands {
    /// Returns the bands with the most rows that find a pair at the threshold with probability
    /// [`RECALL`].
    fn for_recall(slots: usize, threshold: Threshold) -> Result<Self> {
        let least_equal = cutoff(slots, threshold.get());
        (1..=slots)
            .rev()
            .map(|rows| Self {
                bands: slots / rows,
                rows,
                least_equal,
            })
            .find(|bands| bands.recall(threshold.get()) - CUTOFF_LOSS >= RECALL)
            .ok_or_else(|| {
                Error::setting(format!(
                    "no bands of {slots} slots find pairs at the threshold {threshold} with \
                     probability {RECALL}: give a higher threshold or more slots, or use the exact \
                     join",
                    threshold = threshold.get()
                ))
            })
    }

    /// Returns the probability that a pair with this Jaccard index shares a band: 1 − (1 −
    /// J^rows)^bands.
    pub fn recall(&self, jaccard: f64) -> f64 {
        1.0 - (1.0 - jaccard.powi(self.rows as i32)).powi(self.bands as i32)
    }
}

/// Returns the largest number of equal slots below which a pair at the threshold falls with a
/// probability of at most [`CUTOFF_LOSS`].
fn cutoff(slots: usize, threshold: f64) -> usize {
    if threshold == 1.0 {
        return slots;
    }
    // In logarithms, because near a threshold of 1 the probability of few equal slots underflows `f64`.
    let odds = (threshold / (1.0 - threshold)).ln();
    let mut probability = slots as f64 * (1.0 - threshold).ln();
    let mut below = 0.0;
    for equal in 0..slots {
        below += probability.exp();
        if below > CUTOFF_LOSS {
            return equal;
        }
        probability += odds + ((slots - equal) as f64 / (equal + 1) as f64).ln();
    }
    slots
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(threshold: f64) -> Plan {
        let threshold = Threshold::new(threshold).unwrap();
        Plan::new(
            &Recipe::default(),
            Settings {
                threshold,
                ..Settings::default()
            },
        )
        .unwrap()
    }

    #[test]
    fn bands_are_the_most_selective_that_keep_the_recall() {
        for (threshold, bands, rows) in [(0.8, 21, 6), (0.9, 12, 10), (0.6, 42, 3), (0.5, 42, 3)] {
            let chosen = plan(threshold).bands().unwrap();
            assert_eq!((chosen.bands, chosen.rows), (bands, rows), "at {threshold}");
            assert!(chosen.recall(threshold) >= RECALL);
            let next = Bands {
                bands: 128 / (rows + 1),
                rows: rows + 1,
                ..chosen
            };
            assert!(next.recall(threshold) < RECALL + CUTOFF_LOSS);
        }
    }

    #[test]
    fn the_cutoff_loses_no_more_than_it_may() {
        for threshold in [0.3, 0.5, 0.8, 0.9, 0.99, 0.996, 0.9965, 0.999, 0.99999] {
            let least = cutoff(128, threshold);
            let mut rng = 1u64;
            let mut lost = 0;
            let rounds = 20_000;
            for _ in 0..rounds {
                let equal = (0..128)
                    .filter(|_| {
                        rng = crate::hash::mix(rng.wrapping_add(0x9e37_79b9));
                        (rng >> 11) as f64 / (1u64 << 53) as f64 <= threshold
                    })
                    .count();
                lost += usize::from(equal < least);
            }
            assert!(
                lost as f64 <= 2.5 * CUTOFF_LOSS * f64::from(rounds),
                "{threshold}: {lost}"
            );
            assert!((least as f64) < 128.0 * threshold);
        }
        assert_eq!(cutoff(128, 1.0), 128);
    }

    #[test]
    fn the_cutoff_is_the_quantile_of_the_binomial_distribution() {
        for slots in [16, 64, 100, 128] {
            for thousandths in 50..=1000 {
                let threshold = f64::from(thousandths) / 1000.0;
                let below = |least| {
                    (0..least)
                        .map(|equal| binomial(slots, equal, threshold))
                        .sum()
                };
                let least = cutoff(slots, threshold);
                let (lost, with_one_more): (f64, f64) = (below(least), below(least + 1));
                assert!(
                    lost <= CUTOFF_LOSS + 1e-9,
                    "{slots} slots, {threshold}: loses {lost}"
                );
                assert!(with_one_more > CUTOFF_LOSS - 1e-9 || least == slots);
            }
        }
    }

    /// Returns the probability that exactly `successes` of `trials` succeed, each with probability `p`.
    /// The factors are multiplied in an order that keeps the product in range.
    fn binomial(trials: usize, successes: usize, p: f64) -> f64 {
        let failures = trials - successes;
        let mut product = 1.0;
        let (mut taken, mut failed, mut chosen) = (0, 0, 0);
        while taken < successes || failed < failures || chosen < successes {
            if chosen < successes && product < 1.0 || taken == successes && failed == failures {
                product *= (trials - chosen) as f64 / (chosen + 1) as f64;
                chosen += 1;
            } else if taken < successes {
                product *= p;
                taken += 1;
            } else {
                product *= 1.0 - p;
                failed += 1;
            }
        }
        product
    }

    #[test]
    fn around_a_border_one_feature_decides() {
        let plan = plan(0.8);
        let Join { short, reach } = plan.join().unwrap();
        assert_eq!((short, reach), (64, 81));
        // 64 of 80 is the largest match of a short document.
        assert!(plan.threshold().admits(64, 80) && !plan.threshold().admits(64, 81));
        for (part, whole, admitted) in [
            (7, 10, false),
            (8, 10, true),
            (9, 10, true),
            (79, 99, false),
            (80, 100, true),
        ] {
            assert_eq!(
                plan.threshold().admits(part, whole),
                admitted,
                "{part} of {whole}"
            );
        }
        assert_eq!(plan.threshold().least_part(10), 8);
        assert_eq!(plan.threshold().least_part(11), 9);
    }

    #[test]
    fn containment_finds_candidates_at_the_jaccard_index_of_equal_sizes() {
        let settings = Settings {
            measure: Measure::Containment,
            threshold: Threshold::new(0.8).unwrap(),
            ..Settings::default()
        };
        let plan = Plan::new(&Recipe::default(), settings).unwrap();
        let least = plan.candidate_threshold();
        // Two sets of 100 that share 80 have a union of 120.
        assert!(least.admits(81, 119) && least.admits(80, 120) && !least.admits(79, 121));
        assert!(!least.admits(plan.join().unwrap().short, plan.join().unwrap().reach + 1));
        assert!(plan.bands().unwrap().recall(least.get()) >= RECALL);
        for hundredths in 1..=100 {
            let threshold = Threshold::new(f64::from(hundredths) / 100.0).unwrap();
            let settings = Settings {
                threshold,
                method: Method::Join,
                ..settings
            };
            let least = Plan::new(&Recipe::default(), settings)
                .unwrap()
                .candidate_threshold();
            for size in 1..300 {
                let shared = threshold.least_part(size);
                let at_the_threshold = shared * 100 == size * hundredths as usize;
                assert!(
                    least.admits(shared, 2 * size - shared),
                    "{shared} of {size}"
                );
                if at_the_threshold {
                    assert!(!least.admits(shared - 1, 2 * size - shared + 1));
                }
            }
        }
    }

    #[test]
    fn edits_leave_so_much_of_the_features() {
        let least = |measure, threshold, ngram| {
            let settings = Settings {
                measure,
                threshold: Threshold::new(threshold).unwrap(),
                method: Method::Join,
                ..Settings::default()
            };
            let recipe = Recipe {
                ngram,
                ..Recipe::default()
            };
            let plan = Plan::new(&recipe, settings).unwrap();
            plan.candidate_threshold()
        };
        // 10 substitutions change 20 of 100 features: 80 of 120 remain.
        let pairs = least(Measure::Levenshtein, 0.9, 2);
        assert!(pairs.admits(80, 120) && !pairs.admits(79, 121));
        let single = least(Measure::Levenshtein, 0.8, 1);
        assert!(single.admits(80, 120) && !single.admits(79, 121));
        // 5 insertions and 5 deletions in 100 tokens: 10 and 5 features of one text, and 5 and 10 of
        // the other.
        let indel = least(Measure::Indel, 0.95, 2);
        assert!(indel.admits(85, 115) && !indel.admits(84, 116));
        assert!(least(Measure::Levenshtein, 1.0, 2).admits(100, 100));
        assert!(least(Measure::Levenshtein, 0.5, 2).admits(20, 100));
        assert!(!least(Measure::Levenshtein, 0.5, 2).admits(19, 100));
        assert!(least(Measure::Levenshtein, 0.1, 2).admits(10, 100));
        assert!(least(Measure::Cosine, 0.8, 2).admits(80, 120));
        assert!(least(Measure::Substring, 0.8, 2).admits(80, 120));
    }

    #[test]
    fn blocks_part_all_bits() {
        for (count, bits) in [(4, 64), (1, 64), (7, 64), (8, 8), (5, 127), (128, 128)] {
            let blocks = Blocks { count, bits };
            let masks: Vec<u128> = blocks.masks().collect();
            assert_eq!(masks.len(), count as usize);
            let all = masks.iter().fold(0, |all, mask| {
                assert_eq!(all & mask, 0);
                all | mask
            });
            assert_eq!(all, u128::MAX >> (128 - bits));
            let widths = masks.iter().map(|mask| mask.count_ones());
            assert!(widths.clone().max().unwrap() <= widths.min().unwrap() + 1);
            for mask in &masks {
                assert!(blocks.share(!mask & all, 0) && blocks.share(0, !mask & all));
            }
            let one_of_each = masks
                .iter()
                .fold(0, |bits, mask| bits | mask & mask.wrapping_neg());
            assert!(!blocks.share(one_of_each, 0));
        }
    }

    #[test]
    fn as_few_smallest_hashes_meet_as_keep_the_recall() {
        for (threshold, meeting) in [(0.8, 3), (0.9, 3), (0.95, 2), (0.5, 7), (1.0, 1)] {
            let settings = Settings {
                threshold: Threshold::new(threshold).unwrap(),
                method: Method::BottomK,
                ..Settings::default()
            };
            let plan = Plan::new(&Recipe::default(), settings).unwrap();
            let smallest = plan.smallest().unwrap();
            assert_eq!(
                (smallest.meeting, smallest.kept),
                (meeting, 128),
                "{threshold}"
            );
            assert!(smallest.recall(threshold) >= RECALL);
        }
    }

    #[test]
    fn every_plan_that_is_made_keeps_the_recall() {
        for slots in 16..=128 {
            let mut recipe = Recipe::default();
            recipe.minhash.slots = slots;
            for thousandths in 1..=1000 {
                let threshold = Threshold::new(f64::from(thousandths) / 1000.0).unwrap();
                let settings = Settings {
                    threshold,
                    ..Settings::default()
                };
                let Ok(plan) = Plan::new(&recipe, settings) else {
                    let needed = 1.0 - (1.0 - threshold.get()).powi(slots as i32);
                    assert!(
                        needed < RECALL + CUTOFF_LOSS,
                        "{slots} slots, {threshold:?}"
                    );
                    continue;
                };
                let bands = plan.bands().unwrap();
                assert!(bands.bands * bands.rows <= slots as usize);
                assert!(bands.recall(threshold.get()) >= RECALL);
            }
        }
    }

    #[test]
    fn what_no_plan_can_do_is_refused() {
        let settings = |threshold, method, distance| Settings {
            threshold: Threshold::new(threshold).unwrap(),
            method,
            distance,
            ..Settings::default()
        };
        let refused = Plan::new(&Recipe::default(), settings(0.01, Method::MinHash, 3));
        assert!(refused.unwrap_err().to_string().contains("0.01"));
        assert!(Plan::new(&Recipe::default(), settings(0.01, Method::Join, 3)).is_ok());
        assert!(Plan::new(&Recipe::default(), settings(0.8, Method::SimHash, 64)).is_err());
        assert!(Plan::new(&Recipe::default(), settings(0.8, Method::SimHash, 63)).is_ok());
    }

    #[test]
    fn the_join_reaches_as_far_as_a_short_match_can() {
        for threshold in [0.5, 0.6, 0.7, 0.8, 0.9, 1.0] {
            let plan = plan(threshold);
            let join = plan.join().unwrap();
            assert!(
                !plan.threshold().admits(join.short, join.reach + 1),
                "at {threshold}"
            );
        }
    }
}
