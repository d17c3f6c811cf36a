//! The match plan: how candidates are found, and which of them match.
//!
//! A [`MatchPlan`] follows from recipe, method, threshold, measure and distance alone, and never from the
//! size of a corpus. So batch, stream and shuffle agree on every pair.
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

mod measure;
mod method;

pub use measure::{
    ComparedInputs, LOWEST_CANDIDATE_THRESHOLD, LeastJaccard, MeasureDescriptor, SimilarityMeasure,
    WeightMeasure,
};
pub use method::{EqualKeySketch, JoinedDocuments, MatchMethod, MethodDescriptor, MethodSketch};

use crate::error::{Error, Result};
use crate::recipe::Recipe;
use crate::similarity::{OverlapBound, SequenceMeasure};
use crate::types::{Distance, Similarity, Threshold};

/// Least predicted recall of pairs whose similarity is the threshold.
pub const RECALL: f64 = 0.99;

/// Additional loss that the check of whole sketches may cause: the probability that a pair at the
/// threshold shares too few slots.
const CUTOFF_LOSS: f64 = 0.0005;

/// Largest number of distinct features of a short document. Short documents are joined exactly.
pub const SHORT: usize = 64;

/// Gives a closed set of choices the list of all of them and a name for each. A variant without a name does
/// not compile.
macro_rules! name_choices {
    ($choice:ident, $count:literal, $($variant:ident => $name:literal),+ $(,)?) => {
        impl $choice {
            /// All choices, in the order of their declaration.
            pub const ALL: [Self; $count] = [$(Self::$variant),+];

            /// Returns the name in options, requests, calls and reports.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name),+
                }
            }
        }
    };
}
pub(crate) use name_choices;

/// As [`name_choices`], for choices that have a descriptor with more than a name.
macro_rules! describe_choices {
    ($choice:ident, $descriptor:ident, $count:literal, $($variant:ident => $described:expr),+ $(,)?) => {
        impl $choice {
            /// All choices, in the order of their declaration.
            pub const ALL: [Self; $count] = [$(Self::$variant),+];

            /// Returns what there is to know about the choice.
            pub fn descriptor(self) -> &'static $descriptor {
                match self {
                    $(Self::$variant => {
                        static DESCRIPTOR_OF_CHOICE: $descriptor = $described;
                        &DESCRIPTOR_OF_CHOICE
                    })+
                }
            }

            /// Returns the name in options, requests, calls and reports.
            pub fn name(self) -> &'static str {
                self.descriptor().name
            }
        }
    };
}
pub(crate) use describe_choices;

/// The unit of edits and lengths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EditUnit {
    /// Characters of the normalised text.
    #[default]
    Characters,
    /// Tokens of the recipe: words, and single characters in scripts written without spaces.
    Words,
}

name_choices! {
    EditUnit, 2,
    Characters => "characters",
    Words => "words",
}

/// The rule by which SimHash fingerprints are candidates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CandidateRule {
    /// Fingerprints within the distance.
    #[default]
    Distance,
    /// Fingerprints that share one of distance + 1 equal blocks of bits, whatever their distance is.
    Blocks,
}

name_choices! {
    CandidateRule, 2,
    Distance => "distance",
    Blocks => "blocks",
}

/// The match options that a user chooses.
///
/// ```
/// use lookalike::plan::{SimilarityMeasure, MatchMethod, MatchPlan, MatchSettings};
/// use lookalike::{Recipe, Threshold};
///
/// // SimHash fingerprints within distance 6, verified by containment at the default threshold.
/// let settings = MatchSettings {
///     method: MatchMethod::SimHash,
///     distance: 6,
///     measure: SimilarityMeasure::Containment,
///     ..MatchSettings::default()
/// };
/// let plan = MatchPlan::new(&Recipe::built_in("default")?, settings)?;
/// assert_eq!(plan.threshold(), Threshold::DEFAULT);
/// assert!(plan.distance().is_some_and(|distance| distance.get() == 6));
/// # Ok::<_, lookalike::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MatchSettings {
    /// Method of finding candidates.
    pub method: MatchMethod,
    /// Least similarity of a match. A plan replaces it where something else decides: by 1 with
    /// [`MatchMethod::Exact`]; with [`SimilarityMeasure::Sketch`], by 1 − distance/bits for SimHash and
    /// by 1 for sentences.
    pub threshold: Threshold,
    /// Largest Hamming distance of SimHash candidates.
    pub distance: u32,
    /// Measure by which candidates are verified.
    pub measure: SimilarityMeasure,
    /// Unit of edits and lengths.
    pub unit: EditUnit,
    /// Rule by which SimHash fingerprints are candidates.
    pub candidates: CandidateRule,
    /// Number of longest sentences that represent a document; at least 1.
    pub sentences: usize,
}

/// Default number of longest sentences that represent a document.
pub const SENTENCES: usize = 3;

impl Default for MatchSettings {
    fn default() -> Self {
        Self {
            method: MatchMethod::Auto,
            threshold: Threshold::DEFAULT,
            distance: 3,
            measure: SimilarityMeasure::Jaccard,
            unit: EditUnit::Characters,
            candidates: CandidateRule::Distance,
            sentences: SENTENCES,
        }
    }
}

/// The division of a signature into bands of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BandPlan {
    /// Number of bands.
    pub bands: usize,
    /// Slots in a band.
    pub rows: usize,
    /// Least number of equal slots in the whole signature for a candidate pair.
    pub min_equal_slots: usize,
}

/// The exact join of short documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JoinPlan {
    /// Largest number of features of a short document. Short documents have no signature.
    pub max_features: usize,
    /// Largest number of features of a document that takes part.
    pub max_partner_features: usize,
}

/// A division of the bits of fingerprints into blocks of equal width. If the number of bits is not a
/// multiple, the first blocks have one bit more.
///
/// ```
/// use lookalike::plan::BlockPlan;
///
/// // Two fingerprints of 64 bits with 3 different bits agree in at least one of 4 blocks.
/// let blocks = BlockPlan { count: 4, bits: 64 };
/// assert!(blocks.share_block(0, 1 << 40 | 1 << 20 | 1));
/// assert!(!blocks.share_block(0, 1 << 60 | 1 << 40 | 1 << 20 | 1));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockPlan {
    /// Number of blocks.
    pub count: u32,
    /// Bits of a fingerprint.
    pub bits: u32,
}

impl BlockPlan {
    /// Returns a mask of the bits of each block.
    pub fn block_masks(self) -> impl Iterator<Item = u128> {
        let Self { count, bits } = self;
        (0..count).map(move |at| {
            let start = bits / count * at + at.min(bits % count);
            let width = bits / count + u32::from(at < bits % count);
            (u128::MAX >> (128 - width)) << start
        })
    }

    /// Returns `true` if two fingerprints have at least one block in common.
    pub fn share_block(self, a: u128, b: u128) -> bool {
        self.block_masks().any(|mask| (a ^ b) & mask == 0)
    }
}

/// The bottom-k sketch: the smallest hashes of a document's features.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BottomKPlan {
    /// Number of each document's smallest hashes that are bucket keys. Two documents are candidates
    /// only if they have one of these in common.
    pub bucket_keys: usize,
    /// Number of hashes that are kept of a document.
    pub hashes: usize,
    /// Least number of shared hashes, among the smallest of the union, for a candidate pair. Applies
    /// where the union has at least `hashes` hashes.
    pub min_shared_hashes: usize,
}

impl BottomKPlan {
    /// Returns the sketch with the fewest bucket keys that find a pair at the threshold with
    /// probability [`RECALL`].
    fn for_recall(hashes: usize, threshold: Threshold) -> Result<Self> {
        let min_shared_hashes = slot_cutoff(hashes, threshold.get());
        (1..=hashes)
            .map(|bucket_keys| Self {
                bucket_keys,
                hashes,
                min_shared_hashes,
            })
            .find(|smallest| smallest.expected_recall(threshold.get()) - CUTOFF_LOSS >= RECALL)
            .ok_or_else(|| {
                Error::setting_error(format!(
                    "sketches of {hashes} smallest hashes do not find pairs at the threshold \
                     {threshold} with probability {RECALL}: give a higher threshold or more slots, \
                     or use the exact join",
                    threshold = threshold.get()
                ))
            })
    }

    /// Returns a lower bound of the probability that a pair with this Jaccard index J shares a bucket
    /// key. Each of the smallest hashes of the union is in both documents with probability J, and then
    /// it is among the smallest of both.
    pub fn expected_recall(&self, jaccard: f64) -> f64 {
        1.0 - (1.0 - jaccard).powi(self.bucket_keys as i32)
    }
}

/// A match plan: how candidates are found and checked.
///
/// ```
/// use lookalike::plan::{MatchPlan, RECALL, MatchSettings};
/// use lookalike::{Recipe, Threshold};
///
/// let threshold = Threshold::new(0.8)?;
/// let plan = MatchPlan::new(&Recipe::built_in("default")?, MatchSettings { threshold, ..MatchSettings::default() })?;
/// // Two long documents are candidates if 6 slots of a band are equal.
/// let bands = plan.band_plan().unwrap();
/// assert_eq!(bands.rows, 6);
/// assert!(bands.expected_recall(0.8) >= RECALL);
/// // Short documents are joined exactly.
/// assert_eq!(plan.join_plan().unwrap().max_features, 64);
/// # Ok::<_, lookalike::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MatchPlan {
    settings: MatchSettings,
    candidate_threshold: Threshold,
    join: Option<JoinPlan>,
    bands: Option<BandPlan>,
    smallest: Option<BottomKPlan>,
    distance: Option<Distance>,
    bits: u32,
    slots: usize,
    compares_forms: bool,
}

impl MatchPlan {
    /// Returns the plan for a recipe and settings.
    ///
    /// # Errors
    /// Fails if the distance is not below the bits of the recipe's SimHash, if no bands of the recipe's
    /// signature or no smallest hashes reach [`RECALL`] at the threshold, or if the number of sentences
    /// is 0 with [`MatchMethod::Sentences`].
    pub fn new(recipe: &Recipe, settings: MatchSettings) -> Result<Self> {
        let bits = recipe.simhash.bits;
        let method = settings.method.descriptor();
        let distance = match method.sketch {
            MethodSketch::Fingerprint => Some(Distance::new(settings.distance, bits)?),
            _ => None,
        };
        let settings = MatchSettings {
            threshold: deciding_threshold(&settings, bits)?,
            ..settings
        };
        let least_jaccard = settings.measure.descriptor().least_jaccard;
        let candidate_threshold = least_jaccard.at_threshold(settings.threshold, recipe.ngram)?;
        let slots = recipe.minhash.slots as usize;
        let joins_by_containment = joins_by_containment(&settings);
        let short = match method.joined {
            _ if joins_by_containment => Some(usize::MAX),
            JoinedDocuments::Nothing => None,
            JoinedDocuments::Short => Some(SHORT),
            JoinedDocuments::All => Some(usize::MAX),
        };
        let join = short.map(|short| JoinPlan {
            max_features: short,
            max_partner_features: ((short as f64 / candidate_threshold.get()) as usize)
                .saturating_add(1),
        });
        let bands = match method.sketch {
            MethodSketch::Signature if !joins_by_containment => {
                Some(BandPlan::for_recall(slots, candidate_threshold)?)
            }
            _ => None,
        };
        let smallest = match method.sketch {
            MethodSketch::Smallest => Some(BottomKPlan::for_recall(slots, candidate_threshold)?),
            _ => None,
        };
        if settings.method.takes_sentences() && settings.sentences == 0 {
            return Err(Error::setting_error(
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
            compares_forms: recipe.forms.is_some(),
        })
    }

    /// Returns the same plan for the recipe with a table of forms.
    pub fn with_forms(self) -> Self {
        Self {
            compares_forms: true,
            ..self
        }
    }

    /// Returns the same plan for the recipe without its table of forms.
    pub fn without_forms(self) -> Self {
        Self {
            compares_forms: false,
            ..self
        }
    }

    /// Returns `true` if the slots of two documents of one form must agree.
    pub fn compares_forms(&self) -> bool {
        self.compares_forms
    }

    /// Returns the settings. Their threshold is the one that decides.
    pub fn match_settings(&self) -> &MatchSettings {
        &self.settings
    }

    /// Returns the least similarity of a match.
    pub fn threshold(&self) -> Threshold {
        self.settings.threshold
    }

    /// Returns the least Jaccard index of candidates, if the plan
    /// [has one](Self::has_candidate_threshold). With exact containment it is that of two sets of equal size at
    /// the threshold, and pairs below it are candidates too.
    pub fn candidate_threshold(&self) -> Threshold {
        self.candidate_threshold
    }

    /// Returns the least Jaccard index of candidates if another measure decides among them. Pairs below
    /// it are not compared, however similar they are by that measure.
    pub fn separate_candidate_threshold(&self) -> Option<Threshold> {
        let least_jaccard = self.settings.measure.descriptor().least_jaccard;
        (!least_jaccard.is_threshold() && self.has_candidate_threshold())
            .then_some(self.candidate_threshold)
    }

    /// Returns the exact join, if the plan has one.
    pub fn join_plan(&self) -> Option<JoinPlan> {
        self.join
    }

    /// Returns the bands, if the plan compares signatures.
    pub fn band_plan(&self) -> Option<BandPlan> {
        self.bands
    }

    /// Returns the Hamming distance, if the plan compares fingerprints.
    pub fn distance(&self) -> Option<Distance> {
        self.distance
    }

    /// Returns the blocks of bits, if candidates are found by these instead of the distance.
    pub fn block_plan(&self) -> Option<BlockPlan> {
        let count = self.distance?.get() + 1;
        let bits = self.bits;
        (self.settings.candidates == CandidateRule::Blocks).then_some(BlockPlan { count, bits })
    }

    /// Returns the number of longest sentences, if the plan compares sentences.
    pub fn sentence_count(&self) -> Option<usize> {
        let is_option = self.settings.method.takes_sentences();
        is_option.then_some(self.settings.sentences)
    }

    /// Returns the key that candidates have in common, if the plan compares one.
    pub fn equal_key(&self) -> Option<EqualKeySketch> {
        self.settings.method.equal_key()
    }

    /// Returns the bottom-k sketch, if the plan compares it.
    pub fn bottom_k_plan(&self) -> Option<BottomKPlan> {
        self.smallest
    }

    /// Returns the similarity of sequences by which candidates are verified, if the measure is one. Equal
    /// texts are not verified, so there is none for the method `exact`.
    pub fn sequence_measure(&self) -> Option<SequenceMeasure> {
        let measure = self.settings.measure.sequence_measure();
        measure.filter(|_| !self.settings.method.finds_equal_texts_alone())
    }

    /// Returns `true` if candidates must have a Jaccard index of at least
    /// [`candidate_threshold`](Self::candidate_threshold).
    pub fn has_candidate_threshold(&self) -> bool {
        let by_features = self.join.is_some() || self.bands.is_some() || self.smallest.is_some();
        by_features && !self.joins_by_containment()
    }

    /// Returns `true` if candidates come from the exact join by containment: every pair whose containment
    /// reaches the threshold is found, whatever the sizes of its documents are.
    pub fn joins_by_containment(&self) -> bool {
        joins_by_containment(&self.settings)
    }

    /// Returns the least overlap of two documents in the exact join. In a plan without a join, the least
    /// Jaccard index of candidates.
    pub(crate) fn overlap_bound(&self) -> OverlapBound {
        if self.joins_by_containment() {
            OverlapBound::Containment(self.settings.threshold)
        } else {
            OverlapBound::Jaccard(self.candidate_threshold)
        }
    }

    /// Returns `true` if verification compares sets of features: by the measure, or to find out if a pair
    /// reaches the candidate threshold.
    pub(crate) fn compares_features(&self) -> bool {
        self.settings.measure.set_measure().is_some() || self.has_candidate_threshold()
    }

    /// Returns the least Jaccard index of all matching pairs of unequal texts, if the plan guarantees
    /// one without relying on sketches. It is [`candidate_threshold`](Self::candidate_threshold).
    pub(crate) fn guaranteed_jaccard(&self) -> Option<Threshold> {
        let measure = self.settings.measure;
        let reach = measure != SimilarityMeasure::Sketch
            && (measure.descriptor().least_jaccard.is_threshold()
                || self.has_candidate_threshold());
        reach.then_some(self.candidate_threshold)
    }

    /// Returns the number of bits of the recipe's fingerprints.
    pub fn fingerprint_bits(&self) -> u32 {
        self.bits
    }

    /// Returns the number of slots of the recipe's signatures.
    pub fn signature_slots(&self) -> usize {
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
            8 * smallest.hashes + 8
        } else if self.equal_key().is_some() {
            8
        } else {
            0
        };
        let outline = if self.sequence_measure().is_some() {
            20
        } else {
            0
        };
        sketch + outline
    }
}

/// Returns the threshold that decides: the chosen one, or the one that follows from the method and
/// measure.
fn deciding_threshold(settings: &MatchSettings, bits: u32) -> Result<Threshold> {
    let by_sketch = settings.measure == SimilarityMeasure::Sketch;
    if settings.method.finds_equal_texts_alone() {
        return Threshold::new(1.0);
    }
    match settings.method.descriptor().sketch {
        MethodSketch::EqualKey(_) if by_sketch => Threshold::new(1.0),
        MethodSketch::Fingerprint if by_sketch => {
            let equal = bits - settings.distance;
            Threshold::new(Similarity::from_ratio(equal as usize, bits as usize).get())
        }
        _ => Ok(settings.threshold),
    }
}

/// Returns `true` if settings lead to the exact join by containment.
fn joins_by_containment(settings: &MatchSettings) -> bool {
    settings.measure == SimilarityMeasure::Containment
        && settings.method.descriptor().joined != JoinedDocuments::Nothing
}

impl BandPlan {
    /// Returns the bands with the most rows that find a pair at the threshold with probability
    /// [`RECALL`].
    fn for_recall(slots: usize, threshold: Threshold) -> Result<Self> {
        let min_equal_slots = slot_cutoff(slots, threshold.get());
        (1..=slots)
            .rev()
            .map(|rows| Self {
                bands: slots / rows,
                rows,
                min_equal_slots,
            })
            .find(|bands| bands.expected_recall(threshold.get()) - CUTOFF_LOSS >= RECALL)
            .ok_or_else(|| {
                Error::setting_error(format!(
                    "no bands of {slots} slots find pairs at the threshold {threshold} with \
                     probability {RECALL}: give a higher threshold or more slots, or use the exact \
                     join",
                    threshold = threshold.get()
                ))
            })
    }

    /// Returns the probability that a pair with this Jaccard index shares a band: 1 − (1 −
    /// J^rows)^bands.
    pub fn expected_recall(&self, jaccard: f64) -> f64 {
        1.0 - (1.0 - jaccard.powi(self.rows as i32)).powi(self.bands as i32)
    }
}

/// Returns the largest cutoff c such that a pair at the threshold has fewer than c equal slots with a
/// probability of at most [`CUTOFF_LOSS`].
fn slot_cutoff(slots: usize, threshold: f64) -> usize {
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

    fn plan(threshold: f64) -> MatchPlan {
        let threshold = Threshold::new(threshold).unwrap();
        MatchPlan::new(
            &Recipe::default(),
            MatchSettings {
                threshold,
                ..MatchSettings::default()
            },
        )
        .unwrap()
    }

    #[test]
    fn most_selective_bands_keep_the_recall() {
        for (threshold, bands, rows) in [(0.8, 21, 6), (0.9, 12, 10), (0.6, 42, 3), (0.5, 42, 3)] {
            let chosen = plan(threshold).band_plan().unwrap();
            assert_eq!((chosen.bands, chosen.rows), (bands, rows), "at {threshold}");
            assert!(chosen.expected_recall(threshold) >= RECALL);
            let next = BandPlan {
                bands: 128 / (rows + 1),
                rows: rows + 1,
                ..chosen
            };
            assert!(next.expected_recall(threshold) < RECALL + CUTOFF_LOSS);
        }
    }

    #[test]
    fn cutoff_loses_no_more_than_permitted() {
        for threshold in [0.3, 0.5, 0.8, 0.9, 0.99, 0.996, 0.9965, 0.999, 0.99999] {
            let least = slot_cutoff(128, threshold);
            let mut rng = 1u64;
            let mut lost = 0;
            let rounds = 20_000;
            for _ in 0..rounds {
                let equal = (0..128)
                    .filter(|_| {
                        rng = crate::hash::mix_bits(rng.wrapping_add(0x9e37_79b9));
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
        assert_eq!(slot_cutoff(128, 1.0), 128);
    }

    #[test]
    fn cutoff_is_the_binomial_quantile() {
        for slots in [16, 64, 100, 128] {
            for thousandths in 50..=1000 {
                let threshold = f64::from(thousandths) / 1000.0;
                let below = |least| {
                    (0..least)
                        .map(|equal| binomial(slots, equal, threshold))
                        .sum()
                };
                let least = slot_cutoff(slots, threshold);
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
    fn one_feature_decides_at_a_border() {
        let plan = plan(0.8);
        let JoinPlan {
            max_features: short,
            max_partner_features: reach,
        } = plan.join_plan().unwrap();
        assert_eq!((short, reach), (64, 81));
        // 64 of 80 is the largest match of a short document.
        assert!(plan.threshold().admits_ratio(64, 80) && !plan.threshold().admits_ratio(64, 81));
        for (part, whole, admitted) in [
            (7, 10, false),
            (8, 10, true),
            (9, 10, true),
            (79, 99, false),
            (80, 100, true),
        ] {
            assert_eq!(
                plan.threshold().admits_ratio(part, whole),
                admitted,
                "{part} of {whole}"
            );
        }
        assert_eq!(plan.threshold().least_part(10), 8);
        assert_eq!(plan.threshold().least_part(11), 9);
    }

    fn containment_plan(threshold: Threshold, method: MatchMethod) -> MatchPlan {
        let settings = MatchSettings {
            measure: SimilarityMeasure::Containment,
            threshold,
            method,
            ..MatchSettings::default()
        };
        MatchPlan::new(&Recipe::default(), settings).unwrap()
    }

    /// The join takes documents of every size, and there is no least Jaccard index.
    #[test]
    fn containment_is_joined_exactly() {
        for thousandths in [10, 500, 900, 1000] {
            let threshold = Threshold::new(f64::from(thousandths) / 1000.0).unwrap();
            for method in [MatchMethod::Auto, MatchMethod::Join] {
                let plan = containment_plan(threshold, method);
                let join = plan.join_plan().unwrap();
                assert_eq!(join.max_features, usize::MAX);
                assert_eq!(join.max_partner_features, usize::MAX);
                assert!(plan.band_plan().is_none() && plan.joins_by_containment());
                assert!(!plan.has_candidate_threshold());
                assert_eq!(plan.separate_candidate_threshold(), None);
                assert_eq!(plan.guaranteed_jaccard(), None);
                assert!(plan.compares_features());
                assert_eq!(plan.overlap_bound(), OverlapBound::Containment(threshold));
            }
        }
        let others = [
            MatchMethod::MinHash,
            MatchMethod::SimHash,
            MatchMethod::Exact,
            MatchMethod::Sentences,
            MatchMethod::BottomK,
        ];
        for method in others {
            let plan = containment_plan(Threshold::DEFAULT, method);
            assert!(!plan.joins_by_containment() && plan.join_plan().is_none());
        }
    }

    /// With sketches, the least Jaccard index is that of two sets of equal size at the threshold.
    #[test]
    fn containment_by_sketches_plans_for_equal_sizes() {
        let plan = containment_plan(Threshold::new(0.8).unwrap(), MatchMethod::MinHash);
        let least = plan.candidate_threshold();
        // Two sets of 100 that share 80 have a union of 120.
        assert!(
            least.admits_ratio(81, 119)
                && least.admits_ratio(80, 120)
                && !least.admits_ratio(79, 121)
        );
        assert_eq!(plan.separate_candidate_threshold(), Some(least));
        assert!(plan.band_plan().unwrap().expected_recall(least.get()) >= RECALL);
        for hundredths in 10..=100 {
            let threshold = Threshold::new(f64::from(hundredths) / 100.0).unwrap();
            let least = containment_plan(threshold, MatchMethod::MinHash).candidate_threshold();
            for size in 1..300 {
                let shared = threshold.least_part(size);
                let at_the_threshold = shared * 100 == size * hundredths as usize;
                assert!(
                    least.admits_ratio(shared, 2 * size - shared),
                    "{shared} of {size}"
                );
                if at_the_threshold {
                    assert!(!least.admits_ratio(shared - 1, 2 * size - shared + 1));
                }
            }
        }
    }

    #[test]
    fn edits_bound_the_shared_features() {
        let least = |measure, threshold, ngram| {
            let settings = MatchSettings {
                measure,
                threshold: Threshold::new(threshold).unwrap(),
                method: MatchMethod::Join,
                ..MatchSettings::default()
            };
            let recipe = Recipe {
                ngram,
                ..Recipe::default()
            };
            let plan = MatchPlan::new(&recipe, settings).unwrap();
            plan.candidate_threshold()
        };
        // 10 substitutions change 20 of 100 features: 80 of 120 remain.
        let pairs = least(SimilarityMeasure::Levenshtein, 0.9, 2);
        assert!(pairs.admits_ratio(80, 120) && !pairs.admits_ratio(79, 121));
        let single = least(SimilarityMeasure::Levenshtein, 0.8, 1);
        assert!(single.admits_ratio(80, 120) && !single.admits_ratio(79, 121));
        // 5 insertions and 5 deletions in 100 tokens: 10 and 5 features of one text, and 5 and 10 of
        // the other.
        let indel = least(SimilarityMeasure::Indel, 0.95, 2);
        assert!(indel.admits_ratio(85, 115) && !indel.admits_ratio(84, 116));
        assert!(least(SimilarityMeasure::Levenshtein, 1.0, 2).admits_ratio(100, 100));
        assert!(least(SimilarityMeasure::Levenshtein, 0.5, 2).admits_ratio(20, 100));
        assert!(!least(SimilarityMeasure::Levenshtein, 0.5, 2).admits_ratio(19, 100));
        assert!(least(SimilarityMeasure::Levenshtein, 0.1, 2).admits_ratio(10, 100));
        assert!(least(SimilarityMeasure::Cosine, 0.8, 2).admits_ratio(80, 120));
        assert!(least(SimilarityMeasure::Substring, 0.8, 2).admits_ratio(80, 120));
    }

    #[test]
    fn blocks_cover_all_bits() {
        for (count, bits) in [(4, 64), (1, 64), (7, 64), (8, 8), (5, 127), (128, 128)] {
            let blocks = BlockPlan { count, bits };
            let masks: Vec<u128> = blocks.block_masks().collect();
            assert_eq!(masks.len(), count as usize);
            let all = masks.iter().fold(0, |all, mask| {
                assert_eq!(all & mask, 0);
                all | mask
            });
            assert_eq!(all, u128::MAX >> (128 - bits));
            let widths = masks.iter().map(|mask| mask.count_ones());
            assert!(widths.clone().max().unwrap() <= widths.min().unwrap() + 1);
            for mask in &masks {
                assert!(blocks.share_block(!mask & all, 0) && blocks.share_block(0, !mask & all));
            }
            let one_of_each = masks
                .iter()
                .fold(0, |bits, mask| bits | mask & mask.wrapping_neg());
            assert!(!blocks.share_block(one_of_each, 0));
        }
    }

    #[test]
    fn fewest_smallest_hashes_keep_the_recall() {
        for (threshold, meeting) in [(0.8, 3), (0.9, 3), (0.95, 2), (0.5, 7), (1.0, 1)] {
            let settings = MatchSettings {
                threshold: Threshold::new(threshold).unwrap(),
                method: MatchMethod::BottomK,
                ..MatchSettings::default()
            };
            let plan = MatchPlan::new(&Recipe::default(), settings).unwrap();
            let smallest = plan.bottom_k_plan().unwrap();
            assert_eq!(
                (smallest.bucket_keys, smallest.hashes),
                (meeting, 128),
                "{threshold}"
            );
            assert!(smallest.expected_recall(threshold) >= RECALL);
        }
    }

    #[test]
    fn every_plan_keeps_the_recall() {
        for slots in 16..=128 {
            let mut recipe = Recipe::default();
            recipe.minhash.slots = slots;
            for thousandths in 1..=1000 {
                let threshold = Threshold::new(f64::from(thousandths) / 1000.0).unwrap();
                let settings = MatchSettings {
                    threshold,
                    ..MatchSettings::default()
                };
                let Ok(plan) = MatchPlan::new(&recipe, settings) else {
                    let needed = 1.0 - (1.0 - threshold.get()).powi(slots as i32);
                    assert!(
                        needed < RECALL + CUTOFF_LOSS,
                        "{slots} slots, {threshold:?}"
                    );
                    continue;
                };
                let bands = plan.band_plan().unwrap();
                assert!(bands.bands * bands.rows <= slots as usize);
                assert!(bands.expected_recall(threshold.get()) >= RECALL);
            }
        }
    }

    #[test]
    fn impossible_settings_are_refused() {
        let settings = |threshold, method, distance| MatchSettings {
            threshold: Threshold::new(threshold).unwrap(),
            method,
            distance,
            ..MatchSettings::default()
        };
        let refused = MatchPlan::new(&Recipe::default(), settings(0.01, MatchMethod::MinHash, 3));
        assert!(refused.unwrap_err().to_string().contains("0.01"));
        assert!(MatchPlan::new(&Recipe::default(), settings(0.01, MatchMethod::Join, 3)).is_ok());
        assert!(
            MatchPlan::new(&Recipe::default(), settings(0.8, MatchMethod::SimHash, 64)).is_err()
        );
        assert!(
            MatchPlan::new(&Recipe::default(), settings(0.8, MatchMethod::SimHash, 63)).is_ok()
        );
    }

    #[test]
    fn join_covers_every_match_of_a_short_text() {
        for threshold in [0.5, 0.6, 0.7, 0.8, 0.9, 1.0] {
            let plan = plan(threshold);
            let join = plan.join_plan().unwrap();
            assert!(
                !plan
                    .threshold()
                    .admits_ratio(join.max_features, join.max_partner_features + 1),
                "at {threshold}"
            );
        }
    }
}
