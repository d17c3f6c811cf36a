//! How candidates are found, and which of them match: one predicate for every door.
//!
//! A [`Plan`] follows from recipe, method, threshold, measure and distance alone, never from the
//! size of a corpus, so a batch, a service and a cluster agree on every pair. `auto` has one
//! predicate, the similarity at the threshold, and two routes to it:
//!
//! * documents of few features take part in an **exact join**: every pair of them at the threshold
//!   is found. Those just above the border take part too, as far up as a short document's match can
//!   reach, so that no pair is lost across it;
//! * documents above the border have **MinHash** signatures, and those that share a band of slots
//!   and enough slots altogether are candidates.
//!
//! The number of rows in a band is the largest with which a pair *at* the threshold is found with
//! probability [`RECALL`]: recall first, since verification removes what is too much.

use crate::error::{Error, Result};
use crate::recipe::Recipe;
use crate::types::{Distance, Similarity, Threshold};
use crate::verify::OfSequences;

/// The least predicted recall of a pair whose similarity is the threshold.
pub const RECALL: f64 = 0.99;

/// What the check of sketches may lose besides: pairs at the threshold that share fewer slots.
const CUTOFF_LOSS: f64 = 0.0005;

/// Documents of up to this many distinct features are joined exactly.
pub const SHORT: usize = 64;

/// How candidates are found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Method {
    /// The exact join for short documents, MinHash for the others.
    #[default]
    Auto,
    /// MinHash bands for all.
    MinHash,
    /// SimHash fingerprints within a Hamming distance.
    SimHash,
    /// Only texts that are equal after normalisation.
    Exact,
    /// The exact join for all.
    Join,
    /// The same longest sentences.
    Sentences,
    /// The smallest hashes of the features: one of the very smallest in common.
    BottomK,
}

/// What a candidate pair is checked by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Measure {
    /// |A ∩ B| / |A ∪ B| on the sets of features.
    #[default]
    Jaccard,
    /// |A ∩ B| / min(|A|, |B|), for pairs whose Jaccard index reaches t/(2−t): what two sets of
    /// equal size have when one contains t of the other.
    Containment,
    /// The cosine of the features with their weights, which are their numbers of occurrences unless
    /// weights were given; for pairs whose Jaccard index reaches t/(2−t).
    Cosine,
    /// 1 − Levenshtein distance ÷ the length of the longer text, for pairs whose Jaccard index
    /// reaches what so many edits leave of the features.
    Levenshtein,
    /// 1 − Indel distance ÷ the sum of both lengths, for the same pairs as with Levenshtein.
    Indel,
    /// 2 · length of the longest common substring ÷ the sum of both lengths, for pairs whose Jaccard
    /// index reaches t/(2−t).
    Substring,
    /// Nothing but the sketches: the share of equal slots, or 1 − distance/bits, or the estimate of
    /// the smallest hashes, or 1 for equal sentences. Documents of the exact join are compared
    /// exactly all the same.
    Sketch,
}

/// What edits are counted in, and lengths measured in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unit {
    /// Characters of the normalised text.
    #[default]
    Characters,
    /// Tokens of the recipe: words, and single characters in scripts written without spaces.
    Words,
}

/// Which fingerprints are candidates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Candidates {
    /// Those within the distance.
    #[default]
    Distance,
    /// Those that share one of distance + 1 equal blocks of bits, however far they are.
    Blocks,
}

/// What a person chooses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// How candidates are found.
    pub method: Method,
    /// The least similarity that matches. Where something else decides, a plan has what follows from
    /// that instead: 1 with [`Method::Exact`]; with [`Measure::Sketch`], 1 − distance/bits for SimHash
    /// and 1 for sentences.
    pub threshold: Threshold,
    /// The largest Hamming distance of SimHash candidates.
    pub distance: u32,
    /// What candidates are checked by.
    pub measure: Measure,
    /// What edits are counted in.
    pub unit: Unit,
    /// Which SimHash fingerprints are candidates.
    pub candidates: Candidates,
    /// How many of its longest sentences stand for a document, from 1.
    pub sentences: usize,
}

/// The longest sentences that stand for a document, unless another number is asked for.
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

/// Bands of rows of a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bands {
    /// How many bands.
    pub bands: usize,
    /// Slots in a band.
    pub rows: usize,
    /// Pairs that share fewer slots of the whole signature are no candidates.
    pub least_equal: usize,
}

/// The exact join of short documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Join {
    /// Documents of up to so many features are short: they have no signature.
    pub short: usize,
    /// Documents of up to so many features take part.
    pub reach: usize,
}

/// Equal blocks of the bits of fingerprints: the first ones are a bit wider where they do not divide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocks {
    /// How many blocks.
    pub count: u32,
    /// Bits of a fingerprint.
    pub bits: u32,
}

impl Blocks {
    /// The bits of every block.
    pub fn masks(self) -> impl Iterator<Item = u128> {
        let Self { count, bits } = self;
        (0..count).map(move |at| {
            let start = bits / count * at + at.min(bits % count);
            let width = bits / count + u32::from(at < bits % count);
            (u128::MAX >> (128 - width)) << start
        })
    }

    /// Whether two fingerprints have one of the blocks in common.
    pub fn share(self, a: u128, b: u128) -> bool {
        self.masks().any(|mask| (a ^ b) & mask == 0)
    }
}

/// The smallest hashes of features.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Smallest {
    /// Two documents meet if they have one of so many of their smallest hashes in common.
    pub meeting: usize,
    /// So many hashes are kept of a document.
    pub kept: usize,
    /// Pairs that share fewer of the smallest hashes of their union are no candidates, where the
    /// union has at least as many as are kept.
    pub least_equal: usize,
}

impl Smallest {
    /// As few meeting hashes as find a pair at the threshold with probability [`RECALL`].
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
                    "no {kept} smallest hashes find pairs at the threshold {threshold} with \
                     probability {RECALL}: give a higher threshold or more slots, or use the exact \
                     join",
                    threshold = threshold.get()
                ))
            })
    }

    /// The probability that a pair with this Jaccard index meets, or less: each of the smallest
    /// hashes of the union is in both with the probability J, and then among the smallest of both.
    pub fn recall(&self, jaccard: f64) -> f64 {
        1.0 - (1.0 - jaccard).powi(self.meeting as i32)
    }
}

/// How candidates are found and checked.
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
    /// The plan for a recipe and settings.
    ///
    /// # Errors
    /// If the distance is not below the bits of the recipe's SimHash, or no bands of the recipe's
    /// signature reach [`RECALL`] at the threshold.
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
                "0 sentences stand for nothing: give 1 or more",
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

    /// What was chosen.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The least similarity that matches.
    pub fn threshold(&self) -> Threshold {
        self.settings.threshold
    }

    /// The least Jaccard index for which candidates are found.
    pub fn candidate_threshold(&self) -> Threshold {
        self.candidate_threshold
    }

    /// The least Jaccard index for which candidates are found, where another measure then decides:
    /// pairs below it are not compared, however similar by that.
    pub fn candidates_from(&self) -> Option<Threshold> {
        let measure = self.settings.measure;
        let decides = !matches!(measure, Measure::Jaccard | Measure::Sketch);
        (decides && self.finds_by_features()).then_some(self.candidate_threshold)
    }

    /// The exact join, if it has a part.
    pub fn join(&self) -> Option<Join> {
        self.join
    }

    /// The bands, if signatures have a part.
    pub fn bands(&self) -> Option<Bands> {
        self.bands
    }

    /// The Hamming distance, if fingerprints have a part.
    pub fn distance(&self) -> Option<Distance> {
        self.distance
    }

    /// The blocks of bits that candidates share, if these take the place of the distance.
    pub fn blocks(&self) -> Option<Blocks> {
        let count = self.distance?.get() + 1;
        let bits = self.bits;
        (self.settings.candidates == Candidates::Blocks).then_some(Blocks { count, bits })
    }

    /// How many of its longest sentences stand for a document, if sentences have a part.
    pub fn sentences(&self) -> Option<usize> {
        (self.settings.method == Method::Sentences).then_some(self.settings.sentences)
    }

    /// The smallest hashes of features, if they have a part.
    pub fn smallest(&self) -> Option<Smallest> {
        self.smallest
    }

    /// The similarity of sequences that candidates are checked by, if it is one.
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

    /// Whether candidates must have a Jaccard index of at least
    /// [`candidate_threshold`](Self::candidate_threshold).
    pub fn finds_by_features(&self) -> bool {
        self.join.is_some() || self.bands.is_some() || self.smallest.is_some()
    }

    /// The Jaccard index that all pairs which match and are not equal texts reach, if there is one
    /// that does not come from sketches: [`candidate_threshold`](Self::candidate_threshold).
    pub(crate) fn least_jaccard(&self) -> Option<Threshold> {
        let reach = match self.settings.measure {
            Measure::Sketch => false,
            Measure::Jaccard => true,
            _ => self.finds_by_features(),
        };
        reach.then_some(self.candidate_threshold)
    }

    /// Bits of the recipe's fingerprints.
    pub fn bits(&self) -> u32 {
        self.bits
    }

    /// Slots of the recipe's signatures.
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// Bytes that are remembered of a document for its sketch, if it has one, besides what every
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

/// Candidates of a measure of sequences are looked for down to this Jaccard index, not below.
pub const LEAST_CANDIDATES: f64 = 0.2;

/// The least similarity with which documents match: as it was chosen, or as it follows from what
/// decides instead.
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

/// The least Jaccard index for which candidates are found.
///
/// A share x of edits on characters (or tokens) changes at most `ngram` features each, so of two texts
/// of equal length with Levenshtein similarity 1 − x it leaves an index of (1 − n·x)/(1 + n·x). With
/// Indel, where an insertion in one place and a deletion in another cost what a substitution does,
/// 2n − 1 stands for n.
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
    // Lower by more than all rounding: 80 of 120 must reach what 0.8 asks for.
    Threshold::new(least * (1.0 - 8.0 * f64::EPSILON))
}

impl Bands {
    /// The bands with the most rows that find a pair at the threshold with probability [`RECALL`].
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

    /// The probability that a pair with this Jaccard index shares a band: 1 − (1 − J^rows)^bands.
    pub fn recall(&self, jaccard: f64) -> f64 {
        1.0 - (1.0 - jaccard.powi(self.rows as i32)).powi(self.bands as i32)
    }
}

/// The largest number of equal slots below which a pair at the threshold falls with a probability
/// of at most [`CUTOFF_LOSS`].
fn cutoff(slots: usize, threshold: f64) -> usize {
    if threshold == 1.0 {
        return slots;
    }
    // Logarithms: near a threshold of 1, the probability of few equal slots is below every f64.
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

    /// Each of `trials` succeeds with probability `p`: the probability of `successes`, as a product
    /// whose factors are taken in an order that keeps it in range.
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
        // 64 of 80 is the farthest match of a short document.
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
        // Two sets of 100 that share 80: a union of 120.
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
        // 100 features, of which 10 substitutions change 20: 80 of 120 remain.
        let pairs = least(Measure::Levenshtein, 0.9, 2);
        assert!(pairs.admits(80, 120) && !pairs.admits(79, 121));
        let single = least(Measure::Levenshtein, 0.8, 1);
        assert!(single.admits(80, 120) && !single.admits(79, 121));
        // 5 insertions and 5 deletions of 100: 10 and 5 features of one text, 5 and 10 of the other.
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
